/* The number of CPUs available to this thread. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/cpus.h"
#include "core/memory.h"
#include "platform/processes.h"

static void only_allowed_cpus_count(void **state) {
    (void)state;
    cpu_set_t before, one;
    int first = 0;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_int_equal(cleat_cpus(), cleat_cpus_within(CPU_COUNT(&before), ""));
    while (!CPU_ISSET(first, &before)) ++first;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    int found = cleat_cpus();
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(found, 1);
}

/* The machine's number of CPUs is used instead. */
static void no_memory_is_survived(void **state) {
    (void)state;
    cleat_fail_allocation(1);
    int found = cleat_cpus();
    cleat_fail_allocation(0);
    assert_int_equal(found, cleat_cpus_within((int)sysconf(_SC_NPROCESSORS_ONLN), ""));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_allowed_cpus_count),
        cmocka_unit_test(no_memory_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

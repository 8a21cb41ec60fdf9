/* The list of CPUs local to a card: complete, or absent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <hwloc.h>

#include "device/probe.h"

static void every_second(unsigned cpus, char text[CLEAT_CPU_LIST]) {
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    for (unsigned i = 0; i < cpus; i += 2) hwloc_bitmap_set(set, i);
    cleat_print_cpus(set, text);
    hwloc_bitmap_free(set);
}

static void test_long_lists_are_whole(void **state) {
    char text[CLEAT_CPU_LIST];
    (void)state;
    every_second(256, text);
    hwloc_bitmap_t read = hwloc_bitmap_alloc();
    assert_int_equal(hwloc_bitmap_list_sscanf(read, text), 0);
    assert_int_equal(hwloc_bitmap_weight(read), 128);
    assert_int_equal(hwloc_bitmap_last(read), 254);
    hwloc_bitmap_free(read);
}

static void test_too_long_is_any(void **state) {
    char text[CLEAT_CPU_LIST];
    (void)state;
    every_second(1024, text);
    assert_string_equal(text, "any");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_lists_are_whole),
        cmocka_unit_test(test_too_long_is_any),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

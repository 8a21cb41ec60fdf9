/* The table of names finds what was added, at any size, and nothing else. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>

#include "core/memory.h"
#include "core/name_table.h"

enum { NAMES = 3000 };

static const char *name_of(uint32_t i) {
    static char name[32];
    snprintf(name, sizeof name, "column %u", (unsigned)(i * 7919));
    return name;
}

static void names_are_found_at_any_size(void **state) {
    (void)state;
    cleat_name_table names = {0};
    uint32_t value = 77;
    assert_false(cleat_name_table_find(&names, "", &value)); /* in an empty table */
    for (uint32_t i = 0; i < NAMES; ++i) {
        assert_false(cleat_name_table_find(&names, name_of(i), &value));
        assert_int_equal(value, i == 0 ? 77 : (i - 1) * 3);
        assert_int_equal(cleat_name_table_add(&names, name_of(i), i * 3, NULL), CLEAT_OK);
        assert_true(cleat_name_table_find(&names, name_of(i), &value));
        assert_int_equal(value, i * 3);
        assert_int_equal(names.names.count, i + 1);
        assert_true(names.names.count * 2 <= names.names.n_slots + 1); /* so a search ends soon */
    }
    for (uint32_t i = 0; i < NAMES; ++i) {
        assert_true(cleat_name_table_find(&names, name_of(i), &value));
        assert_int_equal(value, i * 3);
    }
    assert_false(cleat_name_table_find(&names, "column", &value));
    cleat_name_table_free(&names);
    assert_true(!names.names.slots && !names.names.count && !names.values && !names.capacity);
}

/* The table has copies, so the caller's text may change. A failed allocation changes nothing. */
static void a_failed_allocation_loses_no_name(void **state) {
    (void)state;
    int failures = 0;
    cleat_name_table names = {0};
    cleat_error error = {0};
    for (uint32_t i = 0; i < 100; ++i)
        for (int n = 1;; ++n) {
            cleat_fail_allocation(n);
            cleat_status status = cleat_name_table_add(&names, name_of(i), i, &error);
            cleat_fail_allocation(0);
            if (!status) break;
            ++failures;
            assert_int_equal(status, CLEAT_ERR_MEMORY);
        }
    assert_true(failures > 15);
    for (uint32_t i = 0; i < 100; ++i) {
        uint32_t value = 0;
        assert_true(cleat_name_table_find(&names, name_of(i), &value));
        assert_int_equal(value, i);
    }
    cleat_name_table_free(&names);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_at_any_size),
        cmocka_unit_test(a_failed_allocation_loses_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

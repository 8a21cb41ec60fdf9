/* Repair of bytes that are not UTF-8: each becomes U+FFFD, and all others are unchanged. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "core/memory.h"
#include "data/common/source.h"

#define FFFD "\xEF\xBF\xBD"

/* The caller closes the source. */
static cleat_source source_of(const char *text) {
    cleat_source source = {.path = "texts.csv", .data = cleat_strdup(text)};
    assert_non_null(source.data);
    source.at = source.data;
    source.end = source.data + strlen(text);
    return source;
}

static void bytes_that_are_not_utf8_are_replaced(void **state) {
    (void)state;
    static const struct {
        const char *text, *repaired;
        size_t replaced;
    } cases[] = {
        {"", "", 0},
        {"g\xC3\xA9od\n", "g\xC3\xA9od\n", 0},
        {"\xFF", FFFD, 1},
        {"a\xFF", "a" FFFD, 1},
        {"\xFF\xFE", FFFD FFFD, 2},
        {"a,\xE9t\xE9\nb\xC3\xA9,\x80\x80 end\n", "a," FFFD "t" FFFD "\nb\xC3\xA9," FFFD FFFD " end\n", 4},
        {"cut\xE2\x82", "cut" FFFD FFFD, 2},
        {"\xED\xA0\x80", FFFD FFFD FFFD, 3}, /* half of a surrogate pair */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        cleat_source source = source_of(cases[i].text);
        cleat_error error = {0};
        size_t replaced = 99;
        assert_int_equal(cleat_source_repair_utf8(&source, &replaced, &error), CLEAT_OK);
        assert_int_equal(replaced, cases[i].replaced);
        assert_int_equal(source.end - source.at, strlen(cases[i].repaired));
        assert_string_equal(source.at, cases[i].repaired);
        cleat_source_close(&source);
        assert_null(source.data);
    }
}

static void a_repair_without_memory_changes_nothing(void **state) {
    (void)state;
    cleat_source source = source_of("a\xFF");
    cleat_error error = {0};
    size_t replaced;
    cleat_fail_allocation(1);
    assert_int_equal(cleat_source_repair_utf8(&source, &replaced, &error), CLEAT_ERR_MEMORY);
    cleat_fail_allocation(0);
    assert_non_null(strstr(error.text, "texts.csv"));
    assert_string_equal(source.at, "a\xFF");
    cleat_source_close(&source);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_that_are_not_utf8_are_replaced),
        cmocka_unit_test(a_repair_without_memory_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Changes one value in an INI text and keeps every other byte. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ini/edit.h"

/* [loader] num_workers = 4 in `before` gives `after`; NULL: CLEAT_ERR_PROFILE. */
static const struct {
    const char *before, *after;
} rows[] = {
    {"[loader]\nnum_workers = auto\n", "[loader]\nnum_workers = 4\n"},
    {"[loader]\nnum_workers=auto", "[loader]\nnum_workers= 4"},
    {"[loader]\nnum_workers =\n", "[loader]\nnum_workers = 4\n"},
    {"[loader]\r\nnum_workers = 12\r\nx = 1\r\n", "[loader]\r\nnum_workers = 4\r\nx = 1\r\n"},
    {"# a\n[ loader ]\n  num_workers :  12   ; why \n\n; end\n",
     "# a\n[ loader ]\n  num_workers :  4   ; why \n\n; end\n"},
    /* comments and other sections do not match */
    {"[run]\nnum_workers = 1\n[loader]\n# num_workers = 2\n;num_workers = 3\nnum_workers = 5\n",
     "[run]\nnum_workers = 1\n[loader]\n# num_workers = 2\n;num_workers = 3\nnum_workers = 4\n"},
    /* a continuation line is part of the value */
    {"[loader]\nnote = a \\\nnum_workers = 7\nnum_workers = 8\n",
     "[loader]\nnote = a \\\nnum_workers = 7\nnum_workers = 4\n"},
    /* the key is missing */
    {"[loader]\nx = 1\n\n# of run\n[run]\ny = 2\n", "[loader]\nx = 1\nnum_workers = 4\n\n# of run\n[run]\ny = 2\n"},
    {"[loader]\nx = 1\n\n[run]\n", "[loader]\nx = 1\nnum_workers = 4\n\n[run]\n"},
    {"[loader]", "[loader]\nnum_workers = 4\n"},
    {"[loader]\r\nx = 1", "[loader]\r\nx = 1\r\nnum_workers = 4\r\n"},
    {"[loaders]\nx = 1\n[loader]\n", "[loaders]\nx = 1\n[loader]\nnum_workers = 4\n"},
    /* the section is missing */
    {"[run]\nx = 1\n", "[run]\nx = 1\n\n[loader]\nnum_workers = 4\n"},
    {"[run]\nx = 1", "[run]\nx = 1\n\n[loader]\nnum_workers = 4\n"},
    {"", "[loader]\nnum_workers = 4\n"},
    /* refused */
    {"[loader]\nnum_workers = 1\nnum_workers = 2\n", NULL},
    {"[loader]\nnum_workers = \\\n2\n", NULL},
};

static void only_the_line_changes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_string edited = {0};
        cleat_error error = {0};
        const char *before = rows[i].before;
        cleat_status status = cleat_ini_edit(before, strlen(before), "loader", "num_workers", "4", &edited, &error);
        assert_int_equal(status, rows[i].after ? CLEAT_OK : CLEAT_ERR_PROFILE);
        if (rows[i].after) assert_string_equal(edited.data, rows[i].after);
        if (!rows[i].after) assert_non_null(strstr(error.text, "loader.num_workers"));
        cleat_string_free(&edited);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_the_line_changes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

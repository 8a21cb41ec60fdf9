/* The RFC 4180 reader, number parsing, and refusal of input that is not text. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "data/common/csv.h"
#include "files.h"

static void reads_quoted_fields(void **state) {
    (void)state;
    const char *path = test_path("quoted.csv");
    test_write_text(path, "\xEF\xBB\xBF"
                          "a,b,c\r\n\r\n1,\"x, \"\"y\"\"\nz\",\n\"\",2,last");
    cleat_csv csv;
    cleat_error error = {0};
    bool more;
    assert_int_equal(cleat_csv_open(path, &csv, &error), CLEAT_OK);
    assert_int_equal(csv.count, 3);
    assert_int_equal(cleat_csv_column(&csv, "a"), 0);
    assert_int_equal(cleat_csv_column(&csv, "c"), 2);
    assert_int_equal(cleat_csv_column(&csv, "d"), -1);
    assert_int_equal(cleat_csv_next(&csv, &more, &error), CLEAT_OK);
    assert_true(more);
    assert_int_equal(csv.line, 3);
    assert_string_equal(csv.fields[1], "x, \"y\"\nz");
    assert_string_equal(csv.fields[2], "");
    assert_int_equal(cleat_csv_next(&csv, &more, &error), CLEAT_OK);
    assert_int_equal(csv.line, 5);
    assert_string_equal(csv.fields[0], "");
    assert_string_equal(csv.fields[2], "last");
    assert_int_equal(cleat_csv_next(&csv, &more, &error), CLEAT_OK);
    assert_false(more);
    cleat_csv_close(&csv);
}

/* Reads a whole file; returns the status of the first call that fails. */
static cleat_status read_all(const char *path, cleat_error *error) {
    cleat_csv csv;
    bool more = true;
    cleat_status status = cleat_csv_open(path, &csv, error);
    if (status) return status;
    while (!status && more) status = cleat_csv_next(&csv, &more, error);
    cleat_csv_close(&csv);
    return status;
}

static void refuses_broken_files(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t size; /* 0: strlen */
        const char *where, *what;
    } rows[] = {
        {"", 0, ":1:", "empty"},
        {"\xEF\xBB\xBF", 0, ":1:", "empty"},
        {"\n\n", 0, ":1:", "header"},
        {"a,b\n1\n", 0, ":2:", "1 fields, but the header has 2"},
        {"a,b\n1,2,3\n", 0, ":2:", "3 fields"},
        {"a,b\n1,\"2\n3,4\n", 0, ":2:", "never closed"},
        {"a,b\n1,\"2\"x\n", 0, ":2:", "after the closing quote"},
        {"a,b\n1,2\"x\n", 0, ":2:", "unquoted"},
        {"a,b\n1\r,2\n", 0, ":2:", "carriage return"},
        {"a,b\r1,2\r", 0, ":1:", "tr '\\r' '\\n'"},
        {"a,b\n1,\xFF\n", 0, ":2:", "not UTF-8"},
        {"a,b\n1,\xC3", 0, ":2:", "not UTF-8"},
        {"a,b\n1,\xED\xA0\x80\n", 0, ":2:", "not UTF-8"},
        {"a,b\n1,\0\n", 8, ":2:", "zero byte"},
        {"\x1F\x8B\x08\0", 4, ":1:", "gunzip"},
        {"\xFF\xFE"
         "a\0,\0b\0",
         8, ":1:", "iconv -f UTF-16"},
        {"\xFE\xFF\0a\0,", 6, ":1:", "iconv -f UTF-16"},
        {"a;b\n1\n", 0, ":2:", "separator not quoted"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        const char *path = test_path("broken.csv");
        cleat_error error = {0};
        test_write(path, rows[i].bytes, rows[i].size ? rows[i].size : strlen(rows[i].bytes));
        assert_int_equal(read_all(path, &error), CLEAT_ERR_FORMAT);
        assert_int_equal(error.status, CLEAT_ERR_FORMAT);
        assert_non_null(strstr(error.text, "broken.csv"));
        assert_non_null(strstr(error.text, rows[i].where));
        assert_non_null(strstr(error.text, rows[i].what));
    }
    cleat_error error = {0};
    assert_int_equal(read_all(test_path("absent.csv"), &error), CLEAT_ERR_NOT_FOUND);
    assert_int_equal(read_all(test_folder("folder.csv"), &error), CLEAT_ERR_IO);
    assert_int_equal(read_all(test_path("absent.csv"), NULL), CLEAT_ERR_NOT_FOUND);
}

static void separators_are_recognised_by_the_header(void **state) {
    (void)state;
    static const struct {
        const char *name, *text;
        char separator;
        const char *b; /* field of column b in the first row */
    } rows[] = {
        {"s.csv", "a;b\n1;\"x;y\"\n", ';', "x;y"},      {"s.csv", "\xEF\xBB\xBF\"a, c\";b\r\n1;2,5\r\n", ';', "2,5"},
        {"s.csv", "\n\na\tb\n1\t\"2;\"\n", '\t', "2;"}, {"s.csv", "a|b|c;d\n1|2|3\n", '|', "2"},
        {"s.csv", "a,b,c;d;e;f\n1,2,3\n", ',', "2"},    {"s.csv", "sep=;\r\na,c;b\r\n1;2\r\n", ';', "2"},
        {"s.csv", "sep=;,b\n1,2\n", ',', "2"},          {"s.TSV", "a\tb;c;d\tb\n1\t3\t\"2\n", '\t', "\"2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        const char *path = test_path(rows[i].name);
        cleat_csv csv;
        cleat_error error = {0};
        bool more = false;
        test_write_text(path, rows[i].text);
        if (cleat_csv_open(path, &csv, &error) != CLEAT_OK) fail_msg("row %zu: %s", i, error.text);
        int b = cleat_csv_column(&csv, "b");
        assert_int_equal(csv.separator, rows[i].separator);
        assert_true(b > 0);
        if (cleat_csv_next(&csv, &more, &error) != CLEAT_OK) fail_msg("row %zu: %s", i, error.text);
        assert_true(more);
        assert_string_equal(csv.fields[b], rows[i].b);
        cleat_csv_close(&csv);
    }
}

static void parses_decimals(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double value; /* NAN: refused */
    } rows[] = {{"1", 1},           {" -12.345 ", -12.345},
                {"+.5", 0.5},       {"5.", 5},
                {"1e3", 1000},      {"-1e+18", -1e18},
                {"2.5E-3", 0.0025}, {"1e-400", 0},
                {"0.1", 0.1},       {"123456789.123456789", 123456789.123456789},
                {"", NAN},          {" ", NAN},
                {"nan", NAN},       {"inf", NAN},
                {"-inf", NAN},      {"0x10", NAN},
                {"1e", NAN},        {"1e+", NAN},
                {"1.2.3", NAN},     {"--1", NAN},
                {"1,5", NAN},       {"1 2", NAN},
                {"1e999", NAN},     {".", NAN},
                {"e5", NAN}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        double value = 77;
        bool ok = cleat_parse_decimal(rows[i].text, strlen(rows[i].text), &value);
        assert_int_equal(ok, !isnan(rows[i].value));
        if (ok) assert_true(fabs(value - rows[i].value) <= 1e-15 * fabs(rows[i].value));
        if (!ok) assert_true(value == 77);
    }
    char text[24];
    cleat_format_fixed3(-0.0004, text);
    assert_string_equal(text, "0.000");
    cleat_format_fixed3(-1.5, text);
    assert_string_equal(text, "-1.500");
    cleat_format_fixed3(12345.6789, text);
    assert_string_equal(text, "12345.679");
}

static void shows_only_what_is_printable(void **state) {
    (void)state;
    char shown[CLEAT_EXCERPT_SIZE];
    static const char wide[] = "a\u00FC\u00FC\u00FC\u00FC\u00FC\u00FC\u00FC\u00FC\u00FC\u00FC\u00FC\u00FC\u00FC\u00FC"
                               "\u00FC\u00FC\u00FC\u00FC\u00FC\u00FC\u00FC\u00FC";
    assert_string_equal(cleat_format_excerpt("a\x1B[2Jb", 6, shown), "a?[2Jb");
    assert_string_equal(cleat_format_excerpt("M\u00FCller\x7F", 8, shown), "M\u00FCller?");
    assert_int_equal(strlen(cleat_format_excerpt(wide, sizeof wide - 1, shown)), 1 + 2 * 19 + 3); /* whole characters */
    assert_int_equal(
        strlen(cleat_format_excerpt("0123456789012345678901234567890123456789012345678901234567890", 60, shown)),
        CLEAT_EXCERPT_SIZE - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_quoted_fields),
        cmocka_unit_test(refuses_broken_files),
        cmocka_unit_test(separators_are_recognised_by_the_header),
        cmocka_unit_test(parses_decimals),
        cmocka_unit_test(shows_only_what_is_printable),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}

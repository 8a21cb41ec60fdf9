/* NPY files: NumPy's data are read exactly; invalid files are refused with a remedy. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/maps/npy.h"
#include "files.h"

/* Writes a file with this version, dictionary and elements. */
static const char *write_npy(const char *name, int version, const char *dictionary, const void *data, size_t size) {
    static uint8_t file[16384];
    const char *path = test_path(name);
    size_t length = strlen(dictionary) + 1, prefix = version == 1 ? 10 : 12;
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (uint8_t)version;
    file[7] = 0;
    file[8] = (uint8_t)length;
    file[9] = (uint8_t)(length >> 8);
    file[10] = file[11] = 0;
    memcpy(file + prefix, dictionary, length - 1);
    file[prefix + length - 1] = '\n';
    memcpy(file + prefix + length, data, size);
    test_write(path, file, prefix + length + size);
    return path;
}

static void expect_values(const char *path, const float *expected, int64_t count) {
    cleat_npy npy;
    cleat_error error = {0};
    float values[64];
    if (cleat_npy_probe(path, &npy, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_int_equal(npy.elements, count);
    if (cleat_npy_read(path, &npy, 0, count, values, &error) != CLEAT_OK) fail_msg("%s", error.text);
    for (int64_t i = 0; i < count; ++i) assert_true(values[i] == expected[i]);
}

/* The dictionary of a vector of `count` elements. */
static const char *vector(const char *descr, int count) {
    static char text[128];
    snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }", descr, count);
    return text;
}

static void every_type_is_read_in_both_orders(void **state) {
    (void)state;
    static const float expected[3] = {1, -2, 0.5f}, whole[3] = {1, -2, 300}, small[3] = {0, 1, 255};
    static const uint8_t f4_big[] = {0x3F, 0x80, 0, 0, 0xC0, 0, 0, 0, 0x3F, 0, 0, 0};
    static const uint8_t f4_little[] = {0, 0, 0x80, 0x3F, 0, 0, 0, 0xC0, 0, 0, 0, 0x3F};
    static const uint8_t f8_big[] = {0x3F, 0xF0, 0, 0, 0,    0,    0, 0, 0xC0, 0, 0, 0,
                                     0,    0,    0, 0, 0x3F, 0xE0, 0, 0, 0,    0, 0, 0};
    static const uint8_t f8_little[] = {0, 0, 0, 0,    0, 0, 0xF0, 0x3F, 0, 0, 0,    0,
                                        0, 0, 0, 0xC0, 0, 0, 0,    0,    0, 0, 0xE0, 0x3F};
    static const uint8_t i2_big[] = {0, 1, 0xFF, 0xFE, 1, 44}, i2_little[] = {1, 0, 0xFE, 0xFF, 44, 1};
    static const uint8_t i4_big[] = {0, 0, 0, 1, 0xFF, 0xFF, 0xFF, 0xFE, 0, 0, 1, 44};
    static const uint8_t i4_little[] = {1, 0, 0, 0, 0xFE, 0xFF, 0xFF, 0xFF, 44, 1, 0, 0};
    static const uint8_t bytes[] = {0, 1, 255};
    static const float as_signed[3] = {0, 1, -1}, as_bool[3] = {0, 1, 1};
    expect_values(write_npy("a.npy", 1, vector(">f4", 3), f4_big, sizeof f4_big), expected, 3);
    expect_values(write_npy("a.npy", 2, vector("<f4", 3), f4_little, sizeof f4_little), expected, 3);
    expect_values(write_npy("a.npy", 3, vector(">f8", 3), f8_big, sizeof f8_big), expected, 3);
    expect_values(write_npy("a.npy", 1, vector("<f8", 3), f8_little, sizeof f8_little), expected, 3);
    expect_values(write_npy("a.npy", 1, vector(">i2", 3), i2_big, sizeof i2_big), whole, 3);
    expect_values(write_npy("a.npy", 1, vector("<i2", 3), i2_little, sizeof i2_little), whole, 3);
    expect_values(write_npy("a.npy", 1, vector(">i4", 3), i4_big, sizeof i4_big), whole, 3);
    expect_values(write_npy("a.npy", 1, vector("<i4", 3), i4_little, sizeof i4_little), whole, 3);
    expect_values(write_npy("a.npy", 1, vector("|u1", 3), bytes, 3), small, 3);
    expect_values(write_npy("a.npy", 1, vector("|i1", 3), bytes, 3), as_signed, 3);
    expect_values(write_npy("a.npy", 1, vector("|b1", 3), bytes, 3), as_bool, 3);
    const int16_t native[3] = {1, -2, 300};
    expect_values(write_npy("a.npy", 1, vector("=i2", 3), native, sizeof native), whole, 3);
}

static void headers_may_be_written_in_many_ways(void **state) {
    (void)state;
    static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6};
    static const float expected[6] = {1, 2, 3, 4, 5, 6};
    cleat_npy npy;
    cleat_error error = {0};
    const char *path = write_npy("b.npy", 1, "{\"shape\":(2L,3L),'fortran_order':False,'descr':'|u1'}   ", bytes, 6);
    expect_values(path, expected, 6);
    assert_int_equal(cleat_npy_probe(path, &npy, &error), CLEAT_OK);
    assert_int_equal(npy.rank, 2);
    assert_int_equal(npy.shape[0], 2);
    assert_int_equal(npy.shape[1], 3);
    path = write_npy("b.npy", 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (), }", bytes, 1);
    assert_int_equal(cleat_npy_probe(path, &npy, &error), CLEAT_OK);
    assert_int_equal(npy.rank, 0);
    expect_values(path, expected, 1);
}

static void parts_are_read_and_nan_stays(void **state) {
    (void)state;
    enum { COUNT = 1000 };
    static double data[COUNT];
    static float values[COUNT];
    cleat_npy npy;
    cleat_error error = {0};
    for (int i = 0; i < COUNT; ++i) data[i] = i == 500 ? NAN : i * 0.25;
    const char *path = write_npy("c.npy", 1, vector("<f8", COUNT), data, sizeof data);
    assert_int_equal(cleat_npy_probe(path, &npy, &error), CLEAT_OK);
    assert_int_equal(cleat_npy_read(path, &npy, 499, 3, values, &error), CLEAT_OK);
    assert_true(values[0] == 499 * 0.25f && isnan(values[1]) && values[2] == 501 * 0.25f);
    assert_int_equal(cleat_npy_read(path, &npy, 998, 3, values, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_npy_read(path, &npy, -1, 3, values, &error), CLEAT_ERR_ARGUMENT);
}

static void written_files_come_back(void **state) {
    (void)state;
    enum { ROWS = 300, COLUMNS = 77 }; /* longer than one chunk of a read */
    float *values = malloc(ROWS * COLUMNS * 4), *back = malloc(ROWS * COLUMNS * 4);
    cleat_npy npy;
    cleat_error error = {0};
    size_t size;
    for (int i = 0; i < ROWS * COLUMNS; ++i) values[i] = (float)sin(i) * 1e-3f;
    const char *path = test_path("written.npy");
    assert_int_equal(cleat_npy_write(path, values, ROWS, COLUMNS, &error), CLEAT_OK);
    char *file = test_read(path, &size);
    assert_memory_equal(file, "\x93NUMPY\x01\x00", 8);
    size_t begin = 10 + (size_t)(uint8_t)file[8] + 256 * (size_t)(uint8_t)file[9];
    assert_int_equal(begin % 64, 0);
    assert_int_equal(file[begin - 1], '\n');
    file[begin - 1] = 0;
    assert_non_null(strstr(file + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (300, 77), }"));
    assert_int_equal(size, begin + ROWS * COLUMNS * 4);
    assert_int_equal(cleat_npy_probe(path, &npy, &error), CLEAT_OK);
    assert_int_equal(npy.rank, 2);
    assert_int_equal(npy.shape[0], ROWS);
    assert_int_equal(npy.shape[1], COLUMNS);
    assert_int_equal(cleat_npy_read(path, &npy, 0, npy.elements, back, &error), CLEAT_OK);
    assert_memory_equal(values, back, ROWS * COLUMNS * 4);
    assert_int_equal(cleat_npy_write(path, values, 0, 3, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_npy_write(test_path("none/x.npy"), values, 1, 3, &error), CLEAT_ERR_NOT_FOUND);
    free(file);
    free(values);
    free(back);
}

static void expect_refused(const char *path, const char *wanted) {
    cleat_npy npy = {.rank = 77};
    cleat_error error = {0};
    assert_int_equal(cleat_npy_probe(path, &npy, &error), CLEAT_ERR_FORMAT);
    if (!strstr(error.text, wanted) || !strstr(error.text, path)) fail_msg("'%s' lacks '%s'", error.text, wanted);
    assert_int_equal(npy.rank, 77);
}

static void bad_headers_are_refused(void **state) {
    (void)state;
    static const uint8_t bytes[64] = {0};
    static const struct {
        const char *dictionary, *wanted;
        size_t size;
    } rows[] = {
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }", "np.ascontiguousarray", 8},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", "astype('f4')", 16},
        {"{'descr': '|f4', 'fortran_order': False, 'shape': (2,), }", "astype('f4')", 8},
        {"{'descr': 'f4', 'fortran_order': False, 'shape': (2,), }", "astype('f4')", 8},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", "astype('f4')", 8},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", "records", 8},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", "truncated", 8},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "one array", 8},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0,), }", "empty", 0},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999, 9999999999999), }", "more elements", 8},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "whole numbers", 8},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", "whole numbers", 8},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1 2), }", "whole numbers", 8},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': [2], }", "tuple", 8},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,2), }", "dimensions", 8},
        {"{'descr': '<f4', 'fortran_order': False, }", "lacks", 8},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "twice", 8},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}", "a key other than", 8},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }", "True nor False", 8},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", "dictionary", 8},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } x", "continues after its dictionary", 8},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (", "whole numbers", 8},
        {"{'descr': '<f4", "records", 8},
        {"", "dictionary", 8},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        expect_refused(write_npy("bad.npy", 1, rows[i].dictionary, bytes, rows[i].size), rows[i].wanted);
}

static void other_files_are_refused(void **state) {
    (void)state;
    cleat_npy npy;
    cleat_error error = {0};
    const char *path = test_path("other.npy");
    test_write(path, "", 0);
    expect_refused(path, "empty");
    test_write(path, "PK\3\4 an archive of arrays", 24);
    expect_refused(path, ".npz");
    test_write(path, "1,2,3\n4,5,6\n7,8,9\n", 18);
    expect_refused(path, "not an NPY file");
    test_write(path, "\x93NUMPY\4\0\0\0\0\0", 12);
    expect_refused(path, "version 4.0");
    test_write(path, "\x93NUMPY\1\0", 8);
    expect_refused(path, "truncated");
    test_write(path, "\x93NUMPY\1\0\x76\0{'descr': ", 20);
    expect_refused(path, "truncated");
    test_write(path, "\x93NUMPY\2\0\xFF\xFF\xFF\xFF{'descr': ", 22);
    expect_refused(path, "the maximum is");
    assert_int_equal(cleat_npy_probe(test_path("absent.npy"), &npy, &error), CLEAT_ERR_NOT_FOUND);
    assert_int_equal(cleat_npy_probe(test_folder("folder.npy"), &npy, &error), CLEAT_ERR_IO);
}

static void values_beyond_single_precision_are_refused(void **state) {
    (void)state;
    cleat_npy npy;
    cleat_error error = {0};
    float values[4];
    const double large[2] = {1, -1e300};
    const float infinite[3] = {1, 2, INFINITY};
    const char *path = write_npy("large.npy", 1, vector("<f8", 2), large, sizeof large);
    assert_int_equal(cleat_npy_probe(path, &npy, &error), CLEAT_OK);
    assert_int_equal(cleat_npy_read(path, &npy, 0, 2, values, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "element 1 "));
    path = write_npy("large.npy", 1, vector("<f4", 3), infinite, sizeof infinite);
    assert_int_equal(cleat_npy_probe(path, &npy, &error), CLEAT_OK);
    assert_int_equal(cleat_npy_read(path, &npy, 1, 2, values, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "element 2 "));
}

static void a_file_that_shrinks_is_noticed(void **state) {
    (void)state;
    cleat_npy npy;
    cleat_error error = {0};
    float values[4], data[4] = {1, 2, 3, 4};
    const char *path = write_npy("shrinks.npy", 1, vector("<f4", 4), data, sizeof data);
    assert_int_equal(cleat_npy_probe(path, &npy, &error), CLEAT_OK);
    write_npy("shrinks.npy", 1, vector("<f4", 4), data, 8);
    assert_int_equal(cleat_npy_read(path, &npy, 0, 4, values, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "truncated"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_read_in_both_orders),
        cmocka_unit_test(headers_may_be_written_in_many_ways),
        cmocka_unit_test(parts_are_read_and_nan_stays),
        cmocka_unit_test(written_files_come_back),
        cmocka_unit_test(bad_headers_are_refused),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(values_beyond_single_precision_are_refused),
        cmocka_unit_test(a_file_that_shrinks_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}

/* ESRI ASCII grids: every accepted header, and a message with place and remedy for every invalid one. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/maps/esri_grid.h"
#include "files.h"

static cleat_esri_grid read_grid(const char *text) {
    cleat_esri_grid grid = {0};
    cleat_error error = {0};
    const char *path = test_path("grid.asc");
    test_write_text(path, text);
    if (cleat_esri_grid_read(path, &grid, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return grid;
}

static void grids_are_read(void **state) {
    (void)state;
    cleat_esri_grid grid = read_grid("ncols 3\nnrows 2\nxllcorner 112.0\nyllcorner -44\ncellsize 0.5\nNODATA_value -1\n"
                                     "1 2.5 -1\n-1.0 1e-3 -4\n");
    static const float expected[6] = {1, 2.5f, NAN, NAN, 1e-3f, -4};
    assert_int_equal(grid.columns, 3);
    assert_int_equal(grid.rows, 2);
    assert_true(grid.left == 112 && grid.bottom == -44 && grid.cell == 0.5);
    for (int i = 0; i < 6; ++i) assert_true(isnan(expected[i]) ? isnan(grid.values[i]) : grid.values[i] == expected[i]);
    cleat_esri_grid_free(&grid);
}

static void headers_have_any_order_case_and_line_breaks(void **state) {
    (void)state;
    cleat_esri_grid grid =
        read_grid("CellSize\t2\r\nXLLCENTER 11\r\nYLLCenter 21 \r\n\r\nNROWS 1 NCOLS 4\r\n7\r\n8 -9999\r\n9");
    assert_int_equal(grid.columns, 4);
    assert_int_equal(grid.rows, 1);
    assert_true(grid.left == 10 && grid.bottom == 20 && grid.cell == 2);
    assert_true(grid.values[0] == 7 && grid.values[1] == 8 && isnan(grid.values[2]) && grid.values[3] == 9);
    cleat_esri_grid_free(&grid);
}

/* As written by GDAL and R's raster packages: NODATA_value and the cells have different numbers of digits. */
static void nodata_is_compared_in_single_precision(void **state) {
    (void)state;
    static const struct {
        const char *nodata, *cell;
        bool unknown;
    } rows[] = {
        {"-3.40282346638529e+38", "-3.4028234663852886e+38", true},
        {"-3.40282e+38", "-3.4028235e+38", true},
        {"-1.79769e+308", "-1.7976931348623157e+308", true},
        {"nan", "NaN", true},
        {"-nan", "nan", true},
        {"nan", "-9999", false},
        {"-99.9", "-99.90000000000001", true},
        {"-99.9", "-99.8999", false},
        {"-9999", "-9998.9", false},
    };
    char text[256];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        snprintf(text, sizeof text, "ncols 2\nnrows 1\nxllcorner 0\nyllcorner 0\ncellsize 1\nNODATA_value %s\n%s 7\n",
                 rows[i].nodata, rows[i].cell);
        cleat_esri_grid grid = read_grid(text);
        if (isnan(grid.values[0]) != rows[i].unknown || grid.values[1] != 7)
            fail_msg("row %zu: %g %g", i, (double)grid.values[0], (double)grid.values[1]);
        cleat_esri_grid_free(&grid);
    }
}

#define HEAD "ncols 2\nnrows 2\nxllcorner 0\nyllcorner 0\ncellsize 1\n"

static void bad_grids_are_refused_with_their_place(void **state) {
    (void)state;
    static const struct {
        const char *text, *place, *wanted;
    } rows[] = {
        {"", ":1: ", "empty"},
        {"nrows 2\nxllcorner 0\nyllcorner 0\ncellsize 1\n1 2 3 4\n", ":5: ", "no ncols"},
        {"ncols 2\nnrows 2\nxllcorner 0\ncellsize 1\n1 2 3 4\n", ":5: ", "no yllcorner"},
        {"1 2\n3 4\n", ":1: ", "no ncols"},
        {HEAD "ncols 3\n1 2 3 4\n", ":6:1: ", "repeats an entry of the header"},
        {HEAD "xllcenter 3\n1 2 3 4\n", ":6:1: ", "repeats an entry of the header"},
        {HEAD "dx 3\n1 2 3 4\n", ":6:1: ", "not square"},
        {HEAD "projection 3\n1 2 3 4\n", ":6:1: ", "not a header name"},
        {"ncols 2.5\n", ":1:7: ", "whole number"},
        {"ncols 0\n", ":1:7: ", "whole number"},
        {"ncols two\n", ":1:7: ", "not a number"},
        {"ncols 2\nnrows 2\nxllcorner 0\nyllcorner 0\n  cellsize -1\n", ":5:12: ", "must be greater than 0"},
        {"ncols", ":1: ", "ends after ncols"},
        {HEAD "1 2\n3 x\n", ":7:3: ", "not a number"},
        {HEAD "1 2\n3 nan\n", ":7:3: ", "NODATA_value"},
        {HEAD "NaN 2\n3 4\n", ":6:1: ", "NODATA_value"},
        {HEAD "1 2\n3,5 4\n", ":7:1: ", "decimal point"},
        {HEAD "1 2\n3 1e60\n", ":7:3: ", "single precision"},
        {HEAD "1 2\n333\n", ":8: ", "after 3 of 2 x 2 values"},
        {HEAD "1 2\n3 4 \n  5\n", ":8:3: ", "more than ncols"},
        {"ncols 100000\nnrows 100000\nxllcorner 0\nyllcorner 0\ncellsize 1\n1 2 3 4\n", ":1: ", "do not fit"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_esri_grid grid = {.rows = 77};
        cleat_error error = {0};
        const char *path = test_path("bad.asc");
        test_write_text(path, rows[i].text);
        assert_int_equal(cleat_esri_grid_read(path, &grid, &error), CLEAT_ERR_FORMAT);
        const char *place = error.text + strlen(path);
        if (strncmp(place, rows[i].place, strlen(rows[i].place)) != 0 || !strstr(error.text, rows[i].wanted))
            fail_msg("row %zu: '%s' lacks '%s' or '%s'", i, error.text, rows[i].place, rows[i].wanted);
        assert_int_equal(grid.rows, 77);
    }
}

static void grids_that_do_not_lie_over_each_other_are_told_apart(void **state) {
    (void)state;
    cleat_esri_grid corner = read_grid("ncols 1\nnrows 1\nxllcorner 0.1\nyllcorner 0\ncellsize 0.2\n1\n");
    cleat_esri_grid center = read_grid("ncols 1\nnrows 1\nxllcenter 0.2\nyllcenter 0.1\ncellsize 0.2\n1\n");
    cleat_esri_grid other = center;
    cleat_error error = {0};
    assert_int_equal(cleat_esri_grid_match("a", &corner, "b", &center, &error), CLEAT_OK);
    other.bottom += 0.01;
    assert_int_equal(cleat_esri_grid_match("a.asc", &corner, "b.asc", &other, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "a.asc: the south edge"));
    assert_non_null(strstr(error.text, "b.asc"));
    other = center;
    other.columns = 2;
    assert_int_equal(cleat_esri_grid_match("a", &corner, "b", &other, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "ncols is 1, but in b it is 2"));
    cleat_esri_grid_free(&corner);
    cleat_esri_grid_free(&center);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grids_are_read),
        cmocka_unit_test(headers_have_any_order_case_and_line_breaks),
        cmocka_unit_test(nodata_is_compared_in_single_precision),
        cmocka_unit_test(bad_grids_are_refused_with_their_place),
        cmocka_unit_test(grids_that_do_not_lie_over_each_other_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}

/* The build options of launches. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "graph/launch.h"

static void begin(cleat_binder *binder, const cleat_device_facts *facts) {
    cleat_binder_init(binder, facts);
    cleat_launch_kernel(binder, NULL, "linear/linear_mma.cl", "linear_mma", CLEAT_F16);
}

/* Only Intel's matrix units require more than a define. */
static void test_options_for_matrix_units(void **state) {
    static const struct {
        cleat_matrix_unit unit;
        const char *more;
    } rows[] = {
        {CLEAT_MATRIX_NV80, ""},
        {CLEAT_MATRIX_EMULATED, ""},
        {CLEAT_MATRIX_INTEL8, " -cl-intel-256-GRF-per-thread"},
        {CLEAT_MATRIX_INTEL16, " -cl-intel-256-GRF-per-thread"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_device_facts facts = {.work_group = 256, .vector_width = 4, .matrix_unit = rows[i].unit};
        cleat_binder binder;
        char expected[CLEAT_OPTIONS];
        begin(&binder, &facts);
        cleat_launch_matrix_unit(&binder);
        snprintf(expected, sizeof expected, "-DSTORAGE_F16 -DWG=256 -DVEC=4 -DMATRIX_UNIT=%d%s", (int)rows[i].unit,
                 rows[i].more);
        assert_int_equal(binder.error.status, CLEAT_OK);
        assert_string_equal(binder.launches[0].options, expected);
        cleat_binder_clear(&binder);
    }
}

/* A kernel with another group size changes the option in place, together with the local size. */
static void test_work_group_of_a_launch(void **state) {
    cleat_device_facts facts = {.work_group = 256, .vector_width = 4, .compute_units = 1};
    cleat_binder binder;
    (void)state;
    begin(&binder, &facts);
    cleat_launch_define(&binder, "WIDTH", 7);
    cleat_launch_work_group(&binder, 128);
    cleat_launch_groups(&binder, 3);
    assert_string_equal(binder.launches[0].options, "-DSTORAGE_F16 -DWG=128 -DVEC=4 -DWIDTH=7");
    assert_int_equal(binder.launches[0].local[0], 128);
    assert_int_equal(binder.launches[0].global[0], 3 * 128);
    cleat_launch_kernel(&binder, NULL, "pointwise.cl", "gelu", CLEAT_F16);
    cleat_launch_groups(&binder, 3);
    assert_int_equal(binder.launches[1].local[0], 256);
    cleat_binder_clear(&binder);
}

static void test_options_that_are_too_long(void **state) {
    cleat_device_facts facts = {.work_group = 256, .vector_width = 4, .matrix_unit = CLEAT_MATRIX_INTEL8};
    cleat_binder binder;
    (void)state;
    begin(&binder, &facts);
    for (int i = 0; i < CLEAT_OPTIONS / 16 && !binder.error.status; ++i)
        cleat_launch_define(&binder, "FIFTEEN_LONG", i % 10);
    assert_int_equal(binder.error.status, CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(binder.error.text, "'linear_mma': build options too long"));
    assert_true(strlen(binder.launches[0].options) < CLEAT_OPTIONS);
    cleat_binder_clear(&binder);
}

/* Aligned vector loads require a suitable row width and suitable offsets of all arguments. */
static void test_alignment_of_vectors(void **state) {
    static const struct {
        int64_t work_group, multiple, elements, bytes;
        bool aligned;
    } rows[] = {
        {256, 0, 0, 0, true},       {256, 12, 8, 16, true}, {256, 12 | 8, 0, 0, true},
        {256, 12 | 6, 0, 0, false}, {256, 6, 0, 0, false},  {256, 12, 2, 0, false},
        {256, 12, 0, 8, false},     {256, 1, 0, 0, false},  {1, 16, 0, 0, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_device_facts facts = {.work_group = (int)rows[i].work_group, .vector_width = 4};
        cleat_binder binder;
        cleat_binder_init(&binder, &facts);
        cleat_launch_vector_kernel(&binder, NULL, "concat.cl", "concat_columns", CLEAT_F16, rows[i].multiple);
        cleat_launch_tensor_at(&binder, NULL, rows[i].elements);
        cleat_launch_workspace(&binder, rows[i].bytes, sizeof(float));
        cleat_launch_groups(&binder, 1);
        assert_int_equal(binder.error.status, CLEAT_OK);
        assert_int_equal(strstr(binder.launches[0].options, " -DALIGNED=1") != NULL, rows[i].aligned);
        cleat_binder_clear(&binder);
    }
}

/* A kernel with unknown addresses never declares them aligned. */
static void test_plain_kernels_are_not_aligned(void **state) {
    cleat_device_facts facts = {.work_group = 256, .vector_width = 4};
    cleat_binder binder;
    (void)state;
    begin(&binder, &facts);
    cleat_launch_groups(&binder, 1);
    assert_null(strstr(binder.launches[0].options, "ALIGNED"));
    cleat_binder_clear(&binder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_for_matrix_units),      cmocka_unit_test(test_work_group_of_a_launch),
        cmocka_unit_test(test_options_that_are_too_long),     cmocka_unit_test(test_alignment_of_vectors),
        cmocka_unit_test(test_plain_kernels_are_not_aligned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

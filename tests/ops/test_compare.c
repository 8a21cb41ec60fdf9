/* The comparator: wrong values fail, and the storage types round as IEEE 754 prescribes. Which shapes run on
 * which devices. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "cover.h"

static void test_close(void **state) {
    (void)state;
    assert_true(compare_close(1, 1, 0));
    assert_true(compare_close(1.5, 1, 0.5));
    assert_true(compare_close(0.5, 1, 0.5));
    assert_false(compare_close(1.5000001, 1, 0.5));
    assert_false(compare_close(0.4999999, 1, 0.5));
    assert_false(compare_close(-1, 1, 0.5));
}

static void test_not_finite(void **state) {
    (void)state;
    assert_false(compare_close(NAN, 1, 1));
    assert_false(compare_close(1, NAN, 1));
    assert_false(compare_close(NAN, NAN, 1));
    assert_false(compare_close(INFINITY, 1, 1e300));
    assert_false(compare_close(1, INFINITY, INFINITY));
    assert_false(compare_close(-INFINITY, INFINITY, INFINITY));
    assert_true(compare_close(INFINITY, INFINITY, 0));
    assert_false(compare_close(1, 2, NAN));
    assert_false(compare_close(1, 2, INFINITY)); /* an infinite bound is rejected */
    assert_false(compare_close(1, 2, -1));
}

static void test_arrays(void **state) {
    (void)state;
    const compare_tolerance exact = {0};
    double want[5] = {1, 2, 3, 4, 5}, got[5] = {1, 2, 3, 4, 5};
    int64_t failures = -1;
    assert_int_equal(compare_arrays(got, want, 5, exact, CLEAT_F32, CLEAT_F32, &failures), -1);
    assert_int_equal(failures, 0);
    got[2] = NAN;
    got[4] = 5 * (1 + 0x1.1p-24);
    assert_int_equal(compare_arrays(got, want, 5, exact, CLEAT_F32, CLEAT_F32, &failures), 2);
    assert_int_equal(failures, 2);
    got[2] = 3;
    assert_int_equal(compare_arrays(got, want, 5, exact, CLEAT_F32, CLEAT_F32, NULL), 4);
    assert_int_equal(compare_arrays(got, want, 5, exact, CLEAT_BF16, CLEAT_BF16, NULL), -1);
}

static void test_bound(void **state) {
    (void)state;
    const compare_tolerance t = {.scale = 2, .length = 16, .f32_units = 3, .storage_units = 1};
    assert_true(fabs(compare_bound(t, CLEAT_F32, CLEAT_F32, 0) / (2 * 13 * 0x1p-24) - 1) < 1e-12);
    assert_true(
        fabs(compare_bound(t, CLEAT_F16, CLEAT_F16, 8) / (8 * 0x1p-11 + 2 * (0x1p-11 + 12 * 0x1p-24) + 0x1p-25) - 1) <
        1e-12);
    const compare_tolerance bad = {.scale = NAN, .length = 1, .f32_units = 1};
    assert_false(compare_close(1, 1 + 1e-12, compare_bound(bad, CLEAT_F32, CLEAT_F32, 1)));
}

static void check_round(cleat_dtype dtype, double x, double want) {
    char bytes[4];
    double back;
    assert_true(compare_round(dtype, x) == want);
    compare_encode(dtype, &x, 1, bytes);
    compare_decode(dtype, bytes, 1, &back);
    assert_true(back == want);
}

static void test_rounding(void **state) {
    (void)state;
    check_round(CLEAT_F16, 1 + 0x1p-11, 1); /* a tie goes to even */
    check_round(CLEAT_F16, 1 + 3 * 0x1p-11, 1 + 0x1p-9);
    check_round(CLEAT_F16, 1 + 0x1.1p-11, 1 + 0x1p-10);
    check_round(CLEAT_F16, -65519, -65504);
    check_round(CLEAT_F16, 65520, INFINITY);
    check_round(CLEAT_F16, 0x1p-24, 0x1p-24);
    check_round(CLEAT_F16, 0x1p-25, 0);
    check_round(CLEAT_F16, 0x1.8p-24, 0x1p-23);
    check_round(CLEAT_F16, 0x1.ffcp-15,
                0x1p-14); /* a tie between the largest subnormal and the smallest normal number */
    check_round(CLEAT_BF16, 1 + 0x1p-8, 1);
    check_round(CLEAT_BF16, 1 + 3 * 0x1p-8, 1 + 0x1p-6);
    check_round(CLEAT_BF16, -0x1.ffp127, -INFINITY);
    check_round(CLEAT_BF16, 3.14159265358979, 3.140625);
    check_round(CLEAT_F32, 1 + 0x1p-24, 1);
    check_round(CLEAT_I32, -7, -7);
}

static void test_all_halves(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 65536; ++bits) {
        uint16_t half = (uint16_t)bits, back;
        double value;
        compare_decode(CLEAT_F16, &half, 1, &value);
        if (isnan(value)) continue;
        compare_encode(CLEAT_F16, &value, 1, &back);
        assert_int_equal(back, half);
        compare_decode(CLEAT_BF16, &half, 1, &value);
        if (isnan(value)) continue;
        compare_encode(CLEAT_BF16, &value, 1, &back);
        assert_int_equal(back, half);
    }
}

static void test_shapes(void **state) {
    (void)state;
    assert_true(cover_shape(&op_shape_cpu, CLEAT_DEVICE_CPU, ""));
    assert_true(cover_shape(&op_shape_gpu, CLEAT_DEVICE_CPU, ""));
    assert_true(cover_shape(&op_shape_gpu64, CLEAT_DEVICE_CPU, ""));
    assert_false(cover_shape(&op_shape_cpu, CLEAT_DEVICE_GPU, ""));
    assert_true(cover_shape(&op_shape_gpu, CLEAT_DEVICE_GPU, ""));
    assert_true(cover_shape(&op_shape_gpu64, CLEAT_DEVICE_GPU, ""));
    assert_true(cover_shape(&op_shape_cpu, CLEAT_DEVICE_GPU, "cpu"));
    assert_false(cover_shape(&op_shape_gpu64, CLEAT_DEVICE_CPU, "gpu"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_close),  cmocka_unit_test(test_not_finite), cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_bound),  cmocka_unit_test(test_rounding),   cmocka_unit_test(test_all_halves),
        cmocka_unit_test(test_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Weights in blocks on the host: values of the reference implementations, sizes, and what is refused. */
/* ctest: quick */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "block_numbers.h"
#include "core/blocks.h"

enum { COUNT = 64 * 300, STEP = 131, NUMBERS = (COUNT + STEP - 1) / STEP };

/* The values of make_block_numbers.py. */
static void fill(float *values) {
    for (int i = 0; i < COUNT; ++i) {
        const double x = i;
        values[i] = (float)(sin(0.37 * x) * (1 + i / 64 % 7) * 0.05 + 0.001 * cos(1.7 * x));
    }
}

/* bitsandbytes sums the mean of the scales, 0.2, in f32: its roundings are in all values. */
static void expect(cleat_dtype dtype, const float *numbers, double allowed) {
    float *values = calloc(2 * COUNT, sizeof *values), *back = values + COUNT;
    void *bytes = calloc((size_t)cleat_block_bytes(dtype, COUNT), 1);
    fill(values);
    assert_int_equal(cleat_blocks_quantise(dtype, values, COUNT, bytes, NULL), CLEAT_OK);
    cleat_blocks_values(dtype, bytes, COUNT, back);
    for (int i = 0; i < NUMBERS; ++i) {
        const double got = back[i * STEP], want = numbers[i];
        if (!(fabs(got - want) <= allowed))
            fail_msg("%s: value %d is %.9g, not %.9g", cleat_dtype_name(dtype), i * STEP, got, want);
    }
    free(bytes);
    free(values);
}

static void q8_is_as_in_gguf(void **state) {
    (void)state;
    assert_int_equal(sizeof q8_numbers / sizeof *q8_numbers, NUMBERS);
    expect(CLEAT_Q8, q8_numbers, 0);
}

static void nf4_is_as_in_bitsandbytes(void **state) {
    (void)state;
    assert_int_equal(sizeof nf4_numbers / sizeof *nf4_numbers, NUMBERS);
    expect(CLEAT_NF4, nf4_numbers, 0x1p-24);
}

static void q4_is_as_in_gguf(void **state) {
    (void)state;
    assert_int_equal(sizeof q4_numbers / sizeof *q4_numbers, NUMBERS);
    expect(CLEAT_Q4, q4_numbers, 0);
}

static void sizes_are_exact(void **state) {
    (void)state;
    assert_int_equal(cleat_block_bytes(CLEAT_Q8, 96), 3 * 34);
    assert_int_equal(cleat_block_bytes(CLEAT_NF4, 64), 32 + 4 + 2 * 4);            /* a scale, padded */
    assert_int_equal(cleat_block_bytes(CLEAT_NF4, 16384), 8192 + 256 + 2 * 4);     /* one scale of scales */
    assert_int_equal(cleat_block_bytes(CLEAT_NF4, 16448), 8224 + 257 + 3 + 3 * 4); /* two */
    assert_int_equal(cleat_block_bytes(CLEAT_Q4, 96), 3 * 20);
    assert_int_equal(cleat_block_bytes(CLEAT_HALF, 96), 192);
    assert_int_equal(cleat_block_elements(CLEAT_F16), 0);
}

static void constant_weights_are_exact(void **state) {
    (void)state;
    static const cleat_dtype formats[] = {CLEAT_Q8, CLEAT_NF4, CLEAT_Q4, CLEAT_HALF};
    for (int f = 0; f < 4; ++f)
        for (int zero = 0; zero < 2; ++zero) {
            float values[128], back[128];
            unsigned char bytes[256];
            for (int i = 0; i < 128; ++i) values[i] = zero ? 0.0f : 0.5f;
            assert_int_equal(cleat_blocks_quantise(formats[f], values, 128, bytes, NULL), CLEAT_OK);
            cleat_blocks_values(formats[f], bytes, 128, back);
            for (int i = 0; i < 128; ++i) assert_true(fabsf(back[i] - values[i]) < 1e-4f);
        }
}

static void what_has_no_blocks_is_refused(void **state) {
    (void)state;
    static const float bad[] = {INFINITY, NAN, -1e7f};
    for (int i = 0; i < 3; ++i)
        for (cleat_dtype dtype = CLEAT_Q8; dtype <= CLEAT_HALF; ++dtype) {
            float values[64] = {0};
            unsigned char bytes[128];
            cleat_error error = {0};
            values[63] = bad[i];
            const cleat_status status = cleat_blocks_quantise(dtype, values, 64, bytes, &error);
            assert_int_equal(status, i == 2 && dtype == CLEAT_NF4 ? CLEAT_OK : CLEAT_ERR_ARGUMENT);
            if (status) assert_non_null(strstr(error.text, "frozen_weights"));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(q8_is_as_in_gguf),           cmocka_unit_test(nf4_is_as_in_bitsandbytes),
        cmocka_unit_test(q4_is_as_in_gguf),           cmocka_unit_test(sizes_are_exact),
        cmocka_unit_test(constant_weights_are_exact), cmocka_unit_test(what_has_no_blocks_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

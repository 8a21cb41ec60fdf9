/* Resampling of learned positions: equal to PyTorch's bicubic interpolation with antialias=True (timm's
 * resample_abs_pos_embed); the class token's row; tables that are not square. */
/* ctest: quick */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "weights/position_table.h"

enum { MOST = 26 };

static void assert_resampled(int64_t from, const float *table, int64_t to, const double *expected) {
    for (int64_t prefix = 0; prefix <= 1; ++prefix)
        for (int64_t width = 1; width <= 2; ++width) {
            float in[2 * MOST], out[2 * MOST];
            for (int64_t row = 0; row < prefix + from * from; ++row)
                for (int64_t c = 0; c < width; ++c)
                    in[row * width + c] = row < prefix ? 99.0f + (float)c : (float)(c + 1) * table[row - prefix];
            assert_int_equal(cleat_positions_resample(in, from, out, to, prefix, width, NULL), 0);
            for (int64_t row = 0; row < prefix + to * to; ++row)
                for (int64_t c = 0; c < width; ++c) {
                    const double wanted = row < prefix ? 99.0 + (double)c : (double)(c + 1) * expected[row - prefix];
                    assert_true(fabs(out[row * width + c] - wanted) <= 2e-6 * fabs(wanted));
                }
        }
}

static void values_are_those_of_pytorch(void **state) {
    static const float four[] = {0.75f, 2.5f, 1.5f, 0.5f},
                       nine[] = {0.75f, 2.5f, 1.5f, 0.5f, 2.25f, 1.25f, 0.25f, 2.0f, 1.0f},
                       sixteen[] = {0.75f, 2.5f, 1.5f,  0.5f,  2.25f, 1.25f, 0.25f, 2.0f,
                                    1.0f,  0.0f, 1.75f, 0.75f, 2.5f,  1.5f,  0.5f,  2.25f};
    static const double wider[] = {0.57362413, 1.6661184, 2.7586133, 1.1003292, 1.3125,
                                   1.5246711,  1.6270343, 0.9588815, 0.29072854},
                        narrower[] = {1.5229579, 1.727342,  0.91630596, 1.3269457, 0.71228909,
                                      1.3093137, 1.8199687, 0.90891725, 1.5728041},
                        much_wider[] = {0.63679248,  1.4274501,  2.518868,  1.9479719, 1.4433962,
                                        0.54143202,  1.3320897,  2.4235077, 1.8526117, 1.3480357,
                                        0.36792457,  1.1585821,  2.25,      1.6791042, 1.1745284,
                                        0.19441709,  0.98507464, 2.0764925, 1.5055968, 1.0010208,
                                        0.099056669, 0.88971418, 1.981132,  1.4102364, 0.90566033};
    (void)state;
    assert_resampled(2, four, 3, wider);
    assert_resampled(4, sixteen, 3, narrower);
    assert_resampled(3, nine, 5, much_wider);
    double same[9];
    for (int i = 0; i < 9; ++i) same[i] = nine[i];
    assert_resampled(3, nine, 3, same);
}

static void squares_are_found_behind_a_token_or_none(void **state) {
    int64_t prefix = -1, from = 0, to = 0;
    (void)state;
    assert_true(cleat_positions_grids(197, 577, &prefix, &from, &to));
    assert_true(prefix == 1 && from == 14 && to == 24);
    assert_true(cleat_positions_grids(196, 49, &prefix, &from, &to));
    assert_true(prefix == 0 && from == 14 && to == 7);
    assert_false(cleat_positions_grids(197, 196, &prefix, &from, &to)); /* with and without a class token */
    assert_false(cleat_positions_grids(198, 197, &prefix, &from, &to));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_pytorch),
        cmocka_unit_test(squares_are_found_behind_a_token_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

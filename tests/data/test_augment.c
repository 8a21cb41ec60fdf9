/* Image augmentation: the crop of a sample against a plain reference implementation, and the range of the
 * random choices. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "data/image/augment.h"
#include "drawn.h"

enum { MOST = 64 };

/* --- the reference -------------------------------------------------------------------------------------------- */

static double pixel_at(const cleat_image *p, int64_t y, int64_t x, int64_t c) {
    while (y < 0 || y >= p->height) y = y < 0 ? -1 - y : 2 * p->height - 1 - y;
    while (x < 0 || x >= p->width) x = x < 0 ? -1 - x : 2 * p->width - 1 - x;
    return p->pixels[(y * p->width + x) * p->channels + c] / 255.0;
}

static double overlap(double a0, double a1, double b0, double b1) {
    double length = fmin(a1, b1) - fmax(a0, b0);
    return length > 0 ? length : 0;
}

/* The mean over a rectangle; a side shorter than a pixel is extended to one pixel. */
static double mean_of(const cleat_image *p, double y, double x, double height, double width, int64_t c) {
    double tall = fmax(height, 1), wide = fmax(width, 1), sum = 0;
    double y0 = y - tall / 2, y1 = y + tall / 2, x0 = x - wide / 2, x1 = x + wide / 2;
    for (int64_t i = (int64_t)floor(y0); (double)i < y1; ++i)
        for (int64_t j = (int64_t)floor(x0); (double)j < x1; ++j)
            sum += pixel_at(p, i, j, c) * overlap(y0, y1, (double)i, (double)i + 1) *
                   overlap(x0, x1, (double)j, (double)j + 1);
    return sum / (tall * wide);
}

/* The row and column in the crop that correspond to pixel (i, j) of the sample. */
static void place_of(const cleat_augment_params *params, int64_t size, int64_t i, int64_t j, int64_t *row,
                     int64_t *column) {
    if (params->flip_y) i = size - 1 - i;
    if (params->flip_x) j = size - 1 - j;
    *row = params->transpose ? j : i;
    *column = params->transpose ? i : j;
}

static void check_against_reference(const cleat_image *p, const cleat_augment_params *params, int64_t size) {
    static float values[MOST * MOST * 4];
    assert_int_equal(cleat_augment_apply(p, params, NULL, size, values, NULL), CLEAT_OK);
    double tall = params->height / (double)size, wide = params->width / (double)size;
    for (int64_t i = 0; i < size; ++i)
        for (int64_t j = 0; j < size; ++j)
            for (int64_t c = 0; c < p->channels; ++c) {
                int64_t row, column;
                place_of(params, size, i, j, &row, &column);
                double expected = mean_of(p, params->top + ((double)row + 0.5) * tall,
                                          params->left + ((double)column + 0.5) * wide, tall, wide, c);
                double got = values[(i * size + j) * p->channels + c];
                if (!(fabs(got - expected) < 2e-5))
                    fail_msg("(%d, %d) channel %d of a view %g %g %g %g at size %d: %g, not %g", (int)i, (int)j, (int)c,
                             params->top, params->left, params->height, params->width, (int)size, got, expected);
            }
}

static cleat_augment_params plain(double top, double left, double height, double width) {
    return (cleat_augment_params){
        .top = top, .left = left, .height = height, .width = width, .brightness = 1, .contrast = 1, .saturation = 1};
}

/* --- resampling ----------------------------------------------------------------------------------------------- */

static void crops_are_scaled_turned_and_reflected(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 7, 16, 33};
    for (int64_t channels = 1; channels <= 4; ++channels) {
        cleat_image p = drawn_image(20, 28, channels, 1);
        const cleat_augment_params crops[] = {
            plain(0, 0, 20, 28),        plain(3, 5, 7, 7),      plain(2.25, 4.5, 14.5, 9.75), plain(-6, -9.5, 20, 28),
            plain(11, 17.25, 20, 28.5), plain(4, 4, 0.5, 0.25), plain(-25, -60, 80, 150),     plain(0, 0, 16, 16),
        };
        for (size_t v = 0; v < sizeof crops / sizeof *crops; ++v)
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
                cleat_augment_params params = crops[v];
                unsigned way = (unsigned)(v + s) % 8;
                params.flip_x = way & 1;
                params.flip_y = way & 2;
                params.transpose = way & 4;
                check_against_reference(&p, &params, sizes[s]);
            }
        cleat_image_free(&p);
    }
}

static void an_identity_crop_is_the_image(void **state) {
    (void)state;
    static float values[16 * 16 * 3];
    cleat_image p = drawn_image(16, 16, 3, 2);
    cleat_augment_params params = cleat_augment_identity(&p, true), mirrored = params;
    assert_true(cleat_augment_is_identity(&p, &params, 16));
    assert_false(cleat_augment_is_identity(&p, &params, 15));
    mirrored.flip_x = true;
    assert_false(cleat_augment_is_identity(&p, &mirrored, 16));
    assert_int_equal(cleat_augment_apply(&p, &params, NULL, 16, values, NULL), CLEAT_OK);
    for (int i = 0; i < 16 * 16 * 3; ++i) assert_true(values[i] == (float)p.pixels[i] * (1.0f / 255));
    for (unsigned way = 1; way < 8; ++way) { /* a square keeps its exact values in every orientation */
        params = cleat_augment_identity(&p, true);
        params.flip_x = way & 1;
        params.flip_y = way & 2;
        params.transpose = way & 4;
        assert_int_equal(cleat_augment_apply(&p, &params, NULL, 16, values, NULL), CLEAT_OK);
        for (int64_t i = 0; i < 16; ++i)
            for (int64_t j = 0; j < 16; ++j) {
                int64_t row, column;
                place_of(&params, 16, i, j, &row, &column);
                for (int c = 0; c < 3; ++c)
                    assert_true(fabsf(values[(i * 16 + j) * 3 + c] -
                                      (float)p.pixels[(row * 16 + column) * 3 + c] / 255) < 1e-6f);
            }
    }
    cleat_image_free(&p);
}

static void labels_follow_the_image(void **state) {
    (void)state;
    cleat_image p = drawn_image(12, 12, 1, 0);
    float values[12 * 12];
    int32_t labels[12 * 12];
    for (unsigned way = 0; way < 8; ++way) {
        cleat_augment_params params = cleat_augment_identity(&p, true);
        params.flip_x = way & 1;
        params.flip_y = way & 2;
        params.transpose = way & 4;
        params.top = 3; /* three rows outside */
        assert_int_equal(cleat_augment_apply(&p, &params, NULL, 12, values, NULL), CLEAT_OK);
        assert_int_equal(cleat_augment_apply_labels(&p, &params, 12, labels, NULL), CLEAT_OK);
        int outside = 0;
        for (int i = 0; i < 12 * 12; ++i) {
            if (labels[i] >= 0) assert_int_equal(labels[i], (int)(values[i] * 255 + 0.5f));
            outside += labels[i] == -1;
        }
        assert_int_equal(outside, 3 * 12);
    }
    cleat_augment_params half = plain(0, 0, 12, 12);
    int32_t small[36];
    assert_int_equal(cleat_augment_apply_labels(&p, &half, 6, small, NULL), CLEAT_OK);
    for (int i = 0; i < 36; ++i) assert_int_equal(small[i], p.pixels[(2 * (i / 6) + 1) * 12 + 2 * (i % 6) + 1]);
    cleat_image_free(&p);
}

static void colours_change(void **state) {
    (void)state;
    cleat_image p = drawn_image(8, 8, 3, 0);
    float before[8 * 8 * 3], after[8 * 8 * 3];
    cleat_augment_params params = cleat_augment_identity(&p, true);
    assert_int_equal(cleat_augment_apply(&p, &params, NULL, 8, before, NULL), CLEAT_OK);
    params.brightness = 1.25f;
    params.contrast = 0.5f;
    params.saturation = 0.25f;
    double mean = 0;
    for (int i = 0; i < 64; ++i)
        mean += (0.299 * before[3 * i] + 0.587 * before[3 * i + 1] + 0.114 * before[3 * i + 2]) * 1.25 / 64;
    assert_int_equal(cleat_augment_apply(&p, &params, NULL, 8, after, NULL), CLEAT_OK);
    for (int i = 0; i < 64; ++i) {
        double v[3], grey = 0;
        static const double weights[3] = {0.299, 0.587, 0.114};
        for (int c = 0; c < 3; ++c) {
            v[c] = mean + 0.5 * (1.25 * before[3 * i + c] - mean);
            grey += weights[c] * v[c];
        }
        for (int c = 0; c < 3; ++c)
            assert_true(fabs(after[3 * i + c] - fmin(1, fmax(0, grey + 0.25 * (v[c] - grey)))) < 1e-5);
    }
    params = cleat_augment_identity(&p, true);
    params.contrast = 2;
    params.brightness = 2;
    assert_int_equal(cleat_augment_apply(&p, &params, NULL, 8, after, NULL), CLEAT_OK);
    int clamped = 0;
    for (int i = 0; i < 8 * 8 * 3; ++i) {
        assert_true(after[i] >= 0 && after[i] <= 1);
        clamped += after[i] == 1 || after[i] == 0;
    }
    assert_true(clamped > 10);
    cleat_image_free(&p);
}

/* Sizes of several pixel blocks and a partial one; with and without colours; an identity, which is only
 * copied. */
static void standardizing_at_once_gives_the_same_bits(void **state) {
    (void)state;
    static float apart[12 * 12 * 4], at_once[12 * 12 * 4];
    for (int64_t channels = 1; channels <= 4; ++channels)
        for (int way = 0; way < 4; ++way) {
            const int64_t size = way == 3 ? 9 : 12;
            cleat_image p = drawn_image(9, 9, channels, 0);
            cleat_image_preprocessor fitted = {.channels = channels};
            cleat_augment_params params = cleat_augment_identity(&p, true);
            for (int64_t c = 0; c < channels; ++c) {
                fitted.mean[c] = 0.3 + 0.1 * (double)c;
                fitted.std[c] = 0.2 + 0.07 * (double)c;
            }
            params.transpose = way == 1;
            if (way < 2) params.brightness = 1.3f, params.contrast = 1.2f, params.saturation = 0.6f;
            assert_int_equal(cleat_augment_apply(&p, &params, NULL, size, apart, NULL), CLEAT_OK);
            for (int64_t i = 0; i < size * size * channels; ++i) {
                const int64_t c = i % channels;
                apart[i] = (apart[i] - (float)fitted.mean[c]) * (float)(1 / fitted.std[c]);
            }
            assert_int_equal(cleat_augment_apply(&p, &params, &fitted, size, at_once, NULL), CLEAT_OK);
            assert_memory_equal(apart, at_once, (size_t)(size * size * channels) * sizeof *apart);
            cleat_image_free(&p);
        }
}

/* --- chance --------------------------------------------------------------------------------------------------- */

static void the_whole_is_centred(void **state) {
    (void)state;
    cleat_image p = {.height = 30, .width = 51, .channels = 1};
    cleat_augment_params params = cleat_augment_identity(&p, true);
    assert_true(params.top == 0 && params.left == 10 && params.height == 30 && params.width == 30);
    params = cleat_augment_identity(&p, false);
    assert_true(params.top == 0 && params.left == 0 && params.height == 30 && params.width == 51);
}

static void crops_keep_to_their_limits(void **state) {
    (void)state;
    cleat_augment augment = {.crop_min = 0.3};
    cleat_image p = {.height = 40, .width = 60, .channels = 3};
    assert_true(cleat_augment_enabled(&augment));
    for (int square = 0; square < 2; ++square) {
        double least = 1, most = 0, low = 10, high = 0;
        for (uint32_t i = 0; i < 2000; ++i) {
            cleat_rng_key rng_key = {.seed = 5, .epoch = i % 7};
            cleat_augment_params params = cleat_augment_random(&p, square, 32, &augment, &rng_key, i);
            double area = params.height * params.width / (40.0 * 60);
            double ratio = params.width / params.height / (square ? 1 : 1.5);
            assert_true(params.top >= 0 && params.left >= 0);
            assert_true(params.top + params.height < 40 + 1e-9 && params.left + params.width < 60 + 1e-9);
            assert_true(area > 0.3 - 1e-9 && area < 1 + 1e-9 && ratio > 0.75 - 1e-9 && ratio < 4.0 / 3 + 1e-9);
            assert_true(!params.flip_x && !params.flip_y && !params.transpose && params.contrast == 1);
            least = fmin(least, area);
            most = fmax(most, area);
            low = fmin(low, ratio);
            high = fmax(high, ratio);
        }
        assert_true(least < 0.35 && most > (square ? 0.8 : 0.9) && low < 0.8 && high > 1.25);
    }
}

static void shifts_flips_and_turns_are_even(void **state) {
    (void)state;
    cleat_augment augment = {.crop_min = 1, .shift = 2, .flip = true, .flip_vertical = true, .turn = true};
    cleat_image p = {.height = 32, .width = 32, .channels = 3};
    int places[25] = {0}, ways[8] = {0};
    for (uint32_t i = 0; i < 4000; ++i) {
        cleat_rng_key rng_key = {.seed = 9, .epoch = 3};
        cleat_augment_params params =
            /* a pixel of the sample covers two of the image */
            cleat_augment_random(&p, true, 16, &augment, &rng_key, i);
        double down = params.top / 2, right = params.left / 2;
        assert_true(down == floor(down) && right == floor(right) && fabs(down) <= 2 && fabs(right) <= 2);
        ++places[(int)(down + 2) * 5 + (int)(right + 2)];
        ++ways[params.flip_x + 2 * params.flip_y + 4 * params.transpose];
    }
    for (int i = 0; i < 25; ++i) assert_in_range(places[i], 100, 220);
    for (int i = 0; i < 8; ++i) assert_in_range(ways[i], 400, 600);
}

/* Without mirroring, the only orientations are quarter, half and three-quarter turns. */
static void turns_do_not_mirror(void **state) {
    (void)state;
    cleat_augment augment = {.crop_min = 1, .turn = true};
    cleat_image p = {.height = 8, .width = 8, .channels = 1};
    int seen[8] = {0};
    for (uint32_t i = 0; i < 400; ++i) {
        cleat_rng_key rng_key = {.seed = 1};
        cleat_augment_params params = cleat_augment_random(&p, true, 8, &augment, &rng_key, i);
        ++seen[params.flip_x + 2 * params.flip_y + 4 * params.transpose];
    }
    for (int way = 0; way < 8; ++way) {
        bool turn = way == 0 || way == 3 || way == 5 || way == 6;
        if (turn)
            assert_in_range(seen[way], 60, 140);
        else
            assert_int_equal(seen[way], 0);
    }
}

static bool same(const cleat_augment_params *a, const cleat_augment_params *b) {
    return a->top == b->top && a->left == b->left && a->height == b->height && a->width == b->width &&
           a->flip_x == b->flip_x && a->brightness == b->brightness && a->contrast == b->contrast &&
           a->saturation == b->saturation;
}

static void the_same_key_gives_the_same_crop(void **state) {
    (void)state;
    cleat_augment augment = {
        .crop_min = 0.5, .shift = 3, .flip = true, .brightness = 0.3, .contrast = 0.2, .saturation = 0.1};
    cleat_image p = {.height = 30, .width = 40, .channels = 3};
    cleat_rng_key rng_key = {.seed = 4, .epoch = 2}, epoch = {.seed = 4, .epoch = 3}, seed = {.seed = 5, .epoch = 2};
    for (size_t i = 0; i < 200; ++i) {
        cleat_augment_params params = cleat_augment_random(&p, true, 16, &augment, &rng_key, i);
        cleat_augment_params again = cleat_augment_random(&p, true, 16, &augment, &rng_key, i);
        cleat_augment_params other = cleat_augment_random(&p, true, 16, &augment, &rng_key, i + 1);
        cleat_augment_params later = cleat_augment_random(&p, true, 16, &augment, &epoch, i);
        cleat_augment_params seeded = cleat_augment_random(&p, true, 16, &augment, &seed, i);
        assert_true(same(&params, &again));
        assert_false(same(&params, &other) || same(&params, &later) || same(&params, &seeded));
        assert_true(params.brightness >= 0.7f && params.brightness <= 1.3f);
        assert_true(params.contrast >= 0.8f && params.contrast <= 1.2f);
        assert_true(params.saturation >= 0.9f && params.saturation <= 1.1f);
    }
    augment = (cleat_augment){.crop_min = 1};
    assert_false(cleat_augment_enabled(&augment));
}

static void memory_that_runs_out_is_an_error(void **state) {
    (void)state;
    cleat_image p = drawn_image(9, 9, 3, 0);
    cleat_augment_params params = plain(0, 0, 9, 9);
    float values[4 * 4 * 3];
    long n = 1;
    for (cleat_status status = CLEAT_ERR_MEMORY; status; ++n) {
        cleat_fail_allocation(n);
        status = cleat_augment_apply(&p, &params, NULL, 4, values, NULL);
        cleat_fail_allocation(0);
        assert_true(!status || status == CLEAT_ERR_MEMORY);
    }
    assert_true(n > 5);
    cleat_image_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crops_are_scaled_turned_and_reflected),
        cmocka_unit_test(an_identity_crop_is_the_image),
        cmocka_unit_test(labels_follow_the_image),
        cmocka_unit_test(colours_change),
        cmocka_unit_test(standardizing_at_once_gives_the_same_bits),
        cmocka_unit_test(the_whole_is_centred),
        cmocka_unit_test(crops_keep_to_their_limits),
        cmocka_unit_test(shifts_flips_and_turns_are_even),
        cmocka_unit_test(turns_do_not_mirror),
        cmocka_unit_test(the_same_key_gives_the_same_crop),
        cmocka_unit_test(memory_that_runs_out_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

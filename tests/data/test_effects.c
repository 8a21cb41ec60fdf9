/* Rotation, deformation, intensity, RandAugment and mixing of samples against scipy and Pillow, and by their
 * statistics. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "data/image/augment.h"
#include "drawn.h"
#include "files.h"
#include "image_sets.h"

enum { S = 32, SHOWN = 12 };

/* --- against scipy and Pillow (make_effect_numbers.py) --------------------------------------------------------- */

typedef struct effect_row {
    const char *name;
    cleat_augment augment;
    uint32_t stream; /* its first numbers make the choice */
    double tolerance;
    double values[SHOWN]; /* every 85th of the first channel */
} effect_row;

#define RAND(stream) {.randaugment_count = 1, .randaugment_magnitude = 20}, stream
static const double CLOSE = 2e-5, BYTE = 1.5 / 255; /* Pillow rounds to bytes */

static float image_value(int i, int j, int c) {
    const int grey = (5 * (c == 1 ? j : i) + 3 * (c == 1 ? i : j) + i * j / 7) % 200 + 20;
    return (float)(c == 2 ? 255 - grey : grey) / 255;
}

static void effects_are_those_of_scipy_and_pillow(void **state) {
    (void)state;
    const effect_row rows[] = {
        {"rotate",
         {.rotate = 30},
         0,
         CLOSE,
         {0.2630418, 0.5691896, 0.3530724, 0.1579018, 0.7256760, 0.4707774, 0.3860497, 0.7384415, 0.5572319, 0.5178387,
          0.1610406, 0.6095078}},
        {"blur",
         {.blur = 2},
         1,
         CLOSE,
         {0.0890987, 0.3872477, 0.3203439, 0.6955680, 0.6203189, 0.5030481, 0.1916387, 0.5858812, 0.6776221, 0.4587318,
          0.2758663, 0.5839082}},
        {"gamma",
         {.gamma = 1},
         1,
         CLOSE,
         {0.0978614, 0.4215240, 0.3549075, 0.7238950, 0.6459396, 0.5329616, 0.2217892, 0.8557389, 0.7017075, 0.4909812,
          0.3071666, 0.8557389}},
        {"shear x",
         RAND(4),
         CLOSE,
         {0.1031373, 0.3525490, 0.2890196, 0.6752941, 0.6019608, 0.4921569, 0.1901961, 0.4627451, 0.7043137, 0.4941176,
          0.3321569, 0.1329412}},
        {"shear y",
         RAND(5),
         CLOSE,
         {0.1196078, 0.4227451, 0.2917647, 0.8152941, 0.6478431, 0.4713725, 0.2980392, 0.3160784, 0.6392157, 0.5541176,
          0.2901961, 0.8031373}},
        {"translate x",
         RAND(28),
         CLOSE,
         {0.1921687, 0.5098158, 0.4614537, 0.5659973, 0.7869439, 0.6876014, 0.8418103, 0.2719152, 0.1215923, 0.3424560,
          0.5320538, 0.3281322}},
        {"translate y",
         RAND(11),
         CLOSE,
         {0.2679936, 0.6915349, 0.5647296, 0.2732421, 0.1346721, 0.7412002, 0.5438303, 0.3542800, 0.1255139, 0.7215331,
          0.3163083, 0.7333096}},
        {"rotate by 20",
         RAND(16),
         CLOSE,
         {0.2280141, 0.5318329, 0.3449272, 0.1116207, 0.7074712, 0.4736596, 0.3556248, 0.8172105, 0.5766514, 0.5169788,
          0.1847093, 0.6471175}},
        {"brightness",
         RAND(6),
         BYTE,
         {0.1254902, 0.6196078, 0.5137255, 1.0000000, 0.9882353, 0.8000000, 0.3058824, 1.0000000, 1.0000000, 0.7333333,
          0.4392157, 1.0000000}},
        {"contrast",
         RAND(60),
         BYTE,
         {0.3058824, 0.4313725, 0.4039216, 0.5568627, 0.5254902, 0.4784314, 0.3529412, 0.6117647, 0.5490196, 0.4588235,
          0.3843137, 0.6117647}},
        {"saturation",
         RAND(27),
         BYTE,
         {0.0196078, 0.3176471, 0.2823529, 0.9372549, 0.6078431, 0.5137255, 0.1058824, 0.8862745, 0.7372549, 0.4352941,
          0.2627451, 0.9490196}},
        {"posterize",
         RAND(40),
         BYTE,
         {0.0627451, 0.3764706, 0.3137255, 0.6901961, 0.5960784, 0.5019608, 0.1882353, 0.8156863, 0.6588235, 0.4392157,
          0.2509804, 0.8156863}},
        {"solarize",
         RAND(8),
         BYTE,
         {0.0784314, 0.6117647, 0.3215686, 0.2980392, 0.3803922, 0.4980392, 0.1921569, 0.1568627, 0.3215686, 0.5411765,
          0.2745098, 0.1568627}},
        {"autocontrast",
         RAND(0),
         BYTE,
         {0.0000000, 0.3960784, 0.3098039, 0.7960784, 0.6901961, 0.5411765, 0.1450980, 0.9764706, 0.7686275, 0.4862745,
          0.2509804, 0.9764706}},
        {"equalize",
         RAND(12),
         BYTE,
         {0.0000000, 0.3882353, 0.2901961, 0.8352941, 0.7294118, 0.5647059, 0.1215686, 0.9843137, 0.8117647, 0.5019608,
          0.2274510, 0.9843137}},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; ++r) {
        const int channels = strcmp(rows[r].name, "saturation") == 0 ? 3 : 1;
        static float values[S * S * 3];
        cleat_random random = cleat_random_stream(1, 2, rows[r].stream);
        for (int k = 0; k < S * S * channels; ++k)
            values[k] = image_value(k / channels / S, k / channels % S, k % channels);
        assert_true(cleat_effects_enabled(&rows[r].augment));
        assert_int_equal(cleat_effects_apply(&rows[r].augment, &random, S, channels, values, NULL), CLEAT_OK);
        for (int k = 0; k < SHOWN; ++k) {
            const double got = (double)values[85 * k * channels];
            if (!(fabs(got - rows[r].values[k]) < rows[r].tolerance))
                fail_msg("%s: value %d is %.7g, not %.7g", rows[r].name, 85 * k, got, rows[r].values[k]);
        }
    }
}

/* --- statistics ------------------------------------------------------------------------------------------------ */

/* Displacements have the asked root mean square, and neighbours at distance d the correlation exp(-d^2 / (4
 * sigma^2)) of smoothed white noise. */
static void deformations_are_as_large_and_smooth_as_asked(void **state) {
    (void)state;
    const cleat_augment augment = {.elastic = 3, .elastic_sigma = 4};
    enum { SIDE = 64, SEEDS = 40, FAR = 4 };
    double squares = 0, products = 0, far = 0, sum = 0;
    int64_t count = 0;
    for (uint32_t seed = 0; seed < SEEDS; ++seed) {
        cleat_random random = cleat_random_stream(seed, 1, 1);
        cleat_warp warp;
        assert_int_equal(cleat_warp_draw(&augment, &random, SIDE, &warp, NULL), CLEAT_OK);
        const float *map = warp.displacements;
        for (int i = 0; i < SIDE; ++i)
            for (int j = 0; j < SIDE - FAR; ++j, ++count) {
                const double d = (double)map[2 * (i * SIDE + j)], e = (double)map[2 * (i * SIDE + j + 1)],
                             f = (double)map[2 * (i * SIDE + j + FAR)];
                sum += d;
                squares += d * d;
                products += d * e;
                far += d * f;
            }
        cleat_free(warp.displacements);
    }
    assert_true(fabs(sqrt(squares / (double)count) - 3) < 0.15 && fabs(sum / (double)count) < 0.3);
    assert_true(fabs(products / squares - exp(-1.0 / 64)) < 0.01 && fabs(far / squares - exp(-16.0 / 64)) < 0.06);
}

/* The deviation is drawn, so the mean over samples of its square is noise^2 / 3. */
static void noise_has_its_size(void **state) {
    (void)state;
    const cleat_augment augment = {.noise = 0.1};
    double sum = 0, squares = 0;
    enum { SAMPLES = 300 };
    for (uint32_t s = 0; s < SAMPLES; ++s) {
        cleat_random random = cleat_random_stream(3, 4, s);
        float values[S * S];
        for (int k = 0; k < S * S; ++k) values[k] = 0.5f;
        assert_int_equal(cleat_effects_apply(&augment, &random, S, 1, values, NULL), CLEAT_OK);
        for (int k = 0; k < S * S; ++k) sum += (double)values[k] - 0.5, squares += pow((double)values[k] - 0.5, 2);
    }
    const double n = (double)SAMPLES * S * S;
    assert_true(fabs(sum / n) < 1e-3 && fabs(squares / n - 0.01 / 3) < 4e-4);
}

/* A mask is turned and deformed as its image is: the mask of a disc, and the disc as an image. */
static void labels_follow_the_image(void **state) {
    (void)state;
    const cleat_augment augment = {
        .crop_min = 0.5, .flip = true, .turn = true, .rotate = 40, .elastic = 1, .elastic_sigma = 5, .noise = 0};
    uint8_t bytes[S * S], mask[S * S];
    const cleat_image image = {.height = S, .width = S, .channels = 1, .pixels = bytes},
                      labelled = {.height = S, .width = S, .channels = 1, .pixels = mask};
    int64_t known = 0, wrong = 0, ones = 0;
    for (int k = 0; k < S * S; ++k) {
        mask[k] = hypot(k / S - 11, k % S - 18) < 9;
        bytes[k] = (uint8_t)(255 * mask[k]);
    }
    for (size_t sample = 0; sample < 100; ++sample) {
        const cleat_rng_key key = {.seed = 1, .epoch = 2};
        const cleat_augment_params params = cleat_augment_random(&image, false, S, &augment, &key, sample);
        float values[S * S];
        int32_t labels[S * S];
        assert_false(cleat_augment_is_identity(&image, &params, S));
        assert_int_equal(cleat_augment_apply(&image, &params, NULL, S, values, NULL), CLEAT_OK);
        assert_int_equal(cleat_augment_apply_labels(&labelled, &params, S, labels, NULL), CLEAT_OK);
        for (int k = 0; k < S * S; ++k) {
            if (labels[k] < 0) continue;
            ++known;
            ones += labels[k];
            wrong += labels[k] != (values[k] > 0.5f);
        }
    }
    /* corners are outside; on the edge of the disc, bilinear and nearest neighbour round differently */
    assert_true(known > 80 * S * S && known < 100 * S * S && ones > 10 * S * S && wrong < known / 100);
}

static void weights_follow_the_beta_distribution(void **state) {
    (void)state;
    static const double alphas[] = {0.2, 1, 4};
    enum { DRAWS = 8000 };
    for (size_t a = 0; a < sizeof alphas / sizeof *alphas; ++a)
        for (int cut = 0; cut < 2; ++cut) {
            const cleat_augment augment = {.mixup = cut ? 0 : alphas[a], .cutmix = cut ? alphas[a] : 0};
            double sum = 0, squares = 0;
            for (uint32_t i = 0; i < DRAWS; ++i) {
                cleat_random random = cleat_random_stream(5, 6, i);
                const cleat_mix mix = cleat_mix_draw(&augment, &random, 64);
                const double weight = (double)mix.weight;
                assert_true(weight >= 0 && weight <= 1 && mix.cut == (cut > 0));
                sum += weight;
                squares += weight * weight;
                if (!cut) continue;
                assert_true(mix.top >= 0 && mix.bottom <= 64 && mix.left >= 0 && mix.right <= 64);
                const double area = (double)((mix.bottom - mix.top) * (mix.right - mix.left)) / (64 * 64);
                assert_true(fabs(1 - area - weight) < 1e-6);
            }
            const double mean = sum / DRAWS, variance = squares / DRAWS - mean * mean;
            if (cut) { /* cut at the borders, so the first image has more */
                assert_true(mean > 0.5 && mean < 0.85);
            } else if (!(fabs(mean - 0.5) < 0.02 && fabs(variance * 4 * (2 * alphas[a] + 1) - 1) < 0.05)) {
                fail_msg("Beta(%g): mean %g, variance %g", alphas[a], mean, variance);
            }
        }
}

/* --- samples of a data set --------------------------------------------------------------------------------------- */

static cleat_status fill(const cleat_dataset *dataset, size_t sample, const cleat_rng_key *key, float *image,
                         int32_t labels[2], float mix[2]) {
    int32_t label;
    void *slots[] = {image, &label, labels, mix};
    return cleat_dataset_fill(dataset, sample, 12, key, slots, NULL);
}

/* A mixed sample is made of two samples as they are augmented without mixing; each partner is a training sample. */
static void mixed_samples_are_made_of_two(void **state) {
    (void)state;
    enum { IMAGES = 8, VALUES = 12 * 12 * 3 };
    test_folder("mixed");
    for (int i = 0; i < IMAGES; ++i) {
        char name[64];
        if (i < 2) test_folder(i ? "mixed/b" : "mixed/a");
        snprintf(name, sizeof name, "mixed/%s/%d.png", i % 2 ? "b" : "a", i);
        const cleat_image drawn = drawn_image(12, 12, 3, i);
        assert_int_equal(cleat_image_write_png(test_path(name), &drawn, NULL), CLEAT_OK);
        cleat_image_free((cleat_image *)&drawn);
    }
    const char *path = images_lasting(test_path("mixed"));
    cleat_image_options options = images_small_options();
    options.augment.flip = true;
    cleat_dataset *alone = images_open_ok(path, &options);
    for (int way = 0; way < 3; ++way) {
        options.augment.mixup = way == 1 ? 0 : 1;
        options.augment.cutmix = way == 0 ? 0 : 1;
        options.partners = way == 2 ? 3 : 0;
        cleat_dataset *mixed = images_open_ok(path, &options);
        bool partners[IMAGES] = {false};
        assert_int_equal(cleat_dataset_fields(mixed), 4);
        for (uint32_t epoch = 0; epoch < 20; ++epoch)
            for (size_t s = 0; s < IMAGES; ++s) {
                const cleat_rng_key key = {.seed = 3, .epoch = epoch};
                float own[VALUES], other[VALUES], image[VALUES], weights[2];
                int32_t labels[2];
                assert_int_equal(fill(mixed, s, &key, image, labels, weights), CLEAT_OK);
                images_fill(alone, s, &key, own);
                assert_int_equal(labels[0], cleat_images_label(alone, s));
                assert_true(fabsf(weights[0] + weights[1] - 1) < 1e-6f);
                int found = -1;
                for (size_t o = 0; o < IMAGES && found < 0; ++o) {
                    images_fill(alone, o, &key, other);
                    double blend = 0, pieces = 0, from_other = 0;
                    for (int k = 0; k < VALUES; ++k) {
                        blend = fmax(blend, fabs((double)(weights[0] * own[k] + weights[1] * other[k] - image[k])));
                        pieces += image[k] != own[k] && image[k] != other[k];
                        from_other += image[k] != own[k];
                    }
                    const bool is_cut = pieces == 0 && from_other <= (double)weights[1] * VALUES + 0.5;
                    if (labels[1] == cleat_images_label(alone, o) &&
                        ((way != 1 && blend < 1e-5) || (way != 0 && is_cut)))
                        found = (int)o;
                }
                if (found < 0) fail_msg("way %d, epoch %u, sample %zu is not made of two", way, epoch, s);
                partners[found] = true;
            }
        int used = 0;
        for (int i = 0; i < IMAGES; ++i) used += partners[i];
        assert_true(way == 2 ? used >= 2 && used <= 4 : used >= 7);
        float image[VALUES], own[VALUES], weights[2];
        int32_t labels[2];
        assert_int_equal(fill(mixed, 1, NULL, image, labels, weights), CLEAT_OK);
        images_fill(alone, 1, NULL, own);
        assert_memory_equal(image, own, sizeof own); /* evaluation does not mix */
        assert_true(weights[0] == 1 && weights[1] == 0 && labels[0] == labels[1]);
        cleat_dataset_destroy(mixed);
    }
    options.augment.mixup = 1;
    images_expect_memory_errors(path, &options);
    cleat_dataset_destroy(alone);
}

static void bad_settings_are_refused(void **state) {
    (void)state;
    const char *path = images_lasting(test_path("mixed"));
    static const struct {
        cleat_augment augment;
        const char *words;
    } rows[] = {{{.crop_min = 1, .rotate = -1}, "below 0"},
                {{.crop_min = 1, .mixup = NAN}, "not a number"},
                {{.crop_min = 1, .randaugment_count = 1, .randaugment_magnitude = 31}, "magnitude above 30"},
                {{.crop_min = 1, .elastic = 1}, "below 0"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_image_options options = images_small_options();
        options.augment = rows[i].augment;
        images_expect_failure(path, &options, rows[i].words);
    }
}

static void memory_that_runs_out_is_an_error(void **state) {
    (void)state;
    const cleat_augment augment = {
        .rotate = 9, .elastic = 1, .elastic_sigma = 2, .blur = 2, .randaugment_count = 9, .randaugment_magnitude = 9};
    float values[S * S] = {0};
    int32_t labels[S * S];
    const uint8_t pixels[S * S] = {0};
    const cleat_image mask = {.height = S, .width = S, .channels = 1, .pixels = (uint8_t *)pixels};
    const cleat_augment_params params = {.height = S, .width = S, .effects = &augment};
    long n = 1;
    for (cleat_status status = CLEAT_ERR_MEMORY; status; ++n) {
        cleat_random random = cleat_random_stream(1, 1, 1);
        cleat_fail_allocation(n);
        status = cleat_effects_apply(&augment, &random, S, 1, values, NULL);
        if (!status) status = cleat_augment_apply_labels(&mask, &params, S, labels, NULL);
        cleat_fail_allocation(0);
        assert_true(!status || status == CLEAT_ERR_MEMORY);
    }
    assert_true(n > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(effects_are_those_of_scipy_and_pillow),
        cmocka_unit_test(deformations_are_as_large_and_smooth_as_asked),
        cmocka_unit_test(noise_has_its_size),
        cmocka_unit_test(labels_follow_the_image),
        cmocka_unit_test(weights_follow_the_beta_distribution),
        cmocka_unit_test(mixed_samples_are_made_of_two),
        cmocka_unit_test(bad_settings_are_refused),
        cmocka_unit_test(memory_that_runs_out_is_an_error),
    };
    return cmocka_run_group_tests(tests, images_set_up, NULL);
}

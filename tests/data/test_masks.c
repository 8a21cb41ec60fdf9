/* Images with masks: pairs, splits, means, identical augmentation of both; mismatched pairs are refused. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cleat/data.h"
#include "core/memory.h"
#include "data/image/masks.h"
#include "drawn.h"
#include "files.h"
#include "platform/files.h"
#include "platform/threads.h"

enum { SAMPLES = 6, SIDE = 8 };

static const char *const names[SAMPLES] = {"ant", "bee", "cat", "dog", "elk", "fox"};

/* 1 inside a figure that no mirroring or rotation maps to itself; its position depends on the sample. */
static int figure(int sample, int y, int x) {
    int top = 1 + sample % 3, left = 1 + sample / 3;
    return (y >= top && y < top + 4 && x == left) || (y == top + 3 && x >= left && x < left + 3);
}

static void write_image(const char *folder, const char *name, int64_t height, int64_t width, int64_t channels,
                        uint8_t *pixels) {
    char path[1024];
    cleat_error error = {0};
    cleat_image image = {.height = height, .width = width, .channels = channels, .pixels = pixels};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (cleat_image_write_png(path, &image, &error) != CLEAT_OK) fail_msg("%s", error.text);
}

/* The image is 250 inside the figure and 50 + sample outside; the mask is 255 and 0. */
static void write_pair(const char *folder, int sample) {
    uint8_t image[SIDE * SIDE], mask[SIDE * SIDE];
    char name[64];
    for (int i = 0; i < SIDE * SIDE; ++i) {
        mask[i] = figure(sample, i / SIDE, i % SIDE) ? 255 : 0;
        image[i] = mask[i] ? 250 : (uint8_t)(50 + sample);
    }
    snprintf(name, sizeof name, "images/%s.png", names[sample]);
    write_image(folder, name, SIDE, SIDE, 1, image);
    snprintf(name, sizeof name, "masks/%s.png", names[sample]);
    write_image(folder, name, SIDE, SIDE, 1, mask);
}

static void write_text(const char *folder, const char *name, const char *text) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    test_write_text(path, text);
}

static void remove_file(const char *folder, const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(remove(path), 0);
}

/* Writes all pairs; "bee" is for validation, "elk" for testing. */
static const char *write_pairs(const char *name) {
    static char kept[8][512];
    static int next;
    char below[128], *folder = kept[next++ % 8];
    snprintf(folder, sizeof kept[0], "%s", test_folder(name));
    snprintf(below, sizeof below, "%s/images", name);
    test_folder(below);
    snprintf(below, sizeof below, "%s/masks", name);
    test_folder(below);
    for (int i = 0; i < SAMPLES; ++i) write_pair(folder, i);
    write_text(folder, "val.txt", "bee\n");
    write_text(folder, "test.txt", "elk");
    return folder;
}

static cleat_image_options small_options(void) {
    cleat_image_options options = cleat_image_defaults();
    options.size = SIDE;
    return options;
}

static cleat_dataset *open_masks(const char *path, const cleat_image_options *options) {
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    if (cleat_masks_open(path, options, &dataset, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return dataset;
}

static void expect_refused(const char *path, const cleat_image_options *options, cleat_status status,
                           const char *wanted) {
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    assert_int_equal(cleat_masks_open(path, options, &dataset, &error), status);
    if (!strstr(error.text, wanted)) fail_msg("'%s' lacks '%s'", error.text, wanted);
    assert_null(dataset);
}

typedef struct sample {
    float image[16 * 16 * 3];
    int32_t mask[16 * 16];
} sample;

static void fill(const cleat_dataset *dataset, size_t index, int64_t length, const cleat_rng_key *rng_key, sample *s) {
    void *slots[2] = {s->image, s->mask};
    cleat_error error = {0};
    memset(s, 0x5A, sizeof *s);
    if (cleat_dataset_fill(dataset, index, length, rng_key, slots, &error) != CLEAT_OK) fail_msg("%s", error.text);
}

static void pairs_are_samples(void **state) {
    (void)state;
    cleat_image_options options = small_options();
    cleat_dataset *dataset = open_masks(write_pairs("pairs"), &options);
    cleat_image_info info = cleat_image_describe(dataset);
    double sum = 0, squares = 0, ones = 0, count = 0;
    for (int i = 0; i < SAMPLES; ++i)
        for (int p = 0; p < SIDE * SIDE && i != 1 && i != 4; ++p) {
            double value = (figure(i, p / SIDE, p % SIDE) ? 250 : 50 + i) / 255.0;
            sum += value;
            squares += value * value;
            ones += figure(i, p / SIDE, p % SIDE);
            count += 1;
        }
    double mean = sum / count, std = sqrt(squares / count - mean * mean);
    assert_int_equal(cleat_dataset_count(dataset), SAMPLES);
    assert_true(info.size == SIDE && info.channels == 1 && info.classes == 2);
    assert_true(info.height == SIDE && info.width == SIDE && info.file_height == SIDE && info.file_width == SIDE);
    assert_true(info.samples[0] == 4 && info.samples[1] == 1 && info.samples[2] == 1);
    assert_true(fabs(info.positive - ones / count) < 1e-12);
    for (int i = 0; i < SAMPLES; ++i) {
        sample s;
        cleat_split split = i == 1 ? CLEAT_SPLIT_VAL : i == 4 ? CLEAT_SPLIT_TEST : CLEAT_SPLIT_TRAIN;
        assert_string_equal(cleat_dataset_id(dataset, (size_t)i), names[i]);
        assert_int_equal(cleat_dataset_split(dataset, (size_t)i), split);
        assert_int_equal(cleat_dataset_length(dataset, (size_t)i), SIDE);
        fill(dataset, (size_t)i, SIDE, NULL, &s);
        for (int p = 0; p < SIDE * SIDE; ++p) {
            int one = figure(i, p / SIDE, p % SIDE);
            double expected = ((one ? 250 : 50 + i) / 255.0 - mean) / std;
            assert_int_equal(s.mask[p], one);
            assert_true(fabs(s.image[p] - expected) < 1e-5);
        }
    }
    cleat_dataset_destroy(dataset);
}

static void longer_slots_are_padded(void **state) {
    (void)state;
    cleat_image_options options = small_options();
    cleat_dataset *dataset = open_masks(write_pairs("pairs"), &options);
    sample own, padded;
    fill(dataset, 2, SIDE, NULL, &own);
    fill(dataset, 2, 11, NULL, &padded);
    for (int y = 0; y < 11; ++y)
        for (int x = 0; x < 11; ++x) {
            bool inside = y < SIDE && x < SIDE;
            assert_int_equal(padded.mask[y * 11 + x], inside ? own.mask[y * SIDE + x] : -1);
            assert_true(padded.image[y * 11 + x] == (inside ? own.image[y * SIDE + x] : 0));
        }
    cleat_dataset_destroy(dataset);
}

/* Without scaling, the image determines the expected mask at each pixel. */
static void images_and_masks_are_augmented_alike(void **state) {
    (void)state;
    cleat_image_options options = small_options();
    options.augment.flip = options.augment.flip_vertical = options.augment.turn = true;
    cleat_dataset *dataset = open_masks(write_pairs("pairs"), &options);
    sample still, s, again;
    int changed = 0;
    fill(dataset, 3, SIDE, NULL, &still);
    for (uint32_t epoch = 0; epoch < 24; ++epoch) {
        cleat_rng_key rng_key = {.seed = 5, .epoch = epoch};
        int ones = 0;
        fill(dataset, 3, SIDE, &rng_key, &s);
        fill(dataset, 3, SIDE, &rng_key, &again);
        assert_memory_equal(&s, &again, sizeof s);
        for (int p = 0; p < SIDE * SIDE; ++p) {
            assert_int_equal(s.mask[p], s.image[p] > 0.5f);
            ones += s.mask[p];
        }
        assert_int_equal(ones, 6);
        changed += memcmp(s.mask, still.mask, SIDE * SIDE * sizeof *s.mask) != 0;
    }
    assert_true(changed > 12 && changed < 24);
    options.augment = (cleat_augment){.crop_min = 1, .shift = 3};
    cleat_dataset *shifted = open_masks(write_pairs("pairs"), &options);
    int unknown = 0;
    for (uint32_t epoch = 0; epoch < 12; ++epoch) {
        cleat_rng_key rng_key = {.seed = 5, .epoch = epoch};
        fill(shifted, 3, SIDE, &rng_key, &s);
        for (int p = 0; p < SIDE * SIDE; ++p) {
            unknown += s.mask[p] < 0; /* outside the image */
            if (s.mask[p] >= 0) assert_int_equal(s.mask[p], s.image[p] > 0.5f);
        }
    }
    assert_true(unknown > 0);
    cleat_dataset_destroy(shifted);
    cleat_dataset_destroy(dataset);
}

static void images_of_any_size_and_colour_are_scaled(void **state) {
    (void)state;
    cleat_image_options options = small_options();
    const char *folder = write_pairs("sizes");
    uint8_t image[16 * 24 * 3], mask[16 * 24 * 3];
    int64_t height, width;
    for (int i = 0; i < 16 * 24; ++i) { /* left half red and 1 */
        bool one = i % 24 < 12;
        image[3 * i] = one ? 200 : 0;
        image[3 * i + 1] = image[3 * i + 2] = one ? 0 : 100;
        mask[3 * i] = mask[3 * i + 1] = mask[3 * i + 2] = one ? 255 : 0;
    }
    write_image(folder, "images/fox.png", 16, 24, 3, image);
    write_image(folder, "masks/fox.png", 16, 24, 3, mask); /* an RGB file of greys */
    cleat_dataset *dataset = open_masks(folder, &options);
    sample s;
    assert_int_equal(cleat_image_describe(dataset).channels, 3);
    assert_int_equal(cleat_masks_file_size(dataset, 5, &height, &width, NULL), CLEAT_OK);
    assert_true(height == 16 && width == 24);
    assert_int_equal(cleat_masks_file_size(dataset, 6, &height, &width, NULL), CLEAT_ERR_ARGUMENT);
    fill(dataset, 5, SIDE, NULL, &s);
    for (int p = 0; p < SIDE * SIDE; ++p) {
        assert_int_equal(s.mask[p], p % SIDE < SIDE / 2);
        assert_true((s.image[3 * p] > s.image[3 * (p - p % SIDE + SIDE - 1)]) == (s.mask[p] == 1));
    }
    cleat_dataset_destroy(dataset);
    options.channels = 1;
    dataset = open_masks(folder, &options);
    assert_int_equal(cleat_image_describe(dataset).channels, 1);
    cleat_dataset_destroy(dataset);
}

static void the_fitted_preprocessor_is_used_again(void **state) {
    (void)state;
    char fitted[512];
    cleat_image_options options = small_options();
    const char *folder = write_pairs("predicted");
    cleat_error error = {0};
    cleat_dataset *dataset = open_masks(folder, &options);
    snprintf(fitted, sizeof fitted, "%s", test_path("learnt_masks"));
    assert_int_equal(cleat_dataset_save(dataset, fitted, &error), CLEAT_OK);
    options.fitted = fitted;
    cleat_dataset *same = open_masks(folder, &options);
    assert_true(cleat_image_describe(same).positive == cleat_image_describe(dataset).positive);
    static sample a, b;
    fill(same, 3, SIDE, NULL, &a);
    remove_file(folder, "masks/dog.png");
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "an image without its mask");
    options.predict = true;
    char images[1024], one[1024];
    snprintf(images, sizeof images, "%s/images", folder);
    snprintf(one, sizeof one, "%s/images/dog.png", folder);
    const char *const paths[3] = {folder, images, one};
    for (int i = 0; i < 3; ++i) {
        cleat_dataset *predicted = open_masks(paths[i], &options);
        assert_int_equal(cleat_dataset_count(predicted), i < 2 ? SAMPLES : 1);
        size_t at = i < 2 ? 3 : 0;
        assert_string_equal(cleat_dataset_id(predicted, at), "dog");
        assert_int_equal(cleat_dataset_split(predicted, at), CLEAT_SPLIT_TEST);
        fill(predicted, at, SIDE, NULL, &b);
        assert_memory_equal(a.image, b.image, SIDE * SIDE * sizeof(float));
        for (int p = 0; p < SIDE * SIDE; ++p) assert_int_equal(b.mask[p], -1);
        cleat_dataset_destroy(predicted);
    }
    options.channels = 3;
    expect_refused(images, &options, CLEAT_ERR_ARGUMENT, "trained with 1 channels");
    options.channels = 0;
    write_text(fitted, "pictures.json", "{\"channels\": 1, \"means\": [0], \"deviations\": [1], \"classes\": [\"a\"]}");
    expect_refused(images, &options, CLEAT_ERR_FORMAT, "not trained on masks");
    write_text(fitted, "pictures.json", "{\"channels\": 1, \"means\": [0], \"deviations\": [1], \"classes\": []}");
    expect_refused(images, &options, CLEAT_ERR_FORMAT, "positive");
    cleat_dataset_destroy(same);
    cleat_dataset_destroy(dataset);
}

static void what_does_not_fit_together_is_refused(void **state) {
    (void)state;
    cleat_image_options options = small_options();
    const char *folder = write_pairs("unfit");
    uint8_t pixels[SIDE * SIDE * 3] = {0};
    remove_file(folder, "masks/cat.png");
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "images/cat.png: an image without its mask");
    write_pair(folder, 2);
    remove_file(folder, "images/cat.png");
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "masks/cat.png: a mask without its image");
    write_pair(folder, 2);
    write_image(folder, "masks/cat_1_mask.png", SIDE, SIDE, 1, pixels);
    expect_refused(folder, &options, CLEAT_ERR_FORMAT,
                   "cat_1_mask.png: a mask has the name of its image: rename it to cat.png");
    remove_file(folder, "masks/cat_1_mask.png");
    write_image(folder, "masks/cat.png", SIDE - 1, SIDE, 1, pixels);
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "the mask has 8 x 7 pixels");
    char deep[1024];
    cleat_image drawn;
    snprintf(deep, sizeof deep, "%s/masks/cat.png", folder);
    drawn_write_png(deep, SIDE, SIDE, &(drawn_png){.colour = 0, .bits = 16}, &drawn);
    cleat_image_free(&drawn);
    expect_refused(folder, &options, CLEAT_ERR_FORMAT,
                   "but white is 65535, and the mask starts at half of that; if all above 0 is mask");
    static const uint8_t white[] = {0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49,
                                    0x48, 0x44, 0x52, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x08, 0x08, 0x04,
                                    0x00, 0x00, 0x00, 0x6e, 0x06, 0x76, 0x00, 0x00, 0x00, 0x00, 0x11, 0x49, 0x44,
                                    0x41, 0x54, 0x78, 0xda, 0x63, 0xf8, 0xcf, 0x00, 0x85, 0x50, 0xc0, 0x30, 0x30,
                                    0x02, 0x00, 0xf8, 0xe0, 0x5f, 0xa1, 0xb1, 0x57, 0xbb, 0xf4, 0x00, 0x00, 0x00,
                                    0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82}; /* 8 x 8, the left half transparent */
    for (int i = 0; i < SAMPLES; ++i) {
        snprintf(deep, sizeof deep, "%s/masks/%s.png", folder, names[i]);
        test_write(deep, white, sizeof white);
    }
    expect_refused(folder, &options, CLEAT_ERR_FORMAT,
                   "every pixel of the 4 training masks is 1, so training is impossible");
    for (int i = 0; i < SAMPLES; ++i) {
        char name[64];
        snprintf(name, sizeof name, "masks/%s.png", names[i]);
        write_image(folder, name, SIDE, SIDE, 1, pixels);
    }
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "no pixel of the 4 training masks is 1");
    for (int i = 0; i < SAMPLES; ++i) write_pair(folder, i);
    pixels[3 * 9] = 200;
    write_image(folder, "masks/cat.png", SIDE, SIDE, 3, pixels);
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "the mask has colours (200 0 0 at row 1, column 1)");
    memset(pixels, 0, sizeof pixels);
    pixels[5] = 1;
    write_image(folder, "masks/cat.png", SIDE, SIDE, 1, pixels);
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "brightest pixel of the mask is 1");
    write_pair(folder, 2);
    write_text(folder, "masks/cat.jpg", "mask");
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "a JPEG mask");
    remove_file(folder, "masks/cat.jpg");
    write_text(folder, "images/cat.jpg", "image");
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "two images with the same name");
    remove_file(folder, "images/cat.jpg");
    write_text(folder, "images/cat.png", "image");
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "images/cat.png");
    write_pair(folder, 2);
    write_text(folder, "val.txt", "bee\ngnu\n");
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "val.txt:2: no sample is named 'gnu'");
    write_text(folder, "val.txt", "ant\nbee\ncat\ndog\nfox");
    expect_refused(folder, &options, CLEAT_ERR_ARGUMENT, "no training images are left");
    write_text(folder, "val.txt", "bee\n");
    write_text(folder, "images/notes.txt", "left out, with a warning");
    options.channels = 4;
    expect_refused(folder, &options, CLEAT_ERR_ARGUMENT, "4 channels");
    options = small_options();
    options.predict = true;
    expect_refused(folder, &options, CLEAT_ERR_ARGUMENT, "trained model");
    expect_refused(test_path("nowhere"), NULL, CLEAT_ERR_NOT_FOUND, "the folder does not exist");
    cleat_dataset *dataset = open_masks(folder, NULL);
    assert_int_equal(cleat_dataset_count(dataset), SAMPLES);
    assert_int_equal(cleat_dataset_length(dataset, 0), 224);
    cleat_dataset_destroy(dataset);
}

static void a_file_that_changes_is_refused(void **state) {
    (void)state;
    cleat_image_options options = small_options();
    options.cache_bytes = 0;
    const char *folder = write_pairs("changes");
    uint8_t pixels[4 * 4] = {255};
    static sample s;
    void *slots[2] = {s.image, s.mask};
    cleat_error error = {0};
    cleat_dataset *dataset = open_masks(folder, &options);
    write_image(folder, "masks/ant.png", 4, 4, 1, pixels);
    assert_int_equal(cleat_dataset_fill(dataset, 0, SIDE, NULL, slots, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "masks/ant.png: the image size has changed"));
    cleat_dataset_destroy(dataset);
}

typedef struct fillers {
    const cleat_dataset *dataset;
    const sample *expected; /* [SAMPLES] */
    int wrong;
} fillers;

static void *fill_often(void *user) {
    fillers *f = user;
    static _Thread_local sample s;
    const cleat_rng_key rng_key = {.seed = 3, .epoch = 1};
    for (int round = 0; round < 20; ++round)
        for (size_t i = 0; i < SAMPLES; ++i) {
            void *slots[2] = {s.image, s.mask};
            memset(&s, 0x5A, sizeof s);
            if (cleat_dataset_fill(f->dataset, i, SIDE, &rng_key, slots, NULL) != CLEAT_OK ||
                memcmp(&s, &f->expected[i], sizeof s) != 0)
                f->wrong = 1;
        }
    return NULL;
}

static void several_threads_may_fill(void **state) {
    (void)state;
    cleat_image_options options = small_options();
    options.augment = (cleat_augment){.crop_min = 0.5, .flip = true, .brightness = 0.2};
    options.cache_bytes = 5 * SIDE * SIDE; /* some are cached, others are read each time */
    cleat_dataset *dataset = open_masks(write_pairs("threads"), &options);
    static sample expected[SAMPLES];
    const cleat_rng_key rng_key = {.seed = 3, .epoch = 1};
    for (size_t i = 0; i < SAMPLES; ++i) fill(dataset, i, SIDE, &rng_key, &expected[i]);
    pthread_t threads[3];
    fillers work[3];
    for (int t = 0; t < 3; ++t) {
        work[t] = (fillers){.dataset = dataset, .expected = expected};
        assert_int_equal(pthread_create(&threads[t], NULL, fill_often, &work[t]), 0);
    }
    for (int t = 0; t < 3; ++t) {
        pthread_join(threads[t], NULL);
        assert_int_equal(work[t].wrong, 0);
    }
    cleat_dataset_destroy(dataset);
}

static void every_failed_allocation_is_survived(void **state) {
    (void)state;
    cleat_image_options options = small_options();
    const char *folder = write_pairs("pairs");
    cleat_status status = CLEAT_ERR_MEMORY;
    long n = 0;
    while (status == CLEAT_ERR_MEMORY) {
        cleat_dataset *dataset = NULL;
        cleat_error error = {0};
        cleat_fail_allocation(++n);
        status = cleat_masks_open(folder, &options, &dataset, &error);
        cleat_fail_allocation(0);
        if (!status)
            cleat_dataset_destroy(dataset);
        else
            assert_true(status == CLEAT_ERR_MEMORY && *error.text);
    }
    assert_true(n > 20);
}

static void written_images_come_back(void **state) {
    (void)state;
    uint8_t pixels[5 * 3];
    cleat_image image = {0};
    cleat_error error = {0};
    const char *path = test_path("written.png");
    for (int i = 0; i < 15; ++i) pixels[i] = (uint8_t)(i * 17);
    assert_int_equal(cleat_png_write(path, pixels, 5, 3, &error), CLEAT_OK);
    assert_int_equal(cleat_image_read(path, 0, &image, &error), CLEAT_OK);
    assert_true(image.height == 5 && image.width == 3 && image.channels == 1);
    assert_memory_equal(image.pixels, pixels, sizeof pixels);
    cleat_image_free(&image);
    assert_int_equal(cleat_png_write(path, pixels, 0, 3, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_png_write(path, pixels, INT64_MAX, 3, &error), CLEAT_ERR_ARGUMENT);
    assert_true(cleat_png_write(test_path("none/x.png"), pixels, 5, 3, &error) != CLEAT_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_samples),
        cmocka_unit_test(longer_slots_are_padded),
        cmocka_unit_test(images_and_masks_are_augmented_alike),
        cmocka_unit_test(images_of_any_size_and_colour_are_scaled),
        cmocka_unit_test(the_fitted_preprocessor_is_used_again),
        cmocka_unit_test(what_does_not_fit_together_is_refused),
        cmocka_unit_test(a_file_that_changes_is_refused),
        cmocka_unit_test(several_threads_may_fill),
        cmocka_unit_test(every_failed_allocation_is_survived),
        cmocka_unit_test(written_images_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}

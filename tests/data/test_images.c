/* Image classification datasets: class folders; splits, classes, means, samples; and refusals. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drawn.h"
#include "files.h"
#include "image_sets.h"

#include "platform/files.h"
#include "platform/threads.h"

/* --- class folders -------------------------------------------------------------------------------------------- */

static const char *below(const char *folder, const char *name) {
    static char names[4][512];
    static int next;
    char *path = names[next++ % 4];
    snprintf(path, sizeof names[0], "%s/%s", folder, name);
    return path;
}

static void add_image(const char *folder, const char *name, int64_t height, int64_t width, int64_t channels, int kind) {
    cleat_image p = drawn_image(height, width, channels, kind);
    const char *path = test_path(below(folder, name));
    if (strstr(name, ".jp"))
        drawn_write_jpeg(path, &p, DRAWN_JPEG);
    else
        assert_int_equal(cleat_image_write_png(path, &p, NULL), CLEAT_OK);
    cleat_image_free(&p);
}

/* Creates FOLDER/cat and FOLDER/dog with `count` images each. */
static const char *make_classes(const char *folder, int count) {
    char name[64];
    test_folder(folder);
    test_folder(below(folder, "cat"));
    test_folder(below(folder, "dog"));
    for (int i = 0; i < count; ++i) {
        snprintf(name, sizeof name, "cat/%d.%s", i, i % 2 ? "png" : "jpg");
        add_image(folder, name, 12, 12, 3, i);
        snprintf(name, sizeof name, "dog/%d.png", i);
        add_image(folder, name, 12, 12, i % 2 ? 1 : 3, i + 100);
    }
    return images_lasting(test_path(folder));
}

static void folders_are_classes(void **state) {
    (void)state;
    const char *path = make_classes("classes", 4);
    cleat_image_options options = images_small_options();
    cleat_dataset *dataset = images_open_ok(path, &options);
    float image[12 * 12 * 3];
    assert_int_equal(cleat_dataset_count(dataset), 8);
    assert_string_equal(cleat_images_class(dataset, 0), "cat");
    assert_string_equal(cleat_images_class(dataset, 1), "dog");
    assert_null(cleat_images_class(dataset, 2));
    assert_int_equal(cleat_images_class_samples(dataset, 1), 4);
    assert_int_equal(cleat_images_class_samples(dataset, 2), 0);
    cleat_image_info info = cleat_image_describe(dataset);
    assert_true(info.size == 12 && info.channels == 3 && info.classes == 2 && info.height == 12 && info.width == 12);
    assert_true(info.samples[CLEAT_SPLIT_TRAIN] == 8 && info.samples[CLEAT_SPLIT_VAL] == 0);
    assert_string_equal(cleat_dataset_id(dataset, 0), "cat/0.jpg");
    assert_int_equal(cleat_field_elements(cleat_dataset_field(dataset, 0), 12), 12 * 12 * 3);
    assert_int_equal(cleat_dataset_find_field(dataset, "label"), 1);
    double sum[3] = {0}, squares[3] = {0};
    for (size_t i = 0; i < 8; ++i) {
        assert_int_equal(cleat_dataset_length(dataset, i), 12);
        assert_int_equal(cleat_dataset_items(dataset, i), 1);
        assert_int_equal(images_fill(dataset, i, NULL, image), i / 4);
        for (int p = 0; p < 12 * 12 * 3; ++p) {
            sum[p % 3] += image[p] / (8 * 144);
            squares[p % 3] += image[p] * image[p] / (8 * 144);
        }
    }
    for (int c = 0; c < 3; ++c) assert_true(fabs(sum[c]) < 1e-5 && fabs(squares[c] - 1) < 1e-5);
    cleat_dataset_destroy(dataset);
}

/* A sample is the centred square of the image, scaled. In a larger slot the padding
 * stays 0. */
static void samples_are_centred_squares(void **state) {
    (void)state;
    const char *path = make_classes("wide", 3);
    add_image("wide", "dog/wide.png", 12, 30, 3, 5);
    cleat_image_options options = images_small_options();
    cleat_dataset *dataset = images_open_ok(path, &options);
    cleat_image p = drawn_image(12, 30, 3, 5);
    size_t wide = images_sample_called(dataset, "dog/wide.png");
    float image[12 * 12 * 3], padded[16 * 16 * 3];
    cleat_image as_it_is = drawn_image(12, 12, 3, 1);
    float unscaled[12 * 12 * 3];
    images_fill(dataset, images_sample_called(dataset, "cat/1.png"), NULL, unscaled);
    images_fill(dataset, wide, NULL, image);
    for (int c = 0; c < 3; ++c) { /* value = a byte + b, in each channel the same for all images */
        double x0 = as_it_is.pixels[c], x1 = as_it_is.pixels[6 * 3 + c];
        double a = (unscaled[6 * 3 + c] - unscaled[c]) / (x1 - x0), b = unscaled[c] - a * x0;
        assert_true(a > 0);
        for (int i = 0; i < 144; ++i)
            assert_true(fabs(image[i * 3 + c] - (a * p.pixels[(i / 12 * 30 + 9 + i % 12) * 3 + c] + b)) < 1e-3);
    }
    cleat_image_free(&as_it_is);
    void *slots[2] = {padded, NULL};
    assert_int_equal(cleat_dataset_fill(dataset, wide, 16, NULL, slots, NULL), CLEAT_OK);
    for (int i = 0; i < 16 * 16 * 3; ++i) {
        int y = i / 48, x = i % 48;
        assert_true(padded[i] == (y < 12 && x < 36 ? image[y * 36 + x] : 0));
    }
    cleat_image_free(&p);
    cleat_dataset_destroy(dataset);
}

static void named_parts_are_splits(void **state) {
    (void)state;
    test_folder("parts");
    make_classes("parts/train", 3);
    make_classes("parts/valid", 2);
    make_classes("parts/test", 1);
    test_folder("parts/other");
    cleat_image_options options = images_small_options();
    options.val_fraction = 0.5; /* unused, because a validation part exists */
    options.test_fraction = 0.3;
    cleat_dataset *dataset = images_open_ok(test_path("parts"), &options);
    cleat_image_info info = cleat_image_describe(dataset);
    assert_int_equal(info.samples[CLEAT_SPLIT_TRAIN], 6);
    assert_int_equal(info.samples[CLEAT_SPLIT_VAL], 4);
    assert_int_equal(info.samples[CLEAT_SPLIT_TEST], 2);
    assert_int_equal(cleat_dataset_split(dataset, images_sample_called(dataset, "valid/dog/1.png")), CLEAT_SPLIT_VAL);
    assert_non_null(strstr(images_warnings, "parts/other"));
    cleat_dataset_destroy(dataset);
    test_folder("parts/valid/cow");
    add_image("parts/valid", "cow/1.png", 5, 5, 3, 0);
    images_expect_failure(test_path("parts"), &options, "parts/valid/cow|'cow'|training split|cat, dog");
    assert_int_equal(rename(test_path("parts/valid/cow"), test_path("parts/valid/dogs")), 0);
    images_expect_failure(test_path("parts"), &options, "did you mean 'dog'");
#ifndef _WIN32 /* names that differ in case alone */
    assert_int_equal(rename(test_path("parts/valid/dogs"), test_path("parts/valid/Dog")), 0);
    images_expect_failure(test_path("parts"), &options, "two spellings|'dog'|'Dog'");
#endif
    assert_int_equal(rename(test_path("parts/train"), test_path("parts/gone")), 0);
    images_expect_failure(test_path("parts"), &options, "no train folder");
}

/* A class may be named like a part. */
static void a_class_called_train_is_a_class(void **state) {
    (void)state;
    const char *path = make_classes("traffic", 2);
    test_folder("traffic/train");
    add_image("traffic", "train/1.png", 12, 12, 3, 9);
    cleat_image_options options = images_small_options();
    cleat_dataset *dataset = images_open_ok(path, &options);
    assert_string_equal(cleat_images_class(dataset, 2), "train");
    assert_int_equal(cleat_dataset_count(dataset), 5);
    cleat_dataset_destroy(dataset);
}

static void hashes_split_what_names_no_parts(void **state) {
    (void)state;
    const char *path = make_classes("hashed", 60);
    cleat_image_options options = images_small_options();
    options.val_fraction = 0.3;
    options.test_fraction = 0.2;
    cleat_dataset *dataset = images_open_ok(path, &options);
    cleat_image_info info = cleat_image_describe(dataset);
    assert_in_range(info.samples[CLEAT_SPLIT_VAL], 22, 50);
    assert_in_range(info.samples[CLEAT_SPLIT_TEST], 12, 38);
    assert_int_equal(cleat_images_class_samples(dataset, 0) + cleat_images_class_samples(dataset, 1),
                     info.samples[CLEAT_SPLIT_TRAIN]);
    cleat_dataset_destroy(dataset);
    options.val_fraction = 0.99;
    options.test_fraction = 0;
    images_expect_failure(path, &options, "no images in the training split|val_fraction");
    options.val_fraction = options.test_fraction = 0.5;
    images_expect_failure(path, &options, "their sum below 1");
}

/* Subfolders of a class, to a depth of 16 below the set's folder. */
static void folders_may_be_nested(void **state) {
    (void)state;
    const char *path = make_classes("nested", 2);
    cleat_image_options options = images_small_options();
    char folder[64] = "nested/dog";
    for (int depth = 2; depth <= 17; ++depth) {
        strcat(folder, "/d");
        test_folder(folder);
        if (depth != 16) continue;
        add_image(folder, "deep.png", 12, 12, 3, 0);
        cleat_dataset *dataset = images_open_ok(path, &options);
        assert_int_equal(cleat_images_class_samples(dataset, 1), 3);
        cleat_dataset_destroy(dataset);
    }
    images_expect_failure(path, &options, "folders nested more than 16 deep");
}

static void classes_may_be_given_in_order(void **state) {
    (void)state;
    const char *path = make_classes("ordered", 2);
    cleat_image_options options = images_small_options();
    float image[12 * 12 * 3];
    options.classes = " dog  cat";
    cleat_dataset *dataset = images_open_ok(path, &options);
    assert_string_equal(cleat_images_class(dataset, 0), "dog");
    assert_int_equal(images_fill(dataset, images_sample_called(dataset, "dog/1.png"), NULL, image), 0);
    cleat_dataset_destroy(dataset);
    options.classes = "dog bird";
    images_expect_failure(path, &options, "'cat'|data.labels|dog, bird");
    options.classes = "dog cat dog";
    images_expect_failure(path, &options, "duplicate 'dog'");
    options.classes = "dog cat bird";
    dataset = images_open_ok(path, &options);
    assert_non_null(strstr(images_warnings, "'bird' has no images"));
    cleat_dataset_destroy(dataset);
}

static void bad_folders_are_refused(void **state) {
    (void)state;
    cleat_image_options options = images_small_options();
    const char *path = make_classes("bad", 2);
    test_write_text(test_path("bad/cat/README.txt"), "about these cats");
    test_write_text(test_path("bad/labels.csv"), "none");
    add_image("bad", "alone.png", 5, 5, 3, 0);
    cleat_dataset *dataset = images_open_ok(path, &options);
    assert_int_equal(cleat_dataset_count(dataset), 4);
    assert_non_null(strstr(images_warnings, "2 files without the extension .png"));
    assert_non_null(strstr(images_warnings, "the first is cat/README.txt"));
    assert_non_null(strstr(images_warnings, "1 images outside of class folders"));
    cleat_dataset_destroy(dataset);

    test_write_text(test_path("bad/cat/notes.png"), "about these cats");
    images_expect_failure(path, &options, "bad/cat/notes.png|not an image");
    unlink(test_path("bad/cat/notes.png"));
    test_folder("bad/empty");
    images_expect_failure(path, &options, "bad/empty|no images in this class folder");
    rmdir(test_path("bad/empty"));
#ifndef _WIN32 /* names that differ in case alone; links, which wine follows */
    test_folder("bad/CAT");
    add_image("bad", "CAT/1.png", 5, 5, 3, 0);
    images_expect_failure(path, &options, "two spellings of one class|'CAT'|'cat'");
    unlink(test_path("bad/CAT/1.png"));
    rmdir(test_path("bad/CAT"));
    assert_int_equal(symlink("..", test_path("bad/cat/loop")), 0);
    images_expect_failure(path, &options, "bad/cat/loop|link to a parent folder");
    unlink(test_path("bad/cat/loop"));
    assert_int_equal(symlink("nowhere", test_path("bad/cat/lost.png")), 0);
    images_expect_failure(path, &options, "bad/cat/lost.png");
    unlink(test_path("bad/cat/lost.png"));
#endif
    dataset = images_open_ok(path, &options); /* repaired */
    cleat_dataset_destroy(dataset);

    images_expect_failure(test_folder("nothing"), &options, "Supported layouts|train-images*|data_batch_*.bin");
    images_expect_failure(test_path("missing"), &options, "no such file or folder");
    images_expect_failure(test_path("bad/cat/1.png"), &options, "is a file");
    test_folder("single");
    test_folder("single/cat");
    add_image("single", "cat/1.png", 5, 5, 3, 0);
    images_expect_failure(test_path("single"), &options, "classification requires two or more");
    options.size = 0;
    images_expect_failure(path, &options, "size");
    options = images_small_options();
    options.augment.crop_min = 0.01;
    images_expect_failure(path, &options, "crop_min");
    options = images_small_options();
    options.augment.shift = 12;
    images_expect_failure(path, &options, "shift");
    options = images_small_options();
    options.predict = true;
    images_expect_failure(path, &options, "trained model");
}

/* Decoding detects damage beyond the header: the error names the file, and no image is returned. */
static void truncated_images_stop_the_filling(void **state) {
    (void)state;
    const char *path = make_classes("cut", 3), *file = images_lasting(test_path("cut/cat/2.jpg"));
    cleat_image_options options = images_small_options();
    options.cache_bytes = 0;
    cleat_dataset *dataset = images_open_ok(path, &options);
    size_t size, sample = images_sample_called(dataset, "cat/2.jpg");
    char *bytes = test_read(file, &size);
    test_write(file, bytes, size / 2 + 200);
    free(bytes);
    float image[12 * 12 * 3];
    int32_t label;
    void *slots[2] = {image, &label};
    cleat_error error = {0};
    assert_int_equal(cleat_dataset_fill(dataset, sample, 12, NULL, slots, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "cut/cat/2.jpg"));
    assert_non_null(strstr(error.text, "truncated"));
    cleat_dataset_destroy(dataset);
    images_expect_failure(path, &options, "cut/cat/2.jpg|truncated"); /* the means are computed from it */
}

static void channels_follow_the_training_part(void **state) {
    (void)state;
    cleat_image_options options = images_small_options();
    test_folder("grey");
    test_folder("grey/train");
    test_folder("grey/train/a");
    test_folder("grey/train/b");
    test_folder("grey/val");
    test_folder("grey/val/a");
    add_image("grey", "train/a/1.png", 12, 12, 1, 0);
    add_image("grey", "train/b/1.jpg", 12, 12, 1, 1);
    add_image("grey", "val/a/1.png", 12, 12, 3, 2);
    cleat_dataset *dataset = images_open_ok(test_path("grey"), &options);
    assert_int_equal(cleat_image_describe(dataset).channels, 1);
    float image[12 * 12 * 3];
    images_fill(dataset, images_sample_called(dataset, "val/a/1.png"), NULL, image);
    cleat_dataset_destroy(dataset);
    options.channels = 3;
    dataset = images_open_ok(test_path("grey"), &options);
    images_fill(dataset, images_sample_called(dataset, "train/a/1.png"), NULL, image);
    assert_true(image[0] == image[1] && image[1] == image[2]);
    cleat_dataset_destroy(dataset);
    options.channels = 2;
    images_expect_failure(test_path("grey"), &options, "2 are required");
}

/* --- randomness, cache, threads ------------------------------------------------------------------------------- */

enum { SHARED = 24, SIZE = 10, PIXELS = SIZE * SIZE * 3 };

typedef struct filler {
    const cleat_dataset *dataset;
    const float (*expected)[PIXELS];
    int first;
    bool failed;
} filler;

static const cleat_rng_key shared_rng_key = {.seed = 3, .epoch = 1};

static void *fill_all(void *argument) {
    filler *f = argument;
    float image[PIXELS];
    int32_t label;
    void *slots[2] = {image, &label};
    for (int i = 0; i < SHARED; ++i) {
        size_t sample = (size_t)(i + f->first) % SHARED;
        if (cleat_dataset_fill(f->dataset, sample, SIZE, &shared_rng_key, slots, NULL) != CLEAT_OK ||
            memcmp(image, f->expected[sample], sizeof image) != 0)
            f->failed = true;
    }
    return NULL;
}

static void threads_fill_the_same_bits(void **state) {
    (void)state;
    static float expected[SHARED][PIXELS], later[PIXELS];
    make_classes("threads", SHARED / 2 - 1);
    add_image("threads", "cat/large.jpg", 90, 130, 3, 1); /* decoded at a smaller scale */
    add_image("threads", "dog/large.jpg", 130, 90, 3, 2);
    cleat_image_options options = images_small_options();
    options.size = SIZE;
    options.augment = (cleat_augment){.crop_min = 0.4, .shift = 1, .flip = true, .turn = true, .brightness = 0.2};
    options.cache_bytes = 0;
    cleat_dataset *plain = images_open_ok(test_path("threads"), &options);
    options.cache_bytes = 12 * 12 * 3 * 15;
    cleat_dataset *cached = images_open_ok(test_path("threads"), &options);
    assert_int_equal(cleat_dataset_count(plain), SHARED);
    for (size_t i = 0; i < SHARED; ++i) images_fill(plain, i, &shared_rng_key, expected[i]);
    filler fillers[3];
    pthread_t threads[3];
    for (int i = 0; i < 3; ++i) {
        fillers[i] = (filler){.dataset = cached, .expected = (const float(*)[PIXELS])expected, .first = 7 * i};
        assert_int_equal(pthread_create(&threads[i], NULL, fill_all, &fillers[i]), 0);
    }
    for (int i = 0; i < 3; ++i) {
        pthread_join(threads[i], NULL);
        assert_false(fillers[i].failed);
    }
    cleat_image_cache_stats stats = cleat_images_dataset_cache_statistics(cached);
    assert_true(stats.kept >= 10 && stats.bytes <= options.cache_bytes);
    assert_true(stats.hits >= 3 * stats.kept);
    assert_int_equal(cleat_images_dataset_cache_statistics(plain).kept, 0);
    cleat_rng_key next = {.seed = 3, .epoch = 2};
    int same = 0;
    for (size_t i = 0; i < SHARED; ++i) {
        images_fill(plain, i, &next, later);
        same += memcmp(later, expected[i], sizeof later) == 0;
        images_fill(plain, i, NULL, later);
        same += memcmp(later, expected[i], sizeof later) == 0;
    }
    assert_int_equal(same, 0);
    cleat_dataset_destroy(plain);
    cleat_dataset_destroy(cached);
}

/* --- the fitted preprocessor ---------------------------------------------------------------------------------- */

/* A network with pretrained weights requires their means, which are stored with the model. */
static void means_may_be_given(void **state) {
    (void)state;
    const char *path = make_classes("given", 4), *folder = images_lasting(test_folder("given_model"));
    cleat_image_options options = images_small_options();
    options.mean = "0";
    options.std = "1";
    float plain[12 * 12 * 3], other[12 * 12 * 3], again[12 * 12 * 3];
    cleat_dataset *dataset = images_open_ok(path, &options);
    images_fill(dataset, 0, NULL, plain); /* values 0 to 1 */
    cleat_dataset_destroy(dataset);
    options.mean = "0.485 0.456  0.406";
    options.std = "0.229 0.224 0.225 ";
    dataset = images_open_ok(path, &options);
    images_fill(dataset, 0, NULL, other);
    static const double mean[] = {0.485, 0.456, 0.406}, std[] = {0.229, 0.224, 0.225};
    for (int i = 0; i < 12 * 12 * 3; ++i) {
        assert_true(plain[i] >= 0 && plain[i] <= 1);
        assert_true(fabs(other[i] - (plain[i] - mean[i % 3]) / std[i % 3]) < 1e-5);
    }
    assert_int_equal(cleat_dataset_save(dataset, folder, NULL), CLEAT_OK);
    cleat_dataset_destroy(dataset);
    options = images_small_options();
    options.fitted = folder;
    dataset = images_open_ok(path, &options);
    images_fill(dataset, 0, NULL, again);
    assert_memory_equal(other, again, sizeof again);
    cleat_dataset_destroy(dataset);
    options = images_small_options();
    options.mean = "0.5";
    images_expect_failure(path, &options, "data.mean = 0.5|given together");
    options.std = "0.5 0";
    images_expect_failure(path, &options, "above 0");
    options.std = "0.5 half";
    images_expect_failure(path, &options, "half|numbers separated by blanks");
    options.std = "0.5 0.5";
    images_expect_failure(path, &options, "data.std = 0.5 0.5|2 numbers|3 channels");
}

static void the_fitted_preprocessor_is_used_again(void **state) {
    (void)state;
    const char *path = make_classes("learnt", 4), *folder = images_lasting(test_folder("model"));
    cleat_image_options options = images_small_options();
    options.classes = "dog cat";
    cleat_dataset *first = images_open_ok(path, &options);
    cleat_error error = {0};
    float a[12 * 12 * 3], b[12 * 12 * 3];
    assert_int_equal(cleat_dataset_save(first, folder, &error), CLEAT_OK);
    make_classes("others", 1);
    test_folder("others/cow");
    add_image("others", "cow/1.png", 30, 20, 1, 7);
    add_image("others", "loose.jpg", 30, 20, 1, 8);
    test_write_text(test_path("others/notes.txt"), "x");
    options = images_small_options();
    options.fitted = folder;
    images_expect_failure(test_path("others"), &options, "others/cow|unknown class 'cow': the model has dog, cat");
    options.predict = true;
    cleat_dataset *second = images_open_ok(test_path("others"), &options);
    assert_int_equal(cleat_dataset_count(second), 4);
    assert_int_equal(cleat_image_describe(second).samples[CLEAT_SPLIT_TEST], 4);
    assert_int_equal(cleat_image_describe(second).channels, 3);
    assert_int_equal(cleat_image_describe(second).file_width, 12);
    assert_true(cleat_images_class_samples(first, 0) > 0);
    for (size_t i = 0; i < 2; ++i) /* the means of the training part, not of this part */
        assert_int_equal(cleat_images_class_samples(second, i), cleat_images_class_samples(first, i));
    assert_int_equal(images_fill(second, images_sample_called(second, "cow/1.png"), NULL, b), CLEAT_NO_CLASS);
    assert_int_equal(images_fill(second, images_sample_called(second, "loose.jpg"), NULL, b), CLEAT_NO_CLASS);
    assert_int_equal(images_fill(second, images_sample_called(second, "dog/0.png"), NULL, b), 0);
    assert_int_equal(images_fill(first, images_sample_called(first, "dog/0.png"), NULL, a), 0);
    assert_memory_equal(a, b, sizeof a); /* the same image, the same means */
    cleat_dataset_destroy(second);
    second = images_open_ok(test_path("learnt/dog/0.png"), &options);
    assert_int_equal(cleat_dataset_count(second), 1);
    assert_string_equal(cleat_dataset_id(second, 0), "0.png");
    assert_int_equal(images_fill(second, 0, NULL, b), CLEAT_NO_CLASS);
    assert_memory_equal(a, b, sizeof a);
    cleat_dataset_destroy(second);
    cleat_dataset_destroy(first);

    const char *json = images_lasting(test_path("model/pictures.json"));
    test_write_text(json,
                    "{\"channels\": 3, \"means\": [0.5], \"deviations\": [1, 1, 1], \"classes\": [\"a\", \"b\"]}");
    images_expect_failure(path, &options, "pictures.json|means|from the run folder again");
    test_write_text(json, "{\"channels\": 1, \"means\": [0.5], \"deviations\": [0], \"classes\": [\"a\", \"b\"]}");
    images_expect_failure(path, &options, "must be greater than 0");
    test_write_text(json,
                    "{\"channels\": 1, \"means\": [0.5], \"deviations\": [1], \"classes\": [], \"positive\": 0.5}");
    images_expect_failure(path, &options, "no classes");
    test_write_text(
        json,
        "{\"channels\": 1, \"means\": [0.5], \"deviations\": [1], \"classes\": [\"a\", \"b\"], \"samples\": [1]}");
    images_expect_failure(path, &options, "a count for each class");
    test_write_text(json, "{\"channels\": 1, \"means\": [0.5], \"deviations\": [1], \"classes\": [\"dog\", \"cat\"]}");
    second = images_open_ok(test_path("learnt"), &options); /* a model of an earlier release */
    assert_int_equal(cleat_images_class_samples(second, 0), 0);
    cleat_dataset_destroy(second);
    test_write_text(json, "junk");
    images_expect_failure(path, &options, "pictures.json");
    unlink(json);
    images_expect_failure(path, &options, "pictures.json");
}

/* --- memory --------------------------------------------------------------------------------------------------- */

static void memory_that_runs_out_is_an_error(void **state) {
    (void)state;
    cleat_image_options options = images_small_options();
    options.channels = 3;
    images_expect_memory_errors(make_classes("memory", 2), &options);
}

/* Values that are all 2, and values of 1 to 4. */
static void a_constant_channel_has_std_one(void **state) {
    (void)state;
    const cleat_channel_sums sums = {.pixels = 4, .values = {8, 10}, .squares = {16, 30}};
    cleat_image_preprocessor fitted = {0};
    images_warnings[0] = 0;
    cleat_image_preprocessor_fit(&fitted, "photos", 2, &sums);
    assert_true(fabs(fitted.mean[0] - 2.0 / 255) < 1e-12 && fitted.std[0] == 1);
    assert_true(fabs(fitted.mean[1] - 2.5 / 255) < 1e-12 && fabs(fitted.std[1] - sqrt(1.25) / 255) < 1e-12);
    assert_non_null(strstr(images_warnings, "photos: channel 0 is constant"));
    assert_null(strstr(images_warnings, "channel 1"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_are_classes),
        cmocka_unit_test(samples_are_centred_squares),
        cmocka_unit_test(a_constant_channel_has_std_one),
        cmocka_unit_test(named_parts_are_splits),
        cmocka_unit_test(a_class_called_train_is_a_class),
        cmocka_unit_test(hashes_split_what_names_no_parts),
        cmocka_unit_test(folders_may_be_nested),
        cmocka_unit_test(classes_may_be_given_in_order),
        cmocka_unit_test(bad_folders_are_refused),
        cmocka_unit_test(truncated_images_stop_the_filling),
        cmocka_unit_test(channels_follow_the_training_part),
        cmocka_unit_test(threads_fill_the_same_bits),
        cmocka_unit_test(means_may_be_given),
        cmocka_unit_test(the_fitted_preprocessor_is_used_again),
        cmocka_unit_test(memory_that_runs_out_is_an_error),
    };
    return cmocka_run_group_tests(tests, images_set_up, test_remove_all);
}

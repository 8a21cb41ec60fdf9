/* Class masks: ids from every kind of PNG file, unlabelled pixels, names, counts, and values outside the
 * classes. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "cleat/data.h"
#include "core/memory.h"
#include "data/image/masks.h"
#include "files.h"
#include "platform/files.h"

enum { SIDE = 8, PIXELS = SIDE * SIDE };

static char folder[512];

static const char *in(const char *name) {
    static char paths[4][1024];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void write_mask(const char *name, const uint8_t *ids, const uint8_t *palette) {
    cleat_error error = {0};
    const cleat_image image = {.height = SIDE, .width = SIDE, .channels = 1, .pixels = (uint8_t *)ids};
    if (cleat_image_write_png_ids(in(name), &image, palette, &error) != CLEAT_OK) fail_msg("%s", error.text);
}

/* Sample i has the values i, i + 1, ... below `values`, and 255 in the first row. */
static void ids_of(int sample, int values, uint8_t ids[PIXELS]) {
    for (int p = 0; p < PIXELS; ++p) ids[p] = p < SIDE ? 255 : (uint8_t)((p + sample) % values);
}

/* Four samples whose masks have `values` values, every other one with a palette. "b" is for validation. */
static void write_samples(const char *name, int values) {
    char below[64], file[64];
    uint8_t ids[PIXELS], pixels[PIXELS] = {0}, palette[768];
    for (int i = 0; i < 768; ++i) palette[i] = (uint8_t)(255 - i);
    snprintf(folder, sizeof folder, "%s", test_folder(name));
    for (int part = 0; part < 2; ++part) {
        snprintf(below, sizeof below, "%s/%s", name, part ? "masks" : "images");
        test_folder(below);
    }
    for (int i = 0; i < 4; ++i) {
        ids_of(i, values, ids);
        pixels[0] = (uint8_t)(100 + i);
        snprintf(file, sizeof file, "images/%c.png", 'a' + i);
        write_mask(file, pixels, NULL);
        snprintf(file, sizeof file, "masks/%c.png", 'a' + i);
        write_mask(file, ids, i % 2 ? palette : NULL);
    }
    test_write_text(in("val.txt"), "b\n");
}

static cleat_image_options options_for(int64_t classes) {
    cleat_image_options options = cleat_image_defaults();
    options.size = SIDE;
    options.mask_classes = classes;
    return options;
}

static cleat_dataset *open_masks(const cleat_image_options *options) {
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    if (cleat_masks_open(folder, options, &dataset, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return dataset;
}

static void expect_refused(const cleat_image_options *options, const char *wanted) {
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    assert_int_not_equal(cleat_masks_open(folder, options, &dataset, &error), CLEAT_OK);
    if (!strstr(error.text, wanted)) fail_msg("'%s' lacks '%s'", error.text, wanted);
    assert_null(dataset);
}

static void fill_mask(const cleat_dataset *dataset, size_t sample, const cleat_rng_key *key, int32_t mask[PIXELS]) {
    cleat_error error = {0};
    void *slots[2] = {NULL, mask};
    if (cleat_dataset_fill(dataset, sample, SIDE, key, slots, &error) != CLEAT_OK) fail_msg("%s", error.text);
}

static void values_are_classes(void **state) {
    int32_t mask[PIXELS];
    uint8_t ids[PIXELS];
    int64_t counts[5] = {0};
    (void)state;
    write_samples("values", 5);
    const cleat_image_options options = options_for(5);
    cleat_dataset *dataset = open_masks(&options);
    assert_int_equal(cleat_image_describe(dataset).classes, 5);
    for (int i = 0; i < 4; ++i) {
        ids_of(i, 5, ids);
        fill_mask(dataset, (size_t)i, NULL, mask);
        for (int p = 0; p < PIXELS; ++p) {
            assert_int_equal(mask[p], ids[p] == 255 ? -1 : ids[p]);
            if (ids[p] < 5 && i != 1) ++counts[ids[p]];
        }
    }
    for (size_t c = 0; c < 5; ++c) assert_int_equal(cleat_masks_class_pixels(dataset, c), counts[c]);
    assert_string_equal(cleat_masks_class(dataset, 4), "class_4");
    assert_null(cleat_masks_class(dataset, 5));
    assert_int_equal(cleat_masks_class_pixels(dataset, 5), 0);
    cleat_dataset_destroy(dataset);
}

/* An object labelled 255 is not a class: its share is logged, as a warning if a class is missing. */
static void unlabelled_pixels_are_named(void **state) {
    (void)state;
    write_samples("unlabelled", 5);
    cleat_image_options options = options_for(5);
    test_keep_log();
    cleat_dataset_destroy(open_masks(&options));
    assert_non_null(strstr(test_logged(), "12.5 % of the pixels of the training masks are unlabelled (255)"));
    assert_null(strstr(test_logged(), "warning: "));
    options.mask_classes = 6;
    test_keep_log();
    cleat_dataset_destroy(open_masks(&options));
    assert_non_null(strstr(test_logged(), "warning: "));
    assert_non_null(strstr(test_logged(), "or leave data.classes out for masks of black and white"));
}

static void reduced_labels_begin_at_one(void **state) {
    int32_t mask[PIXELS];
    uint8_t ids[PIXELS];
    (void)state;
    write_samples("reduced", 5);
    cleat_image_options options = options_for(4);
    options.reduce_labels = true;
    cleat_dataset *dataset = open_masks(&options);
    ids_of(3, 5, ids);
    fill_mask(dataset, 3, NULL, mask);
    for (int p = 0; p < PIXELS; ++p) assert_int_equal(mask[p], ids[p] == 255 || ids[p] == 0 ? -1 : ids[p] - 1);
    cleat_dataset_destroy(dataset);
    options.mask_classes = 3;
    expect_refused(&options,
                   "not a class: with data.classes = 3 and data.reduce_labels they are 1 to 3, and 0 and 255 are");
}

/* Augmentation moves classes but never mixes them. */
static void augmented_masks_have_the_same_classes(void **state) {
    int32_t still[PIXELS], mask[PIXELS];
    int changed = 0;
    (void)state;
    write_samples("augmented", 3);
    cleat_image_options options = options_for(3);
    options.augment = (cleat_augment){.crop_min = 0.3, .flip = true, .shift = 2};
    cleat_dataset *dataset = open_masks(&options);
    fill_mask(dataset, 0, NULL, still);
    for (uint32_t epoch = 0; epoch < 16; ++epoch) {
        const cleat_rng_key key = {.seed = 7, .epoch = epoch};
        fill_mask(dataset, 0, &key, mask);
        for (int p = 0; p < PIXELS; ++p) assert_true(mask[p] >= -1 && mask[p] < 3);
        changed += memcmp(mask, still, sizeof mask) != 0;
    }
    assert_true(changed > 8);
    cleat_dataset_destroy(dataset);
}

static void names_come_from_the_options_or_a_file(void **state) {
    (void)state;
    write_samples("named", 3);
    cleat_image_options options = options_for(0);
    options.classes = " sky sea  land ";
    cleat_dataset *dataset = open_masks(&options);
    assert_int_equal(cleat_image_describe(dataset).classes, 3);
    assert_string_equal(cleat_masks_class(dataset, 2), "land");
    cleat_dataset_destroy(dataset);
    options.mask_classes = 4;
    expect_refused(&options, "data.classes = 4, but data.labels has 3 names");
    options = options_for(3);
    test_write_text(in("labels.txt"), "blue sky\r\nsea\r\ndry land");
    dataset = open_masks(&options);
    assert_string_equal(cleat_masks_class(dataset, 0), "blue sky");
    assert_string_equal(cleat_masks_class(dataset, 2), "dry land");
    cleat_dataset_destroy(dataset);
    test_write_text(in("labels.txt"), "sky\nsea\n");
    expect_refused(&options, "labels.txt: has 2 names, but data.classes is 3");
    options.classes = "one";
    options.mask_classes = 0;
    expect_refused(&options, "there must be 2 to 255");
    options.classes = NULL;
    options.reduce_labels = true;
    expect_refused(&options, "set data.classes");
}

/* id2label of config.json if it names every class, else numbers. Out of memory never results in wrong names. */
static void names_come_from_a_configuration(void **state) {
    (void)state;
    write_samples("configured", 3);
    cleat_image_options options = options_for(3);
    char config[512];
    snprintf(config, sizeof config, "%s", in("config.json"));
    options.names = config;
    static const char *const partial[] = {"{\"id2label\":{\"0\":\"sky\",\"1\":\"sea\"}}",
                                          "{\"id2label\":{\"0\":\"sky\",\"1\":\"sea\",\"3\":\"land\"}}",
                                          "{\"id2label\":{\"0\":\"sky\",\"1\":\" \",\"2\":\"land\"}}", "{}", "no JSON"};
    static const char *const numbers[] = {"class_0", "class_1", "class_2"};
    for (size_t i = 0; i < sizeof partial / sizeof *partial; ++i) {
        test_write_text(config, partial[i]);
        cleat_dataset *dataset = open_masks(&options);
        for (size_t c = 0; c < 3; ++c) assert_string_equal(cleat_masks_class(dataset, c), numbers[c]);
        cleat_dataset_destroy(dataset);
    }
    test_write_text(config, "{\"id2label\":{\"0\":\"blue sky\",\"1\":\"sea\",\"2\":\"land\"}}");
    int failed = 0, opened = 0;
    for (long n = 0; n < 400 && opened < 20; ++n) {
        cleat_dataset *dataset = NULL;
        cleat_error error = {0};
        cleat_fail_allocation(n);
        cleat_status status = cleat_masks_open(in(""), &options, &dataset, &error);
        cleat_fail_allocation(0);
        failed += status != CLEAT_OK;
        opened += !status;
        if (status) {
            assert_int_equal(status, CLEAT_ERR_MEMORY);
            continue;
        }
        assert_string_equal(cleat_masks_class(dataset, 0), "blue sky");
        assert_string_equal(cleat_masks_class(dataset, 2), "land");
        cleat_dataset_destroy(dataset);
    }
    assert_true(failed > 10);
    remove(config);
}

static void fitted_classes_are_used_again(void **state) {
    cleat_error error = {0};
    char fitted[512];
    (void)state;
    write_samples("fitted", 3);
    test_write_text(in("labels.txt"), "sky\nsea\nland\n");
    cleat_image_options options = options_for(3);
    cleat_dataset *dataset = open_masks(&options);
    snprintf(fitted, sizeof fitted, "%s", test_folder("fitted_to"));
    assert_int_equal(cleat_dataset_save(dataset, fitted, &error), CLEAT_OK);
    test_write_text(in("labels.txt"), "other\nnames\nnow\n");
    options.fitted = fitted;
    cleat_dataset *again = open_masks(&options);
    assert_string_equal(cleat_masks_class(again, 1), "sea");
    for (size_t c = 0; c < 3; ++c)
        assert_int_equal(cleat_masks_class_pixels(again, c), cleat_masks_class_pixels(dataset, c));
    options.mask_classes = 4;
    expect_refused(&options, "trained with 3 classes");
    options.mask_classes = 0;
    expect_refused(&options, "not trained on masks of black and white");
    cleat_dataset_destroy(again);
    cleat_dataset_destroy(dataset);
}

static void what_is_no_class_is_refused(void **state) {
    uint8_t ids[PIXELS] = {0};
    int32_t mask[PIXELS];
    void *slots[2] = {NULL, mask};
    cleat_error error = {0};
    (void)state;
    write_samples("wrong", 3);
    cleat_image_options options = options_for(3);
    ids[3 * SIDE + 5] = 7;
    write_mask("masks/c.png", ids, NULL);
    expect_refused(&options,
                   "masks/c.png: the value 7 at row 3, column 5 is not a class: with data.classes = 3 they are 0 to 2");
    /* A mask of the validation part is read when a sample is filled. */
    write_samples("wrong", 3);
    write_mask("masks/b.png", ids, NULL);
    cleat_dataset *dataset = open_masks(&options);
    assert_int_equal(cleat_dataset_fill(dataset, 1, SIDE, NULL, slots, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "masks/b.png: the value 7 at row 3, column 5"));
    cleat_dataset_destroy(dataset);
    uint8_t colours[3 * PIXELS] = {0};
    colours[4] = 9;
    const cleat_image image = {.height = SIDE, .width = SIDE, .channels = 3, .pixels = colours};
    assert_int_equal(cleat_image_write_png(in("masks/a.png"), &image, &error), CLEAT_OK);
    expect_refused(&options, "the mask has colours (0 9 0 at row 0, column 1)");
    colours[3] = colours[5] = 2;
    colours[4] = 2;
    assert_int_equal(cleat_image_write_png(in("masks/a.png"), &image, &error), CLEAT_OK);
    dataset = open_masks(&options); /* an RGB file of greys */
    fill_mask(dataset, 0, NULL, mask);
    assert_true(mask[0] == 0 && mask[1] == 2);
    cleat_dataset_destroy(dataset);
}

/* Greys of 1, 2 and 4 bits are not scaled to 0 .. 255. */
static void few_bits_stay_as_they_are(void **state) {
    /* 2 x 2 pixels of 4 bits with the values 1, 2, 3, 0, written by Python's zlib */
    static const uint8_t file[] = {0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48,
                                   0x44, 0x52, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x02, 0x04, 0x00, 0x00, 0x00,
                                   0x00, 0x92, 0x2d, 0xbf, 0xf9, 0x00, 0x00, 0x00, 0x0c, 0x49, 0x44, 0x41, 0x54, 0x78,
                                   0x9c, 0x63, 0x10, 0x62, 0x30, 0x00, 0x00, 0x00, 0x6a, 0x00, 0x43, 0xbd, 0xdf, 0xd3,
                                   0xdc, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};
    cleat_image ids = {0};
    cleat_error error = {0};
    (void)state;
    const char *path = test_path("few.png");
    test_write(path, file, sizeof file);
    if (cleat_image_read_ids(path, &ids, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_true(ids.height == 2 && ids.width == 2 && ids.channels == 1);
    assert_memory_equal(ids.pixels, ((const uint8_t[]){1, 2, 3, 0}), 4);
    cleat_image_free(&ids);
    test_write_text(path, "JPEG");
    assert_int_equal(cleat_image_read_ids(path, &ids, &error), CLEAT_ERR_FORMAT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_classes),
        cmocka_unit_test(unlabelled_pixels_are_named),
        cmocka_unit_test(reduced_labels_begin_at_one),
        cmocka_unit_test(augmented_masks_have_the_same_classes),
        cmocka_unit_test(names_come_from_the_options_or_a_file),
        cmocka_unit_test(names_come_from_a_configuration),
        cmocka_unit_test(fitted_classes_are_used_again),
        cmocka_unit_test(what_is_no_class_is_refused),
        cmocka_unit_test(few_bits_stay_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}

/* Masks: suffixes of their names, images in the same folder, and values of 16 bits. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <png.h>
#include <stdio.h>
#include <string.h>

#include "cleat/images.h"
#include "data/image/file.h"
#include "files.h"
#include "platform/files.h"

enum { SIDE = 8, PIXELS = SIDE * SIDE, SAMPLES = 3 };

static const char *const names[SAMPLES] = {"ant", "bee", "cat"};

static const char *in(const char *folder, const char *name) {
    static char paths[4][1024];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void write_image(const char *folder, const char *name, const uint8_t *pixels) {
    const cleat_image image = {.height = SIDE, .width = SIDE, .channels = 1, .pixels = (uint8_t *)pixels};
    assert_int_equal(cleat_image_write_png(in(folder, name), &image, NULL), CLEAT_OK);
}

static void write_wide(const char *path, const uint16_t *values) {
    png_image image = {.version = PNG_IMAGE_VERSION, .width = SIDE, .height = SIDE, .format = PNG_FORMAT_LINEAR_Y};
    assert_true(png_image_write_to_file(&image, path, 0, values, 0, NULL));
}

/* Pixel i of the mask of sample s is white if i % 5 > s. */
static void write_samples(const char *folder, const char *images, const char *masks) {
    uint8_t image[PIXELS], mask[PIXELS];
    char name[64];
    for (int s = 0; s < SAMPLES; ++s) {
        for (int i = 0; i < PIXELS; ++i) mask[i] = i % 5 > s ? 255 : 0;
        for (int i = 0; i < PIXELS; ++i) image[i] = (uint8_t)(mask[i] / 2 + s);
        snprintf(name, sizeof name, images, names[s]);
        write_image(folder, name, image);
        snprintf(name, sizeof name, masks, names[s]);
        write_image(folder, name, mask);
    }
}

static const char *make_folder(const char *name) {
    static char kept[8][1024];
    static int next;
    char below[128], *folder = kept[next++ % 8];
    snprintf(folder, sizeof kept[0], "%s", test_folder(name));
    snprintf(below, sizeof below, "%s/images", name);
    test_folder(below);
    return folder;
}

static const char *make_two(const char *name) {
    char below[128];
    snprintf(below, sizeof below, "%s/masks", name);
    const char *folder = make_folder(name);
    test_folder(below);
    return folder;
}

static cleat_image_options small_options(void) {
    cleat_image_options options = cleat_image_defaults();
    options.size = SIDE;
    options.val_fraction = 0;
    return options;
}

static void expect_samples(const char *path, const cleat_image_options *options) {
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    if (cleat_masks_open(path, options, &dataset, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_int_equal(cleat_dataset_count(dataset), SAMPLES);
    for (size_t s = 0; s < SAMPLES; ++s) {
        int32_t mask[PIXELS];
        void *slots[2] = {NULL, mask};
        assert_string_equal(cleat_dataset_id(dataset, s), names[s]);
        assert_int_equal(cleat_dataset_fill(dataset, s, SIDE, NULL, slots, &error), CLEAT_OK);
        for (int i = 0; i < PIXELS; ++i) assert_int_equal(mask[i], i % 5 > (int)s);
    }
    cleat_dataset_destroy(dataset);
}

static void expect_refused(const char *path, const cleat_image_options *options, const char *wanted) {
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    assert_int_not_equal(cleat_masks_open(path, options, &dataset, &error), CLEAT_OK);
    if (!strstr(error.text, wanted)) fail_msg("'%s' lacks '%s'", error.text, wanted);
}

static void suffixes_are_found(void **state) {
    (void)state;
    static const struct {
        const char *images, *masks, *suffix, *log;
        bool two; /* folders */
    } kinds[] = {
        {"images/%s.png", "masks/%s.png", "", "", true},
        {"images/%s.png", "masks/%s_mask.png", "", "NAME_mask.png", true},
        {"images/%s.png", "masks/%s_mask.png", "_mask", "NAME_mask.png", true},
        {"images/%s.png", "masks/%s-seg.png", "-seg", "NAME-seg.png", true},
        {"images/%s.png", "images/%s_mask.png", "", "NAME_mask.png", false},
        {"%s.png", "%s_mask.png", "", "NAME_mask.png", false},
        {"%s.png", "%s.label.png", ".label", "NAME.label.png", false},
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; ++k) {
        char name[32];
        snprintf(name, sizeof name, "kind%zu", k);
        const char *folder = kinds[k].two ? make_two(name) : make_folder(name);
        if (!strchr(kinds[k].images, '/')) assert_int_equal(rmdir(in(folder, "images")), 0);
        write_samples(folder, kinds[k].images, kinds[k].masks);
        cleat_image_options options = small_options();
        options.mask_suffix = kinds[k].suffix;
        test_keep_log();
        expect_samples(folder, &options);
        const char *log = test_logged();
        assert_true(*kinds[k].log ? strstr(log, kinds[k].log) != NULL : !strstr(log, "the masks are"));
    }
}

static void odd_names_are_refused(void **state) {
    (void)state;
    const char *folder = make_two("odd");
    cleat_image_options options = small_options();
    write_samples(folder, "images/%s.png", "masks/%s_mask.png");
    assert_int_equal(rename(in(folder, "masks/bee_mask.png"), in(folder, "masks/bee.png")), 0);
    expect_refused(folder, &options, "images/bee.png: an image without its mask");
    assert_int_equal(rename(in(folder, "masks/bee.png"), in(folder, "masks/bee_mask.gif")), 0);
    expect_refused(folder, &options, "bee_mask.gif: GIF masks are not read; convert them");
    options.mask_suffix = "_seg";
    expect_refused(folder, &options, "rename it to ant_seg.png");
    options.mask_suffix = "";
    folder = make_folder("odd_mixed");
    write_samples(folder, "images/%s.png", "images/%s.png");
    expect_refused(folder, &options, "the folder masks/ is missing");
    write_samples(folder, "images/%s.png", "images/%s_mask.png");
    assert_int_equal(remove(in(folder, "images/cat.png")), 0);
    expect_refused(folder, &options, "cat_mask.png: a mask without its image");
}

/* A prediction for a folder that also has masks: a suffix tells them from images. */
static void predictions_leave_masks_out(void **state) {
    (void)state;
    const char *folder = make_folder("predict");
    cleat_image_options options = small_options();
    cleat_dataset *dataset = NULL;
    char fitted[1024];
    write_samples(folder, "images/%s.png", "images/%s_mask.png");
    assert_int_equal(cleat_masks_open(folder, &options, &dataset, NULL), CLEAT_OK);
    snprintf(fitted, sizeof fitted, "%s", test_folder("predict_fitted"));
    assert_int_equal(cleat_dataset_save(dataset, fitted, NULL), CLEAT_OK);
    cleat_dataset_destroy(dataset);
    options.fitted = fitted;
    options.predict = true;
    options.mask_suffix = "_mask";
    assert_int_equal(cleat_masks_open(folder, &options, &dataset, NULL), CLEAT_OK);
    assert_int_equal(cleat_dataset_count(dataset), SAMPLES);
    cleat_dataset_destroy(dataset);
}

static void ids_of_16_bits_stay_as_they_are(void **state) {
    (void)state;
    const char *folder = make_two("wide");
    uint16_t ids[PIXELS];
    int32_t mask[PIXELS];
    void *slots[2] = {NULL, mask};
    cleat_dataset *dataset = NULL;
    cleat_image_options options = small_options();
    options.mask_classes = 200;
    write_samples(folder, "images/%s.png", "masks/%s.png");
    for (int i = 0; i < PIXELS; ++i) ids[i] = i == 9 ? 255 : (uint16_t)(3 * i); /* 255: unlabelled */
    for (int s = 0; s < SAMPLES; ++s) {
        char name[64];
        snprintf(name, sizeof name, "masks/%s.png", names[s]);
        write_wide(in(folder, name), ids);
    }
    assert_int_equal(cleat_masks_open(folder, &options, &dataset, NULL), CLEAT_OK);
    assert_int_equal(cleat_dataset_fill(dataset, 1, SIDE, NULL, slots, NULL), CLEAT_OK);
    for (int i = 0; i < PIXELS; ++i) assert_int_equal(mask[i], i == 9 ? -1 : 3 * i);
    assert_int_equal(cleat_masks_class_pixels(dataset, 63), SAMPLES);
    cleat_dataset_destroy(dataset);
    ids[2 * SIDE + 3] = 300; /* 44 in 8 bits */
    write_wide(in(folder, "masks/cat.png"), ids);
    expect_refused(folder, &options,
                   "masks/cat.png: the value 300 at row 2, column 3 is not a class: with data.classes");
}

/* 0 and 65535 are black and white; numbers of objects, or what a camera of 12 bits gives, are not. */
static void black_and_white_of_16_bits(void **state) {
    (void)state;
    const char *folder = make_two("wide_binary");
    uint16_t values[PIXELS];
    const cleat_image_options options = small_options();
    write_samples(folder, "images/%s.png", "masks/%s.png");
    for (int s = 0; s < SAMPLES; ++s) {
        char name[64];
        snprintf(name, sizeof name, "masks/%s.png", names[s]);
        for (int i = 0; i < PIXELS; ++i) values[i] = i % 5 > s ? 65535 : 0;
        write_wide(in(folder, name), values);
    }
    expect_samples(folder, &options);
    for (int i = 0; i < PIXELS; ++i) values[i] = i % 5 > 2 ? 40000 : 7;
    write_wide(in(folder, "masks/cat.png"), values);
    expect_refused(folder, &options, "masks/cat.png: the brightest pixel of the mask is 40000, but white is 65535");
    for (int i = 0; i < PIXELS; ++i) values[i] = i % 5 > 2;
    write_wide(in(folder, "masks/cat.png"), values);
    expect_refused(folder, &options, "masks/cat.png: the brightest pixel of the mask is 1, but white is 65535");
}

/* A camera of 12 bits in files of 16: a warning, since few of the 256 levels are left. */
static void dark_pictures_of_16_bits_are_named(void **state) {
    (void)state;
    const char *folder = make_two("dark");
    uint16_t values[PIXELS];
    const cleat_image_options options = small_options();
    cleat_dataset *dataset = NULL;
    write_samples(folder, "images/%s.png", "masks/%s.png");
    for (int bright = 0; bright < 2; ++bright) {
        for (int i = 0; i < PIXELS; ++i) values[i] = (uint16_t)(i * (bright ? 1000 : 65));
        write_wide(in(folder, "images/bee.png"), values);
        test_keep_log();
        assert_int_equal(cleat_masks_open(folder, &options, &dataset, NULL), CLEAT_OK);
        const char *log = test_logged();
        assert_true(bright == !strstr(log, "warning: "));
        assert_true(bright || strstr(log, "values up to 4095, which leaves 16 levels"));
        cleat_dataset_destroy(dataset);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(suffixes_are_found),          cmocka_unit_test(odd_names_are_refused),
        cmocka_unit_test(predictions_leave_masks_out), cmocka_unit_test(ids_of_16_bits_stay_as_they_are),
        cmocka_unit_test(black_and_white_of_16_bits),  cmocka_unit_test(dark_pictures_of_16_bits_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}

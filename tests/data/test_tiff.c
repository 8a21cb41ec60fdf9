/* TIFF files of tifffile and Pillow (tests/data/tiff/make.py): pixels, refusals, damaged and hostile files. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "data/image/file.h"
#include "drawn.h"
#include "files.h"
#include "platform/files.h"
#include "platform/processes.h"

static const char *beside(const char *name) {
    static char paths[4][1024];
    static int next;
    const char *root = getenv("CLEAT_SOURCE_DIR");
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/tests/data/tiff/%s", root ? root : ".", name);
    return path;
}

/* test_write to a new file: ext4 writes one that was cut to nothing to the disk when it is closed. */
static void put(const char *path, const void *data, size_t size) {
    (void)remove(path);
    test_write(path, data, size);
}

/* Calls use(file, wanted) for each line of cases.tsv. */
static int each_case(void (*use)(const char *file, const char *wanted)) {
    size_t size = 0;
    int count = 0;
    char *text = test_read(beside("cases.tsv"), &size), *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), ++count) {
        char *tab = strchr(line, '\t');
        assert_non_null(tab);
        *tab = 0;
        /* the libtiff of the build for Windows lacks these */
        const bool lost = !CLEAT_FORKS && (strstr(line, "webp") || strstr(line, "lerc") || strstr(line, "zstd") ||
                                           strstr(line, "lzma"));
        if (!lost) use(line, tab + 1);
    }
    free(text);
    return count;
}

static void check_pixels(const char *file, const char *wanted) {
    cleat_image image = {0}, expected = {0}, probed = {0};
    cleat_error error = {0};
    if (*wanted == '!') return;
    if (cleat_image_read(beside(file), 0, &image, &error)) fail_msg("%s", error.text);
    assert_int_equal(cleat_image_read(beside(wanted), 0, &expected, &error), CLEAT_OK);
    if (image.height != expected.height || image.width != expected.width || image.channels != expected.channels ||
        drawn_difference(&image, &expected) > 0)
        fail_msg("%s differs from %s", file, wanted);
    assert_int_equal(cleat_image_probe(beside(file), &probed, &error), CLEAT_OK);
    assert_true(probed.height == image.height && probed.width == image.width && probed.channels == image.channels);
    assert_true(probed.alpha == (strstr(file, "alpha") != NULL) && !probed.pixels);
    cleat_image_free(&image);
    cleat_image_free(&expected);
}

static void pixels_are_those_that_were_written(void **state) {
    (void)state;
    assert_true(each_case(check_pixels) > 50);
}

static void check_refusal(const char *file, const char *wanted) {
    cleat_image image = {.height = 77};
    cleat_error error = {0};
    if (*wanted != '!') return;
    for (int probe = 0; probe < 2; ++probe) {
        const cleat_status status =
            probe ? cleat_image_probe(beside(file), &image, &error) : cleat_image_read(beside(file), 0, &image, &error);
        if (status != CLEAT_ERR_FORMAT || !strstr(error.text, wanted + 1) || !strstr(error.text, file))
            fail_msg("%s: no '%s' in: %s", file, wanted + 1, error.text);
        assert_true(image.height == 77 && !image.pixels);
    }
}

static void other_kinds_are_refused_by_name(void **state) {
    (void)state;
    (void)each_case(check_refusal);
}

/* Greys are ids; white that is 0 is not turned round, and few bits are not scaled. */
static void ids_stay_as_they_are(void **state) {
    (void)state;
    static const struct {
        const char *ids, *expected;
        int white; /* id = white - value of the expected; 0: id = value */
    } kinds[] = {
        {"grey_lzw.tif", "grey.png", 0}, {"grey_white0.tif", "grey.png", 255}, {"one_packbits.tif", "one.png", 1}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; ++k) {
        cleat_image ids = {0}, expected = {0};
        cleat_error error = {0};
        if (cleat_image_read_ids(beside(kinds[k].ids), &ids, &error)) fail_msg("%s", error.text);
        assert_int_equal(cleat_image_read(beside(kinds[k].expected), 0, &expected, &error), CLEAT_OK);
        for (int64_t i = 0; i < ids.height * ids.width; ++i)
            assert_int_equal(ids.pixels[i], k == 2           ? expected.pixels[i] > 0
                                            : kinds[k].white ? kinds[k].white - expected.pixels[i]
                                                             : expected.pixels[i]);
        cleat_image_free(&ids);
        cleat_image_free(&expected);
    }
    cleat_image ids = {0};
    cleat_error error = {0};
    if (!CLEAT_FORKS) return;
    assert_int_equal(cleat_image_read_ids(beside("wide_zstd.tif"), &ids, &error), CLEAT_OK);
    assert_true(ids.peak > 255 && ids.peak_at < ids.height * ids.width);
    cleat_image_free(&ids);
    assert_int_equal(cleat_image_read_ids(beside("grey_jpeg.tif"), &ids, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "JPEG"));
}

/* Whatever is cut off, the file is refused, and nothing is printed. */
static void truncated(const char *file, const char *wanted) {
    size_t size = 0;
    cleat_image whole = {0};
    if (*wanted == '!') return;
    char *bytes = test_read(beside(file), &size);
    const char *path = test_path("cut.tif");
    assert_int_equal(cleat_image_read(beside(file), 0, &whole, NULL), CLEAT_OK);
    for (size_t kept = 0; kept < size; kept += 1 + size / 23) {
        cleat_image image = {0};
        cleat_error error = {0};
        put(path, bytes, kept);
        if (cleat_image_read(path, 0, &image, &error) == CLEAT_OK) { /* only metadata were cut off */
            if (drawn_difference(&image, &whole) > 0) fail_msg("%s: %zu of %zu bytes", file, kept, size);
            cleat_image_free(&image);
        } else if (!strstr(error.text, path) && kept)
            fail_msg("no path in: %s", error.text);
    }
    cleat_image_free(&whole);
    free(bytes);
}

static void truncated_files_are_refused(void **state) {
    (void)state;
    (void)each_case(truncated);
}

/* Each byte of the header and of the last bytes, changed: an image or an error, no crash. */
static void changed(const char *file, const char *wanted) {
    size_t size = 0;
    (void)wanted;
    char *bytes = test_read(beside(file), &size);
    for (size_t at = 2; at < size && at < 200; at += 7)
        for (int value = 0; value < 256; value += 127) {
            cleat_image image = {0};
            const char kept = bytes[at];
            bytes[at] = (char)value;
            put(test_path("changed.tif"), bytes, size);
            if (cleat_image_read(test_path("changed.tif"), 3, &image, NULL) == CLEAT_OK) cleat_image_free(&image);
            bytes[at] = kept;
        }
    free(bytes);
}

static void changed_files_are_read_or_refused(void **state) {
    (void)state;
    (void)each_case(changed);
}

/* A page of 16 tags or fewer: little endian, one strip of one byte. */
static void write_page(const char *path, const uint32_t tags[][2], size_t count) {
    uint8_t bytes[512] = {'I', 'I', 42, 0, 8};
    size_t at = 8;
    bytes[at++] = (uint8_t)count;
    bytes[at++] = 0;
    for (size_t i = 0; i < count; ++i, at += 12) {
        bytes[at] = (uint8_t)tags[i][0];
        bytes[at + 1] = (uint8_t)(tags[i][0] >> 8);
        bytes[at + 2] = 4; /* LONG */
        bytes[at + 4] = 1;
        memcpy(bytes + at + 8, &tags[i][1], 4);
    }
    test_write(path, bytes, at + 4);
}

static void hostile_sizes_are_refused(void **state) {
    (void)state;
    static const uint32_t huge[][2] = {{256, 2000000000}, {257, 2000000000}, {258, 8}, {262, 1},
                                       {273, 8},          {278, 2000000000}, {279, 1}};
    static const uint32_t tile[][2] = {{256, 8},       {257, 8},       {258, 8}, {262, 1},
                                       {322, 1 << 20}, {323, 1 << 20}, {324, 8}, {325, 1}};
    static const uint32_t long_strip[][2] = {{256, 16000}, {257, 16700}, {258, 8}, {262, 1},
                                             {273, 8},     {278, 16700}, {279, 1}};
    static const uint32_t none[][2] = {{258, 8}, {262, 1}};
    const char *path = test_path("hostile.tif");
    const struct {
        const uint32_t (*tags)[2];
        size_t count;
        const char *why;
    } kinds[] = {{huge, 7, "the maximum is"},
                 {tile, 8, "damaged or truncated TIFF"},
                 {long_strip, 7, "damaged or truncated TIFF"},
                 {none, 2, "TIFF"}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; ++k) {
        cleat_image image = {0};
        cleat_error error = {0};
        write_page(path, kinds[k].tags, kinds[k].count);
        assert_int_equal(cleat_image_read(path, 0, &image, &error), CLEAT_ERR_FORMAT);
        if (!strstr(error.text, kinds[k].why)) fail_msg("%zu: no '%s' in: %s", k, kinds[k].why, error.text);
    }
}

/* What libtiff says goes into our messages only. */
static void nothing_is_printed(void **state) {
    (void)state;
    if (!CLEAT_FORKS) skip(); /* the platform opens no stream again */
    char path[512];
    snprintf(path, sizeof path, "%s", test_path("printed"));
    fflush(stderr);
    const int before = dup(2);
    assert_non_null(freopen(path, "w", stderr));
    (void)each_case(truncated);
    (void)each_case(check_pixels);
    fflush(stderr);
    dup2(before, 2);
    close(before);
    size_t size = 1;
    char *text = test_read(path, &size);
    if (size) fail_msg("%.300s", text);
    free(text);
}

static void memory_that_runs_out_is_an_error(void **state) {
    (void)state;
    long n = 1;
    for (cleat_status status = CLEAT_ERR_MEMORY; status; ++n) {
        cleat_image image = {0};
        cleat_fail_allocation(n);
        status = cleat_image_read(beside("wide_tiles.tif"), 3, &image, NULL);
        cleat_fail_allocation(0);
        assert_true(status == CLEAT_OK || status == CLEAT_ERR_MEMORY);
        cleat_image_free(&image);
    }
    assert_true(n > 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_are_those_that_were_written),
        cmocka_unit_test(other_kinds_are_refused_by_name),
        cmocka_unit_test(ids_stay_as_they_are),
        cmocka_unit_test(truncated_files_are_refused),
        cmocka_unit_test(changed_files_are_read_or_refused),
        cmocka_unit_test(hostile_sizes_are_refused),
        cmocka_unit_test(nothing_is_printed),
        cmocka_unit_test(memory_that_runs_out_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}

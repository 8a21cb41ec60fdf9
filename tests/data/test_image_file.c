/* Image files: every kind of PNG, JPEG, and damaged files; the cache of decoded images. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/memory.h"
#include "data/image/cache.h"
#include "drawn.h"
#include "files.h"
#include "platform/files.h"
#include "platform/threads.h"

static cleat_image read_ok(const char *path, int64_t channels) {
    cleat_image image = {0};
    cleat_error error = {0};
    if (cleat_image_read(path, channels, &image, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return image;
}

/* Expects that reading fails with a message that names the file and contains `why`, without writing the
 * output. */
static void expect_failure(const char *path, const char *why) {
    cleat_image image = {.height = 77};
    cleat_error error = {0};
    assert_int_equal(cleat_image_read(path, 0, &image, &error), CLEAT_ERR_FORMAT);
    assert_int_equal(image.height, 77);
    assert_null(image.pixels);
    if (!strstr(error.text, path) || !strstr(error.text, why)) fail_msg("no '%s' in: %s", why, error.text);
}

/* --- PNG ------------------------------------------------------------------------------------------------------ */

static void every_kind_of_png_is_read(void **state) {
    (void)state;
    static const struct {
        int colour, bits[6];
    } kinds[] = {{PNG_COLOR_TYPE_GRAY, {1, 2, 4, 8, 16}},
                 {PNG_COLOR_TYPE_PALETTE, {1, 2, 4, 8}},
                 {PNG_COLOR_TYPE_RGB, {8, 16}},
                 {PNG_COLOR_TYPE_GRAY_ALPHA, {8, 16}},
                 {PNG_COLOR_TYPE_RGB_ALPHA, {8, 16}}};
    const char *path = test_path("kind.png");
    int tried = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; ++k)
        for (int b = 0; kinds[k].bits[b]; ++b)
            for (int interlaced = 0; interlaced < 2; ++interlaced) {
                drawn_png kind = {.colour = kinds[k].colour, .bits = kinds[k].bits[b], .interlaced = interlaced};
                cleat_image expected, probed = {0};
                drawn_write_png(path, 13, 21, &kind, &expected);
                cleat_image got = read_ok(path, 0);
                if (drawn_difference(&got, &expected) > 0)
                    fail_msg("colour type %d, %d bits, interlaced %d", kind.colour, kind.bits, interlaced);
                assert_int_equal(cleat_image_probe(path, &probed, NULL), CLEAT_OK);
                assert_int_equal(probed.height, 13);
                assert_int_equal(probed.width, 21);
                assert_int_equal(probed.channels, expected.channels);
                assert_true(probed.alpha ==
                            (kind.colour == PNG_COLOR_TYPE_PALETTE || (kind.colour & PNG_COLOR_MASK_ALPHA) != 0));
                assert_null(probed.pixels);
                cleat_image_free(&got);
                cleat_image_free(&expected);
                ++tried;
            }
    assert_int_equal(tried, 30);
}

/* Predicted masks: ids in the colours of their classes. */
static void ids_have_the_colours_of_their_palette(void **state) {
    (void)state;
    enum { SIDE = 16, COLOURS = SIDE * SIDE };
    uint8_t ids[COLOURS], palette[3 * COLOURS];
    for (int i = 0; i < COLOURS; ++i) {
        ids[i] = (uint8_t)(i * 7); /* each once */
        for (int c = 0; c < 3; ++c) palette[3 * i + c] = (uint8_t)(i * (2 * c + 3) + 50 * c);
    }
    const cleat_image image = {.height = SIDE, .width = SIDE, .channels = 1, .pixels = ids};
    const char *path = test_path("ids.png");
    assert_int_equal(cleat_image_write_png_ids(path, &image, palette, NULL), CLEAT_OK);
    cleat_image back = read_ok(path, 3);
    for (int i = 0; i < COLOURS; ++i) assert_memory_equal(back.pixels + 3 * i, palette + 3 * ids[i], 3);
    cleat_image_free(&back);
}

static void channels_are_converted(void **state) {
    (void)state;
    const char *path = test_path("colour.png");
    cleat_image colour = drawn_image(9, 17, 3, 1), back = {0};
    assert_int_equal(cleat_image_write_png(path, &colour, NULL), CLEAT_OK);
    back = read_ok(path, 3);
    assert_int_equal(drawn_difference(&colour, &back), 0);
    cleat_image_free(&back);
    back = read_ok(path, 1);
    assert_int_equal(back.channels, 1);
    for (int i = 0; i < 9 * 17; ++i) {
        const uint8_t *p = colour.pixels + 3 * i;
        assert_true(abs(back.pixels[i] - (int)(0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2] + 0.5)) <= 1);
    }
    assert_int_equal(cleat_image_write_png(path, &back, NULL), CLEAT_OK);
    cleat_image grey = read_ok(path, 3);
    for (int i = 0; i < 3 * 9 * 17; ++i) assert_int_equal(grey.pixels[i], back.pixels[i / 3]);
    cleat_image_free(&grey);
    cleat_image_free(&back);
    cleat_error error = {0};
    colour.channels = 2;
    assert_int_equal(cleat_image_write_png(path, &colour, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_image_read(path, 2, &back, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_image_read(test_path("nowhere.png"), 0, &back, &error), CLEAT_ERR_NOT_FOUND);
    assert_int_equal(cleat_image_probe(test_path("nowhere.png"), &back, &error), CLEAT_ERR_NOT_FOUND);
    assert_int_equal(cleat_image_probe(test_folder("folder.png"), &back, &error), CLEAT_ERR_IO);
    cleat_image_free(&colour);
}

/* --- JPEG ----------------------------------------------------------------------------------------------------- */

static void jpegs_are_read(void **state) {
    (void)state;
    const char *path = test_path("a.jpg");
    for (int64_t channels = 1; channels <= 3; channels += 2)
        for (int kind = DRAWN_JPEG; kind <= DRAWN_JPEG_PROGRESSIVE; ++kind) {
            cleat_image drawn = drawn_image(45, 70, channels, 0), probed = {0};
            drawn_write_jpeg(path, &drawn, (drawn_jpeg)kind);
            cleat_image got = read_ok(path, 0);
            assert_true(drawn_difference(&drawn, &got) < 30);
            assert_int_equal(cleat_image_probe(path, &probed, NULL), CLEAT_OK);
            assert_int_equal(probed.channels, channels);
            cleat_image other = read_ok(path, 4 - channels);
            assert_int_equal(other.channels, 4 - channels);
            for (int i = 0; i < 45 * 70; ++i) {
                const uint8_t *rgb = (channels == 3 ? got.pixels : other.pixels) + 3 * i;
                int grey = (channels == 1 ? got.pixels : other.pixels)[i];
                assert_true(abs(grey - (int)(0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2] + 0.5)) <= 4);
            }
            cleat_image_free(&other);
            cleat_image_free(&got);
            cleat_image_free(&drawn);
        }
    cleat_image inks = drawn_image(16, 16, 4, 0);
    drawn_write_jpeg(path, &inks, DRAWN_JPEG_CMYK);
    expect_failure(path, "convert it to RGB");
    cleat_image_free(&inks);
}

/* Compares means over squares of the whole image, because the file is decoded at a smaller scale. */
static void large_jpegs_are_decoded_smaller(void **state) {
    (void)state;
    const char *path = test_path("large.jpg");
    cleat_image drawn = drawn_image(400, 640, 3, 0), small = {0};
    drawn_write_jpeg(path, &drawn, DRAWN_JPEG);
    static const int64_t least[] = {401, 400, 201, 200, 100, 99, 50, 3, 1};
    static const int64_t by[] = {1, 1, 1, 2, 4, 4, 8, 8, 8};
    for (size_t i = 0; i < sizeof least / sizeof *least; ++i) {
        assert_int_equal(cleat_image_read_min_side(path, 0, least[i], &small, NULL), CLEAT_OK);
        assert_int_equal(small.height, 400 / by[i]);
        assert_int_equal(small.width, 640 / by[i]);
        for (int64_t y = 0; y < small.height; y += 7)
            for (int64_t x = 0; x < small.width; x += 5) {
                double sum = 0;
                for (int64_t k = 0; k < by[i] * by[i]; ++k)
                    sum += drawn.pixels[((y * by[i] + k / by[i]) * 640 + x * by[i] + k % by[i]) * 3 + 1];
                double mean = sum / (double)(by[i] * by[i]), got = small.pixels[(y * small.width + x) * 3 + 1];
                if (!(mean - got < 12 && got - mean < 12)) fail_msg("least %d: %g and %g", (int)least[i], mean, got);
            }
        cleat_image_free(&small);
    }
    cleat_image_free(&drawn);
}

/* Some cameras and programs leave bytes after the last pixel. */
static void bytes_to_spare_at_the_end_do_no_harm(void **state) {
    (void)state;
    const char *path = test_path("spare.jpg");
    cleat_image drawn = drawn_image(24, 31, 3, 0), whole = {0}, spare = {0};
    size_t size;
    drawn_write_jpeg(path, &drawn, DRAWN_JPEG);
    assert_int_equal(cleat_image_read(path, 0, &whole, NULL), CLEAT_OK);
    char *bytes = test_read(path, &size), *longer = malloc(size + 5);
    memcpy(longer, bytes, size - 2);
    memset(longer + size - 2, 0, 5);
    memcpy(longer + size + 3, bytes + size - 2, 2); /* the end marker */
    test_write(path, longer, size + 5);
    assert_int_equal(cleat_image_read(path, 0, &spare, NULL), CLEAT_OK);
    assert_int_equal(drawn_difference(&whole, &spare), 0);
    free(longer);
    free(bytes);
    cleat_image_free(&spare);
    cleat_image_free(&whole);
    cleat_image_free(&drawn);
}

/* A progressive file may repeat a scan without limit, and each scan costs as much as the whole image. */
static void scans_of_jpegs_are_counted(void **state) {
    (void)state;
    enum { MOST = 500, SCANS = 64 };
    const char *path = test_path("scans.jpg");
    cleat_image drawn = drawn_image(45, 70, 1, 0);
    size_t size, scan;
    drawn_write_jpeg(path, &drawn, DRAWN_JPEG_SCANS);
    char *bytes = test_read(path, &size);
    for (scan = size - 2; (uint8_t)bytes[scan] != 0xFF || (uint8_t)bytes[scan + 1] != 0xDA;) --scan;
    const size_t length = size - 2 - scan;
    char *copy = malloc(size + MOST * length);
    assert_non_null(copy);
    for (size_t more = MOST - SCANS; more <= MOST - SCANS + 1; ++more) {
        memcpy(copy, bytes, size - 2);
        for (size_t i = 0; i < more; ++i) memcpy(copy + size - 2 + i * length, bytes + scan, length);
        memcpy(copy + size - 2 + more * length, "\xFF\xD9", 2);
        test_write(path, copy, size + more * length);
        if (more > MOST - SCANS) {
            expect_failure(path, "more than 500 scans of 70 x 45 pixels");
            break;
        }
        cleat_image got = read_ok(path, 0);
        assert_true(drawn_difference(&drawn, &got) < 30);
        cleat_image_free(&got);
    }
    free(copy);
    free(bytes);
    cleat_image_free(&drawn);
}

/* --- broken files --------------------------------------------------------------------------------------------- */

static void no_part_of_a_file_is_an_image(void **state) {
    (void)state;
    const char *whole = test_path("whole"), *part = test_path("part");
    cleat_image drawn = drawn_image(24, 31, 3, 0);
    for (int kind = 0; kind < 4; ++kind) {
        size_t size;
        cleat_image expected = {0};
        drawn_png png = {.colour = PNG_COLOR_TYPE_RGB_ALPHA, .bits = 8, .interlaced = kind == 1};
        if (kind < 2)
            drawn_write_png(whole, 24, 31, &png, &expected);
        else
            drawn_write_jpeg(whole, &drawn, kind == 2 ? DRAWN_JPEG : DRAWN_JPEG_PROGRESSIVE);
        char *bytes = test_read(whole, &size);
        for (size_t cut = 0; cut < size; cut += cut < 700 || cut > size - 20 ? 1 : 37) {
            remove(part); /* otherwise some file systems flush the old file first */
            test_write(part, bytes, cut);
            expect_failure(part, cut == 0 ? "empty" : cut < 3 ? "not an image" : "");
        }
        test_write(part, bytes, size - 2);
        expect_failure(part, "truncated");
        free(bytes);
        cleat_image_free(&expected);
    }
    cleat_image_free(&drawn);
}

/* Random bytes in a file result in an image of the declared size or an error, without a leak (under ASan). */
static void noise_is_survived(void **state) {
    (void)state;
    const char *whole = test_path("whole"), *noisy = test_path("noisy");
    cleat_image drawn = drawn_image(24, 31, 3, 0);
    uint32_t random = 12345;
    int refused = 0;
    for (int kind = 0; kind < 2; ++kind) {
        size_t size;
        if (kind == 0)
            assert_int_equal(cleat_image_write_png(whole, &drawn, NULL), CLEAT_OK);
        else
            drawn_write_jpeg(whole, &drawn, DRAWN_JPEG);
        char *bytes = test_read(whole, &size);
        for (int i = 0; i < 300; ++i) {
            cleat_image got = {0};
            cleat_error error = {0};
            char *copy = malloc(size);
            assert_non_null(copy);
            memcpy(copy, bytes, size);
            for (int k = 0; k < 1 + i % 4; ++k) {
                random = random * 1664525u + 1013904223u;
                copy[(random >> 8) % size] = (char)(random >> 3);
            }
            remove(noisy);
            test_write(noisy, copy, size);
            if (cleat_image_probe(noisy, &got, NULL) == CLEAT_OK) assert_null(got.pixels);
            got = (cleat_image){0};
            if (cleat_image_read(noisy, 3, &got, &error) != CLEAT_OK) {
                assert_non_null(strstr(error.text, noisy));
                assert_null(got.pixels);
                ++refused;
            }
            cleat_image_free(&got);
            free(copy);
        }
        free(bytes);
    }
    assert_true(refused > 300); /* a PNG has checksums */
    cleat_image_free(&drawn);
}

static void put_number(uint8_t *bytes, uint32_t number) {
    for (int i = 0; i < 4; ++i) bytes[i] = (uint8_t)(number >> (24 - 8 * i));
}

/* A PNG whose header declares this size, and which has no pixels. */
static void write_promise(const char *path, uint32_t height, uint32_t width) {
    uint8_t bytes[41] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    put_number(bytes + 16, width);
    put_number(bytes + 20, height);
    bytes[24] = 8;
    bytes[25] = 2;
    put_number(bytes + 29, (uint32_t)crc32(crc32(0, NULL, 0), bytes + 12, 17));
    memcpy(bytes + 33, "\0\0\1\0IDAT", 8);
    test_write(path, bytes, sizeof bytes);
}

/* A file of 260 kB can hold 16000 x 16000 black pixels, which would take 732 MiB in colour. */
static void small_files_take_no_large_memory(void **state) {
    (void)state;
    const char *path = test_path("black.png");
    enum { SIDE = 16000, FILE_BYTES = 760000 };
    uint8_t *bytes = calloc(FILE_BYTES, 1);
    cleat_image got = {0};
    cleat_error error = {0};
    assert_non_null(bytes);
    write_promise(path, SIDE, SIDE);
    expect_failure(path, "cannot hold 16000 x 16000 pixels");
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(bytes, 1, 41, file), 41);
    fclose(file);
    put_number(bytes + 33, FILE_BYTES - 41); /* a chunk of pixels up to the end of the file */
    test_write(path, bytes, FILE_BYTES);
    expect_failure(path, "take 732 MiB, but the file has 742 KiB; above 256 MiB");
    bytes[25] = 0; /* grey: 244 MiB, which is allowed; the pixels are damaged */
    put_number(bytes + 29, (uint32_t)crc32(crc32(0, NULL, 0), bytes + 12, 17));
    test_write(path, bytes, FILE_BYTES);
    expect_failure(path, "damaged PNG file");
    assert_int_equal(cleat_image_probe(path, &got, &error), CLEAT_OK);
    assert_int_equal(got.height, SIDE);
    free(bytes);
}

static void other_files_are_refused(void **state) {
    (void)state;
    const char *path = test_path("x.png");
    write_promise(path, 20000, 20000);
    expect_failure(path, "the maximum is 268435456");
    write_promise(path, 0x7fffffff, 0x7fffffff);
    expect_failure(path, "the maximum is");
    write_promise(path, 0, 5);
    expect_failure(path, "");
    write_promise(path, 5, 5);
    expect_failure(path, "truncated");
    test_write(path, "GIF89a......", 12);
    expect_failure(path, "GIF files are not supported");
    test_write(path, "RIFF\1\2\3\4WEBPVP8 ", 16);
    expect_failure(path, "WebP files are not supported");
    test_write_text(path, "this is no image at all");
    expect_failure(path, "not an image");
    test_write(path, "", 0);
    expect_failure(path, "empty");
}

static void memory_that_runs_out_is_an_error(void **state) {
    (void)state;
    const char *png = test_path("m.png"), *jpeg = test_path("m.jpg");
    cleat_image expected, got = {0}, drawn = drawn_image(20, 20, 3, 0);
    drawn_png kind = {.colour = PNG_COLOR_TYPE_RGB_ALPHA, .bits = 8};
    drawn_write_png(png, 20, 20, &kind, &expected);
    drawn_write_jpeg(jpeg, &drawn, DRAWN_JPEG);
    for (int i = 0; i < 2; ++i) {
        long n = 1;
        for (cleat_status status = CLEAT_ERR_MEMORY; status; ++n) {
            cleat_fail_allocation(n);
            status = cleat_image_read(i ? jpeg : png, 1, &got, NULL);
            cleat_fail_allocation(0);
            assert_true(!status || (status == CLEAT_ERR_MEMORY && !got.pixels));
        }
        assert_true(n > (i ? 3 : 4)); /* the file, its pixels, and its pixels as grey */
        cleat_image_free(&got);
    }
    cleat_image_free(&expected);
    cleat_image_free(&drawn);
}

/* --- the cache ------------------------------------------------------------------------------------------------ */

enum { IMAGES = 20, BYTES = 8 * 8 };

/* Every value of image i is i. */
static cleat_status make(void *user, size_t index, cleat_image *image, cleat_error *error) {
    (void)user;
    if (index == 13) return cleat_fail(error, CLEAT_ERR_FORMAT, "unlucky");
    *image = (cleat_image){.height = 8, .width = 8, .channels = 1, .pixels = cleat_alloc(BYTES, 1)};
    memset(image->pixels, (int)index, BYTES);
    return CLEAT_OK;
}

static void the_cache_keeps_to_its_limit(void **state) {
    (void)state;
    cleat_image_cache *cache;
    assert_int_equal(cleat_image_cache_create(IMAGES, 5 * BYTES + BYTES / 2, &cache, NULL), CLEAT_OK);
    for (int pass = 0; pass < 3; ++pass)
        for (size_t i = 0; i < 10; ++i) {
            cleat_image image;
            assert_int_equal(cleat_image_cache_get(cache, i, make, NULL, &image, NULL), CLEAT_OK);
            assert_int_equal(image.pixels[0], i);
            assert_int_equal(image.pixels[BYTES - 1], i);
            cleat_image_cache_release(cache, i, &image);
            assert_null(image.pixels);
        }
    cleat_image_cache_stats stats = cleat_image_cache_statistics(cache);
    assert_int_equal(stats.kept, 5);
    assert_int_equal(stats.bytes, 5 * BYTES);
    assert_int_equal(stats.hits, 2 * 5);
    assert_int_equal(stats.reads, 10 + 2 * 5);
    cleat_image image = {.height = 3};
    cleat_error error = {0};
    assert_int_equal(cleat_image_cache_get(cache, 13, make, NULL, &image, &error), CLEAT_ERR_FORMAT);
    assert_string_equal(error.text, "unlucky");
    assert_int_equal(image.height, 3);
    assert_int_equal(cleat_image_cache_get(cache, IMAGES, make, NULL, &image, &error), CLEAT_ERR_ARGUMENT);
    cleat_image_cache_destroy(cache);
    assert_int_equal(cleat_image_cache_create(2, 0, &cache, NULL), CLEAT_OK);
    assert_int_equal(cleat_image_cache_get(cache, 1, make, NULL, &image, NULL), CLEAT_OK);
    assert_int_equal(cleat_image_cache_statistics(cache).kept, 0);
    cleat_image_cache_release(cache, 1, &image);
    cleat_image_cache_destroy(cache);
}

static void *use_cache(void *argument) {
    cleat_image_cache *cache = argument;
    for (int pass = 0; pass < 50; ++pass)
        for (size_t i = 0; i < 12; ++i) {
            cleat_image image;
            if (cleat_image_cache_get(cache, i, make, NULL, &image, NULL) != CLEAT_OK) return cache;
            bool right = image.pixels[5] == i && image.pixels[BYTES - 1] == i;
            cleat_image_cache_release(cache, i, &image);
            if (!right) return cache;
        }
    return NULL;
}

static void threads_share_the_cache(void **state) {
    (void)state;
    cleat_image_cache *cache;
    pthread_t threads[4];
    assert_int_equal(cleat_image_cache_create(IMAGES, 6 * BYTES, &cache, NULL), CLEAT_OK);
    for (int i = 0; i < 4; ++i) assert_int_equal(pthread_create(&threads[i], NULL, use_cache, cache), 0);
    for (int i = 0; i < 4; ++i) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    cleat_image_cache_stats stats = cleat_image_cache_statistics(cache);
    assert_int_equal(stats.kept, 6);
    assert_int_equal(stats.hits + stats.reads, 4 * 50 * 12);
    assert_true(stats.hits >= 4 * 49 * 6 - 4 * 12);
    cleat_image_cache_destroy(cache);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_png_is_read),
        cmocka_unit_test(channels_are_converted),
        cmocka_unit_test(ids_have_the_colours_of_their_palette),
        cmocka_unit_test(jpegs_are_read),
        cmocka_unit_test(large_jpegs_are_decoded_smaller),
        cmocka_unit_test(scans_of_jpegs_are_counted),
        cmocka_unit_test(bytes_to_spare_at_the_end_do_no_harm),
        cmocka_unit_test(no_part_of_a_file_is_an_image),
        cmocka_unit_test(noise_is_survived),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(small_files_take_no_large_memory),
        cmocka_unit_test(memory_that_runs_out_is_an_error),
        cmocka_unit_test(the_cache_keeps_to_its_limit),
        cmocka_unit_test(threads_share_the_cache),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}

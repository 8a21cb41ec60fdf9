/* The image cache: counts the bytes of pixels, keeps what fits, and reads the rest each time. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/memory.h"
#include "data/image/cache.h"

enum { COUNT = 5, HEIGHT = 7, CHANNELS = 3 };

/* Image i is HEIGHT x (i + 1) x CHANNELS; its pixels are i. *user counts the reads. */
static cleat_status read_image(void *user, size_t index, cleat_image *image, cleat_error *error) {
    const int64_t bytes = HEIGHT * ((int64_t)index + 1) * CHANNELS;
    (void)error;
    ++*(int *)user;
    *image = (cleat_image){.height = HEIGHT, .width = (int64_t)index + 1, .channels = CHANNELS};
    image->pixels = cleat_alloc((size_t)bytes, 1);
    for (int64_t i = 0; i < bytes; ++i) image->pixels[i] = (unsigned char)index;
    return CLEAT_OK;
}

static void use(cleat_image_cache *cache, size_t index, int *reads) {
    cleat_image image = {0};
    assert_int_equal(cleat_image_cache_get(cache, index, read_image, reads, &image, NULL), CLEAT_OK);
    assert_int_equal(image.width, index + 1);
    assert_int_equal(image.pixels[0], index);
    cleat_image_cache_release(cache, index, &image);
}

static void what_fits_is_kept(void **state) {
    (void)state;
    enum { UNIT = HEIGHT * CHANNELS };
    /* Exactly enough room for images 0, 1 and 2: 3 and 4 are read each time. With one byte less, 2 is also
     * read. */
    for (int less = 0; less < 2; ++less) {
        const int64_t limit = 6 * UNIT - less, kept = less ? 2 : 3, bytes = less ? 3 * UNIT : 6 * UNIT;
        cleat_image_cache *cache = NULL;
        cleat_error error = {0};
        int reads = 0;
        assert_int_equal(cleat_image_cache_create(COUNT, limit, &cache, &error), CLEAT_OK);
        for (int round = 0; round < 3; ++round)
            for (size_t i = 0; i < COUNT; ++i) use(cache, i, &reads);
        cleat_image_cache_stats stats = cleat_image_cache_statistics(cache);
        assert_int_equal(stats.bytes, bytes);
        assert_int_equal(stats.kept, kept);
        assert_int_equal(stats.hits, 2 * kept);
        assert_int_equal(stats.reads, COUNT * 3 - 2 * kept);
        assert_int_equal(reads, stats.reads);
        cleat_image image;
        assert_int_equal(cleat_image_cache_get(cache, COUNT, read_image, &reads, &image, &error), CLEAT_ERR_ARGUMENT);
        cleat_image_cache_destroy(cache);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

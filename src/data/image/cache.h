/* Cache of decoded images with a memory limit, shared by the loader's threads. */
#ifndef CLEAT_SRC_IMAGE_CACHE_H
#define CLEAT_SRC_IMAGE_CACHE_H

#include "data/image/file.h"

typedef struct cleat_image_cache cleat_image_cache;

/* For images 0 .. count - 1. Keeps at most `bytes` of pixels; images that do not fit are decoded each time.
 * The caller owns *cache. */
cleat_status cleat_image_cache_create(size_t count, int64_t bytes, cleat_image_cache **cache, cleat_error *error);
void cleat_image_cache_destroy(cleat_image_cache *cache);

/* Returns image `index` from the cache, or reads it with read(user, index, ...) and keeps it if there is
 * room. *image is borrowed until cleat_image_cache_release. Thread-safe; two threads may read the same image
 * concurrently, and one copy is kept. */
typedef cleat_status (*cleat_image_reader)(void *user, size_t index, cleat_image *image, cleat_error *error);
cleat_status cleat_image_cache_get(cleat_image_cache *cache, size_t index, cleat_image_reader read, void *user,
                                   cleat_image *image, cleat_error *error);
void cleat_image_cache_release(cleat_image_cache *cache, size_t index, cleat_image *image);

typedef struct cleat_image_cache_stats {
    int64_t bytes, kept, hits, reads;
} cleat_image_cache_stats;
cleat_image_cache_stats cleat_image_cache_statistics(cleat_image_cache *cache);

#endif

/* Decoded pictures kept within a limit of memory: shared by the loader's threads. */
#ifndef CLEAT_SRC_PICTURE_CACHE_H
#define CLEAT_SRC_PICTURE_CACHE_H

#include "data/picture.h"

typedef struct cleat_picture_cache cleat_picture_cache;

/* For pictures 0 .. count - 1. Keeps at most `bytes` of pixels; what does not fit is decoded again each time. */
cleat_status cleat_picture_cache_create(size_t count, int64_t bytes, cleat_picture_cache **cache, cleat_error *error);
void cleat_picture_cache_destroy(cleat_picture_cache *cache);

/* Picture `index`: from the cache, or read by `read(user, index, ...)` and kept where there is room. *picture is borrowed
 * until cleat_picture_cache_release. Thread-safe; two threads may read the same picture at once, one is kept. */
typedef cleat_status (*cleat_picture_reader)(void *user, size_t index, cleat_picture *picture, cleat_error *error);
cleat_status cleat_picture_cache_get(cleat_picture_cache *cache, size_t index, cleat_picture_reader read, void *user,
                                     cleat_picture *picture, cleat_error *error);
void cleat_picture_cache_release(cleat_picture_cache *cache, size_t index, cleat_picture *picture);

typedef struct cleat_picture_cache_stats {
    int64_t bytes, kept, hits, reads;
} cleat_picture_cache_stats;
cleat_picture_cache_stats cleat_picture_cache_statistics(cleat_picture_cache *cache);

#endif

/* Cache of decoded images without eviction: once the limit is reached, no further image is kept.
 *
 * Each epoch visits all samples, so evicting the least recently used image would give no hits at all if not
 * all images fit. */
#include "data/image/cache.h"

#include "core/memory.h"
#include "platform/threads.h"

struct cleat_image_cache {
    pthread_mutex_t lock;
    cleat_image *kept; /* [count]; no pixels: not kept. A kept image is never changed */
    size_t count;
    int64_t limit;
    cleat_image_cache_stats stats;
};

cleat_status cleat_image_cache_create(size_t count, int64_t bytes, cleat_image_cache **cache, cleat_error *error) {
    cleat_image_cache *made = cleat_alloc(1, sizeof *made);
    if (made) made->kept = cleat_alloc(count, sizeof *made->kept);
    if (!made || !made->kept) {
        cleat_free(made);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a cache of %zu images", count);
    }
    if (pthread_mutex_init(&made->lock, NULL) != 0) {
        cleat_free(made->kept);
        cleat_free(made);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "cannot create a lock for the image cache");
    }
    made->count = count;
    made->limit = bytes;
    *cache = made;
    return CLEAT_OK;
}

void cleat_image_cache_destroy(cleat_image_cache *cache) {
    if (!cache) return;
    for (size_t i = 0; i < cache->count; ++i) cleat_image_free(&cache->kept[i]);
    pthread_mutex_destroy(&cache->lock);
    cleat_free(cache->kept);
    cleat_free(cache);
}

static bool find(cleat_image_cache *cache, size_t index, cleat_image *image) {
    pthread_mutex_lock(&cache->lock);
    bool there = cache->kept[index].pixels != NULL;
    if (there) {
        *image = cache->kept[index];
        ++cache->stats.hits;
    }
    pthread_mutex_unlock(&cache->lock);
    return there;
}

/* Keeps *image if there is room and no other thread has kept it first. */
static void keep(cleat_image_cache *cache, size_t index, const cleat_image *image) {
    int64_t bytes = image->height * image->width * image->channels;
    pthread_mutex_lock(&cache->lock);
    ++cache->stats.reads;
    if (!cache->kept[index].pixels && cache->stats.bytes + bytes <= cache->limit) {
        cache->kept[index] = *image;
        cache->stats.bytes += bytes;
        ++cache->stats.kept;
    }
    pthread_mutex_unlock(&cache->lock);
}

cleat_status cleat_image_cache_get(cleat_image_cache *cache, size_t index, cleat_image_reader read, void *user,
                                   cleat_image *image, cleat_error *error) {
    cleat_image made = {0};
    if (index >= cache->count) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "image %zu of %zu", index, cache->count);
    if (find(cache, index, image)) return CLEAT_OK;
    cleat_status status = read(user, index, &made, error);
    if (status) return status;
    keep(cache, index, &made);
    *image = made;
    return CLEAT_OK;
}

void cleat_image_cache_release(cleat_image_cache *cache, size_t index, cleat_image *image) {
    pthread_mutex_lock(&cache->lock);
    bool kept = cache->kept[index].pixels == image->pixels;
    pthread_mutex_unlock(&cache->lock);
    if (!kept) cleat_image_free(image);
    *image = (cleat_image){0};
}

cleat_image_cache_stats cleat_image_cache_statistics(cleat_image_cache *cache) {
    pthread_mutex_lock(&cache->lock);
    cleat_image_cache_stats stats = cache->stats;
    pthread_mutex_unlock(&cache->lock);
    return stats;
}

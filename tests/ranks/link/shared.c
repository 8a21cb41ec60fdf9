/* A transport for tests: processes of one machine share a file instead of using MPI, so sanitizers check all
 * code. CLEAT_TEST_SHARED names the file, which the first rank creates; CLEAT_TEST_RANK is "RANK/RANKS". If a
 * process ends, the others wait in a barrier forever, as in MPI. */
#include "ranks/transport.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANKS = 8, SLOT = 1 << 16 };

typedef struct area {
    pthread_barrier_t barrier;
    char slots[RANKS][SLOT];
} area;

static area *shared;
static int own, ranks;

static void wait_for_all(void) {
    pthread_barrier_wait(&shared->barrier);
}

static size_t part(size_t left) {
    return left < SLOT ? left : SLOT;
}

static bool gather(const void *bytes, size_t size, void *all) {
    for (size_t at = 0; at < size; at += SLOT) {
        memcpy(shared->slots[own], (const char *)bytes + at, part(size - at));
        wait_for_all();
        for (int r = 0; r < ranks; ++r) memcpy((char *)all + (size_t)r * size + at, shared->slots[r], part(size - at));
        wait_for_all();
    }
    return true;
}

static bool broadcast(void *bytes, size_t size) {
    for (size_t at = 0; at < size; at += SLOT) {
        if (own == 0) memcpy(shared->slots[0], (char *)bytes + at, part(size - at));
        wait_for_all();
        if (own > 0) memcpy((char *)bytes + at, shared->slots[0], part(size - at));
        wait_for_all();
    }
    return true;
}

static bool sum(float *values, size_t count) {
    const size_t step = SLOT / sizeof *values;
    for (size_t at = 0; at < count; at += step) {
        const size_t n = count - at < step ? count - at : step;
        memcpy(shared->slots[own], values + at, n * sizeof *values);
        wait_for_all();
        memset(values + at, 0, n * sizeof *values);
        for (int r = 0; r < ranks; ++r)
            for (size_t i = 0; i < n; ++i) values[at + i] += ((const float *)shared->slots[r])[i];
        wait_for_all();
    }
    return true;
}

/* At most SLOT bytes. */
static bool largest(int64_t *values, size_t count) {
    memcpy(shared->slots[own], values, count * sizeof *values);
    wait_for_all();
    for (int r = 0; r < ranks; ++r)
        for (size_t i = 0; i < count; ++i) {
            const int64_t value = ((const int64_t *)shared->slots[r])[i];
            if (value > values[i]) values[i] = value;
        }
    wait_for_all();
    return true;
}

static area *map_file(int file) {
    area *mapped = mmap(NULL, sizeof *mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return mapped == MAP_FAILED ? NULL : mapped;
}

/* Rank 0 creates the file under a temporary name; the others wait for it. */
static bool open_shared(const char *path) {
    char made[4096];
    pthread_barrierattr_t attributes;
    int file;
    snprintf(made, sizeof made, "%s.new", path);
    if (own > 0) {
        while ((file = open(path, O_RDWR)) < 0) usleep(1000);
        shared = map_file(file);
        return shared != NULL;
    }
    file = open(made, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || ftruncate(file, sizeof *shared) != 0) return false;
    shared = map_file(file);
    if (!shared) return false;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &attributes, (unsigned)ranks);
    pthread_barrierattr_destroy(&attributes);
    return rename(made, path) == 0;
}

bool cleat_transport_open(int version, cleat_transport *transport, char *why, size_t size);

__attribute__((visibility("default"))) bool cleat_transport_open(int version, cleat_transport *transport, char *why,
                                                                 size_t size) {
    const char *path = getenv("CLEAT_TEST_SHARED"), *place = getenv("CLEAT_TEST_RANK");
    const bool good = path && place && sscanf(place, "%d/%d", &own, &ranks) == 2 && ranks <= RANKS;
    if (version != CLEAT_TRANSPORT_VERSION || !good || !open_shared(path)) {
        snprintf(why, size, "CLEAT_TEST_SHARED, CLEAT_TEST_RANK");
        return false;
    }
    *transport = (cleat_transport){.rank = own,
                                   .count = ranks,
                                   .local_rank = own,
                                   .local_count = ranks,
                                   .sum = sum,
                                   .largest = largest,
                                   .broadcast = broadcast,
                                   .gather = gather};
    return true;
}

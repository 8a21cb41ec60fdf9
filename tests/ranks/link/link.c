/* A transport for tests: MPI's, behind a slower link. CLEAT_TEST_TRANSPORT names libcleat-mpi.so,
 * CLEAT_TEST_LINK is "BYTES_PER_SECOND" of every rank's link in each direction. Once all ranks have arrived,
 * a sum takes at least as long as a ring all-reduce over such links, 2 (R - 1) / R times its bytes (Patarasuk
 * & Yuan 2009), and a gather R - 1 times a rank's bytes. Waiting sleeps, so no core is kept busy.
 * CLEAT_TEST_BYTES, if set, is a file to which rank 0 writes the sum of these bytes at the end;
 * CLEAT_TEST_LINK may then be 0, a link without limit. */
#include "ranks/transport.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static cleat_transport real;
static double bytes_per_second; /* 0: no limit */
static double sent;             /* bytes, by this rank */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Waits for all ranks; the link is then busy until *end. */
static bool begin(double bytes, double *end) {
    int64_t nothing = 0;
    *end = 0;
    sent += bytes;
    if (bytes_per_second <= 0) return true;
    if (!real.largest(&nothing, 1)) return false;
    *end = now() + bytes / bytes_per_second;
    return true;
}

static bool finish(bool good, double end) {
    const double rest = end > 0 ? end - now() : 0;
    if (rest > 0) nanosleep(&(struct timespec){(time_t)rest, (long)((rest - (double)(time_t)rest) * 1e9)}, NULL);
    return good;
}

static bool sum(float *values, size_t count) {
    const double ranks = real.count;
    double end;
    if (!begin(2 * (ranks - 1) / ranks * (double)(count * sizeof *values), &end)) return false;
    return finish(real.sum(values, count), end);
}

static bool gather(const void *bytes, size_t size, void *all) {
    double end;
    if (!begin((double)(real.count - 1) * (double)size, &end)) return false;
    return finish(real.gather(bytes, size, all), end);
}

static void close_link(void) {
    const char *path = getenv("CLEAT_TEST_BYTES");
    FILE *file = path && real.rank == 0 ? fopen(path, "w") : NULL;
    if (file) {
        fprintf(file, "%.0f\n", sent);
        fclose(file);
    }
    real.close();
}

bool cleat_transport_open(int version, cleat_transport *transport, char *why, size_t size);

__attribute__((visibility("default"))) bool cleat_transport_open(int version, cleat_transport *transport, char *why,
                                                                 size_t size) {
    const char *path = getenv("CLEAT_TEST_TRANSPORT"), *link = getenv("CLEAT_TEST_LINK");
    void *plugin = path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
    cleat_transport_open_fn open =
        plugin ? (cleat_transport_open_fn)(uintptr_t)dlsym(plugin, "cleat_transport_open") : NULL;
    if (!open || !link) {
        snprintf(why, size, "CLEAT_TEST_TRANSPORT or CLEAT_TEST_LINK: %s", open ? "not set" : "no plug-in");
        return false;
    }
    bytes_per_second = atof(link);
    if (!open(version, &real, why, size)) return false;
    *transport = real;
    transport->sum = sum;
    transport->gather = gather;
    transport->close = close_link;
    return true;
}

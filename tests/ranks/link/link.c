/* A transport for tests: MPI's, behind a slower link. CLEAT_TEST_TRANSPORT names libcleat-mpi.so, CLEAT_TEST_LINK is
 * "BYTES_PER_SECOND" of each direction of a link of every rank. A sum takes at least as long as a ring all-reduce over such
 * links: 2 (R - 1) / R times its bytes (Patarasuk & Yuan 2009). */
#include "ranks/transport.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static cleat_transport real;
static double bytes_per_second;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static bool sum(float *values, size_t count) {
    const double ranks = real.count;
    const double end = now() + 2 * (ranks - 1) / ranks * (double)(count * sizeof *values) / bytes_per_second;
    if (!real.sum(values, count)) return false;
    const double rest = end - now();
    if (rest > 0) nanosleep(&(struct timespec){(time_t)rest, (long)((rest - (double)(time_t)rest) * 1e9)}, NULL);
    return true;
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
    return true;
}

/* A transport for tests: one process simulates two ranks. Rank 1 sends what rank 0 sends, but three times the
 * measured seconds (8 bytes). CLEAT_TEST_JOIN: seconds until the ranks have joined. */
#include "ranks/transport.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool sum(float *values, size_t count) {
    for (size_t i = 0; i < count; ++i) values[i] *= 2;
    return true;
}

static bool largest(int64_t *values, size_t count) {
    (void)values, (void)count;
    return true;
}

static bool broadcast(void *bytes, size_t size) {
    (void)bytes, (void)size;
    return true;
}

static bool gather(const void *bytes, size_t size, void *all) {
    double seconds;
    memcpy(all, bytes, size);
    memcpy((char *)all + size, bytes, size);
    if (size != sizeof seconds) return true;
    memcpy(&seconds, bytes, sizeof seconds);
    seconds *= 3;
    memcpy((char *)all + size, &seconds, sizeof seconds);
    return true;
}

bool cleat_transport_open(int version, cleat_transport *transport, char *why, size_t size);

__attribute__((visibility("default"))) bool cleat_transport_open(int version, cleat_transport *transport, char *why,
                                                                 size_t size) {
    const char *joins = getenv("CLEAT_TEST_JOIN");
    (void)why, (void)size;
    if (joins) sleep((unsigned)atoi(joins));
    *transport = (cleat_transport){.rank = 0,
                                   .count = 2,
                                   .local_count = 2,
                                   .sum = sum,
                                   .largest = largest,
                                   .broadcast = broadcast,
                                   .gather = gather};
    return version == CLEAT_TRANSPORT_VERSION;
}

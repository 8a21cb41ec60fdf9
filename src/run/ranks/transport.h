/* The interface of a plug-in: collective operations of all ranks. Only plug-ins use MPI, so cleat runs
 * without it.
 *
 * Every function is called by all ranks in the same order, on one thread of the process, the one that called
 * open. They return false on a failure, after which none of them is called again. */
#ifndef CLEAT_SRC_RANKS_TRANSPORT_H
#define CLEAT_SRC_RANKS_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLEAT_TRANSPORT_VERSION = 1 };

typedef struct cleat_transport {
    int rank, count;
    int local_rank, local_count; /* among the ranks of this machine */
    /* Element by element over all ranks, in place; every rank receives the same bits. */
    bool (*sum)(float *values, size_t count);
    bool (*largest)(int64_t *values, size_t count);
    /* bytes [size] of rank 0 -> all ranks */
    bool (*broadcast)(void *bytes, size_t size);
    /* bytes [size] of every rank -> all [count of ranks * size] of every rank */
    bool (*gather)(const void *bytes, size_t size, void *all);
    void (*close)(void);
} cleat_transport;

/* The function that a plug-in exports as "cleat_transport_open". False, with a reason in why [size]: MPI
 * failed, or it has another version. */
typedef bool (*cleat_transport_open_fn)(int version, cleat_transport *transport, char *why, size_t size);

#endif

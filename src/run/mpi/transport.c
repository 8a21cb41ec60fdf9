/* The transport over MPI: libcleat-mpi.so. The only file that uses MPI. */
#include "ranks/transport.h"

#include "platform/processes.h"

#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TRIES = 50 };

/* Waits for an operation. MPI's own waits spin: on a CPU device they take a core from the kernels, and the
 * scheduler then defers the thread, whereas a sleeping thread runs as soon as it wakes. The first tries do
 * not sleep, because the operation may end at once. */
static bool complete(int code, MPI_Request *request) {
    static const struct timespec pause = {0, 20000};
    int done = 0;
    for (int tries = 0; code == MPI_SUCCESS && !done; ++tries) {
        if (tries >= TRIES) nanosleep(&pause, NULL);
        code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
    }
    return code == MPI_SUCCESS;
}

static bool sum(float *values, size_t count) {
    MPI_Request request;
    return complete(MPI_Iallreduce(MPI_IN_PLACE, values, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request),
                    &request);
}

static bool largest(int64_t *values, size_t count) {
    MPI_Request request;
    return complete(MPI_Iallreduce(MPI_IN_PLACE, values, (int)count, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD, &request),
                    &request);
}

static bool broadcast(void *bytes, size_t size) {
    MPI_Request request;
    return complete(MPI_Ibcast(bytes, (int)size, MPI_BYTE, 0, MPI_COMM_WORLD, &request), &request);
}

static bool gather(const void *bytes, size_t size, void *all) {
    MPI_Request request;
    return complete(MPI_Iallgather(bytes, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE, MPI_COMM_WORLD, &request),
                    &request);
}

static void close_mpi(void) {
    MPI_Finalize();
}

static bool find_places(cleat_transport *transport) {
    MPI_Comm local;
    bool good = MPI_Comm_rank(MPI_COMM_WORLD, &transport->rank) == MPI_SUCCESS &&
                MPI_Comm_size(MPI_COMM_WORLD, &transport->count) == MPI_SUCCESS;
    if (!good || MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, transport->rank, MPI_INFO_NULL, &local))
        return false;
    good = MPI_Comm_rank(local, &transport->local_rank) == MPI_SUCCESS &&
           MPI_Comm_size(local, &transport->local_count) == MPI_SUCCESS;
    MPI_Comm_free(&local);
    return good;
}

bool cleat_transport_open(int version, cleat_transport *transport, char *why, size_t size);

__attribute__((visibility("default"))) bool cleat_transport_open(int version, cleat_transport *transport, char *why,
                                                                 size_t size) {
    int provided, initialized = 0;
    if (version != CLEAT_TRANSPORT_VERSION) {
        snprintf(why, size, "it belongs to another version of cleat");
        return false;
    }
    /* Threads that wait in Open MPI yield, because on a CPU device they share their core with kernels. */
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    MPI_Initialized(&initialized);
    if (!initialized && MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
        snprintf(why, size, "MPI_Init_thread failed");
        return false;
    }
    prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0); /* ns, of this thread: its pauses are short */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    *transport =
        (cleat_transport){.sum = sum, .largest = largest, .broadcast = broadcast, .gather = gather, .close = close_mpi};
    if (find_places(transport)) return true;
    snprintf(why, size, "MPI_COMM_WORLD cannot be queried");
    return false;
}

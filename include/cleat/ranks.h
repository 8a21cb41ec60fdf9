/* Ranks: the processes of one data-parallel run, one for each device, which an MPI launcher starts together.
 *
 * Threads: all calls for a cleat_ranks come from one thread. The library calls MPI on its own thread. */
#ifndef CLEAT_RANKS_H
#define CLEAT_RANKS_H

#include "cleat/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cleat_ranks cleat_ranks;

/* Whether a launcher (mpirun, mpiexec, srun --mpi) started this process as one of several. */
CLEAT_API bool cleat_ranks_launched(void);

/* Checks that the MPI plug-in exists, for a program that is about to start ranks; loads nothing.
 * CLEAT_ERR_NOT_SUPPORTED: it does not; the message names the package to install. */
CLEAT_API cleat_status cleat_ranks_check(cleat_error *error);

/* Seconds in which all ranks of a run must have started: CLEAT_RANKS_START, or else 120. */
CLEAT_API double cleat_ranks_start_seconds(void);

/* Joins the run: loads libcleat-mpi.so, which lies beside the library or in the folder `cleat` beside it,
 * unless CLEAT_RANKS_LIBRARY names another file, and initialises MPI; waits until all ranks do, for
 * cleat_ranks_start_seconds. Call it before the first OpenCL call: a rank that shares its machine with others
 * uses only its part of the CPUs (its affinity, and the environment that PoCL reads).
 * CLEAT_ERR_NOT_SUPPORTED: the plug-in or MPI is missing; the message names the package to install.
 * CLEAT_ERR_RANK_LOST: not all ranks joined in time; the process should leave with _exit. The caller closes
 * *ranks. */
CLEAT_API cleat_status cleat_ranks_open(cleat_ranks **ranks, cleat_error *error);
/* Leaves the run: waits until the other ranks have left, unless one is lost. MPI cannot be initialised again
 * in this process. NULL is allowed. */
CLEAT_API void cleat_ranks_close(cleat_ranks *ranks);

/* Number of this rank, from 0, and of all ranks. NULL is a run of one rank, here and below. */
CLEAT_API int cleat_ranks_rank(const cleat_ranks *ranks);
CLEAT_API int cleat_ranks_count(const cleat_ranks *ranks);
/* Number of this rank among those of its machine, from 0. */
CLEAT_API int cleat_ranks_local_rank(const cleat_ranks *ranks);
/* True if a rank did not answer: MPI can no longer shut down cleanly, so the process should leave with _exit. */
CLEAT_API bool cleat_ranks_are_broken(const cleat_ranks *ranks);

/* Returns the error of the first rank whose call before cleat_train failed (`own`), on all ranks. All ranks
 * call it. */
CLEAT_API cleat_status cleat_ranks_agree(cleat_ranks *ranks, cleat_status own, cleat_error *error);

/* The device selector of this rank: its entry of CLEAT_RANK_DEVICES, selectors of the local ranks separated
 * by ';', or `wanted` if it has none. Valid until the next call. */
CLEAT_API const char *cleat_ranks_device(cleat_ranks *ranks, const char *wanted);

#ifdef __cplusplus
}
#endif
#endif

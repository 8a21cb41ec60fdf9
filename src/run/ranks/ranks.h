/* Collective operations of a run of several ranks, and how its ranks stay together.
 *
 * Rule: every rank makes the same calls in the same order, and exchanges data only if an agreement followed
 * its last possible failure. A rank that fails makes one more call, cleat_ranks_agree, which reports the
 * failure to all others. With NULL (a run of one rank) all calls succeed and change nothing.
 *
 * Every call that waits may return CLEAT_ERR_RANK_LOST: a rank did not answer in time
 * (cleat_ranks_set_timeouts) or the transport failed. The ranks are then broken: every later call returns the
 * same at once.
 *
 * MPI is called on a separate thread, so the run's thread can wait with a timeout and save the finished
 * steps. The same thread exchanges heartbeats during work of unknown duration (setup, first steps,
 * evaluation, checkpoints), so only a rank that is silent for `distribute.timeout` is lost. */
#ifndef CLEAT_SRC_RANKS_H
#define CLEAT_SRC_RANKS_H

#include "cleat/ranks.h"
#include "ranks/row_sum.h"

/* How long a call waits, in seconds. The end of a rank's process on this machine is always noticed within
 * seconds.
 *
 * While ranks are watched, each sends several heartbeats per second, whatever its run's thread does (compile,
 * evaluate, write a checkpoint), and one silent for `silence` is lost. Ranks are watched from
 * cleat_ranks_open on; each agreement decides whether they are until the next one: if a rank then has a
 * finite `silence` or an error. Each exchange then costs one more, of a single number, so steps of known
 * duration use `seconds` without heartbeats.
 *
 * At first `silence` is 60, the others are infinite. */
typedef struct cleat_ranks_timeouts {
    double seconds;    /* for the other ranks */
    double silence;    /* while they are watched; a quarter of it once *stop is not 0 */
    double after_stop; /* as seconds, once *stop is not 0: a launcher sends a signal to all ranks when one is lost */
    double stopped;    /* for a rank of this machine whose process is stopped (SIGSTOP) */
    const volatile int *stop; /* may be NULL */
} cleat_ranks_timeouts;
void cleat_ranks_set_timeouts(cleat_ranks *ranks, const cleat_ranks_timeouts *timeouts);

/* bytes [size] of rank 0 replace those of the others. */
cleat_status cleat_ranks_broadcast(cleat_ranks *ranks, void *bytes, size_t size, cleat_error *error);
/* bytes [size] of each rank -> all [ranks, size]. Alone, all is a copy of bytes. */
cleat_status cleat_ranks_gather(cleat_ranks *ranks, const void *bytes, size_t size, void *all, cleat_error *error);

/* Exchanges whether a rank failed, and makes joint decisions: each of asked [CLEAT_RANKS_ASKED] (NULL:
 * none) becomes its maximum over all ranks. If a rank has an error, its status is returned on every rank;
 * `error` receives that of the first such rank, prefixed on the others with its number and host. After an
 * error ranks do not wait for each other: later calls return `own` until cleat_ranks_try_again.
 * cleat_ranks_agree has no `asked`. */
enum { CLEAT_RANKS_ASKED = 3 };
cleat_status cleat_ranks_agree_on(cleat_ranks *ranks, cleat_status own, int64_t *asked, cleat_error *error);
/* Continues after an error on which all ranks agreed. Returns the rank that had it. */
int cleat_ranks_try_again(cleat_ranks *ranks);
/* CLEAT_ERR_ARGUMENT on each rank whose hash differs from that of rank 0; `what` names the hashed content
 * in the message. The ranks must still agree. */
cleat_status cleat_ranks_compare(cleat_ranks *ranks, const char *what, const char hash[33], cleat_error *error);

/* Sums values [count] over the ranks, element by element, while the caller does other work; every rank
 * receives the same bits. `values` belongs to the call until cleat_ranks_wait of the ticket returns. *squares
 * (may be NULL) receives the sum of the squares of the results, added in order in double precision. At most
 * CLEAT_RANKS_PENDING at a time, waited for in order. */
enum { CLEAT_RANKS_PENDING = 64 };
cleat_status cleat_ranks_sum_start(cleat_ranks *ranks, float *values, size_t count, double *squares, uint64_t *ticket,
                                   cleat_error *error);
cleat_status cleat_ranks_wait(cleat_ranks *ranks, uint64_t ticket, cleat_error *error);
/* The same for a table of which each rank has some rows, whose marks a cleat_ranks_gather_start has
 * exchanged; `table` and the memory it points to belong to the call, like `values`. */
cleat_status cleat_ranks_sum_rows_start(cleat_ranks *ranks, const cleat_row_sum *table, double *squares,
                                        uint64_t *ticket, cleat_error *error);
/* As cleat_ranks_gather, while the caller does other work; bytes and all belong to the call. */
cleat_status cleat_ranks_gather_start(cleat_ranks *ranks, void *bytes, size_t size, void *all, uint64_t *ticket,
                                      cleat_error *error);
/* Seconds that the transport has been busy so far. */
double cleat_ranks_busy_seconds(cleat_ranks *ranks);

/* Once the ranks are broken: whether this rank saves the training state: the lowest rank on the machine of
 * rank 0 whose process is alive and not stopped. */
bool cleat_ranks_saves_the_run(const cleat_ranks *ranks);

#endif

/* Collective operations of a run of several ranks, and how its ranks stay together.
 *
 * Rule: every rank makes the same calls in the same order, and exchanges data only after it has agreed with the others
 * since its last chance to fail. So a rank that fails makes one more call, cleat_ranks_agree, and all others learn it in
 * theirs. With NULL (a run of one rank) all calls succeed and change nothing.
 *
 * Every call that waits may return CLEAT_ERR_RANK_LOST: a rank did not answer in time (cleat_ranks_set_timeouts) or the
 * transport failed. The ranks are then broken: every later call returns the same at once.
 *
 * MPI is called on a separate thread, so that the run's thread can wait with a timeout and save the
 * finished steps. The same thread exchanges heartbeats while nobody knows how long a rank works (setup,
 * first steps, evaluation, checkpoints), so only a rank that is silent for `distribute.timeout` is lost. */
#ifndef CLEAT_SRC_RANKS_H
#define CLEAT_SRC_RANKS_H

#include "cleat/ranks.h"
#include "ranks/row_sum.h"

/* How long a call waits, in seconds. A rank of this machine whose process has ended is noticed within seconds in any case.
 *
 * While ranks are watched, each says several times a second that it lives, whatever its own thread does (it compiles, evaluates,
 * writes a checkpoint), and one that says nothing for `silence` is lost. They are watched from cleat_ranks_open on. An agreement
 * selects whether they are until the next one: if a rank has a finite silence then, or an error. Each exchange costs one more
 * of a single number meanwhile, so steps whose length is known go without heartbeats, by `seconds`.
 *
 * At first `silence` is 60, the others are infinite. */
typedef struct cleat_ranks_timeouts {
    double seconds;    /* for the other ranks */
    double silence;    /* while they are watched; a quarter of it once *stop is not 0 */
    double after_stop; /* as seconds, once *stop is not 0: a launcher sends a signal to all ranks when one is gone */
    double stopped;    /* for a rank of this machine whose process is stopped (SIGSTOP) */
    const volatile int *stop; /* may be NULL */
} cleat_ranks_timeouts;
void cleat_ranks_set_timeouts(cleat_ranks *ranks, const cleat_ranks_timeouts *timeouts);

/* bytes [size] of rank 0 replace those of the others. */
cleat_status cleat_ranks_broadcast(cleat_ranks *ranks, void *bytes, size_t size, cleat_error *error);
/* bytes [size] of each rank -> all [ranks, size]. Alone, all is a copy of bytes. */
cleat_status cleat_ranks_gather(cleat_ranks *ranks, const void *bytes, size_t size, void *all, cleat_error *error);

/* The ranks tell each other whether they failed, and decide together: each of asked [CLEAT_RANKS_ASKED] (NULL: none)
 * becomes the largest value of any rank. If a rank has an error, its status is returned on every rank; the error of the
 * first such rank is written, with its number and host before the text on all others. After an error, no rank waits for
 * another any more: later calls return `own`, until cleat_ranks_try_again. cleat_ranks_agree asks nothing. */
enum { CLEAT_RANKS_ASKED = 3 };
cleat_status cleat_ranks_agree_on(cleat_ranks *ranks, cleat_status own, int64_t *asked, cleat_error *error);
/* After an error on which all ranks agreed: the ranks go on. Returns the rank that had it. */
int cleat_ranks_try_again(cleat_ranks *ranks);
/* CLEAT_ERR_ARGUMENT on each rank whose hash, of what the message calls `what`, differs from that of rank 0. The ranks
 * still have to agree. */
cleat_status cleat_ranks_compare(cleat_ranks *ranks, const char *what, const char hash[33], cleat_error *error);

/* Sums values [count] over the ranks, element by element, while the caller does other work; every rank receives the same bits.
 * `values` belongs to the call until cleat_ranks_wait of the ticket returns. *squares (may be NULL) receives the sum of the
 * squares of the results, added in order in double precision. At most CLEAT_RANKS_PENDING at a time, waited for in order. */
enum { CLEAT_RANKS_PENDING = 64 };
cleat_status cleat_ranks_sum_start(cleat_ranks *ranks, float *values, size_t count, double *squares, uint64_t *ticket,
                                   cleat_error *error);
cleat_status cleat_ranks_wait(cleat_ranks *ranks, uint64_t ticket, cleat_error *error);
/* The same for a table of which each rank has some rows. The ranks have said which by a cleat_ranks_gather_start before; `table` and
 * what it points to belong to the call, as values do. */
cleat_status cleat_ranks_sum_rows_start(cleat_ranks *ranks, const cleat_row_sum *table, double *squares,
                                        uint64_t *ticket, cleat_error *error);
/* As cleat_ranks_gather, while the caller does other work; bytes and all belong to the call. */
cleat_status cleat_ranks_gather_start(cleat_ranks *ranks, void *bytes, size_t size, void *all, uint64_t *ticket,
                                      cleat_error *error);
/* Seconds that the transport has been busy so far. */
double cleat_ranks_busy_seconds(cleat_ranks *ranks);

/* Once the ranks are broken: whether this rank is the one to save what was trained: the lowest rank on the machine of rank
 * 0 whose process is alive and not stopped. */
bool cleat_ranks_saves_the_run(const cleat_ranks *ranks);

#endif

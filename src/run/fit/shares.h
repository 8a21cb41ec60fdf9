/* Shares of a global batch: how many of its samples each of several devices (ranks) computes, so that the
 * slowest finishes as early as possible. Plain arithmetic: `cleat plan` calls it with estimates, a run
 * with measured times. */
#ifndef CLEAT_SRC_SHARES_H
#define CLEAT_SRC_SHARES_H

#include "cleat/core.h"

enum { CLEAT_MAX_RANKS = 1024 };

/* How long a rank takes for n >= 1 samples of one optimizer step: fixed_seconds + n * seconds_per_sample, the
 * latter above 0. */
typedef struct cleat_rank_time {
    double fixed_seconds, seconds_per_sample;
} cleat_rank_time;

/* The time of `samples` samples; 0 for none. */
double cleat_rank_seconds(const cleat_rank_time *time, int64_t samples);

/* Cuts `samples` samples into shares [ranks] of at least 1, so that the slowest rank takes the least time
 * possible: after one sample for each, every further one goes to the rank that would finish it first; ties
 * go to the earliest rank. *seconds (may be NULL): of the slowest rank. CLEAT_ERR_ARGUMENT: an invalid
 * time, no ranks or too many, fewer samples than ranks or more than 2^40. */
cleat_status cleat_shares_solve(int ranks, const cleat_rank_time *times, int64_t samples, int64_t *shares,
                                double *seconds, cleat_error *error);

/* As cleat_shares_solve, but ranks that would slow the step are left out: shares[r] = 0. Minimises the
 * time of the slowest rank plus communication_seconds[k - 1], if k ranks take part ([ranks]: exposed
 * seconds of a step; [0] is usually 0). Of equally fast choices it takes the one with fewer ranks, and of
 * equal ranks the earlier one. There may be fewer samples than ranks. *seconds (may be NULL): of the step,
 * with communication. */
cleat_status cleat_shares_choose(int ranks, const cleat_rank_time *times, int64_t samples,
                                 const double *communication_seconds, int64_t *shares, double *seconds,
                                 cleat_error *error);

/* Cuts any number of samples in proportion to `shares` [ranks], e.g. a short last batch. Uses largest
 * remainders; ties go to the earliest rank. A rank may get 0; one with share 0 always does. If `samples`
 * is the sum of the shares, the cut equals the shares. CLEAT_ERR_ARGUMENT: a negative number, no share
 * above 0, or more than 2^30 samples or shares. */
cleat_status cleat_shares_cut(int ranks, const int64_t *shares, int64_t samples, int64_t *cut, cleat_error *error);

#endif

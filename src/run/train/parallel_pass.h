/* Passes without training, for evaluation and prediction, divided among the ranks of a run: each takes a
 * contiguous part of the samples, and results are combined in rank order, which is sample order.
 *
 * `parallel` may be NULL or without ranks: a single process takes all samples, and nothing is exchanged.
 * All ranks make the same calls, and exchange results only after cleat_ranks_agree on their own parts. */
#ifndef CLEAT_SRC_PARALLEL_PASS_H
#define CLEAT_SRC_PARALLEL_PASS_H

#include "train/data_parallel.h"
#include "train/output_check.h"

/* The part of this rank: *count samples from *first on; there may be none. CLEAT_ERR_ARGUMENT: several ranks
 * for more than 2^30 samples. */
cleat_status cleat_pass_part(const cleat_data_parallel *parallel, size_t samples, size_t *first, size_t *count,
                             cleat_error *error);
/* values [count] of each rank -> their sums, the same bits on all ranks. */
cleat_status cleat_pass_add(const cleat_data_parallel *parallel, double *values, size_t count, cleat_error *error);
/* Counts of all parts; the first bad sample of all. */
cleat_status cleat_pass_add_check(const cleat_data_parallel *parallel, cleat_output_check *check, cleat_error *error);
/* states [samples]: each becomes the sample's largest cleat_sample_state of any rank. */
cleat_status cleat_pass_share_states(const cleat_data_parallel *parallel, unsigned char *states, size_t samples,
                                     cleat_error *error);
/* predictions [count], of which each rank has some; output NULL: not on this rank. Rank 0 receives those
 * of the other ranks and frees them (cleat_prediction_free). */
cleat_status cleat_pass_collect(const cleat_data_parallel *parallel, const cleat_dataset *dataset,
                                cleat_prediction *predictions, size_t count, cleat_error *error);

#endif

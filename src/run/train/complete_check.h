/* Samples that have no prediction, or an incomplete one. */
#ifndef CLEAT_SRC_COMPLETE_CHECK_H
#define CLEAT_SRC_COMPLETE_CHECK_H

#include "data/dataset.h"

/* After the prediction of a dataset into `out`: CLEAT_OK if each sample has a complete one. Otherwise one
 * error that counts the samples whose files cannot be read (CLEAT_ERR_FORMAT) and those that `max_length`
 * cuts (CLEAT_ERR_ARGUMENT if there are only those), with their first names. states: a cleat_sample_state
 * for each sample. */
cleat_status cleat_check_complete(const cleat_dataset *dataset, const unsigned char *states, int64_t max_length,
                                  const char *out, cleat_error *error);

#endif

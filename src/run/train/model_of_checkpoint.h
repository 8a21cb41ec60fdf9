/* A trained model without its data and without a device: for exports. */
#ifndef CLEAT_SRC_MODEL_OF_CHECKPOINT_H
#define CLEAT_SRC_MODEL_OF_CHECKPOINT_H

#include "checkpoint/checkpoint.h"
#include "cleat/models.h"
#include "cleat/profile.h"

/* Creates the model of a checkpoint. Sizes that training took from its data (vocabulary, classes, columns)
 * are chosen to give the graph the tensors of the checkpoint. Families that are sized by data
 * (cleat_model_class.sized_by) open `data`, or if it is NULL data.path of the profile, for prediction.
 * CLEAT_ERR_FORMAT: no sizes fit; the message names a tensor. The caller destroys the model. */
cleat_status cleat_model_of_checkpoint(const cleat_profile *profile, const cleat_checkpoint *checkpoint,
                                       const char *data, cleat_model **model, cleat_error *error);

/* The length of the longest samples that the profile allows, or the model's fixed length. */
int64_t cleat_model_longest(const cleat_profile *profile, const cleat_model *model);

/* The tensor of the checkpoint with the values of a parameter or buffer of the model: its own, or that of
 * a pair of running statistics, PREFIX [2, C], in its row *row. NULL: none. */
const cleat_st_tensor *cleat_checkpoint_tensor(const cleat_checkpoint *checkpoint, const cleat_tensor *tensor,
                                               int64_t *row);

#endif

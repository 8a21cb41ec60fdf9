/* Predictions of several models for the same samples: the members of an ensemble, which are on the device one after
 * the other. Each reads the data with its own preprocessing; what they predict must mean the same. */
#ifndef CLEAT_SRC_TRAIN_MEMBERS_H
#define CLEAT_SRC_TRAIN_MEMBERS_H

#include "data/common/targets.h"
#include "models/labels.h"
#include "session/feed.h"
#include "train/load_model.h"

typedef struct cleat_members {
    size_t count, samples;     /* members; samples of the data */
    cleat_prediction *outputs; /* [count, samples] own values of each; output NULL: none */
    /* What the first one loaded predicts. */
    char folder[CLEAT_CHECKPOINT_PATH];
    cleat_checkpoint_files files;
    cleat_name_list labels;
    const cleat_profile *profile;
    cleat_targets targets; /* with the scale of numbers in `outputs`, into which those of others are converted */
    double flops;          /* cleat_loaded_model.flops */
    double losses[CLEAT_MAX_METRICS]; /* of an evaluation: sums over the members so far */
} cleat_members;

/* CLEAT_ERR_ARGUMENT: too many members, or of different families. */
cleat_status cleat_members_check(const cleat_member *members, size_t n, cleat_error *error);
/* The first member that is loaded: allocates outputs of `count` members, which cleat_members_free frees also after an
 * error. Later ones: CLEAT_ERR_ARGUMENT names how their predictions differ in meaning: labels, samples, for
 * families with cleat_model_class.combines_same_fit the fitted preprocessing. `profile` is borrowed. */
cleat_status cleat_members_add(cleat_members *members, size_t count, const cleat_loaded_model *loaded,
                               const cleat_profile *profile, cleat_error *error);
void cleat_members_free(cleat_members *members);
/* Keeps the outputs [B, ...] of a batch for one member. */
cleat_status cleat_members_keep(cleat_members *members, size_t member, const cleat_loaded_model *loaded,
                                const cleat_fed_batch *fed, const float *output, cleat_error *error);
/* Converts numbers that a member predicts for a sample to the scale of the outputs, or back; does nothing otherwise. */
void cleat_members_rescale(const cleat_members *members, const cleat_dataset *dataset, bool back, float *values);
/* Combines what all members predict for a sample, whose outputs [count] are written too, borrowed: combined has as many
 * values as each of them. */
cleat_status cleat_members_combine(const cleat_members *members, const cleat_loaded_model *loaded, size_t sample,
                                   float *combined, const float *outputs[CLEAT_MAX_MEMBERS], cleat_error *error);

/* Test-time flips (flips.c): runs a batch in the views of the profile's augmentation, then output [B, ...] is their
 * mean, pixels at their place in the image. CLEAT_ERR_NOT_SUPPORTED: the model has no images. */
cleat_status cleat_flips_run(const cleat_loaded_model *loaded, const cleat_profile *profile, cleat_feed *feed,
                             const cleat_work_graph *graph, const cleat_fed_batch *fed, float *output,
                             cleat_error *error);

#endif

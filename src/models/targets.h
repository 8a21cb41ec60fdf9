/* Models of samples with several labels, or with numbers (data/common/targets.h).
 *
 * The output [B, n] is a logit for each label (binary cross entropy), or a standardised number for each target (squared
 * error). The loss is the mean over the known targets of a global batch. Metrics are exact: the metric state keeps the
 * prediction of every evaluated sample.
 *
 * Numbers: mse, mae, r2 (1 - squared error / squared deviation from the mean), pearson and spearman in the unit of the
 * target; of several targets the means, and NAME_mse ... of each. Labels: macro_f1 over the labels that occur in truth
 * or predictions, micro_f1 over all decisions, subset_accuracy (all labels of a sample are right), f1_NAME. In training
 * each evaluation chooses the threshold of a label with the best F1, which checkpoints keep. */
#ifndef CLEAT_SRC_MODELS_TARGETS_H
#define CLEAT_SRC_MODELS_TARGETS_H

#include "data/common/targets.h"
#include "models/classes.h"
#include "models/settings.h"

/* MEMBER: a cleat_target_options. */
#define PROBLEM_ROW(MEMBER)                                                                                            \
    {                                                                                                                  \
        FIELD(model, problem_type, MEMBER.problem), CHOICE(cleat_problem_names, "single_label"), SHAPES_LATER,         \
            .help = "A class, any number of labels, or numbers for each sample; model.init sets it."                   \
    }
#define TARGET_ROWS(MEMBER)                                                                                            \
    {FIELD(data, label_separator, MEMBER.separator), CHOICE(cleat_label_separator_names, "any"), COMPUTES_LATER,       \
     .help = "Several labels in one column: the mark between them; any: bar, semicolon or comma."},                    \
    {                                                                                                                  \
        FIELD(data, standardise, MEMBER.standardise), BOOL("true"), COMPUTES_LATER,                                    \
            .help = "Numbers to estimate: scale them to mean 0 and deviation 1; a published head has their unit."      \
    }

/* The problem of a family's settings; its metrics, terminated by a NULL name; its loss term, NULL: the family's. */
cleat_problem cleat_settings_problem(const cleat_model_class *type, const void *settings);
const cleat_metric_info *cleat_settings_metrics(const cleat_model_class *type, const void *settings);
const char *cleat_problem_term(cleat_problem problem);
bool cleat_model_has_targets(const cleat_model *model);
/* CLEAT_ERR_PROFILE: settings that have no meaning for the problem. */
cleat_status cleat_problem_check(const cleat_target_options *options, const cleat_class_loss_settings *loss,
                                 const char *labels, const cleat_record *record, cleat_error *error);

/* Appends the loss of the output [B, n], unless predicting; its weights are [B, n]. `target` is the input of that name,
 * [B, n, 1]; NULL: it is appended. */
void cleat_targets_loss(const cleat_model *model, cleat_graph *graph, cleat_mode mode, cleat_tensor *output,
                        cleat_tensor *target, const cleat_model_inputs *inputs, cleat_model_graph *built);
/* Writes these weights, for n = `count`. Balanced classes weigh positive labels by samples without / samples with the
 * label. */
void cleat_targets_weight(const cleat_model *model, int64_t count, const cleat_host_batch *batch,
                          const cleat_global_batch *global_batch, float *values);

/* Completes model->own, a cleat_class_info for each target, and sets model->evaluated. */
cleat_status cleat_targets_prepare(cleat_model *model, const cleat_dataset *dataset, cleat_weighting weighting,
                                   cleat_mode mode, cleat_error *error);
/* Members of cleat_model_class (metric_state_size, metric_update, fit_outputs, metric_compute, write) and of
 * cleat_model_examples (baseline, add). */
size_t cleat_targets_state_size(const cleat_model *model);
void cleat_targets_update(const cleat_model *model, const cleat_host_batch *batch, const float *output, double *state);
cleat_status cleat_targets_choose(cleat_model *model, const double *state, const cleat_dataset *dataset,
                                  cleat_error *error);
/* table: NULL, or it receives a row of each label. */
void cleat_targets_compute(const cleat_model *model, const double *state, cleat_metrics *found,
                           cleat_class_table *table);
cleat_status cleat_targets_write(const cleat_prediction *predictions, size_t count, const char *folder,
                                 cleat_error *error);
void cleat_targets_baseline(const cleat_model *model, const cleat_evaluation *evaluated, double *state, char *text);
cleat_status cleat_targets_add_example(const cleat_prediction *prediction, const cleat_class_example *example,
                                       cleat_string *json, cleat_error *error);

#endif

/* Names of classes in config.json. */
#ifndef CLEAT_SRC_PUBLISHED_LABELS_H
#define CLEAT_SRC_PUBLISHED_LABELS_H

#include "models/classes.h"
#include "weights/weights.h"

/* Whether id2label has the names of the classes `known` [count], apart from case and separators ("screen
 * door" is "screen_door"). True if either side has only numbers (LABEL_0, class_0) or another count, because
 * nothing is known then. Numbers with gaps (0, 2, 5) do not match LABEL_0, LABEL_1, ... */
bool cleat_published_same_labels(const cleat_weights *weights, const cleat_class_info *known, int64_t count);

/* Of several labels or numbers: sets model.problem_type, and the names of labels. */
cleat_status cleat_published_set_targets(const cleat_weights *weights, const cleat_setting_sink *sink,
                                         cleat_error *error);
/* Adds problem_type to config.json unless samples have one class; false: no memory. */
bool cleat_published_add_problem(const cleat_model *model, struct cJSON *config);

#endif

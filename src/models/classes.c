/* Classes of samples of any kind (images, texts): metrics, class weights, CSV of predictions. */
#include "models/classes.h"

#include "core/files.h"
#include "core/json.h"
#include "core/memory.h"
#include "data/dataset.h"
#include "models/targets.h"
#include "models/text_metrics.h"
#include "models/text_write.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_CHARACTERS = 400 }; /* of a text that is shown */

const char *const cleat_weighting_names[] = {"none", "balanced", NULL};

const cleat_metric_info cleat_classes_metrics[] = {
    {"accuracy", true}, {"macro_f1", true}, {"macro_recall", true}, {NULL, false}};

int64_t cleat_confusion_labels(int64_t classes) {
    return classes < CLEAT_CONFUSION_LABELS ? classes : CLEAT_CONFUSION_LABELS;
}

/* Whether class a comes before b when the most frequent ones are chosen. */
static bool is_more_frequent(const cleat_class_info *classes, int64_t a, int64_t b) {
    return classes[a].samples != classes[b].samples ? classes[a].samples > classes[b].samples : a < b;
}

/* The chosen classes keep their order. */
static void choose_shown(int64_t count, cleat_class_info *classes) {
    const int32_t others = CLEAT_CONFUSION_LABELS - 1;
    int64_t chosen[CLEAT_CONFUSION_LABELS]; /* the most frequent so far, the last of them first */
    int32_t n = 0, next = 0;
    for (int64_t c = 0; c < count; ++c) classes[c].shown = (int32_t)c;
    if (count <= CLEAT_CONFUSION_LABELS) return;
    for (int64_t c = 0; c < count; ++c) {
        int32_t at = n;
        while (at > 0 && is_more_frequent(classes, c, chosen[at - 1])) --at;
        if (at >= others) continue;
        n = n < others ? n + 1 : n;
        for (int32_t i = n - 1; i > at; --i) chosen[i] = chosen[i - 1];
        chosen[at] = c;
    }
    for (int64_t c = 0; c < count; ++c) classes[c].shown = others;
    for (int32_t i = 0; i < n; ++i) classes[chosen[i]].shown = 0;
    for (int64_t c = 0; c < count; ++c)
        if (classes[c].shown == 0) classes[c].shown = next++;
}

void cleat_confusion_count(const cleat_class_info *known, int64_t classes, int32_t truth, int32_t found,
                           double *matrix) {
    matrix[known[truth].shown * cleat_confusion_labels(classes) + known[found].shown] += 1;
}

void cleat_confusion_copy(const cleat_class_info *known, int64_t classes, const double *matrix,
                          cleat_class_table *table) {
    cleat_confusion *confusion = &table->confusion;
    confusion->labels = (size_t)cleat_confusion_labels(classes);
    for (int64_t c = 0; c < classes; ++c)
        snprintf(confusion->names[known[c].shown], CLEAT_CLASS_NAME, "%s",
                 known[c].shown == CLEAT_CONFUSION_LABELS - 1 && classes > CLEAT_CONFUSION_LABELS ? "other"
                                                                                                  : known[c].name);
    memcpy(confusion->counts, matrix, confusion->labels * confusion->labels * sizeof *matrix);
}

void cleat_classes_read(const cleat_class_source *source, const cleat_dataset *dataset, cleat_weighting weighting,
                        int64_t count, cleat_class_info *classes) {
    double all = 0, present = 0;
    for (int64_t c = 0; c < count; ++c) {
        int64_t samples = source->samples(dataset, (size_t)c);
        all += (double)samples;
        present += samples > 0;
    }
    bool balanced = weighting == CLEAT_WEIGHTING_BALANCED && all > 0;
    for (int64_t c = 0; c < count; ++c) {
        double samples = (double)source->samples(dataset, (size_t)c);
        classes[c].weight = !balanced ? 1.0f : samples > 0 ? (float)(all / (present * samples)) : 0.0f;
        classes[c].samples = (int64_t)samples;
        snprintf(classes[c].name, sizeof classes[c].name, "%s", source->name(dataset, (size_t)c));
    }
    choose_shown(count, classes);
}

int32_t cleat_class_argmax(const float *logits, int64_t classes) {
    int32_t best = 0;
    for (int32_t c = 1; c < classes; ++c)
        if (logits[c] > logits[best]) best = c;
    return best;
}

enum { TARGET, PREDICTED, RIGHT, COUNTS }; /* cleat_tag_counts of each class; they precede the matrix */

size_t cleat_classes_metric_state_size(int64_t classes) {
    return (size_t)(COUNTS * classes + cleat_confusion_labels(classes) * cleat_confusion_labels(classes));
}

double cleat_classes_metric_update(const cleat_class_info *known, const int32_t *labels, const float *logits,
                                   int64_t count, int64_t classes, double *metric_state) {
    int64_t all = 0, right = 0;
    for (int64_t i = 0; i < count; ++i) {
        if (labels[i] < 0) continue;
        int32_t said = cleat_class_argmax(logits + i * classes, classes);
        metric_state[COUNTS * labels[i] + TARGET] += 1;
        metric_state[COUNTS * said + PREDICTED] += 1;
        metric_state[COUNTS * said + RIGHT] += said == labels[i];
        cleat_confusion_count(known, classes, labels[i], said, metric_state + COUNTS * classes);
        all += 1;
        right += said == labels[i];
    }
    return all ? 1 - (double)right / (double)all : NAN;
}

double cleat_class_negative_log(const float *logits, int64_t classes, int32_t label) {
    float largest = logits[0];
    double sum = 0;
    for (int64_t i = 1; i < classes; ++i) largest = fmaxf(largest, logits[i]);
    for (int64_t i = 0; i < classes; ++i) sum += exp((double)(logits[i] - largest));
    return log(sum) - (double)(logits[label] - largest);
}

void cleat_classes_metric_compute(int64_t classes, const double *metric_state, cleat_metrics *found) {
    const cleat_class_metrics metrics =
        cleat_class_counts_metrics((const cleat_tag_counts *)metric_state, (size_t)classes);
    cleat_metrics_add(found, "accuracy", metrics.accuracy);
    cleat_metrics_add(found, "macro_f1", metrics.macro_f1);
    cleat_metrics_add(found, "macro_recall", metrics.macro_recall);
}

static void softmax(const float *logits, int64_t classes, float *probabilities) {
    double sum = 0;
    float most = logits[cleat_class_argmax(logits, classes)];
    for (int64_t c = 0; c < classes; ++c) sum += exp((double)(logits[c] - most));
    for (int64_t c = 0; c < classes; ++c) probabilities[c] = (float)(exp((double)(logits[c] - most)) / sum);
}

cleat_status cleat_classes_write(const cleat_class_source *source, int64_t classes, const cleat_prediction *predictions,
                                 size_t count, const char *folder, cleat_error *error) {
    if (count && predictions[0].dataset->targets) return cleat_targets_write(predictions, count, folder, error);
    char path[4096];
    cleat_status status = CLEAT_OK;
    const char **names = cleat_alloc((size_t)classes, sizeof *names);
    float *probabilities = cleat_alloc(count * (size_t)classes, sizeof *probabilities);
    cleat_text_prediction *rows = cleat_alloc(count, sizeof *rows);
    if (!names || !probabilities || !rows) {
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu predictions", count);
        goto done;
    }
    for (int64_t c = 0; c < classes && count; ++c) names[c] = source->name(predictions[0].dataset, (size_t)c);
    for (size_t i = 0; i < count; ++i) {
        softmax(predictions[i].output, classes, probabilities + i * (size_t)classes);
        rows[i] = (cleat_text_prediction){.id = cleat_dataset_id(predictions[i].dataset, predictions[i].sample),
                                          .label = cleat_class_argmax(predictions[i].output, classes),
                                          .probabilities = probabilities + i * (size_t)classes};
    }
    status = cleat_path_join(folder, "predictions.csv", path, sizeof path, error);
    if (!status) status = cleat_text_write_classes(path, names, (size_t)classes, rows, count, error);
done:
    cleat_free(rows);
    cleat_free(probabilities);
    cleat_free(names);
    return status;
}

cleat_status cleat_classifier_open(cleat_model *model, const cleat_class_source *source, const cleat_dataset *dataset,
                                   cleat_weighting weighting, cleat_mode mode, cleat_error *error) {
    const int64_t classes = model->sizes.classes;
    cleat_class_info *known = cleat_alloc((size_t)classes, sizeof *known);
    if (!known) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %lld classes", (long long)classes);
    cleat_classes_read(source, dataset, weighting, classes, known);
    cleat_free(model->own);
    model->own = known;
    return cleat_model_has_targets(model) ? cleat_targets_prepare(model, dataset, weighting, mode, error) : CLEAT_OK;
}

size_t cleat_classifier_state_size(const cleat_model *model) {
    if (cleat_model_has_targets(model)) return cleat_targets_state_size(model);
    return cleat_classes_metric_state_size(model->sizes.classes);
}

/* badness: -log p */
static void update_labels(const cleat_model *model, const cleat_host_batch *batch, const int32_t *labels,
                          const float *output, double *metric_state) {
    const int64_t classes = model->sizes.classes;
    cleat_classes_metric_update(model->own, labels, output, batch->count, classes, metric_state);
    for (int64_t b = 0; b < batch->count && batch->badness; ++b)
        if (labels[b] >= 0) batch->badness[b] = cleat_class_negative_log(output + b * classes, classes, labels[b]);
}

cleat_status cleat_classifier_update(const cleat_model *model, const cleat_host_batch *batch, const float *output,
                                     double *metric_state, cleat_error *error) {
    cleat_synthetic_field fields[CLEAT_MODEL_FIELDS];
    const size_t count = model->type->fields(model, fields);
    (void)error;
    for (size_t i = 0; i < count; ++i)
        if (strcmp(fields[i].field.name, "label") == 0)
            update_labels(model, batch, batch->fields[i], output, metric_state);
    if (cleat_model_has_targets(model)) cleat_targets_update(model, batch, output, metric_state);
    return CLEAT_OK;
}

cleat_status cleat_classifier_combine(const cleat_model *model, const float *const *outputs, size_t n, int64_t values,
                                      float *combined, cleat_error *error) {
    cleat_model labels = *model;
    labels.sizes.classes = 1; /* the labels are independent */
    const cleat_problem problem = cleat_settings_problem(model->type, model->settings);
    if (problem == CLEAT_REGRESSION) return cleat_combine_mean(model, outputs, n, values, combined, error);
    return cleat_combine_classes(problem == CLEAT_MULTI_LABEL ? &labels : model, outputs, n, values, combined, error);
}

void cleat_classifier_compute(const cleat_model *model, const double *metric_state, cleat_metrics *found) {
    if (cleat_model_has_targets(model))
        cleat_targets_compute(model, metric_state, found, NULL);
    else
        cleat_classes_metric_compute(model->sizes.classes, metric_state, found);
}

void cleat_classifier_table(const cleat_model *model, const double *metric_state, cleat_class_table *table) {
    if (cleat_model_has_targets(model))
        cleat_targets_compute(model, metric_state, &(cleat_metrics){0}, table);
    else
        cleat_classes_table(model->own, model->sizes.classes, metric_state, table);
}

cleat_status cleat_classifier_baseline(const cleat_model *model, const cleat_evaluation *evaluated,
                                       double *metric_state, char *text, cleat_error *error) {
    (void)error;
    if (cleat_model_has_targets(model))
        cleat_targets_baseline(model, evaluated, metric_state, text);
    else
        cleat_classes_baseline(model->own, model->sizes.classes, evaluated->metric_state, metric_state, text);
    return CLEAT_OK;
}

const char *cleat_class_name(const cleat_class_info *known, int32_t label) {
    return label < 0 ? NULL : known[label].name;
}

void cleat_classes_table(const cleat_class_info *known, int64_t classes, const double *metric_state,
                         cleat_class_table *table) {
    cleat_confusion_copy(known, classes, metric_state + COUNTS * classes, table);
    for (int64_t c = 0; c < classes; ++c)
        cleat_class_table_add(table, known[c].name, (const cleat_tag_counts *)metric_state + c);
}

void cleat_classes_baseline(const cleat_class_info *known, int64_t classes, const double *metric_state, double *state,
                            char *text) {
    int64_t most = 0;
    for (int64_t c = 1; c < classes; ++c)
        if (known[c].samples > known[most].samples) most = c;
    for (int32_t c = 0; c < classes; ++c) {
        const double samples = metric_state[COUNTS * c + TARGET];
        state[COUNTS * c + TARGET] = samples;
        state[COUNTS * most + PREDICTED] += samples;
        state[COUNTS * classes + known[c].shown * cleat_confusion_labels(classes) + known[most].shown] += samples;
    }
    state[COUNTS * most + RIGHT] = state[COUNTS * most + TARGET];
    snprintf(text, CLEAT_BASELINE_TEXT, "always predicting '%s', the most frequent class of the training data",
             known[most].name);
}

cleat_status cleat_classes_add_example(const cleat_class_info *known, int64_t classes,
                                       const cleat_prediction *prediction, const cleat_class_example *example,
                                       cleat_string *json, cleat_error *error) {
    if (prediction->dataset->targets) return cleat_targets_add_example(prediction, example, json, error);
    const int32_t found = cleat_class_argmax(prediction->output, classes);
    cleat_examples_begin(json, "class", prediction);
    cleat_status status =
        cleat_examples_add_image(json, "image", example->image, CLEAT_SHRINK_MEAN,
                                 example->figure ? CLEAT_FIGURE_BYTES : CLEAT_EXAMPLE_IMAGE_BYTES, error);
    cleat_examples_add_string(json, "text", example->text, TEXT_CHARACTERS);
    cleat_examples_add_string(json, "truth", cleat_class_name(known, example->label), sizeof known->name);
    cleat_examples_add_string(json, "prediction", cleat_class_name(known, found), sizeof known->name);
    const double probability = exp(-cleat_class_negative_log(prediction->output, classes, found));
    json_add(json, json_digits("confidence", probability, 4), json_close('}'));
    return status;
}

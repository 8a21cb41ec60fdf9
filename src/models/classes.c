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

enum { SHOWN_CLASSES = 5 };     /* maximum number of classes for which each kind of confusion is a metric */
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
                          cleat_confusion *confusion) {
    confusion->labels = (size_t)cleat_confusion_labels(classes);
    for (int64_t c = 0; c < classes; ++c) confusion->names[known[c].shown] = known[c].name;
    if (classes > CLEAT_CONFUSION_LABELS) confusion->names[CLEAT_CONFUSION_LABELS - 1] = "other";
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

enum { TARGET, PREDICTED, RIGHT, COUNTS }; /* counts of each class; they precede the matrix */

static double *matrix_of(double *metric_state, int64_t classes) {
    return metric_state + COUNTS * classes;
}

size_t cleat_classes_metric_state_size(int64_t classes) {
    return (size_t)(COUNTS * classes + cleat_confusion_labels(classes) * cleat_confusion_labels(classes));
}

void cleat_classes_metric_update(const cleat_class_info *known, const int32_t *labels, const float *logits,
                                 int64_t count, int64_t classes, double *metric_state) {
    for (int64_t i = 0; i < count; ++i) {
        if (labels[i] < 0) continue;
        int32_t said = cleat_class_argmax(logits + i * classes, classes);
        metric_state[COUNTS * labels[i] + TARGET] += 1;
        metric_state[COUNTS * said + PREDICTED] += 1;
        metric_state[COUNTS * said + RIGHT] += said == labels[i];
        cleat_confusion_count(known, classes, labels[i], said, matrix_of(metric_state, classes));
    }
}

void cleat_classes_metric_compute(const cleat_class_info *known, int64_t classes, const double *metric_state,
                                  cleat_metrics *found) {
    const double *matrix = metric_state + COUNTS * classes;
    char name[48];
    cleat_tag_counts *counts = cleat_alloc((size_t)classes, sizeof *counts);
    cleat_class_metrics metrics = {.accuracy = NAN, .macro_f1 = NAN, .macro_recall = NAN};
    for (int64_t c = 0; counts && c < classes; ++c)
        counts[c] = (cleat_tag_counts){.target = (int64_t)metric_state[COUNTS * c + TARGET],
                                       .predicted = (int64_t)metric_state[COUNTS * c + PREDICTED],
                                       .right = (int64_t)metric_state[COUNTS * c + RIGHT]};
    if (counts) metrics = cleat_class_counts_metrics(counts, (size_t)classes);
    cleat_metrics_add(found, "accuracy", metrics.accuracy);
    cleat_metrics_add(found, "macro_f1", metrics.macro_f1);
    cleat_metrics_add(found, "macro_recall", metrics.macro_recall);
    for (int64_t i = 0; i < classes * classes && classes <= SHOWN_CLASSES; ++i) {
        snprintf(name, sizeof name, "%.18s_as_%.18s", known[i / classes].name, known[i % classes].name);
        cleat_metrics_add(found, name, matrix[i]);
    }
    cleat_free(counts);
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

void cleat_classifier_compute(const cleat_model *model, const double *metric_state, cleat_metrics *found) {
    if (cleat_model_has_targets(model))
        cleat_targets_compute(model, metric_state, found);
    else
        cleat_classes_metric_compute(model->own, model->sizes.classes, metric_state, found);
}

void cleat_classifier_confusion(const cleat_model *model, const double *metric_state, cleat_confusion *confusion) {
    if (!cleat_model_has_targets(model))
        cleat_classes_confusion(model->own, model->sizes.classes, metric_state, confusion);
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

void cleat_classes_confusion(const cleat_class_info *known, int64_t classes, const double *metric_state,
                             cleat_confusion *confusion) {
    cleat_confusion_copy(known, classes, metric_state + COUNTS * classes, confusion);
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
        matrix_of(state, classes)[known[c].shown * cleat_confusion_labels(classes) + known[most].shown] += samples;
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
    float *probabilities = cleat_alloc((size_t)classes, sizeof *probabilities);
    if (!probabilities) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %lld classes", (long long)classes);
    softmax(prediction->output, classes, probabilities);
    cleat_examples_begin(json, "class", prediction);
    cleat_status status =
        cleat_examples_add_image(json, "image", example->image, CLEAT_SHRINK_MEAN,
                                 example->figure ? CLEAT_FIGURE_BYTES : CLEAT_EXAMPLE_IMAGE_BYTES, error);
    cleat_examples_add_string(json, "text", example->text, TEXT_CHARACTERS);
    cleat_examples_add_string(json, "truth", cleat_class_name(known, example->label), sizeof known->name);
    cleat_examples_add_string(json, "prediction", cleat_class_name(known, found), sizeof known->name);
    json_add(json, json_digits("confidence", probabilities[found], 4), json_close('}'));
    cleat_free(probabilities);
    return status;
}

/* Classes of samples of any kind (images, texts): metrics, class weights, CSV of predictions. */
#include "models/classes.h"

#include "core/files.h"
#include "core/memory.h"
#include "models/text_metrics.h"
#include "models/text_write.h"

#include <math.h>
#include <stdio.h>

enum { SHOWN_CLASSES = 5 }; /* maximum number of classes for which each kind of confusion is a metric */

const char *const cleat_weighting_names[] = {"none", "balanced", NULL};

const cleat_metric_info cleat_classes_metrics[] = {
    {"accuracy", true}, {"macro_f1", true}, {"macro_recall", true}, {NULL, false}};

void cleat_classes_read(const cleat_class_source *source, const cleat_dataset *dataset, cleat_weighting weighting,
                        int64_t count, cleat_class *classes) {
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
        snprintf(classes[c].name, sizeof classes[c].name, "%s", source->name(dataset, (size_t)c));
    }
}

int32_t cleat_class_argmax(const float *logits, int64_t classes) {
    int32_t best = 0;
    for (int32_t c = 1; c < classes; ++c)
        if (logits[c] > logits[best]) best = c;
    return best;
}

enum { TARGET, PREDICTED, RIGHT, COUNTS }; /* counts of each class; they precede the matrix */

static bool has_matrix(int64_t classes) {
    return classes <= SHOWN_CLASSES;
}

size_t cleat_classes_metric_state_size(int64_t classes) {
    return (size_t)(COUNTS * classes + (has_matrix(classes) ? classes * classes : 0));
}

void cleat_classes_metric_update(const int32_t *labels, const float *logits, int64_t count, int64_t classes,
                                 double *metric_state) {
    double *matrix = metric_state + COUNTS * classes;
    for (int64_t i = 0; i < count; ++i) {
        if (labels[i] < 0) continue;
        int32_t said = cleat_class_argmax(logits + i * classes, classes);
        metric_state[COUNTS * labels[i] + TARGET] += 1;
        metric_state[COUNTS * said + PREDICTED] += 1;
        metric_state[COUNTS * said + RIGHT] += said == labels[i];
        if (has_matrix(classes)) matrix[labels[i] * classes + said] += 1;
    }
}

void cleat_classes_metric_compute(const cleat_class *known, int64_t classes, const double *metric_state,
                                  cleat_metrics *found) {
    const double *matrix = metric_state + COUNTS * classes;
    char name[48];
    cleat_count *counts = cleat_alloc((size_t)classes, sizeof *counts);
    cleat_class_metrics metrics = {.accuracy = NAN, .macro_f1 = NAN, .macro_recall = NAN};
    for (int64_t c = 0; counts && c < classes; ++c)
        counts[c] = (cleat_count){.target = (int64_t)metric_state[COUNTS * c + TARGET],
                                  .predicted = (int64_t)metric_state[COUNTS * c + PREDICTED],
                                  .right = (int64_t)metric_state[COUNTS * c + RIGHT]};
    if (counts) metrics = cleat_class_counts_metrics(counts, (size_t)classes);
    cleat_metrics_add(found, "accuracy", metrics.accuracy);
    cleat_metrics_add(found, "macro_f1", metrics.macro_f1);
    cleat_metrics_add(found, "macro_recall", metrics.macro_recall);
    for (int64_t i = 0; i < classes * classes && has_matrix(classes); ++i) {
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
    if (status == CLEAT_OK) status = cleat_text_write_classes(path, names, (size_t)classes, rows, count, error);
done:
    cleat_free(rows);
    cleat_free(probabilities);
    cleat_free(names);
    return status;
}

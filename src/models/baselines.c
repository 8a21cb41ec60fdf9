/* Naive Bayes and nearest class mean: one pass over the training samples, one over the evaluated ones. */
#include "models/baselines.h"

#include "core/memory.h"
#include "models/classes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_WEIGHTS = 1 << 24 };
static const double MAX_COST = 1e10;

cleat_status cleat_baseline_samples(const cleat_evaluation *evaluated, int64_t cost, uint32_t **samples, size_t *count,
                                    cleat_error *error) {
    const double most = MAX_COST / (double)cost;
    size_t all = 0;
    *samples = NULL;
    *count = 0;
    if (cleat_dataset_is_whole(evaluated->dataset) || (double)evaluated->n_samples > most) return CLEAT_OK;
    cleat_status status = cleat_dataset_samples(evaluated->dataset, CLEAT_SPLIT_TRAIN, samples, &all, error);
    *count = (double)all <= most / 10 ? all : (size_t)(most / 10) + 1;
    for (size_t i = 0; i < *count; ++i) (*samples)[i] = (*samples)[i * all / *count];
    return status;
}

struct cleat_scorer {
    int64_t classes, features;
    int32_t label;                   /* of the training sample that is read; below 0: scores are computed */
    double *weights, *bias, *scores; /* [features, classes], [classes], [classes]; first sums and numbers of samples */
    float *logits;                   /* [classes] */
};

void cleat_scorer_add(cleat_scorer *scorer, int64_t at, double value) {
    double *weights = scorer->weights + at * scorer->classes;
    if (scorer->label >= 0) weights[scorer->label] += value;
    for (int64_t c = 0; c < scorer->classes && scorer->label < 0; ++c) scorer->scores[c] += value * weights[c];
}

/* From sums to weights: log((n + 1) / (sum of n + features)) and the logarithm of the number of samples; or the mean m
 * and -|m|^2 / 2, since |x - m|^2 is least where m x - |m|^2 / 2 is largest. A class without samples is not chosen. */
static void fit(cleat_scorer *s, bool counts) {
    for (int64_t c = 0; c < s->classes; ++c) {
        const double n = s->bias[c];
        double sum = (double)s->features, square = 0;
        for (int64_t f = 0; f < s->features; ++f) sum += s->weights[f * s->classes + c];
        for (int64_t f = 0; f < s->features && n > 0; ++f) {
            double *weight = &s->weights[f * s->classes + c];
            *weight = counts ? log((*weight + 1) / sum) : *weight / n;
            square += *weight * *weight;
        }
        s->bias[c] = n <= 0 ? -INFINITY : counts ? log(n) : -square / 2;
    }
}

/* Reads training samples into the sums (metric_state NULL), or adds the predictions of samples to the metric state. */
static cleat_status pass(cleat_scorer *s, const cleat_scorer_source *source, const cleat_model *model,
                         const cleat_dataset *dataset, const uint32_t *samples, size_t count, double *metric_state,
                         cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < count && !status; ++i) {
        const int32_t label = source->label(dataset, samples[i]);
        double most = -INFINITY;
        if (label < 0) continue;
        s->label = metric_state ? -1 : label;
        if (!metric_state) s->bias[label] += 1;
        memcpy(s->scores, s->bias, (size_t)s->classes * sizeof *s->scores);
        status = source->read(dataset, samples[i], s, error);
        if (!metric_state || status) continue;
        for (int64_t c = 0; c < s->classes; ++c) most = fmax(most, s->scores[c]);
        for (int64_t c = 0; c < s->classes; ++c) s->logits[c] = (float)(s->scores[c] - most);
        cleat_classes_metric_update(model->own, &label, s->logits, 1, s->classes, metric_state);
    }
    return status;
}

cleat_status cleat_scorer_baseline(const cleat_model *model, const cleat_evaluation *evaluated,
                                   const cleat_scorer_source *source, double *metric_state, char *text,
                                   cleat_error *error) {
    const size_t classes = (size_t)model->sizes.classes, features = (size_t)source->features;
    const cleat_dataset *dataset = evaluated->dataset;
    cleat_scorer s = {.classes = model->sizes.classes, .features = source->features};
    uint32_t *samples = NULL;
    size_t count = 0;
    if (!features || features > MAX_WEIGHTS / classes) return CLEAT_OK;
    cleat_status status = cleat_baseline_samples(evaluated, source->cost, &samples, &count, error);
    if (status || !count) goto done;
    s.weights = cleat_alloc((features + 3) * classes, sizeof *s.weights);
    if (!s.weights) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a baseline");
    if (status) goto done;
    s.bias = s.weights + features * classes;
    s.scores = s.bias + classes;
    s.logits = (float *)(s.scores + classes);
    status = pass(&s, source, model, dataset, samples, count, NULL, error);
    fit(&s, source->counts);
    if (!status)
        status = pass(&s, source, model, dataset, evaluated->samples, evaluated->n_samples, metric_state, error);
    if (!status) snprintf(text, CLEAT_BASELINE_TEXT, "%s", source->text);
done:
    cleat_free(s.weights);
    cleat_samples_free(samples);
    return status;
}

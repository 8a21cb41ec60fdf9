/* Guessing tokens by their frequency. */
#include "models/token_guess.h"

#include "core/memory.h"
#include "data/dataset.h"

#include <math.h>
#include <stdio.h>

/* counts [vocabulary] of the tokens to predict in a sample. */
static cleat_status count_labels(const cleat_dataset *dataset, size_t sample, size_t field, double *counts,
                                 cleat_error *error) {
    const int64_t length = cleat_dataset_length(dataset, sample);
    int32_t *labels = cleat_alloc((size_t)length, sizeof *labels);
    void *slots[CLEAT_MODEL_FIELDS] = {NULL};
    if (!labels) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %lld tokens", (long long)length);
    slots[field] = labels;
    cleat_status status = cleat_dataset_fill(dataset, sample, length, NULL, slots, error);
    for (int64_t l = 0; l < length && !status; ++l)
        if (labels[l] >= 0) counts[labels[l]] += 1;
    cleat_free(labels);
    return status;
}

enum { COUNTED_SAMPLES = 20000 };

/* counts [vocabulary] of the tokens to predict in evenly spaced training samples. */
static cleat_status count_training(const cleat_dataset *dataset, size_t field, double *counts, cleat_error *error) {
    const size_t all = cleat_dataset_count(dataset), step = all / COUNTED_SAMPLES + 1;
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < all && !status; i += step)
        if (cleat_dataset_split(dataset, i) == CLEAT_SPLIT_TRAIN)
            status = count_labels(dataset, i, field, counts, error);
    return status;
}

/* Scores guesses of `truth` [vocabulary] by `known` [vocabulary]. */
static cleat_token_guess score(const double *truth, const double *known, int64_t vocabulary) {
    cleat_token_guess guess = {.count = 0};
    int64_t best = 0;
    double all = 0;
    for (int64_t v = 0; v < vocabulary; ++v) {
        all += known[v];
        if (known[v] > known[best]) best = v;
    }
    for (int64_t v = 0; v < vocabulary; ++v) {
        guess.count += truth[v];
        guess.negative_log -= truth[v] * log((known[v] + 1) / (all + (double)vocabulary));
    }
    guess.right = all > 0 ? truth[best] : NAN;
    if (all <= 0) guess.negative_log = NAN; /* there are no training texts here */
    return guess;
}

cleat_status cleat_guess_tokens(const cleat_evaluation *evaluated, size_t field, int64_t vocabulary,
                                cleat_token_guess *guess, char *text, cleat_error *error) {
    double *truth = cleat_alloc((size_t)vocabulary, 2 * sizeof *truth), *known = truth ? truth + vocabulary : NULL;
    if (!truth) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %lld tokens", (long long)vocabulary);
    cleat_status status = count_training(evaluated->dataset, field, known, error);
    for (size_t i = 0; i < evaluated->n_samples && !status; ++i)
        status = count_labels(evaluated->dataset, evaluated->samples[i], field, truth, error);
    if (!status) *guess = score(truth, known, vocabulary);
    cleat_free(truth);
    snprintf(text, CLEAT_BASELINE_TEXT, "%s", "guessing tokens by their frequency in the training texts");
    return status;
}

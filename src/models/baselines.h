/* Baselines that are fitted to the training part of the data (cleat_model_examples.fitted). */
#ifndef CLEAT_SRC_BASELINES_H
#define CLEAT_SRC_BASELINES_H

#include "models/examples.h"

/* Returns training samples as cleat_dataset_samples does: none if the data have no training part, or if the evaluation
 * would take some ten seconds at `cost` nanoseconds a sample; at most a tenth as many as that, at even distances. */
cleat_status cleat_baseline_samples(const cleat_evaluation *evaluated, int64_t cost, uint32_t **samples, size_t *count,
                                    cleat_error *error);

typedef struct cleat_scorer cleat_scorer;
/* Adds `value` to feature `at` of the sample that is read. */
void cleat_scorer_add(cleat_scorer *scorer, int64_t at, double value);

/* A classifier that is linear in features of the samples. If they are counts, it is multinomial naive Bayes with
 * Laplace smoothing 1 (Manning, Raghavan, Schuetze, "Introduction to Information Retrieval", 2008, section 13.2);
 * else it chooses the class with the nearest mean. */
typedef struct cleat_scorer_source {
    const char *text; /* description of the baseline */
    bool counts;
    int64_t features, cost;                                        /* cost: see above */
    int32_t (*label)(const cleat_dataset *dataset, size_t sample); /* below 0: none */
    cleat_status (*read)(const cleat_dataset *dataset, size_t sample, cleat_scorer *scorer, cleat_error *error);
} cleat_scorer_source;

/* `fitted` of a model whose samples have one class each; none for more than 2^24 weights. */
cleat_status cleat_scorer_baseline(const cleat_model *model, const cleat_evaluation *evaluated,
                                   const cleat_scorer_source *source, double *metric_state, char *text,
                                   cleat_error *error);

#endif

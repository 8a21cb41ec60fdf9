/* The choice of the next token: the likeliest one, or one drawn from the likeliest. */
#include "generate/sample.h"

#include "core/philox.h"

#include <math.h>
#include <stdlib.h>

static int by_weight(const void *a, const void *b) {
    const cleat_candidate *x = a, *y = b;
    if (x->weight > y->weight || x->weight < y->weight) return x->weight > y->weight ? -1 : 1;
    return (x->token > y->token) - (x->token < y->token);
}

static int32_t likeliest(const float *logits, int64_t count) {
    int64_t best = 0;
    for (int64_t i = 1; i < count; ++i)
        if (logits[i] > logits[best]) best = i;
    return (int32_t)best;
}

/* Number of the first candidates [count], in order, that top_p leaves of those whose weights add up to `sum`. */
static int64_t nucleus(const cleat_candidate *candidates, int64_t count, double sum, double top_p) {
    double some = 0;
    for (int64_t i = 0; i < count; ++i)
        if ((some += candidates[i].weight) >= top_p * sum) return i + 1;
    return count;
}

static double sum_of(const cleat_candidate *candidates, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += candidates[i].weight;
    return sum;
}

int32_t cleat_sample_token(const cleat_sampling *sampling, const float *logits, int64_t count, uint32_t text,
                           uint32_t token, cleat_candidate *room) {
    const int32_t best = likeliest(logits, count);
    int64_t left = sampling->top_k > 0 && sampling->top_k < count ? sampling->top_k : count;
    if (sampling->temperature <= 0) return best;
    for (int64_t i = 0; i < count; ++i)
        room[i] =
            (cleat_candidate){exp(((double)logits[i] - (double)logits[best]) / sampling->temperature), (int32_t)i};
    if (left < count || sampling->top_p < 1) qsort(room, (size_t)count, sizeof *room, by_weight);
    if (sampling->top_p < 1) left = nucleus(room, left, sum_of(room, left), sampling->top_p);
    cleat_random random = cleat_random_stream(sampling->seed, text, token);
    double rest = cleat_random_uniform(&random) * sum_of(room, left);
    for (int64_t i = 0; i < left; ++i)
        if ((rest -= room[i].weight) < 0) return room[i].token;
    return best;
}

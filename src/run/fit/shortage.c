/* Explains why nothing fits, and what would. */
#include "fit/fit.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LENGTH_STEP = 8 };

static void CLEAT_PRINTF(2, 3) append(cleat_error *error, const char *format, ...) {
    size_t used = strlen(error->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text + used, sizeof error->text - used, format, arguments);
    va_end(arguments);
}

/* Whether one sample of `length` fits. */
static bool one_fits(const cleat_fit_request *request, int64_t length, int recompute) {
    cleat_lengths lengths = {.count = 1, .lengths = {length}, .samples = {1}};
    cleat_fit_request one = *request;
    cleat_fit_result fitted = {0};
    one.lengths = &lengths;
    one.most = 1;
    one.exactly = false;
    one.rates = NULL;
    bool fits = cleat_fit_one_way(&one, recompute, &fitted, NULL) == CLEAT_OK && fitted.work;
    cleat_fit_result_clear(&fitted);
    return fits;
}

/* The longest length at which one sample fits; 0: none. */
static int64_t longest_that_fits(const cleat_fit_request *request, int recompute) {
    int64_t good = 0, bad = request->lengths->lengths[request->lengths->count - 1] / LENGTH_STEP;
    while (bad - good > 1) {
        int64_t middle = good + (bad - good) / 2;
        if (one_fits(request, middle * LENGTH_STEP, recompute))
            good = middle;
        else
            bad = middle;
    }
    return good * LENGTH_STEP;
}

/* The largest micro-batch below the requested one; 0: none. */
static int64_t micro_batch_that_fits(const cleat_fit_request *request, int recompute) {
    cleat_fit_request any = *request;
    cleat_fit_result fitted = {0};
    int64_t micro_batch_size = 0;
    any.exactly = false;
    any.rates = NULL;
    if (cleat_fit_one_way(&any, recompute, &fitted, NULL) == CLEAT_OK && fitted.work)
        for (size_t b = 0; b < fitted.work->n_buckets; ++b)
            if (!micro_batch_size || fitted.work->buckets[b].micro_batch_size < micro_batch_size)
                micro_batch_size = fitted.work->buckets[b].micro_batch_size;
    cleat_fit_result_clear(&fitted);
    return micro_batch_size;
}

/* Appends the memory of one sample by category. */
static void append_breakdown(const cleat_fit_request *request, int recompute, cleat_error *error) {
    const cleat_lengths *all = request->lengths;
    cleat_bucket one = {.length = all->lengths[all->count - 1], .micro_batch_size = 1, .global_batch_size = 1};
    cleat_workload *work = NULL;
    cleat_workload_spec spec = cleat_fit_workload(request);
    spec.buckets = &one;
    spec.n_buckets = 1;
    spec.recompute = recompute;
    if (cleat_workload_create(&spec, &work, NULL)) return;
    char text[CLEAT_BYTES_TEXT];
    append(error, ". One sample of length %lld needs %s", (long long)one.length,
           cleat_bytes_text(cleat_plan_bytes(work->plan), text));
    for (int c = 0; c < CLEAT_CATEGORIES; ++c)
        append(error, "%s %s %s", c ? "," : ":", cleat_category_name((cleat_category)c),
               cleat_bytes_text(cleat_plan_category_bytes(work->plan, (cleat_category)c), text));
    cleat_workload_destroy(work);
}

/* Writes the memory that a card needs for one sample, if it is known (a single tensor may be too large
 * already). */
static void format_required_memory(const cleat_fit_request *request, int64_t min_bytes, char *text, size_t size) {
    const double enough = (double)min_bytes / request->profile->run.max_memory_usage;
    char bytes[CLEAT_BYTES_TEXT];
    if (min_bytes > 0)
        snprintf(text, size, "%s free", cleat_bytes_text((int64_t)enough + 1, bytes));
    else
        snprintf(text, size, "more memory");
}

/* For samples of a fixed size there is no general advice: which setting makes them smaller (pixels, steps,
 * frames) depends on the model. */
static void append_suggestion(const cleat_fit_request *request, int recompute, int64_t min_bytes, cleat_error *error) {
    const bool same_size = cleat_model_fixed_length(request->model) > 0;
    const int64_t length = same_size ? 0 : longest_that_fits(request, recompute);
    const cleat_param_options *params = &request->profile->train.params;
    const bool is_large = params->lora_rank != CLEAT_NONE && !strstr(params->frozen_weights, "nf4");
    const char *bits = is_large ? ", frozen weights of 4 bits (train.frozen_weights = nf4)" : "";
    char card[CLEAT_BYTES_TEXT + 16];
    format_required_memory(request, min_bytes, card, sizeof card);
    if (same_size)
        append(error, ". Smaller samples or a smaller model may fit; a card with %s would fit", card);
    else if (length)
        append(error, ". What would fit: data.max_length = %lld, a smaller model%s, or a card with %s",
               (long long)length, bits, card);
    else
        append(error, ". No length would fit: use a smaller model%s, or a card with more memory", bits);
}

void cleat_fit_explain(const cleat_fit_request *request, const cleat_fit_result *smallest, cleat_error *error) {
    if (!error) return;
    int recompute = 0;
    const bool may_recompute = request->purpose == CLEAT_FOR_TRAINING &&
                               request->profile->train.gradient_checkpointing != CLEAT_CHECKPOINTING_FALSE;
    if (may_recompute && cleat_fit_group(request, &recompute, NULL) != CLEAT_OK) recompute = 0;
    if (request->exactly) {
        int64_t micro_batch_size = micro_batch_that_fits(request, 0);
        int64_t recomputed = recompute ? micro_batch_that_fits(request, recompute) : 0;
        if (micro_batch_size)
            append(error, ". What would fit: train.batch_size = %lld, or auto", (long long)micro_batch_size);
        if (recomputed > micro_batch_size)
            append(error, "%s %lld with train.gradient_checkpointing = true",
                   micro_batch_size ? "; or" : ". What would fit:", (long long)recomputed);
        if (micro_batch_size || recomputed) return;
    }
    append_breakdown(request, recompute, error);
    append_suggestion(request, recompute, smallest->min_bytes, error);
}

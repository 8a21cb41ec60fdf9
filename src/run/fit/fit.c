/* The search for micro-batches that fit a card: tries whole global batches first, then cuts them bucket by
 * bucket. Each attempt builds and plans the graphs, which takes milliseconds and no device memory. */
#include "fit/fit.h"

#include "fit/estimate.h"

#include <stdio.h>

int64_t cleat_fit_limit(const cleat_device_facts *facts, const cleat_profile *profile) {
    int64_t available = facts->memory_free > 0 ? facts->memory_free : facts->memory_total;
    return (int64_t)((double)available * profile->run.max_memory_usage);
}

cleat_fit_request cleat_fit_request_for(const cleat_profile *profile, const cleat_model *model, cleat_purpose purpose,
                                        const cleat_lengths *lengths, const cleat_device_facts *facts,
                                        const cleat_rates *rates) {
    int64_t accumulation = profile->train.gradient_accumulation_steps, most = 0;
    if (accumulation != CLEAT_AUTO) most = cleat_ceil_div(cleat_profile_effective_batch(profile), accumulation);
    if (profile->train.batch_size != CLEAT_AUTO) most = profile->train.batch_size;
    return (cleat_fit_request){.profile = profile,
                               .model = model,
                               .purpose = purpose,
                               .lengths = lengths,
                               .facts = facts,
                               .rates = rates,
                               .limit = cleat_fit_limit(facts, profile),
                               .most = most,
                               .batches = &profile->train.bucket_batch_sizes,
                               .exactly = most > 0 || profile->train.bucket_batch_sizes.count > 0};
}

void cleat_fit_result_clear(cleat_fit_result *fitted) {
    cleat_workload_destroy(fitted->work);
    *fitted = (cleat_fit_result){0};
}

int64_t cleat_fit_micro_batches(const cleat_bucket *bucket) {
    return cleat_ceil_div(bucket->global_batch_size, bucket->micro_batch_size);
}

/* --- one attempt ---------------------------------------------------------------------------------------------- */

static bool has_batches(const cleat_bucket *buckets, size_t n) {
    for (size_t b = 0; b < n; ++b)
        if (buckets[b].micro_batch_size > 1) return true;
    return false;
}

cleat_workload_spec cleat_fit_workload(const cleat_fit_request *request) {
    return (cleat_workload_spec){.facts = request->facts,
                                 .tuning = request->tuning,
                                 .model = request->model,
                                 .purpose = request->purpose,
                                 .host_norm = request->host_norm};
}

cleat_status cleat_fit_longest_launch(const cleat_plan *plan, const cleat_rates *rates, double *seconds,
                                      const char **node, cleat_error *error) {
    *seconds = 0;
    *node = "";
    for (size_t g = 0; g < plan->layout_count; ++g)
        for (size_t i = 0; i < plan->layouts[g].node_count; ++i) {
            cleat_node_estimate estimate;
            cleat_status status = cleat_estimate_node(plan, g, i, rates, &estimate, error);
            if (status) return status;
            if (estimate.seconds <= *seconds) continue;
            *seconds = estimate.seconds;
            *node = plan->layouts[g].graph->nodes[i]->name;
        }
    return CLEAT_OK;
}

/* CLEAT_ERR_FIT: smaller micro-batches are allowed and would avoid a long launch. */
static cleat_status check_launches(const cleat_fit_request *request, const cleat_plan *plan,
                                   const cleat_bucket *buckets, size_t n, cleat_error *error) {
    const bool may_cut = !request->exactly && has_batches(buckets, n);
    const char *node;
    double seconds;
    if (!may_cut || !request->rates || request->facts->kind != CLEAT_DEVICE_GPU) return CLEAT_OK;
    cleat_status status = cleat_fit_longest_launch(plan, request->rates, &seconds, &node, error);
    if (status || seconds <= CLEAT_MAX_LAUNCH_SECONDS) return status;
    return cleat_fail(error, CLEAT_ERR_FIT, "a micro-batch of %lld at length %lld has a launch of %.2g s: '%s'",
                      (long long)buckets[n - 1].micro_batch_size, (long long)buckets[n - 1].length, seconds, node);
}

/* Plans these buckets. CLEAT_ERR_FIT: the plan needs more than the limit, or has a long launch. *bytes (may
 * be NULL) is what it needs; 0 if a single tensor is too large. */
static cleat_status try_buckets(const cleat_fit_request *request, int recompute, const cleat_bucket *buckets, size_t n,
                                cleat_workload **work, int64_t *bytes, cleat_error *error) {
    cleat_workload *made = NULL;
    if (bytes) *bytes = 0;
    cleat_workload_spec spec = cleat_fit_workload(request);
    spec.buckets = buckets;
    spec.n_buckets = n;
    spec.recompute = recompute;
    cleat_status status = cleat_workload_create(&spec, &made, error);
    if (status == CLEAT_ERR_SHAPE && has_batches(buckets, n)) {
        /* More elements than an op can count: fewer samples may fit. */
        if (error) error->status = CLEAT_ERR_FIT;
        return CLEAT_ERR_FIT;
    }
    if (status) return status;
    int64_t needed = cleat_plan_bytes(made->plan);
    if (bytes) *bytes = needed;
    if (request->limit > 0 && needed > request->limit) {
        char need[CLEAT_BYTES_TEXT], over[CLEAT_BYTES_TEXT], may[CLEAT_BYTES_TEXT];
        status =
            cleat_fail(error, CLEAT_ERR_FIT,
                       "a micro-batch of %lld at length %lld needs %s, %s too much: %s is usable; the peak is at '%s'",
                       (long long)buckets[n - 1].micro_batch_size, (long long)buckets[n - 1].length,
                       cleat_bytes_text(needed, need), cleat_bytes_text(needed - request->limit, over),
                       cleat_bytes_text(request->limit, may), cleat_plan_peak_node(made->plan));
    } else {
        status = check_launches(request, made->plan, buckets, n, error);
    }
    if (!status)
        *work = made;
    else
        cleat_workload_destroy(made);
    return status;
}

/* Plans one bucket alone. */
static cleat_status try_bucket(const cleat_fit_request *request, int recompute, const cleat_bucket *bucket,
                               int64_t *bytes, cleat_error *error) {
    cleat_workload *work = NULL;
    cleat_status status = try_buckets(request, recompute, bucket, 1, &work, bytes, error);
    cleat_workload_destroy(work);
    return status;
}

/* --- cutting global batches ----------------------------------------------------------------------------------- */

/* Finds the largest even micro-batch of the bucket's global batch that fits by itself; `bytes`: what it
 * needs. */
static cleat_status cut_bucket(const cleat_fit_request *request, int recompute, cleat_bucket *bucket, int64_t *bytes,
                               cleat_error *error) {
    cleat_bucket trial = *bucket;
    int64_t bad = 0, good = cleat_fit_micro_batches(bucket); /* micro-batches per global batch */
    cleat_status status;
    for (;;) {
        trial.micro_batch_size = cleat_ceil_div(bucket->global_batch_size, good);
        status = try_bucket(request, recompute, &trial, bytes, error);
        if (status != CLEAT_ERR_FIT) break;
        if (trial.micro_batch_size == 1) return status;
        bad = good;
        good = good * 2 < bucket->global_batch_size ? good * 2 : bucket->global_batch_size;
    }
    while (!status && good - bad > 1) {
        int64_t middle = bad + (good - bad) / 2, needed = 0;
        trial.micro_batch_size = cleat_ceil_div(bucket->global_batch_size, middle);
        status = try_bucket(request, recompute, &trial, &needed, error);
        if (!status) {
            good = middle;
            *bytes = needed;
        } else if (status == CLEAT_ERR_FIT) {
            bad = middle;
            status = CLEAT_OK;
        }
    }
    bucket->micro_batch_size = cleat_ceil_div(bucket->global_batch_size, good);
    return status;
}

/* Reduces the micro-batch of the bucket that needs the most memory by one step. */
static bool cut_further(cleat_bucket *buckets, int64_t *bytes, size_t n) {
    size_t most = n;
    for (size_t b = 0; b < n; ++b)
        if (buckets[b].micro_batch_size > 1 && (most == n || bytes[b] > bytes[most])) most = b;
    if (most == n) return false;
    cleat_bucket *bucket = &buckets[most];
    int64_t before = bucket->micro_batch_size;
    bucket->micro_batch_size = cleat_bucket_split(bucket->global_batch_size, before - 1);
    /* Exact enough for the buckets to take turns. */
    bytes[most] = bytes[most] / before * bucket->micro_batch_size;
    return true;
}

/* Cuts each bucket by itself, then all of them together. They share an arena, and together seldom need more
 * than the largest. */
static cleat_status cut_all(const cleat_fit_request *request, int recompute, cleat_bucket *buckets, size_t n,
                            cleat_workload **work, cleat_error *error) {
    int64_t bytes[CLEAT_BUCKETS];
    cleat_status status = CLEAT_OK;
    for (size_t b = n; b-- > 0 && !status;) status = cut_bucket(request, recompute, &buckets[b], &bytes[b], error);
    if (status) return status;
    while ((status = try_buckets(request, recompute, buckets, n, work, NULL, error)) == CLEAT_ERR_FIT)
        if (!cut_further(buckets, bytes, n)) break;
    return status;
}

/* --- one strategy --------------------------------------------------------------------------------------------- */

static int64_t effective_batch(const cleat_fit_request *request) {
    return cleat_profile_effective_batch(request->profile);
}

static cleat_status estimate(const cleat_fit_request *request, cleat_fit_result *fitted, cleat_error *error) {
    const cleat_workload *work = fitted->work;
    double update = 0;
    if (!request->rates || request->purpose != CLEAT_FOR_TRAINING) return CLEAT_OK;
    cleat_status status = cleat_estimate_graph(work->plan, work->update.index, request->rates, &update, error);
    for (size_t b = 0; b < work->n_buckets && !status; ++b) {
        double seconds = 0;
        status = cleat_estimate_graph(work->plan, work->train[b].index, request->rates, &seconds, error);
        int64_t global_batches = cleat_ceil_div(request->lengths->samples[b], effective_batch(request));
        fitted->step_seconds = (double)cleat_fit_micro_batches(&work->buckets[b]) * seconds + update;
        fitted->pass_seconds += (double)(global_batches > 0 ? global_batches : 1) * fitted->step_seconds;
    }
    return status;
}

/* Whole global batches did not fit. Checks that one sample does, then cuts the global batches. */
static cleat_status fit_less(const cleat_fit_request *request, int recompute, cleat_bucket *buckets, size_t n,
                             cleat_fit_result *found) {
    cleat_error of_one = {0};
    cleat_bucket one = {.length = buckets[n - 1].length, .micro_batch_size = 1, .global_batch_size = 1};
    cleat_status status = try_bucket(request, recompute, &one, &found->min_bytes, &of_one);
    if (status && (status != CLEAT_ERR_FIT || !request->exactly)) found->why = of_one;
    if (status) return status;
    if (request->exactly) return CLEAT_ERR_FIT;
    return cut_all(request, recompute, buckets, n, &found->work, &found->why);
}

/* The largest micro-batches that the request permits. */
static void start_buckets(const cleat_fit_request *request, cleat_bucket *buckets) {
    const cleat_int_list *batches = request->batches;
    size_t n = request->lengths->count;
    cleat_lengths_buckets(request->lengths, effective_batch(request), request->part, request->most, buckets);
    for (size_t b = 0; batches && batches->count == (int64_t)n && b < n; ++b)
        if (batches->values[b] < buckets[b].micro_batch_size) buckets[b].micro_batch_size = batches->values[b];
}

cleat_status cleat_fit_one_way(const cleat_fit_request *request, int recompute, cleat_fit_result *fitted,
                               cleat_error *error) {
    cleat_bucket buckets[CLEAT_BUCKETS];
    cleat_fit_result found = {0};
    size_t n = request->lengths->count;
    start_buckets(request, buckets);
    cleat_status status = try_buckets(request, recompute, buckets, n, &found.work, NULL, &found.why);
    if (status == CLEAT_ERR_FIT) status = fit_less(request, recompute, buckets, n, &found);
    if (!status) status = estimate(request, &found, &found.why);
    if (status == CLEAT_ERR_FIT) status = CLEAT_OK;
    if (status) {
        if (error) *error = found.why;
        cleat_fit_result_clear(&found);
        return status;
    }
    *fitted = found;
    return CLEAT_OK;
}

/* --- recomputation -------------------------------------------------------------------------------------------- */

cleat_status cleat_fit_group(const cleat_fit_request *request, int *recompute, cleat_error *error) {
    if (request->profile->train.gradient_checkpointing == CLEAT_CHECKPOINTING_SELECTIVE) {
        *recompute = CLEAT_RECOMPUTE_CHEAP;
        return CLEAT_OK;
    }
    cleat_bucket buckets[CLEAT_BUCKETS];
    cleat_fit_request unlimited = *request;
    unlimited.limit = 0;
    cleat_lengths_buckets(request->lengths, effective_batch(request), request->part, 1, buckets);
    const cleat_bucket *longest = &buckets[request->lengths->count - 1];
    int64_t least = 0;
    size_t segments = 2;
    int best = 0;
    for (size_t group = 1; group < segments; group += 1 + group / 4) {
        cleat_workload *work = NULL;
        int64_t bytes = 0;
        cleat_status status = try_buckets(&unlimited, (int)group, longest, 1, &work, &bytes, error);
        if (status == CLEAT_ERR_FIT) continue;
        if (status) return status;
        segments = cleat_workload_segments(work);
        cleat_workload_destroy(work);
        if (group < segments && (!best || bytes < least)) {
            best = (int)group;
            least = bytes;
        }
    }
    *recompute = best;
    return CLEAT_OK;
}

/* Recomputation is chosen only if the estimated time falls below this fraction of the time with stored
 * activations. */
static const double WORTH = 0.97;

/* Whether the profile sets it. */
static bool is_demanded(const cleat_fit_request *request) {
    const int setting = request->profile->train.gradient_checkpointing;
    return setting == CLEAT_CHECKPOINTING_TRUE || setting == CLEAT_CHECKPOINTING_SELECTIVE;
}

/* Whether recomputation can help at all: with `auto` only if memory forced a global batch to be cut. */
static bool may_recompute(const cleat_fit_request *request, const cleat_fit_result *stored) {
    if (request->purpose != CLEAT_FOR_TRAINING) return false;
    if (request->profile->train.gradient_checkpointing == CLEAT_CHECKPOINTING_FALSE) return false;
    return is_demanded(request) || !stored->work || !cleat_workload_is_whole(stored->work);
}

static bool recompute_wins(const cleat_fit_request *request, const cleat_fit_result *stored,
                           const cleat_fit_result *recomputed) {
    if (!recomputed->work) return false;
    if (is_demanded(request) || !stored->work) return true;
    return recomputed->pass_seconds > 0 && recomputed->pass_seconds < WORTH * stored->pass_seconds;
}

static void format_reason(const cleat_fit_request *request, const cleat_fit_result *stored,
                          const cleat_fit_result *recomputed, bool recompute, char *why, size_t size) {
    int setting = request->profile->train.gradient_checkpointing;
    const cleat_workload *work = recompute ? recomputed->work : stored->work;
    const char *global_batches =
        cleat_workload_is_whole(work) ? "whole global batches fit" : "the largest micro-batches that fit";
    if (recompute && setting == CLEAT_CHECKPOINTING_SELECTIVE)
        snprintf(why, size, "%s; outputs of layer normalization and GELU are recomputed as set in the profile",
                 global_batches);
    else if (recompute && setting == CLEAT_CHECKPOINTING_TRUE)
        snprintf(why, size, "%s; activations are recomputed as set in the profile", global_batches);
    else if (recompute && !stored->work)
        snprintf(why, size, "%s; activations are recomputed: stored, %s", global_batches,
                 request->exactly ? "this number of samples does not fit" : "not even one sample fits");
    else if (recompute)
        snprintf(why, size, "%s; recomputing activations allows larger ones and saves %.0f %% of the estimated time",
                 global_batches, 100 * (1 - recomputed->pass_seconds / stored->pass_seconds));
    else if (setting == CLEAT_CHECKPOINTING_FALSE)
        snprintf(why, size, "%s; activations are stored as set in the profile", global_batches);
    else if (recomputed->work && recomputed->pass_seconds > 0)
        snprintf(why, size, "%s; recomputing activations would cost %.0f %% more time", global_batches,
                 100 * (recomputed->pass_seconds / stored->pass_seconds - 1));
    else
        snprintf(why, size, "%s; no recomputation is needed", global_batches);
}

/* The result with the smaller minimum, which explains best why nothing fits. */
static const cleat_fit_result *smaller(const cleat_fit_result *a, const cleat_fit_result *b) {
    return b->min_bytes > 0 && (a->min_bytes == 0 || b->min_bytes < a->min_bytes) ? b : a;
}

static cleat_status search(const cleat_fit_request *request, cleat_fit_result *chosen, cleat_fit_result *other,
                           char *why, size_t why_size, cleat_error *error) {
    cleat_fit_result stored = {0}, recomputed = {0};
    int group = 0;
    cleat_status status = cleat_fit_one_way(request, 0, &stored, error);
    bool try_recompute = !status && may_recompute(request, &stored);
    if (try_recompute) status = cleat_fit_group(request, &group, error);
    if (!status && group) status = cleat_fit_one_way(request, group, &recomputed, error);
    if (status) goto done;
    bool recompute = recompute_wins(request, &stored, &recomputed);
    if (!recompute && !stored.work) {
        const cleat_fit_result *smallest = smaller(&stored, &recomputed);
        if (error) *error = smallest->why;
        cleat_fit_explain(request, smallest, error);
        if (other) other->min_bytes = smallest->min_bytes;
        status = CLEAT_ERR_FIT;
        goto done;
    }
    if (why) format_reason(request, &stored, &recomputed, recompute, why, why_size);
    *chosen = recompute ? recomputed : stored;
    if (other)
        *other = recompute ? stored : recomputed;
    else
        cleat_fit_result_clear(recompute ? &stored : &recomputed);
    return CLEAT_OK;
done:
    cleat_fit_result_clear(&stored);
    cleat_fit_result_clear(&recomputed);
    return status;
}

/* The fastest kernels may need more workspace than the default ones. A profile that fits with the default
 * kernels must not fail because of tuned ones. */
cleat_status cleat_fit_search(const cleat_fit_request *request, cleat_fit_result *chosen, cleat_fit_result *other,
                              char *why, size_t why_size, cleat_error *error) {
    cleat_status status = search(request, chosen, other, why, why_size, error);
    if (status != CLEAT_ERR_FIT || !request->tuning) return status;
    cleat_fit_request plain = *request;
    plain.tuning = NULL;
    status = search(&plain, chosen, other, why, why_size, error);
    if (!status)
        cleat_log(CLEAT_LOG_INFO, "kernels: the model does not fit with the tuned kernels; using the default kernels");
    return status;
}

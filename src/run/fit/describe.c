/* The report that `cleat plan` shows: a profile fitted to a card, in numbers. */
#include "fit/fit.h"
#include "platform/files.h"

#include "graph/memory_profile.h"
#include "graph/store.h"
#include "models/model.h"

#include <stdio.h>

const char *cleat_peak_part_name(int part) {
    static const char *const names[CLEAT_PEAK_PARTS] = {"stored activations", "recomputed activations", "gradients",
                                                        "workspace"};
    return part >= 0 && part < CLEAT_PEAK_PARTS ? names[part] : "";
}

/* --- lengths -------------------------------------------------------------------------------------------------- */

/* One global batch of each length that the profile gives, or of its longest length. */
static void lengths_without_data(const cleat_profile *profile, const cleat_model *model, cleat_lengths *lengths) {
    const cleat_int_list *given = &profile->data->buckets;
    int64_t fixed = cleat_model_fixed_length(model), longest = fixed > 0 ? fixed : profile->data->max_length;
    *lengths = (cleat_lengths){.count = given->count > 0 ? (size_t)given->count : 1};
    for (size_t i = 0; i < lengths->count; ++i) {
        lengths->lengths[i] = given->count > 0 ? given->values[i] : longest;
        lengths->samples[i] = cleat_profile_effective_batch(profile);
    }
}

static cleat_status lengths_of_data(const cleat_profile *profile, cleat_model *model, cleat_lengths *lengths,
                                    cleat_error *error) {
    cleat_dataset *dataset = NULL;
    uint32_t *samples = NULL;
    size_t count = 0;
    cleat_status status = cleat_model_open_data(model, profile->data->path, CLEAT_MODE_TRAIN, NULL, &dataset, error);
    if (!status) status = cleat_dataset_samples(dataset, CLEAT_SPLIT_TRAIN, &samples, &count, error);
    if (!status && profile->data->limit > 0 && (size_t)profile->data->limit < count)
        count = (size_t)profile->data->limit;
    if (!status)
        status =
            cleat_lengths_choose(profile, cleat_model_fixed_length(model), dataset, samples, count, lengths, error);
    cleat_samples_free(samples);
    cleat_dataset_destroy(dataset);
    return status;
}

cleat_status cleat_fit_lengths(const cleat_profile *profile, cleat_model *model, cleat_lengths *lengths,
                               bool *data_known, cleat_error *error) {
    *data_known = access(profile->data->path, F_OK) == 0;
    if (*data_known) return lengths_of_data(profile, model, lengths, error);
    lengths_without_data(profile, model, lengths);
    return CLEAT_OK;
}

/* --- numbers of a fitted workload ----------------------------------------------------------------------------- */

static void describe_way(const cleat_fit_result *fitted, const cleat_lengths *lengths, cleat_fit_way *way) {
    *way = (cleat_fit_way){.fits = fitted->work != NULL, .bytes = fitted->min_bytes};
    if (!fitted->work) return;
    const cleat_bucket *longest = &fitted->work->buckets[fitted->work->n_buckets - 1];
    int64_t samples = 0;
    for (size_t i = 0; i < lengths->count; ++i) samples += lengths->samples[i];
    way->micro_batch_size = longest->micro_batch_size;
    way->micro_batches = cleat_fit_micro_batches(longest);
    way->bytes = cleat_plan_bytes(fitted->work->plan);
    way->step_seconds = fitted->step_seconds;
    if (fitted->pass_seconds > 0) way->samples_per_second = (double)samples / fitted->pass_seconds;
}

/* Plans the same micro-batches with another model. */
static cleat_status plan_other(const cleat_fit_request *request, const cleat_workload *work, const cleat_model *model,
                               cleat_workload **other, cleat_error *error) {
    cleat_device_facts roomy = *request->facts;
    roomy.max_allocation = INT64_C(1) << 50; /* larger than any plan, so that it fits */
    cleat_workload_spec spec = cleat_fit_workload(request);
    spec.facts = &roomy;
    spec.model = model;
    spec.buckets = work->buckets;
    spec.n_buckets = work->n_buckets;
    spec.recompute = work->recompute;
    return cleat_workload_create(&spec, other, error);
}

/* Computes the bytes saved by storing activations in half precision. */
static cleat_status describe_storage(const cleat_fit_request *request, const cleat_workload *work,
                                     cleat_fit_report *report, cleat_error *error) {
    cleat_model single = *request->model; /* borrows its settings */
    cleat_workload *same = NULL;
    report->single_arena = report->arena_bytes;
    if (cleat_dtype_size(work->storage) == 4) return CLEAT_OK;
    single.options.precision = CLEAT_PRECISION_F32;
    cleat_status status = plan_other(request, work, &single, &same, error);
    if (status) return status;
    report->single_arena = cleat_plan_category_bytes(same->plan, CLEAT_BYTES_ARENA);
    cleat_workload_destroy(same);
    return CLEAT_OK;
}

/* Computes the bytes saved by frozen parameters, against the same micro-batches with all parameters
 * trained. */
static cleat_status describe_training(const cleat_fit_request *request, const cleat_workload *work,
                                      cleat_fit_report *report, cleat_error *error) {
    cleat_model full = *request->model; /* borrows its settings */
    cleat_workload *same = NULL;
    report->trained_parameters = cleat_store_trained(work->store);
    report->full_bytes = report->bytes;
    if (report->trained_parameters == report->parameters) return CLEAT_OK;
    full.options.params.freeze[0] = 0;
    full.options.params.lora_rank = 0;
    cleat_status status = plan_other(request, work, &full, &same, error);
    if (status) return status;
    report->full_bytes = cleat_plan_bytes(same->plan);
    cleat_workload_destroy(same);
    return CLEAT_OK;
}

static void describe_blocks(const cleat_workload *work, cleat_fit_report *report) {
    const cleat_store *store = work->store;
    for (size_t i = 0; i < store->count; ++i) {
        const cleat_tensor *weight = store->block_weights[i];
        if (!weight) continue;
        if (report->frozen_type == CLEAT_F32 || weight->rule.blocks != CLEAT_Q8) /* embeddings may be q8 */
            report->frozen_type = weight->rule.blocks;
        if (cleat_store_blocks_of(store, store->params[i]))
            report->block_elements += cleat_tensor_elements(weight);
        else
            ++report->unblocked_weights;
    }
}

/* Planned bytes are linear in the micro-batch size, except for alignment and the order of blocks. */
static cleat_status describe_slope(const cleat_fit_request *request, const cleat_workload *work,
                                   cleat_fit_report *report, cleat_error *error) {
    cleat_bucket longest = work->buckets[work->n_buckets - 1];
    int64_t high = longest.micro_batch_size > 1 ? longest.micro_batch_size : 2, bytes[2] = {0, 0},
            batches[2] = {1, high};
    for (int i = 0; i < 2; ++i) {
        cleat_workload *one = NULL;
        longest.micro_batch_size = batches[i];
        if (longest.global_batch_size < longest.micro_batch_size) longest.global_batch_size = longest.micro_batch_size;
        cleat_workload_spec spec = cleat_fit_workload(request);
        spec.buckets = &longest;
        spec.n_buckets = 1;
        spec.recompute = work->recompute;
        cleat_status status = cleat_workload_create(&spec, &one, error);
        /* With two samples a tensor is too large to plan. */
        if (status == CLEAT_ERR_FIT && i > 0) return CLEAT_OK;
        if (status) return status;
        bytes[i] = cleat_plan_bytes(one->plan);
        cleat_workload_destroy(one);
    }
    report->bytes_per_sample = (bytes[1] - bytes[0]) / (high - 1);
    report->fixed_bytes = bytes[0] - report->bytes_per_sample;
    return CLEAT_OK;
}

static cleat_status describe_peaks(const cleat_workload *work, cleat_fit_report *report, cleat_error *error) {
    const cleat_work_graph *longest = &work->train[work->n_buckets - 1];
    cleat_memory_profile memory;
    cleat_status status = cleat_memory_profile_find(work->plan, longest->index, &memory, error);
    if (status) return status;
    report->forward_peak = memory.forward_peak;
    report->training_peak = memory.training_peak;
    snprintf(report->forward_peak_node, CLEAT_NAME, "%s", memory.forward_peak_node->name);
    snprintf(report->training_peak_node, CLEAT_NAME, "%s", memory.training_peak_node->name);
    for (int i = 0; i < CLEAT_PEAK_PARTS; ++i) report->peak_parts[i] = memory.parts[i];
    return CLEAT_OK;
}

static cleat_status describe_work(const cleat_fit_request *request, const cleat_workload *work,
                                  cleat_fit_report *report, cleat_error *error) {
    cleat_tuning_log(request->tuning, work->plan);
    report->recompute = work->recompute != 0;
    report->n_buckets = work->n_buckets;
    for (size_t b = 0; b < work->n_buckets; ++b)
        report->buckets[b] = (cleat_fit_bucket){.length = work->buckets[b].length,
                                                .samples = report->data_known ? request->lengths->samples[b] : 0,
                                                .global_batch_size = work->buckets[b].global_batch_size,
                                                .micro_batch_size = work->buckets[b].micro_batch_size,
                                                .micro_batches = cleat_fit_micro_batches(&work->buckets[b])};
    report->parameters = cleat_store_elements(work->store);
    report->bytes = cleat_plan_bytes(work->plan);
    for (int c = 0; c < CLEAT_CATEGORIES; ++c)
        report->category_bytes[c] = cleat_plan_category_bytes(work->plan, (cleat_category)c);
    report->arena_bytes = report->category_bytes[CLEAT_BYTES_ARENA];
    report->lower_bound = cleat_plan_lower_bound(work->plan);
    report->slabs = work->plan->slab_count;
    for (size_t i = 0; i < work->plan->slab_count; ++i)
        if (work->plan->slabs[i].bytes > report->largest_slab) report->largest_slab = work->plan->slabs[i].bytes;
    describe_blocks(work, report);
    cleat_status status = describe_storage(request, work, report, error);
    if (!status) status = describe_training(request, work, report, error);
    if (!status) status = describe_slope(request, work, report, error);
    return status ? status : describe_peaks(work, report, error);
}

/* --- public function ------------------------------------------------------------------------------------------ */

/* Fits the alternative that the search did not try, for comparison. */
static cleat_status find_other_way(const cleat_fit_request *request, bool recompute, cleat_fit_result *other,
                                   cleat_error *error) {
    int group = 0;
    cleat_fit_result_clear(other);
    if (recompute) return cleat_fit_one_way(request, 0, other, error);
    cleat_status status = cleat_fit_group(request, &group, error);
    return !status && group ? cleat_fit_one_way(request, group, other, error) : status;
}

static cleat_status describe(const cleat_fit_request *request, cleat_fit_report *report, cleat_error *error) {
    cleat_fit_result chosen = {0}, other = {0};
    cleat_error why = {0};
    cleat_status status = cleat_fit_search(request, &chosen, &other, report->reason, sizeof report->reason, &why);
    if (status == CLEAT_ERR_FIT) {
        report->stored.bytes = other.min_bytes;
        snprintf(report->reason, sizeof report->reason, "%.767s", why.text);
        return CLEAT_OK;
    }
    if (status) {
        if (error) *error = why;
        return status;
    }
    report->fits = true;
    bool recompute = chosen.work->recompute != 0;
    if (!other.work) status = find_other_way(request, recompute, &other, error);
    if (status) goto done;
    describe_way(&chosen, request->lengths, recompute ? &report->recomputed : &report->stored);
    describe_way(&other, request->lengths, recompute ? &report->stored : &report->recomputed);
    report->steps_per_epoch = report->data_known ? report->steps_per_epoch : 0;
    if (report->data_known) report->epoch_seconds = chosen.pass_seconds;
    report->run_seconds = report->epoch_seconds * (double)request->profile->train.epochs;
    status = describe_work(request, chosen.work, report, error);
done:
    cleat_fit_result_clear(&chosen);
    cleat_fit_result_clear(&other);
    return status;
}

cleat_status cleat_fit_describe(const cleat_profile *profile, const cleat_device_facts *facts, const cleat_rates *rates,
                                const cleat_tuning_table *tuning, int64_t micro_batch_size, cleat_fit_report *report,
                                cleat_error *error) {
    cleat_fit_report made = {.facts = *facts, .storage = cleat_precision_storage(profile->train.precision, facts)};
    cleat_profile *adjusted = NULL;
    cleat_model *model = NULL;
    cleat_lengths lengths;
    cleat_warn_no_tf32(profile->train.precision, facts);
    if (rates) made.rates = *rates;
    if (micro_batch_size < 0)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "invalid micro-batch size: %lld samples",
                          (long long)micro_batch_size);
    cleat_status status = cleat_profile_check_training(profile, error);
    if (!status) status = cleat_profile_create_model(profile, &model, error);
    if (!status) status = cleat_profile_clone(profile, &adjusted, error);
    if (status) goto done;
    status = cleat_fit_lengths(profile, model, &lengths, &made.data_known, error);
    if (status) goto done;
    made.effective_batch = cleat_profile_effective_batch(profile);
    made.steps_per_epoch = made.data_known ? cleat_lengths_steps(&lengths, made.effective_batch) : 0;
    if (micro_batch_size > 0) {
        adjusted->train.batch_size = micro_batch_size;
        if (made.effective_batch < micro_batch_size) adjusted->train.effective_batch_size = micro_batch_size;
        /* The longest length, even if the data have fewer samples. */
        lengths = (cleat_lengths){.count = 1,
                                  .lengths = {lengths.lengths[lengths.count - 1]},
                                  .samples = {cleat_profile_effective_batch(adjusted)}};
        made.data_known = false;
    }
    cleat_fit_request request = cleat_fit_request_for(adjusted, model, CLEAT_FOR_TRAINING, &lengths, facts, rates);
    request.tuning = tuning;
    made.limit = request.limit;
    status = describe(&request, &made, error);
    if (!status) *report = made;
done:
    cleat_profile_destroy(adjusted);
    cleat_model_destroy(model);
    return status;
}

/* Sessions: combine a profile and a device into something that can run. */
#include "session/session.h"

#include "cleat/card.h"
#include "core/files.h"
#include "core/memory.h"
#include "exec/copy.h"
#include "graph/store.h"
#include "lib/shared_numbers.clh"
#include "ops/update.h"
#include "session/tuned_cache.h"

#include <stdio.h>
#include <string.h>

cleat_status cleat_session_open(cleat_device *device, const cleat_profile *profile, cleat_model *model,
                                cleat_workload *work, cleat_session **session, cleat_error *error) {
    cleat_session *made = cleat_alloc(1, sizeof *made);
    if (!made) {
        cleat_workload_destroy(work);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a session");
    }
    *made = (cleat_session){.device = device, .profile = profile, .model = model, .work = work};
    cleat_status status = cleat_exec_create(device, work->plan, &made->exec, error);
    if (!status && cleat_session_has_loss_scale(made)) {
        cleat_loss_scale_values start = {.loss_scale = (float)cleat_profile_loss_scale(profile)};
        status = cleat_session_write_loss_scale(made, &start, error);
    }
    if (status) {
        cleat_session_destroy(made);
        return status;
    }
    *session = made;
    return CLEAT_OK;
}

cleat_status cleat_session_create(const cleat_session_spec *spec, cleat_session **session, cleat_error *error) {
    cleat_workload *work = NULL;
    cleat_tuning_table *tuned = cleat_tuning_load(spec->device);
    const cleat_workload_spec planned = {.facts = cleat_device_get_facts(spec->device),
                                         .tuning = tuned,
                                         .model = spec->model,
                                         .purpose = spec->purpose,
                                         .buckets = spec->buckets,
                                         .n_buckets = spec->n_buckets,
                                         .recompute = spec->recompute};
    cleat_status status = cleat_workload_create(&planned, &work, error);
    if (!status) cleat_tuning_log(tuned, work->plan);
    cleat_tuning_destroy(tuned);
    if (status) return status;
    return cleat_session_open(spec->device, spec->profile, spec->model, work, session, error);
}

void cleat_session_destroy(cleat_session *session) {
    if (!session) return;
    cleat_exec_destroy(session->exec);
    cleat_workload_destroy(session->work);
    cleat_free(session);
}

/* --- fitting -------------------------------------------------------------------------------------------------- */

int64_t cleat_session_reduced_limit(int64_t bytes) {
    return bytes - bytes / 10;
}

/* Measured, or else those of the card's file; `known`: the file's, if there is one, which takes no time. */
static cleat_status find_rates(cleat_device *device, bool known, cleat_rates *rates, cleat_error *error) {
    cleat_card card;
    const bool has_card = cleat_card_match(cleat_device_get_facts(device), &card);
    cleat_status status = known && has_card ? CLEAT_OK : cleat_rates_measure(device, rates, error);
    if (!has_card || (!known && !status)) return status;
    *rates = card.rates;
    return CLEAT_OK;
}

/* Whether recomputation may pay, because memory forced a global batch to be cut. */
static bool speed_matters(const cleat_fit_request *request, const cleat_workload *work) {
    return request->purpose == CLEAT_FOR_TRAINING && !cleat_workload_is_whole(work) &&
           request->profile->train.gradient_checkpointing == CLEAT_CHECKPOINTING_AUTO &&
           (request->rates || !work->recompute);
}

/* One sample, or a batch that the profile sets, cannot be cut. */
static void warn_of_long_launch(const cleat_plan *plan, const cleat_rates *rates) {
    enum { LONG = 1 }; /* seconds: half of what Windows allows */
    const char *node;
    double seconds;
    if (cleat_fit_longest_launch(plan, rates, &seconds, &node, NULL) || seconds <= LONG) return;
    cleat_log(
        CLEAT_LOG_WARNING,
        "the kernel of '%s' is estimated to run for %.1f s at a time: a desktop on this card freezes meanwhile, and "
        "Windows resets a card that is busy for 2 s; set a smaller train.batch_size, or a shorter length of samples",
        node, seconds);
}

cleat_status cleat_session_search(cleat_device *device, const cleat_fit_request *base_request, cleat_fit_result *fitted,
                                  char *why, size_t why_size, cleat_error *error) {
    const bool is_gpu = cleat_device_get_facts(device)->kind == CLEAT_DEVICE_GPU;
    cleat_rates rates;
    cleat_fit_request request = *base_request;
    const bool has_rates =
        is_gpu && find_rates(device, true, &rates, NULL) == CLEAT_OK; /* else launches have no limit */
    request.rates = has_rates ? &rates : NULL;
    cleat_status status = cleat_fit_search(&request, fitted, NULL, why, why_size, error);
    if (!status && speed_matters(&request, fitted->work)) {
        cleat_fit_result_clear(fitted);
        status = find_rates(device, false, &rates, error);
        request.rates = &rates;
        if (!status) status = cleat_fit_search(&request, fitted, NULL, why, why_size, error);
    }
    if (!status && is_gpu && request.rates) warn_of_long_launch(fitted->work->plan, &rates);
    return status;
}

static cleat_status fit(cleat_device *device, const cleat_fit_request *base_request, cleat_session **session,
                        cleat_error *error) {
    cleat_fit_request request = *base_request;
    cleat_error refused = {0};
    char why[256];
    for (;;) {
        cleat_fit_result fitted = {0};
        cleat_status status = cleat_session_search(device, &request, &fitted, why, sizeof why, error);
        /* No smaller plan exists: returns the device's error, which caused the retry. */
        if (status == CLEAT_ERR_FIT && refused.status) {
            if (error) *error = refused;
            return refused.status;
        }
        if (status) return status;
        int64_t bytes = cleat_plan_bytes(fitted.work->plan);
        status =
            cleat_session_open(device, request.profile, (cleat_model *)request.model, fitted.work, session, &refused);
        if (!status) {
            cleat_log(CLEAT_LOG_INFO, "plan: %s", why);
            cleat_tuning_log(request.tuning, (*session)->work->plan);
            return CLEAT_OK;
        }
        if (status != CLEAT_ERR_DEVICE_MEMORY) {
            if (error) *error = refused;
            return status;
        }
        request.limit = cleat_session_reduced_limit(bytes);
        request.exactly = false;
        char text[2][CLEAT_BYTES_TEXT];
        cleat_log(CLEAT_LOG_WARNING, "out of device memory although %s should fit (%s): retrying with at most %s",
                  cleat_bytes_text(bytes, text[0]), refused.text, cleat_bytes_text(request.limit, text[1]));
    }
}

/* A resumed run uses the current tuning table. If its choices differ from those of the earlier process,
 * sums change order and results change by rounding, as with other micro-batches. The log identifies the
 * choices. */
cleat_status cleat_session_fit(cleat_device *device, const cleat_fit_request *base_request, cleat_session **session,
                               cleat_error *error) {
    cleat_fit_request request = *base_request;
    cleat_tuning_table *tuned = cleat_tuning_load(device);
    request.tuning = tuned;
    cleat_status status = fit(device, &request, session, error);
    cleat_tuning_destroy(tuned);
    return status;
}

cleat_status cleat_session_initialise(cleat_session *session, uint64_t seed, cleat_error *error) {
    return cleat_exec_initialise(session->exec, seed, error);
}

int64_t cleat_session_input_bytes(const cleat_session *session) {
    int64_t most = 0;
    const cleat_work_graph *lists[2] = {session->work->train, session->work->evaluate};
    for (int k = 0; k < 2; ++k)
        for (size_t b = 0; b < session->work->n_buckets; ++b) {
            if (!lists[k][b].graph) continue;
            int64_t bytes = cleat_exec_input_bytes(session->exec, lists[k][b].index);
            if (bytes > most) most = bytes;
        }
    return most;
}

void cleat_session_prepare(const cleat_session *session, const cleat_work_graph *graph, void *staging,
                           const cleat_host_batch *batch, const cleat_global_batch *global_batch,
                           const cleat_dropout_key *key) {
    char *bytes = staging;
    if (graph->sample_weight_offset >= 0)
        cleat_model_sample_weight(session->model, batch, global_batch,
                                  (float *)(void *)(bytes + graph->sample_weight_offset));
    if (graph->rng_offset >= 0) {
        uint32_t rng[4] = {0};
        if (key) {
            rng[0] = (uint32_t)key->seed;
            rng[1] = (uint32_t)(key->seed >> 32);
            rng[2] = (uint32_t)key->step;
            rng[3] = key->first;
        }
        memcpy(bytes + graph->rng_offset, rng, sizeof rng);
    }
    if (graph->seed_offset >= 0) {
        float one = 1.0f;
        memcpy(bytes + graph->seed_offset, &one, sizeof one);
    }
    if (graph->samples_offset >= 0) {
        int32_t samples = (int32_t)batch->count;
        memcpy(bytes + graph->samples_offset, &samples, sizeof samples);
    }
}

void cleat_session_prepare_update(const cleat_session *session, void *staging, double rate, int64_t step) {
    const cleat_profile *profile = session->profile;
    const bool lion = profile->train.optimizer == CLEAT_OPTIMIZER_LION;
    const cleat_adamw_spec spec = {.beta1 = (float)profile->train.beta1,
                                   .beta2 = (float)(lion ? profile->train.lion_beta2 : profile->train.beta2),
                                   .eps = (float)profile->train.eps,
                                   .weight_decay = (float)profile->train.weight_decay,
                                   .max_norm = (float)profile->train.max_grad_norm};
    const cleat_sgd_spec sgd = {.momentum = (float)profile->train.momentum,
                                .nesterov = profile->train.nesterov,
                                .weight_decay = spec.weight_decay,
                                .max_norm = spec.max_norm};
    float hyper[HYPER_COUNT];
    if (profile->train.optimizer == CLEAT_OPTIMIZER_SGD)
        cleat_sgd_hyper(&sgd, rate, hyper);
    else
        cleat_adamw_hyper(&spec, rate, step, hyper);
    int32_t slot = (int32_t)(step % CLEAT_RING);
    char *bytes = staging;
    memcpy(bytes + cleat_exec_input_offset(session->exec, session->work->update.index, session->work->hyper), hyper,
           sizeof hyper);
    memcpy(bytes + cleat_exec_input_offset(session->exec, session->work->update.index, session->work->slot), &slot,
           sizeof slot);
}

void cleat_session_prepare_norm(const cleat_session *session, void *staging, float norm) {
    const size_t update = session->work->update.index;
    memcpy((char *)staging + cleat_exec_input_offset(session->exec, update, session->work->norm), &norm, sizeof norm);
}

int cleat_session_moments(const cleat_session *session) {
    const cleat_profile *profile = session->profile;
    if (profile->train.optimizer == CLEAT_OPTIMIZER_SGD) return profile->train.momentum > 0;
    return profile->train.optimizer == CLEAT_OPTIMIZER_LION ? 1 : 2;
}

int64_t cleat_session_flat(const cleat_session *session) {
    return session->work->store->flat_elements;
}

int64_t cleat_session_trained(const cleat_session *session) {
    return session->work->store->trained_elements;
}

/* Copies the parameters of which the device has only half weights to or from a host copy of all parameters. */
static cleat_status copy_half_only(cleat_session *session, float *to, const float *from, cleat_error *error) {
    const cleat_tensor *param;
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; (param = cleat_store_param(session->work->store, i)) && !status; ++i) {
        if (!param->half_only || cleat_store_blocks_of(session->work->store, param)) continue;
        status = to ? cleat_exec_read_unchecked(session->exec, 0, param, to + param->flat_offset, error)
                    : cleat_exec_write_unchecked(session->exec, 0, param, from + param->flat_offset, error);
    }
    return status;
}

cleat_status cleat_session_read_flat(cleat_session *session, cleat_flat_buffer which, float *values,
                                     cleat_error *error) {
    cleat_status status =
        cleat_exec_read_unchecked(session->exec, 0, &session->work->store->flat[which], values, error);
    return status || which != CLEAT_FLAT_PARAMETERS ? status : copy_half_only(session, values, NULL, error);
}

/* Writing the parameters as a whole must also update the half weights; cleat_exec_write does so only for
 * single parameters. */
cleat_status cleat_session_write_flat(cleat_session *session, cleat_flat_buffer which, const float *values,
                                      cleat_error *error) {
    const cleat_work_graph *refresh = &session->work->refresh;
    cleat_status status =
        cleat_exec_write_unchecked(session->exec, 0, &session->work->store->flat[which], values, error);
    if (status || which != CLEAT_FLAT_PARAMETERS) return status;
    status = copy_half_only(session, NULL, values, error);
    if (status || !refresh->graph) return status;
    return cleat_exec_run(session->exec, refresh->index, error);
}

bool cleat_session_has_loss_scale(const cleat_session *session) {
    return session->work->loss_scale.loss_scale != NULL;
}

cleat_status cleat_session_read_loss_scale(cleat_session *session, cleat_loss_scale_values *state, cleat_error *error) {
    const cleat_loss_scale *tensors = &session->work->loss_scale;
    cleat_loss_scale_values read;
    cleat_status status = cleat_exec_read_unchecked(session->exec, 0, tensors->loss_scale, &read.loss_scale, error);
    if (!status) status = cleat_exec_read_unchecked(session->exec, 0, tensors->clean_steps, &read.clean_steps, error);
    if (!status) status = cleat_exec_read_unchecked(session->exec, 0, tensors->updates, &read.updates, error);
    if (!status) *state = read;
    return status;
}

cleat_status cleat_session_write_loss_scale(cleat_session *session, const cleat_loss_scale_values *state,
                                            cleat_error *error) {
    const cleat_loss_scale *tensors = &session->work->loss_scale;
    cleat_status status = cleat_exec_write_unchecked(session->exec, 0, tensors->loss_scale, &state->loss_scale, error);
    if (!status)
        status = cleat_exec_write_unchecked(session->exec, 0, tensors->clean_steps, &state->clean_steps, error);
    return status ? status : cleat_exec_write_unchecked(session->exec, 0, tensors->updates, &state->updates, error);
}

int64_t cleat_session_values(const cleat_session *session) {
    return cleat_session_flat(session) + session->work->store->buffer_elements;
}

int64_t cleat_session_buffers(const cleat_session *session) {
    return session->work->store->buffer_elements;
}

/* Copies the buffers from or to a host copy. */
static cleat_status copy_buffers(cleat_session *session, float *to, const float *from, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    const cleat_tensor *buffer;
    for (size_t i = 0; !status && (buffer = cleat_store_buffer(session->work->store, i)); ++i)
        status = to ? cleat_exec_read_unchecked(session->exec, 0, buffer, to + buffer->flat_offset, error)
                    : cleat_exec_write_unchecked(session->exec, 0, buffer, from + buffer->flat_offset, error);
    return status;
}

cleat_status cleat_session_read_buffers(cleat_session *session, float *values, cleat_error *error) {
    return copy_buffers(session, values, NULL, error);
}

cleat_status cleat_session_write_buffers(cleat_session *session, const float *values, cleat_error *error) {
    return copy_buffers(session, NULL, values, error);
}

cleat_status cleat_session_read_values(cleat_session *session, float *values, cleat_error *error) {
    cleat_status status = cleat_session_read_flat(session, CLEAT_FLAT_PARAMETERS, values, error);
    return status ? status : cleat_session_read_buffers(session, values + cleat_session_flat(session), error);
}

cleat_status cleat_session_write_values(cleat_session *session, const float *values, cleat_error *error) {
    cleat_status status = cleat_session_write_flat(session, CLEAT_FLAT_PARAMETERS, values, error);
    return status ? status : cleat_session_write_buffers(session, values + cleat_session_flat(session), error);
}

cleat_status cleat_session_hash_blocks(cleat_session *session, char hash[33], cleat_error *error) {
    const cleat_store *store = session->work->store;
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < store->count && !status; ++i) {
        const cleat_tensor *blocks = cleat_store_blocks_of(store, store->params[i]);
        if (!blocks) continue;
        const size_t size = (size_t)cleat_tensor_bytes(blocks), head = 32;
        char *bytes = cleat_alloc(head + size, 1);
        if (!bytes) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory to compare '%s' of the ranks", blocks->name);
        memcpy(bytes, hash, head);
        status = cleat_exec_read_unchecked(session->exec, 0, blocks, bytes + head, error);
        if (!status) cleat_hash_text(bytes, head + size, hash);
        cleat_free(bytes);
    }
    return status;
}

/* Logs differences between the driver's facts and the card file. CPUs are skipped because they always
 * differ. */
static void log_differences(const cleat_device_facts *facts) {
    cleat_card card;
    char text[512];
    if (facts->kind != CLEAT_DEVICE_CPU && cleat_card_match(facts, &card) &&
        cleat_card_differences(&card, facts, text, sizeof text) > 0)
        cleat_log(CLEAT_LOG_INFO, "card file %s: %s", card.name, text);
}

void cleat_session_log_plan(const cleat_session *session) {
    const cleat_device_facts *facts = cleat_device_get_facts(session->device);
    cleat_log(CLEAT_LOG_INFO, "device %s (%s), %.1f GiB, free %.1f GiB by %s", facts->name,
              cleat_device_kind_text(facts->kind), (double)facts->memory_total / 1073741824.0,
              (double)facts->memory_free / 1073741824.0, facts->memory_source);
    log_differences(facts);
    char buckets[512] = "";
    int used = 0;
    for (size_t b = 0; b < session->work->n_buckets && used < (int)sizeof buckets; ++b)
        used += snprintf(buckets + used, sizeof buckets - (size_t)used, " %lldx%lld",
                         (long long)session->work->buckets[b].micro_batch_size,
                         (long long)session->work->buckets[b].length);
    const int64_t all = cleat_store_elements(session->work->store), trained = cleat_store_trained(session->work->store);
    char frozen[64] = "";
    if (trained < all) snprintf(frozen, sizeof frozen, ", %lld of them trained", (long long)trained);
    cleat_log(CLEAT_LOG_INFO, "model %s: %lld parameters%s; batches (samples x length)%s",
              cleat_model_name(session->model), (long long)all, frozen, buckets);
    char text[2][CLEAT_BYTES_TEXT];
    for (int c = 0; c < CLEAT_CATEGORIES; ++c) {
        int64_t bytes = cleat_plan_category_bytes(session->work->plan, (cleat_category)c);
        if (bytes)
            cleat_log(CLEAT_LOG_INFO, "  %-26s %14s", cleat_category_name((cleat_category)c),
                      cleat_bytes_text(bytes, text[0]));
    }
    cleat_log(CLEAT_LOG_INFO, "  %-26s %14s planned, %s allocated (peak at %s)", "all",
              cleat_bytes_text(cleat_plan_bytes(session->work->plan), text[0]),
              cleat_bytes_text(cleat_device_allocated(session->device), text[1]),
              cleat_plan_peak_node(session->work->plan));
}

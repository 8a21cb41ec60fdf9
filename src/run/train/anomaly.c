/* Anomaly detection: diagnostic runs of a step with finite checks, either repeated after its results were
 * not finite, or on every step (run.check_finite). */
#include "train/anomaly.h"

#include "core/memory.h"
#include "core/string.h"
#include "exec/copy.h"
#include "lib/shared_numbers.clh"

#include <math.h>

/* EVERY: minimum number of steps between two diagnoses. NAMED_SAMPLES: samples named in a message.
 * SKIPPED_IN_A_ROW: consecutive steps without an update after which the loss scale no longer explains
 * them. */
enum { EVERY = 1000, NAMED_SAMPLES = 8, SKIPPED_IN_A_ROW = 20 };

/* --- wording of an anomaly ---------------------------------------------------------------------------------------- */

/* Where the anomaly was found. */
typedef struct anomaly_context {
    const cleat_graph *graph;
    const cleat_dataset *dataset;
    const cleat_micro_batch *micro_batch; /* micro-batch of the anomaly; NULL: it belongs to no sample */
    int64_t slots;                        /* size of the micro-batch, empty slots included */
    bool scaled;                          /* the gradients are multiplied by a loss scale */
    /* for a half weight: f32 value of the parameter at its first bad element; else NULL */
    const float *parameter;
} anomaly_context;

/* Operands of at most this magnitude do not overflow f32 in any op, exp included. */
static const float ordinary = 80.0f;

/* "[1, 3, 5]" */
static void format_index(const cleat_tensor *tensor, int64_t element, cleat_string *text) {
    int64_t at[CLEAT_MAX_RANK];
    for (int d = tensor->rank; d-- > 0; element /= tensor->shape[d]) at[d] = element % tensor->shape[d];
    for (int d = 0; d < tensor->rank; ++d) cleat_string_add(text, "%s%lld", d ? ", " : "[", (long long)at[d]);
    cleat_string_add(text, "]");
}

/* Names the sample of the element, if the first dimension of the tensor is the batch. */
static void format_sample(const cleat_tensor *tensor, int64_t element, const anomaly_context *context,
                          cleat_string *text) {
    bool of_batch = tensor->role == CLEAT_ROLE_ACTIVATION || tensor->role == CLEAT_ROLE_INPUT;
    if (!context->micro_batch || !of_batch || tensor->rank == 0 || tensor->shape[0] != context->slots) return;
    int64_t slot = element / (cleat_tensor_elements(tensor) / context->slots);
    if (slot < context->micro_batch->count)
        cleat_string_add(text, " (sample %s)", cleat_dataset_id(context->dataset, context->micro_batch->samples[slot]));
    else
        cleat_string_add(text, " (a padding slot without a sample)");
}

/* "is nan at [1, 3] (sample a); 2 of 64 elements are not finite, the largest of the others is 1.5" */
static void format_elements(const cleat_tensor *tensor, const cleat_scan *scan, const anomaly_context *context,
                            cleat_string *text) {
    cleat_string_add(text, "is %g at ", (double)scan->value);
    format_index(tensor, scan->first, text);
    format_sample(tensor, scan->first, context, text);
    cleat_string_add(text, "; %lld of %lld elements are not finite", (long long)scan->bad, (long long)scan->elements);
    if (scan->bad < scan->elements) cleat_string_add(text, ", the largest finite one is %g", (double)scan->largest);
}

static void format_tensor(const cleat_tensor *tensor, cleat_string *text) {
    char shape[128];
    cleat_tensor_describe(tensor, shape, sizeof shape);
    cleat_string_add(text, "'%s' (%s)", tensor->name, shape);
}

static void format_operands(const cleat_anomaly *anomaly, cleat_string *text) {
    const char *before = ". Its operands: ";
    for (int i = 0; i < anomaly->node->n_in; ++i) {
        if (anomaly->read[i].elements == 0) continue;
        cleat_string_add(text, "%s'%s' up to %g", before, anomaly->node->in[i]->name, (double)anomaly->read[i].largest);
        before = ", ";
    }
    cleat_string_add(text, ". ");
}

static float largest_operand(const cleat_anomaly *anomaly) {
    float largest = 0;
    for (int i = 0; i < anomaly->node->n_in; ++i) largest = fmaxf(largest, anomaly->read[i].largest);
    return largest;
}

/* The operands of the node were finite, and its result is not. */
static void format_computed_cause(const cleat_anomaly *anomaly, bool backward, const anomaly_context *context,
                                  cleat_string *text) {
    if (anomaly->tensor->dtype == CLEAT_F16 && backward && context->scaled)
        cleat_string_add(
            text, "f16 overflows above 65504: the loss scale was too high for this gradient. It is reduced "
                  "automatically; if it falls below 1, use train.precision = bf16 or a smaller train.learning_rate");
    else if (anomaly->tensor->dtype == CLEAT_F16)
        cleat_string_add(text, "f16 overflows above 65504: train.precision = bf16 or f32 can represent the value; a "
                               "smaller train.learning_rate keeps activations smaller");
    else if (largest_operand(anomaly) <= ordinary)
        cleat_string_add(text,
                         "Operands of this size do not overflow: the cause is a division by 0, a root or logarithm "
                         "outside its domain, or a driver that computes wrong results, which `cleat verify` detects");
    else
        cleat_string_add(text, "Operands this large overflow in intermediate results: a smaller train.learning_rate or "
                               "train.max_grad_norm, or a longer warm-up, may help");
}

/* The tensor is a half weight of a parameter. */
static void format_copy_cause(const cleat_tensor *copy, const anomaly_context *context, cleat_string *text) {
    if (context->parameter && isfinite(*context->parameter))
        cleat_string_add(text,
                         ". The parameter is %g there, and %s: train.precision = %s can represent it; a smaller "
                         "train.learning_rate, or a larger train.weight_decay, keeps parameters smaller",
                         (double)*context->parameter,
                         copy->dtype == CLEAT_F16 ? "f16 overflows above 65504" : "bf16 overflows above 3.39e38",
                         copy->dtype == CLEAT_F16 ? "bf16 or f32" : "f32");
    else
        cleat_string_add(text, ". It is the compute copy of a parameter that was already not finite before the step: "
                               "resume from an earlier checkpoint, with a smaller train.learning_rate");
}

/* The tensor was not finite before any node ran. */
static void format_prior_cause(const cleat_tensor *tensor, const anomaly_context *context, cleat_string *text) {
    switch (tensor->role) {
    case CLEAT_ROLE_HALF_WEIGHT:
        format_copy_cause(tensor, context, text);
        break;
    case CLEAT_ROLE_PARAMETER:
        cleat_string_add(text, ". This parameter was already not finite before the step: resume from an earlier "
                               "checkpoint, with a smaller train.learning_rate");
        break;
    case CLEAT_ROLE_GRADIENT:
        cleat_string_add(text, ". These gradients were already not finite before the nodes that read them ran");
        break;
    default:
        cleat_string_add(text, ". It was already not finite before the step: resume from an earlier checkpoint");
    }
}

/* Describes the input that made the result not finite. */
static void format_source(const cleat_anomaly *anomaly, const anomaly_context *context, cleat_string *text) {
    cleat_string_add(text, "The input ");
    format_tensor(anomaly->source, text);
    cleat_string_add(text, " ");
    format_elements(anomaly->source, &anomaly->source_scan, context, text);
    bool data = cleat_dataset_find_field(context->dataset, anomaly->source->name) >= 0;
    cleat_string_add(text, "; it reached ");
    format_tensor(anomaly->tensor, text);
    cleat_string_add(text, " through op %s at %s. %s", anomaly->node->op->name, anomaly->node->name,
                     data ? "The value comes from the data: correct that sample, or remove it"
                          : "The input is filled by the runtime, not from the data: please report this as a bug");
}

/* Adds a few sentences to `text`: tensor, op, elements, operands of the op, cause and remedy. `anomaly`
 * must have a tensor. */
static void format_anomaly(const cleat_anomaly *anomaly, const anomaly_context *context, cleat_string *text) {
    const cleat_node *node = anomaly->node;
    if (anomaly->source) {
        format_source(anomaly, context, text);
        return;
    }
    bool backward = node && (size_t)node->index >= context->graph->forward_nodes;
    cleat_string_add(text, "first tensor that is not finite: ");
    format_tensor(anomaly->tensor, text);
    if (node)
        cleat_string_add(text, ", by op %s at %s (%s)", node->op->name, node->name, backward ? "backward" : "forward");
    cleat_string_add(text, ", ");
    format_elements(anomaly->tensor, &anomaly->scan, context, text);
    if (!node) {
        format_prior_cause(anomaly->tensor, context, text);
        return;
    }
    format_operands(anomaly, text);
    format_computed_cause(anomaly, backward, context, text);
}

/* --- finite checks over parts of a step ----------------------------------------------------------------------- */

static bool is_scaled(const cleat_anomaly_detector *detector) {
    return detector->engine->session->work->storage == CLEAT_F16;
}

static bool reads(const cleat_node *node, const cleat_tensor *tensor) {
    for (int i = 0; i < node->n_in; ++i)
        if (node->in[i] == tensor) return true;
    return false;
}

/* Number of leading nodes of the update graph that need only the gradients: they compute the gradient
 * norm. The nodes after them read the hyper-parameters of the step, which are uploaded only for the update
 * itself. 0: with a loss scale, the norm's own node also reads them. */
static size_t norm_nodes(const cleat_workload *work) {
    const cleat_graph *update = work->update.graph;
    size_t n = 0;
    while (n < update->node_count && !reads(update->nodes[n], work->hyper)) ++n;
    return n;
}

/* Writes finite hyper-parameters while their memory holds other data. */
static cleat_status write_no_hyper(const cleat_anomaly_detector *detector, cleat_error *error) {
    const cleat_session *session = detector->engine->session;
    const float none[HYPER_COUNT] = {0};
    return cleat_exec_write_unchecked(session->exec, session->work->update.index, session->work->hyper, none, error);
}

static cleat_status check_norm(cleat_anomaly_detector *detector, cleat_finite_check *check, cleat_anomaly *anomaly,
                               cleat_error *error) {
    const cleat_workload *work = detector->engine->session->work;
    const size_t nodes = norm_nodes(work);
    const cleat_status status = nodes ? CLEAT_OK : write_no_hyper(detector, error);
    return status ? status : cleat_finite_check_run(check, work->update.index, 0, nodes ? nodes : 1, anomaly, error);
}

static void format_norm(const cleat_anomaly_detector *detector, const cleat_anomaly *anomaly, cleat_string *text) {
    anomaly_context context = {.graph = detector->engine->session->work->update.graph,
                               .dataset = detector->data->dataset};
    cleat_string_add(text, "each gradient is finite, but their norm is not: ");
    format_anomaly(anomaly, &context, text);
}

/* Reads the f32 value of the parameter whose half weight is not finite; false if the read
 * fails. */
static bool read_parameter(const cleat_anomaly_detector *detector, const cleat_anomaly *anomaly, float *value) {
    const int64_t count = cleat_session_flat(detector->engine->session);
    float *values = cleat_alloc((size_t)count, sizeof *values);
    cleat_error error;
    bool read =
        values && cleat_session_read_flat(detector->engine->session, CLEAT_FLAT_PARAMETERS, values, &error) == CLEAT_OK;
    if (read) *value = values[anomaly->tensor->flat_offset + anomaly->scan.first];
    cleat_free(values);
    return read;
}

static void format_micro_batch(const cleat_anomaly_detector *detector, const cleat_work_graph *graph,
                               const cleat_micro_batch *micro_batch, const cleat_anomaly *anomaly, bool scaled,
                               cleat_string *text) {
    float parameter;
    bool copy = anomaly->tensor->role == CLEAT_ROLE_HALF_WEIGHT && read_parameter(detector, anomaly, &parameter);
    anomaly_context context = {.graph = graph->graph,
                               .dataset = detector->data->dataset,
                               .micro_batch = micro_batch,
                               .slots = detector->engine->session->work->buckets[micro_batch->bucket].micro_batch_size,
                               .scaled = scaled,
                               .parameter = copy ? &parameter : NULL};
    format_anomaly(anomaly, &context, text);
}

/* --- run.check_finite ----------------------------------------------------------------------------------------- */

void cleat_anomaly_end(cleat_anomaly_detector *detector) {
    cleat_finite_check_destroy(detector->check);
    detector->check = NULL;
}

static cleat_status fail_anomaly(const cleat_anomaly_detector *detector, cleat_string *found, cleat_error *error) {
    char *text = NULL;
    cleat_status status = cleat_string_detach(found, &text, error);
    if (status) return status;
    status = cleat_fail(error, CLEAT_ERR_NAN, "step %lld: %s", (long long)detector->state->step + 1, text);
    cleat_free(text);
    return status;
}

/* *loss_scale is 1 without loss scaling. */
static cleat_status read_loss_scale(const cleat_anomaly_detector *detector, float *loss_scale, cleat_error *error) {
    cleat_loss_scale_values state;
    *loss_scale = 1;
    if (!is_scaled(detector)) return CLEAT_OK;
    cleat_status status = cleat_session_read_loss_scale(detector->engine->session, &state, error);
    if (!status) *loss_scale = state.loss_scale;
    return status;
}

/* Runs the micro-batch again with a loss scale of 1. */
static cleat_status check_unscaled(cleat_anomaly_detector *detector, const cleat_work_graph *graph,
                                   const cleat_fed_batch *fed, cleat_anomaly *anomaly, cleat_error *error) {
    cleat_loss_scale_values state;
    cleat_status status = cleat_session_read_loss_scale(detector->engine->session, &state, error);
    state.loss_scale = 1;
    if (!status) status = cleat_session_write_loss_scale(detector->engine->session, &state, error);
    if (!status) status = cleat_feed_upload(detector->engine->feed, graph, fed, error);
    if (!status)
        status = cleat_finite_check_run(detector->check, graph->index, 0, graph->graph->node_count, anomaly, error);
    return status;
}

/* Finds tensors that are not finite even without a loss scale: anomaly->tensor stays NULL if all are
 * finite. States and gradients are restored afterwards. */
static cleat_status find_unscaled(cleat_anomaly_detector *detector, const cleat_work_graph *graph,
                                  const cleat_fed_batch *fed, cleat_anomaly *anomaly, cleat_error *error) {
    cleat_session *session = detector->engine->session;
    const bool was_savable = detector->engine->is_savable;
    float *gradients = cleat_alloc((size_t)cleat_session_trained(session), sizeof *gradients);
    if (!gradients) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a copy of the gradients");
    cleat_status status = cleat_session_read_flat(session, CLEAT_FLAT_GRADIENTS, gradients, error);
    if (!status) status = cleat_finite_check_snapshot(detector->check, error);
    if (!status) {
        detector->engine->is_savable = false;
        status = cleat_finite_check_restore(detector->check, error); /* zeroes the gradients */
        if (!status) status = check_unscaled(detector, graph, fed, anomaly, error);
        if (!status) status = cleat_finite_check_restore(detector->check, error);
        if (!status) status = cleat_session_write_flat(session, CLEAT_FLAT_GRADIENTS, gradients, error);
        detector->engine->is_savable = was_savable && !status;
    }
    cleat_free(gradients);
    return status;
}

static void log_overflow(cleat_anomaly_detector *detector, const cleat_work_graph *graph, const cleat_fed_batch *fed,
                         const cleat_anomaly *anomaly, float loss_scale) {
    cleat_string text = {0};
    char *message = NULL;
    if (detector->overflow_logged) return;
    detector->overflow_logged = true;
    format_micro_batch(detector, graph, fed->micro_batch, anomaly, true, &text);
    if (cleat_string_detach(&text, &message, NULL) != CLEAT_OK) return;
    cleat_log(CLEAT_LOG_INFO,
              "step %lld overflows at a loss scale of %g: %s. With a loss scale of 1 its gradient is finite; further "
              "such steps are not reported",
              (long long)detector->state->step + 1, (double)loss_scale, message);
    cleat_free(message);
}

/* Handles a tensor that is not finite. In the forward pass, or without a loss scale above 1, it is an
 * error. In the backward pass under a larger loss scale, it is an error only if it is not finite with a
 * loss scale of 1 either. */
static cleat_status handle_anomaly(cleat_anomaly_detector *detector, const cleat_work_graph *graph,
                                   const cleat_fed_batch *fed, cleat_anomaly *anomaly, cleat_error *error) {
    const cleat_graph *nodes = graph->graph;
    /* Without a node the value was bad before this run: a gradient then comes from an earlier micro-batch. */
    const bool backward = anomaly->node ? (size_t)anomaly->node->index >= nodes->forward_nodes
                                        : anomaly->tensor->role == CLEAT_ROLE_GRADIENT;
    cleat_anomaly unscaled = {0};
    cleat_string text = {0};
    float loss_scale = 1;
    cleat_status status = backward ? read_loss_scale(detector, &loss_scale, error) : CLEAT_OK;
    if (!status && loss_scale > 1) {
        status = cleat_exec_run_nodes(detector->engine->session->exec, graph->index, anomaly->next, nodes->node_count,
                                      error);
        if (!status) status = find_unscaled(detector, graph, fed, &unscaled, error);
        if (!status && !unscaled.tensor) {
            log_overflow(detector, graph, fed, anomaly, loss_scale);
            return CLEAT_OK;
        }
        *anomaly = unscaled;
    }
    if (status) return status;
    format_micro_batch(detector, graph, fed->micro_batch, anomaly, false, &text);
    return fail_anomaly(detector, &text, error);
}

cleat_status cleat_check_micro_batch(cleat_anomaly_detector *detector, const cleat_work_graph *graph,
                                     const cleat_fed_batch *fed, cleat_error *error) {
    cleat_anomaly anomaly = {0};
    cleat_status status = detector->check
                              ? CLEAT_OK
                              : cleat_finite_check_create(detector->engine->session->exec, &detector->check, error);
    if (!status) status = cleat_feed_upload(detector->engine->feed, graph, fed, error);
    if (!status)
        status = cleat_finite_check_run(detector->check, graph->index, 0, graph->graph->node_count, &anomaly, error);
    if (!status && anomaly.tensor) status = handle_anomaly(detector, graph, fed, &anomaly, error);
    return status;
}

/* Under a loss scale above 1, a gradient that is not finite may be a mere overflow and is not checked. */
cleat_status cleat_check_gradient(cleat_anomaly_detector *detector, cleat_error *error) {
    cleat_anomaly anomaly = {0};
    cleat_string text = {0};
    float loss_scale;
    cleat_status status = read_loss_scale(detector, &loss_scale, error);
    if (status || loss_scale > 1) return status;
    status = check_norm(detector, detector->check, &anomaly, error);
    if (status || !anomaly.tensor) return status;
    format_norm(detector, &anomaly, &text);
    return fail_anomaly(detector, &text, error);
}

/* --- diagnostic re-run of a step ------------------------------------------------------------------------------ */

/* Runs the next micro-batch of the pass again, with finite checks, as part of step `step`. */
static cleat_status rerun_micro_batch(cleat_anomaly_detector *detector, cleat_finite_check *check, int64_t step,
                                      const cleat_global_batch *global_batch, cleat_anomaly *anomaly,
                                      cleat_string *text, cleat_error *error) {
    cleat_fed_batch fed;
    cleat_status status = cleat_feed_next(detector->engine->feed, &fed, error);
    if (status) return status;
    const cleat_work_graph *graph = &detector->engine->session->work->train[fed.micro_batch->bucket];
    cleat_dropout_key key = {.seed = detector->state->seed, .step = step, .first = fed.micro_batch->first};
    cleat_session_prepare(detector->engine->session, graph, fed.bytes, &fed.host, global_batch, &key);
    status = cleat_feed_upload(detector->engine->feed, graph, &fed, error);
    if (!status) status = cleat_finite_check_run(check, graph->index, 0, graph->graph->node_count, anomaly, error);
    if (!status && anomaly->tensor)
        format_micro_batch(detector, graph, fed.micro_batch, anomaly, is_scaled(detector), text);
    cleat_feed_release(detector->engine->feed, &fed);
    return status;
}

static cleat_status rerun_global_batch(cleat_anomaly_detector *detector, cleat_finite_check *check, int64_t step,
                                       const cleat_global_batch *global_batch, cleat_anomaly *anomaly,
                                       cleat_string *text, cleat_error *error) {
    cleat_status status = cleat_feed_start(detector->engine->feed, detector->data->pass, global_batch->first,
                                           &detector->data->rng_key, error);
    for (size_t i = 0; i < global_batch->micro_batches && !status && !anomaly->tensor; ++i)
        status = rerun_micro_batch(detector, check, step, global_batch, anomaly, text, error);
    cleat_feed_stop(detector->engine->feed);
    if (status || anomaly->tensor) return status;
    status = check_norm(detector, check, anomaly, error);
    if (!status && anomaly->tensor) format_norm(detector, anomaly, text);
    return status;
}

/* "step 13, 4 samples (a, b, c, d): " */
static void format_step(const cleat_anomaly_detector *detector, int64_t step, const cleat_global_batch *global_batch,
                        cleat_string *text) {
    int64_t named = 0;
    cleat_string_add(text, "step %lld, %lld sample%s (", (long long)step + 1, (long long)global_batch->samples,
                     global_batch->samples == 1 ? "" : "s");
    for (size_t b = 0; b < global_batch->micro_batches; ++b) {
        const cleat_micro_batch *micro_batch = cleat_batches_get(detector->data->pass, global_batch->first + b);
        for (uint32_t i = 0; i < micro_batch->count && named < NAMED_SAMPLES; ++i, ++named)
            cleat_string_add(text, "%s%s", named ? ", " : "",
                             cleat_dataset_id(detector->data->dataset, micro_batch->samples[i]));
    }
    cleat_string_add(text, "%s): ", named < global_batch->samples ? ", ..." : "");
}

static void format_outcome(const cleat_anomaly_detector *detector, const cleat_step_stats *stats,
                           const cleat_anomaly *anomaly, cleat_string *text) {
    if (anomaly->tensor && stats->updates > 0)
        cleat_string_add(text, " (checked with the parameters of %lld steps later)", (long long)stats->updates);
    if (anomaly->tensor) return;
    cleat_string_add(text, "in a second run of the step every tensor is finite. ");
    if (stats->updates > 0)
        cleat_string_add(text,
                         "The parameters have changed in %lld steps since then and no longer reproduce the failure: "
                         "--check-finite stops at the step itself",
                         (long long)stats->updates);
    else if (is_scaled(detector))
        cleat_string_add(text, "The loss scale has been reduced since then, and that was sufficient");
    else
        cleat_string_add(text, "The parameters are unchanged, so the device computed two different results: `cleat "
                               "verify` shows whether it can be trusted");
}

static void log_anomaly(cleat_string *text) {
    char *message = NULL;
    cleat_error error = {0};
    cleat_status status = cleat_string_detach(text, &message, &error);
    cleat_log(CLEAT_LOG_WARNING, "not finite: %s", !status ? message : error.text);
    cleat_free(message);
}

static cleat_status rerun_step(cleat_anomaly_detector *detector, const cleat_step_stats *stats,
                               const cleat_global_batch *global_batch, cleat_error *error) {
    cleat_finite_check *check = NULL;
    cleat_anomaly anomaly = {0};
    cleat_error failure = {0};
    cleat_string text = {0};
    format_step(detector, stats->step, global_batch, &text);
    cleat_status undone = CLEAT_OK,
                 status = cleat_finite_check_create(detector->engine->session->exec, &check, &failure);
    if (!status) status = cleat_finite_check_snapshot(check, &failure);
    if (!status) {
        status = rerun_global_batch(detector, check, stats->step, global_batch, &anomaly, &text, &failure);
        undone = cleat_finite_check_restore(check, error);
    }
    if (!status)
        format_outcome(detector, stats, &anomaly, &text);
    else
        cleat_string_add(&text, "the cause cannot be determined: %s", failure.text);
    log_anomaly(&text);
    cleat_finite_check_destroy(check);
    return undone;
}

/* --- choice of the steps to diagnose -------------------------------------------------------------------------- */

/* Dynamic loss scaling finds the largest usable scale by overflow: gradients overflow where the scale is
 * too high, and the scale is then reduced. */
static bool is_expected_overflow(const cleat_anomaly_detector *detector, const cleat_step_stats *stats) {
    if (!is_scaled(detector) || !isfinite(stats->loss)) return false;
    return stats->loss_scale > 1 && detector->skipped < SKIPPED_IN_A_ROW;
}

cleat_status cleat_detect_anomaly(cleat_anomaly_detector *detector, const cleat_step_stats *stats, cleat_error *error) {
    cleat_global_batch global_batch;
    bool bad = !isfinite(stats->loss) || !isfinite(stats->norm);
    detector->skipped = bad ? detector->skipped + 1 : 0;
    if (!bad || stats->step < detector->next || !detector->data->pass || is_expected_overflow(detector, stats))
        return CLEAT_OK;
    int64_t position = detector->state->position - (detector->state->step - stats->step);
    if (position < 0 || !cleat_batches_global_batch(detector->data->pass, (size_t)position, &global_batch))
        return CLEAT_OK;
    detector->next = stats->step + EVERY;
    cleat_feed_stop(detector->engine->feed);
    cleat_status status = rerun_step(detector, stats, &global_batch, error);
    if (status) {
        detector->engine->is_savable = false;
        return status;
    }
    return cleat_engine_start_at(detector->engine, detector->data, detector->state->position, error);
}

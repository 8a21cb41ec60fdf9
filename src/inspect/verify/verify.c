/* Verification: repeats a reference trajectory on a device and compares all of its results. */
#include "verify/verify.h"
#include "cleat/doctor.h"
#include "core/files.h"
#include "core/memory.h"
#include "exec/copy.h"
#include "graph/graph.h"
#include "ops/lib/tiles.h"
#include "verify/published.h"
#include "verify/trajectory.h"
#include "verify/update.h"
#include "weights/layout.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct tolerances {
    double output, loss, later_losses, gradient, parameters;
    /* The error of a gradient whose norm is less than `small` times the norm of the whole gradient is
     * measured relative to that product. */
    double small, small_gradient;
} tolerances;

/* A gradient element below this fraction of the whole gradient's norm is rounding noise, but AdamW takes a
 * full-sized step for it. */
static const double noise = 1e-6;

/* Places after every node of the training graph: the step on chosen values, and the result of ten steps. */
enum { ONE_UPDATE = INT_MAX - 1, ALL_STEPS = INT_MAX };

static const tolerances tolerances_f32 = {1e-5, 1e-5, 1e-5, 1e-4, 1e-3, 1e-6, 1.0};

typedef struct verifier {
    const cleat_safetensors *file;
    cleat_golden golden; /* profile and model are owned by `run` */
    tolerances limits;
    cleat_trajectory run;
    cleat_verify_report *report;
    size_t capacity;
    float *flat;                       /* [flat elements], read from the device */
    float *before, *gradients, *after; /* [flat elements], the file's param/, grad/ and after/ */
} verifier;

static cleat_status append(verifier *v, const cleat_verification *item, cleat_error *error) {
    cleat_verify_report *report = v->report;
    cleat_status status = cleat_grow(&report->items, report->count, &v->capacity, error);
    if (status) return status;
    report->items[report->count++] = *item;
    report->failed += !item->ok;
    return CLEAT_OK;
}

/* maker: the node that computes the tensor; NULL: the optimizer steps. */
static cleat_status add(verifier *v, const char *name, const cleat_node *maker, double rel_error, double tolerance,
                        cleat_error *error) {
    cleat_verification item = {.place = maker ? maker->index : ALL_STEPS,
                               .rel_error = rel_error,
                               .tolerance = tolerance,
                               .ok = rel_error <= tolerance}; /* false for NaN */
    snprintf(item.name, sizeof item.name, "%s", name);
    snprintf(item.op, sizeof item.op, "%s", maker ? maker->op->name : "adamw");
    return append(v, &item, error);
}

/* Returns the last node of the graph that writes the tensor, or that computes the tensor of which it
 * is a reshaped alias. NULL: none. */
static const cleat_node *maker_of(const cleat_graph *graph, const cleat_tensor *tensor) {
    const cleat_tensor *bytes = cleat_root(tensor);
    for (size_t i = graph->node_count; i-- > 0;)
        for (int k = 0; graph->nodes[i]->op->variants && k < CLEAT_MAX_OUT; ++k) {
            const cleat_tensor *out = graph->nodes[i]->out[k];
            if (out && cleat_root(out) == bytes) return graph->nodes[i];
        }
    return NULL;
}

/* --- tolerances ----------------------------------------------------------------------------------------------- */

static bool has_gates(const cleat_graph *graph) {
    for (size_t i = 0; i < graph->node_count; ++i)
        if (graph->nodes[i]->op->discontinuous || graph->nodes[i]->gated) return true;
    return false;
}

/* In half storage every intermediate tensor has a relative error of u, the unit roundoff, which propagates to
 * the following ones. On the trajectories of tests/golden, outputs, losses and gradients are within 6.4 u
 * (PyTorch's autocast in bf16: 3 u, and 24 u for a small loss that results from the cancellation of large
 * values); 16 u are allowed. TF32 has the u of f16, for the operands of products alone.
 * If the graph has discontinuous operations (gates), a fraction of their elements proportional to u switches
 * sides, and each of these changes the gradient by its full size, which gives a norm proportional to sqrt(u)
 * (at most 3.8 sqrt(u); PyTorch: also 3.8). The first steps of AdamW have the size of the learning rate
 * whatever the size of the gradient, so elements whose sign is determined by rounding differ by twice their
 * step: again sqrt(u) (0.5 sqrt(u) without gates, 3.3 with; PyTorch 0.5 and 1.9). */
static tolerances tolerances_for(const cleat_workload *work) {
    if (work->storage == CLEAT_F32) return tolerances_f32;
    const double u = cleat_roundoff(work->storage);
    const bool gates = has_gates(work->train[0].graph);
    const double gradient = gates ? 8 * sqrt(u) : 16 * u;
    return (tolerances){.output = 16 * u,
                        .loss = 16 * u,
                        .later_losses = 16 * u,
                        .gradient = gradient,
                        .parameters = gates ? 8 * sqrt(u) : 2 * sqrt(u),
                        .small = 1.0 / 16,
                        .small_gradient = gradient};
}

/* --- reading the file ----------------------------------------------------------------------------------------- */

/* Reads the file's array `name` into the layout of `tensor`. */
static cleat_status read_values(const verifier *v, const char *name, const cleat_tensor *tensor, float *values,
                                cleat_error *error) {
    int64_t shape[CLEAT_MAX_RANK];
    const cleat_st_tensor *there = cleat_safetensors_find(v->file, name);
    int rank = cleat_torch_shape(tensor, there ? there->rank : 0, shape);
    cleat_status status = cleat_safetensors_expect(v->file, name, CLEAT_ST_F32, rank, shape, &there, error);
    if (!status) cleat_from_torch(tensor, rank, there->data, values);
    return status;
}

/* Reads the arrays PREFIX/NAME of all parameters, or of the trained ones, each to its offset in `flat`. */
static cleat_status read_all(const verifier *v, const char *prefix, bool frozen_too, float *flat, cleat_error *error) {
    const cleat_store *store = v->run.session->work->store;
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < cleat_store_count(store) && !status; ++i) {
        char name[CLEAT_NAME + 16];
        const cleat_tensor *param = cleat_store_param(store, i);
        if (param->rule.frozen && !frozen_too) continue;
        snprintf(name, sizeof name, "%s/%s", prefix, param->name);
        status = read_values(v, name, param, flat + param->flat_offset, error);
    }
    return status;
}

static cleat_status load_parameters(verifier *v, cleat_error *error) {
    size_t elements = (size_t)cleat_session_flat(v->run.session);
    float **lists[] = {&v->flat, &v->before, &v->gradients, &v->after};
    for (int i = 0; i < 4; ++i) {
        *lists[i] = cleat_alloc(elements, sizeof(float));
        if (!*lists[i]) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the parameters");
    }
    cleat_status status = read_all(v, "param", true, v->before, error);
    if (!status) status = read_all(v, "grad", false, v->gradients, error);
    if (!status) status = read_all(v, "after", true, v->after, error);
    return status ? status : cleat_session_write_flat(v->run.session, CLEAT_FLAT_PARAMETERS, v->before, error);
}

/* --- comparing ------------------------------------------------------------------------------------------------ */

/* Maximum of two values; NaN once either is NaN. */
static double larger(double a, double b) {
    return isnan(a) || b <= a ? a : b;
}

/* Returns the largest difference divided by the largest value. In an output with a sequence dimension,
 * padding is ignored, because it is never used. */
static double output_rel_error(const verifier *v, const cleat_tensor *output, const float *values,
                               const float *expected) {
    const int32_t *lengths = v->golden.lengths ? v->golden.lengths->data : NULL;
    double largest = 0, worst = 0;
    int64_t elements = cleat_tensor_elements(output), length = 1;
    if (output->rank > 2 && output->shape[1] == v->run.session->work->buckets[0].length) length = output->shape[1];
    int64_t width = elements / (output->shape[0] * length);
    for (int64_t i = 0; i < elements; ++i) {
        int64_t row = i / width, b = row / length;
        if (lengths && length > 1 && row % length >= lengths[b]) continue;
        double reference = expected[i], difference = fabs((double)values[i] - reference);
        if (fabs(reference) > largest) largest = fabs(reference);
        worst = larger(worst, difference);
    }
    return worst / largest;
}

/* `graph` has just run. */
static cleat_status compare_output(verifier *v, const cleat_work_graph *graph, cleat_error *error) {
    const cleat_tensor *output = graph->built.output;
    size_t elements = (size_t)cleat_tensor_elements(output);
    float *values = cleat_alloc(2 * elements, sizeof *values), *expected = values ? values + elements : NULL;
    if (!values) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the output");
    cleat_status status = read_values(v, "output", output, expected, error);
    if (!status) status = cleat_exec_read_unchecked(v->run.session->exec, graph->index, output, values, error);
    if (!status)
        status = add(v, "output", maker_of(graph->graph, output), output_rel_error(v, output, values, expected),
                     v->limits.output, error);
    cleat_free(values);
    return status;
}

static double square(double x) {
    return x * x;
}

/* Norm of the whole reference gradient. */
static double gradient_norm(const verifier *v) {
    const cleat_store *store = v->run.session->work->store;
    double sum = 0;
    for (size_t i = 0; i < cleat_store_count(store); ++i) {
        const cleat_tensor *param = cleat_store_param(store, i);
        if (param->rule.frozen) continue;
        for (int64_t k = 0; k < cleat_tensor_elements(param); ++k) sum += square(v->gradients[param->flat_offset + k]);
    }
    return sqrt(sum);
}

/* Some gradients are zero in exact arithmetic, for example those of a bias before a normalization. In single
 * precision they are rounding noise, here as in PyTorch (5e-8 of the whole gradient's norm), and must stay at
 * that level. */
static cleat_status compare_gradients(verifier *v, cleat_error *error) {
    cleat_session *session = v->run.session;
    const cleat_store *store = session->work->store;
    cleat_loss_scale_values by = {.loss_scale = 1.0f};
    const tolerances *limits = &v->limits;
    const double whole = gradient_norm(v);
    cleat_status status =
        cleat_exec_read_unchecked(session->exec, 0, &session->work->store->flat[CLEAT_FLAT_GRADIENTS], v->flat, error);
    if (!status && cleat_session_has_loss_scale(session)) status = cleat_session_read_loss_scale(session, &by, error);
    for (size_t i = 0; i < cleat_store_count(session->work->store) && !status; ++i) {
        const cleat_tensor *param = cleat_store_param(session->work->store, i);
        if (param->rule.frozen) continue;
        double difference = 0, own = 0;
        for (int64_t k = param->flat_offset; k < param->flat_offset + cleat_tensor_elements(param); ++k) {
            difference += square((double)v->flat[k] / by.loss_scale - v->gradients[k]);
            own += square(v->gradients[k]);
        }
        char name[CLEAT_NAME + 16];
        snprintf(name, sizeof name, "grad/%s", param->name);
        const bool is_small = sqrt(own) <= limits->small * whole;
        status = add(v, name, maker_of(session->work->train[0].graph, store->grads[i]),
                     sqrt(difference) / (is_small ? limits->small * whole : sqrt(own)),
                     is_small ? limits->small_gradient : limits->gradient, error);
    }
    return status;
}

/* Compares the change of the parameters over ten steps, as |difference| / |change|. Elements whose gradient
 * is noise are excluded. */
static cleat_status compare_parameters(verifier *v, cleat_error *error) {
    const cleat_session *session = v->run.session;
    const double whole = gradient_norm(v);
    double difference = 0, change = 0;
    cleat_status status = cleat_session_read_flat(v->run.session, CLEAT_FLAT_PARAMETERS, v->flat, error);
    if (status) return status;
    for (size_t i = 0; i < cleat_store_count(session->work->store); ++i) {
        const cleat_tensor *param = cleat_store_param(session->work->store, i);
        for (int64_t k = param->flat_offset; k < param->flat_offset + cleat_tensor_elements(param); ++k) {
            if (!(fabs((double)v->gradients[k]) > noise * whole)) continue;
            difference += square((double)v->flat[k] - v->after[k]);
            change += square((double)v->after[k] - v->before[k]);
        }
    }
    return add(v, "parameters", NULL, sqrt(difference / change), v->limits.parameters, error);
}

static cleat_status compare_loss(verifier *v, const cleat_st_tensor *curve, cleat_error *error) {
    const cleat_work_graph *train = &v->run.session->work->train[0];
    const cleat_node *maker = NULL; /* set if the first loss is wrong; later errors are attributed to the optimizer */
    double first = 0, worst = 0;
    for (int64_t step = 0; step < curve->shape[0]; ++step) {
        double loss, expected = ((const float *)curve->data)[step];
        cleat_status status = CLEAT_OK;
        if (step > 0) {
            status = cleat_trajectory_update(&v->run, error);
            if (!status) status = cleat_trajectory_forward_backward(&v->run, error);
        }
        if (!status) status = cleat_trajectory_loss(&v->run, &loss, error);
        if (status) return status;
        double rel_error = fabs(loss - expected) / fabs(expected);
        if (step == 0) first = rel_error;
        worst = larger(worst, rel_error);
        if (step == 0 && !(rel_error <= v->limits.loss)) maker = maker_of(train->graph, train->built.loss);
    }
    if (v->limits.later_losses == v->limits.loss) return add(v, "loss", maker, worst, v->limits.loss, error);
    cleat_status status = add(v, "loss", maker, first, v->limits.loss, error);
    return status ? status : add(v, "losses after steps", NULL, worst, v->limits.later_losses, error);
}

static cleat_status compare_update(verifier *v, cleat_error *error) {
    cleat_verification items[CLEAT_UPDATE_ITEMS];
    size_t count = 0;
    cleat_status status = cleat_verify_update(&v->run, items, &count, error);
    for (size_t i = 0; i < count && !status; ++i) {
        items[i].place = ONE_UPDATE;
        status = append(v, &items[i], error);
    }
    return status;
}

/* Opens the subject's model in its precision and with its dropout. */
static cleat_status open_golden(const cleat_verify_subject *subject, cleat_golden *golden, cleat_error *error) {
    static const char *const precisions[] = {[CLEAT_PRECISION_AUTO] = "train.precision=auto",
                                             [CLEAT_PRECISION_F32] = "train.precision=f32",
                                             [CLEAT_PRECISION_F16] = "train.precision=f16",
                                             [CLEAT_PRECISION_BF16] = "train.precision=bf16",
                                             [CLEAT_PRECISION_TF32] = "train.precision=tf32"};
    const char *const assignments[] = {precisions[subject->precision], "model.dropout=" CLEAT_RARE_DROPOUT};
    return cleat_golden_open(subject->file, assignments, subject->rare_dropout ? 2 : 1, golden, error);
}

/* Creates the session and writes the file's batch and parameters to the device. */
static cleat_status prepare(verifier *v, const cleat_verify_subject *subject, bool *more, cleat_error *error) {
    const cleat_golden *golden = &v->golden;
    cleat_status status = open_golden(subject, &v->golden, error);
    if (status) return status;
    v->run.profile = golden->profile;
    v->run.model = golden->model;
    status = subject->rank == CLEAT_RANK_TUNED
                 ? cleat_trajectory_prepare(&v->run, golden->dataset, error)
                 : cleat_trajectory_prepare_rank(&v->run, golden->dataset, subject->rank, more, error);
    if (!status && golden->weights) status = cleat_trajectory_set_sample_weight(&v->run, golden->weights, error);
    return status ? status : load_parameters(v, error);
}

static bool is_published(const verifier *v) {
    const char *mode = cleat_safetensors_metadata(v->file, "output");
    return mode && strcmp(mode, "evaluation") == 0;
}

/* Batch normalisation over a few values amplifies rounding from step to step: of four images of 32 pixels,
 * ResNet's last stage normalises four values. There PyTorch in f32 differs from itself in f64 by 2.7e-4 in
 * the losses of ten steps, and by 1.6e-3 in the parameters. A ReLU whose input is within rounding of zero
 * changes the path of AdamW: means that are one unit in the last place larger or smaller give 2.2e-4 or
 * 2.5e-2 in the losses, and 1.3e-3 or 0.15 in the parameters, with gradients within 5e-6 of the reference. Of
 * eight SegFormers, two have parameters that differ by 1.5e-2 and 5e-4 in PyTorch, and by 1.3e-2 and 1.8e-2
 * here. In half precision the steps diverge with sqrt(u) (2 and 10 sqrt(u) in f16). Outputs, gradients and a
 * single update have their own limits. */
static void allow_small_batches(cleat_dtype storage, tolerances *limits) {
    const double u = cleat_roundoff(storage);
    limits->later_losses = 4 * (storage == CLEAT_F32 ? sqrt(sqrt(u)) : sqrt(u));
    limits->parameters = 16 * (storage == CLEAT_F32 ? sqrt(sqrt(u)) : sqrt(u));
}

/* Running statistics: a file with results in evaluation mode contains their values. */
static cleat_status load_buffers(verifier *v, cleat_error *error) {
    const cleat_store *store = v->run.session->work->store;
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < store->buffer_count && !status; ++i) {
        char name[CLEAT_NAME + 16];
        snprintf(name, sizeof name, "param/%s", store->buffers[i]->name);
        float *values = cleat_alloc((size_t)cleat_tensor_elements(store->buffers[i]), sizeof *values);
        if (!values) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %s", name);
        status = read_values(v, name, store->buffers[i], values, error);
        if (!status) status = cleat_exec_write_unchecked(v->run.session->exec, 0, store->buffers[i], values, error);
        cleat_free(values);
    }
    return status;
}

/* The output before the first step: of the training graph, or of the evaluation graph if the file asks for it. */
static cleat_status check_output(verifier *v, cleat_error *error) {
    const cleat_workload *work = v->run.session->work;
    cleat_status status = CLEAT_OK;
    if (is_published(v)) {
        status = load_buffers(v, error);
        if (!status) status = cleat_trajectory_evaluate(&v->run, v->golden.dataset, error);
        if (!status) status = compare_output(v, &work->evaluate[0], error);
        return status ? status : cleat_trajectory_forward_backward(&v->run, error);
    }
    status = cleat_trajectory_forward_backward(&v->run, error);
    const bool has_output = work->train[0].built.output; /* causal_lm has only the loss */
    return status || !has_output ? status : compare_output(v, &work->train[0], error);
}

static cleat_status verify(verifier *v, const cleat_verify_subject *subject, bool *more, cleat_error *error) {
    const int64_t steps = 11;
    const cleat_st_tensor *curve = NULL;
    cleat_status status = cleat_safetensors_expect(v->file, "loss", CLEAT_ST_F32, 1, &steps, &curve, error);
    if (!status) status = prepare(v, subject, more, error);
    if (status) return status;
    v->limits = tolerances_for(v->run.session->work);
    if (is_published(v) && v->run.session->work->store->buffer_count > 0)
        allow_small_batches(v->run.session->work->storage, &v->limits);
    status = check_output(v, error);
    if (!status) status = compare_gradients(v, error);
    if (!status) status = compare_loss(v, curve, error);
    if (!status) status = compare_parameters(v, error);
    if (!status) status = compare_update(v, error);
    return status;
}

cleat_status cleat_verify_subject_on(cleat_device *device, const cleat_verify_subject *subject,
                                     cleat_verify_report *report, bool *more, cleat_error *error) {
    cleat_verify_report made = {0};
    bool further = false;
    verifier v = {.file = subject->file, .run = {.device = device, .borrowed = true}, .report = &made};
    cleat_status status = verify(&v, subject, &further, error);
    cleat_trajectory_close(&v.run);
    v.golden.profile = NULL;
    v.golden.model = NULL;
    cleat_golden_close(&v.golden);
    cleat_free(v.flat);
    cleat_free(v.before);
    cleat_free(v.gradients);
    cleat_free(v.after);
    if (status) {
        cleat_verify_free(&made);
        return status;
    }
    *report = made;
    if (more) *more = further;
    return CLEAT_OK;
}

cleat_status cleat_verify_possible(const cleat_device *device, cleat_precision precision, cleat_error *error) {
    const cleat_device_facts *facts = cleat_device_get_facts(device);
    const char *why = precision == CLEAT_PRECISION_TF32 ? cleat_matrix_refuse(facts, CLEAT_TF32) : NULL;
    return why ? cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "tf32 on '%s': %s", facts->name, why) : CLEAT_OK;
}

cleat_status cleat_verify(const cleat_verify_request *request, const char *file, cleat_verify_report *report,
                          cleat_error *error) {
    cleat_safetensors *opened = NULL;
    cleat_device *device = NULL;
    cleat_status status = cleat_folder_exists(file) ? cleat_published_golden(file, &opened, error)
                                                    : cleat_safetensors_open(file, &opened, error);
    if (!status) {
        const cleat_verify_subject subject = {
            .file = opened,
            .precision = request->precision == CLEAT_PRECISION_AUTO ? CLEAT_PRECISION_F32 : request->precision,
            .rank = CLEAT_RANK_TUNED};
        status = cleat_doctor_open_device(request->device, &device, error);
        if (!status) status = cleat_verify_possible(device, request->precision, error);
        if (!status) status = cleat_verify_subject_on(device, &subject, report, NULL, error);
        if (status && error && !strstr(error->text, file)) cleat_fail_in(error, status, "%s", file);
    }
    cleat_device_close(device);
    cleat_safetensors_close(opened);
    return status;
}

void cleat_verify_free(cleat_verify_report *report) {
    cleat_free(report->items);
    *report = (cleat_verify_report){0};
}

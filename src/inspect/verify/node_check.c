/* One node against its definition: copies, samples, tolerance, message. */
#include "verify/node_check.h"

#include "core/blocks.h"
#include "core/half.h"
#include "core/memory.h"
#include "core/philox.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { SAMPLES = 64, FEW_SAMPLES = 8, CANDIDATES = 16 };

/* Multiplications on the host for an output; of long definitions fewer elements are compared. */
static const double most_work = 4e6;

/* A kernel sums in another order than the definition, in f32: its error is far below that many roundings of
 * the sum of magnitudes, and a term that is missing or wrong is far above. */
static const double roundings = 64;

typedef struct host_tensor {
    const cleat_tensor *tensor; /* NULL: none */
    cleat_host_array array;
    void *memory;
} host_tensor;

typedef struct node_check {
    cleat_exec *exec;
    size_t graph;
    const cleat_node *node;
    const char *kernel, *variant;
    cleat_dtype storage; /* the narrowest type that the values of the output went through */
    host_tensor in[CLEAT_MAX_IN], out[CLEAT_MAX_OUT];
    cleat_host_values values;
    cleat_node_check *result;
    double slack; /* of the output that is being compared */
} node_check;

static cleat_status widen(host_tensor *host, size_t elements, cleat_error *error) {
    const cleat_dtype dtype = host->tensor->dtype;
    const bool blocks = cleat_block_elements(dtype) != 0;
    if (dtype != CLEAT_F16 && dtype != CLEAT_BF16 && !blocks) return CLEAT_OK;
    float *wide = cleat_alloc(elements, sizeof *wide);
    if (!wide) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a copy of '%s'", host->tensor->name);
    if (blocks)
        cleat_blocks_values(dtype, host->memory, (int64_t)elements, wide);
    else
        (dtype == CLEAT_F16 ? cleat_from_f16 : cleat_from_bf16)(host->memory, elements, wide);
    cleat_free(host->memory);
    host->memory = wide;
    return CLEAT_OK;
}

static cleat_status copy(const node_check *check, const cleat_tensor *tensor, host_tensor *host, cleat_error *error) {
    const size_t elements = (size_t)cleat_tensor_elements(tensor);
    host->tensor = tensor;
    host->memory = cleat_alloc((size_t)cleat_tensor_bytes(tensor), 1);
    if (!host->memory) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a copy of '%s'", tensor->name);
    cleat_status status = cleat_exec_read_unchecked(check->exec, check->graph, tensor, host->memory, error);
    if (!status) status = widen(host, elements, error);
    host->array.f = host->memory;
    return status;
}

/* A tensor may be several inputs of a node. */
static cleat_status copy_inputs(node_check *check, cleat_error *error) {
    const cleat_node *node = check->node;
    cleat_status status = CLEAT_OK;
    for (int i = 0; i < node->n_in && !status; ++i) {
        int same = 0;
        while (same < i && node->in[same] != node->in[i]) ++same;
        if (node->in[i] && same == i) status = copy(check, node->in[i], &check->in[i], error);
        if (node->in[i]) check->values.in[i] = check->in[same].array;
    }
    return status;
}

static cleat_status copy_outputs(node_check *check, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (int i = 0; i < check->node->n_out && !status; ++i)
        if (check->node->out[i]) {
            status = copy(check, check->node->out[i], &check->out[i], error);
            check->values.out[i] = check->out[i].array;
        }
    return status;
}

static double got_at(const host_tensor *host, int64_t i) {
    return cleat_is_storage(host->tensor->dtype) ? (double)host->array.f[i] : (double)host->array.i[i];
}

/* The error allowed for every element of a tensor: terms may cancel, or vanish, in a way that `size` does not show. */
static double slack(const node_check *check, const host_tensor *host) {
    const double share = check->storage == CLEAT_F32 ? 0x1p-16 : 4 * cleat_roundoff(check->storage);
    double most = host->tensor->dtype == CLEAT_F16 ? 0x1p-14 : 0x1p-100;
    for (int64_t i = 0; cleat_is_storage(host->tensor->dtype) && i < cleat_tensor_elements(host->tensor); ++i)
        if (isfinite(host->array.f[i])) most = fmax(most, fabs((double)host->array.f[i]));
    return cleat_is_storage(host->tensor->dtype) ? share * most : 0;
}

static double allowed(const node_check *check, const cleat_tensor *tensor, const cleat_expected_value *want) {
    const double operands =
        check->storage == CLEAT_TF32 ? 2 * cleat_roundoff(CLEAT_TF32) : 0; /* both of a term are rounded */
    return (roundings * cleat_roundoff(CLEAT_F32) + operands) * want->size +
           4 * cleat_roundoff(check->storage) * want->rounded + 2 * cleat_roundoff(tensor->dtype) * fabs(want->value) +
           check->slack + 0x1p-120;
}

static cleat_status refuse(const node_check *check, const cleat_tensor *tensor, int64_t element, double got,
                           const char *must, cleat_error *error) {
    const cleat_device_facts *facts = cleat_device_get_facts(check->exec->device);
    char shape[96];
    cleat_tensor_describe(tensor, shape, sizeof shape);
    return cleat_fail(
        error, CLEAT_ERR_DEVICE,
        "the device '%s' (%s, driver %s) computes wrong results: the operation '%s' (%s, kernel '%s', variant '%s') "
        "gives %.9g for element %" PRId64 " of '%s' %s, %s. Use another device (run.device) or another version of its "
        "driver; run.self_check = never skips this check",
        facts->name, facts->platform, facts->driver, check->node->name, check->node->op->name, check->kernel,
        check->variant, got, element, tensor->name, shape, must);
}

/* A sum that overflows f16 (the loss scale is lowered then) or f32 cannot be compared. */
static bool overflows(const cleat_tensor *tensor, const cleat_expected_value *want) {
    const double most = tensor->dtype == CLEAT_F16 ? 6e4 : 1e38;
    return !isfinite(want->value) || !isfinite(want->size) || fabs(want->value) > most;
}

static bool inputs_are_finite(const node_check *check) {
    for (int i = 0; i < CLEAT_MAX_IN; ++i) {
        const cleat_tensor *in = check->in[i].tensor;
        const int64_t count = in && cleat_is_storage(in->dtype) ? cleat_tensor_elements(in) : 0;
        for (int64_t e = 0; e < count; ++e)
            if (!isfinite(check->in[i].array.f[e])) return false;
    }
    return true;
}

static cleat_status compare(node_check *check, int output, int64_t element, cleat_error *error) {
    const host_tensor *host = &check->out[output];
    check->values.output = output;
    const cleat_expected_value want = check->node->op->define(check->node, &check->values, element);
    const double got = got_at(host, element), limit = allowed(check, host->tensor, &want);
    char must[160];
    if (overflows(host->tensor, &want)) return CLEAT_OK;
    const double found = fabs(got - want.value) / limit;
    ++check->result->elements;
    if (found <= 1) {
        check->result->worst = fmax(check->result->worst, found);
        return CLEAT_OK;
    }
    if (!isfinite(got) && !inputs_are_finite(check)) return CLEAT_OK; /* NaN times the 0 of a dropped element */
    snprintf(must, sizeof must, "but it is defined as %.9g, with a rounding error of at most %.2g", want.value, limit);
    return refuse(check, host->tensor, element, got, must, error);
}

/* A value beside the samples must be finite where all inputs are. f16 may overflow. */
static cleat_status check_finite(const node_check *check, const host_tensor *host, cleat_error *error) {
    if (!inputs_are_finite(check)) return CLEAT_OK;
    if (!cleat_is_storage(host->tensor->dtype) || check->storage == CLEAT_F16) return CLEAT_OK;
    for (int64_t e = 0; e < cleat_tensor_elements(host->tensor); ++e)
        if (!isfinite(host->array.f[e]))
            return refuse(check, host->tensor, e, got_at(host, e), "although all inputs are finite", error);
    return CLEAT_OK;
}

static int64_t draw(cleat_random *random, int64_t count) {
    return (int64_t)((double)count * cleat_random_uniform(random));
}

/* Every other element is the largest of several: many results are 0 in padding, and gradients of table rows
 * that no token of the batch selects. */
static int64_t choose(cleat_random *random, const host_tensor *host, int64_t count, int at) {
    if (count <= SAMPLES) return at;
    if (at < 2) return at == 0 ? 0 : count - 1;
    int64_t best = draw(random, count);
    for (int i = 0; at % 2 && i < CANDIDATES; ++i) {
        const int64_t other = draw(random, count);
        if (fabs(got_at(host, other)) > fabs(got_at(host, best))) best = other;
    }
    return best;
}

/* The narrowest type among inputs, outputs and operands. An optimizer's moments and parameters are f32
 * numbers of f32 numbers, whatever the type of the copies that it writes: a step is smaller than the rounding
 * of a half. */
static cleat_dtype storage_of(const cleat_node *node, const cleat_tensor *output) {
    cleat_dtype found = node->tf32 ? CLEAT_TF32 : CLEAT_F32;
    if (node->op->no_autocast && cleat_is_storage(output->dtype)) return output->dtype;
    for (int i = 0; i < node->n_in + node->n_out; ++i) {
        const cleat_tensor *tensor = i < node->n_in ? node->in[i] : node->out[i - node->n_in];
        if (tensor && cleat_is_storage(tensor->dtype) && cleat_roundoff(tensor->dtype) > cleat_roundoff(found))
            found = tensor->dtype;
    }
    return found;
}

static cleat_status check_output(node_check *check, int output, cleat_error *error) {
    const host_tensor *host = &check->out[output];
    const int64_t count = cleat_tensor_elements(host->tensor);
    cleat_random random = cleat_random_stream(21, (uint32_t)check->node->index, (uint32_t)output);
    cleat_status status = CLEAT_OK;
    check->values.work = 0;
    check->storage = storage_of(check->node, host->tensor);
    check->slack = slack(check, host);
    for (int at = 0; at < SAMPLES && at < count && !status; ++at) {
        if (at >= FEW_SAMPLES && check->values.work > most_work) break;
        status = compare(check, output, choose(&random, host, count, at), error);
    }
    return status ? status : check_finite(check, host, error);
}

static void find_kernel(node_check *check, size_t index) {
    const cleat_bound_graph *bound = &check->exec->graphs[check->graph];
    const size_t first = bound->first[index];
    check->variant = bound->layout->variants[index]->name;
    check->kernel = "none";
    if (first < bound->first[index + 1])
        check->kernel = bound->binder.launches[first].kind == CLEAT_LAUNCH_SGEMM ? "CLBlast sgemm"
                                                                                 : bound->binder.launches[first].kernel;
}

cleat_status cleat_check_node(cleat_exec *exec, size_t graph, size_t index, cleat_node_check *result,
                              cleat_error *error) {
    const cleat_node *node = exec->plan->layouts[graph].graph->nodes[index];
    node_check check = {.exec = exec, .graph = graph, .node = node, .result = result};
    find_kernel(&check, index);
    cleat_status status = copy_inputs(&check, error);
    if (!status) status = cleat_exec_run_nodes(exec, graph, index, index + 1, error);
    if (!status) status = copy_outputs(&check, error);
    for (int i = 0; i < node->n_out && !status; ++i)
        if (node->out[i]) status = check_output(&check, i, error);
    cleat_free(check.values.kept);
    for (int i = 0; i < CLEAT_MAX_IN; ++i) cleat_free(check.in[i].memory);
    for (int i = 0; i < CLEAT_MAX_OUT; ++i) cleat_free(check.out[i].memory);
    ++result->nodes;
    return status;
}

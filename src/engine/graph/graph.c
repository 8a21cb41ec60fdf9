/* The graph builder: inputs, parameters, states, and nodes in execution order, with autocast. A graph keeps
 * its first error; later calls do nothing. The graph owns its nodes and tensors and frees them in
 * cleat_graph_destroy. */
#include "graph/graph.h"

#include "core/memory.h"
#include "graph/store.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

cleat_status cleat_graph_create(cleat_store *store, const char *name, cleat_graph **graph, cleat_error *error) {
    cleat_graph *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for graph '%s'", name);
    made->store = store;
    snprintf(made->name, CLEAT_NAME, "%s", name);
    *graph = made;
    return CLEAT_OK;
}

void cleat_graph_destroy(cleat_graph *graph) {
    if (!graph) return;
    for (size_t i = 0; i < graph->node_count; ++i) cleat_free(graph->nodes[i]);
    for (size_t i = 0; i < graph->tensor_count; ++i) cleat_free(graph->tensors[i]);
    cleat_free(graph->nodes);
    cleat_free(graph->tensors);
    cleat_free(graph->gradients);
    cleat_free(graph->marks);
    cleat_free(graph);
}

cleat_status cleat_graph_status(const cleat_graph *graph, cleat_error *error) {
    if (graph->error.status && error) *error = graph->error;
    return graph->error.status;
}

void cleat_graph_fail(cleat_graph *graph, cleat_status status, const char *format, ...) {
    if (graph->error.status) return;
    char text[CLEAT_ERROR_TEXT / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cleat_fail(&graph->error, status, "graph '%s': %s", graph->name, text);
}

void cleat_scope(cleat_graph *graph, const char *format, ...) {
    graph->scope[0] = 0;
    if (!format) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(graph->scope, CLEAT_NAME, format, arguments);
    va_end(arguments);
}

static bool is_declared(const cleat_graph *graph, const char *input) {
    for (size_t i = 0; i < graph->tensor_count; ++i)
        if (graph->tensors[i]->role == CLEAT_ROLE_INPUT && strcmp(graph->tensors[i]->name, input) == 0) return true;
    return false;
}

static bool shape_is_possible(cleat_graph *graph, const char *name, int rank, const int64_t *shape) {
    if (graph->error.status) return false;
    if (!name || !name[0] || !shape) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "tensor '%s': every tensor needs a name and a shape",
                         name ? name : "NULL");
        return false;
    }
    if (strlen(name) >= CLEAT_NAME) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "tensor '%s': a name has at most %d characters", name,
                         CLEAT_NAME - 1);
        return false;
    }
    if (rank < 1 || rank > CLEAT_MAX_RANK) {
        cleat_graph_fail(graph, CLEAT_ERR_SHAPE, "tensor '%s' has rank %d; the rank must be 1 to %d", name, rank,
                         CLEAT_MAX_RANK);
        return false;
    }
    int64_t elements = 1;
    for (int i = 0; i < rank; ++i) {
        if (shape[i] < 1 || elements > INT64_MAX / 8 / shape[i]) {
            cleat_graph_fail(graph, CLEAT_ERR_SHAPE,
                             "tensor '%s': invalid dimension %d, %lld: dimensions must be at least 1, and their "
                             "product at most 2^60",
                             name, i, (long long)shape[i]);
            return false;
        }
        elements *= shape[i];
    }
    return true;
}

static cleat_tensor *add_tensor(cleat_graph *graph, cleat_role role, const char *name, cleat_dtype dtype, int rank,
                                const int64_t *shape) {
    if (!shape_is_possible(graph, name, rank, shape)) return NULL;
    if ((unsigned)dtype > CLEAT_U32) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "tensor '%s': type %d does not exist (cleat_dtype)", name,
                         (int)dtype);
        return NULL;
    }
    if (cleat_grow(&graph->tensors, graph->tensor_count, &graph->tensor_capacity, &graph->error) != CLEAT_OK)
        return NULL;
    cleat_tensor *tensor = cleat_alloc(1, sizeof *tensor);
    if (!tensor) {
        cleat_graph_fail(graph, CLEAT_ERR_MEMORY, "no memory for tensor '%s'", name);
        return NULL;
    }
    *tensor = (cleat_tensor){.dtype = dtype, .rank = rank, .role = role, .index = (int)graph->tensor_count};
    snprintf(tensor->name, CLEAT_NAME, "%s", name);
    memcpy(tensor->shape, shape, (size_t)rank * sizeof *shape);
    graph->tensors[graph->tensor_count++] = tensor;
    return tensor;
}

cleat_tensor *cleat_input(cleat_graph *graph, const char *name, cleat_dtype dtype, int rank, const int64_t *shape) {
    if (name && is_declared(graph, name)) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "input '%s' is declared twice: use the tensor of the first call",
                         name);
        return NULL;
    }
    return add_tensor(graph, CLEAT_ROLE_INPUT, name, dtype, rank, shape);
}

cleat_tensor *cleat_param(cleat_graph *graph, const char *name, int rank, const int64_t *shape, cleat_init init) {
    if (!shape_is_possible(graph, name, rank, shape)) return NULL;
    cleat_tensor *param = cleat_store_find(graph->store, name);
    if (!param) {
        cleat_store_add(graph->store, name, rank, shape, init, &param, &graph->error);
        return param;
    }
    if (param->rank != rank || memcmp(param->shape, shape, (size_t)rank * sizeof *shape) != 0) {
        char known[96], wanted_text[96];
        cleat_tensor wanted = {.dtype = CLEAT_F32, .rank = rank};
        memcpy(wanted.shape, shape, (size_t)rank * sizeof *shape);
        cleat_tensor_describe(param, known, sizeof known);
        cleat_tensor_describe(&wanted, wanted_text, sizeof wanted_text);
        cleat_graph_fail(graph, CLEAT_ERR_SHAPE, "parameter '%s' is %s elsewhere, but %s here", name, known,
                         wanted_text);
        return NULL;
    }
    return param;
}

static cleat_tensor *add_state(cleat_graph *graph, const char *name, cleat_dtype dtype, int rank, const int64_t *shape,
                               float initial) {
    cleat_tensor *state = NULL;
    if (shape_is_possible(graph, name, rank, shape))
        cleat_store_state(graph->store, name, dtype, rank, shape, initial, &state, &graph->error);
    return state;
}

cleat_tensor *cleat_state(cleat_graph *graph, const char *name, cleat_dtype dtype, int rank, const int64_t *shape) {
    return add_state(graph, name, dtype, rank, shape, 0.0f);
}

cleat_tensor *cleat_constant(cleat_graph *graph, const char *name, int rank, const int64_t *shape, float value) {
    return add_state(graph, name, CLEAT_F32, rank, shape, value);
}

cleat_tensor *cleat_loss_scale_state(cleat_graph *graph) {
    const float initial = 65536.0f; /* the default of torch.amp.GradScaler */
    return add_state(graph, CLEAT_LOSS_SCALE, CLEAT_F32, 1, (const int64_t[1]){1}, initial);
}

cleat_tensor *cleat_buffer(cleat_graph *graph, const char *name, int rank, const int64_t *shape, float initial) {
    cleat_tensor *buffer = NULL;
    if (shape_is_possible(graph, name, rank, shape))
        cleat_store_add_buffer(graph->store, name, rank, shape, initial, &buffer, &graph->error);
    return buffer;
}

cleat_running_stats cleat_running_statistics(cleat_graph *graph, const char *name, int64_t channels) {
    char mean[CLEAT_NAME + 8], var[CLEAT_NAME + 8];
    snprintf(mean, sizeof mean, "%s_mean", name);
    snprintf(var, sizeof var, "%s_var", name);
    cleat_running_stats running = {.mean = cleat_buffer(graph, mean, 1, &channels, 0.0f)};
    running.var = cleat_buffer(graph, var, 1, &channels, 1.0f); /* behind the mean: checkpoints join the two */
    return running;
}

bool cleat_graph_owns(const cleat_graph *graph, const cleat_tensor *tensor) {
    if (cleat_is_persistent(tensor)) return cleat_store_owns(graph->store, tensor);
    const size_t index = (size_t)tensor->index;
    return index < graph->tensor_count && graph->tensors[index] == tensor;
}

/* Returns false, and the graph has an error, if a call names a tensor that the graph cannot use. */
static bool owns(cleat_graph *graph, const char *call, const cleat_tensor *tensor) {
    if (cleat_graph_owns(graph, tensor)) return true;
    cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "%s: tensor '%s' belongs to another graph", call, tensor->name);
    return false;
}

void cleat_retain(cleat_graph *graph, cleat_tensor *tensor) {
    if (tensor && owns(graph, "cleat_retain", tensor)) ((cleat_tensor *)cleat_root(tensor))->retain = true;
}

void cleat_require_grad(cleat_graph *graph, cleat_tensor *input) {
    if (!input || !owns(graph, "cleat_require_grad", input)) return;
    if (input->role != CLEAT_ROLE_INPUT) {
        cleat_graph_fail(
            graph, CLEAT_ERR_ARGUMENT,
            "cleat_require_grad: tensor '%s' is not an input; parameters, and what is computed from them, have "
            "gradients without this call",
            input->name);
        return;
    }
    for (size_t i = 0; i < graph->node_count; ++i)
        for (int j = 0; j < graph->nodes[i]->n_in; ++j)
            if (graph->nodes[i]->in[j] == input) {
                cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT,
                                 "cleat_require_grad: %s already uses input '%s': call it before the first use",
                                 graph->nodes[i]->name, input->name);
                return;
            }
    input->requires_grad = true;
}

bool cleat_requires_grad(const cleat_tensor *x) {
    return x && x->requires_grad;
}

cleat_tensor *cleat_graph_find(const cleat_graph *graph, const char *name) {
    for (size_t i = 0; i < graph->tensor_count; ++i)
        if (strcmp(graph->tensors[i]->name, name) == 0) return graph->tensors[i];
    return NULL;
}

size_t cleat_graph_nodes(const cleat_graph *graph) {
    return graph->node_count;
}

cleat_status cleat_infer_fail(const cleat_node *node, cleat_error *error, const char *format, ...) {
    char text[CLEAT_ERROR_TEXT / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return cleat_fail(error, CLEAT_ERR_SHAPE, "graph '%s': op '%s' at %s: %s", node->graph->name, node->op->name,
                      node->name, text);
}

cleat_status cleat_set_output(cleat_node *node, int i, cleat_dtype dtype, int rank, const int64_t *shape,
                              cleat_error *error) {
    char name[CLEAT_NAME];
    if (i)
        snprintf(name, sizeof name, "%.58s.%d", node->name, i);
    else
        snprintf(name, sizeof name, "%s", node->name);
    cleat_tensor *tensor = add_tensor(node->graph, CLEAT_ROLE_ACTIVATION, name, dtype, rank, shape);
    if (!tensor) {
        if (error) *error = node->graph->error;
        return node->graph->error.status;
    }
    tensor->producer = node;
    node->out[i] = tensor;
    if (i >= node->n_out) node->n_out = i + 1;
    return CLEAT_OK;
}

void cleat_set_output_state(cleat_node *node, int i, cleat_tensor *tensor) {
    node->out[i] = tensor;
    if (i >= node->n_out) node->n_out = i + 1;
}

/* Appends an empty node. It is in the graph's list from the start, so that the graph frees it even if a later
 * step fails. */
static cleat_node *add_node(cleat_graph *graph, const cleat_op *op, const void *attr, size_t attr_bytes) {
    if (graph->error.status) return NULL;
    if (attr_bytes > CLEAT_ATTR_BYTES) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "op '%s': attributes of %zu bytes", op->name, attr_bytes);
        return NULL;
    }
    if (cleat_grow(&graph->nodes, graph->node_count, &graph->node_capacity, &graph->error) != CLEAT_OK) return NULL;
    cleat_node *node = cleat_alloc(1, sizeof *node);
    if (!node) {
        cleat_graph_fail(graph, CLEAT_ERR_MEMORY, "no memory for a node of op '%s'", op->name);
        return NULL;
    }
    node->op = op;
    node->graph = graph;
    node->tf32 = graph->tf32 && op->tf32;
    node->index = (int)graph->node_count;
    snprintf(node->name, CLEAT_NAME, "%.44s%.19s", graph->scope, op->name);
    if (attr_bytes) memcpy(node->attr, attr, attr_bytes);
    graph->nodes[graph->node_count++] = node;
    return node;
}

static bool infer(cleat_graph *graph, cleat_node *node) {
    cleat_error error = {0};
    if (node->op->infer && node->op->infer(node, &error) != CLEAT_OK) {
        if (!graph->error.status) graph->error = error;
        return false;
    }
    return !graph->error.status;
}

/* Returns x in another storage type: the half weight of a parameter that is a weight, else a cast. Each
 * tensor of the graph is cast only once. */
static cleat_tensor *as_type(cleat_graph *graph, cleat_tensor *x, cleat_dtype dtype, bool weight) {
    if (!x || !cleat_is_storage(x->dtype) || x->dtype == dtype) return x;
    if (x->role == CLEAT_ROLE_PARAMETER && weight) {
        cleat_tensor *copy = NULL;
        cleat_error error = {0};
        if (cleat_store_half_weight(graph->store, x, dtype, &copy, &error) != CLEAT_OK && !graph->error.status)
            graph->error = error;
        return copy;
    }
    if (cleat_is_persistent(x)) return graph->cast(graph, x, dtype);
    if (!x->cast_cache || x->cast_cache->dtype != dtype) x->cast_cache = graph->cast(graph, x, dtype);
    return x->cast_cache;
}

static bool may_have_blocks(const cleat_tensor *x) {
    return x && x->role == CLEAT_ROLE_PARAMETER && x->rank == 2 && x->rule.frozen && x->rule.blocks != CLEAT_F32;
}

/* NULL: another op reads it in another type, so that it cannot have blocks. */
static cleat_tensor *block_weight(cleat_graph *graph, const cleat_tensor *param, cleat_dtype dtype) {
    cleat_tensor *weight = NULL;
    cleat_error error = {0};
    if (cleat_store_block_weight(graph->store, param, dtype, &weight, &error) != CLEAT_OK && !graph->error.status)
        graph->error = error;
    return weight && weight->dtype == dtype ? weight : NULL;
}

/* Returns false, and the graph has an error, if an input that the op needs is missing, or is of another graph. */
static bool check_inputs(cleat_graph *graph, const cleat_op *op, cleat_tensor *const *in, int n_in) {
    for (int i = 0; i < n_in && i < CLEAT_MAX_IN; ++i) {
        if (in[i] && !cleat_graph_owns(graph, in[i])) {
            cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "op '%s%s': input %d, '%s', belongs to another graph",
                             graph->scope, op->name, i, in[i]->name);
        } else if (!in[i] && !(op->optional_inputs & CLEAT_IN(i))) {
            cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "op '%s%s': input %d is NULL, but it is not optional",
                             graph->scope, op->name, i);
        }
    }
    return !graph->error.status;
}

static bool cast_inputs(cleat_graph *graph, const cleat_op *op, cleat_tensor *const *in, int n_in,
                        cleat_tensor **brought) {
    if (n_in > CLEAT_MAX_IN) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "op '%s': %d inputs", op->name, n_in);
        return false;
    }
    const bool casts = graph->cast && !graph->gradients && !op->no_autocast;
    for (int i = 0; i < n_in; ++i) {
        cleat_dtype dtype = op->autocast_inputs & CLEAT_IN(i) ? graph->storage : CLEAT_F32;
        brought[i] = may_have_blocks(in[i]) && op->block_inputs & CLEAT_IN(i)
                         ? block_weight(graph, in[i], casts ? dtype : CLEAT_F32)
                         : NULL;
        if (!brought[i]) brought[i] = casts ? as_type(graph, in[i], dtype, op->weight_inputs & CLEAT_IN(i)) : in[i];
    }
    return !graph->error.status;
}

cleat_node *cleat_emit(cleat_graph *graph, const cleat_op *op, const void *attr, size_t attr_bytes,
                       cleat_tensor *const *in, int n_in) {
    cleat_tensor *brought[CLEAT_MAX_IN];
    if (graph->error.status || !check_inputs(graph, op, in, n_in)) return NULL;
    if (!cast_inputs(graph, op, in, n_in, brought)) return NULL;
    cleat_node *node = add_node(graph, op, attr, attr_bytes);
    if (!node) return NULL;
    bool requires_grad = false;
    for (int i = 0; i < n_in; ++i) {
        node->in[i] = brought[i];
        if (brought[i] && brought[i]->role == CLEAT_ROLE_PARAMETER) brought[i]->read_in_f32 = true;
        requires_grad = requires_grad || cleat_requires_grad(brought[i]);
    }
    node->n_in = n_in;
    if (!infer(graph, node)) return NULL;
    for (int i = 0; i < node->n_out; ++i)
        if (op->backward && node->out[i] && node->out[i]->producer == node) node->out[i]->requires_grad = requires_grad;
    return node;
}

static void name_recomputed(char *name, const char *original) {
    snprintf(name, CLEAT_NAME, "%.55s (again)", original);
}

static cleat_tensor *add_recomputed_tensor(cleat_graph *graph, cleat_node *producer, cleat_tensor *original) {
    char name[CLEAT_NAME];
    name_recomputed(name, original->name);
    cleat_tensor *copy = add_tensor(graph, original->role, name, original->dtype, original->rank, original->shape);
    if (!copy) return NULL;
    copy->producer = producer;
    copy->base = cleat_current(original->base);
    copy->requires_grad = original->requires_grad;
    copy->recompute_of = original;
    original->recomputed = copy;
    return copy;
}

cleat_node *cleat_emit_recomputed(cleat_graph *graph, const cleat_node *node) {
    cleat_node *copy = add_node(graph, node->op, node->attr, sizeof node->attr);
    if (!copy) return NULL;
    name_recomputed(copy->name, node->name);
    copy->recomputed = true;
    copy->tf32 = node->tf32;
    copy->n_in = node->n_in;
    copy->n_out = node->n_out;
    for (int i = 0; i < node->n_in; ++i) copy->in[i] = cleat_current(node->in[i]);
    for (int i = 0; i < node->n_out; ++i)
        if (node->out[i]) copy->out[i] = add_recomputed_tensor(graph, copy, node->out[i]);
    return graph->error.status ? NULL : copy;
}

cleat_cost cleat_elementwise_cost(const cleat_node *node, double flops_per_element) {
    double bytes = 0;
    for (int i = 0; i < node->n_in; ++i)
        if (node->in[i]) bytes += (double)cleat_tensor_bytes(node->in[i]);
    for (int i = 0; i < node->n_out; ++i)
        if (node->out[i]) bytes += (double)cleat_tensor_bytes(node->out[i]);
    /* out[0] is NULL if that gradient is not required. */
    double elements = node->out[0] ? (double)cleat_tensor_elements(node->out[0]) : 0;
    return (cleat_cost){.flops = flops_per_element * elements, .bytes = bytes};
}

cleat_cost cleat_node_cost(const cleat_node *node) {
    return node->op->cost ? node->op->cost(node) : cleat_elementwise_cost(node, node->op->flops);
}

/* --- gradients: what autodiff and the ops' backward functions use --------------------------------------------- */

/* Whether the tensor is a parameter or its half weight, which share one gradient. */
static bool is_trained(const cleat_tensor *tensor) {
    return tensor->role == CLEAT_ROLE_PARAMETER || tensor->role == CLEAT_ROLE_HALF_WEIGHT;
}

/* The slot of the gradient of an activation or input, or NULL. A recomputed copy shares the slot of its
 * original. */
static cleat_tensor **gradient_slot(const cleat_graph *graph, const cleat_tensor *tensor) {
    if (tensor->recompute_of) tensor = tensor->recompute_of;
    if (cleat_is_persistent(tensor) || (size_t)tensor->index >= graph->gradient_count) return NULL;
    return &graph->gradients[tensor->index];
}

cleat_tensor *cleat_gradient(const cleat_graph *graph, const cleat_tensor *tensor) {
    if (!tensor) return NULL;
    if (is_trained(tensor)) return cleat_store_grad(graph->store, (size_t)tensor->index);
    cleat_tensor **slot = gradient_slot(graph, tensor);
    return slot ? *slot : NULL;
}

static bool any_requires_grad(const cleat_grads_spec *spec) {
    for (int i = 0; i < spec->n_targets; ++i)
        if (cleat_requires_grad(spec->targets[i])) return true;
    return false;
}

cleat_node *cleat_emit_grads(cleat_graph *graph, const cleat_grads_spec *spec) {
    if (!any_requires_grad(spec)) return NULL;
    const int n_in = spec->n_in, n_targets = spec->n_targets;
    const cleat_op *op = spec->op;
    cleat_node *node = add_node(graph, op, spec->attr, spec->attr_bytes);
    if (!node) return NULL;
    if (n_in + n_targets > CLEAT_MAX_IN || n_targets > CLEAT_MAX_OUT) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "op '%s': %d inputs, %d gradients", op->name, n_in, n_targets);
        return NULL;
    }
    for (int i = 0; i < n_in; ++i) node->in[i] = spec->in[i];
    node->n_in = n_in + n_targets;
    node->n_out = n_targets;
    for (int i = 0; i < n_targets; ++i) {
        cleat_tensor *target = spec->targets[i];
        if (!cleat_requires_grad(target)) continue;
        node->in[n_in + i] = cleat_gradient(graph, target);
        if (is_trained(target)) {
            node->out[i] = node->in[n_in + i];
            continue;
        }
        char name[CLEAT_NAME];
        snprintf(name, sizeof name, "d%.62s", target->recompute_of ? target->recompute_of->name : target->name);
        cleat_tensor *gradient =
            add_tensor(graph, CLEAT_ROLE_ACTIVATION, name, target->dtype, target->rank, target->shape);
        cleat_tensor **slot = gradient_slot(graph, target);
        if (!gradient || !slot) {
            cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "op '%s': gradient wanted outside cleat_backward", op->name);
            return NULL;
        }
        if (*slot && (*slot)->producer == node) { /* its accum would be its own output */
            cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "op '%s': two gradients of '%s' in one node", op->name,
                             target->name);
            return NULL;
        }
        gradient->producer = node;
        node->out[i] = gradient;
        *slot = gradient;
    }
    return infer(graph, node) ? node : NULL;
}

void cleat_set_gradient(cleat_graph *graph, cleat_tensor *x, cleat_tensor *gradient) {
    cleat_tensor **slot = gradient_slot(graph, x);
    if (!cleat_same_shape(x, gradient) || x->dtype != gradient->dtype)
        cleat_graph_fail(graph, CLEAT_ERR_SHAPE, "the gradient of '%s' does not have its shape and type: %s, not %s",
                         x->name, CLEAT_DESCRIBED(gradient), CLEAT_DESCRIBED(x));
    else if (slot)
        *slot = gradient;
}

/* The walk over the nodes of a graph, dimensions computed when the model runs, and the table of operations. */
#include "onnx/translate.h"

#include "graph/attributes.h"
#include "onnx/translator.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct row {
    const char *op;
    void (*emit)(cleat_onnx_translator *t, const cleat_node *node);
    const char *type; /* or ONNX's elementwise operator, and the number of its inputs */
    int inputs;
} row;

#define ROW(OP) {.op = #OP, .emit = cleat_onnx_emit_##OP},
static const row rows[] = {{.op = "add", .type = "Add", .inputs = 2},
                           {.op = "subtract", .type = "Sub", .inputs = 2},
                           {.op = "multiply", .type = "Mul", .inputs = 2},
                           {.op = "relu", .type = "Relu", .inputs = 1},
                           {.op = "sigmoid", .type = "Sigmoid", .inputs = 1},
                           {.op = "tanh", .type = "Tanh", .inputs = 1},
                           CLEAT_ONNX_OPS(ROW)};

static const row *find_row(const char *op) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        if (strcmp(rows[i].op, op) == 0) return &rows[i];
    return NULL;
}

bool cleat_onnx_knows(const char *op) {
    return find_row(op) != NULL;
}

cleat_onnx_builder *cleat_onnx_of(cleat_onnx_translator *t) {
    return &t->builder;
}

void cleat_onnx_node_fail(cleat_onnx_translator *t, const cleat_node *node, const char *format, ...) {
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    cleat_onnx_fail(&t->builder, CLEAT_ERR_NOT_SUPPORTED, "%s: op '%s' cannot be exported as ONNX: %s", node->name,
                    node->op->name, text);
}

bool cleat_onnx_has(const cleat_node *node, int i) {
    return i < node->n_in && node->in[i];
}

/* The values of a tensor: of the graph by its index, of the store by its name. */
static cleat_onnx_tensor *activation(cleat_onnx_translator *t, const cleat_tensor *tensor) {
    static cleat_onnx_tensor none;
    return t->tensors && !cleat_is_persistent(tensor) ? &t->tensors[tensor->index] : &none;
}

/* The values of a constant of the store; NULL: no memory. */
static const float *fill(cleat_onnx_translator *t, const cleat_tensor *tensor) {
    const int64_t elements = cleat_tensor_elements(tensor);
    float *values = cleat_onnx_alloc(&t->builder, (size_t)elements, sizeof *values);
    for (int64_t i = 0; values && i < elements; ++i) values[i] = tensor->initial;
    return values;
}

static const char *parameter(cleat_onnx_translator *t, const cleat_tensor *tensor) {
    char key[CLEAT_NAME + 16];
    cleat_error error = {0};
    snprintf(key, sizeof key, "parameter %s", tensor->name);
    const char *found = cleat_onnx_kept(&t->builder, key);
    if (found || cleat_onnx_failed(&t->builder)) return found ? found : "";
    const bool is_constant = tensor->role == CLEAT_ROLE_STATE && !tensor->is_buffer;
    const float *values = NULL;
    if (tensor->dtype == CLEAT_F32) values = is_constant ? fill(t, tensor) : t->values(t->user, tensor, &error);
    if (!values)
        return cleat_onnx_fail(&t->builder, error.status ? error.status : CLEAT_ERR_NOT_SUPPORTED, "%s: %s",
                               tensor->name, *error.text ? error.text : "not an f32 parameter");
    if (!is_constant) t->parameters += cleat_tensor_elements(tensor);
    return cleat_onnx_keep(
        &t->builder, key,
        cleat_onnx_initializer(&t->builder, tensor->name, CLEAT_ONNX_FLOAT, tensor->rank, tensor->shape, values));
}

static const char *value_of(cleat_onnx_translator *t, const cleat_node *node, const cleat_tensor *tensor) {
    if (cleat_is_persistent(tensor)) return parameter(t, tensor);
    cleat_onnx_tensor *value = activation(t, tensor);
    if (!value->plain && value->image) value->plain = TRANSPOSE(&t->builder, value->image, 0, 2, 3, 1);
    if (!value->plain)
        cleat_onnx_node_fail(t, node, "the exporter does not compute '%s', which it reads", tensor->name);
    return value->plain ? value->plain : "";
}

const char *cleat_onnx_in(cleat_onnx_translator *t, const cleat_node *node, int i) {
    return cleat_onnx_has(node, i) ? value_of(t, node, node->in[i]) : NULL;
}

const char *cleat_onnx_image(cleat_onnx_translator *t, const cleat_node *node, int i) {
    const cleat_tensor *tensor = node->in[i];
    cleat_onnx_tensor *value = activation(t, tensor);
    if (cleat_is_persistent(tensor)) return TRANSPOSE(&t->builder, parameter(t, tensor), 0, 3, 1, 2);
    if (!value->image) value->image = TRANSPOSE(&t->builder, value_of(t, node, tensor), 0, 3, 1, 2);
    return value->image;
}

void cleat_onnx_set(cleat_onnx_translator *t, const cleat_node *node, int i, const char *name) {
    activation(t, node->out[i])->plain = name;
}

void cleat_onnx_set_image(cleat_onnx_translator *t, const cleat_node *node, int i, const char *name) {
    activation(t, node->out[i])->image = name;
}

bool cleat_onnx_are_images(cleat_onnx_translator *t, const cleat_node *node, int count) {
    for (int i = 0; i < count; ++i)
        if (cleat_onnx_has(node, i) && (cleat_is_persistent(node->in[i]) || !activation(t, node->in[i])->image))
            return false;
    return true;
}

/* An elementwise operator of the first `count` inputs, in their channel order. */
static void emit_elements(cleat_onnx_translator *t, const cleat_node *node, const char *type, int count) {
    const char *in[CLEAT_MAX_IN];
    const bool images = cleat_onnx_are_images(t, node, count);
    for (int i = 0; i < count; ++i) in[i] = images ? cleat_onnx_image(t, node, i) : cleat_onnx_in(t, node, i);
    (images ? cleat_onnx_set_image : cleat_onnx_set)(t, node, 0, cleat_onnx_op(&t->builder, type, NULL, 0, in, count));
}

const char *cleat_onnx_permuted(cleat_onnx_translator *t, const cleat_node *node, int i, const int64_t *axes) {
    const cleat_tensor *tensor = node->in[i];
    char key[CLEAT_NAME + 48];
    int used = snprintf(key, sizeof key, "permuted %s", tensor->name);
    for (int k = 0; k < tensor->rank; ++k) used += snprintf(key + used, 8, " %d", (int)axes[k]);
    const char *name = cleat_onnx_in(t, node, i);
    if (!cleat_is_persistent(tensor)) return cleat_onnx_transpose(&t->builder, name, tensor->rank, axes);
    const char *found = cleat_onnx_kept(&t->builder, key);
    return found ? found
                 : cleat_onnx_keep(&t->builder, key, cleat_onnx_transpose(&t->builder, name, tensor->rank, axes));
}

double cleat_onnx_attribute_of(cleat_onnx_translator *t, const cleat_node *node, const char *name, int i) {
    double value = 0;
    if (!cleat_node_attribute(node, name, i, &value))
        cleat_onnx_node_fail(t, node, "the op does not declare its attribute '%s'", name);
    return value;
}

/* The tensor of another build that corresponds to this one. */
static const cleat_tensor *twin_of(const cleat_graph *graph, const cleat_tensor *tensor) {
    return cleat_is_persistent(tensor) ? tensor : graph->tensors[tensor->index];
}

/* Whether `other` / `size` is to / from: the dimension grew in proportion. */
static bool is_proportional(int64_t size, int64_t other, int64_t from, int64_t to) {
    return size % from == 0 && size / from * to == other;
}

bool cleat_onnx_find_dim(const cleat_onnx_builds *builds, const cleat_tensor *tensor, int axis, cleat_onnx_dim *dim) {
    const int64_t size = tensor->shape[axis], by_batch = twin_of(builds->batch, tensor)->shape[axis];
    const int64_t by_length = builds->length ? twin_of(builds->length, tensor)->shape[axis] : size;
    *dim = (cleat_onnx_dim){.factor = size, .batch = by_batch != size, .length = by_length != size};
    if (dim->batch && !is_proportional(size, by_batch, CLEAT_ONNX_BATCH, CLEAT_ONNX_OTHER_BATCH)) return false;
    if (dim->length && !is_proportional(size, by_length, builds->lengths[0], builds->lengths[1])) return false;
    if (dim->batch) dim->factor /= CLEAT_ONNX_BATCH;
    if (dim->length && dim->factor % builds->lengths[0] != 0) return false;
    if (dim->length) dim->factor /= builds->lengths[0];
    return true;
}

cleat_onnx_dim cleat_onnx_dim_of(cleat_onnx_translator *t, const cleat_tensor *tensor, int axis) {
    cleat_onnx_dim dim;
    if (!cleat_onnx_find_dim(&t->builds, tensor, axis, &dim))
        cleat_onnx_fail(&t->builder, CLEAT_ERR_NOT_SUPPORTED,
                        "dimension %d of '%s' is not a multiple of the batch size, so it cannot be exported as "
                        "ONNX",
                        axis, tensor->name);
    return dim;
}

bool cleat_onnx_is_fixed(cleat_onnx_dim dim) {
    return !dim.batch && !dim.length;
}

/* The number of samples, or their length, i64 [1]: the dimension of an input that equals it. */
static const char *size_value(cleat_onnx_translator *t, bool length) {
    const char *key = length ? "size length" : "size batch", *found = cleat_onnx_kept(&t->builder, key);
    if (found) return found;
    for (size_t i = 0; i < t->builds.graph->tensor_count; ++i) {
        const cleat_tensor *tensor = t->builds.graph->tensors[i];
        if (tensor->role != CLEAT_ROLE_INPUT) continue;
        for (int axis = 0; axis < tensor->rank; ++axis) {
            const cleat_onnx_dim dim = cleat_onnx_dim_of(t, tensor, axis);
            if (dim.factor != 1 || dim.length != length || dim.batch == length) continue;
            const cleat_onnx_attribute range[] = {CLEAT_ONNX_I("start", axis), CLEAT_ONNX_I("end", axis + 1)};
            const char *in[] = {tensor->name};
            return cleat_onnx_keep(&t->builder, key, cleat_onnx_op(&t->builder, "Shape", range, 2, in, 1));
        }
    }
    return cleat_onnx_fail(&t->builder, CLEAT_ERR_NOT_SUPPORTED, "no input has the %s as a dimension",
                           length ? "length" : "size of the batch");
}

const char *cleat_onnx_dim_value(cleat_onnx_translator *t, cleat_onnx_dim dim) {
    const char *value = NULL;
    if (dim.batch) value = size_value(t, false);
    if (dim.length) value = value ? OP(&t->builder, "Mul", value, size_value(t, true)) : size_value(t, true);
    if (!value) return cleat_onnx_int(&t->builder, dim.factor);
    return dim.factor == 1 ? value : OP(&t->builder, "Mul", value, cleat_onnx_int(&t->builder, dim.factor));
}

static bool same_dim(cleat_onnx_dim a, cleat_onnx_dim b) {
    return a.factor == b.factor && a.batch == b.batch && a.length == b.length;
}

/* ONNX's shape: 0 copies a dimension of x; one dimension may be -1, the remainder. */
const char *cleat_onnx_reshape(cleat_onnx_translator *t, const char *x, const cleat_tensor *from,
                               const cleat_tensor *to) {
    cleat_onnx_dim dims[CLEAT_MAX_RANK];
    int64_t sizes[CLEAT_MAX_RANK];
    const char *parts[CLEAT_MAX_RANK];
    int open = 0;
    for (int i = 0; i < to->rank; ++i) {
        dims[i] = cleat_onnx_dim_of(t, to, i);
        const bool copied = from && i < from->rank && same_dim(dims[i], cleat_onnx_dim_of(t, from, i));
        sizes[i] = cleat_onnx_is_fixed(dims[i]) ? dims[i].factor : copied ? 0 : -1;
        open += sizes[i] < 0;
    }
    if (open <= 1) return OP(&t->builder, "Reshape", x, cleat_onnx_ints(&t->builder, sizes, to->rank));
    for (int i = 0; i < to->rank; ++i) parts[i] = cleat_onnx_dim_value(t, dims[i]);
    const char *shape = cleat_onnx_op(&t->builder, "Concat", ATTRIBUTES(CLEAT_ONNX_I("axis", 0)), parts, to->rank);
    return OP(&t->builder, "Reshape", x, shape);
}

const char *cleat_onnx_positions(cleat_onnx_translator *t, cleat_onnx_dim dim) {
    cleat_onnx_builder *b = &t->builder;
    char key[80];
    snprintf(key, sizeof key, "positions %lld %d %d", (long long)dim.factor, dim.batch, dim.length);
    const char *found = cleat_onnx_kept(b, key);
    if (found) return found;
    const char *size = OP(b, "Squeeze", cleat_onnx_dim_value(t, dim));
    const char *end = cleat_onnx_cast(b, size, CLEAT_ONNX_INT32);
    return cleat_onnx_keep(b, key, OP(b, "Range", cleat_onnx_whole(b, 0), end, cleat_onnx_whole(b, 1)));
}

const char *cleat_onnx_mask(cleat_onnx_translator *t, const cleat_node *node, int lengths, cleat_onnx_dim dim) {
    cleat_onnx_builder *b = &t->builder;
    const char *positions = cleat_onnx_positions(t, dim), *name = cleat_onnx_in(t, node, lengths);
    char key[200];
    snprintf(key, sizeof key, "mask %.80s %.80s", name, positions);
    const char *found = cleat_onnx_kept(b, key);
    if (found) return found;
    return cleat_onnx_keep(b, key, OP(b, "Less", positions, OP(b, "Unsqueeze", name, cleat_onnx_int(b, 1))));
}

static void set_scope(cleat_onnx_builder *b, const cleat_node *node) {
    const char *slash = strrchr(node->name, '/');
    const int size = slash ? (int)(slash + 1 - node->name) : 0;
    snprintf(b->scope, sizeof b->scope, "%.*s", size, node->name);
}

void cleat_onnx_translate(cleat_onnx_translator *t) {
    const cleat_graph *graph = t->builds.graph;
    for (size_t i = 0; i < graph->node_count && !cleat_onnx_failed(&t->builder); ++i) {
        const cleat_node *node = graph->nodes[i];
        const row *known = find_row(node->op->name);
        set_scope(&t->builder, node);
        if (known && known->emit)
            known->emit(t, node);
        else if (known)
            emit_elements(t, node, known->type, known->inputs);
        else
            cleat_onnx_node_fail(t, node, "the exporter has no translation of this op (src/models/onnx/translate.c)");
    }
    t->builder.scope[0] = 0;
}

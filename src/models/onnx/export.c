/* Exports a model as ONNX: builds its graph at several sizes, declares inputs and output, writes the file. */
#include "onnx/export.h"

#include "graph/attributes.h"
#include "models/targets.h"
#include "onnx/translator.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { AT_SIZE, OTHER_BATCH, OTHER_LENGTH, BUILDS };

typedef struct builds {
    cleat_store *stores[BUILDS];
    cleat_graph *graphs[BUILDS];
    cleat_model_graph built[BUILDS];
    int64_t lengths[2];
} builds;

static void builds_free(builds *all) {
    for (int i = 0; i < BUILDS; ++i) {
        cleat_graph_destroy(all->graphs[i]);
        cleat_store_destroy(all->stores[i]);
    }
}

static cleat_status build(const cleat_model *model, int64_t batch, int64_t length, builds *all, int which,
                          cleat_error *error) {
    cleat_status status = cleat_store_create(&all->stores[which], error);
    if (!status) status = cleat_graph_create(all->stores[which], "onnx", &all->graphs[which], error);
    if (status) return status;
    cleat_model_build(model, all->graphs[which], CLEAT_MODE_PREDICT, batch, length, &all->built[which]);
    return cleat_graph_status(all->graphs[which], error);
}

/* Chooses two lengths that do not divide each other; they are equal if the length is fixed. */
static void choose_lengths(const cleat_model *model, int64_t longest, int64_t lengths[2]) {
    enum { SOME = 13, OTHER = 17 };
    const int64_t fixed = cleat_model_fixed_length(model);
    lengths[0] = fixed ? fixed : longest >= OTHER ? SOME : longest - 1;
    lengths[1] = fixed ? fixed : longest >= OTHER ? OTHER : longest;
    if (lengths[0] < 1) lengths[0] = lengths[1] = longest;
}

static cleat_status build_all(const cleat_onnx_spec *spec, builds *all, cleat_error *error) {
    choose_lengths(spec->model, spec->length, all->lengths);
    cleat_status status = build(spec->model, CLEAT_ONNX_BATCH, all->lengths[0], all, AT_SIZE, error);
    if (!status) status = build(spec->model, CLEAT_ONNX_OTHER_BATCH, all->lengths[0], all, OTHER_BATCH, error);
    if (!status && all->lengths[0] != all->lengths[1])
        status = build(spec->model, CLEAT_ONNX_BATCH, all->lengths[1], all, OTHER_LENGTH, error);
    return status;
}

/* Whether the other graph has the same nodes; the sizes of tensors may differ. */
static bool same_nodes(const cleat_graph *a, const cleat_graph *b) {
    if (a->node_count != b->node_count || a->tensor_count != b->tensor_count) return false;
    for (size_t i = 0; i < a->node_count; ++i)
        if (a->nodes[i]->op != b->nodes[i]->op || !cleat_node_same_attributes(a->nodes[i], b->nodes[i])) return false;
    for (size_t i = 0; i < a->tensor_count; ++i)
        if (a->tensors[i]->rank != b->tensors[i]->rank) return false;
    return true;
}

static bool same_shapes(const cleat_store *a, const cleat_store *b) {
    if (a->count != b->count) return false;
    for (size_t i = 0; i < a->count; ++i)
        if (!cleat_same_shape(a->params[i], b->params[i])) return false;
    return true;
}

/* Whether every dimension is fixed or a multiple of the sizes. */
static bool follows(const cleat_onnx_builds *sizes) {
    cleat_onnx_dim dim;
    for (size_t i = 0; i < sizes->graph->tensor_count; ++i)
        for (int axis = 0; axis < sizes->graph->tensors[i]->rank; ++axis)
            if (!cleat_onnx_find_dim(sizes, sizes->graph->tensors[i], axis, &dim)) return false;
    return true;
}

static cleat_onnx_builds builds_of(const builds *all) {
    return (cleat_onnx_builds){.graph = all->graphs[AT_SIZE],
                               .batch = all->graphs[OTHER_BATCH],
                               .length = all->graphs[OTHER_LENGTH],
                               .lengths = {all->lengths[0], all->lengths[1]}};
}

/* Builds the graphs. If the length cannot vary, as with learned positions, it becomes spec->length. */
static cleat_status prepare(const cleat_onnx_spec *spec, builds *all, cleat_onnx_builds *made, int64_t *length,
                            cleat_error *error) {
    cleat_status status = build_all(spec, all, error);
    if (status) return status;
    *made = builds_of(all);
    *length = 0;
    if (made->length && !(same_nodes(made->graph, made->length) &&
                          same_shapes(all->stores[AT_SIZE], all->stores[OTHER_LENGTH]) && follows(made))) {
        builds_free(all);
        *all = (builds){.lengths = {spec->length, spec->length}};
        status = build(spec->model, CLEAT_ONNX_BATCH, spec->length, all, AT_SIZE, error);
        if (!status) status = build(spec->model, CLEAT_ONNX_OTHER_BATCH, spec->length, all, OTHER_BATCH, error);
        *made = builds_of(all);
        *length = spec->length;
    }
    if (!status && !(same_nodes(made->graph, made->batch) && follows(made)))
        status = cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                            "the graph of %s depends on the batch size, so it cannot be exported as ONNX",
                            cleat_model_name(spec->model));
    return status;
}

/* "batch", "length", "batch * 4"; NULL: fixed */
static const char *param_of(cleat_onnx_builder *b, cleat_onnx_dim dim) {
    const char *name = dim.batch && dim.length ? "batch*length" : dim.batch ? "batch" : dim.length ? "length" : NULL;
    return !name || dim.factor == 1 ? name : cleat_onnx_text(b, "%s*%" PRId64, name, dim.factor);
}

/* Declares the value and describes it for the report. */
static void declare(cleat_onnx_translator *t, cleat_onnx_list *list, const cleat_tensor *tensor, const char *name,
                    const char *text, cleat_onnx_value *described) {
    cleat_onnx_builder *b = cleat_onnx_of(t);
    cleat_onnx_size sizes[CLEAT_MAX_RANK];
    size_t used = 0;
    snprintf(described->name, sizeof described->name, "%s", name);
    snprintf(described->dtype, sizeof described->dtype, "%s", tensor->dtype == CLEAT_F32 ? "float32" : "int32");
    for (int i = 0; i < tensor->rank; ++i) {
        const cleat_onnx_dim dim = cleat_onnx_dim_of(t, tensor, i);
        sizes[i] = (cleat_onnx_size){.value = dim.factor, .param = param_of(b, dim)};
        const char *open = i ? ", " : "[";
        if (used < sizeof described->shape)
            used += (size_t)(sizes[i].param ? snprintf(described->shape + used, sizeof described->shape - used, "%s%s",
                                                       open, sizes[i].param)
                                            : snprintf(described->shape + used, sizeof described->shape - used,
                                                       "%s%" PRId64, open, sizes[i].value));
    }
    if (used < sizeof described->shape) snprintf(described->shape + used, sizeof described->shape - used, "]");
    cleat_onnx_declare(b, list, name, tensor->dtype == CLEAT_F32 ? CLEAT_ONNX_FLOAT : CLEAT_ONNX_INT32, tensor->rank,
                       sizes, text);
}

static void declare_inputs(cleat_onnx_translator *t, cleat_onnx_report *report) {
    const cleat_graph *graph = t->builds.graph;
    for (size_t i = 0; i < graph->tensor_count; ++i) {
        const cleat_tensor *tensor = graph->tensors[i];
        if (tensor->role != CLEAT_ROLE_INPUT) continue;
        if (report->n_inputs == CLEAT_ONNX_MAX_INPUTS) {
            cleat_onnx_fail(&t->builder, CLEAT_ERR_NOT_SUPPORTED, "more than %d inputs", CLEAT_ONNX_MAX_INPUTS);
            return;
        }
        const char *name = cleat_onnx_new_name(&t->builder, tensor->name);
        t->tensors[i].plain = name;
        declare(t, &t->builder.main.inputs, tensor, name, "", &report->inputs[report->n_inputs++]);
    }
}

/* The target of the loss determines the name of the output. */
static const char *output_name(const cleat_model *model) {
    const char *term = cleat_model_term(model, 0);
    if (cleat_model_has_targets(model) || strcmp(term, "cross_entropy") == 0 || strcmp(term, "mask") == 0)
        return "logits";
    return strcmp(term, "squared_error") == 0 ? "forecast" : "output";
}

static void declare_output(cleat_onnx_translator *t, const cleat_model *model, const cleat_tensor *output,
                           cleat_onnx_report *report) {
    cleat_onnx_builder *b = &t->builder;
    const cleat_onnx_tensor *value = &t->tensors[output->index];
    if (cleat_onnx_failed(b)) return;
    const char *last = value->plain ? value->plain : TRANSPOSE(b, value->image, 0, 2, 3, 1);
    const char *name = cleat_onnx_new_name(b, output_name(model)), *made = OP(b, "Identity", last);
    Cleat__Onnx__Node *node = b->main.nodes.count ? b->main.nodes.items[b->main.nodes.count - 1] : NULL;
    if (cleat_onnx_failed(b) || !node || strcmp(node->output[0], made) != 0) return;
    node->output[0] = (char *)name; /* the output has its own name */
    declare(t, &b->main.outputs, output, name, "", &report->output);
}

static void add_metadata(cleat_onnx_translator *t, const cleat_onnx_spec *spec, int64_t length) {
    char text[32];
    cleat_onnx_metadata(&t->builder, "cleat.model", cleat_model_name(spec->model));
    cleat_onnx_metadata(&t->builder, "cleat.version", CLEAT_VERSION);
    snprintf(text, sizeof text, "%" PRId64, length);
    if (length) cleat_onnx_metadata(&t->builder, "cleat.length", text);
    for (size_t i = 0; i < spec->n_metadata; ++i)
        cleat_onnx_metadata(&t->builder, spec->metadata[i].key, spec->metadata[i].value);
}

static const char *describe(cleat_onnx_builder *b, const cleat_model *model, int64_t length) {
    const char *text =
        cleat_onnx_text(b, "Predictions of a model %s trained by cleat %s.", cleat_model_name(model), CLEAT_VERSION);
    if (!length) return text;
    return cleat_onnx_text(b, "%s Every sequence has length %" PRId64 ": pad shorter ones.", text, length);
}

static cleat_status translate(const cleat_onnx_spec *spec, const char *path, const cleat_tensor *output, int64_t length,
                              cleat_onnx_translator *t, cleat_onnx_report *report, cleat_error *error) {
    cleat_onnx_builder *b = &t->builder;
    t->tensors = cleat_onnx_alloc(b, t->builds.graph->tensor_count + 1, sizeof *t->tensors);
    declare_inputs(t, report);
    cleat_onnx_translate(t);
    declare_output(t, spec->model, output, report);
    add_metadata(t, spec, length);
    cleat_onnx_drop_unused(b);
    if (!cleat_onnx_failed(b) && spec->check) {
        cleat_status status = spec->check(spec->user, error);
        if (status) return status;
    }
    report->nodes = b->main.nodes.count;
    report->parameters = t->parameters;
    report->length = length;
    report->external_data = spec->external;
    return cleat_onnx_write(b, path, cleat_model_name(spec->model), describe(b, spec->model, length),
                            &report->external_data, &report->bytes, error);
}

cleat_status cleat_onnx_export(const cleat_onnx_spec *spec, const char *path, cleat_onnx_report *report,
                               cleat_error *error) {
    builds all = {.lengths = {0}};
    cleat_onnx_report made = {.n_inputs = 0};
    cleat_onnx_translator t = {.values = spec->values, .user = spec->user};
    int64_t length = 0;
    if (spec->model->type->instead_of_onnx)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                          "networks of model.type = %s have no translation to ONNX; use --format %s",
                          spec->model->type->name, spec->model->type->instead_of_onnx);
    cleat_onnx_builder_init(&t.builder);
    cleat_status status = prepare(spec, &all, &t.builds, &length, error);
    if (!status) status = translate(spec, path, all.built[AT_SIZE].output, length, &t, &made, error);
    if (!status && report) *report = made;
    cleat_onnx_builder_free(&t.builder);
    builds_free(&all);
    return status;
}

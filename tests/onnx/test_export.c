/* ONNX exports of models, read back without Python: structure, names, shapes and values. */
/* ctest: quick */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/op.h"
#include "cleat/ops.h"
#include "cleat/profile.h"
#include "core/files.h"
#include "core/memory.h"
#include "graph/store.h"
#include "models/model.h"
#include "onnx/export.h"
#include "onnx/translate.h"
#include "platform/files.h"
#include "source_path.h"

typedef Cleat__Onnx__Model onnx_model;
typedef Cleat__Onnx__Graph onnx_graph;

enum { PATH_BYTES = 256 };

typedef struct fixture {
    char folder[64], path[PATH_BYTES];
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    if (!f) return -1;
    snprintf(f->folder, sizeof f->folder, "/tmp/cleat-onnx-XXXXXX");
    if (!mkdtemp(f->folder)) return -1;
    snprintf(f->path, sizeof f->path, "%s/model.onnx", f->folder);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", f->folder);
    const int code = system(command);
    free(f);
    return code;
}

/* --- what is exported ------------------------------------------------------------------------------------------- */

/* Element i of every parameter is i; all share the largest parameter's memory. */
typedef struct counting {
    float *values;
    int64_t capacity;
} counting;

static const float *count_up(void *user, const cleat_tensor *tensor, cleat_error *error) {
    const counting *c = user;
    if (cleat_tensor_elements(tensor) <= c->capacity) return c->values;
    cleat_fail(error, CLEAT_ERR_ARGUMENT, "too large for the test");
    return NULL;
}

static counting counting_make(void) {
    counting c = {.capacity = 1 << 23};
    c.values = malloc((size_t)c.capacity * sizeof *c.values);
    assert_non_null(c.values);
    for (int64_t i = 0; i < c.capacity; ++i) c.values[i] = (float)i;
    return c;
}

static cleat_profile *profile_of(const char *type) {
    cleat_profile *profile;
    char assignment[96];
    cleat_error error;
    assert_int_equal(cleat_profile_create(&profile, NULL), CLEAT_OK);
    snprintf(assignment, sizeof assignment, "model.type=%s", type);
    if (cleat_profile_set(profile, assignment, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return profile;
}

static cleat_model *model_of(const char *type) {
    cleat_model *model;
    cleat_error error;
    cleat_profile *profile = profile_of(type);
    if (cleat_profile_create_model(profile, &model, &error) != CLEAT_OK) fail_msg("%s", error.text);
    cleat_profile_destroy(profile);
    return model;
}

static void set_sizes(cleat_model *model, const char *json) {
    cleat_error error;
    if (cleat_model_set_sizes(model, json, &error) != CLEAT_OK) fail_msg("%s", error.text);
}

static cleat_onnx_report export_model(const fixture *f, const cleat_model *model, counting *c, bool external) {
    cleat_onnx_report report;
    cleat_error error;
    const cleat_onnx_spec spec = {.model = model, .length = 64, .values = count_up, .user = c, .external = external};
    if (cleat_onnx_export(&spec, f->path, &report, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return report;
}

static onnx_model *read_model(const char *path) {
    char *data;
    size_t size;
    assert_int_equal(cleat_file_read(path, &data, &size, NULL), CLEAT_OK);
    onnx_model *model = cleat__onnx__model__unpack(NULL, size, (const uint8_t *)data);
    cleat_free(data);
    assert_non_null(model);
    return model;
}

/* --- structure -------------------------------------------------------------------------------------------------- */

static void define(cleat_name_table *known, const char *name) {
    uint32_t value;
    if (!*name) fail_msg("a value without a name");
    if (cleat_name_table_find(known, name, &value)) fail_msg("'%s' is defined twice", name);
    assert_int_equal(cleat_name_table_add(known, name, 0, NULL), CLEAT_OK);
}

/* Every input of a node is defined before the node, in its graph or the enclosing one; values have one definition. */
static void check_nodes(const onnx_graph *graph, cleat_name_table *known) {
    uint32_t value;
    for (size_t i = 0; i < graph->n_input; ++i) define(known, graph->input[i]->name);
    for (size_t i = 0; i < graph->n_initializer; ++i) define(known, graph->initializer[i]->name);
    for (size_t i = 0; i < graph->n_node; ++i) {
        const Cleat__Onnx__Node *node = graph->node[i];
        for (size_t k = 0; k < node->n_input; ++k)
            if (*node->input[k] && !cleat_name_table_find(known, node->input[k], &value))
                fail_msg("node %zu, %s, reads '%s', which is not defined before it", i, node->op_type, node->input[k]);
        for (size_t k = 0; k < node->n_attribute; ++k)
            if (node->attribute[k]->g) check_nodes(node->attribute[k]->g, known);
        for (size_t k = 0; k < node->n_output; ++k) define(known, node->output[k]);
    }
    for (size_t i = 0; i < graph->n_output; ++i)
        if (!cleat_name_table_find(known, graph->output[i]->name, &value))
            fail_msg("the output '%s' is not defined", graph->output[i]->name);
}

static bool reads(const onnx_graph *graph, const char *name) {
    for (size_t i = 0; i < graph->n_output; ++i)
        if (strcmp(graph->output[i]->name, name) == 0) return true;
    for (size_t i = 0; i < graph->n_node; ++i) {
        for (size_t k = 0; k < graph->node[i]->n_input; ++k)
            if (strcmp(graph->node[i]->input[k], name) == 0) return true;
        for (size_t k = 0; k < graph->node[i]->n_attribute; ++k)
            if (graph->node[i]->attribute[k]->g && reads(graph->node[i]->attribute[k]->g, name)) return true;
    }
    return false;
}

static void check_nothing_is_unused(const onnx_graph *graph) {
    for (size_t i = 0; i < graph->n_initializer; ++i)
        if (!reads(graph, graph->initializer[i]->name)) fail_msg("'%s' is unused", graph->initializer[i]->name);
    for (size_t i = 0; i < graph->n_node; ++i) {
        bool used = false;
        for (size_t k = 0; k < graph->node[i]->n_output; ++k) used = used || reads(graph, graph->node[i]->output[k]);
        if (!used) fail_msg("nothing reads node %zu, %s", i, graph->node[i]->name);
    }
}

static void check_initializers(const onnx_graph *graph) {
    for (size_t i = 0; i < graph->n_initializer; ++i) {
        const Cleat__Onnx__Tensor *tensor = graph->initializer[i];
        const size_t width = tensor->data_type == CLEAT_ONNX_INT64 ? 8 : 4;
        size_t bytes = width;
        for (size_t k = 0; k < tensor->n_dims; ++k) bytes *= (size_t)tensor->dims[k];
        assert_int_equal(tensor->raw_data.len, bytes);
        assert_int_equal(tensor->data_location, CLEAT__ONNX__TENSOR__LOCATION__DEFAULT);
    }
}

static void check_model(const onnx_model *model) {
    cleat_name_table known = {0};
    assert_int_equal(model->ir_version, 8);
    assert_int_equal(model->n_opset_import, 1);
    assert_int_equal(model->opset_import[0]->version, 17);
    assert_string_equal(model->opset_import[0]->domain, "");
    assert_string_equal(model->producer_name, "cleat");
    assert_int_equal(model->graph->n_output, 1);
    check_nodes(model->graph, &known);
    check_nothing_is_unused(model->graph);
    check_initializers(model->graph);
    cleat_name_table_free(&known);
}

static const Cleat__Onnx__Tensor *find_initializer(const onnx_graph *graph, const char *name) {
    for (size_t i = 0; i < graph->n_initializer; ++i)
        if (strcmp(graph->initializer[i]->name, name) == 0) return graph->initializer[i];
    return NULL;
}

/* Every parameter of the model has its own name, shape and values. */
static void check_parameters(const cleat_model *model, const onnx_graph *graph) {
    cleat_store *store;
    cleat_graph *built;
    cleat_model_graph outputs;
    cleat_error error;
    assert_int_equal(cleat_store_create(&store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(store, "again", &built, NULL), CLEAT_OK);
    const int64_t fixed = cleat_model_fixed_length(model);
    cleat_model_build(model, built, CLEAT_MODE_PREDICT, 2, fixed ? fixed : 64, &outputs);
    if (cleat_graph_status(built, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_true(cleat_store_count(store) > 0);
    for (size_t i = 0; i < cleat_store_count(store); ++i) {
        const cleat_tensor *param = cleat_store_param(store, i);
        const Cleat__Onnx__Tensor *found = find_initializer(graph, param->name);
        if (!found) fail_msg("the parameter '%s' is missing", param->name);
        assert_int_equal(found->n_dims, param->rank);
        for (int axis = 0; axis < param->rank; ++axis) assert_int_equal(found->dims[axis], param->shape[axis]);
        float last;
        memcpy(&last, found->raw_data.data + found->raw_data.len - sizeof last, sizeof last);
        assert_true(last == (float)(cleat_tensor_elements(param) - 1));
    }
    cleat_graph_destroy(built);
    cleat_store_destroy(store);
}

/* Families with unnecessarily large default sizes get smaller ones. */
static void every_family_is_a_sound_model(void **state) {
    const fixture *f = *state;
    counting c = counting_make();
    for (size_t i = 0; cleat_model_classes[i]; ++i) {
        if (cleat_model_classes[i]->instead_of_onnx) continue;
        cleat_model *model = model_of(cleat_model_classes[i]->name);
        const cleat_onnx_report report = export_model(f, model, &c, false);
        onnx_model *read = read_model(f->path);
        print_message("%s: %zu nodes, %s %s\n", cleat_model_classes[i]->name, report.nodes, report.output.name,
                      report.output.shape);
        check_model(read);
        check_parameters(model, read->graph);
        assert_int_equal(report.nodes, read->graph->n_node);
        assert_string_equal(report.output.name, read->graph->output[0]->name);
        assert_int_equal(report.length, 0);
        assert_int_equal(strncmp(report.output.shape, "[batch", 6), 0);
        cleat__onnx__model__free_unpacked(read, NULL);
        cleat_model_destroy(model);
    }
    free(c.values);
}

/* --- inputs and outputs ----------------------------------------------------------------------------------------- */

static void assert_value(const cleat_onnx_value *value, const char *name, const char *dtype, const char *shape) {
    assert_string_equal(value->name, name);
    assert_string_equal(value->dtype, dtype);
    assert_string_equal(value->shape, shape);
}

static void batch_and_length_are_open(void **state) {
    const fixture *f = *state;
    counting c = counting_make();
    cleat_model *model = model_of("text_tagger");
    set_sizes(model, "{\"vocabulary\": 90, \"classes\": 5}");
    const cleat_onnx_report report = export_model(f, model, &c, false);
    assert_int_equal(report.n_inputs, 2);
    assert_value(&report.inputs[0], "tokens", "int32", "[batch, length]");
    assert_value(&report.inputs[1], "lengths", "int32", "[batch]");
    assert_value(&report.output, "logits", "float32", "[batch, length, 5]");
    onnx_model *read = read_model(f->path);
    const Cleat__Onnx__Type__TensorType *tokens = read->graph->input[0]->type->tensor_type;
    assert_int_equal(tokens->elem_type, CLEAT_ONNX_INT32);
    assert_int_equal(tokens->shape->n_dim, 2);
    assert_string_equal(tokens->shape->dim[0]->dim_param, "batch");
    assert_string_equal(tokens->shape->dim[1]->dim_param, "length");
    const Cleat__Onnx__Shape *logits = read->graph->output[0]->type->tensor_type->shape;
    assert_int_equal(logits->dim[2]->value_case, CLEAT__ONNX__SHAPE__DIM__VALUE_DIM_VALUE);
    assert_int_equal(logits->dim[2]->dim_value, 5);
    cleat__onnx__model__free_unpacked(read, NULL);
    cleat_model_destroy(model);
    free(c.values);
}

static const char *metadata_of(const onnx_model *model, const char *key) {
    for (size_t i = 0; i < model->n_metadata_props; ++i)
        if (strcmp(model->metadata_props[i]->key, key) == 0) return model->metadata_props[i]->value;
    return "";
}

static void metadata_are_stored(void **state) {
    const fixture *f = *state;
    counting c = counting_make();
    cleat_error error;
    cleat_model *model = model_of("series_dense");
    const cleat_onnx_entry entries[] = {{"labels", "[\"a\"]"}};
    const cleat_onnx_spec spec = {
        .model = model, .length = 64, .values = count_up, .user = &c, .metadata = entries, .n_metadata = 1};
    if (cleat_onnx_export(&spec, f->path, NULL, &error) != CLEAT_OK) fail_msg("%s", error.text);
    onnx_model *read = read_model(f->path);
    assert_string_equal(metadata_of(read, "cleat.model"), "series_dense");
    assert_string_equal(metadata_of(read, "cleat.version"), cleat_version());
    assert_string_equal(metadata_of(read, "labels"), "[\"a\"]");
    cleat__onnx__model__free_unpacked(read, NULL);
    cleat_model_destroy(model);
    free(c.values);
}

/* --- external data ---------------------------------------------------------------------------------------------- */

static const char *external_of(const Cleat__Onnx__Tensor *tensor, const char *key) {
    for (size_t i = 0; i < tensor->n_external_data; ++i)
        if (strcmp(tensor->external_data[i]->key, key) == 0) return tensor->external_data[i]->value;
    fail_msg("'%s' has no %s", tensor->name, key);
    return NULL;
}

static void values_can_be_in_a_second_file(void **state) {
    const fixture *f = *state;
    char path[PATH_BYTES + 8], *data;
    size_t size, outside = 0;
    counting c = counting_make();
    cleat_model *model = model_of("series_lstm");
    const cleat_onnx_report report = export_model(f, model, &c, true);
    onnx_model *read = read_model(f->path);
    snprintf(path, sizeof path, "%s.data", f->path);
    assert_int_equal(cleat_file_read(path, &data, &size, NULL), CLEAT_OK);
    assert_true(report.external_data && report.bytes > (int64_t)size);
    for (size_t i = 0; i < read->graph->n_initializer; ++i) {
        const Cleat__Onnx__Tensor *tensor = read->graph->initializer[i];
        if (tensor->data_location != CLEAT__ONNX__TENSOR__LOCATION__EXTERNAL) continue;
        const long offset = atol(external_of(tensor, "offset")), length = atol(external_of(tensor, "length"));
        assert_string_equal(external_of(tensor, "location"), "model.onnx.data");
        assert_int_equal(tensor->raw_data.len, 0);
        assert_true(offset % 4096 == 0 && offset + length <= (long)size);
        if (tensor->data_type == CLEAT_ONNX_FLOAT && strstr(tensor->name, "weight"))
            assert_memory_equal(data + offset, c.values, (size_t)length);
        ++outside;
    }
    assert_true(outside > 0);
    cleat_free(data);
    cleat__onnx__model__free_unpacked(read, NULL);
    cleat_model_destroy(model);
    free(c.values);
}

/* --- families made for the test --------------------------------------------------------------------------------- */

static cleat_status infer_odd(cleat_node *node, cleat_error *error) {
    return cleat_set_output(node, 0, CLEAT_F32, node->in[0]->rank, node->in[0]->shape, error);
}
static const cleat_op odd = {.name = "odd_op", .infer = infer_odd};

static cleat_tensor *add_odd(cleat_graph *graph, cleat_tensor *x) {
    cleat_node *node = cleat_emit(graph, &odd, NULL, 0, &x, 1);
    return node ? node->out[0] : NULL;
}

/* x [B, L, 4] -> x times a learned row per position, [length, 4]. */
static cleat_tensor *add_positions(cleat_graph *graph, cleat_tensor *x, int64_t batch, int64_t length) {
    const int64_t shape[2] = {length * 4, length * 4}, flat[2] = {batch, length * 4}, whole[3] = {batch, length, 4};
    cleat_tensor *weight = cleat_param(graph, "positions", 2, shape, (cleat_init){CLEAT_INIT_ZERO, 0});
    return cleat_reshape(graph, cleat_linear(graph, cleat_reshape(graph, x, 2, flat), weight, NULL, NULL), 3, whole);
}

static bool with_odd_op;

static void build_odd(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch, int64_t length,
                      cleat_model_graph *built) {
    const int64_t shape[3] = {batch, length, 4};
    (void)model, (void)mode;
    cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 3, shape);
    x = with_odd_op ? add_odd(graph, x) : add_positions(graph, x, batch, length);
    *built = (cleat_model_graph){.output = x};
}

static const char *const odd_terms[] = {"odd"};
static const cleat_model_class odd_class = {.name = "odd", .terms = odd_terms, .n_terms = 1, .build = build_odd};

static void a_network_of_fixed_positions_has_a_fixed_length(void **state) {
    const fixture *f = *state;
    counting c = counting_make();
    const cleat_model model = {.type = &odd_class};
    with_odd_op = false;
    const cleat_onnx_report report = export_model(f, &model, &c, false);
    assert_int_equal(report.length, 64);
    assert_value(&report.inputs[0], "x", "float32", "[batch, 64, 4]");
    assert_value(&report.output, "output", "float32", "[batch, 64, 4]");
    onnx_model *read = read_model(f->path);
    check_model(read);
    assert_string_equal(metadata_of(read, "cleat.length"), "64");
    assert_non_null(strstr(read->doc_string, "64"));
    cleat__onnx__model__free_unpacked(read, NULL);
    free(c.values);
}

static void an_op_without_a_translation_is_named(void **state) {
    const fixture *f = *state;
    counting c = counting_make();
    cleat_error error;
    const cleat_model model = {.type = &odd_class};
    const cleat_onnx_spec spec = {.model = &model, .length = 64, .values = count_up, .user = &c};
    with_odd_op = true;
    unlink(f->path);
    assert_int_equal(cleat_onnx_export(&spec, f->path, NULL, &error), CLEAT_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(error.text, "'odd_op'"));
    assert_false(cleat_file_exists(f->path));
    free(c.values);
}

static void a_family_without_a_translation_names_other_formats(void **state) {
    const fixture *f = *state;
    counting c = counting_make();
    cleat_error error;
    cleat_model *model = model_of("causal_lm");
    const cleat_onnx_spec spec = {.model = model, .length = 64, .values = count_up, .user = &c};
    unlink(f->path);
    assert_int_equal(cleat_onnx_export(&spec, f->path, NULL, &error), CLEAT_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(error.text, "causal_lm"));
    assert_non_null(strstr(error.text, "--format hf or gguf"));
    assert_false(cleat_file_exists(f->path));
    cleat_model_destroy(model);
    free(c.values);
}

/* --- coverage --------------------------------------------------------------------------------------------------- */

/* 1 for a family without a translation. */
static size_t check_ops(const cleat_model *model, const char *name) {
    if (model->type->instead_of_onnx) return 1;
    cleat_store *store;
    cleat_graph *graph;
    cleat_model_graph built;
    cleat_error error;
    const int64_t fixed = cleat_model_fixed_length(model);
    assert_int_equal(cleat_store_create(&store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(store, name, &graph, NULL), CLEAT_OK);
    cleat_model_build(model, graph, CLEAT_MODE_PREDICT, 2, fixed ? fixed : 64, &built);
    if (cleat_graph_status(graph, &error) != CLEAT_OK) fail_msg("%s: %s", name, error.text);
    const size_t nodes = graph->node_count;
    for (size_t i = 0; i < nodes; ++i)
        if (!cleat_onnx_knows(graph->nodes[i]->op->name))
            fail_msg("%s: op '%s' has no row in src/models/onnx/translate.c", name, graph->nodes[i]->op->name);
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
    return nodes;
}

/* Checks the profile's network with one more setting; returns false if the settings contradict each other. */
static bool check_with(const char *type, const char *assignment) {
    cleat_profile *profile = profile_of(type);
    cleat_model *model = NULL;
    cleat_error error;
    char name[128];
    snprintf(name, sizeof name, "%s with %s", type, assignment);
    const char *settings[] = {"data.path=x", "data.max_length=128", assignment};
    for (size_t i = 0; i < 3; ++i) {
        if (i == 1 && !cleat_profile_key_help(profile, "data.max_length")) continue;
        if (cleat_profile_set(profile, settings[i], &error) != CLEAT_OK) fail_msg("%s: %s", name, error.text);
    }
    const bool good = cleat_profile_check(profile, &error) == CLEAT_OK;
    if (!good) print_message("%s: %s\n", name, error.text);
    if (good && cleat_profile_create_model(profile, &model, &error) != CLEAT_OK) fail_msg("%s: %s", name, error.text);
    if (good) check_ops(model, name);
    cleat_model_destroy(model);
    cleat_profile_destroy(profile);
    return good;
}

/* Networks beyond the profiles': every choice of every setting in [model], and adapters. */
static void every_op_of_every_choice_has_a_translation(void **state) {
    int checked = 0;
    char assignment[96];
    (void)state;
    for (size_t i = 0; cleat_model_classes[i]; ++i) {
        const char *type = cleat_model_classes[i]->name;
        for (const cleat_key *key = cleat_model_classes[i]->keys; key->name; ++key)
            for (size_t k = 0; strcmp(key->section, "model") == 0 && key->choices && key->choices[k]; ++k) {
                snprintf(assignment, sizeof assignment, "model.%s=%s", key->name, key->choices[k]);
                checked += check_with(type, assignment);
            }
        checked += check_with(type, "train.lora_rank=2");
    }
    print_message("%d networks\n", checked);
    assert_true(checked > 50);
}

static bool is_profile(const char *name) {
    return strcmp(cleat_name_ending(name), ".ini") == 0;
}

/* The networks of all profiles: detects a new one without a translation. */
static void every_op_of_every_profile_has_a_translation(void **state) {
    cleat_name_list profiles = {0};
    cleat_error error;
    (void)state;
    if (cleat_listing_read(source_path("profiles"), is_profile, &profiles, &error) != CLEAT_OK)
        fail_msg("%s", error.text);
    assert_true(profiles.count > 10);
    for (size_t i = 0; i < profiles.count; ++i) {
        char path[PATH_BYTES];
        cleat_profile *profile;
        cleat_model *model;
        snprintf(path, sizeof path, "%s/%s", source_path("profiles"), profiles.names[i]);
        if (cleat_profile_load(path, NULL, 0, &profile, &error) != CLEAT_OK) fail_msg("%s", error.text);
        if (cleat_profile_create_model(profile, &model, &error) != CLEAT_OK) fail_msg("%s", error.text);
        assert_true(check_ops(model, profiles.names[i]) > 0);
        cleat_model_destroy(model);
        cleat_profile_destroy(profile);
    }
    cleat_name_list_free(&profiles);
}

/* --- failures --------------------------------------------------------------------------------------------------- */

static void memory_that_runs_out_leaves_no_file(void **state) {
    const fixture *f = *state;
    counting c = counting_make();
    cleat_error error;
    cleat_model *model = model_of("rna_transformer");
    const cleat_onnx_spec spec = {.model = model, .length = 64, .values = count_up, .user = &c};
    cleat_status status = CLEAT_ERR_MEMORY;
    long failed = 0;
    unlink(f->path);
    for (long n = 1; status; n += 1 + n / 40) {
        cleat_fail_allocation(n);
        status = cleat_onnx_export(&spec, f->path, NULL, &error);
        cleat_fail_allocation(0);
        assert_true(!status || status == CLEAT_ERR_MEMORY);
        if (status) assert_false(cleat_file_exists(f->path));
        failed += status != CLEAT_OK;
    }
    assert_true(failed > 50);
    cleat_model_destroy(model);
    free(c.values);
}

static void a_folder_that_does_not_exist_is_named(void **state) {
    counting c = counting_make();
    cleat_error error;
    (void)state;
    cleat_model *model = model_of("series_dense");
    const cleat_onnx_spec spec = {.model = model, .length = 64, .values = count_up, .user = &c};
    assert_int_equal(cleat_onnx_export(&spec, "/no/such/folder/m.onnx", NULL, &error), CLEAT_ERR_IO);
    assert_non_null(strstr(error.text, "/no/such/folder/m.onnx"));
    cleat_model_destroy(model);
    free(c.values);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_is_a_sound_model),
        cmocka_unit_test(batch_and_length_are_open),
        cmocka_unit_test(metadata_are_stored),
        cmocka_unit_test(values_can_be_in_a_second_file),
        cmocka_unit_test(a_network_of_fixed_positions_has_a_fixed_length),
        cmocka_unit_test(an_op_without_a_translation_is_named),
        cmocka_unit_test(a_family_without_a_translation_names_other_formats),
        cmocka_unit_test(every_op_of_every_profile_has_a_translation),
        cmocka_unit_test(every_op_of_every_choice_has_a_translation),
        cmocka_unit_test(memory_that_runs_out_leaves_no_file),
        cmocka_unit_test(a_folder_that_does_not_exist_is_named),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

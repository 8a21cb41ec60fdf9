/* Exports a network and computes it on a device, for test_onnxruntime.py:
 * onnx_exporter FILE.safetensors|FOLDER|NAME OUT.onnx ARRAYS.safetensors [--external-data].
 *
 * The network is from a reference trajectory (a path), from a published checkpoint with expected results (a
 * folder), or a graph of op_graphs.c (without arguments, the names are listed). ARRAYS receives the inputs by
 * name, cleat's prediction as `cleat`, and a trajectory's output, which PyTorch computed in double precision,
 * as `output`, except with batch normalisation, where it depends on the batch's statistics. Values without a
 * file are random. Exits with 77 without a device, with 3 if no model family matches the network of a folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleat/exec.h"
#include "core/files.h"
#include "core/memory.h"
#include "core/philox.h"
#include "graph/store.h"
#include "onnx/export.h"
#include "op_graphs.h"
#include "platform/files.h"
#include "verify/golden.h"
#include "verify/published.h"
#include "weights/layout.h"

enum { EXIT_UNKNOWN = 3, EXIT_SKIP = 77 };
enum { MAX_VALUES = 1024, OP_BATCH = 3, TOKENS = 9, OP_LONGEST = 38 };

/* The network and its inputs. `file` is NULL for a graph of op_graphs.c. */
typedef struct subject {
    cleat_safetensors *file;
    cleat_golden golden;
    const cleat_model *model;
    int64_t batch, length, longest;
    float *values[MAX_VALUES]; /* of parameters and buffers, in order of first use */
    char names[MAX_VALUES][CLEAT_NAME];
    size_t count;
    bool has_statistics;
} subject;

/* Returns memory for a tensor's values, stored under its name; *old: already filled. */
static float *keep_values(subject *s, const cleat_tensor *tensor, bool *old) {
    *old = true;
    for (size_t i = 0; i < s->count; ++i)
        if (strcmp(s->names[i], tensor->name) == 0) return s->values[i];
    *old = false;
    if (s->count == MAX_VALUES) return NULL;
    snprintf(s->names[s->count], CLEAT_NAME, "%s", tensor->name);
    return s->values[s->count++] = cleat_alloc((size_t)cleat_tensor_elements(tensor), sizeof(float));
}

/* Running means around 0, variances around 1; parameters around 0. */
static void fill_values(subject *s, const cleat_tensor *tensor, float *values) {
    cleat_random random = cleat_random_stream(3, (uint32_t)s->count, 0);
    for (int64_t i = 0; i < cleat_tensor_elements(tensor); ++i)
        values[i] = tensor->is_buffer ? tensor->initial + 0.3f * (float)cleat_random_uniform(&random)
                                      : 0.5f * (float)cleat_random_normal(&random);
    s->has_statistics = s->has_statistics || tensor->is_buffer;
}

/* param/NAME in PyTorch's layout, or random values. */
static const float *values_of(void *user, const cleat_tensor *tensor, cleat_error *error) {
    subject *s = user;
    char name[CLEAT_NAME + 8];
    int64_t shape[CLEAT_MAX_RANK];
    bool old = false;
    snprintf(name, sizeof name, "param/%s", tensor->name);
    const cleat_st_tensor *found = s->file ? cleat_safetensors_find(s->file, name) : NULL;
    float *values = found || tensor->is_buffer || !s->file ? keep_values(s, tensor, &old) : NULL;
    if (!values) {
        cleat_fail(error, CLEAT_ERR_FORMAT, "no array '%s', or no room for it", name);
        return NULL;
    }
    if (old) return values;
    if (found)
        cleat_from_torch(tensor, cleat_torch_shape(tensor, found->rank, shape), found->data, values);
    else
        fill_values(s, tensor, values);
    return values;
}

/* --- inputs of a graph of op_graphs.c --------------------------------------------------------------------------- */

/* The first sample has all rows, the second none; tokens below 0 and above the last one occur. */
static void fill_integers(const subject *s, cleat_golden_array *array, cleat_random *random) {
    int32_t *values = array->data;
    const bool tokens = strcmp(array->name, "tokens") == 0;
    int64_t elements = 1;
    for (int i = 0; i < array->rank; ++i) elements *= array->shape[i];
    for (int64_t i = 0; i < elements; ++i)
        values[i] = tokens ? (int32_t)cleat_random_below(random, TOKENS + 2) - 1
                           : (int32_t)(i == 0   ? s->length
                                       : i == 1 ? 0
                                                : cleat_random_below(random, (uint32_t)s->length));
}

static cleat_status make_inputs(subject *s, const cleat_graph *graph, cleat_error *error) {
    cleat_random random = cleat_random_stream(4, 0, 0);
    cleat_golden_content *content = &s->golden.content;
    for (size_t i = 0; i < graph->tensor_count; ++i) {
        const cleat_tensor *input = graph->tensors[i];
        if (input->role != CLEAT_ROLE_INPUT) continue;
        if (content->count == CLEAT_GOLDEN_ARRAYS)
            return cleat_fail(error, CLEAT_ERR_FORMAT, "the graph has more than %d inputs", CLEAT_GOLDEN_ARRAYS);
        cleat_golden_array *array = &content->arrays[content->count];
        *array = (cleat_golden_array){.integers = input->dtype == CLEAT_I32, .rank = input->rank};
        snprintf(array->name, sizeof array->name, "%s", input->name);
        memcpy(array->shape, input->shape, (size_t)input->rank * sizeof *input->shape);
        array->data = cleat_alloc((size_t)cleat_tensor_elements(input), sizeof(float));
        if (!array->data) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the input %s", input->name);
        ++content->count;
        if (array->integers) fill_integers(s, array, &random);
        for (int64_t k = 0; !array->integers && k < cleat_tensor_elements(input); ++k)
            ((float *)array->data)[k] = (float)cleat_random_normal(&random);
    }
    return CLEAT_OK;
}

/* --- cleat's prediction ----------------------------------------------------------------------------------------- */

typedef struct network {
    cleat_device *device;
    cleat_store *store;
    cleat_graph *graph;
    cleat_model_graph built;
    cleat_exec *exec;
} network;

static cleat_status write_values(subject *s, network *n, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; !status && i < n->store->count + n->store->buffer_count; ++i) {
        const cleat_tensor *tensor =
            i < n->store->count ? n->store->params[i] : cleat_store_buffer(n->store, i - n->store->count);
        const float *values = values_of(s, tensor, error);
        status = values ? cleat_exec_write(n->exec, 0, tensor, values, (size_t)cleat_tensor_bytes(tensor), error)
                        : CLEAT_ERR_FORMAT;
    }
    return status;
}

static cleat_status write_inputs(const subject *s, network *n, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; !status && i < s->golden.content.count; ++i) {
        const cleat_golden_array *array = &s->golden.content.arrays[i];
        const cleat_tensor *input = cleat_graph_find(n->graph, array->name);
        if (input) status = cleat_exec_write(n->exec, 0, input, array->data, (size_t)cleat_tensor_bytes(input), error);
    }
    return status;
}

static cleat_status open_network(subject *s, network *n, cleat_error *error) {
    const char *selector = getenv("CLEAT_TEST_DEVICE");
    cleat_status status = cleat_device_open(selector ? selector : "auto", &n->device, error);
    if (!status) status = cleat_store_create(&n->store, error);
    if (!status) status = cleat_graph_create(n->store, "predict", &n->graph, error);
    if (status) return status;
    cleat_model_build(s->model, n->graph, CLEAT_MODE_PREDICT, s->batch, s->length, &n->built);
    status = cleat_graph_status(n->graph, error);
    if (!status && !s->file) status = make_inputs(s, n->graph, error);
    return status ? status : cleat_exec_open(n->device, &n->graph, 1, &n->exec, error);
}

/* The caller frees `output->data`. */
static cleat_status predict(subject *s, cleat_st_tensor *output, cleat_error *error) {
    network n = {NULL, NULL, NULL, {NULL, NULL, NULL}, NULL};
    float *values = NULL;
    cleat_status status = open_network(s, &n, error);
    if (!status) status = write_values(s, &n, error);
    if (!status) status = write_inputs(s, &n, error);
    if (!status) status = cleat_exec_run(n.exec, 0, error);
    if (!status) {
        const cleat_tensor *y = n.built.output;
        values = cleat_alloc((size_t)cleat_tensor_elements(y), sizeof *values);
        status =
            values ? cleat_exec_read(n.exec, 0, y, values, (size_t)cleat_tensor_bytes(y), error) : CLEAT_ERR_MEMORY;
        *output = (cleat_st_tensor){.name = "cleat", .dtype = CLEAT_ST_F32, .rank = y->rank, .data = values};
        memcpy(output->shape, y->shape, (size_t)y->rank * sizeof *y->shape);
    }
    cleat_exec_destroy(n.exec);
    cleat_graph_destroy(n.graph);
    cleat_store_destroy(n.store);
    cleat_device_close(n.device);
    return status;
}

/* --- files ------------------------------------------------------------------------------------------------------ */

static cleat_status open_subject(const char *name, subject *s, cleat_error *error) {
    if (!strchr(name, '/')) {
        *s = (subject){.model = op_graph_find(name), .batch = OP_BATCH, .longest = OP_LONGEST};
        if (!s->model) return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "no such graph");
        s->length = op_graph_length(name);
        return CLEAT_OK;
    }
    cleat_status status = cleat_folder_exists(name) ? cleat_published_golden(name, &s->file, error)
                                                    : cleat_safetensors_open(name, &s->file, error);
    if (!status) status = cleat_golden_open(s->file, NULL, 0, &s->golden, error);
    if (status) return status;
    s->model = s->golden.model;
    s->batch = (int64_t)cleat_dataset_count(s->golden.dataset);
    s->length = cleat_dataset_length(s->golden.dataset, 0);
    s->longest = s->golden.profile->data->max_length;
    return CLEAT_OK;
}

static void close_subject(subject *s) {
    for (size_t i = 0; i < s->count; ++i) cleat_free(s->values[i]);
    for (size_t i = 0; !s->file && i < s->golden.content.count; ++i) cleat_free(s->golden.content.arrays[i].data);
    if (s->file) cleat_golden_close(&s->golden);
    cleat_safetensors_close(s->file);
}

static cleat_status write_arrays(subject *s, const char *path, cleat_error *error) {
    cleat_st_tensor tensors[CLEAT_GOLDEN_ARRAYS + 2], computed = {.name = NULL};
    size_t count = 0;
    cleat_status status = predict(s, &computed, error);
    if (status) return status;
    for (; count < s->golden.content.count; ++count) {
        const cleat_golden_array *array = &s->golden.content.arrays[count];
        tensors[count] = (cleat_st_tensor){.name = array->name,
                                           .dtype = array->integers ? CLEAT_ST_I32 : CLEAT_ST_F32,
                                           .rank = array->rank,
                                           .data = array->data};
        memcpy(tensors[count].shape, array->shape, (size_t)array->rank * sizeof *array->shape);
    }
    const cleat_st_tensor *output = s->file ? cleat_safetensors_find(s->file, "output") : NULL;
    if (output && !s->has_statistics) tensors[count++] = *output;
    tensors[count++] = computed;
    status = cleat_safetensors_write(path, tensors, count, NULL, 0, error);
    cleat_free((void *)computed.data);
    return status;
}

int main(int argc, char **argv) {
    subject s = {.file = NULL};
    cleat_error error = {0};
    const char *name;
    for (size_t i = 0; argc == 1 && (name = op_graph_name(i)) != NULL; ++i) printf("%s\n", name);
    if (argc < 4) return argc == 1 ? 0 : 2;
    cleat_status status = open_subject(argv[1], &s, &error);
    const bool unknown = status == CLEAT_ERR_NOT_SUPPORTED;
    if (!status) {
        const cleat_onnx_spec spec = {
            .model = s.model, .length = s.longest, .values = values_of, .user = &s, .external = argc > 4};
        status = cleat_onnx_export(&spec, argv[2], NULL, &error);
    }
    if (!status) status = write_arrays(&s, argv[3], &error);
    if (status) fprintf(stderr, "%s: %s\n", argv[1], error.text);
    close_subject(&s);
    return unknown ? EXIT_UNKNOWN : status == CLEAT_ERR_NO_DEVICE ? EXIT_SKIP : status != CLEAT_OK;
}

/* Exports the network of a reference trajectory and computes it on a device:
 * export_golden FILE.safetensors OUT.onnx ARRAYS.safetensors [--external-data].
 *
 * ARRAYS receives the batch under the names of the model's inputs, the prediction of cleat as `cleat`, and the output
 * that PyTorch computed in double precision as `output`; not with batch normalisation, where that is one with the
 * statistics of the batch. Running statistics, which the file lacks, are random. For test_onnxruntime.py; 77: there is
 * no device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleat/exec.h"
#include "core/memory.h"
#include "core/philox.h"
#include "graph/store.h"
#include "onnx/export.h"
#include "verify/golden.h"

typedef struct source {
    cleat_safetensors *file;
    cleat_golden golden;
    float *statistics[256]; /* of buffers, in order of first use */
    char names[256][CLEAT_NAME];
    size_t count;
} source;

/* Means around 0, variances around 1. */
static const float *statistics_of(source *s, const cleat_tensor *tensor) {
    for (size_t i = 0; i < s->count; ++i)
        if (strcmp(s->names[i], tensor->name) == 0) return s->statistics[i];
    cleat_random random = cleat_random_stream(3, (uint32_t)s->count, 0);
    float *values = cleat_alloc((size_t)cleat_tensor_elements(tensor), sizeof *values);
    for (int64_t i = 0; values && i < cleat_tensor_elements(tensor); ++i)
        values[i] = tensor->initial + 0.3f * (float)cleat_random_below(&random, 1000) / 1000;
    snprintf(s->names[s->count], CLEAT_NAME, "%s", tensor->name);
    return s->statistics[s->count++] = values;
}

static const float *values_of(void *user, const cleat_tensor *tensor, cleat_error *error) {
    source *s = user;
    char name[CLEAT_NAME + 8];
    snprintf(name, sizeof name, "param/%s", tensor->name);
    const cleat_st_tensor *found = cleat_safetensors_find(s->file, name);
    if (found) return found->data;
    if (tensor->is_buffer && s->count < 256) return statistics_of(s, tensor);
    cleat_fail(error, CLEAT_ERR_FORMAT, "no array '%s'", name);
    return NULL;
}

/* --- cleat's prediction ----------------------------------------------------------------------------------------- */

typedef struct network {
    cleat_device *device;
    cleat_store *store;
    cleat_graph *graph;
    cleat_model_graph built;
    cleat_exec *exec;
} network;

static cleat_status write_values(source *s, network *n, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; status == CLEAT_OK && i < n->store->count + n->store->buffer_count; ++i) {
        const cleat_tensor *tensor =
            i < n->store->count ? n->store->params[i] : cleat_store_buffer(n->store, i - n->store->count);
        const float *values = values_of(s, tensor, error);
        status = values ? cleat_exec_write(n->exec, 0, tensor, values, (size_t)cleat_tensor_bytes(tensor), error)
                        : CLEAT_ERR_FORMAT;
    }
    return status;
}

static cleat_status write_inputs(const source *s, network *n, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; status == CLEAT_OK && i < s->golden.content.count; ++i) {
        const cleat_golden_array *array = &s->golden.content.arrays[i];
        const cleat_tensor *input = cleat_graph_find(n->graph, array->name);
        if (input) status = cleat_exec_write(n->exec, 0, input, array->data, (size_t)cleat_tensor_bytes(input), error);
    }
    return status;
}

static cleat_status open_network(const source *s, network *n, cleat_error *error) {
    const char *selector = getenv("CLEAT_TEST_DEVICE");
    const int64_t batch = (int64_t)cleat_dataset_count(s->golden.dataset),
                  length = cleat_dataset_length(s->golden.dataset, 0);
    cleat_status status = cleat_device_open(selector ? selector : "auto", &n->device, error);
    if (status == CLEAT_OK) status = cleat_store_create(&n->store, error);
    if (status == CLEAT_OK) status = cleat_graph_create(n->store, "predict", &n->graph, error);
    if (status != CLEAT_OK) return status;
    cleat_model_build(s->golden.model, n->graph, CLEAT_MODE_PREDICT, batch, length, &n->built);
    return cleat_exec_open(n->device, &n->graph, 1, &n->exec, error);
}

/* The caller frees `output->data`. */
static cleat_status predict(source *s, cleat_st_tensor *output, cleat_error *error) {
    network n = {NULL, NULL, NULL, {NULL, NULL, NULL}, NULL};
    float *values = NULL;
    cleat_status status = open_network(s, &n, error);
    if (status == CLEAT_OK) status = write_values(s, &n, error);
    if (status == CLEAT_OK) status = write_inputs(s, &n, error);
    if (status == CLEAT_OK) status = cleat_exec_run(n.exec, 0, error);
    if (status == CLEAT_OK) {
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

static cleat_status write_arrays(source *s, const char *path, cleat_error *error) {
    cleat_st_tensor tensors[CLEAT_GOLDEN_ARRAYS + 2];
    size_t count = 0;
    for (; count < s->golden.content.count; ++count) {
        const cleat_golden_array *array = &s->golden.content.arrays[count];
        tensors[count] = (cleat_st_tensor){.name = array->name,
                                           .dtype = array->integers ? CLEAT_ST_I32 : CLEAT_ST_F32,
                                           .rank = array->rank,
                                           .data = array->data};
        memcpy(tensors[count].shape, array->shape, (size_t)array->rank * sizeof *array->shape);
    }
    const cleat_st_tensor *output = cleat_safetensors_find(s->file, "output");
    if (!output) return cleat_fail(error, CLEAT_ERR_FORMAT, "no array 'output'");
    if (s->count == 0) tensors[count++] = *output;
    cleat_status status = predict(s, &tensors[count], error);
    if (status != CLEAT_OK) return status;
    status = cleat_safetensors_write(path, tensors, count + 1, NULL, 0, error);
    cleat_free((void *)tensors[count].data);
    return status;
}

int main(int argc, char **argv) {
    source s = {.file = NULL};
    cleat_error error = {0};
    if (argc < 4) return 2;
    cleat_status status = cleat_safetensors_open(argv[1], &s.file, &error);
    if (status == CLEAT_OK) status = cleat_golden_open(s.file, NULL, 0, &s.golden, &error);
    if (status == CLEAT_OK) {
        const cleat_onnx_spec spec = {.model = s.golden.model,
                                      .length = s.golden.profile->data->max_length,
                                      .values = values_of,
                                      .user = &s,
                                      .external = argc > 4};
        status = cleat_onnx_export(&spec, argv[2], NULL, &error);
    }
    if (status == CLEAT_OK) status = write_arrays(&s, argv[3], &error);
    if (status != CLEAT_OK) fprintf(stderr, "%s: %s\n", argv[1], error.text);
    for (size_t i = 0; i < s.count; ++i) cleat_free(s.statistics[i]);
    cleat_golden_close(&s.golden);
    cleat_safetensors_close(s.file);
    return status == CLEAT_ERR_NO_DEVICE ? 77 : status != CLEAT_OK;
}

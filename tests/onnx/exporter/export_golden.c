/* Exports the network of a reference trajectory: export_golden FILE.safetensors OUT.onnx ARRAYS.safetensors [--external-data].
 * ARRAYS receives the batch under the names of the model's inputs, and the output that PyTorch computed for it in double
 * precision. For test_onnxruntime.py. */
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"
#include "onnx/export.h"
#include "verify/golden.h"

/* param/NAME; running statistics that the file lacks have their initial values. */
static const float *values_of(void *user, const cleat_tensor *tensor, cleat_error *error) {
    static float initial[4096];
    char name[CLEAT_NAME + 8];
    snprintf(name, sizeof name, "param/%s", tensor->name);
    const cleat_st_tensor *found = cleat_safetensors_find(user, name);
    if (found) return found->data;
    if (tensor->role != CLEAT_ROLE_STATE || cleat_tensor_elements(tensor) > 4096) {
        cleat_fail(error, CLEAT_ERR_FORMAT, "no array '%s'", name);
        return NULL;
    }
    static float ones[4096];
    for (int i = 0; i < 4096; ++i) ones[i] = 1;
    return tensor->initial != 0 ? ones : initial;
}

static cleat_status write_arrays(const cleat_golden *golden, const cleat_safetensors *file, const char *path,
                                 cleat_error *error) {
    cleat_st_tensor tensors[CLEAT_GOLDEN_ARRAYS + 1];
    size_t count = 0;
    for (; count < golden->content.count; ++count) {
        const cleat_golden_array *array = &golden->content.arrays[count];
        tensors[count] = (cleat_st_tensor){.name = array->name,
                                           .dtype = array->integers ? CLEAT_ST_I32 : CLEAT_ST_F32,
                                           .rank = array->rank,
                                           .data = array->data};
        memcpy(tensors[count].shape, array->shape, (size_t)array->rank * sizeof *array->shape);
    }
    const cleat_st_tensor *output = cleat_safetensors_find(file, "output");
    if (!output) return cleat_fail(error, CLEAT_ERR_FORMAT, "no array 'output'");
    tensors[count++] = *output;
    return cleat_safetensors_write(path, tensors, count, NULL, 0, error);
}

int main(int argc, char **argv) {
    cleat_safetensors *file = NULL;
    cleat_golden golden = {0};
    cleat_error error = {0};
    if (argc < 4) return 2;
    cleat_status status = cleat_safetensors_open(argv[1], &file, &error);
    if (status == CLEAT_OK) status = cleat_golden_open(file, NULL, 0, &golden, &error);
    if (status == CLEAT_OK) {
        const cleat_onnx_spec spec = {.model = golden.model,
                                      .length = golden.profile->data->max_length,
                                      .values = values_of,
                                      .user = file,
                                      .external = argc > 4};
        status = cleat_onnx_export(&spec, argv[2], NULL, &error);
    }
    if (status == CLEAT_OK) status = write_arrays(&golden, file, argv[3], &error);
    if (status != CLEAT_OK) fprintf(stderr, "%s: %s\n", argv[1], error.text);
    cleat_golden_close(&golden);
    cleat_safetensors_close(file);
    return status != CLEAT_OK;
}

/* What the library reads from published weights and writes as GGUF, for test_gguf_files.py and test_gguf_export.py:
 *   weights_dump PATH OUT          config.json and all tensors as model.safetensors in f32 into the folder OUT, each
 *                                  tensor read in parts of odd sizes
 *   weights_dump FOLDER OUT TYPE   a folder of Hugging Face as the GGUF file OUT: f32, f16, bf16, q8_0 or lora */
#include "core/files.h"
#include "core/memory.h"
#include "weights/gguf_write.h"
#include "weights/weights.h"
#include "json/member.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct dump {
    const cleat_weights *weights;
    cleat_st_tensor *tensors; /* as read */
    float *values;
} dump;

static cleat_status read_tensor(void *user, size_t i, const void **data, cleat_error *error) {
    dump *d = user;
    const cleat_st_tensor *tensor = cleat_weights_at(d->weights, i);
    const int64_t elements = cleat_st_elements(tensor);
    cleat_status status = CLEAT_OK;
    cleat_free(d->values);
    d->values = cleat_alloc((size_t)elements, sizeof *d->values);
    for (int64_t first = 0, part = 1; first < elements && !status; first += part, part = 1 + part * 7 % 300007) {
        const int64_t count = part < elements - first ? part : elements - first;
        status = cleat_weights_read_part(d->weights, tensor, first, count, d->values + first, error);
    }
    *data = d->values;
    return status;
}

/* The stored rows of a matrix have its values. */
static cleat_status check_blocks(const cleat_weights *weights, const cleat_st_tensor *tensor, cleat_error *error) {
    cleat_weight_blocks blocks;
    if (!cleat_weights_blocks(weights, tensor, &blocks)) return CLEAT_OK;
    const int64_t elements = cleat_st_elements(tensor), row = blocks.rows / 2;
    float *values = cleat_alloc((size_t)elements, sizeof *values), *same = cleat_alloc((size_t)elements, sizeof *same);
    char *bytes = cleat_alloc((size_t)(blocks.rows - row), blocks.row_bytes);
    cleat_status status = cleat_weights_read(weights, tensor, values, error);
    if (!status) status = cleat_weights_read_blocks(weights, tensor, row, blocks.rows - row, bytes, error);
    const int64_t each = cleat_gguf_block_values(blocks.type);
    if (!status) cleat_gguf_unpack(blocks.type, bytes, (size_t)((blocks.rows - row) * blocks.columns / each), same);
    for (int64_t i = 0; i < (blocks.rows - row) * blocks.columns && !status; ++i) {
        const int64_t r = row + i / blocks.columns, c = i % blocks.columns;
        const int64_t at = blocks.is_transposed ? c * blocks.rows + r : r * blocks.columns + c;
        if (memcmp(&values[at], &same[i], sizeof *same) != 0)
            status = cleat_fail(error, CLEAT_ERR_FORMAT, "%s: row %lld has other values in blocks", tensor->name,
                                (long long)r);
    }
    cleat_free(values);
    cleat_free(same);
    cleat_free(bytes);
    return status;
}

static int write_gguf(char **argv) {
    static const struct {
        const char *name;
        cleat_gguf_type type;
    } types[] = {{"f32", CLEAT_GGUF_TYPE_F32},
                 {"f16", CLEAT_GGUF_TYPE_F16},
                 {"bf16", CLEAT_GGUF_TYPE_BF16},
                 {"q8_0", CLEAT_GGUF_TYPE_Q8_0}};
    cleat_error error = {0};
    size_t count = 0;
    cleat_status status = CLEAT_ERR_ARGUMENT;
    for (size_t i = 0; i < 4; ++i)
        if (strcmp(types[i].name, argv[3]) == 0)
            status = cleat_gguf_write(argv[1], types[i].type, argv[2], &count, &error);
    if (strcmp(argv[3], "lora") == 0) status = cleat_gguf_write_adapters(argv[1], argv[2], &count, &error);
    if (status)
        fprintf(stderr, "%s\n", error.text);
    else
        printf("%s: %zu tensors\n", argv[2], count);
    return status != CLEAT_OK;
}

int main(int argc, char **argv) {
    cleat_weights *weights = NULL;
    cleat_error error = {0};
    char path[1024];
    if (argc == 4) return write_gguf(argv);
    if (argc != 3) return 2;
    cleat_status status = cleat_weights_open(argv[1], &weights, &error);
    const size_t count = status ? 0 : cleat_weights_count(weights);
    dump d = {.weights = weights, .tensors = cleat_alloc(count, sizeof *d.tensors)};
    for (size_t i = 0; i < count && !status; ++i) {
        d.tensors[i] = *cleat_weights_at(weights, i);
        d.tensors[i].dtype = CLEAT_ST_F32;
        status = check_blocks(weights, cleat_weights_at(weights, i), &error);
    }
    const cleat_st_source source = {.data = read_tensor, .user = &d};
    snprintf(path, sizeof path, "%s/model.safetensors", argv[2]);
    if (!status) status = cleat_folder_make(argv[2], &error);
    if (!status) status = cleat_safetensors_write_from(path, d.tensors, count, &source, NULL, 0, NULL, &error);
    if (!status) status = cleat_json_write_file(argv[2], "config.json", cleat_weights_config(weights), &error);
    if (status)
        fprintf(stderr, "%s\n", error.text);
    else
        printf("%s: %zu tensors, %lld bytes, %s\n", argv[1], count, (long long)cleat_weights_bytes(weights),
               cleat_weights_type(weights));
    cleat_free(d.tensors);
    cleat_free(d.values);
    cleat_weights_close(weights);
    return status != CLEAT_OK;
}

/* A GGUF file as a folder of Hugging Face: opening, and values in its order of rows. */
#include "weights/gguf_network.h"

#include "core/memory.h"

#include <cjson/cJSON.h>
#include <string.h>

enum { PIECE = 1 << 16 };

/* --- opening -------------------------------------------------------------------------------------------------- */

static cleat_status find_architecture(cleat_gguf_network *n, cleat_error *error) {
    const char *path = cleat_gguf_path(n->file);
    const cleat_gguf_member *name, *type;
    cleat_status status = cleat_gguf_expect(n->file, "general.architecture", CLEAT_GGUF_ONE_TEXT, &name, error);
    if (!status) status = cleat_gguf_expect(n->file, "general.type", CLEAT_GGUF_ONE_TEXT, &type, error);
    if (status) return status;
    if (type && strcmp(type->texts[0].data, "model") != 0)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                          "%s: general.type is '%.40s'; name the file of a 'model' (of adapters: merged, cleat export "
                          "--format gguf)",
                          path, type->texts[0].data);
    if (cleat_gguf_number(cleat_gguf_find(n->file, "split.count"), 0) > 1)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                          "%s: is one of several files; join them with llama-gguf-split of llama.cpp", path);
    n->architecture = name ? cleat_gguf_architecture_find(name->texts[0].data, true) : NULL;
    if (n->architecture) return cleat_gguf_config(n->file, n->architecture, &n->config, error);
    return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                      "%s: general.architecture is '%.60s'; this cleat reads llama, qwen2, qwen3, gemma2, gemma3, gpt2",
                      path, name ? name->texts[0].data : "");
}

static cleat_status describe(cleat_gguf_network *n, size_t i, cleat_error *error) {
    const cleat_gguf_tensor *from = cleat_gguf_at(n->file, i);
    cleat_st_tensor *to = &n->tensors[i];
    cleat_gguf_view *view = &n->views[i];
    const bool known = cleat_gguf_rename(n->architecture, from->name.data, false, view->name, &view->change);
    *to = (cleat_st_tensor){.name = known ? view->name : from->name.data, .dtype = CLEAT_ST_F32, .rank = from->rank};
    if (from->type == CLEAT_GGUF_TYPE_F16) to->dtype = CLEAT_ST_F16;
    if (from->type == CLEAT_GGUF_TYPE_BF16) to->dtype = CLEAT_ST_BF16;
    memcpy(to->shape, from->shape, sizeof from->shape);
    if (view->change == CLEAT_GGUF_TRANSPOSED && from->rank != 2) view->change = CLEAT_GGUF_SAME; /* a bias */
    if (view->change == CLEAT_GGUF_TRANSPOSED) {
        to->shape[0] = from->shape[1];
        to->shape[1] = from->shape[0];
    }
    if (view->change != CLEAT_GGUF_PAIRED) return CLEAT_OK;
    const cJSON *heads = cJSON_GetObjectItemCaseSensitive(
        n->config, strstr(view->name, "q_proj") ? "num_attention_heads" : "num_key_value_heads");
    const int64_t count = heads->valuedouble >= 1 && heads->valuedouble <= 1 << 20 ? (int64_t)heads->valuedouble : 0;
    if (from->rank < 1 || !count || from->shape[0] % (2 * count))
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: the rows of %.100s are not those of %g heads",
                          cleat_gguf_path(n->file), from->name.data, heads->valuedouble);
    view->width = from->shape[0] / count;
    return CLEAT_OK;
}

cleat_status cleat_gguf_network_open(const char *path, cleat_gguf_network *n, cleat_error *error) {
    cleat_status status = cleat_gguf_open(path, &n->file, error);
    if (!status) status = find_architecture(n, error);
    if (status) return status;
    const size_t count = cleat_gguf_count(n->file);
    n->tensors = cleat_alloc(count, sizeof *n->tensors);
    n->views = cleat_alloc(count, sizeof *n->views);
    if (!n->tensors || !n->views)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for the names of %zu tensors", path, count);
    for (size_t i = 0; i < count && !status; ++i) status = describe(n, i, error);
    return status;
}

void cleat_gguf_network_close(cleat_gguf_network *n) {
    cleat_gguf_close(n->file);
    cJSON_Delete(n->config);
    cleat_free(n->tensors);
    cleat_free(n->views);
    *n = (cleat_gguf_network){0};
}

/* --- values --------------------------------------------------------------------------------------------------- */

int64_t cleat_gguf_paired_row(int64_t row, int64_t width) {
    const int64_t head = row / width, half = row % width / (width / 2), place = row % (width / 2);
    return head * width + 2 * place + half;
}

/* Values first .. first + count - 1 in the order of the file. */
static cleat_status read_stored(const cleat_gguf *file, const cleat_gguf_tensor *tensor, int64_t first, int64_t count,
                                float *values, cleat_error *error) {
    const int64_t each = cleat_gguf_block_values(tensor->type);
    const size_t bytes = cleat_gguf_block_bytes(tensor->type);
    uint32_t blocks[PIECE / sizeof(uint32_t)]; /* aligned for all types */
    float part[256];
    while (count > 0) {
        const int64_t skip = first % each;
        const bool is_whole = skip == 0 && count >= each;
        int64_t some = is_whole ? count / each : 1;
        if (some > (int64_t)(sizeof blocks / bytes)) some = (int64_t)(sizeof blocks / bytes);
        cleat_status status =
            cleat_gguf_read(file, tensor, (size_t)(first / each) * bytes, (size_t)some * bytes, blocks, error);
        if (status) return status;
        cleat_gguf_unpack(tensor->type, blocks, (size_t)some, is_whole ? values : part);
        some *= each;
        if (!is_whole) {
            some = count < each - skip ? count : each - skip;
            memcpy(values, part + skip, (size_t)some * sizeof *values);
        }
        first += some;
        values += some;
        count -= some;
    }
    return CLEAT_OK;
}

/* The same in the order of Hugging Face, row by row. */
static cleat_status read_paired(const cleat_gguf_network *n, size_t i, int64_t first, int64_t count, float *values,
                                cleat_error *error) {
    const cleat_gguf_tensor *tensor = cleat_gguf_at(n->file, i);
    const int64_t columns = tensor->rank > 1 ? tensor->shape[1] : 1;
    cleat_status status = CLEAT_OK;
    while (count > 0 && !status) {
        const int64_t at = first % columns, some = count < columns - at ? count : columns - at;
        const int64_t row = cleat_gguf_paired_row(first / columns, n->views[i].width);
        status = read_stored(n->file, tensor, row * columns + at, some, values, error);
        first += some;
        values += some;
        count -= some;
    }
    return status;
}

/* The same of the transpose of [rows, columns]: from each row, the columns whose places are in the range. */
static cleat_status read_transposed(const cleat_gguf_network *n, size_t i, int64_t first, int64_t count, float *values,
                                    cleat_error *error) {
    const cleat_gguf_tensor *tensor = cleat_gguf_at(n->file, i);
    const int64_t rows = tensor->shape[0], columns = tensor->shape[1];
    float *part = cleat_alloc((size_t)(count / rows + 2), sizeof *part);
    cleat_status status = CLEAT_OK;
    if (!part) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for its values", cleat_gguf_path(n->file));
    for (int64_t row = 0; row < rows && !status; ++row) {
        const int64_t from = (first - row + rows - 1) / rows, to = (first + count - row + rows - 1) / rows;
        status = read_stored(n->file, tensor, row * columns + from, to - from, part, error);
        for (int64_t c = from; c < to && !status; ++c) values[c * rows + row - first] = part[c - from];
    }
    cleat_free(part);
    return status;
}

cleat_status cleat_gguf_network_read(const cleat_gguf_network *n, size_t i, int64_t first, int64_t count, float *values,
                                     cleat_error *error) {
    const cleat_gguf_change change = n->views[i].change;
    if (change == CLEAT_GGUF_PAIRED) return read_paired(n, i, first, count, values, error);
    if (change == CLEAT_GGUF_TRANSPOSED) return read_transposed(n, i, first, count, values, error);
    cleat_status status = read_stored(n->file, cleat_gguf_at(n->file, i), first, count, values, error);
    for (int64_t k = 0; k < count && !status && change == CLEAT_GGUF_PLUS_ONE; ++k) values[k] -= 1;
    return status;
}

/* Writing model.safetensors and config.json with the names of a published architecture. The tensors are first
 * listed, then written one at a time. */
#include "weights/write.h"

#include "core/files.h"
#include "core/memory.h"
#include "graph/graph.h"
#include "weights/layout.h"
#include "json/member.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_PATH = 1280, LONGEST_VALUE = 1100 };

/* The origin of a tensor's values. */
typedef struct origin {
    size_t tensor; /* of the content; COUNTER: none */
    int rank;      /* of the layout */
    float added;   /* to the values of the file */
    int64_t first; /* element of the tensor, in that layout */
} origin;
static const size_t COUNTER = SIZE_MAX;

typedef struct writer {
    const cleat_weights_content *content;
    cleat_st_tensor *tensors; /* [count] each owns its name, and has no data */
    origin *origins;          /* [count] */
    size_t count, capacity, origin_capacity;
    size_t tensor; /* of the content, whose values are here; COUNTER: none */
    float *values; /* its elements in the layout of the file */
} writer;

static cleat_status append(writer *w, const char *name, cleat_st_dtype dtype, int rank, const int64_t *shape,
                           origin from, cleat_error *error) {
    cleat_st_tensor made = {.name = cleat_strdup(name), .dtype = dtype, .rank = rank};
    if (rank > 0) memcpy(made.shape, shape, (size_t)rank * sizeof *shape);
    cleat_status status = cleat_grow(&w->tensors, w->count, &w->capacity, error);
    if (!status) status = cleat_grow(&w->origins, w->count, &w->origin_capacity, error);
    if (!status && !made.name) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %s", name);
    if (status) {
        cleat_free((void *)made.name);
        return status;
    }
    w->tensors[w->count] = made;
    w->origins[w->count++] = from;
    return CLEAT_OK;
}

/* PyTorch counts the batches of each batch normalisation; nothing reads the number. */
static cleat_status append_counter(writer *w, const char *variance, cleat_error *error) {
    static const char tail[] = "running_var";
    const size_t size = strlen(variance);
    char name[CLEAT_WEIGHT_NAME + 32];
    if (size < sizeof tail || strcmp(variance + size - (sizeof tail - 1), tail) != 0) return CLEAT_OK;
    snprintf(name, sizeof name, "%.*snum_batches_tracked", (int)(size - (sizeof tail - 1)), variance);
    return append(w, name, CLEAT_ST_I64, 0, NULL, (origin){.tensor = COUNTER}, error);
}

/* The parameter whose values are those of a tensor of the content. */
static cleat_tensor param_of(const char *name, int rank, const int64_t *shape) {
    cleat_tensor param = {.dtype = CLEAT_F32, .rank = rank};
    snprintf(param.name, sizeof param.name, "%s", name);
    memcpy(param.shape, shape, (size_t)rank * sizeof *shape);
    return param;
}

static cleat_status append_parts(writer *w, const cleat_tensor *param, const cleat_weight_sources *sources, origin from,
                                 cleat_error *error) {
    int64_t shape[CLEAT_ST_RANK], known_shape[CLEAT_MAX_RANK];
    const bool transposed = sources->rank == CLEAT_TRANSPOSED;
    const int wanted = sources->rank && !transposed ? abs(sources->rank) : param->rank >= 3 ? 4 : param->rank;
    const int known = cleat_torch_shape(param, transposed ? CLEAT_TRANSPOSED : wanted, known_shape);
    const int missing = wanted > known ? wanted - known : 0;
    const int leading = sources->rank < 0 ? 0 : missing; /* ones in front; the others follow */
    for (int i = 0; i < missing + known; ++i) {
        const int at = i - leading;
        shape[i] = at >= 0 && at < known ? known_shape[at] : 1;
    }
    cleat_status status = CLEAT_OK;
    shape[0] /= (int64_t)sources->count;
    from.rank = transposed ? CLEAT_TRANSPOSED : known;
    from.added = sources->added;
    for (size_t i = 0; i < sources->count && !status; ++i) {
        status = append(w, sources->names[i], CLEAT_ST_F32, missing + known, shape, from, error);
        if (!status) status = append_counter(w, sources->names[i], error);
        from.first += cleat_tensor_elements(param) / (int64_t)sources->count;
    }
    return status;
}

static cleat_status append_param(writer *w, const char *name, int rank, const int64_t *shape, origin from,
                                 cleat_error *error) {
    const cleat_tensor param = param_of(name, rank, shape);
    cleat_weight_sources sources;
    if (cleat_architecture_sources(w->content->architecture, w->content->model, false, name, &sources))
        return append_parts(w, &param, &sources, from, error);
    return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "networks of type '%s' have no parameter for %s",
                      w->content->architecture->name, name);
}

/* PREFIX [2, C] in a checkpoint of cleat is PREFIX_mean and PREFIX_var. */
static cleat_status append_tensor(writer *w, size_t i, cleat_error *error) {
    static const char *const rows[] = {"_mean", "_var"};
    const cleat_st_tensor *tensor = &w->content->tensors[i];
    const size_t size = strlen(tensor->name);
    const bool pair =
        tensor->rank == 2 && tensor->shape[0] == 2 && size > 7 && strcmp(tensor->name + size - 7, "running") == 0;
    origin from = {.tensor = i};
    cleat_status status = CLEAT_OK;
    if (!pair) return append_param(w, tensor->name, tensor->rank, tensor->shape, from, error);
    for (int row = 0; row < 2 && !status; ++row) {
        char name[CLEAT_NAME];
        snprintf(name, sizeof name, "%s%s", tensor->name, rows[row]);
        from.first = row * tensor->shape[1];
        status = append_param(w, name, 1, &tensor->shape[1], from, error);
    }
    return status;
}

/* Moves the values of a tensor to the layout of the file. */
static cleat_status turn(writer *w, const cleat_st_tensor *tensor, int rank, cleat_error *error) {
    const cleat_tensor param = param_of(tensor->name, tensor->rank, tensor->shape);
    if (cleat_torch_unit(&param, rank) == 1) return CLEAT_OK;
    float *turned = cleat_alloc((size_t)cleat_tensor_elements(&param), sizeof *turned);
    if (!turned) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %s", tensor->name);
    cleat_to_torch(&param, rank, w->values, turned);
    cleat_free(w->values);
    w->values = turned;
    return CLEAT_OK;
}

static cleat_status read_values(writer *w, const origin *from, cleat_error *error) {
    const cleat_st_tensor *tensor = &w->content->tensors[from->tensor];
    w->tensor = COUNTER;
    cleat_free(w->values);
    w->values = cleat_alloc((size_t)cleat_st_elements(tensor), sizeof *w->values);
    if (!w->values) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %s", tensor->name);
    cleat_status status = w->content->read(w->content->values, tensor, w->values, error);
    if (!status) status = turn(w, tensor, from->rank, error);
    for (int64_t i = 0; i < cleat_st_elements(tensor) && !status && from->added != 0; ++i) w->values[i] -= from->added;
    if (!status) w->tensor = from->tensor;
    return status;
}

static cleat_status data_of(void *user, size_t i, const void **data, cleat_error *error) {
    static const int64_t none = 0;
    writer *w = user;
    const origin *from = &w->origins[i];
    cleat_status status = CLEAT_OK;
    if (from->tensor != COUNTER && from->tensor != w->tensor) status = read_values(w, from, error);
    if (!status) *data = from->tensor == COUNTER ? (const void *)&none : w->values + from->first;
    return status;
}

cleat_status cleat_weights_write(const cleat_weights_content *content, const char *folder, size_t *count,
                                 cleat_error *error) {
    static const cleat_st_metadata metadata = {"format", "pt"};
    writer w = {.content = content, .tensor = COUNTER};
    const cleat_st_source source = {.data = data_of, .user = &w};
    char path[LONGEST_PATH];
    cleat_status status = cleat_path_join(folder, "model.safetensors", path, sizeof path, error);
    for (size_t i = 0; i < content->tensor_count && !status; ++i) status = append_tensor(&w, i, error);
    if (!status) status = cleat_safetensors_write_from(path, w.tensors, w.count, &source, &metadata, 1, NULL, error);
    if (!status && count) *count = w.count;
    for (size_t i = 0; i < w.count; ++i) cleat_free((void *)w.tensors[i].name);
    cleat_free(w.tensors);
    cleat_free(w.origins);
    cleat_free(w.values);
    return status;
}

/* A setting's text as JSON: a number, true, false, null, or a string; NULL: no memory. */
static cJSON *json_of(const char *text) {
    cJSON *value = cJSON_Parse(text);
    if (cJSON_IsNumber(value) || cJSON_IsBool(value) || cJSON_IsNull(value)) return value;
    cJSON_Delete(value);
    return cJSON_CreateString(text);
}

static cleat_status add_row(const cleat_weights_content *content, const cleat_config_row *row, cJSON *config,
                            cleat_error *error) {
    char text[LONGEST_VALUE];
    if (row->only ? strcmp(row->only, "null") == 0 : !row->setting) return CLEAT_OK;
    cleat_status status = row->only ? CLEAT_OK : content->get(content->user, row->setting, text, sizeof text, error);
    if (status) return status;
    cJSON *value = row->only ? cJSON_Parse(row->only) : json_of(text);
    if (value && cJSON_AddItemToObject(config, row->key, value)) return CLEAT_OK;
    cJSON_Delete(value);
    return cleat_fail(error, CLEAT_ERR_MEMORY, "config.json: out of memory");
}

static bool add_labels(const cleat_weights_content *content, cJSON *config) {
    if (!content->label_count) return true;
    cJSON *names = cJSON_AddObjectToObject(config, "id2label");
    cJSON *ids = names ? cJSON_AddObjectToObject(config, "label2id") : NULL;
    for (size_t i = 0; i < content->label_count && ids; ++i) {
        char number[24];
        snprintf(number, sizeof number, "%zu", i);
        if (!cJSON_AddStringToObject(names, number, content->labels[i]) ||
            !cJSON_AddNumberToObject(ids, content->labels[i], (double)i))
            return false;
    }
    return ids;
}

cleat_status cleat_weights_write_config(const cleat_weights_content *content, const char *folder, cleat_error *error) {
    const cleat_architecture *architecture = content->architecture;
    cJSON *config = cJSON_CreateObject();
    cleat_status status = CLEAT_OK;
    for (const cleat_config_row *row = architecture->config; row && row->key && !status; ++row)
        status = add_row(content, row, config, error);
    if (!status &&
        !(add_labels(content, config) && (!architecture->describe || architecture->describe(content->model, config))))
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s/config.json: out of memory", folder);
    if (!status) status = cleat_json_write_file(folder, "config.json", config, error);
    cJSON_Delete(config);
    return status;
}

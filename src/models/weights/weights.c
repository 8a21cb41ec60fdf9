/* The files of a published checkpoint: config.json, one safetensors file or shards, read tensor by tensor. */
#include "weights/weights.h"

#include "core/files.h"
#include "core/half.h"
#include "core/memory.h"
#include "core/name_table.h"
#include "weights/gguf_network.h"
#include "json/member.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SHARDS = 1024, LONGEST_PATH = 1024, LONGEST_CONFIG = 64 << 20, CHUNK = 65536 };

static const char weights_name[] = "model.safetensors", index_name[] = "model.safetensors.index.json";

typedef struct entry {
    const cleat_st_tensor *tensor;
    size_t shard; /* or the tensor's number in the GGUF file */
} entry;

struct cleat_weights {
    char path[LONGEST_PATH], folder[LONGEST_PATH];
    cJSON *config;
    cleat_gguf_network gguf; /* instead of shards */
    cleat_safetensors **shards;
    size_t shard_count, shard_capacity;
    entry *entries; /* [count] all tensors, sorted by name */
    size_t count, capacity;
};

/* --- JSON files ----------------------------------------------------------------------------------------------- */

/* Reads a JSON object; the caller deletes it. */
static cleat_status read_json(const char *path, cJSON **object, cleat_error *error) {
    char *text;
    size_t size;
    cleat_status status = cleat_file_read_text(path, &text, &size, error);
    if (status) return status;
    cJSON *made = size <= LONGEST_CONFIG ? cJSON_ParseWithLength(text, size) : NULL;
    cleat_free(text);
    if (!cJSON_IsObject(made)) {
        cJSON_Delete(made);
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: is not a JSON object; is the file complete?", path);
    }
    *object = made;
    return CLEAT_OK;
}

cleat_status cleat_weights_read_json(const cleat_weights *weights, const char *name, cJSON **object,
                                     cleat_error *error) {
    char path[LONGEST_PATH];
    cleat_status status = cleat_path_join(weights->folder, name, path, sizeof path, error);
    if (status) return status;
    if (cleat_file_exists(path)) return read_json(path, object, error);
    *object = NULL;
    return CLEAT_OK;
}

/* --- tensors -------------------------------------------------------------------------------------------------- */

static int compare_entries(const void *a, const void *b) {
    return strcmp(((const entry *)a)->tensor->name, ((const entry *)b)->tensor->name);
}

static cleat_status open_shard(cleat_weights *weights, const char *name, cleat_error *error) {
    char path[LONGEST_PATH];
    cleat_status status = cleat_path_join(weights->folder, name, path, sizeof path, error);
    if (!status) status = cleat_grow(&weights->shards, weights->shard_count, &weights->shard_capacity, error);
    cleat_safetensors *shard = NULL;
    if (!status) status = cleat_safetensors_open_headers(path, &shard, error);
    if (status) return status;
    const size_t number = weights->shard_count++;
    weights->shards[number] = shard;
    for (size_t i = 0; i < cleat_safetensors_count(shard) && !status; ++i) {
        status = cleat_grow(&weights->entries, weights->count, &weights->capacity, error);
        if (!status)
            weights->entries[weights->count++] = (entry){.tensor = cleat_safetensors_at(shard, i), .shard = number};
    }
    return status;
}

static cleat_status sort_entries(cleat_weights *weights, cleat_error *error) {
    if (weights->count) qsort(weights->entries, weights->count, sizeof *weights->entries, compare_entries);
    for (size_t i = 1; i < weights->count; ++i)
        if (compare_entries(&weights->entries[i - 1], &weights->entries[i]) == 0)
            return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: two shards contain the tensor '%.100s'", weights->path,
                              weights->entries[i].tensor->name);
    return CLEAT_OK;
}

/* --- shards --------------------------------------------------------------------------------------------------- */

/* The name of a shard is that of a file in the same folder. */
static bool is_file_name(const cJSON *name) {
    return cJSON_IsString(name) && *name->valuestring && !strchr(name->valuestring, '/') &&
           strlen(name->valuestring) < 256 && name->valuestring[0] != '.';
}

static cleat_status open_listed(cleat_weights *weights, const char *index, const cJSON *map, cleat_error *error) {
    cleat_name_list names = {0};
    const cJSON *item;
    cleat_status status = CLEAT_OK;
    cJSON_ArrayForEach(item, map) {
        if (!is_file_name(item)) {
            status = cleat_fail(error, CLEAT_ERR_FORMAT, "%s: '%.100s' is not in a file of this folder", index,
                                item->string ? item->string : "");
            break;
        }
        if (cleat_name_list_find(&names, item->valuestring) >= 0) continue;
        if (names.count == MAX_SHARDS)
            status = cleat_fail(error, CLEAT_ERR_FORMAT, "%s: lists more than %d shards", index, MAX_SHARDS);
        if (!status) status = cleat_name_list_add(&names, item->valuestring, error);
        if (status) break;
    }
    for (size_t i = 0; i < names.count && !status; ++i) {
        status = open_shard(weights, names.names[i], error);
        if (status == CLEAT_ERR_NOT_FOUND) status = cleat_fail_in(error, status, "%s", index);
    }
    cleat_name_list_free(&names);
    return status;
}

static cleat_status check_index(const cleat_weights *weights, const char *index, const cJSON *map, cleat_error *error) {
    const cJSON *item;
    cleat_name_table listed = {0};
    cleat_status status = CLEAT_OK;
    uint32_t at;
    cJSON_ArrayForEach(item, map) {
        if (!cleat_weights_find(weights, item->string))
            status = cleat_fail(error, CLEAT_ERR_FORMAT, "%s: tensor '%.100s' is not in %.100s; copy the shards again",
                                index, item->string, item->valuestring);
        else if (!cleat_name_table_find(&listed, item->string, &at))
            status = cleat_name_table_add(&listed, item->string, 0, error);
        if (status) break;
    }
    for (size_t i = 0; i < weights->count && !status; ++i)
        if (!cleat_name_table_find(&listed, weights->entries[i].tensor->name, &at))
            status = cleat_fail(error, CLEAT_ERR_FORMAT,
                                "%s: does not list the tensor '%.100s' of a shard; is the index of another checkpoint?",
                                index, weights->entries[i].tensor->name);
    cleat_name_table_free(&listed);
    return status;
}

static cleat_status open_index(cleat_weights *weights, const char *index, cleat_error *error) {
    cJSON *object = NULL;
    cleat_status status = read_json(index, &object, error);
    const cJSON *map = object ? cJSON_GetObjectItemCaseSensitive(object, "weight_map") : NULL;
    if (!status && (!cJSON_IsObject(map) || !map->child))
        status = cleat_fail(error, CLEAT_ERR_FORMAT, "%s: has no weight_map that lists tensors", index);
    if (!status) status = open_listed(weights, index, map, error);
    if (!status) status = sort_entries(weights, error);
    if (!status) status = check_index(weights, index, map, error);
    cJSON_Delete(object);
    return status;
}

static bool is_pickled(const char *name) {
    return cleat_ends_in(name, ".bin .pth .pt .ckpt");
}

static cleat_status refuse_pickled(const char *path, cleat_error *error) {
    return cleat_fail(error, CLEAT_ERR_FORMAT,
                      "%s: is a pickled file, which could run arbitrary code when opened; convert it in Python:\n"
                      "  import torch; from safetensors.torch import save_file\n"
                      "  save_file({k: v.contiguous().clone() for k, v in torch.load('%s', map_location='cpu', "
                      "weights_only=True).items()}, 'model.safetensors')",
                      path, path);
}

static bool is_gguf(const char *name) {
    return cleat_ends_in(name, ".gguf");
}

static cleat_status refuse_folder(const cleat_weights *weights, cleat_error *error) {
    cleat_name_list listing = {0};
    char path[LONGEST_PATH];
    cleat_status status = cleat_listing_read(weights->folder, is_pickled, &listing, error);
    if (!status && listing.count > 0) {
        status = cleat_path_join(weights->folder, listing.names[0], path, sizeof path, error);
        if (!status) status = refuse_pickled(path, error);
    } else if (!status) {
        status = cleat_listing_read(weights->folder, is_gguf, &listing, error);
        const bool adapters =
            cleat_path_join(weights->folder, "adapter_config.json", path, sizeof path, NULL) == CLEAT_OK &&
            cleat_file_exists(path);
        const char *hint = listing.count ? "; name its file of weights: "
                           : adapters    ? "; it has adapters of PEFT: name the network into which they are merged "
                                           "(cleat export --format hf, or merge_and_unload of PEFT)"
                                         : "";
        if (!status)
            status = cleat_fail(error, CLEAT_ERR_NOT_FOUND, "%s: has neither %s nor %s%s%.200s", weights->folder,
                                weights_name, index_name, hint, listing.count ? listing.names[0] : "");
    }
    cleat_name_list_free(&listing);
    return status;
}

static cleat_status open_folder(cleat_weights *weights, cleat_error *error) {
    char path[LONGEST_PATH];
    cleat_status status = cleat_path_join(weights->folder, weights_name, path, sizeof path, error);
    if (status) return status;
    if (cleat_file_exists(path)) {
        status = open_shard(weights, weights_name, error);
        return status ? status : sort_entries(weights, error);
    }
    status = cleat_path_join(weights->folder, index_name, path, sizeof path, error);
    if (status) return status;
    return cleat_file_exists(path) ? open_index(weights, path, error) : refuse_folder(weights, error);
}

/* A GGUF file has what a folder has; its own path stands for the folder, since files beside it are not its own. */
static cleat_status open_gguf(cleat_weights *weights, cleat_error *error) {
    snprintf(weights->folder, sizeof weights->folder, "%s", weights->path);
    cleat_status status = cleat_gguf_network_open(weights->path, &weights->gguf, error);
    for (size_t i = 0; !status && i < cleat_gguf_count(weights->gguf.file); ++i) {
        if (strcmp(weights->gguf.tensors[i].name, "rope_freqs.weight") == 0) continue; /* rope_scaling of the config */
        status = cleat_grow(&weights->entries, weights->count, &weights->capacity, error);
        if (!status) weights->entries[weights->count++] = (entry){.tensor = &weights->gguf.tensors[i], .shard = i};
    }
    return status ? status : sort_entries(weights, error);
}

static cleat_status open_file(cleat_weights *weights, const char *name, cleat_error *error) {
    if (is_pickled(name)) return refuse_pickled(weights->path, error);
    cleat_status status = open_shard(weights, name, error);
    return status ? status : sort_entries(weights, error);
}

static cleat_status create(const char *path, cleat_weights **weights, cleat_error *error) {
    if (strlen(path) >= LONGEST_PATH - sizeof index_name)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "the path of the weights is longer than %d bytes: %.100s...",
                          LONGEST_PATH - (int)sizeof index_name, path);
    cleat_weights *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory reading it", path);
    snprintf(made->path, sizeof made->path, "%s", path);
    *weights = made;
    return CLEAT_OK;
}

/* Whether `path` may be a model of the Hugging Face hub: NAME or OWNER/NAME, not a file. */
static bool is_hub_name(const char *path) {
    static const char characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    const size_t first = strspn(path, characters), second = path[first] ? strspn(path + first + 1, characters) : 0;
    const char *ending = cleat_name_ending(path);
    if (!first || path[0] == '.' || strcmp(ending, ".safetensors") == 0 || strcmp(ending, ".json") == 0 ||
        is_gguf(path))
        return false;
    return !path[first] || (path[first] == '/' && second && !path[first + 1 + second]);
}

static cleat_status not_found(const char *path, cleat_error *error) {
    char download[1200] = "";
    if (is_hub_name(path))
        snprintf(
            download, sizeof download,
            "cleat downloads nothing: for a model of the Hugging Face hub, run `hf download %.99s --local-dir %.99s` "
            "(of pip install huggingface_hub; in older releases huggingface-cli download), or `git clone "
            "https://huggingface.co/%.99s %.99s` with git-lfs, and repeat this command; or ",
            path, path, path, path);
    return cleat_fail(error, CLEAT_ERR_NOT_FOUND,
                      "%s: no such folder or file of weights; %scorrect the path, or restore them: a resumed run also "
                      "reads them",
                      path, download);
}

static cleat_status open_any(const char *path, bool weightless, cleat_weights **weights, cleat_error *error) {
    cleat_weights *made = NULL;
    cleat_status status = create(path, &made, error);
    if (status) return status;
    if (cleat_folder_exists(path)) {
        snprintf(made->folder, sizeof made->folder, "%s", path);
        status = cleat_weights_read_json(made, "config.json", &made->config, error);
        if (!status) status = open_folder(made, error);
        if (status == CLEAT_ERR_NOT_FOUND && weightless && made->config) status = CLEAT_OK;
    } else if (cleat_file_exists(path) && is_gguf(path)) {
        status = open_gguf(made, error);
    } else if (cleat_file_exists(path)) {
        const char *name = cleat_path_split(path, made->folder, sizeof made->folder);
        status = strcmp(cleat_name_ending(name), ".json") == 0
                     ? cleat_fail(error, CLEAT_ERR_FORMAT,
                                  "%s: not a file of weights; use its folder, or a .safetensors file", path)
                     : cleat_weights_read_json(made, "config.json", &made->config, error);
        if (!status) status = open_file(made, name, error);
    } else {
        status = not_found(path, error);
    }
    if (status) {
        cleat_weights_close(made);
        return status;
    }
    *weights = made;
    return CLEAT_OK;
}

cleat_status cleat_weights_open(const char *path, cleat_weights **weights, cleat_error *error) {
    return open_any(path, false, weights, error);
}

cleat_status cleat_weights_open_config(const char *path, cleat_weights **weights, cleat_error *error) {
    return open_any(path, true, weights, error);
}

cleat_status cleat_weights_open_file(const char *folder, const char *name, cleat_weights **weights,
                                     cleat_error *error) {
    cleat_weights *made = NULL;
    cleat_status status = create(folder, &made, error);
    if (status) return status;
    snprintf(made->folder, sizeof made->folder, "%s", folder);
    status = open_file(made, name, error);
    if (status) {
        cleat_weights_close(made);
        return status;
    }
    *weights = made;
    return CLEAT_OK;
}

void cleat_weights_close(cleat_weights *weights) {
    if (!weights) return;
    for (size_t i = 0; i < weights->shard_count; ++i) cleat_safetensors_close(weights->shards[i]);
    cleat_free(weights->shards);
    cleat_free(weights->entries);
    cJSON_Delete(weights->config);
    cleat_gguf_network_close(&weights->gguf);
    cleat_free(weights);
}

const char *cleat_weights_path(const cleat_weights *weights) {
    return weights->path;
}

const char *cleat_weights_folder(const cleat_weights *weights) {
    return weights->folder;
}

size_t cleat_weights_count(const cleat_weights *weights) {
    return weights->count;
}

const cleat_st_tensor *cleat_weights_at(const cleat_weights *weights, size_t i) {
    return i < weights->count ? weights->entries[i].tensor : NULL;
}

static const entry *find_entry(const cleat_weights *weights, const char *name) {
    size_t low = 0, high = weights->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(name, weights->entries[middle].tensor->name);
        if (order == 0) return &weights->entries[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const cleat_st_tensor *cleat_weights_find(const cleat_weights *weights, const char *name) {
    const entry *found = find_entry(weights, name);
    return found ? found->tensor : NULL;
}

size_t cleat_weights_index(const cleat_weights *weights, const cleat_st_tensor *tensor) {
    return (size_t)(find_entry(weights, tensor->name) - weights->entries);
}

const char *cleat_weights_metadata(const cleat_weights *weights, const char *key) {
    return weights->shard_count ? cleat_safetensors_metadata(weights->shards[0], key) : NULL;
}

const cleat_gguf *cleat_weights_gguf(const cleat_weights *weights) {
    return weights->gguf.file;
}

/* The bytes of a tensor as stored, and the name of its type. */
static size_t stored_as(const cleat_weights *weights, const entry *e, const char **type) {
    const cleat_gguf_tensor *tensor = weights->gguf.file ? cleat_gguf_at(weights->gguf.file, e->shard) : NULL;
    *type = tensor ? cleat_gguf_type_name(tensor->type) : cleat_st_dtype_name(e->tensor->dtype);
    return tensor ? tensor->bytes : cleat_st_bytes(e->tensor);
}

int64_t cleat_weights_bytes(const cleat_weights *weights) {
    const char *type;
    int64_t bytes = 0;
    for (size_t i = 0; i < weights->count; ++i) bytes += (int64_t)stored_as(weights, &weights->entries[i], &type);
    return bytes;
}

const char *cleat_weights_type(const cleat_weights *weights) {
    struct {
        const char *name;
        size_t bytes;
    } types[CLEAT_ST_DTYPES + CLEAT_GGUF_TYPES] = {{.name = "F32"}};
    size_t count = 1, most = 0;
    for (size_t i = 0; i < weights->count; ++i) {
        const char *name;
        const size_t bytes = stored_as(weights, &weights->entries[i], &name);
        size_t k = 0;
        while (k < count && strcmp(types[k].name, name) != 0) ++k;
        count += k == count;
        types[k].name = name;
        types[k].bytes += bytes;
        if (types[k].bytes > types[most].bytes) most = k;
    }
    return types[most].name;
}

bool cleat_weights_blocks(const cleat_weights *weights, const cleat_st_tensor *tensor, cleat_weight_blocks *blocks) {
    const size_t i = weights->gguf.file ? find_entry(weights, tensor->name)->shard : 0;
    const cleat_gguf_tensor *stored = weights->gguf.file ? cleat_gguf_at(weights->gguf.file, i) : NULL;
    if (!stored || stored->rank != 2 || weights->gguf.views[i].change == CLEAT_GGUF_PLUS_ONE) return false;
    *blocks = (cleat_weight_blocks){.type = stored->type,
                                    .rows = stored->shape[0],
                                    .columns = stored->shape[1],
                                    .row_bytes = stored->bytes / (size_t)stored->shape[0],
                                    .is_transposed = weights->gguf.views[i].change == CLEAT_GGUF_TRANSPOSED};
    return true;
}

/* --- values --------------------------------------------------------------------------------------------------- */

/* Converts `count` elements as stored to f32. */
static void convert(cleat_st_dtype dtype, const void *stored, size_t count, float *values) {
    switch (dtype) {
    case CLEAT_ST_F16:
        cleat_from_f16(stored, count, values);
        return;
    case CLEAT_ST_BF16:
        cleat_from_bf16(stored, count, values);
        return;
#define CONVERT(DTYPE, TYPE)                                                                                           \
    case DTYPE:                                                                                                        \
        for (size_t i = 0; i < count; ++i) values[i] = (float)((const TYPE *)stored)[i];                               \
        return
        CONVERT(CLEAT_ST_F64, double);
        CONVERT(CLEAT_ST_F32, float);
        CONVERT(CLEAT_ST_I64, int64_t);
        CONVERT(CLEAT_ST_I32, int32_t);
        CONVERT(CLEAT_ST_I16, int16_t);
        CONVERT(CLEAT_ST_I8, int8_t);
        CONVERT(CLEAT_ST_U64, uint64_t);
        CONVERT(CLEAT_ST_U32, uint32_t);
        CONVERT(CLEAT_ST_U16, uint16_t);
        CONVERT(CLEAT_ST_U8, uint8_t);
        CONVERT(CLEAT_ST_BOOL, uint8_t);
#undef CONVERT
    case CLEAT_ST_DTYPES:
        return;
    }
}

cleat_status cleat_weights_read_part(const cleat_weights *weights, const cleat_st_tensor *tensor, int64_t first,
                                     int64_t count, float *values, cleat_error *error) {
    const size_t number = find_entry(weights, tensor->name)->shard;
    if (weights->gguf.file) return cleat_gguf_network_read(&weights->gguf, number, first, count, values, error);
    const cleat_safetensors *file = weights->shards[number];
    if (tensor->dtype == CLEAT_ST_F32) return cleat_safetensors_read(file, tensor, first, count, values, error);
    double chunk[CHUNK / sizeof(double)]; /* aligned for every dtype */
    const int64_t room = (int64_t)(CHUNK / cleat_st_dtype_size(tensor->dtype));
    for (int64_t i = 0; i < count; i += room) {
        const int64_t part = count - i < room ? count - i : room;
        cleat_status status = cleat_safetensors_read(file, tensor, first + i, part, chunk, error);
        if (status) return status;
        convert(tensor->dtype, chunk, (size_t)part, values + i);
    }
    return CLEAT_OK;
}

cleat_status cleat_weights_read(const cleat_weights *weights, const cleat_st_tensor *tensor, float *values,
                                cleat_error *error) {
    return cleat_weights_read_part(weights, tensor, 0, cleat_st_elements(tensor), values, error);
}

cleat_status cleat_weights_read_blocks(const cleat_weights *weights, const cleat_st_tensor *tensor, int64_t row,
                                       int64_t rows, void *bytes, cleat_error *error) {
    const size_t i = find_entry(weights, tensor->name)->shard;
    const cleat_gguf_tensor *stored = cleat_gguf_at(weights->gguf.file, i);
    const size_t size = stored->bytes / (size_t)stored->shape[0];
    const bool is_paired = weights->gguf.views[i].change == CLEAT_GGUF_PAIRED;
    cleat_status status = CLEAT_OK;
    if (!is_paired)
        return cleat_gguf_read(weights->gguf.file, stored, (size_t)row * size, (size_t)rows * size, bytes, error);
    for (int64_t k = 0; k < rows && !status; ++k) {
        const int64_t at = cleat_gguf_paired_row(row + k, weights->gguf.views[i].width);
        status = cleat_gguf_read(weights->gguf.file, stored, (size_t)at * size, size, (char *)bytes + (size_t)k * size,
                                 error);
    }
    return status;
}

/* --- config.json ---------------------------------------------------------------------------------------------- */

const cJSON *cleat_weights_config(const cleat_weights *weights) {
    return weights->gguf.config ? weights->gguf.config : weights->config;
}

const char *cleat_weights_config_text(const cleat_weights *weights, const char *key) {
    const cJSON *item = cleat_json_member(cleat_weights_config(weights), key);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

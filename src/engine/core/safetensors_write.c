/* Writing safetensors files: tensor by tensor, or encoded in memory. */
#include "core/safetensors.h"

#include "core/blocks.h"
#include "core/files.h"
#include "core/json.h"
#include "core/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8, ALIGNMENT = 64 };

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names must be unique, and none may be __metadata__. */
static cleat_status check_names(const cleat_st_tensor *tensors, size_t count, cleat_error *error) {
    const char **names = cleat_alloc(count, sizeof *names);
    cleat_status status = CLEAT_OK;
    if (!names) return cleat_fail(error, CLEAT_ERR_MEMORY, "out of memory writing tensors");
    for (size_t i = 0; i < count; ++i) names[i] = tensors[i].name;
    qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 0; i < count && !status; ++i) {
        if (strcmp(names[i], "__metadata__") == 0)
            status = cleat_fail(error, CLEAT_ERR_ARGUMENT, "a tensor cannot have the name __metadata__");
        else if (i > 0 && strcmp(names[i - 1], names[i]) == 0)
            status = cleat_fail(error, CLEAT_ERR_ARGUMENT, "two tensors have the name '%.100s'", names[i]);
    }
    cleat_free(names);
    return status;
}

static void add_pair(cleat_string *header, const char *key, const char *value) {
    if (header->size && header->data[header->size - 1] != '{') cleat_string_add(header, ",");
    cleat_json_add_string(header, key);
    cleat_string_add(header, ":");
    cleat_json_add_string(header, value);
}

/* Adds the metadata and the blocks of tensors; nothing if there are none. */
static void add_metadata(cleat_string *header, const cleat_st_metadata *metadata, size_t metadata_count,
                         const cleat_st_tensor *tensors, size_t count) {
    char text[64];
    size_t blocks = 0;
    for (size_t i = 0; i < count; ++i) blocks += tensors[i].blocks != CLEAT_F32;
    if (metadata_count + blocks == 0) return;
    cleat_string_add(header, "\"__metadata__\":{");
    for (size_t i = 0; i < metadata_count; ++i) add_pair(header, metadata[i].key, metadata[i].value);
    for (size_t i = 0; i < count; ++i) {
        if (!tensors[i].blocks) continue;
        snprintf(text, sizeof text, "%s %lld %lld", cleat_block_name(tensors[i].blocks), (long long)tensors[i].shape[0],
                 (long long)tensors[i].shape[1]);
        add_pair(header, tensors[i].name, text);
    }
    cleat_string_add(header, "}");
}

static void add_tensor(cleat_string *header, const cleat_st_tensor *tensor, size_t begin) {
    cleat_json_add_string(header, tensor->name);
    if (tensor->blocks)
        cleat_string_add(header, ":{\"dtype\":\"U8\",\"shape\":[%zu", cleat_st_bytes(tensor));
    else
        cleat_string_add(header, ":{\"dtype\":\"%s\",\"shape\":[", cleat_st_dtype_name(tensor->dtype));
    for (int i = 0; i < tensor->rank && !tensor->blocks; ++i)
        cleat_string_add(header, "%s%lld", i ? "," : "", (long long)tensor->shape[i]);
    cleat_string_add(header, "],\"data_offsets\":[%zu,%zu]}", begin, begin + cleat_st_bytes(tensor));
}

/* Writes the header and its length in front of it, padded with spaces so that the data start aligned. */
static void make_header(cleat_string *file, const cleat_st_tensor *tensors, size_t count,
                        const cleat_st_metadata *metadata, size_t metadata_count) {
    size_t begin = 0;
    cleat_string_add_bytes(file, "\0\0\0\0\0\0\0\0", LENGTH_BYTES);
    cleat_string_add(file, "{");
    add_metadata(file, metadata, metadata_count, tensors, count);
    for (size_t i = 0; i < count; ++i) {
        if (!file->failed && file->data[file->size - 1] != '{') cleat_string_add(file, ",");
        add_tensor(file, &tensors[i], begin);
        begin += cleat_st_bytes(&tensors[i]);
    }
    cleat_string_add(file, "}");
    while (file->size % ALIGNMENT && !file->failed) cleat_string_add(file, " ");
    if (file->failed) return;
    uint64_t length = file->size - LENGTH_BYTES;
    memcpy(file->data, &length, sizeof length);
}

cleat_status cleat_safetensors_encode(const cleat_st_tensor *tensors, size_t count, const cleat_st_metadata *metadata,
                                      size_t metadata_count, char **data, size_t *size, cleat_error *error) {
    cleat_string header = {0};
    cleat_status status = check_names(tensors, count, error);
    if (status) return status;
    make_header(&header, tensors, count, metadata, metadata_count);
    size_t total = header.size;
    for (size_t i = 0; i < count; ++i) total += cleat_st_bytes(&tensors[i]);
    char *bytes = header.failed ? NULL : cleat_alloc(total, 1);
    if (!bytes) {
        cleat_string_free(&header);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "out of memory for a file of %zu bytes", total);
    }
    memcpy(bytes, header.data, header.size);
    char *at = bytes + header.size;
    for (size_t i = 0; i < count; ++i) {
        size_t part = cleat_st_bytes(&tensors[i]);
        if (part) memcpy(at, tensors[i].data, part);
        at += part;
    }
    cleat_string_free(&header);
    *data = bytes;
    *size = total;
    return CLEAT_OK;
}

static cleat_status write_file(cleat_file_writer *file, const cleat_string *header, const cleat_st_tensor *tensors,
                               size_t count, const cleat_st_source *source, cleat_error *error) {
    cleat_status status = cleat_file_writer_add(file, header->data, header->size, error);
    for (size_t i = 0; i < count && !status; ++i) {
        const void *data = tensors[i].data;
        const size_t bytes = cleat_st_bytes(&tensors[i]);
        if (source && bytes) status = source->data(source->user, i, &data, error);
        if (!status && bytes) status = cleat_file_writer_add(file, data, bytes, error);
    }
    return status;
}

cleat_status cleat_safetensors_write_from(const char *path, const cleat_st_tensor *tensors, size_t count,
                                          const cleat_st_source *source, const cleat_st_metadata *metadata,
                                          size_t metadata_count, cleat_st_digest *written, cleat_error *error) {
    cleat_string header = {0};
    cleat_file_writer file;
    cleat_status status = check_names(tensors, count, error);
    if (status) return cleat_fail_in(error, status, "%s", path);
    make_header(&header, tensors, count, metadata, metadata_count);
    if (header.failed) status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory for its header", path);
    if (!status) status = cleat_file_writer_open(&file, path, written != NULL, error);
    if (!status) {
        status = write_file(&file, &header, tensors, count, source, error);
        status = cleat_file_writer_close(&file, status, written ? written->hash : NULL, error);
        if (!status && written) written->size = file.size;
    }
    cleat_string_free(&header);
    return status;
}

cleat_status cleat_safetensors_write(const char *path, const cleat_st_tensor *tensors, size_t count,
                                     const cleat_st_metadata *metadata, size_t metadata_count, cleat_error *error) {
    return cleat_safetensors_write_from(path, tensors, count, NULL, metadata, metadata_count, NULL, error);
}

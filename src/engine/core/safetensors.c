/* Reading safetensors files. The header is not trusted: its length is limited; every tensor must have a
 * supported dtype, a shape whose size in bytes does not overflow, and a range of exactly that size; together
 * the ranges must tile the data without gap or overlap. The file is read, as a whole or tensor by tensor, and not
 * memory-mapped, because a mapped file that shrinks kills the process. */
#include "core/safetensors.h"

#include "core/blocks.h"
#include "core/files.h"
#include "core/json_cursor.h"
#include "core/memory.h"
#include "platform/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors are little-endian; this machine is not"
#endif

enum { LENGTH_BYTES = 8, LONGEST_HEADER = 16 << 20 };

struct cleat_safetensors {
    char *path;
    char *owned;             /* the file's bytes if it was read from a path or adopted */
    const char *data;        /* the data section; not read if `on_disk` */
    size_t data_size;        /* bytes */
    size_t data_offset;      /* of the data section in the file */
    bool on_disk;            /* opened by cleat_safetensors_open_headers */
    int descriptor;          /* of the open file if `on_disk` */
    char *texts, *texts_end; /* decoded strings of the header, each with its zero */
    const char *metadata;    /* within texts: keys and values in turn; NULL if there are none */
    const char *metadata_end;
    cleat_st_tensor *tensors;        /* [count] in order of their offsets */
    void **copies;                   /* [count] aligned copies of misaligned tensors */
    const cleat_st_tensor **by_name; /* [count] the tensors, sorted by name */
    size_t count;
    /* values of blocks, as last read: a span of span_of from element span_first on */
    float *span;
    const cleat_st_tensor *span_of;
    int64_t span_first;
};

/* --- dtypes --------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    size_t size;
} dtypes[CLEAT_ST_DTYPES] = {
    [CLEAT_ST_F64] = {"F64", 8},   [CLEAT_ST_F32] = {"F32", 4}, [CLEAT_ST_F16] = {"F16", 2},
    [CLEAT_ST_BF16] = {"BF16", 2}, [CLEAT_ST_I64] = {"I64", 8}, [CLEAT_ST_I32] = {"I32", 4},
    [CLEAT_ST_U32] = {"U32", 4},   [CLEAT_ST_U8] = {"U8", 1},   [CLEAT_ST_BOOL] = {"BOOL", 1},
    [CLEAT_ST_I8] = {"I8", 1},     [CLEAT_ST_I16] = {"I16", 2}, [CLEAT_ST_U16] = {"U16", 2},
    [CLEAT_ST_U64] = {"U64", 8},
};

size_t cleat_st_dtype_size(cleat_st_dtype dtype) {
    return dtypes[dtype].size;
}

const char *cleat_st_dtype_name(cleat_st_dtype dtype) {
    return dtypes[dtype].name;
}

int64_t cleat_st_elements(const cleat_st_tensor *tensor) {
    int64_t elements = 1;
    for (int i = 0; i < tensor->rank; ++i) elements *= tensor->shape[i];
    return elements;
}

size_t cleat_st_bytes(const cleat_st_tensor *tensor) {
    const int64_t elements = cleat_st_elements(tensor);
    if (tensor->blocks) return (size_t)cleat_block_bytes(tensor->blocks, elements);
    return (size_t)elements * dtypes[tensor->dtype].size;
}

/* --- the header ----------------------------------------------------------------------------------------------- */

static cleat_status malformed(const cleat_safetensors *file, cleat_error *error, const char *tensor, const char *what) {
    if (!tensor) return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: not a safetensors file: %s", file->path, what);
    return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: tensor '%.100s': %s", file->path, tensor, what);
}

static cleat_status no_memory(const cleat_safetensors *file, cleat_error *error) {
    return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory reading it", file->path);
}

static cleat_status not_json(const cleat_safetensors *file, cleat_error *error) {
    return malformed(file, error, NULL, "the header is not a JSON object");
}

/* A string, which the file keeps; NULL if none is next. */
static const char *read_text(cleat_safetensors *file, cleat_json_cursor *json) {
    const char *text = file->texts_end;
    char *end = cleat_json_read_text(json, file->texts_end);
    if (end) file->texts_end = end;
    return end ? text : NULL;
}

/* The name of the next member of an object; NULL after the last, and where the header is no JSON. */
static const char *read_name(cleat_safetensors *file, cleat_json_cursor *json, int64_t *members) {
    const char *name = cleat_json_next(json, '}', members) ? read_text(file, json) : NULL;
    json->failed |= name && !cleat_json_accept(json, ':');
    return json->failed ? NULL : name;
}

static bool read_dtype(cleat_safetensors *file, cleat_json_cursor *json, cleat_st_dtype *dtype) {
    const char *name = NULL;
    if (cleat_json_peek(json, '"'))
        name = read_text(file, json);
    else
        cleat_json_skip(json);
    for (int i = 0; name && i < CLEAT_ST_DTYPES; ++i)
        if (strcmp(name, dtypes[i].name) == 0) {
            *dtype = (cleat_st_dtype)i;
            return true;
        }
    return false;
}

/* Reads an array of at most `most` whole numbers. Returns how many it has, or one of these. */
enum { NO_ARRAY = -1, TOO_MANY = -2, NO_COUNT = -3 };

static int read_counts(cleat_json_cursor *json, int most, int64_t *counts) {
    const cleat_json_cursor start = *json;
    int64_t elements = 0;
    int reason = cleat_json_accept(json, '[') ? 0 : NO_ARRAY, n = 0;
    while (!reason && cleat_json_next(json, ']', &elements)) {
        if (n == most)
            reason = TOO_MANY;
        else if (!cleat_json_read_count(json, &counts[n++]))
            reason = NO_COUNT;
    }
    if (!reason) return n;
    *json = start;
    cleat_json_skip(json);
    return reason;
}

/* Checks that the size of the tensor in bytes does not overflow; a zero extent does not hide an overflow. */
static const char *complain_of_shape(const cleat_st_tensor *tensor) {
    int64_t product = (int64_t)dtypes[tensor->dtype].size;
    if (tensor->rank == NO_ARRAY) return "has no shape";
    if (tensor->rank == TOO_MANY) return "has more dimensions than supported";
    if (tensor->rank == NO_COUNT) return "has a dimension that is not a whole number";
    for (int i = 0; i < tensor->rank; ++i) {
        if (tensor->shape[i] == 0) continue;
        if (product > INT64_MAX / tensor->shape[i]) return "has a shape that is too large";
        product *= tensor->shape[i];
    }
    return NULL;
}

static cleat_status parse_tensor(cleat_safetensors *file, cleat_json_cursor *json, const char *name,
                                 cleat_st_tensor *tensor, cleat_error *error) {
    int64_t members = 0, range[2];
    int ends = 0;
    bool has_dtype = false;
    *tensor = (cleat_st_tensor){.name = name, .rank = NO_ARRAY};
    if (!cleat_json_accept(json, '{')) return malformed(file, error, name, "is not described by an object");
    for (const char *key; (key = read_name(file, json, &members));) {
        if (strcmp(key, "dtype") == 0)
            has_dtype = read_dtype(file, json, &tensor->dtype);
        else if (strcmp(key, "shape") == 0)
            tensor->rank = read_counts(json, CLEAT_ST_RANK, tensor->shape);
        else if (strcmp(key, "data_offsets") == 0)
            ends = read_counts(json, 2, range);
        else
            cleat_json_skip(json);
    }
    if (json->failed) return not_json(file, error);
    if (!has_dtype)
        return malformed(file, error, name,
                         "has no supported dtype (F64 F32 F16 BF16 I64 I32 I16 I8 U64 U32 U16 U8 BOOL)");
    const char *complaint = complain_of_shape(tensor);
    if (complaint) return malformed(file, error, name, complaint);
    if (ends != 2) return malformed(file, error, name, "has no data_offsets of two whole numbers");
    if (range[0] > range[1] || (uint64_t)range[1] > file->data_size)
        return malformed(file, error, name, "lies outside the file, which may be truncated");
    if ((size_t)(range[1] - range[0]) != cleat_st_bytes(tensor))
        return malformed(file, error, name, "has data_offsets that do not match its shape and dtype");
    tensor->offset = (size_t)range[0];
    return CLEAT_OK;
}

static cleat_status parse_metadata(cleat_safetensors *file, cleat_json_cursor *json, cleat_error *error) {
    int64_t members = 0;
    if (file->metadata) return malformed(file, error, NULL, "__metadata__ occurs twice");
    if (!cleat_json_accept(json, '{')) return malformed(file, error, NULL, "__metadata__ is not an object");
    file->metadata = file->texts_end;
    while (read_name(file, json, &members)) {
        if (!cleat_json_peek(json, '"'))
            return malformed(file, error, NULL, "__metadata__ contains values that are not strings");
        (void)read_text(file, json);
    }
    file->metadata_end = file->texts_end;
    return CLEAT_OK;
}

/* Gives a tensor of bytes whose blocks the metadata describe the shape that its values have. */
static cleat_status find_blocks(const cleat_safetensors *file, cleat_st_tensor *tensor, cleat_error *error) {
    const char *text =
        tensor->dtype == CLEAT_ST_U8 && tensor->rank == 1 ? cleat_safetensors_metadata(file, tensor->name) : NULL;
    char name[8];
    long long rows = 0, columns = 0;
    if (!text || sscanf(text, "%7[a-z0-9] %lld %lld", name, &rows, &columns) < 1) return CLEAT_OK;
    cleat_st_tensor made = *tensor;
    made.blocks = cleat_block_find(name);
    if (!made.blocks) return CLEAT_OK;
    made.dtype = CLEAT_ST_F32;
    made.rank = 2;
    made.shape[0] = rows;
    made.shape[1] = columns;
    if (rows < 1 || columns < 1 || rows > INT64_MAX / 4 / columns || columns % cleat_block_elements(made.blocks) != 0 ||
        (int64_t)cleat_st_bytes(&made) != tensor->shape[0])
        return malformed(file, error, tensor->name, "has blocks that do not match its size");
    *tensor = made;
    return CLEAT_OK;
}

/* --- order and names ------------------------------------------------------------------------------------------ */

static int compare_offsets(const void *left, const void *right) {
    const cleat_st_tensor *a = left, *b = right;
    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    const size_t a_bytes = cleat_st_bytes(a), b_bytes = cleat_st_bytes(b);
    if (a_bytes != b_bytes) return a_bytes < b_bytes ? -1 : 1; /* empty ones first */
    return strcmp(a->name, b->name);
}

static int compare_names(const void *a, const void *b) {
    return strcmp((*(const cleat_st_tensor *const *)a)->name, (*(const cleat_st_tensor *const *)b)->name);
}

static cleat_status check_tiling(const cleat_safetensors *file, cleat_error *error) {
    size_t end = 0;
    for (size_t i = 0; i < file->count; ++i) {
        const cleat_st_tensor *tensor = &file->tensors[i];
        if (tensor->offset != end)
            return malformed(file, error, tensor->name,
                             tensor->offset < end ? "overlaps another tensor" : "has a gap before it");
        end += cleat_st_bytes(tensor);
    }
    if (end != file->data_size) return malformed(file, error, NULL, "there are bytes after the last tensor");
    return CLEAT_OK;
}

static cleat_status sort_by_name(cleat_safetensors *file, cleat_error *error) {
    for (size_t i = 0; i < file->count; ++i) file->by_name[i] = &file->tensors[i];
    qsort(file->by_name, file->count, sizeof *file->by_name, compare_names);
    for (size_t i = 1; i < file->count; ++i)
        if (strcmp(file->by_name[i - 1]->name, file->by_name[i]->name) == 0)
            return malformed(file, error, file->by_name[i]->name, "occurs twice");
    return CLEAT_OK;
}

/* Points each tensor to its data, or to an aligned copy. */
static cleat_status place_data(cleat_safetensors *file, cleat_error *error) {
    for (size_t i = 0; i < file->count; ++i) {
        cleat_st_tensor *tensor = &file->tensors[i];
        size_t bytes = cleat_st_bytes(tensor);
        const char *data = file->data + tensor->offset;
        if (bytes == 0) continue;
        tensor->data = data;
        if (!tensor->blocks && (uintptr_t)data % dtypes[tensor->dtype].size == 0) continue;
        const size_t elements = (size_t)cleat_st_elements(tensor);
        file->copies[i] = tensor->blocks ? cleat_alloc(elements, sizeof(float)) : cleat_alloc(bytes, 1);
        if (!file->copies[i]) return no_memory(file, error);
        tensor->data = file->copies[i];
        if (tensor->blocks)
            cleat_blocks_values(tensor->blocks, data, (int64_t)elements, file->copies[i]);
        else
            memcpy(file->copies[i], data, bytes);
    }
    return CLEAT_OK;
}

/* --- files ---------------------------------------------------------------------------------------------------- */

/* Reads where the header and the data are. */
static cleat_status find_header(cleat_safetensors *file, const char *bytes, size_t size, cleat_json_cursor *json,
                                cleat_error *error) {
    uint64_t length;
    if (size < LENGTH_BYTES) return malformed(file, error, NULL, "the file is shorter than 8 bytes");
    memcpy(&length, bytes, LENGTH_BYTES);
    if (length > LONGEST_HEADER) return malformed(file, error, NULL, "the header would be longer than 16 MiB");
    if (length > size - LENGTH_BYTES) return malformed(file, error, NULL, "the file ends within its header");
    file->data = bytes + LENGTH_BYTES + length;
    file->data_offset = LENGTH_BYTES + (size_t)length;
    file->data_size = size - LENGTH_BYTES - (size_t)length;
    *json = (cleat_json_cursor){.at = bytes + LENGTH_BYTES, .end = file->data};
    return CLEAT_OK;
}

static cleat_status parse_members(cleat_safetensors *file, cleat_json_cursor *json, cleat_error *error) {
    size_t capacity = 0;
    int64_t members = 0;
    if (!cleat_json_accept(json, '{')) return not_json(file, error);
    for (const char *name; (name = read_name(file, json, &members));) {
        cleat_status status;
        if (strcmp(name, "__metadata__") == 0) {
            status = parse_metadata(file, json, error);
        } else {
            status = cleat_grow(&file->tensors, file->count, &capacity, error);
            if (!status) status = parse_tensor(file, json, name, &file->tensors[file->count], error);
            if (!status) ++file->count;
        }
        if (status) return status;
    }
    if (json->failed) return not_json(file, error);
    for (; json->at < json->end; ++json->at)
        if (*json->at != ' ') return malformed(file, error, NULL, "the header contains more than JSON");
    return CLEAT_OK;
}

/* `bytes`: the file, or its length and header alone. */
static cleat_status parse_file(cleat_safetensors *file, const char *bytes, size_t size, cleat_error *error) {
    cleat_json_cursor json;
    cleat_status status = find_header(file, bytes, size, &json, error);
    if (status) return status;
    file->texts = file->texts_end = cleat_alloc(file->data_offset, 1);
    if (!file->texts) return no_memory(file, error);
    status = parse_members(file, &json, error);
    if (status) return status;
    file->copies = cleat_alloc(file->count, sizeof *file->copies);
    file->by_name = cleat_alloc(file->count, sizeof *file->by_name);
    if (!file->copies || !file->by_name) return no_memory(file, error);
    for (size_t i = 0; file->metadata && i < file->count && !status; ++i)
        status = find_blocks(file, &file->tensors[i], error);
    if (!status && file->count) qsort(file->tensors, file->count, sizeof *file->tensors, compare_offsets);
    if (!status) status = check_tiling(file, error);
    if (!status) status = sort_by_name(file, error);
    if (!status && !file->on_disk) status = place_data(file, error);
    return status;
}

cleat_status cleat_safetensors_parse(const char *name, const void *data, size_t size, cleat_safetensors **file,
                                     cleat_error *error) {
    cleat_safetensors *made = cleat_alloc(1, sizeof *made);
    char *path = cleat_strdup(name);
    if (!made || !path) {
        cleat_free(made);
        cleat_free(path);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory reading it", name);
    }
    made->path = path;
    cleat_status status = parse_file(made, data, size, error);
    if (status) {
        cleat_safetensors_close(made);
        return status;
    }
    *file = made;
    return CLEAT_OK;
}

cleat_status cleat_safetensors_adopt(const char *name, char *bytes, size_t size, cleat_safetensors **file,
                                     cleat_error *error) {
    cleat_status status = cleat_safetensors_parse(name, bytes, size, file, error);
    if (!status) (*file)->owned = bytes;
    return status;
}

cleat_status cleat_safetensors_open(const char *path, cleat_safetensors **file, cleat_error *error) {
    char *bytes;
    size_t size;
    cleat_status status = cleat_file_read(path, &bytes, &size, error);
    if (status) return status;
    status = cleat_safetensors_adopt(path, bytes, size, file, error);
    if (status) cleat_free(bytes);
    return status;
}

/* Fills `bytes` [size] from `offset` of the file; a file that became shorter is an error. */
static cleat_status read_at(const cleat_safetensors *file, size_t offset, char *bytes, size_t size,
                            cleat_error *error) {
    while (size > 0) {
        const ssize_t got = pread(file->descriptor, bytes, size, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return cleat_fail(error, CLEAT_ERR_IO, "%s: cannot be read: %s", file->path, strerror(errno));
        if (got == 0) return malformed(file, error, NULL, "the file ended while it was read");
        offset += (size_t)got;
        bytes += got;
        size -= (size_t)got;
    }
    return CLEAT_OK;
}

/* Reads the length and the header, and not the data. */
static cleat_status read_header(cleat_safetensors *file, cleat_error *error) {
    struct stat about;
    uint64_t length = 0;
    if (fstat(file->descriptor, &about) != 0 || !S_ISREG(about.st_mode))
        return cleat_fail(error, CLEAT_ERR_IO, "%s: is not a file that can be read", file->path);
    const size_t size = (size_t)about.st_size;
    if (size < LENGTH_BYTES) return malformed(file, error, NULL, "the file is shorter than 8 bytes");
    cleat_status status = read_at(file, 0, (char *)&length, LENGTH_BYTES, error);
    if (status) return status;
    const size_t most = size - LENGTH_BYTES < LONGEST_HEADER ? size - LENGTH_BYTES : LONGEST_HEADER;
    const size_t header = length < most ? (size_t)length : most; /* find_header reports one that is too long */
    file->owned = cleat_alloc(LENGTH_BYTES + header + 1, 1);
    if (!file->owned) return no_memory(file, error);
    status = read_at(file, 0, file->owned, LENGTH_BYTES + header, error);
    return status ? status : parse_file(file, file->owned, size, error);
}

cleat_status cleat_safetensors_open_headers(const char *path, cleat_safetensors **file, cleat_error *error) {
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return cleat_fail(error, errno == ENOENT ? CLEAT_ERR_NOT_FOUND : CLEAT_ERR_IO, "%s: %s", path, strerror(errno));
    cleat_safetensors *made = cleat_alloc(1, sizeof *made);
    char *copy = cleat_strdup(path);
    if (!made || !copy) {
        close(descriptor);
        cleat_free(made);
        cleat_free(copy);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory reading it", path);
    }
    *made = (cleat_safetensors){.path = copy, .on_disk = true, .descriptor = descriptor};
    cleat_status status = read_header(made, error);
    if (status) {
        cleat_safetensors_close(made);
        return status;
    }
    *file = made;
    return CLEAT_OK;
}

/* Copies bytes of a tensor as they are stored. */
static cleat_status read_stored(const cleat_safetensors *file, const cleat_st_tensor *tensor, size_t first, size_t size,
                                void *bytes, cleat_error *error) {
    const size_t offset = tensor->offset + first;
    if (file->on_disk) return read_at(file, file->data_offset + offset, bytes, size, error);
    if (size > 0) memcpy(bytes, file->data + offset, size);
    return CLEAT_OK;
}

/* Reads the values of blocks around element `at` into file->span. */
static cleat_status read_span(cleat_safetensors *file, const cleat_st_tensor *tensor, int64_t at, cleat_error *error) {
    const int64_t elements = cleat_st_elements(tensor), first = at / CLEAT_BLOCK_SPAN * CLEAT_BLOCK_SPAN;
    const int64_t count = elements - first < CLEAT_BLOCK_SPAN ? elements - first : CLEAT_BLOCK_SPAN;
    if (file->span && file->span_of == tensor && file->span_first == first) return CLEAT_OK;
    cleat_block_piece pieces[CLEAT_BLOCK_PIECES];
    const int n = cleat_block_pieces(tensor->blocks, elements, first, count, pieces);
    if (!file->span) file->span = cleat_alloc(CLEAT_BLOCK_SPAN, sizeof *file->span);
    char *bytes = cleat_alloc((size_t)cleat_block_bytes(tensor->blocks, count), 1), *to = bytes;
    if (!bytes || !file->span) {
        cleat_free(bytes);
        return no_memory(file, error);
    }
    cleat_status status = CLEAT_OK;
    file->span_of = NULL;
    for (int i = 0; i < n && !status; to += pieces[i++].bytes)
        status = read_stored(file, tensor, (size_t)pieces[i].offset, (size_t)pieces[i].bytes, to, error);
    if (!status) {
        cleat_blocks_values(tensor->blocks, bytes, count, file->span);
        file->span_of = tensor;
        file->span_first = first;
    }
    cleat_free(bytes);
    return status;
}

cleat_status cleat_safetensors_read(const cleat_safetensors *file, const cleat_st_tensor *tensor, int64_t first,
                                    int64_t count, void *elements, cleat_error *error) {
    const size_t size = dtypes[tensor->dtype].size;
    if (!tensor->blocks) return read_stored(file, tensor, (size_t)first * size, (size_t)count * size, elements, error);
    cleat_safetensors *own = (cleat_safetensors *)file; /* whose span changes, but nothing that callers see */
    cleat_status status = CLEAT_OK;
    for (int64_t some; count > 0 && !status; first += some, count -= some) {
        status = read_span(own, tensor, first, error);
        if (status) break;
        some = own->span_first + CLEAT_BLOCK_SPAN - first;
        if (some > count) some = count;
        memcpy(elements, own->span + (first - own->span_first), (size_t)some * sizeof(float));
        elements = (float *)elements + some;
    }
    return status;
}

cleat_status cleat_safetensors_read_stored(const cleat_safetensors *file, const cleat_st_tensor *tensor, void *bytes,
                                           cleat_error *error) {
    return read_stored(file, tensor, 0, cleat_st_bytes(tensor), bytes, error);
}

void cleat_safetensors_close(cleat_safetensors *file) {
    if (!file) return;
    if (file->on_disk) close(file->descriptor);
    for (size_t i = 0; file->copies && i < file->count; ++i) cleat_free(file->copies[i]);
    cleat_free(file->span);
    cleat_free(file->copies);
    cleat_free(file->by_name);
    cleat_free(file->tensors);
    cleat_free(file->texts);
    cleat_free(file->owned);
    cleat_free(file->path);
    cleat_free(file);
}

/* --- queries -------------------------------------------------------------------------------------------------- */

size_t cleat_safetensors_count(const cleat_safetensors *file) {
    return file->count;
}

const cleat_st_tensor *cleat_safetensors_at(const cleat_safetensors *file, size_t i) {
    return i < file->count ? &file->tensors[i] : NULL;
}

size_t cleat_safetensors_index(const cleat_safetensors *file, const cleat_st_tensor *tensor) {
    return (size_t)(tensor - file->tensors);
}

const cleat_st_tensor *cleat_safetensors_find(const cleat_safetensors *file, const char *name) {
    size_t low = 0, high = file->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const cleat_st_tensor *tensor = file->by_name[middle];
        int order = strcmp(name, tensor->name);
        if (order == 0) return tensor;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static void shape_text(cleat_st_dtype dtype, int rank, const int64_t *shape, char text[128]) {
    size_t used = (size_t)snprintf(text, 128, "%s [", dtypes[dtype].name);
    for (int i = 0; i < rank && used < 100; ++i)
        used += (size_t)snprintf(text + used, 128 - used, "%s%lld", i ? ", " : "", (long long)shape[i]);
    snprintf(text + used, 128 - used, "]");
}

cleat_status cleat_safetensors_expect(const cleat_safetensors *file, const char *name, cleat_st_dtype dtype, int rank,
                                      const int64_t *shape, const cleat_st_tensor **tensor, cleat_error *error) {
    char there[128], expected[128];
    const cleat_st_tensor *found = cleat_safetensors_find(file, name);
    shape_text(dtype, rank, shape, expected);
    if (!found)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: tensor '%.100s' (%s) is missing; is it from a different model?",
                          file->path, name, expected);
    shape_text(found->dtype, found->rank, found->shape, there);
    if (found->dtype != dtype || found->rank != rank ||
        (rank > 0 && memcmp(found->shape, shape, (size_t)rank * sizeof *shape) != 0))
        return cleat_fail(error, CLEAT_ERR_SHAPE, "%s: tensor '%.100s' is %s; it should be %s", file->path, name, there,
                          expected);
    *tensor = found;
    return CLEAT_OK;
}

const char *cleat_safetensors_metadata(const cleat_safetensors *file, const char *key) {
    for (const char *at = file->metadata; at < file->metadata_end;) {
        const char *value = at + strlen(at) + 1;
        if (strcmp(at, key) == 0) return value;
        at = value + strlen(value) + 1;
    }
    return NULL;
}

/* --- copying out ---------------------------------------------------------------------------------------------- */

static bool is_among(const char *name, const cleat_st_tensor *tensors, size_t count) {
    for (size_t i = 0; i < count; ++i)
        if (strcmp(tensors[i].name, name) == 0) return true;
    return false;
}

static cleat_status refuse_extra(const cleat_safetensors *file, const cleat_st_tensor *tensors, size_t count,
                                 cleat_error *error) {
    for (size_t i = 0; i < cleat_safetensors_count(file); ++i) {
        const char *name = cleat_safetensors_at(file, i)->name;
        if (!is_among(name, tensors, count))
            return cleat_fail(
                error, CLEAT_ERR_FORMAT,
                "%s: contains a tensor '%.100s' that the model does not have; is it from a different model?",
                file->path, name);
    }
    return CLEAT_OK;
}

cleat_status cleat_safetensors_check(const cleat_safetensors *file, const cleat_st_tensor *tensors, size_t count,
                                     cleat_error *error) {
    const cleat_st_tensor *found;
    for (size_t i = 0; i < count; ++i) {
        cleat_status status = cleat_safetensors_expect(file, tensors[i].name, CLEAT_ST_F32, tensors[i].rank,
                                                       tensors[i].shape, &found, error);
        if (status) return status;
    }
    return cleat_safetensors_count(file) == count ? CLEAT_OK : refuse_extra(file, tensors, count, error);
}

cleat_status cleat_safetensors_copy(const cleat_safetensors *file, const cleat_st_tensor *tensors, size_t count,
                                    cleat_error *error) {
    cleat_status status = cleat_safetensors_check(file, tensors, count, error);
    for (size_t i = 0; i < count && !status; ++i) {
        const cleat_st_tensor *found = cleat_safetensors_find(file, tensors[i].name);
        status = cleat_safetensors_read(file, found, 0, cleat_st_elements(found), (void *)tensors[i].data, error);
    }
    return status;
}

/* safetensors files: named arrays with a JSON header (https://github.com/huggingface/safetensors, format
 * description).
 *
 *     u64 little-endian header length
 *     JSON {name: {dtype, shape, data_offsets}, "__metadata__": {text: text}}
 *     data
 *
 * A frozen weight may be stored in blocks (core/blocks.h): U8 of their bytes, and in the metadata, under its name, the
 * type of the blocks and the weight's shape ("nf4 576 1536"). It is read as F32.
 *
 * Reading trusts nothing: every range, shape and name of the header is checked before a pointer is
 * returned. */
#ifndef CLEAT_SRC_SAFETENSORS_H
#define CLEAT_SRC_SAFETENSORS_H

#include "cleat/graph.h"

typedef enum cleat_st_dtype {
    CLEAT_ST_F64,
    CLEAT_ST_F32,
    CLEAT_ST_F16,
    CLEAT_ST_BF16,
    CLEAT_ST_I64,
    CLEAT_ST_I32,
    CLEAT_ST_U32,
    CLEAT_ST_U8,
    CLEAT_ST_BOOL,
    CLEAT_ST_I8,
    CLEAT_ST_I16,
    CLEAT_ST_U16,
    CLEAT_ST_U64,
    CLEAT_ST_DTYPES,
} cleat_st_dtype;

enum { CLEAT_ST_RANK = 8 };

size_t cleat_st_dtype_size(cleat_st_dtype dtype);      /* bytes */
const char *cleat_st_dtype_name(cleat_st_dtype dtype); /* "F32", ... */

/* One array in C order, little-endian like the machines for which this builds. */
typedef struct cleat_st_tensor {
    const char *name;
    cleat_st_dtype dtype;
    int rank; /* 0: a single value */
    int64_t shape[CLEAT_ST_RANK];
    /* When read from a file: aligned to the size of its dtype; NULL if it has no elements. */
    const void *data;
    cleat_dtype blocks; /* stored in these blocks: `data` to write are theirs, dtype is F32; CLEAT_F32: none */
    size_t offset;      /* when read: bytes from the begin of the file's data */
} cleat_st_tensor;

int64_t cleat_st_elements(const cleat_st_tensor *tensor);
size_t cleat_st_bytes(const cleat_st_tensor *tensor); /* in the file */

typedef struct cleat_st_metadata {
    const char *key;
    const char *value;
} cleat_st_metadata;

typedef struct cleat_safetensors cleat_safetensors;

/* Reads a whole file. All returned pointers remain valid until cleat_safetensors_close. */
cleat_status cleat_safetensors_open(const char *path, cleat_safetensors **file, cleat_error *error);
/* Reads only the header; the `data` of all tensors is NULL. cleat_safetensors_read gives their elements while
 * the file, which stays open, is not closed. */
cleat_status cleat_safetensors_open_headers(const char *path, cleat_safetensors **file, cleat_error *error);
/* Copies elements first .. first + count - 1 of a tensor of this file to `elements`: values of blocks, others as
 * stored. */
cleat_status cleat_safetensors_read(const cleat_safetensors *file, const cleat_st_tensor *tensor, int64_t first,
                                    int64_t count, void *elements, cleat_error *error);
/* Copies a tensor to `bytes` [cleat_st_bytes] as it is stored. */
cleat_status cleat_safetensors_read_stored(const cleat_safetensors *file, const cleat_st_tensor *tensor, void *bytes,
                                           cleat_error *error);
/* As cleat_safetensors_open, for `size` bytes at `data`, which must outlive *file. `name` replaces the path
 * in messages. */
cleat_status cleat_safetensors_parse(const char *name, const void *data, size_t size, cleat_safetensors **file,
                                     cleat_error *error);
/* As cleat_safetensors_parse; on success *file takes ownership of `bytes`, which must come from
 * cleat_alloc. */
cleat_status cleat_safetensors_adopt(const char *name, char *bytes, size_t size, cleat_safetensors **file,
                                     cleat_error *error);
void cleat_safetensors_close(cleat_safetensors *file);

size_t cleat_safetensors_count(const cleat_safetensors *file);
/* The i-th tensor in file order; NULL after the last. */
const cleat_st_tensor *cleat_safetensors_at(const cleat_safetensors *file, size_t i);
size_t cleat_safetensors_index(const cleat_safetensors *file, const cleat_st_tensor *tensor);   /* its inverse */
const cleat_st_tensor *cleat_safetensors_find(const cleat_safetensors *file, const char *name); /* or NULL */
/* Finds the tensor `name` and checks its dtype and shape; otherwise the error gives file, tensor, and both
 * shapes. */
cleat_status cleat_safetensors_expect(const cleat_safetensors *file, const char *name, cleat_st_dtype dtype, int rank,
                                      const int64_t *shape, const cleat_st_tensor **tensor, cleat_error *error);
/* Checks that the file contains exactly these tensors [count], all F32, with these shapes; their data are not looked
 * at. */
cleat_status cleat_safetensors_check(const cleat_safetensors *file, const cleat_st_tensor *tensors, size_t count,
                                     cleat_error *error);
/* Copies F32 tensors from the file to the `data` of `tensors` [count], which must point to writable memory of
 * the right size. Writes nothing unless the file contains exactly these tensors with these shapes. */
cleat_status cleat_safetensors_copy(const cleat_safetensors *file, const cleat_st_tensor *tensors, size_t count,
                                    cleat_error *error);
const char *cleat_safetensors_metadata(const cleat_safetensors *file, const char *key); /* or NULL */

/* Encodes a file with these tensors in this order; the data start at a multiple of 64 bytes. The caller frees
 * *data (cleat_free). Names must be unique and not "__metadata__". */
cleat_status cleat_safetensors_encode(const cleat_st_tensor *tensors, size_t count, const cleat_st_metadata *metadata,
                                      size_t metadata_count, char **data, size_t *size, cleat_error *error);
/* Where the data of tensors are that are not in memory together: `data` sets *data to the bytes of tensor i,
 * which stay valid until the next call. It is called once for each tensor that has elements, in their
 * order. */
typedef struct cleat_st_source {
    cleat_status (*data)(void *user, size_t i, const void **data, cleat_error *error);
    void *user;
} cleat_st_source;
/* What was written. */
typedef struct cleat_st_digest {
    size_t size;   /* bytes */
    char hash[33]; /* cleat_hash_text */
} cleat_st_digest;
/* Writes the file atomically, tensor by tensor: the same bytes as cleat_safetensors_encode, without a copy of
 * the data. `source` (NULL: the tensors' own data) and `written` (NULL: not wanted) are as above. */
cleat_status cleat_safetensors_write_from(const char *path, const cleat_st_tensor *tensors, size_t count,
                                          const cleat_st_source *source, const cleat_st_metadata *metadata,
                                          size_t metadata_count, cleat_st_digest *written, cleat_error *error);
/* The same with the tensors' own data. */
cleat_status cleat_safetensors_write(const char *path, const cleat_st_tensor *tensors, size_t count,
                                     const cleat_st_metadata *metadata, size_t metadata_count, cleat_error *error);

#endif

/* GGUF files, versions 2 and 3 (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): metadata, then tensors
 * in blocks of quantised values.
 *
 *     "GGUF", u32 version, u64 tensors, u64 members; all numbers are little-endian
 *     members: key, u32 type, value; a text is u64 bytes and its bytes, an array is u32 type, u64 count, its items
 *     tensors: name, u32 rank, u64 extents (the first one varies fastest), u32 type, u64 offset in the data
 *     data, from a multiple of general.alignment on
 *
 * Reading trusts nothing: every count, length and range is checked against the size of the file before memory is
 * allocated for it. The data stay on the disk and are read in parts; the file is not memory-mapped, because a mapped
 * file that shrinks kills the process. */
#ifndef CLEAT_SRC_GGUF_H
#define CLEAT_SRC_GGUF_H

#include "cleat/core.h"

/* --- metadata ------------------------------------------------------------------------------------------------- */

typedef struct cleat_gguf cleat_gguf;

/* Reads everything but the data. The caller closes *file. CLEAT_ERR_FORMAT: not such a file, of another version,
 * truncated, or inconsistent; the message has the file, the place and a remedy. */
cleat_status cleat_gguf_open(const char *path, cleat_gguf **file, cleat_error *error);
void cleat_gguf_close(cleat_gguf *file); /* accepts NULL */
const char *cleat_gguf_path(const cleat_gguf *file);

/* A text of the file, followed by a zero, which may also be one of its bytes. */
typedef struct cleat_gguf_text {
    const char *data;
    size_t size; /* bytes */
} cleat_gguf_text;

typedef enum cleat_gguf_kind {
    CLEAT_GGUF_U8,
    CLEAT_GGUF_I8,
    CLEAT_GGUF_U16,
    CLEAT_GGUF_I16,
    CLEAT_GGUF_U32,
    CLEAT_GGUF_I32,
    CLEAT_GGUF_F32,
    CLEAT_GGUF_BOOL,
    CLEAT_GGUF_TEXT,
    CLEAT_GGUF_ARRAY,
    CLEAT_GGUF_U64,
    CLEAT_GGUF_I64,
    CLEAT_GGUF_F64,
    CLEAT_GGUF_KINDS,
} cleat_gguf_kind;

/* A member of the metadata. */
typedef struct cleat_gguf_member {
    cleat_gguf_text key;
    cleat_gguf_kind kind; /* of its items; never CLEAT_GGUF_ARRAY */
    bool is_array;
    size_t count; /* items; 1 if it is no array */
    /* Owned by the file: [count] texts, or NULL; numbers are read by cleat_gguf_number. */
    const cleat_gguf_text *texts;
    const void *numbers;
} cleat_gguf_member;

size_t cleat_gguf_members(const cleat_gguf *file);
const cleat_gguf_member *cleat_gguf_member_at(const cleat_gguf *file, size_t i);   /* i < cleat_gguf_members */
const cleat_gguf_member *cleat_gguf_find(const cleat_gguf *file, const char *key); /* NULL: there is none */
/* Item i of a member of numbers (false 0, true 1); 64-bit integers are rounded. NaN: it has texts, or no item i;
 * `member` may be NULL. */
double cleat_gguf_number(const cleat_gguf_member *member, size_t i);
/* The member `key` if it is one text, an array of texts, or an array of numbers, and NULL in *member if there is none.
 * CLEAT_ERR_FORMAT: it is something else; the message has the file and the key. */
typedef enum cleat_gguf_form {
    CLEAT_GGUF_ONE_TEXT,
    CLEAT_GGUF_TEXTS,
    CLEAT_GGUF_ONE_NUMBER,
    CLEAT_GGUF_NUMBERS
} cleat_gguf_form;
cleat_status cleat_gguf_expect(const cleat_gguf *file, const char *key, cleat_gguf_form form,
                               const cleat_gguf_member **member, cleat_error *error);

/* --- tensors -------------------------------------------------------------------------------------------------- */

/* Formats of the data, by their numbers in files. */
typedef enum cleat_gguf_type {
    CLEAT_GGUF_TYPE_F32 = 0,
    CLEAT_GGUF_TYPE_F16 = 1,
    CLEAT_GGUF_TYPE_Q4_0 = 2,
    CLEAT_GGUF_TYPE_Q4_1 = 3,
    CLEAT_GGUF_TYPE_Q5_0 = 6,
    CLEAT_GGUF_TYPE_Q5_1 = 7,
    CLEAT_GGUF_TYPE_Q8_0 = 8,
    CLEAT_GGUF_TYPE_Q4_K = 12,
    CLEAT_GGUF_TYPE_Q5_K = 13,
    CLEAT_GGUF_TYPE_Q6_K = 14,
    CLEAT_GGUF_TYPE_BF16 = 30,
    CLEAT_GGUF_TYPES = 31,
} cleat_gguf_type;

enum { CLEAT_GGUF_RANK = 4 };

const char *cleat_gguf_type_name(cleat_gguf_type type); /* "Q4_1" */
int64_t cleat_gguf_block_values(cleat_gguf_type type);  /* values of a block: 1, 32 or 256; 0: an unknown type */
size_t cleat_gguf_block_bytes(cleat_gguf_type type);    /* bytes of a block; 0: an unknown type */
/* Values of `count` whole blocks, to values [count * cleat_gguf_block_values]. Computed in f32, in the order of
 * gguf.quants.dequantize of Python, whose bits they have. */
void cleat_gguf_unpack(cleat_gguf_type type, const void *blocks, size_t count, float *values);
/* The k-th 32 of these values, if they have 4 bits: scale_least[0] * codes + scale_least[1]. False: another type. */
bool cleat_gguf_codes(cleat_gguf_type type, const void *blocks, int64_t k, uint8_t codes[32], float scale_least[2]);

typedef struct cleat_gguf_tensor {
    cleat_gguf_text name;
    cleat_gguf_type type;
    int rank;
    int64_t shape[CLEAT_GGUF_RANK]; /* the last extent varies fastest, and is whole blocks */
    uint64_t offset;                /* in the file, bytes */
    size_t bytes;
} cleat_gguf_tensor;

size_t cleat_gguf_count(const cleat_gguf *file);
const cleat_gguf_tensor *cleat_gguf_at(const cleat_gguf *file, size_t i); /* in the order of the file */
const cleat_gguf_tensor *cleat_gguf_find_tensor(const cleat_gguf *file, const char *name); /* NULL: none */
/* Copies bytes first .. first + count - 1 of a tensor, as stored, to `bytes`. */
cleat_status cleat_gguf_read(const cleat_gguf *file, const cleat_gguf_tensor *tensor, size_t first, size_t count,
                             void *bytes, cleat_error *error);

#endif

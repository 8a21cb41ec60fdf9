/* Tensors: their types, shapes, and how they print. */
#include "core/blocks.h"
#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

int cleat_dtype_size(cleat_dtype dtype) {
    if (dtype == CLEAT_U8 || cleat_block_elements(dtype)) return 1;
    return dtype == CLEAT_F16 || dtype == CLEAT_BF16 ? 2 : 4;
}

const char *cleat_dtype_name(cleat_dtype dtype) {
    static const char *const names[] = {
        [CLEAT_F32] = "f32", [CLEAT_F16] = "f16",   [CLEAT_BF16] = "bf16", [CLEAT_I32] = "i32",
        [CLEAT_U32] = "u32", [CLEAT_TF32] = "tf32", [CLEAT_U8] = "u8",     [CLEAT_Q8] = "q8",
        [CLEAT_NF4] = "nf4", [CLEAT_Q4] = "q4",     [CLEAT_HALF] = "half"};
    return (size_t)dtype < sizeof names / sizeof *names ? names[dtype] : "?";
}

double cleat_roundoff(cleat_dtype dtype) {
    if (dtype == CLEAT_F16 || dtype == CLEAT_TF32) return 0x1p-11;
    return dtype == CLEAT_BF16 ? 0x1p-8 : dtype == CLEAT_F32 ? 0x1p-24 : 0;
}

bool cleat_is_storage(cleat_dtype dtype) {
    return dtype == CLEAT_F32 || dtype == CLEAT_F16 || dtype == CLEAT_BF16;
}

const char *cleat_category_name(cleat_category category) {
    static const char *const names[] = {
#define CLEAT_CATEGORY_TEXT(code, text) text,
        CLEAT_CATEGORY_LIST(CLEAT_CATEGORY_TEXT)
#undef CLEAT_CATEGORY_TEXT
    };
    return category < CLEAT_CATEGORIES ? names[category] : "?";
}

const char *cleat_tensor_name(const cleat_tensor *tensor) {
    return tensor->name;
}

cleat_dtype cleat_tensor_dtype(const cleat_tensor *tensor) {
    return tensor->dtype;
}

int cleat_tensor_rank(const cleat_tensor *tensor) {
    return tensor->rank;
}

const int64_t *cleat_tensor_shape(const cleat_tensor *tensor) {
    return tensor->shape;
}

int64_t cleat_tensor_elements(const cleat_tensor *tensor) {
    int64_t elements = 1;
    for (int i = 0; i < tensor->rank; ++i) elements *= tensor->shape[i];
    return elements;
}

int64_t cleat_tensor_bytes(const cleat_tensor *tensor) {
    const int64_t elements = cleat_tensor_elements(tensor);
    if (cleat_block_elements(tensor->dtype)) return cleat_block_bytes(tensor->dtype, elements);
    return elements * cleat_dtype_size(tensor->dtype);
}

int64_t cleat_rows(const cleat_tensor *tensor) {
    int64_t rows = 1;
    for (int i = 0; i + 1 < tensor->rank; ++i) rows *= tensor->shape[i];
    return rows;
}

int64_t cleat_width(const cleat_tensor *tensor) {
    return tensor->rank ? tensor->shape[tensor->rank - 1] : 1;
}

bool cleat_same_shape(const cleat_tensor *a, const cleat_tensor *b) {
    return a->rank == b->rank && memcmp(a->shape, b->shape, (size_t)a->rank * sizeof a->shape[0]) == 0;
}

void cleat_tensor_describe(const cleat_tensor *tensor, char *text, size_t size) {
    if (!tensor) {
        snprintf(text, size, "none");
        return;
    }
    int used = snprintf(text, size, "%s [", cleat_dtype_name(tensor->dtype));
    for (int i = 0; i < tensor->rank && used < (int)size; ++i)
        used += snprintf(text + used, size - (size_t)used, "%s%lld", i ? ", " : "", (long long)tensor->shape[i]);
    if (used < (int)size) snprintf(text + used, size - (size_t)used, "]");
}

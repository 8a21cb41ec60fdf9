/* Interface between disentangled.c (definition of disentangled attention; the generic form) and
 * disentangled_launch.c (launches of all forms). */
#ifndef CLEAT_SRC_OPS_DISENTANGLED_H
#define CLEAT_SRC_OPS_DISENTANGLED_H

#include "graph/launch.h"

typedef struct cleat_disentangled_attr {
    int32_t heads, buckets, max_relative_positions;
} cleat_disentangled_attr;

/* Inputs of both ops. Forward uses the first four and writes {y T [B, L, D], lse f32 [B, H, L]}; the gradient writes
 * {dqkv, dpos_keys, dpos_queries}. */
enum {
    CLEAT_DIS_QKV,
    CLEAT_DIS_POS_KEYS,
    CLEAT_DIS_POS_QUERIES,
    CLEAT_DIS_LENGTHS,
    CLEAT_DIS_Y,
    CLEAT_DIS_LSE,
    CLEAT_DIS_DY,
    CLEAT_DIS_ACCUMS
};

/* Sizes of a node. */
typedef struct cleat_disentangled_problem {
    int64_t batch, length, width; /* B, L, D */
    int64_t heads, head;          /* H, D / H */
    int64_t span;                 /* pos_keys and pos_queries are [2 span, D] */
    double softmax_scale;         /* 1 / sqrt(D/H (1 + number of position tensors)) */
} cleat_disentangled_problem;

cleat_disentangled_problem cleat_disentangled_problem_of(const cleat_node *node);

/* Buckets of distances, as the kernels compute them (bucket_of in cl/attention/disentangled.clh). */
typedef struct cleat_disentangled_buckets {
    int32_t mid;
    float slope, shift;
} cleat_disentangled_buckets;

/* Buckets for distances below `length`. */
cleat_disentangled_buckets cleat_disentangled_buckets_for(const cleat_disentangled_attr *attr, int64_t length);

/* The row of the position tensors for a distance i - j, from 0 to 2 span - 1. */
int64_t cleat_disentangled_row(const cleat_disentangled_attr *attr, int64_t distance);

/* Definitions of both ops (attention_define.c). */
cleat_expected_value cleat_disentangled_define(const cleat_node *node, cleat_host_values *values, int64_t element);
cleat_expected_value cleat_disentangled_define_grad(const cleat_node *node, cleat_host_values *values, int64_t element);

/* The variants of both ops. */
extern const cleat_variant cleat_disentangled_variants[], cleat_disentangled_grad_variants[];

#endif

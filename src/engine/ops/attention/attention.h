/* Interface between attention.c (definition of the ops; launches on CPUs and GPUs, and the generic form) and
 * attention_mma.c (launches on matrix units). */
#ifndef CLEAT_SRC_OPS_ATTENTION_H
#define CLEAT_SRC_OPS_ATTENTION_H

#include "graph/launch.h"

/* The tensors of queries, keys and values, or of their gradients or accums. */
typedef struct cleat_attention_operands {
    /* T [B, L, D] and [B, S, 2D], or [B, L, 3D] and NULL; gradients and accums may be NULL. */
    const cleat_tensor *q, *kv;
} cleat_attention_operands;

/* Parameters common to the ops. */
typedef struct cleat_attention_problem {
    cleat_attention_operands in;
    const cleat_tensor *lengths;         /* i32 [B] or NULL; causal: the starts, i32 [B, L] or NULL */
    bool self;                           /* in.q also holds keys and values */
    bool causal;                         /* query i sees keys from its start, within the window, to i */
    int64_t batch, queries, keys, width; /* B, L, S, D */
    int64_t kv_width;                    /* of all heads of keys; D if not causal */
    int64_t heads, kv_heads, head;       /* H, H of keys (H if not causal), D / H */
    int64_t window;                      /* causal: keys that a query sees at most, up to L */
    int64_t reach;                       /* local: keys that a query sees to each side; 0: all */
    double scale;                        /* of the scores */
} cleat_attention_problem;

cleat_attention_problem cleat_attention_problem_of(const cleat_node *node);

/* Definitions of attention and of its gradient (attention_define.c). */
cleat_expected_value cleat_attention_define(const cleat_node *node, cleat_host_values *values, int64_t element);
cleat_expected_value cleat_attention_define_grad(const cleat_node *node, cleat_host_values *values, int64_t element);

/* Split of dK and dV in the GPU kernels: one work-group per tile of keys, or several with a part of the
 * queries each if the tiles alone would leave half of the GPU idle. */
typedef struct cleat_attention_parts {
    int64_t rows;    /* per tile */
    int64_t tiles;   /* number of tiles in all heads */
    int64_t queries; /* per part */
    int64_t count;   /* parts per tile */
} cleat_attention_parts;

cleat_attention_parts cleat_attention_parts_for(const cleat_attention_problem *p, const cleat_device_facts *facts,
                                                int64_t rows);

/* --- launches ------------------------------------------------------------------------------------------------- */

/* Begins a launch with q, k, v, q_row, kv_row, q_lengths, k_lengths, y, lse. */
void cleat_attention_begin_forward(cleat_binder *binder, const cleat_node *node, const cleat_attention_problem *p,
                                   const char *file, const char *kernel);
/* Begin a launch with q, k, v, q_row, kv_row, q_lengths, k_lengths, lse, then y, dy, delta (which this launch
 * computes, at the start of the gradient's workspace) or delta, dy, and the accum and the gradient of each
 * operand. */
void cleat_attention_begin_dq(cleat_binder *binder, const cleat_node *node, const cleat_attention_problem *p,
                              const char *file, const char *kernel);
void cleat_attention_begin_keys(cleat_binder *binder, const cleat_node *node, const cleat_attention_problem *p,
                                const char *file, const char *kernel);
/* Adds heads, lq, lk, softmax_scale. */
void cleat_attention_sizes(cleat_binder *binder, const cleat_attention_problem *p);
/* Adds the partial sums of the parts, which follow delta in the workspace; NULL if there is one part. */
void cleat_attention_shares(cleat_binder *binder, const cleat_node *node, const cleat_attention_parts *parts);
/* Launches `kernel`, which adds up the parts of dK and dV. */
void cleat_attention_launch_sum(cleat_binder *binder, const cleat_node *node, const cleat_attention_problem *p,
                                const char *file, const char *kernel, const cleat_attention_parts *parts);

/* Launches delta f32 [B, H, L] = sum of dy * y over the elements of a head, at the start of the gradient's
 * workspace, unless the launch for dQ will compute it. */
void cleat_attention_prepare_delta(cleat_binder *binder, const cleat_node *node, const cleat_attention_problem *p);
int64_t cleat_attention_delta_bytes(const cleat_node *node, const cleat_device_facts *facts);

/* Return which gradients a gradient node computes. */
bool cleat_attention_needs_dq(const cleat_node *node);
bool cleat_attention_needs_dkv(const cleat_node *node);

/* Refusals of the variants on CPUs and GPUs, also of disentangled attention. */
const char *cleat_attention_cpu_refuse(const cleat_node *node, const cleat_device_facts *facts);
const char *cleat_attention_gpu_refuse(const cleat_node *node, const cleat_device_facts *facts);

/* The variant on matrix units (attention_mma.c), a row in each op's list of variants. */
const char *cleat_attention_mma_refuse(const cleat_node *node, const cleat_device_facts *facts);
void cleat_attention_mma_bind(const cleat_node *node, cleat_binder *binder);
int64_t cleat_attention_mma_grad_workspace(const cleat_node *node, const cleat_device_facts *facts);
void cleat_attention_mma_grad_bind(const cleat_node *node, cleat_binder *binder);

#endif

/* Between attention.c (what the ops compute, and how they run on CPUs, on cards and plainly) and attention_mma.c (on matrix units). */
#ifndef CLEAT_SRC_OPS_ATTENTION_H
#define CLEAT_SRC_OPS_ATTENTION_H

#include "graph/launch.h"

/* Tensors that hold queries, keys and values, or something for each of them. */
typedef struct cleat_attention_operands {
    const cleat_tensor *q, *kv; /* T [B, L, D], [B, S, 2D]; or [B, L, 3D] and NULL; the gradient's may be NULL */
} cleat_attention_operands;

/* What both ops are about. */
typedef struct cleat_attention_problem {
    cleat_attention_operands in;
    const cleat_tensor *lengths;         /* i32 [B] or NULL */
    bool self;                           /* in.q holds keys and values too */
    int64_t batch, queries, keys, width; /* B, L, S, D */
    int64_t heads, head;                 /* H, D / H */
} cleat_attention_problem;

cleat_attention_problem cleat_attention_problem_of(const cleat_node *node);

/* How the kernels of a card split dK and dV: groups of a tile of keys each; more than one, a part of the queries each,
 * where tiles alone leave half of the card idle. */
typedef struct cleat_attention_parts {
    int64_t rows;    /* of a tile */
    int64_t tiles;   /* of all heads */
    int64_t queries; /* of a part */
    int64_t count;   /* of a tile */
} cleat_attention_parts;

cleat_attention_parts cleat_attention_parts_for(const cleat_attention_problem *p, const cleat_device_facts *facts,
                                                int64_t rows);

/* --- launches ------------------------------------------------------------------------------------------------- */

/* q, k, v, q_row, kv_row, q_lengths, k_lengths, y, lse */
void cleat_attention_begin_forward(cleat_binder *binder, const cleat_node *node, const cleat_attention_problem *p,
                                   const char *file, const char *kernel);
/* q, k, v, q_row, kv_row, q_lengths, k_lengths, lse, delta, dy, and of each operand the accum, then the gradient */
void cleat_attention_begin_dq(cleat_binder *binder, const cleat_node *node, const cleat_attention_problem *p,
                              const char *file, const char *kernel);
void cleat_attention_begin_keys(cleat_binder *binder, const cleat_node *node, const cleat_attention_problem *p,
                                const char *file, const char *kernel);
/* heads, lq, lk, softmax_scale */
void cleat_attention_sizes(cleat_binder *binder, const cleat_attention_problem *p);
/* The shares of the parts, which lie behind delta in the workspace; none where there is one part. */
void cleat_attention_shares(cleat_binder *binder, const cleat_node *node, const cleat_attention_parts *parts);
/* The last kernel of dK and dV in parts, whole: its name is `kernel`. */
void cleat_attention_launch_sum(cleat_binder *binder, const cleat_node *node, const cleat_attention_problem *p,
                                const char *file, const char *kernel, const cleat_attention_parts *parts);

/* delta f32 [B, H, L] = sum of dy * y over a head's elements, at the start of the gradient's workspace */
void cleat_attention_launch_delta(cleat_binder *binder, const cleat_node *node, const cleat_attention_problem *p);
int64_t cleat_attention_delta_bytes(const cleat_node *node, const cleat_device_facts *facts);

/* Which gradients a gradient node has. */
bool cleat_attention_needs_dq(const cleat_node *node);
bool cleat_attention_needs_dkv(const cleat_node *node);

/* On matrix units (attention_mma.c). A row of each op's list of variants. */
const char *cleat_attention_mma_refuse(const cleat_node *node, const cleat_device_facts *facts);
void cleat_attention_mma_bind(const cleat_node *node, cleat_binder *binder);
int64_t cleat_attention_mma_grad_workspace(const cleat_node *node, const cleat_device_facts *facts);
void cleat_attention_mma_grad_bind(const cleat_node *node, cleat_binder *binder);

#endif

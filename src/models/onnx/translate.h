/* Translation of a prediction graph into ONNX nodes, for the functions that translate one operation.
 *
 * To add an operation: one function and its name in CLEAT_ONNX_OPS, or a row of ONNX's operator in translate.c. An op
 * whose result depends on attributes declares them (cleat_op.attributes).
 *
 * Batch size and sequence length are unknown until the model runs. The graph is therefore built several times
 * with different sizes, and a dimension that changes with them is a multiple of the batch, of the length, or
 * of both. */
#ifndef CLEAT_SRC_ONNX_TRANSLATE_H
#define CLEAT_SRC_ONNX_TRANSLATE_H

#include "graph/graph.h"
#include "onnx/builder.h"

/* A dimension: factor, times the batch and the length if these are set. */
typedef struct cleat_onnx_dim {
    int64_t factor;
    bool batch, length;
} cleat_onnx_dim;

typedef struct cleat_onnx_translator cleat_onnx_translator;

/* The builder of the model. */
cleat_onnx_builder *cleat_onnx_of(cleat_onnx_translator *t);

/* Whether in[i] is present. */
bool cleat_onnx_has(const cleat_node *node, int i);
/* The name of in[i]; NULL if it is absent. */
const char *cleat_onnx_in(cleat_onnx_translator *t, const cleat_node *node, int i);
/* in[i], an image [B, H, W, C], with channels first: [B, C, H, W]. */
const char *cleat_onnx_image(cleat_onnx_translator *t, const cleat_node *node, int i);
/* Set the value of out[i]; the second for an image with channels first. */
void cleat_onnx_set(cleat_onnx_translator *t, const cleat_node *node, int i, const char *name);
void cleat_onnx_set_image(cleat_onnx_translator *t, const cleat_node *node, int i, const char *name);
/* Whether all present ones of the first `count` inputs exist with channels first, so an elementwise op need not change
 * their order. */
bool cleat_onnx_are_images(cleat_onnx_translator *t, const cleat_node *node, int count);

/* A parameter with permuted dimensions, stored once. */
const char *cleat_onnx_permuted(cleat_onnx_translator *t, const cleat_node *node, int i, const int64_t *axes);

cleat_onnx_dim cleat_onnx_dim_of(cleat_onnx_translator *t, const cleat_tensor *tensor, int axis);
bool cleat_onnx_is_fixed(cleat_onnx_dim dim);
/* The dimension as a value i64 [1]. */
const char *cleat_onnx_dim_value(cleat_onnx_translator *t, cleat_onnx_dim dim);
/* x in the shape of `to`; `from` (NULL: unknown) has the same elements. */
const char *cleat_onnx_reshape(cleat_onnx_translator *t, const char *x, const cleat_tensor *from,
                               const cleat_tensor *to);
/* The positions 0, 1, ... as i32 [dim]; a mask bool [B, dim], true if position l of sample b is below
 * lengths[b]. */
const char *cleat_onnx_positions(cleat_onnx_translator *t, cleat_onnx_dim dim);
const char *cleat_onnx_mask(cleat_onnx_translator *t, const cleat_node *node, int lengths, cleat_onnx_dim dim);

/* An attribute that the op declares; an error if it does not. */
double cleat_onnx_attribute_of(cleat_onnx_translator *t, const cleat_node *node, const char *name, int i);
/* Fails with the node's name in front. */
void cleat_onnx_node_fail(cleat_onnx_translator *t, const cleat_node *node, const char *format, ...) CLEAT_PRINTF(3, 4);

/* The ops with a function of their own, by their files. */
/* clang-format off */
#define CLEAT_ONNX_OPS(X)                                                                                              \
    /* elements.c */ X(cast) X(silu) X(gelu) X(gated) X(softmax)                                                       \
    /* shapes.c */ X(reshape) X(permute) X(slice) X(concat) X(block_diagonal) X(chunk) X(depth_to_space)               \
    X(prepend_token)                                                                                                   \
    /* layers.c */ X(linear) X(layer_norm) X(layer_scale) X(embedding) X(pool) X(lstm) X(positional_encoding)          \
    X(position_embedding) X(rotary) X(rotary_table)                                                                    \
    /* attention.c */ X(attention) X(local_attention) X(causal_attention) X(disentangled_attention)                    \
    /* images.c */ X(conv2d) X(depthwise_conv2d) X(max_pool) X(average_pool) X(resize) X(batch_norm_inference)         \
    /* chain.c */ X(rigid_chain)
/* clang-format on */
#define CLEAT_ONNX_DECLARE(OP) void cleat_onnx_emit_##OP(cleat_onnx_translator *t, const cleat_node *node);
CLEAT_ONNX_OPS(CLEAT_ONNX_DECLARE)

/* Whether there is a translation of an op. */
bool cleat_onnx_knows(const char *op);

#endif

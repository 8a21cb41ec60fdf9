/* Translation of a prediction graph into ONNX nodes, for the functions that translate one operation.
 *
 * To add an operation: one function and one row in the table of translate.c. An op whose result depends on
 * attributes declares them (cleat_op.attributes).
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
/* Whether all present inputs of [first, first + count) exist with channels first, so an elementwise op need
 * not change their order. */
bool cleat_onnx_are_images(cleat_onnx_translator *t, const cleat_node *node, int first, int count);
/* The elementwise op `type` of the first `count` inputs, in their channel order. */
void cleat_onnx_elements(cleat_onnx_translator *t, const cleat_node *node, const char *type, int count);

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

typedef void (*cleat_onnx_emitter)(cleat_onnx_translator *t, const cleat_node *node);

/* elements.c */
void cleat_onnx_emit_cast(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_add(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_subtract(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_multiply(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_relu(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_sigmoid(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_tanh(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_silu(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_gelu(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_gated(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_softmax(cleat_onnx_translator *t, const cleat_node *node);
/* shapes.c */
void cleat_onnx_emit_reshape(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_permute(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_slice(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_concat(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_block_diagonal(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_chunk(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_depth_to_space(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_prepend_token(cleat_onnx_translator *t, const cleat_node *node);
/* layers.c */
void cleat_onnx_emit_linear(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_layer_norm(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_layer_scale(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_embedding(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_positional_encoding(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_rotary(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_rotary_table(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_position_embedding(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_pool(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_lstm(cleat_onnx_translator *t, const cleat_node *node);
/* attention.c */
void cleat_onnx_emit_attention(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_local_attention(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_causal_attention(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_disentangled_attention(cleat_onnx_translator *t, const cleat_node *node);
/* images.c */
void cleat_onnx_emit_conv2d(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_depthwise_conv2d(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_max_pool(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_average_pool(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_resize(cleat_onnx_translator *t, const cleat_node *node);
void cleat_onnx_emit_batch_norm(cleat_onnx_translator *t, const cleat_node *node);
/* chain.c */
void cleat_onnx_emit_rigid_chain(cleat_onnx_translator *t, const cleat_node *node);

/* The function for an op; NULL: there is none. */
cleat_onnx_emitter cleat_onnx_find_emitter(const char *op);

#endif

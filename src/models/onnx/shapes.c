/* ONNX: operations that move elements. */
#include "onnx/translate.h"

void cleat_onnx_emit_reshape(cleat_onnx_translator *t, const cleat_node *node) {
    cleat_onnx_set(t, node, 0, cleat_onnx_reshape(t, cleat_onnx_in(t, node, 0), node->in[0], node->out[0]));
}

void cleat_onnx_emit_permute(cleat_onnx_translator *t, const cleat_node *node) {
    int64_t axes[CLEAT_MAX_RANK];
    for (int i = 0; i < node->in[0]->rank; ++i) axes[i] = (int64_t)cleat_onnx_attribute_of(t, node, "axes", i);
    cleat_onnx_set(t, node, 0,
                   cleat_onnx_transpose(cleat_onnx_of(t), cleat_onnx_in(t, node, 0), node->in[0]->rank, axes));
}

void cleat_onnx_emit_slice(cleat_onnx_translator *t, const cleat_node *node) {
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const char *start = cleat_onnx_int(b, (int64_t)cleat_onnx_attribute_of(t, node, "start", 0));
    const char *stop = cleat_onnx_int(b, (int64_t)cleat_onnx_attribute_of(t, node, "stop", 0));
    const char *axis = cleat_onnx_int(b, (int64_t)cleat_onnx_attribute_of(t, node, "axis", 0));
    cleat_onnx_set(t, node, 0, OP(b, "Slice", cleat_onnx_in(t, node, 0), start, stop, axis));
}

void cleat_onnx_emit_concat(cleat_onnx_translator *t, const cleat_node *node) {
    const char *in[CLEAT_MAX_IN];
    for (int i = 0; i < node->n_in; ++i) in[i] = cleat_onnx_in(t, node, i);
    cleat_onnx_set(t, node, 0,
                   cleat_onnx_op(cleat_onnx_of(t), "Concat", ATTRIBUTES(CLEAT_ONNX_I("axis", -1)), in, node->n_in));
}

/* The rows of place s: a block, padded to the full width, or zeros. */
static const char *rows_of_place(cleat_onnx_translator *t, const cleat_node *node, int s, int parts, int where) {
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const int64_t side = node->in[0]->shape[0] / parts, rank = node->in[0]->shape[1];
    for (int q = 0; q < parts; ++q) {
        if ((where >> 4 * q & 15) != s) continue;
        const char *block = OP(b, "Slice", cleat_onnx_in(t, node, 0), cleat_onnx_int(b, q * side),
                               cleat_onnx_int(b, (q + 1) * side), cleat_onnx_int(b, 0));
        return OP(b, "Pad", block, INTS(b, 0, q * rank, 0, (parts - 1 - q) * rank));
    }
    return OP(b, "Expand", cleat_onnx_number(b, 0), INTS(b, side, parts * rank));
}

void cleat_onnx_emit_block_diagonal(cleat_onnx_translator *t, const cleat_node *node) {
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const int parts = (int)cleat_onnx_attribute_of(t, node, "parts", 0);
    const int places = (int)cleat_onnx_attribute_of(t, node, "places", 0);
    const int where = (int)cleat_onnx_attribute_of(t, node, "where", 0);
    const char *rows[CLEAT_MAX_IN];
    if (parts < 1 || places > CLEAT_MAX_IN) return;
    for (int s = 0; s < places; ++s) rows[s] = rows_of_place(t, node, s, parts, where);
    const char *all = cleat_onnx_op(b, "Concat", ATTRIBUTES(CLEAT_ONNX_I("axis", 0)), rows, places);
    const char *factor = cleat_onnx_number(b, (float)cleat_onnx_attribute_of(t, node, "factor", 0));
    cleat_onnx_set(t, node, 0, OP(b, "Mul", all, factor));
}

void cleat_onnx_emit_chunk(cleat_onnx_translator *t, const cleat_node *node) {
    const char *in[] = {cleat_onnx_in(t, node, 0)}, *parts[CLEAT_MAX_OUT];
    const cleat_onnx_attribute axis = CLEAT_ONNX_I("axis", -1);
    const cleat_onnx_node split = {
        .type = "Split", .in = in, .n_in = 1, .attributes = &axis, .n_attributes = 1, .n_out = node->n_out};
    cleat_onnx_emit(cleat_onnx_of(t), &split, parts);
    for (int i = 0; i < node->n_out; ++i) cleat_onnx_set(t, node, i, parts[i]);
}

/* [B, H, W, (p, p, C)] -> [B, H, p, W, p, C] -> [B, H p, W p, C] */
void cleat_onnx_emit_depth_to_space(cleat_onnx_translator *t, const cleat_node *node) {
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const int64_t *y = node->out[0]->shape, patch = (int64_t)cleat_onnx_attribute_of(t, node, "patch", 0);
    if (patch < 1) return;
    const char *x =
        OP(b, "Reshape", cleat_onnx_in(t, node, 0), INTS(b, -1, y[1] / patch, y[2] / patch, patch, patch, y[3]));
    x = TRANSPOSE(b, x, 0, 1, 3, 2, 4, 5);
    cleat_onnx_set(t, node, 0, OP(b, "Reshape", x, INTS(b, -1, y[1], y[2], y[3])));
}

/* token [D] -> [B, 1, D], in front of x [B, L, D] */
void cleat_onnx_emit_prepend_token(cleat_onnx_translator *t, const cleat_node *node) {
    enum { X, TOKEN };
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const char *batch = cleat_onnx_dim_value(t, cleat_onnx_dim_of(t, node->in[X], 0));
    const char *shape = OP_WITH(b, "Concat", ATTRIBUTES(CLEAT_ONNX_I("axis", 0)), batch, INTS(b, 1, 1));
    const char *token = OP(b, "Expand", cleat_onnx_in(t, node, TOKEN), shape);
    cleat_onnx_set(t, node, 0,
                   OP_WITH(b, "Concat", ATTRIBUTES(CLEAT_ONNX_I("axis", 1)), token, cleat_onnx_in(t, node, X)));
}

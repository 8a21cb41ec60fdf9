/* ONNX: layers of sequences: linear, normalisation, embedding, positions, pooling, LSTM. */
#include "lib/shared_numbers.clh"
#include "onnx/translate.h"

#include "cleat/ops.h"
#include "ops/lstm/lstm.h"

#include <math.h>
#include <string.h>

void cleat_onnx_emit_linear(cleat_onnx_translator *t, const cleat_node *node) {
    enum { X, WEIGHT, BIAS, RESIDUAL };
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const char *weight = cleat_onnx_permuted(t, node, WEIGHT, (const int64_t[]){1, 0});
    const char *y = OP(b, "MatMul", cleat_onnx_in(t, node, X), weight);
    if (cleat_onnx_has(node, BIAS)) y = OP(b, "Add", y, cleat_onnx_in(t, node, BIAS));
    if (cleat_onnx_has(node, RESIDUAL)) y = OP(b, "Add", y, cleat_onnx_in(t, node, RESIDUAL));
    cleat_onnx_set(t, node, 0, y);
}

void cleat_onnx_emit_layer_norm(cleat_onnx_translator *t, const cleat_node *node) {
    enum { X, GAMMA, BETA };
    const char *in[] = {cleat_onnx_in(t, node, X), cleat_onnx_in(t, node, GAMMA), NULL};
    const bool has_beta = cleat_onnx_has(node, BETA);
    if (has_beta) in[BETA] = cleat_onnx_in(t, node, BETA);
    cleat_onnx_set(t, node, 0,
                   cleat_onnx_op(cleat_onnx_of(t), "LayerNormalization",
                                 ATTRIBUTES(CLEAT_ONNX_I("axis", -1),
                                            CLEAT_ONNX_F("epsilon", (float)cleat_onnx_attribute_of(t, node, "eps", 0))),
                                 in, has_beta ? 3 : 2));
}

void cleat_onnx_emit_layer_scale(cleat_onnx_translator *t, const cleat_node *node) {
    enum { X, SCALE, RESIDUAL };
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const char *y = OP(b, "Mul", cleat_onnx_in(t, node, X), cleat_onnx_in(t, node, SCALE));
    cleat_onnx_set(t, node, 0, cleat_onnx_has(node, RESIDUAL) ? OP(b, "Add", y, cleat_onnx_in(t, node, RESIDUAL)) : y);
}

/* A token that is not in the table gives zeros; ONNX's Gather would count a negative one from the end. */
void cleat_onnx_emit_embedding(cleat_onnx_translator *t, const cleat_node *node) {
    enum { TOKENS, TABLE };
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const char *tokens = cleat_onnx_in(t, node, TOKENS);
    const char *last = cleat_onnx_whole(b, (int32_t)node->in[TABLE]->shape[0] - 1);
    const char *known = OP(b, "Clip", tokens, cleat_onnx_whole(b, 0), last);
    const char *valid = cleat_onnx_cast(b, OP(b, "Equal", tokens, known), CLEAT_ONNX_FLOAT);
    const char *rows = OP(b, "Gather", cleat_onnx_in(t, node, TABLE), known);
    cleat_onnx_set(t, node, 0, OP(b, "Mul", rows, OP(b, "Unsqueeze", valid, cleat_onnx_int(b, -1))));
}

/* A column's turns per position as a sum of numbers of 8 bits and a small rest: their products with positions below
 * 2^16 are exact, and so are the fractions of a turn; l w itself would have lost them (cl/positional_encoding.cl). */
enum { PARTS = 3, PART_BITS = 8 };

static float leading_bits(double value) {
    int exponent;
    if (value == 0) return 0;
    frexp(value, &exponent);
    const double unit = ldexp(1, exponent - PART_BITS);
    return (float)(floor(value / unit) * unit);
}

/* parts [PARTS][columns], rest [columns], phase [columns]: a quarter turn makes a cosine of a sine. */
static void fill_turns(const cleat_rotary_angles *angles, float *parts, float *rest, float *phase) {
    const int64_t columns = angles->width;
    for (int64_t c = 0; c < columns; ++c) {
        double turns = cleat_rotary_frequency(angles, c / 2) / (2 * M_PI);
        for (int k = 0; k < PARTS; ++k) {
            parts[k * columns + c] = leading_bits(turns);
            turns -= (double)parts[k * columns + c];
        }
        rest[c] = (float)turns;
        phase[c] = c % 2 ? 0.25f : 0.0f;
    }
}

/* positions f32 [..., 1] -> sine and cosine [..., angles->width] */
static const char *waves(cleat_onnx_translator *t, const char *positions, const cleat_rotary_angles *angles) {
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const int64_t columns = angles->width;
    float *parts = cleat_onnx_alloc(b, (size_t)(PARTS + 2) * (size_t)columns, sizeof *parts);
    if (!parts) return "";
    float *rest = parts + PARTS * columns, *phase = rest + columns;
    fill_turns(angles, parts, rest, phase);
    const char *turns = OP(b, "Add", OP(b, "Mul", positions, cleat_onnx_table(b, "turns_rest", 1, &columns, rest)),
                           cleat_onnx_table(b, "turns_phase", 1, &columns, phase));
    for (int k = PARTS - 1; k >= 0; --k) {
        const char *part = cleat_onnx_table(b, "turns", 1, &columns, parts + k * columns);
        part = OP(b, "Mul", positions, part);
        turns = OP(b, "Add", turns, OP(b, "Sub", part, OP(b, "Floor", part)));
    }
    turns = OP(b, "Sub", turns, OP(b, "Round", turns));
    return OP(b, "Sin", OP(b, "Mul", turns, cleat_onnx_number(b, (float)(2 * M_PI))));
}

/* f32 [L, 1] */
static const char *column_of_positions(cleat_onnx_translator *t, cleat_onnx_dim length) {
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const char *positions = cleat_onnx_cast(b, cleat_onnx_positions(t, length), CLEAT_ONNX_FLOAT);
    return OP(b, "Unsqueeze", positions, cleat_onnx_int(b, 1));
}

void cleat_onnx_emit_positional_encoding(cleat_onnx_translator *t, const cleat_node *node) {
    enum { X, LENGTHS };
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const cleat_tensor *x = node->in[X];
    const cleat_onnx_dim length = cleat_onnx_dim_of(t, x, x->rank - 2);
    const bool ends = cleat_onnx_has(node, LENGTHS);
    const cleat_rotary_angles angles = {.width = ends ? cleat_width(x) / 2 : cleat_width(x), .base = 1e4, .factor = 1};
    const char *positions = column_of_positions(t, length), *encoding = waves(t, positions, &angles); /* [L, D] */
    if (ends) { /* [B, L, D/2]: the position from the end of the sample */
        const char *lengths = cleat_onnx_cast(b, cleat_onnx_in(t, node, LENGTHS), CLEAT_ONNX_FLOAT);
        const char *last = OP(b, "Sub", lengths, cleat_onnx_number(b, 1));
        last = OP(b, "Unsqueeze", last, INTS(b, 1, 2)); /* [B, 1, 1] */
        const char *back = OP(b, "Max", OP(b, "Sub", last, positions), cleat_onnx_number(b, 0));
        const char *from_end = waves(t, back, &angles);
        encoding = OP(b, "Expand", encoding, OP(b, "Shape", from_end));
        encoding = OP_WITH(b, "Concat", ATTRIBUTES(CLEAT_ONNX_I("axis", -1)), encoding, from_end);
    }
    cleat_onnx_set(t, node, 0, OP(b, "Add", cleat_onnx_in(t, node, X), encoding));
}

void cleat_onnx_emit_rotary_table(cleat_onnx_translator *t, const cleat_node *node) {
    const cleat_rotary_angles angles = {.width = (int64_t)cleat_onnx_attribute_of(t, node, "angles.width", 0),
                                        .base = cleat_onnx_attribute_of(t, node, "angles.base", 0),
                                        .factor = cleat_onnx_attribute_of(t, node, "angles.factor", 0),
                                        .old_length = (int64_t)cleat_onnx_attribute_of(t, node, "angles.old_length", 0),
                                        .low_turns = (float)cleat_onnx_attribute_of(t, node, "angles.low_turns", 0),
                                        .high_turns = (float)cleat_onnx_attribute_of(t, node, "angles.high_turns", 0)};
    if (angles.width < 2) return;
    cleat_onnx_set(t, node, 0, waves(t, column_of_positions(t, cleat_onnx_dim_of(t, node->out[0], 0)), &angles));
}

/* x[first : end] on `axis` */
static const char *part_of(cleat_onnx_builder *b, const char *x, int64_t first, int64_t end, int64_t axis) {
    return OP(b, "Slice", x, cleat_onnx_int(b, first), cleat_onnx_int(b, end), cleat_onnx_int(b, axis));
}

/* Halves of each of the first heads turn by the angles of their place; the other heads stay. */
void cleat_onnx_emit_rotary(cleat_onnx_translator *t, const cleat_node *node) {
    enum { X, TABLE, POSITIONS };
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const int64_t heads = (int64_t)cleat_onnx_attribute_of(t, node, "heads", 0), width = node->in[TABLE]->shape[1];
    const int64_t turning = (int64_t)cleat_onnx_attribute_of(t, node, "turning", 0), columns = cleat_width(node->in[X]);
    if (heads < 1 || turning < 1) return;
    if (cleat_onnx_has(node, POSITIONS) || columns != heads * width ||
        cleat_onnx_attribute_of(t, node, "interleaved", 0) != 0)
        cleat_onnx_node_fail(t, node, "given positions, parts of heads, neighbours as pairs");
    const char *x = OP(b, "Reshape", cleat_onnx_in(t, node, X), INTS(b, 0, 0, heads, width));
    const char *turned = part_of(b, x, 0, turning, 2), *table = cleat_onnx_in(t, node, TABLE);
    table = OP(b, "Reshape", table, INTS(b, -1, 1, width / 2, 2)); /* [L, 1, W/2, (sine, cosine)] */
    const char *s = OP(b, "Squeeze", part_of(b, table, 0, 1, 3), cleat_onnx_int(b, 3));
    const char *c = OP(b, "Squeeze", part_of(b, table, 1, 2, 3), cleat_onnx_int(b, 3));
    const char *low = part_of(b, turned, 0, width / 2, 3), *high = part_of(b, turned, width / 2, width, 3);
    const char *to_low = OP(b, "Sub", OP(b, "Mul", low, c), OP(b, "Mul", high, s));
    const char *to_high = OP(b, "Add", OP(b, "Mul", high, c), OP(b, "Mul", low, s));
    const char *y = OP_WITH(b, "Concat", ATTRIBUTES(CLEAT_ONNX_I("axis", 3)), to_low, to_high);
    if (turning < heads)
        y = OP_WITH(b, "Concat", ATTRIBUTES(CLEAT_ONNX_I("axis", 2)), y, part_of(b, x, turning, heads, 2));
    cleat_onnx_set(t, node, 0, OP(b, "Reshape", y, INTS(b, 0, 0, columns)));
}

/* Rows first + l of the table for positions l; zeros if it has no such row. */
void cleat_onnx_emit_position_embedding(cleat_onnx_translator *t, const cleat_node *node) {
    enum { X, TABLE };
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const int32_t first = (int32_t)cleat_onnx_attribute_of(t, node, "first", 0);
    const int32_t rows = (int32_t)node->in[TABLE]->shape[0];
    const cleat_onnx_dim length = cleat_onnx_dim_of(t, node->in[X], node->in[X]->rank - 2);
    const char *table = cleat_onnx_in(t, node, TABLE), *found;
    if (cleat_onnx_is_fixed(length) && first + length.factor <= rows) {
        found = OP(b, "Slice", table, cleat_onnx_int(b, first), cleat_onnx_int(b, first + length.factor),
                   cleat_onnx_int(b, 0));
    } else {
        const char *wanted = OP(b, "Add", cleat_onnx_positions(t, length), cleat_onnx_whole(b, first));
        const char *known = OP(b, "Less", wanted, cleat_onnx_whole(b, rows));
        found = OP(b, "Gather", table, OP(b, "Min", wanted, cleat_onnx_whole(b, rows - 1)));
        found = OP(b, "Where", OP(b, "Unsqueeze", known, cleat_onnx_int(b, 1)), found, cleat_onnx_number(b, 0));
    }
    cleat_onnx_set(t, node, 0, OP(b, "Add", cleat_onnx_in(t, node, X), found));
}

/* f32 [B, 1]: 0 for samples without rows, else 1. */
static const char *has_rows(cleat_onnx_builder *b, const char *lengths) {
    const char *some = OP(b, "Greater", lengths, cleat_onnx_whole(b, 0));
    return OP(b, "Unsqueeze", cleat_onnx_cast(b, some, CLEAT_ONNX_FLOAT), cleat_onnx_int(b, 1));
}

/* x [B, L, D] -> [B, D]; lengths NULL: all rows */
static const char *mean_of(cleat_onnx_translator *t, const cleat_node *node, const char *x, const char *lengths) {
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const int64_t rows = 1;
    if (!lengths)
        return OP_WITH(b, "ReduceMean", ATTRIBUTES(CLEAT_ONNX_IS("axes", &rows, 1), CLEAT_ONNX_I("keepdims", 0)), x);
    const char *mask = cleat_onnx_mask(t, node, 1, cleat_onnx_dim_of(t, node->in[0], 1));
    x = OP(b, "Where", OP(b, "Unsqueeze", mask, cleat_onnx_int(b, 2)), x, cleat_onnx_number(b, 0));
    const char *sum = OP_WITH(b, "ReduceSum", ATTRIBUTES(CLEAT_ONNX_I("keepdims", 0)), x, cleat_onnx_int(b, 1));
    const char *count = OP(b, "Max", lengths, cleat_onnx_whole(b, 1));
    count = cleat_onnx_cast(b, count, CLEAT_ONNX_FLOAT);
    return OP(b, "Div", sum, OP(b, "Unsqueeze", count, cleat_onnx_int(b, 1)));
}

/* Row lengths - 1 of each sample. */
static const char *last_of(cleat_onnx_builder *b, const char *x, const char *lengths) {
    const char *last = OP(b, "Max", OP(b, "Sub", lengths, cleat_onnx_whole(b, 1)), cleat_onnx_whole(b, 0));
    last = OP(b, "Unsqueeze", cleat_onnx_cast(b, last, CLEAT_ONNX_INT64), cleat_onnx_int(b, 1)); /* [B, 1] */
    return OP_WITH(b, "GatherND", ATTRIBUTES(CLEAT_ONNX_I("batch_dims", 1)), x, last);
}

void cleat_onnx_emit_pool(cleat_onnx_translator *t, const cleat_node *node) {
    enum { X, LENGTHS };
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const int mode = (int)cleat_onnx_attribute_of(t, node, "mode", 0);
    const char *x = cleat_onnx_in(t, node, X), *lengths = cleat_onnx_in(t, node, LENGTHS), *y;
    if (mode == POOL_MEAN) {
        cleat_onnx_set(t, node, 0, mean_of(t, node, x, lengths));
        return;
    }
    if (mode == POOL_LAST && lengths)
        y = last_of(b, x, lengths);
    else
        y = OP_WITH(b, "Gather", ATTRIBUTES(CLEAT_ONNX_I("axis", 1)), x,
                    cleat_onnx_whole(b, mode == POOL_LAST ? -1 : 0));
    cleat_onnx_set(t, node, 0, lengths ? OP(b, "Mul", y, has_rows(b, lengths)) : y);
}

/* Gates of ONNX are in the order i, o, f, c, those of cleat in i, f, g, o; along axis 0. */
static const char *reorder_gates(cleat_onnx_builder *b, const char *x) {
    const char *gates[4];
    const cleat_onnx_attribute axis = CLEAT_ONNX_I("axis", 0);
    cleat_onnx_emit(
        b, &(cleat_onnx_node){.type = "Split", .in = &x, .n_in = 1, .attributes = &axis, .n_attributes = 1, .n_out = 4},
        gates);
    return OP_WITH(b, "Concat", ATTRIBUTES(axis), gates[0], gates[3], gates[1], gates[2]);
}

/* The op reads the products of inputs and weights, ONNX's LSTM the inputs: those of the preceding linear
 * node, whose translation is then unused. */
void cleat_onnx_emit_lstm(cleat_onnx_translator *t, const cleat_node *node) {
    enum { X, WEIGHT, BIAS, RESIDUAL };
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const cleat_node *products = node->in[CLEAT_LSTM_PRODUCTS]->producer;
    const int64_t hidden = cleat_width(node->out[CLEAT_LSTM_H]), gates = 4 * hidden;
    if (!products || strcmp(products->op->name, "linear") != 0 || cleat_onnx_has(products, RESIDUAL)) {
        cleat_onnx_node_fail(t, node, "its products are not those of a linear layer");
        return;
    }
    const char *first = cleat_onnx_int(b, 0);
    float *zeros = cleat_onnx_alloc(b, (size_t)gates, sizeof *zeros);
    if (!zeros) return;
    const char *none = cleat_onnx_table(b, "no_bias", 1, &gates, zeros);
    const char *bias = cleat_onnx_has(products, BIAS) ? reorder_gates(b, cleat_onnx_in(t, products, BIAS)) : none;
    bias = OP_WITH(b, "Concat", ATTRIBUTES(CLEAT_ONNX_I("axis", 0)), bias, none);
    const char *in[] = {
        TRANSPOSE(b, cleat_onnx_in(t, products, X), 1, 0, 2), /* [L, B, I] */
        OP(b, "Unsqueeze", reorder_gates(b, cleat_onnx_in(t, products, WEIGHT)), first),
        OP(b, "Unsqueeze", reorder_gates(b, cleat_onnx_in(t, node, CLEAT_LSTM_WEIGHT)), first),
        OP(b, "Unsqueeze", bias, first),
    };
    const char *h = cleat_onnx_op(b, "LSTM", ATTRIBUTES(CLEAT_ONNX_I("hidden_size", hidden)), in, 4); /* [L, 1, B, H] */
    h = OP(b, "Squeeze", h, cleat_onnx_int(b, 1));
    cleat_onnx_set(t, node, CLEAT_LSTM_H, TRANSPOSE(b, h, 1, 0, 2));
}

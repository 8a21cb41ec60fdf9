/* ONNX: attention, composed of matrix products and a softmax. */
#include "onnx/translate.h"
#include "ops/attention/disentangled.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void split(cleat_onnx_builder *b, const char *x, int n, const char **parts) {
    const cleat_onnx_attribute axis = CLEAT_ONNX_I("axis", -1);
    cleat_onnx_emit(
        b, &(cleat_onnx_node){.type = "Split", .in = &x, .n_in = 1, .attributes = &axis, .n_attributes = 1, .n_out = n},
        parts);
}

/* x [B, L, D] -> [B, H, L, D/H], or transposed [B, H, D/H, L] */
static const char *heads_of(cleat_onnx_builder *b, const char *x, int64_t heads, int64_t head, bool transposed) {
    x = OP(b, "Reshape", x, INTS(b, 0, 0, heads, head));
    return transposed ? TRANSPOSE(b, x, 0, 2, 3, 1) : TRANSPOSE(b, x, 0, 2, 1, 3);
}

/* softmax(scores) v -> [B, L, D]. scores [B, H, L, S], v [B, H, S, D/H], mask bool [B, L] or NULL */
static const char *attend(cleat_onnx_builder *b, const char *scores, const char *v, const char *mask, int64_t width) {
    if (mask) /* finite, because a sample may have no keys at all */
        scores = OP(b, "Where", OP(b, "Unsqueeze", mask, INTS(b, 1, 2)), scores, cleat_onnx_number(b, -FLT_MAX));
    const char *y = OP(b, "MatMul", OP_WITH(b, "Softmax", ATTRIBUTES(CLEAT_ONNX_I("axis", -1)), scores), v);
    y = OP(b, "Reshape", TRANSPOSE(b, y, 0, 2, 1, 3), INTS(b, 0, 0, width)); /* [B, L, D] */
    if (!mask) return y;
    return OP(b, "Where", OP(b, "Unsqueeze", mask, cleat_onnx_int(b, 2)), y, cleat_onnx_number(b, 0));
}

/* reach: keys that a query sees to each side; 0: all */
static void emit_attention(cleat_onnx_translator *t, const cleat_node *node, int64_t reach) {
    enum { Q, KV, LENGTHS };
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const int64_t heads = (int64_t)cleat_onnx_attribute_of(t, node, "heads", 0), width = cleat_width(node->out[0]);
    const char *parts[3] = {cleat_onnx_in(t, node, Q)}, *mask = NULL;
    if (heads < 1) return;
    if (cleat_onnx_has(node, KV))
        split(b, cleat_onnx_in(t, node, KV), 2, parts + 1);
    else
        split(b, cleat_onnx_in(t, node, Q), 3, parts);
    if (cleat_onnx_has(node, LENGTHS)) {
        if (cleat_onnx_has(node, KV)) cleat_onnx_node_fail(t, node, "lengths in cross-attention");
        mask = cleat_onnx_mask(t, node, LENGTHS, cleat_onnx_dim_of(t, node->in[Q], 1)); /* [B, L] */
    }
    const char *scale = cleat_onnx_number(b, 1.0f / sqrtf((float)(width / heads)));
    const char *q = OP(b, "Mul", heads_of(b, parts[0], heads, width / heads, false), scale);
    const char *scores = OP(b, "MatMul", q, heads_of(b, parts[1], heads, width / heads, true));
    if (reach > 0) {
        const char *keys = cleat_onnx_positions(t, cleat_onnx_dim_of(t, node->in[Q], 1)); /* [L] */
        const char *distances = OP(b, "Abs", OP(b, "Sub", OP(b, "Unsqueeze", keys, cleat_onnx_int(b, 1)), keys));
        scores = OP(b, "Where", OP(b, "LessOrEqual", distances, cleat_onnx_whole(b, (int32_t)reach)), scores,
                    cleat_onnx_number(b, -FLT_MAX));
    }
    cleat_onnx_set(t, node, 0, attend(b, scores, heads_of(b, parts[2], heads, width / heads, false), mask, width));
}

void cleat_onnx_emit_attention(cleat_onnx_translator *t, const cleat_node *node) {
    emit_attention(t, node, 0);
}

void cleat_onnx_emit_local_attention(cleat_onnx_translator *t, const cleat_node *node) {
    emit_attention(t, node, (int64_t)cleat_onnx_attribute_of(t, node, "reach", 0));
}

/* bool [L, L], or [B, 1, 1, L, L] with starts: whether query i sees key j. */
static const char *mask_of_pairs(cleat_onnx_translator *t, const cleat_node *node, int64_t window, int starts) {
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const char *keys = cleat_onnx_positions(t, cleat_onnx_dim_of(t, node->in[0], 1)); /* [L] */
    const char *queries = OP(b, "Unsqueeze", keys, cleat_onnx_int(b, 1));
    const char *mask = OP(b, "LessOrEqual", keys, queries);
    if (window > 0)
        mask = OP(b, "And", mask, OP(b, "Less", OP(b, "Sub", queries, keys), cleat_onnx_whole(b, (int32_t)window)));
    if (!cleat_onnx_has(node, starts)) return mask;
    const char *first = OP(b, "Unsqueeze", cleat_onnx_in(t, node, starts), INTS(b, 1, 2, 4)); /* [B, 1, 1, L, 1] */
    return OP(b, "And", mask, OP(b, "LessOrEqual", first, keys));
}

/* Heads of queries are in groups [K, H / K] that share a key head. */
void cleat_onnx_emit_causal_attention(cleat_onnx_translator *t, const cleat_node *node) {
    enum { Q, KV, STARTS };
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const int64_t heads = (int64_t)cleat_onnx_attribute_of(t, node, "heads", 0);
    const int64_t kv_heads = (int64_t)cleat_onnx_attribute_of(t, node, "kv_heads", 0);
    const int64_t window = (int64_t)cleat_onnx_attribute_of(t, node, "window", 0);
    double scale = cleat_onnx_attribute_of(t, node, "scale", 0);
    if (heads < 1 || kv_heads < 1) return;
    const int64_t head = cleat_width(node->out[0]) / heads, in_group = heads / kv_heads;
    if (scale == 0) scale = 1 / sqrt((double)head);
    const char *qkv = cleat_onnx_in(t, node, Q);
    if (cleat_onnx_has(node, KV))
        qkv = OP_WITH(b, "Concat", ATTRIBUTES(CLEAT_ONNX_I("axis", -1)), qkv, cleat_onnx_in(t, node, KV));
    qkv = OP(b, "Reshape", qkv, INTS(b, 0, 0, heads + 2 * kv_heads, head));
    const char *parts[3], *in[] = {qkv, INTS(b, heads, kv_heads, kv_heads)};
    const cleat_onnx_attribute axis = CLEAT_ONNX_I("axis", 2);
    cleat_onnx_emit(
        b, &(cleat_onnx_node){.type = "Split", .in = in, .n_in = 2, .attributes = &axis, .n_attributes = 1, .n_out = 3},
        parts);
    const char *q = OP(b, "Reshape", parts[0], INTS(b, 0, 0, kv_heads, in_group, head));
    q = OP(b, "Mul", TRANSPOSE(b, q, 0, 2, 3, 1, 4), cleat_onnx_number(b, (float)scale)); /* [B, K, H / K, L, D/H] */
    const char *k = OP(b, "Unsqueeze", TRANSPOSE(b, parts[1], 0, 2, 3, 1), cleat_onnx_int(b, 2));
    const char *v = OP(b, "Unsqueeze", TRANSPOSE(b, parts[2], 0, 2, 1, 3), cleat_onnx_int(b, 2));
    const char *mask = mask_of_pairs(t, node, window, STARTS);
    const char *scores = OP(b, "Where", mask, OP(b, "MatMul", q, k), cleat_onnx_number(b, -FLT_MAX));
    const char *weights = OP_WITH(b, "Softmax", ATTRIBUTES(CLEAT_ONNX_I("axis", -1)), scores);
    if (cleat_onnx_has(node, STARTS)) /* padding sees no key at all */
        weights = OP(b, "Where", mask, weights, cleat_onnx_number(b, 0));
    const char *y = TRANSPOSE(b, OP(b, "MatMul", weights, v), 0, 3, 1, 2, 4); /* [B, L, K, H / K, D/H] */
    cleat_onnx_set(t, node, 0, OP(b, "Reshape", y, INTS(b, 0, 0, heads * head)));
}

/* Row of the position tensors for a distance between query and key. Beyond buckets / 2, PyTorch computes the
 * bucket in f32, and so does this function. */
static int64_t row_of(const cleat_disentangled_attr *attr, int64_t span, int64_t distance) {
    const int64_t mid = attr->buckets / 2, far = llabs(distance);
    int64_t bucket = far;
    if (attr->buckets > 0 && far > mid) {
        const float most = (float)(attr->max_relative_positions - 1) / (float)mid;
        bucket = mid + (int64_t)ceilf((float)log((float)far / (float)mid) / (float)log(most) * (float)(mid - 1));
    }
    if (distance < 0) bucket = -bucket;
    return span + (bucket < -span ? -span : bucket >= span ? span - 1 : bucket);
}

/* Rows by distance, i64 [2 most + 1] from -most to most; larger distances have the rows of its ends. */
static const char *table_of_rows(cleat_onnx_builder *b, const cleat_disentangled_attr *attr, int64_t span,
                                 int64_t *most) {
    char key[96];
    *most = attr->max_relative_positions > span ? attr->max_relative_positions : span;
    snprintf(key, sizeof key, "rows_of_distances_%d_%d", (int)attr->buckets, (int)attr->max_relative_positions);
    const char *found = cleat_onnx_kept(b, key);
    const int64_t size = 2 * *most + 1;
    int64_t *rows = found ? NULL : cleat_onnx_alloc(b, (size_t)size, sizeof *rows);
    if (!rows) return found ? found : "";
    for (int64_t i = 0; i < size; ++i) rows[i] = row_of(attr, span, i - *most);
    return cleat_onnx_keep(b, key, cleat_onnx_initializer(b, "rows_of_distances", CLEAT_ONNX_INT64, 1, &size, rows));
}

/* i64 [L, L]: the row for query i and key j, that is, for distance i - j; with `keys_first` for [j, i]. */
static const char *rows_of_pairs(cleat_onnx_translator *t, const cleat_node *node, bool keys_first) {
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const cleat_disentangled_attr *attr = (const cleat_disentangled_attr *)node->attr;
    const char *positions = cleat_onnx_positions(t, cleat_onnx_dim_of(t, node->in[CLEAT_DIS_QKV], 1));
    char key[200];
    int64_t most = 0;
    snprintf(key, sizeof key, "rows of pairs %d %d %d %.80s", (int)attr->buckets, (int)attr->max_relative_positions,
             keys_first, positions);
    const char *found = cleat_onnx_kept(b, key);
    if (found) return found;
    const char *table = table_of_rows(b, attr, cleat_disentangled_problem_of(node).span, &most);
    const char *queries = OP(b, "Unsqueeze", positions, cleat_onnx_int(b, keys_first ? 0 : 1));
    const char *keys = OP(b, "Unsqueeze", positions, cleat_onnx_int(b, keys_first ? 1 : 0));
    const char *distance = OP(b, "Clip", OP(b, "Sub", queries, keys), cleat_onnx_whole(b, (int32_t)-most),
                              cleat_onnx_whole(b, (int32_t)most));
    distance = OP(b, "Add", distance, cleat_onnx_whole(b, (int32_t)most));
    return cleat_onnx_keep(b, key, OP(b, "Gather", table, distance));
}

/* x [B, H, L, D/H] times the rows of `positions` [2S, D] for each pair -> [B, H, L, L], like `scores` */
static const char *position_scores(cleat_onnx_builder *b, const char *x, const char *positions, const char *rows,
                                   const char *scores, int64_t heads, int64_t head) {
    positions = TRANSPOSE(b, OP(b, "Reshape", positions, INTS(b, -1, heads, head)), 1, 2, 0); /* [H, D/H, 2S] */
    const char *all = OP(b, "MatMul", x, positions);                                          /* [B, H, L, 2S] */
    rows = OP(b, "Expand", rows, OP(b, "Shape", scores));
    return OP_WITH(b, "GatherElements", ATTRIBUTES(CLEAT_ONNX_I("axis", -1)), all, rows);
}

void cleat_onnx_emit_disentangled_attention(cleat_onnx_translator *t, const cleat_node *node) {
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const cleat_disentangled_problem p = cleat_disentangled_problem_of(node);
    const char *parts[3], *mask = NULL;
    if (p.heads < 1) return;
    split(b, cleat_onnx_in(t, node, CLEAT_DIS_QKV), 3, parts);
    const char *q = heads_of(b, parts[0], p.heads, p.head, false), *k = heads_of(b, parts[1], p.heads, p.head, false);
    const char *scores = OP(b, "MatMul", q, TRANSPOSE(b, k, 0, 1, 3, 2)), *sum = scores;
    if (cleat_onnx_has(node, CLEAT_DIS_POS_KEYS))
        sum = OP(b, "Add", sum,
                 position_scores(b, q, cleat_onnx_in(t, node, CLEAT_DIS_POS_KEYS), rows_of_pairs(t, node, false),
                                 scores, p.heads, p.head));
    if (cleat_onnx_has(node, CLEAT_DIS_POS_QUERIES)) { /* [B, H, keys, queries] */
        const char *by_keys = position_scores(b, k, cleat_onnx_in(t, node, CLEAT_DIS_POS_QUERIES),
                                              rows_of_pairs(t, node, true), scores, p.heads, p.head);
        sum = OP(b, "Add", sum, TRANSPOSE(b, by_keys, 0, 1, 3, 2));
    }
    sum = OP(b, "Mul", sum, cleat_onnx_number(b, (float)p.softmax_scale));
    if (cleat_onnx_has(node, CLEAT_DIS_LENGTHS))
        mask = cleat_onnx_mask(t, node, CLEAT_DIS_LENGTHS, cleat_onnx_dim_of(t, node->in[CLEAT_DIS_QKV], 1));
    cleat_onnx_set(t, node, 0, attend(b, sum, heads_of(b, parts[2], p.heads, p.head, false), mask, p.width));
}

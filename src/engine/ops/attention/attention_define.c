/* Definitions of attention, with relative positions or without, and of its gradient: an element needs the
 * scores of one query, of one key, or of the pairs at the distances of one row of the position tensors. */
#include "ops/attention/attention.h"
#include "ops/attention/disentangled.h"
#include "ops/lib/define.h"

#include <stdlib.h>

/* A node on the host: inputs (-1: none) and sizes. */
typedef struct host_attention {
    cleat_host_values *values;
    int qkv, kv, lengths, y, lse, dy, accums;
    const cleat_disentangled_attr *relative;          /* NULL: no relative positions */
    int64_t batch, queries, keys, width, heads, size; /* B, L, S, D, H, D / H */
    int64_t sharing, kv_width, window; /* heads of queries that share one of keys; window 0: not causal */
    int64_t reach;                     /* 0: not local */
    double scale;
} host_attention;

static host_attention attention_of(const cleat_node *node, cleat_host_values *values) {
    enum { Q, KV, LENGTHS, Y, LSE, DY, ACCUMS };
    const cleat_attention_problem p = cleat_attention_problem_of(node);
    return (host_attention){.values = values,
                            .qkv = Q,
                            .kv = p.self ? -1 : KV,
                            .lengths = LENGTHS,
                            .y = Y,
                            .lse = LSE,
                            .dy = DY,
                            .accums = ACCUMS,
                            .batch = p.batch,
                            .queries = p.queries,
                            .keys = p.keys,
                            .width = p.width,
                            .heads = p.heads,
                            .size = p.head,
                            .sharing = p.heads / p.kv_heads,
                            .kv_width = p.kv_width,
                            .window = p.causal ? p.window : 0,
                            .reach = p.reach,
                            .scale = p.scale};
}

static host_attention disentangled_of(const cleat_node *node, cleat_host_values *values) {
    const cleat_disentangled_problem p = cleat_disentangled_problem_of(node);
    return (host_attention){.values = values,
                            .qkv = CLEAT_DIS_QKV,
                            .kv = -1,
                            .lengths = CLEAT_DIS_LENGTHS,
                            .y = CLEAT_DIS_Y,
                            .lse = CLEAT_DIS_LSE,
                            .dy = CLEAT_DIS_DY,
                            .accums = CLEAT_DIS_ACCUMS,
                            .relative = (const cleat_disentangled_attr *)node->attr,
                            .batch = p.batch,
                            .queries = p.length,
                            .keys = p.length,
                            .width = p.width,
                            .heads = p.heads,
                            .size = p.head,
                            .sharing = 1,
                            .kv_width = p.width,
                            .scale = p.softmax_scale};
}

/* One head of one sample. */
typedef struct host_head {
    const host_attention *a;
    int64_t b, h, queries, keys; /* the sample's lengths */
} host_head;

static host_head head_of(const host_attention *a, int64_t b, int64_t h) {
    if (a->window > 0) return (host_head){.a = a, .b = b, .h = h, .queries = a->queries, .keys = a->keys};
    return (host_head){.a = a,
                       .b = b,
                       .h = h,
                       .queries = cleat_define_length(a->values, a->lengths, b, a->queries),
                       .keys = cleat_define_length(a->values, a->lengths, b, a->keys)};
}

static bool sees(const host_head *head, int64_t i, int64_t j) {
    const host_attention *a = head->a;
    if (a->reach > 0 && llabs(i - j) > a->reach) return false;
    if (a->window == 0) return i < head->queries && j < head->keys;
    const int32_t *starts = a->values->in[a->lengths].i;
    return j <= i && j > i - a->window && !(starts && j < starts[head->b * a->queries + i]);
}

/* --- rows of a head: [D / H] ---------------------------------------------------------------------------------- */

static const float *query(const host_head *head, int64_t i) {
    const host_attention *a = head->a;
    const int64_t width = a->width + (a->kv < 0 ? 2 * a->kv_width : 0);
    return a->values->in[a->qkv].f + (head->b * a->queries + i) * width + head->h * a->size;
}

/* `part`: 0 keys, 1 values */
static const float *key(const host_head *head, int64_t j, int part) {
    const host_attention *a = head->a;
    const bool self = a->kv < 0;
    const int64_t before = self ? a->width : 0, width = before + 2 * a->kv_width;
    return a->values->in[self ? a->qkv : a->kv].f + (head->b * a->keys + j) * width + before + part * a->kv_width +
           head->h / a->sharing * a->size;
}

/* Of y or dy. */
static const float *row(const host_head *head, int in, int64_t i) {
    const host_attention *a = head->a;
    return a->values->in[in].f + (head->b * a->queries + i) * a->width + head->h * a->size;
}

/* The position key or query (`in`) of a distance; NULL: there is none. */
static const float *position(const host_head *head, int in, int64_t distance) {
    const host_attention *a = head->a;
    if (!a->relative || !a->values->in[in].f) return NULL;
    return a->values->in[in].f + cleat_disentangled_row(a->relative, distance) * a->width + head->h * a->size;
}

/* --- scores --------------------------------------------------------------------------------------------------- */

static void add_dot(const host_head *head, cleat_expected_value *sum, const float *a, const float *b) {
    for (int64_t d = 0; d < head->a->size; ++d) cleat_define_add(sum, (double)a[d] * (double)b[d]);
    head->a->values->work += (double)head->a->size;
}

static cleat_expected_value dot(const host_head *head, const float *a, const float *b) {
    cleat_expected_value sum = {.value = 0};
    add_dot(head, &sum, a, b);
    return sum;
}

static cleat_expected_value score(const host_head *head, int64_t i, int64_t j) {
    const float *pos_key = position(head, CLEAT_DIS_POS_KEYS, i - j);
    const float *pos_query = position(head, CLEAT_DIS_POS_QUERIES, i - j);
    cleat_expected_value sum = dot(head, query(head, i), key(head, j, 0));
    if (pos_key) add_dot(head, &sum, query(head, i), pos_key);
    if (pos_query) add_dot(head, &sum, key(head, j, 0), pos_query);
    return (cleat_expected_value){.value = sum.value * head->a->scale, .size = sum.size * head->a->scale};
}

/* --- forward -------------------------------------------------------------------------------------------------- */

/* Element d of y's row i, or (d = -1) its log-sum-exp. The error of a score is relative in its weight. */
static cleat_expected_value define_row(const host_head *head, int64_t i, int64_t d) {
    double top = -INFINITY, steepest = 0, weights = 0, sum = 0, size = 0;
    for (int64_t j = 0; j < head->keys; ++j) {
        if (!sees(head, i, j)) continue;
        const cleat_expected_value s = score(head, i, j);
        const double shrink = s.value > top ? exp(top - s.value) : 1;
        const double weight = s.value > top ? 1 : exp(s.value - top);
        const double value = d < 0 ? 0 : (double)key(head, j, 1)[d];
        top = fmax(top, s.value);
        steepest = fmax(steepest, s.size);
        weights = weights * shrink + weight;
        sum = sum * shrink + weight * value;
        size = size * shrink + weight * fabs(value);
    }
    if (weights == 0) return (cleat_expected_value){.value = 0}; /* no keys */
    if (d < 0) return (cleat_expected_value){.value = top + log(weights), .size = 1 + fabs(top) + steepest};
    return (cleat_expected_value){
        .value = sum / weights, .size = size / weights * (1 + 2 * steepest), .rounded = size / weights};
}

static cleat_expected_value define(const host_attention *a, int output, int64_t element) {
    if (output == 1) { /* [B, H, L] */
        const host_head head = head_of(a, element / a->queries / a->heads, element / a->queries % a->heads);
        return define_row(&head, element % a->queries, -1);
    }
    const int64_t column = element % a->width, at = element / a->width;
    const host_head head = head_of(a, at / a->queries, column / a->size);
    return define_row(&head, at % a->queries, column % a->size);
}

cleat_expected_value cleat_attention_define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const host_attention a = attention_of(node, values);
    return define(&a, values->output, element);
}

cleat_expected_value cleat_disentangled_define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const host_attention a = disentangled_of(node, values);
    return define(&a, values->output, element);
}

/* --- gradient ------------------------------------------------------------------------------------------------- */

/* The weight of key j for query i; size: with the error of the score. */
static cleat_expected_value weight_of(const host_head *head, int64_t i, int64_t j) {
    const host_attention *a = head->a;
    const double lse = (double)a->values->in[a->lse].f[(head->b * a->heads + head->h) * a->queries + i];
    const cleat_expected_value s = score(head, i, j);
    const double weight = exp(s.value - lse);
    return (cleat_expected_value){.value = weight, .size = weight * (1 + s.size + fabs(lse))};
}

/* The gradient of score i, j, without the factor of the scores; *weight: that of key j for query i. */
static cleat_expected_value dscore(const host_head *head, int64_t i, int64_t j, cleat_expected_value *weight) {
    const float *dy = row(head, head->a->dy, i);
    const cleat_expected_value delta = dot(head, row(head, head->a->y, i), dy);
    const cleat_expected_value dweight = dot(head, dy, key(head, j, 1));
    *weight = weight_of(head, i, j);
    return (cleat_expected_value){.value = weight->value * (dweight.value - delta.value),
                                  .size = weight->size * (dweight.size + delta.size)};
}

static void add_product(cleat_expected_value *sum, cleat_expected_value term, double factor) {
    sum->value += term.value * factor;
    sum->size += term.size * fabs(factor);
    sum->rounded += term.size * fabs(factor);
}

static void define_dq(const host_head *head, int64_t i, int64_t d, cleat_expected_value *sum) {
    const double scale = head->a->scale;
    for (int64_t j = 0; j < head->keys; ++j) {
        if (!sees(head, i, j)) continue;
        const float *pos_key = position(head, CLEAT_DIS_POS_KEYS, i - j);
        cleat_expected_value weight;
        const cleat_expected_value ds = dscore(head, i, j, &weight);
        add_product(sum, ds, scale * (double)key(head, j, 0)[d]);
        if (pos_key) add_product(sum, ds, scale * (double)pos_key[d]);
    }
}

/* `part`: 0 the gradient of keys, 1 of values */
static void define_dkv(const host_head *head, int64_t j, int64_t d, int part, cleat_expected_value *sum) {
    const double scale = head->a->scale;
    for (int64_t i = 0; i < head->queries; ++i) {
        if (!sees(head, i, j)) continue;
        const float *pos_query = position(head, CLEAT_DIS_POS_QUERIES, i - j);
        cleat_expected_value weight;
        const cleat_expected_value ds = dscore(head, i, j, &weight);
        if (part == 1) {
            add_product(sum, weight, (double)row(head, head->a->dy, i)[d]);
            continue;
        }
        add_product(sum, ds, scale * (double)query(head, i)[d]);
        if (pos_query) add_product(sum, ds, scale * (double)pos_query[d]);
    }
}

static cleat_expected_value define_grad(const host_attention *a, int output, int64_t element) {
    cleat_expected_value sum = cleat_define_begin(a->values, a->accums + output, element);
    const int64_t before = output == 1 ? 0 : a->width, kv_width = output == 0 && a->kv >= 0 ? 0 : a->kv_width;
    const int64_t width = before + 2 * kv_width, rows = output == 1 ? a->keys : a->queries;
    const int64_t at = element / width, b = at / rows, column = element % width;
    if (column < before) {
        const host_head head = head_of(a, b, column / a->size);
        define_dq(&head, at % rows, column % a->size, &sum);
        return sum;
    }
    const int64_t in_part = (column - before) % kv_width, first = in_part / a->size * a->sharing;
    for (int64_t h = first; h < first + a->sharing; ++h) {
        const host_head head = head_of(a, b, h);
        define_dkv(&head, at % rows, in_part % a->size, (int)((column - before) / kv_width), &sum);
    }
    return sum;
}

cleat_expected_value cleat_attention_define_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const host_attention a = attention_of(node, values);
    return define_grad(&a, values->output, element);
}

/* Adds the pairs of one distance: of position keys (output 1) or of position queries. */
static void add_distance(const host_head *head, int64_t distance, int output, int64_t d, cleat_expected_value *sum) {
    for (int64_t i = distance > 0 ? distance : 0; i < head->queries && i - distance < head->keys; ++i) {
        const float *factor = output == 1 ? query(head, i) : key(head, i - distance, 0);
        cleat_expected_value weight;
        add_product(sum, dscore(head, i, i - distance, &weight), head->a->scale * (double)factor[d]);
    }
}

cleat_expected_value cleat_disentangled_define_grad(const cleat_node *node, cleat_host_values *values,
                                                    int64_t element) {
    const host_attention a = disentangled_of(node, values);
    if (values->output == 0) return define_grad(&a, 0, element);
    cleat_expected_value sum = cleat_define_begin(values, a.accums + values->output, element);
    const int64_t at = element / a.width, column = element % a.width; /* of [2 span, D] */
    for (int64_t distance = 1 - a.queries; distance < a.queries; ++distance) {
        if (cleat_disentangled_row(a.relative, distance) != at) continue;
        for (int64_t b = 0; b < a.batch; ++b) {
            const host_head head = head_of(&a, b, column / a.size);
            add_distance(&head, distance, values->output, column % a.size, &sum);
        }
    }
    return sum;
}

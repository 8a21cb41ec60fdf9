/* Definition of attention and its gradient: an element needs the scores of one query, or of one key. */
#include "ops/attention/attention.h"
#include "ops/lib/define.h"

enum { Q, KV, LENGTHS, Y, LSE, DY, ACCUM_Q, ACCUM_KV };

/* One head of one sample on the host. */
typedef struct host_head {
    const cleat_attention_problem *p;
    cleat_host_values *values;
    int64_t b, h, queries, keys; /* the sample's lengths */
} host_head;

static host_head head_of(const cleat_attention_problem *p, cleat_host_values *values, int64_t b, int64_t h) {
    return (host_head){.p = p,
                       .values = values,
                       .b = b,
                       .h = h,
                       .queries = cleat_define_length(values, LENGTHS, b, p->queries),
                       .keys = cleat_define_length(values, LENGTHS, b, p->keys)};
}

/* Rows of the head: [D / H] */
static const float *query(const host_head *head, int64_t i) {
    const cleat_attention_problem *p = head->p;
    const int64_t width = (p->self ? 3 : 1) * p->width;
    return head->values->in[Q].f + (head->b * p->queries + i) * width + head->h * p->head;
}

/* `part`: 0 keys, 1 values */
static const float *key(const host_head *head, int64_t j, int part) {
    const cleat_attention_problem *p = head->p;
    const int64_t width = (p->self ? 3 : 2) * p->width, first = (p->self ? 1 + part : part) * p->width;
    return head->values->in[p->self ? Q : KV].f + (head->b * p->keys + j) * width + first + head->h * p->head;
}

/* Of y or dy. */
static const float *row(const host_head *head, int in, int64_t i) {
    const cleat_attention_problem *p = head->p;
    return head->values->in[in].f + (head->b * p->queries + i) * p->width + head->h * p->head;
}

static cleat_defined dot(const host_head *head, const float *a, const float *b) {
    cleat_defined sum = {.value = 0};
    for (int64_t d = 0; d < head->p->head; ++d) cleat_define_add(&sum, (double)a[d] * (double)b[d]);
    head->values->work += (double)head->p->head;
    return sum;
}

static cleat_defined score(const host_head *head, int64_t i, int64_t j) {
    const double scale = 1 / sqrt((double)head->p->head);
    cleat_defined sum = dot(head, query(head, i), key(head, j, 0));
    return (cleat_defined){.value = sum.value * scale, .size = sum.size * scale};
}

/* Element d of y's row i, or (d = -1) its log-sum-exp. The error of a score is relative in its weight. */
static cleat_defined define_row(const host_head *head, int64_t i, int64_t d) {
    double top = -INFINITY, steepest = 0, weights = 0, sum = 0, size = 0;
    if (i >= head->queries || head->keys == 0) return (cleat_defined){.value = 0};
    for (int64_t j = 0; j < head->keys; ++j) {
        const cleat_defined s = score(head, i, j);
        const double shrink = s.value > top ? exp(top - s.value) : 1;
        const double weight = s.value > top ? 1 : exp(s.value - top);
        const double value = d < 0 ? 0 : (double)key(head, j, 1)[d];
        top = fmax(top, s.value);
        steepest = fmax(steepest, s.size);
        weights = weights * shrink + weight;
        sum = sum * shrink + weight * value;
        size = size * shrink + weight * fabs(value);
    }
    if (d < 0) return (cleat_defined){.value = top + log(weights), .size = 1 + fabs(top) + steepest};
    return (cleat_defined){
        .value = sum / weights, .size = size / weights * (1 + 2 * steepest), .rounded = size / weights};
}

cleat_defined cleat_attention_define(const cleat_node *node, cleat_host_values *values, int output, int64_t element) {
    const cleat_attention_problem p = cleat_attention_problem_of(node);
    if (output == 1) { /* [B, H, L] */
        const host_head head = head_of(&p, values, element / p.queries / p.heads, element / p.queries % p.heads);
        return define_row(&head, element % p.queries, -1);
    }
    const int64_t column = element % p.width, at = element / p.width;
    const host_head head = head_of(&p, values, at / p.queries, column / p.head);
    return define_row(&head, at % p.queries, column % p.head);
}

/* --- gradient ------------------------------------------------------------------------------------------------- */

/* The weight of key j for query i; size: with the error of the score. */
static cleat_defined weight_of(const host_head *head, int64_t i, int64_t j) {
    const double lse = (double)head->values->in[LSE].f[(head->b * head->p->heads + head->h) * head->p->queries + i];
    const cleat_defined s = score(head, i, j);
    const double weight = exp(s.value - lse);
    return (cleat_defined){.value = weight, .size = weight * (1 + s.size + fabs(lse))};
}

/* The gradient of score i, j, without the factor of the scores; *weight: that of key j for query i. */
static cleat_defined dscore(const host_head *head, int64_t i, int64_t j, cleat_defined *weight) {
    const cleat_defined delta = dot(head, row(head, Y, i), row(head, DY, i));
    const cleat_defined dweight = dot(head, row(head, DY, i), key(head, j, 1));
    *weight = weight_of(head, i, j);
    return (cleat_defined){.value = weight->value * (dweight.value - delta.value),
                           .size = weight->size * (dweight.size + delta.size)};
}

static void add_product(cleat_defined *sum, cleat_defined term, double factor) {
    sum->value += term.value * factor;
    sum->size += term.size * fabs(factor);
    sum->rounded += term.size * fabs(factor);
}

static void define_dq(const host_head *head, int64_t i, int64_t d, cleat_defined *sum) {
    const double scale = 1 / sqrt((double)head->p->head);
    for (int64_t j = 0; i < head->queries && j < head->keys; ++j) {
        cleat_defined weight;
        add_product(sum, dscore(head, i, j, &weight), scale * (double)key(head, j, 0)[d]);
    }
}

/* `part`: 0 the gradient of keys, 1 of values */
static void define_dkv(const host_head *head, int64_t j, int64_t d, int part, cleat_defined *sum) {
    const double scale = 1 / sqrt((double)head->p->head);
    for (int64_t i = 0; j < head->keys && i < head->queries; ++i) {
        cleat_defined weight;
        const cleat_defined ds = dscore(head, i, j, &weight);
        if (part == 0)
            add_product(sum, ds, scale * (double)query(head, i)[d]);
        else
            add_product(sum, weight, (double)row(head, DY, i)[d]);
    }
}

cleat_defined cleat_attention_define_grad(const cleat_node *node, cleat_host_values *values, int output,
                                          int64_t element) {
    const cleat_attention_problem p = cleat_attention_problem_of(node);
    cleat_defined sum = cleat_define_begin(values, output == 0 ? ACCUM_Q : ACCUM_KV, element);
    const int64_t parts = output == 1 ? 2 : p.self ? 3 : 1, rows = output == 1 ? p.keys : p.queries;
    const int64_t at = element / (parts * p.width), column = element % p.width;
    const int part = (int)(element % (parts * p.width) / p.width) + (output == 1); /* queries, keys, values */
    const host_head head = head_of(&p, values, at / rows, column / p.head);
    if (part == 0)
        define_dq(&head, at % rows, column % p.head, &sum);
    else
        define_dkv(&head, at % rows, column % p.head, part - 1, &sum);
    return sum;
}

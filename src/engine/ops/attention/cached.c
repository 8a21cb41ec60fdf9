/* Attention of new tokens with a cache of keys and values, for generation. */
#include "cleat/ops.h"
#include "ops/lib/count.h"
#include "ops/lib/define.h"
#include "ops/lib/shared.h"

#include <math.h>

enum { CACHED_HEAD_MAX = 256 };

typedef struct cached_attr {
    int32_t heads, kv_heads, window;
} cached_attr;

/* out = {y T [B, L, D], cache} */
enum { Q, KV, POSITIONS, CACHE, CACHED_IN };
enum { Y, CACHE_OUT };

/* Sizes of a node. */
typedef struct cached_problem {
    int64_t batch, length, heads, head, sharing, values, capacity, window; /* values: elements of all heads of values */
    double scale;
} cached_problem;

static cached_problem problem_of(const cleat_node *node) {
    const cached_attr *a = (const cached_attr *)node->attr;
    const int64_t *q = node->in[Q]->shape, head = q[2] / a->heads;
    return (cached_problem){.batch = q[0],
                            .length = q[1],
                            .heads = a->heads,
                            .head = head,
                            .sharing = a->heads / a->kv_heads,
                            .values = a->kv_heads * head,
                            .capacity = node->in[CACHE]->shape[1],
                            .window = a->window,
                            .scale = 1 / sqrt((double)head)};
}

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *q = node->in[Q], *cache = node->in[CACHE];
    const cached_attr *a = (const cached_attr *)node->attr;
    if (!cleat_is_storage(q->dtype) || q->rank != 3)
        return cleat_infer_fail(node, error, "q is %s, it must be f32, f16 or bf16 [B, L, D]", CLEAT_DESCRIBED(q));
    if (a->heads < 1 || a->kv_heads < 1 || a->heads % a->kv_heads || q->shape[2] % a->heads || a->window < 0)
        return cleat_infer_fail(node, error, "q is %s, with %d heads, %d of keys, and window %d: they do not divide",
                                CLEAT_DESCRIBED(q), a->heads, a->kv_heads, a->window);
    const int64_t head = q->shape[2] / a->heads, row = 2 * a->kv_heads * head;
    if (head > CACHED_HEAD_MAX || q->shape[0] * q->shape[1] > CLEAT_MAX_ROWS / (a->heads > row ? a->heads : row))
        return cleat_infer_fail(node, error, "q is %s: heads have at most %d elements, and kv at most 2^30",
                                CLEAT_DESCRIBED(q), CACHED_HEAD_MAX);
    if (cache->role != CLEAT_ROLE_STATE || cache->rank != 3 || cache->shape[1] > INT32_MAX - 4096)
        return cleat_infer_fail(node, error, "the cache is %s, it must be a state (cleat_state) [B, C, %lld]",
                                CLEAT_DESCRIBED(cache), (long long)row);
    const int64_t kv_shape[] = {q->shape[0], q->shape[1], row}, cache_shape[] = {q->shape[0], cache->shape[1], row};
    cleat_status status = cleat_expect(node, KV, "kv", q->dtype, 3, kv_shape, error);
    if (!status) status = cleat_expect(node, CACHE, "the cache", q->dtype, 3, cache_shape, error);
    if (!status) status = cleat_expect(node, POSITIONS, "positions", CLEAT_I32, 2, q->shape, error);
    if (!status) status = cleat_set_output(node, Y, q->dtype, 3, q->shape, error);
    if (!status) cleat_set_output_state(node, CACHE_OUT, node->in[CACHE]);
    return status;
}

/* All keys of the cache count. */
static cleat_cost cost(const cleat_node *node) {
    const cached_problem p = problem_of(node);
    cleat_cost cost = cleat_elementwise_cost(node, 0);
    cost.flops = 4.0 * (double)(p.batch * p.length * p.heads * p.head) * (double)p.capacity;
    return cost;
}

/* --- launches --------------------------------------------------------------------------------------------------- */

static void begin(const cleat_node *node, cleat_binder *binder, const char *kernel) {
    const cached_problem p = problem_of(node);
    cleat_launch_kernel(binder, node, "attention/attention_cached.cl", kernel, node->in[Q]->dtype);
    CLEAT_LAUNCH_DEFINES(binder, {"DH", p.head}, {"SHARING", p.sharing});
    if (p.window) cleat_launch_define(binder, "WINDOW", p.window);
}

static void append(const cleat_node *node, cleat_binder *binder) {
    const cached_problem p = problem_of(node);
    begin(node, binder, "attention_cache_append");
    CLEAT_LAUNCH_TENSORS(binder, node->in[KV], node->in[POSITIONS], node->out[CACHE_OUT]);
    CLEAT_LAUNCH_I32(binder, {"batch", p.batch}, {"length", p.length}, {"capacity", p.capacity},
                     {"width", 2 * p.values});
    cleat_launch_items(binder, p.batch * p.length * 2 * p.values);
}

static void operands(cleat_binder *binder, const cached_problem *p) {
    CLEAT_LAUNCH_I32(binder, {"length", p->length}, {"heads", p->heads}, {"capacity", p->capacity},
                     {"values", p->values});
    cleat_launch_f32(binder, "softmax_scale", (float)p->scale);
}

static void bind_items(const cleat_node *node, cleat_binder *binder) {
    const cached_problem p = problem_of(node);
    append(node, binder);
    begin(node, binder, "attention_cached_items");
    CLEAT_LAUNCH_TENSORS(binder, node->in[Q], node->out[CACHE_OUT], node->in[POSITIONS], node->out[Y]);
    cleat_launch_i32(binder, "batch", (int32_t)p.batch);
    operands(binder, &p);
    cleat_launch_items(binder, p.batch * p.length * p.heads);
}

static const char *refuse_gpu(const cleat_node *node, const cleat_device_facts *facts) {
    (void)node;
    return facts->work_group < 64 ? "requires work-groups of at least 64 work-items" : NULL;
}

static void bind_gpu(const cleat_node *node, cleat_binder *binder) {
    const cached_problem p = problem_of(node);
    append(node, binder);
    begin(node, binder, "attention_cached_groups");
    CLEAT_LAUNCH_TENSORS(binder, node->in[Q], node->out[CACHE_OUT], node->in[POSITIONS], node->out[Y]);
    operands(binder, &p);
    cleat_launch_groups(binder, p.batch * p.length * p.heads);
}

static const cleat_variant variants[] = {
    {.name = "groups", .refuse = refuse_gpu, .bind = bind_gpu}, {.name = "items", .bind = bind_items}, {0}};

/* --- definition ------------------------------------------------------------------------------------------------- */

/* An element of the cache after the rows of kv are in it. */
static double cached_value(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const cached_problem p = problem_of(node);
    const int64_t row = element / (2 * p.values), b = row / p.capacity;
    for (int64_t l = b * p.length; l < (b + 1) * p.length; ++l)
        if (values->in[POSITIONS].i[l] == row % p.capacity)
            return cleat_host_value(values, KV, l * 2 * p.values + element % (2 * p.values));
    return cleat_host_value(values, CACHE, element);
}

static cleat_expected_value score_of(const cleat_node *node, cleat_host_values *values, int64_t query, int64_t key) {
    const cached_problem p = problem_of(node);
    cleat_expected_value sum = {.value = 0};
    for (int64_t d = 0; d < p.head; ++d)
        cleat_define_add(&sum, p.scale * cleat_host_value(values, Q, query + d) * cached_value(node, values, key + d));
    values->work += (double)(p.head * p.length);
    return sum;
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const cached_problem p = problem_of(node);
    if (values->output == CACHE_OUT) return (cleat_expected_value){.value = cached_value(node, values, element)};
    const int64_t query = element / p.head * p.head, h = query / p.head % p.heads, row = element / (p.heads * p.head);
    const int64_t position = values->in[POSITIONS].i[row], end = position < p.capacity ? position + 1 : 0;
    double top = -INFINITY, steepest = 0, weights = 0, sum = 0, size = 0;
    for (int64_t j = p.window && p.window <= position ? position - p.window + 1 : 0; j < end; ++j) {
        const int64_t key = (row / p.length * p.capacity + j) * 2 * p.values + h / p.sharing * p.head;
        const cleat_expected_value score = score_of(node, values, query, key);
        const double shrink = score.value > top ? exp(top - score.value) : 1;
        const double weight = score.value > top ? 1 : exp(score.value - top);
        const double value = cached_value(node, values, key + p.values + element % p.head);
        top = fmax(top, score.value);
        steepest = fmax(steepest, score.size);
        weights = weights * shrink + weight;
        sum = sum * shrink + weight * value;
        size = size * shrink + weight * fabs(value);
    }
    if (weights == 0) return (cleat_expected_value){.value = 0};
    return (cleat_expected_value){
        .value = sum / weights, .size = size / weights * (1 + 2 * steepest), .rounded = size / weights};
}

static const cleat_attribute attributes[] = {CLEAT_ATTRIBUTE(cached_attr, heads, CLEAT_ATTRIBUTE_I32),
                                             CLEAT_ATTRIBUTE(cached_attr, kv_heads, CLEAT_ATTRIBUTE_I32),
                                             CLEAT_ATTRIBUTE(cached_attr, window, CLEAT_ATTRIBUTE_I32),
                                             {.name = NULL}};

static const cleat_op cached_attention = {.name = "cached_attention",
                                          .infer = infer,
                                          .cost = cost,
                                          .variants = variants,
                                          .define = define,
                                          .autocast_inputs = CLEAT_IN(Q) | CLEAT_IN(KV) | CLEAT_IN(CACHE),
                                          .attributes = attributes};

cleat_tensor *cleat_cached_attention(cleat_graph *graph, cleat_tensor *q, cleat_tensor *kv, cleat_tensor *positions,
                                     cleat_tensor *cache, int heads, int kv_heads, int window) {
    cleat_tensor *in[CACHED_IN] = {[Q] = q, [KV] = kv, [POSITIONS] = positions, [CACHE] = cache};
    const cached_attr attr = {heads, kv_heads, window};
    return cleat_first_output(cleat_emit(graph, &cached_attention, &attr, sizeof attr, in, CACHED_IN));
}

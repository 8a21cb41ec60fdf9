/* Disentangled attention (He et al. 2021, DeBERTa) and its gradients, without an L x L tensor: shapes, costs,
 * buckets of distances. Launches: disentangled_launch.c.
 *
 * Scores read position keys and queries by the distance of two tokens only. The kernels expand them to one
 * row for each distance, so that a tile of pairs reads consecutive rows; only the construction of the tables
 * and the sums of their gradients use buckets. */
#include "ops/attention/disentangled.h"
#include "cleat/ops.h"
#include "ops/lib/count.h"
#include "ops/lib/shared.h"

#include <math.h>

enum { HEAD_MAX = 128 };

typedef cleat_disentangled_attr disentangled_attr;
typedef cleat_disentangled_problem problem;

static const disentangled_attr *attr_of(const cleat_node *node) {
    return (const disentangled_attr *)node->attr;
}

static int64_t span_of(const disentangled_attr *attr) {
    return attr->buckets > 0 ? attr->buckets : attr->max_relative_positions;
}

problem cleat_disentangled_problem_of(const cleat_node *node) {
    const cleat_tensor *qkv = node->in[CLEAT_DIS_QKV];
    const disentangled_attr *attr = attr_of(node);
    const int64_t width = qkv->shape[2] / 3, head = attr->heads > 0 ? width / attr->heads : 0;
    const int terms = 1 + (node->in[CLEAT_DIS_POS_KEYS] != NULL) + (node->in[CLEAT_DIS_POS_QUERIES] != NULL);
    return (problem){.batch = qkv->shape[0],
                     .length = qkv->shape[1],
                     .width = width,
                     .heads = attr->heads,
                     .head = head,
                     .span = span_of(attr),
                     .softmax_scale = head > 0 ? 1 / sqrt((double)head * terms) : 0};
}

/* --- buckets -------------------------------------------------------------------------------------------------- */

/* Of a distance above mid; PyTorch computes ceil(log(distance / mid) / log((max - 1) / mid) * (mid - 1)) in f32.
 * Logarithms rounded from double are the same in every C library. */
static int64_t far_bucket(const disentangled_attr *attr, int64_t distance) {
    const int32_t mid = attr->buckets / 2;
    const double most = (double)(attr->max_relative_positions - 1) / mid;
    return mid + (int64_t)ceilf((float)log((float)distance / (float)mid) / (float)log((float)most) * (float)(mid - 1));
}

int64_t cleat_disentangled_row(const disentangled_attr *attr, int64_t distance) {
    const int64_t far = distance < 0 ? -distance : distance, span = span_of(attr);
    const int64_t bucket = attr->buckets > 0 && far > attr->buckets / 2 ? far_bucket(attr, far) : far;
    const int64_t row = (distance < 0 ? -bucket : bucket) + span;
    return row < 0 ? 0 : row < 2 * span ? row : 2 * span - 1;
}

/* Kernels compute far_bucket without the ceil with errors of about 1e-5 of a bucket, which matters where the
 * exact value is an integer (at max - 1). Therefore they subtract `shift`, in the middle of the interval in
 * which the result is the same for all distances. */
cleat_disentangled_buckets cleat_disentangled_buckets_for(const disentangled_attr *attr, int64_t length) {
    if (attr->buckets <= 0) return (cleat_disentangled_buckets){.mid = INT32_MAX};
    const int32_t mid = attr->buckets / 2;
    const double most = (double)(attr->max_relative_positions - 1) / mid, slope = (mid - 1) / log2(most);
    double low = -0.5, high = 0.5;
    for (int64_t distance = mid + 1; distance < length; ++distance) {
        const double exact = log2((double)distance / mid) * slope;
        const double over = exact - (double)(far_bucket(attr, distance) - mid);
        if (over > low) low = over;
        if (over + 1 < high) high = over + 1;
    }
    return (cleat_disentangled_buckets){.mid = mid, .slope = (float)slope, .shift = (float)((low + high) / 2)};
}

/* --- gradient ------------------------------------------------------------------------------------------------- */

/* Multiply-adds per pair of a query and a key and per element of a head: 4 forward (three terms of the score, the
 * weighted values); 12 backward, four of which recompute scores and gradients of weights. In addition, one
 * exponential per pair and head. */
static cleat_cost cost_of(const cleat_node *node, int products) {
    enum { EXPONENTIAL = 40 };
    const problem p = cleat_disentangled_problem_of(node);
    cleat_cost cost = cleat_elementwise_cost(node, 0);
    const double pairs = (double)p.batch * (double)p.length * (double)p.length;
    cost.work = CLEAT_WORK_PRODUCT;
    cost.flops = pairs * (2.0 * products * (double)p.width + EXPONENTIAL * (double)p.heads);
    return cost;
}

static cleat_cost cost_grad(const cleat_node *node) {
    return cost_of(node, 12);
}

static const cleat_op disentangled_attention_grad = {.name = "disentangled_attention_grad",
                                                     .cost = cost_grad,
                                                     .variants = cleat_disentangled_grad_variants,
                                                     .define = cleat_disentangled_define_grad};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_tensor *const targets[] = {node->in[CLEAT_DIS_QKV], node->in[CLEAT_DIS_POS_KEYS],
                                     node->in[CLEAT_DIS_POS_QUERIES]};
    bool wanted = false;
    for (int i = 0; i < 3; ++i) wanted = wanted || cleat_requires_grad(targets[i]);
    if (!dout[0] || !wanted) return;
    cleat_tensor *in[CLEAT_DIS_ACCUMS];
    for (int i = 0; i < CLEAT_DIS_Y; ++i) in[i] = node->in[i];
    in[CLEAT_DIS_Y] = node->out[0];
    in[CLEAT_DIS_LSE] = node->out[1];
    in[CLEAT_DIS_DY] = dout[0];
    cleat_emit_grads_of(graph, node, &disentangled_attention_grad, in, CLEAT_DIS_ACCUMS, targets, 3);
}

/* --- forward -------------------------------------------------------------------------------------------------- */

static cleat_cost cost(const cleat_node *node) {
    return cost_of(node, 4);
}

static cleat_status check_qkv(const cleat_node *node, cleat_error *error) {
    const cleat_tensor *qkv = node->in[CLEAT_DIS_QKV];
    const long long heads = attr_of(node)->heads;
    if (!cleat_is_storage(qkv->dtype) || qkv->rank != 3)
        return cleat_infer_fail(node, error, "qkv is %s, it must be [B, L, 3D] of f32, f16 or bf16",
                                CLEAT_DESCRIBED(qkv));
    if (heads < 1 || qkv->shape[2] % (3 * heads) != 0)
        return cleat_infer_fail(node, error, "qkv is %s: its last dimension must be a multiple of 3 times %lld heads",
                                CLEAT_DESCRIBED(qkv), heads);
    const long long head = qkv->shape[2] / (3 * heads);
    if (head < 1 || head > HEAD_MAX)
        return cleat_infer_fail(node, error,
                                "qkv is %s with %lld heads: a head has %lld elements, 1 to %d are supported",
                                CLEAT_DESCRIBED(qkv), heads, head, HEAD_MAX);
    return CLEAT_OK;
}

static cleat_status check_buckets(const cleat_node *node, cleat_error *error) {
    const disentangled_attr *attr = attr_of(node);
    const int32_t positions = attr->max_relative_positions;
    if (positions < 1)
        return cleat_infer_fail(node, error, "max_relative_positions is %d, it must be at least 1", positions);
    if (attr->buckets > 0 && (attr->buckets < 2 || positions - 1 <= attr->buckets / 2))
        return cleat_infer_fail(node, error,
                                "%d buckets for %d relative positions: there must be at least 2, and less than twice "
                                "the number of positions minus one",
                                attr->buckets, positions);
    return CLEAT_OK;
}

static cleat_status check_positions(const cleat_node *node, cleat_error *error) {
    static const char *const names[] = {[CLEAT_DIS_POS_KEYS] = "pos_keys", [CLEAT_DIS_POS_QUERIES] = "pos_queries"};
    const problem p = cleat_disentangled_problem_of(node);
    const int64_t shape[] = {2 * p.span, p.width};
    if (!node->in[CLEAT_DIS_POS_KEYS] && !node->in[CLEAT_DIS_POS_QUERIES])
        return cleat_infer_fail(node, error, "neither pos_keys nor pos_queries is given: use cleat_attention");
    for (int i = CLEAT_DIS_POS_KEYS; i <= CLEAT_DIS_POS_QUERIES; ++i) {
        if (!node->in[i]) continue;
        cleat_status status = cleat_expect(node, i, names[i], node->in[CLEAT_DIS_QKV]->dtype, 2, shape, error);
        if (status) return status;
    }
    return CLEAT_OK;
}

/* Kernels count rows of heads, elements of a sequence, and elements of the tables by distance in int. */
static cleat_status check_size(const cleat_node *node, cleat_error *error) {
    const problem p = cleat_disentangled_problem_of(node);
    if (p.batch * p.length <= CLEAT_MAX_ROWS / p.heads && p.length <= INT32_MAX / (16 * HEAD_MAX) &&
        p.span <= CLEAT_MAX_ROWS / p.width)
        return CLEAT_OK;
    return cleat_infer_fail(node, error, "%lld samples of %lld rows with %lld heads, span %lld: more than 2^30 rows",
                            (long long)p.batch, (long long)p.length, (long long)p.heads, (long long)p.span);
}

static cleat_status infer(cleat_node *node, cleat_error *error) {
    cleat_status status = check_qkv(node, error);
    if (!status) status = check_buckets(node, error);
    if (!status) status = check_positions(node, error);
    if (!status) status = check_size(node, error);
    if (status) return status;
    const problem p = cleat_disentangled_problem_of(node);
    const int64_t y_shape[] = {p.batch, p.length, p.width}, lse_shape[] = {p.batch, p.heads, p.length};
    if (node->in[CLEAT_DIS_LENGTHS])
        status = cleat_expect(node, CLEAT_DIS_LENGTHS, "lengths", CLEAT_I32, 1, &p.batch, error);
    if (!status) status = cleat_set_output(node, 0, node->in[CLEAT_DIS_QKV]->dtype, 3, y_shape, error);
    if (!status) status = cleat_set_output(node, 1, CLEAT_F32, 3, lse_shape, error);
    return status;
}

static const cleat_op disentangled_attention = {
    .name = "disentangled_attention",
    .optional_inputs = CLEAT_IN(CLEAT_DIS_POS_KEYS) | CLEAT_IN(CLEAT_DIS_POS_QUERIES) | CLEAT_IN(CLEAT_DIS_LENGTHS),
    .infer = infer,
    .backward = backward,
    .cost = cost,
    .variants = cleat_disentangled_variants,
    .define = cleat_disentangled_define,
    .autocast_inputs = CLEAT_IN(CLEAT_DIS_QKV) | CLEAT_IN(CLEAT_DIS_POS_KEYS) | CLEAT_IN(CLEAT_DIS_POS_QUERIES)};

cleat_tensor *cleat_disentangled_attention(cleat_graph *graph, cleat_tensor *qkv, cleat_tensor *pos_keys,
                                           cleat_tensor *pos_queries, cleat_tensor *lengths,
                                           const cleat_disentangled_spec *spec) {
    cleat_tensor *in[] = {[CLEAT_DIS_QKV] = qkv,
                          [CLEAT_DIS_POS_KEYS] = pos_keys,
                          [CLEAT_DIS_POS_QUERIES] = pos_queries,
                          [CLEAT_DIS_LENGTHS] = lengths};
    const disentangled_attr attr = {.heads = spec->heads,
                                    .buckets = spec->buckets > 0 ? spec->buckets : 0,
                                    .max_relative_positions = spec->max_relative_positions};
    return cleat_first_output(cleat_emit(graph, &disentangled_attention, &attr, sizeof attr, in, 4));
}

/* Dropout with a mask that is regenerated in backward instead of stored. */
#include "cleat/ops.h"
#include "core/philox.h"
#include "ops/fusible.h"
#include "ops/lib/define.h"
#include "ops/lib/shared.h"

#include <math.h>

typedef struct dropout_attr {
    float rate;
    /* Stream of the forward node, shared by backward and by recomputation, which generate the same mask. */
    uint32_t stream;
    uint32_t shared; /* 1: the mask does not depend on the micro-batch */
} dropout_attr;

/* in = {x or dy, rng, other summand (in a gradient: accum; after fusion of an addition: residual)}, out = {y
 * or dx} */
enum { X, RNG, FORWARD_IN, ACCUM = FORWARD_IN, FUSED_IN };

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[X];
    float rate = ((const dropout_attr *)node->attr)->rate;
    if (!cleat_is_storage(x->dtype))
        return cleat_infer_fail(node, error, "x is %s, it must be f32, f16 or bf16", cleat_dtype_name(x->dtype));
    if (!(rate >= 0.0f && rate < 1.0f)) return cleat_infer_fail(node, error, "rate %g is not in [0, 1)", (double)rate);
    cleat_status status = cleat_expect(node, RNG, "rng", CLEAT_U32, 1, (int64_t[]){4}, error);
    return status ? status : cleat_set_output(node, 0, x->dtype, x->rank, x->shape, error);
}

/* Philox counters per sample of x [B, ...]; each counter yields four elements. */
static int64_t counters_per_sample(const cleat_tensor *x) {
    int64_t samples = x->rank > 0 ? x->shape[0] : 1;
    return (cleat_tensor_elements(x) / samples + 3) / 4;
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    const dropout_attr *attr = (const dropout_attr *)node->attr;
    int64_t elements = cleat_tensor_elements(node->out[0]), chunk = 4 * (int64_t)binder->facts->vector_width;
    double threshold = floor((double)attr->rate * 0x1p32);
    cleat_launch_vector_kernel(binder, node, "dropout.cl", "dropout_elements", node->out[0]->dtype, 0);
    CLEAT_LAUNCH_TENSORS(binder, node->in[X], node->in[RNG], node->n_in > ACCUM ? node->in[ACCUM] : NULL, node->out[0]);
    CLEAT_LAUNCH_I32(binder, {"stream", attr->stream}, {"threshold", (uint32_t)threshold});
    cleat_launch_f32(binder, "scale", (float)(1.0 / (1.0 - (double)attr->rate)));
    cleat_launch_i64(binder, "per_sample", attr->shared ? 0 : counters_per_sample(node->out[0]));
    cleat_launch_i64(binder, "n", elements);
    cleat_launch_items(binder, (elements + chunk - 1) / chunk);
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const dropout_attr *attr = (const dropout_attr *)node->attr;
    const uint32_t *rng = values->in[RNG].u;
    const uint64_t before = attr->shared ? 0 : (uint64_t)counters_per_sample(node->out[0]) * rng[3];
    const uint64_t at = before + (uint64_t)element / 4;
    const uint32_t counter[4] = {(uint32_t)at, (uint32_t)(at >> 32), attr->stream, rng[2]};
    uint32_t words[4];
    cleat_philox(counter, rng, words);
    cleat_expected_value y = {.value = 0};
    if (node->n_in > ACCUM) y = cleat_define_begin(values, ACCUM, element);
    if ((double)words[element % 4] >= floor((double)attr->rate * 0x1p32))
        cleat_define_add(&y, cleat_host_value(values, X, element) / (1 - (double)attr->rate));
    return y;
}

static const cleat_variant variants[] = {{.name = "elements", .bind = bind}, {0}};

static const cleat_op dropout_grad = {.name = "dropout_grad",
                                      .flops = 100,
                                      .variants = variants,
                                      .define = define,
                                      .inplace_inputs = CLEAT_IN(X) | CLEAT_IN(ACCUM)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_tensor *in[FORWARD_IN] = {[X] = dout[0], [RNG] = node->in[RNG]};
    cleat_emit_grads_of(graph, node, &dropout_grad, in, FORWARD_IN, &node->in[X], 1);
}

static const cleat_op dropout_add = {.name = "dropout_add",
                                     .flops = 100,
                                     .variants = variants,
                                     .define = define,
                                     .inplace_inputs = CLEAT_IN(X) | CLEAT_IN(ACCUM)};

/* Fuses the addition of a residual connection. */
static bool fuse(cleat_node *node, const cleat_node *consumer, bool sole_consumer) {
    if (consumer->op != &cleat_add_op || !sole_consumer) return false;
    node->op = &dropout_add;
    node->in[ACCUM] = consumer->in[0] == node->out[0] ? consumer->in[1] : consumer->in[0];
    node->n_in = FUSED_IN;
    node->out[0] = consumer->out[0];
    return true;
}

static const cleat_op dropout = {.name = "dropout",
                                 .infer = infer,
                                 .backward = backward,
                                 .flops = 100,
                                 .variants = variants,
                                 .define = define,
                                 .inplace_inputs = CLEAT_IN(X),
                                 .fusion = &(const cleat_fusion){.consumer = fuse},
                                 .autocast_inputs = CLEAT_IN(X)};

/* Only dropouts are counted, not all nodes: the casts of half precision would change the masks. */
static uint32_t next_stream(const cleat_graph *graph) {
    uint32_t count = 0;
    for (size_t i = 0; i < graph->node_count; ++i) count += graph->nodes[i]->op == &dropout;
    return count;
}

static cleat_tensor *emit(cleat_graph *graph, cleat_tensor *x, cleat_tensor *rng, float rate, bool shared) {
    if (x && rate == 0.0f) return x;
    cleat_tensor *in[FORWARD_IN] = {[X] = x, [RNG] = rng};
    dropout_attr attr = {.rate = rate, .stream = next_stream(graph), .shared = shared};
    return cleat_first_output(cleat_emit(graph, &dropout, &attr, sizeof attr, in, FORWARD_IN));
}

cleat_tensor *cleat_dropout(cleat_graph *graph, cleat_tensor *x, cleat_tensor *rng, float rate) {
    return emit(graph, x, rng, rate, false);
}

cleat_tensor *cleat_dropout_shared(cleat_graph *graph, cleat_tensor *x, cleat_tensor *rng, float rate) {
    return emit(graph, x, rng, rate, true);
}

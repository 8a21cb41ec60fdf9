/* y = x weight^T + bias + residual and its gradients: shapes, autodiff, cost. Kernels are launched by
 * linear_launch.c. */
#include "ops/linear/linear.h"

#include "cleat/ops.h"
#include "ops/fusible.h"
#include "ops/lib/count.h"
#include "ops/lib/shared.h"

/* --- the ops as GEMMs ----------------------------------------------------------------------------------------- */

typedef enum linear_kind { FORWARD, DX, DW, DB } linear_kind;

typedef struct linear_attr {
    linear_kind kind;
    cleat_epilogue epilogue;
} linear_attr;

/* out = {y}; with an epilogue {f(y), y}, whose second may be absent */
enum {
    X = CLEAT_LINEAR_X,
    WEIGHT = CLEAT_LINEAR_WEIGHT,
    BIAS = CLEAT_LINEAR_BIAS,
    RESIDUAL = CLEAT_LINEAR_RESIDUAL,
    FORWARD_IN
};

static cleat_gemm forward_gemm(const cleat_node *node) {
    const cleat_tensor *x = node->in[X], *weight = node->in[WEIGHT];
    return (cleat_gemm){.a = x,
                        .b = weight,
                        .trans_b = true,
                        .bias = node->in[BIAS],
                        .accum = node->in[RESIDUAL],
                        .c = node->out[0],
                        .saved = node->n_out > 1 ? node->out[1] : NULL,
                        .m = cleat_rows(x),
                        .n = weight->shape[0],
                        .k = weight->shape[1]};
}

/* out = {dx}; with an epilogue there is the input SLOPE_OF, from which the slope is computed */
enum {
    DX_DY = CLEAT_LINEAR_DX_DY,
    DX_WEIGHT = CLEAT_LINEAR_DX_WEIGHT,
    DX_IN = CLEAT_LINEAR_DX_IN,
    DX_ACCUM = DX_IN,
    SLOPE_OF,
    DX_FUSED_IN
};

static cleat_gemm dx_gemm(const cleat_node *node) {
    const cleat_tensor *dy = node->in[DX_DY], *weight = node->in[DX_WEIGHT];
    return (cleat_gemm){.a = dy,
                        .b = weight,
                        .accum = node->in[DX_ACCUM],
                        .c = node->out[0],
                        .saved = node->n_in > SLOPE_OF ? node->in[SLOPE_OF] : NULL,
                        .m = cleat_rows(dy),
                        .n = weight->shape[1],
                        .k = weight->shape[0]};
}

/* db may be NULL */
enum { DW_DY = CLEAT_LINEAR_DW_DY, DW_X = CLEAT_LINEAR_DW_X, DW_IN = CLEAT_LINEAR_DW_IN };
enum { DWEIGHT = CLEAT_LINEAR_DW_WEIGHT, DBIAS = CLEAT_LINEAR_DW_BIAS, DW_OUT };

static cleat_gemm dw_gemm(const cleat_node *node) {
    const cleat_tensor *dy = node->in[DW_DY], *x = node->in[DW_X];
    return (cleat_gemm){.a = dy,
                        .b = x,
                        .trans_a = true,
                        .accum = cleat_accum(node, DW_IN, DWEIGHT),
                        .c = node->out[DWEIGHT],
                        .sums_accum = cleat_accum(node, DW_IN, DBIAS),
                        .sums = node->out[DBIAS],
                        .m = cleat_width(dy),
                        .n = cleat_width(x),
                        .k = cleat_rows(dy)};
}

/* out = {db} */
enum { DB_DY, DB_IN };

static cleat_gemm db_gemm(const cleat_node *node) {
    const cleat_tensor *dy = node->in[DB_DY];
    return (cleat_gemm){.a = dy,
                        .trans_a = true,
                        .sums_accum = cleat_accum(node, DB_IN, 0),
                        .sums = node->out[0],
                        .m = cleat_width(dy),
                        .k = cleat_rows(dy)};
}

static cleat_gemm bare_gemm(const cleat_node *node, linear_kind kind) {
    switch (kind) {
    case FORWARD:
        return forward_gemm(node);
    case DX:
        return dx_gemm(node);
    case DW:
        return dw_gemm(node);
    case DB:
        break;
    }
    return db_gemm(node);
}

cleat_gemm cleat_linear_gemm(const cleat_node *node) {
    const linear_attr *attr = (const linear_attr *)node->attr;
    cleat_gemm gemm = bare_gemm(node, attr->kind);
    gemm.epilogue = attr->epilogue;
    return gemm;
}

static double bytes_of(const cleat_tensor *tensor) {
    return tensor ? (double)cleat_tensor_bytes(tensor) : 0;
}

static double flops_of(cleat_epilogue epilogue) {
    switch (epilogue) {
    case CLEAT_EPILOGUE_NONE:
        return 0;
    case CLEAT_EPILOGUE_GELU:
        return cleat_functions[POINTWISE_GELU].op.flops;
    case CLEAT_EPILOGUE_GELU_GRAD:
        return cleat_functions[POINTWISE_GELU].grad.flops;
    default:
        return cleat_functions[POINTWISE_RELU].op.flops;
    }
}

static cleat_cost cost(const cleat_node *node) {
    cleat_gemm p = cleat_linear_gemm(node);
    double bytes = bytes_of(p.a) + bytes_of(p.b) + bytes_of(p.bias) + bytes_of(p.accum) + bytes_of(p.c) +
                   bytes_of(p.saved) + bytes_of(p.sums_accum) + bytes_of(p.sums);
    double flops = (double)p.m * (double)p.n * (2.0 * (double)p.k + flops_of(p.epilogue));
    if (p.sums) flops += (double)p.m * (double)p.k;
    return (cleat_cost){.flops = flops, .bytes = bytes, .work = CLEAT_WORK_PRODUCT};
}

/* --- gradients ------------------------------------------------------------------------------------------------ */

/* dW and dx may overwrite their accum, y the residual. dx must not overwrite SLOPE_OF, because CLBlast writes
 * the sum before the slope is computed. */
const cleat_op cleat_linear_dw_op = {.name = "linear_dw",
                                     .tf32 = true,
                                     .cost = cost,
                                     .define = cleat_linear_define,
                                     .variants = cleat_linear_variants,
                                     .inplace_inputs = CLEAT_IN(DW_IN)};

#define FUSED(text, overwritten)                                                                                       \
    {                                                                                                                  \
        .name = text, .cost = cost, .define = cleat_linear_define, .variants = cleat_linear_variants,                  \
        .inplace_inputs = CLEAT_IN(overwritten)                                                                        \
    }
static const cleat_op fused[] = {[CLEAT_EPILOGUE_RELU] = FUSED("linear_relu", RESIDUAL),
                                 [CLEAT_EPILOGUE_GELU] = FUSED("linear_gelu", RESIDUAL),
                                 [CLEAT_EPILOGUE_RELU_GRAD] = FUSED("linear_dx_relu", DX_ACCUM),
                                 [CLEAT_EPILOGUE_GELU_GRAD] = FUSED("linear_dx_gelu", DX_ACCUM)};

static void set_epilogue(cleat_node *node, cleat_epilogue epilogue) {
    node->op = &fused[epilogue];
    ((linear_attr *)node->attr)->epilogue = epilogue;
}

/* dx = (accum + dy W) f'. The consumer's inputs are the sum, the tensor from which the slope is computed, and
 * possibly an accum; the fused node has no input for the latter, so such consumers are not fused. */
static bool fuse_slope(cleat_node *node, const cleat_node *consumer, bool sole_consumer) {
    bool relu = consumer->op == &cleat_functions[POINTWISE_RELU].grad;
    bool gelu = consumer->op == &cleat_functions[POINTWISE_GELU].grad;
    if (!(relu || gelu) || !sole_consumer || consumer->in[CLEAT_SLOPE_DY] != node->out[0] ||
        cleat_accum(consumer, CLEAT_SLOPE_IN, 0))
        return false;
    set_epilogue(node, relu ? CLEAT_EPILOGUE_RELU_GRAD : CLEAT_EPILOGUE_GELU_GRAD);
    node->in[SLOPE_OF] = consumer->in[CLEAT_SLOPE_OF];
    node->n_in = DX_FUSED_IN;
    node->out[0] = consumer->out[0];
    return true;
}

const cleat_op cleat_linear_dx_op = {.name = "linear_dx",
                                     .tf32 = true,
                                     .cost = cost,
                                     .define = cleat_linear_define,
                                     .variants = cleat_linear_variants,
                                     .inplace_inputs = CLEAT_IN(DX_ACCUM),
                                     .fusion = &(const cleat_fusion){.consumer = fuse_slope}};
static const cleat_op linear_db = {.name = "linear_db",
                                   .cost = cost,
                                   .define = cleat_linear_define,
                                   .variants = cleat_linear_sums_variants,
                                   .inplace_inputs = CLEAT_IN(DB_IN)};

void cleat_emit_bias_grad(cleat_graph *graph, cleat_tensor *dy, cleat_tensor *bias) {
    cleat_emit_grads(graph, &(cleat_grads_spec){.op = &linear_db,
                                                .attr = &(linear_attr){.kind = DB},
                                                .attr_bytes = sizeof(linear_attr),
                                                .in = &dy,
                                                .n_in = DB_IN,
                                                .targets = &bias,
                                                .n_targets = 1});
}

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_tensor *dy = dout[0], *x = node->in[X], *weight = node->in[WEIGHT], *bias = node->in[BIAS];
    linear_attr *attr = (linear_attr *)node->attr;
    attr->kind = DW;
    if (cleat_requires_grad(weight))
        cleat_emit_grads_of(graph, node, &cleat_linear_dw_op, (cleat_tensor *[DW_IN]){dy, x}, DW_IN,
                            (cleat_tensor *[DW_OUT]){weight, bias}, DW_OUT);
    else if (cleat_requires_grad(bias))
        cleat_emit_bias_grad(graph, dy, bias);
    attr->kind = DX;
    cleat_emit_grads_of(graph, node, &cleat_linear_dx_op, (cleat_tensor *[DX_IN]){dy, weight}, DX_IN, &x, 1);
    cleat_pass_grad(graph, node->in[RESIDUAL], dy);
}

/* --- forward -------------------------------------------------------------------------------------------------- */

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[X], *weight = node->in[WEIGHT];
    if (!cleat_is_storage(x->dtype) || x->rank < 1 || weight->rank != 2 || weight->dtype != x->dtype ||
        weight->shape[1] != cleat_width(x))
        return cleat_infer_fail(
            node, error,
            "x %s, weight %s: the weight must be [fan_out, fan_in] of x's type, and fan_in the last dimension of x",
            CLEAT_DESCRIBED(x), CLEAT_DESCRIBED(weight));
    int64_t fan_out = weight->shape[0], shape[CLEAT_MAX_RANK];
    if (cleat_rows(x) > CLEAT_MAX_ROWS || fan_out > CLEAT_MAX_ROWS || weight->shape[1] > CLEAT_MAX_ROWS)
        return cleat_infer_fail(node, error, "a dimension is larger than %d", CLEAT_MAX_ROWS);
    for (int i = 0; i < x->rank; ++i) shape[i] = x->shape[i];
    shape[x->rank - 1] = fan_out;
    cleat_status status = CLEAT_OK;
    if (node->in[BIAS]) status = cleat_expect(node, BIAS, "bias", CLEAT_F32, 1, &fan_out, error);
    if (!status && node->in[RESIDUAL])
        status = cleat_expect(node, RESIDUAL, "residual", x->dtype, x->rank, shape, error);
    return status ? status : cleat_set_output(node, 0, x->dtype, x->rank, shape, error);
}

static bool fuse_activation(cleat_node *node, const cleat_node *consumer, bool sole_consumer) {
    bool relu = consumer->op == &cleat_functions[POINTWISE_RELU].op;
    bool gelu = consumer->op == &cleat_functions[POINTWISE_GELU].op;
    if (!(relu || gelu)) return false;
    set_epilogue(node, relu ? CLEAT_EPILOGUE_RELU : CLEAT_EPILOGUE_GELU);
    if (!sole_consumer) node->out[node->n_out++] = node->out[0];
    node->out[0] = consumer->out[0];
    return true;
}

const cleat_op cleat_linear_op = {.name = "linear",
                                  .tf32 = true,
                                  .optional_inputs = CLEAT_IN(BIAS) | CLEAT_IN(RESIDUAL),
                                  .infer = infer,
                                  .backward = backward,
                                  .cost = cost,
                                  .define = cleat_linear_define,
                                  .variants = cleat_linear_variants,
                                  .inplace_inputs = CLEAT_IN(RESIDUAL),
                                  .fusion = &(const cleat_fusion){.consumer = fuse_activation},
                                  .autocast_inputs = CLEAT_IN(X) | CLEAT_IN(WEIGHT) | CLEAT_IN(RESIDUAL),
                                  .weight_inputs = CLEAT_IN(WEIGHT),
                                  .block_inputs = CLEAT_IN(WEIGHT)};

cleat_tensor *cleat_linear(cleat_graph *graph, cleat_tensor *x, cleat_tensor *weight, cleat_tensor *bias,
                           cleat_tensor *residual) {
    cleat_tensor *in[FORWARD_IN] = {[X] = x, [WEIGHT] = weight, [BIAS] = bias, [RESIDUAL] = residual};
    return cleat_first_output(
        cleat_emit(graph, &cleat_linear_op, &(linear_attr){.kind = FORWARD}, sizeof(linear_attr), in, FORWARD_IN));
}

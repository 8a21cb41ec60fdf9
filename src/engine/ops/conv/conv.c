/* Convolution and its gradients: shapes, autodiff, cost. Kernels are launched by conv_launch.c, conv_gpu.c,
 * conv_mma.c. */
#include "ops/conv/conv.h"

#include "cleat/ops.h"
#include "ops/lib/count.h"
#include "ops/lib/shared.h"
#include "ops/linear/linear.h"

enum { KERNEL_MAX = 32 /* maximum of kernel rows, kernel columns and stride */ };

/* Without gaps between members, as all structs of attributes (cleat_emit). */
typedef struct conv_attr {
    int64_t kind; /* cleat_conv_kind */
    int64_t stride, padding;
} conv_attr;

/* --- the ops as GEMMs ----------------------------------------------------------------------------------------- */

/* out = {y} */
enum { X, WEIGHT, BIAS, FORWARD_IN };
/* For dx and dW: in = {dy, weight or x, accums}, out = {dx} or {dW, db}; db may be NULL. */
enum { DY, OTHER, GRAD_IN };
enum { DX = 0, DW = 0, DB };

static cleat_conv operands_of(const cleat_node *node, cleat_conv_kind kind) {
    cleat_tensor *const *in = node->in, *const *out = node->out;
    switch (kind) {
    case CLEAT_CONV_FORWARD:
        return (cleat_conv){.x = in[X], .weight = in[WEIGHT], .bias = in[BIAS], .y = out[0]};
    case CLEAT_CONV_DX:
        return (cleat_conv){.y = in[DY], .weight = in[OTHER], .accum = cleat_accum(node, GRAD_IN, DX), .x = out[DX]};
    case CLEAT_CONV_DW:
        break;
    }
    return (cleat_conv){.y = in[DY],
                        .x = in[OTHER],
                        .accum = cleat_accum(node, GRAD_IN, DW),
                        .sums_accum = cleat_accum(node, GRAD_IN, DB),
                        .weight = out[DW],
                        .sums = out[DB]};
}

cleat_conv cleat_conv_of(const cleat_node *node) {
    const conv_attr *attr = (const conv_attr *)node->attr;
    cleat_conv conv = operands_of(node, (cleat_conv_kind)attr->kind);
    const int64_t *x = conv.x->shape, *weight = conv.weight->shape, *y = conv.y->shape;
    conv.kind = (cleat_conv_kind)attr->kind;
    conv.stride = attr->stride;
    conv.padding = attr->padding;
    conv.batch = x[0], conv.height = x[1], conv.width = x[2], conv.channels = x[3];
    conv.rows = y[1], conv.columns = y[2], conv.features = y[3];
    conv.kernel_rows = weight[1], conv.kernel_columns = weight[2];
    return conv;
}

static cleat_cost cost(const cleat_node *node) {
    cleat_conv c = cleat_conv_of(node);
    cleat_cost cost = cleat_elementwise_cost(node, 0);
    double taps = (double)(c.kernel_rows * c.kernel_columns * c.channels);
    cost.work = CLEAT_WORK_PRODUCT;
    cost.flops = ((double)cleat_tensor_elements(c.y)) * (2 * taps + (c.sums ? 1 : 0));
    return cost;
}

/* --- gradients ------------------------------------------------------------------------------------------------ */

/* dx and dW may overwrite their accum. */
static const cleat_op conv_dw = {.name = "conv2d_dw",
                                 .tf32 = true,
                                 .cost = cost,
                                 .variants = cleat_conv_variants,
                                 .define = cleat_conv_define,
                                 .inplace_inputs = CLEAT_IN(GRAD_IN)};
static const cleat_op conv_dx = {.name = "conv2d_dx",
                                 .tf32 = true,
                                 .cost = cost,
                                 .variants = cleat_conv_variants,
                                 .define = cleat_conv_define,
                                 .inplace_inputs = CLEAT_IN(GRAD_IN)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_tensor *dy = dout[0], *x = node->in[X], *weight = node->in[WEIGHT], *bias = node->in[BIAS];
    conv_attr *attr = (conv_attr *)node->attr;
    attr->kind = CLEAT_CONV_DW;
    if (cleat_requires_grad(weight))
        cleat_emit_grads_of(graph, node, &conv_dw, (cleat_tensor *[GRAD_IN]){dy, x}, GRAD_IN,
                            (cleat_tensor *[]){weight, bias}, 2);
    else if (cleat_requires_grad(bias))
        cleat_emit_bias_grad(graph, dy, bias);
    attr->kind = CLEAT_CONV_DX;
    cleat_emit_grads_of(graph, node, &conv_dx, (cleat_tensor *[GRAD_IN]){dy, weight}, GRAD_IN, &x, 1);
}

/* --- forward -------------------------------------------------------------------------------------------------- */

static cleat_status check_tensors(const cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[X], *weight = node->in[WEIGHT];
    if (cleat_is_storage(x->dtype) && x->rank == 4 && weight->rank == 4 && weight->dtype == x->dtype &&
        weight->shape[3] == x->shape[3])
        return CLEAT_OK;
    return cleat_infer_fail(node, error,
                            "x %s, weight %s: x must be [B, H, W, C], and the weight [N, R, S, C] of x's type and C",
                            CLEAT_DESCRIBED(x), CLEAT_DESCRIBED(weight));
}

static cleat_status check_window(const cleat_node *node, cleat_error *error) {
    const conv_attr *attr = (const conv_attr *)node->attr;
    const int64_t *x = node->in[X]->shape, *weight = node->in[WEIGHT]->shape;
    long long kernel_rows = weight[1], kernel_columns = weight[2];
    if (kernel_rows > KERNEL_MAX || kernel_columns > KERNEL_MAX || attr->stride < 1 || attr->stride > KERNEL_MAX)
        return cleat_infer_fail(node, error, "kernel %lld x %lld, stride %lld: each must be 1 to %d", kernel_rows,
                                kernel_columns, (long long)attr->stride, KERNEL_MAX);
    if (attr->padding < 0 || attr->padding >= kernel_rows || attr->padding >= kernel_columns)
        return cleat_infer_fail(node, error,
                                "padding %lld: it must be 0 or more, and less than the kernel's %lld x %lld",
                                (long long)attr->padding, kernel_rows, kernel_columns);
    if (x[1] + 2 * attr->padding < kernel_rows || x[2] + 2 * attr->padding < kernel_columns)
        return cleat_infer_fail(
            node, error, "the image of %lld x %lld with padding %lld is smaller than the kernel of %lld x %lld",
            (long long)x[1], (long long)x[2], (long long)attr->padding, kernel_rows, kernel_columns);
    return CLEAT_OK;
}

/* Kernels count pixels, the elements of an image row and those of a filter in 32 bits. */
static bool counts_fit(const int64_t *image, const int64_t *weight) {
    int64_t widest = weight[0] > weight[3] ? weight[0] : weight[3];
    return image[1] <= CLEAT_MAX_ROWS / image[2] && image[0] <= CLEAT_MAX_ROWS / (image[1] * image[2]) &&
           image[2] + 2 * KERNEL_MAX <= CLEAT_MAX_ROWS / image[3] && widest <= CLEAT_MAX_ROWS / (weight[1] * weight[2]);
}

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const conv_attr *attr = (const conv_attr *)node->attr;
    const cleat_tensor *x = node->in[X], *weight = node->in[WEIGHT];
    cleat_status status = check_tensors(node, error);
    if (!status) status = check_window(node, error);
    if (!status && node->in[BIAS]) status = cleat_expect(node, BIAS, "bias", CLEAT_F32, 1, weight->shape, error);
    if (status) return status;
    const int64_t shape[] = {x->shape[0], (x->shape[1] + 2 * attr->padding - weight->shape[1]) / attr->stride + 1,
                             (x->shape[2] + 2 * attr->padding - weight->shape[2]) / attr->stride + 1, weight->shape[0]};
    if (!counts_fit(x->shape, weight->shape) || !counts_fit(shape, weight->shape))
        return cleat_infer_fail(node, error, "more than %d pixels, or elements of a row of them or of a filter",
                                CLEAT_MAX_ROWS);
    return cleat_set_output(node, 0, x->dtype, 4, shape, error);
}

static const cleat_attribute attributes[] = {CLEAT_ATTRIBUTE(conv_attr, stride, CLEAT_ATTRIBUTE_I64),
                                             CLEAT_ATTRIBUTE(conv_attr, padding, CLEAT_ATTRIBUTE_I64),
                                             {.name = NULL}};

static const cleat_op conv2d = {.name = "conv2d",
                                .tf32 = true,
                                .optional_inputs = CLEAT_IN(BIAS),
                                .infer = infer,
                                .backward = backward,
                                .cost = cost,
                                .variants = cleat_conv_variants,
                                .define = cleat_conv_define,
                                .autocast_inputs = CLEAT_IN(X) | CLEAT_IN(WEIGHT),
                                .weight_inputs = CLEAT_IN(WEIGHT),
                                .attributes = attributes};

cleat_tensor *cleat_conv2d(cleat_graph *graph, cleat_tensor *x, cleat_tensor *weight, cleat_tensor *bias,
                           int64_t stride, int64_t padding) {
    conv_attr attr = {.kind = CLEAT_CONV_FORWARD, .stride = stride, .padding = padding};
    cleat_tensor *in[FORWARD_IN] = {[X] = x, [WEIGHT] = weight, [BIAS] = bias};
    return cleat_first_output(cleat_emit(graph, &conv2d, &attr, sizeof attr, in, FORWARD_IN));
}

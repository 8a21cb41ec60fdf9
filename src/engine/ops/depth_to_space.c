/* Depth to space: the channels of one pixel become patch x patch pixels. */
#include "cleat/ops.h"
#include "ops/lib/define.h"
#include "ops/lib/rows.h"
#include "ops/lib/shared.h"

typedef struct depth_to_space_attr {
    int64_t patch;
} depth_to_space_attr;

static int64_t patch_of(const cleat_node *node) {
    return ((const depth_to_space_attr *)node->attr)->patch;
}

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[0];
    int64_t patch = patch_of(node), square = patch * patch;
    if (!cleat_is_storage(x->dtype) || x->rank != 4 || x->shape[3] % square || x->shape[3] > CLEAT_MAX_ROWS ||
        cleat_rows(x) > CLEAT_MAX_ROWS / patch)
        return cleat_infer_fail(node, error,
                                "x is %s, it must be f32, f16 or bf16 [B, H, W, C] with C a multiple of %lld x %lld "
                                "and at most 2^30 channels and rows of patches",
                                CLEAT_DESCRIBED(x), (long long)patch, (long long)patch);
    const int64_t shape[] = {x->shape[0], x->shape[1] * patch, x->shape[2] * patch, x->shape[3] / square};
    return cleat_set_output(node, 0, x->dtype, 4, shape, error);
}

/* [outer, a, b, width] -> [outer, b, a, width] */
static void launch(cleat_binder *binder, const cleat_node *node, const cleat_tensor *accum, int64_t outer, int64_t a,
                   int64_t b) {
    int64_t rows = outer * a * b, width = cleat_tensor_elements(node->out[0]) / rows;
    cleat_launch_vector_kernel(binder, node, "depth_to_space.cl", "depth_to_space_swap", node->out[0]->dtype, width);
    CLEAT_LAUNCH_TENSORS(binder, node->in[0], accum, node->out[0]);
    CLEAT_LAUNCH_I32(binder, {"outer", outer}, {"a", a}, {"b", b}, {"width", width});
    cleat_launch_runs(binder, rows, width);
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *x = node->in[0]; /* [B, H, W, patch patch C] */
    launch(binder, node, NULL, x->shape[0] * x->shape[1], x->shape[2], patch_of(node));
}

/* in = {dy, accum}, out = {dx} */
enum { DY, GRAD_IN };

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *dx = node->out[0];
    launch(binder, node, cleat_accum(node, GRAD_IN, 0), dx->shape[0] * dx->shape[1], patch_of(node), dx->shape[2]);
}

/* The element of x [B, H, W, patch patch C] that becomes element `element` of y [B, H patch, W patch, C]. */
static int64_t source_of(const cleat_tensor *x, int64_t patch, int64_t element) {
    const int64_t channels = x->shape[3] / patch / patch, c = element % channels, pixel = element / channels,
                  column = pixel % (x->shape[2] * patch), line = pixel / (x->shape[2] * patch);
    const int64_t from = line / patch * x->shape[2] + column / patch;
    return from * x->shape[3] + (line % patch * patch + column % patch) * channels + c;
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    return (cleat_expected_value){.value =
                                      cleat_host_value(values, 0, source_of(node->in[0], patch_of(node), element))};
}

/* The inverse: element (b, h, w, r, s, c) of dx comes from (b, h patch + r, w patch + s, c) of dy. */
static cleat_expected_value define_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t *x = node->out[0]->shape, patch = patch_of(node), channels = x[3] / patch / patch;
    const int64_t c = element % channels, s = element / channels % patch, r = element / channels / patch % patch,
                  pixel = element / x[3], w = pixel % x[2], line = pixel / x[2];
    cleat_expected_value sum = cleat_define_begin(values, GRAD_IN + values->output, element);
    cleat_define_add(&sum,
                     cleat_host_value(values, DY, ((line * patch + r) * x[2] * patch + w * patch + s) * channels + c));
    return sum;
}

static const cleat_variant variants[] = {{.name = "runs", .bind = bind}, {0}};
static const cleat_variant grad_variants[] = {{.name = "runs", .bind = bind_grad}, {0}};

static const cleat_op depth_to_space_grad = {.name = "depth_to_space_grad",
                                             .flops = 1,
                                             .variants = grad_variants,
                                             .define = define_grad,
                                             .inplace_inputs = CLEAT_IN(GRAD_IN)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_emit_grads_of(graph, node, &depth_to_space_grad, &dout[0], GRAD_IN, &node->in[0], 1);
}

static const cleat_attribute attributes[] = {CLEAT_ATTRIBUTE(depth_to_space_attr, patch, CLEAT_ATTRIBUTE_I64),
                                             {.name = NULL}};

static const cleat_op depth_to_space = {.name = "depth_to_space",
                                        .infer = infer,
                                        .backward = backward,
                                        .variants = variants,
                                        .define = define,
                                        .autocast_inputs = CLEAT_IN(0),
                                        .attributes = attributes};

cleat_tensor *cleat_depth_to_space(cleat_graph *graph, cleat_tensor *x, int64_t patch) {
    if (patch < 1 || patch > 4096) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "depth_to_space: patch size %lld; it must be 1 to 4096",
                         (long long)patch);
        return NULL;
    }
    return cleat_first_output(
        cleat_emit(graph, &depth_to_space, &(depth_to_space_attr){patch}, sizeof(depth_to_space_attr), &x, 1));
}

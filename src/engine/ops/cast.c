/* Conversion of x to another storage type, explicit or by autocast. One of the two types must be f32: f16 <->
 * bf16 takes two nodes. */
#include "cleat/ops.h"
#include "ops/fusible.h"
#include "ops/lib/define.h"
#include "ops/lib/shared.h"

typedef struct cast_attr {
    cleat_dtype dtype;
} cast_attr;

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[0];
    cleat_dtype dtype = ((const cast_attr *)node->attr)->dtype;
    if (!cleat_is_storage(x->dtype) || !cleat_is_storage(dtype))
        return cleat_infer_fail(node, error, "%s to %s: only f32, f16 and bf16 can be cast", cleat_dtype_name(x->dtype),
                                cleat_dtype_name(dtype));
    return cleat_set_output(node, 0, dtype, x->rank, x->shape, error);
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *x = node->in[0], *accum = node->n_in > 1 ? node->in[1] : NULL, *y = node->out[0];
    int64_t elements = cleat_tensor_elements(y);
    bool narrow = x->dtype == CLEAT_F32;
    cleat_launch_vector_kernel(binder, node, "cast.cl", narrow ? "cast_narrow" : "cast_widen",
                               narrow ? y->dtype : x->dtype, 0);
    CLEAT_LAUNCH_TENSORS(binder, x, accum, y);
    cleat_launch_i64(binder, "n", elements);
    cleat_launch_elementwise(binder, elements);
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    cleat_expected_value y = cleat_define_begin(values, 0, element);
    if (node->n_in > 1) cleat_define_add(&y, cleat_host_value(values, 1, element));
    return y;
}

static const cleat_variant variants[] = {{.name = "elements", .bind = bind}, {0}};

/* in = {dy, accum}, out = {dx} */
const cleat_op cleat_cast_grad_op = {.name = "cast_grad", .flops = 1, .variants = variants, .define = define};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_emit_grads_of(graph, node, &cleat_cast_grad_op, dout, 1, &node->in[0], 1);
}

const cleat_op cleat_cast_op = {.name = "cast",
                                .infer = infer,
                                .backward = backward,
                                .flops = 1,
                                .variants = variants,
                                .define = define,
                                .no_autocast = true};

cleat_tensor *cleat_cast(cleat_graph *graph, cleat_tensor *x, cleat_dtype dtype) {
    if (x && x->dtype == dtype) return x;
    if (x && x->dtype != CLEAT_F32 && dtype != CLEAT_F32) x = cleat_cast(graph, x, CLEAT_F32);
    cast_attr attr = {dtype};
    return cleat_first_output(cleat_emit(graph, &cleat_cast_op, &attr, sizeof attr, &x, 1));
}

void cleat_autocast(cleat_graph *graph, cleat_dtype storage) {
    if (!cleat_is_storage(storage) && storage != CLEAT_TF32) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "autocast to %s: activations must be f32, f16 or bf16",
                         cleat_dtype_name(storage));
        return;
    }
    graph->tf32 = storage == CLEAT_TF32;
    graph->storage = graph->tf32 ? CLEAT_F32 : storage;
    graph->cast = cleat_cast;
}

cleat_dtype cleat_autocast_storage(const cleat_graph *graph) {
    return graph->cast ? graph->storage : CLEAT_F32;
}

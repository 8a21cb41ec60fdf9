/* ONNX: operations on images. cleat stores channels last, ONNX's operators take them first. */
#include "onnx/translate.h"

enum { X, WEIGHT, BIAS };

static const char *convolve(cleat_onnx_translator *t, const cleat_node *node, const char *weight,
                            const int64_t *strides, const int64_t *pads, int64_t groups) {
    return OP_WITH(
        cleat_onnx_of(t), "Conv",
        ATTRIBUTES(CLEAT_ONNX_IS("strides", strides, 2), CLEAT_ONNX_IS("pads", pads, 4), CLEAT_ONNX_I("group", groups)),
        cleat_onnx_image(t, node, X), weight, cleat_onnx_in(t, node, BIAS));
}

void cleat_onnx_emit_conv2d(cleat_onnx_translator *t, const cleat_node *node) {
    const int64_t stride = (int64_t)cleat_onnx_attribute_of(t, node, "stride", 0),
                  padding = (int64_t)cleat_onnx_attribute_of(t, node, "padding", 0);
    const int64_t strides[] = {stride, stride}, pads[] = {padding, padding, padding, padding};
    const char *weight = cleat_onnx_permuted(t, node, WEIGHT, (const int64_t[]){0, 3, 1, 2});
    cleat_onnx_set_image(t, node, 0, convolve(t, node, weight, strides, pads, 1));
}

/* weight [R, S, C] -> [C, 1, R, S] */
void cleat_onnx_emit_depthwise_conv2d(cleat_onnx_translator *t, const cleat_node *node) {
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const int64_t *weight_shape = node->in[WEIGHT]->shape, rows = weight_shape[0] / 2, columns = weight_shape[1] / 2;
    const int64_t strides[] = {1, 1}, pads[] = {rows, columns, rows, columns};
    const char *weight = cleat_onnx_permuted(t, node, WEIGHT, (const int64_t[]){2, 0, 1});
    weight = OP(b, "Unsqueeze", weight, cleat_onnx_int(b, 1));
    cleat_onnx_set_image(t, node, 0, convolve(t, node, weight, strides, pads, weight_shape[2]));
}

typedef struct window {
    int64_t size[2], strides[2], pads[4];
} window;

static window window_of(cleat_onnx_translator *t, const cleat_node *node) {
    const int64_t size = (int64_t)cleat_onnx_attribute_of(t, node, "size", 0),
                  stride = (int64_t)cleat_onnx_attribute_of(t, node, "stride", 0),
                  padding = (int64_t)cleat_onnx_attribute_of(t, node, "padding", 0);
    return (window){{size, size}, {stride, stride}, {padding, padding, padding, padding}};
}

void cleat_onnx_emit_max_pool(cleat_onnx_translator *t, const cleat_node *node) {
    const window w = window_of(t, node);
    cleat_onnx_set_image(t, node, 0,
                         OP_WITH(cleat_onnx_of(t), "MaxPool",
                                 ATTRIBUTES(CLEAT_ONNX_IS("kernel_shape", w.size, 2),
                                            CLEAT_ONNX_IS("strides", w.strides, 2), CLEAT_ONNX_IS("pads", w.pads, 4)),
                                 cleat_onnx_image(t, node, 0)));
}

void cleat_onnx_emit_average_pool(cleat_onnx_translator *t, const cleat_node *node) {
    const window w = window_of(t, node);
    cleat_onnx_set_image(
        t, node, 0,
        OP_WITH(cleat_onnx_of(t), "AveragePool",
                ATTRIBUTES(CLEAT_ONNX_IS("kernel_shape", w.size, 2), CLEAT_ONNX_IS("strides", w.strides, 2),
                           CLEAT_ONNX_IS("pads", w.pads, 4), CLEAT_ONNX_I("count_include_pad", 1)),
                cleat_onnx_image(t, node, 0)));
}

/* sizes, not scales: a factor such as 7 / 3 is not exact in f32, and the size would be one less. */
void cleat_onnx_emit_resize(cleat_onnx_translator *t, const cleat_node *node) {
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const cleat_tensor *y = node->out[0];
    const char *batch = cleat_onnx_dim_value(t, cleat_onnx_dim_of(t, y, 0));
    const char *sizes = OP_WITH(b, "Concat", ATTRIBUTES(CLEAT_ONNX_I("axis", 0)), batch,
                                INTS(b, y->shape[3], y->shape[1], y->shape[2]));
    cleat_onnx_set_image(t, node, 0,
                         OP_WITH(b, "Resize",
                                 ATTRIBUTES(CLEAT_ONNX_S("mode", "linear"),
                                            CLEAT_ONNX_S("coordinate_transformation_mode", "half_pixel")),
                                 cleat_onnx_image(t, node, 0), NULL, NULL, sizes));
}

enum { GAMMA = 1, BETA, MEAN, RESIDUAL, VARIANCE };

/* Rank 4 or 2: ONNX's operator, whose channels are dimension 1; other ranks: its formula. */
static const char *normalise(cleat_onnx_translator *t, const cleat_node *node, const char *x, bool operator) {
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const float eps = (float)cleat_onnx_attribute_of(t, node, "eps", 0);
    const char *gamma = cleat_onnx_in(t, node, GAMMA), *beta = cleat_onnx_in(t, node, BETA),
               *mean = cleat_onnx_in(t, node, MEAN), *variance = cleat_onnx_in(t, node, VARIANCE);
    if (operator)
        return OP_WITH(b, "BatchNormalization", ATTRIBUTES(CLEAT_ONNX_F("epsilon", eps)), x, gamma, beta, mean,
                       variance);
    const char *std = OP(b, "Sqrt", OP(b, "Add", variance, cleat_onnx_number(b, eps)));
    x = OP(b, "Div", OP(b, "Sub", x, mean), std);
    return OP(b, "Add", OP(b, "Mul", x, gamma), beta);
}

void cleat_onnx_emit_batch_norm_inference(cleat_onnx_translator *t, const cleat_node *node) {
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const int rank = node->in[X]->rank;
    const bool image = rank == 4;
    const char *y = image ? cleat_onnx_image(t, node, X) : cleat_onnx_in(t, node, X);
    y = normalise(t, node, y, image || rank == 2);
    if (cleat_onnx_has(node, RESIDUAL))
        y = OP(b, "Add", y, image ? cleat_onnx_image(t, node, RESIDUAL) : cleat_onnx_in(t, node, RESIDUAL));
    if (cleat_onnx_attribute_of(t, node, "relu", 0) != 0) y = OP(b, "Relu", y);
    (image ? cleat_onnx_set_image : cleat_onnx_set)(t, node, 0, y);
}

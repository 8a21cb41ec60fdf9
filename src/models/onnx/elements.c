/* ONNX: operations on single elements, and softmax. */
#include "lib/shared_numbers.clh"
#include "onnx/translate.h"

#include <math.h>

void cleat_onnx_emit_cast(cleat_onnx_translator *t, const cleat_node *node) {
    if (node->out[0]->dtype != CLEAT_F32) {
        cleat_onnx_node_fail(t, node, "to %s; models are exported in f32", cleat_dtype_name(node->out[0]->dtype));
        return;
    }
    cleat_onnx_set(t, node, 0, cleat_onnx_cast(cleat_onnx_of(t), cleat_onnx_in(t, node, 0), CLEAT_ONNX_FLOAT));
}

/* Emits a function of x as several nodes, in the channel order of x. */
static void emit_function(cleat_onnx_translator *t, const cleat_node *node,
                          const char *(*function)(cleat_onnx_builder *b, const char *x)) {
    if (cleat_onnx_are_images(t, node, 1))
        cleat_onnx_set_image(t, node, 0, function(cleat_onnx_of(t), cleat_onnx_image(t, node, 0)));
    else
        cleat_onnx_set(t, node, 0, function(cleat_onnx_of(t), cleat_onnx_in(t, node, 0)));
}

static const char *silu(cleat_onnx_builder *b, const char *x) {
    return OP(b, "Mul", x, OP(b, "Sigmoid", x));
}

void cleat_onnx_emit_silu(cleat_onnx_translator *t, const cleat_node *node) {
    emit_function(t, node, silu);
}

/* x / 2 (1 + erf(x / sqrt 2)); Gelu exists only from opset 20 on. */
static const char *gelu(cleat_onnx_builder *b, const char *x) {
    const char *erf = OP(b, "Erf", OP(b, "Div", x, cleat_onnx_number(b, (float)M_SQRT2)));
    const char *twice = OP(b, "Mul", x, OP(b, "Add", erf, cleat_onnx_number(b, 1)));
    return OP(b, "Mul", twice, cleat_onnx_number(b, 0.5f));
}

void cleat_onnx_emit_gelu(cleat_onnx_translator *t, const cleat_node *node) {
    emit_function(t, node, gelu);
}

void cleat_onnx_emit_gated(cleat_onnx_translator *t, const cleat_node *node) {
    cleat_onnx_builder *b = cleat_onnx_of(t);
    const int function = (int)cleat_onnx_attribute_of(t, node, "function", 0);
    const char *x = cleat_onnx_in(t, node, 0), *axis = cleat_onnx_int(b, -1);
    const int64_t half = cleat_width(node->out[0]);
    const char *gate = OP(b, "Slice", x, cleat_onnx_int(b, 0), cleat_onnx_int(b, half), axis);
    const char *value = OP(b, "Slice", x, cleat_onnx_int(b, half), cleat_onnx_int(b, 2 * half), axis);
    if (function == POINTWISE_GELU_TANH) cleat_onnx_node_fail(t, node, "a GELU by tanh");
    cleat_onnx_set(t, node, 0, OP(b, "Mul", function == POINTWISE_GELU ? gelu(b, gate) : silu(b, gate), value));
}

void cleat_onnx_emit_softmax(cleat_onnx_translator *t, const cleat_node *node) {
    cleat_onnx_builder *b = cleat_onnx_of(t);
    cleat_onnx_set(t, node, 0, OP_WITH(b, "Softmax", ATTRIBUTES(CLEAT_ONNX_I("axis", -1)), cleat_onnx_in(t, node, 0)));
}

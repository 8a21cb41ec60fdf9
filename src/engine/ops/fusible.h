/* Ops that kernels of other ops can perform before they store their result (cleat_fusion.consumer). */
#ifndef CLEAT_SRC_OPS_FUSIBLE_H
#define CLEAT_SRC_OPS_FUSIBLE_H

#include "graph/launch.h"
#include "lib/shared_numbers.clh"

/* A function of one element: in = {x}, out = {y}; its gradient: in = {dy, y or x, accum}, out = {dx}. */
typedef struct cleat_function {
    cleat_op op, grad;
    bool keeps_y; /* the slope is computed from y; else from x */
    double (*value)(double x);
    double (*slope_at)(double kept); /* x or y */
} cleat_function;
enum { CLEAT_SLOPE_DY, CLEAT_SLOPE_OF, CLEAT_SLOPE_IN };
extern const cleat_function cleat_functions[POINTWISE_END]; /* [POINTWISE_...] */

/* Their launches for ops with one as epilogue. Results may overwrite any argument; accum may be NULL. */
void cleat_launch_function(cleat_binder *binder, const cleat_node *node, int32_t number, const cleat_tensor *x,
                           const cleat_tensor *y);
void cleat_launch_function_grad(cleat_binder *binder, const cleat_node *node, int32_t number, const cleat_tensor *dy,
                                const cleat_tensor *kept, const cleat_tensor *accum, const cleat_tensor *dx);

/* in = {a, b}, out = {a + b} */
extern const cleat_op cleat_add_op;
/* in = {x, weight, bias or NULL, residual or NULL}, out = {x weight^T + bias + residual} */
enum { CLEAT_LINEAR_X, CLEAT_LINEAR_WEIGHT, CLEAT_LINEAR_BIAS, CLEAT_LINEAR_RESIDUAL };
extern const cleat_op cleat_linear_op;
/* in = {dy, x, accums of dweight and dbias}, out = {dweight, dbias or NULL}; in = {dy, weight, accum}, out = {dx} */
enum { CLEAT_LINEAR_DW_DY, CLEAT_LINEAR_DW_X, CLEAT_LINEAR_DW_IN };
enum { CLEAT_LINEAR_DW_WEIGHT, CLEAT_LINEAR_DW_BIAS };
enum { CLEAT_LINEAR_DX_DY, CLEAT_LINEAR_DX_WEIGHT, CLEAT_LINEAR_DX_IN };
extern const cleat_op cleat_linear_dw_op, cleat_linear_dx_op;

/* in = {x}, out = {y}; in = {dy, accum or absent}, out = {dx}: to or from f32 */
extern const cleat_op cleat_cast_op, cleat_cast_grad_op;
/* in = {x, lengths or NULL}, out = {y} */
enum { CLEAT_POSITIONAL_X, CLEAT_POSITIONAL_LENGTHS };
extern const cleat_op cleat_positional_encoding_op;

/* An embedding whose rows get positional encodings before they are stored: tokens [..., L], table [V, D], y
 * [..., L, D]. */
void cleat_launch_embedded_positions(cleat_binder *binder, const cleat_node *node, const cleat_tensor *tokens,
                                     const cleat_tensor *table, const cleat_tensor *lengths);
/* The term added to an element of y [B, L, D], or [..., L, D] without lengths [B]. */
double cleat_positional_value(const cleat_tensor *y, const int32_t *lengths, int64_t element);
/* Why the device cannot compute positional encodings, or NULL. */
const char *cleat_positional_refuse(const cleat_node *node, const cleat_device_facts *facts);

#endif

/* The nodes of an update graph: one optimizer step over the flat buffers of a store. Public users have
 * cleat_optimizer; the trainer's update graph has other nodes in between. */
#ifndef CLEAT_SRC_OPS_UPDATE_H
#define CLEAT_SRC_OPS_UPDATE_H

#include "cleat/ops.h"
#include "cleat/optimizer.h"

/* The 2-norm of the store's whole gradient, in a fixed order of summation
 * -> f32 [1]. No gradient. */
cleat_tensor *cleat_grad_norm(cleat_graph *graph);

/* One AdamW step (Loshchilov & Hutter 2019, decoupled decay, PyTorch's order of operations) over the flat
 * parameter, gradient and moment buffers in one pass, which also clips the gradient by its global norm
 * (coefficient min(1, max_norm / (norm + 1e-6)); max_norm 0: no clipping) and zeroes it. A norm that is not
 * finite leaves parameters and moments untouched (gradients are zeroed). hyper f32 [8]: learning rate, beta1,
 * beta2, eps, weight decay, max_norm, 1 - beta1^t, 1 - beta2^t. norm f32 [1]. loss_scale f32 [1], a power of two: the
 * gradient in the store is too large by this factor, and norm is that of the gradient proper; NULL: 1. Where graphs
 * that were built before have autocast parameters, their working copies are written too. No gradient. */
void cleat_adamw(cleat_graph *graph, cleat_tensor *hyper, cleat_tensor *norm, cleat_tensor *loss_scale);

/* Fills `hyper` [8] of cleat_adamw for the step that comes after `steps` others. */
void cleat_adamw_hyper(const cleat_adamw_spec *spec, double learning_rate, int64_t steps, float *hyper);

/* Writes the working copies of all parameters (cleat_autocast): needed once the host has written parameters. At least
 * one graph that was built before has made them. */
void cleat_refresh_half_weights(cleat_graph *graph);

/* Dynamic loss scaling, for gradients in f16, which knows nothing between 0 and 6e-8 (Micikevicius et al., "Mixed
 * Precision Training", ICLR 2018; the rules of PyTorch's torch.amp.GradScaler). Backward starts from the scale
 * instead of 1; a step is
 *
 *   norm = |scaled gradient| / scale;  AdamW, unless norm is not finite
 *   scale <- scale / 2 where norm is not finite, scale * 2 after `interval` finite ones in a row, but in [1, 2^40]
 *
 * The scale is a power of two, so that scaling rounds nothing. States of the store; the host writes what they start from. */
typedef struct cleat_loss_scale {
    cleat_tensor *loss_scale;  /* f32 [1], named "loss_scale": what cleat_backward starts from */
    cleat_tensor *clean_steps; /* i32 [1]: finite steps since the scale changed, or since one was not finite */
    cleat_tensor *updates;     /* i32 [1]: steps that moved the parameters: AdamW's t */
} cleat_loss_scale;
cleat_loss_scale cleat_loss_scale_states(cleat_graph *graph);

/* Before cleat_adamw: *norm f32 [1], the scaled gradient's, becomes the gradient's own, and *hyper f32 [8] becomes one whose bias
 * corrections count the steps that moved the parameters. No gradient. */
void cleat_loss_scale_unscale(cleat_graph *graph, const cleat_loss_scale *states, cleat_tensor **norm,
                              cleat_tensor **hyper);
/* After it: the states for the next step. norm f32 [1]; the scale doubles after `interval` >= 1 finite steps. No gradient. */
void cleat_loss_scale_update(cleat_graph *graph, const cleat_loss_scale *states, cleat_tensor *norm, int interval);

/* Moves the figures of a step into row slot[0] % R of a ring the host reads every few steps, and zeroes
 * `terms`: ring[row] = (terms[0..n), norm[0]), and loss_scale[0] behind them unless loss_scale is NULL. terms f32 [n] (state), norm
 * and loss_scale f32 [1], slot i32 [1], ring f32 [R, n + 1], or with a scale [R, n + 2] (state). No gradient. */
void cleat_log_step(cleat_graph *graph, cleat_tensor *terms, cleat_tensor *norm, cleat_tensor *loss_scale,
                    cleat_tensor *slot, cleat_tensor *ring);

#endif

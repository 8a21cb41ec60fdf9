/* Nodes of an update graph: one optimizer step over the flat buffers of a store. The public interface is
 * cleat_optimizer; the trainer's update graph has additional nodes in between. */
#ifndef CLEAT_SRC_OPS_UPDATE_H
#define CLEAT_SRC_OPS_UPDATE_H

#include "cleat/op.h"
#include "cleat/ops.h"
#include "cleat/optimizer.h"

/* Euclidean norm of the store's whole gradient, summed in a fixed order -> f32 [1]. Not differentiable. */
cleat_tensor *cleat_grad_norm(cleat_graph *graph);

typedef struct cleat_loss_scale cleat_loss_scale;
/* cleat_grad_norm and cleat_loss_scale_unscale without a launch between them: the norm of the unscaled
 * gradient -> f32 [1]; *hyper f32 [8] becomes the corrected copy. NULL, and *hyper unchanged, if the graph
 * has failed. Not differentiable. */
cleat_tensor *cleat_unscaled_grad_norm(cleat_graph *graph, const cleat_loss_scale *states, cleat_tensor **hyper);

/* One AdamW step (Loshchilov & Hutter 2019, decoupled weight decay, PyTorch's order of operations) over the
 * flat parameter, gradient and moment buffers in one pass, which also clips the gradient by its global norm
 * (coefficient min(1, max_norm / (norm + 1e-6)); max_norm 0: no clipping) and zeroes it. If the norm is not
 * finite, parameters and moments are unchanged (gradients are zeroed). hyper f32 [8]: learning rate, beta1,
 * beta2, eps, weight decay, max_norm, 1 - beta1^t, 1 - beta2^t. norm f32 [1]. loss_scale f32 [1], a power of
 * two: factor by which the store's gradient is too large, whereas norm is the norm of the unscaled gradient;
 * NULL: 1. If graphs built before have autocast parameters, the half weights are written too. A store with
 * groups of parameters (cleat_store_arrange) gets a node for each group, with its factors of learning rate
 * and weight decay. Not differentiable. */
void cleat_adamw(cleat_graph *graph, cleat_tensor *hyper, cleat_tensor *norm, cleat_tensor *loss_scale);

/* Fills `hyper` [8] of cleat_adamw for the step that follows `steps` earlier ones. */
void cleat_adamw_hyper(const cleat_adamw_spec *spec, double learning_rate, int64_t steps, float *hyper);

/* One step of stochastic gradient descent (torch.optim.SGD with dampening 0; formulas: cl/sgd.cl), otherwise as
 * cleat_adamw: clipping, norms that are not finite, loss scale, half weights. The first moment holds the momentum;
 * without `momentum` no moments are read or written, so a plan allocates no bytes for them. */
void cleat_sgd(cleat_graph *graph, bool momentum, cleat_tensor *hyper, cleat_tensor *norm, cleat_tensor *loss_scale);

/* Fills `hyper` [8] of cleat_sgd. */
void cleat_sgd_hyper(const cleat_sgd_spec *spec, double learning_rate, float *hyper);

/* One step of Lion (cl/lion.cl), otherwise as cleat_adamw, with its `hyper`; the first moment holds the momentum. */
void cleat_lion(cleat_graph *graph, cleat_tensor *hyper, cleat_tensor *norm, cleat_tensor *loss_scale);

/* Writes the half weights of all parameters (cleat_autocast), which is needed after the host has written
 * parameters. The half weights must have been created by a graph built before. */
void cleat_refresh_half_weights(cleat_graph *graph);

/* Dynamic loss scaling for gradients in f16, whose smallest positive value is 6e-8 (Micikevicius et al.,
 * "Mixed Precision Training", ICLR 2018; the rules of PyTorch's torch.amp.GradScaler). Backward starts from
 * the scale instead of 1. A step is
 *
 *   norm = |scaled gradient| / scale;  AdamW, unless norm is not finite
 *   scale <- scale / 2 if norm is not finite, scale * 2 after `interval` finite steps in a row, within [1, 2^40]
 *
 * The scale is a power of two, so scaling is exact. The tensors are states of the store; the host writes
 * their initial values. */
struct cleat_loss_scale {
    cleat_tensor *loss_scale; /* f32 [1], named "loss_scale": initial gradient of cleat_backward */
    /* i32 [1]: number of finite steps since the scale last changed or a step was not finite. */
    cleat_tensor *clean_steps;
    /* i32 [1]: number of steps that changed the parameters, AdamW's t. */
    cleat_tensor *updates;
};
cleat_loss_scale cleat_loss_scale_states(cleat_graph *graph);

/* Placed before cleat_adamw: replaces *norm f32 [1], of the scaled gradient, by the norm of the unscaled one,
 * and *hyper f32 [8] by a copy whose bias corrections use the number of steps that changed the parameters.
 * Not differentiable. */
void cleat_loss_scale_unscale(cleat_graph *graph, const cleat_loss_scale *states, cleat_tensor **norm,
                              cleat_tensor **hyper);
/* Placed after cleat_adamw: updates the states for the next step. norm f32 [1]; the scale doubles after
 * `interval` >= 1 finite steps. Not differentiable. */
void cleat_loss_scale_update(cleat_graph *graph, const cleat_loss_scale *states, cleat_tensor *norm, int interval);

/* Copies the metrics of a step to row slot[0] % R of a ring buffer that the host reads every few steps, and
 * zeroes `terms`: ring[row] = (terms[0..n), norm[0]), followed by the loss scale unless `states` is NULL; the launch
 * then also does the work of cleat_loss_scale_update. terms f32 [n] (state), norm f32 [1], slot i32 [1],
 * ring f32 [R, n + 1], or [R, n + 2] with a loss scale (state). Not differentiable. */
void cleat_log_step(cleat_graph *graph, cleat_tensor *terms, cleat_tensor *norm, const cleat_loss_scale *states,
                    int interval, cleat_tensor *slot, cleat_tensor *ring);

/* Definitions (cleat_op.define) that two nodes share. Of {unscaled norm, corrected hyper} for a node whose
 * inputs are {..., loss_scale, hyper, updates}; norm: of the scaled gradient. */
cleat_expected_value cleat_define_unscaled(double norm, const cleat_host_values *values, int64_t element);

typedef struct cleat_scale_inputs {
    bool is_finite; /* the norm */
    double scale;
    int32_t clean_steps, updates, interval;
} cleat_scale_inputs;

/* Of {loss_scale, clean_steps, updates} after a step. */
cleat_expected_value cleat_define_scale(const cleat_scale_inputs *in, int output);

#endif

/* Optimizers: update of the parameters of a store from their gradients.
 *
 * An optimizer owns one graph, cleat_optimizer_graph, which is planned together with the graphs of the
 * caller. A training step is then one or more runs of a graph that ends in cleat_backward (gradients add
 * up), and one cleat_optimizer_step.
 *
 * Threads: an optimizer is used by one thread at a time, together with its store and execs. */
#ifndef CLEAT_OPTIMIZER_H
#define CLEAT_OPTIMIZER_H

#include "cleat/exec.h"
#include "cleat/graph.h"
#include "cleat/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cleat_optimizer cleat_optimizer;

/* The settings of AdamW. */
typedef struct cleat_adamw_spec {
    float beta1, beta2; /* decay of the moments, in [0, 1) */
    float eps;          /* added to the root of the second moment; > 0 */
    float weight_decay; /* decoupled, times the learning rate; >= 0 */
    float max_norm;     /* the gradient is clipped to this 2-norm; 0: not clipped */
} cleat_adamw_spec;

/* PyTorch's defaults: 0.9, 0.999, 1e-8, 0.01; no clipping. */
CLEAT_API cleat_adamw_spec cleat_adamw_defaults(void);

/* AdamW (Loshchilov & Hutter 2019, decoupled decay, PyTorch's order of operations) over all parameters of
 * `store`; spec NULL: cleat_adamw_defaults(). Create it behind the graphs that are trained: where they are
 * f16 (cleat_autocast) and cleat_backward was given no seed, the gradients are scaled, as
 * torch.amp.GradScaler does it, from 65536 on with twice the scale after 2000 good steps.
 * CLEAT_ERR_ARGUMENT: a setting outside its range, or a store without parameters. The store must outlive
 * the optimizer, and the optimizer plans with its graph. */
CLEAT_API cleat_status cleat_optimizer_create(cleat_store *store, const cleat_adamw_spec *spec,
                                              cleat_optimizer **optimizer, cleat_error *error);
CLEAT_API void cleat_optimizer_destroy(cleat_optimizer *optimizer);

/* For cleat_plan_create. Borrowed. */
CLEAT_API cleat_graph *cleat_optimizer_graph(const cleat_optimizer *optimizer);
/* f32 [1], of that graph: the 2-norm of the gradient of the last step, before clipping. Where it is not
 * finite the step changed no parameter. Borrowed. */
CLEAT_API cleat_tensor *cleat_optimizer_grad_norm(const cleat_optimizer *optimizer);

/* Enqueues one step: clips the gradient, updates the parameters and zeroes the gradient. Waits for
 * nothing. `exec` is of a plan with the optimizer's graph, else CLEAT_ERR_ARGUMENT. */
CLEAT_API cleat_status cleat_optimizer_step(cleat_optimizer *optimizer, cleat_exec *exec, double learning_rate,
                                            cleat_error *error);

/* Writes the moments, the number of steps and the loss scale to a .safetensors file; reads them back, so
 * that training goes on with the same bits (the parameters: cleat_exec_save). CLEAT_ERR_FORMAT or
 * CLEAT_ERR_SHAPE: not such a file, or one of another network; nothing was changed. */
CLEAT_API cleat_status cleat_optimizer_save(const cleat_optimizer *optimizer, cleat_exec *exec, const char *path,
                                            cleat_error *error);
CLEAT_API cleat_status cleat_optimizer_load(cleat_optimizer *optimizer, cleat_exec *exec, const char *path,
                                            cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif

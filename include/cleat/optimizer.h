/* Optimizers: updates of the parameters of a store from their gradients.
 *
 * An optimizer owns one graph, cleat_optimizer_graph, which is planned together with the graphs of the
 * caller. A training step consists of one or more runs of a graph that ends in cleat_backward, whose
 * gradients are summed, followed by one cleat_optimizer_step.
 *
 * Threads: only one thread at a time may use an optimizer together with its store and execs. */
#ifndef CLEAT_OPTIMIZER_H
#define CLEAT_OPTIMIZER_H

#include "cleat/exec.h"
#include "cleat/graph.h"
#include "cleat/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cleat_optimizer cleat_optimizer;

/* train.optimizer of a profile. */
typedef enum cleat_optimizer_kind {
    CLEAT_OPTIMIZER_ADAMW,
    CLEAT_OPTIMIZER_SGD,
    CLEAT_OPTIMIZER_LION,
} cleat_optimizer_kind;

/* The settings of AdamW. */
typedef struct cleat_adamw_spec {
    float beta1, beta2; /* decay rates of the moments, in [0, 1) */
    float eps;          /* added to the square root of the second moment; > 0 */
    float weight_decay; /* decoupled; multiplied by the learning rate; >= 0 */
    float max_norm;     /* maximum 2-norm of the gradient, which is clipped to it; 0: no clipping */
} cleat_adamw_spec;

/* The defaults of PyTorch: betas 0.9 and 0.999, eps 1e-8, weight decay 0.01; no clipping. */
CLEAT_API cleat_adamw_spec cleat_adamw_defaults(void);

/* Creates an AdamW optimizer (Loshchilov & Hutter 2019; decoupled weight decay, PyTorch's order of
 * operations) for all parameters of `store`. `spec` NULL: cleat_adamw_defaults(). Create it after the graphs
 * to be trained: if they are f16 (cleat_autocast) and cleat_backward got no seed, the loss is scaled as by
 * torch.amp.GradScaler, initially by 65536; the scale doubles after every 2000 good steps. The store must
 * outlive the optimizer, and the optimizer must outlive all plans with its graph. CLEAT_ERR_ARGUMENT: a
 * setting is out of range, or the store has no parameters. */
CLEAT_API cleat_status cleat_optimizer_create(cleat_store *store, const cleat_adamw_spec *spec,
                                              cleat_optimizer **optimizer, cleat_error *error);

/* The settings of SGD, stochastic gradient descent. */
typedef struct cleat_sgd_spec {
    float momentum;     /* in [0, 1); 0: none, and no optimizer state */
    bool nesterov;      /* Nesterov's momentum; only with momentum */
    float weight_decay; /* added to the gradient, times the parameter (L2 regularisation); >= 0 */
    float max_norm;     /* maximum 2-norm of the gradient, which is clipped to it; 0: no clipping */
} cleat_sgd_spec;

/* The same for SGD, by the formulas of torch.optim.SGD with dampening 0: g += weight_decay p, m = momentum m
 * + g (m begins at 0), p -= learning rate * m, or with `nesterov` * (g + momentum m). It keeps one moment,
 * AdamW two. `spec` NULL: PyTorch's defaults, which are zeros. CLEAT_ERR_ARGUMENT also: `nesterov` without
 * momentum. */
CLEAT_API cleat_status cleat_optimizer_create_sgd(cleat_store *store, const cleat_sgd_spec *spec,
                                                  cleat_optimizer **optimizer, cleat_error *error);
/* Destroys an optimizer of either kind; accepts NULL. */
CLEAT_API void cleat_optimizer_destroy(cleat_optimizer *optimizer);

/* The optimizer's graph, for cleat_plan_create. Borrowed. */
CLEAT_API cleat_graph *cleat_optimizer_graph(const cleat_optimizer *optimizer);
/* Tensor f32 [1] of that graph: the 2-norm of the gradient of the last step before clipping. If it is not
 * finite, the step changed no parameter. Borrowed. */
CLEAT_API cleat_tensor *cleat_optimizer_grad_norm(const cleat_optimizer *optimizer);

/* Enqueues one step, which clips the gradient, updates the parameters and sets the gradient to zero. Does not
 * wait. CLEAT_ERR_ARGUMENT: the plan of `exec` does not contain the optimizer's graph. */
CLEAT_API cleat_status cleat_optimizer_step(cleat_optimizer *optimizer, cleat_exec *exec, double learning_rate,
                                            cleat_error *error);

/* Save writes the moments, the number of steps and the loss scale to a .safetensors file; load reads them,
 * after which training continues with the same bits. Parameters are saved separately (cleat_exec_save).
 * CLEAT_ERR_FORMAT or CLEAT_ERR_SHAPE: not such a file, or a file of another network or kind of
 * optimizer; nothing is changed. */
CLEAT_API cleat_status cleat_optimizer_save(const cleat_optimizer *optimizer, cleat_exec *exec, const char *path,
                                            cleat_error *error);
CLEAT_API cleat_status cleat_optimizer_load(cleat_optimizer *optimizer, cleat_exec *exec, const char *path,
                                            cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif

/* Graphs of tensors: the builder, the parameters that graphs share, autodiff, and the memory plan.
 *
 * Nothing here depends on OpenCL: a graph is built, differentiated and planned without a card.
 *
 * Building needs no error check per line. The graph remembers its first error; later calls do nothing and
 * return NULL; the caller checks once, with cleat_graph_status, or receives the error from cleat_plan_create.
 * A missing (NULL) tensor and a tensor of another graph are also errors.
 *
 * Threads: a store with all its graphs and tensors is used by one thread at a time; stores are independent.
 * Making a plan only reads them, and a plan never changes afterwards: several threads may read one while its
 * store and graphs are unchanged. */
#ifndef CLEAT_GRAPH_H
#define CLEAT_GRAPH_H

#include "cleat/core.h"
#include "cleat/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* TF32, f32 rounded to 11 significant bits, is a type of cleat_autocast and of products, not of tensors. U8: bytes.
 * The types after it store a frozen weight in blocks along its rows:
 *
 *   Q8    32 values: a scale (f16) times integers of 8 bits (GGUF's Q8_0)
 *   NF4   64 values: a scale times one of 16 quantiles of the normal distribution; the scales are themselves
 *         quantised to 8 bits in blocks of 256 (Dettmers et al., QLoRA, 2023: double quantisation)
 *   Q4    32 values: a scale (f16) times integers of 4 bits, plus a number (f16) (GGUF's Q4_1)
 *   HALF  f16, beside graphs of any type */
typedef enum cleat_dtype {
    CLEAT_F32,
    CLEAT_F16,
    CLEAT_BF16,
    CLEAT_I32,
    CLEAT_U32,
    CLEAT_TF32,
    CLEAT_U8,
    CLEAT_Q8,
    CLEAT_NF4,
    CLEAT_Q4,
    CLEAT_HALF,
} cleat_dtype;

/* Bytes of an element, 1 for blocks, whose places are counted in bytes; "f32", "f16", "bf16", "i32", "u32", "tf32",
 * "u8", "q8", "nf4", "q4", "half". */
CLEAT_API int cleat_dtype_size(cleat_dtype dtype);
CLEAT_API const char *cleat_dtype_name(cleat_dtype dtype);

enum { CLEAT_MAX_RANK = 5, CLEAT_NAME = 64 };

typedef struct cleat_store cleat_store;   /* parameters, gradients, optimizer state: what outlives a graph */
typedef struct cleat_graph cleat_graph;   /* nodes in execution order, and their tensors */
typedef struct cleat_tensor cleat_tensor; /* owned by its graph, or by the store when it is persistent */
typedef struct cleat_plan cleat_plan;     /* location of every tensor of every graph */
typedef struct cleat_tuning_table cleat_tuning_table; /* fastest kernels of a device, as measured */

/* --- store ---------------------------------------------------------------------------------------------------- */

/* Initialisation of a parameter. Every value is drawn from Philox keyed by (seed, name), so that it does
 * not depend on the order of declaration. */
typedef enum cleat_init_kind {
    CLEAT_INIT_ZERO,
    CLEAT_INIT_CONSTANT, /* value */
    CLEAT_INIT_UNIFORM,  /* [-value, value) */
    CLEAT_INIT_NORMAL,   /* mean 0, standard deviation `value` */
} cleat_init_kind;

typedef struct cleat_init {
    cleat_init_kind kind;
    float value;
} cleat_init;

/* An empty store, for the graphs of one network: the caller destroys it after them. Destroy accepts NULL. */
CLEAT_API cleat_status cleat_store_create(cleat_store **store, cleat_error *error);
CLEAT_API void cleat_store_destroy(cleat_store *store);

/* The number of parameters (tensors), and of their elements. */
CLEAT_API size_t cleat_store_count(const cleat_store *store);
CLEAT_API int64_t cleat_store_elements(const cleat_store *store);
/* The i-th parameter in the order of declaration; its gradient. Borrowed; NULL past the last. */
CLEAT_API cleat_tensor *cleat_store_param(const cleat_store *store, size_t i);
CLEAT_API cleat_tensor *cleat_store_grad(const cleat_store *store, size_t i);
CLEAT_API cleat_tensor *cleat_store_find(const cleat_store *store, const char *name); /* NULL if none has this name */

/* --- graph ---------------------------------------------------------------------------------------------------- */

/* An empty graph over `store`, which must outlive it; `name` is for messages. Destroy accepts
 * NULL and frees the tensors that the graph owns. */
CLEAT_API cleat_status cleat_graph_create(cleat_store *store, const char *name, cleat_graph **graph,
                                          cleat_error *error);
CLEAT_API void cleat_graph_destroy(cleat_graph *graph);
/* CLEAT_OK, or the first error of the calls that built the graph, copied to `error`. */
CLEAT_API cleat_status cleat_graph_status(const cleat_graph *graph, cleat_error *error);

/* Declares an input: a tensor that the host fills before each run. Input names are unique within a graph. */
CLEAT_API cleat_tensor *cleat_input(cleat_graph *graph, const char *name, cleat_dtype dtype, int rank,
                                    const int64_t *shape);
/* The parameter `name` (f32) of the graph's store: declared at first use; a later use must have the same
 * shape. */
CLEAT_API cleat_tensor *cleat_param(cleat_graph *graph, const char *name, int rank, const int64_t *shape,
                                    cleat_init init);
/* A small persistent tensor (not trained, zero at start) of the store, shared by all graphs that name it. */
CLEAT_API cleat_tensor *cleat_state(cleat_graph *graph, const char *name, cleat_dtype dtype, int rank,
                                    const int64_t *shape);
/* A persistent f32 tensor of the store, filled with `value`, that no graph changes; shared by all graphs that
 * name it (for example, equal sample weights of a loss). It is not saved to files. */
CLEAT_API cleat_tensor *cleat_constant(cleat_graph *graph, const char *name, int rank, const int64_t *shape,
                                       float value);
/* A persistent f32 tensor that training updates without a gradient (running statistics), filled with `initial`
 * at the start; shared by all graphs that name it. Checkpoints contain it beside the parameters, so no
 * parameter or state may have the same name. */
CLEAT_API cleat_tensor *cleat_buffer(cleat_graph *graph, const char *name, int rank, const int64_t *shape,
                                     float initial);
/* Running mean and variance of a batch normalisation (cleat_batch_norm_update_running_stats). */
typedef struct cleat_running_stats {
    cleat_tensor *mean, *var; /* buffers f32 [channels]; NULL if the graph has an error */
} cleat_running_stats;
/* The buffers NAME_mean, which starts at 0, and NAME_var, which starts at 1. */
CLEAT_API cleat_running_stats cleat_running_statistics(cleat_graph *graph, const char *name, int64_t channels);
/* Keeps a tensor for reading by the host after the run: its bytes are not reused within the graph. Call it before
 * the plan is made. NULL is ignored. */
CLEAT_API void cleat_retain(cleat_graph *graph, cleat_tensor *tensor);

/* Appends the nodes that compute the gradient of `loss` (f32, one element) with respect to every parameter
 * and every input marked by cleat_require_grad. Parameter gradients accumulate in the store's gradient
 * buffer, which the optimizer zeroes; each gradient of an activation is a separate tensor. `seed` (f32 [1])
 * is the gradient of the loss itself; NULL: 1, or with f16 weights (cleat_autocast) the loss scale, which an
 * optimizer (cleat/optimizer.h) adjusts. */
CLEAT_API void cleat_backward(cleat_graph *graph, cleat_tensor *loss, cleat_tensor *seed);
/* Requests the gradient of an input from cleat_backward; calling it after an operation has used the input is an
 * error. */
CLEAT_API void cleat_require_grad(cleat_graph *graph, cleat_tensor *input);
/* The gradient that cleat_backward computed (for a parameter: its place in the store), or NULL. Borrowed. */
CLEAT_API cleat_tensor *cleat_gradient(const cleat_graph *graph, const cleat_tensor *tensor);

/* Fuses nodes of a finished graph (after cleat_backward, before planning) if one kernel can do the work of two:
 * an activation after a linear layer, forward and backward; an addition after dropout. An intermediate result
 * that has no other consumer and is not retained (cleat_retain) is then never written; if it was a gradient,
 * cleat_gradient returns NULL. Results differ only by the rounding of values that are no longer stored. Without
 * this call every node runs separately. */
CLEAT_API void cleat_graph_fuse(cleat_graph *graph);
/* Declares, before cleat_graph_fuse, that the graph will only run on devices whose work-groups have one
 * work-item with wide vectors (cleat_device_facts.work_group is 1). More nodes are then fused: the inputs'
 * product of an LSTM layer with its steps. */
CLEAT_API void cleat_graph_set_wide(cleat_graph *graph, bool wide);

/* The input or activation of that name, or NULL; the number of nodes. */
CLEAT_API cleat_tensor *cleat_graph_find(const cleat_graph *graph, const char *name);
CLEAT_API size_t cleat_graph_nodes(const cleat_graph *graph);

/* Properties of a tensor. `tensor` must not be NULL; name and shape [rank] are borrowed. */
CLEAT_API const char *cleat_tensor_name(const cleat_tensor *tensor);
CLEAT_API cleat_dtype cleat_tensor_dtype(const cleat_tensor *tensor);
CLEAT_API int cleat_tensor_rank(const cleat_tensor *tensor);
CLEAT_API const int64_t *cleat_tensor_shape(const cleat_tensor *tensor);
CLEAT_API int64_t cleat_tensor_elements(const cleat_tensor *tensor);
CLEAT_API int64_t cleat_tensor_bytes(const cleat_tensor *tensor);

/* --- plan ----------------------------------------------------------------------------------------------------- */

/* Categories of the bytes of a plan, as shown to users. */
#define CLEAT_CATEGORY_LIST(X)                                                                                         \
    X(CLEAT_BYTES_PARAMETERS, "parameters")                                                                            \
    X(CLEAT_BYTES_HALF_WEIGHTS, "half copies")                                                                         \
    X(CLEAT_BYTES_BLOCK_WEIGHTS, "frozen blocks")                                                                      \
    X(CLEAT_BYTES_GRADIENTS, "gradients")                                                                              \
    X(CLEAT_BYTES_OPTIMIZER, "optimizer")                                                                              \
    X(CLEAT_BYTES_STATE, "state")                                                                                      \
    X(CLEAT_BYTES_INPUTS, "inputs")                                                                                    \
    X(CLEAT_BYTES_ARENA, "activations and workspace")

typedef enum cleat_category {
#define CLEAT_CATEGORY_ENUM(code, text) code,
    CLEAT_CATEGORY_LIST(CLEAT_CATEGORY_ENUM)
#undef CLEAT_CATEGORY_ENUM
        CLEAT_CATEGORIES,
} cleat_category;

/* "parameters", "activations and workspace", ... */
CLEAT_API const char *cleat_category_name(cleat_category category);

/* Lays out every tensor of `graphs` [count], which share one store and never run at the same time: they share
 * the arena. Chooses each node's kernel variant for `facts`. A pure function: allocates nothing on any
 * device. The graphs and the store must outlive the plan. CLEAT_ERR_FIT names the tensor that is larger than
 * the device's largest buffer. */
CLEAT_API cleat_status cleat_plan_create(cleat_graph *const *graphs, size_t count, const cleat_device_facts *facts,
                                         cleat_plan **plan, cleat_error *error);
CLEAT_API void cleat_plan_destroy(cleat_plan *plan);
CLEAT_API void cleat_tuning_destroy(cleat_tuning_table *tuning);
/* Describes the choices of a tuned table and their origin: "61 choices tuned here on 2026-11-20 and 40
 * choices shipped for pocl_cpu, measured on 2026-11-02"; NULL: "the defaults". Written to `text`, which is
 * returned. */
enum { CLEAT_TUNING_TEXT = 288 };
CLEAT_API const char *cleat_tuning_describe(const cleat_tuning_table *tuning, char text[CLEAT_TUNING_TEXT]);
/* Bytes allocated by cleat_exec_create: in total, and of one category. */
CLEAT_API int64_t cleat_plan_bytes(const cleat_plan *plan);
CLEAT_API int64_t cleat_plan_category_bytes(const cleat_plan *plan, cleat_category category);
/* The arena's lower bound: the largest sum of live tensors at one node of one graph. */
CLEAT_API int64_t cleat_plan_lower_bound(const cleat_plan *plan);
/* Name of the node at which that bound is reached. Borrowed from the plan. */
CLEAT_API const char *cleat_plan_peak_node(const cleat_plan *plan);

#ifdef __cplusplus
}
#endif
#endif

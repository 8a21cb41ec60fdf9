/* Internal definitions of graphs: tensors, graphs and the store. Read include/cleat/op.h (nodes and operations)
 * and then this file first; everything else follows from them. Pure data, without OpenCL. A graph owns its
 * nodes and its tensors; the store owns the persistent tensors. Not thread-safe: one thread at a time builds
 * or reads a graph and its store. */
#ifndef CLEAT_SRC_GRAPH_H
#define CLEAT_SRC_GRAPH_H

#include "cleat/op.h"

typedef enum cleat_role {
    CLEAT_ROLE_ACTIVATION, /* live from its producer to its last consumer */
    CLEAT_ROLE_INPUT,      /* filled by the host */
    /* This role and those that follow belong to the store; those up to the block weights have flat buffers, in the
     * order of cleat_flat_buffer. */
    CLEAT_ROLE_PARAMETER,
    CLEAT_ROLE_GRADIENT,
    CLEAT_ROLE_MOMENT1,
    CLEAT_ROLE_MOMENT2,
    /* Half weights: a parameter in the storage type of the computation; the optimizer writes it. */
    CLEAT_ROLE_HALF_WEIGHT,
    /* Block weights: what some ops read of a frozen parameter, once it is known that no other op reads it; else the
     * tensor becomes a twin of the parameter or of its half weight (cleat_store_arrange). */
    CLEAT_ROLE_BLOCK_WEIGHT,
    CLEAT_ROLE_STATE,
} cleat_role;

/* How a parameter is trained. */
typedef struct cleat_param_rule {
    float rate;         /* factor of the optimizer's learning rate */
    float decay;        /* factor of its weight decay */
    bool frozen;        /* not trained: no gradient, no moments */
    bool streamed;      /* generation: a product with one row reads the matrix once, in separate kernels */
    cleat_dtype blocks; /* Q8, NF4: how a frozen matrix is stored where all its readers can; F32: as it is read */
} cleat_param_rule;

/* Chooses the rule of the parameter `name`, whose rank is `rank`. *rule is {1, 1, false} before the call. */
typedef void (*cleat_param_rule_fn)(void *user, const char *name, int rank, cleat_param_rule *rule);

/* Parameters of one rule, side by side in the flat buffers. */
typedef struct cleat_param_group {
    cleat_param_rule rule;
    int64_t first, elements; /* in the flat buffers, gaps for alignment included */
} cleat_param_group;

struct cleat_tensor {
    char name[CLEAT_NAME];
    cleat_dtype dtype;
    int rank;
    int64_t shape[CLEAT_MAX_RANK];
    cleat_role role;
    int index;            /* position in its graph, or in its list of the store */
    cleat_node *producer; /* NULL for inputs and persistent tensors */
    cleat_tensor *base;   /* of a reshape: the tensor whose bytes it uses (base->base is NULL) */
    /* Of a recomputed copy (recompute.c): the tensor that it repeats; both share one gradient. */
    cleat_tensor *recompute_of;
    /* The recomputed copy of this tensor that the backward part reads; NULL: the backward part reads this
     * tensor. */
    cleat_tensor *recomputed;
    /* Parameter, gradient, moment, half weight: its first element in the flat buffer; block weight: its first byte. */
    int64_t flat_offset;
    cleat_tensor *cast_cache; /* the cast of this tensor that autocast made (cleat_emit), or NULL */
    cleat_init init;          /* of a parameter */
    cleat_param_rule rule;    /* of a parameter */
    bool read_in_f32;         /* of a parameter: a node reads it, and not only its half weight */
    /* Of a frozen parameter that only its half or block weight represents on the device (cleat_store_arrange):
     * flat_offset is then its place in host copies of the parameters only. */
    bool half_only;
    /* A state that checkpoints contain; flat_offset is then its first element among the store's buffers. */
    bool is_buffer;
    float initial;      /* of a state, everywhere */
    bool requires_grad; /* depends on a parameter, or was requested */
    bool retain;        /* the host reads it after the run */
};

/* The flat buffers of a store, in the order of cleat_store.flat and cleat_plan.flat. Every trained parameter has a
 * place in the first CLEAT_FLATS_ALWAYS of them; it has one in CLEAT_FLAT_HALF_WEIGHTS only if a graph asked
 * for its half weight. Frozen parameters come after the trained ones (cleat_store_arrange). */
typedef enum cleat_flat_buffer {
    CLEAT_FLAT_PARAMETERS,
    CLEAT_FLAT_GRADIENTS,
    CLEAT_FLAT_MOMENTS1,
    CLEAT_FLAT_MOMENTS2,
    CLEAT_FLAT_HALF_WEIGHTS,
    CLEAT_FLAT_BLOCK_WEIGHTS, /* bytes */
    CLEAT_FLATS,
    CLEAT_FLATS_ALWAYS = CLEAT_FLAT_HALF_WEIGHTS
} cleat_flat_buffer;

struct cleat_store {
    /* [count], same index, by name and in the order of cleat_flat_buffer; NULL: gradient and moments of a frozen
     * parameter, and a half or block weight that no graph asked for. */
    union {
        struct {
            cleat_tensor **params, **grads, **moments1, **moments2, **half_weights, **block_weights;
        };
        cleat_tensor **flat_tensors[CLEAT_FLATS];
    };
    size_t count, capacity;
    cleat_tensor **states;
    size_t state_count, state_capacity;
    cleat_tensor **buffers; /* [buffer_count] those states that are buffers, in order of declaration */
    size_t buffer_count, buffer_capacity;
    int64_t buffer_elements;
    /* Elements of a host copy of all parameters, gaps for alignment included. Without frozen parameters it is
     * the size of each flat buffer. */
    int64_t flat_elements;
    int64_t trained_elements; /* of the gradients and of each moment: the trained parameters, which come first */
    /* Parameters at the start of their flat buffer that have the same place in the half weights, if there are any. */
    int64_t shared_elements;
    cleat_param_rule_fn choose_rule; /* NULL: all parameters are trained alike */
    void *rule_user;
    bool arranged;
    cleat_param_group *groups; /* [group_count] of the trained parameters, once arranged */
    size_t group_count;
    cleat_tensor **views; /* [view_count] parts of flat buffers (cleat_store_view) */
    size_t view_count, view_capacity;
    /* The flat buffers as whole tensors. As long as no graph has asked for half weights, that buffer is f32
     * and has no elements. */
    cleat_tensor flat[CLEAT_FLATS];
};

struct cleat_graph {
    char name[CLEAT_NAME];
    cleat_store *store;
    cleat_node **nodes;
    size_t node_count, node_capacity;
    cleat_tensor **tensors; /* activations and inputs, in order of creation */
    size_t tensor_count, tensor_capacity;
    cleat_tensor **gradients; /* [tensor_count when cleat_backward was called] the gradient of tensors[i] */
    size_t gradient_count;
    size_t forward_nodes; /* number of nodes before cleat_backward; node_count without a backward part */
    bool wide;            /* cleat_graph_set_wide */
    bool fused;           /* by cleat_graph_fuse: cleat_backward is then an error */
    cleat_dtype storage;  /* storage type of the nodes that follow; used if `cast` is set */
    bool tf32;            /* the nodes that follow may round the operands of their products (cleat_node.tf32) */
    /* Emits a cast for autocast; NULL: inputs are used as they are. Gradient nodes never get casts. */
    cleat_tensor *(*cast)(cleat_graph *, cleat_tensor *, cleat_dtype);
    /* Number of segments in a recomputed group; 0: nothing is recomputed (recompute.h). */
    int recompute;
    bool recompute_cheap;          /* outputs of cheap ops are recomputed, one by one (recompute.h) */
    const struct cleat_lora *lora; /* adapters of the linear layers that are built (nn/lora.h); NULL: none */
    /* [mark_count] ascending: index of the node before which a segment begins or the last segment ends. */
    size_t *marks;
    size_t mark_count, mark_capacity;
    char scope[CLEAT_NAME];
    cleat_error error;
};

/* --- for op files, beside cleat/op.h ------------------------------------------------------------------------------ */

/* Cost of an elementwise op: the bytes of all inputs and outputs, each counted once, and `flops_per_element`
 * per element of out[0]. */
cleat_cost cleat_elementwise_cost(const cleat_node *node, double flops_per_element);
/* The cost of any node. */
cleat_cost cleat_node_cost(const cleat_node *node);

/* Replaces the gradient of an activation or input (for backward functions only). A gradient of another shape or type
 * is an error of the graph. */
void cleat_set_gradient(cleat_graph *graph, cleat_tensor *x, cleat_tensor *gradient);

/* Appends a copy of the forward node `node` with the same op and attributes. Inputs that were copied before
 * are replaced by their copies. The outputs, named "NAME (again)", become the `recomputed` copies of the
 * outputs of `node`. For recompute.c. */
cleat_node *cleat_emit_recomputed(cleat_graph *graph, const cleat_node *node);

/* The tensor from which nodes emitted from now on read the value of `tensor`; NULL for NULL. */
static inline cleat_tensor *cleat_current(cleat_tensor *tensor) {
    return tensor && tensor->recomputed ? tensor->recomputed : tensor;
}

/* The state f32 [1] of the loss scale for f16, initially 65536. The first graph that asks declares it. */
#define CLEAT_LOSS_SCALE "loss_scale"
cleat_tensor *cleat_loss_scale_state(cleat_graph *graph);
/* Whether a graph of the store has declared the loss scale, which means that gradients are scaled. */
bool cleat_store_has_loss_scale(const cleat_store *store);

/* As cleat_backward, from any set of tensors: douts[i] is the gradient of outs[i], with the same shape and
 * dtype. */
void cleat_backward_from(cleat_graph *graph, cleat_tensor *const *outs, cleat_tensor *const *douts, int n);

/* Whether nodes of the graph may use the tensor: it is the graph's own, or its store's. */
bool cleat_graph_owns(const cleat_graph *graph, const cleat_tensor *tensor);

/* Writes type and shape as text: "f32 [2, 512, 256]". */
void cleat_tensor_describe(const cleat_tensor *tensor, char *text, size_t size);
/* The same, as an argument of the call that prints it. */
#define CLEAT_DESCRIBED(tensor) cleat_described(tensor, (char[96]){0})
static inline const char *cleat_described(const cleat_tensor *tensor, char *text) {
    cleat_tensor_describe(tensor, text, 96);
    return text;
}

/* Product of all dimensions but the last, and the last dimension: most ops treat a tensor as
 * [rows, width]. */
int64_t cleat_rows(const cleat_tensor *tensor);
int64_t cleat_width(const cleat_tensor *tensor);
bool cleat_same_shape(const cleat_tensor *a, const cleat_tensor *b);
bool cleat_is_storage(cleat_dtype dtype); /* f32, f16 or bf16 */
double cleat_roundoff(cleat_dtype dtype); /* largest relative error of rounding to it; 0: an integer type */
/* The tensor that has the bytes: the base of a reshape, else the tensor itself. */
static inline const cleat_tensor *cleat_root(const cleat_tensor *tensor) {
    return tensor->base ? tensor->base : tensor;
}

/* Whether the tensor belongs to the store and outlives a run of its graph. */
static inline bool cleat_is_persistent(const cleat_tensor *tensor) {
    return tensor->role != CLEAT_ROLE_ACTIVATION && tensor->role != CLEAT_ROLE_INPUT;
}

/* Whether any graph of the store uses half weights. */
static inline bool cleat_has_half_weights(const cleat_store *store) {
    return store->flat[CLEAT_FLAT_HALF_WEIGHTS].dtype != CLEAT_F32;
}

/* Whether the tensor has the values of a parameter, which no node overwrites between two others. */
static inline bool cleat_is_weight(const cleat_tensor *tensor) {
    return tensor->role == CLEAT_ROLE_PARAMETER || tensor->role == CLEAT_ROLE_HALF_WEIGHT ||
           tensor->role == CLEAT_ROLE_BLOCK_WEIGHT;
}

/* Index in cleat_store.flat of the buffer for tensors of this role; -1: none. */
static inline int cleat_flat_index(cleat_role role) {
    const bool has_flat = role >= CLEAT_ROLE_PARAMETER && role <= CLEAT_ROLE_BLOCK_WEIGHT;
    return has_flat ? (int)role - CLEAT_ROLE_PARAMETER : -1;
}

/* The memory category of a flat buffer. */
static inline cleat_category cleat_flat_category(int flat) {
    static const cleat_category categories[CLEAT_FLATS] = {
        [CLEAT_FLAT_PARAMETERS] = CLEAT_BYTES_PARAMETERS,     [CLEAT_FLAT_GRADIENTS] = CLEAT_BYTES_GRADIENTS,
        [CLEAT_FLAT_MOMENTS1] = CLEAT_BYTES_OPTIMIZER,        [CLEAT_FLAT_MOMENTS2] = CLEAT_BYTES_OPTIMIZER,
        [CLEAT_FLAT_HALF_WEIGHTS] = CLEAT_BYTES_HALF_WEIGHTS, [CLEAT_FLAT_BLOCK_WEIGHTS] = CLEAT_BYTES_BLOCK_WEIGHTS};
    return categories[flat];
}

/* Sets the prefix of the names of the nodes that follow ("blocks.0."); NULL or "": no prefix. */
void cleat_scope(cleat_graph *graph, const char *format, ...) CLEAT_PRINTF(2, 3);
void cleat_graph_fail(cleat_graph *graph, cleat_status status, const char *format, ...) CLEAT_PRINTF(3, 4);

#endif

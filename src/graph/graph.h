/* The inside of graphs: tensors, nodes, and what an operation is. Read this first; everything else follows
 * from it. */
#ifndef CLEAT_SRC_GRAPH_H
#define CLEAT_SRC_GRAPH_H

#include "cleat/graph.h"

typedef struct cleat_node cleat_node;
typedef struct cleat_op cleat_op;

typedef enum cleat_role {
    CLEAT_ROLE_ACTIVATION, /* lives from its producer to its last consumer */
    CLEAT_ROLE_INPUT,      /* filled by the host */
    CLEAT_ROLE_PARAMETER,  /* these six are the store's */
    CLEAT_ROLE_GRADIENT,
    CLEAT_ROLE_MOMENT1,
    CLEAT_ROLE_MOMENT2,
    CLEAT_ROLE_COPY, /* a parameter in the storage type it is computed with; the optimizer writes it */
    CLEAT_ROLE_STATE,
} cleat_role;

struct cleat_tensor {
    char name[CLEAT_NAME];
    cleat_dtype dtype;
    int rank;
    int64_t shape[CLEAT_MAX_RANK];
    cleat_role role;
    int index;                  /* in its graph, or in its list of the store */
    cleat_node *producer;       /* NULL for inputs and persistent tensors */
    cleat_tensor *base;         /* a reshape: these bytes are base's (base->base is NULL) */
    cleat_tensor *recompute_of; /* of a copy that recompute.c made: the tensor it repeats; they share one gradient */
    cleat_tensor *recomputed;   /* the copy of this tensor that the backward part reads; NULL: the tensor itself */
    int64_t flat_offset;        /* parameter, gradient, moment, copy: its first element in the flat buffer */
    cleat_tensor *cast_cache;   /* the cast that autocast made of it (cleat_emit) */
    cleat_init init;            /* parameter */
    bool is_buffer;     /* a state that checkpoints hold; flat_offset: its first element among the store's buffers */
    float initial[2];   /* buffer: of its first and of its second half; both 0 for other states */
    bool requires_grad; /* depends on a parameter, or asked for */
    bool retain;        /* the host reads it after the run */
};

/* The flat buffers of a store, in this order wherever there is something for each. Every parameter has a place in the first
 * CLEAT_FLATS_ALWAYS; in CLEAT_FLAT_HALF_WEIGHTS it has one where a graph asked for its working copy. */
typedef enum cleat_flat {
    CLEAT_FLAT_PARAMETERS,
    CLEAT_FLAT_GRADIENTS,
    CLEAT_FLAT_MOMENTS1,
    CLEAT_FLAT_MOMENTS2,
    CLEAT_FLAT_HALF_WEIGHTS,
    CLEAT_FLATS,
    CLEAT_FLATS_ALWAYS = CLEAT_FLAT_HALF_WEIGHTS
} cleat_flat;
enum { CLEAT_MAX_IN = 10, CLEAT_MAX_OUT = 5, CLEAT_ATTR_BYTES = 64 };

/* One use of an operation. `in` entries may be NULL where the op says an input is optional. */
struct cleat_node {
    const cleat_op *op;
    char name[CLEAT_NAME]; /* path of the layer that asked for it: "blocks.0.att/attention" */
    cleat_graph *graph;
    int index;       /* place in execution order */
    bool recomputed; /* repeats a forward node for the backward part (recompute.h) */
    int n_in, n_out;
    cleat_tensor *in[CLEAT_MAX_IN];
    cleat_tensor *out[CLEAT_MAX_OUT];
    _Alignas(8) unsigned char attr[CLEAT_ATTR_BYTES]; /* the op's own struct */
};

typedef struct cleat_cost {
    double flops;
    double bytes; /* read + written, each tensor once */
} cleat_cost;

typedef struct cleat_binder cleat_binder; /* graph/launch.h */

/* One way to compute a node. An op lists its variants fastest first, a plain one last. */
typedef struct cleat_variant {
    const char *name;
    /* NULL when it serves this node on this device, else the reason why not (shown by --log dispatch). */
    const char *(*refuse)(const cleat_node *node, const cleat_device_facts *facts);
    /* Bytes of scratch the launches need while they run; NULL for none. */
    int64_t (*workspace)(const cleat_node *node, const cleat_device_facts *facts);
    /* Appends the launches to the binder, all arguments included; an error goes to binder->error (cleat_bind_node).
     * Pure: no device is touched. */
    void (*bind)(const cleat_node *node, cleat_binder *binder);
} cleat_variant;

/* An operation: one static const struct in src/ops/NAME.c. Nothing enumerates ops; a node points at its own. */
struct cleat_op {
    const char *name;
    /* Checks the inputs and gives every output its shape and dtype (cleat_set_output). For a gradient op
     * (emitted by cleat_emit_grads) the outputs already have theirs, and infer only checks. */
    cleat_status (*infer)(cleat_node *node, cleat_error *error);
    /* Emits the nodes that compute the inputs' gradients from dout [n_out] (entries NULL where no gradient
     * arrives; one of them at least is not). `node` lives for the call only; its tensors are
     * those that hold the values by then (recompute.h). NULL when the op has no gradient. */
    void (*backward)(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout);
    cleat_cost (*cost)(const cleat_node *node);
    const cleat_variant *variants; /* [..], ends with a NULL name; NULL for a reshape: no launch at all */
    /* Memory rule: bit i set means out[0] may take the bytes of in[i] when nobody reads in[i] later. The
     * kernels must then read each element of in[i] before they write the same element of out[0], in the same
     * work-item. */
    uint32_t inplace_inputs;
    /* Bit i set: autocast brings in[i] to the graph's storage type; every other floating input, to f32 (cleat_autocast). */
    uint32_t autocast_inputs;
    /* Of these bit i is set where in[i] is a weight: a parameter comes as its working copy there, and the op's gradient of it is f32 where the
     * others are halves. Elsewhere a parameter is cast, as any tensor. */
    uint32_t weight_inputs;
    bool no_autocast; /* autocast leaves its inputs alone */
    /* Bytes of results that a composition of plain operations would store for backward, and that this op's
     * kernels never write (a fused attention: the probabilities). NULL: none. */
    int64_t (*fused_bytes)(const cleat_node *node);
    /* For fuse.c. `consumer` reads out[0] of `node`, nothing else that comes after node, and writes one tensor. Where node's kernels can do
     * consumer's work before they store, makes `node` (op, attributes, inputs, outputs) the node that does both and returns true: out[0] is
     * then consumer's output, and what was out[0] another one, or none where `sole_consumer` says that nobody else wants it. NULL: never. */
    bool (*fuse)(cleat_node *node, const cleat_node *consumer, bool sole_consumer);
};

struct cleat_store {
    cleat_tensor **params, **grads, **moments1, **moments2; /* [count], same index */
    cleat_tensor **half_weights;                            /* [count]; NULL where no graph asked for one */
    size_t count, capacity;
    cleat_tensor **states;
    size_t state_count, state_capacity;
    cleat_tensor **buffers; /* [buffer_count] those of the states that are buffers, in the order of declaration */
    size_t buffer_count, buffer_capacity;
    int64_t buffer_elements;
    int64_t flat_elements; /* of each flat buffer, gaps for alignment included */
    /* The whole flat buffers as tensors. That of copies has no elements, and is f32, while no graph asked for one. */
    cleat_tensor flat[CLEAT_FLATS];
};

struct cleat_graph {
    char name[CLEAT_NAME];
    cleat_store *store;
    cleat_node **nodes;
    size_t node_count, node_capacity;
    cleat_tensor **tensors; /* activations and inputs, in order of creation */
    size_t tensor_count, tensor_capacity;
    cleat_tensor **gradients; /* [tensor_count at cleat_backward], gradient of tensors[i] */
    size_t gradient_count;
    size_t forward_nodes; /* nodes before cleat_backward; node_count without a backward part */
    bool fused;           /* by cleat_graph_fuse: too late for cleat_backward */
    cleat_dtype storage;  /* of the nodes that follow, where there is a cast */
    cleat_tensor *(*cast)(cleat_graph *, cleat_tensor *,
                          cleat_dtype); /* NULL: inputs are taken as they are, as gradients always do */
    int recompute;                      /* segments in a group that is computed again; 0: none is (recompute.h) */
    size_t *marks; /* [mark_count] rising: index of the node before which a segment begins or the last ends */
    size_t mark_count, mark_capacity;
    char scope[CLEAT_NAME];
    cleat_error error;
};

/* --- for op files --------------------------------------------------------------------------------------------- */

/* Appends a node (checked by op->infer) and returns it, behind casts of its inputs where the graph has them
 * (cleat_autocast); NULL once the graph has an error. An earlier error makes inputs NULL: the caller returns NULL
 * for those it cannot do without. `attr` is copied, `attr_bytes` <= CLEAT_ATTR_BYTES. */
cleat_node *cleat_emit(cleat_graph *graph, const cleat_op *op, const void *attr, size_t attr_bytes,
                       cleat_tensor *const *in, int n_in);

/* Called by infer: output `i` is a new activation of this shape and dtype. */
cleat_status cleat_set_output(cleat_node *node, int i, cleat_dtype dtype, int rank, const int64_t *shape,
                              cleat_error *error);
/* Called by infer: output `i` is an existing persistent tensor, changed in place (optimizer, running
 * statistics). */
void cleat_set_output_state(cleat_node *node, int i, cleat_tensor *tensor);

/* Appends a gradient node: its outputs are the gradients of targets [n_targets]. To `in` [n_in] one more
 * input is appended a target: the ACCUM. The node must write  out[i] = in[n_in + i] + contribution  (accum
 * NULL: out[i] = contribution). For a parameter, out[i] and its accum are both its place in the store's
 * gradient buffer: gradients accumulate. For an activation the accum is what other readers contributed so
 * far. A NULL target (no gradient wanted): out[i] and accum are NULL, and the node's kernels leave it out.
 * Shapes and dtypes of out[i] are those of the target; parameter gradients are f32. */
cleat_node *cleat_emit_grads(cleat_graph *graph, const cleat_op *op, const void *attr, size_t attr_bytes,
                             cleat_tensor *const *in, int n_in, cleat_tensor *const *targets, int n_targets);

/* Replaces the gradient of an activation or input (backward functions only). */
void cleat_set_gradient(cleat_graph *graph, cleat_tensor *x, cleat_tensor *gradient);

/* The gradient of x is (also) `dy` itself: residual connections. No work where dy is the first to arrive;
 * else one addition, with the add op's kernel: defined in src/ops/add.c. */
void cleat_pass_grad(cleat_graph *graph, cleat_tensor *x, cleat_tensor *dy);

/* True when somebody needs the gradient of x (false for NULL). */
bool cleat_requires_grad(const cleat_tensor *x);

/* The accum of output i of a gradient node emitted with n_in own inputs; NULL where it overwrites. */
static inline cleat_tensor *cleat_accum(const cleat_node *node, int n_in, int i) {
    return node->in[n_in + i];
}

/* Appends a copy of the forward node `node`: same op, attributes and inputs, but for inputs that were copied
 * before. Its outputs, named "NAME (again)", become the `recomputed` of node's. For recompute.c. */
cleat_node *cleat_emit_recomputed(cleat_graph *graph, const cleat_node *node);

/* Who holds the value of `tensor` for nodes that are emitted from here on; NULL for NULL. */
static inline cleat_tensor *cleat_current(cleat_tensor *tensor) {
    return tensor && tensor->recomputed ? tensor->recomputed : tensor;
}

/* cleat_backward from any tensors: douts[i] is the gradient that arrives at outs[i], same shape and dtype. */
void cleat_backward_from(cleat_graph *graph, cleat_tensor *const *outs, cleat_tensor *const *douts, int n);

/* Error of infer, in one form everywhere: "op 'layer_norm' at blocks.0.n1: ...". */
cleat_status cleat_infer_fail(const cleat_node *node, cleat_error *error, const char *format, ...) CLEAT_PRINTF(3, 4);
/* "f32 [2, 512, 256]" */
void cleat_tensor_describe(const cleat_tensor *tensor, char *text, size_t size);

/* Product of the leading `rank - 1` extents, and the last one: most ops see a tensor as [rows, width]. */
int64_t cleat_rows(const cleat_tensor *tensor);
int64_t cleat_width(const cleat_tensor *tensor);
bool cleat_same_shape(const cleat_tensor *a, const cleat_tensor *b);
bool cleat_is_storage(cleat_dtype dtype); /* f32, f16 or bf16 */
/* The tensor whose bytes these are: the base of a reshape, else the tensor itself. */
static inline const cleat_tensor *cleat_root(const cleat_tensor *tensor) {
    return tensor->base ? tensor->base : tensor;
}

/* Whether it is the store's, and outlives a run of its graph. */
static inline bool cleat_is_persistent(const cleat_tensor *tensor) {
    return tensor->role != CLEAT_ROLE_ACTIVATION && tensor->role != CLEAT_ROLE_INPUT;
}

/* Whether graphs of the store read working copies. */
static inline bool cleat_has_half_weights(const cleat_store *store) {
    return store->flat[CLEAT_FLAT_HALF_WEIGHTS].dtype != CLEAT_F32;
}

/* Which of the flat buffers holds tensors of this role (cleat_store.flat); -1: none. */
static inline int cleat_flat_index(cleat_role role) {
    switch (role) {
    case CLEAT_ROLE_PARAMETER:
        return CLEAT_FLAT_PARAMETERS;
    case CLEAT_ROLE_GRADIENT:
        return CLEAT_FLAT_GRADIENTS;
    case CLEAT_ROLE_MOMENT1:
        return CLEAT_FLAT_MOMENTS1;
    case CLEAT_ROLE_MOMENT2:
        return CLEAT_FLAT_MOMENTS2;
    case CLEAT_ROLE_COPY:
        return CLEAT_FLAT_HALF_WEIGHTS;
    default:
        return -1;
    }
}

/* What its bytes are for. */
static inline cleat_category cleat_flat_category(int flat) {
    static const cleat_category categories[CLEAT_FLATS] = {[CLEAT_FLAT_PARAMETERS] = CLEAT_BYTES_PARAMETERS,
                                                           [CLEAT_FLAT_GRADIENTS] = CLEAT_BYTES_GRADIENTS,
                                                           [CLEAT_FLAT_MOMENTS1] = CLEAT_BYTES_OPTIMIZER,
                                                           [CLEAT_FLAT_MOMENTS2] = CLEAT_BYTES_OPTIMIZER,
                                                           [CLEAT_FLAT_HALF_WEIGHTS] = CLEAT_BYTES_HALF_WEIGHTS};
    return categories[flat];
}

/* Puts a prefix before the names of the nodes that follow ("blocks.0."); NULL or "" for none. */
void cleat_scope(cleat_graph *graph, const char *format, ...) CLEAT_PRINTF(2, 3);
void cleat_graph_fail(cleat_graph *graph, cleat_status status, const char *format, ...) CLEAT_PRINTF(3, 4);

#endif

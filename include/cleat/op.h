/* Adding operations: the definition of a cleat_op, its nodes in a graph, and its kernel launches. Not needed
 * to use the operations of ops.h, which are written against this header; src/engine/ops/softmax.c is a short
 * example.
 *
 * An operation is a static const cleat_op. A function like cleat_softmax calls cleat_emit, which appends a
 * cleat_node and calls `infer`. cleat_backward calls `backward`; cleat_plan_create calls `refuse` and
 * `workspace` of the variants; cleat_exec_create calls `bind` of the chosen variant.
 *
 * Threads: these functions run on the thread that makes the call above. Threads with separate stores may call
 * them at the same time, so they keep no state besides their arguments. Nodes and binders are used by one
 * thread at a time. */
#ifndef CLEAT_OP_H
#define CLEAT_OP_H

#include "cleat/device.h"
#include "cleat/graph.h"

#include <stdalign.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cleat_node cleat_node;
typedef struct cleat_op cleat_op;
typedef struct cleat_binder cleat_binder; /* collects the launches of a node */

enum { CLEAT_MAX_IN = 12, CLEAT_MAX_OUT = 5, CLEAT_ATTR_BYTES = 64 };

/* One use of an operation. Entries of `in` may be NULL for optional inputs. */
struct cleat_node {
    const cleat_op *op;
    char name[CLEAT_NAME]; /* layer path and operation: "blocks.0.att/attention" */
    cleat_graph *graph;
    int index;       /* position in execution order */
    bool recomputed; /* repeats a forward node for the backward part (gradient checkpointing) */
    bool deferred;   /* runs in the backward part, before its gradient (graph/defer.h) */
    bool gated;      /* a fused consumer was `discontinuous` (cleat_op) */
    bool tf32;       /* its products may round operands in f32 to TF32 (cleat_op.tf32, cleat_autocast) */
    int n_in, n_out;
    cleat_tensor *in[CLEAT_MAX_IN];
    cleat_tensor *out[CLEAT_MAX_OUT];
    alignas(8) unsigned char attr[CLEAT_ATTR_BYTES]; /* the op's attribute struct */
};

/* Kinds of work that devices do at different speeds: elementwise operations and sums of rows; matrix
 * products, including attention; products that each wait for the previous one (LSTM). */
typedef enum cleat_work { CLEAT_WORK_ROWS, CLEAT_WORK_PRODUCT, CLEAT_WORK_RECURRENT } cleat_work;

/* The work of a node, for estimates of time. */
typedef struct cleat_cost {
    double flops;
    double bytes; /* read + written, each tensor counted once */
    cleat_work work;
} cleat_cost;

/* One implementation of an operation. An op lists its variants fastest first, the plain one last. */
typedef struct cleat_variant {
    const char *name;
    /* Returns NULL if the variant can compute this node on this device, else the reason why not (shown by
     * --log dispatch). */
    const char *(*refuse)(const cleat_node *node, const cleat_device_facts *facts);
    /* Bytes of scratch memory that the launches need while they run; NULL for none. */
    int64_t (*workspace)(const cleat_node *node, const cleat_device_facts *facts);
    /* Appends the launches with all their arguments to the binder (cleat_launch_kernel and the functions
     * below it), or calls cleat_bind_fail. Pure: it does not touch a device. */
    void (*bind)(const cleat_node *node, cleat_binder *binder);
} cleat_variant;

/* An attribute by name, for code that reads nodes without knowing their attribute struct (exporters). Arrays have
 * `count` elements. A table of them ends with a NULL name. */
typedef enum cleat_attribute_type {
    CLEAT_ATTRIBUTE_I32, /* int32_t, or an enum */
    CLEAT_ATTRIBUTE_I64,
    CLEAT_ATTRIBUTE_F32,
    CLEAT_ATTRIBUTE_F64,
    CLEAT_ATTRIBUTE_BOOL,
} cleat_attribute_type;

typedef struct cleat_attribute {
    const char *name; /* "eps" */
    cleat_attribute_type type;
    uint16_t offset; /* bytes from the start of cleat_node.attr */
    uint16_t count;  /* elements; 1 for a single value */
} cleat_attribute;

/* A row of such a table: member MEMBER of the attribute struct TYPE. */
#define CLEAT_ATTRIBUTE(TYPE, MEMBER, KIND)                                                                            \
    { .name = #MEMBER, .type = KIND, .offset = offsetof(TYPE, MEMBER), .count = 1 }

/* The host's copies of a node's inputs, as they were before the node ran, and of its outputs: float types as f32. */
typedef union cleat_host_array {
    const float *f;
    const int32_t *i;
    const uint32_t *u;
} cleat_host_array;

typedef struct cleat_host_values {
    cleat_host_array in[CLEAT_MAX_IN];   /* NULL if the input is NULL */
    cleat_host_array out[CLEAT_MAX_OUT]; /* what the node wrote: a recurrence is defined by its previous step */
    int output;                          /* whose element is defined */
    double work;  /* multiplications so far: `define` adds its own, so that they can be limited */
    double *kept; /* NULL at first: what `define` computed for all elements, by malloc; the caller frees it */
} cleat_host_values;

/* The expected value of an output element. A kernel's result may differ by some roundings of `size` and `rounded`. */
typedef struct cleat_expected_value {
    double value;
    double size;    /* sum of the terms' magnitudes, times their amplification by the rest of the formula */
    double rounded; /* the same for terms that a kernel may round to the storage type */
} cleat_expected_value;

/* The bit of in[i] in the input masks of a cleat_op, and the mask of all inputs. */
#define CLEAT_IN(i) (UINT32_C(1) << (i))
#define CLEAT_EVERY_INPUT UINT32_MAX

/* How an op does the work of its neighbours (cleat_graph_fuse). Each function changes `node` (op, attributes,
 * inputs, outputs) into a node that does both and returns true, if its kernels can. NULL: never. `wide`: the
 * graph is for devices with work-groups of one work-item (cleat_graph_set_wide). */
typedef struct cleat_fusion {
    /* `consumer` reads out[0] of `node` and otherwise nothing that `node` or a later node produces, and it
     * writes one tensor. out[0] is then the output of `consumer`. The former out[0] becomes another output,
     * or is dropped if `sole_consumer` is true, which means that nothing else reads it. */
    bool (*consumer)(cleat_node *node, const cleat_node *consumer, bool sole_consumer);
    /* `producer` has one output, which `node` alone reads, and no other effect. It is removed; its inputs
     * exist until then. */
    bool (*producer)(cleat_node *node, const cleat_node *producer, bool wide);
    /* `consumers` [count] are all that read out[output] of `node`, follow it immediately and otherwise read
     * nothing that it or they produce. They and the former out[output] are removed; their outputs exist until
     * then. */
    bool (*consumers)(cleat_node *node, cleat_node *const *consumers, int count, bool wide);
    int output;
} cleat_fusion;

/* An operation. There is no registry of ops; each node points to its op, which must outlive the graph.
 * Members that are left out are NULL or 0. */
struct cleat_op {
    const char *name; /* in messages and tables: "layer_norm" */
    /* Checks the inputs and sets shape and dtype of every output (cleat_set_output). The outputs of a
     * gradient op (emitted by cleat_emit_grads) already have theirs, so infer only checks them. NULL: there is
     * nothing to check, as in most gradient ops. */
    cleat_status (*infer)(cleat_node *node, cleat_error *error);
    /* Emits the nodes that compute the gradients of the inputs from dout [n_out]. Entries of dout are NULL if
     * no gradient arrives; at least one is not NULL. `node` is a copy, valid only during the call; its tensors
     * are the current ones, that is, recomputed copies where they exist. NULL if the op has no gradient. */
    void (*backward)(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout);
    /* NULL: `flops` operations for each element of out[0], and each input and output once. */
    cleat_cost (*cost)(const cleat_node *node);
    double flops;
    /* Array that ends with a NULL name; NULL for a reshape, which has no launches. */
    const cleat_variant *variants;

    /* Optional. Masks of inputs are written CLEAT_IN(X) | CLEAT_IN(RESIDUAL). */

    /* Inputs that may be NULL. NULL for any other input of cleat_emit is an error of the graph. */
    uint32_t optional_inputs;
    /* Inputs whose bytes out[0] may use if no later node reads them. The kernels must then read each
     * element of in[i] before they write the same element of out[0], in the same work-item. */
    uint32_t inplace_inputs;
    /* Inputs that autocast casts to the graph's storage type. It casts every other floating-point input to
     * f32 (cleat_autocast). */
    uint32_t autocast_inputs;
    /* The weights among autocast_inputs. Autocast replaces a parameter in such an input by its half
     * weight, and the op's gradient of it is f32 even where other gradients are halves. In any other input
     * a parameter is cast like any tensor. */
    uint32_t weight_inputs;
    /* The weights whose frozen parameters may come in blocks (Q8, NF4): the kernels unpack them. 0: none. */
    uint32_t block_inputs;
    /* Autocast does not change the inputs of this op. */
    bool no_autocast;
    /* The op has products whose operands are rounded to TF32 if cleat_autocast allows it. */
    bool tf32;
    /* The op compares: a value near the threshold of a ReLU, or near the maximum of a pooling window, can
     * fall on the other side once it is rounded, and then moves a whole gradient. Tolerances depend on it. */
    bool discontinuous;
    const cleat_fusion *fusion; /* NULL: the op never does the work of its neighbours */
    /* The attributes that the result depends on, but not those that repeat the shape of an output. NULL: none. */
    const cleat_attribute *attributes;
    /* True if backward may recompute the outputs (train.gradient_checkpointing = selective): they take one
     * pass over the inputs, the gradient reads these but not out[0], and every kernel of the node, including
     * fused ones, gives the same bits. NULL: false. */
    bool (*cheap)(const cleat_node *node);
    /* The definition of the op: element `element` of out[values->output] in double precision, computed from the
     * formula, not by the method of the kernels. A device is checked against it before it trains
     * (src/inspect/verify/program_check.h). An op without it is not checked; the log names it. */
    cleat_expected_value (*define)(const cleat_node *node, cleat_host_values *values, int64_t element);
    /* Inputs (i32) that hold the numbers of the rows of out[0] [V, D] that the node changes, as the gradient
     * of an embedding does; all other rows keep their values, and numbers outside 0 .. V - 1 are ignored.
     * Several devices then exchange only these rows. 0: the node may change any row. */
    uint32_t row_inputs;
};

/* --- nodes ---------------------------------------------------------------------------------------------------- */

/* Appends a node, checks it with op->infer and returns it. If autocast is on (cleat_autocast), casts of its
 * inputs precede it. Returns NULL once the graph has an error, whatever the inputs are. An input that is NULL
 * and not among optional_inputs, or that belongs to another graph, is such an error. `attr` is copied;
 * `attr_bytes` <= CLEAT_ATTR_BYTES. Nodes are compared by these bytes, so the struct must have no padding. */
CLEAT_API cleat_node *cleat_emit(cleat_graph *graph, const cleat_op *op, const void *attr, size_t attr_bytes,
                                 cleat_tensor *const *in, int n_in);
static inline cleat_tensor *cleat_first_output(const cleat_node *emitted) {
    return emitted ? emitted->out[0] : NULL;
}

/* For infer: makes output `i` a new activation of this shape and dtype. */
CLEAT_API cleat_status cleat_set_output(cleat_node *node, int i, cleat_dtype dtype, int rank, const int64_t *shape,
                                        cleat_error *error);
/* For infer: makes output `i` an existing persistent tensor that the node changes in place (optimizer,
 * running statistics). */
CLEAT_API void cleat_set_output_state(cleat_node *node, int i, cleat_tensor *tensor);

/* A gradient node. Everything is borrowed during the call; attributes are copied. */
typedef struct cleat_grads_spec {
    const cleat_op *op;      /* its outputs are the gradients of the targets */
    const void *attr;        /* NULL: no attributes */
    size_t attr_bytes;       /* <= CLEAT_ATTR_BYTES */
    cleat_tensor *const *in; /* [n_in] */
    int n_in;
    cleat_tensor *const *targets; /* [n_targets]; NULL entries: no gradient wanted */
    int n_targets;                /* <= CLEAT_MAX_OUT */
} cleat_grads_spec;

/* Appends a gradient node whose outputs are the gradients of targets [n_targets]. After `in` [n_in], one
 * input is appended for each target: the gradient accumulator (accum). The node must write
 *
 *   out[i] = in[n_in + i] + contribution    (accum NULL: out[i] = contribution).
 *
 * For a parameter, both out[i] and its accum are its place in the store's gradient buffer, so that gradients
 * add up over micro-batches. For an activation, the accum is the sum of what other consumers have contributed
 * so far. If a target is NULL (no gradient wanted), out[i] and its accum are NULL and the kernels must not
 * compute it. out[i] has shape and dtype of its target; gradients of parameters are f32. If no target
 * requires a gradient, no node is appended and the result is NULL. */
CLEAT_API cleat_node *cleat_emit_grads(cleat_graph *graph, const cleat_grads_spec *spec);

/* Adds `dy` itself to the gradient of x, as residual connections need it. This costs nothing if dy arrives
 * first, else one cleat_add. */
CLEAT_API void cleat_pass_grad(cleat_graph *graph, cleat_tensor *x, cleat_tensor *dy);

/* True if a gradient of x is needed (false for NULL). */
CLEAT_API bool cleat_requires_grad(const cleat_tensor *x);

/* For infer: fills `error` (may be NULL) with op and layer in front, "op 'layer_norm' at blocks.0.n1:
 * ...", and returns CLEAT_ERR_SHAPE. */
CLEAT_API cleat_status cleat_infer_fail(const cleat_node *node, cleat_error *error, const char *format, ...)
    CLEAT_PRINTF(3, 4);

/* The accumulator of output i of a gradient node that was emitted with n_in inputs; NULL: the node overwrites
 * out[i]. */
static inline cleat_tensor *cleat_accum(const cleat_node *node, int n_in, int i) {
    return node->in[n_in + i];
}

/* --- launches: for bind --------------------------------------------------------------------------------------- */

/* The device that the launches are for. Borrowed. */
CLEAT_API const cleat_device_facts *cleat_binder_facts(const cleat_binder *binder);
/* Fails, with op and layer in front of the text; the first error counts. */
CLEAT_API void cleat_bind_fail(cleat_binder *binder, const cleat_node *node, const char *format, ...)
    CLEAT_PRINTF(3, 4);

/* Begins a launch of `kernel` from cl/`file`, built for the storage type `storage` (f32, f16 or bf16: the
 * type T of common.clh) and for the device (-DWG, -DVEC, -DSUB_GROUP from its facts). The functions below
 * extend the launch that was begun last. */
CLEAT_API void cleat_launch_kernel(cleat_binder *binder, const cleat_node *node, const char *file, const char *kernel,
                                   cleat_dtype storage);
/* As cleat_launch_kernel, for a kernel of the caller: `source` is OpenCL C, and `name` identifies it in
 * messages. It may include the files of cl/, as in #include "lib/common.clh", which defines TENSOR, AT, HAS,
 * LOAD, STORE and the type T. name, source and kernel are not copied: they must outlive every exec (static
 * strings). */
CLEAT_API void cleat_launch_source(cleat_binder *binder, const cleat_node *node, const char *name, const char *source,
                                   const char *kernel, cleat_dtype storage);
/* Adds "-DNAME=value" to the build options. Use few different values: each new set of options is another
 * compilation. */
CLEAT_API void cleat_launch_define(cleat_binder *binder, const char *name, int64_t value);
/* A tensor becomes two kernel arguments: its buffer and its offset in elements (ulong). See TENSOR in
 * common.clh. */
CLEAT_API void cleat_launch_tensor(cleat_binder *binder, const cleat_tensor *tensor);
/* As cleat_launch_tensor, but `elements` further into the tensor. */
CLEAT_API void cleat_launch_tensor_at(cleat_binder *binder, const cleat_tensor *tensor, int64_t elements);
/* The node's workspace from byte `offset` on (a multiple of element_size), also as two arguments. */
CLEAT_API void cleat_launch_workspace(cleat_binder *binder, int64_t offset, int element_size);
/* A scalar argument. `name` is that of the kernel's parameter, a static string. Arguments are set in the
 * order of these calls; the tests compare each name with the kernel's own, so that two swapped integers
 * fail. */
CLEAT_API void cleat_launch_i32(cleat_binder *binder, const char *name, int32_t value);
CLEAT_API void cleat_launch_f32(cleat_binder *binder, const char *name, float value);
CLEAT_API void cleat_launch_i64(cleat_binder *binder, const char *name, int64_t value);
/* Ends the launch with `groups` work-groups of facts->work_group work-items each. */
CLEAT_API void cleat_launch_groups(cleat_binder *binder, int64_t groups);
/* Ends the launch with explicit sizes; `global` must be a multiple of `local`. */
CLEAT_API void cleat_launch_range(cleat_binder *binder, int dims, const size_t *global, const size_t *local);
/* Ends the launch for `items` independent work-items that a grid-stride loop handles: with enough work-groups
 * to keep the device busy and no more. */
CLEAT_API void cleat_launch_items(cleat_binder *binder, int64_t items);

#ifdef __cplusplus
}
#endif
#endif

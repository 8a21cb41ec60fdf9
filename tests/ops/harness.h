/* The harness of the op tests. A test file describes its op; the harness runs rows of dims in the storage types
 * (f32, f16, bf16), in every variant that does not refuse, and in the device shapes cpu (work_group 1,
 * lanes 16), gpu (work_group 256, lanes 4) and, for f32, gpu64 (work_group 64, lanes 4). Every row runs in f32 and
 * in a half type; cover.h says which of all cases are chosen. In each:
 *
 * - forward: every output against the double-precision reference, which gets exactly what the device sees
 *   (inputs rounded to their type).
 * - backward, with random gradients arriving at the outputs: the gradient of every input and parameter
 *   against 4-point differences of the reference (sampled elements of large tensors), and all of it against
 *   the test's analytic gradient where it gives one (which is itself checked by the differences).
 * - accumulation: the backward pass run twice doubles parameter gradients. In "chained" cases every input is
 *   the output of an add, and a gradient from elsewhere arrives at it first (the accum); there sharing of
 *   bytes (cleat_op.inplace_inputs) can happen.
 * - repeatability: two runs give the same bits.
 * - containment: all memory that no node may write (inputs, parameters, gaps between tensors, 4 KiB behind
 *   every slab) is bit-equal afterwards. What nodes write, and the gaps, hold NaN before: reading past an end
 *   or writing too little shows.
 *
 * A failure prints op, row, storage, variant, shape, tensor, index, both values, tolerance, seed. Without a
 * device the program exits 77. Environment: CLEAT_TEST_DEVICE (selector, default "auto"), CLEAT_TEST_SEED
 * (default 1), CLEAT_TEST_ROW (only this row), CLEAT_TEST_STORAGE (f32, f16, bf16), CLEAT_TEST_SHAPE (cpu,
 * gpu, gpu64), CLEAT_TEST_VARIANT (only variants whose names begin so; an error where none serves): the failure
 * message names them to repeat a case. CLEAT_TEST_FULL=1 runs every case of every row; CLEAT_TEST_VERBOSE=1 lists the
 * cases, and the variants that refused with their reasons.
 *
 * A whole test file:
 *
 *   static void build(op_case *c) {
 *       const int64_t shape[] = {c->dims[0], c->dims[1]};
 *       op_output(c, cleat_gelu(c->graph, op_input(c, "x", c->storage, 2, shape, -4, 4)));
 *   }
 *   static void reference(const op_case *c, const double *const *in, double *const *out) {
 *       for (int64_t i = 0; i < c->dims[0] * c->dims[1]; ++i) out[0][i] = 0.5 * in[0][i] * (1 + erf(in[0][i]
 * * M_SQRT1_2));
 *   }
 *   static compare_tolerance tolerance(const op_case *c, int tensor, bool gradient) {
 *       return (compare_tolerance){.scale = 4, .length = 1, .f32_units = 4};
 *   }
 *   static const op_row rows[] = {{1, 1}, {3, 17}, {5, 1200}};
 *   static const op_test gelu = {.op = "gelu", .rows = rows, .row_count = 3, .build = build, .reference =
 * reference, .tolerance = tolerance}; int main(void) { return op_main(&gelu, 1, NULL, 0);
 *   } */
#ifndef CLEAT_TESTS_HARNESS_H
#define CLEAT_TESTS_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cleat/exec.h"
#include "cleat/graph.h"
#include "compare.h"
#include "graph/graph.h"
#include "graph/plan.h"

enum { OP_DIMS = 10, OP_TENSORS = 16 };

typedef int64_t op_row[OP_DIMS]; /* sizes, and whatever else a test varies (heads, "has a bias", ...); unused
                                    ones are 0 */

typedef struct op_case op_case;

typedef struct op_test {
    const char *op;    /* nodes of ops whose name begins so ("layer_norm", "layer_norm_grad") are the ones under test */
    const char *title; /* of the CMocka test; NULL: `op` */
    const op_row *rows;
    int row_count;
    /* Declares inputs and parameters (op_input, op_param), builds the op, declares the outputs to compare
     * (op_output). Called several times for a row. */
    void (*build)(op_case *c);
    /* Optional: changes the random values of input `tensor` (in order of declaration) before they are rounded
     * to its type. */
    void (*fill)(const op_case *c, int tensor, double *values, int64_t count);
    /* in[i]: values of the i-th declared input or parameter; out[i]: to be written, all of it. */
    void (*reference)(const op_case *c, const double *const *in, double *const *out);
    /* Optional: din[i] += d(sum over outputs of dout * out)/d in[i]; din[i] is zero before, NULL where no
     * gradient is wanted. */
    void (*gradient)(const op_case *c, const double *const *in, const double *const *dout, double *const *din);
    /* Of output `tensor`, or of the gradient of input `tensor`. */
    compare_tolerance (*tolerance)(const op_case *c, int tensor, bool gradient);
    bool no_backward; /* the op has no gradient, or the test checks it itself */
    int samples;      /* elements of a tensor whose gradient is checked by differences; 0: 24 */
    uint32_t only;    /* storage types: bit CLEAT_F32, CLEAT_F16, CLEAT_BF16; 0: all three */
} op_test;

/* The shape kernels are built in. */
typedef struct op_shape {
    const char *name;
    cleat_device_kind kind;
    int32_t work_group, vector_width;
} op_shape;

extern const op_shape op_shape_cpu, op_shape_gpu, op_shape_gpu64;

/* What a declared tensor is to the harness. */
typedef struct op_tensor {
    cleat_tensor *tensor; /* the graph's input, or the parameter, or the output */
    cleat_tensor *used;   /* input: what `build` got: `tensor` itself, or tensor + 0 in a chained case */
    cleat_tensor *dout;   /* gradient that arrives at an output; at an input in a chained case (its accum) */
    double lo, hi;
    bool wants_grad;
    int64_t count;
    double *values;  /* [count] input: what the device sees; output: reference */
    double *dvalues; /* [count] output: gradient that arrives; input: the expected gradient */
} op_tensor;

struct op_case {
    const op_test *test;
    int row;
    const int64_t *dims; /* of the row */
    cleat_dtype storage;
    const op_shape *shape;
    int variant; /* index tried on every node under test that has so many */
    bool chained;
    bool expected; /* the reference has been asked */
    uint64_t seed;
    cleat_store *store;
    cleat_graph *graph;
    int input_count, output_count;
    op_tensor inputs[OP_TENSORS]; /* parameters too */
    op_tensor outputs[OP_TENSORS];
};

/* --- for build ------------------------------------------------------------------------------------------------ */

/* An input with random values: uniform in [lo, hi) for f32, f16, bf16, and its gradient is wanted; for i32,
 * u32 uniform integers in [lo, hi], both ends included. */
cleat_tensor *op_input(op_case *c, const char *name, cleat_dtype dtype, int rank, const int64_t *shape, double lo,
                       double hi);
/* The same without a gradient. */
cleat_tensor *op_constant(op_case *c, const char *name, cleat_dtype dtype, int rank, const int64_t *shape, double lo,
                          double hi);
/* An f32 parameter with uniform random values. */
cleat_tensor *op_param(op_case *c, const char *name, int rank, const int64_t *shape, double lo, double hi);
/* A parameter as an op reads it in the case's storage type: itself, or its working copy, whose gradient is the parameter's, f32. */
cleat_tensor *op_weight(op_case *c, const char *name, int rank, const int64_t *shape, double lo, double hi);
/* Declares the next output to compare. */
void op_output(op_case *c, cleat_tensor *output);

/* --- main ----------------------------------------------------------------------------------------------------- */

/* Runs the tests and `extra` CMocka tests of the file's own (may be NULL); returns what main returns. */
int op_main(const op_test *tests, size_t count, const struct CMUnitTest *extra, size_t extra_count);

/* --- for tests of their own ----------------------------------------------------------------------------------- */

/* A graph with a store of its own, for what is asked of graphs without a device. op_graph_end destroys both. */
cleat_graph *op_graph(void);
void op_graph_end(cleat_graph *graph);
/* The graph has failed with this status, and the message names the op ("" where several may complain) and says `says`; ends the graph. */
void op_graph_refused(cleat_graph *graph, cleat_status status, const char *op, const char *says);

/* A graph on a device: the plan and exec of one graph, and what watches its memory. */
enum { OP_GUARDS = 12 };
typedef struct op_rig {
    cleat_graph *graph;
    cleat_plan *plan;
    cleat_exec *exec;
    cleat_tensor *guards[OP_GUARDS]; /* [slabs of the plan] states that were moved to cover a whole slab each */
    unsigned char *before[OP_GUARDS];
} op_rig;

/* The device all tests of the program share; never NULL within a test (op_main has exited 77). */
cleat_device *op_device(void);
/* The facts of op_device in another shape. */
cleat_device_facts op_facts(const op_shape *shape);
/* The variant of `node`: number `variant` where the name of its op begins with `op` (may be NULL) and that one does not refuse, else the
 * first that serves; NULL where there is none. */
const cleat_variant *op_variant(const char *op, int variant, const cleat_node *node, const cleat_device_facts *facts);
uint64_t op_seed(void);

/* Plans `graph` for `shape` and binds it. Nodes of ops whose name begins with `op` get variant number
 * `variant` where it does not refuse, all others the first that serves; op may be NULL. Fails the test
 * (prints why, returns false) on an error. */
bool op_rig_open(op_rig *rig, cleat_graph *graph, const op_shape *shape, const char *op, int variant);
void op_rig_close(op_rig *rig);
/* Writes and reads a tensor as doubles (rounded to its type); aborts the CMocka test on an error. */
void op_rig_write(op_rig *rig, const cleat_tensor *tensor, const double *values);
void op_rig_read(op_rig *rig, const cleat_tensor *tensor, double *values);
/* Runs the nodes [first, last) and waits. last -1: all that follow. */
void op_rig_run(op_rig *rig, int64_t first, int64_t last);
/* Fills activations, inputs, workspace and the gaps between them with NaN: to be called before inputs are
 * written. */
void op_rig_poison(op_rig *rig);
/* op_rig_snapshot remembers every byte; op_rig_untouched is false, and says where, when a byte that no node of
 * the graph owns as output or workspace has changed since. */
void op_rig_snapshot(op_rig *rig);
bool op_rig_untouched(op_rig *rig);

#endif

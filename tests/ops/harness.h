/* The harness of the op tests. A test file describes its op; the harness runs rows of dims in the storage
 * types (f32, f16, bf16), in every variant that does not refuse, and in the device shapes cpu (work_group 1,
 * lanes 16), gpu (work_group 256, lanes 4) and, for f32, gpu64 (work_group 64, lanes 4). Every row runs in f32 and
 * in a half type; cover.h describes how cases are selected. Each case checks:
 *
 * - forward: every output against the double-precision reference, whose inputs are exactly those of the device
 *   (rounded to their type).
 * - backward, with random output gradients: the gradient of every input and parameter against 4-point
 *   differences of the reference (sampled elements of large tensors), and every element against the analytic
 *   gradient of the test if it has one (which is itself checked by the differences).
 * - accumulation: the backward pass run twice doubles parameter gradients. In "chained" cases every input is
 *   the output of an add that receives another gradient first (the accum); only there can tensors share memory
 *   (cleat_op.inplace_inputs).
 * - repeatability: two runs give the same bits.
 * - definitions: sampled elements of every node match the op's definition (cleat_op.define), if it has one.
 * - NaN: a NaN of any sign and payload in one element of an input turns every output element into NaN that is
 *   NaN in the reference; a NaN in an incoming gradient reaches a gradient. Each input and each incoming
 *   gradient must reach something in some row. Large cases try one tensor, in turn.
 * - containment: all memory that no node may write (inputs, parameters, gaps between tensors, 4 KiB behind
 *   every slab) is bit-equal afterwards. Memory that nodes write and the gaps hold NaN beforehand, which
 *   reveals reads past the end and incomplete writes.
 *
 * A failure prints op, row, storage, variant, shape, tensor, index, both values, tolerance and seed. Without
 * a device the program exits with 77. On a GPU, cases in the shape cpu are skipped; their number is printed.
 * Environment: CLEAT_TEST_DEVICE (selector, default "auto"), CLEAT_TEST_SEED (default 1), CLEAT_TEST_ROW
 * (only this row), CLEAT_TEST_STORAGE (f32, f16, bf16; tf32: together with CLEAT_TEST_VARIANT=mma),
 * CLEAT_TEST_SHAPE (cpu, gpu, gpu64), CLEAT_TEST_VARIANT (a prefix of variant names; an error if no such
 * variant is usable). The failure message has the settings that repeat a case. CLEAT_TEST_FULL=1 runs every
 * case of every row; CLEAT_TEST_VERBOSE=1 lists the cases, and the variants that refused with their reasons.
 * CLEAT_TEST_GAP: bytes in front of the first tensor of every buffer (8.8 GB on a device whose untouched
 * memory costs nothing). CLEAT_TEST_STOP=1 ends the test at its first failure.
 *
 * test_example.c is a whole test file: build, reference, tolerance, rows, main. */
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

/* Sizes, and any other parameters of a test (heads, "has a bias", ...); unused elements are 0. */
typedef int64_t op_row[OP_DIMS];

typedef struct op_case op_case;

typedef struct op_test {
    /* Prefix of the op names of the nodes under test ("layer_norm" also selects "layer_norm_grad"). */
    const char *op;
    const char *title; /* title of the CMocka test; NULL: `op` */
    const op_row *rows;
    int row_count;
    /* Declares inputs and parameters (op_input, op_param), builds the op, and declares the outputs to compare
     * (op_output). Called several times per row. */
    void (*build)(op_case *c);
    /* Optional: changes the random values of input `tensor` (in order of declaration) before they are rounded
     * to its type. */
    void (*fill)(const op_case *c, int tensor, double *values, int64_t count);
    /* in[i]: values of the i-th declared input or parameter; out[i]: destination, to be filled completely. */
    void (*reference)(const op_case *c, const double *const *in, double *const *out);
    /* Optional: din[i] += d(sum over outputs of dout * out)/d in[i]. din[i] is zero on entry, and NULL if its
     * gradient is not required. */
    void (*gradient)(const op_case *c, const double *const *in, const double *const *dout, double *const *din);
    /* Tolerance of output `tensor`, or of the gradient of input `tensor`. */
    compare_tolerance (*tolerance)(const op_case *c, int tensor, bool gradient);
    bool no_backward; /* The op has no gradient, or the test checks the gradient itself. */
    int samples;      /* number of gradient elements per tensor checked by differences; 0: 24 */
    bool wide;        /* cleat_graph_set_wide; only the CPU's shape is tested */
    uint32_t only;    /* bit set of storage types (CLEAT_F32, CLEAT_F16, CLEAT_BF16); 0: all three */
} op_test;

/* The device shape that kernels are built for. */
typedef struct op_shape {
    const char *name;
    cleat_device_kind kind;
    int32_t work_group, vector_width;
} op_shape;

extern const op_shape op_shape_cpu, op_shape_gpu, op_shape_gpu64;

/* State of a declared tensor in the harness. */
typedef struct op_tensor {
    cleat_tensor *tensor; /* the graph's input, the parameter, or the output */
    /* Input: the tensor that `build` received, which is `tensor` itself, or tensor + 0 in a chained case. */
    cleat_tensor *used;
    /* Gradient that arrives at an output, or at an input in a chained case (its accum). */
    cleat_tensor *dout;
    double lo, hi;
    bool wants_grad;
    int64_t count;
    double *values;  /* [count] input: values as rounded for the device; output: reference */
    double *dvalues; /* [count] output: incoming gradient; input: expected gradient */
} op_tensor;

struct op_case {
    const op_test *test;
    int row;
    const int64_t *dims; /* dims of the row */
    cleat_dtype storage;
    bool tf32; /* in f32, products round their operands to TF32 (op_operand) */
    const op_shape *shape;
    /* Variant index requested for every node under test that has at least variant + 1 variants. */
    int variant;
    bool chained;
    bool expected; /* the reference has been computed */
    uint64_t seed;
    cleat_store *store;
    cleat_graph *graph;
    int input_count, output_count;
    op_tensor inputs[OP_TENSORS]; /* inputs, then parameters, in order of declaration */
    op_tensor outputs[OP_TENSORS];
};

/* An operand of a product in the reference: rounded to TF32 as the kernels do, if the case is in TF32. The
 * tolerance is that of f32, so a variant that rounds in another way, or not at all, fails. */
double op_operand(const op_case *c, double value);

/* --- for build ------------------------------------------------------------------------------------------------ */

/* Declares an input with random values: uniform in [lo, hi) for f32, f16 and bf16, which require a gradient;
 * uniform integers in [lo, hi], both ends included, for i32 and u32. */
cleat_tensor *op_input(op_case *c, const char *name, cleat_dtype dtype, int rank, const int64_t *shape, double lo,
                       double hi);
/* Like op_input, but without a gradient. */
cleat_tensor *op_constant(op_case *c, const char *name, cleat_dtype dtype, int rank, const int64_t *shape, double lo,
                          double hi);
/* Declares an f32 parameter with uniform random values. */
cleat_tensor *op_param(op_case *c, const char *name, int rank, const int64_t *shape, double lo, double hi);
/* Declares a parameter and returns the tensor an op reads in the storage type of the case: the parameter
 * itself, or its half-precision copy, whose gradient is the f32 gradient of the parameter. */
cleat_tensor *op_weight(op_case *c, const char *name, int rank, const int64_t *shape, double lo, double hi);
/* Declares the next output to compare. */
void op_output(op_case *c, cleat_tensor *output);

/* --- main ----------------------------------------------------------------------------------------------------- */

/* Runs the tests and `extra`, additional CMocka tests of the file (may be NULL). Returns the exit status of
 * main. */
int op_main(const op_test *tests, size_t count, const struct CMUnitTest *extra, size_t extra_count);

/* --- for additional tests ------------------------------------------------------------------------------------- */

/* Creates a graph with a separate store, for checks that need no device. op_graph_end destroys both. */
cleat_graph *op_graph(void);
void op_graph_end(cleat_graph *graph);
/* Asserts that the graph failed with this status and that the message names the op ("" if several ops may
 * report it) and contains `says`. Ends the graph. */
void op_graph_refused(cleat_graph *graph, cleat_status status, const char *op, const char *says);

/* A graph on a device: the plan and exec of one graph, and the guards of its memory. */
enum { OP_GUARDS = 12 };
typedef struct op_rig {
    cleat_graph *graph;
    cleat_plan *plan;
    cleat_exec *exec;
    /* [slabs of the plan] states, each moved to cover a whole slab after its gap */
    cleat_tensor *guards[OP_GUARDS];
    int64_t gaps[OP_GUARDS]; /* bytes in front of the first tensor */
    unsigned char *before[OP_GUARDS];
} op_rig;

/* The device shared by all tests of the program. Never NULL within a test, because op_main exits with 77
 * without a device. */
cleat_device *op_device(void);
/* Whether cases of the shape run (cover_shape). Counts cases skipped because the device is a GPU. */
bool op_shape_is_tested(const op_shape *shape);
/* The facts of op_device with the given shape. */
cleat_device_facts op_facts(const op_shape *shape);
/* Selects the variant of `node`: number `variant` if the op name begins with `op` (may be NULL) and that
 * variant does not refuse, otherwise the first usable one; NULL if no variant is usable. */
const cleat_variant *op_variant(const char *op, int variant, const cleat_node *node, const cleat_device_facts *facts);
uint64_t op_seed(void);

/* Plans `graph` for `shape` and binds it. Nodes of ops whose name begins with `op` get variant number
 * `variant` unless it refuses, all others the first usable one; op may be NULL. On an error it prints the
 * reason, fails the test and returns false. */
bool op_rig_open(op_rig *rig, cleat_graph *graph, const op_shape *shape, const char *op, int variant);
void op_rig_close(op_rig *rig);
/* Writes or reads a tensor as doubles (rounded to its type). Fails the CMocka test on an error. */
void op_rig_write(op_rig *rig, const cleat_tensor *tensor, const double *values);
void op_rig_read(op_rig *rig, const cleat_tensor *tensor, double *values);
/* Sets element `at` of a floating-point tensor to the NaN with the upper bits of `pattern`, an f32. */
void op_rig_write_nan(op_rig *rig, const cleat_tensor *tensor, int64_t at, uint32_t pattern);
/* Runs the nodes [first, last) and waits; last -1: all remaining nodes. */
void op_rig_run(op_rig *rig, int64_t first, int64_t last);
/* Fills activations, inputs, workspace and the gaps between them with NaN. Call it before inputs are
 * written. */
void op_rig_poison(op_rig *rig);
/* op_rig_snapshot saves every byte. op_rig_untouched returns false, and prints the place, if a byte that no
 * node of the graph owns as output or workspace has changed since. */
void op_rig_snapshot(op_rig *rig);
bool op_rig_untouched(op_rig *rig);

#endif

/* What an op's variant asks the device to run: kernels with their arguments, as plain data. The exec room
 * turns it into OpenCL objects once; enqueueing later sets nothing and allocates nothing. */
#ifndef CLEAT_SRC_LAUNCH_H
#define CLEAT_SRC_LAUNCH_H

#include "graph/graph.h"

enum { CLEAT_MAX_ARGS = 40, CLEAT_OPTIONS = 256 };

typedef enum cleat_arg_kind { CLEAT_ARG_TENSOR, CLEAT_ARG_WORKSPACE, CLEAT_ARG_SCALAR } cleat_arg_kind;

typedef struct cleat_arg {
    cleat_arg_kind kind;
    const cleat_tensor *tensor; /* NULL: a null pointer */
    int64_t offset;             /* elements into the tensor, or bytes into the node's workspace */
    int32_t size;               /* scalar: 4 or 8 bytes; workspace: element size */
    union {
        int32_t i32;
        float f32;
        int64_t i64;
    } value;
} cleat_arg;

typedef enum cleat_launch_kind { CLEAT_LAUNCH_KERNEL, CLEAT_LAUNCH_SGEMM } cleat_launch_kind;

/* CLBlast: C[m, n] = A B + beta C in f32, row-major; trans_a: A is stored [k, m]; trans_b: B is stored [n,
 * k]. Its copies of A, B and C go to the first `workspace` bytes of the node's workspace. */
typedef struct cleat_sgemm {
    const cleat_tensor *a, *b, *c;
    int64_t a_at, b_at, c_at; /* elements into the tensors where the matrices begin */
    int64_t m, n, k;
    bool trans_a, trans_b;
    float beta;
    int64_t workspace; /* cleat_sgemm_workspace */
} cleat_sgemm;

/* An upper bound of the bytes CLBlast needs besides A, B and C, whatever parameters it has been tuned to for a device. */
int64_t cleat_sgemm_workspace(int64_t m, int64_t n, int64_t k);

typedef struct cleat_launch {
    cleat_launch_kind kind;
    const cleat_node *node;
    const char *file;            /* "layer_norm.cl" */
    const char *kernel;          /* static strings both */
    char options[CLEAT_OPTIONS]; /* "-DSTORAGE_F32 -DWG=1 -DVEC=16 ..." : with `file` the key of the program */
    int n_args;
    cleat_arg args[CLEAT_MAX_ARGS];
    int dims;
    size_t global[3], local[3];
    cleat_sgemm sgemm;
} cleat_launch;

struct cleat_binder {
    const cleat_device_facts *facts;
    cleat_launch *launches;
    size_t count, capacity;
    cleat_error error; /* the first one; later calls pass through */
};

void cleat_binder_init(cleat_binder *binder, const cleat_device_facts *facts);
void cleat_binder_clear(cleat_binder *binder);

/* Appends the launches of `node` as `variant` computes it. Returns the binder's error. */
cleat_status cleat_bind_node(const cleat_variant *variant, const cleat_node *node, cleat_binder *binder,
                             cleat_error *error);

/* Starts a launch of `kernel` from cl/`file`, built for storage type `storage` (f32, f16, bf16: the type T of
 * common.clh) in the device's shape (-DWG, -DVEC, -DSUB_GROUP from the facts). The functions below add to the launch begun
 * last. */
void cleat_launch_kernel(cleat_binder *binder, const cleat_node *node, const char *file, const char *kernel,
                         cleat_dtype storage);
/* Adds "-DNAME=value" to the build. Keep values few: each new set of options is another compilation. */
void cleat_launch_define(cleat_binder *binder, const char *name, int64_t value);
/* Builds it for the device's matrix unit: -DMATRIX_UNIT, and what else the unit asks for. */
void cleat_launch_matrix_unit(cleat_binder *binder);
/* A tensor becomes TWO kernel arguments: its buffer and the element offset (ulong). See TENSOR in common.clh. */
void cleat_launch_tensor(cleat_binder *binder, const cleat_tensor *tensor);
/* The same, starting `elements` later in the tensor. */
void cleat_launch_tensor_at(cleat_binder *binder, const cleat_tensor *tensor, int64_t elements);
/* The node's workspace from byte `offset` on (a multiple of element_size), as two arguments as well. */
void cleat_launch_workspace(cleat_binder *binder, int64_t offset, int element_size);
void cleat_launch_i32(cleat_binder *binder, int32_t value);
void cleat_launch_f32(cleat_binder *binder, float value);
void cleat_launch_i64(cleat_binder *binder, int64_t value);
/* Ends the launch: `groups` work-groups of the device's shape (facts->work_group items each). */
void cleat_launch_groups(cleat_binder *binder, int64_t groups);
/* Ends the launch with sizes of its own; global is a multiple of local. */
void cleat_launch_range(cleat_binder *binder, int dims, const size_t *global, const size_t *local);
/* Ends the launch for `items` independent work-items with a grid-stride loop: as many groups as keep the
 * device busy, no more. */
void cleat_launch_items(cleat_binder *binder, int64_t items);
void cleat_launch_sgemm(cleat_binder *binder, const cleat_node *node, const cleat_sgemm *sgemm);

#endif

/* Launch descriptions: which kernels an op's variant runs, with their arguments, as plain data. The exec room
 * turns them into OpenCL objects once; enqueueing later sets no argument and allocates nothing. */
#ifndef CLEAT_SRC_LAUNCH_H
#define CLEAT_SRC_LAUNCH_H

#include "graph/graph.h"

enum { CLEAT_MAX_ARGS = 40, CLEAT_OPTIONS = 256 };

typedef enum cleat_arg_kind { CLEAT_ARG_TENSOR, CLEAT_ARG_WORKSPACE, CLEAT_ARG_SCALAR } cleat_arg_kind;

typedef struct cleat_arg {
    cleat_arg_kind kind;
    const cleat_tensor *tensor; /* NULL: a null pointer */
    int64_t offset;             /* in elements of the tensor, or in bytes of the node's workspace */
    int32_t size;               /* scalar: 4 or 8 bytes; workspace: bytes of an element */
    union {
        int32_t i32;
        float f32;
        int64_t i64;
    } value;
} cleat_arg;

typedef enum cleat_launch_kind { CLEAT_LAUNCH_KERNEL, CLEAT_LAUNCH_SGEMM } cleat_launch_kind;

/* A matrix product by CLBlast in f32, row-major: C[m, n] = A B + beta C. trans_a: A is stored [k, m];
 * trans_b: B is stored [n, k]. CLBlast's padded copies of A, B and C use the first `workspace` bytes of the
 * node's workspace. */
typedef struct cleat_sgemm {
    const cleat_tensor *a, *b, *c;
    int64_t a_at, b_at, c_at; /* where the matrices begin, in elements of their tensors */
    int64_t m, n, k;
    bool trans_a, trans_b;
    float beta;
    int64_t workspace; /* bytes; see cleat_sgemm_workspace */
} cleat_sgemm;

/* An upper bound for the bytes that CLBlast needs besides A, B and C, for any parameters it may be tuned to
 * on a device. */
int64_t cleat_sgemm_workspace(int64_t m, int64_t n, int64_t k);

typedef struct cleat_launch {
    cleat_launch_kind kind;
    const cleat_node *node;
    const char *file;   /* "layer_norm.cl" */
    const char *kernel; /* static string, as `file` */
    /* "-DSTORAGE_F32 -DWG=1 -DVEC=16 ...": together with `file` the key of the program */
    char options[CLEAT_OPTIONS];
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
    cleat_error error; /* the first error; later calls do nothing */
};

void cleat_binder_init(cleat_binder *binder, const cleat_device_facts *facts);
void cleat_binder_clear(cleat_binder *binder);

/* Appends the launches of `node` as `variant` computes it. Returns the binder's error. */
cleat_status cleat_bind_node(const cleat_variant *variant, const cleat_node *node, cleat_binder *binder,
                             cleat_error *error);

/* Begins a launch of `kernel` from cl/`file`, built for the storage type `storage` (f32, f16 or bf16: the
 * type T of common.clh) and for the device (-DWG, -DVEC, -DSUB_GROUP from its facts). The functions below
 * extend the launch that was begun last. */
void cleat_launch_kernel(cleat_binder *binder, const cleat_node *node, const char *file, const char *kernel,
                         cleat_dtype storage);
/* Adds "-DNAME=value" to the build options. Use few different values: each new set of options is another
 * compilation. */
void cleat_launch_define(cleat_binder *binder, const char *name, int64_t value);
/* Builds the kernel for the device's matrix unit: adds -DMATRIX_UNIT and the other options that this unit
 * needs. */
void cleat_launch_matrix_unit(cleat_binder *binder);
/* A tensor becomes two kernel arguments: its buffer and its offset in elements (ulong). See TENSOR in
 * common.clh. */
void cleat_launch_tensor(cleat_binder *binder, const cleat_tensor *tensor);
/* As cleat_launch_tensor, but `elements` further into the tensor. */
void cleat_launch_tensor_at(cleat_binder *binder, const cleat_tensor *tensor, int64_t elements);
/* The node's workspace from byte `offset` on (a multiple of element_size), also as two arguments. */
void cleat_launch_workspace(cleat_binder *binder, int64_t offset, int element_size);
void cleat_launch_i32(cleat_binder *binder, int32_t value);
void cleat_launch_f32(cleat_binder *binder, float value);
void cleat_launch_i64(cleat_binder *binder, int64_t value);
/* Ends the launch with `groups` work-groups of facts->work_group work-items each. */
void cleat_launch_groups(cleat_binder *binder, int64_t groups);
/* Ends the launch with explicit sizes; `global` must be a multiple of `local`. */
void cleat_launch_range(cleat_binder *binder, int dims, const size_t *global, const size_t *local);
/* Ends the launch for `items` independent work-items that a grid-stride loop handles: with enough work-groups
 * to keep the device busy and no more. */
void cleat_launch_items(cleat_binder *binder, int64_t items);
void cleat_launch_sgemm(cleat_binder *binder, const cleat_node *node, const cleat_sgemm *sgemm);

#endif

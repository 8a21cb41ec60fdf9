/* Launch descriptions: which kernels an op's variant runs, with their arguments, as plain data. The exec room
 * turns them into OpenCL objects once; enqueueing later sets no argument and allocates nothing. */
#ifndef CLEAT_SRC_LAUNCH_H
#define CLEAT_SRC_LAUNCH_H

#include "graph/graph.h"

enum { CLEAT_MAX_ARGS = 40, CLEAT_OPTIONS = 256 };

/* CLEAT_ARG_COUNTERS: those of the plan, i32 [CLEAT_COUNTERS], which every launch finds and leaves at 0. */
enum { CLEAT_COUNTERS = 4096 };
typedef enum cleat_arg_kind {
    CLEAT_ARG_TENSOR,
    CLEAT_ARG_WORKSPACE,
    CLEAT_ARG_COUNTERS,
    CLEAT_ARG_SCALAR
} cleat_arg_kind;

typedef struct cleat_arg {
    cleat_arg_kind kind;
    int32_t size;               /* scalar: 4 or 8 bytes; workspace: bytes of an element */
    const char *name;           /* scalar: of the kernel's parameter; static string */
    const cleat_tensor *tensor; /* NULL: a null pointer */
    int64_t offset;             /* in elements of the tensor, or in bytes of the node's workspace */
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
    const char *source; /* the text of `file`, of cleat_launch_source; NULL: a kernel file of the library */
    /* "-DSTORAGE_F32 -DWG=1 -DVEC=16 ...": together with `file` and `source` the key of the program */
    char options[CLEAT_OPTIONS];
    int n_args;
    cleat_arg args[CLEAT_MAX_ARGS];
    int64_t work_group; /* WG */
    int64_t multiple;   /* see cleat_launch_vector_kernel; 1: vectors may begin anywhere */
    int dims;
    bool needs_values; /* cleat_launch_needs_values */
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

/* As cleat_launch_kernel, for a kernel with vectors: each begins a whole number of vectors after a multiple
 * of `multiple` elements of its tensor or workspace, counted from the argument's offset. `multiple` is the
 * width of the rows; a | b for rows of two widths; 0 if there is one row. On GPUs, the call that ends the
 * launch adds -DALIGNED=1 if `multiple` and all offsets are multiples of the vector width. Kernels of the
 * same file that have no vectors are given the same `multiple`, so that they are in the same program. */
void cleat_launch_vector_kernel(cleat_binder *binder, const cleat_node *node, const char *file, const char *kernel,
                                cleat_dtype storage, int64_t multiple);
/* The launch begun last has work-groups of `items` work-items instead of facts->work_group: changes -DWG, which
 * cleat_launch_kernel gave, and what cleat_launch_groups gives. */
void cleat_launch_work_group(cleat_binder *binder, int64_t items);
/* The kernel of the launch begun last ends only on values that the graph wrote, not on zeros: no process runs
 * it ahead to compile it (exec/compile_jobs.h). */
void cleat_launch_needs_values(cleat_binder *binder);
/* Builds the kernel of the launch begun last for the device's matrix unit: adds -DMATRIX_UNIT and the other
 * options that this unit needs. */
void cleat_launch_matrix_unit(cleat_binder *binder);
/* Division and square root of the kernel of the launch begun last are rounded correctly where the device can
 * do it, so that devices of different vendors compute the same bits. */
void cleat_launch_round_correctly(cleat_binder *binder);
/* Whether the last work-group of a launch can use what the others have written (cl/lib/last_group.clh); the
 * plan then has counters, and all programs -DLAST_GROUP=1. */
bool cleat_has_last_group(const cleat_device_facts *facts);
/* Whether a launch that needs `count` counters has them. */
bool cleat_has_counters(const cleat_device_facts *facts, int64_t count);
/* Two arguments, as those of a tensor i32: the plan's counters, or NULL if they are not `wanted`. */
void cleat_launch_counters(cleat_binder *binder, bool wanted);
/* Tensors, any of which may be NULL, in this order. */
void cleat_launch_tensors(cleat_binder *binder, const cleat_tensor *const *tensors, size_t count);
#define CLEAT_LAUNCH_TENSORS(binder, ...)                                                                              \
    cleat_launch_tensors(binder, (const cleat_tensor *[]){__VA_ARGS__},                                                \
                         sizeof((const cleat_tensor *[]){__VA_ARGS__}) / sizeof(cleat_tensor *))
/* Several arguments i32, or definitions, in this order: CLEAT_LAUNCH_I32(binder, {"rows", rows}, {"width", width}). */
typedef struct cleat_launch_number {
    const char *name;
    int64_t value;
} cleat_launch_number;
typedef struct cleat_launch_numbers {
    const cleat_launch_number *items; /* [count] */
    size_t count;
} cleat_launch_numbers;
#define CLEAT_LAUNCH_NUMBERS(...)                                                                                      \
    ((cleat_launch_numbers){(const cleat_launch_number[]){__VA_ARGS__},                                                \
                            sizeof((const cleat_launch_number[]){__VA_ARGS__}) / sizeof(cleat_launch_number)})
#define CLEAT_LAUNCH_I32(binder, ...) cleat_launch_i32s(binder, CLEAT_LAUNCH_NUMBERS(__VA_ARGS__))
#define CLEAT_LAUNCH_DEFINES(binder, ...) cleat_launch_defines(binder, CLEAT_LAUNCH_NUMBERS(__VA_ARGS__))
void cleat_launch_i32s(cleat_binder *binder, cleat_launch_numbers numbers);
void cleat_launch_defines(cleat_binder *binder, cleat_launch_numbers numbers);
/* f32 of the workspace from byte `offset` on, or the tensor (NULL: a null pointer) if they are not `wanted`. */
void cleat_launch_floats_or(cleat_binder *binder, bool wanted, int64_t offset, const cleat_tensor *tensor);
void cleat_launch_sgemm(cleat_binder *binder, const cleat_node *node, const cleat_sgemm *sgemm);

#endif

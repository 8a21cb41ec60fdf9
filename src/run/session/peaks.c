/* Ops of the kernels that measure peak rates, and the sizes of timed work. */
#include "session/peaks.h"

#include "core/kernel_shape.h"
#include "graph/launch.h"

/* --- operations ------------------------------------------------------------------------------------------------ */

enum { MATRIX_GROUP = 128 }; /* work-items; whole subgroups of any unit */

typedef struct peak_attr {
    int64_t groups;
} peak_attr;

static cleat_status infer_launch(cleat_node *node, cleat_error *error) {
    (void)error;
    cleat_set_output_state(node, 0, node->in[0]);
    return CLEAT_OK;
}

/* The device sets the number of work-items, which is unknown to the graph: the result has room for the
 * maximum. */
static cleat_status infer_loop(cleat_node *node, cleat_error *error) {
    enum { MAX_ITEMS = 256 };
    const int64_t shape[] = {((const peak_attr *)node->attr)->groups, MAX_ITEMS};
    return cleat_set_output(node, 0, CLEAT_F32, 2, shape, error);
}

static void bind_launch(const cleat_node *node, cleat_binder *binder) {
    cleat_launch_kernel(binder, node, "lib/peak.cl", "peak_launch", CLEAT_F32);
    cleat_launch_groups(binder, 1);
}

static void end_loop(const cleat_node *node, cleat_binder *binder) {
    cleat_launch_tensor(binder, node->in[0]);
    cleat_launch_tensor(binder, node->out[0]);
    cleat_launch_groups(binder, ((const peak_attr *)node->attr)->groups);
}

static void bind_f32(const cleat_node *node, cleat_binder *binder) {
    cleat_launch_kernel(binder, node, "lib/peak.cl", "peak_f32", CLEAT_F32);
    end_loop(node, binder);
}

static void bind_matrix(const cleat_node *node, cleat_binder *binder) {
    cleat_launch_kernel(binder, node, "lib/peak_mma.cl", "peak_matrix", CLEAT_F16);
    cleat_launch_matrix_unit(binder);
    cleat_launch_work_group(binder, MATRIX_GROUP);
    end_loop(node, binder);
}

static const char *refuse_matrix(const cleat_node *node, const cleat_device_facts *facts) {
    (void)node;
    return facts->matrix_unit == CLEAT_MATRIX_NONE ? "the device has no matrix unit" : NULL;
}

static const cleat_variant launch_variants[] = {{.name = "empty", .bind = bind_launch}, {0}};
static const cleat_variant f32_variants[] = {{.name = "registers", .bind = bind_f32}, {0}};
static const cleat_variant matrix_variants[] = {{.name = "mma", .refuse = refuse_matrix, .bind = bind_matrix}, {0}};

static const cleat_op ops[] = {
    [CLEAT_PEAK_LAUNCH] = {.name = "peak_launch", .infer = infer_launch, .variants = launch_variants},
    [CLEAT_PEAK_F32] = {.name = "peak_f32", .infer = infer_loop, .variants = f32_variants},
    [CLEAT_PEAK_MATRIX] = {.name = "peak_matrix", .infer = infer_loop, .variants = matrix_variants}};

cleat_tensor *cleat_peak_node(cleat_graph *graph, cleat_peak_kernel kernel, cleat_tensor *rounds, int64_t groups) {
    const peak_attr attr = {groups};
    return cleat_first_output(cleat_emit(graph, &ops[kernel], &attr, sizeof attr, &rounds, 1));
}

double cleat_peak_flops(const cleat_device_facts *facts, cleat_peak_kernel kernel) {
    const double tile = 2.0 * 16 * 16 * 16;
    if (kernel == CLEAT_PEAK_LAUNCH) return 0;
    if (kernel == CLEAT_PEAK_F32) return 2.0 * PEAK_PRODUCTS * facts->vector_width * facts->work_group;
    return tile * PEAK_MATRIX_PRODUCTS * MATRIX_GROUP / cleat_matrix_subgroup_size(facts->matrix_unit);
}

/* --- sizes ----------------------------------------------------------------------------------------------------- */

cleat_status cleat_find_size(const cleat_sized_work *work, double launch_seconds, int64_t *size, double *seconds,
                             cleat_error *error) {
    const double launches = 32;
    for (int64_t next = work->first; next <= work->most; next *= 2) {
        cleat_error why = {0};
        double each = 0;
        cleat_status status = work->time(work->user, next, &each, &why);
        if ((status == CLEAT_ERR_FIT || status == CLEAT_ERR_DEVICE_MEMORY) && next > work->first) return CLEAT_OK;
        if (status && error) *error = why;
        if (status) return status;
        *size = next;
        *seconds = each;
        if (each >= launches * launch_seconds) break;
    }
    return CLEAT_OK;
}

int64_t cleat_stream_bytes(const cleat_device_facts *facts, int64_t cache, int64_t allowed) {
    const int64_t mib = 1048576, large = 16 * 1024 * mib;
    int64_t bytes = 64 * mib;
    if (facts->kind != CLEAT_DEVICE_CPU) {
        if (facts->memory_total > large) bytes = 512 * mib;
        if (bytes < 8 * cache) bytes = 8 * cache;
    }
    return bytes < allowed ? bytes : allowed;
}

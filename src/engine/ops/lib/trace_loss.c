/* Workspace layout and the final launch of losses on traces. */
#include "ops/lib/trace_loss.h"

#include "ops/lib/count.h"

static int64_t align(int64_t bytes) {
    return (bytes + 255) / 256 * 256;
}

int64_t cleat_trace_stride(const cleat_tensor *x) {
    return (x->shape[1] + 15) / 16 * 16;
}

int64_t cleat_trace_planes_bytes(const cleat_tensor *x, int planes) {
    return align(x->shape[0] * planes * cleat_trace_stride(x) * 4);
}

int64_t cleat_trace_rows_bytes(const cleat_tensor *x) {
    return align(2 * x->shape[0] * x->shape[1] * 4);
}

/* Kernels index residues and the planes of a chain with 32 bits. */
static cleat_status check_size(const cleat_node *node, const cleat_tensor *x, cleat_error *error) {
    enum { LENGTH_MAX = 1 << 25 };
    if (x->shape[1] <= LENGTH_MAX && x->shape[0] <= CLEAT_MAX_ROWS / cleat_trace_stride(x)) return CLEAT_OK;
    return cleat_infer_fail(node, error, "%lld chains of length %lld: at most 2^30 residues, and 2^25 in a chain",
                            (long long)x->shape[0], (long long)x->shape[1]);
}

cleat_status cleat_trace_check(const cleat_node *node, const cleat_tensor *x, const cleat_tensor *sample_weight,
                               int term, cleat_error *error) {
    cleat_status status = check_size(node, x, error);
    if (status) return status;
    if (sample_weight->rank == 2 && sample_weight->dtype == CLEAT_F32 && sample_weight->shape[1] == x->shape[0] &&
        term >= 0 && term < sample_weight->shape[0])
        return CLEAT_OK;
    return cleat_infer_fail(node, error, "scale is %s; it must be f32 [more than %d terms, %lld]",
                            CLEAT_DESCRIBED(sample_weight), term, (long long)x->shape[0]);
}

void cleat_trace_launch_sample_weight(cleat_binder *binder, const cleat_tensor *x, const cleat_tensor *sample_weight,
                                      int term) {
    cleat_launch_tensor_at(binder, sample_weight, term * x->shape[0]);
}

void cleat_trace_launch_tensors(cleat_binder *binder, cleat_tensor *const *tensors, int count) {
    for (int i = 0; i < CLEAT_TRACE_TERMS; ++i) cleat_launch_tensor(binder, i < count ? tensors[i] : NULL);
}

void cleat_trace_launch_total(cleat_binder *binder, const cleat_node *node, const cleat_tensor *x,
                              const cleat_tensor *sample_weight, const int32_t *terms, int count, int64_t rows) {
    static const char *const weights[CLEAT_TRACE_TERMS] = {"weight_a", "weight_b", "weight_c", "weight_d"};
    cleat_launch_kernel(binder, node, "structure_loss.cl", "structure_total", CLEAT_F32);
    cleat_launch_workspace(binder, rows, 4);
    cleat_launch_tensor(binder, sample_weight);
    cleat_trace_launch_tensors(binder, node->out, count);
    for (int i = 0; i < CLEAT_TRACE_TERMS; ++i) cleat_launch_i32(binder, weights[i], i < count ? terms[i] : 0);
    cleat_launch_tensor(binder, node->out[count]);
    CLEAT_LAUNCH_I32(binder, {"B", x->shape[0]}, {"L", x->shape[1]});
    cleat_launch_groups(binder, count);
}

/* Checks and the final launch of losses over rows. */
#include "ops/lib/row_loss.h"

#include "ops/lib/rows.h"

cleat_status cleat_row_loss_infer(cleat_node *node, const cleat_tensor *x, int64_t max_width, cleat_error *error) {
    int64_t one = 1;
    if (cleat_is_storage(x->dtype) && x->rank > 0 && cleat_width(x) <= max_width && cleat_rows(x) <= CLEAT_MAX_ROWS)
        return cleat_set_output(node, 0, CLEAT_F32, 1, &one, error);
    return cleat_infer_fail(node, error, "x is %s; it must be f32, f16 or bf16, of at most 2^30 rows of 1 to %lld",
                            CLEAT_DESCRIBED(x), (long long)max_width);
}

cleat_status cleat_row_loss_expect(const cleat_node *node, int i, const char *what, cleat_dtype dtype,
                                   const cleat_tensor *x, cleat_error *error) {
    const cleat_tensor *got = node->in[i];
    if (got->dtype == dtype && cleat_tensor_elements(got) == cleat_rows(x)) return CLEAT_OK;
    return cleat_infer_fail(node, error, "%s is %s, it must be %s with one element for each of %lld rows", what,
                            CLEAT_DESCRIBED(got), cleat_dtype_name(dtype), (long long)cleat_rows(x));
}

int64_t cleat_row_loss_workspace(const cleat_node *node, const cleat_device_facts *facts) {
    (void)facts;
    return cleat_rows(node->in[0]) * (int64_t)sizeof(float);
}

void cleat_launch_row_loss_total(cleat_binder *binder, const cleat_node *node, int64_t rows) {
    cleat_launch_kernel(binder, node, "row_loss.cl", "row_loss_total", CLEAT_F32);
    cleat_launch_workspace(binder, 0, sizeof(float));
    cleat_launch_tensor(binder, node->out[0]);
    cleat_launch_i64(binder, "n", rows);
    cleat_launch_groups(binder, 1);
}

/* Launches of the kernel that copies columns. */
#include "ops/lib/columns.h"

#include "ops/lib/rows.h"

cleat_columns cleat_columns_of(const cleat_tensor *tensor, int64_t at) {
    return (cleat_columns){.tensor = tensor, .at = at, .stride = tensor ? cleat_width(tensor) : 0};
}

void cleat_launch_columns(cleat_binder *binder, const cleat_node *node, cleat_columns from, const cleat_tensor *accum,
                          cleat_columns to, int64_t rows, int64_t width) {
    cleat_launch_vector_kernel(binder, node, "concat.cl", "concat_columns", to.tensor->dtype,
                               width | from.stride | to.stride);
    cleat_launch_tensor_at(binder, from.tensor, from.at);
    cleat_launch_tensor_at(binder, accum, to.at);
    cleat_launch_tensor_at(binder, to.tensor, to.at);
    CLEAT_LAUNCH_I32(binder, {"rows", rows}, {"width", width}, {"from_width", from.stride}, {"to_width", to.stride});
    cleat_launch_runs(binder, rows, width);
}

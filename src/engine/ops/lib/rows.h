/* Launches of kernels that process the rows of a tensor [rows, width]: cl/lib/rows.clh. */
#ifndef CLEAT_SRC_OPS_ROWS_H
#define CLEAT_SRC_OPS_ROWS_H

#include "graph/launch.h"
#include "ops/lib/count.h"

/* Number of work-items per row: a power of two. */
int64_t cleat_row_items(int64_t width, const cleat_device_facts *facts);
/* Number of rows that a work-group processes at once. */
int64_t cleat_rows_at_once(int64_t width, const cleat_device_facts *facts);

/* Number of work-groups whose partial sums of the columns of x are added by a further launch. */
int64_t cleat_row_parts(const cleat_tensor *x, const cleat_device_facts *facts);
/* For cleat_variant.refuse: why a work-item cannot hold its part of a row of in[0], or the partial sums of a gradient
 * cannot be added. */
const char *cleat_rows_refuse(const cleat_node *node, const cleat_device_facts *facts);
const char *cleat_rows_refuse_grad(const cleat_node *node, const cleat_device_facts *facts);

/* Begins a launch of `kernel`, built for rows of this width. */
void cleat_launch_row_kernel(cleat_binder *binder, const cleat_node *node, const char *file, const char *kernel,
                             cleat_dtype storage, int64_t width);
/* Ends a launch over `rows` rows with enough work-groups to keep the device busy. */
void cleat_launch_rows(cleat_binder *binder, int64_t rows, int64_t width);
/* Ends a launch of a kernel that receives the width at run time (cl/lib/runs.clh). */
void cleat_launch_runs(cleat_binder *binder, int64_t rows, int64_t width);

#endif

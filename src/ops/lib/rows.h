/* Launches of kernels that work on the rows of a tensor [rows, width]: cl/lib/rows.clh. */
#ifndef CLEAT_SRC_OPS_ROWS_H
#define CLEAT_SRC_OPS_ROWS_H

#include "graph/launch.h"
#include "ops/lib/count.h"

/* Work-items that share a row: a power of two. */
int64_t cleat_row_items(int64_t width, const cleat_device_facts *facts);
/* Rows that one work-group does at a time. */
int64_t cleat_rows_at_once(int64_t width, const cleat_device_facts *facts);

/* Starts a launch of `kernel`, built for rows of this width. */
void cleat_launch_row_kernel(cleat_binder *binder, const cleat_node *node, const char *file, const char *kernel,
                             cleat_dtype storage, int64_t width);
/* Ends a launch over `rows` rows: as many groups as keep the device busy. */
void cleat_launch_rows(cleat_binder *binder, int64_t rows, int64_t width);
/* Ends a launch of a kernel that knows the width at run time only (cl/lib/runs.clh). */
void cleat_launch_runs(cleat_binder *binder, int64_t rows, int64_t width);

#endif

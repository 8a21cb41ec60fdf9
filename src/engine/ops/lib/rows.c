/* Distribution of rows among work-items. */
#include "ops/lib/rows.h"

#include "lib/shared_numbers.clh"

int64_t cleat_row_items(int64_t width, const cleat_device_facts *facts) {
    int64_t vectors = (width + facts->vector_width - 1) / facts->vector_width, items = 1;
    while (items < vectors && items < facts->work_group) items *= 2;
    return items;
}

int64_t cleat_rows_at_once(int64_t width, const cleat_device_facts *facts) {
    return facts->work_group / cleat_row_items(width, facts);
}

int64_t cleat_row_parts(const cleat_tensor *x, const cleat_device_facts *facts) {
    const int64_t groups_per_unit = facts->work_group == 1 ? 8 : 4;
    return min(ceil_div(cleat_rows(x), cleat_rows_at_once(cleat_width(x), facts)), units_of(facts) * groups_per_unit);
}

const char *cleat_rows_refuse(const cleat_node *node, const cleat_device_facts *facts) {
    enum { MAX_WIDTH = 16384 };
    (void)facts;
    if (cleat_width(node->in[0]) > MAX_WIDTH) return "rows wider than 16384 do not fit in registers";
    return cleat_rows(node->in[0]) > CLEAT_MAX_ROWS ? "more than 2^30 rows" : NULL;
}

const char *cleat_rows_refuse_grad(const cleat_node *node, const cleat_device_facts *facts) {
    if (facts->work_group > 1 && facts->work_group < TOTAL_COLUMNS) return "requires work-groups of at least 32";
    return cleat_rows_refuse(node, facts);
}

void cleat_launch_row_kernel(cleat_binder *binder, const cleat_node *node, const char *file, const char *kernel,
                             cleat_dtype storage, int64_t width) {
    cleat_launch_vector_kernel(binder, node, file, kernel, storage, width);
    CLEAT_LAUNCH_DEFINES(binder, {"WIDTH", width}, {"ROW_ITEMS", cleat_row_items(width, binder->facts)});
}

void cleat_launch_rows(cleat_binder *binder, int64_t rows, int64_t width) {
    int64_t at_once = cleat_rows_at_once(width, binder->facts);
    cleat_launch_items(binder, (rows + at_once - 1) / at_once * binder->facts->work_group);
}

void cleat_launch_runs(cleat_binder *binder, int64_t rows, int64_t width) {
    cleat_launch_items(binder, rows * ((width + binder->facts->vector_width - 1) / binder->facts->vector_width));
}

/* Selection of the rows that a network goes on with. */
#include "nn/rows.h"

cleat_tensor *cleat_nn_read_rows(cleat_graph *graph, cleat_tensor *x, const cleat_read_rows *rows) {
    if (rows->which == CLEAT_READ_ONE) return cleat_select_row(graph, x, rows->lengths, rows->row);
    return x;
}

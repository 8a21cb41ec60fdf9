/* Selection of the row that the rest of a network reads. */
#include "nn/rows.h"

cleat_tensor *cleat_nn_read_row(cleat_graph *graph, cleat_tensor *x, const cleat_read_row *read) {
    return read ? cleat_select_row(graph, x, read->lengths, read->row) : x;
}

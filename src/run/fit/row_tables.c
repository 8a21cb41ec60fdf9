/* Finds the parameters whose gradient ranks exchange by rows. */
#include "fit/row_tables.h"

#include "graph/store.h"

/* Elements; for smaller tables the exchange by rows costs more than it saves. */
enum { MIN_TABLE = 1 << 16 };

/* Whether all inputs that name rows of the node are filled by the host. */
static bool rows_are_known(const cleat_node *node) {
    for (int i = 0; i < node->n_in; ++i)
        if (node->op->row_inputs & CLEAT_IN(i) && (!node->in[i] || node->in[i]->role != CLEAT_ROLE_INPUT)) return false;
    return node->op->row_inputs != 0;
}

/* Whether every node that writes the gradient declares which rows it changes. */
static bool is_table(const cleat_workload *work, const cleat_tensor *grad) {
    bool is_written = false;
    if (grad->rank != 2 || cleat_tensor_elements(grad) < MIN_TABLE) return false;
    for (size_t b = 0; b < work->n_buckets; ++b) {
        const cleat_graph *graph = work->train[b].graph;
        for (size_t n = 0; n < graph->node_count; ++n)
            for (int o = 0; o < graph->nodes[n]->n_out; ++o) {
                if (graph->nodes[n]->out[o] != grad) continue;
                if (o > 0 || !rows_are_known(graph->nodes[n])) return false;
                is_written = true;
            }
    }
    return is_written;
}

int cleat_row_tables_find(const cleat_workload *work, cleat_row_table *tables) {
    const cleat_store *store = work->store;
    int count = 0;
    for (size_t i = store->count; i-- > 0 && count < CLEAT_TABLES;) {
        const cleat_tensor *grad = store->grads[i];
        if (!grad || store->params[i]->rule.frozen || !is_table(work, grad)) continue;
        tables[count++] = (cleat_row_table){i, grad->shape[0], grad->shape[1]};
    }
    return count;
}

int64_t cleat_row_table_numbers(const cleat_workload *work, const cleat_row_table *table, size_t b) {
    const cleat_graph *graph = work->train[b].graph;
    int64_t numbers = 0;
    for (size_t n = 0; n < graph->node_count; ++n) {
        const cleat_node *node = graph->nodes[n];
        if (node->out[0] != work->store->grads[table->parameter]) continue;
        for (int i = 0; i < node->n_in; ++i)
            if (node->op->row_inputs & CLEAT_IN(i)) numbers += cleat_tensor_elements(node->in[i]);
    }
    return numbers;
}

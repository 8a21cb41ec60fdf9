/* Which rows of which tables the micro-batches of a step touch. */
#include "train/touched_rows.h"

#include "core/memory.h"
#include "platform/files.h"

#include <stdlib.h>
#include <string.h>

static void place_table(cleat_touched_rows *rows, const cleat_pieces *pieces, const cleat_piece *piece, float *values) {
    const cleat_row_table *table = &pieces->tables[piece->table];
    rows->sums[piece->table] = (cleat_row_sum){
        .values = values + piece->first,
        .rows = table->rows,
        .width = table->width,
        .marks = rows->all + rows->first_word[piece->table],
        .stride = rows->stride,
        .scratch = rows->scratch,
    };
}

cleat_status cleat_touched_rows_open(cleat_touched_rows *rows, const cleat_pieces *pieces, int ranks, float *values,
                                     cleat_error *error) {
    size_t most = 0;
    *rows = (cleat_touched_rows){.every = getenv("CLEAT_RANKS_DENSE") != NULL};
    for (int t = 0; t < pieces->table_count; ++t) {
        const cleat_row_table *table = &pieces->tables[t];
        const size_t scratch = cleat_row_sum_scratch(table->rows, table->width, ranks);
        rows->first_word[t] = rows->stride;
        rows->stride += cleat_row_words(table->rows);
        if (scratch > most) most = scratch;
    }
    if (pieces->table_count == 0) return CLEAT_OK;
    rows->own = cleat_alloc(rows->stride, sizeof *rows->own);
    rows->all = cleat_alloc(rows->stride * (size_t)ranks, sizeof *rows->all);
    rows->scratch = cleat_alloc(most, sizeof *rows->scratch);
    rows->sums = cleat_alloc((size_t)pieces->table_count, sizeof *rows->sums);
    if (!rows->own || !rows->all || !rows->scratch || !rows->sums)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the rows of %d tables", pieces->table_count);
    for (size_t p = 0; p < pieces->count; ++p)
        if (pieces->list[p].table >= 0) place_table(rows, pieces, &pieces->list[p], values);
    return CLEAT_OK;
}

void cleat_touched_rows_close(cleat_touched_rows *rows) {
    cleat_free(rows->own);
    cleat_free(rows->all);
    cleat_free(rows->scratch);
    cleat_free(rows->sums);
    *rows = (cleat_touched_rows){.own = NULL};
}

static void mark(uint64_t *marks, int64_t row) {
    marks[row / 64] |= (uint64_t)1 << (row % 64);
}

static void mark_every(uint64_t *marks, int64_t rows) {
    for (int64_t row = 0; row < rows; ++row) mark(marks, row);
}

void cleat_touched_rows_begin(cleat_touched_rows *rows) {
    if (rows->stride) memset(rows->own, 0, rows->stride * sizeof *rows->own);
    rows->announced = false;
}

/* Marks the rows that inputs of the node name. */
static void add_node(uint64_t *marks, int64_t rows, const cleat_node *node, const cleat_session *session, size_t graph,
                     const char *inputs) {
    for (int i = 0; i < node->n_in; ++i) {
        if (!(node->op->row_inputs & CLEAT_IN(i))) continue;
        const int64_t offset = cleat_exec_input_offset(session->exec, graph, node->in[i]);
        const int32_t *numbers = (const int32_t *)(const void *)(inputs + offset);
        if (offset < 0) {
            mark_every(marks, rows);
            return;
        }
        for (int64_t k = 0; k < cleat_tensor_elements(node->in[i]); ++k)
            if (numbers[k] >= 0 && numbers[k] < rows) mark(marks, numbers[k]);
    }
}

void cleat_touched_rows_add(cleat_touched_rows *rows, const cleat_pieces *pieces, const cleat_session *session,
                            size_t bucket, const void *inputs) {
    const cleat_work_graph *work = &session->work->train[bucket];
    for (int t = 0; t < pieces->table_count; ++t) {
        uint64_t *marks = rows->own + rows->first_word[t];
        const cleat_tensor *grad = session->work->store->grads[pieces->tables[t].parameter];
        if (rows->every) mark_every(marks, pieces->tables[t].rows);
        for (size_t n = 0; n < work->graph->node_count; ++n)
            if (work->graph->nodes[n]->out[0] == grad)
                add_node(marks, pieces->tables[t].rows, work->graph->nodes[n], session, work->index, inputs);
    }
}

cleat_status cleat_touched_rows_announce(cleat_touched_rows *rows, cleat_ranks *ranks, cleat_error *error) {
    uint64_t ticket;
    if (rows->announced || rows->stride == 0) return CLEAT_OK;
    rows->announced = true;
    return cleat_ranks_gather_start(ranks, rows->own, rows->stride * sizeof *rows->own, rows->all, &ticket, error);
}

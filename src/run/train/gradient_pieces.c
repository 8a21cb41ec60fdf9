/* Cuts the gradient into pieces; tables whose gradient is exchanged by rows are pieces of their own. */
#include "train/gradient_pieces.h"

#include "core/memory.h"
#include "graph/store.h"

#include <stdlib.h>
#include <string.h>

/* Elements; for smaller pieces the overhead exceeds the time that they hide. */
enum { MIN_PIECE = 1 << 17 };

static size_t node_after_last_write(const cleat_graph *graph, const cleat_tensor *grad) {
    for (size_t n = graph->node_count; n-- > 0;)
        for (int o = 0; o < graph->nodes[n]->n_out; ++o)
            if (graph->nodes[n]->out[o] == grad) return n + 1;
    return 0;
}

static void add_run(cleat_pieces *pieces, const cleat_workload *work, const cleat_tensor *grad, int64_t flat,
                    int64_t elements) {
    cleat_piece *piece = &pieces->list[pieces->count - 1];
    pieces->runs[pieces->run_count++] = (cleat_gradient_run){.flat = flat, .elements = elements};
    ++piece->runs;
    piece->elements += elements;
    for (size_t b = 0; b < work->n_buckets; ++b) {
        const size_t ready = node_after_last_write(work->train[b].graph, grad);
        if (ready > piece->ready[b]) piece->ready[b] = ready;
    }
}

static void begin_piece(cleat_pieces *pieces, int table) {
    cleat_piece *made = &pieces->list[pieces->count];
    *made = (cleat_piece){.first_run = pieces->run_count, .table = table};
    if (pieces->count > 0) memcpy(made->ready, made[-1].ready, sizeof made->ready);
    ++pieces->count;
}

/* The elements of a parameter fill the last piece up to `most`, then new ones. */
static void add_dense(cleat_pieces *pieces, const cleat_workload *work, const cleat_tensor *grad, int64_t most) {
    int64_t left = cleat_store_aligned(cleat_tensor_elements(grad)), flat = grad->flat_offset;
    while (left > 0) {
        const cleat_piece *last = pieces->count ? &pieces->list[pieces->count - 1] : NULL;
        if (!last || last->table >= 0 || last->elements >= most) begin_piece(pieces, -1);
        const int64_t room = most - pieces->list[pieces->count - 1].elements, taken = left < room ? left : room;
        add_run(pieces, work, grad, flat, taken);
        flat += taken;
        left -= taken;
    }
}

static int by_place(const void *a, const void *b) {
    const cleat_gradient_run *x = a, *y = b;
    return (x->flat > y->flat) - (x->flat < y->flat);
}

/* A small remainder at the end joins the previous piece, which becomes final hardly earlier. */
static void join_rest(cleat_pieces *pieces, size_t last) {
    cleat_piece *rest = &pieces->list[last], *before = rest - 1;
    if (last == 0 || rest->table >= 0 || before->table >= 0 || 4 * rest->elements >= before->elements) return;
    before->elements += rest->elements;
    before->runs += rest->runs;
    memcpy(before->ready, rest->ready, sizeof rest->ready);
    for (size_t i = last; i + 1 < pieces->count; ++i) pieces->list[i] = pieces->list[i + 1];
    --pieces->count;
}

/* Joins adjacent runs, and assigns all their places in the host's copy. */
static void place_runs(cleat_pieces *pieces) {
    size_t kept = 0;
    for (size_t p = 0; p < pieces->count; ++p) {
        cleat_piece *piece = &pieces->list[p];
        cleat_gradient_run *runs = pieces->runs + piece->first_run, *last = NULL;
        qsort(runs, piece->runs, sizeof *runs, by_place);
        piece->first = pieces->elements;
        const size_t first = kept;
        for (size_t i = 0; i < piece->runs; ++i) {
            if (last && last->flat + last->elements == runs[i].flat) {
                last->elements += runs[i].elements;
            } else {
                last = &pieces->runs[kept++];
                *last = (cleat_gradient_run){runs[i].flat, pieces->elements, runs[i].elements};
            }
            pieces->elements += runs[i].elements;
        }
        piece->first_run = first;
        piece->runs = kept - first;
    }
    pieces->run_count = kept;
}

cleat_status cleat_pieces_cut(cleat_pieces *pieces, const cleat_workload *work, cleat_error *error) {
    const cleat_store *store = work->store;
    *pieces = (cleat_pieces){.count = 0};
    pieces->runs = cleat_alloc(store->count + CLEAT_PIECES, sizeof *pieces->runs);
    if (!pieces->runs) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the pieces of the gradient");
    pieces->table_count = cleat_row_tables_find(work, pieces->tables);
    const int64_t part = cleat_store_aligned(store->trained_elements / (CLEAT_DENSE_PIECES - 1));
    const int64_t most = part > MIN_PIECE ? part : MIN_PIECE;
    for (size_t i = store->count; i-- > 0;) {
        const cleat_tensor *grad = store->grads[i];
        if (!grad || store->params[i]->rule.frozen) continue;
        int table = 0;
        while (table < pieces->table_count && pieces->tables[table].parameter != i) ++table;
        if (table == pieces->table_count) {
            add_dense(pieces, work, grad, most);
            continue;
        }
        if (pieces->count > 0) join_rest(pieces, pieces->count - 1);
        begin_piece(pieces, table);
        add_run(pieces, work, grad, grad->flat_offset, cleat_tensor_elements(grad));
    }
    if (pieces->count > 0) join_rest(pieces, pieces->count - 1);
    place_runs(pieces);
    return CLEAT_OK;
}

void cleat_pieces_close(cleat_pieces *pieces) {
    cleat_free(pieces->runs);
    *pieces = (cleat_pieces){.count = 0};
}

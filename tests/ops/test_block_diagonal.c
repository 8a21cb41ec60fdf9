/* A block-diagonal matrix, and the gradient of the blocks. */
/* ctest: device */
#include "harness.h"

#include "cleat/ops.h"

/* dims: rows of a block, columns of a block, places, bits of the used places, factor in quarters */
enum { SIDE, RANK, PLACES, USED, QUARTERS };

static int parts_of(const op_case *c) {
    int parts = 0;
    for (int64_t bits = c->dims[USED]; bits; bits >>= 1) parts += bits & 1;
    return parts;
}

static void build(op_case *c) {
    const int64_t shape[] = {parts_of(c) * c->dims[SIDE], c->dims[RANK]};
    const cleat_block_diagonal_spec spec = {.places = (int)c->dims[PLACES],
                                            .used = (unsigned)c->dims[USED],
                                            .factor = (float)c->dims[QUARTERS] / 4,
                                            .storage = c->storage};
    op_output(c, cleat_block_diagonal(c->graph, op_param(c, "x", 2, shape, -2, 2), &spec));
}

/* y += x with `forward`, else x += y; both through the places of the blocks. */
static void move(const op_case *c, double *x, double *y, bool forward) {
    const int64_t side = c->dims[SIDE], rank = c->dims[RANK], width = parts_of(c) * rank;
    const double factor = (double)c->dims[QUARTERS] / 4;
    int64_t q = 0;
    for (int64_t s = 0; s < c->dims[PLACES]; ++s) {
        if (!(c->dims[USED] >> s & 1)) continue;
        for (int64_t d = 0; d < side; ++d)
            for (int64_t j = 0; j < rank; ++j) {
                double *block = &x[(q * side + d) * rank + j], *whole = &y[(s * side + d) * width + q * rank + j];
                if (forward)
                    *whole = factor * *block;
                else
                    *block += factor * *whole;
            }
        ++q;
    }
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    const int64_t elements = c->dims[PLACES] * c->dims[SIDE] * parts_of(c) * c->dims[RANK];
    for (int64_t i = 0; i < elements; ++i) out[0][i] = 0;
    move(c, (double *)in[0], out[0], true);
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    (void)in;
    move(c, din[0], (double *)dout[0], false);
}

static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)tensor;
    return (compare_tolerance){
        .scale = 2.0 * (double)c->dims[QUARTERS] / 4, .length = 1, .f32_units = is_gradient ? 2 : 1};
}

static const op_row rows[] = {
    {1, 1, 1, 1, 4}, {17, 3, 3, 5, 8}, {64, 8, 3, 7, 4}, {33, 5, 2, 2, 1}, {130, 16, 3, 4, 6}, {3, 2, 7, 0x55, 4},
};

static const op_test test = {.op = "block_diagonal",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance};

static void impossible_places_are_refused(void **state) {
    (void)state;
    static const cleat_block_diagonal_spec specs[] = {
        {.places = 0, .used = 1}, {.places = 8, .used = 1}, {.places = 3, .used = 0}, {.places = 2, .used = 4}};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; ++i) {
        cleat_graph *graph = op_graph();
        cleat_tensor *x = cleat_param(graph, "x", 2, (int64_t[]){4, 2}, (cleat_init){0});
        assert_null(cleat_block_diagonal(graph, x, &specs[i]));
        op_graph_refused(graph, CLEAT_ERR_ARGUMENT, "block_diagonal", "places");
    }
    cleat_graph *graph = op_graph();
    cleat_tensor *x = cleat_param(graph, "x", 2, (int64_t[]){5, 2}, (cleat_init){0});
    assert_null(cleat_block_diagonal(graph, x, &(cleat_block_diagonal_spec){.places = 2, .used = 3, .factor = 1}));
    op_graph_refused(graph, CLEAT_ERR_SHAPE, "block_diagonal", "f32 [5, 2]");
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(impossible_places_are_refused)};
    return op_main(&test, 1, extra, 1);
}

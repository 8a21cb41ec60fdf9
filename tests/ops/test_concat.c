/* Concatenation of tensors along the last dimension, and its inverse, chunk. */
/* ctest: device */
#include "harness.h"

#include "cleat/ops.h"

#include <stdio.h>
#include <string.h>

/* dims: rows, whether the first part is also the last, widths of the parts, terminated by 0 */
enum { ROWS, TWICE, WIDTHS, MAX_PARTS = OP_DIMS - WIDTHS };

static int parts_of(const op_case *c) {
    int n = 0;
    while (n < MAX_PARTS && c->dims[WIDTHS + n]) ++n;
    return n;
}

static int64_t columns(const op_case *c) {
    int64_t all = c->dims[TWICE] ? c->dims[WIDTHS] : 0;
    for (int i = 0; i < parts_of(c); ++i) all += c->dims[WIDTHS + i];
    return all;
}

static void build(op_case *c) {
    cleat_tensor *parts[MAX_PARTS + 1];
    int n = parts_of(c);
    for (int i = 0; i < n; ++i) {
        char name[8];
        snprintf(name, sizeof name, "x%d", i);
        parts[i] = op_input(c, name, c->storage, 3, (int64_t[]){c->dims[ROWS], 2, c->dims[WIDTHS + i]}, -2, 2);
    }
    if (c->dims[TWICE]) parts[n++] = parts[0];
    op_output(c, cleat_concat(c->graph, parts, n));
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    int64_t all = columns(c), at = 0;
    for (int i = 0; i < parts_of(c) + (c->dims[TWICE] != 0); ++i) {
        int part = i % parts_of(c);
        int64_t width = c->dims[WIDTHS + part];
        for (int64_t k = 0; k < 2 * c->dims[ROWS] * width; ++k) out[0][k / width * all + at + k % width] = in[part][k];
        at += width;
    }
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    int64_t all = columns(c), at = 0;
    (void)in;
    for (int i = 0; i < parts_of(c) + (c->dims[TWICE] != 0); ++i) {
        int part = i % parts_of(c);
        int64_t width = c->dims[WIDTHS + part];
        for (int64_t k = 0; k < 2 * c->dims[ROWS] * width; ++k)
            din[part][k] += dout[0][k / width * all + at + k % width];
        at += width;
    }
}

/* The first gradient of a part that occurs twice is rounded to storage before the second one arrives. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)tensor;
    return (compare_tolerance){
        .scale = 3, .length = 1, .f32_units = is_gradient ? 2 : 0, .storage_units = is_gradient && c->dims[TWICE]};
}

static const op_row rows[] = {
    {3, 0, 5, 16, 1},
    {2, 0, 7},
    {1, 1, 1},
    {4, 1, 20, 3},
    {33, 0, 64, 64, 64, 64},
    {70, 0, 32, 160},
    {2, 0, 1, 2, 3, 4, 5, 6, 7, 8},
};

/* --- chunk: dims: rows, parts, width of a part, number of parts used --------------------------------------------- */

enum { PARTS = 1, WIDTH, USED };

static void build_chunk(op_case *c) {
    const int64_t n = c->dims[PARTS];
    cleat_tensor *parts[4];
    cleat_tensor *x = op_input(c, "x", c->storage, 3, (int64_t[]){c->dims[ROWS], 2, n * c->dims[WIDTH]}, -2, 2);
    if (!cleat_chunk(c->graph, x, (int)n, parts)) return;
    for (int i = 0; i < c->dims[USED]; ++i) op_output(c, parts[i]);
}

static void reference_chunk(const op_case *c, const double *const *in, double *const *out) {
    const int64_t width = c->dims[WIDTH], all = c->dims[PARTS] * width;
    for (int i = 0; i < c->dims[USED]; ++i)
        for (int64_t k = 0; k < 2 * c->dims[ROWS] * width; ++k)
            out[i][k] = in[0][k / width * all + i * width + k % width];
}

static void gradient_chunk(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    const int64_t width = c->dims[WIDTH], all = c->dims[PARTS] * width;
    (void)in;
    for (int i = 0; i < c->dims[USED]; ++i)
        for (int64_t k = 0; k < 2 * c->dims[ROWS] * width; ++k)
            din[0][k / width * all + i * width + k % width] += dout[i][k];
}

static compare_tolerance tolerance_chunk(const op_case *c, int tensor, bool is_gradient) {
    (void)c, (void)tensor;
    return (compare_tolerance){.scale = 3, .length = 1, .f32_units = is_gradient ? 2 : 0};
}

static const op_row chunk_rows[] = {{2, 2, 5, 2}, {3, 4, 16, 4}, {1, 1, 3, 1}, {5, 4, 33, 2}, {40, 3, 64, 3}};

static const op_test test = {.op = "concat",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 4};

/* Text and status of the graph's error, which must exist. */
static const op_test chunk_test = {.op = "chunk",
                                   .rows = chunk_rows,
                                   .row_count = sizeof chunk_rows / sizeof chunk_rows[0],
                                   .build = build_chunk,
                                   .reference = reference_chunk,
                                   .gradient = gradient_chunk,
                                   .tolerance = tolerance_chunk};

static void assert_fails(cleat_tensor *const *inputs, int n, cleat_graph *graph, cleat_status status,
                         const char *says) {
    cleat_error error = {0};
    assert_null(cleat_concat(graph, inputs, n));
    assert_int_equal(cleat_graph_status(graph, &error), status);
    assert_non_null(strstr(error.text, says));
}

static void rejects(void **state) {
    (void)state;
    static const struct {
        int n, rank;
        int64_t shape[3];
        cleat_dtype dtype;
        cleat_status status;
        const char *says;
    } misfits[] = {{2, 2, {2, 3}, CLEAT_F32, CLEAT_ERR_SHAPE, "part 1"},
                   {2, 3, {2, 4, 3}, CLEAT_F32, CLEAT_ERR_SHAPE, "part 1 is f32 [2, 4, 3]"},
                   {2, 3, {2, 3, 3}, CLEAT_F16, CLEAT_ERR_SHAPE, "of the same type"},
                   {0, 3, {2, 3, 3}, CLEAT_F32, CLEAT_ERR_ARGUMENT, "0 parts"},
                   {9, 3, {2, 3, 3}, CLEAT_F32, CLEAT_ERR_ARGUMENT, "9 parts"}};
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; ++i) {
        cleat_graph *graph = op_graph();
        cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 3, (int64_t[]){2, 3, 4});
        cleat_tensor *y = cleat_input(graph, "y", misfits[i].dtype, misfits[i].rank, misfits[i].shape);
        cleat_tensor *parts[] = {x, y, x, x, x, x, x, x, x};
        assert_fails(parts, misfits[i].n, graph, misfits[i].status, misfits[i].says);
        op_graph_end(graph);
    }
}

static void rejects_uneven_parts(void **state) {
    (void)state;
    static const struct {
        int parts;
        cleat_status status;
        const char *says;
    } misfits[] = {{3, CLEAT_ERR_SHAPE, "multiple of the 3 parts"},
                   {0, CLEAT_ERR_ARGUMENT, "0 parts"},
                   {6, CLEAT_ERR_ARGUMENT, "6 parts"}};
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; ++i) {
        cleat_tensor *parts[8] = {NULL};
        cleat_error error = {0};
        cleat_graph *graph = op_graph();
        cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 2, (int64_t[]){2, 4});
        assert_false(cleat_chunk(graph, x, misfits[i].parts, parts));
        assert_null(parts[0]);
        assert_int_equal(cleat_graph_status(graph, &error), misfits[i].status);
        assert_non_null(strstr(error.text, misfits[i].says));
        op_graph_end(graph);
    }
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(rejects), cmocka_unit_test(rejects_uneven_parts)};
    const op_test tests[] = {test, chunk_test};
    return op_main(tests, 2, extra, 2);
}

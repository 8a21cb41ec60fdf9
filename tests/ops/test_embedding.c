/* Lookup of table rows, and the gradient of the table with each variant. */
/* ctest: device slow oclgrind=1 */
#include "harness.h"

#include "cleat/ops.h"
#include "graph/store.h"

#include <math.h>
#include <string.h>

/* dims: batch, length, width, vocabulary, kind of tokens, 1: row 0 of the table is padding. That row is 0 in
 * the padded cases, so the reference can omit it; its gradient is 0. */
enum { UNIFORM, ONE_TOKEN, SOME_INVALID, MOSTLY_ZERO };

static void build(op_case *c) {
    const int64_t *d = c->dims, shape[] = {d[0], d[1]}, table[] = {d[3], d[2]};
    cleat_tensor *tokens = op_constant(c, "tokens", CLEAT_I32, 2, shape, 0, (double)d[3] - 1);
    cleat_tensor *rows = op_param(c, "table", 2, table, -2, 2);
    op_output(c, d[5] ? cleat_embedding_padded(c->graph, tokens, rows, 0, c->storage)
                      : cleat_embedding(c->graph, tokens, rows, c->storage));
}

static void fill(const op_case *c, int tensor, double *values, int64_t count) {
    for (int64_t k = 0; tensor == 1 && c->dims[5] && k < c->dims[2]; ++k) values[k] = 0;
    for (int64_t i = 0; tensor == 0 && i < count; ++i) {
        if (c->dims[4] == ONE_TOKEN) values[i] = (double)c->dims[3] - 1;
        if (c->dims[4] == SOME_INVALID && i % 3 == 0) values[i] = i % 2 ? -1 : (double)c->dims[3];
        if (c->dims[4] == MOSTLY_ZERO && i % 5) values[i] = 0;
    }
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    int64_t n = c->dims[0] * c->dims[1], width = c->dims[2];
    for (int64_t i = 0; i < n; ++i) {
        bool valid = in[0][i] >= (c->dims[5] ? 1 : 0) && in[0][i] < (double)c->dims[3];
        for (int64_t k = 0; k < width; ++k) out[0][i * width + k] = valid ? in[1][(int64_t)in[0][i] * width + k] : 0;
    }
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    int64_t n = c->dims[0] * c->dims[1], width = c->dims[2];
    for (int64_t i = 0; i < n; ++i) {
        if (in[0][i] < (c->dims[5] ? 1 : 0) || in[0][i] >= (double)c->dims[3]) continue;
        for (int64_t k = 0; k < width; ++k) din[1][(int64_t)in[0][i] * width + k] += dout[0][i * width + k];
    }
}

/* The forward pass is a copy. The gradient is one sequential sum of up to B L numbers of either sign below 1:
 * its partial sums are of size sqrt(B L). */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)tensor;
    double n = (double)(c->dims[0] * c->dims[1]);
    return (compare_tolerance){.scale = is_gradient ? 1 + sqrt(n) : 0, .length = n, .f32_units = is_gradient ? 2 : 0};
}

static const op_row rows[] = {{1, 1, 1, 5},
                              {2, 9, 17, 5, SOME_INVALID},
                              {3, 200, 64, 5},
                              {1, 700, 100, 8, MOSTLY_ZERO},
                              {2, 40, 32, 9},
                              {3, 170, 96, 500, MOSTLY_ZERO},
                              {2, 33, 70, 30, SOME_INVALID},
                              {1, 300, 8, 12, ONE_TOKEN},
                              {2, 30, 24, 6, MOSTLY_ZERO, 1},
                              {2, 50, 40, 20, MOSTLY_ZERO, 1}};

static const op_test test = {.op = "embedding",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .fill = fill,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 4};

/* --- a frozen table: half weights only, with the rows of an f32 table --- */

enum { FROZEN_ROWS = 9, FROZEN_WIDTH = 37, FROZEN_TOKENS = 21 };

static void freeze_table(void *user, const char *name, int rank, cleat_param_rule *rule) {
    (void)user;
    (void)rank;
    rule->frozen = strcmp(name, "table") == 0;
}

static void look_up_frozen(const op_shape *shape, cleat_dtype storage) {
    double values[FROZEN_ROWS * FROZEN_WIDTH], tokens[FROZEN_TOKENS], found[FROZEN_TOKENS * FROZEN_WIDTH];
    const int64_t table_shape[] = {FROZEN_ROWS, FROZEN_WIDTH}, count = FROZEN_TOKENS;
    cleat_store *store;
    cleat_graph *graph;
    op_rig rig;
    assert_int_equal(cleat_store_create(&store, NULL), CLEAT_OK);
    cleat_store_set_rules(store, freeze_table, NULL);
    assert_int_equal(cleat_graph_create(store, "frozen", &graph, NULL), CLEAT_OK);
    cleat_autocast(graph, storage);
    cleat_param(graph, "trained", 1, &count, (cleat_init){0});
    cleat_tensor *table = cleat_param(graph, "table", 2, table_shape, (cleat_init){0});
    cleat_tensor *in = cleat_input(graph, "tokens", CLEAT_I32, 1, &count);
    cleat_tensor *y = cleat_embedding(graph, in, table, storage);
    cleat_retain(graph, y);
    assert_int_equal(cleat_store_arrange(store, NULL), CLEAT_OK);
    assert_true(table->half_only && !cleat_requires_grad(y));
    assert_true(op_rig_open(&rig, graph, shape, NULL, 0));
    for (int i = 0; i < FROZEN_ROWS * FROZEN_WIDTH; ++i) values[i] = compare_round(storage, sin(1.7 * i));
    for (int i = 0; i < FROZEN_TOKENS; ++i) tokens[i] = i % (FROZEN_ROWS + 1) - (i == 3 ? 4 : 0); /* some invalid */
    op_rig_write(&rig, store->half_weights[table->index], values);
    op_rig_write(&rig, in, tokens);
    op_rig_run(&rig, 0, -1);
    op_rig_read(&rig, y, found);
    for (int i = 0; i < FROZEN_TOKENS * FROZEN_WIDTH; ++i) {
        const int token = (int)tokens[i / FROZEN_WIDTH];
        const bool valid = token >= 0 && token < FROZEN_ROWS;
        assert_true(found[i] == (valid ? values[token * FROZEN_WIDTH + i % FROZEN_WIDTH] : 0));
    }
    op_rig_close(&rig);
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
}

static void a_frozen_table_needs_no_f32(void **state) {
    (void)state;
    look_up_frozen(&op_shape_cpu, CLEAT_F16);
    look_up_frozen(&op_shape_cpu, CLEAT_BF16);
    look_up_frozen(&op_shape_gpu, CLEAT_F16);
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(a_frozen_table_needs_no_f32)};
    return op_main(&test, 1, extra, 1);
}

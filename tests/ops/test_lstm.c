/* An LSTM layer against a double-precision reference: every variant, odd sizes, partial blocks and tiles, and
 * the first step, which has no predecessor. */
/* ctest: device slow cost=24 oclgrind=0:f32@12 oclgrind=0:f16 */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* dims: B, L, I, H, which inputs are constants */
enum { BATCH, LENGTH, INPUTS, HIDDEN, CONSTANT };
enum { NOTHING, WEIGHT_HH, ALL_BUT_WEIGHT_HH, PARAMETERS };
enum { X, W_IH, W_HH, B_IH, B_HH };

static cleat_tensor *declare(op_case *c, const char *name, cleat_dtype dtype, int rank, const int64_t *shape,
                             double most, bool constant) {
    if (constant) return op_constant(c, name, dtype, rank, shape, -most, most);
    if (c->dims[CONSTANT] == PARAMETERS)
        return rank == 1 ? op_param(c, name, rank, shape, -most, most) : op_weight(c, name, rank, shape, -most, most);
    return op_input(c, name, dtype, rank, shape, -most, most);
}

/* With these weights some gates saturate, and the recurrence neither dies out nor explodes. */
static void build(op_case *c) {
    const int64_t *d = c->dims, x_shape[] = {d[BATCH], d[LENGTH], d[INPUTS]}, bias = 4 * d[HIDDEN];
    const int64_t ih_shape[] = {4 * d[HIDDEN], d[INPUTS]}, hh_shape[] = {4 * d[HIDDEN], d[HIDDEN]};
    const double ih = 3 / sqrt((double)d[INPUTS]), hh = 2.5 / sqrt((double)d[HIDDEN]);
    bool but_hh = d[CONSTANT] == ALL_BUT_WEIGHT_HH;
    cleat_tensor *x =
        but_hh ? op_constant(c, "x", c->storage, 3, x_shape, -2, 2) : op_input(c, "x", c->storage, 3, x_shape, -2, 2);
    cleat_tensor *w_ih = declare(c, "w_ih", c->storage, 2, ih_shape, ih, but_hh);
    cleat_tensor *w_hh = declare(c, "w_hh", c->storage, 2, hh_shape, hh, d[CONSTANT] == WEIGHT_HH);
    cleat_tensor *b_ih = declare(c, "b_ih", CLEAT_F32, 1, &bias, 0.5, but_hh);
    cleat_tensor *b_hh = declare(c, "b_hh", CLEAT_F32, 1, &bias, 0.5, but_hh);
    op_output(c, cleat_lstm(c->graph, x, w_ih, w_hh, b_ih, b_hh));
}

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

/* Intermediate values of a layer: gates [B, L, 4, H], c [B, L, H]. */
typedef struct layer {
    const int64_t *d;
    const double *x, *w_ih, *w_hh, *b_ih, *b_hh;
    double *h, *gates, *c;
} layer;

static layer layer_of(const op_case *c, const double *const *in, double *h) {
    size_t cells = (size_t)(c->dims[BATCH] * c->dims[LENGTH] * c->dims[HIDDEN]);
    return (layer){.d = c->dims,
                   .x = in[X],
                   .w_ih = in[W_IH],
                   .w_hh = in[W_HH],
                   .b_ih = in[B_IH],
                   .b_hh = in[B_HH],
                   .h = h,
                   .gates = malloc(4 * cells * sizeof(double)),
                   .c = malloc(cells * sizeof(double))};
}

static void layer_free(layer *y) {
    free(y->gates);
    free(y->c);
}

static double product(const layer *y, int64_t at, bool first, int64_t row) {
    const int64_t inputs = y->d[INPUTS], hidden = y->d[HIDDEN];
    double sum = y->b_ih[row] + y->b_hh[row];
    for (int64_t k = 0; k < inputs; ++k) sum += y->x[at * inputs + k] * y->w_ih[row * inputs + k];
    for (int64_t k = 0; !first && k < hidden; ++k) sum += y->h[(at - 1) * hidden + k] * y->w_hh[row * hidden + k];
    return sum;
}

static void run(const layer *y) {
    const int64_t hidden = y->d[HIDDEN];
    for (int64_t at = 0; at < y->d[BATCH] * y->d[LENGTH]; ++at) {
        bool first = at % y->d[LENGTH] == 0;
        for (int64_t j = 0; j < hidden; ++j) {
            double *gate = y->gates + at * 4 * hidden + j;
            for (int g = 0; g < 4; ++g) {
                double z = product(y, at, first, g * hidden + j);
                gate[g * hidden] = g == 2 ? tanh(z) : sigmoid(z);
            }
            double before = first ? 0 : y->c[(at - 1) * hidden + j];
            y->c[at * hidden + j] = gate[hidden] * before + gate[0] * gate[2 * hidden];
            y->h[at * hidden + j] = gate[3 * hidden] * tanh(y->c[at * hidden + j]);
        }
    }
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    layer y = layer_of(c, in, out[0]);
    run(&y);
    layer_free(&y);
}

/* Propagates the gradient of a row of the products at step `at` to all their operands; dh is the gradient of
 * the previous step's h. */
static void pass_on(const layer *y, int64_t at, bool first, int64_t row, double dz, double *const *din, double *dh) {
    const int64_t inputs = y->d[INPUTS], hidden = y->d[HIDDEN];
    for (int64_t k = 0; k < inputs; ++k) {
        if (din[X]) din[X][at * inputs + k] += dz * y->w_ih[row * inputs + k];
        if (din[W_IH]) din[W_IH][row * inputs + k] += dz * y->x[at * inputs + k];
    }
    for (int64_t k = 0; !first && k < hidden; ++k) {
        dh[k] += dz * y->w_hh[row * hidden + k];
        if (din[W_HH]) din[W_HH][row * hidden + k] += dz * y->h[(at - 1) * hidden + k];
    }
    if (din[B_IH]) din[B_IH][row] += dz;
    if (din[B_HH]) din[B_HH][row] += dz;
}

static void step_back(const layer *y, int64_t at, bool first, const double *dy, double *const *din, double *dc,
                      double *dh) {
    const int64_t hidden = y->d[HIDDEN];
    double *arrives = malloc((size_t)hidden * sizeof *arrives);
    for (int64_t j = 0; j < hidden; ++j) arrives[j] = dh[j] + dy[j], dh[j] = 0;
    for (int64_t j = 0; j < hidden; ++j) {
        const double *gate = y->gates + at * 4 * hidden + j;
        const double i = gate[0], f = gate[hidden], g = gate[2 * hidden], o = gate[3 * hidden];
        const double c = tanh(y->c[at * hidden + j]), before = first ? 0 : y->c[(at - 1) * hidden + j];
        const double down = dc[j] + arrives[j] * o * (1 - c * c);
        const double dz[] = {down * g * i * (1 - i), down * before * f * (1 - f), down * i * (1 - g * g),
                             arrives[j] * c * o * (1 - o)};
        for (int k = 0; k < 4; ++k) pass_on(y, at, first, k * hidden + j, dz[k], din, dh);
        dc[j] = down * f;
    }
    free(arrives);
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    const int64_t hidden = c->dims[HIDDEN], length = c->dims[LENGTH], cells = c->dims[BATCH] * length * hidden;
    layer y = layer_of(c, in, malloc((size_t)cells * sizeof(double)));
    double *dc = malloc((size_t)hidden * sizeof *dc), *dh = malloc((size_t)hidden * sizeof *dh);
    run(&y);
    for (int64_t b = 0; b < c->dims[BATCH]; ++b) {
        for (int64_t j = 0; j < hidden; ++j) dc[j] = dh[j] = 0;
        for (int64_t t = length - 1; t >= 0; --t)
            step_back(&y, b * length + t, t == 0, dout[0] + (b * length + t) * hidden, din, dc, dh);
    }
    free(dc);
    free(dh);
    free(y.h);
    layer_free(&y);
}

/* An error of one step propagates through the following steps, which neither damp nor amplify it much: the
 * errors of all steps add up with random sign. The products are in the storage type, and in backward also
 * gates, c and the gradients of the products. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    const double steps = (double)c->dims[LENGTH], sums = (double)(c->dims[INPUTS] + c->dims[HIDDEN]);
    const double samples = (double)c->dims[BATCH];
    if (!is_gradient)
        return (compare_tolerance){.scale = 2, .length = sums * steps, .f32_units = 2, .storage_units = 3};
    const double terms = tensor == X ? 1 : samples * steps; /* of the sum over samples and steps */
    return (compare_tolerance){.scale = 4 * sqrt(terms),
                               .length = sums * steps + terms,
                               .f32_units = 2,
                               .storage_units = 3 * fmin(sqrt(steps), 3)};
}

/* Every number of units is a separate compilation: a few run in all storage types, the others in f32. */
static const op_row rows[] = {
    {2, 3, 3, 5}, {6, 5, 4, 64, WEIGHT_HH}, {33, 3, 2, 5, ALL_BUT_WEIGHT_HH}, {3, 4, 2, 5, PARAMETERS}};
static const op_row rows_f32[] = {
    {3, 3, 2, 16, PARAMETERS},
    {1, 40, 2, 16, PARAMETERS}, /* many steps */
    {5, 3, 5, 67, PARAMETERS},  /* two units per work-item in groups of 64 */
    {600, 2, 1, 16},            /* more blocks of samples than work-items */
    /* inner dimension larger than a panel; two units per work-item in groups of 256 */
    {3, 2, 2, 260},
};

/* For matrix units: groups of 4 and of 8 samples, the last ones partial (2 compute units); one subgroup, an
 * even and an odd number, and the maximum per group; one step, and more than the weight's gradient sums at a
 * time. */
static const op_row rows_half[] = {
    {11, 1, 3, 16, WEIGHT_HH}, {18, 2, 2, 32, ALL_BUT_WEIGHT_HH}, {9, 7, 2, 48}, {5, 3, 2, 128, PARAMETERS}};

/* Whole layers: inputs that fill vectors and panels, and inputs that do not; several panels with both parts. */
static const op_row rows_layer[] = {
    {5, 3, 16, 16, PARAMETERS}, {70, 2, 130, 33, PARAMETERS}, {3, 4, 17, 144}, {600, 2, 1, 16}};

static const op_test tests[] = {
    {.op = "lstm",
     .rows = rows,
     .row_count = sizeof rows / sizeof *rows,
     .build = build,
     .reference = reference,
     .gradient = gradient,
     .tolerance = tolerance,
     .samples = 4},
    {.op = "lstm",
     .title = "lstm, f32",
     .rows = rows_f32,
     .row_count = sizeof rows_f32 / sizeof *rows_f32,
     .build = build,
     .reference = reference,
     .gradient = gradient,
     .tolerance = tolerance,
     .samples = 2,
     .only = 1u << CLEAT_F32},
    {.op = "lstm",
     .title = "lstm, half",
     .rows = rows_half,
     .row_count = sizeof rows_half / sizeof *rows_half,
     .build = build,
     .reference = reference,
     .gradient = gradient,
     .tolerance = tolerance,
     .samples = 2,
     .only = 1u << CLEAT_F16 | 1u << CLEAT_BF16},
    {.op = "lstm_layer",
     .rows = rows,
     .row_count = sizeof rows / sizeof *rows,
     .build = build,
     .reference = reference,
     .gradient = gradient,
     .tolerance = tolerance,
     .samples = 4,
     .wide = true},
    {.op = "lstm_layer",
     .title = "lstm_layer, f32",
     .rows = rows_layer,
     .row_count = sizeof rows_layer / sizeof *rows_layer,
     .build = build,
     .reference = reference,
     .gradient = gradient,
     .tolerance = tolerance,
     .samples = 2,
     .wide = true,
     .only = 1u << CLEAT_F32},
};

/* --- shapes that do not fit ----------------------------------------------------------------------------------- */

static void rejects_misfits(void **state) {
    (void)state;
    static const struct {
        int rank;
        int64_t inputs, rows, units, bias;
        cleat_dtype weight;
        const char *says;
    } misfits[] = {
        {2, 3, 8, 2, 8, CLEAT_F32, "[B, L, I]"},
        {3, 4, 8, 2, 8, CLEAT_F32, "fan_in"},
        {3, 3, 8, 3, 8, CLEAT_F32, "[4H, H]"},
        {3, 3, 12, 3, 8, CLEAT_F32, "[4H, H]"},
        {3, 3, 8, 2, 8, CLEAT_F16, "all of the same type"},
        {3, 3, 8, 2, 9, CLEAT_F32, "the same shape"},
    };
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; ++i) {
        cleat_graph *graph = op_graph();
        const int64_t x_shape[] = {2, 3, 3}, ih[] = {8, misfits[i].inputs}, hh[] = {misfits[i].rows, misfits[i].units};
        cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, misfits[i].rank, x_shape);
        cleat_tensor *w_ih = cleat_input(graph, "w_ih", CLEAT_F32, 2, ih);
        cleat_tensor *w_hh = cleat_input(graph, "w_hh", misfits[i].weight, 2, hh);
        cleat_tensor *b_ih = cleat_input(graph, "b_ih", CLEAT_F32, 1, (int64_t[]){8});
        cleat_tensor *b_hh = cleat_input(graph, "b_hh", CLEAT_F32, 1, &misfits[i].bias);
        assert_null(cleat_lstm(graph, x, w_ih, w_hh, b_ih, b_hh));
        op_graph_refused(graph, CLEAT_ERR_SHAPE, "", misfits[i].says);
    }
}

/* --- memory --------------------------------------------------------------------------------------------------- */

static const cleat_node *find_node(const cleat_graph *graph, const char *op) {
    for (size_t i = 0; i < graph->node_count; ++i)
        if (strcmp(graph->nodes[i]->op->name, op) == 0) return graph->nodes[i];
    fail_msg("no node of op %s", op);
    return NULL;
}

static void assert_same_place(const cleat_plan *plan, const cleat_tensor *a, const cleat_tensor *b) {
    cleat_slab_place x = cleat_plan_place(plan, &plan->layouts[0], a), y = cleat_plan_place(plan, &plan->layouts[0], b);
    assert_int_equal(x.slab, y.slab);
    assert_int_equal(x.offset, y.offset);
}

/* Products, gates and the gradients of the products, 4H elements per step, share one block of memory. */
static void keeps_one_block_of_gates(void **state) {
    (void)state;
    enum { B = 4, L = 5, I = 3, H = 16 };
    cleat_store *store = NULL;
    cleat_graph *graph = NULL;
    cleat_plan *plan = NULL;
    cleat_error error = {0};
    cleat_device_facts facts = op_facts(&op_shape_cpu);
    assert_int_equal(cleat_store_create(&store, &error), CLEAT_OK);
    assert_int_equal(cleat_graph_create(store, "memory", &graph, &error), CLEAT_OK);
    cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 3, (int64_t[]){B, L, I});
    cleat_tensor *w_ih = cleat_param(graph, "w_ih", 2, (int64_t[]){4 * H, I}, (cleat_init){0});
    cleat_tensor *w_hh = cleat_param(graph, "w_hh", 2, (int64_t[]){4 * H, H}, (cleat_init){0});
    cleat_tensor *b_ih = cleat_param(graph, "b_ih", 1, (int64_t[]){4 * H}, (cleat_init){0});
    cleat_tensor *b_hh = cleat_param(graph, "b_hh", 1, (int64_t[]){4 * H}, (cleat_init){0});
    cleat_tensor *h = cleat_lstm(graph, x, w_ih, w_hh, b_ih, b_hh);
    cleat_tensor *dh = cleat_input(graph, "dh", CLEAT_F32, 3, (int64_t[]){B, L, H});
    cleat_backward_from(graph, &h, &dh, 1);
    assert_int_equal(cleat_plan_create(&graph, 1, &facts, &plan, &error), CLEAT_OK);
    const cleat_node *forward = find_node(graph, "lstm"), *backward = find_node(graph, "lstm_grad");
    assert_same_place(plan, forward->in[0], forward->out[0]);
    assert_same_place(plan, forward->out[0], backward->out[0]);
    cleat_plan_destroy(plan);
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(rejects_misfits), cmocka_unit_test(keeps_one_block_of_gates)};
    return op_main(tests, sizeof tests / sizeof *tests, extra, sizeof extra / sizeof *extra);
}

/* A linear layer, an activation and another layer, fused by cleat_graph_fuse: the activation in the epilogue
 * of the first product, its gradient in the epilogue of the second layer's dx. Covers tile edges, split sums,
 * every variant, and which graphs are fused. */
/* ctest: device slow cost=67 oclgrind=0:f32@18 */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* dims: x [ROWS, K], u = x w1^T + bias + residual [ROWS, H], h = f(u), y = h w2^T [ROWS, N]. */
enum { ROWS, K, H, N, GELU, BIAS, RESIDUAL, U_TOO, H_TOO }; /* the last two: u, h are outputs as well */
enum { X, W1, W2 };

static int bias_index(const op_case *c) {
    return c->dims[BIAS] ? 3 : -1;
}
static int residual_index(const op_case *c) {
    return c->dims[RESIDUAL] ? 3 + (int)c->dims[BIAS] : -1;
}

static void build(op_case *c) {
    const int64_t *d = c->dims;
    cleat_tensor *x = op_input(c, "x", c->storage, 2, (int64_t[]){d[ROWS], d[K]}, -1, 1);
    cleat_tensor *w1 = op_input(c, "w1", c->storage, 2, (int64_t[]){d[H], d[K]}, -1, 1);
    cleat_tensor *w2 = op_input(c, "w2", c->storage, 2, (int64_t[]){d[N], d[H]}, -1, 1);
    cleat_tensor *bias = d[BIAS] ? op_param(c, "bias", 1, &d[H], -1, 1) : NULL;
    cleat_tensor *residual =
        d[RESIDUAL] ? op_input(c, "residual", c->storage, 2, (int64_t[]){d[ROWS], d[H]}, -1, 1) : NULL;
    cleat_tensor *u = cleat_linear(c->graph, x, w1, bias, residual);
    cleat_tensor *h = d[GELU] ? cleat_gelu(c->graph, u) : cleat_relu(c->graph, u);
    op_output(c, cleat_linear(c->graph, h, w2, NULL, NULL));
    if (d[U_TOO]) op_output(c, u);
    if (d[H_TOO]) op_output(c, h);
}

/* relu has a corner at 0. With x and w1 multiples of a half, and the bias or residual offset by an eighth, u
 * stays away from it. w1 shrinks as sums grow, which keeps the u of gelu at size 1. */
static void fill(const op_case *c, int tensor, double *values, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        if (tensor == W1 && c->dims[GELU]) values[i] /= sqrt((double)c->dims[K]);
        if (c->dims[GELU] || tensor == W2) continue;
        values[i] = round(2 * values[i]) / 2;
        if (tensor == (c->dims[BIAS] ? bias_index(c) : residual_index(c))) values[i] += 0.125;
    }
}

/* u [ROWS, H] */
static double *sums(const op_case *c, const double *const *in) {
    const int64_t rows = c->dims[ROWS], k = c->dims[K], h = c->dims[H];
    double *u = calloc((size_t)(rows * h), sizeof *u);
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t j = 0; j < h; ++j) {
            double sum = c->dims[BIAS] ? in[bias_index(c)][j] : 0;
            if (c->dims[RESIDUAL]) sum += in[residual_index(c)][r * h + j];
            for (int64_t i = 0; i < k; ++i) sum += in[X][r * k + i] * in[W1][j * k + i];
            u[r * h + j] = sum;
        }
    return u;
}

static double activation(const op_case *c, double u) {
    return c->dims[GELU] ? 0.5 * u * erfc(-u * M_SQRT1_2) : u <= 0 ? 0 : u;
}
static double slope(const op_case *c, double u) {
    const double density = exp(-0.5 * u * u) / sqrt(2 * M_PI);
    return c->dims[GELU] ? 0.5 * erfc(-u * M_SQRT1_2) + u * density : u > 0;
}

static int h_output(const op_case *c) {
    return c->dims[U_TOO] ? 2 : 1;
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    const int64_t rows = c->dims[ROWS], h = c->dims[H], n = c->dims[N];
    double *u = sums(c, in);
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < n; ++i) {
            double sum = 0;
            for (int64_t j = 0; j < h; ++j) sum += activation(c, u[r * h + j]) * in[W2][i * h + j];
            out[0][r * n + i] = sum;
        }
    for (int64_t e = 0; e < rows * h; ++e) {
        if (c->dims[U_TOO]) out[1][e] = u[e];
        if (c->dims[H_TOO]) out[h_output(c)][e] = activation(c, u[e]);
    }
    free(u);
}

static void gradient_of_sum(const op_case *c, const double *const *in, double du, int64_t r, int64_t j,
                            double *const *din) {
    const int64_t k = c->dims[K], h = c->dims[H];
    for (int64_t i = 0; i < k; ++i) {
        din[X][r * k + i] += du * in[W1][j * k + i];
        din[W1][j * k + i] += du * in[X][r * k + i];
    }
    if (c->dims[BIAS]) din[bias_index(c)][j] += du;
    if (c->dims[RESIDUAL]) din[residual_index(c)][r * h + j] += du;
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    const int64_t rows = c->dims[ROWS], h = c->dims[H], n = c->dims[N];
    double *u = sums(c, in);
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t j = 0; j < h; ++j) {
            const int64_t e = r * h + j;
            double dh = c->dims[H_TOO] ? dout[h_output(c)][e] : 0;
            for (int64_t i = 0; i < n; ++i) {
                dh += dout[0][r * n + i] * in[W2][i * h + j];
                din[W2][i * h + j] += dout[0][r * n + i] * activation(c, u[e]);
            }
            gradient_of_sum(c, in, dh * slope(c, u[e]) + (c->dims[U_TOO] ? dout[1][e] : 0), r, j, din);
        }
    free(u);
}

/* A result is a sum of products with u, h, dh or du, which are themselves sums rounded to storage. u grows
 * with the square root of K unless w1 shrinks. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool of_gradient) {
    const int64_t *d = c->dims;
    const double u = d[GELU] ? 2 : 1 + 0.5 * sqrt((double)d[K]), dh = 1 + sqrt((double)d[N]);
    const double longest = (double)(d[K] + d[H] + d[N] + d[ROWS]);
    double scale = tensor == 0 ? 4 * u * sqrt((double)d[H]) : 4 * u;
    if (of_gradient) {
        const double terms = tensor == X ? sqrt((double)d[H]) : tensor == residual_index(c) ? 1 : sqrt((double)d[ROWS]);
        scale = 4 * terms * (tensor == W2 ? u : dh);
    }
    return (compare_tolerance){.scale = scale, .length = longest, .f32_units = 8, .storage_units = 2};
}

static const op_row rows[] = {
    {3, 5, 7, 2, 1, 1},             /* less than a tile */
    {9, 33, 65, 40, 1, 1, 0, 0, 1}, /* h has another consumer: dh arrives in two parts */
    /* u is retained and its gradient has another part: forward is fused, backward is not */
    {21, 8, 64, 17, 0, 1, 0, 1},
    {40, 48, 130, 64, 1, 1, 1}, /* large enough for CLBlast */
    {66, 40, 64, 33, 0, 0, 1},  /* a wide tile with unused rows; the u of relu is not stored */
    {7, 1100, 35, 9, 1},        /* long sums are split: the reduction applies the activation */
    {7, 9, 35, 1100, 0, 1},     /* the same split in dx */
};

static const op_test test = {.op = "linear",
                             .title = "linear and activation",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof *rows,
                             .build = build,
                             .fill = fill,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 3};

/* --- which graphs are fused ----------------------------------------------------------------------------------- */

typedef struct world {
    cleat_store *store;
    cleat_graph *graph;
    cleat_tensor *u, *h;
} world;

/* x [33, 20] -> u [33, 70] -> h -> y [33, 12], with gradients */
static world make(bool gelu, bool keep) {
    world w = {0};
    assert_int_equal(cleat_store_create(&w.store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(w.store, "g", &w.graph, NULL), CLEAT_OK);
    cleat_tensor *x = cleat_input(w.graph, "x", CLEAT_F32, 2, (int64_t[]){33, 20});
    cleat_tensor *w1 = cleat_param(w.graph, "w1", 2, (int64_t[]){70, 20}, (cleat_init){CLEAT_INIT_UNIFORM, 0.3f});
    cleat_tensor *w2 = cleat_param(w.graph, "w2", 2, (int64_t[]){12, 70}, (cleat_init){CLEAT_INIT_UNIFORM, 0.3f});
    cleat_tensor *dy = cleat_input(w.graph, "dy", CLEAT_F32, 2, (int64_t[]){33, 12});
    cleat_require_grad(w.graph, x);
    w.u = cleat_linear(w.graph, x, w1, NULL, NULL);
    w.h = gelu ? cleat_gelu(w.graph, w.u) : cleat_relu(w.graph, w.u);
    cleat_tensor *y = cleat_linear(w.graph, w.h, w2, NULL, NULL);
    cleat_retain(w.graph, y);
    if (keep) cleat_retain(w.graph, w.u);
    cleat_backward_from(w.graph, &y, &dy, 1);
    cleat_retain(w.graph, cleat_gradient(w.graph, x));
    return w;
}

static void destroy(world *w) {
    cleat_graph_destroy(w->graph);
    cleat_store_destroy(w->store);
}

static int count_ops(const cleat_graph *graph, const char *op) {
    int count = 0;
    for (size_t i = 0; i < graph->node_count; ++i) count += strcmp(graph->nodes[i]->op->name, op) == 0;
    return count;
}

/* Backward needs the argument of gelu, which is therefore stored beside its result; the argument of relu is
 * stored only if it is retained. */
static void fuses_both_ways(void **state) {
    (void)state;
    for (int gelu = 0; gelu < 2; ++gelu)
        for (int keep = 0; keep < 2; ++keep) {
            world w = make(gelu, keep);
            size_t before = cleat_graph_nodes(w.graph);
            const cleat_tensor *dh = cleat_gradient(w.graph, w.h);
            assert_non_null(dh);
            cleat_graph_fuse(w.graph);
            assert_int_equal(cleat_graph_nodes(w.graph), before - 2);
            assert_int_equal(count_ops(w.graph, gelu ? "linear_gelu" : "linear_relu"), 1);
            assert_int_equal(count_ops(w.graph, gelu ? "linear_dx_gelu" : "linear_dx_relu"), 1);
            assert_int_equal(count_ops(w.graph, gelu ? "gelu_grad" : "relu_grad"), 0);
            assert_ptr_equal(w.h->producer, w.graph->nodes[0]);
            if (gelu || keep)
                assert_ptr_equal(w.u->producer, w.graph->nodes[0]);
            else
                assert_null(w.u->producer);
            assert_null(dh->producer);
            assert_null(cleat_gradient(w.graph, w.h));
            assert_non_null(cleat_gradient(w.graph, w.u));
            destroy(&w);
        }
}

/* Index of the linear op's variant `name` in its list. */
static int variant_of(const world *w, const char *name) {
    const cleat_variant *variants = w->graph->nodes[0]->op->variants;
    for (int i = 0; variants[i].name; ++i)
        if (strcmp(variants[i].name, name) == 0) return i;
    fail_msg("a linear layer has no variant '%s'", name);
    return -1;
}

/* The values of all retained tensors and of the gradient of w1, with inputs of a fixed pattern. */
static void run(world *w, const op_shape *shape, const char *variant, double *values) {
    op_rig rig;
    cleat_tensor *kept[] = {cleat_graph_find(w->graph, "dx"), cleat_store_grad(w->store, 0)};
    assert_true(op_rig_open(&rig, w->graph, shape, "linear", variant_of(w, variant)));
    cleat_tensor *inputs[] = {cleat_graph_find(w->graph, "x"), cleat_graph_find(w->graph, "dy"),
                              cleat_store_param(w->store, 0), cleat_store_param(w->store, 1)};
    for (int t = 0; t < 4; ++t) {
        int64_t count = cleat_tensor_elements(inputs[t]);
        double *pattern = calloc((size_t)count, sizeof *pattern);
        for (int64_t i = 0; i < count; ++i) pattern[i] = compare_round(CLEAT_F32, (double)(i * 37 % 101) / 101 - 0.5);
        op_rig_write(&rig, inputs[t], pattern);
        free(pattern);
    }
    double *zero = calloc((size_t)cleat_tensor_elements(kept[1]), sizeof *zero);
    op_rig_write(&rig, kept[1], zero);
    free(zero);
    op_rig_run(&rig, 0, -1);
    op_rig_read(&rig, kept[0], values);
    op_rig_read(&rig, kept[1], values + cleat_tensor_elements(kept[0]));
    op_rig_close(&rig);
}

/* In f32, fusion changes no value in any variant. */
static void changes_no_value(void **state) {
    (void)state;
    enum { COUNT = 33 * 20 + 70 * 20 };
    static const struct {
        const op_shape *shape;
        const char *variant;
    } cases[] = {{&op_shape_cpu, "cpu"}, {&op_shape_cpu, "plain"}, {&op_shape_gpu, "clblast"}, {&op_shape_gpu, "gpu"}};
    static double apart[COUNT], fused[COUNT];
    for (int gelu = 0; gelu < 2; ++gelu)
        for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
            if (!op_shape_is_tested(cases[k].shape)) continue;
            world a = make(gelu, false), b = make(gelu, false);
            cleat_graph_fuse(b.graph);
            run(&a, cases[k].shape, cases[k].variant, apart);
            run(&b, cases[k].shape, cases[k].variant, fused);
            for (int i = 0; i < COUNT; ++i)
                if (!(apart[i] == fused[i]))
                    fail_msg("%s, %s, variant %s: value %d is %.9g, fused %.9g", gelu ? "gelu" : "relu",
                             cases[k].shape->name, cases[k].variant, i, apart[i], fused[i]);
            destroy(&a);
            destroy(&b);
        }
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(fuses_both_ways), cmocka_unit_test(changes_no_value)};
    return op_main(&test, 1, extra, 2);
}

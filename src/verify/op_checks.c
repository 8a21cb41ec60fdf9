/* Checks of single operations that a self-check's trajectory does not reach: GEMMs with a split sum or
 * executed by CLBlast, convolutions over many tiles, attention with the queries split among work-groups, the dropout mask, running
 * statistics, embeddings, relative positions, and element counts that do not fill a vector. */
#include "verify/op_checks.h"

#include "cleat/ops.h"
#include "core/memory.h"
#include "core/philox.h"
#include "exec/copy.h"
#include "graph/graph.h"
#include "graph/plan.h"
#include "verify/trajectory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_IN = 5, MAX_OUT = 4 };

/* An op check in a graph. Results are f32 in every storage type. */
typedef struct op_check {
    cleat_graph *graph;
    cleat_tensor *in[MAX_IN], *out[MAX_OUT];
    int n_in, n_out;
} op_check;

typedef struct op_check_class {
    const char *name;
    int64_t rows;
    void (*build)(op_check *p, int64_t rows);
    /* Computes the expected out [n_out], zeroed by the caller, from in [n_in], in the order of `build`. */
    void (*expect)(const op_check *p, int64_t rows, const float *const *in, double *const *out);
} op_check_class;

static cleat_tensor *add_input(op_check *p, const char *name, int rank, const int64_t *shape) {
    cleat_tensor *x = cleat_input(p->graph, name, CLEAT_F32, rank, shape);
    cleat_require_grad(p->graph, x);
    return p->in[p->n_in++] = x;
}

static void add_output(op_check *p, cleat_tensor *y) {
    y = cleat_cast(p->graph, y, CLEAT_F32);
    cleat_retain(p->graph, y);
    p->out[p->n_out++] = y;
}

/* Appends the gradients of inputs 0 to `last`, given the gradient dy of y. */
static void add_gradients(op_check *p, cleat_tensor *y, cleat_tensor *dy, int last) {
    cleat_tensor *arriving = cleat_cast(p->graph, dy, y->dtype);
    cleat_backward_from(p->graph, &y, &arriving, 1);
    for (int i = 0; i <= last; ++i) {
        cleat_tensor *gradient = cleat_gradient(p->graph, p->in[i]);
        cleat_retain(p->graph, gradient);
        p->out[p->n_out++] = gradient;
    }
}

/* --- y = gelu(x w^T + b) -------------------------------------------------------------------------------------- */

enum { WIDTH = 64 };

static void build_product(op_check *p, int64_t rows) {
    const int64_t wide[] = {rows, WIDTH}, square[] = {WIDTH, WIDTH};
    cleat_tensor *x = add_input(p, "x", 2, wide), *w = add_input(p, "w", 2, square), *b = add_input(p, "b", 1, square);
    cleat_tensor *dy = add_input(p, "dy", 2, wide);
    cleat_tensor *y = cleat_gelu(p->graph, cleat_linear(p->graph, x, w, b, NULL)); /* [rows, WIDTH] */
    add_output(p, y);
    add_gradients(p, y, dy, 2);
}

static void expect_product(const op_check *p, int64_t rows, const float *const *in, double *const *out) {
    const float *x = in[0], *w = in[1], *b = in[2], *dy = in[3];
    double *y = out[0], *dx = out[1], *dw = out[2], *db = out[3];
    (void)p;
    for (int64_t i = 0; i < rows; ++i)
        for (int n = 0; n < WIDTH; ++n) {
            double h = b[n];
            for (int k = 0; k < WIDTH; ++k) h += (double)x[i * WIDTH + k] * w[n * WIDTH + k];
            const double share = 0.5 * (1 + erf(h * M_SQRT1_2)), slope = exp(-h * h / 2) * M_SQRT1_2 * M_2_SQRTPI / 2;
            const double dh = dy[i * WIDTH + n] * (share + h * slope);
            y[i * WIDTH + n] = h * share;
            db[n] += dh;
            for (int k = 0; k < WIDTH; ++k) {
                dx[i * WIDTH + k] += dh * w[n * WIDTH + k];
                dw[n * WIDTH + k] += dh * x[i * WIDTH + k];
            }
        }
}

/* --- convolution of 3 x 3 ------------------------------------------------------------------------------------- */

enum { PLANES = 40, IMAGE_WIDTH = 41, TAPS = 3 }; /* planes that fill more than half of every tile but the largest */

static void build_convolution(op_check *p, int64_t rows) {
    const int64_t image[] = {1, rows, IMAGE_WIDTH, PLANES}, kernel[] = {PLANES, TAPS, TAPS, PLANES};
    cleat_tensor *x = add_input(p, "x", 4, image), *w = add_input(p, "w", 4, kernel),
                 *dy = add_input(p, "dy", 4, image);
    cleat_tensor *y = cleat_conv2d(p->graph, x, w, NULL, 1, 1); /* [1, rows, IMAGE_WIDTH, PLANES] */
    add_output(p, y);
    add_gradients(p, y, dy, 1);
}

/* Adds what tap (r, s) of the kernel contributes at one pixel of y; `pixel` is the pixel of x. */
static void expect_tap(const float *const *in, int64_t of, int64_t pixel, int tap, double *const *out) {
    for (int n = 0; n < PLANES; ++n)
        for (int c = 0; c < PLANES; ++c) {
            const int64_t to = of * PLANES + n, from = pixel * PLANES + c,
                          weight = (n * TAPS * TAPS + tap) * PLANES + c;
            out[0][to] += (double)in[0][from] * in[1][weight];
            out[1][from] += (double)in[2][to] * in[1][weight];
            out[2][weight] += (double)in[2][to] * in[0][from];
        }
}

static void expect_convolution(const op_check *p, int64_t rows, const float *const *in, double *const *out) {
    (void)p;
    for (int64_t i = 0; i < rows * IMAGE_WIDTH; ++i)
        for (int tap = 0; tap < TAPS * TAPS; ++tap) {
            const int64_t h = i / IMAGE_WIDTH + tap / TAPS - 1, w = i % IMAGE_WIDTH + tap % TAPS - 1;
            if (h < 0 || h >= rows || w < 0 || w >= IMAGE_WIDTH) continue;
            expect_tap(in, i, h * IMAGE_WIDTH + w, tap, out);
        }
}

/* --- attention ------------------------------------------------------------------------------------------------ */

enum { KEYS = 32, HEAD = 32 };

static void build_attention(op_check *p, int64_t rows) {
    const int64_t many[] = {1, rows, HEAD}, few[] = {1, KEYS, 2 * HEAD};
    cleat_tensor *q = add_input(p, "q", 3, many), *kv = add_input(p, "kv", 3, few), *dy = add_input(p, "dy", 3, many);
    cleat_tensor *y = cleat_cross_attention(p->graph, q, kv, 1); /* [1, rows, HEAD] */
    add_output(p, y);
    add_gradients(p, y, dy, 1);
}

static double inner(const float *a, const float *b) {
    double sum = 0;
    for (int c = 0; c < HEAD; ++c) sum += (double)a[c] * b[c];
    return sum;
}

/* One query; each row of kv holds a key and its value side by side. */
static void expect_query(const float *q, const float *kv, const float *dy, double *y, double *dq, double *dkv) {
    const double softmax_scale = 1 / sqrt((double)HEAD);
    double share[KEYS], sum = 0, mean = 0;
    for (int k = 0; k < KEYS; ++k) sum += share[k] = exp(softmax_scale * inner(q, kv + 2 * HEAD * k));
    for (int k = 0; k < KEYS; ++k) mean += (share[k] /= sum) * inner(dy, kv + 2 * HEAD * k + HEAD);
    for (int k = 0; k < KEYS; ++k) {
        const float *key = kv + 2 * HEAD * k, *value = key + HEAD;
        const double pull = softmax_scale * share[k] * (inner(dy, value) - mean);
        for (int c = 0; c < HEAD; ++c) {
            y[c] += share[k] * value[c];
            dq[c] += pull * key[c];
            dkv[2 * HEAD * k + c] += pull * q[c];
            dkv[2 * HEAD * k + HEAD + c] += share[k] * dy[c];
        }
    }
}

static void expect_attention(const op_check *p, int64_t rows, const float *const *in, double *const *out) {
    (void)p;
    for (int64_t i = 0; i < rows; ++i)
        expect_query(in[0] + i * HEAD, in[1], in[2] + i * HEAD, out[0] + i * HEAD, out[1] + i * HEAD, out[2]);
}

/* --- attention with relative positions ------------------------------------------------------------------------ */

enum { BUCKETS = 8, MID = BUCKETS / 2, LONGEST = 20 };

static void build_disentangled(op_check *p, int64_t rows) {
    const int64_t texts[] = {1, rows, 3 * HEAD}, tables[] = {2 * BUCKETS, 2 * HEAD}, each[] = {1, rows, HEAD};
    const cleat_disentangled_spec spec = {.heads = 1, .buckets = BUCKETS, .max_relative_positions = LONGEST};
    cleat_tensor *qkv = add_input(p, "qkv", 3, texts), *positions = add_input(p, "positions", 2, tables);
    cleat_tensor *dy = add_input(p, "dy", 3, each);
    cleat_tensor *keys = cleat_slice(p->graph, positions, 1, 0, HEAD);
    cleat_tensor *queries = cleat_slice(p->graph, positions, 1, HEAD, 2 * HEAD);
    cleat_tensor *y = cleat_disentangled_attention(p->graph, qkv, keys, queries, NULL, &spec); /* [1, rows, HEAD] */
    add_output(p, y);
    add_gradients(p, y, dy, 1);
}

/* Row of the position keys and queries for a distance. */
static int64_t row_of_distance(int64_t distance) {
    const int64_t far = distance < 0 ? -distance : distance;
    int64_t bucket = far;
    if (far > MID) bucket = MID + (int64_t)ceil(log((double)far / MID) / log((LONGEST - 1.0) / MID) * (MID - 1) - 1e-9);
    bucket = (distance < 0 ? -bucket : bucket) + BUCKETS;
    return bucket < 0 ? 0 : bucket > 2 * BUCKETS - 1 ? 2 * BUCKETS - 1 : bucket;
}

static double disentangled_score(const float *const *in, int64_t i, int64_t j) {
    const float *q = in[0] + i * 3 * HEAD, *k = in[0] + j * 3 * HEAD + HEAD;
    const float *row = in[1] + row_of_distance(i - j) * 2 * HEAD;
    return (inner(q, k) + inner(q, row) + inner(k, row + HEAD)) / sqrt(3.0 * HEAD);
}

/* The pair of query i and key j: its weight, and the gradient of its score times softmax_scale. */
static void expect_pair(const float *const *in, int64_t i, int64_t j, double share, double pull, double *const *out) {
    const float *q = in[0] + i * 3 * HEAD, *k = in[0] + j * 3 * HEAD + HEAD, *v = k + HEAD, *dy = in[2] + i * HEAD;
    const int64_t row = row_of_distance(i - j) * 2 * HEAD;
    double *dq = out[1] + i * 3 * HEAD, *dk = out[1] + j * 3 * HEAD + HEAD, *dv = dk + HEAD;
    for (int c = 0; c < HEAD; ++c) {
        out[0][i * HEAD + c] += share * v[c];
        dq[c] += pull * ((double)k[c] + in[1][row + c]);
        dk[c] += pull * ((double)q[c] + in[1][row + HEAD + c]);
        dv[c] += share * dy[c];
        out[2][row + c] += pull * q[c];
        out[2][row + HEAD + c] += pull * k[c];
    }
}

static void expect_disentangled(const op_check *p, int64_t rows, const float *const *in, double *const *out) {
    (void)p;
    for (int64_t i = 0; i < rows; ++i) {
        const float *dy = in[2] + i * HEAD;
        double sum = 0, mean = 0;
        for (int64_t j = 0; j < rows; ++j) sum += exp(disentangled_score(in, i, j));
        for (int64_t j = 0; j < rows; ++j)
            mean += exp(disentangled_score(in, i, j)) / sum * inner(dy, in[0] + j * 3 * HEAD + 2 * HEAD);
        for (int64_t j = 0; j < rows; ++j) {
            const double share = exp(disentangled_score(in, i, j)) / sum;
            const double change = inner(dy, in[0] + j * 3 * HEAD + 2 * HEAD) - mean;
            expect_pair(in, i, j, share, share * change / sqrt(3.0 * HEAD), out);
        }
    }
}

/* --- dropout -------------------------------------------------------------------------------------------------- */

/* The element count of a sample is no multiple of 4, the number of words per counter. `first` in the key is
 * the number of samples in earlier micro-batches. */
enum { ELEMENTS = 301 };
static const float rate = 0.3f;
static const uint32_t draw[4] = {12345, 678, 9, 3}; /* graph input rng: seed in two words, step, first */

static void build_dropout(op_check *p, int64_t rows) {
    const int64_t shape[] = {rows, ELEMENTS}, four = 4;
    cleat_tensor *x = add_input(p, "x", 2, shape), *residual = add_input(p, "residual", 2, shape);
    cleat_tensor *dy = add_input(p, "dy", 2, shape);
    cleat_tensor *rng = cleat_input(p->graph, "rng", CLEAT_U32, 1, &four);
    p->in[p->n_in++] = rng;
    cleat_tensor *y = cleat_add(p->graph, residual, cleat_dropout(p->graph, x, rng, rate)); /* [rows, ELEMENTS] */
    add_output(p, y);
    add_gradients(p, y, dy, 0);
}

static void expect_dropout(const op_check *p, int64_t rows, const float *const *in, double *const *out) {
    (void)p;
    const uint64_t before = (uint64_t)draw[3] * (uint64_t)((ELEMENTS + 3) / 4);
    const uint32_t threshold = (uint32_t)floor((double)rate * 0x1p32);
    for (int64_t i = 0; i < rows * ELEMENTS; ++i) {
        const uint64_t at = before + (uint64_t)i / 4;
        const uint32_t counter[4] = {(uint32_t)at, (uint32_t)(at >> 32), 0 /* index of the first dropout */, draw[2]};
        uint32_t words[4];
        cleat_philox(counter, draw, words);
        const double factor = words[i % 4] >= threshold ? 1 / (1 - (double)rate) : 0;
        out[0][i] = in[1][i] + factor * in[0][i];
        out[1][i] = factor * in[2][i];
    }
}

/* --- running statistics --------------------------------------------------------------------------------------- */

enum { CHANNELS = 24 };
static const float eps = 1e-3f, momentum = 0.5f;

static void build_batch_norm(op_check *p, int64_t rows) {
    const int64_t shape[] = {rows, CHANNELS}, channels = CHANNELS;
    cleat_tensor *x = add_input(p, "x", 2, shape);
    cleat_tensor *gamma = add_input(p, "gamma", 1, &channels), *beta = add_input(p, "beta", 1, &channels);
    cleat_running_stats running = cleat_running_statistics(p->graph, "running", CHANNELS);
    cleat_tensor *statistics = NULL;
    const cleat_batch_norm_spec spec = {.gamma = gamma, .beta = beta, .eps = eps};
    add_output(p, cleat_batch_norm(p->graph, x, &spec, &statistics)); /* [rows, CHANNELS] */
    cleat_batch_norm_update_running_stats(p->graph, statistics, running, momentum);
    p->out[p->n_out++] = running.mean; /* [CHANNELS] */
    p->out[p->n_out++] = running.var;  /* [CHANNELS] */
}

static void expect_batch_norm(const op_check *p, int64_t rows, const float *const *in, double *const *out) {
    (void)p;
    for (int c = 0; c < CHANNELS; ++c) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < rows; ++i) mean += in[0][i * CHANNELS + c] / (double)rows;
        for (int64_t i = 0; i < rows; ++i) variance += pow(in[0][i * CHANNELS + c] - mean, 2) / (double)rows;
        for (int64_t i = 0; i < rows; ++i)
            out[0][i * CHANNELS + c] =
                (in[0][i * CHANNELS + c] - mean) / sqrt(variance + (double)eps) * in[1][c] + in[2][c];
        const double unbiased = variance * (double)rows / (double)(rows - 1);
        out[1][c] = (double)momentum * mean; /* initial value 0 */
        out[2][c] = 1 - (double)momentum + (double)momentum * unbiased;
    }
}

/* --- casts ---------------------------------------------------------------------------------------------------- */

/* Casts to half storage and back, forward and backward; a graph in f32 is cast to f16 for this check. */
static void build_casts(op_check *p, int64_t rows) {
    cleat_tensor *x = add_input(p, "x", 1, &rows), *dy = add_input(p, "dy", 1, &rows);
    const cleat_dtype half = p->graph->storage == CLEAT_F32 ? CLEAT_F16 : p->graph->storage;
    cleat_tensor *y = cleat_cast(p->graph, cleat_cast(p->graph, x, half), CLEAT_F32); /* [rows] */
    add_output(p, y);
    add_gradients(p, y, dy, 0);
}

static void expect_casts(const op_check *p, int64_t rows, const float *const *in, double *const *out) {
    (void)p;
    for (int64_t i = 0; i < rows; ++i) {
        out[0][i] = in[0][i];
        out[1][i] = in[1][i];
    }
}

/* --- embedding ------------------------------------------------------------------------------------------------ */

/* Where no positional encoding follows at once, which would be a part of the same kernel. The last token is not in the
 * table: its row is zero. */
enum { VOCABULARY = 5, COLUMNS = 24 };

static void build_embedding(op_check *p, int64_t rows) {
    cleat_tensor *table = add_input(p, "table", 2, (int64_t[]){VOCABULARY, COLUMNS});
    cleat_tensor *tokens = p->in[p->n_in++] = cleat_input(p->graph, "tokens", CLEAT_I32, 1, &rows);
    add_output(p, cleat_embedding(p->graph, tokens, table, p->graph->storage)); /* [rows, COLUMNS] */
}

static void expect_embedding(const op_check *p, int64_t rows, const float *const *in, double *const *out) {
    (void)p;
    for (int64_t i = 0; i < rows * COLUMNS; ++i) {
        const int64_t token = (int64_t)in[1][i / COLUMNS];
        if (token < VOCABULARY) out[0][i] = in[0][token * COLUMNS + i % COLUMNS];
    }
}

/* --- embeddings and the head of BERT -------------------------------------------------------------------------- */

/* z = x + table of positions, y = relu(tanh(first row of z)); both have a gradient. */
enum { POSITIONS = 3, EMBEDDED = 8, SAMPLE = POSITIONS * EMBEDDED };

static void build_first_row(op_check *p, int64_t rows) {
    const int64_t texts[] = {rows, POSITIONS, EMBEDDED}, firsts[] = {rows, EMBEDDED};
    cleat_tensor *x = add_input(p, "x", 3, texts), *table = add_input(p, "table", 2, texts + 1);
    cleat_tensor *dz = add_input(p, "dz", 3, texts), *dy = add_input(p, "dy", 2, firsts);
    cleat_tensor *z = cleat_position_embedding(p->graph, x, table, 0);      /* [rows, POSITIONS, EMBEDDED] */
    cleat_tensor *y = cleat_select_row(p->graph, z, NULL, CLEAT_ROW_FIRST); /* [rows, EMBEDDED] */
    y = cleat_relu(p->graph, cleat_tanh(p->graph, y));
    add_output(p, z);
    add_output(p, y);
    if (!z || !y) return;
    cleat_tensor *of[] = {z, y};
    cleat_tensor *arriving[] = {cleat_cast(p->graph, dz, z->dtype), cleat_cast(p->graph, dy, y->dtype)};
    cleat_backward_from(p->graph, of, arriving, 2);
    for (int i = 0; i < 2; ++i) {
        cleat_tensor *gradient = cleat_cast(p->graph, cleat_gradient(p->graph, p->in[i]), CLEAT_F32);
        cleat_retain(p->graph, gradient);
        p->out[p->n_out++] = gradient;
    }
}

static void expect_first_row(const op_check *p, int64_t rows, const float *const *in, double *const *out) {
    (void)p;
    for (int64_t i = 0; i < rows * SAMPLE; ++i) {
        const int64_t at = i % SAMPLE, first = i / SAMPLE * EMBEDDED + at;
        const double z = (double)in[0][i] + in[1][at], y = fmax(tanh(z), 0);
        const double dz = in[2][i] + (at < EMBEDDED && y > 0 ? (1 - y * y) * in[3][first] : 0);
        out[0][i] = z;
        if (at < EMBEDDED) out[1][first] = y;
        out[2][i] = dz;
        out[3][at] += dz;
    }
}

/* --- table of checks ------------------------------------------------------------------------------------------ */

static const op_check_class op_checks[CLEAT_OP_CHECKS] = {
    {"a product", 512, build_product, expect_product}, /* suits CLBlast; the sum is too short to be split */
    {"a product with long sums", 2048, build_product, expect_product},
    {"a convolution", 13, build_convolution, expect_convolution}, /* several blocks of tiles, the last ones partial */
    {"attention", 256, build_attention, expect_attention},
    {"attention with relative positions", 45, build_disentangled, expect_disentangled},
    {"dropout", 8, build_dropout, expect_dropout},
    {"batch norm", 9, build_batch_norm, expect_batch_norm},
    {"casts", 301, build_casts, expect_casts}, /* not a multiple of any vector width */
    {"an embedding", 130, build_embedding, expect_embedding},
    {"embeddings and first row", 130, build_first_row, expect_first_row}, /* the table's gradient is summed in parts */
};

static op_check build(cleat_graph *graph, int index, cleat_dtype storage) {
    op_check p = {.graph = graph};
    cleat_autocast(graph, storage);
    op_checks[index].build(&p, op_checks[index].rows);
    cleat_graph_fuse(graph);
    return p;
}

void cleat_op_check_build(cleat_graph *graph, int index, cleat_dtype storage) {
    build(graph, index, storage);
}

static const double tolerance_f32 = 1e-5;

typedef struct trial {
    cleat_store *store;
    cleat_graph *graph;
    cleat_plan *plan;
    cleat_exec *exec;
    op_check op_check;
    float *in[MAX_IN], *found; /* found: sized for the largest output */
    double *out[MAX_OUT];
} trial;

static void trial_destroy(trial *t) {
    for (int i = 0; i < MAX_IN; ++i) cleat_free(t->in[i]);
    for (int i = 0; i < MAX_OUT; ++i) cleat_free(t->out[i]);
    cleat_free(t->found);
    cleat_exec_destroy(t->exec);
    cleat_plan_destroy(t->plan);
    cleat_graph_destroy(t->graph);
    cleat_store_destroy(t->store);
}

typedef struct ranked {
    int rank;
    bool more;
} ranked;

static const cleat_variant *choose(void *user, const cleat_node *node, const cleat_device_facts *facts) {
    ranked *r = user;
    return cleat_variant_of_rank(node, facts, r->rank, &r->more);
}

static cleat_status allocate(trial *t, cleat_error *error) {
    int64_t largest = 1;
    bool there = true;
    for (int i = 0; i < t->op_check.n_in; ++i)
        there &= !!(t->in[i] = cleat_alloc((size_t)cleat_tensor_elements(t->op_check.in[i]), sizeof(float)));
    for (int i = 0; i < t->op_check.n_out; ++i) {
        const int64_t elements = cleat_tensor_elements(t->op_check.out[i]);
        there &= !!(t->out[i] = cleat_alloc((size_t)elements, sizeof(double)));
        if (elements > largest) largest = elements;
    }
    there &= !!(t->found = cleat_alloc((size_t)largest, sizeof(float)));
    return there ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a self-check");
}

static cleat_status prepare(trial *t, cleat_device *device, int index, cleat_dtype storage, ranked *choice,
                            cleat_error *error) {
    cleat_status status = cleat_store_create(&t->store, error);
    if (status == CLEAT_OK) status = cleat_graph_create(t->store, op_checks[index].name, &t->graph, error);
    if (status != CLEAT_OK) return status;
    t->op_check = build(t->graph, index, storage);
    status = cleat_graph_status(t->graph, error);
    if (status == CLEAT_OK)
        status = cleat_plan_create_with(&t->graph, 1, cleat_device_get_facts(device), choose, choice, &t->plan, error);
    if (status == CLEAT_OK) status = cleat_exec_create(device, t->plan, &t->exec, error);
    return status == CLEAT_OK ? allocate(t, error) : status;
}

/* Tokens, also as numbers in t->in[i]. */
static cleat_status fill_tokens(trial *t, int i, cleat_random *random, cleat_error *error) {
    const cleat_tensor *tokens = t->op_check.in[i];
    int32_t *values = cleat_alloc((size_t)cleat_tensor_elements(tokens), sizeof *values);
    if (!values) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a self-check");
    for (int64_t k = 0; k < cleat_tensor_elements(tokens); ++k) {
        values[k] = (int32_t)cleat_random_below(random, VOCABULARY + 1);
        t->in[i][k] = (float)values[k];
    }
    const cleat_status status = cleat_exec_write_unchecked(t->exec, 0, tokens, values, error);
    cleat_free(values);
    return status;
}

/* Fills the inputs with multiples of 1/32 up to 1, which every storage type represents exactly. */
static cleat_status fill(trial *t, cleat_error *error) {
    cleat_random random = cleat_random_stream(1, 0, 0);
    cleat_status status = CLEAT_OK;
    for (int i = 0; i < t->op_check.n_in && status == CLEAT_OK; ++i) {
        const cleat_tensor *tensor = t->op_check.in[i];
        const bool is_rng = tensor->dtype == CLEAT_U32;
        if (tensor->dtype == CLEAT_I32) {
            status = fill_tokens(t, i, &random, error);
            continue;
        }
        for (int64_t k = 0; k < cleat_tensor_elements(tensor); ++k)
            t->in[i][k] = ((float)cleat_random_below(&random, 65) - 32) / 32;
        status = cleat_exec_write_unchecked(t->exec, 0, tensor, is_rng ? (const void *)draw : t->in[i], error);
    }
    return status;
}

/* Returns the largest difference divided by the largest value; NaN if any difference is NaN. */
static double rel_error(const float *found, const double *expected, int64_t count) {
    double worst = 0, largest = 0;
    for (int64_t i = 0; i < count; ++i) {
        const double difference = fabs(found[i] - expected[i]);
        if (isnan(difference)) return NAN;
        worst = fmax(worst, difference);
        largest = fmax(largest, fabs(expected[i]));
    }
    return worst / largest;
}

static cleat_status compare(trial *t, int index, double tolerance, cleat_verify_report *report, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (int i = 0; i < t->op_check.n_out && status == CLEAT_OK; ++i) {
        const cleat_tensor *tensor = t->op_check.out[i];
        status = cleat_exec_read_unchecked(t->exec, 0, tensor, t->found, error);
        if (status != CLEAT_OK) return status;
        cleat_verification *item = &report->items[report->count++];
        snprintf(item->name, sizeof item->name, "%s: %s", op_checks[index].name, i == 0 ? "y" : tensor->name);
        item->rel_error = rel_error(t->found, t->out[i], cleat_tensor_elements(tensor));
        item->tolerance =
            cleat_is_persistent(tensor) ? tolerance_f32 : tolerance; /* persistent tensors are f32 in all precisions */
        item->ok = item->rel_error <= item->tolerance;
        report->failed += !item->ok;
    }
    return status;
}

static cleat_status check(cleat_device *device, int index, cleat_dtype storage, ranked *choice, double tolerance,
                          cleat_verify_report *report, cleat_error *error) {
    trial t = {0};
    cleat_status status = prepare(&t, device, index, storage, choice, error);
    if (status == CLEAT_OK) status = fill(&t, error);
    if (status == CLEAT_OK) status = cleat_exec_run(t.exec, 0, error);
    if (status == CLEAT_OK)
        op_checks[index].expect(&t.op_check, op_checks[index].rows, (const float *const *)t.in, t.out);
    if (status == CLEAT_OK) status = compare(&t, index, tolerance, report, error);
    trial_destroy(&t);
    return status;
}

cleat_status cleat_verify_ops(cleat_device *device, cleat_dtype storage, int rank, bool *more,
                              cleat_verify_report *report, cleat_error *error) {
    /* Half storage has the tolerance of a trajectory's outputs (verify.c). */
    const double tolerance = storage == CLEAT_F32 ? tolerance_f32 : 16 * cleat_roundoff(storage);
    cleat_verify_report made = {.items = cleat_alloc(CLEAT_OP_CHECKS * MAX_OUT, sizeof *made.items)};
    ranked choice = {.rank = rank};
    if (!made.items) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a self-check");
    cleat_status status = CLEAT_OK;
    for (int i = 0; i < CLEAT_OP_CHECKS && status == CLEAT_OK; ++i)
        status = check(device, i, storage, &choice, tolerance, &made, error);
    if (status != CLEAT_OK) {
        cleat_verify_free(&made);
        return status;
    }
    *report = made;
    *more = choice.more;
    return CLEAT_OK;
}

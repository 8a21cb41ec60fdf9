/* Linear layers whose frozen weight is stored in blocks: y and the gradient of x against double-precision loops over
 * the dequantised values, in every variant that serves them; and which weights get blocks. */
/* ctest: device slow cost=60 */
#include "harness.h"

#include "cleat/ops.h"
#include "compare.h"
#include "core/blocks.h"
#include "exec/copy.h"
#include "graph/store.h"
#include "kept_programs.h"
#include "platform/files.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct layer {
    int64_t rows, k, n;
    bool bias, residual;
} layer;

static const layer layers[] = {
    {1, 64, 1, true, false},     {5, 64, 37, true, true}, /* fewer columns than a tile, no multiple of a vector */
    {70, 128, 67, false, true},                           /* one more than a tile, and a prime */
    {150, 320, 140, true, true},                          /* several tiles, an inner dimension above a panel */
    {9, 1216, 35, false, false},                          /* long sums: k is split; two kinds of scales in NF4 */
};
enum { LAYERS = sizeof layers / sizeof *layers, LONGEST = 150 * 320 + 1216 * 35 };

typedef struct fixture {
    const layer *layer;
    cleat_dtype storage;
    bool tf32; /* products round their operands */
    cleat_store *store;
    cleat_graph *graph;
    cleat_tensor *weight, *x, *bias, *residual, *y, *dy, *dx;
    op_rig rig;
    float w[LONGEST];
    double x_values[LONGEST], b_values[LONGEST], r_values[LONGEST], dy_values[LONGEST];
} fixture;

static cleat_dtype wanted_blocks;

static void freeze_weight(void *user, const char *name, int rank, cleat_param_rule *rule) {
    (void)user, (void)rank;
    rule->frozen = strcmp(name, "trained") != 0;
    rule->blocks = wanted_blocks;
}

static void begin(fixture *f, cleat_dtype blocks, cleat_dtype storage) {
    const int64_t one = 1;
    wanted_blocks = blocks;
    f->tf32 = storage == CLEAT_TF32;
    f->storage = f->tf32 ? CLEAT_F32 : storage;
    assert_int_equal(cleat_store_create(&f->store, NULL), CLEAT_OK);
    cleat_store_set_rules(f->store, freeze_weight, NULL);
    assert_int_equal(cleat_graph_create(f->store, "blocks", &f->graph, NULL), CLEAT_OK);
    if (storage != CLEAT_F32) cleat_autocast(f->graph, storage);
    cleat_param(f->graph, "trained", 1, &one, (cleat_init){0});
}

static void build(fixture *f) {
    const layer *l = f->layer;
    const int64_t x_shape[] = {l->rows, l->k}, w_shape[] = {l->n, l->k}, y_shape[] = {l->rows, l->n};
    f->x = cleat_input(f->graph, "x", f->storage, 2, x_shape);
    f->dy = cleat_input(f->graph, "dy", f->storage, 2, y_shape);
    cleat_require_grad(f->graph, f->x);
    f->weight = cleat_param(f->graph, "weight", 2, w_shape, (cleat_init){0});
    f->bias = l->bias ? cleat_input(f->graph, "bias", CLEAT_F32, 1, &l->n) : NULL;
    f->residual = l->residual ? cleat_input(f->graph, "residual", f->storage, 2, y_shape) : NULL;
    f->y = cleat_linear(f->graph, f->x, f->weight, f->bias, f->residual);
    cleat_retain(f->graph, f->y);
    cleat_backward_from(f->graph, &f->y, &f->dy, 1);
    f->dx = cleat_gradient(f->graph, f->x);
    cleat_retain(f->graph, f->dx);
    assert_int_equal(cleat_store_arrange(f->store, NULL), CLEAT_OK);
}

static void end(fixture *f) {
    cleat_graph_destroy(f->graph);
    cleat_store_destroy(f->store);
}

static double draw(cleat_dtype dtype, double *state) {
    *state = fmod(*state * 997.0 + 0.3819, 1.0);
    return compare_round(dtype, *state * 2 - 1);
}

static void fill(fixture *f, cleat_tensor *tensor, cleat_dtype dtype, double *values, double seed) {
    for (int64_t i = 0; tensor && i < cleat_tensor_elements(tensor); ++i) values[i] = draw(dtype, &seed);
    if (tensor) op_rig_write(&f->rig, tensor, values);
}

/* Writes the weight in two parts, as files are read; f->w is then what the device has. */
static void write_all(fixture *f) {
    const int64_t elements = f->layer->k * f->layer->n, some = elements / 3;
    double state = 0.7;
    for (int64_t i = 0; i < elements; ++i) f->w[i] = (float)(draw(CLEAT_F32, &state) * (1 + (double)(i / 64 % 5)));
    assert_int_equal(cleat_exec_write_part(f->rig.exec, 0, f->weight, 0, some, f->w, NULL), CLEAT_OK);
    assert_int_equal(cleat_exec_write_part(f->rig.exec, 0, f->weight, some, elements - some, f->w + some, NULL),
                     CLEAT_OK);
    assert_int_equal(cleat_exec_read_unchecked(f->rig.exec, 0, f->weight, f->w, NULL), CLEAT_OK);
    fill(f, f->x, f->storage, f->x_values, 0.1);
    fill(f, f->bias, CLEAT_F32, f->b_values, 0.2);
    fill(f, f->residual, f->storage, f->r_values, 0.3);
    fill(f, f->dy, f->storage, f->dy_values, 0.4);
}

/* Operands of matrix units are halves, or are rounded as much (TF32). */
static void expect(fixture *f, cleat_tensor *tensor, const double *want, int64_t length, const char *variant) {
    const int64_t count = cleat_tensor_elements(tensor);
    const compare_tolerance tolerance = {.scale = 5,
                                         .length = (double)length,
                                         .f32_units = 4 + 2 * sqrt((double)length),
                                         .storage_units = strncmp(variant, "mma", 3) == 0 ? sqrt((double)length) : 0};
    double *got = calloc((size_t)count, sizeof *got);
    op_rig_read(&f->rig, tensor, got);
    const int64_t bad = compare_arrays(got, want, count, tolerance, f->storage, f->tf32 ? CLEAT_F16 : f->storage, NULL);
    if (bad >= 0)
        fail_msg("%s %s, %s, %lld x %lld x %lld: %s[%lld] is %g instead of %g", cleat_dtype_name(wanted_blocks),
                 cleat_dtype_name(f->storage), variant, (long long)f->layer->rows, (long long)f->layer->k,
                 (long long)f->layer->n, cleat_tensor_name(tensor), (long long)bad, got[bad], want[bad]);
    free(got);
}

static void check(fixture *f, const char *variant) {
    const layer *l = f->layer;
    double *want = calloc((size_t)(l->rows * (l->n + l->k)), sizeof *want), *dx = want + l->rows * l->n;
    for (int64_t r = 0; r < l->rows; ++r)
        for (int64_t n = 0; n < l->n; ++n) {
            double y = (l->bias ? f->b_values[n] : 0) + (l->residual ? f->r_values[r * l->n + n] : 0);
            for (int64_t k = 0; k < l->k; ++k) {
                const double w = f->w[n * l->k + k];
                y += f->x_values[r * l->k + k] * w;
                dx[r * l->k + k] += f->dy_values[r * l->n + n] * w;
            }
            want[r * l->n + n] = y;
        }
    expect(f, f->y, want, l->k, variant);
    expect(f, f->dx, dx, l->n, variant);
    free(want);
}

/* Returns the number of variants that serve y or dx; checks each. */
static int try_variants(fixture *f, const op_shape *shape) {
    const cleat_device_facts facts = op_facts(shape);
    const cleat_node *forward = f->y->producer, *backward = f->dx->producer;
    int tried = 0;
    const bool verbose = getenv("CLEAT_TEST_VERBOSE") != NULL;
    const char *only = getenv("CLEAT_TEST_VARIANT");
    for (int v = 0; forward->op->variants[v].name; ++v) {
        const cleat_variant *variant = &forward->op->variants[v];
        if (op_variant("linear", v, forward, &facts) != variant && op_variant("linear", v, backward, &facts) != variant)
            continue;
        if (only && strncmp(variant->name, only, strlen(only)) != 0) continue;
        assert_true(op_rig_open(&f->rig, f->graph, shape, "linear", v));
        write_all(f);
        op_rig_run(&f->rig, 0, -1);
        check(f, variant->name);
        if (verbose) print_message("%s\n", variant->name);
        op_rig_close(&f->rig);
        ++tried;
    }
    return tried;
}

/* Rows of `layers` for a device shape and a storage type, as bits. */
static const struct {
    const op_shape *shape;
    cleat_dtype storage;
    unsigned layers;
} cases[] = {
    {&op_shape_cpu, CLEAT_F32, 31},  {&op_shape_cpu, CLEAT_F16, 12},
    {&op_shape_cpu, CLEAT_BF16, 8},  {&op_shape_gpu, CLEAT_F32, 22},
    {&op_shape_gpu, CLEAT_F16, 4},   {&op_shape_gpu, CLEAT_BF16, 2},
    {&op_shape_gpu64, CLEAT_F32, 4}, {&op_shape_gpu64, CLEAT_BF16, 16},
    {&op_shape_gpu, CLEAT_TF32, 0} /* matrix units of NVIDIA: CLEAT_TEST_ROW */
};

static void layers_are_right(cleat_dtype format) {
    const char *row = getenv("CLEAT_TEST_ROW"), *storage = getenv("CLEAT_TEST_STORAGE");
    fixture *f = calloc(1, sizeof *f);
    kept_programs_optimize(false);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c)
        for (int i = 0; i < LAYERS; ++i) {
            const bool chosen = row ? i == atoi(row) : cases[c].layers >> i & 1;
            if (!chosen || !op_shape_is_tested(cases[c].shape)) continue;
            if (storage && strcmp(storage, cleat_dtype_name(cases[c].storage)) != 0) continue;
            f->layer = &layers[i];
            begin(f, format, cases[c].storage);
            build(f);
            assert_non_null(cleat_store_blocks_of(f->store, f->weight));
            assert_true(try_variants(f, cases[c].shape) >= (getenv("CLEAT_TEST_VARIANT") ? 1 : 2));
            end(f);
        }
    kept_programs_optimize(true);
    free(f);
}

static void q8_layers_are_right(void **state) {
    (void)state;
    layers_are_right(CLEAT_Q8);
}

static void nf4_layers_are_right(void **state) {
    (void)state;
    layers_are_right(CLEAT_NF4);
}

static void q4_layers_are_right(void **state) {
    (void)state;
    layers_are_right(CLEAT_Q4);
}

static void half_layers_are_right(void **state) {
    (void)state;
    layers_are_right(CLEAT_HALF);
}

/* --- which weights get blocks --- */

/* Blocks need whole rows of them, and no other reader; the rest is stored as without blocks. */
static void other_weights_stay(void **state) {
    (void)state;
    for (int half = 0; half < 2; ++half) {
        const cleat_dtype storage = half ? CLEAT_F16 : CLEAT_F32;
        fixture f = {.layer = NULL};
        begin(&f, CLEAT_NF4, storage);
        cleat_tensor *x = cleat_input(f.graph, "x", storage, 2, (int64_t[]){4, 64});
        cleat_tensor *odd_x = cleat_input(f.graph, "odd_x", storage, 2, (int64_t[]){4, 96});
        cleat_tensor *alone = cleat_param(f.graph, "alone", 2, (int64_t[]){8, 64}, (cleat_init){0});
        cleat_tensor *odd = cleat_param(f.graph, "odd", 2, (int64_t[]){8, 96}, (cleat_init){0});
        cleat_tensor *shared = cleat_param(f.graph, "shared", 2, (int64_t[]){4, 64}, (cleat_init){0});
        cleat_linear(f.graph, x, alone, NULL, NULL);
        cleat_linear(f.graph, odd_x, odd, NULL, NULL);
        cleat_linear(f.graph, x, shared, NULL, NULL);
        cleat_add(f.graph, shared, shared);
        assert_int_equal(cleat_store_arrange(f.store, NULL), CLEAT_OK);
        assert_non_null(cleat_store_blocks_of(f.store, alone));
        assert_null(cleat_store_blocks_of(f.store, odd));
        assert_null(cleat_store_blocks_of(f.store, shared));
        assert_true(alone->half_only && odd->half_only == (storage == CLEAT_F16) && !shared->half_only);
        assert_int_equal(f.store->flat[CLEAT_FLAT_BLOCK_WEIGHTS].shape[0], 512); /* 256 + 8 + 8 bytes, aligned */
        const cleat_tensor *block = cleat_store_blocks_of(f.store, alone);
        assert_int_equal(cleat_tensor_bytes(block), 8 * 64 / 2 + 8 + 2 * 4);
        end(&f);
    }
}

/* --- a tied table --- */

/* Rows of a table in blocks are its dequantised values, also beside a linear layer that reads it. */
static void look_up(const op_shape *shape, cleat_dtype format, cleat_dtype storage) {
    if (!op_shape_is_tested(shape)) return;
    enum { WORDS = 19, WIDTH = 192, TOKENS = 23 };
    float *values = calloc(WORDS * WIDTH, sizeof *values);
    double *tokens = calloc(TOKENS, sizeof *tokens), *rows = calloc(TOKENS * WIDTH, sizeof *rows);
    fixture f = {.layer = NULL};
    const int64_t shape_of[] = {WORDS, WIDTH}, count = TOKENS;
    begin(&f, format, storage);
    cleat_tensor *table = cleat_param(f.graph, "table", 2, shape_of, (cleat_init){0});
    cleat_tensor *in = cleat_input(f.graph, "tokens", CLEAT_I32, 1, &count);
    cleat_tensor *x = cleat_embedding(f.graph, in, table, storage);
    cleat_tensor *y = cleat_linear(f.graph, x, table, NULL, NULL);
    cleat_retain(f.graph, x);
    cleat_retain(f.graph, y);
    assert_int_equal(cleat_store_arrange(f.store, NULL), CLEAT_OK);
    assert_non_null(cleat_store_blocks_of(f.store, table));
    assert_int_equal(f.store->flat[CLEAT_FLAT_PARAMETERS].shape[0], 64); /* the trained one */
    assert_true(op_rig_open(&f.rig, f.graph, shape, NULL, 0));
    double state = 0.3;
    for (int i = 0; i < WORDS * WIDTH; ++i) values[i] = (float)draw(CLEAT_F32, &state);
    for (int i = 0; i < TOKENS; ++i) tokens[i] = i % (WORDS + 2) - 1; /* -1 and 19 are invalid */
    assert_int_equal(cleat_exec_write_unchecked(f.rig.exec, 0, table, values, NULL), CLEAT_OK);
    assert_int_equal(cleat_exec_read_unchecked(f.rig.exec, 0, table, values, NULL), CLEAT_OK);
    op_rig_write(&f.rig, in, tokens);
    op_rig_run(&f.rig, 0, -1);
    op_rig_read(&f.rig, x, rows);
    for (int i = 0; i < TOKENS * WIDTH; ++i) {
        const int token = (int)tokens[i / WIDTH];
        const bool valid = token >= 0 && token < WORDS;
        const double want = valid ? compare_round(storage, (double)values[token * WIDTH + i % WIDTH]) : 0;
        assert_true(fabs(rows[i] - want) <= fabs(want) * 0x1p-22); /* a scale of NF4 may be rounded once less */
    }
    op_rig_close(&f.rig);
    end(&f);
    free(values);
    free(tokens);
    free(rows);
}

static void tables_may_be_blocks(void **state) {
    (void)state;
    for (cleat_dtype format = CLEAT_Q8; format <= CLEAT_HALF; ++format) {
        look_up(&op_shape_cpu, format, CLEAT_F32);
        look_up(&op_shape_gpu, format, CLEAT_F32);
    }
    look_up(&op_shape_cpu, CLEAT_Q8, CLEAT_F16);
    look_up(&op_shape_cpu, CLEAT_Q8, CLEAT_BF16);
}

/* --- values --- */

static void written_values_are_kept(void **state) {
    (void)state;
    fixture *f = calloc(1, sizeof *f);
    f->layer = &layers[3];
    begin(f, CLEAT_NF4, CLEAT_F32);
    build(f);
    assert_true(op_rig_open(&f->rig, f->graph, &op_shape_cpu, NULL, 0));
    write_all(f);
    const cleat_tensor *blocks = cleat_store_blocks_of(f->store, f->weight);
    const size_t bytes = (size_t)cleat_tensor_bytes(blocks);
    unsigned char *before = calloc(2, bytes), *after = before + bytes;
    cleat_exec_read_unchecked(f->rig.exec, 0, blocks, before, NULL);
    assert_int_equal(cleat_exec_write_unchecked(f->rig.exec, 0, f->weight, f->w, NULL), CLEAT_OK);
    cleat_exec_read_unchecked(f->rig.exec, 0, blocks, after, NULL);
    assert_memory_equal(before, after, bytes);
    cleat_error error = {0};
    f->w[77] = INFINITY;
    assert_int_not_equal(cleat_exec_write_unchecked(f->rig.exec, 0, f->weight, f->w, &error), CLEAT_OK);
    assert_non_null(strstr(error.text, "weight"));
    assert_non_null(strstr(error.text, "not finite"));
    free(before);
    op_rig_close(&f->rig);
    end(f);
    free(f);
}

int main(void) {
    const struct CMUnitTest extra[] = {
        cmocka_unit_test(q8_layers_are_right),    cmocka_unit_test(nf4_layers_are_right),
        cmocka_unit_test(q4_layers_are_right),    cmocka_unit_test(half_layers_are_right),
        cmocka_unit_test(other_weights_stay),     cmocka_unit_test(tables_may_be_blocks),
        cmocka_unit_test(written_values_are_kept)};
    return op_main(NULL, 0, extra, sizeof extra / sizeof *extra);
}

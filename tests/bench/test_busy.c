/* How much of a card the products of a training step keep busy: the groups of each planned launch are
 * assigned to the card's compute units in order, and the last unit ends the product. This model complements
 * that of tiles.c: it shares the tiles' speeds, the number of tiles per unit and the costs of a group, but
 * assigns group by group. Plans and launches are data: no device. */
/* ctest: quick no-memcheck */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/bench.h"
#include "cleat/card.h"
#include "fit/workload.h"
#include "ops/conv/conv.h"
#include "ops/lib/count.h"
#include "ops/linear/linear.h"
#include "platform/files.h"

enum {
    SLOTS_MAX = 256 * 8,
    MULTIPLY_ADDS = 64, /* per clock, of a large tile without matrix units */
    FILLING_ITEMS = 128 /* work-items that keep a compute unit's four schedulers busy */
};

/* In clocks: a group's prologue; a stored element, at 32 bytes per clock; fences and counter of a tile's last
 * group; a batch of 8 vec4s of a part that each of its work-items reads (fitted to an H200). A group alone on
 * its unit waits half as long as it computes. */
static const double prologue = 2000, stored = 0.125, fences = 3500, batch = 650, batch_elements = 32, waits = 1.5;

/* A launch: groups of `tiles` tiles. The first `whole` tiles sum over all of k, the others are split into
 * `count` parts of `depth`. */
typedef struct product {
    cleat_tile tile;
    int64_t m, n, k, tiles, whole, count, depth, resident;
    const char *name;
} product;

/* Times of products in clocks of a compute unit: until the last unit is ready, and the average time in which
 * units multiply. */
typedef struct tally {
    double busy, time;
    int products;
} tally;

static double busy_time(const product *p, int64_t depth) {
    return (double)(p->tile.rows * p->tile.columns) * (double)depth / (MULTIPLY_ADDS * p->tile.speed);
}

/* Assigns every group to the slot with the least load. A unit is ready when all its slots are ready and all
 * their products are computed. Returns the time of the last unit. */
static tally run(const product *p, int64_t units) {
    double load[SLOTS_MAX] = {0}, busy[SLOTS_MAX] = {0}, all = 0, most = 0;
    const double elements = (double)(p->tile.rows * p->tile.columns), store = stored * elements;
    const double fills = (double)min(p->tile.work_group, FILLING_ITEMS) / FILLING_ITEMS;
    const int64_t shared = p->tiles - p->whole, groups = p->whole + shared * p->count, slots = units * p->resident;
    assert_in_range(slots, 1, SLOTS_MAX);
    for (int64_t g = 0; g < groups; ++g) {
        const int64_t split = g < p->whole ? -1 : (g - p->whole) / shared;
        const int64_t depth = split < 0 ? p->k : min(p->depth, p->k - split * p->depth);
        double time = prologue + waits * busy_time(p, depth) / fills + store;
        if (split == p->count - 1 && p->count > 1)
            time += fences + batch * (double)p->count * elements / (double)p->tile.work_group / batch_elements;
        int64_t least = 0;
        for (int64_t s = 1; s < slots; ++s) /* slot s belongs to unit s % units */
            if (load[s] < load[least]) least = s;
        load[least] += time;
        busy[least % units] += busy_time(p, depth) + store;
        all += busy_time(p, depth);
    }
    for (int64_t s = 0; s < slots; ++s) most = fmax(most, fmax(load[s], busy[s]));
    return (tally){.busy = all / (double)units, .time = most, .products = 1};
}

static int64_t define_of(const cleat_launch *launch, const char *name) {
    char word[40];
    snprintf(word, sizeof word, "-D%s=", name);
    const char *at = strstr(launch->options, word);
    return at ? strtoll(at + strlen(word), NULL, 10) : 0;
}

/* Finds the tile that a launch was built with. */
static cleat_tile_kind kind_of(const cleat_launch *launch, const cleat_device_facts *facts) {
    const bool mma = strstr(launch->kernel, "_mma") != NULL;
    for (int kind = mma ? CLEAT_TILE_KINDS : 0; kind < (mma ? CLEAT_TILE_MMA_END : CLEAT_TILE_KINDS); ++kind) {
        const cleat_tile t = cleat_tile_of((cleat_tile_kind)kind, facts);
        if (t.work_group == launch->work_group && t.item_m == define_of(launch, mma ? "BLOCK_M" : "ITEM_M") &&
            t.item_n == define_of(launch, mma ? "BLOCK_N" : "ITEM_N") &&
            t.items_n == define_of(launch, mma ? "SUBGROUPS_N" : "ITEMS_N"))
            return (cleat_tile_kind)kind;
    }
    fail_msg("%s has none of the tiles: %s", launch->kernel, launch->options);
    return CLEAT_TILE_BEST;
}

/* Returns false if the launch is not a tiled product. */
static bool product_of(const cleat_launch *launch, const cleat_device_facts *facts, product *p) {
    const bool linear = !strcmp(launch->kernel, "linear_gpu") || !strcmp(launch->kernel, "linear_mma");
    const bool conv = !strcmp(launch->kernel, "conv_gpu") || !strcmp(launch->kernel, "conv_mma");
    if (launch->kind != CLEAT_LAUNCH_KERNEL || !(linear || conv)) return false;
    const cleat_arg *last = &launch->args[launch->n_args - 1];
    cleat_tile_work work;
    const cleat_tile_kind kind = kind_of(launch, facts);
    *p = (product){
        .tile = cleat_tile_of(kind, facts), .resident = cleat_tile_resident(kind, facts), .name = launch->node->name};
    if (linear) {
        const cleat_gemm gemm = cleat_linear_gemm(launch->node);
        work = (cleat_tile_work){.gemms = 1, .m = gemm.m, .n = gemm.n, .k = gemm.k};
        p->depth = last[-2].value.i32;
        p->whole = last[-1].value.i32;
    } else {
        const cleat_conv c = cleat_conv_of(launch->node);
        work = cleat_conv_tile_work(&c, p->tile.step);
        p->depth = last[-1].value.i32 * p->tile.step;
    }
    p->m = work.m, p->n = work.n, p->k = work.k;
    p->tiles = work.gemms * ceil_div(work.m, p->tile.rows) * ceil_div(work.n, p->tile.columns);
    p->depth = min(p->depth, p->k);
    p->count = ceil_div(p->k, p->depth);
    const int64_t groups = (int64_t)(launch->global[0] / launch->local[0]);
    if (p->whole == p->tiles) p->count = 1;
    assert_int_equal(groups, p->whole + (p->tiles - p->whole) * p->count);
    return true;
}

static void add_graph(const cleat_plan *plan, const cleat_work_graph *graph, tally *t) {
    const cleat_layout *layout = &plan->layouts[graph->index];
    const bool verbose = getenv("CLEAT_BUSY") != NULL; /* prints each product */
    cleat_error error = {0};
    cleat_binder binder;
    cleat_binder_init(&binder, &plan->facts);
    for (size_t i = 0; i < layout->node_count; ++i)
        if (layout->variants[i] && cleat_bind_node(layout->variants[i], layout->graph->nodes[i], &binder, &error))
            fail_msg("%s", error.text);
    for (size_t i = 0; i < binder.count; ++i) {
        product p;
        if (!product_of(&binder.launches[i], &plan->facts, &p)) continue;
        const tally one = run(&p, plan->facts.compute_units);
        t->busy += one.busy;
        t->time += one.time;
        ++t->products;
        if (verbose)
            print_message(
                "    %-36s %5ld x %4ld x %6ld in %3ld x %3ld: %4ld tiles, %4ld whole, others in %2ld parts: %3.0f "
                "%% of %.3g M\n",
                p.name, (long)p.m, (long)p.n, (long)p.k, (long)p.tile.rows, (long)p.tile.columns, (long)p.tiles,
                (long)p.whole, (long)p.count, 100 * one.busy / one.time, one.time / 1e6);
    }
    cleat_binder_clear(&binder);
}

/* The products of one micro-batch, forward and backward. */
static tally products_of(const char *workload, cleat_precision precision, const cleat_device_facts *facts) {
    cleat_bench_network network;
    cleat_workload *work = NULL;
    cleat_error error = {0};
    tally t = {.products = 0};
    if (cleat_bench_model_open(workload, precision, &network, &error)) fail_msg("%s", error.text);
    const cleat_bucket bucket = {
        .length = network.length, .micro_batch_size = network.batch, .global_batch_size = network.batch};
    const cleat_workload_spec spec = {.facts = facts, .model = network.model, .buckets = &bucket, .n_buckets = 1};
    if (cleat_workload_create(&spec, &work, &error)) fail_msg("%s: %s", workload, error.text);
    add_graph(work->plan, &work->train[0], &t);
    cleat_workload_destroy(work);
    cleat_bench_model_close(&network);
    return t;
}

enum { CARDS = 4 };
static const char *const cards[CARDS] = {"t4", "v100_16", "a100_40", "h100"};
static const char *const precisions[] = {"f32", "f16"};

typedef struct limits {
    const char *workload;
    double most[2][CARDS]; /* million clocks of a compute unit: the current number plus half a percent */
} limits;

static bool is_quick(const limits *row, int half, size_t c) {
    cleat_card card;
    cleat_error error = {0};
    if (cleat_card_open(cards[c], &card, &error)) fail_msg("%s", error.text);
    const tally t = products_of(row->workload, half ? CLEAT_PRECISION_F16 : CLEAT_PRECISION_F32, &card.facts);
    assert_true(t.products > 0 && t.busy > 0 && t.busy <= t.time);
    print_message("%-12s %s %-8s %3d products, busy %3.0f %% of %.4g M\n", row->workload, precisions[half], cards[c],
                  t.products, 100 * t.busy / t.time, t.time / 1e6);
    if (t.time / 1e6 <= row->most[half][c]) return true;
    print_error("%s in %s on %s: more than %g M\n", row->workload, precisions[half], cards[c], row->most[half][c]);
    return false;
}

/* The limits must not grow: lower them with the numbers. */
static void products_keep_a_card_busy(void **state) {
    static const limits rows[] = {{"W1_B2L512", {{5.272, 2.814, 2.398, 2.078}, {1.4, 1.026, 0.6483, 0.6171}}},
                                  {"W1_B1L1200", {{6.167, 3.346, 2.889, 2.394}, {1.48, 1.057, 0.6689, 0.6407}}},
                                  {"W2", {{4.365, 2.548, 2.034, 1.723}, {1.173, 0.8034, 0.5286, 0.5024}}},
                                  {"W3", {{1.516, 0.8307, 0.6522, 0.5664}, {0.3988, 0.2511, 0.1525, 0.1396}}},
                                  {"W4", {{0.3514, 0.2249, 0.2055, 0.1979}, {0.1537, 0.1321, 0.1053, 0.1053}}},
                                  {"W5_64", {{3.548, 2.131, 1.819, 1.793}, {1.227, 0.9975, 0.7619, 0.7686}}},
                                  {"W5_224", {{10.18, 5.489, 4.503, 3.834}, {2.747, 1.75, 1.102, 1.054}}},
                                  {"W6_segformer", {{2.722, 2.634, 2.616, 2.609}, {1.463, 1.454, 1.104, 1.104}}},
                                  {"W6_temporal", {{0.8483, 0.7505, 0.7445, 0.7445}, {0.3837, 0.3861, 0.3078, 0.3078}}},
                                  {"W7_bert_base", {{98.53, 50.55, 37.85, 31.31}, {18.44, 9.745, 4.427, 3.87}}},
                                  {"W7_minilm", {{46.4, 24.02, 17.76, 14.88}, {8.901, 4.891, 2.086, 1.852}}},
                                  {"W8_resnet50", {{46.42, 23.98, 18.56, 15.53}, {10.5, 6.216, 3.418, 3.122}}},
                                  {"W9_vit_s16", {{41.03, 20.92, 16.06, 13.27}, {8.226, 4.702, 2.519, 2.396}}}};
    int failures = 0;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        for (int half = 0; half < 2; ++half)
            for (size_t c = 0; c < CARDS; ++c)
                if (!is_quick(&rows[i], half, c)) ++failures;
    assert_int_equal(failures, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(products_keep_a_card_busy)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* How much of a card the products of a training step keep busy: the groups of each launch, as the plan has them, are given to
 * the card's compute units one after the other, and the unit that is ready last ends the product. A model beside that of tiles.c, which
 * shares only the tiles' sizes and speeds with the choice of tiles. Plans and launches are data: no device. */
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

enum {
    UNITS_MAX = 256,
    FILLING_ITEMS = 128 /* work-items that keep a compute unit's four schedulers busy */
};

/* Cost of the parts of a split k, in multiply-adds of a compute unit for each element (64 a clock): a part is written through
 * the L2 cache and read by one group, 32 bytes a clock and unit each; and for each group that is the last of a tile, the
 * fences and the counter, about 1000 clocks. */
static const double part_written = 8, part_read = 8, last_group = 64e3;

/* A launch: groups of `tiles` tiles. The first `whole` sum over all of k, the others are cut in `count` parts of `depth`. */
typedef struct product {
    cleat_tile tile;
    int64_t m, n, k, tiles, whole, count, depth;
    const char *name;
} product;

/* The times of products, in multiply-adds of a compute unit: until the last unit is ready, and how long the units multiply on
 * average, prologues and epilogues of groups included, parts of a split k not. */
typedef struct tally {
    double busy, time;
    int products;
} tally;

static double time_of_group(const product *p, int64_t depth) {
    return (double)(p->tile.rows * p->tile.columns) * ((double)depth + p->tile.prologue_epilogue) / p->tile.speed;
}

/* Gives every group to the unit with the least load. The time is the largest load. */
static tally run(const product *p, int64_t units) {
    double load[UNITS_MAX] = {0}, longest = 0, busy = 0;
    const double elements = (double)(p->tile.rows * p->tile.columns);
    const int64_t shared = p->tiles - p->whole, groups = p->whole + shared * p->count;
    assert_in_range(units, 1, UNITS_MAX);
    for (int64_t g = 0; g < groups; ++g) {
        const int64_t split = g < p->whole ? -1 : (g - p->whole) / shared;
        const int64_t depth = split < 0 ? p->k : min(p->depth, p->k - split * p->depth);
        double time = time_of_group(p, depth);
        busy += time;
        if (split >= 0 && p->count > 1) time += part_written * elements;
        if (split == p->count - 1 && p->count > 1) time += part_read * elements * (double)p->count + last_group;
        if (time > longest) longest = time;
        int64_t least = 0;
        for (int64_t u = 1; u < units; ++u)
            if (load[u] < load[least]) least = u;
        load[least] += time;
    }
    double most = longest * max(FILLING_ITEMS / p->tile.work_group, 1);
    for (int64_t u = 0; u < units; ++u)
        if (load[u] > most) most = load[u];
    return (tally){.busy = busy / (double)units, .time = most, .products = 1};
}

static int64_t define_of(const cleat_launch *launch, const char *name) {
    char word[40];
    snprintf(word, sizeof word, "-D%s=", name);
    const char *at = strstr(launch->options, word);
    return at ? strtoll(at + strlen(word), NULL, 10) : 0;
}

/* The tile with which a launch was built. */
static cleat_tile tile_of(const cleat_launch *launch, const cleat_device_facts *facts) {
    const bool mma = strstr(launch->kernel, "_mma") != NULL;
    for (int kind = mma ? CLEAT_TILE_KINDS : 0; kind < (mma ? CLEAT_TILE_MMA_END : CLEAT_TILE_KINDS); ++kind) {
        const cleat_tile t = cleat_tile_of((cleat_tile_kind)kind, facts);
        if (t.work_group == launch->work_group && t.item_m == define_of(launch, mma ? "BLOCK_M" : "ITEM_M") &&
            t.item_n == define_of(launch, mma ? "BLOCK_N" : "ITEM_N") &&
            t.items_n == define_of(launch, mma ? "SUBGROUPS_N" : "ITEMS_N"))
            return t;
    }
    fail_msg("%s has none of the tiles: %s", launch->kernel, launch->options);
    return (cleat_tile){0};
}

/* False: no product in tiles. */
static bool product_of(const cleat_launch *launch, const cleat_device_facts *facts, product *p) {
    const bool linear = !strcmp(launch->kernel, "linear_gpu") || !strcmp(launch->kernel, "linear_mma");
    const bool conv = !strcmp(launch->kernel, "conv_gpu") || !strcmp(launch->kernel, "conv_mma");
    if (launch->kind != CLEAT_LAUNCH_KERNEL || !(linear || conv)) return false;
    const cleat_arg *last = &launch->args[launch->n_args - 1];
    cleat_tile_work work;
    *p = (product){.tile = tile_of(launch, facts), .name = launch->node->name};
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
    double most[2][CARDS]; /* million multiply-adds of a compute unit: half a percent more than there is now */
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
    static const limits rows[] = {{"W1_B2L512", {{405, 213, 164, 142}, {98.6, 63.7, 55.1, 46.4}}},
                                  {"W1_B1L1200", {{436, 233, 194, 160}, {104, 66.2, 61.6, 54.7}}},
                                  {"W2", {{306, 172, 141, 114}, {83.6, 51.1, 46.1, 36.7}}},
                                  {"W3", {{109, 56.8, 46.2, 38.9}, {32.5, 18.8, 15.4, 12.9}}},
                                  {"W4", {{25.4, 15.9, 13.6, 12.4}, {8.11, 6.66, 6.42, 6.08}}},
                                  {"W5_64", {{250, 149, 126, 112}, {81.6, 55.7, 51.8, 48.4}}},
                                  {"W5_224", {{702, 374, 287, 254}, {204, 121, 95.6, 88.3}}},
                                  {"W6_segformer", {{150, 138, 137, 136}, {72.6, 70.0, 69.7, 69.3}}},
                                  {"W6_temporal", {{49.4, 39.1, 40.3, 37.8}, {20.6, 19.1, 19.0, 18.8}}},
                                  {"W7_bert_base", {{6590, 3394, 2576, 2144}, {1283, 713, 535, 509}}},
                                  {"W7_minilm", {{3127, 1621, 1204, 1003}, {634, 350, 247, 232}}},
                                  {"W8_resnet50", {{3183, 1646, 1241, 1034}, {800, 448, 340, 310}}},
                                  {"W9_vit_s16", {{2740, 1421, 1098, 990}, {559, 325, 289, 267}}}};
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

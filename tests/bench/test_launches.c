/* Counts and names the launches of a training step on a T4. With a slow CPU core, each takes 5 to 10
 * microseconds regardless of its work. The limits are the current numbers and must not grow: lower them with
 * the number. The aim is 110 (W1) and 25 (W4). Also limits how much memory one or a few work-groups read
 * while the rest of the card idles. Plans and launches are data: no device. */
/* ctest: quick */
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
#include "graph/launch.h"
#include "lib/shared_numbers.clh"
#include "ops/lib/count.h"

enum { KINDS = 64 };
static const char *const names[] = {"f32", "f16"};

typedef struct tally {
    const char *names[KINDS];
    int counts[KINDS];
    int kinds, total, tails;
} tally;

static void add(tally *t, const char *name) {
    int k = 0;
    while (k < t->kinds && strcmp(t->names[k], name) != 0) ++k;
    assert_true(k < KINDS);
    if (k == t->kinds) t->names[t->kinds++] = name;
    ++t->counts[k];
    ++t->total;
}

/* --- memory that few groups read alone --- */

/* A group reads 256 KiB in 5 to 10 microseconds, about the cost of a launch. */
enum { FEW_GROUPS = 8, MAX_BYTES = 256 << 10 };

static int64_t groups_of(const cleat_launch *launch) {
    int64_t groups = 1;
    for (int i = 0; i < launch->dims; ++i) groups *= (int64_t)(launch->global[i] / launch->local[i]);
    return groups;
}

/* Bytes of the node's workspace from `offset` to the next offset that any launch of the node uses. */
static int64_t workspace_bytes(const cleat_plan *plan, const cleat_layout *layout, const cleat_binder *binder,
                               const cleat_node *node, int64_t offset) {
    int64_t end = layout->variants[node->index]->workspace(node, &plan->facts);
    for (size_t i = 0; i < binder->count; ++i)
        for (int k = 0; k < binder->launches[i].n_args && binder->launches[i].node == node; ++k) {
            const cleat_arg *arg = &binder->launches[i].args[k];
            if (arg->kind == CLEAT_ARG_WORKSPACE && arg->offset > offset && arg->offset < end) end = arg->offset;
        }
    return end - offset;
}

/* Launches whose arguments are larger than the memory they touch, or that another test covers. */
static bool is_exception(const cleat_launch *launch) {
    static const char *const kernels[] = {
        "linear_gpu",
        "linear_mma",
        "conv_gpu",
        "conv_mma", /* products: bench.busy */
        "prepend_token_write",
        "prepend_token_sum",             /* one row of each sample */
        "depthwise_conv2d_weight_total", /* the bias elements of each part */
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; ++i)
        if (strcmp(launch->kernel, kernels[i]) == 0) return true;
    return false;
}

/* Whether a few groups, or the last group alone (last_group.clh), touch more than MAX_BYTES. */
static bool is_tail(const cleat_plan *plan, const cleat_layout *layout, const cleat_binder *binder,
                    const cleat_launch *launch) {
    const int64_t groups = groups_of(launch);
    double tensors = 0, workspace = 0, alone = 0;
    bool has_counters = false;
    if (launch->kind == CLEAT_LAUNCH_SGEMM || is_exception(launch)) return false;
    for (int i = 0; i < launch->n_args; ++i) {
        const cleat_arg *arg = &launch->args[i];
        if (arg->kind == CLEAT_ARG_TENSOR && arg->tensor) tensors += (double)cleat_tensor_bytes(arg->tensor);
        if (arg->kind == CLEAT_ARG_WORKSPACE)
            workspace += (double)workspace_bytes(plan, layout, binder, launch->node, arg->offset);
        if (arg->kind == CLEAT_ARG_COUNTERS) has_counters = true;
    }
    const double cost = cleat_node_cost(launch->node).bytes; /* less if only a part is read */
    if (groups < FEW_GROUPS) alone = (tensors < cost ? tensors : cost) + workspace;
    if (has_counters && groups >= FEW_GROUPS) alone = workspace;
    if (has_counters && strcmp(launch->kernel, "layer_norm_backward") == 0) /* sums of one set or of all sets */
        alone = workspace / (double)groups * (double)max(min(groups, LAYER_NORM_SET), ceil_div(groups, LAYER_NORM_SET));
    if (alone <= MAX_BYTES) return false;
    print_error("%s of %s: %.0f KiB %s\n", launch->kernel, launch->node->name, alone / 1024,
                groups < FEW_GROUPS ? "by a few groups" : "by one group");
    return true;
}

/* --- launches of a step --- */

static void count_graph(const cleat_plan *plan, const cleat_work_graph *graph, tally *t) {
    const cleat_layout *layout = &plan->layouts[graph->index];
    cleat_error error = {0};
    cleat_binder binder;
    cleat_binder_init(&binder, &plan->facts);
    for (size_t i = 0; i < layout->node_count; ++i)
        if (layout->variants[i] && cleat_bind_node(layout->variants[i], layout->graph->nodes[i], &binder, &error))
            fail_msg("%s", error.text);
    for (size_t i = 0; i < binder.count; ++i)
        add(t, binder.launches[i].kind == CLEAT_LAUNCH_SGEMM ? "CLBlast" : binder.launches[i].kernel);
    for (size_t i = 0; i < binder.count; ++i) t->tails += is_tail(plan, layout, &binder, &binder.launches[i]);
    cleat_binder_clear(&binder);
    if (layout->input_bytes > 0) add(t, "copy of inputs");
}

/* Forward and backward of one micro-batch, and the update. */
static tally launches_of(const char *workload, cleat_precision precision, const cleat_device_facts *facts) {
    cleat_bench_network network;
    cleat_workload *work = NULL;
    cleat_error error = {0};
    tally t = {.total = 0};
    if (cleat_bench_model_open(workload, precision, &network, &error)) fail_msg("%s", error.text);
    const cleat_bucket bucket = {
        .length = network.length, .micro_batch_size = network.batch, .global_batch_size = network.batch};
    const cleat_workload_spec spec = {.facts = facts, .model = network.model, .buckets = &bucket, .n_buckets = 1};
    if (cleat_workload_create(&spec, &work, &error)) fail_msg("%s: %s", workload, error.text);
    count_graph(work->plan, &work->train[0], &t);
    count_graph(work->plan, &work->update, &t);
    cleat_workload_destroy(work);
    cleat_bench_model_close(&network);
    return t;
}

static void print_tally(const char *workload, const char *precision, const tally *t) {
    print_message("%s in %s: %d launches\n", workload, precision, t->total);
    for (int k = 0; k < t->kinds; ++k) print_message("  %3d %s\n", t->counts[k], t->names[k]);
}

static void a_step_has_few_launches(void **state) {
    static const struct {
        const char *workload;
        int most[2]; /* f32, f16 */
    } rows[] = {{"W1_B2L512", {105, 110}},
                {"W4", {19, 22}},
                {"W5_64", {154, 156}},
                {"W8_resnet50", {385, 387}},
                {"W2", {89, 95}}};
    cleat_card t4;
    cleat_error error = {0};
    (void)state;
    if (cleat_card_open("t4", &t4, &error)) fail_msg("%s", error.text);
    int failures = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        for (int p = 0; p < 2; ++p) {
            const tally t = launches_of(rows[i].workload, p ? CLEAT_PRECISION_F16 : CLEAT_PRECISION_F32, &t4.facts);
            print_tally(rows[i].workload, names[p], &t);
            if (t.total <= rows[i].most[p]) continue;
            print_error("%s in %s: %d launches, more than %d\n", rows[i].workload, names[p], t.total, rows[i].most[p]);
            ++failures;
        }
    assert_int_equal(failures, 0);
}

static void no_few_groups_walk_much_memory(void **state) {
    static const char *const cards[] = {"t4", "a100_40", "h100", "h200"};
    cleat_error error = {0};
    cleat_bench_entry entry;
    int failures = 0, workloads = 0;
    (void)state;
    for (size_t c = 0; c < sizeof cards / sizeof *cards; ++c) {
        cleat_card card;
        if (cleat_card_open(cards[c], &card, &error)) fail_msg("%s", error.text);
        for (size_t i = 0; cleat_bench_model(i, &entry); ++i, ++workloads)
            for (int p = 0; p < 2; ++p) {
                const tally t =
                    launches_of(entry.info.name, p ? CLEAT_PRECISION_F16 : CLEAT_PRECISION_F32, &card.facts);
                if (t.tails > 0) print_error("%s in %s on %s: %d\n", entry.info.name, names[p], cards[c], t.tails);
                failures += t.tails;
            }
    }
    assert_int_equal(workloads, 13 * 4);
    assert_int_equal(failures, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_step_has_few_launches),
                                       cmocka_unit_test(no_few_groups_walk_much_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

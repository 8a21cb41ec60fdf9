/* The launches of a training step, counted and named, for a T4. A card on slow CPU cores spends 5 to 10 microseconds on each
 * of them, whatever it computes. The limits are what there is now and must not grow: lower them with the number. The aim is
 * 110 (W1) and 25 (W4). Plans and launches are data: no device is needed. */
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

enum { KINDS = 64 };

typedef struct tally {
    const char *names[KINDS];
    int counts[KINDS];
    int kinds, total;
} tally;

static void add(tally *t, const char *name) {
    int k = 0;
    while (k < t->kinds && strcmp(t->names[k], name) != 0) ++k;
    assert_true(k < KINDS);
    if (k == t->kinds) t->names[t->kinds++] = name;
    ++t->counts[k];
    ++t->total;
}

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
    cleat_binder_clear(&binder);
    if (layout->input_bytes > 0) add(t, "copy of inputs");
}

/* One micro-batch, forward and backward, and the update. */
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
                {"W5_64", {214, 216}},
                {"W8_resnet50", {544, 546}},
                {"W2", {89, 95}}};
    static const char *const names[] = {"f32", "f16"};
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_step_has_few_launches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

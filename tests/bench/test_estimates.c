/* Estimates of cleat plan against measured steps: the benchmark workloads on an NVIDIA H200 (27 November
 * 2026, driver 580.159.04, cleat efdff57; cleat bench, medians). Plans need no device. */
/* ctest: device */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/bench.h"
#include "cleat/card.h"
#include "fit/estimate.h"
#include "fit/workload.h"

#include <math.h>
#include <string.h>

typedef struct timed {
    const char *workload;
    double ms[2]; /* f32, f16 */
} timed;

static const timed h200[] = {
    {"W1_B2L512", {3.747, 2.138}},   {"W1_B1L1200", {5.143, 2.56}},    {"W2", {3.027, 1.852}},
    {"W3", {4.907, 4.596}},          {"W4", {0.3514, 0.264}},          {"W5_64", {3.319, 2.452}},
    {"W5_224", {4.85, 3.437}},       {"W6_segformer", {5.371, 3.885}}, {"W6_temporal", {1.592, 1.165}},
    {"W7_bert_base", {22.6, 15.81}}, {"W7_minilm", {12, 8.272}},       {"W8_resnet50", {16.04, 11.52}},
    {"W9_vit_s16", {15.97, 9.73}}};

/* A training step: forward, backward and update, as cleat bench times it. */
static double estimated_ms(const char *workload, cleat_precision precision, const cleat_card *card) {
    cleat_bench_network network;
    cleat_workload *work = NULL;
    cleat_error error = {0};
    double step, update;
    if (cleat_bench_model_open(workload, precision, &network, &error)) fail_msg("%s", error.text);
    const cleat_bucket bucket = {
        .length = network.length, .micro_batch_size = network.batch, .global_batch_size = network.batch};
    const cleat_workload_spec spec = {
        .facts = &card->facts, .model = network.model, .buckets = &bucket, .n_buckets = 1};
    if (cleat_workload_create(&spec, &work, &error) ||
        cleat_estimate_graph(work->plan, work->train[0].index, &card->rates, &step, &error) ||
        cleat_estimate_graph(work->plan, work->update.index, &card->rates, &update, &error))
        fail_msg("%s: %s", workload, error.text);
    cleat_workload_destroy(work);
    cleat_bench_model_close(&network);
    return 1e3 * (step + update);
}

/* At most a quarter above the measured time. Kernels, tiles and launches, and so the estimates, are faster
 * than at the measurement: at least the measured time divided by the factor in the card file. */
static void estimates_are_near_the_recorded_times(void **state) {
    static const char *const names[] = {"f32", "f16"};
    cleat_card card;
    cleat_error error = {0};
    int failures = 0;
    (void)state;
    if (cleat_card_open("h200", &card, &error)) fail_msg("%s", error.text);
    for (size_t i = 0; i < sizeof h200 / sizeof *h200; ++i)
        for (int half = 0; half < 2; ++half) {
            const double measured = h200[i].ms[half];
            const double ms = estimated_ms(h200[i].workload, half ? CLEAT_PRECISION_F16 : CLEAT_PRECISION_F32, &card);
            const bool good = ms <= measured * 1.25 && ms >= measured / card.rates.within;
            print_message("%-12s %s: %.3g ms, estimated %.3g (%+.0f %%)%s\n", h200[i].workload, names[half], measured,
                          ms, 100 * (ms / measured - 1), good ? "" : "  FAILED");
            failures += !good;
        }
    assert_int_equal(failures, 0);
}

/* Each value of the file affects an estimate. */
static void no_value_of_the_file_is_idle(void **state) {
    (void)state;
    cleat_card card;
    cleat_error error = {0};
    if (cleat_card_open("h200", &card, &error)) fail_msg("%s", error.text);
    cleat_rates *rates = &card.rates;
    double *const values[] = {&rates->flops,          &rates->matrix_flops,    &rates->bytes,
                              &rates->launch_seconds, &rates->product_seconds, &rates->matrix_product_seconds,
                              &rates->recurrent_flops};
    for (size_t v = 0; v < sizeof values / sizeof *values; ++v) {
        const double before = *values[v];
        double most = 0;
        for (size_t i = 0; i < sizeof h200 / sizeof *h200; ++i)
            for (int half = 0; half < 2; ++half) {
                const cleat_precision precision = half ? CLEAT_PRECISION_F16 : CLEAT_PRECISION_F32;
                const double ms = estimated_ms(h200[i].workload, precision, &card);
                *values[v] = before * 2;
                most = fmax(most, fabs(estimated_ms(h200[i].workload, precision, &card) / ms - 1));
                *values[v] = before;
            }
        if (most < 0.02) fail_msg("value %zu, doubled, changes no estimate by 2 %%", v);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(estimates_are_near_the_recorded_times),
                                       cmocka_unit_test(no_value_of_the_file_is_idle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

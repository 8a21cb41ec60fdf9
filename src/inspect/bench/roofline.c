/* Ratio of a workload's speed to the device's peaks: the roofline model over its operations (fit/estimate.h),
 * with warnings about implausible numbers. */
#include "bench/bench.h"

#include "cleat/card.h"
#include "fit/estimate.h"

#include <math.h>
#include <stdio.h>

/* Cost of one run and its minimum time; the estimate of its time at sustained rates. */
typedef struct roofline {
    double flops, bytes, seconds;
    double memory_seconds; /* of the operations that memory bounds */
    double predicted;
} roofline;

static cleat_status add_part(const cleat_bench_job *job, const cleat_bench_part *part, const cleat_rates *peak,
                             const cleat_rates *sustained, roofline *sum, cleat_error *error) {
    cleat_node_estimate node;
    cleat_status status = CLEAT_OK;
    const double times = (double)part->times;
    for (size_t i = part->first; i < part->last && !status; ++i) {
        status = cleat_estimate_node(job->plan, part->graph, i, peak, &node, error);
        if (status || node.launches == 0) continue;
        const double compute = node.cost.flops / node.flops_rate, memory = node.cost.bytes / peak->bytes;
        sum->flops += times * node.cost.flops;
        sum->bytes += times * node.cost.bytes;
        sum->seconds += times * fmax(compute, memory);
        status = cleat_estimate_node(job->plan, part->graph, i, sustained, &node, error);
        sum->predicted += times * node.seconds;
        if (memory > compute) sum->memory_seconds += times * memory;
    }
    return status;
}

/* The card file of CPUs is generic. */
static bool is_of_card(const cleat_device_facts *facts, cleat_card *card) {
    return facts->kind != CLEAT_DEVICE_CPU && cleat_card_match(facts, card);
}

cleat_status cleat_bench_roofline(const cleat_bench_job *job, cleat_bench_result *result, cleat_error *error) {
    cleat_card card;
    roofline sum = {0};
    const bool known = is_of_card(cleat_device_get_facts(job->device), &card);
    const double seconds = result->ms_median / 1e3;
    cleat_status status = CLEAT_OK;
    for (int i = 0; i < job->n_parts && !status; ++i)
        status = add_part(job, &job->parts[i], &result->peak, known ? &card.rates : &result->peak, &sum, error);
    if (status) return status;
    result->gflops = sum.flops / seconds / 1e9;
    result->gbytes_per_second = sum.bytes / seconds / 1e9;
    result->share_of_peak = sum.seconds / seconds;
    result->predicted_ms = 1e3 * sum.predicted;
    result->memory_bound = sum.memory_seconds > sum.seconds / 2;
    return CLEAT_OK;
}

void cleat_bench_card_peak(const cleat_device_facts *facts, cleat_rates *peak) {
    cleat_card card;
    *peak = (cleat_rates){0};
    if (!is_of_card(facts, &card)) return;
    *peak = (cleat_rates){.flops = card.f32_flops, .matrix_flops = card.matrix_flops, .bytes = card.bandwidth};
    snprintf(peak->source, sizeof peak->source, "%s", card.rates.source);
}

bool cleat_bench_warning(const cleat_bench_result *result, size_t i, char *text, size_t size) {
    const cleat_rates *peak = &result->peak, *card = &result->card_peak;
    const struct {
        const char *what;
        double measured, of_card;
    } rates[] = {{"TFLOP/s", peak->flops, card->flops},
                 {"TFLOP/s of the matrix unit", peak->matrix_flops, card->matrix_flops},
                 {"TB/s", peak->bytes, card->bytes}};
    if (result->share_of_peak > 1 && i-- == 0) {
        snprintf(text, size, "faster than the measured peak allows: %s",
                 result->memory_bound
                     ? "its data may stay in a cache"
                     : "its kernels may do less arithmetic than is counted (Winograd), or the device was "
                       "busy while the peak was measured");
        return true;
    }
    for (size_t k = 0; k < sizeof rates / sizeof *rates; ++k) {
        const double share = rates[k].measured / rates[k].of_card; /* infinite or NaN without a card file */
        if (!(rates[k].measured > 0 && share < 0.5) || i-- > 0) continue;
        snprintf(text, size, "the measured peak of %.4g %s is %.2g of the %.4g in %s: a busy or throttled device",
                 rates[k].measured / 1e12, rates[k].what, share, rates[k].of_card / 1e12, card->source);
        return true;
    }
    return false;
}

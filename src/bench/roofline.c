/* Ratio of a workload's speed to the device's peak rates: the roofline model over its operations
 * (fit/estimate.h). Rates are raised if a workload shows that the device is faster. */
#include "bench/bench.h"

#include "fit/estimate.h"
#include "session/rates.h"

#include <math.h>

/* Cost of one run and its minimum time; the time of each operation counts towards the rate that bounds it. */
typedef struct roofline {
    double flops, bytes, seconds[CLEAT_BENCH_RATES], total_seconds;
    double bounded_flops[CLEAT_BENCH_BYTES]; /* of the operations whose bound is this rate of arithmetic */
} roofline;

static cleat_status add_part(const cleat_bench_job *job, const cleat_bench_part *part, const cleat_rates *peak,
                             roofline *sum, cleat_error *error) {
    cleat_node_estimate node;
    cleat_status status = CLEAT_OK;
    const double times = (double)part->times;
    for (size_t i = part->first; i < part->last && !status; ++i) {
        status = cleat_estimate_node(job->plan, part->graph, i, peak, &node, error);
        if (status || node.launches == 0) continue;
        const double compute = node.cost.flops / node.flops_rate, memory = node.cost.bytes / peak->bytes;
        const cleat_bench_rate arithmetic = node.on_matrix_unit ? CLEAT_BENCH_MATRIX_FLOPS : CLEAT_BENCH_FLOPS;
        sum->flops += times * node.cost.flops;
        sum->bytes += times * node.cost.bytes;
        sum->seconds[memory > compute ? CLEAT_BENCH_BYTES : arithmetic] += times * fmax(compute, memory);
        sum->total_seconds += times * fmax(compute, memory);
        if (memory <= compute) sum->bounded_flops[arithmetic] += times * node.cost.flops;
    }
    return status;
}

static cleat_status add_parts(const cleat_bench_job *job, const cleat_rates *peak, roofline *sum, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    *sum = (roofline){0};
    for (int i = 0; i < job->n_parts && !status; ++i) status = add_part(job, &job->parts[i], peak, sum, error);
    return status;
}

static cleat_bench_rate largest_bound(const roofline *sum) {
    cleat_bench_rate largest = CLEAT_BENCH_FLOPS;
    for (cleat_bench_rate rate = CLEAT_BENCH_FLOPS; rate < CLEAT_BENCH_RATES; ++rate)
        if (sum->seconds[rate] > sum->seconds[largest]) largest = rate;
    return largest;
}

/* Raises the rate that bounds most of a run of `seconds` by the missing factor, until the run is no faster
 * than its rates allow. If other rates bound parts of the run, this takes several rounds; each closes at
 * least a third of the gap. */
static cleat_status raise_rates(const cleat_bench_job *job, double seconds, roofline *sum, cleat_bench_result *result,
                                cleat_error *error) {
    enum { ROUNDS = 100 };
    const double rounding = 1e-12;
    double *const rates[CLEAT_BENCH_RATES] = {&result->peak.flops, &result->peak.matrix_flops, &result->peak.bytes};
    cleat_status status = add_parts(job, &result->peak, sum, error);
    for (int i = 0; i < ROUNDS && !status && sum->total_seconds > seconds * (1 + rounding); ++i) {
        const cleat_bench_rate rate = largest_bound(sum);
        result->raised[rate] = true;
        *rates[rate] *= sum->total_seconds / seconds;
        status = add_parts(job, &result->peak, sum, error);
    }
    return status;
}

/* Keeps only the proven part of the raised rates: the number of operations bounded by an arithmetic rate,
 * divided by the whole time. A raised memory rate is not kept, because it is the rate of a cache, whereas plans
 * need the rate of the memory itself. */
static void keep_raised(const cleat_bench_job *job, const cleat_rates *measured, const roofline *sum, double seconds,
                        const cleat_bench_result *result) {
    cleat_rates kept = *measured;
    if (!result->raised[CLEAT_BENCH_FLOPS] && !result->raised[CLEAT_BENCH_MATRIX_FLOPS]) return;
    kept.flops = fmax(kept.flops, sum->bounded_flops[CLEAT_BENCH_FLOPS] / seconds);
    kept.matrix_flops = fmax(kept.matrix_flops, sum->bounded_flops[CLEAT_BENCH_MATRIX_FLOPS] / seconds);
    cleat_rates_raise(job->device, &kept);
}

cleat_status cleat_bench_roofline(const cleat_bench_job *job, cleat_bench_result *result, cleat_error *error) {
    roofline sum;
    const double seconds = result->ms_median / 1e3;
    const cleat_rates measured = result->peak;
    cleat_status status = raise_rates(job, seconds, &sum, result, error);
    if (status) return status;
    keep_raised(job, &measured, &sum, seconds, result);
    result->gflops = sum.flops / seconds / 1e9;
    result->gbytes_per_second = sum.bytes / seconds / 1e9;
    result->share_of_peak = fmin(1, sum.total_seconds / seconds);
    result->memory_bound = sum.seconds[CLEAT_BENCH_BYTES] > sum.total_seconds / 2;
    return CLEAT_OK;
}

/* The all-reduce of a run's gradients, timed alone: the input of `cleat plan --network`. */
#include "bench/steps.h"
#include "core/clock.h"
#include "core/memory.h"
#include "ranks/ranks.h"

#include <math.h>

static const int64_t SMALLEST = 64 << 10, LARGEST = 256 << 20;
enum { GROWTH = 4, WARM_UP_RUNS = 3, MIN_RUNS = 5, MAX_RUNS = 1000, MIN_SIZES = 3 };

/* Seconds after which a rank that is silent or stopped counts as lost. */
static const double LONGEST_WAIT = 300, STOPPED = 20;

/* In place and on the MPI thread, as in a step. */
static cleat_status sum_once(cleat_ranks *ranks, float *values, size_t count, double *seconds, cleat_error *error) {
    uint64_t ticket;
    const double started = cleat_seconds();
    cleat_status status = cleat_ranks_sum_start(ranks, values, count, NULL, &ticket, error);
    if (!status) status = cleat_ranks_wait(ranks, ticket, error);
    *seconds = cleat_seconds() - started;
    return status;
}

/* Rank r contributes r + 1. Afterwards the values stay 0, since sums of sums would overflow. */
static cleat_status check_sum(cleat_ranks *ranks, float *values, size_t count, cleat_error *error) {
    const float each = (float)cleat_ranks_rank(ranks) + 1;
    const double n = cleat_ranks_count(ranks), sum = n * (n + 1) / 2;
    double seconds;
    for (size_t i = 0; i < count; ++i) values[i] = each;
    cleat_status status = sum_once(ranks, values, count, &seconds, error);
    for (size_t i = 0; i < count && !status; ++i)
        if ((double)values[i] != sum)
            status =
                cleat_fail(error, CLEAT_ERR_DEVICE, "MPI's sum of %zu values is wrong at value %zu: %g instead of %g",
                           count, i, (double)values[i], sum);
    for (size_t i = 0; i < count; ++i) values[i] = 0;
    return cleat_ranks_agree(ranks, status, error);
}

/* Rank 0 chooses the number of runs for all. */
static cleat_status choose_runs(cleat_ranks *ranks, double once, double seconds, int64_t *runs, cleat_error *error) {
    const double wanted = once > 0 ? seconds / once : MAX_RUNS;
    *runs = wanted < MIN_RUNS ? MIN_RUNS : wanted < MAX_RUNS ? (int64_t)wanted : MAX_RUNS;
    return cleat_ranks_broadcast(ranks, runs, sizeof *runs, error);
}

/* The time of a size is the largest of the ranks' median times. */
static cleat_status measure(cleat_ranks *ranks, float *values, int64_t bytes, double seconds, double *times,
                            double *of_ranks, cleat_allreduce_point *point, cleat_error *error) {
    const size_t count = (size_t)bytes / sizeof *values;
    double once = INFINITY, last = 0;
    *point = (cleat_allreduce_point){.time.bytes = bytes};
    cleat_status status = check_sum(ranks, values, count, error);
    for (int i = 0; i < WARM_UP_RUNS && !status; ++i) {
        status = sum_once(ranks, values, count, &last, error);
        once = fmin(once, last);
    }
    if (!status) status = choose_runs(ranks, once, seconds, &point->runs, error);
    for (int64_t i = 0; i < point->runs && !status; ++i) status = sum_once(ranks, values, count, &times[i], error);
    cleat_spread own = {0};
    if (!status) status = cleat_spread_of(times, point->runs, &own, error);
    if (!status) status = cleat_ranks_gather(ranks, &own.median, sizeof own.median, of_ranks, error);
    for (int r = 0; r < cleat_ranks_count(ranks) && !status; ++r)
        point->time.seconds = fmax(point->time.seconds, of_ranks[r]);
    return status;
}

static cleat_status fit(cleat_allreduce_bench *bench, cleat_error *error) {
    cleat_allreduce_time measured[CLEAT_ALLREDUCE_POINTS];
    for (size_t i = 0; i < bench->count; ++i) measured[i] = bench->points[i].time;
    return cleat_network_fit(bench->ranks, bench->count, measured, &bench->network, &bench->worst, error);
}

/* Sizes grow until the runs of the next one would take far longer than `seconds` and a network explains the
 * times: on a busy machine small sizes may all take equally long. All ranks have the same times. */
static cleat_status measure_all(cleat_ranks *ranks, double seconds, float *values, double *times, double *of_ranks,
                                cleat_allreduce_bench *bench, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (int64_t bytes = SMALLEST; bytes <= LARGEST && !status; bytes *= GROWTH) {
        cleat_allreduce_point *point = &bench->points[bench->count];
        status = measure(ranks, values, bytes, seconds, times, of_ranks, point, error);
        if (status) break;
        ++bench->count;
        const bool long_enough = GROWTH * MIN_RUNS * point->time.seconds > 3 * seconds && bench->count >= MIN_SIZES;
        if (long_enough && !fit(bench, NULL)) break;
    }
    return status;
}

cleat_status cleat_bench_allreduce(cleat_ranks *ranks, double seconds, cleat_allreduce_bench *bench,
                                   cleat_error *error) {
    const size_t count = (size_t)cleat_ranks_count(ranks);
    cleat_allreduce_bench made = {.ranks = (int)count};
    if (count < 2)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "an all-reduce needs several ranks of MPI: cleat bench allreduce --devices 0,1");
    float *values = cleat_alloc((size_t)LARGEST / sizeof *values, sizeof *values);
    double *times = cleat_alloc(MAX_RUNS, sizeof *times), *of_ranks = cleat_alloc(count, sizeof *of_ranks);
    cleat_status status = values && times && of_ranks
                              ? CLEAT_OK
                              : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for an all-reduce of 256 MiB");
    cleat_ranks_set_timeouts(ranks,
                             &(cleat_ranks_timeouts){.seconds = LONGEST_WAIT, .silence = INFINITY, .stopped = STOPPED});
    status = cleat_ranks_agree(ranks, status, error); /* from here on no heartbeat delays a sum */
    if (!status) status = measure_all(ranks, seconds, values, times, of_ranks, &made, error);
    if (!status) status = fit(&made, error);
    cleat_free(of_ranks);
    cleat_free(times);
    if (!cleat_ranks_are_broken(ranks)) cleat_free(values); /* else MPI may still write */
    if (!status) *bench = made;
    return status;
}

/* Training steps and repeated timing. */
#include "bench/steps.h"

#include "core/clock.h"
#include "core/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UPS = 2, MAX_TIMINGS = 2000, MAX_BURST = 4096 };

int cleat_ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

cleat_status cleat_spread_of(const double *values, int64_t count, cleat_spread *spread, cleat_error *error) {
    double *sorted = cleat_alloc((size_t)count, sizeof *sorted);
    if (!sorted) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %lld timings", (long long)count);
    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, cleat_ascending);
    *spread = (cleat_spread){
        .median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2, .min = sorted[0], .max = sorted[count - 1]};
    cleat_free(sorted);
    return CLEAT_OK;
}

/* Milliseconds per run, averaged over `count` runs. */
static cleat_status time_burst(const cleat_timed_function *what, int64_t count, double *milliseconds,
                               cleat_error *error) {
    double start = cleat_seconds();
    cleat_status status = what->run(what->user, count, error);
    *milliseconds = (cleat_seconds() - start) * 1e3 / (double)count;
    return status;
}

/* The first run creates kernels; the second determines the number of runs per burst. */
static cleat_status warm_up(const cleat_timed_function *what, int64_t *burst, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    double milliseconds = 0;
    for (int i = 0; i < WARM_UPS && !status; ++i) status = time_burst(what, 1, &milliseconds, error);
    double count = ceil(what->burst_seconds * 1e3 / fmax(milliseconds, 1e-6));
    *burst = (int64_t)fmin(fmax(count, 1), MAX_BURST);
    return status;
}

cleat_status cleat_time_runs(const cleat_timed_function *what, double seconds, int64_t least, cleat_step_times *times,
                             cleat_error *error) {
    double *each = cleat_alloc(MAX_TIMINGS, sizeof *each);
    if (!each) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for timings");
    int64_t count = 0, burst = 1;
    cleat_spread spread;
    cleat_status status = warm_up(what, &burst, error);
    double end = cleat_seconds() + seconds;
    while (!status && count < MAX_TIMINGS && (count < least || cleat_seconds() < end))
        status = time_burst(what, burst, &each[count++], error);
    if (!status) status = cleat_spread_of(each, count, &spread, error);
    if (!status)
        *times = (cleat_step_times){
            .steps = count * burst, .ms_median = spread.median, .ms_min = spread.min, .ms_max = spread.max};
    cleat_free(each);
    return status;
}

/* The step ends when its loss is on the host, as in other frameworks' benchmarks. */
cleat_status cleat_training_step(cleat_trajectory *run, int64_t micro_batches, double *loss, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (int64_t i = 0; i < micro_batches && !status; ++i) status = cleat_trajectory_forward_backward(run, error);
    if (!status) status = cleat_trajectory_update(run, error);
    if (!status) status = cleat_trajectory_loss(run, loss, error);
    return status;
}

typedef struct stepper {
    cleat_trajectory *run;
    double loss;
} stepper;

static cleat_status run_steps(void *user, int64_t count, cleat_error *error) {
    stepper *steps = user;
    cleat_status status = CLEAT_OK;
    for (int64_t i = 0; i < count && !status; ++i) status = cleat_training_step(steps->run, 1, &steps->loss, error);
    return status;
}

cleat_status cleat_time_steps(cleat_trajectory *run, double seconds, int64_t least, cleat_step_times *times,
                              cleat_error *error) {
    stepper steps = {.run = run};
    const cleat_timed_function what = {.run = run_steps, .user = &steps};
    cleat_status status = cleat_time_runs(&what, seconds, least, times, error);
    if (!status) times->loss = steps.loss;
    return status;
}

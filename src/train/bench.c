/* Benchmarks: training steps of fixed workloads, the shapes of other frameworks' benchmarks. */
#include "core/clock.h"
#include "core/memory.h"
#include "core/philox.h"
#include "train/trajectory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define RNA_LOSS                                                                                                       \
    "mean over valid coordinates of squared error + mean over valid neighbours of (sqrt(|c[i+1]-c[i]|^2 + "            \
    "1e-6) - 5.9)^2"
#define RNA_CONFIG                                                                                                     \
    "{\"vocab\": 5, \"d_model\": 256, \"heads\": 8, \"layers\": 5, \"d_ff\": 1024, \"loss\": \"" RNA_LOSS "\"}"

typedef struct workload {
    const char *name, *config;
    int64_t batch, length, vocabulary;
} workload;

static const workload workloads[] = {
    {"W1_B2L512", RNA_CONFIG, 2, 512, 5},
    {"W1_B1L1200", RNA_CONFIG, 1, 1200, 5},
};
enum { N_WORKLOADS = sizeof workloads / sizeof workloads[0] };

const char *cleat_bench_workload(size_t i) {
    return i < N_WORKLOADS ? workloads[i].name : NULL;
}

enum { WARM_UP_STEPS = 2, LEAST_STEPS = 5, MOST_STEPS = 2000 };

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* One step, and the loss on the host at its end, as the peers do it. */
static cleat_status step(cleat_trajectory *run, double *milliseconds, double *loss, cleat_error *error) {
    double start = cleat_seconds();
    cleat_status status = cleat_trajectory_forward_backward(run, error);
    if (status == CLEAT_OK) status = cleat_trajectory_update(run, error);
    if (status == CLEAT_OK) status = cleat_exec_finish(run->session->exec, error);
    if (status == CLEAT_OK) status = cleat_trajectory_loss(run, loss, error);
    *milliseconds = (cleat_seconds() - start) * 1e3;
    return status;
}

static cleat_status time_steps(cleat_trajectory *run, double seconds, double *times, int64_t *count, double *loss,
                               cleat_error *error) {
    cleat_status status = CLEAT_OK;
    double ignored;
    for (int i = 0; i < WARM_UP_STEPS && status == CLEAT_OK; ++i) status = step(run, &ignored, loss, error);
    double end = cleat_seconds() + seconds;
    for (*count = 0; status == CLEAT_OK && *count < MOST_STEPS && (*count < LEAST_STEPS || cleat_seconds() < end);)
        status = step(run, &times[(*count)++], loss, error);
    return status;
}

static cleat_status run_workload(const char *device, const workload *work, const cleat_reference *reference,
                                 double seconds, cleat_bench_result *result, cleat_error *error) {
    cleat_trajectory run = {0};
    double *times = cleat_alloc(MOST_STEPS, sizeof *times), loss = 0;
    int64_t count = 0;
    if (!times) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for timings");
    cleat_status status = cleat_trajectory_open(device, work->config, reference, &run, error);
    if (status == CLEAT_OK) {
        run.profile->train.learning_rate = 1e-4;
        run.profile->train.weight_decay = 0.01;
        run.profile->train.max_grad_norm = CLEAT_NONE;
        status = time_steps(&run, seconds, times, &count, &loss, error);
    }
    if (status == CLEAT_OK) {
        struct rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        qsort(times, (size_t)count, sizeof *times, ascending);
        *result = (cleat_bench_result){.ms_median = times[count / 2],
                                       .ms_min = times[0],
                                       .ms_max = times[count - 1],
                                       .samples_per_second = (double)work->batch / times[count / 2] * 1e3,
                                       .parameters = cleat_store_elements(run.session->store),
                                       .device_bytes = cleat_device_peak(run.device),
                                       .steps = count,
                                       .loss = loss,
                                       .peak_rss_mb = (double)usage.ru_maxrss / 1024.0};
        snprintf(result->workload, sizeof result->workload, "%s", work->name);
        snprintf(result->device, sizeof result->device, "%s", cleat_device_get_facts(run.device)->name);
    }
    cleat_trajectory_close(&run);
    cleat_free(times);
    return status;
}

cleat_status cleat_bench(const char *device, const char *name, double seconds, cleat_bench_result *result,
                         cleat_error *error) {
    const workload *work = NULL;
    for (int i = 0; i < N_WORKLOADS; ++i)
        if (strcmp(name, workloads[i].name) == 0) work = &workloads[i];
    if (!work) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "no workload '%s'", name);
    int64_t rows = work->batch * work->length;
    int64_t *tokens = cleat_alloc((size_t)rows, sizeof *tokens);
    float *target = cleat_alloc((size_t)rows * 3, sizeof *target);
    cleat_status status;
    if (!tokens || !target) {
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a batch");
        goto done;
    }
    cleat_random random = cleat_random_stream(1, 0, 0);
    for (int64_t i = 0; i < rows; ++i) tokens[i] = cleat_random_below(&random, (uint32_t)work->vocabulary);
    for (int64_t i = 0; i < rows * 3; ++i) target[i] = (float)(10 * cleat_random_normal(&random));
    cleat_reference reference = {.batch = work->batch, .length = work->length, .input = tokens, .target = target};
    status = run_workload(device, work, &reference, seconds, result, error);
done:
    cleat_free(tokens);
    cleat_free(target);
    return status;
}

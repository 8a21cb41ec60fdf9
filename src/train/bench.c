/* Benchmarks: training steps of fixed workloads, the shapes of other frameworks' benchmarks. */
#include "train/steps.h"

#include <stdio.h>
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

enum { LEAST_STEPS = 5 };

static cleat_status run_workload(const char *device, const workload *work, const cleat_reference *reference,
                                 double seconds, cleat_bench_result *result, cleat_error *error) {
    cleat_trajectory run = {0};
    cleat_step_times times;
    cleat_status status = cleat_trajectory_open(device, work->config, reference, &run, error);
    if (status == CLEAT_OK) {
        run.profile->train.learning_rate = 1e-4;
        run.profile->train.weight_decay = 0.01;
        run.profile->train.max_grad_norm = CLEAT_NONE;
        status = cleat_time_steps(&run, seconds, LEAST_STEPS, &times, error);
    }
    if (status == CLEAT_OK) {
        struct rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        *result = (cleat_bench_result){.ms_median = times.ms_median,
                                       .ms_min = times.ms_min,
                                       .ms_max = times.ms_max,
                                       .samples_per_second = (double)work->batch / times.ms_median * 1e3,
                                       .parameters = cleat_store_elements(run.session->work->store),
                                       .device_bytes = cleat_device_peak(run.device),
                                       .steps = times.steps,
                                       .loss = times.loss,
                                       .peak_rss_mb = (double)usage.ru_maxrss / 1024.0};
        snprintf(result->workload, sizeof result->workload, "%s", work->name);
        snprintf(result->device, sizeof result->device, "%s", cleat_device_get_facts(run.device)->name);
    }
    cleat_trajectory_close(&run);
    return status;
}

cleat_status cleat_bench(const char *device, const char *name, double seconds, cleat_bench_result *result,
                         cleat_error *error) {
    const workload *work = NULL;
    cleat_made_batch batch;
    for (int i = 0; i < N_WORKLOADS; ++i)
        if (strcmp(name, workloads[i].name) == 0) work = &workloads[i];
    if (!work) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "no workload '%s'", name);
    cleat_status status = cleat_made_batch_create(work->batch, work->length, work->vocabulary, &batch, error);
    if (status != CLEAT_OK) return status;
    status = run_workload(device, work, &batch.reference, seconds, result, error);
    cleat_made_batch_free(&batch);
    return status;
}

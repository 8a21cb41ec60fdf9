/* Benchmarks: finds a workload by name and times it, in this process or in a child. */
#include "bench/bench.h"

#include "bench/steps.h"
#include "core/child.h"
#include "doctor/doctor.h"
#include "exec/copy.h"
#include "platform/processes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MIN_STEPS = 5, MAX_WORKLOADS = 256 };
static const double BURST_SECONDS = 0.005;

static bool entry_of(size_t i, cleat_bench_entry *entry) {
    size_t models = 0;
    for (; cleat_bench_model(models, entry); ++models)
        if (models == i) return true;
    return cleat_bench_op(i - models, entry);
}

bool cleat_bench_workload(size_t i, cleat_bench_info *info) {
    cleat_bench_entry entry;
    if (!entry_of(i, &entry)) return false;
    *info = entry.info;
    return true;
}

static cleat_status unknown(const char *name, cleat_error *error) {
    static const char known[] = "`cleat bench --list` lists the workloads";
    cleat_bench_info infos[MAX_WORKLOADS];
    const char *names[MAX_WORKLOADS];
    size_t count = 0;
    for (; count < MAX_WORKLOADS && cleat_bench_workload(count, &infos[count]); ++count)
        names[count] = infos[count].name;
    const char *near = cleat_nearest_name(name, names, count);
    if (near)
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "no workload '%s'; did you mean '%s'? %s", name, near, known);
    return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "no workload '%s'; %s", name, known);
}

cleat_status cleat_bench_find(const cleat_bench_request *request, cleat_bench_entry *entry, cleat_error *error) {
    const char *name = request->workload;
    if (request->profile) {
        *entry = cleat_bench_profile(request);
        return CLEAT_OK;
    }
    for (size_t i = 0; entry_of(i, entry); ++i)
        if (strcmp(name, entry->info.name) == 0 || (name[0] && strcmp(name, entry->info.peer) == 0)) return CLEAT_OK;
    return unknown(name, error);
}

static void close_job(cleat_bench_job *job) {
    if (job->close) job->close(job->own);
    cleat_device_close(job->device);
    *job = (cleat_bench_job){0};
}

static cleat_status open_job(const cleat_bench_request *request, const cleat_bench_entry *entry, cleat_bench_job *job,
                             cleat_error *error) {
    *job = (cleat_bench_job){.precision = request->precision};
    if (entry->info.kind == CLEAT_BENCH_MICRO && request->precision > CLEAT_PRECISION_F32)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "workload '%s': --precision applies only to training steps",
                          entry->info.name);
    cleat_status status = cleat_doctor_open_device(request->device, &job->device, error);
    if (!status) status = entry->open(entry->spec, job, error);
    /* now, so that the memory of a compiler and that of a step are not in use at once */
    if (!status) status = cleat_exec_build(job->exec, error);
    if (status) close_job(job);
    return status;
}

static cleat_status enqueue(const cleat_bench_job *job, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (int i = 0; i < job->n_parts; ++i) {
        const cleat_bench_part *part = &job->parts[i];
        for (int64_t n = 0; n < part->times && !status; ++n)
            status = cleat_exec_enqueue_nodes(job->exec, part->graph, part->first, part->last, error);
    }
    return status;
}

static cleat_status run_job(void *user, int64_t count, cleat_error *error) {
    cleat_bench_job *job = user;
    cleat_status status = CLEAT_OK;
    for (int64_t i = 0; i < count && !status; ++i) status = job->step ? job->step(job, error) : enqueue(job, error);
    return !status && !job->step ? cleat_exec_finish(job->exec, error) : status;
}

static double peak_rss_mb(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024.0;
}

static void describe(const cleat_bench_job *job, const cleat_step_times *times, cleat_bench_result *result) {
    result->ms_median = times->ms_median;
    result->ms_min = times->ms_min;
    result->ms_max = times->ms_max;
    result->steps = times->steps;
    result->device_bytes = cleat_device_peak(job->device);
    result->peak_rss_mb = peak_rss_mb();
    snprintf(result->device, sizeof result->device, "%s", cleat_device_get_facts(job->device)->name);
    cleat_bench_card_peak(cleat_device_get_facts(job->device), &result->card_peak);
    if (!job->step) return;
    result->samples = job->samples;
    result->samples_per_second = (double)job->samples / times->ms_median * 1e3;
    result->parameters = cleat_store_elements(job->plan->store);
    result->loss = job->loss;
    result->length = job->length;
    result->data_known = job->data_known;
}

/* Opens the device separately, so that the measurement's allocations are not counted as the workload's. */
static cleat_status measure_peak(const cleat_bench_request *request, cleat_rates *peak, cleat_error *error) {
    cleat_device *device = NULL;
    cleat_status status = cleat_doctor_open_device(request->device, &device, error);
    if (!status) status = cleat_peaks_measure(device, request->remeasure_peak, peak, error);
    cleat_device_close(device);
    return status;
}

static cleat_status bench_here(const cleat_bench_request *request, cleat_bench_result *result, cleat_error *error) {
    cleat_bench_entry entry;
    cleat_bench_job job = {0};
    cleat_step_times times;
    cleat_bench_result made = {0};
    cleat_status status = cleat_bench_find(request, &entry, error);
    if (!status) status = measure_peak(request, &made.peak, error);
    if (!status) status = open_job(request, &entry, &job, error);
    if (status) return status;
    const cleat_timed_function what = {.run = run_job, .user = &job, .burst_seconds = job.step ? 0 : BURST_SECONDS};
    bool counted = request->repeats > 0;
    status =
        cleat_time_runs(&what, counted ? 0 : request->seconds, counted ? request->repeats : MIN_STEPS, &times, error);
    if (!status) {
        made.kind = entry.info.kind;
        made.storage = job.storage;
        snprintf(made.workload, sizeof made.workload, "%s", request->profile ? request->workload : entry.info.name);
        describe(&job, &times, &made);
        status = cleat_bench_roofline(&job, &made, error);
    }
    close_job(&job);
    if (!status) *result = made;
    return status;
}

typedef struct report {
    cleat_status status;
    cleat_bench_result result;
    char text[CLEAT_ERROR_TEXT];
} report;
_Static_assert(sizeof(report) <= 4096, "larger writes to a pipe are not atomic");

/* With remeasure_peak, only measures the device's peaks, which are stored for the process of the workload:
 * buffers of this measurement would count as memory of a small workload. */
static void run_in_child(void *user, int out) {
    const cleat_bench_request *request = user;
    report told = {0};
    cleat_error error = {0};
    told.status = request->remeasure_peak ? measure_peak(request, &told.result.peak, &error)
                                          : bench_here(request, &told.result, &error);
    memcpy(told.text, error.text, sizeof told.text);
    cleat_child_send(out, &told, sizeof told);
}

static cleat_status run_child(const cleat_bench_request *request, cleat_bench_result *result, cleat_error *error) {
    const double kernels_seconds = 900; /* the first run on a device compiles */
    const bool counted = request->repeats > 0;
    cleat_bench_request own = *request;
    const cleat_child child = {.body = run_in_child,
                               .user = &own,
                               .record_bytes = sizeof(report),
                               .seconds = counted ? INFINITY : kernels_seconds + 10 * fmax(request->seconds, 0)};
    report told = {0};
    cleat_child_end end = {0};
    cleat_status status = cleat_child_run(&child, &told, &end, error);
    if (status) return status;
    cleat_unused_card_warned();
    if (end.timed_out)
        return cleat_fail(error, CLEAT_ERR_DEVICE,
                          "workload '%s': %s; increase --seconds, or use --steps, which has no time limit",
                          request->workload, end.text);
    if (end.text[0]) return cleat_fail(error, CLEAT_ERR_DEVICE, "workload '%s': %s", request->workload, end.text);
    if (told.status) return cleat_fail(error, told.status, "%s", told.text);
    *result = told.result;
    return CLEAT_OK;
}

static cleat_status bench_own_process(const cleat_bench_request *request, cleat_bench_result *result,
                                      cleat_error *error) {
    cleat_bench_request own = *request;
    cleat_bench_entry entry;
    cleat_bench_result rates;
    cleat_status status = cleat_bench_find(request, &entry, error);
    if (!status && request->remeasure_peak) status = run_child(request, &rates, error);
    own.remeasure_peak = false;
    return status ? status : run_child(&own, result, error);
}

cleat_status cleat_bench(const cleat_bench_request *request, cleat_bench_result *result, cleat_error *error) {
    return request->own_process ? bench_own_process(request, result, error) : bench_here(request, result, error);
}

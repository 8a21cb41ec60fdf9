/* Batch finder: the attempt made in a child process, and the public call. */
#include "cleat/bench.h"

#include "bench/batch_search.h"
#include "bench/steps.h"
#include "cleat/doctor.h"
#include "core/child.h"

#include <stdio.h>

enum { MIN_STEPS = 3 };
static const double DEFAULT_SECONDS = 2, FIRST_TRY_SECONDS = 900, MIN_TRY_SECONDS = 60;

typedef struct batch_finder {
    const cleat_profile *profile;
    cleat_model *model;
    cleat_lengths lengths; /* the longest length only, with one full global batch */
    double seconds;
    cleat_tuning_table *tuning; /* in the child, once its device is open */
} batch_finder;

static cleat_fit_request request_of(const batch_finder *finder, const cleat_device *device, int64_t micro_batch_size) {
    cleat_fit_request request = cleat_fit_request_for(finder->profile, finder->model, CLEAT_FOR_TRAINING,
                                                      &finder->lengths, cleat_device_get_facts(device), NULL);
    request.tuning = finder->tuning;
    request.most = micro_batch_size;
    request.batches = NULL;
    request.exactly = true;
    return request;
}

/* Returns the largest size that fits, above `good` and below `bad`; 0 if there is none. */
static int64_t find_fitting(const batch_finder *finder, const cleat_device *device, int64_t good, int64_t bad) {
    int64_t low = good;
    while (bad - low > 1) {
        int64_t middle = low + (bad - low) / 2;
        cleat_fit_request request = request_of(finder, device, middle);
        cleat_fit_result fitted = {0};
        if (cleat_fit_search(&request, &fitted, NULL, NULL, 0, NULL) == CLEAT_OK)
            low = middle;
        else
            bad = middle;
        cleat_fit_result_clear(&fitted);
    }
    return low > good ? low : 0;
}

/* Computes the memory needed with the most memory-saving options that the profile allows; 0 if a single
 * tensor exceeds the device's maximum buffer size. */
static void plan_without_limit(const batch_finder *finder, const cleat_device *device, cleat_batch_point *point) {
    cleat_profile *frugal = NULL;
    cleat_fit_request request = request_of(finder, device, point->micro_batch_size);
    cleat_fit_result fitted = {0};
    if (cleat_profile_clone(finder->profile, &frugal, NULL)) return;
    if (frugal->train.gradient_checkpointing == CLEAT_CHECKPOINTING_AUTO)
        frugal->train.gradient_checkpointing = CLEAT_CHECKPOINTING_TRUE;
    request.profile = frugal;
    request.limit = 0;
    cleat_status status = cleat_fit_search(&request, &fitted, NULL, NULL, 0, NULL);
    cleat_profile_destroy(frugal);
    if (status) return;
    point->planned_bytes = cleat_plan_bytes(fitted.work->plan);
    point->recomputed = fitted.work->recompute != 0;
    cleat_fit_result_clear(&fitted);
}

/* Fills the planned values of the point, and `fitted` if the plan fits. */
static cleat_status plan(const batch_finder *finder, const cleat_device *device, const cleat_batch_trial *trial,
                         cleat_batch_report *report, cleat_fit_result *fitted, cleat_error *error) {
    cleat_batch_point *point = &report->point;
    cleat_fit_request request = request_of(finder, device, trial->micro_batch_size);
    point->limit_bytes = request.limit;
    cleat_status status = cleat_fit_search(&request, fitted, NULL, NULL, 0, error);
    if (!status) {
        point->planned_fits = true;
        point->planned_bytes = cleat_plan_bytes(fitted->work->plan);
        point->recomputed = fitted->work->recompute != 0;
    } else if (status == CLEAT_ERR_FIT) {
        plan_without_limit(finder, device, point);
        report->fitting = find_fitting(finder, device, trial->good, trial->micro_batch_size);
    }
    return status;
}

static cleat_status time_steps(const batch_finder *finder, cleat_trajectory *run, cleat_batch_point *point,
                               cleat_error *error) {
    cleat_dataset *dataset = NULL;
    cleat_step_times times;
    cleat_status status =
        cleat_model_open_synthetic(finder->model, point->micro_batch_size, finder->lengths.lengths[0], &dataset, error);
    if (!status) status = cleat_trajectory_start(run, dataset, error);
    cleat_dataset_destroy(dataset);
    if (status) return status;
    status = cleat_time_steps(run, finder->seconds, MIN_STEPS, &times, error);
    if (status) return status;
    point->ms_median = times.ms_median;
    point->ms_min = times.ms_min;
    point->ms_max = times.ms_max;
    point->samples_per_second = (double)point->micro_batch_size / times.ms_median * 1e3;
    point->allocated_bytes = cleat_device_peak(run->device);
    point->ran = true;
    return CLEAT_OK;
}

/* Plans, reports the plan, then trains, so that the plan is known even if the child is killed while
 * training. */
static cleat_status plan_and_train(batch_finder *finder, cleat_trajectory *run, const cleat_batch_trial *trial,
                                   cleat_batch_report *report, int out, cleat_error *error) {
    cleat_fit_result fitted = {0};
    /* The first attempt warns about an unused card, for all of them. */
    cleat_status status =
        (trial->good ? cleat_device_open : cleat_doctor_open_device)(finder->profile->run.device, &run->device, error);
    if (!status) finder->tuning = cleat_tuning_load(run->device);
    if (!status) status = plan(finder, run->device, trial, report, &fitted, error);
    if (status) return status;
    cleat_child_send(out, report, sizeof *report);
    status = cleat_session_open(run->device, run->profile, run->model, fitted.work, &run->session, error);
    return status ? status : time_steps(finder, run, &report->point, error);
}

static void attempt(void *user, const cleat_batch_trial *trial, int out) {
    batch_finder finder = *(const batch_finder *)user;
    cleat_trajectory run = {.model = finder.model};
    cleat_batch_report report = {.mark = CLEAT_BATCH_MARK, .point.micro_batch_size = trial->micro_batch_size};
    cleat_error error = {0};
    report.status = cleat_profile_clone(finder.profile, &run.profile, &error);
    if (!report.status) report.status = plan_and_train(&finder, &run, trial, &report, out, &error);
    if (report.status) {
        const char *text = error.text[0] ? error.text : cleat_status_text(report.status);
        snprintf(report.text, sizeof report.text, "%s", text);
        snprintf(report.point.error, sizeof report.point.error, "%.255s", text);
    }
    cleat_child_send(out, &report, sizeof report);
    run.model = NULL; /* owned by the parent */
    cleat_trajectory_close(&run);
    cleat_tuning_destroy(finder.tuning);
}

static cleat_status choose_length(batch_finder *finder, bool *data_known, cleat_error *error) {
    cleat_lengths all;
    cleat_status status = cleat_fit_lengths(finder->profile, finder->model, &all, data_known, error);
    if (status) return status;
    finder->lengths = (cleat_lengths){.count = 1,
                                      .lengths = {all.lengths[all.count - 1]},
                                      .samples = {cleat_profile_effective_batch(finder->profile)}};
    return CLEAT_OK;
}

cleat_status cleat_find_batch(const cleat_profile *profile, const cleat_batch_search_options *options,
                              cleat_batch_search *result, cleat_error *error) {
    cleat_batch_search_options defaults = {0};
    batch_finder finder = {.profile = profile};
    if (!options) options = &defaults;
    finder.seconds = options->seconds > 0 ? options->seconds : DEFAULT_SECONDS;
    *result = (cleat_batch_search){0};
    cleat_status status = cleat_profile_create_model(profile, &finder.model, error);
    if (!status) status = choose_length(&finder, &result->data_known, error);
    if (!status) {
        cleat_batch_searcher searcher = {.global_batch_size = finder.lengths.samples[0],
                                         .attempt = attempt,
                                         .user = &finder,
                                         .first_seconds = FIRST_TRY_SECONDS,
                                         .min_seconds = MIN_TRY_SECONDS,
                                         .options = options};
        result->length = finder.lengths.lengths[0];
        status = cleat_batch_search_run(&searcher, result, error);
    }
    cleat_model_destroy(finder.model);
    return status;
}

/* The tracer: begins and ends the cycles, and measures the steps before them. */
#include "trace/tracer.h"

#include "core/clock.h"
#include "core/memory.h"
#include "fit/estimate.h"
#include "trace/recording.h"

#include <math.h>
#include <stdio.h>

/* Unrecorded steps at the end of a wait, with which the recorded ones are compared. */
enum { COMPARED_STEPS = 8 };

struct cleat_tracer {
    cleat_tracer_schedule schedule;
    cleat_session *session;
    cleat_feed *feed;
    cleat_rates rates;
    bool has_rates;
    char folder[CLEAT_TRACER_FOLDER];
    int64_t before, step; /* step: of this process, counted from 1; 0 before the first one */
    bool in_step;
    double step_begin, interrupted; /* interrupted: seconds since the comparison or the cycle began */
    bool was_interrupted;           /* since the end of the step before */
    double compared_since;          /* 0: no comparison is under way */
    double compared_work, compared_seconds, compared_waits; /* waits: for programs, before the comparison */
    int64_t compared_steps;
    cleat_span_log *spans;
    cleat_recorder recorder;
    bool is_recording;
    bool is_broken; /* the device cannot time commands: the run continues without */
    cleat_clock_pair begin_clock;
    cleat_traced_step *steps; /* [n_steps] of the cycle */
    size_t n_steps, steps_capacity;
    double active_work;
    double work_of_bucket[CLEAT_BUCKETS]; /* estimated seconds of a micro-batch; 1 without rates */
    double work_of_update;
    int64_t written;
};

/* Steps of different lengths are compared by their estimated seconds. */
static void estimate_work(cleat_tracer *p) {
    const cleat_workload *work = p->session->work;
    for (size_t b = 0; b < work->n_buckets; ++b)
        if (!p->has_rates ||
            cleat_estimate_graph(work->plan, work->train[b].index, &p->rates, &p->work_of_bucket[b], NULL))
            p->work_of_bucket[b] = 1;
    if (!p->has_rates || cleat_estimate_graph(work->plan, work->update.index, &p->rates, &p->work_of_update, NULL))
        p->work_of_update = 0;
}

cleat_status cleat_tracer_open(const cleat_tracer_setup *setup, cleat_tracer **tracer, cleat_error *error) {
    char text[CLEAT_TRACER_TEXT];
    cleat_tracer *p = cleat_alloc(1, sizeof *p);
    if (!p) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a tracer");
    p->schedule = *setup->schedule;
    p->session = setup->session;
    p->feed = setup->feed;
    p->before = setup->before;
    p->has_rates = setup->rates != NULL;
    if (setup->rates) p->rates = *setup->rates;
    snprintf(p->folder, sizeof p->folder, "%s", setup->folder);
    cleat_status status = cleat_span_log_create(&p->spans, error);
    if (status) {
        cleat_tracer_close(p);
        return status;
    }
    estimate_work(p);
    cleat_feed_log_spans(setup->feed, p->spans);
    cleat_log(CLEAT_LOG_INFO, "trace: records %s, into %s",
              cleat_tracer_schedule_describe(&p->schedule, p->before, text), p->folder);
    *tracer = p;
    return CLEAT_OK;
}

static void stop_recording(cleat_tracer *p) {
    cleat_error error = {0};
    if (!p->is_recording) return;
    p->is_recording = false;
    cleat_span_log_stop(p->spans);
    if (cleat_recorder_stop(p->session->device, &error))
        cleat_log(CLEAT_LOG_WARNING, "trace: the device keeps the queues that record times: %s", error.text);
}

void cleat_tracer_stop(cleat_tracer *p) {
    char text[CLEAT_TRACER_TEXT];
    if (!p) return;
    stop_recording(p);
    cleat_recorder_clear(&p->recorder);
    if (!cleat_tracer_is_done(p))
        cleat_log(
            CLEAT_LOG_WARNING,
            "trace: the run ended after step %lld, before all of %s were recorded; a schedule with fewer steps, or "
            "more epochs, would record them",
            (long long)(p->before + p->step), cleat_tracer_schedule_describe(&p->schedule, p->before, text));
}

void cleat_tracer_close(cleat_tracer *p) {
    if (!p) return;
    cleat_span_log_destroy(p->spans);
    cleat_free(p->steps);
    cleat_free(p);
}

static cleat_tracer_phase phase_of(const cleat_tracer *p, int64_t step) {
    return p->is_broken ? CLEAT_TRACER_OFF : cleat_tracer_schedule_phase(&p->schedule, step);
}

static int64_t period_of(const cleat_tracer *p) {
    return p->schedule.wait + p->schedule.warmup + p->schedule.active;
}

/* Position of a step in its cycle, from 0 on. */
static int64_t position_of(const cleat_tracer *p, int64_t step) {
    return (step - 1 - p->schedule.skip_first) % period_of(p);
}

/* The first step of a process also compiles kernels. */
static bool is_compared(const cleat_tracer *p, int64_t step) {
    return step > 1 && phase_of(p, step) == CLEAT_TRACER_WAIT &&
           position_of(p, step) >= p->schedule.wait - COMPARED_STEPS;
}

static double work_of(const cleat_tracer *p, size_t bucket, size_t micro_batches) {
    return p->work_of_bucket[bucket] * (double)micro_batches + p->work_of_update;
}

static void begin_comparison(cleat_tracer *p) {
    p->compared_work = p->compared_seconds = p->interrupted = 0;
    p->compared_steps = 0;
    p->compared_waits = cleat_exec_build_stats(p->session->exec).waited_seconds;
    p->compared_since = cleat_seconds();
}

/* The device has finished. One step is not enough: its batch was not uploaded while another one ran. */
static void end_comparison(cleat_tracer *p) {
    if (p->compared_since == 0) return;
    double waits = cleat_exec_build_stats(p->session->exec).waited_seconds - p->compared_waits;
    double seconds = cleat_seconds() - p->compared_since - p->interrupted - waits;
    p->compared_since = 0;
    p->compared_seconds = p->compared_steps >= 2 && p->compared_work > 0 ? seconds / p->compared_work : NAN;
}

/* A failure of the tracer must not end a run. */
static void start_recording(cleat_tracer *p) {
    cleat_error error = {0};
    cleat_status status = cleat_recorder_start(p->session->device, &p->recorder, &error);
    p->is_recording = !status;
    if (!status) status = cleat_clock_compare(p->session->device, &p->begin_clock, &error);
    if (status) {
        stop_recording(p);
        p->is_broken = true;
        cleat_log(CLEAT_LOG_WARNING, "trace: no steps are recorded, because the device does not time its commands: %s",
                  error.text);
        return;
    }
    cleat_span_log_start(p->spans);
}

static cleat_status begin_cycle(cleat_tracer *p, cleat_error *error) {
    cleat_status status = cleat_exec_finish(p->session->exec, error);
    if (status) return status;
    p->compared_seconds = NAN;
    end_comparison(p);
    p->n_steps = 0;
    p->active_work = 0;
    p->was_interrupted = false;
    start_recording(p);
    return CLEAT_OK;
}

static double unprofiled_seconds(const cleat_tracer *p) {
    int64_t active = 0;
    for (size_t i = 0; i < p->n_steps; ++i) active += p->steps[i].active;
    return active > 0 ? p->compared_seconds * p->active_work / (double)active : NAN;
}

static void write_cycle(cleat_tracer *p, const cleat_clock_pair *end_clock) {
    cleat_error error = {0};
    cleat_recording recording = {.session = p->session,
                                 .rates = p->has_rates ? &p->rates : NULL,
                                 .recorder = &p->recorder,
                                 .steps = p->steps,
                                 .n_steps = p->n_steps,
                                 .lost_spans = cleat_span_log_lost(p->spans),
                                 .clocks = {p->begin_clock, *end_clock},
                                 .resolution = cleat_clock_resolution(p->session->device),
                                 .unprofiled_seconds = unprofiled_seconds(p)};
    recording.spans = cleat_span_log_spans(p->spans, &recording.n_spans);
    cleat_recorder_read(&p->recorder);
    if (p->recorder.lost > 0)
        cleat_log(CLEAT_LOG_WARNING,
                  "trace: %zu commands are missing in the profile, which holds at most %d (less if memory is short): "
                  "record fewer steps",
                  p->recorder.lost, CLEAT_RECORDER_COMMANDS);
    if (cleat_profile_files_write(&recording, p->folder, &error) == CLEAT_OK)
        ++p->written;
    else
        cleat_log(CLEAT_LOG_WARNING, "trace: no files were written: %s", error.text);
}

static cleat_status end_cycle(cleat_tracer *p, cleat_error *error) {
    cleat_clock_pair end_clock;
    cleat_status status = cleat_exec_finish(p->session->exec, error);
    if (!status && cleat_clock_compare(p->session->device, &end_clock, NULL)) end_clock = p->begin_clock;
    stop_recording(p);
    if (status) return status;
    write_cycle(p, &end_clock);
    cleat_recorder_clear(&p->recorder);
    return CLEAT_OK;
}

static cleat_status add_step(cleat_tracer *p, size_t bucket, size_t micro_batches, cleat_error *error) {
    cleat_status status = cleat_grow(&p->steps, p->n_steps, &p->steps_capacity, error);
    if (status) return status;
    cleat_traced_step *step = &p->steps[p->n_steps++];
    *step = (cleat_traced_step){.step = p->before + p->step,
                                .bucket = bucket,
                                .first_command = p->recorder.count,
                                .begin = cleat_seconds(),
                                .interrupted = p->was_interrupted,
                                .active = phase_of(p, p->step) == CLEAT_TRACER_ACTIVE};
    if (step->active) p->active_work += work_of(p, bucket, micro_batches);
    return CLEAT_OK;
}

static bool records(cleat_tracer_phase phase) {
    return phase == CLEAT_TRACER_WARMUP || phase == CLEAT_TRACER_ACTIVE;
}

cleat_status cleat_tracer_begin_step(cleat_tracer *p, size_t bucket, size_t micro_batches, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    if (!p) return CLEAT_OK;
    ++p->step;
    p->in_step = true;
    if (is_compared(p, p->step)) {
        if (p->compared_since == 0) {
            status = cleat_exec_finish(p->session->exec, error);
            begin_comparison(p);
        }
        p->compared_work += work_of(p, bucket, micro_batches);
        ++p->compared_steps;
    }
    if (!status && records(phase_of(p, p->step)) && !p->is_recording) status = begin_cycle(p, error);
    if (!status && p->is_recording) status = add_step(p, bucket, micro_batches, error);
    p->step_begin = cleat_tracer_now(p);
    return status;
}

cleat_status cleat_tracer_end_step(cleat_tracer *p, cleat_error *error) {
    if (!p) return CLEAT_OK;
    p->in_step = false;
    if (!p->is_recording || p->n_steps == 0) return CLEAT_OK;
    cleat_traced_step *step = &p->steps[p->n_steps - 1];
    step->last_command = p->recorder.count;
    step->end = cleat_seconds();
    if (p->step_begin > 0) cleat_span_add(p->spans, "step", step->step, p->step_begin, step->end);
    p->was_interrupted = false;
    return position_of(p, p->step) == period_of(p) - 1 ? end_cycle(p, error) : CLEAT_OK;
}

bool cleat_tracer_wants_flow(const cleat_tracer *p) {
    return p && p->in_step && (p->is_recording || p->compared_since > 0);
}

bool cleat_tracer_is_done(const cleat_tracer *p) {
    if (p && p->is_broken) return true;
    return p && p->step >= cleat_tracer_schedule_last(&p->schedule, p->schedule.repeat - 1) && !p->is_recording;
}

int64_t cleat_tracer_written(const cleat_tracer *p) {
    return p ? p->written : 0;
}

double cleat_tracer_now(const cleat_tracer *p) {
    return p && (p->is_recording || p->compared_since > 0) ? cleat_seconds() : 0;
}

void cleat_tracer_end_span(cleat_tracer *p, const char *name, double start) {
    if (p) cleat_span_end(p->spans, name, -1, start);
}

void cleat_tracer_end_interruption(cleat_tracer *p, const char *name, double start) {
    if (!p || start == 0) return;
    cleat_span_end(p->spans, name, -1, start);
    p->interrupted += cleat_seconds() - start;
    p->was_interrupted = true;
}

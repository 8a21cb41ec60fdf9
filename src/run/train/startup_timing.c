/* Startup timing: where the time before the first optimizer step was spent. */
#include "train/startup_timing.h"

#include "core/memory.h"

#include <stdio.h>

/* The host waits for programs to be built while it fills buffers or enqueues. This wait is counted
 * separately, not as part of the stage in which it occurs. */
static double collect_waits(cleat_run_clock *clock, cleat_startup_stats *start, const cleat_session *session) {
    if (!session) return 0;
    double all = cleat_exec_build_stats(session->exec).waited_seconds;
    double waited = all - clock->waited;
    clock->waited = all;
    start->kernels += waited;
    return waited;
}

void cleat_startup_lap(cleat_run_clock *clock, cleat_train_report *report, const cleat_session *session, double *part) {
    if (report->seconds_first_step > 0) return; /* the run was reopened later with less memory */
    double now = cleat_seconds();
    *part += now - clock->lap - collect_waits(clock, &report->start, session);
    clock->lap = now;
}

static void collect_stats(cleat_run_clock *clock, cleat_train_report *report, const cleat_session *session) {
    cleat_startup_stats *start = &report->start;
    cleat_startup_lap(clock, report, session, &start->step);
    cleat_build_stats build = cleat_exec_build_stats(session->exec);
    start->programs = build.programs;
    start->built = build.built;
    start->loaded = build.loaded;
    report->seconds_first_step = clock->lap - clock->started;
}

static void print_stats(cleat_run *run) {
    const cleat_startup_stats *start = &run->report->start;
    char text[320];
    snprintf(text, sizeof text,
             "first step after %.2f s: data %.2f, device %.2f, plan %.2f, setup %.2f, waiting for kernels %.2f, step "
             "%.2f; %lld programs, %lld of them from cached binaries",
             run->report->seconds_first_step, start->data, start->device, start->plan, start->setup, start->kernels,
             start->step, (long long)start->programs, (long long)start->loaded);
    cleat_run_print(run, text);
}

cleat_status cleat_startup_done(cleat_run_clock *clock, cleat_run *run, const cleat_session *session,
                                const cleat_train_state *state, cleat_error *error) {
    const cleat_startup_stats *start = &run->report->start;
    collect_stats(clock, run->report, session);
    cleat_trim_memory(); /* some drivers compile a kernel when it first runs */
    print_stats(run);
    const cleat_metric metrics[] = {
        {"seconds", run->report->seconds_first_step},
        {"data", start->data},
        {"device", start->device},
        {"plan", start->plan},
        {"setup", start->setup},
        {"kernels", start->kernels},
        {"first_step", start->step},
        {"programs", (double)start->programs},
        {"built", (double)start->built},
        {"loaded", (double)start->loaded},
    };
    return cleat_metrics_log_write(run->log, "start", state->epoch, state->step, metrics,
                                   sizeof metrics / sizeof *metrics, error);
}

/* What the first optimizer step waited for. */
#include "train/trainer.h"

#include <stdio.h>

/* The host waits for programs while it fills buffers or enqueues: that much of a part was not its own. */
static double collect_waits(cleat_trainer *trainer) {
    if (!trainer->session) return 0;
    double all = cleat_exec_build_stats(trainer->session->exec).waited_seconds, waited = all - trainer->waited;
    trainer->waited = all;
    trainer->report->start.kernels += waited;
    return waited;
}

void cleat_startup_lap(cleat_trainer *trainer, double *part) {
    if (trainer->report->seconds_first_step > 0) return; /* opened again after it: the ladder */
    double now = cleat_seconds();
    *part += now - trainer->lap - collect_waits(trainer);
    trainer->lap = now;
}

static void collect_stats(cleat_trainer *trainer) {
    cleat_startup_stats *start = &trainer->report->start;
    cleat_startup_lap(trainer, &start->step);
    cleat_build_stats build = cleat_exec_build_stats(trainer->session->exec);
    start->programs = build.programs;
    start->built = build.built;
    start->loaded = build.loaded;
    trainer->report->seconds_first_step = trainer->lap - trainer->started;
}

static void log_stats(cleat_trainer *trainer) {
    const cleat_startup_stats *start = &trainer->report->start;
    char text[320];
    snprintf(text, sizeof text,
             "first step after %.2f s: data %.2f, device %.2f, plan %.2f, setup %.2f, waiting for kernels %.2f, step "
             "%.2f; %lld programs, %lld of them from cached binaries",
             trainer->report->seconds_first_step, start->data, start->device, start->plan, start->setup, start->kernels,
             start->step, (long long)start->programs, (long long)start->loaded);
    cleat_trainer_log(trainer, text);
}

cleat_status cleat_startup_done(cleat_trainer *trainer, cleat_error *error) {
    const cleat_startup_stats *start = &trainer->report->start;
    collect_stats(trainer);
    log_stats(trainer);
    const cleat_metric metrics[] = {
        {"seconds", trainer->report->seconds_first_step},
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
    return cleat_metrics_log_write(trainer->log, "start", trainer->state.epoch, trainer->state.step, metrics,
                                   sizeof metrics / sizeof *metrics, error);
}

/* The training run's side of the monitor: its sources, its counters, its hints. */
#include "train/run_monitor.h"

#include "core/clock.h"
#include "core/command_words.h"
#include "core/json.h"
#include "fit/fit.h"
#include "train/run_record.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- called by the monitor's thread --------------------------------------------------------------------------- */

static bool device_is_idle(void *user) {
    return cleat_device_is_idle(((cleat_run_monitor *)user)->device);
}

static void mark_device(void *user, int64_t number) {
    cleat_device_mark(((cleat_run_monitor *)user)->device, number);
}

static int64_t marked_on_device(void *user) {
    return cleat_device_marked(((cleat_run_monitor *)user)->device);
}

static void read_routes(void *user, double *values) {
    cleat_routes_read(((cleat_run_monitor *)user)->routes, values);
}

static void distrust_route(void *user, size_t gauge) {
    cleat_routes_distrust(((cleat_run_monitor *)user)->routes, (cleat_figure)gauge);
}

/* --- opening -------------------------------------------------------------------------------------------------- */

static cleat_status open_routes(cleat_run_monitor *monitor, cleat_error *error) {
    cleat_status status = cleat_routes_open(cleat_device_get_facts(monitor->device), "", &monitor->routes, error);
    for (int f = 0; f < CLEAT_ROUTE_FIGURES && !status; ++f) {
        const cleat_figure_info *info = cleat_figure_describe((cleat_figure)f);
        monitor->gauges[f] = (cleat_gauge){.name = info->name,
                                           .unit = info->unit,
                                           .source = cleat_routes_source(monitor->routes, (cleat_figure)f),
                                           .meaning = info->meaning};
    }
    return status;
}

static cleat_status estimate_work(cleat_run_monitor *monitor, const cleat_engine *engine, cleat_error *error) {
    const cleat_workload *work = engine->session->work;
    cleat_status status = CLEAT_OK;
    monitor->has_rates = engine->has_rates;
    if (!engine->has_rates) return CLEAT_OK;
    for (size_t b = 0; b < work->n_buckets && !status; ++b)
        status = cleat_estimate_roofline(work->plan, work->train[b].index, &engine->rates, &monitor->train[b], error);
    return status ? status
                  : cleat_estimate_roofline(work->plan, work->update.index, &engine->rates, &monitor->update, error);
}

/* The largest micro-batch that also fits, up to 8 times the current one. The arena (activations,
 * workspace, inputs) grows at most in proportion. */
static void find_larger(const cleat_plan *plan, cleat_hint_facts *facts) {
    enum { MOST = 8 };
    const int64_t arena = cleat_plan_category_bytes(plan, CLEAT_BYTES_ARENA);
    for (int64_t times = 2; times <= MOST; times *= 2) {
        const int64_t bytes = facts->planned + (times - 1) * arena;
        if (bytes > facts->usable) return;
        facts->larger_micro_batch = times * facts->micro_batch;
        facts->larger_bytes = bytes;
    }
}

static cleat_hint_facts hint_facts(const cleat_run_monitor *monitor, const cleat_run_parts *parts,
                                   const cleat_step_forecast *forecast) {
    const cleat_workload *work = parts->engine->session->work;
    const cleat_bucket *longest = &work->buckets[work->n_buckets - 1];
    const cleat_device_facts *device = cleat_device_get_facts(monitor->device);
    cleat_hint_facts facts = {.profile = monitor->profile,
                              .options = monitor->options,
                              .folder = parts->run->folder,
                              .is_gpu = device->kind == CLEAT_DEVICE_GPU,
                              .launches = forecast->launches,
                              .launch_seconds = parts->engine->has_rates ? parts->engine->rates.launch_seconds : NAN,
                              .micro_batch = longest->micro_batch_size,
                              .global_batch = longest->global_batch_size,
                              .length = longest->length,
                              .planned = cleat_plan_bytes(work->plan),
                              .usable = cleat_fit_limit(device, parts->settings->profile)};
    find_larger(work->plan, &facts);
    return facts;
}

/* The user's profile, with the settings and the device given in addition; or the one in the run folder if
 * its path is unknown. */
static void name_profile(cleat_run_monitor *monitor, const cleat_run *run) {
    monitor->options[0] = 0;
    if (!run->options->profile_path) {
        snprintf(monitor->profile, sizeof monitor->profile, "%s/resolved.ini", run->folder);
        return;
    }
    snprintf(monitor->profile, sizeof monitor->profile, "%s", run->options->profile_path);
    if (run->options->command) cleat_command_options(run->options->command, monitor->options, sizeof monitor->options);
}

/* Called by the training thread. The feed has logged the change. */
static void record_workers(void *user, int before, int now, const char *reason) {
    char text[256];
    snprintf(text, sizeof text, "%d loader threads instead of %d: %s", now, before, reason);
    cleat_run_monitor_event(user, "workers", now > before ? "raised" : "lowered", text, "");
}

static cleat_status start_thread(cleat_run_monitor *monitor, const cleat_run_parts *parts,
                                 const cleat_step_forecast *forecast, cleat_error *error) {
    const cleat_monitor_config config = {
        .period = parts->settings->profile->run.monitor,
        .journal = monitor->journal,
        .step = parts->step,
        .steps_per_epoch = (double)parts->schedule->steps_per_epoch,
        .memory_planned = (double)cleat_plan_bytes(parts->engine->session->work->plan),
        .facts = hint_facts(monitor, parts, forecast),
        .gauges = monitor->gauges,
        .n_gauges = CLEAT_ROUTE_FIGURES,
        .calls = {device_is_idle, mark_device, marked_on_device, read_routes, distrust_route},
        .user = monitor};
    return cleat_monitor_start(&config, &monitor->monitor, error);
}

static cleat_status write_start(cleat_run_monitor *monitor, const cleat_run_parts *parts,
                                const cleat_step_forecast *forecast, cleat_error *error) {
    cleat_string record = {0};
    cleat_run_start_record(monitor, parts, forecast, &record);
    if (record.failed) {
        cleat_string_free(&record);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the start record of system.jsonl");
    }
    cleat_journal_write(monitor->journal, &record);
    if (parts->before > 0) {
        char text[64];
        snprintf(text, sizeof text, "continued after step %lld", (long long)parts->before);
        cleat_run_monitor_event(monitor, "resume", "resumed", text, "");
    }
    return CLEAT_OK;
}

cleat_status cleat_run_monitor_open(cleat_run_monitor *monitor, const cleat_run_parts *parts, cleat_error *error) {
    char path[CLEAT_PATH + 32];
    cleat_step_forecast forecast;
    if (parts->settings->profile->run.monitor <= 0) return CLEAT_OK;
    monitor->device = parts->engine->device;
    monitor->totals = (cleat_monitor_totals){.step = parts->step};
    name_profile(monitor, parts->run);
    snprintf(path, sizeof path, "%s/system.jsonl", parts->run->folder);
    cleat_status status = monitor->journal ? CLEAT_OK : cleat_journal_open(path, &monitor->journal, error);
    if (!status) cleat_journal_observe(monitor->journal, monitor->recorded, monitor->recorded_user);
    if (!status) status = open_routes(monitor, error);
    if (!status) status = estimate_work(monitor, parts->engine, error);
    if (!status) status = cleat_run_forecast(monitor, parts, &forecast, error);
    if (!status) status = write_start(monitor, parts, &forecast, error);
    if (status) return status;
    cleat_feed_on_workers(parts->engine->feed, record_workers, monitor);
    return start_thread(monitor, parts, &forecast, error);
}

void cleat_run_monitor_stop(cleat_run_monitor *monitor) {
    cleat_monitor_stop(monitor->monitor);
    cleat_routes_close(monitor->routes);
    monitor->monitor = NULL;
    monitor->routes = NULL;
}

void cleat_run_monitor_end(cleat_run_monitor *monitor, int64_t step, cleat_status status, const char *message,
                           double seconds) {
    cleat_string text = {0};
    cleat_run_monitor_stop(monitor);
    if (!monitor->journal) return;
    json_add(&text, json_open(NULL, '{'), json_text("kind", "end"), json_time("time", cleat_wall_seconds()),
             json_count("step", step), json_text("status", cleat_status_text(status)),
             json_clean("text", message), /* may be cut within a character */
             json_number("seconds", seconds), json_close('}'));
    cleat_journal_write(monitor->journal, &text);
    cleat_journal_close(monitor->journal);
    monitor->journal = NULL;
}

/* --- while it runs -------------------------------------------------------------------------------------------- */

cleat_activity cleat_run_monitor_set(cleat_run_monitor *monitor, cleat_activity activity) {
    return cleat_monitor_set_activity(monitor->monitor, activity);
}

void cleat_run_monitor_micro_batch(cleat_run_monitor *monitor, size_t bucket) {
    if (!monitor->monitor) return;
    monitor->totals.roof_seconds += monitor->has_rates ? monitor->train[bucket].seconds : NAN;
}

void cleat_run_monitor_step(cleat_run_monitor *monitor, const cleat_engine *engine, int64_t step, int64_t samples) {
    cleat_monitor_totals *totals = &monitor->totals;
    if (!monitor->monitor) return;
    const cleat_loader_stats loader = cleat_feed_statistics(engine->feed);
    totals->step = step;
    totals->samples += (double)samples;
    totals->roof_seconds += monitor->update.seconds;
    totals->hand_overs = (double)loader.hand_overs;
    totals->dry_hand_overs = (double)loader.dry_hand_overs;
    totals->fill_seconds = loader.fill_seconds;
    totals->workers = loader.workers;
    totals->memory_allocated = (double)cleat_device_allocated(engine->device);
    cleat_monitor_step(monitor->monitor, totals);
}

void cleat_run_monitor_show_hints(cleat_run_monitor *monitor, cleat_run *run) {
    cleat_hint hint;
    char text[64 + CLEAT_HINT_TEXT + CLEAT_HINT_COMMAND];
    while (cleat_monitor_take_hint(monitor->monitor, &hint)) {
        snprintf(text, sizeof text, "hint: %s%s%s", hint.text, hint.command[0] ? " Try: " : "", hint.command);
        cleat_run_print(run, text);
    }
}

void cleat_run_monitor_event(cleat_run_monitor *monitor, const char *what, const char *name, const char *text,
                             const char *command) {
    if (monitor->journal) cleat_monitor_write_event(monitor->journal, monitor->totals.step, what, name, text, command);
}

void cleat_run_monitor_schedule(cleat_run_monitor *monitor, const cleat_schedule *schedule, int64_t before) {
    char message[96];
    cleat_string text = {0};
    if (!monitor->journal) return;
    snprintf(message, sizeof message, "the time budget allows %lld epochs: %lld steps instead of %lld",
             (long long)schedule->epochs, (long long)schedule->total_steps, (long long)before);
    cleat_monitor_begin_event(&text, monitor->totals.step, "note", "shorter_schedule", message, "");
    cleat_run_record_schedule(schedule, &text);
    cleat_string_add(&text, "}");
    cleat_journal_write(monitor->journal, &text);
}

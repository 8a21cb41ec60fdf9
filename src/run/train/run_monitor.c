/* The training run's side of the monitor: its start record (the model, the machine, the plan, and the figures that
 * will be recorded), its sources, its counters, its hints. */
#include "train/run_monitor.h"

#include "core/cgroup.h"
#include "core/clock.h"
#include "core/cpus.h"
#include "core/json.h"
#include "core/shell.h"
#include "fit/fit.h"
#include "platform/files.h"
#include "platform/system.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A number whose 0 means that it is unknown. */
static cleat_json_value json_known(const char *name, double value) {
    return json_number(name, value > 0 ? value : NAN);
}

/* --- the machine ---------------------------------------------------------------------------------------------- */

/* By cleat_vendor; NULL: unknown. */
static const char *const vendors[] = {[CLEAT_VENDOR_NVIDIA] = "nvidia",
                                      [CLEAT_VENDOR_AMD] = "amd",
                                      [CLEAT_VENDOR_INTEL] = "intel",
                                      [CLEAT_VENDOR_POCL] = "pocl",
                                      [CLEAT_VENDOR_OCLGRIND] = "oclgrind"};

static void add_device(cleat_string *text, const cleat_device_facts *facts) {
    json_add(text, json_open("device", '{'), json_clean("name", facts->name), json_clean("platform", facts->platform),
             json_clean("driver", facts->driver), json_text("kind", cleat_device_kind_text(facts->kind)),
             json_text("vendor", vendors[facts->vendor]), json_count("compute_units", facts->compute_units),
             json_known("memory_total", (double)facts->memory_total),
             json_known("memory_free", (double)facts->memory_free),
             json_clean("memory_source", facts->memory_source[0] ? facts->memory_source : NULL), json_close('}'));
}

static void add_cpus(cleat_string *text) {
    double quota = NAN;
    char source[64] = "";
    const bool has_quota = cleat_cgroup_cpus("", &quota, source, sizeof source);
    json_add(text, json_open("cpus", '{'), json_count("allowed", cleat_cpus()), json_number("quota", quota),
             json_clean("quota_source", has_quota ? source : NULL), json_close('}'));
}

/* --- the run -------------------------------------------------------------------------------------------------- */

/* Without the padding that the store adds for alignment. */
static int64_t count_parameters(const cleat_store *store) {
    int64_t count = 0;
    for (size_t i = 0; i < cleat_store_count(store); ++i) count += cleat_tensor_elements(cleat_store_param(store, i));
    return count;
}

static void add_model(cleat_string *text, const cleat_run_parts *parts) {
    const cleat_profile *profile = parts->settings->profile;
    json_add(text, json_open("model", '{'), json_text("family", cleat_model_name(parts->engine->model)),
             json_count("parameters", count_parameters(parts->engine->session->work->store)),
             json_clean("metric", profile->run.metric), json_bool("ascends", cleat_profile_metric_ascends(profile)),
             json_text("precision", cleat_dtype_name(parts->engine->session->work->storage)), json_close('}'));
}

/* Appends the member "schedule" to an object. */
static void add_schedule(const cleat_schedule *schedule, cleat_string *text) {
    json_add(text, json_open("schedule", '{'), json_count("epochs", schedule->epochs),
             json_count("steps_per_epoch", schedule->steps_per_epoch), json_count("total_steps", schedule->total_steps),
             json_close('}'));
}

static void add_plan(cleat_string *text, const cleat_workload *work) {
    json_add(text, json_open("plan", '{'), json_count("bytes", cleat_plan_bytes(work->plan)),
             json_open("categories", '{'));
    for (int c = 0; c < CLEAT_CATEGORIES; ++c)
        json_add(text, json_count(cleat_category_name((cleat_category)c),
                                  cleat_plan_category_bytes(work->plan, (cleat_category)c)));
    json_add(text, json_close('}'), json_open("micro_batches", '['));
    for (size_t b = 0; b < work->n_buckets; ++b)
        json_add(text, json_open(NULL, '{'), json_count("length", work->buckets[b].length),
                 json_count("global", work->buckets[b].global_batch_size),
                 json_count("micro", work->buckets[b].micro_batch_size), json_close('}'));
    json_add(text, json_close(']'), json_number("recompute", work->recompute), json_close('}'));
}

/* --- expected speed ------------------------------------------------------------------------------------------- */

/* Expected time and launches of a mean step of the schedule; NaN: unknown. */
typedef struct step_forecast {
    double seconds; /* cleat_estimate_graph over the steps of an epoch */
    double launches;
} step_forecast;

static cleat_status make_forecast(const cleat_run_monitor *monitor, const cleat_run_parts *parts,
                                  step_forecast *forecast, cleat_error *error) {
    const cleat_engine *engine = parts->engine;
    const cleat_workload *work = engine->session->work;
    const double steps = (double)parts->schedule->steps_per_epoch;
    double seconds = NAN, launches = engine->has_rates ? (double)monitor->update.launches : NAN;
    cleat_status status = CLEAT_OK;
    if (engine->has_rates)
        status = cleat_estimate_graph(work->plan, work->update.index, &engine->rates, &seconds, error);
    for (size_t b = 0; b < work->n_buckets && engine->has_rates && !status; ++b) {
        double of_one = 0;
        const double runs =
            (double)cleat_bucket_micro_batches(&work->buckets[b], parts->data->lengths.samples[b]) / steps;
        status = cleat_estimate_graph(work->plan, work->train[b].index, &engine->rates, &of_one, error);
        seconds += runs * of_one;
        launches += runs * (double)monitor->train[b].launches;
    }
    if (!status) *forecast = (step_forecast){.seconds = seconds, .launches = launches};
    return status;
}

static void add_rates(cleat_string *text, const cleat_engine *engine) {
    const cleat_rates *rates = &engine->rates;
    if (engine->has_rates)
        json_add(text, json_open("rates", '{'), json_number("flops", rates->flops),
                 json_known("matrix_flops", rates->matrix_flops), json_number("bytes", rates->bytes),
                 json_number("launch_seconds", rates->launch_seconds), json_clean("source", rates->source),
                 json_close('}'));
    else
        json_add(text, json_text("rates", NULL));
}

static void add_forecast(cleat_string *text, const step_forecast *forecast) {
    if (isnan(forecast->seconds))
        json_add(text, json_text("forecast", NULL));
    else
        json_add(text, json_open("forecast", '{'), json_number("step_seconds", forecast->seconds),
                 json_text("source", "roofline estimate at measured rates"), json_close('}'));
}

/* --- resolved `auto` values --------------------------------------------------------------------------------------- */

enum { WHY = 256 };

static void why_batch_size(const cleat_run_parts *parts, char why[WHY]) {
    char planned[CLEAT_BYTES_TEXT], usable[CLEAT_BYTES_TEXT];
    const cleat_workload *work = parts->engine->session->work;
    const int64_t limit = cleat_fit_limit(cleat_device_get_facts(parts->engine->device), parts->settings->profile);
    snprintf(why, WHY, "%s: the plan needs %s of %s usable device memory",
             cleat_workload_is_whole(work) ? "whole global batches fit" : "the largest micro-batches that fit",
             cleat_bytes_text(cleat_plan_bytes(work->plan), planned), cleat_bytes_text(limit, usable));
}

static void why_effective_batch(const cleat_run_parts *parts, char why[WHY]) {
    const bool is_default = parts->settings->profile->train.batch_size == CLEAT_AUTO;
    snprintf(why, WHY, "%s", is_default ? "the default" : "batch_size x gradient_accumulation_steps");
}

static void why_precision(const cleat_run_parts *parts, char why[WHY]) {
    const cleat_matrix_unit unit = cleat_device_get_facts(parts->engine->device)->matrix_unit;
    if (unit == CLEAT_MATRIX_NONE)
        snprintf(why, WHY, "the device has no fast half-precision products");
    else
        snprintf(why, WHY, "the device has half-precision products (%s)", cleat_matrix_unit_text(unit));
}

static void why_recompute(const cleat_run_parts *parts, char why[WHY]) {
    const cleat_workload *work = parts->engine->session->work;
    snprintf(why, WHY, "%s",
             work->recompute                 ? "larger micro-batches outweigh the recomputation"
             : cleat_workload_is_whole(work) ? "whole global batches fit without it"
                                             : "it would not make training faster");
}

static void why_workers(const cleat_run_parts *parts, char why[WHY]) {
    (void)parts;
    snprintf(why, WHY, "for %d allowed CPUs", cleat_cpus());
}

static const struct reason {
    const char *key;
    void (*explain)(const cleat_run_parts *parts, char why[WHY]);
    const char *text; /* if `explain` is NULL */
} reasons[] = {
    {"train.batch_size", why_batch_size, NULL},
    {"train.bucket_batch_sizes", why_batch_size, NULL},
    {"train.effective_batch_size", why_effective_batch, NULL},
    {"train.gradient_accumulation_steps", NULL, "the smallest number that the micro-batches allow"},
    {"train.precision", why_precision, NULL},
    {"train.loss_scale", NULL, "the default; used by f16 only"},
    {"train.gradient_checkpointing", why_recompute, NULL},
    {"train.frozen_weights", NULL, "there are no frozen weights from a quantised GGUF file"},
    {"data.buckets", NULL, "the lengths with the least padding for the training samples"},
    {"loader.num_workers", why_workers, NULL},
    {"run.device", NULL, "GPUs with dedicated memory first, then other GPUs, then CPUs"},
    {"run.out", NULL, "runs/MODEL-DATE-TIME"},
};

/* resolved.ini keeps `auto` for the device and the folder, so that the run can continue elsewhere. */
static const char *chosen_elsewhere(const cleat_run_parts *parts, const char *key) {
    if (strcmp(key, "run.device") == 0) return cleat_device_get_facts(parts->engine->device)->name;
    if (strcmp(key, "run.out") == 0) return parts->run->folder;
    return NULL;
}

static void add_auto(cleat_string *text, const cleat_run_parts *parts) {
    char key[128], given[CLEAT_PROFILE_TEXT], became[CLEAT_PATH], why[WHY];
    json_add(text, json_open("auto", '['));
    for (size_t i = 0; cleat_profile_key(parts->settings->profile, i, key, sizeof key); ++i) {
        const char *elsewhere = chosen_elsewhere(parts, key);
        if (cleat_profile_get(parts->settings->profile, key, given, sizeof given, NULL) || strcmp(given, "auto") != 0)
            continue;
        if (strcmp(key, "run.out") == 0 && parts->run->options->out) continue; /* --out was given */
        if (elsewhere)
            snprintf(became, sizeof became, "%s", elsewhere);
        else if (cleat_profile_get(parts->settings->resolved, key, became, sizeof became, NULL))
            continue;
        *why = 0;
        for (size_t r = 0; r < sizeof reasons / sizeof reasons[0]; ++r) {
            if (strcmp(reasons[r].key, key) != 0) continue;
            if (reasons[r].explain)
                reasons[r].explain(parts, why);
            else
                snprintf(why, sizeof why, "%s", reasons[r].text);
        }
        json_add(text, json_open(NULL, '{'), json_text("key", key), json_clean("given", given),
                 json_clean("became", became), json_clean("why", why), json_close('}'));
    }
    json_add(text, json_close(']'));
}

/* --- the record ----------------------------------------------------------------------------------------------- */

static void add_gauges(cleat_string *text, const cleat_run_monitor *monitor) {
    json_add(text, json_open("figures", '['));
    for (size_t i = 0; i < CLEAT_OWN_GAUGES + CLEAT_ROUTE_FIGURES; ++i) {
        const cleat_gauge *gauge = i < CLEAT_OWN_GAUGES ? &cleat_own_gauges[i] : &monitor->gauges[i - CLEAT_OWN_GAUGES];
        json_add(text, json_open(NULL, '{'), json_clean("name", gauge->name), json_clean("unit", gauge->unit),
                 json_clean("source", gauge->source), json_clean("meaning", gauge->meaning), json_close('}'));
    }
    json_add(text, json_close(']'));
}

/* Appends the record to an empty text, without a newline. */
static void add_start_record(const cleat_run_monitor *monitor, const cleat_run_parts *parts,
                             const step_forecast *forecast, cleat_string *text) {
    char host[256] = "";
    if (gethostname(host, sizeof host - 1)) *host = 0;
    json_add(text, json_open(NULL, '{'), json_text("kind", "start"), json_time("time", cleat_wall_seconds()),
             json_count("step", parts->before), json_text("cleat", cleat_version()), json_count("pid", getpid()),
             json_clean("host", host[0] ? host : NULL), json_clean("command", parts->run->options->command));
    add_device(text, cleat_device_get_facts(parts->engine->device));
    add_cpus(text);
    add_model(text, parts);
    add_schedule(parts->schedule, text);
    add_plan(text, parts->engine->session->work);
    add_rates(text, parts->engine);
    add_forecast(text, forecast);
    add_auto(text, parts);
    add_gauges(text, monitor);
    json_add(text, json_close('}'));
}

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
                                   const step_forecast *forecast) {
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
    if (!run->options->profile_path || (run->options->command && !*run->options->command)) {
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
    cleat_run_monitor_event(user, "workers", now > before ? "raised" : "lowered", text);
}

static cleat_status start_thread(cleat_run_monitor *monitor, const cleat_run_parts *parts,
                                 const step_forecast *forecast, cleat_error *error) {
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

static cleat_status write_start(cleat_run_monitor *monitor, const cleat_run_parts *parts, const step_forecast *forecast,
                                cleat_error *error) {
    cleat_string record = {0};
    add_start_record(monitor, parts, forecast, &record);
    if (record.failed) {
        cleat_string_free(&record);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the start record of system.jsonl");
    }
    cleat_journal_write(monitor->journal, &record);
    if (parts->before > 0) {
        char text[64];
        snprintf(text, sizeof text, "continued after step %lld", (long long)parts->before);
        cleat_run_monitor_event(monitor, "resume", "resumed", text);
    }
    return CLEAT_OK;
}

cleat_status cleat_run_monitor_open(cleat_run_monitor *monitor, const cleat_run_parts *parts, cleat_error *error) {
    char path[CLEAT_PATH + 32];
    step_forecast forecast;
    if (parts->settings->profile->run.monitor <= 0) return CLEAT_OK;
    monitor->device = parts->engine->device;
    monitor->totals = (cleat_monitor_totals){.step = parts->step};
    name_profile(monitor, parts->run);
    snprintf(path, sizeof path, "%s/system.jsonl", parts->run->folder);
    cleat_status status = monitor->journal ? CLEAT_OK : cleat_journal_open(path, &monitor->journal, error);
    if (!status) cleat_journal_observe(monitor->journal, monitor->recorded, monitor->recorded_user);
    if (!status) status = open_routes(monitor, error);
    if (!status) status = estimate_work(monitor, parts->engine, error);
    if (!status) status = make_forecast(monitor, parts, &forecast, error);
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

void cleat_run_monitor_event(cleat_run_monitor *monitor, const char *what, const char *name, const char *text) {
    if (monitor->journal) cleat_monitor_write_event(monitor->journal, monitor->totals.step, what, name, text, "");
}

void cleat_run_monitor_schedule(cleat_run_monitor *monitor, const cleat_schedule *schedule, int64_t before) {
    char message[96];
    cleat_string text = {0};
    if (!monitor->journal) return;
    snprintf(message, sizeof message, "the time budget allows %lld epochs: %lld steps instead of %lld",
             (long long)schedule->epochs, (long long)schedule->total_steps, (long long)before);
    cleat_monitor_begin_event(&text, monitor->totals.step, "note", "shorter_schedule", message, "");
    add_schedule(schedule, &text);
    cleat_string_add(&text, "}");
    cleat_journal_write(monitor->journal, &text);
}

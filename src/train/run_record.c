/* Writes the start record of a run. */
#include "train/run_record.h"

#include "cleat/core.h"
#include "core/cgroup.h"
#include "core/clock.h"
#include "core/cpus.h"
#include "core/json.h"
#include "core/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void add_text(cleat_text *text, const char *name, const char *value) {
    cleat_json_add_name(text, name);
    if (value)
        cleat_json_add_clean(text, value); /* a path or a name of a driver may be anything */
    else
        cleat_text_add(text, "null");
}

static void add_number(cleat_text *text, const char *name, double value) {
    cleat_json_add_name(text, name);
    cleat_json_add_number(text, value);
}

/* A number whose 0 means that it is unknown. */
static void add_known(cleat_text *text, const char *name, double value) {
    add_number(text, name, value > 0 ? value : NAN);
}

static void add_bool(cleat_text *text, const char *name, bool value) {
    cleat_json_add_name(text, name);
    cleat_text_add(text, value ? "true" : "false");
}

static void open_object(cleat_text *text, const char *name) {
    cleat_json_add_name(text, name);
    cleat_text_add(text, "{");
}

/* --- the machine ---------------------------------------------------------------------------------------------- */

static const char *vendor_text(cleat_vendor vendor) {
    switch (vendor) {
    case CLEAT_VENDOR_NVIDIA:
        return "nvidia";
    case CLEAT_VENDOR_AMD:
        return "amd";
    case CLEAT_VENDOR_INTEL:
        return "intel";
    case CLEAT_VENDOR_POCL:
        return "pocl";
    case CLEAT_VENDOR_OCLGRIND:
        return "oclgrind";
    case CLEAT_VENDOR_UNKNOWN:
        break;
    }
    return NULL;
}

static void add_device(cleat_text *text, const cleat_device_facts *facts) {
    open_object(text, "device");
    add_text(text, "name", facts->name);
    add_text(text, "platform", facts->platform);
    add_text(text, "driver", facts->driver);
    add_text(text, "kind", cleat_device_kind_text(facts->kind));
    add_text(text, "vendor", vendor_text(facts->vendor));
    add_number(text, "compute_units", facts->compute_units);
    add_known(text, "memory_total", (double)facts->memory_total);
    add_known(text, "memory_free", (double)facts->memory_free);
    add_text(text, "memory_source", facts->memory_source[0] ? facts->memory_source : NULL);
    cleat_text_add(text, "}");
}

static void add_cpus(cleat_text *text) {
    double quota = NAN;
    char source[64] = "";
    const bool has_quota = cleat_cgroup_cpus("", &quota, source, sizeof source);
    open_object(text, "cpus");
    add_number(text, "allowed", cleat_cpus());
    add_number(text, "quota", quota);
    add_text(text, "quota_source", has_quota ? source : NULL);
    cleat_text_add(text, "}");
}

/* --- the run -------------------------------------------------------------------------------------------------- */

/* Without what the store adds so that each begins at an aligned address. */
static int64_t count_parameters(const cleat_store *store) {
    int64_t count = 0;
    for (size_t i = 0; i < cleat_store_count(store); ++i) count += cleat_tensor_elements(cleat_store_param(store, i));
    return count;
}

static void add_model(cleat_text *text, const cleat_run_parts *parts) {
    const cleat_profile *profile = parts->settings->profile;
    open_object(text, "model");
    add_text(text, "family", cleat_model_name(parts->engine->model));
    add_number(text, "parameters", (double)count_parameters(parts->engine->session->work->store));
    add_text(text, "metric", profile->run.metric);
    add_bool(text, "ascends", cleat_profile_metric_ascends(profile));
    add_text(text, "precision", cleat_dtype_name(parts->engine->session->work->storage));
    cleat_text_add(text, "}");
}

void cleat_run_record_schedule(const cleat_schedule *schedule, cleat_text *text) {
    open_object(text, "schedule");
    add_number(text, "epochs", (double)schedule->epochs);
    add_number(text, "steps_per_epoch", (double)schedule->steps_per_epoch);
    add_number(text, "total_steps", (double)schedule->total_steps);
    cleat_text_add(text, "}");
}

static void add_plan(cleat_text *text, const cleat_workload *work) {
    open_object(text, "plan");
    add_number(text, "bytes", (double)cleat_plan_bytes(work->plan));
    open_object(text, "categories");
    for (int c = 0; c < CLEAT_CATEGORIES; ++c)
        add_number(text, cleat_category_name((cleat_category)c),
                   (double)cleat_plan_category_bytes(work->plan, (cleat_category)c));
    cleat_text_add(text, "}");
    cleat_json_add_name(text, "micro_batches");
    cleat_text_add(text, "[");
    for (size_t b = 0; b < work->n_buckets; ++b) {
        cleat_text_add(text, b ? ",{" : "{");
        add_number(text, "length", (double)work->buckets[b].length);
        add_number(text, "global", (double)work->buckets[b].global_batch_size);
        add_number(text, "micro", (double)work->buckets[b].micro_batch_size);
        cleat_text_add(text, "}");
    }
    cleat_text_add(text, "]");
    add_number(text, "recompute", work->recompute);
    cleat_text_add(text, "}");
}

/* --- expected speed ------------------------------------------------------------------------------------------- */

cleat_status cleat_run_forecast(const cleat_run_monitor *monitor, const cleat_run_parts *parts,
                                cleat_step_forecast *forecast, cleat_error *error) {
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
    if (!status) *forecast = (cleat_step_forecast){.seconds = seconds, .launches = launches};
    return status;
}

static void add_rates(cleat_text *text, const cleat_engine *engine) {
    const cleat_rates *rates = &engine->rates;
    if (!engine->has_rates) {
        add_text(text, "rates", NULL);
        return;
    }
    open_object(text, "rates");
    add_number(text, "flops", rates->flops);
    add_known(text, "matrix_flops", rates->matrix_flops);
    add_number(text, "bytes", rates->bytes);
    add_number(text, "launch_seconds", rates->launch_seconds);
    add_text(text, "source", rates->source);
    cleat_text_add(text, "}");
}

static void add_forecast(cleat_text *text, const cleat_step_forecast *forecast) {
    if (isnan(forecast->seconds)) {
        add_text(text, "forecast", NULL);
        return;
    }
    open_object(text, "forecast");
    add_number(text, "step_seconds", forecast->seconds);
    add_text(text, "source", "roofline estimate at measured rates");
    cleat_text_add(text, "}");
}

/* --- what became of every `auto` ------------------------------------------------------------------------------ */

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

static void why_accumulation(const cleat_run_parts *parts, char why[WHY]) {
    (void)parts;
    snprintf(why, WHY, "the smallest number that the micro-batches allow");
}

static void why_precision(const cleat_run_parts *parts, char why[WHY]) {
    const cleat_matrix_unit unit = cleat_device_get_facts(parts->engine->device)->matrix_unit;
    if (unit == CLEAT_MATRIX_NONE)
        snprintf(why, WHY, "the device has no fast half-precision products");
    else
        snprintf(why, WHY, "the device has half-precision products (%s)", cleat_matrix_unit_text(unit));
}

static void why_loss_scale(const cleat_run_parts *parts, char why[WHY]) {
    (void)parts;
    snprintf(why, WHY, "the default; used by f16 only");
}

static void why_recompute(const cleat_run_parts *parts, char why[WHY]) {
    const cleat_workload *work = parts->engine->session->work;
    snprintf(why, WHY, "%s",
             work->recompute                 ? "larger micro-batches outweigh the recomputation"
             : cleat_workload_is_whole(work) ? "whole global batches fit without it"
                                             : "it would not make training faster");
}

static void why_buckets(const cleat_run_parts *parts, char why[WHY]) {
    (void)parts;
    snprintf(why, WHY, "the lengths with the least padding for the training samples");
}

static void why_workers(const cleat_run_parts *parts, char why[WHY]) {
    (void)parts;
    snprintf(why, WHY, "for %d allowed CPUs", cleat_cpus());
}

static void why_device(const cleat_run_parts *parts, char why[WHY]) {
    (void)parts;
    snprintf(why, WHY, "GPUs with dedicated memory first, then other GPUs, then CPUs");
}

static void why_folder(const cleat_run_parts *parts, char why[WHY]) {
    (void)parts;
    snprintf(why, WHY, "runs/MODEL-DATE-TIME");
}

static const struct reason {
    const char *key;
    void (*write)(const cleat_run_parts *parts, char why[WHY]);
} reasons[] = {
    {"train.batch_size", why_batch_size},
    {"train.bucket_batch_sizes", why_batch_size},
    {"train.effective_batch_size", why_effective_batch},
    {"train.gradient_accumulation_steps", why_accumulation},
    {"train.precision", why_precision},
    {"train.loss_scale", why_loss_scale},
    {"train.gradient_checkpointing", why_recompute},
    {"data.buckets", why_buckets},
    {"loader.num_workers", why_workers},
    {"run.device", why_device},
    {"run.out", why_folder},
};

/* resolved.ini keeps `auto` for the device and the folder, so that the run can continue elsewhere. */
static const char *chosen_elsewhere(const cleat_run_parts *parts, const char *key) {
    if (strcmp(key, "run.device") == 0) return cleat_device_get_facts(parts->engine->device)->name;
    if (strcmp(key, "run.out") == 0) return parts->run->folder;
    return NULL;
}

static void add_auto(cleat_text *text, const cleat_run_parts *parts) {
    char key[128], given[CLEAT_PROFILE_TEXT], became[CLEAT_PATH], why[WHY];
    bool first = true;
    cleat_json_add_name(text, "auto");
    cleat_text_add(text, "[");
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
        for (size_t r = 0; r < sizeof reasons / sizeof reasons[0]; ++r)
            if (strcmp(reasons[r].key, key) == 0) reasons[r].write(parts, why);
        cleat_text_add(text, first ? "{" : ",{");
        first = false;
        add_text(text, "key", key);
        add_text(text, "given", given);
        add_text(text, "became", became);
        add_text(text, "why", why);
        cleat_text_add(text, "}");
    }
    cleat_text_add(text, "]");
}

/* --- the record ----------------------------------------------------------------------------------------------- */

static void add_gauge(cleat_text *text, const cleat_gauge *gauge, bool first) {
    cleat_text_add(text, first ? "{" : ",{");
    add_text(text, "name", gauge->name);
    add_text(text, "unit", gauge->unit);
    add_text(text, "source", gauge->source);
    add_text(text, "meaning", gauge->meaning);
    cleat_text_add(text, "}");
}

static void add_gauges(cleat_text *text, const cleat_run_monitor *monitor) {
    cleat_json_add_name(text, "figures");
    cleat_text_add(text, "[");
    for (size_t i = 0; i < CLEAT_OWN_GAUGES; ++i) add_gauge(text, &cleat_own_gauges[i], i == 0);
    for (size_t i = 0; i < CLEAT_ROUTE_FIGURES; ++i) add_gauge(text, &monitor->gauges[i], false);
    cleat_text_add(text, "]");
}

void cleat_run_start_record(const cleat_run_monitor *monitor, const cleat_run_parts *parts,
                            const cleat_step_forecast *forecast, cleat_text *text) {
    char host[256] = "";
    if (gethostname(host, sizeof host - 1)) *host = 0;
    cleat_text_add(text, "{\"kind\":\"start\",\"time\":");
    cleat_json_add_time(text, cleat_wall_seconds());
    add_number(text, "step", (double)parts->before);
    add_text(text, "cleat", cleat_version());
    add_number(text, "pid", getpid());
    add_text(text, "host", host[0] ? host : NULL);
    add_text(text, "command", parts->run->options->command);
    add_device(text, cleat_device_get_facts(parts->engine->device));
    add_cpus(text);
    add_model(text, parts);
    cleat_run_record_schedule(parts->schedule, text);
    add_plan(text, parts->engine->session->work);
    add_rates(text, parts->engine);
    add_forecast(text, forecast);
    add_auto(text, parts);
    add_gauges(text, monitor);
    cleat_text_add(text, "}");
}

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

/* A number whose 0 means that it is unknown. */
static cleat_json_value json_known(const char *name, double value) {
    return json_number(name, value > 0 ? value : NAN);
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

static void add_device(cleat_string *text, const cleat_device_facts *facts) {
    json_add(text, json_open("device", '{'), json_clean("name", facts->name), json_clean("platform", facts->platform),
             json_clean("driver", facts->driver), json_text("kind", cleat_device_kind_text(facts->kind)),
             json_text("vendor", vendor_text(facts->vendor)), json_count("compute_units", facts->compute_units),
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

void cleat_run_record_schedule(const cleat_schedule *schedule, cleat_string *text) {
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

static void add_forecast(cleat_string *text, const cleat_step_forecast *forecast) {
    if (isnan(forecast->seconds))
        json_add(text, json_text("forecast", NULL));
    else
        json_add(text, json_open("forecast", '{'), json_number("step_seconds", forecast->seconds),
                 json_text("source", "roofline estimate at measured rates"), json_close('}'));
}

/* --- resolved `auto` values
 * ----------------------------------------------------------------------------------- */

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
        for (size_t r = 0; r < sizeof reasons / sizeof reasons[0]; ++r)
            if (strcmp(reasons[r].key, key) == 0) reasons[r].write(parts, why);
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

void cleat_run_start_record(const cleat_run_monitor *monitor, const cleat_run_parts *parts,
                            const cleat_step_forecast *forecast, cleat_string *text) {
    char host[256] = "";
    if (gethostname(host, sizeof host - 1)) *host = 0;
    json_add(text, json_open(NULL, '{'), json_text("kind", "start"), json_time("time", cleat_wall_seconds()),
             json_count("step", parts->before), json_text("cleat", cleat_version()), json_count("pid", getpid()),
             json_clean("host", host[0] ? host : NULL), json_clean("command", parts->run->options->command));
    add_device(text, cleat_device_get_facts(parts->engine->device));
    add_cpus(text);
    add_model(text, parts);
    cleat_run_record_schedule(parts->schedule, text);
    add_plan(text, parts->engine->session->work);
    add_rates(text, parts->engine);
    add_forecast(text, forecast);
    add_auto(text, parts);
    add_gauges(text, monitor);
    json_add(text, json_close('}'));
}

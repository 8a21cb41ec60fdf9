/* A plan as JSON: stable names for all values; bytes and counts are integers, times are in seconds, null is
 * unknown. */
#include "plan_json.h"
#include "plan.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>

void plan_add_count(cJSON *object, const char *name, int64_t value) {
    cJSON_AddNumberToObject(object, name, (double)value);
}

void plan_add_known_count(cJSON *object, const char *name, int64_t value, int64_t unknown) {
    if (value == unknown)
        cJSON_AddNullToObject(object, name);
    else
        plan_add_count(object, name, value);
}

void plan_add_known(cJSON *object, const char *name, double value, double unknown) {
    if (value == unknown || !isfinite(value))
        cJSON_AddNullToObject(object, name);
    else
        cJSON_AddNumberToObject(object, name, value);
}

void plan_add_text(cJSON *object, const char *name, const char *text) {
    if (*text)
        cJSON_AddStringToObject(object, name, text);
    else
        cJSON_AddNullToObject(object, name);
}

/* "activations and workspace" -> "activations_and_workspace" */
static void add_bytes_of(cJSON *object, const char *title, int64_t bytes) {
    char name[64];
    size_t length = 0;
    for (; title[length] && length + 1 < sizeof name; ++length)
        name[length] = isalnum((unsigned char)title[length]) ? (char)tolower((unsigned char)title[length]) : '_';
    name[length] = 0;
    plan_add_count(object, name, bytes);
}

/* --- a card ------------------------------------------------------------------------------------------------------- */

static void add_device(cJSON *object, const cleat_device_facts *facts) {
    cJSON *device = cJSON_AddObjectToObject(object, "device");
    plan_add_text(device, "name", facts->name);
    plan_add_text(device, "platform", facts->platform);
    plan_add_text(device, "driver", facts->driver);
    plan_add_text(device, "kind", cleat_device_kind_text(facts->kind));
    plan_add_count(device, "memory_total", facts->memory_total);
    plan_add_known_count(device, "memory_free", facts->memory_free, 0);
    plan_add_text(device, "memory_source", facts->memory_source);
    plan_add_count(device, "max_allocation", facts->max_allocation);
}

static void add_rates(cJSON *object, const cleat_rates *rates) {
    cJSON *item = cJSON_AddObjectToObject(object, "rates");
    plan_add_known(item, "flops", rates->flops, 0);
    plan_add_known(item, "bytes_per_second", rates->bytes, 0);
    plan_add_known(item, "launch_seconds", rates->launch_seconds, 0);
    plan_add_known(item, "within", rates->within, 0);
    plan_add_text(item, "source", rates->source);
}

static void add_way(cJSON *object, const char *name, const cleat_fit_way *way) {
    cJSON *item = cJSON_AddObjectToObject(object, name);
    cJSON_AddBoolToObject(item, "fits", way->fits);
    plan_add_known_count(item, "micro_batch", way->micro_batch_size, 0);
    plan_add_known_count(item, "micro_batches", way->micro_batches, 0);
    plan_add_known_count(item, "bytes", way->bytes, 0);
    plan_add_known(item, "step_seconds", way->step_seconds, 0);
    plan_add_known(item, "samples_per_second", way->samples_per_second, 0);
}

static void add_buckets(cJSON *object, const cleat_fit_report *report) {
    cJSON *array = cJSON_AddArrayToObject(object, "buckets");
    for (size_t i = 0; i < report->n_buckets; ++i) {
        const cleat_fit_bucket *bucket = &report->buckets[i];
        cJSON *item = cJSON_CreateObject();
        plan_add_count(item, "length", bucket->length);
        if (report->data_known)
            plan_add_count(item, "samples", bucket->samples);
        else
            cJSON_AddNullToObject(item, "samples");
        plan_add_count(item, "global_batch", bucket->global_batch_size);
        plan_add_count(item, "micro_batch", bucket->micro_batch_size);
        plan_add_count(item, "micro_batches", bucket->micro_batches);
        cJSON_AddItemToArray(array, item);
    }
}

static void add_memory(cJSON *object, const cleat_fit_report *report) {
    plan_add_count(object, "bytes", report->bytes);
    plan_add_known(object, "share_of_limit", report->limit > 0 ? (double)report->bytes / (double)report->limit : 0, 0);
    cJSON *categories = cJSON_AddObjectToObject(object, "category_bytes");
    for (int c = 0; c < CLEAT_CATEGORIES; ++c)
        add_bytes_of(categories, cleat_category_name((cleat_category)c), report->category_bytes[c]);
    plan_add_count(object, "fixed_bytes", report->fixed_bytes);
    plan_add_count(object, "bytes_per_sample", report->bytes_per_sample);
    plan_add_count(object, "slabs", (int64_t)report->slabs);
    plan_add_count(object, "largest_slab", report->largest_slab);
    plan_add_count(object, "arena_bytes", report->arena_bytes);
    plan_add_count(object, "f32_arena_bytes", report->single_arena);
    plan_add_count(object, "lower_bound", report->lower_bound);
}

static cJSON *add_peak(cJSON *object, const char *name, int64_t bytes, const char *node) {
    cJSON *peak = cJSON_AddObjectToObject(object, name);
    plan_add_count(peak, "bytes", bytes);
    plan_add_text(peak, "node", node);
    return peak;
}

static void add_peaks(cJSON *object, const cleat_fit_report *report) {
    add_peak(object, "forward_peak", report->forward_peak, report->forward_peak_node);
    cJSON *training = add_peak(object, "training_peak", report->training_peak, report->training_peak_node);
    cJSON *parts = cJSON_AddObjectToObject(training, "parts");
    for (int part = 0; part < CLEAT_PEAK_PARTS; ++part)
        add_bytes_of(parts, cleat_peak_part_name(part), report->peak_parts[part]);
    plan_add_count(object, "fused_bytes", report->fused_bytes);
    plan_add_count(object, "fused_largest", report->fused_largest);
}

/* If nothing fits there is no plan: the same keys, with null values. */
static void add_no_plan(cJSON *object) {
    static const char *const names[] = {
        "parameters",       "bytes",         "share_of_limit",  "category_bytes",     "fixed_bytes",  "slabs",
        "bytes_per_sample", "largest_slab",  "arena_bytes",     "lower_bound",        "forward_peak", "training_peak",
        "fused_bytes",      "fused_largest", "f32_arena_bytes", "trained_parameters", "full_bytes"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) cJSON_AddNullToObject(object, names[i]);
}

static void add_time(cJSON *object, const cleat_fit_report *report) {
    const cleat_fit_way *way = plan_chosen_way(report);
    plan_add_known(object, "step_seconds", way->step_seconds, 0);
    plan_add_known(object, "samples_per_second", way->samples_per_second, 0);
    plan_add_known_count(object, "steps_per_epoch", report->steps_per_epoch, 0);
    plan_add_known(object, "epoch_seconds", report->epoch_seconds, 0);
    plan_add_known(object, "run_seconds", report->run_seconds, 0);
    add_rates(object, &report->rates);
}

/* --- learning rate ------------------------------------------------------------------------------------------------ */

static void add_setting(cJSON *object, const char *name, const cleat_profile *profile, const char *key) {
    char text[64];
    plan_add_text(object, name, cleat_profile_get(profile, key, text, sizeof text, NULL) == CLEAT_OK ? text : "");
}

static void add_learning_rate(cJSON *object, const plan_result *plan) {
    const cleat_profile *profile = plan->profile;
    cJSON *item = cJSON_AddObjectToObject(object, "learning_rate");
    cJSON_AddNumberToObject(item, "base", profile->train.learning_rate);
    plan_add_known_count(item, "base_batch", profile->train.base_batch_size, CLEAT_NONE);
    add_setting(item, "scaling", profile, "train.lr_scaling");
    cJSON *batches = cJSON_AddArrayToObject(item, "by_effective_batch");
    for (size_t i = 0; i < plan->rates.n_scalings; ++i) {
        const plan_scaling *row = &plan->rates.scalings[i];
        cJSON *entry = cJSON_CreateObject();
        plan_add_count(entry, "batch", row->batch);
        cJSON_AddBoolToObject(entry, "own", row->own);
        cJSON_AddNumberToObject(entry, "none", row->none);
        cJSON_AddNumberToObject(entry, "linear", row->linear);
        cJSON_AddNumberToObject(entry, "sqrt", row->sqrt);
        cJSON_AddItemToArray(batches, entry);
    }
    add_setting(item, "schedule", profile, "train.schedule");
    cJSON *points = cJSON_AddArrayToObject(item, "points");
    for (size_t i = 0; i < plan->rates.n_points; ++i) {
        const plan_point *point = &plan->rates.points[i];
        cJSON *entry = cJSON_CreateObject();
        plan_add_text(entry, "at", point->at);
        plan_add_known(entry, "epoch", point->epoch, -1);
        plan_add_known_count(entry, "step", point->step, -1);
        cJSON_AddNumberToObject(entry, "rate", point->rate);
        cJSON_AddItemToArray(points, entry);
    }
    plan_add_text(item, "error", plan->rates.error.text);
}

/* --- whole document ----------------------------------------------------------------------------------------------- */

static cJSON *make_card(const plan_result *plan, const plan_card *card) {
    const cleat_fit_report *report = &card->report;
    cJSON *object = cJSON_CreateObject();
    plan_add_text(object, "profile", plan->path);
    plan_add_text(object, "card", card->name);
    cJSON_AddBoolToObject(object, "present", card->present);
    plan_add_text(object, "card_differences", card->differences);
    plan_add_text(object, "kernels", card->kernels);
    add_device(object, &report->facts);
    plan_add_known_count(object, "micro_batch_asked", plan->micro_batch_size, 0);
    cJSON_AddBoolToObject(object, "fits", report->fits);
    plan_add_text(object, "reason", report->reason);
    plan_add_text(object, "precision", cleat_dtype_name(report->storage));
    cJSON_AddBoolToObject(object, "recompute", report->recompute);
    add_way(object, "stored", &report->stored);
    add_way(object, "recomputed", &report->recomputed);
    plan_add_count(object, "effective_batch", report->effective_batch);
    plan_add_count(object, "limit", report->limit);
    cJSON_AddBoolToObject(object, "data_known", report->data_known);
    add_buckets(object, report);
    if (report->bytes > 0) {
        plan_add_count(object, "parameters", report->parameters);
        plan_add_count(object, "trained_parameters", report->trained_parameters);
        plan_add_count(object, "full_bytes", report->full_bytes);
        add_memory(object, report);
        add_peaks(object, report);
    } else
        add_no_plan(object);
    add_time(object, report);
    add_learning_rate(object, plan);
    return object;
}

bool plan_print_json(const plan_result *plan, bool array) {
    cJSON *all = array ? cJSON_CreateArray() : make_card(plan, &plan->cards[0]);
    for (size_t i = 0; array && i < plan->count; ++i) cJSON_AddItemToArray(all, make_card(plan, &plan->cards[i]));
    char *text = cJSON_PrintUnformatted(all);
    if (text) printf("%s\n", text);
    cJSON_free(text);
    cJSON_Delete(all);
    return text != NULL;
}

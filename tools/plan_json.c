/* A plan as JSON: stable names for all values; bytes and counts are integers, times are in seconds, null is
 * unknown. */
#include "plan.h"

#include <ctype.h>
#include <math.h>

cleat_json_value plan_known(const char *name, double value, double unknown) {
    return json_exact(name, value == unknown ? NAN : value);
}

/* "activations and workspace" -> "activations_and_workspace" */
static void add_bytes_of(cleat_string *json, const char *title, int64_t bytes) {
    char name[64];
    size_t length = 0;
    for (; title[length] && length + 1 < sizeof name; ++length)
        name[length] = isalnum((unsigned char)title[length]) ? (char)tolower((unsigned char)title[length]) : '_';
    name[length] = 0;
    json_add(json, json_count(name, bytes));
}

static void add_device(cleat_string *json, const cleat_device_facts *facts) {
    json_add(json, json_open("device", '{'), json_some("name", facts->name), json_some("platform", facts->platform),
             json_some("driver", facts->driver), json_some("kind", cleat_device_kind_text(facts->kind)),
             json_count("memory_total", facts->memory_total), plan_known("memory_free", (double)facts->memory_free, 0),
             json_some("memory_source", facts->memory_source), json_count("max_allocation", facts->max_allocation),
             json_close('}'));
}

static void add_way(cleat_string *json, const char *name, const cleat_fit_way *way) {
    json_add(json, json_open(name, '{'), json_bool("fits", way->fits),
             plan_known("micro_batch", (double)way->micro_batch_size, 0),
             plan_known("micro_batches", (double)way->micro_batches, 0), plan_known("bytes", (double)way->bytes, 0),
             plan_known("step_seconds", way->step_seconds, 0),
             plan_known("samples_per_second", way->samples_per_second, 0), json_close('}'));
}

static void add_buckets(cleat_string *json, const cleat_fit_report *report) {
    json_add(json, json_open("buckets", '['));
    for (size_t i = 0; i < report->n_buckets; ++i) {
        const cleat_fit_bucket *bucket = &report->buckets[i];
        json_add(json, json_open(NULL, '{'), json_count("length", bucket->length),
                 json_exact("samples", report->data_known ? (double)bucket->samples : NAN),
                 json_count("global_batch", bucket->global_batch_size),
                 json_count("micro_batch", bucket->micro_batch_size),
                 json_count("micro_batches", bucket->micro_batches), json_close('}'));
    }
    json_add(json, json_close(']'));
}

static void add_memory(cleat_string *json, const cleat_fit_report *report) {
    const double share = report->limit > 0 ? (double)report->bytes / (double)report->limit : 0;
    json_add(json, json_count("parameters", report->parameters),
             json_count("trained_parameters", report->trained_parameters), json_count("full_bytes", report->full_bytes),
             json_count("bytes", report->bytes), plan_known("share_of_limit", share, 0),
             json_open("category_bytes", '{'));
    for (int c = 0; c < CLEAT_CATEGORIES; ++c)
        add_bytes_of(json, cleat_category_name((cleat_category)c), report->category_bytes[c]);
    json_add(json, json_close('}'), json_count("fixed_bytes", report->fixed_bytes),
             json_count("bytes_per_sample", report->bytes_per_sample), json_count("slabs", (int64_t)report->slabs),
             json_count("largest_slab", report->largest_slab), json_count("arena_bytes", report->arena_bytes),
             json_count("f32_arena_bytes", report->single_arena), json_count("lower_bound", report->lower_bound));
}

static void add_peaks(cleat_string *json, const cleat_fit_report *report) {
    json_add(json, json_open("forward_peak", '{'), json_count("bytes", report->forward_peak),
             json_some("node", report->forward_peak_node), json_close('}'), json_open("training_peak", '{'),
             json_count("bytes", report->training_peak), json_some("node", report->training_peak_node),
             json_open("parts", '{'));
    for (int part = 0; part < CLEAT_PEAK_PARTS; ++part)
        add_bytes_of(json, cleat_peak_part_name(part), report->peak_parts[part]);
    json_add(json, json_close('}'), json_close('}'));
}

/* If nothing fits there is no plan: the same keys, with null values. */
static void add_no_plan(cleat_string *json) {
    static const char *const names[] = {"parameters",       "bytes",
                                        "share_of_limit",   "category_bytes",
                                        "fixed_bytes",      "slabs",
                                        "bytes_per_sample", "largest_slab",
                                        "arena_bytes",      "lower_bound",
                                        "forward_peak",     "training_peak",
                                        "f32_arena_bytes",  "trained_parameters",
                                        "full_bytes"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) json_add(json, json_text(names[i], NULL));
}

static void add_time(cleat_string *json, const cleat_fit_report *report) {
    const cleat_fit_way *way = plan_chosen_way(report);
    const cleat_rates *rates = &report->rates;
    json_add(json, plan_known("step_seconds", way->step_seconds, 0),
             plan_known("samples_per_second", way->samples_per_second, 0),
             plan_known("steps_per_epoch", (double)report->steps_per_epoch, 0),
             plan_known("epoch_seconds", report->epoch_seconds, 0), plan_known("run_seconds", report->run_seconds, 0),
             json_open("rates", '{'), plan_known("flops", rates->flops, 0),
             plan_known("bytes_per_second", rates->bytes, 0), plan_known("launch_seconds", rates->launch_seconds, 0),
             plan_known("within", rates->within, 0), json_some("source", rates->source), json_close('}'));
}

static void add_setting(cleat_string *json, const char *name, const cleat_profile *profile, const char *key) {
    char text[64];
    const bool known = cleat_profile_get(profile, key, text, sizeof text, NULL) == CLEAT_OK;
    json_add(json, json_some(name, known ? text : ""));
}

static void add_learning_rate(cleat_string *json, const plan_result *plan) {
    const cleat_profile *profile = plan->profile;
    json_add(json, json_open("learning_rate", '{'), json_exact("base", profile->train.learning_rate),
             plan_known("base_batch", (double)profile->train.base_batch_size, CLEAT_NONE));
    add_setting(json, "scaling", profile, "train.lr_scaling");
    json_add(json, json_open("by_effective_batch", '['));
    for (size_t i = 0; i < plan->rates.n_scalings; ++i) {
        const plan_scaling *row = &plan->rates.scalings[i];
        json_add(json, json_open(NULL, '{'), json_count("batch", row->batch), json_bool("own", row->own),
                 json_exact("none", row->none), json_exact("linear", row->linear), json_exact("sqrt", row->sqrt),
                 json_close('}'));
    }
    json_add(json, json_close(']'));
    add_setting(json, "schedule", profile, "train.schedule");
    json_add(json, json_open("points", '['));
    for (size_t i = 0; i < plan->rates.n_points; ++i) {
        const plan_point *point = &plan->rates.points[i];
        json_add(json, json_open(NULL, '{'), json_some("at", point->at), plan_known("epoch", point->epoch, -1),
                 plan_known("step", (double)point->step, -1), json_exact("rate", point->rate), json_close('}'));
    }
    json_add(json, json_close(']'), json_some("error", plan->rates.error.text), json_close('}'));
}

static void add_card(cleat_string *json, const plan_result *plan, const plan_card *card) {
    const cleat_fit_report *report = &card->report;
    json_add(json, json_open(NULL, '{'), json_some("profile", plan->path), json_some("card", card->name),
             json_bool("present", card->present), json_some("card_differences", card->differences),
             json_some("kernels", card->kernels));
    add_device(json, &report->facts);
    json_add(json, plan_known("micro_batch_asked", (double)plan->micro_batch_size, 0), json_bool("fits", report->fits),
             json_some("reason", report->reason), json_some("precision", cleat_dtype_name(report->storage)),
             json_bool("recompute", report->recompute));
    add_way(json, "stored", &report->stored);
    add_way(json, "recomputed", &report->recomputed);
    json_add(json, json_count("effective_batch", report->effective_batch), json_count("limit", report->limit),
             json_bool("data_known", report->data_known));
    add_buckets(json, report);
    if (report->bytes > 0) {
        add_memory(json, report);
        add_peaks(json, report);
    } else
        add_no_plan(json);
    add_time(json, report);
    add_learning_rate(json, plan);
    json_add(json, json_close('}'));
}

void plan_print_json(const plan_result *plan, bool array) {
    cleat_string json = {0};
    if (array) json_add(&json, json_open(NULL, '['));
    for (size_t i = 0; i < plan->count; ++i) add_card(&json, plan, &plan->cards[i]);
    if (array) json_add(&json, json_close(']'));
    cli_print_json(&json);
}

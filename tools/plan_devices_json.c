/* A plan of several devices as JSON: bytes and counts are integers, times are in seconds, null is unknown. */
#include "plan.h"
#include "plan_devices.h"

static void add_device(cleat_string *json, const plan_devices *plan, int d) {
    const cleat_distributed_rank *rank = &plan->report.ranks[d];
    const cleat_distributed_device *device = &plan->devices[d];
    json_add(json, json_open(NULL, '{'), json_some("card", device->name), json_bool("fits", rank->fits),
             json_bool("left_out", rank->share == 0), json_count("share", rank->share),
             json_some("precision", cleat_dtype_name(rank->storage)), json_bool("recompute", rank->recompute),
             plan_known("micro_batch", (double)rank->micro_batch_size, 0),
             plan_known("micro_batches", (double)rank->micro_batches, 0), plan_known("bytes", (double)rank->bytes, 0),
             json_count("limit", rank->limit), plan_known("compute_seconds", rank->seconds, 0),
             plan_known("alone_seconds", rank->alone_seconds, 0),
             plan_known("other_step_seconds", rank->other_seconds, 0),
             plan_known("other_samples_per_second", rank->other_samples_per_second, 0),
             plan_known("other_price_per_hour", rank->other_price_per_hour, -1),
             plan_known("within", plan->cards[d].rates.within, 0), json_some("reason", rank->reason),
             plan_known("watts", device->watts, 0), plan_known("price_per_hour", device->price_per_hour, -1),
             json_close('}'));
}

static void add_exchange(cleat_string *json, const plan_devices *plan) {
    const cleat_distributed_exchange *made = &plan->report.exchange;
    json_add(json, json_open("exchange", '{'), json_some("network", plan->network.name),
             json_count("bytes_per_second", (int64_t)plan->network.bytes_per_second),
             json_exact("latency_seconds", plan->network.latency_seconds),
             plan_known("host_bytes_per_second", plan->network.host_bytes_per_second, 0),
             json_count("devices", made->ranks), plan_known("gradient_bytes", (double)made->bytes, 0),
             plan_known("sent_bytes", (double)made->sent_bytes, 0), json_open("tables", '['));
    for (int t = 0; t < made->tables; ++t) {
        const cleat_distributed_table *table = &made->table[t];
        json_add(json, json_open(NULL, '{'), json_some("name", table->name), json_count("rows", table->rows),
                 json_count("width", table->width), json_count("most_rows", table->most_rows),
                 json_count("any_rows", table->any_rows), json_some("exchanged", table->way),
                 json_count("sent_bytes", table->sent_bytes), json_close('}'));
    }
    json_add(json, json_close(']'), json_count("buckets", made->buckets),
             json_some("algorithm", made->buckets > 0 ? cleat_allreduce_name(made->way) : ""),
             json_open("algorithm_seconds", '{'));
    for (int way = 0; way < CLEAT_ALLREDUCES && made->buckets > 0; ++way)
        json_add(json, json_exact(cleat_allreduce_name((cleat_allreduce)way), made->way_seconds[way]));
    json_add(json, json_close('}'), json_exact("seconds", made->seconds),
             json_exact("exposed_seconds", made->exposed_seconds), json_close('}'));
}

static void add_time(cleat_string *json, const cleat_distributed_report *report) {
    const double hours = report->run_seconds / 3600;
    const double price = report->price_per_hour >= 0 && hours > 0 ? report->price_per_hour * hours : -1;
    json_add(json, plan_known("step_seconds", report->step_seconds, 0),
             plan_known("samples_per_second", report->samples_per_second, 0),
             plan_known("efficiency", report->efficiency, 0),
             plan_known("steps_per_epoch", (double)report->steps_per_epoch, 0),
             plan_known("epoch_seconds", report->epoch_seconds, 0), plan_known("run_seconds", report->run_seconds, 0),
             plan_known("watts", report->watts, 0), plan_known("step_joules", report->watts * report->step_seconds, 0),
             plan_known("run_kwh", report->watts * hours / 1000, 0),
             plan_known("price_per_hour", report->price_per_hour, -1), plan_known("run_price", price, -1));
}

static void add_scaling(cleat_string *json, const plan_devices *plan) {
    json_add(json, json_open("scaling", '['));
    for (int i = 0; i < plan->n_scales; ++i) {
        const plan_scale *scale = &plan->scales[i];
        json_add(json, json_open(NULL, '{'), json_count("devices", scale->count), json_count("used", scale->used),
                 json_exact("step_seconds", scale->step_seconds), json_exact("exposed_seconds", scale->exposed_seconds),
                 json_exact("samples_per_second", scale->samples_per_second),
                 json_exact("efficiency", scale->efficiency), json_close('}'));
    }
    json_add(json, json_close(']'));
}

void plan_devices_print_json(const plan_devices *plan) {
    const cleat_distributed_report *report = &plan->report;
    cleat_string json = {0};
    json_add(&json, json_open(NULL, '{'), json_some("profile", plan->path), json_bool("fits", report->used > 0),
             json_count("used", report->used),
             json_count("effective_batch", cleat_profile_effective_batch(plan->profile)),
             json_bool("data_known", report->data_known), json_count("length", report->length),
             json_count("global_batch", report->global_batch_size), json_open("devices", '['));
    for (int d = 0; d < report->count; ++d) add_device(&json, plan, d);
    json_add(&json, json_close(']'));
    add_exchange(&json, plan);
    add_time(&json, report);
    add_scaling(&json, plan);
    json_add(&json, json_close('}'));
    cli_print_json(&json);
}

/* A plan of several devices as JSON: bytes and counts are integers, times are in seconds, null is unknown. */
#include "plan_devices.h"
#include "plan_json.h"

#include <stdio.h>

static cJSON *make_device(const plan_devices *plan, int d) {
    const cleat_distributed_rank *rank = &plan->report.ranks[d];
    const cleat_distributed_device *device = &plan->devices[d];
    cJSON *object = cJSON_CreateObject();
    plan_add_text(object, "card", device->name);
    cJSON_AddBoolToObject(object, "fits", rank->fits);
    cJSON_AddBoolToObject(object, "left_out", rank->share == 0);
    plan_add_count(object, "share", rank->share);
    plan_add_text(object, "precision", cleat_dtype_name(rank->storage));
    cJSON_AddBoolToObject(object, "recompute", rank->recompute);
    plan_add_known_count(object, "micro_batch", rank->micro_batch_size, 0);
    plan_add_known_count(object, "micro_batches", rank->micro_batches, 0);
    plan_add_known_count(object, "bytes", rank->bytes, 0);
    plan_add_count(object, "limit", rank->limit);
    plan_add_known(object, "compute_seconds", rank->seconds, 0);
    plan_add_known(object, "alone_seconds", rank->alone_seconds, 0);
    plan_add_known(object, "other_step_seconds", rank->other_seconds, 0);
    plan_add_known(object, "other_samples_per_second", rank->other_samples_per_second, 0);
    plan_add_known(object, "other_price_per_hour", rank->other_price_per_hour, -1);
    plan_add_known(object, "within", plan->cards[d].rates.within, 0);
    plan_add_text(object, "reason", rank->reason);
    plan_add_known(object, "watts", device->watts, 0);
    plan_add_known(object, "price_per_hour", device->price_per_hour, -1);
    return object;
}

static void add_tables(cJSON *exchange, const cleat_distributed_exchange *made) {
    cJSON *tables = cJSON_AddArrayToObject(exchange, "tables");
    for (int t = 0; t < made->tables; ++t) {
        const cleat_distributed_table *table = &made->table[t];
        cJSON *object = cJSON_CreateObject();
        plan_add_text(object, "name", table->name);
        plan_add_count(object, "rows", table->rows);
        plan_add_count(object, "width", table->width);
        plan_add_count(object, "most_rows", table->most_rows);
        plan_add_count(object, "any_rows", table->any_rows);
        plan_add_text(object, "exchanged", table->way);
        plan_add_count(object, "sent_bytes", table->sent_bytes);
        cJSON_AddItemToArray(tables, object);
    }
}

static void add_exchange(cJSON *object, const plan_devices *plan) {
    const cleat_distributed_exchange *made = &plan->report.exchange;
    cJSON *exchange = cJSON_AddObjectToObject(object, "exchange");
    plan_add_text(exchange, "network", plan->network.name);
    plan_add_count(exchange, "bytes_per_second", (int64_t)plan->network.bytes_per_second);
    cJSON_AddNumberToObject(exchange, "latency_seconds", plan->network.latency_seconds);
    plan_add_known(exchange, "host_bytes_per_second", plan->network.host_bytes_per_second, 0);
    plan_add_count(exchange, "devices", made->ranks);
    plan_add_known_count(exchange, "gradient_bytes", made->bytes, 0);
    plan_add_known_count(exchange, "sent_bytes", made->sent_bytes, 0);
    add_tables(exchange, made);
    plan_add_count(exchange, "buckets", made->buckets);
    plan_add_text(exchange, "algorithm", made->buckets > 0 ? cleat_allreduce_name(made->way) : "");
    cJSON *ways = cJSON_AddObjectToObject(exchange, "algorithm_seconds");
    for (int way = 0; way < CLEAT_ALLREDUCES && made->buckets > 0; ++way)
        cJSON_AddNumberToObject(ways, cleat_allreduce_name((cleat_allreduce)way), made->way_seconds[way]);
    cJSON_AddNumberToObject(exchange, "seconds", made->seconds);
    cJSON_AddNumberToObject(exchange, "exposed_seconds", made->exposed_seconds);
}

static void add_time(cJSON *object, const cleat_distributed_report *report) {
    const double hours = report->run_seconds / 3600;
    plan_add_known(object, "step_seconds", report->step_seconds, 0);
    plan_add_known(object, "samples_per_second", report->samples_per_second, 0);
    plan_add_known(object, "efficiency", report->efficiency, 0);
    plan_add_known_count(object, "steps_per_epoch", report->steps_per_epoch, 0);
    plan_add_known(object, "epoch_seconds", report->epoch_seconds, 0);
    plan_add_known(object, "run_seconds", report->run_seconds, 0);
    plan_add_known(object, "watts", report->watts, 0);
    plan_add_known(object, "step_joules", report->watts * report->step_seconds, 0);
    plan_add_known(object, "run_kwh", report->watts * hours / 1000, 0);
    plan_add_known(object, "price_per_hour", report->price_per_hour, -1);
    plan_add_known(object, "run_price", report->price_per_hour >= 0 && hours > 0 ? report->price_per_hour * hours : -1,
                   -1);
}

static void add_scaling(cJSON *object, const plan_devices *plan) {
    cJSON *array = cJSON_AddArrayToObject(object, "scaling");
    for (int i = 0; i < plan->n_scales; ++i) {
        const plan_scale *scale = &plan->scales[i];
        cJSON *item = cJSON_CreateObject();
        plan_add_count(item, "devices", scale->count);
        plan_add_count(item, "used", scale->used);
        cJSON_AddNumberToObject(item, "step_seconds", scale->step_seconds);
        cJSON_AddNumberToObject(item, "exposed_seconds", scale->exposed_seconds);
        cJSON_AddNumberToObject(item, "samples_per_second", scale->samples_per_second);
        cJSON_AddNumberToObject(item, "efficiency", scale->efficiency);
        cJSON_AddItemToArray(array, item);
    }
}

bool plan_devices_print_json(const plan_devices *plan) {
    const cleat_distributed_report *report = &plan->report;
    cJSON *object = cJSON_CreateObject();
    plan_add_text(object, "profile", plan->path);
    cJSON_AddBoolToObject(object, "fits", report->used > 0);
    plan_add_count(object, "used", report->used);
    plan_add_count(object, "effective_batch", cleat_profile_effective_batch(plan->profile));
    cJSON_AddBoolToObject(object, "data_known", report->data_known);
    plan_add_count(object, "length", report->length);
    plan_add_count(object, "global_batch", report->global_batch_size);
    cJSON *devices = cJSON_AddArrayToObject(object, "devices");
    for (int d = 0; d < report->count; ++d) cJSON_AddItemToArray(devices, make_device(plan, d));
    add_exchange(object, plan);
    add_time(object, report);
    add_scaling(object, plan);
    char *text = cJSON_PrintUnformatted(object);
    if (text) printf("%s\n", text);
    cJSON_free(text);
    cJSON_Delete(object);
    return text != NULL;
}

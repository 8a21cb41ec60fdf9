/* cleat plan --devices: a run on several devices, which need not be present, connected by a network. */
#include "plan.h"
#include "platform/text.h"

#include <cleat/card.h>
#include <cleat/distributed_plan.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The same run on fewer of several equal devices. */
typedef struct plan_scale {
    int count, used;
    double step_seconds, exposed_seconds, samples_per_second, efficiency;
} plan_scale;

enum { PLAN_SCALES = 8 };

typedef struct plan_devices {
    const char *path;
    const cleat_profile *profile;
    cleat_network network;
    int count;
    cleat_card cards[CLEAT_PLAN_DEVICES];                 /* [count] */
    cleat_distributed_device devices[CLEAT_PLAN_DEVICES]; /* [count] */
    cleat_distributed_report report;
    int n_scales; /* 0 unless there are four devices or more, all equal */
    plan_scale scales[PLAN_SCALES];
} plan_devices;

/* Reads the card called `name` [size] of --devices into `count` places. */
static cleat_status add_cards(const char *name, size_t size, int count, plan_devices *plan, cleat_error *error) {
    char text[4096];
    cleat_card card;
    if (size >= sizeof text) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "--devices: a name is too long");
    snprintf(text, sizeof text, "%.*s", (int)size, name);
    cleat_status status = cleat_card_open(text, &card, error);
    if (status) return cleat_fail_in(error, status, "--devices");
    for (int i = 0; i < count; ++i) plan->cards[plan->count++] = card;
    return CLEAT_OK;
}

/* Reads one element of --devices, "t4" or "4*t4". */
static cleat_status add_element(const char *text, size_t size, plan_devices *plan, cleat_error *error) {
    const size_t digits = strspn(text, "0123456789");
    const char *name = text;
    long count = 1;
    if (digits > 0 && digits < size && text[digits] == '*') {
        count = digits <= 4 ? strtol(text, NULL, 10) : CLEAT_PLAN_DEVICES + 1;
        name = text + digits + 1;
    }
    const size_t rest = size - (size_t)(name - text);
    if (rest == 0 || count < 1)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "--devices: '%.*s' is not a device: give names as for --card, separated by commas, such as "
                          "t4,t4,rx6600xt or 2*t4,rx6600xt",
                          (int)(size < 60 ? size : 60), text);
    if (count > CLEAT_PLAN_DEVICES - plan->count)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "--devices: more than %d devices", CLEAT_PLAN_DEVICES);
    return add_cards(name, rest, (int)count, plan, error);
}

static cleat_status read_devices(const char *text, plan_devices *plan, cleat_error *error) {
    cleat_status status;
    for (;;) {
        const size_t size = strcspn(text, ",");
        status = add_element(text, size, plan, error);
        if (status || !text[size]) break;
        text += size + 1;
    }
    for (int i = 0; i < plan->count; ++i)
        plan->devices[i] = (cleat_distributed_device){.name = plan->cards[i].name,
                                                      .facts = &plan->cards[i].facts,
                                                      .rates = &plan->cards[i].rates,
                                                      .watts = plan->cards[i].board_watts,
                                                      .price_per_hour = -1};
    return status;
}

/* Reads one element of --price, "rtx4090=0.35". */
static cleat_status read_price(const char *text, size_t size, plan_devices *plan, cleat_error *error) {
    const size_t name = strcspn(text, "=,");
    char number[32] = "", *end = number;
    double price = -1;
    bool known = false;
    if (name < size && size - name - 1 < sizeof number) {
        snprintf(number, sizeof number, "%.*s", (int)(size - name - 1), text + name + 1);
        price = strtod(number, &end);
    }
    if (end == number || *end || !isfinite(price) || price < 0)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "--price: '%.*s' is not a price: give DEVICE=PRICE per hour, separated by commas, such as "
                          "t4=0,rtx4090=0.35",
                          (int)(size < 60 ? size : 60), text);
    for (int i = 0; i < plan->count; ++i) {
        if (strlen(plan->cards[i].name) != name || strncasecmp(plan->cards[i].name, text, name) != 0) continue;
        plan->devices[i].price_per_hour = price;
        known = true;
    }
    if (known) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_ARGUMENT, "--price: '%.*s' is not one of --devices",
                      (int)(name < 60 ? name : 60), text);
}

static cleat_status read_prices(const char *text, plan_devices *plan, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    while (text && !status) {
        const size_t size = strcspn(text, ",");
        status = read_price(text, size, plan, error);
        text = text[size] ? text + size + 1 : NULL;
    }
    for (int i = 0; i < plan->count && !status; ++i)
        if (plan->devices[i].price_per_hour < 0)
            status = cleat_fail(error, CLEAT_ERR_ARGUMENT,
                                "--price: the price of %s is missing; add %s=PRICE, which may be 0",
                                plan->cards[i].name, plan->cards[i].name);
    return status;
}

static cleat_status read_request(const plan_devices_request *request, plan_devices *plan, cleat_error *error) {
    cleat_status status = read_devices(request->devices, plan, error);
    if (!status && request->price) status = read_prices(request->price, plan, error);
    if (status) return status;
    if (!request->network && plan->count > 1)
        return cleat_fail(
            error, CLEAT_ERR_ARGUMENT,
            "--devices needs --network, the network between the devices: memory, pcie3, 1Gb, 25Gb,5us, ...");
    status = cleat_network_parse(request->network ? request->network : "memory", &plan->network, error);
    return status ? cleat_fail_in(error, status, "--network") : status;
}

static cleat_status add_scale(plan_devices *plan, int count, cleat_distributed_report *report, cleat_error *error) {
    cleat_status status = cleat_fit_distributed(plan->profile, count, plan->devices, &plan->network, report, error);
    if (!status)
        plan->scales[plan->n_scales++] =
            (plan_scale){.count = count,
                         .used = report->used,
                         .step_seconds = report->step_seconds,
                         .exposed_seconds = report->used > 1 ? report->exchange.exposed_seconds : 0,
                         .samples_per_second = report->samples_per_second,
                         .efficiency = report->efficiency};
    return status;
}

/* 1, 2, 4, ... and all of equal devices. */
static cleat_status add_scales(plan_devices *plan, cleat_error *error) {
    for (int i = 1; i < plan->count; ++i)
        if (strcmp(plan->cards[i].name, plan->cards[0].name) != 0) return CLEAT_OK;
    if (plan->count < 4 || plan->report.used == 0) return CLEAT_OK;
    cleat_distributed_report *report = calloc(1, sizeof *report);
    if (!report) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the plan");
    cleat_status status = CLEAT_OK;
    for (int count = 1; count < plan->count && !status; count *= 2) status = add_scale(plan, count, report, error);
    if (!status) status = add_scale(plan, plan->count, report, error);
    free(report);
    return status;
}

static cleat_status make_plan(plan_devices *plan, cleat_error *error) {
    cleat_status status =
        cleat_fit_distributed(plan->profile, plan->count, plan->devices, &plan->network, &plan->report, error);
    /* Messages about the data would be the same each time. */
    if (!status) cleat_set_log(NULL, NULL, CLEAT_LOG_ERROR);
    return status ? status : add_scales(plan, error);
}

/* --- as text --------------------------------------------------------------------------------------------------- */

/* Price of a million samples; negative: unknown. */
static double million(double price_per_hour, double samples_per_second) {
    return price_per_hour < 0 || samples_per_second <= 0 ? -1 : price_per_hour / 3600 * 1e6 / samples_per_second;
}

/* Why it takes part or not, and the cost of the other decision. */
static void print_decision(const cleat_distributed_report *report, const cleat_distributed_rank *rank, int count) {
    const char *it = count > 1 ? "one of them" : "it";
    const double change = 100 * (rank->other_seconds / report->step_seconds - 1);
    const double now = million(report->price_per_hour, report->samples_per_second);
    const double other = million(rank->other_price_per_hour, rank->other_samples_per_second);
    if (!rank->fits)
        printf("left out: %s", rank->reason);
    else if (rank->share == 0 && !isfinite(rank->other_seconds))
        printf("left out: there are too few samples");
    else if (!isfinite(rank->other_seconds))
        printf("no other device can do it");
    else if (rank->share > 0 && change < 0.05)
        printf("without %s a step would not take longer: another device does as well", it);
    else
        printf("%s %s a step would take %.*f %% longer", rank->share > 0 ? "without" : "left out: with", it,
               change < 10 ? 1 : 0, change);
    if (now >= 0 && other >= 0) printf(", and a million samples would cost %.4g instead of %.4g", other, now);
    printf("\n");
}

static const char *row_name(const plan_devices *plan, int d, int count, char text[64]) {
    snprintf(text, 64, count > 1 ? "%s x %d" : "%s", plan->cards[d].name, count);
    return text;
}

static void print_device(const plan_devices *plan, int d, int count) {
    const cleat_distributed_rank *rank = &plan->report.ranks[d];
    char name[64], share[CLI_SHORT] = "-", cut[CLI_SHORT] = "-", bytes[CLI_SHORT] = "-", part[CLI_SHORT] = "-",
                   seconds[CLI_SHORT] = "-", alone[CLI_SHORT] = "-";
    if (rank->share > 0) {
        snprintf(share, sizeof share, "%lld", (long long)rank->share);
        snprintf(cut, sizeof cut, "%lld x %lld", (long long)rank->micro_batch_size, (long long)rank->micro_batches);
        snprintf(part, sizeof part, "%.0f %%", 100 * (double)rank->bytes / (double)rank->limit);
        cleat_bytes_text(rank->bytes, bytes);
        cli_duration(rank->seconds, seconds);
    }
    if (rank->fits) cli_duration(rank->alone_seconds, alone);
    printf("  %-15s %-9s %6s %10s %10s %11s %9s %10s %10s\n", row_name(plan, d, count, name),
           cleat_dtype_name(rank->storage), share, cut,
           rank->share == 0  ? "-"
           : rank->recompute ? "yes"
                             : "no",
           bytes, part, seconds, alone);
}

/* The number of devices from d on that are alike: of one name, and with the same share, or else all with or
 * all without one. */
static int count_alike(const plan_devices *plan, int d, bool same_share) {
    const int64_t share = plan->report.ranks[d].share;
    int n = 1;
    for (; d + n < plan->count; ++n) {
        const int64_t other = plan->report.ranks[d + n].share;
        if (strcmp(plan->cards[d].name, plan->cards[d + n].name) != 0) break;
        if (same_share ? other != share : (other > 0) != (share > 0)) break;
    }
    return n;
}

static void print_devices(const plan_devices *plan) {
    char name[64];
    printf("  %-15s %-9s %6s %10s %10s %11s %9s %10s %10s\n", "device", "precision", "share", "batch", "recompute",
           "planned", "of usable", "compute", "alone");
    for (int d = 0, count; d < plan->count; d += count) {
        count = count_alike(plan, d, true);
        print_device(plan, d, count);
    }
    printf("\n");
    for (int d = 0, count; d < plan->count; d += count) {
        count = count_alike(plan, d, false);
        printf("  %-15s ", row_name(plan, d, count, name));
        print_decision(&plan->report, &plan->report.ranks[d], count);
    }
    for (int d = 1; d < plan->count; ++d)
        if (plan->report.ranks[d].storage != plan->report.ranks[0].storage) {
            printf("  The devices compute in different precisions; train.precision = f32 sets one for all.\n");
            break;
        }
}

static void label(const char *name) {
    printf("  %-12s ", name);
}

static void print_rate(double bytes_per_second) {
    if (bytes_per_second < 1e9)
        printf("%.4g MB/s", bytes_per_second / 1e6);
    else
        printf("%.4g GB/s", bytes_per_second / 1e9);
}

static void print_table(const cleat_distributed_table *table) {
    char text[CLI_SHORT];
    label("");
    printf("%s [%lld, %lld]: %s", table->name, (long long)table->rows, (long long)table->width, table->way);
    if (table->is_whole)
        printf(", as a batch may touch all;");
    else
        printf(", at most %lld of a device and %lld of all;", (long long)table->most_rows, (long long)table->any_rows);
    printf(" each device sends %s%s\n", table->is_whole ? "" : "at most ", cleat_bytes_text(table->sent_bytes, text));
}

static void print_exchange(const plan_devices *plan) {
    const cleat_distributed_exchange *exchange = &plan->report.exchange;
    char text[CLI_SHORT], other[CLI_SHORT];
    if (exchange->ranks == 0) return;
    label("gradients");
    printf("%s in %d bucket%s over %s: ", cleat_bytes_text(exchange->dense_bytes, text), exchange->buckets,
           exchange->buckets == 1 ? "" : "s", plan->network.name);
    print_rate(plan->network.bytes_per_second);
    printf(", a message takes %.4g us\n", plan->network.latency_seconds * 1e6);
    for (int t = 0; t < exchange->tables; ++t) print_table(&exchange->table[t]);
    label("all-reduce");
    printf("%d devices: ", exchange->ranks);
    for (int way = 0; way < CLEAT_ALLREDUCES; ++way)
        printf("%s%s%s %s", way ? ", " : "", way == (int)exchange->way ? "-> " : "",
               cleat_allreduce_name((cleat_allreduce)way), cli_duration(exchange->way_seconds[way], text));
    printf("\n");
    label("");
    printf("%s with copies between devices and hosts, of which the backward pass hides %s\n",
           cli_duration(exchange->seconds, text), cli_duration(exchange->seconds - exchange->exposed_seconds, other));
}

/* The least time of one device alone; its number in *device. */
static double fastest_alone(const cleat_distributed_report *report, int *device) {
    double least = INFINITY;
    for (int d = 0; d < report->count; ++d)
        if (report->ranks[d].fits && report->ranks[d].alone_seconds < least) {
            least = report->ranks[d].alone_seconds;
            *device = d;
        }
    return least;
}

static void print_step(const plan_devices *plan) {
    const cleat_distributed_report *report = &plan->report;
    char text[CLI_SHORT];
    int device = 0;
    const double alone = fastest_alone(report, &device);
    label("step");
    printf("%s", cli_duration(report->step_seconds, text));
    if (report->used > 1) {
        printf(" = %s on the slowest device",
               cli_duration(report->step_seconds - report->exchange.exposed_seconds, text));
        printf(" + %s exposed communication", cli_duration(report->exchange.exposed_seconds, text));
        printf("; %s alone: %s", plan->cards[device].name, cli_duration(alone, text));
    } else
        printf(": %s alone is the fastest choice", plan->cards[device].name);
    printf("\n");
    label("speed");
    printf("%.4g samples/s; efficiency %.1f %% of the %d device%s that take%s part, each alone\n",
           report->samples_per_second, 100 * report->efficiency, report->used, report->used == 1 ? "" : "s",
           report->used == 1 ? "s" : "");
}

static void print_energy(const plan_devices *plan) {
    const cleat_distributed_report *report = &plan->report;
    label("energy");
    if (report->watts > 0) {
        printf("at most %.4g J a step (%.4g W, the devices at full load)", report->watts * report->step_seconds,
               report->watts);
        if (report->run_seconds > 0) printf(", %.4g kWh a run", report->watts * report->run_seconds / 3.6e6);
    } else {
        printf("unknown: speed.board_watts is not in the card file of");
        for (int d = 0, n = 0; d < plan->count; ++d)
            if (report->ranks[d].share > 0 && plan->devices[d].watts <= 0 &&
                (d == 0 || strcmp(plan->cards[d].name, plan->cards[d - 1].name) != 0))
                printf("%s %s", n++ ? "," : "", plan->cards[d].name);
    }
    printf("\n");
}

static void print_run(const plan_devices *plan) {
    const cleat_distributed_report *report = &plan->report;
    char epoch[CLI_SHORT], all[CLI_SHORT];
    label("run");
    if (report->run_seconds > 0)
        printf("an epoch of %lld steps %s, %lld epochs %s\n", (long long)report->steps_per_epoch,
               cli_duration(report->epoch_seconds, epoch), (long long)plan->profile->train.epochs,
               cli_duration(report->run_seconds, all));
    else
        printf("epochs: unknown without the data\n");
    if (report->price_per_hour < 0) return;
    label("price");
    printf("%.4g an hour", report->price_per_hour);
    if (report->run_seconds > 0) printf(", %.4g the run", report->price_per_hour * report->run_seconds / 3600);
    printf(", %.4g a million samples\n", report->price_per_hour / 3600 * 1e6 / report->samples_per_second);
}

static void print_scaling(const plan_devices *plan) {
    char step[CLI_SHORT], exposed[CLI_SHORT];
    if (plan->n_scales == 0) return;
    printf("\n  %8s %9s %11s %11s %12s %11s\n", "devices", "take part", "step", "exposed", "samples/s", "efficiency");
    for (int i = 0; i < plan->n_scales; ++i) {
        const plan_scale *scale = &plan->scales[i];
        printf("  %8d %9d %11s %11s %12.4g %9.1f %%\n", scale->count, scale->used,
               cli_duration(scale->step_seconds, step), cli_duration(scale->exposed_seconds, exposed),
               scale->samples_per_second, 100 * scale->efficiency);
    }
}

/* The least certain of the rates that the plan compares. */
static double largest_within(const plan_devices *plan) {
    double within = 1;
    for (int d = 0; d < plan->count; ++d) within = fmax(within, plan->cards[d].rates.within);
    return within;
}

static void print_text(const plan_devices *plan) {
    const cleat_distributed_report *report = &plan->report;
    printf("%s on %d device%s: global batch of %lld samples, length %lld\n", plan->path, plan->count,
           plan->count == 1 ? "" : "s", (long long)report->global_batch_size, (long long)report->length);
    if (!report->data_known) printf("  %s does not exist: planning the longest length\n", plan->profile->data->path);
    printf("\n");
    print_devices(plan);
    if (report->used == 0) return;
    printf("\n");
    print_exchange(plan);
    print_step(plan);
    print_energy(plan);
    print_run(plan);
    print_scaling(plan);
    printf("\n  share: samples of a global batch. compute: this share and the update; alone: the whole global batch on "
           "this device.\n  Times are estimates from the rates of cards and network, not "
           "measurements");
    if (largest_within(plan) > 1) printf(": the true times lie within a factor of %g", largest_within(plan));
    printf(".\n");
}

/* --- as JSON: bytes and counts are integers, times are in seconds, null is unknown ------------------------------- */

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

static void print_json(const plan_devices *plan) {
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

int plan_devices_run(const cli_command *command, const plan_devices_request *request, const cleat_profile *profile) {
    cleat_error error = {0};
    plan_devices *plan = calloc(1, sizeof *plan);
    if (!plan) return cli_finish(cleat_fail(&error, CLEAT_ERR_MEMORY, "no memory for the plan"), &error);
    plan->path = request->path;
    plan->profile = profile;
    cleat_status status = read_request(request, plan, &error);
    int exit_code = status == CLEAT_ERR_ARGUMENT ? cli_usage(command, "%s", error.text) : 0;
    if (!status) status = make_plan(plan, &error);
    if (!status) (request->json ? print_json : print_text)(plan);
    if (exit_code == 0) exit_code = cli_finish(status, &error);
    if (exit_code == 0 && plan->report.used == 0) exit_code = EXIT_FIT;
    free(plan);
    return exit_code;
}

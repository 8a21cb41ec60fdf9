/* A plan of several devices as text. */
#include "plan_devices.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

void plan_devices_print(const plan_devices *plan) {
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
           "this device.\n  Times are estimates from the rates in the card files and of the network, not "
           "measurements");
    if (largest_within(plan) > 1) printf(": the true times lie within a factor of %g", largest_within(plan));
    printf(".\n");
}

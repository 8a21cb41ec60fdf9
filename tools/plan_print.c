/* A plan as text: one card in sections, or a table of cards. The learning rate is printed by plan_rate.c. */
#include "plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { COLUMNS = 110 };

static void spaces(int n) {
    for (int i = 0; i < n; ++i) putchar(' ');
}

/* Prints text in lines of at most COLUMNS; the first starts in column `at`, the others are indented by
 * `indent`. */
static void print_wrapped(int at, int indent, const char *text) {
    while (*text) {
        int length = (int)strcspn(text, " \n");
        if (at > indent && at + 1 + length > COLUMNS) {
            putchar('\n');
            spaces(indent);
            at = indent;
        } else if (at > indent) {
            putchar(' ');
            ++at;
        }
        printf("%.*s", length, text);
        at += length;
        text += length;
        text += strspn(text, " \n");
    }
    putchar('\n');
}

static void label(const char *name) {
    printf("  %-20s", name);
}

static void print_bytes_line(const char *name, int64_t bytes) {
    char text[CLI_SHORT];
    printf("  %-26s %12s\n", name, cleat_bytes_text(bytes, text));
}

static int percent(int64_t part, int64_t whole) {
    return whole > 0 ? (int)lround(100.0 * (double)part / (double)whole) : 0;
}

static const char *or_dash(double value, const char *text) {
    return value > 0 ? text : "-";
}

static void print_seconds(int width, double seconds) {
    char text[CLI_SHORT];
    printf("%*s", width, or_dash(seconds, cli_duration(seconds, text)));
}

static void print_per_second(int width, double rate) {
    char text[CLI_SHORT];
    snprintf(text, sizeof text, rate < 10 ? "%.2f" : rate < 1000 ? "%.1f" : "%.0f", rate);
    printf("%*s", width, or_dash(rate, text));
}

static const cleat_fit_bucket *longest(const cleat_fit_report *report) {
    return report->n_buckets ? &report->buckets[report->n_buckets - 1] : NULL;
}

static int64_t longest_length(const plan_result *plan) {
    for (size_t i = 0; i < plan->count; ++i)
        if (longest(&plan->cards[i].report)) return longest(&plan->cards[i].report)->length;
    return plan->profile->data->max_length;
}

/* Prints the planned lengths if they are not those of the data. */
static void print_lengths_planned(const plan_result *plan) {
    int64_t global_batch_size = cleat_profile_effective_batch(plan->profile);
    if (plan->cards[0].report.data_known) return;
    label("data");
    if (plan->micro_batch_size == 0) {
        printf("%s does not exist: planning the longest length, %lld\n", plan->profile->data->path,
               (long long)longest_length(plan));
        return;
    }
    printf("not read: planning the requested micro-batch of %lld at the longest length, %lld\n",
           (long long)plan->micro_batch_size, (long long)longest_length(plan));
    if (plan->micro_batch_size > global_batch_size)
        printf("%22ssuch a run requires train.effective_batch_size = %lld (it is %lld)\n", "",
               (long long)plan->micro_batch_size, (long long)global_batch_size);
}

static void print_head(const plan_result *plan) {
    const plan_card *card = &plan->cards[0];
    const cleat_fit_report *report = &card->report;
    const cleat_device_facts *facts = &report->facts;
    char limit[CLI_SHORT], available[CLI_SHORT], planned[CLI_SHORT];
    cleat_bytes_text(report->limit, limit);
    cleat_bytes_text(facts->memory_free > 0 ? facts->memory_free : facts->memory_total, available);
    printf("%s on %s (%s%s%s)\n\n", plan->path, facts->name,
           card->present ? "in this machine" : "not in this machine: card file ",
           card->present && *card->name ? "; card file " : "", card->name);
    if (report->fits) {
        const cleat_fit_way *way = plan_chosen_way(report);
        label("fits");
        printf("%s planned of %s usable: %d %%\n", cleat_bytes_text(report->bytes, planned), limit,
               percent(report->bytes, report->limit));
        label("optimizer step");
        printf("%lld x %lld (micro-batch size x micro-batches) at length %lld%s\n", (long long)way->micro_batch_size,
               (long long)way->micro_batches, (long long)longest_length(plan),
               report->recompute ? ", activations recomputed" : "");
        label("because");
    } else
        label("does not fit");
    print_wrapped(22, 22, report->reason);
    label("usable memory");
    printf("%s: run.max_memory_usage %g of %s %s%s%s%s\n", limit, plan->profile->run.max_memory_usage, available,
           facts->memory_free > 0 ? "free" : "in total", *facts->memory_source ? " (" : "", facts->memory_source,
           *facts->memory_source ? ")" : "");
    if (*card->differences) {
        label("driver vs. card");
        print_wrapped(22, 22, card->differences);
    }
    if (*card->kernels) {
        label("kernels");
        print_wrapped(22, 22, card->kernels);
    }
    print_lengths_planned(plan);
}

/* Prints what frozen parameters save, if there are any. */
static void print_frozen(const cleat_fit_report *report) {
    char full[CLI_SHORT], part[CLI_SHORT];
    if (report->trained_parameters == report->parameters) return;
    printf("  %lld of %lld parameters are trained (%.3g %%), the others frozen: %s instead of %s with all trained\n",
           (long long)report->trained_parameters, (long long)report->parameters,
           100 * (double)report->trained_parameters / (double)report->parameters, cleat_bytes_text(report->bytes, part),
           cleat_bytes_text(report->full_bytes, full));
}

static void print_blocks(const cleat_fit_report *report) {
    char blocks[CLI_SHORT], plain[CLI_SHORT];
    if (report->frozen_type == CLEAT_F32) return;
    const int64_t size = cleat_dtype_size(report->storage);
    printf("  frozen weights in %s: %s instead of %s in %s", cleat_dtype_name(report->frozen_type),
           cleat_bytes_text(report->category_bytes[CLEAT_BYTES_BLOCK_WEIGHTS], blocks),
           cleat_bytes_text(report->block_elements * size, plain),
           cleat_dtype_name(size == 4 ? CLEAT_F32 : report->storage));
    if (report->unblocked_weights)
        printf("; %lld others stay: rows that are no whole blocks, or read by other layers too",
               (long long)report->unblocked_weights);
    printf("\n");
}

static void print_memory(const cleat_fit_report *report) {
    char one[CLI_SHORT], two[CLI_SHORT];
    printf("\nmemory\n");
    for (int c = 0; c < CLEAT_CATEGORIES; ++c)
        if (report->category_bytes[c])
            print_bytes_line(cleat_category_name((cleat_category)c), report->category_bytes[c]);
    print_bytes_line("all", report->bytes);
    print_frozen(report);
    print_blocks(report);
    if (report->storage == CLEAT_TF32) printf("  in f32; products round their operands to TF32\n");
    if (cleat_dtype_size(report->storage) < 4)
        printf("  in %s, activations and workspace take %.2f of the %s needed in f32\n",
               cleat_dtype_name(report->storage), (double)report->arena_bytes / (double)report->single_arena,
               cleat_bytes_text(report->single_arena, one));
    printf("  %s fixed + %s per sample of the longest length\n", cleat_bytes_text(report->fixed_bytes, one),
           cleat_bytes_text(report->bytes_per_sample, two));
    printf("  %zu slab%s, the largest %s", report->slabs, report->slabs == 1 ? "" : "s",
           cleat_bytes_text(report->largest_slab, one));
    if (report->lower_bound > 0)
        printf("; activations and workspace at %.3f x their lower bound",
               (double)report->arena_bytes / (double)report->lower_bound);
    printf("\n");
}

static void print_peak(const char *name, int64_t bytes, const char *node) {
    char text[CLI_SHORT];
    printf("  %-26s %12s  at %s\n", name, cleat_bytes_text(bytes, text), node);
}

static void print_peaks(const cleat_fit_report *report) {
    printf("\npeak memory of activations and workspace, longest length\n");
    print_peak("forward", report->forward_peak, report->forward_peak_node);
    print_peak("forward + backward", report->training_peak, report->training_peak_node);
    for (int part = 0; part < CLEAT_PEAK_PARTS; ++part) {
        char text[CLI_SHORT];
        if (report->peak_parts[part])
            printf("    %-24s %12s\n", cleat_peak_part_name(part), cleat_bytes_text(report->peak_parts[part], text));
    }
}

static void print_way(const char *name, const cleat_fit_way *way, bool chosen) {
    char bytes[CLI_SHORT], cut[CLI_SHORT] = "does not fit";
    if (way->fits)
        snprintf(cut, sizeof cut, "%lld x %lld", (long long)way->micro_batch_size, (long long)way->micro_batches);
    printf("  %-20s %14s %12s", name, way->bytes ? cut : "not planned",
           or_dash((double)way->bytes, cleat_bytes_text(way->bytes, bytes)));
    print_seconds(12, way->step_seconds);
    print_per_second(12, way->samples_per_second);
    printf("%s\n", chosen ? "  <- chosen" : !way->fits && way->bytes ? "  (bytes of one sample)" : "");
}

static void print_ways(const cleat_fit_report *report) {
    if (!report->stored.bytes && !report->recomputed.bytes) return;
    printf("\n%-22s %14s %12s%12s%12s\n", "activations", "batch x micro", "bytes", "step", "samples/s");
    print_way("stored", &report->stored, report->fits && !report->recompute);
    print_way("recomputed", &report->recomputed, report->fits && report->recompute);
}

static void print_buckets(const cleat_fit_report *report) {
    printf("\nmicro-batches\n  %10s %10s %13s %12s %14s\n", "length", "samples", "global batch", "micro-batch",
           "micro-batches");
    for (size_t i = 0; i < report->n_buckets; ++i) {
        const cleat_fit_bucket *bucket = &report->buckets[i];
        char samples[CLI_SHORT] = "-";
        if (report->data_known) snprintf(samples, sizeof samples, "%lld", (long long)bucket->samples);
        printf("  %10lld %10s %13lld %12lld %14lld\n", (long long)bucket->length, samples,
               (long long)bucket->global_batch_size, (long long)bucket->micro_batch_size,
               (long long)bucket->micro_batches);
    }
}

static double two_digits(double x) {
    const double unit = pow(10, floor(log10(x)) - 1);
    return round(x / unit) * unit;
}

/* A time, or the range in which it lies if estimates may be wrong by more than a factor of 1.3. */
static const char *range_of(const cleat_fit_report *report, double seconds, char text[2 * CLI_SHORT]) {
    const double within = report->rates.within;
    char least[CLI_SHORT], most[CLI_SHORT];
    if (within < 1.3) return cli_duration(seconds, text);
    snprintf(text, 2 * CLI_SHORT, "%s to %s", cli_duration(two_digits(seconds / within), least),
             cli_duration(two_digits(seconds * within), most));
    return text;
}

static void print_time(const plan_result *plan) {
    const cleat_fit_report *report = &plan->cards[0].report;
    char text[2 * CLI_SHORT];
    if (plan_chosen_way(report)->step_seconds <= 0) return;
    printf("\ntime (estimate from: %s", report->rates.source);
    if (report->rates.within > 1) printf(", within a factor of %g", report->rates.within);
    printf(")\n");
    printf("  a step at the longest length takes %s", range_of(report, plan_chosen_way(report)->step_seconds, text));
    if (report->steps_per_epoch > 0) {
        printf(", an epoch of %lld steps %s", (long long)report->steps_per_epoch,
               range_of(report, report->epoch_seconds, text));
        printf(", the run of %lld epochs %s", (long long)plan->profile->train.epochs,
               range_of(report, report->run_seconds, text));
    } else
        printf("; epochs: unknown without the data");
    printf("\n");
}

static void print_same_everywhere(const plan_result *plan) {
    printf("  The learning rate curve is the same on every card: the global batch has %lld samples on all of them.\n",
           (long long)cleat_profile_effective_batch(plan->profile));
}

void plan_print_card(const plan_result *plan) {
    const cleat_fit_report *report = &plan->cards[0].report;
    print_head(plan);
    if (report->bytes > 0) {
        print_memory(report);
        print_peaks(report);
    }
    print_ways(report);
    if (report->fits) {
        print_buckets(report);
        print_time(plan);
    }
    plan_print_rates(plan);
    print_same_everywhere(plan);
}

static void print_row(const plan_card *card) {
    const cleat_fit_report *report = &card->report;
    const cleat_fit_way *way = plan_chosen_way(report);
    char bytes[CLI_SHORT], cut[CLI_SHORT];
    printf("%-11s %-9s %10s", card->name, cleat_dtype_name(report->storage), cleat_bytes_text(report->limit, bytes));
    if (!report->fits) {
        char text[sizeof report->reason + 16];
        snprintf(text, sizeof text, "does not fit: %s", report->reason);
        spaces(3);
        print_wrapped(35, 35, text);
        return;
    }
    snprintf(cut, sizeof cut, "%lld x %lld", (long long)way->micro_batch_size, (long long)way->micro_batches);
    printf(" %11s %10s %11s %7d %%", cut, report->recompute ? "yes" : "no", cleat_bytes_text(report->bytes, bytes),
           percent(report->bytes, report->limit));
    print_seconds(11, way->step_seconds);
    print_per_second(11, way->samples_per_second);
    if (report->data_known) print_seconds(11, report->epoch_seconds);
    printf("%7.3gx\n", report->rates.within);
}

/* Prints what frozen parameters save on the first card on which the profile fits. */
static void print_frozen_share(const plan_result *plan) {
    for (size_t i = 0; i < plan->count; ++i) {
        const cleat_fit_report *report = &plan->cards[i].report;
        if (!report->fits) continue;
        if (report->trained_parameters < report->parameters) printf("  On %s:\n", plan->cards[i].name);
        print_frozen(report);
        return;
    }
}

void plan_print_table(const plan_result *plan) {
    if (plan->count == 0) return;
    bool data_known = plan->cards[0].report.data_known;
    printf("%s on every card: global batch of %lld samples, longest length %lld\n", plan->path,
           (long long)cleat_profile_effective_batch(plan->profile), (long long)longest_length(plan));
    print_lengths_planned(plan);
    printf("\n");
    printf("%-11s %-9s %10s %11s %10s %11s %9s%11s%11s%s%8s\n", "card", "precision", "usable", "batch", "recompute",
           "planned", "of usable", "step", "samples/s", data_known ? "      epoch" : "", "within");
    for (size_t i = 0; i < plan->count; ++i) print_row(&plan->cards[i]);
    printf("\n  usable: run.max_memory_usage %g of the memory that the driver leaves free. batch: micro-batch size x "
           "micro-batches\n  per optimizer step, at the longest length; step: time of an optimizer step.\n",
           plan->profile->run.max_memory_usage);
    printf(
        "  Times are estimates from the rates in the card files, not measurements. within: factor by which they may be "
        "wrong, either way.\n");
    print_frozen_share(plan);
    print_same_everywhere(plan);
}

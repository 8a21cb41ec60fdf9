/* The table of a profile as text. */
#include "trace/analysis.h"

#include <math.h>

enum { MAX_ROWS = 30 };

static double percent(const cleat_analysis *analysis, double seconds) {
    return 100 * cleat_share(analysis, seconds);
}

static void add_unprofiled(const cleat_analysis *analysis, cleat_string *text) {
    double without = analysis->recording->unprofiled_seconds;
    cleat_string_add(text, "step %.3f ms profiled, ", 1e3 * cleat_per_step(analysis, analysis->seconds));
    if (isfinite(without))
        cleat_string_add(text, "%.3f ms not\n", 1e3 * without);
    else
        cleat_string_add(text,
                         "not measured without (that takes two waiting steps after the first step of a process)\n");
}

static void add_rates(const cleat_rates *rates, cleat_string *text) {
    if (!rates) {
        cleat_string_add(text, "the rates of the device are unknown: there is no roof to compare with\n");
        return;
    }
    cleat_string_add(text, "roof: %.1f GFLOP/s", 1e-9 * rates->flops);
    if (rates->matrix_flops > 0) cleat_string_add(text, " (matrix unit: %.1f)", 1e-9 * rates->matrix_flops);
    cleat_string_add(text, ", %.1f GB/s, %.1f us a launch (%s)\n", 1e-9 * rates->bytes, 1e6 * rates->launch_seconds,
                     rates->source);
}

static void add_head(const cleat_analysis *analysis, cleat_string *text) {
    const cleat_recording *recording = analysis->recording;
    const cleat_session *session = recording->session;
    cleat_string_add(text, "Profile of step");
    if (analysis->active == 1)
        cleat_string_add(text, " %lld", (long long)analysis->first_step);
    else
        cleat_string_add(text, "s %lld-%lld", (long long)analysis->first_step, (long long)analysis->last_step);
    cleat_string_add(text, " on %s, %s\n", session->work->plan->facts.name, cleat_dtype_name(session->work->storage));
    add_unprofiled(analysis, text);
    add_rates(recording->rates, text);
    if (analysis->unknown > 0)
        cleat_string_add(text, "the driver reported no times for %zu commands: they are missing below\n",
                         analysis->unknown);
}

static void add_parts(const cleat_analysis *analysis, cleat_string *text) {
    cleat_string_add(text, "\n%-24s %10s %7s\n", "part of a step", "ms", "share");
    for (int p = 0; p < CLEAT_PARTS; ++p) {
        if (analysis->parts[p] == 0) continue;
        cleat_string_add(text, "%-24s %10.3f %6.1f%%\n", cleat_step_part_name((cleat_step_part)p),
                         1e3 * cleat_per_step(analysis, analysis->parts[p]), percent(analysis, analysis->parts[p]));
    }
}

static void add_rate(cleat_string *text, double work, double seconds, const char *format) {
    if (work > 0 && seconds > 0)
        cleat_string_add(text, format, 1e-9 * work / seconds);
    else
        cleat_string_add(text, "%9s", "-");
}

static void add_row(const cleat_analysis *analysis, const cleat_profile_row *row, cleat_string *text) {
    const char *bound = cleat_profile_row_bound(row);
    cleat_string_add(text, "%-40.40s %7.5g %9.3f %6.1f%%", row->name, cleat_per_step(analysis, (double)row->calls),
                     1e3 * cleat_per_step(analysis, row->seconds), percent(analysis, row->seconds));
    add_rate(text, row->flops, row->seconds, "%9.2f");
    add_rate(text, row->bytes, row->seconds, "%9.2f");
    if (!bound) {
        cleat_string_add(text, "  %-8s %7s %9s\n", "-", "-", "-");
        return;
    }
    cleat_string_add(text, "  %-8s %6.1f%% %9.3f\n", bound, row->seconds > 0 ? 100 * row->roof / row->seconds : 0,
                     1e3 * cleat_per_step(analysis, cleat_profile_row_saves(row)));
}

/* Rates are lower bounds of what a device can do. */
static bool exceeds_roof(const cleat_analysis *analysis, const cleat_profile_rows *table) {
    for (size_t i = 0; i < table->count; ++i)
        if (table->rows[i].roof > 1.05 * table->rows[i].seconds && table->rows[i].roof > 0.01 * analysis->seconds)
            return true;
    return false;
}

static void add_rows(const cleat_analysis *analysis, const cleat_profile_rows *table, const char *title,
                     const char *order, cleat_string *text) {
    cleat_string_add(text, "\n%-40s %7s %9s %7s%9s%9s  %-8s %7s %9s\n", title, "calls", "ms", "share", "GFLOP/s",
                     "GB/s", "bound by", "of roof", "saves ms");
    for (size_t i = 0; i < table->count && i < MAX_ROWS; ++i) add_row(analysis, &table->rows[i], text);
    if (table->count > MAX_ROWS)
        cleat_string_add(text, "... and %zu more, which the CSV file lists\n", table->count - MAX_ROWS);
    cleat_string_add(text, "%s\n", order);
}

static void add_idle(const cleat_analysis *analysis, cleat_string *text) {
    const double idle = analysis->parts[CLEAT_PART_IDLE];
    cleat_string_add(text, "\nidle: %.3f ms per step, %.1f%% of it. The longest gaps between kernels:\n",
                     1e3 * cleat_per_step(analysis, idle), percent(analysis, idle));
    for (size_t g = 0; g < analysis->n_gaps; ++g)
        cleat_string_add(text, "  %9.3f ms at %10.3f ms: %s\n",
                         1e-6 * (double)(analysis->gaps[g].end - analysis->gaps[g].start),
                         1e-6 * (double)(analysis->gaps[g].start - analysis->begin), analysis->gaps[g].host);
}

static double mib(int64_t bytes) {
    return (double)bytes / 1048576.0;
}

static void add_memory(const cleat_analysis *analysis, cleat_string *text) {
    static const char *const names[CLEAT_PEAK_PARTS_COUNT] = {"stored for backward", "recomputed", "gradients",
                                                              "workspace"};
    const cleat_plan *plan = analysis->recording->session->work->plan;
    const cleat_memory_profile *memory = &analysis->memory;
    cleat_string_add(text, "\nmemory: %.1f MiB planned (", mib(cleat_plan_bytes(plan)));
    for (int c = 0, shown = 0; c < CLEAT_CATEGORIES; ++c)
        if (cleat_plan_category_bytes(plan, (cleat_category)c) > 0)
            cleat_string_add(text, "%s%s %.1f", shown++ ? ", " : "", cleat_category_name((cleat_category)c),
                             mib(cleat_plan_category_bytes(plan, (cleat_category)c)));
    cleat_string_add(text, ")\n  forward part of the step: %.1f MiB at most", mib(memory->forward_peak));
    if (memory->forward_peak_node) cleat_string_add(text, ", at %s", memory->forward_peak_node->name);
    cleat_string_add(text, "\n  forward alone (evaluation): %.1f MiB at most\n", mib(analysis->evaluation_peak));
    cleat_string_add(text, "  whole step: %.1f MiB at most", mib(memory->training_peak));
    if (memory->training_peak_node) cleat_string_add(text, ", at %s", memory->training_peak_node->name);
    for (int p = 0, shown = 0; p < CLEAT_PEAK_PARTS_COUNT; ++p)
        if (memory->parts[p] > 0)
            cleat_string_add(text, "%s%s %.1f", shown++ ? ", " : ": ", names[p], mib(memory->parts[p]));
    cleat_string_add(text, "\n");
}

static void add_clock(const cleat_recording *recording, cleat_string *text) {
    const cleat_clock_pair *a = &recording->clocks[0], *b = &recording->clocks[1];
    cleat_string_add(text, "\nclocks of device and host compared by %s: off by at most %.1f us and %.1f us\n",
                     a->source, 1e6 * a->error, 1e6 * b->error);
}

void cleat_table_text(const cleat_analysis *analysis, cleat_string *text) {
    add_head(analysis, text);
    add_parts(analysis, text);
    add_rows(analysis, &analysis->kernels, "kernel",
             analysis->recording->rates ? "sorted by the time that would be saved if each kernel reached the roofline"
                                        : "sorted by time",
             text);
    if (exceeds_roof(analysis, &analysis->kernels))
        cleat_string_add(
            text, "more than 100%% of the roofline: data in caches, or rates that were measured on a busy device\n");
    add_rows(analysis, &analysis->ops, "operation", "sorted by time", text);
    add_rows(analysis, &analysis->layers, "layer", "sorted by time", text);
    add_idle(analysis, text);
    add_memory(analysis, text);
    add_clock(analysis->recording, text);
}

/* The table of hints: name, condition, text with the numbers, command. The limits follow common guidelines: a
 * device busy for more than 80 to 90 %, 80 to 95 % of its memory used, less than 10 % of the time spent waiting for
 * the loader. */
#include "monitor/hints.h"

#include <stdio.h>
#include <string.h>

enum { MIN_SECONDS = 30 };

typedef struct hint_case {
    const cleat_hint_facts *facts;
    const cleat_hint_stats *stats;
} hint_case;

typedef struct row {
    const char *name;
    bool (*applies)(const hint_case *of); /* false for an unknown figure (NaN) */
    void (*write)(const hint_case *of, char text[CLEAT_HINT_TEXT]);
    const char *command;        /* write_command; "": none */
    const char *command_on_cpu; /* where the device is the CPU; NULL: the same */
} row;

static double percent(double share) {
    return 100 * share;
}

static bool is_loader_bound(const hint_case *of) {
    return of->stats->dry_loader > 0.10;
}

static void write_loader_bound(const hint_case *of, char text[CLEAT_HINT_TEXT]) {
    snprintf(text, CLEAT_HINT_TEXT,
             "the device had no work for %.0f %% of the time because it waited for the loader (%.0f threads); less "
             "than 10 %% is usual.",
             percent(of->stats->dry_loader), of->stats->workers >= 0 ? of->stats->workers : 0);
}

/* Share of a step that its kernel launches take at the measured overhead per launch. */
static double launch_share(const hint_case *of) {
    return of->facts->launches * of->facts->launch_seconds / of->stats->step_seconds;
}

/* Share of the device's time that other processes took; 0: or unknown. */
static double share_of_others(const hint_case *of) {
    const double share = of->stats->busy_device - of->stats->busy_own;
    return share > 0 ? share : 0;
}

/* Below the roofline of the part of the device that other processes left to this run. */
static bool is_slow(const hint_case *of, double limit) {
    return of->stats->roofline_share < limit * (1 - share_of_others(of));
}

static bool has_short_kernels(const hint_case *of) {
    return is_slow(of, 0.20) && of->stats->step_seconds / of->facts->launches < 20e-6;
}

/* A slow loader alone explains a low share of the roofline. */
static bool is_launch_bound(const hint_case *of) {
    return !is_loader_bound(of) && (has_short_kernels(of) || launch_share(of) > 0.30);
}

static void write_launch_bound(const hint_case *of, char text[CLEAT_HINT_TEXT]) {
    snprintf(
        text, CLEAT_HINT_TEXT,
        "a step of %.2f ms launches %.0f kernels of %.1f us on average, and launch overhead takes about %.0f %% of "
        "it: the kernels are too short to keep the device busy. A larger batch or model has longer kernels.",
        of->stats->step_seconds * 1e3, of->facts->launches, of->stats->step_seconds / of->facts->launches * 1e6,
        percent(launch_share(of)));
}

static bool is_small_batch(const hint_case *of) {
    return of->facts->larger_micro_batch > of->facts->micro_batch && !is_loader_bound(of) && !is_launch_bound(of) &&
           is_slow(of, 0.20) && of->stats->step_seconds / of->facts->launches < 100e-6;
}

static void write_small_batch(const hint_case *of, char text[CLEAT_HINT_TEXT]) {
    char bytes[CLEAT_BYTES_TEXT], usable[CLEAT_BYTES_TEXT];
    const bool is_whole = of->facts->micro_batch >= of->facts->global_batch;
    snprintf(text, CLEAT_HINT_TEXT,
             "micro-batches of %lld at length %lld reach %.0f %% of the device's roofline; %lld would fit (about %s of "
             "%s). %s",
             (long long)of->facts->micro_batch, (long long)of->facts->length, percent(of->stats->roofline_share),
             (long long)of->facts->larger_micro_batch, cleat_bytes_text(of->facts->larger_bytes, bytes),
             cleat_bytes_text(of->facts->usable, usable),
             is_whole
                 ? "They are whole global batches, so train.effective_batch_size would have to grow, which changes "
                   "the training."
                 : "train.batch_size limits them.");
}

static bool is_hot(const hint_case *of) {
    return of->stats->thermal > 0.10;
}

static void write_thermal(const hint_case *of, char text[CLEAT_HINT_TEXT]) {
    snprintf(text, CLEAT_HINT_TEXT,
             "the driver lowered the clock because of the temperature in %.0f %% of the samples; better cooling "
             "would make the run faster.",
             percent(of->stats->thermal));
}

static bool is_power_limited(const hint_case *of) {
    return of->stats->power_limit > 0.50;
}

static void write_power_limit(const hint_case *of, char text[CLEAT_HINT_TEXT]) {
    snprintf(text, CLEAT_HINT_TEXT,
             "the driver lowered the clock because of the power limit in %.0f %% of the samples. This is common "
             "at full load; a higher power limit, if the card allows one, would make the run faster.",
             percent(of->stats->power_limit));
}

static bool is_quota_throttled(const hint_case *of) {
    return of->stats->quota_throttled > 0.05;
}

static void write_quota_throttled(const hint_case *of, char text[CLEAT_HINT_TEXT]) {
    snprintf(text, CLEAT_HINT_TEXT,
             "the system stopped this process in %.0f %% of its scheduling periods because its container used up its "
             "CPU quota; a larger quota, or fewer loader threads, would make the run faster.",
             percent(of->stats->quota_throttled));
}

static bool has_foreign_load(const hint_case *of) {
    return share_of_others(of) > 0.15;
}

static void write_foreign_load(const hint_case *of, char text[CLEAT_HINT_TEXT]) {
    snprintf(
        text, CLEAT_HINT_TEXT,
        "other processes take %.0f %% of the device: it is busy for %.0f %% of the time, and this run accounts for "
        "%.0f %%. The measured speeds of this run are valid only under that load.",
        percent(share_of_others(of)), percent(of->stats->busy_device), percent(of->stats->busy_own));
}

static bool is_spilling(const hint_case *of) {
    const double least = 64.0 * 1048576; /* bytes; less than that are the driver's own buffers */
    return of->stats->gtt_now - of->stats->gtt_before > least && of->stats->step_now > 1.2 * of->stats->step_before;
}

static void write_spilling(const hint_case *of, char text[CLEAT_HINT_TEXT]) {
    char before[CLEAT_BYTES_TEXT], now[CLEAT_BYTES_TEXT];
    snprintf(text, CLEAT_HINT_TEXT,
             "the driver moves device memory to system memory (%s at the start, %s now), and a step takes %.1f ms "
             "instead of %.1f ms: another process needs the memory, or the plan is too large.",
             cleat_bytes_text((int64_t)of->stats->gtt_before, before),
             cleat_bytes_text((int64_t)of->stats->gtt_now, now), of->stats->step_now * 1e3,
             of->stats->step_before * 1e3);
}

/* Only if more memory could make the run faster: the device is far from its roofline, a larger micro-batch fits. */
static bool is_memory_unused(const hint_case *of) {
    return of->facts->is_gpu && of->facts->larger_micro_batch > of->facts->micro_batch && !is_loader_bound(of) &&
           !is_small_batch(of) && (double)of->facts->planned < 0.50 * (double)of->facts->usable && is_slow(of, 0.50);
}

static void write_memory_unused(const hint_case *of, char text[CLEAT_HINT_TEXT]) {
    char planned[CLEAT_BYTES_TEXT], usable[CLEAT_BYTES_TEXT], larger[CLEAT_BYTES_TEXT];
    snprintf(
        text, CLEAT_HINT_TEXT,
        "the run uses %s of %s usable device memory at %.0f %% of the roofline; 80 to 95 %% are usual. Micro-batches "
        "of %lld instead of %lld would need about %s.",
        cleat_bytes_text(of->facts->planned, planned), cleat_bytes_text(of->facts->usable, usable),
        percent(of->stats->roofline_share), (long long)of->facts->larger_micro_batch, (long long)of->facts->micro_batch,
        cleat_bytes_text(of->facts->larger_bytes, larger));
}

static const row rows[] = {
    {"loader_bound", is_loader_bound, write_loader_bound, "cleat find-workers %s --write", NULL},
    {"launch_bound", is_launch_bound, write_launch_bound, "cleat find-batch %s", NULL},
    {"small_batch", is_small_batch, write_small_batch, "cleat find-batch %s", NULL},
    {"thermal", is_hot, write_thermal, "", NULL},
    {"power_limit", is_power_limited, write_power_limit, "", NULL},
    {"quota_throttled", is_quota_throttled, write_quota_throttled, "", NULL},
    {"foreign_load", has_foreign_load, write_foreign_load, "", "ps -eo pcpu,pid,user,args --sort=-pcpu | head"},
    {"spilling", is_spilling, write_spilling, "cleat train %s --resume --out %s --set run.max_memory_usage=0.7", NULL},
    {"memory_unused", is_memory_unused, write_memory_unused, "cleat find-batch %s", NULL},
};
enum { ROWS = sizeof rows / sizeof rows[0] };
_Static_assert((int)ROWS <= (int)CLEAT_HINTS_MAX, "a set of hints is a bit mask");

size_t cleat_hint_count(void) {
    return ROWS;
}

/* Replaces the first %s of `form` by the profile, with its options, and the second one by the run folder, as
 * words of a shell. No command rather than one that is cut. */
static void write_command(const char *form, const cleat_hint_facts *facts, char command[CLEAT_HINT_COMMAND]) {
    const char *values[] = {facts->profile, facts->folder}, *options[] = {facts->options ? facts->options : "", ""};
    size_t used = 0, next = 0;
    for (; *form && used + 1 < CLEAT_HINT_COMMAND; ++form) {
        if (form[0] == '%' && form[1] == 's' && next < 2) {
            if (!cleat_shell_word(values[next], command + used, CLEAT_HINT_COMMAND - used)) break;
            used += strlen(command + used);
            const size_t more = strlen(options[next]);
            if (used + more >= CLEAT_HINT_COMMAND) break;
            memcpy(command + used, options[next++], more);
            used += more;
            ++form;
        } else {
            command[used++] = *form;
        }
    }
    command[*form ? 0 : used] = 0;
}

bool cleat_hint_check(size_t at, const cleat_hint_facts *facts, const cleat_hint_stats *stats, cleat_hint *hint) {
    const hint_case of = {facts, stats};
    const double least = facts->min_seconds > 0 ? facts->min_seconds : MIN_SECONDS;
    if (!(stats->seconds >= least) || !rows[at].applies(&of)) return false;
    hint->name = rows[at].name;
    rows[at].write(&of, hint->text);
    const bool elsewhere = facts->is_gpu || !rows[at].command_on_cpu;
    write_command(elsewhere ? rows[at].command : rows[at].command_on_cpu, facts, hint->command);
    return true;
}

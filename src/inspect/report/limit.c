/* What limited the speed of a run, which hint is the strongest, and the command to run next. */
#include "core/shell.h"
#include "report/html.h"
#include "report/run.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Bounds of the hints of a run (src/inspect/monitor); the report uses them if the run logged no hint. */
static const double dry_limit = 0.10, roofline_limit = 0.20, foreign_limit = 0.15;

/* Seconds of samples below which the start of a run (kernels, first evaluation) decides its figures. */
static const double shortest = 10;

/* Hints by weight: those that cost most and are easiest to remove come first. */
static const char *const hint_order[] = {"loader_bound",    "spilling",     "launch_bound",
                                         "quota_throttled", "foreign_load", "thermal",
                                         "power_limit",     "small_batch",  "memory_unused"};
enum { HINTS = sizeof hint_order / sizeof *hint_order };

static size_t weight_of(const char *name) {
    for (size_t i = 0; i < HINTS; ++i)
        if (strcmp(hint_order[i], name) == 0) return i;
    return HINTS;
}

/* Keeps the hints sorted by weight; the last one of a name counts. */
static void add_hint(cleat_report_run *run, const cleat_report_hint *hint) {
    size_t at = 0;
    for (size_t i = 0; i < run->n_hints; ++i)
        if (strcmp(run->hints[i].name, hint->name) == 0) {
            run->hints[i] = *hint;
            return;
        }
    if (run->n_hints == CLEAT_REPORT_HINTS) return;
    while (at < run->n_hints && weight_of(run->hints[at].name) <= weight_of(hint->name)) ++at;
    memmove(&run->hints[at + 1], &run->hints[at], (run->n_hints - at) * sizeof *run->hints);
    run->hints[at] = *hint;
    ++run->n_hints;
}

static void collect_hints(cleat_report_run *run) {
    for (size_t i = 0; i < run->n_events; ++i) {
        const char *what = cleat_json_text(run->events[i], "what"), *name = cleat_json_text(run->events[i], "name");
        const char *text = cleat_json_text(run->events[i], "text"),
                   *command = cleat_json_text(run->events[i], "command");
        const cleat_report_hint hint = {name, text, command ? command : "", cleat_json_number(run->events[i], "step")};
        if (what && name && text && strcmp(what, "hint") == 0) add_hint(run, &hint);
    }
}

static const cleat_report_hint *find_hint(const cleat_report_run *run, const char *name) {
    for (size_t i = 0; i < run->n_hints; ++i)
        if (strcmp(run->hints[i].name, name) == 0) return &run->hints[i];
    return NULL;
}

/* The hint of a run about this limit; NULL: none. */
static const char *const hint_of_limit[CLEAT_REPORT_LIMITS] = {
    [CLEAT_REPORT_LIMIT_LOADER] = "loader_bound", [CLEAT_REPORT_LIMIT_LAUNCH] = "launch_bound",
    [CLEAT_REPORT_LIMIT_SPILLING] = "spilling",   [CLEAT_REPORT_LIMIT_QUOTA] = "quota_throttled",
    [CLEAT_REPORT_LIMIT_SHARED] = "foreign_load", [CLEAT_REPORT_LIMIT_HEAT] = "thermal",
    [CLEAT_REPORT_LIMIT_POWER] = "power_limit"};

/* A cause counts from `least` on. */
static void add_cost(cleat_report_run *run, cleat_report_limit limit, double share, double least) {
    if (share > least) run->cost[limit] = share;
}

/* The cost of each cause: the share of the time in which the device waited, was used by others, or worked
 * below its speed. Time used by others is not charged to this run unless it is launch-bound: the hint has
 * counted the launches, and the thread that makes them leaves a part of the device to others. */
static void find_costs(cleat_report_run *run) {
    static const cleat_report_limit slowness[] = {CLEAT_REPORT_LIMIT_SPILLING, CLEAT_REPORT_LIMIT_QUOTA,
                                                  CLEAT_REPORT_LIMIT_HEAT, CLEAT_REPORT_LIMIT_POWER};
    const double others = run->foreign, reached = isfinite(run->roofline) ? run->roofline : 0;
    const double slow = 1 - run->dry - reached;
    add_cost(run, CLEAT_REPORT_LIMIT_LOADER, run->dry_loader, dry_limit);
    add_cost(run, CLEAT_REPORT_LIMIT_EVALUATE, run->dry_evaluate, dry_limit);
    add_cost(run, CLEAT_REPORT_LIMIT_CHECKPOINT, run->dry_checkpoint, dry_limit);
    add_cost(run, CLEAT_REPORT_LIMIT_OTHER, run->dry_read + run->dry_other, dry_limit);
    add_cost(run, CLEAT_REPORT_LIMIT_SHARED, run->foreign, foreign_limit);
    if (find_hint(run, "launch_bound")) add_cost(run, CLEAT_REPORT_LIMIT_LAUNCH, slow, dry_limit);
    for (size_t i = 0; i < sizeof slowness / sizeof *slowness && run->roofline < roofline_limit * (1 - others); ++i)
        if (find_hint(run, hint_of_limit[slowness[i]])) add_cost(run, slowness[i], slow - others, dry_limit);
}

static cleat_report_limit largest_cost(const cleat_report_run *run) {
    cleat_report_limit found = CLEAT_REPORT_LIMIT_UNKNOWN;
    for (int limit = 0; limit < CLEAT_REPORT_LIMITS; ++limit)
        if (run->cost[limit] > run->cost[found]) found = (cleat_report_limit)limit;
    return found;
}

/* 0: none, or unknown. */
static double share_of_others(const cleat_report_run *run) {
    const double share = cleat_report_mean(run, "busy_device") - cleat_report_mean(run, "busy_own");
    return share > 0 ? share : 0;
}

void cleat_report_detect_limit(cleat_report_run *run) {
    run->dry = cleat_report_mean(run, "dry_share");
    run->dry_loader = cleat_report_mean(run, "dry_loader");
    run->dry_evaluate = cleat_report_mean(run, "dry_evaluate");
    run->dry_checkpoint = cleat_report_mean(run, "dry_checkpoint");
    run->dry_read = cleat_report_mean(run, "dry_read");
    run->dry_other = cleat_report_mean(run, "dry_other");
    run->roofline = cleat_report_mean(run, "roofline_share");
    run->foreign = share_of_others(run);
    run->samples_per_second = cleat_report_mean(run, "samples_per_second");
    run->step_seconds = cleat_report_mean(run, "step_seconds");
    collect_hints(run);
    if (!run->samples) return;
    const size_t rows = run->samples->rows;
    if ((rows ? run->elapsed[rows - 1] - run->elapsed[0] : 0) < shortest) {
        run->limit = CLEAT_REPORT_LIMIT_SHORT;
        return;
    }
    find_costs(run);
    run->limit = largest_cost(run);
    if (run->limit != CLEAT_REPORT_LIMIT_UNKNOWN) return;
    if (run->dry > dry_limit)
        run->limit = CLEAT_REPORT_LIMIT_OTHER;
    else if (run->roofline < roofline_limit)
        run->limit = CLEAT_REPORT_LIMIT_SLOW;
    else if (isfinite(run->dry) || isfinite(run->roofline))
        run->limit = CLEAT_REPORT_LIMIT_NONE;
}

static void CLEAT_PRINTF(3, 4) set_next(cleat_report_run *run, const char *text, const char *command, ...) {
    va_list arguments;
    snprintf(run->next_text, sizeof run->next_text, "%s", text);
    va_start(arguments, command);
    vsnprintf(run->next_command, sizeof run->next_command, command, arguments);
    va_end(arguments);
}

static double half_learning_rate(const cleat_report_run *run) {
    const double rate = cleat_report_setting(run, "train", "learning_rate");
    return isfinite(rate) ? rate / 2 : 1e-4;
}

/* What the trend of the metric suggests; nothing if the run is fine. */
static void choose_by_trend(cleat_report_run *run, const char *profile) {
    if (run->trend == CLEAT_REPORT_TREND_IMPROVING && run->epochs > 0)
        set_next(run, "The metric still improved at the end: train longer.", "cleat train %s --set train.epochs=%.0f",
                 profile, 2 * run->epochs);
    else if (run->trend == CLEAT_REPORT_TREND_OVERFIT)
        set_next(
            run,
            "It overfits: stop at the best evaluation. More data, augmentation or model.dropout help further; the best "
            "checkpoint is kept.",
            "cleat train %s --set run.early_stopping_patience=5", profile);
    else if (run->trend == CLEAT_REPORT_TREND_WORSE)
        set_next(run, "Training itself became unstable: use a smaller learning rate.",
                 "cleat train %s --set train.learning_rate=%g", profile, half_learning_rate(run));
}

/* The data.anchor to try: the better of the last values and those one season before; if that is the season and it is
 * set, the last values, from which a network can learn the season. NULL: it is set, or the family has no anchor. */
static const char *anchor_to_try(const cleat_report_run *run) {
    const char *anchor = cleat_history_setting_of(run->history, "data", "anchor");
    if (!anchor || !run->anchor) return NULL;
    if (strcmp(anchor, run->anchor) != 0) return run->anchor;
    return strcmp(anchor, "season") == 0 ? "last" : NULL;
}

/* A model that is not better than a prediction without one: more urgent than its speed. */
static void choose_by_baseline(cleat_report_run *run, const char *again) {
    if (!run->is_beaten || run->outcome != CLEAT_REPORT_FINISHED) return;
    const char *anchor = anchor_to_try(run);
    if (anchor)
        set_next(run,
                 strcmp(anchor, "season") == 0
                     ? "Repeating the values one season before is better: forecast the differences from them."
                     : "A forecast without a model is better: forecast the differences from the last known values, "
                       "from which "
                       "a network can learn the season too (if that has been tried: train longer).",
                 "cleat train %s --set data.anchor=%s", again, anchor);
    else if (run->trend == CLEAT_REPORT_TREND_OVERFIT || run->trend == CLEAT_REPORT_TREND_WORSE)
        choose_by_trend(run, again);
    else if (run->trend == CLEAT_REPORT_TREND_LEVEL)
        set_next(
            run,
            "It reached a plateau without being better than the baseline: look for errors in the data in the examples "
            "below, and try another learning rate.",
            "cleat train %s --set train.learning_rate=%g", again, half_learning_rate(run));
    else if (run->epochs > 0)
        set_next(run, "It is not better than the baseline yet: train longer.", "cleat train %s --set train.epochs=%.0f",
                 again, 2 * run->epochs);
}

/* Twice the epochs between two evaluations or checkpoints. */
static double twice(const cleat_report_run *run, const char *key) {
    const double epochs = cleat_report_setting(run, "run", key);
    return epochs >= 1 ? 2 * epochs : 2;
}

/* How to remove the limit: from the hint of the run about it, or from the run's figures. */
static void choose_by_limit(cleat_report_run *run, const char *again, const char *profile) {
    const char *name = hint_of_limit[run->limit];
    const cleat_report_hint *hint = name ? find_hint(run, name) : NULL;
    if (hint && run->limit != CLEAT_REPORT_LIMIT_SHARED) /* the verdict contains that hint */
        set_next(run, hint->text, "%s", hint->command);
    else if (run->limit == CLEAT_REPORT_LIMIT_LOADER)
        set_next(run, "Find the number of loader threads that keeps the device busy.",
                 "cleat find-workers %s%s --write", profile, run->profile_options);
    else if (run->limit == CLEAT_REPORT_LIMIT_SHARED && cleat_report_is_on_cpu(run))
        set_next(run,
                 "See what else is running, let it end or stop it, and train again: the measured speeds of this run "
                 "are valid only under that load.",
                 "ps -eo pcpu,pid,user,args --sort=-pcpu | head");
    else if (run->limit == CLEAT_REPORT_LIMIT_SHARED)
        set_next(run,
                 "Let the other processes end, and train again: the measured speeds of this run are valid only under "
                 "that load.",
                 "%s", "");
    else if (run->limit == CLEAT_REPORT_LIMIT_EVALUATE)
        set_next(run, "Evaluate less often.", "cleat train %s --set run.evaluate_every_epochs=%.0f", again,
                 twice(run, "evaluate_every_epochs"));
    else if (run->limit == CLEAT_REPORT_LIMIT_CHECKPOINT)
        set_next(run, "Write checkpoints less often.", "cleat train %s --set run.checkpoint_every_epochs=%.0f", again,
                 twice(run, "checkpoint_every_epochs"));
    else if (run->limit == CLEAT_REPORT_LIMIT_SLOW)
        set_next(run, "Find out which kernels take the time.", "cleat trace %s", again);
}

void cleat_report_choose_next(cleat_report_run *run) {
    char resolved[CLEAT_REPORT_TEXT + 16], resolved_word[CLEAT_REPORT_TEXT], folder_word[CLEAT_REPORT_TEXT],
        profile_word[CLEAT_REPORT_TEXT];
    const char *folder = cleat_shell_path(run->history->folder, folder_word, sizeof folder_word);
    const char *profile = cleat_shell_path(run->profile_path, profile_word, sizeof profile_word);
    /* The resolved settings repeat the run, including its command-line options. */
    snprintf(resolved, sizeof resolved, "%s/resolved.ini", run->history->folder);
    const char *same = cleat_shell_path(resolved, resolved_word, sizeof resolved_word);
    const char *again = run->history->n_settings ? same : profile;
    switch (run->outcome) {
    case CLEAT_REPORT_KILLED:
    case CLEAT_REPORT_INTERRUPTED:
    case CLEAT_REPORT_UNKNOWN:
        if (run->history->n_checkpoints)
            set_next(run, "Continue from the last checkpoint.", "cleat train %s --out %s --resume", same, folder);
        else
            set_next(run, "There is no checkpoint to continue from: start again.", "cleat train %s", same);
        return;
    case CLEAT_REPORT_DIVERGED:
        set_next(run, "Start again with a smaller learning rate or a longer warm-up.",
                 "cleat train %s --set train.learning_rate=%g", again, half_learning_rate(run));
        return;
    case CLEAT_REPORT_FAILED:
        set_next(run, "Check the machine, then start again.", "cleat doctor");
        return;
    case CLEAT_REPORT_FINISHED:
    case CLEAT_REPORT_RUNNING:
        break;
    }
    choose_by_baseline(run, again);
    if (!run->next_text[0]) choose_by_limit(run, again, profile);
    if (!run->next_text[0]) choose_by_trend(run, again);
    if (!run->next_text[0] && run->n_hints) set_next(run, run->hints[0].text, "%s", run->hints[0].command);
}

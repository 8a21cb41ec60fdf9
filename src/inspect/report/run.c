/* Facts about a run: outcome, metric, baseline, time. */
#include "report/run.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/shell.h"
#include "report/html.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

double cleat_report_mean(const cleat_report_run *run, const char *name) {
    const double *values = cleat_history_values(run->samples, name);
    double sum = 0;
    size_t count = 0, rows = run->samples ? run->samples->rows : 0;
    for (size_t i = rows / 10; values && i < rows; ++i)
        if (isfinite(values[i])) {
            sum += values[i];
            ++count;
        }
    return count ? sum / (double)count : NAN;
}

double cleat_report_last(const cleat_report_run *run, const char *name) {
    const double *values = cleat_history_values(run->samples, name);
    for (size_t i = run->samples ? run->samples->rows : 0; values && i-- > 0;)
        if (isfinite(values[i])) return values[i];
    return NAN;
}

double cleat_report_start_number(const cleat_report_run *run, const char *group, const char *name) {
    return cleat_json_number(group ? cleat_json_member(run->start, group) : run->start, name);
}

const char *cleat_report_start_text(const cleat_report_run *run, const char *group, const char *name) {
    return cleat_json_text(group ? cleat_json_member(run->start, group) : run->start, name);
}

double cleat_report_setting(const cleat_report_run *run, const char *section, const char *key) {
    const char *text = cleat_history_setting_of(run->history, section, key);
    double value;
    return text && cleat_number_parse(text, &value) ? value : NAN;
}

static double last_of(const cleat_history_table *table, const char *name) {
    const double *values = cleat_history_values(table, name);
    return values && table->rows ? values[table->rows - 1] : NAN;
}

bool cleat_report_is_on_cpu(const cleat_report_run *run) {
    const char *kind = cleat_report_start_text(run, "device", "kind");
    return kind && strcmp(kind, "CPU") == 0;
}

static cleat_status parse_events(cleat_report_run *run, cleat_error *error) {
    const cleat_history_records *events = &run->history->events;
    if (!events->count) return CLEAT_OK;
    run->events = cleat_alloc(events->count, sizeof *run->events);
    if (!run->events) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", run->history->folder);
    for (size_t i = 0; i < events->count; ++i) {
        cJSON *event = cJSON_Parse(events->items[i]);
        if (event) run->events[run->n_events++] = event;
    }
    return CLEAT_OK;
}

static void parse_records(cleat_report_run *run) {
    const cleat_history *history = run->history;
    run->n_sessions = history->starts.count;
    run->start = cJSON_Parse(history->last_start); /* NULL for NULL */
    run->end = cJSON_Parse(history->last_end);
    run->examples = cJSON_Parse(history->examples);
    run->profile = cJSON_Parse(history->profile);
}

/* Time of the last record of a session, which began at `from`; the next one at `until`. */
static double session_end(const cleat_report_run *run, double from, double until) {
    const double *times = cleat_history_values(run->samples, "time");
    double last = from;
    for (size_t i = 0; times && i < run->samples->rows; ++i)
        if (times[i] >= from && times[i] < until && times[i] > last) last = times[i];
    for (size_t i = 0; i < run->history->ends.count; ++i) {
        cJSON *end = cJSON_Parse(run->history->ends.items[i]);
        double time = cleat_json_number(end, "time");
        if (time >= from && time < until && time > last) last = time;
        cJSON_Delete(end);
    }
    return last;
}

/* Elapsed time counts the sessions, not the pauses between them. */
static cleat_status measure_time(cleat_report_run *run, cleat_error *error) {
    const cleat_history_records *starts = &run->history->starts;
    const double *times = cleat_history_values(run->samples, "time");
    size_t rows = run->samples ? run->samples->rows : 0;
    double before = 0;
    run->elapsed = cleat_alloc(rows + 1, sizeof *run->elapsed);
    if (!run->elapsed) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", run->history->folder);
    for (size_t i = 0; i < rows; ++i) run->elapsed[i] = NAN;
    for (size_t s = 0; s < starts->count; ++s) {
        cJSON *start = cJSON_Parse(starts->items[s]),
              *next = s + 1 < starts->count ? cJSON_Parse(starts->items[s + 1]) : NULL;
        double from = cleat_json_number(start, "time"), until = next ? cleat_json_number(next, "time") : INFINITY;
        for (size_t i = 0; times && i < rows; ++i)
            if (times[i] >= from && times[i] < until) run->elapsed[i] = before + times[i] - from;
        if (isfinite(from)) before += session_end(run, from, until) - from;
        cJSON_Delete(start);
        cJSON_Delete(next);
    }
    run->seconds = starts->count ? before : NAN;
    const cleat_history *history = run->history;
    if (!starts->count && history->n_checkpoints)
        run->seconds = history->checkpoints[history->n_checkpoints - 1].time_used;
    return CLEAT_OK;
}

static double larger(double a, double b) {
    return isnan(a) || b > a ? b : a;
}

static void find_progress(cleat_report_run *run) {
    const cleat_history *history = run->history;
    run->epochs = cleat_report_start_number(run, "schedule", "epochs");
    if (isnan(run->epochs)) run->epochs = cleat_report_setting(run, "train", "epochs");
    run->total_steps = cleat_report_start_number(run, "schedule", "total_steps");
    run->step = larger(larger(last_of(run->train, "step"), last_of(run->eval, "step")), last_of(run->samples, "step"));
    double per_epoch = cleat_report_start_number(run, "schedule", "steps_per_epoch");
    run->epoch = larger(last_of(run->train, "epoch"), last_of(run->eval, "epoch"));
    if (per_epoch > 0 && run->step >= 0) run->epoch = run->step / per_epoch;
    if (history->n_checkpoints) {
        const cleat_history_checkpoint *last = &history->checkpoints[history->n_checkpoints - 1];
        run->step = larger(run->step, (double)last->step);
        if (!(per_epoch > 0)) run->epoch = larger(run->epoch, (double)last->epoch);
    }
    if (isnan(run->step) && run->start) run->step = cleat_json_number(run->start, "step");
}

static cleat_report_outcome outcome_of(const char *status) {
    if (!status) return CLEAT_REPORT_FAILED;
    if (strcmp(status, "ok") == 0) return CLEAT_REPORT_FINISHED;
    if (strcmp(status, cleat_status_text(CLEAT_ERR_INTERRUPTED)) == 0 ||
        strcmp(status, cleat_status_text(CLEAT_ERR_TIME_UP)) == 0)
        return CLEAT_REPORT_INTERRUPTED;
    return strcmp(status, cleat_status_text(CLEAT_ERR_NAN)) == 0 ? CLEAT_REPORT_DIVERGED : CLEAT_REPORT_FAILED;
}

static cleat_report_outcome find_outcome(const cleat_report_run *run) {
    switch (run->history->phase) {
    case CLEAT_HISTORY_ENDED:
        return outcome_of(cleat_json_text(run->end, "status"));
    case CLEAT_HISTORY_RUNNING:
        return CLEAT_REPORT_RUNNING;
    case CLEAT_HISTORY_KILLED:
        return CLEAT_REPORT_KILLED;
    case CLEAT_HISTORY_UNKNOWN:
        break;
    }
    return run->epochs > 0 && run->epoch >= run->epochs ? CLEAT_REPORT_FINISHED : CLEAT_REPORT_UNKNOWN;
}

/* Guesses whether larger is better if the log lacks it: the best value recorded in checkpoints is the largest or the
 * smallest of the evaluations; if that does not decide, errors and losses descend. */
static bool guess_ascends(const cleat_report_run *run) {
    static const char *const ascending[] = {"accuracy", "f1",    "iou", "recall",  "precision", "lddt",
                                            "tm",       "score", "r2",  "pearson", "spearman"};
    const cleat_history *history = run->history;
    const double *values = cleat_history_values(run->eval, run->metric);
    double best = history->n_checkpoints ? history->checkpoints[history->n_checkpoints - 1].best_metric : NAN;
    size_t above = 0, below = 0;
    for (size_t i = 0; values && i < run->eval->rows; ++i) {
        above += values[i] > best + 1e-6 * fabs(best);
        below += values[i] < best - 1e-6 * fabs(best);
    }
    if (above != below && (above == 0 || below == 0)) return below > 0;
    for (size_t i = 0; i < sizeof ascending / sizeof *ascending; ++i)
        if (strstr(run->metric, ascending[i]) && !strstr(run->metric, "loss")) return true;
    return false;
}

static void find_metric(cleat_report_run *run) {
    const char *name = cleat_report_start_text(run, "model", "metric");
    if (!name) name = cleat_history_setting_of(run->history, "run", "metric");
    if (!name || !cleat_history_values(run->eval, name)) {
        if (!name || run->eval) name = "loss";
    }
    snprintf(run->metric, sizeof run->metric, "%s", name);
    const cJSON *ascends = cleat_json_member(cleat_json_member(run->start, "model"), "ascends");
    const char *logged = cleat_report_start_text(run, "model", "metric");
    run->ascends =
        cJSON_IsBool(ascends) && logged && strcmp(logged, name) == 0 ? cJSON_IsTrue(ascends) : guess_ascends(run);
    const double *values = cleat_history_values(run->eval, run->metric);
    const double *steps = cleat_history_values(run->eval, "step"), *epochs = cleat_history_values(run->eval, "epoch");
    for (size_t i = 0; values && steps && i < run->eval->rows; ++i) {
        if (!isfinite(values[i])) continue;
        run->last = values[i];
        if (isnan(run->best) || (run->ascends ? values[i] > run->best : values[i] < run->best)) {
            run->best = values[i];
            run->best_step = steps[i];
            run->best_epoch = epochs ? epochs[i] : NAN;
        }
    }
}

/* Keeps the strongest of the baselines. */
static void add_baseline(cleat_report_run *run, double value, const char *text) {
    bool weaker = run->ascends ? value <= run->baseline : value >= run->baseline;
    if (!isfinite(value) || (isfinite(run->baseline) && weaker)) return;
    run->baseline = value;
    snprintf(run->baseline_text, sizeof run->baseline_text, "%s", text ? text : "without a model");
}

/* Samples in the confusion matrix; sets run->only. */
static double count_samples(cleat_report_run *run) {
    const cJSON *confusion = cleat_json_member(run->examples, "confusion"), *row, *cell;
    double samples = 0;
    int only = -1, several = 0;
    cJSON_ArrayForEach(row, cleat_json_member(confusion, "counts")) {
        int c = 0;
        for (cell = row->child; cell; ++c, cell = cell->next) {
            if (!(cell->valuedouble > 0)) continue;
            samples += cell->valuedouble;
            several |= only >= 0 && only != c;
            only = c;
        }
    }
    if (!several) run->only = cJSON_GetStringValue(cJSON_GetArrayItem(cleat_json_member(confusion, "labels"), only));
    return samples;
}

static void find_baseline(cleat_report_run *run) {
    static const char *const known[][2] = {{"persistence_", "repeating the last known value"},
                                           {"seasonal_", "repeating the values one season before"},
                                           {"blend_", "the mean of the last known values and those one season before"}};
    double values[3];
    const cJSON *baseline = cleat_json_member(run->examples, "baseline");
    const char *metric = cleat_json_text(baseline, "metric");
    if (metric && strcmp(metric, run->metric) == 0)
        add_baseline(run, cleat_json_number(baseline, "value"), cleat_json_text(baseline, "text"));
    for (size_t i = 0; i < 3; ++i) {
        char name[96];
        snprintf(name, sizeof name, "%s%s", known[i][0], run->metric);
        add_baseline(run, values[i] = last_of(run->eval, name), known[i][1]);
    }
    if (isfinite(values[0]))
        run->anchor =
            isfinite(values[1]) && (run->ascends ? values[1] > values[0] : values[1] < values[0]) ? "season" : "last";
    run->is_beaten = isfinite(run->best) && isfinite(run->baseline) &&
                     (run->ascends ? run->best <= run->baseline : run->best >= run->baseline);
    const double samples = count_samples(run), p = run->best;
    run->is_chance = !run->is_beaten && samples > 0 && strcmp(run->metric, "accuracy") == 0 &&
                     p - run->baseline < sqrt(p * (1 - p) / samples);
    run->is_beaten |= run->is_chance;
}

/* The profile in the command of the first process, for the commands that the report proposes; a resume may have
 * named resolved.ini. */
static void find_profile_path(cleat_report_run *run) {
    const cleat_history_records *starts = &run->history->starts;
    cJSON *first = starts->count ? cJSON_Parse(starts->items[0]) : NULL;
    const char *at = cleat_json_text(first, "command");
    char word[sizeof run->profile_path];
    snprintf(run->profile_path, sizeof run->profile_path, "%s/resolved.ini", run->history->folder);
    if (at) cleat_command_options(at, run->profile_options, sizeof run->profile_options);
    while (at && cleat_shell_next(&at, word, sizeof word))
        if (strcmp(cleat_name_ending(word), ".ini") == 0 && !strchr(word, '=')) {
            snprintf(run->profile_path, sizeof run->profile_path, "%s", word);
            break;
        }
    cJSON_Delete(first);
}

cleat_status cleat_report_run_open(const cleat_history *history, cleat_report_run *run, cleat_error *error) {
    *run = (cleat_report_run){
        .history = history, .best = NAN, .best_step = NAN, .best_epoch = NAN, .last = NAN, .baseline = NAN};
    run->train = cleat_history_find(history, "train");
    run->eval = cleat_history_find(history, "eval");
    run->samples = cleat_history_find(history, "sample");
    parse_records(run);
    cleat_status status = parse_events(run, error);
    if (!status) status = measure_time(run, error);
    if (status) return status;
    find_progress(run);
    const char *end_text = cleat_json_text(run->end, "text");
    run->end_text = end_text ? end_text : "";
    run->outcome = find_outcome(run);
    find_metric(run);
    find_baseline(run);
    find_profile_path(run);
    cleat_report_detect_trend(run);
    cleat_report_detect_limit(run);
    cleat_report_choose_next(run);
    return CLEAT_OK;
}

void cleat_report_run_free(cleat_report_run *run) {
    cJSON_Delete(run->start);
    cJSON_Delete(run->end);
    cJSON_Delete(run->examples);
    cJSON_Delete(run->profile);
    for (size_t i = 0; i < run->n_events; ++i) cJSON_Delete(run->events[i]);
    cleat_free(run->events);
    cleat_free(run->elapsed);
}

/* What `cleat monitor` shows: the state of a run, and its text: rows of a label and short items, which flow into the
 * width of the terminal. */
#include "monitor.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LABEL = 10, ITEM = 512, MIN_WIDTH = 24, EVENTS = 6 };

typedef enum tint { PLAIN, BOLD, DIM, GREEN, YELLOW, RED } tint;

/* --- the state: the last process of a run's history --------------------------------------------------------------- */

/* The samples of the last process begin with its start record. */
static size_t find_first_sample(const monitor_state *state) {
    const double *times = cleat_history_values(state->samples, "time"), start = cleat_json_number(state->start, "time");
    size_t first = 0;
    while (times && first < state->samples->rows && times[first] < start) ++first;
    return first;
}

cleat_status monitor_open(const char *folder, monitor_state *state, cleat_error *error) {
    *state = (monitor_state){.history = NULL};
    cleat_status status = cleat_history_read(folder, &state->history, error);
    if (status) return status;
    state->samples = cleat_history_find(state->history, "sample");
    state->train = cleat_history_find(state->history, "train");
    state->eval = cleat_history_find(state->history, "eval");
    state->start = cJSON_Parse(state->history->last_start); /* NULL for NULL */
    state->end = cJSON_Parse(state->history->last_end);
    state->first_sample = find_first_sample(state);
    state->phase = state->start || state->end ? state->history->phase : CLEAT_HISTORY_UNKNOWN;
    return CLEAT_OK;
}

void monitor_close(monitor_state *state) {
    cJSON_Delete(state->start);
    cJSON_Delete(state->end);
    cleat_history_free(state->history);
    *state = (monitor_state){.history = NULL};
}

/* The value of a figure in the last sample, or in one of the few before it if it is null there; NaN: unknown. */
static double latest(const monitor_state *state, const char *name) {
    enum { PATIENCE = 5 }; /* a sample in which no step was completed has no speed */
    const double *values = cleat_history_values(state->samples, name);
    if (!values) return NAN;
    for (size_t i = state->samples->rows, tried = 0; i-- > state->first_sample && tried < PATIENCE; ++tried)
        if (isfinite(values[i])) return values[i];
    return NAN;
}

/* Its mean over the time of the last process. */
static double mean(const monitor_state *state, const char *name) {
    const double *values = cleat_history_values(state->samples, name);
    const double *times = cleat_history_values(state->samples, "time");
    double sum = 0, all = 0, before = cleat_json_number(state->start, "time");
    if (!values || !times) return NAN;
    for (size_t i = state->first_sample; i < state->samples->rows; ++i) {
        const double seconds = times[i] - before;
        before = times[i];
        if (!isfinite(values[i]) || !(seconds > 0)) continue;
        sum += values[i] * seconds;
        all += seconds;
    }
    return all > 0 ? sum / all : NAN;
}

/* A number of an object of the start record: "schedule", "total_steps"; NaN: unknown. */
static double start_number(const monitor_state *state, const char *object, const char *name) {
    return cleat_json_number(cleat_json_member(state->start, object), name);
}

static double last_row(const cleat_history_table *table, const char *name) {
    const double *values = cleat_history_values(table, name);
    return values && table->rows ? values[table->rows - 1] : NAN;
}

/* The last optimizer step that is known; NaN: none. */
static double last_step(const monitor_state *state) {
    if (state->end) return cleat_json_number(state->end, "step");
    const double sampled = last_row(state->samples, "step"), logged = last_row(state->train, "step");
    return fmax(sampled, logged); /* of two, the one that is a number */
}

/* Seconds until the end of the run at the speed since its first step; NaN: unknown, or it has ended. */
static double seconds_left(const monitor_state *state) {
    const double *times = cleat_history_values(state->samples, "time");
    const double *steps = cleat_history_values(state->samples, "step");
    const double before = cleat_json_number(state->start, "step"),
                 total = start_number(state, "schedule", "total_steps");
    if (state->phase != CLEAT_HISTORY_RUNNING || !times || !steps) return NAN;
    const size_t last = state->samples->rows - 1;
    size_t first = state->first_sample;
    while (first < last && !(steps[first] > before)) ++first; /* without the start-up */
    const double per_step = (times[last] - times[first]) / (steps[last] - steps[first]);
    return isfinite(per_step) ? fmax(0, (total - steps[last]) * per_step) : NAN;
}

/* "running", "ok", "interrupted", "killed", ... */
static const char *status_text(const monitor_state *state) {
    const char *status = cleat_json_text(state->end, "status");
    switch (state->phase) {
    case CLEAT_HISTORY_RUNNING:
        return "running";
    case CLEAT_HISTORY_ENDED:
        return status ? status : "ended";
    case CLEAT_HISTORY_KILLED:
        return "killed";
    case CLEAT_HISTORY_UNKNOWN:
        break;
    }
    return "not monitored";
}

/* --- a sheet of rows ------------------------------------------------------------------------------------------ */

typedef struct sheet {
    cleat_string *out;
    const monitor_style *style;
    int width, column; /* column: of the next character */
    bool is_first;     /* no item yet in the row */
} sheet;

/* Bytes of the first `columns` columns. */
static size_t bytes_of(const char *text, int columns) {
    const char *at = text;
    for (; *at; ++at)
        if (((unsigned char)*at & 0xC0) != 0x80 && columns-- == 0) break;
    return (size_t)(at - text);
}

static void put(sheet *s, tint color, const char *text, int most) {
    static const char *const codes[] = {"", "\033[1m", "\033[2m", "\033[32m", "\033[33m", "\033[31m"};
    const bool colored = s->style->colors && color != PLAIN;
    const int length = (int)bytes_of(text, most > 0 ? most : 0);
    cleat_string_add(s->out, "%s%.*s%s", colored ? codes[color] : "", length, text, colored ? "\033[0m" : "");
    const int columns = cli_columns(text);
    s->column += columns < most ? columns : most;
}

static void begin_row(sheet *s, const char *label) {
    char padded[LABEL + 1];
    snprintf(padded, sizeof padded, "%-*s", LABEL, label);
    s->column = 0;
    s->is_first = true;
    put(s, DIM, padded, LABEL);
}

static void end_row(sheet *s) {
    cleat_string_add(s->out, "\n");
}

static void new_line(sheet *s, int indent) {
    cleat_string_add(s->out, "\n%*s", indent, "");
    s->column = indent;
}

/* Appends an item after a comma, on a new line if it does not fit in this one. */
static void CLEAT_PRINTF(3, 4) item(sheet *s, tint color, const char *format, ...) {
    char text[ITEM];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cleat_clean_text(text);
    if (!s->is_first) {
        put(s, PLAIN, ",", 1);
        if (s->column + 1 + cli_columns(text) + 1 > s->width)
            new_line(s, LABEL);
        else
            put(s, PLAIN, " ", 1);
    }
    s->is_first = false;
    put(s, color, text, s->width - s->column);
}

/* Writes words from `indent` on, wrapped at the width; a longer word is divided. */
static void wrap(sheet *s, int indent, tint color, const char *text) {
    while (*text) {
        const size_t word = strcspn(text, " ");
        char one[ITEM];
        snprintf(one, sizeof one, "%.*s", (int)(word < sizeof one ? word : sizeof one - 1), text);
        const int columns = cli_columns(one), room = s->width - s->column - (s->column > indent);
        if (columns > room && s->column > indent) {
            new_line(s, indent);
            continue;
        }
        if (s->column > indent) put(s, PLAIN, " ", 1);
        const size_t bytes = bytes_of(one, s->width - s->column);
        put(s, color, one, s->width - s->column);
        text += bytes ? bytes : 1;
        if (*text == ' ') ++text;
    }
}

static void text_row(sheet *s, const char *label, const char *text) {
    begin_row(s, label);
    wrap(s, LABEL, PLAIN, text);
    end_row(s);
}

/* --- parts of the text ---------------------------------------------------------------------------------------- */

static const char *text_of(const cJSON *object, const char *name) {
    char *text = cJSON_GetStringValue(cleat_json_member(object, name));
    if (text) cleat_clean_text(text); /* from a file that anyone may have written */
    return text ? text : "";
}

static const char *bytes_text(double bytes, char text[CLEAT_BYTES_TEXT]) {
    return cleat_bytes_text((int64_t)bytes, text);
}

/* While a run trains, what it does now; afterwards, its mean. */
static double rate(const monitor_state *state, const char *name) {
    return state->phase == CLEAT_HISTORY_RUNNING ? latest(state, name) : mean(state, name);
}

static void print_run(sheet *s, const monitor_state *state) {
    const char *status = status_text(state), *message = text_of(state->end, "text");
    const bool good = state->phase == CLEAT_HISTORY_RUNNING || strcmp(status, "ok") == 0;
    begin_row(s, "run");
    item(s, BOLD, "%s", state->history->name);
    item(s, good ? GREEN : state->phase == CLEAT_HISTORY_KILLED ? RED : YELLOW, "%s", status);
    end_row(s);
    if (state->phase == CLEAT_HISTORY_KILLED)
        text_row(s, "", "no end record, and no process trains in the folder: continue with --resume");
    else if (*message)
        text_row(s, "", message);
    if (!state->start) return;
    const cJSON *model = cleat_json_member(state->start, "model");
    begin_row(s, "model");
    item(s, PLAIN, "%s", text_of(model, "family"));
    item(s, PLAIN, "%.0f parameters", start_number(state, "model", "parameters"));
    item(s, PLAIN, "%s", text_of(model, "precision"));
    end_row(s);
    text_row(s, "device", text_of(cleat_json_member(state->start, "device"), "name"));
}

static void print_bar(sheet *s, double share) {
    enum { BAR = 20 };
    char bar[BAR + 3] = "[";
    const int filled = (int)(share * BAR);
    for (int i = 0; i < BAR; ++i) bar[1 + i] = i < filled ? '#' : '.';
    bar[BAR + 1] = ']';
    item(s, GREEN, "%s", bar);
    item(s, PLAIN, "%.0f %%", floor(100 * share));
}

static void print_progress(sheet *s, const monitor_state *state) {
    char left[CLI_SHORT];
    const double step = last_step(state), total = start_number(state, "schedule", "total_steps");
    const double per_epoch = start_number(state, "schedule", "steps_per_epoch");
    const double seconds = seconds_left(state);
    if (isnan(step)) return;
    begin_row(s, "progress");
    if (total > 0) {
        print_bar(s, fmin(1, step / total));
        item(s, PLAIN, "step %.0f of %.0f", step, total);
        item(s, PLAIN, "epoch %.2f of %.0f", step / per_epoch, start_number(state, "schedule", "epochs"));
    } else {
        item(s, PLAIN, "step %.0f", step);
    }
    if (isfinite(seconds)) item(s, BOLD, "%s left", cli_duration(seconds, left));
    end_row(s);
}

/* Means of `values` [n] in at most 512 columns, as characters of increasing height. */
static void sparkline(const double *values, size_t n, int columns, bool utf8, char text[ITEM]) {
    static const char *const blocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                         "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char *const letters[] = {"_", ".", "-", "~", "=", "+", "*", "#"};
    enum { HEIGHTS = 8, MOST = 128 };
    double means[MOST], low = INFINITY, high = -INFINITY;
    if (columns > MOST) columns = MOST;
    if ((size_t)columns > n) columns = (int)n;
    *text = 0;
    for (int c = 0; c < columns; ++c) {
        double sum = 0, count = 0;
        for (size_t i = n * (size_t)c / (size_t)columns; i < n * (size_t)(c + 1) / (size_t)columns; ++i)
            if (isfinite(values[i])) sum += values[i], ++count;
        means[c] = sum / count;
        if (means[c] < low) low = means[c];
        if (means[c] > high) high = means[c];
    }
    for (int c = 0; c < columns; ++c) {
        const double height = high > low ? (means[c] - low) / (high - low) : 0;
        const int at = isfinite(height) ? (int)(height * (HEIGHTS - 1) + 0.5) : 0;
        strcat(text, isfinite(means[c]) ? (utf8 ? blocks : letters)[at] : " ");
    }
}

static void print_loss(sheet *s, const monitor_state *state) {
    const double *losses = cleat_history_values(state->train, "loss");
    char line[ITEM];
    if (!losses || !state->train->rows) return;
    begin_row(s, "loss");
    item(s, BOLD, "%.4g", losses[state->train->rows - 1]);
    sparkline(losses, state->train->rows, s->width - s->column - 3 < 60 ? s->width - s->column - 3 : 60, s->style->utf8,
              line);
    if (*line) item(s, PLAIN, "%s", line);
    end_row(s);
}

/* The evaluation with the best of `values`, those of the run's metric; the first one of equals. */
static size_t best_row(const monitor_state *state, const double *values) {
    const bool ascends = cJSON_IsTrue(cleat_json_member(cleat_json_member(state->start, "model"), "ascends"));
    size_t best = 0;
    for (size_t i = 1; i < state->eval->rows; ++i)
        if (isfinite(values[i]) &&
            (!isfinite(values[best]) || (ascends ? values[i] > values[best] : values[i] < values[best])))
            best = i;
    return best;
}

static void print_evaluation(sheet *s, const monitor_state *state) {
    const cleat_history_table *eval = state->eval;
    const char *metric = text_of(cleat_json_member(state->start, "model"), "metric");
    const double *steps = cleat_history_values(eval, "step"), *values = cleat_history_values(eval, metric);
    if (!eval || !eval->rows || !steps) return;
    const size_t last = eval->rows - 1;
    begin_row(s, "eval");
    item(s, PLAIN, "step %.0f", steps[last]);
    for (size_t c = 0; c < eval->columns; ++c) {
        const cleat_history_column *column = &eval->items[c];
        if (strcmp(column->name, "step") == 0 || strcmp(column->name, "epoch") == 0) continue;
        item(s, strcmp(column->name, metric) == 0 ? BOLD : PLAIN, "%s %.4g", column->name, column->values[last]);
    }
    end_row(s);
    if (!values) return;
    const size_t best = best_row(state, values);
    begin_row(s, "best");
    item(s, BOLD, "%s %.4g", metric, values[best]);
    item(s, PLAIN, "step %.0f", steps[best]);
    end_row(s);
}

static void print_speed(sheet *s, const monitor_state *state) {
    const double speed = rate(state, "steps_per_second"), step = 1 / speed; /* a mean of speeds, not of times */
    const double expected = start_number(state, "forecast", "step_seconds");
    const double roofline = rate(state, "roofline_share");
    char text[CLI_SHORT];
    if (isnan(step)) return;
    begin_row(s, "speed");
    item(s, BOLD, "%s a step", cli_duration(step, text));
    if (isfinite(expected)) item(s, PLAIN, "forecast %s", cli_duration(expected, text));
    item(s, PLAIN, "%.4g steps/s", speed);
    item(s, PLAIN, "%.4g samples/s", rate(state, "samples_per_second"));
    end_row(s);
    begin_row(s, "roofline");
    if (isfinite(roofline))
        item(s, roofline < 0.2 ? YELLOW : PLAIN, "%.0f %% of the measured speed", 100 * roofline);
    else
        item(s, PLAIN, "unknown");
    end_row(s);
}

static void print_dry(sheet *s, const monitor_state *state) {
    static const struct {
        const char *name, *text;
    } causes[] = {{"dry_loader", "loader"},
                  {"dry_read", "reading results"},
                  {"dry_evaluate", "evaluation"},
                  {"dry_checkpoint", "checkpoint"},
                  {"dry_other", "other"}};
    const double dry = rate(state, "dry_share"), late = rate(state, "dry_handovers");
    if (isnan(dry)) return;
    begin_row(s, "idle");
    item(s, dry > 0.1 ? YELLOW : PLAIN, "%.1f %% of the time", 100 * dry);
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; ++i) {
        const double share = rate(state, causes[i].name);
        if (share >= 0.0005) item(s, PLAIN, "%s %.1f %%", causes[i].text, 100 * share);
    }
    end_row(s);
    const double workers = latest(state, "workers"), fill = rate(state, "loader_fill_seconds");
    if (isnan(workers)) return;
    begin_row(s, "loader");
    item(s, PLAIN, "%.0f thread%s", workers, workers == 1 ? "" : "s");
    if (isfinite(fill) && workers > 0) item(s, PLAIN, "busy %.0f %%", 100 * fill / workers);
    if (isfinite(late)) item(s, PLAIN, "late for %.0f %% of the batches", 100 * late);
    end_row(s);
}

static void print_memory(sheet *s, const monitor_state *state) {
    char text[CLEAT_BYTES_TEXT], whole[CLEAT_BYTES_TEXT];
    const double planned = latest(state, "memory_planned"), allocated = latest(state, "memory_allocated");
    const double used = latest(state, "memory_device"), all = latest(state, "memory_device_total");
    if (isnan(planned)) return;
    begin_row(s, "memory");
    item(s, PLAIN, "%s planned", bytes_text(planned, text));
    if (isfinite(allocated) && allocated != planned) item(s, YELLOW, "%s allocated", bytes_text(allocated, text));
    if (isfinite(used) && isfinite(all))
        item(s, PLAIN, "device %s of %s", bytes_text(used, text), bytes_text(all, whole));
    end_row(s);
}

static void print_throttling(sheet *s, const monitor_state *state) {
    enum { THERMAL = 1, POWER = 2 };
    const double reason = latest(state, "throttle_reason");
    if (!(latest(state, "throttled") > 0)) return;
    const int bits = isfinite(reason) ? (int)reason : 0;
    item(s, YELLOW, "throttled%s%s", bits & THERMAL ? ": temperature" : "", bits & POWER ? ": power limit" : "");
}

/* Drivers' figures; one that is unknown is left out. */
static void print_load(sheet *s, const monitor_state *state) {
    static const struct {
        const char *name, *format;
        double factor;
    } parts[] = {{"busy_device", "device %.0f %%", 100},
                 {"busy_own", "this run %.0f %%", 100},
                 {"power", "%.0f W", 1},
                 {"energy", "%.3g Wh", 1.0 / 3600},
                 {"clock", "%.0f MHz", 1}};
    const double temperature = latest(state, "temperature");
    bool any = false;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; ++i) {
        char text[64];
        const double value = latest(state, parts[i].name);
        if (isnan(value)) continue;
        if (!any) begin_row(s, "load");
        any = true;
        snprintf(text, sizeof text, parts[i].format, value * parts[i].factor);
        item(s, PLAIN, "%s", text);
    }
    if (!any && strcmp(text_of(cleat_json_member(state->start, "device"), "kind"), "GPU") == 0)
        text_row(s, "load", "unknown: its driver gives no figures that cleat can read on this system");
    if (!any) return;
    if (isfinite(temperature)) item(s, PLAIN, "%.0f %sC", temperature, s->style->utf8 ? "\u00b0" : "");
    print_throttling(s, state);
    end_row(s);
}

static void print_host(sheet *s, const monitor_state *state) {
    char text[CLEAT_BYTES_TEXT];
    const double cpus = rate(state, "host_cpu"), allowed = start_number(state, "cpus", "allowed");
    const double memory = latest(state, "host_memory"), free = latest(state, "host_memory_available");
    const double throttled = rate(state, "cpu_quota_throttled");
    if (isnan(cpus)) return;
    begin_row(s, "host");
    item(s, PLAIN, "%.2f of %.0f CPUs", cpus, allowed);
    if (isfinite(memory)) item(s, PLAIN, "%s", bytes_text(memory, text));
    if (isfinite(free)) item(s, PLAIN, "%s available", bytes_text(free, text));
    if (throttled > 0)
        item(s, throttled > 0.05 ? YELLOW : PLAIN, "CPU quota used up in %.0f %% of periods", 100 * throttled);
    end_row(s);
}

/* --- events --------------------------------------------------------------------------------------------------- */

static void clock_text(double seconds, char text[16]) {
    struct tm parts;
    const time_t whole = (time_t)seconds;
    *text = 0;
    if (localtime_r(&whole, &parts)) strftime(text, 16, "%H:%M:%S", &parts);
}

static void print_event(sheet *s, const cJSON *event) {
    char when[16], title[ITEM];
    const char *what = text_of(event, "what"), *command = text_of(event, "command");
    const bool is_hint = strcmp(what, "hint") == 0;
    clock_text(cleat_json_number(event, "time"), when);
    s->column = 0;
    put(s, DIM, when, LABEL);
    cleat_string_add(s->out, "%*s", LABEL - s->column, "");
    s->column = LABEL;
    snprintf(title, sizeof title, "%s %s:", what, text_of(event, "name"));
    wrap(s, LABEL, is_hint ? YELLOW : PLAIN, title);
    wrap(s, LABEL, PLAIN, text_of(event, "text"));
    if (*command) {
        new_line(s, LABEL);
        wrap(s, LABEL, BOLD, command);
    }
    end_row(s);
}

static void print_events(sheet *s, const monitor_state *state) {
    const cleat_history_records *events = &state->history->events;
    for (size_t i = events->count > EVENTS ? events->count - EVENTS : 0; i < events->count; ++i) {
        cJSON *event = cJSON_Parse(events->items[i]);
        print_event(s, event);
        cJSON_Delete(event);
    }
}

/* --- the whole ------------------------------------------------------------------------------------------------ */

void monitor_print(cleat_string *out, const monitor_state *state, const monitor_style *style) {
    sheet s = {.out = out, .style = style, .width = style->width < MIN_WIDTH ? MIN_WIDTH : style->width};
    print_run(&s, state);
    print_progress(&s, state);
    print_loss(&s, state);
    print_evaluation(&s, state);
    print_speed(&s, state);
    print_dry(&s, state);
    print_memory(&s, state);
    print_load(&s, state);
    print_host(&s, state);
    print_events(&s, state);
    if (!state->start)
        text_row(&s, "", "no system.jsonl with a start record: the run has run.monitor = none, or has not started");
}

void monitor_print_line(FILE *out, const monitor_state *state) {
    char text[CLI_SHORT];
    const char *metric = text_of(cleat_json_member(state->start, "model"), "metric");
    const double *losses = cleat_history_values(state->train, "loss");
    const double *values = cleat_history_values(state->eval, metric),
                 *steps = cleat_history_values(state->eval, "step");
    const double step = last_step(state), total = start_number(state, "schedule", "total_steps");
    const double left = seconds_left(state), seconds = latest(state, "step_seconds");
    const double roofline = latest(state, "roofline_share"), dry = latest(state, "dry_share");
    fprintf(out, "%s", status_text(state));
    if (isfinite(step)) fprintf(out, "  step %.0f", step);
    if (isfinite(step) && isfinite(total)) fprintf(out, "/%.0f", total);
    if (losses && state->train->rows) fprintf(out, "  loss %.4g", losses[state->train->rows - 1]);
    if (values && state->eval->rows) {
        const size_t best = best_row(state, values);
        fprintf(out, "  %s %.4g, best %.4g at step %.0f", metric, values[state->eval->rows - 1], values[best],
                steps ? steps[best] : NAN);
    }
    if (isfinite(seconds)) fprintf(out, "  %s a step", cli_duration(seconds, text));
    if (isfinite(roofline)) fprintf(out, "  roofline %.0f %%", 100 * roofline);
    if (isfinite(dry)) fprintf(out, "  idle %.1f %%", 100 * dry);
    if (isfinite(left)) fprintf(out, "  %s left", cli_duration(left, text));
    fputc('\n', out);
}

size_t monitor_print_events(FILE *out, const monitor_state *state, size_t first) {
    const cleat_history_records *events = &state->history->events;
    for (size_t i = first; i < events->count; ++i) {
        cJSON *event = cJSON_Parse(events->items[i]);
        const char *command = text_of(event, "command");
        fprintf(out, "%s %s: %s%s%s\n", text_of(event, "what"), text_of(event, "name"), text_of(event, "text"),
                *command ? " Try: " : "", command);
        cJSON_Delete(event);
    }
    return events->count;
}

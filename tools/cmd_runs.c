/* cleat runs: a table of the runs below a folder, with the settings in which they differ. */
#include "sweep.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELL = 512, SETTING = 48, FIXED = 7, MAX_SETTINGS = 12 };

static const char *const state_names[] = {"finished", "running", "stopped", "failed"};

const char *runs_number(double value, char text[CLI_SHORT]) {
    snprintf(text, CLI_SHORT, isfinite(value) ? "%.6g" : "-", value);
    return text;
}

/* The table as texts [(rows + 1) * columns]; the first row has the headings. */
typedef struct table {
    char (*cells)[CELL];
    size_t rows, columns;
} table;

CLEAT_PRINTF(4, 5) static void put(const table *t, size_t row, size_t column, const char *format, ...) {
    const size_t room = column ? SETTING : CELL; /* names of runs are never cut */
    char *to = t->cells[row * t->columns + column];
    va_list arguments;
    va_start(arguments, format);
    if ((size_t)vsnprintf(to, room, format, arguments) >= room) memcpy(to + room - 4, "...", 4);
    va_end(arguments);
    cleat_clean_text(to);
}

static void put_run(const table *t, size_t row, const cleat_run_summary *run) {
    char shown[CLI_SHORT], other[CLI_SHORT];
    put(t, row, 0, "%s", run->name);
    put(t, row, 1, "%s", *run->model ? run->model : "-");
    put(t, row, 2, "%s", *run->note ? run->note : state_names[run->state]);
    put(t, row, 3, "%s/%s", runs_number(run->epochs, shown), runs_number(run->epochs_planned, other));
    put(t, row, 4, "%s %s", run->metric, runs_number(run->best, shown));
    put(t, row, 5, "%s", runs_number(run->best_epoch, shown));
    put(t, row, 6, "%s", isfinite(run->seconds) ? cli_duration(run->seconds, shown) : "-");
}

static void print_table(const table *t) {
    for (size_t r = 0; r <= t->rows; ++r)
        for (size_t c = 0; c < t->columns; ++c) {
            const bool is_last = c + 1 == t->columns;
            const char *cell = t->cells[r * t->columns + c];
            int width = 0;
            for (size_t i = 0; i <= t->rows && !is_last; ++i) {
                const int columns = cli_columns(t->cells[i * t->columns + c]);
                width = columns > width ? columns : width;
            }
            printf("%s%*s%s", cell, is_last ? 0 : width - cli_columns(cell), "", is_last ? "\n" : "  ");
        }
}

cleat_status runs_print(const cleat_run_list *list, cleat_error *error) {
    static const char *const heads[FIXED] = {"run", "model", "state", "epochs", "best", "epoch", "time"};
    const cleat_history_setting *s;
    size_t differences = 0;
    while (cleat_run_list_difference(list, differences)) ++differences;
    const size_t shown = differences < MAX_SETTINGS ? differences : MAX_SETTINGS;
    const table t = {calloc((list->count + 1) * (FIXED + shown), CELL), list->count, FIXED + shown};
    if (!t.cells) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a table of %zu runs", list->count);
    for (size_t c = 0; c < FIXED; ++c) put(&t, 0, c, "%s", heads[c]);
    for (size_t r = 0; r < list->count; ++r) put_run(&t, r + 1, &list->items[r]);
    for (size_t i = 0; i < shown && (s = cleat_run_list_difference(list, i)) != NULL; ++i) {
        put(&t, 0, FIXED + i, "%s.%s", s->section, s->key);
        for (size_t r = 0; r < list->count; ++r) {
            const char *value = cleat_run_setting(&list->items[r], s->section, s->key);
            put(&t, r + 1, FIXED + i, "%s", value ? value : "-");
        }
    }
    print_table(&t);
    if (differences > shown) printf("%zu more settings differ: `cleat runs --json` lists them\n", differences - shown);
    free(t.cells);
    return CLEAT_OK;
}

static void print_json(const cleat_run_list *list) {
    const cleat_history_setting *s;
    cleat_string json = {.spaced = true};
    json_add(&json, json_open(NULL, '{'), json_open("runs", '['));
    for (size_t r = 0; r < list->count; ++r) {
        const cleat_run_summary *run = &list->items[r];
        json_add(&json, json_open(NULL, '{'), json_clean("name", run->name), json_clean("folder", run->folder),
                 json_clean("model", *run->model ? run->model : NULL), json_text("state", state_names[run->state]),
                 json_number("epochs", run->epochs), json_number("epochs_planned", run->epochs_planned),
                 json_clean("metric", run->metric), json_bool("ascends", run->ascends), json_exact("best", run->best),
                 json_number("best_epoch", run->best_epoch), json_fixed("seconds", run->seconds, 3));
        json_add(&json, json_open("settings", '{'));
        for (size_t i = 0; (s = cleat_run_list_difference(list, i)) != NULL; ++i) {
            char name[CELL];
            snprintf(name, sizeof name, "%s.%s", s->section, s->key);
            json_add(&json, json_clean(name, cleat_run_setting(run, s->section, s->key)));
        }
        json_add(&json, json_close('}'), json_close('}'));
    }
    json_add(&json, json_close(']'), json_count("other_folders", (int64_t)list->others),
             json_count("damaged", (int64_t)list->damaged), json_close('}'));
    cli_print_json(&json);
}

/* No run, or a metric that no evaluation has, is more likely a mistake than a table that is empty. */
static cleat_status check_list(const cleat_run_list *list, const char *folder, const char *metric, cleat_error *error) {
    bool found = list->count > 0 && !metric;
    if (list->others)
        cleat_log(CLEAT_LOG_WARNING, "skipped folders without a run: %zu; the first: %s", list->others, list->other);
    if (list->damaged)
        cleat_log(CLEAT_LOG_WARNING, "skipped damaged runs: %zu; the first: %s", list->damaged, list->failure);
    for (size_t r = 0; r < list->count; ++r) found |= isfinite(list->items[r].best);
    return found ? CLEAT_OK
                 : cleat_fail(error, CLEAT_ERR_NOT_FOUND, "there is no run%s%s in or below %s",
                              metric ? " with evaluations of the metric " : "", metric ? metric : "", folder);
}

static int run(const cli_command *command, int argc, char **argv) {
    const char *sort = "name", *metric = NULL;
    bool json = false;
    cli_list words = {.count = 0};
    const cli_option options[] = {
        {"--sort", CLI_TEXT, &sort, "METRIC|time|name",
         "order: by a metric, the best first, by time, the shortest first, or by name (default)"},
        {"--metric", CLI_TEXT, &metric, "NAME",
         "metric of the evaluations to show (default: that of --sort, else run.metric of each run)"},
        {"--json", CLI_FLAG, &json, NULL, "print one JSON object"},
        {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    cleat_error error = {0};
    cleat_run_list list = {.count = 0};
    if (!cli_parse(command, options, argc, argv, &words, &exit_code)) return exit_code;
    if (words.count > 1) return cli_usage(command, "at most one folder is expected");
    const char *folder = words.count ? words.items[0] : "runs";
    const bool is_metric = strcmp(sort, "name") != 0 && strcmp(sort, "time") != 0;
    if (is_metric && metric && strcmp(metric, sort) != 0)
        return cli_usage(command, "--sort %s and --metric %s name different metrics", sort, metric);
    if (is_metric) metric = sort;
    cleat_status status = cleat_run_list_read(folder, metric, &list, &error);
    if (!status) status = check_list(&list, folder, metric, &error);
    cleat_run_list_sort(&list, sort);
    if (!status && json) print_json(&list);
    if (!status && !json) status = runs_print(&list, &error);
    cleat_run_list_free(&list);
    return cli_finish(status, &error);
}

const cli_command cli_runs = {"runs", "[DIR] [--sort METRIC|time|name] [--metric NAME] [--json]",
                              "list the runs found below a folder (runs), and the settings in which they differ", run};

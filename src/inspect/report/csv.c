/* The metrics of a run as CSV, with the time of each step. */
#include "report/sections.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/string.h"
#include "report/html.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DIGITS = 9 };

typedef struct time_line {
    double *step, *time; /* [count], both ascending */
    size_t count, at;    /* `at`: where the last question was answered, since questions ascend */
} time_line;

/* A resumed run repeats steps: the later times count. */
static void add_time(time_line *line, double step, double time) {
    if (!isfinite(step) || !isfinite(time)) return;
    while (line->count > 0 && line->step[line->count - 1] >= step) --line->count;
    line->step[line->count] = step;
    line->time[line->count++] = time;
}

static cleat_status make_time_line(const cleat_history *history, time_line *line, cleat_error *error) {
    const cleat_history_table *samples = cleat_history_find(history, "sample");
    const double *steps = cleat_history_values(samples, "step"), *times = cleat_history_values(samples, "time");
    size_t rows = samples && steps && times ? samples->rows : 0, row = 0,
           room = rows + history->starts.count + history->ends.count + 1;
    line->step = cleat_alloc(room, sizeof *line->step);
    line->time = cleat_alloc(room, sizeof *line->time);
    if (!line->step || !line->time) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", history->folder);
    for (size_t s = 0; s < history->starts.count; ++s) { /* samples up to this start, then the start itself */
        cJSON *start = cJSON_Parse(history->starts.items[s]);
        double time = cleat_json_number(start, "time");
        for (; row < rows && times[row] < time; ++row) add_time(line, steps[row], times[row]);
        add_time(line, cleat_json_number(start, "step"), time);
        cJSON_Delete(start);
    }
    for (; row < rows; ++row) add_time(line, steps[row], times[row]);
    for (size_t i = 0; i < history->ends.count; ++i) {
        cJSON *end = cJSON_Parse(history->ends.items[i]);
        double step = cleat_json_number(end, "step");
        if (line->count && step > line->step[line->count - 1]) add_time(line, step, cleat_json_number(end, "time"));
        cJSON_Delete(end);
    }
    return CLEAT_OK;
}

static double time_at(time_line *line, double step) {
    if (!line->count || !(step >= line->step[0]) || step > line->step[line->count - 1]) return NAN;
    if (line->at >= line->count || line->step[line->at] > step) line->at = 0;
    while (line->at + 1 < line->count && line->step[line->at + 1] <= step) ++line->at;
    size_t i = line->at;
    if (i + 1 == line->count) return line->time[i];
    double share = (step - line->step[i]) / (line->step[i + 1] - line->step[i]);
    return line->time[i] + share * (line->time[i + 1] - line->time[i]);
}

typedef struct csv_columns {
    const cleat_history_table *tables[2]; /* train, eval; NULL: none */
    const char **names;                   /* [count], all metrics of both */
    const double **values[2];             /* [count]; NULL: the table has no such metric */
    size_t count;
} csv_columns;

static bool has_name(const csv_columns *columns, const char *name) {
    for (size_t i = 0; i < columns->count; ++i)
        if (strcmp(columns->names[i], name) == 0) return true;
    return false;
}

static cleat_status collect_columns(const cleat_history *history, csv_columns *columns, cleat_error *error) {
    static const char *const kinds[2] = {"train", "eval"};
    size_t room = 1;
    for (int t = 0; t < 2; ++t) {
        columns->tables[t] = cleat_history_find(history, kinds[t]);
        if (columns->tables[t]) room += columns->tables[t]->columns;
    }
    columns->names = cleat_alloc(room, sizeof *columns->names);
    for (int t = 0; t < 2; ++t) columns->values[t] = cleat_alloc(room, sizeof **columns->values);
    if (!columns->names || !columns->values[0] || !columns->values[1])
        return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", history->folder);
    for (int t = 0; t < 2; ++t)
        for (size_t i = 0; columns->tables[t] && i < columns->tables[t]->columns; ++i) {
            const char *name = columns->tables[t]->items[i].name;
            if (strcmp(name, "step") != 0 && strcmp(name, "epoch") != 0 && !has_name(columns, name))
                columns->names[columns->count++] = name;
        }
    for (int t = 0; t < 2; ++t)
        for (size_t i = 0; i < columns->count; ++i)
            columns->values[t][i] = cleat_history_values(columns->tables[t], columns->names[i]);
    return CLEAT_OK;
}

static void add_field(cleat_string *text, double value, int digits) {
    cleat_string_add_bytes(text, ",", 1);
    if (isfinite(value)) cleat_html_number(text, value, digits);
}

static void add_row(const csv_columns *columns, int t, size_t row, time_line *times, cleat_string *text) {
    const double *steps = cleat_history_values(columns->tables[t], "step"),
                 *epochs = cleat_history_values(columns->tables[t], "epoch");
    char time[40] = "";
    double at = steps ? time_at(times, steps[row]) : NAN;
    if (isfinite(at)) snprintf(time, sizeof time, "%.3f", at);
    if (steps && isfinite(steps[row])) cleat_html_number(text, steps[row], 15);
    add_field(text, epochs ? epochs[row] : NAN, DIGITS);
    cleat_string_add(text, ",%s,%s", time, t == 0 ? "train" : "eval");
    for (size_t i = 0; i < columns->count; ++i)
        add_field(text, columns->values[t][i] ? columns->values[t][i][row] : NAN, DIGITS);
    cleat_string_add_bytes(text, "\n", 1);
}

static double step_of(const cleat_history_table *table, size_t row) {
    const double *steps = cleat_history_values(table, "step");
    return table && row < table->rows ? (steps ? steps[row] : 0) : INFINITY;
}

/* Rows of both tables in order of their steps; an evaluation follows the training step after which it was
 * made. */
static void add_rows(const csv_columns *columns, time_line *times, cleat_string *text) {
    size_t row[2] = {0, 0};
    for (;;) {
        double next[2] = {step_of(columns->tables[0], row[0]), step_of(columns->tables[1], row[1])};
        int t = next[1] < next[0];
        if (next[t] == INFINITY) return;
        add_row(columns, t, row[t]++, times, text);
    }
}

cleat_status cleat_csv_write(const cleat_history *history, const char *path, cleat_error *error) {
    time_line times = {0};
    csv_columns columns = {0};
    cleat_string text = {0};
    cleat_status status = make_time_line(history, &times, error);
    if (!status) status = collect_columns(history, &columns, error);
    if (!status) {
        cleat_string_add(&text, "step,epoch,time,split");
        for (size_t i = 0; i < columns.count; ++i) {
            cleat_string_add(&text, ",");
            cleat_string_add_field(&text, columns.names[i]);
        }
        cleat_string_add(&text, "\n");
        add_rows(&columns, &times, &text);
        status = cleat_file_write_text(path, &text, error);
    }
    cleat_free(times.step);
    cleat_free(times.time);
    cleat_free(columns.names);
    cleat_free(columns.values[0]);
    cleat_free(columns.values[1]);
    return status;
}

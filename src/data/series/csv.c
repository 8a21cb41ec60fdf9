/* Reads a series into a table: rows in order of time, one step apart or as the options allow, with numeric
 * cells. */
#include "data/common/csv_stream.h"
#include "data/series/numbers.h"
#include "data/series/series.h"
#include "platform/text.h"

#include "core/memory.h"
#include "core/name_table.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A record of a file of many series. */
typedef struct record {
    size_t series, at, line; /* `at`: its offset in the text */
} record;

typedef struct reader {
    cleat_csv_stream stream;
    const cleat_series_options *options;
    cleat_series_table table;
    record *order;                  /* [n_records] by series, for many series; NULL: as in the file */
    size_t n_records, next, series; /* `series`: index of the current one */
    int64_t begin, filled;          /* its first row; number of rows filled before it */
    cleat_time_form form;           /* of the first row */
    bool offsets_differ, in_utc;    /* the offsets of the times; times are read as UTC */
    const char *step_source;        /* NULL: the step, table.calendar, is unknown before the second row */
    bool is_detected;               /* the step is that of all rows */
    int64_t *carried;               /* [columns] number of consecutive cells that were filled */
    bool is_broken;                 /* the previous row is not in the table */
    bool went_back;                 /* the previous row has an earlier time than the one before it */
    int64_t ahead;                  /* time before the last one that went back; INT64_MIN: none did */
    struct {
        int64_t from, to; /* times around it; equal: none */
        size_t fault;     /* number of faults with its own */
    } gap;                /* the last one that is a fault */
    cleat_faults faults;
    cleat_number_marks marks;
    uint8_t *seen; /* [columns] evidence of the marks in their numbers */
} reader;

static const char *const kind_names[] = {"a time without a time zone", "a time with Z or an offset", "Unix seconds"};

static const char MELT[] =
    ". If each row is a series, write rows of times with pandas: t = pd.read_csv(\"wide.csv\").melt(id_vars=\"NAME\", "
    "var_name=\"time\").dropna(); t.assign(time=t.time.str.lstrip(\"V\")).to_csv(\"long.csv\", index=False), NAME "
    "being the first column, and set data.series_column=NAME data.time_column=time";
static const char COLUMNS[] = " (data.time_column names the column of times, data.series_column that of series)";

static const char *path_of(const reader *r) {
    return r->stream.csv.source.path;
}

static size_t line_of(const reader *r) {
    return r->stream.csv.line;
}

/* --- room ----------------------------------------------------------------------------------------------------- */

static bool enlarge(void *array, size_t used, size_t wanted) {
    void *old, *larger = cleat_alloc(wanted, 1);
    if (!larger) return false;
    memcpy(&old, array, sizeof old);
    if (used) memcpy(larger, old, used);
    cleat_free(old);
    memcpy(array, &larger, sizeof larger);
    return true;
}

/* Ensures room for one more row. The number of rows is extrapolated from the fraction of the file that has
 * been read, so that little memory is wasted. */
static cleat_status reserve(reader *r, cleat_error *error) {
    cleat_series_table *t = &r->table;
    if (t->rows < t->capacity) return CLEAT_OK;
    if (t->rows >= INT32_MAX)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "%s:%zu: more than %d rows; split the file", path_of(r),
                          line_of(r), INT32_MAX);
    double share = cleat_csv_stream_share(&r->stream);
    int64_t expected = share > 0 ? (int64_t)fmin((double)t->rows / share, INT32_MAX) : t->rows * 2;
    int64_t least = t->rows + t->rows / 8 + 1024;
    size_t capacity = (size_t)(expected > least ? expected : least), rows = (size_t)t->rows;
    size_t width = t->columns.used.count * sizeof *t->cells;
    if (!enlarge(&t->cells, rows * width, capacity * width) ||
        !enlarge(&t->times, rows * sizeof *t->times, capacity * sizeof *t->times) ||
        !enlarge(&t->flags, rows, capacity))
        return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for %zu rows of %zu columns", path_of(r), capacity,
                          t->columns.used.count);
    t->capacity = (int64_t)capacity;
    return CLEAT_OK;
}

/* --- times ---------------------------------------------------------------------------------------------------- */

static cleat_status parse_time(reader *r, int64_t *time, cleat_error *error) {
    const char *text = r->stream.csv.fields[r->table.columns.time];
    char shown[CLEAT_EXCERPT_SIZE];
    cleat_time_form form = {.day_first = r->form.day_first};
    bool first = r->table.rows == 0;
    const char *wrong = cleat_time_parse(text, first, time, &form);
    if (wrong)
        return cleat_csv_fail(&r->stream.csv, error, "the time '%s' %s%s",
                              cleat_format_excerpt(text, strlen(text), shown), wrong,
                              !isalpha((unsigned char)*text)     ? strpbrk(text, "-./:") ? "" : COLUMNS
                              : first && r->stream.csv.count > 3 ? MELT
                                                                 : COLUMNS);
    if (first) r->form = form;
    if (!r->in_utc) *time += form.offset;
    if (form.kind != r->form.kind)
        return cleat_csv_fail(
            &r->stream.csv, error, "the time '%s' is %s, but the first row has %s; use the same format in all rows",
            cleat_format_excerpt(text, strlen(text), shown), kind_names[form.kind], kind_names[r->form.kind]);
    return CLEAT_OK;
}

/* Reads the times for what a single one does not show: whether dates have the day first, and whether offsets from UTC
 * differ. If they do, by daylight saving, times are those of the clock (days, trading hours) unless their intervals
 * change more often than in UTC (hours). */
static cleat_status survey_times(reader *r, cleat_error *error) {
    cleat_csv_stream stream;
    int64_t time, offset = INT64_MIN, before[2] = {0}, step[2] = {0}, changes[2] = {0}; /* in UTC, on the clock */
    bool more = true;
    int first = 0; /* evidence: 1 the day, 2 the month */
    cleat_status status = cleat_csv_stream_open(path_of(r), &stream, error);
    if (status) return status;
    while (!(status = cleat_csv_stream_next(&stream, &more, error)) ? more : stream.csv.misfit) {
        const char *text = status ? "" : stream.csv.fields[r->table.columns.time];
        cleat_time_form form = {.day_first = true};
        int a = 0, b = 0;
        const bool dated = sscanf(text, "%2d%*1[/-]%2d", &a, &b) == 2;
        first |= dated ? (a > 12) | (b > 12) << 1 : 0;
        if (cleat_time_parse(text, false, &time, &form)) continue;
        if (!dated && form.kind != CLEAT_TIME_ZONED) break;
        r->offsets_differ = r->offsets_differ || (offset != INT64_MIN && form.offset != offset);
        offset = form.offset;
        const bool later = time > before[0];
        for (int i = 0; i < 2; ++i, time += offset) {
            changes[i] += later && time - before[i] != step[i];
            if (later) step[i] = time - before[i];
            before[i] = time;
        }
    }
    r->form.day_first = first == 1;
    r->in_utc = r->offsets_differ && changes[0] < changes[1];
    cleat_csv_stream_close(&stream);
    return status == CLEAT_ERR_FORMAT ? CLEAT_OK : status; /* reported when the rows are read */
}

static cleat_status check_order(const reader *r, int64_t time, cleat_error *error) {
    int64_t before = r->table.times[r->table.rows - 1];
    char text[CLEAT_TIME_TEXT], text_before[CLEAT_TIME_TEXT];
    if (time > before) return CLEAT_OK;
    cleat_time_text(time, text);
    const bool an_hour = r->form.kind == CLEAT_TIME_LOCAL && before - time <= 3600 && r->table.calendar.step <= 3600;
    const char *saving = an_hour ? " (an hour repeated by daylight saving? write UTC with a Z)" : "";
    const char *several = r->order ? "" : " (several series in one file? name their column: data.series_column)";
    if (time == before)
        return cleat_csv_fail(&r->stream.csv, error, "duplicate time %s; remove one row%s%s", text, saving, several);
    return cleat_csv_fail(&r->stream.csv, error,
                          "the time decreases from %s to %s; sort the rows by time, the oldest first%s%s",
                          cleat_time_text(before, text_before), text, saving, several);
}

/* Inserts the missing rows before `time` as copies of the last one. `why`: what may have caused the gap. */
static cleat_status fill_gap(reader *r, int64_t time, const char *why, cleat_error *error) {
    cleat_series_table *t = &r->table;
    size_t width = t->columns.used.count;
    int64_t before = t->times[t->rows - 1], lacking = cleat_calendar_steps(&t->calendar, before, time) - 1;
    char text[CLEAT_TIME_TEXT], step[CLEAT_STEP_TEXT], apart[CLEAT_STEP_TEXT];
    if (lacking < 0)
        return cleat_csv_fail(
            &r->stream.csv, error,
            "this row is %s after the previous one, not a multiple of the step of %s (%s), so the gap "
            "cannot be filled; correct the times, or set data.gaps=rows (consecutive rows) or skip%s",
            cleat_calendar_text(&(cleat_calendar){.step = time - before}, apart),
            cleat_calendar_text(&t->calendar, step), r->step_source, why);
    if (lacking > r->options->longest_fill)
        return cleat_csv_fail(&r->stream.csv, error,
                              "%lld rows are missing after %s, more than the limit of %lld that can be filled; add "
                              "the rows, or skip gaps: data.gaps = skip",
                              (long long)lacking, cleat_time_text(before, text), (long long)r->options->longest_fill);
    cleat_status status = CLEAT_OK;
    for (int64_t i = 0; i < lacking && !status; ++i) {
        status = reserve(r, error);
        if (status) break;
        float *row = t->cells + (size_t)t->rows * width;
        memcpy(row, row - width, width * sizeof *row);
        t->flags[t->rows] = t->flags[t->rows - 1] & CLEAT_ROW_MISSING;
        t->times[t->rows] = cleat_calendar_after(&t->calendar, before, i + 1);
        ++t->rows;
        ++t->filled_rows;
        t->filled_weekends += (t->times[t->rows - 1] / 86400 % 7 + 10) % 7 > 4; /* 1970-01-01 was a Thursday: 3 */
    }
    return status;
}

/* Handles a row that is not one step after the previous one. */
static cleat_status handle_gap(reader *r, int64_t time, uint8_t *flags, cleat_error *error) {
    int64_t before = r->table.times[r->table.rows - 1];
    char text[CLEAT_TIME_TEXT], step[CLEAT_STEP_TEXT], apart[CLEAT_STEP_TEXT];
    const bool an_hour = r->form.kind == CLEAT_TIME_LOCAL && r->table.calendar.step <= 3600 &&
                         time - before == r->table.calendar.step + 3600;
    const char *why = an_hour             ? " (an hour skipped by daylight saving? write UTC with a Z)"
                      : r->offsets_differ ? " (daylight saving, as offsets differ? write UTC with a Z)"
                                          : "";
    ++r->table.gaps;
    if (r->options->gaps == CLEAT_GAPS_FILL) return fill_gap(r, time, why, error);
    if (r->options->gaps == CLEAT_GAPS_SKIP) {
        *flags |= CLEAT_ROW_BREAK;
        return CLEAT_OK;
    }
    return cleat_csv_fail(&r->stream.csv, error,
                          "this row is %s after that of %s, but the step is %s (%s); complete the file, or "
                          "set data.gaps to fill, skip, or rows (%s)%s",
                          cleat_calendar_text(&(cleat_calendar){.step = time - before}, apart),
                          cleat_time_text(before, text), cleat_calendar_text(&r->table.calendar, step), r->step_source,
                          r->table.calendar.business ? "with data.step = business_day" : "business days", why);
}

/* A misplaced row leaves a gap in its place and one after it, which are not separate faults. */
static void record_disorder(reader *r, int64_t time) {
    if (time > r->gap.from && time < r->gap.to && r->gap.fault == r->faults.count) {
        cleat_faults_take_back(&r->faults);
        r->gap.to = r->gap.from;
    }
    r->ahead = r->table.times[r->table.rows - 1];
    r->went_back = true;
}

/* Whether the row at `time` is one step after the previous one. The first two rows give the step. If it is in
 * months, the third row may disprove it: 28 days from the 1st of February, or 30 June after 30 April. */
static bool is_next(reader *r, int64_t time) {
    cleat_calendar *step = &r->table.calendar, other = {0};
    const int64_t first = r->table.times[r->begin], before = r->table.times[r->table.rows - 1];
    if (!step->step) {
        step->step = time - before;
        cleat_calendar_months(before, time, step);
        r->step_source = "the interval of the first two rows";
    } else if (step->months && !step->day && cleat_calendar_months(before, time, &other)) {
        step->day = other.day;
    }
    if (cleat_calendar_after(step, before, 1) == time) return true;
    if (r->is_detected || r->table.rows - r->begin != 2 || !step->months ||
        before != cleat_calendar_after(step, first, 1))
        return false;
    const bool by_months = cleat_calendar_months(before, time, &other) && other.months == step->months &&
                           cleat_calendar_after(&other, first, 1) == before;
    if (!by_months && time - before != before - first) return false;
    step->months = by_months ? step->months : 0;
    step->day = other.day;
    return true;
}

/* Checks the time of a row against that of the previous one. */
static cleat_status follow(reader *r, int64_t time, uint8_t *flags, cleat_error *error) {
    const bool unknown = r->is_broken, behind = r->went_back;
    r->is_broken = r->went_back = false;
    if (r->table.rows == r->begin || unknown) return CLEAT_OK;
    const int64_t before = r->table.times[r->table.rows - 1];
    cleat_status status = check_order(r, time, error);
    if (status) {
        record_disorder(r, time);
        return status;
    }
    if (behind || (before < r->ahead && r->ahead < time)) return CLEAT_OK;
    int64_t distance = time - before;
    int64_t *step = &r->table.calendar.step;
    if (r->options->gaps == CLEAT_GAPS_ROWS) {
        if (!r->step_source && (!*step || distance < *step)) *step = distance;
        return CLEAT_OK;
    }
    if (is_next(r, time)) return CLEAT_OK;
    status = handle_gap(r, time, flags, error);
    if (status) {
        r->gap.from = r->table.times[r->table.rows - 1];
        r->gap.to = time;
        r->gap.fault = r->faults.count + 1;
    }
    return status;
}

/* --- cells ---------------------------------------------------------------------------------------------------- */

static bool is_missing(const char *text) {
    static const char *const words[] = {"nan", "na", "n/a", "null", "none"};
    text += strspn(text, " ");
    size_t length = strlen(text);
    while (length && text[length - 1] == ' ') --length;
    if (!length) return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
        if (strlen(words[i]) == length && strncasecmp(text, words[i], length) == 0) return true;
    return false;
}

/* The setting that a text in place of a number asks for. */
static const char *setting_for(const reader *r, const char *text) {
    cleat_time_form form = {.day_first = true};
    int64_t time;
    if (!cleat_time_parse(text, false, &time, &form) && form.kind != CLEAT_TIME_UNIX)
        return "if it is the time of the row, set data.time_column; ";
    return r->table.rows || !isalpha((unsigned char)*text)
               ? ""
               : "if it names the series of the row, set data.series_column; ";
}

static cleat_status parse_value(reader *r, size_t column, const char *text, float *value, cleat_error *error) {
    double number = 0;
    char shown[CLEAT_EXCERPT_SIZE];
    if (!cleat_marks_parse(&r->marks, text, &r->seen[column], &number))
        return cleat_csv_fail(
            &r->stream.csv, error,
            "'%.100s' is '%s', not a finite number%s; %suse a decimal point, no marks between thousands, no "
            "units, or remove the column from the features (data.features)",
            r->table.columns.used.names[column], cleat_format_excerpt(text, strlen(text), shown),
            r->marks.decimal == ','   ? " with a decimal comma, as those before it"
            : r->marks.decimal == '.' ? " with a decimal point, as those before it"
                                      : "",
            setting_for(r, text));
    if (!(fabs(number) < 1e37))
        return cleat_csv_fail(&r->stream.csv, error, "'%.100s' is %g, too large for single precision; change its unit",
                              r->table.columns.used.names[column], number);
    *value = (float)number;
    return CLEAT_OK;
}

static cleat_status handle_missing(reader *r, size_t column, float *row, uint8_t *flags, cleat_error *error) {
    const char *name = r->table.columns.used.names[column];
    size_t width = r->table.columns.used.count;
    ++r->table.missing;
    if (r->options->missing == CLEAT_MISSING_SKIP) {
        row[column] = NAN;
        *flags |= CLEAT_ROW_MISSING;
        return CLEAT_OK;
    }
    if (r->options->missing == CLEAT_MISSING_ERROR)
        return cleat_csv_fail(&r->stream.csv, error,
                              "'%.100s' has no value; complete the file, or set data.missing to fill or skip", name);
    if (r->table.rows == r->begin)
        return cleat_csv_fail(
            &r->stream.csv, error,
            "'%.100s' has no value, and no earlier row to fill it from; begin the file with a complete row", name);
    if (++r->carried[column] > r->options->longest_fill)
        return cleat_csv_fail(&r->stream.csv, error,
                              "'%.100s' has no value for more than the limit of %lld rows that can be filled; add "
                              "the values, or skip missing values: data.missing = skip",
                              name, (long long)r->options->longest_fill);
    row[column] = (row - width)[column];
    return CLEAT_OK;
}

static cleat_status parse_cells(reader *r, float *row, uint8_t *flags, cleat_error *error) {
    const cleat_series_columns *columns = &r->table.columns;
    for (size_t c = 0; c < columns->used.count; ++c) {
        const char *text = r->stream.csv.fields[columns->at[c]];
        cleat_status status;
        if (is_missing(text)) {
            status = handle_missing(r, c, row, flags, error);
        } else {
            r->carried[c] = 0;
            status = parse_value(r, c, text, &row[c], error);
        }
        if (status) return status;
    }
    return CLEAT_OK;
}

/* A row with a bad cell is kept, so that the next one is not reported as following a gap. */
static cleat_status add_row(reader *r, cleat_error *error) {
    cleat_series_table *t = &r->table;
    int64_t time = 0;
    uint8_t flags = 0;
    cleat_error why;
    cleat_status status = parse_time(r, &time, error);
    if (status) return status;
    status = follow(r, time, &flags, &why);
    if (status && r->order) cleat_fail_in(&why, status, "series '%.60s'", r->table.series[r->series].name);
    if (status) status = cleat_faults_add(&r->faults, &why, error);
    if (!status) status = reserve(r, error);
    if (status) return status;
    if (parse_cells(r, t->cells + (size_t)t->rows * t->columns.used.count, &flags, &why) != CLEAT_OK)
        status = cleat_faults_add(&r->faults, &why, error);
    if (status) return status;
    t->times[t->rows] = time;
    t->flags[t->rows] = flags;
    ++t->rows;
    return CLEAT_OK;
}

static cleat_status open_text(const char *path, cleat_csv *csv, cleat_error *error) {
    cleat_source source;
    cleat_status status = cleat_source_read(path, true, &source, error);
    return status ? status : cleat_csv_begin(&source, csv, error);
}

static int by_series(const void *a, const void *b) {
    const record *x = a, *y = b;
    const size_t i = x->series != y->series ? x->series : x->at, k = x->series != y->series ? y->series : y->at;
    return (i > k) - (i < k);
}

/* Orders the records by series, in the order in which these first occur, and replaces the stream by the file's text. */
static cleat_status order_records(reader *r, const char *path, cleat_error *error) {
    cleat_csv csv;
    cleat_name_table names = {0};
    cleat_series_table *t = &r->table;
    size_t capacity = 0, room = 0;
    uint32_t at = 0;
    bool more = true;
    cleat_csv_stream_close(&r->stream);
    cleat_status status = open_text(path, &r->stream.csv, error);
    if (status || (status = open_text(path, &csv, error))) return status;
    while (!status) {
        record one = {.at = (size_t)(csv.source.at - csv.source.data), .line = csv.next_line};
        status = cleat_csv_next(&csv, &more, error);
        const bool is_odd = status && csv.misfit && t->n_series; /* reported with its series */
        if (is_odd) status = CLEAT_OK;
        if (status || !more) break;
        const char *name = is_odd ? NULL : csv.fields[t->columns.series];
        if (name && !*name) status = cleat_csv_fail(&csv, error, "the row names no series (data.series_column)");
        if (!status && name && !cleat_name_table_find(&names, name, &at)) {
            status = cleat_name_table_add(&names, name, at = (uint32_t)t->n_series, error);
            if (!status) status = cleat_grow(&t->series, t->n_series, &room, error);
            if (!status) t->series[t->n_series++] = (cleat_series_part){.name = cleat_strdup(name)};
            if (!status && !t->series[at].name) status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory", path);
        }
        if (!status) status = cleat_grow(&r->order, r->n_records, &capacity, error);
        one.series = at;
        if (!status) r->order[r->n_records++] = one;
    }
    if (r->n_records) qsort(r->order, r->n_records, sizeof *r->order, by_series);
    cleat_csv_close(&csv);
    cleat_name_table_free(&names);
    return status;
}

/* Ends the current series, and finds the rule of its times. */
static cleat_status end_series(reader *r, cleat_error *error) {
    cleat_series_part *part = &r->table.series[r->series];
    const cleat_series_rule rule = r->options->rule;
    const int64_t rows = r->table.rows - r->begin, *times = r->table.times + r->begin;
    const int64_t made = r->table.filled_rows - r->filled;
    char step[CLEAT_STEP_TEXT];
    *part = (cleat_series_part){r->begin, r->table.rows, part->name, r->table.calendar};
    r->filled += made;
    if (2 * made > rows)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s: %.60s: %lld of %lld rows would be copies of those before, as the step is %s (%s); give "
                          "rows at this step (or leave the series out), or set data.gaps=rows or (to train) data.step",
                          path_of(r), part->name ? part->name : "gaps", (long long)made, (long long)rows,
                          cleat_calendar_text(&r->table.calendar, step), r->step_source);
    if (r->options->gaps != CLEAT_GAPS_ROWS || rows < 2) return CLEAT_OK;
    return rule > CLEAT_STEP_AUTO ? cleat_calendar_detect(times, rows, rule, &part->calendar, error)
                                  : cleat_calendar_find(times, rows, &part->calendar, error);
}

/* The next series has the same step, but its own day of the month. */
static cleat_status begin_series(reader *r, size_t series, cleat_error *error) {
    cleat_status status = end_series(r, error);
    r->series = series;
    r->begin = r->table.rows;
    r->is_broken = r->went_back = false;
    r->ahead = INT64_MIN;
    r->gap.to = r->gap.from;
    r->table.calendar.day = 0;
    if (r->options->gaps == CLEAT_GAPS_ROWS && !r->step_source) r->table.calendar.step = 0;
    memset(r->carried, 0, r->table.columns.used.count * sizeof *r->carried);
    return status;
}

static cleat_status next_record(reader *r, bool *more, cleat_error *error) {
    if (!r->order) return cleat_csv_stream_next(&r->stream, more, error);
    if (!(*more = r->next < r->n_records)) return CLEAT_OK;
    const record *one = &r->order[r->next++];
    cleat_status status = one->series != r->series ? begin_series(r, one->series, error) : CLEAT_OK;
    if (status) return status;
    r->stream.csv.source.at = r->stream.csv.source.data + one->at;
    r->stream.csv.next_line = one->line;
    return cleat_csv_next(&r->stream.csv, more, error);
}

/* Reads all rows; bad ones are collected. A syntax error ends the file. */
static cleat_status read_rows(reader *r, cleat_error *error) {
    cleat_error why;
    for (;;) {
        bool more = true;
        cleat_status status = next_record(r, &more, &why);
        const bool ends = status != CLEAT_OK && !r->stream.csv.misfit;
        if (!status && !more) return CLEAT_OK;
        if (!status) status = add_row(r, &why);
        if (status) {
            r->is_broken = true;
            status = cleat_faults_add(&r->faults, &why, error);
        }
        if (status || ends) return status;
    }
}

static void set_step(reader *r, const cleat_series_preprocessor *fitted, const cleat_calendar *detected) {
    const bool by_rows = r->options->gaps == CLEAT_GAPS_ROWS;
    if (fitted) {
        r->table.calendar.step = fitted->step;
        r->table.calendar.months = by_rows ? 0 : fitted->months;
        r->table.calendar.business = !by_rows && fitted->business;
        r->step_source = "as in training";
    } else if (r->options->step) {
        r->table.calendar.step = r->options->step;
        r->step_source = "as set by the caller";
    } else if (detected && !by_rows) {
        r->table.calendar = *detected;
        if (r->options->series_column) r->table.calendar.day = 0; /* each series has its own */
        r->step_source = r->options->rule > CLEAT_STEP_AUTO ? "as data.step says" : "found from all rows";
        r->is_detected = true;
    }
}

/* Reads the file with these marks of numbers; *again: it must be read again, with marks->thousands. */
static cleat_status read_with(const char *path, const cleat_series_options *options,
                              const cleat_series_preprocessor *fitted, const cleat_calendar *detected,
                              cleat_number_marks *marks, bool *again, cleat_series_table *table, cleat_error *error) {
    reader r = {.options = options, .ahead = INT64_MIN, .marks = *marks};
    cleat_status status = cleat_csv_stream_open(path, &r.stream, error);
    if (status) return status;
    if (!marks->thousands) cleat_csv_log_separator(&r.stream.csv);
    r.marks.semicolons = r.stream.csv.separator == ';';
    set_step(&r, fitted, detected);
    status = cleat_series_columns_choose(&r.stream.csv, options, fitted, &r.table.columns, error);
    if (!status) status = survey_times(&r, error);
    const size_t columns = r.table.columns.used.count;
    if (!status &&
        (!(r.carried = cleat_alloc(columns, sizeof *r.carried)) || !(r.seen = cleat_alloc(columns, sizeof *r.seen))))
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for the columns", path);
    if (!status && r.table.columns.series >= 0)
        status = order_records(&r, path, error);
    else if (!status && (r.table.series = cleat_alloc(1, sizeof *r.table.series)))
        r.table.n_series = 1;
    else if (!status)
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory", path);
    if (!status) status = read_rows(&r, error);
    if (!status) status = cleat_faults_report(&r.faults, error);
    if (!status && r.table.rows < 2)
        status = cleat_fail(error, CLEAT_ERR_FORMAT, "%s:%zu: %lld rows after the header; a series requires more", path,
                            line_of(&r), (long long)r.table.rows);
    *again = false;
    /* A file to predict may be too short to show its marks: only a decimal mark is evidence there. */
    if (!status && !marks->thousands && (!fitted || r.marks.decimal))
        status = cleat_marks_decide(path, &r.marks, r.seen, fitted ? 0 : columns, again, error);
    if (!status && !*again) status = end_series(&r, error);
    if (!status && !*again) r.table.calendar = r.table.series[0].calendar;
    if (!status && !*again && r.marks.decimal == ',')
        cleat_log(CLEAT_LOG_INFO, "%s: its numbers have a decimal comma", path);
    cleat_csv_stream_close(&r.stream);
    cleat_free(r.order);
    cleat_free(r.carried);
    cleat_free(r.seen);
    *marks = r.marks;
    r.table.thousands = r.marks.thousands;
    strcpy(r.table.zone, r.in_utc ? "Z" : r.offsets_differ ? "" : r.form.zone);
    if (status || *again) {
        cleat_series_table_free(&r.table);
        return status;
    }
    *table = r.table;
    return CLEAT_OK;
}

static cleat_status read_twice(const char *path, const cleat_series_options *options,
                               const cleat_series_preprocessor *fitted, const cleat_calendar *detected,
                               cleat_series_table *table, cleat_error *error) {
    cleat_number_marks marks = {.thousands = fitted ? fitted->thousands : 0};
    bool again = false;
    cleat_status status = read_with(path, options, fitted, detected, &marks, &again, table, error);
    return !status && again ? read_with(path, options, fitted, detected, &marks, &again, table, error) : status;
}

/* Reads the times that follow each other, of any series, and finds their rule; bad rows are left to read_with. */
static cleat_status detect_step(const char *path, const cleat_series_options *options, cleat_series_rule rule,
                                cleat_calendar *detected, cleat_error *error) {
    reader r = {.options = options};
    bool more = true;
    cleat_status status = cleat_csv_stream_open(path, &r.stream, error);
    if (status) return status;
    status = cleat_series_columns_choose(&r.stream.csv, options, NULL, &r.table.columns, error);
    if (!status) status = survey_times(&r, error);
    while (!status) {
        int64_t time;
        cleat_error ignored;
        const cleat_status bad = cleat_csv_stream_next(&r.stream, &more, &ignored);
        if ((bad && !r.stream.csv.misfit) || !more) break;
        if (bad || parse_time(&r, &time, &ignored) || (r.table.rows && time <= r.table.times[r.table.rows - 1]))
            continue;
        status = reserve(&r, error);
        if (!status) r.table.times[r.table.rows++] = time;
    }
    if (!status) status = cleat_calendar_detect(r.table.times, r.table.rows, rule, detected, error);
    cleat_csv_stream_close(&r.stream);
    cleat_series_table_free(&r.table);
    return status;
}

cleat_status cleat_series_read(const char *path, const cleat_series_options *options,
                               const cleat_series_preprocessor *fitted, cleat_series_table *table, cleat_error *error) {
    cleat_calendar detected = {0};
    cleat_error ignored;
    const bool free_step = !fitted && !options->step && options->gaps != CLEAT_GAPS_ROWS;
    if (free_step && options->rule != CLEAT_STEP_FIRST) {
        cleat_status status = detect_step(path, options, options->rule, &detected, error);
        return status ? status : read_twice(path, options, NULL, detected.step ? &detected : NULL, table, error);
    }
    cleat_status status = read_twice(path, options, fitted, NULL, table, error);
    if (status != CLEAT_ERR_FORMAT || !free_step || options->gaps != CLEAT_GAPS_ERROR ||
        detect_step(path, options, CLEAT_STEP_AUTO, &detected, &ignored) || !detected.business)
        return status;
    cleat_log(CLEAT_LOG_INFO, "%s: its rows are business days, from Monday to Friday (data.step)", path);
    return read_twice(path, options, NULL, &detected, table, error);
}

void cleat_series_table_free(cleat_series_table *table) {
    cleat_series_columns_free(&table->columns);
    for (size_t i = 0; i < table->n_series; ++i) {
        cleat_free(table->series[i].name);
        cleat_calendar_free(&table->series[i].calendar);
    }
    cleat_free(table->series);
    cleat_free(table->cells);
    cleat_free(table->times);
    cleat_free(table->flags);
    *table = (cleat_series_table){0};
}

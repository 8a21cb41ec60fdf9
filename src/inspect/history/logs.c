/* metrics.jsonl and system.jsonl: records by kind, as columns of numbers. */
#include "history/history.h"
#include "history/record_line.h"

#include "core/files.h"
#include "core/memory.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

/* A table while it grows. Columns are found by their name as it stands in the file, and first looked for
 * where the previous record had them. */
typedef struct growing_table {
    cleat_history_table table;
    char **raw_names; /* [columns], as in the file */
    size_t room, raw_room, row_capacity;
} growing_table;

/* A record that would go beyond is damaged: in a table each new name takes a number for each row. */
enum { MAX_KINDS = 64, MAX_COLUMNS = 1024, CELLS_A_BYTE = 4 };

typedef struct log_reader {
    cleat_history *history;
    size_t size;    /* of the file, in bytes */
    bool is_system; /* system.jsonl */
    locale_t plain;
    growing_table *tables;
    size_t count, capacity;
    cleat_record_line record;
} log_reader;

static void table_free(growing_table *growing) {
    for (size_t i = 0; i < growing->table.columns; ++i) {
        cleat_free(growing->table.items[i].name);
        cleat_free(growing->table.items[i].values);
    }
    cleat_free(growing->table.items);
}

static void raw_names_free(growing_table *growing) {
    for (size_t i = 0; i < growing->table.columns; ++i) cleat_free(growing->raw_names[i]);
    cleat_free(growing->raw_names);
}

/* *none: there are too many; else NULL: no memory. */
static growing_table *find_table(log_reader *reader, const char *kind, bool *none) {
    for (size_t i = 0; i < reader->count; ++i)
        if (strcmp(reader->tables[i].table.kind, kind) == 0) return &reader->tables[i];
    if ((*none = reader->count == MAX_KINDS)) return NULL;
    if (cleat_grow(&reader->tables, reader->count, &reader->capacity, sizeof *reader->tables, NULL)) return NULL;
    growing_table *made = &reader->tables[reader->count++];
    memcpy(made->table.kind, kind, CLEAT_RECORD_KIND);
    return made;
}

/* The name without escapes. */
static char *unescape(const char *name, size_t length) {
    char *copy = cleat_alloc(length + 3, 1);
    if (!copy) return NULL;
    copy[0] = copy[length + 1] = '"';
    memcpy(copy + 1, name, length);
    cJSON *json = cJSON_Parse(copy);
    if (json && cJSON_IsString(json)) strcpy(copy, json->valuestring); /* never longer than the escaped text */
    cJSON_Delete(json);
    return copy;
}

static char *copy_text(const char *text, size_t length) {
    char *copy = cleat_alloc(length + 1, 1);
    if (copy) memcpy(copy, text, length);
    return copy;
}

static double *new_column(size_t capacity, size_t rows) {
    double *values = cleat_alloc(capacity ? capacity : 1, sizeof *values);
    for (size_t i = 0; values && i < rows; ++i) values[i] = NAN;
    return values;
}

static bool is_column(const growing_table *growing, size_t i, const cleat_record_field *field) {
    const char *raw = growing->raw_names[i];
    return strncmp(raw, field->name, field->length) == 0 && raw[field->length] == 0;
}

/* Index of the column, which is made if it is new; -1: no memory. */
static long find_column(growing_table *growing, size_t guess, const cleat_record_field *field) {
    cleat_history_table *table = &growing->table;
    for (size_t i = 0; i < table->columns; ++i) {
        size_t k = (guess + i) % table->columns;
        if (is_column(growing, k, field)) return (long)k;
    }
    size_t n = table->columns;
    if (cleat_grow(&growing->raw_names, n, &growing->raw_room, sizeof *growing->raw_names, NULL) ||
        cleat_grow(&table->items, n, &growing->room, sizeof *table->items, NULL))
        return -1;
    growing->raw_names[n] = copy_text(field->name, field->length);
    table->items[n].name = unescape(field->name, field->length);
    table->items[n].values = new_column(growing->row_capacity, table->rows);
    table->columns = n + 1; /* table_free also frees an incomplete column */
    if (!growing->raw_names[n] || !table->items[n].name || !table->items[n].values) return -1;
    return (long)n;
}

static bool grow_rows(growing_table *growing) {
    cleat_history_table *table = &growing->table;
    if (table->rows < growing->row_capacity) return true;
    size_t capacity = growing->row_capacity ? 2 * growing->row_capacity : 256;
    for (size_t i = 0; i < table->columns; ++i) {
        double *more = new_column(capacity, 0);
        if (!more) return false;
        memcpy(more, table->items[i].values, table->rows * sizeof *more);
        cleat_free(table->items[i].values);
        table->items[i].values = more;
    }
    growing->row_capacity = capacity;
    return true;
}

static double field_of(const cleat_record_line *record, const char *name) {
    for (size_t i = 0; i < record->count; ++i)
        if (record->fields[i].length == strlen(name) && memcmp(record->fields[i].name, name, strlen(name)) == 0)
            return record->fields[i].value;
    return NAN;
}

/* A resumed run that repeats steps replaces them. */
static void drop_repeated(cleat_history_table *table, double step) {
    const double *steps = cleat_history_values(table, "step");
    while (steps && table->rows > 0 && steps[table->rows - 1] >= step) --table->rows;
}

static cleat_status add_row(log_reader *reader, cleat_error *error) {
    const cleat_record_line *record = &reader->record;
    bool beyond = false;
    growing_table *growing = find_table(reader, record->kind, &beyond);
    if (growing) {
        const size_t columns = growing->table.columns + record->count;
        beyond = columns > MAX_COLUMNS || columns * (growing->table.rows + 1) > CELLS_A_BYTE * reader->size;
    }
    if (beyond) {
        ++reader->history->damaged_lines;
        return CLEAT_OK;
    }
    if (!growing) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a run's log");
    if (!reader->is_system) drop_repeated(&growing->table, field_of(record, "step"));
    if (!grow_rows(growing)) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a run's log");
    size_t row = growing->table.rows;
    for (size_t i = 0; i < growing->table.columns; ++i) growing->table.items[i].values[row] = NAN;
    for (size_t i = 0; i < record->count; ++i) {
        long column = find_column(growing, i, &record->fields[i]);
        if (column < 0) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a run's log");
        growing->table.items[column].values[row] = record->fields[i].value;
    }
    ++growing->table.rows;
    return CLEAT_OK;
}

static cleat_history_records *text_records(log_reader *reader) {
    const char *kind = reader->record.kind;
    if (!reader->is_system) return NULL;
    if (strcmp(kind, "start") == 0) return &reader->history->starts;
    if (strcmp(kind, "event") == 0) return &reader->history->events;
    if (strcmp(kind, "end") == 0) return &reader->history->ends;
    return NULL;
}

static cleat_status add_text(cleat_history_records *records, const char *line, size_t length, cleat_error *error) {
    char *copy = copy_text(line, length);
    if (!copy || cleat_grow(&records->items, records->count, &records->capacity, sizeof *records->items, NULL)) {
        cleat_free(copy);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a run's log");
    }
    records->items[records->count++] = copy;
    return CLEAT_OK;
}

static cleat_status add_line(log_reader *reader, const char *line, const char *end, cleat_error *error) {
    if (end == line) return CLEAT_OK;
    if (!cleat_record_line_scan(line, end, reader->plain, &reader->record)) {
        ++reader->history->damaged_lines;
        return CLEAT_OK;
    }
    cleat_history_records *records = text_records(reader);
    return records ? add_text(records, line, (size_t)(end - line), error) : add_row(reader, error);
}

/* Hands the tables over to the history. */
static cleat_status finish_tables(log_reader *reader, cleat_error *error) {
    cleat_history *history = reader->history;
    cleat_history_table *all = cleat_alloc(history->n_tables + reader->count + 1, sizeof *all);
    for (size_t i = 0; i < reader->count; ++i) {
        raw_names_free(&reader->tables[i]);
        if (!all) table_free(&reader->tables[i]);
    }
    if (!all) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a run's log");
    if (history->n_tables) memcpy(all, history->tables, history->n_tables * sizeof *all);
    for (size_t i = 0; i < reader->count; ++i) all[history->n_tables++] = reader->tables[i].table;
    cleat_free(history->tables);
    history->tables = all;
    return CLEAT_OK;
}

cleat_status cleat_history_read_log(cleat_history *history, const char *path, bool is_system, cleat_error *error) {
    char *text = NULL;
    size_t size = 0;
    cleat_status status = cleat_history_text(path, &text, &size, error);
    if (status || !text) return status;
    log_reader *reader = cleat_alloc(1, sizeof *reader);
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!reader || !plain) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a run's log");
    if (!status) {
        *reader = (log_reader){.history = history, .size = size, .is_system = is_system, .plain = plain};
        const char *line = text, *stop;
        /* The last line may still be written: only lines with their newline count. */
        while (!status && (stop = memchr(line, '\n', size - (size_t)(line - text)))) {
            status = add_line(reader, line, stop, error);
            line = stop + 1;
        }
        cleat_status finished = finish_tables(reader, error);
        if (!status) status = finished;
        cleat_free(reader->tables);
    }
    if (plain) freelocale(plain);
    cleat_free(reader);
    cleat_free(text);
    return status;
}

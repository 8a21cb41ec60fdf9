/* metrics.jsonl and system.jsonl: records by kind, as columns of numbers. */
#include "history/history.h"

#include "core/files.h"
#include "core/memory.h"
#include "json/member.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A table while it grows. */
typedef struct growing_table {
    cleat_history_table table;
    size_t room, row_capacity;
} growing_table;

/* A number of a record, NaN for null. */
typedef struct field {
    const char *name; /* borrowed from the record */
    double value;
} field;

/* A record that exceeds them counts as damaged: each new name adds a number to every row of a table. */
enum { MAX_KINDS = 64, MAX_FIELDS = 256, MAX_COLUMNS = 1024, CELLS_A_BYTE = 4 };

typedef struct log_reader {
    cleat_history *history;
    size_t size;    /* of the file, in bytes */
    bool is_system; /* system.jsonl */
    growing_table *tables;
    size_t count, capacity;
    field fields[MAX_FIELDS]; /* [n_fields] of the record in hand */
    size_t n_fields;
} log_reader;

static void table_free(growing_table *growing) {
    for (size_t i = 0; i < growing->table.columns; ++i) {
        cleat_free(growing->table.items[i].name);
        cleat_free(growing->table.items[i].values);
    }
    cleat_free(growing->table.items);
}

/* NULL with *none set: there are too many; NULL otherwise: no memory. */
static growing_table *find_table(log_reader *reader, const char *kind, bool *none) {
    for (size_t i = 0; i < reader->count; ++i)
        if (strcmp(reader->tables[i].table.kind, kind) == 0) return &reader->tables[i];
    if ((*none = reader->count == MAX_KINDS)) return NULL;
    if (cleat_grow(&reader->tables, reader->count, &reader->capacity, NULL)) return NULL;
    growing_table *made = &reader->tables[reader->count++];
    snprintf(made->table.kind, sizeof made->table.kind, "%s", kind);
    return made;
}

static double *new_column(size_t capacity, size_t rows) {
    double *values = cleat_alloc(capacity ? capacity : 1, sizeof *values);
    for (size_t i = 0; values && i < rows; ++i) values[i] = NAN;
    return values;
}

/* Index of the column, which is added if it is new; -1: no memory. `guess`: its index in the previous
 * record. */
static long find_column(growing_table *growing, size_t guess, const char *name) {
    cleat_history_table *table = &growing->table;
    for (size_t i = 0; i < table->columns; ++i) {
        const size_t k = (guess + i) % table->columns;
        if (strcmp(table->items[k].name, name) == 0) return (long)k;
    }
    const size_t n = table->columns;
    if (cleat_grow(&table->items, n, &growing->room, NULL)) return -1;
    table->items[n].name = cleat_strdup(name);
    table->items[n].values = new_column(growing->row_capacity, table->rows);
    table->columns = n + 1; /* table_free also frees an incomplete column */
    return table->items[n].name && table->items[n].values ? (long)n : -1;
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

/* A resumed run that repeats steps replaces them. */
static void drop_repeated(cleat_history_table *table, double step) {
    const double *steps = cleat_history_values(table, "step");
    while (steps && table->rows > 0 && steps[table->rows - 1] >= step) --table->rows;
}

static cleat_status add_row(log_reader *reader, const cJSON *record, cleat_error *error) {
    bool beyond = false;
    growing_table *growing = find_table(reader, cleat_json_text(record, "kind"), &beyond);
    if (growing) {
        const size_t columns = growing->table.columns + reader->n_fields;
        beyond = columns > MAX_COLUMNS || columns * (growing->table.rows + 1) > CELLS_A_BYTE * reader->size;
    }
    if (beyond) {
        ++reader->history->damaged_lines;
        return CLEAT_OK;
    }
    if (!growing) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a run's log");
    if (!reader->is_system) drop_repeated(&growing->table, cleat_json_number(record, "step"));
    if (!grow_rows(growing)) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a run's log");
    size_t row = growing->table.rows;
    for (size_t i = 0; i < growing->table.columns; ++i) growing->table.items[i].values[row] = NAN;
    for (size_t i = 0; i < reader->n_fields; ++i) {
        long column = find_column(growing, i, reader->fields[i].name);
        if (column < 0) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a run's log");
        growing->table.items[column].values[row] = reader->fields[i].value;
    }
    ++growing->table.rows;
    return CLEAT_OK;
}

static cleat_history_records *text_records(log_reader *reader, const char *kind) {
    if (!reader->is_system) return NULL;
    if (strcmp(kind, "start") == 0) return &reader->history->starts;
    if (strcmp(kind, "event") == 0) return &reader->history->events;
    if (strcmp(kind, "end") == 0) return &reader->history->ends;
    return NULL;
}

static cleat_status add_text(cleat_history_records *records, const char *line, size_t length, cleat_error *error) {
    char *copy = cleat_alloc(length + 1, 1);
    if (!copy || cleat_grow(&records->items, records->count, &records->capacity, NULL)) {
        cleat_free(copy);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a run's log");
    }
    memcpy(copy, line, length);
    records->items[records->count++] = copy;
    return CLEAT_OK;
}

/* Numbers and nulls of the record, also those one object deeper; MAX_FIELDS at most. */
static void collect_fields(log_reader *reader, const cJSON *object, bool is_inner) {
    const cJSON *item;
    cJSON_ArrayForEach(item, object) {
        if (cJSON_IsObject(item) && !is_inner) collect_fields(reader, item, true);
        if ((cJSON_IsNumber(item) || cJSON_IsNull(item)) && reader->n_fields < MAX_FIELDS)
            reader->fields[reader->n_fields++] = (field){item->string, cJSON_GetNumberValue(item)};
    }
}

/* The record of a line; NULL: the line is damaged. */
static cJSON *parse(const char *line, const char *end) {
    const char *stop = line;
    cJSON *record = cJSON_ParseWithLengthOpts(line, (size_t)(end - line), &stop, false);
    const char *kind = cleat_json_text(record, "kind");
    while (stop < end && strchr(" \t\r", *stop)) ++stop;
    if (stop == end && kind && *kind && strlen(kind) < sizeof(cleat_history_table){0}.kind) return record;
    cJSON_Delete(record);
    return NULL;
}

static cleat_status add_line(log_reader *reader, const char *line, const char *end, cleat_error *error) {
    if (end == line) return CLEAT_OK;
    cJSON *record = parse(line, end);
    if (!record) {
        ++reader->history->damaged_lines;
        return CLEAT_OK;
    }
    cleat_history_records *records = text_records(reader, cleat_json_text(record, "kind"));
    reader->n_fields = 0;
    if (!records) collect_fields(reader, record, false);
    cleat_status status =
        records ? add_text(records, line, (size_t)(end - line), error) : add_row(reader, record, error);
    cJSON_Delete(record);
    return status;
}

/* Moves the tables to the history. */
static cleat_status finish_tables(log_reader *reader, cleat_error *error) {
    cleat_history *history = reader->history;
    cleat_history_table *all = cleat_alloc(history->n_tables + reader->count + 1, sizeof *all);
    for (size_t i = 0; i < reader->count && !all; ++i) table_free(&reader->tables[i]);
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
    if (!reader) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a run's log");
    if (!status) {
        *reader = (log_reader){.history = history, .size = size, .is_system = is_system};
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
    cleat_free(reader);
    cleat_free(text);
    return status;
}

/* Reads the records of a table, one at a time. Fields are unquoted in place. */
#include "data/common/csv.h"

#include "core/memory.h"
#include "core/text.h"
#include "ini/schema.h"

#include <string.h>

static cleat_status add_field(cleat_csv *csv, char *field, cleat_error *error) {
    cleat_status status = cleat_grow(&csv->fields, csv->count, &csv->capacity, sizeof *csv->fields, error);
    if (status == CLEAT_OK) csv->fields[csv->count++] = field;
    return status;
}

/* Whether the source is at a line end ("\n", "\r\n" or the end of the file). */
static bool at_line_end(const cleat_source *source) {
    const char *p = source->at;
    return p == source->end || *p == '\n' || (*p == '\r' && p + 1 < source->end && p[1] == '\n');
}

static void skip_line_end(cleat_csv *csv) {
    cleat_source *source = &csv->source;
    if (source->at == source->end) return;
    source->at += *source->at == '\r' ? 2 : 1;
    ++csv->next_line;
}

/* Reads the quoted field whose opening quote is at source->at; leaves source->at after the closing quote. */
static cleat_status quoted_field(cleat_csv *csv, char **field, char **field_end, cleat_error *error) {
    cleat_source *source = &csv->source;
    size_t opened = csv->next_line;
    char *write = ++source->at;
    *field = write;
    for (;; ++source->at) {
        if (source->at == source->end)
            return cleat_fail(
                error, CLEAT_ERR_FORMAT,
                "%s:%zu: a quoted field starts here and is never closed; add the closing \" (or the file is truncated)",
                source->path, opened);
        if (*source->at == '\n') ++csv->next_line;
        if (*source->at == '"') {
            ++source->at;
            if (source->at == source->end || *source->at != '"') break;
        }
        *write++ = *source->at;
    }
    *field_end = write;
    if (!at_line_end(source) && *source->at != csv->separator)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s:%zu: text after the closing quote of a field; write a quote inside a field as two (\"\")",
                          source->path, csv->next_line);
    return CLEAT_OK;
}

/* Whether this character is invalid in an unquoted field. */
static bool must_be_quoted(const cleat_csv *csv, char c) {
    return csv->separator == ',' && (c == '"' || c == '\r');
}

static cleat_status plain_field(cleat_csv *csv, char **field, char **field_end, cleat_error *error) {
    cleat_source *source = &csv->source;
    *field = source->at;
    while (!at_line_end(source) && *source->at != csv->separator) {
        if (must_be_quoted(csv, *source->at))
            return cleat_fail(error, CLEAT_ERR_FORMAT,
                              "%s:%zu: a %s inside an unquoted field; put the whole field in quotes", source->path,
                              csv->next_line, *source->at == '"' ? "quote" : "carriage return");
        ++source->at;
    }
    *field_end = source->at;
    return CLEAT_OK;
}

static cleat_status read_record(cleat_csv *csv, cleat_error *error) {
    cleat_source *source = &csv->source;
    csv->line = csv->next_line;
    csv->count = 0;
    for (;;) {
        char *field = NULL, *field_end = NULL;
        bool quoted = csv->separator == ',' && source->at < source->end && *source->at == '"';
        cleat_status status =
            quoted ? quoted_field(csv, &field, &field_end, error) : plain_field(csv, &field, &field_end, error);
        if (status == CLEAT_OK) status = add_field(csv, field, error);
        if (status != CLEAT_OK) return status;
        bool last = at_line_end(source);
        if (last)
            skip_line_end(csv);
        else
            ++source->at;
        /* the byte after the field has been consumed, or is the terminating zero of the file */
        *field_end = 0;
        if (last) return CLEAT_OK;
    }
}

cleat_status cleat_csv_next(cleat_csv *csv, bool *more, cleat_error *error) {
    while (csv->source.at < csv->source.end && at_line_end(&csv->source)) skip_line_end(csv);
    if (csv->source.at == csv->source.end) {
        *more = false;
        return CLEAT_OK;
    }
    cleat_status status = read_record(csv, error);
    if (status != CLEAT_OK) return status;
    if (csv->expected && csv->count != csv->expected)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s:%zu: %zu fields, but the header has %zu; is the line truncated, or a %s?",
                          csv->source.path, csv->line, csv->count, csv->expected,
                          csv->separator == ',' ? "comma not quoted" : "tab inside a field");
    *more = true;
    return CLEAT_OK;
}

static char separator_of(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && (strcmp(dot, ".tsv") == 0 || strcmp(dot, ".tab") == 0) ? '\t' : ',';
}

cleat_status cleat_csv_begin(cleat_source *source, cleat_csv *csv, cleat_error *error) {
    cleat_csv opened = {.source = *source, .separator = separator_of(source->path), .next_line = 1};
    *source = (cleat_source){0};
    bool more = false;
    cleat_status status = cleat_csv_next(&opened, &more, error);
    if (status == CLEAT_OK && !more)
        status = cleat_fail(error, CLEAT_ERR_FORMAT, "%s:1: no header line", opened.source.path);
    if (status != CLEAT_OK) {
        cleat_csv_close(&opened);
        return status;
    }
    opened.expected = opened.count;
    *csv = opened;
    return CLEAT_OK;
}

cleat_status cleat_csv_open(const char *path, cleat_csv *csv, cleat_error *error) {
    cleat_source source;
    cleat_status status = cleat_source_read(path, true, &source, error);
    return status == CLEAT_OK ? cleat_csv_begin(&source, csv, error) : status;
}

void cleat_csv_close(cleat_csv *csv) {
    cleat_source_close(&csv->source);
    cleat_free(csv->fields);
    *csv = (cleat_csv){0};
}

int cleat_csv_column(const cleat_csv *csv, const char *name) {
    for (size_t i = 0; i < csv->count; ++i)
        if (strcmp(csv->fields[i], name) == 0) return (int)i;
    return -1;
}

cleat_status cleat_csv_need_column(const cleat_csv *csv, const char *name, int *column, cleat_error *error) {
    char shown[CLEAT_EXCERPT_SIZE], shown_near[CLEAT_EXCERPT_SIZE];
    int found = cleat_csv_column(csv, name);
    for (size_t i = (size_t)found + 1; found >= 0 && i < csv->count; ++i)
        if (strcmp(csv->fields[i], name) == 0)
            return cleat_fail(error, CLEAT_ERR_FORMAT, "%s:%zu: columns %d and %zu are both named '%s'; rename one",
                              csv->source.path, csv->line, found + 1, i + 1,
                              cleat_format_excerpt(name, strlen(name), shown));
    if (found >= 0) {
        *column = found;
        return CLEAT_OK;
    }
    cleat_text header = {0};
    for (size_t i = 0; i < csv->count && header.size < 400; ++i) {
        cleat_text_add(&header, "%s%s", i ? ", " : "",
                       cleat_format_excerpt(csv->fields[i], strlen(csv->fields[i]), shown));
    }
    const char *near = cleat_nearest_name(name, (const char *const *)csv->fields, csv->count);
    cleat_status status =
        cleat_fail(error, CLEAT_ERR_FORMAT, "%s:%zu: no column '%s'%s%s%s; the header line has %s", csv->source.path,
                   csv->line, cleat_format_excerpt(name, strlen(name), shown), near ? "; did you mean '" : "",
                   near ? cleat_format_excerpt(near, strlen(near), shown_near) : "", near ? "'?" : "",
                   header.data ? header.data : "nothing");
    cleat_text_free(&header);
    return status;
}

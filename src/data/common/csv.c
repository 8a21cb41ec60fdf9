/* Reads the records of a table, one at a time. Fields are unquoted in place. */
#include "data/common/csv.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/string.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

cleat_status cleat_csv_fail(const cleat_csv *csv, cleat_error *error, const char *format, ...) {
    char text[CLEAT_ERROR_TEXT];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return cleat_fail(error, CLEAT_ERR_FORMAT, "%s:%zu: %s", csv->source.path, csv->line, text);
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

static cleat_status plain_field(cleat_csv *csv, char **field, char **field_end, cleat_error *error) {
    cleat_source *source = &csv->source;
    *field = source->at;
    while (!at_line_end(source) && *source->at != csv->separator) {
        if (csv->quotes && (*source->at == '"' || *source->at == '\r'))
            return cleat_fail(error, CLEAT_ERR_FORMAT,
                              "%s:%zu: a %s inside an unquoted field; put the whole field in quotes%s", source->path,
                              csv->next_line, *source->at == '"' ? "quote" : "carriage return",
                              *source->at == '"' ? "" : " (if every line ends with one: tr '\\r' '\\n' < OLD > NEW)");
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
        bool quoted = csv->quotes && source->at < source->end && *source->at == '"';
        cleat_status status =
            quoted ? quoted_field(csv, &field, &field_end, error) : plain_field(csv, &field, &field_end, error);
        if (!status) status = cleat_grow(&csv->fields, csv->count, &csv->capacity, error);
        if (status) return status;
        csv->fields[csv->count++] = field;
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
    csv->misfit = false;
    cleat_status status = read_record(csv, error);
    if (status) return status;
    csv->misfit = csv->expected && csv->count != csv->expected;
    if (csv->misfit)
        return cleat_csv_fail(csv, error, "%zu fields, but the header has %zu; is the line truncated, or a %s?",
                              csv->count, csv->expected,
                              csv->separator == ','    ? "comma not quoted"
                              : csv->separator == '\t' ? "tab inside a field"
                                                       : "separator not quoted");
    *more = true;
    return CLEAT_OK;
}

cleat_status cleat_csv_each(cleat_csv *csv, cleat_csv_row row, void *user, cleat_faults *faults, cleat_error *error) {
    cleat_error why;
    for (;;) {
        bool more = true;
        cleat_status status = cleat_csv_next(csv, &more, &why);
        const bool ends = status != CLEAT_OK && !csv->misfit;
        if (!status && !more) return CLEAT_OK;
        if (!status) status = row(user, &why);
        if (status) status = cleat_faults_add(faults, &why, error);
        if (status || ends) return status;
    }
}

/* Excel writes a line "sep=;" before the header, and honours it. */
static char separator_line(cleat_csv *csv) {
    cleat_source *source = &csv->source;
    if (source->end - source->at < 6 || memcmp(source->at, "sep=", 4) != 0) return 0;
    const char separator = source->at[4];
    source->at += 5;
    if (at_line_end(source) && strchr(",;\t|", separator)) {
        skip_line_end(csv);
        return separator;
    }
    source->at -= 5;
    return 0;
}

/* The separator of the header: a comma if it has one outside of quotes, else the most frequent of the others
 * that spreadsheets write. */
static char separator_of_header(const cleat_source *source) {
    static const char others[] = {';', '\t', '|'};
    size_t counts[sizeof others] = {0}, best = 0;
    bool quoted = false;
    const char *p = source->at;
    while (p < source->end && (*p == '\r' || *p == '\n')) ++p;
    for (; p < source->end && (quoted || *p != '\n'); ++p) {
        if (*p == '"') quoted = !quoted;
        if (quoted) continue;
        if (*p == ',') return ',';
        for (size_t i = 0; i < sizeof others; ++i) counts[i] += *p == others[i];
    }
    for (size_t i = 1; i < sizeof others; ++i)
        if (counts[i] > counts[best]) best = i;
    return counts[best] ? others[best] : ',';
}

static void choose_separator(cleat_csv *csv) {
    csv->separator = '\t';
    csv->quotes = !cleat_ends_in(csv->source.path, ".tsv .tab");
    if (!csv->quotes) return;
    const char written = separator_line(csv);
    csv->separator = written ? written : separator_of_header(&csv->source);
}

void cleat_csv_log_separator(const cleat_csv *csv) {
    if (csv->quotes && csv->separator == '\t')
        cleat_log(CLEAT_LOG_INFO, "%s: its fields are separated by tabs", csv->source.path);
    else if (csv->quotes && csv->separator != ',')
        cleat_log(CLEAT_LOG_INFO, "%s: its fields are separated by '%c'", csv->source.path, csv->separator);
}

cleat_status cleat_csv_begin(cleat_source *source, cleat_csv *csv, cleat_error *error) {
    cleat_csv opened = {.source = *source, .next_line = 1};
    *source = (cleat_source){0};
    choose_separator(&opened);
    bool more = false;
    cleat_status status = cleat_csv_next(&opened, &more, error);
    if (!status && !more) status = cleat_fail(error, CLEAT_ERR_FORMAT, "%s:1: no header line", opened.source.path);
    if (status) {
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
    if (!status) status = cleat_csv_begin(&source, csv, error);
    if (!status) cleat_csv_log_separator(csv);
    return status;
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
            return cleat_csv_fail(csv, error, "columns %d and %zu are both named '%s'; rename one", found + 1, i + 1,
                                  cleat_format_excerpt(name, strlen(name), shown));
    if (found >= 0) {
        *column = found;
        return CLEAT_OK;
    }
    cleat_string header = {0};
    for (size_t i = 0; i < csv->count && header.size < 400; ++i) {
        cleat_string_add(&header, "%s%s", i ? ", " : "",
                         cleat_format_excerpt(csv->fields[i], strlen(csv->fields[i]), shown));
    }
    const char *near = cleat_nearest_name(name, (const char *const *)csv->fields, csv->count);
    cleat_status status = cleat_csv_fail(
        csv, error, "no column '%s'%s%s%s; the header line has %s", cleat_format_excerpt(name, strlen(name), shown),
        near ? "; did you mean '" : "", near ? cleat_format_excerpt(near, strlen(near), shown_near) : "",
        near ? "'?" : "", header.data ? header.data : "nothing");
    cleat_string_free(&header);
    return status;
}

/* Reads the records of a table in a text file, one at a time.
 *
 * The format is RFC 4180. The separator is a comma, or, if the header has none, the most frequent of ';', tab and
 * '|'; a first line "sep=;", as Excel writes it, takes precedence. In a .tsv or .tab file, fields are separated by
 * tabs and a quote is an ordinary character. */
#ifndef CLEAT_SRC_CSV_H
#define CLEAT_SRC_CSV_H

#include "data/common/faults.h"
#include "data/common/source.h"

typedef struct cleat_csv {
    cleat_source source;
    char separator;   /* ',', ';', '\t' or '|' */
    bool quotes;      /* fields may be in quotes */
    size_t next_line; /* line number of the next record, from 1 */
    size_t line;      /* line number of the current record */
    char **fields;    /* [count], zero-terminated, unquoted; valid until the next record */
    size_t count, capacity;
    size_t expected; /* number of fields of the header; 0 before it is read */
    bool misfit;     /* the record has a wrong number of fields; reading can continue with the next one */
} cleat_csv;

/* Opens the file and reads its first record, the header. The caller closes *csv; `path` must stay valid until
 * then. */
cleat_status cleat_csv_open(const char *path, cleat_csv *csv, cleat_error *error);
/* The same for a file that is already in memory, without the log. Takes ownership of the source, which is closed on
 * failure. */
cleat_status cleat_csv_begin(cleat_source *source, cleat_csv *csv, cleat_error *error);
/* Logs the separator unless it is the usual one for the file; cleat_csv_open calls it. */
void cleat_csv_log_separator(const cleat_csv *csv);
void cleat_csv_close(cleat_csv *csv);
/* CLEAT_ERR_FORMAT with the path and line of the current record before the message. */
cleat_status cleat_csv_fail(const cleat_csv *csv, cleat_error *error, const char *format, ...) CLEAT_PRINTF(3, 4);
/* Index of the column called `name` in the current record (the header), or -1. */
int cleat_csv_column(const cleat_csv *csv, const char *name);
/* The same, but a missing or duplicate column is an error. The header must be the current record. */
cleat_status cleat_csv_need_column(const cleat_csv *csv, const char *name, int *column, cleat_error *error);
/* Reads the next non-empty record. *more is false at the end. A record whose number of fields differs from
 * the header's is an error. */
cleat_status cleat_csv_next(cleat_csv *csv, bool *more, cleat_error *error);

typedef cleat_status (*cleat_csv_row)(void *user, cleat_error *error);
/* Calls row(user, ...) for each further record. Local errors of `row`, wrong numbers of fields and the syntax
 * error that ends the file are added to `faults`, which the caller reports; any other error is returned. */
cleat_status cleat_csv_each(cleat_csv *csv, cleat_csv_row row, void *user, cleat_faults *faults, cleat_error *error);

#endif

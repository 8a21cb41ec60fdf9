/* Records of a table in a text file, one at a time: RFC 4180, or in a file that ends in .tsv or .tab fields between
 * tabs, where a quote is a character like any other. */
#ifndef CLEAT_SRC_CSV_H
#define CLEAT_SRC_CSV_H

#include "data/common/source.h"

typedef struct cleat_csv {
    cleat_source source;
    char separator;   /* ',' or '\t' */
    size_t next_line; /* of the record to come, from 1 */
    size_t line;      /* where the current record starts */
    char **fields;    /* [count] zero-terminated, unquoted; valid until the next record */
    size_t count, capacity;
    size_t expected; /* fields of the header; 0 before it is read */
} cleat_csv;

/* Opens the file and reads its first record, the header. */
cleat_status cleat_csv_open(const char *path, cleat_csv *csv, cleat_error *error);
/* The same for a file that is read already; the source is the csv's from then on, and closed on failure. */
cleat_status cleat_csv_begin(cleat_source *source, cleat_csv *csv, cleat_error *error);
void cleat_csv_close(cleat_csv *csv);
/* The column of the current record (the header) called `name`, or -1. */
int cleat_csv_column(const cleat_csv *csv, const char *name);
/* The same, where a missing column (the error names those there are) and a second one of the name are errors; to be called while the header is the
 * current record. */
cleat_status cleat_csv_need_column(const cleat_csv *csv, const char *name, int *column, cleat_error *error);
/* Reads the next record that is not an empty line. *more is false at the end. A record with another number of
 * fields than the header is an error. */
cleat_status cleat_csv_next(cleat_csv *csv, bool *more, cleat_error *error);

#endif

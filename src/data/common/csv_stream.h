/* Reads a table part by part, for files that are too large to be kept in memory. */
#ifndef CLEAT_SRC_CSV_STREAM_H
#define CLEAT_SRC_CSV_STREAM_H

#include "data/common/csv.h"

#include <stdio.h>

typedef struct cleat_csv_stream {
    cleat_csv csv; /* the current record; csv.source holds whole records only */
    FILE *file;    /* NULL once the rest of the file is in memory */
    char *filled;  /* end of the bytes read; [csv.source.end, filled) is the start of an incomplete record */
    size_t room;   /* capacity of csv.source.data in bytes of text */
    size_t size;   /* of the file in bytes; 0: unknown */
} cleat_csv_stream;

/* Like cleat_csv_open (without its log), cleat_csv_next and cleat_csv_close, but only one part of the file is in
 * memory: 256 KiB, or the longest record if that is longer. A record may have up to 16 MiB. */
cleat_status cleat_csv_stream_open(const char *path, cleat_csv_stream *stream, cleat_error *error);
cleat_status cleat_csv_stream_next(cleat_csv_stream *stream, bool *more, cleat_error *error);
/* Fraction of the file that has been returned, 0 to 1; 0 if its size is unknown. */
double cleat_csv_stream_share(const cleat_csv_stream *stream);
void cleat_csv_stream_close(cleat_csv_stream *stream);

/* Calls check(csv, user, ...) with the header of a table as the current record, and returns its status. A
 * file that cannot be opened is left to its reader. */
typedef cleat_status (*cleat_csv_header_check)(const cleat_csv *csv, const void *user, cleat_error *error);
cleat_status cleat_csv_check_header(const char *path, cleat_csv_header_check check, const void *user,
                                    cleat_error *error);

#endif

/* A table read part by part: for files larger than one wants in memory. */
#ifndef CLEAT_SRC_CSV_STREAM_H
#define CLEAT_SRC_CSV_STREAM_H

#include "data/common/csv.h"

#include <stdio.h>

typedef struct cleat_csv_stream {
    cleat_csv csv; /* the current record; csv.source holds whole records only */
    FILE *file;    /* NULL once all of it is in memory */
    char *filled;  /* behind the bytes read: [csv.source.end, filled) is the start of a record that goes on */
    size_t room;   /* bytes for text in csv.source.data */
    size_t size;   /* of the file; 0: not known */
} cleat_csv_stream;

/* As cleat_csv_open, cleat_csv_next and cleat_csv_close, with the memory of one part (256 KiB, or of the longest record
 * where that is more) instead of the whole file's. A record may be 16 MiB long. */
cleat_status cleat_csv_stream_open(const char *path, cleat_csv_stream *stream, cleat_error *error);
cleat_status cleat_csv_stream_next(cleat_csv_stream *stream, bool *more, cleat_error *error);
/* How much of the file has been handed out, 0 to 1; 0 where its size is not known. */
double cleat_csv_stream_share(const cleat_csv_stream *stream);
void cleat_csv_stream_close(cleat_csv_stream *stream);

#endif

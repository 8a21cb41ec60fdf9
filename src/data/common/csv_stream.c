/* Reads a table part by part. A part ends where a record ends, so that records, characters and the line
 * numbers in messages are the same as for the whole file. */
#include "data/common/csv_stream.h"

#include "core/files.h"
#include "core/memory.h"
#include "platform/files.h"

#include <errno.h>
#include <string.h>

enum { PART = 256 * 1024, LONGEST_RECORD = 16 * 1024 * 1024 };

/* End of the last record that is complete in [from, to), or `from`. A line end inside quotes does not end a
 * record; a doubled quote closes and reopens them. */
static char *records_end(char *from, char *to) {
    char *end = from;
    bool quoted = false;
    for (char *p = from; p < to; ++p) {
        if (*p == '"') quoted = !quoted;
        if (*p == '\n' && !quoted) end = p + 1;
    }
    return end;
}

static size_t lines_in(const char *from, const char *to) {
    size_t lines = 0;
    for (const char *p = from; p < to; ++p) lines += *p == '\n';
    return lines;
}

static cleat_status enlarge(cleat_csv_stream *stream, cleat_error *error) {
    cleat_source *source = &stream->csv.source;
    size_t used = (size_t)(stream->filled - source->data), room = stream->room * 2;
    char *larger = cleat_alloc(room + 1, 1);
    if (!larger)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for %zu bytes of the file", source->path, room);
    memcpy(larger, source->data, used);
    cleat_free(source->data);
    source->data = larger;
    stream->filled = larger + used;
    stream->room = room;
    return CLEAT_OK;
}

/* Reads until the buffer is full or the file ends; at its end the file is closed. */
static cleat_status fill_room(cleat_csv_stream *stream, cleat_error *error) {
    const cleat_source *source = &stream->csv.source;
    size_t wanted = stream->room - (size_t)(stream->filled - source->data);
    size_t got = fread(stream->filled, 1, wanted, stream->file);
    if (ferror(stream->file))
        return cleat_fail(error, CLEAT_ERR_IO, "%s: cannot read: %s", source->path, strerror(errno));
    stream->filled += got;
    *stream->filled = 0;
    if (got == wanted) return CLEAT_OK;
    fclose(stream->file);
    stream->file = NULL;
    return CLEAT_OK;
}

/* Drops the records that have been returned and reads until the buffer holds a whole record, or the file
 * ends. */
static cleat_status refill(cleat_csv_stream *stream, cleat_error *error) {
    cleat_source *source = &stream->csv.source;
    size_t dropped = (size_t)(source->end - source->data), kept = (size_t)(stream->filled - source->end);
    source->lines_before = stream->csv.next_line - 1;
    source->bytes_before += dropped;
    memmove(source->data, source->end, kept);
    stream->filled = source->data + kept;
    cleat_status status = CLEAT_OK;
    char *end = source->data;
    while (!status && stream->file && end == source->data) {
        if (stream->filled == source->data + stream->room) status = enlarge(stream, error);
        if (!status) status = fill_room(stream, error);
        end = stream->file ? records_end(source->data, stream->filled) : stream->filled;
        if (!status && stream->file && end == source->data && stream->room > LONGEST_RECORD)
            status = cleat_fail(
                error, CLEAT_ERR_FORMAT,
                "%s:%zu: the record that starts here is longer than %d MiB (%zu lines); is a closing quote missing?",
                source->path, stream->csv.next_line, LONGEST_RECORD >> 20, lines_in(source->data, stream->filled));
    }
    source->at = source->data;
    source->end = status ? source->data : end;
    if (!status) status = cleat_source_check(source, true, error);
    return status;
}

cleat_status cleat_csv_stream_open(const char *path, cleat_csv_stream *stream, cleat_error *error) {
    cleat_csv_stream opened = {.room = PART, .csv = {.next_line = 1}};
    cleat_source source = {.path = path};
    opened.file = fopen(path, "rbe");
    if (!opened.file)
        return cleat_fail(error, errno == ENOENT ? CLEAT_ERR_NOT_FOUND : CLEAT_ERR_IO, "%s: cannot open: %s", path,
                          strerror(errno));
    cleat_status status = CLEAT_OK;
    struct stat about;
    if (fstat(fileno(opened.file), &about) == 0 && S_ISREG(about.st_mode)) opened.size = (size_t)about.st_size;
    source.data = source.at = source.end = opened.filled = cleat_alloc(PART + 1, 1);
    opened.csv.source = source;
    if (!source.data)
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for %d bytes of the file", path, PART);
    else
        status = refill(&opened, error);
    if (!status) {
        source = opened.csv.source;
        opened.csv.source = (cleat_source){0};
        status = cleat_csv_begin(&source, &opened.csv, error);
    }
    if (status) {
        cleat_csv_stream_close(&opened);
        return status;
    }
    *stream = opened;
    return CLEAT_OK;
}

cleat_status cleat_csv_stream_next(cleat_csv_stream *stream, bool *more, cleat_error *error) {
    for (;;) {
        bool found = false;
        cleat_status status = cleat_csv_next(&stream->csv, &found, error);
        if (!status && !found && stream->file) {
            status = refill(stream, error);
            if (!status) continue;
        }
        if (!status) *more = found;
        return status;
    }
}

double cleat_csv_stream_share(const cleat_csv_stream *stream) {
    const cleat_source *source = &stream->csv.source;
    double done = (double)(source->bytes_before + (size_t)(source->at - source->data));
    return stream->size ? done / (double)stream->size : 0;
}

void cleat_csv_stream_close(cleat_csv_stream *stream) {
    if (stream->file) fclose(stream->file);
    cleat_csv_close(&stream->csv);
    *stream = (cleat_csv_stream){0};
}

cleat_status cleat_csv_check_header(const char *path, cleat_csv_header_check check, const void *user,
                                    cleat_error *error) {
    cleat_csv_stream stream;
    if (!cleat_file_exists(path) || cleat_csv_stream_open(path, &stream, NULL) != CLEAT_OK) return CLEAT_OK;
    cleat_status status = check(&stream.csv, user, error);
    cleat_csv_stream_close(&stream);
    return status;
}

/* The files of a profile: table, CSV, JSON and trace. */
#include "trace/trace.h"

#include "core/files.h"
#include "core/memory.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum { PATH_SIZE = CLEAT_TRACER_FOLDER + 64 };

static void make_path(const cleat_analysis *analysis, const char *folder, const char *ending, char path[PATH_SIZE]) {
    snprintf(path, PATH_SIZE, "%s/profile-S%06lld.%s", folder, (long long)analysis->first_step, ending);
}

static cleat_status write_tables(const cleat_analysis *analysis, const char *folder, cleat_error *error) {
    static const struct {
        const char *ending;
        void (*write)(const cleat_analysis *analysis, cleat_string *text);
    } tables[] = {{"txt", cleat_table_text}, {"csv", cleat_table_csv}, {"json", cleat_table_json}};
    char path[PATH_SIZE];
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < sizeof tables / sizeof *tables && !status; ++i) {
        cleat_string text = {0};
        tables[i].write(analysis, &text);
        make_path(analysis, folder, tables[i].ending, path);
        status = cleat_file_write_text(path, &text, error);
    }
    return status;
}

/* Compresses data [size] in gzip's format; the caller frees *packed. */
static cleat_status gzip(const void *data, size_t size, char **packed, size_t *packed_size, cleat_error *error) {
    enum { GZIP = 15 + 16 }; /* window bits, and 16 for gzip's header and checksum */
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    if (size > UINT_MAX / 2) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%zu bytes are too many to compress", size);
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory to compress %zu bytes", size);
    size_t bound = deflateBound(&stream, (uLong)size);
    char *made = cleat_alloc(bound, 1);
    stream.next_in = (Bytef *)(uintptr_t)data;
    stream.avail_in = (uInt)size;
    stream.next_out = (Bytef *)made;
    stream.avail_out = (uInt)bound;
    int code = made ? deflate(&stream, Z_FINISH) : Z_MEM_ERROR;
    size_t written = stream.total_out;
    deflateEnd(&stream);
    if (code != Z_STREAM_END) {
        cleat_free(made);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory to compress %zu bytes", size);
    }
    *packed = made;
    *packed_size = written;
    return CLEAT_OK;
}

static cleat_status pack_trace(const cleat_analysis *analysis, cleat_trace_counts *counts, char **packed, size_t *size,
                               cleat_error *error) {
    cleat_string text = {0};
    char *plain = NULL;
    cleat_status status = cleat_trace_write(analysis, &text, counts, error);
    size_t plain_size = text.size;
    if (status) {
        cleat_string_free(&text);
        return status;
    }
    status = cleat_string_detach(&text, &plain, error);
    if (!status) status = gzip(plain, plain_size, packed, size, error);
    cleat_free(plain);
    return status;
}

static cleat_status write_trace(const cleat_analysis *analysis, const char *folder, cleat_error *error) {
    char path[PATH_SIZE], *packed = NULL;
    size_t size = 0;
    cleat_trace_counts counts = {0};
    cleat_status status = pack_trace(analysis, &counts, &packed, &size, error);
    if (status) return status;
    make_path(analysis, folder, "trace.json.gz", path);
    status = cleat_file_write(path, packed, size, error);
    cleat_free(packed);
    if (status) return status;
    if (counts.cut > 0)
        cleat_log(CLEAT_LOG_WARNING,
                  "trace: %zu slices are missing in the trace, which has at most %d events: record fewer steps",
                  counts.cut, CLEAT_TRACE_EVENTS);
    cleat_log(CLEAT_LOG_INFO, "trace: steps %lld-%lld are in %s (%zu events, %.0f KiB; open it in ui.perfetto.dev)",
              (long long)analysis->first_step, (long long)analysis->last_step, path, counts.events,
              (double)size / 1024);
    return CLEAT_OK;
}

cleat_status cleat_profile_files_write(const cleat_recording *recording, const char *folder, cleat_error *error) {
    cleat_analysis analysis;
    cleat_status status = cleat_analysis_create(recording, &analysis, error);
    if (status) return status;
    status = write_tables(&analysis, folder, error);
    if (!status) status = write_trace(&analysis, folder, error);
    cleat_analysis_clear(&analysis);
    return status;
}

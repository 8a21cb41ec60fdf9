/* The files of a profile: table, CSV, JSON and trace. */
#include "trace/files.h"

#include "core/files.h"
#include "core/memory.h"
#include "trace/table.h"
#include "trace/trace.h"

#include <stdio.h>

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
    if (!status) status = cleat_gzip(plain, plain_size, packed, size, error);
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

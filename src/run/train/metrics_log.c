/* The metrics log: JSON lines, appended, and truncated to the records of the checkpoint on resume. */
#include "train/metrics_log.h"

#include "core/files.h"
#include "core/json.h"
#include "core/memory.h"
#include "platform/files.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { FLOAT_DIGITS = 9 };

struct cleat_metrics_log {
    char *path;
    int file;
    int64_t records;
    int64_t size; /* bytes of the complete records */
    void (*appended)(void *user, const char *line);
    void *user;
};

static cleat_status io_fail(const cleat_metrics_log *log, const char *what, cleat_error *error) {
    return cleat_fail(error, CLEAT_ERR_IO, "%s: cannot %s: %s", log->path, what, strerror(errno));
}

/* Finds the size in bytes of the first `keep` complete lines of the file, and sets log->records to their
 * number. */
static cleat_status measure(cleat_metrics_log *log, int64_t keep, cleat_error *error) {
    char *text;
    size_t size;
    cleat_status status = cleat_file_read(log->path, &text, &size, error);
    if (status) return status;
    const char *at = text, *end = text + size, *stop;
    while (log->records < keep && (stop = memchr(at, '\n', (size_t)(end - at)))) {
        at = stop + 1;
        ++log->records;
    }
    log->size = at - text;
    cleat_free(text);
    if (log->records < keep)
        cleat_log(CLEAT_LOG_WARNING, "%s: contains %lld records, but the checkpoint was written after %lld", log->path,
                  (long long)log->records, (long long)keep);
    return CLEAT_OK;
}

static cleat_status open_file(cleat_metrics_log *log, int64_t keep, cleat_error *error) {
    cleat_status status = cleat_file_open_inside(log->path, O_WRONLY | O_CREAT | O_APPEND, 0644, &log->file, error);
    if (!status && keep > 0) status = measure(log, keep, error);
    if (status) return status;
    if (ftruncate(log->file, log->size) != 0) return io_fail(log, "truncate the records", error);
    return CLEAT_OK;
}

cleat_status cleat_metrics_log_open(const char *path, int64_t keep, cleat_metrics_log **log, cleat_error *error) {
    cleat_metrics_log *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", path ? path : "metrics");
    made->file = -1;
    if (!path) {
        made->records = keep > 0 ? keep : 0;
        *log = made;
        return CLEAT_OK;
    }
    made->path = cleat_strdup(path);
    cleat_status status =
        made->path ? open_file(made, keep, error) : cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", path);
    if (status) {
        cleat_metrics_log_close(made);
        return status;
    }
    *log = made;
    return CLEAT_OK;
}

void cleat_metrics_log_close(cleat_metrics_log *log) {
    if (!log) return;
    if (log->file >= 0) close(log->file);
    cleat_free(log->path);
    cleat_free(log);
}

int64_t cleat_metrics_log_records(const cleat_metrics_log *log) {
    return log->records;
}

void cleat_metrics_log_observe(cleat_metrics_log *log, void (*appended)(void *user, const char *line), void *user) {
    log->appended = appended;
    log->user = user;
}

/* Appends the line with one write; a partial write (full disk) is truncated. */
static cleat_status append(cleat_metrics_log *log, const cleat_string *line, cleat_error *error) {
    ssize_t put;
    if (!log->path) {
        ++log->records;
        return CLEAT_OK;
    }
    do put = write(log->file, line->data, line->size);
    while (put < 0 && errno == EINTR);
    if (put == (ssize_t)line->size) {
        log->size += put;
        ++log->records;
        if (log->appended) log->appended(log->user, line->data);
        return CLEAT_OK;
    }
    if (put >= 0) errno = ENOSPC;
    cleat_status status = io_fail(log, "append a record", error);
    if (put > 0 && ftruncate(log->file, log->size) != 0) /* the next opening removes it */
        cleat_log(CLEAT_LOG_WARNING, "%s: the last record is truncated", log->path);
    return status;
}

cleat_status cleat_metrics_log_write(cleat_metrics_log *log, const char *kind, int64_t epoch, int64_t step,
                                     const cleat_metric *metrics, size_t count, cleat_error *error) {
    cleat_string line = {0};
    json_add(&line, json_open(NULL, '{'), json_text("kind", kind), json_count("epoch", epoch),
             json_count("step", step));
    for (size_t i = 0; i < count; ++i) json_add(&line, json_digits(metrics[i].name, metrics[i].value, FLOAT_DIGITS));
    cleat_string_add(&line, "}\n");
    cleat_status status =
        line.failed ? cleat_fail(error, CLEAT_ERR_MEMORY, "the metrics log: out of memory") : append(log, &line, error);
    cleat_string_free(&line);
    return status;
}

cleat_status cleat_metrics_log_sync(cleat_metrics_log *log, cleat_error *error) {
    return !log->path || fsync(log->file) == 0 ? CLEAT_OK : io_fail(log, "sync", error);
}

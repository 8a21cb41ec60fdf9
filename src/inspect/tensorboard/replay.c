/* The files of a run folder as records of an event file. */
#include "cleat/tensorboard.h"
#include "platform/files.h"
#include "tensorboard/tensorboard.h"

#include "core/clock.h"
#include "core/files.h"
#include "core/memory.h"
#include "tensorboard/event_file.h"
#include "json/member.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A line of system.jsonl that is still valid: no later process repeated its step. */
typedef struct moment {
    int64_t step;
    int64_t reached; /* largest step up to here: samples are of completed steps, events of enqueued ones */
    double time;
    const char *line;
} moment;

typedef struct history {
    char *text;      /* system.jsonl, its lines ended by zeros; NULL: there is none */
    moment *moments; /* [count], in the order of the file */
    size_t count, capacity;
    double otherwise; /* time of every step if there are no moments */
} history;

/* Terminates the next complete line of *at with a zero; NULL at the end, or at an incomplete line. */
static const char *next_line(char **at) {
    char *line = *at, *stop = strchr(line, '\n');
    if (!stop) return NULL;
    *stop = 0;
    *at = stop + 1;
    return line;
}

/* Returns false if the line is not a record. `starts`: it begins a process. */
static bool parse_moment(const char *line, moment *made, bool *starts) {
    cJSON *object = cJSON_Parse(line);
    const char *kind = cleat_json_text(object, "kind");
    const double step = cleat_json_number(object, "step"), time = cleat_json_number(object, "time");
    const bool good = kind && !isnan(step) && !isnan(time);
    if (good) {
        *made = (moment){.step = (int64_t)step, .time = time, .line = line};
        *starts = strcmp(kind, "start") == 0;
    }
    cJSON_Delete(object);
    return good;
}

/* A process that resumes at a step repeats the later ones. */
static void drop_later(history *past, int64_t step) {
    size_t kept = 0;
    for (size_t i = 0; i < past->count; ++i)
        if (past->moments[i].step <= step) past->moments[kept++] = past->moments[i];
    past->count = kept;
}

static void set_reached(history *past) {
    int64_t reached = INT64_MIN;
    for (size_t i = 0; i < past->count; ++i) {
        if (past->moments[i].step > reached) reached = past->moments[i].step;
        past->moments[i].reached = reached;
    }
}

static cleat_status read_moments(history *past, const char *path, cleat_error *error) {
    char *at = past->text;
    const char *line;
    long long number = 0;
    cleat_status status = CLEAT_OK;
    while (!status && (line = next_line(&at))) {
        moment next;
        bool starts = false;
        ++number;
        if (!parse_moment(line, &next, &starts)) {
            cleat_log(CLEAT_LOG_WARNING, "%s:%lld: not a record; the line is left out", path, number);
            continue;
        }
        if (starts) drop_later(past, next.step);
        status = cleat_grow(&past->moments, past->count, &past->capacity, error);
        if (!status) past->moments[past->count++] = next;
    }
    set_reached(past);
    return status;
}

static cleat_status history_read(const char *run, history *past, cleat_error *error) {
    char path[CLEAT_EVENT_PATH];
    size_t size;
    struct stat about;
    cleat_status status = cleat_path_join(run, "metrics.jsonl", path, sizeof path, error);
    if (status) return status;
    past->otherwise = stat(path, &about) == 0 ? (double)about.st_mtime : cleat_wall_seconds();
    status = cleat_path_join(run, "system.jsonl", path, sizeof path, error);
    if (status || !cleat_file_exists(path)) return status;
    status = cleat_file_read(path, &past->text, &size, error);
    return status ? status : read_moments(past, path, error);
}

/* Time at which a step was done, interpolated between the moments around it. */
static double time_of(const history *past, int64_t step) {
    size_t low = 0, high = past->count; /* the first moment of this step or a later one */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (past->moments[middle].reached < step)
            low = middle + 1;
        else
            high = middle;
    }
    if (past->count == 0) return past->otherwise;
    if (low == past->count) return past->moments[low - 1].time;
    const moment *after = &past->moments[low], *before = after - 1;
    if (low == 0 || after->reached == step) return after->time;
    return before->time +
           (after->time - before->time) * (double)(step - before->reached) / (double)(after->reached - before->reached);
}

static cleat_status replay_system(cleat_tensorboard *board, const history *past, int64_t first_step, int64_t last_step,
                                  int64_t *records, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < past->count && !status; ++i) {
        if (past->moments[i].step < first_step || past->moments[i].step > last_step) continue;
        status = cleat_tensorboard_system_line(board, past->moments[i].line, error);
        ++*records;
    }
    return status;
}

/* Step of a line of metrics.jsonl; -1 if it has none. */
static int64_t step_of(const char *line) {
    cJSON *object = cJSON_Parse(line);
    const double step = cleat_json_number(object, "step");
    cJSON_Delete(object);
    return isnan(step) ? -1 : (int64_t)step;
}

static cleat_status replay_metrics(cleat_tensorboard *board, const char *run, const history *past, int64_t first_step,
                                   int64_t last_step, int64_t *records, cleat_error *error) {
    char path[CLEAT_EVENT_PATH], *text = NULL;
    const char *line;
    size_t size;
    long long number = 0;
    cleat_status status = cleat_path_join(run, "metrics.jsonl", path, sizeof path, error);
    if (!status) status = cleat_file_read(path, &text, &size, error);
    char *at = text;
    while (!status && (line = next_line(&at))) {
        int64_t step = step_of(line);
        ++number;
        if (step < 0)
            status =
                cleat_fail(error, CLEAT_ERR_FORMAT, "%s:%lld: not a record of metrics: %.100s", path, number, line);
        if (status || step < first_step || step > last_step) continue;
        status = cleat_tensorboard_metrics_line(board, time_of(past, step), line, error);
        ++*records;
    }
    cleat_free(text);
    return status;
}

cleat_status cleat_tensorboard_replay(cleat_tensorboard *board, const char *run, int64_t first_step, int64_t last_step,
                                      int64_t *records, cleat_error *error) {
    history past = {0};
    int64_t written = 0;
    cleat_status status = history_read(run, &past, error);
    if (!status) status = replay_system(board, &past, first_step, last_step, &written, error);
    if (!status) status = replay_metrics(board, run, &past, first_step, last_step, &written, error);
    cleat_free(past.text);
    cleat_free(past.moments);
    if (!status && records) *records = written;
    return status;
}

static const char ending[] = ".converted";

static cleat_status write_profile(cleat_tensorboard *board, const char *run, cleat_error *error) {
    char path[CLEAT_EVENT_PATH], *text;
    size_t size;
    cleat_status status = cleat_path_join(run, "resolved.ini", path, sizeof path, error);
    if (status || !cleat_file_exists(path)) return status;
    status = cleat_file_read(path, &text, &size, error);
    if (status) return status;
    status = cleat_tensorboard_verbatim(board, cleat_wall_seconds(), 0, "profile", text, error);
    cleat_free(text);
    return status;
}

static bool is_converted(const char *name) {
    return cleat_event_file_name(name) && strcmp(cleat_name_ending(name), ending) == 0;
}

/* Removes earlier conversions from the folder; a failure is only a warning. */
static void remove_earlier(const char *folder, const char *current) {
    char path[CLEAT_EVENT_PATH];
    cleat_name_list listing = {0};
    if (cleat_listing_read(folder, is_converted, &listing, NULL) != CLEAT_OK) return;
    for (size_t i = 0; i < listing.count; ++i) {
        if (cleat_path_join(folder, listing.names[i], path, sizeof path, NULL) != CLEAT_OK) continue;
        if (strcmp(path, current) != 0 && unlink(path) != 0)
            cleat_log(CLEAT_LOG_WARNING, "%s: an earlier conversion cannot be removed", path);
    }
    cleat_name_list_free(&listing);
}

cleat_status cleat_tensorboard_convert(const char *run, const char *out, cleat_tensorboard_report *report,
                                       cleat_error *error) {
    cleat_tensorboard *board = NULL;
    cleat_tensorboard_report made = {.records = 0};
    char path[CLEAT_EVENT_PATH];
    if (!cleat_folder_exists(run)) return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "%s: no such run folder", run);
    cleat_status status = cleat_folder_make(out, error);
    if (!status) status = cleat_tensorboard_create(out, &board, error);
    if (status) return status;
    snprintf(path, sizeof path, "%s", cleat_tensorboard_path(board));
    snprintf(made.file, sizeof made.file, "%s%s", path, ending);
    status = cleat_tensorboard_start(board, cleat_wall_seconds(), 0, error);
    if (!status) status = write_profile(board, run, error);
    if (!status) status = cleat_tensorboard_replay(board, run, 0, INT64_MAX, &made.records, error);
    cleat_tensorboard_close(board);
    if (!status && rename(path, made.file) != 0)
        status = cleat_fail(error, CLEAT_ERR_IO, "%s: cannot rename to %s", path, made.file);
    if (status) {
        unlink(path);
        return status;
    }
    remove_earlier(out, made.file);
    if (report) *report = made;
    return CLEAT_OK;
}

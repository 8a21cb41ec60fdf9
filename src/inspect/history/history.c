/* The folder of a run: reads its files and finds what they contain. */
#include "history/history.h"

#include "core/files.h"
#include "core/memory.h"
#include "platform/files.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cleat_status cleat_history_text(const char *path, char **text, size_t *size, cleat_error *error) {
    *text = NULL;
    return cleat_file_exists(path) ? cleat_file_read(path, text, size, error) : CLEAT_OK;
}

/* A run holds an exclusive lock on this file; a shared lock, released at once, fails if one does. */
static bool is_locked(const char *folder) {
    char path[CLEAT_FILE_PATH];
    snprintf(path, sizeof path, "%s/.train.lock", folder);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    bool locked = flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(file);
    return locked;
}

static bool is_profile_json(const char *name) {
    long long step;
    return sscanf(name, "profile-S%lld", &step) == 1 && strcmp(cleat_name_ending(name), ".json") == 0;
}

/* The newest recording: names are sorted, and their numbers have equal width. */
static cleat_status read_profile(cleat_history *history, cleat_error *error) {
    char path[CLEAT_FILE_PATH];
    size_t size;
    cleat_name_list listing = {0};
    cleat_status status = cleat_listing_read(history->folder, is_profile_json, &listing, error);
    if (!status && listing.count) {
        snprintf(path, sizeof path, "%s/%s", history->folder, listing.names[listing.count - 1]);
        status = cleat_history_text(path, &history->profile, &size, error);
    }
    cleat_name_list_free(&listing);
    return status;
}

typedef struct collector {
    cleat_history *history;
    size_t capacity;
    bool failed;
} collector;

static int add_setting(void *user, const char *section, const char *key, const char *value) {
    collector *in = user;
    cleat_history *history = in->history;
    if (cleat_grow(&history->settings, history->n_settings, &in->capacity, NULL)) {
        in->failed = true;
        return 0;
    }
    cleat_history_setting *made = &history->settings[history->n_settings++];
    if (strcmp(section, "run") == 0 && strcmp(key, "profile") == 0) key = "trace"; /* its name in release 0.1 */
    *made = (cleat_history_setting){cleat_strdup(section), cleat_strdup(key), cleat_strdup(value ? value : "")};
    in->failed = !made->section || !made->key || !made->value;
    return !in->failed;
}

/* resolved.ini as sections, keys and texts, without a schema: it may be of another version. */
static cleat_status read_settings(cleat_history *history, const char *path, cleat_error *error) {
    char *text = NULL;
    size_t size = 0;
    collector in = {.history = history};
    cleat_status status = cleat_history_text(path, &text, &size, error);
    if (status || !text) return status;
    ini_parse_string(text, add_setting, &in);
    cleat_free(text);
    return in.failed ? cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", path) : CLEAT_OK;
}

static cleat_status read_files(cleat_history *history, cleat_error *error) {
    char path[CLEAT_FILE_PATH];
    size_t size;
    snprintf(path, sizeof path, "%s/metrics.jsonl", history->folder);
    cleat_status status = cleat_history_read_log(history, path, false, error);
    snprintf(path, sizeof path, "%s/system.jsonl", history->folder);
    if (!status) status = cleat_history_read_log(history, path, true, error);
    snprintf(path, sizeof path, "%s/resolved.ini", history->folder);
    if (!status) status = read_settings(history, path, error);
    snprintf(path, sizeof path, "%s/examples.json", history->folder);
    if (!status) status = cleat_history_text(path, &history->examples, &size, error);
    if (!status) status = cleat_history_read_checkpoints(history, error);
    if (!status) status = read_profile(history, error);
    return status;
}

/* The last part of the path; for "." or a path that ends in "..", the last part of the real path. */
static char *name_of(const char *folder) {
    char *real = realpath(folder, NULL);
    const char *slash = real ? strrchr(real, '/') : NULL;
    char *name = cleat_strdup(slash && slash[1] ? slash + 1 : folder);
    free(real);
    return name;
}

cleat_status cleat_history_read(const char *folder, cleat_history **history, cleat_error *error) {
    if (!cleat_folder_exists(folder))
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "%s: there is no such folder; give the folder of a run", folder);
    if (strlen(folder) > CLEAT_FILE_PATH - 128)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "path too long: %.100s...", folder);
    cleat_history *made = cleat_alloc(1, sizeof *made);
    cleat_status status = made ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", folder);
    if (!status) {
        made->folder = cleat_strdup(folder);
        made->name = name_of(folder);
        if (!made->folder || !made->name) status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", folder);
    }
    if (!status) status = read_files(made, error);
    char runs[256];
    if (!status && !made->n_tables && !made->n_settings && !made->starts.count && !made->n_checkpoints)
        status = cleat_fail(error, CLEAT_ERR_NOT_FOUND,
                            "%s: no run is stored here (no metrics.jsonl, system.jsonl, resolved.ini or ckpt-*), as in "
                            "the folder that `cleat train` printed%s",
                            folder, cleat_listing_hint(folder, "resolved.ini", runs));
    if (!status) {
        made->is_running = is_locked(folder);
        status = cleat_history_find_last(made, error);
    }
    if (status) {
        cleat_history_free(made);
        return status;
    }
    *history = made;
    return CLEAT_OK;
}

static void records_free(cleat_history_records *records) {
    for (size_t i = 0; i < records->count; ++i) cleat_free(records->items[i]);
    cleat_free(records->items);
}

void cleat_history_free(cleat_history *history) {
    if (!history) return;
    for (size_t t = 0; t < history->n_tables; ++t) {
        for (size_t i = 0; i < history->tables[t].columns; ++i) {
            cleat_free(history->tables[t].items[i].name);
            cleat_free(history->tables[t].items[i].values);
        }
        cleat_free(history->tables[t].items);
    }
    for (size_t i = 0; i < history->n_settings; ++i) {
        cleat_free(history->settings[i].section);
        cleat_free(history->settings[i].key);
        cleat_free(history->settings[i].value);
    }
    records_free(&history->starts);
    records_free(&history->events);
    records_free(&history->ends);
    cleat_free(history->tables);
    cleat_free(history->settings);
    cleat_free(history->checkpoints);
    cleat_free(history->examples);
    cleat_free(history->profile);
    cleat_free(history->last_start);
    cleat_free(history->folder);
    cleat_free(history->name);
    cleat_free(history);
}

const cleat_history_table *cleat_history_find(const cleat_history *history, const char *kind) {
    for (size_t i = 0; i < history->n_tables; ++i)
        if (strcmp(history->tables[i].kind, kind) == 0) return &history->tables[i];
    return NULL;
}

const double *cleat_history_values(const cleat_history_table *table, const char *name) {
    for (size_t i = 0; table && i < table->columns; ++i)
        if (strcmp(table->items[i].name, name) == 0) return table->items[i].values;
    return NULL;
}

const char *cleat_history_setting_of(const cleat_history *history, const char *section, const char *key) {
    for (size_t i = 0; i < history->n_settings; ++i)
        if (strcmp(history->settings[i].section, section) == 0 && strcmp(history->settings[i].key, key) == 0)
            return history->settings[i].value;
    return NULL;
}

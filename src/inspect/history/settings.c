/* resolved.ini of a run as sections, keys and texts, without a schema: it may be of another version. */
#include "history/history.h"

#include "core/files.h"
#include "core/memory.h"

#include <ini.h>
#include <stdio.h>

typedef struct collector {
    cleat_history *history;
    size_t capacity;
    bool failed;
} collector;

static int add_setting(void *user, const char *section, const char *key, const char *value) {
    collector *in = user;
    cleat_history *history = in->history;
    if (cleat_grow(&history->settings, history->n_settings, &in->capacity, sizeof *history->settings, NULL)) {
        in->failed = true;
        return 0;
    }
    cleat_history_setting *made = &history->settings[history->n_settings++];
    *made = (cleat_history_setting){cleat_strdup(section), cleat_strdup(key), cleat_strdup(value ? value : "")};
    in->failed = !made->section || !made->key || !made->value;
    return !in->failed;
}

cleat_status cleat_history_read_settings(cleat_history *history, const char *path, cleat_error *error) {
    char *text = NULL;
    size_t size = 0;
    collector in = {.history = history};
    cleat_status status = cleat_history_text(path, &text, &size, error);
    if (status || !text) return status;
    ini_parse_string(text, add_setting, &in);
    cleat_free(text);
    return in.failed ? cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", path) : CLEAT_OK;
}

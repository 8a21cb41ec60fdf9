/* The last process of a run: its start, its end and its outcome. */
#include "history/history.h"

#include "core/memory.h"
#include "json/member.h"

#include <string.h>

static const char *last_of(const cleat_history_records *records) {
    return records->count ? records->items[records->count - 1] : NULL;
}

/* Whether the end was written after the start; otherwise it belongs to an earlier process. */
static bool is_end_of(const char *end_text, const cJSON *start) {
    cJSON *end = cJSON_Parse(end_text);
    const bool good = end && !(cleat_json_number(end, "time") < cleat_json_number(start, "time"));
    cJSON_Delete(end);
    return good;
}

/* Replaces the schedule of the start record by that of the event; returns whether it did. */
static bool read_schedule(cJSON *start, const char *event_text) {
    cJSON *event = cJSON_Parse(event_text), *schedule = cJSON_DetachItemFromObject(event, "schedule");
    const bool good = schedule && cleat_json_number(event, "time") >= cleat_json_number(start, "time") &&
                      cJSON_ReplaceItemInObject(start, "schedule", schedule);
    if (!good) cJSON_Delete(schedule);
    cJSON_Delete(event);
    return good;
}

/* A time budget may shorten the schedule during the run: an event records the new one. */
static bool update_schedule(cJSON *start, const cleat_history_records *events) {
    bool changed = false;
    for (size_t i = 0; i < events->count; ++i)
        if (strstr(events->items[i], "\"shorter_schedule\"")) changed |= read_schedule(start, events->items[i]);
    return changed;
}

cleat_status cleat_history_find_last(cleat_history *history, cleat_error *error) {
    const char *start_text = last_of(&history->starts), *end_text = last_of(&history->ends);
    cJSON *start = cJSON_Parse(start_text); /* NULL for NULL */
    char *changed = NULL;
    if (end_text && is_end_of(end_text, start)) history->last_end = end_text;
    if (start) {
        if (update_schedule(start, &history->events)) changed = cJSON_PrintUnformatted(start);
        history->last_start = cleat_strdup(changed ? changed : start_text);
    }
    cJSON_free(changed);
    const bool failed = start && !history->last_start;
    cJSON_Delete(start);
    history->phase = history->last_end     ? CLEAT_HISTORY_ENDED
                     : history->is_running ? CLEAT_HISTORY_RUNNING
                     : history->last_start ? CLEAT_HISTORY_KILLED
                                           : CLEAT_HISTORY_UNKNOWN;
    return failed ? cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", history->folder) : CLEAT_OK;
}

/* The schedule of a profile: parsing, the phase of a step, and its text. */
#include "cleat/tracer.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct key {
    const char *name;
    size_t offset; /* of an int64_t in cleat_tracer_schedule */
    int64_t initial, least, most;
} keys[] = {
    {"skip_first", offsetof(cleat_tracer_schedule, skip_first), 0, 0, 1000000000},
    {"wait", offsetof(cleat_tracer_schedule, wait), 5, 0, 1000000000},
    {"warmup", offsetof(cleat_tracer_schedule, warmup), 2, 0, 1000},
    {"active", offsetof(cleat_tracer_schedule, active), 3, 1, 1000},
    {"repeat", offsetof(cleat_tracer_schedule, repeat), 1, 1, 1000},
};
enum { KEYS = sizeof keys / sizeof *keys };

static int64_t *value_of(cleat_tracer_schedule *schedule, int key) {
    return (int64_t *)(void *)((char *)schedule + keys[key].offset);
}

static int find_key(const char *name, size_t size) {
    for (int i = 0; i < KEYS; ++i)
        if (strlen(keys[i].name) == size && strncmp(keys[i].name, name, size) == 0) return i;
    return -1;
}

/* Parses digits; -1: there are none, other characters follow, or the number is huge. */
static int64_t parse_count(const char *text, size_t size) {
    int64_t value = 0;
    if (size == 0 || size > 12) return -1;
    for (size_t i = 0; i < size; ++i) {
        if (text[i] < '0' || text[i] > '9') return -1;
        value = value * 10 + (text[i] - '0');
    }
    return value;
}

static cleat_status fail_at(const char *text, const char *at, size_t size, const char *why, cleat_error *error) {
    return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                      "the trace schedule '%s': '%.*s' at character %d %s; an example is '" CLEAT_TRACER_DEFAULT "'",
                      text, (int)size, at, (int)(at - text) + 1, why);
}

/* Parses one "key=value" of `size` characters. */
static cleat_status parse_part(const char *text, const char *at, size_t size, cleat_tracer_schedule *schedule,
                               bool seen[KEYS], cleat_error *error) {
    const char *equals = memchr(at, '=', size);
    char why[160];
    if (!equals) return fail_at(text, at, size, "is not of the form key=value", error);
    const size_t name = (size_t)(equals - at);
    const int key = find_key(at, name);
    if (key < 0) return fail_at(text, at, name, "is not one of skip_first, wait, warmup, active and repeat", error);
    if (seen[key]) return fail_at(text, at, name, "occurs twice", error);
    const int64_t value = parse_count(equals + 1, size - name - 1);
    if (value < keys[key].least || value > keys[key].most) {
        snprintf(why, sizeof why, "must be a whole number from %lld to %lld%s", (long long)keys[key].least,
                 (long long)keys[key].most,
                 value == 0 && strcmp(keys[key].name, "repeat") == 0
                     ? " (cycles without an end are not supported: every cycle writes files)"
                     : "");
        return fail_at(text, at, size, why, error);
    }
    seen[key] = true;
    *value_of(schedule, key) = value;
    return CLEAT_OK;
}

cleat_status cleat_tracer_schedule_parse(const char *text, cleat_tracer_schedule *schedule, cleat_error *error) {
    cleat_tracer_schedule parsed;
    bool seen[KEYS] = {false};
    for (int i = 0; i < KEYS; ++i) *value_of(&parsed, i) = keys[i].initial;
    for (const char *at = text;;) {
        while (*at == ' ') ++at;
        size_t size = strcspn(at, ","), trimmed = size;
        while (trimmed > 0 && at[trimmed - 1] == ' ') --trimmed;
        cleat_status status = parse_part(text, at, trimmed, &parsed, seen, error);
        if (status) return status;
        if (!at[size]) break;
        at += size + 1;
    }
    *schedule = parsed;
    return CLEAT_OK;
}

static int64_t period(const cleat_tracer_schedule *schedule) {
    return schedule->wait + schedule->warmup + schedule->active;
}

cleat_tracer_phase cleat_tracer_schedule_phase(const cleat_tracer_schedule *schedule, int64_t step) {
    const int64_t at = step - 1 - schedule->skip_first, length = period(schedule);
    if (at < 0 || at >= length * schedule->repeat) return CLEAT_TRACER_OFF;
    if (at % length < schedule->wait) return CLEAT_TRACER_WAIT;
    return at % length < schedule->wait + schedule->warmup ? CLEAT_TRACER_WARMUP : CLEAT_TRACER_ACTIVE;
}

int64_t cleat_tracer_schedule_first(const cleat_tracer_schedule *schedule, int64_t cycle) {
    return schedule->skip_first + cycle * period(schedule) + schedule->wait + schedule->warmup + 1;
}

int64_t cleat_tracer_schedule_last(const cleat_tracer_schedule *schedule, int64_t cycle) {
    return schedule->skip_first + (cycle + 1) * period(schedule);
}

const char *cleat_tracer_schedule_describe(const cleat_tracer_schedule *schedule, int64_t before,
                                           char text[CLEAT_TRACER_TEXT]) {
    enum { SHOWN = 3 };
    int used = 0;
    for (int64_t c = 0; c < schedule->repeat && c < SHOWN; ++c) {
        long long first = (long long)(before + cleat_tracer_schedule_first(schedule, c));
        long long last = (long long)(before + cleat_tracer_schedule_last(schedule, c));
        used += snprintf(text + used, (size_t)(CLEAT_TRACER_TEXT - used), "%s",
                         c               ? ", then "
                         : first == last ? "step "
                                         : "steps ");
        used += snprintf(text + used, (size_t)(CLEAT_TRACER_TEXT - used), first == last ? "%lld" : "%lld-%lld", first,
                         last);
    }
    if (schedule->repeat > SHOWN)
        snprintf(text + used, (size_t)(CLEAT_TRACER_TEXT - used), " and so on, %lld times",
                 (long long)schedule->repeat);
    return text;
}

/* The state that `cleat monitor` shows: the last process of a run's history. */
#include "monitor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The samples of the last process begin with its start record. */
static size_t find_first_sample(const monitor_state *state) {
    const double *times = cleat_history_values(state->samples, "time"), start = cleat_json_number(state->start, "time");
    size_t first = 0;
    while (times && first < state->samples->rows && times[first] < start) ++first;
    return first;
}

cleat_status monitor_open(const char *folder, monitor_state *state, cleat_error *error) {
    *state = (monitor_state){.history = NULL};
    cleat_status status = cleat_history_read(folder, &state->history, error);
    if (status) return status;
    state->samples = cleat_history_find(state->history, "sample");
    state->train = cleat_history_find(state->history, "train");
    state->eval = cleat_history_find(state->history, "eval");
    state->start = cJSON_Parse(state->history->last_start); /* NULL for NULL */
    state->end = cJSON_Parse(state->history->last_end);
    state->first_sample = find_first_sample(state);
    state->phase = state->start || state->end ? state->history->phase : CLEAT_HISTORY_UNKNOWN;
    return CLEAT_OK;
}

void monitor_close(monitor_state *state) {
    cJSON_Delete(state->start);
    cJSON_Delete(state->end);
    cleat_history_free(state->history);
    *state = (monitor_state){.history = NULL};
}

double monitor_latest(const monitor_state *state, const char *name) {
    enum { PATIENCE = 5 }; /* a sample in which no step was completed has no speed */
    const double *values = cleat_history_values(state->samples, name);
    if (!values) return NAN;
    for (size_t i = state->samples->rows, tried = 0; i-- > state->first_sample && tried < PATIENCE; ++tried)
        if (isfinite(values[i])) return values[i];
    return NAN;
}

double monitor_mean(const monitor_state *state, const char *name) {
    const double *values = cleat_history_values(state->samples, name);
    const double *times = cleat_history_values(state->samples, "time");
    double sum = 0, all = 0, before = cleat_json_number(state->start, "time");
    if (!values || !times) return NAN;
    for (size_t i = state->first_sample; i < state->samples->rows; ++i) {
        const double seconds = times[i] - before;
        before = times[i];
        if (!isfinite(values[i]) || !(seconds > 0)) continue;
        sum += values[i] * seconds;
        all += seconds;
    }
    return all > 0 ? sum / all : NAN;
}

double monitor_start_number(const monitor_state *state, const char *object, const char *name) {
    return cleat_json_number(cleat_json_member(state->start, object), name);
}

static double last_row(const cleat_history_table *table, const char *name) {
    const double *values = cleat_history_values(table, name);
    return values && table->rows ? values[table->rows - 1] : NAN;
}

double monitor_step(const monitor_state *state) {
    if (state->end) return cleat_json_number(state->end, "step");
    const double sampled = last_row(state->samples, "step"), logged = last_row(state->train, "step");
    return fmax(sampled, logged); /* of two, the one that is a number */
}

double monitor_seconds_left(const monitor_state *state) {
    const double *times = cleat_history_values(state->samples, "time");
    const double *steps = cleat_history_values(state->samples, "step");
    const double before = cleat_json_number(state->start, "step"),
                 total = monitor_start_number(state, "schedule", "total_steps");
    if (state->phase != CLEAT_HISTORY_RUNNING || !times || !steps) return NAN;
    const size_t last = state->samples->rows - 1;
    size_t first = state->first_sample;
    while (first < last && !(steps[first] > before)) ++first; /* without the start-up */
    const double per_step = (times[last] - times[first]) / (steps[last] - steps[first]);
    return isfinite(per_step) ? fmax(0, (total - steps[last]) * per_step) : NAN;
}

const char *monitor_status(const monitor_state *state) {
    const char *status = cleat_json_text(state->end, "status");
    switch (state->phase) {
    case CLEAT_HISTORY_RUNNING:
        return "running";
    case CLEAT_HISTORY_ENDED:
        return status ? status : "ended";
    case CLEAT_HISTORY_KILLED:
        return "killed";
    case CLEAT_HISTORY_UNKNOWN:
        break;
    }
    return "not monitored";
}

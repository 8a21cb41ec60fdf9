/* Idle time of the compute queue within the steps, and what the host did meanwhile. */
#include "trace/analysis.h"

#include <string.h>

/* End of the last command that the compute queue ran before command `first`; false: there is none. */
static bool find_end_before(const cleat_recording *recording, size_t first, int64_t *end) {
    for (size_t c = first; c-- > 0;) {
        const cleat_command *command = &recording->recorder->commands[c];
        if (command->kind == CLEAT_COMMAND_UPLOAD || command->started == 0) continue;
        *end = cleat_recording_device_time(recording, command->ended);
        return true;
    }
    return false;
}

/* A step begins for the device when the previous one ends. If other work came between them, or nothing was
 * recorded before, it begins when the host begins it, unless the device is still busy then. */
static int64_t begin_of(const cleat_recording *recording, const cleat_traced_step *step) {
    int64_t before = 0, host = cleat_recording_host_time(recording, step->begin);
    if (!find_end_before(recording, step->first_command, &before)) return host;
    return step->interrupted && host > before ? host : before;
}

static int64_t overlap(int64_t start, int64_t end, int64_t other_start, int64_t other_end) {
    int64_t from = start > other_start ? start : other_start, to = end < other_end ? end : other_end;
    return to > from ? to - from : 0;
}

/* Spans of the trainer other than whole steps do not overlap. */
static const char *host_during(const cleat_recording *recording, int64_t start, int64_t end) {
    int64_t best = 0;
    const char *name = "between logged calls";
    for (size_t i = 0; i < recording->n_spans; ++i) {
        const cleat_span *span = &recording->spans[i];
        if (span->thread != 0 || strcmp(span->name, "step") == 0) continue;
        int64_t common = overlap(start, end, cleat_recording_host_time(recording, span->start),
                                 cleat_recording_host_time(recording, span->end));
        if (common <= best) continue;
        best = common;
        name = span->name;
    }
    return name;
}

/* The host is not the cause if it had enqueued the next command before the gap. */
static const char *cause_of(const cleat_recording *recording, const cleat_gap *gap) {
    if (cleat_recording_host_time(recording, gap->next->command->returned) <= gap->start)
        return "the next command was already enqueued: the delay is in the driver or the device";
    return host_during(recording, gap->start, gap->end);
}

static void add_gap(cleat_analysis *analysis, int64_t start, const cleat_trace_slice *next) {
    const int64_t end = next->start;
    size_t at = analysis->n_gaps;
    analysis->parts[CLEAT_PART_IDLE] += 1e-9 * (double)(end - start);
    while (at > 0 && end - start > analysis->gaps[at - 1].end - analysis->gaps[at - 1].start) --at;
    if (at == CLEAT_GAPS) return;
    if (analysis->n_gaps < CLEAT_GAPS) ++analysis->n_gaps;
    for (size_t i = analysis->n_gaps - 1; i > at; --i) analysis->gaps[i] = analysis->gaps[i - 1];
    analysis->gaps[at] = (cleat_gap){.start = start, .end = end, .next = next};
}

void cleat_analysis_find_idle(cleat_analysis *analysis) {
    const cleat_recording *recording = analysis->recording;
    size_t i = 0;
    for (size_t s = 0; s < recording->n_steps; ++s) {
        if (!recording->steps[s].active) continue;
        const int64_t begin = begin_of(recording, &recording->steps[s]);
        int64_t busy_until = begin;
        if (recording->steps[s].step == analysis->first_step) analysis->begin = begin;
        for (; i < analysis->n_slices && analysis->slices[i].step == s; ++i) {
            const cleat_trace_slice *slice = &analysis->slices[i];
            if (!cleat_slice_computes(slice)) continue;
            if (slice->start > busy_until) add_gap(analysis, busy_until, slice);
            if (slice->end > busy_until) busy_until = slice->end;
        }
        analysis->seconds += 1e-9 * (double)(busy_until - begin);
    }
    for (size_t g = 0; g < analysis->n_gaps; ++g) analysis->gaps[g].host = cause_of(recording, &analysis->gaps[g]);
}

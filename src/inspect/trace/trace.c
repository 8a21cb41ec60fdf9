/* The trace: tracks with their lanes, flows and counters, as events of one JSON text. */
#include "trace/trace.h"

#include "core/json.h"
#include "core/memory.h"
#include "trace/lanes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { HOST = 1, DEVICE = 2 }; /* process numbers */
enum { COMPUTE, COPY_IN, COPY_OUT, DEVICE_TRACKS };
enum { LANES_OF_A_TRACK = 1000, TRACKS_OF_A_PROCESS = 1000 };

/* A slice of the trace before it is written: a command of the device, or a span of the host. */
typedef struct trace_item {
    int process, track;
    int64_t start, end;
    const cleat_trace_slice *slice; /* or NULL */
    const cleat_span *span;         /* or NULL */
    const cleat_span *fill;         /* of an upload: where its arrow begins; or NULL */
    int64_t flow;                   /* number of the arrow that passes here; -1: none */
    char flow_kind;                 /* 's' begins, 't' passes, 'f' ends */
} trace_item;

typedef struct trace {
    const cleat_analysis *analysis;
    cleat_string *text;
    trace_item *items; /* [count] */
    size_t count, capacity;
    int64_t origin; /* time 0 of the trace */
    cleat_trace_counts counts;
} trace;

/* Perfetto treats thread numbers as unique among all processes, and 0 as the idle thread. */
static int thread_of(int process, int track, int lane) {
    return (process * TRACKS_OF_A_PROCESS + track) * LANES_OF_A_TRACK + lane + 1;
}

static cleat_status add_item(trace *t, const trace_item *item, cleat_error *error) {
    cleat_status status = cleat_grow(&t->items, t->count, &t->capacity, error);
    if (status) return status;
    t->items[t->count++] = *item;
    return CLEAT_OK;
}

static int track_of(const cleat_trace_slice *slice) {
    switch (slice->command->kind) {
    case CLEAT_COMMAND_UPLOAD:
    case CLEAT_COMMAND_WRITE:
        return COPY_IN;
    case CLEAT_COMMAND_READ:
        return COPY_OUT;
    default:
        return COMPUTE;
    }
}

/* The fill of the batch that `upload` carries: the last one that ended before the upload was called. NULL:
 * not logged. */
static const cleat_span *find_fill(const cleat_recording *recording, const cleat_command *upload) {
    const cleat_span *found = NULL;
    for (size_t i = 0; i < recording->n_spans; ++i) {
        const cleat_span *span = &recording->spans[i];
        if (span->number == upload->batch && strcmp(span->name, "filling a batch") == 0 && span->end <= upload->called)
            if (!found || span->end > found->end) found = span;
    }
    return found;
}

/* Arrows: an upload, and the next kernel of its graph. */
static cleat_status add_slices(trace *t, cleat_error *error) {
    const cleat_analysis *analysis = t->analysis;
    int64_t flow = -1;
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < analysis->n_slices && !status; ++i) {
        const cleat_trace_slice *slice = &analysis->slices[i];
        trace_item item = {.process = DEVICE,
                           .track = track_of(slice),
                           .start = slice->start,
                           .end = slice->end,
                           .slice = slice,
                           .flow = -1};
        if (slice->command->kind == CLEAT_COMMAND_UPLOAD && slice->command->batch >= 0) {
            flow = item.flow = (int64_t)i;
            item.flow_kind = 's';
            item.fill = find_fill(analysis->recording, slice->command);
        } else if (flow >= 0 && slice->launch) {
            item.flow = flow;
            item.flow_kind = 'f';
            flow = -1;
        }
        status = add_item(t, &item, error);
    }
    return status;
}

/* Makes the arrow of an upload begin at the fill of its batch. */
static void extend_arrows(trace *t, const cleat_span *span, trace_item *fill) {
    for (size_t i = 0; i < t->count; ++i) {
        trace_item *item = &t->items[i];
        if (item->fill != span) continue;
        item->flow_kind = 't';
        fill->flow = item->flow;
        fill->flow_kind = 's';
    }
}

/* Spans of the host during the active steps; fills of their batches may be earlier. */
static cleat_status add_spans(trace *t, cleat_error *error) {
    const cleat_recording *recording = t->analysis->recording;
    double begin = INFINITY, end = 0;
    cleat_status status = CLEAT_OK;
    for (size_t s = 0; s < recording->n_steps; ++s) {
        if (!recording->steps[s].active) continue;
        begin = fmin(begin, recording->steps[s].begin);
        end = fmax(end, recording->steps[s].end);
    }
    for (size_t i = 0; i < recording->n_spans && !status; ++i) {
        const cleat_span *span = &recording->spans[i];
        trace_item item = {.process = HOST,
                           .track = span->thread,
                           .start = cleat_recording_host_time(recording, span->start),
                           .end = cleat_recording_host_time(recording, span->end),
                           .span = span,
                           .flow = -1};
        if (strcmp(span->name, "filling a batch") == 0) extend_arrows(t, span, &item);
        if (item.flow >= 0 || (span->start >= begin && span->end <= end)) status = add_item(t, &item, error);
    }
    return status;
}

/* An arrow without an end would be an error for viewers: an upload whose kernel lies outside. */
static void remove_loose_arrows(trace *t) {
    for (size_t i = 0; i < t->count; ++i) {
        bool ends = false;
        if (t->items[i].flow < 0) continue;
        for (size_t k = 0; k < t->count && !ends; ++k)
            ends = t->items[k].flow == t->items[i].flow && t->items[k].flow_kind == 'f';
        if (!ends) t->items[i].flow = -1;
    }
}

static void begin_event(trace *t, char kind, int process, int thread) {
    cleat_string_add(t->text, t->counts.events++ ? ",\n" : "\n");
    json_add(t->text, json_open(NULL, '{'), json_text("ph", (char[]){kind, 0}), json_count("pid", process),
             json_count("tid", thread));
}

/* Microseconds. Viewers truncate to whole nanoseconds, some in floating point: the fourth digit keeps the
 * nanosecond. */
static void add_time(trace *t, int64_t time) {
    int64_t ns = time - t->origin;
    cleat_string_add(t->text, ",\"ts\":%lld.%03lld2", (long long)(ns / 1000), (long long)(ns % 1000));
}

/* A nanosecond less, because some viewers take a slice that begins where another ends for an overlap. */
static void add_duration(trace *t, int64_t ns) {
    if (ns <= 0)
        cleat_string_add(t->text, ",\"dur\":0");
    else
        cleat_string_add(t->text, ",\"dur\":%lld.%03lld7", (long long)((ns - 1) / 1000), (long long)((ns - 1) % 1000));
}

static void add_shapes(cleat_string *text, const char *name, cleat_tensor *const *tensors, int n) {
    char shapes[480] = "", one[96];
    size_t used = 0;
    for (int i = 0; i < n; ++i) {
        if (!tensors[i]) continue;
        cleat_tensor_describe(tensors[i], one, sizeof one);
        if (used + strlen(one) + 3 > sizeof shapes) break;
        used += (size_t)snprintf(shapes + used, sizeof shapes - used, "%s%s", used ? ", " : "", one);
    }
    json_add(text, json_clean(name, shapes));
}

static void add_work(cleat_string *text, const cleat_trace_slice *slice) {
    const double seconds = 1e-9 * (double)(slice->end - slice->start);
    const double roof = fmax(slice->compute_roof, slice->memory_roof);
    json_add(text, json_number("FLOP", round(slice->flops)), json_number("bytes", round(slice->bytes)),
             json_number("share of roof", roof > 0 && seconds > 0 ? roof / seconds : NAN));
}

static void add_slice_args(trace *t, const cleat_trace_slice *slice) {
    json_add(t->text, json_open("args", '{'), json_count("step", t->analysis->recording->steps[slice->step].step),
             json_text("part", cleat_step_part_name(slice->part)));
    if (slice->launch) {
        const cleat_node *node = slice->launch->node;
        const cleat_variant *variant = cleat_slice_layout(t->analysis, slice)->variants[node->index];
        json_add(t->text, json_clean("node", node->name), json_text("op", node->op->name),
                 json_text("variant", variant ? variant->name : ""));
        add_shapes(t->text, "in", node->in, node->n_in);
        add_shapes(t->text, "out", node->out, node->n_out);
        add_work(t->text, slice);
    } else {
        json_add(t->text, json_clean("of", slice->command->subject), json_count("bytes", slice->command->bytes));
    }
    json_add(t->text, json_close('}'));
}

static void add_span_args(trace *t, const cleat_span *span) {
    if (span->number >= 0)
        json_add(t->text, json_open("args", '{'),
                 json_count(strcmp(span->name, "step") == 0 ? "step" : "batch", span->number), json_close('}'));
}

static void add_arrow(trace *t, const trace_item *item, const cleat_interval *at, int thread) {
    begin_event(t, item->flow_kind, item->process, thread);
    add_time(t, at->start + (at->end - at->start) / 2);
    json_add(t->text, json_text("name", "batch"), json_text("cat", "batch"), json_count("id", item->flow));
    if (item->flow_kind == 'f') json_add(t->text, json_text("bp", "e"));
    json_add(t->text, json_close('}'));
}

static void add_item_event(trace *t, const trace_item *item, const cleat_interval *at, int thread) {
    begin_event(t, 'X', item->process, thread);
    add_time(t, at->start);
    add_duration(t, at->end - at->start);
    json_add(t->text, json_clean("name", item->slice ? cleat_slice_name(item->slice) : item->span->name));
    if (item->slice)
        add_slice_args(t, item->slice);
    else
        add_span_args(t, item->span);
    json_add(t->text, json_close('}'));
    if (item->flow >= 0) add_arrow(t, item, at, thread);
}

static void add_metadata(trace *t, int process, int thread, const char *what, cleat_json_value value) {
    begin_event(t, 'M', process, thread);
    json_add(t->text, json_text("name", what), json_open("args", '{'), value, json_close('}'), json_close('}'));
}

static void name_thread(trace *t, int process, int track, int lane) {
    const int thread = thread_of(process, track, lane);
    static const char *const names[DEVICE_TRACKS] = {"compute", "copy in", "copy out"};
    char name[64], number[16] = "";
    if (lane > 0) snprintf(number, sizeof number, " (%d)", lane + 1);
    if (process == HOST && track > 0)
        snprintf(name, sizeof name, "loader thread %d%s", track, number);
    else
        snprintf(name, sizeof name, "%s%s", process == HOST ? "trainer" : names[track], number);
    add_metadata(t, process, thread, "thread_name", json_text("name", name));
    add_metadata(t, process, thread, "thread_sort_index", json_count("sort_index", thread));
}

static cleat_status write_track(trace *t, int process, int track, cleat_error *error) {
    cleat_lanes lanes = {0};
    size_t count = 0;
    cleat_interval *intervals = cleat_alloc(t->count, sizeof *intervals);
    if (!intervals) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a trace of %zu slices", t->count);
    for (size_t i = 0; i < t->count; ++i)
        if (t->items[i].process == process && t->items[i].track == track)
            intervals[count++] = (cleat_interval){.start = t->items[i].start, .end = t->items[i].end, .index = i};
    cleat_status status =
        cleat_lanes_assign(intervals, count, (int64_t)t->analysis->recording->resolution, &lanes, error);
    for (int lane = 0; lane < lanes.count && !status; ++lane) name_thread(t, process, track, lane);
    for (size_t i = 0; i < count && !status; ++i) {
        if (t->counts.events + 2 > CLEAT_TRACE_EVENTS)
            ++t->counts.cut;
        else
            add_item_event(t, &t->items[intervals[i].index], &intervals[i],
                           thread_of(process, track, intervals[i].lane));
    }
    t->counts.clamped += lanes.clamped;
    cleat_free(intervals);
    return status;
}

static int host_tracks(const trace *t) {
    int tracks = 0;
    for (size_t i = 0; i < t->count; ++i)
        if (t->items[i].process == HOST && t->items[i].track >= tracks) tracks = t->items[i].track + 1;
    return tracks;
}

static bool has_room(const trace *t) {
    return t->counts.events < CLEAT_TRACE_EVENTS;
}

static void write_memory(trace *t) {
    static const char *const names[CLEAT_PEAK_PARTS_COUNT] = {"stored", "recomputed", "gradients", "workspace"};
    for (size_t i = 0; i < t->analysis->n_points && has_room(t); ++i) {
        const cleat_memory_point *point = &t->analysis->points[i];
        begin_event(t, 'C', DEVICE, thread_of(DEVICE, COMPUTE, 0));
        add_time(t, point->start);
        json_add(t->text, json_text("name", "planned live bytes"), json_open("args", '{'));
        for (int p = 0; p < CLEAT_PEAK_PARTS_COUNT; ++p) json_add(t->text, json_count(names[p], point->parts[p]));
        json_add(t->text, json_close('}'), json_close('}'));
    }
}

/* Commands that the host had enqueued and that were not done when each one began. The queue is in order: they
 * are the following ones, up to the first that was enqueued later. */
static void write_queue_depth(trace *t) {
    const cleat_analysis *analysis = t->analysis;
    size_t next = 0;
    for (size_t i = 0; i < analysis->n_slices && has_room(t); ++i) {
        const cleat_trace_slice *slice = &analysis->slices[i];
        size_t depth = 0;
        if (!cleat_slice_computes(slice)) continue;
        if (next < i) next = i;
        while (next < analysis->n_slices &&
               cleat_recording_host_time(analysis->recording, analysis->slices[next].command->called) <= slice->start)
            ++next;
        for (size_t k = i; k < next; ++k) depth += cleat_slice_computes(&analysis->slices[k]);
        begin_event(t, 'C', DEVICE, thread_of(DEVICE, COMPUTE, 0));
        add_time(t, slice->start);
        json_add(t->text, json_text("name", "commands in the compute queue"), json_open("args", '{'),
                 json_count("commands", depth > 0 ? (int64_t)depth : 1), json_close('}'), json_close('}'));
    }
}

static void write_metadata(trace *t) {
    const cleat_recording *recording = t->analysis->recording;
    const cleat_clock_pair *clocks = recording->clocks;
    double host = clocks[1].host - clocks[0].host, device = 1e-9 * (double)(clocks[1].device - clocks[0].device);
    char steps[48];
    snprintf(steps, sizeof steps, "%lld-%lld", (long long)t->analysis->first_step, (long long)t->analysis->last_step);
    cleat_string_add(t->text, "],\n\"displayTimeUnit\":\"ms\",\n");
    json_add(t->text, json_open("otherData", '{'), json_text("cleat", cleat_version()),
             json_clean("device", recording->session->work->plan->facts.name),
             json_clean("driver", recording->session->work->plan->facts.driver), json_text("steps", steps),
             json_text("clock", clocks[0].source),
             json_number("clock error us", 1e6 * fmax(clocks[0].error, clocks[1].error)),
             json_number("clock drift us", 1e6 * (device - host)),
             json_count("timer resolution ns", (int64_t)recording->resolution),
             json_count("slices clamped", (int64_t)t->counts.clamped), json_count("slices cut", (int64_t)t->counts.cut),
             json_count("commands without times", (int64_t)t->analysis->unknown),
             json_count("spans lost", (int64_t)recording->lost_spans), json_close('}'), json_close('}'));
    cleat_string_add(t->text, "\n");
}

static cleat_status write_events(trace *t, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    add_metadata(t, HOST, thread_of(HOST, 0, 0), "process_name", json_text("name", "host"));
    add_metadata(t, DEVICE, thread_of(DEVICE, 0, 0), "process_name",
                 json_clean("name", t->analysis->recording->session->work->plan->facts.name));
    for (int track = 0; track < DEVICE_TRACKS && !status; ++track) status = write_track(t, DEVICE, track, error);
    for (int track = 0, tracks = host_tracks(t); track < tracks && !status; ++track)
        status = write_track(t, HOST, track, error);
    write_memory(t);
    write_queue_depth(t);
    return status;
}

cleat_status cleat_trace_write(const cleat_analysis *analysis, cleat_string *text, cleat_trace_counts *counts,
                               cleat_error *error) {
    trace t = {.analysis = analysis, .text = text};
    cleat_status status = add_slices(&t, error);
    if (!status) status = add_spans(&t, error);
    if (!status) {
        remove_loose_arrows(&t);
        t.origin = INT64_MAX;
        for (size_t i = 0; i < t.count; ++i)
            if (t.items[i].start < t.origin) t.origin = t.items[i].start;
        cleat_string_add(text, "{\"traceEvents\":[");
        status = write_events(&t, error);
    }
    if (!status) {
        write_metadata(&t);
        *counts = t.counts;
    }
    cleat_free(t.items);
    return status;
}

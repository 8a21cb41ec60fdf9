/* The analysis of a recording: slices with their work, and the rows of the table. */
#include "trace/analysis.h"

#include "core/memory.h"
#include "fit/estimate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t cleat_recording_device_time(const cleat_recording *recording, uint64_t device) {
    return (int64_t)(device - recording->clocks[0].device);
}

/* A line through both comparisons: the clocks of host and device may run at slightly different speeds. */
int64_t cleat_recording_host_time(const cleat_recording *recording, double host) {
    const cleat_clock_pair *a = &recording->clocks[0], *b = &recording->clocks[1];
    double per_second = b->host > a->host ? (double)(b->device - a->device) / (b->host - a->host) : 1e9;
    return llround((host - a->host) * per_second);
}

const char *cleat_step_part_name(cleat_step_part part) {
    static const char *const names[CLEAT_PARTS] = {"forward", "backward", "recompute", "update", "copies", "idle"};
    return names[part];
}

const cleat_layout *cleat_slice_layout(const cleat_analysis *analysis, const cleat_trace_slice *slice) {
    return &analysis->recording->session->work->plan->layouts[slice->command->graph];
}

const char *cleat_slice_name(const cleat_trace_slice *slice) {
    switch (slice->command->kind) {
    case CLEAT_COMMAND_KERNEL:
        return slice->launch->kernel;
    case CLEAT_COMMAND_SGEMM:
        return "CLBlast sgemm";
    case CLEAT_COMMAND_COPY:
        return "copy of inputs";
    case CLEAT_COMMAND_UPLOAD:
        return "upload";
    case CLEAT_COMMAND_READ:
        return "read";
    default:
        return "write";
    }
}

static cleat_step_part part_of(const cleat_workload *work, const cleat_command *command, const cleat_launch *launch) {
    if (!launch) return CLEAT_PART_COPIES;
    if (command->graph == work->update.index || (work->refresh.graph && command->graph == work->refresh.index))
        return CLEAT_PART_UPDATE;
    if (launch->node->recomputed) return CLEAT_PART_RECOMPUTE;
    const cleat_graph *graph = launch->node->graph;
    bool backward = graph->gradients && (size_t)launch->node->index >= graph->forward_nodes;
    return backward ? CLEAT_PART_BACKWARD : CLEAT_PART_FORWARD;
}

static cleat_status make_slices(cleat_analysis *analysis, cleat_error *error) {
    const cleat_recording *recording = analysis->recording;
    size_t count = 0;
    for (size_t s = 0; s < recording->n_steps; ++s)
        if (recording->steps[s].active) count += recording->steps[s].last_command - recording->steps[s].first_command;
    analysis->slices = cleat_alloc(count, sizeof *analysis->slices);
    if (!analysis->slices) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a profile of %zu commands", count);
    for (size_t s = 0; s < recording->n_steps; ++s) {
        const cleat_traced_step *step = &recording->steps[s];
        if (!step->active) continue;
        if (analysis->active++ == 0) analysis->first_step = step->step;
        analysis->last_step = step->step;
        for (size_t c = step->first_command; c < step->last_command; ++c) {
            const cleat_command *command = &recording->recorder->commands[c];
            bool runs = command->kind == CLEAT_COMMAND_KERNEL || command->kind == CLEAT_COMMAND_SGEMM;
            if (command->started == 0) {
                ++analysis->unknown;
                continue;
            }
            analysis->slices[analysis->n_slices++] =
                (cleat_trace_slice){.command = command,
                                    .launch = runs ? command->subject : NULL,
                                    .part = part_of(recording->session->work, command, runs ? command->subject : NULL),
                                    .step = s,
                                    .start = cleat_recording_device_time(recording, command->started),
                                    .end = cleat_recording_device_time(recording, command->ended)};
        }
    }
    if (analysis->n_slices > 0) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_DEVICE,
                      "the driver reported no times for the %zu commands of the profiled steps", analysis->unknown);
}

static double seconds_of(const cleat_trace_slice *slice) {
    return 1e-9 * (double)(slice->end - slice->start);
}

/* The slices [first, last) are the launches of one run of a node. */
static cleat_status divide_work(cleat_analysis *analysis, size_t first, size_t last, cleat_error *error) {
    const cleat_recording *recording = analysis->recording;
    const cleat_rates unit = {.flops = 1, .bytes = 1}, *rates = recording->rates ? recording->rates : &unit;
    const cleat_trace_slice *head = &analysis->slices[first];
    cleat_node_estimate estimate;
    double all = 0;
    cleat_status status = cleat_estimate_node(recording->session->work->plan, head->command->graph,
                                              (size_t)head->launch->node->index, rates, &estimate, error);
    if (status) return status;
    for (size_t i = first; i < last; ++i) all += seconds_of(&analysis->slices[i]);
    for (size_t i = first; i < last; ++i) {
        cleat_trace_slice *slice = &analysis->slices[i];
        double share = all > 0 ? seconds_of(slice) / all : 1 / (double)(last - first);
        slice->flops = share * estimate.cost.flops;
        slice->bytes = share * estimate.cost.bytes;
        if (!recording->rates) continue;
        slice->compute_roof = slice->flops / estimate.flops_rate;
        slice->memory_roof = slice->bytes / recording->rates->bytes;
    }
    return CLEAT_OK;
}

/* The launches of a node follow one another in memory and in time. */
static bool continues_node(const cleat_trace_slice *before, const cleat_trace_slice *slice) {
    return before->launch && slice->launch && before->launch + 1 == slice->launch &&
           before->launch->node == slice->launch->node && before->step == slice->step;
}

static cleat_status find_work(cleat_analysis *analysis, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t first = 0, last; first < analysis->n_slices && !status; first = last) {
        last = first + 1;
        if (!analysis->slices[first].launch) continue;
        while (last < analysis->n_slices && continues_node(&analysis->slices[last - 1], &analysis->slices[last]))
            ++last;
        status = divide_work(analysis, first, last, error);
    }
    return status;
}

double cleat_profile_row_saves(const cleat_profile_row *row) {
    return row->roof > 0 ? fmax(0, row->seconds - row->roof) : 0;
}

const char *cleat_profile_row_bound(const cleat_profile_row *row) {
    if (!(row->roof > 0)) return NULL;
    if (row->roof < row->launch_seconds) return "launch";
    return row->compute_roof > row->memory_roof ? "compute" : "memory";
}

static cleat_status add_row(cleat_profile_rows *table, const char *name, const cleat_trace_slice *slice,
                            double launch_seconds, cleat_error *error) {
    cleat_profile_row *row = NULL;
    for (size_t i = 0; i < table->count && !row; ++i)
        if (strcmp(table->rows[i].name, name) == 0) row = &table->rows[i];
    if (!row) {
        cleat_status status = cleat_grow(&table->rows, table->count, &table->capacity, error);
        if (status) return status;
        row = &table->rows[table->count++];
        *row = (cleat_profile_row){0};
        snprintf(row->name, sizeof row->name, "%s", name);
    }
    ++row->calls;
    row->seconds += seconds_of(slice);
    row->flops += slice->flops;
    row->bytes += slice->bytes;
    row->compute_roof += slice->compute_roof;
    row->memory_roof += slice->memory_roof;
    row->roof += fmax(slice->compute_roof, slice->memory_roof);
    row->launch_seconds += launch_seconds;
    return CLEAT_OK;
}

/* The layer of a node: its name up to the slash; nodes outside of layers are grouped by what they belong to. */
static void layer_of(const cleat_trace_slice *slice, char *name, size_t size) {
    const char *node = slice->launch->node->name, *slash = strrchr(node, '/');
    if (slash)
        snprintf(name, size, "%.*s", (int)(slash - node), node);
    else
        snprintf(name, size, "(%s)", cleat_step_part_name(slice->part));
}

static int by_saves(const void *a, const void *b) {
    double x = cleat_profile_row_saves(a), y = cleat_profile_row_saves(b);
    if (x == y) {
        x = ((const cleat_profile_row *)a)->seconds;
        y = ((const cleat_profile_row *)b)->seconds;
    }
    return (x < y) - (x > y);
}

static int by_seconds(const void *a, const void *b) {
    double x = ((const cleat_profile_row *)a)->seconds, y = ((const cleat_profile_row *)b)->seconds;
    return (x < y) - (x > y);
}

static void sort_rows(cleat_profile_rows *table, int (*compare)(const void *, const void *)) {
    if (table->count > 1) qsort(table->rows, table->count, sizeof *table->rows, compare);
}

static cleat_status make_rows(cleat_analysis *analysis, cleat_error *error) {
    const double launch = analysis->recording->rates ? analysis->recording->rates->launch_seconds : 0;
    char layer[CLEAT_NAME + 32];
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < analysis->n_slices && !status; ++i) {
        const cleat_trace_slice *slice = &analysis->slices[i];
        if (!cleat_slice_computes(slice)) continue;
        analysis->parts[slice->part] += seconds_of(slice);
        if (!slice->launch) continue;
        layer_of(slice, layer, sizeof layer);
        status = add_row(&analysis->kernels, cleat_slice_name(slice), slice, launch, error);
        if (!status) status = add_row(&analysis->ops, slice->launch->node->op->name, slice, launch, error);
        if (!status) status = add_row(&analysis->layers, layer, slice, launch, error);
    }
    sort_rows(&analysis->kernels, by_saves);
    sort_rows(&analysis->ops, by_seconds);
    sort_rows(&analysis->layers, by_seconds);
    return status;
}

cleat_status cleat_analysis_create(const cleat_recording *recording, cleat_analysis *analysis, cleat_error *error) {
    cleat_analysis made = {.recording = recording};
    cleat_status status = make_slices(&made, error);
    if (!status) status = find_work(&made, error);
    if (!status) status = make_rows(&made, error);
    if (!status) status = cleat_analysis_find_memory(&made, error);
    if (status) {
        cleat_analysis_clear(&made);
        return status;
    }
    cleat_analysis_find_idle(&made);
    *analysis = made;
    return CLEAT_OK;
}

void cleat_analysis_clear(cleat_analysis *analysis) {
    cleat_free(analysis->slices);
    cleat_free(analysis->kernels.rows);
    cleat_free(analysis->ops.rows);
    cleat_free(analysis->layers.rows);
    cleat_free(analysis->points);
    *analysis = (cleat_analysis){0};
}

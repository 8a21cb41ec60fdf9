/* The tables of a profile as CSV and JSON. */
#include "trace/analysis.h"

#include "core/json.h"

#include <math.h>

enum { MAX_POINTS = 400 };

static void add_csv_number(cleat_string *text, double value) {
    cleat_string_add(text, ",");
    if (isfinite(value)) cleat_json_add_number(text, value);
}

static double rate(double work, double seconds) {
    return work > 0 && seconds > 0 ? 1e-9 * work / seconds : NAN;
}

static double roof_share(const cleat_profile_row *row) {
    return row->roof > 0 && row->seconds > 0 ? row->roof / row->seconds : NAN;
}

static double saves(const cleat_analysis *analysis, const cleat_profile_row *row) {
    return row->roof > 0 ? cleat_per_step(analysis, cleat_profile_row_saves(row)) : NAN;
}

static void add_csv_rows(const cleat_analysis *analysis, const cleat_profile_rows *table, const char *kind,
                         cleat_string *text) {
    for (size_t i = 0; i < table->count; ++i) {
        const cleat_profile_row *row = &table->rows[i];
        const char *bound = cleat_profile_row_bound(row);
        cleat_string_add(text, "%s,", kind);
        cleat_string_add_field(text, row->name);
        add_csv_number(text, cleat_per_step(analysis, (double)row->calls));
        add_csv_number(text, cleat_per_step(analysis, row->seconds));
        add_csv_number(text, cleat_share(analysis, row->seconds));
        add_csv_number(text, rate(row->flops, row->seconds));
        add_csv_number(text, rate(row->bytes, row->seconds));
        cleat_string_add(text, ",%s", bound ? bound : "");
        add_csv_number(text, roof_share(row));
        add_csv_number(text, saves(analysis, row));
        cleat_string_add(text, "\n");
    }
}

void cleat_table_csv(const cleat_analysis *analysis, cleat_string *text) {
    cleat_string_add(text, "table,name,calls,seconds,share,gflops,gbytes,bound,roof_share,saves\n");
    add_csv_rows(analysis, &analysis->kernels, "kernel", text);
    add_csv_rows(analysis, &analysis->ops, "op", text);
    add_csv_rows(analysis, &analysis->layers, "layer", text);
    for (int p = 0; p < CLEAT_PARTS; ++p) {
        cleat_string_add(text, "phase,%s,", cleat_step_part_name((cleat_step_part)p));
        add_csv_number(text, cleat_per_step(analysis, analysis->parts[p]));
        add_csv_number(text, cleat_share(analysis, analysis->parts[p]));
        cleat_string_add(text, ",,,,,\n");
    }
}

static void add_json_row(const cleat_analysis *analysis, const char *kind, const cleat_profile_row *row,
                         cleat_string *text) {
    json_add(text, json_open(NULL, '{'), json_clean(kind, row->name),
             json_number("calls", cleat_per_step(analysis, (double)row->calls)),
             json_number("seconds", cleat_per_step(analysis, row->seconds)),
             json_number("share", cleat_share(analysis, row->seconds)),
             json_number("gflops", rate(row->flops, row->seconds)),
             json_number("gbytes", rate(row->bytes, row->seconds)), json_text("bound", cleat_profile_row_bound(row)),
             json_number("roof_share", roof_share(row)), json_number("saves", saves(analysis, row)), json_close('}'));
}

static void add_json_rows(const cleat_analysis *analysis, const char *name, const char *kind,
                          const cleat_profile_rows *table, cleat_string *text) {
    cleat_string_add(text, ",\n");
    json_add(text, json_open(name, '['));
    for (size_t i = 0; i < table->count; ++i) {
        cleat_string_add(text, i ? ",\n  " : "\n  ");
        add_json_row(analysis, kind, &table->rows[i], text);
    }
    json_add(text, json_close(']'));
}

static void add_json_head(const cleat_analysis *analysis, cleat_string *text) {
    const cleat_recording *recording = analysis->recording;
    const cleat_rates *rates = recording->rates;
    json_add(text, json_open(NULL, '{'), json_count("step", analysis->first_step),
             json_count("steps", (int64_t)analysis->active),
             json_clean("device", recording->session->work->plan->facts.name),
             json_text("precision", cleat_dtype_name(recording->session->work->storage)),
             json_number("profiled_step_seconds", cleat_per_step(analysis, analysis->seconds)),
             json_number("unprofiled_step_seconds", recording->unprofiled_seconds));
    cleat_string_add(text, ",\n");
    if (rates)
        json_add(text, json_open("rates", '{'), json_number("flops", rates->flops),
                 json_number("matrix_flops", rates->matrix_flops > 0 ? rates->matrix_flops : NAN),
                 json_number("bytes", rates->bytes), json_number("launch_seconds", rates->launch_seconds),
                 json_clean("source", rates->source), json_close('}'));
    else
        json_add(text, json_text("rates", NULL));
}

static void add_json_phases(const cleat_analysis *analysis, cleat_string *text) {
    cleat_string_add(text, ",\n");
    json_add(text, json_open("phases", '{'));
    for (int p = 0; p < CLEAT_PARTS; ++p)
        json_add(text,
                 json_number(cleat_step_part_name((cleat_step_part)p), cleat_per_step(analysis, analysis->parts[p])));
    json_add(text, json_close('}'));
}

static void add_json_idle(const cleat_analysis *analysis, cleat_string *text) {
    cleat_string_add(text, ",\n");
    json_add(text, json_open("idle", '['));
    for (size_t g = 0; g < analysis->n_gaps; ++g) {
        const cleat_gap *gap = &analysis->gaps[g];
        json_add(text, json_open(NULL, '{'), json_number("start", 1e-9 * (double)(gap->start - analysis->begin)),
                 json_number("seconds", 1e-9 * (double)(gap->end - gap->start)), json_text("host", gap->host),
                 json_close('}'));
    }
    json_add(text, json_close(']'));
}

static int64_t live(const cleat_memory_point *point) {
    int64_t sum = 0;
    for (int p = 0; p < CLEAT_PEAK_PARTS_COUNT; ++p) sum += point->parts[p];
    return sum;
}

/* The points of the first active step; if there are too many, the one with the most bytes represents its
 * neighbours. */
static void add_timeline(const cleat_analysis *analysis, cleat_string *text) {
    size_t count = 0;
    while (count < analysis->n_points && analysis->points[count].step == analysis->points[0].step) ++count;
    const size_t merged = (count + MAX_POINTS - 1) / MAX_POINTS;
    for (size_t i = 0; i < count; i += merged) {
        const cleat_memory_point *most = &analysis->points[i];
        for (size_t k = i + 1; k < i + merged && k < count; ++k)
            if (live(&analysis->points[k]) > live(most)) most = &analysis->points[k];
        int64_t workspace = most->parts[CLEAT_PEAK_WORKSPACE];
        json_add(text, json_open(NULL, '['), json_number(NULL, 1e-9 * (double)(most->start - analysis->begin)),
                 json_count(NULL, live(most) - workspace), json_count(NULL, workspace), json_close(']'));
    }
}

static void add_json_memory(const cleat_analysis *analysis, cleat_string *text) {
    const cleat_plan *plan = analysis->recording->session->work->plan;
    cleat_string_add(text, ",\n");
    json_add(text, json_open("memory", '{'), json_count("planned", cleat_plan_bytes(plan)),
             json_count("forward_peak", analysis->memory.forward_peak),
             json_number("evaluation_peak", analysis->evaluation_peak > 0 ? (double)analysis->evaluation_peak : NAN),
             json_count("step_peak", analysis->memory.training_peak), json_open("persistent", '{'));
    for (int c = 0; c < CLEAT_BYTES_ARENA; ++c)
        json_add(text, json_count(cleat_category_name((cleat_category)c),
                                  cleat_plan_category_bytes(plan, (cleat_category)c)));
    cleat_string_add(text, "},\n  ");
    json_add(text, json_open("timeline", '['));
    add_timeline(analysis, text);
    json_add(text, json_close(']'), json_close('}'));
}

void cleat_table_json(const cleat_analysis *analysis, cleat_string *text) {
    text->spaced = true;
    add_json_head(analysis, text);
    add_json_phases(analysis, text);
    add_json_rows(analysis, "kernels", "kernel", &analysis->kernels, text);
    add_json_rows(analysis, "ops", "op", &analysis->ops, text);
    add_json_rows(analysis, "layers", "layer", &analysis->layers, text);
    add_json_idle(analysis, text);
    add_json_memory(analysis, text);
    cleat_string_add(text, "}\n");
}

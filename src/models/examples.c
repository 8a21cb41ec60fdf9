/* Examples of an evaluation as a JSON document. */
#include "models/examples.h"
#include "core/json.h"

#include "core/memory.h"
#include "models/targets.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME_CHARACTERS = 120 };

void cleat_examples_add_string(cleat_string *json, const char *name, const char *text, size_t most) {
    cleat_string cut = {0};
    size_t end = 0;
    if (!text) {
        json_add(json, json_text(name, NULL));
        return;
    }
    for (size_t characters = 0; characters < most && text[end]; ++characters) {
        const size_t size = cleat_utf8_size(text + end);
        end += size ? size : 1;
    }
    cleat_string_add_bytes(&cut, text, end);
    if (text[end]) cleat_string_add(&cut, "\xE2\x80\xA6"); /* an ellipsis */
    json->failed |= cut.failed;
    json_add(json, json_clean(name, cut.data ? cut.data : ""));
    cleat_string_free(&cut);
}

void cleat_examples_begin(cleat_string *json, const char *kind, const cleat_prediction *prediction) {
    json_add(json, json_open(NULL, '{'), json_text("kind", kind));
    cleat_examples_add_string(json, "name", cleat_dataset_id(prediction->dataset, prediction->sample), NAME_CHARACTERS);
}

bool cleat_model_has_examples(const cleat_model *model) {
    return model->type->examples != NULL;
}

static const cleat_metric_info *metric_info(const cleat_model *model, const char *name) {
    const cleat_metric_info *info = cleat_settings_metrics(model->type, model->settings);
    while (info->name && name && strcmp(info->name, name) != 0) ++info;
    return info->name && name ? info : NULL;
}

/* The value of `metric` in the baseline's metrics, if it is one that a run may name. */
static bool select_metric(const cleat_model *model, const cleat_metrics *metrics, const char *metric,
                          cleat_baseline *baseline) {
    const cleat_metric_info *info = metric_info(model, metric);
    const double value = info ? cleat_metrics_get(metrics, metric) : NAN;
    if (!isfinite(value)) return false;
    snprintf(baseline->metric, sizeof baseline->metric, "%s", metric);
    baseline->value = value;
    baseline->ascends = info->ascends;
    return true;
}

typedef cleat_status (*predictor)(const cleat_model *model, const cleat_evaluation *evaluated, double *metric_state,
                                  char *text, cleat_error *error);

/* Whether a baseline is in the run's metric and the other is not, or is better in the same metric. */
static bool is_stronger(const cleat_baseline *one, const cleat_baseline *other, const char *metric) {
    if (!one->known || !other->known) return one->known;
    if (strcmp(one->metric, other->metric) != 0) return metric && strcmp(one->metric, metric) == 0;
    return one->ascends ? one->value > other->value : one->value < other->value;
}

/* Replaces *best by the baseline of `predict` if that is stronger. */
static cleat_status try_baseline(const cleat_model *model, const cleat_evaluation *evaluated, predictor predict,
                                 cleat_baseline *best, cleat_error *error) {
    cleat_baseline made = {.known = false};
    cleat_metrics metrics = {0};
    double *state = cleat_alloc(cleat_model_metric_state_size(model), sizeof *state);
    if (!state) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the metrics of a baseline");
    cleat_status status = predict(model, evaluated, state, made.text, error);
    if (!status && made.text[0]) {
        cleat_model_metric_compute(model, state, &metrics);
        made.known =
            select_metric(model, &metrics, evaluated->metric, &made) ||
            select_metric(model, &metrics, cleat_settings_metrics(model->type, model->settings)[0].name, &made);
    }
    cleat_free(state);
    if (!status && is_stronger(&made, best, evaluated->metric)) *best = made;
    return status;
}

cleat_status cleat_model_baseline(const cleat_model *model, const cleat_evaluation *evaluated, cleat_baseline *baseline,
                                  cleat_error *error) {
    const cleat_model_examples *of = model->type->examples;
    cleat_baseline made = {.known = false};
    cleat_status status = CLEAT_OK;
    if (of && of->baseline) status = try_baseline(model, evaluated, of->baseline, &made, error);
    if (!status && of && of->fitted && !cleat_model_has_targets(model))
        status = try_baseline(model, evaluated, of->fitted, &made, error);
    if (!status) *baseline = made;
    return status;
}

static void add_baseline(const cleat_baseline *baseline, cleat_string *json) {
    if (!baseline->known) {
        json_add(json, json_text("baseline", NULL));
        return;
    }
    json_add(json, json_open("baseline", '{'));
    cleat_examples_add_string(json, "text", baseline->text, CLEAT_BASELINE_TEXT);
    json_add(json, json_text("metric", baseline->metric), json_digits("value", baseline->value, 9),
             json_bool("ascends", baseline->ascends), json_close('}'));
}

/* Removes an example that would make the document too large; a later, smaller one may still fit. */
static cleat_status add_examples(const cleat_model *model, const cleat_evaluation *evaluated, cleat_string *json,
                                 cleat_error *error) {
    cleat_status status = CLEAT_OK;
    size_t shown = 0;
    for (size_t i = 0; i < evaluated->n_predictions && !status; ++i) {
        const size_t before = json->size;
        cleat_string_add(json, shown ? ",\n" : "\n");
        status = model->type->examples->add(model, evaluated, i, json, error);
        if (json->failed || status) break;
        json->data[--json->size] = 0; /* the closing brace, after one more member */
        json_add(json, json_text("choice", i < evaluated->n_worst ? "worst" : "typical"), json_close('}'));
        if (json->size > CLEAT_EXAMPLES_BYTES) {
            json->size = before;
            json->data[before] = 0;
        } else {
            ++shown;
        }
    }
    if (!status && shown < evaluated->n_predictions)
        cleat_log(CLEAT_LOG_DEBUG, "examples: %zu of %zu samples are left out, because the file would exceed 200 KB",
                  evaluated->n_predictions - shown, evaluated->n_predictions);
    return status;
}

static cleat_json_value place(const char *name, int64_t value) {
    return value < 0 ? json_text(name, NULL) : json_count(name, value);
}

cleat_status cleat_model_examples_json(const cleat_model *model, const cleat_evaluation *evaluated,
                                       const cleat_baseline *baseline, cleat_string *json, cleat_error *error) {
    cleat_class_table table = {0};
    json_add(json, json_open(NULL, '{'), place("step", evaluated->step), place("epoch", evaluated->epoch));
    cleat_examples_add_string(json, "split", evaluated->split, NAME_CHARACTERS);
    cleat_string_add(json, ",\n");
    add_baseline(baseline, json);
    cleat_string_add(json, ",\n");
    cleat_status status = cleat_model_class_table(model, evaluated->metric_state, &table, error);
    if (!status) cleat_class_table_add_json(&table, CLEAT_CLASSES_SHOWN, json);
    cleat_class_table_free(&table);
    cleat_string_add(json, ",\n\"examples\":[");
    if (!status) status = add_examples(model, evaluated, json, error);
    cleat_string_add(json, "]}\n");
    if (!status && json->failed)
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the examples of an evaluation");
    return status;
}

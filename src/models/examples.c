/* Examples of an evaluation as a JSON document. */
#include "models/examples.h"

#include "core/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME_CHARACTERS = 120 };

void cleat_examples_add_string(cleat_string *json, const char *text, size_t most) {
    cleat_string cut = {0};
    size_t end = 0;
    if (!text) {
        cleat_string_add(json, "null");
        return;
    }
    for (size_t characters = 0; characters < most && text[end]; ++characters) {
        const size_t size = cleat_utf8_size(text + end);
        end += size ? size : 1;
    }
    cleat_string_add_bytes(&cut, text, end);
    if (text[end]) cleat_string_add(&cut, "\xE2\x80\xA6"); /* an ellipsis */
    json->failed |= cut.failed;
    cleat_json_add_clean(json, cut.data ? cut.data : "");
    cleat_string_free(&cut);
}

void cleat_examples_add_number(cleat_string *json, double value, int digits) {
    char number[32] = "null";
    if (isfinite(value)) cleat_number_print_digits(value, digits, number);
    cleat_string_add(json, "%s", number);
}

void cleat_examples_begin(cleat_string *json, const char *kind, const cleat_prediction *prediction) {
    cleat_string_add(json, "{\"kind\":\"%s\",\"name\":", kind);
    cleat_examples_add_string(json, cleat_dataset_id(prediction->dataset, prediction->sample), NAME_CHARACTERS);
}

bool cleat_model_has_examples(const cleat_model *model) {
    return model->type->examples != NULL;
}

static const cleat_metric_info *metric_info(const cleat_model *model, const char *name) {
    const cleat_metric_info *info = model->type->metrics;
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

cleat_status cleat_model_baseline(const cleat_model *model, const cleat_evaluation *evaluated, cleat_baseline *baseline,
                                  cleat_error *error) {
    cleat_baseline made = {.known = false};
    cleat_metrics metrics = {0};
    cleat_status status = CLEAT_OK;
    if (model->type->examples && model->type->examples->baseline) {
        double *state = cleat_alloc(cleat_model_metric_state_size(model), sizeof *state);
        if (!state) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the metrics of a baseline");
        status = model->type->examples->baseline(model, evaluated, state, made.text, error);
        if (!status) cleat_model_metric_compute(model, state, &metrics);
        cleat_free(state);
        if (status) return status;
        made.known = select_metric(model, &metrics, evaluated->metric, &made) ||
                     select_metric(model, &metrics, model->type->metrics[0].name, &made);
    }
    *baseline = made;
    return CLEAT_OK;
}

static void add_baseline(const cleat_baseline *baseline, cleat_string *json) {
    if (!baseline->known) {
        cleat_string_add(json, "null");
        return;
    }
    cleat_string_add(json, "{\"text\":");
    cleat_examples_add_string(json, baseline->text, CLEAT_BASELINE_TEXT);
    cleat_string_add(json, ",\"metric\":\"%s\",\"value\":", baseline->metric);
    cleat_examples_add_number(json, baseline->value, 9);
    cleat_string_add(json, ",\"ascends\":%s}", baseline->ascends ? "true" : "false");
}

static cleat_status add_confusion(const cleat_model *model, const double *metric_state, cleat_string *json,
                                  cleat_error *error) {
    cleat_confusion *confusion = cleat_alloc(1, sizeof *confusion);
    if (!confusion) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a confusion matrix");
    if (model->type->examples->confusion) model->type->examples->confusion(model, metric_state, confusion);
    const size_t labels = confusion->labels;
    cleat_string_add(json, labels ? "{\"labels\":[" : "null");
    for (size_t i = 0; i < labels; ++i) {
        cleat_string_add(json, "%s", i ? "," : "");
        cleat_examples_add_string(json, confusion->names[i], NAME_CHARACTERS);
    }
    cleat_string_add(json, labels ? "],\"counts\":[" : "");
    for (size_t i = 0; i < labels * labels; ++i)
        cleat_string_add(json, "%s%.0f%s",
                         i % labels ? ","
                         : i        ? ",["
                                    : "[",
                         confusion->counts[i], i % labels == labels - 1 ? "]" : "");
    cleat_string_add(json, labels ? "]}" : "");
    cleat_free(confusion);
    return CLEAT_OK;
}

/* An example that would make the document too large is taken back; a later, smaller one may still fit. */
static cleat_status add_examples(const cleat_model *model, const cleat_evaluation *evaluated, cleat_string *json,
                                 cleat_error *error) {
    cleat_status status = CLEAT_OK;
    size_t shown = 0;
    for (size_t i = 0; i < evaluated->n_predictions && !status; ++i) {
        const size_t before = json->size;
        cleat_string_add(json, shown ? ",\n" : "\n");
        status = model->type->examples->add(model, evaluated, i, json, error);
        if (json->failed || status) break;
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

static void add_place(const char *key, int64_t value, cleat_string *json) {
    if (value < 0)
        cleat_string_add(json, "\"%s\":null,", key);
    else
        cleat_string_add(json, "\"%s\":%lld,", key, (long long)value);
}

cleat_status cleat_model_examples_json(const cleat_model *model, const cleat_evaluation *evaluated,
                                       const cleat_baseline *baseline, cleat_string *json, cleat_error *error) {
    cleat_string_add(json, "{");
    add_place("step", evaluated->step, json);
    add_place("epoch", evaluated->epoch, json);
    cleat_string_add(json, "\"split\":");
    cleat_examples_add_string(json, evaluated->split, NAME_CHARACTERS);
    cleat_string_add(json, ",\n\"baseline\":");
    add_baseline(baseline, json);
    cleat_string_add(json, ",\n\"confusion\":");
    cleat_status status = add_confusion(model, evaluated->metric_state, json, error);
    cleat_string_add(json, ",\n\"examples\":[");
    if (!status) status = add_examples(model, evaluated, json, error);
    cleat_string_add(json, "]}\n");
    if (!status && json->failed)
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the examples of an evaluation");
    return status;
}

/* Several labels or numbers for each sample: loss, metrics, thresholds, predictions. */
#include "models/targets.h"

#include "cleat/ops.h"
#include "core/files.h"
#include "core/json.h"
#include "core/memory.h"
#include "graph/graph.h"
#include "models/text_metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_TARGETS = 8, SHOWN_LABELS = 12 }; /* with metrics of their own */
enum { TEXT_CHARACTERS = 400 };                /* of a text that is shown */

static const cleat_metric_info label_metrics[] = {
    {"macro_f1", true}, {"micro_f1", true}, {"subset_accuracy", true}, {NULL, false}};
static const cleat_metric_info number_metrics[] = {{"mse", false},    {"mae", false},     {"r2", true},
                                                   {"pearson", true}, {"spearman", true}, {NULL, false}};
enum { MSE, MAE, R2, PEARSON, SPEARMAN, MEASURES };

cleat_problem cleat_settings_problem(const cleat_model_class *type, const void *settings) {
    return type->problem ? type->problem(settings) : CLEAT_SINGLE_LABEL;
}

static cleat_problem problem_of(const cleat_model *model) {
    return cleat_settings_problem(model->type, model->settings);
}

bool cleat_model_has_targets(const cleat_model *model) {
    return problem_of(model) != CLEAT_SINGLE_LABEL;
}

const cleat_metric_info *cleat_settings_metrics(const cleat_model_class *type, const void *settings) {
    const cleat_problem problem = cleat_settings_problem(type, settings);
    return problem == CLEAT_REGRESSION ? number_metrics : problem == CLEAT_MULTI_LABEL ? label_metrics : type->metrics;
}

const char *cleat_problem_term(cleat_problem problem) {
    return problem == CLEAT_REGRESSION    ? "squared_error" /* of standardised numbers */
           : problem == CLEAT_MULTI_LABEL ? "binary_cross_entropy"
                                          : NULL;
}

cleat_status cleat_problem_check(const cleat_target_options *options, const cleat_class_loss_settings *loss,
                                 const char *labels, const cleat_record *record, cleat_error *error) {
    if (options->problem == CLEAT_SINGLE_LABEL) return CLEAT_OK;
    if (loss->label_smoothing > 0)
        return cleat_record_contradict(record, error, "loss.label_smoothing", "model.problem_type",
                                       "only single labels are smoothed: set loss.label_smoothing=0, and run.metric=%s",
                                       options->problem == CLEAT_REGRESSION ? "r2" : "macro_f1");
    if (options->problem == CLEAT_REGRESSION && loss->class_weights != CLEAT_WEIGHTING_NONE)
        return cleat_record_contradict(record, error, "loss.class_weights", "model.problem_type",
                                       "numbers have no classes to weigh: set loss.class_weights=none");
    if (options->problem == CLEAT_REGRESSION && labels && *labels)
        return cleat_record_contradict(record, error, "data.labels", "model.problem_type",
                                       "data.label_column names numbers: remove data.labels (or data.labels=)");
    return CLEAT_OK;
}

/* --- the loss ------------------------------------------------------------------------------------------------- */

void cleat_targets_loss(const cleat_model *model, cleat_graph *graph, cleat_mode mode, cleat_tensor *output,
                        cleat_tensor *target, const cleat_model_inputs *inputs, cleat_model_graph *built) {
    if (mode == CLEAT_MODE_PREDICT || !output) return;
    /* Each target is a row with a weight, 0 if it is unknown. */
    const int64_t shape[3] = {output->shape[0], output->shape[1], 1};
    if (!target) target = cleat_input(graph, "target", CLEAT_F32, 3, shape);
    cleat_tensor *x = cleat_reshape(graph, output, 3, shape);
    cleat_tensor *loss = problem_of(model) == CLEAT_REGRESSION
                             ? cleat_mse_loss(graph, x, target, inputs->sample_weight)
                             : cleat_binary_cross_entropy(graph, x, target, inputs->sample_weight, 1);
    cleat_model_add_loss(graph, mode, inputs, loss, built);
}

void cleat_targets_weight(const cleat_model *model, int64_t count, const cleat_host_batch *batch,
                          const cleat_global_batch *global_batch, float *values) {
    const cleat_targets *targets = batch->dataset ? batch->dataset->targets : NULL;
    const cleat_class_info *known = model->own;
    const double all = targets ? (double)global_batch->items : (double)(global_batch->samples * count);
    for (int64_t b = 0; b < batch->batch; ++b) {
        float *row = values + b * count;
        if (targets && b < batch->count) cleat_targets_get(targets, batch->samples[b], row);
        for (int64_t k = 0; k < count; ++k) {
            const bool counts = b < batch->count && (!targets || !isnan(row[k]));
            const float weight = known && counts && targets && row[k] == 1 ? known[k].weight : 1;
            row[k] = counts ? weight / (float)all : 0;
        }
    }
}

/* --- the state: for each sample 1 if it was evaluated, then prediction and truth of each target -------------- */

static size_t width_of(const cleat_model *model) {
    return 1 + 2 * (size_t)model->sizes.classes;
}

static double training_samples(const cleat_dataset *dataset) {
    double count = 0;
    for (size_t i = 0; i < dataset->targets->rows; ++i) count += cleat_dataset_split(dataset, i) == CLEAT_SPLIT_TRAIN;
    return count;
}

cleat_status cleat_targets_prepare(cleat_model *model, const cleat_dataset *dataset, cleat_weighting weighting,
                                   cleat_mode mode, cleat_error *error) {
    cleat_targets *targets = dataset->targets;
    cleat_class_info *known = model->own;
    const size_t samples = cleat_dataset_count(dataset);
    const double train = training_samples(dataset);
    for (size_t k = 0; k < targets->count; ++k) {
        const double with = (double)targets->all[k].samples;
        const bool weighs = weighting == CLEAT_WEIGHTING_BALANCED && with > 0 && train > with;
        known[k].threshold = targets->all[k].threshold;
        known[k].weight = weighs ? (float)((train - with) / with) : 1;
    }
    model->evaluated = samples;
    if (mode != CLEAT_MODE_TRAIN) return CLEAT_OK;
    /* A training evaluates the validation part only. */
    model->evaluated = 0;
    targets->slots = cleat_alloc(samples, sizeof *targets->slots);
    if (!targets->slots) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu samples", samples);
    for (size_t i = 0; i < samples; ++i)
        targets->slots[i] =
            cleat_dataset_split(dataset, i) == CLEAT_SPLIT_VAL ? (uint32_t)model->evaluated++ : UINT32_MAX;
    return CLEAT_OK;
}

size_t cleat_targets_state_size(const cleat_model *model) {
    return model->evaluated * width_of(model);
}

/* A prediction in the unit of the data: a number, or a probability. */
static double value_of(const cleat_targets *targets, size_t k, float output) {
    if (targets->options.problem == CLEAT_MULTI_LABEL) return 1 / (1 + exp(-(double)output));
    return (double)output * cleat_targets_scale(targets, k) + cleat_targets_shift(targets, k);
}

void cleat_targets_update(const cleat_model *model, const cleat_host_batch *batch, const float *output, double *state) {
    const cleat_targets *targets = batch->dataset->targets;
    float truth[CLEAT_TARGETS_MOST];
    for (int64_t b = 0; b < batch->count; ++b) {
        const size_t slot = targets->slots ? targets->slots[batch->samples[b]] : batch->samples[b];
        double *row = state + slot * width_of(model), sum = 0, count = 0;
        if (slot >= model->evaluated) continue;
        cleat_targets_get(targets, batch->samples[b], truth);
        row[0] = 1;
        for (size_t k = 0; k < targets->count; ++k) {
            row[1 + 2 * k] = value_of(targets, k, output[(size_t)b * targets->count + k]);
            row[2 + 2 * k] = (double)truth[k];
            const double off = fabs(row[1 + 2 * k] - row[2 + 2 * k]);
            if (isnan(off)) continue;
            count += 1; /* the loss */
            sum += problem_of(model) == CLEAT_REGRESSION ? pow(off / cleat_targets_scale(targets, k), 2) : -log1p(-off);
        }
        if (batch->badness) batch->badness[b] = sum / count;
    }
}

typedef struct point {
    double found, truth;
    size_t at;
} point;

/* The evaluated samples with a known target k; returns their number. */
static size_t points_of(const cleat_model *model, const double *state, size_t k, point *points) {
    size_t count = 0;
    for (size_t s = 0; s < model->evaluated; ++s) {
        const double *row = state + s * width_of(model);
        if (row[0] > 0 && !isnan(row[2 + 2 * k])) {
            points[count] = (point){.found = row[1 + 2 * k], .truth = row[2 + 2 * k], .at = count};
            ++count;
        }
    }
    return count;
}

static int by_found(const void *a, const void *b) {
    const double first = ((const point *)a)->found, second = ((const point *)b)->found;
    if (isnan(first) || isnan(second)) return isnan(first) - isnan(second);
    return (first > second) - (first < second);
}

/* --- labels --------------------------------------------------------------------------------------------------- */

/* Halfway between two probabilities; of equal F1 the highest threshold; 0.5 if no sample has the label. */
static double best_threshold(point *points, size_t count) {
    double positives = 0, right = 0, best = 0, threshold = 0.5;
    for (size_t i = 0; i < count; ++i) positives += points[i].truth;
    qsort(points, count, sizeof *points, by_found);
    for (size_t i = count; i-- > 0;) {
        const double below = i > 0 ? points[i - 1].found : 0;
        right += points[i].truth;
        const double f1 = 2 * right / (positives + (double)(count - i));
        if (below == points[i].found || !(f1 > best)) continue;
        best = f1;
        threshold = (below + points[i].found) / 2;
    }
    return threshold;
}

cleat_status cleat_targets_choose(cleat_model *model, const double *state, const cleat_dataset *dataset,
                                  cleat_error *error) {
    cleat_class_info *known = model->own;
    if (problem_of(model) != CLEAT_MULTI_LABEL || !dataset->targets) return CLEAT_OK;
    point *points = cleat_alloc(model->evaluated, sizeof *points);
    if (!points) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu predictions", model->evaluated);
    for (size_t k = 0; k < dataset->targets->count; ++k)
        known[k].threshold = dataset->targets->all[k].threshold =
            best_threshold(points, points_of(model, state, k, points));
    cleat_free(points);
    return CLEAT_OK;
}

/* counts [n + 1]: of each label, and of all */
static void compute_labels(const cleat_model *model, const double *state, cleat_tag_counts *counts,
                           cleat_metrics *found, cleat_class_table *table) {
    const size_t n = (size_t)model->sizes.classes;
    const cleat_class_info *known = model->own;
    double samples = 0, whole = 0;
    char name[48];
    for (size_t s = 0; s < model->evaluated; ++s) {
        const double *row = state + s * width_of(model);
        bool right = row[0] > 0;
        samples += row[0];
        for (size_t i = 0; i < 2 * n && row[0] > 0; ++i) {
            const size_t k = i / 2, to = i % 2 ? n : k;
            const bool has = row[2 + 2 * k] > 0, said = row[1 + 2 * k] >= known[k].threshold;
            if (isnan(row[2 + 2 * k])) continue;
            counts[to].target += has;
            counts[to].predicted += said;
            counts[to].right += has && said;
            right = right && has == said;
        }
        whole += right;
    }
    cleat_metrics_add(found, "macro_f1", cleat_class_counts_metrics(counts, n).macro_f1);
    cleat_metrics_add(found, "micro_f1", cleat_tag_counts_score(&counts[n]).f1);
    cleat_metrics_add(found, "subset_accuracy", whole / samples);
    for (size_t k = 0; k < n && n <= SHOWN_LABELS; ++k) {
        snprintf(name, sizeof name, "f1_%s", known[k].name);
        cleat_metrics_add(found, name, cleat_tag_counts_score(&counts[k]).f1);
    }
    for (size_t k = 0; k < n && table; ++k) cleat_class_table_add(table, known[k].name, &counts[k]);
}

/* --- numbers -------------------------------------------------------------------------------------------------- */

/* Pearson's; NaN if one side is constant. */
static double correlation(const point *points, size_t count) {
    double mean_x = 0, mean_y = 0, xx = 0, yy = 0, xy = 0;
    bool x_varies = false, y_varies = false;
    for (size_t i = 0; i < count; ++i) {
        mean_x += points[i].found / (double)count;
        mean_y += points[i].truth / (double)count;
        x_varies |= points[i].found != points[0].found;
        y_varies |= points[i].truth != points[0].truth;
    }
    for (size_t i = 0; i < count; ++i) {
        const double x = points[i].found - mean_x, y = points[i].truth - mean_y;
        xx += x * x;
        yy += y * y;
        xy += x * y;
    }
    return x_varies && y_varies ? xy / sqrt(xx * yy) : NAN;
}

/* Replaces predictions by their ranks, equal ones by the mean of theirs, and swaps them with the truth. */
static void rank(point *points, size_t count) {
    qsort(points, count, sizeof *points, by_found);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && points[end].found == points[i].found;) ++end;
        for (size_t j = i; j < end; ++j)
            points[j] = (point){.found = points[j].truth, .truth = (double)(i + end - 1) / 2};
    }
}

static void measure(point *points, size_t count, double measures[MEASURES]) {
    double mean = 0, variance = 0;
    memset(measures, 0, MEASURES * sizeof *measures);
    for (size_t i = 0; i < count; ++i) {
        const double difference = points[i].found - points[i].truth;
        measures[MSE] += difference * difference / (double)count;
        measures[MAE] += fabs(difference) / (double)count;
        mean += points[i].truth / (double)count;
    }
    for (size_t i = 0; i < count; ++i) variance += pow(points[i].truth - mean, 2) / (double)count;
    measures[R2] = 1 - measures[MSE] / variance;
    measures[PEARSON] = correlation(points, count);
    rank(points, count);
    rank(points, count);
    measures[SPEARMAN] = correlation(points, count);
}

static void compute_numbers(const cleat_model *model, const double *state, point *points, cleat_metrics *found) {
    const cleat_class_info *known = model->own;
    const size_t n = (size_t)model->sizes.classes, first = found->count;
    char name[48];
    for (int m = 0; m < MEASURES; ++m) cleat_metrics_add(found, number_metrics[m].name, 0);
    for (size_t k = 0; k < n; ++k) {
        double measures[MEASURES];
        measure(points, points_of(model, state, k, points), measures);
        for (int m = 0; m < MEASURES; ++m) {
            found->items[first + (size_t)m].value += measures[m] / (double)n;
            if (n == 1 || n > SHOWN_TARGETS) continue;
            snprintf(name, sizeof name, "%.36s_%s", known[k].name, number_metrics[m].name);
            cleat_metrics_add(found, name, measures[m]);
        }
    }
}

void cleat_targets_compute(const cleat_model *model, const double *state, cleat_metrics *found,
                           cleat_class_table *table) {
    point *points = cleat_alloc(model->evaluated, sizeof *points);
    cleat_tag_counts *counts = cleat_alloc((size_t)model->sizes.classes + 1, sizeof *counts);
    if (points && counts && problem_of(model) == CLEAT_REGRESSION)
        compute_numbers(model, state, points, found);
    else if (points && counts)
        compute_labels(model, state, counts, found, table);
    cleat_free(counts);
    cleat_free(points);
}

/* --- the baseline, predictions, examples ---------------------------------------------------------------------- */

void cleat_targets_baseline(const cleat_model *model, const cleat_evaluation *evaluated, double *state, char *text) {
    const cleat_targets *targets = evaluated->dataset->targets;
    const bool numbers = targets->options.problem == CLEAT_REGRESSION;
    const double train = training_samples(evaluated->dataset);
    const char *metric = evaluated->metric ? evaluated->metric : "";
    /* Every label for every sample has a larger macro F1, the default, than a few labels. */
    const bool every = strcmp(metric, "micro_f1") != 0 && strcmp(metric, "subset_accuracy") != 0;
    size_t most = 0;
    for (size_t k = 1; k < targets->count; ++k)
        if (targets->all[k].samples > targets->all[most].samples) most = k;
    snprintf(text, CLEAT_BASELINE_TEXT,
             numbers ? "always predicting the mean of the training data"
             : every ? "always predicting every label"
                     : "always predicting '%.60s', and all labels that half of the training data have",
             targets->all[most].name);
    memcpy(state, evaluated->metric_state, cleat_targets_state_size(model) * sizeof *state);
    for (size_t i = 0; i < model->evaluated * targets->count; ++i) {
        const cleat_target *t = &targets->all[i % targets->count];
        const bool frequent = every || t == &targets->all[most] || 2 * (double)t->samples >= train;
        state[i / targets->count * width_of(model) + 1 + 2 * (i % targets->count)] = numbers ? t->mean : frequent;
    }
}

static void add_number(cleat_string *text, double value, int digits) {
    char number[32];
    cleat_number_print_digits(value, digits, number);
    cleat_string_add(text, "%s", isfinite(value) ? number : "nan");
}

/* Labels, "sad|tired", or numbers, "height 3.2|weight 4"; `truth` NULL: those that are predicted. */
static void add_targets(const cleat_targets *targets, const float *output, const float *truth, const char *mark,
                        cleat_string *text) {
    for (size_t k = 0; k < targets->count; ++k) {
        const bool numbers = targets->options.problem == CLEAT_REGRESSION;
        const double value = truth ? (double)truth[k] : value_of(targets, k, output[k]);
        if (!numbers && !(value >= (truth ? 1 : targets->all[k].threshold))) continue;
        cleat_string_add(text, "%s%s", text->size ? mark : "",
                         numbers && targets->count == 1 ? "" : targets->all[k].name);
        if (numbers && targets->count > 1) cleat_string_add(text, " ");
        if (numbers) add_number(text, value, 4);
    }
}

cleat_status cleat_targets_write(const cleat_prediction *predictions, size_t count, const char *folder,
                                 cleat_error *error) {
    const cleat_targets *targets = predictions[0].dataset->targets;
    const bool numbers = targets->options.problem == CLEAT_REGRESSION;
    cleat_string text = {0}, labels = {0};
    cleat_string_add(&text, numbers ? "id" : "id,labels");
    for (size_t k = 0; k < targets->count; ++k) {
        cleat_string_add(&text, ",");
        cleat_string_add_field(&text, targets->all[k].name);
    }
    for (size_t i = 0; i < count; ++i) {
        cleat_string_add(&text, "\n");
        cleat_string_add_field(&text, cleat_dataset_id(predictions[i].dataset, predictions[i].sample));
        labels.size = 0;
        if (!numbers) add_targets(targets, predictions[i].output, NULL, "|", &labels);
        if (!numbers) cleat_string_add(&text, ",");
        if (labels.size) cleat_string_add_field(&text, labels.data);
        for (size_t k = 0; k < targets->count; ++k) {
            cleat_string_add(&text, ",");
            add_number(&text, value_of(targets, k, predictions[i].output[k]), numbers ? 9 : 7);
        }
    }
    cleat_string_add(&text, "\n");
    text.failed |= labels.failed;
    cleat_string_free(&labels);
    return cleat_file_write_in(folder, "predictions.csv", &text, error);
}

cleat_status cleat_targets_add_example(const cleat_prediction *prediction, const cleat_class_example *example,
                                       cleat_string *json, cleat_error *error) {
    const cleat_targets *targets = prediction->dataset->targets;
    float known[CLEAT_TARGETS_MOST];
    cleat_string truth = {0}, found = {0};
    cleat_targets_get(targets, prediction->sample, known);
    const bool has_truth = prediction->sample < targets->rows; /* tables are read without it for predictions */
    if (has_truth) add_targets(targets, NULL, known, ", ", &truth);
    add_targets(targets, prediction->output, NULL, ", ", &found);
    cleat_examples_begin(json, targets->options.problem == CLEAT_REGRESSION ? "number" : "class", prediction);
    cleat_status status =
        cleat_examples_add_image(json, "image", example->image, CLEAT_SHRINK_MEAN,
                                 example->figure ? CLEAT_FIGURE_BYTES : CLEAT_EXAMPLE_IMAGE_BYTES, error);
    cleat_examples_add_string(json, "text", example->text, TEXT_CHARACTERS);
    cleat_examples_add_string(json, "truth", truth.data || !has_truth ? truth.data : "no label", TEXT_CHARACTERS);
    cleat_examples_add_string(json, "prediction", found.data ? found.data : "no label", TEXT_CHARACTERS);
    json_add(json, json_close('}'));
    json->failed |= truth.failed || found.failed;
    cleat_string_free(&truth);
    cleat_string_free(&found);
    return status;
}

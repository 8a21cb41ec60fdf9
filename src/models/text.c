/* Text classification and entity tagging of words. A transformer encoder over the tokens (text_networks.c lists the
 * networks); the class is predicted from the mean of a text's tokens or from the first token, a tag from the first
 * piece of its word. Loss: cross entropy, the mean over the texts, or the words, of a global batch;
 * balanced class weights are w[c] = N / (C n[c]), whose mean over the training data is 1. */
#include "models/published/text.h"
#include "cleat/ops.h"
#include "core/files.h"
#include "core/json.h"
#include "core/memory.h"
#include "data/text/set.h"
#include "models/baselines.h"
#include "models/targets.h"
#include "models/text_metrics.h"
#include "models/text_networks.h"
#include "models/text_tokenizer.h"
#include "models/text_write.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const terms[] = {"cross_entropy"};

extern const cleat_model_class cleat_text_classifier, cleat_text_tagger;

/* Indices of the dataset's fields. */
enum { TOKENS, LENGTHS, LABELS, TYPES };

static bool is_tagger(const cleat_model *model) {
    return model->type == &cleat_text_tagger;
}

typedef struct text_settings { /* begins as a cleat_text_model_settings */
    cleat_data_settings common;
    cleat_encoder_settings encoder;
    cleat_text_network_settings network;
    cleat_text_options data;
    cleat_class_loss_settings loss;
} text_settings;

#define RECORD text_settings
#include "ini/rows.h"

static const char *const tag_names[] = {"error", "repair", NULL};

#define TOKEN_ROWS                                                                                                     \
    {AT(data, labels), TEXT(0, 1023, ""), COMPUTES,                                                                    \
     .help =                                                                                                           \
         "Classes, or entity types, in order: words, or names in double quotes; empty: those of the training split."}, \
        TEXT_VOCABULARY_ROWS, {                                                                                        \
        AT(data, word_dropout), FLOAT(0, 0.9, "0"), COMPUTES,                                                          \
            .help = "Training: probability of replacing a token by [UNK] (word dropout)."                              \
    }

static const cleat_key classifier_keys[] = {
    ENCODER_ROWS(encoder),
    {FIELD(model, pooling, network.pooling), CHOICE(cleat_text_pooling_names, "mean"), SHAPES,
     .help = "Pooling of token features for classification: mean of all tokens, or the first token; network = cleat or "
             "modernbert."},
    TEXT_NETWORK_ROWS(network),
    PROBLEM_ROW(data.targets),
    TEXT_FILE_ROWS,
    TEXT_COLUMN_ROW,
    {AT(data, text_pair_column), TEXT(0, 127, ""), COMPUTES_LATER,
     .help = "Column of the second text of a pair, such as a hypothesis or an answer; empty: single texts."},
    {AT(data, label_column), TEXT(1, 1023, "label"), COMPUTES,
     .help = "Column of the class; of labels or numbers: one or several, words or names in double quotes."},
    TARGET_ROWS(data.targets),
    TEXT_ID_COLUMN_ROW,
    {AT(data, fold_column), TEXT(0, 127, ""), COMPUTES_LATER,
     .help = "Tables: column whose equal values are in one fold of a cross-validation; empty: equal texts are."},
    TOKEN_ROWS,
    TEXT_EMPTY_ROW,
    TEXT_INVALID_ROW,
    TEXT_CACHE_ROW,
    CLASS_LOSS_ROWS(loss),
    {.name = NULL},
};

static const cleat_key tagger_keys[] = {
    ENCODER_ROWS(encoder),
    TEXT_NETWORK_ROWS(network),
    TEXT_FILE_ROWS,
    TOKEN_ROWS,
    TEXT_INVALID_ROW,
    {FIELD(data, bad_tags, data.repair_tags), EITHER(tag_names, "error"), COMPUTES,
     .help = "Entities that begin with I-: report an error, or read the tag as B-."},
    TEXT_CACHE_ROW,
    CLASS_LOSS_ROWS(loss),
    {.name = NULL},
};

static const text_settings *settings_of(const cleat_model *model) {
    return model->settings;
}

static cleat_problem problem(const void *settings) {
    return ((const text_settings *)settings)->data.targets.problem;
}

static cleat_status check_classifier(const void *settings, const cleat_record *record, cleat_error *error) {
    const text_settings *s = settings;
    cleat_status status = cleat_text_model_check(settings, record, error);
    return status ? status : cleat_problem_check(&s->data.targets, &s->loss, s->data.labels, record, error);
}

static const cleat_metric_info tag_metrics[] = {
    {"accuracy", true}, {"entity_f1", true}, {"entity_precision", true}, {"entity_recall", true}, {NULL, false}};

/* model->own: cleat_class_info [classes] */
static const cleat_class_source label_source = {
    .name = cleat_text_label_name, .samples = cleat_text_label_samples, .label = cleat_text_label};

static cleat_text_task task_of(const cleat_model *model) {
    return is_tagger(model) ? CLEAT_TEXT_TAGS : CLEAT_TEXT_CLASSES;
}

static cleat_status check_data(const cleat_model *model, const char *path, cleat_error *error) {
    cleat_text_options options = cleat_text_model_options(model, task_of(model), NULL);
    options.labelled = true;
    return cleat_text_check_columns(path, &options, error);
}

static cleat_status open_data(cleat_model *model, const char *path, cleat_mode mode, const char *fitted,
                              cleat_dataset **dataset, cleat_error *error) {
    cleat_text_options options = cleat_text_model_options(model, task_of(model), fitted);
    options.labelled = mode != CLEAT_MODE_PREDICT;
    cleat_dataset *opened = NULL;
    cleat_status status = cleat_text_open(path, &options, &opened, error);
    if (status) return status;
    model->sizes.classes = (int64_t)cleat_text_labels_count(opened);
    status = cleat_text_model_set_vocabulary(model, path, cleat_text_tokenizer(opened), error);
    if (!status)
        status =
            cleat_classifier_open(model, &label_source, opened, settings_of(model)->loss.class_weights, mode, error);
    if (!status && mode == CLEAT_MODE_TRAIN && !is_tagger(model) && !(fitted && *fitted))
        status = cleat_classes_warn(&label_source, opened, path, settings_of(model)->loss.class_weights,
                                    model->sizes.classes, model->own, error);
    if (status) {
        cleat_dataset_destroy(opened);
        return status;
    }
    *dataset = opened;
    return CLEAT_OK;
}

/* Sizes of a profile without data: upper bounds or usual values. */
enum { USUAL_CLASSES = 3 };

static cleat_model_sizes sizes_of(const cleat_model *model) {
    cleat_model_sizes sizes = model->sizes;
    sizes.vocabulary = cleat_text_model_vocabulary(model);
    if (sizes.classes == 0)
        sizes.classes = settings_of(model)->data.targets.problem == CLEAT_REGRESSION ? 1 : USUAL_CLASSES;
    return sizes;
}

/* Whether the data have the field `types` and the network reads it. */
static bool has_types(const cleat_model *model) {
    const text_settings *s = settings_of(model);
    const bool pairs = !is_tagger(model) && s->data.text_pair_column && *s->data.text_pair_column;
    return (pairs || model->sizes.pairs > 0) && cleat_text_network_has_types(&s->network);
}

static cleat_text_shape shape_of(const cleat_model *model) {
    const text_settings *s = settings_of(model);
    const cleat_model_sizes sizes = sizes_of(model);
    return (cleat_text_shape){.encoder = &s->encoder,
                              .network = &s->network,
                              .pooling = s->network.pooling,
                              .vocabulary = sizes.vocabulary,
                              .classes = sizes.classes,
                              .tags = is_tagger(model),
                              .numbers = s->data.targets.problem == CLEAT_REGRESSION};
}

static int64_t layer_of(const cleat_model *model, const char *param) {
    return cleat_nn_encoder_layer_of(param, cleat_text_model_layers(model));
}

static void build(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch, int64_t length,
                  cleat_model_graph *built) {
    const int64_t row[2] = {batch, length};
    const bool has_targets = cleat_model_has_targets(model);
    const int rank = is_tagger(model) || has_targets ? 2 : 1; /* of the weights, and of labels */
    const cleat_text_shape shape = shape_of(model);
    const int64_t weights[2] = {batch, has_targets ? shape.classes : length};
    cleat_tensor *labels = NULL;
    cleat_text_inputs texts = {.tokens = cleat_input(graph, "tokens", CLEAT_I32, 2, row),
                               .lengths = cleat_input(graph, "lengths", CLEAT_I32, 1, &batch)};
    if (mode != CLEAT_MODE_PREDICT && !has_targets)
        labels = cleat_input(graph, is_tagger(model) ? "labels" : "label", CLEAT_I32, rank, row);
    if (has_types(model)) texts.types = cleat_input(graph, "types", CLEAT_I32, 2, row);
    cleat_model_inputs inputs = cleat_model_add_inputs(graph, mode, rank, weights);
    texts.rng = inputs.rng;
    cleat_tensor *logits = cleat_text_network_build(graph, &shape, mode, &texts);
    logits = cleat_model_output(graph, logits, built);
    if (has_targets) cleat_targets_loss(model, graph, mode, logits, NULL, &inputs, built);
    if (mode == CLEAT_MODE_PREDICT || has_targets) return;
    cleat_tensor *loss = cleat_cross_entropy(graph, logits, labels, inputs.sample_weight,
                                             (float)settings_of(model)->loss.label_smoothing);
    cleat_model_add_loss(graph, mode, &inputs, loss, built);
}

static const cleat_architecture *architecture(const cleat_model *model, bool timm) {
    (void)timm;
    return cleat_published_text(settings_of(model)->network.network,
                                is_tagger(model) ? CLEAT_HEAD_TAGS : CLEAT_HEAD_CLASSES);
}

static size_t fields(const cleat_model *model, cleat_synthetic_field *made) {
    const cleat_model_sizes sizes = sizes_of(model);
    const int64_t row[1] = {-1}, target[2] = {sizes.classes, 1};
    made[TOKENS] = cleat_synthetic_integers("tokens", sizes.vocabulary, 1, row);
    made[LENGTHS] = cleat_synthetic_values("lengths", CLEAT_VALUES_LENGTH, 0, NULL);
    made[LABELS] = cleat_model_has_targets(model) ? cleat_synthetic_floats("target", 2, target)
                   : is_tagger(model)             ? cleat_synthetic_integers("labels", sizes.classes, 1, row)
                                                  : cleat_synthetic_integers("label", sizes.classes, 0, NULL);
    if (!has_types(model)) return LABELS + 1;
    made[TYPES] = cleat_synthetic_integers("types", 2, 1, row);
    return TYPES + 1;
}

/* sample_weight [B] or [B, L]: the class weight of each label (1 without data), divided by the number of
 * texts or words in the global batch. */
static void sample_weight(const cleat_model *model, const cleat_host_batch *batch,
                          const cleat_global_batch *global_batch, float *values) {
    const int32_t *labels = batch->fields[LABELS];
    const cleat_class_info *known = model->own;
    if (cleat_model_has_targets(model)) {
        cleat_targets_weight(model, sizes_of(model).classes, batch, global_batch, values);
        return;
    }
    int64_t each = is_tagger(model) ? batch->length : 1,
            whole = is_tagger(model) ? global_batch->items : global_batch->samples;
    for (int64_t i = 0; i < batch->batch * each; ++i)
        values[i] = labels[i] < 0 ? 0.0f : (known ? known[labels[i]].weight : 1.0f) / (float)whole;
}

enum { SHOWN_TYPES = 12 }; /* maximum number of entity types with separate metrics */

/* Metric state of tags: number of words and of correct words, target, predicted and correct count of each
 * entity type, and the confusion matrix of the tags. */
static size_t count_types(const cleat_model *model) {
    return (size_t)(model->sizes.classes - 1) / 2;
}
static size_t tag_matrix_at(const cleat_model *model) {
    return 2 + 3 * count_types(model);
}
static size_t tag_metric_state_size(const cleat_model *model) {
    const int64_t labels = cleat_confusion_labels(model->sizes.classes);
    return tag_matrix_at(model) + (size_t)(labels * labels);
}

static cleat_tag_counts *entities_of(const double *metric_state) {
    return (cleat_tag_counts *)(metric_state + 2);
}

/* The predicted tag of each word of a sentence; O for words that are cut off or have no token. */
static void tags_of(const cleat_model *model, const cleat_dataset *dataset, size_t sample, const float *logits,
                    int32_t *tags) {
    for (size_t w = 0; w < cleat_text_words(dataset, sample); ++w) {
        int32_t at = cleat_text_word_position(dataset, sample, w);
        tags[w] = at < 0 ? 0 : cleat_class_argmax(logits + at * model->sizes.classes, model->sizes.classes);
    }
}

static size_t max_words(const cleat_host_batch *batch) {
    size_t most = 0;
    for (int64_t b = 0; b < batch->count; ++b) {
        size_t words = cleat_text_words(batch->dataset, batch->samples[b]);
        if (words > most) most = words;
    }
    return most;
}

static cleat_status tag_metric_update(const cleat_model *model, const cleat_host_batch *batch, const float *output,
                                      double *metric_state, cleat_error *error) {
    size_t most = max_words(batch);
    cleat_tagging_counts tags = {0, 0};
    int32_t *target = cleat_alloc(most, sizeof *target), *found = cleat_alloc(most, sizeof *found);
    cleat_status status = CLEAT_OK;
    if (!target || !found) {
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the tags of %zu words", most);
        goto done;
    }
    for (int64_t b = 0; b < batch->count; ++b) {
        size_t sample = batch->samples[b], words = cleat_text_words(batch->dataset, sample);
        if (words == 0 || cleat_text_word_label(batch->dataset, sample, 0) < 0) continue;
        for (size_t w = 0; w < words; ++w) target[w] = cleat_text_word_label(batch->dataset, sample, w);
        tags_of(model, batch->dataset, sample, output + b * batch->length * model->sizes.classes, found);
        const int64_t before = tags.right;
        cleat_entities_add(target, found, words, entities_of(metric_state), &tags);
        if (batch->badness) batch->badness[b] = 1 - (double)(tags.right - before) / (double)words;
        for (size_t w = 0; w < words; ++w)
            cleat_confusion_count(model->own, model->sizes.classes, target[w], found[w],
                                  metric_state + tag_matrix_at(model));
    }
    metric_state[0] += (double)tags.words;
    metric_state[1] += (double)tags.right;
done:
    cleat_free(found);
    cleat_free(target);
    return status;
}

static void tag_metric_compute(const cleat_model *model, const double *metric_state, cleat_metrics *found) {
    const cleat_class_info *known = model->own;
    cleat_tag_counts all = {0, 0, 0};
    char name[48];
    for (size_t t = 0; t < count_types(model); ++t) {
        const cleat_tag_counts one = entities_of(metric_state)[t];
        all.target += one.target;
        all.predicted += one.predicted;
        all.right += one.right;
    }
    cleat_score score = cleat_tag_counts_score(&all);
    cleat_metrics_add(found, "accuracy", metric_state[1] / metric_state[0]);
    cleat_metrics_add(found, "entity_precision", score.precision);
    cleat_metrics_add(found, "entity_recall", score.recall);
    cleat_metrics_add(found, "entity_f1", score.f1);
    for (size_t t = 0; t < count_types(model) && t < SHOWN_TYPES; ++t) {
        snprintf(name, sizeof name, "f1_%s", known[1 + 2 * t].name + strlen("B-"));
        cleat_metrics_add(found, name, cleat_tag_counts_score(entities_of(metric_state) + t).f1);
    }
}

static const char **label_names(const cleat_model *model, const cleat_dataset *dataset) {
    const char **names = cleat_alloc((size_t)model->sizes.classes, sizeof *names);
    for (int64_t c = 0; names && c < model->sizes.classes; ++c) names[c] = cleat_text_label_name(dataset, (size_t)c);
    return names;
}

static cleat_status write_classes(const cleat_model *model, const cleat_prediction *predictions, size_t count,
                                  const char *folder, cleat_error *error) {
    return cleat_classes_write(&label_source, model->sizes.classes, predictions, count, folder, error);
}

/* Writes FOLDER/predictions.conll. */
static cleat_status write_tags(const cleat_model *model, const cleat_prediction *predictions, size_t count,
                               const char *folder, cleat_error *error) {
    char path[4096];
    size_t all = 0, at = 0;
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < count; ++i) all += cleat_text_words(predictions[i].dataset, predictions[i].sample);
    const char **names = count ? label_names(model, predictions[0].dataset) : NULL;
    const char **words = cleat_alloc(all, sizeof *words);
    int32_t *tags = cleat_alloc(all, sizeof *tags);
    cleat_tagged_sentence *sentences = cleat_alloc(count, sizeof *sentences);
    if ((count && !names) || !words || !tags || !sentences) {
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu words", all);
        goto done;
    }
    for (size_t i = 0; i < count; ++i) {
        const cleat_prediction *p = &predictions[i];
        size_t n = cleat_text_words(p->dataset, p->sample);
        for (size_t w = 0; w < n; ++w) words[at + w] = cleat_text_word(p->dataset, p->sample, w);
        tags_of(model, p->dataset, p->sample, p->output, tags + at);
        sentences[i] = (cleat_tagged_sentence){.words = words + at, .labels = tags + at, .count = n};
        at += n;
    }
    status = cleat_path_join(folder, "predictions.conll", path, sizeof path, error);
    if (!status) status = cleat_text_write_tags(path, names, (size_t)model->sizes.classes, sentences, count, error);
done:
    cleat_free(sentences);
    cleat_free(tags);
    cleat_free(words);
    cleat_free(names);
    return status;
}

static cleat_status add_class(const cleat_model *model, const cleat_evaluation *evaluated, size_t index,
                              cleat_string *json, cleat_error *error) {
    const cleat_prediction *prediction = &evaluated->predictions[index];
    const cleat_class_example example = {.text = cleat_text_sample(prediction->dataset, prediction->sample),
                                         .label = cleat_text_label(prediction->dataset, prediction->sample)};
    return cleat_classes_add_example(model->own, model->sizes.classes, prediction, &example, json, error);
}

/* Counts of the tokens, without those around the text. */
static cleat_status count_tokens(const cleat_dataset *dataset, size_t sample, cleat_scorer *scorer,
                                 cleat_error *error) {
    const cleat_tokenizer *tokenizer = cleat_text_tokenizer(dataset);
    const int32_t first = cleat_tokenizer_cls(tokenizer), last = cleat_tokenizer_sep(tokenizer);
    size_t count;
    const int32_t *ids = cleat_text_ids(dataset, sample, &count);
    (void)error;
    for (size_t i = 0; i < count; ++i)
        if (ids[i] != first && ids[i] != last) cleat_scorer_add(scorer, ids[i], 1);
    return CLEAT_OK;
}

static cleat_status fitted_baseline(const cleat_model *model, const cleat_evaluation *evaluated, double *metric_state,
                                    char *text, cleat_error *error) {
    const cleat_scorer_source source = {.text = "naive Bayes on the tokens of the training texts",
                                        .counts = true,
                                        .features = model->sizes.vocabulary,
                                        .cost = 1000,
                                        .label = cleat_text_label,
                                        .read = count_tokens};
    return cleat_scorer_baseline(model, evaluated, &source, metric_state, text, error);
}

static const cleat_model_examples class_examples = {.add = add_class,
                                                    .classes = cleat_classifier_table,
                                                    .baseline = cleat_classifier_baseline,
                                                    .fitted = fitted_baseline};

enum { WORDS_SHOWN = 100, WORD_CHARACTERS = 40 };

static cleat_status add_tags(const cleat_model *model, const cleat_evaluation *evaluated, size_t index,
                             cleat_string *json, cleat_error *error) {
    const cleat_prediction *prediction = &evaluated->predictions[index];
    const cleat_dataset *dataset = prediction->dataset;
    const size_t sample = prediction->sample, all = cleat_text_words(dataset, sample),
                 words = all < WORDS_SHOWN ? all : WORDS_SHOWN;
    const char *const members[] = {"words", "truth", "prediction"};
    int32_t *found = cleat_alloc(all, sizeof *found);
    if (!found) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the tags of %zu words", all);
    tags_of(model, dataset, sample, prediction->output, found);
    cleat_examples_begin(json, "tags", prediction);
    for (int m = 0; m < 3; ++m) {
        json_add(json, json_open(members[m], '['));
        for (size_t w = 0; w < words; ++w) {
            const int32_t tag = m == 1 ? cleat_text_word_label(dataset, sample, w) : found[w];
            const char *text = m == 0 ? cleat_text_word(dataset, sample, w) : cleat_class_name(model->own, tag);
            cleat_examples_add_string(json, NULL, text, WORD_CHARACTERS);
        }
        json_add(json, json_close(']'));
    }
    json_add(json, json_close('}'));
    cleat_free(found);
    return CLEAT_OK;
}

static void tag_table(const cleat_model *model, const double *metric_state, cleat_class_table *table) {
    const cleat_class_info *known = model->own;
    cleat_confusion_copy(known, model->sizes.classes, metric_state + tag_matrix_at(model), table);
    for (size_t t = 0; t < count_types(model); ++t)
        cleat_class_table_add(table, known[1 + 2 * t].name + strlen("B-"), entities_of(metric_state) + t);
}

/* Predicts no entities: only the words outside of entities have the correct tag. */
static cleat_status tag_baseline(const cleat_model *model, const cleat_evaluation *evaluated, double *metric_state,
                                 char *text, cleat_error *error) {
    const double *from = evaluated->metric_state, *matrix = from + tag_matrix_at(model);
    const cleat_class_info *known = model->own;
    const int64_t labels = cleat_confusion_labels(model->sizes.classes);
    (void)error;
    metric_state[0] = from[0];
    metric_state[1] = known[0].shown == labels - 1 ? NAN : 0; /* O is one of the rarer tags of very many */
    for (int64_t c = 0; c < labels; ++c) metric_state[1] += matrix[known[0].shown * labels + c];
    for (size_t t = 0; t < count_types(model); ++t) metric_state[2 + 3 * t] = from[2 + 3 * t];
    snprintf(text, CLEAT_BASELINE_TEXT, "tagging every word as %s", known[0].name);
    return CLEAT_OK;
}

static const cleat_model_examples tag_examples = {.add = add_tags, .classes = tag_table, .baseline = tag_baseline};

static const cleat_model_origin classifier_origins[] = {{"text_tagger", NULL}, {"text_pretrain", NULL}, {NULL, NULL}},
                                tagger_origins[] = {{"text_classifier", NULL}, {"text_pretrain", NULL}, {NULL, NULL}};

static cleat_status export_files(const cleat_model *model, const cleat_model_export *spec, cleat_error *error) {
    const text_settings *s = settings_of(model);
    return cleat_text_export(spec, s->data.lowercase, s->common.max_length, is_tagger(model), error);
}

static const cleat_label_source labels = {"labels.txt", NULL, cleat_text_label_name};

#define TEXT_CLASS                                                                                                     \
    .settings_size = sizeof(text_settings), .defaults = cleat_text_model_defaults, .terms = terms, .n_terms = 1,       \
    .check_data = check_data, .open_data = open_data, .fields = fields, .build = build, .layer_of = layer_of,          \
    .layers = cleat_text_model_layers, .sample_weight = sample_weight, .architecture = architecture,                   \
    .labels = &labels, .overrides = cleat_text_overrides, .export_files = export_files

const cleat_model_class cleat_text_classifier = {.name = "text_classifier",
                                                 .keys = classifier_keys,
                                                 TEXT_CLASS,
                                                 .check = check_classifier,
                                                 .problem = problem,
                                                 .fit_outputs = cleat_targets_choose,
                                                 .metrics = cleat_classes_metrics,
                                                 .metric_state_size = cleat_classifier_state_size,
                                                 .metric_update = cleat_classifier_update,
                                                 .metric_compute = cleat_classifier_compute,
                                                 .write = write_classes,
                                                 .combine = cleat_classifier_combine,
                                                 .examples = &class_examples,
                                                 .architectures = cleat_published_classifiers,
                                                 .origins = classifier_origins,
                                                 .init_profile = "text_classify"};

const cleat_model_class cleat_text_tagger = {.name = "text_tagger",
                                             .keys = tagger_keys,
                                             TEXT_CLASS,
                                             .check = cleat_text_model_check,
                                             .metrics = tag_metrics,
                                             .metric_state_size = tag_metric_state_size,
                                             .metric_update = tag_metric_update,
                                             .metric_compute = tag_metric_compute,
                                             .write = write_tags,
                                             .combine = cleat_combine_classes,
                                             .combines_same_fit = true,
                                             .examples = &tag_examples,
                                             .architectures = cleat_published_taggers,
                                             .origins = tagger_origins,
                                             .init_profile = "text_tag"};

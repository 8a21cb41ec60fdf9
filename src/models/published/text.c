/* Settings of published text encoders that the rows of an architecture cannot express. */
#include "models/published/text.h"

#include "core/files.h"
#include "core/string.h"
#include "models/published/labels.h"
#include "models/targets.h"
#include "weights/config.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

/* The first number in the file among `keys` [count]; *rate is NULL if there is none. */
static cleat_status find_number(const cleat_weights *weights, const char *const *keys, size_t count, const char **key,
                                const cJSON **rate, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    *rate = NULL;
    *key = keys[0];
    for (size_t i = 0; i < count && !status && !*rate; ++i) {
        *key = keys[i];
        status = cleat_weights_member(weights, keys[i], CLEAT_JSON_NUMBER | CLEAT_JSON_NULL, rate, error);
    }
    return status;
}

/* A null or missing member: as the other layers. */
static cleat_status set_head_dropout(const cleat_weights *weights, const cleat_setting_sink *sink, cleat_error *error) {
    static const char *const keys[] = {"classifier_dropout", "seq_classif_dropout", "cls_dropout"};
    const char *key;
    const cJSON *rate;
    char text[32];
    if (sink->head == CLEAT_HEAD_MASKED) return CLEAT_OK;
    cleat_status status = find_number(weights, keys, sink->head == CLEAT_HEAD_TAGS ? 1 : 3, &key, &rate, error);
    if (status || !rate) return status;
    cleat_number_print(rate->valuedouble, text);
    return sink->set(sink->user, "model.head_dropout", text, key, error);
}

static cleat_status log_attention_dropout(const cleat_weights *weights, cleat_error *error) {
    static const char *const keys[] = {"attention_probs_dropout_prob", "attention_dropout"};
    const char *key;
    const cJSON *rate;
    cleat_status status = find_number(weights, keys, 2, &key, &rate, error);
    if (!status && rate && rate->valuedouble > 0)
        cleat_log(CLEAT_LOG_INFO, "%s/config.json: %s is %g; cleat drops no attention probabilities",
                  cleat_weights_folder(weights), key, rate->valuedouble);
    return status;
}

/* By cleat_problem. */
static const char *const problem_types[] = {"single_label_classification", "multi_label_classification", "regression"};

/* A regression head predicts in the unit of its data, so targets keep theirs. One class is the default, so that such
 * weights can be the start of another problem. */
static cleat_status set_problem(const cleat_weights *weights, const cleat_setting_sink *sink, cleat_problem *told,
                                cleat_error *error) {
    static const char key[] = "problem_type";
    const cJSON *problem;
    int found = 0;
    cleat_status status = cleat_weights_member(weights, key, CLEAT_JSON_TEXT | CLEAT_JSON_NULL, &problem, error);
    if (status || !problem) return status;
    while (found < CLEAT_PROBLEMS && strcmp(problem->valuestring, problem_types[found]) != 0) ++found;
    if (found == CLEAT_PROBLEMS)
        return cleat_config_refuse(cleat_weights_folder(weights), "config.json", key, problem,
                                   "single_label_classification, multi_label_classification, regression or null",
                                   error);
    *told = (cleat_problem)found;
    if (found != CLEAT_SINGLE_LABEL)
        status = sink->set(sink->user, "model.problem_type", cleat_problem_names[found], key, error);
    if (status || found != CLEAT_REGRESSION) return status;
    return sink->set(sink->user, "data.standardise", "false", key, error);
}

/* Texts are truncated to the positions, or to the tokenizer's length if shorter, unless the profile sets a
 * length. */
static cleat_status set_positions(const cleat_weights *weights, const cleat_setting_sink *sink, int64_t first,
                                  cleat_error *error) {
    static const char key[] = "max_position_embeddings", file[] = "tokenizer_config.json", most[] = "model_max_length";
    int64_t positions;
    cJSON *tokenizer = NULL;
    const cJSON *length = NULL;
    cleat_status status = cleat_weights_integer(weights, key, 512, &positions, error);
    if (!status) status = cleat_set_integer(sink, "model.first_position", first, first ? "pad_token_id" : key, error);
    if (status || positions - first < 1) return status; /* the check of the settings reports it */
    status = cleat_weights_read_json(weights, file, &tokenizer, error);
    if (!status)
        status = cleat_config_member(cleat_weights_folder(weights), file, tokenizer, most,
                                     CLEAT_JSON_NUMBER | CLEAT_JSON_NULL, &length, error);
    const double said = length ? length->valuedouble : 0; /* transformers writes 1e30 for none */
    const bool shorter = said >= 1 && said < (double)(positions - first);
    if (!status)
        status = cleat_set_integer(sink, "data.max_length", shorter ? (int64_t)said : positions - first,
                                   shorter ? "model_max_length of tokenizer_config.json" : key, error);
    cJSON_Delete(tokenizer);
    return status;
}

cleat_status cleat_published_padding(const cleat_weights *weights, int64_t usual, int64_t *padding,
                                     cleat_error *error) {
    const cJSON *item;
    cleat_status status =
        cleat_weights_member(weights, "pad_token_id", CLEAT_JSON_INTEGER | CLEAT_JSON_NULL, &item, error);
    if (!status) *padding = item ? (int64_t)item->valuedouble : usual;
    return status;
}

static cleat_status set_vocabulary(const cleat_weights *weights, const cleat_setting_sink *sink, cleat_error *error) {
    static const char *const files[] = {"tokenizer.json", "vocab.txt", "vocab.json"};
    char path[4096];
    for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
        cleat_status status = cleat_path_join(cleat_weights_folder(weights), files[i], path, sizeof path, error);
        if (status) return status;
        if (cleat_file_exists(path))
            return sink->set(sink->user, "data.vocabulary", cleat_weights_folder(weights), files[i], error);
    }
    /* Opening it reports the missing tokenizer, unless the profile has another one: these weights cannot be
     * used with a learned vocabulary. */
    return sink->set(sink->user, "data.vocabulary", cleat_weights_folder(weights), "the tokenizer", error);
}

enum { MAX_NAMES = 1024 };

/* The name of label `index` in id2label; NULL: none, or none that a list of a profile can hold. */
static const char *label_name(const cJSON *names, int index) {
    char key[16];
    snprintf(key, sizeof key, "%d", index);
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(names, key));
    if (!name || !*name || strcspn(name, "\t\r\n#;\"") != strlen(name) || strncmp(name, "LABEL_", 6) == 0) return NULL;
    return name;
}

/* Whether the labels are O, B-x, I-x, B-y, ..., in this order. */
static bool are_tags(const cJSON *names, int count) {
    if (count < 3 || count % 2 == 0 || strcmp(label_name(names, 0), "O") != 0) return false;
    for (int i = 1; i < count; i += 2) {
        const char *begin = label_name(names, i), *inside = label_name(names, i + 1);
        if (strncmp(begin, "B-", 2) != 0 || strncmp(inside, "I-", 2) != 0 || strcmp(begin + 2, inside + 2) != 0)
            return false;
    }
    return true;
}

/* The object id2label, whose members are texts or numbers; NULL: there is none. More than MAX_NAMES are not used. */
static cleat_status find_labels(const cleat_weights *weights, const cJSON **names, cleat_error *error) {
    const cJSON *item, *name;
    int seen = 0;
    cleat_status status = cleat_weights_member(weights, "id2label", CLEAT_JSON_OBJECT | CLEAT_JSON_NULL, names, error);
    cJSON_ArrayForEach(name, *names) {
        char path[64];
        if (++seen > MAX_NAMES) break;
        snprintf(path, sizeof path, "id2label.%.40s", name->string);
        if (!status) status = cleat_weights_member(weights, path, CLEAT_JSON_TEXT | CLEAT_JSON_INTEGER, &item, error);
    }
    return status;
}

/* LABEL_0, LABEL_1, ... are not names: the labels are those of the data. Names with blanks are quoted. */
static cleat_status set_labels(const cleat_weights *weights, const cleat_setting_sink *sink, bool tags,
                               cleat_error *error) {
    const cJSON *names;
    cleat_string list = {0};
    cleat_status status = find_labels(weights, &names, error);
    const int count = cJSON_GetArraySize(names);
    if (status) return status;
    if (count < 2 || count > MAX_NAMES) return CLEAT_OK;
    for (int i = 0; i < count; ++i)
        if (!label_name(names, i)) return CLEAT_OK;
    if (tags && !are_tags(names, count)) return CLEAT_OK;
    for (int i = tags ? 1 : 0; i < count; i += tags ? 2 : 1) {
        const char *name = label_name(names, i) + (tags ? 2 : 0), *quote = strchr(name, ' ') ? "\"" : "";
        cleat_string_add(&list, "%s%s%s%s", list.size ? " " : "", quote, name, quote);
    }
    if (list.failed) status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", cleat_weights_path(weights));
    if (!status && list.size < 1024) status = sink->set(sink->user, "data.labels", list.data, "id2label", error);
    cleat_string_free(&list);
    return status;
}

cleat_status cleat_published_set_targets(const cleat_weights *weights, const cleat_setting_sink *sink,
                                         cleat_error *error) {
    cleat_problem problem = CLEAT_SINGLE_LABEL;
    cleat_status status = set_problem(weights, sink, &problem, error);
    return status || problem != CLEAT_MULTI_LABEL ? status : set_labels(weights, sink, false, error);
}

bool cleat_published_keeps_text(const cleat_model *model, const cleat_weights *weights, const char *param) {
    return !model->own || strncmp(param, "head.out.", 9) != 0 ||
           cleat_published_same_labels(weights, model->own, model->sizes.classes);
}

cleat_status cleat_published_set_texts(const cleat_weights *weights, const cleat_setting_sink *sink,
                                       int64_t positions_start, cleat_error *error) {
    cleat_status status = set_positions(weights, sink, positions_start, error);
    if (!status) status = set_head_dropout(weights, sink, error);
    if (!status) status = set_vocabulary(weights, sink, error);
    cleat_problem problem = CLEAT_SINGLE_LABEL;
    if (!status && sink->head == CLEAT_HEAD_CLASSES) status = set_problem(weights, sink, &problem, error);
    if (!status && sink->head != CLEAT_HEAD_MASKED && problem != CLEAT_REGRESSION)
        status = set_labels(weights, sink, sink->head == CLEAT_HEAD_TAGS, error);
    return status ? status : log_attention_dropout(weights, error);
}

static const char *const class_names[CLEAT_TEXT_NETWORKS] = {[CLEAT_TEXT_BERT] = "Bert",
                                                             [CLEAT_TEXT_ROBERTA] = "Roberta",
                                                             [CLEAT_TEXT_XLM_ROBERTA] = "XLMRoberta",
                                                             [CLEAT_TEXT_DISTILBERT] = "DistilBert",
                                                             [CLEAT_TEXT_ELECTRA] = "Electra",
                                                             [CLEAT_TEXT_DEBERTA] = "DebertaV2",
                                                             [CLEAT_TEXT_MODERNBERT] = "ModernBert"};

/* Replaces a member that a row of the table has set. */
static bool replace_number(cJSON *config, const char *key, double value) {
    if (!cJSON_GetObjectItemCaseSensitive(config, key)) return true;
    cJSON_DeleteItemFromObjectCaseSensitive(config, key);
    return cJSON_AddNumberToObject(config, key, value);
}

static cleat_text_head head_of(const cleat_model *model) {
    const cleat_architecture *const *all = model->type->architectures;
    return all == cleat_published_masked    ? CLEAT_HEAD_MASKED
           : all == cleat_published_taggers ? CLEAT_HEAD_TAGS
                                            : CLEAT_HEAD_CLASSES;
}

bool cleat_published_add_problem(const cleat_model *model, cJSON *config) {
    const cleat_problem problem = cleat_settings_problem(model->type, model->settings);
    return problem == CLEAT_SINGLE_LABEL || cJSON_AddStringToObject(config, "problem_type", problem_types[problem]);
}

bool cleat_published_add_class(const cleat_model *model, int network, cJSON *config) {
    static const char *const heads[] = {[CLEAT_HEAD_CLASSES] = "SequenceClassification",
                                        [CLEAT_HEAD_TAGS] = "TokenClassification",
                                        [CLEAT_HEAD_MASKED] = "MaskedLM"};
    char name[64];
    cJSON *array = cJSON_AddArrayToObject(config, "architectures");
    snprintf(name, sizeof name, "%sFor%s", class_names[network], heads[head_of(model)]);
    const cleat_text_network_settings s = cleat_text_network_of(model);
    const double rows = (double)model->sizes.vocabulary; /* 0: not known yet */
    return array && cleat_published_add_problem(model, config) &&
           cJSON_AddItemToArray(array, cJSON_CreateString(name)) &&
           (!model->sizes.vocabulary || replace_number(config, "vocab_size", rows)) &&
           replace_number(config, "type_vocab_size", (double)s.token_types) &&
           replace_number(config, "layer_norm_eps", s.norm_eps) &&
           replace_number(config, "embedding_size", (double)s.embedding_width);
}

bool cleat_published_describe_text(const cleat_model *model, cJSON *config) {
    const cleat_text_network_settings s = cleat_text_network_of(model);
    const char *dropout = s.network == CLEAT_TEXT_DISTILBERT ? "seq_classif_dropout" : "classifier_dropout";
    bool done = cleat_published_add_class(model, s.network, config);
    if (head_of(model) != CLEAT_HEAD_MASKED) done = done && cJSON_AddNumberToObject(config, dropout, s.head_dropout);
    done = done &&
           cJSON_AddNumberToObject(config, "pad_token_id", s.first_position > 0 ? (double)s.first_position - 1 : 0);
    return done;
}

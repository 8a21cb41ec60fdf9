/* Learning rates and weight decay by depth, and frozen parameters: the rules that a store gets from a model. */
#include "models/param_rules.h"

#include "graph/store.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BLOCKS = 100000 };

int64_t cleat_frozen_depths(const char *freeze) {
    if (!*freeze || strcmp(freeze, "none") == 0) return 0;
    if (strcmp(freeze, "embeddings") == 0) return 1;
    if (strcmp(freeze, "backbone") == 0) return INT64_MAX;
    if (strspn(freeze, "0123456789") != strlen(freeze)) return -1;
    const long long blocks = strtoll(freeze, NULL, 10);
    return blocks <= MAX_BLOCKS ? 1 + blocks : -1;
}

static bool decays(const cleat_param_options *options) {
    return options->layer_decay > 0 && options->layer_decay < 1;
}

static bool needs_depths(const cleat_param_options *options) {
    return options->backbone_learning_rate > 0 || decays(options) || cleat_frozen_depths(options->freeze) > 0 ||
           options->lora_rank > 0;
}

bool cleat_model_has_rules(const cleat_model *model) {
    const cleat_param_options *options = &model->options.params;
    return needs_depths(options) || !options->decay_norm_bias;
}

static int64_t layers_of(const cleat_model *model) {
    return model->type->layers(model);
}

cleat_status cleat_model_check_rules(const cleat_model *model, cleat_error *error) {
    const cleat_param_options *options = &model->options.params;
    if (!needs_depths(options)) return CLEAT_OK;
    if (!model->type->layer_of || !model->type->layers)
        return cleat_fail(
            error, CLEAT_ERR_PROFILE,
            "model.type %s has no backbone that is separate from its head: remove train.freeze, train.layer_decay, "
            "train.backbone_learning_rate and train.lora_rank",
            model->type->name);
    const int64_t frozen = cleat_frozen_depths(options->freeze), blocks = frozen - 1, layers = layers_of(model);
    if (frozen != INT64_MAX && blocks > layers)
        return cleat_fail(error, CLEAT_ERR_PROFILE,
                          "train.freeze = %" PRId64 ": the network has %" PRId64
                          " blocks; freeze at most these, or the backbone",
                          blocks, layers);
    return CLEAT_OK;
}

static bool ends_with(const char *name, const char *tail) {
    const size_t length = strlen(name), size = strlen(tail);
    return length >= size && strcmp(name + length - size, tail) == 0;
}

/* Norms, biases and other vectors: the parameters that usually have no weight decay. */
static bool is_vector(const char *param, int rank) {
    return rank < 2 || ends_with(param, ".bias");
}

static bool is_adapter(const char *param) {
    return strstr(param, ".lora_") != NULL;
}

/* The learning rate of depth d is that of the backbone times decay^(layers + 1 - d). */
static double rate_of(const cleat_param_options *options, int64_t depth, int64_t layers) {
    if (depth > layers) return 1;
    const double backbone =
        options->backbone_learning_rate > 0 ? options->backbone_learning_rate / options->learning_rate : 1;
    return backbone * pow(decays(options) ? options->layer_decay : 1, (double)(layers + 1 - depth));
}

static const struct {
    const char *name;
    cleat_dtype type;
} forms[] = {{"auto", CLEAT_F32}, {"float", CLEAT_F32}, {"q8", CLEAT_Q8},
             {"nf4", CLEAT_NF4},  {"q4", CLEAT_Q4},     {"f16", CLEAT_HALF}};
enum { FORMS = sizeof forms / sizeof *forms };

/* The number of the form that is the first word of a text; FORMS: none. */
static size_t find_form(const char *text) {
    const size_t size = strcspn(text, " ");
    size_t i = 0;
    while (i < FORMS && (strlen(forms[i].name) != size || strncmp(forms[i].name, text, size) != 0)) ++i;
    return i;
}

bool cleat_frozen_forms_valid(const char *text) {
    bool valid = find_form(text) < FORMS;
    for (text += strcspn(text, " "); valid && *text; text += strcspn(text, " ")) {
        text += strspn(text, " ") + strcspn(text + strspn(text, " "), " =");
        valid = *text == '=' && find_form(text + 1) < FORMS;
    }
    return valid;
}

/* Where the form of the exception `name`, up to its ".weight", begins; NULL: it is none. */
static const char *find_exception(const char *text, const char *name) {
    char key[CLEAT_NAME + 2];
    const size_t tail = sizeof ".weight" - 1, length = strlen(name);
    snprintf(key, sizeof key, " %.*s=", (int)(ends_with(name, ".weight") ? length - tail : length), name);
    const char *found = strstr(text, key);
    return found ? found + strlen(key) : NULL;
}

/* How a frozen weight is stored. As usual, 4 bits are few for embeddings. */
static cleat_dtype frozen_type(const cleat_model *model, const char *param, int64_t depth) {
    const char *text = model->options.params.frozen_weights, *exception = find_exception(text, param);
    const char *number = param + strcspn(param, "0123456789");
    char pattern[CLEAT_NAME + 1];
    snprintf(pattern, sizeof pattern, "%.*s*%s", (int)(number - param), param, number + strspn(number, "0123456789"));
    if (!exception) exception = find_exception(text, pattern);
    const size_t form = find_form(exception ? exception : text);
    const cleat_dtype type = form < FORMS ? forms[form].type : CLEAT_F32;
    return !exception && depth == 0 && (type == CLEAT_NF4 || type == CLEAT_Q4) ? CLEAT_Q8 : type;
}

void cleat_model_choose_rule(void *model, const char *param, int rank, cleat_param_rule *rule) {
    const cleat_model *m = model;
    const cleat_param_options *options = &m->options.params;
    if (!options->decay_norm_bias && is_vector(param, rank)) rule->decay = 0;
    if (!needs_depths(options)) return;
    const int64_t layers = layers_of(m), depth = m->type->layer_of(m, param);
    rule->rate = (float)rate_of(options, depth, layers);
    if (depth > layers) return;
    rule->frozen = options->lora_rank > 0 ? !is_adapter(param) : depth < cleat_frozen_depths(options->freeze);
    if (rule->frozen) rule->blocks = frozen_type(m, param, depth);
}

void cleat_model_generation_rule(void *model, const char *param, int rank, cleat_param_rule *rule) {
    const cleat_model *m = model;
    (void)rank;
    rule->frozen = rule->streamed = true;
    const int64_t depth = m->type->layer_of(m, param);
    if (depth <= layers_of(m) && !is_adapter(param)) rule->blocks = frozen_type(m, param, depth);
}

/* The head is trained without adapters. */
static bool may_have_adapters(const void *user, const char *prefix) {
    const cleat_model *model = user;
    char param[CLEAT_NAME];
    snprintf(param, sizeof param, "%.55s.weight", prefix);
    return model->type->layer_of(model, param) <= layers_of(model);
}

cleat_lora cleat_model_lora(const cleat_model *model, cleat_mode mode) {
    const cleat_param_options *options = &model->options.params;
    if (options->lora_rank <= 0 || !model->type->layer_of || !model->type->layers) return (cleat_lora){0};
    return (cleat_lora){.rank = options->lora_rank,
                        .scale = (float)(options->lora_alpha / (double)options->lora_rank),
                        .dropout = mode == CLEAT_MODE_TRAIN ? (float)options->lora_dropout : 0,
                        .layers = options->lora_layers,
                        .may = may_have_adapters,
                        .user = model};
}

/* Writes the last components of the names of the blocks' matrices, each once. */
static void list_layers(const cleat_model *model, const cleat_store *store, char *text, size_t size) {
    const char *seen[CLEAT_MODEL_LAYERS];
    size_t count = 0, used = 0;
    const cleat_tensor *param;
    text[0] = 0;
    for (size_t i = 0; (param = cleat_store_param(store, i)) && count < CLEAT_MODEL_LAYERS && used < size; ++i) {
        char layer[CLEAT_NAME];
        const size_t length = strlen(param->name) - (ends_with(param->name, ".weight") ? sizeof ".weight" - 1 : 0);
        snprintf(layer, sizeof layer, "%.*s", (int)length, param->name);
        const char *dot = strrchr(layer, '.'), *component = dot ? dot + 1 : layer;
        bool known = param->rank != 2 || !may_have_adapters(model, layer) || model->type->layer_of(model, layer) < 1;
        char between[CLEAT_NAME + 2];
        snprintf(between, sizeof between, ".%s.", component);
        for (size_t k = 0; k < count; ++k) known = known || strstr(seen[k], between);
        if (known) continue;
        seen[count++] = param->name;
        used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", component);
    }
}

cleat_status cleat_model_check_adapters(const cleat_model *model, const cleat_store *store, cleat_error *error) {
    const cleat_tensor *param;
    char layers[256];
    if (model->options.params.lora_rank <= 0) return CLEAT_OK;
    for (size_t i = 0; (param = cleat_store_param(store, i)); ++i)
        if (is_adapter(param->name)) return CLEAT_OK;
    list_layers(model, store, layers, sizeof layers);
    if (!*layers)
        return cleat_fail(
            error, CLEAT_ERR_PROFILE,
            "train.lora_rank = %lld: model.type %s has no linear layers before its head: use train.freeze "
            "instead",
            (long long)model->options.params.lora_rank, model->type->name);
    return cleat_fail(
        error, CLEAT_ERR_PROFILE,
        "train.lora_layers = %s: no linear layer of the network has such a name; choose query, key or value "
        "if it has attention, all-linear, or some of %s",
        model->options.params.lora_layers, layers);
}

/* Llama, Mistral, Qwen2 and Qwen3 as transformers has them; what they share with Gemma and GPT-2. */
#include "models/published/llama.h"

#include "models/causal_lm.h"
#include "weights/config.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

/* Relative to "model.", but for the head. */
static const cleat_weight_row names[] = {
    {.param = "emb", .sources = {"embed_tokens"}},
    {.param = "blocks.*.n1", .sources = {"layers.*.input_layernorm"}},
    {.param = "blocks.*.att.q", .sources = {"layers.*.self_attn.q_proj"}},
    {.param = "blocks.*.att.kv", .sources = {"layers.*.self_attn.k_proj", "layers.*.self_attn.v_proj"}},
    {.param = "blocks.*.att.q_norm", .sources = {"layers.*.self_attn.q_norm"}},
    {.param = "blocks.*.att.k_norm", .sources = {"layers.*.self_attn.k_norm"}},
    {.param = "blocks.*.att.out", .sources = {"layers.*.self_attn.o_proj"}},
    {.param = "blocks.*.n2", .sources = {"layers.*.post_attention_layernorm"}},
    {.param = "blocks.*.mlp.gate_up", .sources = {"layers.*.mlp.gate_proj", "layers.*.mlp.up_proj"}},
    {.param = "blocks.*.mlp.down", .sources = {"layers.*.mlp.down_proj"}},
    {.param = "norm", .sources = {"norm"}},
    {.param = "head", .sources = {"lm_head"}, .head = true},
    {.param = NULL},
};

/* Buffers of older versions, and a head that is the table of embeddings. */
static const char *const ignored[] = {"*rotary_emb.inv_freq", "lm_head.weight", NULL};

#define ROWS CLEAT_CAUSAL_ROWS("1e-6", "false", "hidden_act", "\"silu\"")
static const cleat_config_row llama_config[] = {ROWS,
                                                {.key = "attention_bias", .fallback = "false", .only = "false"},
                                                {.key = "mlp_bias", .fallback = "false", .only = "false"},
                                                {.key = NULL}};
static const cleat_config_row mistral_config[] = {ROWS, {.key = NULL}};
static const cleat_config_row qwen2_config[] = {
    ROWS, {.key = "use_sliding_window", .fallback = "false", .only = "false"}, {.key = NULL}};
static const cleat_config_row qwen3_config[] = {ROWS,
                                                {.key = "attention_bias", .fallback = "false", .only = "false"},
                                                {.key = "use_sliding_window", .fallback = "false", .only = "false"},
                                                {.key = NULL}};

/* A member that is a whole number, if it exists. */
static cleat_status set_size(const cleat_weights *weights, const char *key, const char *setting,
                             const cleat_setting_sink *sink, cleat_error *error) {
    const cJSON *item;
    const cleat_status status = cleat_weights_member(weights, key, CLEAT_JSON_INTEGER | CLEAT_JSON_NULL, &item, error);
    if (status || !cJSON_IsNumber(item)) return status;
    return cleat_set_integer(sink, setting, (int64_t)item->valuedouble, key, error);
}

/* A number of an object of config.json, `path` of its members. */
cleat_status cleat_causal_set_number(const cleat_weights *weights, const char *object, const char *key,
                                     const char *setting, const cleat_setting_sink *sink, bool is_required,
                                     cleat_error *error) {
    char path[96], text[32];
    const cJSON *item;
    snprintf(path, sizeof path, "%s%s%s", object, *object ? "." : "", key);
    cleat_status status = cleat_weights_member(weights, path, CLEAT_JSON_NUMBER | CLEAT_JSON_NULL, &item, error);
    if (status) return status;
    if (!cJSON_IsNumber(item))
        return is_required ? cleat_fail(error, CLEAT_ERR_FORMAT, "%s/config.json: has no '%s'",
                                        cleat_weights_folder(weights), path)
                           : CLEAT_OK;
    cleat_number_print(item->valuedouble, text);
    return sink->set(sink->user, setting, text, path, error);
}

/* The scaling of rotary positions, which transformers 5 has in rope_parameters, older ones in rope_scaling. */
static cleat_status set_scaling(const cleat_weights *weights, const char *object, const cleat_setting_sink *sink,
                                cleat_error *error) {
    static const char *const llama3[][2] = {{"factor", "model.rope_factor"},
                                            {"low_freq_factor", "model.rope_low"},
                                            {"high_freq_factor", "model.rope_high"},
                                            {"original_max_position_embeddings", "model.rope_old_length"}};
    char path[96];
    const cJSON *type = NULL;
    cleat_status status = CLEAT_OK;
    for (int old = 0; old < 2 && !status && !cJSON_IsString(type); ++old) {
        snprintf(path, sizeof path, "%s.%s", object, old ? "type" : "rope_type");
        status = cleat_weights_member(weights, path, CLEAT_JSON_TEXT | CLEAT_JSON_NULL, &type, error);
    }
    if (status) return status;
    const char *name = cJSON_IsString(type) ? type->valuestring : "default";
    const bool is_llama3 = strcmp(name, "llama3") == 0;
    if (strcmp(name, "default") == 0) return CLEAT_OK;
    if (!is_llama3 && strcmp(name, "linear") != 0)
        return cleat_config_refuse(cleat_weights_folder(weights), "config.json", path, type,
                                   "a scaling of rotary positions that is supported: default, linear or llama3", error);
    status = sink->set(sink->user, "model.rope_scaling", name, path, error);
    for (int i = 0; i < (is_llama3 ? 4 : 1) && !status; ++i)
        status = cleat_causal_set_number(weights, object, llama3[i][0], llama3[i][1], sink, true, error);
    return status;
}

cleat_status cleat_causal_configure(const cleat_weights *weights, const char *rope, const cleat_setting_sink *sink,
                                    cleat_error *error) {
    const char *base = strncmp(rope, "rope_parameters", 15) == 0 ? rope : "";
    cleat_status status = set_size(weights, "num_key_value_heads", "model.kv_heads", sink, error);
    if (!status) status = set_size(weights, "head_dim", "model.head_size", sink, error);
    if (!status) status = cleat_causal_set_number(weights, base, "rope_theta", "model.rope_base", sink, false, error);
    if (!status) status = set_scaling(weights, rope, sink, error);
    if (!status)
        status = sink->set(sink->user, "data.vocabulary", cleat_weights_folder(weights), "the tokenizer", error);
    return status;
}

static cleat_status configure(const cleat_weights *weights, const cleat_setting_sink *sink, cleat_error *error) {
    const cJSON *rope = cJSON_GetObjectItemCaseSensitive(cleat_weights_config(weights), "rope_parameters");
    return cleat_causal_configure(weights, cJSON_IsObject(rope) ? "rope_parameters" : "rope_scaling", sink, error);
}

static cleat_status configure_mistral(const cleat_weights *weights, const cleat_setting_sink *sink,
                                      cleat_error *error) {
    const cleat_status status = configure(weights, sink, error);
    return status ? status : set_size(weights, "sliding_window", "model.window", sink, error);
}

bool cleat_causal_put(cJSON *config, const char *key, double value) {
    cJSON_DeleteItemFromObjectCaseSensitive(config, key);
    return cJSON_AddNumberToObject(config, key, value);
}

bool cleat_causal_describe(const cleat_model *model, cJSON *config) {
    static const char *const classes[] = {[CLEAT_CAUSAL_LLAMA] = "LlamaForCausalLM",
                                          [CLEAT_CAUSAL_MISTRAL] = "MistralForCausalLM",
                                          [CLEAT_CAUSAL_QWEN2] = "Qwen2ForCausalLM",
                                          [CLEAT_CAUSAL_QWEN3] = "Qwen3ForCausalLM",
                                          [CLEAT_CAUSAL_GEMMA3] = "Gemma3ForCausalLM"};
    const cleat_causal_settings *s = model->settings;
    const cleat_llama shape = cleat_causal_shape(model);
    cJSON *array = cJSON_AddArrayToObject(config, "architectures");
    bool done = array && cJSON_AddItemToArray(array, cJSON_CreateString(classes[s->network])) &&
                cJSON_AddNumberToObject(config, "num_key_value_heads", (double)shape.kv_heads) &&
                cJSON_AddNumberToObject(config, "head_dim", (double)shape.head) &&
                cJSON_AddNumberToObject(config, "rope_theta", s->rope_base) &&
                cleat_causal_put(config, "vocab_size", (double)shape.vocabulary);
    if (done && s->network == CLEAT_CAUSAL_MISTRAL)
        done = shape.window ? cJSON_AddNumberToObject(config, "sliding_window", (double)shape.window) != NULL
                            : cJSON_AddNullToObject(config, "sliding_window") != NULL;
    if (done && s->rope_scaling != CLEAT_ROPE_NONE) {
        cJSON *scaling = cJSON_AddObjectToObject(config, "rope_scaling");
        done = scaling && cJSON_AddStringToObject(scaling, "rope_type", cleat_rope_scaling_names[s->rope_scaling]) &&
               cJSON_AddNumberToObject(scaling, "factor", s->rope_factor);
        if (done && s->rope_scaling == CLEAT_ROPE_LLAMA3)
            done = cJSON_AddNumberToObject(scaling, "low_freq_factor", s->rope_low) &&
                   cJSON_AddNumberToObject(scaling, "high_freq_factor", s->rope_high) &&
                   cJSON_AddNumberToObject(scaling, "original_max_position_embeddings", (double)s->rope_old_length);
    }
    return done;
}

static const char members[] =
    " attention_bias head_dim mlp_bias num_key_value_heads rms_norm_eps rope_parameters rope_scaling rope_theta "
    "sliding_window use_sliding_window layer_types max_window_layers pretraining_tp ";

#define CAUSAL(NAME, CONFIG, CONFIGURE)                                                                                \
    {                                                                                                                  \
        .name = NAME, .base = "model.", .names = names, .ignored = ignored, .config = CONFIG, .members = members,      \
        .configure = CONFIGURE, .describe = cleat_causal_describe                                                      \
    }
static const cleat_architecture architectures[] = {
    [CLEAT_CAUSAL_LLAMA] = CAUSAL("llama", llama_config, configure),
    [CLEAT_CAUSAL_MISTRAL] = CAUSAL("mistral", mistral_config, configure_mistral),
    [CLEAT_CAUSAL_QWEN2] = CAUSAL("qwen2", qwen2_config, configure),
    [CLEAT_CAUSAL_QWEN3] = CAUSAL("qwen3", qwen3_config, configure),
};

/* By cleat_causal_network. */
const cleat_architecture *const cleat_published_causal[] = {&architectures[CLEAT_CAUSAL_LLAMA],
                                                            &architectures[CLEAT_CAUSAL_MISTRAL],
                                                            &architectures[CLEAT_CAUSAL_QWEN2],
                                                            &architectures[CLEAT_CAUSAL_QWEN3],
                                                            &cleat_published_gemma3,
                                                            &cleat_published_gpt2,
                                                            NULL};

const cleat_architecture *cleat_published_causal_of(int network) {
    return cleat_published_causal[network];
}

/* Gemma 3 as transformers has it: the network of texts (gemma3_text). */
#include "models/causal_lm.h"
#include "models/published/llama.h"
#include "weights/config.h"

#include <cjson/cJSON.h>
#include <string.h>

/* A norm multiplies by 1 + weight, which is the parameter here: in a training of all weights, weight decay draws it
 * to 0 (train.decay_norm_bias = false: not at all), and in transformers to 1. */
#define NORM(PARAM, SOURCE)                                                                                            \
    { .param = PARAM, .sources = {SOURCE}, .added = 1 }
static const cleat_weight_row names[] = {
    {.param = "emb", .sources = {"embed_tokens"}},
    NORM("blocks.*.n1", "layers.*.input_layernorm"),
    {.param = "blocks.*.att.q", .sources = {"layers.*.self_attn.q_proj"}},
    {.param = "blocks.*.att.kv", .sources = {"layers.*.self_attn.k_proj", "layers.*.self_attn.v_proj"}},
    NORM("blocks.*.att.q_norm", "layers.*.self_attn.q_norm"),
    NORM("blocks.*.att.k_norm", "layers.*.self_attn.k_norm"),
    {.param = "blocks.*.att.out", .sources = {"layers.*.self_attn.o_proj"}},
    NORM("blocks.*.n1_end", "layers.*.post_attention_layernorm"),
    NORM("blocks.*.n2", "layers.*.pre_feedforward_layernorm"),
    {.param = "blocks.*.mlp.gate_up", .sources = {"layers.*.mlp.gate_proj", "layers.*.mlp.up_proj"}},
    {.param = "blocks.*.mlp.down", .sources = {"layers.*.mlp.down_proj"}},
    NORM("blocks.*.n2_end", "layers.*.post_feedforward_layernorm"),
    NORM("norm", "norm"),
    {.param = "head", .sources = {"lm_head"}, .head = true},
    {.param = NULL},
};

static const char *const ignored[] = {"*rotary_emb.inv_freq", "lm_head.weight", NULL};

#define NO_CAP "cleat lacks the soft caps of Gemma 2, cap * tanh(x / cap); use Gemma 3"
static const cleat_config_row config[] = {
    {.key = "text_config",
     .fallback = "null",
     .only = "null",
     .remedy = "cleat lacks the vision part of Gemma 3: use its GGUF file, or copy model.language_model into a "
               "Gemma3ForCausalLM of transformers and save that"},
    {.key = "attn_logit_softcapping", .fallback = "null", .only = "null", .remedy = NO_CAP},
    {.key = "final_logit_softcapping", .fallback = "null", .only = "null", .remedy = NO_CAP},
    CLEAT_CAUSAL_ROWS("1e-6", "true", "hidden_activation", "\"gelu_pytorch_tanh\""),
    {.key = "query_pre_attn_scalar", .setting = "model.query_scalar", .fallback = "256", .kind = CLEAT_JSON_NUMBER},
    {.key = "sliding_window", .setting = "model.window", .fallback = "4096"},
    {.key = "attention_bias", .fallback = "false", .only = "false"},
    {.key = "use_bidirectional_attention", .fallback = "false", .only = "false"},
    {.key = NULL}};

/* The rows above tell why two relatives are refused. */
static bool matches(const cleat_weights *weights) {
    const char *type = cleat_weights_config_text(weights, "model_type");
    return type && (strcmp(type, "gemma3_text") == 0 || strcmp(type, "gemma3") == 0 || strcmp(type, "gemma2") == 0);
}

static bool is_global(const cJSON *type) {
    return cJSON_IsString(type) && strcmp(type->valuestring, "full_attention") == 0;
}

/* The numbers of the layers without a window, from 1, must be the multiples of one number, which older files have. */
static cleat_status set_global(const cleat_weights *weights, const cleat_setting_sink *sink, cleat_error *error) {
    static const char key[] = "layer_types", setting[] = "model.global_every";
    const cJSON *types, *type;
    int64_t every, layers;
    int at = 0;
    cleat_status status = cleat_weights_integer(weights, "sliding_window_pattern", 6, &every, error);
    if (!status) status = cleat_weights_integer(weights, "num_hidden_layers", 0, &layers, error);
    if (!status) status = cleat_weights_member(weights, key, CLEAT_JSON_TEXTS | CLEAT_JSON_NULL, &types, error);
    if (status || !types)
        return status ? status : cleat_set_integer(sink, setting, every, "sliding_window_pattern", error);
    every = 0;
    cJSON_ArrayForEach(type, types) {
        ++at;
        if (every == 0 && is_global(type)) every = at;
        if (is_global(type) == (every > 0 && at % every == 0) &&
            (is_global(type) || strcmp(type->valuestring, "sliding_attention") == 0))
            continue;
        at = -1;
        break;
    }
    if (at != layers)
        return cleat_config_refuse(cleat_weights_folder(weights), "config.json", key, types,
                                   "sliding_attention, but full_attention for the multiples of one number, for "
                                   "num_hidden_layers layers; use other weights",
                                   error);
    return every ? cleat_set_integer(sink, setting, every, key, error)
                 : sink->set(sink->user, setting, "none", key, error);
}

/* Layers with a window have a base of their own, and no scaling. */
static cleat_status configure(const cleat_weights *weights, const cleat_setting_sink *sink, cleat_error *error) {
    static const char local[] = "rope_parameters.sliding_attention", local_base[] = "model.local_rope_base";
    const cJSON *rope, *type;
    cleat_status status = cleat_weights_member(weights, "rope_parameters.full_attention",
                                               CLEAT_JSON_OBJECT | CLEAT_JSON_NULL, &rope, error);
    if (!status)
        status = cleat_weights_member(weights, "rope_parameters.sliding_attention.rope_type",
                                      CLEAT_JSON_TEXT | CLEAT_JSON_NULL, &type, error);
    if (!status && type && strcmp(type->valuestring, "default") != 0)
        status = cleat_config_refuse(cleat_weights_folder(weights), "config.json", local, type, "default", error);
    if (!status)
        status = cleat_causal_configure(weights, rope ? "rope_parameters.full_attention" : "rope_scaling", sink, error);
    if (!status) status = cleat_causal_set_number(weights, "", "rope_local_base_freq", local_base, sink, false, error);
    if (!status && rope) status = cleat_causal_set_number(weights, local, "rope_theta", local_base, sink, false, error);
    /* The usual bases, for files that lack them: the first value that a setting gets is kept. */
    if (!status) status = sink->set(sink->user, "model.rope_base", "1000000", "rope_theta", error);
    if (!status) status = sink->set(sink->user, local_base, "10000", "rope_local_base_freq", error);
    return status ? status : set_global(weights, sink, error);
}

static bool describe(const cleat_model *model, cJSON *made) {
    const cleat_causal_settings *s = model->settings;
    const cleat_llama shape = cleat_causal_shape(model);
    const double scalar = s->query_scalar == CLEAT_AUTO ? (double)shape.head : s->query_scalar;
    bool done = cleat_causal_describe(model, made);
    cJSON *types = cJSON_AddArrayToObject(made, "layer_types");
    done = done && cleat_causal_put(made, "query_pre_attn_scalar", scalar) &&
           cleat_causal_put(made, "sliding_window", (double)(shape.window ? shape.window : s->max_positions)) &&
           cJSON_AddNumberToObject(made, "rope_local_base_freq",
                                   s->local_rope_base > 0 ? s->local_rope_base : s->rope_base);
    for (int64_t i = 1; i <= s->layers && done; ++i) {
        const bool global = !shape.window || (s->global_every && i % s->global_every == 0);
        done = cJSON_AddItemToArray(types, cJSON_CreateString(global ? "full_attention" : "sliding_attention"));
    }
    return done;
}

const cleat_architecture cleat_published_gemma3 = {
    .name = "gemma3_text",
    .base = "model.",
    .names = names,
    .ignored = ignored,
    .config = config,
    .members =
        " attention_bias attn_logit_softcapping final_logit_softcapping head_dim hidden_activation layer_types "
        "num_key_value_heads query_pre_attn_scalar rms_norm_eps rope_local_base_freq rope_parameters rope_scaling "
        "rope_theta sliding_window _sliding_window_pattern sliding_window_pattern text_config "
        "use_bidirectional_attention ",
    .matches = matches,
    .configure = configure,
    .describe = describe};

/* GPT-2 as transformers has it. */
#include "models/causal_lm.h"
#include "models/published/llama.h"
#include "weights/config.h"
#include "weights/layout.h"

#include <cjson/cJSON.h>

/* Relative to "transformer.", but for the head. Linear layers are Conv1D, whose weights are [in, out]. */
#define CONV1D(PARAM, SOURCE)                                                                                          \
    { .param = PARAM, .sources = {SOURCE}, .rank = CLEAT_TRANSPOSED }
static const cleat_weight_row names[] = {
    {.param = "emb.position", .sources = {"wpe.weight"}},
    {.param = "emb", .sources = {"wte"}},
    {.param = "blocks.*.n1", .sources = {"h.*.ln_1"}},
    CONV1D("blocks.*.att.c_attn", "h.*.attn.c_attn"),
    CONV1D("blocks.*.att.out", "h.*.attn.c_proj"),
    {.param = "blocks.*.n2", .sources = {"h.*.ln_2"}},
    CONV1D("blocks.*.mlp.up", "h.*.mlp.c_fc"),
    CONV1D("blocks.*.mlp.down", "h.*.mlp.c_proj"),
    {.param = "norm", .sources = {"ln_f"}},
    {.param = "head", .sources = {"lm_head"}, .head = true},
    {.param = NULL},
};

/* Masks that older versions saved, and a head that is the table of embeddings. */
static const char *const ignored[] = {"*.attn.bias", "*.attn.masked_bias", "lm_head.weight", NULL};

static const cleat_config_row config[] = {
    {.key = "model_type", .setting = "model.network", .kind = CLEAT_JSON_TEXT},
    {.key = "vocab_size", .setting = "model.embedding_rows"},
    {.key = "n_embd", .setting = "model.d_model"},
    {.key = "n_head", .setting = "model.heads"},
    {.key = "n_layer", .setting = "model.layers"},
    {.key = "n_positions", .setting = "model.max_positions", .fallback = "1024"},
    {.key = "layer_norm_epsilon", .setting = "model.norm_eps", .fallback = "1e-5", .kind = CLEAT_JSON_NUMBER},
    {.key = "tie_word_embeddings", .setting = "model.tied", .fallback = "true", .kind = CLEAT_JSON_BOOL},
    {.key = "activation_function", .fallback = "\"gelu_new\"", .only = "\"gelu_new\""},
    {.key = "scale_attn_weights", .fallback = "true", .only = "true"},
    {.key = "scale_attn_by_inverse_layer_idx", .fallback = "false", .only = "false"},
    {.key = "add_cross_attention", .fallback = "false", .only = "false"},
    {.key = NULL}};

static cleat_status configure(const cleat_weights *weights, const cleat_setting_sink *sink, cleat_error *error) {
    int64_t width = 0;
    const cJSON *inner;
    cleat_status status = cleat_weights_integer(weights, "n_embd", 0, &width, error);
    if (!status) status = cleat_weights_member(weights, "n_inner", CLEAT_JSON_INTEGER | CLEAT_JSON_NULL, &inner, error);
    if (!status)
        status = cleat_set_integer(sink, "model.d_ff", inner ? (int64_t)inner->valuedouble : 4 * width,
                                   inner ? "n_inner" : "n_embd", error);
    if (!status)
        status = sink->set(sink->user, "data.vocabulary", cleat_weights_folder(weights), "the tokenizer", error);
    return status;
}

static bool describe(const cleat_model *model, cJSON *made) {
    const cleat_llama shape = cleat_causal_shape(model);
    cJSON *array = cJSON_AddArrayToObject(made, "architectures");
    return array && cJSON_AddItemToArray(array, cJSON_CreateString("GPT2LMHeadModel")) &&
           cleat_causal_put(made, "vocab_size", (double)shape.vocabulary) &&
           cleat_causal_put(made, "n_inner", (double)shape.d_ff);
}

const cleat_architecture cleat_published_gpt2 = {
    .name = "gpt2",
    .base = "transformer.",
    .names = names,
    .ignored = ignored,
    .config = config,
    .members = " activation_function n_ctx n_embd n_head n_inner n_layer n_positions layer_norm_epsilon "
               "reorder_and_upcast_attn scale_attn_by_inverse_layer_idx scale_attn_weights ",
    .configure = configure,
    .describe = describe};

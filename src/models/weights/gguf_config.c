/* The metadata of a GGUF file (llama.cpp's llama-arch.cpp) as config.json of transformers. */
#include "weights/gguf_network.h"

#include "core/string.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const cleat_gguf_config_row cleat_gguf_config_rows[] = {
    {"context_length", "max_position_embeddings", "n_positions", true, false},
    {"embedding_length", "hidden_size", "n_embd", true, false},
    {"block_count", "num_hidden_layers", "n_layer", true, false},
    {"feed_forward_length", "intermediate_size", "n_inner", true, false},
    {"attention.head_count", "num_attention_heads", "n_head", true, false},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps", NULL, true, true},
    {"attention.layer_norm_epsilon", NULL, "layer_norm_epsilon", true, true},
    {"attention.head_count_kv", "num_key_value_heads", NULL, false, false},
    {"attention.key_length", "head_dim", NULL, false, false},
    {"attention.sliding_window", "sliding_window", NULL, false, false},
    {"rope.freq_base", "rope_theta", NULL, false, true},
    {"attn_logit_softcapping", "attn_logit_softcapping", NULL, false, true},
    {"final_logit_softcapping", "final_logit_softcapping", NULL, false, true},
    {NULL, NULL, NULL, false, false},
};

typedef struct writer {
    const cleat_gguf *file;
    const char *name; /* of the architecture: the prefix of its keys */
    cJSON *config;
    bool failed; /* out of memory */
    cleat_error *error;
} writer;

/* The number of ARCHITECTURE.KEY, `fallback` if there is none; the same for all blocks if it is an array. */
static cleat_status read_number(const writer *w, const char *key, double fallback, double *value) {
    char full[160];
    snprintf(full, sizeof full, "%s.%s", w->name, key);
    const cleat_gguf_member *member = cleat_gguf_find(w->file, full);
    *value = member ? cleat_gguf_number(member, 0) : fallback;
    for (size_t i = 0; member && i < member->count; ++i)
        if (!(fabs(*value) <= 0x1p53) || cleat_gguf_number(member, i) != *value)
            return cleat_fail(w->error, CLEAT_ERR_NOT_SUPPORTED,
                              "%s: %s is not one finite number%s; use a model whose blocks are all alike",
                              cleat_gguf_path(w->file), full, member->is_array ? " for all blocks" : "");
    return CLEAT_OK;
}

/* The shortest number that has the same f32 value: 1e-05, not 9.99999974737875e-06. */
static double shorten(double value) {
    char text[32];
    double shorter = value;
    for (int digits = 6; digits <= 9 && (double)(float)value == value && value != floor(value); ++digits) {
        cleat_number_print_digits(value, digits, text);
        if (cleat_number_parse(text, &shorter) && (float)shorter == (float)value) return shorter;
    }
    return value;
}

static void put(writer *w, const char *key, double value) {
    w->failed |= !cJSON_AddNumberToObject(w->config, key, shorten(value));
}

static void put_text(writer *w, const char *key, const char *value) {
    w->failed |= !cJSON_AddStringToObject(w->config, key, value);
}

static void put_bool(writer *w, const char *key, bool value) {
    w->failed |= !cJSON_AddBoolToObject(w->config, key, value);
}

static double get(const writer *w, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(w->config, key);
    return item ? item->valuedouble : 0;
}

static cleat_status put_members(writer *w, bool is_gpt2) {
    for (const cleat_gguf_config_row *row = cleat_gguf_config_rows; row->there; ++row) {
        const char *here = is_gpt2 ? row->gpt2 : row->here;
        double value;
        cleat_status status = here ? read_number(w, row->there, NAN, &value) : CLEAT_OK;
        if (status) return status;
        if (here && isnan(value) && row->is_required)
            return cleat_fail(w->error, CLEAT_ERR_FORMAT, "%s: has no %s.%s; convert the model again",
                              cleat_gguf_path(w->file), w->name, row->there);
        if (here && !isnan(value)) put(w, here, value);
    }
    static const char *const tokens[] = {"bos", "eos", "padding"};
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; ++i) {
        char key[64], here[32];
        snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", tokens[i]);
        snprintf(here, sizeof here, "%.3s_token_id", tokens[i]);
        const double id = cleat_gguf_number(cleat_gguf_find(w->file, key), 0);
        if (isfinite(id)) put(w, here, id);
    }
    return CLEAT_OK;
}

static cleat_status refuse(const writer *w, const char *what, const char *value) {
    return cleat_fail(w->error, CLEAT_ERR_NOT_SUPPORTED, "%s: %s%s%.40s is not supported; use another model",
                      cleat_gguf_path(w->file), what, *value ? " " : "", value);
}

double cleat_gguf_llama3_factor(double theta, int64_t i, int64_t count, double factor, double low, double high,
                                double length) {
    const double wave = 2 * acos(-1) * pow(theta, (double)i / (double)count);
    const double smooth = fmin(fmax((length / wave - low) / (high - low), 0), 1);
    return 1 / ((1 - smooth) / factor + smooth);
}

/* Llama 3's factors of the wavelengths, which are computed from these values of its config.json; files have only the
 * results, [head_dim / 2] (rope_freqs.weight). */
static cleat_status put_llama3(writer *w, cJSON *scaling) {
    enum { MOST = 1024 };
    const double low = 1, high = 4, length = 8192, theta = get(w, "rope_theta");
    const cleat_gguf_tensor *tensor = cleat_gguf_find_tensor(w->file, "rope_freqs.weight");
    const int64_t count = (int64_t)get(w, "head_dim") / 2;
    float factors[MOST], largest = 0;
    if (tensor->type != CLEAT_GGUF_TYPE_F32 || tensor->rank != 1 || tensor->shape[0] != count || count > MOST)
        return refuse(w, "the shape or type of rope_freqs.weight", "");
    cleat_status status = cleat_gguf_read(w->file, tensor, 0, tensor->bytes, factors, w->error);
    if (status) return status;
    for (int64_t i = 0; i < count; ++i) largest = fmaxf(largest, factors[i]);
    for (int64_t i = 0; i < count; ++i) {
        const double factor = cleat_gguf_llama3_factor(theta, i, count, largest, low, high, length);
        if (!(fabs(factors[i] - factor) <= 1e-4 * factor))
            return refuse(w, "rope_freqs.weight, which is not that of Llama 3.1 to 3.3,", "");
    }
    w->failed |= !cJSON_AddStringToObject(scaling, "rope_type", "llama3") ||
                 !cJSON_AddNumberToObject(scaling, "factor", largest) ||
                 !cJSON_AddNumberToObject(scaling, "low_freq_factor", low) ||
                 !cJSON_AddNumberToObject(scaling, "high_freq_factor", high) ||
                 !cJSON_AddNumberToObject(scaling, "original_max_position_embeddings", length);
    return CLEAT_OK;
}

static cleat_status put_rotary(writer *w) {
    char key[160];
    double factor, rotated, width;
    const cleat_gguf_member *member;
    snprintf(key, sizeof key, "%s.rope.scaling.type", w->name);
    cleat_status status = cleat_gguf_expect(w->file, key, CLEAT_GGUF_ONE_TEXT, &member, w->error);
    if (!status) status = read_number(w, "rope.scaling.factor", 0, &factor);
    if (!status) status = read_number(w, "rope.dimension_count", get(w, "head_dim"), &rotated);
    if (!status) status = read_number(w, "attention.value_length", get(w, "head_dim"), &width);
    if (status) return status;
    const char *type = member ? member->texts[0].data : factor ? "linear" : "none";
    if (strcmp(type, "none") != 0 && strcmp(type, "linear") != 0) return refuse(w, key, type);
    if (cleat_gguf_find_tensor(w->file, "rope_factors_long.weight")) return refuse(w, "rope_factors_long.weight", "");
    if (rotated != get(w, "head_dim")) return refuse(w, "rope.dimension_count below the width of a head", "");
    if (width != get(w, "head_dim")) return refuse(w, "attention.value_length other than key_length", "");
    const bool is_llama3 = cleat_gguf_find_tensor(w->file, "rope_freqs.weight") != NULL;
    const bool is_linear = strcmp(type, "linear") == 0 && factor != 0 && factor != 1;
    if (is_llama3 && is_linear) return refuse(w, "rope_freqs.weight with rope.scaling.factor", "");
    if (!is_llama3 && !is_linear) return CLEAT_OK;
    cJSON *scaling = cJSON_AddObjectToObject(w->config, "rope_scaling");
    if (is_llama3 && scaling) return put_llama3(w, scaling);
    w->failed |= !cJSON_AddStringToObject(scaling, "rope_type", "linear") ||
                 !cJSON_AddNumberToObject(scaling, "factor", shorten(factor));
    return CLEAT_OK;
}

/* What files leave out because llama.cpp has it in its source. The models of 27 B scale queries by another width. */
static cleat_status put_gemma(writer *w, bool is_3) {
    double pattern = is_3 ? 6 : 2, local = 10000;
    const double layers = get(w, "num_hidden_layers"), is_27b = layers == (is_3 ? 62 : 46);
    cleat_status status = is_3 ? read_number(w, "rope.freq_base_swa", local, &local) : CLEAT_OK;
    if (status) return status;
    put_text(w, "hidden_activation", "gelu_pytorch_tanh");
    put(w, "query_pre_attn_scalar",
        is_27b ? get(w, "hidden_size") / get(w, "num_attention_heads") : get(w, "head_dim"));
    if (is_3) put(w, "rope_local_base_freq", local);
    if (!is_3 && !get(w, "sliding_window")) put(w, "sliding_window", 4096);
    if (!is_3 && !get(w, "attn_logit_softcapping")) put(w, "attn_logit_softcapping", 50);
    if (!is_3 && !get(w, "final_logit_softcapping")) put(w, "final_logit_softcapping", 30);
    cJSON *types = cJSON_AddArrayToObject(w->config, "layer_types");
    for (int i = 1; i <= (int)layers && !w->failed; ++i)
        w->failed |=
            !cJSON_AddItemToArray(types, cJSON_CreateString(i % (int)pattern ? "sliding_attention" : "full_attention"));
    return CLEAT_OK;
}

static cleat_status put_all(writer *w, const char *model_type) {
    const bool is_gpt2 = strcmp(w->name, "gpt2") == 0, is_gemma = strncmp(w->name, "gemma", 5) == 0;
    const cleat_gguf_tensor *words = cleat_gguf_find_tensor(w->file, "token_embd.weight");
    double experts;
    cleat_status status = read_number(w, "expert_count", 0, &experts);
    if (!status && experts) return refuse(w, "a mixture of experts (expert_count)", "");
    if (!status && (!words || words->rank != 2))
        return cleat_fail(w->error, CLEAT_ERR_FORMAT, "%s: has no token_embd.weight of two dimensions",
                          cleat_gguf_path(w->file));
    put_text(w, "model_type", model_type);
    if (!status) status = put_members(w, is_gpt2);
    if (status) return status;
    const double layers = get(w, is_gpt2 ? "n_layer" : "num_hidden_layers");
    if (!(layers >= 1 && layers <= (double)cleat_gguf_count(w->file)))
        return cleat_fail(w->error, CLEAT_ERR_FORMAT, "%s: %s.block_count is %g, but there are %zu tensors",
                          cleat_gguf_path(w->file), w->name, layers, cleat_gguf_count(w->file));
    put(w, "vocab_size", (double)words->shape[0]);
    put_bool(w, "tie_word_embeddings", is_gpt2 || !cleat_gguf_find_tensor(w->file, "output.weight"));
    if (is_gpt2) {
        put_text(w, "activation_function", "gelu_new");
        return CLEAT_OK;
    }
    const double heads = get(w, "num_attention_heads");
    if (!get(w, "num_key_value_heads")) put(w, "num_key_value_heads", heads);
    if (!get(w, "head_dim")) put(w, "head_dim", heads > 0 ? floor(get(w, "hidden_size") / heads) : 0);
    if (!get(w, "rope_theta")) put(w, "rope_theta", strcmp(w->name, "gemma3") == 0 ? 1e6 : 1e4);
    if (!is_gemma) put_text(w, "hidden_act", "silu");
    put_bool(w, "attention_bias", cleat_gguf_find_tensor(w->file, "blk.0.attn_q.bias") != NULL);
    if (strcmp(w->name, "llama") == 0)
        put_bool(w, "mlp_bias", cleat_gguf_find_tensor(w->file, "blk.0.ffn_up.bias") != NULL);
    if (is_gemma) status = put_gemma(w, w->name[5] == '3');
    return status ? status : put_rotary(w);
}

cleat_status cleat_gguf_config(const cleat_gguf *file, const cleat_gguf_architecture *architecture, cJSON **config,
                               cleat_error *error) {
    writer w = {.file = file, .name = architecture->there, .config = cJSON_CreateObject(), .error = error};
    w.failed = !w.config;
    cleat_status status = put_all(&w, architecture->here);
    if (!status && w.failed)
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory reading it", cleat_gguf_path(file));
    if (status) {
        cJSON_Delete(w.config);
        return status;
    }
    *config = w.config;
    return CLEAT_OK;
}

/* Members of config.json, with checked types. */
#include "weights/config.h"

#include "core/string.h"
#include "json/member.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST_KEY = 64 };

static bool is_number(const cJSON *item) {
    return cJSON_IsNumber(item) && isfinite(item->valuedouble);
}

static bool are_numbers(const cJSON *list) {
    const cJSON *item;
    cJSON_ArrayForEach(item, list) {
        if (!is_number(item)) return false;
    }
    return cJSON_IsArray(list) && list->child;
}

static bool are_texts(const cJSON *list) {
    const cJSON *item;
    cJSON_ArrayForEach(item, list) {
        if (!cJSON_IsString(item)) return false;
    }
    return cJSON_IsArray(list);
}

static bool is_of(const cJSON *item, int kind) {
    switch (kind) {
    case CLEAT_JSON_INTEGER:
        return is_number(item) && item->valuedouble == floor(item->valuedouble) && fabs(item->valuedouble) <= 1e15;
    case CLEAT_JSON_NUMBER:
        return is_number(item);
    case CLEAT_JSON_BOOL:
        return cJSON_IsBool(item);
    case CLEAT_JSON_TEXT:
        return cJSON_IsString(item);
    case CLEAT_JSON_NUMBERS:
        return are_numbers(item);
    case CLEAT_JSON_TEXTS:
        return are_texts(item);
    case CLEAT_JSON_OBJECT:
        return cJSON_IsObject(item);
    default:
        return cJSON_IsNull(item);
    }
}

static void name_kinds(int kinds, cleat_string *text) {
    static const char *const names[] = {"a whole number",    "a number",        "true or false", "a text in quotes",
                                        "a list of numbers", "a list of texts", "an object",     "null"};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); ++i)
        if (kinds & 1 << i) cleat_string_add(text, "%s%s", text->size ? " or " : "", names[i]);
}

cleat_status cleat_config_refuse(const char *folder, const char *file, const char *path, const cJSON *item,
                                 const char *wanted, cleat_error *error) {
    char *found = cJSON_PrintUnformatted(item);
    if (!found) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s/%s: out of memory", folder, file);
    cleat_status status = cleat_fail(error, CLEAT_ERR_FORMAT, "%s/%s: '%s' is %.60s%s; it must be %s", folder, file,
                                     path, found, strlen(found) > 60 ? "..." : "", wanted);
    cJSON_free(found);
    return status;
}

static cleat_status wrong_kind(const char *folder, const char *file, const char *path, const cJSON *item, int kinds,
                               cleat_error *error) {
    cleat_string wanted = {0};
    name_kinds(kinds, &wanted);
    cleat_status status = wanted.failed
                              ? cleat_fail(error, CLEAT_ERR_MEMORY, "%s/%s: out of memory", folder, file)
                              : cleat_config_refuse(folder, file, path, item, wanted.data ? wanted.data : "", error);
    cleat_string_free(&wanted);
    return status;
}

cleat_status cleat_config_member(const char *folder, const char *file, const cJSON *object, const char *path, int kinds,
                                 const cJSON **item, cleat_error *error) {
    char key[LONGEST_KEY];
    const char *rest = path;
    *item = NULL;
    while (object) {
        const size_t size = strcspn(rest, ".");
        const bool last = rest[size] == 0;
        snprintf(key, sizeof key, "%.*s", (int)size, rest);
        const cJSON *found = cJSON_GetObjectItemCaseSensitive(object, key);
        if (!found) return CLEAT_OK;
        const int wanted = last ? kinds : CLEAT_JSON_OBJECT | (kinds & CLEAT_JSON_NULL);
        bool good = false;
        for (int kind = 1; kind <= CLEAT_JSON_NULL; kind <<= 1) good = good || ((wanted & kind) && is_of(found, kind));
        snprintf(key, sizeof key, "%.*s", (int)(rest + size - path), path);
        if (!good) return wrong_kind(folder, file, key, found, wanted, error);
        if (cJSON_IsNull(found)) return CLEAT_OK;
        if (last) *item = found;
        if (last) return CLEAT_OK;
        object = found;
        rest += size + 1;
    }
    return CLEAT_OK;
}

cleat_status cleat_weights_member(const cleat_weights *weights, const char *path, int kinds, const cJSON **item,
                                  cleat_error *error) {
    return cleat_config_member(cleat_weights_folder(weights), "config.json", cleat_weights_config(weights), path, kinds,
                               item, error);
}

cleat_status cleat_weights_integer(const cleat_weights *weights, const char *path, int64_t fallback, int64_t *value,
                                   cleat_error *error) {
    const cJSON *item;
    cleat_status status = cleat_weights_member(weights, path, CLEAT_JSON_INTEGER, &item, error);
    if (!status) *value = item ? (int64_t)item->valuedouble : fallback;
    return status;
}

/* Members of config.json that an architecture reads or refuses; then those that do not affect the function of
 * a trained network: names, training, special tokens of generation, sizes of the tensors. */
static const char known_members[] =
    " activation architecture architectures attention_dropout attention_probs_dropout_prob channels "
    "classifier_dropout cls_dropout conv_kernel_size decoder_hidden_size depth depths dim dims "
    "downsample_in_bottleneck downsample_in_first_stage dropout embed_dim embedding_size global_pool hidden_act "
    "hidden_dim hidden_dropout_prob hidden_size hidden_sizes id2label img_size intermediate_size is_decoder "
    "layer_norm_eps layers legacy max_position_embeddings max_relative_positions mlp_ratios model_args model_type "
    "n_heads n_layers norm_rel_ebd num_attention_heads num_channels num_classes num_encoder_blocks num_heads "
    "num_hidden_layers num_labels pad_token_id patch_size patch_sizes pooler_dropout pooler_hidden_act "
    "pooler_hidden_size pos_att_type position_biased_input position_buckets position_embedding_type pretrained_cfg "
    "problem_type qkv_bias relative_attention reshape_last_stage seq_classif_dropout share_att_key sr_ratios strides "
    "tie_word_embeddings type_vocab_size vocab_size "
    "add_cross_attention base_width block bos_token_id chunk_size_feed_forward class_token classifier_dropout_prob "
    "cls_token_id conv_mlp directionality downsample_ratios drop_path_rate drop_rate dtype encoder_stride "
    "eos_token_id finetuning_task gradient_checkpointing image_size in_chans init_values initializer_factor "
    "initializer_range label2id label_descriptions label_names language layer_scale_init_value layer_type "
    "ls_init_value mask_token_id max_length mlp_ratio _model_name_or_path name _name_or_path num_features _num_labels "
    "num_stages "
    "out_features out_indices output_attentions output_hidden_states output_past pooler_act pooler_fc_size "
    "pooler_num_attention_heads pooler_num_fc_layers pooler_output_size pooler_size_per_head pooler_type qa_dropout "
    "return_dict semantic_loss_ignore_index sep_token_id sinusoidal_pos_embds stage_names summary_activation "
    "summary_last_dropout summary_type summary_use_proj tie_weights_ tokenizer_class torch_dtype torchscript "
    "transformers_version unk_token_id "
    "use_cache weight_init ";

void cleat_weights_name_unread(const cleat_weights *weights, const char *members) {
    const cJSON *config = cleat_weights_config(weights);
    char place[4200], known[sizeof known_members + 1024];
    snprintf(known, sizeof known, "%s%s", known_members, members ? members : "");
    snprintf(place, sizeof place, "%s/config.json", cleat_weights_folder(weights));
    cleat_json_name_unread(config, place, known, NULL, CLEAT_LOG_INFO);
    snprintf(place, sizeof place, "%s/config.json, model_args", cleat_weights_folder(weights));
    cleat_json_name_unread(cleat_json_member(config, "model_args"), place, known_members, NULL, CLEAT_LOG_INFO);
}

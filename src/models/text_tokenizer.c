/* The tokenizer's files in exports, which express less than cleat's settings, and the setting that it
 * overrides. */
#include "models/text_tokenizer.h"

#include "cleat/texts.h"
#include "core/files.h"
#include "tokenizer/tokenizer.h"
#include "json/member.h"

/* A vocabulary that cleat has learned: BertTokenizer would convert it to lower case, regardless of the
 * setting. */
static cleat_status make_tokenizer(const char *folder, bool lowercase, cleat_error *error) {
    char vocabulary[CLEAT_FILE_PATH], json[CLEAT_FILE_PATH];
    cleat_tokenizer *tokenizer = NULL;
    cleat_status status = cleat_path_join(folder, "vocab.txt", vocabulary, sizeof vocabulary, error);
    if (!status) status = cleat_path_join(folder, "tokenizer.json", json, sizeof json, error);
    if (status || !cleat_file_exists(vocabulary) || cleat_file_exists(json)) return status;
    status = cleat_tokenizer_load_vocab(vocabulary, lowercase, &tokenizer, error);
    if (!status) status = cleat_tokenizer_save_folder(tokenizer, folder, error);
    cleat_tokenizer_destroy(tokenizer);
    return status;
}

/* Writes a tokenizer.json that encodes texts as in training: it includes the settings that classes of other
 * libraries take from tokenizer_config.json, and each word of a tagger begins with a space. */
static cleat_status complete_pipeline(const char *folder, const cleat_tokenizer *tokenizer, bool words, bool *spaces,
                                      cleat_error *error) {
    char path[CLEAT_FILE_PATH];
    cJSON *json = NULL;
    bool changed = false;
    cleat_status status = cleat_path_join(folder, "tokenizer.json", path, sizeof path, error);
    if (!status) status = cleat_tokenizer_save(tokenizer, path, error);
    if (!status && words) status = cleat_json_read_file(folder, "tokenizer.json", &json, error);
    cJSON *step = cJSON_GetObjectItemCaseSensitive(json, "pre_tokenizer");
    if (!status) status = cleat_set_prefix_space(step, true, spaces, &changed, error);
    if (!status && changed) status = cleat_json_write_file(folder, "tokenizer.json", json, error);
    cJSON_Delete(json);
    return status;
}

/* --- tokenizer_config.json ------------------------------------------------------------------------------------ */

static bool add_settings(cJSON *config, const cleat_export_texts *texts, bool spaces) {
    static const char *const names[] = {"input_ids", "attention_mask", "token_type_ids"};
    bool added = true;
    if (!cJSON_HasObjectItem(config, "model_input_names")) {
        cJSON *list = cJSON_CreateStringArray(names, texts->token_types ? 3 : 2);
        added = list && cJSON_AddItemToObject(config, "model_input_names", list);
    }
    const cJSON *most = cJSON_GetObjectItemCaseSensitive(config, "model_max_length");
    if (added && !(cJSON_IsNumber(most) && most->valuedouble <= (double)texts->max_length)) {
        cJSON_DeleteItemFromObjectCaseSensitive(config, "model_max_length");
        added = cJSON_AddNumberToObject(config, "model_max_length", (double)texts->max_length) != NULL;
    }
    if (added && spaces) {
        cJSON_DeleteItemFromObjectCaseSensitive(config, "add_prefix_space");
        added = cJSON_AddTrueToObject(config, "add_prefix_space") != NULL;
    }
    return added;
}

/* Tokenizer classes of transformers rebuild the pipeline from the vocabulary and members of the
 * configuration. Without these members only tokenizer.json applies, with its own added tokens. */
static void remove_contradictions(cJSON *config) {
    cJSON_DeleteItemFromObjectCaseSensitive(config, "added_tokens_decoder");
    cJSON_DeleteItemFromObjectCaseSensitive(config, "auto_map");
    for (const cleat_json_rule *rule = cleat_tokenizer_rules; rule->key; ++rule)
        cJSON_DeleteItemFromObjectCaseSensitive(config, rule->key);
}

cleat_status cleat_export_tokenizer(const char *folder, const cleat_export_texts *texts, cleat_error *error) {
    static const char config_file[] = "tokenizer_config.json";
    char path[CLEAT_FILE_PATH];
    cJSON *config = NULL;
    cleat_tokenizer *tokenizer = NULL;
    bool spaces = false;
    cleat_status status = make_tokenizer(folder, texts->lowercase, error);
    if (!status) status = cleat_path_join(folder, "tokenizer.json", path, sizeof path, error);
    if (status || !cleat_file_exists(path)) return status;
    status = cleat_tokenizer_load(folder, texts->lowercase, &tokenizer, error);
    if (!status) status = complete_pipeline(folder, tokenizer, texts->words, &spaces, error);
    if (!status) status = cleat_json_read_file(folder, config_file, &config, error);
    if (!status && !config) config = cJSON_CreateObject();
    remove_contradictions(config);
    if (!status) status = cleat_tokenizer_describe(tokenizer, config, error);
    if (!status && !add_settings(config, texts, spaces))
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s/%s: out of memory", folder, config_file);
    if (!status) status = cleat_json_write_file(folder, config_file, config, error);
    cleat_tokenizer_destroy(tokenizer);
    cJSON_Delete(config);
    return status;
}

static cleat_status copy_files(const char *from, const char *to, cleat_error *error) {
    static const char *const names[] = {"tokenizer.json",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "vocab.txt",
                                        "vocab.json",
                                        "merges.txt",
                                        "sentencepiece.bpe.model",
                                        "spm.model",
                                        "chat_template.jinja",
                                        "generation_config.json"};
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names && !status; ++i) {
        char path[CLEAT_FILE_PATH];
        status = cleat_path_join(from, names[i], path, sizeof path, error);
        if (!status && cleat_file_exists(path)) status = cleat_file_copy(from, to, names[i], true, error);
    }
    return status;
}

cleat_status cleat_text_export(const cleat_model_export *spec, bool lowercase, int64_t max_length, bool words,
                               cleat_error *error) {
    const cleat_st_tensor *types = cleat_safetensors_find(spec->tensors, "emb.type.weight"); /* [types, D] */
    const cleat_export_texts texts = {
        .max_length = max_length, .token_types = types && types->shape[0] > 1, .lowercase = lowercase, .words = words};
    const cleat_status status = copy_files(spec->checkpoint, spec->out, error);
    return status ? status : cleat_export_tokenizer(spec->out, &texts, error);
}

bool cleat_text_overrides(const cleat_dataset *dataset, cleat_data_override *setting) {
    const cleat_tokenizer *tokenizer = cleat_text_tokenizer(dataset);
    if (!tokenizer) tokenizer = cleat_masked_tokenizer(dataset);
    if (!tokenizer || !cleat_tokenizer_is_published(tokenizer)) return false;
    *setting = (cleat_data_override){"lowercase", cleat_tokenizer_lowercase(tokenizer) ? "true" : "false",
                                     "the file of the tokenizer"};
    return true;
}

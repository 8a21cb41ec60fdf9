/* Writes the files of a tokenizer for other libraries: as they were loaded, or from a vocabulary. */
#include "tokenizer/tokenizer.h"

#include "core/files.h"
#include "core/json.h"

#include <string.h>

cleat_status cleat_tokenizer_describe(const cleat_tokenizer *tokenizer, cJSON *config, cleat_error *error) {
    static const char *const names[CLEAT_SPECIALS] = {
        [CLEAT_SPECIAL_PAD] = "pad_token", [CLEAT_SPECIAL_UNK] = "unk_token",   [CLEAT_SPECIAL_CLS] = "cls_token",
        [CLEAT_SPECIAL_SEP] = "sep_token", [CLEAT_SPECIAL_MASK] = "mask_token",
    };
    cJSON_DeleteItemFromObjectCaseSensitive(config, "tokenizer_class");
    bool done = cJSON_AddStringToObject(config, "tokenizer_class", "PreTrainedTokenizerFast");
    for (int i = 0; i < CLEAT_SPECIALS && done; ++i) {
        const char *piece = cleat_tokenizer_piece(tokenizer, tokenizer->specials[i]);
        if (!piece || cleat_json_member(config, names[i])) continue;
        cJSON_DeleteItemFromObjectCaseSensitive(config, names[i]); /* null */
        done = cJSON_AddStringToObject(config, names[i], piece);
    }
    return done ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a tokenizer_config.json");
}

static cleat_status write_config(const cleat_tokenizer *tokenizer, const char *folder, cleat_error *error) {
    cJSON *config = cJSON_CreateObject();
    cleat_status status = cleat_tokenizer_describe(tokenizer, config, error);
    if (!status) status = cleat_json_write_file(folder, "tokenizer_config.json", config, error);
    cJSON_Delete(config);
    return status;
}

static cleat_status write_loaded(const cleat_tokenizer *tokenizer, const char *folder, cleat_error *error) {
    const cleat_tokenizer_file *files = tokenizer->pipeline->files;
    char path[4096];
    bool has_config = false;
    cleat_status status = CLEAT_OK;
    for (int i = 0; i < CLEAT_TOKENIZER_FILES && !status; ++i) {
        if (!files[i].data) continue;
        has_config = has_config || strcmp(files[i].name, "tokenizer_config.json") == 0;
        status = cleat_path_join(folder, files[i].name, path, sizeof path, error);
        if (!status) status = cleat_file_write(path, files[i].data, files[i].size, error);
    }
    return !status && !has_config ? write_config(tokenizer, folder, error) : status;
}

cleat_status cleat_tokenizer_save_folder(const cleat_tokenizer *tokenizer, const char *folder, cleat_error *error) {
    char path[4096];
    cleat_string json = {0};
    if (!tokenizer || !folder) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "saving requires a tokenizer and a folder");
    if (tokenizer->pipeline) return write_loaded(tokenizer, folder, error);
    const bool lowercase = tokenizer->rules.lowercase;
    const cleat_bert_rules rules = {.lowercase = lowercase, .accents = lowercase, .ideographs = true, .basic = true};
    cleat_status status = cleat_path_join(folder, "vocab.txt", path, sizeof path, error);
    if (!status) status = cleat_tokenizer_save(tokenizer, path, error);
    if (!status) status = cleat_wordpiece_json(&tokenizer->vocabulary, &rules, &json, error);
    if (!status) status = cleat_file_write_in(folder, "tokenizer.json", &json, error);
    cleat_string_free(&json);
    return status ? status : write_config(tokenizer, folder, error);
}

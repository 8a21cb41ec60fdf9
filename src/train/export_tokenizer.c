/* Completes the files of an exported tokenizer, which say less than cleat's settings. */
#include "train/export_tokenizer.h"

#include "cleat/text.h"
#include "core/files.h"
#include "core/memory.h"
#include "text/tokenizer.h"

#include <cjson/cJSON.h>
#include <string.h>

enum { LONGEST_PATH = 1400 };

/* *json receives the file's object, which the caller deletes; NULL: there is no such file. */
static cleat_status read_json(const char *path, cJSON **json, cleat_error *error) {
    char *text;
    size_t size;
    *json = NULL;
    if (!cleat_file_exists(path)) return CLEAT_OK;
    cleat_status status = cleat_file_read(path, &text, &size, error);
    if (status) return status;
    *json = cJSON_ParseWithLength(text, size);
    cleat_free(text);
    return *json ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_FORMAT, "%s: not JSON; the file is damaged", path);
}

static cleat_status write_json(const char *path, const cJSON *json, cleat_error *error) {
    char *text = cJSON_Print(json);
    if (!text) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", path);
    cleat_status status = cleat_file_write(path, text, strlen(text), error);
    cJSON_free(text);
    return status;
}

/* A vocabulary that cleat has learned: BertTokenizer would convert it to lower case, whatever the setting was. */
static cleat_status make_tokenizer(const char *folder, bool lowercase, cleat_error *error) {
    char vocabulary[LONGEST_PATH], json[LONGEST_PATH];
    cleat_tokenizer *tokenizer = NULL;
    cleat_status status = cleat_path_join(folder, "vocab.txt", vocabulary, sizeof vocabulary, error);
    if (!status) status = cleat_path_join(folder, "tokenizer.json", json, sizeof json, error);
    if (status || !cleat_file_exists(vocabulary) || cleat_file_exists(json)) return status;
    status = cleat_tokenizer_load_vocab(vocabulary, lowercase, &tokenizer, error);
    if (!status) status = cleat_tokenizer_save_folder(tokenizer, folder, error);
    cleat_tokenizer_destroy(tokenizer);
    return status;
}

/* --- words that begin with a space ---------------------------------------------------------------------------- */

/* Sets add_prefix_space of the byte-level steps of a pre-tokenizer; whether there is one. */
static bool begin_with_space(cJSON *step) {
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(step, "type");
    bool found = false;
    if (cJSON_IsString(type) && strcmp(type->valuestring, "ByteLevel") == 0) {
        cJSON_DeleteItemFromObjectCaseSensitive(step, "add_prefix_space");
        return cJSON_AddTrueToObject(step, "add_prefix_space") != NULL;
    }
    cJSON *inner;
    cJSON_ArrayForEach(inner, cJSON_GetObjectItemCaseSensitive(step, "pretokenizers")) {
        if (begin_with_space(inner)) found = true;
    }
    return found;
}

static cleat_status complete_pipeline(const char *folder, bool *spaces, cleat_error *error) {
    char path[LONGEST_PATH];
    cJSON *json = NULL;
    cleat_status status = cleat_path_join(folder, "tokenizer.json", path, sizeof path, error);
    if (!status) status = read_json(path, &json, error);
    *spaces = !status && begin_with_space(cJSON_GetObjectItemCaseSensitive(json, "pre_tokenizer"));
    if (*spaces) status = write_json(path, json, error);
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
    if (added && !cJSON_HasObjectItem(config, "model_max_length"))
        added = cJSON_AddNumberToObject(config, "model_max_length", (double)texts->max_length) != NULL;
    if (added && spaces) {
        cJSON_DeleteItemFromObjectCaseSensitive(config, "add_prefix_space");
        added = cJSON_AddTrueToObject(config, "add_prefix_space") != NULL;
    }
    return added;
}

cleat_status cleat_export_tokenizer(const char *folder, const cleat_export_texts *texts, cleat_error *error) {
    char path[LONGEST_PATH];
    cJSON *config = NULL;
    bool spaces = false;
    cleat_status status = make_tokenizer(folder, texts->lowercase, error);
    if (!status && texts->words) status = complete_pipeline(folder, &spaces, error);
    if (!status) status = cleat_path_join(folder, "tokenizer_config.json", path, sizeof path, error);
    if (!status) status = read_json(path, &config, error);
    if (status || !config) return status;
    if (!add_settings(config, texts, spaces))
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", path);
    else
        status = write_json(path, config, error);
    cJSON_Delete(config);
    return status;
}

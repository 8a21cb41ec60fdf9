/* The tokenizer of a folder of Hugging Face as metadata of a GGUF file. */
#include "core/files.h"
#include "core/memory.h"
#include "tokenizer/tokenizer.h"
#include "weights/gguf_write.h"
#include "json/member.h"

#include <stdio.h>
#include <string.h>

/* Kinds of tokens in tokenizer.ggml.token_type. */
enum { NORMAL = 1, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE };

typedef struct vocabulary {
    const char *folder;
    cleat_gguf_head *head;
    const cJSON *json;  /* tokenizer.json */
    const char **words; /* [rows]; NULL: no token has this id */
    uint8_t *kinds;     /* [rows] */
    size_t rows;
    bool is_pieces; /* of SentencePiece */
    cleat_error *error;
} vocabulary;

static cleat_status refuse(const vocabulary *v, const char *what) {
    return cleat_fail(v->error, CLEAT_ERR_NOT_SUPPORTED,
                      "%s/tokenizer.json: GGUF has no name for %s; --format hf exports every tokenizer", v->folder,
                      what);
}

static cleat_status add_word(vocabulary *v, const char *word, double id, int kind) {
    if (!(id >= 0 && id < (double)v->rows))
        return cleat_fail(v->error, CLEAT_ERR_FORMAT,
                          "%s/tokenizer.json: the token '%.60s' has the id %g, but the network has %zu tokens",
                          v->folder, word, id, v->rows);
    v->words[(size_t)id] = word;
    v->kinds[(size_t)id] = (uint8_t)kind;
    return CLEAT_OK;
}

static bool is_byte(const char *word) {
    return strlen(word) == 6 && strncmp(word, "<0x", 3) == 0 && word[5] == '>';
}

static cleat_status collect_words(vocabulary *v, const cJSON *model) {
    const char *unknown = cleat_json_text(model, "unk_token");
    const cJSON *item;
    cleat_status status = CLEAT_OK;
    cJSON_ArrayForEach(item, cleat_json_member(model, "vocab")) {
        const bool byte = v->is_pieces && is_byte(item->string), none = unknown && strcmp(unknown, item->string) == 0;
        if (!status) status = add_word(v, item->string, item->valuedouble, byte ? BYTE : none ? UNKNOWN : NORMAL);
    }
    cJSON_ArrayForEach(item, cleat_json_member(v->json, "added_tokens")) {
        const char *word = cleat_json_text(item, "content");
        const bool special = cJSON_IsTrue(cleat_json_member(item, "special"));
        const bool none = unknown && word && strcmp(unknown, word) == 0;
        if (!status && word)
            status = add_word(v, word, cleat_json_number(item, "id"),
                              none      ? UNKNOWN
                              : special ? CONTROL
                                        : USER_DEFINED);
    }
    return status;
}

static void write_words(const vocabulary *v) {
    char unused[32];
    cleat_gguf_add_array(v->head, "tokenizer.ggml.tokens", CLEAT_GGUF_TEXT, v->rows);
    for (size_t i = 0; i < v->rows; ++i) {
        snprintf(unused, sizeof unused, "[PAD%zu]", i);
        cleat_gguf_add_words(v->head, v->words[i] ? v->words[i] : unused);
    }
    cleat_gguf_add_array(v->head, "tokenizer.ggml.token_type", CLEAT_GGUF_I32, v->rows);
    for (size_t i = 0; i < v->rows; ++i)
        cleat_gguf_add_item(v->head, CLEAT_GGUF_I32, v->words[i] ? v->kinds[i] : UNUSED);
    if (!v->is_pieces) return;
    /* SentencePiece merges the piece of the highest score first, and numbers pieces in the order of merging. */
    cleat_gguf_add_array(v->head, "tokenizer.ggml.scores", CLEAT_GGUF_F32, v->rows);
    for (size_t i = 0; i < v->rows; ++i)
        cleat_gguf_add_item(v->head, CLEAT_GGUF_F32, v->words[i] && v->kinds[i] == NORMAL ? -(double)i : 0);
}

/* Merges are texts, or pairs in newer files. */
static cleat_status write_merges(const vocabulary *v, const cJSON *merges) {
    const cJSON *item;
    cleat_string text = {0};
    cleat_gguf_add_array(v->head, "tokenizer.ggml.merges", CLEAT_GGUF_TEXT, (size_t)cJSON_GetArraySize(merges));
    cJSON_ArrayForEach(item, merges) {
        text.size = 0;
        const cJSON *first = cJSON_GetArrayItem(item, 0), *second = cJSON_GetArrayItem(item, 1);
        if (cJSON_IsString(item)) cleat_string_add(&text, "%s", item->valuestring);
        if (cJSON_IsString(first) && cJSON_IsString(second))
            cleat_string_add(&text, "%s %s", first->valuestring, second->valuestring);
        cleat_gguf_add_words(v->head, text.data ? text.data : "");
    }
    const bool failed = text.failed;
    cleat_string_free(&text);
    return failed ? cleat_fail(v->error, CLEAT_ERR_MEMORY, "%s: no memory for the merges", v->folder) : CLEAT_OK;
}

/* Whether `step` or a step in it has that type. */
static bool has_step(const cJSON *step, const char *list, const char *type) {
    const char *own = cleat_json_text(step, "type");
    const cJSON *item;
    bool found = own && strcmp(own, type) == 0;
    cJSON_ArrayForEach(item, cleat_json_member(step, list)) found |= has_step(item, list, type);
    return found;
}

static cleat_status write_model(vocabulary *v) {
    const cJSON *model = cleat_json_member(v->json, "model");
    const char *type = cleat_json_text(model, "type");
    if (!type || strcmp(type, "BPE") != 0) return refuse(v, type ? type : "a tokenizer without a model");
    char name[CLEAT_PRE_TOKENIZER];
    v->is_pieces = cJSON_IsTrue(cleat_json_member(model, "byte_fallback"));
    const char *pre =
        v->is_pieces ? "default" : cleat_pre_tokenizer_name(cleat_json_member(v->json, "pre_tokenizer"), name);
    if (!*pre) return refuse(v, "its pre_tokenizer");
    cleat_gguf_add_text(v->head, "tokenizer.ggml.model", v->is_pieces ? "llama" : "gpt2");
    cleat_gguf_add_text(v->head, "tokenizer.ggml.pre", pre);
    cleat_status status = collect_words(v, model);
    if (status) return status;
    write_words(v);
    const bool prefix = has_step(cleat_json_member(v->json, "normalizer"), "normalizers", "Prepend") ||
                        has_step(cleat_json_member(v->json, "pre_tokenizer"), "pretokenizers", "Metaspace");
    cleat_gguf_add_number(v->head, "tokenizer.ggml.add_space_prefix", CLEAT_GGUF_BOOL, v->is_pieces && prefix);
    return v->is_pieces ? CLEAT_OK : write_merges(v, cleat_json_member(model, "merges"));
}

/* Whether the template of the post-processor begins with a special token. */
static bool adds_start(const cJSON *step) {
    const cJSON *item;
    if (cJSON_HasObjectItem(cJSON_GetArrayItem(cleat_json_member(step, "single"), 0), "SpecialToken")) return true;
    cJSON_ArrayForEach(item, cleat_json_member(step, "processors")) {
        if (adds_start(item)) return true;
    }
    return false;
}

/* The id in config.json, or that of the token that tokenizer_config.json names; -1: there is none. */
static double find_id(const vocabulary *v, const cJSON *config, const cJSON *about, const char *name) {
    char key[32];
    snprintf(key, sizeof key, "%s_token_id", name);
    const cJSON *item = cleat_json_member(config, key);
    if (cJSON_IsArray(item)) item = cJSON_GetArrayItem(item, 0);
    if (cJSON_IsNumber(item)) return item->valuedouble;
    snprintf(key, sizeof key, "%s_token", name);
    const char *word = cleat_json_text(about, key);
    if (!word) word = cleat_json_text(cleat_json_member(about, key), "content");
    for (size_t i = 0; i < v->rows && word; ++i)
        if (v->words[i] && strcmp(v->words[i], word) == 0) return (double)i;
    return -1;
}

/* As in transformers, the file replaces the member of tokenizer_config.json. */
static cleat_status write_template(const vocabulary *v, const cJSON *about) {
    const char *text = cleat_json_text(about, "chat_template");
    char path[1400], *read = NULL;
    size_t size;
    cleat_status status = cleat_path_join(v->folder, "chat_template.jinja", path, sizeof path, v->error);
    if (!status && cleat_file_exists(path)) status = cleat_file_read_text(path, &read, &size, v->error);
    if (read || text) cleat_gguf_add_text(v->head, "tokenizer.chat_template", read ? read : text);
    cleat_free(read);
    return status;
}

static cleat_status write_ids(const vocabulary *v, const cJSON *config) {
    static const struct {
        const char *here, *there;
    } ids[] = {{"bos", "tokenizer.ggml.bos_token_id"},
               {"eos", "tokenizer.ggml.eos_token_id"},
               {"pad", "tokenizer.ggml.padding_token_id"}};
    cJSON *about = NULL;
    cleat_status status = cleat_json_read_file(v->folder, "tokenizer_config.json", &about, v->error);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; ++i) {
        const double id = find_id(v, config, about, ids[i].here);
        if (id >= 0) cleat_gguf_add_number(v->head, ids[i].there, CLEAT_GGUF_U32, id);
    }
    const cJSON *given = cleat_json_member(about, "add_bos_token");
    const bool start = given ? cJSON_IsTrue(given) : adds_start(cleat_json_member(v->json, "post_processor"));
    cleat_gguf_add_number(v->head, "tokenizer.ggml.add_bos_token", CLEAT_GGUF_BOOL, start);
    if (!status) status = write_template(v, about);
    cJSON_Delete(about);
    return status;
}

cleat_status cleat_gguf_add_tokenizer(cleat_gguf_head *head, const char *folder, const cJSON *config, size_t rows,
                                      cleat_error *error) {
    cJSON *json = NULL;
    cleat_status status = cleat_json_read_file(folder, "tokenizer.json", &json, error);
    if (!status && !json)
        status =
            cleat_fail(error, CLEAT_ERR_NOT_FOUND, "%s: has no tokenizer.json, which a GGUF file contains", folder);
    vocabulary v = {.folder = folder,
                    .head = head,
                    .json = json,
                    .words = cleat_alloc(rows, sizeof *v.words),
                    .kinds = cleat_alloc(rows, 1),
                    .rows = rows,
                    .error = error};
    if (!status && (!v.words || !v.kinds))
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for %zu tokens", folder, rows);
    if (!status) status = write_model(&v);
    if (!status) status = write_ids(&v, config);
    cleat_free(v.words);
    cleat_free(v.kinds);
    cJSON_Delete(json);
    return status;
}

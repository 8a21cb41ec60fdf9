/* Opens the tokenizers of published checkpoints: a folder, a tokenizer.json, or the older files. */
#include "text/json_read.h"
#include "text/tokenizer.h"

#include "core/files.h"
#include "core/memory.h"

#include <stdio.h>
#include <string.h>

/* files[] of a pipeline, in this order. */
enum { TOKENIZER, CONFIG, SPECIALS_MAP, VOCAB_TXT, VOCAB_JSON, MERGES, ADDED, MODEL };
static const char *const file_names[CLEAT_TOKENIZER_FILES] = {
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt", "vocab.json",
    "merges.txt",     "added_tokens.json",     "sentencepiece.bpe.model", "spm.model", "spiece.model"};

static void free_files(cleat_tokenizer_file *files) {
    for (int i = 0; i < CLEAT_TOKENIZER_FILES; ++i) cleat_free(files[i].data);
}

/* Reads those of the files that are in the folder. */
static cleat_status read_files(const char *folder, cleat_tokenizer_file *files, cleat_error *error) {
    char path[4096];
    cleat_status status = CLEAT_OK;
    for (int i = 0; i < CLEAT_TOKENIZER_FILES && status == CLEAT_OK; ++i) {
        files[i].name = file_names[i];
        status = cleat_path_join(folder, file_names[i], path, sizeof path, error);
        if (status == CLEAT_OK && cleat_file_exists(path))
            status = cleat_file_read(path, &files[i].data, &files[i].size, error);
    }
    return status;
}

/* --- special tokens ------------------------------------------------------------------------------------------- */

/* The text of a special token in a configuration: a string, or an object with 'content'. */
static const char *token_text(const cJSON *object, const char *name) {
    const cJSON *member = cleat_json_member(object, name);
    if (cJSON_IsObject(member)) member = cleat_json_member(member, "content");
    return cJSON_IsString(member) ? member->valuestring : NULL;
}

/* Finds a special token by the name that a configuration gives, else by the usual names. */
static int32_t find_special(const cleat_pipeline *p, const cJSON *const *configs, const char *key, const char *first,
                            const char *second) {
    for (int i = 0; i < 2; ++i) {
        const char *text = token_text(configs[i], key);
        int32_t id = text ? cleat_pipeline_id(p, text) : -1;
        if (id >= 0) return id;
    }
    int32_t id = cleat_pipeline_id(p, first);
    return id >= 0 ? id : cleat_pipeline_id(p, second);
}

static void find_specials(const cleat_pipeline *p, const cleat_tokenizer_file *files, int32_t *specials) {
    cJSON *config = files[CONFIG].data ? cJSON_Parse(files[CONFIG].data) : NULL;
    cJSON *map = files[SPECIALS_MAP].data ? cJSON_Parse(files[SPECIALS_MAP].data) : NULL;
    const cJSON *const configs[] = {config, map};
    const cleat_template *t = &p->templates[0];
    specials[CLEAT_SPECIAL_PAD] = find_special(p, configs, "pad_token", "[PAD]", "<pad>");
    specials[CLEAT_SPECIAL_MASK] = find_special(p, configs, "mask_token", "[MASK]", "<mask>");
    specials[CLEAT_SPECIAL_UNK] =
        p->model.unk >= 0 ? p->model.unk : find_special(p, configs, "unk_token", "[UNK]", "<unk>");
    specials[CLEAT_SPECIAL_CLS] = t->items[0].kind == CLEAT_TEMPLATE_TOKEN
                                      ? t->items[0].id
                                      : find_special(p, configs, "cls_token", "[CLS]", "<s>");
    specials[CLEAT_SPECIAL_SEP] = t->items[t->count - 1].kind == CLEAT_TEMPLATE_TOKEN
                                      ? t->items[t->count - 1].id
                                      : find_special(p, configs, "sep_token", "[SEP]", "</s>");
    cJSON_Delete(config);
    cJSON_Delete(map);
}

/* Creates a tokenizer of a pipeline, of which it takes ownership on success. */
static cleat_status tokenizer_of(cleat_pipeline *pipeline, cleat_tokenizer **tokenizer, cleat_error *error) {
    cleat_tokenizer *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a tokenizer");
    made->pipeline = pipeline;
    find_specials(pipeline, pipeline->files, made->specials);
    for (int pair = 0; pair < 2; ++pair) {
        made->templates[pair] = pipeline->templates[pair];
        pipeline->templates[pair] = (cleat_template){0};
    }
    *tokenizer = made;
    return CLEAT_OK;
}

/* --- older files ---------------------------------------------------------------------------------------------- */

/* NULL: there is none, or one of these, whose rules are those of BERT. */
static const char *other_class(const cJSON *config) {
    static const char *const known[] = {"Bert",        "DistilBert", "Electra",  "MobileBert",
                                        "SqueezeBert", "ConvBert",   "LayoutLM", "RetriBert"};
    const char *name = cJSON_GetStringValue(cleat_json_member(config, "tokenizer_class"));
    for (size_t i = 0; name && i < sizeof known / sizeof *known; ++i) {
        const size_t size = strlen(known[i]);
        if (strncmp(name, known[i], size) != 0) continue;
        if (strcmp(name + size, "Tokenizer") == 0 || strcmp(name + size, "TokenizerFast") == 0) return NULL;
    }
    return name;
}

/* What a tokenizer_config.json says of a vocab.txt. */
static cleat_status read_bert_rules(const cleat_tokenizer_file *config, bool lowercase, cleat_bert_rules *rules,
                                    cleat_error *error) {
    cJSON *root = config->data ? cJSON_ParseWithLength(config->data, config->size) : NULL;
    cleat_status status = CLEAT_OK;
    if (config->data && !root)
        status = cleat_fail(error, CLEAT_ERR_FORMAT, "tokenizer_config.json: not JSON; the file is damaged");
    if (status == CLEAT_OK && other_class(root))
        status = cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                            "tokenizer_config.json: tokenizer_class is %.60s; a vocab.txt is read by the rules of "
                            "BertTokenizer: save the tokenizer as tokenizer.json",
                            other_class(root));
    if (status == CLEAT_OK) status = cleat_member_bool(root, "do_lower_case", lowercase, &rules->lowercase, error);
    if (status == CLEAT_OK) status = cleat_member_bool(root, "strip_accents", rules->lowercase, &rules->accents, error);
    if (status == CLEAT_OK) status = cleat_member_bool(root, "tokenize_chinese_chars", true, &rules->ideographs, error);
    cJSON_Delete(root);
    return status;
}

/* Writes the tokenizer.json of a folder's older files into `files`. `place` is the path that messages name. */
static cleat_status write_json(const char *folder, const char *place, bool lowercase, cleat_tokenizer_file *files,
                               cleat_error *error) {
    cleat_text json = {0};
    char path[4096];
    cleat_vocabulary vocabulary = {0};
    cleat_bert_rules rules = {0};
    const cleat_tokenizer_file *model = NULL;
    cleat_status status = CLEAT_OK;
    for (int i = MODEL; i < CLEAT_TOKENIZER_FILES && !model; ++i)
        if (files[i].data) model = &files[i];
    if (files[VOCAB_TXT].data) {
        status = cleat_path_join(folder, file_names[VOCAB_TXT], path, sizeof path, error);
        if (status == CLEAT_OK) status = cleat_vocabulary_read(path, &vocabulary, error);
        if (status == CLEAT_OK) status = read_bert_rules(&files[CONFIG], lowercase, &rules, error);
        if (status == CLEAT_OK) status = cleat_wordpiece_json(&vocabulary, &rules, &json, error);
    } else if (files[VOCAB_JSON].data && files[MERGES].data) {
        status = cleat_byte_bpe_json(files[VOCAB_JSON].data, files[MERGES].data, folder, &json, error);
    } else if (model) {
        status = cleat_sentencepiece_json(model, &files[CONFIG], place, &json, error);
    } else {
        status = cleat_fail(error, CLEAT_ERR_NOT_FOUND,
                            "%s: no tokenizer in this folder; it must have a tokenizer.json, a vocab.txt, a vocab.json "
                            "and a merges.txt, or a sentencepiece.bpe.model or spm.model",
                            folder);
    }
    if (status == CLEAT_OK) files[TOKENIZER].size = json.size;
    if (status == CLEAT_OK) status = cleat_text_detach(&json, &files[TOKENIZER].data, error);
    cleat_text_free(&json);
    cleat_vocabulary_free(&vocabulary);
    return status;
}

/* --- what tokenizer_config.json changes ----------------------------------------------------------------------- */

/* The classes of BERT in transformers build the normaliser of a tokenizer.json anew by these members. */
static void change_normaliser(cleat_pipeline *p, cleat_normaliser *n, const cJSON *config, const char *place) {
    const cJSON *lowercase = cleat_json_member(config, "do_lower_case"),
                *accents = cleat_json_member(config, "strip_accents"),
                *ideographs = cleat_json_member(config, "tokenize_chinese_chars");
    const cleat_normaliser before = *n;
    if (cJSON_IsBool(lowercase)) n->lowercase = n->accents = cJSON_IsTrue(lowercase);
    if (cJSON_IsBool(accents)) n->accents = cJSON_IsTrue(accents);
    if (cJSON_IsBool(ideographs)) n->ideographs = cJSON_IsTrue(ideographs);
    if (n->lowercase == before.lowercase && n->accents == before.accents && n->ideographs == before.ideographs) return;
    cleat_log(CLEAT_LOG_WARNING,
              "%s: do_lower_case, strip_accents and tokenize_chinese_chars of tokenizer_config.json count, as in "
              "transformers; tokenizer.json says otherwise",
              place);
    p->lowercase = p->rules.lowercase = n->lowercase;
    p->bert = p->bert && n->accents == n->lowercase && n->ideographs;
}

static void heed_config(cleat_pipeline *p, const cleat_tokenizer_file *file, bool written, const char *place) {
    cJSON *config = file->data ? cJSON_ParseWithLength(file->data, file->size) : NULL;
    const char *side = cJSON_GetStringValue(cleat_json_member(config, "truncation_side"));
    if (side && strcmp(side, "right") != 0)
        cleat_log(CLEAT_LOG_WARNING,
                  "%s: truncation_side of tokenizer_config.json is %.20s; cleat drops the end of a long text", place,
                  side);
    if (!written && p->n_normalisers == 1 && p->normalisers[0].kind == CLEAT_NORMALISE_BERT &&
        cleat_json_member(config, "tokenizer_class") && !other_class(config))
        change_normaliser(p, &p->normalisers[0], config, place);
    cJSON_Delete(config);
}

/* --- opening -------------------------------------------------------------------------------------------------- */

/* Splits the path of a file into its folder and its name. */
static cleat_status split_path(const char *path, char folder[4096], const char **name, cleat_error *error) {
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    int length = slash ? snprintf(folder, 4096, "%.*s", (int)(slash - path), path) : snprintf(folder, 4096, ".");
    if (slash == path) length = snprintf(folder, 4096, "/");
    return length < 4096 ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_ARGUMENT, "path too long: %.100s...", path);
}

/* Warns of tokens of an added_tokens.json that the tokenizer does not have: older files alone do not say how they are
 * searched for. */
static void check_added(const cleat_pipeline *p, const cleat_tokenizer_file *file, const char *place) {
    cJSON *root = file->data ? cJSON_ParseWithLength(file->data, file->size) : NULL;
    const cJSON *token;
    cJSON_ArrayForEach(token, root) {
        if (!token->string || !cJSON_IsNumber(token) || cleat_pipeline_id(p, token->string) == token->valueint)
            continue;
        cleat_log(
            CLEAT_LOG_WARNING,
            "%s: the token '%.40s' (%d) of added_tokens.json is not used; save the tokenizer as tokenizer.json for "
            "that",
            place, token->string, token->valueint);
    }
    cJSON_Delete(root);
}

bool cleat_tokenizer_is_published_path(const char *path) {
    static const char *const marks[] = {"tokenizer.json", "tokenizer_config.json", "config.json"};
    char folder[4096], beside[4096];
    const char *name;
    if (cleat_folder_exists(path) || strcmp(cleat_name_ending(path), ".json") == 0 ||
        strcmp(cleat_name_ending(path), ".model") == 0)
        return true;
    if (split_path(path, folder, &name, NULL) != CLEAT_OK || strcmp(name, file_names[VOCAB_TXT]) != 0) return false;
    for (int i = 0; i < 3; ++i)
        if (cleat_path_join(folder, marks[i], beside, sizeof beside, NULL) == CLEAT_OK && cleat_file_exists(beside))
            return true;
    return false;
}

/* Drops tokenizer.json and those older files that `name`, one of them, is asked for instead of. */
static void keep_older(const char *name, cleat_tokenizer_file *files) {
    const bool merges = strcmp(name, file_names[VOCAB_JSON]) == 0;
    for (int i = 0; i < CLEAT_TOKENIZER_FILES; ++i) {
        bool companion = i == CONFIG || i == SPECIALS_MAP || i == ADDED || (merges && i == MERGES);
        if (companion || strcmp(name, file_names[i]) == 0) continue;
        cleat_free(files[i].data);
        files[i] = (cleat_tokenizer_file){.name = file_names[i]};
    }
}

static bool is_older(const char *name) {
    for (int i = VOCAB_TXT; i < CLEAT_TOKENIZER_FILES; ++i)
        if (i != MERGES && i != ADDED && strcmp(name, file_names[i]) == 0) return true;
    return false;
}

/* Reads the files that belong to the file of a path, which may have any name if it is a tokenizer.json. */
static cleat_status read_beside(const char *path, char folder[4096], cleat_tokenizer_file *files, cleat_error *error) {
    const char *name;
    cleat_status status = split_path(path, folder, &name, error);
    if (status == CLEAT_OK) status = read_files(folder, files, error);
    if (status != CLEAT_OK) return status;
    if (is_older(name)) {
        keep_older(name, files);
    } else if (strcmp(cleat_name_ending(name), ".model") == 0) {
        keep_older(file_names[MODEL], files);
        cleat_free(files[MODEL].data);
        files[MODEL].data = NULL;
        status = cleat_file_read(path, &files[MODEL].data, &files[MODEL].size, error);
    } else if (strcmp(name, file_names[TOKENIZER]) != 0 || !files[TOKENIZER].data) {
        cleat_free(files[TOKENIZER].data);
        files[TOKENIZER].data = NULL;
        status = cleat_file_read(path, &files[TOKENIZER].data, &files[TOKENIZER].size, error);
    }
    return status;
}

cleat_status cleat_tokenizer_open_published(const char *path, bool lowercase, cleat_tokenizer **tokenizer,
                                            cleat_error *error) {
    cleat_tokenizer_file files[CLEAT_TOKENIZER_FILES] = {{0}};
    char folder[4096];
    cleat_pipeline *pipeline = NULL;
    bool whole = cleat_folder_exists(path);
    cleat_status status = whole ? read_files(path, files, error) : read_beside(path, folder, files, error);
    const bool written = status == CLEAT_OK && !files[TOKENIZER].data;
    if (written) status = write_json(whole ? path : folder, path, lowercase, files, error);
    if (status == CLEAT_OK)
        status = cleat_pipeline_parse(files[TOKENIZER].data, files[TOKENIZER].size, path, &pipeline, error);
    if (status != CLEAT_OK) {
        free_files(files);
        return status;
    }
    check_added(pipeline, &files[ADDED], path);
    heed_config(pipeline, &files[CONFIG], written, path);
    memcpy(pipeline->files, files, sizeof files);
    status = tokenizer_of(pipeline, tokenizer, error);
    if (status != CLEAT_OK) cleat_pipeline_destroy(pipeline);
    return status;
}

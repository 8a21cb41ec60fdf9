/* Opens the tokenizers of published checkpoints: a folder, a tokenizer.json, or the older files. */
#include "tokenizer/json_read.h"
#include "tokenizer/tokenizer.h"

#include "core/files.h"
#include "core/memory.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* files[] of a pipeline, in this order. */
enum { TOKENIZER, CONFIG, SPECIALS_MAP, VOCAB_TXT, VOCAB_JSON, MERGES, ADDED, CHAT, GENERATION, MODEL };
static const char *const file_names[CLEAT_TOKENIZER_FILES] = {"tokenizer.json",
                                                              "tokenizer_config.json",
                                                              "special_tokens_map.json",
                                                              "vocab.txt",
                                                              "vocab.json",
                                                              "merges.txt",
                                                              "added_tokens.json",
                                                              "chat_template.jinja",
                                                              "generation_config.json",
                                                              "sentencepiece.bpe.model",
                                                              "spm.model",
                                                              "spiece.model",
                                                              "tokenizer.model"};

/* Reads those of the files that are in the folder. */
static cleat_status read_files(const char *folder, cleat_tokenizer_file *files, cleat_error *error) {
    char path[4096];
    cleat_status status = CLEAT_OK;
    for (int i = 0; i < CLEAT_TOKENIZER_FILES && !status; ++i) {
        files[i].name = file_names[i];
        status = cleat_path_join(folder, file_names[i], path, sizeof path, error);
        if (!status && cleat_file_exists(path))
            status = cleat_file_read_text(path, &files[i].data, &files[i].size, error);
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

static void find_specials(cleat_tokenizer *made) {
    const cleat_pipeline *p = made->pipeline;
    const cleat_tokenizer_file *files = p->files;
    int32_t *specials = made->specials;
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
    made->bos = find_special(p, configs, "bos_token", "", "");
    if (made->bos < 0 && t->items[0].kind == CLEAT_TEMPLATE_TOKEN) made->bos = t->items[0].id;
    made->eos = find_special(p, configs, "eos_token", "<|end_of_text|>", "<|endoftext|>");
    if (made->eos < 0) made->eos = find_special(p, configs, "eos_token", "<eos>", "</s>");
    cJSON_Delete(config);
    cJSON_Delete(map);
}

/* eos_token_id of generation_config.json: a number or a list. */
static void find_ends(cleat_tokenizer *made) {
    const cleat_tokenizer_file *file = &made->pipeline->files[GENERATION];
    cJSON *config = file->data ? cJSON_Parse(file->data) : NULL;
    const cJSON *ids = cleat_json_member(config, "eos_token_id"), *id = cJSON_IsArray(ids) ? ids->child : ids;
    for (; id && made->n_ends < CLEAT_TOKENIZER_ENDS; id = id->next)
        if (cJSON_IsNumber(id)) made->ends[made->n_ends++] = id->valueint;
    cJSON_Delete(config);
}

/* Creates a tokenizer from a pipeline and takes ownership of the pipeline on success. */
static cleat_status tokenizer_of(cleat_pipeline *pipeline, cleat_tokenizer **tokenizer, cleat_error *error) {
    cleat_tokenizer *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a tokenizer");
    made->pipeline = pipeline;
    find_specials(made);
    find_ends(made);
    for (int pair = 0; pair < 2; ++pair) {
        made->templates[pair] = pipeline->templates[pair];
        pipeline->templates[pair] = (cleat_template){0};
    }
    *tokenizer = made;
    return CLEAT_OK;
}

/* --- classes of transformers ---------------------------------------------------------------------------------- */

/* Their names and the types of their networks, in the form that is_of compares. */
static const char bert_names[] = " bert distilbert electra mobilebert squeezebert convbert layoutlm retribert "
                                 "megatronbert visualbert ernie nezha ";
static const char roberta_names[] = " roberta robertaprelayernorm longformer bart ibert ";

/* Whether the name of a class of transformers, without "Tokenizer" and "Fast", or the type of a network
 * ("xlm-roberta") is one of `names`, which are in lower case, without hyphens and each between two blanks. */
static bool is_of(const char *name, const char *names) {
    static const char *const endings[] = {"Fast", "Tokenizer"};
    char key[64] = " ";
    size_t size = strlen(name), used = 1;
    for (int i = 0; i < 2; ++i) {
        const size_t ending = strlen(endings[i]);
        if (size > ending && strncmp(name + size - ending, endings[i], ending) == 0) size -= ending;
    }
    if (size > sizeof key - 3) return false;
    for (size_t i = 0; i < size; ++i)
        if (name[i] != '-' && name[i] != '_') key[used++] = (char)tolower((unsigned char)name[i]);
    key[used] = ' ';
    return strstr(names, key) != NULL;
}

/* Parses a file that may be absent or damaged; the caller deletes the object. */
static cJSON *parse(const cleat_tokenizer_file *file) {
    return file->data ? cJSON_ParseWithLength(file->data, file->size) : NULL;
}

/* The class by which transformers chooses its tokenizer: tokenizer_class of tokenizer_config.json or
 * config.json, else the type of the network. "": unknown. */
static void find_class(const char *folder, const cJSON *config, char class[64]) {
    cJSON *object = NULL;
    const char *name = cJSON_GetStringValue(cleat_json_member(config, "tokenizer_class"));
    if (!name) (void)cleat_json_read_file(folder, "config.json", &object, NULL);
    if (!name) name = cJSON_GetStringValue(cleat_json_member(object, "tokenizer_class"));
    if (!name) name = cJSON_GetStringValue(cleat_json_member(object, "model_type"));
    snprintf(class, 64, "%.63s", name ? name : "");
    cJSON_Delete(object);
}

cleat_status cleat_tokenizer_expect(const char *class, const char *names, const char *what, cleat_error *error) {
    if (!*class || is_of(class, names)) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                      "tokenizer_class is %s (of tokenizer_config.json, else of config.json, else its model_type); %s: "
                      "save the tokenizer as tokenizer.json",
                      class, what);
}

/* --- older files ---------------------------------------------------------------------------------------------- */

/* Writes the tokenizer.json of a folder's older files into `files`. `place` is the path that messages name. */
static cleat_status write_json(const char *folder, const char *place, const char *class, bool lowercase,
                               cleat_tokenizer_file *files, cleat_error *error) {
    cleat_string json = {0};
    char path[4096];
    cleat_vocabulary vocabulary = {0};
    const cleat_bert_rules rules = {.lowercase = lowercase, .accents = lowercase, .ideographs = true};
    const cleat_tokenizer_file *model = NULL;
    cleat_status status = CLEAT_OK;
    for (int i = MODEL; i < CLEAT_TOKENIZER_FILES && !model; ++i)
        if (files[i].data) model = &files[i];
    if (files[VOCAB_TXT].data) {
        status = cleat_tokenizer_expect(class, bert_names, "a vocab.txt is read by the rules of BertTokenizer", error);
        if (!status) status = cleat_path_join(folder, file_names[VOCAB_TXT], path, sizeof path, error);
        if (!status) status = cleat_vocabulary_read(path, &vocabulary, error);
        if (!status) status = cleat_wordpiece_json(&vocabulary, &rules, &json, error);
    } else if (files[VOCAB_JSON].data && files[MERGES].data) {
        status = cleat_tokenizer_expect(class, roberta_names,
                                        "vocab.json and merges.txt are read by the rules of RobertaTokenizer", error);
        if (!status) status = cleat_byte_bpe_json(files[VOCAB_JSON].data, files[MERGES].data, folder, &json, error);
    } else if (model) {
        status = cleat_sentencepiece_json(model, &files[CONFIG], class, place, &json, error);
    } else {
        status = cleat_fail(error, CLEAT_ERR_NOT_FOUND,
                            "%s: no tokenizer in this folder; it must have a tokenizer.json, a vocab.txt, a vocab.json "
                            "and a merges.txt, or a sentencepiece.bpe.model, spm.model or tokenizer.model",
                            folder);
    }
    if (!status) files[TOKENIZER].size = json.size;
    if (!status) status = cleat_string_detach(&json, &files[TOKENIZER].data, error);
    cleat_string_free(&json);
    cleat_vocabulary_free(&vocabulary);
    return status;
}

/* --- what tokenizer_config.json changes ----------------------------------------------------------------------- */

/* Members that do not affect the ids of a text: those that are read here, then names, and options of
 * transformers' calls. */
static const char known_members[] =
    " add_bos_token add_eos_token add_prefix_space added_tokens_decoder cls_token do_lower_case mask_token "
    "model_max_length pad_token sep_token split_by_punct strip_accents tokenize_chinese_chars tokenizer_class "
    "unk_token "
    "_commit_hash additional_special_tokens backend bos_token chat_template clean_up_tokenization_spaces "
    "device_map eos_token errors extra_special_tokens from_slow full_tokenizer_file init_inputs is_local legacy "
    "local_files_only max_len max_length merges_file model_input_names model_specific_special_tokens "
    "name_or_path pad_to_multiple_of pad_token_type_id processor_class sp_model_kwargs "
    "spaces_between_special_tokens special_tokens_map_file stride tokenizer_file transformers_version "
    "trim_offsets truncation_strategy unk_id use_default_system_prompt use_fast vocab_file vocab_type ";

const cleat_json_rule cleat_tokenizer_rules[] = {
    {"truncation_side", "\"right\"", "cleat drops the end of a long text"},
    {"padding_side", "\"right\"", "cleat pads after the text"},
    {"do_basic_tokenize", "true", "cleat splits texts as if it were true"},
    {"split_special_tokens", "false", "cleat does not split special tokens in a text"},
    {0},
};

/* Reads the rules that `object` has under these names; the others keep their values. */
static cleat_status read_rules(const cJSON *object, const char *const names[3], cleat_bert_rules *rules,
                               cleat_error *error) {
    cleat_status status = cleat_member_bool(object, names[0], rules->lowercase, &rules->lowercase, error);
    if (cleat_json_member(object, names[0])) rules->accents = rules->lowercase;
    if (!status) status = cleat_member_bool(object, names[1], rules->accents, &rules->accents, error);
    return status ? status : cleat_member_bool(object, names[2], rules->ideographs, &rules->ideographs, error);
}

static cleat_status set_flag(cJSON *object, const char *name, bool value, cleat_error *error) {
    cJSON_DeleteItemFromObjectCaseSensitive(object, name);
    return cJSON_AddBoolToObject(object, name, value) ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "out of memory");
}

/* transformers' classes of BERT rebuild the normaliser of a tokenizer.json from members of the
 * configuration. */
static cleat_status set_rules(cJSON *normaliser, const cJSON *config, bool *changed, cleat_error *error) {
    static const char *const said[] = {"do_lower_case", "strip_accents", "tokenize_chinese_chars"},
                             *const names[] = {"lowercase", "strip_accents", "handle_chinese_chars"};
    cleat_bert_rules rules = {.lowercase = true, .accents = true, .ideographs = true};
    const cJSON *list = cleat_json_member(normaliser, "normalizers");
    if (cJSON_GetArraySize(list) == 1) normaliser = list->child;
    const char *type = cJSON_GetStringValue(cleat_json_member(normaliser, "type"));
    if (!type || strcmp(type, "BertNormalizer") != 0) return CLEAT_OK;
    cleat_status status = read_rules(normaliser, names, &rules, error);
    const cleat_bert_rules before = rules;
    if (!status) status = read_rules(config, said, &rules, error);
    *changed =
        rules.lowercase != before.lowercase || rules.accents != before.accents || rules.ideographs != before.ideographs;
    const bool values[] = {rules.lowercase, rules.accents, rules.ideographs};
    for (int i = 0; i < 3 && !status && *changed; ++i) status = set_flag(normaliser, names[i], values[i], error);
    return status;
}

cleat_status cleat_set_prefix_space(cJSON *step, bool value, bool *found, bool *changed, cleat_error *error) {
    const char *type = cJSON_GetStringValue(cleat_json_member(step, "type"));
    cJSON *inner;
    cleat_status status = CLEAT_OK;
    if (type && strcmp(type, "ByteLevel") == 0) {
        bool before = true;
        *found = true;
        status = cleat_member_bool(step, "add_prefix_space", true, &before, error);
        *changed = *changed || before != value;
        return status ? status : set_flag(step, "add_prefix_space", value, error);
    }
    cJSON_ArrayForEach(inner, cleat_json_member(step, "pretokenizers")) {
        if (!status) status = cleat_set_prefix_space(inner, value, found, changed, error);
    }
    return status;
}

/* Replaces the text of a tokenizer.json. */
static cleat_status print_json(const cJSON *root, cleat_tokenizer_file *file, cleat_error *error) {
    cleat_string text = {0};
    if (strstr(file->data, "\\u0000")) /* which ends cJSON's strings */
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                          "a token contains \\u0000, and tokenizer_config.json contradicts tokenizer.json");
    char *printed = cJSON_PrintUnformatted(root);
    if (printed) cleat_string_add_bytes(&text, printed, strlen(printed));
    cJSON_free(printed);
    if (!printed || text.failed) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a tokenizer.json");
    cleat_free(file->data);
    file->data = NULL;
    file->size = text.size;
    return cleat_string_detach(&text, &file->data, error);
}

/* Changes tokenizer.json if the class takes these settings from the configuration, so that the file alone determines
 * the encoding, also in checkpoints and exports. */
static cleat_status follow_config(const cJSON *config, const char *class, bool written, const char *place,
                                  cleat_tokenizer_file *file, cleat_error *error) {
    const bool bert = is_of(class, bert_names), roberta = is_of(class, roberta_names);
    bool found = false, changed = false, prefix = false;
    cJSON *root = bert || roberta ? cJSON_ParseWithLength(file->data, file->size) : NULL;
    cleat_status status = CLEAT_OK;
    if (bert) status = set_rules(cJSON_GetObjectItemCaseSensitive(root, "normalizer"), config, &changed, error);
    if (roberta && cleat_json_member(config, "add_prefix_space")) {
        status = cleat_member_bool(config, "add_prefix_space", false, &prefix, error);
        if (!status)
            status = cleat_set_prefix_space(cJSON_GetObjectItemCaseSensitive(root, "pre_tokenizer"), prefix, &found,
                                            &changed, error);
    }
    if (!status && changed && !written)
        cleat_log(CLEAT_LOG_WARNING,
                  "%s: do_lower_case, strip_accents, tokenize_chinese_chars and add_prefix_space of "
                  "tokenizer_config.json take precedence over tokenizer.json, as in transformers",
                  place);
    if (!status && changed) status = print_json(root, file, error);
    cJSON_Delete(root);
    return status ? cleat_fail_in(error, status, "%s", place) : CLEAT_OK;
}

/* Warns of settings of the configuration that are not used. */
static void name_unread(const cleat_tokenizer *made, const cJSON *config, const char *class, const char *place) {
    const cleat_pipeline *p = made->pipeline;
    const cleat_template *t = &made->templates[0];
    char file[4200];
    bool punctuation = false, space = true;
    for (size_t i = 0; i < p->n_splitters; ++i) {
        punctuation = punctuation || p->splitters[i].kind == CLEAT_SPLIT_PUNCTUATION;
        if (p->splitters[i].kind == CLEAT_SPLIT_METASPACE) space = p->splitters[i].prepend == CLEAT_PREPEND_ALWAYS;
    }
    const struct {
        const char *key, *classes; /* NULL: all */
        bool value;
    } rows[] = {{"do_lower_case", " debertav2 ", p->lowercase},
                {"split_by_punct", " debertav2 ", punctuation},
                {"add_prefix_space", " debertav2 xlmroberta ", space},
                {"add_bos_token", NULL, cleat_tokenizer_leading(made) > 0},
                {"add_eos_token", NULL, t->items[t->count - 1].kind == CLEAT_TEMPLATE_TOKEN}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        const cJSON *said = cleat_json_member(config, rows[i].key);
        if (cJSON_IsBool(said) && cJSON_IsTrue(said) != rows[i].value &&
            (!rows[i].classes || is_of(class, rows[i].classes)))
            cleat_log(CLEAT_LOG_WARNING, "%s: %s of tokenizer_config.json is not used; tokenizer.json takes precedence",
                      place, rows[i].key);
    }
    snprintf(file, sizeof file, "%s: tokenizer_config.json", place);
    cleat_json_name_unread(config, file, known_members, cleat_tokenizer_rules, CLEAT_LOG_WARNING);
}

static void check_token(const cleat_pipeline *p, const char *content, int id, const char *file, const char *place) {
    if (content && cleat_pipeline_id(p, content) != id)
        cleat_log(CLEAT_LOG_WARNING,
                  "%s: the token '%.40s' (%d) of %s is not used; save the tokenizer as tokenizer.json for that", place,
                  content, id, file);
}

/* Warns of tokens of added_tokens.json and tokenizer_config.json that the tokenizer lacks: these files do not
 * specify how all of them are searched for. */
static void check_added(const cleat_pipeline *p, const cJSON *config, const cleat_tokenizer_file *file,
                        const char *place) {
    cJSON *root = parse(file);
    const cJSON *token;
    cJSON_ArrayForEach(token, root) {
        if (cJSON_IsNumber(token)) check_token(p, token->string, token->valueint, file->name, place);
    }
    cJSON_ArrayForEach(token, cleat_json_member(config, "added_tokens_decoder")) {
        const char *content = cJSON_GetStringValue(cleat_json_member(token, "content"));
        if (token->string) check_token(p, content, atoi(token->string), file_names[CONFIG], place);
    }
    cJSON_Delete(root);
}

bool cleat_tokenizer_is_published_path(const char *path) {
    static const char *const marks[] = {"tokenizer.json", "tokenizer_config.json", "config.json"};
    char folder[4096], beside[4096];
    if (cleat_folder_exists(path) || strcmp(cleat_name_ending(path), ".json") == 0 ||
        strcmp(cleat_name_ending(path), ".model") == 0)
        return true;
    const char *name = cleat_path_split(path, folder, sizeof folder);
    if (!name || strcmp(name, file_names[VOCAB_TXT]) != 0) return false;
    for (int i = 0; i < 3; ++i)
        if (cleat_path_join(folder, marks[i], beside, sizeof beside, NULL) == CLEAT_OK && cleat_file_exists(beside))
            return true;
    return false;
}

/* Drops tokenizer.json and the older files, except `name` and its companions. */
static void keep_older(const char *name, cleat_tokenizer_file *files) {
    const bool merges = strcmp(name, file_names[VOCAB_JSON]) == 0;
    for (int i = 0; i < CLEAT_TOKENIZER_FILES; ++i) {
        bool companion =
            i == CONFIG || i == SPECIALS_MAP || i == ADDED || i == CHAT || i == GENERATION || (merges && i == MERGES);
        if (companion || strcmp(name, file_names[i]) == 0) continue;
        cleat_free(files[i].data);
        files[i] = (cleat_tokenizer_file){.name = file_names[i]};
    }
}

static bool is_older(const char *name) {
    for (int i = VOCAB_TXT; i < CLEAT_TOKENIZER_FILES; ++i)
        if (i != MERGES && i != ADDED && i != CHAT && i != GENERATION && strcmp(name, file_names[i]) == 0) return true;
    return false;
}

/* Reads the files that belong to the file of a path, which may have any name if it is a tokenizer.json. */
static cleat_status read_beside(const char *path, char folder[4096], cleat_tokenizer_file *files, cleat_error *error) {
    const char *name = cleat_path_split(path, folder, 4096);
    if (!name) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "path too long: %.100s...", path);
    cleat_status status = read_files(folder, files, error);
    if (status) return status;
    if (is_older(name)) {
        keep_older(name, files);
    } else if (strcmp(cleat_name_ending(name), ".model") == 0) {
        keep_older(file_names[MODEL], files);
        cleat_free(files[MODEL].data);
        files[MODEL].data = NULL;
        status = cleat_file_read_text(path, &files[MODEL].data, &files[MODEL].size, error);
    } else if (strcmp(name, file_names[TOKENIZER]) != 0 || !files[TOKENIZER].data) {
        cleat_free(files[TOKENIZER].data);
        files[TOKENIZER].data = NULL;
        status = cleat_file_read_text(path, &files[TOKENIZER].data, &files[TOKENIZER].size, error);
    }
    return status;
}

/* Builds the tokenizer of the files, which it takes over. */
static cleat_status build(cleat_tokenizer_file *files, const char *place, cleat_tokenizer **tokenizer,
                          cleat_error *error) {
    cleat_pipeline *pipeline = NULL;
    cleat_status status = cleat_pipeline_parse(files[TOKENIZER].data, files[TOKENIZER].size, place, &pipeline, error);
    if (status) return status;
    memcpy(pipeline->files, files, sizeof pipeline->files);
    memset(files, 0, sizeof pipeline->files);
    status = tokenizer_of(pipeline, tokenizer, error);
    if (status) cleat_pipeline_destroy(pipeline);
    return status;
}

cleat_status cleat_tokenizer_from_metadata(const cleat_tokenizer_metadata *metadata, const char *place,
                                           cleat_tokenizer **tokenizer, cleat_error *error) {
    cleat_tokenizer_file files[CLEAT_TOKENIZER_FILES];
    static const int places[] = {TOKENIZER, CONFIG, GENERATION};
    cleat_string texts[3] = {{0}};
    if (!metadata || !place || !tokenizer || (metadata->count && !metadata->pieces))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "a tokenizer requires tokens, the name of their file, and a result");
    for (int i = 0; i < CLEAT_TOKENIZER_FILES; ++i) files[i] = (cleat_tokenizer_file){.name = file_names[i]};
    cleat_status status = cleat_language_json(metadata, &texts[TOKENIZER], error);
    if (!status) status = cleat_language_config(metadata, &texts[CONFIG], error);
    if (status) status = cleat_fail_in(error, status, "%s", place);
    const int written = metadata->eot > 0 && metadata->eos >= 0 ? 3 : 2;
    if (written == 3) cleat_string_add(&texts[2], "{\"eos_token_id\": [%d, %d]}\n", metadata->eos, metadata->eot);
    for (int i = 0; i < written; ++i) {
        files[places[i]].size = texts[i].size;
        if (!status) status = cleat_string_detach(&texts[i], &files[places[i]].data, error);
        cleat_string_free(&texts[i]);
    }
    if (!status) status = build(files, place, tokenizer, error);
    for (int i = 0; i < 3; ++i) cleat_free(files[places[i]].data);
    return status;
}

cleat_status cleat_tokenizer_open_published(const char *path, bool lowercase, cleat_tokenizer **tokenizer,
                                            cleat_error *error) {
    cleat_tokenizer_file files[CLEAT_TOKENIZER_FILES] = {{0}};
    char beside[4096], class[64] = "";
    cleat_tokenizer *made = NULL;
    bool whole = cleat_folder_exists(path);
    cleat_status status = whole ? read_files(path, files, error) : read_beside(path, beside, files, error);
    const char *folder = whole ? path : beside;
    const bool written = !status && !files[TOKENIZER].data;
    cJSON *config = status ? NULL : parse(&files[CONFIG]);
    if (!status && files[CONFIG].data && !cJSON_IsObject(config))
        status = cleat_fail(error, CLEAT_ERR_FORMAT,
                            "%s: tokenizer_config.json: not a JSON object; the file is damaged", path);
    if (!status) find_class(folder, config, class);
    if (written && !status) status = write_json(folder, path, class, lowercase, files, error);
    if (written && !*class) snprintf(class, sizeof class, files[VOCAB_TXT].data ? "bert" : "roberta");
    if (!status) status = follow_config(config, class, written, path, &files[TOKENIZER], error);
    if (!status) status = build(files, path, &made, error);
    if (!status) {
        check_added(made->pipeline, config, &made->pipeline->files[ADDED], path);
        name_unread(made, config, class, path);
        *tokenizer = made;
    }
    for (int i = 0; i < CLEAT_TOKENIZER_FILES; ++i) cleat_free(files[i].data);
    cJSON_Delete(config);
    return status;
}

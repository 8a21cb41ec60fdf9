/* Writes the tokenizer.json equivalent to older files, with the parts that transformers gives them. */
#include "tokenizer/json_read.h"
#include "tokenizer/tokenizer.h"

#include "core/json.h"

#include <string.h>

void cleat_json_add_token(cleat_string *json, const cleat_added_token *token) {
    json_add(json, json_open(NULL, '{'), json_count("id", token->id), json_text("content", token->content),
             json_bool("single_word", token->single_word), json_bool("lstrip", token->lstrip),
             json_bool("rstrip", token->rstrip), json_bool("normalized", token->normalized),
             json_bool("special", token->special), json_close('}'));
}

static cleat_status end_json(cleat_string *json, cleat_error *error) {
    if (!json->failed) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a tokenizer.json");
}

static void add_item(cleat_string *json, const char *kind, const char *id, int type) {
    json_add(json, json_open(NULL, '{'), json_open(kind, '{'), json_text("id", id), json_count("type_id", type),
             json_close('}'), json_close('}'));
}

static void add_special_token(cleat_string *json, const char *name, int32_t id) {
    json_add(json, json_open(name, '{'), json_text("id", name), json_open("ids", '['), json_count(NULL, id),
             json_close(']'), json_open("tokens", '['), json_text(NULL, name), json_close(']'), json_close('}'));
}

/* [CLS] A [SEP] and [CLS] A [SEP] B [SEP]. */
static void add_bert_template(cleat_string *json, int32_t cls, int32_t sep) {
    json_add(json, json_open("post_processor", '{'), json_text("type", "TemplateProcessing"));
    for (int pair = 0; pair < 2; ++pair) {
        json_add(json, json_open(pair ? "pair" : "single", '['));
        add_item(json, "SpecialToken", "[CLS]", 0);
        add_item(json, "Sequence", "A", 0);
        add_item(json, "SpecialToken", "[SEP]", 0);
        if (pair) add_item(json, "Sequence", "B", 1);
        if (pair) add_item(json, "SpecialToken", "[SEP]", 1);
        json_add(json, json_close(']'));
    }
    json_add(json, json_open("special_tokens", '{'));
    add_special_token(json, "[CLS]", cls);
    add_special_token(json, "[SEP]", sep);
    json_add(json, json_close('}'), json_close('}'));
    cleat_string_add(json, ",\n");
}

static void add_bert_normaliser(cleat_string *json, const cleat_bert_rules *rules) {
    if (rules->basic)
        json_add(json, json_open("normalizer", '{'), json_text("type", "Sequence"), json_open("normalizers", '['),
                 json_open(NULL, '{'), json_text("type", "Replace"), json_open("pattern", '{'),
                 json_text("Regex", "\\p{Cn}"), json_close('}'), json_text("content", ""), json_close('}'));
    json_add(json, json_open(rules->basic ? NULL : "normalizer", '{'), json_text("type", "BertNormalizer"),
             json_bool("clean_text", true), json_bool("handle_chinese_chars", rules->ideographs),
             json_bool("strip_accents", rules->accents), json_bool("lowercase", rules->lowercase), json_close('}'));
    if (rules->basic && !rules->lowercase)
        json_add(json, json_open(NULL, '{'), json_text("type", "NFC"), json_close('}'));
    cleat_string_add(json, rules->basic ? "]},\n" : ",\n");
}

cleat_status cleat_wordpiece_json(const cleat_vocabulary *vocabulary, const cleat_bert_rules *rules, cleat_string *json,
                                  cleat_error *error) {
    int32_t ids[CLEAT_SPECIALS];
    cleat_string_add(json, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\n\"added_tokens\":[");
    for (int i = 0; i < CLEAT_SPECIALS; ++i) {
        const char *name = cleat_special_token_name((cleat_special_token)i);
        ids[i] = cleat_vocabulary_find(vocabulary, name, strlen(name));
        if (ids[i] < 0 && i != CLEAT_SPECIAL_MASK && i != CLEAT_SPECIAL_PAD)
            return cleat_fail(error, CLEAT_ERR_FORMAT, "vocab.txt has no %s; a BERT vocabulary requires a line with it",
                              name);
        if (ids[i] >= 0) cleat_json_add_token(json, &(cleat_added_token){(char *)name, ids[i], .special = true});
    }
    cleat_string_add(json, "],\n");
    add_bert_normaliser(json, rules);
    cleat_string_add(json, "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\n");
    add_bert_template(json, ids[CLEAT_SPECIAL_CLS], ids[CLEAT_SPECIAL_SEP]);
    cleat_string_add(json,
                     "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},\n"
                     "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\","
                     "\"max_input_chars_per_word\":100,\"vocab\":{\n");
    for (size_t id = 0; id < vocabulary->count; ++id) {
        cleat_json_add_string(json, cleat_vocabulary_piece(vocabulary, (int32_t)id));
        cleat_string_add(json, ":%zu%s", id, id + 1 < vocabulary->count ? ",\n" : "");
    }
    cleat_string_add(json, "}}}\n");
    return end_json(json, error);
}

static void add_merges(cleat_string *json, const char *merges) {
    bool first = true;
    for (const char *line = merges, *end; *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        size_t size = (size_t)(end - line);
        if (size && line[size - 1] == '\r') --size;
        if (!size || strncmp(line, "#version", 8) == 0) continue;
        cleat_string copy = {0};
        cleat_string_add_bytes(&copy, line, size);
        cleat_string_add(json, first ? "" : ",\n");
        if (copy.data) cleat_json_add_string(json, copy.data);
        json->failed = json->failed || copy.failed;
        cleat_string_free(&copy);
        first = false;
    }
}

/* The special tokens of RoBERTa that the vocabulary has. */
static cleat_status add_roberta_tokens(cleat_string *json, const char *vocab, const char *place, cleat_error *error) {
    static const char *const names[] = {"<s>", "<pad>", "</s>", "<unk>", "<mask>"};
    int32_t ids[5];
    cJSON *root = cJSON_Parse(vocab);
    if (!cJSON_IsObject(root)) {
        cJSON_Delete(root);
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: vocab.json is not a JSON object", place);
    }
    for (int i = 0; i < 5; ++i) {
        const cJSON *id = cleat_json_member(root, names[i]);
        ids[i] = cJSON_IsNumber(id) ? id->valueint : -1;
        if (ids[i] >= 0) cleat_json_add_token(json, &(cleat_added_token){(char *)names[i], ids[i], .special = true});
    }
    cJSON_Delete(root);
    if (ids[0] < 0 || ids[2] < 0)
        return cleat_fail(
            error, CLEAT_ERR_NOT_SUPPORTED,
            "%s: vocab.json lacks <s> or </s>, so it is not that of a RoBERTa; save the tokenizer as tokenizer.json",
            place);
    cleat_string_add(json,
                     "],\n\"normalizer\":null,\n\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
                     "\"trim_offsets\":true,\"use_regex\":true},\n"
                     "\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":[\"</s>\",%d],\"cls\":[\"<s>\",%d],"
                     "\"trim_offsets\":true,\"add_prefix_space\":false},\n",
                     (int)ids[2], (int)ids[0]);
    return CLEAT_OK;
}

cleat_status cleat_byte_bpe_json(const char *vocab, const char *merges, const char *place, cleat_string *json,
                                 cleat_error *error) {
    cleat_string_add(json, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\n\"added_tokens\":[");
    cleat_status status = add_roberta_tokens(json, vocab, place, error);
    if (status) return status;
    cleat_string_add(json, "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,"
                           "\"use_regex\":true},\n"
                           "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,"
                           "\"continuing_subword_prefix\":\"\",\"end_of_word_suffix\":\"\",\"fuse_unk\":false,"
                           "\"byte_fallback\":false,\"ignore_merges\":false,\"vocab\":");
    cleat_string_add_bytes(json, vocab, strlen(vocab));
    cleat_string_add(json, ",\n\"merges\":[\n");
    add_merges(json, merges);
    cleat_string_add(json, "]}}\n");
    return end_json(json, error);
}

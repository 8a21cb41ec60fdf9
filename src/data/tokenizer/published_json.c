/* Writes the tokenizer.json that is equal to older files, with the parts that transformers gives them. */
#include "tokenizer/json_read.h"
#include "tokenizer/tokenizer.h"

#include "core/json.h"

#include <string.h>

static const char *flag(bool value) {
    return value ? "true" : "false";
}

void cleat_json_add_token(cleat_string *json, const cleat_added_token *token, bool first) {
    cleat_string_add(json, "%s{\"id\":%d,\"content\":", first ? "" : ",", (int)token->id);
    cleat_json_add_string(json, token->content);
    cleat_string_add(json, ",\"single_word\":%s,\"lstrip\":%s,\"rstrip\":%s,\"normalized\":%s,\"special\":%s}",
                     flag(token->single_word), flag(token->lstrip), flag(token->rstrip), flag(token->normalized),
                     flag(token->special));
}

static cleat_status end_json(cleat_string *json, cleat_error *error) {
    if (!json->failed) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a tokenizer.json");
}

static void add_template_special(cleat_string *json, const char *name, int type) {
    cleat_string_add(json, "{\"SpecialToken\":{\"id\":\"%s\",\"type_id\":%d}}", name, type);
}

/* [CLS] A [SEP] and [CLS] A [SEP] B [SEP]. */
static void add_bert_template(cleat_string *json, int32_t cls, int32_t sep) {
    cleat_string_add(json, "\"post_processor\":{\"type\":\"TemplateProcessing\"");
    for (int pair = 0; pair < 2; ++pair) {
        cleat_string_add(json, ",\"%s\":[", pair ? "pair" : "single");
        add_template_special(json, "[CLS]", 0);
        cleat_string_add(json, ",{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},");
        add_template_special(json, "[SEP]", 0);
        if (pair) cleat_string_add(json, ",{\"Sequence\":{\"id\":\"B\",\"type_id\":1}},");
        if (pair) add_template_special(json, "[SEP]", 1);
        cleat_string_add(json, "]");
    }
    cleat_string_add(json,
                     ",\"special_tokens\":{\"[CLS]\":{\"id\":\"[CLS]\",\"ids\":[%d],\"tokens\":[\"[CLS]\"]},"
                     "\"[SEP]\":{\"id\":\"[SEP]\",\"ids\":[%d],\"tokens\":[\"[SEP]\"]}}},\n",
                     (int)cls, (int)sep);
}

static void add_bert_normaliser(cleat_string *json, const cleat_bert_rules *rules) {
    cleat_string_add(json, "\"normalizer\":");
    if (rules->basic)
        cleat_string_add(json, "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Replace\",\"pattern\":{\"Regex\":"
                               "\"\\\\p{Cn}\"},\"content\":\"\"},");
    cleat_string_add(json,
                     "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":%s,"
                     "\"strip_accents\":%s,\"lowercase\":%s}",
                     flag(rules->ideographs), flag(rules->accents), flag(rules->lowercase));
    if (rules->basic && !rules->lowercase) cleat_string_add(json, ",{\"type\":\"NFC\"}");
    cleat_string_add(json, rules->basic ? "]},\n" : ",\n");
}

cleat_status cleat_wordpiece_json(const cleat_vocabulary *vocabulary, const cleat_bert_rules *rules, cleat_string *json,
                                  cleat_error *error) {
    int32_t ids[CLEAT_SPECIALS];
    bool first = true;
    cleat_string_add(json, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\n\"added_tokens\":[");
    for (int i = 0; i < CLEAT_SPECIALS; ++i) {
        const char *name = cleat_special_token_name((cleat_special_token)i);
        ids[i] = cleat_vocabulary_find(vocabulary, name, strlen(name));
        if (ids[i] < 0 && i != CLEAT_SPECIAL_MASK && i != CLEAT_SPECIAL_PAD)
            return cleat_fail(error, CLEAT_ERR_FORMAT, "vocab.txt has no %s; a BERT vocabulary requires a line with it",
                              name);
        if (ids[i] >= 0) cleat_json_add_token(json, &(cleat_added_token){(char *)name, ids[i], .special = true}, first);
        first = first && ids[i] < 0;
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
    bool first = true;
    cJSON *root = cJSON_Parse(vocab);
    if (!cJSON_IsObject(root)) {
        cJSON_Delete(root);
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: vocab.json is not a JSON object", place);
    }
    for (int i = 0; i < 5; ++i) {
        const cJSON *id = cleat_json_member(root, names[i]);
        ids[i] = cJSON_IsNumber(id) ? id->valueint : -1;
        if (ids[i] >= 0)
            cleat_json_add_token(json, &(cleat_added_token){(char *)names[i], ids[i], .special = true}, first);
        first = first && ids[i] < 0;
    }
    cJSON_Delete(root);
    if (ids[0] < 0 || ids[2] < 0)
        return cleat_fail(
            error, CLEAT_ERR_NOT_SUPPORTED,
            "%s: vocab.json has no <s> or no </s>, so that it is not that of a RoBERTa; save the tokenizer "
            "as tokenizer.json",
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

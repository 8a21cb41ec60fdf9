/* Writes the tokenizer.json equivalent to older files, with the parts that transformers gives them, and to the metadata
 * of language models. */
#include "tokenizer/tokenizer.h"

#include "core/json.h"
#include "core/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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

/* A token and its id; -1: none. */
typedef struct named_token {
    const char *name;
    int32_t id;
} named_token;

/* FIRST A LAST and FIRST A LAST B LAST. */
static void add_template(cleat_string *json, named_token first, named_token last) {
    if (first.id < 0 && last.id < 0) return;
    json_add(json, json_open("post_processor", '{'), json_text("type", "TemplateProcessing"));
    for (int pair = 0; pair < 2; ++pair) {
        json_add(json, json_open(pair ? "pair" : "single", '['));
        if (first.id >= 0) add_item(json, "SpecialToken", first.name, 0);
        add_item(json, "Sequence", "A", 0);
        if (last.id >= 0) add_item(json, "SpecialToken", last.name, 0);
        if (pair) add_item(json, "Sequence", "B", 1);
        if (pair && last.id >= 0) add_item(json, "SpecialToken", last.name, 1);
        json_add(json, json_close(']'));
    }
    json_add(json, json_open("special_tokens", '{'));
    if (first.id >= 0) add_special_token(json, first.name, first.id);
    if (last.id >= 0 && last.id != first.id) add_special_token(json, last.name, last.id);
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
    add_template(json, (named_token){"[CLS]", ids[CLEAT_SPECIAL_CLS]}, (named_token){"[SEP]", ids[CLEAT_SPECIAL_SEP]});
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

/* --- language models ------------------------------------------------------------------------------------------ */

enum { PIECE_NORMAL = 1, PIECE_USER = 4, PIECE_UNUSED, PIECE_BYTE, LONGEST_PIECE = 1024 };

#define WORD_START "[^\\r\\n\\p{L}\\p{N}]?"
#define CLITICS "'s|'t|'re|'ve|'m|'ll|'d"
#define REST "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"

/* How byte-level tokenizers split texts, by the names that llama.cpp gives them; "default" is what it does with files
 * that are older than these names. */
static const struct {
    const char *names; /* with a blank between two */
    const char *splits[4];
    bool words; /* then as GPT-2 */
    bool composes, ignore_merges, bos;
} pre_tokenizers[] = {
    {.names = "llama-bpe llama3 llama-v3 smaug-bpe",
     .splits = {"(?i:" CLITICS ")|" WORD_START "\\p{L}+|\\p{N}{1,3}" REST},
     .ignore_merges = true,
     .bos = true},
    {.names = "qwen2 deepseek-r1-qwen",
     .splits = {"(?i:" CLITICS ")|" WORD_START "\\p{L}+|\\p{N}" REST},
     .composes = true},
    {.names = "smollm", .splits = {"\\p{N}"}, .words = true},
    {.names = "gpt-2 phi-2", .splits = {NULL}, .words = true},
    {.names = "tekken",
     .splits = {WORD_START UPPER "*" LOWER "+|" WORD_START UPPER "+" LOWER "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|"
                                 "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
     .ignore_merges = true,
     .bos = true},
    {.names = "default",
     .splits = {"[\\p{P}\\$\\+<=>\\^~\\|]+", CLITICS "| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
                "\\p{N}+", "[0-9][0-9][0-9]"}},
};

/* The pattern of a step that splits; NULL: it is another step. */
static const char *pattern_of(const cJSON *step) {
    const char *type = cleat_json_text(step, "type");
    if (type && strcmp(type, "Digits") == 0)
        return cJSON_IsTrue(cleat_json_member(step, "individual_digits")) ? "\\p{N}" : NULL;
    return cleat_json_text(cleat_json_member(step, "pattern"), "Regex");
}

const char *cleat_pre_tokenizer_name(const cJSON *step, char name[CLEAT_PRE_TOKENIZER]) {
    const cJSON *steps = cleat_json_member(step, "pretokenizers");
    const int before = steps ? cJSON_GetArraySize(steps) - 1 : 0; /* the byte-level step is the last one */
    const cJSON *last = steps ? cJSON_GetArrayItem(steps, before) : step;
    const char *type = cleat_json_text(last, "type");
    const bool words = !cJSON_IsFalse(cleat_json_member(last, "use_regex"));
    name[0] = 0;
    if (!type || strcmp(type, "ByteLevel") != 0 || cJSON_IsTrue(cleat_json_member(last, "add_prefix_space")))
        return name;
    for (size_t row = 0; row < sizeof pre_tokenizers / sizeof *pre_tokenizers && !*name; ++row) {
        const char *const *splits = pre_tokenizers[row].splits;
        int same = 0;
        for (const char *found; same < 4 && splits[same] && same < before; ++same)
            if (!(found = pattern_of(cJSON_GetArrayItem(steps, same))) || strcmp(found, splits[same]) != 0) break;
        if (same == before && (same == 4 || !splits[same]) && pre_tokenizers[row].words == words)
            sscanf(pre_tokenizers[row].names, "%31s", name);
    }
    return name;
}

static int type_of(const cleat_tokenizer_metadata *m, size_t id) {
    return m->types && m->types[id] > 0 && m->types[id] <= PIECE_BYTE ? m->types[id] : PIECE_NORMAL;
}

/* The piece as a tokenizer.json spells it: runs of blanks that SentencePiece's users defined are tokens wherever they
 * occur, which are searched for before blanks become marks. */
static const char *spell(const cleat_tokenizer_metadata *m, size_t id, cleat_string *text) {
    static const char mark[] = "\xE2\x96\x81";
    const char *piece = m->pieces[id].data, *found;
    if (!m->is_sentencepiece || type_of(m, id) != PIECE_USER || !strstr(piece, mark)) return piece;
    for (text->size = 0; (found = strstr(piece, mark)) != NULL; piece = found + 3) {
        cleat_string_add_bytes(text, piece, (size_t)(found - piece));
        cleat_string_add_bytes(text, " ", 1);
    }
    cleat_string_add_bytes(text, piece, strlen(piece));
    return text->failed ? "" : text->data;
}

static void add_merge(cleat_string *json, const char *merge) {
    if (json->size && json->data[json->size - 1] != '[') cleat_string_add(json, ",\n");
    cleat_json_add_string(json, merge);
}

/* The merges that give a piece: all pairs of pieces of which it is the union. */
static void add_unions(const cleat_vocabulary *known, const char *piece, cleat_string *json) {
    char merge[LONGEST_PIECE + 2];
    const size_t size = strlen(piece);
    for (size_t at = cleat_utf8_size(piece); at && at < size; at += cleat_utf8_size(piece + at)) {
        if (cleat_vocabulary_find(known, piece, at) < 0 || cleat_vocabulary_find(known, piece + at, size - at) < 0)
            continue;
        memcpy(merge, piece, at);
        merge[at] = ' ';
        memcpy(merge + at + 1, piece + at, size - at + 1);
        add_merge(json, merge);
    }
}

typedef struct ranked_piece {
    float score;
    int32_t id;
} ranked_piece;

static int compare_ranks(const void *a, const void *b) {
    const ranked_piece *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score ? 1 : -1) : (x->id > y->id) - (x->id < y->id);
}

/* SentencePiece has no merges: it joins two pieces if their union is one, that of the highest score first. */
static cleat_status add_scored_merges(const cleat_tokenizer_metadata *m, cleat_string *json, cleat_error *error) {
    cleat_vocabulary known = {0};
    size_t n = 0;
    int32_t index;
    cleat_status status = CLEAT_OK;
    ranked_piece *ranked = cleat_alloc(m->count, sizeof *ranked);
    if (!ranked) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu tokens", m->count);
    for (size_t id = 0; id < m->count && !status; ++id) {
        if (type_of(m, id) != PIECE_NORMAL) continue;
        ranked[n++] = (ranked_piece){m->scores ? m->scores[id] : 0, (int32_t)id};
        status = cleat_vocabulary_add(&known, m->pieces[id].data, m->pieces[id].size, &index, error);
    }
    if (n) qsort(ranked, n, sizeof *ranked, compare_ranks);
    for (size_t i = 0; i < n && !status; ++i) add_unions(&known, m->pieces[ranked[i].id].data, json);
    cleat_free(ranked);
    cleat_vocabulary_free(&known);
    return status;
}

static bool is_named(const cleat_tokenizer_metadata *m, int32_t id) {
    return id == m->bos || id == m->eos || id == m->unk || id == m->pad;
}

static cleat_status check_metadata(const cleat_tokenizer_metadata *m, cleat_error *error) {
    const int32_t named[] = {m->bos, m->eos, m->unk, m->pad};
    if (!m->count || m->count > CLEAT_MAX_PIECE_ID)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%zu tokens; a tokenizer has 1 to %d", m->count,
                          (int)CLEAT_MAX_PIECE_ID);
    if (m->chat_template && !cleat_text_check(m->chat_template, strlen(m->chat_template), NULL))
        return cleat_fail(error, CLEAT_ERR_FORMAT, "the chat template is not UTF-8; the file is damaged");
    for (int i = 0; i < 4; ++i)
        if (named[i] < -1 || named[i] >= (int32_t)m->count)
            return cleat_fail(error, CLEAT_ERR_FORMAT, "the id %d of a special token is not one of %zu tokens",
                              (int)named[i], m->count);
    for (size_t id = 0; id < m->count; ++id) {
        const cleat_text_view *piece = &m->pieces[id];
        if (strlen(piece->data) != piece->size || !cleat_text_check(piece->data, piece->size, NULL) ||
            piece->size > LONGEST_PIECE || (m->scores && m->is_sentencepiece && isnan(m->scores[id])))
            return cleat_fail(error, CLEAT_ERR_FORMAT,
                              "token %zu is not UTF-8, has a zero byte, more than %d bytes, or no score; the file is "
                              "damaged",
                              id, (int)LONGEST_PIECE);
    }
    return CLEAT_OK;
}

static named_token name_token(const cleat_tokenizer_metadata *m, int32_t id) {
    return (named_token){id < 0 ? NULL : m->pieces[id].data, id};
}

/* The parts of a byte-level tokenizer before its model. */
static cleat_status add_byte_level(const cleat_tokenizer_metadata *m, cleat_string *json, bool *ignore_merges,
                                   cleat_error *error) {
    const char *name = m->pre && *m->pre ? m->pre : "default";
    size_t row = 0, n = sizeof pre_tokenizers / sizeof *pre_tokenizers;
    while (row < n && !cleat_has_word(pre_tokenizers[row].names, name, ' ')) ++row;
    if (row == n || strchr(name, ' '))
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                          "the pre-tokenizer '%.60s' is not known (llama-bpe, smaug-bpe, qwen2, deepseek-r1-qwen, "
                          "smollm, gpt-2, phi-2, tekken and default are): use the model's folder with its "
                          "tokenizer.json",
                          m->pre);
    *ignore_merges = pre_tokenizers[row].ignore_merges;
    if (row + 1 == n)
        cleat_log(CLEAT_LOG_WARNING, "tokenizer: the file does not say how texts are split into words, as old ones "
                                     "do not; texts may be split differently from those the model was trained on");
    if (pre_tokenizers[row].composes) cleat_string_add(json, "\"normalizer\":{\"type\":\"NFC\"},\n");
    cleat_string_add(json, "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[");
    for (int i = 0; i < 4 && pre_tokenizers[row].splits[i]; ++i)
        json_add(json, json_open(NULL, '{'), json_text("type", "Split"), json_open("pattern", '{'),
                 json_text("Regex", pre_tokenizers[row].splits[i]), json_close('}'), json_text("behavior", "Isolated"),
                 json_bool("invert", false), json_close('}'));
    json_add(json, json_open(NULL, '{'), json_text("type", "ByteLevel"), json_bool("add_prefix_space", false),
             json_bool("trim_offsets", true), json_bool("use_regex", pre_tokenizers[row].words), json_close('}'));
    cleat_string_add(json, "]},\n");
    const bool bos = m->add_bos < 0 ? pre_tokenizers[row].bos : m->add_bos;
    add_template(json, name_token(m, bos ? m->bos : -1), name_token(m, m->add_eos > 0 ? m->eos : -1));
    cleat_string_add(json, "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,"
                           "\"use_regex\":true},\n");
    return CLEAT_OK;
}

static void add_sentencepiece(const cleat_tokenizer_metadata *m, cleat_string *json) {
    static const char blanks[] = "{\"type\":\"Replace\",\"pattern\":{\"String\":\"%s\"},\"content\":\"%s\"}";
    const bool prefix = m->add_space_prefix != 0;
    cleat_string_add(json, "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[%s",
                     prefix ? "{\"type\":\"Prepend\",\"prepend\":\"\xE2\x96\x81\"}," : "");
    cleat_string_add(json, blanks, " ", "\xE2\x96\x81");
    cleat_string_add(json, "]},\n\"pre_tokenizer\":null,\n");
    add_template(json, name_token(m, m->add_bos ? m->bos : -1), name_token(m, m->add_eos > 0 ? m->eos : -1));
    cleat_string_add(json, "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[");
    cleat_string_add(json, blanks, "\xE2\x96\x81", " ");
    cleat_string_add(json, ",{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}%s]},\n",
                     prefix ? ",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}" : "");
}

cleat_status cleat_language_json(const cleat_tokenizer_metadata *m, cleat_string *json, cleat_error *error) {
    cleat_string text = {0};
    bool ignore_merges = false;
    cleat_status status = check_metadata(m, error);
    if (status) return status;
    cleat_string_add(json, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\n\"added_tokens\":[");
    for (size_t id = 0; id < m->count; ++id) {
        const int type = type_of(m, id);
        if (!is_named(m, (int32_t)id) && (type == PIECE_NORMAL || type >= PIECE_UNUSED)) continue;
        char *piece = (char *)spell(m, id, &text);
        cleat_json_add_token(json, &(cleat_added_token){piece, (int32_t)id, .special = type != PIECE_USER});
    }
    cleat_string_add(json, "],\n");
    if (m->is_sentencepiece)
        add_sentencepiece(m, json);
    else
        status = add_byte_level(m, json, &ignore_merges, error);
    json_add(json, json_open("model", '{'), json_text("type", "BPE"), json_text("dropout", NULL),
             json_text("unk_token", m->is_sentencepiece && m->unk >= 0 ? m->pieces[m->unk].data : NULL),
             json_text("continuing_subword_prefix", NULL), json_text("end_of_word_suffix", NULL),
             json_bool("fuse_unk", m->is_sentencepiece), json_bool("byte_fallback", m->is_sentencepiece),
             json_bool("ignore_merges", ignore_merges), json_open("vocab", '{'));
    for (size_t id = 0; id < m->count; ++id) json_add(json, json_count(spell(m, id, &text), (int64_t)id));
    json_add(json, json_close('}'), json_open("merges", '['));
    if (!status && m->is_sentencepiece) status = add_scored_merges(m, json, error);
    for (size_t i = 0; i < m->n_merges && !m->is_sentencepiece; ++i) add_merge(json, m->merges[i].data);
    cleat_string_add(json, "]}}\n");
    json->failed = json->failed || text.failed;
    cleat_string_free(&text);
    return status ? status : end_json(json, error);
}

cleat_status cleat_language_config(const cleat_tokenizer_metadata *m, cleat_string *json, cleat_error *error) {
    const int32_t ids[] = {m->bos, m->eos, m->unk, m->pad};
    static const char *const names[] = {"bos_token", "eos_token", "unk_token", "pad_token"};
    json_add(json, json_open(NULL, '{'), json_text("tokenizer_class", "PreTrainedTokenizerFast"));
    for (int i = 0; i < 4; ++i)
        if (ids[i] >= 0) json_add(json, json_text(names[i], m->pieces[ids[i]].data));
    if (m->chat_template) json_add(json, json_text("chat_template", m->chat_template));
    json_add(json, json_close('}'));
    cleat_string_add(json, "\n");
    return end_json(json, error);
}

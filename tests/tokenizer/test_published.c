/* Tokenizers of published checkpoints: ids equal Hugging Face's; damaged or hostile files; long texts. */
/* ctest: quick no-memcheck */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cJSON.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/files.h"
#include "core/memory.h"
#include "core/string.h"
#include "platform/files.h"
#include "platform/text.h"
#include "source_path.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode.h"

#define FOLDER(name) source_path("tests/tokenizer/tokenizers/" name)

static cleat_tokenizer *load(const char *path, bool lowercase) {
    cleat_tokenizer *tokenizer = NULL;
    cleat_error error = {0};
    if (cleat_tokenizer_load(path, lowercase, &tokenizer, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return tokenizer;
}

/* --- ids ------------------------------------------------------------------------------------------------------ */

/* Copies a JSON line with \u0000 replaced by U+F3A7, because cJSON's strings end at zero bytes; expect_ids
 * restores it. */
static char *without_zeros(const char *line) {
    char *copy = strdup(line);
    for (char *at = copy; (at = strstr(at, "\\u0000")) != NULL;) memcpy(at, "\\uF3A7", 6);
    return copy;
}

/* The ids of a text; the caller frees them. */
static cleat_ids encode(const cleat_tokenizer *tokenizer, const cJSON *text) {
    cleat_error error = {0};
    size_t size = 0, count = 0;
    char *bytes = strdup(text->valuestring);
    for (const char *at = text->valuestring; *at;) {
        bool zero = strncmp(at, "\xEF\x8E\xA7", 3) == 0;
        bytes[size++] = zero ? 0 : *at;
        at += zero ? 3 : 1;
    }
    cleat_token *tokens = calloc(4 * size + 1, sizeof *tokens);
    int32_t *ids = calloc(4 * size + 1, sizeof *ids);
    if (cleat_tokenizer_encode(tokenizer, bytes, size, tokens, 4 * size, &count, &error) != CLEAT_OK)
        fail_msg("'%s': %s", text->valuestring, error.text);
    for (size_t i = 0; i < count; ++i) {
        ids[i] = tokens[i].id;
        assert_true(tokens[i].begin <= tokens[i].end && tokens[i].end <= size);
        assert_true(i == 0 ? tokens[i].word == 0 : tokens[i].word - tokens[i - 1].word <= 1);
    }
    free(tokens);
    free(bytes);
    return (cleat_ids){ids, count};
}

static void expect_list(const char *line, const char *what, const cJSON *expected, const int32_t *got, size_t count) {
    const cJSON *id;
    size_t i = 0;
    if (!expected) return;
    cJSON_ArrayForEach(id, expected) {
        if (i >= count || got[i] != id->valueint) break;
        ++i;
    }
    if (id || i != count) fail_msg("%s[%zu] of %zu differs from the expected one: %s", what, i, count, line);
}

static void expect_line(const cleat_tokenizer *tokenizer, const char *text) {
    char *line = without_zeros(text);
    cJSON *root = cJSON_Parse(line);
    assert_non_null(root);
    const cJSON *second = cJSON_GetObjectItem(root, "pair");
    bool pair = cJSON_IsString(second);
    cleat_ids a = encode(tokenizer, cJSON_GetObjectItem(root, "text")), b = {0};
    if (pair) b = encode(tokenizer, second);
    cleat_token_counts framed = {0};
    cleat_error error = {0};
    int32_t *ids = calloc(a.count + b.count + 16, sizeof *ids), *types = calloc(a.count + b.count + 16, sizeof *types);
    assert_int_equal(
        cleat_tokenizer_frame(tokenizer, &a, pair ? &b : NULL, a.count + b.count + 16, ids, types, &framed, &error), 0);
    assert_false(framed.cut);
    expect_list(text, "ids", cJSON_GetObjectItem(root, "ids"), ids, framed.count);
    expect_list(text, "types", cJSON_GetObjectItem(root, "types"), types, framed.count);
    if (cJSON_GetObjectItem(root, "short")) {
        assert_int_equal(cleat_tokenizer_frame(tokenizer, &a, pair ? &b : NULL, 9, ids, NULL, &framed, &error), 0);
        expect_list(text, "short", cJSON_GetObjectItem(root, "short"), ids, framed.count);
    }
    free(ids);
    free(types);
    free((void *)a.ids);
    free((void *)b.ids);
    cJSON_Delete(root);
    free(line);
}

/* Checks every line of a file against a tokenizer. */
static void expect_file(const char *tokenizer_path, bool lowercase, const char *lines_path) {
    cleat_tokenizer *tokenizer = load(tokenizer_path, lowercase);
    FILE *file = fopen(lines_path, "r");
    char *line = NULL;
    size_t capacity = 0, lines = 0;
    assert_non_null(file);
    for (; getline(&line, &capacity, file) > 0; ++lines) expect_line(tokenizer, line);
    assert_true(lines > 20);
    free(line);
    fclose(file);
    cleat_tokenizer_destroy(tokenizer);
}

static void ids_are_those_of_hugging_face(void **state) {
    (void)state;
    expect_file(FOLDER("wordpiece.json"), false, FOLDER("wordpiece.ids"));
    expect_file(FOLDER("byte_bpe.json"), false, FOLDER("byte_bpe.ids"));
    expect_file(FOLDER("unigram.json"), false, FOLDER("unigram.ids"));
    expect_file(FOLDER("fallback_bpe.json"), false, FOLDER("fallback_bpe.ids"));
    expect_file(FOLDER("sentencepiece.bpe.model"), false, FOLDER("sentencepiece.ids"));
    expect_file(FOLDER("llama3.json"), false, FOLDER("llama3.ids"));
    expect_file(FOLDER("tokenizer.model"), false, FOLDER("llama2.ids"));
}

static void shared_tokenizers_give_the_same_ids(void **state) {
    static const struct {
        const char *name, *file;
        bool lowercase;
    } rows[] = {{"wordpiece_uncased", "", false},
                {"wordpiece_uncased", "vocab.txt", true},
                {"wordpiece_cased", "tokenizer.json", 1},
                {"wordpiece_cased", "vocab.txt", false},
                {"byte_bpe", "", false},
                {"byte_bpe", "vocab.json", false},
                {"unigram", "", false}};
    char path[4096], lines[4096];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        snprintf(lines, sizeof lines, "%s/%s/ids.jsonl", shared_path("hf/tokenizers"), rows[i].name);
        if (!cleat_file_exists(lines)) {
            print_message("%s: not there\n", lines);
            skip();
        }
        snprintf(path, sizeof path, "%s/%s/%s", shared_path("hf/tokenizers"), rows[i].name, rows[i].file);
        expect_file(path, rows[i].lowercase, lines);
    }
}

/* --- two ways to the same words -------------------------------------------------------------------------------- */

typedef struct word_list {
    char bytes[256]; /* words, each followed by a line feed */
    size_t size;
} word_list;

static void add_word(void *user, const cleat_word *word) {
    word_list *list = user;
    list->size += (size_t)snprintf(list->bytes + list->size, sizeof list->bytes - list->size, "%.*s\n", (int)word->size,
                                   word->bytes);
}

/* words.c must find the same words as the normaliser and the splitter. */
static void compare_words(const char *text, size_t size, bool lowercase, cleat_split_state *state) {
    const cleat_word_rules rules = {.published = true, .lowercase = lowercase};
    const cleat_normaliser bert = {
        .kind = CLEAT_NORMALISE_BERT, .clean = true, .ideographs = true, .accents = lowercase, .lowercase = lowercase};
    const cleat_splitter splitter = {.kind = CLEAT_SPLIT_BERT};
    word_list fast = {.size = 0}, slow = {.size = 0};
    assert_int_equal(cleat_words_split(text, size, &rules, add_word, &fast, NULL), CLEAT_OK);
    state->text.size = state->words.count = 0;
    cleat_aligned_text_add(&state->text, text, size, 0, (uint32_t)size);
    assert_int_equal(cleat_normalise(&bert, &state->text, &state->spare, &state->work, NULL), CLEAT_OK);
    cleat_spans_add(&state->words, 0, state->text.size);
    assert_int_equal(cleat_split_words(&splitter, state, NULL), CLEAT_OK);
    for (size_t i = 0; i < state->words.count; ++i) {
        const cleat_text_span word = state->words.items[i];
        const cleat_word wrapped = {.bytes = state->text.bytes + word.start, .size = (uint32_t)word.size};
        add_word(&slow, &wrapped);
    }
    if (fast.size != slow.size || memcmp(fast.bytes, slow.bytes, fast.size) != 0)
        fail_msg("'%.*s', lowercase %d: '%s' and '%s'", (int)size, text, lowercase, fast.bytes, slow.bytes);
}

static void bert_has_the_same_words_in_one_pass(void **state) {
    static const char *const ends[] = {"b", "\xCC\x81\xCC\xA3z", "\xE2\x80\x8D\xCC\xA3"};
    cleat_split_state split = {0};
    (void)state;
    for (int32_t c = 1; c < 0x110000; c += c < 0x33480 || (c >= 0xE0000 && c < 0xE0200) ? 1 : 101) {
        char text[64] = "Ae", bytes[4];
        if (c >= 0xD800 && c < 0xE000) continue;
        const size_t length = cleat_utf8_encode(c, bytes), before = c % 2 + 1;
        memcpy(text + before, bytes, length);
        for (int i = 0; i < 3; ++i) {
            strcpy(text + before + length, ends[i]);
            for (int lowercase = 0; lowercase < 2; ++lowercase) compare_words(text, strlen(text), lowercase, &split);
        }
    }
    cleat_split_state_free(&split);
}

/* --- words of sentences --------------------------------------------------------------------------------------- */

static void byte_level_words_of_sentences_have_a_space(void **state) {
    cleat_tokenizer *tokenizer = load(FOLDER("byte_bpe.json"), false);
    cleat_token text[8], word[8], both[8];
    size_t a = 0, b = 0, c = 0;
    (void)state;
    assert_int_equal(cleat_tokenizer_encode(tokenizer, "fox", 3, text, 8, &a, NULL), CLEAT_OK);
    assert_int_equal(cleat_tokenizer_encode_word(tokenizer, "fox", 3, word, 8, &b, NULL), CLEAT_OK);
    assert_int_equal(cleat_tokenizer_encode(tokenizer, " fox", 4, both, 8, &c, NULL), CLEAT_OK);
    assert_int_equal(b, c);
    for (size_t i = 0; i < b; ++i) assert_int_equal(word[i].id, both[i].id);
    assert_true(a != b || text[0].id != word[0].id);
    cleat_tokenizer_destroy(tokenizer);
}

static void special_tokens_have_roles(void **state) {
    cleat_tokenizer *bert = load(FOLDER("wordpiece.json"), false), *roberta = load(FOLDER("byte_bpe.json"), false);
    (void)state;
    assert_int_equal(cleat_tokenizer_cls(bert), 2);
    assert_int_equal(cleat_tokenizer_sep(bert), 3);
    assert_int_equal(cleat_tokenizer_pad(bert), 0);
    assert_int_equal(cleat_tokenizer_unk(bert), 1);
    assert_int_equal(cleat_tokenizer_mask(bert), 4);
    assert_true(cleat_tokenizer_lowercase(bert));
    assert_int_equal(cleat_tokenizer_specials(bert, true), 3);
    assert_int_equal(cleat_tokenizer_cls(roberta), 0);
    assert_int_equal(cleat_tokenizer_sep(roberta), 2);
    assert_int_equal(cleat_tokenizer_pad(roberta), 1);
    assert_int_equal(cleat_tokenizer_unk(roberta), 3);
    assert_string_equal(cleat_tokenizer_piece(roberta, cleat_tokenizer_mask(roberta)), "<mask>");
    assert_int_equal(cleat_tokenizer_size(roberta), cleat_tokenizer_mask(roberta) + 1);
    assert_int_equal(cleat_tokenizer_specials(roberta, false), 2);
    assert_int_equal(cleat_tokenizer_specials(roberta, true), 4);
    assert_false(cleat_tokenizer_lowercase(roberta));
    cleat_tokenizer_destroy(bert);
    cleat_tokenizer_destroy(roberta);
}

/* --- bad files ------------------------------------------------------------------------------------------------ */

static const char *json_path(void) {
    static char path[64];
    snprintf(path, sizeof path, "/tmp/cleat-tokenizer-%ld.json", (long)getpid());
    return path;
}

static cleat_status load_text(const char *json, cleat_tokenizer **tokenizer, cleat_error *error) {
    assert_int_equal(cleat_file_write(json_path(), json, strlen(json), error), CLEAT_OK);
    return cleat_tokenizer_load(json_path(), false, tokenizer, error);
}

static void expect_text(const cleat_tokenizer *tokenizer, const char *piece, const char *text) {
    char found[64];
    const int32_t id = cleat_tokenizer_id(tokenizer, piece);
    if (id < 0) fail_msg("there is no piece '%s'", piece);
    assert_true(cleat_tokenizer_piece_text(tokenizer, id, found, sizeof found));
    assert_string_equal(found, text);
}

static void pieces_are_shown_as_text(void **state) {
    char text[3];
    (void)state;
    cleat_tokenizer *bytes = load(FOLDER("byte_bpe.json"), false), *spaces = load(FOLDER("unigram.json"), false),
                    *pieces = load(FOLDER("wordpiece.json"), false);
    expect_text(bytes, "\u0120the", " the");
    expect_text(bytes, "e", "e");
    expect_text(bytes, "\u010A", "\u010A"); /* a line feed is not printed */
    expect_text(bytes, "\u00C3", "\u00C3"); /* nor is half a character */
    expect_text(bytes, "<mask>", "<mask>");
    expect_text(spaces, "\u2581the", " the");
    expect_text(pieces, "##e", "##e");
    cleat_tokenizer *model = load(FOLDER("tokenizer.model"), false);
    expect_text(model, "\u2581the", " the"); /* by the decoder */
    cleat_tokenizer_destroy(model);
    expect_text(pieces, "[MASK]", "[MASK]");
    assert_true(cleat_tokenizer_piece_text(bytes, cleat_tokenizer_id(bytes, "\u0120the"), text, sizeof text));
    assert_int_equal(strlen(text), 2);
    assert_false(cleat_tokenizer_piece_text(bytes, -1, text, sizeof text));
    assert_false(cleat_tokenizer_piece_text(pieces, 1 << 20, text, sizeof text));
    cleat_tokenizer_destroy(pieces);
    cleat_tokenizer_destroy(spaces);
    cleat_tokenizer_destroy(bytes);
}

static void expect_failure(const char *json, cleat_status status, const char *text) {
    cleat_tokenizer *tokenizer = NULL;
    cleat_error error = {0};
    assert_int_equal(load_text(json, &tokenizer, &error), status);
    assert_null(tokenizer);
    if (!strstr(error.text, text) || !strstr(error.text, json_path()))
        fail_msg("'%s' does not contain '%s'", error.text, text);
}

#define WORDPIECE "\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"[UNK]\":0,\"a\":1}}"

static void damaged_files_are_errors(void **state) {
    (void)state;
    expect_failure("", CLEAT_ERR_FORMAT, "not a tokenizer.json");
    expect_failure("[]", CLEAT_ERR_FORMAT, "not a tokenizer.json");
    expect_failure("{}", CLEAT_ERR_FORMAT, "model: missing");
    expect_failure("{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":1}", CLEAT_ERR_FORMAT, "truncated");
    expect_failure("{\"model\":\"\xFF\"}", CLEAT_ERR_FORMAT, "not UTF-8 text (byte 11)");
    expect_failure("{\"model\":{\"type\":\"Markov\"}}", CLEAT_ERR_NOT_SUPPORTED,
                   "unknown type 'Markov'; known are: WordPiece, BPE, Unigram");
    expect_failure("{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Turn\"}]}," WORDPIECE "}",
                   CLEAT_ERR_NOT_SUPPORTED, "normalizer: unknown type 'Turn'; known are: BertNormalizer, Strip");
    expect_failure("{\"pre_tokenizer\":{\"type\":\"Chop\"}," WORDPIECE "}", CLEAT_ERR_NOT_SUPPORTED,
                   "pre_tokenizer: unknown type 'Chop'");
    expect_failure("{\"post_processor\":{\"type\":\"Wrap\"}," WORDPIECE "}", CLEAT_ERR_NOT_SUPPORTED,
                   "post_processor: unknown type 'Wrap'");
    expect_failure("{\"model\":{\"type\":\"WordPiece\",\"vocab\":{}}}", CLEAT_ERR_FORMAT, "not empty");
    expect_failure("{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":4000000000}}}", CLEAT_ERR_FORMAT,
                   "the id of 'a'");
    expect_failure("{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":-1}}}", CLEAT_ERR_FORMAT, "the id of 'a'");
    expect_failure("{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":1.5}}}", CLEAT_ERR_FORMAT, "the id of 'a'");
    expect_failure("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[\"a c\"]}}", CLEAT_ERR_FORMAT,
                   "merge 1 of 'a' and 'c': the second is not in the vocabulary");
    expect_failure("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[[\"a\",\"b\"]]}}",
                   CLEAT_ERR_FORMAT, "their union is not in the vocabulary");
    expect_failure("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a\"]}}", CLEAT_ERR_FORMAT,
                   "two tokens");
    expect_failure("{\"model\":{\"type\":\"Unigram\",\"unk_id\":5,\"vocab\":[[\"a\",0]]}}", CLEAT_ERR_FORMAT,
                   "'unk_id'");
    expect_failure("{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\"]]}}", CLEAT_ERR_FORMAT, "entry 0 of 'vocab'");
    expect_failure("{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAA\"}," WORDPIECE "}",
                   CLEAT_ERR_FORMAT, "not base64");
    expect_failure("{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"////fwAA\"}," WORDPIECE "}",
                   CLEAT_ERR_FORMAT, "damaged");
    expect_failure("{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"(a\"},\"content\":\"\"}," WORDPIECE
                   "}",
                   CLEAT_ERR_NOT_SUPPORTED, "the expression '(a': missing closing parenthesis at character 3");
    expect_failure("{\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"x\",7],\"cls\":[\"y\",1]}," WORDPIECE
                   "}",
                   CLEAT_ERR_FORMAT, "no token has the id 7");
    expect_failure(
        "{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"[CLS]\"}}]"
        "}," WORDPIECE "}",
        CLEAT_ERR_FORMAT, "which 'special_tokens' lacks");
}

static void damaged_models_are_errors(void **state) {
    char path[64], *data = NULL;
    size_t size = 0;
    (void)state;
    snprintf(path, sizeof path, "/tmp/cleat-tokenizer-%ld.model", (long)getpid());
    assert_int_equal(cleat_file_read(FOLDER("sentencepiece.bpe.model"), &data, &size, NULL), CLEAT_OK);
    for (size_t cut = 0; cut < size; cut += 1 + size / 50) {
        cleat_tokenizer *tokenizer = NULL;
        cleat_error error = {0};
        assert_int_equal(cleat_file_write(path, data, cut, NULL), CLEAT_OK);
        /* a file truncated between two pieces is a smaller vocabulary */
        if (cleat_tokenizer_load(path, false, &tokenizer, &error) != CLEAT_OK)
            assert_non_null(strstr(error.text, path));
        cleat_tokenizer_destroy(tokenizer);
    }
    for (size_t at = 0; at < size; at += 67) {
        cleat_tokenizer *tokenizer = NULL;
        data[at] ^= 0x5A;
        assert_int_equal(cleat_file_write(path, data, size, NULL), CLEAT_OK);
        cleat_tokenizer_load(path, false, &tokenizer, NULL);
        cleat_tokenizer_destroy(tokenizer);
        data[at] ^= 0x5A;
    }
    cleat_free(data);
    unlink(path);
}

static void deep_nesting_is_an_error(void **state) {
    enum { DEPTH = 100000 };
    cleat_tokenizer *tokenizer = NULL;
    cleat_error error = {0};
    char *json = calloc(DEPTH + 1, 1);
    (void)state;
    memset(json, '[', DEPTH);
    assert_int_equal(load_text(json, &tokenizer, &error), CLEAT_ERR_FORMAT);
    free(json);
    cleat_string text = {0};
    for (int i = 0; i < 100; ++i) cleat_string_add(&text, "{\"type\":\"Sequence\",\"normalizers\":[");
    for (int i = 0; i < 100; ++i) cleat_string_add(&text, "]}");
    cleat_string whole = {0};
    cleat_string_add(&whole, "{\"normalizer\":%s," WORDPIECE "}", text.data);
    expect_failure(whole.data, CLEAT_ERR_FORMAT, "nested too deep");
    cleat_string_free(&text);
    cleat_string_free(&whole);
}

/* A file of a kilobyte in which every step doubles the text, to 2^40 bytes. */
static void steps_that_lengthen_a_text_without_end_are_an_error(void **state) {
    enum { STEPS = 40 };
    static const char *const steps[][2] = {
        {"normalizer", "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"aa\"}"},
        {"normalizer", "{\"type\":\"ByteLevel\"}"},
        {"pre_tokenizer", "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; ++i) {
        cleat_string json = {0};
        cleat_tokenizer *tokenizer = NULL;
        cleat_error error = {0};
        size_t count;
        cleat_string_add(&json, "{" WORDPIECE ",\"%s\":{\"type\":\"Sequence\",\"%s\":[", steps[i][0],
                         i < 2 ? "normalizers" : "pretokenizers");
        for (int k = 0; k < STEPS; ++k) cleat_string_add(&json, "%s%s", k ? "," : "", steps[i][1]);
        cleat_string_add(&json, "]}}");
        assert_int_equal(load_text(json.data, &tokenizer, &error), CLEAT_OK);
        assert_int_equal(cleat_tokenizer_encode(tokenizer, "a\xC3\xA9", 3, NULL, 0, &count, &error), CLEAT_ERR_FORMAT);
        assert_non_null(strstr(error.text, "lengthen a text of 3 bytes"));
        cleat_tokenizer_destroy(tokenizer);
        cleat_string_free(&json);
    }
    cleat_string json = {0}; /* the content of an added token is normalised when the file is read */
    cleat_string_add(&json, "{" WORDPIECE ",\"added_tokens\":[{\"content\":\"a\",\"normalized\":true}],\"normalizer\":"
                            "{\"type\":\"Sequence\",\"normalizers\":[");
    for (int k = 0; k < STEPS; ++k) cleat_string_add(&json, "%s%s", k ? "," : "", steps[0][1]);
    cleat_string_add(&json, "]}}");
    expect_failure(json.data, CLEAT_ERR_FORMAT, "lengthen the token a");
    cleat_string_free(&json);
}

static void templates_have_a_limit(void **state) {
    (void)state;
    cleat_string json = {0};
    cleat_string_add(&json,
                     "{" WORDPIECE
                     ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"special_tokens\":{\"a\":{\"ids\":[1");
    for (int i = 1; i < 200; ++i) cleat_string_add(&json, ",1");
    cleat_string_add(&json, "]}},\"single\":[{\"Sequence\":{\"id\":\"A\"}}");
    for (int i = 0; i < 200; ++i) cleat_string_add(&json, ",{\"SpecialToken\":{\"id\":\"a\"}}");
    cleat_string_add(&json, "]}}");
    expect_failure(json.data, CLEAT_ERR_FORMAT, "a template of more than 4096 tokens");
    cleat_string_free(&json);
}

static void no_memory_is_an_error(void **state) {
    cleat_status status = CLEAT_ERR_MEMORY;
    (void)state;
    for (long n = 1; status; ++n) {
        cleat_tokenizer *tokenizer = NULL;
        cleat_error error = {0};
        cleat_token tokens[64];
        size_t count;
        cleat_fail_allocation(n);
        status = cleat_tokenizer_load(FOLDER("unigram.json"), false, &tokenizer, &error);
        if (!status)
            status = cleat_tokenizer_encode(tokenizer, "the fo\xE2\x91\xA0  x", 11, tokens, 64, &count, &error);
        cleat_fail_allocation(0);
        if (status) assert_int_equal(status, CLEAT_ERR_MEMORY);
        assert_true(n < 20000);
        cleat_tokenizer_destroy(tokenizer);
    }
}

/* --- sizes ----------------------------------------------------------------------------------------------- */

/* A quadratic algorithm would take hours. */
static void a_word_of_megabytes_takes_a_moment(void **state) {
    enum { SIZE = 1 << 20 };
    static const char *const names[] = {"wordpiece", "byte_bpe", "unigram", "fallback_bpe"};
    char *text = malloc(SIZE), path[4096];
    (void)state;
    for (int pattern = 0; pattern < 3; ++pattern) {
        for (int i = 0; i < SIZE; ++i) text[i] = pattern == 0 ? 'a' : pattern == 1 ? "the"[i % 3] : ' ';
        for (int i = 0; i < 4; ++i) {
            snprintf(path, sizeof path, "%s%s.json", FOLDER(""), names[i]);
            cleat_tokenizer *tokenizer = load(path, false);
            size_t count = 0;
            assert_int_equal(cleat_tokenizer_encode(tokenizer, text, SIZE, NULL, 0, &count, NULL), CLEAT_OK);
            cleat_tokenizer_destroy(tokenizer);
        }
    }
    free(text);
}

/* Comparing each token with all others would also take hours: 2 * 10^10 comparisons. Of two tokens with the
 * same content, the second counts. */
static void many_added_tokens_take_a_moment(void **state) {
    enum { TOKENS = 200000 };
    (void)state;
    cleat_string json = {0};
    cleat_tokenizer *tokenizer = NULL;
    cleat_error error = {0};
    cleat_string_add(&json, "{" WORDPIECE ",\"added_tokens\":[");
    for (int i = 0; i < TOKENS; ++i) cleat_string_add(&json, "{\"content\":\"token%d\"},", i);
    cleat_string_add(&json, "{\"content\":\"token7\",\"special\":true}]}");
    assert_int_equal(load_text(json.data, &tokenizer, &error), CLEAT_OK);
    assert_int_equal(cleat_tokenizer_id(tokenizer, "token0"), 2);
    assert_int_equal(cleat_tokenizer_id(tokenizer, "token7"), 9);
    assert_int_equal(cleat_tokenizer_id(tokenizer, "token199999"), TOKENS + 1);
    assert_int_equal(cleat_tokenizer_id(tokenizer, "token"), -1);
    for (int i = 0; i < TOKENS; ++i) { /* each in the same time, regardless of its position in the list */
        char name[32];
        snprintf(name, sizeof name, "token%d", i);
        assert_string_equal(cleat_tokenizer_piece(tokenizer, i + 2), name);
    }
    cleat_tokenizer_destroy(tokenizer);
    cleat_string_free(&json);
}

/* A template with 100,000 names, and as many tokens: a linear search for each would take minutes. */
static void many_names_in_a_template_take_a_moment(void **state) {
    enum { NAMES = 100000 };
    (void)state;
    cleat_string json = {0};
    cleat_tokenizer *tokenizer = NULL;
    cleat_error error = {0};
    cleat_string_add(&json, "{" WORDPIECE ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"special_tokens\":{");
    for (int i = 0; i < NAMES; ++i) cleat_string_add(&json, "\"%d\":{\"ids\":[]},", i);
    cleat_string_add(&json, "\"a\":{\"ids\":[1]},\"a\":{\"ids\":[0]}},\"single\":[{\"Sequence\":{\"id\":\"A\"}}");
    for (int i = NAMES; i-- > 0;) cleat_string_add(&json, ",{\"SpecialToken\":{\"id\":\"%d\"}}", i);
    cleat_string_add(&json, ",{\"SpecialToken\":{\"id\":\"a\"}}],\"pair\":[{\"Sequence\":{\"id\":\"A\"}},{\"Sequence\":"
                            "{\"id\":\"B\"}}]}}");
    if (load_text(json.data, &tokenizer, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_int_equal(cleat_tokenizer_specials(tokenizer, false), 1);
    int32_t text = 0, ids[2] = {-1, -1};
    cleat_token_counts framed;
    assert_int_equal(cleat_tokenizer_frame(tokenizer, &(cleat_ids){&text, 1}, NULL, 2, ids, NULL, &framed, &error),
                     CLEAT_OK);
    assert_int_equal(ids[1], 1); /* the first of two with the same name, as in cJSON */
    cleat_tokenizer_destroy(tokenizer);
    cleat_string_free(&json);
}

static cleat_status encode_split(const char *expression, const char *text, size_t size, size_t *count,
                                 cleat_error *error) {
    cleat_string json = {0};
    cleat_tokenizer *tokenizer = NULL;
    cleat_string_add(
        &json,
        "{" WORDPIECE ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
        "\"WhitespaceSplit\"},{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":\"%s\"}}]}}",
        expression);
    if (load_text(json.data, &tokenizer, error) != CLEAT_OK) fail_msg("%s", error->text);
    cleat_string_free(&json);
    const cleat_status status = cleat_tokenizer_encode(tokenizer, text, size, NULL, 0, count, error);
    cleat_tokenizer_destroy(tokenizer);
    return status;
}

/* An expression that reads to the end of the text for each word, in one word and in many, and one that does not. */
static void the_limit_of_steps_belongs_to_the_text(void **state) {
    enum { SIZE = 1 << 13, WORD = 1 << 12 };
    static const char *const endless[] = {"a*b|a", "a*?b|a", "(?:a|a)*b|a", "a(?=a*b)|a", "(?:a+)*b|a"};
    (void)state;
    cleat_error error = {0};
    size_t count = 0;
    char *text = malloc(SIZE);
    for (size_t i = 0; i < sizeof endless / sizeof *endless; ++i) {
        memset(text, 'a', SIZE);
        assert_int_equal(encode_split(endless[i], text, SIZE, &count, &error), CLEAT_ERR_FORMAT);
        assert_non_null(strstr(error.text, "Split: its expression takes too many steps"));
        for (size_t k = 0; k < SIZE; k += WORD) text[k] = ' ';
        assert_int_equal(encode_split(endless[i], text, SIZE, &count, &error), CLEAT_ERR_FORMAT);
        assert_int_equal(encode_split(endless[i], "aab ab aaaa", 11, &count, &error), CLEAT_OK);
    }
    for (size_t k = 0; k < SIZE; k += 64) text[k] = 'b';
    assert_int_equal(encode_split("a*b|a", text, SIZE, &count, &error), CLEAT_OK);
    free(text);
}

/* White space that a token absorbs is read once, although a token may begin in it; no token is as long as a text. */
static void long_matches_of_tokens_take_a_moment(void **state) {
    enum { SIZE = 1 << 20, LONGEST = 1024 };
    (void)state;
    cleat_tokenizer *tokenizer = NULL;
    cleat_error error = {0};
    size_t count = 0;
    char *text = malloc(SIZE);
    memset(text, ' ', SIZE);
    assert_int_equal(load_text("{" WORDPIECE ",\"added_tokens\":[{\"content\":\" \",\"rstrip\":true,\"lstrip\":true}]}",
                               &tokenizer, &error),
                     CLEAT_OK);
    cleat_token tokens[2];
    assert_int_equal(cleat_tokenizer_encode(tokenizer, text, SIZE, tokens, 2, &count, &error), CLEAT_OK);
    assert_true(count == SIZE && tokens[0].end == SIZE && tokens[1].begin == 1 && tokens[1].end == SIZE);
    cleat_tokenizer_destroy(tokenizer);
    free(text);
    for (int more = 0; more < 2; ++more) {
        cleat_string json = {0};
        cleat_string_add(&json, "{" WORDPIECE ",\"added_tokens\":[{\"content\":\"");
        for (int i = 0; i < LONGEST + more; ++i) cleat_string_add(&json, "a");
        cleat_string_add(&json, "\"}]}");
        if (more) {
            expect_failure(json.data, CLEAT_ERR_FORMAT, "has 1025 bytes; the maximum is 1024");
        } else {
            assert_int_equal(load_text(json.data, &tokenizer, &error), CLEAT_OK);
            cleat_tokenizer_destroy(tokenizer);
        }
        cleat_string_free(&json);
    }
}

/* Sets of megabytes, and sets that compare each character of a text with thousands of ranges. */
static void a_long_set_takes_a_moment(void **state) {
    enum { CHARACTERS = 1 << 21, RANGES = 5000 };
    (void)state;
    cleat_error error = {0};
    cleat_string set = {0};
    size_t count = 0;
    cleat_string_add(&set, "[");
    for (int i = 0; i < CHARACTERS; ++i) cleat_string_add_bytes(&set, "b", 1);
    cleat_string_add(&set, "]");
    assert_int_equal(encode_split(set.data, "ab", 2, &count, &error), CLEAT_OK);
    cleat_string_free(&set);
    cleat_string_add(&set, "[");
    for (int i = 0; i < RANGES; ++i) cleat_string_add(&set, "\\\\u%04x", 0x400 + 2 * i);
    cleat_string_add(&set, "]*b|.");
    char text[1 << 12]; /* of the set's last character */
    for (size_t i = 0; i < sizeof text; i += 2) memcpy(text + i, "\xD0\x80", 2);
    assert_int_equal(encode_split(set.data, text, sizeof text, &count, &error), CLEAT_ERR_FORMAT);
    cleat_string_free(&set);
}

/* The matches of Hugging Face's tokenizers 0.23, including expressions that PCRE2 reads differently. */
static void expressions_mean_what_oniguruma_reads(void **state) {
    static const char *const cases[][3] = {
        {"^a|b$", "ab\nab\n", "a|b|a|b"},
        {"\\s", "a\341\240\216\342\200\203b\302\205", "\342\200\203|\302\205"},
        {"\\w+", "e\314\201.\342\205\240", "e\314\201|\342\205\240"},
        {"\\w+", "a\302\262.", "a\302\262"},
        {"[\\w]+", "a\302\262.", "a"},
        {"[\\P{L}b]+", "a.b1a", ".b1"},
        {"[^\\W_]+", "a_b", "a|b"},
        {"ba{,2}", "baaab", "baa|b"},
        {"x{", "x{", "x{"},
        {"(?<=a)b", "abb", "b"},
        {"\\p{L}+", ".\360\256\257\260.", "\360\256\257\260"},
        {"\\v", "a\nb\013", "\013"},
        {"[^\\p{Cn}]", "\360\256\257\260\315\270", "\360\256\257\260"},
        {"(?i:[k])", "K\342\204\252", "K|\342\204\252"},
        {"(?>a+)b?+", "aab", "aab"},
        {"a.{1,2}?b", "aabab", "aab"},
        {"[\\x41-\\u0043\\]-]+", "AC]-D", "AC]-"},
        {"a|(?:a|ab)(?=c)", "abc", "a"},
        {"[^a]", "a\360\237\230\200", "\360\237\230\200"},
    };
    static const char *const refused[] = {"\\h",    "\\b",   "\\pL",    "\\p{Greek}", "[[:alpha:]]",
                                          "[a&&b]", "a{3}?", "a{1,2}+", "(?m:a)",     "(*ACCEPT)",
                                          "a*",     "^",     "a|"};
    (void)state;
    cleat_pattern pattern = {0};
    cleat_error error = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        const char *text = cases[i][1];
        cleat_pattern_work work = {.steps = cleat_pattern_steps(strlen(text))};
        cleat_string found = {0};
        assert_int_equal(cleat_pattern_regex(cases[i][0], &pattern, &error), CLEAT_OK);
        for (size_t start, end = 0; cleat_pattern_find(&pattern, text, strlen(text), end, &work, &start, &end);)
            cleat_string_add(&found, "%s%.*s", found.size ? "|" : "", (int)(end - start), text + start);
        assert_string_equal(found.data, cases[i][2]);
        cleat_string_free(&found);
        cleat_pattern_work_free(&work);
        cleat_pattern_free(&pattern);
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i)
        assert_int_equal(cleat_pattern_regex(refused[i], &pattern, &error), CLEAT_ERR_NOT_SUPPORTED);
}

static void texts_that_are_not_utf8_are_encoded(void **state) {
    cleat_tokenizer *tokenizer = load(FOLDER("byte_bpe.json"), false);
    cleat_token tokens[16];
    size_t count = 0;
    (void)state;
    assert_int_equal(cleat_tokenizer_encode(tokenizer, "fox\xFF the", 8, tokens, 16, &count, NULL), CLEAT_OK);
    assert_true(count > 2);
    assert_int_equal(tokens[count - 1].end, 8);
    cleat_tokenizer_destroy(tokenizer);
}

static int remove_json(void **state) {
    (void)state;
    unlink(json_path());
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_those_of_hugging_face),
        cmocka_unit_test(shared_tokenizers_give_the_same_ids),
        cmocka_unit_test(bert_has_the_same_words_in_one_pass),
        cmocka_unit_test(byte_level_words_of_sentences_have_a_space),
        cmocka_unit_test(special_tokens_have_roles),
        cmocka_unit_test(pieces_are_shown_as_text),
        cmocka_unit_test(damaged_files_are_errors),
        cmocka_unit_test(damaged_models_are_errors),
        cmocka_unit_test(deep_nesting_is_an_error),
        cmocka_unit_test(steps_that_lengthen_a_text_without_end_are_an_error),
        cmocka_unit_test(templates_have_a_limit),
        cmocka_unit_test(no_memory_is_an_error),
        cmocka_unit_test(a_word_of_megabytes_takes_a_moment),
        cmocka_unit_test(many_added_tokens_take_a_moment),
        cmocka_unit_test(many_names_in_a_template_take_a_moment),
        cmocka_unit_test(the_limit_of_steps_belongs_to_the_text),
        cmocka_unit_test(a_long_set_takes_a_moment),
        cmocka_unit_test(expressions_mean_what_oniguruma_reads),
        cmocka_unit_test(long_matches_of_tokens_take_a_moment),
        cmocka_unit_test(texts_that_are_not_utf8_are_encoded),
    };
    return cmocka_run_group_tests(tests, NULL, remove_json);
}

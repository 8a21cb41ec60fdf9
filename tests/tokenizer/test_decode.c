/* Texts of ids equal Hugging Face's, at once and token by token; unknown decoders; tokens that begin and end texts. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cJSON.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleat/tokenizer.h"
#include "core/memory.h"
#include "core/string.h"
#include "platform/files.h"
#include "platform/text.h"
#include "source_path.h"
#include "tokenizer/normalise.h"
#include "tokenizer/unicode.h"

#define FOLDER(name) source_path("tests/tokenizer/tokenizers/" name)
#define ZERO "\xEF\x8E\xA7" /* U+F3A7 stands for a zero byte, at which cJSON's strings end */

static cleat_tokenizer *load(const char *path) {
    cleat_tokenizer *tokenizer = NULL;
    cleat_error error = {0};
    if (cleat_tokenizer_load(path, false, &tokenizer, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return tokenizer;
}

static const char *json_path(void) {
    static char path[64];
    snprintf(path, sizeof path, "/tmp/cleat-decode-%ld.json", (long)getpid());
    return path;
}

/* A tokenizer of a few pieces with this decoder. */
static cleat_tokenizer *with_decoder(const char *decoder) {
    FILE *file = fopen(json_path(), "w");
    assert_non_null(file);
    fprintf(
        file,
        "{\"decoder\":%s,\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{\"a\":0,\" b\":1,\"<0xE4>\":2,\"<0xB8>\":"
        "3,\"<0xAD>\":4,\"\xC3\xA4\":5,\"<0x+f>\":6,\"xx\":7,\" .\":8,\"##n't\":9,\" \":10,\"' "
        "\":11,\"a\\u0000\":12}}}",
        decoder);
    assert_int_equal(fclose(file), 0);
    return load(json_path());
}

/* Adds a text to `all` as the lines of the files have it. */
static void add_text(cleat_string *all, const char *data, size_t size) {
    for (size_t i = 0; i < size; ++i) cleat_string_add_bytes(all, data[i] ? &data[i] : ZERO, data[i] ? 1 : 3);
}

static void expect_text(const cleat_tokenizer *tokenizer, const int32_t *ids, size_t count, bool skip,
                        const char *expected) {
    cleat_error error = {0};
    cleat_string whole = {0}, parts = {0};
    cleat_token_stream *stream = NULL;
    size_t size = 0;
    char text[4096], few[2];
    if (cleat_tokenizer_decode(tokenizer, ids, count, skip, text, sizeof text, &size, &error) != CLEAT_OK)
        fail_msg("%s", error.text);
    assert_true(size < sizeof text);
    add_text(&whole, text, size);
    assert_string_equal(whole.data ? whole.data : "", expected);
    if (size > 2) { /* too little room */
        assert_int_equal(cleat_tokenizer_decode(tokenizer, ids, count, skip, few, 2, &size, NULL), CLEAT_OK);
        assert_memory_equal(few, text, 2);
    }
    assert_int_equal(cleat_token_stream_create(tokenizer, skip, &stream, &error), CLEAT_OK);
    for (int round = 0; round < 2; ++round, parts.size = 0) {
        cleat_text_view part;
        for (size_t i = 0; i <= count; ++i) {
            assert_int_equal(i < count ? cleat_token_stream_add(stream, ids[i], &part, &error)
                                       : cleat_token_stream_end(stream, &part, &error),
                             CLEAT_OK);
            assert_true(cleat_text_check(part.data, part.size, NULL));
            add_text(&parts, part.data, part.size);
        }
        assert_string_equal(parts.size ? parts.data : "", expected);
    }
    cleat_token_stream_destroy(stream);
    cleat_string_free(&whole);
    cleat_string_free(&parts);
}

static void expect_line(const cleat_tokenizer *tokenizer, char *line) {
    int32_t ids[256];
    size_t count = 0;
    for (char *at = line; (at = strstr(at, "\\u0000")) != NULL;) memcpy(at, "\\uF3A7", 6);
    cJSON *root = cJSON_Parse(line);
    const cJSON *id;
    assert_non_null(root);
    cJSON_ArrayForEach(id, cJSON_GetObjectItem(root, "ids")) {
        assert_true(count < sizeof ids / sizeof *ids);
        ids[count++] = id->valueint;
    }
    expect_text(tokenizer, ids, count, false, cJSON_GetStringValue(cJSON_GetObjectItem(root, "text")));
    expect_text(tokenizer, ids, count, true, cJSON_GetStringValue(cJSON_GetObjectItem(root, "skipped")));
    cJSON_Delete(root);
}

static void texts_are_those_of_hugging_face(void **state) {
    static const char *const files[][2] = {{"wordpiece.json", "wordpiece"}, {"byte_bpe.json", "byte_bpe"},
                                           {"unigram.json", "unigram"},     {"fallback_bpe.json", "fallback_bpe"},
                                           {"llama3.json", "llama3"},       {"tokenizer.model", "llama2"}};
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
        char path[4096], *line = NULL;
        size_t capacity = 0, lines = 0;
        snprintf(path, sizeof path, "%s%s", FOLDER(""), files[i][0]);
        cleat_tokenizer *tokenizer = load(path);
        snprintf(path, sizeof path, "%s%s.texts", FOLDER(""), files[i][1]);
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        for (; getline(&line, &capacity, file) > 0; ++lines) expect_line(tokenizer, line);
        assert_true(lines > 50);
        free(line);
        fclose(file);
        cleat_tokenizer_destroy(tokenizer);
    }
}

/* The results of tokenizers 0.23.3 for the ids beside them. */
static void each_decoder_does_its_step(void **state) {
    static const struct {
        const char *decoder;
        int32_t ids[8];
        size_t count;
        const char *text;
    } rows[] = {
        {"null", {0, 1, 7}, 3, "a  b xx"},
        {"{\"type\":\"Fuse\"}", {0, 1, -1, 99, 7}, 5, "a bxx"},
        {"{\"type\":\"ByteFallback\"}",
         {2, 3, 4, 0, 2, 3},
         6,
         "\xE4\xB8\xAD"
         "a\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"{\"type\":\"ByteFallback\"}",
         {6, 0},
         2,
         "\x0F"
         "a"},
        {"{\"type\":\"ByteLevel\"}",
         {5, 0, 1},
         3,
         "\xEF\xBF\xBD"
         "a b"},
        {"{\"type\":\"Strip\",\"content\":\"x\",\"start\":1,\"stop\":0}", {7, 7}, 2, "xx"},
        {"{\"type\":\"Strip\",\"content\":\"x\",\"start\":0,\"stop\":2}", {7, 0}, 2, "a"},
        {"{\"type\":\"Metaspace\",\"replacement\":\"x\",\"prepend_scheme\":\"always\"}", {7, 7}, 2, "  "},
        {"{\"type\":\"Metaspace\",\"replacement\":\"x\",\"prepend_scheme\":\"first\"}", {7, 7}, 2, "  "},
        {"{\"type\":\"Metaspace\",\"replacement\":\"x\",\"prepend_scheme\":\"never\"}", {7, 7}, 2, "    "},
        {"{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"x|b\"},\"content\":\"yy\"}", {7, 1}, 2, "yyyy yy"},
        {"{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}", {0, 8, 9, 0}, 4, "a .n't a"},
        {"{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":false}", {0, 8, 9}, 3, "a  .n't"},
        {"{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}", {0, 11}, 2, "a'"},
        {"{\"type\":\"Fuse\"}", {12, 0}, 2, "a" ZERO "a"},
        {"{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \",\"start\":2,"
         "\"stop\":0}]}",
         {0, 10, 1},
         3,
         "a  b"},
        {"{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \",\"start\":0,"
         "\"stop\":2}]}",
         {0, 10, 10, 0, 11, 10},
         6,
         "a  a'"},
        {"{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"xx\"},\"content\":\"\"},"
         "{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]}",
         {0, 7, 1},
         3,
         "a b"},
        {"{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"},{\"type\":\"Replace\",\"pattern\":{\"String\":"
         "\"xxx\"},"
         "\"content\":\"-\"}]}",
         {7, 7},
         2,
         "-x"},
        {"{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \",\"start\":1,"
         "\"stop\":0}]}",
         {1, 1, 0},
         3,
         "b ba"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_tokenizer *tokenizer = with_decoder(rows[i].decoder);
        expect_text(tokenizer, rows[i].ids, rows[i].count, false, rows[i].text);
        cleat_tokenizer_destroy(tokenizer);
    }
}

/* The number of U+FFFD that Python's bytes.decode(errors="replace") and Rust's from_utf8_lossy give. */
static void bytes_that_are_not_utf8_become_replacements(void **state) {
    static const struct {
        const char *bytes;
        size_t replacements, others;
    } rows[] = {{"\xF5\x80\x80", 3, 0},
                {"\xE0\x80\x80", 3, 0},
                {"\xE0\xA0", 1, 0},
                {"\xF0\x80\x80\x80", 4, 0},
                {"\xF0\x90\x80", 1, 0},
                {"\xED\xA0\x80", 3, 0},
                {"\xF4\x90\x80\x80", 4, 0},
                {"\xC1\xBF", 2, 0},
                {"\xE4\xB8z", 1, 1},
                {"\xF1\x80\x80\xE4\xB8\xAD", 1, 3},
                {"\x80", 1, 0},
                {"\xF1\x80\xC3\xA9", 1, 2}};
    (void)state;
    cleat_tokenizer *tokenizer = load(FOLDER("llama3.json"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        int32_t ids[8];
        char text[64];
        size_t count = 0, size = 0, found = 0;
        for (const char *byte = rows[i].bytes; *byte; ++byte) {
            char piece[8] = "";
            (void)cleat_utf8_encode(cleat_byte_char((unsigned char)*byte), piece);
            ids[count++] = cleat_tokenizer_id(tokenizer, piece);
        }
        assert_int_equal(cleat_tokenizer_decode(tokenizer, ids, count, false, text, sizeof text, &size, NULL),
                         CLEAT_OK);
        for (size_t at = 0; at + 3 <= size; ++at) found += memcmp(text + at, "\xEF\xBF\xBD", 3) == 0;
        assert_int_equal(found, rows[i].replacements);
        assert_int_equal(size, 3 * rows[i].replacements + rows[i].others);
    }
    cleat_tokenizer_destroy(tokenizer);
}

/* The text arrives as soon as it cannot change. */
static void characters_wait_for_their_last_byte(void **state) {
    static const char *const expected[] = {"a", "", "", "", "\xE4\xB8\xAD b", "a"};
    static const int32_t ids[] = {0, 2, 3, 4, 1, 0};
    (void)state;
    cleat_tokenizer *tokenizer = with_decoder("{\"type\":\"ByteFallback\"}");
    cleat_token_stream *stream = NULL;
    cleat_text_view text;
    assert_int_equal(cleat_token_stream_create(tokenizer, true, &stream, NULL), CLEAT_OK);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; ++i) {
        assert_int_equal(cleat_token_stream_add(stream, ids[i], &text, NULL), CLEAT_OK);
        assert_int_equal(text.size, strlen(expected[i]));
        assert_memory_equal(text.data, expected[i], text.size);
    }
    cleat_token_stream_destroy(stream);
    cleat_tokenizer_destroy(tokenizer);
}

static void unknown_decoders_only_prevent_decoding(void **state) {
    static const char *const rows[][2] = {
        {"{\"type\":\"CTC\"}", "unknown type 'CTC'; known are: ByteLevel, Metaspace"},
        {"{\"type\":\"Strip\"}", "Strip: 'content' is missing"},
        {"{}", "a part without a 'type'"},
    };
    const int32_t id = 0;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_tokenizer *tokenizer = with_decoder(rows[i][0]);
        cleat_token_stream *stream = NULL;
        cleat_error error = {0};
        size_t size;
        assert_int_equal(cleat_tokenizer_encode(tokenizer, "a", 1, NULL, 0, &size, NULL), CLEAT_OK);
        assert_int_equal(cleat_tokenizer_decode(tokenizer, &id, 1, false, NULL, 0, &size, &error),
                         CLEAT_ERR_NOT_SUPPORTED);
        assert_non_null(strstr(error.text, rows[i][1]));
        assert_int_equal(cleat_token_stream_create(tokenizer, false, &stream, &error), CLEAT_ERR_NOT_SUPPORTED);
        cleat_tokenizer_destroy(tokenizer);
    }
}

static void tokens_of_language_models_are_found(void **state) {
    (void)state;
    cleat_tokenizer *tokenizer = load(FOLDER("llama3.json"));
    const int32_t bos = cleat_tokenizer_id(tokenizer, "<|begin_of_text|>");
    assert_true(bos > 0 && cleat_tokenizer_bos(tokenizer) == bos && cleat_tokenizer_leading(tokenizer) == 1);
    assert_int_equal(cleat_tokenizer_eos(tokenizer), cleat_tokenizer_id(tokenizer, "<|end_of_text|>"));
    assert_true(cleat_tokenizer_is_special(tokenizer, bos));
    assert_false(cleat_tokenizer_is_special(tokenizer, cleat_tokenizer_id(tokenizer, "<tag>")));
    assert_false(cleat_tokenizer_is_special(tokenizer, -1) || cleat_tokenizer_is_special(tokenizer, 1 << 30));
    cleat_tokenizer_destroy(tokenizer);
    tokenizer = load(FOLDER("tokenizer.model"));
    assert_true(cleat_tokenizer_bos(tokenizer) == 1 && cleat_tokenizer_eos(tokenizer) == 2);
    assert_true(cleat_tokenizer_unk(tokenizer) == 0 && cleat_tokenizer_leading(tokenizer) == 1);
    cleat_tokenizer_destroy(tokenizer);
}

static void pieces_are_not_changed_by_other_replacements(void **state) {
    char text[8];
    (void)state;
    cleat_tokenizer *tokenizer =
        with_decoder("{\"type\":\"Replace\",\"pattern\":{\"String\":\"x\"},\"content\":\"y\"}");
    assert_true(cleat_tokenizer_piece_text(tokenizer, 7, text, sizeof text));
    assert_string_equal(text, "xx");
    cleat_tokenizer_destroy(tokenizer);
}

/* Gemma has </s> for text that is struck out. */
static void the_end_of_a_text_is_guessed(void **state) {
    FILE *file = fopen(json_path(), "w");
    (void)state;
    assert_non_null(file);
    fputs("{\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{\"</s>\":0,\"<eos>\":1}}}", file);
    assert_int_equal(fclose(file), 0);
    cleat_tokenizer *tokenizer = load(json_path());
    assert_true(cleat_tokenizer_eos(tokenizer) == 1 && cleat_tokenizer_bos(tokenizer) == -1);
    cleat_tokenizer_destroy(tokenizer);
}

/* Special tokens of a normalised form remain special, which they do not in the reference. */
static void normalised_special_tokens_are_left_out(void **state) {
    FILE *file = fopen(json_path(), "w");
    const int32_t ids[] = {0, 1};
    (void)state;
    assert_non_null(file);
    fputs("{\"decoder\":{\"type\":\"Fuse\"},\"normalizer\":{\"type\":\"Lowercase\"},\"added_tokens\":[{\"content\":\"<"
          "S>\","
          "\"special\":true,\"normalized\":true}],\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{\"a\":0}}}",
          file);
    assert_int_equal(fclose(file), 0);
    cleat_tokenizer *tokenizer = load(json_path());
    expect_text(tokenizer, ids, 2, false, "a<s>");
    expect_text(tokenizer, ids, 2, true, "a");
    cleat_tokenizer_destroy(tokenizer);
}

static void no_memory_is_an_error(void **state) {
    cleat_tokenizer *tokenizer = load(FOLDER("tokenizer.model"));
    const int32_t ids[] = {1, 300, 40, 41, 301, 2};
    cleat_status status = CLEAT_ERR_MEMORY;
    (void)state;
    for (long n = 1; status; ++n) {
        cleat_token_stream *stream = NULL;
        cleat_text_view text;
        size_t size;
        cleat_fail_allocation(n);
        status = cleat_tokenizer_decode(tokenizer, ids, 6, false, NULL, 0, &size, NULL);
        if (!status) status = cleat_token_stream_create(tokenizer, false, &stream, NULL);
        for (int i = 0; i < 6 && !status; ++i) status = cleat_token_stream_add(stream, ids[i], &text, NULL);
        if (!status) status = cleat_token_stream_end(stream, &text, NULL);
        cleat_fail_allocation(0);
        if (status) assert_int_equal(status, CLEAT_ERR_MEMORY);
        assert_true(n < 1000);
        cleat_token_stream_destroy(stream);
    }
    cleat_tokenizer_destroy(tokenizer);
}

/* Many tokens without a whole character, in one run. */
static void long_texts_take_a_moment(void **state) {
    enum { COUNT = 1 << 17 };
    (void)state;
    cleat_tokenizer *tokenizer = load(FOLDER("tokenizer.model"));
    const int32_t byte = cleat_tokenizer_id(tokenizer, "<0xE4>");
    int32_t *ids = malloc(COUNT * sizeof *ids);
    cleat_token_stream *stream = NULL;
    cleat_text_view text;
    size_t size = 0;
    for (int i = 0; i < COUNT; ++i) ids[i] = byte;
    assert_int_equal(cleat_tokenizer_decode(tokenizer, ids, COUNT, false, NULL, 0, &size, NULL), CLEAT_OK);
    assert_int_equal(size, 3 * COUNT);
    assert_int_equal(cleat_token_stream_create(tokenizer, false, &stream, NULL), CLEAT_OK);
    for (int i = 0; i < COUNT; ++i) assert_int_equal(cleat_token_stream_add(stream, byte, &text, NULL), CLEAT_OK);
    assert_int_equal(cleat_token_stream_end(stream, &text, NULL), CLEAT_OK);
    assert_int_equal(text.size, 3 * COUNT);
    cleat_token_stream_destroy(stream);
    cleat_tokenizer_destroy(tokenizer);
    free(ids);
}

static int remove_json(void **state) {
    (void)state;
    unlink(json_path());
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_those_of_hugging_face),
        cmocka_unit_test(each_decoder_does_its_step),
        cmocka_unit_test(bytes_that_are_not_utf8_become_replacements),
        cmocka_unit_test(characters_wait_for_their_last_byte),
        cmocka_unit_test(unknown_decoders_only_prevent_decoding),
        cmocka_unit_test(tokens_of_language_models_are_found),
        cmocka_unit_test(pieces_are_not_changed_by_other_replacements),
        cmocka_unit_test(the_end_of_a_text_is_guessed),
        cmocka_unit_test(normalised_special_tokens_are_left_out),
        cmocka_unit_test(no_memory_is_an_error),
        cmocka_unit_test(long_texts_take_a_moment),
    };
    return cmocka_run_group_tests(tests, NULL, remove_json);
}

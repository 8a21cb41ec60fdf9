/* What an export adds to its tokenizer files, and what it leaves unchanged. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/files.h"
#include "core/memory.h"
#include "models/text_tokenizer.h"
#include "platform/files.h"

static const char *const names[] = {"vocab.txt", "tokenizer.json", "tokenizer_config.json"};
enum { VOCABULARY, TOKENIZER, CONFIG, FILES };

static char folder[64];

static const char *path_of(int file) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, names[file]);
    return path;
}

static int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/cleat_export_tokenizer_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    for (int i = 0; i < FILES; ++i) unlink(path_of(i));
    return rmdir(folder);
}

static void write_text(int file, const char *text) {
    assert_int_equal(cleat_file_write(path_of(file), text, strlen(text), NULL), CLEAT_OK);
}

/* The caller frees it with cleat_free. */
static char *read_text(int file) {
    char *text = NULL;
    size_t size;
    cleat_error error = {0};
    if (cleat_file_read(path_of(file), &text, &size, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return text;
}

static cJSON *read_json(int file) {
    char *text = read_text(file);
    cJSON *json = cJSON_Parse(text);
    if (!json) fail_msg("%s is not JSON: %s", names[file], text);
    cleat_free(text);
    return json;
}

static void complete(cleat_export_texts texts) {
    cleat_error error = {0};
    if (cleat_export_tokenizer(folder, &texts, &error) != CLEAT_OK) fail_msg("%s", error.text);
}

static const cJSON *member(const cJSON *json, const char *name) {
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(json, name);
    if (!found) fail_msg("no '%s'", name);
    return found;
}

static void assert_inputs(const cJSON *config, int count) {
    static const char *const inputs[] = {"input_ids", "attention_mask", "token_type_ids"};
    const cJSON *list = member(config, "model_input_names");
    assert_int_equal(cJSON_GetArraySize(list), count);
    for (int i = 0; i < count; ++i) assert_string_equal(cJSON_GetArrayItem(list, i)->valuestring, inputs[i]);
}

static void a_vocabulary_alone_becomes_a_tokenizer_with_the_settings_of_the_run(void **state) {
    (void)state;
    for (int lowercase = 0; lowercase < 2; ++lowercase) {
        write_text(VOCABULARY, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nB\n");
        complete((cleat_export_texts){.max_length = 24, .token_types = true, .lowercase = lowercase});
        cJSON *tokenizer = read_json(TOKENIZER), *config = read_json(CONFIG);
        char *text = read_text(TOKENIZER);
        assert_int_equal(strstr(text, "\"lowercase\":true") != NULL, lowercase);
        cleat_free(text);
        assert_inputs(config, 3);
        assert_true(member(config, "model_max_length")->valuedouble == 24);
        assert_null(cJSON_GetObjectItem(config, "add_prefix_space"));
        cJSON_Delete(tokenizer);
        cJSON_Delete(config);
        for (int i = 0; i < FILES; ++i) assert_int_equal(unlink(path_of(i)), 0);
    }
}

/* A tokenizer with this pre-tokenizer. */
#define PIPELINE(step)                                                                                                 \
    "{\"pre_tokenizer\":" step ",\"model\":{\"type\":\"BPE\",\"vocab\":{\"<s>\":0,\"</s>\":1},\"merges\":[]}}"
#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true}"
#define INSIDE "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\"}," BYTE_LEVEL ",{\"type\":\"Digits\"}]}"

/* The step may be one of several. */
static void words_begin_with_a_space(void **state) {
    (void)state;
    static const char *const pipelines[] = {PIPELINE(BYTE_LEVEL), PIPELINE(INSIDE)};
    for (size_t i = 0; i < 2; ++i) {
        write_text(TOKENIZER, pipelines[i]);
        write_text(CONFIG, "{\"add_prefix_space\":false,\"model_max_length\":1e30}");
        complete((cleat_export_texts){.max_length = 7, .words = true});
        cJSON *tokenizer = read_json(TOKENIZER), *config = read_json(CONFIG);
        const cJSON *step = member(tokenizer, "pre_tokenizer");
        if (i == 1) step = cJSON_GetArrayItem(member(step, "pretokenizers"), 1);
        assert_true(cJSON_IsTrue(member(step, "add_prefix_space")));
        assert_true(cJSON_IsTrue(member(step, "use_regex")));
        assert_true(cJSON_IsTrue(member(config, "add_prefix_space")));
        assert_true(member(config, "model_max_length")->valuedouble == 7);
        assert_inputs(config, 2);
        cJSON_Delete(tokenizer);
        cJSON_Delete(config);
    }
}

/* Except for members that prevent transformers from using tokenizer.json directly. */
static void what_the_files_say_stays(void **state) {
    (void)state;
    static const char *const pipelines[] = {PIPELINE(BYTE_LEVEL), PIPELINE("{\"type\":\"Whitespace\"}")};
    write_text(VOCABULARY, "another tokenizer's");
    for (int words = 0; words < 2; ++words) { /* 0: texts; 1: words, split differently */
        write_text(TOKENIZER, pipelines[words]);
        write_text(CONFIG, "{\"model_input_names\":[\"x\"],\"model_max_length\":9,\"more\":1,\"cls_token\":\"</s>\","
                           "\"sep_token\":null,\"tokenizer_class\":\"DebertaV2Tokenizer\",\"padding_side\":\"left\","
                           "\"added_tokens_decoder\":{\"7\":{\"content\":\"x\"}},\"auto_map\":{}}");
        complete((cleat_export_texts){.max_length = 24, .token_types = true, .words = words});
        char *text = read_text(TOKENIZER);
        assert_string_equal(text, pipelines[words]);
        cleat_free(text);
        cJSON *config = read_json(CONFIG);
        assert_int_equal(cJSON_GetArraySize(config), 6);
        assert_int_equal(cJSON_GetArraySize(member(config, "model_input_names")), 1);
        assert_true(member(config, "model_max_length")->valuedouble == 9 && cJSON_HasObjectItem(config, "more"));
        assert_string_equal(member(config, "cls_token")->valuestring, "</s>");
        assert_string_equal(member(config, "sep_token")->valuestring, "</s>");
        assert_string_equal(member(config, "tokenizer_class")->valuestring, "PreTrainedTokenizerFast");
        cJSON_Delete(config);
    }
}

/* BertTokenizer reads its rules from tokenizer_config.json; the export writes them into tokenizer.json. */
static void options_of_a_class_are_in_the_pipeline(void **state) {
    (void)state;
    write_text(TOKENIZER, "{\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":true,\"strip_accents\":null},"
                          "\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"[UNK]\":0}}}");
    write_text(CONFIG, "{\"tokenizer_class\":\"BertTokenizer\",\"do_lower_case\":false}");
    complete((cleat_export_texts){.max_length = 24});
    cJSON *tokenizer = read_json(TOKENIZER);
    const cJSON *normaliser = member(tokenizer, "normalizer");
    assert_true(cJSON_IsFalse(member(normaliser, "lowercase")));
    assert_true(cJSON_IsFalse(member(normaliser, "strip_accents")));
    assert_true(cJSON_IsTrue(member(normaliser, "handle_chinese_chars")));
    cJSON_Delete(tokenizer);
}

static void a_folder_without_a_tokenizer_stays_empty(void **state) {
    (void)state;
    complete((cleat_export_texts){.max_length = 24, .words = true});
    for (int i = 0; i < FILES; ++i) assert_false(cleat_file_exists(path_of(i)));
}

static void damaged_files_are_refused(void **state) {
    (void)state;
    const cleat_export_texts texts = {.max_length = 24, .words = true};
    for (int file = TOKENIZER; file < FILES; ++file) {
        cleat_error error = {0};
        write_text(TOKENIZER, PIPELINE(BYTE_LEVEL));
        write_text(file, "{\"cut");
        assert_int_equal(cleat_export_tokenizer(folder, &texts, &error), CLEAT_ERR_FORMAT);
        assert_non_null(strstr(error.text, file == CONFIG ? names[file] : "truncated"));
        assert_int_equal(unlink(path_of(file)), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_vocabulary_alone_becomes_a_tokenizer_with_the_settings_of_the_run,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(words_begin_with_a_space, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(what_the_files_say_stays, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(options_of_a_class_are_in_the_pipeline, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_folder_without_a_tokenizer_stays_empty, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(damaged_files_are_refused, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

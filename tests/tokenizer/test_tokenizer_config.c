/* Configuration files beside a published tokenizer: what changes ids, what is logged, and what is refused. */
/* ctest: quick */
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
#include "source_path.h"
#include "tokenizer/tokenizer.h"

#define FOLDER(name) source_path("tests/tokenizer/tokenizers/" name)

static cleat_tokenizer *load(const char *path, bool lowercase) {
    cleat_tokenizer *tokenizer = NULL;
    cleat_error error = {0};
    if (cleat_tokenizer_load(path, lowercase, &tokenizer, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return tokenizer;
}

/* Writes a file into a folder. */
static void put(const char *folder, const char *name, const char *text) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(cleat_file_write(path, text, strlen(text), NULL), CLEAT_OK);
}

static void collect_log(void *user, cleat_log_level level, const char *text) {
    (void)level;
    cleat_string_add(user, "%s\n", text);
}

static const char *const tokenizer_files[] = {
    "tokenizer.json", "tokenizer_config.json",  "config.json", "vocab.txt", "vocab.json",
    "merges.txt",     "sentencepiece.bpe.model"};

static void remove_files(const char *folder) {
    char path[600];
    for (size_t i = 0; i < sizeof tokenizer_files / sizeof *tokenizer_files; ++i) {
        snprintf(path, sizeof path, "%s/%s", folder, tokenizer_files[i]);
        unlink(path);
    }
}

/* Loads the folder's tokenizer and captures the log. */
static cleat_tokenizer *load_logged(const char *folder, cleat_string *logged) {
    *logged = (cleat_string){0};
    cleat_set_log(collect_log, logged, CLEAT_LOG_INFO);
    cleat_tokenizer *tokenizer = load(folder, false);
    cleat_set_log(NULL, NULL, CLEAT_LOG_WARNING);
    return tokenizer;
}

/* As in transformers, whose BERT classes rebuild the normaliser of a tokenizer.json. The text of
 * tokenizer.json in checkpoints has the same rules. */
static void tokenizer_config_has_the_last_word(void **state) {
    static const struct {
        const char *config, *network;
        bool changes;
    } rows[] = {{"{}", "{}", false},
                {"{\"do_lower_case\": %s, \"tokenizer_class\": \"BertTokenizer\"}", "{}", true},
                {"{\"do_lower_case\": %s, \"tokenizer_class\": \"BertTokenizerFast\"}", "{}", true},
                {"{\"do_lower_case\": %s}", "{\"model_type\": \"distilbert\"}", true},
                {"{\"do_lower_case\": %s}", "{\"model_type\": \"xlm-roberta\"}", false},
                {"{\"do_lower_case\": %s, \"tokenizer_class\": \"PreTrainedTokenizerFast\"}",
                 "{\"model_type\": \"bert\"}", false}};
    char folder[] = "/tmp/cleat-tokenizer-XXXXXX", config[200], hashes[2][33], *json;
    size_t size;
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(cleat_file_read(FOLDER("wordpiece.json"), &json, &size, NULL), CLEAT_OK);
    put(folder, "tokenizer.json", json);
    cleat_tokenizer *before = load(FOLDER("wordpiece.json"), false);
    const bool lowercase = before->pipeline->lowercase;
    cleat_tokenizer_hash(before, hashes[0]);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_string logged;
        snprintf(config, sizeof config, rows[i].config, lowercase ? "false" : "true");
        put(folder, "tokenizer_config.json", config);
        put(folder, "config.json", rows[i].network);
        cleat_tokenizer *tokenizer = load_logged(folder, &logged);
        assert_int_equal(tokenizer->pipeline->lowercase, rows[i].changes ? !lowercase : lowercase);
        assert_int_equal(tokenizer->pipeline->normalisers[0].accents, tokenizer->pipeline->lowercase);
        assert_int_equal(logged.data && strstr(logged.data, "do_lower_case"), rows[i].changes);
        cleat_tokenizer_hash(tokenizer, hashes[1]);
        assert_int_equal(strcmp(hashes[0], hashes[1]) != 0, rows[i].changes);
        cleat_tokenizer_destroy(tokenizer);
        cleat_string_free(&logged);
    }
    cleat_tokenizer_destroy(before);
    cleat_free(json);
    remove_files(folder);
    rmdir(folder);
}

/* Settings of published folders (as saved by transformers 5.24 and 4.57, and on the hub) are not logged;
 * unsupported ones are. */
static void members_in_vain_are_named(void **state) {
    static const struct {
        const char *fixture, *config, *logged;
    } rows[] = {
        {"wordpiece.json",
         "{\"backend\":\"tokenizers\",\"cls_token\":\"[CLS]\",\"do_lower_case\":true,\"mask_token\":\"[MASK]\","
         "\"model_max_length\":1e30,\"strip_accents\":null,\"tokenize_chinese_chars\":true,\"tokenizer_class\":"
         "\"BertTokenizer\",\"unk_token\":\"[UNK]\",\"do_basic_tokenize\":true,\"never_split\":null,\"clean_up_"
         "tokenization_spaces\":false,\"extra_special_tokens\":{},\"added_tokens_decoder\":{\"0\":{\"content\":\"[PAD]"
         "\"}}}",
         NULL},
        {"byte_bpe.json",
         "{\"add_prefix_space\":false,\"backend\":\"tokenizers\",\"bos_token\":\"<s>\",\"eos_token\":\"</"
         "s>\",\"errors\":"
         "\"replace\",\"tokenizer_class\":\"RobertaTokenizer\",\"trim_offsets\":true}",
         NULL},
        {"unigram.json",
         "{\"add_prefix_space\":true,\"do_lower_case\":false,\"sp_model_kwargs\":{},\"split_by_punct\":false,"
         "\"tokenizer_class\":\"DebertaV2Tokenizer\",\"unk_id\":1,\"vocab_type\":\"spm\",\"truncation_side\":"
         "\"right\"}",
         NULL},
        {"llama3.json", /* Llama 3, Llama 2, Qwen 2.5 */
         "{\"add_bos_token\":true,\"add_eos_token\":false,\"bos_token\":{\"content\":\"<s>\"},\"legacy\":false,"
         "\"spaces_between_special_tokens\":false,\"tokenizer_class\":\"LlamaTokenizer\","
         "\"use_default_system_prompt\":false}",
         NULL},
        {"byte_bpe.json",
         "{\"additional_special_tokens\":[],\"bos_token\":null,\"chat_template\":\"x\",\"split_special_tokens\":"
         "false,\"tokenizer_class\":\"Qwen2Tokenizer\",\"unk_token\":null}",
         NULL},
        {"llama3.json", "{\"add_bos_token\":false}", "add_bos_token of tokenizer_config.json is not used"},
        {"llama3.json", "{\"add_eos_token\":true}", "add_eos_token of tokenizer_config.json is not used"},
        {"byte_bpe.json", "{\"add_prefix_space\":true,\"tokenizer_class\":\"RobertaTokenizer\"}", "add_prefix_space"},
        {"byte_bpe.json", "{\"add_prefix_space\":true,\"tokenizer_class\":\"PreTrainedTokenizerFast\"}", NULL},
        {"unigram.json", "{\"do_lower_case\":true,\"tokenizer_class\":\"DebertaV2Tokenizer\"}", "do_lower_case"},
        {"unigram.json", "{\"split_by_punct\":true,\"tokenizer_class\":\"DebertaV2Tokenizer\"}", "split_by_punct"},
        {"unigram.json", "{\"add_prefix_space\":false,\"tokenizer_class\":\"XLMRobertaTokenizer\"}",
         "add_prefix_space"},
        {"wordpiece.json", "{\"truncation_side\":\"left\"}", "truncation_side is \"left\"; cleat drops the end"},
        {"wordpiece.json", "{\"padding_side\":\"left\"}", "padding_side"},
        {"wordpiece.json", "{\"split_special_tokens\":true}", "split_special_tokens"},
        {"wordpiece.json", "{\"word_tokenizer_type\":\"mecab\",\"b\":1}", "not used: word_tokenizer_type, b; they may"},
        {"wordpiece.json", "{\"added_tokens_decoder\":{\"5\":{\"content\":\"[E1]\"}}}", "'[E1]' (5)"},
    };
    char folder[] = "/tmp/cleat-tokenizer-XXXXXX", *json;
    size_t size;
    (void)state;
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char path[600];
        cleat_string logged;
        snprintf(path, sizeof path, "%s/%s", FOLDER(""), rows[i].fixture);
        assert_int_equal(cleat_file_read(path, &json, &size, NULL), CLEAT_OK);
        put(folder, "tokenizer.json", json);
        put(folder, "tokenizer_config.json", rows[i].config);
        cleat_tokenizer_destroy(load_logged(folder, &logged));
        if (rows[i].logged ? !logged.data || !strstr(logged.data, rows[i].logged) : logged.size > 0)
            fail_msg("%s: logged '%s'", rows[i].config, logged.data ? logged.data : "");
        cleat_string_free(&logged);
        cleat_free(json);
    }
    remove_files(folder);
    rmdir(folder);
}

/* Older files lack the rules of a class: each kind is read as that of its usual classes. */
static void older_files_of_another_class_are_refused(void **state) {
    enum { VOCABULARY, MERGES, PIECES };
    static const struct {
        int files;
        const char *config, *network, *refused; /* NULL: it is read */
    } rows[] = {
        {VOCABULARY, "{\"tokenizer_class\":\"ElectraTokenizerFast\"}", "{}", NULL},
        {VOCABULARY, "{\"do_lower_case\":false}", "{\"model_type\":\"bert\"}", NULL},
        {VOCABULARY, "{\"tokenizer_class\":\"BertJapaneseTokenizer\"}", "{}", "BertJapaneseTokenizer"},
        {VOCABULARY, "{}", "{\"model_type\":\"bert\",\"tokenizer_class\":\"BertJapaneseTokenizer\"}", "BertJapanese"},
        {VOCABULARY, "{\"do_lower_case\":\"yes\"}", "{}", "do_lower_case"},
        {VOCABULARY, "{\"cut", "{}", "tokenizer_config.json"},
        {MERGES, "{}", "{}", NULL},
        {MERGES, "{\"tokenizer_class\":\"RobertaTokenizer\"}", "{}", NULL},
        {MERGES, "{\"tokenizer_class\":\"GPT2Tokenizer\"}", "{}", "tokenizer_class is GPT2Tokenizer"},
        {MERGES, "{}", "{\"model_type\":\"gpt2\"}", "gpt2"},
        {PIECES, "{}", "{\"model_type\":\"xlm-roberta\"}", NULL},
        {PIECES, "{\"tokenizer_class\":\"XLMRobertaTokenizerFast\"}", "{\"model_type\":\"t5\"}", NULL},
        {PIECES, "{\"tokenizer_class\":\"T5Tokenizer\"}", "{\"model_type\":\"xlm-roberta\"}", "T5Tokenizer"},
        {PIECES, "{\"tokenizer_class\":\"BertTokenizer\"}", "{}", "BertTokenizer"},
        {PIECES, "{\"tokenizer_class\":\"DebertaV2Tokenizer\"}", "{}", "XLMRobertaTokenizer"},
        {PIECES, "{}", "{\"model_type\":\"camembert\"}", "camembert"},
    };
    char folder[] = "/tmp/cleat-tokenizer-XXXXXX", path[600], *pieces;
    size_t size;
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(cleat_file_read(FOLDER("sentencepiece.bpe.model"), &pieces, &size, NULL), CLEAT_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_tokenizer *tokenizer = NULL;
        cleat_error error = {0};
        remove_files(folder);
        put(folder, "tokenizer_config.json", rows[i].config);
        put(folder, "config.json", rows[i].network);
        if (rows[i].files == VOCABULARY) put(folder, "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nday\n");
        if (rows[i].files == MERGES) {
            put(folder, "vocab.json", "{\"<s>\":0,\"</s>\":1,\"a\":2}");
            put(folder, "merges.txt", "#version: 0.2\n");
        }
        snprintf(path, sizeof path, "%s/sentencepiece.bpe.model", folder);
        if (rows[i].files == PIECES) assert_int_equal(cleat_file_write(path, pieces, size, NULL), CLEAT_OK);
        cleat_status status = cleat_tokenizer_load(folder, false, &tokenizer, &error);
        if (rows[i].refused ? !status || !strstr(error.text, rows[i].refused) : status != CLEAT_OK)
            fail_msg("%s, %s: %s", rows[i].config, rows[i].network, error.text);
        cleat_tokenizer_destroy(tokenizer);
    }
    cleat_free(pieces);
    remove_files(folder);
    rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokenizer_config_has_the_last_word),
        cmocka_unit_test(members_in_vain_are_named),
        cmocka_unit_test(older_files_of_another_class_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

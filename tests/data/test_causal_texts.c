/* Texts for causal language models: files, what is learned, packing, splits, predictions, and bad input. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleat/data.h"
#include "core/files.h"
#include "core/memory.h"
#include "data/dataset.h"
#include "files.h"
#include "platform/processes.h"
#include "source_path.h"

enum { LONGEST = 512 };

static const char *tokenizer_folder(void) {
    return source_path("tests/data/chats");
}

/* Options for small files: ChatML, all samples for training, a row each. */
static cleat_causal_options options_of(void) {
    cleat_causal_options options = cleat_causal_defaults();
    options.vocabulary = tokenizer_folder();
    options.chat_name = "chatml";
    options.val_fraction = 0;
    options.pack = false;
    options.max_length = LONGEST;
    return options;
}

static cleat_dataset *must_open(const char *path, const cleat_causal_options *options) {
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    if (cleat_causal_open(path, options, &dataset, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return dataset;
}

static cleat_dataset *open_text(const char *name, const char *text, const cleat_causal_options *options) {
    test_write_text(test_path(name), text);
    return must_open(test_path(name), options);
}

typedef struct row {
    int32_t tokens[LONGEST], labels[LONGEST], starts[LONGEST];
    int64_t length;
} row;

static row fill(const cleat_dataset *dataset, size_t index) {
    row r;
    int32_t positions[LONGEST];
    void *const slots[] = {r.tokens, r.labels, r.starts, positions};
    assert_int_equal(cleat_dataset_fill(dataset, index, LONGEST, NULL, slots, NULL), CLEAT_OK);
    for (r.length = 0; r.length < LONGEST && r.starts[r.length] < LONGEST;) ++r.length;
    for (int64_t i = r.length; i < LONGEST; ++i) {
        assert_int_equal(r.tokens[i], -1);
        assert_int_equal(r.labels[i], -1);
        assert_int_equal(r.starts[i], INT32_MAX);
    }
    for (int64_t i = 0; i < LONGEST && cleat_dataset_fields(dataset) == 4; ++i)
        assert_int_equal(positions[i], i < r.length ? i - r.starts[i] : -1);
    return r;
}

/* Tokens [count] as text. */
static void add_tokens(const cleat_tokenizer *tokenizer, const int32_t *ids, int64_t count, cleat_string *text) {
    char piece[200];
    for (int64_t i = 0; i < count; ++i) {
        assert_true(cleat_tokenizer_piece_text(tokenizer, ids[i], piece, sizeof piece));
        cleat_string_add(text, "%s", strcmp(piece, "\u010A") == 0 ? "\n" : piece); /* a line break has no text */
    }
}

/* The inputs and learned tokens of a row as text: "inputs => learned". */
static const char *shown(const cleat_dataset *dataset, size_t index) {
    static char buffer[8000];
    const row r = fill(dataset, index);
    cleat_string text = {0};
    add_tokens(cleat_causal_tokenizer(dataset), r.tokens, r.length, &text);
    cleat_string_add(&text, " => ");
    for (int64_t i = 0; i < r.length; ++i)
        if (r.labels[i] >= 0) add_tokens(cleat_causal_tokenizer(dataset), &r.labels[i], 1, &text);
    snprintf(buffer, sizeof buffer, "%s", text.data);
    cleat_string_free(&text);
    return buffer;
}

static void answers_and_their_end_are_learned(void **state) {
    static const char text[] =
        "{\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}, {\"role\": \"assistant\", \"content\": "
        "\"Hi\"}]}\n"
        "\n"
        "{\"prompt\": \"Hello\", \"completion\": \"Hi\", \"id\": 7}\r\n"
        "{\"text\": \"Hello there\"}\n"
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"b\", "
        "\"weight\": "
        "0}, {\"role\": \"user\", \"content\": \"c\"}, {\"role\": \"assistant\", \"content\": \"d\"}]}";
    cleat_causal_options options = options_of();
    (void)state;
    cleat_dataset *dataset = open_text("some.jsonl", text, &options);
    static const char hello[] = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\nHi => Hi<|im_end|>";
    assert_int_equal(cleat_dataset_count(dataset), 4);
    assert_string_equal(shown(dataset, 0), hello);
    assert_string_equal(shown(dataset, 1), hello);
    assert_string_equal(shown(dataset, 2), "Hello there =>  there</s>");
    assert_string_equal(shown(dataset, 3), "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n"
                                           "<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\nd => d<|im_end|>");
    assert_string_equal(cleat_dataset_id(dataset, 1), "3"); /* the line */
    assert_int_equal(cleat_causal_end(dataset), cleat_tokenizer_id(cleat_causal_tokenizer(dataset), "<|im_end|>"));
    cleat_dataset_destroy(dataset);
    options.train_on = CLEAT_ON_ALL;
    options.system = "Be brief.";
    dataset = open_text("some.jsonl", text, &options);
    assert_string_equal(
        shown(dataset, 0),
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
        "Hi<|im_end|> => system\nBe brief.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n"
        "<|im_start|>assistant\nHi<|im_end|>\n");
    cleat_dataset_destroy(dataset);
}

/* A completion begins inside a token: "Hel" + "lo" is one, and is learned. Without a template texts follow each other,
 * a text begins with the tokens of the tokenizer, and EOS is added where it is not there already. */
static void a_token_across_the_border_is_learned(void **state) {
    static const char text[] = "prompt,completion\n"
                               "How are Hel,lo there\n"
                               "How are you?, fine</s>\n"
                               "<s>How, are\n";
    cleat_causal_options options = options_of();
    char *json, *at, folder[600];
    size_t size;
    (void)state;
    options.chat_name = "none";
    cleat_dataset *dataset = open_text("some.CSV", text, &options);
    assert_string_equal(shown(dataset, 0), "How are Hello there => Hello there</s>");
    assert_string_equal(shown(dataset, 1), "How are you? fine =>  fine</s>");
    cleat_dataset_destroy(dataset);
    snprintf(folder, sizeof folder, "%s", test_folder("leading"));
    json = test_read(source_path("tests/data/chats/tokenizer.json"), &size);
    assert_non_null(at = strstr(json, "\"post_processor\": null"));
    cleat_string changed = {0};
    cleat_string_add_bytes(&changed, json, (size_t)(at - json));
    cleat_string_add(
        &changed, "%s%s",
        "\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": "
        "\"<s>\", \"type_id\": 0}}, {\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}], \"pair\": [{\"Sequence\": "
        "{\"id\": \"A\", \"type_id\": 0}}, {\"Sequence\": {\"id\": \"B\", \"type_id\": 0}}], "
        "\"special_tokens\": {\"<s>\": {\"id\": \"<s>\", \"ids\": [0], \"tokens\": [\"<s>\"]}}}",
        at + strlen("\"post_processor\": null"));
    snprintf(folder + strlen(folder), 100, "/tokenizer.json");
    test_write_text(folder, changed.data);
    options.vocabulary = folder;
    dataset = open_text("some.csv", text, &options);
    assert_string_equal(shown(dataset, 0), "<s>How are Hello there => Hello there</s>");
    assert_string_equal(shown(dataset, 2), "<s>How are =>  are</s>"); /* not twice */
    cleat_dataset_destroy(dataset);
    cleat_string_free(&changed);
    free(json);
}

static void long_samples_are_cut_and_long_texts_divided(void **state) {
    cleat_causal_options options = options_of();
    (void)state;
    options.max_length = 16;
    test_keep_log();
    cleat_dataset *dataset = open_text(
        "long.jsonl",
        "{\"prompt\": \"a\", \"completion\": \"Hello Hello Hello Hello Hello Hello\"}\n" /* 11 places before the answer */
        "{\"prompt\": \"Hello a a a a a a a a\", \"completion\": \"b\"}\n"
        "{\"text\": \"Hello Hello Hello Hello Hello Hello Hello Hello Hello Hello Hello Hello\"}\n"
        "{\"text\": \" \\n\"}\n"
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n",
        &options);
    const cleat_causal_summary found = cleat_causal_summarise(dataset);
    const char *logged = test_logged();
    assert_int_equal(found.samples[CLEAT_SPLIT_TRAIN], 4);
    assert_int_equal(found.cut, 2);
    assert_int_equal(found.dropped, 2);
    assert_int_equal(found.divided, 1);
    assert_non_null(strstr(logged, "warning: "));
    assert_non_null(strstr(logged, "2 samples have more than 16 tokens and lose their end"));
    assert_non_null(strstr(logged, "2 samples have no answer, or none within data.max_length"));
    assert_non_null(strstr(logged, "1 empty texts are skipped"));
    int64_t learned = 0;
    for (size_t i = 0; i < cleat_dataset_count(dataset); ++i) {
        const row r = fill(dataset, i);
        assert_true(r.length <= 16);
        learned += cleat_dataset_items(dataset, i);
        if (i == 0) assert_int_equal(r.length, 16);
    }
    assert_int_equal(found.learned, learned);
    assert_string_equal(cleat_dataset_id(dataset, 2), "3/2");
    cleat_dataset_destroy(dataset);
    cleat_error error = {0};
    test_write_text(test_path("cut.jsonl"), "{\"prompt\": \"Hello a a a a a a a a\", \"completion\": \"b\"}\n");
    assert_int_equal(cleat_causal_open(test_path("cut.jsonl"), &options, &dataset, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "of 1, 1 end at data.max_length = 16 before their answers"));
}

/* --- packing, on tweets --------------------------------------------------------------------------------------- */

static cleat_causal_options tweets_of(void) {
    cleat_causal_options options = options_of();
    options.prompt_column = "text";
    options.completion_column = "sentiment";
    options.max_length = 256;
    options.val_fraction = 0.1;
    return options;
}

/* Sums of hashes of the samples of all rows, which do not depend on their order. */
static uint64_t sum_of_samples(const cleat_dataset *dataset, size_t *samples) {
    uint64_t sum = 0;
    *samples = 0;
    for (size_t i = 0; i < cleat_dataset_count(dataset); ++i) {
        const row r = fill(dataset, i);
        for (int64_t from = 0, at = 1; at <= r.length; ++at) {
            if (at < r.length && r.starts[at] == from) continue;
            char hash[33];
            int32_t both[2 * LONGEST];
            memcpy(both, r.tokens + from, (size_t)(at - from) * 4);
            memcpy(both + (at - from), r.labels + from, (size_t)(at - from) * 4);
            cleat_hash_text(both, (size_t)(at - from) * 8, hash);
            sum += strtoull(hash + 16, NULL, 16);
            ++*samples;
            if (at < r.length) assert_int_equal(r.starts[at], at);
            from = at;
        }
    }
    return sum;
}

static void rows_hold_each_sample_once(void **state) {
    const char *path = shared_path("data/tweets_sentiment");
    cleat_causal_options options = tweets_of();
    size_t samples, packed_samples;
    (void)state;
    if (!cleat_folder_exists(path)) skip();
    cleat_dataset *alone = must_open(path, &options);
    options.pack = true;
    options.positions = true;
    cleat_dataset *packed = must_open(path, &options);
    assert_int_equal(cleat_dataset_fields(alone), 3);
    assert_int_equal(cleat_dataset_fields(packed), 4);
    assert_string_equal(cleat_dataset_field(packed, 3)->name, "positions");
    const cleat_causal_summary one = cleat_causal_summarise(alone), all = cleat_causal_summarise(packed);
    assert_true(sum_of_samples(alone, &samples) == sum_of_samples(packed, &packed_samples));
    assert_int_equal(samples, packed_samples);
    assert_int_equal(samples, one.samples[CLEAT_SPLIT_TRAIN] + one.samples[CLEAT_SPLIT_VAL] - one.dropped);
    assert_true(samples > 20000);
    assert_int_equal(one.places, all.places);
    assert_int_equal(one.learned, all.learned);
    const size_t least = (all.places + 255) / 256; /* rows that are full */
    assert_true(cleat_dataset_count(packed) >= least && (double)cleat_dataset_count(packed) < 1.01 * (double)least + 2);
    for (size_t i = 0; i < cleat_dataset_count(packed); ++i) {
        const int64_t own = fill(packed, i).length;
        assert_int_equal(cleat_dataset_length(packed, i), 256);
        assert_true(own <= 256);
    }
    for (size_t i = 0; i < cleat_dataset_count(alone); ++i)
        assert_int_equal(cleat_dataset_length(alone, i), fill(alone, i).length);
    cleat_dataset_destroy(alone);
    cleat_dataset_destroy(packed);
}

static void threads_and_the_cache_change_nothing(void **state) {
    const char *path = shared_path("data/tweets_sentiment/val.csv");
    cleat_causal_options options = tweets_of();
    (void)state;
    if (!cleat_file_exists(path)) skip();
    options.pack = true;
    cleat_dataset *first = must_open(path, &options);
    setenv("CLEAT_CACHE_DIR", test_folder("cache"), 1);
    options.workers = 3;
    options.cache = true;
    for (int i = 0; i < 3; ++i) { /* encoded; from the cache; encoded again, for other spans */
        if (i == 2) options.train_on = CLEAT_ON_ALL;
        cleat_dataset *again = must_open(path, &options);
        if (i < 2) assert_int_equal(cleat_dataset_count(first), cleat_dataset_count(again));
        size_t same = 0;
        for (size_t r = 0; r < cleat_dataset_count(first) && i < 2; ++r) {
            const row a = fill(first, r), b = fill(again, r);
            assert_memory_equal(a.tokens, b.tokens, sizeof a.tokens);
            assert_memory_equal(a.labels, b.labels, sizeof a.labels);
            assert_memory_equal(a.starts, b.starts, sizeof a.starts);
            assert_string_equal(cleat_dataset_id(first, r), cleat_dataset_id(again, r));
            ++same;
        }
        if (i < 2) assert_true(same > 100);
        if (i == 2) assert_true(cleat_causal_summarise(again).learned > 5 * cleat_causal_summarise(first).learned);
        cleat_dataset_destroy(again);
    }
    cleat_dataset_destroy(first);
}

/* --- splits and folders --------------------------------------------------------------------------------------- */

static void equal_prompts_are_in_one_split(void **state) {
    cleat_string text = {0};
    cleat_causal_options options = options_of();
    size_t counts[CLEAT_SPLITS] = {0};
    (void)state;
    options.val_fraction = 0.3;
    for (int i = 0; i < 90; ++i)
        cleat_string_add(&text, "{\"prompt\": \"question %d\", \"completion\": \"answer %d\"}\n", i / 3, i);
    cleat_dataset *dataset = open_text("some.jsonl", text.data, &options);
    for (size_t i = 0; i < 90; ++i) ++counts[cleat_dataset_split(dataset, i)];
    assert_true(counts[CLEAT_SPLIT_VAL] > 9 && counts[CLEAT_SPLIT_VAL] < 60);
    for (size_t i = 0; i < 90; ++i) { /* rows are in the order of splits: by their ids */
        const size_t line = (size_t)atoi(cleat_dataset_id(dataset, i)) - 1;
        for (size_t k = 0; k < 90; ++k)
            if ((size_t)(atoi(cleat_dataset_id(dataset, k)) - 1) / 3 == line / 3)
                assert_int_equal(cleat_dataset_split(dataset, k), cleat_dataset_split(dataset, i));
    }
    cleat_dataset_destroy(dataset);
    options.fold = (cleat_fold){.index = 1, .count = 3};
    dataset = open_text("some.jsonl", text.data, &options);
    assert_int_equal(cleat_causal_summarise(dataset).samples[CLEAT_SPLIT_VAL], 30);
    cleat_dataset_destroy(dataset);
    cleat_string_free(&text);
}

static void folders_and_plain_texts_are_read(void **state) {
    cleat_causal_options options = options_of();
    char folder[600], path[700];
    (void)state;
    snprintf(folder, sizeof folder, "%s", test_folder("set"));
    snprintf(path, sizeof path, "%s/train.txt", folder);
    test_write_text(path, "\xEF\xBB\xBFHello there,\r\nhow are you?\r\n\r\n \n\nThe answer\n");
    snprintf(path, sizeof path, "%s/dev.jsonl", folder);
    test_write_text(path, "{\"text\": \"42\"}\n");
    cleat_dataset *dataset = must_open(folder, &options);
    assert_int_equal(cleat_dataset_count(dataset), 3);
    assert_string_equal(shown(dataset, 0), "Hello there,\nhow are you? =>  there,\nhow are you?</s>");
    assert_string_equal(shown(dataset, 1), "The answer =>  answer</s>");
    assert_int_equal(cleat_dataset_split(dataset, 2), CLEAT_SPLIT_VAL);
    cleat_dataset_destroy(dataset);
}

/* A model that is trained already needs no training samples. */
static void training_needs_samples(void **state) {
    cleat_causal_options options = options_of();
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    char folder[600], path[700];
    (void)state;
    snprintf(folder, sizeof folder, "%s", test_folder("unlearned"));
    snprintf(path, sizeof path, "%s/train.jsonl", folder);
    test_write_text(path, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n");
    snprintf(path, sizeof path, "%s/val.jsonl", folder);
    test_write_text(path, "{\"text\": \"Hello there\"}\n");
    assert_int_equal(cleat_causal_open(folder, &options, &dataset, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "the training split has no samples"));
    options.fitted = tokenizer_folder();
    dataset = must_open(folder, &options);
    assert_int_equal(cleat_dataset_count(dataset), 1);
    cleat_dataset_destroy(dataset);
}

static void a_line_may_be_long(void **state) {
    enum { WORDS = 300000 };
    cleat_causal_options options = options_of();
    cleat_string text = {0};
    (void)state;
    cleat_string_add(&text, "{\"text\": \"");
    for (int i = 0; i < WORDS; ++i) cleat_string_add(&text, "Hello ");
    cleat_string_add(&text, "\"}\n");
    cleat_dataset *dataset = open_text("long.jsonl", text.data, &options);
    assert_true(text.size > 1800000);
    assert_int_equal(cleat_causal_summarise(dataset).divided, 1);
    assert_int_equal(cleat_causal_summarise(dataset).learned, cleat_causal_summarise(dataset).places);
    assert_int_equal(cleat_causal_summarise(dataset).places, 2 * WORDS); /* ' ' and 'Hello' */
    cleat_dataset_destroy(dataset);
    cleat_string_free(&text);
}

/* --- predictions and models ----------------------------------------------------------------------------------- */

static void prompts_end_where_the_answer_begins(void **state) {
    cleat_causal_options options = options_of();
    cleat_error error = {0};
    (void)state;
    options.predicted = true;
    options.pack = true; /* no effect */
    cleat_dataset *dataset =
        open_text("ask.jsonl",
                  "{\"prompt\": \"Hello\", \"completion\": \"Hi\"}\n"
                  "{\"prompt\": \"Hello\"}\n"
                  "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
                  "\"content\": \"b\"}, {\"role\": \"user\", \"content\": \"c\"}]}\n"
                  "{\"text\": \"The answer\"}\n",
                  &options);
    static const char hello[] = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n";
    assert_int_equal(cleat_dataset_count(dataset), 4);
    assert_int_equal(cleat_dataset_make_whole(dataset, NULL), CLEAT_OK);
    assert_string_equal(cleat_causal_prompt(dataset, 0), hello);
    assert_string_equal(cleat_causal_truth(dataset, 0), "Hi");
    assert_string_equal(cleat_causal_prompt(dataset, 1), hello);
    assert_null(cleat_causal_truth(dataset, 1));
    assert_string_equal(shown(dataset, 2),
                        "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n"
                        "<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n => <s>"); /* 0 marks the place */
    assert_string_equal(shown(dataset, 3), "The answer => <s>");
    assert_int_equal(cleat_dataset_items(dataset, 0), 0);
    cleat_dataset_destroy(dataset);
    dataset = open_text("stdin.lines", "Hello\n\nThe answer\n", &options);
    assert_int_equal(cleat_dataset_count(dataset), 2);
    assert_string_equal(cleat_causal_prompt(dataset, 0), hello);
    assert_string_equal(cleat_dataset_id(dataset, 1), "3");
    cleat_dataset_destroy(dataset);
    options.max_length = 6;
    test_write_text(test_path("stdin.lines"), "Hello\n");
    assert_int_equal(cleat_causal_open(test_path("stdin.lines"), &options, &dataset, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "prompt 1 has 12 tokens; 1 to 6 are possible (data.max_length)"));
}

static void a_model_keeps_tokenizer_and_template(void **state) {
    static const char text[] = "prompt\tcompletion\nHello\tHi\nHow are\tyou\n", jinja[] = "/chat_template.jinja";
    cleat_causal_options options = options_of();
    char folder[600], model[600], path[700];
    size_t size;
    (void)state;
    snprintf(folder, sizeof folder, "%s", test_folder("tokenizer"));
    snprintf(model, sizeof model, "%s", test_folder("model"));
    char *json = test_read(source_path("tests/data/chats/tokenizer.json"), &size);
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    test_write(path, json, size);
    free(json);
    snprintf(path, sizeof path, "%s/tokenizer_config.json", folder);
    test_write_text(path,
                    "{\"bos_token\": {\"content\": \"<s>\"}, \"eos_token\": \"</s>\", \"chat_template\": \"another\"}");
    snprintf(path, sizeof path, "%s%s", folder, jinja); /* goes first, as in transformers */
    test_write_text(path, "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ "
                          "'<|im_start|>system\\nArr.<|im_end|>\\n' }}{% endif %}{{'<|im_start|>' + message['role'] + "
                          "'\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt "
                          "%}{{ '<|im_start|>assistant\\n' }}{% endif %}");
    options.vocabulary = folder;
    options.chat_name = "auto";
    cleat_dataset *trained = open_text("some.tsv", text, &options);
    assert_non_null(strstr(shown(trained, 0), "<|im_start|>system\nArr.<|im_end|>\n"));
    assert_int_equal(cleat_dataset_save(trained, model, NULL), CLEAT_OK);
    assert_int_equal(trained->type->check_saved(trained, model, NULL), CLEAT_OK);
    options.vocabulary = "";
    options.fitted = model;
    cleat_dataset *later = must_open(test_path("some.tsv"), &options);
    for (size_t i = 0; i < 2; ++i) {
        const row a = fill(trained, i), b = fill(later, i);
        assert_memory_equal(a.tokens, b.tokens, sizeof a.tokens);
        assert_memory_equal(a.labels, b.labels, sizeof a.labels);
    }
    cleat_dataset_destroy(later);
    options.chat_name = "zephyr";
    test_keep_log();
    cleat_dataset_destroy(must_open(test_path("some.tsv"), &options));
    assert_non_null(strstr(test_logged(), "the tokenizer's own chat template is chatml"));
    snprintf(path, sizeof path, "%s/tokenizer.json", model);
    test_write_text(path, "{}");
    assert_int_equal(trained->type->check_saved(trained, model, NULL), CLEAT_ERR_FORMAT);
    cleat_dataset_destroy(trained);
}

/* --- bad input ------------------------------------------------------------------------------------------------ */

static void bad_rows_get_a_message(void **state) {
#define CHAT(list) "{\"messages\": [" list "]}\n"
    static const struct {
        const char *file, *text, *message;
    } cases[] = {
        {"a.jsonl", "{\"text\": \"a\"}\n{\"text\": \n", ":2: not a JSON object in one line, at byte"},
        {"a.jsonl", "{\"text\": \"a\"} x\n", ":1: not a JSON object in one line"},
        {"a.jsonl", "[{\"text\": \"a\"}]\n", ":1: a list, not an object; write an object each line: jq -c \".[]\""},
        {"a.jsonl", "{\"text\": \"a\\u0000b\"}\n", ":1: a zero character"},
        {"a.jsonl", "{\"instruction\": \"a\", \"output\": \"b\"}\n", "data.prompt_column = instruction"},
        {"a.jsonl", "{\"prompt\": 1, \"completion\": \"b\"}\n", "no texts 'prompt' and 'completion'"},
        {"a.jsonl", "{\"prompt\": \"a\"}\n", "no texts 'prompt' and 'completion'"},
        {"a.jsonl", "{\"messages\": []}\n", "'messages' must be a list of 1 to 4096 objects"},
        {"a.jsonl", "{\"messages\": \"Hello\"}\n", "'messages' must be a list"},
        {"a.jsonl", CHAT("{\"role\": \"user\"}"), ":1: message 1: not an object with the texts 'role' and 'content'"},
        {"a.jsonl", CHAT("{\"role\": \"user\", \"content\": [\"a\"]}"), "message 1: not an object with the texts"},
        {"a.jsonl", CHAT("7"), "message 1: not an object"},
        {"a.jsonl", CHAT("{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"tool\", \"content\": \"b\"}"),
         ":1: message 2: the role 'tool' is not system, user or assistant; render such rows in Python"},
        {"a.jsonl", CHAT("{\"role\": \"assistant\", \"content\": \"a\", \"tool_calls\": [{}]}"),
         "message 1: it calls tools"},
        {"a.jsonl", CHAT("{\"role\": \"assistant\", \"content\": \"a\", \"reasoning_content\": \"b\"}"),
         "the template 'chatml' does not render its 'reasoning_content'"},
        {"a.jsonl", "{\"tools\": [{}], \"text\": \"a\"}\n", ":1: the row has 'tools'"},
        {"a.jsonl", "\xFF\n", ":1: byte 0xff at offset 0 of the file is not UTF-8"},
        {"a.jsonl", "{\"text\": \"a\"}\n\n{\"text\": \"\xC3\"}\n",
         ":3: byte 0xc3 at offset 25 of the file is not UTF-8"},
        {"a.jsonl", "\x1F\x8B\x08", "is compressed by gzip"},
        {"a.jsonl", "", "the file is empty"},
        {"a.jsonl", "\n", "0 texts: all lines are empty"},
        {"a.csv", "prompt,completion\na,\n", ":2: the completion is empty"},
        {"a.csv", "prompt,answer\na,b\n", "data.completion_column: "},
        {"a.csv", "promt,completion\na,b\n", "did you mean 'promt'?"},
        {"a.csv", "prompt,completion\na,b,c\n", "3 fields, but the header has 2"},
        {"a.parquet", "PAR1", "unsupported file for a language model"},
        {"a.jsonl", "{\"text\": 1}\n{\"text\": 2}\n{\"text\": \"a\"}\n", "2 faults in the data:"},
        {"a.jsonl", CHAT("{\"role\": \"user\", \"content\": \"a\"}"),
         "no sample has anything to learn: none has a message of the assistant"},
        {"a.jsonl", "{\"conversations\": [{\"from\": \"human\", \"value\": \"a\"}]}\n", "replace \"conversations\" by"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        cleat_causal_options options = options_of();
        cleat_dataset *dataset = NULL;
        cleat_error error = {0};
        test_write_text(test_path(cases[i].file), cases[i].text);
        if (cleat_causal_open(test_path(cases[i].file), &options, &dataset, &error) == CLEAT_OK)
            fail_msg("%s: opened", cases[i].text);
        if (!strstr(error.text, cases[i].message)) fail_msg("%s: '%s'", cases[i].message, error.text);
    }
    cleat_causal_options named = options_of(); /* as the message about 'instruction' says */
    named.prompt_column = "instruction";
    named.completion_column = "output";
    cleat_dataset *dataset = NULL;
    test_write_text(test_path("named.jsonl"), "{\"instruction\": \"a\", \"output\": \"b\"}\n");
    assert_int_equal(cleat_causal_open(test_path("named.jsonl"), &named, &dataset, NULL), CLEAT_OK);
    cleat_dataset_destroy(dataset);
}

static void bad_options_get_a_message(void **state) {
    cleat_causal_options options = options_of();
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    (void)state;
    test_write_text(test_path("a.jsonl"), CHAT("{\"role\": \"user\", \"content\": \"a\"}"));
    options.chat_name = "chat";
    assert_int_equal(cleat_causal_open(test_path("a.jsonl"), &options, &dataset, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "data.template = chat: no such chat template; there are auto, none, chatml, "));
    options.chat_name = "none";
    assert_int_equal(cleat_causal_open(test_path("a.jsonl"), &options, &dataset, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "messages need a chat template, and data.template is none"));
    options.chat_name = "auto";
    assert_int_equal(cleat_causal_open(test_path("a.jsonl"), &options, &dataset, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "the tokenizer has none"));
    options.chat_name = "llama3";
    assert_int_equal(cleat_causal_open(test_path("a.jsonl"), &options, &dataset, &error), CLEAT_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "needs bos_token"));
    options.vocabulary = shared_path("hf/tokenizers/byte_bpe");
    options.chat_name = "chatml";
    if (cleat_folder_exists(options.vocabulary)) {
        assert_int_equal(cleat_causal_open(test_path("a.jsonl"), &options, &dataset, &error), CLEAT_ERR_FORMAT);
        assert_non_null(strstr(error.text, "data.template = chatml: '<|im_start|>' is "));
    }
    options = options_of();
    options.vocabulary = "";
    assert_int_equal(cleat_causal_open(test_path("a.jsonl"), &options, &dataset, &error), CLEAT_ERR_ARGUMENT);
    options = options_of();
    options.max_length = 1;
    assert_int_equal(cleat_causal_open(test_path("a.jsonl"), &options, &dataset, &error), CLEAT_ERR_ARGUMENT);
    assert_null(dataset);
}

/* Each allocation fails once: an error, and nothing that is lost (LeakSanitizer). */
static void without_memory_there_is_an_error(void **state) {
    static const char text[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}, {\"role\": "
                               "\"assistant\", \"content\": \"Hi\"}]}\n"
                               "{\"prompt\": \"Hello\", \"completion\": \"Hi\"}\n"
                               "{\"text\": \"Hello there\"}\n";
    cleat_causal_options options = options_of();
    cleat_tokenizer *tokenizer = NULL;
    long failures = 0;
    (void)state;
    assert_int_equal(cleat_tokenizer_load(tokenizer_folder(), false, &tokenizer, NULL), CLEAT_OK);
    options.tokenizer = tokenizer;
    options.pack = true;
    test_write_text(test_path("some.jsonl"), text);
    for (cleat_status status = CLEAT_ERR_MEMORY; status; ++failures) {
        cleat_dataset *dataset = NULL;
        cleat_error error = {0};
        cleat_fail_allocation(failures + 1);
        status = cleat_causal_open(test_path("some.jsonl"), &options, &dataset, &error);
        cleat_fail_allocation(0);
        if (status && status != CLEAT_ERR_MEMORY) fail_msg("allocation %ld: %s", failures + 1, error.text);
        cleat_dataset_destroy(dataset);
    }
    assert_true(failures > 40);
    cleat_tokenizer_destroy(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_and_their_end_are_learned),
        cmocka_unit_test(a_token_across_the_border_is_learned),
        cmocka_unit_test(long_samples_are_cut_and_long_texts_divided),
        cmocka_unit_test(rows_hold_each_sample_once),
        cmocka_unit_test(threads_and_the_cache_change_nothing),
        cmocka_unit_test(equal_prompts_are_in_one_split),
        cmocka_unit_test(folders_and_plain_texts_are_read),
        cmocka_unit_test(training_needs_samples),
        cmocka_unit_test(a_line_may_be_long),
        cmocka_unit_test(prompts_end_where_the_answer_begins),
        cmocka_unit_test(a_model_keeps_tokenizer_and_template),
        cmocka_unit_test(bad_rows_get_a_message),
        cmocka_unit_test(bad_options_get_a_message),
        cmocka_unit_test(without_memory_there_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}

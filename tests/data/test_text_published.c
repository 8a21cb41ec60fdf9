/* Text datasets with published tokenizers: pairs of texts, tagged words, the fitted state, and exported
 * tokenizer files. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleat/data.h"
#include "core/files.h"
#include "core/memory.h"
#include "files.h"
#include "platform/files.h"
#include "source_path.h"

#define TOKENIZERS(name) source_path("tests/tokenizer/tokenizers/" name)

enum { L = 24 };

static cleat_text_options options_of(cleat_text_task task, const char *vocabulary) {
    cleat_text_options options = cleat_text_defaults();
    options.task = task;
    options.vocabulary = vocabulary;
    options.val_fraction = 0;
    return options;
}

static cleat_dataset *open_text(const char *name, const char *text, const cleat_text_options *options) {
    const char *path = test_path(name);
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    test_write_text(path, text);
    if (cleat_text_open(path, options, &dataset, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return dataset;
}

/* Expects a sample's tokens and types to equal those of its texts with frames added by the test. */
static void expect_pair(const cleat_dataset *dataset, size_t sample, const char *first, const char *second,
                        size_t max_length) {
    const cleat_tokenizer *t = cleat_text_tokenizer(dataset);
    cleat_token found[2][64];
    int32_t ids[2][64], want[L], types[L], tokens[L], types_got[L], length, label;
    void *slots[] = {tokens, &length, &label, types_got};
    size_t counts[2];
    cleat_token_counts framed;
    for (int i = 0; i < 2; ++i) {
        const char *text = i ? second : first;
        assert_int_equal(cleat_tokenizer_encode(t, text, strlen(text), found[i], 64, &counts[i], NULL), CLEAT_OK);
        for (size_t k = 0; k < counts[i]; ++k) ids[i][k] = found[i][k].id;
    }
    const cleat_ids a = {ids[0], counts[0]}, b = {ids[1], counts[1]};
    assert_int_equal(cleat_tokenizer_frame(t, &a, &b, max_length, want, types, &framed, NULL), CLEAT_OK);
    assert_int_equal(cleat_dataset_fill(dataset, sample, L, NULL, slots, NULL), CLEAT_OK);
    assert_int_equal(length, framed.count);
    for (size_t i = 0; i < L; ++i) {
        assert_int_equal(tokens[i], i < framed.count ? want[i] : -1);
        assert_int_equal(types_got[i], i < framed.count ? types[i] : 0);
    }
}

static void pairs_have_types(void **state) {
    static const char text[] = "text,second,label\nthe fox,it jumps,up\n\"the quick brown fox jumps over\",we'll do it,"
                               "down\nthe,,up\n";
    cleat_text_options options = options_of(CLEAT_TEXT_CLASSES, TOKENIZERS("wordpiece.json"));
    (void)state;
    options.text_pair_column = "second";
    options.max_length = 10;
    cleat_dataset *dataset = open_text("d.csv", text, &options);
    assert_int_equal(cleat_dataset_fields(dataset), 4);
    assert_int_equal(cleat_dataset_find_field(dataset, "label"), 2);
    assert_int_equal(cleat_dataset_find_field(dataset, "types"), 3);
    expect_pair(dataset, 0, "the fox", "it jumps", 10);
    expect_pair(dataset, 1, "the quick brown fox jumps over", "we'll do it", 10);
    expect_pair(dataset, 2, "the", "", 10);
    assert_string_equal(cleat_text_sample(dataset, 0), "the fox");
    assert_string_equal(cleat_text_second(dataset, 0), "it jumps");
    assert_int_equal(cleat_text_words(dataset, 0), 1);
    assert_int_equal(cleat_text_label(dataset, 0), 1);
    assert_int_equal(cleat_text_label_samples(dataset, 1), 2);
    assert_true(cleat_text_summarise(dataset).cut > 0);
    cleat_dataset_destroy(dataset);
}

static void special_tokens_survive_word_dropout(void **state) {
    static const char text[] = "text,second,label\nthe fox jumps,it jumps,up\nthe,fox,down\n";
    cleat_text_options options = options_of(CLEAT_TEXT_CLASSES, TOKENIZERS("wordpiece.json"));
    int32_t whole[L], dropped[L];
    size_t unknown = 0;
    (void)state;
    options.text_pair_column = "second";
    options.word_dropout = 0.9;
    cleat_dataset *dataset = open_text("d.csv", text, &options);
    const cleat_tokenizer *t = cleat_text_tokenizer(dataset);
    void *all[] = {whole, NULL, NULL, NULL}, *some[] = {dropped, NULL, NULL, NULL};
    for (uint64_t epoch = 0; epoch < 50; ++epoch) {
        const cleat_rng_key key = {.seed = 1, .epoch = epoch};
        assert_int_equal(cleat_dataset_fill(dataset, 0, L, NULL, all, NULL), CLEAT_OK);
        assert_int_equal(cleat_dataset_fill(dataset, 0, L, &key, some, NULL), CLEAT_OK);
        for (int i = 0; i < L && whole[i] >= 0; ++i) {
            if (whole[i] == cleat_tokenizer_cls(t) || whole[i] == cleat_tokenizer_sep(t))
                assert_int_equal(dropped[i], whole[i]);
            unknown += dropped[i] == cleat_tokenizer_unk(t);
        }
    }
    assert_true(unknown > 100);
    cleat_dataset_destroy(dataset);
}

static void pairs_need_their_column_and_a_table(void **state) {
    cleat_text_options options = options_of(CLEAT_TEXT_CLASSES, TOKENIZERS("wordpiece.json"));
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    const char *path = test_path("d.csv");
    (void)state;
    options.text_pair_column = "second";
    test_write_text(path, "text,label\nthe fox,up\na,down\n");
    assert_int_equal(cleat_text_open(path, &options, &dataset, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "data.text_pair_column"));
    path = test_path("d.txt");
    test_write_text(path, "the fox\n");
    options.labelled = false;
    options.labels = "down up";
    assert_int_equal(cleat_text_open(path, &options, &dataset, &error), CLEAT_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(error.text, "use a table"));
}

static void words_of_sentences_begin_with_a_space(void **state) {
    cleat_text_options options = options_of(CLEAT_TEXT_TAGS, TOKENIZERS("byte_bpe.json"));
    int32_t tokens[L], length, labels[L];
    void *slots[] = {tokens, &length, labels};
    cleat_token found[L];
    size_t count;
    (void)state;
    cleat_dataset *dataset = open_text("d.conll", "the\tB-x\nfox\tO\n\na\tO\n", &options);
    const cleat_tokenizer *t = cleat_text_tokenizer(dataset);
    assert_int_equal(cleat_tokenizer_encode(t, " the fox", 8, found, L, &count, NULL), CLEAT_OK);
    assert_int_equal(cleat_dataset_fill(dataset, 0, L, NULL, slots, NULL), CLEAT_OK);
    assert_int_equal(length, count + 2);
    for (size_t i = 0; i < count; ++i) assert_int_equal(tokens[i + 1], found[i].id);
    assert_int_equal(cleat_text_word_position(dataset, 0, 0), 1);
    assert_int_equal(labels[1], 1);
    cleat_dataset_destroy(dataset);
}

/* As in transformers, whose word_ids omit such words: no token, no label; position -1 is predicted as O. */
static void words_without_tokens_are_left_out(void **state) {
    cleat_text_options options = options_of(CLEAT_TEXT_TAGS, TOKENIZERS("wordpiece.json"));
    int32_t tokens[L], length, labels[L];
    void *slots[] = {tokens, &length, labels};
    (void)state;
    cleat_dataset *dataset = open_text("d.conll", "the\tO\n\xE2\x80\x8B\tB-x\nthe\tB-x\n\n\xE2\x80\x8B\tO\n", &options);
    const cleat_tokenizer *t = cleat_text_tokenizer(dataset);
    static const int32_t positions[] = {1, -1, 2};
    assert_int_equal(cleat_dataset_fill(dataset, 0, L, NULL, slots, NULL), CLEAT_OK);
    assert_int_equal(length, 4);
    assert_int_equal(tokens[1], cleat_tokenizer_id(t, "the"));
    assert_int_equal(tokens[3], cleat_tokenizer_sep(t));
    for (int i = 0; i < 3; ++i) assert_int_equal(cleat_text_word_position(dataset, 0, (size_t)i), positions[i]);
    assert_true(labels[1] == 0 && labels[2] == 1 && labels[0] < 0 && labels[3] < 0);
    assert_int_equal(cleat_dataset_items(dataset, 0), 2);
    assert_int_equal(cleat_dataset_fill(dataset, 1, L, NULL, slots, NULL), CLEAT_OK);
    assert_true(length == 2 && labels[0] < 0 && labels[1] < 0 && cleat_dataset_items(dataset, 1) == 0);
    const cleat_text_summary summary = cleat_text_summarise(dataset);
    assert_true(summary.cut == 0 && summary.cut_words == 0 && summary.unknown == 0);
    cleat_dataset_destroy(dataset);
}

/* --- the fitted state and files for others -------------------------------------------------------------------- */

static void expect_same_bytes(const char *path, const char *other) {
    char *a = NULL, *b = NULL;
    size_t n = 0, m = 0;
    assert_int_equal(cleat_file_read(path, &a, &n, NULL), CLEAT_OK);
    assert_int_equal(cleat_file_read(other, &b, &m, NULL), CLEAT_OK);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    cleat_free(a);
    cleat_free(b);
}

static void the_fitted_tokenizer_is_the_loaded_one(void **state) {
    static const char *const names[] = {"wordpiece", "byte_bpe", "unigram", "fallback_bpe"};
    static const char text[] = "text,label\nThe f\xC3\xB6x jumps,up\na b c 12,down\n";
    (void)state;
    for (int i = 0; i < 4; ++i) {
        char path[4096], folder[4096], saved[4200], hashes[2][33];
        int32_t tokens[2][L];
        cleat_error error = {0};
        cleat_dataset *again = NULL;
        snprintf(path, sizeof path, "%s%s.json", TOKENIZERS(""), names[i]);
        snprintf(folder, sizeof folder, "%s", test_folder(names[i]));
        cleat_text_options options = options_of(CLEAT_TEXT_CLASSES, path);
        cleat_dataset *dataset = open_text("d.csv", text, &options);
        assert_int_equal(cleat_text_save(dataset, folder, NULL), CLEAT_OK);
        snprintf(saved, sizeof saved, "%s/tokenizer.json", folder);
        expect_same_bytes(path, saved);
        options.vocabulary = "";
        options.fitted = folder;
        if (cleat_text_open(test_path("d.csv"), &options, &again, &error)) fail_msg("%s", error.text);
        cleat_tokenizer_hash(cleat_text_tokenizer(dataset), hashes[0]);
        cleat_tokenizer_hash(cleat_text_tokenizer(again), hashes[1]);
        assert_string_equal(hashes[0], hashes[1]);
        void *slots[2][3] = {{tokens[0], NULL, NULL}, {tokens[1], NULL, NULL}};
        assert_int_equal(cleat_dataset_fill(dataset, 0, L, NULL, slots[0], NULL), CLEAT_OK);
        assert_int_equal(cleat_dataset_fill(again, 0, L, NULL, slots[1], NULL), CLEAT_OK);
        assert_memory_equal(tokens[0], tokens[1], sizeof tokens[0]);
        cleat_dataset_destroy(again);
        cleat_dataset_destroy(dataset);
    }
}

/* A trained vocabulary and its exported tokenizer.json. */
static void a_trained_vocabulary_is_written_for_others(void **state) {
    static const char *const texts[] = {"the quick Brown fox", "The fox jumps \xC3\x89t\xC3\xA9",
                                        "caf\xC3\xA9 the fox, the", "\xE4\xB8\xAD\xE6\x96\x87 the fox"};
    static const char *const probes[] = {"The cafe\xCC\x81 FOX, \xE4\xB8\xAD the!", "[MASK] the\xE2\x80\x8B fox [SEP]",
                                         "caf\xC3\xA9 \xC3\x89t\xC3\xA9 E\xCC\x81t\xC3\xA9",
                                         "the\x01 q\xCC\xA3\xCC\x87 jump"};
    cleat_text_view views[4];
    (void)state;
    for (int i = 0; i < 4; ++i) views[i] = (cleat_text_view){texts[i], strlen(texts[i])};
    for (int lowercase = 0; lowercase < 2; ++lowercase) {
        const cleat_tokenizer_training training = {.vocabulary_size = 60, .lowercase = lowercase, .min_count = 1};
        cleat_tokenizer *trained = NULL, *loaded = NULL;
        cleat_error error = {0};
        char folder[4096];
        snprintf(folder, sizeof folder, "%s", test_folder(lowercase ? "lower" : "cased"));
        assert_int_equal(cleat_tokenizer_train(views, 4, &training, &trained, NULL), CLEAT_OK);
        assert_int_equal(cleat_tokenizer_save_folder(trained, folder, NULL), CLEAT_OK);
        if (cleat_tokenizer_load(folder, true, &loaded, &error) != CLEAT_OK) fail_msg("%s", error.text);
        assert_true(cleat_tokenizer_is_published(loaded));
        assert_int_equal(cleat_tokenizer_size(loaded), cleat_tokenizer_size(trained));
        assert_int_equal(cleat_tokenizer_lowercase(loaded), lowercase);
        assert_int_equal(cleat_tokenizer_mask(loaded), cleat_tokenizer_mask(trained));
        for (int i = 0; i < 4; ++i) {
            cleat_token a[64], b[64];
            size_t n = 0, m = 0;
            cleat_tokenizer_encode(trained, probes[i], strlen(probes[i]), a, 64, &n, NULL);
            cleat_tokenizer_encode(loaded, probes[i], strlen(probes[i]), b, 64, &m, NULL);
            assert_int_equal(n, m);
            for (size_t k = 0; k < n; ++k) assert_int_equal(a[k].id, b[k].id);
        }
        cleat_tokenizer_destroy(trained);
        cleat_tokenizer_destroy(loaded);
    }
}

static void impossible_settings_are_refused(void **state) {
    cleat_text_options options = options_of(CLEAT_TEXT_CLASSES, TOKENIZERS("byte_bpe.json"));
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    (void)state;
    test_write_text(test_path("d.csv"), "text,second,label\na,b,up\nc,d,down\n");
    options.text_pair_column = "second";
    options.max_length = 4;
    assert_int_equal(cleat_text_open(test_path("d.csv"), &options, &dataset, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "4 special tokens"));
    options.max_length = 20;
    options.word_dropout = 0.5;
    options.vocabulary = "/nonexistent/tokenizer.json";
    assert_int_not_equal(cleat_text_open(test_path("d.csv"), &options, &dataset, &error), CLEAT_OK);
    assert_non_null(strstr(error.text, "/nonexistent/tokenizer.json"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_have_types),
        cmocka_unit_test(special_tokens_survive_word_dropout),
        cmocka_unit_test(pairs_need_their_column_and_a_table),
        cmocka_unit_test(words_of_sentences_begin_with_a_space),
        cmocka_unit_test(words_without_tokens_are_left_out),
        cmocka_unit_test(the_fitted_tokenizer_is_the_loaded_one),
        cmocka_unit_test(a_trained_vocabulary_is_written_for_others),
        cmocka_unit_test(impossible_settings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}

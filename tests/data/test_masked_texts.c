/* Masked texts: how many tokens are chosen, how they are replaced, and that the choice depends on seed and
 * epoch only. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cleat/data.h"
#include "core/files.h"
#include "core/string.h"
#include "data/dataset.h"
#include "files.h"

/* Token ids: 5 special ones, then w0, w1, ... */
enum { UNK = 1, CLS, SEP, MASK, FIRST_WORD, WORDS = 100, LINES = 40, LONGEST = 34 };

static void write_vocabulary(const char *path, const char *mask) {
    cleat_string text = {0};
    cleat_string_add(&text, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n%s\n", mask);
    for (int i = 0; i < WORDS; ++i) cleat_string_add(&text, "w%d\n", i);
    test_write_text(path, text.data);
    cleat_string_free(&text);
}

/* Line i has 1 + i % 32 words, the first of which is w(i). */
static const char *texts(void) {
    static char path[600];
    cleat_string text = {0};
    for (int i = 0; i < LINES; ++i) {
        for (int k = 0; k <= i % 32; ++k) cleat_string_add(&text, "%sw%d", k ? " " : "", (i + 3 * k) % WORDS);
        cleat_string_add(&text, "\n");
    }
    snprintf(path, sizeof path, "%s", test_path("plain.txt"));
    test_write_text(path, text.data);
    cleat_string_free(&text);
    return path;
}

/* split: divides long texts into parts of at most this many tokens; 0: does not. */
static cleat_status open_masked(const char *mask, double fraction, int64_t split, cleat_dataset **dataset,
                                cleat_error *error) {
    char vocabulary[600];
    cleat_text_options options = cleat_text_defaults();
    snprintf(vocabulary, sizeof vocabulary, "%s", test_path("vocab.txt"));
    write_vocabulary(vocabulary, mask);
    options.vocabulary = vocabulary;
    options.labelled = false;
    options.plain = true;
    options.val_fraction = 0.2;
    options.max_length = split ? split : LONGEST;
    options.split_long = split > 0;
    return cleat_masked_open(texts(), &options, fraction, dataset, error);
}

static cleat_dataset *must_open(double fraction) {
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    if (open_masked("[MASK]", fraction, 0, &dataset, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return dataset;
}

typedef struct filled {
    int32_t tokens[LONGEST], length, labels[LONGEST];
} filled;

static filled fill(const cleat_dataset *dataset, size_t sample, const cleat_rng_key *key) {
    filled f;
    void *const slots[] = {f.tokens, &f.length, f.labels};
    assert_int_equal(cleat_dataset_fill(dataset, sample, LONGEST, key, slots, NULL), CLEAT_OK);
    return f;
}

/* The token at a position of line `sample`. */
static int32_t original(size_t sample, int64_t at) {
    return FIRST_WORD + (int32_t)((sample + 3 * (size_t)(at - 1)) % WORDS);
}

static void chosen_tokens_are_counted_and_replaced(void **state) {
    cleat_dataset *dataset = must_open(0.3);
    int64_t all = 0, masked = 0, kept = 0;
    (void)state;
    assert_int_equal(cleat_dataset_count(dataset), LINES);
    for (uint32_t epoch = 0; epoch < 50; ++epoch)
        for (size_t s = 0; s < LINES; ++s) {
            const cleat_rng_key key = {.seed = 7, .epoch = epoch};
            const filled f = fill(dataset, s, &key);
            const int64_t words = f.length - 2, wanted = (int64_t)(0.3 * (double)words + 0.5);
            int64_t chosen = 0;
            assert_int_equal(words, 1 + s % 32);
            assert_int_equal(f.tokens[0], CLS);
            assert_int_equal(f.tokens[f.length - 1], SEP);
            for (int64_t i = 0; i < LONGEST; ++i) {
                const bool inside = i > 0 && i < f.length - 1;
                if (f.labels[i] < 0 && inside) assert_int_equal(f.tokens[i], original(s, i));
                if (f.labels[i] < 0) continue;
                assert_true(inside);
                assert_int_equal(f.labels[i], original(s, i));
                assert_in_range(f.tokens[i], 0, FIRST_WORD + WORDS - 1);
                masked += f.tokens[i] == MASK;
                kept += f.tokens[i] == f.labels[i];
                ++chosen;
            }
            assert_int_equal(chosen, wanted < 1 ? 1 : wanted);
            assert_int_equal(chosen, cleat_dataset_items(dataset, s));
            all += chosen;
        }
    /* 80 and 10 %, and one in 105 of the random ones: within 4 standard deviations of 9500 draws */
    assert_true(masked > 0.784 * (double)all && masked < 0.817 * (double)all);
    assert_true(kept > 0.088 * (double)all && kept < 0.114 * (double)all);
    cleat_dataset_destroy(dataset);
}

static void the_choice_follows_from_seed_and_epoch(void **state) {
    cleat_dataset *dataset = must_open(0.15), *again = must_open(0.15);
    const cleat_rng_key key = {.seed = 1, .epoch = 2}, later = {.seed = 1, .epoch = 3}, other = {.seed = 2, .epoch = 2};
    (void)state;
    const filled one = fill(dataset, 31, &key), same = fill(again, 31, &key), next = fill(dataset, 31, &later),
                 another = fill(dataset, 31, &other), evaluated = fill(dataset, 31, NULL),
                 twice = fill(again, 31, NULL);
    assert_memory_equal(&one, &same, sizeof one);
    assert_memory_not_equal(one.labels, next.labels, sizeof one.labels);
    assert_memory_not_equal(one.labels, another.labels, sizeof one.labels);
    assert_memory_equal(&evaluated, &twice, sizeof evaluated);
    cleat_dataset_destroy(again);
    cleat_dataset_destroy(dataset);
}

static void texts_without_labels_are_split(void **state) {
    cleat_dataset *dataset = must_open(0.15);
    size_t train = 0, val = 0;
    (void)state;
    for (size_t s = 0; s < LINES; ++s) {
        train += cleat_dataset_split(dataset, s) == CLEAT_SPLIT_TRAIN;
        val += cleat_dataset_split(dataset, s) == CLEAT_SPLIT_VAL;
    }
    assert_true(train > val && val > 0);
    assert_int_equal(train + val, LINES);
    cleat_dataset_destroy(dataset);
}

/* A folder has a file of lines for each part; without a training file, the message names the missing file. */
static void folders_have_files_of_lines(void **state) {
    char folder[600], path[700], vocabulary[600];
    cleat_text_options options = cleat_text_defaults();
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    (void)state;
    snprintf(vocabulary, sizeof vocabulary, "%s", test_path("vocab.txt"));
    write_vocabulary(vocabulary, "[MASK]");
    snprintf(folder, sizeof folder, "%s", test_path("lines"));
    assert_int_equal(cleat_folder_make(folder, NULL), CLEAT_OK);
    options.vocabulary = vocabulary;
    options.labelled = false;
    options.plain = true;
    assert_int_equal(cleat_masked_open(folder, &options, 0.15, &dataset, &error), CLEAT_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "train.txt"));
    assert_non_null(strstr(error.text, "join files"));
    snprintf(path, sizeof path, "%s/train.txt", folder);
    test_write_text(path, "w1 w2\nw3, text\n\nw4\n");
    snprintf(path, sizeof path, "%s/val.txt", folder);
    test_write_text(path, "w5\n");
    if (cleat_masked_open(folder, &options, 0.15, &dataset, &error)) fail_msg("%s", error.text);
    assert_int_equal(cleat_dataset_count(dataset), 4);
    assert_string_equal(cleat_masked_text(dataset, 1), "w3, text");
    assert_string_equal(cleat_dataset_id(dataset, 3), "val-1");
    assert_int_equal(cleat_dataset_split(dataset, 3), CLEAT_SPLIT_VAL);
    cleat_dataset_destroy(dataset);
}

/* No token of a long text is lost: its parts are consecutive, in the same split, each framed by special
 * tokens. */
static void long_texts_are_divided(void **state) {
    enum { PART = 10, MOST = PART - 2 };
    cleat_dataset *whole = must_open(0.15), *dataset = NULL;
    cleat_error error = {0};
    size_t s = 0;
    (void)state;
    if (open_masked("[MASK]", 0.15, PART, &dataset, &error)) fail_msg("%s", error.text);
    for (size_t line = 0; line < LINES; ++line) {
        const size_t words = 1 + line % 32, parts = (words + MOST - 1) / MOST;
        int64_t at = 1;
        for (size_t p = 0; p < parts; ++p, ++s) {
            char id[32];
            const filled f = fill(dataset, s, NULL);
            assert_int_equal(f.length, cleat_dataset_length(dataset, s));
            assert_in_range(f.length, 2 + words / parts, 2 + (words + parts - 1) / parts);
            assert_int_equal(f.tokens[0], CLS);
            assert_int_equal(f.tokens[f.length - 1], SEP);
            for (int64_t i = 1; i < f.length - 1; ++i, ++at)
                assert_int_equal(f.labels[i] >= 0 ? f.labels[i] : f.tokens[i], original(line, at));
            for (int64_t i = f.length; i < LONGEST; ++i) assert_int_equal(f.tokens[i], -1);
            assert_int_equal(cleat_dataset_split(dataset, s), cleat_dataset_split(whole, line));
            snprintf(id, sizeof id, p ? "%zu/%zu" : "%zu", line + 1, p + 1);
            assert_string_equal(cleat_dataset_id(dataset, s), id);
            assert_string_equal(cleat_masked_text(dataset, s), cleat_masked_text(whole, line));
            assert_int_equal(cleat_masked_count(dataset, s), 0);
        }
        assert_int_equal(at, 1 + words);
    }
    assert_int_equal(cleat_dataset_count(dataset), s);
    cleat_dataset_destroy(dataset);
    cleat_dataset_destroy(whole);
    assert_int_equal(open_masked("[MASK]", 0.15, 2, &dataset, &error), CLEAT_ERR_ARGUMENT);
}

/* Texts to predict keep their own mask tokens; one beyond the maximum length is lost with a warning. */
static void mask_tokens_of_texts_to_predict_stay(void **state) {
    char vocabulary[600], lines[600], text[400] = "w1 [MASK] w2 [MASK]\nw1 w2\n";
    cleat_text_options options = cleat_text_defaults();
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    (void)state;
    for (int i = 0; i < LONGEST - 4; ++i) strcat(text, "w3 ");
    strcat(text, "[MASK] w4\n"); /* the maximum length */
    for (int i = 0; i < LONGEST - 3; ++i) strcat(text, "w3 ");
    strcat(text, "[MASK] [MASK]\n"); /* one more */
    snprintf(vocabulary, sizeof vocabulary, "%s", test_path("vocab.txt"));
    write_vocabulary(vocabulary, "[MASK]");
    snprintf(lines, sizeof lines, "%s", test_path("predicted.txt"));
    test_write_text(lines, text);
    options.vocabulary = vocabulary;
    options.labelled = false;
    options.plain = options.predicted = true;
    options.val_fraction = 0;
    options.max_length = LONGEST;
    if (cleat_masked_open(lines, &options, 0, &dataset, &error)) fail_msg("%s", error.text);
    const int64_t masks[] = {2, 0, 1, 1};
    assert_int_equal(cleat_dataset_count(dataset), 4);
    for (size_t s = 0; s < 4; ++s) {
        const cleat_rng_key key = {.seed = 3};
        const filled f = fill(dataset, s, &key);
        assert_int_equal(cleat_masked_count(dataset, s), masks[s]);
        assert_int_equal(cleat_dataset_items(dataset, s), 0);
        assert_int_equal(cleat_dataset_sample_state(dataset, s), s == 3 ? CLEAT_SAMPLE_CUT : CLEAT_SAMPLE_WHOLE);
        for (int64_t i = 0; i < LONGEST; ++i) assert_int_equal(f.labels[i], -1);
        if (s == 0) assert_int_equal(f.tokens[2], MASK);
        if (s == 1) assert_int_equal(f.tokens[2], FIRST_WORD + 2);
    }
    assert_string_equal(cleat_masked_text(dataset, 0), "w1 [MASK] w2 [MASK]");
    assert_int_equal(cleat_masked_count(dataset, 4), 0);
    cleat_dataset_destroy(dataset);
}

static void a_vocabulary_without_mask_is_refused(void **state) {
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    (void)state;
    assert_int_equal(open_masked("other", 0.15, 0, &dataset, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "has no mask token"));
    assert_null(dataset);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chosen_tokens_are_counted_and_replaced),
        cmocka_unit_test(the_choice_follows_from_seed_and_epoch),
        cmocka_unit_test(texts_without_labels_are_split),
        cmocka_unit_test(folders_have_files_of_lines),
        cmocka_unit_test(long_texts_are_divided),
        cmocka_unit_test(mask_tokens_of_texts_to_predict_stay),
        cmocka_unit_test(a_vocabulary_without_mask_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}

/* Datasets of texts and tagged words: fields, token positions, splits, labels, the fitted preprocessor and
 * its reuse; the shared tweets, if available. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleat/data.h"
#include "core/memory.h"
#include "files.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "source_path.h"

/* Token ids, in the order of the vocabulary's lines. */
enum { PAD, UNK, CLS, SEP, MASK, A, GOOD, BAD, DAY, S, DOT };

static const char *vocabulary(void) {
    static char path[600];
    snprintf(path, sizeof path, "%s", test_path("vocab.txt"));
    test_write_text(path, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\ngood\nbad\nday\n##s\n.\n");
    return path;
}

static cleat_text_options options_of(cleat_text_task task) {
    cleat_text_options options = cleat_text_defaults();
    options.task = task;
    options.vocabulary = vocabulary();
    options.val_fraction = 0;
    return options;
}

static const char *file_of(cleat_text_task task, const char *text) {
    const char *path = test_path(task == CLEAT_TEXT_TAGS ? "d.conll" : "d.csv");
    test_write_text(path, text);
    return path;
}

static cleat_dataset *open_text(const char *text, const cleat_text_options *options) {
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    if (cleat_text_open(file_of(options->task, text), options, &dataset, &error) != CLEAT_OK)
        fail_msg("%s", error.text);
    return dataset;
}

static void assert_refused(const char *text, const cleat_text_options *options, const char *where, const char *what) {
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    assert_int_equal(cleat_text_open(file_of(options->task, text), options, &dataset, &error), CLEAT_ERR_FORMAT);
    if (!strstr(error.text, where) || !strstr(error.text, what)) fail_msg("'%s'", error.text);
    assert_null(dataset);
}

/* The three fields of sample `sample` at length L. */
enum { L = 12 };
typedef struct filled {
    int32_t tokens[L], length, labels[L];
} filled;

static filled fill(const cleat_dataset *dataset, size_t sample) {
    filled out;
    memset(&out, 0x55, sizeof out);
    void *slots[] = {out.tokens, &out.length, out.labels};
    assert_int_equal(cleat_dataset_fill(dataset, sample, L, NULL, slots, NULL), CLEAT_OK);
    return out;
}

static void assert_ids(const int32_t *got, const int32_t *wanted) {
    for (int i = 0; i < L; ++i)
        if (got[i] != wanted[i]) fail_msg("%d: %d, not %d", i, got[i], wanted[i]);
}

#define REST4 -1, -1, -1, -1
#define REST8 REST4, REST4

/* --- fields --------------------------------------------------------------------------------------------------- */

static void fills_classes(void **state) {
    (void)state;
    cleat_text_options options = options_of(CLEAT_TEXT_CLASSES);
    options.max_length = 6;
    cleat_dataset *dataset =
        open_text("text,label\nGood days.,up\nqueer day,down\na a a a.,down\na a a a a,up\n", &options);
    assert_int_equal(cleat_dataset_fields(dataset), 3);
    assert_int_equal(cleat_dataset_find_field(dataset, "label"), 2);
    assert_int_equal(cleat_dataset_field(dataset, 2)->rank, 0);
    filled first = fill(dataset, 0);
    assert_ids(first.tokens, (int32_t[L]){CLS, GOOD, DAY, S, DOT, SEP, REST4, -1, -1});
    assert_int_equal(first.length, 6);
    assert_int_equal(first.labels[0], 1);
    assert_int_equal(first.labels[1], 0x55555555); /* one value per sample, and nothing written after it */
    assert_ids(fill(dataset, 1).tokens, (int32_t[L]){CLS, UNK, DAY, SEP, REST8});
    assert_ids(fill(dataset, 2).tokens, (int32_t[L]){CLS, A, A, A, A, SEP, REST4, -1, -1});
    assert_ids(fill(dataset, 3).tokens, (int32_t[L]){CLS, A, A, A, A, SEP, REST4, -1, -1});
    assert_int_equal(cleat_dataset_length(dataset, 3), 6);
    assert_int_equal(cleat_dataset_items(dataset, 3), 6);
    cleat_text_summary summary = cleat_text_summarise(dataset);
    assert_int_equal(summary.cut, 2);
    assert_int_equal(summary.tokens, 22);
    assert_int_equal(summary.unknown, 1);
    assert_int_equal(summary.words, 0);

    filled empty;
    void *slots[] = {empty.tokens, &empty.length, empty.labels};
    cleat_dataset_fill_empty(dataset, L, slots);
    assert_ids(empty.tokens, (int32_t[L]){REST8, REST4});
    assert_int_equal(empty.length, 0);
    assert_int_equal(empty.labels[0], CLEAT_TEXT_NO_LABEL);
    void *none[] = {NULL, NULL, NULL};
    assert_int_equal(cleat_dataset_fill(dataset, 0, L, NULL, none, NULL), CLEAT_OK);
    cleat_dataset_destroy(dataset);
}

static void fills_tags(void **state) {
    (void)state;
    cleat_text_options options = options_of(CLEAT_TEXT_TAGS);
    options.max_length = 8;
    cleat_dataset *dataset =
        open_text("Days\tB-x\n\xEF\xB8\x8F\tI-x\ngood.day\tO\nbad\tB-y\na\tB-y\n\na\tO\n", &options);
    filled first = fill(dataset, 0);
    assert_ids(first.tokens, (int32_t[L]){CLS, DAY, S, UNK, GOOD, DOT, DAY, SEP, REST4});
    assert_ids(first.labels, (int32_t[L]){-1, 1, -1, 2, 0, -1, -1, -1, REST4});
    static const int32_t positions[] = {1, 3, 4, -1, -1};
    for (size_t i = 0; i < 5; ++i) assert_int_equal(cleat_text_word_position(dataset, 0, i), positions[i]);
    assert_int_equal(cleat_text_word_label(dataset, 0, 4), 3);
    assert_int_equal(cleat_text_words(dataset, 0), 5);
    assert_string_equal(cleat_text_word(dataset, 0, 1), "\xEF\xB8\x8F");
    assert_int_equal(cleat_dataset_items(dataset, 0), 3);
    assert_int_equal(cleat_dataset_items(dataset, 1), 1);
    assert_ids(fill(dataset, 1).labels, (int32_t[L]){-1, 0, -1, -1, REST8});
    cleat_text_summary summary = cleat_text_summarise(dataset);
    assert_int_equal(summary.cut, 1);
    assert_int_equal(summary.cut_words, 2);
    assert_int_equal(summary.tokens, 11);
    assert_int_equal(cleat_text_label(dataset, 0), CLEAT_TEXT_NO_LABEL);
    cleat_dataset_destroy(dataset);

    /* A word keeps its first piece if its last pieces do not fit. */
    options.max_length = 5;
    dataset = open_text("a\tO\ngood.day\tB-x\nbad\tB-x\n", &options);
    assert_ids(fill(dataset, 0).tokens, (int32_t[L]){CLS, A, GOOD, DOT, SEP, REST4, -1, -1, -1});
    assert_ids(fill(dataset, 0).labels, (int32_t[L]){-1, 0, 1, -1, -1, REST4, -1, -1, -1});
    cleat_dataset_destroy(dataset);
}

/* --- splits --------------------------------------------------------------------------------------------------- */

enum { ROWS = 3000 };

/* ROWS texts; texts i and i + ROWS / 2 are equal; `turn` rotates their order. */
static char *many_rows(size_t turn) {
    static char text[ROWS * 32];
    size_t used = (size_t)sprintf(text, "text,label\n");
    for (size_t i = 0; i < ROWS; ++i) {
        size_t number = (i + turn) % (ROWS / 2);
        used += (size_t)sprintf(text + used, "day %zu,%s\n", number, number % 2 ? "up" : "down");
    }
    return text;
}

static cleat_split *splits_of(const cleat_text_options *options, size_t turn, size_t *val) {
    static cleat_split splits[ROWS];
    cleat_dataset *dataset = open_text(many_rows(turn), options);
    *val = 0;
    for (size_t i = 0; i < ROWS; ++i) {
        splits[(i + turn) % ROWS] = cleat_dataset_split(dataset, i);
        *val += cleat_dataset_split(dataset, i) == CLEAT_SPLIT_VAL;
    }
    assert_int_equal(*val, cleat_text_summarise(dataset).samples[CLEAT_SPLIT_VAL]);
    cleat_dataset_destroy(dataset);
    return splits;
}

static void splits_by_hash(void **state) {
    (void)state;
    cleat_text_options options = options_of(CLEAT_TEXT_CLASSES);
    cleat_split before[ROWS];
    size_t val, other;
    options.val_fraction = 0.2;
    memcpy(before, splits_of(&options, 0, &val), sizeof before);
    assert_true(val > 460 && val < 740); /* 1500 texts at 0.2, each twice: 600 +- 4.5 standard deviations */
    for (size_t i = 0; i < ROWS / 2; ++i) assert_int_equal(before[i], before[i + ROWS / 2]);
    assert_memory_equal(before, splits_of(&options, 7, &other), sizeof before);
    options.split_seed = 1;
    assert_memory_not_equal(before, splits_of(&options, 0, &other), sizeof before);
    options.test_fraction = 0.79;
    splits_of(&options, 0, &other);
    assert_true(other > 460 && other < 740);
    options.val_fraction = 0;
    options.test_fraction = 0.999999999;
    assert_refused(many_rows(0), &options, "d.csv", "training split");
}

/* --- labels --------------------------------------------------------------------------------------------------- */

static void orders_labels_as_told(void **state) {
    (void)state;
    cleat_text_options options = options_of(CLEAT_TEXT_CLASSES);
    options.labels = " up  never down";
    cleat_dataset *dataset = open_text("text,label\na,down\na,up\na,down\n", &options);
    assert_int_equal(cleat_text_label(dataset, 0), 2);
    assert_int_equal(cleat_text_label(dataset, 1), 0);
    assert_int_equal(cleat_text_label_samples(dataset, 1), 0);
    assert_int_equal(cleat_text_label_samples(dataset, 2), 2);
    cleat_dataset_destroy(dataset);
    assert_refused("text,label\na,down\na,upp\n", &options,
                   "d.csv:3:", "unknown label 'upp': data.labels has up, never, down; did you mean 'up'");
    options.labels = "up down up";
    assert_refused("text,label\na,down\n", &options, "data.labels", "duplicate label 'up'");
    options = options_of(CLEAT_TEXT_TAGS);
    options.labels = "y x";
    dataset = open_text("a\tB-x\na\tI-x\n", &options);
    assert_string_equal(cleat_text_label_name(dataset, 1), "B-y");
    assert_int_equal(cleat_text_word_label(dataset, 0, 1), 4);
    cleat_dataset_destroy(dataset);
    assert_refused("a\tB-x\n\na\tB-z\n", &options, "d.conll:3:", "unknown label 'z': data.labels");
    assert_refused("a\tB-x\n\na\tB-elsewhere\n", &options, "d.conll:3:", "name the labels of this data in data.labels");
}

/* Numeric labels, the rows of a published output layer, are in numerical order; words are in byte order. */
static void orders_numbers_by_value(void **state) {
    (void)state;
    static const struct {
        const char *names[4]; /* as expected */
    } rows[] = {{{"0", "2", "10", "11"}},         {{"-2", "-1", "0", "10"}},
                {{"0.0", "2.0", "10.0", "11.0"}}, {{"LABEL_0", "LABEL_2", "LABEL_10", "LABEL_11"}},
                {{"10", "11", "2", "x"}},         {{"a10", "a9", "b1", "b2"}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        const char *const *names = rows[i].names;
        char text[128];
        cleat_text_options options = options_of(CLEAT_TEXT_CLASSES);
        snprintf(text, sizeof text, "text,label\na,%s\na,%s\na,%s\na,%s\n", names[2], names[3], names[0], names[1]);
        cleat_dataset *dataset = open_text(text, &options);
        for (size_t k = 0; k < 4; ++k) assert_string_equal(cleat_text_label_name(dataset, k), names[k]);
        cleat_dataset_destroy(dataset);
    }
}

static void reads_names_with_blanks(void **state) {
    (void)state;
    cleat_text_options options = options_of(CLEAT_TEXT_CLASSES);
    options.labels = "\"very good\" bad \"so so\"";
    cleat_dataset *dataset = open_text("text,label\na,bad\na,so so\na,very good\n", &options);
    assert_string_equal(cleat_text_label_name(dataset, 0), "very good");
    assert_string_equal(cleat_text_label_name(dataset, 2), "so so");
    assert_int_equal(cleat_text_label(dataset, 1), 2);
    cleat_dataset_destroy(dataset);
    options.labels = "\"very good bad";
    assert_refused("text,label\na,bad\n", &options, "data.labels", "a quote that is not closed");
}

static void refuses_labels_that_training_lacks(void **state) {
    (void)state;
    char path[600], folder[512];
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    cleat_text_options options = options_of(CLEAT_TEXT_CLASSES);
    snprintf(folder, sizeof folder, "%s", test_folder("parts"));
    snprintf(path, sizeof path, "%s/train.csv", folder);
    test_write_text(path, "text,label\na,up\nday,down\n");
    snprintf(path, sizeof path, "%s/val.csv", folder);
    test_write_text(path, "text,label\na,up\n\"a\nday\",Down\n");
    assert_int_equal(cleat_text_open(folder, &options, &dataset, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "val.csv:3: unknown label 'Down': the training split has down, up"));
}

/* --- the fitted preprocessor ---------------------------------------------------------------------------------- */

/* The vocabulary is trained on the training part only. */
static void fits_on_training_only(void **state) {
    (void)state;
    char path[600], folder[512];
    cleat_dataset *dataset = NULL;
    cleat_text_options options = options_of(CLEAT_TEXT_CLASSES);
    options.vocabulary = "";
    options.vocabulary_size = 40;
    snprintf(folder, sizeof folder, "%s", test_folder("learn"));
    snprintf(path, sizeof path, "%s/train.csv", folder);
    test_write_text(path, "text,label\nsun sun sun,up\nmoon moon,down\n");
    snprintf(path, sizeof path, "%s/val.csv", folder);
    test_write_text(path, "text,label\nzebra zebra zebra,up\n");
    assert_int_equal(cleat_text_open(folder, &options, &dataset, NULL), CLEAT_OK);
    const cleat_tokenizer *tokenizer = cleat_text_tokenizer(dataset);
    assert_true(cleat_tokenizer_id(tokenizer, "sun") > 0);
    assert_int_equal(cleat_tokenizer_id(tokenizer, "z"), -1);
    assert_int_equal(cleat_text_summarise(dataset).unknown, 3);
    cleat_dataset_destroy(dataset);
}

static int splits_said;

static void count_splits(void *user, cleat_log_level level, const char *text) {
    (void)user, (void)level;
    splits_said += strstr(text, "training split: ") != NULL;
}

static void opens_with_the_fitted_preprocessor(void **state) {
    (void)state;
    char fitted[512], path[600];
    size_t size;
    cleat_text_options options = options_of(CLEAT_TEXT_TAGS);
    options.vocabulary = NULL;
    options.vocabulary_size = 60;
    snprintf(fitted, sizeof fitted, "%s", test_folder("learnt"));
    cleat_set_log(count_splits, NULL, CLEAT_LOG_INFO);
    cleat_dataset *first = open_text("good\tB-x\nday\tI-x\nbad\tB-y\ngood\tO\nbad\tO\n", &options);
    assert_int_equal(splits_said, 1); /* of the fitted state only */
    assert_int_equal(cleat_dataset_save(first, fitted, NULL), CLEAT_OK);
    snprintf(path, sizeof path, "%s/labels.txt", fitted);
    char *labels = test_read(path, &size);
    assert_string_equal(labels, "O\nB-x\nI-x\nB-y\nI-y\n");
    free(labels);
    char samples[600];
    snprintf(samples, sizeof samples, "%s/label_samples.txt", fitted);
    labels = test_read(samples, &size);
    assert_string_equal(labels, "2\n1\n1\n1\n0\n");
    free(labels);

    /* Other words with one of the types: ids and label counts are those of fitting. */
    options.fitted = fitted;
    cleat_dataset *second = open_text("bad\tB-y\ngood\tO\n", &options);
    cleat_set_log(NULL, NULL, CLEAT_LOG_ERROR);
    assert_int_equal(splits_said, 1);
    for (size_t i = 0; i < 5; ++i)
        assert_int_equal(cleat_text_label_samples(second, i), cleat_text_label_samples(first, i));
    assert_int_equal(cleat_text_labels_count(second), 5);
    assert_int_equal(cleat_text_word_label(second, 0, 0), 3);
    assert_int_equal(fill(second, 0).tokens[1], cleat_tokenizer_id(cleat_text_tokenizer(first), "bad"));
    cleat_dataset_destroy(second);
    assert_refused("bad\tB-z\n", &options, "d.conll:1:", "unknown label 'z': labels.txt of the model");

    /* Prediction: tags are ignored or absent. */
    options.labelled = false;
    second = open_text("bad\tE-what\ngood\n", &options);
    assert_int_equal(cleat_text_word_label(second, 0, 0), CLEAT_TEXT_NO_LABEL);
    assert_int_equal(cleat_text_words(second, 0), 2);
    assert_ids(fill(second, 0).labels, (int32_t[L]){REST8, REST4});
    assert_int_equal(cleat_dataset_items(second, 0), 0);
    cleat_dataset_destroy(second);
    cleat_dataset_destroy(first);

    /* Damaged, or absent as in models of earlier releases. */
    options.labelled = true;
    static const char *const no_counts[] = {"2\n1\n1\n1\n", "2\n1\n1\n-1\n0\n", "2\n1.5\n1\n1\n0\n", "2\n1\nO\n1\n0\n"};
    for (size_t i = 0; i < sizeof no_counts / sizeof *no_counts; ++i) {
        test_write_text(samples, no_counts[i]);
        assert_refused("bad\tB-y\n", &options, "label_samples.txt:", "no count");
    }
    remove(samples);
    second = open_text("bad\tB-y\ngood\tO\n", &options);
    assert_int_equal(cleat_text_label_samples(second, 0), 1);
    cleat_dataset_destroy(second);
    static const char *const wrong[][2] = {
        {"", "empty"},
        {"B-x\nI-x\n", "out of order"},
        {"O\nB-x\nI-y\n", "out of order"},
        {"O\nB-x\n\nI-x\n", "empty line"},
        {"O\nB-x\nI-x\nB-x\nI-x\n", "duplicate label 'x'"},
        {"up\ndown\n", "model.type"},
        {"O\n", "no entities"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
        test_write_text(path, wrong[i][0]);
        assert_refused("bad\tB-y\n", &options, i == 6 ? "" : "labels.txt:", wrong[i][1]);
    }
    cleat_dataset *dataset = NULL;
    remove(path);
    assert_int_equal(cleat_text_open(file_of(CLEAT_TEXT_TAGS, "a\tB-x\n"), &options, &dataset, NULL),
                     CLEAT_ERR_NOT_FOUND);
}

static void predicts_classes(void **state) {
    (void)state;
    char fitted[512];
    cleat_text_options options = options_of(CLEAT_TEXT_CLASSES);
    snprintf(fitted, sizeof fitted, "%s", test_folder("learnt_classes"));
    cleat_dataset *dataset = open_text("text,label\na,so so\nday,b\n", &options);
    assert_int_equal(cleat_text_save(dataset, fitted, NULL), CLEAT_OK);
    cleat_dataset_destroy(dataset);
    options.fitted = fitted;
    options.labelled = false;
    options.empty = CLEAT_TEXT_EMPTY_KEEP;
    dataset = open_text("text\ngood\n\"\"\n", &options);
    assert_int_equal(cleat_dataset_count(dataset), 2);
    assert_int_equal(cleat_text_label(dataset, 0), CLEAT_TEXT_NO_LABEL);
    assert_int_equal(fill(dataset, 0).labels[0], CLEAT_TEXT_NO_LABEL);
    assert_string_equal(cleat_text_label_name(dataset, 1), "so so");
    cleat_dataset_destroy(dataset);
}

/* --- robustness ----------------------------------------------------------------------------------------------- */

static void survives_failing_memory(void **state) {
    (void)state;
    const char *path = file_of(CLEAT_TEXT_TAGS, "good\tB-x\nday\tI-x\n\nbad\tO\nday\tO\n");
    cleat_text_options options = options_of(CLEAT_TEXT_TAGS);
    options.vocabulary = "";
    options.vocabulary_size = 30;
    cleat_status status = CLEAT_ERR_MEMORY;
    long n = 1;
    for (; n < 2000 && status; ++n) {
        cleat_dataset *dataset = NULL;
        cleat_error error = {0};
        cleat_fail_allocation(n);
        status = cleat_text_open(path, &options, &dataset, &error);
        cleat_fail_allocation(0);
        if (status && status != CLEAT_ERR_MEMORY) fail_msg("allocation %ld: %s", n, error.text);
        assert_int_equal(dataset != NULL, !status);
        cleat_dataset_destroy(dataset);
    }
    assert_int_equal(status, CLEAT_OK);
    assert_true(n > 20);
}

static void assert_same(const cleat_dataset *a, const cleat_dataset *b) {
    assert_int_equal(cleat_dataset_count(a), cleat_dataset_count(b));
    for (size_t i = 0; i < cleat_dataset_count(a); ++i) {
        filled x = fill(a, i), y = fill(b, i);
        assert_memory_equal(&x, &y, sizeof x);
    }
}

/* Threads and the cache do not change the result. */
static void gives_the_same_bits(void **state) {
    (void)state;
    const char *text = many_rows(0);
    char cache[600];
    cleat_text_options options = options_of(CLEAT_TEXT_CLASSES);
    snprintf(cache, sizeof cache, "%s", test_folder("cache"));
    setenv("CLEAT_CACHE_DIR", cache, 1);
    options.vocabulary = "";
    options.vocabulary_size = 100;
    cleat_dataset *alone = open_text(text, &options);
    options.workers = 3;
    options.cpus = "any";
    cleat_dataset *threads = open_text(text, &options);
    assert_same(alone, threads);
    options.cache = true;
    for (int i = 0; i < 2; ++i) {
        cleat_dataset *cached = open_text(text, &options);
        assert_same(alone, cached);
        cleat_dataset_destroy(cached);
    }
    cleat_dataset_destroy(threads);
    cleat_dataset_destroy(alone);
}

static void answers_nothing_for_other_kinds(void **state) {
    (void)state;
    cleat_dataset *dataset = NULL;
    cleat_rna_options options = cleat_rna_defaults();
    options.structures = false;
    test_write_text(test_path("x.fasta"), ">a\nAC\n");
    assert_int_equal(cleat_rna_open(test_path("x.fasta"), &options, &dataset, NULL), CLEAT_OK);
    assert_null(cleat_text_tokenizer(dataset));
    assert_null(cleat_text_sample(dataset, 0));
    assert_int_equal(cleat_text_words(dataset, 0), 0);
    assert_int_equal(cleat_text_labels_count(dataset), 0);
    assert_int_equal(cleat_text_label(dataset, 0), CLEAT_TEXT_NO_LABEL);
    assert_int_equal(cleat_text_word_position(dataset, 0, 0), -1);
    assert_int_equal(cleat_text_save(dataset, "/tmp", NULL), CLEAT_ERR_ARGUMENT);
    assert_null(cleat_rna_sequence(dataset, 9));
    cleat_dataset_destroy(dataset);
}

/* --- the shared tweets ---------------------------------------------------------------------------------------- */

static const char *shared(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", shared_path("data"), name);
    if (access(path, R_OK) != 0) skip();
    return path;
}

static void reads_the_shared_sentiments(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t train, val;
    } classes[] = {{"negative", 6466, 558}, {"neutral", 9252, 803}, {"positive", 7014, 639}};
    cleat_dataset *dataset = NULL;
    cleat_text_options options = options_of(CLEAT_TEXT_CLASSES);
    options.label_column = "sentiment";
    options.id_column = "textID";
    int64_t val[3] = {0};
    assert_int_equal(cleat_text_open(shared("tweets_sentiment"), &options, &dataset, NULL), CLEAT_OK);
    cleat_text_summary summary = cleat_text_summarise(dataset);
    assert_int_equal(summary.samples[CLEAT_SPLIT_TRAIN], 22732);
    assert_int_equal(summary.samples[CLEAT_SPLIT_VAL], 2000);
    assert_int_equal(summary.samples[CLEAT_SPLIT_TEST], 0);
    assert_string_equal(cleat_dataset_id(dataset, 22732), "431cb579c1");
    for (size_t i = 22732; i < 24732; ++i) ++val[cleat_text_label(dataset, i)];
    for (size_t i = 0; i < 3; ++i) {
        assert_string_equal(cleat_text_label_name(dataset, i), classes[i].name);
        assert_int_equal(cleat_text_label_samples(dataset, i), classes[i].train);
        assert_int_equal(val[i], classes[i].val);
    }
    cleat_dataset_destroy(dataset);
}

static void reads_the_shared_entities(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t train, val;
    } types[] = {{"B-corporation", 221, 34}, {"B-creative-work", 140, 105}, {"B-group", 264, 39},
                 {"B-location", 548, 74},    {"B-person", 660, 470},        {"B-product", 142, 114}};
    cleat_dataset *dataset = NULL;
    cleat_text_options options = options_of(CLEAT_TEXT_TAGS);
    int64_t val[13] = {0};
    size_t train_words = 0, val_words = 0;
    assert_int_equal(cleat_text_open(shared("tweets_ner"), &options, &dataset, NULL), CLEAT_OK);
    cleat_text_summary summary = cleat_text_summarise(dataset);
    assert_int_equal(summary.samples[CLEAT_SPLIT_TRAIN], 3394);
    assert_int_equal(summary.samples[CLEAT_SPLIT_VAL], 1009);
    for (size_t i = 0; i < cleat_dataset_count(dataset); ++i) {
        bool is_val = cleat_dataset_split(dataset, i) == CLEAT_SPLIT_VAL;
        *(is_val ? &val_words : &train_words) += cleat_text_words(dataset, i);
        for (size_t w = 0; is_val && w < cleat_text_words(dataset, i); ++w) ++val[cleat_text_word_label(dataset, i, w)];
    }
    assert_int_equal(train_words, 62730);
    assert_int_equal(val_words, 15733);
    assert_int_equal(cleat_text_labels_count(dataset), 13);
    for (size_t i = 0; i < 6; ++i) {
        assert_string_equal(cleat_text_label_name(dataset, 1 + 2 * i), types[i].name);
        assert_int_equal(cleat_text_label_samples(dataset, 1 + 2 * i), types[i].train);
        assert_int_equal(val[1 + 2 * i], types[i].val);
    }
    cleat_dataset_destroy(dataset);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_classes),
        cmocka_unit_test(fills_tags),
        cmocka_unit_test(splits_by_hash),
        cmocka_unit_test(orders_labels_as_told),
        cmocka_unit_test(orders_numbers_by_value),
        cmocka_unit_test(reads_names_with_blanks),
        cmocka_unit_test(refuses_labels_that_training_lacks),
        cmocka_unit_test(fits_on_training_only),
        cmocka_unit_test(opens_with_the_fitted_preprocessor),
        cmocka_unit_test(predicts_classes),
        cmocka_unit_test(survives_failing_memory),
        cmocka_unit_test(gives_the_same_bits),
        cmocka_unit_test(answers_nothing_for_other_kinds),
        cmocka_unit_test(reads_the_shared_sentiments),
        cmocka_unit_test(reads_the_shared_entities),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}

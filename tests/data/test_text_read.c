/* Tables and CoNLL files: accepted files, selection of the files of a folder, and messages of refusals. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "cleat/data.h"
#include "files.h"
#include "platform/files.h"

static int warnings;
static char last_info[2048];

static void keep_log(void *user, cleat_log_level level, const char *text) {
    (void)user;
    warnings += level == CLEAT_LOG_WARNING;
    if (level == CLEAT_LOG_INFO) snprintf(last_info, sizeof last_info, "%s", text);
}

static const char *vocabulary(void) {
    static char path[600];
    snprintf(path, sizeof path, "%s", test_path("vocab.txt"));
    test_write_text(path, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\ngood\nbad\nday\n##s\n");
    return path;
}

static cleat_text_options options_of(cleat_text_task task) {
    cleat_text_options options = cleat_text_defaults();
    options.task = task;
    options.vocabulary = vocabulary();
    options.val_fraction = 0;
    return options;
}

static cleat_status open_text(const char *name, const char *text, const cleat_text_options *options,
                              cleat_dataset **dataset, cleat_error *error) {
    const char *path = test_path(name);
    test_write_text(path, text);
    return cleat_text_open(path, options, dataset, error);
}

static void assert_opens(const char *path, const cleat_text_options *options, cleat_dataset **dataset) {
    cleat_error error = {0};
    cleat_status status = cleat_text_open(path, options, dataset, &error);
    if (status) fail_msg("%s", error.text);
}

/* --- accepted files ------------------------------------------------------------------------------------------- */

static void reads_a_table(void **state) {
    (void)state;
    cleat_dataset *dataset = NULL;
    cleat_text_options options = options_of(CLEAT_TEXT_CLASSES);
    options.id_column = "name";
    const char *path = test_path("t.csv");
    test_write_text(path, "\xEF\xBB\xBF"
                          "label,extra,text,name\r\n"
                          "up,,\"a \"\"good\"\", good\nday\",x 1\r\n"
                          "\"down, low\",9,bad,x 1\r\n"
                          "up,,day,\"7\"");
    assert_opens(path, &options, &dataset);
    assert_int_equal(cleat_dataset_count(dataset), 3);
    assert_string_equal(cleat_text_sample(dataset, 0), "a \"good\", good\nday");
    assert_string_equal(cleat_dataset_id(dataset, 1), "x 1");
    assert_string_equal(cleat_dataset_id(dataset, 2), "7");
    assert_int_equal(cleat_text_labels_count(dataset), 2);
    assert_string_equal(cleat_text_label_name(dataset, 0), "down, low");
    assert_string_equal(cleat_text_label_name(dataset, 1), "up");
    assert_null(cleat_text_label_name(dataset, 2));
    assert_int_equal(cleat_text_label(dataset, 0), 1);
    assert_int_equal(cleat_text_label(dataset, 1), 0);
    assert_int_equal(cleat_text_label_samples(dataset, 1), 2);
    assert_int_equal(cleat_text_words(dataset, 0), 1);
    cleat_dataset_destroy(dataset);
}

/* As spreadsheets write CSV in locales with a decimal comma; the profile's id column belongs to other data. */
static void reads_semicolons_without_the_id_column(void **state) {
    (void)state;
    cleat_dataset *dataset = NULL;
    cleat_text_options options = options_of(CLEAT_TEXT_CLASSES);
    options.id_column = "textID";
    const char *path = test_path("t.csv");
    test_write_text(path, "\xEF\xBB\xBF"
                          "text;label\r\n\"good; day\";up\r\nbad, day;down\r\n");
    assert_opens(path, &options, &dataset);
    assert_int_equal(cleat_dataset_count(dataset), 2);
    assert_string_equal(cleat_text_sample(dataset, 0), "good; day");
    assert_string_equal(cleat_text_sample(dataset, 1), "bad, day");
    assert_string_equal(cleat_dataset_id(dataset, 0), "1");
    assert_string_equal(cleat_dataset_id(dataset, 1), "2");
    cleat_dataset_destroy(dataset);
}

static void reads_tabs_without_quotes(void **state) {
    (void)state;
    cleat_dataset *dataset = NULL;
    cleat_text_options options = options_of(CLEAT_TEXT_CLASSES);
    const char *path = test_path("t.tsv");
    test_write_text(path, "text\tlabel\n\"good, day\tup\n\n\"bad\" \"\tdown\r\n");
    assert_opens(path, &options, &dataset);
    assert_int_equal(cleat_dataset_count(dataset), 2);
    assert_string_equal(cleat_text_sample(dataset, 0), "\"good, day");
    assert_string_equal(cleat_text_sample(dataset, 1), "\"bad\" \"");
    assert_string_equal(cleat_text_label_name(dataset, 0), "down");
    assert_string_equal(cleat_dataset_id(dataset, 1), "2");
    cleat_dataset_destroy(dataset);
}

static void reads_conll(void **state) {
    (void)state;
    cleat_dataset *dataset = NULL;
    cleat_text_options options = options_of(CLEAT_TEXT_TAGS);
    const char *path = test_path("t.conll");
    test_write_text(path, "-DOCSTART- -X- O O\n\n"
                          "New York\tNNP\tB-place\r\nday\tNN\tI-place\r\n\t\n"
                          "good  JJ  O\n#a\tO\t\n \t \r\n\n"
                          "bad\tB-a-b");
    assert_opens(path, &options, &dataset);
    assert_int_equal(cleat_dataset_count(dataset), 3);
    assert_string_equal(cleat_dataset_id(dataset, 2), "3");
    assert_int_equal(cleat_text_words(dataset, 0), 2);
    assert_string_equal(cleat_text_word(dataset, 0, 0), "New York");
    assert_string_equal(cleat_text_word(dataset, 1, 0), "good");
    assert_string_equal(cleat_text_word(dataset, 1, 1), "#a");
    assert_null(cleat_text_word(dataset, 1, 2));
    static const char *const names[] = {"O", "B-a-b", "I-a-b", "B-place", "I-place"};
    assert_int_equal(cleat_text_labels_count(dataset), 5);
    for (size_t i = 0; i < 5; ++i) assert_string_equal(cleat_text_label_name(dataset, i), names[i]);
    assert_int_equal(cleat_text_word_label(dataset, 0, 0), 3);
    assert_int_equal(cleat_text_word_label(dataset, 0, 1), 4);
    assert_int_equal(cleat_text_word_label(dataset, 1, 0), 0);
    assert_int_equal(cleat_text_word_label(dataset, 2, 0), 1);
    assert_int_equal(cleat_text_label_samples(dataset, 0), 2);
    assert_int_equal(cleat_text_summarise(dataset).words, 5);
    cleat_dataset_destroy(dataset);
}

/* Comments as in MultiCoNER and CoNLL-U; a sentence may also begin with the word '#'. */
static void lines_of_ids_are_comments(void **state) {
    (void)state;
    cleat_dataset *dataset = NULL;
    cleat_text_options options = options_of(CLEAT_TEXT_TAGS);
    const char *path = test_path("ids.conll");
    test_write_text(path,
                    "# id 7\tdomain=en\nday\tB-place\n\n# sent_id = 2\n# text = bad O\nbad O\n# NN O\n\n# O\na O\n");
    assert_opens(path, &options, &dataset);
    assert_int_equal(cleat_dataset_count(dataset), 3);
    static const char *const words[3][3] = {{"day"}, {"bad", "#"}, {"#", "a"}};
    for (size_t s = 0; s < 3; ++s)
        for (size_t w = 0; w < 3; ++w) {
            const char *word = cleat_text_word(dataset, s, w);
            assert_true(words[s][w] ? word && strcmp(word, words[s][w]) == 0 : !word);
        }
    cleat_dataset_destroy(dataset);
}

/* Continuous values are not classes; a few integers are. */
static void measured_values_are_no_classes(void **state) {
    (void)state;
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    cleat_text_options options = options_of(CLEAT_TEXT_CLASSES);
    for (int kind = 0; kind < 4; ++kind) { /* the last: two texts of each of 20 classes */
        char text[4096] = "text,label\n";
        for (int i = 0; i < 40; ++i)
            sprintf(text + strlen(text),
                    kind >= 2 ? "good day %d,%d.0\n"
                    : kind    ? "good day %d,\"%d,5\"\n"
                              : "good day %d,%d7\n",
                    i,
                    kind == 3   ? i % 20
                    : kind == 2 ? i % 5
                                : i);
        const cleat_status status = open_text("measured.csv", text, &options, &dataset, &error);
        if (kind >= 2) {
            assert_int_equal(status, CLEAT_OK);
            cleat_dataset_destroy(dataset);
        } else if (status != CLEAT_ERR_FORMAT || !strstr(error.text, "has 40 different numbers"))
            fail_msg("%d '%s'", status, error.text);
    }
}

/* --- settings for irregular input --------------------------------------------------------------------------------- */

/* For prediction: one text per line, with the line number as id. */
static void reads_plain_lines(void **state) {
    (void)state;
    cleat_dataset *dataset = NULL;
    cleat_text_options options = options_of(CLEAT_TEXT_CLASSES);
    options.labels = "down up";
    const char *path = test_path("t.txt");
    test_write_text(path, " good, \"day\"\tbad\r\n\n \t\r\na");
    assert_int_equal(cleat_text_open(path, &options, &dataset, NULL), CLEAT_ERR_NOT_SUPPORTED);
    options.labelled = false;
    assert_opens(path, &options, &dataset);
    assert_int_equal(cleat_dataset_count(dataset), 2);
    assert_string_equal(cleat_text_sample(dataset, 0), "good, \"day\"\tbad");
    assert_string_equal(cleat_dataset_id(dataset, 0), "1");
    assert_string_equal(cleat_text_sample(dataset, 1), "a");
    assert_string_equal(cleat_dataset_id(dataset, 1), "4");
    assert_int_equal(cleat_text_summarise(dataset).skipped, 2);
    cleat_dataset_destroy(dataset);
    dataset = NULL;
    path = test_path("t.json");
    test_write_text(path, "{\"text\": \"good\"}\n");
    assert_int_equal(cleat_text_open(path, &options, &dataset, NULL), CLEAT_ERR_NOT_SUPPORTED);
    path = test_path("blank.txt");
    test_write_text(path, "\n \n");
    assert_int_equal(cleat_text_open(path, &options, &dataset, NULL), CLEAT_ERR_FORMAT);
    assert_null(dataset);
}

static void expect_words(const char *name, const char *text, const char *const *sentences) {
    cleat_dataset *dataset = NULL;
    cleat_text_options options = options_of(CLEAT_TEXT_TAGS);
    options.labels = "place";
    options.labelled = false;
    test_write_text(test_path(name), text);
    assert_opens(test_path(name), &options, &dataset);
    for (size_t s = 0; s < cleat_dataset_count(dataset); ++s) {
        char all[256] = "";
        for (size_t w = 0; w < cleat_text_words(dataset, s); ++w) {
            if (w) strcat(all, "|");
            strcat(all, cleat_text_word(dataset, s, w));
        }
        assert_non_null(sentences[s]);
        assert_string_equal(all, sentences[s]);
    }
    assert_null(sentences[cleat_dataset_count(dataset)]);
    cleat_dataset_destroy(dataset);
}

/* For prediction, sentences are split into words as in CoNLL files; CoNLL files are read as such. */
static void splits_sentences_into_words(void **state) {
    (void)state;
    static const char text[] = "@a: went (to) \"New York\" today...\r\n\n  It's #good!! \n";
    static const char *const words[] = {"@a|:|went|(|to|)|\"|New|York|\"|today|...", "It's|#good|!!", NULL};
    expect_words("s.txt", text, words);
    expect_words("s.lines", "good\nbad O\n", (const char *const[]){"good", "bad|O", NULL});
    expect_words("w.txt", "good\nday\n\nbad\n", (const char *const[]){"good|day", "bad", NULL});
    expect_words("c.txt", "good O\nday B-place\n", (const char *const[]){"good|day", NULL});
    expect_words("t.txt", "New York\tB-place\n", (const char *const[]){"New York", NULL});
    expect_words("p.txt", "wait ... !\n", (const char *const[]){"wait|...|!", NULL});
}

static void treats_empty_texts_as_told(void **state) {
    (void)state;
    static const char table[] = "text,label\n,up\ngood,down\n\" \n\",up\nday,up\n";
    cleat_dataset *dataset = NULL;
    cleat_text_options options = options_of(CLEAT_TEXT_CLASSES);
    options.empty = CLEAT_TEXT_EMPTY_SKIP;
    assert_int_equal(open_text("e.csv", table, &options, &dataset, NULL), CLEAT_OK);
    assert_int_equal(cleat_dataset_count(dataset), 2);
    assert_string_equal(cleat_dataset_id(dataset, 1), "4");
    assert_int_equal(cleat_text_summarise(dataset).skipped, 2);
    cleat_dataset_destroy(dataset);
    options.empty = CLEAT_TEXT_EMPTY_KEEP;
    assert_int_equal(open_text("e.csv", table, &options, &dataset, NULL), CLEAT_OK);
    assert_int_equal(cleat_dataset_count(dataset), 4);
    assert_int_equal(cleat_dataset_length(dataset, 0), 2);
    assert_int_equal(cleat_dataset_length(dataset, 1), 3);
    cleat_dataset_destroy(dataset);
    cleat_error error = {0};
    options.empty = CLEAT_TEXT_EMPTY_SKIP;
    assert_int_equal(open_text("e.csv", "text,label\n,up\n", &options, &dataset, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "1 are empty"));
}

static void replaces_invalid_bytes(void **state) {
    (void)state;
    cleat_dataset *dataset = NULL;
    cleat_text_options options = options_of(CLEAT_TEXT_CLASSES);
    options.replace_invalid = true;
    assert_int_equal(open_text("u.csv",
                               "text,label\n\"go\xFFod\",up\nb\xED\xA0\x80"
                               "ad\xC3\xA9,down\n\xE2\x82,down\n",
                               &options, &dataset, NULL),
                     CLEAT_OK);
    assert_string_equal(cleat_text_sample(dataset, 0), "go\xEF\xBF\xBDod");
    assert_string_equal(cleat_text_sample(dataset, 1), "b\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"
                                                       "ad\xC3\xA9");
    assert_int_equal(cleat_text_summarise(dataset).replaced, 6);
    cleat_dataset_destroy(dataset);
}

static void repairs_tags(void **state) {
    (void)state;
    cleat_dataset *dataset = NULL;
    cleat_text_options options = options_of(CLEAT_TEXT_TAGS);
    options.repair_tags = true;
    assert_int_equal(
        open_text("r.conll", "a\tI-x\nday\tI-x\ngood\tI-y\nbad\tO\nday\tI-y\n\na\tI-y\n", &options, &dataset, NULL),
        CLEAT_OK);
    static const int32_t wanted[] = {1, 2, 3, 0, 3};
    for (size_t i = 0; i < 5; ++i) assert_int_equal(cleat_text_word_label(dataset, 0, i), wanted[i]);
    assert_int_equal(cleat_text_word_label(dataset, 1, 0), 3);
    assert_int_equal(cleat_text_summarise(dataset).repaired, 4);
    cleat_dataset_destroy(dataset);
}

/* --- refusals ------------------------------------------------------------------------------------------------- */

#define HEAD "text,label\n"
#define TWO HEAD "good,up\nbad,down\n"

static void refuses_bad_tables(void **state) {
    (void)state;
    static const struct {
        const char *text, *where, *what;
    } rows[] = {
        {"", "b.csv:1:", "empty"},
        {"\n\n", "b.csv:1:", "no header"},
        {HEAD, "b.csv:1:", "no row below the header"},
        {"txet,label\n", "b.csv:1:", "no column 'text'; did you mean 'txet'"},
        {"tweet,label\n", "b.csv:1:", "the header line has tweet, label"},
        {"text,lable\n", "b.csv:1:", "did you mean 'lable'"},
        {"text,lable\n", "data.label_column: ", "no column 'label'"},
        {"text,label,text\n", "b.csv:1:", "columns 1 and 3 are both named 'text'"},
        {TWO "good\n", "b.csv:4:", "1 fields, but the header has 2"},
        {TWO "good,day,up\n", "b.csv:4:", "3 fields"},
        {TWO "\"good\nday\n\nand so on,up\n", "b.csv:4:", "never closed"},
        {HEAD "\"good\nday\",up\n\"bad,down\n", "b.csv:4:", "never closed"},
        {TWO "\"good\"day,up\n", "b.csv:4:", "after the closing quote"},
        {TWO "go\"od,up\n", "b.csv:4:", "unquoted"},
        {TWO "g\xC3\xA9\xFFod,up\n", "b.csv:4:", "byte 0xff at offset 31"},
        {TWO ",up\n", "b.csv:4:", "text is empty"},
        {TWO "\" \t\",up\n", "b.csv:4:", "data.empty_texts"},
        {TWO "good,\n", "b.csv:4:", "label is empty"},
        {TWO "good,\"u\np\"\n", "b.csv:4:", "line break in the label"},
        {HEAD "good,up\nbad,up\n", "1 classes", "data.label_column"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_dataset *dataset = NULL;
        cleat_error error = {0};
        cleat_text_options options = options_of(CLEAT_TEXT_CLASSES);
        cleat_status status = open_text("b.csv", rows[i].text, &options, &dataset, &error);
        if (status != CLEAT_ERR_FORMAT || dataset || !strstr(error.text, rows[i].where) ||
            !strstr(error.text, rows[i].what))
            fail_msg("row %zu: %d '%s'", i, status, error.text);
    }
}

static void refuses_bad_conll(void **state) {
    (void)state;
    static const struct {
        const char *text, *where, *what;
    } rows[] = {
        {"", "b.conll:1:", "empty"},
        {"\n\t\n", "b.conll:2:", "no sentence"},
        {"-DOCSTART-\tO\n", "b.conll:1:", "no sentence"},
        {"a\tB-x\ngood\n", "b.conll:2:", "without a tag"},
        {"a\tB-x\ngood\t\n", "b.conll:2:", "without a tag"},
        {"a\tB-x\n\tO\n", "b.conll:2:", "no word before the tab"},
        {"a\tB-x\nb\tE-x\n", "b.conll:2:", "'E-x' is not one of O, B-TYPE and I-TYPE"},
        {"a\tB-x\nb\tB-\n", "b.conll:2:", "'B-'"},
        {"a\tB-x\nb\to\n", "b.conll:2:", "'o'"},
        {"a\tB-x\nb\tBx\n", "b.conll:2:", "'Bx'"},
        {"a\tI-x\n", "b.conll:1:", "write B-x"},
        {"a\tB-x\nb\tI-y\n", "b.conll:2:", "write B-y"},
        {"a\tB-x\nb\tO\nc\tI-x\n", "b.conll:3:", "data.bad_tags = repair"},
        {"a\tB-x\n\nb\tI-x\n", "b.conll:3:", "'I-x' continues"},
        {"a\tB-x\n\xF0\x9F\x98\tO\n", "b.conll:2:", "byte 0xf0 at offset 6"},
        {"a\tO\nb\tO\n", "no entities", "every tag is O"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_dataset *dataset = NULL;
        cleat_error error = {0};
        cleat_text_options options = options_of(CLEAT_TEXT_TAGS);
        cleat_status status = open_text("b.conll", rows[i].text, &options, &dataset, &error);
        if (status != CLEAT_ERR_FORMAT || dataset || !strstr(error.text, rows[i].where) ||
            !strstr(error.text, rows[i].what))
            fail_msg("row %zu: %d '%s'", i, status, error.text);
    }
}

/* Every prefix of a valid file, and the file with one byte changed, is either read or refused. */
static void survives(cleat_text_task task, const char *name, const char *good) {
    char text[200];
    cleat_text_options options = options_of(task);
    size_t size = strlen(good);
    for (size_t cut = 0; cut < size; ++cut)
        for (int flip = 0; flip < 4; ++flip) {
            /* the last one turns a tab into a quote */
            static const char flips[] = {0, (char)0x80, 0x02, 0x2B};
            cleat_dataset *dataset = NULL;
            cleat_error error = {0};
            memcpy(text, good, size + 1);
            text[cut] = flip ? (char)(text[cut] ^ flips[flip]) : 0;
            cleat_status status = open_text(name, text, &options, &dataset, &error);
            assert_true(!status ? dataset != NULL : strlen(error.text) > 20);
            cleat_dataset_destroy(dataset);
        }
}

static void survives_cuts_and_flips(void **state) {
    (void)state;
    survives(CLEAT_TEXT_CLASSES, "f.csv", "text,label\n\"a \"\"good\"\" day\n\",up\nbad,down\n\"a, a\",up\n");
    survives(CLEAT_TEXT_TAGS, "f.conll", "good\tB-x\nday\tI-x\n\t\na b O\nbad\tO\n\nday\tB-y\n");
}

/* --- folders -------------------------------------------------------------------------------------------------- */

static const char *fill_folder(const char *name, const char *const *files, const char *text) {
    static char folder[600];
    char path[700];
    snprintf(folder, sizeof folder, "%s", test_folder(name));
    for (size_t i = 0; files[i]; ++i) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        test_write_text(path, text);
    }
    return folder;
}

static size_t count_of(const cleat_dataset *dataset, cleat_split split) {
    return cleat_text_summarise(dataset).samples[split];
}

static void finds_tables(void **state) {
    (void)state;
    static const char *const all[] = {"train.csv", "Dev.tsv",    "test.csv", "training.csv",
                                      "train.txt", ".train.csv", NULL};
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    cleat_text_options options = options_of(CLEAT_TEXT_CLASSES);
    const char *folder = fill_folder("tables", all, TWO);
    char path[700];
    snprintf(path, sizeof path, "%s/Dev.tsv", folder);
    test_write_text(path, "label\ttext\nup\tgood\n");
    assert_opens(folder, &options, &dataset);
    assert_int_equal(count_of(dataset, CLEAT_SPLIT_TRAIN), 2);
    assert_int_equal(count_of(dataset, CLEAT_SPLIT_VAL), 1);
    assert_int_equal(count_of(dataset, CLEAT_SPLIT_TEST), 2);
    assert_int_equal(cleat_dataset_split(dataset, 2), CLEAT_SPLIT_VAL);
    assert_string_equal(cleat_dataset_id(dataset, 1), "train-2");
    assert_string_equal(cleat_dataset_id(dataset, 2), "val-1");
    cleat_dataset_destroy(dataset);

    /* A competition's test file without labels. */
    snprintf(path, sizeof path, "%s/test.csv", folder);
    test_write_text(path, "text\ngood\n");
    warnings = 0;
    cleat_set_log(keep_log, NULL, CLEAT_LOG_INFO);
    assert_opens(folder, &options, &dataset);
    cleat_set_log(NULL, NULL, CLEAT_LOG_ERROR);
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(last_info, "down 1, up 1"));
    assert_int_equal(count_of(dataset, CLEAT_SPLIT_TEST), 0);
    cleat_dataset_destroy(dataset);
    dataset = NULL;
    options.test_file = "test.csv";
    assert_int_equal(cleat_text_open(folder, &options, &dataset, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "no column 'label'"));

    /* Custom file names, and messages about missing files. */
    options.train_file = options.val_file = options.test_file = "training.csv";
    assert_opens(folder, &options, &dataset);
    assert_int_equal(cleat_dataset_count(dataset), 6);
    cleat_dataset_destroy(dataset);
    options.val_file = "nothing.csv";
    assert_int_equal(cleat_text_open(folder, &options, &dataset, &error), CLEAT_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "data.val_file"));

    static const char *const two[] = {"val.csv", NULL};
    fill_folder("tables", two, TWO);
    options = options_of(CLEAT_TEXT_CLASSES);
    assert_int_equal(cleat_text_open(folder, &options, &dataset, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "both Dev.tsv and val.csv"));
    static const char *const none[] = {"tweets.csv", NULL};
    assert_int_equal(cleat_text_open(fill_folder("none", none, TWO), &options, &dataset, &error), CLEAT_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "data.train_file"));
}

static void finds_conll(void **state) {
    (void)state;
    static const char *const all[] = {"wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated",
                                      "README.md",         "train.csv",          NULL};
    cleat_dataset *dataset = NULL;
    cleat_text_options options = options_of(CLEAT_TEXT_TAGS);
    assert_opens(fill_folder("conll", all, "a\tB-x\n\nday\tO\n"), &options, &dataset);
    for (int split = 0; split < CLEAT_SPLITS; ++split) assert_int_equal(count_of(dataset, (cleat_split)split), 2);
    cleat_dataset_destroy(dataset);
}

static void refuses_other_paths(void **state) {
    (void)state;
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    cleat_text_options options = options_of(CLEAT_TEXT_CLASSES);
    test_write_text(test_path("x.csv"), TWO);
    test_write_text(test_path("x.conll"), "a\tB-x\n");
    assert_int_equal(cleat_text_open(test_path("nowhere"), &options, &dataset, &error), CLEAT_ERR_NOT_FOUND);
    assert_int_equal(cleat_text_open(test_path("x.conll"), &options, &dataset, &error), CLEAT_ERR_NOT_SUPPORTED);
    options.task = CLEAT_TEXT_TAGS;
    assert_int_equal(cleat_text_open(test_path("x.csv"), &options, &dataset, &error), CLEAT_ERR_NOT_SUPPORTED);
    assert_int_equal(cleat_text_open(test_path("nowhere"), &options, &dataset, NULL), CLEAT_ERR_NOT_FOUND);
    options.max_length = 2;
    assert_int_equal(cleat_text_open(test_path("x.conll"), &options, &dataset, &error), CLEAT_ERR_ARGUMENT);
    options = options_of(CLEAT_TEXT_TAGS);
    options.val_fraction = 0.0 / 0.0;
    assert_int_equal(cleat_text_open(test_path("x.conll"), &options, &dataset, &error), CLEAT_ERR_ARGUMENT);
    options = options_of(CLEAT_TEXT_TAGS);
    options.vocabulary = test_path("no_vocab.txt");
    assert_int_equal(cleat_text_open(test_path("x.conll"), &options, &dataset, &error), CLEAT_ERR_NOT_FOUND);
    options = options_of(CLEAT_TEXT_TAGS);
    options.vocabulary = NULL;
    options.vocabulary_size = 5;
    assert_int_equal(cleat_text_open(test_path("x.conll"), &options, &dataset, &error), CLEAT_ERR_ARGUMENT);
    options = options_of(CLEAT_TEXT_TAGS);
    options.labelled = false;
    assert_int_equal(cleat_text_open(test_path("x.conll"), &options, &dataset, &error), CLEAT_ERR_ARGUMENT);
    assert_null(dataset);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_table),
        cmocka_unit_test(reads_semicolons_without_the_id_column),
        cmocka_unit_test(reads_tabs_without_quotes),
        cmocka_unit_test(reads_conll),
        cmocka_unit_test(lines_of_ids_are_comments),
        cmocka_unit_test(measured_values_are_no_classes),
        cmocka_unit_test(reads_plain_lines),
        cmocka_unit_test(splits_sentences_into_words),
        cmocka_unit_test(treats_empty_texts_as_told),
        cmocka_unit_test(replaces_invalid_bytes),
        cmocka_unit_test(repairs_tags),
        cmocka_unit_test(refuses_bad_tables),
        cmocka_unit_test(refuses_bad_conll),
        cmocka_unit_test(survives_cuts_and_flips),
        cmocka_unit_test(finds_tables),
        cmocka_unit_test(finds_conll),
        cmocka_unit_test(refuses_other_paths),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}

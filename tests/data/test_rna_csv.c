/* sequences.csv, labels.csv and FASTA: accepted files, and messages of refusals. */
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

static const char good_sequences[] = "split,target_id,note,sequence\n"
                                     "train,X_A,\"a, \"\"quoted\"\"\nnote\",ACGU\n"
                                     "val,X_B,,gtn\n"
                                     "test,Y,,AC\n";
static const char good_labels[] = "resid,ID,resname,x_1,y_1,z_1,x_2,y_2,z_2\n"
                                  "1,X_A_1,A,1,2,3,0,0,0\n"
                                  "2,X_A_2,C,4.5,5.25,-6.125,0,0,0\n"
                                  "1,X_B_1,G,,,,0,0,0\n"
                                  "3,X_A_3,G,-1e18,-1e18,-1e18,0,0,0\n"
                                  "4,X_A_4,U,7,8,9,0,0,0\n"
                                  "2,X_B_2,U,1,1,1,0,0,0\n"
                                  "3,X_B_3,-,1,1,1,0,0,0\n";

static int warnings;

static void count_warnings(void *user, cleat_log_level level, const char *text) {
    (void)user;
    (void)text;
    warnings += level == CLEAT_LOG_WARNING;
}

static cleat_status open_texts(const char *sequences, const char *labels, cleat_dataset **dataset, cleat_error *error) {
    const char *folder = test_folder("set");
    char path[600];
    snprintf(path, sizeof path, "%s/sequences.csv", folder);
    test_write_text(path, sequences);
    snprintf(path, sizeof path, "%s/labels.csv", folder);
    remove(path);
    if (labels) test_write_text(path, labels);
    return cleat_rna_open(folder, NULL, dataset, error);
}

static void reads_both_files(void **state) {
    (void)state;
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    warnings = 0;
    cleat_set_log(count_warnings, NULL, CLEAT_LOG_WARNING);
    assert_int_equal(open_texts(good_sequences, good_labels, &dataset, &error), CLEAT_OK);
    cleat_set_log(NULL, NULL, CLEAT_LOG_ERROR);
    assert_int_equal(warnings, 2); /* further conformations; Y has no labels */
    assert_int_equal(cleat_dataset_count(dataset), 2);
    assert_string_equal(cleat_dataset_id(dataset, 0), "X_A");
    assert_int_equal(cleat_dataset_split(dataset, 0), CLEAT_SPLIT_TRAIN);
    assert_int_equal(cleat_dataset_split(dataset, 1), CLEAT_SPLIT_VAL);
    assert_string_equal(cleat_rna_sequence(dataset, 0), "ACGU");
    assert_string_equal(cleat_rna_sequence(dataset, 1), "GUN");
    const float *coords = cleat_rna_coords(dataset, 0), *mask = cleat_rna_mask(dataset, 0);
    assert_true(coords[3] == 4.5f && coords[4] == 5.25f && coords[5] == -6.125f);
    assert_true(mask[0] == 1 && mask[2] == 0 && coords[6] == 0 && mask[3] == 1);
    cleat_rna_summary summary = cleat_rna_summarise(dataset);
    assert_int_equal(summary.chains, 2);
    assert_int_equal(summary.residues, 7);
    assert_int_equal(summary.missing, 2);
    assert_int_equal(summary.skipped, 1);
    assert_int_equal(summary.unknown, 1);
    cleat_dataset_destroy(dataset);
}

/* The file names of the Kaggle competition; if both pairs exist, the one without "train_" is read. */
static void reads_training_files(void **state) {
    (void)state;
    const char *folder = test_folder("kaggle");
    const char *const names[] = {"train_sequences.csv", "train_labels.csv", "sequences.csv"};
    const char *const texts[] = {good_sequences, good_labels, "target_id,sequence\nX_A,ACGU\n"};
    char path[600];
    for (int files = 2; files <= 3; ++files) {
        cleat_dataset *dataset = NULL;
        for (int i = 0; i < files; ++i) {
            snprintf(path, sizeof path, "%s/%s", folder, names[i]);
            test_write_text(path, texts[i]);
        }
        cleat_error error = {0};
        cleat_status status = cleat_rna_open(folder, NULL, &dataset, &error);
        assert_int_equal(status, files == 2 ? CLEAT_OK : CLEAT_ERR_NOT_FOUND);
        if (status) {
            assert_non_null(strstr(error.text, "kaggle/labels.csv"));
            continue;
        }
        assert_int_equal(cleat_dataset_count(dataset), 2);
        cleat_dataset_destroy(dataset);
    }
}

/* Kaggle's validation files are the validation split; its test files have no labels and are ignored. */
static void reads_validation_files(void **state) {
    (void)state;
    const char *folder = test_folder("kaggle_val");
    const char *const names[] = {"train_sequences.csv", "train_labels.csv", "validation_sequences.csv",
                                 "validation_labels.csv", "test_sequences.csv"};
    const char *const texts[] = {
        "target_id,sequence\nX_A,A\nY_A,G\n", "ID,resname,resid,x_1,y_1,z_1\nX_A_1,A,1,1,2,3\nY_A_1,G,1,4,5,6\n",
        "target_id,sequence\nR1107,AC\n", "ID,resname,resid,x_1,y_1,z_1\nR1107_1,A,1,1,2,3\nR1107_2,C,2,4,5,6\n",
        "target_id,sequence\nR9,AC\n"};
    char path[600];
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        test_write_text(path, texts[i]);
    }
    cleat_rna_options options = cleat_rna_defaults();
    options.val_fraction = 0.9;
    if (cleat_rna_open(folder, &options, &dataset, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_int_equal(cleat_dataset_count(dataset), 3);
    assert_string_equal(cleat_dataset_id(dataset, 2), "R1107");
    for (size_t i = 0; i < 3; ++i)
        assert_int_equal(cleat_dataset_split(dataset, i), i == 2 ? CLEAT_SPLIT_VAL : CLEAT_SPLIT_TRAIN);
    cleat_dataset_destroy(dataset);
}

#define SEQ "target_id,sequence\n"
#define LAB "ID,resname,resid,x_1,y_1,z_1\n"
#define ONE SEQ "X_A,ACG\n"

static void refuses_bad_tables(void **state) {
    (void)state;
    static const struct {
        const char *sequences, *labels, *where, *what;
    } rows[] = {
        {"id,sequence\nX_A,ACG\n", LAB, "sequences.csv:1:", "no column 'target_id'"},
        {"target_id,seq\nX_A,ACG\n", LAB, "sequences.csv:1:", "no column 'sequence'"},
        {SEQ, LAB, "sequences.csv:1:", "no sequence"},
        {SEQ "X_A,ACG\nX_A,AC\n", LAB, "sequences.csv:3:", "duplicate"},
        {SEQ "X_A,\n", LAB, "sequences.csv:2:", "empty"},
        {SEQ ",ACG\n", LAB, "sequences.csv:2:", "target_id is empty"},
        {SEQ "X_A,AC?G\n", LAB, "sequences.csv:2:", "letter 3"},
        {SEQ "X_A,ACEG\n", LAB, "sequences.csv:2:", "'E'"},
        {"target_id,sequence,length\nX_A,ACG,4\n", LAB, "sequences.csv:2:", "length is 4"},
        {"target_id,sequence,length\nX_A,ACG,three\n", LAB, "sequences.csv:2:", "not a whole number"},
        {"target_id,sequence,split\nX_A,ACG,trian\n", LAB, "sequences.csv:2:", "train, val or test"},
        {ONE, "ID,resname,resid,x,y,z\n", "labels.csv:1:", "no column 'x_1'"},
        {ONE, LAB "X_A_1,A,1,1,2,3\nX_A_3,G,3,1,2,3\n", "labels.csv:3:", "instead of 2"},
        {ONE, LAB "X_A_1,A,1,1,2,3\nX_A_1,A,1,1,2,3\n", "labels.csv:3:", "instead of 2"},
        {ONE, LAB "X_A_0,A,0,1,2,3\n", "labels.csv:2:", "resid 0"},
        {ONE, LAB "X_A_4,A,4,1,2,3\n", "labels.csv:2:", "has 3 residues"},
        {ONE, LAB "X_A_1,A,2,1,2,3\n", "labels.csv:2:", "ID ends in 1, but resid is 2"},
        {ONE, LAB "X_A_one,A,1,1,2,3\n", "labels.csv:2:", "not a whole number"},
        {ONE, LAB "X_A_1,A,1.5,1,2,3\n", "labels.csv:2:", "not a whole number"},
        {ONE, LAB "X_A_2147483647,A,2147483647,1,2,3\n", "labels.csv:2:", "has 3 residues"},
        {ONE, LAB "X_A_2147483648,A,2147483648,1,2,3\n", "labels.csv:2:", "not a whole number"},
        {ONE, LAB "XA1,A,1,1,2,3\n", "labels.csv:2:", "target_id, '_' and resid"},
        {ONE, LAB "Z_A_1,A,1,1,2,3\n", "labels.csv:2:", "no sequence has the target_id 'Z_A'"},
        {ONE, LAB "X_A_1,C,1,1,2,3\n", "labels.csv:2:", "resname is 'C'"},
        {ONE, LAB "X_A_1,A,1,1,two,3\n", "labels.csv:2:", "y_1 is 'two'"},
        {ONE, LAB "X_A_1,A,1,1,nan,3\n", "labels.csv:2:", "not a finite number"},
        {ONE, LAB "X_A_1,A,1,1,2,inf\n", "labels.csv:2:", "z_1 is 'inf'"},
        {ONE, LAB "X_A_1,A,1,1e12,2,3\n", "labels.csv:2:", "not a coordinate"},
        {ONE, LAB "X_A_1,A,1,1,,3\n", "labels.csv:2:", "only some"},
        {ONE, LAB "X_A_1,A,1,1,2,3\nX_A_2,C,2,4,5,6\n", "labels.csv:3:", "2 of its 3 residues"},
        {ONE, LAB "X_A_1,A,1,1,2,3\nX_A_2,C,2,4,5", "labels.csv:3:", "5 fields"},
        {ONE, LAB, "set:", "no chain can be used"},
        {ONE, "", "labels.csv:1:", "empty"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_dataset *dataset = NULL;
        cleat_error error = {0};
        assert_int_equal(open_texts(rows[i].sequences, rows[i].labels, &dataset, &error), CLEAT_ERR_FORMAT);
        assert_null(dataset);
        if (!strstr(error.text, rows[i].where) || !strstr(error.text, rows[i].what))
            fail_msg("row %zu: '%s'", i, error.text);
    }
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    assert_int_equal(open_texts(ONE, NULL, &dataset, &error), CLEAT_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "labels.csv"));
}

/* Every prefix of a valid file, and the file with any one byte changed, is either read or refused. */
static void survives_cuts_and_flips(void **state) {
    (void)state;
    char text[sizeof good_labels];
    for (size_t cut = 0; cut + 1 < sizeof good_labels; ++cut) {
        for (int flip = 0; flip < 3; ++flip) {
            cleat_dataset *dataset = NULL;
            cleat_error error = {0};
            memcpy(text, good_labels, sizeof text);
            if (flip == 0)
                text[cut] = 0;
            else
                text[cut] = (char)(text[cut] ^ (flip == 1 ? 0x80 : 0x02));
            cleat_status status = open_texts(good_sequences, text, &dataset, &error);
            if (!status)
                assert_non_null(dataset);
            else
                assert_true(strlen(error.text) > 20);
            cleat_dataset_destroy(dataset);
        }
    }
}

static void splits_by_hash(void **state) {
    (void)state;
    static char sequences[200000], labels[400000];
    size_t s = (size_t)sprintf(sequences, SEQ), l = (size_t)sprintf(labels, LAB);
    for (int i = 0; i < 1000; ++i)
        for (int c = 0; c < 2; ++c) {
            s += (size_t)sprintf(sequences + s, "E%d_%c,A\n", i, 'A' + c);
            l += (size_t)sprintf(labels + l, "E%d_%c_1,A,1,0,0,0\n", i, 'A' + c);
        }
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    assert_int_equal(open_texts(sequences, labels, &dataset, &error), CLEAT_OK);
    uint32_t *samples;
    size_t count;
    assert_int_equal(cleat_dataset_samples(dataset, CLEAT_SPLIT_VAL, &samples, &count, &error), CLEAT_OK);
    /* 2000 chains in 1000 entries at 0.1: 200 +- 4.5 standard deviations */
    assert_true(count > 140 && count < 260);
    for (size_t i = 0; i < count; ++i) {
        uint32_t other = samples[i] ^ 1u; /* the other chain of the entry */
        assert_int_equal(cleat_dataset_split(dataset, other), CLEAT_SPLIT_VAL);
    }
    cleat_samples_free(samples);
    assert_int_equal(cleat_dataset_samples(dataset, CLEAT_SPLIT_TEST, &samples, &count, &error), CLEAT_OK);
    assert_int_equal(count, 0);
    assert_null(samples);
    cleat_dataset_destroy(dataset);
}

static cleat_status open_fasta(const char *text, cleat_dataset **dataset, cleat_error *error) {
    const char *path = test_path("in.fasta");
    cleat_rna_options options = cleat_rna_defaults();
    options.structures = false;
    test_write_text(path, text);
    return cleat_rna_open(path, &options, dataset, error);
}

static void reads_fasta(void **state) {
    (void)state;
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    assert_int_equal(
        open_fasta("; comment\r\n>first some words\r\nACGU\r\nacgt\r\n\r\nNR\n>second\nGG", &dataset, &error),
        CLEAT_OK);
    assert_int_equal(cleat_dataset_count(dataset), 2);
    assert_string_equal(cleat_dataset_id(dataset, 0), "first");
    assert_string_equal(cleat_rna_sequence(dataset, 0), "ACGUACGUNN");
    assert_string_equal(cleat_rna_sequence(dataset, 1), "GG");
    assert_int_equal(cleat_rna_chain_length(dataset, 1), 2);
    assert_true(cleat_rna_mask(dataset, 0)[0] == 0);
    assert_int_equal(cleat_rna_partners(dataset, 0)[0], -1);
    cleat_dataset_destroy(dataset);

    static const struct {
        const char *text, *where, *what;
    } rows[] = {
        {"", ":1:", "empty"},
        {"\n\n", ":1:", "no sequence"},
        {"ACGU\n", ":1:", "before the first '>'"},
        {">\nACGU\n", ":1:", "without a name"},
        {">a\n>b\nACGU\n", ":1:", "'a' has no sequence"},
        {">b\nACGU\n>a\n", ":3:", "'a' has no sequence"},
        {">a\nAC\n>a\nAC\n", ":3:", "duplicate name 'a'"},
        {">a\nACGU\nAC-GU\n", ":3:", "column 3 is '-'"},
        {">a\nMKV\nLLE\n", ":3:", "not a nucleotide"},
        {">a\nAC GU\n", ":2:", "column 3 is ' '"},
        {">a\nACGU\n\xFF\n", ":3:", "not UTF-8"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        dataset = NULL;
        cleat_status status = open_fasta(rows[i].text, &dataset, &error);
        if (status != CLEAT_ERR_FORMAT || !strstr(error.text, rows[i].where) || !strstr(error.text, rows[i].what))
            fail_msg("row %zu: %d '%s'", i, status, error.text);
    }
}

static void refuses_other_paths(void **state) {
    (void)state;
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    test_write_text(test_path("x.fasta"), ">a\nAC\n");
    test_write_text(test_path("x.docx"), ">a\nAC\n");
    assert_int_equal(cleat_rna_open(test_path("nowhere"), NULL, &dataset, &error), CLEAT_ERR_NOT_FOUND);
    assert_int_equal(cleat_rna_open(test_folder("bare"), NULL, &dataset, &error), CLEAT_ERR_NOT_FOUND);
    assert_int_equal(cleat_rna_open(test_path("x.fasta"), NULL, &dataset, &error), CLEAT_ERR_NOT_SUPPORTED);
    assert_int_equal(cleat_rna_open(test_path("x.docx"), NULL, &dataset, &error), CLEAT_ERR_NOT_SUPPORTED);
    cleat_rna_options options = cleat_rna_defaults();
    options.max_length = 0;
    assert_int_equal(cleat_rna_open(test_path("x.fasta"), &options, &dataset, &error), CLEAT_ERR_ARGUMENT);
    options = cleat_rna_defaults();
    options.val_fraction = 0.0 / 0.0;
    assert_int_equal(cleat_rna_open(test_path("x.fasta"), &options, &dataset, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_rna_open(test_path("nowhere"), NULL, &dataset, NULL), CLEAT_ERR_NOT_FOUND);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_both_files),    cmocka_unit_test(reads_training_files),
        cmocka_unit_test(refuses_bad_tables),  cmocka_unit_test(survives_cuts_and_flips),
        cmocka_unit_test(splits_by_hash),      cmocka_unit_test(reads_fasta),
        cmocka_unit_test(refuses_other_paths), cmocka_unit_test(reads_validation_files),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}

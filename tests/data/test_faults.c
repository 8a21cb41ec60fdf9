/* Bad rows and files for every reader: one error names the first five faults and counts all, without
 * consequential ones. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "cleat/data.h"
#include "core/memory.h"
#include "data/common/faults.h"
#include "data/common/parallel.h"
#include "drawn.h"
#include "files.h"

/* Checks the error's first line, and a part of each of the following lines in order. */
static void expect(cleat_status status, const cleat_error *error, const char *first_line, const char *const *lines) {
    const char *at = error->text;
    if (status != CLEAT_ERR_FORMAT) fail_msg("status %d: %s", status, error->text);
    if (strncmp(at, first_line, strlen(first_line)) != 0) fail_msg("'%s' instead of '%s'", at, first_line);
    for (; *lines; ++lines) {
        at = strchr(at, '\n');
        if (!at) fail_msg("no line with '%s' in '%s'", *lines, error->text);
        const size_t length = strcspn(++at, "\n");
        char line[CLEAT_ERROR_TEXT];
        snprintf(line, sizeof line, "%.*s", (int)length, at);
        if (!strstr(line, *lines)) fail_msg("'%s' instead of '%s' in '%s'", line, *lines, error->text);
    }
    if (strchr(at, '\n')) fail_msg("more lines than expected: '%s'", error->text);
}

static void write_in(const char *folder, const char *name, const char *text) {
    char path[700];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    test_write_text(path, text);
}

static void rows_of_tables(void **state) {
    (void)state;
    char folder[512];
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    cleat_text_options options = cleat_text_defaults();
    snprintf(folder, sizeof folder, "%s", test_folder("texts"));
    write_in(folder, "train.csv", "text,label\ngood,up\n,up\nbad,\nbad\nfine,down\nx,y,z\n");
    write_in(folder, "val.csv", "text,label\n\" \",up\ngood,up\n\"never,closed\nbad,down\n");
    expect(cleat_text_open(folder, &options, &dataset, &error), &error, "6 faults in the data, the first five:",
           (const char *const[]){"train.csv:3: the text is empty", "train.csv:4: the label is empty",
                                 "train.csv:5: 1 fields", "train.csv:7: 3 fields", "val.csv:2: the text is empty",
                                 NULL});
    write_in(folder, "train.csv", "text,label\ngood,up\nbad,down\n");
    write_in(folder, "val.csv", "text,label\ngood,upp\nbad,dwon\nbad,upp\n");
    expect(cleat_text_open(folder, &options, &dataset, &error), &error, "2 faults in the data:",
           (const char *const[]){"val.csv:2: unknown label 'upp'", "val.csv:3: unknown label 'dwon'", NULL});
    write_in(folder, "val.csv", "text,label\ngood,up\nbad\n");
    assert_int_equal(cleat_text_open(folder, &options, &dataset, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "val.csv:3: 1 fields, but the header has 2"));
    assert_null(strchr(error.text, '\n'));
    assert_int_equal(cleat_text_open(folder, &options, &dataset, NULL), CLEAT_ERR_FORMAT);
    assert_null(dataset);
}

static void words_of_sentences(void **state) {
    (void)state;
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    cleat_text_options options = cleat_text_defaults();
    options.task = CLEAT_TEXT_TAGS;
    const char *path = test_path("t.conll");
    test_write_text(path, "a\tX-x\nb\tI-x\nc\tI-x\nd\tO\ne\tI-x\nf\tI-x\n\ng\n");
    expect(cleat_text_open(path, &options, &dataset, &error), &error, "3 faults in the data:",
           (const char *const[]){":1: the tag 'X-x'", ":5: 'I-x' continues", ":8: a word without a tag", NULL});
}

static void rows_of_series(void **state) {
    (void)state;
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    cleat_series_options options = cleat_series_defaults();
    options.lookback = 2;
    options.horizon = 1;
    const char *path = test_path("s.csv");
    test_write_text(path, "t,a,b\n2020-01-01,1,2\n2020-01-02,x,2\n2020-01-03,1,y\nyesterday,1,2\n2020-01-05,1,2\n"
                          "2020-01-06,1\n2020-01-07,1,2\n2020-01-08,1,2\n2020-01-10,,2\n2020-01-11,1,2\n");
    expect(cleat_series_open(path, &options, &dataset, &error), &error, "6 faults in the data, the first five:",
           (const char *const[]){":3: 'a' is 'x'", ":4: 'b' is 'y'", ":5: the time 'yesterday'", ":7: 2 fields",
                                 ":10: this row is 2 days after", NULL});
}

typedef struct disorder_case {
    const char *days; /* of the rows, one letter per day */
    const char *first_line;
    const char *lines[4]; /* NULL: one fault, whose text contains first_line */
} disorder_case;

/* A misplaced row is one fault, although the series also has a gap where the row is missing or where it
 * continues. */
static void rows_of_series_out_of_order(void **state) {
    (void)state;
    static const disorder_case cases[] = {
        {"abcdbefgh", ":6: the time decreases from 2020-01-04", {NULL}}, /* moved back */
        {"abdcefgh", ":5: the time decreases from 2020-01-04", {NULL}},  /* two rows swapped */
        {"abdefcgh", ":7: the time decreases from 2020-01-06", {NULL}},  /* too late */
        {"abfcdegh", ":5: the time decreases from 2020-01-06", {NULL}},  /* too early */
        {"abcdabcd", ":6: the time decreases from 2020-01-04", {NULL}},  /* the same rows twice */
        {"abccdefg", ":5: duplicate time 2020-01-03", {NULL}},           /* one row repeated */
        {"dcba", "3 faults in the data:", {":3: the time", ":4: the time", ":5: the time"}},
        {"abceghfj", "2 faults in the data:", {":5: this row is", ":8: the time decreases"}},
    };
    cleat_series_options options = cleat_series_defaults();
    options.lookback = 2;
    options.horizon = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char text[512] = "t,a\n";
        cleat_dataset *dataset = NULL;
        cleat_error error = {0};
        for (const char *day = cases[i].days; *day; ++day)
            snprintf(text + strlen(text), sizeof text - strlen(text), "2020-01-%02d,1\n", *day - 'a' + 1);
        const char *path = test_path("disorder.csv");
        test_write_text(path, text);
        const cleat_status status = cleat_series_open(path, &options, &dataset, &error);
        if (cases[i].lines[0]) {
            expect(status, &error, cases[i].first_line, cases[i].lines);
        } else {
            assert_int_equal(status, CLEAT_ERR_FORMAT);
            if (!strstr(error.text, cases[i].first_line) || strchr(error.text, '\n'))
                fail_msg("%s: '%s' instead of '%s'", cases[i].days, error.text, cases[i].first_line);
        }
    }
}

static void rows_of_chains(void **state) {
    (void)state;
    char folder[512];
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    snprintf(folder, sizeof folder, "%s", test_folder("rna"));
    write_in(folder, "labels.csv", "");
    write_in(folder, "sequences.csv", "target_id,sequence\nA,AC7U\nB,\nA,AC\n");
    expect(cleat_rna_open(folder, NULL, &dataset, &error), &error, "3 faults in the data:",
           (const char *const[]){":2: letter 3 of 'A' is '7'", ":3: the sequence of 'B' is empty",
                                 ":4: duplicate target_id 'A'", NULL});
    write_in(folder, "sequences.csv", "target_id,sequence\nA,ACGUA\n");
    write_in(folder, "labels.csv",
             "ID,resname,resid,x_1,y_1,z_1\nA_1,A,1,1,2,3\nA_2,G,2,1,2,3\nA_3,G,3,1,x,3\nA_5,A,5,1,2,3\n");
    expect(cleat_rna_open(folder, NULL, &dataset, &error), &error, "3 faults in the data:",
           (const char *const[]){":3: resname is 'G'", ":4: y_1 is 'x'", ":5: resid 5 of 'A' instead of 4", NULL});
}

/* Many threads read the files; the message names the first faulty ones in folder order. */
static void files_of_images(void **state) {
    (void)state;
    char folder[512], path[600];
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    cleat_image image = drawn_image(8, 8, 3, 1);
    cleat_image_options options = cleat_image_defaults();
    options.size = 8;
    snprintf(folder, sizeof folder, "%s", test_folder("images"));
    (void)test_folder("images/a");
    for (int i = 0; i < 60; ++i) {
        snprintf(path, sizeof path, "%s/a/%02d.png", folder, i);
        if (i % 8 == 3)
            test_write_text(path, i == 11 ? "" : "not a picture");
        else
            assert_int_equal(cleat_image_write_png(path, &image, NULL), CLEAT_OK);
    }
    for (int again = 0; again < 3; ++again)
        expect(cleat_images_open(folder, &options, &dataset, &error), &error, "8 faults in the data, the first five:",
               (const char *const[]){"a/03.png", "a/11.png", "a/19.png", "a/27.png", "a/35.png", NULL});
    (void)test_folder("images/b");
    for (int i = 19; i < 60; i += 8) {
        snprintf(path, sizeof path, "%s/a/%02d.png", folder, i);
        assert_int_equal(cleat_image_write_png(path, &image, NULL), CLEAT_OK);
    }
    expect(cleat_images_open(folder, &options, &dataset, &error), &error, "3 faults in the data:",
           (const char *const[]){"images/b: no images in this class folder", "a/03.png", "a/11.png", NULL});
    cleat_image_free(&image);
}

static void files_of_masks(void **state) {
    (void)state;
    char folder[512], path[600];
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    cleat_image image = drawn_image(8, 8, 1, 1);
    snprintf(folder, sizeof folder, "%s", test_folder("masked"));
    (void)test_folder("masked/images");
    (void)test_folder("masked/masks");
    static const char *const files[] = {"images/a.png", "images/b.png", "images/c.png", "masks/b.png", "masks/d.png"};
    for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        assert_int_equal(cleat_image_write_png(path, &image, NULL), CLEAT_OK);
    }
    expect(cleat_masks_open(folder, NULL, &dataset, &error), &error, "3 faults in the data:",
           (const char *const[]){"masks/d.png: a mask without its image", "images/a.png: an image without its mask",
                                 "images/c.png: an image without its mask", NULL});
    write_in(folder, "val.txt", "a\nz\n");
    write_in(folder, "test.txt", "a\n");
    write_in(folder, "images/b.png", "not a picture");
    expect(cleat_masks_open(folder, NULL, &dataset, &error), &error, "6 faults in the data, the first five:",
           (const char *const[]){"masks/d.png: a mask without its image", "images/a.png: an image without its mask",
                                 "images/c.png: an image without its mask", "val.txt:2: no sample is named 'z'",
                                 "test.txt:1: 'a' is also in val.txt", NULL});
    write_in(folder, "test.txt", "b\n");
    expect(cleat_masks_open(folder, NULL, &dataset, &error), &error, "5 faults in the data:",
           (const char *const[]){"masks/d.png: a mask without its image", "images/a.png: an image without its mask",
                                 "images/c.png: an image without its mask", "val.txt:2: no sample is named 'z'",
                                 "images/b.png", NULL});
    cleat_image_free(&image);
}

static void grids_of_days(void **state) {
    (void)state;
    char folder[512];
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    static const char grid[] = "ncols 2\nnrows 1\nxllcorner 0\nyllcorner 0\ncellsize 1\nNODATA_value -9\n1 2\n";
    snprintf(folder, sizeof folder, "%s", test_folder("grids"));
    write_in(folder, "heat_20200101.asc", grid);
    write_in(folder, "heat_20200103.asc", grid);
    write_in(folder, "heat_20200106.asc", grid);
    expect(cleat_maps_open(folder, NULL, &dataset, &error), &error, "2 faults in the data:",
           (const char *const[]){"heat_20200102.asc is missing", "heat_20200104.asc is missing", NULL});
    write_in(folder, "heat_20200102.asc", "ncols x\n");
    write_in(folder, "heat_20200104.asc", grid);
    write_in(folder, "heat_20200105.asc", "ncols 3\n");
    expect(cleat_maps_open(folder, NULL, &dataset, &error), &error,
           "2 faults in the data:", (const char *const[]){"heat_20200102.asc:1:", "heat_20200105.asc", NULL});
}

/* An NPY file of `count` equal values. */
static void write_array(const char *folder, const char *name, const char *shape, size_t count, float value) {
    char path[700], file[10 + 118 + 64 * sizeof value];
    memcpy(file, "\x93NUMPY\x01\0v\0", 10);
    memset(file + 10, ' ', 118);
    const int length = snprintf(file + 10, 117, "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }", shape);
    file[10 + length] = ' ';
    file[127] = '\n';
    for (size_t i = 0; i < count; ++i) memcpy(file + 128 + i * sizeof value, &value, sizeof value);
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    test_write(path, file, 128 + count * sizeof value);
}

static void files_of_stacks(void **state) {
    (void)state;
    char folder[512];
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    snprintf(folder, sizeof folder, "%s", test_folder("stacks"));
    static const char *const names[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < 4; ++i) {
        char mask[16];
        snprintf(mask, sizeof mask, "%s_mask", names[i]);
        write_array(folder, names[i], "2, 1, 3, 3", 18, 1);
        write_array(folder, mask, "3, 3", 9, i % 2 ? -2 : 1);
    }
    expect(cleat_maps_open(folder, NULL, &dataset, &error), &error,
           "2 faults in the data:", (const char *const[]){"b_mask.npy: -2 at row 0", "d_mask.npy: -2 at row 0", NULL});
    write_array(folder, "a", "2, 1, 3", 6, 1);
    write_array(folder, "e", "2, 1, 3, 3", 18, 1);
    write_array(folder, "f_mask", "3, 3", 9, 1);
    write_in(folder, "val.txt", "b\nz\n");
    write_in(folder, "c.npy", "no array");
    expect(cleat_maps_open(folder, NULL, &dataset, &error), &error, "5 faults in the data:",
           (const char *const[]){"f_mask.npy: a mask without its stack", "e.npy: a stack without its mask",
                                 "val.txt:2: no sample is named 'z'", "a.npy: an array of 3 dimensions",
                                 "c.npy: ", NULL});
}

/* --- the collection ------------------------------------------------------------------------------------------- */

static void first_ones_are_kept_in_order(void **state) {
    (void)state;
    cleat_faults faults = {0};
    cleat_error error = {0}, why;
    assert_int_equal(cleat_faults_report(&faults, &error), CLEAT_OK);
    static const size_t order[] = {7, 3, 9, 1, 8, 2, 6, 0};
    for (size_t i = 0; i < sizeof order / sizeof *order; ++i) {
        char text[1001];
        memset(text, 'x', 1000);
        text[1000] = 0;
        (void)cleat_fail(&why, CLEAT_ERR_FORMAT, "file %zu: %s", order[i], text);
        assert_int_equal(cleat_faults_keep(&faults, order[i], &why, &error), CLEAT_OK);
    }
    expect(cleat_faults_report(&faults, &error), &error, "8 faults in the data, the first five:",
           (const char *const[]){"file 0: x", "file 1: x", "file 2: x", "file 3: x", "file 6: x", NULL});
    (void)cleat_fail(&why, CLEAT_ERR_MEMORY, "no memory");
    assert_int_equal(cleat_faults_keep(&faults, 0, &why, &error), CLEAT_ERR_MEMORY);
    assert_string_equal(error.text, "no memory");
}

static cleat_status out_of_memory_at_70(void *user, size_t index, cleat_error *error) {
    (void)user;
    if (index == 70) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory");
    return index % 10 == 5 ? cleat_fail(error, CLEAT_ERR_FORMAT, "%zu", index) : CLEAT_OK;
}

/* A later stage with more faults than are shown: the error counts all and shows the first ones of both
 * stages. */
static void faults_of_later_stages_follow(void **state) {
    (void)state;
    const size_t counts[][2] = {{0, 7}, {2, 7}, {4, 1}, {6, 2}, {1, 0}};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; ++k) {
        cleat_faults *stages = cleat_alloc(2, sizeof *stages);
        cleat_error error = {0}, told = {0};
        assert_non_null(stages);
        for (int s = 0; s < 2; ++s)
            for (size_t i = 0; i < counts[k][s]; ++i) {
                (void)cleat_fail(&error, CLEAT_ERR_FORMAT, "%c%zu", "ab"[s], i);
                assert_int_equal(cleat_faults_add(&stages[s], &error, NULL), CLEAT_OK);
            }
        cleat_faults_append(&stages[0], &stages[1]);
        assert_int_equal(stages[0].count, counts[k][0] + counts[k][1]);
        assert_int_equal(cleat_faults_report(&stages[0], &told), CLEAT_ERR_FORMAT);
        for (size_t i = 0; i < stages[0].count && i < CLEAT_FAULTS_SHOWN; ++i) {
            char name[8];
            const bool later = i >= counts[k][0];
            snprintf(name, sizeof name, "%c%zu", "ab"[later], later ? i - counts[k][0] : i);
            assert_string_equal(stages[0].first[i].text, name);
            assert_non_null(strstr(told.text, name));
        }
        cleat_free(stages);
    }
}

static void other_errors_end_the_loop(void **state) {
    (void)state;
    cleat_error error = {0};
    assert_int_equal(cleat_parallel(200, out_of_memory_at_70, NULL, &error), CLEAT_ERR_MEMORY);
    assert_string_equal(error.text, "no memory");
    expect(cleat_parallel(70, out_of_memory_at_70, NULL, &error), &error,
           "7 faults in the data, the first five:", (const char *const[]){"5", "15", "25", "35", "45", NULL});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_tables),
        cmocka_unit_test(words_of_sentences),
        cmocka_unit_test(rows_of_series),
        cmocka_unit_test(rows_of_series_out_of_order),
        cmocka_unit_test(rows_of_chains),
        cmocka_unit_test(files_of_images),
        cmocka_unit_test(files_of_masks),
        cmocka_unit_test(grids_of_days),
        cmocka_unit_test(files_of_stacks),
        cmocka_unit_test(first_ones_are_kept_in_order),
        cmocka_unit_test(faults_of_later_stages_follow),
        cmocka_unit_test(other_errors_end_the_loop),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}

/* Images named by tables: the same samples as of class folders; columns, folders and endings; numbers and
 * labels; refusals. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/dataset.h"
#include "drawn.h"
#include "files.h"
#include "image_sets.h"
#include "platform/files.h"

enum { IMAGES = 6 };

static void add_image(const char *folder, const char *name, int kind) {
    char path[600];
    cleat_image drawn = drawn_image(12, 12, 3, kind);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(cleat_image_write_png(path, &drawn, NULL), CLEAT_OK);
    cleat_image_free(&drawn);
}

static const char *make_folder(const char *name) {
    return images_lasting(test_folder(name));
}

static const char *inside(const char *folder, const char *name) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return images_lasting(path);
}

static const char *subfolder(const char *folder, const char *name) {
    const char *path = inside(folder, name);
    assert_int_equal(mkdir(path, 0700), 0);
    return path;
}

/* FOLDER/STORE with a0.png ... a5.png; cats are the even ones. */
static const char *make_store(const char *name, const char *store) {
    const char *folder = make_folder(name), *images = *store ? subfolder(folder, store) : folder;
    for (int i = 0; i < IMAGES; ++i) {
        char file[16];
        snprintf(file, sizeof file, "a%d.png", i);
        add_image(images, file, i);
    }
    return folder;
}

static const char rows[] = "n,image_id,label\n1,a0,cat\n2,a1,dog\n3,a2,cat\n4,a3,dog\n5,a4,cat\n6,a5,dog\n";

static const char *write_in(const char *folder, const char *name, const char *text) {
    const char *path = inside(folder, name);
    test_write_text(path, text);
    return path;
}

static void expect_failure_in(const char *folder, const char *table, const char *words) {
    const cleat_image_options options = images_small_options();
    images_expect_failure(write_in(folder, "train.csv", table), &options, words);
}

/* Names without endings, in a folder beside the table, are found without a setting. */
static void rows_are_the_samples_of_class_folders(void **state) {
    (void)state;
    const char *folder = make_store("alike", "train_images"), *classes = make_folder("alike_classes");
    const cleat_image_options options = images_small_options();
    static float a[12 * 12 * 3], b[12 * 12 * 3];
    subfolder(classes, "cat");
    subfolder(classes, "dog");
    for (int i = 0; i < IMAGES; ++i) {
        char file[32];
        snprintf(file, sizeof file, "%s/a%d.png", i % 2 ? "dog" : "cat", i);
        add_image(classes, file, i);
    }
    write_in(folder, "train.csv", rows);
    cleat_dataset *of_table = images_open_ok(folder, &options), *of_folders = images_open_ok(classes, &options);
    assert_int_equal(cleat_dataset_count(of_table), IMAGES);
    assert_string_equal(cleat_images_class(of_table, 0), "cat");
    for (int i = 0; i < IMAGES; ++i) {
        char id[8], file[32];
        snprintf(id, sizeof id, "a%d", i);
        snprintf(file, sizeof file, "%s/a%d.png", i % 2 ? "dog" : "cat", i);
        assert_string_equal(cleat_dataset_id(of_table, (size_t)i), id);
        assert_int_equal(images_fill(of_table, (size_t)i, NULL, a),
                         images_fill(of_folders, images_sample_called(of_folders, file), NULL, b));
        assert_memory_equal(a, b, sizeof a);
    }
    cleat_dataset_destroy(of_table);
    cleat_dataset_destroy(of_folders);
}

static void columns_and_folders_are_chosen(void **state) {
    (void)state;
    const char *folder = make_store("chosen", ""), *elsewhere = make_store("chosen_elsewhere", "");
    cleat_image_options options = images_small_options();
    const char *table =
        write_in(folder, "list.tsv", "species\tother\tpicture\ncat\ta5.png\ta0.png\ndog\ta4.png\ta1.png\n");
    options.label_column = "species";
    cleat_dataset *dataset = images_open_ok(table, &options);
    assert_string_equal(cleat_dataset_id(dataset, 0), "a5.png"); /* the first of two */
    cleat_dataset_destroy(dataset);
    options.image_column = "picture";
    options.image_folder = elsewhere;
    dataset = images_open_ok(table, &options);
    assert_string_equal(cleat_dataset_id(dataset, 0), "a0.png");
    cleat_dataset_destroy(dataset);
    options.image_folder = "nowhere";
    images_expect_failure(table, &options, "data.image_folder|nowhere");
    options.image_folder = "";
    options.image_column = "pictures";
    images_expect_failure(table, &options, "data.image_column|did you mean 'picture'|species, other, picture");
    options.image_column = "species";
    images_expect_failure(table, &options, "no value of data.image_column of its first 20 rows|data.image_folder");
    options.image_column = "";
    options.label_column = "kind";
    images_expect_failure(table, &options, "data.label_column|no column 'kind'");
}

/* Classes 0 and 1 are names of files, too. */
static void classes_that_name_files_are_classes(void **state) {
    (void)state;
    const char *folder = make_folder("numbers");
    const cleat_image_options options = images_small_options();
    for (int i = 0; i < 4; ++i) {
        char file[16];
        snprintf(file, sizeof file, "%d.png", i);
        add_image(folder, file, i);
    }
    cleat_dataset *dataset = images_open_ok(write_in(folder, "train.csv", "label,id\n0,0\n1,1\n0,2\n1,3\n"), &options);
    assert_int_equal(cleat_dataset_count(dataset), 4);
    assert_string_equal(cleat_dataset_id(dataset, 3), "3");
    assert_int_equal(cleat_images_label(dataset, 3), 1);
    cleat_dataset_destroy(dataset);
}

/* Two folders with the same names: that of the split, else none is chosen. */
static void folders_with_the_same_names_are_told_apart(void **state) {
    (void)state;
    const char *folder = make_store("same", "train"), *test = subfolder(folder, "a_test");
    const cleat_image_options options = images_small_options();
    static float a[12 * 12 * 3], b[12 * 12 * 3];
    for (int i = 0; i < IMAGES; ++i) {
        char file[16];
        snprintf(file, sizeof file, "a%d.png", i);
        add_image(test, file, 50 + i);
    }
    const char *table = write_in(folder, "train.csv", rows);
    cleat_dataset *dataset = images_open_ok(table, &options);
    images_fill(dataset, 0, NULL, a);
    cleat_dataset_destroy(dataset);
    assert_int_equal(rename(inside(folder, "train"), inside(folder, "b_test")), 0);
    images_expect_failure(table, &options, "a_test|b_test|both have the images|data.image_folder");
    cleat_image_options given = options;
    given.image_folder = inside(folder, "b_test");
    dataset = images_open_ok(table, &given);
    images_fill(dataset, 0, NULL, b);
    assert_memory_equal(a, b, sizeof a);
    cleat_dataset_destroy(dataset);
}

/* HAM10000 has its images in two folders. */
static void images_may_be_in_two_folders(void **state) {
    (void)state;
    const char *folder = make_store("two", "part_1"), *second = subfolder(folder, "part_2");
    const cleat_image_options options = images_small_options();
    assert_int_equal(rename(inside(folder, "part_1/a5.png"), inside(second, "a5.png")), 0);
    const char *table = write_in(folder, "metadata.csv", rows);
    cleat_dataset *dataset = images_open_ok(table, &options);
    assert_int_equal(cleat_dataset_count(dataset), IMAGES);
    cleat_dataset_destroy(dataset);
    add_image(subfolder(folder, "part_3"), "a5.png", 9);
    images_expect_failure(table, &options, "metadata.csv:7|part_2/a5.png|part_3/a5.png|'a5'");
}

static void tables_of_splits_are_found(void **state) {
    (void)state;
    const char *folder = make_store("parts", "images");
    cleat_image_options options = images_small_options();
    options.val_fraction = 0.5;
    write_in(folder, "train.csv", "image,label\na0,cat\na1,dog\na2,cat\n");
    write_in(folder, "valid.csv", "image,label\na3,dog\n");
    write_in(folder, "test.csv", "image\na4\n");
    cleat_dataset *dataset = images_open_ok(folder, &options);
    const cleat_image_info info = cleat_image_describe(dataset);
    assert_int_equal(info.samples[CLEAT_SPLIT_TRAIN], 3);
    assert_int_equal(info.samples[CLEAT_SPLIT_VAL], 1);
    assert_int_equal(info.samples[CLEAT_SPLIT_TEST], 0);
    assert_non_null(strstr(images_warnings, "test.csv: has no column 'label' and is ignored"));
    cleat_dataset_destroy(dataset);
    write_in(folder, "validation.csv", "image,label\na5,dog\n");
    images_expect_failure(folder, &options, "valid.csv|validation.csv|two val tables");
    assert_int_equal(remove(inside(folder, "validation.csv")), 0);
    write_in(folder, "valid.csv", "image,label\na1,dog\n");
    images_expect_failure(folder, &options,
                          "valid.csv:2: images/a1.png is named a second time|line 3 of another table");
}

/* Class folders keep their meaning beside a table. */
static void class_folders_come_first(void **state) {
    (void)state;
    const char *folder = make_store("first", "cat");
    const cleat_image_options options = images_small_options();
    add_image(subfolder(folder, "dog"), "b.png", 7);
    write_in(folder, "train.csv", "image,label\ncat/a0,x\ncat/a1,y\n");
    cleat_dataset *dataset = images_open_ok(folder, &options);
    assert_int_equal(cleat_dataset_count(dataset), IMAGES + 1);
    assert_string_equal(cleat_images_class(dataset, 1), "dog");
    cleat_dataset_destroy(dataset);
    dataset = images_open_ok(inside(folder, "train.csv"), &options);
    assert_string_equal(cleat_images_class(dataset, 1), "y");
    cleat_dataset_destroy(dataset);
}

static void bad_rows_are_refused(void **state) {
    (void)state;
    const char *folder = make_store("bad", "");
    expect_failure_in(folder, "image,label\na0,cat\nnone,dog\na1,dog\ngone,cat\n",
                      "2 faults|train.csv:3: no image 'none' in|train.csv:5: no image 'gone'");
    expect_failure_in(folder, "image,label\na0,cat\na1,dog\na0.png,cat\n",
                      "train.csv:4: a0.png is named a second time, first in line 2;");
    expect_failure_in(folder, "image,label\na0,cat\na1,\na2,dog\n", "train.csv:3: the class is empty");
    expect_failure_in(folder, "image,label\na0,cat\na1,Cat\n", "train.csv:3|two spellings");
    expect_failure_in(folder, "image,label\na0,cat\na1\na2,dog\n", "train.csv:3: 1 fields, but the header has 2");
    expect_failure_in(folder, "image,label\n", "train.csv: a header without rows");
    cleat_image_options held = images_small_options();
    held.val_fraction = 0.4;
    write_in(folder, "train.csv", "image,label\na0,1.5\na1,2.5\na2,3.5\na3,4.5\n");
    images_expect_failure(folder, &held, ".png: the class '|has no images in the training split");
    expect_failure_in(folder, "image,label\nx,cat\ny,dog\n", "no column of its first 20 rows names files");
    expect_failure_in(folder, "image,label\na0,cat\na1,cat\n", "1 classes in the training split");
    write_in(folder, "a5.png", "broken");
    expect_failure_in(folder, "image,label\na0,cat\na1,dog\na5,dog\n", "a5.png: not an image");
}

static void predictions_need_no_classes(void **state) {
    (void)state;
    const char *folder = make_store("predicted", "images"), *fitted = make_folder("predicted_fitted");
    cleat_image_options options = images_small_options();
    static float image[12 * 12 * 3];
    cleat_dataset *dataset = images_open_ok(write_in(folder, "train.csv", rows), &options);
    assert_int_equal(cleat_dataset_save(dataset, fitted, NULL), CLEAT_OK);
    cleat_dataset_destroy(dataset);
    options.fitted = fitted;
    options.predict = true;
    dataset = images_open_ok(write_in(folder, "test.csv", "id\na3\ngone\na1\n"), &options);
    assert_int_equal(cleat_dataset_count(dataset), 3);
    assert_string_equal(cleat_dataset_id(dataset, 1), "gone");
    assert_int_equal(images_fill(dataset, 0, NULL, image), CLEAT_NO_CLASS);
    assert_non_null(strstr(images_warnings, "test.csv:3: no image 'gone'"));
    cleat_dataset_destroy(dataset);
    /* a folder is predicted as a whole, whatever its tables say */
    dataset = images_open_ok(folder, &options);
    assert_int_equal(cleat_dataset_count(dataset), IMAGES);
    cleat_dataset_destroy(dataset);
}

/* Numbers in two columns, one of them before the names and also a name of a file. */
static void numbers_are_targets(void **state) {
    (void)state;
    const char *folder = make_store("targets", "images"), *fitted = make_folder("targets_fitted");
    cleat_image_options options = images_small_options();
    static float image[12 * 12 * 3];
    float target[2];
    options.targets = (cleat_target_options){.problem = CLEAT_REGRESSION, .standardise = true};
    options.label_column = "age \"size of it\"";
    add_image(inside(folder, "images"), "3.png", 9);
    const char *table = write_in(folder, "train.csv", "age,name,size of it\n3,a0,10\n5,a1,\n7,a2,30\n");
    cleat_dataset *dataset = images_open_ok(table, &options);
    assert_string_equal(cleat_dataset_id(dataset, 0), "a0");
    assert_int_equal(cleat_image_describe(dataset).classes, 2);
    assert_string_equal(cleat_images_class(dataset, 1), "size of it");
    assert_null(cleat_images_class(dataset, 2));
    assert_int_equal(cleat_images_class_samples(dataset, 0), 3);
    assert_int_equal(cleat_images_class_samples(dataset, 1), 2);
    assert_int_equal(cleat_images_class_samples(dataset, 2), 0);
    assert_int_equal(cleat_images_label(dataset, 0), CLEAT_NO_CLASS);
    assert_int_equal(cleat_dataset_items(dataset, 1), 1);
    assert_int_equal(cleat_dataset_fill(dataset, 2, 12, NULL, (void *[]){image, target}, NULL), CLEAT_OK);
    assert_float_equal(target[0], 2 / sqrt(8.0 / 3), 1e-6);
    assert_float_equal(target[1], 1, 1e-6);
    assert_int_equal(cleat_dataset_save(dataset, fitted, NULL), CLEAT_OK);
    cleat_dataset_destroy(dataset);
    options.fitted = fitted;
    dataset = images_open_ok(write_in(folder, "new.csv", "size of it,name,age\n50,a3,\n"), &options);
    assert_int_equal(cleat_dataset_fill(dataset, 0, 12, NULL, (void *[]){image, target}, NULL), CLEAT_OK);
    assert_float_equal(target[0], 0, 0); /* unknown */
    assert_float_equal(target[1], 3, 1e-6);
    cleat_dataset_destroy(dataset);
    options.predict = true;
    dataset = images_open_ok(write_in(folder, "test.csv", "age,name\n3,a4\n"), &options);
    assert_non_null(dataset->targets);
    cleat_dataset_destroy(dataset);
    dataset = images_open_ok(inside(folder, "images"), &options);
    assert_int_equal(cleat_dataset_count(dataset), IMAGES + 1);
    cleat_dataset_destroy(dataset);
    assert_int_equal(remove(inside(fitted, "targets.json")), 0);
    images_expect_failure(table, &options, "targets.json");
}

static void tables_without_targets_are_refused(void **state) {
    (void)state;
    const char *folder = make_store("no_targets", "");
    cleat_image_options options = images_small_options();
    options.targets.problem = CLEAT_MULTI_LABEL;
    options.label_column = "sad angry";
    const char *table = write_in(folder, "train.csv", "id,sad,angry\na0,1,0\na1,,\na2,0,maybe\nnone,1,1\n");
    images_expect_failure(table, &options,
                          "3 faults|train.csv:3: no target|train.csv:4: angry is 'maybe', not 0 or 1|:5: no image");
    write_in(folder, "train.csv", "id,sad,angry\na0,1,0\na1,0,1\n");
    write_in(folder, "test.csv", "id\na2\n");
    cleat_dataset_destroy(images_open_ok(folder, &options));
    assert_non_null(strstr(images_warnings, "test.csv: has no column 'sad angry' and is ignored"));
    write_in(folder, "test.csv", "id,sad,angry\na2,1,1\n");
    cleat_dataset *dataset = images_open_ok(folder, &options);
    assert_int_equal(cleat_image_describe(dataset).samples[CLEAT_SPLIT_TEST], 1);
    cleat_dataset_destroy(dataset);
    options.label_column = "happy";
    images_expect_failure(table, &options, "data.label_column|no column 'happy'");
    options.label_column = "id";
    images_expect_failure(table, &options, "no column of its first 20 rows names files");
    const char *classes = make_store("no_table", "cat");
    add_image(subfolder(classes, "dog"), "b.png", 7);
    images_expect_failure(classes, &options, "no_table|model.problem_type = multi_label needs a table");
}

/* The pixels of a mixed sample tell its weight, with which its targets are mixed. */
static void targets_are_mixed(void **state) {
    (void)state;
    const char *folder = make_store("mixed", "");
    cleat_image_options options = images_small_options();
    static float plain[2][12 * 12 * 3], image[12 * 12 * 3];
    const char *table = write_in(folder, "train.csv", "id,x,y\na0,1,10\na1,3,50\n");
    int mixed = 0;
    options.targets = (cleat_target_options){.problem = CLEAT_REGRESSION};
    options.label_column = "x y";
    options.augment.mixup = 1;
    options.mean = "0.5";
    options.std = "0.25";
    cleat_dataset *dataset = images_open_ok(table, &options);
    for (size_t i = 0; i < 2; ++i)
        assert_int_equal(cleat_dataset_fill(dataset, i, 12, NULL, (void *[]){plain[i], NULL}, NULL), CLEAT_OK);
    size_t at = 0; /* where the images differ most */
    for (size_t i = 0; i < 12 * 12 * 3; ++i)
        if (fabsf(plain[0][i] - plain[1][i]) > fabsf(plain[0][at] - plain[1][at])) at = i;
    for (uint32_t epoch = 0; epoch < 20; ++epoch) {
        const cleat_rng_key key = {.seed = 5, .epoch = epoch};
        float target[2];
        assert_int_equal(cleat_dataset_fill(dataset, 0, 12, &key, (void *[]){image, target}, NULL), CLEAT_OK);
        const double other = (double)((image[at] - plain[0][at]) / (plain[1][at] - plain[0][at]));
        mixed += other > 0.01;
        assert_float_equal(target[0], 1 + 2 * other, 1e-4);
        assert_float_equal(target[1], 10 + 40 * other, 2e-3);
    }
    assert_in_range(mixed, 4, 16);
    cleat_dataset_destroy(dataset);
    /* an image with an unknown target is not mixed into others */
    dataset = images_open_ok(write_in(folder, "train.csv", "id,x,y\na0,1,10\na1,3,\na2,,60\n"), &options);
    for (uint32_t epoch = 0; epoch < 20; ++epoch) {
        const cleat_rng_key key = {.seed = 5, .epoch = epoch};
        float target[2];
        assert_int_equal(cleat_dataset_fill(dataset, 0, 12, &key, (void *[]){image, target}, NULL), CLEAT_OK);
        assert_float_equal(image[at], plain[0][at], 1e-6);
        assert_float_equal(target[0], 1, 1e-6);
        assert_float_equal(target[1], 10, 1e-6);
    }
    cleat_dataset_destroy(dataset);
}

static void memory_that_runs_out_is_an_error(void **state) {
    (void)state;
    cleat_image_options options = images_small_options();
    const char *folder = make_store("memory", "images");
    options.channels = 3;
    images_expect_memory_errors(write_in(folder, "train.csv", "image,label\na0,cat\na1,dog\n"), &options);
    options.targets.problem = CLEAT_MULTI_LABEL;
    options.augment.mixup = 1;
    images_expect_memory_errors(write_in(folder, "train.csv", "image,label\na0,cat|dog\na1,dog\n"), &options);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_the_samples_of_class_folders),
        cmocka_unit_test(columns_and_folders_are_chosen),
        cmocka_unit_test(classes_that_name_files_are_classes),
        cmocka_unit_test(folders_with_the_same_names_are_told_apart),
        cmocka_unit_test(images_may_be_in_two_folders),
        cmocka_unit_test(tables_of_splits_are_found),
        cmocka_unit_test(class_folders_come_first),
        cmocka_unit_test(bad_rows_are_refused),
        cmocka_unit_test(predictions_need_no_classes),
        cmocka_unit_test(numbers_are_targets),
        cmocka_unit_test(tables_without_targets_are_refused),
        cmocka_unit_test(targets_are_mixed),
        cmocka_unit_test(memory_that_runs_out_is_an_error),
    };
    return cmocka_run_group_tests(tests, images_set_up, test_remove_all);
}

/* Prediction files: their bytes, refusals, and no partial files. */
/* ctest: quick */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/models.h"
#include "cleat/profile.h"
#include "core/memory.h"
#include "data/dataset.h"
#include "models/classes.h"
#include "models/text_write.h"
#include "platform/files.h"

static char folder[] = "/tmp/cleat-write-XXXXXX", path[64];

static int make_folder(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/out", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    remove(path);
    return rmdir(folder);
}

static void assert_written(const char *wanted) {
    char data[1024] = {0};
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(data, 1, sizeof data - 1, file);
    fclose(file);
    assert_int_equal(size, strlen(wanted));
    assert_string_equal(data, wanted);
}

static const char *const classes[] = {"negative", "so, so", "\"good\""};
static const float first[] = {0.25f, 0.5f, 0.25f}, second[] = {1, 0, 0};

static void writes_classes(void **state) {
    (void)state;
    const cleat_text_prediction rows[] = {{"a,1", 1, first}, {"two\nlines", 0, second}};
    cleat_error error = {0};
    assert_int_equal(cleat_text_write_classes(path, classes, 3, rows, 2, &error), CLEAT_OK);
    assert_written("id,label,probability,negative,\"so, so\",\"\"\"good\"\"\"\n"
                   "\"a,1\",\"so, so\",0.500000,0.250000,0.500000,0.250000\n"
                   "\"two\nlines\",negative,1.000000,1.000000,0.000000,0.000000\n");
    assert_int_equal(cleat_text_write_classes(path, classes, 1, NULL, 0, &error), CLEAT_OK);
    assert_written("id,label,probability,negative\n");
}

static const char *sample_id(const cleat_dataset *dataset, size_t sample) {
    (void)dataset;
    return sample ? "second" : "first";
}

static const char *class_name(const cleat_dataset *dataset, size_t index) {
    (void)dataset;
    return classes[index];
}

/* Non-finite logits affect their own row only. */
static void writes_classes_of_bad_logits(void **state) {
    (void)state;
    static const cleat_dataset_class type = {.name = "two", .id = sample_id};
    static const cleat_class_source source = {.name = class_name};
    static const float lost[] = {1, NAN}, endless[] = {1, INFINITY}, good[] = {3, 3};
    const cleat_dataset dataset = {.type = &type, .count = 2};
    const cleat_prediction predictions[] = {{.dataset = &dataset, .sample = 0, .output = lost},
                                            {.dataset = &dataset, .sample = 1, .output = endless},
                                            {.dataset = &dataset, .sample = 1, .output = good}};
    cleat_error error = {0};
    snprintf(path, sizeof path, "%s/predictions.csv", folder);
    assert_int_equal(cleat_classes_write(&source, 2, predictions, 3, folder, &error), CLEAT_OK);
    assert_written("id,label,probability,negative,\"so, so\"\n"
                   "first,negative,nan,nan,nan\n"
                   "second,\"so, so\",nan,nan,nan\n"
                   "second,negative,0.500000,0.500000,0.500000\n");
    char deep[5000];
    memset(deep, 'x', sizeof deep);
    deep[sizeof deep - 1] = 0;
    assert_int_equal(cleat_classes_write(&source, 2, predictions, 3, deep, &error), CLEAT_ERR_ARGUMENT);
    remove(path);
    snprintf(path, sizeof path, "%s/out", folder);
}

static void writes_tags(void **state) {
    (void)state;
    static const char *const names[] = {"O", "B-person", "I-person"};
    static const char *const words[] = {"Ann", "says", "\"hi,\""};
    static const int32_t tags[] = {1, 0, 0}, other[] = {2};
    const cleat_tagged_sentence sentences[] = {{words, tags, 3}, {words, other, 1}};
    cleat_error error = {0};
    assert_int_equal(cleat_text_write_tags(path, names, 3, sentences, 2, &error), CLEAT_OK);
    assert_written("Ann\tB-person\nsays\tO\n\"hi,\"\tO\n\nAnn\tI-person\n\n");
}

static void writes_found_tokens(void **state) {
    (void)state;
    const cleat_found_tokens found[] = {
        {.id = "a,1",
         .mask = 1,
         .tokens = {" the", "\"", ",", "##x", "y"},
         .probabilities = {0.5f, 0.25f, 0.125f, 0.0625f, 0}},
        {.id = "a,1", .mask = 2, .tokens = {"only"}, .probabilities = {NAN}},
    };
    const cleat_found_tokens next = {.id = "7", .prompt = "so, what", .tokens = {" is"}, .probabilities = {0.5f}};
    cleat_error error = {0};
    assert_int_equal(cleat_text_write_found(path, found, 2, &error), CLEAT_OK);
    assert_written("id,mask,token_1,probability_1,token_2,probability_2,token_3,probability_3,token_4,probability_4,"
                   "token_5,probability_5\n"
                   "\"a,1\",1, the,0.500000,\"\"\"\",0.250000,\",\",0.125000,##x,0.062500,y,0.000000\n"
                   "\"a,1\",2,only,nan,,,,,,,,\n");
    assert_int_equal(cleat_text_write_found(path, &next, 1, &error), CLEAT_OK);
    assert_written("id,prompt,token_1,probability_1,token_2,probability_2,token_3,probability_3,token_4,probability_4,"
                   "token_5,probability_5\n"
                   "7,\"so, what\", is,0.500000,,,,,,,,\n");
}

static void refuses_what_is_wrong(void **state) {
    (void)state;
    static const float negative[] = {-0.5f, 0, 0}, too_large[] = {2, 0, 0};
    static const char *const tab[] = {"a\tb"}, *const nothing[] = {""};
    static const int32_t zero[] = {0}, seven[] = {7};
    const cleat_text_prediction bad[] = {{"a", 3, first}, {"a", -1, first}, {"a", 0, negative}, {"a", 0, too_large}};
    const cleat_tagged_sentence wrong[] = {{tab, zero, 1}, {nothing, zero, 1}, {classes, seven, 1}};
    cleat_error error = {0};
    remove(path);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i)
        assert_int_equal(cleat_text_write_classes(path, classes, 3, &bad[i], 1, &error), CLEAT_ERR_ARGUMENT);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i)
        assert_int_equal(cleat_text_write_tags(path, classes, 3, &wrong[i], 1, &error), CLEAT_ERR_ARGUMENT);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(cleat_text_write_classes("/nowhere/out", classes, 3, NULL, 0, &error), CLEAT_ERR_NOT_FOUND);
}

/* --- chains --------------------------------------------------------------------------------------------------- */

static const char *in_folder(const char *name) {
    static char joined[128];
    snprintf(joined, sizeof joined, "%s/%s", folder, name);
    return joined;
}

static bool has(const char *name, const char *wanted) {
    char data[1024] = {0};
    FILE *file = fopen(in_folder(name), "rb");
    if (!file) return false;
    size_t size = fread(data, 1, sizeof data - 1, file);
    fclose(file);
    remove(in_folder(name));
    return size > 0 && strstr(data, wanted);
}

static char warning[1024];

static void keep_warning(void *user, cleat_log_level level, const char *text) {
    (void)user;
    if (level == CLEAT_LOG_WARNING) snprintf(warning, sizeof warning, "%s", text);
}

/* One chain's coordinates are too large for a PDB file, and the names of three coincide there. */
static void writes_all_chains(void **state) {
    (void)state;
    static const float far_away[] = {-2000, 0, 0}, near[] = {1, 2, 3};
    cleat_profile *profile = NULL;
    cleat_model *model = NULL;
    cleat_dataset *dataset = NULL;
    cleat_rna_options options = cleat_rna_defaults();
    cleat_prediction predictions[4];
    cleat_error error = {0};
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(">far\nA\n>a/b\nC\n>a:b\nG\n>a_b-2\nU\n", file);
    fclose(file);
    snprintf(path, sizeof path, "%s/chains.fasta", folder);
    assert_int_equal(rename(in_folder("out"), path), 0);
    options.structures = false;
    assert_int_equal(cleat_profile_create(&profile, &error), CLEAT_OK);
    assert_int_equal(cleat_profile_create_model(profile, &model, &error), CLEAT_OK);
    if (cleat_rna_open(path, &options, &dataset, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_int_equal(cleat_dataset_count(dataset), 4);
    for (size_t i = 0; i < 4; ++i)
        predictions[i] =
            (cleat_prediction){.dataset = dataset, .sample = i, .output = i ? near : far_away, .length = 1};
    cleat_set_log(keep_warning, NULL, CLEAT_LOG_WARNING);
    if (cleat_model_write(model, predictions, 4, folder, &error) != CLEAT_OK) fail_msg("%s", error.text);
    cleat_set_log(NULL, NULL, CLEAT_LOG_ERROR);
    assert_non_null(strstr(warning, "1 of 4 chains are only in predictions.csv; the first: far: "));
    assert_true(has("predictions.csv", "far_1,A,1,-2000.000,0.000,0.000\na/b_1,C,1,1.000,2.000,3.000\n"));
    assert_int_not_equal(access(in_folder("far.pdb"), F_OK), 0);
    assert_true(has("a_b.pdb", "IS a/b\n"));
    assert_true(has("a_b-2.pdb", "IS a:b\n"));
    assert_true(has("a_b-2-2.pdb", "IS a_b-2\n"));
    cleat_dataset_destroy(dataset);
    cleat_model_destroy(model);
    cleat_profile_destroy(profile);
    remove(path);
    snprintf(path, sizeof path, "%s/out", folder);
}

static void survives_failing_memory(void **state) {
    (void)state;
    const cleat_text_prediction row = {"a", 1, first};
    cleat_status status = CLEAT_ERR_MEMORY;
    for (long n = 1; n < 20 && status; ++n) {
        cleat_fail_allocation(n);
        status = cleat_text_write_classes(path, classes, 3, &row, 1, NULL);
        cleat_fail_allocation(0);
        assert_true(!status || status == CLEAT_ERR_MEMORY);
        assert_int_equal(access(path, F_OK) == 0, !status);
    }
    assert_int_equal(status, CLEAT_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_classes),          cmocka_unit_test(writes_classes_of_bad_logits),
        cmocka_unit_test(writes_found_tokens),     cmocka_unit_test(writes_tags),
        cmocka_unit_test(refuses_what_is_wrong),   cmocka_unit_test(writes_all_chains),
        cmocka_unit_test(survives_failing_memory),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

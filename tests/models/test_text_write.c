/* Predictions for texts and words as files: the bytes, what is refused, and that nothing is left half written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/memory.h"
#include "models/text_write.h"

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

static void refuses_what_is_wrong(void **state) {
    (void)state;
    static const float no_number[] = {0.0f / 0.0f, 0, 0}, too_large[] = {2, 0, 0};
    static const char *const tab[] = {"a\tb"}, *const nothing[] = {""};
    static const int32_t zero[] = {0}, seven[] = {7};
    const cleat_text_prediction bad[] = {{"a", 3, first}, {"a", -1, first}, {"a", 0, no_number}, {"a", 0, too_large}};
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

static void survives_failing_memory(void **state) {
    (void)state;
    const cleat_text_prediction row = {"a", 1, first};
    cleat_status status = CLEAT_ERR_MEMORY;
    for (long n = 1; n < 20 && status != CLEAT_OK; ++n) {
        cleat_fail_allocation(n);
        status = cleat_text_write_classes(path, classes, 3, &row, 1, NULL);
        cleat_fail_allocation(0);
        assert_true(status == CLEAT_OK || status == CLEAT_ERR_MEMORY);
        assert_int_equal(access(path, F_OK) == 0, status == CLEAT_OK);
    }
    assert_int_equal(status, CLEAT_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_classes),
        cmocka_unit_test(writes_tags),
        cmocka_unit_test(refuses_what_is_wrong),
        cmocka_unit_test(survives_failing_memory),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

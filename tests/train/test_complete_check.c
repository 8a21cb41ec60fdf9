/* Samples without a complete prediction: one error counts and names them by kind. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "cleat/core.h"
#include "core/memory.h"
#include "train/complete_check.h"

enum { COUNT = 9 };

typedef struct states {
    cleat_dataset base;
    const char *of; /* one letter per sample: '.' whole, 'c' cut, 'u' unreadable */
} states;

static const char *id_of(const cleat_dataset *dataset, size_t sample) {
    static const char *const ids[COUNT] = {"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"};
    (void)dataset;
    return ids[sample];
}

static cleat_sample_state state_of(const cleat_dataset *dataset, size_t sample) {
    const char state = ((const states *)dataset)->of[sample];
    return state == 'c' ? CLEAT_SAMPLE_CUT : state == 'u' ? CLEAT_SAMPLE_UNREADABLE : CLEAT_SAMPLE_WHOLE;
}

static const cleat_dataset_class states_class = {.name = "states", .id = id_of, .state = state_of};

static cleat_status check(const char *of, cleat_error *error) {
    const states dataset = {.base = {.type = &states_class, .count = strlen(of)}, .of = of};
    unsigned char known[COUNT];
    *error = (cleat_error){0};
    for (size_t i = 0; i < dataset.base.count; ++i)
        known[i] = (unsigned char)cleat_dataset_sample_state(&dataset.base, i);
    return cleat_check_complete(&dataset.base, known, 32, "out", error);
}

static void expect(const char *of, cleat_status status, const char *text) {
    cleat_error error;
    if (check(of, &error) != status) fail_msg("%s: status %d: %s", of, error.status, error.text);
    if (strcmp(error.text, text) != 0) fail_msg("%s: '%s' instead of '%s'", of, error.text, text);
}

static void whole_predictions_are_no_error(void **state) {
    (void)state;
    expect("........", CLEAT_OK, "");
}

static void each_kind_is_named(void **state) {
    (void)state;
    expect("..u.u...", CLEAT_ERR_FORMAT,
           "predictions in out: 2 of 8 files cannot be read and have no prediction: s2, s4");
    expect(".cccccc", CLEAT_ERR_ARGUMENT,
           "predictions in out: 6 of 7 samples are longer than data.max_length = 32, and their ends are not predicted: "
           "s1, s2, s3, s4, s5, ...; a larger data.max_length predicts them whole");
}

static void both_kinds_are_named(void **state) {
    (void)state;
    expect("cu..u", CLEAT_ERR_FORMAT,
           "predictions in out: 2 of 5 files cannot be read and have no prediction: s1, s4; 1 of 5 samples are longer "
           "than "
           "data.max_length = 32, and their ends are not predicted: s0; a larger data.max_length predicts them whole");
}

static void memory_may_run_out(void **state) {
    (void)state;
    cleat_error error;
    size_t failed = 0;
    for (size_t n = 1; n < 64; ++n) {
        cleat_fail_allocation((long)n);
        const cleat_status status = check("cu.uuuuuu", &error);
        cleat_fail_allocation(0);
        assert_true(status == CLEAT_ERR_MEMORY || status == CLEAT_ERR_FORMAT);
        failed += status == CLEAT_ERR_MEMORY;
    }
    assert_in_range(failed, 2, 32);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_predictions_are_no_error),
        cmocka_unit_test(each_kind_is_named),
        cmocka_unit_test(both_kinds_are_named),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

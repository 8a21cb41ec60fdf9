/* The fingerprint of a dataset: equal for equal data, different if names, lengths, values or file bytes
 * differ. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/files.h"
#include "core/memory.h"
#include "data/fingerprint.h"
#include "fake.h"
#include "platform/files.h"

enum { SAMPLES = 30000 }; /* more than one fold of the hash */

static int64_t lengths[SAMPLES];

static cleat_data_fingerprint take(size_t count, const char *path) {
    fake_dataset fake = fake_make(lengths, count);
    cleat_data_fingerprint made;
    cleat_error error = {0};
    if (cleat_data_fingerprint_take(&fake.base, path, &made, &error)) fail_msg("%s", error.text);
    return made;
}

static void expect(const char *wanted, const cleat_data_fingerprint *then, const cleat_data_fingerprint *now,
                   bool only_names) {
    char text[256] = "?";
    assert_int_equal(cleat_data_fingerprint_differs(then, now, only_names, text, sizeof text), *wanted != 0);
    if (*wanted ? !strstr(text, wanted) : *text != 0) fail_msg("'%s' instead of '%s'", text, wanted);
}

static int make_lengths(void **state) {
    (void)state;
    for (int64_t i = 0; i < SAMPLES; ++i) lengths[i] = 1 + i % 7;
    return 0;
}

static void equal_data_are_equal(void **state) {
    (void)state;
    const cleat_data_fingerprint a = take(SAMPLES, "/none"), b = take(SAMPLES, "/none"), unknown = {.names = ""};
    assert_string_equal(a.names, b.names);
    assert_string_equal(a.content, b.content);
    assert_int_equal(strlen(a.names), 32);
    assert_int_equal(strlen(a.content), 32);
    assert_string_equal(a.file, "");
    expect("", &a, &b, false);
    expect("", &unknown, &b, false);
}

static void one_sample_fewer(void **state) {
    (void)state;
    const cleat_data_fingerprint a = take(24, "/none"), b = take(23, "/none");
    expect("19 samples of split 'train' then, 18 now", &a, &b, false);
}

/* The length of every sample counts, including the last; truncation to another maximum does not. */
static void other_lengths(void **state) {
    (void)state;
    const cleat_data_fingerprint a = take(SAMPLES, "/none");
    ++lengths[SAMPLES - 1];
    const cleat_data_fingerprint b = take(SAMPLES, "/none");
    --lengths[SAMPLES - 1];
    expect("other lengths", &a, &b, false);
    expect("", &a, &b, true);
}

static const char *renamed_id(const cleat_dataset *dataset, size_t sample) {
    (void)dataset;
    return sample == 3 ? "other" : sample ? "some" : "first"; /* as in fake.c, except for one */
}

static void other_names(void **state) {
    (void)state;
    fake_dataset fake = fake_make(lengths, 9);
    cleat_dataset_class renamed = *fake.base.type;
    cleat_data_fingerprint b;
    const cleat_data_fingerprint a = take(9, "/none");
    renamed.id = renamed_id;
    fake.base.type = &renamed;
    assert_int_equal(cleat_data_fingerprint_take(&fake.base, "/none", &b, NULL), CLEAT_OK);
    expect("other names", &a, &b, true);
}

/* Changes the first value of sample 3 in the first field. */
static cleat_status other_fill(const cleat_dataset *dataset, size_t sample, int64_t length,
                               const cleat_rng_key *rng_key, void *const *slots, cleat_error *error) {
    fake_dataset fake = fake_make(lengths, dataset->count);
    const cleat_status status = fake.base.type->fill(&fake.base, sample, length, rng_key, slots, error);
    if (sample == 3) ++*(int32_t *)slots[0];
    return status;
}

static void other_values(void **state) {
    (void)state;
    fake_dataset fake = fake_make(lengths, 9);
    cleat_dataset_class changed = *fake.base.type;
    cleat_data_fingerprint b;
    const cleat_data_fingerprint a = take(9, "/none");
    changed.fill = other_fill;
    fake.base.type = &changed;
    assert_int_equal(cleat_data_fingerprint_take(&fake.base, "/none", &b, NULL), CLEAT_OK);
    assert_string_equal(a.names, b.names);
    assert_string_not_equal(a.content, b.content);
}

static void other_bytes_of_the_file(void **state) {
    (void)state;
    char path[64] = "/tmp/cleat-fingerprint-XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    assert_int_equal(cleat_file_write(path, "a", 1, NULL), CLEAT_OK);
    const cleat_data_fingerprint a = take(9, path);
    assert_int_equal(cleat_file_write(path, "b", 1, NULL), CLEAT_OK);
    const cleat_data_fingerprint b = take(9, path);
    unlink(path);
    expect("other bytes", &a, &b, false);
}

static void failing_allocations_are_reported(void **state) {
    (void)state;
    fake_dataset fake = fake_make(lengths, 200);
    const cleat_data_fingerprint whole = take(200, "/none");
    cleat_data_fingerprint made;
    int64_t failures = 0;
    for (;; ++failures) {
        cleat_fail_allocation((long)failures + 1);
        const cleat_status status = cleat_data_fingerprint_take(&fake.base, "/none", &made, NULL);
        cleat_fail_allocation(0);
        if (!status) break;
        assert_int_equal(status, CLEAT_ERR_MEMORY);
    }
    assert_true(failures > 2);
    assert_string_equal(made.content, whole.content); /* but not data that lack a sample */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_data_are_equal),
        cmocka_unit_test(one_sample_fewer),
        cmocka_unit_test(other_lengths),
        cmocka_unit_test(other_names),
        cmocka_unit_test(other_values),
        cmocka_unit_test(other_bytes_of_the_file),
        cmocka_unit_test(failing_allocations_are_reported),
    };
    return cmocka_run_group_tests(tests, make_lengths, NULL);
}

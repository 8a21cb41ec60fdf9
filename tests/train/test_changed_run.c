/* A run whose folder was removed meanwhile, and a run resumed with different micro-batches. */
/* ctest: device */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/files.h"
#include "tiny.h"

/* The last warning about different bits. */
typedef struct warning {
    int count;
    char text[512];
} warning;

static void keep_warning(void *user, cleat_log_level level, const char *text) {
    warning *found = user;
    if (level != CLEAT_LOG_WARNING || !strstr(text, "bit-identical")) return;
    ++found->count;
    snprintf(found->text, sizeof found->text, "%s", text);
}

static void remove_folder(void *folder) {
    char command[TINY_PATH + 16];
    snprintf(command, sizeof command, "rm -r '%s'", (const char *)folder);
    assert_int_equal(system(command), 0);
}

/* A checkpoint would lack the other files of the run. */
static void removed_folder_does_not_come_back(void **state) {
    const tiny *t = *state;
    char out[TINY_PATH];
    cleat_train_report report;
    cleat_error error = {0};
    cleat_profile *profile = tiny_profile(t, NULL);
    const cleat_train_options options = {.out = tiny_path(t, "removed", out), .user = out, .began = remove_folder};
    assert_int_equal(cleat_train(profile, &options, &report, &error), CLEAT_ERR_IO);
    assert_non_null(strstr(error.text, "the folder of the run was removed"));
    assert_false(cleat_folder_exists(out));
    cleat_profile_destroy(profile);
}

/* train.batch_size is not a setting that changes results, but the division of a global batch changes their
 * last bits: a resume with a different one logs a warning. */
static void other_batch_size_is_a_warning(void **state) {
    const tiny *t = *state;
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "recut", SET("train.batch_size=2"), false, 1);
    warning found = {.count = 0};
    cleat_set_log(keep_warning, &found, CLEAT_LOG_WARNING);
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "recut", SET("train.batch_size=2"), true, 1);
    assert_int_equal(found.count, 0);
    tiny_train_to(CLEAT_OK, t, "recut", SET("train.batch_size=4"), true, 0);
    assert_non_null(strstr(found.text, "but 2 earlier"));
    cleat_set_log(NULL, NULL, CLEAT_LOG_ERROR);
}

/* --resume with the run's parent folder would begin another run. */
static void a_folder_of_runs_is_not_resumed(void **state) {
    const tiny *t = *state;
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "above/below", NULL, false, 1);
    tiny_result result = tiny_train_to(CLEAT_ERR_ARGUMENT, t, "above", NULL, true, 1);
    assert_non_null(strstr(result.error.text, "above contains no checkpoint (ckpt-*); give one of its runs: below"));
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "above/below", NULL, true, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(removed_folder_does_not_come_back),
        cmocka_unit_test(other_batch_size_is_a_warning),
        cmocka_unit_test(a_folder_of_runs_is_not_resumed),
    };
    tiny_require_device();
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}

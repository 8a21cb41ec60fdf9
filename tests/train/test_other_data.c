/* A run is not resumed on other data unless a setting allows it; the message names the difference. */
/* ctest: device */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "checkpoint/state.h"
#include "cleat/data.h"
#include "core/files.h"
#include "core/memory.h"
#include "tiny.h"

/* Lengths that do not depend on the data. */
#define FIXED "data.max_length=32", "data.buckets=32"

static void assert_contains(const char *text, const char *const *words) {
    for (; *words; ++words)
        if (!strstr(text, *words)) fail_msg("'%s' does not contain '%s'", text, *words);
}

/* Creates other molecules than the fixture's; *setting selects them. */
static const char *make_data(const tiny *t, const char *name, int64_t count, uint64_t seed, char setting[TINY_PATH]) {
    char path[TINY_PATH];
    cleat_rna_make molecules = cleat_rna_make_defaults();
    molecules.count = count;
    molecules.seed = seed;
    molecules.stem_min = 4;
    molecules.stem_max = 9;
    molecules.val_fraction = 0.2;
    molecules.pdb_files = 0;
    assert_int_equal(cleat_data_make_rna(tiny_path(t, name, path), &molecules, NULL), CLEAT_OK);
    assert_true(snprintf(setting, TINY_PATH, "data.path=%s", path) < TINY_PATH);
    return setting;
}

static void other_data_are_refused(void **state) {
    const tiny *t = *state;
    char few[TINY_PATH], other[TINY_PATH], same[TINY_PATH];
    make_data(t, "few", 9, 3, few);
    make_data(t, "other", 16, 4, other);
    make_data(t, "same", 16, 3, same); /* copies of the fixture's, in another folder */
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "run", SET(FIXED), false, 1);
    tiny_result result = tiny_train_to(CLEAT_ERR_ARGUMENT, t, "run", SET(FIXED, few), true, 0);
    assert_contains(result.error.text,
                    SET("other data", "split 'train' then", "now", "few", "run.resume_other_data=true"));
    result = tiny_train_to(CLEAT_ERR_ARGUMENT, t, "run", SET(FIXED, other), true, 0);
    assert_contains(result.error.text, SET("other data", "/other has", "run.resume_other_data=true"));
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "run", SET(FIXED, same), true, 1);
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "run", SET(FIXED, few, "run.resume_other_data=true"), true, 1);
    /* these become its data */
    result = tiny_train_to(CLEAT_ERR_ARGUMENT, t, "run", SET(FIXED), true, 0);
    assert_contains(result.error.text, SET("other data"));
    tiny_train_to(CLEAT_OK, t, "run", SET(FIXED, few), true, 0);
}

/* The message also names settings that depend on the data. */
static void settings_that_follow_are_named(void **state) {
    const tiny *t = *state;
    char longer[TINY_PATH];
    make_data(t, "longer", 40, 5, longer);
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "auto", SET("data.max_length=16", "data.limit=2"), false, 1);
    const tiny_result result =
        tiny_train_to(CLEAT_ERR_PROFILE, t, "auto", SET("data.max_length=17", "data.limit=2", longer), true, 0);
    assert_contains(result.error.text, SET("other data (", "split 'train' then", "max_length"));
}

/* Changes the letter after the first comma of the second line. */
static void change_letter(const tiny *t, const char *file) {
    char path[TINY_PATH];
    size_t size;
    char *text = tiny_read(tiny_path(t, file, path), &size);
    char *letter = strchr(strchr(text, '\n'), ',') + 1;
    *letter = *letter == 'G' ? 'A' : 'G';
    tiny_write(path, text, size);
    cleat_free(text);
}

/* The same names and splits, but one different letter in a sequence. */
static void changed_sample_is_noticed(void **state) {
    const tiny *t = *state;
    char setting[TINY_PATH];
    make_data(t, "edited", 16, 3, setting);
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "of_edited", SET(setting), false, 1);
    change_letter(t, "edited/sequences.csv");
    change_letter(t, "edited/labels.csv");
    const tiny_result result = tiny_train_to(CLEAT_ERR_ARGUMENT, t, "of_edited", SET(setting), true, 0);
    assert_contains(result.error.text, SET("the same names, but other lengths, tokens or labels"));
}

/* A checkpoint of an earlier version has no fingerprint of its data: it opens, and the next checkpoint has one. */
static void earlier_checkpoint_is_resumed(void **state) {
    const tiny *t = *state;
    char path[TINY_PATH], few[TINY_PATH], *text = NULL;
    size_t size;
    cleat_train_state then;
    cleat_checkpoint_files files;
    make_data(t, "few2", 9, 3, few);
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "earlier", SET(FIXED), false, 1);
    char *now = tiny_read(tiny_last_file(t, "earlier", "state.json", path), &size);
    assert_non_null(strstr(now, "\"data\": {\"train\": "));
    assert_int_equal(cleat_state_decode(path, now, size, &then, &files, NULL), CLEAT_OK);
    assert_true(then.data.counts[CLEAT_SPLIT_TRAIN] > 0 && strlen(then.data.names) == 32);
    then.data = (cleat_data_fingerprint){.names = ""};
    assert_int_equal(cleat_state_encode(&then, &files, &text, NULL), CLEAT_OK);
    assert_null(strstr(text, "\"data\""));
    tiny_write(path, text, strlen(text));
    cleat_free(text);
    cleat_free(now);
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "earlier", SET(FIXED, few), true, 1);
    tiny_train_to(CLEAT_ERR_ARGUMENT, t, "earlier", SET(FIXED), true, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_data_are_refused),
        cmocka_unit_test(settings_that_follow_are_named),
        cmocka_unit_test(changed_sample_is_noticed),
        cmocka_unit_test(earlier_checkpoint_is_resumed),
    };
    tiny_require_device();
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}

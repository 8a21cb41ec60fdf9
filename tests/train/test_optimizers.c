/* Training with train.optimizer: a resumed run has the same bits, checkpoints hold the moments that the optimizer has,
 * and another optimizer at --resume is an error. */
/* ctest: device cost=9 */
#include "tiny.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/memory.h"
#include "core/safetensors.h"

static size_t count_tensors(const tiny *t, const char *run, const char *ending) {
    char path[TINY_PATH];
    cleat_safetensors *file = NULL;
    size_t count = 0;
    assert_int_equal(cleat_safetensors_open(tiny_last_file(t, run, "optim.safetensors", path), &file, NULL), CLEAT_OK);
    for (size_t i = 0; i < cleat_safetensors_count(file); ++i) {
        const char *name = cleat_safetensors_at(file, i)->name;
        count += strcmp(name + strlen(name) - strlen(ending), ending) == 0;
    }
    cleat_safetensors_close(file);
    return count;
}

typedef struct way {
    const char *name;
    const char *const *set;
    bool first; /* the first moment is kept */
} way;

#define LION "train.optimizer=lion", "train.learning_rate=1e-3"
#define SGD "train.optimizer=sgd", "train.learning_rate=0.02"

/* With loss scaling and half weights, with averaging, with groups of parameters, with several micro-batches. */
static void resumed_runs_have_the_same_bits(void **state) {
    const tiny *t = *state;
    const way ways[] = {
        {"sgd", SET(SGD), true},
        {"plain", SET(SGD, "train.momentum=0", "train.average_decay=none"), false},
        {"half", SET(SGD, "train.nesterov=true", "train.precision=f16"), true},
        {"lion", SET(LION), true},
        {"lion_half", SET(LION, "train.precision=f16", "train.lion_beta2=0.95", "train.decay_norm_bias=false"), true},
        {"average", SET(SGD, "train.average_decay=0.5", "train.decay_norm_bias=false", "train.batch_size=2"), true},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; ++i) {
        char parts[32];
        snprintf(parts, sizeof parts, "%s_parts", ways[i].name);
        tiny_train_to(CLEAT_OK, t, ways[i].name, ways[i].set, false, 0);
        assert_int_not_equal(tiny_train(t, parts, ways[i].set, false, 1).status, CLEAT_OK);
        tiny_train_to(CLEAT_OK, t, parts, ways[i].set, true, 0);
        tiny_assert_same_run(t, ways[i].name, parts);
        assert_int_equal(count_tensors(t, ways[i].name, ".moment1") > 0, ways[i].first);
        assert_int_equal(count_tensors(t, ways[i].name, ".moment2"), 0);
    }
    assert_true(tiny_distance(t, "sgd", "plain") > 1e-4 && tiny_distance(t, "lion", "lion_half") > 1e-5);
}

static void another_optimizer_is_another_run(void **state) {
    const tiny *t = *state;
    tiny_train_to(CLEAT_OK, t, "adamw", NULL, false, 0);
    assert_true(count_tensors(t, "adamw", ".moment2") > 0);
    const tiny_result other = tiny_train(t, "adamw", SET("train.optimizer=sgd"), true, 0);
    assert_int_equal(other.status, CLEAT_ERR_PROFILE);
    if (!strstr(other.error.text, "train.optimizer = sgd (was adamw)")) fail_msg("%s", other.error.text);
}

static void settings_of_another_optimizer_are_refused(void **state) {
    (void)state;
    static const char *const bad[][3] = {
        {"train.momentum=0.5", NULL, "contradicts train.optimizer"},
        {"train.nesterov=true", NULL, "contradicts train.optimizer"},
        {"train.optimizer=sgd", "train.nesterov=true", "above 0"}, /* with momentum 0 */
        {"train.optimizer=sgd", "train.lion_beta2=0.9", "set train.optimizer=lion"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        cleat_profile *profile = NULL;
        cleat_error error;
        assert_int_equal(cleat_profile_create(&profile, &error), CLEAT_OK);
        assert_int_equal(cleat_profile_set(profile, "data.path=/tmp", &error), CLEAT_OK);
        for (int k = 0; k < 2 && bad[i][k]; ++k)
            assert_int_equal(cleat_profile_set(profile, bad[i][k], &error), CLEAT_OK);
        if (i == 2) assert_int_equal(cleat_profile_set(profile, "train.momentum=0", &error), CLEAT_OK);
        assert_int_equal(cleat_profile_check(profile, &error), CLEAT_ERR_PROFILE);
        if (!strstr(error.text, bad[i][2])) fail_msg("%s", error.text);
        cleat_profile_destroy(profile);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(resumed_runs_have_the_same_bits),
                                       cmocka_unit_test(another_optimizer_is_another_run),
                                       cmocka_unit_test(settings_of_another_optimizer_are_refused)};
    tiny_require_device();
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}

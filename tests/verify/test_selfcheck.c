/* The self-check by a reference training, and a training's own: the former passes for every model type and precision on a device that computes correctly, its
 * result is cached, and it refuses a device whose kernels compute incorrectly. */
/* ctest: device slow cost=17 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/verify.h"
#include "core/files.h"
#include "core/memory.h"
#include "source_path.h"
#include "train/tiny.h"

/* The result of a check of `type` on a newly opened device, and whether anything was run for it. */
typedef struct outcome {
    cleat_status status;
    bool ran;
    cleat_error error;
} outcome;

static outcome check(const char *type, const char *precision, const char *policy) {
    const char *selector = getenv("CLEAT_TEST_DEVICE");
    cleat_profile *profile = NULL;
    cleat_device *device = NULL;
    outcome found = {.ran = false};
    char settings[256];
    snprintf(settings, sizeof settings, "[model]\ntype = %s\n[train]\nprecision = %s\n[run]\nself_check = %s\n", type,
             precision, policy);
    assert_int_equal(cleat_profile_create(&profile, NULL), CLEAT_OK);
    assert_int_equal(cleat_profile_read_text(profile, "test", settings, strlen(settings), NULL), CLEAT_OK);
    assert_int_equal(cleat_device_open(selector ? selector : "auto", &device, NULL), CLEAT_OK);
    found.status = cleat_self_check(device, profile, &found.error);
    found.ran = cleat_device_peak(device) > 0;
    assert_int_equal(cleat_device_allocated(device), 0);
    cleat_device_close(device);
    cleat_profile_destroy(profile);
    return found;
}

static void assert_passes(const char *type, const char *precision) {
    outcome found = check(type, precision, "always");
    if (found.status) fail_msg("%s, %s: %s", type, precision, found.error.text);
    assert_true(found.ran);
}

static void every_model_type_passes(void **state) {
    (void)state;
    static const char *const types[] = {"rna_transformer", "text_classifier", "text_tagger",        "text_pretrain",
                                        "series_lstm",     "series_dense",    "series_transformer", "image_resnet",
                                        "image_vit",       "image_convnext",  "mask_segformer",     "emberformer"};
    for (size_t i = 0; i < sizeof types / sizeof *types; ++i) assert_passes(types[i], "f32");
}

/* Each half type with one model: all trajectories in each type are covered by verify.golden, the kernels in
 * each by the op tests. */
static void half_precisions_pass(void **state) {
    (void)state;
    assert_passes("rna_transformer", "f16");
    assert_passes("series_dense", "bf16");
}

/* Empties every file that records a passed check. */
static void damage_passed(const char *cache) {
    cleat_listing files = {0};
    char folder[2 * TINY_PATH];
    snprintf(folder, sizeof folder, "%s/checked", cache);
    assert_int_equal(cleat_listing_read(folder, NULL, &files, NULL), CLEAT_OK);
    assert_true(files.count > 0);
    for (size_t i = 0; i < files.count; ++i) {
        char path[3 * TINY_PATH];
        snprintf(path, sizeof path, "%s/%s", folder, files.names[i]);
        tiny_write(path, "", 0);
    }
    cleat_listing_free(&files);
}

static void a_passed_check_is_remembered(void **state) {
    const tiny *t = *state;
    char cache[TINY_PATH];
    const char *before = getenv("CLEAT_CACHE_DIR");
    char *kept = before ? strdup(before) : NULL;
    setenv("CLEAT_CACHE_DIR", tiny_path(t, "cache", cache), 1);
    outcome first = check("series_dense", "f32", "once"), second = check("series_dense", "f32", "once");
    outcome other = check("series_dense", "bf16", "once"), always = check("series_dense", "f32", "always");
    outcome never = check("series_dense", "f16", "never");
    damage_passed(cache);
    outcome damaged = check("series_dense", "bf16", "once");
    if (kept)
        setenv("CLEAT_CACHE_DIR", kept, 1);
    else
        unsetenv("CLEAT_CACHE_DIR");
    free(kept);
    if (first.status) fail_msg("%s", first.error.text);
    assert_true(first.ran && !second.ran && other.ran && always.ran && !never.ran && damaged.ran);
    assert_true(!second.status && !other.status && !never.status);
}

/* Reads kernels from a folder that holds cl/FILE with one occurrence of `from` replaced by `to`. */
static void use_changed_kernel(const tiny *t, const char *file, const char *from, const char *to) {
    char source[TINY_PATH], folder[TINY_PATH], path[2 * TINY_PATH];
    size_t size;
    snprintf(source, sizeof source, "%s/%s", source_path("cl"), file);
    char *text = tiny_read(source, &size), *at = strstr(text, from);
    assert_non_null(at);
    assert_int_equal(strlen(from), strlen(to));
    memcpy(at, to, strlen(to));
    snprintf(folder, sizeof folder, "%s/kernels_of_%s", t->folder, file);
    snprintf(path, sizeof path, "%s/%s", folder, file);
    *strrchr(path, '/') = 0; /* the file name may contain a subfolder */
    assert_int_equal(cleat_folder_make(path, NULL), CLEAT_OK);
    snprintf(path, sizeof path, "%s/%s", folder, file);
    tiny_write(path, text, size);
    cleat_free(text);
    setenv("CLEAT_KERNEL_DIR", folder, 1);
}

static void wrong_kernels_are_refused(void **state) {
    const tiny *t = *state;
    static const struct {
        const char *type, *precision, *file, *from, *to, *where, *names, *op;
    } rows[] = {
        {"series_dense", "f32", "element_loss.cl", "[row] * sum * (", "[row] - sum * (", "series_dense", "'loss'",
         "'mse_loss"},
        /* Wide tolerances, but narrower than the error of a kernel without effect. */
        {"series_dense", "bf16", "adamw.cl", "* keep - step", "* 1.0f - 0.0f", "series_dense", "update", "adamw"},
        {"series_dense", "bf16", "lib/relu.clh", "0.0f) : dy;", "0.0f) :0*y;", "series_dense", "'grad/", "'linear"},
        {"series_dense", "f16", "lib/loss_scale.clh", "0.5f, least", "2.0f, least", "series_dense",
         "not finite: loss scale", "'loss_scale_update'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        use_changed_kernel(t, rows[i].file, rows[i].from, rows[i].to);
        outcome found = check(rows[i].type, rows[i].precision, "once");
        outcome again = i == 0 ? check(rows[i].type, rows[i].precision, "once") : found,
                never = check(rows[i].type, rows[i].precision, "never");
        unsetenv("CLEAT_KERNEL_DIR");
        print_message("%s: %s\n", rows[i].to, found.error.text);
        assert_int_equal(found.status, CLEAT_ERR_DEVICE);
        assert_int_equal(again.status, CLEAT_ERR_DEVICE);
        assert_int_equal(never.status, CLEAT_OK);
        assert_non_null(strstr(found.error.text, "computes wrong results"));
        assert_non_null(strstr(found.error.text, rows[i].names));
        assert_non_null(strstr(found.error.text, rows[i].where));
        assert_non_null(strstr(found.error.text, rows[i].op));
    }
}

/* Kernels that are used only if a tuning table selects them. */
static void what_does_not_compile_names_the_way_out(void **state) {
    const tiny *t = *state;
    use_changed_kernel(t, "attention/attention.cl", "__kernel void attention_plain_dq",
                       "__kernel viod attention_plain_dq");
    outcome found = check("series_transformer", "f32", "always");
    unsetenv("CLEAT_KERNEL_DIR");
    print_message("%s\n", found.error.text);
    assert_int_equal(found.status, CLEAT_ERR_BUILD);
    assert_non_null(strstr(found.error.text, "kernel variants number 2"));
    assert_non_null(strstr(found.error.text, "run.self_check = never"));
}

static void training_is_refused(void **state) {
    const tiny *t = *state;
    use_changed_kernel(t, "adamw.cl", "* keep - step", "* keep + step");
    tiny_result result = tiny_train(t, "refused", SET("run.self_check=once"), false, 1);
    unsetenv("CLEAT_KERNEL_DIR");
    assert_int_equal(result.status, CLEAT_ERR_DEVICE);
    assert_non_null(strstr(result.error.text, "computes wrong results"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_type_passes),
        cmocka_unit_test(half_precisions_pass),
        cmocka_unit_test(a_passed_check_is_remembered),
        cmocka_unit_test(wrong_kernels_are_refused),
        cmocka_unit_test(what_does_not_compile_names_the_way_out),
        cmocka_unit_test(training_is_refused),
    };
    tiny_require_device();
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}

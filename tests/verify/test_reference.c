/* The library's reference trainings pass for every model type and precision on a correct device, and reject a
 * device whose kernels compute incorrectly. */
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
#include "platform/files.h"
#include "platform/processes.h"
#include "source_path.h"
#include "train/tiny.h"

typedef struct outcome {
    cleat_status status;
    cleat_reference_result result;
    cleat_error error;
} outcome;

static outcome check(const char *type, cleat_precision precision) {
    const char *selector = getenv("CLEAT_TEST_DEVICE");
    cleat_device *device = NULL;
    outcome found = {.status = CLEAT_OK};
    assert_int_equal(cleat_device_open(selector ? selector : "auto", &device, NULL), CLEAT_OK);
    found.status = cleat_verify_reference(device, type, precision, &found.result, &found.error);
    assert_int_equal(cleat_device_allocated(device), 0);
    cleat_device_close(device);
    return found;
}

static void assert_passes(const char *type, cleat_precision precision) {
    outcome found = check(type, precision);
    if (found.status) fail_msg("%s: %s", type, found.error.text);
    assert_true(found.result.comparisons > 0 && found.result.worst <= 1);
}

static void every_model_type_passes(void **state) {
    (void)state;
    static const char *const types[] = {"causal_lm",     "rna_transformer", "text_classifier", "text_tagger",
                                        "text_pretrain", "series_lstm",     "series_dense",    "series_transformer",
                                        "image_resnet",  "image_vit",       "image_convnext",  "mask_segformer",
                                        "emberformer"};
    for (size_t i = 0; i < sizeof types / sizeof *types; ++i) assert_passes(types[i], CLEAT_PRECISION_F32);
}

/* Each half type with one model: verify.golden covers all trajectories in each type, the op tests cover the
 * kernels. */
static void half_precisions_pass(void **state) {
    (void)state;
    assert_passes("rna_transformer", CLEAT_PRECISION_F16);
    assert_passes("series_dense", CLEAT_PRECISION_BF16);
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
        const char *type;
        cleat_precision precision;
        const char *file, *from, *to, *where, *names, *op;
    } rows[] = {
        {"series_dense", CLEAT_PRECISION_F32, "element_loss.cl", "[row] * sum * (", "[row] - sum * (", "series_dense",
         "'loss'", "'mse_loss"},
        /* Wide tolerances, but narrower than the error of a kernel without effect. */
        {"series_dense", CLEAT_PRECISION_BF16, "adamw.cl", "* keep - step", "* 1.0f - 0.0f", "series_dense", "update",
         "adamw"},
        {"series_dense", CLEAT_PRECISION_BF16, "lib/relu.clh", "0.0f) : dy;", "0.0f) :0*y;", "series_dense", "'grad/",
         "'linear"},
        {"series_dense", CLEAT_PRECISION_F16, "lib/loss_scale.clh", "0.5f, least", "2.0f, least", "series_dense",
         "not finite: loss scale", "'loss_scale_update'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        use_changed_kernel(t, rows[i].file, rows[i].from, rows[i].to);
        outcome found = check(rows[i].type, rows[i].precision);
        unsetenv("CLEAT_KERNEL_DIR");
        print_message("%s: %s\n", rows[i].to, found.error.text);
        assert_int_equal(found.status, CLEAT_ERR_DEVICE);
        assert_non_null(strstr(found.error.text, "computes wrong results"));
        assert_non_null(strstr(found.error.text, rows[i].names));
        assert_non_null(strstr(found.error.text, rows[i].where));
        assert_non_null(strstr(found.error.text, rows[i].op));
    }
}

/* Kernels that are used only if a tuning table selects them. */
static void what_does_not_compile_names_the_variants(void **state) {
    const tiny *t = *state;
    use_changed_kernel(t, "attention/attention.cl", "__kernel void attention_plain_dq",
                       "__kernel viod attention_plain_dq");
    outcome found = check("series_transformer", CLEAT_PRECISION_F32);
    unsetenv("CLEAT_KERNEL_DIR");
    print_message("%s\n", found.error.text);
    assert_int_equal(found.status, CLEAT_ERR_BUILD);
    assert_non_null(strstr(found.error.text, "kernel variants number 2"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_type_passes),
        cmocka_unit_test(half_precisions_pass),
        cmocka_unit_test(wrong_kernels_are_refused),
        cmocka_unit_test(what_does_not_compile_names_the_variants),
    };
    tiny_require_device();
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}

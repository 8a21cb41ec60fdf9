/* Published checkpoints in tests/published and $CLEAT_SHARED/hf with PyTorch's results: every network is read
 * through its tables and reproduces output, losses and gradients in all precisions. A wrong value, name or
 * shape is detected. */
/* ctest: device slow cost=255 */
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
#include "core/safetensors.h"
#include "platform/files.h"
#include "source_path.h"
#include "train/tiny.h"

#define OWN source_path("tests/published")

static cleat_status verify(const char *folder, cleat_precision precision, cleat_verify_report *report,
                           cleat_error *error) {
    const char *device = getenv("CLEAT_TEST_DEVICE");
    const cleat_verify_request request = {.device = device ? device : "auto", .precision = precision};
    return cleat_verify(&request, folder, report, error);
}

static void assert_repeats(const char *folder, cleat_precision precision) {
    cleat_verify_report report = {0};
    cleat_error error = {0};
    if (verify(folder, precision, &report, &error)) fail_msg("%s", error.text);
    for (size_t i = 0; i < report.count; ++i)
        if (!report.items[i].ok)
            print_error("%s: %s: %.2g, tolerance %.2g\n", folder, report.items[i].name, report.items[i].rel_error,
                        report.items[i].tolerance);
    assert_true(report.count > 20); /* output, losses, parameters, and the gradients of a network */
    assert_int_equal(report.failed, 0);
    cleat_verify_free(&report);
}

/* Runs the folders with expected results; returns their number. */
static size_t all_in(const char *parent, cleat_precision precision) {
    cleat_name_list folders = {0};
    size_t found = 0;
    if (cleat_listing_read(parent, NULL, &folders, NULL)) return 0;
    for (size_t i = 0; i < folders.count; ++i) {
        char folder[1024], file[1100];
        snprintf(folder, sizeof folder, "%s/%s", parent, folders.names[i]);
        snprintf(file, sizeof file, "%s/expected.safetensors", folder);
        if (access(file, R_OK) != 0) continue;
        assert_repeats(folder, precision);
        ++found;
    }
    cleat_name_list_free(&folders);
    return found;
}

enum { OWN_FOLDERS = 29 };

static void networks_are_repeated(void **state) {
    (void)state;
    assert_int_equal(all_in(OWN, CLEAT_PRECISION_F32), OWN_FOLDERS);
}

static void networks_are_repeated_in_halves(void **state) {
    (void)state;
    assert_int_equal(all_in(OWN, CLEAT_PRECISION_F16), OWN_FOLDERS);
    assert_int_equal(all_in(OWN, CLEAT_PRECISION_BF16), OWN_FOLDERS);
}

static void shared_networks_are_repeated(void **state) {
    (void)state;
    if (all_in(shared_path("hf"), CLEAT_PRECISION_F32) == 0) skip();
}

/* --- changed copies ------------------------------------------------------------------------------------------- */

/* Copies a folder of OWN with `change` applied to one tensor of one file. */
static void copy_folder(const tiny *t, const char *name, const char *file, const char *tensor,
                        void (*change)(cleat_st_tensor *tensor), char copy[TINY_PATH]) {
    static const char *const files[] = {"config.json", "model.safetensors", "expected.safetensors"};
    tiny_path(t, name, copy);
    assert_int_equal(cleat_folder_make(copy, NULL), CLEAT_OK);
    for (size_t i = 0; i < 3; ++i) {
        char folder[512], from[1024], to[2 * TINY_PATH];
        snprintf(folder, sizeof folder, "%s/%s", OWN, name);
        snprintf(from, sizeof from, "%s/%s", folder, files[i]);
        snprintf(to, sizeof to, "%s/%s", copy, files[i]);
        if (strcmp(files[i], file) != 0) {
            assert_int_equal(cleat_file_copy(folder, copy, files[i], false, NULL), CLEAT_OK);
            continue;
        }
        cleat_safetensors *opened = NULL;
        assert_int_equal(cleat_safetensors_open(from, &opened, NULL), CLEAT_OK);
        const size_t count = cleat_safetensors_count(opened);
        cleat_st_tensor *tensors = cleat_alloc(count, sizeof *tensors);
        bool found = false;
        for (size_t k = 0; k < count; ++k) {
            tensors[k] = *cleat_safetensors_at(opened, k);
            if (strcmp(tensors[k].name, tensor) != 0) continue;
            change(&tensors[k]);
            found = true;
        }
        assert_true(found);
        assert_int_equal(cleat_safetensors_write(to, tensors, count, NULL, 0, NULL), CLEAT_OK);
        cleat_free(tensors);
        cleat_safetensors_close(opened);
    }
}

static void add_to_first(cleat_st_tensor *tensor) {
    ((float *)(uintptr_t)tensor->data)[0] += 0.1f;
}

static void shorten(cleat_st_tensor *tensor) {
    tensor->shape[0] -= 1;
}

static void rename_it(cleat_st_tensor *tensor) {
    tensor->name = "renamed";
}

static void a_wrong_weight_is_found(void **state) {
    const tiny *t = *state;
    char folder[TINY_PATH];
    cleat_verify_report report = {0};
    cleat_error error = {0};
    copy_folder(t, "distilbert_tagger", "model.safetensors", "distilbert.transformer.layer.1.attention.v_lin.weight",
                add_to_first, folder);
    if (verify(folder, CLEAT_PRECISION_F32, &report, &error)) fail_msg("%s", error.text);
    assert_true(report.failed > 0);
    cleat_verify_free(&report);
}

static void assert_refused(const char *folder, cleat_status status, const char *words) {
    cleat_verify_report report = {0};
    cleat_error error = {0};
    assert_int_equal(verify(folder, CLEAT_PRECISION_F32, &report, &error), status);
    if (!strstr(error.text, words)) fail_msg("'%s' lacks '%s'", error.text, words);
}

static void a_missing_tensor_is_named(void **state) {
    char folder[TINY_PATH];
    copy_folder(*state, "distilbert_tagger", "model.safetensors", "distilbert.transformer.layer.1.ffn.lin2.bias",
                rename_it, folder);
    assert_refused(folder, CLEAT_ERR_FORMAT, "has no tensor 'distilbert.transformer.layer.1.ffn.lin2.bias'");
}

static void a_wrong_shape_is_named(void **state) {
    char folder[TINY_PATH];
    copy_folder(*state, "distilbert_tagger", "model.safetensors", "distilbert.transformer.layer.0.ffn.lin1.bias",
                shorten, folder);
    assert_refused(folder, CLEAT_ERR_SHAPE,
                   "'distilbert.transformer.layer.0.ffn.lin1.bias' is [23]; the network of this profile needs [24]");
}

static void missing_results_are_named(void **state) {
    char folder[TINY_PATH];
    copy_folder(*state, "distilbert_tagger", "expected.safetensors", "labels", rename_it, folder);
    assert_refused(folder, CLEAT_ERR_FORMAT, "expected.safetensors: has no array 'labels'");
}

/* Each array of the batch is checked before a kernel reads it. The error has the value, its place and the
 * valid range. */
static int64_t wrong_value;
static void put_wrong_value(cleat_st_tensor *tensor) {
    ((int64_t *)(uintptr_t)tensor->data)[5] = wrong_value;
}

static void be_bytes(cleat_st_tensor *tensor) {
    tensor->dtype = CLEAT_ST_U8;
}

static void integers_out_of_range_are_named(void **state) {
    static const struct {
        const char *array;
        int64_t value;
        const char *words;
    } cases[] = {{"labels", 77, "labels: value 5 is 77; it must be below 5, or negative without a label"},
                 {"input_ids", 40, "value 5 is 40; it must be -1 to 39"},
                 {"input_ids", INT64_C(99999999999), "input_ids: value 5 is 99999999999; it must be an id"},
                 {"token_type_ids", 2, "value 5 is 2; it must be -1 to 1"},
                 {"attention_mask", 0, "attention_mask: value 6 is 1; it must be 0 behind the end of a text"}};
    char folder[TINY_PATH];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        wrong_value = cases[i].value;
        copy_folder(*state, "electra_tagger", "expected.safetensors", cases[i].array, put_wrong_value, folder);
        assert_refused(folder, CLEAT_ERR_FORMAT, cases[i].words);
    }
    copy_folder(*state, "electra_tagger", "expected.safetensors", "attention_mask", be_bytes, folder);
    assert_refused(folder, CLEAT_ERR_FORMAT, "attention_mask must have integers");
}

static void an_unknown_network_is_refused(void **state) {
    const tiny *t = *state;
    char folder[TINY_PATH], path[2 * TINY_PATH];
    static const char config[] = "{\"model_type\": \"llama\"}";
    copy_folder(t, "distilbert_tagger", "expected.safetensors", "loss", add_to_first, folder);
    snprintf(path, sizeof path, "%s/config.json", folder);
    assert_int_equal(cleat_file_write(path, config, sizeof config - 1, NULL), CLEAT_OK);
    assert_refused(folder, CLEAT_ERR_NOT_SUPPORTED, "'llama'");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_are_repeated),           cmocka_unit_test(networks_are_repeated_in_halves),
        cmocka_unit_test(shared_networks_are_repeated),    cmocka_unit_test(a_wrong_weight_is_found),
        cmocka_unit_test(a_missing_tensor_is_named),       cmocka_unit_test(a_wrong_shape_is_named),
        cmocka_unit_test(missing_results_are_named),       cmocka_unit_test(an_unknown_network_is_refused),
        cmocka_unit_test(integers_out_of_range_are_named),
    };
    tiny_require_device();
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}

/* Reference trajectories of tools/make_golden.py and ../shared/golden (the old format is converted) are
 * reproduced within tolerance; any wrong value is detected; a malformed file is an error. */
/* ctest: device slow cost=39 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/verify.h"
#include "core/memory.h"
#include "core/safetensors.h"
#include "platform/files.h"
#include "source_path.h"
#include "train/tiny.h"

#define OWN_FILE source_path("tests/golden/rna.safetensors")

enum { MAX_TENSORS = 128 };

static const char *device(void) {
    const char *selector = getenv("CLEAT_TEST_DEVICE");
    return selector ? selector : "auto";
}

static cleat_verify_report verify_in(cleat_precision precision, const char *path) {
    const cleat_verify_request request = {.device = device(), .precision = precision};
    cleat_verify_report report = {0};
    cleat_error error;
    if (cleat_verify(&request, path, &report, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return report;
}

static cleat_verify_report verify(const char *path) {
    return verify_in(CLEAT_PRECISION_F32, path);
}

static void assert_passes(cleat_precision precision, const char *path) {
    cleat_verify_report report = verify_in(precision, path);
    double worst = 0;
    for (size_t i = 0; i < report.count; ++i) {
        const cleat_verification *item = &report.items[i];
        if (!item->ok) print_error("%s: %.2g, tolerance %.2g\n", item->name, item->rel_error, item->tolerance);
        worst = fmax(worst, item->rel_error / item->tolerance);
    }
    assert_true(report.count > 8); /* output, loss, parameters, and at least six gradients */
    assert_int_equal(report.failed, 0);
    print_message("%zu comparisons, the worst at %.2g of its tolerance\n", report.count, worst);
    cleat_verify_free(&report);
}

static const char *const families[] = {"rna",    "text",      "tagging",     "lstm",   "dense", "mlp",  "temporal",
                                       "resnet", "segformer", "emberformer", "groups", "lora",  "rnafm"};

static bool is_of_old_format(const char *path) {
    cleat_safetensors *file = NULL;
    assert_int_equal(cleat_safetensors_open(path, &file, NULL), CLEAT_OK);
    const bool old = cleat_safetensors_metadata(file, "config") != NULL;
    cleat_safetensors_close(file);
    return old;
}

/* Counts the trajectories in FOLDER; converts those of the old format to CONVERTED. */
static int trajectories_in(const char *folder, cleat_precision precision, const char *converted) {
    const char *script = source_path("tests/golden/convert.py");
    int found = 0;
    for (size_t i = 0; i < sizeof families / sizeof *families; ++i) {
        char path[1024], command[4096];
        snprintf(path, sizeof path, "%s/%s.safetensors", folder, families[i]);
        if (access(path, R_OK) != 0) continue;
        print_message("%s: ", families[i]);
        if (is_of_old_format(path)) {
            snprintf(command, sizeof command, "python3 '%s' '%s' '%s'", script, path, converted);
            assert_int_equal(system(command), 0);
            snprintf(path, sizeof path, "%s", converted);
        }
        assert_passes(precision, path);
        ++found;
    }
    return found;
}

static void own_trajectories_are_repeated(void **state) {
    (void)state;
    assert_int_equal(trajectories_in(source_path("tests/golden"), CLEAT_PRECISION_F32, NULL), 12);
}

static void own_trajectories_are_repeated_in_half(void **state) {
    (void)state;
    assert_int_equal(trajectories_in(source_path("tests/golden"), CLEAT_PRECISION_F16, NULL), 12);
    assert_int_equal(trajectories_in(source_path("tests/golden"), CLEAT_PRECISION_BF16, NULL), 12);
}

static void shared_trajectories_are_repeated(void **state) {
    const tiny *t = *state;
    char converted[TINY_PATH];
    tiny_path(t, "converted.safetensors", converted);
    if (trajectories_in(shared_path("golden"), CLEAT_PRECISION_F32, converted) == 0) skip();
}

/* --- changed copies --- */

/* The test's own trajectory in memory, for changed copies. */
typedef struct copy {
    cleat_safetensors *file;
    cleat_st_tensor tensors[MAX_TENSORS];
    size_t count;
    cleat_st_metadata metadata[2];
    char path[TINY_PATH];
} copy;

static copy copy_of(const tiny *t, const char *path) {
    copy c = {.count = 0};
    assert_int_equal(cleat_safetensors_open(path, &c.file, NULL), CLEAT_OK);
    c.count = cleat_safetensors_count(c.file);
    assert_true(c.count <= MAX_TENSORS);
    for (size_t i = 0; i < c.count; ++i) c.tensors[i] = *cleat_safetensors_at(c.file, i);
    static const char *const keys[] = {"profile", "sizes"};
    for (int i = 0; i < 2; ++i)
        c.metadata[i] = (cleat_st_metadata){.key = keys[i], .value = cleat_safetensors_metadata(c.file, keys[i])};
    tiny_path(t, "changed.safetensors", c.path);
    return c;
}

static copy copy_open(const tiny *t) {
    return copy_of(t, OWN_FILE);
}

static cleat_st_tensor *find(copy *c, const char *name) {
    for (size_t i = 0; i < c->count; ++i)
        if (strcmp(c->tensors[i].name, name) == 0) return &c->tensors[i];
    fail_msg("the trajectory has no '%s'", name);
    return NULL;
}

/* Writable values of an array of the file in memory. */
static float *floats(copy *c, const char *name) {
    return (float *)(uintptr_t)find(c, name)->data;
}

static int64_t *integers(copy *c, const char *name) {
    return (int64_t *)(uintptr_t)find(c, name)->data;
}

static void copy_write(copy *c) {
    cleat_error error;
    if (cleat_safetensors_write(c->path, c->tensors, c->count, c->metadata, 2, &error) != CLEAT_OK)
        fail_msg("%s", error.text);
    cleat_safetensors_close(c->file);
}

/* Asserts that exactly one comparison fails, the one with this name. */
static void assert_only_failure(const char *path, const char *name) {
    cleat_verify_report report = verify(path);
    assert_int_equal(report.failed, 1);
    for (size_t i = 0; i < report.count; ++i)
        if (!report.items[i].ok) assert_string_equal(report.items[i].name, name);
    cleat_verify_free(&report);
}

static void one_wrong_value_is_found(void **state) {
    const tiny *t = *state;
    static const struct {
        const char *array, *reported;
        int at;
        float factor;
    } rows[] = {
        {"grad/blocks.1.f1.weight", "grad/blocks.1.f1.weight", 100, 1.2f},
        {"grad/emb.weight", "grad/emb.weight", 3, NAN},
        {"loss", "loss", 4, 1.0001f},
        {"loss", "loss", 10, NAN},
        {"loss", "loss", 0, NAN},
        {"output", "output", 3, 1.1f},
        {"output", "output", 3, NAN},
        {"after/head.weight", "parameters", 5, 1.5f},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        copy c = copy_open(t);
        floats(&c, rows[i].array)[rows[i].at] *= rows[i].factor;
        copy_write(&c);
        /* A NaN gradient leaves no scale to compare any gradient with. */
        if (isnan(rows[i].factor) && strncmp(rows[i].array, "grad", 4) == 0) {
            cleat_verify_report report = verify(c.path);
            assert_true(report.failed >= 1);
            cleat_verify_free(&report);
        } else {
            assert_only_failure(c.path, rows[i].reported);
        }
    }
}

/* Values after the end of a sequence are not compared. */
static void padding_is_not_compared(void **state) {
    const tiny *t = *state;
    copy c = copy_open(t);
    int64_t length = find(&c, "tokens")->shape[1], second = integers(&c, "lengths")[1];
    assert_true(second < length);
    floats(&c, "output")[(2 * length - 1) * 3] += 100;
    floats(&c, "coords")[(2 * length - 1) * 3] += 100;
    integers(&c, "tokens")[2 * length - 1] = 0;
    copy_write(&c);
    cleat_verify_report report = verify(c.path);
    assert_int_equal(report.failed, 0);
    cleat_verify_free(&report);
}

/* --- profile and fields --- */

/* The trajectory of a classifier. */
static copy copy_of_text(const tiny *t) {
    return copy_of(t, source_path("tests/golden/text.safetensors"));
}

static void assert_error(const char *path, cleat_status status, const char *word);

/* Metadata values that are impossible for any model or contradict the arrays. */
static void wrong_metadata_are_refused(void **state) {
    const tiny *t = *state;
    static const struct {
        int key;
        const char *value;
        cleat_status status;
        const char *word;
    } rows[] = {
        {0, "not a profile", CLEAT_ERR_PROFILE, "not a profile"},
        {0, "[model]\ntype = text_classifier\nwidht = 3\n", CLEAT_ERR_PROFILE, "widht"},
        {1, "{\"vocabulary\": 11, \"classes\": 4}", CLEAT_ERR_SHAPE, "param/head.weight"},
        {1, "{\"vocabulary\": 11, \"classes\": 0}", CLEAT_ERR_FORMAT, "classes"},
        {1, "not json", CLEAT_ERR_FORMAT, "not json"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        copy c = copy_of_text(t);
        c.metadata[rows[i].key].value = rows[i].value;
        copy_write(&c);
        assert_error(c.path, rows[i].status, rows[i].word);
    }
    copy c = copy_of_text(t);
    c.metadata[0].key = "other";
    copy_write(&c);
    assert_error(c.path, CLEAT_ERR_FORMAT, "profile");
    c = copy_of_text(t);
    c.metadata[0].key = "config";
    copy_write(&c);
    assert_error(c.path, CLEAT_ERR_FORMAT, "tests/golden/convert.py");
}

static void fields_are_checked(void **state) {
    const tiny *t = *state;
    copy c = copy_of_text(t);
    find(&c, "label")->name = "labels";
    copy_write(&c);
    assert_error(c.path, CLEAT_ERR_FORMAT, "'label'");
    static const int64_t labels[] = {-2, 3, INT64_MAX};
    for (size_t i = 0; i < sizeof labels / sizeof *labels; ++i) {
        c = copy_of_text(t);
        integers(&c, "label")[1] = labels[i];
        copy_write(&c);
        assert_error(c.path, CLEAT_ERR_FORMAT, "label");
    }
    c = copy_of_text(t);
    integers(&c, "lengths")[1] = 30;
    copy_write(&c);
    assert_error(c.path, CLEAT_ERR_FORMAT, "lengths");
}

/* --- malformed files --- */

static void assert_error(const char *path, cleat_status status, const char *word) {
    cleat_verify_report report = {0};
    cleat_error error = {0};
    cleat_status found = cleat_verify(&(cleat_verify_request){.device = device()}, path, &report, &error);
    if (found != status) fail_msg("%s: status %d, expected %d (%s)", word, found, status, error.text);
    if (!strstr(error.text, word) || !strstr(error.text, path)) fail_msg("'%s' lacks '%s'", error.text, word);
    assert_null(report.items);
}

static void missing_arrays_are_named(void **state) {
    const tiny *t = *state;
    static const char *const names[] = {"tokens",          "coords",         "output",         "loss",
                                        "param/norm.bias", "grad/norm.bias", "after/norm.bias"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        copy c = copy_open(t);
        find(&c, names[i])->name = "something else";
        copy_write(&c);
        assert_error(c.path, CLEAT_ERR_FORMAT, names[i]);
    }
}

static void impossible_arrays_are_refused(void **state) {
    const tiny *t = *state;
    static const int64_t lengths[] = {-1, 0, 30, INT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
        copy c = copy_open(t);
        integers(&c, "lengths")[2] = lengths[i];
        copy_write(&c);
        assert_error(c.path, CLEAT_ERR_FORMAT, "length");
    }
    copy c = copy_open(t);
    find(&c, "coords")->rank = 1;
    find(&c, "coords")->shape[0] *= find(&c, "coords")->shape[1] * find(&c, "coords")->shape[2];
    copy_write(&c);
    assert_error(c.path, CLEAT_ERR_FORMAT, "coords");
    c = copy_open(t);
    cleat_st_tensor *weight = find(&c, "param/head.weight");
    weight->shape[0] = 24;
    weight->shape[1] = 3;
    copy_write(&c);
    assert_error(c.path, CLEAT_ERR_SHAPE, "param/head.weight");
}

/* Sizes in the profile or in `sizes` that contradict each other or the arrays. */
static void contradicting_sizes_are_refused(void **state) {
    const tiny *t = *state;
    static const struct {
        int key;
        const char *from, *to;
    } rows[] = {{0, "heads = 3", "heads = 5"},       {0, "heads = 3", "heads = 0"},
                {0, "d_model = 24", "d_model = 48"}, {0, "layers = 2", "layers = 3"},
                {0, "d_ff = 40", "d_ff = 1e30"},     {1, "\"vocabulary\": 5", "\"vocabulary\": -5"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        copy c = copy_open(t);
        char text[1024];
        const char *whole = c.metadata[rows[i].key].value, *at = strstr(whole, rows[i].from);
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - whole), whole, rows[i].to, at + strlen(rows[i].from));
        c.metadata[rows[i].key].value = text;
        copy_write(&c);
        cleat_verify_report report = {0};
        cleat_error error = {0};
        cleat_status status = cleat_verify(&(cleat_verify_request){.device = device()}, c.path, &report, &error);
        if (!status) fail_msg("accepted %s", rows[i].to);
        assert_non_null(strstr(error.text, c.path));
    }
}

static void cut_file_is_refused(void **state) {
    const tiny *t = *state;
    char path[TINY_PATH];
    size_t size;
    char *bytes = tiny_read(OWN_FILE, &size);
    tiny_write(tiny_path(t, "cut.safetensors", path), bytes, size / 2);
    assert_error(path, CLEAT_ERR_FORMAT, "cut.safetensors");
    cleat_free(bytes);
    assert_error(tiny_path(t, "nowhere", path), CLEAT_ERR_NOT_FOUND, "nowhere");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_trajectories_are_repeated),
        cmocka_unit_test(own_trajectories_are_repeated_in_half),
        cmocka_unit_test(shared_trajectories_are_repeated),
        cmocka_unit_test(one_wrong_value_is_found),
        cmocka_unit_test(padding_is_not_compared),
        cmocka_unit_test(missing_arrays_are_named),
        cmocka_unit_test(impossible_arrays_are_refused),
        cmocka_unit_test(wrong_metadata_are_refused),
        cmocka_unit_test(fields_are_checked),
        cmocka_unit_test(contradicting_sizes_are_refused),
        cmocka_unit_test(cut_file_is_refused),
    };
    tiny_require_device();
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}

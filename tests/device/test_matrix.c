/* Matrix units: the candidates of a card, the probe on the available device, and the result cached on
 * disk. */
/* ctest: device quick */
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
#include "device/matrix.h"
#include "open_device.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "source_path.h"

static cleat_device *device;
static char folder[64];

static int use_folder(void **state) {
    (void)state;
    make_folder(folder, sizeof folder);
    device->facts.matrix_unit = CLEAT_MATRIX_NONE;
    device->facts.matrix_bf16 = false;
    return 0;
}

static int leave_folder(void **state) {
    (void)state;
    unsetenv("CLEAT_KERNEL_DIR");
    unsetenv("CLEAT_CACHE_DIR");
    remove_folder(folder);
    return 0;
}

/* --- candidates --- */

typedef struct card {
    const char *name;
    cleat_vendor vendor;
    cleat_device_kind kind;
    int32_t capability, sub_group;
    bool listed;
    int count;
    cleat_matrix_unit first;
} card;

static void test_candidates(void **state) {
    const cleat_device_kind GPU = CLEAT_DEVICE_GPU, CPU = CLEAT_DEVICE_CPU;
    const card cards[] = {
        {"Tesla T4", CLEAT_VENDOR_NVIDIA, GPU, 75, 0, false, 1, CLEAT_MATRIX_NV75},
        {"Tesla P100", CLEAT_VENDOR_NVIDIA, GPU, 60, 0, false, 0, CLEAT_MATRIX_NONE},
        {"Tesla V100", CLEAT_VENDOR_NVIDIA, GPU, 70, 0, false, 1, CLEAT_MATRIX_NV70},
        {"Xavier", CLEAT_VENDOR_NVIDIA, GPU, 72, 0, false, 1, CLEAT_MATRIX_NV70},
        {"NVIDIA A100", CLEAT_VENDOR_NVIDIA, GPU, 80, 0, false, 2, CLEAT_MATRIX_NV80},
        {"NVIDIA H100", CLEAT_VENDOR_NVIDIA, GPU, 90, 0, false, 2, CLEAT_MATRIX_NV80},
        {"gfx1100", CLEAT_VENDOR_AMD, GPU, 0, 0, false, 1, CLEAT_MATRIX_AMD_WMMA},
        {"gfx1032", CLEAT_VENDOR_AMD, GPU, 0, 0, false, 1, CLEAT_MATRIX_AMD_DOT},
        {"gfx1201", CLEAT_VENDOR_AMD, GPU, 0, 0, false, 1, CLEAT_MATRIX_AMD_DOT},
        {"gfx1010", CLEAT_VENDOR_AMD, GPU, 0, 0, false, 0, CLEAT_MATRIX_NONE},
        {"gfx1012", CLEAT_VENDOR_AMD, GPU, 0, 0, false, 1, CLEAT_MATRIX_AMD_DOT},
        {"gfx900", CLEAT_VENDOR_AMD, GPU, 0, 0, false, 0, CLEAT_MATRIX_NONE},
        {"gfx906:sramecc-:xnack-", CLEAT_VENDOR_AMD, GPU, 0, 0, false, 1, CLEAT_MATRIX_AMD_DOT},
        {"gfx90a:sramecc+:xnack-", CLEAT_VENDOR_AMD, GPU, 0, 0, false, 1, CLEAT_MATRIX_AMD_MFMA},
        {"gfx942", CLEAT_VENDOR_AMD, GPU, 0, 0, false, 1, CLEAT_MATRIX_AMD_MFMA},
        {"Intel(R) Arc(TM) A770", CLEAT_VENDOR_INTEL, GPU, 0, 8, true, 1, CLEAT_MATRIX_INTEL8},
        {"Intel(R) Data Center GPU Max", CLEAT_VENDOR_INTEL, GPU, 0, 16, true, 1, CLEAT_MATRIX_INTEL16},
        {"Intel(R) UHD Graphics", CLEAT_VENDOR_INTEL, GPU, 0, 8, false, 0, CLEAT_MATRIX_NONE},
        {"Intel(R) Xeon(R)", CLEAT_VENDOR_INTEL, CPU, 0, 8, true, 0, CLEAT_MATRIX_NONE},
        {"cpu-sapphirerapids", CLEAT_VENDOR_POCL, CPU, 0, 0, false, 0, CLEAT_MATRIX_NONE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cards / sizeof *cards; ++i) {
        const card *c = &cards[i];
        cleat_device_facts facts = {.vendor = c->vendor, .kind = c->kind, .sub_group = c->sub_group};
        cleat_matrix_signs signs = {c->capability, c->listed};
        cleat_matrix_unit units[CLEAT_MATRIX_CANDIDATES] = {CLEAT_MATRIX_NONE};
        snprintf(facts.name, sizeof facts.name, "%s", c->name);
        if (cleat_matrix_candidates(&facts, &signs, units) != c->count || units[0] != c->first)
            fail_msg("%s: %s", c->name, cleat_matrix_unit_text(units[0]));
    }
}

/* --- the probe --- */

static void test_emulated_units_are_right(void **state) {
    static const cleat_matrix_unit units[] = {CLEAT_MATRIX_EMULATED, CLEAT_MATRIX_EMULATED_DOT,
                                              CLEAT_MATRIX_EMULATED_INTEL16};
    (void)state;
    for (int i = 0; i < 6; ++i) {
        cleat_error error = {0};
        cleat_matrix_unit unit = units[i / 2];
        if (cleat_matrix_check(device, unit, i % 2 == 1, &error))
            fail_msg("%s: %s", cleat_matrix_unit_text(unit), error.text);
    }
}

/* Writes cl/`file` into the folder, with the first occurrence of `from` replaced. */
static void put_altered(const char *file, const char *from, const char *to) {
    char path[512], altered[65536], *text = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "%s/%s", source_path("cl"), file);
    if (cleat_file_read(path, &text, &size, NULL)) fail_msg("%s", path);
    char *at = strstr(text, from);
    if (!at) fail_msg("'%s' is not in %s", from, file);
    int length = snprintf(altered, sizeof altered, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    assert_true(length > 0 && (size_t)length < sizeof altered);
    cleat_free(text);
    put_file(folder, file, altered);
}

static void test_wrong_units_are_found_out(void **state) {
    static const struct {
        cleat_matrix_unit unit;
        const char *file, *from, *to;
    } slips[] = {
        /* A is transposed */
        {CLEAT_MATRIX_EMULATED, "lib/mma.clh", "mma_a_runs(a, p, ld, 1)", "mma_a_runs(a, p, 1, ld)"},
        /* subgroups overwrite each other's scratch */
        {CLEAT_MATRIX_EMULATED, "lib/mma.clh", "scratch + 128 * MMA_SUBGROUP", "scratch + 32 * MMA_SUBGROUP"},
        /* half the product */
        {CLEAT_MATRIX_EMULATED, "lib/mma.clh", "from < 16", "from < 8"},
        /* sums rounded to 11 bits */
        {CLEAT_MATRIX_EMULATED, "lib/mma.clh", "for (int k = 0; k < 4; ++k) c->x[i]",
         "c->x[i] = as_float(as_uint(c->x[i]) & 0xffffe000u);\n for (int k = 0; k < 4; ++k) c->x[i]"},
        /* the lower half of a product is the upper one */
        {CLEAT_MATRIX_EMULATED_INTEL16, "lib/mma_intel.clh", "MMA_LEFT(a, s % 2)", "MMA_LEFT(a, 0)"},
        /* a block's lower half is read a row too early */
        {CLEAT_MATRIX_EMULATED_INTEL16, "lib/mma_intel.clh", "MMA_ROWS_US(p + 128)), 1, a->x",
         "MMA_ROWS_US(p + 112)), 1, a->x"},
        /* a column is duplicated */
        {CLEAT_MATRIX_EMULATED_DOT, "lib/mma_dot.clh", "b->x[12 + r] = MMA_HIGH", "b->x[12 + r] = MMA_LOW"},
    };
    (void)state;
    if (getenv("CLEAT_TEST_ROW")) skip(); /* Oclgrind would report these faults */
    setenv("CLEAT_KERNEL_DIR", folder, 1);
    for (size_t i = 0; i < sizeof slips / sizeof *slips; ++i) {
        cleat_error error = {0};
        char path[128];
        put_altered(slips[i].file, slips[i].from, slips[i].to);
        cleat_status status = cleat_matrix_check(device, slips[i].unit, false, &error);
        if (status != CLEAT_ERR_NOT_SUPPORTED || !strstr(error.text, " instead of "))
            fail_msg("slip %zu is not detected: %s", i, error.text);
        snprintf(path, sizeof path, "%s/%s", folder, slips[i].file);
        assert_int_equal(remove(path), 0);
    }
}

/* A driver that rejects the build options of a unit fails before it can use the unit. */
static void test_options_are_tried_too(void **state) {
    cleat_error error = {0};
    (void)state;
    if (getenv("CLEAT_TEST_ROW")) skip(); /* Oclgrind accepts any option */
    assert_int_equal(cleat_matrix_check(device, CLEAT_MATRIX_INTEL16, false, &error), CLEAT_ERR_BUILD);
    assert_non_null(strstr(error.text, "-cl-intel-256-GRF-per-thread'"));
}

/* --- the cached result --- */

static void answer_is(const char *expected) {
    char path[512], *data = NULL;
    size_t size = 0;
    assert_int_equal(cleat_matrix_path(device, path, sizeof path, NULL), CLEAT_OK);
    assert_int_equal(cleat_file_read(path, &data, &size, NULL), CLEAT_OK);
    assert_string_equal(data, expected);
    cleat_free(data);
}

static void put_answer(const char *text) {
    char path[512];
    assert_int_equal(cleat_matrix_path(device, path, sizeof path, NULL), CLEAT_OK);
    assert_int_equal(cleat_file_write(path, text, strlen(text), NULL), CLEAT_OK);
}

static void detect(cleat_matrix_unit unit) {
    device->facts.matrix_unit = CLEAT_MATRIX_NONE;
    device->facts.matrix_bf16 = false;
    cleat_matrix_detect(device, &unit, 1, 1);
}

static void test_answers_are_kept(void **state) {
    const cleat_device_facts *facts = &device->facts;
    (void)state;
    setenv("CLEAT_CACHE_DIR", folder, 1);
    detect(CLEAT_MATRIX_EMULATED);
    assert_true(facts->matrix_unit == CLEAT_MATRIX_EMULATED && facts->matrix_bf16);
    answer_is("emulated bf16\n");
    put_answer("nv75\n"); /* used without a probe */
    detect(CLEAT_MATRIX_EMULATED);
    assert_true(facts->matrix_unit == CLEAT_MATRIX_NV75 && !facts->matrix_bf16);
    put_answer("nv7"); /* damaged: probed again */
    detect(CLEAT_MATRIX_EMULATED);
    assert_true(facts->matrix_unit == CLEAT_MATRIX_EMULATED && facts->matrix_bf16);
    answer_is("emulated bf16\n");
    put_answer("trying 1\n"); /* a process ended during the probe: one retry */
    detect(CLEAT_MATRIX_EMULATED);
    assert_true(facts->matrix_unit == CLEAT_MATRIX_EMULATED && facts->matrix_bf16);
    put_answer("trying 2\n"); /* ended during the retry as well */
    detect(CLEAT_MATRIX_EMULATED);
    assert_true(facts->matrix_unit == CLEAT_MATRIX_NONE && !facts->matrix_bf16);
    answer_is("trying 2\n");
}

static void test_every_answer_is_read(void **state) {
    const cleat_device_facts *facts = &device->facts;
    (void)state;
    setenv("CLEAT_CACHE_DIR", folder, 1);
    for (int unit = 0; unit < CLEAT_MATRIX_UNITS; ++unit)
        for (int bf16 = 0; bf16 < 2; ++bf16) {
            char text[64];
            snprintf(text, sizeof text, "%s%s\n", cleat_matrix_unit_text((cleat_matrix_unit)unit), bf16 ? " bf16" : "");
            put_answer(text);
            detect(CLEAT_MATRIX_EMULATED);
            assert_int_equal(facts->matrix_unit, unit);
            assert_int_equal(facts->matrix_bf16, bf16);
            answer_is(text); /* not probed again */
        }
}

/* This device lacks these built-in functions; a device with them gives a different result. */
static void test_what_does_not_compile_is_not_there(void **state) {
    (void)state;
    if (device->facts.kind != CLEAT_DEVICE_CPU) skip();
    setenv("CLEAT_CACHE_DIR", folder, 1);
    detect(CLEAT_MATRIX_AMD_WMMA);
    assert_int_equal(device->facts.matrix_unit, CLEAT_MATRIX_NONE);
    answer_is("none\n");
}

static void test_environment_overrides(void **state) {
    cleat_device *other = NULL;
    (void)state;
    setenv("CLEAT_MATRIX_UNIT", "emulated", 1);
    assert_int_equal(cleat_device_open("0", &other, NULL), CLEAT_OK);
    assert_int_equal(cleat_device_get_facts(other)->matrix_unit, CLEAT_MATRIX_EMULATED);
    assert_true(cleat_device_get_facts(other)->matrix_bf16);
    cleat_device_close(other);
    setenv("CLEAT_MATRIX_UNIT", "none", 1);
    assert_int_equal(cleat_device_open("0", &other, NULL), CLEAT_OK);
    assert_int_equal(cleat_device_get_facts(other)->matrix_unit, CLEAT_MATRIX_NONE);
    cleat_device_close(other);
    unsetenv("CLEAT_MATRIX_UNIT");
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, use_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_candidates),
        cmocka_unit_test(test_emulated_units_are_right),
        IN_FOLDER(test_wrong_units_are_found_out),
        IN_FOLDER(test_options_are_tried_too),
        IN_FOLDER(test_answers_are_kept),
        IN_FOLDER(test_every_answer_is_read),
        IN_FOLDER(test_what_does_not_compile_is_not_there),
        cmocka_unit_test(test_environment_overrides),
    };
    device = open_device();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cleat_device_close(device);
    return failed;
}

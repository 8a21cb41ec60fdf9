/* Device selection from fictitious lists of cards. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "device/probe.h"

static cleat_device_facts card(cleat_device_kind kind, const char *name, int64_t memory, int32_t units) {
    cleat_device_facts facts = {.kind = kind, .memory_total = memory, .compute_units = units};
    snprintf(facts.name, sizeof facts.name, "%s", name);
    snprintf(facts.platform, sizeof facts.platform, "Some Platform");
    return facts;
}

enum { COUNT = 5 };

static cleat_device_facts cards[COUNT];
static const cleat_device_facts *list[COUNT];

static int make_list(void **state) {
    (void)state;
    cards[0] = card(CLEAT_DEVICE_CPU, "pthread-skylake", 64, 8);
    cards[1] = card(CLEAT_DEVICE_GPU, "Tesla T4", 16, 40);
    cards[2] = card(CLEAT_DEVICE_GPU, "Tesla T4", 16, 40);
    cards[3] = card(CLEAT_DEVICE_GPU, "Radeon RX 7900 XTX", 24, 48);
    cards[4] = card(CLEAT_DEVICE_GPU, "GeForce RTX 3090", 24, 82);
    for (int i = 0; i < COUNT; ++i) list[i] = &cards[i];
    return 0;
}

static void expect_choice(const char *selector, size_t count, size_t expected) {
    size_t index = 99;
    cleat_error error = {.text = ""};
    cleat_status status = cleat_select_device(list, count, selector, &index, &error);
    if (status || index != expected)
        fail_msg("'%s' is device %zu, not %zu: %s", selector ? selector : "(null)", index, expected, error.text);
}

static void expect_refusal(const char *selector, size_t count, cleat_status status, const char *word) {
    size_t index = 99;
    cleat_error error = {.text = ""};
    assert_int_equal(cleat_select_device(list, count, selector, &index, &error), status);
    assert_int_equal(index, 99);
    if (!strstr(error.text, word)) fail_msg("'%s' is not in: %s", word, error.text);
    bool advised = strstr(error.text, "`cleat doctor` says why") != NULL;
    if (advised != (status == CLEAT_ERR_NO_DEVICE)) fail_msg("doctor is %s in: %s", advised ? "" : "not", error.text);
    for (size_t i = 0; i < count; ++i) assert_non_null(strstr(error.text, list[i]->name));
    assert_int_equal(cleat_select_device(list, count, selector, &index, NULL), status);
}

static void test_auto(void **state) {
    (void)state;
    expect_choice("auto", COUNT, 4); /* same memory as the Radeon, more compute units */
    expect_choice(NULL, COUNT, 4);
    expect_refusal("", COUNT, CLEAT_ERR_ARGUMENT, "an empty name");
    expect_choice("auto", 3, 1); /* the first of equal devices */
    expect_choice("AUTO", 1, 0); /* no GPU: the CPU */
    cards[4].unified_memory = true;
    expect_choice("gpu", COUNT, 3); /* dedicated memory is preferred to a larger amount of host memory */
    cards[3].memory_total = cards[4].memory_total = 1024;
    cards[3].unified_memory = true;
    expect_choice("auto", COUNT, 1);
}

static void test_kinds(void **state) {
    (void)state;
    expect_choice("gpu", COUNT, 4);
    expect_choice("CPU", COUNT, 0);
    expect_refusal("gpu", 1, CLEAT_ERR_NO_DEVICE, "no device of this kind");
}

static void test_only_an_accelerator(void **state) {
    (void)state;
    cards[0].kind = CLEAT_DEVICE_OTHER;
    expect_choice("auto", 1, 0);
    expect_refusal("cpu", 1, CLEAT_ERR_NO_DEVICE, "no device of this kind");
}

static void test_numbers(void **state) {
    (void)state;
    expect_choice("0", COUNT, 0);
    expect_choice("2", COUNT, 2);
    expect_choice("3090", COUNT, 4); /* too large for an index, but part of a name */
    expect_refusal("5", COUNT, CLEAT_ERR_NO_DEVICE, "no device has this number");
    expect_refusal("99999999999999999999", COUNT, CLEAT_ERR_NO_DEVICE, "no device");
    expect_refusal("-1", COUNT, CLEAT_ERR_NO_DEVICE, "no device");
}

static void test_names(void **state) {
    (void)state;
    expect_choice("radeon", COUNT, 3);
    expect_choice("RTX 3090", COUNT, 4);
    expect_refusal("T4", COUNT, CLEAT_ERR_ARGUMENT, "more than one");
    expect_refusal("rtx 4090", COUNT, CLEAT_ERR_NO_DEVICE, "no device has this name");
}

static void test_a_whole_name_wins(void **state) {
    (void)state;
    snprintf(cards[2].name, sizeof cards[2].name, "Tesla T40");
    expect_choice("tesla t4", COUNT, 1);
    expect_choice("T40", COUNT, 2);
    expect_refusal("tesla", COUNT, CLEAT_ERR_ARGUMENT, "more than one");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_auto, make_list),
        cmocka_unit_test_setup(test_kinds, make_list),
        cmocka_unit_test_setup(test_only_an_accelerator, make_list),
        cmocka_unit_test_setup(test_numbers, make_list),
        cmocka_unit_test_setup(test_names, make_list),
        cmocka_unit_test_setup(test_a_whole_name_wins, make_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The table of hints: values that trigger each row, healthy values, unknown values. */
/* ctest: quick */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "monitor/hints.h"
#include "platform/text.h"

/* A run without hints. */
static cleat_hint_facts healthy_facts(void) {
    return (cleat_hint_facts){.profile = "profiles/x.ini",
                              .folder = "runs/x",
                              .is_gpu = true,
                              .launches = 200,
                              .launch_seconds = 5e-6,
                              .micro_batch = 8,
                              .global_batch = 32,
                              .length = 128,
                              .planned = INT64_C(9) << 30,
                              .usable = INT64_C(10) << 30};
}

static cleat_hint_stats healthy(void) {
    return (cleat_hint_stats){.seconds = 40,
                              .step_seconds = 0.1,
                              .roofline_share = 0.6,
                              .dry_share = 0.05,
                              .dry_loader = 0.02,
                              .workers = 4,
                              .busy_device = 0.95,
                              .busy_own = 0.94,
                              .thermal = 0,
                              .power_limit = 0,
                              .quota_throttled = 0,
                              .gtt_before = 1e6,
                              .gtt_now = 1e6,
                              .step_before = 0.1,
                              .step_now = 0.1};
}

/* Asserts that `wanted` is the only hint (NULL: none), with these words in its text and this command. */
static void expect(const cleat_hint_facts *facts, const cleat_hint_stats *stats, const char *wanted,
                   const char *const words[3], const char *command) {
    size_t given = 0;
    for (size_t i = 0; i < cleat_hint_count(); ++i) {
        cleat_hint hint;
        if (!cleat_hint_check(i, facts, stats, &hint)) continue;
        ++given;
        if (!wanted || strcmp(hint.name, wanted) != 0) fail_msg("unwanted hint %s: %s", hint.name, hint.text);
        for (int k = 0; k < 3 && words[k]; ++k)
            if (!strstr(hint.text, words[k])) fail_msg("no '%s' in: %s", words[k], hint.text);
        assert_string_equal(hint.command, command);
        assert_true(strlen(hint.text) < CLEAT_HINT_TEXT - 1); /* not truncated */
    }
    if (given != (wanted ? 1u : 0u)) fail_msg("%zu hints instead of %s", given, wanted ? wanted : "none");
}
#define WORDS(...) ((const char *const[3]){__VA_ARGS__})
#define NO_WORDS WORDS(NULL)

static void a_healthy_run_gets_none(void **state) {
    (void)state;
    cleat_hint_facts facts = healthy_facts();
    cleat_hint_stats stats = healthy();
    expect(&facts, &stats, NULL, NO_WORDS, "");
}

static void unknown_figures_give_none(void **state) {
    (void)state;
    cleat_hint_facts facts = {.profile = "p", .folder = "f", .launches = NAN, .launch_seconds = NAN, .is_gpu = true};
    cleat_hint_stats stats = {.seconds = 1000,
                              .step_seconds = NAN,
                              .roofline_share = NAN,
                              .dry_share = NAN,
                              .dry_loader = NAN,
                              .workers = NAN,
                              .busy_device = NAN,
                              .busy_own = NAN,
                              .thermal = NAN,
                              .power_limit = NAN,
                              .quota_throttled = NAN,
                              .gtt_before = NAN,
                              .gtt_now = NAN,
                              .step_before = NAN,
                              .step_now = NAN};
    expect(&facts, &stats, NULL, NO_WORDS, "");
    stats.busy_device = 1; /* the load's owner is unknown */
    stats.gtt_now = 1e12;
    expect(&facts, &stats, NULL, NO_WORDS, "");
}

static void nothing_is_said_in_the_first_seconds(void **state) {
    (void)state;
    cleat_hint_facts facts = healthy_facts();
    cleat_hint_stats stats = healthy();
    stats.dry_loader = 0.5;
    stats.seconds = 29.9;
    expect(&facts, &stats, NULL, NO_WORDS, "");
    stats.seconds = 30;
    expect(&facts, &stats, "loader_bound", WORDS("50 %", "4 threads"), "cleat find-workers profiles/x.ini --write");
    facts.min_seconds = 60;
    expect(&facts, &stats, NULL, NO_WORDS, "");
}

static void a_late_loader(void **state) {
    (void)state;
    cleat_hint_facts facts = healthy_facts();
    cleat_hint_stats stats = healthy();
    stats.dry_loader = 0.10;
    expect(&facts, &stats, NULL, NO_WORDS, "");
    stats.dry_loader = 0.31;
    stats.roofline_share = 0.1; /* a consequence, not a second hint */
    stats.step_seconds = 0.002;
    facts.larger_micro_batch = 32;
    expect(&facts, &stats, "loader_bound", WORDS("31 %"), "cleat find-workers profiles/x.ini --write");
}

static void short_kernels(void **state) {
    (void)state;
    cleat_hint_facts facts = healthy_facts();
    cleat_hint_stats stats = healthy();
    stats.roofline_share = 0.1;
    stats.step_seconds = 0.0038; /* 19 us per kernel, 5 of them for the launch: 26 % */
    expect(&facts, &stats, "launch_bound", WORDS("200", "19.0 us", "26 %"), "cleat find-batch profiles/x.ini");
    facts.larger_micro_batch = 32; /* find-batch is suggested once */
    expect(&facts, &stats, "launch_bound", WORDS("19.0 us"), "cleat find-batch profiles/x.ini");
    facts = healthy_facts();
    stats.step_seconds = 0.0042;
    expect(&facts, &stats, NULL, NO_WORDS, "");
    stats.roofline_share = 0.5;
    facts.launch_seconds = 7e-6; /* 33 % */
    expect(&facts, &stats, "launch_bound", WORDS("33 %"), "cleat find-batch profiles/x.ini");
}

static void a_small_batch(void **state) {
    (void)state;
    cleat_hint_facts facts = healthy_facts();
    cleat_hint_stats stats = healthy();
    stats.roofline_share = 0.12;
    stats.step_seconds = 0.012; /* 60 us per kernel */
    expect(&facts, &stats, NULL, NO_WORDS, "");
    facts.larger_micro_batch = 32;
    facts.larger_bytes = INT64_C(5) << 30;
    facts.planned = INT64_C(1) << 30;
    expect(&facts, &stats, "small_batch", WORDS("32 would fit", "5.00 GiB of 10.00 GiB", "train.batch_size limits"),
           "cleat find-batch profiles/x.ini");
    facts.global_batch = facts.micro_batch;
    expect(&facts, &stats, "small_batch", WORDS("train.effective_batch_size would have to grow"),
           "cleat find-batch profiles/x.ini");
}

static void limits_of_the_card(void **state) {
    (void)state;
    cleat_hint_facts facts = healthy_facts();
    cleat_hint_stats stats = healthy();
    stats.thermal = 0.4;
    expect(&facts, &stats, "thermal", WORDS("temperature", "40 %"), "");
    stats = healthy();
    stats.power_limit = 0.4; /* usual if occasional */
    expect(&facts, &stats, NULL, NO_WORDS, "");
    stats.power_limit = 0.9;
    expect(&facts, &stats, "power_limit", WORDS("power limit", "90 %"), "");
}

static void limits_of_the_host(void **state) {
    (void)state;
    cleat_hint_facts facts = healthy_facts();
    cleat_hint_stats stats = healthy();
    stats.quota_throttled = 0.05;
    expect(&facts, &stats, NULL, NO_WORDS, "");
    stats.quota_throttled = 0.2;
    expect(&facts, &stats, "quota_throttled", WORDS("CPU quota", "20 %"), "");
}

static void others_on_the_device(void **state) {
    (void)state;
    cleat_hint_facts facts = healthy_facts();
    cleat_hint_stats stats = healthy();
    stats.busy_own = 0.81;
    expect(&facts, &stats, NULL, NO_WORDS, "");
    stats.busy_own = 0.4;
    expect(&facts, &stats, "foreign_load", WORDS("take 55 %", "95 %", "40 %"), "");
    facts.is_gpu = false; /* a CPU's owner can find out who uses it */
    expect(&facts, &stats, "foreign_load", WORDS("take 55 %"), "ps -eo pcpu,pid,user,args --sort=-pcpu | head");
    stats.roofline_share = 0.12; /* of the remaining 45 %: the kernels are not the cause */
    stats.step_seconds = 0.012;
    facts.larger_micro_batch = 32;
    expect(&facts, &stats, "foreign_load", WORDS("take 55 %"), "ps -eo pcpu,pid,user,args --sort=-pcpu | head");
}

static void memory_that_moves_out(void **state) {
    (void)state;
    cleat_hint_facts facts = healthy_facts();
    cleat_hint_stats stats = healthy();
    stats.gtt_now = 1e9;
    expect(&facts, &stats, NULL, NO_WORDS, ""); /* steps are not slower */
    stats.step_now = 0.13;
    expect(&facts, &stats, "spilling", WORDS("953.67 MiB", "130.0 ms", "100.0 ms"),
           "cleat train profiles/x.ini --resume --out runs/x --set run.max_memory_usage=0.7");
    stats.gtt_now = 2e6;
    expect(&facts, &stats, NULL, NO_WORDS, "");
}

static void memory_that_lies_idle(void **state) {
    (void)state;
    cleat_hint_facts facts = healthy_facts();
    cleat_hint_stats stats = healthy();
    facts.planned = INT64_C(1) << 30;
    facts.larger_micro_batch = 32;
    facts.larger_bytes = INT64_C(4) << 30;
    stats.roofline_share = 0.4;
    expect(&facts, &stats, "memory_unused", WORDS("1.00 GiB of 10.00 GiB", "40 %", "4.00 GiB"),
           "cleat find-batch profiles/x.ini");
    stats.roofline_share = 0.6; /* fast enough */
    expect(&facts, &stats, NULL, NO_WORDS, "");
    stats.roofline_share = 0.4;
    facts.is_gpu = false; /* other processes need a CPU's memory */
    expect(&facts, &stats, NULL, NO_WORDS, "");
}

/* The command can be pasted unchanged. */
static void paths_are_words_of_a_shell(void **state) {
    char path[2000];
    (void)state;
    cleat_hint_facts facts = healthy_facts();
    cleat_hint_stats stats = healthy();
    stats.dry_loader = 0.5;
    facts.profile = "my profiles/its.ini";
    expect(&facts, &stats, "loader_bound", (const char *[3]){0},
           "cleat find-workers " CLEAT_SHELL_QUOTE "my profiles/its.ini" CLEAT_SHELL_QUOTE " --write");
    facts.options = " --set train.seed=2 --device gpu"; /* need no quotes */
    expect(&facts, &stats, "loader_bound", (const char *[3]){0},
           "cleat find-workers " CLEAT_SHELL_QUOTE "my profiles/its.ini" CLEAT_SHELL_QUOTE
           " --set train.seed=2 --device gpu --write");
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = 0;
    facts.options = path;
    expect(&facts, &stats, "loader_bound", (const char *[3]){0}, "");
    facts.options = NULL;
    facts.profile = path;
    expect(&facts, &stats, "loader_bound", (const char *[3]){0}, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_healthy_run_gets_none),
        cmocka_unit_test(unknown_figures_give_none),
        cmocka_unit_test(nothing_is_said_in_the_first_seconds),
        cmocka_unit_test(a_late_loader),
        cmocka_unit_test(short_kernels),
        cmocka_unit_test(a_small_batch),
        cmocka_unit_test(limits_of_the_card),
        cmocka_unit_test(limits_of_the_host),
        cmocka_unit_test(others_on_the_device),
        cmocka_unit_test(memory_that_moves_out),
        cmocka_unit_test(memory_that_lies_idle),
        cmocka_unit_test(paths_are_words_of_a_shell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

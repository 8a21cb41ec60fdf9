/* Shares of two ranks: given ones, those by the speed of the devices, those by measured steps; cuts of a global batch. The
 * transport (tests/ranks/link/pair.c) plays a second rank whose seconds are three times as many. */
#include "train/data_parallel.h"

#include "core/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static cleat_ranks *ranks;
static cleat_profile *profile;

static int join(void **state) {
    (void)state;
    cleat_error error = {0};
    setenv("CLEAT_RANKS_LIBRARY", CLEAT_PAIR_TRANSPORT, 1);
    if (cleat_ranks_open(&ranks, &error)) fail_msg("%s", error.text);
    assert_int_equal(cleat_profile_create(&profile, &error), CLEAT_OK);
    assert_int_equal(cleat_profile_set(profile, "train.effective_batch_size=32", &error), CLEAT_OK);
    return 0;
}

static int leave(void **state) {
    (void)state;
    cleat_profile_destroy(profile);
    cleat_ranks_close(ranks);
    return 0;
}

static void expect_shares(const cleat_data_parallel *parallel, int64_t first, int64_t second) {
    assert_int_equal(parallel->shares[0], first);
    assert_int_equal(parallel->shares[1], second);
}

static void given_shares_are_taken(void **state) {
    (void)state;
    cleat_data_parallel parallel;
    cleat_error error = {0};
    profile->distribute.shares = (cleat_int_list){.count = 2, .values = {3, 1}};
    assert_int_equal(cleat_data_parallel_open(&parallel, ranks, profile, NULL, 0, &error), CLEAT_OK);
    expect_shares(&parallel, 3, 1);
    assert_int_equal(cleat_data_parallel_part(&parallel, 32), 24);
    cleat_data_parallel_close(&parallel);
    profile->distribute.shares.count = 3;
    assert_int_equal(cleat_data_parallel_open(&parallel, ranks, profile, NULL, 0, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "3 values, but there are 2 ranks"));
    cleat_data_parallel_close(&parallel);
    profile->distribute.shares = (cleat_int_list){.count = 2, .values = {0, 0}};
    assert_int_equal(cleat_data_parallel_open(&parallel, ranks, profile, NULL, 0, &error), CLEAT_ERR_ARGUMENT);
    cleat_data_parallel_close(&parallel);
    profile->distribute.shares = (cleat_int_list){.count = 0};
}

/* As a rate, three times as much is faster; a rate that is not known gives equal parts. */
static void rates_give_the_first_shares(void **state) {
    (void)state;
    cleat_data_parallel parallel;
    cleat_error error = {0};
    assert_int_equal(cleat_data_parallel_open(&parallel, ranks, profile, NULL, 1e11, &error), CLEAT_OK);
    expect_shares(&parallel, 8, 24);
    cleat_data_parallel_close(&parallel);
    assert_int_equal(cleat_data_parallel_open(&parallel, ranks, profile, NULL, 0, &error), CLEAT_OK);
    expect_shares(&parallel, 16, 16);
    cleat_data_parallel_close(&parallel);
}

/* Rank 1 takes three times as long for a sample. */
static void measured_steps_move_the_shares(void **state) {
    (void)state;
    cleat_data_parallel parallel;
    cleat_error error = {0};
    bool changed = true;
    assert_int_equal(cleat_data_parallel_open(&parallel, ranks, profile, NULL, 0, &error), CLEAT_OK);
    parallel.steps = 4, parallel.computing = 0.8, parallel.computed = 64;
    assert_int_equal(cleat_data_parallel_balance(&parallel, 32, &changed, &error), CLEAT_OK);
    assert_false(changed); /* too few steps */
    parallel.steps = 5, parallel.computing = 1, parallel.computed = 80;
    assert_int_equal(cleat_data_parallel_balance(&parallel, 32, &changed, &error), CLEAT_OK);
    assert_true(changed);
    expect_shares(&parallel, 24, 8);
    parallel.steps = 250, parallel.computing = 1, parallel.computed = 80;
    assert_int_equal(cleat_data_parallel_balance(&parallel, 32, &changed, &error), CLEAT_OK);
    assert_false(changed); /* they are the best ones */
    expect_shares(&parallel, 24, 8);
    cleat_data_parallel_close(&parallel);
}

static char said[2048];

static void keep_log(void *user, cleat_log_level level, const char *text) {
    (void)user;
    if (level == CLEAT_LOG_WARNING) snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", text);
}

/* Of 2 samples rank 1 would take one, in three times the time of a sample; rank 0 takes both in twice. */
static void a_rank_that_slows_the_step_is_left_out(void **state) {
    (void)state;
    cleat_data_parallel parallel;
    cleat_error error = {0};
    bool changed = true;
    cleat_set_log(keep_log, NULL, CLEAT_LOG_WARNING);
    said[0] = 0;
    assert_int_equal(cleat_data_parallel_open(&parallel, ranks, profile, NULL, 0, &error), CLEAT_OK);
    for (int turn = 0; turn < 2; ++turn) { /* the first may have been a pause */
        assert_false(turn > 0 && changed);
        assert_string_equal(said, "");
        parallel.steps = 5, parallel.computing = 1, parallel.computed = 80;
        assert_int_equal(cleat_data_parallel_balance(&parallel, 2, &changed, &error), CLEAT_OK);
    }
    assert_true(changed);
    expect_shares(&parallel, 2, 0);
    assert_non_null(strstr(said, "rank 1 is left out"));
    assert_non_null(strstr(said, "one sample takes it 37.5 ms, a step without it 25 ms"));
    for (int64_t samples = 1; samples < 9; ++samples) {
        int64_t first, count;
        cleat_data_parallel_cut(&parallel, samples, &first, &count);
        assert_int_equal(count, samples);
    }
    parallel.steps = 250, parallel.computing = 1, parallel.computed = 80; /* it stays out, and nothing fails */
    assert_int_equal(cleat_data_parallel_balance(&parallel, 2, &changed, &error), CLEAT_OK);
    assert_false(changed);
    expect_shares(&parallel, 2, 0);
    cleat_data_parallel_close(&parallel);
    cleat_set_log(NULL, NULL, CLEAT_LOG_INFO);
}

/* A doubt that does not come again leaves nobody out. Shares do not follow from it either. */
static void one_pause_leaves_nobody_out(void **state) {
    (void)state;
    cleat_data_parallel parallel;
    cleat_error error = {0};
    bool changed = true;
    assert_int_equal(cleat_data_parallel_open(&parallel, ranks, profile, NULL, 0, &error), CLEAT_OK);
    parallel.steps = 5, parallel.computing = 1, parallel.computed = 80;
    assert_int_equal(cleat_data_parallel_balance(&parallel, 2, &changed, &error), CLEAT_OK);
    assert_false(changed);
    parallel.steps = 5, parallel.computing = 1, parallel.computed = 80;
    assert_int_equal(cleat_data_parallel_balance(&parallel, 32, &changed, &error), CLEAT_OK);
    assert_true(changed);
    expect_shares(&parallel, 24, 8);
    cleat_data_parallel_close(&parallel);
}

/* 32 samples take 12.5 ms each: 300 ms with rank 1, 400 ms alone. */
static void an_exchange_that_costs_more_than_it_saves_is_said(void **state) {
    static const double exposed[] = {0.1, 0.2}; /* seconds a step */
    (void)state;
    cleat_set_log(keep_log, NULL, CLEAT_LOG_WARNING);
    for (int i = 0; i < 2; ++i) {
        cleat_data_parallel parallel;
        cleat_error error = {0};
        bool changed;
        said[0] = 0;
        assert_int_equal(cleat_data_parallel_open(&parallel, ranks, profile, NULL, 0, &error), CLEAT_OK);
        parallel.steps = 5, parallel.computing = 1, parallel.computed = 80, parallel.exposed = 5 * exposed[i];
        assert_int_equal(cleat_data_parallel_balance(&parallel, 32, &changed, &error), CLEAT_OK);
        assert_true(changed);
        if (i == 0)
            assert_string_equal(said, "");
        else
            assert_non_null(strstr(said, "takes 500 ms, of which the exchange of gradients takes 200 ms; rank 0 alone "
                                         "would take 400 ms"));
        cleat_data_parallel_close(&parallel);
    }
    cleat_set_log(NULL, NULL, CLEAT_LOG_INFO);
}

static void parts_of_a_batch_have_all_samples_once(void **state) {
    (void)state;
    cleat_data_parallel parallel;
    profile->distribute.shares = (cleat_int_list){.count = 2, .values = {5, 3}};
    assert_int_equal(cleat_data_parallel_open(&parallel, ranks, profile, NULL, 0, NULL), CLEAT_OK);
    for (int64_t samples = 1; samples < 40; ++samples) {
        int64_t first = -1, count = -1;
        cleat_data_parallel_cut(&parallel, samples, &first, &count);
        assert_int_equal(first, 0);
        assert_in_range(count, samples * 5 / 8, (samples * 5 + 7) / 8);
    }
    cleat_data_parallel_close(&parallel);
    profile->distribute.shares = (cleat_int_list){.count = 0};
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(given_shares_are_taken),
                                       cmocka_unit_test(rates_give_the_first_shares),
                                       cmocka_unit_test(measured_steps_move_the_shares),
                                       cmocka_unit_test(a_rank_that_slows_the_step_is_left_out),
                                       cmocka_unit_test(one_pause_leaves_nobody_out),
                                       cmocka_unit_test(an_exchange_that_costs_more_than_it_saves_is_said),
                                       cmocka_unit_test(parts_of_a_batch_have_all_samples_once)};
    return cmocka_run_group_tests(tests, join, leave);
}

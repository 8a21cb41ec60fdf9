/* Shares of two ranks: as set, by device speed, and by measured steps; division of a global batch. The
 * transport (tests/ranks/link/pair.c) simulates a second rank that takes three times as long. */
/* ctest: quick */
/* ctest: wrap=cleat_session_flat,cleat_session_values,cleat_session_read_values */
/* ctest: wrap=cleat_session_read_flat,cleat_session_write_flat,cleat_session_hash_blocks,cleat_ranks_compare */
#include "platform/processes.h"
#include "train/data_parallel.h"

#include "core/files.h"
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

static char said[2048];
static cleat_log_level shown = CLEAT_LOG_WARNING;

static void keep_log(void *user, cleat_log_level level, const char *text) {
    (void)user;
    if (level <= shown) snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", text);
}

static void given_shares_are_taken(void **state) {
    (void)state;
    cleat_data_parallel parallel;
    cleat_error error = {0};
    profile->distribute.shares = (cleat_int_list){.count = 2, .values = {3, 1}};
    said[0] = 0;
    shown = CLEAT_LOG_INFO;
    cleat_set_log(keep_log, NULL, CLEAT_LOG_INFO);
    assert_int_equal(cleat_data_parallel_open(&parallel, ranks, profile, NULL, 0, &error), CLEAT_OK);
    cleat_set_log(NULL, NULL, CLEAT_LOG_INFO);
    shown = CLEAT_LOG_WARNING;
    assert_non_null(strstr(said, ": 3 : 1 ("));
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

/* As a rate, three times as much is faster; an unknown rate gives equal shares. */
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

/* Rank 1 takes three times as long per sample. */
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
    assert_false(changed); /* these shares are optimal */
    expect_shares(&parallel, 24, 8);
    cleat_data_parallel_close(&parallel);
}

/* A resumed run's shares are measured early, once; for this, a smaller gain is enough. */
static void new_shares_are_refined(void **state) {
    static const int64_t given[2][2] = {{27, 5}, {25, 7}}; /* a step takes 27 / 24 and 25 / 24 of the optimum */
    (void)state;
    for (int i = 0; i < 2; ++i) {
        cleat_data_parallel parallel;
        cleat_error error = {0};
        bool changed = true;
        assert_int_equal(cleat_data_parallel_open(&parallel, ranks, profile, given[i], 0, &error), CLEAT_OK);
        parallel.steps = 19, parallel.computing = 1, parallel.computed = 80;
        assert_int_equal(cleat_data_parallel_balance(&parallel, 32, &changed, &error), CLEAT_OK);
        assert_false(changed); /* too few steps */
        parallel.steps = 20;
        assert_int_equal(cleat_data_parallel_balance(&parallel, 32, &changed, &error), CLEAT_OK);
        assert_int_equal(changed, i == 0);
        if (i == 0) expect_shares(&parallel, 24, 8);
        parallel.shares[0] = 16, parallel.shares[1] = 16;
        parallel.steps = 199, parallel.computing = 1, parallel.computed = 80;
        assert_int_equal(cleat_data_parallel_balance(&parallel, 32, &changed, &error), CLEAT_OK);
        assert_false(changed);
        cleat_data_parallel_close(&parallel);
    }
}

/* With 2 samples, rank 1 would take 3 units of time for one; rank 0 takes 2 for both. */
static void a_rank_that_slows_the_step_is_left_out(void **state) {
    (void)state;
    cleat_data_parallel parallel;
    cleat_error error = {0};
    bool changed = true;
    cleat_set_log(keep_log, NULL, CLEAT_LOG_WARNING);
    said[0] = 0;
    assert_int_equal(cleat_data_parallel_open(&parallel, ranks, profile, NULL, 0, &error), CLEAT_OK);
    for (int turn = 0; turn < 2; ++turn) { /* the first may be a pause */
        assert_false(turn > 0 && changed);
        assert_string_equal(said, "");
        parallel.steps = 5, parallel.computing = 1, parallel.computed = 80;
        assert_int_equal(cleat_data_parallel_balance(&parallel, 2, &changed, &error), CLEAT_OK);
    }
    assert_true(changed);
    expect_shares(&parallel, 2, 0);
    assert_non_null(strstr(said, "rank 1 is left out"));
    assert_non_null(strstr(said, "it takes 37.5 ms for one sample, a step without it 25 ms"));
    for (int64_t samples = 1; samples < 9; ++samples) {
        int64_t first, count;
        cleat_data_parallel_cut(&parallel, samples, &first, &count);
        assert_int_equal(count, samples);
    }
    parallel.steps = 250, parallel.computing = 1, parallel.computed = 80; /* it remains idle, and nothing fails */
    assert_int_equal(cleat_data_parallel_balance(&parallel, 2, &changed, &error), CLEAT_OK);
    assert_false(changed);
    expect_shares(&parallel, 2, 0);
    cleat_data_parallel_close(&parallel);
    cleat_set_log(NULL, NULL, CLEAT_LOG_INFO);
}

/* A single slow report neither excludes a rank nor changes the shares. */
static void one_pause_leaves_no_rank_out(void **state) {
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

/* --- replicas: the linker replaces a session on a device, and the values of rank 1 --- */

enum { FLAT = 3, VALUES = 5 };
static bool differs;
static int comparisons, sent;

int64_t __wrap_cleat_session_flat(const cleat_session *session);
int64_t __wrap_cleat_session_values(const cleat_session *session);
cleat_status __wrap_cleat_session_read_values(cleat_session *session, float *values, cleat_error *error);
cleat_status __wrap_cleat_session_read_flat(cleat_session *session, cleat_flat_buffer which, float *values,
                                            cleat_error *error);
cleat_status __wrap_cleat_session_write_flat(cleat_session *session, cleat_flat_buffer which, const float *values,
                                             cleat_error *error);
cleat_status __wrap_cleat_ranks_compare(cleat_ranks *all, const char *what, const char hash[33], cleat_error *error);

cleat_status __wrap_cleat_session_hash_blocks(cleat_session *session, char hash[33], cleat_error *error);
cleat_status __wrap_cleat_session_hash_blocks(cleat_session *session, char hash[33], cleat_error *error) {
    (void)session, (void)hash, (void)error;
    return CLEAT_OK;
}

int64_t __wrap_cleat_session_flat(const cleat_session *session) {
    (void)session;
    return FLAT;
}

int64_t __wrap_cleat_session_values(const cleat_session *session) {
    (void)session;
    return VALUES;
}

cleat_status __wrap_cleat_session_read_values(cleat_session *session, float *values, cleat_error *error) {
    (void)session, (void)error;
    for (int i = 0; i < VALUES; ++i) values[i] = (float)i + 0.5f;
    return CLEAT_OK;
}

cleat_status __wrap_cleat_session_read_flat(cleat_session *session, cleat_flat_buffer which, float *values,
                                            cleat_error *error) {
    (void)session, (void)error;
    assert_int_equal(which, CLEAT_FLAT_PARAMETERS);
    for (int i = 0; i < FLAT; ++i) values[i] = (float)i + 0.5f;
    return CLEAT_OK;
}

cleat_status __wrap_cleat_session_write_flat(cleat_session *session, cleat_flat_buffer which, const float *values,
                                             cleat_error *error) {
    (void)session, (void)error;
    assert_int_equal(which, CLEAT_FLAT_PARAMETERS);
    for (int i = 0; i < FLAT; ++i) assert_true(values[i] == (float)i + 0.5f);
    ++sent;
    return CLEAT_OK;
}

/* The hash covers all values, including buffers. */
cleat_status __wrap_cleat_ranks_compare(cleat_ranks *all, const char *what, const char hash[33], cleat_error *error) {
    float values[VALUES];
    char wanted[33];
    (void)all, (void)what;
    __wrap_cleat_session_read_values(NULL, values, NULL);
    cleat_hash_text(values, sizeof values, wanted);
    assert_string_equal(hash, wanted);
    ++comparisons;
    return differs ? cleat_fail(error, CLEAT_ERR_ARGUMENT, "rank 1 has others") : CLEAT_OK;
}

/* Ends steps `from` to `to` until one fails; returns the last one that ended. */
static int64_t end_steps(cleat_data_parallel *parallel, int64_t from, int64_t to, cleat_error *error) {
    cleat_session session = {.profile = profile};
    int64_t step = from;
    while (cleat_data_parallel_end(parallel, &session, step, error) == CLEAT_OK && step < to) ++step;
    return step;
}

static void open_with(cleat_data_parallel *parallel, const char *check) {
    cleat_error error = {0};
    differs = false;
    comparisons = sent = 0;
    said[0] = 0;
    assert_int_equal(cleat_profile_set(profile, check, &error), CLEAT_OK);
    assert_int_equal(cleat_data_parallel_open(parallel, ranks, profile, NULL, 0, &error), CLEAT_OK);
}

/* A faulty device: parameters are equal in the first steps and differ in a later one. The next check detects it. */
static void parameters_that_differ_later_end_the_run(void **state) {
    (void)state;
    cleat_data_parallel parallel;
    cleat_error error = {0};
    open_with(&parallel, "distribute.check_every_steps=10");
    assert_int_equal(end_steps(&parallel, 1, 39, &error), 39);
    assert_int_equal(comparisons, 3 + 3); /* the first three steps; 10, 20, 30 */
    differs = true;
    assert_int_equal(end_steps(&parallel, 41, 59, &error), 50);
    assert_int_equal(error.status, CLEAT_ERR_DEVICE);
    assert_non_null(strstr(error.text, "step 50: the parameters of the ranks differ"));
    assert_int_equal(sent, 0);
    cleat_data_parallel_close(&parallel);
    open_with(&parallel, "distribute.check_every_steps=none");
    assert_int_equal(end_steps(&parallel, 1, 100, &error), 100);
    assert_int_equal(comparisons, 3);
    cleat_data_parallel_close(&parallel);
}

/* Devices that differ from the first update on round differently: rank 0's parameters apply from then on. */
static void devices_that_round_differently_follow_rank_0(void **state) {
    (void)state;
    cleat_data_parallel parallel;
    cleat_error error = {0};
    open_with(&parallel, "distribute.check_every_steps=10");
    cleat_set_log(keep_log, NULL, CLEAT_LOG_WARNING);
    differs = true;
    assert_int_equal(end_steps(&parallel, 1, 25, &error), 25);
    cleat_set_log(NULL, NULL, CLEAT_LOG_INFO);
    assert_int_equal(comparisons, 1);
    assert_int_equal(sent, 25);
    assert_non_null(strstr(said, "round updates differently"));
    cleat_data_parallel_close(&parallel);
}

static void ranks_that_start_differently_do_not_start(void **state) {
    (void)state;
    cleat_data_parallel parallel;
    cleat_session session = {.profile = profile};
    cleat_error error = {0};
    open_with(&parallel, "distribute.check_every_steps=10");
    assert_int_equal(cleat_data_parallel_check_start(&parallel, &session, &error), CLEAT_OK);
    differs = true;
    assert_int_equal(cleat_data_parallel_check_start(&parallel, &session, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "the ranks start from different parameters"));
    cleat_data_parallel_close(&parallel);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(given_shares_are_taken),
                                       cmocka_unit_test(rates_give_the_first_shares),
                                       cmocka_unit_test(measured_steps_move_the_shares),
                                       cmocka_unit_test(new_shares_are_refined),
                                       cmocka_unit_test(a_rank_that_slows_the_step_is_left_out),
                                       cmocka_unit_test(one_pause_leaves_no_rank_out),
                                       cmocka_unit_test(an_exchange_that_costs_more_than_it_saves_is_said),
                                       cmocka_unit_test(parts_of_a_batch_have_all_samples_once),
                                       cmocka_unit_test(parameters_that_differ_later_end_the_run),
                                       cmocka_unit_test(devices_that_round_differently_follow_rank_0),
                                       cmocka_unit_test(ranks_that_start_differently_do_not_start)};
    return cmocka_run_group_tests(tests, join, leave);
}

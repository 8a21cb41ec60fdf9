/* Shares of a global batch against all partitions and all subsets of ranks; ties; 64 ranks; invalid arguments. */
/* ctest: quick no-memcheck */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "fit/shares.h"

enum { RANKS = 4, SAMPLES = 13, MANY = 64 };

static uint64_t seed = 1;

/* An integer from 0 to `most`. */
static int64_t draw(int64_t most) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((seed >> 33) % (uint64_t)(most + 1));
}

/* Multiples of 1/8 s are exact, so ties are frequent. */
static cleat_rank_time draw_time(void) {
    return (cleat_rank_time){.fixed_seconds = (double)draw(16) / 8, .seconds_per_sample = (double)(1 + draw(8)) / 8};
}

/* --- all partitions ----------------------------------------------------------------------------------------------- */

typedef struct search {
    int ranks;
    const cleat_rank_time *times;
    const double *communication; /* NULL: every rank takes part */
    double least;
} search;

static void try_partitions(search *s, int rank, int64_t rest, int used, double slowest) {
    if (rank == s->ranks) {
        if (rest == 0) s->least = fmin(s->least, slowest + (s->communication ? s->communication[used - 1] : 0));
        return;
    }
    for (int64_t n = s->communication ? 0 : 1; n <= rest; ++n)
        try_partitions(s, rank + 1, rest - n, used + (n > 0), fmax(slowest, cleat_rank_seconds(&s->times[rank], n)));
}

static double least_seconds(int ranks, const cleat_rank_time *times, int64_t samples, const double *communication) {
    search s = {ranks, times, communication, INFINITY};
    try_partitions(&s, 0, samples, 0, 0);
    return s.least;
}

static double slowest(int ranks, const cleat_rank_time *times, const int64_t *shares, int64_t samples) {
    double longest = 0;
    int64_t sum = 0;
    for (int r = 0; r < ranks; ++r) {
        assert_true(shares[r] >= 0);
        longest = fmax(longest, cleat_rank_seconds(&times[r], shares[r]));
        sum += shares[r];
    }
    assert_int_equal(sum, samples);
    return longest;
}

static void no_partition_is_faster(void **state) {
    (void)state;
    int solved = 0;
    for (int trial = 0; trial < 4000; ++trial) {
        cleat_rank_time times[RANKS];
        int64_t shares[RANKS], samples = 1 + draw(SAMPLES - 1);
        int ranks = 1 + (int)draw(RANKS - 1);
        double seconds = -1;
        for (int r = 0; r < ranks; ++r) times[r] = draw_time();
        double expected = least_seconds(ranks, times, samples, NULL);
        cleat_status status = cleat_shares_solve(ranks, times, samples, shares, &seconds, NULL);
        if (isinf(expected)) {
            assert_true(status == CLEAT_ERR_ARGUMENT && samples < ranks);
            continue;
        }
        assert_int_equal(status, CLEAT_OK);
        assert_true(slowest(ranks, times, shares, samples) == expected && seconds == expected);
        for (int r = 0; r < ranks; ++r) assert_true(shares[r] >= 1);
        ++solved;
    }
    assert_true(solved > 2000);
}

static void no_choice_of_ranks_is_faster(void **state) {
    (void)state;
    int left_out = 0;
    for (int trial = 0; trial < 3000; ++trial) {
        cleat_rank_time times[RANKS];
        int64_t shares[RANKS], samples = 1 + draw(9);
        int ranks = 1 + (int)draw(RANKS - 1), used = 0;
        double communication[RANKS] = {0}, seconds;
        for (int r = 0; r < ranks; ++r) times[r] = draw_time();
        for (int r = 1; r < ranks; ++r) communication[r] = (double)draw(16) / 8;
        double expected = least_seconds(ranks, times, samples, communication);
        assert_int_equal(cleat_shares_choose(ranks, times, samples, communication, shares, &seconds, NULL), CLEAT_OK);
        for (int r = 0; r < ranks; ++r) used += shares[r] > 0;
        assert_true(slowest(ranks, times, shares, samples) + communication[used - 1] == expected);
        assert_true(seconds == expected);
        left_out += ranks - used;
    }
    assert_true(left_out > 500);
}

/* --- known cases -------------------------------------------------------------------------------------------------- */

static void earlier_of_equal_ranks_get_more(void **state) {
    (void)state;
    const cleat_rank_time same = {.fixed_seconds = 0.1, .seconds_per_sample = 0.3};
    const cleat_rank_time three[] = {same, same, same};
    const double free[3] = {0}, dear[3] = {0, 0.5, 1};
    int64_t shares[3];
    assert_int_equal(cleat_shares_solve(3, three, 8, shares, NULL, NULL), CLEAT_OK);
    assert_memory_equal(shares, ((int64_t[]){3, 3, 2}), sizeof shares);
    assert_int_equal(cleat_shares_choose(3, three, 2, free, shares, NULL, NULL), CLEAT_OK);
    assert_memory_equal(shares, ((int64_t[]){1, 1, 0}), sizeof shares);
    /* four samples: 1.3 s alone; 0.7 + 0.5 s by two; 0.7 + 1 s by three */
    assert_int_equal(cleat_shares_choose(3, three, 4, dear, shares, NULL, NULL), CLEAT_OK);
    assert_memory_equal(shares, ((int64_t[]){2, 2, 0}), sizeof shares);
}

/* A rank that is three times as fast gets three times as many samples. */
static void shares_follow_speeds(void **state) {
    (void)state;
    const cleat_rank_time times[] = {{.seconds_per_sample = 0.01}, {.seconds_per_sample = 0.03}};
    int64_t shares[2];
    double seconds;
    assert_int_equal(cleat_shares_solve(2, times, 48, shares, &seconds, NULL), CLEAT_OK);
    assert_memory_equal(shares, ((int64_t[]){36, 12}), sizeof shares);
    assert_true(fabs(seconds - 0.36) < 1e-12);
}

/* A third device with a tenth of the speed costs more communication than it saves. */
static void a_slow_device_is_left_out(void **state) {
    (void)state;
    const cleat_rank_time times[] = {
        {.seconds_per_sample = 0.01}, {.seconds_per_sample = 0.01}, {.seconds_per_sample = 0.1}};
    const double communication[] = {0, 0.02, 0.05};
    int64_t shares[3];
    double seconds;
    assert_int_equal(cleat_shares_choose(3, times, 40, communication, shares, &seconds, NULL), CLEAT_OK);
    assert_memory_equal(shares, ((int64_t[]){20, 20, 0}), sizeof shares);
    assert_true(fabs(seconds - 0.22) < 1e-12);
}

/* 64 ranks of several kinds, a million samples: moving a sample to another rank never shortens the step. */
static void sixty_four_ranks(void **state) {
    (void)state;
    cleat_rank_time times[MANY];
    int64_t shares[MANY], again[MANY];
    double communication[MANY], seconds, chosen;
    for (int r = 0; r < MANY; ++r) {
        times[r] = (cleat_rank_time){.fixed_seconds = 1e-3 * (r % 5), .seconds_per_sample = 1e-3 * (1 + r % 7)};
        communication[r] = 1e-4 * r;
    }
    assert_int_equal(cleat_shares_solve(MANY, times, 1000003, shares, &seconds, NULL), CLEAT_OK);
    assert_true(slowest(MANY, times, shares, 1000003) == seconds);
    for (int r = 0; r < MANY; ++r) assert_true(cleat_rank_seconds(&times[r], shares[r] + 1) >= seconds);
    assert_int_equal(cleat_shares_solve(MANY, times, 1000003, again, NULL, NULL), CLEAT_OK);
    assert_memory_equal(shares, again, sizeof shares);
    assert_int_equal(cleat_shares_choose(MANY, times, 200, communication, shares, &chosen, NULL), CLEAT_OK);
    assert_int_equal(cleat_shares_solve(MANY, times, 200, again, &seconds, NULL), CLEAT_OK);
    assert_true(chosen <= seconds + communication[MANY - 1]);
}

/* --- in proportion ------------------------------------------------------------------------------------------------ */

static void cuts_are_in_proportion(void **state) {
    (void)state;
    const int64_t shares[] = {36, 12, 0};
    int64_t cut[3];
    assert_int_equal(cleat_shares_cut(3, shares, 48, cut, NULL), CLEAT_OK);
    assert_memory_equal(cut, shares, sizeof cut);
    assert_int_equal(cleat_shares_cut(3, shares, 1, cut, NULL), CLEAT_OK);
    assert_memory_equal(cut, ((int64_t[]){1, 0, 0}), sizeof cut);
    assert_int_equal(cleat_shares_cut(3, shares, 25, cut, NULL), CLEAT_OK);
    assert_memory_equal(cut, ((int64_t[]){19, 6, 0}), sizeof cut);
    assert_int_equal(cleat_shares_cut(3, shares, 0, cut, NULL), CLEAT_OK);
    assert_memory_equal(cut, ((int64_t[]){0, 0, 0}), sizeof cut);
    const int64_t equal[] = {5, 5, 5};
    assert_int_equal(cleat_shares_cut(3, equal, 5, cut, NULL), CLEAT_OK);
    assert_memory_equal(cut, ((int64_t[]){2, 2, 1}), sizeof cut);
    for (int trial = 0; trial < 1000; ++trial) {
        int64_t drawn[RANKS], parts[RANKS], sum = 0, samples = draw(100), all = 0;
        for (int r = 0; r < RANKS; ++r) sum += drawn[r] = draw(20);
        if (sum == 0) continue;
        assert_int_equal(cleat_shares_cut(RANKS, drawn, samples, parts, NULL), CLEAT_OK);
        for (int r = 0; r < RANKS; ++r) {
            all += parts[r];
            assert_true(fabs((double)parts[r] - (double)samples * (double)drawn[r] / (double)sum) < 1);
        }
        assert_int_equal(all, samples);
    }
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

static void invalid_arguments_are_refused(void **state) {
    (void)state;
    const cleat_rank_time good = {.seconds_per_sample = 1};
    const cleat_rank_time bad[] = {
        {.seconds_per_sample = 0},
        {.seconds_per_sample = NAN},
        {.seconds_per_sample = INFINITY},
        {.seconds_per_sample = 1, .fixed_seconds = -1},
        {.seconds_per_sample = 1, .fixed_seconds = NAN},
    };
    const double free[2] = {0}, wrong[2] = {0, NAN};
    int64_t shares[2] = {-7, -7};
    cleat_error error = {0};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        const cleat_rank_time times[] = {good, bad[i]};
        assert_int_equal(cleat_shares_solve(2, times, 9, shares, NULL, &error), CLEAT_ERR_ARGUMENT);
        assert_non_null(strstr(error.text, "rank 1"));
        assert_int_equal(cleat_shares_choose(2, times, 9, free, shares, NULL, &error), CLEAT_ERR_ARGUMENT);
    }
    const cleat_rank_time times[] = {good, good};
    assert_int_equal(cleat_shares_solve(0, times, 9, shares, NULL, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_shares_solve(CLEAT_MAX_RANKS + 1, times, 9, shares, NULL, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_shares_solve(2, times, 0, shares, NULL, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_shares_solve(2, times, INT64_MAX, shares, NULL, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_shares_solve(2, times, 1, shares, NULL, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "effective_batch_size"));
    assert_int_equal(cleat_shares_choose(2, times, 9, wrong, shares, NULL, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_shares_cut(2, (int64_t[]){0, 0}, 3, shares, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_shares_cut(2, (int64_t[]){4, -1}, 3, shares, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_shares_cut(2, (int64_t[]){4, 1}, -3, shares, &error), CLEAT_ERR_ARGUMENT);
    for (long n = 1; n <= 3; ++n) {
        cleat_fail_allocation(n);
        assert_int_equal(cleat_shares_choose(2, times, 9, free, shares, NULL, &error), CLEAT_ERR_MEMORY);
    }
    cleat_fail_allocation(1);
    assert_int_equal(cleat_shares_cut(2, (int64_t[]){4, 1}, 3, shares, &error), CLEAT_ERR_MEMORY);
    cleat_fail_allocation(0);
    assert_true(shares[0] == -7 && shares[1] == -7); /* unchanged on failure */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_partition_is_faster),    cmocka_unit_test(no_choice_of_ranks_is_faster),
        cmocka_unit_test(shares_follow_speeds),      cmocka_unit_test(earlier_of_equal_ranks_get_more),
        cmocka_unit_test(a_slow_device_is_left_out), cmocka_unit_test(sixty_four_ranks),
        cmocka_unit_test(cuts_are_in_proportion),    cmocka_unit_test(invalid_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

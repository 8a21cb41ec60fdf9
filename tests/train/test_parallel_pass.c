/* The exchange after a pass that is divided among ranks: three processes that share a file
 * (tests/ranks/link/shared.c). */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "train/parallel_pass.h"
#include "train/run_examples.h"

enum { RANKS = 3, COUNT = 7, LARGE = 300000, TIME_LIMIT = 30 };

/* Runs in all ranks; returns false if this rank's result is wrong. */
typedef bool (*rank_work)(const cleat_data_parallel *parallel, int rank);

static int run_rank(int rank, const char *area, rank_work work) {
    char place[32];
    int64_t shares[RANKS] = {2, 1, 1};
    cleat_ranks *ranks = NULL;
    cleat_error error = {0};
    alarm(TIME_LIMIT); /* a rank that exits leaves the others waiting */
    snprintf(place, sizeof place, "%d/%d", rank, RANKS);
    setenv("CLEAT_RANKS_LIBRARY", CLEAT_SHARED_TRANSPORT, 1);
    setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
    setenv("CLEAT_TEST_RANK", place, 1);
    setenv("CLEAT_TEST_SHARED", area, 1);
    if (cleat_ranks_open(&ranks, &error)) {
        fprintf(stderr, "rank %d: %s\n", rank, error.text);
        return 2;
    }
    const cleat_data_parallel parallel = {.ranks = ranks, .shares = shares};
    bool good = cleat_ranks_count(ranks) == RANKS && work(&parallel, rank);
    cleat_ranks_close(ranks);
    return good ? 0 : 1;
}

static void run_ranks(rank_work work) {
    char folder[] = "/tmp/cleat_parallel_pass_XXXXXX", area[64];
    pid_t processes[RANKS];
    assert_non_null(mkdtemp(folder));
    snprintf(area, sizeof area, "%s/area", folder);
    for (int r = 0; r < RANKS; ++r) {
        processes[r] = fork();
        if (processes[r] == 0) _exit(run_rank(r, area, work));
        assert_true(processes[r] > 0);
    }
    int wrong = 0;
    for (int r = 0; r < RANKS; ++r) {
        int status = -1;
        assert_int_equal(waitpid(processes[r], &status, 0), processes[r]);
        if (status) print_error("rank %d ended with status %d\n", r, status);
        wrong += status != 0;
    }
    unlink(area);
    rmdir(folder);
    assert_int_equal(wrong, 0);
}

static bool takes_its_part(const cleat_data_parallel *parallel, int rank) {
    static const size_t firsts[RANKS] = {0, 4, 6}, counts[RANKS] = {4, 2, 2};
    size_t first = 99, count = 99;
    cleat_error error = {0};
    return cleat_pass_part(parallel, 8, &first, &count, &error) == CLEAT_OK && first == firsts[rank] &&
           count == counts[rank] &&
           cleat_pass_part(parallel, ((size_t)1 << 30) + 1, &first, &count, &error) == CLEAT_ERR_ARGUMENT &&
           strstr(error.text, "1073741825 samples are too many");
}

static bool adds_values(const cleat_data_parallel *parallel, int rank) {
    double values[2] = {rank + 1, 0.5};
    return cleat_pass_add(parallel, values, 2, NULL) == CLEAT_OK && values[0] == 6 && values[1] == 1.5;
}

static bool finds_the_first_bad_sample(const cleat_data_parallel *parallel, int rank) {
    static const cleat_output_check parts[][RANKS] = {
        {{.samples = 4}, {.samples = 2, .bad = 1, .first = 5}, {.samples = 2, .bad = 2, .first = 4}},
        {{.samples = 4}, {.samples = 2, .bad = 2, .first = 4}, {.samples = 2, .bad = 1, .first = 5}},
        {{.samples = 4, .bad = 3, .first = 7}, {.samples = 2}, {.samples = 2}},
    };
    static const uint32_t firsts[] = {4, 4, 7};
    for (size_t i = 0; i < 3; ++i) {
        cleat_output_check check = parts[i][rank];
        if (cleat_pass_add_check(parallel, &check, NULL) != CLEAT_OK) return false;
        if (check.samples != 8 || check.bad != 3 || check.first != firsts[i]) return false;
    }
    return true;
}

static bool shares_states(const cleat_data_parallel *parallel, int rank) {
    static const unsigned char parts[RANKS][4] = {{0, 2, 0, 1}, {1, 0, 0, 0}, {0, 1, 0, 2}};
    unsigned char states[4];
    memcpy(states, parts[rank], sizeof states);
    return cleat_pass_share_states(parallel, states, 4, NULL) == CLEAT_OK && states[0] == 1 && states[1] == 2 &&
           states[2] == 0 && states[3] == 2;
}

/* --- predictions ---------------------------------------------------------------------------------------------- */

/* The sixth exceeds one exchange. */
static int64_t values_of(size_t i) {
    return i == 5 ? LARGE : (int64_t)i + 1;
}

static float value_of(size_t i, int64_t k) {
    return (float)(k % 1000) + 0.125f * (float)i;
}

static bool has_prediction(const cleat_prediction *p, size_t i) {
    if (!p->output || p->sample != 100 + i || p->length != (int64_t)i * 3 || p->values != values_of(i)) return false;
    for (int64_t k = 0; k < p->values; ++k)
        if (p->output[k] != value_of(i, k)) return false;
    return true;
}

/* Rank 0 has the first, rank 2 the last; one has no rank. */
static bool is_own(size_t i, int rank) {
    static const int owner[COUNT] = {0, 1, 0, 2, -1, 1, 2};
    return owner[i] == rank;
}

static bool collects_predictions(const cleat_data_parallel *parallel, int rank) {
    const cleat_dataset *dataset = (const void *)"any";
    cleat_prediction predictions[COUNT] = {{0}};
    for (size_t i = 0; i < COUNT; ++i) {
        if (!is_own(i, rank)) continue;
        float *output = cleat_alloc((size_t)values_of(i), sizeof *output);
        if (!output) return false;
        for (int64_t k = 0; k < values_of(i); ++k) output[k] = value_of(i, k);
        predictions[i] = (cleat_prediction){
            .dataset = dataset, .sample = 100 + i, .output = output, .length = (int64_t)i * 3, .values = values_of(i)};
    }
    bool good = cleat_pass_collect(parallel, dataset, predictions, COUNT, NULL) == CLEAT_OK;
    for (size_t i = 0; i < COUNT; ++i) {
        const bool expected = is_own(i, rank) || (rank == 0 && i != 4);
        good &= expected ? has_prediction(&predictions[i], i) && predictions[i].dataset == dataset
                         : predictions[i].output == NULL;
        cleat_prediction_free(&predictions[i]);
    }
    return good;
}

/* --- the worst samples of an evaluation ----------------------------------------------------------------------- */

enum { SAMPLES = 40 };

/* Many ties across ranks; none without a truth. Below 3, all are in the part of rank 0. */
static double badness_of(uint32_t sample, int most) {
    return sample % 5 == 4 || (most < 3 && sample >= 20) ? NAN : sample % (uint32_t)most;
}

/* Keeps samples [first, end) as an evaluation does. */
static void keep(cleat_run_examples *examples, uint32_t first, uint32_t end, int most) {
    static const cleat_model_examples shown = {.add = NULL};
    static const cleat_model_class family = {.examples = &shown};
    const cleat_model model = {.type = &family};
    uint32_t samples[SAMPLES];
    for (uint32_t i = 0; i < SAMPLES; ++i) samples[i] = i;
    cleat_run_examples_begin(examples, &model, NULL, samples, SAMPLES);
    for (uint32_t i = first; i < end; ++i) {
        float output = (float)i;
        double badness = badness_of(i, most);
        const cleat_host_batch batch = {.batch = 1, .count = 1, .samples = &i, .badness = &badness};
        cleat_run_examples_keep(examples, &model, &batch, &output, 1);
    }
}

/* Rank 0 has the same outputs as one process that evaluates all samples. */
static bool finds_the_worst_of_all(const cleat_data_parallel *parallel, int rank) {
    static const uint32_t ends[RANKS + 1] = {0, 20, 30, SAMPLES};
    bool good = true;
    for (int most = 1; most < 20; ++most) {
        cleat_run_examples alone = {.n_chosen = 0}, part = {.n_chosen = 0};
        keep(&alone, 0, SAMPLES, most);
        keep(&part, ends[rank], ends[rank + 1], most);
        good &= !cleat_run_examples_collect(&alone, NULL, NULL) && !cleat_run_examples_collect(&part, parallel, NULL);
        for (int i = 0; i < CLEAT_EXAMPLES + CLEAT_WORST && rank == 0; ++i) {
            const cleat_prediction *a = &alone.predictions[i], *b = &part.predictions[i];
            if (i >= (int)part.n_chosen && i < CLEAT_EXAMPLES) continue; /* the rest of the array */
            good &= a->output && b->output && a->output[0] == b->output[0] && a->sample == b->sample;
        }
        cleat_run_examples_free(&alone);
        cleat_run_examples_free(&part);
    }
    return good;
}

static void the_worst_are_those_of_one_process(void **state) {
    (void)state;
    run_ranks(finds_the_worst_of_all);
}

static void parts_follow_from_the_shares(void **state) {
    (void)state;
    run_ranks(takes_its_part);
}

static void sums_are_the_same_on_all_ranks(void **state) {
    (void)state;
    run_ranks(adds_values);
}

static void the_first_bad_sample_of_all_ranks_is_found(void **state) {
    (void)state;
    run_ranks(finds_the_first_bad_sample);
}

static void the_largest_state_is_known_to_all_ranks(void **state) {
    (void)state;
    run_ranks(shares_states);
}

static void rank_0_gets_all_predictions(void **state) {
    (void)state;
    run_ranks(collects_predictions);
}

static void a_process_alone_takes_all_and_exchanges_nothing(void **state) {
    (void)state;
    size_t first = 99, count = 99;
    double value = 3;
    cleat_output_check check = {.samples = 4, .bad = 2, .first = 1};
    unsigned char known = 1;
    cleat_prediction prediction = {.sample = 5};
    assert_int_equal(cleat_pass_part(NULL, (size_t)1 << 31, &first, &count, NULL), CLEAT_OK);
    assert_true(first == 0 && count == (size_t)1 << 31);
    assert_int_equal(cleat_pass_add(NULL, &value, 1, NULL), CLEAT_OK);
    assert_int_equal(cleat_pass_add_check(NULL, &check, NULL), CLEAT_OK);
    assert_int_equal(cleat_pass_share_states(NULL, &known, 1, NULL), CLEAT_OK);
    assert_int_equal(cleat_pass_collect(NULL, NULL, &prediction, 1, NULL), CLEAT_OK);
    assert_true(value == 3 && check.samples == 4 && check.bad == 2 && check.first == 1 && known == 1);
    assert_true(prediction.sample == 5 && !prediction.output);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_follow_from_the_shares),
        cmocka_unit_test(sums_are_the_same_on_all_ranks),
        cmocka_unit_test(the_first_bad_sample_of_all_ranks_is_found),
        cmocka_unit_test(the_largest_state_is_known_to_all_ranks),
        cmocka_unit_test(rank_0_gets_all_predictions),
        cmocka_unit_test(the_worst_are_those_of_one_process),
        cmocka_unit_test(a_process_alone_takes_all_and_exchanges_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The search for micro-batch sizes, on made-up cards. */
/* ctest: quick no-memcheck */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fit/fit.h"
#include "made_up_gpu.h"
#include "plan_check.h"

static const int64_t MIB = 1048576;

static const char profile_text[] = "[model]\ntype = rna_transformer\nd_model = 32\nheads = 4\nlayers = 4\nd_ff = 64\n"
                                   "dropout = 0.1\n[data]\npath = /nonexistent\nmax_length = 400\n"
                                   "[train]\neffective_batch_size = 12\n[run]\nmax_memory_usage = 1\n";

static const cleat_rates rates = {.flops = 5e12, .bytes = 2e11, .launch_seconds = 5e-6, .source = "a test"};

/* A profile, its model, and samples of three lengths. */
typedef struct bench {
    cleat_profile *profile;
    cleat_model *model;
    cleat_lengths lengths;
} bench;

static bench bench_create(const char *set) {
    bench b = {.lengths = {.count = 3, .lengths = {40, 120, 400}, .samples = {50, 31, 7}}};
    cleat_error error = {0};
    if (cleat_profile_create(&b.profile, &error) != CLEAT_OK ||
        cleat_profile_read_text(b.profile, "test", profile_text, strlen(profile_text), &error) != CLEAT_OK ||
        (set && cleat_profile_set(b.profile, set, &error) != CLEAT_OK) ||
        cleat_profile_check(b.profile, &error) != CLEAT_OK ||
        cleat_profile_create_model(b.profile, &b.model, &error) != CLEAT_OK)
        fail_msg("%s", error.text);
    return b;
}

static void bench_destroy(bench *b) {
    cleat_model_destroy(b->model);
    cleat_profile_destroy(b->profile);
}

static cleat_fit_request request_of(const bench *b, const cleat_device_facts *facts) {
    return cleat_fit_request_for(b->profile, b->model, CLEAT_FOR_TRAINING, &b->lengths, facts, &rates);
}

static cleat_status search(const bench *b, int64_t limit, cleat_fit_result *chosen, char *why, cleat_error *error) {
    cleat_device_facts facts = made_up_gpu(limit);
    cleat_fit_request request = request_of(b, &facts);
    return cleat_fit_search(&request, chosen, NULL, why, 256, error);
}

static void ample_memory_takes_whole_global_batches(void **state) {
    (void)state;
    bench b = bench_create(NULL);
    cleat_fit_result fitted = {0};
    char why[256] = "";
    assert_int_equal(search(&b, 1000 * MIB, &fitted, why, NULL), CLEAT_OK);
    assert_int_equal(fitted.work->recompute, 0);
    const int64_t sizes[3] = {10, 11, 7}; /* 50 over 5, 31 over 3, 7 over 1 */
    for (int i = 0; i < 3; ++i) {
        assert_int_equal(fitted.work->buckets[i].global_batch_size, sizes[i]);
        assert_int_equal(fitted.work->buckets[i].micro_batch_size, sizes[i]);
    }
    assert_non_null(strstr(why, "whole global batches fit"));
    assert_true(fitted.pass_seconds > fitted.step_seconds && fitted.step_seconds > 0);
    cleat_fit_result_clear(&fitted);
    bench_destroy(&b);
}

/* Global batches keep their size. Micro-batches shrink within the limit, and each bucket has the largest
 * micro-batch that fits by itself. */
static void less_memory_cuts_global_batches(void **state) {
    (void)state;
    bench b = bench_create("train.gradient_checkpointing=false");
    cleat_fit_result whole = {0};
    assert_int_equal(search(&b, 1000 * MIB, &whole, NULL, NULL), CLEAT_OK);
    int64_t all = cleat_plan_bytes(whole.work->plan), before[3] = {100, 100, 100};
    int cuts = 0;
    for (int64_t limit = all;; limit -= all / 23) {
        cleat_device_facts facts = made_up_gpu(limit);
        facts.max_allocation = all;
        cleat_fit_request request = request_of(&b, &facts);
        cleat_fit_result fitted = {0};
        cleat_error error = {0};
        cleat_status status = cleat_fit_search(&request, &fitted, NULL, NULL, 0, &error);
        if (status == CLEAT_ERR_FIT) break;
        assert_int_equal(status, CLEAT_OK);
        assert_true(cleat_plan_bytes(fitted.work->plan) <= limit);
        if (cleat_plan_check(fitted.work->plan, &error) != CLEAT_OK) fail_msg("%s", error.text);
        for (int i = 0; i < 3; ++i) {
            const cleat_bucket *bucket = &fitted.work->buckets[i];
            assert_int_equal(bucket->global_batch_size, whole.work->buckets[i].global_batch_size);
            assert_true(bucket->micro_batch_size <= before[i]);
            cuts += bucket->micro_batch_size < before[i];
            before[i] = bucket->micro_batch_size;
        }
        /* The next larger micro-batch of the longest bucket does not fit. */
        const cleat_bucket *longest = &fitted.work->buckets[2];
        int64_t fewer = cleat_fit_micro_batches(longest) - 1;
        if (fewer > 0) {
            cleat_workload *work = NULL;
            cleat_bucket larger = *longest;
            larger.micro_batch_size = (longest->global_batch_size + fewer - 1) / fewer;
            const cleat_workload_spec spec = {
                .facts = &facts, .model = b.model, .purpose = CLEAT_FOR_TRAINING, .buckets = &larger, .n_buckets = 1};
            status = cleat_workload_create(&spec, &work, NULL);
            assert_true(status == CLEAT_ERR_FIT || cleat_plan_bytes(work->plan) > limit);
            cleat_workload_destroy(work);
        }
        cleat_fit_result_clear(&fitted);
    }
    assert_true(cuts >= 6);
    assert_int_equal(before[2], 1); /* reduced to one sample before giving up */
    assert_true(before[0] > 1);     /* short sequences are not reduced as far as long ones */
    cleat_fit_result_clear(&whole);
    bench_destroy(&b);
}

static int64_t number_after(const char *text, const char *words) {
    const char *at = strstr(text, words);
    return at ? strtoll(at + strlen(words), NULL, 10) : -1;
}

static void says_what_would_fit(void **state) {
    (void)state;
    bench b = bench_create("train.gradient_checkpointing=false");
    cleat_fit_result whole = {0};
    cleat_error error = {0};
    assert_int_equal(search(&b, 1000 * MIB, &whole, NULL, NULL), CLEAT_OK);
    int64_t fixed = 3 * cleat_plan_category_bytes(whole.work->plan, CLEAT_BYTES_PARAMETERS);
    cleat_fit_result_clear(&whole);

    int64_t limit = fixed + 2 * MIB;
    cleat_device_facts facts = made_up_gpu(limit);
    facts.max_allocation = limit;
    cleat_fit_request request = request_of(&b, &facts);
    assert_int_equal(cleat_fit_search(&request, &whole, NULL, NULL, 0, &error), CLEAT_ERR_FIT);
    assert_non_null(strstr(error.text, "too much"));
    assert_non_null(strstr(error.text, "gradients"));
    int64_t length = number_after(error.text, "data.max_length = ");
    if (!(length >= 8 && length < 400)) fail_msg("%s", error.text);
    cleat_lengths shorter = {.count = 1, .lengths = {length}, .samples = {7}};
    request.lengths = &shorter;
    assert_int_equal(cleat_fit_search(&request, &whole, NULL, NULL, 0, &error), CLEAT_OK);
    cleat_fit_result_clear(&whole);
    shorter.lengths[0] += 8; /* no longer length fits */
    assert_int_equal(cleat_fit_search(&request, &whole, NULL, NULL, 0, &error), CLEAT_ERR_FIT);

    facts.memory_free = 1000; /* less than the parameters */
    request = request_of(&b, &facts);
    assert_int_equal(cleat_fit_search(&request, &whole, NULL, NULL, 0, &error), CLEAT_ERR_FIT);
    assert_non_null(strstr(error.text, "smaller model"));
    /* a card without memory: a limit of 0 means unlimited to the search, but the plan has a limit */
    facts.memory_free = facts.memory_total = 0;
    facts.max_allocation = 0;
    request = request_of(&b, &facts);
    assert_int_not_equal(cleat_fit_search(&request, &whole, NULL, NULL, 0, &error), CLEAT_OK);
    bench_destroy(&b);
}

/* These models get their length from data.lookback, data.image_size or data.history; data.max_length is refused. */
static void samples_of_one_size_have_no_length_to_cut(void **state) {
    (void)state;
    static const char *const types[] = {"series_lstm", "image_resnet", "emberformer"};
    for (size_t i = 0; i < sizeof types / sizeof *types; ++i) {
        cleat_profile *profile = NULL;
        cleat_error error = {0};
        cleat_fit_report ample, r;
        cleat_device_facts facts = made_up_gpu(100000 * MIB);
        char text[256];
        snprintf(text, sizeof text,
                 "[model]\ntype = %s\n[data]\npath = /nonexistent\n[train]\ngradient_checkpointing = false\n[run]\n"
                 "max_memory_usage = 1\n",
                 types[i]);
        assert_int_equal(cleat_profile_create(&profile, NULL), CLEAT_OK);
        assert_int_equal(cleat_profile_read_text(profile, "test", text, strlen(text), NULL), CLEAT_OK);
        if (cleat_fit_describe(profile, &facts, &rates, NULL, 1, &ample, &error) != CLEAT_OK)
            fail_msg("%s", error.text);
        facts.memory_free = ample.bytes - 1;
        if (cleat_fit_describe(profile, &facts, &rates, NULL, 0, &r, &error) != CLEAT_OK) fail_msg("%s", error.text);
        assert_false(r.fits);
        if (strstr(r.reason, "length =") || strstr(r.reason, "No length")) fail_msg("%s", r.reason);
        assert_non_null(strstr(r.reason, "smaller model"));
        assert_non_null(strstr(r.reason, "a card with"));
        cleat_profile_destroy(profile);
    }
}

static void what_was_asked_for_is_not_changed(void **state) {
    (void)state;
    bench b = bench_create("train.batch_size=6");
    cleat_fit_result fitted = {0};
    cleat_error error = {0};
    assert_int_equal(search(&b, 1000 * MIB, &fitted, NULL, NULL), CLEAT_OK);
    assert_int_equal(fitted.work->buckets[2].micro_batch_size, 4); /* 7 split into two nearly equal parts */
    assert_int_equal(fitted.work->buckets[0].micro_batch_size, 5);
    int64_t limit = cleat_plan_bytes(fitted.work->plan) - 1;
    cleat_fit_result_clear(&fitted);
    cleat_device_facts facts = made_up_gpu(limit);
    facts.max_allocation = limit;
    cleat_fit_request request = request_of(&b, &facts);
    b.profile->train.gradient_checkpointing = CLEAT_CHECKPOINTING_FALSE;
    assert_int_equal(cleat_fit_search(&request, &fitted, NULL, NULL, 0, &error), CLEAT_ERR_FIT);
    int64_t micro_batch_size = number_after(error.text, "train.batch_size = ");
    if (!(micro_batch_size >= 1 && micro_batch_size < 6)) fail_msg("%s", error.text);
    request.most = micro_batch_size;
    assert_int_equal(cleat_fit_search(&request, &fitted, NULL, NULL, 0, &error), CLEAT_OK);
    cleat_fit_result_clear(&fitted);
    bench_destroy(&b);
}

/* --- recomputation -------------------------------------------------------------------------------------------- */

static int64_t min_bytes(bench *b, int recompute) {
    cleat_device_facts facts = made_up_gpu(1000 * MIB);
    cleat_fit_request request = request_of(b, &facts);
    cleat_fit_result fitted = {0};
    request.most = 1;
    assert_int_equal(cleat_fit_one_way(&request, recompute, &fitted, NULL), CLEAT_OK);
    int64_t bytes = cleat_plan_bytes(fitted.work->plan);
    cleat_fit_result_clear(&fitted);
    return bytes;
}

static void recomputing_is_the_last_resort(void **state) {
    (void)state;
    bench b = bench_create(NULL);
    cleat_device_facts facts = made_up_gpu(1000 * MIB);
    cleat_fit_request request = request_of(&b, &facts);
    cleat_fit_result fitted = {0};
    cleat_error error = {0};
    char why[256] = "";
    int group = 0;
    assert_int_equal(cleat_fit_group(&request, &group, NULL), CLEAT_OK);
    assert_true(group >= 1 && group < 4);
    int64_t stored = min_bytes(&b, 0), recomputed = min_bytes(&b, group);
    assert_true(recomputed < stored);

    request.limit = (stored + recomputed) / 2;
    assert_int_equal(cleat_fit_search(&request, &fitted, NULL, why, sizeof why, &error), CLEAT_OK);
    assert_int_equal(fitted.work->recompute, group);
    assert_non_null(strstr(why, "not even one sample"));
    cleat_fit_result_clear(&fitted);

    b.profile->train.gradient_checkpointing = CLEAT_CHECKPOINTING_FALSE;
    assert_int_equal(cleat_fit_search(&request, &fitted, NULL, why, sizeof why, &error), CLEAT_ERR_FIT);
    b.profile->train.gradient_checkpointing = CLEAT_CHECKPOINTING_TRUE;
    request.limit = 0;
    assert_int_equal(cleat_fit_search(&request, &fitted, NULL, why, sizeof why, &error), CLEAT_OK);
    assert_int_equal(fitted.work->recompute, group);
    cleat_fit_result_clear(&fitted);
    bench_destroy(&b);
}

/* `selective` is used even if all activations would fit; it requires less memory. */
static void cheap_outputs_are_recomputed_on_request(void **state) {
    (void)state;
    bench b = bench_create("train.gradient_checkpointing=selective");
    cleat_device_facts facts = made_up_gpu(100000 * MIB);
    cleat_fit_request request = request_of(&b, &facts);
    cleat_fit_result fitted = {0}, other = {0};
    char why[256] = "";
    assert_int_equal(cleat_fit_search(&request, &fitted, &other, why, sizeof why, NULL), CLEAT_OK);
    assert_int_equal(fitted.work->recompute, CLEAT_RECOMPUTE_CHEAP);
    assert_int_equal(other.work->recompute, 0);
    const int64_t selective = cleat_plan_bytes(fitted.work->plan), stored = cleat_plan_bytes(other.work->plan);
    print_message("%.1f MiB stored, %.1f MiB selective\n", (double)stored / MIB, (double)selective / MIB);
    assert_true(selective < stored - stored / 10);
    assert_non_null(strstr(why, "GELU"));
    cleat_fit_result_clear(&fitted);
    cleat_fit_result_clear(&other);
    bench_destroy(&b);
}

/* Larger micro-batches justify recomputation if launches cost more than arithmetic, but not if launches are free. */
static void recomputing_must_pay(void **state) {
    (void)state;
    bench b = bench_create(NULL);
    b.lengths = (cleat_lengths){.count = 1, .lengths = {400}, .samples = {48}};
    cleat_device_facts facts = made_up_gpu(1000 * MIB);
    cleat_fit_request request = request_of(&b, &facts);
    cleat_rates slow_launches = {.flops = 1e15, .bytes = 1e15, .launch_seconds = 1e-3};
    cleat_rates free_launches = {.flops = 1e9, .bytes = 1e15, .launch_seconds = 0};
    cleat_fit_result fitted = {0}, other = {0};
    char why[256] = "";
    int64_t one = min_bytes(&b, 0);
    request.limit = one + one / 4;

    facts.compute_units = 1; /* fully occupied by any batch */
    request.rates = &free_launches;
    assert_int_equal(cleat_fit_search(&request, &fitted, &other, why, sizeof why, NULL), CLEAT_OK);
    assert_int_equal(fitted.work->recompute, 0);
    assert_true(other.work && other.work->recompute > 0 && other.pass_seconds > fitted.pass_seconds);
    assert_non_null(strstr(why, "would cost"));
    cleat_fit_result_clear(&fitted);
    cleat_fit_result_clear(&other);

    request.rates = &slow_launches;
    assert_int_equal(cleat_fit_search(&request, &fitted, &other, why, sizeof why, NULL), CLEAT_OK);
    assert_true(fitted.work->recompute > 0);
    assert_true(fitted.work->buckets[0].micro_batch_size > other.work->buckets[0].micro_batch_size);
    assert_non_null(strstr(why, "saves"));
    cleat_fit_result_clear(&fitted);
    cleat_fit_result_clear(&other);
    bench_destroy(&b);
}

/* --- the report ----------------------------------------------------------------------------------------------- */

static void the_report_adds_up(void **state) {
    (void)state;
    bench b = bench_create(NULL);
    const int64_t limits[] = {1000 * MIB, 40 * MIB, 20 * MIB, 12 * MIB};
    for (size_t l = 0; l < sizeof limits / sizeof *limits; ++l) {
        cleat_device_facts facts = made_up_gpu(limits[l]);
        facts.max_allocation = limits[l];
        cleat_fit_report r;
        cleat_error error = {0};
        if (cleat_fit_describe(b.profile, &facts, &rates, NULL, 0, &r, &error) != CLEAT_OK) fail_msg("%s", error.text);
        assert_true(*r.reason);
        if (!r.fits) continue;
        int64_t categories = 0, parts = 0;
        for (int c = 0; c < CLEAT_CATEGORIES; ++c) categories += r.category_bytes[c];
        for (int i = 0; i < CLEAT_PEAK_PARTS; ++i) parts += r.peak_parts[i];
        assert_int_equal(categories, r.bytes);
        assert_int_equal(parts, r.training_peak);
        assert_true(r.bytes <= r.limit && r.limit == limits[l]);
        assert_true(r.forward_peak <= r.training_peak && r.training_peak <= r.lower_bound);
        assert_true((double)r.arena_bytes <= 1.10 * (double)r.lower_bound);
        assert_false(r.data_known);
        assert_int_equal(r.n_buckets, 1);
        assert_int_equal(r.buckets[0].length, 400);
        assert_int_equal(r.buckets[0].global_batch_size, 12);
        const cleat_fit_way *way = r.recompute ? &r.recomputed : &r.stored;
        assert_true(way->fits && way->bytes == r.bytes && way->micro_batch_size == r.buckets[0].micro_batch_size);
        double line = (double)r.fixed_bytes + (double)r.bytes_per_sample * (double)r.buckets[0].micro_batch_size;
        assert_true(line > 0.98 * (double)r.bytes && line < 1.02 * (double)r.bytes);
    }
    cleat_device_facts facts = made_up_gpu(1000 * MIB);
    cleat_fit_report asked;
    cleat_error error = {0};
    if (cleat_fit_describe(b.profile, &facts, NULL, NULL, 30, &asked, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_true(asked.fits && asked.buckets[0].micro_batch_size == 30 && asked.buckets[0].global_batch_size == 30);
    if (cleat_fit_describe(b.profile, &facts, NULL, NULL, 100000, &asked, &error) != CLEAT_OK)
        fail_msg("%s", error.text);
    assert_false(asked.fits);
    assert_true(number_after(asked.reason, "train.batch_size = ") > 0);
    bench_destroy(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ample_memory_takes_whole_global_batches),
        cmocka_unit_test(less_memory_cuts_global_batches),
        cmocka_unit_test(says_what_would_fit),
        cmocka_unit_test(samples_of_one_size_have_no_length_to_cut),
        cmocka_unit_test(what_was_asked_for_is_not_changed),
        cmocka_unit_test(recomputing_is_the_last_resort),
        cmocka_unit_test(cheap_outputs_are_recomputed_on_request),
        cmocka_unit_test(recomputing_must_pay),
        cmocka_unit_test(the_report_adds_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

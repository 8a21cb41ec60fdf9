/* The span log: what each thread records between start and stop while others add spans. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/memory.h"
#include "core/span_log.h"
#include "platform/threads.h"

enum { THREADS = 4, ROUNDS = 400 };

static cleat_span_log *make_log(void) {
    cleat_span_log *log = NULL;
    assert_int_equal(cleat_span_log_create(&log, NULL), CLEAT_OK);
    return log;
}

static size_t count_of(const cleat_span_log *log) {
    size_t count = 0;
    cleat_span_log_spans(log, &count);
    return count;
}

static void test_start_and_stop(void **state) {
    cleat_span_log *log = make_log();
    size_t count;
    (void)state;
    assert_true(cleat_span_begin(log) == 0);
    cleat_span_add(log, "before", 0, 1, 2);
    cleat_span_log_start(log);
    double start = cleat_span_begin(log);
    assert_true(start > 0);
    cleat_span_end(log, "first", 3, start);
    cleat_span_end(log, "not begun", -1, 0);
    cleat_span_add(log, "second", -1, 5, 6);
    cleat_span_log_stop(log);
    cleat_span_add(log, "after", 0, 1, 2);
    const cleat_span *spans = cleat_span_log_spans(log, &count);
    assert_int_equal(count, 2);
    assert_string_equal(spans[0].name, "first");
    assert_int_equal(spans[0].number, 3);
    assert_int_equal(spans[0].thread, 0);
    assert_true(spans[0].start == start && spans[0].end >= start);
    assert_true(spans[1].start == 5 && spans[1].end == 6);
    cleat_span_log_start(log);
    cleat_span_log_stop(log);
    assert_int_equal(count_of(log), 0);
    cleat_span_log_destroy(log);
    cleat_span_add(NULL, "none", 0, 1, 2);
    assert_true(cleat_span_begin(NULL) == 0);
}

static void test_full(void **state) {
    cleat_span_log *log = make_log();
    (void)state;
    cleat_span_log_start(log);
    for (int i = 0; i < CLEAT_SPANS + 5; ++i) cleat_span_add(log, "many", i, 1, 2);
    cleat_span_log_stop(log);
    assert_int_equal(count_of(log), CLEAT_SPANS);
    assert_int_equal(cleat_span_log_lost(log), 5);
    cleat_span_log_start(log);
    cleat_fail_allocation(1);
    cleat_span_add(log, "kept", 0, 1, 2); /* memory is reused */
    cleat_fail_allocation(0);
    cleat_span_log_stop(log);
    assert_int_equal(count_of(log), 1);
    cleat_span_log_destroy(log);
}

typedef struct adder {
    cleat_span_log *log;
    atomic_bool *quit;
    int number;
} adder;

static void *add_spans(void *argument) {
    const adder *own = argument;
    while (!atomic_load(own->quit)) cleat_span_add(own->log, "work", own->number, 1, 2);
    return NULL;
}

/* Spans are read while threads add more, which must not change what is read. */
static void test_threads(void **state) {
    cleat_span_log *log = make_log();
    atomic_bool quit = false;
    pthread_t threads[THREADS];
    adder adders[THREADS];
    size_t all = 0;
    (void)state;
    for (int i = 0; i < THREADS; ++i) {
        adders[i] = (adder){log, &quit, i};
        assert_int_equal(pthread_create(&threads[i], NULL, add_spans, &adders[i]), 0);
    }
    for (int round = 0; round < ROUNDS; ++round) {
        int64_t number_of[THREADS + 1] = {-1, -1, -1, -1, -1};
        size_t count = 0;
        cleat_span_log_start(log);
        for (int i = 0; i < 50; ++i) cleat_span_add(log, "trainer", -1, 1, 2);
        cleat_span_log_stop(log);
        const cleat_span *spans = cleat_span_log_spans(log, &count);
        assert_true(count + cleat_span_log_lost(log) >= 50);
        for (size_t i = 0; i < count; ++i) {
            assert_in_range(spans[i].thread, 0, THREADS);
            if (number_of[spans[i].thread] < 0) number_of[spans[i].thread] = spans[i].number;
            assert_int_equal(spans[i].number, number_of[spans[i].thread]); /* a track belongs to one thread */
            assert_true((spans[i].thread == 0) == (strcmp(spans[i].name, "trainer") == 0));
        }
        all += count;
    }
    atomic_store(&quit, true);
    for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
    assert_true(all >= ROUNDS * 50);
    cleat_span_log_destroy(log);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_start_and_stop), cmocka_unit_test(test_full),
                                       cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

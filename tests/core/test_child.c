/* Child processes: what the caller gets if one answers, crashes, hangs, or stops in the middle of an answer. */
/* ctest: quick */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "core/child.h"
#include "platform/processes.h"

typedef struct answer {
    int number;
    char text[60];
} answer;

typedef struct received_records {
    int count, sum;
} received_records;

static void count_record(void *user, const void *record) {
    received_records *all = user;
    ++all->count;
    all->sum += ((const answer *)record)->number;
}

/* --- actions of the child --- */

static void send_three(void *user, int out) {
    (void)user;
    for (int i = 1; i <= 3; ++i) {
        answer a = {.number = i * 10, .text = "here"};
        cleat_child_send(out, &a, sizeof a);
    }
}

/* The bytes of two records in pieces of other sizes. */
static void send_in_pieces(void *user, int out) {
    const struct timespec moment = {.tv_nsec = 2000000};
    answer both[2] = {{.number = 1, .text = "first"}, {.number = 2, .text = "second"}};
    (void)user;
    for (size_t at = 0; at < sizeof both; at += 16) {
        cleat_child_send(out, (const char *)both + at, 16);
        nanosleep(&moment, NULL);
    }
}

static void send_one_byte(void *user, int out) {
    (void)user;
    cleat_child_send(out, "x", 1);
}

static void send_and_one_byte(void *user, int out) {
    send_three(user, out);
    send_one_byte(user, out);
}

static void stay_silent(void *user, int out) {
    (void)user, (void)out;
}

static void exit_with_7(void *user, int out) {
    send_three(user, out);
    _exit(7);
}

static void crash(void *user, int out) {
    send_three(user, out);
    raise(*(const int *)user);
}

static void write_nowhere(void *user, int out) {
    volatile int *volatile nowhere = NULL;
    send_three(user, out);
    *nowhere = 1;
}

static void hang(void *user, int out) {
    send_three(user, out);
    for (;;) pause();
}

/* Closes the pipe, so the caller can only wait for the process itself. */
static void hang_without_pipe(void *user, int out) {
    (void)user;
    close(out);
    for (;;) pause();
}

/* Allocates all the time, and writes to the caller's memory. */
static void count_without_end(void *user, int out) {
    volatile int *counted = user;
    (void)out;
    for (;; ++*counted) free(malloc((size_t)(*counted % 50000) + 1));
}

/* --- */

typedef struct outcome {
    answer last;
    received_records received;
    cleat_child_end end;
} outcome;

static outcome run(void (*body)(void *user, int out), double seconds) {
    outcome o = {.last = {.number = -1}};
    cleat_error error;
    const cleat_child child = {.body = body,
                               .user = &o.received,
                               .record_bytes = sizeof(answer),
                               .seconds = seconds,
                               .received = count_record};
    assert_int_equal(cleat_child_run(&child, &o.last, &o.end, &error), CLEAT_OK);
    return o;
}

static void three_records(const outcome *o) {
    assert_int_equal(o->end.records, 3);
    assert_int_equal(o->received.count, 3);
    assert_int_equal(o->received.sum, 60);
    assert_int_equal(o->last.number, 30);
    assert_string_equal(o->last.text, "here");
}

static void all_records_arrive_and_the_last_is_kept(void **state) {
    (void)state;
    outcome o = run(send_three, INFINITY);
    three_records(&o);
    assert_string_equal(o.end.text, "");
    assert_int_equal(o.end.signal, 0);
    assert_false(o.end.timed_out);
    assert_true(o.end.seconds >= 0 && o.end.seconds < 60);
}

static void records_in_pieces_are_put_together(void **state) {
    (void)state;
    outcome o = run(send_in_pieces, 60);
    assert_int_equal(o.end.records, 2);
    assert_int_equal(o.received.sum, 3);
    assert_string_equal(o.last.text, "second");
    assert_string_equal(o.end.text, "");
}

static void an_answer_that_breaks_off_is_named(void **state) {
    (void)state;
    outcome o = run(send_one_byte, 60);
    assert_int_equal(o.end.records, 0);
    assert_int_equal(o.last.number, -1); /* only a complete record is stored */
    assert_string_equal(o.end.text, "returned an invalid result");
    o = run(send_and_one_byte, 60);
    three_records(&o);
    assert_string_equal(o.end.text, "returned an invalid result");
}

static void no_answer_is_named(void **state) {
    (void)state;
    outcome o = run(stay_silent, 60);
    assert_int_equal(o.end.records, 0);
    assert_string_equal(o.end.text, "exited without a result");
}

static void an_exit_code_is_named(void **state) {
    (void)state;
    if (!CLEAT_FORKS) skip(); /* a thread's exit is its caller's */
    outcome o = run(exit_with_7, 60);
    three_records(&o);
    assert_string_equal(o.end.text, "exited with code 7");
}

static void a_signal_is_named(void **state) {
    int number = SIGSEGV;
    answer last;
    cleat_child_end end;
    cleat_error error;
    (void)state;
    if (!CLEAT_FORKS) { /* a thread, which an exception ends */
        const outcome o = run(write_nowhere, 60);
        assert_int_equal(o.end.signal, SIGSEGV);
        assert_string_equal(o.end.text, "killed by signal 11 (a crash)");
        three_records(&o);
        return;
    }
    const cleat_child child = {.body = crash, .user = &number, .record_bytes = sizeof last, .seconds = 60};
    assert_int_equal(cleat_child_run(&child, &last, &end, &error), CLEAT_OK);
    assert_int_equal(end.signal, SIGSEGV);
    assert_int_equal(end.records, 3);
    assert_int_equal(last.number, 30);
    assert_string_equal(end.text, "killed by signal 11 (Segmentation fault)");
    number = SIGKILL; /* the kernel's signal when memory runs out */
    assert_int_equal(cleat_child_run(&child, &last, &end, &error), CLEAT_OK);
    assert_int_equal(end.signal, SIGKILL);
    assert_non_null(strstr(end.text, "out of memory"));
    assert_false(end.timed_out);
}

static void one_that_hangs_is_stopped(void **state) {
    (void)state;
    outcome o = run(hang, 0.25);
    assert_true(o.end.timed_out);
    three_records(&o);
    assert_string_equal(o.end.text, "no answer within 0.25 s: stopped");
    assert_true(o.end.seconds >= 0.25);
    o = run(hang_without_pipe, 0.1);
    assert_true(o.end.timed_out);
    assert_string_equal(o.end.text, "no answer within 0.1 s: stopped");
}

/* Where it is a thread of this process (Windows), it must not go on with memory that is no longer its own. */
static void one_that_is_stopped_does_nothing_more(void **state) {
    volatile int counted = 0;
    const struct timespec moment = {.tv_nsec = 20000000};
    const cleat_child child = {.body = count_without_end, .user = (void *)&counted, .record_bytes = 1, .seconds = 0.02};
    (void)state;
    for (int i = 0; i < 20; ++i) {
        cleat_child_end end;
        char last;
        assert_int_equal(cleat_child_run(&child, &last, &end, NULL), CLEAT_OK);
        assert_true(end.timed_out);
        assert_int_equal(counted > 0, !CLEAT_FORKS);
        const int before = counted;
        nanosleep(&moment, NULL);
        free(malloc(100)); /* the heap is not locked */
        assert_int_equal(counted, before);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_records_arrive_and_the_last_is_kept),
        cmocka_unit_test(records_in_pieces_are_put_together),
        cmocka_unit_test(an_answer_that_breaks_off_is_named),
        cmocka_unit_test(no_answer_is_named),
        cmocka_unit_test(an_exit_code_is_named),
        cmocka_unit_test(a_signal_is_named),
        cmocka_unit_test(one_that_hangs_is_stopped),
        cmocka_unit_test(one_that_is_stopped_does_nothing_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

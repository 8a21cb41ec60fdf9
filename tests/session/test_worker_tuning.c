/* Hill climbing on the number of loader threads, with a simulated clock, loader and device. */
/* ctest: quick */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/cpus.h"
#include "session/worker_tuning.h"

enum { MIB = 1 << 20, MAX_CHANGES = 64 };

/* A loader and a device. Each thread fills a batch in `fill` seconds; the device takes `step` seconds, and
 * longer by the share `contention` for each thread after the first. The source delivers at most `source`
 * batches per second. */
typedef struct machine {
    double fill, step, contention, source;
    cleat_worker_tuning tuning;
    cleat_worker_bounds bounds;
    cleat_worker_sample now;
    int changes;
    double when[MAX_CHANGES];
    int became[MAX_CHANGES];
    char said[CLEAT_WORKERS_TEXT]; /* the last reason */
    int notes;                     /* reasons without a change */
    double dry;                    /* hand-overs since the start, as a fraction */
} machine;

static machine make_machine(double fill, double step, int workers, int most) {
    machine m = {.fill = fill, .step = step, .source = INFINITY, .bounds = {.most = most, .why = "the test's CPUs"}};
    cleat_worker_tuning_start(&m.tuning, workers);
    return m;
}

static double supply_of(const machine *m) {
    return fmin(m->tuning.workers / m->fill, m->source);
}

static double demand_of(const machine *m) {
    return 1 / (m->step * (1 + m->contention * (m->tuning.workers - 1)));
}

/* Trains for `seconds`, in steps of a tenth. */
static void run(machine *m, double seconds) {
    for (double end = m->now.seconds + seconds; m->now.seconds < end;) {
        const double supply = supply_of(m), demand = demand_of(m), rate = fmin(supply, demand), passed = 0.1;
        m->now.seconds += passed;
        m->now.work += rate * passed;
        m->now.fill_seconds += rate * passed * m->fill;
        m->now.hand_overs = (uint64_t)m->now.work;
        if (supply < demand) m->dry += rate * passed;
        m->now.dry = (uint64_t)m->dry;
        if (!cleat_worker_tuning_is_due(&m->tuning, &m->now)) continue;
        const int before = m->tuning.workers;
        const cleat_worker_decision decision = cleat_worker_tuning_decide(&m->tuning, &m->now, &m->bounds);
        assert_int_equal(decision.workers, m->tuning.workers);
        assert_true(decision.workers >= 1);
        if (decision.reason[0]) strcpy(m->said, decision.reason);
        if (decision.workers == before) {
            m->notes += decision.reason[0] != 0;
            continue;
        }
        assert_true(decision.reason[0]);
        assert_true(decision.workers <= m->bounds.most &&
                    abs(decision.workers - before) <= (before > 3 ? before / 2 : 1));
        assert_true(m->changes < MAX_CHANGES);
        m->when[m->changes] = m->now.seconds;
        m->became[m->changes++] = decision.workers;
    }
}

static void assert_contains(const machine *m, const char *part) {
    if (!strstr(m->said, part)) fail_msg("'%s' lacks '%s'", m->said, part);
}

/* --- climbing ------------------------------------------------------------------------------------------------- */

static void climbs_until_the_device_is_fed(void **state) {
    (void)state;
    machine m = make_machine(0.16, 0.026, 1, 16); /* 7 threads are enough */
    run(&m, 60);
    assert_int_equal(m.tuning.workers, 9); /* 1, 2, 3, 4, 6, 9 */
    assert_int_equal(m.changes, 5);
    assert_true(m.when[4] < 30);
    assert_contains(&m, "batches");
    const double dry = m.dry;
    run(&m, 600);
    assert_int_equal(m.tuning.workers, 9); /* busy: 6.15 of 9 threads */
    assert_true(m.dry == dry);
}

static void a_fed_device_changes_nothing(void **state) {
    (void)state;
    machine m = make_machine(0.016, 0.02, 1, 16);
    run(&m, 3600);
    assert_int_equal(m.changes, 0);
    assert_int_equal(m.notes, 0);
}

static void the_bounds_hold_and_are_said_once(void **state) {
    (void)state;
    const cleat_worker_memory plenty = {
        .host_free = INT64_C(1) << 40, .slot_bytes = MIB, .prefetch = 2, .held = 2, .most_slots = 256};
    machine m = make_machine(0.16, 0.02, 1, 0);
    m.bounds = cleat_worker_bounds_find(2, &plenty); /* a quota of 2 of 64 CPUs: see core.cgroup */
    run(&m, 600);
    assert_int_equal(m.tuning.workers, 2);
    assert_int_equal(m.changes, 1);
    assert_int_equal(m.notes, 1);
    assert_contains(&m, "2 CPUs");
}

static void slow_steps_are_waited_for(void **state) {
    (void)state;
    machine m = make_machine(4, 1, 1, 16); /* a batch takes 4 s: fewer than 16 in 5 s */
    run(&m, 29);
    assert_int_equal(m.changes, 0);
    run(&m, 2);
    assert_int_equal(m.changes, 1);
    run(&m, 100);
    assert_int_equal(m.tuning.workers, 4);
}

static void a_single_dry_hand_over_is_chance(void **state) {
    (void)state;
    machine m = make_machine(0.1, 0.5, 1, 16);
    for (int i = 0; i < 20; ++i) {
        m.dry += 1;
        run(&m, 30);
    }
    assert_int_equal(m.changes, 0);
}

/* --- reversals ------------------------------------------------------------------------------------------------ */

/* Checks that each change is undone by the next, and that the time between attempts doubles. */
static void assert_rarer_attempts(const machine *m, int start) {
    assert_true(m->changes >= 6 && m->changes <= 24);
    for (int i = 0; i < m->changes; ++i) assert_int_equal(m->became[i], i % 2 ? start : start + 1);
    for (int i = 4; i < m->changes; i += 2) {
        const double before = m->when[i - 2] - m->when[i - 4], after = m->when[i] - m->when[i - 2];
        assert_true(after > 1.4 * before || after >= 3600);
    }
}

/* On a CPU device, threads take time from the kernels: the dry share falls, and so does the speed. */
static void a_thread_that_slows_training_down_is_taken_back(void **state) {
    (void)state;
    machine m = make_machine(0.0201, 0.02, 1, 16);
    m.contention = 0.1;
    run(&m, 3600);
    assert_int_equal(m.tuning.workers, 1);
    assert_contains(&m, "slower than with 1");
    assert_rarer_attempts(&m, 1);
}

static void a_thread_that_gains_nothing_is_taken_back(void **state) {
    (void)state;
    machine m = make_machine(0.1, 0.02, 3, 16);
    m.source = 25; /* batches per second from a slow disk */
    run(&m, 3600);
    assert_true(m.tuning.workers <= 4);
    if (m.tuning.workers == 3) assert_contains(&m, "no faster than with 3");
    assert_rarer_attempts(&m, 3);
}

static void idle_threads_end(void **state) {
    (void)state;
    machine m = make_machine(0.051, 0.02, 9, 16); /* 2.55 threads are busy */
    run(&m, 59);
    assert_int_equal(m.changes, 0);
    run(&m, 1200);
    assert_int_equal(m.tuning.workers, 5); /* busy half of the time */
    assert_true(m.dry == 0);
    assert_contains(&m, "waited for no batch");
}

/* A thread that was removed and is needed again is not soon removed again. */
static void lowering_backs_off(void **state) {
    (void)state;
    machine m = make_machine(0.02, 0.021, 2, 16);
    for (int i = 0; i < 4; ++i) {
        run(&m, 400 * (1 << i));
        assert_int_equal(m.tuning.workers, 1);
        m.fill = 0.03; /* harder samples */
        run(&m, 6);
        assert_int_equal(m.tuning.workers, 2);
        m.fill = 0.02;
    }
    double closed = 0;
    for (int i = 1; i + 1 < m.changes; i += 2) { /* from the increase to the next decrease */
        const double now = m.when[i + 1] - m.when[i];
        assert_true(now >= closed);
        closed = now;
    }
    assert_true(closed >= 120);
}

/* --- bounds --------------------------------------------------------------------------------------------------- */

static void bounds(void **state) {
    (void)state;
    static const struct {
        int cpus;
        cleat_worker_memory memory;
        int most;
        const char *why;
    } rows[] = {
        {64, {.host_free = 0, .slot_bytes = MIB, .prefetch = 2, .held = 2, .most_slots = 256}, 64, "64 CPUs"},
        {1, {.host_free = 0, .slot_bytes = MIB, .prefetch = 2, .held = 2, .most_slots = 256}, 1, "1 CPU"},
        {0, {.host_free = 0, .slot_bytes = MIB, .prefetch = 2, .held = 2, .most_slots = 256}, 1, "1 CPU"},
        /* 800 MiB: 100 slots, 2 of them held, 2 per thread */
        {64, {.host_free = 800LL * MIB, .slot_bytes = MIB, .prefetch = 2, .held = 2, .most_slots = 256}, 49, "800 MiB"},
        {64, {.host_free = 8LL * MIB, .slot_bytes = MIB, .prefetch = 2, .held = 2, .most_slots = 256}, 1, "8 MiB"},
        {200, {.host_free = 1LL << 40, .slot_bytes = MIB, .prefetch = 2, .held = 2, .most_slots = 256}, 127, "256"},
        {200, {.host_free = 1LL << 40, .slot_bytes = MIB, .prefetch = 64, .held = 2, .most_slots = 256}, 3, "256"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        const cleat_worker_bounds found = cleat_worker_bounds_find(rows[i].cpus, &rows[i].memory);
        assert_int_equal(found.most, rows[i].most);
        if (!strstr(found.why, rows[i].why)) fail_msg("row %zu: '%s'", i, found.why);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(climbs_until_the_device_is_fed),
        cmocka_unit_test(a_fed_device_changes_nothing),
        cmocka_unit_test(the_bounds_hold_and_are_said_once),
        cmocka_unit_test(slow_steps_are_waited_for),
        cmocka_unit_test(a_single_dry_hand_over_is_chance),
        cmocka_unit_test(a_thread_that_slows_training_down_is_taken_back),
        cmocka_unit_test(a_thread_that_gains_nothing_is_taken_back),
        cmocka_unit_test(idle_threads_end),
        cmocka_unit_test(lowering_backs_off),
        cmocka_unit_test(bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

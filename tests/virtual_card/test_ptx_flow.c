/* Divergence and reconvergence of a warp's lanes, barriers, exchanges between lanes. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ptx_rig.h"

enum { WARP = 32 };

/* Prologue: %d2 is the address of the item's 16 bytes of `out`. STORE4 writes four registers there. */
#define OUT16 "    mul.wide.u32 %d2, %r1, 16;\n    add.s64 %d2, %d2, %d1;\n"
#define STORE4 "    st.global.v4.b32 [%d2], {%r5, %r6, %r7, %r8};\n"
#define ZERO4 "    mov.u32 %r5, 0;\n    mov.u32 %r6, 0;\n    mov.u32 %r7, 0;\n    mov.u32 %r8, 0;\n"

/* Runs `items` items and compares the output of each with expected[4]. */
typedef void expect4(uint32_t item, uint32_t expected[4]);
static void run_and_compare(rig *r, const char *body, expect4 *expect) {
    char text[8192] = "";
    rig_append(text, sizeof text, "%s%s%s", OUT16 ZERO4, body, STORE4);
    memset(r->out, 0xee, sizeof r->out);
    rig_run(r, text);
    rig_expect_fault(r, NULL);
    assert_true(r->finished);
    for (uint32_t i = 0; i < r->items * r->groups; ++i) {
        uint32_t got[4], expected[4] = {0};
        memcpy(got, r->out + 16 * i, sizeof got);
        expect(i, expected);
        for (int k = 0; k < 4; ++k)
            if (got[k] != expected[k]) fail_msg("item %u, value %d: 0x%x instead of 0x%x", i, k, got[k], expected[k]);
    }
}

static void expect_branches(const rig *r, uint64_t branches, uint64_t divergent) {
    assert_int_equal(r->counters.branches, branches);
    assert_int_equal(r->counters.divergent_branches, divergent);
}

/* --- branches */

static void if_else_values(uint32_t item, uint32_t expected[4]) {
    expected[0] = item < 10 ? 102 : 101;
    expected[1] = item < 10 ? 0x3ff : ~0x3ffu;
    expected[2] = 0xffffffff;
}
static void the_two_ways_of_a_branch_meet_behind_it(void **unused) {
    (void)unused;
    rig r;
    rig_init(&r);
    run_and_compare(&r,
                    "    setp.lt.u32 %p1, %r0, 10;\n    @%p1 bra A;\n"
                    "    mov.u32 %r5, 1;\n    activemask.b32 %r6;\n    bra E;\n"
                    "A:  mov.u32 %r5, 2;\n    activemask.b32 %r6;\n"
                    "E:  activemask.b32 %r7;\n    add.u32 %r5, %r5, 100;\n",
                    if_else_values);
    expect_branches(&r, 2, 1);
    /* Issued to the warp: 6 before the body, address and zeros 2 + 4, condition and branch 2, one path of 3,
     * one of 2, then 2, the store and ret. If the paths did not meet, the count after E would double. */
    assert_int_equal(r.counters.instructions, 6 + 6 + 2 + 3 + 2 + 2 + 2);
    assert_int_equal(r.counters.lanes, 32 * (6 + 6 + 1 + 2 + 2) + 10 + 22 * 3 + 10 * 2); /* 10 take the branch */
}

static void nested_values(uint32_t item, uint32_t expected[4]) {
    const bool outer = item < 16, inner = outer && item % 2;
    expected[0] = (outer ? 10 : 0) + (inner ? 1 : 0);
    expected[1] = inner ? 0xaaaa : 0;
    expected[2] = outer ? 0xffff : 0;
    expected[3] = 0xffffffff;
}
static void nested_branches_meet_one_after_the_other(void **unused) {
    (void)unused;
    rig r;
    rig_init(&r);
    run_and_compare(&r,
                    "    setp.lt.u32 %p1, %r0, 16;\n    and.b32 %r4, %r0, 1;\n    setp.eq.u32 %p2, %r4, 1;\n"
                    "    @!%p1 bra E1;\n    @!%p2 bra E2;\n"
                    "    activemask.b32 %r6;\n    add.u32 %r5, %r5, 1;\n"
                    "E2: activemask.b32 %r7;\n    add.u32 %r5, %r5, 10;\n"
                    "E1: activemask.b32 %r8;\n",
                    nested_values);
    expect_branches(&r, 2, 2);
}

/* Lane l runs the loop l % 5 + 1 times. */
static void loop_values(uint32_t item, uint32_t expected[4]) {
    expected[0] = item % 5 + 1;
    expected[1] = item * (item % 5 + 1);
    expected[2] = 0xffffffff;
}
static void loops_wait_for_the_lane_with_most_rounds(void **unused) {
    (void)unused;
    rig r;
    rig_init(&r);
    run_and_compare(
        &r,
        "    rem.u32 %r4, %r0, 5;\n"
        "L:  add.u32 %r5, %r5, 1;\n    add.u32 %r6, %r6, %r0;\n    setp.le.u32 %p1, %r5, %r4;\n    @%p1 bra L;\n"
        "    activemask.b32 %r7;\n",
        loop_values);
    /* At most five iterations; after each of the first four some lanes leave and some stay, after the last
     * one all leave. */
    expect_branches(&r, 5, 4);
    assert_int_equal(r.counters.instructions, 6 + 6 + 1 + 5 * 4 + 1 + 2);
}

static void break_values(uint32_t item, uint32_t expected[4]) {
    uint32_t i = 0;
    for (; i < 10; ++i) {
        if (i == item) break;
        if ((i ^ item) & 1) continue;
        expected[0] += 3 * i + 1;
    }
    expected[1] = i;
    expected[2] = 0xffffffff;
}
static void break_and_continue(void **unused) {
    (void)unused;
    rig r;
    rig_init(&r);
    run_and_compare(
        &r,
        "L:  setp.ge.u32 %p1, %r6, 10;\n    @%p1 bra E;\n"
        "    setp.eq.u32 %p2, %r6, %r0;\n    @%p2 bra E;\n"
        "    xor.b32 %r4, %r6, %r0;\n    and.b32 %r4, %r4, 1;\n    setp.eq.u32 %p3, %r4, 1;\n    @%p3 bra C;\n"
        "    mad.lo.u32 %r5, %r6, 3, %r5;\n    add.u32 %r5, %r5, 1;\n"
        "C:  add.u32 %r6, %r6, 1;\n    bra L;\n"
        "E:  activemask.b32 %r7;\n",
        break_values);
    /* Iteration i of 0 to 9: lane i breaks out, and the lanes above it split by parity: 2 of 4 branches
     * diverge. At i = 10 all remaining lanes leave by the first branch. */
    expect_branches(&r, 10 * 4 + 1, 10 * 2);
}

static void nested_loop_values(uint32_t item, uint32_t expected[4]) {
    for (uint32_t i = 0; i < item % 4; ++i)
        for (uint32_t k = 0; k <= (item + i) % 3; ++k) expected[0] = 5 * expected[0] + k + i;
    expected[2] = 0xffffffff;
}
static void loops_in_loops(void **unused) {
    (void)unused;
    rig r;
    rig_init(&r);
    r.items = 96, r.groups = 2;
    run_and_compare(&r,
                    "    and.b32 %r10, %r1, 3;\n    mov.u32 %r11, 0;\n"
                    "L:  setp.ge.u32 %p1, %r11, %r10;\n    @%p1 bra E;\n"
                    "    add.u32 %r12, %r1, %r11;\n    rem.u32 %r12, %r12, 3;\n    mov.u32 %r13, 0;\n"
                    "M:  mul.lo.u32 %r5, %r5, 5;\n    add.u32 %r5, %r5, %r13;\n    add.u32 %r5, %r5, %r11;\n"
                    "    add.u32 %r13, %r13, 1;\n    setp.le.u32 %p2, %r13, %r12;\n    @%p2 bra M;\n"
                    "    add.u32 %r11, %r11, 1;\n    bra L;\n"
                    "E:  activemask.b32 %r7;\n",
                    nested_loop_values);
}

/* A branch that is uniform within each warp does not diverge. */
static void warp_values(uint32_t item, uint32_t expected[4]) {
    expected[0] = item / 32 == 2 ? 7 : 0;
    expected[1] = 0xffffffff;
}
static void warps_that_go_different_ways_are_not_divergent(void **unused) {
    (void)unused;
    rig r;
    rig_init(&r);
    r.items = 128;
    run_and_compare(&r,
                    "    shr.u32 %r4, %r0, 5;\n    setp.ne.u32 %p1, %r4, 2;\n    @%p1 bra E;\n    mov.u32 %r5, 7;\n"
                    "E:  activemask.b32 %r6;\n",
                    warp_values);
    expect_branches(&r, 4, 0);
}

static void lanes_that_return_early_write_nothing(void **unused) {
    (void)unused;
    static const char *const ways[] = {"    @%p1 ret;\n", "    @%p1 exit;\n",
                                       "    @%p1 bra X;\n    bra Y;\nX:  ret;\nY:\n"};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; ++w) {
        rig r;
        rig_init(&r);
        memset(r.out, 0xee, sizeof r.out);
        char body[1024] = OUT16 "    setp.ge.u32 %p1, %r0, 20;\n";
        rig_append(body, sizeof body, "%s    activemask.b32 %%r5;\n    st.global.u32 [%%d2], %%r5;\n", ways[w]);
        rig_run(&r, body);
        rig_expect_fault(&r, NULL);
        for (uint32_t i = 0; i < 32; ++i) {
            uint32_t got;
            memcpy(&got, r.out + 16 * i, sizeof got);
            assert_int_equal(got, i < 20 ? 0xfffff : 0xeeeeeeee);
        }
    }
}

/* --- random programs of ifs and loops, against an evaluation of all lanes in C */

typedef struct statement {
    enum { COMBINE, IF, LOOP, BREAK, CONTINUE, MEET } kind;
    uint32_t value; /* COMBINE: addend; IF, BREAK, CONTINUE: bit of the condition; LOOP: bits of the iteration count */
    int body, n_body, other, n_other; /* statements of the blocks, by index */
} statement;
typedef struct program {
    statement all[400];
    int n;
    bool jumps; /* with BREAK and CONTINUE; otherwise MEET mixes the active mask into the value */
    char text[20000];
    size_t length;
    int labels;
} program;

static void emit(program *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void emit(program *p, const char *format, ...) {
    va_list values;
    va_start(values, format);
    p->length += (size_t)vsnprintf(p->text + p->length, sizeof p->text - p->length, format, values);
    va_end(values);
    assert_true(p->length < sizeof p->text);
}

/* Makes a block of n statements and returns the index of the first. Nested blocks follow it. */
static int make_block(program *p, int n, int depth, int loops, uint64_t *state) {
    const int first = p->n;
    p->n += n;
    assert_true(p->n <= 400);
    for (int i = 0; i < n; ++i) {
        const uint64_t random = rig_random(state);
        statement s = {.value = (uint32_t)(random >> 20 & 15)};
        const unsigned choice = (unsigned)(random >> 40) % 8;
        s.kind = choice < 2 ? COMBINE : choice < 4 ? IF : choice < 6 ? LOOP : MEET;
        if (s.kind == MEET && p->jumps) s.kind = !loops ? COMBINE : random >> 50 & 1 ? BREAK : CONTINUE;
        if ((s.kind == IF || s.kind == LOOP) && depth == 4) s.kind = COMBINE;
        if (s.kind == LOOP && loops == 2) s.kind = IF;
        if (s.kind == IF || s.kind == LOOP) {
            s.n_body = 1 + (int)(random >> 55 & 1);
            s.body = make_block(p, s.n_body, depth + 1, loops + (s.kind == LOOP), state);
        }
        if (s.kind == IF && random >> 60 & 1) {
            s.n_other = 1 + (int)(random >> 59 & 1);
            s.other = make_block(p, s.n_other, depth + 1, loops, state);
        }
        p->all[first + i] = s;
    }
    return first;
}

/* %r5: value; %r6: item number times an odd number; a loop at depth d counts from %r(10 + d) to %r(20 + d). */
static void emit_condition(program *p, uint32_t bit) {
    emit(p,
         "    xor.b32 %%r4, %%r5, %%r6;\n    shr.u32 %%r4, %%r4, %u;\n    and.b32 %%r4, %%r4, 1;\n    setp.eq.u32 "
         "%%p1, %%r4, 1;\n",
         bit);
}
static void emit_block(program *p, int first, int n, int loops, int end_label, int next_label) {
    for (int i = first; i < first + n; ++i) {
        const statement s = p->all[i];
        const int label = p->labels += 3;
        switch (s.kind) {
        case COMBINE:
            emit(p, "    mad.lo.u32 %%r5, %%r5, 3, %u;\n    add.u32 %%r5, %%r5, %%r6;\n", s.value);
            break;
        case MEET:
            emit(p, "    activemask.b32 %%r4;\n    mad.lo.u32 %%r5, %%r5, 5, %%r4;\n");
            break;
        case IF:
            emit_condition(p, s.value);
            emit(p, "    @!%%p1 bra L%d;\n", label);
            emit_block(p, s.body, s.n_body, loops, end_label, next_label);
            emit(p, "    bra L%d;\nL%d:\n", label + 1, label);
            emit_block(p, s.other, s.n_other, loops, end_label, next_label);
            emit(p, "L%d:\n", label + 1);
            break;
        case LOOP:
            emit(p, "    shr.u32 %%r%d, %%r5, %u;\n    and.b32 %%r%d, %%r%d, 3;\n    mov.u32 %%r%d, 0;\n", 20 + loops,
                 s.value, 20 + loops, 20 + loops, 10 + loops);
            emit(p, "L%d: setp.ge.u32 %%p1, %%r%d, %%r%d;\n    @%%p1 bra L%d;\n", label, 10 + loops, 20 + loops,
                 label + 1);
            emit_block(p, s.body, s.n_body, loops + 1, label + 1, label + 2);
            emit(p, "L%d: add.u32 %%r%d, %%r%d, 1;\n    bra L%d;\nL%d:\n", label + 2, 10 + loops, 10 + loops, label,
                 label + 1);
            break;
        default:
            emit_condition(p, s.value);
            emit(p, "    @%%p1 bra L%d;\n", s.kind == BREAK ? end_label : next_label);
        }
    }
}

/* The lanes of a warp, and masks of those that executed BREAK or CONTINUE. */
typedef struct lanes_state {
    uint32_t value[WARP], item[WARP];
    uint32_t broken, continued;
} lanes_state;

static uint32_t lanes_where(const lanes_state *s, uint32_t mask, uint32_t bit) {
    uint32_t where = 0;
    for (uint32_t l = 0; l < WARP; ++l)
        if (mask >> l & 1 && (s->value[l] ^ s->item[l]) >> bit & 1) where |= 1u << l;
    return where;
}
static uint32_t evaluate_block(const program *p, int first, int n, uint32_t mask, lanes_state *s);
static uint32_t evaluate_loop(const program *p, const statement *loop, uint32_t mask, lanes_state *s) {
    const uint32_t outer_broken = s->broken, outer_continued = s->continued;
    uint32_t rounds[WARP], in = mask;
    for (int l = 0; l < WARP; ++l) rounds[l] = s->value[l] >> loop->value & 3;
    for (uint32_t i = 0; in; ++i) {
        for (int l = 0; l < WARP; ++l)
            if (i >= rounds[l]) in &= ~(1u << l);
        s->broken = s->continued = 0;
        if (in) in = evaluate_block(p, loop->body, loop->n_body, in, s) | s->continued;
    }
    s->broken = outer_broken, s->continued = outer_continued;
    return mask;
}
static uint32_t evaluate_block(const program *p, int first, int n, uint32_t mask, lanes_state *s) {
    for (int i = first; i < first + n && mask; ++i) {
        const statement *now = &p->all[i];
        const uint32_t where = lanes_where(s, mask, now->value);
        switch (now->kind) {
        case COMBINE:
        case MEET:
            for (int l = 0; l < WARP; ++l)
                if (mask >> l & 1)
                    s->value[l] =
                        now->kind == MEET ? 5 * s->value[l] + mask : 3 * s->value[l] + now->value + s->item[l];
            break;
        case IF: {
            const uint32_t kept = evaluate_block(p, now->body, now->n_body, where, s);
            mask = kept | evaluate_block(p, now->other, now->n_other, mask & ~where, s);
            break;
        }
        case LOOP:
            mask = evaluate_loop(p, now, mask, s);
            break;
        case BREAK:
            s->broken |= where, mask &= ~where;
            break;
        default:
            s->continued |= where, mask &= ~where;
        }
    }
    return mask;
}

static void run_random_program(uint64_t seed, bool jumps) {
    static program p;
    uint64_t state = seed * 2654435761u + 1;
    p.n = p.labels = 0, p.length = 0, p.jumps = jumps;
    const int first = make_block(&p, 4, 0, 0, &state);
    emit(&p, "    mul.wide.u32 %%d2, %%r1, 8;\n    add.s64 %%d2, %%d2, %%d1;\n    mul.lo.u32 %%r6, %%r1, 40503;\n    "
             "mov.u32 %%r5, %%r6;\n");
    emit_block(&p, first, 4, 0, 0, 0);
    emit(&p, "    activemask.b32 %%r7;\n    st.global.v2.b32 [%%d2], {%%r5, %%r7};\n");
    rig r;
    rig_init(&r);
    r.items = 64;
    rig_run(&r, p.text);
    rig_expect_fault(&r, NULL);
    for (uint32_t w = 0; w < 2; ++w) {
        lanes_state s = {.broken = 0};
        for (uint32_t l = 0; l < WARP; ++l) s.value[l] = s.item[l] = (WARP * w + l) * 40503;
        evaluate_block(&p, first, 4, 0xffffffff, &s);
        for (uint32_t l = 0; l < WARP; ++l) {
            uint32_t got[2];
            memcpy(got, r.out + 8 * (WARP * w + l), sizeof got);
            if (got[0] != s.value[l] || got[1] != 0xffffffff)
                fail_msg("seed %llu, item %u: 0x%x instead of 0x%x, active lanes at the end 0x%08x\n%s",
                         (unsigned long long)seed, WARP * w + l, got[0], s.value[l], got[1], p.text);
        }
    }
}
static void random_ifs_and_loops(void **unused) {
    (void)unused;
    for (uint64_t seed = 1; seed <= 150; ++seed) run_random_program(seed, false);
}
static void random_breaks_and_continues(void **unused) {
    (void)unused;
    for (uint64_t seed = 1; seed <= 150; ++seed) run_random_program(seed, true);
}

/* --- barriers */

static void barriers_that_all_reach(void **unused) {
    (void)unused;
    rig r;
    rig_init(&r);
    r.items = 100, r.groups = 3; /* the last warp has 4 lanes */
    r.threads = 2;
    /* three iterations, and one under a condition that is uniform in the group */
    rig_run(&r, "    mov.u32 %r5, 0;\nL:  bar.sync 0;\n    add.u32 %r5, %r5, 1;\n    setp.lt.u32 %p1, %r5, 3;\n    "
                "@%p1 bra L;\n"
                "    setp.eq.u32 %p2, %r3, 100;\n    @%p2 bar.sync 0;\n");
    rig_expect_fault(&r, NULL);
    assert_true(r.finished);
    assert_int_equal(r.counters.groups, 3);
    assert_int_equal(r.counters.barriers, 3 * 4 * 4); /* groups, warps, barriers */
    expect_branches(&r, 3 * 4 * 3, 0);
}

static void barriers_that_some_do_not_reach_are_faults(void **unused) {
    (void)unused;
    static const struct {
        const char *body, *fault;
        int count;
    } rows[] = {
        /* lanes of a warp return */
        {"    setp.lt.u32 %p1, %r0, 40;\n    @%p1 ret;\n    bar.sync 0;\n",
         "a barrier after lanes 0x000000ff have ended", 1},
        /* a warp returns */
        {"    setp.lt.u32 %p1, %r0, 32;\n    @%p1 ret;\n    bar.sync 0;\n",
         "1 warps have ended while others wait at a barrier", 1},
        /* half a warp waits */
        {"    and.b32 %r4, %r0, 16;\n    setp.ne.u32 %p1, %r4, 0;\n    @%p1 bra E;\n    bar.sync 0;\nE:\n",
         "a barrier in divergent flow: lanes 0x0000ffff of 0xffffffff reach it", 1},
        /* each half at a different one */
        {"    and.b32 %r4, %r0, 16;\n    setp.ne.u32 %p1, %r4, 0;\n    @%p1 bra E;\n    bar.sync 0;\n    bra F;\n"
         "E:  bar.sync 0;\nF:\n",
         "a barrier in divergent flow: lanes 0x", 2},
        /* with a predicate */
        {"    setp.lt.u32 %p1, %r0, 5;\n    setp.ge.u32 %p2, %r0, 32;\n    or.pred %p1, %p1, %p2;\n    @%p1 bar.sync "
         "0;\n",
         "a barrier in divergent flow: lanes 0x0000001f of 0xffffffff reach it", 1},
        /* each warp at a different one */
        {"    setp.lt.u32 %p1, %r0, 32;\n    @%p1 bra E;\n    bar.sync 0;\n    bra F;\nE:  bar.sync 0;\nF:\n",
         "warps wait at different barriers", 1},
        /* two iterations in one warp, three in the other */
        {"    shr.u32 %r4, %r0, 5;\n    add.u32 %r4, %r4, 2;\nL:  bar.sync 0;\n    sub.u32 %r4, %r4, 1;\n"
         "    setp.ne.u32 %p1, %r4, 0;\n    @%p1 bra L;\n",
         "1 warps have ended while others wait at a barrier", 1},
        /* iteration counts that differ within a warp */
        {"    and.b32 %r4, %r0, 1;\n    add.u32 %r4, %r4, 1;\nL:  bar.sync 0;\n    sub.u32 %r4, %r4, 1;\n"
         "    setp.ne.u32 %p1, %r4, 0;\n    @%p1 bra L;\n",
         "a barrier in divergent flow: lanes 0xaaaaaaaa of 0xffffffff reach it", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        rig r;
        rig_init(&r);
        r.items = 64;
        rig_run(&r, rows[i].body);
        if (!strstr(r.faults[0], rows[i].fault) || r.n_faults != rows[i].count)
            fail_msg("row %zu: %d faults: \"%s\" instead of \"%s\"", i, r.n_faults, r.faults[0], rows[i].fault);
        assert_true(r.finished);
    }
}

/* An endless loop of one lane, of all lanes, around a barrier. */
static void endless_loops_are_faults(void **unused) {
    (void)unused;
    static const char *const bodies[] = {"L:  bra L;\n", "    setp.eq.u32 %p1, %r0, 7;\nL:  @%p1 bra L;\n",
                                         "L:  bar.sync 0;\n    bra L;\n"};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; ++i) {
        rig r;
        rig_init(&r);
        r.steps = 5000;
        rig_run(&r, bodies[i]);
        rig_expect_fault(&r, "more than 5000 instructions of a warp: an endless loop?");
        assert_false(r.finished);
        assert_true(r.counters.instructions <= 5001);
    }
}

/* --- instructions between lanes */

/* shfl as defined in the PTX manual, with its names. */
static uint32_t shuffle_source(char mode, uint32_t lane, uint32_t bval, uint32_t cval, uint32_t segmask, bool *pval) {
    const int max_lane = (int)((lane & segmask) | (cval & ~segmask & 31)), min_lane = (int)(lane & segmask);
    int j = 0;
    switch (mode) {
    case 'u':
        j = (int)lane - (int)bval, *pval = j >= max_lane;
        break;
    case 'd':
        j = (int)lane + (int)bval, *pval = j <= max_lane;
        break;
    case 'b':
        j = (int)(lane ^ bval), *pval = j <= max_lane;
        break;
    default:
        j = min_lane | (int)(bval & ~segmask & 31), *pval = j <= max_lane;
    }
    return *pval ? (uint32_t)j : lane;
}
static void shuffles_within_segments_and_bounds(void **unused) {
    (void)unused;
    static const char *const modes[] = {"up", "down", "bfly", "idx"};
    for (size_t m = 0; m < 4; ++m)
        for (uint32_t width = 4; width <= 32; width *= 2)
            for (uint32_t b = 0; b < 32; b += 1 + b / 3)
                for (uint32_t clamp = 0; clamp < 32; clamp += 31 - (b & 2)) {
                    const uint32_t segmask = ~(width - 1) & 31;
                    rig r;
                    rig_init(&r);
                    char body[1024];
                    snprintf(
                        body, sizeof body,
                        "    mul.wide.u32 %%d2, %%r1, 8;\n    add.s64 %%d2, %%d2, %%d1;\n    add.u32 %%r4, %%r0, "
                        "1000;\n"
                        "    shfl.sync.%s.b32 %%r5|%%p1, %%r4, %u, 0x%x, 0xffffffff;\n    selp.b32 %%r6, 1, 0, %%p1;\n"
                        "    st.global.v2.b32 [%%d2], {%%r5, %%r6};\n",
                        modes[m], b, segmask << 8 | clamp);
                    rig_run(&r, body);
                    rig_expect_fault(&r, NULL);
                    for (uint32_t l = 0; l < WARP; ++l) {
                        uint32_t got[2];
                        bool inside;
                        memcpy(got, r.out + 8 * l, sizeof got);
                        const uint32_t source = shuffle_source(modes[m][0], l, b, clamp, segmask, &inside);
                        if (got[0] != 1000 + source || got[1] != inside)
                            fail_msg("shfl.%s by %u, segments of %u, clamp %u: lane %u has %u (%u)", modes[m], b, width,
                                     clamp, l, got[0], got[1]);
                    }
                }
}

static void vote_values(uint32_t item, uint32_t expected[4]) {
    const bool low = item < 16; /* the active lanes vote: odd ones for it; all the others vote for it */
    expected[0] = low ? 0xaaaa : 0xffff0000;
    expected[1] = low ? 1 : 7; /* any 1, all 2, uniform 4 */
    expected[2] = low ? 120 : 376;
    expected[3] = low ? 15 : 31;
}
static void votes_of_the_lanes_that_are_named(void **unused) {
    (void)unused;
    rig r;
    rig_init(&r);
#define VOTES(mask)                                                                                                    \
    "    vote.sync.ballot.b32 %r5, %p2, " mask ";\n    vote.sync.any.pred %p3, %p2, " mask                             \
    ";\n    vote.sync.all.pred %p4, %p2, " mask ";\n"                                                                  \
    "    vote.sync.uni.pred %p5, %p2, " mask ";\n    redux.sync.add.u32 %r7, %r0, " mask                               \
    ";\n    redux.sync.max.u32 %r8, %r0, " mask ";\n"
    run_and_compare(
        &r,
        "    setp.lt.u32 %p1, %r0, 16;\n    and.b32 %r4, %r0, 1;\n    setp.eq.u32 %p2, %r4, 1;\n    setp.ge.u32 %p6, "
        "%r0, 16;\n"
        "    or.pred %p2, %p2, %p6;\n    @%p1 bra A;\n" VOTES("0xffff0000") "    bra E;\nA:\n" VOTES(
            "0xffff") "E:\n"
                      "    selp.b32 %r6, 1, 0, %p3;\n    selp.b32 %r9, 2, 0, %p4;\n    selp.b32 %r10, 4, 0, %p5;\n"
                      "    or.b32 %r6, %r6, %r9;\n    or.b32 %r6, %r6, %r10;\n",
        vote_values);
}

static void nobody_values(uint32_t item, uint32_t expected[4]) {
    (void)item;
    expected[0] = 4; /* uniform, and neither any nor all */
    expected[1] = 0;
}
static void votes_of_nobody_are_uniform(void **unused) {
    (void)unused;
    rig r;
    rig_init(&r);
    run_and_compare(
        &r,
        "    setp.lt.u32 %p2, %r0, 0;\n" VOTES("-1") "    selp.b32 %r9, 1, 0, %p3;\n    selp.b32 %r10, 2, %r9, %p4;\n"
                                                     "    selp.b32 %r11, 4, 0, %p5;\n    mov.u32 %r6, %r5;\n    or.b32 "
                                                     "%r5, %r10, %r11;\n    mov.u32 %r7, 0;\n"
                                                     "    mov.u32 %r8, 0;\n",
        nobody_values);
}

/* An instruction with a lane mask must be executed by exactly these lanes. */
static void instructions_of_the_wrong_lanes_are_faults(void **unused) {
    (void)unused;
#define HALF "    setp.ge.u32 %p1, %r0, 16;\n    @%p1 bra E;\n"
#define NAMED "lanes 0xffffffff are named, lanes 0x0000ffff execute it"
    static const char *const rows[][2] = {
        {HALF "    shfl.sync.bfly.b32 %r5, %r0, 1, 0x1f, 0xffffffff;\nE:\n", NAMED},
        {HALF "    shfl.sync.bfly.b32 %r5, %r0, 16, 0x1f, 0xffff;\nE:\n",
         "lane 0 reads from lane 16, which does not take part"},
        {HALF "    vote.sync.any.pred %p2, %p1, 0xffffffff;\nE:\n", NAMED},
        {HALF "    vote.sync.ballot.b32 %r5, %p1, 0xffffffff;\nE:\n", NAMED},
        {HALF "    redux.sync.add.u32 %r5, %r0, 0xffffffff;\nE:\n", NAMED},
        {HALF "    bar.warp.sync 0xffffffff;\nE:\n", NAMED},
        {"    bar.warp.sync 0xffff;\n", "lanes 0x0000ffff are named, lanes 0xffffffff execute it"},
        {HALF "    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [%r20];\nE:\n",
         "an instruction of the whole warp is executed by lanes 0x0000ffff"},
        {HALF "    mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r5, %r6}, {%r7}, {%f0, "
              "%f1, %f2, %f3};\nE:\n",
         "an instruction of the whole warp is executed by lanes 0x0000ffff"},
        {"    setp.ge.u32 %p1, %r0, 31;\n    @!%p1 mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 "
         "{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, {%r5, %r6}, {%r7, %r8}, {%f0, %f1, %f2, %f3, %f4, %f5, %f6, "
         "%f7};\n",
         "an instruction of the whole warp is executed by lanes 0x7fffffff"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        rig r;
        rig_init(&r);
        rig_run(&r, rows[i][0]);
        rig_expect_fault(&r, rows[i][1]);
    }
}

/* Ended lanes are not awaited; diverged lanes may name themselves. */
static void instructions_of_the_right_lanes_are_none(void **unused) {
    (void)unused;
    static const char *const rows[] = {
        HALF "    bar.warp.sync 0xffff;\n    vote.sync.any.pred %p2, %p1, 0xffff;\n    shfl.sync.bfly.b32 %r5, %r0, 8, "
             "0x1f, 0xffff;\nE:\n",
        "    setp.ge.u32 %p1, %r0, 16;\n    @%p1 ret;\n    bar.warp.sync 0xffffffff;\n",
        "    activemask.b32 %r5;\n    bar.warp.sync %r5;\n",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        rig r;
        rig_init(&r);
        rig_run(&r, rows[i]);
        rig_expect_fault(&r, NULL);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_two_ways_of_a_branch_meet_behind_it),
        cmocka_unit_test(nested_branches_meet_one_after_the_other),
        cmocka_unit_test(loops_wait_for_the_lane_with_most_rounds),
        cmocka_unit_test(break_and_continue),
        cmocka_unit_test(loops_in_loops),
        cmocka_unit_test(warps_that_go_different_ways_are_not_divergent),
        cmocka_unit_test(lanes_that_return_early_write_nothing),
        cmocka_unit_test(random_ifs_and_loops),
        cmocka_unit_test(random_breaks_and_continues),
        cmocka_unit_test(barriers_that_all_reach),
        cmocka_unit_test(barriers_that_some_do_not_reach_are_faults),
        cmocka_unit_test(endless_loops_are_faults),
        cmocka_unit_test(shuffles_within_segments_and_bounds),
        cmocka_unit_test(votes_of_the_lanes_that_are_named),
        cmocka_unit_test(votes_of_nobody_are_uniform),
        cmocka_unit_test(instructions_of_the_wrong_lanes_are_faults),
        cmocka_unit_test(instructions_of_the_right_lanes_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

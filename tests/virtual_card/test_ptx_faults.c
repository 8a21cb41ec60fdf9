/* Memory faults of kernels, and allowed accesses that must not be reported: races, ranges, alignment, copies
 * in flight. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ptx_rig.h"

/* A body and its only expected fault; NULL: none. */
typedef struct fault_row {
    const char *body, *fault;
} fault_row;

static void check_rows(const char *declarations, uint32_t items, const fault_row *rows, size_t n) {
    for (size_t i = 0; i < n; ++i) {
        rig r;
        rig_init(&r);
        r.items = items, r.declarations = declarations;
        rig_run(&r, rows[i].body);
        if (r.n_faults != (rows[i].fault ? 1 : 0) || (rows[i].fault && !strstr(r.faults[0], rows[i].fault)))
            fail_msg("%d faults, \"%s\", instead of \"%s\" of\n%s", r.n_faults, r.n_faults ? r.faults[0] : "",
                     rows[i].fault ? rows[i].fault : "", rows[i].body);
        assert_true(r.finished);
    }
}
#define CHECK_ROWS(declarations, items, rows) check_rows(declarations, items, rows, sizeof(rows) / sizeof *(rows))

/* --- races in shared memory: tile is 1 KiB; %r4: offset of the 4 bytes of item n, %r6: of item 64 - 1 - n */

#define TILE ".shared .align 16 .b8 tile[1024];\n"

/* Warps run one after the other in an unspecified order, so either of two racing accesses can be the later,
 * reported one. Between two warps both may be reported. */
static void check_races(const fault_row *rows, size_t n) {
    for (size_t i = 0; i < n; ++i) {
        rig r;
        rig_init(&r);
        r.items = 64, r.declarations = TILE;
        rig_run(&r, rows[i].body);
        bool found = !rows[i].fault && !r.n_faults;
        for (int k = 0; k < r.n_faults && rows[i].fault; ++k) found |= strstr(r.faults[k], rows[i].fault) != NULL;
        if (!found || r.n_faults > 2)
            fail_msg("%d faults, \"%s\", instead of \"%s\" of\n%s", r.n_faults, r.n_faults ? r.faults[0] : "",
                     rows[i].fault ? rows[i].fault : "", rows[i].body);
    }
}

#define ADDRESSES                                                                                                      \
    "    mov.u32 %r9, tile;\n    shl.b32 %r4, %r0, 2;\n    add.u32 %r4, %r4, %r9;\n    sub.u32 %r6, 63, %r0;\n"        \
    "    shl.b32 %r6, %r6, 2;\n    add.u32 %r6, %r6, %r9;\n"
#define OWN ADDRESSES "    st.shared.u32 [%r4], %r0;\n    bar.sync 0;\n" /* everything is written once */
#define WRITE_OWN "    st.shared.u32 [%r4], %r0;\n"
#define READ_OWN "    ld.shared.u32 %r5, [%r4];\n"
#define READ_OTHER "    ld.shared.u32 %r5, [%r6];\n"
#define WRITE_OTHER "    st.shared.u32 [%r6], %r0;\n"
#define BARRIER "    bar.sync 0;\n"

/* Item 33 writes the first word; all items read it. */
#define ALL_READ                                                                                                       \
    "    setp.eq.u32 %p1, %r0, 33;\n    @%p1 st.shared.u32 [tile], 1;\n" BARRIER "    ld.shared.u32 %r5, [tile];\n"
#define TWO_READ                                                                                                       \
    "    setp.eq.u32 %p1, %r0, 33;\n    setp.lt.u32 %p2, %r0, 2;\n    @%p1 st.shared.u32 [tile], 1;\n" BARRIER         \
    "    @%p2 ld.shared.u32 %r5, [tile];\n"
#define GENERIC_OTHER "    cvt.u64.u32 %d5, %r6;\n    cvta.shared.u64 %d5, %d5;\n"
#define READ_FIRST "    ld.shared.u32 %r5, [tile];\n"
#define WRITE_FIRST "    @%p1 st.shared.u32 [tile], 1;\n"

static void races_between_work_items(void **unused) {
    (void)unused;
    static const fault_row rows[] = {
        {OWN WRITE_OWN BARRIER READ_OTHER, NULL},
        {OWN WRITE_OWN READ_OWN WRITE_OWN READ_OWN, NULL},
        {OWN WRITE_OWN READ_OTHER, "without a barrier between"},
        /* Read by others, then overwritten. */
        {OWN WRITE_OWN BARRIER READ_OTHER WRITE_OWN, "of shared memory, which another"},
        {OWN WRITE_OWN BARRIER READ_OTHER BARRIER WRITE_OWN BARRIER READ_OTHER, NULL},
        {OWN WRITE_OWN BARRIER READ_OWN WRITE_OWN, NULL},
        /* Both write, which is a race even with the same value. */
        {OWN WRITE_OWN WRITE_OTHER, "write offset"},
        {OWN WRITE_OWN BARRIER WRITE_OTHER, NULL},
        {"    st.shared.u32 [tile+8], 1;\n", "write offset 8 of shared memory without a barrier between"},
        {"    setp.eq.u32 %p1, %r0, 33;\n    @%p1 st.shared.u32 [tile+8], 1;\n" BARRIER
         "    ld.shared.u32 %r5, [tile+8];\n",
         NULL},
        /* All read one place and one of them writes it: before the barrier, after it. */
        {"    setp.eq.u32 %p1, %r0, 33;\n    @%p1 st.shared.u32 [tile], 1;\n" BARRIER
         "    ld.shared.u32 %r5, [tile];\n    @%p1 st.shared.u32 [tile], 1;\n",
         "race: work-item 33 writes offset 0 of shared memory, which another"},
        {"    setp.eq.u32 %p1, %r0, 33;\n    @%p1 st.shared.u32 [tile], 1;\n" BARRIER
         "    ld.shared.u32 %r5, [tile];\n" BARRIER "    @%p1 st.shared.u32 [tile], 1;\n",
         NULL},
        /* With one more barrier, because barriers change the order of the warps; and a writer that only
         * synchronises its own warp. */
        {ALL_READ BARRIER READ_FIRST WRITE_FIRST, "race: work-item 33 writes offset 0 of shared memory, which another"},
        /* Two work-items of the other warp read it, before and after a barrier, whichever warp comes first. */
        {TWO_READ BARRIER "    @%p2 ld.shared.u32 %r5, [tile];\n" WRITE_FIRST, "without a barrier between"},
        {TWO_READ BARRIER BARRIER "    @%p2 ld.shared.u32 %r5, [tile];\n" WRITE_FIRST, "without a barrier between"},
        /* Generic addresses. */
        {OWN WRITE_OWN GENERIC_OTHER "    ld.u32 %r5, [%d5];\n", "without a barrier between"},
        {OWN WRITE_OWN GENERIC_OTHER "    st.u32 [%d5], %r0;\n", "write offset"},
        {OWN WRITE_OWN BARRIER GENERIC_OTHER "    ld.u32 %r5, [%d5];\n", NULL},
        /* Read only by the writer's own warp; only by the other warp. */
        {"    setp.eq.u32 %p1, %r0, 0;\n    setp.lt.u32 %p2, %r0, 2;\n    @%p1 st.shared.u32 [tile], 1;\n" BARRIER
         "    @%p2 ld.shared.u32 %r5, [tile];\n"
         "    @%p1 st.shared.u32 [tile], 1;\n",
         "race: work-item 0 writes offset 0"},
        {"    setp.eq.u32 %p1, %r0, 0;\n    setp.ge.u32 %p2, %r0, 63;\n    @%p1 st.shared.u32 [tile], 1;\n" BARRIER
         "    @%p2 ld.shared.u32 %r5, [tile];\n"
         "    @%p1 st.shared.u32 [tile], 1;\n",
         "which"},
        /* Vectors: item n writes 16 bytes from 8 n on. */
        {"    mov.u32 %r9, tile;\n    and.b32 %r7, %r0, 62;\n    mad.lo.u32 %r4, %r7, 8, %r9;\n    st.shared.v4.u32 "
         "[%r4], {%r0, %r0, %r0, %r0};\n",
         " write offset "},
        {"    mov.u32 %r9, tile;\n    mad.lo.u32 %r4, %r0, 16, %r9;\n    st.shared.v4.u32 [%r4], {%r0, %r0, %r0, "
         "%r0};\n",
         NULL},
    };
    check_races(rows, sizeof rows / sizeof *rows);
}

/* Neighbouring elements smaller than a word are different places. */
static void neighbours_in_a_word_do_not_race(void **unused) {
    (void)unused;
    static const fault_row rows[] = {
        {"    mov.u32 %r9, tile;\n    add.u32 %r4, %r0, %r9;\n    cvt.u16.u32 %h1, %r0;\n    st.shared.u8 [%r4], "
         "%h1;\n",
         NULL},
        {"    mov.u32 %r9, tile;\n    mad.lo.u32 %r4, %r0, 2, %r9;\n    cvt.u16.u32 %h1, %r0;\n    st.shared.b16 "
         "[%r4], %h1;\n",
         NULL},
        {"    mov.u32 %r9, tile;\n    add.u32 %r4, %r0, %r9;\n    cvt.u16.u32 %h1, %r0;\n    st.shared.u8 [%r4], "
         "%h1;\n    and.b32 %r5, %r4, 1020;\n"
         "    ld.shared.u32 %r6, [%r5];\n",
         "without a barrier between"},
    };
    check_races(rows, sizeof rows / sizeof *rows);
}

/* bar.warp.sync orders the lanes of one warp; two warps need a barrier. */
static void warps_order_their_own_lanes(void **unused) {
    (void)unused;
#define NEIGHBOUR "    xor.b32 %r7, %r4, 4;\n"
#define FAR "    xor.b32 %r7, %r4, 128;\n"
#define SYNC "    bar.warp.sync 0xffffffff;\n"
    static const fault_row rows[] = {
        {OWN NEIGHBOUR WRITE_OWN "    ld.shared.u32 %r5, [%r7];\n", "without a barrier between"},
        {OWN NEIGHBOUR WRITE_OWN SYNC "    ld.shared.u32 %r5, [%r7];\n", NULL},
        {OWN NEIGHBOUR WRITE_OWN SYNC "    ld.shared.u32 %r5, [%r7];\n" WRITE_OWN, "which another"},
        {OWN NEIGHBOUR WRITE_OWN SYNC "    ld.shared.u32 %r5, [%r7];\n" SYNC WRITE_OWN, NULL},
        {OWN FAR WRITE_OWN SYNC "    ld.shared.u32 %r5, [%r7];\n", "without a barrier between"},
        {OWN FAR SYNC WRITE_OWN "    ld.shared.u32 %r5, [%r7];\n", "without a barrier between"},
        /* All read a place that item 33 then writes; bar.warp.sync orders only its own warp. */
        {ALL_READ SYNC WRITE_FIRST, "without a barrier between"},
        {ALL_READ BARRIER READ_FIRST SYNC WRITE_FIRST, "without a barrier between"},
        {ALL_READ SYNC BARRIER WRITE_FIRST, NULL},
    };
    check_races(rows, sizeof rows / sizeof *rows);
}

static void atomics_do_not_race(void **unused) {
    (void)unused;
    rig r;
    rig_init(&r);
    r.declarations = TILE, r.items = 96, r.groups = 5, r.threads = 3;
    rig_run(
        &r,
        "    setp.eq.u32 %p1, %r0, 0;\n    @%p1 st.shared.u32 [tile], 0;\n" BARRIER
        "    red.shared.add.u32 [tile], %r0;\n"
        "    atom.shared.add.u32 %r5, [tile], 1;\n    red.global.add.u32 [%d1], 1;\n" BARRIER
        "    ld.shared.u32 %r5, [tile];\n    setp.ne.u32 %p2, %r5, 4656;\n    @%p2 red.global.add.u32 [%d1+4], 1;\n");
    rig_expect_fault(&r, NULL);
    uint32_t out[2];
    memcpy(out, r.out, sizeof out);
    assert_int_equal(out[0], 5 * 96); /* and each group has 0 + 1 + ... + 95 + 96 = 4656 */
    assert_int_equal(out[1], 0);
}

/* Shared memory is per group: writes of another group do not count. */
static void memory_that_the_group_never_wrote(void **unused) {
    (void)unused;
    rig r;
    rig_init(&r);
    r.declarations = TILE, r.groups = 2;
    rig_run(&r, "    setp.ne.u32 %p1, %r2, 0;\n    mov.u32 %r4, tile;\n    mad.lo.u32 %r4, %r0, 4, %r4;\n    @!%p1 "
                "st.shared.u32 [%r4], 5;\n"
                "    ld.shared.u32 %r5, [%r4];\n");
    rig_expect_fault(&r, "reads offset 0 of shared memory, which its group never wrote, in group 1 0 0");
}

/* --- addresses */

static void accesses_outside_of_all_memory(void **unused) {
    (void)unused;
#define GLOBAL "outside the memory of the launch"
    static const fault_row rows[] = {
        {"    ld.global.u32 %r5, [%d1+16380];\n", NULL},
        {"    ld.global.u32 %r5, [%d1+16384];\n", "read of 4 bytes " GLOBAL},
        {"    st.global.u32 [%d1+16384], %r5;\n", "write of 4 bytes " GLOBAL},
        {"    ld.global.u32 %r5, [%d0+-4];\n", "read of 4 bytes " GLOBAL},
        {"    red.global.add.u32 [%d1+16384], 1;\n", "atomic access of 4 bytes " GLOBAL},
        {"    ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%d1+16368];\n", NULL},
        {"    ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%d1+16376];\n", "read of 16 bytes " GLOBAL},
        {"    mov.u64 %d5, 0;\n    ld.global.u32 %r5, [%d5];\n", GLOBAL ", at 0x0 by work-item "},
        {"    mov.u64 %d5, -2;\n    st.global.u32 [%d5], %r5;\n", GLOBAL},
        {"    ld.u32 %r5, [%d1+16384];\n", GLOBAL},
        /* one lane of the last warp */
        {"    setp.eq.u32 %p1, %r0, 37;\n    mov.u64 %d5, %d1;\n    @%p1 add.s64 %d5, %d5, 1048576;\n    ld.global.u32 "
         "%r5, [%d5];\n",
         "by work-item 37"},
        /* the neighbouring buffers are allowed, but an access across two of them is not */
        {"    ld.global.u32 %r5, [%d0+16384];\n", NULL},
        {"    ld.global.u64 %d5, [%d0+16380];\n", GLOBAL},
        /* shared memory: 1024 static bytes */
        {"    st.shared.u32 [tile+1020], 1;\n", "race"},
        {"    setp.eq.u32 %p1, %r0, 5;\n    @%p1 st.shared.u32 [tile+1024], 1;\n",
         "write of 4 bytes at offset 1024 of 1024 bytes of shared memory by work-item 5"},
        {"    ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [tile+1016];\n",
         "read of 16 bytes at offset 1016 of 1024 bytes of shared memory"},
        {"    mov.u32 %r4, tile;\n    ld.shared.u32 %r5, [%r4+-4];\n", "bytes of shared memory"},
        {"    mov.u64 %d5, tile;\n    cvta.shared.u64 %d5, %d5;\n    ld.u32 %r5, [%d5+1024];\n",
         "offset 1024 of 1024 bytes of shared memory"},
        {"    red.shared.add.u32 [tile+1024], 1;\n", "atomic access of 4 bytes at offset 1024"},
        /* local memory: 16 bytes per lane */
        {"    .local .align 8 .b8 own[16];\n    st.local.u32 [own+12], %r0;\n    ld.local.u32 %r5, [own+12];\n", NULL},
        {"    .local .align 8 .b8 own[16];\n    st.local.u32 [own+16], %r0;\n",
         "write of 4 bytes at offset 16 of 16 bytes of local memory"},
        {"    .local .align 8 .b8 own[16];\n    mov.u64 %d5, own;\n    cvta.local.u64 %d5, %d5;\n    ld.u64 %d6, "
         "[%d5+16];\n",
         "read of 8 bytes at offset 16 of 16 bytes of local memory"},
        /* parameters: 32 bytes */
        {"    ld.param.u32 %r5, [k_param_2];\n    ld.param.u64 %d5, [k_param_3];\n", NULL},
        {"    ld.param.u64 %d5, [k_param_3+8];\n", "read of 8 bytes at offset 32 of 32 bytes of parameters"},
        /* variables of the module */
        {"    ld.global.u32 %r5, [table+12];\n    ld.const.u32 %r6, [fixed+12];\n    st.global.u32 [table+12], %r5;\n",
         NULL},
        {"    ld.global.u32 %r5, [table+16];\n", GLOBAL},
        {"    ld.const.u32 %r6, [fixed+16];\n", GLOBAL},
    };
    CHECK_ROWS(TILE ".global .align 4 .u32 table[4] = {1, 2, 3, 4};\n.const .align 4 .u32 fixed[4] = {1, 2, 3, 4};\n",
               40, rows);
}

static void shared_memory_of_the_launch_lies_behind_the_static_one(void **unused) {
    (void)unused;
    for (uint32_t dynamic = 0; dynamic <= 128; dynamic += 128) {
        rig r;
        rig_init(&r);
        r.dynamic_shared = dynamic;
        rig_run(
            &r,
            "    .shared .align 16 .b8 fixed[64];\n    setp.eq.u32 %p1, %r0, 0;\n    ld.param.u64 %d5, [k_param_3];\n"
            "    cvt.u32.u64 %r4, %d5;\n    @%p1 st.shared.u32 [%r4+124], 1;\n    @%p1 st.shared.u32 [fixed], 1;\n");
        rig_expect_fault(&r,
                         dynamic ? NULL : "write of 4 bytes at offset 188 of 64 bytes of shared memory by work-item 0");
    }
}

/* A forbidden load gives NaN, a forbidden store does nothing; the other lanes proceed. */
static void other_lanes_of_a_forbidden_access_go_on(void **unused) {
    (void)unused;
    rig r;
    rig_init(&r);
    uint32_t in[32], out[32];
    for (uint32_t i = 0; i < 32; ++i) in[i] = 100 + i;
    memcpy(r.in, in, sizeof in);
    rig_run(&r, "    mul.wide.u32 %d2, %r0, 4;\n    add.s64 %d3, %d2, %d0;\n    add.s64 %d2, %d2, %d1;\n    "
                "setp.eq.u32 %p1, %r0, 9;\n"
                "    @%p1 mov.u64 %d3, 64;\n    ld.global.u32 %r5, [%d3];\n    st.global.u32 [%d2], %r5;\n");
    rig_expect_fault(&r, "outside the memory of the launch, at 0x40 by work-item 9");
    memcpy(out, r.out, sizeof out);
    for (uint32_t i = 0; i < 32; ++i) assert_int_equal(out[i], i == 9 ? 0xffffffff : 100 + i);
    /* and now the store */
    rig_run(&r, "    mul.wide.u32 %d2, %r0, 4;\n    add.s64 %d2, %d2, %d1;\n    setp.eq.u32 %p1, %r0, 9;\n    @%p1 "
                "mov.u64 %d2, 64;\n"
                "    st.global.u32 [%d2], 7;\n");
    rig_expect_fault(&r, "write of 4 bytes outside the memory of the launch, at 0x40");
    memcpy(out, r.out, sizeof out);
    for (uint32_t i = 0; i < 32; ++i) assert_int_equal(out[i], i == 9 ? 0xffffffff : 7);
}

/* Vectors need the alignment of the whole vector. */
static void misaligned_accesses(void **unused) {
    (void)unused;
    static const fault_row rows[] = {
        {"    ld.global.u16 %h1, [%d1+1];\n", "misaligned read of 2 bytes"},
        {"    ld.global.u32 %r5, [%d1+2];\n", "misaligned read of 4 bytes"},
        {"    st.global.u32 [%d1+2], %r5;\n", "misaligned write of 4 bytes"},
        {"    ld.global.u64 %d5, [%d1+4];\n", "misaligned read of 8 bytes"},
        {"    ld.global.v2.u16 {%h1, %h2}, [%d1+2];\n", "misaligned read of 4 bytes"},
        {"    ld.global.v2.f32 {%f1, %f2}, [%d1+4];\n", "misaligned read of 8 bytes"},
        {"    ld.global.v2.f32 {%f1, %f2}, [%d1+8];\n", NULL},
        {"    ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%d1+8];\n", "misaligned read of 16 bytes"},
        {"    ld.global.v2.u64 {%d5, %d6}, [%d1+8];\n", "misaligned read of 16 bytes"},
        {"    ld.global.v4.u8 {%h1, %h2, %h3, %h4}, [%d1+2];\n", "misaligned read of 4 bytes"},
        {"    ld.global.u8 %h1, [%d1+3];\n", NULL},
        {"    ld.u32 %r5, [%d1+1];\n", "misaligned read of 4 bytes"},
        {"    red.global.add.u32 [%d1+2], 1;\n", "misaligned atomic access of 4 bytes"},
        {"    atom.global.add.u64 %d5, [%d1+4], 1;\n", "misaligned atomic access of 8 bytes"},
        {"    ld.shared.u32 %r5, [tile+2];\n", "misaligned read of 4 bytes"},
        {"    ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [tile+8];\n", "misaligned read of 16 bytes"},
        {"    .local .align 8 .b8 own[16];\n    st.local.u32 [own+2], %r0;\n", "misaligned write of 4 bytes"},
        {"    ld.param.u32 %r5, [k_param_2+2];\n", "misaligned read of 4 bytes"},
        {"    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [tile+8];\n", "misaligned read of 16 bytes"},
        /* lane 3 only */
        {"    setp.eq.u32 %p1, %r0, 3;\n    mov.u64 %d5, %d1;\n    @%p1 add.s64 %d5, %d5, 1;\n    ld.global.u32 %r5, "
         "[%d5];\n",
         "by work-item 3"},
        /* after an access to the same buffer */
        {"    ld.global.u32 %r5, [%d1+4];\n    ld.global.u32 %r6, [%d1+6];\n", "misaligned read of 4 bytes"},
    };
    CHECK_ROWS(TILE, 32, rows);
}

static void memory_that_is_only_read(void **unused) {
    (void)unused;
    static const fault_row rows[] = {
        {"    ld.global.u32 %r5, [%d0];\n    ld.global.nc.u32 %r6, [%d0+4];\n", NULL},
        {"    st.global.u32 [%d0], %r0;\n", "write of 4 bytes in memory that is only read"},
        {"    st.u32 [%d0], %r0;\n", "write of 4 bytes in memory that is only read"},
        {"    red.global.add.u32 [%d0], 1;\n", "atomic access of 4 bytes in memory that is only read"},
        {"    st.global.u32 [fixed], %r0;\n", "write of 4 bytes in memory that is only read"},
        /* a load first, so the last-access range is the read-only one */
        {"    ld.global.u32 %r5, [%d0];\n    st.global.u32 [%d0+64], %r0;\n",
         "write of 4 bytes in memory that is only read"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        rig r;
        rig_init(&r);
        r.input_only = true, r.declarations = ".const .align 4 .u32 fixed[4] = {1, 2, 3, 4};\n";
        memset(r.in, 7, sizeof r.in);
        rig_run(&r, rows[i].body);
        rig_expect_fault(&r, rows[i].fault);
        for (int k = 0; k < 128; ++k) assert_int_equal(r.in[k], 7);
    }
}

/* An instruction is reported once per kind of fault, and a launch has at most 20 reports. */
static void faults_are_reported_once(void **unused) {
    (void)unused;
    rig r;
    rig_init(&r);
    r.items = 256, r.groups = 8, r.threads = 4;
    rig_run(&r, "    mov.u32 %r4, 0;\nL:  ld.global.u32 %r5, [%d1+16384];\n    add.u32 %r4, %r4, 1;\n    setp.lt.u32 "
                "%p1, %r4, 10;\n    @%p1 bra L;\n");
    rig_expect_fault(&r, "ld.global.u32 %r5, [%d1+16384]");
    char body[4096] = "";
    for (int i = 0; i < 30; ++i) strcat(body, "    ld.global.u32 %r5, [%d1+16384];\n");
    rig_run(&r, body);
    assert_int_equal(r.n_faults, 20);
    assert_true(r.finished);
}

/* One instruction with one lane out of range and one misaligned: two faults. */
static void an_instruction_may_have_several_faults(void **unused) {
    (void)unused;
    rig r;
    rig_init(&r);
    rig_run(&r, "    mov.u64 %d5, %d1;\n    setp.eq.u32 %p1, %r0, 3;\n    @%p1 add.s64 %d5, %d5, 2;\n    setp.eq.u32 "
                "%p1, %r0, 5;\n"
                "    @%p1 add.s64 %d5, %d5, 16384;\n    ld.global.u32 %r5, [%d5];\n");
    assert_int_equal(r.n_faults, 2);
    assert_non_null(strstr(r.faults[0], "misaligned read of 4 bytes"));
    assert_non_null(strstr(r.faults[0], "by work-item 3"));
    assert_non_null(strstr(r.faults[1], "outside the memory of the launch"));
    assert_non_null(strstr(r.faults[1], "by work-item 5"));
}

/* --- cp.async: each lane copies its 16 bytes of `in` to its place in the tile */

#define COPY_SETUP                                                                                                     \
    "    mov.u32 %r9, tile;\n    mad.lo.u32 %r4, %r0, 16, %r9;\n    mul.wide.u32 %d3, %r0, 16;\n    add.s64 %d3, "     \
    "%d3, %d0;\n"                                                                                                      \
    "    mul.wide.u32 %d2, %r1, 16;\n    add.s64 %d2, %d2, %d1;\n"
#define COPY "    cp.async.cg.shared.global [%r4], [%d3], 16;\n"
#define COMMIT "    cp.async.commit_group;\n"
#define WAIT(n) "    cp.async.wait_group " #n ";\n"
#define WAIT_ALL "    cp.async.wait_all;\n"
#define READ16 "    ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r4];\n"
#define SECOND "    cp.async.cg.shared.global [%r4+512], [%d3+512], 16;\n"
#define READ_SECOND "    ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r4+512];\n"

static void copies_must_be_waited_for(void **unused) {
    (void)unused;
#define UNDER_WAY "of shared memory while a copy of work-item 0 to it is under way"
    static const fault_row rows[] = {
        {COPY_SETUP COPY COMMIT WAIT(0) READ16, NULL},
        {COPY_SETUP COPY WAIT_ALL READ16, NULL},
        {COPY_SETUP COPY COMMIT READ16 WAIT(0), "work-item 0 reads offset 0 " UNDER_WAY},
        {COPY_SETUP COPY COMMIT "    st.shared.u32 [%r4], %r0;\n" WAIT(0), "work-item 0 writes offset 0 " UNDER_WAY},
        /* The newest group may be in flight; an uncommitted one always is. */
        {COPY_SETUP COPY COMMIT SECOND COMMIT WAIT(1) READ16 WAIT(0) READ_SECOND, NULL},
        {COPY_SETUP COPY COMMIT SECOND COMMIT WAIT(1) READ_SECOND WAIT(0), "work-item 0 reads offset 512 " UNDER_WAY},
        {COPY_SETUP COPY COMMIT SECOND COMMIT WAIT(2) READ16 WAIT(0), "work-item 0 reads offset 0 " UNDER_WAY},
        {COPY_SETUP COPY WAIT(0) READ16 WAIT_ALL, "work-item 0 reads offset 0 " UNDER_WAY},
        {COPY_SETUP COPY COMMIT SECOND WAIT(0) READ16 WAIT_ALL, NULL},
        {COPY_SETUP COPY COMMIT, "ends with copies under way"},
        /* An empty group counts. */
        {COPY_SETUP COPY COMMIT COMMIT WAIT(1) READ16, NULL},
        /* A lane waits only for its own copies; other lanes need a barrier after the wait. */
        {COPY_SETUP COPY COMMIT WAIT(0) "    xor.b32 %r4, %r4, 16;\n" READ16, "without a barrier between"},
        {COPY_SETUP COPY COMMIT WAIT(0) BARRIER "    xor.b32 %r4, %r4, 16;\n" READ16, NULL},
        {COPY_SETUP COPY COMMIT BARRIER "    xor.b32 %r4, %r4, 16;\n" READ16 WAIT(0), "is under way"},
        /* Two copies to one place, and a copy over a place that others read. */
        {COPY_SETUP COPY COPY WAIT_ALL, "work-item 0 writes offset 0 " UNDER_WAY},
        {COPY_SETUP COPY WAIT_ALL BARRIER "    xor.b32 %r6, %r4, 16;\n    ld.shared.u32 %r5, [%r6];\n" COPY WAIT_ALL,
         "which another"},
        {COPY_SETUP COPY WAIT_ALL BARRIER
         "    xor.b32 %r6, %r4, 16;\n    ld.shared.u32 %r5, [%r6];\n" BARRIER COPY WAIT_ALL,
         NULL},
        /* Places and sizes. */
        {COPY_SETUP
         "    cp.async.ca.shared.global [%r4], [%d3], 4;\n    cp.async.ca.shared.global [%r4+8], [%d3], 8;\n" WAIT_ALL,
         NULL},
        {COPY_SETUP "    cp.async.ca.shared.global [%r4+4], [%d3], 8;\n" WAIT_ALL,
         "misaligned cp.async of 8 bytes by work-item 0"},
        {COPY_SETUP "    cp.async.cg.shared.global [%r4], [%d3+8], 16;\n" WAIT_ALL,
         "misaligned cp.async of 16 bytes by work-item 0"},
        {COPY_SETUP "    cp.async.cg.shared.global [%r4+512], [%d3], 16;\n    cp.async.cg.shared.global [%r4+1024], "
                    "[%d3], 16;\n" WAIT_ALL,
         "cp.async of work-item 0 to offset 1024 of 1024 bytes of shared memory"},
        {COPY_SETUP "    cp.async.cg.shared.global [%r4], [%d1+16384], 16;\n" WAIT_ALL,
         "cp.async of 16 bytes outside the memory of the launch"},
        /* 4, 8 or 16 bytes; .cg only 16 */
        {COPY_SETUP "    cp.async.ca.shared.global [%r4], [%d3], 5;\n" WAIT_ALL, "cp.async of 5 bytes"},
        {COPY_SETUP "    cp.async.ca.shared.global [%r4], [%d3], 0;\n" WAIT_ALL, "cp.async of 0 bytes"},
        {COPY_SETUP "    cp.async.ca.shared.global [%r4], [%d3], 32;\n" WAIT_ALL, "cp.async of 32 bytes"},
        {COPY_SETUP "    cp.async.ca.shared.global [%r4], [%d3], 272;\n" WAIT_ALL, "cp.async of 272 bytes"},
        {COPY_SETUP "    cp.async.cg.shared.global [%r4], [%d3], 8;\n" WAIT_ALL, "cp.async of 8 bytes"},
        /* Reads 0 of the 16 bytes, so the address does not matter. */
        {COPY_SETUP
         "    mov.u32 %r10, 0;\n    cp.async.cg.shared.global [%r4], [%d1+16384], 16, %r10;\n" WAIT_ALL READ16,
         NULL},
        {COPY_SETUP "    mov.u32 %r10, 4;\n    cp.async.cg.shared.global [%r4], [%d1+16384], 16, %r10;\n" WAIT_ALL,
         "cp.async of 4 bytes outside the memory of the launch"},
    };
    CHECK_ROWS(TILE, 32, rows);
}

/* The bytes arrive as late as allowed, at the wait. Bytes that are not read are 0. */
static void copies_arrive_at_the_wait(void **unused) {
    (void)unused;
    for (uint32_t read = 0; read <= 16; read += 4) {
        rig r;
        rig_init(&r);
        r.declarations = TILE;
        memset(r.in, 3, 1024);
        char body[2048] = "";
        rig_append(body, sizeof body, "    mov.u32 %%r10, %u;\n%s", read,
                   COPY_SETUP "    cp.async.cg.shared.global [%r4], [%d3], 16, %r10;\n" COMMIT
                              "    mov.u32 %r11, 0x05050505;\n    st.global.u32 [%d3], %r11;\n" WAIT(0) READ16
                   "    st.global.v4.u32 [%d2], {%r5, %r6, %r7, %r8};\n");
        rig_run(&r, body);
        rig_expect_fault(&r, NULL);
        for (uint32_t i = 0; i < 512; ++i) assert_int_equal(r.out[i], i % 16 >= read ? 0 : i % 16 < 4 ? 5 : 3);
    }
}

/* Inactive lanes do not wait. */
static void lanes_wait_for_their_own_copies(void **unused) {
    (void)unused;
    rig r;
    rig_init(&r);
    r.declarations = TILE;
    rig_run(&r,
            COPY_SETUP COPY COMMIT "    setp.lt.u32 %p1, %r0, 16;\n    @%p1 bra A;\n" WAIT(0) "A:\n" READ16 WAIT(0));
    rig_expect_fault(&r, "work-item 0 reads offset 0 of shared memory while a copy of work-item 0 to it is under way");
    rig_run(&r,
            COPY_SETUP COPY COMMIT "    setp.lt.u32 %p1, %r0, 16;\n    @%p1 bra A;\n" WAIT(0) READ16 "A:\n" WAIT(0));
    rig_expect_fault(&r, NULL);
}

/* --- atomic and other accesses */

#define FIRST_ATOMIC "    red.shared.add.u32 [tile], 1;\n"
#define ZERO_FIRST "    setp.eq.u32 %p1, %r0, 33;\n    @%p1 st.shared.u32 [tile], 0;\n" BARRIER

static void atomics_race_with_loads_and_stores(void **unused) {
    (void)unused;
    static const fault_row rows[] = {
        {ZERO_FIRST FIRST_ATOMIC FIRST_ATOMIC BARRIER READ_FIRST, NULL},
        {ZERO_FIRST FIRST_ATOMIC READ_FIRST, "offset 0 of shared memory, which"},
        {ZERO_FIRST FIRST_ATOMIC WRITE_FIRST, "offset 0 of shared memory"},
        {ZERO_FIRST READ_FIRST FIRST_ATOMIC, "race: an atomic access of work-item"},
        {ZERO_FIRST WRITE_FIRST FIRST_ATOMIC, "race: an atomic access of work-item"},
        {ZERO_FIRST "    @%p1 red.shared.add.u32 [tile], 1;\n    @%p1 ld.shared.u32 %r5, [tile];\n", NULL},
        /* An item's own atomic access does not hide one of another item, in the same or another warp. */
        {ZERO_FIRST "    setp.ge.u32 %p2, %r0, 62;\n    @%p2 red.shared.add.u32 [tile], 1;\n"
                    "    setp.eq.u32 %p3, %r0, 63;\n    @%p3 ld.shared.u32 %r5, [tile];\n",
         "race: work-item 63 reads offset 0"},
        {ZERO_FIRST "    setp.ge.u32 %p2, %r0, 62;\n    @%p2 red.shared.add.u32 [tile], 1;\n    bar.warp.sync -1;\n"
                    "    setp.eq.u32 %p3, %r0, 63;\n    @%p3 ld.shared.u32 %r5, [tile];\n",
         NULL},
        {ZERO_FIRST FIRST_ATOMIC "    bar.warp.sync -1;\n" READ_FIRST, "offset 0 of shared memory, which"},
        {ZERO_FIRST FIRST_ATOMIC
         "    bar.warp.sync -1;\n    setp.eq.u32 %p3, %r0, 0;\n    @%p3 ld.shared.u32 %r5, [tile];\n",
         "offset 0 of shared memory, which"},
        {ZERO_FIRST FIRST_ATOMIC
         "    bar.warp.sync -1;\n    setp.eq.u32 %p3, %r0, 63;\n    @%p3 ld.shared.u32 %r5, [tile];\n",
         "offset 0 of shared memory, which"},
        {FIRST_ATOMIC, "accesses offset 0 of shared memory, which its group never wrote"},
    };
    check_races(rows, sizeof rows / sizeof *rows);
}

#define COUNT "    atom.global.add.u32 %r5, [%d1+8], 1;\n"
#define LOOK "    ld.global.u32 %r6, [%d1+8];\n"
#define LOST "of global memory, which another group accesses atomically in the same launch"

/* One host thread runs the groups in order. */
static void loads_beside_atomics_of_other_groups(void **unused) {
    (void)unused;
    static const fault_row rows[] = {
        {COUNT, NULL},
        {LOOK, NULL},
        {COUNT "    ld.global.u32 %r6, [%d1+12];\n    ld.global.u32 %r6, [%d1+4];\n", NULL},
        {COUNT LOOK, LOST},
        {COUNT "    ld.global.v4.u32 {%r6, %r7, %r8, %r9}, [%d1];\n", LOST},
        {COUNT "    ld.u32 %r6, [%d1+8];\n", LOST},
        {LOOK COUNT, LOST},
        {COUNT "    ld.relaxed.gpu.global.u32 %r6, [%d1+8];\n    ld.acquire.gpu.global.u32 %r6, [%d1+8];\n", NULL},
        /* Data that the group has published: arrival, fence, load. */
        {COUNT "    membar.gl;\n" LOOK, NULL},
        {COUNT "    fence.acq_rel.gpu;\n" LOOK, NULL},
        {COUNT "    membar.cta;\n" LOOK, LOST},
        {"    membar.gl;\n" COUNT LOOK, LOST},
        {COUNT "    membar.gl;\n" COUNT LOOK, LOST},
        /* A group that only reads. */
        {"    mov.u32 %r9, %ctaid.x;\n    setp.eq.u32 %p1, %r9, 0;\n    @%p1 atom.global.add.u32 %r5, [%d1+8], 1;\n"
         "    membar.gl;\n" LOOK,
         LOST},
        {"    mov.u32 %r9, %ctaid.x;\n    setp.eq.u32 %p1, %r9, 0;\n    @%p1 atom.global.add.u32 %r5, [%d1+8], 1;\n"
         "    @%p1 ld.global.u32 %r6, [%d1+8];\n",
         NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        rig r;
        rig_init(&r);
        r.groups = 3;
        rig_run(&r, rows[i].body);
        if (r.n_faults != (rows[i].fault ? 1 : 0) || (rows[i].fault && !strstr(r.faults[0], rows[i].fault)))
            fail_msg("%d faults, \"%s\", instead of \"%s\" of\n%s", r.n_faults, r.n_faults ? r.faults[0] : "",
                     rows[i].fault ? rows[i].fault : "", rows[i].body);
    }
}

/* --- registers that nothing wrote */

static void registers_that_nothing_wrote(void **unused) {
    (void)unused;
    static const fault_row rows[] = {
        {"    mov.u32 %r5, 3;\n    add.u32 %r6, %r5, %r0;\n    st.global.u32 [%d1], %r6;\n", NULL},
        {"    add.u32 %r6, %r5, %r0;\n", "work-item 0 reads a register that it never wrote"},
        {"    st.global.u32 [%d1], %r5;\n", "work-item 0 reads a register"},
        {"    add.u32 %r5, %r5, 1;\n    add.u32 %r6, %r5, 1;\n", "work-item 0 reads a register"},
        /* Written by some lanes: by the reading lanes, by others. */
        {"    setp.lt.u32 %p1, %r0, 7;\n    @%p1 add.u32 %r5, %r0, 1;\n    @%p1 add.u32 %r6, %r5, 1;\n", NULL},
        {"    setp.lt.u32 %p1, %r0, 7;\n    @%p1 add.u32 %r5, %r0, 1;\n    add.u32 %r6, %r5, 1;\n",
         "work-item 7 reads a register"},
        {"    setp.lt.u32 %p1, %r0, 7;\n    @%p1 add.u32 %r5, %r0, 1;\n    @!%p1 add.u32 %r5, %r0, 2;\n"
         "    add.u32 %r6, %r5, 1;\n",
         NULL},
        /* A move is not a use, but its result counts as unwritten. */
        {"    mov.u32 %r6, %r5;\n", NULL},
        {"    mov.u32 %r6, %r5;\n    add.u32 %r7, %r6, 1;\n", "work-item 0 reads a register"},
        {"    mov.u32 %r6, %r0;\n    add.u32 %r7, %r6, 1;\n", NULL},
        {"    @%p1 add.u32 %r7, %r0, 1;\n", "work-item 0 reads a register"},
        {"    @%p1 bra A;\nA:\n", "work-item 0 reads a register"},
        {"    ld.global.u32 %r5, [%d1];\n    add.u32 %r6, %r5, 1;\n    ld.global.u32 %r5, [%d4];\n",
         "reads a register"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        rig r;
        rig_init(&r);
        r.registers = true;
        rig_run(&r, rows[i].body);
        if (!rows[i].fault) rig_expect_fault(&r, NULL);
        if (rows[i].fault && (!r.n_faults || !strstr(r.faults[0], rows[i].fault)))
            fail_msg("\"%s\" instead of \"%s\" of\n%s", r.n_faults ? r.faults[0] : "", rows[i].fault, rows[i].body);
    }
}

/* Each group begins with unwritten registers. */
static void registers_of_another_group(void **unused) {
    (void)unused;
    rig r;
    rig_init(&r);
    r.registers = true, r.groups = 2;
    rig_run(&r, "    mov.u32 %r9, %ctaid.x;\n    setp.eq.u32 %p1, %r9, 0;\n    @%p1 add.u32 %r5, %r0, 1;\n"
                "    add.u32 %r6, %r5, 1;\n");
    rig_expect_fault(&r, "reads a register that it never wrote, in group 1 0 0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(races_between_work_items),
        cmocka_unit_test(neighbours_in_a_word_do_not_race),
        cmocka_unit_test(warps_order_their_own_lanes),
        cmocka_unit_test(atomics_do_not_race),
        cmocka_unit_test(memory_that_the_group_never_wrote),
        cmocka_unit_test(accesses_outside_of_all_memory),
        cmocka_unit_test(shared_memory_of_the_launch_lies_behind_the_static_one),
        cmocka_unit_test(other_lanes_of_a_forbidden_access_go_on),
        cmocka_unit_test(misaligned_accesses),
        cmocka_unit_test(memory_that_is_only_read),
        cmocka_unit_test(faults_are_reported_once),
        cmocka_unit_test(an_instruction_may_have_several_faults),
        cmocka_unit_test(copies_must_be_waited_for),
        cmocka_unit_test(copies_arrive_at_the_wait),
        cmocka_unit_test(lanes_wait_for_their_own_copies),
        cmocka_unit_test(atomics_race_with_loads_and_stores),
        cmocka_unit_test(loads_beside_atomics_of_other_groups),
        cmocka_unit_test(registers_that_nothing_wrote),
        cmocka_unit_test(registers_of_another_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

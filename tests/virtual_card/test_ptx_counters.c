/* Costs of requests, counted by hand from NVIDIA's rules (CUDA C++ Programming Guide, Compute Capability 5.x
 * and later; Nsight Compute's tables of memory): global memory moves in sectors of 32 bytes, shared memory
 * has 32 banks of 4 bytes. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ptx_rig.h"

/* Each lane accesses base + lane * stride + offset; lanes wrap at `modulo`. */
typedef struct access_row {
    const char *access; /* %d2: address in global memory; %r4: in shared memory */
    uint32_t stride, modulo, offset;
    uint64_t cost, least; /* sectors or wavefronts of the request, and the minimum */
} access_row;

static const char *registers = "";

static void run_access(rig *r, const access_row *row, uint32_t shared_bytes) {
    rig_init(r);
    char declarations[100] = "", body[2048];
    if (shared_bytes) snprintf(declarations, sizeof declarations, ".shared .align 128 .b8 tile[%u];\n", shared_bytes);
    r->declarations = declarations;
    snprintf(body, sizeof body,
             "%s    rem.u32 %%r4, %%r0, %u;\n    mad.lo.u32 %%r4, %%r4, %u, %u;\n    cvt.u64.u32 %%d2, %%r4;\n    "
             "add.s64 %%d2, %%d2, %%d1;\n"
             "%s    %s;\n",
             registers, row->modulo, row->stride, row->offset,
             shared_bytes ? "    mov.u32 %r9, tile;\n    add.u32 %r4, %r4, %r9;\n" : "", row->access);
    rig_run(r, body);
}

#define NONE 1000 /* modulo: no wrap */

static void sectors_of_loads(void **unused) {
    (void)unused;
    static const access_row rows[] = {
        /* coalesced: 32 lanes of 1, 2, 4, 8, 16 bytes are 32, 64, 128, 256, 512 bytes */
        {"ld.global.u8 %h1, [%d2]", 1, NONE, 0, 1, 1},
        {"ld.global.u16 %h1, [%d2]", 2, NONE, 0, 2, 2},
        {"ld.global.f32 %f1, [%d2]", 4, NONE, 0, 4, 4},
        {"ld.global.nc.f32 %f1, [%d2]", 4, NONE, 0, 4, 4},
        {"ld.f32 %f1, [%d2]", 4, NONE, 0, 4, 4},
        {"ld.global.v2.u16 {%h1, %h2}, [%d2]", 4, NONE, 0, 4, 4},
        {"ld.global.v4.u16 {%h1, %h2, %h3, %h4}, [%d2]", 8, NONE, 0, 8, 8},
        {"ld.global.u64 %d5, [%d2]", 8, NONE, 0, 8, 8},
        {"ld.global.v2.f32 {%f1, %f2}, [%d2]", 8, NONE, 0, 8, 8},
        {"ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%d2]", 16, NONE, 0, 16, 16},
        {"ld.global.v2.u64 {%d5, %d6}, [%d2]", 16, NONE, 0, 16, 16},
        /* 128 bytes that begin 4, 16 or 28 bytes into a sector touch five; 32 bytes further, four others */
        {"ld.global.f32 %f1, [%d2]", 4, NONE, 4, 5, 4},
        {"ld.global.f32 %f1, [%d2]", 4, NONE, 16, 5, 4},
        {"ld.global.f32 %f1, [%d2]", 4, NONE, 28, 5, 4},
        {"ld.global.f32 %f1, [%d2]", 4, NONE, 32, 4, 4},
        {"ld.global.u16 %h1, [%d2]", 2, NONE, 2, 3, 2},
        {"ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%d2]", 16, NONE, 16, 17, 16},
        /* every second word: 256 bytes; every fourth: 512; one per sector or per two sectors: 32 */
        {"ld.global.f32 %f1, [%d2]", 8, NONE, 0, 8, 4},
        {"ld.global.f32 %f1, [%d2]", 16, NONE, 0, 16, 4},
        {"ld.global.f32 %f1, [%d2]", 32, NONE, 0, 32, 4},
        {"ld.global.f32 %f1, [%d2]", 64, NONE, 0, 32, 4},
        {"ld.global.u16 %h1, [%d2]", 32, NONE, 0, 32, 2},
        /* rows of 36 bytes: 36 l / 32 grows with every lane */
        {"ld.global.f32 %f1, [%d2]", 36, NONE, 0, 32, 4},
        /* 4 of 12 bytes per lane are read: 384 bytes */
        {"ld.global.f32 %f1, [%d2]", 12, NONE, 0, 12, 4},
        /* all lanes read one word; groups of 8 lanes read the same word; two lanes share 16 bytes */
        {"ld.global.f32 %f1, [%d2]", 4, 1, 0, 1, 1},
        {"ld.global.f32 %f1, [%d2]", 4, 8, 0, 1, 1},
        {"ld.global.f32 %f1, [%d2]", 4, 8, 16, 2, 1},
        {"ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%d2]", 16, 16, 0, 8, 8},
        /* some lanes: 10 of 4 bytes; the odd ones */
        {"setp.lt.u32 %p1, %r0, 10;\n    @%p1 ld.global.f32 %f1, [%d2]", 4, NONE, 0, 2, 2},
        {"and.b32 %r5, %r0, 1;\n    setp.eq.u32 %p1, %r5, 1;\n    @%p1 ld.global.f32 %f1, [%d2]", 4, NONE, 0, 4, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        rig r;
        run_access(&r, &rows[i], 0);
        rig_expect_fault(&r, NULL);
        if (r.counters.global_loads != 1 || r.counters.global_load_sectors != rows[i].cost ||
            r.counters.global_load_least != rows[i].least)
            fail_msg("%s, stride %u, modulo %u, offset %u: %llu requests, %llu sectors of at least %llu",
                     rows[i].access, rows[i].stride, rows[i].modulo, rows[i].offset,
                     (unsigned long long)r.counters.global_loads, (unsigned long long)r.counters.global_load_sectors,
                     (unsigned long long)r.counters.global_load_least);
        assert_int_equal(r.counters.global_stores + r.counters.shared_loads + r.counters.local_accesses, 0);
    }
}

static void sectors_of_stores(void **unused) {
    (void)unused;
    static const access_row rows[] = {
        {"st.global.u16 [%d2], %h1", 2, NONE, 0, 2, 2},
        {"st.global.f32 [%d2], %f1", 4, NONE, 0, 4, 4},
        {"st.global.f32 [%d2], %f1", 4, NONE, 4, 5, 4},
        {"st.global.f32 [%d2], %f1", 128, NONE, 0, 32, 4},
        {"st.global.v4.f32 [%d2], {%f1, %f2, %f3, %f4}", 16, NONE, 0, 16, 16},
        {"red.global.add.u32 [%d2], %r5", 4, NONE, 0, 4, 4},
        {"red.global.add.u32 [%d2], %r5", 4, 1, 0, 1, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        rig r;
        run_access(&r, &rows[i], 0);
        rig_expect_fault(&r, NULL);
        assert_int_equal(r.counters.global_stores, 1);
        assert_int_equal(r.counters.global_store_sectors, rows[i].cost);
        assert_int_equal(r.counters.global_store_least, rows[i].least);
        assert_int_equal(r.counters.global_loads, 0);
    }
}

/* Different words of one bank are served one after the other; lanes that access the same word share it.
 * Accesses of 8 bytes per lane are served by half warp, of 16 by quarter warp: 128 bytes per wavefront. */
static const access_row shared_rows[] = {
    {"st.shared.u32 [%r4], %r0", 4, NONE, 0, 1, 1},
    {"st.shared.u32 [%r4], %r0", 4, NONE, 4, 1, 1}, /* the last lane wraps to bank 0, which lane 0 does not use */
    /* a stride of 2, 3, 4, ... words uses banks = 32 / gcd(stride, 32), with 32 / banks lanes each */
    {"st.shared.u32 [%r4], %r0", 8, NONE, 0, 2, 1},
    {"st.shared.u32 [%r4], %r0", 12, NONE, 0, 1, 1},
    {"st.shared.u32 [%r4], %r0", 16, NONE, 0, 4, 1},
    {"st.shared.u32 [%r4], %r0", 24, NONE, 0, 2, 1},
    {"st.shared.u32 [%r4], %r0", 32, NONE, 0, 8, 1},
    {"st.shared.u32 [%r4], %r0", 64, NONE, 0, 16, 1},
    {"st.shared.u32 [%r4], %r0", 128, NONE, 0, 32, 1},
    {"st.shared.u32 [%r4], %r0", 132, NONE, 0, 1, 1}, /* a padded row */
    {"st.shared.u32 [%r4], %r0", 256, NONE, 0, 32, 1},
    /* half types: two lanes per word */
    {"st.shared.u16 [%r4], %h1", 2, NONE, 0, 1, 1},
    {"st.shared.u16 [%r4], %h1", 4, NONE, 0, 1, 1},
    {"st.shared.u16 [%r4], %h1", 128, NONE, 0, 32, 1},
    {"st.shared.u16 [%r4], %h1", 66, NONE, 0, 1, 1}, /* 33 halves: even lanes in banks l / 2, odd ones 16 further */
    {"st.shared.u8 [%r4], %h1", 1, NONE, 0, 1, 1},
    /* 8 bytes: two wavefronts; with a stride of 16 bytes each half has two words per bank, with 128 sixteen */
    {"st.shared.v2.u32 [%r4], {%r0, %r0}", 8, NONE, 0, 2, 2},
    {"st.shared.u64 [%r4], %d5", 8, NONE, 0, 2, 2},
    {"st.shared.v2.u32 [%r4], {%r0, %r0}", 16, NONE, 0, 4, 2},
    {"st.shared.v2.u32 [%r4], {%r0, %r0}", 24, NONE, 0, 2, 2},
    {"st.shared.v2.u32 [%r4], {%r0, %r0}", 128, NONE, 0, 32, 2},
    /* 16 bytes: four; with a stride of 32 bytes each quarter has two per bank, with 128 eight, with 144 (a
     * padded row) one */
    {"st.shared.v4.u32 [%r4], {%r0, %r0, %r0, %r0}", 16, NONE, 0, 4, 4},
    {"st.shared.v4.u32 [%r4], {%r0, %r0, %r0, %r0}", 32, NONE, 0, 8, 4},
    {"st.shared.v4.u32 [%r4], {%r0, %r0, %r0, %r0}", 48, NONE, 0, 4, 4},
    {"st.shared.v4.u32 [%r4], {%r0, %r0, %r0, %r0}", 64, NONE, 0, 16, 4},
    {"st.shared.v4.u32 [%r4], {%r0, %r0, %r0, %r0}", 128, NONE, 0, 32, 4},
    {"st.shared.v4.u32 [%r4], {%r0, %r0, %r0, %r0}", 144, NONE, 0, 4, 4},
};

static void bank_conflicts_of_stores(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof shared_rows / sizeof *shared_rows; ++i) {
        rig r;
        run_access(&r, &shared_rows[i], 8192);
        rig_expect_fault(&r, NULL);
        if (r.counters.shared_stores != 1 || r.counters.shared_store_waves != shared_rows[i].cost ||
            r.counters.shared_store_least != shared_rows[i].least)
            fail_msg("%s, stride %u, offset %u: %llu wavefronts of at least %llu", shared_rows[i].access,
                     shared_rows[i].stride, shared_rows[i].offset, (unsigned long long)r.counters.shared_store_waves,
                     (unsigned long long)r.counters.shared_store_least);
        assert_int_equal(r.counters.global_stores, 0);
    }
}

/* Loads cost the same, and lanes may read one place. Everything is written first. */
static void bank_conflicts_of_loads(void **unused) {
    (void)unused;
    static const access_row rows[] = {
        {"ld.shared.u32 %r5, [%r4]", 4, NONE, 0, 1, 1},
        {"ld.shared.u32 %r5, [%r4]", 8, NONE, 0, 2, 1},
        {"ld.shared.u32 %r5, [%r4]", 128, NONE, 0, 32, 1},
        /* one word for all; 8 words that four lanes each read; 8 words of one bank */
        {"ld.shared.u32 %r5, [%r4]", 4, 1, 0, 1, 1},
        {"ld.shared.u32 %r5, [%r4]", 4, 8, 0, 1, 1},
        {"ld.shared.u32 %r5, [%r4]", 128, 8, 0, 8, 1},
        {"ld.shared.u16 %h1, [%r4]", 2, NONE, 0, 1, 1},
        {"ld.shared.u16 %h1, [%r4]", 64, 2, 0, 1, 1},
        /* vectors shared by lanes: one of 16 bytes for all takes four quarters of one wavefront */
        {"ld.shared.v2.u32 {%r5, %r6}, [%r4]", 8, 1, 0, 2, 2},
        {"ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r4]", 16, 1, 0, 4, 4},
        {"ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r4]", 16, 8, 0, 4, 4},
        {"ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r4]", 128, 2, 0, 8, 4},
        {"ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r4]", 128, NONE, 0, 32, 4},
        /* the first 16 lanes only: one half, two quarters */
        {"setp.lt.u32 %p1, %r0, 16;\n    @%p1 ld.shared.u64 %d5, [%r4]", 8, NONE, 0, 1, 1},
        {"setp.lt.u32 %p1, %r0, 16;\n    @%p1 ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r4]", 16, NONE, 0, 2, 2},
        {"ld.u32 %r5, [%d7]", 128, NONE, 0, 32, 1}, /* a generic address of shared memory */
    };
    registers = "    mov.u32 %r10, tile;\n    mad.lo.u32 %r10, %r0, 128, %r10;\n    mov.u32 %r11, 0;\n"
                "L:  st.shared.u32 [%r10], %r0;\n    add.u32 %r10, %r10, 4;\n    add.u32 %r11, %r11, 1;\n    "
                "setp.lt.u32 %p5, %r11, 32;\n"
                "    @%p5 bra L;\n    bar.sync 0;\n    mul.wide.u32 %d7, %r0, 128;\n    mov.u64 %d8, tile;\n    "
                "cvta.shared.u64 %d8, %d8;\n"
                "    add.s64 %d7, %d7, %d8;\n";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        rig r;
        run_access(&r, &rows[i], 4096);
        rig_expect_fault(&r, NULL);
        if (r.counters.shared_loads != 1 || r.counters.shared_load_waves != rows[i].cost ||
            r.counters.shared_load_least != rows[i].least)
            fail_msg("%s, stride %u, modulo %u: %llu wavefronts of at least %llu", rows[i].access, rows[i].stride,
                     rows[i].modulo, (unsigned long long)r.counters.shared_load_waves,
                     (unsigned long long)r.counters.shared_load_least);
        assert_int_equal(r.counters.shared_stores, 32);
        assert_int_equal(r.counters.shared_store_waves, 32 * 32); /* rows of 128 bytes per lane */
        assert_int_equal(r.counters.global_loads, 0);
    }
    registers = "";
}

/* cp.async: sectors of the bytes read. ldmatrix: one wavefront per matrix if its eight rows of 16 bytes are
 * in different banks. */
static void copies_and_loads_of_matrices(void **unused) {
    (void)unused;
    static const struct {
        const char *access;
        uint32_t stride, modulo;
        uint64_t copies, sectors, loads, waves;
    } rows[] = {
        {"cp.async.cg.shared.global [tile], [%d2], 16;\n    cp.async.wait_all", 16, NONE, 1, 16, 0, 0},
        {"cp.async.ca.shared.global [tile], [%d2], 4;\n    cp.async.wait_all", 4, NONE, 1, 4, 0, 0},
        {"cp.async.ca.shared.global [tile], [%d2], 4;\n    cp.async.wait_all", 64, NONE, 1, 32, 0, 0},
        {"cp.async.cg.shared.global [tile], [%d2], 16, 0;\n    cp.async.wait_all", 16, NONE, 1, 0, 0, 0},
        {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [%r4]", 16, NONE, 0, 0, 1, 1},
        {"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r5, %r6}, [%r4]", 16, NONE, 0, 0, 1, 2},
        {"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5, %r6, %r7, %r8}, [%r4]", 16, NONE, 0, 0, 1, 4},
        {"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5, %r6, %r7, %r8}, [%r4]", 144, NONE, 0, 0, 1, 4},
        {"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5, %r6, %r7, %r8}, [%r4]", 32, NONE, 0, 0, 1, 8},
        {"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5, %r6, %r7, %r8}, [%r4]", 128, NONE, 0, 0, 1, 32},
        {"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5, %r6, %r7, %r8}, [%r4]", 16, 8, 0, 0, 1, 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        rig r;
        const access_row row = {rows[i].access, rows[i].stride, rows[i].modulo, 0, 0, 0};
        run_access(&r, &row, 8192); /* ignores faults of unwritten or raced places: only the cost counts */
        assert_int_equal(r.counters.async_copies, rows[i].copies);
        assert_int_equal(r.counters.async_copy_sectors, rows[i].sectors);
        assert_int_equal(r.counters.matrix_loads, rows[i].loads);
        if (r.counters.matrix_load_waves != rows[i].waves)
            fail_msg("%s, stride %u: %llu wavefronts", rows[i].access, rows[i].stride,
                     (unsigned long long)r.counters.matrix_load_waves);
        assert_int_equal(r.counters.shared_loads + r.counters.shared_load_waves, 0);
    }
}

/* Generic addresses in two spaces: a request of neither kind. */
static void lanes_in_different_spaces(void **unused) {
    (void)unused;
    rig r;
    rig_init(&r);
    rig_run(&r, "    .shared .align 16 .b8 tile[128];\n    mov.u64 %d5, tile;\n    cvta.shared.u64 %d5, %d5;\n    "
                "mul.wide.u32 %d6, %r0, 4;\n"
                "    setp.lt.u32 %p1, %r0, 7;\n    selp.b64 %d5, %d5, %d1, %p1;\n    add.s64 %d5, %d5, %d6;\n    "
                "st.u32 [%d5], %r0;\n"
                "    ld.u32 %r5, [%d5];\n");
    rig_expect_fault(&r, NULL);
    assert_int_equal(r.counters.local_accesses, 2);
    assert_int_equal(r.counters.global_loads + r.counters.global_stores, 0);
    assert_int_equal(r.counters.shared_loads + r.counters.shared_stores, 0);
}

/* Every instruction issued to a warp counts once, plus each active lane, under the kind in its row. The rig
 * adds six instructions before the body (three moves, an integer multiply-add, two parameter loads) and ret. */
static void instructions_by_kind(void **unused) {
    (void)unused;
    static const struct {
        const char *body;
        uint64_t instructions, lanes, fma, mma, special, local, barriers;
    } rows[] = {
        {"", 0, 0, 0, 0, 0, 0, 0},
        {"    fma.rn.f32 %f1, %f2, %f3, %f4;\n    fma.rn.ftz.f32 %f1, %f2, %f3, %f4;\n    mul.f32 %f1, %f2, %f3;\n    "
         "mad.lo.s32 %r4, %r4, %r4, %r4;\n",
         4, 128, 2, 0, 0, 0, 0},
        {"    ex2.approx.f32 %f1, %f2;\n    lg2.approx.ftz.f32 %f1, %f2;\n    rcp.approx.f32 %f1, %f2;\n    "
         "rsqrt.approx.f32 %f1, %f2;\n"
         "    sqrt.approx.f32 %f1, %f2;\n    sin.approx.f32 %f1, %f2;\n    cos.approx.f32 %f1, %f2;\n    "
         "tanh.approx.f32 %f1, %f2;\n    add.f32 %f1, %f2, %f3;\n",
         9, 288, 0, 0, 8, 0, 0},
        {"    mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r5, %r6}, {%r7}, {%f0, %f1, "
         "%f2, %f3};\n",
         1, 32, 0, 1, 0, 0, 0},
        {"    .local .align 4 .b8 own[8];\n    st.local.u32 [own], %r0;\n    ld.local.u32 %r5, [own];\n", 2, 64, 0, 0,
         0, 2, 0},
        {"    bar.sync 0;\n    bar.sync 0;\n", 2, 64, 0, 0, 0, 0, 2},
        /* issued to the warp, but executed by 8 lanes, by none */
        {"    setp.lt.u32 %p1, %r0, 8;\n    @%p1 fma.rn.f32 %f1, %f2, %f3, %f4;\n", 2, 40, 1, 0, 0, 0, 0},
        {"    setp.lt.u32 %p1, %r0, 0;\n    @%p1 ld.global.u32 %r5, [%d5];\n", 2, 32, 0, 0, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        for (uint32_t warps = 1; warps <= 3; warps += 2) {
            rig r;
            rig_init(&r);
            r.groups = warps, r.threads = (int)warps;
            rig_run(&r, rows[i].body);
            rig_expect_fault(&r, NULL);
            const ptx_counters *c = &r.counters;
            assert_int_equal(c->launches, 1);
            assert_int_equal(c->groups, warps);
            assert_int_equal(c->instructions, warps * (7 + rows[i].instructions));
            assert_int_equal(c->lanes, warps * (7 * 32 + rows[i].lanes));
            assert_int_equal(c->fma, warps * rows[i].fma);
            assert_int_equal(c->mma, warps * rows[i].mma);
            assert_int_equal(c->special, warps * rows[i].special);
            assert_int_equal(c->local_accesses, warps * rows[i].local);
            assert_int_equal(c->barriers, warps * rows[i].barriers);
            assert_int_equal(c->global_loads + c->global_stores, 0);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sectors_of_loads),
        cmocka_unit_test(sectors_of_stores),
        cmocka_unit_test(bank_conflicts_of_stores),
        cmocka_unit_test(bank_conflicts_of_loads),
        cmocka_unit_test(copies_and_loads_of_matrices),
        cmocka_unit_test(lanes_in_different_spaces),
        cmocka_unit_test(instructions_by_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The amdgcn interpreter alone: results and faults of small kernels in assembly. */
/* ctest: quick */
#include "gcn.h"

#include "../lanes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ITEMS = 128, FAULTS = 20 };

typedef struct rig {
    bool gfx11;
    uint32_t items;
    uint32_t in[4 * ITEMS], out[16 * ITEMS];
    char faults[FAULTS][600];
    int n_faults;
    bool finished;
    ptx_counters counters;
} rig;

static void collect_fault(void *context, const char *text) {
    rig *r = context;
    if (r->n_faults < FAULTS) snprintf(r->faults[r->n_faults++], sizeof r->faults[0], "%s", text);
}

/* A kernel with two pointers and 256 bytes of LDS. The body has `in` in s[4:5], `out` in s[6:7], the
 * work-item in v0, and four times its number in v1. */
static void make_text(const rig *r, const char *body, char *text, size_t size) {
    const char *load = r->gfx11 ? "s_load_b128" : "s_load_dwordx4";
    snprintf(text, size,
             "\t.text\n\t.amdgcn_target \"amdgcn-amd-amdhsa--%s\"\nk:\n\t%s s[4:7], s[0:1], 0x0\n"
             "\ts_waitcnt lgkmcnt(0)\n\tv_and_b32_e32 v0, 0x3ff, v0\n\tv_lshlrev_b32_e32 v1, 2, v0\n%s\n\ts_endpgm\n"
             "\t.section\t.rodata,\"a\",@progbits\n\t.amdhsa_kernel k\n\t\t.amdhsa_group_segment_fixed_size 256\n"
             "\t\t.amdhsa_private_segment_fixed_size 16\n\t\t.amdhsa_kernarg_size 16\n"
             "\t\t.amdhsa_user_sgpr_count 2\n\t\t.amdhsa_user_sgpr_kernarg_segment_ptr 1\n"
             "\t\t.amdhsa_system_sgpr_workgroup_id_x 1\n%s\t.end_amdhsa_kernel\n\t.amdgpu_metadata\n---\n"
             "amdhsa.kernels:\n  - .args:\n      - .offset:         0\n        .size:           8\n"
             "        .value_kind:     global_buffer\n      - .offset:         8\n        .size:           8\n"
             "        .value_kind:     global_buffer\n    .max_flat_workgroup_size: 256\n    .name:           k\n"
             "amdhsa.target: x\n",
             r->gfx11 ? "gfx1100" : "gfx90a", load, body, r->gfx11 ? "\t\t.amdhsa_wavefront_size32 1\n" : "");
}

static void run(rig *r, const char *body) {
    static char text[65536];
    char message[400] = "";
    make_text(r, body, text, sizeof text);
    gcn_module *module = gcn_read(text, message, sizeof message);
    if (!module) fail_msg("%s", message);
    const uint64_t params[2] = {(uintptr_t)r->in, (uintptr_t)r->out};
    const ptx_range ranges[] = {{(uintptr_t)r->in, (uintptr_t)r->in + sizeof r->in, true},
                                {(uintptr_t)r->out, (uintptr_t)r->out + sizeof r->out, false}};
    const ptx_launch launch = {.groups = {1, 1, 1},
                               .local = {r->items, 1, 1},
                               .params = params,
                               .ranges = ranges,
                               .n_ranges = 2,
                               .threads = 1,
                               .races = true,
                               .fault = collect_fault,
                               .context = r};
    r->n_faults = 0;
    r->finished = gcn_run(gcn_kernel_at(module, 0), &launch, &r->counters);
    gcn_free(module);
}

static void begin(rig *r, bool gfx11) {
    memset(r, 0, sizeof *r);
    r->gfx11 = gfx11;
    r->items = gfx11 ? 32 : 64;
}

static void expect_fault(const rig *r, const char *part) {
    if (r->n_faults == 0) fail_msg("no fault, but expected: %s", part);
    if (!strstr(r->faults[0], part)) fail_msg("the fault is: %s", r->faults[0]);
}
static void expect_no_fault(const rig *r) {
    if (r->n_faults) fail_msg("%s", r->faults[0]);
    assert_true(r->finished);
}

/* Runs `body`, which reads x = v2 (from `in`) and writes v3, and compares the result with wanted[item]. */
static void expect_results(rig *r, const char *body, const uint32_t *wanted) {
    char text[4096];
    const char *load = r->gfx11 ? "global_load_b32" : "global_load_dword";
    const char *store = r->gfx11 ? "global_store_b32" : "global_store_dword";
    snprintf(text, sizeof text, "\t%s v2, v1, s[4:5]\n%s\n\t%s v1, v3, s[6:7]", load, body, store);
    run(r, text);
    expect_no_fault(r);
    for (uint32_t i = 0; i < r->items; ++i)
        if (r->out[i] != wanted[i]) fail_msg("%s: item %u: 0x%08x, expected 0x%08x", body, i, r->out[i], wanted[i]);
}

#define EXPECT(body, value)                                                                                            \
    do {                                                                                                               \
        uint32_t wanted[ITEMS];                                                                                        \
        for (uint32_t i = 0; i < ITEMS; ++i) {                                                                         \
            const uint32_t x = r.in[i];                                                                                \
            (void)x;                                                                                                   \
            wanted[i] = (uint32_t)(value);                                                                             \
        }                                                                                                              \
        expect_results(&r, body, wanted);                                                                              \
    } while (0)

/* --- lanes, modifiers --- */

static void exec_decides_which_lanes_write(void **state) {
    (void)state;
    rig r;
    begin(&r, false);
    EXPECT("\tv_mov_b32_e32 v3, 1\n\tv_cmp_gt_u32_e32 vcc, 10, v0\n\ts_and_saveexec_b64 s[8:9], vcc\n"
           "\tv_mov_b32_e32 v3, 2\n\ts_xor_b64 exec, exec, s[8:9]\n\tv_add_u32_e32 v3, 5, v3\n\ts_mov_b64 exec, s[8:9]",
           i < 10 ? 2 : 6);
    EXPECT("\tv_mov_b32_e32 v3, 7\n\tv_cmp_gt_u32_e32 vcc, 0, v0\n\ts_cbranch_vccnz .L\n\tv_mov_b32_e32 v3, 8\n.L:", 8);
    begin(&r, true);
    EXPECT("\tv_mov_b32_e32 v3, 1\n\tv_cmpx_gt_u32_e32 10, v0\n\tv_mov_b32_e32 v3, 2\n\ts_mov_b32 exec_lo, -1",
           i < 10 ? 2 : 1);
}

static void signs_and_constants(void **state) {
    (void)state;
    rig r;
    begin(&r, false);
    for (uint32_t i = 0; i < ITEMS; ++i) r.in[i] = ptx_float_bits((float)i - 20.5f);
    EXPECT("\tv_add_f32_e64 v3, -|v2|, 1.0", ptx_float_bits(1.0f - fabsf(ptx_bits_float(x))));
    EXPECT("\tv_mul_f32_e64 v3, v2, 0.5 clamp", ptx_float_bits(fminf(fmaxf(0.5f * ptx_bits_float(x), 0.0f), 1.0f)));
    EXPECT("\tv_cmp_gt_f32_e32 vcc, 0, v2\n\tv_cndmask_b32_e64 v3, v2, -v2, vcc", x & 0x7fffffffu);
    EXPECT("\tv_cmp_class_f32_e64 s[8:9], v2, 8\n\tv_cndmask_b32_e64 v3, 0, -1, s[8:9]", x >> 31 ? -1 : 0);
}

static void parts_of_registers(void **state) {
    (void)state;
    rig r;
    begin(&r, false);
    for (uint32_t i = 0; i < ITEMS; ++i) r.in[i] = i * 0x01030507u + 0x80f0a1b2u;
    EXPECT("\tv_mov_b32_e32 v3, -1\n\tv_add_u32_sdwa v3, v2, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1 "
           "src1_sel:WORD_1",
           (x >> 8 & 255) + (x >> 16));
    EXPECT("\tv_mov_b32_e32 v3, -1\n\tv_mov_b32_sdwa v3, v2 dst_sel:BYTE_2 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0",
           0xff00ffffu | (x & 255) << 16);
    EXPECT("\tv_mov_b32_sdwa v3, sext(v2) dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_3",
           (int32_t)(int8_t)(x >> 24));
    EXPECT("\tv_perm_b32 v3, v2, v1, 0x7000c05", (x >> 24) << 24 | (i * 4 & 255) << 16 | (x >> 8 & 255));
    EXPECT("\tv_bfe_i32 v3, v2, 4, 8", (int32_t)(x << 20) >> 24);
    EXPECT("\tv_alignbit_b32 v3, v2, v1, 8", ((uint64_t)x << 32 | i * 4) >> 8);
}

static void lanes_read_lanes(void **state) {
    (void)state;
    rig r;
    begin(&r, false);
    for (uint32_t i = 0; i < ITEMS; ++i) r.in[i] = 100 + i;
    EXPECT("\tv_mov_b32_e32 v3, -1\n\tv_mov_b32_dpp v3, v2 row_shr:1 row_mask:0xf bank_mask:0xf",
           i % 16 ? x - 1 : 0xffffffffu);
    EXPECT("\tv_mov_b32_dpp v3, v2 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:0", i % 16 ? x - 1 : 0);
    EXPECT("\tv_mov_b32_dpp v3, v2 quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf", 100 + (i ^ 3));
    EXPECT("\tv_mov_b32_e32 v3, 5\n\tv_mov_b32_dpp v3, v2 row_bcast:15 row_mask:0xa bank_mask:0xf",
           i / 16 % 2 ? 99 + i / 16 * 16 : 5);
    EXPECT("\tv_xor_b32_e32 v4, 0x7c, v1\n\tds_bpermute_b32 v3, v4, v2", 100 + (i ^ 31));
    EXPECT("\tv_readlane_b32 s8, v2, 63\n\tv_mov_b32_e32 v3, s8", 163);
    EXPECT("\tv_mbcnt_lo_u32_b32 v3, -1, 0\n\tv_mbcnt_hi_u32_b32 v3, -1, v3", i);
}

/* --- arithmetic --- */

static void pairs_and_long_numbers(void **state) {
    (void)state;
    rig r;
    begin(&r, false);
    for (uint32_t i = 0; i < ITEMS; ++i) r.in[i] = ptx_float_bits((float)i);
    /* the upper half reads the register that the lower half writes */
    EXPECT("\tv_mov_b32_e32 v4, v2\n\tv_mov_b32_e32 v5, 0\n"
           "\tv_pk_add_f32 v[4:5], v[4:5], 1.0 op_sel_hi:[0,0]\n\tv_mov_b32_e32 v3, v5",
           ptx_float_bits(ptx_bits_float(x) + 1));
    EXPECT("\tv_mad_u64_u32 v[4:5], s[8:9], v2, v2, 0\n\tv_mov_b32_e32 v3, v5", (uint64_t)x * x >> 32);
    EXPECT("\tv_mov_b32_e32 v5, v0\n\tv_mad_u64_u32 v[4:5], s[8:9], 7, v5, v[0:1]\n\tv_mov_b32_e32 v3, v4", 8 * i);
    EXPECT("\tv_mov_b32_e32 v4, v0\n\tv_mad_u64_u32 v[4:5], s[8:9], -1, v4, v[0:1]\n\tv_mov_b32_e32 v3, v5", 4 * i + i);
    EXPECT("\tv_cvt_f32_u32_e32 v4, 5\n\tv_rcp_iflag_f32_e32 v4, v4\n\tv_mul_f32_e32 v4, 0x4f7ffffe, v4\n"
           "\tv_cvt_u32_f32_e32 v4, v4\n\tv_mul_lo_u32 v5, -5, v4\n\tv_mul_hi_u32 v5, v4, v5\n"
           "\tv_add_u32_e32 v4, v4, v5\n\tv_mul_hi_u32 v3, v4, v0",
           i / 5 - (i % 5 == 0 && i ? 1 : 0));
    EXPECT("\tv_lshl_add_u32 v3, v0, 2, 4", 4 * i + 4);
    EXPECT("\tv_add_co_u32_e32 v4, vcc, -1, v0\n\tv_addc_co_u32_e32 v3, vcc, 0, v0, vcc", i ? i + 1 : 0);
    EXPECT("\tv_lshlrev_b64 v[4:5], 31, v[0:1]\n\tv_mov_b32_e32 v3, v5", ((uint64_t)(4 * i) << 32 | i) << 31 >> 32);
    begin(&r, true);
    EXPECT("\tv_mov_b32_e32 v4, 1\n\tv_mov_b32_e32 v3, 2\n"
           "\tv_dual_mov_b32 v3, v4 :: v_dual_mov_b32 v4, v3\n\tv_lshl_or_b32 v3, v4, 4, v3",
           0x21);
}

/* The compiler's division sequence: exact for all of these, subnormal results included. */
static void divisions_are_exact(void **state) {
    (void)state;
    static const char division[] =
        "\tv_mov_b32_e32 v10, 0x40400000\n\tv_div_scale_f32 v4, s[8:9], v10, v10, v2\n"
        "\tv_rcp_f32_e32 v5, v4\n\tv_div_scale_f32 v6, vcc, v2, v10, v2\n\tv_fma_f32 v7, -v4, v5, 1.0\n"
        "\tv_fmac_f32_e32 v5, v7, v5\n\tv_mul_f32_e32 v7, v6, v5\n\tv_fma_f32 v8, -v4, v7, v6\n"
        "\tv_fmac_f32_e32 v7, v8, v5\n\tv_fma_f32 v4, -v4, v7, v6\n\tv_div_fmas_f32 v4, v4, v5, v7\n"
        "\tv_div_fixup_f32 v3, v4, v10, v2";
    rig r;
    begin(&r, false);
    for (uint32_t i = 0; i < ITEMS; ++i) r.in[i] = i < 4 ? 0x00800000u * i + 77 : 0x02345678u * (i + 1);
    r.in[63] = 0x7f800000u;
    EXPECT(division, ptx_float_bits(ptx_bits_float(x) / 3.0f));
}

static void halves(void **state) {
    (void)state;
    rig r;
    begin(&r, false);
    for (uint32_t i = 0; i < ITEMS; ++i) r.in[i] = ptx_to_f16((float)i) | (uint32_t)ptx_to_f16(-0.5f) << 16;
    EXPECT("\tv_cvt_f32_f16_sdwa v3, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1", 0xbf000000u);
    EXPECT("\tv_fma_mix_f32 v3, v2, v2, 1.0 op_sel:[0,1,0] op_sel_hi:[1,1,0]",
           ptx_float_bits(1.0f - 0.5f * ptx_from_f16((uint16_t)x)));
    EXPECT("\tv_pk_mul_f16 v3, v2, v2 op_sel:[0,1] op_sel_hi:[1,0]", ptx_to_f16(-0.5f * (float)i) * 0x10001u);
    EXPECT("\tv_mov_b32_e32 v3, -1\n\tv_cvt_f16_f32_e32 v3, 2.0", 0x4000u); /* gfx9 clears the upper half */
    begin(&r, true);
    EXPECT("\tv_mov_b32_e32 v3, -1\n\tv_cvt_f16_f32_e32 v3, 2.0", 0xffff4000u); /* gfx11 keeps it */
}

/* --- memory --- */

static void lds_and_its_races(void **state) {
    (void)state;
    static const char exchange[] = "\tds_write_b32 v1, v2\n%s\tv_xor_b32_e32 v4, 4, v1\n\tds_read_b32 v3, v4\n"
                                   "\tglobal_store_dword v1, v3, s[6:7]";
    char text[400];
    rig r;
    begin(&r, false);
    for (uint32_t i = 0; i < ITEMS; ++i) r.in[i] = i;
    EXPECT("\tds_write_b32 v1, v2\n\tv_xor_b32_e32 v4, 0xfc, v1\n\tds_read_b32 v3, v4", 63 - i);
    EXPECT(
        "\tv_lshlrev_b32_e32 v4, 1, v1\n\tv_and_b32_e32 v4, 0xf8, v4\n\tds_write2_b32 v4, v2, v0 offset0:0 offset1:1\n"
        "\tds_read_b32 v3, v4 offset:4",
        i % 32 + 32);
    r.items = 128; /* the second wave reads what the first one wrote */
    snprintf(text, sizeof text, exchange, "");
    run(&r, "\tv_and_b32_e32 v1, 0xfc, v1\n\tv_mov_b32_e32 v2, 0\n\tds_write_b32 v1, v2");
    expect_fault(&r, "race: work-item 0 and wave 1 write offset 0");
    r.items = 64;
    run(&r, text);
    expect_no_fault(&r);
    run(&r, "\tds_read_b32 v3, v1");
    expect_fault(&r, "never wrote");
    run(&r, "\tds_write_b32 v1, v1 offset:4");
    expect_fault(&r, "write of 4 bytes at offset 256 of 256 bytes of LDS by work-item 63");
}

static void accesses_outside_are_faults(void **state) {
    (void)state;
    rig r;
    begin(&r, false);
    run(&r, "\tglobal_store_dword v1, v0, s[4:5]");
    expect_fault(&r, "only read");
    run(&r, "\tv_mov_b32_e32 v2, 0x10000\n\tglobal_load_dword v3, v2, s[6:7]");
    expect_fault(&r, "outside the memory of the launch");
    run(&r, "\ts_load_dword s8, s[6:7], 0x10000");
    expect_fault(&r, "scalar read");
    run(&r, "\tbuffer_store_dword v0, off, s[0:3], 0 offset:16");
    expect_fault(&r, "of 16 bytes of scratch");
    EXPECT("\tbuffer_store_dword v0, off, s[0:3], 0 offset:12\n\tbuffer_load_dword v3, off, s[0:3], 0 offset:12", i);
    EXPECT("\ts_mov_b64 s[8:9], src_private_base\n\tv_mov_b32_e32 v4, 8\n\tv_mov_b32_e32 v5, s9\n"
           "\tflat_store_dword v[4:5], v1\n\tbuffer_load_dword v3, off, s[0:3], 0 offset:8",
           4 * i);
}

static void barriers_must_be_reached_by_all(void **state) {
    (void)state;
    rig r;
    begin(&r, false);
    r.items = 128;
    run(&r, "\ts_barrier");
    expect_no_fault(&r);
    assert_int_equal(r.counters.barriers, 2);
    run(&r, "\tv_cmp_gt_u32_e32 vcc, 70, v0\n\ts_and_saveexec_b64 s[8:9], vcc\n\ts_barrier");
    expect_fault(&r, "a barrier that lanes");
    run(&r, "\tv_cmp_gt_u32_e32 vcc, 64, v0\n\ts_cbranch_vccz .L\n\ts_barrier\n.L:");
    expect_fault(&r, "1 waves have ended while others wait at a barrier");
}

/* --- counters --- */

static void counts_work_and_units(void **state) {
    (void)state;
    rig r;
    begin(&r, false);
    run(&r, "\ts_endpgm");
    const ptx_counters before = r.counters;
    begin(&r, false);
    run(&r,
        "\ts_nop 1\n\tv_pk_fma_f32 v[2:3], v[4:5], v[4:5], v[2:3]\n\tv_fma_f32 v6, v4, v4, v4\n\ts_add_i32 s8, s8, s8\n"
        "\tv_mul_u32_u24_e32 v7, 2, v1\n\tv_and_b32_e32 v7, 0x7f, v7\n\tds_write2_b32 v7, v0, v0 offset1:32\n"
        "\tv_mov_b32_e32 v7, 0\n\tds_read2_b32 v[8:9], v7 offset1:32\n\tds_write_b128 v7, v[0:3] offset:16\n"
        "\tds_read_b128 v[8:11], v7 offset:16\n\tds_read2_b64 v[8:11], v7 offset0:2 offset1:3\n\ts_waitcnt "
        "lgkmcnt(0)\n\ts_endpgm");
    assert_int_equal(r.counters.instructions - before.instructions, 11);
    assert_int_equal(r.counters.vectors - before.vectors, 5);
    assert_int_equal(r.counters.scalars - before.scalars, 1);
    assert_int_equal(r.counters.waits - before.waits, 2);
    assert_int_equal(r.counters.fma, 3);
    assert_int_equal(r.counters.shared_loads, 3);
    assert_int_equal(r.counters.shared_wide_loads, 2);
    assert_int_equal(r.counters.shared_stores, 2);
    /* A dual instruction counts once, with the work of two. */
    begin(&r, true);
    run(&r, "\ts_endpgm");
    const uint64_t least = r.counters.instructions;
    begin(&r, true);
    run(&r, "\tv_dual_fmac_f32 v2, v3, v4 :: v_dual_fmac_f32 v5, v6, v7\n\tv_dual_fmac_f32 v2, v3, v4 :: "
            "v_dual_mov_b32 v5, v6\n\ts_endpgm");
    assert_int_equal(r.counters.fma, 3);
    assert_int_equal(r.counters.instructions - least, 2);
}

/* --- matrix instructions, against sums over the documented layouts --- */

static float small(uint32_t i) {
    return (float)(int)(i * 2654435761u >> 28) - 7.0f;
}

static void mfma_multiplies(void **state) {
    (void)state;
    rig r;
    begin(&r, false);
    float a[16][16], b[16][16];
    for (uint32_t m = 0; m < 16; ++m)
        for (uint32_t k = 0; k < 16; ++k) a[m][k] = small(16 * m + k), b[k][m] = small(1000 + 16 * k + m);
    for (uint32_t l = 0; l < 64; ++l)
        for (uint32_t w = 0; w < 2; ++w) {
            const uint32_t k = 4 * (l / 16) + 2 * w;
            r.in[l + 128 * w] = ptx_to_f16(a[l % 16][k]) | (uint32_t)ptx_to_f16(a[l % 16][k + 1]) << 16;
            r.in[l + 128 * w + 64] = ptx_to_f16(b[k][l % 16]) | (uint32_t)ptx_to_f16(b[k + 1][l % 16]) << 16;
        }
    run(&r, "\tglobal_load_dword v2, v1, s[4:5]\n\tglobal_load_dword v3, v1, s[4:5] offset:512\n"
            "\tglobal_load_dword v4, v1, s[4:5] offset:256\n\tglobal_load_dword v5, v1, s[4:5] offset:768\n"
            "\ts_mov_b64 exec, 1\n\tv_mfma_f32_16x16x16f16 v[8:11], v[2:3], v[4:5], 1.0\n\ts_mov_b64 exec, -1\n"
            "\tv_lshlrev_b32_e32 v1, 2, v1\n\tglobal_store_dwordx4 v1, v[8:11], s[6:7]");
    expect_no_fault(&r);
    for (uint32_t l = 0; l < 64; ++l)
        for (uint32_t i = 0; i < 4; ++i) {
            float sum = 1;
            for (int k = 0; k < 16; ++k) sum += a[4 * (l / 16) + i][k] * b[k][l % 16];
            assert_true(ptx_bits_float(r.out[4 * l + i]) == sum);
        }
    assert_int_equal(r.counters.mma, 1);
}

static void wmma_wants_the_operands_twice(void **state) {
    (void)state;
    static const char body[] = "\tglobal_load_b32 v2, v1, s[4:5]\n\tv_mov_b32_e32 v3, v2\n\tv_mov_b32_e32 v4, v2\n"
                               "\tv_mov_b32_e32 v5, v2\n\tv_mov_b32_e32 v6, v2\n\tv_mov_b32_e32 v7, v2\n"
                               "\tv_mov_b32_e32 v8, v2\n\tv_mov_b32_e32 v9, v2\n"
                               "\tv_wmma_f32_16x16x16_f16 v[10:17], v[2:9], v[2:9], 0\n"
                               "\tglobal_store_b32 v1, v13, s[6:7]";
    rig r;
    begin(&r, true);
    for (uint32_t i = 0; i < 32; ++i) r.in[i] = ptx_to_f16((float)(i % 16)) * 0x10001u;
    run(&r, body);
    expect_no_fault(&r);
    for (uint32_t l = 0; l < 32; ++l)
        assert_true(ptx_bits_float(r.out[l]) == 16.0f * (float)(2 * 3 + l / 16) * (float)(l % 16));
    r.in[17] = 0;
    run(&r, body);
    expect_fault(&r, "a different operand");
}

/* --- texts --- */

static void what_is_not_known_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *body, *message;
    } cases[] = {{"\tv_frobnicate_b32 v1, v2", "instruction 'v_frobnicate_b32'"},
                 {"\tv_add_f32_e32 v1, v2", "operands"},
                 {"\tv_add_f32_e32 v1, v2, w3", "operand 'w3'"},
                 {"\tv_add_f32_e64 v1, v2, v3 mul:2", "modifier 'mul:2'"},
                 {"\tv_add_u32_e64 v1, -v2, v3", "a sign on an operand that is not a float"},
                 {"\ts_branch .Lnowhere", "'.Lnowhere' is not defined"}};
    static char text[8192];
    char message[400];
    rig r;
    begin(&r, false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        make_text(&r, cases[i].body, text, sizeof text);
        message[0] = 0;
        assert_null(gcn_read(text, message, sizeof message));
        if (!strstr(message, cases[i].message)) fail_msg("%s: %s", cases[i].body, message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exec_decides_which_lanes_write),
        cmocka_unit_test(signs_and_constants),
        cmocka_unit_test(parts_of_registers),
        cmocka_unit_test(lanes_read_lanes),
        cmocka_unit_test(pairs_and_long_numbers),
        cmocka_unit_test(divisions_are_exact),
        cmocka_unit_test(halves),
        cmocka_unit_test(lds_and_its_races),
        cmocka_unit_test(accesses_outside_are_faults),
        cmocka_unit_test(barriers_must_be_reached_by_all),
        cmocka_unit_test(counts_work_and_units),
        cmocka_unit_test(mfma_multiplies),
        cmocka_unit_test(wmma_wants_the_operands_twice),
        cmocka_unit_test(what_is_not_known_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

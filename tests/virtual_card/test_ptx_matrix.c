/* The matrix unit against plain matrix products, with lane fragments as defined in the PTX manual. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ptx_rig.h"

enum { WARP = 32, A, B, C };

/* The product, row and column of element i of a lane's fragment of A, B or C. */
typedef struct place {
    int product, row, column;
} place;
typedef place fragment(int matrix, int lane, int i);

/* One product, m16n8k8 or m16n8k16: group = lane / 4, thread = lane % 4. */
static place fragment_16x8(int matrix, int lane, int i) {
    const int group = lane / 4, thread = lane % 4;
    if (matrix == A) return (place){0, group + (i & 2 ? 8 : 0), 2 * thread + (i & 1) + (i >= 4 ? 8 : 0)};
    if (matrix == B) return (place){0, 2 * thread + (i & 1) + (i >= 2 ? 8 : 0), group};
    return (place){0, group + (i >= 2 ? 8 : 0), 2 * thread + (i & 1)};
}

/* One product of m16n8k8 of floats: a register is one element of A or B. */
static place fragment_tf32(int matrix, int lane, int i) {
    const int group = lane / 4, thread = lane % 4;
    if (matrix == A) return (place){0, group + (i & 1 ? 8 : 0), thread + (i >= 2 ? 4 : 0)};
    if (matrix == B) return (place){0, thread + (i >= 1 ? 4 : 0), group};
    return fragment_16x8(C, lane, i);
}

/* The four products of m8n8k4: lanes 0-3 and 16-19, 4-7 and 20-23, and so on. */
static place accumulator_8x8(int lane, int i) {
    const int x = (lane & 1) + (i & 2);
    return (place){lane % 16 / 4, lane < 16 ? x : x + 4, (i & 4) + (lane & 2) + (i & 1)};
}
static place by_rows(int lane, int i) { /* for A; for B with rows and columns exchanged */
    return (place){lane % 16 / 4, lane % 4 + (lane < 16 ? 0 : 4), i};
}
static place by_columns(int lane, int i) {
    return (place){lane % 16 / 4, i + (lane < 16 ? 0 : 4), lane % 4};
}
static place exchanged(place p) {
    return (place){p.product, p.column, p.row};
}
static place fragment_row_col(int matrix, int lane, int i) {
    return matrix == C ? accumulator_8x8(lane, i) : matrix == A ? by_rows(lane, i) : exchanged(by_rows(lane, i));
}
static place fragment_col_col(int matrix, int lane, int i) {
    return matrix == A ? by_columns(lane, i) : fragment_row_col(matrix, lane, i);
}
static place fragment_row_row(int matrix, int lane, int i) {
    return matrix == B ? exchanged(by_columns(lane, i)) : fragment_row_col(matrix, lane, i);
}
static place fragment_col_row(int matrix, int lane, int i) {
    return matrix == A ? by_columns(lane, i) : fragment_row_row(matrix, lane, i);
}

typedef struct shape {
    const char *opcode;
    fragment *fragment;
    int a, b, c; /* registers per lane: two halves each, one float for C */
    int depth;
    enum { HALF, BFLOAT, TF32 } type; /* TF32: one float each */
} shape;

/* A small integer as a half type. */
static uint32_t half_of(int value, bool bf16) {
    const float x = (float)value;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (bf16 || !value) return bits >> 16;
    const uint32_t exponent = (bits >> 23 & 255) - 127 + 15;
    return (bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 0x3ff);
}

typedef struct matrices {
    int a[4][16][16], b[4][16][8], c[4][16][8];
} matrices;
static int *element(matrices *m, int matrix, place p) {
    return matrix == A   ? &m->a[p.product][p.row][p.column]
           : matrix == B ? &m->b[p.product][p.row][p.column]
                         : &m->c[p.product][p.row][p.column];
}

/* Writes the fragment of a matrix into the words of each lane, from `first` on. */
static void set_fragment(rig *r, const shape *s, matrices *m, int matrix, int registers, int first) {
    for (int lane = 0; lane < WARP; ++lane)
        for (int k = 0; k < registers; ++k) {
            uint32_t word;
            if (matrix == C || s->type == TF32) {
                const float x = (float)*element(m, matrix, s->fragment(matrix, lane, k));
                memcpy(&word, &x, sizeof word);
                if (matrix != C) word |= 0x1abc; /* ignored by the unit */
            } else {
                word = half_of(*element(m, matrix, s->fragment(matrix, lane, 2 * k)), s->type == BFLOAT) |
                       half_of(*element(m, matrix, s->fragment(matrix, lane, 2 * k + 1)), s->type == BFLOAT) << 16;
            }
            memcpy(r->in + 128 * lane + 4 * (first + k), &word, sizeof word);
        }
}

/* {%r10, %r11} */
static void add_vector(char *text, size_t size, char bank, int first, int count) {
    for (int i = 0; i < count; ++i) rig_append(text, size, "%s%%%c%d", i ? ", " : "{", bank, first + i);
    rig_append(text, size, "}");
}

static void make_body(const shape *s, char *body, size_t size) {
    body[0] = 0;
    rig_append(body, size,
               "    mul.wide.u32 %%d3, %%r0, 128;\n    add.s64 %%d2, %%d3, %%d1;\n    add.s64 %%d3, %%d3, %%d0;\n");
    for (int k = 0; k < s->a + s->b; ++k)
        rig_append(body, size, "    ld.global.u32 %%r%d, [%%d3+%d];\n", 10 + k, 4 * k);
    for (int k = 0; k < s->c; ++k)
        rig_append(body, size, "    ld.global.f32 %%f%d, [%%d3+%d];\n", k, 4 * (s->a + s->b + k));
    rig_append(body, size, "    %s ", s->opcode);
    add_vector(body, size, 'f', 10, s->c), rig_append(body, size, ", ");
    add_vector(body, size, 'r', 10, s->a), rig_append(body, size, ", ");
    add_vector(body, size, 'r', 10 + s->a, s->b), rig_append(body, size, ", ");
    add_vector(body, size, 'f', 0, s->c), rig_append(body, size, ";\n");
    for (int k = 0; k < s->c; ++k) rig_append(body, size, "    st.global.f32 [%%d2+%d], %%f%d;\n", 4 * k, 10 + k);
}

static void products_of_matrices(void **unused) {
    (void)unused;
#define M8(layouts) "mma.sync.aligned.m8n8k4." layouts ".f32.f16.f16.f32"
#define M16(depth, type) "mma.sync.aligned.m16n8k" depth ".row.col.f32." type "." type ".f32"
    static const shape shapes[] = {
        {M16("8", "tf32"), fragment_tf32, 4, 2, 4, 8, TF32},     {M16("16", "f16"), fragment_16x8, 4, 2, 4, 16, HALF},
        {M16("16", "bf16"), fragment_16x8, 4, 2, 4, 16, BFLOAT}, {M16("8", "f16"), fragment_16x8, 2, 1, 4, 8, HALF},
        {M16("8", "bf16"), fragment_16x8, 2, 1, 4, 8, BFLOAT},   {M8("row.col"), fragment_row_col, 2, 2, 8, 4, HALF},
        {M8("col.col"), fragment_col_col, 2, 2, 8, 4, HALF},     {M8("row.row"), fragment_row_row, 2, 2, 8, 4, HALF},
        {M8("col.row"), fragment_col_row, 2, 2, 8, 4, HALF},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
        const shape *s = &shapes[i];
        static matrices m;
        uint64_t state = 1 + i;
        int *all = &m.a[0][0][0];
        for (size_t k = 0; k < sizeof m / sizeof *all; ++k)
            all[k] = (int)(rig_random(&state) >> 40 & 15) - 8; /* all sums are exact */
        rig r;
        rig_init(&r);
        set_fragment(&r, s, &m, A, s->a, 0);
        set_fragment(&r, s, &m, B, s->b, s->a);
        set_fragment(&r, s, &m, C, s->c, s->a + s->b);
        char body[4096];
        make_body(s, body, sizeof body);
        rig_run(&r, body);
        rig_expect_fault(&r, NULL);
        assert_int_equal(r.counters.mma, 1);
        for (int lane = 0; lane < WARP; ++lane)
            for (int k = 0; k < s->c; ++k) {
                const place p = s->fragment(C, lane, k);
                int sum = m.c[p.product][p.row][p.column];
                for (int d = 0; d < s->depth; ++d) sum += m.a[p.product][p.row][d] * m.b[p.product][d][p.column];
                float got;
                memcpy(&got, r.out + 128 * lane + 4 * k, sizeof got);
                if (got != (float)sum)
                    fail_msg("%s: lane %d, element %d: %g instead of %d", s->opcode, lane, k, (double)got, sum);
            }
    }
}

/* Lane 8 i + r holds the address of row r of matrix i (eight 16-bit numbers); lane l receives two neighbours
 * of row l / 4, or of column l / 4 if transposed. Rows may lie in any order: here row n of all is in place 31
 * - n. */
static void matrices_loaded_from_shared_memory(void **unused) {
    (void)unused;
    for (int count = 1; count <= 4; count *= 2)
        for (int transposed = 0; transposed <= 1; ++transposed) {
            rig r;
            rig_init(&r);
            char body[2048] = "";
            rig_append(
                body, sizeof body,
                "    .shared .align 16 .b8 tile[512];\n    mov.u32 %%r9, tile;\n    mad.lo.u32 %%r4, %%r0, 16, %%r9;\n"
                "    mul.wide.u32 %%d3, %%r0, 16;\n    add.s64 %%d2, %%d3, %%d1;\n    add.s64 %%d3, %%d3, %%d0;\n"
                "    ld.global.v4.u32 {%%r10, %%r11, %%r12, %%r13}, [%%d3];\n    st.shared.v4.u32 [%%r4], {%%r10, "
                "%%r11, %%r12, %%r13};\n"
                "    bar.sync 0;\n    sub.u32 %%r5, 31, %%r0;\n    mad.lo.u32 %%r5, %%r5, 16, %%r9;\n"
                "    ldmatrix.sync.aligned.m8n8.x%d%s.shared.b16 ",
                count, transposed ? ".trans" : "");
            add_vector(body, sizeof body, 'r', 20, count);
            rig_append(body, sizeof body, ", [%%r5];\n");
            for (int k = 0; k < count; ++k)
                rig_append(body, sizeof body, "    st.global.u32 [%%d2+%d], %%r%d;\n", 4 * k, 20 + k);
            uint16_t numbers[32][8];
            for (int row = 0; row < 32; ++row)
                for (int k = 0; k < 8; ++k) numbers[31 - row][k] = (uint16_t)(100 * row + k);
            memcpy(r.in, numbers, sizeof numbers);
            rig_run(&r, body);
            rig_expect_fault(&r, NULL);
            assert_int_equal(r.counters.matrix_loads, 1);
            for (uint32_t lane = 0; lane < WARP; ++lane)
                for (uint32_t i = 0; i < (uint32_t)count; ++i) {
                    const uint32_t major = 8 * i + lane / 4, minor = 2 * (lane % 4);
                    const uint32_t expected =
                        transposed ? (100 * (8 * i + minor) + lane / 4) | (100 * (8 * i + minor + 1) + lane / 4) << 16
                                   : (100 * major + minor) | (100 * major + minor + 1) << 16;
                    uint32_t got;
                    memcpy(&got, r.out + 16 * lane + 4 * i, sizeof got);
                    if (got != expected)
                        fail_msg("x%d, transposed %d, lane %u, matrix %u: 0x%x instead of 0x%x", count, transposed,
                                 lane, i, got, expected);
                }
        }
}

/* Only lanes with a row need an address: with x1 those of lanes 8 and up may be anything. */
static void rows_outside_of_shared_memory(void **unused) {
    (void)unused;
    for (int lane = 7; lane <= 8; ++lane) {
        rig r;
        rig_init(&r);
        char body[1024] = "";
        rig_append(body, sizeof body,
                   "    .shared .align 16 .b8 tile[16];\n    mov.u32 %%r4, tile;\n    setp.eq.u32 %%p1, %%r0, 0;\n"
                   "    @%%p1 st.shared.v4.u32 [tile], {%%r0, %%r0, %%r0, %%r0};\n    bar.sync 0;\n    setp.eq.u32 "
                   "%%p2, %%r0, %d;\n"
                   "    @%%p2 add.u32 %%r4, %%r4, 16;\n    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%%r5}, [%%r4];\n",
                   lane);
        rig_run(&r, body);
        rig_expect_fault(&r, lane == 8 ? NULL
                                       : "read of 16 bytes at offset 16 of 16 bytes of shared memory by work-item 7");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_matrices),
        cmocka_unit_test(matrices_loaded_from_shared_memory),
        cmocka_unit_test(rows_outside_of_shared_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

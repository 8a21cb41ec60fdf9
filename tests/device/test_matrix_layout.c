/* The register layouts of matrix units (cl/lib/mma_layout.clh) against the vendors' descriptions of the
 * instructions. This file states the effect of each instruction on the registers of its lanes, from the PTX
 * ISA (mma.m8n8k4, mma.m16n8k8, mma.m16n8k16, ldmatrix), AMD's matrix instruction guides (WMMA of gfx11,
 * MFMA) and Intel's extension (cl_intel_subgroup_matrix_multiply_accumulate). Elements are 16-bit integers. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../cl/lib/mma_layout.clh"
#include "cleat/device.h"

enum { MAX_SUBGROUP = 64, OPERANDS = 16, SUMS = 32, SIDE = 16 };

/* The registers of a subgroup. */
typedef struct subgroup {
    uint32_t a[MAX_SUBGROUP][OPERANDS], b[MAX_SUBGROUP][OPERANDS];
    int32_t c[MAX_SUBGROUP][SUMS];
} subgroup;

static int low(uint32_t reg) {
    return (int16_t)(reg & 0xffff);
}

static int high(uint32_t reg) {
    return (int16_t)(reg >> 16);
}

/* --- instructions --- */

/* c[rows][columns] += a[rows][depth] b[depth][columns], independent of the register layout. */
static void multiply(int rows, int columns, int depth, int a[SIDE][SIDE], int b[SIDE][SIDE], int c[SIDE][SIDE]) {
    for (int m = 0; m < rows; ++m)
        for (int n = 0; n < columns; ++n)
            for (int k = 0; k < depth; ++k) c[m][n] += a[m][k] * b[k][n];
}

/* mma.m8n8k4 with f32 sums: one product for each quad pair, threads 4 p to 4 p + 3 and those 16 above them.
 * With A stored by rows, a thread of the lower four has row t % 4 of A, one of the upper four row t % 4 + 4,
 * and element i is column i. With A stored by columns, its column is t % 4, and element i is row i, or i + 4
 * in the upper four. B by columns is like A by rows, and vice versa. Sum i is row (t & 1) + (i & 2), 4 more
 * in the upper four, column (i & 4) + (t & 2) + (i & 1). */
static void nvidia_quad_pairs(subgroup *t, bool a_by_columns, bool b_by_rows, int ra, int rb) {
    for (int pair = 0; pair < 4; ++pair) {
        int a[SIDE][SIDE] = {{0}}, b[SIDE][SIDE] = {{0}}, c[SIDE][SIDE] = {{0}};
        for (int pass = 0; pass < 2; ++pass) {
            for (int member = 0; member < 8; ++member) {
                int upper = member >= 4, thread = 4 * pair + member % 4 + 16 * upper, place = thread % 4;
                for (int i = 0; i < 4; ++i) {
                    uint32_t a_reg = t->a[thread][ra + i / 2], b_reg = t->b[thread][rb + i / 2];
                    int x = i % 2 ? high(a_reg) : low(a_reg), y = i % 2 ? high(b_reg) : low(b_reg);
                    if (a_by_columns)
                        a[upper ? i + 4 : i][place] = x;
                    else
                        a[upper ? place + 4 : place][i] = x;
                    if (b_by_rows)
                        b[place][upper ? i + 4 : i] = y;
                    else
                        b[i][upper ? place + 4 : place] = y;
                }
                for (int i = 0; i < 8; ++i) {
                    int row = (thread & 1) + (i & 2) + (upper ? 4 : 0), column = (i & 4) + (thread & 2) + (i & 1);
                    if (pass == 0)
                        c[row][column] = t->c[thread][i];
                    else
                        t->c[thread][i] = c[row][column];
                }
            }
            if (pass == 0) multiply(8, 8, 4, a, b, c);
        }
    }
}

/* mma.m16n8kD, D = 8 or 16. A "group" is four threads. a0 a1 are in row group, a2 a3 in row group + 8, a4..
 * the same eight columns further; b0 b1 are rows 2 t and 2 t + 1 of column group, b2 b3 eight rows further;
 * c0 c1 are in row group, c2 c3 in row group + 8. */
static void nvidia_mma(subgroup *t, int depth, int ra, int rb, int rc) {
    int a[SIDE][SIDE] = {{0}}, b[SIDE][SIDE] = {{0}}, c[SIDE][SIDE] = {{0}};
    for (int pass = 0; pass < 2; ++pass) {
        for (int thread = 0; thread < 32; ++thread) {
            int group = thread >> 2, in_group = thread & 3;
            for (int block = 0; block < depth / 8; ++block) {
                for (int down = 0; down < 2; ++down) {
                    uint32_t reg = t->a[thread][ra + 2 * block + down];
                    a[group + 8 * down][8 * block + 2 * in_group] = low(reg);
                    a[group + 8 * down][8 * block + 2 * in_group + 1] = high(reg);
                }
                b[8 * block + 2 * in_group][group] = low(t->b[thread][rb + block]);
                b[8 * block + 2 * in_group + 1][group] = high(t->b[thread][rb + block]);
            }
            for (int i = 0; i < 4; ++i) {
                int *at = &c[i < 2 ? group : group + 8][2 * in_group + (i & 1)];
                if (pass == 0)
                    *at = t->c[thread][rc + i];
                else
                    t->c[thread][rc + i] = *at;
            }
        }
        if (pass == 0) multiply(16, 8, depth, a, b, c);
    }
}

/* v_wmma_f32_16x16x16, wave32: lane r holds row r of A and column r of B, all 16 elements of k in eight
 * registers, and lane r + 16 holds a copy. Register i of the sums is row 2 i in the first sixteen lanes, row
 * 2 i + 1 in the others. */
static void amd_wmma(subgroup *t) {
    int a[SIDE][SIDE], b[SIDE][SIDE], c[SIDE][SIDE];
    for (int r = 0; r < 16; ++r) {
        assert_memory_equal(t->a[r], t->a[r + 16], 8 * sizeof t->a[0][0]);
        assert_memory_equal(t->b[r], t->b[r + 16], 8 * sizeof t->b[0][0]);
        for (int i = 0; i < 8; ++i) {
            a[r][2 * i] = low(t->a[r][i]), a[r][2 * i + 1] = high(t->a[r][i]);
            b[2 * i][r] = low(t->b[r][i]), b[2 * i + 1][r] = high(t->b[r][i]);
            c[2 * i][r] = t->c[r][i], c[2 * i + 1][r] = t->c[r + 16][i];
        }
    }
    multiply(16, 16, 16, a, b, c);
    for (int r = 0; r < 16; ++r)
        for (int i = 0; i < 8; ++i) t->c[r][i] = c[2 * i][r], t->c[r + 16][i] = c[2 * i + 1][r];
}

/* v_mfma_f32_16x16x16: four blocks of 16 lanes, each with four elements of k (two registers) and with four
 * rows of the sums. */
static void amd_mfma(subgroup *t) {
    int a[SIDE][SIDE], b[SIDE][SIDE], c[SIDE][SIDE];
    for (int block = 0; block < 4; ++block)
        for (int r = 0; r < 16; ++r) {
            int lane = 16 * block + r, k = 4 * block;
            a[r][k] = low(t->a[lane][0]), a[r][k + 1] = high(t->a[lane][0]);
            a[r][k + 2] = low(t->a[lane][1]), a[r][k + 3] = high(t->a[lane][1]);
            b[k][r] = low(t->b[lane][0]), b[k + 1][r] = high(t->b[lane][0]);
            b[k + 2][r] = low(t->b[lane][1]), b[k + 3][r] = high(t->b[lane][1]);
            for (int i = 0; i < 4; ++i) c[4 * block + i][r] = t->c[lane][i];
        }
    multiply(16, 16, 16, a, b, c);
    for (int block = 0; block < 4; ++block)
        for (int r = 0; r < 16; ++r)
            for (int i = 0; i < 4; ++i) t->c[16 * block + r][i] = c[4 * block + i][r];
}

/* ..._matrix_mad_k16: eight rows, and one column per work-item of the sub-group. Sub-group of 8: int8 a,
 * component m is row m, with two adjacent elements per work-item; of 16: short8 a, one element each. int8 b:
 * component i holds rows 2 i and 2 i + 1 of the work-item's column. float8 sums: component m is row m. */
static void intel_dpas(subgroup *t, int subgroup_size, int ra, int rb, int rc) {
    int a[SIDE][SIDE] = {{0}}, b[SIDE][SIDE] = {{0}}, c[SIDE][SIDE] = {{0}};
    for (int lane = 0; lane < subgroup_size; ++lane)
        for (int i = 0; i < 8; ++i) {
            if (subgroup_size == 8) {
                a[i][2 * lane] = low(t->a[lane][ra + i]);
                a[i][2 * lane + 1] = high(t->a[lane][ra + i]);
            } else {
                uint32_t two_rows = t->a[lane][ra + i / 2];
                a[i][lane] = i % 2 ? high(two_rows) : low(two_rows);
            }
            b[2 * i][lane] = low(t->b[lane][rb + i]);
            b[2 * i + 1][lane] = high(t->b[lane][rb + i]);
            c[i][lane] = t->c[lane][rc + i];
        }
    multiply(8, subgroup_size, 16, a, b, c);
    for (int lane = 0; lane < subgroup_size; ++lane)
        for (int i = 0; i < 8; ++i) t->c[lane][rc + i] = c[i][lane];
}

/* v_dot2: the products of the low and of the high halves of two registers, added to a third. mma_mad applies
 * it to the sums of every lane. */
static void amd_dot(subgroup *t) {
    for (int lane = 0; lane < 32; ++lane)
        for (int i = 0; i < 8; ++i)
            for (int r = 0; r < 4; ++r) {
                uint32_t x = t->a[lane][mma_dot_a(i) + r], y = t->b[lane][mma_dot_b(i) + r];
                t->c[lane][i] += low(x) * low(y) + high(x) * high(y);
            }
}

static void exchange_operands(subgroup *t) {
    const subgroup before = *t;
    memcpy(t->a, before.b, sizeof t->a);
    memcpy(t->b, before.a, sizeof t->b);
}

static void execute(int unit, subgroup *t, int ra, int rb, int rc) {
    switch (unit) {
    case CLEAT_MATRIX_AMD_DOT:
        amd_dot(t);
        break;
    case CLEAT_MATRIX_NV70:
        nvidia_quad_pairs(t, false, false, ra, rb);
        break;
    case CLEAT_MATRIX_NV75:
        nvidia_mma(t, 8, ra, rb, rc);
        break;
    case CLEAT_MATRIX_NV80:
        nvidia_mma(t, 16, ra, rb, rc);
        break;
    case CLEAT_MATRIX_AMD_WMMA:
        amd_wmma(t);
        break;
    case CLEAT_MATRIX_AMD_MFMA:
        exchange_operands(t); /* the transposed product, like mma_mad */
        amd_mfma(t);
        exchange_operands(t);
        break;
    case CLEAT_MATRIX_INTEL8:
        intel_dpas(t, 8, ra, rb, rc);
        break;
    case CLEAT_MATRIX_INTEL16:
        intel_dpas(t, 16, ra, rb, rc);
        break;
    default:
        fail_msg("unit %d has no instruction", unit);
    }
}

/* --- the layout, used in the same way as by kernels --- */

static int a_value(int m, int k) {
    return (m * 19 + k * 7 + m * k % 5) % 23 - 11;
}

static int b_value(int k, int n) {
    return (k * 13 + n * 17 + k * n % 7) % 29 - 14;
}

static int c_value(int m, int n) {
    return 1000 * m + n;
}

static uint32_t pack(int first, int second) {
    return (uint16_t)first | (uint32_t)(uint16_t)second << 16;
}

/* Loads the operands of depths k0, k0 + 1, .. */
static void load_operands(int unit, subgroup *t, int k0) {
    for (int lane = 0; lane < SUBGROUP_SIZE_OF(unit); ++lane) {
        for (int i = 0; i < A_COUNT_OF(unit); i += 2)
            t->a[lane][i / 2] = pack(a_value(mma_a_row(unit, lane, i), k0 + mma_a_depth(unit, lane, i)),
                                     a_value(mma_a_row(unit, lane, i + 1), k0 + mma_a_depth(unit, lane, i + 1)));
        for (int i = 0; i < B_COUNT_OF(unit); i += 2)
            t->b[lane][i / 2] = pack(b_value(k0 + mma_b_depth(unit, lane, i), mma_b_column(unit, lane, i)),
                                     b_value(k0 + mma_b_depth(unit, lane, i + 1), mma_b_column(unit, lane, i + 1)));
    }
}

static void load(int unit, subgroup *t) {
    load_operands(unit, t, 0);
    for (int lane = 0; lane < SUBGROUP_SIZE_OF(unit); ++lane)
        for (int i = 0; i < SUM_COUNT_OF(unit); ++i)
            t->c[lane][i] = c_value(mma_c_row(unit, lane, i), mma_c_column(unit, lane, i));
}

/* Checks that the sums are c + a b, and that none is missing. */
static void check_sums(int unit, const subgroup *t) {
    bool seen[SIDE][SIDE] = {{false}};
    for (int lane = 0; lane < SUBGROUP_SIZE_OF(unit); ++lane)
        for (int i = 0; i < SUM_COUNT_OF(unit); ++i) {
            int m = mma_c_row(unit, lane, i), n = mma_c_column(unit, lane, i), sum = c_value(m, n);
            for (int k = 0; k < SIDE; ++k) sum += a_value(m, k) * b_value(k, n);
            if (t->c[lane][i] != sum)
                fail_msg("%s: lane %d, sum %d, row %d, column %d: %d instead of %d", cleat_matrix_unit_text(unit), lane,
                         i, m, n, t->c[lane][i], sum);
            seen[m][n] = true;
        }
    for (int i = 0; i < SIDE * SIDE; ++i) assert_true(seen[i / SIDE][i % SIDE]);
}

static void test_products_of_every_unit(void **state) {
    (void)state;
    for (int unit = CLEAT_MATRIX_NV70; unit < CLEAT_MATRIX_EMULATED; ++unit) {
        subgroup t = {0};
        load(unit, &t);
        for (int k = 0; k < SIDE; k += MMA_DEPTH_OF(unit)) {
            load_operands(unit, &t, k);
            for (int s = 0; s < MMA_STEPS_OF(unit); ++s)
                execute(unit, &t, mma_step_a(unit, s), mma_step_b(unit, s), mma_step_c(unit, s));
        }
        check_sums(unit, &t);
    }
}

static void test_nv70_takes_operands_across(void **state) {
    (void)state;
    for (int form = 1; form < 4; ++form) { /* B, A, both transposed */
        const int unit = CLEAT_MATRIX_NV70;
        subgroup t = {0};
        load(unit, &t);
        for (int lane = 0; lane < SUBGROUP_SIZE_OF(unit); ++lane)
            for (int i = 0; i < OPERAND_COUNT_OF(unit); i += 2) {
                int k = mma_across_depth(lane, i), m = mma_across_row(lane, i), n = mma_across_column(lane, i);
                assert_int_equal(mma_across_depth(lane, i + 1),
                                 k); /* a load of four starts at the address of the first */
                assert_int_equal(m - i % 4, mma_across_row(lane, 0));
                assert_int_equal(n - i % 4, mma_across_column(lane, 0));
                assert_int_equal(k - i / 4 * 4, mma_across_depth(lane, 0));
                if (form & 1) t.b[lane][i / 2] = pack(b_value(k, n), b_value(k, mma_across_column(lane, i + 1)));
                if (form & 2) t.a[lane][i / 2] = pack(a_value(m, k), a_value(mma_across_row(lane, i + 1), k));
            }
        for (int s = 0; s < MMA_STEPS_OF(unit); ++s)
            nvidia_quad_pairs(&t, form & 2, form & 1, mma_step_a(unit, s), mma_step_b(unit, s));
        check_sums(unit, &t);
    }
}

/* The kernels' emulated unit has NVIDIA's layout, so results on it hold for NVIDIA's units. */
static void test_emulated_layout_is_nvidias(void **state) {
    subgroup emulated = {0}, nv75 = {0}, nv80 = {0};
    (void)state;
    load(CLEAT_MATRIX_EMULATED, &emulated);
    load(CLEAT_MATRIX_NV75, &nv75);
    load(CLEAT_MATRIX_NV80, &nv80);
    assert_memory_equal(&emulated, &nv75, sizeof emulated);
    assert_memory_equal(&emulated, &nv80, sizeof emulated);
}

/* Units whose sums become the operand A of the next product (cl/lib/mma_rows.clh). */
static void test_sums_are_operands(void **state) {
    (void)state;
    for (int unit = CLEAT_MATRIX_NV70; unit <= CLEAT_MATRIX_EMULATED; ++unit) {
        if (!SUMS_ARE_OPERANDS(unit)) continue;
        assert_int_equal(SUM_COUNT_OF(unit), A_COUNT_OF(unit));
        for (int lane = 0; lane < SUBGROUP_SIZE_OF(unit); ++lane)
            for (int i = 0; i < SUM_COUNT_OF(unit); ++i) {
                assert_int_equal(mma_c_row(unit, lane, i), mma_a_row(unit, lane, i));
                assert_int_equal(mma_c_column(unit, lane, i), mma_a_depth(unit, lane, i));
                /* a lane's rows, and the four lanes that share them */
                const int flip = SUM_FLIP_OF(unit), first = lane & ~(3 * flip);
                assert_int_equal(mma_c_row(unit, lane, i), mma_c_row(unit, first, 2 * (i / 2 % SUM_ROWS_OF(unit))));
                for (int other = 0; other < SUBGROUP_SIZE_OF(unit); ++other)
                    assert_int_equal(mma_c_row(unit, other, i) == mma_c_row(unit, lane, i),
                                     (other & ~(3 * flip)) == first);
            }
    }
}

/* The elements of one load are contiguous, and start at an address aligned for a vector of that size. */
static void test_runs_lie_side_by_side(void **state) {
    (void)state;
    for (int unit = CLEAT_MATRIX_NV70; unit <= CLEAT_MATRIX_EMULATED; ++unit)
        for (int lane = 0; lane < SUBGROUP_SIZE_OF(unit); ++lane)
            for (int i = 0; i < B_COUNT_OF(unit); ++i) {
                bool down = unit == CLEAT_MATRIX_INTEL16;
                int a_run = MMA_A_RUN_OF(unit), b_run = MMA_B_RUN_OF(unit), a = i / a_run * a_run,
                    b = i / b_run * b_run;
                int row = mma_a_row(unit, lane, a), depth = mma_a_depth(unit, lane, a);
                assert_int_equal((down ? row : depth) % a_run, 0);
                assert_int_equal(mma_a_row(unit, lane, i), row + down * (i - a));
                assert_int_equal(mma_a_depth(unit, lane, i), depth + !down * (i - a));
                assert_int_equal(mma_b_depth(unit, lane, b) % b_run, 0);
                assert_int_equal(mma_b_depth(unit, lane, i), mma_b_depth(unit, lane, b) + i - b);
                assert_int_equal(mma_b_column(unit, lane, i), mma_b_column(unit, lane, b));
            }
}

/* The transposed loads of Intel's smaller unit: sixteen bytes of a line are eight rows of A, four bytes are
 * both columns of B. */
static void test_intel8_loads_across(void **state) {
    const int unit = CLEAT_MATRIX_INTEL8;
    (void)state;
    for (int lane = 0; lane < SUBGROUP_SIZE_OF(unit); ++lane)
        for (int r = 0; r < 16; ++r) {
            assert_int_equal(mma_a_row(unit, lane, 2 * r), mma_a_row(unit, lane, 2 * r + 1));
            assert_int_equal(mma_a_row(unit, lane, 2 * r), r);
            assert_int_equal(mma_a_depth(unit, lane, 2 * r), mma_a_depth(unit, lane, 0));
            assert_int_equal(mma_a_depth(unit, lane, 2 * r + 1), mma_a_depth(unit, lane, 0) + 1);
            assert_int_equal(mma_b_column(unit, lane, 2 * r) % 2, r / 8);
            assert_int_equal(mma_b_column(unit, lane, 2 * r), mma_b_column(unit, lane, 0) + r / 8);
            assert_int_equal(mma_b_depth(unit, lane, 2 * r), mma_b_depth(unit, lane, 2 * (r % 8)));
            assert_int_equal(mma_b_depth(unit, lane, 2 * r + 1), mma_b_depth(unit, lane, 2 * r) + 1);
        }
}

/* Eight lanes at a time fetch sixteen bytes each, from 32 banks of four bytes: different addresses are in
 * different banks. */
static void test_dot_lanes_meet_in_no_bank(void **state) {
    (void)state;
    for (int ld = 8; ld <= 136; ld += 16)
        for (int lane = 0; lane < 32; ++lane)
            for (int other = lane / 8 * 8; other < lane; ++other) {
                int rows = mma_dot_row(lane) - mma_dot_row(other),
                    columns = mma_dot_column(lane) - mma_dot_column(other);
                assert_true(rows == 0 || rows * ld / 8 % 8 != 0);
                assert_true(columns == 0 || columns * ld / 8 % 8 != 0);
            }
}

/* ldmatrix.x4: threads 8 q to 8 q + 7 address the rows of matrix q. Register q of thread l receives elements
 * 2 (l % 4) and 2 (l % 4) + 1 of row l / 4, or with .trans of column l / 4. `tile`: memory contents [16][16]. */
static void ldmatrix(int tile[SIDE][SIDE], bool transposed_addresses, bool trans, uint32_t out[32][4]) {
    for (int q = 0; q < 4; ++q) {
        int matrix[8][8];
        for (int row = 0; row < 8; ++row) {
            int thread = 8 * q + row;
            int from = mma_fetch_row(thread, transposed_addresses);
            int column = mma_fetch_column(thread, transposed_addresses);
            for (int i = 0; i < 8; ++i) matrix[row][i] = tile[from][column + i];
        }
        for (int thread = 0; thread < 32; ++thread) {
            int line = thread / 4, at = 2 * (thread % 4);
            out[thread][q] =
                trans ? pack(matrix[at][line], matrix[at + 1][line]) : pack(matrix[line][at], matrix[line][at + 1]);
        }
    }
}

static void test_ldmatrix_fetches_the_layout(void **state) {
    subgroup t = {0};
    (void)state;
    load(CLEAT_MATRIX_NV80, &t);
    for (int form = 0; form < 4; ++form) { /* A, A from its transpose, B, B from its transpose */
        int tile[SIDE][SIDE];
        uint32_t out[32][4];
        bool is_b = form >= 2, transposed = form % 2;
        for (int row = 0; row < SIDE; ++row)
            for (int column = 0; column < SIDE; ++column) {
                int first = transposed ? column : row, second = transposed ? row : column;
                tile[row][column] = is_b ? b_value(first, second) : a_value(first, second);
            }
        ldmatrix(tile, transposed, is_b != transposed, out);
        for (int lane = 0; lane < 32; ++lane)
            assert_memory_equal(out[lane], is_b ? t.b[lane] : t.a[lane], sizeof out[lane]);
    }
}

static void test_numbers_of_units(void **state) {
    (void)state;
    assert_int_equal(MATRIX_NONE, CLEAT_MATRIX_NONE);
    assert_int_equal(MATRIX_NV70, CLEAT_MATRIX_NV70);
    assert_int_equal(MATRIX_NV75, CLEAT_MATRIX_NV75);
    assert_int_equal(MATRIX_NV80, CLEAT_MATRIX_NV80);
    assert_int_equal(MATRIX_AMD_DOT, CLEAT_MATRIX_AMD_DOT);
    assert_int_equal(MATRIX_AMD_WMMA, CLEAT_MATRIX_AMD_WMMA);
    assert_int_equal(MATRIX_AMD_MFMA, CLEAT_MATRIX_AMD_MFMA);
    assert_int_equal(MATRIX_INTEL8, CLEAT_MATRIX_INTEL8);
    assert_int_equal(MATRIX_INTEL16, CLEAT_MATRIX_INTEL16);
    assert_int_equal(MATRIX_EMULATED, CLEAT_MATRIX_EMULATED);
    assert_int_equal(MATRIX_EMULATED_DOT, CLEAT_MATRIX_EMULATED_DOT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_of_every_unit),     cmocka_unit_test(test_nv70_takes_operands_across),
        cmocka_unit_test(test_emulated_layout_is_nvidias), cmocka_unit_test(test_sums_are_operands),
        cmocka_unit_test(test_runs_lie_side_by_side),      cmocka_unit_test(test_ldmatrix_fetches_the_layout),
        cmocka_unit_test(test_intel8_loads_across),        cmocka_unit_test(test_numbers_of_units),
        cmocka_unit_test(test_dot_lanes_meet_in_no_bank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

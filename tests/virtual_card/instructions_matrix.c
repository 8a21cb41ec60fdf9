/* The matrix unit: mma.sync, and operand loads from shared memory. */
#include "access.h"
#include "lanes.h"

static bool whole_warp(ptx_warp *warp, uint32_t mask) {
    if (mask == PTX_ALL) return true;
    ptx_report(warp, PTX_FAULT_LANES, "an instruction of the whole warp is executed by lanes 0x%08x", mask);
    return false;
}

/* Unpacks the two halves of each lane's register to floats. */
enum { F16, BF16 };
static void to_floats(const uint32_t *registers, int type, float low[PTX_LANES], float high[PTX_LANES]) {
    if (type == F16)
        for (int l = 0; l < PTX_LANES; ++l) {
            low[l] = ptx_from_f16((uint16_t)registers[l]);
            high[l] = ptx_from_f16((uint16_t)(registers[l] >> 16));
        }
    else
        for (int l = 0; l < PTX_LANES; ++l) {
            low[l] = ptx_from_bf16((uint16_t)registers[l]);
            high[l] = ptx_from_bf16((uint16_t)(registers[l] >> 16));
        }
}

/* m16n8k8 and m16n8k16: lane l holds rows l/4 (and 8 more) and pairs of columns from 2 (l%4) on. */
static void mma_16x8(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {
    if (!whole_warp(warp, mask)) return;
    const int n_a = now->n_from == 7 ? 2 : 4, n_b = n_a / 2, depth = 4 * n_a; /* registers of A and B; k */
    const ptx_operand *from_c = now->from + n_a + n_b;
    float a[16][16], b[16][8], c[16][8], low[PTX_LANES], high[PTX_LANES]; /* [m, k], [k, n], [m, n] */
    for (int r = 0; r < n_a; ++r) {
        to_floats(ptx_at_operand(warp, now->from[r]), now->code, low, high);
        for (int l = 0; l < PTX_LANES; ++l) {
            float *to = &a[l / 4 + 8 * (r & 1)][2 * (l % 4) + 8 * (r >> 1)];
            to[0] = low[l], to[1] = high[l];
        }
    }
    for (int r = 0; r < n_b; ++r) {
        to_floats(ptx_at_operand(warp, now->from[n_a + r]), now->code, low, high);
        for (int l = 0; l < PTX_LANES; ++l) {
            b[2 * (l % 4) + 8 * r][l / 4] = low[l];
            b[2 * (l % 4) + 8 * r + 1][l / 4] = high[l];
        }
    }
    for (int r = 0; r < 4; ++r) {
        const float *from = ptx_at_operand(warp, from_c[r]);
        for (int l = 0; l < PTX_LANES; ++l) c[l / 4 + 8 * (r >> 1)][2 * (l % 4) + (r & 1)] = from[l];
    }
    for (int m = 0; m < 16; ++m)
        for (int k = 0; k < depth; ++k)
            for (int n = 0; n < 8; ++n) c[m][n] += a[m][k] * b[k][n]; /* the product is exact */
    for (int r = 0; r < 4; ++r) {
        float *to = ptx_at_operand(warp, now->to[r]);
        for (int l = 0; l < PTX_LANES; ++l) to[l] = ptx_result(c[l / 4 + 8 * (r >> 1)][2 * (l % 4) + (r & 1)]);
    }
}

/* m16n8k8 of floats; the unit ignores their lower 13 bits. A register is one element, at l%4 and l%4 + 4
 * along k. */
static float from_tf32(uint32_t bits) {
    float value;
    bits &= 0xffffe000;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static void mma_tf32(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {
    if (!whole_warp(warp, mask)) return;
    float a[16][8], b[8][8]; /* [m, k], [k, n] */
    for (int r = 0; r < 4; ++r) {
        const uint32_t *from = ptx_at_operand(warp, now->from[r]);
        for (int l = 0; l < PTX_LANES; ++l) a[l / 4 + 8 * (r & 1)][l % 4 + 4 * (r >> 1)] = from_tf32(from[l]);
    }
    for (int r = 0; r < 2; ++r) {
        const uint32_t *from = ptx_at_operand(warp, now->from[4 + r]);
        for (int l = 0; l < PTX_LANES; ++l) b[l % 4 + 4 * r][l / 4] = from_tf32(from[l]);
    }
    float sums[4][PTX_LANES];
    for (int r = 0; r < 4; ++r) {
        const float *from = ptx_at_operand(warp, now->from[6 + r]);
        for (int l = 0; l < PTX_LANES; ++l) {
            const int m = l / 4 + 8 * (r >> 1), n = 2 * (l % 4) + (r & 1);
            sums[r][l] = from[l];
            for (int k = 0; k < 8; ++k) sums[r][l] += a[m][k] * b[k][n]; /* the product is exact */
            sums[r][l] = ptx_result(sums[r][l]);
        }
    }
    for (int r = 0; r < 4; ++r) memcpy(ptx_at_operand(warp, now->to[r]), sums[r], sizeof sums[r]);
}

/* m8n8k4: four products, each by four lanes of the lower half of the warp and the four lanes 16 above them. A
 * lane holds a row of A (a column if A is stored by columns), a column of B (a row if by rows), and eight
 * elements of C. */
enum { A_BY_COLUMNS = 1, B_BY_ROWS = 2 };
static void mma_8x8(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {
    if (!whole_warp(warp, mask)) return;
    float a[4][8][4], b[4][4][8]; /* [product, m, k], [product, k, n] */
    for (int r = 0; r < 2; ++r) {
        float a_pair[2][PTX_LANES], b_pair[2][PTX_LANES];
        to_floats(ptx_at_operand(warp, now->from[r]), F16, a_pair[0], a_pair[1]);
        to_floats(ptx_at_operand(warp, now->from[2 + r]), F16, b_pair[0], b_pair[1]);
        for (int l = 0; l < PTX_LANES; ++l)
            for (int h = 0; h < 2; ++h) {
                const int product = l % 16 / 4, upper = l < 16 ? 0 : 4, across = 2 * r + h;
                if (now->code & A_BY_COLUMNS)
                    a[product][upper + across][l % 4] = a_pair[h][l];
                else
                    a[product][upper + l % 4][across] = a_pair[h][l];
                if (now->code & B_BY_ROWS)
                    b[product][l % 4][upper + across] = b_pair[h][l];
                else
                    b[product][across][upper + l % 4] = b_pair[h][l];
            }
    }
    float sums[8][PTX_LANES];
    for (int r = 0; r < 8; ++r) {
        const float *from = ptx_at_operand(warp, now->from[4 + r]);
        for (int l = 0; l < PTX_LANES; ++l) {
            const int product = l % 16 / 4, m = (l & 1) + (r & 2) + (l < 16 ? 0 : 4), n = (r & 4) + (l & 2) + (r & 1);
            sums[r][l] = from[l];
            for (int k = 0; k < 4; ++k) sums[r][l] += a[product][m][k] * b[product][k][n];
            sums[r][l] = ptx_result(sums[r][l]);
        }
    }
    for (int r = 0; r < 8; ++r) memcpy(ptx_at_operand(warp, now->to[r]), sums[r], sizeof sums[r]);
}

/* ldmatrix: 8 x 8 matrices of 16-bit elements; lanes 8 i to 8 i + 7 hold the row addresses of matrix i. Lane
 * l receives two neighbours of row l/4, or of column l/4 (code 1). */
static void load_matrices(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {
    if (!whole_warp(warp, mask)) return;
    ptx_counters *counters = &warp->group->counters;
    const ptx_counters before = *counters;
    uint64_t addresses[PTX_LANES];
    unsigned char *rows[PTX_LANES];
    ptx_addresses(warp, now->from[0], addresses);
    const uint32_t lanes = now->n_to == 4 ? PTX_ALL : (1u << 8 * now->n_to) - 1;
    ptx_locate(warp, now, lanes, addresses, 16, PTX_LOAD, rows);
    counters->matrix_loads++, counters->matrix_load_waves += counters->shared_load_waves - before.shared_load_waves;
    counters->shared_loads = before.shared_loads, counters->shared_load_waves = before.shared_load_waves;
    counters->shared_load_least = before.shared_load_least;
    for (int i = 0; i < now->n_to; ++i) {
        uint16_t matrix[8][8];
        for (int r = 0; r < 8; ++r) memcpy(matrix[r], rows[8 * i + r], sizeof matrix[r]);
        uint32_t *to = ptx_at_operand(warp, now->to[i]);
        for (int l = 0; l < PTX_LANES; ++l) {
            const int row = l / 4, column = 2 * (l % 4);
            to[l] = now->code ? matrix[column][row] | (uint32_t)matrix[column + 1][row] << 16
                              : matrix[row][column] | (uint32_t)matrix[row][column + 1] << 16;
        }
    }
}

#define MMA8(layouts, layout)                                                                                          \
    {                                                                                                                  \
        "mma.sync.aligned.m8n8k4" layouts ".f32.f16.f16.f32", "{wwwwwwww}={ww}{ww}{wwwwwwww}", mma_8x8, layout,        \
            .mma = true                                                                                                \
    }
#define MMA16(shape, types, operands, type)                                                                            \
    { "mma.sync.aligned." shape ".row.col.f32." types ".f32", operands, mma_16x8, type, .mma = true }
#define LDMATRIX(number, operands)                                                                                     \
    {"ldmatrix.sync.aligned.m8n8." number "(.shared|.shared::cta).b16", operands, load_matrices, 0, 2, 8}, {           \
        "ldmatrix.sync.aligned.m8n8." number ".trans(.shared|.shared::cta).b16", operands, load_matrices, 1, 2, 8      \
    }
static const ptx_form forms[] = {
    {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "{wwww}={wwww}{ww}{wwww}", mma_tf32, .mma = true},
    MMA8(".row.col", 0),
    MMA8(".col.col", A_BY_COLUMNS),
    MMA8(".row.row", B_BY_ROWS),
    MMA8(".col.row", A_BY_COLUMNS | B_BY_ROWS),
    MMA16("m16n8k8", "f16.f16", "{wwww}={ww}{w}{wwww}", F16),
    MMA16("m16n8k8", "bf16.bf16", "{wwww}={ww}{w}{wwww}", BF16),
    MMA16("m16n8k16", "f16.f16", "{wwww}={wwww}{ww}{wwww}", F16),
    MMA16("m16n8k16", "bf16.bf16", "{wwww}={wwww}{ww}{wwww}", BF16),
    LDMATRIX("x1", "{w}=m"),
    LDMATRIX("x2", "{ww}=m"),
    LDMATRIX("x4", "{wwww}=m"),
};
const ptx_table PTX_VARIANT(ptx_matrix_table) = PTX_TABLE(forms);

/* The matrix instructions of CDNA (MFMA) and RDNA3 (WMMA) that cleat's kernels use: products of 16 x 16 x 16.
 *
 * Layouts follow AMD's instruction set documents and matrix calculator. All instructions work on whole waves
 * and ignore exec.
 *
 * MFMA, 64 lanes: lane l holds A[l % 16][k] and B[k][l % 16] of the four k = 4 (l / 16) + i, two to a register, and
 * C[4 (l / 16) + i][l % 16] in register i. Subnormal operands and results count as 0 on CDNA2 (halves only).
 *
 * WMMA, 32 lanes: lane l holds A[l % 16][k] and B[k][l % 16] of all sixteen k; lanes 16 to 31 must hold the same as
 * lanes 0 to 15. C[2 i + l / 16][l % 16] is in register i. */
#include "wave.h"

#include "../lanes.h"

enum { SIDE = 16 };

typedef float gcn_half_reader(uint16_t bits);

/* f16 and bf16 with subnormal numbers flushed to 0. */
static float flushed_f16(uint16_t bits) {
    return bits & 0x7c00u ? ptx_from_f16(bits) : bits & 0x8000u ? -0.0f : 0.0f;
}
static float flushed_bf16(uint16_t bits) {
    return ptx_flush(ptx_from_bf16(bits));
}

/* Half i of an operand's registers in a lane. */
static float element(gcn_wave *wave, const gcn_operand *operand, int i, int lane, gcn_half_reader *read) {
    const uint32_t pair = operand->kind == GCN_VECTOR ? wave->v[operand->index + i / 2][lane]
                                                      : (uint32_t)gcn_scalar(wave, *operand, false);
    return read((uint16_t)(pair >> 16 * (i % 2)));
}

static float start_of(gcn_wave *wave, const gcn_operand *c, int i, int lane) {
    const uint32_t bits = c->kind == GCN_VECTOR ? wave->v[c->index + i][lane] : (uint32_t)gcn_scalar(wave, *c, false);
    return ptx_bits_float(bits);
}

/* The products of a row of A and a column of B are exact in f64; their sum is nearly exact. */
static float sum_of(const float a[SIDE], const float b[SIDE], float start) {
    double sum = start;
    for (int k = 0; k < SIDE; ++k) sum += (double)a[k] * b[k];
    return (float)sum;
}

typedef struct operands {
    float a[SIDE][SIDE], b[SIDE][SIDE]; /* [m][k], [n][k] */
} operands;

static void multiply_accumulate(gcn_wave *wave, const gcn_instruction *now, const operands *x, bool mfma) {
    float results[8][GCN_LANES];
    const int count = mfma ? 4 : 8;
    for (int l = 0; l < wave->lanes; ++l)
        for (int i = 0; i < count; ++i) {
            const int row = mfma ? 4 * (l / 16) + i : 2 * i + l / 16;
            results[i][l] = sum_of(x->a[row], x->b[l % 16], start_of(wave, &now->from[2], i, l));
        }
    for (int i = 0; i < count; ++i) memcpy(wave->v[now->to[0].index + i], results[i], (size_t)wave->lanes * 4);
}

static void mfma(gcn_wave *wave, const gcn_instruction *now, gcn_half_reader *read) {
    operands x;
    for (int l = 0; l < 64; ++l)
        for (int i = 0; i < 4; ++i) {
            x.a[l % 16][4 * (l / 16) + i] = element(wave, &now->from[0], i, l, read);
            x.b[l % 16][4 * (l / 16) + i] = element(wave, &now->from[1], i, l, read);
        }
    multiply_accumulate(wave, now, &x, true);
}
static void mfma_f16(gcn_wave *wave, const gcn_instruction *now) {
    mfma(wave, now, flushed_f16);
}
static void mfma_bf16(gcn_wave *wave, const gcn_instruction *now) {
    mfma(wave, now, flushed_bf16);
}

static void check_copies(gcn_wave *wave, const gcn_instruction *now) {
    for (int k = 0; k < 2; ++k)
        for (int r = 0; r < 8; ++r) {
            const uint32_t *row = wave->v[now->from[k].index + r];
            if (memcmp(row, row + SIDE, SIDE * sizeof *row) != 0)
                gcn_report(wave, GCN_FAULT_LANES, "lanes 16 to 31 hold a different operand than lanes 0 to 15");
        }
}
static void wmma(gcn_wave *wave, const gcn_instruction *now, gcn_half_reader *read) {
    operands x;
    check_copies(wave, now);
    for (int l = 0; l < SIDE; ++l)
        for (int k = 0; k < SIDE; ++k) {
            x.a[l][k] = element(wave, &now->from[0], k, l, read);
            x.b[l][k] = element(wave, &now->from[1], k, l, read);
        }
    multiply_accumulate(wave, now, &x, false);
}
static void wmma_f16(gcn_wave *wave, const gcn_instruction *now) {
    wmma(wave, now, ptx_from_f16);
}
static void wmma_bf16(gcn_wave *wave, const gcn_instruction *now) {
    wmma(wave, now, ptx_from_bf16);
}

#define MATRIX(name, action)                                                                                           \
    { name, "V=VVV", action, .counts = GCN_COUNTS_MMA }
static const gcn_form forms[] = {
    MATRIX("v_mfma_f32_16x16x16f16", mfma_f16),      MATRIX("v_mfma_f32_16x16x16_f16", mfma_f16),
    MATRIX("v_mfma_f32_16x16x16bf16_1k", mfma_bf16), MATRIX("v_mfma_f32_16x16x16_bf16", mfma_bf16),
    MATRIX("v_wmma_f32_16x16x16_f16", wmma_f16),     MATRIX("v_wmma_f32_16x16x16_bf16", wmma_bf16),
};

const gcn_table gcn_matrix_table = GCN_TABLE(forms);

/* Layer normalization of rows: forward, backward, and the gradients of gamma and beta. RMS_NORM = 1: without a mean
 * and without beta. NO_BETA = 1: without beta.
 *
 * A row stays in registers (PARTS vectors per work-item) between the passes: first the mean, then the squared
 * deviations from it, which avoids cancellation of large numbers. Memory is read once and written once. */
#include "lib/common.clh"
#include "lib/column_sum.clh"
#include "lib/last_group.clh"
#include "lib/rows.clh"

#ifndef RMS_NORM
#define RMS_NORM 0
#endif
#ifndef NO_BETA
#define NO_BETA RMS_NORM
#endif
#define PARAMETERS (RMS_NORM ? 1 : 2)
/* Y_F32, DY_F32: 1 if the result, or its gradient, is f32 although T is a half type. */
#ifndef Y_F32
#define Y_F32 0
#endif
#ifndef DY_F32
#define DY_F32 0
#endif
#if Y_F32
#define T_Y float
#define STORE_Y row_store_f32
#else
#define T_Y T
#define STORE_Y row_store
#endif
#if DY_F32
#define T_DY float
#define LOAD_DY row_load_f32
#else
#define T_DY T
#define LOAD_DY row_load
#endif

/* x T, y T_Y [rows, WIDTH]; gamma, beta f32 [WIDTH]; mean, rstd f32 [rows]. */
WIDE_ROWS __kernel void layer_norm_forward(TENSOR(const T, x), TENSOR(const float, gamma), TENSOR(const float, beta),
                                           TENSOR(T_Y, y), TENSOR(float, mean), TENSOR(float, rstd), const int rows,
                                           const float eps) {
    GROUP_SCRATCH(scratch_a);
    GROUP_SCRATCH(scratch_b);
    int lane = get_local_id(0) % ROW_ITEMS, sub = get_local_id(0) / ROW_ITEMS;
    FOR_ROWS(rows) {
        int row = min(base + sub, rows - 1);
        bool owns = OWNS(base + sub, rows);
        __global const T *from = AT(x) + (ulong)row * WIDTH;
        floatv part[PARTS], sum = (floatv)(0.0f);
#pragma unroll UNROLL
        for (int k = 0; k < PARTS; ++k) {
            part[k] = owns ? row_load(from, COLUMN(k)) : (floatv)(0.0f);
            sum += part[k];
        }
        float m = 0.0f;
        if (!RMS_NORM) m = row_sum((float2)(sumv(sum), 0.0f), scratch_a, scratch_b).x * (1.0f / WIDTH);
        floatv squares = (floatv)(0.0f);
#pragma unroll UNROLL
        for (int k = 0; k < PARTS; ++k) {
            if (!RMS_NORM) part[k] = row_part(part[k] - m, COLUMN(k), 0.0f);
            squares = fma(part[k], part[k], squares);
        }
        float variance = row_sum((float2)(sumv(squares), 0.0f), scratch_a, scratch_b).x * (1.0f / WIDTH);
        float r = 1.0f / sqrt(variance + eps);
        if (owns) {
            __global T_Y *to = AT(y) + (ulong)row * WIDTH;
#pragma unroll UNROLL
            for (int k = 0; k < PARTS; ++k) {
                floatv shift = NO_BETA ? (floatv)(0.0f) : row_load_f32(AT(beta), COLUMN(k));
                STORE_Y(fma(part[k] * r, row_load_f32(AT(gamma), COLUMN(k)), shift), to, COLUMN(k));
            }
            if (lane == 0) {
                if (!RMS_NORM) AT(mean)[row] = m;
                AT(rstd)[row] = r;
            }
        }
    }
}

#if LAST_GROUP
/* Number of groups whose parts one of them adds; one more group adds these sums. A single group that adds the
 * parts of 528 groups takes 90 us (H200). */
#define SET LAYER_NORM_SET
/* The gradients of all parameters as one row of vectors, and the number of work-items for each vector. */
#define GRADIENT_VECTORS ((WIDTH + VEC - 1) / VEC)
#define ALL_VECTORS (PARAMETERS * GRADIENT_VECTORS)
#define ITEMS_A_VECTOR (ALL_VECTORS < WG ? WG / ALL_VECTORS : 1)

/* dgamma, dbeta [WIDTH] = accum + the sum of `count` parts [PARAMETERS, WIDTH], which are `step` parts apart, in an
 * order that `count` determines. NULL: not requested, or no accum. They may be the first part. */
static inline void add_parts(__global const float *partial, int count, int step, __global const float *gamma_accum,
                             __global float *dgamma, __global const float *beta_accum, __global float *dbeta,
                             __local floatv *room) {
    const int item = get_local_id(0), share = ITEMS_A_VECTOR > 1 ? item / ALL_VECTORS : 0;
    for (int first = 0; first < ALL_VECTORS; first += WG) {
        const int vector = first + (ITEMS_A_VECTOR > 1 ? item % ALL_VECTORS : item);
        const int beta = vector >= GRADIENT_VECTORS, c = (vector - beta * GRADIENT_VECTORS) * VEC;
        floatv sum = (floatv)(0.0f);
        if ((vector < ALL_VECTORS) & (share < ITEMS_A_VECTOR)) {
#pragma unroll 4
            for (int p = share; p < count; p += ITEMS_A_VECTOR)
                sum += row_load_f32(partial + (ulong)(p * step) * (PARAMETERS * WIDTH) + beta * WIDTH, c);
        }
        if (ITEMS_A_VECTOR > 1) { /* then there is one pass */
            room[item] = sum;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        __global const float *accum = beta ? beta_accum : gamma_accum;
        __global float *out = beta ? dbeta : dgamma;
        if (share > 0 || vector >= ALL_VECTORS || !out) continue;
        for (int t = 1; t < ITEMS_A_VECTOR; ++t) sum += room[item + t * ALL_VECTORS];
        row_store_f32(accum ? sum + row_load_f32(accum, c) : sum, out, c);
    }
}
#endif

/* dx = accum + rstd (g - mean(g) - xhat mean(g xhat)), g = dy gamma, xhat = (x - mean) rstd; dx may be NULL. RMS_NORM:
 * without the means of x and g. partial f32 [groups, PARAMETERS, WIDTH], or NULL if neither dgamma nor dbeta is
 * requested: sums of dy xhat and of dy over the rows of each group. LAST_GROUP: the last group of each SET adds theirs
 * to the first part, and the last of these groups computes dgamma and dbeta; counters: one for the sets, and one for
 * each of them. */
WIDE_ROWS __kernel void layer_norm_backward(TENSOR(const T_DY, dy), TENSOR(const T, x), TENSOR(const float, mean),
                                            TENSOR(const float, rstd), TENSOR(const float, gamma),
                                            TENSOR(const T, accum), TENSOR(T, dx), TENSOR(float, partial),
                                            const int rows, TENSOR(const float, gamma_accum), TENSOR(float, dgamma_out),
                                            TENSOR(const float, beta_accum), TENSOR(float, dbeta_out),
                                            TENSOR(int, counters)) {
#if LAST_GROUP
    __local int before;
#endif
    VECTOR_SCRATCH(room);
    GROUP_SCRATCH(scratch_a);
    GROUP_SCRATCH(scratch_b);
    int lane = get_local_id(0) % ROW_ITEMS, sub = get_local_id(0) / ROW_ITEMS;
    floatv dgamma[PARTS], dbeta[PARTS];
#pragma unroll UNROLL
    for (int k = 0; k < PARTS; ++k) dgamma[k] = dbeta[k] = (floatv)(0.0f);
    FOR_ROWS(rows) {
        int row = min(base + sub, rows - 1);
        bool owns = OWNS(base + sub, rows);
        float m = RMS_NORM ? 0.0f : AT(mean)[row], r = AT(rstd)[row];
        __global const T *x_row = AT(x) + (ulong)row * WIDTH;
        __global const T_DY *dy_row = AT(dy) + (ulong)row * WIDTH;
        floatv xhat[PARTS], g[PARTS], sum_g = (floatv)(0.0f), sum_gx = (floatv)(0.0f);
#pragma unroll UNROLL
        for (int k = 0; k < PARTS; ++k) {
            floatv zero = (floatv)(0.0f), arriving = owns ? LOAD_DY(dy_row, COLUMN(k)) : zero;
            xhat[k] = owns ? (row_load(x_row, COLUMN(k)) - m) * r : zero;
            g[k] = arriving * row_load_f32(AT(gamma), COLUMN(k));
            sum_g += g[k];
            sum_gx = fma(g[k], xhat[k], sum_gx);
            dgamma[k] = fma(arriving, xhat[k], dgamma[k]);
            dbeta[k] += arriving;
        }
        float2 sums =
            row_sum((float2)(RMS_NORM ? 0.0f : sumv(sum_g), sumv(sum_gx)), scratch_a, scratch_b) * (1.0f / WIDTH);
        if (owns && HAS(dx)) {
            ulong at = (ulong)row * WIDTH;
#pragma unroll UNROLL
            for (int k = 0; k < PARTS; ++k) {
                floatv d = (g[k] - sums.x - xhat[k] * sums.y) * r;
                if (HAS(accum)) d += row_load(AT(accum) + at, COLUMN(k));
                row_store(d, AT(dx) + at, COLUMN(k));
            }
        }
    }
    if (!HAS(partial)) return;
    const int group = get_group_id(0);
    __global float *mine = AT(partial) + (ulong)group * (PARAMETERS * WIDTH);
#pragma unroll UNROLL
    for (int k = 0; k < PARTS; ++k) {
        const floatv gamma_sum = SUM_OF_ROWS(dgamma[k], room);
        if (sub == 0) row_store_f32(gamma_sum, mine, COLUMN(k));
        if (RMS_NORM) continue;
        const floatv beta_sum = SUM_OF_ROWS(dbeta[k], room);
        if (sub == 0) row_store_f32(beta_sum, mine + WIDTH, COLUMN(k));
    }
#if LAST_GROUP
    if (!HAS(counters)) return; /* the device has too few */
    const int groups = get_num_groups(0), set = group / SET, sets = (groups + SET - 1) / SET;
    const int count = min(SET, groups - set * SET);
    __global float *parts = AT(partial), *first = parts + (ulong)(set * SET) * (PARAMETERS * WIDTH);
    if (!is_last_group(AT(counters) + 1 + set, count, &before)) return;
    add_parts(first, count, 1, 0, first, 0, first + WIDTH, room);
    if (is_last_group(AT(counters), sets, &before))
        add_parts(parts, sets, SET, OR_NULL(gamma_accum), OR_NULL(dgamma_out), OR_NULL(beta_accum), OR_NULL(dbeta_out),
                  room);
#endif
}

/* dgamma[c] = accum[c] + sum over p of partial[p, c], rows PARAMETERS WIDTH apart, in a fixed order; dbeta from the
 * second half of each row. Either may be absent. The first CHUNKS groups compute dgamma. On a
 * CPU one work-item adds all parts, 8 per core, in blocks, so that rounding errors do not grow with the
 * number of cores. */
#define BLOCK 64
#if WG == 1
#define CHUNKS ((WIDTH + VEC - 1) / VEC)
#else
#define CHUNKS ((WIDTH + COLUMNS - 1) / COLUMNS)
#endif
__kernel void layer_norm_parameters(TENSOR(const float, partial), TENSOR(const float, gamma_accum),
                                    TENSOR(float, dgamma), TENSOR(const float, beta_accum), TENSOR(float, dbeta),
                                    const int parts) {
#if WG == 1
    for (int unit = get_global_id(0); unit < PARAMETERS * CHUNKS; unit += (int)get_global_size(0)) {
        const int beta = unit >= CHUNKS, c = (unit - beta * CHUNKS) * VEC;
        __global const float *accum = beta ? OR_NULL(beta_accum) : OR_NULL(gamma_accum);
        __global float *out = beta ? OR_NULL(dbeta) : OR_NULL(dgamma);
        if (!out) continue;
        floatv sum = (floatv)(0.0f), block = (floatv)(0.0f);
        for (int p = 0; p < parts; ++p) {
            block += row_load_f32(AT(partial) + (ulong)p * (PARAMETERS * WIDTH) + beta * WIDTH, c);
            if (p % BLOCK == BLOCK - 1) {
                sum += block;
                block = (floatv)(0.0f);
            }
        }
        sum += block;
        if (accum) sum += row_load_f32(accum, c);
        row_store_f32(sum, out, c);
    }
#else
    __local float scratch[WG];
    const int group = get_group_id(0), beta = group >= CHUNKS, item = get_local_id(0);
    const int c = (group - beta * CHUNKS) * COLUMNS + item % COLUMNS;
    __global const float *accum = beta ? OR_NULL(beta_accum) : OR_NULL(gamma_accum);
    __global float *out = beta ? OR_NULL(dbeta) : OR_NULL(dgamma);
    if (!out) return; /* uniform across the group */
    const float sum = column_sum(AT(partial) + beta * WIDTH + c, c < WIDTH ? parts : 0, PARAMETERS * WIDTH, scratch);
    if (item < COLUMNS && c < WIDTH) out[c] = sum + (accum ? accum[c] : 0.0f);
#endif
}

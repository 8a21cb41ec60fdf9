/* Layer normalisation of rows: forward, backward, and the gradients of gamma and beta.
 *
 *   WIDTH      of a row
 *   ROW_ITEMS  work-items that share a row (a power of two, 1 on a CPU); a group of WG does WG / ROW_ITEMS
 *   rows at once
 *
 * A row stays in registers (PARTS vectors an item) between the passes: mean first, then the squares of the
 * distances from it, so that no large numbers cancel. Memory is read once and written once. */
#include "common.clh"

#ifndef WIDTH
#define WIDTH 256
#endif
#ifndef ROW_ITEMS
#define ROW_ITEMS (WG < 64 ? WG : 64)
#endif
#define ROWS_AT_ONCE (WG / ROW_ITEMS)
#define PARTS ((WIDTH + VEC * ROW_ITEMS - 1) / (VEC * ROW_ITEMS))

/* Loops over the parts of a row disappear where a row fits the registers; wide rows on a CPU live in its
 * first cache. */
#if PARTS <= 16
#define UNROLL PARTS
#else
#define UNROLL 1
#endif

/* Column of an item's vector k. */
#define COLUMN(k) (((k)*ROW_ITEMS + lane) * VEC)

/* VEC elements of a row from column `at` on; behind the row's end they are 0, and not stored. Where items and
 * vectors divide the width there is no such end. */
#define WHOLE (WIDTH % (VEC * ROW_ITEMS) == 0)
static inline floatv row_load(__global const T *row, int at) {
    if (WHOLE || at + VEC <= WIDTH) return LOADV(row, at);
    return at < WIDTH ? LOADN(row, at, WIDTH - at) : (floatv)(0.0f);
}
static inline floatv row_load_f32(__global const float *row, int at) {
    if (WHOLE || at + VEC <= WIDTH) return LOADFV(row, at);
    return at < WIDTH ? LOADFN(row, at, WIDTH - at) : (floatv)(0.0f);
}
static inline void row_store(floatv v, __global T *row, int at) {
    if (WHOLE || at + VEC <= WIDTH)
        STOREV(v, row, at);
    else if (at < WIDTH)
        STOREN(v, row, at, WIDTH - at);
}
static inline void row_store_f32(floatv v, __global float *row, int at) {
    if (WHOLE || at + VEC <= WIDTH)
        STOREFV(v, row, at);
    else if (at < WIDTH)
        STOREFN(v, row, at, WIDTH - at);
}
/* v with what lies behind the row's end set to 0. */
static inline floatv row_part(floatv v, int at) {
    if (WHOLE || at + VEC <= WIDTH) return v;
    float lanes[VEC];
#if VEC == 1
    lanes[0] = v;
#else
    CAT(vstore, VEC)(v, 0, lanes);
#endif
#pragma unroll
    for (int j = 0; j < VEC; ++j)
        if (at + j >= WIDTH) lanes[j] = 0.0f;
#if VEC == 1
    return lanes[0];
#else
    return CAT(vload, VEC)(0, lanes);
#endif
}

/* Sum of x over the ROW_ITEMS items of a row. Every item of the group calls it. */
#if ROW_ITEMS == 1
static inline float2 row_sum(float2 x, GROUP_SCRATCH_ARG a, GROUP_SCRATCH_ARG b) {
    return x;
}
#else
static inline float2 row_sum(float2 x, __local float *a, __local float *b) {
    int i = get_local_id(0), lane = i % ROW_ITEMS;
    a[i] = x.x;
    b[i] = x.y;
    for (int n = ROW_ITEMS / 2; n > 0; n /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < n) {
            a[i] += a[i + n];
            b[i] += b[i + n];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float2 sum = (float2)(a[i - lane], b[i - lane]);
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum;
}
#endif

/* Rows of this group: a stretch on a CPU, every so many on a GPU. `base` is the same in the whole group.
 * Behind the last row items have none of their own; they must not even read the one nearby, whose owner may
 * be overwriting it (cleat_op.share). */
#if WG == 1
#define OWNS(row, rows) true
#define FOR_ROWS(rows)                                                                                                 \
    int each = (rows + (int)get_num_groups(0) - 1) / (int)get_num_groups(0);                                           \
    int last = min((int)get_group_id(0) * each + each, rows);                                                          \
    for (int base = (int)get_group_id(0) * each; base < last; ++base)
#else
#define OWNS(row, rows) ((row) < (rows))
#define FOR_ROWS(rows)                                                                                                 \
    for (int base = (int)get_group_id(0) * ROWS_AT_ONCE; base < rows; base += (int)get_num_groups(0) * ROWS_AT_ONCE)
#endif

/* x, y T [rows, WIDTH]; gamma, beta f32 [WIDTH]; mean, rstd f32 [rows] */
__kernel void layer_norm_forward(TENSOR(const T, x), TENSOR(const float, gamma), TENSOR(const float, beta),
                                 TENSOR(T, y), TENSOR(float, mean), TENSOR(float, rstd), const int rows,
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
        float m = row_sum((float2)(sumv(sum), 0.0f), scratch_a, scratch_b).x * (1.0f / WIDTH);
        floatv squares = (floatv)(0.0f);
#pragma unroll UNROLL
        for (int k = 0; k < PARTS; ++k) {
            part[k] = row_part(part[k] - m, COLUMN(k));
            squares = fma(part[k], part[k], squares);
        }
        float variance = row_sum((float2)(sumv(squares), 0.0f), scratch_a, scratch_b).x * (1.0f / WIDTH);
        float r = 1.0f / sqrt(variance + eps);
        if (owns) {
            __global T *to = AT(y) + (ulong)row * WIDTH;
#pragma unroll UNROLL
            for (int k = 0; k < PARTS; ++k)
                row_store(fma(part[k] * r, row_load_f32(AT(gamma), COLUMN(k)), row_load_f32(AT(beta), COLUMN(k))), to,
                          COLUMN(k));
            if (lane == 0) {
                AT(mean)[row] = m;
                AT(rstd)[row] = r;
            }
        }
    }
}

/* dx = addend + rstd (g - mean(g) - xhat mean(g xhat)), g = dy gamma, xhat = (x - mean) rstd; dx may be NULL.
 * partial f32 [groups * ROWS_AT_ONCE, 2, WIDTH]: sums of dy xhat and of dy over the rows each item has seen.
 * */
__kernel void layer_norm_backward(TENSOR(const T, dy), TENSOR(const T, x), TENSOR(const float, mean),
                                  TENSOR(const float, rstd), TENSOR(const float, gamma), TENSOR(const T, addend),
                                  TENSOR(T, dx), TENSOR(float, partial), const int rows) {
    GROUP_SCRATCH(scratch_a);
    GROUP_SCRATCH(scratch_b);
    int lane = get_local_id(0) % ROW_ITEMS, sub = get_local_id(0) / ROW_ITEMS;
    floatv dgamma[PARTS], dbeta[PARTS];
#pragma unroll UNROLL
    for (int k = 0; k < PARTS; ++k) dgamma[k] = dbeta[k] = (floatv)(0.0f);
    FOR_ROWS(rows) {
        int row = min(base + sub, rows - 1);
        bool owns = OWNS(base + sub, rows);
        float m = AT(mean)[row], r = AT(rstd)[row];
        __global const T *x_row = AT(x) + (ulong)row * WIDTH, *dy_row = AT(dy) + (ulong)row * WIDTH;
        floatv xhat[PARTS], g[PARTS], sum_g = (floatv)(0.0f), sum_gx = (floatv)(0.0f);
#pragma unroll UNROLL
        for (int k = 0; k < PARTS; ++k) {
            floatv zero = (floatv)(0.0f), arriving = owns ? row_load(dy_row, COLUMN(k)) : zero;
            xhat[k] = owns ? (row_load(x_row, COLUMN(k)) - m) * r : zero;
            g[k] = arriving * row_load_f32(AT(gamma), COLUMN(k));
            sum_g += g[k];
            sum_gx = fma(g[k], xhat[k], sum_gx);
            dgamma[k] = fma(arriving, xhat[k], dgamma[k]);
            dbeta[k] += arriving;
        }
        float2 sums = row_sum((float2)(sumv(sum_g), sumv(sum_gx)), scratch_a, scratch_b) * (1.0f / WIDTH);
        if (owns && HAS(dx)) {
            ulong at = (ulong)row * WIDTH;
#pragma unroll UNROLL
            for (int k = 0; k < PARTS; ++k) {
                floatv d = (g[k] - sums.x - xhat[k] * sums.y) * r;
                if (HAS(addend)) d += row_load(AT(addend) + at, COLUMN(k));
                row_store(d, AT(dx) + at, COLUMN(k));
            }
        }
    }
    __global float *mine = AT(partial) + (ulong)(get_group_id(0) * ROWS_AT_ONCE + sub) * (2 * WIDTH);
#pragma unroll UNROLL
    for (int k = 0; k < PARTS; ++k) {
        row_store_f32(dgamma[k], mine, COLUMN(k));
        row_store_f32(dbeta[k], mine + WIDTH, COLUMN(k));
    }
}

/* out[c] = addend[c] + sum over p of partial[p, 2 WIDTH wide, c], in a fixed order. On a GPU a group does
 * COLUMNS columns, with WG / COLUMNS items each. */
#define COLUMNS 32
__kernel void layer_norm_parameter(TENSOR(const float, partial), TENSOR(const float, addend), TENSOR(float, out),
                                   const int parts) {
#if WG == 1
    for (int c = (int)get_global_id(0) * VEC; c < WIDTH; c += (int)get_global_size(0) * VEC) {
        floatv sum = (floatv)(0.0f);
        for (int p = 0; p < parts; ++p) sum += row_load_f32(AT(partial) + (ulong)p * (2 * WIDTH), c);
        if (HAS(addend)) sum += row_load_f32(AT(addend), c);
        row_store_f32(sum, AT(out), c);
    }
#else
    __local float scratch[WG];
    int item = get_local_id(0), c = get_group_id(0) * COLUMNS + item % COLUMNS;
    float sum = 0.0f;
    for (int p = item / COLUMNS; p < parts && c < WIDTH; p += WG / COLUMNS)
        sum += AT(partial)[(ulong)p * (2 * WIDTH) + c];
    scratch[item] = sum;
    for (int n = WG / 2; n >= COLUMNS; n /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < n) scratch[item] += scratch[item + n];
    }
    if (item < COLUMNS && c < WIDTH) AT(out)[c] = scratch[item] + (HAS(addend) ? AT(addend)[c] : 0.0f);
#endif
}

/* Plain disentangled attention: one work-item per row, any head size, any work-group size.
 *
 * Also the first and last steps of all forms: position keys and queries to tables by distance, and the
 * gradients of these tables back to theirs. Layouts: disentangled.clh. */
#include "attention/disentangled.clh"

/* tables [2, heads, rows, pitch] = rows of pos_k, and of pos_q times query_scale; 0 if that tensor is
 * absent. */
__kernel void disentangled_expand(TENSOR(const T, pos_k), TENSOR(const T, pos_q), TENSOR(float, tables),
                                  const int heads, const int lq, const int front, const int rows, const int pitch,
                                  const int span, const int mid, const float slope, const float shift,
                                  const float query_scale) {
    for (int at = get_global_id(0); at < 2 * heads * rows; at += get_global_size(0)) {
        const int row = at % rows, h = at / rows % heads, which = at / rows / heads;
        const int bucket = bucket_of(row - front - (lq - 1), span, mid, slope, shift);
        const ulong from = ((ulong)bucket * heads + h) * DH;
        __global float *to = TABLE_AT(tables, which, h) + (ulong)row * pitch;
        for (int d = 0; d < DH; d += CHUNK) {
            chunk x = 0.0f;
            if (which == 0 && HAS(pos_k)) x = LOADC(AT(pos_k) + from, d);
            if (which == 1 && HAS(pos_q)) x = LOADC(AT(pos_q) + from, d) * query_scale;
            STOREFC(x, to, d);
        }
        for (int d = DH; d < pitch; ++d) to[d] = 0.0f;
    }
}

/* Row of the first distance whose bucket is at least `bucket`; one past the last if there is none. */
static inline int first_row(int bucket, int lq, int front, int span, int mid, float slope, float shift) {
    int low = 1 - lq, high = lq;
    if (bucket - span > max(-mid, -span) && bucket - span <= min(mid, span - 1)) /* the distance itself */
        low = high = clamp(bucket - span, low, high);
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (bucket_of(middle, span, mid, slope, shift) < bucket)
            low = middle + 1;
        else
            high = middle;
    }
    return ROW_OF(low);
}

/* The gradients of position keys and queries = accum + scale * the sum of dtables over the distances of a
 * bucket and over the parts, in order. dtables f32 [parts, 2, heads, rows, pitch]. A row of a head is split
 * into pieces, one for each work-item. */
__kernel void disentangled_reduce(TENSOR(const float, dtables), TENSOR(const T, accum_k), TENSOR(const T, accum_q),
                                  TENSOR(T, dpos_k), TENSOR(T, dpos_q), const int heads, const int lq, const int front,
                                  const int rows, const int pitch, const int span, const int mid, const float slope,
                                  const float shift, const int parts, const int pieces, const float key_scale,
                                  const float query_scale) {
    for (int at = get_global_id(0); at < 2 * span * heads * pieces; at += get_global_size(0)) {
        const int piece = at % pieces, h = at / pieces % heads, bucket = at / pieces / heads;
        const int begin = first_row(bucket, lq, front, span, mid, slope, shift);
        const int end = first_row(bucket + 1, lq, front, span, mid, slope, shift);
        const ulong to = ((ulong)bucket * heads + h) * DH;
        for (int d = piece * CHUNK; d < DH; d += pieces * CHUNK) {
            chunk sum_k = 0.0f, sum_q = 0.0f;
            for (int row = begin; row < end; ++row)
                for (int part = 0; part < parts; ++part) {
                    const ulong from = (ulong)row * pitch;
                    if (HAS(dpos_k)) sum_k += LOADFC(TABLE_AT(dtables, 2 * part, h) + from, d);
                    if (HAS(dpos_q)) sum_q += LOADFC(TABLE_AT(dtables, 2 * part + 1, h) + from, d);
                }
            sum_k *= key_scale;
            sum_q *= query_scale;
            if (HAS(dpos_k)) {
                if (HAS(accum_k)) sum_k += LOADC(AT(accum_k) + to, d);
                STOREC(sum_k, AT(dpos_k) + to, d);
            }
            if (HAS(dpos_q)) {
                if (HAS(accum_q)) sum_q += LOADC(AT(accum_q) + to, d);
                STOREC(sum_q, AT(dpos_q) + to, d);
            }
        }
    }
}

/* --- one work-item per row -------------------------------------------------------------------------------- */

/* q . k + q . a + k . c */
static inline float score_of(__global const T *q, __global const T *k, __global const float *a,
                             __global const float *c) {
    float score = 0.0f;
    for (int d = 0; d < DH; ++d) {
        const float x = LOAD(q, d), y = LOAD(k, d);
        score = fma(y, c[d], fma(x, y + a[d], score));
    }
    return score;
}

static inline float dot_of(__global const T *x, __global const T *y) {
    float sum = 0.0f;
    for (int d = 0; d < DH; ++d) sum = fma(LOAD(x, d), LOAD(y, d), sum);
    return sum;
}

__kernel void disentangled_plain_forward(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row,
                                         TENSOR(const int, lengths), TENSOR(const float, tables), TENSOR(T, y),
                                         TENSOR(float, lse), const int batch, const int heads, const int lq,
                                         const float softmax_scale, const int front, const int rows, const int pitch) {
    const int lk = lq, kv_row = q_row;
    for (int at = get_global_id(0); at < batch * heads * lq; at += get_global_size(0)) {
        const int i = at % lq, h = at / lq % heads, b = at / lq / heads, length = LENGTH(lengths, b, lq);
        const int keys = i < length ? length : 0;
        __global const float *a = TABLE_AT(tables, 0, h), *c = TABLE_AT(tables, 1, h);
        float out[DH], top = -INFINITY, sum = 0.0f;
        for (int d = 0; d < DH; ++d) out[d] = 0.0f;
        for (int j = 0; j < keys; ++j) {
            const ulong row = (ulong)ROW_OF(i - j) * pitch;
            const float score = softmax_scale * score_of(Q_AT(q, b, i, h), KV_AT(k, b, j, h), a + row, c + row);
            const float higher = fmax(top, score), shrink = exp(top - higher), weight = exp(score - higher);
            for (int d = 0; d < DH; ++d) out[d] = fma(weight, LOAD(KV_AT(v, b, j, h), d), out[d] * shrink);
            sum = sum * shrink + weight;
            top = higher;
        }
        for (int d = 0; d < DH; ++d) STORE(keys ? out[d] / sum : 0.0f, Y_AT(y, b, i, h), d);
        *LSE_AT(lse, b, i, h) = keys ? top + log(sum) : 0.0f;
    }
}

/* Weight of a pair, and the gradient of its score before softmax_scale. */
#define PAIR(weight, dscore)                                                                                           \
    const ulong row = (ulong)ROW_OF(i - j) * pitch;                                                                    \
    const float weight = exp(                                                                                          \
        fma(score_of(Q_AT(q, b, i, h), KV_AT(k, b, j, h), a + row, c + row), softmax_scale, -*LSE_AT(lse, b, i, h)));  \
    const float dscore = weight * (dot_of(Y_AT(dy, b, i, h), KV_AT(v, b, j, h)) - *LSE_AT(delta, b, i, h))

__kernel void disentangled_plain_dq(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row,
                                    TENSOR(const int, lengths), TENSOR(const float, tables), TENSOR(const float, lse),
                                    TENSOR(const float, delta), TENSOR(const T, dy), TENSOR(const T, accum),
                                    TENSOR(T, dq), const int batch, const int heads, const int lq,
                                    const float softmax_scale, const int front, const int rows, const int pitch) {
    const int lk = lq, kv_row = q_row;
    for (int at = get_global_id(0); at < batch * heads * lq; at += get_global_size(0)) {
        const int i = at % lq, h = at / lq % heads, b = at / lq / heads, length = LENGTH(lengths, b, lq);
        const int keys = i < length ? length : 0;
        __global const float *a = TABLE_AT(tables, 0, h), *c = TABLE_AT(tables, 1, h);
        float sum[DH];
        for (int d = 0; d < DH; ++d) sum[d] = 0.0f;
        for (int j = 0; j < keys; ++j) {
            PAIR(weight, dscore);
            for (int d = 0; d < DH; ++d) sum[d] = fma(dscore, LOAD(KV_AT(k, b, j, h), d) + a[row + d], sum[d]);
        }
        for (int d = 0; d < DH; ++d) {
            float before = 0.0f;
            if (HAS(accum)) before = LOAD(Q_AT(accum, b, i, h), d);
            STORE(before + softmax_scale * sum[d], Q_AT(dq, b, i, h), d);
        }
    }
}

__kernel void disentangled_plain_keys(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row,
                                      TENSOR(const int, lengths), TENSOR(const float, tables), TENSOR(const float, lse),
                                      TENSOR(const float, delta), TENSOR(const T, dy), TENSOR(const T, accum_k),
                                      TENSOR(const T, accum_v), TENSOR(T, dk), TENSOR(T, dv), const int batch,
                                      const int heads, const int lq, const float softmax_scale, const int front,
                                      const int rows, const int pitch) {
    const int lk = lq, kv_row = q_row;
    for (int at = get_global_id(0); at < batch * heads * lq; at += get_global_size(0)) {
        const int j = at % lq, h = at / lq % heads, b = at / lq / heads, length = LENGTH(lengths, b, lq);
        const int queries = j < length ? length : 0;
        __global const float *a = TABLE_AT(tables, 0, h), *c = TABLE_AT(tables, 1, h);
        float dkey[DH], dvalue[DH];
        for (int d = 0; d < DH; ++d) dkey[d] = dvalue[d] = 0.0f;
        for (int i = 0; i < queries; ++i) {
            PAIR(weight, dscore);
            for (int d = 0; d < DH; ++d) {
                dkey[d] = fma(dscore, LOAD(Q_AT(q, b, i, h), d) + c[row + d], dkey[d]);
                dvalue[d] = fma(weight, LOAD(Y_AT(dy, b, i, h), d), dvalue[d]);
            }
        }
        for (int d = 0; d < DH; ++d) {
            float before_k = 0.0f, before_v = 0.0f;
            if (HAS(accum_k)) before_k = LOAD(KV_AT(accum_k, b, j, h), d), before_v = LOAD(KV_AT(accum_v, b, j, h), d);
            STORE(before_k + softmax_scale * dkey[d], KV_AT(dk, b, j, h), d);
            STORE(before_v + dvalue[d], KV_AT(dv, b, j, h), d);
        }
    }
}

/* dtables [2, heads, rows, pitch], without softmax_scale: sums of dscore * q_i and of dscore * k_j over the pairs of
 * a distance, over the whole batch. */
__kernel void disentangled_plain_positions(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row,
                                           TENSOR(const int, lengths), TENSOR(const float, tables),
                                           TENSOR(const float, lse), TENSOR(const float, delta), TENSOR(const T, dy),
                                           TENSOR(float, dtables), const int batch, const int heads, const int lq,
                                           const float softmax_scale, const int front, const int rows,
                                           const int pitch) {
    const int lk = lq, kv_row = q_row;
    for (int at = get_global_id(0); at < heads * (2 * lq - 1); at += get_global_size(0)) {
        const int distance = at % (2 * lq - 1) - (lq - 1), h = at / (2 * lq - 1);
        __global const float *a = TABLE_AT(tables, 0, h), *c = TABLE_AT(tables, 1, h);
        float sum_q[DH], sum_k[DH];
        for (int d = 0; d < DH; ++d) sum_q[d] = sum_k[d] = 0.0f;
        for (int b = 0; b < batch; ++b) {
            const int length = LENGTH(lengths, b, lq);
            for (int i = max(0, distance); i < min(length, length + distance); ++i) {
                const int j = i - distance;
                PAIR(weight, dscore);
                for (int d = 0; d < DH; ++d) {
                    sum_q[d] = fma(dscore, LOAD(Q_AT(q, b, i, h), d), sum_q[d]);
                    sum_k[d] = fma(dscore, LOAD(KV_AT(k, b, j, h), d), sum_k[d]);
                }
            }
        }
        const ulong to = (ulong)ROW_OF(distance) * pitch;
        for (int d = 0; d < DH; ++d) {
            TABLE_AT(dtables, 0, h)[to + d] = sum_q[d];
            TABLE_AT(dtables, 1, h)[to + d] = sum_k[d];
        }
    }
}

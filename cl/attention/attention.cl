/* Plain attention: one work-item per row, any head size, any work-group size.
 *
 * Also computes the sums of dy * y for the backward pass of the GPU kernels. Layout and lengths:
 * attention.clh. */
#include "attention/attention.clh"

/* delta[b, h, i] = sum over d of dy * y [B, heads, lq]; 0 for i >= q_lengths[b]. The kernels for dQ compute
 * it themselves. */
__kernel void attention_delta(TENSOR(const T, y), TENSOR(const T, dy), TENSOR(const int, q_lengths),
                              TENSOR(float, delta), const int batch, const int heads, const int lq) {
    for (int at = get_global_id(0); at < batch * lq * heads; at += get_global_size(0)) {
        const int h = at % heads, i = at / heads % lq, b = at / heads / lq;
        chunk sum = 0.0f;
        if (i < LENGTH(q_lengths, b, lq))
            for (int d = 0; d < DH; d += CHUNK) sum += LOADC(Y_AT(y, b, i, h), d) * LOADC(Y_AT(dy, b, i, h), d);
        *LSE_AT(delta, b, i, h) = sum_chunk(sum);
    }
}

/* Number of keys before the end of those that query i sees; 0 if it sees none. */
#define END_KEY(b, i)                                                                                                  \
    (CAUSAL                           ? (FIRST_KEY(b, i) <= (i) ? (i) + 1 : 0)                                         \
     : (i) < LENGTH(q_lengths, b, lq) ? end_key(i, LENGTH(k_lengths, b, lk))                                           \
                                      : 0)

/* --- one work-item per query ---------------------------------------------------------------------------- */

__kernel void attention_plain_forward(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row,
                                      const int kv_row, TENSOR(const int, q_lengths), TENSOR(const int, k_lengths),
                                      TENSOR(T, y), TENSOR(float, lse), const int batch, const int heads, const int lq,
                                      const int lk, const float softmax_scale) {
    for (int at = get_global_id(0); at < batch * heads * lq; at += get_global_size(0)) {
        const int i = at % lq, h = at / lq % heads, b = at / lq / heads;
        const int first = FIRST_KEY(b, i), keys = END_KEY(b, i);
        float query[DH], out[DH], top = -INFINITY, sum = 0.0f;
        for (int d = 0; d < DH; ++d) query[d] = keys ? LOAD(Q_AT(q, b, i, h), d) * softmax_scale : 0.0f, out[d] = 0.0f;
        for (int j = first; j < keys; ++j) {
            float score = 0.0f;
            for (int d = 0; d < DH; ++d) score = fma(query[d], LOAD(KV_AT(k, b, j, h / SHARING), d), score);
            const float higher = fmax(top, score), shrink = exp(top - higher), weight = exp(score - higher);
            for (int d = 0; d < DH; ++d) out[d] = fma(weight, LOAD(KV_AT(v, b, j, h / SHARING), d), out[d] * shrink);
            sum = sum * shrink + weight;
            top = higher;
        }
        for (int d = 0; d < DH; ++d) STORE(keys ? out[d] / sum : 0.0f, Y_AT(y, b, i, h), d);
        *LSE_AT(lse, b, i, h) = keys ? top + log(sum) : 0.0f;
    }
}

__kernel void attention_plain_dq(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row,
                                 const int kv_row, TENSOR(const int, q_lengths), TENSOR(const int, k_lengths),
                                 TENSOR(const float, lse), TENSOR(const T, y), TENSOR(const T, dy),
                                 TENSOR(float, delta), TENSOR(const T, accum), TENSOR(T, dq), const int batch,
                                 const int heads, const int lq, const int lk, const float softmax_scale) {
    for (int at = get_global_id(0); at < batch * heads * lq; at += get_global_size(0)) {
        const int i = at % lq, h = at / lq % heads, b = at / lq / heads;
        const int first = FIRST_KEY(b, i), keys = END_KEY(b, i);
        float dquery[DH], own_delta = 0.0f;
        for (int d = 0; d < DH; ++d) dquery[d] = 0.0f;
        if (keys)
            for (int d = 0; d < DH; ++d)
                own_delta = fma(LOAD(Y_AT(y, b, i, h), d), LOAD(Y_AT(dy, b, i, h), d), own_delta);
        *LSE_AT(delta, b, i, h) = own_delta;
        for (int j = first; j < keys; ++j) {
            float score = 0.0f, dweight = 0.0f;
            for (int d = 0; d < DH; ++d) {
                score = fma(LOAD(Q_AT(q, b, i, h), d), LOAD(KV_AT(k, b, j, h / SHARING), d), score);
                dweight = fma(LOAD(Y_AT(dy, b, i, h), d), LOAD(KV_AT(v, b, j, h / SHARING), d), dweight);
            }
            const float weight = exp(fma(score, softmax_scale, -*LSE_AT(lse, b, i, h)));
            const float dscore = weight * (dweight - own_delta);
            for (int d = 0; d < DH; ++d) dquery[d] = fma(dscore, LOAD(KV_AT(k, b, j, h / SHARING), d), dquery[d]);
        }
        for (int d = 0; d < DH; ++d) {
            float before = 0.0f;
            if (HAS(accum)) before = LOAD(Q_AT(accum, b, i, h), d);
            STORE(before + softmax_scale * dquery[d], Q_AT(dq, b, i, h), d);
        }
    }
}

/* --- one work-item per key ------------------------------------------------------------------------------ */

__kernel void attention_plain_keys(TENSOR(const T, q), TENSOR(const T, k), TENSOR(const T, v), const int q_row,
                                   const int kv_row, TENSOR(const int, q_lengths), TENSOR(const int, k_lengths),
                                   TENSOR(const float, lse), TENSOR(const float, delta), TENSOR(const T, dy),
                                   TENSOR(const T, accum_k), TENSOR(const T, accum_v), TENSOR(T, dk), TENSOR(T, dv),
                                   const int batch, const int heads, const int lq, const int lk,
                                   const float softmax_scale) {
    const int k_heads = heads / SHARING;
    for (int at = get_global_id(0); at < batch * k_heads * lk; at += get_global_size(0)) {
        const int j = at % lk, k_head = at / lk % k_heads, b = at / lk / k_heads;
        const int queries = j < LENGTH(k_lengths, b, lk) ? LENGTH(q_lengths, b, lq) : 0;
        float dkey[DH], dvalue[DH];
        for (int d = 0; d < DH; ++d) dkey[d] = dvalue[d] = 0.0f;
        for (int n = RANGED ? max(j - AHEAD, 0) * SHARING : 0; n < queries * SHARING; ++n) {
            const int h = k_head * SHARING + n % SHARING, i = n / SHARING;
            if (j < FIRST_KEY(b, i)) continue;
            float score = 0.0f, dweight = 0.0f;
            for (int d = 0; d < DH; ++d) {
                score = fma(LOAD(Q_AT(q, b, i, h), d), LOAD(KV_AT(k, b, j, k_head), d), score);
                dweight = fma(LOAD(Y_AT(dy, b, i, h), d), LOAD(KV_AT(v, b, j, k_head), d), dweight);
            }
            const float weight = exp(fma(score, softmax_scale, -*LSE_AT(lse, b, i, h)));
            const float dscore = weight * (dweight - *LSE_AT(delta, b, i, h));
            for (int d = 0; d < DH; ++d) {
                dkey[d] = fma(dscore, LOAD(Q_AT(q, b, i, h), d), dkey[d]);
                dvalue[d] = fma(weight, LOAD(Y_AT(dy, b, i, h), d), dvalue[d]);
            }
        }
        for (int d = 0; d < DH; ++d) {
            float before_k = 0.0f, before_v = 0.0f;
            if (HAS(accum_k))
                before_k = LOAD(KV_AT(accum_k, b, j, k_head), d), before_v = LOAD(KV_AT(accum_v, b, j, k_head), d);
            STORE(before_k + softmax_scale * dkey[d], KV_AT(dk, b, j, k_head), d);
            STORE(before_v + dvalue[d], KV_AT(dv, b, j, k_head), d);
        }
    }
}

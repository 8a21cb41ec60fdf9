/* Last step of the backward pass of attention on matrix units, where several groups shared a tile of keys. Layout:
 * attention.clh. */
#include "attention/attention.clh"

/* dK and dV = accum + the sum of the parts' shares, in order. A work-item computes one element of both; there
 * are few elements, because otherwise the queries would not be split into parts. */
__kernel void attention_mma_sum_keys(TENSOR(const float, shares), TENSOR(const T, accum_k), TENSOR(const T, accum_v),
                                     TENSOR(T, dk), TENSOR(T, dv), const int kv_row, const int batch, const int heads,
                                     const int lk, const int parts) {
    const int width = heads / SHARING * DH;
    for (int at = get_global_id(0); at < batch * lk * width; at += get_global_size(0)) {
        const int e = at % width, h = e / DH, d = e % DH, j = at / width % lk, b = at / width / lk;
        float sum_k = 0.0f, sum_v = 0.0f;
        if (HAS(accum_k)) sum_k = LOAD(KV_AT(accum_k, b, j, h), d), sum_v = LOAD(KV_AT(accum_v, b, j, h), d);
        for (int part = 0; part < parts; ++part) {
            sum_k += SHARE_AT(b, part, 0, j, h)[d];
            sum_v += SHARE_AT(b, part, 1, j, h)[d];
        }
        STORE(sum_k, KV_AT(dk, b, j, h), d);
        STORE(sum_v, KV_AT(dv, b, j, h), d);
    }
}

/* The first row of each sample [L + 1, D], `sample` = (L + 1) D elements: a learned token, and its gradient. */
#include "lib/common.clh"

#include "lib/runs.clh"

/* y[b, 0, :] = token; token f32 [width] */
__kernel void prepend_token_write(TENSOR(const float, token), TENSOR(T, y), const int batch, const int width,
                                  const int sample) {
    FOR_RUNS(r, batch, width)
    run_store(run_load_f32(AT(token), r.at, width), AT(y) + (ulong)r.row * sample, r.at, width);
}

/* dtoken = accum + the sum of dy[b, 0, :] over the samples in their order; dtoken f32 [width] */
__kernel void prepend_token_sum(TENSOR(const T, dy), TENSOR(const float, accum), TENSOR(float, dtoken), const int batch,
                                const int width, const int sample) {
    FOR_RUNS(r, 1, width) {
        floatv sum = (floatv)(0.0f);
        for (int b = 0; b < batch; ++b) sum += run_load(AT(dy) + (ulong)b * sample, r.at, width);
        if (HAS(accum)) sum += run_load_f32(AT(accum), r.at, width);
        run_store_f32(sum, AT(dtoken), r.at, width);
    }
}

/* Sums the parts of the gradient of an LSTM's recurrent weight. */
#include "lib/common.clh"
#include "lib/runs.clh"

/* out T [4, hidden, hidden] = accum + the sum of the parts, in order; out may overwrite accum in place. parts
 * f32 [count, 4, rows, pitch], of which the first `hidden` rows and columns are valid. */
__kernel void lstm_weight_total(TENSOR(const float, parts), TENSOR(const T, accum), TENSOR(T, out), const int count,
                                const int hidden, const int rows, const int pitch) {
    FOR_RUNS(r, 4 * hidden, hidden) {
        const long at = (long)r.row * hidden, part = ((long)(r.row / hidden) * rows + r.row % hidden) * pitch;
        floatv sum = HAS(accum) ? run_load(AT(accum) + at, r.at, hidden) : (floatv)(0.0f);
        for (int i = 0; i < count; ++i)
            sum += run_load_f32(AT(parts) + (long)i * 4 * rows * pitch + part, r.at, hidden);
        run_store(sum, AT(out) + at, r.at, hidden);
    }
}

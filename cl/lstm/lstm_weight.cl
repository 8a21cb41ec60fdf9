/* Sums the parts of the gradient of an LSTM's weight or biases. */
#include "lib/common.clh"
#include "lib/runs.clh"

/* out T [4, height, width] = accum + the sum of the parts, in order; out may overwrite accum in place. parts
 * f32: `count` times [4, rows, pitch], of which the first `height` rows and `width` columns are valid, `part`
 * elements apart. */
__kernel void lstm_weight_total(TENSOR(const float, parts), TENSOR(const T, accum), TENSOR(T, out), const int count,
                                const int part, const int height, const int rows, const int width, const int pitch) {
    FOR_RUNS(r, 4 * height, width) {
        const long at = (long)r.row * width, from = ((long)(r.row / height) * rows + r.row % height) * pitch;
        floatv sum = HAS(accum) ? run_load(AT(accum) + at, r.at, width) : (floatv)(0.0f);
        for (int i = 0; i < count; ++i) sum += run_load_f32(AT(parts) + (long)i * part + from, r.at, width);
        run_store(sum, AT(out) + at, r.at, width);
    }
}

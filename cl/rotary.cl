/* Rotary positions (Su et al. 2021): pairs of columns of a head turn by an angle that grows with the position.
 * BACKWARD 1: they turn back. INTERLEAVED 1: pairs are neighbours (2i, 2i + 1), else (i, i + width / 2). */
#include "lib/common.clh"
#include "lib/runs.clh"

#ifndef INTERLEAVED
#define INTERLEAVED 0
#endif
#ifndef BACKWARD
#define BACKWARD 0
#endif
#define DIRECTION (BACKWARD ? -1.0f : 1.0f)

/* x, y, accum T [batch, length, heads, head]; table f32 [places, width]: (sin, cos) of each pair; positions i32
 * [batch, length] or NULL: the place in the sequence. Columns from `width` on and heads from `turning` on stay as they
 * are. accum is added to the result; it may be absent. y may be x or accum. */
__kernel void rotary_turn(TENSOR(const T, x), TENSOR(const float, table), TENSOR(const int, positions),
                          TENSOR(const T, accum), TENSOR(T, y), const int rows, const int length, const int heads,
                          const int turning, const int head, const int width, const int places) {
    FOR_RUNS(r, rows * heads, head / 2) {
        const int row = r.row / heads, turned = r.row % heads < turning ? width / 2 : 0;
        const int position = HAS(positions) ? AT(positions)[row] : row % length;
        __global const float *angles = AT(table) + (ulong)clamp(position, 0, places - 1) * width;
        const ulong from = (ulong)r.row * head;
        for (int pair = r.at; pair < min(r.at + VEC, head / 2); ++pair) {
            const int is_turned = pair < turned, apart = !is_turned || INTERLEAVED ? 1 : width / 2;
            const int first = is_turned && !INTERLEAVED ? pair : 2 * pair;
            const float s = is_turned ? DIRECTION * angles[2 * pair] : 0.0f,
                        c = is_turned ? angles[2 * pair + 1] : 1.0f;
            const ulong at = from + first, other = at + apart;
            const float a = LOAD(AT(x), at), b = LOAD(AT(x), other);
            float to_a = a * c - b * s, to_b = b * c + a * s;
            if (HAS(accum)) {
                to_a += LOAD(AT(accum), at);
                to_b += LOAD(AT(accum), other);
            }
            STORE(to_a, AT(y), at);
            STORE(to_b, AT(y), other);
        }
    }
}

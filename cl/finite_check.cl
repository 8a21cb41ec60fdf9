/* Scans a tensor for non-finite elements: their number, the first of them, and the magnitude of the others.
 *
 * Elements are classified by their bits, because a compiler that assumes finite numbers would remove a
 * comparison.
 *
 * records uint [groups, WORDS]: number of non-finite elements, index of the first (low word, high word), its
 * bits as f32, bits of the largest finite magnitude. The host merges the groups. */
#include "lib/common.clh"
#include "lib/shared_numbers.clh"

#define WORDS FINITE_CHECK_WORDS
#define NONE 0xfffffffffffffffful
#define MAGNITUDE 0x7fffffffu
#define NOT_FINITE 0x7f800000u /* magnitudes from here on are Inf and NaN */

#if VEC == 1
#define BITS(v) as_uint(v)
#define IS_BAD(magnitude) (-(int)((magnitude) >= NOT_FINITE))
#else
#define BITS(v) CAT(as_uint, VEC)(v)
#define IS_BAD(magnitude) ((magnitude) >= NOT_FINITE)
#endif

typedef struct scan_result {
    uintv count, largest; /* for each vector element */
    ulong first;
    uint bits;
} scan_result;

/* Scans VEC elements from `at` on; a work-item scans ascending indices. */
static inline void scan_vector(scan_result *f, floatv v, ulong at) {
    uintv bits = BITS(v), magnitude = bits & MAGNITUDE;
    intv bad = IS_BAD(magnitude);
    f->largest = max(f->largest, select(magnitude, (uintv)(0u), bad));
    f->count += select((uintv)(0u), (uintv)(1u), bad);
    if (f->first != NONE || !any(bad)) return;
    const uint *lane = (const uint *)&bits;
    int j = 0;
    while ((lane[j] & MAGNITUDE) < NOT_FINITE) ++j;
    f->first = at + j;
    f->bits = lane[j];
}

__kernel void finite_check_scan(TENSOR(const T, x), TENSOR(uint, records), const ulong n) {
    scan_result f = {(uintv)(0u), (uintv)(0u), NONE, 0u};
    FOR_VECTORS(s, n) scan_vector(&f, LOADV(AT(x), s.at), s.at);
    if (OWNS_TAIL(n)) scan_vector(&f, LOADN(AT(x), TAIL_AT(n), (int)(n - TAIL_AT(n))), TAIL_AT(n));
    const uint *counts = (const uint *)&f.count, *largests = (const uint *)&f.largest;
    uint count = 0u, largest = 0u;
    for (int j = 0; j < VEC; ++j) {
        count += counts[j];
        largest = max(largest, largests[j]);
    }
#if WG > 1
    __local uint all_counts[WG], all_largests[WG], all_bits[WG];
    __local ulong all_firsts[WG];
    int i = get_local_id(0);
    all_counts[i] = count;
    all_largests[i] = largest;
    all_bits[i] = f.bits;
    all_firsts[i] = f.first;
    for (int half_way = WG / 2; half_way > 0; half_way /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i < half_way) {
            int other = i + half_way;
            all_counts[i] += all_counts[other];
            all_largests[i] = max(all_largests[i], all_largests[other]);
            if (all_firsts[other] < all_firsts[i]) {
                all_firsts[i] = all_firsts[other];
                all_bits[i] = all_bits[other];
            }
        }
    }
    if (i != 0) return;
    count = all_counts[0];
    largest = all_largests[0];
    f.bits = all_bits[0];
    f.first = all_firsts[0];
#endif
    __global uint *record = AT(records) + get_group_id(0) * WORDS;
    record[0] = count;
    record[1] = (uint)f.first;
    record[2] = (uint)(f.first >> 32);
    record[3] = f.bits;
    record[4] = largest;
}

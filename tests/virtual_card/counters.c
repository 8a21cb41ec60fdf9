/* Cost of memory requests: sectors of global memory, wavefronts of shared memory. */
#include "access.h"

/* A hash set of up to 64 numbers. */
typedef struct number_set {
    uint64_t numbers[64], used;
} number_set;

/* Returns whether the number is new. */
static bool add_number(number_set *set, uint64_t number) {
    uint32_t at = (uint32_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 58);
    for (; set->used >> at & 1; at = (at + 1) % 64)
        if (set->numbers[at] == number) return false;
    set->used |= UINT64_C(1) << at, set->numbers[at] = number;
    return true;
}

/* The whole warp, with addresses in ascending order. */
static bool are_ascending(const uint64_t addresses[PTX_LANES], uint32_t mask) {
    uint64_t back = 0; /* the highest bit is set if a difference below 2^63 is negative */
    for (int l = 1; l < PTX_LANES; ++l) back |= addresses[l] - addresses[l - 1];
    return mask == PTX_ALL && !(back >> 63);
}

static uint32_t ascending_sectors(const uint64_t addresses[PTX_LANES], uint32_t bytes, uint32_t *different) {
    uint32_t sectors = 0;
    uint64_t next = 0; /* the first untouched sector */
    for (int l = 0; l < PTX_LANES; ++l) {
        if (l && addresses[l] == addresses[l - 1]) continue;
        ++*different;
        const uint64_t first = addresses[l] >> 5, last = (addresses[l] + bytes - 1) >> 5;
        sectors += (uint32_t)(last + 1 - (first < next ? next : first)); /* `last` is at least next - 1 */
        next = last + 1;
    }
    return sectors;
}

static uint32_t any_sectors(const uint64_t addresses[PTX_LANES], uint32_t mask, uint32_t bytes, uint32_t *different) {
    number_set places, touched;
    uint32_t sectors = 0;
    places.used = touched.used = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        const uint64_t address = addresses[__builtin_ctz(left)];
        if (!add_number(&places, address)) continue;
        ++*different;
        for (uint64_t sector = address >> 5; sector <= (address + bytes - 1) >> 5; ++sector)
            sectors += add_number(&touched, sector);
    }
    return sectors;
}

uint32_t ptx_sectors(const uint64_t addresses[PTX_LANES], uint32_t mask, uint32_t bytes, uint32_t *least) {
    uint32_t different = 0;
    const uint32_t sectors = are_ascending(addresses, mask) ? ascending_sectors(addresses, bytes, &different)
                                                            : any_sectors(addresses, mask, bytes, &different);
    *least = (different * bytes + 31) / 32;
    return sectors;
}

/* The maximum number of distinct words in one bank, for `banks` banks of `unit` bytes. */
static uint32_t wavefronts_of(const uint64_t *offsets, uint32_t mask, uint32_t first, uint32_t lanes,
                              uint32_t unit_shift) {
    const uint32_t banks = 128u >> unit_shift;
    uint64_t words[PTX_LANES];
    uint32_t next[PTX_LANES], head[PTX_LANES], depth[PTX_LANES], used = 0, most = 0, n = 0; /* words by bank */
    for (uint32_t l = first; l < first + lanes; ++l) {
        if (!(mask >> l & 1)) continue;
        const uint64_t word = offsets[l] >> unit_shift;
        const uint32_t bank = (uint32_t)word & (banks - 1);
        if (!(used >> bank & 1)) {
            used |= 1u << bank, head[bank] = n, depth[bank] = 0, next[n] = PTX_LANES;
        } else {
            uint32_t at = head[bank];
            while (at < PTX_LANES && words[at] != word) at = next[at];
            if (at < PTX_LANES) continue;
            next[n] = head[bank], head[bank] = n;
        }
        words[n++] = word;
        if (++depth[bank] > most) most = depth[bank];
    }
    return most;
}

uint32_t ptx_waves(const uint64_t offsets[PTX_LANES], uint32_t mask, uint32_t bytes, uint32_t *least) {
    const uint32_t unit_shift = bytes <= 4 ? 2 : bytes == 8 ? 3 : 4, lanes = 128u >> unit_shift;
    uint32_t waves = 0;
    *least = 0;
    for (uint32_t first = 0; first < PTX_LANES; first += lanes) {
        const uint32_t part = wavefronts_of(offsets, mask, first, lanes, unit_shift);
        waves += part;
        *least += part > 0;
    }
    return waves;
}

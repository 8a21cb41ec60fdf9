/* What requests to memory cost: sectors of global memory, wavefronts of shared memory. */
#include "access.h"

uint32_t ptx_sectors(const uint64_t addresses[PTX_LANES], uint32_t mask, uint32_t bytes, uint32_t *least) {
    uint64_t sorted[PTX_LANES];
    int n = 0;
    for (int l = 0; l < PTX_LANES; ++l) {
        if (!(mask >> l & 1)) continue;
        int k = n++;
        for (; k > 0 && sorted[k - 1] > addresses[l]; --k) sorted[k] = sorted[k - 1];
        sorted[k] = addresses[l];
    }
    uint32_t sectors = 0, different = 0;
    uint64_t next_sector = 0;
    for (int k = 0; k < n; ++k) {
        if (k && sorted[k] == sorted[k - 1]) continue;
        different++;
        const uint64_t first = sorted[k] >> 5, last = (sorted[k] + bytes - 1) >> 5;
        const uint64_t begin = first < next_sector ? next_sector : first;
        if (last >= begin) sectors += (uint32_t)(last - begin + 1), next_sector = last + 1;
    }
    *least = (different * bytes + 31) / 32;
    return sectors;
}

/* Different words of each bank: the largest number of a bank. `unit` bytes lie in one place of `banks` places. */
static uint32_t wavefronts_of(const uint64_t *offsets, uint32_t mask, uint32_t first, uint32_t lanes,
                              uint32_t unit_shift) {
    const uint32_t banks = 128u >> unit_shift;
    uint64_t words[PTX_LANES];
    uint32_t next[PTX_LANES], head[PTX_LANES], depth[PTX_LANES], used = 0, most = 0, n = 0; /* lists of words by bank */
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

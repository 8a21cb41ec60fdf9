/* Philox4x32-10 and the distributions drawn from it. The device code in cl/lib/common.clh computes the same
 * numbers. */
#include "core/philox.h"

#include <math.h>
#include <string.h>

void cleat_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t c[4], k[2];
    memcpy(c, counter, sizeof c);
    memcpy(k, key, sizeof k);
    for (int round = 0; round < 10; ++round) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t next[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ k[0], (uint32_t)p1, (uint32_t)(p0 >> 32) ^ c[3] ^ k[1],
                            (uint32_t)p0};
        memcpy(c, next, sizeof c);
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    memcpy(out, c, sizeof c);
}

cleat_random cleat_random_stream(uint64_t seed, uint32_t a, uint32_t b) {
    return (cleat_random){
        .counter = {0, 0, a, b}, .key = {(uint32_t)seed, (uint32_t)(seed >> 32)}, .block = {0}, .used = 4};
}

uint32_t cleat_random_u32(cleat_random *random) {
    if (random->used == 4) {
        cleat_philox(random->counter, random->key, random->block);
        if (++random->counter[0] == 0) ++random->counter[1];
        random->used = 0;
    }
    return random->block[random->used++];
}

/* Lemire's multiplication with rejection, which has no modulo bias. */
uint32_t cleat_random_below(cleat_random *random, uint32_t n) {
    uint64_t product = (uint64_t)cleat_random_u32(random) * n;
    if ((uint32_t)product < n) {
        uint32_t threshold = -n % n;
        while ((uint32_t)product < threshold) product = (uint64_t)cleat_random_u32(random) * n;
    }
    return (uint32_t)(product >> 32);
}

double cleat_random_uniform(cleat_random *random) {
    uint64_t high = cleat_random_u32(random) >> 5, low = cleat_random_u32(random) >> 6;
    return (double)(high * 67108864u + low) / 9007199254740992.0;
}

/* Box-Muller. The second value is discarded, so that each draw uses a fixed number of blocks. */
double cleat_random_normal(cleat_random *random) {
    double u = 1.0 - cleat_random_uniform(random), v = cleat_random_uniform(random);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

void cleat_random_shuffle(cleat_random *random, uint32_t *items, uint32_t count) {
    for (uint32_t i = count; i > 1; --i) {
        uint32_t j = cleat_random_below(random, i), item = items[i - 1];
        items[i - 1] = items[j];
        items[j] = item;
    }
}

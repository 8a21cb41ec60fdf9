/* Counter-based random numbers, identical on host and device (cl/lib/common.clh).
 * Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. */
#ifndef CLEAT_SRC_PHILOX_H
#define CLEAT_SRC_PHILOX_H

#include <stdint.h>

typedef struct cleat_random {
    uint32_t counter[4];
    uint32_t key[2];
    uint32_t block[4];
    int used;
} cleat_random;

void cleat_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* Returns an independent stream for each (seed, a, b), so that results do not depend on order or threads. */
cleat_random cleat_random_stream(uint64_t seed, uint32_t a, uint32_t b);
uint32_t cleat_random_u32(cleat_random *random);
uint32_t cleat_random_below(cleat_random *random, uint32_t n); /* uniform in [0, n), n > 0 */
double cleat_random_uniform(cleat_random *random);             /* [0, 1) */
double cleat_random_normal(cleat_random *random);              /* mean 0, variance 1 */
/* Fisher-Yates shuffle of items [count]. */
void cleat_random_shuffle(cleat_random *random, uint32_t *items, uint32_t count);

#endif

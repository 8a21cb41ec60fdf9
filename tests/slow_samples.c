/* A slow loader for tests: the linker replaces the function that fills a sample (CMakeLists.txt: --wrap). */
#include "slow_samples.h"

#include <time.h>

#include "data/dataset.h"

long slow_samples_ns;

cleat_status __real_cleat_dataset_fill(const cleat_dataset *dataset, size_t sample, int64_t length,
                                       const cleat_rng_key *rng_key, void *const *slots, cleat_error *error);
cleat_status __wrap_cleat_dataset_fill(const cleat_dataset *dataset, size_t sample, int64_t length,
                                       const cleat_rng_key *rng_key, void *const *slots, cleat_error *error);
cleat_status __wrap_cleat_dataset_fill(const cleat_dataset *dataset, size_t sample, int64_t length,
                                       const cleat_rng_key *rng_key, void *const *slots, cleat_error *error) {
    if (slow_samples_ns) nanosleep(&(struct timespec){.tv_nsec = slow_samples_ns}, NULL);
    return __real_cleat_dataset_fill(dataset, sample, length, rng_key, slots, error);
}

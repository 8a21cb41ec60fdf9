/* Sequence mutation in training: other sequences for a known structure. The bases of a helix may be replaced
 * as long as pairs remain pairs; natural RNA families vary in the same way (covariation). */
#include "data/rna/set.h"

/* For a mutated chain u is drawn from [0, 1). A fraction u of the pairs is redrawn, one in ten as a wobble
 * pair; and a fraction 0.3 u of the unpaired residues. */
static const double WOBBLE = 0.1, UNPAIRED = 0.3;

void cleat_rna_mutate(cleat_random *random, const int32_t *partner, int64_t n, int32_t *tokens) {
    static const int32_t watson_crick[4][2] = {{0, 3}, {3, 0}, {2, 1}, {1, 2}}; /* A-U, U-A, G-C, C-G */
    static const int32_t wobble[2][2] = {{2, 3}, {3, 2}};                       /* G-U, U-G */
    double share = cleat_random_uniform(random);
    for (int64_t i = 0; i < n; ++i) {
        int64_t j = partner[i];
        double chance = cleat_random_uniform(random);
        if (j > i && chance < share) {
            bool is_wobble = cleat_random_uniform(random) < WOBBLE;
            const int32_t *pair =
                is_wobble ? wobble[cleat_random_below(random, 2)] : watson_crick[cleat_random_below(random, 4)];
            tokens[i] = pair[0];
            tokens[j] = pair[1];
        }
        if (j < 0 && chance < share * UNPAIRED) tokens[i] = (int32_t)cleat_random_below(random, 4);
    }
}

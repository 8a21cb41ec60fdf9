/* Training: other sequences for a known structure. Bases of a helix may be exchanged as long as pairs stay
 * pairs; natural RNA families vary the same way (covariation). */
#include "data/rna/set.h"

/* In a varied chain a share u, drawn from [0, 1), of the pairs is drawn anew, one in ten as a wobble pair; of
 * the unpaired residues 0.3 u. */
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

/* Finds the base pairs of a chain from its sequence and its C1' atoms.
 *
 * i and j can pair if
 *   - their bases are A-U, G-C (Watson-Crick) or G-U (wobble), and j - i >= 4: no hairpin loop has fewer than
 *     three residues;
 *   - their C1' atoms are 10.5 +- 1.2 Angstrom apart. A planar Watson-Crick pair has 10.7 (C1' of the
 *     standard reference frame, Olson et al. 2001, J. Mol. Biol. 313, 229); pairs inside helices of 156
 *     entries of the PDB have 10.6 +- 0.3 (343 pairs, 98 % of them in 9.9 - 11.6), G-U 10.5 +- 0.4;
 *   - the helix is antiparallel here: across the minor groove the C1' of the residue 3' of one is nearer
 *     to the other than the pair's own (A-form: 8.2 against 10.7), unlike in shifted strands.
 *
 * All pairs of residues are compared, which takes a few seconds for the longest accepted chain (several times
 * the longest of the PDB). Two candidates pair if each is the other's nearest to 10.5. The pair is kept only
 * if the adjacent (i + 1, j - 1) or (i - 1, j + 1) is also a pair: a stack of at least two. */
#include "data/rna/set.h"

#include "core/memory.h"

#include <math.h>

static const float PAIR_DISTANCE = 10.5f, PAIR_TOLERANCE = 1.2f;
enum { MIN_SEPARATION = 4, LONGEST = 1 << 15 };

typedef struct chain {
    const char *letters;
    const float *coords;
    const float *mask;
    int64_t n;
} chain;

static bool complementary(char a, char b) {
    return (a == 'A' && b == 'U') || (a == 'U' && b == 'A') || (a == 'G' && (b == 'C' || b == 'U')) ||
           (b == 'G' && (a == 'C' || a == 'U'));
}

/* Infinite if one of the two is unknown or outside the chain. */
static float distance(const chain *c, int64_t i, int64_t j) {
    if (i < 0 || j < 0 || i >= c->n || j >= c->n || c->mask[i] == 0 || c->mask[j] == 0) return INFINITY;
    const float *a = c->coords + 3 * i, *b = c->coords + 3 * j;
    float x = a[0] - b[0], y = a[1] - b[1], z = a[2] - b[2];
    return sqrtf(x * x + y * y + z * z);
}

/* |distance - 10.5| if i and j can pair, else infinite; i < j. */
static float pair_error(const chain *c, int64_t i, int64_t j) {
    if (j - i < MIN_SEPARATION || !complementary(c->letters[i], c->letters[j])) return INFINITY;
    float d = distance(c, i, j);
    float off = fabsf(d - PAIR_DISTANCE);
    if (!(off <= PAIR_TOLERANCE)) return INFINITY;
    float across = fminf(distance(c, i + 1, j), distance(c, i, j + 1));
    return across < d ? off : INFINITY;
}

static bool is_pair(const int32_t *best, int64_t n, int64_t i, int64_t j) {
    return i >= 0 && j < n && i < j && best[i] == j && best[j] == i;
}

cleat_status cleat_rna_find_pairs(const char *letters, const float *coords, const float *mask, int64_t n,
                                  int32_t *partner, cleat_error *error) {
    const chain c = {letters, coords, mask, n};
    int32_t *best = cleat_alloc((size_t)n, sizeof *best), *known = cleat_alloc((size_t)n, sizeof *known);
    float *off = cleat_alloc((size_t)n, sizeof *off);
    if (!best || !off || !known) {
        cleat_free(best);
        cleat_free(off);
        cleat_free(known);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory to pair %lld residues", (long long)n);
    }
    int64_t n_known = 0;
    for (int64_t i = 0; i < n; ++i) {
        best[i] = partner[i] = -1;
        off[i] = INFINITY;
        if (mask[i] != 0) known[n_known++] = (int32_t)i;
    }
    cleat_status status = CLEAT_OK;
    if (n_known > LONGEST) {
        status =
            cleat_fail(error, CLEAT_ERR_FORMAT, "a chain has %lld residues with coordinates; at most %d can be paired",
                       (long long)n_known, LONGEST);
        n_known = 0;
    }
    for (int64_t a = 0; a < n_known; ++a)
        for (int64_t b = a + 1; b < n_known; ++b) {
            const int64_t i = known[a], j = known[b];
            float d = pair_error(&c, i, j);
            if (d < off[i]) off[i] = d, best[i] = (int32_t)j;
            if (d < off[j]) off[j] = d, best[j] = (int32_t)i;
        }
    for (int64_t i = 0; i < n; ++i) {
        int64_t j = best[i];
        if (!is_pair(best, n, i, j)) continue;
        if (is_pair(best, n, i + 1, j - 1) || is_pair(best, n, i - 1, j + 1)) {
            partner[i] = (int32_t)j;
            partner[j] = (int32_t)i;
        }
    }
    cleat_free(off);
    cleat_free(best);
    cleat_free(known);
    return status;
}

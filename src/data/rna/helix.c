/* Ideal A-form geometry of C1' atoms.
 *
 * Helix: 11 residues per turn, hence a twist of 32.7 degrees, and a rise of 2.81 A (A-RNA fibres; Arnott,
 * Hukins, Dover, Fuller, Hodgson 1973, J. Mol. Biol. 81, 107-122). In the frame of a base pair, C1' is at x =
 * -2.48, y = +-5.35 A, z = 0 (standard reference frame, A and U; Olson et al. 2001, J. Mol. Biol. 313,
 * 229-237), so that the C1' atoms of a pair are 10.70 A apart. A-form base pairs are displaced from the axis
 * towards the minor groove (displacement 4.4 - 4.9 A) and inclined by 10 - 20 degrees (Saenger 1984,
 * "Principles of Nucleic Acid Structure"; 15 - 16 degrees in Cheatham & Kollman 1997, Proc. Natl. Acad. Sci.
 * 94, 9626). A displacement of 4.77 A and an inclination of 16 degrees place C1' at the radius of 8.9 A of
 * ideal A-RNA. The resulting distances agree with helices of crystal structures (343 pairs of 156 entries of
 * the PDB, mean +- standard deviation): neighbours 5.74 (5.43 +- 0.27), pair 10.70 (10.61 +- 0.28), across
 * the minor groove 8.17 (8.06 +- 0.58), across the major groove 13.95 (13.68 +- 0.50). The helix is
 * right-handed: x, y turn counter-clockwise as z increases.
 *
 * Loop: the residues are on a circular arc over the closing pair, in the plane spanned by the pair and the
 * axis direction, at equal chords of 5.7 A. It is a plausible loop without clashes, the same for every
 * sequence, and not a model of any real tetraloop. */
#include "data/rna/helix.h"

#include <math.h>

static const double PI = 3.14159265358979323846;
static const double TWIST = 32.7, RISE = 2.81, INCLINATION = 16.0;       /* degrees, A, degrees */
static const double PAIR_X = -2.48, PAIR_Y = 5.35, DISPLACEMENT = -4.77; /* A */
static const double LOOP_CHORD = 5.7;                                    /* A */

void cleat_rna_helix_atom(int k, bool second_strand, double xyz[3]) {
    double side = second_strand ? -1 : 1, inclination = INCLINATION * PI / 180, turn = k * TWIST * PI / 180;
    double x = DISPLACEMENT + PAIR_X, y = side * PAIR_Y * cos(inclination), z = side * PAIR_Y * sin(inclination);
    xyz[0] = x * cos(turn) - y * sin(turn);
    xyz[1] = x * sin(turn) + y * cos(turn);
    xyz[2] = z + k * RISE;
}

static double dot(const double a[3], const double b[3]) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void normalise(double a[3]) {
    double length = sqrt(dot(a, a));
    for (int i = 0; i < 3; ++i) a[i] /= length;
}

/* The central angle of one chord on a circle on which `chords` of them span the distance `span`: the solution
 * of sin(chords a / 2) / sin(a / 2) = span / LOOP_CHORD, by bisection; the left side decreases from `chords`
 * to 0 on (0, 2 pi / chords). */
static double chord_angle(int chords, double span) {
    double low = 1e-9, high = 2 * PI / chords;
    for (int i = 0; i < 100; ++i) {
        double middle = (low + high) / 2;
        if (sin(chords * middle / 2) / sin(middle / 2) > span / LOOP_CHORD)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

void cleat_rna_loop(int k, int n, double *coords) {
    double from[3], to[3], along[3], up[3] = {0, 0, 1};
    cleat_rna_helix_atom(k, false, from);
    cleat_rna_helix_atom(k, true, to);
    for (int i = 0; i < 3; ++i) along[i] = to[i] - from[i];
    double span = sqrt(dot(along, along));
    normalise(along);
    double tilt = dot(up, along);
    for (int i = 0; i < 3; ++i) up[i] -= tilt * along[i];
    normalise(up);

    double angle = chord_angle(n + 1, span), radius = LOOP_CHORD / (2 * sin(angle / 2));
    double half = (n + 1) * angle / 2, height = -radius * cos(half); /* of the centre above the pair */
    for (int r = 0; r < n; ++r) {
        double at = -half + (r + 1) * angle; /* angle from the top of the arc */
        for (int i = 0; i < 3; ++i)
            coords[3 * r + i] =
                (from[i] + to[i]) / 2 + radius * sin(at) * along[i] + (height + radius * cos(at)) * up[i];
    }
}

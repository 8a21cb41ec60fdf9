/* Ideal A-form geometry of C1' atoms, in a double helix and in the loop that closes a hairpin; in
 * Angstrom. */
#ifndef CLEAT_SRC_RNA_HELIX_H
#define CLEAT_SRC_RNA_HELIX_H

#include "cleat/core.h"

/* Position of C1' of base pair `k` (0, 1, ...) on strand I (5' to 3' with increasing k) or II (3' to 5'); the
 * helix axis is z. */
void cleat_rna_helix_atom(int k, bool second_strand, double xyz[3]);

/* C1' atoms of a loop of `n` residues (4 .. 8) after base pair `k`, from the 3' end of strand I to strand II;
 * coords [n, 3]. */
void cleat_rna_loop(int k, int n, double *coords);

#endif

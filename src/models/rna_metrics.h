/* Accuracy of a predicted C1' trace against its reference. */
#ifndef CLEAT_SRC_RNA_METRICS_H
#define CLEAT_SRC_RNA_METRICS_H

#include "cleat/models.h"

/* Metrics of one chain, over the residues with known reference coordinates. Distances in Angstrom. */
typedef struct cleat_rna_metrics {
    double pair_mae;       /* mean |d - d_ref| over all pairs */
    double pair_mae_local; /* the same over pairs at most 12 residues apart */
    /* local distance difference test (Mariani et al. 2013) on C1': inclusion radius 15, thresholds 0.5, 1,
     * 2, 4; mean over residues with a neighbour within the radius */
    double lddt;
    double rmsd; /* after the best superposition without reflection (Horn 1987) */
    /* TM-score (Zhang & Skolnick 2004) with d0 for RNA (Gong et al. 2019), best superposition found */
    double tm;
    bool has_pairs, has_local_pairs;
} cleat_rna_metrics;

/* x, reference [length, 3], mask [length]. Fewer than one known residue, or lack of memory, is an error. */
cleat_status cleat_rna_metrics_compute(const float *x, const float *reference, const float *mask, int64_t length,
                                       cleat_rna_metrics *metrics, cleat_error *error);

/* Superposes x on the reference with the least root mean square deviation over the known residues (mask NULL: all),
 * which *rmsd receives: aligned [length, 3]. Errors as above. */
cleat_status cleat_rna_superpose(const float *x, const float *reference, const float *mask, int64_t length,
                                 float *aligned, double *rmsd, cleat_error *error);

/* Structures of a chain that the competition takes, of which the best counts. */
enum { CLEAT_RNA_STRUCTURES = 5 };
/* Writes FOLDER/submission.csv: ID,resname,resid,x_1,y_1,z_1,...,x_5,y_5,z_5, a row for each residue of each chain in
 * the order of the data. structures [members, samples], of which the first five are written; fewer are repeated in
 * turn. Residues beyond data.max_length, and coordinates that are not finite, are 0. */
cleat_status cleat_rna_write_submission(const cleat_model *model, const cleat_prediction *structures, size_t members,
                                        size_t samples, const char *folder, cleat_error *error);

#endif

/* Accuracy of a predicted C1' trace against its reference. */
#ifndef CLEAT_SRC_RNA_METRICS_H
#define CLEAT_SRC_RNA_METRICS_H

#include "cleat/core.h"

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

/* Superposes x on the reference with the least root mean square deviation over the known residues, which
 * *rmsd receives: aligned [length, 3]. Errors as above. */
cleat_status cleat_rna_superpose(const float *x, const float *reference, const float *mask, int64_t length,
                                 float *aligned, double *rmsd, cleat_error *error);

#endif

/* How near a predicted C1' trace is to its reference. */
#ifndef CLEAT_SRC_RNA_METRICS_H
#define CLEAT_SRC_RNA_METRICS_H

#include "cleat/core.h"

/* Figures of one chain, over the residues whose reference is known. Distances in Angstrom. */
typedef struct cleat_rna_metrics {
    double pair_mae;       /* mean |d - d_ref| of all pairs */
    double pair_mae_local; /* of pairs at most 12 residues apart */
    double lddt;           /* local distance difference test (Mariani et al. 2013) on C1': inclusion radius 15,
                    thresholds 0.5, 1, 2, 4; mean over residues with a neighbour in reach */
    double rmsd;           /* after the best superposition without reflection (Horn 1987) */
    double tm;             /* TM-score (Zhang & Skolnick 2004) with the d0 of RNA (Gong et al. 2019), best superposition
                    found */
    bool has_pairs, has_local_pairs;
} cleat_rna_metrics;

/* x, reference [length, 3], mask [length]. Fewer than one known residue, or no memory, is an error. */
cleat_status cleat_rna_metrics_compute(const float *x, const float *reference, const float *mask, int64_t length,
                                       cleat_rna_metrics *metrics, cleat_error *error);

#endif

/* RNA language models as a part of rna_transformer. */
#ifndef CLEAT_SRC_MODELS_RNA_H
#define CLEAT_SRC_MODELS_RNA_H

#include "models/model.h"

typedef enum cleat_rna_network { CLEAT_RNA_CLEAT, CLEAT_RNA_FM } cleat_rna_network;
extern const char *const cleat_rna_network_names[];

/* RNA-FM of multimolecule (published/rnafm.c); the list ends with NULL. */
extern const cleat_architecture *const cleat_published_rna[];

#endif

/* RNA chains while they are read: every RNA reader fills one of these, dataset.c makes the dataset of it. */
#ifndef CLEAT_SRC_RNA_SET_H
#define CLEAT_SRC_RNA_SET_H

#include "cleat/rna.h"
#include "core/name_table.h"
#include "core/philox.h"

typedef struct cleat_rna_residue {
    float xyz[3]; /* C1', Angstrom; 0 where unknown */
    char letter;  /* A C G U N */
    bool known;   /* xyz is */
} cleat_rna_residue;

typedef struct cleat_rna_entry {
    char *id;
    size_t first; /* its residues are residues [first, first + length) of the set */
    size_t length;
    size_t labelled;   /* residues whose coordinates (also missing ones) have been read */
    cleat_split split; /* CLEAT_SPLITS where the file names none */
} cleat_rna_entry;

typedef struct cleat_rna_set {
    cleat_rna_entry *chains;
    size_t count, capacity;
    cleat_rna_residue *residues;
    size_t residue_count, residue_capacity;
    cleat_name_table ids; /* id -> index of its chain */
    cleat_rna_summary summary;
} cleat_rna_set;

void cleat_rna_set_free(cleat_rna_set *set);
/* Starts a chain; residues added from here on are its own. The id must not be there yet. */
cleat_status cleat_rna_set_chain(cleat_rna_set *set, const char *id, cleat_split split, cleat_error *error);
cleat_status cleat_rna_set_residue(cleat_rna_set *set, char letter, cleat_error *error);

/* --- letters (letters.c) --- */

/* 'A' 'C' 'G' 'U' for these and 'T' in either case; 'N' for the other IUPAC nucleotide letters and X; 0 for
 * anything else. */
char cleat_rna_letter(char c);
int32_t cleat_rna_token(char letter);
/* What a PDB residue name is. */
typedef enum cleat_residue_kind {
    CLEAT_RESIDUE_RNA,
    CLEAT_RESIDUE_MODIFIED, /* a modified ribonucleotide, read as its parent */
    CLEAT_RESIDUE_DNA,
    CLEAT_RESIDUE_OTHER, /* protein, ligand, water, or a nucleotide that is not in the table */
} cleat_residue_kind;
/* `name` without spaces. *letter is the parent base, 'N' for DNA and other. */
cleat_residue_kind cleat_rna_residue_name(const char *name, char *letter);

/* --- readers --- */

/* sequences.csv starts the chains, labels.csv gives their coordinates. */
cleat_status cleat_rna_read_sequences(const char *path, cleat_rna_set *set, cleat_error *error);
cleat_status cleat_rna_read_labels(const char *path, cleat_rna_set *set, cleat_error *error);
/* One PDB file; chains are called STEM_CHAIN. Adds nothing where it holds no RNA. */
cleat_status cleat_rna_read_pdb(const char *path, cleat_rna_set *set, cleat_error *error);
cleat_status cleat_rna_read_fasta(const char *path, cleat_rna_set *set, cleat_error *error);

/* --- pairs (pairs.c) --- */

/* partner[i] = j and partner[j] = i for the pairs found, else -1. letters, coords [n, 3], mask [n] (1 known). */
cleat_status cleat_rna_find_pairs(const char *letters, const float *coords, const float *mask, int64_t n,
                                  int32_t *partner, cleat_error *error);

/* --- generated chains (make.c) --- */

/* Adds `count` molecules of the default options, but of another seed, to the training split; none has a sequence of the set. */
cleat_status cleat_rna_set_generate(cleat_rna_set *set, size_t count, cleat_error *error);

/* --- variation (mutate.c) --- */

/* Exchanges letters of a chain, pairs for pairs. partner [n] within the chain or -1; tokens [n] are changed. */
void cleat_rna_mutate(cleat_random *random, const int32_t *partner, int64_t n, int32_t *tokens);

#endif

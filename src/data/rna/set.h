/* A set of RNA chains while it is read: all RNA readers fill one, and dataset.c converts it to the
 * dataset. */
#ifndef CLEAT_SRC_RNA_SET_H
#define CLEAT_SRC_RNA_SET_H

#include "cleat/rna.h"
#include "core/name_table.h"
#include "core/philox.h"

typedef struct cleat_rna_residue {
    float xyz[3]; /* C1', in Angstrom; 0 if unknown */
    char letter;  /* A C G U N */
    bool known;   /* whether xyz is known */
} cleat_rna_residue;

typedef struct cleat_rna_entry {
    char *id;
    size_t first; /* its residues are [first, first + length) of the set */
    size_t length;
    size_t labelled;   /* number of residues whose coordinates, known or missing, have been read */
    cleat_split split; /* CLEAT_SPLITS if the file does not name one */
} cleat_rna_entry;

typedef struct cleat_rna_set {
    cleat_rna_entry *chains;
    size_t count, capacity;
    cleat_rna_residue *residues;
    size_t residue_count, residue_capacity;
    cleat_name_table ids; /* id -> index of its chain */
    cleat_rna_summary summary;
    bool has_val, has_test; /* files of these splits were read: no other chains are held out for them */
} cleat_rna_set;

void cleat_rna_set_free(cleat_rna_set *set);
/* Starts a chain; residues added afterwards belong to it. The id must be new. */
cleat_status cleat_rna_set_chain(cleat_rna_set *set, const char *id, cleat_split split, cleat_error *error);
cleat_status cleat_rna_set_residue(cleat_rna_set *set, char letter, cleat_error *error);

/* 'A' 'C' 'G' 'U' for these letters and 'T' in either case; 'N' for the other IUPAC nucleotide letters and X;
 * 0 for anything else. */
char cleat_rna_letter(char c);
int32_t cleat_rna_token(char letter);
/* Classification of PDB residue names. */
typedef enum cleat_residue_kind {
    CLEAT_RESIDUE_RNA,
    CLEAT_RESIDUE_MODIFIED, /* a modified ribonucleotide, treated as its parent */
    CLEAT_RESIDUE_DNA,
    CLEAT_RESIDUE_OTHER, /* protein, ligand, water, or a nucleotide that is not in the table */
} cleat_residue_kind;
/* `name` has no spaces. *letter is the parent base, 'N' for DNA and other. */
cleat_residue_kind cleat_rna_residue_name(const char *name, char *letter);

/* sequences.csv defines the chains, labels.csv their coordinates. */
cleat_status cleat_rna_read_sequences(const char *path, cleat_rna_set *set, cleat_error *error);
cleat_status cleat_rna_read_labels(const char *path, cleat_rna_set *set, cleat_error *error);
/* Reads one PDB file; chains are named STEM_CHAIN. Adds nothing if it contains no RNA. */
cleat_status cleat_rna_read_pdb(const char *path, cleat_rna_set *set, cleat_error *error);
cleat_status cleat_rna_read_fasta(const char *path, cleat_rna_set *set, cleat_error *error);

/* Sets partner[i] = j and partner[j] = i for the pairs found, else -1. letters [n], coords [n, 3], mask [n]
 * (1 known). */
cleat_status cleat_rna_find_pairs(const char *letters, const float *coords, const float *mask, int64_t n,
                                  int32_t *partner, cleat_error *error);

/* Adds `count` molecules with the default options, except for the seed, to the training split; their
 * sequences do not occur in the set. */
cleat_status cleat_rna_set_generate(cleat_rna_set *set, size_t count, cleat_error *error);

/* Mutates letters of a chain while preserving its base pairs. partner [n] within the chain or -1; tokens [n]
 * are modified. */
void cleat_rna_mutate(cleat_random *random, const int32_t *partner, int64_t n, int32_t *tokens);

#endif

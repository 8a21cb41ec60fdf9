/* RNA chains: CSV, PDB and FASTA files, read, written and generated. */
#ifndef CLEAT_RNA_H
#define CLEAT_RNA_H

#include "cleat/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Tokens: A C G U N = 0 1 2 3 4. The padding CLEAT_RNA_PADDING is outside the embedding table, so
 * cleat_embedding turns it into a row of zeros; `lengths` gives its start. */
enum { CLEAT_RNA_TOKENS = 5, CLEAT_RNA_PADDING = -1 };

/* The fields of an RNA dataset are, in this order:
 *   tokens   i32 [L]     padded with -1
 *   lengths  i32 []      number of residues in this sample; 0 in an empty slot
 *   coords   f32 [L, 3]  C1' atoms, Angstrom; 0 if unknown
 *   mask     f32 [L]     1 if the C1' atom is known, else 0
 *   partner  i32 [L]     index of the Watson-Crick (or G-U wobble) partner within the sample, or -1
 * and with first_token > 0, for language models, whose sequences have tokens of start and end:
 *   marked_lengths  i32 []   lengths + 2; 0 in an empty slot
 *   end      i32 []      position of the token of the end, lengths + 3, if that of the start has 2; 0 in an empty slot
 * Sequences read for prediction have mask 0 and partner -1 at all residues. */
typedef struct cleat_rna_options {
    int64_t min_length; /* shorter chains are omitted and counted */
    int64_t max_length; /* longer chains: a random crop in training, the first residues in evaluation */
    /* Fractions of validation and test entries, if the files define no split. A hash of the id up to its last
     * '_' assigns them, so the chains of one entry stay together. */
    double val_fraction;
    double test_fraction;
    uint64_t split_seed;
    cleat_fold fold; /* in place of the validation fraction and of validation chains, which take part */
    /* true: chains without coordinates are skipped and counted; false: they are kept, for prediction */
    bool structures;
    /* number of generated molecules with new sequences to add to the training part */
    int64_t generated;
    /* Training: probability of mutating the letters of a chain; base pairs remain base pairs. */
    double mutation;
    /* Training: probability of cropping a chain of more than 16 residues to a random stretch of at least
     * 16. */
    double crop;
    int32_t first_token; /* the token of A, 0 or more; those of C, G, U and N follow */
} cleat_rna_options;

/* min_length 1, max_length 1200, val_fraction 0.1, test_fraction 0, split_seed 0, structures true. */
CLEAT_API cleat_rna_options cleat_rna_defaults(void);

/* Opens an RNA dataset. `path` is one of
 *   a folder with sequences.csv and labels.csv (or train_sequences.csv and train_labels.csv), the layout of
 *     Kaggle's "Stanford RNA 3D Folding" (without `structures`, the labels may be absent); with `structures`,
 *     validation_* and test_* files of sequences and labels beside them are the chains of these splits
 *   a folder of *.pdb files, or one such file (.pdb, .ent)
 *   without `structures` only: a FASTA file (.fasta, .fa, .fna, .txt) or a sequences file (.csv)
 * `options` NULL: the defaults. CLEAT_ERR_FORMAT, with file:line, cause and remedy: malformed input. Valid
 * data that are not used (chains without coordinates, further conformations) are counted and logged as a
 * warning. */
CLEAT_API cleat_status cleat_rna_open(const char *path, const cleat_rna_options *options, cleat_dataset **dataset,
                                      cleat_error *error);

/* The whole chain, before truncation to max_length. NULL or 0 for a dataset of another kind. Borrowed. */
CLEAT_API const char *cleat_rna_sequence(const cleat_dataset *dataset, size_t sample); /* letters A C G U N */
CLEAT_API int64_t cleat_rna_chain_length(const cleat_dataset *dataset, size_t sample);
CLEAT_API const float *cleat_rna_coords(const cleat_dataset *dataset, size_t sample);     /* [length, 3] */
CLEAT_API const float *cleat_rna_mask(const cleat_dataset *dataset, size_t sample);       /* [length] */
CLEAT_API const int32_t *cleat_rna_partners(const cleat_dataset *dataset, size_t sample); /* [length] */

/* Counts of the file reader, printed at the start of a run. */
typedef struct cleat_rna_summary {
    size_t chains, residues;
    size_t missing;  /* residues without coordinates */
    size_t unknown;  /* residues read as N */
    size_t paired;   /* residues with a partner */
    size_t skipped;  /* chains omitted: no coordinates at all */
    size_t shorter;  /* chains omitted: shorter than min_length */
    size_t longer;   /* chains longer than max_length */
    size_t modified; /* PDB: modified nucleotides read as their parent */
} cleat_rna_summary;
/* Returns the values counted when the dataset was opened; all 0 for a dataset of another kind. */
CLEAT_API cleat_rna_summary cleat_rna_summarise(const cleat_dataset *dataset);

/* A chain to write, with coords [length, 3] of C1' atoms in Angstrom. A residue whose coordinates are not
 * finite is written as missing. */
typedef struct cleat_rna_chain {
    const char *id;
    const char *sequence; /* [length] letters */
    int64_t length;
    const float *coords;
} cleat_rna_chain;

/* Writes a PDB file atomically: one C1' trace per chain (chains A, B, C, ...) with TER and END, in the fixed
 * columns of PDB format 3.3. At most 62 chains of 9999 residues; coordinates within (-1000, 10000)
 * Angstrom. */
CLEAT_API cleat_status cleat_rna_write_pdb(const char *path, const cleat_rna_chain *chains, size_t n_chains,
                                           cleat_error *error);
/* Writes a CSV file atomically: ID,resname,resid,x_1,y_1,z_1 for all chains. ID is id_resid; missing
 * coordinates are empty. */
CLEAT_API cleat_status cleat_rna_write_csv(const char *path, const cleat_rna_chain *chains, size_t n_chains,
                                           cleat_error *error);
/* Writes "FOLDER/ID.pdb" to `path` [size], with every byte of the id outside [A-Za-z0-9._-] (and a leading
 * dot) replaced by '_'. False if the path is truncated. */
CLEAT_API bool cleat_rna_pdb_path(const char *folder, const char *id, char *path, size_t size);

/* Settings of generated data: ideal hairpins and duplexes in A-form geometry. */
typedef struct cleat_rna_make {
    size_t count; /* number of molecules; a duplex has two chains and is therefore two samples */
    uint64_t seed;
    double duplex_fraction;
    int stem_min, stem_max; /* base pairs of a hairpin stem, and of a duplex */
    int loop_min, loop_max; /* residues of a hairpin loop, 4 .. 8 */
    double gc;              /* fraction of G-C pairs; the others are A-U and some G-U */
    double val_fraction, test_fraction;
    size_t pdb_files; /* number of molecules, from the first, that are also written as pdb/ID.pdb */
} cleat_rna_make;

/* count 400, seed 1, duplex_fraction 0.25, stem 4 .. 12, loop 4 .. 8, gc 0.55, val 0.1, test 0.1,
 * pdb_files 4. */
CLEAT_API cleat_rna_make cleat_rna_make_defaults(void);
/* Writes generated data into `folder`, which is created if necessary: sequences.csv, labels.csv and pdb/.
 * Equal options give equal bytes. */
CLEAT_API cleat_status cleat_data_make_rna(const char *folder, const cleat_rna_make *options, cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif

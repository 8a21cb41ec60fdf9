/* Rows of texts while they are read, and their labels and tokens.
 *
 * A row is a text (or a pair) with its class, or a sentence; its units are the texts themselves, or the sentence's
 * words with their tags. All bytes are in one arena, so that a million rows need few allocations. */
#ifndef CLEAT_SRC_TEXT_SET_H
#define CLEAT_SRC_TEXT_SET_H

#include "cleat/texts.h"
#include "core/name_table.h"
#include "core/string.h"
#include "data/common/faults.h"
#include "data/common/source.h"
#include "data/common/targets.h"

extern const char *const cleat_text_empty_names[]; /* in settings: by cleat_text_empty; ends in NULL */

typedef struct cleat_text_unit {
    size_t start, size; /* in the set's bytes; followed by a zero byte */
    /* CLEAT_TEXT_NO_LABEL, or for classes an index of `names`, for tags O 0, B 1 + 2 t, I 2 + 2 t of name
     * t */
    int32_t label;
    int32_t position; /* of its first subword among the tokens of the row, or one of these */
} cleat_text_unit;

enum {
    CLEAT_TEXT_CUT = -1,     /* the text is longer than max_length */
    CLEAT_TEXT_NO_TOKEN = -2 /* the word has no tokens */
};

typedef struct cleat_text_row {
    size_t id;    /* start in the set's bytes */
    size_t group; /* the same, of the value of data.fold_column; 0: none */
    size_t first, units;
    cleat_split split;
} cleat_text_row;

/* A class, or the type of an entity. */
typedef struct cleat_text_name {
    char *name;
    const char *path; /* first occurrence; the path of its cleat_text_file */
    size_t line;
    bool trained; /* occurs in the training split */
} cleat_text_name;

typedef struct cleat_text_set {
    const cleat_text_options *options;
    cleat_string bytes;
    cleat_text_unit *units;
    size_t n_units, units_capacity;
    cleat_text_row *rows;
    size_t n_rows, rows_capacity;
    cleat_text_name *names;
    size_t n_names, names_capacity;
    cleat_name_table index; /* from a name to its index in `names` */
    cleat_text_summary summary;
    cleat_faults faults;   /* bad rows of all files */
    cleat_targets targets; /* of the rows, if options->targets has a problem that needs them */
} cleat_text_set;

/* A file and the split of its rows: `split`, except for the fractions that are moved, by a hash of the text,
 * to splits that have no file. */
typedef struct cleat_text_file {
    char path[4096];
    cleat_split split;
    double val_fraction, test_fraction;
    cleat_fold fold;
    bool guessed; /* found by its name */
    bool lines;   /* plain lines: a text each */
    bool several; /* there are other files, so that a row number alone is not unique */
} cleat_text_file;

typedef struct cleat_text_files {
    cleat_text_file files[CLEAT_SPLITS];
    size_t count;
} cleat_text_files;

/* Value of an optional string option; NULL becomes "". */
const char *cleat_text_option(const char *text);

/* Finds the files of `path`: the file itself, or those in a folder. */
cleat_status cleat_text_find_files(const char *path, const cleat_text_options *options, cleat_text_files *files,
                                   cleat_error *error);

/* Checks that the files of `path` exist, and that tables have the columns of texts and labels, without reading their
 * rows. */
cleat_status cleat_text_check_columns(const char *path, const cleat_text_options *options, cleat_error *error);

/* Read a file into the set, which keeps a pointer to `file`'s path, and bad rows into its faults. */
cleat_status cleat_text_read_table(const cleat_text_file *file, cleat_text_set *set, cleat_error *error);
cleat_status cleat_text_read_conll(const cleat_text_file *file, cleat_text_set *set, cleat_error *error);
cleat_status cleat_text_read_lines(const cleat_text_file *file, cleat_text_set *set, cleat_error *error);
/* *sentences: whether a file for tag prediction holds plain sentences rather than CoNLL columns, by its
 * extension (.lines), or for .txt and no extension by its lines. */
cleat_status cleat_text_has_sentences(const char *path, bool *sentences, cleat_error *error);
/* Whether a file that is not a table may hold plain lines, by its extension. */
bool cleat_text_may_be_lines(const char *path);

/* For readers: the file as UTF-8, rejected or repaired as the options require. */
cleat_status cleat_text_source(const cleat_text_file *file, cleat_text_set *set, cleat_source *source,
                               cleat_error *error);
/* Bytes [at, end) of a line. */
typedef struct cleat_stretch {
    char *at, *end;
} cleat_stretch;
bool cleat_text_is_blank(char c);
/* Without the blanks at both ends. */
cleat_stretch cleat_text_trim(cleat_stretch text);
/* Whether a word looks like a tag: O, B-TYPE, I-TYPE. */
bool cleat_text_is_tag(cleat_stretch word);
/* Starts a row; units added afterwards belong to it. If `id` is NULL, the id is `number` in decimal, preceded
 * by the split if there are several files. */
/* Whether labels and vocabulary include those of the row: of the training split, or of any fold. */
bool cleat_text_fits(const cleat_text_set *set, const cleat_text_row *row);
/* Sets the value of data.fold_column of the last row. */
cleat_status cleat_text_set_group(cleat_text_set *set, const char *group, cleat_error *error);
cleat_status cleat_text_begin_row(cleat_text_set *set, const cleat_text_file *file, const char *id, size_t number,
                                  cleat_error *error);
cleat_status cleat_text_add_unit(cleat_text_set *set, const char *text, size_t size, int32_t label, cleat_error *error);
/* Selects the splits of a file's rows, those from `first` on, by hashes of the bytes of their units. */
cleat_status cleat_text_assign_splits(cleat_text_set *set, const cleat_text_file *file, size_t first,
                                      cleat_error *error);
/* Index of `name` in the set's names; it is added if it is new. */
cleat_status cleat_text_name_id(cleat_text_set *set, const char *name, const char *path, size_t line, int32_t *id,
                                cleat_error *error);
/* Frees the names, which are not needed once the units have their labels. */
void cleat_text_free_names(cleat_text_set *set);
void cleat_text_set_free(cleat_text_set *set);

/* The labels of a dataset in order; for tags O, B-x, I-x, B-y, ... */
typedef struct cleat_text_labels {
    char **names;     /* [count] */
    int64_t *samples; /* [count] number in the training split; NULL: not counted yet */
    size_t count;
} cleat_text_labels;

/* Selects the labels (from the options, a folder with the fitted state, or the training split) and replaces
 * the indices of the set's names in the units by them. */
cleat_status cleat_text_select_labels(cleat_text_set *set, cleat_text_labels *labels, cleat_error *error);
cleat_status cleat_text_save_labels(const cleat_text_labels *labels, const char *folder, cleat_error *error);
/* Reads the labels that were saved there, as a fitted model does. */
cleat_status cleat_text_check_labels(cleat_text_task task, const char *folder, cleat_error *error);
void cleat_text_labels_free(cleat_text_labels *labels);

/* Tokens of a sample [*count], borrowed; `dataset` is one of cleat_text_open. */
const int32_t *cleat_text_ids(const cleat_dataset *dataset, size_t sample, size_t *count);

/* Whether the options have pairs of texts; whether the texts have several labels, or numbers. */
bool cleat_text_has_pairs(const cleat_text_options *options);
bool cleat_text_has_targets(const cleat_text_options *options);

/* Tokens of all rows with special tokens, truncated to max_length. */
typedef struct cleat_text_tokens {
    int32_t *ids;   /* [starts[rows]] */
    int32_t *types; /* [starts[rows]] types of the tokens; NULL unless texts are pairs */
    size_t *starts; /* [rows + 1] */
} cleat_text_tokens;

/* Opens the tokenizer of a fitted model: tokenizer.json, or the vocab.txt of one trained by cleat. The caller
 * owns *tokenizer. */
cleat_status cleat_text_open_fitted(const char *folder, bool lowercase, cleat_tokenizer **tokenizer,
                                    cleat_error *error);
/* Loads or trains the tokenizer as the options require. The caller owns *tokenizer. */
cleat_status cleat_text_open_tokenizer(const cleat_text_set *set, cleat_tokenizer **tokenizer, cleat_error *error);
/* Encodes the set and sets the positions of its units. `path` is the source of the set. */
cleat_status cleat_text_tokenize(cleat_text_set *set, const char *path, const cleat_tokenizer *tokenizer,
                                 cleat_text_tokens *tokens, cleat_error *error);
void cleat_text_tokens_free(cleat_text_tokens *tokens);

#endif

/* What the readers of texts collect: rows (a text with its class, or a sentence) of units (the text itself, or the
 * sentence's words with their tags). All bytes lie in one arena, so that a million rows are a few allocations. */
#ifndef CLEAT_SRC_TEXT_SET_H
#define CLEAT_SRC_TEXT_SET_H

#include "cleat/texts.h"
#include "core/name_table.h"
#include "core/text.h"
#include "data/common/source.h"

typedef struct cleat_text_unit {
    size_t start, size; /* in the set's bytes; a zero byte behind */
    int32_t label; /* CLEAT_TEXT_NO_LABEL, or: classes: a name of the set; tags: O 0, B 1 + 2 t, I 2 + 2 t of name t */
    int32_t position; /* of its first sub-word among the tokens of the row; -1: it has none there */
} cleat_text_unit;

typedef struct cleat_text_row {
    size_t id; /* where it starts in the set's bytes */
    size_t first, units;
    cleat_split split;
} cleat_text_row;

/* A class, or the type of an entity. */
typedef struct cleat_text_name {
    char *name;
    const char *path; /* where it was met first; the path of its cleat_text_file */
    size_t line;
    bool trained; /* the training part has it */
} cleat_text_name;

typedef struct cleat_text_set {
    const cleat_text_options *options;
    cleat_text bytes;
    cleat_text_unit *units;
    size_t n_units, units_capacity;
    cleat_text_row *rows;
    size_t n_rows, rows_capacity;
    cleat_text_name *names;
    size_t n_names, names_capacity;
    cleat_name_table index; /* from a name to its place in `names` */
    cleat_text_summary summary;
} cleat_text_set;

/* A file and the part its rows belong to: `split`, but for shares that a hash of the text moves to the parts that have
 * no file of their own. */
typedef struct cleat_text_file {
    char path[4096];
    cleat_split split;
    double val_fraction, test_fraction;
    bool guessed; /* found by its name */
    bool several; /* it is not the only one: a row's number alone does not name it */
} cleat_text_file;

typedef struct cleat_text_files {
    cleat_text_file files[CLEAT_SPLITS];
    size_t count;
} cleat_text_files;

/* The option's text; NULL is "". */
const char *cleat_text_option(const char *text);

/* The files of `path`: itself, or what a folder holds. */
cleat_status cleat_text_find_files(const char *path, const cleat_text_options *options, cleat_text_files *files,
                                   cleat_error *error);

/* Read a file into the set, which keeps `file`'s path. */
cleat_status cleat_text_read_table(const cleat_text_file *file, cleat_text_set *set, cleat_error *error);
cleat_status cleat_text_read_conll(const cleat_text_file *file, cleat_text_set *set, cleat_error *error);

/* For the readers: the file as UTF-8, the way the options want it. */
cleat_status cleat_text_source(const cleat_text_file *file, cleat_text_set *set, cleat_source *source,
                               cleat_error *error);
/* Opens a row: units added from here on are its own. `id` NULL: `number` in decimal, of several files with the part before it. */
cleat_status cleat_text_begin_row(cleat_text_set *set, const cleat_text_file *file, const char *id, size_t number,
                                  cleat_error *error);
cleat_status cleat_text_add_unit(cleat_text_set *set, const char *text, size_t size, int32_t label, cleat_error *error);
/* Chooses the row's part, from all bytes of its units. */
void cleat_text_end_row(cleat_text_set *set, const cleat_text_file *file);
/* The place of `name` among the set's names, added where it is new. */
cleat_status cleat_text_name_id(cleat_text_set *set, const char *name, const char *path, size_t line, int32_t *id,
                                cleat_error *error);
/* Frees the names, which nobody needs once the units have their labels. */
void cleat_text_free_names(cleat_text_set *set);
void cleat_text_set_free(cleat_text_set *set);

/* The labels of a dataset, in order. tags: O, B-x, I-x, B-y, ... */
typedef struct cleat_text_labels {
    char **names;     /* [count] */
    int64_t *samples; /* [count] of the training part; NULL: not counted yet */
    size_t count;
} cleat_text_labels;

/* Settles the labels (from the options, a folder with their samples, or the training part) and puts them in place of the set's names. */
cleat_status cleat_text_select_labels(cleat_text_set *set, cleat_text_labels *labels, cleat_error *error);
cleat_status cleat_text_save_labels(const cleat_text_labels *labels, const char *folder, cleat_error *error);
void cleat_text_labels_free(cleat_text_labels *labels);

/* All tokens of all rows, [CLS] ... [SEP], cut to max_length. */
typedef struct cleat_text_tokens {
    int32_t *ids;   /* [starts[rows]] */
    size_t *starts; /* [rows + 1] */
} cleat_text_tokens;

/* Loads or trains the tokenizer the options ask for. */
cleat_status cleat_text_open_tokenizer(const cleat_text_set *set, cleat_tokenizer **tokenizer, cleat_error *error);
/* Encodes the set, and sets its units' positions. `path` is where the set is from. */
cleat_status cleat_text_tokenize(cleat_text_set *set, const char *path, const cleat_tokenizer *tokenizer,
                                 cleat_text_tokens *tokens, cleat_error *error);
void cleat_text_tokens_free(cleat_text_tokens *tokens);

#endif

/* Text datasets: texts with a class each, and sentences with a tag for each word. */
#ifndef CLEAT_TEXTS_H
#define CLEAT_TEXTS_H

#include "cleat/dataset.h"
#include "cleat/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The fields of a text dataset are, in this order:
 *   tokens   i32 [L]  token ids with the special tokens of the tokenizer's template ([CLS] ... [SEP]); padded
 *                     with -1, which is not an id: cleat_embedding turns it into a row of zeros
 *   lengths  i32 []   number of tokens in this sample; 0 in an empty slot
 * and for classes:
 *   label    i32 []   the class, or CLEAT_TEXT_NO_LABEL
 *            or, with targets.problem multi_label or regression:
 *   target   f32 [n, 1]  a label each, 0 or 1, or a standardised number each; 0 where it is unknown
 *   types    i32 [L]  only for pairs of texts (text_pair_column): the type of each token from the template
 *                     (BERT: 0 in the first text, 1 in the second); padded with 0
 * or for tags:
 *   labels   i32 [L]  the tag at the first sub-word of each word, CLEAT_TEXT_NO_LABEL at all other positions
 * cleat_dataset_length is the number of tokens, at most max_length: a longer text loses its last tokens (in a
 * pair, the longer text first); special tokens are kept. For tags, cleat_dataset_items is the number of words
 * that have a tag.
 *
 * Tag ids: O = 0; entity type t (from 0) has B-type = 1 + 2 t and I-type = 2 + 2 t. Words are encoded one at
 * a time (cleat_tokenizer_encode_word). A word without tokens (only control characters) is omitted, as in
 * transformers, and its prediction is O; with a vocabulary trained by cleat it becomes [UNK]. */
typedef enum cleat_text_task {
    CLEAT_TEXT_CLASSES,
    CLEAT_TEXT_TAGS,
    CLEAT_TEXT_CAUSAL /* of cleat_causal_open only */
} cleat_text_task;
enum { CLEAT_TEXT_NO_LABEL = -1, CLEAT_TEXT_MAX_LABELS = 4096 };

/* Handling of a text that is empty or consists of blanks. */
typedef enum cleat_text_empty {
    CLEAT_TEXT_EMPTY_ERROR, /* an error */
    CLEAT_TEXT_EMPTY_SKIP,  /* omitted and counted */
    CLEAT_TEXT_EMPTY_KEEP   /* kept as [CLS] [SEP] */
} cleat_text_empty;

/* Options of a text dataset. A NULL string means "". */
typedef struct cleat_text_options {
    cleat_text_task task;
    /* Column names in tables. For several labels or numbers, label_column may list columns: words, or names in double
     * quotes. */
    const char *text_column, *label_column;
    cleat_target_options targets; /* classes only */
    /* Classes: column of the second text of a pair in tables; "": none. It is kept even if it is empty. */
    const char *text_pair_column;
    /* Id column in tables. "": the row number, prefixed with the name of the part if there are several files
     * (val-3). */
    const char *id_column;
    /* File names in the folder; "": found by name, see cleat_text_open. */
    const char *train_file, *val_file, *test_file;
    /* Path of a tokenizer: a folder, a tokenizer.json or a vocab.txt (cleat_tokenizer_load); "": trained on
     * the texts of the training part */
    const char *vocabulary;
    int64_t vocabulary_size; /* maximum number of pieces of a trained vocabulary */
    int64_t max_length;      /* maximum number of tokens per sample, at least 3 */
    bool lowercase;          /* no effect if the tokenizer's files define it */
    /* Classes or entity types in order, separated by blanks; "": those of the training part, sorted. */
    const char *labels;
    /* Fractions of the texts that become validation and test data if the folder (or single file) has no file
     * for that part. A hash of the text assigns it, so equal texts are in the same part. */
    double val_fraction, test_fraction;
    uint64_t split_seed;
    /* In place of the validation fraction and of a validation file, whose rows take part. Labels and vocabulary are
     * those of all folds, so that models of the folds can be combined. fold_column: rows with equal values of this
     * column are in one fold; "": rows with equal texts. */
    cleat_fold fold;
    const char *fold_column;
    /* Training: probability of replacing a token by [UNK] (word dropout; Iyyer et al., "Deep unordered
     * composition rivals syntactic methods for text classification", ACL 2015, delete the tokens instead). */
    double word_dropout;
    bool labelled;   /* false: for prediction; classes and tags in the files are ignored */
    bool plain;      /* with `labelled` false, classes: texts to train on without labels (cleat_masked_open) */
    bool split_long; /* with `plain`: a text of more than max_length tokens is split into several samples */
    bool predicted;  /* with `plain`: texts to predict, which have no splits */
    cleat_text_empty empty;
    bool replace_invalid; /* invalid UTF-8 becomes U+FFFD; false: an error */
    bool repair_tags;     /* true: an I-x that does not continue an entity becomes B-x; false: an error */
    /* Folder with the tokenizer and labels.txt of cleat_text_save, which replace `vocabulary` and `labels`.
     * "": fitted to the training part. */
    const char *fitted;
    int workers;      /* encoding threads; 0: the calling thread */
    const char *cpus; /* CPUs for these threads, as a list ("0-7"); "" or "any": all allowed CPUs */
    bool cache;       /* cache encoded texts in the cache folder */
} cleat_text_options;

/* Classes; columns "text" and "label"; vocabulary_size 8000, max_length 128, lowercase, val_fraction 0.1,
 * labelled, workers 0, no cache. Empty texts, bytes that are not UTF-8 and tags out of order are errors. */
CLEAT_API cleat_text_options cleat_text_defaults(void);

/* Opens a text dataset. `path` is one of
 *   classes: a table with a header line, .csv (RFC 4180) or .tsv (fields separated by tabs, no quotes);
 *     columns are found by name
 *   tags: a CoNLL file, with one word and its tag per line and an empty line (or one of blanks) after each
 *     sentence. Columns are separated by tabs, or by blanks in a line without a tab: the first is the word,
 *     the last is the tag. Lines of -DOCSTART- are skipped. The id is the number of the sentence in its
 *     file, from 1
 *   for prediction (`labelled` false), plain lines, each a text or sentence with its line number as id; blank
 *     lines are omitted. Classes: any file that is not a table. Tags: a .lines file, or a .txt file whose
 *     lines are not those of a CoNLL file; words are split at blanks, and punctuation is split off their
 *     start and end
 *   a folder with one file for each part. Files not named in the options are found by name: for classes
 *     train.csv|tsv, val|valid|validation|dev.csv|tsv and test.csv|tsv (with `plain` also .txt, of plain lines); for
 *     tags the files whose names contain train, dev or val, and test. A test table found this way is omitted if it has
 *     no label column
 * CLEAT_ERR_FORMAT, with file:line, cause and remedy: malformed input, or a label that does not occur in the
 * training part. The numbers of repaired, truncated and omitted items are logged. */
CLEAT_API cleat_status cleat_text_open(const char *path, const cleat_text_options *options, cleat_dataset **dataset,
                                       cleat_error *error);
/* Opens a dataset for masked language modelling (Devlin et al. 2019): the model predicts some tokens of each
 * text. The fields are tokens i32 [L], lengths i32 [], and labels i32 [L]: the original token at a chosen
 * position, -1 at all others. In a text with n tokens, not counting special ones, max(1, round(fraction n))
 * are chosen; 80 % of these become the mask token, 10 % a random one, 10 % stay. The choice depends only on
 * seed, epoch and sample; without a seed (evaluation) it is always the same. cleat_dataset_items is the
 * number of chosen tokens. A fraction of 0 is for prediction: nothing is chosen, and the texts themselves
 * contain mask tokens. `options` as for cleat_text_open, with `plain` and without `labelled`. With
 * `split_long` a long text is divided evenly into samples with special tokens around each; all are in the
 * text's split, and the ids after the first are ID/2, ID/3, ... CLEAT_ERR_FORMAT also: the vocabulary has no
 * mask token. */
CLEAT_API cleat_status cleat_masked_open(const char *path, const cleat_text_options *options, double fraction,
                                         cleat_dataset **dataset, cleat_error *error);
/* The tokenizer of such a dataset; NULL for another kind. */
CLEAT_API const cleat_tokenizer *cleat_masked_tokenizer(const cleat_dataset *dataset);
/* The text of a sample (borrowed; NULL for another kind of dataset), and the number of mask tokens in the
 * text itself, among the tokens that are kept. */
CLEAT_API const char *cleat_masked_text(const cleat_dataset *dataset, size_t sample);
CLEAT_API int64_t cleat_masked_count(const cleat_dataset *dataset, size_t sample);
/* Writes the fitted state into `folder`, which must exist: vocab.txt, or the files of a published tokenizer;
 * labels.txt (one label per line, in order) and label_samples.txt (number of training samples of each
 * label). */
CLEAT_API cleat_status cleat_text_save(const cleat_dataset *dataset, const char *folder, cleat_error *error);

/* The functions below return 0, NULL or CLEAT_TEXT_NO_LABEL for a dataset of another kind. Returned pointers
 * are borrowed. */

/* The tokenizer that encoded the texts: loaded, or trained on them. */
CLEAT_API const cleat_tokenizer *cleat_text_tokenizer(const cleat_dataset *dataset);
/* Number and names of the labels: classes, or tags O, B-x, I-x, ... */
CLEAT_API size_t cleat_text_labels_count(const cleat_dataset *dataset);
CLEAT_API const char *cleat_text_label_name(const cleat_dataset *dataset, size_t label);
/* Number of training samples (for tags: words) with this label, read from `fitted` if it contains them. */
CLEAT_API int64_t cleat_text_label_samples(const cleat_dataset *dataset, size_t label);

/* The text as in the file; for tags, the first word. */
CLEAT_API const char *cleat_text_sample(const cleat_dataset *dataset, size_t sample);
/* The second text of a pair; NULL if there is none. */
CLEAT_API const char *cleat_text_second(const cleat_dataset *dataset, size_t sample);
/* The class of a sample; classes only. */
CLEAT_API int32_t cleat_text_label(const cleat_dataset *dataset, size_t sample);
/* Number of words of a sentence, including truncated ones; for classes 1, the whole text. */
CLEAT_API size_t cleat_text_words(const cleat_dataset *dataset, size_t sample);
CLEAT_API const char *cleat_text_word(const cleat_dataset *dataset, size_t sample, size_t word);
/* Position of the first sub-word of a word among the tokens; -1 if the word is truncated or has none. */
CLEAT_API int32_t cleat_text_word_position(const cleat_dataset *dataset, size_t sample, size_t word);
CLEAT_API int32_t cleat_text_word_label(const cleat_dataset *dataset, size_t sample, size_t word);

/* Counts of the file reader, printed at the start of a run. */
typedef struct cleat_text_summary {
    size_t samples[CLEAT_SPLITS];
    size_t words;     /* tags only */
    size_t tokens;    /* including [CLS] and [SEP] */
    size_t unknown;   /* number of [UNK] tokens */
    size_t cut;       /* samples longer than max_length */
    size_t cut_words; /* truncated words; tags only */
    size_t skipped;   /* empty texts that were omitted */
    size_t replaced;  /* invalid UTF-8 bytes that were replaced */
    size_t repaired;  /* repaired tags */
} cleat_text_summary;
/* Returns the values counted when the dataset was opened; all 0 for a dataset of another kind. */
CLEAT_API cleat_text_summary cleat_text_summarise(const cleat_dataset *dataset);

#ifdef __cplusplus
}
#endif
#endif

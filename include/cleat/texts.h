/* Texts with classes, and words with tags. */
#ifndef CLEAT_TEXTS_H
#define CLEAT_TEXTS_H

#include "cleat/dataset.h"
#include "cleat/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fields of a dataset of texts, in this order:
 *   tokens   i32 [L]  ids of the tokenizer's pieces, [CLS] ... [SEP]; padded with -1, which is no id:
 *                     cleat_embedding turns it into a row of zeros
 *   lengths  i32 []   tokens in this sample; 0 in an empty slot
 * and of classes:
 *   label    i32 []   the class, or CLEAT_TEXT_NO_LABEL
 * or of tags:
 *   labels   i32 [L]  the tag at the first sub-word of each word, CLEAT_TEXT_NO_LABEL everywhere else
 * cleat_dataset_length is the tokens, at most max_length; cleat_dataset_items of tags the words that have
 * a tag. Of a longer text the first max_length - 1 tokens are kept, and [SEP].
 *
 * Tags are O = 0, and for the entity type number t (from 0) B-type = 1 + 2 t and I-type = 2 + 2 t. Words
 * are encoded one by one; a word that has no piece (only control characters) is [UNK], so that every word
 * has a first sub-word. */
typedef enum cleat_text_task { CLEAT_TEXT_CLASSES, CLEAT_TEXT_TAGS } cleat_text_task;
enum { CLEAT_TEXT_NO_LABEL = -1, CLEAT_TEXT_MAX_LABELS = 4096 };

/* Treatment of a text that is empty or only blanks. */
typedef enum cleat_text_empty {
    CLEAT_TEXT_EMPTY_ERROR, /* refused */
    CLEAT_TEXT_EMPTY_SKIP,  /* left out and counted */
    CLEAT_TEXT_EMPTY_KEEP   /* [CLS] [SEP] */
} cleat_text_empty;

/* Options of a dataset of texts. A NULL string means "". */
typedef struct cleat_text_options {
    cleat_text_task task;
    const char *text_column, *label_column; /* of tables */
    /* of tables; "": a row's number, of several files behind the part's name (val-3) */
    const char *id_column;
    /* names in the folder; "": found by name, see cleat_text_open */
    const char *train_file, *val_file, *test_file;
    const char *vocabulary;  /* a vocab.txt, or "": made from the texts of the training part */
    int64_t vocabulary_size; /* pieces of one that is made */
    int64_t max_length;      /* tokens of a sample, at least 3 */
    bool lowercase;
    /* in order, between blanks: classes, or entity types; "": the training part's, sorted */
    const char *labels;
    /* shares of the texts in a file whose folder (or that itself) names no file of this part; a hash
     * chooses, so equal texts are in one part */
    double val_fraction, test_fraction;
    uint64_t split_seed;
    /* training: chance of each token to be [UNK] (Iyyer et al., "Deep unordered composition rivals
     * syntactic methods for text classification", ACL 2015, drop them) */
    double word_dropout;
    bool labelled; /* false: for prediction; classes and tags of the files are not looked at */
    cleat_text_empty empty;
    bool replace_invalid; /* invalid UTF-8 becomes U+FFFD; false: an error */
    bool repair_tags;     /* I-x that goes on with nothing becomes B-x; false: it is refused */
    /* folder with the vocab.txt and labels.txt of cleat_text_save, which then take the place of
     * `vocabulary` and `labels`; "": fitted from the training part */
    const char *fitted;
    int workers;      /* encoding threads; 0: the calling thread */
    const char *cpus; /* CPUs for these threads, a list ("0-7"); "" or "any": all allowed */
    bool cache;       /* cache encoded texts in the cache folder */
} cleat_text_options;

/* Classes; columns "text" and "label"; vocabulary_size 8000, max_length 128, lowercase, val_fraction 0.1,
 * labelled; empty texts, bytes that are not UTF-8 and tags out of order are refused; workers 0, no cache. */
CLEAT_API cleat_text_options cleat_text_defaults(void);

/* Reads texts from `path`:
 * - classes: a table with a header, .csv (RFC 4180) or .tsv (fields between tabs, no quotes), columns
 *   found by name;
 * - tags: CoNLL, a word and its tag a line, an empty line (or one of blanks) after each sentence.
 *   Columns are separated by tabs, or in a line without a tab by blanks: the first is the word, the last
 *   the tag. Lines of -DOCSTART- are skipped. An id is the number of a sentence in its file, from 1;
 * - or a folder with a file for each part. Those without a name in the options are found: train.csv|tsv,
 *   val|valid|validation|dev.csv|tsv, test.csv|tsv; of tags the file whose name contains train, dev or
 *   val, test. A test table found so that has no column for the label is left out.
 * Malformed input is CLEAT_ERR_FORMAT with file:line, cause and remedy; so is a label the training part
 * does not have. What is repaired, cut or left out is counted and logged. */
CLEAT_API cleat_status cleat_text_open(const char *path, const cleat_text_options *options, cleat_dataset **dataset,
                                       cleat_error *error);
/* Writes vocab.txt, labels.txt (a label a line, in order) and label_samples.txt (their samples in the
 * training part) into `folder`, which must exist. */
CLEAT_API cleat_status cleat_text_save(const cleat_dataset *dataset, const char *folder, cleat_error *error);

/* What follows is 0, NULL or CLEAT_TEXT_NO_LABEL for a dataset of another kind; texts are borrowed. */

/* The tokenizer that the texts were encoded with: loaded, or trained on them. */
CLEAT_API const cleat_tokenizer *cleat_text_tokenizer(const cleat_dataset *dataset);
/* Classes, or tags: O, B-x, I-x, ... */
CLEAT_API size_t cleat_text_labels_count(const cleat_dataset *dataset);
CLEAT_API const char *cleat_text_label_name(const cleat_dataset *dataset, size_t label);
/* Number of training samples (of tags: words) with this label; those of `fitted` if it has them. */
CLEAT_API int64_t cleat_text_label_samples(const cleat_dataset *dataset, size_t label);

/* The text as it stands in the file; of tags the first word. */
CLEAT_API const char *cleat_text_sample(const cleat_dataset *dataset, size_t sample);
/* Of classes. */
CLEAT_API int32_t cleat_text_label(const cleat_dataset *dataset, size_t sample);
/* The words of a sentence, those that are cut off included; of classes 1, the text. */
CLEAT_API size_t cleat_text_words(const cleat_dataset *dataset, size_t sample);
CLEAT_API const char *cleat_text_word(const cleat_dataset *dataset, size_t sample, size_t word);
/* Where a word's first sub-word is among the tokens, or -1 where it is cut off. */
CLEAT_API int32_t cleat_text_word_position(const cleat_dataset *dataset, size_t sample, size_t word);
CLEAT_API int32_t cleat_text_word_label(const cleat_dataset *dataset, size_t sample, size_t word);

/* Counts of the reader, printed at the start of a run. */
typedef struct cleat_text_summary {
    size_t samples[CLEAT_SPLITS];
    size_t words;     /* of tags */
    size_t tokens;    /* [CLS] and [SEP] included */
    size_t unknown;   /* [UNK] among them */
    size_t cut;       /* samples longer than max_length */
    size_t cut_words; /* words cut off, of tags */
    size_t skipped;   /* empty texts left out */
    size_t replaced;  /* bytes that were not UTF-8 */
    size_t repaired;  /* tags */
} cleat_text_summary;
/* Counted when the dataset was opened; all 0 for a dataset of another kind. */
CLEAT_API cleat_text_summary cleat_text_summarise(const cleat_dataset *dataset);

#ifdef __cplusplus
}
#endif
#endif

/* Data: datasets behind one interface, batches of equal padded length, the loader's threads, and the files of
 * RNA, series, images, maps and texts.
 *
 * A dataset gives samples; a sample is one entry in each FIELD the dataset lists; a batch stacks the entries
 * of samples of about the same length, padded to the length of their BUCKET; the loader fills batches on its
 * threads, in order. Letters: B slots of a batch, L padded length. */
#ifndef CLEAT_DATA_H
#define CLEAT_DATA_H

#include "cleat/core.h"
#include "cleat/graph.h"
#include "cleat/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- dataset -------------------------------------------------------------------------------------------------- */

typedef struct cleat_dataset cleat_dataset;

typedef enum cleat_split { CLEAT_SPLIT_TRAIN, CLEAT_SPLIT_VAL, CLEAT_SPLIT_TEST, CLEAT_SPLITS } cleat_split;

/* "train", "val", "test". */
CLEAT_API const char *cleat_split_name(cleat_split split);

/* One named part of every sample. A batch holds it as [B, shape...]. */
typedef struct cleat_field {
    char name[CLEAT_NAME];
    cleat_dtype dtype;             /* CLEAT_I32 or CLEAT_F32 */
    int rank;                      /* of one sample; 0: one value a sample */
    int64_t shape[CLEAT_MAX_RANK]; /* -1 stands for the padded length L */
    int32_t pad;                   /* the value behind a sample's end, and of a slot without a sample */
} cleat_field;

/* What the random part of a sample may depend on, besides the sample itself. */
typedef struct cleat_rng_key {
    uint64_t seed;
    uint32_t epoch;
} cleat_rng_key;

CLEAT_API void cleat_dataset_destroy(cleat_dataset *dataset); /* takes NULL */

CLEAT_API size_t cleat_dataset_count(const cleat_dataset *dataset);
/* Borrowed, as long as the dataset lives. */
CLEAT_API const char *cleat_dataset_id(const cleat_dataset *dataset, size_t sample);
/* The length that chooses the bucket: what cleat_dataset_fill writes, already cut to the dataset's largest
 * length. */
CLEAT_API int64_t cleat_dataset_length(const cleat_dataset *dataset, size_t sample);
/* What it adds to a loss that is a mean over items: its length, or of a tagged text its words. */
CLEAT_API int64_t cleat_dataset_items(const cleat_dataset *dataset, size_t sample);
CLEAT_API cleat_split cleat_dataset_split(const cleat_dataset *dataset, size_t sample);
/* Writes what the training part taught the dataset (a vocabulary, labels, means) as files into `folder`, which is there:
 * opened with that folder later, other data are read in the same way. A dataset that learns nothing writes nothing. */
CLEAT_API cleat_status cleat_dataset_save(const cleat_dataset *dataset, const char *folder, cleat_error *error);
/* The samples of one split in file order. `*samples` [*count] is the caller's (cleat_samples_free); NULL when
 * there is none. */
CLEAT_API cleat_status cleat_dataset_samples(const cleat_dataset *dataset, cleat_split split, uint32_t **samples,
                                             size_t *count, cleat_error *error);
CLEAT_API void cleat_samples_free(uint32_t *samples);

CLEAT_API size_t cleat_dataset_fields(const cleat_dataset *dataset);
CLEAT_API const cleat_field *cleat_dataset_field(const cleat_dataset *dataset, size_t field);
/* The index of the field called `name`, or -1. */
CLEAT_API int cleat_dataset_find_field(const cleat_dataset *dataset, const char *name);
/* Elements, and bytes, of one sample of this field at padded length `length`. */
CLEAT_API int64_t cleat_field_elements(const cleat_field *field, int64_t length);
CLEAT_API int64_t cleat_field_bytes(const cleat_field *field, int64_t length);

/* Writes one sample, padded to `length`, into slots[field] (cleat_field_bytes each); a NULL slot is left out.
 * `rng_key` NULL: evaluation, nothing is random. The bytes depend on (sample, length, rng_key) only. Thread-safe.
 * CLEAT_ERR_ARGUMENT when the sample is longer than `length`. */
CLEAT_API cleat_status cleat_dataset_fill(const cleat_dataset *dataset, size_t sample, int64_t length,
                                          const cleat_rng_key *rng_key, void *const *slots, cleat_error *error);
/* Writes a slot without a sample: every field is its `pad`. */
CLEAT_API void cleat_dataset_fill_empty(const cleat_dataset *dataset, int64_t length, void *const *slots);

/* --- batches -------------------------------------------------------------------------------------------------- */

/* Samples up to `length` (and above the bucket before) are padded to `length`. An optimizer step takes `global_batch_size` of
 * them, whatever the card; they are run as micro-batches of at most `micro_batch_size` slots. */
typedef struct cleat_bucket {
    int64_t length;
    int64_t global_batch_size;
    int64_t micro_batch_size; /* 1 .. global_batch_size */
} cleat_bucket;

/* A micro-batch. */
typedef struct cleat_micro_batch {
    uint32_t bucket;
    uint32_t count;          /* samples, 1 .. batch of the bucket; slots from here on are empty */
    uint32_t global_batch;   /* index of its window in the pass */
    uint32_t first;          /* samples of its window that come before it */
    const uint32_t *samples; /* [count] */
} cleat_micro_batch;

/* The samples of one optimizer step: consecutive micro-batches of one bucket, whose gradients add up. */
typedef struct cleat_global_batch {
    size_t first, micro_batches; /* micro-batches first .. first + micro_batches - 1 of the pass */
    int64_t samples;
    int64_t items; /* cleat_dataset_items summed over the samples: before any random cut of a rng_key */
} cleat_global_batch;

/* All micro-batches of one pass, in order. */
typedef struct cleat_batches cleat_batches;

/* Chooses at most `max_buckets` bucket lengths for these samples, each a multiple of `multiple` (the last one
 * covers the longest sample), so that the padded elements summed over the samples are as few as possible.
 * lengths [max_buckets], ascending; *n_lengths of them are set. `samples` NULL: all samples of the dataset. */
CLEAT_API cleat_status cleat_buckets_choose(const cleat_dataset *dataset, const uint32_t *samples, size_t n_samples,
                                            size_t max_buckets, int64_t multiple, int64_t *lengths, size_t *n_lengths,
                                            cleat_error *error);

/* Lays samples [n_samples] out. With `rng_key` (training): a permutation of the samples, cut into windows within their
 * buckets, the windows shuffled, each cut into as few micro-batches as its bucket's `batch` allows, which differ by
 * at most one sample. What the windows hold, and their order, is a pure function of (samples, lengths, windows of the
 * buckets, rng_key): `batch` has no part in it. `rng_key` NULL (evaluation): bucket by bucket, samples in the given order,
 * every `batch` of them a window of its own. The last window of a bucket may be short; no sample is dropped. Buckets
 * ascend by length; CLEAT_ERR_ARGUMENT names a sample longer than the last one. */
CLEAT_API cleat_status cleat_batches_create(const cleat_dataset *dataset, const uint32_t *samples, size_t n_samples,
                                            const cleat_bucket *buckets, size_t n_buckets, const cleat_rng_key *rng_key,
                                            cleat_batches **batches, cleat_error *error);
CLEAT_API void cleat_batches_destroy(cleat_batches *batches);
CLEAT_API size_t cleat_batches_count(const cleat_batches *batches);
CLEAT_API const cleat_micro_batch *cleat_batches_get(const cleat_batches *batches, size_t index);
CLEAT_API size_t cleat_batches_global_batch_count(const cleat_batches *batches);
/* Window `index` of the pass; false behind the last one. */
CLEAT_API bool cleat_batches_global_batch(const cleat_batches *batches, size_t index, cleat_global_batch *global_batch);

/* --- loader --------------------------------------------------------------------------------------------------- */

typedef struct cleat_loader cleat_loader;

/* Everything pointed to must outlive the loader; only the arrays `buckets` and `slots` are copied. */
typedef struct cleat_loader_setup {
    const cleat_dataset *dataset;
    const cleat_bucket *buckets;
    size_t n_buckets;
    int workers;      /* threads; 0: cleat_loader_next fills the batch itself */
    bool persistent;  /* threads live from one pass to the next; false: they end with a pass that is read to its end */
    const char *cpus; /* CPUs near the card, a list as in cleat_device_facts.pinning ("0-7"); NULL or "any":
                           all allowed */
    void *const *slots; /* [n_slots] host memory (pinned staging buffers); see cleat_loader_slots */
    size_t n_slots;
    /* Where field `field` of bucket `bucket` lies in a slot: its byte offset, aligned to 4, for [B, shape...]
     * with B = buckets[bucket].batch; -1: not wanted. Asked once, at creation. */
    int64_t (*field_offset)(void *user, size_t bucket, size_t field);
    /* The type in which a CLEAT_F32 field lies there: CLEAT_F32, or CLEAT_F16 or CLEAT_BF16, to which it is rounded. Asked once too.
     * NULL: each field in its own. */
    cleat_dtype (*field_storage)(void *user, size_t bucket, size_t field);
    /* Waits until slot `slot` may be overwritten (its last upload has left). Called by the thread that fills
     * it. NULL: it always may. */
    cleat_status (*slot_wait)(void *user, size_t slot, cleat_error *error);
    void *user;
} cleat_loader_setup;

/* A batch that is ready. It is the consumer's until cleat_loader_release. */
typedef struct cleat_loaded {
    const cleat_micro_batch *micro_batch; /* NULL: the pass is over */
    size_t index;                         /* of the batch in the pass */
    size_t slot;
} cleat_loaded;

typedef struct cleat_loader_stats {
    uint64_t batches;    /* handed out */
    double wait_seconds; /* the consumer stood in cleat_loader_next */
    double fill_seconds; /* spent filling batches, summed over threads */
} cleat_loader_stats;

/* The number of slots that keeps `workers` threads `prefetch_factor` batches ahead each while the consumer
 * holds `held`. */
CLEAT_API size_t cleat_loader_slots(int workers, int prefetch_factor, size_t held);

CLEAT_API cleat_status cleat_loader_create(const cleat_loader_setup *setup, cleat_loader **loader, cleat_error *error);
/* Stops a pass that is under way, joins the threads. Takes NULL. */
CLEAT_API void cleat_loader_destroy(cleat_loader *loader);

/* Starts a pass over batches [first, count), which must live until the pass is over or stopped. A pass that
 * is under way is stopped first. `rng_key` is copied (NULL: evaluation). The batches must have been made with
 * the buckets of the setup. */
CLEAT_API cleat_status cleat_loader_start(cleat_loader *loader, const cleat_batches *batches, size_t first,
                                          const cleat_rng_key *rng_key, cleat_error *error);
/* Hands out the next batch, in order whatever the number of threads; waits for it. After the last one
 * loaded->batch is NULL. A batch that could not be filled ends the pass: its error, with the text of the
 * thread that met it, is returned in its turn and from then on. Only bytes of wanted fields are written: the
 * rest of a slot is the caller's. Waiting with no slot free and none being filled is CLEAT_ERR_ARGUMENT (the
 * consumer holds them all). One consumer thread. */
CLEAT_API cleat_status cleat_loader_next(cleat_loader *loader, cleat_loaded *loaded, cleat_error *error);
/* Gives a slot back; it may be filled again as soon as slot_wait says so. */
CLEAT_API void cleat_loader_release(cleat_loader *loader, size_t slot);
/* Ends the pass and waits for the fills under way. Slots the consumer holds stay its own until it releases
 * them. */
CLEAT_API void cleat_loader_stop(cleat_loader *loader);
CLEAT_API cleat_loader_stats cleat_loader_statistics(cleat_loader *loader);

/* --- RNA ------------------------------------------------------------------------------------------------------ */

/* Tokens A C G U N = 0 1 2 3 4. Padding is not in the table: it is CLEAT_RNA_PADDING, which cleat_embedding
 * turns into a row of zeros, and `lengths` tells where it starts. */
enum { CLEAT_RNA_TOKENS = 5, CLEAT_RNA_PADDING = -1 };

/* Fields of an RNA dataset, in this order:
 *   tokens   i32 [L]     padded with -1
 *   lengths  i32 []      residues in this sample; 0 in an empty slot
 *   coords   f32 [L, 3]  C1' atoms, Angstrom; 0 where unknown
 *   mask     f32 [L]     1 where the C1' atom is known, else 0
 *   partner  i32 [L]     index of the Watson-Crick (or G-U wobble) partner within the sample, or -1
 * Sequences read for prediction have mask 0 and partner -1 everywhere. */
typedef struct cleat_rna_options {
    int64_t min_length;  /* shorter chains are left out and counted */
    int64_t max_length;  /* longer chains: a random window in training, the first residues in evaluation */
    double val_fraction; /* where the files name no split: the share of entries that a hash of the id (up to
                          * its last '_', so that the chains of one entry stay together) puts there */
    double test_fraction;
    uint64_t split_seed;
    bool structures;  /* chains without any coordinate are skipped and counted; false: kept, for prediction */
    size_t generated; /* so many molecules, of sequences that are not there yet, join the training part */
    double mutation;  /* training: chance that a chain's letters are varied, pairs staying pairs */
    double crop;      /* training: chance that a chain of more than 16 residues is cut to a random stretch of at
                    least 16 */
} cleat_rna_options;

/* min_length 1, max_length 1200, val_fraction 0.1, test_fraction 0, split_seed 0, structures true. */
CLEAT_API cleat_rna_options cleat_rna_defaults(void);

/* Reads RNA chains from `path`:
 * - a folder with sequences.csv and labels.csv (or train_sequences.csv and train_labels.csv), the layout of Kaggle's "Stanford RNA 3D
 *   Folding" (without `structures`, the labels may be absent);
 * - a folder of *.pdb files, or one such file (.pdb, .ent);
 * - without `structures` only: FASTA (.fasta, .fa, .fna, .txt) or a sequences file (.csv).
 * `options` NULL: the defaults. Malformed input is CLEAT_ERR_FORMAT with file:line, cause and remedy. What is
 * legitimate but not used (chains without coordinates, further conformations) is counted and logged as a
 * warning. */
CLEAT_API cleat_status cleat_rna_open(const char *path, const cleat_rna_options *options, cleat_dataset **dataset,
                                      cleat_error *error);

/* The whole chain, before any cut to max_length. NULL or 0 for a dataset of another kind. Borrowed. */
CLEAT_API const char *cleat_rna_sequence(const cleat_dataset *dataset, size_t sample); /* letters A C G U N */
CLEAT_API int64_t cleat_rna_chain_length(const cleat_dataset *dataset, size_t sample);
CLEAT_API const float *cleat_rna_coords(const cleat_dataset *dataset, size_t sample);     /* [length, 3] */
CLEAT_API const float *cleat_rna_mask(const cleat_dataset *dataset, size_t sample);       /* [length] */
CLEAT_API const int32_t *cleat_rna_partners(const cleat_dataset *dataset, size_t sample); /* [length] */

/* What a reader found, for the line a run prints at its start. */
typedef struct cleat_rna_summary {
    size_t chains, residues;
    size_t missing;  /* residues without coordinates */
    size_t unknown;  /* residues read as N */
    size_t paired;   /* residues with a partner */
    size_t skipped;  /* chains left out: no coordinates at all */
    size_t shorter;  /* chains left out: shorter than min_length */
    size_t longer;   /* chains longer than max_length */
    size_t modified; /* PDB: modified nucleotides read as their parent */
} cleat_rna_summary;
CLEAT_API cleat_rna_summary cleat_rna_summarise(const cleat_dataset *dataset);

/* A chain to write: coords [length, 3] C1' atoms, Angstrom. A residue whose coordinates are not finite is
 * written as missing. */
typedef struct cleat_rna_chain {
    const char *id;
    const char *sequence; /* [length] letters */
    int64_t length;
    const float *coords;
} cleat_rna_chain;

/* One C1' trace a chain (chains A, B, C, ...) with TER and END; fixed columns of the PDB format 3.3. At most
 * 62 chains of 9999 residues, coordinates within (-1000, 10000) Angstrom. Written completely or not at all. */
CLEAT_API cleat_status cleat_rna_write_pdb(const char *path, const cleat_rna_chain *chains, size_t n_chains,
                                           cleat_error *error);
/* ID,resname,resid,x_1,y_1,z_1 of all chains; ID = id_resid; missing coordinates are empty. Written
 * completely or not at all. */
CLEAT_API cleat_status cleat_rna_write_csv(const char *path, const cleat_rna_chain *chains, size_t n_chains,
                                           cleat_error *error);
/* "FOLDER/ID.pdb", with every byte of the id outside [A-Za-z0-9._-] (and a leading dot) replaced by '_'.
 * False when it is cut. */
CLEAT_API bool cleat_rna_pdb_path(const char *folder, const char *id, char *path, size_t size);

/* Ideal hairpins and duplexes in A-form geometry. */
typedef struct cleat_rna_make {
    size_t count; /* molecules; a duplex is two chains, so two samples */
    uint64_t seed;
    double duplex_fraction;
    int stem_min, stem_max; /* base pairs of a hairpin's stem, and of a duplex */
    int loop_min, loop_max; /* residues of a hairpin's loop, 4 .. 8 */
    double gc;              /* share of G-C among the pairs; the rest is A-U with some G-U */
    double val_fraction, test_fraction;
    size_t pdb_files; /* the first molecules are written as pdb/ID.pdb too */
} cleat_rna_make;

/* count 400, seed 1, duplex_fraction 0.25, stem 4 .. 12, loop 4 .. 8, gc 0.55, val 0.1, test 0.1,
 * pdb_files 4. */
CLEAT_API cleat_rna_make cleat_rna_make_defaults(void);
/* Writes sequences.csv, labels.csv and pdb/ into `folder` (made if needed). The same options give the same
 * bytes. */
CLEAT_API cleat_status cleat_data_make_rna(const char *folder, const cleat_rna_make *options, cleat_error *error);

/* --- time series ---------------------------------------------------------------------------------------------- */

/* Windows of a CSV file with a time column and number columns, one row a step, oldest first.
 *
 * A sample is a moment: its LAST KNOWN ROW. Letters: T lookback, H horizon, F features, C = F x frames channels,
 * K targets. Fields, in this order, all standardised (value - mean) / std of their column:
 *   x       f32 [T, C]  look-back: the features of the file's own frame, then those of each further frame
 *   target  f32 [H, K]  the H rows behind the last known one
 *   last    f32 [K]     targets at the last known row: the persistence forecast
 *   season  f32 [H, K]  the latest known value a whole number of seasons earlier: the seasonal persistence forecast
 * cleat_dataset_length is T for every sample; the id is the ISO time of the last known row.
 *
 * Frames: a step of a frame of m file steps is the mean of m rows. They are counted back from the last known row, so
 * step j covers the m rows that end (T-1-j) m rows before it, and every interval is complete: nothing behind the last
 * known row is ever read. Coarse frames share mean and std with the file's own.
 *
 * Splits are in order of time: training, then validation, then test rows; rows behind them are not used. A sample is
 * of the split in which all its targets lie. Look-back may reach over the border into the split before, as is usual for
 * these data. Means and (biased) deviations are those of the training rows only; a column that is constant there has
 * std 1. */

/* What is done about rows that do not follow each other by one step. */
typedef enum cleat_series_gaps {
    CLEAT_GAPS_ERROR, /* refused */
    CLEAT_GAPS_FILL,  /* the missing rows repeat the row before them */
    CLEAT_GAPS_SKIP,  /* windows across a gap are left out */
    CLEAT_GAPS_ROWS   /* rows are consecutive steps whatever their times: business days */
} cleat_series_gaps;

/* What is done about cells that are empty or say nan, na, n/a, null or none. */
typedef enum cleat_series_missing {
    CLEAT_MISSING_ERROR, /* refused */
    CLEAT_MISSING_FILL,  /* the column's value of the row before */
    CLEAT_MISSING_SKIP   /* windows that touch such a row are left out; means are those of the other rows */
} cleat_series_missing;

/* What x and target are differences from. Networks that see levels they were not trained on do better so. */
typedef enum cleat_series_anchor {
    CLEAT_SERIES_ANCHOR_NONE,
    CLEAT_SERIES_ANCHOR_LAST,  /* both from the last known row */
    CLEAT_SERIES_ANCHOR_SEASON /* x from the last known row, target from `season` */
} cleat_series_anchor;

enum { CLEAT_SERIES_MAX_RESAMPLES = 8 };

typedef struct cleat_series_options {
    const char *file;        /* name within `path` where that is a folder; NULL or "": its only *.csv */
    const char *time_column; /* NULL or "": the first column */
    const char *features;    /* names between commas; NULL or "": all columns but the time */
    const char *targets;     /* names between commas; NULL or "": all features */
    int64_t resample_seconds[CLEAT_SERIES_MAX_RESAMPLES]; /* a step of each further resolution; multiples of the step */
    size_t n_resamples;
    int64_t step;                            /* seconds between rows; 0: as between the first two rows, or with
                                            * CLEAT_GAPS_ROWS the least there is */
    int64_t lookback, horizon;               /* T of each frame's steps, H rows */
    int64_t stride;                          /* rows from one training window to the next */
    int64_t eval_stride;                     /* rows from one validation or test window to the next */
    int64_t season;                          /* rows; 0: no season, `season` repeats `last` */
    double val_fraction, test_fraction;      /* of the rows, at their end */
    int64_t train_rows, val_rows, test_rows; /* any above 0: these rows instead of the fractions */
    cleat_series_anchor anchor;
    cleat_series_gaps gaps;
    cleat_series_missing missing;
    int64_t longest_fill; /* rows, or cells of a column, that may be filled one after the other; more is an error */
    const char *fitted;   /* folder of an earlier cleat_dataset_save: columns, means, deviations, step and frames are
                           * those of its series.csv, bit by bit; NULL or "": fitted from the training rows */
    bool forecast;        /* for prediction, needs `fitted`: every window up to the last row, whether its targets are
                           * known or not (unknown ones are 0); all samples are of CLEAT_SPLIT_TEST */
} cleat_series_options;

/* lookback 96, horizon 24, strides 1, season 0, no anchor, val_fraction 0.1, test_fraction 0.1, longest_fill 24; gaps
 * and missing cells are errors. */
CLEAT_API cleat_series_options cleat_series_defaults(void);

/* Reads `path`, a CSV file (RFC 4180, UTF-8) or a folder with one. Times are YYYY-MM-DD, YYYY-MM-DD HH:MM[:SS] (or with
 * a T), the same with Z or +hh:mm, or Unix seconds; all rows of one kind. `options` NULL: the defaults. Memory: 4 bytes
 * a used cell and frame, 9 bytes a row, 24 bytes a sample; the file is read in parts. CLEAT_ERR_FORMAT with file:line,
 * cause and remedy for malformed input, CLEAT_ERR_ARGUMENT for options that make no sense or do not suit the file. What
 * is filled or left out is counted and logged as a warning. */
CLEAT_API cleat_status cleat_series_open(const char *path, const cleat_series_options *options, cleat_dataset **dataset,
                                         cleat_error *error);
/* Sizes and counts of a series. All 0 for a dataset of another kind. */
typedef struct cleat_series_info {
    int64_t lookback, horizon, season, step;          /* T, H; rows; seconds */
    int64_t features, resolutions, channels, targets; /* F, the file's own included, C, K */
    int64_t rows;                                     /* filled ones included */
    int64_t split_rows[CLEAT_SPLITS], windows[CLEAT_SPLITS];
    int64_t gaps;        /* places where rows do not follow by one step (not counted with CLEAT_GAPS_ROWS) */
    int64_t filled_rows; /* made up */
    int64_t missing;     /* cells without a value in the file, of used columns */
    int64_t left_out;    /* windows that touch a gap or a missing cell */
} cleat_series_info;
CLEAT_API cleat_series_info cleat_series_describe(const cleat_dataset *dataset);

/* Borrowed names; NULL behind the last one, and for a dataset of another kind. */
CLEAT_API const char *cleat_series_feature(const cleat_dataset *dataset, size_t feature);
CLEAT_API const char *cleat_series_target(const cleat_dataset *dataset, size_t target);
/* Of target k, in the units of the file: value = standardised x std + mean. 0 behind the last one. */
CLEAT_API double cleat_series_mean(const cleat_dataset *dataset, size_t target);
CLEAT_API double cleat_series_std(const cleat_dataset *dataset, size_t target);
/* Seconds a step of frame f, 0 being the file's own. 0 behind the last one. */
CLEAT_API int64_t cleat_series_resample_seconds(const cleat_dataset *dataset, size_t resample);
/* The time of row `ahead` rows behind the sample's last known one (0: that one; 1 .. H: its targets) in Unix seconds.
 * Rows behind the end of the file are a step apart. */
CLEAT_API int64_t cleat_series_time(const cleat_dataset *dataset, size_t sample, int64_t ahead);
/* Rows of the sample's `target` that the file holds: H, or fewer at the end of a forecast. */
CLEAT_API int64_t cleat_series_known(const cleat_dataset *dataset, size_t sample);
/* "2016-07-01T00:00:00", in `text`, which is returned. In UTC where the file gave offsets or Unix seconds, else as in
 * the file. Times outside the years 1 to 9999 come out as their limits. */
enum { CLEAT_TIME_TEXT = 20 };
CLEAT_API const char *cleat_time_text(int64_t seconds, char text[CLEAT_TIME_TEXT]);

/* --- images --------------------------------------------------------------------------------------------------- */

/* Random changes of training samples; all zero (crop_min 1): none. */
typedef struct cleat_augment {
    double crop_min; /* a random part of so much of the area at least, 0.05 .. 1; its sides' ratio 3/4 .. 4/3 */
    int64_t shift;   /* moved by up to so many pixels of the sample, both ways */
    bool flip, flip_vertical, turn;          /* left-right; up-down; by quarters of a circle */
    double brightness, contrast, saturation; /* factors from [1 - x, 1 + x] */
} cleat_augment;

/* Images with a class, or with a mask. What both have in common. */
typedef struct cleat_image_options {
    int64_t size;     /* S: samples are S x S */
    int64_t channels; /* 1 grey, 3 colour, 0: colour where any training image is */
    cleat_augment augment;
    double val_fraction, test_fraction; /* where the data name no such part: by a hash of the sample's name */
    int64_t cache_bytes;                /* decoded images kept in memory at most */
    const char *classes; /* classes in order, separated by blanks; NULL or "": from the data, sorted by name (IDX and
                          * CIFAR: in the order of their numbers) */
    const char
        *fitted;  /* folder of an earlier cleat_dataset_save: channels, means, deviations, classes are its; NULL or
                          * "": fitted from the training part */
    bool predict; /* for prediction, needs `fitted`: samples without a target are taken too; all are CLEAT_SPLIT_TEST */
} cleat_image_options;

/* size 224, channels 0, no augmentation, val 0.1, test 0, cache 256 MiB. */
CLEAT_API cleat_image_options cleat_image_defaults(void);

enum { CLEAT_NO_CLASS = -1 };

/* Images with a class. Fields, in this order:
 *   image  f32 [L, L, C]  (value - mean) / std of the channel, in the training part
 *   label  i32 []         the class, or CLEAT_NO_CLASS; in an empty slot too
 * cleat_dataset_length is S for every sample. `path` is one of
 *   a folder of IDX files (also .gz), found by their names: train-images*, train-labels*, t10k-images*, t10k-labels* (or test-,
 *     val-); rank 3 (grey) or 4 (channels last)
 *   a folder with CIFAR-10 binary files: data_batch_*.bin and test_batch.bin, class names in batches.meta.txt where it is there
 *   a folder of class folders of PNG and JPEG files, or of train/, val/, test/ folders with the class folders in each
 *   for prediction also a single image, or a folder of images
 * Images are taken as their files have them: a turn that EXIF data ask for is not made (turn such files first).
 * t10k and test_batch are CLEAT_SPLIT_TEST where there is a validation part too or val_fraction > 0, else CLEAT_SPLIT_VAL. A
 * class that validation or test data have and the training part has not is an error that names the folder.
 * Means and (biased) deviations are those of all training pixels in memory (IDX, CIFAR: they stay there as bytes), of files
 * those of at most 2000 training images, spread evenly over the list. An image that is not square is seen as its centred
 * square. Files are checked by their heads when opened; one whose pixels turn out to be broken is an error of
 * cleat_dataset_fill that names it. */
CLEAT_API cleat_status cleat_images_open(const char *path, const cleat_image_options *options, cleat_dataset **dataset,
                                         cleat_error *error);

/* Sizes and counts of images with classes or masks. All 0 for a dataset of another kind. */
typedef struct cleat_image_info {
    int64_t size, channels, classes; /* S, C; classes 2 for masks */
    int64_t samples[CLEAT_SPLITS];
    double positive;                 /* masks: part of the training part's known pixels that are 1 */
    int64_t height, width;           /* maps over time: of a frame, padded to whole patches; else S */
    int64_t file_height, file_width; /* maps over time: of a frame in its file, without the padding; else S */
    int64_t steps;                   /* maps over time: T at most */
} cleat_image_info;
CLEAT_API cleat_image_info cleat_image_describe(const cleat_dataset *dataset);
/* The name of a class, borrowed; NULL behind the last. */
CLEAT_API const char *cleat_images_class(const cleat_dataset *dataset, size_t index);
/* Training samples of a class, those of `fitted` where it tells them; 0 behind the last. */
CLEAT_API int64_t cleat_images_class_samples(const cleat_dataset *dataset, size_t index);

/* Images with a mask. `path` is a folder with images/ and masks/: NAME.png (or .jpg) and masks/NAME.png of the same size,
 * grey, 0 background, anything else 1 (127.5 and more of 255); val.txt, test.txt name samples of those parts, one a line.
 * Fields:
 *   image  f32 [L, L, C]
 *   mask   i32 [L, L]     0, 1, or -1 unknown (outside the image, and in an empty slot)
 * cleat_dataset_length is S for every sample; the id is NAME. The whole image is scaled to S x S, also one that is not square,
 * and the mask with it. A part without its .txt file gets its fraction by a hash of the names. Means, deviations and the share
 * of 1 are those of at most 2000 training images, spread evenly over the list. A mask with greys above 0 but none from 128 on
 * (0 and 1 of 255, say) is an error. For prediction `path` may also be a folder of images, or one image; masks are not looked
 * at then. */
CLEAT_API cleat_status cleat_masks_open(const char *path, const cleat_image_options *options, cleat_dataset **dataset,
                                        cleat_error *error);
/* The size of a sample's image in its file. */
CLEAT_API cleat_status cleat_masks_file_size(const cleat_dataset *dataset, size_t sample, int64_t *height,
                                             int64_t *width, cleat_error *error);

typedef enum cleat_transform { CLEAT_TRANSFORM_NONE, CLEAT_TRANSFORM_LOG1P } cleat_transform;

/* Maps over time: frames of several channels, and a mask to tell from them. */
typedef struct cleat_maps_options {
    const char
        *inputs; /* ESRI grids: what stands before _YYYYMMDD.asc of each channel, separated by blanks; NULL or "":
                          * all there are, by name */
    const char *target; /* ESRI grids: the one whose value above 0 is the target; NULL or "": the first input */
    int64_t lookback;   /* T: frames seen at most */
    int64_t horizon;    /* days from the last frame to the target's day; ESRI grids only */
    int64_t patch;      /* p: frames are cut into patches of p x p; height and width are padded to a multiple of it */
    cleat_transform transform; /* of the inputs, before they are standardised: log1p = sign(v) log(1 + |v|) */
    bool flip, flip_vertical;  /* training: mirrored at random, frames and target alike */
    bool skip_missing;         /* a day without a file: left out (T is shorter), else an error */
    double val_fraction,
        test_fraction; /* ESRI grids: of the days, at their end; NPY: by a hash of the name, where no val.txt or
                                         * test.txt names them */
    int64_t val_days, test_days; /* ESRI grids: any above 0: so many days instead of the fractions */
    const char *fitted;
    bool predict; /* also days whose target is not known yet; all are CLEAT_SPLIT_TEST */
} cleat_maps_options;

/* lookback 6, horizon 1, patch 4, log1p, no flips, val 0.2, test 0. */
CLEAT_API cleat_maps_options cleat_maps_defaults(void);

/* N = (H/p)(W/p) patches in reading order. Fields:
 *   frames   f32 [N, L, p p C]  each patch's pixels (row, column, channel) of each frame, standardised; 0 where unknown
 *   lengths  i32 [N]            frames of this sample, the same for every patch; 0 in an empty slot
 *   mask     i32 [H, W]         0, 1, or -1 unknown
 * cleat_dataset_length is the sample's frames, at most T. `path` is a folder of
 *   ESRI ASCII grids NAME_YYYYMMDD.asc: a sample is a day whose target is horizon days later; its id is
 *     the target's day, 2019-09-08, and its split that in which this day lies. A cell that is NODATA in a frame is
 *     0 after standardising, in the target unknown. Headers (size, corner, cell size) must agree.
 *   NPY stacks: NAME.npy [T, C, H, W] with NAME_mask.npy [H, W] (f4, f8, u1, i1, i2, i4, b1; C order; NaN is unknown,
 *     in a mask -1 too, and anything above 0 is 1); the last T frames are seen. Stacks of one size; a mask for each, but for
 *     prediction. The id is NAME
 * Memory: 4 bytes a cell and channel of all frames, 1 a cell of all targets; stacks of more than 1 GiB in all are read again for
 * each sample. A sample without a known pixel in its target is left out. CLEAT_ERR_FORMAT with the file (of grids
 * file:line:column), cause and mend for malformed input. `options` NULL: the defaults. */
CLEAT_API cleat_status cleat_maps_open(const char *path, const cleat_maps_options *options, cleat_dataset **dataset,
                                       cleat_error *error);

/* The persistence forecast of a sample: what the target was on the day of its last frame. mask [height, width] of the padded
 * frames: 0, 1, or -1 unknown. CLEAT_ERR_NOT_SUPPORTED for NPY stacks, whose frames have no target, and for a dataset of
 * another kind. */
CLEAT_API cleat_status cleat_maps_persistence(const cleat_dataset *dataset, size_t sample, int32_t *mask,
                                              cleat_error *error);

/* Writes [rows, columns] f32 as NPY (version 1.0, '<f4', C order), atomically. */
CLEAT_API cleat_status cleat_npy_write(const char *path, const float *values, int64_t rows, int64_t columns,
                                       cleat_error *error);
/* Writes bytes as a grey PNG [H, W], atomically. */
CLEAT_API cleat_status cleat_png_write(const char *path, const uint8_t *pixels, int64_t height, int64_t width,
                                       cleat_error *error);

/* --- texts and tagged words ----------------------------------------------------------------------------------- */

/* Fields of a dataset of texts, in this order:
 *   tokens   i32 [L]  ids of the tokenizer's pieces, [CLS] ... [SEP]; padded with -1, which is no id: cleat_embedding
 *                     turns it into a row of zeros
 *   lengths  i32 []   tokens in this sample; 0 in an empty slot
 * and of classes:
 *   label    i32 []   the class, or CLEAT_TEXT_NO_LABEL
 * or of tags:
 *   labels   i32 [L]  the tag at the first sub-word of each word, CLEAT_TEXT_NO_LABEL everywhere else
 * cleat_dataset_length is the tokens, at most max_length; cleat_dataset_items of tags the words that have a tag. Of a
 * longer text the first max_length - 1 tokens are kept, and [SEP].
 *
 * Tags are O = 0, and for the entity type number t (from 0) B-type = 1 + 2 t and I-type = 2 + 2 t. Words are encoded one by
 * one; a word that has no piece (only control characters) is [UNK], so that every word has a first sub-word. */
typedef enum cleat_text_task { CLEAT_TEXT_CLASSES, CLEAT_TEXT_TAGS } cleat_text_task;
enum { CLEAT_TEXT_NO_LABEL = -1, CLEAT_TEXT_MAX_LABELS = 4096 };

/* What is done about a text without anything but blanks. */
typedef enum cleat_text_empty {
    CLEAT_TEXT_EMPTY_ERROR, /* refused */
    CLEAT_TEXT_EMPTY_SKIP,  /* left out and counted */
    CLEAT_TEXT_EMPTY_KEEP   /* [CLS] [SEP] */
} cleat_text_empty;

/* A text that is NULL is as good as "". */
typedef struct cleat_text_options {
    cleat_text_task task;
    const char *text_column, *label_column; /* of tables */
    const char *id_column; /* of tables; "": a row's number, of several files behind the part's name (val-3) */
    const char *train_file, *val_file, *test_file; /* names in the folder; "": found by name, see cleat_text_open */
    const char *vocabulary;                        /* a vocab.txt, or "": made from the texts of the training part */
    int64_t vocabulary_size;                       /* pieces of one that is made */
    int64_t max_length;                            /* tokens of a sample, at least 3 */
    bool lowercase;
    const char *labels; /* in order, between blanks: classes, or entity types; "": the training part's, sorted */
    double val_fraction, test_fraction; /* shares of the texts in a file whose folder (or that itself) names no file of
                                         * this part; a hash chooses, so equal texts are in one part */
    uint64_t split_seed;
    double word_dropout; /* training: chance of each token to be [UNK] (Iyyer et al., "Deep unordered composition rivals
                          * syntactic methods for text classification", ACL 2015, drop them) */
    bool labelled;       /* false: for prediction; classes and tags of the files are not looked at */
    cleat_text_empty empty;
    bool replace_invalid; /* bytes that are not UTF-8 become U+FFFD; false: they are refused */
    bool repair_tags;     /* I-x that goes on with nothing becomes B-x; false: it is refused */
    const char *fitted;   /* folder with the vocab.txt and labels.txt of cleat_text_save, which then take the place of
                           * `vocabulary` and `labels`; "": fitted from the training part */
    int workers;          /* threads that encode; 0: the calling one */
    const char *cpus;     /* where they may run, a list ("0-7"); "" or "any": all allowed */
    bool cache;           /* encoded texts are kept in the cache folder for the next time */
} cleat_text_options;

/* Classes; columns "text" and "label"; vocabulary_size 8000, max_length 128, lowercase, val_fraction 0.1, labelled; empty
 * texts, bytes that are not UTF-8 and tags out of order are refused; workers 0, no cache. */
CLEAT_API cleat_text_options cleat_text_defaults(void);

/* Reads texts from `path`:
 * - classes: a table with a header, .csv (RFC 4180) or .tsv (fields between tabs, no quotes), columns found by name;
 * - tags: CoNLL, a word and its tag a line, an empty line (or one of blanks) after each sentence. Columns are separated
 *   by tabs, or in a line without a tab by blanks: the first is the word, the last the tag. Lines of -DOCSTART- are
 *   skipped. An id is the number of a sentence in its file, from 1;
 * - or a folder with a file for each part. Those without a name in the options are found: train.csv|tsv, val|valid|
 *   validation|dev.csv|tsv, test.csv|tsv; of tags the file whose name contains train, dev or val, test. A test table
 *   found so that has no column for the label is left out.
 * Malformed input is CLEAT_ERR_FORMAT with file:line, cause and remedy; so is a label the training part does not have. What
 * is repaired, cut or left out is counted and logged. */
CLEAT_API cleat_status cleat_text_open(const char *path, const cleat_text_options *options, cleat_dataset **dataset,
                                       cleat_error *error);
/* Writes vocab.txt, labels.txt (a label a line, in order) and label_samples.txt (their samples in the training part) into
 * `folder`, which is there. */
CLEAT_API cleat_status cleat_text_save(const cleat_dataset *dataset, const char *folder, cleat_error *error);

/* What follows is 0, NULL or CLEAT_TEXT_NO_LABEL for a dataset of another kind; texts are borrowed. */

CLEAT_API const cleat_tokenizer *cleat_text_tokenizer(const cleat_dataset *dataset);
/* Classes, or tags: O, B-x, I-x, ... */
CLEAT_API size_t cleat_text_labels_count(const cleat_dataset *dataset);
CLEAT_API const char *cleat_text_label_name(const cleat_dataset *dataset, size_t label);
/* Samples (of tags: words) of the training part with this label, those of `fitted` where it tells them. */
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

/* What a reader found, for the lines a run prints at its start. */
typedef struct cleat_text_summary {
    size_t samples[CLEAT_SPLITS];
    size_t words;     /* of tags */
    size_t tokens;    /* [CLS] and [SEP] included */
    size_t unknown;   /* [UNK] among them */
    size_t cut;       /* samples longer than max_length */
    size_t cut_words; /* words they lose, of tags */
    size_t skipped;   /* empty texts left out */
    size_t replaced;  /* bytes that were not UTF-8 */
    size_t repaired;  /* tags */
} cleat_text_summary;
CLEAT_API cleat_text_summary cleat_text_summarise(const cleat_dataset *dataset);

#ifdef __cplusplus
}
#endif
#endif

/* The RNA dataset: finds the files, reads them into a set, selects the usable chains, and fills samples. */
#include "data/dataset.h"
#include "data/common/faults.h"
#include "data/rna/set.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/philox.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct rna_chain {
    char *id;
    int64_t first, length; /* residues [first, first + length) of the arrays below */
    cleat_split split;
} rna_chain;

typedef struct rna_dataset {
    cleat_dataset base; /* first, so that a cleat_dataset * can be cast to this type */
    rna_chain *chains;  /* [base.count] */
    char *letters;      /* of all chains, with a zero byte after each */
    float *coords;      /* [residues, 3] */
    float *mask;        /* [residues] */
    int32_t *partners;  /* [residues], index within the chain */
    int64_t max_length;
    int32_t first_token;
    double mutation, crop; /* probabilities that a training sample is mutated or cropped */
    cleat_rna_summary summary;
} rna_dataset;

enum { TOKENS, LENGTHS, COORDS, MASK, PARTNER, MARKED, END };

static const cleat_field fields[] = {
    [TOKENS] = {.name = "tokens", .dtype = CLEAT_I32, .rank = 1, .shape = {-1}, .pad = CLEAT_RNA_PADDING},
    [LENGTHS] = {.name = "lengths", .dtype = CLEAT_I32, .rank = 0, .pad = 0},
    [COORDS] = {.name = "coords", .dtype = CLEAT_F32, .rank = 2, .shape = {-1, 3}, .pad = 0},
    [MASK] = {.name = "mask", .dtype = CLEAT_F32, .rank = 1, .shape = {-1}, .pad = 0},
    [PARTNER] = {.name = "partner", .dtype = CLEAT_I32, .rank = 1, .shape = {-1}, .pad = -1},
    [MARKED] = {.name = "marked_lengths", .dtype = CLEAT_I32, .rank = 0, .pad = 0},
    [END] = {.name = "end", .dtype = CLEAT_I32, .rank = 0, .pad = 0},
};

static const uint64_t CROP_SEED = 0x63726F70u; /* "crop", "vary": separate families of random streams */
static const uint64_t MUTATE_SEED = 0x76617279u;
enum { SHORTEST_CROP = 16 };

static const rna_chain *chain_of(const cleat_dataset *dataset, size_t sample) {
    return &((const rna_dataset *)dataset)->chains[sample];
}

static const char *rna_id(const cleat_dataset *dataset, size_t sample) {
    return chain_of(dataset, sample)->id;
}

static int64_t rna_length(const cleat_dataset *dataset, size_t sample) {
    int64_t length = chain_of(dataset, sample)->length, most = ((const rna_dataset *)dataset)->max_length;
    return length < most ? length : most;
}

static cleat_sample_state rna_state(const cleat_dataset *dataset, size_t sample) {
    return chain_of(dataset, sample)->length > rna_length(dataset, sample) ? CLEAT_SAMPLE_CUT : CLEAT_SAMPLE_WHOLE;
}

static cleat_split rna_split(const cleat_dataset *dataset, size_t sample) {
    return chain_of(dataset, sample)->split;
}

typedef struct crop_range {
    int64_t start, length;
} crop_range;

/* The part of a chain that is used: as much as fits max_length, or in training sometimes a shorter crop. */
static crop_range crop_of(const rna_dataset *rna, const rna_chain *chain, size_t sample, const cleat_rng_key *rng_key) {
    crop_range w = {.start = 0, .length = rna_length(&rna->base, sample)};
    if (!rng_key) return w;
    cleat_random random = cleat_random_stream(rng_key->seed ^ CROP_SEED, rng_key->epoch, (uint32_t)sample);
    if (w.length > SHORTEST_CROP && cleat_random_uniform(&random) < rna->crop)
        w.length = SHORTEST_CROP + cleat_random_below(&random, (uint32_t)(w.length - SHORTEST_CROP + 1));
    if (chain->length > w.length) w.start = cleat_random_below(&random, (uint32_t)(chain->length - w.length + 1));
    return w;
}

static void mutate(const rna_dataset *rna, size_t sample, const cleat_rng_key *rng_key, const int32_t *partner,
                   int64_t n, int32_t *tokens) {
    if (!rng_key || rna->mutation <= 0) return;
    cleat_random random = cleat_random_stream(rng_key->seed ^ MUTATE_SEED, rng_key->epoch, (uint32_t)sample);
    if (cleat_random_uniform(&random) < rna->mutation) cleat_rna_mutate(&random, partner, n, tokens);
}

static cleat_status rna_fill(const cleat_dataset *dataset, size_t sample, int64_t length, const cleat_rng_key *rng_key,
                             void *const *slots, cleat_error *error) {
    (void)length;
    (void)error;
    const rna_dataset *rna = (const rna_dataset *)dataset;
    const rna_chain *chain = chain_of(dataset, sample);
    crop_range w = crop_of(rna, chain, sample, rng_key);
    int64_t n = w.length, start = w.start, first = chain->first + start;
    int32_t *tokens = slots[TOKENS], *lengths = slots[LENGTHS], *partner = slots[PARTNER];
    const char *letters = cleat_rna_sequence(dataset, sample) + start;
    if (lengths) *lengths = (int32_t)n;
    if (rna->first_token && slots[MARKED]) *(int32_t *)slots[MARKED] = (int32_t)n + 2;
    if (rna->first_token && slots[END]) *(int32_t *)slots[END] = (int32_t)n + 3;
    for (int64_t i = 0; tokens && i < n; ++i) tokens[i] = cleat_rna_token(letters[i]);
    if (slots[COORDS]) memcpy(slots[COORDS], rna->coords + 3 * first, (size_t)n * 3 * sizeof(float));
    if (slots[MASK]) memcpy(slots[MASK], rna->mask + first, (size_t)n * sizeof(float));
    for (int64_t i = 0; partner && i < n; ++i) {
        int64_t j = rna->partners[first + i] - start;
        partner[i] = rna->partners[first + i] >= 0 && j >= 0 && j < n ? (int32_t)j : -1;
    }
    if (tokens && partner) mutate(rna, sample, rng_key, partner, n, tokens);
    for (int64_t i = 0; tokens && i < n; ++i) tokens[i] += rna->first_token;
    return CLEAT_OK;
}

static void rna_destroy(cleat_dataset *dataset) {
    rna_dataset *rna = (rna_dataset *)dataset;
    for (size_t i = 0; rna->chains && i < dataset->count; ++i) cleat_free(rna->chains[i].id);
    cleat_free(rna->chains);
    cleat_free(rna->letters);
    cleat_free(rna->coords);
    cleat_free(rna->mask);
    cleat_free(rna->partners);
    cleat_free(rna);
}

#define CLASS(FIELDS)                                                                                                  \
    {                                                                                                                  \
        .name = "rna", .fields = fields, .n_fields = FIELDS, .id = rna_id, .length = rna_length, .split = rna_split,   \
        .state = rna_state, .fill = rna_fill, .destroy = rna_destroy                                                   \
    }
static const cleat_dataset_class rna_class = CLASS(MARKED), marked_class = CLASS(END + 1);

/* --- from the set to the dataset ------------------------------------------------------------------------------ */

/* Place by a hash of the entry's name, the same for all chains of a structure. */
static double hashed_place(const char *id, const cleat_rna_options *options) {
    char key[600];
    const char *underscore = strrchr(id, '_');
    int stem = (int)(underscore && underscore != id ? (size_t)(underscore - id) : strlen(id));
    snprintf(key, sizeof key, "%llu/%.*s", (unsigned long long)options->split_seed, stem, id);
    return cleat_hashed_place(key, strlen(key));
}

/* Assigns splits to the chains whose file names none. */
static cleat_status assign_splits(rna_dataset *rna, const cleat_rna_set *set, const cleat_rna_options *options,
                                  cleat_error *error) {
    const size_t count = rna->base.count;
    double *places = cleat_alloc(count, sizeof *places);
    cleat_split *splits = cleat_alloc(count, sizeof *splits);
    const bool there = places && splits;
    cleat_status status =
        there ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the splits of %zu chains", count);
    for (size_t i = 0; i < count && options->fold.count; ++i) /* generated chains are in no evaluation */
        if (rna->chains[i].split != CLEAT_SPLIT_TEST && strncmp(rna->chains[i].id, "generated-", 10) != 0)
            rna->chains[i].split = CLEAT_SPLITS;
    for (size_t i = 0; i < count && there; ++i)
        places[i] = rna->chains[i].split == CLEAT_SPLITS ? hashed_place(rna->chains[i].id, options) : INFINITY;
    if (there)
        cleat_hashed_splits(places, count, set->has_val || options->fold.count ? 0 : options->val_fraction,
                            set->has_test ? 0 : options->test_fraction, splits);
    if (there) status = cleat_hashed_fold(places, NULL, count, &options->fold, splits, error);
    for (size_t i = 0; i < count && !status; ++i)
        if (rna->chains[i].split == CLEAT_SPLITS) rna->chains[i].split = splits[i];
    cleat_free(places);
    cleat_free(splits);
    return status;
}

/* Whether the chain is used; counts the rejected ones. */
static bool use_chain(const cleat_rna_set *set, const cleat_rna_entry *entry, const cleat_rna_options *options,
                      cleat_rna_summary *summary) {
    size_t known = 0;
    for (size_t i = 0; i < entry->length; ++i) known += set->residues[entry->first + i].known;
    if (options->structures && !known) {
        ++summary->skipped;
        return false;
    }
    if ((int64_t)entry->length < options->min_length) {
        ++summary->shorter;
        return false;
    }
    return true;
}

static cleat_status copy_chain(rna_dataset *rna, const cleat_rna_set *set, const cleat_rna_entry *entry,
                               const cleat_rna_options *options, cleat_error *error) {
    rna_chain *chain = &rna->chains[rna->base.count];
    cleat_rna_summary *summary = &rna->summary;
    chain->id = cleat_strdup(entry->id);
    if (!chain->id) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the id %s", entry->id);
    chain->first = (int64_t)summary->residues;
    chain->length = (int64_t)entry->length;
    chain->split = entry->split;
    char *letters = rna->letters + summary->residues + summary->chains;
    float *coords = rna->coords + 3 * summary->residues, *mask = rna->mask + summary->residues;
    int32_t *partners = rna->partners + summary->residues;
    for (size_t i = 0; i < entry->length; ++i) {
        const cleat_rna_residue *residue = &set->residues[entry->first + i];
        letters[i] = residue->letter;
        mask[i] = residue->known ? 1.0f : 0.0f;
        memcpy(coords + 3 * i, residue->xyz, sizeof residue->xyz);
        summary->missing += !residue->known;
        summary->unknown += residue->letter == 'N';
    }
    ++rna->base.count;
    ++summary->chains;
    summary->residues += entry->length;
    summary->longer += chain->length > options->max_length;
    cleat_status status = cleat_rna_find_pairs(letters, coords, mask, chain->length, partners, error);
    for (size_t i = 0; i < entry->length && !status; ++i) summary->paired += partners[i] >= 0;
    return status;
}

static void log_longer(const char *path, const cleat_rna_options *options, const rna_dataset *rna) {
    const long long most = options->max_length;
    int64_t longest = 0;
    for (size_t i = 0; i < rna->base.count; ++i)
        if (rna->chains[i].length > longest) longest = rna->chains[i].length;
    if (longest <= most) return;
    if (options->structures)
        cleat_log(CLEAT_LOG_WARNING,
                  "%s: %zu chains are longer than %lld: training uses random crops, evaluation their first %lld "
                  "residues",
                  path, rna->summary.longer, most, most);
    else
        cleat_log(CLEAT_LOG_WARNING,
                  "%s: %zu chains are longer than %lld, the longest has %lld residues: only their first %lld residues "
                  "are predicted; --set data.max_length=%lld would predict all of them",
                  path, rna->summary.longer, most, (long long)longest, most, (long long)longest);
}

static void log_summary(const char *path, const cleat_rna_options *options, const cleat_rna_summary *s) {
    cleat_log(CLEAT_LOG_INFO, "%s: %zu chains, %zu residues (%zu without coordinates, %zu unknown bases, %zu paired)",
              path, s->chains, s->residues, s->missing, s->unknown, s->paired);
    if (s->skipped) cleat_log(CLEAT_LOG_WARNING, "%s: %zu chains without coordinates are skipped", path, s->skipped);
    if (s->shorter)
        cleat_log(CLEAT_LOG_WARNING, "%s: %zu chains are shorter than %lld and are skipped", path, s->shorter,
                  (long long)options->min_length);
}

static cleat_status make_dataset(const char *path, const cleat_rna_set *set, const cleat_rna_options *options,
                                 cleat_dataset **dataset, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    rna_dataset *rna = cleat_alloc(1, sizeof *rna);
    if (!rna) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for the dataset", path);
    rna->base.type = options->first_token ? &marked_class : &rna_class;
    rna->max_length = options->max_length;
    rna->first_token = options->first_token;
    rna->mutation = options->mutation;
    rna->crop = options->crop;
    rna->summary = set->summary;
    rna->chains = cleat_alloc(set->count, sizeof *rna->chains);
    rna->letters = cleat_alloc(set->residue_count + set->count, 1);
    rna->coords = cleat_alloc(set->residue_count, 3 * sizeof *rna->coords);
    rna->mask = cleat_alloc(set->residue_count, sizeof *rna->mask);
    rna->partners = cleat_alloc(set->residue_count, sizeof *rna->partners);
    if (!rna->chains || !rna->letters || !rna->coords || !rna->mask || !rna->partners)
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for %zu residues", path, set->residue_count);
    for (size_t i = 0; i < set->count && !status; ++i)
        if (use_chain(set, &set->chains[i], options, &rna->summary))
            status = copy_chain(rna, set, &set->chains[i], options, error);
    if (!status && !rna->base.count)
        status = cleat_fail(error, CLEAT_ERR_FORMAT,
                            "%s: no chain can be used: %zu have no coordinates, %zu are shorter than %lld", path,
                            rna->summary.skipped, rna->summary.shorter, (long long)options->min_length);
    if (!status) status = assign_splits(rna, set, options, error);
    if (status) {
        rna_destroy(&rna->base);
        return status;
    }
    log_summary(path, options, &rna->summary);
    log_longer(path, options, rna);
    *dataset = &rna->base;
    return CLEAT_OK;
}

/* --- finding the files ---------------------------------------------------------------------------------------- */

static bool is_pdb(const char *name) {
    return cleat_ends_in(name, ".pdb .ent");
}

static cleat_status read_pdb_folder(const char *folder, cleat_rna_set *set, cleat_error *error) {
    cleat_name_list listing = {0};
    char path[4096];
    cleat_status status = cleat_listing_read(folder, is_pdb, &listing, error);
    if (!status && !listing.count)
        status = cleat_fail(error, CLEAT_ERR_NOT_FOUND,
                            "%s: the folder contains neither sequences.csv (with labels.csv) nor a *.pdb file", folder);
    size_t without_rna = 0;
    cleat_faults faults = {0};
    cleat_error why;
    for (size_t i = 0; i < listing.count && !status; ++i) {
        size_t before = set->count;
        status = cleat_path_join(folder, listing.names[i], path, sizeof path, error);
        if (!status && cleat_rna_read_pdb(path, set, &why) != CLEAT_OK) status = cleat_faults_add(&faults, &why, error);
        without_rna += set->count == before;
    }
    if (!status) status = cleat_faults_report(&faults, error);
    if (!status && without_rna)
        cleat_log(CLEAT_LOG_WARNING, "%s: %zu of %zu files contain no RNA chain", folder, without_rna, listing.count);
    cleat_name_list_free(&listing);
    return status;
}

/* Reads PART_sequences.csv and PART_labels.csv, which Kaggle has beside the training files, as a split. */
static cleat_status read_part(const char *folder, const char *part, cleat_split split, cleat_rna_set *set, bool *has,
                              cleat_error *error) {
    char name[64], sequences[4096], labels[4096];
    const size_t before = set->count;
    snprintf(name, sizeof name, "%s_sequences.csv", part);
    cleat_status status = cleat_path_join(folder, name, sequences, sizeof sequences, error);
    snprintf(name, sizeof name, "%s_labels.csv", part);
    if (!status) status = cleat_path_join(folder, name, labels, sizeof labels, error);
    if (status || !cleat_file_exists(sequences)) return status;
    if (!cleat_file_exists(labels)) {
        cleat_log(CLEAT_LOG_INFO, "%s: not used, because %s is missing", sequences, name);
        return CLEAT_OK;
    }
    status = cleat_rna_read_sequences(sequences, set, error);
    if (!status) status = cleat_rna_read_labels(labels, set, error);
    for (size_t i = before; i < set->count && !status; ++i) set->chains[i].split = split;
    if (!status) cleat_log(CLEAT_LOG_INFO, "using %s as the %s file", sequences, cleat_split_name(split));
    *has = true;
    return status;
}

static cleat_status read_folder(const char *folder, const cleat_rna_options *options, cleat_rna_set *set,
                                cleat_error *error) {
    static const char *const names[][2] = {{"sequences.csv", "labels.csv"},
                                           /* as distributed by Kaggle */
                                           {"train_sequences.csv", "train_labels.csv"}};
    char sequences[4096], labels[4096];
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; ++i) {
        cleat_status status = cleat_path_join(folder, names[i][0], sequences, sizeof sequences, error);
        if (!status) status = cleat_path_join(folder, names[i][1], labels, sizeof labels, error);
        if (status) return status;
        found = cleat_file_exists(sequences);
    }
    if (!found) return read_pdb_folder(folder, set, error);
    cleat_status status = cleat_rna_read_sequences(sequences, set, error);
    if (status) return status;
    if (!cleat_file_exists(labels) && options->structures)
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND,
                          "%s: missing file; training and evaluation require its coordinates", labels);
    if (cleat_file_exists(labels)) status = cleat_rna_read_labels(labels, set, error);
    if (!status && options->structures)
        status = read_part(folder, "validation", CLEAT_SPLIT_VAL, set, &set->has_val, error);
    if (!status && options->structures)
        status = read_part(folder, "test", CLEAT_SPLIT_TEST, set, &set->has_test, error);
    return status;
}

static cleat_status read_any(const char *path, const cleat_rna_options *options, cleat_rna_set *set,
                             cleat_error *error) {
    if (cleat_folder_exists(path)) return read_folder(path, options, set, error);
    if (!cleat_file_exists(path))
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "%s: no such file or folder (data.path)", path);
    if (is_pdb(path)) {
        cleat_status status = cleat_rna_read_pdb(path, set, error);
        if (!status && !set->count) status = cleat_fail(error, CLEAT_ERR_FORMAT, "%s: no RNA chain in this file", path);
        return status;
    }
    const bool fasta = cleat_ends_in(path, ".fasta .fa .fna .txt");
    if (!fasta && !cleat_ends_in(path, ".csv"))
        return cleat_fail(
            error, CLEAT_ERR_NOT_SUPPORTED,
            "%s: unsupported RNA data; use a folder, .pdb, .ent, .fasta, .fa, .fna, .txt (FASTA) or .csv (sequences); "
            "mmCIF: gemmi convert OLD.cif NEW.pdb",
            path);
    if (options->structures)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                          "%s: contains sequences without coordinates, which are only usable for prediction; training "
                          "and evaluation require a folder with sequences.csv and labels.csv, or PDB files",
                          path);
    return fasta ? cleat_rna_read_fasta(path, set, error) : cleat_rna_read_sequences(path, set, error);
}

static cleat_status check_options(const cleat_rna_options *options, cleat_error *error) {
    double val = options->val_fraction, test = options->test_fraction;
    if (options->min_length < 1 || options->max_length < options->min_length || options->max_length > INT32_MAX)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "invalid range of chain lengths: %lld to %lld",
                          (long long)options->min_length, (long long)options->max_length);
    if (!(val >= 0 && test >= 0 && val + test <= 1))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "val_fraction %g and test_fraction %g, and their sum, must be in 0..1", val, test);
    if (!(options->mutation >= 0 && options->mutation <= 1 && options->crop >= 0 && options->crop <= 1))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "mutation %g and crop %g must be in 0..1", options->mutation,
                          options->crop);
    return CLEAT_OK;
}

cleat_rna_options cleat_rna_defaults(void) {
    return (cleat_rna_options){.min_length = 1, .max_length = 1200, .val_fraction = 0.1, .structures = true};
}

cleat_status cleat_rna_open(const char *path, const cleat_rna_options *options, cleat_dataset **dataset,
                            cleat_error *error) {
    cleat_rna_options chosen = options ? *options : cleat_rna_defaults();
    cleat_rna_set set = {0};
    cleat_status status = check_options(&chosen, error);
    if (!status) status = read_any(path, &chosen, &set, error);
    if (!status) status = cleat_rna_set_generate(&set, (size_t)chosen.generated, error);
    if (!status) status = make_dataset(path, &set, &chosen, dataset, error);
    cleat_rna_set_free(&set);
    return status;
}

static const rna_dataset *as_rna(const cleat_dataset *dataset, size_t sample) {
    return dataset->type->fill == rna_fill && sample < dataset->count ? (const rna_dataset *)dataset : NULL;
}

const char *cleat_rna_sequence(const cleat_dataset *dataset, size_t sample) {
    const rna_dataset *rna = as_rna(dataset, sample);
    /* preceded by `sample` zero bytes */
    return rna ? rna->letters + rna->chains[sample].first + sample : NULL;
}

int64_t cleat_rna_chain_length(const cleat_dataset *dataset, size_t sample) {
    const rna_dataset *rna = as_rna(dataset, sample);
    return rna ? rna->chains[sample].length : 0;
}

const float *cleat_rna_coords(const cleat_dataset *dataset, size_t sample) {
    const rna_dataset *rna = as_rna(dataset, sample);
    return rna ? rna->coords + 3 * rna->chains[sample].first : NULL;
}

const float *cleat_rna_mask(const cleat_dataset *dataset, size_t sample) {
    const rna_dataset *rna = as_rna(dataset, sample);
    return rna ? rna->mask + rna->chains[sample].first : NULL;
}

const int32_t *cleat_rna_partners(const cleat_dataset *dataset, size_t sample) {
    const rna_dataset *rna = as_rna(dataset, sample);
    return rna ? rna->partners + rna->chains[sample].first : NULL;
}

cleat_rna_summary cleat_rna_summarise(const cleat_dataset *dataset) {
    return dataset->type->fill == rna_fill ? ((const rna_dataset *)dataset)->summary : (cleat_rna_summary){0};
}

/* Generates ideal RNA molecules, hairpins and duplexes, in the layout of sequences.csv and labels.csv.
 *
 * Each molecule has a separate random stream (seed, index), so that the same options give the same bytes. */
#include "data/rna/helix.h"
#include "data/rna/set.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/philox.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_STEM = 64, MAX_LOOP = 8, MAX_RESIDUES = 2 * MAX_STEM + MAX_LOOP, MAX_TRIES = 1000, ID_BYTES = 32 };

static const uint64_t MAKE_SEED = 0x6D616B65u, SPLIT_SEED = 0x73706C69u; /* "make", "spli" */
/* "join": molecules that are added to a set */
static const uint64_t JOIN_SEED = 0x6A6F696Eu;

typedef struct molecule {
    int chains; /* 1: hairpin, 2: duplex */
    int length[2];
    char sequence[2][MAX_RESIDUES + 1];
    float coords[2][3 * MAX_RESIDUES];
    char id[2][ID_BYTES];
} molecule;

static bool can_pair(char a, char b) {
    const char *partners = a == 'A' ? "U" : a == 'C' ? "G" : a == 'G' ? "CU" : "AG";
    return strchr(partners, b) != NULL;
}

/* Draws a base pair: G-C with probability gc; one in eight of the others is G-U (about the fraction of
 * wobbles among the pairs of ribosomal RNA that are not G-C), else A-U. */
static void draw_pair(cleat_random *random, double gc, char *first, char *second) {
    double kind = cleat_random_uniform(random);
    const char *pair = kind < gc ? "GC" : kind < gc + (1 - gc) / 8 ? "GU" : "AU";
    bool swapped = cleat_random_below(random, 2);
    *first = pair[swapped];
    *second = pair[!swapped];
}

/* Draws a loop residue; unpaired residues of natural RNA are rich in A. */
static char draw_loop_base(cleat_random *random) {
    double kind = cleat_random_uniform(random);
    return kind < 0.40 ? 'A' : kind < 0.65 ? 'U' : kind < 0.85 ? 'G' : 'C';
}

static int draw_between(cleat_random *random, int low, int high) {
    return low + (int)cleat_random_below(random, (uint32_t)(high - low + 1));
}

static void set_atom(float *coords, int i, const double xyz[3]) {
    for (int axis = 0; axis < 3; ++axis) coords[3 * i + axis] = (float)xyz[axis];
}

/* Applies a random rotation (uniform over unit quaternions) and translation, because the coordinate frame of
 * a molecule carries no information. */
static void place(molecule *m, cleat_random *random) {
    double q[4], norm = 0, shift[3];
    for (int i = 0; i < 4; ++i) {
        q[i] = cleat_random_normal(random);
        norm += q[i] * q[i];
    }
    norm = sqrt(norm);
    for (int i = 0; i < 4; ++i) q[i] /= norm;
    for (int i = 0; i < 3; ++i) shift[i] = 100 * cleat_random_uniform(random) - 50;
    double w = q[0], x = q[1], y = q[2], z = q[3];
    const double rotation[3][3] = {
        {1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
        {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
        {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)},
    };
    for (int c = 0; c < m->chains; ++c)
        for (int i = 0; i < m->length[c]; ++i) {
            float *atom = &m->coords[c][3 * i];
            double moved[3];
            for (int r = 0; r < 3; ++r)
                moved[r] = rotation[r][0] * (double)atom[0] + rotation[r][1] * (double)atom[1] +
                           rotation[r][2] * (double)atom[2] + shift[r];
            set_atom(m->coords[c], i, moved);
        }
}

static void make_hairpin(molecule *m, cleat_random *random, const cleat_rna_make *options) {
    int stem = draw_between(random, options->stem_min, options->stem_max);
    int loop = draw_between(random, options->loop_min, options->loop_max), length = 2 * stem + loop;
    char *sequence = m->sequence[0];
    double xyz[3], loop_xyz[3 * MAX_LOOP];
    m->chains = 1;
    m->length[0] = length;
    for (int k = 0; k < stem; ++k) {
        draw_pair(random, options->gc, &sequence[k], &sequence[length - 1 - k]);
        cleat_rna_helix_atom(k, false, xyz);
        set_atom(m->coords[0], k, xyz);
        cleat_rna_helix_atom(k, true, xyz);
        set_atom(m->coords[0], length - 1 - k, xyz);
    }
    cleat_rna_loop(stem - 1, loop, loop_xyz);
    for (int r = 0; r < loop; ++r) {
        sequence[stem + r] = draw_loop_base(random);
        set_atom(m->coords[0], stem + r, loop_xyz + 3 * r);
    }
    /* The ends of the loop must not pair; otherwise the sequence would not determine where the stem ends. */
    while (can_pair(sequence[stem], sequence[stem + loop - 1])) sequence[stem + loop - 1] = draw_loop_base(random);
    sequence[length] = 0;
}

static void make_duplex(molecule *m, cleat_random *random, const cleat_rna_make *options) {
    int pairs = draw_between(random, options->stem_min, options->stem_max);
    double xyz[3];
    m->chains = 2;
    m->length[0] = m->length[1] = pairs;
    for (int k = 0; k < pairs; ++k) {
        draw_pair(random, options->gc, &m->sequence[0][k], &m->sequence[1][pairs - 1 - k]);
        cleat_rna_helix_atom(k, false, xyz);
        set_atom(m->coords[0], k, xyz);
        cleat_rna_helix_atom(k, true, xyz);
        set_atom(m->coords[1], pairs - 1 - k, xyz);
    }
    m->sequence[0][pairs] = m->sequence[1][pairs] = 0;
}

static void make_molecule(molecule *m, size_t index, uint32_t attempt, const cleat_rna_make *options) {
    cleat_random random = cleat_random_stream(options->seed ^ MAKE_SEED, (uint32_t)index, attempt);
    /* The kind depends on the index alone, so that redrawing a duplicate sequence does not favour one of the
     * kinds. */
    double part = (double)(index + 1) * options->duplex_fraction, before = (double)index * options->duplex_fraction;
    if (floor(part) > floor(before)) {
        make_duplex(m, &random, options);
        for (int c = 0; c < 2; ++c) snprintf(m->id[c], ID_BYTES, "DUP%05zu_%c", index + 1, 'A' + c);
    } else {
        make_hairpin(m, &random, options);
        snprintf(m->id[0], ID_BYTES, "HPN%05zu_A", index + 1);
    }
    place(m, &random);
}

/* Draws molecule `index` until none of its sequences is in the set, so that no sequence occurs in two
 * splits. */
static cleat_status draw_distinct(molecule *m, size_t index, const cleat_rna_make *options, cleat_name_table *sequences,
                                  cleat_error *error) {
    for (uint32_t attempt = 0; attempt < MAX_TRIES; ++attempt) {
        uint32_t earlier;
        make_molecule(m, index, attempt, options);
        bool repeated = m->chains == 2 && strcmp(m->sequence[0], m->sequence[1]) == 0;
        for (int c = 0; c < m->chains; ++c) repeated |= cleat_name_table_find(sequences, m->sequence[c], &earlier);
        if (repeated) continue;
        cleat_status status = CLEAT_OK;
        for (int c = 0; c < m->chains && !status; ++c)
            status = cleat_name_table_add(sequences, m->sequence[c], (uint32_t)index, error);
        return status;
    }
    return cleat_fail(
        error, CLEAT_ERR_ARGUMENT,
        "cannot generate %zu different molecules with stems of %d to %d pairs; generate fewer, or allow longer stems",
        options->count, options->stem_min, options->stem_max);
}

static cleat_split split_of(size_t index, const cleat_rna_make *options) {
    cleat_random random = cleat_random_stream(options->seed ^ SPLIT_SEED, (uint32_t)index, 0);
    double place_in_split = cleat_random_uniform(&random);
    if (place_in_split < options->test_fraction) return CLEAT_SPLIT_TEST;
    return place_in_split < options->test_fraction + options->val_fraction ? CLEAT_SPLIT_VAL : CLEAT_SPLIT_TRAIN;
}

static cleat_status write_pdb(const char *folder, const molecule *m, cleat_error *error) {
    cleat_rna_chain chains[2];
    char path[4096], name[ID_BYTES];
    for (int c = 0; c < m->chains; ++c)
        chains[c] = (cleat_rna_chain){m->id[c], m->sequence[c], m->length[c], m->coords[c]};
    snprintf(name, sizeof name, "%s", m->id[0]);
    *strrchr(name, '_') = 0; /* PDB files are named after the molecule; readers append the chain */
    if (!cleat_rna_pdb_path(folder, name, path, sizeof path))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "path too long: %.100s...", folder);
    return cleat_rna_write_pdb(path, chains, (size_t)m->chains, error);
}

/* Writes a line of sequences.csv, one per chain, to `text`, which must be large enough. Returns its
 * length. */
static size_t sequence_line(char *text, const molecule *m, int c, cleat_split split) {
    return (size_t)sprintf(text, "%s,%s,%d,%s\n", m->id[c], m->sequence[c], m->length[c], cleat_split_name(split));
}

static cleat_status check_make(const cleat_rna_make *o, cleat_error *error) {
    if (!o->count || o->count > 99999)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "count is %zu; it must be 1 to 99999 molecules", o->count);
    if (o->stem_min < 2 || o->stem_max < o->stem_min || o->stem_max > MAX_STEM)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "stems of %d to %d pairs; the range is 2 to %d", o->stem_min,
                          o->stem_max, MAX_STEM);
    if (o->loop_min < 4 || o->loop_max < o->loop_min || o->loop_max > MAX_LOOP)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "loops of %d to %d residues; the range is 4 to %d", o->loop_min,
                          o->loop_max, MAX_LOOP);
    if (!(o->gc >= 0 && o->gc <= 1) || !(o->duplex_fraction >= 0 && o->duplex_fraction <= 1) ||
        !(o->val_fraction >= 0 && o->test_fraction >= 0 && o->val_fraction + o->test_fraction <= 1))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "gc, duplex_fraction and val_fraction + test_fraction must be in 0..1");
    return CLEAT_OK;
}

/* Adds one chain of a molecule with its coordinates. */
static cleat_status add_chain(cleat_rna_set *set, const molecule *m, int c, cleat_error *error) {
    char id[ID_BYTES + 16];
    /* unique even if the data are a generated set themselves */
    snprintf(id, sizeof id, "generated-%s", m->id[c]);
    cleat_status status = cleat_rna_set_chain(set, id, CLEAT_SPLIT_TRAIN, error);
    for (int i = 0; i < m->length[c] && !status; ++i) {
        status = cleat_rna_set_residue(set, m->sequence[c][i], error);
        if (status) break;
        cleat_rna_residue *residue = &set->residues[set->residue_count - 1];
        memcpy(residue->xyz, m->coords[c] + 3 * i, sizeof residue->xyz);
        residue->known = true;
    }
    return status;
}

/* Lists the sequences of the set that a generated molecule could have. */
static cleat_status list_sequences(const cleat_rna_set *set, cleat_name_table *sequences, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < set->count && !status; ++i) {
        const cleat_rna_entry *entry = &set->chains[i];
        char sequence[MAX_RESIDUES + 1] = "";
        uint32_t earlier;
        if (entry->length > MAX_RESIDUES) continue;
        for (size_t r = 0; r < entry->length; ++r) sequence[r] = set->residues[entry->first + r].letter;
        if (!cleat_name_table_find(sequences, sequence, &earlier))
            status = cleat_name_table_add(sequences, sequence, (uint32_t)i, error);
    }
    return status;
}

cleat_status cleat_rna_set_generate(cleat_rna_set *set, size_t count, cleat_error *error) {
    cleat_rna_make options = cleat_rna_make_defaults();
    cleat_name_table sequences = {0};
    options.count = count;
    options.seed = JOIN_SEED;
    if (count == 0) return CLEAT_OK;
    cleat_status status = check_make(&options, error);
    if (!status) status = list_sequences(set, &sequences, error);
    for (size_t i = 0; i < count && !status; ++i) {
        molecule m;
        status = draw_distinct(&m, i, &options, &sequences, error);
        for (int c = 0; c < m.chains && !status; ++c) status = add_chain(set, &m, c, error);
    }
    cleat_name_table_free(&sequences);
    return status;
}

cleat_rna_make cleat_rna_make_defaults(void) {
    return (cleat_rna_make){.count = 400,
                            .seed = 1,
                            .duplex_fraction = 0.25,
                            .stem_min = 4,
                            .stem_max = 12,
                            .loop_min = 4,
                            .loop_max = 8,
                            .gc = 0.55,
                            .val_fraction = 0.1,
                            .test_fraction = 0.1,
                            .pdb_files = 4};
}

cleat_status cleat_data_make_rna(const char *folder, const cleat_rna_make *options, cleat_error *error) {
    cleat_rna_make chosen = options ? *options : cleat_rna_make_defaults();
    char path[4096];
    cleat_name_table sequences = {0};
    cleat_rna_chain *chains = NULL;
    char *text = NULL;
    size_t n_chains = 0, used = 0;
    molecule *molecules = NULL;
    cleat_status status = check_make(&chosen, error);
    if (status) return status;
    if (strlen(folder) + 32 > sizeof path)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "path too long: %.100s...", folder);
    molecules = cleat_alloc(chosen.count, sizeof *molecules);
    chains = cleat_alloc(2 * chosen.count, sizeof *chains);
    text = cleat_alloc(2 * chosen.count + 1, MAX_RESIDUES + 64);
    if (!molecules || !chains || !text) {
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu molecules", chosen.count);
        goto done;
    }
    used = (size_t)sprintf(text, "target_id,sequence,length,split\n");
    for (size_t i = 0; i < chosen.count && !status; ++i) {
        molecule *m = &molecules[i];
        status = draw_distinct(m, i, &chosen, &sequences, error);
        for (int c = 0; c < m->chains && !status; ++c) {
            used += sequence_line(text + used, m, c, split_of(i, &chosen));
            chains[n_chains++] = (cleat_rna_chain){m->id[c], m->sequence[c], m->length[c], m->coords[c]};
        }
    }
    snprintf(path, sizeof path, "%s/pdb", folder);
    if (!status) status = cleat_folder_make(path, error);
    for (size_t i = 0; i < chosen.pdb_files && i < chosen.count && !status; ++i)
        status = write_pdb(path, &molecules[i], error);
    snprintf(path, sizeof path, "%s/labels.csv", folder);
    if (!status) status = cleat_rna_write_csv(path, chains, n_chains, error);
    snprintf(path, sizeof path, "%s/sequences.csv", folder);
    if (!status) status = cleat_file_write(path, text, used, error);
done:
    cleat_name_table_free(&sequences);
    cleat_free(text);
    cleat_free(chains);
    cleat_free(molecules);
    return status;
}

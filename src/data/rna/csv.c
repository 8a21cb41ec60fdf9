/* Reader of the layout of Kaggle's "Stanford RNA 3D Folding": sequences.csv defines the chains, labels.csv
 * their C1' atoms. Columns are found by name, others are ignored. */
#include "data/common/csv.h"
#include "data/rna/set.h"

#include <limits.h>
#include <string.h>

/* Kaggle's files mark a missing coordinate with -1e18; no atom of a molecule is farther away than these
 * limits. */
static const double MISSING_BELOW = -1e6, LARGEST_COORDINATE = 1e6;

static cleat_status parse_count(const cleat_csv *csv, const char *what, const char *text, size_t *value,
                                cleat_error *error) {
    double number;
    char shown[CLEAT_EXCERPT_SIZE];
    if (!cleat_parse_decimal(text, strlen(text), &number) || number < 0 || number > INT_MAX ||
        number != (double)(int)number)
        return cleat_csv_fail(csv, error, "%s is '%s', not a whole number", what,
                              cleat_format_excerpt(text, strlen(text), shown));
    *value = (size_t)number;
    return CLEAT_OK;
}

typedef struct sequence_columns {
    int id, sequence, length, split; /* the last two: -1 if absent */
} sequence_columns;

static cleat_status parse_split(const cleat_csv *csv, const char *text, cleat_split *split, cleat_error *error) {
    char shown[CLEAT_EXCERPT_SIZE];
    if (strcmp(text, "train") == 0)
        *split = CLEAT_SPLIT_TRAIN;
    else if (strcmp(text, "val") == 0 || strcmp(text, "valid") == 0 || strcmp(text, "validation") == 0)
        *split = CLEAT_SPLIT_VAL;
    else if (strcmp(text, "test") == 0)
        *split = CLEAT_SPLIT_TEST;
    else
        return cleat_csv_fail(csv, error, "split is '%s'; it must be train, val or test",
                              cleat_format_excerpt(text, strlen(text), shown));
    return CLEAT_OK;
}

typedef struct sequence_rows {
    cleat_csv csv;
    sequence_columns columns;
    cleat_rna_set *set;
} sequence_rows;

static cleat_status add_sequence(void *user, cleat_error *error) {
    const sequence_rows *rows = user;
    const cleat_csv *csv = &rows->csv;
    const sequence_columns *columns = &rows->columns;
    cleat_rna_set *set = rows->set;
    const char *id = csv->fields[columns->id], *sequence = csv->fields[columns->sequence];
    char shown[CLEAT_EXCERPT_SIZE];
    cleat_split split = CLEAT_SPLITS;
    cleat_status status = CLEAT_OK;
    uint32_t earlier;
    size_t length = strlen(sequence);
    if (!*id) return cleat_csv_fail(csv, error, "target_id is empty");
    if (cleat_name_table_find(&set->ids, id, &earlier))
        return cleat_csv_fail(csv, error, "duplicate target_id '%s'; remove one",
                              cleat_format_excerpt(id, strlen(id), shown));
    if (!length)
        return cleat_csv_fail(csv, error, "the sequence of '%s' is empty", cleat_format_excerpt(id, strlen(id), shown));
    if (columns->split >= 0) status = parse_split(csv, csv->fields[columns->split], &split, error);
    if (!status && columns->length >= 0 && *csv->fields[columns->length]) {
        size_t stated = 0;
        status = parse_count(csv, "length", csv->fields[columns->length], &stated, error);
        if (!status && stated != length)
            status = cleat_csv_fail(csv, error,
                                    "length is %zu, but the sequence of '%s' has %zu letters; one of them is truncated",
                                    stated, cleat_format_excerpt(id, strlen(id), shown), length);
    }
    if (!status) status = cleat_rna_set_chain(set, id, split, error);
    for (size_t i = 0; i < length && !status; ++i) {
        char letter = sequence[i] == '-' ? 'N' : cleat_rna_letter(sequence[i]);
        if (!letter)
            return cleat_csv_fail(csv, error,
                                  "letter %zu of '%s' is '%s', not a nucleotide (A, C, G, U, or N for unknown)", i + 1,
                                  id, cleat_format_excerpt(sequence + i, 1, shown));
        status = cleat_rna_set_residue(set, letter, error);
    }
    return status;
}

cleat_status cleat_rna_read_sequences(const char *path, cleat_rna_set *set, cleat_error *error) {
    sequence_rows rows = {.set = set};
    cleat_csv *csv = &rows.csv;
    cleat_faults faults = {0};
    cleat_status status = cleat_csv_open(path, csv, error);
    if (status) return status;
    status = cleat_csv_need_column(csv, "target_id", &rows.columns.id, error);
    if (!status) status = cleat_csv_need_column(csv, "sequence", &rows.columns.sequence, error);
    rows.columns.length = cleat_csv_column(csv, "length");
    rows.columns.split = cleat_csv_column(csv, "split");
    if (!status) status = cleat_csv_each(csv, add_sequence, &rows, &faults, error);
    if (!status) status = cleat_faults_report(&faults, error);
    if (!status && !set->count)
        status = cleat_fail(error, CLEAT_ERR_FORMAT, "%s:1: no sequence after the header", path);
    cleat_csv_close(csv);
    return status;
}

typedef struct label_columns {
    int id, resname, resid, x, y, z;
} label_columns;

/* Parses one coordinate; *missing is set if the field is empty or contains Kaggle's mark. */
static cleat_status parse_coordinate(const cleat_csv *csv, int column, const char *name, double *value, bool *missing,
                                     cleat_error *error) {
    const char *text = csv->fields[column];
    char shown[CLEAT_EXCERPT_SIZE];
    *value = 0;
    *missing = text[strspn(text, " ")] == 0;
    if (*missing) return CLEAT_OK;
    if (!cleat_parse_decimal(text, strlen(text), value))
        return cleat_csv_fail(csv, error, "%s is '%s', not a finite number; leave it empty if the atom is missing",
                              name, cleat_format_excerpt(text, strlen(text), shown));
    *missing = *value < MISSING_BELOW;
    if (*value > LARGEST_COORDINATE)
        return cleat_csv_fail(csv, error, "%s is '%s', which is not a coordinate in Angstrom", name,
                              cleat_format_excerpt(text, strlen(text), shown));
    return CLEAT_OK;
}

/* Finds the chain of an ID (TARGET_RESID). */
static cleat_status find_chain(const cleat_csv *csv, char *id, cleat_rna_set *set, cleat_rna_entry **chain,
                               cleat_error *error) {
    char shown[CLEAT_EXCERPT_SIZE];
    char *underscore = strrchr(id, '_');
    uint32_t index;
    if (!underscore || underscore == id)
        return cleat_csv_fail(csv, error, "ID is '%s'; it must consist of target_id, '_' and resid",
                              cleat_format_excerpt(id, strlen(id), shown));
    *underscore = 0;
    bool found = cleat_name_table_find(&set->ids, id, &index);
    if (!found)
        return cleat_csv_fail(csv, error,
                              "no sequence has the target_id '%s'; are labels and sequences from the same data set?",
                              cleat_format_excerpt(id, strlen(id), shown));
    *underscore = '_';
    *chain = &set->chains[index];
    return CLEAT_OK;
}

/* Checks that the row is the next residue of its chain. */
static cleat_status check_order(const cleat_csv *csv, const label_columns *columns, cleat_rna_entry *chain,
                                cleat_error *error) {
    const char *id = csv->fields[columns->id];
    size_t resid = 0, id_resid = 0;
    cleat_status status = parse_count(csv, "resid", csv->fields[columns->resid], &resid, error);
    if (!status) status = parse_count(csv, "the end of ID", strrchr(id, '_') + 1, &id_resid, error);
    if (status) return status;
    if (id_resid != resid) return cleat_csv_fail(csv, error, "ID ends in %zu, but resid is %zu", id_resid, resid);
    if (resid < 1 || resid > chain->length)
        return cleat_csv_fail(csv, error, "resid %zu of '%s' is out of range: its sequence has %zu residues", resid,
                              chain->id, chain->length);
    if (resid == chain->labelled + 1) return CLEAT_OK;
    const size_t expected = chain->labelled + 1;
    chain->labelled = resid; /* the following rows may be in order again */
    return cleat_csv_fail(csv, error, "resid %zu of '%s' instead of %zu; every residue has one row, in order", resid,
                          chain->id, expected);
}

static cleat_status check_resname(const cleat_csv *csv, const char *resname, const cleat_rna_entry *chain, char letter,
                                  cleat_error *error) {
    char shown[CLEAT_EXCERPT_SIZE];
    char named = strlen(resname) == 1 ? cleat_rna_letter(*resname) : 0;
    if (strcmp(resname, "-") == 0 || !*resname) named = 'N';
    if (!named) (void)cleat_rna_residue_name(resname, &named);
    if (named == letter || named == 'N' || letter == 'N') return CLEAT_OK;
    return cleat_csv_fail(csv, error, "resname is '%s', but the sequence of '%s' has %c at %zu",
                          cleat_format_excerpt(resname, strlen(resname), shown), chain->id, letter,
                          chain->labelled + 1);
}

typedef struct label_rows {
    cleat_csv csv;
    label_columns columns;
    cleat_rna_set *set;
} label_rows;

static cleat_status add_label(void *user, cleat_error *error) {
    const label_rows *rows = user;
    const cleat_csv *csv = &rows->csv;
    const label_columns *columns = &rows->columns;
    cleat_rna_set *set = rows->set;
    cleat_rna_entry *chain = NULL;
    cleat_status status = find_chain(csv, csv->fields[columns->id], set, &chain, error);
    if (!status) status = check_order(csv, columns, chain, error);
    if (status) return status;
    cleat_rna_residue *residue = &set->residues[chain->first + chain->labelled];
    status = check_resname(csv, csv->fields[columns->resname], chain, residue->letter, error);
    ++chain->labelled;

    static const char *const names[3] = {"x_1", "y_1", "z_1"};
    const int at[3] = {columns->x, columns->y, columns->z};
    int missing_axes = 0;
    for (int axis = 0; axis < 3 && !status; ++axis) {
        double value;
        bool missing;
        status = parse_coordinate(csv, at[axis], names[axis], &value, &missing, error);
        residue->xyz[axis] = (float)value;
        missing_axes += missing;
    }
    if (status) return status;
    if (missing_axes == 1 || missing_axes == 2)
        return cleat_csv_fail(csv, error,
                              "only some of x_1, y_1, z_1 are given; give all, or none if the atom is missing");
    residue->known = missing_axes == 0;
    if (!residue->known) memset(residue->xyz, 0, sizeof residue->xyz);
    return CLEAT_OK;
}

static cleat_status find_label_columns(const cleat_csv *csv, label_columns *columns, cleat_error *error) {
    cleat_status status = cleat_csv_need_column(csv, "ID", &columns->id, error);
    if (!status) status = cleat_csv_need_column(csv, "resname", &columns->resname, error);
    if (!status) status = cleat_csv_need_column(csv, "resid", &columns->resid, error);
    if (!status) status = cleat_csv_need_column(csv, "x_1", &columns->x, error);
    if (!status) status = cleat_csv_need_column(csv, "y_1", &columns->y, error);
    if (!status) status = cleat_csv_need_column(csv, "z_1", &columns->z, error);
    if (!status && cleat_csv_column(csv, "x_2") >= 0)
        cleat_log(CLEAT_LOG_WARNING, "%s: more than one conformation per chain: only x_1, y_1, z_1 are used",
                  csv->source.path);
    return status;
}

/* A chain must have a row for every residue, or none at all. */
static cleat_status check_complete(const char *path, size_t last_line, const cleat_rna_set *set, cleat_error *error) {
    for (size_t i = 0; i < set->count; ++i) {
        const cleat_rna_entry *chain = &set->chains[i];
        if (chain->labelled && chain->labelled < chain->length)
            return cleat_fail(error, CLEAT_ERR_FORMAT,
                              "%s:%zu: '%s' has rows for %zu of its %zu residues; is the file truncated?", path,
                              last_line, chain->id, chain->labelled, chain->length);
    }
    return CLEAT_OK;
}

cleat_status cleat_rna_read_labels(const char *path, cleat_rna_set *set, cleat_error *error) {
    label_rows rows = {.set = set};
    cleat_faults faults = {0};
    cleat_status status = cleat_csv_open(path, &rows.csv, error);
    if (status) return status;
    status = find_label_columns(&rows.csv, &rows.columns, error);
    if (!status) status = cleat_csv_each(&rows.csv, add_label, &rows, &faults, error);
    if (!status) status = cleat_faults_report(&faults, error);
    if (!status) status = check_complete(path, rows.csv.line, set, error);
    cleat_csv_close(&rows.csv);
    return status;
}

/* Reader of PDB files: fixed columns (format 3.3), only the first model, and only its RNA chains.
 *
 * A residue is identified by (chain, number, insertion code), in any numbering (including hybrid-36);
 * residues are ordered as in the file. A chain may have two letters, in columns 21 and 22, as gemmi and PyMOL
 * write them. A residue belongs to the chain if its name is that of a nucleotide, or if it is an unknown one
 * (N) that has a C1' atom or a phosphate with an O5' atom. HETATM records after the chain's TER are ligands
 * and waters. The first of alternate C1' locations is used. DNA residues inside an RNA chain are read as N; a
 * chain whose sugars are mostly those of DNA is ignored. Other records and stray lines are ignored. */
#include "data/common/source.h"
#include "data/rna/set.h"

#include "core/memory.h"

#include <stdio.h>
#include <string.h>

enum { CHAINS = 1 << 14 }; /* 7 bits for each of two letters */

typedef struct residue {
    char name[4];
    char letter;
    cleat_residue_kind kind;
    bool phosphorus, o5, c2, o2, alpha_carbon; /* atoms seen */
    bool known;                                /* C1' has been read */
    float xyz[3];
    uint16_t chain;
} residue;

typedef struct pdb_file {
    const char *path;
    residue *residues; /* in order of appearance, all chains */
    size_t count, capacity;
    cleat_name_table keys;             /* chain, number and insertion code as in columns 21-27 -> index */
    bool begun[CHAINS], ended[CHAINS]; /* the chain has records; it has a TER record */
    uint16_t order[CHAINS];            /* chains in order of appearance */
    size_t chains;
    bool atoms;                  /* the file has ATOM or HETATM records */
    size_t repeats, repeat_line; /* repeated residues, and the line of the first one */
} pdb_file;

/* Columns first..last (from 1) of a line, without surrounding spaces. */
static void columns(const char *line, int first, int last, char *text) {
    while (first <= last && line[first - 1] == ' ') ++first;
    while (last >= first && line[last - 1] == ' ') --last;
    memcpy(text, line + first - 1, (size_t)(last - first + 1));
    text[last - first + 1] = 0;
}

/* The chain in columns 21 and 22; one letter may be in either. */
static uint16_t chain_of(const char *line) {
    const bool left = line[21] == ' ';
    const unsigned first = left ? ' ' : (unsigned char)line[20], last = (unsigned char)line[left ? 20 : 21];
    return (uint16_t)((first & 127) << 7 | (last & 127));
}

static void chain_name(uint16_t chain, char name[3]) {
    const char letters[2] = {(char)(chain >> 7), (char)(chain & 127)};
    snprintf(name, 3, "%.*s", letters[0] == ' ' ? (letters[1] != ' ') : 2, letters[0] == ' ' ? letters + 1 : letters);
}

static cleat_status find_residue(pdb_file *file, const char *line, size_t *index, cleat_error *error) {
    char key[8];
    const uint16_t chain = chain_of(line);
    uint32_t found;
    memcpy(key, line + 20, 7);
    key[7] = 0;
    if (cleat_name_table_find(&file->keys, key, &found)) {
        *index = found;
        return CLEAT_OK;
    }
    cleat_status status = cleat_grow(&file->residues, file->count, &file->capacity, error);
    if (!status) status = cleat_name_table_add(&file->keys, key, (uint32_t)file->count, error);
    if (status) return status;
    residue fresh = {.chain = chain};
    columns(line, 18, 20, fresh.name);
    fresh.kind = cleat_rna_residue_name(fresh.name, &fresh.letter);
    file->residues[file->count] = fresh;
    *index = file->count++;
    if (!file->begun[chain]) {
        file->begun[chain] = true;
        file->order[file->chains++] = chain;
    }
    return CLEAT_OK;
}

static cleat_status read_position(const pdb_file *file, size_t line_number, const char *line, residue *r,
                                  cleat_error *error) {
    for (int axis = 0; axis < 3; ++axis) {
        double value;
        char shown[CLEAT_EXCERPT_SIZE];
        const char *text = line + 30 + 8 * axis;
        if (!cleat_parse_decimal(text, 8, &value))
            return cleat_fail(error, CLEAT_ERR_FORMAT,
                              "%s:%zu: columns %d-%d contain '%s', not the %c coordinate of the C1' atom; PDB columns "
                              "are fixed, a shifted line cannot be read",
                              file->path, line_number, 31 + 8 * axis, 38 + 8 * axis,
                              cleat_format_excerpt(text, 8, shown), "xyz"[axis]);
        r->xyz[axis] = (float)value;
    }
    r->known = true;
    return CLEAT_OK;
}

static cleat_status read_atom(pdb_file *file, size_t line_number, const char *line, size_t length, cleat_error *error) {
    enum { Z_END = 54 };
    file->atoms = true;
    if (length < Z_END)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s:%zu: the %.6s record ends at column %zu, before its z coordinate (column %d); the file "
                          "is truncated or damaged",
                          file->path, line_number, line, length, Z_END);
    for (int i = 12; i < 27; ++i)
        if (line[i] < 0x20 || line[i] > 0x7E)
            return cleat_fail(error, CLEAT_ERR_FORMAT, "%s:%zu: column %d contains byte 0x%02x; the file is damaged",
                              file->path, line_number, i + 1, (unsigned)(unsigned char)line[i]);
    if (line[0] == 'H' && file->ended[chain_of(line)]) return CLEAT_OK;
    size_t index;
    cleat_status status = find_residue(file, line, &index, error);
    if (status) return status;
    residue *r = &file->residues[index];
    char atom[5];
    columns(line, 13, 16, atom);
    r->phosphorus |= strcmp(atom, "P") == 0;
    r->o5 |= strcmp(atom, "O5'") == 0 || strcmp(atom, "O5*") == 0;
    r->c2 |= strcmp(atom, "C2'") == 0 || strcmp(atom, "C2*") == 0;
    r->o2 |= strcmp(atom, "O2'") == 0 || strcmp(atom, "O2*") == 0;
    r->alpha_carbon |= strcmp(atom, "CA") == 0;
    bool c1 = strcmp(atom, "C1'") == 0 || strcmp(atom, "C1*") == 0;
    if (c1 && r->known && line[16] == ' ' && !file->repeats++) file->repeat_line = line_number;
    return c1 && !r->known ? read_position(file, line_number, line, r, error) : CLEAT_OK;
}

/* Ends the chain of a TER record: the chain in columns 21 and 22, or the chain of the last atom if the record is
 * shorter or has a blank there. */
static void read_ter(pdb_file *file, const char *line, size_t length) {
    if (length >= 22 && line[21] != ' ')
        file->ended[chain_of(line)] = true;
    else if (file->count)
        file->ended[file->residues[file->count - 1].chain] = true;
}

static cleat_status read_records(pdb_file *file, const cleat_source *source, cleat_error *error) {
    size_t line_number = 0;
    for (const char *line = source->at; line < source->end;) {
        const char *stop = memchr(line, '\n', (size_t)(source->end - line));
        const char *next = stop ? stop + 1 : source->end;
        if (!stop) stop = source->end;
        if (stop > line && stop[-1] == '\r') --stop;
        size_t length = (size_t)(stop - line);
        ++line_number;
        if (length >= 6 && memcmp(line, "ENDMDL", 6) == 0) return CLEAT_OK;
        if (length >= 6 && (memcmp(line, "ATOM  ", 6) == 0 || memcmp(line, "HETATM", 6) == 0)) {
            cleat_status status = read_atom(file, line_number, line, length, error);
            if (status) return status;
        } else if (length >= 3 && memcmp(line, "TER", 3) == 0) {
            read_ter(file, line, length);
        } else if (length >= 5 && line_number == 1 && memcmp(line, "data_", 5) == 0) {
            return cleat_fail(
                error, CLEAT_ERR_NOT_SUPPORTED,
                "%s:1: this is an mmCIF file; convert it to PDB format, or to sequences.csv and labels.csv",
                file->path);
        }
        line = next;
    }
    return CLEAT_OK;
}

static bool is_nucleotide(const residue *r) {
    if (r->kind != CLEAT_RESIDUE_OTHER) return true;
    return !r->alpha_carbon && (r->known || (r->phosphorus && r->o5));
}

/* RNA and not mostly DNA. Old files also name DNA residues A, C, G, but their sugars have no O2'. */
static bool is_rna_chain(const pdb_file *file, uint16_t chain) {
    size_t rna = 0, dna = 0;
    for (size_t i = 0; i < file->count; ++i) {
        const residue *r = &file->residues[i];
        if (r->chain != chain || r->kind == CLEAT_RESIDUE_OTHER) continue;
        if (r->kind == CLEAT_RESIDUE_DNA || (r->c2 && !r->o2))
            ++dna;
        else
            ++rna;
    }
    return rna > dna;
}

static cleat_status add_chain(const pdb_file *file, uint16_t chain, const char *stem, cleat_rna_set *set,
                              cleat_error *error) {
    char id[300], name[3];
    uint32_t earlier;
    chain_name(chain, name);
    snprintf(id, sizeof id, "%s%s%s", stem, *name ? "_" : "", name);
    if (cleat_name_table_find(&set->ids, id, &earlier))
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s: chain %s would be named %s, as a chain of another file; rename one", file->path, name,
                          id);
    cleat_status status = cleat_rna_set_chain(set, id, CLEAT_SPLITS, error);
    for (size_t i = 0; i < file->count && !status; ++i) {
        const residue *r = &file->residues[i];
        if (r->chain != chain || !is_nucleotide(r)) continue;
        status = cleat_rna_set_residue(set, r->letter, error);
        if (status) break;
        cleat_rna_residue *added = &set->residues[set->residue_count - 1];
        added->known = r->known;
        memcpy(added->xyz, r->xyz, sizeof added->xyz);
        set->summary.modified += r->kind == CLEAT_RESIDUE_MODIFIED;
        ++set->chains[set->count - 1].labelled;
    }
    return status;
}

/* File name without folder and extension: "1DUH" of "a/b/1DUH.pdb". */
static void stem_of(const char *path, char *stem, size_t size) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    size_t length = dot && dot != name ? (size_t)(dot - name) : strlen(name);
    snprintf(stem, size, "%.*s", (int)length, name);
}

cleat_status cleat_rna_read_pdb(const char *path, cleat_rna_set *set, cleat_error *error) {
    cleat_source source = {0};
    char stem[256];
    pdb_file *file = cleat_alloc(1, sizeof *file);
    if (!file) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory to read the file", path);
    file->path = path;
    stem_of(path, stem, sizeof stem);
    cleat_status status = cleat_source_read(path, false, &source, error);
    if (!status) status = read_records(file, &source, error);
    if (!status && !file->atoms)
        status = cleat_fail(error, CLEAT_ERR_FORMAT, "%s: no ATOM record; is this a PDB file?", path);
    if (!status && file->repeats)
        cleat_log(CLEAT_LOG_WARNING,
                  "%s:%zu: %zu residues repeat the chain and number of an earlier one and are skipped; rename the "
                  "chain of the second copy",
                  path, file->repeat_line, file->repeats);
    for (size_t i = 0; i < file->chains && !status; ++i)
        if (is_rna_chain(file, file->order[i])) status = add_chain(file, file->order[i], stem, set, error);
    cleat_source_close(&source);
    cleat_name_table_free(&file->keys);
    cleat_free(file->residues);
    cleat_free(file);
    return status;
}

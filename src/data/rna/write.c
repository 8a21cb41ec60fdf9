/* Writes RNA chains as PDB (C1' trace) and as CSV in the layout of Kaggle's labels. The text is composed in
 * memory and written atomically. */
#include "cleat/rna.h"

#include "core/files.h"
#include "core/string.h"
#include "data/common/source.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_known(const float *xyz) {
    return isfinite(xyz[0]) && isfinite(xyz[1]) && isfinite(xyz[2]);
}

static const char chain_names[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
enum { MAX_CHAINS = sizeof chain_names - 1, MAX_RESIDUES = 9999, MAX_SERIAL = 99999 };

static cleat_status check_chains(const cleat_rna_chain *chains, size_t n_chains, cleat_error *error) {
    int64_t serials = 0;
    if (!n_chains || n_chains > MAX_CHAINS)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "a PDB file can have 1 to %d chains, not %zu", MAX_CHAINS,
                          n_chains);
    for (size_t c = 0; c < n_chains; ++c) {
        if (chains[c].length > MAX_RESIDUES)
            return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                              "%s: %lld residues; a PDB file can have at most %d, write the CSV instead", chains[c].id,
                              (long long)chains[c].length, MAX_RESIDUES);
        serials += chains[c].length + 1;
        for (int64_t i = 0; i < chains[c].length; ++i) {
            const float *xyz = chains[c].coords + 3 * i;
            for (int axis = 0; axis < 3 && is_known(xyz); ++axis)
                if (!(xyz[axis] > -999.9994f && xyz[axis] < 9999.999f))
                    return cleat_fail(
                        error, CLEAT_ERR_NOT_SUPPORTED,
                        "%s: residue %lld is at %g, which does not fit the columns of a PDB file; centre the molecule",
                        chains[c].id, (long long)i + 1, (double)xyz[axis]);
        }
    }
    if (serials > MAX_SERIAL)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "%lld atoms; a PDB file can have at most %d",
                          (long long)serials, MAX_SERIAL);
    return CLEAT_OK;
}

static void add_trace(cleat_string *text, const cleat_rna_chain *chain, char name, int *serial) {
    int64_t last = -1;
    for (int64_t i = 0; i < chain->length; ++i) {
        const float *xyz = chain->coords + 3 * i;
        char x[24], y[24], z[24];
        if (!is_known(xyz)) continue;
        cleat_format_fixed3((double)xyz[0], x);
        cleat_format_fixed3((double)xyz[1], y);
        cleat_format_fixed3((double)xyz[2], z);
        cleat_string_add(text, "ATOM  %5d  C1'   %c %c%4d    %8s%8s%8s  1.00  0.00           C  \n", (*serial)++,
                         chain->sequence[i], name, (int)i + 1, x, y, z);
        last = i;
    }
    if (last >= 0)
        cleat_string_add(text, "TER   %5d        %c %c%4d\n", (*serial)++, chain->sequence[last], name, (int)last + 1);
}

cleat_status cleat_rna_write_pdb(const char *path, const cleat_rna_chain *chains, size_t n_chains, cleat_error *error) {
    cleat_string text = {0};
    int serial = 1;
    cleat_status status = check_chains(chains, n_chains, error);
    if (status) return status;
    for (size_t c = 0; c < n_chains; ++c) {
        char shown[CLEAT_EXCERPT_SIZE];
        cleat_string_add(&text, "REMARK   1 CHAIN %c IS %s\n", chain_names[c],
                         cleat_format_excerpt(chains[c].id, strlen(chains[c].id), shown));
    }
    for (size_t c = 0; c < n_chains; ++c) add_trace(&text, &chains[c], chain_names[c], &serial);
    cleat_string_add(&text, "END\n");
    return cleat_file_write_text(path, &text, error);
}

bool cleat_rna_pdb_path(const char *folder, const char *id, char *path, size_t size) {
    int used = snprintf(path, size, "%s/", folder);
    if (used < 0 || (size_t)used >= size) return false;
    char *name = path + used;
    int length = snprintf(name, size - (size_t)used, "%s.pdb", *id ? id : "unnamed");
    if (length < 0 || (size_t)length >= size - (size_t)used) return false;
    static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    for (char *c = name; *c; ++c)
        if (!strchr(safe, *c)) *c = '_';
    if (*name == '.') *name = '_';
    return true;
}

static cleat_status add_rows(cleat_string *text, const cleat_rna_chain *chain, cleat_error *error) {
    for (int64_t i = 0; i < chain->length; ++i) {
        const float *xyz = chain->coords + 3 * i;
        char x[24] = "", y[24] = "", z[24] = "", id[600];
        if (snprintf(id, sizeof id, "%s_%lld", chain->id, (long long)i + 1) >= (int)sizeof id)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "the id %.40s... is too long", chain->id);
        if (is_known(xyz)) {
            if (fabsf(xyz[0]) > 1e6f || fabsf(xyz[1]) > 1e6f || fabsf(xyz[2]) > 1e6f)
                return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s: not a coordinate in Angstrom", id);
            cleat_format_fixed3((double)xyz[0], x);
            cleat_format_fixed3((double)xyz[1], y);
            cleat_format_fixed3((double)xyz[2], z);
        }
        cleat_string_add_field(text, id);
        cleat_string_add(text, ",%c,%lld,%s,%s,%s\n", chain->sequence[i], (long long)i + 1, x, y, z);
    }
    return CLEAT_OK;
}

cleat_status cleat_rna_write_csv(const char *path, const cleat_rna_chain *chains, size_t n_chains, cleat_error *error) {
    cleat_string text = {0};
    cleat_status status = CLEAT_OK;
    cleat_string_add(&text, "ID,resname,resid,x_1,y_1,z_1\n");
    for (size_t c = 0; c < n_chains && !status; ++c) status = add_rows(&text, &chains[c], error);
    if (!status) return cleat_file_write_text(path, &text, error);
    cleat_string_free(&text);
    return status;
}

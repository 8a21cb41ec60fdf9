/* Writes chains: PDB (C1' trace) and the CSV of Kaggle's labels. The whole text is made in memory, then
 * written at once. */
#include "cleat/data.h"

#include "core/files.h"
#include "core/memory.h"
#include "data/source.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct text_buffer {
    char *data;
    size_t size, capacity;
} text_buffer;

static cleat_status append(text_buffer *text, cleat_error *error, const char *format, ...) CLEAT_PRINTF(3, 4);

static cleat_status append(text_buffer *text, cleat_error *error, const char *format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof line)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "a line of %d bytes is too long to write", length);
    if (text->size + (size_t)length > text->capacity) {
        size_t wanted = (text->capacity + sizeof line) * 2;
        char *grown = cleat_alloc(wanted, 1);
        if (!grown) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu bytes of text", wanted);
        if (text->size) memcpy(grown, text->data, text->size);
        cleat_free(text->data);
        text->data = grown;
        text->capacity = wanted;
    }
    memcpy(text->data + text->size, line, (size_t)length);
    text->size += (size_t)length;
    return CLEAT_OK;
}

static bool is_known(const float *xyz) {
    return isfinite(xyz[0]) && isfinite(xyz[1]) && isfinite(xyz[2]);
}

/* --- PDB ------------------------------------------------------------------------------------------------------ */

static const char chain_names[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
enum { MAX_CHAINS = sizeof chain_names - 1, MAX_RESIDUES = 9999, MAX_SERIAL = 99999 };

static cleat_status check_chains(const cleat_rna_chain *chains, size_t n_chains, cleat_error *error) {
    int64_t serials = 0;
    if (!n_chains || n_chains > MAX_CHAINS)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "a PDB file holds 1 to %d chains, not %zu", MAX_CHAINS,
                          n_chains);
    for (size_t c = 0; c < n_chains; ++c) {
        if (chains[c].length > MAX_RESIDUES)
            return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                              "%s: %lld residues; the columns of a PDB file hold %d, write the CSV instead",
                              chains[c].id, (long long)chains[c].length, MAX_RESIDUES);
        serials += chains[c].length + 1;
        for (int64_t i = 0; i < chains[c].length; ++i) {
            const float *xyz = chains[c].coords + 3 * i;
            for (int axis = 0; axis < 3 && is_known(xyz); ++axis)
                if (!(xyz[axis] > -999.9994f && xyz[axis] < 9999.999f))
                    return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                                      "%s: residue %lld lies at %g, which the columns of a PDB file do not "
                                      "hold; centre the "
                                      "molecule",
                                      chains[c].id, (long long)i + 1, (double)xyz[axis]);
        }
    }
    if (serials > MAX_SERIAL)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "%lld atoms; the columns of a PDB file number %d",
                          (long long)serials, MAX_SERIAL);
    return CLEAT_OK;
}

static cleat_status append_trace(text_buffer *text, const cleat_rna_chain *chain, char name, int *serial,
                                 cleat_error *error) {
    cleat_status status = CLEAT_OK;
    int64_t last = -1;
    for (int64_t i = 0; i < chain->length && status == CLEAT_OK; ++i) {
        const float *xyz = chain->coords + 3 * i;
        char x[24], y[24], z[24];
        if (!is_known(xyz)) continue;
        cleat_format_fixed3((double)xyz[0], x);
        cleat_format_fixed3((double)xyz[1], y);
        cleat_format_fixed3((double)xyz[2], z);
        status = append(text, error, "ATOM  %5d  C1'   %c %c%4d    %8s%8s%8s  1.00  0.00           C  \n", (*serial)++,
                        chain->sequence[i], name, (int)i + 1, x, y, z);
        last = i;
    }
    if (status == CLEAT_OK && last >= 0)
        status =
            append(text, error, "TER   %5d        %c %c%4d\n", (*serial)++, chain->sequence[last], name, (int)last + 1);
    return status;
}

cleat_status cleat_rna_write_pdb(const char *path, const cleat_rna_chain *chains, size_t n_chains, cleat_error *error) {
    text_buffer text = {0};
    int serial = 1;
    cleat_status status = check_chains(chains, n_chains, error);
    for (size_t c = 0; c < n_chains && status == CLEAT_OK; ++c) {
        char shown[CLEAT_SHOWN];
        status = append(&text, error, "REMARK   1 CHAIN %c IS %s\n", chain_names[c],
                        cleat_show(chains[c].id, strlen(chains[c].id), shown));
    }
    for (size_t c = 0; c < n_chains && status == CLEAT_OK; ++c)
        status = append_trace(&text, &chains[c], chain_names[c], &serial, error);
    if (status == CLEAT_OK) status = append(&text, error, "END\n");
    if (status == CLEAT_OK) status = cleat_file_write(path, text.data, text.size, error);
    cleat_free(text.data);
    return status;
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

/* --- CSV ------------------------------------------------------------------------------------------------------ */

/* Quotes a field where RFC 4180 asks for it. */
static cleat_status quote(const char *field, char *text, size_t size, cleat_error *error) {
    bool plain = !strpbrk(field, ",\"\r\n");
    size_t used = 0;
    if (!plain) text[used++] = '"';
    for (const char *c = field; *c; ++c) {
        if (used + 4 > size) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "the id %.40s... is too long", field);
        if (*c == '"') text[used++] = '"';
        text[used++] = *c;
    }
    if (!plain) text[used++] = '"';
    text[used] = 0;
    return CLEAT_OK;
}

static cleat_status append_rows(text_buffer *text, const cleat_rna_chain *chain, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (int64_t i = 0; i < chain->length && status == CLEAT_OK; ++i) {
        const float *xyz = chain->coords + 3 * i;
        char x[24] = "", y[24] = "", z[24] = "", id[600], field[700];
        if (snprintf(id, sizeof id, "%s_%lld", chain->id, (long long)i + 1) >= (int)sizeof id)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "the id %.40s... is too long", chain->id);
        if (is_known(xyz)) {
            if (fabsf(xyz[0]) > 1e6f || fabsf(xyz[1]) > 1e6f || fabsf(xyz[2]) > 1e6f)
                return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s: no coordinate in Angstrom", id);
            cleat_format_fixed3((double)xyz[0], x);
            cleat_format_fixed3((double)xyz[1], y);
            cleat_format_fixed3((double)xyz[2], z);
        }
        status = quote(id, field, sizeof field, error);
        if (status == CLEAT_OK)
            status = append(text, error, "%s,%c,%lld,%s,%s,%s\n", field, chain->sequence[i], (long long)i + 1, x, y, z);
    }
    return status;
}

cleat_status cleat_rna_write_csv(const char *path, const cleat_rna_chain *chains, size_t n_chains, cleat_error *error) {
    text_buffer text = {0};
    cleat_status status = append(&text, error, "ID,resname,resid,x_1,y_1,z_1\n");
    for (size_t c = 0; c < n_chains && status == CLEAT_OK; ++c) status = append_rows(&text, &chains[c], error);
    if (status == CLEAT_OK) status = cleat_file_write(path, text.data, text.size, error);
    cleat_free(text.data);
    return status;
}

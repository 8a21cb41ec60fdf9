/* Reader of FASTA files, for prediction: ">id description", and the sequence on the lines after it. */
#include "data/common/source.h"
#include "data/rna/set.h"

#include <string.h>

enum { MAX_ID = 256 };

/* Length of the line at *at without its end; moves *at to the next line. */
static size_t read_line(char **at, char *end) {
    char *start = *at, *stop = memchr(start, '\n', (size_t)(end - start));
    *at = stop ? stop + 1 : end;
    if (!stop) stop = end;
    while (stop > start && (stop[-1] == '\r' || stop[-1] == ' ' || stop[-1] == '\t')) --stop;
    return (size_t)(stop - start);
}

static cleat_status add_header(const char *path, size_t line, const char *text, size_t length, cleat_rna_set *set,
                               cleat_error *error) {
    char id[MAX_ID], shown[CLEAT_EXCERPT_SIZE];
    size_t start = 1, size = 0;
    uint32_t earlier;
    while (start < length && (text[start] == ' ' || text[start] == '\t')) ++start;
    while (start + size < length && text[start + size] != ' ' && text[start + size] != '\t') ++size;
    if (!size)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s:%zu: '>' without a name; every sequence requires one", path,
                          line);
    if (size >= sizeof id)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s:%zu: a name of %zu bytes; the maximum is %d", path, line, size,
                          MAX_ID - 1);
    memcpy(id, text + start, size);
    id[size] = 0;
    if (cleat_name_table_find(&set->ids, id, &earlier))
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s:%zu: duplicate name '%s'; rename one", path, line,
                          cleat_format_excerpt(id, size, shown));
    return cleat_rna_set_chain(set, id, CLEAT_SPLIT_TEST, error);
}

static cleat_status add_letters(const char *path, size_t line, const char *text, size_t length, cleat_rna_set *set,
                                cleat_error *error) {
    char shown[CLEAT_EXCERPT_SIZE];
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < length && !status; ++i) {
        char letter = cleat_rna_letter(text[i]);
        if (!letter)
            return cleat_fail(
                error, CLEAT_ERR_FORMAT,
                "%s:%zu: column %zu is '%s', not a nucleotide (A, C, G, U or T, N for unknown; no gaps, no proteins)",
                path, line, i + 1, cleat_format_excerpt(text + i, 1, shown));
        status = cleat_rna_set_residue(set, letter, error);
    }
    return status;
}

static cleat_status check_filled(const char *path, size_t line, const cleat_rna_set *set, cleat_error *error) {
    const cleat_rna_entry *chain = set->count ? &set->chains[set->count - 1] : NULL;
    if (chain && !chain->length)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s:%zu: '%s' has no sequence", path, line, chain->id);
    return CLEAT_OK;
}

cleat_status cleat_rna_read_fasta(const char *path, cleat_rna_set *set, cleat_error *error) {
    cleat_source source;
    cleat_status status = cleat_source_read(path, true, &source, error);
    if (status) return status;
    size_t line = 0, header_line = 0, before = set->count;
    for (char *at = source.at; at < source.end && !status;) {
        const char *text = at;
        size_t length = read_line(&at, source.end);
        ++line;
        if (!length || *text == ';') continue; /* ';' starts a comment in the oldest files */
        if (*text == '>') {
            status = check_filled(path, header_line, set, error);
            if (!status) status = add_header(path, line, text, length, set, error);
            header_line = line;
        } else if (set->count == before) {
            status = cleat_fail(error, CLEAT_ERR_FORMAT,
                                "%s:%zu: a sequence before the first '>' line; FASTA requires '>name'", path, line);
        } else {
            status = add_letters(path, line, text, length, set, error);
        }
    }
    if (!status) status = check_filled(path, header_line, set, error);
    if (!status && set->count == before)
        status = cleat_fail(error, CLEAT_ERR_FORMAT, "%s:1: no sequence in this file", path);
    cleat_source_close(&source);
    return status;
}

/* Collects the errors of single rows or files. */
#include "data/common/faults.h"

#include <stdio.h>
#include <string.h>

enum { LINE_TEXT = 380 }; /* five of them and the first line fit into an error */

_Static_assert((CLEAT_FAULTS_SHOWN * (LINE_TEXT + 8)) + 80 < CLEAT_ERROR_TEXT, "an error holds the first faults");

bool cleat_fault_is_local(const cleat_error *why) {
    return why->status == CLEAT_ERR_FORMAT || why->status == CLEAT_ERR_IO || why->status == CLEAT_ERR_NOT_FOUND ||
           why->status == CLEAT_ERR_NOT_SUPPORTED;
}

cleat_status cleat_faults_keep(cleat_faults *faults, size_t index, const cleat_error *why, cleat_error *error) {
    if (!cleat_fault_is_local(why)) {
        if (error) *error = *why;
        return why->status;
    }
    size_t kept = faults->count < CLEAT_FAULTS_SHOWN ? faults->count : CLEAT_FAULTS_SHOWN, at = kept;
    ++faults->count;
    while (at > 0 && index < faults->index[at - 1]) --at;
    if (at == CLEAT_FAULTS_SHOWN) return CLEAT_OK;
    if (kept == CLEAT_FAULTS_SHOWN) --kept;
    memmove(&faults->first[at + 1], &faults->first[at], (kept - at) * sizeof *faults->first);
    memmove(&faults->index[at + 1], &faults->index[at], (kept - at) * sizeof *faults->index);
    faults->first[at] = *why;
    faults->index[at] = index;
    return CLEAT_OK;
}

cleat_status cleat_faults_add(cleat_faults *faults, const cleat_error *why, cleat_error *error) {
    return cleat_faults_keep(faults, SIZE_MAX, why, error);
}

void cleat_faults_take_back(cleat_faults *faults) {
    if (faults->count) --faults->count;
}

void cleat_faults_append(cleat_faults *faults, const cleat_faults *later) {
    const size_t count = faults->count + later->count;
    for (size_t i = 0; i < later->count && i < CLEAT_FAULTS_SHOWN; ++i)
        (void)cleat_faults_add(faults, &later->first[i], NULL);
    faults->count = count;
}

cleat_status cleat_faults_report(const cleat_faults *faults, cleat_error *error) {
    if (faults->count == 0) return CLEAT_OK;
    if (faults->count == 1) {
        if (error) *error = faults->first[0];
        return faults->first[0].status;
    }
    char text[CLEAT_ERROR_TEXT], *at = text;
    for (size_t i = 0; i < faults->count && i < CLEAT_FAULTS_SHOWN; ++i) {
        const char *why = faults->first[i].text;
        at += sprintf(at, "\n  %.*s%s", LINE_TEXT, why, strlen(why) > LINE_TEXT ? "..." : "");
    }
    return cleat_fail(error, faults->first[0].status, "%zu faults in the data%s:%s", faults->count,
                      faults->count > CLEAT_FAULTS_SHOWN ? ", the first five" : "", text);
}

/* Bad rows or files of a dataset: a reader collects them, so that one error names the first ones and their number. */
#ifndef CLEAT_SRC_FAULTS_H
#define CLEAT_SRC_FAULTS_H

#include "cleat/core.h"

enum { CLEAT_FAULTS_SHOWN = 5 };

typedef struct cleat_faults {
    size_t count;
    size_t index[CLEAT_FAULTS_SHOWN]; /* of the row or file of each of `first`, ascending */
    cleat_error first[CLEAT_FAULTS_SHOWN];
} cleat_faults;

/* Whether the error is that of one row or file, so that the others can be read. */
bool cleat_fault_is_local(const cleat_error *why);
/* Keeps the error of the row or file `index` and returns CLEAT_OK. If it is not a local one, copies it to `error` and
 * returns its status: reading must end. */
cleat_status cleat_faults_keep(cleat_faults *faults, size_t index, const cleat_error *why, cleat_error *error);
/* The same for a row or file that follows all earlier ones. */
cleat_status cleat_faults_add(cleat_faults *faults, const cleat_error *why, cleat_error *error);
/* Takes back the fault that cleat_faults_add kept last, because a later row has the cause of both. */
void cleat_faults_take_back(cleat_faults *faults);
/* Adds those of a later stage, which follow all earlier ones. */
void cleat_faults_append(cleat_faults *faults, const cleat_faults *later);
/* CLEAT_OK if there are none; else the only one, or an error that lists the first ones, a line each, and counts all. */
cleat_status cleat_faults_report(const cleat_faults *faults, cleat_error *error);

#endif

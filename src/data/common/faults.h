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

/* Whether the error concerns only one row or file, so the others can be read. */
bool cleat_fault_is_local(const cleat_error *why);
/* Keeps the error of the row or file `index` and returns CLEAT_OK. An error that is not local is copied to `error`
 * and its status returned: reading must end. */
cleat_status cleat_faults_keep(cleat_faults *faults, size_t index, const cleat_error *why, cleat_error *error);
/* The same for a row or file that follows all earlier ones. */
cleat_status cleat_faults_add(cleat_faults *faults, const cleat_error *why, cleat_error *error);
/* Removes the fault added last, because a later row is the cause of both. */
void cleat_faults_take_back(cleat_faults *faults);
/* Appends the faults of a later stage. */
void cleat_faults_append(cleat_faults *faults, const cleat_faults *later);
/* CLEAT_OK if there are none; else the only one, or an error with their number and the first ones, one per
 * line. */
cleat_status cleat_faults_report(const cleat_faults *faults, cleat_error *error);

#endif

/* Which cases of an op test run. All of rows x storage types x shapes is a product in which most cases compile kernels that differ in
 * nothing a fault could hide in; these are chosen by index, and so that no kernel is left out. */
#ifndef CLEAT_TESTS_COVER_H
#define CLEAT_TESTS_COVER_H

#include "harness.h"

/* Forgets what has been covered: at the beginning of a test. */
void cover_begin(void);
/* Whether the case, with the variants it asks for, runs: f32 in shapes cpu and gpu always; gpu64 in every second row; a row in f16 or in
 * bf16 by turns (in both where there are few rows); and any case in which an op launches a kernel that it has not launched before in
 * this storage type and shape. Always where CLEAT_TEST_ROW names the row, or CLEAT_TEST_FULL is set. */
bool cover_needed(const op_case *c);
/* Whether the case's backward pass is to be the chained or the plain one only: true where `c` is the other one. In f32 both run. */
bool cover_skips(const op_case *c);
/* Notes what the case launches. */
void cover_record(const op_case *c);

#endif

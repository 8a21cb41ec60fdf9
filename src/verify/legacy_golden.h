/* Interface between legacy_golden.c and legacy_fields.c, which read reference trajectories in the old
 * format. */
#ifndef CLEAT_SRC_LEGACY_GOLDEN_H
#define CLEAT_SRC_LEGACY_GOLDEN_H

#include "verify/golden.h"

/* Appends the fields named in `words` (separated by blanks), which are keys of the table in
 * legacy_fields.c. */
cleat_status cleat_legacy_fields(const cleat_safetensors *file, const char *words, cleat_golden_content *content,
                                 cleat_error *error);

#endif

/* What the two files of old reference trajectories share. */
#ifndef CLEAT_SRC_LEGACY_GOLDEN_H
#define CLEAT_SRC_LEGACY_GOLDEN_H

#include "verify/golden.h"

/* Appends fields, by `words` of the table there, separated by blanks. */
cleat_status cleat_legacy_fields(const cleat_safetensors *file, const char *words, cleat_golden_content *content,
                                 cleat_error *error);

#endif

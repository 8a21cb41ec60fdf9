/* Comparison of the names of labels of two trainings. */
#ifndef CLEAT_SRC_LABEL_NAMES_H
#define CLEAT_SRC_LABEL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the name of label `index` is cleat's own, class_3. */
bool cleat_label_is_nameless(const char *name, int64_t index);
/* Whether two names are the same apart from case and separators: "screen door" is "Screen_Door". With
 * `is_cut`, `other` may be the beginning of its name. */
bool cleat_label_names_match(const char *name, const char *other, bool is_cut);

#endif

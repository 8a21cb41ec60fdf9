/* Changing one value in the text of an INI file. */
#ifndef CLEAT_SRC_INI_EDIT_H
#define CLEAT_SRC_INI_EDIT_H

#include "core/string.h"

/* Appends the text of a file [size] to `edited`, with `name = value` in [section]. One line differs: that of
 * the key; if there is none, a line is added at the end of the section, and the section at the end of the
 * file if it is missing too. All other bytes stay: comments (also behind the value), blanks, line ends.
 * CLEAT_ERR_PROFILE: the value is continued over several lines, or the key occurs twice. */
cleat_status cleat_ini_edit(const char *text, size_t size, const char *section, const char *name, const char *value,
                            cleat_string *edited, cleat_error *error);

#endif

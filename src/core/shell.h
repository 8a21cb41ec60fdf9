/* Commands of a shell: reading their words. cleat_shell_word in cleat/core.h writes one. */
#ifndef CLEAT_CORE_SHELL_H
#define CLEAT_CORE_SHELL_H

#include "cleat/core.h"

#include <stdbool.h>
#include <stddef.h>

/* Reads the word at *at without its quotes, and moves *at behind it. False at the end of the command. A word that has
 * no room in `word` is cut. */
bool cleat_shell_next(const char **at, char *word, size_t size);

#endif

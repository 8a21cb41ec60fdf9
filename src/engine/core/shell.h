/* Commands of a shell: reading their words. cleat_shell_word in cleat/core.h writes one. */
#ifndef CLEAT_CORE_SHELL_H
#define CLEAT_CORE_SHELL_H

#include "cleat/core.h"

#include <stdbool.h>
#include <stddef.h>

/* cleat_shell_word for the shells of one system: '\'': those of POSIX; '"': PowerShell and cmd. */
bool cleat_shell_quote(char quote, const char *word, char *text, size_t size);
/* cleat_shell_word for a path in a command that a message proposes: "PATH" if there is none. Returns `text`. */
const char *cleat_shell_path(const char *path, char *text, size_t size);
/* Reads the word at *at without its quotes, and moves *at behind it. False at the end of the command. A word
 * that has no room in `word` is cut. */
bool cleat_shell_next(const char **at, char *word, size_t size);
/* The options of a `cleat train` command (quoted as a shell reads it) that decide what is trained and on
 * which device, as options of any other command that takes a profile: " --set data.path=DIR --device gpu". ""
 * if there are none, or they do not fit. */
void cleat_command_options(const char *command, char *text, size_t size);

#endif

/* Words of the command line of a run, for the commands that its hints and its report propose. */
#ifndef CLEAT_SRC_COMMAND_WORDS_H
#define CLEAT_SRC_COMMAND_WORDS_H

#include "cleat/core.h"

/* The options of a `cleat train` command (quoted as a shell reads it) that decide what is trained and on
 * which device, as options of any other command that takes a profile: " --set data.path=DIR --device gpu". ""
 * if there are none, or they do not fit. */
void cleat_command_options(const char *command, char *text, size_t size);

#endif

/* Hints for unknown options and commands, and the names of settings, for the parser of command lines. */
#ifndef CLEAT_TOOLS_CLI_PARSE_H
#define CLEAT_TOOLS_CLI_PARSE_H

#include "cli.h"

enum { CLI_HINT = 512, CLI_NAME = 64 };

/* Writes what an unknown option probably means: "; did you mean --device?", "; it is a setting: --set train.epochs=3";
 * "" if nothing is near. `word` is the argument, `value` its value or NULL. */
void cli_hint_option(const cli_command *command, const cli_option *options, const char *word, const char *value,
                     char text[CLI_HINT]);
/* The same for an unknown command: "; did you mean 'train'?" */
void cli_hint_command(const char *word, char text[CLI_HINT]);

/* Reads the next setting from the text of `cleat train --help-profile`. Returns the rest of the text, or NULL after the
 * last setting. `section` keeps its value from call to call. */
const char *cli_next_setting(const char *help, char section[CLI_NAME], char name[CLI_NAME]);

#endif

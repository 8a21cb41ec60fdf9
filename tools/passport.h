/* Parts of `cleat passport`: the text, the child processes that fill it, and the parts themselves. */
#ifndef CLEAT_TOOLS_PASSPORT_H
#define CLEAT_TOOLS_PASSPORT_H

#include "cli_child.h"
#include "json/member.h"

#include <stdio.h>

/* --- passport_text.c: the text ----------------------------------------------------------------------------------
 * An INI text: lines `key = value` in sections. No value identifies its author or place. */

enum { PASSPORT_FORMAT = 2, PASSPORT_BYTES = 20 * 1024, PASSPORT_VALUE = 240 };

enum { PASSPORT_NAMES = 8, PASSPORT_NAME = 256 };

typedef struct passport_text {
    cleat_string lines;
    size_t limit;                              /* of size: PASSPORT_BYTES, unless the caller lowers it */
    size_t left_out;                           /* lines for which there was no room */
    char names[PASSPORT_NAMES][PASSPORT_NAME]; /* of this user and this host */
    size_t name_count;
} passport_text;

/* Begins an empty text with comment lines. */
void passport_begin(passport_text *text, const char *comment);

void passport_section(passport_text *text, const char *name);
/* Adds a line. The value becomes one line of at most PASSPORT_VALUE bytes, without names and without folders other
 * than the system's. A line for which the limit leaves no room is left out, and counted. */
void passport_line(passport_text *text, const char *key, const char *format, ...) CLEAT_PRINTF(3, 4);
/* Adds the lines `key = value` of what a part has printed. */
void passport_lines(passport_text *text, const char *lines);
/* Adds a message of several or long lines as KEY.1, KEY.2, ..., at most `lines` of them. */
void passport_message(passport_text *text, const char *key, const char *message, int lines);
/* Adds the section that proves the text complete and unchanged. */
void passport_seal(passport_text *text);

/* --- passport_parts.c: what child processes print -------------------------------------------------------------- */

/* Prints the part `name`: "device", "rates", "check:MODEL:PRECISION", "tune:MODEL". Returns the exit code. */
int passport_part(const cli_command *command, const char *name, const char *device, double seconds);

#endif

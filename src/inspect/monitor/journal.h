/* The journal of a run, system.jsonl: JSON objects, one a line, appended by any thread and by one process after
 * another. */
#ifndef CLEAT_SRC_JOURNAL_H
#define CLEAT_SRC_JOURNAL_H

#include "core/string.h"

typedef struct cleat_journal cleat_journal;

/* Opens `path` for appending, and removes a last line without end, which a killed process left behind. The caller
 * closes the journal. */
cleat_status cleat_journal_open(const char *path, cleat_journal **journal, cleat_error *error);
void cleat_journal_close(cleat_journal *journal);

/* Appends the object in `record` with a newline by one write(), and frees the text. A record that cannot be written
 * (full disk) is logged, and all later ones are dropped: a run does not fail because of its journal. Any thread. */
void cleat_journal_write(cleat_journal *journal, cleat_string *record);

/* Calls `recorded` with each further line, which ends with a newline, once it is in the file; one call at a
 * time, on the thread that writes the record. NULL: ends the calls, even those of a thread that is writing. */
void cleat_journal_observe(cleat_journal *journal, void (*recorded)(void *user, const char *line), void *user);

#endif

/* Child processes with a time limit: this program again, or another one. */
#ifndef CLEAT_TOOLS_CLI_CHILD_H
#define CLEAT_TOOLS_CLI_CHILD_H

#include "cli.h"

/* The outcome of a child process. */
typedef struct cli_child {
    char *output; /* its standard output; zero-terminated, owned; NULL: none */
    int exit_code;
    bool ended; /* by itself, with exit_code */
    bool timed_out;
    char failure[256]; /* why it did not succeed: its last message, a signal, its time; "" if it did */
    char *detail;      /* all of that message, or the last lines of a process that crashed or hung; owned; NULL: none */
    double seconds;
} cli_child;

/* Runs this program with `words` (at most CLI_CHILD_WORDS, NULL at the end) for at most `seconds`. */
enum { CLI_CHILD_WORDS = 16 };
void cli_child_run_self(const char *const *words, double seconds, cli_child *child);
/* Runs the program `words[0]`, which is looked for in PATH, with the words (NULL at the end) as its arguments. */
void cli_child_run(const char *const *words, double seconds, cli_child *child);
void cli_child_free(cli_child *child);
/* Kills the running child, from a signal handler, and makes later ones fail at once. */
void cli_child_stop(void);
bool cli_child_stopped(void);

#endif

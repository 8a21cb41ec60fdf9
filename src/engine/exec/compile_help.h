/* The helpers of one exec: processes that compile its kernels while this one waits (cleat/compile.h). */
#ifndef CLEAT_SRC_COMPILE_HELP_H
#define CLEAT_SRC_COMPILE_HELP_H

#include "exec/exec.h"

typedef struct cleat_compile_help cleat_compile_help;

/* Starts helpers for the programs of `exec`. *help is NULL where none help: the device has none, it would not
 * pay, or none starts. This is not an error. The exec must outlive `help`. */
void cleat_compile_help_start(const cleat_exec *exec, cleat_compile_help **help);
/* Whether the program may be built here: the helpers have compiled its kernels, or have stopped. Any thread. */
bool cleat_compile_help_is_done(void *help, size_t program);
/* Ends the helpers. NULL is allowed. */
void cleat_compile_help_destroy(cleat_compile_help *help);

#endif

/* Processes that compile kernels for a run: this program again (cleat/compile.h). */
#ifndef CLEAT_TOOLS_CLI_COMPILERS_H
#define CLEAT_TOOLS_CLI_COMPILERS_H

#include <cleat/compile.h>

/* The helpers of this process; $CLEAT_COMPILERS limits their number. */
const cleat_compile_helpers *cli_compilers(void);

/* The word that makes a process one of them: `cleat --compile-kernels PARENT LEVEL`, with the list as file 3. */
#define CLI_COMPILER_WORD "--compile-kernels"
/* Compiles; returns the exit code. `parent`: the process without which it ends. */
int cli_compile_kernels(const char *parent, const char *level);

#endif

/* Compiles OpenCL C to the card's assembly with clang. */
#ifndef VIRTUAL_CARD_COMPILE_H
#define VIRTUAL_CARD_COMPILE_H

#include "objects.h"

/* Whether the compiler was found, at build time or through the environment. */
bool vc_has_compiler(void);

/* Compiles for the card. Returns CL_SUCCESS, CL_BUILD_PROGRAM_FAILURE, CL_INVALID_BUILD_OPTIONS,
 * CL_COMPILER_NOT_AVAILABLE, or CL_OUT_OF_HOST_MEMORY. *assembly is set only on success; *log (the compiler's
 * messages) may stay NULL. The caller frees both. Needs no lock. Results are cached in the folder
 * CLEAT_VIRTUAL_CARD_CACHE. */
cl_int vc_compile(const char *source, const char *options, char **assembly, char **log);

#endif

/* Settings of kept_programs.c, which caches the programs of a test program. */
#ifndef CLEAT_TESTS_KEPT_PROGRAMS_H
#define CLEAT_TESTS_KEPT_PROGRAMS_H

#include <stdbool.h>

/* Whether the driver optimizes programs that are built after this call (the default). In PoCL, optimization
 * takes about twice as long as the rest of a build; other drivers always optimize. A program that was built
 * with optimization is used in either case. */
void kept_programs_optimize(bool optimize);
/* PoCL programs that are built after this call contain the names of kernel parameters (kernel_arguments.c). */
void kept_programs_keep_names(void);

#endif

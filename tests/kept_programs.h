/* Settings of kept_programs.c, which caches the programs of a test program. */
#ifndef CLEAT_TESTS_KEPT_PROGRAMS_H
#define CLEAT_TESTS_KEPT_PROGRAMS_H

#include <stdbool.h>

/* Whether programs built from now on are optimized by the driver (the default). PoCL optimizes a kernel for
 * about twice as long as everything else of its build takes; other drivers always optimize. A program that
 * was built with optimization is used in either case. */
void kept_programs_optimize(bool optimize);
/* Programs of PoCL built from now on know the names of their kernels' parameters (kernel_arguments.c). */
void kept_programs_keep_names(void);

#endif

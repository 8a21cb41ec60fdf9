/* The kernel sources that are embedded in the library. */
#ifndef CLEAT_SRC_EMBEDDED_H
#define CLEAT_SRC_EMBEDDED_H

#include "core/embedded.h"

/* cl/NAME, sorted by name; ends with a NULL name. */
extern const cleat_embedded_file cleat_embedded_kernels[];

#endif

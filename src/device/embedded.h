/* The kernel sources inside the library. */
#ifndef CLEAT_SRC_EMBEDDED_H
#define CLEAT_SRC_EMBEDDED_H

#include "core/embedded.h"

extern const cleat_embedded cleat_embedded_kernels[]; /* cl/NAME, in the order of their names; ends with a NULL name */

#endif

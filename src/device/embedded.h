/* The kernel sources inside the library, written by tools/embed_kernels.cmake. */
#ifndef CLEAT_SRC_EMBEDDED_H
#define CLEAT_SRC_EMBEDDED_H

typedef struct cleat_embedded {
    const char *name;   /* "layer_norm.cl" */
    const char *source; /* zero-terminated */
} cleat_embedded;

extern const cleat_embedded cleat_embedded_kernels[]; /* ends with a NULL name */

#endif

/* Files inside the library, written by tools/embed_files.cmake. */
#ifndef CLEAT_SRC_EMBEDDED_FILES_H
#define CLEAT_SRC_EMBEDDED_FILES_H

#include <stddef.h>

typedef struct cleat_embedded {
    const char *name; /* "layer_norm.cl" */
    const char *text; /* zero-terminated */
    size_t size;      /* bytes, the zero not counted */
} cleat_embedded;

#endif

/* Files inside the library, written by tools/embed_files.cmake. */
#ifndef CLEAT_SRC_EMBEDDED_FILES_H
#define CLEAT_SRC_EMBEDDED_FILES_H

typedef struct cleat_embedded {
    const char *name; /* "layer_norm.cl" */
    const char *text; /* zero-terminated */
} cleat_embedded;

#endif

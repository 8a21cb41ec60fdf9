/* Arrays in NPY files (numpy.lib.format, versions 1.0 to 3.0). */
#ifndef CLEAT_SRC_NPY_H
#define CLEAT_SRC_NPY_H

#include "cleat/maps.h"

enum { CLEAT_NPY_RANK = 8 };

/* Contents of a file header. */
typedef struct cleat_npy {
    int rank;
    int64_t shape[CLEAT_NPY_RANK]; /* in C order */
    int64_t elements;              /* at least 1 */
    char kind;                     /* 'f', 'i', 'u' or 'b' */
    int bytes;                     /* per element */
    bool swapped;                  /* byte order differs from this machine */
    int64_t offset;                /* of the first element in the file */
} cleat_npy;

/* Reads the header and checks the size of the file against it. Elements are f4, f8, u1, i1, i2, i4 or b1.
 * CLEAT_ERR_FORMAT names the file, the cause, and the line of Python that fixes it. */
cleat_status cleat_npy_probe(const char *path, cleat_npy *npy, cleat_error *error);
/* Reads elements first .. first + count - 1 as f32 [count]. NaN is kept; an infinite value or one that
 * exceeds single precision is an error. Thread-safe. */
cleat_status cleat_npy_read(const char *path, const cleat_npy *npy, int64_t first, int64_t count, float *values,
                            cleat_error *error);

#endif

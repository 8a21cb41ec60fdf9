/* Interface between the queue of programs (programs.c), the builder of one program (kernels.c) and the binary
 * cache (binary_cache.c). */
#ifndef CLEAT_SRC_PROGRAMS_H
#define CLEAT_SRC_PROGRAMS_H

#include "device/device.h"

/* Builds the program of `key`, which the caller releases. *loaded: it came from the binary cache. */
cleat_status cleat_program_build(cleat_device *device, const cleat_program_key *key, cl_program *program, bool *loaded,
                                 cleat_error *error);

/* Returns the program of `source` and `options` from its saved binary, or NULL if there is none, it is
 * damaged, the driver refuses it, or the cache is off. NULL is not an error: the caller then builds from
 * source. */
cl_program cleat_binary_load(cleat_device *device, const char *source, const char *options);
/* Saves a built program for the next start. Does nothing if the cache is off; a failure is only logged, at
 * debug level. */
void cleat_binary_save(cleat_device *device, const char *source, const char *options, cl_program program);

/* Path of the file in which the binary of `source` and `options` is kept. */
cleat_status cleat_binary_path(const cleat_device *device, const char *source, const char *options, char *path,
                               size_t size, cleat_error *error);

/* Whether a kernel for a matrix unit (its name contains "_mma") in this text of PTX has an array of more than
 * 16 bytes in memory, which should be registers. `kernel` and `bytes` are written if so: the first one's
 * name, and its size. */
bool cleat_ptx_finds_array(const char *ptx, char kernel[64], int *bytes);

#endif

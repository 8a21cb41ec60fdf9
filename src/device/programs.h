/* Between the queue of programs (programs.c), the builder of one (kernels.c) and the binary cache (binary_cache.c). */
#ifndef CLEAT_SRC_PROGRAMS_H
#define CLEAT_SRC_PROGRAMS_H

#include "device/device.h"

/* The program of `key`, built; the caller releases it. *loaded: it came from the binary cache. */
cleat_status cleat_program_build(cleat_device *device, const cleat_program_key *key, cl_program *program, bool *loaded,
                                 cleat_error *error);

/* The program of `source` built with `options` from its saved binary, or NULL: not saved, damaged, refused by
 * the driver, or the cache is off. Never an error: the caller then builds from source. */
cl_program cleat_binary_load(cleat_device *device, const char *source, const char *options);
/* Saves a built program for the next start; does nothing where the cache is off, and a debug message where it
 * fails. */
void cleat_binary_save(cleat_device *device, const char *source, const char *options, cl_program program);

/* The file in which that binary is kept. */
cleat_status cleat_binary_path(const cleat_device *device, const char *source, const char *options, char *path,
                               size_t size, cleat_error *error);

#endif

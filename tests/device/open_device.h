/* Helpers shared by the device tests that need a device. */
#ifndef CLEAT_TESTS_OPEN_DEVICE_H
#define CLEAT_TESTS_OPEN_DEVICE_H

#include "device/device.h"

/* Opens $CLEAT_TEST_DEVICE (default "auto"). Exits with 77 without a device. */
cleat_device *open_device(void);

/* Creates a new folder under /tmp; removes a folder with its contents. */
void make_folder(char *path, size_t size);
void remove_folder(const char *path);
void put_file(const char *folder, const char *name, const char *text);

/* Builds the program of `key` through the build queue. The caller releases it. */
cleat_status build_program(cleat_device *device, const cleat_program_key *key, cl_program *program, cleat_error *error);

#endif

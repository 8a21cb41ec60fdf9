/* Shared by the device tests that need a device. */
#ifndef CLEAT_TESTS_OPEN_DEVICE_H
#define CLEAT_TESTS_OPEN_DEVICE_H

#include "device/device.h"

/* Opens $CLEAT_TEST_DEVICE (default "auto"); exits with 77 where there is no device. */
cleat_device *open_device(void);

/* A fresh folder under /tmp, and its removal with all that is in it. */
void make_folder(char *path, size_t size);
void remove_folder(const char *path);
void put_file(const char *folder, const char *name, const char *text);

/* The program of `key` by way of the queue; the caller releases it. */
cleat_status build_program(cleat_device *device, const cleat_program_key *key, cl_program *program, cleat_error *error);

#endif

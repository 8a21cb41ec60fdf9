/* Opens the device under test for the device tests. */
#include "open_device.h"

#include "core/files.h"
#include "platform/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cleat_device *open_device(void) {
    cleat_device *device = NULL;
    cleat_error error;
    const char *selector = getenv("CLEAT_TEST_DEVICE");
    cleat_status status = cleat_device_open(selector ? selector : "auto", &device, &error);
    if (!status) return device;
    fprintf(stderr, "%s\n", error.text);
    exit(status == CLEAT_ERR_NO_DEVICE ? 77 : 1);
}

void make_folder(char *path, size_t size) {
    snprintf(path, size, "/tmp/cleat-device-XXXXXX");
    if (!mkdtemp(path)) abort();
}

void remove_folder(const char *path) {
    char command[256];
    snprintf(command, sizeof command, "rm -r '%s'", path);
    if (system(command) != 0) abort();
}

void put_file(const char *folder, const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    *strrchr(path, '/') = 0; /* the name may contain a subfolder */
    if (cleat_folder_make(path, NULL)) abort();
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0) abort();
}

cleat_status build_program(cleat_device *device, const cleat_program_key *key, cl_program *program,
                           cleat_error *error) {
    cleat_programs *programs = NULL;
    cleat_status status = cleat_programs_start(device, key, 1, NULL, &programs, error);
    if (!status) status = cleat_programs_get(programs, 0, program, error);
    if (!status) clRetainProgram(*program);
    cleat_programs_destroy(programs);
    return status;
}

/* Files of the kernel and the system, below a root folder that tests replace. */
#include "core/files.h"
#include "doctor/doctor.h"
#include "platform/files.h"
#include "platform/system.h"

#include <stdio.h>
#include <stdlib.h>

const char *cleat_root_of(const cleat_doctor_request *request) {
    const char *root = request->root ? request->root : getenv("CLEAT_SYSTEM_ROOT");
    return root ? root : "";
}

void cleat_root_path(const char *root, const char *path, char whole[DOCTOR_PATH]) {
    const bool exists = root[0] || cleat_system_source(path);
    if (!exists || snprintf(whole, DOCTOR_PATH, "%s%s", root, path) >= DOCTOR_PATH) whole[0] = 0;
}

bool cleat_root_exists(const char *root, const char *path) {
    char whole[DOCTOR_PATH];
    cleat_root_path(root, path, whole);
    return access(whole, F_OK) == 0;
}

bool cleat_root_line(const char *root, const char *path, char *line, size_t size) {
    return cleat_root_field(root, path, "", line, size);
}

bool cleat_root_field(const char *root, const char *path, const char *word, char *value, size_t size) {
    char whole[DOCTOR_PATH];
    cleat_root_path(root, path, whole);
    return cleat_file_field(whole, word, value, size);
}

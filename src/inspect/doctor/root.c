/* Files of the kernel and the system, below a root folder that tests replace. */
#include "core/files.h"
#include "doctor/doctor.h"
#include "platform/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *cleat_root_of(const cleat_doctor_request *request) {
    const char *root = request->root ? request->root : getenv("CLEAT_SYSTEM_ROOT");
    return root ? root : "";
}

void cleat_root_path(const char *root, const char *path, char whole[DOCTOR_PATH]) {
    if (snprintf(whole, DOCTOR_PATH, "%s%s", root, path) >= DOCTOR_PATH) whole[0] = 0;
}

bool cleat_root_exists(const char *root, const char *path) {
    char whole[DOCTOR_PATH];
    cleat_root_path(root, path, whole);
    return access(whole, F_OK) == 0;
}

static void trim(char *text) {
    size_t end = strlen(text), start = strspn(text, " \t");
    while (end > start && strchr(" \t\r\n", text[end - 1])) --end;
    memmove(text, text + start, end - start);
    text[end - start] = 0;
}

bool cleat_root_line(const char *root, const char *path, char *line, size_t size) {
    return cleat_root_field(root, path, "", line, size);
}

bool cleat_root_field(const char *root, const char *path, const char *word, char *value, size_t size) {
    char whole[DOCTOR_PATH], line[1024];
    bool found = false;
    cleat_root_path(root, path, whole);
    FILE *file = fopen(whole, "r");
    if (!file) return false;
    while (!found && fgets(line, sizeof line, file)) found = strncmp(line, word, strlen(word)) == 0;
    fclose(file);
    if (!found) return false;
    memmove(line, line + strlen(word), strlen(line + strlen(word)) + 1);
    trim(line);
    snprintf(value, size, "%s", line);
    return value[0] != 0;
}

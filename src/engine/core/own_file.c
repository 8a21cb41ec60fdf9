/* Finds the file that holds the code of the library: a shared library, or the program it is linked into. */
#include "core/own_file.h"

#include "platform/files.h"
#include "platform/system.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool cleat_own_file(char path[PATH_MAX]) {
    Dl_info own, program;
    union {
        bool (*function)(char *);
        void *data;
    } code = {.function = cleat_own_file};
    if (!dladdr(code.data, &own) || !own.dli_fname) return false;
    /* The linker reports the program only as argv[0], which need not be a path. */
    void *header = (void *)(uintptr_t)getauxval(AT_PHDR);
    bool in_program = header && dladdr(header, &program) && program.dli_fbase == own.dli_fbase;
    return realpath(in_program ? "/proc/self/exe" : own.dli_fname, path) != NULL;
}

bool cleat_plugin_file(const char *file, const char *variable, char path[PATH_MAX]) {
    static const char *const folders[] = {"", "cleat/", "../lib/cleat/"};
    const char *named = getenv(variable);
    char own[PATH_MAX];
    if (named && *named) return snprintf(path, PATH_MAX, "%s", named) < PATH_MAX;
    if (!cleat_own_file(own)) return false;
    char *slash = strrchr(own, '/');
    for (size_t i = 0; slash && i < sizeof folders / sizeof *folders; ++i) {
        const int length = snprintf(path, PATH_MAX, "%.*s%s%s", (int)(slash + 1 - own), own, folders[i], file);
        if (length < PATH_MAX && access(path, F_OK) == 0) return true;
    }
    return snprintf(path, PATH_MAX, "%s/%s", CLEAT_INSTALLED_PLUGINS, file) < PATH_MAX && access(path, F_OK) == 0;
}

bool cleat_program_file(const char *name, char *path, size_t size) {
    const char *folder = getenv("PATH");
    while (folder && *folder) {
        const size_t length = strcspn(folder, CLEAT_PATHS_END);
        if (snprintf(path, size, "%.*s/%s", (int)length, folder, name) < (int)size && access(path, X_OK) == 0)
            return true;
        folder += length + (folder[length] != 0);
    }
    return false;
}

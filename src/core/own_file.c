/* Finds the file that holds the code of the library: a shared library, or the program it is linked into. */
#include "core/own_file.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>

bool cleat_own_file(char path[PATH_MAX]) {
    Dl_info own, program;
    union {
        bool (*function)(char *);
        void *data;
    } code = {.function = cleat_own_file};
    if (!dladdr(code.data, &own) || !own.dli_fname) return false;
    /* The linker knows the program only as argv[0], which need not be a path. */
    void *header = (void *)(uintptr_t)getauxval(AT_PHDR);
    bool in_program = header && dladdr(header, &program) && program.dli_fbase == own.dli_fbase;
    return realpath(in_program ? "/proc/self/exe" : own.dli_fname, path) != NULL;
}

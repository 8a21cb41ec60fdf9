/* Reads and writes the cache files. */
#include "files.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH = 600 };

char *vc_file_read(const char *path) {
    FILE *file = fopen(path, "r");
    char *text = NULL;
    long size = -1;
    if (!file) return NULL;
    if (fseek(file, 0, SEEK_END) == 0) size = ftell(file);
    rewind(file);
    if (size >= 0) text = malloc((size_t)size + 1);
    if (text && fread(text, 1, (size_t)size, file) == (size_t)size) {
        text[size] = 0;
    } else {
        free(text);
        text = NULL;
    }
    fclose(file);
    return text;
}

bool vc_file_write(const char *path, const char *text) {
    static atomic_uint serial;
    char part[PATH];
    unsigned number = atomic_fetch_add(&serial, 1u);
    if ((size_t)snprintf(part, sizeof part, "%s.%ld.%u.part", path, (long)getpid(), number) >= sizeof part)
        return false;
    FILE *file = fopen(part, "w");
    if (!file) return false;
    bool written = fputs(text, file) >= 0;
    if (fclose(file) != 0) written = false;
    if (written && rename(part, path) == 0) return true;
    unlink(part);
    return false;
}

bool vc_cache_folder(char *path, size_t size) {
    const char *given = getenv("CLEAT_VIRTUAL_CARD_CACHE"), *temporary = getenv("TMPDIR");
    int bytes = given && given[0] ? snprintf(path, size, "%s", given)
                                  : snprintf(path, size, "%s/cleat_virtual_card.%ld",
                                             temporary && temporary[0] ? temporary : "/tmp", (long)getuid());
    return bytes > 0 && (size_t)bytes < size && (mkdir(path, 0700) == 0 || errno == EEXIST);
}

/* Files with the fuzzer's bytes in a separate folder. They stay open, because creating or truncating a file
 * for each input takes longer than many parsers. */
#include "fuzz.h"

#include "platform/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct written {
    char path[320];
    int file;
} written;

static char folder[64];
static written files[16]; /* removed by fuzz_clear */
static size_t n_files;

void fuzz_clear(void) {
    for (size_t i = 0; i < n_files; ++i) {
        close(files[i].file);
        remove(files[i].path);
    }
    n_files = 0;
}

static void remove_folder(void) {
    fuzz_clear();
    rmdir(folder);
}

const char *fuzz_folder(void) {
    if (folder[0]) return folder;
    /* in memory if possible: a fuzzer writes thousands of files per second */
    snprintf(folder, sizeof folder, "%s/cleat-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(folder)) abort();
    atexit(remove_folder);
    return folder;
}

static int open_file(const char *path) {
    const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) abort();
    return file;
}

static written *find_file(const char *name) {
    char path[sizeof files->path];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    for (size_t i = 0; i < n_files; ++i)
        if (strcmp(files[i].path, path) == 0) return &files[i];
    if (n_files == sizeof files / sizeof *files) abort();
    written *made = &files[n_files++];
    strcpy(made->path, path);
    made->file = open_file(path);
    return made;
}

const char *fuzz_file(const char *name, const uint8_t *bytes, size_t size) {
    written *to = find_file(name);
    struct stat found;
    if (fstat(to->file, &found) != 0) abort();
    if (found.st_nlink == 0) { /* the library removed or replaced it */
        close(to->file);
        to->file = open_file(to->path);
    }
    if (lseek(to->file, 0, SEEK_SET) != 0 || (size && write(to->file, bytes, size) != (ssize_t)size) ||
        ftruncate(to->file, (off_t)size) != 0)
        abort();
    return to->path;
}

size_t fuzz_part(const uint8_t **bytes, size_t *size, const uint8_t **part) {
    if (*size < 2) return 0;
    size_t length = (size_t)(*bytes)[0] | (size_t)(*bytes)[1] << 8;
    if (length > *size - 2) length = *size - 2;
    *part = *bytes + 2;
    *bytes += 2 + length;
    *size -= 2 + length;
    return length;
}

char *fuzz_text(const uint8_t *bytes, size_t size) {
    char *text = malloc(size + 1);
    if (!text) abort();
    if (size) memcpy(text, bytes, size);
    text[size] = 0;
    return text;
}

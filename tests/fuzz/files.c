/* Files of the fuzzer's bytes, in a folder of their own. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];
static char names[16][128]; /* files that were written, to be removed */
static size_t n_names;

void fuzz_clear(void) {
    char path[320];
    for (size_t i = 0; i < n_names; ++i) {
        snprintf(path, sizeof path, "%s/%.120s", folder, names[i]);
        remove(path);
    }
    n_names = 0;
}

static void remove_folder(void) {
    fuzz_clear();
    rmdir(folder);
}

const char *fuzz_folder(void) {
    if (folder[0]) return folder;
    /* in memory, where there is such a place: a fuzzer writes thousands of files a second */
    snprintf(folder, sizeof folder, "%s/cleat-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(folder)) abort();
    atexit(remove_folder);
    return folder;
}

static void remember(const char *name) {
    for (size_t i = 0; i < n_names; ++i)
        if (strcmp(names[i], name) == 0) return;
    if (n_names == sizeof names / sizeof *names) abort();
    snprintf(names[n_names++], sizeof *names, "%s", name);
}

const char *fuzz_file(const char *name, const uint8_t *bytes, size_t size) {
    static char path[320];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    remember(name);
    FILE *file = fopen(path, "wb");
    if (!file || (size && fwrite(bytes, 1, size, file) != size) || fclose(file) != 0) abort();
    return path;
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

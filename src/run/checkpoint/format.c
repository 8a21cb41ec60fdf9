/* Names of checkpoints and of their files; the list of checkpoints in a run folder. */
#include "checkpoint/format.h"

#include "core/files.h"
#include "core/memory.h"
#include "platform/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cleat_checkpoint_name_make(int64_t epoch, int64_t step, int64_t copy, cleat_checkpoint_name *name) {
    *name = (cleat_checkpoint_name){.epoch = epoch, .step = step, .copy = copy};
    int used = snprintf(name->text, sizeof name->text, "ckpt-E%03lld-S%06lld", (long long)epoch, (long long)step);
    if (copy > 0) snprintf(name->text + used, sizeof name->text - (size_t)used, ".%lld", (long long)copy);
}

bool cleat_checkpoint_name_parse(const char *text, cleat_checkpoint_name *name) {
    long long epoch, step, copy = 0;
    if (sscanf(text, "ckpt-E%lld-S%lld.%lld", &epoch, &step, &copy) < 2) return false;
    if (epoch < 0 || step < 0 || copy < 0) return false;
    cleat_checkpoint_name_make(epoch, step, copy, name);
    return strcmp(name->text, text) == 0;
}

static int newest_first(const void *a, const void *b) {
    const cleat_checkpoint_name *x = a, *y = b;
    if (x->step != y->step) return x->step > y->step ? -1 : 1;
    if (x->copy != y->copy) return x->copy > y->copy ? -1 : 1;
    return x->epoch > y->epoch ? -1 : x->epoch < y->epoch;
}

cleat_status cleat_checkpoint_list(const char *run, cleat_checkpoint_name **names, size_t *count, cleat_error *error) {
    cleat_checkpoint_name *found = NULL, name;
    size_t n = 0, capacity = 0;
    cleat_status status = CLEAT_OK;
    const struct dirent *entry;
    DIR *folder = opendir(run);
    if (!folder && errno != ENOENT)
        return cleat_fail(error, CLEAT_ERR_IO, "%s: cannot list the folder: %s", run, strerror(errno));
    while (folder && !status && (entry = readdir(folder))) {
        if (!cleat_checkpoint_name_parse(entry->d_name, &name)) continue;
        status = cleat_grow(&found, n, &capacity, error);
        if (!status) found[n++] = name;
    }
    if (folder) closedir(folder);
    if (status) {
        cleat_free(found);
        return status;
    }
    if (n) qsort(found, n, sizeof *found, newest_first);
    *names = found;
    *count = n;
    return CLEAT_OK;
}

cleat_status cleat_checkpoint_path(const char *folder, const char *name, char *path, cleat_error *error) {
    int used = snprintf(path, CLEAT_CHECKPOINT_PATH, "%s/%s", folder, name);
    if (used < 0 || used >= CLEAT_CHECKPOINT_PATH)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "path too long: %.200s.../%s", folder, name);
    return CLEAT_OK;
}

bool cleat_checkpoint_pointer(const char *run, const char *pointer, cleat_checkpoint_name *name) {
    char path[CLEAT_CHECKPOINT_PATH], *text;
    size_t size;
    if (cleat_checkpoint_path(run, pointer, path, NULL) != CLEAT_OK) return false;
    if (cleat_file_read(path, &text, &size, NULL) != CLEAT_OK) return false;
    while (size && (text[size - 1] == '\n' || text[size - 1] == '\r' || text[size - 1] == ' ')) text[--size] = 0;
    bool good = cleat_checkpoint_name_parse(text, name);
    cleat_free(text);
    return good;
}

bool cleat_checkpoint_exists(const char *run) {
    cleat_checkpoint_name *names;
    size_t count;
    if (cleat_checkpoint_list(run, &names, &count, NULL) != CLEAT_OK) return false;
    cleat_free(names);
    return count > 0;
}

const cleat_checkpoint_file *cleat_checkpoint_find(const cleat_checkpoint_files *files, const char *name) {
    for (size_t i = 0; i < files->count; ++i)
        if (strcmp(files->items[i].name, name) == 0) return &files->items[i];
    return NULL;
}

/* The full text of a kernel file, from $CLEAT_KERNEL_DIR or embedded in the library, with its includes
 * inserted, because clBuildProgram does not find files next to the source. */
#include "core/files.h"
#include "core/memory.h"
#include "core/string.h"
#include "device/device.h"
#include "device/embedded.h"
#include "platform/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 64, MAX_NAME = 128, PATH = 1024 };

typedef struct assembly {
    cleat_string text;
    char seen[MAX_FILES][MAX_NAME]; /* each file is included only once */
    int seen_count;
} assembly;

static void append_line_marker(assembly *out, const char *file, int line) {
    cleat_string_add(&out->text, "#line %d \"%s\"\n", line, file);
}

bool cleat_kernels_are_embedded(void) {
    const char *folder = getenv("CLEAT_KERNEL_DIR");
    return !folder || !folder[0];
}

static const char *find_embedded(const char *file) {
    for (const cleat_embedded_file *kernel = cleat_embedded_kernels; kernel->name; ++kernel)
        if (strcmp(kernel->name, file) == 0) return kernel->text;
    return NULL;
}

/* Reads one file unchanged. A file that is missing in $CLEAT_KERNEL_DIR is taken from the library. */
static cleat_status read_one(const char *file, char **text, cleat_error *error) {
    const char *folder = getenv("CLEAT_KERNEL_DIR"), *embedded = find_embedded(file);
    char path[PATH];
    size_t size = 0;
    if (folder && folder[0]) {
        if (!cleat_folder_exists(folder))
            return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "CLEAT_KERNEL_DIR: folder '%s' does not exist", folder);
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, file) >= sizeof path)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "CLEAT_KERNEL_DIR: the path of '%s' is too long", file);
        if (cleat_file_exists(path)) return cleat_file_read(path, text, &size, error);
    }
    if (!embedded)
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "kernel file '%s' is neither in the library nor in %s", file,
                          folder && folder[0] ? folder : "CLEAT_KERNEL_DIR (not set)");
    *text = cleat_strdup(embedded);
    return *text ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for kernel file '%s'", file);
}

/* Extracts the name from a line  #include "name"; false for any other line. */
static bool parse_include(const char *line, size_t length, char name[MAX_NAME]) {
    char text[2 * MAX_NAME];
    if (length >= sizeof text || !memchr(line, '#', length)) return false;
    memcpy(text, line, length);
    text[length] = 0;
    return sscanf(text, " # include \"%127[^\"]\"", name) == 1;
}

static bool already_included(const assembly *out, const char *file) {
    for (int i = 0; i < out->seen_count; ++i)
        if (strcmp(out->seen[i], file) == 0) return true;
    return false;
}

static cleat_status append_file(assembly *out, const char *file, cleat_error *error);

static cleat_status append_include(assembly *out, const char *name, const char *from, int line, cleat_error *error) {
    if (!already_included(out, name)) {
        cleat_status status = append_file(out, name, error);
        if (status) return cleat_fail_in(error, status, "%s:%d", from, line);
    }
    append_line_marker(out, from, line + 1);
    return CLEAT_OK;
}

static cleat_status append_text(assembly *out, const char *file, const char *text, cleat_error *error) {
    char name[MAX_NAME];
    cleat_status status = CLEAT_OK;
    if (out->seen_count == MAX_FILES)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "the kernel sources have more than %d files", MAX_FILES);
    snprintf(out->seen[out->seen_count++], MAX_NAME, "%s", file);
    append_line_marker(out, file, 1);
    const char *const end = text + strlen(text);
    int line = 1;
    for (const char *at = text, *next; at < end && !status; at = next, ++line) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        next = line_end ? line_end + 1 : end;
        if (parse_include(at, (size_t)((line_end ? line_end : end) - at), name))
            status = append_include(out, name, file, line, error);
        else
            cleat_string_add_bytes(&out->text, at, (size_t)(next - at));
    }
    const cleat_string *all = &out->text;
    if (!status && !all->failed && all->data[all->size - 1] != '\n') cleat_string_add_bytes(&out->text, "\n", 1);
    return status;
}

static cleat_status append_file(assembly *out, const char *file, cleat_error *error) {
    char *text = NULL;
    cleat_status status = read_one(file, &text, error);
    if (status) return status;
    status = append_text(out, file, text, error);
    cleat_free(text);
    return status;
}

cleat_status cleat_kernel_source_of(const char *file, const char *text, char **source, cleat_error *error) {
    assembly out = {0};
    cleat_status status = text ? append_text(&out, file, text, error) : append_file(&out, file, error);
    if (!status) return cleat_string_detach(&out.text, source, error);
    cleat_string_free(&out.text);
    return status;
}

cleat_status cleat_kernel_source(const char *file, char **source, cleat_error *error) {
    return cleat_kernel_source_of(file, NULL, source, error);
}

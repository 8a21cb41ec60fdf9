/* Cache of built programs on disk, so that the next start does not compile. An entry is used only if it is
 * complete and was made from the same source and options by the same driver for the same device. After any
 * fault the program is built from source.
 *
 * Entry: magic, format, key (32 hex digits), length and hash (32 hex digits) of the binary, the binary. */
#include "core/files.h"
#include "core/memory.h"
#include "device/probe.h"
#include "device/programs.h"
#include "platform/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORMAT = 1, HASH = 33, PATH = 1024 };

static const char magic[8] = "CLEATBIN";

typedef struct header {
    char magic[8];
    uint64_t format;
    uint64_t length;
    char key[40];
    char hash[40];
} header;

static bool is_on(const cleat_device *device) {
    const char *mode = getenv("CLEAT_BINARY_CACHE");
    if (mode && strcmp(mode, "always") == 0) return true;
    if (mode && strcmp(mode, "never") == 0) return false;
    if (mode && mode[0] && strcmp(mode, "auto") != 0)
        cleat_log(CLEAT_LOG_WARNING, "CLEAT_BINARY_CACHE is '%s': valid values are always, never and auto", mode);
    return !(device->quirks & CLEAT_QUIRK_NO_BINARY_CACHE);
}

/* Hashes everything that the binary depends on. */
static bool make_key(const cleat_device *device, const char *source, const char *options, char key[HASH]) {
    char platform[256] = "", version[256] = "";
    clGetPlatformInfo(device->platform, CL_PLATFORM_VERSION, sizeof platform - 1, platform, NULL);
    clGetDeviceInfo(device->id, CL_DEVICE_VERSION, sizeof version - 1, version, NULL);
    size_t size = strlen(source) + strlen(options) + 2048;
    char *text = cleat_alloc(size, 1);
    if (!text) return false;
    int length = snprintf(text, size, "%d\n%s\n%s\n%s\n%s\n%s\n%s\n%s", (int)FORMAT, device->facts.platform, platform,
                          device->facts.name, version, device->facts.driver, options, source);
    cleat_hash_text(text, (size_t)length, key);
    cleat_free(text);
    return true;
}

cleat_status cleat_binary_path(const cleat_device *device, const char *source, const char *options, char *path,
                               size_t size, cleat_error *error) {
    char key[HASH];
    if (!make_key(device, source, options, key)) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a key");
    return cleat_cache_path("", key, ".bin", path, size, error);
}

/* --- loading --- */

/* Returns the binary inside an entry; NULL if the entry is damaged or was made for another key. */
static const unsigned char *check_entry(const char *data, size_t size, const char *key, size_t *length) {
    header head;
    char hash[HASH];
    if (size < sizeof head) return NULL;
    memcpy(&head, data, sizeof head);
    if (memcmp(head.magic, magic, sizeof magic) != 0 || head.format != FORMAT) return NULL;
    if (head.length != size - sizeof head || head.length == 0 || memcmp(head.key, key, HASH) != 0) return NULL;
    cleat_hash_text(data + sizeof head, head.length, hash);
    if (memcmp(head.hash, hash, HASH) != 0) return NULL;
    *length = head.length;
    return (const unsigned char *)data + sizeof head;
}

static cl_program build_binary(cleat_device *device, const unsigned char *binary, size_t length, const char *options) {
    cl_int code = CL_SUCCESS, state = CL_SUCCESS;
    cl_program program = clCreateProgramWithBinary(device->context, 1, &device->id, &length, &binary, &state, &code);
    if (code == CL_SUCCESS && state == CL_SUCCESS &&
        clBuildProgram(program, 1, &device->id, options, NULL, NULL) == CL_SUCCESS)
        return program;
    if (program) clReleaseProgram(program);
    return NULL;
}

cl_program cleat_binary_load(cleat_device *device, const char *source, const char *options) {
    char path[PATH], *data = NULL, key[HASH];
    size_t size = 0, length = 0;
    cl_program program = NULL;
    if (!is_on(device) || cleat_binary_path(device, source, options, path, sizeof path, NULL)) return NULL;
    if (!cleat_file_exists(path) || !make_key(device, source, options, key)) return NULL;
    if (!cleat_file_read(path, &data, &size, NULL)) {
        const unsigned char *binary = check_entry(data, size, key, &length);
        if (binary) program = build_binary(device, binary, length, options);
    }
    cleat_log(CLEAT_LOG_DEBUG, "binary cache: %s %s", path, program ? "used" : "damaged or rejected, building again");
    cleat_free(data);
    return program;
}

/* --- saving --- */

/* Returns a new entry that contains the binary, its length in *length; NULL if the driver provides none. The
 * caller frees it. */
static char *new_entry(cl_program program, size_t *length) {
    if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof *length, length, NULL) != CL_SUCCESS) return NULL;
    if (*length == 0) return NULL;
    char *entry = cleat_alloc(sizeof(header) + *length + 1, 1); /* ends with 0: it may be text */
    if (!entry) return NULL;
    unsigned char *binary = (unsigned char *)entry + sizeof(header);
    if (clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) == CL_SUCCESS) return entry;
    cleat_free(entry);
    return NULL;
}

void cleat_binary_save(cleat_device *device, const char *source, const char *options, cl_program program) {
    char path[PATH];
    cleat_error error = {.status = CLEAT_OK};
    header head = {.format = FORMAT};
    size_t length = 0;
    char kernel[64];
    int bytes;
    if (!is_on(device) || !make_key(device, source, options, head.key)) return;
    char *entry = new_entry(program, &length);
    if (!entry) {
        cleat_log(CLEAT_LOG_DEBUG, "binary cache: '%s' provides no binary", device->facts.name);
        return;
    }
    if (device->facts.vendor == CLEAT_VENDOR_NVIDIA && cleat_ptx_finds_array(entry + sizeof head, kernel, &bytes))
        cleat_log(
            CLEAT_LOG_WARNING,
            "the driver's compiler keeps %d bytes of kernel '%s' in memory instead of registers: products in half "
            "precision will be slow; CLEAT_MATRIX_UNIT=none may be faster (driver %s)",
            bytes, kernel, device->facts.driver);
    memcpy(head.magic, magic, sizeof magic);
    head.length = length;
    cleat_hash_text(entry + sizeof head, length, head.hash);
    memcpy(entry, &head, sizeof head);
    if (cleat_binary_path(device, source, options, path, sizeof path, &error) ||
        cleat_file_write(path, entry, sizeof head + length, &error))
        cleat_log(CLEAT_LOG_DEBUG, "binary cache: not saved: %s", error.text);
    else
        cleat_log(CLEAT_LOG_DEBUG, "binary cache: %s saved, %zu bytes", path, length);
    cleat_free(entry);
}

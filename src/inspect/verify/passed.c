/* Records of passed checks: a file whose name is a hash of all that the check depends on. */
#include "verify/passed.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/string.h"
#include "device/device.h"
#include "session/tuned_cache.h"

#include <stdio.h>
#include <string.h>

enum { HASH = 33 };

cleat_status cleat_passed_path(const cleat_device *device, int format, const char *what, char path[CLEAT_PASSED_PATH],
                               cleat_error *error) {
    const cleat_device_facts *facts = cleat_device_get_facts(device);
    char kernels[HASH], key[HASH], folder[CLEAT_PASSED_PATH], text[1024];
    cleat_status status = cleat_kernels_hash(kernels, error);
    if (!status) status = cleat_cache_folder(folder, sizeof folder, error);
    if (status) return status;
    int length = snprintf(text, sizeof text, "self-check %d\n%s\n%s\n%s\n%d %d %d\n%s\n%s\n", format, facts->platform,
                          facts->name, facts->driver, (int)facts->work_group, (int)facts->vector_width,
                          (int)facts->matrix_unit, kernels, what);
    for (int i = 0; device->clblast_tuned && i < CLEAT_CLBLAST_COUNT; ++i)
        length += snprintf(text + length, sizeof text - (size_t)length, "%d ", (int)device->clblast.values[i]);
    cleat_hash_text(text, (size_t)length, key);
    if (snprintf(path, CLEAT_PASSED_PATH, "%s/checked/%s", folder, key) >= CLEAT_PASSED_PATH)
        return cleat_fail(error, CLEAT_ERR_IO, "the cache folder path is too long: %s", folder);
    return CLEAT_OK;
}

/* Last line of the file. */
static const char passed_line[] = "\npassed\n";

bool cleat_has_passed(const char *path) {
    const size_t end = strlen(passed_line);
    char *text = NULL;
    size_t size = 0;
    if (!cleat_file_exists(path) || cleat_file_read(path, &text, &size, NULL) != CLEAT_OK) return false;
    const bool passed = size >= end && memcmp(text + size - end, passed_line, end) == 0;
    cleat_free(text);
    return passed;
}

void cleat_save_passed(const char *path, const char *summary) {
    char folder[CLEAT_PASSED_PATH], text[512];
    snprintf(text, sizeof text, "%s%s", summary, passed_line);
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = 0;
    cleat_error error = {0};
    if (cleat_folder_make(folder, &error) != CLEAT_OK || cleat_file_write(path, text, strlen(text), &error) != CLEAT_OK)
        cleat_log(CLEAT_LOG_DEBUG, "self-check: result not saved: %s", error.text);
}

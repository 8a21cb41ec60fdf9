/* The file of tuned choices: named by the device, good for the kernels it was measured with. */
#include "session/tuned.h"
#include "core/files.h"
#include "core/memory.h"
#include "core/text.h"
#include "device/device.h"
#include "device/embedded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HASH = 33, PATH = 1024 };

/* Everything about the device that the fastest kernel may depend on. */
static void describe_device(const cleat_device_facts *facts, char *text, size_t size) {
    snprintf(text, size, "%s, %s, driver %s, %d units, groups of %d, %d lanes", facts->name, facts->platform,
             facts->driver, (int)facts->compute_units, (int)facts->work_group, (int)facts->lanes);
}

/* All kernels together: a table that was measured with others is not used. Of the C code that launches them only the
 * version is known. */
static cleat_status hash_kernels(char hash[HASH], cleat_error *error) {
    cleat_text joined = {0};
    cleat_status status = CLEAT_OK;
    cleat_text_add(&joined, "cleat %s\n", cleat_version());
    for (const cleat_embedded *file = cleat_embedded_kernels; file->name && status == CLEAT_OK; ++file) {
        char *source = NULL;
        status = cleat_kernel_source(file->name, &source, error);
        if (status == CLEAT_OK) cleat_text_add_bytes(&joined, source, strlen(source));
        cleat_free(source);
    }
    char *text = NULL;
    if (status == CLEAT_OK) status = cleat_text_take(&joined, &text, error);
    if (status == CLEAT_OK) cleat_hash_text(text, strlen(text), hash);
    cleat_free(text);
    cleat_text_free(&joined);
    return status;
}

cleat_status cleat_tuned_path(const cleat_device *device, char *path, size_t size, cleat_error *error) {
    char text[640], hash[HASH], folder[PATH];
    cleat_status status = cleat_cache_folder(folder, sizeof folder, error);
    if (status != CLEAT_OK) return status;
    describe_device(cleat_device_get_facts(device), text, sizeof text);
    cleat_hash_text(text, strlen(text), hash);
    if ((size_t)snprintf(path, size, "%s/tuned/%s.ini", folder, hash) >= size)
        return cleat_fail(error, CLEAT_ERR_IO, "the path of the cache folder is too long: %s", folder);
    return CLEAT_OK;
}

/* --- reading -------------------------------------------------------------------------------------------------- */

static bool is_current(const char *path, const cleat_device *device, const cleat_choices *choices) {
    char text[640], hash[HASH];
    describe_device(cleat_device_get_facts(device), text, sizeof text);
    if (strcmp(text, choices->device) != 0) {
        cleat_log(CLEAT_LOG_WARNING, "kernels: %s is of another device (%s), the default ones serve", path,
                  choices->device);
        return false;
    }
    if (hash_kernels(hash, NULL) == CLEAT_OK && strcmp(hash, choices->kernels) == 0) return true;
    cleat_log(
        CLEAT_LOG_INFO,
        "kernels: the %zu choices tuned on %s are of other kernels than these, the default ones serve; `cleat tune` "
        "finds them again",
        choices->count, choices->date);
    return false;
}

/* Cards that are known may one day bring their choices with their card file (profiles/devices/NAME.ini), measured on such
 * a card: where the cache has no file, this is the place to ask the card for its table. */
cleat_choices *cleat_tuned_read(const cleat_device *device) {
    char path[PATH + 64], *text = NULL;
    size_t size = 0;
    cleat_error error = {0};
    cleat_choices *choices = NULL;
    if (cleat_tuned_path(device, path, sizeof path, NULL) != CLEAT_OK || !cleat_file_exists(path)) return NULL;
    cleat_status status = cleat_file_read(path, &text, &size, &error);
    if (status == CLEAT_OK) status = cleat_choices_read(path, text, size, &choices, &error);
    cleat_free(text);
    if (status != CLEAT_OK) {
        cleat_log(CLEAT_LOG_WARNING, "kernels: the tuned choices are not used: %s; `cleat tune` writes them anew",
                  error.text);
        return NULL;
    }
    if (is_current(path, device, choices)) return choices;
    cleat_choices_destroy(choices);
    return NULL;
}

cleat_choices *cleat_choices_load(const cleat_device *device) {
    const char *mode = getenv("CLEAT_TUNED");
    if (mode && strcmp(mode, "never") == 0) return NULL;
    return cleat_tuned_read(device);
}

/* --- writing -------------------------------------------------------------------------------------------------- */

cleat_status cleat_tuned_create(const cleat_device *device, cleat_choices **choices, cleat_error *error) {
    cleat_choices *made = NULL;
    struct tm local;
    time_t now = time(NULL);
    cleat_status status = cleat_choices_create(&made, error);
    if (status != CLEAT_OK) return status;
    describe_device(cleat_device_get_facts(device), made->device, sizeof made->device);
    strftime(made->date, sizeof made->date, "%Y-%m-%d", localtime_r(&now, &local));
    status = hash_kernels(made->kernels, error);
    if (status == CLEAT_OK)
        *choices = made;
    else
        cleat_choices_destroy(made);
    return status;
}

cleat_status cleat_tuned_write(const cleat_device *device, const cleat_choices *choices, cleat_error *error) {
    char path[PATH + 64], folder[PATH + 64], *text = NULL;
    cleat_status status = cleat_tuned_path(device, path, sizeof path, error);
    if (status != CLEAT_OK) return status;
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    status = cleat_folder_make(folder, error);
    if (status == CLEAT_OK) status = cleat_choices_print(choices, &text, error);
    if (status == CLEAT_OK) status = cleat_file_write(path, text, strlen(text), error);
    cleat_free(text);
    return status;
}

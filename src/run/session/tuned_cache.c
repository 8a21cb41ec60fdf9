/* Tuning tables on disk: the file in the cache folder, named by the device and valid for the kernels it was
 * measured with; and shipped files, valid for devices like the one on which they were measured. */
#include "session/tuned_cache.h"
#include "card/file.h"
#include "core/files.h"
#include "core/memory.h"
#include "core/string.h"
#include "device/device.h"
#include "device/embedded.h"
#include "platform/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    TUNED_FORMAT = 2, /* 2: variants are called cpu, gpu and mma. A table of another format is not used. */
    HASH = 33,
    PATH = 1024
};

/* All properties of the device on which the fastest kernel may depend. */
static void describe_device(const cleat_device_facts *facts, char *text, size_t size) {
    snprintf(text, size, "%s, %s, driver %s, %d units, groups of %d, %d lanes", facts->name, facts->platform,
             facts->driver, (int)facts->compute_units, (int)facts->work_group, (int)facts->vector_width);
}

static void describe_shape(const cleat_device_facts *facts, char *text, size_t size) {
    snprintf(text, size, "%s, groups of %d, %d lanes", cleat_device_kind_text(facts->kind), (int)facts->work_group,
             (int)facts->vector_width);
}

/* Hashes all kernels: a table measured with other kernels is not used. The C code that launches them is
 * represented by the version only. A kernel folder may have more files, so includes are resolved there. */
cleat_status cleat_kernels_hash(char hash[HASH], cleat_error *error) {
    cleat_string joined = {0};
    cleat_status status = CLEAT_OK;
    cleat_string_add(&joined, "cleat %s, tuned tables of format %d\n", cleat_version(), (int)TUNED_FORMAT);
    for (const cleat_embedded_file *file = cleat_embedded_kernels; file->name && !status; ++file) {
        char *source = NULL;
        const bool embedded = cleat_kernels_are_embedded();
        if (!embedded) status = cleat_kernel_source(file->name, &source, error);
        const char *text = embedded ? file->text : source;
        if (!status) cleat_string_add_bytes(&joined, text, strlen(text));
        cleat_free(source);
    }
    char *text = NULL;
    if (!status) status = cleat_string_detach(&joined, &text, error);
    if (!status) cleat_hash_text(text, strlen(text), hash);
    cleat_free(text);
    cleat_string_free(&joined);
    return status;
}

cleat_status cleat_tuned_path(const cleat_device *device, char *path, size_t size, cleat_error *error) {
    char text[640], hash[HASH];
    describe_device(cleat_device_get_facts(device), text, sizeof text);
    cleat_hash_text(text, strlen(text), hash);
    return cleat_cache_path("tuned/", hash, ".ini", path, size, error);
}

/* --- reading -------------------------------------------------------------------------------------------------- */

static bool is_current(const char *path, const cleat_device *device, const cleat_tuning_table *tuning) {
    char text[640], hash[HASH];
    describe_device(cleat_device_get_facts(device), text, sizeof text);
    if (strcmp(text, tuning->device) != 0) {
        cleat_log(CLEAT_LOG_WARNING, "kernels: %s is for another device (%s); using the default kernels", path,
                  tuning->device);
        return false;
    }
    if (cleat_kernels_hash(hash, NULL) == CLEAT_OK && strcmp(hash, tuning->kernels) == 0) return true;
    cleat_log(CLEAT_LOG_INFO,
              "kernels: the %zu choices tuned here on %s are for another version of the kernels and are not used; run "
              "`cleat tune` again",
              tuning->count, tuning->date);
    return false;
}

cleat_tuning_table *cleat_tuned_read(const cleat_device *device) {
    char path[PATH + 64], *text = NULL;
    size_t size = 0;
    cleat_error error = {0};
    cleat_tuning_table *tuning = NULL;
    if (cleat_tuned_path(device, path, sizeof path, NULL) != CLEAT_OK || !cleat_file_exists(path)) return NULL;
    cleat_status status = cleat_file_read_text(path, &text, &size, &error);
    if (!status) status = cleat_tuning_parse(path, text, size, &tuning, &error);
    cleat_free(text);
    if (status) {
        cleat_log(CLEAT_LOG_WARNING,
                  "kernels: the tuned choices are not used: %s; run `cleat tune` to write them again", error.text);
        return NULL;
    }
    if (is_current(path, device, tuning)) return tuning;
    cleat_tuning_destroy(tuning);
    return NULL;
}

/* --- shipped -------------------------------------------------------------------------------------------------- */

static bool is_meant(const cleat_tuning_table *tuning, const cleat_device_facts *facts) {
    char shape[sizeof tuning->shape];
    describe_shape(facts, shape, sizeof shape);
    return tuning->match[0] && strcmp(tuning->shape, shape) == 0 && cleat_name_matches(tuning->match, facts->name);
}

static cleat_status read_shipped(const cleat_embedded_file *file, cleat_tuning_table **tuning, cleat_error *error) {
    char place[128];
    snprintf(place, sizeof place, "profiles/devices/%s.tuned", file->name);
    cleat_status status = cleat_tuning_parse(place, file->text, strlen(file->text), tuning, error);
    if (status || ((*tuning)->match[0] && (*tuning)->shape[0])) return status;
    cleat_tuning_destroy(*tuning);
    return cleat_fail(error, CLEAT_ERR_FORMAT,
                      "%s: [tuned] must set match and shape, as written by `cleat tune PROFILE --ship FILE`", place);
}

/* The first file that applies to the device; NULL if there is none. */
static cleat_tuning_table *find_shipped(const cleat_device *device, const char **name) {
    for (const cleat_embedded_file *file = cleat_embedded_tuned; file->name; ++file) {
        cleat_tuning_table *tuning = NULL;
        cleat_error error = {0};
        if (read_shipped(file, &tuning, &error) != CLEAT_OK) {
            cleat_log(CLEAT_LOG_WARNING, "kernels: the shipped choices are not used: %s", error.text);
            continue;
        }
        *name = file->name;
        if (is_meant(tuning, cleat_device_get_facts(device))) return tuning;
        cleat_tuning_destroy(tuning);
    }
    return NULL;
}

/* Adds shipped entries to the table of this device; creates a table if there is none. */
static cleat_status add_shipped(const cleat_device *device, cleat_tuning_table **tuning, cleat_error *error) {
    const char *name = NULL;
    cleat_tuning_table *shipped = find_shipped(device, &name);
    cleat_status status = CLEAT_OK;
    if (!shipped) return CLEAT_OK;
    if (!*tuning) status = cleat_tuning_create(tuning, error);
    if (!status) status = cleat_tuning_add_shipped(*tuning, name, shipped, error);
    cleat_tuning_destroy(shipped);
    return status;
}

/* --- loading for a run ---------------------------------------------------------------------------------------- */

void cleat_tuned_apply(cleat_device *device, const cleat_tuning_table *tuning) {
    cleat_error error = {0};
    if (!tuning || !tuning->has_clblast) return;
    if (cleat_clblast_override(device, &tuning->clblast, &error) == CLEAT_OK)
        cleat_log(CLEAT_LOG_DISPATCH, "CLBlast: %s parameters of %s", tuning->clblast_shipped ? "shipped" : "tuned",
                  tuning->clblast_shipped ? tuning->shipped_date : tuning->date);
    else
        cleat_log(CLEAT_LOG_WARNING, "kernels: the tuned parameters for CLBlast are not used: %s", error.text);
}

cleat_tuning_table *cleat_tuned_read_with_shipped(const cleat_device *device) {
    const char *mode = getenv("CLEAT_TUNED");
    cleat_error error = {0};
    if (mode && strcmp(mode, "never") == 0) return NULL;
    if (mode && mode[0] && strcmp(mode, "auto") != 0)
        cleat_log(CLEAT_LOG_WARNING, "CLEAT_TUNED is '%s': valid values are never and auto", mode);
    cleat_tuning_table *tuning = cleat_tuned_read(device);
    if (add_shipped(device, &tuning, &error) != CLEAT_OK)
        cleat_log(CLEAT_LOG_WARNING, "kernels: the shipped choices are not used: %s", error.text);
    return tuning;
}

cleat_tuning_table *cleat_tuning_load(cleat_device *device) {
    cleat_tuning_table *tuning = cleat_tuned_read_with_shipped(device);
    cleat_tuned_apply(device, tuning);
    return tuning;
}

/* --- writing -------------------------------------------------------------------------------------------------- */

cleat_status cleat_tuned_create(const cleat_device *device, cleat_tuning_table **tuning, cleat_error *error) {
    cleat_tuning_table *made = NULL;
    struct tm local;
    time_t now = time(NULL);
    cleat_status status = cleat_tuning_create(&made, error);
    if (status) return status;
    const cleat_device_facts *facts = cleat_device_get_facts(device);
    describe_device(facts, made->device, sizeof made->device);
    describe_shape(facts, made->shape, sizeof made->shape);
    snprintf(made->match, sizeof made->match, "%s", facts->name);
    strftime(made->date, sizeof made->date, "%Y-%m-%d", localtime_r(&now, &local));
    status = cleat_kernels_hash(made->kernels, error);
    if (!status)
        *tuning = made;
    else
        cleat_tuning_destroy(made);
    return status;
}

static cleat_status write_to(const char *path, const cleat_tuning_table *tuning, cleat_error *error) {
    char *text = NULL;
    cleat_status status = cleat_tuning_format(tuning, &text, error);
    if (!status) status = cleat_file_write(path, text, strlen(text), error);
    cleat_free(text);
    return status;
}

cleat_status cleat_tuned_write(const cleat_device *device, const cleat_tuning_table *tuning, const char *path,
                               cleat_error *error) {
    char own[PATH + 64], folder[PATH + 64];
    if (path) return write_to(path, tuning, error);
    cleat_status status = cleat_tuned_path(device, own, sizeof own, error);
    if (status) return status;
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(own, '/') - own), own);
    status = cleat_folder_make(folder, error);
    return status ? status : write_to(own, tuning, error);
}

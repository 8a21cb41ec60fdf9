/* Changing one setting in a profile's file. */
#include "platform/files.h"
#include "profile/schema.h"

#include "core/files.h"
#include "core/memory.h"
#include "ini/edit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Checks that the edited text is a profile with this value. */
static cleat_status check_text(const char *path, const char *name, const char *value, const cleat_string *text,
                               cleat_error *error) {
    cleat_profile *profile = NULL;
    char assignment[CLEAT_PROFILE_TEXT + 128], before[CLEAT_PROFILE_TEXT], after[CLEAT_PROFILE_TEXT];
    snprintf(assignment, sizeof assignment, "%s=%s", name, value);
    cleat_status status = cleat_profile_create(&profile, error);
    if (!status) status = cleat_profile_read_text(profile, path, text->data, text->size, error);
    if (!status) status = cleat_profile_get(profile, name, before, sizeof before, error);
    if (!status) status = cleat_profile_set(profile, assignment, error);
    if (!status) status = cleat_profile_get(profile, name, after, sizeof after, error);
    if (!status && strcmp(before, after) != 0)
        status =
            cleat_fail(error, CLEAT_ERR_PROFILE, "%s: %s would become %s instead of %s", path, name, before, after);
    cleat_profile_destroy(profile);
    return status;
}

cleat_status cleat_profile_edit(const char *path, const char *name, const char *value, cleat_error *error) {
    cleat_string edited = {0};
    char *text = NULL, *file = realpath(path, NULL); /* keeps a symbolic link */
    const char *dot = strchr(name, '.');
    char section[64];
    size_t size = 0;
    struct stat about;
    cleat_status status = dot && (size_t)(dot - name) < sizeof section
                              ? CLEAT_OK
                              : cleat_fail(error, CLEAT_ERR_ARGUMENT, "'%s' is not a section.key", name);
    if (!status) status = cleat_file_read_text(file ? file : path, &text, &size, error);
    if (!status) {
        snprintf(section, sizeof section, "%.*s", (int)(dot - name), name);
        status = cleat_ini_edit(text, size, section, dot + 1, value, &edited, error);
        if (status) cleat_fail_in(error, status, "%s", path);
    }
    if (!status && edited.failed) status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", path);
    if (!status) status = check_text(path, name, value, &edited, error);
    const bool has_mode = !status && stat(file, &about) == 0;
    if (!status) status = cleat_file_write(file, edited.data, edited.size, error);
    if (!status && has_mode) (void)!chmod(file, about.st_mode & 07777);
    cleat_string_free(&edited);
    cleat_free(text);
    free(file);
    return status;
}

/* Names of a model's outputs, from the files beside its parameters. */
#include "models/labels.h"

#include "core/files.h"
#include "core/memory.h"
#include "json/member.h"

#include <string.h>

enum { LONGEST_PATH = 1400 };

static cleat_status add_label(cleat_labels *labels, const char *name, cleat_error *error) {
    return cleat_grow_names(&labels->names, &labels->count, &labels->capacity, name, error);
}

cleat_status cleat_labels_read_classes(char *text, const char *path, cleat_labels *labels, cleat_error *error) {
    cJSON *root = cJSON_Parse(text);
    const cJSON *item;
    cleat_status status = CLEAT_OK;
    if (!root) return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: not JSON; the file is damaged", path);
    cJSON_ArrayForEach(item, cleat_json_member(root, "classes")) {
        if (!status && cJSON_IsString(item)) status = add_label(labels, item->valuestring, error);
    }
    cJSON_Delete(root);
    return status;
}

cleat_status cleat_labels_read_lines(char *text, const char *path, cleat_labels *labels, cleat_error *error) {
    char *rest = NULL;
    cleat_status status = CLEAT_OK;
    (void)path;
    for (char *line = strtok_r(text, "\r\n", &rest); line && !status; line = strtok_r(NULL, "\r\n", &rest))
        status = add_label(labels, line, error);
    return status;
}

cleat_status cleat_labels_read(const cleat_label_source *source, const char *folder, cleat_labels *labels,
                               cleat_error *error) {
    char path[LONGEST_PATH], *text;
    size_t size;
    cleat_labels made = {0};
    *labels = made;
    cleat_status status = source ? cleat_path_join(folder, source->file, path, sizeof path, error) : CLEAT_OK;
    if (status || !source || !cleat_file_exists(path)) return status;
    status = cleat_file_read(path, &text, &size, error);
    if (status) return status;
    status = source->read(text, path, &made, error);
    cleat_free(text);
    if (status)
        cleat_labels_clear(&made);
    else
        *labels = made;
    return status;
}

void cleat_labels_clear(cleat_labels *labels) {
    for (size_t i = 0; i < labels->count; ++i) cleat_free(labels->names[i]);
    cleat_free(labels->names);
    *labels = (cleat_labels){0};
}

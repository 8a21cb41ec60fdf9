/* Names of a model's outputs, from the files beside its parameters. */
#include "models/labels.h"

#include "core/files.h"
#include "core/memory.h"
#include "data/common/targets.h"
#include "json/member.h"

#include <string.h>

static cleat_status read_list(const cleat_label_source *source, const char *folder, cleat_name_list *labels,
                              cleat_error *error) {
    cJSON *root;
    const cJSON *item;
    cleat_status status = cleat_json_read_file(folder, source->file, &root, error);
    cJSON_ArrayForEach(item, cleat_json_member(root, source->list)) {
        const char *name = cJSON_IsString(item) ? item->valuestring : cleat_json_text(item, "name");
        if (!status && name) status = cleat_name_list_add(labels, name, error);
    }
    cJSON_Delete(root);
    return status;
}

static cleat_status read_lines(const cleat_label_source *source, const char *folder, cleat_name_list *labels,
                               cleat_error *error) {
    char path[CLEAT_FILE_PATH], *text, *rest = NULL;
    size_t size;
    cleat_status status = cleat_path_join(folder, source->file, path, sizeof path, error);
    if (status || !cleat_file_exists(path)) return status;
    status = cleat_file_read_text(path, &text, &size, error);
    if (status) return status;
    for (char *line = strtok_r(text, "\r\n", &rest); line && !status; line = strtok_r(NULL, "\r\n", &rest))
        status = cleat_name_list_add(labels, line, error);
    cleat_free(text);
    return status;
}

cleat_status cleat_labels_read(const cleat_label_source *source, const char *folder, cleat_name_list *labels,
                               cleat_error *error) {
    static const cleat_label_source targets = {CLEAT_TARGETS_FILE, "targets", NULL};
    char path[CLEAT_FILE_PATH];
    cleat_name_list made = {0};
    cleat_status status = cleat_path_join(folder, targets.file, path, sizeof path, error);
    if (!status && source && cleat_file_exists(path)) source = &targets;
    if (!status && source) status = (source->list ? read_list : read_lines)(source, folder, &made, error);
    if (status)
        cleat_name_list_free(&made);
    else
        *labels = made;
    return status;
}

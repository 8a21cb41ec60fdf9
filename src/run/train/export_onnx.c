/* A checkpoint as an ONNX model: its tensors, and what a user must know of its data. */
#include "onnx/export.h"

#include "core/files.h"
#include "core/memory.h"
#include "graph/graph.h"
#include "train/frozen_weights.h"
#include "train/model_of_checkpoint.h"
#include "train/model_tensors.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --- values ----------------------------------------------------------------------------------------------------- */

typedef struct source {
    const cleat_checkpoint *checkpoint;
    float **values; /* [tensors of the file] those that were asked for; each is owned */
    cleat_frozen_weights frozen;
} source;

static void source_free(source *s) {
    for (size_t i = 0; s->values && i < cleat_safetensors_count(s->checkpoint->model); ++i) cleat_free(s->values[i]);
    cleat_free(s->values);
    cleat_frozen_weights_clear(&s->frozen);
}

/* Reads a tensor of the checkpoint, once. */
static const float *read_tensor(source *s, const cleat_st_tensor *tensor, cleat_error *error) {
    float **values = &s->values[cleat_safetensors_index(s->checkpoint->model, tensor)];
    if (*values) return *values;
    float *made = cleat_alloc((size_t)cleat_st_elements(tensor), sizeof *made);
    if (!made)
        cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for its values");
    else if (cleat_frozen_weights_read(&s->frozen, tensor, made, error) == CLEAT_OK)
        return *values = made;
    cleat_free(made);
    return NULL;
}

static const float *values_of(void *user, const cleat_tensor *tensor, cleat_error *error) {
    source *s = user;
    int64_t row;
    const cleat_st_tensor *found = cleat_checkpoint_tensor(s->checkpoint, tensor, &row);
    if (!found || cleat_st_elements(found) < (row + 1) * cleat_tensor_elements(tensor)) {
        cleat_fail(error, CLEAT_ERR_FORMAT, "not in %s", s->checkpoint->folder);
        return NULL;
    }
    const float *values = read_tensor(s, found, error);
    return values ? values + row * cleat_tensor_elements(tensor) : NULL;
}

/* A tensor that the graph does not read would be missing in the export. */
static cleat_status check_all_used(void *user, cleat_error *error) {
    const source *s = user;
    for (size_t i = 0; i < cleat_safetensors_count(s->checkpoint->model); ++i)
        if (!s->values[i])
            return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: the model does not use the tensor '%s'",
                              s->checkpoint->folder, cleat_safetensors_at(s->checkpoint->model, i)->name);
    return CLEAT_OK;
}

/* --- metadata --------------------------------------------------------------------------------------------------- */

enum { MAX_ENTRIES = 64, LARGEST_FILE = 64 * 1024 };

typedef struct facts {
    cleat_onnx_entry entries[MAX_ENTRIES]; /* strings are owned */
    size_t count;
    bool failed;
} facts;

static void facts_free(facts *f) {
    for (size_t i = 0; i < f->count; ++i) {
        cleat_free((char *)f->entries[i].key);
        cleat_free((char *)f->entries[i].value);
    }
}

static void add_fact(facts *f, const char *key, const char *value) {
    if (!value || f->count == MAX_ENTRIES) return;
    cleat_onnx_entry entry = {cleat_strdup(key), cleat_strdup(value)};
    f->entries[f->count++] = entry;
    f->failed = f->failed || !entry.key || !entry.value;
}

/* Adds JSON, which is deleted. */
static void add_json(facts *f, const char *key, cJSON *json) {
    char *text = json ? cJSON_PrintUnformatted(json) : NULL;
    if (text) add_fact(f, key, text);
    f->failed = f->failed || (json && !text);
    cJSON_free(text);
    cJSON_Delete(json);
}

static bool is_fitted(const char *name) {
    return !cleat_has_word(CLEAT_MODEL_FILE " " CLEAT_OPTIM_FILE " " CLEAT_STATE_FILE " " CLEAT_PROFILE_FILE, name,
                           ' ');
}

/* Means and deviations that normalise the inputs. */
static void add_meaning(facts *f, const char *name, const char *text) {
    static const char *const members[][2] = {{"means", "mean"}, {"deviations", "std"}};
    if (strcmp(cleat_name_ending(name), ".json") != 0) return;
    cJSON *root = cJSON_Parse(text);
    for (size_t i = 0; i < sizeof members / sizeof *members; ++i) {
        cJSON *item = cJSON_DetachItemFromObjectCaseSensitive(root, members[i][0]);
        if (cJSON_IsArray(item) && item->child)
            add_json(f, members[i][1], item);
        else
            cJSON_Delete(item);
    }
    cJSON_Delete(root);
}

static cleat_status add_labels(facts *f, const cleat_label_source *names, const char *folder, cleat_error *error) {
    cleat_name_list labels = {0};
    cleat_status status = cleat_labels_read(names, folder, &labels, error);
    if (labels.count) {
        cJSON *list = cJSON_CreateStringArray((const char *const *)labels.names, (int)labels.count);
        f->failed = f->failed || !list;
        add_json(f, "labels", list);
    }
    cleat_name_list_free(&labels);
    return status;
}

/* A file of the fitted preprocessing: its hash, and if it is small its text. */
static cleat_status add_file(facts *f, const char *folder, const char *name, cleat_error *error) {
    char path[4096], key[CLEAT_CHECKPOINT_NAME + 16], hash[33], *data = NULL;
    size_t size = 0;
    cleat_status status = cleat_path_join(folder, name, path, sizeof path, error);
    if (!status) status = cleat_file_read(path, &data, &size, error);
    if (status) return status;
    cleat_hash_text(data, size, hash);
    snprintf(key, sizeof key, "hash/%s", name);
    add_fact(f, key, hash);
    if (size <= LARGEST_FILE && strlen(data) == size) {
        snprintf(key, sizeof key, "file/%s", name);
        add_fact(f, key, data);
        add_meaning(f, name, data);
    }
    cleat_free(data);
    return CLEAT_OK;
}

static void add_settings(facts *f, const cleat_settings *settings) {
    cJSON *json = cJSON_CreateObject();
    for (size_t i = 0; json && i < settings->count; ++i)
        cJSON_AddStringToObject(json, settings->items[i].key, settings->items[i].value);
    add_json(f, "cleat.settings", json);
}

static cleat_status collect_facts(const cleat_checkpoint *checkpoint, const cleat_model *model,
                                  const cleat_settings *settings, facts *f, cleat_error *error) {
    char step[32];
    cleat_name_list files = {0};
    snprintf(step, sizeof step, "%" PRId64, checkpoint->state.step);
    add_fact(f, "cleat.step", step);
    add_settings(f, settings);
    cleat_status status = add_labels(f, model->type->labels, checkpoint->folder, error);
    if (!status) status = cleat_listing_read(checkpoint->folder, is_fitted, &files, error);
    for (size_t i = 0; i < files.count && !status; ++i) status = add_file(f, checkpoint->folder, files.names[i], error);
    cleat_name_list_free(&files);
    if (!status && f->failed) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for metadata");
    return status;
}

/* --- the export ------------------------------------------------------------------------------------------------- */

cleat_status cleat_export_onnx(const cleat_profile *profile, const char *checkpoint, const cleat_onnx_options *options,
                               const char *path, cleat_onnx_report *report, cleat_error *error) {
    static const cleat_onnx_options none;
    cleat_checkpoint *saved = NULL;
    cleat_model *model = NULL;
    cleat_settings settings;
    source s = {.checkpoint = NULL};
    facts f = {.count = 0};
    if (!options) options = &none;
    cleat_status status = cleat_model_settings(profile, &settings, error);
    if (!status) status = cleat_checkpoint_open_best(checkpoint, &saved, error);
    if (!status) status = cleat_checkpoint_expect_settings(saved, settings.items, settings.count, error);
    if (!status) status = cleat_model_of_checkpoint(profile, saved, options->data, &model, error);
    if (!status) status = collect_facts(saved, model, &settings, &f, error);
    if (!status) {
        s = (source){.checkpoint = saved,
                     .values = cleat_alloc(cleat_safetensors_count(saved->model) + 1, sizeof *s.values)};
        if (!s.values) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for an export");
        if (s.values) status = cleat_frozen_weights_open(profile, model, saved, &s.frozen, error);
    }
    if (!status) {
        const cleat_onnx_spec spec = {.model = model,
                                      .length = cleat_model_longest(profile, model),
                                      .values = values_of,
                                      .user = &s,
                                      .check = check_all_used,
                                      .metadata = f.entries,
                                      .n_metadata = f.count,
                                      .external = options->external_data};
        status = cleat_onnx_export(&spec, path, report, error);
    }
    source_free(&s);
    facts_free(&f);
    cleat_model_destroy(model);
    cleat_checkpoint_close(saved);
    return status;
}

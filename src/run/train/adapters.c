/* Adapters of a checkpoint: merging, and writing them as Hugging Face PEFT saves them. */
#include "train/adapters.h"

#include "core/files.h"
#include "core/memory.h"
#include "graph/graph.h"
#include "nn/lora.h"
#include "weights/layout.h"
#include "json/member.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST_NAME = CLEAT_WEIGHT_NAME + 64 };

static bool is_adapter(const char *name) {
    return strstr(name, ".lora_") != NULL;
}

/* --- the adapters of a layer ---------------------------------------------------------------------------------- */

/* A layer of a checkpoint; a and b are NULL if it has no adapters. */
typedef struct layer {
    char prefix[CLEAT_NAME];
    const cleat_st_tensor *weight, *a, *b;
    cleat_lora_places places;
    int64_t rank, parts; /* parts: those in use */
} layer;

static const cleat_st_tensor *find(const cleat_safetensors *values, const char *prefix, const char *part) {
    char name[CLEAT_NAME + 24];
    snprintf(name, sizeof name, "%s.%s", prefix, part);
    return cleat_safetensors_find(values, name);
}

static cleat_status find_layer(const cleat_model *model, const cleat_safetensors *values, const cleat_st_tensor *weight,
                               layer *found, cleat_error *error) {
    static const char tail[] = ".weight";
    const size_t size = strlen(weight->name), cut = sizeof tail - 1;
    *found = (layer){.weight = weight, .rank = model->options.params.lora_rank};
    if (size <= cut || size - cut >= CLEAT_NAME || strcmp(weight->name + size - cut, tail) != 0) return CLEAT_OK;
    snprintf(found->prefix, sizeof found->prefix, "%.*s", (int)(size - cut), weight->name);
    found->a = find(values, found->prefix, "lora_A.weight");
    found->b = find(values, found->prefix, "lora_B.weight");
    if (!found->a && !found->b) return CLEAT_OK;
    found->places = cleat_lora_places_of(model->options.params.lora_layers, found->prefix);
    for (unsigned used = found->places.used; used; used >>= 1) found->parts += used & 1;
    const bool fits = found->a && found->b && found->parts > 0 && weight->rank == 2 && found->rank > 0 &&
                      found->a->shape[0] == found->parts * found->rank && found->a->shape[1] == weight->shape[1] &&
                      found->b->shape[0] * found->places.parts == found->parts * weight->shape[0] &&
                      found->b->shape[1] == found->rank;
    if (fits) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_FORMAT,
                      "the adapters of '%s' do not fit train.lora_rank = %lld and train.lora_layers = %s",
                      found->prefix, (long long)found->rank, model->options.params.lora_layers);
}

/* --- merging -------------------------------------------------------------------------------------------------- */

void cleat_merged_tensors_clear(cleat_merged_tensors *merged) {
    cleat_free(merged->items);
    *merged = (cleat_merged_tensors){0};
}

cleat_status cleat_adapters_merge(const cleat_model *model, const cleat_frozen_weights *frozen,
                                  cleat_merged_tensors *merged, cleat_error *error) {
    const cleat_safetensors *values = frozen->checkpoint->model;
    const size_t most = cleat_safetensors_count(values);
    cleat_merged_tensors made = {.model = model, .frozen = frozen, .items = cleat_alloc(most, sizeof *made.items)};
    if (!made.items) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu tensors", most);
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < most && !status; ++i) {
        const cleat_st_tensor *tensor = cleat_safetensors_at(values, i);
        layer l;
        if (is_adapter(tensor->name)) continue;
        made.items[made.count++] = *tensor;
        status = find_layer(model, values, tensor, &l, error);
    }
    if (status) {
        cleat_merged_tensors_clear(&made);
        return status;
    }
    *merged = made;
    return CLEAT_OK;
}

/* Adds the adapters of a layer to its weight [rows, columns]. */
static cleat_status merge_layer(const cleat_merged_tensors *merged, const layer *l, float *weight, cleat_error *error) {
    const cleat_param_options *options = &merged->model->options.params;
    float *a = cleat_alloc(cleat_st_bytes(l->a), 1), *b = cleat_alloc(cleat_st_bytes(l->b), 1);
    cleat_status status = CLEAT_OK;
    if (!a || !b) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory to merge the adapters of '%s'", l->prefix);
    if (!status) status = cleat_frozen_weights_read(merged->frozen, l->a, a, error);
    if (!status) status = cleat_frozen_weights_read(merged->frozen, l->b, b, error);
    if (!status)
        cleat_lora_merge(&l->places, l->rank, (float)(options->lora_alpha / (double)l->rank), a, b, l->weight->shape[0],
                         l->weight->shape[1], weight);
    cleat_free(a);
    cleat_free(b);
    return status;
}

cleat_status cleat_merged_tensors_read(const cleat_merged_tensors *merged, const cleat_st_tensor *tensor, float *values,
                                       cleat_error *error) {
    layer l;
    cleat_status status = cleat_frozen_weights_read(merged->frozen, tensor, values, error);
    if (!status) status = find_layer(merged->model, merged->frozen->checkpoint->model, tensor, &l, error);
    return status || !l.a ? status : merge_layer(merged, &l, values, error);
}

/* --- files of PEFT -------------------------------------------------------------------------------------------- */

typedef struct writer {
    const cleat_model *model;
    const cleat_architecture *architecture;
    const cleat_safetensors *file;
    cleat_st_tensor *tensors; /* [count] without data */
    char (*names)[LONGEST_NAME];
    struct { /* [count] where the elements of a tensor begin in the checkpoint */
        const cleat_st_tensor *tensor;
        int64_t first;
    } * places;
    size_t count;
    float *values; /* [capacity] of the tensor that is being written */
    size_t capacity;
    cJSON *modules, *head; /* names of adapted and of fully saved modules */
    bool transposed;       /* adapted modules are Conv1D */
} writer;

/* `module`.`part`, under the name that it has in a PeftModel, [rows, columns]: elements of `tensor` from `first` on. */
static void add(writer *w, const char *module, const char *part, int rank, int64_t rows, int64_t columns,
                const cleat_st_tensor *tensor, int64_t first) {
    snprintf(w->names[w->count], LONGEST_NAME, "base_model.model.%s%s%s", module, *part ? "." : "", part);
    w->tensors[w->count] =
        (cleat_st_tensor){.name = w->names[w->count], .dtype = CLEAT_ST_F32, .rank = rank, .shape = {rows, columns}};
    w->places[w->count].tensor = tensor;
    w->places[w->count].first = first;
    ++w->count;
}

static cleat_status read_tensor(void *user, size_t i, const void **data, cleat_error *error) {
    writer *w = user;
    const size_t elements = (size_t)cleat_st_elements(&w->tensors[i]);
    if (elements > w->capacity) {
        cleat_free(w->values);
        w->values = cleat_alloc(elements, sizeof *w->values);
        w->capacity = w->values ? elements : 0;
    }
    if (!w->values) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for '%s'", w->names[i]);
    *data = w->values;
    return cleat_safetensors_read(w->file, w->places[i].tensor, w->places[i].first, (int64_t)elements, w->values,
                                  error);
}

/* "classifier.weight" -> "classifier" */
static void cut_module(const char *name, char *module, size_t size) {
    const char *dot = strrchr(name, '.');
    snprintf(module, size, "%.*s", (int)(dot ? dot - name : (ptrdiff_t)strlen(name)), name);
}

static cleat_status fail_layer(const writer *w, const layer *l, cleat_error *error) {
    return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "networks of type '%s' have no layers for the adapters of '%s'",
                      w->architecture->name, l->prefix);
}

/* The parts of a stacked layer are layers of the architecture. An adapter of the whole becomes one of each
 * part, with the same A. */
static cleat_status add_adapters(writer *w, const layer *l, cleat_error *error) {
    cleat_weight_sources sources;
    char name[CLEAT_NAME + 8], module[CLEAT_WEIGHT_NAME];
    snprintf(name, sizeof name, "%s.weight", l->prefix);
    if (!cleat_architecture_sources(w->architecture, w->model, false, name, &sources)) return fail_layer(w, l, error);
    w->transposed = sources.rank == CLEAT_TRANSPOSED;
    const int64_t layers = (int64_t)sources.count, side = l->weight->shape[0] / layers, fan_in = l->weight->shape[1];
    const bool whole = l->places.parts == 1;
    if (!whole && l->places.parts != layers) return fail_layer(w, l, error);
    int64_t q = 0;
    for (int64_t i = 0; i < layers; ++i) {
        if (!whole && !(l->places.used >> i & 1)) continue;
        cut_module(sources.names[i], module, sizeof module);
        add(w, module, "lora_A.weight", 2, l->rank, fan_in, l->a, whole ? 0 : q * l->rank * fan_in);
        add(w, module, "lora_B.weight", 2, side, l->rank, l->b, q * side * l->rank);
        cJSON_AddItemToArray(w->modules, cJSON_CreateString(module));
        ++q;
    }
    return CLEAT_OK;
}

static bool has(const cJSON *list, const char *text) {
    const cJSON *item;
    cJSON_ArrayForEach(item, list) if (strcmp(item->valuestring, text) == 0) return true;
    return false;
}

/* The head is saved as it is. */
static cleat_status add_head(writer *w, const cleat_st_tensor *tensor, cleat_error *error) {
    cleat_weight_sources sources;
    char module[CLEAT_WEIGHT_NAME];
    if (!cleat_architecture_sources(w->architecture, w->model, false, tensor->name, &sources) || sources.count != 1)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "networks of type '%s' have no parameter for %s",
                          w->architecture->name, tensor->name);
    cut_module(sources.names[0], module, sizeof module);
    add(w, sources.names[0], "", tensor->rank, tensor->shape[0], tensor->rank > 1 ? tensor->shape[1] : 0, tensor, 0);
    if (!has(w->head, module)) cJSON_AddItemToArray(w->head, cJSON_CreateString(module));
    return CLEAT_OK;
}

static cleat_status collect(writer *w, cleat_error *error) {
    const cleat_model_class *family = w->model->type;
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < cleat_safetensors_count(w->file) && !status; ++i) {
        const cleat_st_tensor *tensor = cleat_safetensors_at(w->file, i);
        layer l;
        if (is_adapter(tensor->name)) continue;
        status = find_layer(w->model, w->file, tensor, &l, error);
        if (!status && l.a) status = add_adapters(w, &l, error);
        if (!status && family->layer_of(w->model, tensor->name) > family->layers(w->model))
            status = add_head(w, tensor, error);
    }
    return status;
}

/* The values from which LoraConfig makes the same modules. */
static cJSON *config_of(const writer *w, const char *base) {
    const cleat_param_options *options = &w->model->options.params;
    cJSON *config = cJSON_CreateObject();
    cJSON_AddStringToObject(config, "peft_type", "LORA");
    if (w->model->type->peft_task)
        cJSON_AddStringToObject(config, "task_type", w->model->type->peft_task);
    else
        cJSON_AddNullToObject(config, "task_type");
    cJSON_AddItemToObject(config, "base_model_name_or_path", base ? cJSON_CreateString(base) : cJSON_CreateNull());
    cJSON_AddNumberToObject(config, "r", (double)options->lora_rank);
    cJSON_AddNumberToObject(config, "lora_alpha", options->lora_alpha);
    cJSON_AddNumberToObject(config, "lora_dropout", options->lora_dropout);
    cJSON_AddStringToObject(config, "bias", "none");
    cJSON_AddBoolToObject(config, "fan_in_fan_out", w->transposed);
    cJSON_AddBoolToObject(config, "inference_mode", true);
    cJSON_AddBoolToObject(config, "init_lora_weights", true);
    cJSON_AddBoolToObject(config, "use_rslora", false);
    cJSON_AddItemReferenceToObject(config, "target_modules", w->modules);
    cJSON_AddItemReferenceToObject(config, "modules_to_save", w->head);
    return config;
}

static cleat_status write_config(const writer *w, const char *base, const char *folder, cleat_error *error) {
    cJSON *config = config_of(w, base);
    const cleat_status status = cleat_json_write_file(folder, "adapter_config.json", config, error);
    cJSON_Delete(config);
    return status;
}

cleat_status cleat_adapters_write(const cleat_model *model, const cleat_architecture *architecture,
                                  const cleat_safetensors *values, const char *base, const char *folder, size_t *count,
                                  cleat_error *error) {
    static const cleat_st_metadata metadata = {"format", "pt"};
    const size_t most = 2 * CLEAT_WEIGHT_PARTS * cleat_safetensors_count(values);
    char path[CLEAT_FILE_PATH];
    if (model->options.params.lora_rank <= 0)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "the run was trained without adapters (train.lora_rank)");
    writer w = {.model = model,
                .architecture = architecture,
                .file = values,
                .places = cleat_alloc(most, sizeof *w.places),
                .tensors = cleat_alloc(most, sizeof *w.tensors),
                .names = cleat_alloc(most, sizeof *w.names),
                .modules = cJSON_CreateArray(),
                .head = cJSON_CreateArray()};
    cleat_status status = CLEAT_OK;
    if (!w.tensors || !w.names || !w.places || !w.modules || !w.head)
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu tensors", most);
    if (!status) status = collect(&w, error);
    if (!status) status = cleat_path_join(folder, "adapter_model.safetensors", path, sizeof path, error);
    const cleat_st_source source = {.data = read_tensor, .user = &w};
    if (!status) status = cleat_safetensors_write_from(path, w.tensors, w.count, &source, &metadata, 1, NULL, error);
    if (!status) status = write_config(&w, base, folder, error);
    if (!status && count) *count = w.count;
    cJSON_Delete(w.modules);
    cJSON_Delete(w.head);
    cleat_free(w.tensors);
    cleat_free(w.names);
    cleat_free(w.places);
    cleat_free(w.values);
    return status;
}

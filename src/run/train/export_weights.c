/* A checkpoint in the files of another framework: weights, description, the family's files. */
#include "cleat/weights.h"
#include "platform/files.h"

#include "core/files.h"
#include "models/model.h"
#include "models/targets.h"
#include "train/adapters.h"
#include "train/model_of_checkpoint.h"
#include "train/model_tensors.h"
#include "weights/gguf_network.h"
#include "weights/gguf_write.h"
#include "weights/write.h"

#include <string.h>

typedef struct export {
    const cleat_profile *profile;
    cleat_checkpoint *checkpoint;
    cleat_model *model;
    const char *out;
    cleat_name_list labels;
    cleat_weights_export_report report;
}
export;

/* --- files of the checkpoint ---------------------------------------------------------------------------------- */

/* All but the training state. */
static cleat_status copy_files(const export *e, cleat_error *error) {
    const cleat_checkpoint_files *files = &e->checkpoint->files;
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < files->count && !status; ++i) {
        const char *name = files->items[i].name;
        if (strcmp(name, CLEAT_OPTIM_FILE) != 0 && strcmp(name, CLEAT_STATE_FILE) != 0)
            status = cleat_file_copy(e->checkpoint->folder, e->out, name, true, error);
    }
    return status;
}

static cleat_status add_files(const export *e, const cleat_architecture *architecture, bool adapters,
                              cleat_error *error) {
    const cleat_model_export spec = {.checkpoint = e->checkpoint->folder,
                                     .out = e->out,
                                     .tensors = e->checkpoint->model,
                                     .architecture = architecture,
                                     .adapters = adapters};
    const cleat_model_class *family = e->model->type;
    return family->export_files ? family->export_files(e->model, &spec, error) : CLEAT_OK;
}

/* --- formats -------------------------------------------------------------------------------------------------- */

static cleat_status get(void *user, const char *setting, char *text, size_t size, cleat_error *error) {
    return cleat_profile_get(user, setting, text, size, error);
}

typedef struct values {
    const cleat_merged_tensors *merged;
    cleat_targets targets; /* of a regression, else without any */
} values;

/* The last layer of a regression gives numbers in their own unit. */
static void unscale(const cleat_targets *targets, const cleat_st_tensor *tensor, float *elements) {
    /* texts; ViT, ConvNeXt; ResNet */
    const bool bias = cleat_has_word("head.out.bias head.bias fc.bias", tensor->name, ' '),
               weight = cleat_has_word("head.out.weight head.weight fc.weight", tensor->name, ' ');
    const size_t all = (size_t)cleat_st_elements(tensor), width = targets->count ? all / targets->count : 0;
    if (!width || (!bias && !weight)) return;
    for (size_t i = 0; i < all; ++i)
        elements[i] = (float)((double)elements[i] * cleat_targets_scale(targets, i / width) +
                              (bias ? cleat_targets_shift(targets, i) : 0));
}

static cleat_status read_values(void *user, const cleat_st_tensor *tensor, float *elements, cleat_error *error) {
    values *v = user;
    cleat_status status = cleat_merged_tensors_read((cleat_merged_tensors *)v->merged, tensor, elements, error);
    if (!status) unscale(&v->targets, tensor, elements);
    return status;
}

static bool is_regression(const export *e) {
    return cleat_settings_problem(e->model->type, e->model->settings) == CLEAT_REGRESSION;
}

static bool is_gguf(cleat_weights_format format) {
    return format >= CLEAT_WEIGHTS_GGUF_F32 && format <= CLEAT_WEIGHTS_GGUF_LORA;
}

/* Whether adapters come with parameters that are saved whole. */
static bool saves_head(const export *e) {
    const cleat_model_class *family = e->model->type;
    for (size_t i = 0; i < cleat_safetensors_count(e->checkpoint->model); ++i)
        if (family->layer_of(e->model, cleat_safetensors_at(e->checkpoint->model, i)->name) > family->layers(e->model))
            return true;
    return false;
}

/* The architecture of the network in the format; NULL, and an error, if it has none. */
static const cleat_architecture *architecture_for(const export *e, cleat_weights_format format, cleat_error *error) {
    const cleat_model_class *family = e->model->type;
    const bool timm = format == CLEAT_WEIGHTS_TIMM;
    const cleat_architecture *architecture = family->architecture ? family->architecture(e->model, timm) : NULL;
    if (!architecture)
        cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                   "%s: %s has no such network; --format %s exports it, --format cleat its weights",
                   e->checkpoint->folder, timm ? "timm" : "transformers",
                   family->instead_of_onnx ? family->instead_of_onnx : "onnx");
    else if (is_gguf(format) && !cleat_gguf_architecture_find(architecture->name, false))
        cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                   "%s: GGUF files are for causal language models, not for networks of type '%s': use --format hf",
                   e->checkpoint->folder, architecture->name);
    else if (architecture->timm != timm && format != CLEAT_WEIGHTS_PEFT)
        cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "%s: networks of type '%s' are exported with --format %s",
                   e->checkpoint->folder, architecture->name, timm ? "hf" : "timm");
    else if (architecture->tied && format == CLEAT_WEIGHTS_PEFT && saves_head(e))
        cleat_fail(
            error, CLEAT_ERR_NOT_SUPPORTED,
            "%s: PEFT saves heads whole, and that of a masked language model has the table of word embeddings as "
            "its last layer; --format hf merges the adapters into the weights",
            e->checkpoint->folder);
    else if (format == CLEAT_WEIGHTS_PEFT && is_regression(e))
        cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                   "%s: the head of adapters predicts standardised numbers, which PEFT does not scale back; --format "
                   "hf merges the adapters into a network that predicts in their unit",
                   e->checkpoint->folder);
    else
        return architecture;
    return NULL;
}

static cleat_weights_content content_of(const export *e, const cleat_architecture *architecture) {
    return (cleat_weights_content){.architecture = architecture,
                                   .model = e->model,
                                   .get = get,
                                   .user = (void *)e->profile,
                                   .labels = (const char *const *)e->labels.names,
                                   .label_count = e->labels.count};
}

static cleat_status write_network(export *e, const cleat_architecture *architecture, const cleat_merged_tensors *merged,
                                  cleat_error *error) {
    values read = {.merged = merged};
    cleat_status status = cleat_labels_read(e->model->type->labels, e->checkpoint->folder, &e->labels, error);
    if (!status && is_regression(e)) status = cleat_targets_read(e->checkpoint->folder, &read.targets, error);
    cleat_weights_content content = content_of(e, architecture);
    content.tensors = merged->items;
    content.tensor_count = merged->count;
    content.read = read_values;
    content.values = &read;
    if (!status) status = cleat_weights_write(&content, e->out, &e->report.tensors, error);
    cleat_targets_free(&read.targets);
    const bool completes = e->model->type->completes_config;
    if (!status && !completes) status = add_files(e, architecture, false, error);
    if (!status) status = cleat_weights_write_config(&content, e->out, error);
    return status || !completes ? status : add_files(e, architecture, false, error);
}

/* Adapters are merged into the weights, because these files have no place for them. */
static cleat_status write_published(export *e, cleat_weights_format format, cleat_error *error) {
    cleat_merged_tensors merged = {0};
    const cleat_architecture *architecture = architecture_for(e, format, error);
    if (!architecture) return CLEAT_ERR_NOT_SUPPORTED;
    cleat_frozen_weights frozen = {0};
    cleat_status status = cleat_frozen_weights_open(e->profile, e->model, e->checkpoint, &frozen, error);
    if (!status) status = cleat_adapters_merge(e->model, &frozen, &merged, error);
    if (!status) status = write_network(e, architecture, &merged, error);
    cleat_merged_tensors_clear(&merged);
    cleat_frozen_weights_clear(&frozen);
    return status;
}

static cleat_status write_adapters(export *e, cleat_weights_format format, cleat_error *error) {
    const cleat_architecture *architecture = architecture_for(e, format, error);
    const char *base = e->profile->init;
    char config[CLEAT_FILE_PATH];
    if (!architecture) return CLEAT_ERR_NOT_SUPPORTED;
    if (!*base || cleat_path_join(base, "config.json", config, sizeof config, NULL) || !cleat_file_exists(config))
        base = NULL;
    cleat_status status =
        cleat_adapters_write(e->model, architecture, e->checkpoint->model, base, e->out, &e->report.tensors, error);
    return status ? status : add_files(e, architecture, true, error);
}

/* --- GGUF ----------------------------------------------------------------------------------------------------- */

/* Removes what is in the folder, but not `kept`. */
static cleat_status remove_others(const char *folder, const char *kept, cleat_error *error) {
    cleat_name_list listing = {0};
    cleat_status status = cleat_listing_read(folder, NULL, &listing, error);
    for (size_t i = 0; i < listing.count && !status; ++i)
        if (strcmp(listing.names[i], kept) != 0) status = cleat_remove_inside(folder, listing.names[i], error);
    cleat_name_list_free(&listing);
    return status;
}

/* Writes the files of transformers or PEFT and converts them. */
static cleat_status write_gguf(export *e, cleat_weights_format format, cleat_error *error) {
    static const cleat_gguf_type types[] = {CLEAT_GGUF_TYPE_F32, CLEAT_GGUF_TYPE_F16, CLEAT_GGUF_TYPE_BF16,
                                            CLEAT_GGUF_TYPE_Q8_0};
    const bool is_adapter = format == CLEAT_WEIGHTS_GGUF_LORA;
    const char *name = is_adapter ? "adapter.gguf" : "model.gguf";
    char path[CLEAT_FILE_PATH];
    cleat_status status = cleat_path_join(e->out, name, path, sizeof path, error);
    if (!status && is_adapter) {
        const cleat_weights_content content = content_of(e, architecture_for(e, format, error));
        status = write_adapters(e, CLEAT_WEIGHTS_PEFT, error);
        if (!status) status = cleat_weights_write_config(&content, e->out, error);
        if (!status) status = cleat_gguf_write_adapters(e->out, path, &e->report.tensors, error);
    } else if (!status) {
        status = write_published(e, CLEAT_WEIGHTS_HF, error);
        if (!status)
            status = cleat_gguf_write(e->out, types[format - CLEAT_WEIGHTS_GGUF_F32], path, &e->report.tensors, error);
    }
    const cleat_status removed = remove_others(e->out, name, status ? NULL : error);
    return status ? status : removed;
}

/* --- the export ----------------------------------------------------------------------------------------------- */

static cleat_status make_folder(const char *out, cleat_error *error) {
    cleat_name_list listing = {0};
    cleat_status status = cleat_folder_make(out, error);
    if (!status) status = cleat_listing_read(out, NULL, &listing, error);
    const size_t count = listing.count;
    cleat_name_list_free(&listing);
    if (status || count == 0) return status;
    return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s: is not empty; name a new folder", out);
}

static cleat_status count_files(export *e, cleat_error *error) {
    cleat_name_list listing = {0};
    cleat_status status = cleat_listing_read(e->out, NULL, &listing, error);
    for (size_t i = 0; i < listing.count && !status; ++i) {
        char path[CLEAT_FILE_PATH];
        struct stat about;
        status = cleat_path_join(e->out, listing.names[i], path, sizeof path, error);
        if (!status && stat(path, &about) == 0) e->report.bytes += about.st_size;
    }
    e->report.files = listing.count;
    cleat_name_list_free(&listing);
    return status;
}

cleat_status cleat_export_weights(const cleat_profile *profile, const char *checkpoint, cleat_weights_format format,
                                  const char *out, cleat_weights_export_report *report, cleat_error *error) {
    export e = {.profile = profile, .out = out};
    cleat_settings settings;
    cleat_status status = cleat_model_settings(profile, &settings, error);
    if (!status) status = cleat_checkpoint_open_best(checkpoint, &e.checkpoint, error);
    if (!status) status = cleat_checkpoint_expect_settings(e.checkpoint, settings.items, settings.count, error);
    if (!status) status = cleat_model_of_checkpoint(profile, e.checkpoint, NULL, &e.model, error);
    if (!status && format != CLEAT_WEIGHTS_CLEAT && !architecture_for(&e, format, error))
        status = CLEAT_ERR_NOT_SUPPORTED;
    if (!status) status = make_folder(out, error);
    if (!status && format == CLEAT_WEIGHTS_CLEAT) {
        e.report.tensors = cleat_safetensors_count(e.checkpoint->model);
        status = copy_files(&e, error);
    } else if (!status && is_gguf(format))
        status = write_gguf(&e, format, error);
    else if (!status)
        status = (format == CLEAT_WEIGHTS_PEFT ? write_adapters : write_published)(&e, format, error);
    if (!status) status = count_files(&e, error);
    if (!status && report) *report = e.report;
    cleat_name_list_free(&e.labels);
    cleat_model_destroy(e.model);
    cleat_checkpoint_close(e.checkpoint);
    return status;
}

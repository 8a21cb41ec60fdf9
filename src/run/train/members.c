/* Outputs of several models, checked to be comparable, kept on the host and combined. */
#include "train/members.h"

#include "core/memory.h"
#include "models/model.h"
#include "train/output_check.h"

#include <string.h>

/* --- what members have in common ------------------------------------------------------------------------------ */

static cleat_status compare_labels(const cleat_name_list *was, const cleat_name_list *is, cleat_error *error) {
    if (was->count != is->count)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%zu and %zu labels", was->count, is->count);
    for (size_t i = 0; i < is->count; ++i)
        if (strcmp(is->names[i], was->names[i]) != 0)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "label %zu is '%.80s' and '%.80s'", i + 1, was->names[i],
                              is->names[i]);
    return CLEAT_OK;
}

/* The files of the fitted preprocessing, and the settings of the data that shape the model. */
static cleat_status compare_fit(const cleat_members *members, const cleat_loaded_model *loaded,
                                const cleat_profile *profile, cleat_error *error) {
    char key[128], was[CLEAT_PROFILE_TEXT], is[CLEAT_PROFILE_TEXT];
    for (size_t i = 0; i < loaded->files.count; ++i) {
        const cleat_checkpoint_file *file = &loaded->files.items[i];
        const cleat_checkpoint_file *other = cleat_checkpoint_find(&members->files, file->name);
        if (strstr(file->name, ".safetensors") || strcmp(file->name, CLEAT_PROFILE_FILE) == 0) continue;
        if (strcmp(file->name, "series_errors.json") == 0) continue; /* of the results */
        if (!other || strcmp(other->hash, file->hash) != 0)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s, what the training data determined, differs", file->name);
    }
    for (size_t i = 0; cleat_profile_shaping_key(profile, i, key, sizeof key); ++i)
        if (strncmp(key, "data.", 5) == 0 && !cleat_profile_get(members->profile, key, was, sizeof was, NULL) &&
            !cleat_profile_get(profile, key, is, sizeof is, NULL) && strcmp(was, is) != 0)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s is %s and %s", key, was, is);
    return CLEAT_OK;
}

static cleat_status compare(const cleat_members *members, const cleat_loaded_model *loaded,
                            const cleat_profile *profile, const cleat_name_list *labels, cleat_error *error) {
    const cleat_model_class *family = loaded->model->type;
    const cleat_targets *targets = loaded->dataset->targets;
    cleat_status status = CLEAT_OK;
    if (cleat_dataset_count(loaded->dataset) != members->samples)
        status = cleat_fail(error, CLEAT_ERR_ARGUMENT, "their settings of [data] select other samples");
    if (!status) status = compare_labels(&members->labels, labels, error);
    if (!status && (targets ? targets->options.problem : CLEAT_SINGLE_LABEL) != members->targets.options.problem)
        status = cleat_fail(error, CLEAT_ERR_ARGUMENT, "model.problem_type differs");
    if (!status && family->combines_same_fit) status = compare_fit(members, loaded, profile, error);
    return status ? cleat_fail_in(error, status, "%s and %s cannot be combined", members->folder, loaded->folder)
                  : CLEAT_OK;
}

cleat_status cleat_members_check(const cleat_member *members, size_t n, cleat_error *error) {
    if (n == 0 || n > CLEAT_MAX_MEMBERS)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%zu checkpoints; 1 to %d are possible", n, CLEAT_MAX_MEMBERS);
    for (size_t i = 1; i < n; ++i)
        if (members[i].profile->family != members[0].profile->family)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s and %s cannot be combined: model.type is %s and %s",
                              members[0].checkpoint, members[i].checkpoint, members[0].profile->family->name,
                              members[i].profile->family->name);
    return CLEAT_OK;
}

cleat_status cleat_members_add(cleat_members *members, size_t count, const cleat_loaded_model *loaded,
                               const cleat_profile *profile, cleat_error *error) {
    const cleat_model_class *family = loaded->model->type;
    cleat_name_list labels = {0};
    if (!family->combine)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "predictions of several models of type %s cannot be combined",
                          family->name);
    cleat_status status = cleat_labels_read(family->labels, loaded->folder, &labels, error);
    if (!status && members->profile) status = compare(members, loaded, profile, &labels, error);
    if (status || members->profile) {
        cleat_name_list_free(&labels);
        return status;
    }
    members->profile = profile;
    members->labels = labels;
    if (loaded->dataset->targets) status = cleat_targets_read(loaded->folder, &members->targets, error);
    members->files = loaded->files;
    members->flops = loaded->flops;
    memcpy(members->folder, loaded->folder, sizeof members->folder);
    members->count = count;
    members->samples = cleat_dataset_count(loaded->dataset);
    members->outputs = cleat_alloc(count * members->samples, sizeof *members->outputs);
    if (members->outputs || status) return status;
    return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the predictions of %zu models", count);
}

void cleat_members_free(cleat_members *members) {
    for (size_t i = 0; members->outputs && i < members->count * members->samples; ++i)
        cleat_prediction_free(&members->outputs[i]);
    cleat_free(members->outputs);
    cleat_name_list_free(&members->labels);
    cleat_targets_free(&members->targets);
    *members = (cleat_members){0};
}

/* --- outputs -------------------------------------------------------------------------------------------------- */

void cleat_members_rescale(const cleat_members *members, const cleat_dataset *dataset, bool back, float *values) {
    const cleat_targets *own = dataset->targets, *common = &members->targets;
    for (size_t k = 0; own && k < common->count; ++k) {
        const cleat_targets *from = back ? common : own, *to = back ? own : common;
        const double scale = cleat_targets_scale(from, k), shift = cleat_targets_shift(from, k),
                     wanted = cleat_targets_scale(to, k), origin = cleat_targets_shift(to, k);
        if (scale != wanted || shift != origin)
            values[k] = (float)(((double)values[k] * scale + shift - origin) / wanted);
    }
}

cleat_status cleat_members_keep(cleat_members *members, size_t member, const cleat_loaded_model *loaded,
                                const cleat_fed_batch *fed, const float *output, cleat_error *error) {
    const cleat_tensor *tensor = loaded->session->work->evaluate[fed->micro_batch->bucket].built.output;
    const int64_t each = cleat_tensor_elements(tensor) / fed->host.batch;
    for (uint32_t b = 0; b < fed->micro_batch->count; ++b) {
        const uint32_t sample = fed->micro_batch->samples[b];
        const int64_t own = cleat_output_own_values(loaded->session, fed, sample, each);
        float *kept = cleat_alloc((size_t)own, sizeof *kept);
        if (!kept)
            return cleat_fail(error, CLEAT_ERR_MEMORY,
                              "no memory for the predictions of %zu models for %zu samples; give fewer at once",
                              members->count, members->samples);
        memcpy(kept, output + (int64_t)b * each, (size_t)own * sizeof *kept);
        cleat_members_rescale(members, loaded->dataset, false, kept);
        cleat_prediction *kept_as = &members->outputs[member * members->samples + sample];
        cleat_prediction_free(kept_as);
        *kept_as = (cleat_prediction){
            .dataset = loaded->dataset, .sample = sample, .output = kept, .length = fed->host.length, .values = own};
    }
    return CLEAT_OK;
}

cleat_status cleat_members_combine(const cleat_members *members, const cleat_loaded_model *loaded, size_t sample,
                                   float *combined, const float *outputs[CLEAT_MAX_MEMBERS], cleat_error *error) {
    const cleat_prediction *first = &members->outputs[sample];
    for (size_t m = 0; m < members->count; ++m) {
        const cleat_prediction *one = first + m * members->samples;
        outputs[m] = one->output;
        if (!one->output)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                              "sample %.80s is not in this split for all checkpoints: one was trained on samples that "
                              "validate another. Evaluate new data: --data PATH --split all",
                              cleat_dataset_id(loaded->dataset, sample));
        if (one->values != first->values)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                              "the predictions of sample %.80s have %lld and %lld values: give checkpoints that were "
                              "trained with the same sizes in [data] (image_size, max_length, horizon)",
                              cleat_dataset_id(loaded->dataset, sample), (long long)first->values,
                              (long long)one->values);
    }
    const cleat_status status =
        loaded->model->type->combine(loaded->model, outputs, members->count, first->values, combined, error);
    if (!status) cleat_members_rescale(members, loaded->dataset, true, combined);
    return status;
}

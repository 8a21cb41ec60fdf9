/* Reader of maps over time from NPY stacks: NAME.npy [T, C, H, W] with NAME_mask.npy [H, W]. */
#include "data/maps/maps.h"

#include "core/files.h"
#include "core/memory.h"
#include "data/common/split_files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char MASK_ENDING[] = "_mask";

typedef struct reader {
    const char *folder;
    const cleat_maps_options *options;
    cleat_maps *maps;
    cleat_name_list stacks, masks; /* NAMEs, sorted */
    cleat_faults faults;
} reader;

/* Warns of settings that apply only to grids: profiles for grids set them, but they have no effect on stacks. */
static void warn_unused(const reader *r) {
    const cleat_maps_options *o = r->options, usual = cleat_maps_defaults();
    const struct {
        const char *name;
        bool given;
    } settings[] = {{"data.inputs", cleat_maps_is_given(o->inputs)},
                    {"data.target", cleat_maps_is_given(o->target)},
                    {"data.ahead", o->horizon != usual.horizon},
                    {"data.missing_days", o->skip_missing},
                    {"data.val_days", o->val_days > 0},
                    {"data.test_days", o->test_days > 0}};
    char names[128] = "";
    size_t used = 0;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; ++i)
        if (settings[i].given)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", settings[i].name);
    if (used == 0 || o->predict) return;
    cleat_log(CLEAT_LOG_WARNING,
              "%s: not applicable to stacks (.npy): %s. A stack is one sample, with all of its channels; val.txt and "
              "test.txt in that folder list the stacks of those splits (without them, data.val_fraction and "
              "data.test_fraction apply)",
              r->folder, names);
}

static bool is_stack(const char *name) {
    return cleat_ends_in(name, ".npy");
}

static cleat_status add_file(reader *r, const char *file, cleat_error *error) {
    char name[CLEAT_FILE_PATH];
    size_t size = strlen(file) - strlen(".npy"), ending = sizeof MASK_ENDING - 1;
    snprintf(name, sizeof name, "%.*s", (int)size, file);
    bool mask = size > ending && strcmp(name + size - ending, MASK_ENDING) == 0;
    if (mask) name[size - ending] = 0;
    return cleat_name_list_add(mask ? &r->masks : &r->stacks, name, error);
}

static cleat_status list_files(reader *r, cleat_error *error) {
    cleat_name_list listing = {0};
    cleat_status status = cleat_listing_read(r->folder, is_stack, &listing, error);
    for (size_t i = 0; i < listing.count && !status; ++i) status = add_file(r, listing.names[i], error);
    cleat_name_list_free(&listing);
    return status;
}

/* Binary search; `names` must be sorted. */
static bool has_name(const cleat_name_list *names, const char *name) {
    return names->count && bsearch(&name, names->names, names->count, sizeof *names->names, cleat_by_bytes);
}

/* Every stack must have a mask (except for prediction), and every mask a stack. */
static cleat_status check_pairs(reader *r, cleat_error *error) {
    if (r->stacks.count) qsort(r->stacks.names, r->stacks.count, sizeof *r->stacks.names, cleat_by_bytes);
    if (r->masks.count) qsort(r->masks.names, r->masks.count, sizeof *r->masks.names, cleat_by_bytes);
    cleat_status status = CLEAT_OK;
    cleat_error why;
    for (size_t i = 0; i < r->masks.count && !status; ++i) {
        if (has_name(&r->stacks, r->masks.names[i])) continue;
        (void)cleat_fail(&why, CLEAT_ERR_FORMAT,
                         "%s/%s_mask.npy: a mask without its stack %s.npy; add the stack, or delete the mask",
                         r->folder, r->masks.names[i], r->masks.names[i]);
        status = cleat_faults_add(&r->faults, &why, error);
    }
    for (size_t i = 0; !r->options->predict && i < r->stacks.count && !status; ++i) {
        if (has_name(&r->masks, r->stacks.names[i])) continue;
        (void)cleat_fail(&why, CLEAT_ERR_FORMAT,
                         "%s/%s.npy: a stack without its mask %s_mask.npy; add the mask, or delete the stack",
                         r->folder, r->stacks.names[i], r->stacks.names[i]);
        status = cleat_faults_add(&r->faults, &why, error);
    }
    if (status || r->stacks.count) return status;
    if (r->faults.count) return cleat_faults_report(&r->faults, error);
    return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "%s: no stack NAME.npy in this folder", r->folder);
}

static cleat_status path_of(const reader *r, const char *name, const char *ending, char path[CLEAT_FILE_PATH],
                            cleat_error *error) {
    char file[CLEAT_FILE_PATH];
    snprintf(file, sizeof file, "%s%s.npy", name, ending);
    return cleat_path_join(r->folder, file, path, CLEAT_FILE_PATH, error);
}

static cleat_status check_stack(const reader *r, const char *path, const cleat_npy *stack, cleat_error *error) {
    const cleat_maps *maps = r->maps;
    const int64_t *shape = stack->shape;
    if (stack->rank != 4)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s: an array of %d dimensions; a stack has 4: time, channel, row, column (one channel: "
                          "array[:, None])",
                          path, stack->rank);
    if (maps->channels && (shape[1] != maps->channels || shape[2] != maps->height || shape[3] != maps->width))
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s: %lld channels of %lld x %lld, but %s has %lld of %lld x %lld; all stacks of a folder "
                          "must have the same channels and size",
                          path, (long long)shape[1], (long long)shape[2], (long long)shape[3], maps->samples[0].path,
                          (long long)maps->channels, (long long)maps->height, (long long)maps->width);
    if (r->options->fitted && (size_t)shape[1] != maps->fitted.channels)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: %lld channels, but the model was trained on %zu", path,
                          (long long)shape[1], maps->fitted.channels);
    return CLEAT_OK;
}

/* Adds the sample of a stack: its last `lookback` steps. */
static cleat_status add_sample(reader *r, const char *name, cleat_split split, cleat_error *error) {
    char path[CLEAT_FILE_PATH];
    cleat_maps *maps = r->maps;
    cleat_maps_sample sample = {.split = split, .first = maps->n_steps, .target = -1, .today = -1};
    cleat_status status = path_of(r, name, "", path, error);
    if (!status) status = cleat_npy_probe(path, &sample.stack, error);
    if (!status) status = check_stack(r, path, &sample.stack, error);
    if (status) return status;
    const int64_t *shape = sample.stack.shape;
    maps->channels = shape[1];
    maps->height = shape[2];
    maps->width = shape[3];
    sample.steps = shape[0] < r->options->lookback ? shape[0] : r->options->lookback;
    sample.skipped = shape[0] - sample.steps;
    maps->n_steps += sample.steps;
    if (has_name(&r->masks, name)) sample.target = maps->n_targets++;
    sample.id = cleat_strdup(name);
    sample.path = cleat_strdup(path);
    if (!sample.id || !sample.path) {
        cleat_free(sample.id);
        cleat_free(sample.path);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the name %.40s", name);
    }
    return cleat_maps_add_sample(maps, &sample, error);
}

static cleat_status add_samples(reader *r, cleat_error *error) {
    const cleat_maps_options *o = r->options;
    size_t count = r->stacks.count;
    cleat_split *splits = cleat_alloc(count, sizeof *splits);
    if (!splits) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for %zu samples", r->folder, count);
    cleat_status status = CLEAT_OK;
    cleat_error why;
    if (!o->predict)
        status = cleat_split_files_read(r->folder, (const char *const *)r->stacks.names, count, o->val_fraction,
                                        o->test_fraction, &(cleat_fold){0}, splits, &r->faults, error);
    for (size_t i = 0; i < count && !status; ++i)
        if (add_sample(r, r->stacks.names[i], o->predict ? CLEAT_SPLIT_TEST : splits[i], &why) != CLEAT_OK)
            status = cleat_faults_add(&r->faults, &why, error);
    if (!status) status = cleat_faults_report(&r->faults, error);
    cleat_free(splits);
    return status;
}

static cleat_status read_mask(const reader *r, const cleat_maps_sample *sample, float *room, cleat_error *error) {
    char path[CLEAT_FILE_PATH];
    cleat_npy mask;
    const cleat_maps *maps = r->maps;
    int64_t pixels = cleat_maps_target_elements(maps);
    if (sample->target < 0) return CLEAT_OK;
    cleat_status status = path_of(r, sample->id, MASK_ENDING, path, error);
    if (!status) status = cleat_npy_probe(path, &mask, error);
    if (status) return status;
    if (mask.rank != 2 || mask.shape[0] != maps->height || mask.shape[1] != maps->width)
        return cleat_fail(
            error, CLEAT_ERR_FORMAT,
            "%s: a mask of %d dimensions, %lld x %lld; the mask must have the shape of its frames, [%lld, %lld]", path,
            mask.rank, (long long)mask.shape[0], (long long)mask.shape[1], (long long)maps->height,
            (long long)maps->width);
    status = cleat_npy_read(path, &mask, 0, pixels, room, error);
    for (int64_t i = 0; i < pixels && !status; ++i) {
        if (room[i] == -1) room[i] = NAN;
        if (room[i] < 0)
            status = cleat_fail(
                error, CLEAT_ERR_FORMAT,
                "%s: %g at row %lld, column %lld; mask values are 0, anything above 0 for 1, and -1 or NaN for unknown",
                path, (double)room[i], (long long)(i / maps->width), (long long)(i % maps->width));
    }
    if (!status) cleat_maps_set_target(room, pixels, maps->targets + sample->target * pixels);
    return status;
}

static cleat_status read_values(reader *r, cleat_error *error) {
    cleat_maps *maps = r->maps;
    int64_t size = cleat_maps_step_elements(maps);
    bool kept = maps->n_steps <= maps->kept_bytes / (int64_t)sizeof *maps->steps / size;
    float *room = cleat_alloc((size_t)cleat_maps_target_elements(maps), sizeof *room);
    cleat_error why;
    cleat_status status = room ? cleat_maps_make_room(maps, r->folder, kept, error)
                               : cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for a mask", r->folder);
    for (size_t i = 0; i < maps->common.base.count && !status; ++i) {
        const cleat_maps_sample *s = &maps->samples[i];
        if (kept)
            status = cleat_npy_read(s->path, &s->stack, s->skipped * size, s->steps * size,
                                    maps->steps + s->first * size, error);
        if (!status && read_mask(r, s, room, &why) != CLEAT_OK) status = cleat_faults_add(&r->faults, &why, error);
    }
    if (!status) status = cleat_faults_report(&r->faults, error);
    if (!status && !kept)
        cleat_log(CLEAT_LOG_INFO, "%s: the stacks are too large to keep in memory and are read again for each sample",
                  r->folder);
    cleat_free(room);
    return status;
}

cleat_status cleat_maps_read_npy(const char *folder, const cleat_maps_options *options, cleat_maps *maps,
                                 cleat_error *error) {
    reader r = {.folder = folder, .options = options, .maps = maps};
    warn_unused(&r);
    cleat_status status = list_files(&r, error);
    if (!status) status = check_pairs(&r, error);
    if (!status) status = add_samples(&r, error);
    if (!status) status = read_values(&r, error);
    cleat_name_list_free(&r.stacks);
    cleat_name_list_free(&r.masks);
    return status;
}

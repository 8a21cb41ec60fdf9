/* Checkpoints of a training run: reads the training state from the device for saving, and writes it back
 * on resume. */
#include "train/checkpointing.h"

#include "cleat/train.h"
#include "core/memory.h"
#include "exec/copy.h"
#include "graph/store.h"
#include "platform/files.h"
#include "train/model_tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Saved parts: the model (parameters and buffers, or their average), the optimizer's moments, and with averaging
 * also the trained parameters and buffers. */
enum { MODEL, MOMENT1, MOMENT2, TRAINED, PARTS };

/* The tensors of all parts, over a host copy of one part at a time: memory may have no room for three
 * copies of a large network. */
typedef struct snapshot {
    cleat_engine *engine;
    int parts;     /* PARTS, or one less without averaging */
    int held;      /* the part in `values`; PARTS: none yet */
    float *values; /* [cleat_session_values] */
    cleat_st_tensor *tensors[PARTS];
    size_t counts[PARTS];
    cleat_st_tensor *optim; /* those of all parts but the model, renamed */
    size_t optim_count;
    char (*names)[CLEAT_NAME + 16];
    void *blocks; /* those of one weight */
} snapshot;

static void snapshot_free(snapshot *copy) {
    for (int k = 0; k < PARTS; ++k) cleat_free(copy->tensors[k]);
    cleat_free(copy->values);
    cleat_free(copy->blocks);
    cleat_free(copy->optim);
    cleat_free(copy->names);
}

/* Makes room in copy->blocks for those of the i-th tensor of the model. */
static cleat_status reserve_blocks(snapshot *copy, size_t i, size_t size, cleat_error *error) {
    cleat_free(copy->blocks);
    copy->blocks = cleat_alloc(size, 1);
    if (copy->blocks) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for '%s'", copy->tensors[MODEL][i].name);
}

/* The blocks of the i-th tensor of the model, a parameter. */
static const cleat_tensor *blocks_of(const snapshot *copy, size_t i) {
    const cleat_store *store = copy->engine->session->work->store;
    return cleat_store_blocks_of(store, cleat_store_param(store, i));
}

static void drop_blocks(cleat_st_tensor *tensors, size_t *count) {
    size_t kept = 0;
    for (size_t i = 0; i < *count; ++i)
        if (!tensors[i].blocks) tensors[kept++] = tensors[i];
    *count = kept;
}

/* optim.safetensors contains NAME.moment1, NAME.moment2 if the optimizer has them, and with averaging NAME.trained of
 * all but weights in blocks. */
static cleat_status snapshot_create(cleat_engine *engine, snapshot *made, cleat_error *error) {
    static const char *const suffix[PARTS] = {"", ".moment1", ".moment2", ".trained"};
    cleat_status status = CLEAT_OK;
    made->engine = engine;
    made->held = PARTS;
    made->parts = cleat_average_is_on(&engine->average) ? PARTS : PARTS - 1;
    made->values = cleat_alloc((size_t)cleat_session_values(engine->session), sizeof(float));
    if (!made->values) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a checkpoint");
    for (int k = 0; k < made->parts && !status; ++k) {
        if (k >= MOMENT1 + cleat_session_moments(engine->session) && k <= MOMENT2)
            continue; /* the optimizer lacks it */
        const bool buffers = k == MODEL || k == TRAINED;
        status =
            cleat_session_tensors(engine->session, made->values, buffers, &made->tensors[k], &made->counts[k], error);
        if (k == TRAINED) drop_blocks(made->tensors[k], &made->counts[k]);
        if (k != MODEL) made->optim_count += made->counts[k];
    }
    if (status) return status;
    made->optim = cleat_alloc(made->optim_count, sizeof *made->optim);
    made->names = cleat_alloc(made->optim_count, sizeof *made->names);
    if (!made->optim || !made->names) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a checkpoint");
    size_t at = 0;
    for (int k = MOMENT1; k < made->parts; ++k)
        for (size_t i = 0; i < made->counts[k]; ++i, ++at) {
            snprintf(made->names[at], sizeof made->names[at], "%s%s", made->tensors[k][i].name, suffix[k]);
            made->optim[at] = made->tensors[k][i];
            made->optim[at].name = made->names[at];
        }
    return CLEAT_OK;
}

static cleat_status read_part(snapshot *copy, int part, cleat_error *error) {
    cleat_session *session = copy->engine->session;
    const cleat_average *average = &copy->engine->average;
    cleat_status status = CLEAT_OK;
    if (copy->held == part) return CLEAT_OK;
    copy->held = part;
    if (part == MOMENT1 || part == MOMENT2)
        return cleat_session_read_flat(session, part == MOMENT1 ? CLEAT_FLAT_MOMENTS1 : CLEAT_FLAT_MOMENTS2,
                                       copy->values, error);
    if (part == MODEL && copy->parts == PARTS && average->epochs)
        memcpy(copy->values, average->mean, (size_t)cleat_session_values(session) * sizeof(float));
    else
        status = cleat_session_read_values(session, copy->values, error);
    return status;
}

static cleat_status write_part(const snapshot *copy, int part, cleat_error *error) {
    cleat_session *session = copy->engine->session;
    if (part == MOMENT1 || part == MOMENT2)
        return cleat_session_write_flat(session, part == MOMENT1 ? CLEAT_FLAT_MOMENTS1 : CLEAT_FLAT_MOMENTS2,
                                        copy->values, error);
    if (part == TRAINED || copy->parts < PARTS) return cleat_session_write_values(session, copy->values, error);
    memcpy(copy->engine->average.mean, copy->values, (size_t)cleat_session_values(session) * sizeof(float));
    return CLEAT_OK;
}

static cleat_status model_data(void *user, size_t i, const void **data, cleat_error *error) {
    snapshot *copy = user;
    const cleat_st_tensor *tensor = &copy->tensors[MODEL][i];
    *data = tensor->data;
    if (!tensor->blocks) return read_part(copy, MODEL, error);
    cleat_status status = reserve_blocks(copy, i, cleat_st_bytes(tensor), error);
    if (!status)
        status = cleat_exec_read_unchecked(copy->engine->session->exec, 0, blocks_of(copy, i), copy->blocks, error);
    *data = copy->blocks;
    return status;
}

static cleat_status optim_data(void *user, size_t i, const void **data, cleat_error *error) {
    snapshot *copy = user;
    int part = MOMENT1;
    *data = copy->optim[i].data;
    for (size_t end = copy->counts[part]; i >= end; end += copy->counts[part]) ++part;
    return read_part(copy, part, error);
}

/* Restores a weight that the device has in blocks: blocks of the same type as they are, because quantising their values
 * again may change the scales. */
static cleat_status restore_blocks(const cleat_checkpoint *checkpoint, snapshot *copy, size_t i, cleat_error *error) {
    const cleat_st_tensor *own = &copy->tensors[MODEL][i],
                          *found = cleat_safetensors_find(checkpoint->model, own->name);
    const bool same = found->blocks == own->blocks;
    const size_t elements = (size_t)cleat_st_elements(own);
    const cleat_tensor *to = same ? blocks_of(copy, i) : cleat_store_param(copy->engine->session->work->store, i);
    cleat_status status = reserve_blocks(copy, i, same ? cleat_st_bytes(own) : elements * sizeof(float), error);
    if (status) return status;
    status = same ? cleat_safetensors_read_stored(checkpoint->model, found, copy->blocks, error)
                  : cleat_safetensors_read(checkpoint->model, found, 0, (int64_t)elements, copy->blocks, error);
    return status ? status : cleat_exec_write_unchecked(copy->engine->session->exec, 0, to, copy->blocks, error);
}

/* Writes the parts of a checkpoint, whose tensors have been checked, to the device. */
static cleat_status restore(const cleat_checkpoint *checkpoint, snapshot *copy, cleat_error *error) {
    const cleat_st_tensor *tensor = copy->optim;
    cleat_status status = CLEAT_OK;
    for (int k = 0; k < copy->parts && !status; ++k) {
        const cleat_safetensors *file = k == MODEL ? checkpoint->model : checkpoint->optim;
        for (size_t i = 0; i < copy->counts[k] && !status; ++i) {
            const cleat_st_tensor *to = k == MODEL ? &copy->tensors[MODEL][i] : tensor++;
            const cleat_st_tensor *found = cleat_safetensors_find(file, to->name);
            if (k == MODEL && to->blocks)
                status = restore_blocks(checkpoint, copy, i, error);
            else
                status = cleat_safetensors_read(file, found, 0, cleat_st_elements(found), (void *)to->data, error);
        }
        if (!status && copy->counts[k]) status = write_part(copy, k, error);
    }
    return status;
}

/* --- the loss scale ------------------------------------------------------------------------------------------- */

cleat_status cleat_checkpointing_collect(cleat_engine *engine, cleat_train_state *state, cleat_error *error) {
    cleat_loss_scale_values loss_scale;
    state->averaged_epochs = engine->average.epochs;
    if (!cleat_session_has_loss_scale(engine->session)) return CLEAT_OK;
    cleat_status status = cleat_session_read_loss_scale(engine->session, &loss_scale, error);
    if (status) return status;
    state->loss_scale = loss_scale.loss_scale;
    state->clean_steps = loss_scale.clean_steps;
    return CLEAT_OK;
}

/* A run may be resumed in another precision, because parameters and moments are always f32. The additional
 * state of f16, its loss scale, is then dropped, or starts as in a new run. */
static cleat_status resume_loss_scale(cleat_session *session, cleat_train_state *state, cleat_error *error) {
    cleat_loss_scale_values loss_scale;
    if (!cleat_session_has_loss_scale(session)) {
        if (state->loss_scale > 0)
            cleat_log(CLEAT_LOG_INFO, "the checkpoint was trained in f16: its loss scale is no longer needed");
        state->loss_scale = 0;
        state->clean_steps = 0;
        return CLEAT_OK;
    }
    cleat_status status = cleat_session_read_loss_scale(session, &loss_scale, error);
    if (status) return status;
    if (state->loss_scale > 0) {
        loss_scale.loss_scale = (float)state->loss_scale;
        loss_scale.clean_steps = (int32_t)state->clean_steps;
    } else {
        cleat_log(CLEAT_LOG_INFO, "the checkpoint was not trained in f16: the loss scale starts at %g",
                  (double)loss_scale.loss_scale);
    }
    loss_scale.updates = (int32_t)(state->step - state->skipped_steps);
    return cleat_session_write_loss_scale(session, &loss_scale, error);
}

/* --- the profile ---------------------------------------------------------------------------------------------- */

/* The profile as text for a process that starts in another folder. A path that is too long, or does not exist
 * (synthetic data), stays as given. */
static cleat_status profile_text(const cleat_profile *profile, char **text, cleat_error *error) {
    cleat_profile *copy = NULL;
    cleat_status status = cleat_profile_clone(profile, &copy, error);
    if (status) return status;
    char *path = realpath(profile->data->path, NULL);
    if (path && strlen(path) < sizeof copy->data->path) snprintf(copy->data->path, sizeof copy->data->path, "%s", path);
    status = cleat_profile_dump(copy, text, error);
    cleat_profile_destroy(copy);
    free(path);
    return status;
}

cleat_status cleat_profile_of_checkpoint(const char *checkpoint, const char *const *assignments, size_t count,
                                         cleat_profile **profile, cleat_error *error) {
    /* chosen for the machine of the training */
    static const char *const local[] = {"run.device=auto", "run.out=auto", "loader.num_workers=auto"};
    char path[CLEAT_CHECKPOINT_PATH];
    cleat_profile *made = NULL;
    cleat_status status = cleat_checkpoint_find_profile(checkpoint, path, error);
    if (!status) status = cleat_profile_create(&made, error);
    if (!status) status = cleat_profile_read(made, path, error);
    for (size_t i = 0; i < sizeof local / sizeof *local && !status; ++i)
        status = cleat_profile_set(made, local[i], error);
    for (size_t i = 0; i < count && !status; ++i) status = cleat_profile_set(made, assignments[i], error);
    if (!status) status = cleat_profile_check(made, error);
    if (status) {
        cleat_profile_destroy(made);
        return status;
    }
    cleat_log(CLEAT_LOG_INFO, "profile: %s", path);
    *profile = made;
    return CLEAT_OK;
}

/* --- saving and resuming -------------------------------------------------------------------------------------- */

cleat_status cleat_checkpointing_save(const char *folder, cleat_engine *engine, const cleat_train_state *state,
                                      const cleat_profile *profile, const cleat_dataset *dataset, bool best,
                                      cleat_error *error) {
    snapshot copy = {0};
    cleat_settings settings;
    char *text = NULL;
    cleat_status status = cleat_model_settings(profile, &settings, error);
    if (!status) status = profile_text(profile, &text, error);
    if (!status) status = snapshot_create(engine, &copy, error);
    if (!status) {
        const cleat_st_source model = {model_data, &copy}, optim = {optim_data, &copy};
        cleat_checkpoint_content content = {.state = state,
                                            .model = copy.tensors[MODEL],
                                            .model_count = copy.counts[MODEL],
                                            .optim = copy.optim,
                                            .optim_count = copy.optim_count,
                                            .settings = settings.stored,
                                            .settings_count = settings.n_stored,
                                            .profile = text,
                                            .dataset = dataset,
                                            .model_data = &model,
                                            .optim_data = &optim};
        status = cleat_checkpoint_write(folder, &content, best, profile->run.keep_checkpoints, NULL, error);
    }
    snapshot_free(&copy);
    free(text);
    return status;
}

cleat_status cleat_checkpointing_resume(const cleat_checkpoint *checkpoint, cleat_engine *engine,
                                        cleat_train_state *state, cleat_error *error) {
    snapshot copy = {0};
    cleat_status status = snapshot_create(engine, &copy, error);
    if (!status) status = cleat_safetensors_check(checkpoint->model, copy.tensors[MODEL], copy.counts[MODEL], error);
    if (!status) status = cleat_safetensors_check(checkpoint->optim, copy.optim, copy.optim_count, error);
    if (!status) status = restore(checkpoint, &copy, error);
    snapshot_free(&copy);
    if (status) return status;
    *state = checkpoint->state;
    engine->average.epochs = state->averaged_epochs;
    return resume_loss_scale(engine->session, state, error);
}

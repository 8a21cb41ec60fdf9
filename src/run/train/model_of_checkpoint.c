/* The sizes of a trained model, found from the shapes of its parameters. */
#include "train/model_of_checkpoint.h"

#include "graph/graph.h"
#include "models/model.h"

#include <stdio.h>
#include <string.h>

/* --- tensors of a checkpoint ------------------------------------------------------------------------------------ */

/* PREFIX_mean or PREFIX_var of the pair PREFIX [2, C] (model_tensors.c). */
static const cleat_st_tensor *find_pair(const cleat_checkpoint *checkpoint, const char *name, int64_t *row) {
    static const char *const tails[] = {"_mean", "_var"};
    char prefix[CLEAT_NAME];
    for (int i = 0; i < 2; ++i) {
        const size_t length = strlen(name), tail = strlen(tails[i]);
        if (length <= tail || strcmp(name + length - tail, tails[i]) != 0) continue;
        snprintf(prefix, sizeof prefix, "%.*s", (int)(length - tail), name);
        *row = i;
        return cleat_safetensors_find(checkpoint->model, prefix);
    }
    return NULL;
}

const cleat_st_tensor *cleat_checkpoint_tensor(const cleat_checkpoint *checkpoint, const cleat_tensor *tensor,
                                               int64_t *row) {
    const cleat_st_tensor *found = cleat_safetensors_find(checkpoint->model, tensor->name);
    *row = 0;
    if (found) return found->rank == tensor->rank && found->dtype == CLEAT_ST_F32 ? found : NULL;
    found = find_pair(checkpoint, tensor->name, row);
    return found && found->rank == tensor->rank + 1 && found->shape[0] == 2 && found->dtype == CLEAT_ST_F32 ? found
                                                                                                            : NULL;
}

/* --- sizes ------------------------------------------------------------------------------------------------------ */

typedef struct trial {
    cleat_store *store;
    cleat_graph *graph;
} trial;

static void trial_free(trial *t) {
    cleat_graph_destroy(t->graph);
    cleat_store_destroy(t->store);
    *t = (trial){NULL, NULL};
}

/* The parameters of the model with these sizes. */
static cleat_status try_sizes(cleat_model *model, const cleat_model_sizes *sizes, int64_t length, trial *made,
                              cleat_error *error) {
    trial t = {NULL, NULL};
    cleat_model_graph built;
    const cleat_model_sizes before = model->sizes;
    model->sizes = *sizes;
    cleat_status status = cleat_store_create(&t.store, error);
    if (!status) status = cleat_graph_create(t.store, "trial", &t.graph, error);
    if (!status) {
        cleat_model_build(model, t.graph, CLEAT_MODE_PREDICT, 1, length, &built);
        status = cleat_graph_status(t.graph, error);
    }
    model->sizes = before;
    if (status)
        trial_free(&t);
    else
        *made = t;
    return status;
}

/* Fails with the first parameter that the checkpoint does not have in this shape. */
static cleat_status compare(const cleat_store *store, const cleat_checkpoint *checkpoint, cleat_error *error) {
    int64_t row;
    for (size_t i = 0; i < store->count; ++i) {
        const cleat_tensor *param = store->params[i];
        const cleat_st_tensor *found = cleat_checkpoint_tensor(checkpoint, param, &row);
        char text[96];
        cleat_tensor_describe(param, text, sizeof text);
        if (!found || memcmp(found->shape + (found->rank - param->rank), param->shape,
                             (size_t)param->rank * sizeof *param->shape) != 0)
            return cleat_fail(
                error, CLEAT_ERR_FORMAT,
                "%s: the parameter '%s' of this profile, %s, %s; the profile must be that of the training",
                checkpoint->folder, param->name, text, found ? "has another shape there" : "is not in the checkpoint");
    }
    return CLEAT_OK;
}

/* Two values of a size; a dimension that differs between them is a multiple of the size, plus a constant. */
enum { LESS = 16, MORE = 24 };

/* The size that gives a dimension the checkpoint's value; 0: none. */
static int64_t solve(int64_t less, int64_t more, int64_t wanted) {
    const int64_t slope = (more - less) / (MORE - LESS);
    if (less == more || slope == 0 || (more - less) % (MORE - LESS) || (wanted - less) % slope) return 0;
    const int64_t size = LESS + (wanted - less) / slope;
    return size > 0 ? size : 0;
}

static int64_t find_size(const cleat_store *less, const cleat_store *more, const cleat_checkpoint *checkpoint) {
    int64_t row;
    for (size_t i = 0; i < less->count && i < more->count; ++i) {
        const cleat_tensor *a = less->params[i], *b = more->params[i];
        const cleat_st_tensor *found = cleat_checkpoint_tensor(checkpoint, a, &row);
        for (int axis = 0; found && axis < a->rank && a->rank == b->rank && found->rank == a->rank; ++axis) {
            const int64_t size = solve(a->shape[axis], b->shape[axis], found->shape[axis]);
            if (size) return size;
        }
    }
    return 0;
}

/* `member` points into `sizes`. */
static cleat_status find_member(cleat_model *model, cleat_model_sizes *sizes, int64_t *member, int64_t length,
                                const cleat_checkpoint *checkpoint, cleat_error *error) {
    const int64_t before = *member;
    trial less = {NULL, NULL}, more = {NULL, NULL};
    *member = LESS;
    cleat_status status = try_sizes(model, sizes, length, &less, error);
    *member = MORE;
    if (!status) status = try_sizes(model, sizes, length, &more, error);
    *member = status ? 0 : find_size(less.store, more.store, checkpoint);
    if (*member == 0) *member = before;
    trial_free(&less);
    trial_free(&more);
    return status;
}

/* Classes come last, because a forecast of the same width has none. */
static cleat_status find_sizes(cleat_model *model, int64_t length, const cleat_checkpoint *checkpoint,
                               cleat_error *error) {
    cleat_model_sizes sizes = model->sizes;
    int64_t *const members[] = {&sizes.inputs, &sizes.outputs, &sizes.vocabulary, &sizes.classes};
    cleat_status status = CLEAT_OK;
    for (size_t i = 0;; ++i) {
        trial t = {NULL, NULL};
        cleat_error unfit = {0};
        status = try_sizes(model, &sizes, length, &t, error);
        const bool fits = !status && compare(t.store, checkpoint, &unfit) == CLEAT_OK;
        trial_free(&t);
        if (fits) model->sizes = sizes;
        if (fits || status) return status;
        if (i == sizeof members / sizeof *members) return cleat_fail(error, unfit.status, "%s", unfit.text);
        status = find_member(model, &sizes, members[i], length, checkpoint, error);
        if (status) return status;
    }
}

/* --- the model -------------------------------------------------------------------------------------------------- */

int64_t cleat_model_longest(const cleat_profile *profile, const cleat_model *model) {
    const int64_t fixed = cleat_model_fixed_length(model);
    return fixed ? fixed : profile->data->max_length;
}

/* Takes sizes from data, which are closed again. */
static cleat_status open_data(cleat_model *model, const cleat_profile *profile, const char *data, const char *fitted,
                              cleat_error *error) {
    cleat_dataset *dataset = NULL;
    cleat_status status =
        cleat_model_open_data(model, data ? data : profile->data->path, CLEAT_MODE_PREDICT, fitted, &dataset, error);
    cleat_dataset_destroy(dataset);
    if (status && !data)
        return cleat_fail_in(error, status,
                             "the network depends on the size of %s; give data of that size with --data PATH",
                             model->type->sized_by);
    return status;
}

cleat_status cleat_model_of_checkpoint(const cleat_profile *profile, const cleat_checkpoint *checkpoint,
                                       const char *data, cleat_model **model, cleat_error *error) {
    cleat_model *made = NULL;
    cleat_status status = cleat_profile_create_model(profile, &made, error);
    if (!status && made->type->sized_by) status = open_data(made, profile, data, checkpoint->folder, error);
    if (!status) status = find_sizes(made, cleat_model_longest(profile, made), checkpoint, error);
    if (status) {
        cleat_model_destroy(made);
        return status;
    }
    *model = made;
    return CLEAT_OK;
}

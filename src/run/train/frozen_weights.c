/* Frozen parameters, read again from model.init. */
#include "train/frozen_weights.h"

#include "core/half.h"
#include "core/memory.h"
#include "graph/graph.h"
#include "graph/store.h"
#include "models/param_rules.h"
#include "profile/adopt.h"
#include "train/init_weights.h"
#include "train/model_of_checkpoint.h"

#include <string.h>

/* Elements compared at a time. */
enum { BLOCK = 1 << 14 };

/* Rounding modes that a device may have used. */
static const struct {
    void (*to)(const float *values, size_t count, uint16_t *bits);
    void (*from)(const uint16_t *bits, size_t count, float *values);
} roundings[] = {{cleat_to_f16, cleat_from_f16}, {cleat_to_bf16, cleat_from_bf16}};
enum { ROUNDINGS = sizeof roundings / sizeof *roundings };

/* Whether `values` [count], rounded, equal `rounded`. */
static bool agree(int rounding, const float *values, const float *rounded, int64_t count) {
    uint16_t bits[256];
    float back[256];
    for (int64_t i = 0; i < count; i += 256) {
        const size_t some = (size_t)(count - i < 256 ? count - i : 256);
        roundings[rounding].to(values + i, some, bits);
        roundings[rounding].from(bits, some, back);
        for (size_t k = 0; k < some; ++k)
            if (back[k] != rounded[i + (int64_t)k]) return false;
    }
    return true;
}

/* --- the checkpoint -------------------------------------------------------------------------------------------- */

static bool is_frozen(const cleat_model *model, const cleat_tensor *param) {
    cleat_param_rule rule = {0};
    cleat_model_choose_rule((void *)model, param->name, param->rank, &rule);
    return rule.frozen;
}

/* *half: whether a matrix has only half values, not all of them zero. */
static cleat_status find_half(const cleat_safetensors *file, const cleat_st_tensor *matrix, bool *half,
                              cleat_error *error) {
    const int64_t count = cleat_st_elements(matrix);
    float values[BLOCK];
    bool any = false, agrees[ROUNDINGS] = {true, true};
    for (int64_t i = 0; i < count && (agrees[0] || agrees[1]); i += BLOCK) {
        const int64_t some = count - i < BLOCK ? count - i : BLOCK;
        cleat_status status = cleat_safetensors_read(file, matrix, i, some, values, error);
        if (status) return status;
        for (int64_t k = 0; k < some && !any; ++k) any = values[k] != 0;
        for (int r = 0; r < ROUNDINGS; ++r) agrees[r] = agrees[r] && agree(r, values, values, some);
    }
    *half = any && (agrees[0] || agrees[1]);
    return CLEAT_OK;
}

/* *any: whether some frozen matrix has only half values. */
static cleat_status find_halves(const cleat_model *model, const cleat_store *store, const cleat_checkpoint *checkpoint,
                                bool *any, cleat_error *error) {
    int64_t row;
    cleat_status status = CLEAT_OK;
    *any = false;
    for (size_t i = 0; i < store->count && !status && !*any; ++i) {
        const cleat_tensor *param = store->params[i];
        const cleat_st_tensor *found = cleat_checkpoint_tensor(checkpoint, param, &row);
        if (param->rank >= 2 && found && is_frozen(model, param))
            status = find_half(checkpoint->model, found, any, error);
    }
    return status;
}

/* --- the weights ----------------------------------------------------------------------------------------------- */

typedef struct comparison {
    cleat_frozen_weights *frozen;
    bool same, agrees[ROUNDINGS]; /* the current parameter, as read so far */
    const char *other;            /* a parameter that differs by more than rounding; NULL: none */
} comparison;

/* Compares a part of a parameter with the checkpoint. */
static cleat_status compare_part(comparison *c, const cleat_st_tensor *found, int64_t first, int64_t count,
                                 const float *values, cleat_error *error) {
    float there[BLOCK];
    for (int64_t i = 0; i < count; i += BLOCK) {
        const int64_t some = count - i < BLOCK ? count - i : BLOCK;
        cleat_status status =
            cleat_safetensors_read(c->frozen->checkpoint->model, found, first + i, some, there, error);
        if (status) return status;
        c->same = c->same && memcmp(values + i, there, (size_t)some * sizeof *there) == 0;
        for (int r = 0; r < ROUNDINGS; ++r) c->agrees[r] = c->agrees[r] && agree(r, values + i, there, some);
    }
    return CLEAT_OK;
}

static cleat_status compare(void *user, cleat_tensor *param, int64_t first, int64_t count, const float *values,
                            cleat_error *error) {
    comparison *c = user;
    int64_t row;
    const cleat_st_tensor *found = cleat_checkpoint_tensor(c->frozen->checkpoint, param, &row);
    if (param->is_buffer || c->other || !found || !is_frozen(c->frozen->target.model, param)) return CLEAT_OK;
    if (first == 0) c->same = c->agrees[0] = c->agrees[1] = true;
    cleat_status status = compare_part(c, found, first, count, values, error);
    if (status || first + count < cleat_tensor_elements(param) || c->same) return status;
    if (!c->agrees[0] && !c->agrees[1]) {
        c->other = found->name;
        return CLEAT_OK;
    }
    cleat_frozen_weights *frozen = c->frozen;
    status = cleat_grow(&frozen->items, frozen->count, &frozen->capacity, error);
    if (!status) frozen->items[frozen->count++] = param;
    return status;
}

/* A parameter that the weights lack was drawn at random; the run's values are exact. */
static cleat_status ignore(void *user, cleat_tensor *param, cleat_error *error) {
    (void)user, (void)param, (void)error;
    return CLEAT_OK;
}

static cleat_status compare_weights(const cleat_profile *profile, const cleat_model *model,
                                    cleat_frozen_weights *frozen, cleat_error *error) {
    comparison c = {.frozen = frozen};
    cleat_weight_report report = {0};
    frozen->target = (cleat_weight_target){.store = frozen->store, .write = compare, .draw = ignore, .user = &c};
    cleat_status status = cleat_open_init(profile->init, &frozen->weights, error);
    if (!status) status = cleat_profile_find_parameters(profile, model, frozen->weights, &frozen->target, error);
    if (!status) status = cleat_weights_load(frozen->weights, &frozen->target, &report, error);
    if (!status && c.other) status = cleat_fail(error, CLEAT_ERR_NOT_FOUND, "'%s' has other values there", c.other);
    cleat_weight_report_free(&report);
    return status;
}

/* --- both ----------------------------------------------------------------------------------------------------- */

static cleat_status make_store(const cleat_profile *profile, const cleat_model *model, cleat_frozen_weights *frozen,
                               cleat_error *error) {
    cleat_model_graph built;
    cleat_status status = cleat_store_create(&frozen->store, error);
    if (!status) status = cleat_graph_create(frozen->store, "frozen", &frozen->graph, error);
    if (status) return status;
    cleat_model_build(model, frozen->graph, CLEAT_MODE_PREDICT, 1, cleat_model_longest(profile, model), &built);
    return cleat_graph_status(frozen->graph, error);
}

/* Takes all of them from the weights, or none. */
static void choose(const cleat_profile *profile, const cleat_model *model, cleat_frozen_weights *frozen) {
    cleat_error why = {0};
    if (compare_weights(profile, model, frozen, &why)) {
        frozen->count = 0;
        cleat_log(CLEAT_LOG_WARNING,
                  "frozen parameters are exported as the run has them, rounded by train.precision or "
                  "train.frozen_weights: those of model.init = %s cannot be used: %s",
                  profile->init, why.text);
    } else if (frozen->count > 0) {
        cleat_log(CLEAT_LOG_INFO, "%zu frozen tensors are exported as they are in model.init = %s", frozen->count,
                  profile->init);
    }
}

cleat_status cleat_frozen_weights_open(const cleat_profile *profile, const cleat_model *model,
                                       const cleat_checkpoint *checkpoint, cleat_frozen_weights *frozen,
                                       cleat_error *error) {
    bool halves = false;
    *frozen = (cleat_frozen_weights){.checkpoint = checkpoint};
    if (!*profile->init || !cleat_model_has_rules(model)) return CLEAT_OK;
    cleat_status status = make_store(profile, model, frozen, error);
    if (!status) status = find_halves(model, frozen->store, checkpoint, &halves, error);
    if (!status && halves) choose(profile, model, frozen);
    if (status) cleat_frozen_weights_clear(frozen);
    return status;
}

static cleat_status copy_part(void *user, cleat_tensor *param, int64_t first, int64_t count, const float *values,
                              cleat_error *error) {
    (void)param, (void)error;
    memcpy((float *)user + first, values, (size_t)count * sizeof *values);
    return CLEAT_OK;
}

cleat_status cleat_frozen_weights_read(const cleat_frozen_weights *frozen, const cleat_st_tensor *tensor, float *values,
                                       cleat_error *error) {
    cleat_weight_target target = frozen->target;
    target.write = copy_part;
    target.user = values;
    for (size_t i = 0; i < frozen->count; ++i)
        if (strcmp(frozen->items[i]->name, tensor->name) == 0)
            return cleat_weights_load_one(frozen->weights, &target, frozen->items[i], error);
    const cleat_safetensors *file = frozen->checkpoint->model;
    const cleat_st_tensor *own = cleat_safetensors_find(file, tensor->name); /* `tensor` may be a copy */
    if (!own || own->dtype != CLEAT_ST_F32)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: has no f32 tensor '%.100s'", frozen->checkpoint->folder,
                          tensor->name);
    return cleat_safetensors_read(file, own, 0, cleat_st_elements(own), values, error);
}

void cleat_frozen_weights_clear(cleat_frozen_weights *frozen) {
    cleat_weights_close(frozen->weights);
    cleat_graph_destroy(frozen->graph);
    cleat_store_destroy(frozen->store);
    cleat_free(frozen->items);
    *frozen = (cleat_frozen_weights){0};
}

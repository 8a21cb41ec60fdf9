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

#include <math.h>
#include <string.h>

/* Rounds to a half and back. */
typedef float (*rounding)(float value);

static float round_f16(float value) {
    uint16_t bits;
    cleat_to_f16(&value, 1, &bits);
    cleat_from_f16(&bits, 1, &value);
    return value;
}

static float round_bf16(float value) {
    uint16_t bits;
    cleat_to_bf16(&value, 1, &bits);
    cleat_from_bf16(&bits, 1, &value);
    return value;
}

static const rounding roundings[] = {round_f16, round_bf16};
enum { ROUNDINGS = sizeof roundings / sizeof *roundings };

/* Whether `values` [count], rounded, are `rounded`. */
static bool agree(rounding round, const float *values, const float *rounded, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
        if (round(values[i]) != rounded[i]) return false;
    return true;
}

/* --- what the checkpoint has ---------------------------------------------------------------------------------- */

static bool is_frozen(const cleat_model *model, const cleat_tensor *param) {
    cleat_param_rule rule = {0};
    cleat_model_choose_rule((void *)model, param->name, param->rank, &rule);
    return rule.frozen;
}

/* Whether a matrix consists of halves, some of which are not zero. */
static bool is_half(const cleat_st_tensor *matrix) {
    const float *values = matrix->data;
    const int64_t count = cleat_st_elements(matrix);
    bool any = false;
    for (int64_t i = 0; i < count && !any; ++i) any = values[i] != 0;
    for (int r = 0; r < ROUNDINGS && any; ++r)
        if (agree(roundings[r], values, values, count)) return true;
    return false;
}

static bool has_halves(const cleat_model *model, const cleat_store *store, const cleat_checkpoint *checkpoint) {
    int64_t row;
    for (size_t i = 0; i < store->count; ++i) {
        const cleat_tensor *param = store->params[i];
        const cleat_st_tensor *found = cleat_checkpoint_tensor(checkpoint, param, &row);
        if (param->rank >= 2 && found && is_frozen(model, param) && is_half(found)) return true;
    }
    return false;
}

/* --- what the weights have ------------------------------------------------------------------------------------ */

typedef struct reader {
    const cleat_model *model;
    const cleat_checkpoint *checkpoint;
    cleat_frozen_weights *frozen;
    const char *other; /* a parameter that differs by more than rounding; NULL: none */
} reader;

static cleat_status keep(reader *r, const cleat_st_tensor *tensor, const float *values, cleat_error *error) {
    cleat_frozen_weights *frozen = r->frozen;
    cleat_st_tensor made = *tensor;
    float *copy = cleat_alloc(cleat_st_bytes(tensor), 1);
    cleat_status status = cleat_grow(&frozen->items, frozen->count, &frozen->capacity, sizeof *frozen->items, error);
    if (!status && !copy) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for '%s'", tensor->name);
    if (status) {
        cleat_free(copy);
        return status;
    }
    memcpy(copy, values, cleat_st_bytes(tensor));
    made.data = copy;
    frozen->items[frozen->count++] = made;
    return CLEAT_OK;
}

static cleat_status compare(void *user, cleat_tensor *param, const float *values, cleat_error *error) {
    reader *r = user;
    int64_t row;
    const cleat_st_tensor *found = cleat_checkpoint_tensor(r->checkpoint, param, &row);
    if (param->is_buffer || r->other || !found || !is_frozen(r->model, param)) return CLEAT_OK;
    if (memcmp(values, found->data, cleat_st_bytes(found)) == 0) return CLEAT_OK;
    for (int i = 0; i < ROUNDINGS; ++i)
        if (agree(roundings[i], values, found->data, cleat_st_elements(found))) return keep(r, found, values, error);
    r->other = found->name;
    return CLEAT_OK;
}

/* A parameter that the weights do not have was drawn, and is what the run has. */
static cleat_status ignore(void *user, cleat_tensor *param, cleat_error *error) {
    (void)user, (void)param, (void)error;
    return CLEAT_OK;
}

static cleat_status read_weights(const cleat_profile *profile, reader *r, cleat_store *store, cleat_error *error) {
    cleat_weight_target target = {.store = store, .write = compare, .draw = ignore, .user = r};
    cleat_weight_report report = {0};
    cleat_weights *weights = NULL;
    cleat_status status = cleat_open_init(profile->init, &weights, error);
    if (!status) status = cleat_profile_find_parameters(profile, r->model, weights, &target, error);
    if (!status) status = cleat_weights_load(weights, &target, &report, error);
    if (!status && r->other) status = cleat_fail(error, CLEAT_ERR_NOT_FOUND, "'%s' is another there", r->other);
    cleat_weight_report_free(&report);
    cleat_weights_close(weights);
    return status;
}

/* --- both ----------------------------------------------------------------------------------------------------- */

cleat_status cleat_frozen_weights_read(const cleat_profile *profile, const cleat_model *model,
                                       const cleat_checkpoint *checkpoint, cleat_frozen_weights *frozen,
                                       cleat_error *error) {
    cleat_model_graph built;
    cleat_store *store = NULL;
    cleat_graph *graph = NULL;
    cleat_error why = {0};
    *frozen = (cleat_frozen_weights){0};
    if (!*profile->init || !cleat_model_has_rules(model)) return CLEAT_OK;
    reader r = {.model = model, .checkpoint = checkpoint, .frozen = frozen};
    cleat_status status = cleat_store_create(&store, error);
    if (!status) status = cleat_graph_create(store, "frozen", &graph, error);
    if (!status) {
        cleat_model_build(model, graph, CLEAT_MODE_PREDICT, 1, cleat_model_longest(profile, model), &built);
        status = cleat_graph_status(graph, error);
    }
    if (!status && has_halves(model, store, checkpoint)) {
        if (read_weights(profile, &r, store, &why)) {
            cleat_frozen_weights_clear(frozen);
            cleat_log(CLEAT_LOG_WARNING,
                      "frozen parameters are exported as the run has them, in halves: those of model.init = %s cannot "
                      "be taken: %s",
                      profile->init, why.text);
        } else if (frozen->count > 0) {
            cleat_log(CLEAT_LOG_INFO, "%zu frozen tensors are exported as they are in model.init = %s", frozen->count,
                      profile->init);
        }
    }
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
    return status;
}

const void *cleat_frozen_weights_data(const cleat_frozen_weights *frozen, const cleat_st_tensor *tensor) {
    for (size_t i = 0; i < frozen->count; ++i)
        if (strcmp(frozen->items[i].name, tensor->name) == 0) return frozen->items[i].data;
    return tensor->data;
}

void cleat_frozen_weights_clear(cleat_frozen_weights *frozen) {
    for (size_t i = 0; i < frozen->count; ++i) cleat_free((void *)frozen->items[i].data);
    cleat_free(frozen->items);
    *frozen = (cleat_frozen_weights){0};
}

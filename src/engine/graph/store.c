/* The store: parameters with their gradients and moments as flat buffers, and small persistent states. Some
 * states are buffers, which checkpoints contain. The store owns its tensor descriptions; the bytes belong to
 * the executor. */
#include "graph/store.h"

#include "core/blocks.h"
#include "core/memory.h"
#include "core/philox.h"

#include <stdio.h>
#include <string.h>

static const char *const flat_names[CLEAT_FLATS] = {"parameters", "gradients", "moment1",
                                                    "moment2",    "copies",    "frozen blocks"};

cleat_status cleat_store_create(cleat_store **store, cleat_error *error) {
    cleat_store *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a parameter store");
    _Static_assert(CLEAT_ROLE_BLOCK_WEIGHT - CLEAT_ROLE_PARAMETER + 1 == CLEAT_FLATS, "a role for each flat buffer");
    for (int i = 0; i < CLEAT_FLATS; ++i) {
        made->flat[i] =
            (cleat_tensor){.dtype = CLEAT_F32, .rank = 1, .role = (cleat_role)(CLEAT_ROLE_PARAMETER + i), .index = -1};
        snprintf(made->flat[i].name, CLEAT_NAME, "%s", flat_names[i]);
    }
    made->flat[CLEAT_FLAT_BLOCK_WEIGHTS].dtype = CLEAT_U8;
    *store = made;
    return CLEAT_OK;
}

void cleat_store_destroy(cleat_store *store) {
    if (!store) return;
    for (int k = 0; k < CLEAT_FLATS; ++k) {
        for (size_t i = 0; i < store->count; ++i) cleat_free(store->flat_tensors[k][i]);
        cleat_free(store->flat_tensors[k]);
    }
    for (size_t i = 0; i < store->state_count; ++i) cleat_free(store->states[i]);
    for (size_t i = 0; i < store->view_count; ++i) cleat_free(store->views[i]);
    cleat_free(store->views);
    cleat_free(store->groups);
    cleat_free(store->states);
    cleat_free(store->buffers);
    cleat_free(store);
}

size_t cleat_store_count(const cleat_store *store) {
    return store->count;
}

int64_t cleat_store_elements(const cleat_store *store) {
    int64_t elements = 0;
    for (size_t i = 0; i < store->count; ++i) elements += cleat_tensor_elements(store->params[i]);
    return elements;
}

cleat_tensor *cleat_store_param(const cleat_store *store, size_t i) {
    return i < store->count ? store->params[i] : NULL;
}

cleat_tensor *cleat_store_grad(const cleat_store *store, size_t i) {
    return i < store->count ? store->grads[i] : NULL;
}

static bool is_at(cleat_tensor *const *tensors, size_t count, const cleat_tensor *tensor) {
    return tensor->index >= 0 && (size_t)tensor->index < count && tensors[tensor->index] == tensor;
}

bool cleat_store_owns(const cleat_store *store, const cleat_tensor *tensor) {
    const int flat = cleat_flat_index(tensor->role);
    if (flat < 0) return is_at(store->states, store->state_count, tensor);
    if (tensor == &store->flat[flat] || is_at(store->flat_tensors[flat], store->count, tensor)) return true;
    for (size_t i = 0; i < store->view_count; ++i)
        if (store->views[i] == tensor) return true;
    return false;
}

cleat_tensor *cleat_store_find(const cleat_store *store, const char *name) {
    for (size_t i = 0; i < store->count; ++i)
        if (strcmp(store->params[i]->name, name) == 0) return store->params[i];
    return NULL;
}

static cleat_status make_room(cleat_store *store, cleat_error *error) {
    size_t capacity = store->capacity;
    for (int k = 0; k < CLEAT_FLATS; ++k) {
        capacity = store->capacity;
        cleat_status status = cleat_grow(&store->flat_tensors[k], store->count, &capacity, error);
        if (status) return status;
    }
    store->capacity = capacity;
    return CLEAT_OK;
}

static cleat_param_rule rule_of(const cleat_store *store, const char *name, int rank) {
    cleat_param_rule rule = {.rate = 1, .decay = 1};
    if (store->choose_rule) store->choose_rule(store->rule_user, name, rank, &rule);
    return rule;
}

/* Adds `elements` to every flat buffer. cleat_store_arrange moves the parameters once their rules matter. */
static void extend_flats(cleat_store *store, int64_t elements) {
    store->flat_elements += cleat_store_aligned(elements);
    store->trained_elements = store->shared_elements = store->flat_elements;
    for (int k = 0; k < CLEAT_FLATS_ALWAYS; ++k) store->flat[k].shape[0] = store->flat_elements;
    if (cleat_has_half_weights(store)) store->flat[CLEAT_FLAT_HALF_WEIGHTS].shape[0] = store->flat_elements;
}

cleat_status cleat_store_add(cleat_store *store, const char *name, int rank, const int64_t *shape, cleat_init init,
                             cleat_tensor **param, cleat_error *error) {
    if (store->arranged)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "parameter '%s' is declared after the parameters were laid out",
                          name);
    for (size_t i = 0; i < store->buffer_count; ++i)
        if (strcmp(store->buffers[i]->name, name) == 0)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "parameter '%s' has the name of a buffer", name);
    cleat_status status = make_room(store, error);
    if (status) return status;
    const cleat_param_rule rule = rule_of(store, name, rank);
    cleat_tensor *made[CLEAT_FLATS] = {NULL};
    for (int k = 0; k < (rule.frozen ? CLEAT_FLAT_GRADIENTS : CLEAT_FLATS_ALWAYS); ++k) {
        made[k] = cleat_alloc(1, sizeof *made[k]);
        if (!made[k]) {
            for (int j = 0; j < k; ++j) cleat_free(made[j]);
            return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for parameter '%s'", name);
        }
        *made[k] = (cleat_tensor){.dtype = CLEAT_F32,
                                  .rank = rank,
                                  .role = (cleat_role)(CLEAT_ROLE_PARAMETER + k),
                                  .index = (int)store->count,
                                  .flat_offset = store->flat_elements,
                                  .requires_grad = k == CLEAT_FLAT_PARAMETERS && !rule.frozen,
                                  .init = init,
                                  .rule = rule};
        snprintf(made[k]->name, CLEAT_NAME, "%s", name);
        memcpy(made[k]->shape, shape, (size_t)rank * sizeof *shape);
    }
    for (int k = 0; k < CLEAT_FLATS; ++k) store->flat_tensors[k][store->count] = made[k];
    ++store->count;
    extend_flats(store, cleat_tensor_elements(made[CLEAT_FLAT_PARAMETERS]));
    *param = made[CLEAT_FLAT_PARAMETERS];
    return CLEAT_OK;
}

cleat_status cleat_store_half_weight(cleat_store *store, const cleat_tensor *param, cleat_dtype dtype,
                                     cleat_tensor **copy, cleat_error *error) {
    cleat_tensor *whole = &store->flat[CLEAT_FLAT_HALF_WEIGHTS], *made = store->half_weights[param->index];
    if (cleat_has_half_weights(store) && whole->dtype != dtype)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "compute copy of '%s' in %s: those of other parameters are %s",
                          param->name, cleat_dtype_name(dtype), cleat_dtype_name(whole->dtype));
    if (!made) {
        if (store->arranged)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "'%s' is read in %s after the parameters were laid out",
                              param->name, cleat_dtype_name(dtype));
        made = cleat_alloc(1, sizeof *made);
        if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the compute copy of '%s'", param->name);
        *made = *param;
        made->dtype = dtype;
        made->role = CLEAT_ROLE_HALF_WEIGHT;
        store->half_weights[param->index] = made;
        whole->dtype = dtype;
        whole->shape[0] = store->flat_elements;
    }
    *copy = made;
    return CLEAT_OK;
}

cleat_status cleat_store_block_weight(cleat_store *store, const cleat_tensor *param, cleat_dtype dtype,
                                      cleat_tensor **weight, cleat_error *error) {
    cleat_tensor *made = store->block_weights[param->index];
    if (!made && store->arranged)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "'%s' is read in blocks after the parameters were laid out",
                          param->name);
    if (!made) {
        made = cleat_alloc(1, sizeof *made);
        if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the block weight of '%s'", param->name);
        *made = *param;
        made->dtype = dtype;
        made->role = CLEAT_ROLE_BLOCK_WEIGHT;
        store->block_weights[param->index] = made;
    }
    *weight = made;
    return CLEAT_OK;
}

const cleat_tensor *cleat_store_blocks_of(const cleat_store *store, const cleat_tensor *param) {
    const cleat_tensor *weight = param->index >= 0 ? store->block_weights[param->index] : NULL;
    return weight && cleat_block_elements(weight->dtype) ? weight : NULL;
}

bool cleat_store_has_loss_scale(const cleat_store *store) {
    for (size_t i = 0; i < store->state_count; ++i)
        if (strcmp(store->states[i]->name, CLEAT_LOSS_SCALE) == 0) return true;
    return false;
}

/* Returns the state with the name wanted->name and declares it like `wanted` if it does not exist yet. *state
 * is NULL if a different state has this name. */
static cleat_status find_or_add_state(cleat_store *store, const cleat_tensor *wanted, cleat_tensor **state,
                                      cleat_error *error) {
    for (size_t i = 0; i < store->state_count; ++i) {
        cleat_tensor *known = store->states[i];
        if (strcmp(known->name, wanted->name) != 0) continue;
        bool same = known->dtype == wanted->dtype && cleat_same_shape(known, wanted) &&
                    known->is_buffer == wanted->is_buffer &&
                    memcmp(&known->initial, &wanted->initial, sizeof known->initial) == 0;
        *state = same ? known : NULL;
        return CLEAT_OK;
    }
    cleat_status status = cleat_grow(&store->states, store->state_count, &store->state_capacity, error);
    if (status) return status;
    cleat_tensor *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for state '%s'", wanted->name);
    *made = *wanted;
    made->index = (int)store->state_count;
    store->states[store->state_count++] = made;
    *state = made;
    return CLEAT_OK;
}

static cleat_tensor state_like(const char *name, cleat_dtype dtype, int rank, const int64_t *shape) {
    cleat_tensor state = {.dtype = dtype, .rank = rank, .role = CLEAT_ROLE_STATE};
    memcpy(state.shape, shape, (size_t)rank * sizeof *shape);
    snprintf(state.name, CLEAT_NAME, "%s", name);
    return state;
}

cleat_status cleat_store_state(cleat_store *store, const char *name, cleat_dtype dtype, int rank, const int64_t *shape,
                               float initial, cleat_tensor **state, cleat_error *error) {
    cleat_tensor wanted = state_like(name, dtype, rank, shape), *found = NULL;
    wanted.initial = initial;
    cleat_status status = find_or_add_state(store, &wanted, &found, error);
    if (status) return status;
    if (!found)
        return cleat_fail(error, CLEAT_ERR_SHAPE,
                          "state '%s' is used with two shapes, types or starting values, or is a buffer elsewhere",
                          name);
    *state = found;
    return CLEAT_OK;
}

cleat_status cleat_store_add_buffer(cleat_store *store, const char *name, int rank, const int64_t *shape, float initial,
                                    cleat_tensor **buffer, cleat_error *error) {
    if (cleat_store_find(store, name))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "buffer '%s' has the name of a parameter", name);
    cleat_tensor wanted = state_like(name, CLEAT_F32, rank, shape), *found = NULL;
    wanted.is_buffer = true;
    wanted.initial = initial;
    wanted.flat_offset = store->buffer_elements;
    cleat_status status = cleat_grow(&store->buffers, store->buffer_count, &store->buffer_capacity, error);
    size_t states = store->state_count;
    if (!status) status = find_or_add_state(store, &wanted, &found, error);
    if (status) return status;
    if (!found)
        return cleat_fail(error, CLEAT_ERR_SHAPE,
                          "buffer '%s' is used with two shapes or initial values, or as a state", name);
    if (store->state_count > states) {
        store->buffers[store->buffer_count++] = found;
        store->buffer_elements += cleat_tensor_elements(found);
    }
    *buffer = found;
    return CLEAT_OK;
}

cleat_tensor *cleat_store_buffer(const cleat_store *store, size_t i) {
    return i < store->buffer_count ? store->buffers[i] : NULL;
}

void cleat_buffer_initialise(const cleat_tensor *buffer, float *values) {
    int64_t elements = cleat_tensor_elements(buffer);
    for (int64_t i = 0; i < elements; ++i) values[i] = buffer->initial;
}

void cleat_param_initialise(const cleat_tensor *param, uint64_t seed, float *values) {
    int64_t elements = cleat_tensor_elements(param);
    uint32_t hash = 2166136261u; /* FNV-1a: maps the name to a stable stream number */
    for (const char *c = param->name; *c; ++c) hash = (hash ^ (unsigned char)*c) * 16777619u;
    cleat_random random = cleat_random_stream(seed, hash, 0x70617261u);
    double value = param->init.value;
    for (int64_t i = 0; i < elements; ++i) switch (param->init.kind) {
        case CLEAT_INIT_ZERO:
            values[i] = 0.0f;
            break;
        case CLEAT_INIT_CONSTANT:
            values[i] = param->init.value;
            break;
        case CLEAT_INIT_UNIFORM:
            values[i] = (float)((cleat_random_uniform(&random) * 2.0 - 1.0) * value);
            break;
        case CLEAT_INIT_NORMAL:
            values[i] = (float)(cleat_random_normal(&random) * value);
            break;
        }
}

/* The layout of parameters that are not all trained alike: groups of one rule side by side, frozen parameters behind
 * them, and views of parts of the flat buffers.
 *
 * Parameters of one rule lie side by side, so the optimizer is one launch for each rule with constant
 * factors. Without rules nothing moves and no bit changes. Gradients and moments end before the frozen
 * parameters, autodiff stops at them, and with half weights a frozen matrix has no f32 bytes on the
 * device. A matrix in blocks has neither. */
#include "graph/store.h"

#include "core/blocks.h"
#include "core/memory.h"

#include <stdio.h>

void cleat_store_set_rules(cleat_store *store, cleat_param_rule_fn choose, void *user) {
    store->choose_rule = choose;
    store->rule_user = user;
}

/* --- trained parameters --- */

static bool same_rule(const cleat_param_rule *a, const cleat_param_rule *b) {
    return a->rate >= b->rate && a->rate <= b->rate && a->decay >= b->decay && a->decay <= b->decay;
}

/* The group with this rule; appends one if there is none. groups [store->count] has room for one of each parameter. */
static cleat_param_group *group_of(cleat_store *store, const cleat_param_rule *rule) {
    for (size_t g = 0; g < store->group_count; ++g)
        if (same_rule(&store->groups[g].rule, rule)) return &store->groups[g];
    cleat_param_group *made = &store->groups[store->group_count++];
    *made = (cleat_param_group){.rule = *rule};
    return made;
}

static int64_t room_of(const cleat_tensor *param) {
    return cleat_store_aligned(cleat_tensor_elements(param));
}

/* Moves a trained parameter to `place` in all flat buffers. */
static void move_trained(cleat_store *store, size_t i, int64_t place) {
    for (int k = 0; k < CLEAT_FLATS; ++k)
        if (store->flat_tensors[k][i]) store->flat_tensors[k][i]->flat_offset = place;
}

/* Groups are in the order of their first parameters, so that parameters of one group stay where they were declared.
 * Returns the elements of all groups. */
static int64_t place_trained(cleat_store *store) {
    int64_t first = 0;
    for (size_t i = 0; i < store->count; ++i)
        if (!store->params[i]->rule.frozen)
            group_of(store, &store->params[i]->rule)->elements += room_of(store->params[i]);
    for (size_t g = 0; g < store->group_count; ++g) {
        cleat_param_group *group = &store->groups[g];
        group->first = first;
        for (size_t i = 0; i < store->count; ++i) {
            const cleat_tensor *param = store->params[i];
            if (param->rule.frozen || !same_rule(&param->rule, &group->rule)) continue;
            move_trained(store, i, first);
            first += room_of(param);
        }
    }
    return first;
}

/* --- frozen parameters --- */

/* Representation of a frozen parameter on the device. */
typedef enum frozen_form { IN_BOTH, IN_F32, IN_HALF, IN_BLOCKS } frozen_form;

static frozen_form form_of(const cleat_store *store, size_t i) {
    if (cleat_store_blocks_of(store, store->params[i])) return IN_BLOCKS;
    if (!store->half_weights[i]) return IN_F32;
    return store->params[i]->read_in_f32 ? IN_BOTH : IN_HALF;
}

/* Places the frozen parameters of one form from `first` on; their half weights from `half_first` on. Returns the
 * elements that they take. */
static int64_t place_frozen(cleat_store *store, frozen_form form, int64_t first, int64_t half_first) {
    int64_t elements = 0;
    for (size_t i = 0; i < store->count; ++i) {
        cleat_tensor *param = store->params[i], *half = store->half_weights[i];
        if (!param->rule.frozen || form_of(store, i) != form) continue;
        param->flat_offset = first + elements;
        param->half_only = form == IN_HALF || form == IN_BLOCKS;
        if (half) half->flat_offset = half_first + elements;
        elements += room_of(param);
    }
    return elements;
}

/* Gives each block weight its blocks; a parameter that other nodes read too, or whose rows are no whole blocks, is
 * read as if it had none. */
static cleat_status choose_blocks(cleat_store *store, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < store->count && !status; ++i) {
        cleat_tensor *param = store->params[i], *weight = store->block_weights[i], *half = NULL;
        if (!weight) continue;
        const bool fits = param->shape[1] % cleat_block_elements(param->rule.blocks) == 0;
        if (fits && !param->read_in_f32 && !store->half_weights[i])
            weight->dtype = param->rule.blocks;
        else if (weight->dtype == CLEAT_F32)
            param->read_in_f32 = true;
        else
            status = cleat_store_half_weight(store, param, weight->dtype, &half, error);
    }
    return status;
}

/* Returns the bytes of all blocks. The other block weights become twins of what they stand for. */
static int64_t place_blocks(cleat_store *store) {
    enum { ALIGNMENT = 256 };
    int64_t bytes = 0;
    for (size_t i = 0; i < store->count; ++i) {
        cleat_tensor *weight = store->block_weights[i];
        if (!weight) continue;
        if (!cleat_block_elements(weight->dtype)) {
            const cleat_tensor *twin = weight->dtype == CLEAT_F32 ? store->params[i] : store->half_weights[i];
            weight->role = twin->role;
            weight->flat_offset = twin->flat_offset;
            continue;
        }
        weight->flat_offset = bytes;
        bytes += (cleat_tensor_bytes(weight) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    return bytes;
}

cleat_status cleat_store_arrange(cleat_store *store, cleat_error *error) {
    if (!store->choose_rule || store->arranged) return CLEAT_OK;
    cleat_status status = choose_blocks(store, error);
    if (status) return status;
    store->groups = cleat_alloc(store->count, sizeof *store->groups);
    if (!store->groups) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for groups of parameters");
    const int64_t trained = place_trained(store);
    const bool generates = store->count > 0 && store->params[0]->rule.streamed;
    if (trained == 0 && !generates)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "all parameters are frozen: nothing is trained");
    const int64_t shared = trained + place_frozen(store, IN_BOTH, trained, trained);
    const int64_t single = shared + place_frozen(store, IN_F32, shared, 0);
    const int64_t half = place_frozen(store, IN_HALF, single, shared);
    place_frozen(store, IN_BLOCKS, single + half, 0); /* behind the end: flat copies lack them */
    store->trained_elements = trained;
    store->shared_elements = shared;
    store->flat_elements = single + half;
    store->flat[CLEAT_FLAT_PARAMETERS].shape[0] = single;
    for (int k = CLEAT_FLAT_GRADIENTS; k <= CLEAT_FLAT_MOMENTS2; ++k) store->flat[k].shape[0] = trained;
    if (cleat_has_half_weights(store)) store->flat[CLEAT_FLAT_HALF_WEIGHTS].shape[0] = shared + half;
    store->flat[CLEAT_FLAT_BLOCK_WEIGHTS].shape[0] = place_blocks(store);
    store->arranged = true;
    return CLEAT_OK;
}

const cleat_param_group *cleat_store_groups(const cleat_store *store, size_t *count) {
    *count = store->group_count;
    return store->groups;
}

int64_t cleat_store_trained(const cleat_store *store) {
    int64_t elements = 0;
    for (size_t i = 0; i < store->count; ++i)
        if (!store->params[i]->rule.frozen) elements += cleat_tensor_elements(store->params[i]);
    return elements;
}

/* --- views --- */

cleat_status cleat_store_view(cleat_store *store, cleat_flat_buffer flat, int64_t first, int64_t elements,
                              cleat_tensor **view, cleat_error *error) {
    cleat_tensor *whole = &store->flat[flat], *made = first == 0 && elements == whole->shape[0] ? whole : NULL;
    for (size_t i = 0; !made && i < store->view_count; ++i) {
        cleat_tensor *known = store->views[i];
        if (known->role == whole->role && known->flat_offset == first && known->shape[0] == elements) made = known;
    }
    if (!made) {
        cleat_status status = cleat_grow(&store->views, store->view_count, &store->view_capacity, error);
        if (status) return status;
        made = cleat_alloc(1, sizeof *made);
        if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a part of the %s", whole->name);
        *made = *whole;
        made->shape[0] = elements;
        made->flat_offset = first;
        store->views[store->view_count++] = made;
    }
    *view = made;
    return CLEAT_OK;
}

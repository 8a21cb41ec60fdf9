/* How frozen matrices keep the values of a quantised GGUF file. */
#include "weights/architecture.h"

#include <stdio.h>
#include <string.h>

/* In ascending order of bytes. */
typedef enum form { FORM_Q4, FORM_Q8, FORM_FLOAT, NO_MATRIX } form;
static const char *const form_names[] = {"q4", "q8", "float"};

typedef struct matrices {
    const cleat_weights *weights;
    const cleat_architecture *architecture;
} matrices;

static form form_of_type(cleat_gguf_type type) {
    if (type == CLEAT_GGUF_TYPE_Q4_0 || type == CLEAT_GGUF_TYPE_Q4_1 || type == CLEAT_GGUF_TYPE_Q4_K) return FORM_Q4;
    return cleat_gguf_block_values(type) > 1 ? FORM_Q8 : FORM_FLOAT;
}

/* Writes the name of the row's parameter in block `block`, and returns its form: the largest of its parts'. */
static form find_form(const matrices *m, const cleat_weight_row *row, int block, char name[CLEAT_WEIGHT_NAME]) {
    char full[CLEAT_WEIGHT_NAME + 8];
    const char *star = strchr(row->param, '*');
    cleat_weight_sources sources;
    form found = FORM_Q4;
    if (star)
        snprintf(name, CLEAT_WEIGHT_NAME, "%.*s%d%s", (int)(star - row->param), row->param, block, star + 1);
    else
        snprintf(name, CLEAT_WEIGHT_NAME, "%s", row->param);
    snprintf(full, sizeof full, "%s.weight", name);
    if ((!star && block > 0) || !cleat_architecture_sources(m->architecture, NULL, false, full, &sources))
        return NO_MATRIX;
    for (size_t i = 0; i < sources.count; ++i) {
        const cleat_st_tensor *part = cleat_weights_find(m->weights, sources.names[i]);
        cleat_weight_blocks stored;
        if (!part || part->rank != 2) return NO_MATRIX;
        const bool is_read = cleat_weights_blocks(m->weights, part, &stored) && !stored.is_transposed;
        const form one = is_read ? form_of_type(stored.type) : FORM_FLOAT;
        if (one > found) found = one;
    }
    return found;
}

/* Names blocks one by one if `each`, or else all of a row with the largest form of the row. */
static bool list_forms(const matrices *m, form usual, bool each, char text[CLEAT_FROZEN_TEXT]) {
    size_t used = (size_t)snprintf(text, CLEAT_FROZEN_TEXT, "%s", form_names[usual]);
    for (const cleat_weight_row *row = m->architecture->names; row->param; ++row) {
        char name[CLEAT_WEIGHT_NAME];
        form least = NO_MATRIX, most = FORM_Q4, one;
        for (int b = 0; (one = find_form(m, row, b, name)) != NO_MATRIX; ++b) {
            if (one < least) least = one;
            if (one > most) most = one;
        }
        const bool listed = each && least < most;
        const bool is_usual =
            most == usual && (most != FORM_Q4 || strchr(row->param, '*')); /* embeddings: param_rules */
        for (int b = 0; listed && (one = find_form(m, row, b, name)) != NO_MATRIX; ++b)
            if (one != usual && used < CLEAT_FROZEN_TEXT)
                used += (size_t)snprintf(text + used, CLEAT_FROZEN_TEXT - used, " %s=%s", name, form_names[one]);
        if (!listed && !is_usual && least != NO_MATRIX && used < CLEAT_FROZEN_TEXT)
            used += (size_t)snprintf(text + used, CLEAT_FROZEN_TEXT - used, " %s=%s", row->param, form_names[most]);
    }
    return used < CLEAT_FROZEN_TEXT;
}

void cleat_weights_forms(const cleat_weights *weights, const cleat_architecture *architecture,
                         char text[CLEAT_FROZEN_TEXT]) {
    const matrices m = {weights, architecture};
    form usual = FORM_FLOAT, one;
    char name[CLEAT_WEIGHT_NAME];
    for (const cleat_weight_row *row = architecture->names; cleat_weights_gguf(weights) && row->param; ++row)
        for (int b = 0; (one = find_form(&m, row, b, name)) != NO_MATRIX; ++b)
            if (one < usual) usual = one;
    if (usual == FORM_FLOAT || (!list_forms(&m, usual, true, text) && !list_forms(&m, usual, false, text)))
        snprintf(text, CLEAT_FROZEN_TEXT, "%s", form_names[FORM_FLOAT]);
}

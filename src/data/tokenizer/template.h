/* Templates: where special tokens go around one text or two, and the type of each token. */
#ifndef CLEAT_SRC_TEMPLATE_H
#define CLEAT_SRC_TEMPLATE_H

#include "cleat/core.h"

typedef enum cleat_template_kind {
    CLEAT_TEMPLATE_TOKEN,
    CLEAT_TEMPLATE_FIRST,
    CLEAT_TEMPLATE_SECOND
} cleat_template_kind;

typedef struct cleat_template_item {
    cleat_template_kind kind; /* a special token, the first text, or the second */
    int32_t id;               /* TOKEN */
    int32_t type;             /* token type of the token or of all tokens of the text */
} cleat_template_item;

typedef struct cleat_template {
    cleat_template_item *items; /* [count] */
    size_t count, capacity;
} cleat_template;

cleat_status cleat_template_add(cleat_template *t, cleat_template_kind kind, int32_t id, int32_t type,
                                cleat_error *error);
void cleat_template_free(cleat_template *t);

#endif

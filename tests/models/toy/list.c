/* The families of this test program, linked instead of src/models/list.c. */
#include "models/model.h"

#define FAMILIES(FAMILY)                                                                                               \
    FAMILY(cleat_series_dense)                                                                                         \
    FAMILY(cleat_toy)

#define DECLARE(NAME) extern const cleat_model_class NAME;
#define LIST(NAME) &NAME,

FAMILIES(DECLARE)

const cleat_model_class *const cleat_model_classes[] = {FAMILIES(LIST) NULL};

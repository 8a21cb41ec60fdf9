/* Common base of the datasets whose samples are images or maps. */
#include "data/common/image_dataset.h"

#include <string.h>

void cleat_image_dataset_init(cleat_image_dataset *common, const cleat_dataset_class *type) {
    common->type = *type;
    common->type.fields = common->fields;
    common->base.type = &common->type;
}

cleat_image_info cleat_image_describe(const cleat_dataset *dataset) {
    static const char *const names[] = {CLEAT_IMAGES_NAME, CLEAT_MASKS_NAME, CLEAT_MAPS_NAME};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        if (strcmp(dataset->type->name, names[i]) == 0) return ((const cleat_image_dataset *)dataset)->info;
    return (cleat_image_info){0};
}

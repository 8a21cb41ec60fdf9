/* Common base of the datasets whose samples are images or maps. */
#include "data/common/image_dataset.h"

#include "core/string.h"

void cleat_image_dataset_init(cleat_image_dataset *common, const cleat_dataset_class *type) {
    common->type = *type;
    common->type.fields = common->fields;
    common->base.type = &common->type;
}

cleat_image_info cleat_image_describe(const cleat_dataset *dataset) {
    return cleat_has_word(CLEAT_IMAGES_NAME " " CLEAT_MASKS_NAME " " CLEAT_MAPS_NAME, dataset->type->name, ' ')
               ? ((const cleat_image_dataset *)dataset)->info
               : (cleat_image_info){0};
}

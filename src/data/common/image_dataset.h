/* The head of the datasets whose samples are images, or maps. */
#ifndef CLEAT_SRC_IMAGE_DATASET_H
#define CLEAT_SRC_IMAGE_DATASET_H

#include "cleat/images.h"
#include "data/dataset.h"

enum { CLEAT_IMAGE_MAX_FIELDS = 3 };

/* The first member of each such dataset. */
typedef struct cleat_image_dataset {
    cleat_dataset base;       /* first: a cleat_dataset * is one of these */
    cleat_dataset_class type; /* base.type points here: shapes of fields depend on the options */
    cleat_field fields[CLEAT_IMAGE_MAX_FIELDS];
    cleat_image_info info;
} cleat_image_dataset;

/* The classes' names, by which cleat_image_describe knows them. */
#define CLEAT_IMAGES_NAME "images"
#define CLEAT_MASKS_NAME "masks"
#define CLEAT_MAPS_NAME "maps"

/* base.type becomes a copy of `type` with the images' own fields, [type->n_fields] of which are set. The struct must stay
 * where it is. */
void cleat_image_dataset_init(cleat_image_dataset *common, const cleat_dataset_class *type);

#endif

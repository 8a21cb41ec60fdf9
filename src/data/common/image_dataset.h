/* Common base of the datasets whose samples are images or maps. */
#ifndef CLEAT_SRC_IMAGE_DATASET_H
#define CLEAT_SRC_IMAGE_DATASET_H

#include "cleat/images.h"
#include "data/dataset.h"

enum { CLEAT_IMAGE_MAX_FIELDS = 4 };

/* The first member of each such dataset. */
typedef struct cleat_image_dataset {
    cleat_dataset base;       /* first, so that a cleat_dataset * can be cast to this type */
    cleat_dataset_class type; /* base.type points here, because the shapes of fields depend on the options */
    cleat_field fields[CLEAT_IMAGE_MAX_FIELDS];
    cleat_image_info info;
    const double *mean, *std; /* [info.channels] value = standardised value x std + mean; borrowed from the dataset */
} cleat_image_dataset;

/* Names of the classes, by which cleat_image_describe recognizes them. */
#define CLEAT_IMAGES_NAME "images"
#define CLEAT_MASKS_NAME "masks"
#define CLEAT_MAPS_NAME "maps"

/* Sets base.type to a copy of `type` whose fields are common->fields; the caller sets the first
 * type->n_fields of them. The struct must not be moved afterwards. */
void cleat_image_dataset_init(cleat_image_dataset *common, const cleat_dataset_class *type);

#endif

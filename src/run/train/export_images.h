/* How an exported network is given its images. */
#ifndef CLEAT_SRC_EXPORT_IMAGES_H
#define CLEAT_SRC_EXPORT_IMAGES_H

#include "cleat/core.h"

/* Completes an export in `out` of a network whose checkpoint is in `folder`: the means and deviations by which its images
 * were normalised (pictures.json) become pretrained_cfg of timm's config.json, where that has none, or
 * preprocessor_config.json of transformers, which resizes images to `size` x `size`. A checkpoint without pictures.json
 * is left as it is. */
cleat_status cleat_export_images(const char *folder, const char *out, bool timm, int64_t size, cleat_error *error);

#endif

/* SegFormer as Hugging Face transformers saves it (model_type "segformer"). */
#ifndef CLEAT_SRC_PUBLISHED_SEGFORMER_H
#define CLEAT_SRC_PUBLISHED_SEGFORMER_H

#include "models/masks.h"

/* SegformerForSemanticSegmentation, or a bare encoder, for model.type = mask_segformer. The decoder is read
 * if its width fits, the last layer if its number of classes does. */
extern const cleat_architecture cleat_published_segformer;
/* The same as the spatial part of EmberFormer, whose first convolution is new unless model.features is 3. */
extern const cleat_architecture cleat_published_emberformer_decoder;

#endif

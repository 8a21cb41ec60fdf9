/* The model families: one line each. This is a separate file so that a program can be linked with another list. */
#include "models/model.h"

#define FAMILIES(FAMILY)                                                                                               \
    FAMILY(cleat_rna_transformer)                                                                                      \
    FAMILY(cleat_text_classifier)                                                                                      \
    FAMILY(cleat_text_tagger)                                                                                          \
    FAMILY(cleat_text_pretrain)                                                                                        \
    FAMILY(cleat_causal_lm)                                                                                            \
    FAMILY(cleat_series_lstm)                                                                                          \
    FAMILY(cleat_series_transformer)                                                                                   \
    FAMILY(cleat_series_dense)                                                                                         \
    FAMILY(cleat_image_resnet)                                                                                         \
    FAMILY(cleat_image_vit)                                                                                            \
    FAMILY(cleat_image_convnext)                                                                                       \
    FAMILY(cleat_mask_segformer)                                                                                       \
    FAMILY(cleat_emberformer)

#define DECLARE(NAME) extern const cleat_model_class NAME;
#define LIST(NAME) &NAME,

FAMILIES(DECLARE)

const cleat_model_class *const cleat_model_classes[] = {FAMILIES(LIST) NULL};

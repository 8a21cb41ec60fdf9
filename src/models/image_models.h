/* Helpers shared by image models. */
#ifndef CLEAT_SRC_IMAGE_MODELS_H
#define CLEAT_SRC_IMAGE_MODELS_H

#include "models/model.h"
#include "nn/conv.h"

/* Data settings of image models. */
typedef struct cleat_image_settings {
    cleat_image_options options; /* channels = 0: auto */
    int64_t cache_mb;            /* replaces options.cache_bytes */
} cleat_image_settings;

/* The rows of [data] from image_size on; a family's own rows between `limit` and image_size precede this
 * macro. MEMBER: a cleat_image_settings. */
#define IMAGE_ROWS(MEMBER)                                                                                             \
    IMAGE_SIZE_ROW(MEMBER.options.size),                                                                               \
        {FIELD(data, channels, MEMBER.options.channels),                                                               \
         INT(1, 3, "auto"),                                                                                            \
         .word = "auto",                                                                                               \
         .word_value = 0,                                                                                              \
         COMPUTES,                                                                                                     \
         .help = "Image channels: 1 for grey, 3 for colour; auto: colour if any training image is in colour."},        \
        {FIELD(data, crop_scale, MEMBER.options.augment.crop_min), FLOAT(0.05, 1, "1"), COMPUTES,                      \
         .help = "Training: minimum area of the random resized crop, as a fraction of the image."},                    \
        {FIELD(data, shift, MEMBER.options.augment.shift), INT(0, 512, "0"), COMPUTES,                                 \
         .help = "Training: maximum random shift in pixels, in both directions."},                                     \
        FLIP_ROWS(MEMBER.options.augment),                                                                             \
        {FIELD(data, turn, MEMBER.options.augment.turn), BOOL("false"), COMPUTES,                                      \
         .help = "Training: random rotation by multiples of 90 degrees."},                                             \
        {FIELD(data, brightness, MEMBER.options.augment.brightness), FLOAT(0, 1, "0"), COMPUTES,                       \
         .help = "Training: random brightness factor from 1 - x to 1 + x."},                                           \
        {FIELD(data, contrast, MEMBER.options.augment.contrast), FLOAT(0, 1, "0"), COMPUTES,                           \
         .help = "Training: random contrast factor from 1 - x to 1 + x."},                                             \
        {FIELD(data, saturation, MEMBER.options.augment.saturation), FLOAT(0, 1, "0"), COMPUTES,                       \
         .help = "Training: random saturation factor from 1 - x to 1 + x."},                                           \
    {                                                                                                                  \
        FIELD(data, cache_mb, MEMBER.cache_mb), INT(0, 1e7, "256"),                                                    \
            .help = "Maximum size of the in-memory cache of decoded images in MiB."                                    \
    }
#define IMAGE_SIZE_ROW(MEMBER)                                                                                         \
    {                                                                                                                  \
        FIELD(data, image_size, MEMBER), INT(8, 8192, "224"), COMPUTES,                                                \
            .help = "Image side in pixels: images are resized to it; maps keep their own size and use it only for "    \
                    "plans without data."                                                                              \
    }
/* MEMBER: a struct with flip and flip_vertical. */
#define FLIP_ROWS(MEMBER)                                                                                              \
    {FIELD(data, flip, MEMBER.flip), BOOL("false"), COMPUTES, .help = "Training: random horizontal flip."}, {          \
        FIELD(data, flip_vertical, MEMBER.flip_vertical), BOOL("false"), COMPUTES,                                     \
            .help = "Training: random vertical flip."                                                                  \
    }

/* Converts the settings to options of a dataset opened in this mode; the result borrows from them. */
cleat_image_options cleat_image_settings_options(const cleat_image_settings *settings, cleat_mode mode,
                                                 const char *fitted);

/* Mode of batch normalisation in a graph of this mode. In training it adds the input `samples`. */
cleat_norm_mode cleat_model_norm_mode(cleat_graph *graph, cleat_mode mode, cleat_model_inputs *inputs);

/* Global average pooling over height and width. [B, H, W, D] -> [B, D] */
cleat_tensor *cleat_model_global_avg_pool(cleat_graph *graph, cleat_tensor *x);

#endif

/* Published image classifiers: names of their tensors in files of timm, torchvision and transformers. */
#ifndef CLEAT_SRC_PUBLISHED_IMAGES_H
#define CLEAT_SRC_PUBLISHED_IMAGES_H

#include "models/model.h"

extern const cleat_architecture cleat_published_resnet; /* timm, torchvision */
extern const cleat_architecture cleat_published_resnet_transformers;
extern const cleat_architecture cleat_published_vit;      /* timm */
extern const cleat_architecture cleat_published_vit_mean; /* timm, without a class token's norm: exports */
extern const cleat_architecture cleat_published_vit_torchvision, cleat_published_vit_transformers;
extern const cleat_architecture cleat_published_convnext; /* timm */
extern const cleat_architecture cleat_published_convnext_torchvision, cleat_published_convnext_transformers;

/* The stage of block `number` (from 1, over all stages) of an image_resnet, and its number within it, both from 0
 * (models/resnet.c). */
void cleat_resnet_place(const cleat_model *model, int64_t number, int64_t *stage, int64_t *block);

/* cleat_architecture.describe of networks of timm: config.json as timm.create_model("local-dir:FOLDER") reads it
 * (models/resnet.c, vit.c, convnext.c). */
bool cleat_resnet_describe(const cleat_model *model, struct cJSON *config);
bool cleat_vit_describe(const cleat_model *model, struct cJSON *config);
bool cleat_convnext_describe(const cleat_model *model, struct cJSON *config);
/* The same for networks of transformers: config.json as from_pretrained reads it. */
bool cleat_resnet_describe_transformers(const cleat_model *model, struct cJSON *config);
bool cleat_vit_describe_transformers(const cleat_model *model, struct cJSON *config);
bool cleat_convnext_describe_transformers(const cleat_model *model, struct cJSON *config);
/* For these functions; false or NULL: no memory.
 * The type of a network of transformers, the class that holds it, and the members that all have. */
bool cleat_published_add_transformers(const cleat_model *model, struct cJSON *config, const char *type,
                                      const char *holder);
/* The network's name, the number of classes and how images are prepared. Returns the object model_args, owned by
 * `config`. */
struct cJSON *cleat_published_add_timm(const cleat_model *model, struct cJSON *config, const char *name);
bool cleat_published_add_list(struct cJSON *object, const char *key, const int64_t *values, int64_t count);

enum { CLEAT_PUBLISHED_STAGES = 4 };

/* A tensor by a printed name; NULL: the file has none. */
const cleat_st_tensor *cleat_published_find(const cleat_weights *weights, const char *format, ...) CLEAT_PRINTF(2, 3);
/* Extent of dimension `axis` of a tensor; 0: there is no such tensor or dimension. */
int64_t cleat_published_extent(const cleat_weights *weights, int axis, const char *format, ...) CLEAT_PRINTF(3, 4);
/* Whether config.json's architecture, up to its first "." (of a tag), is one of the names (NULL-terminated), each
 * followed by nothing, a digit or "_". False without config.json. */
bool cleat_published_is(const cleat_weights *weights, const char *const *names);

/* Pooling before the tensor `head`: global_pool of timm's config.json; `usual` if the file has no such member
 * or head. CLEAT_ERR_NOT_SUPPORTED: neither `usual` nor avg, the mean. */
cleat_status cleat_published_pooling(const cleat_weights *weights, const char *head, const char *usual,
                                     const char **pooling, cleat_error *error);

/* Sets a list [count] that `source` (a tensor's name) determines. */
cleat_status cleat_published_set_list(const cleat_setting_sink *sink, const char *setting, const int64_t *values,
                                      int64_t count, const char *source, cleat_error *error);
/* Sets `setting` to config.json's layer_norm_eps, else to `usual`. */
cleat_status cleat_published_set_eps(const cleat_weights *weights, const cleat_setting_sink *sink, const char *setting,
                                     double usual, cleat_error *error);
/* Sets data.channels to those of the stem, and data.mean and data.std to those that config.json (pretrained_cfg of
 * timm) or preprocessor_config.json (transformers) names, else to ImageNet's. Sets data.image_size if they name
 * it. Of a network that classifies: cleat_published_set_targets. */
cleat_status cleat_published_set_images(const cleat_weights *weights, const cleat_setting_sink *sink, const char *stem,
                                        bool classifies, cleat_error *error);

/* CLEAT_ERR_NOT_SUPPORTED with the file and the unsupported part of its network. */
cleat_status cleat_published_refuse(const cleat_weights *weights, cleat_error *error, const char *format, ...)
    CLEAT_PRINTF(3, 4);

#endif

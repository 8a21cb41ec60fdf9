/* Segmentation into classes: the loss, metrics, examples and predictions of masks whose pixels have one of C
 * classes. */
#ifndef CLEAT_SRC_MODELS_MASK_CLASSES_H
#define CLEAT_SRC_MODELS_MASK_CLASSES_H

#include "models/masks.h"

/* Whether the model's pixels have classes; else one probability. */
bool cleat_masks_has_classes(const cleat_model *model);

/* Sets model->own from the fitted classes of the dataset, and model->sizes.classes. In training from new data
 * (path not NULL) it warns of classes without pixels. */
cleat_status cleat_mask_classes_open(cleat_model *model, const cleat_dataset *dataset, const char *path,
                                     cleat_error *error);

/* Pixel weights [B, L, L]: the class's weight / (labelled pixels of the image x images of the global batch); 0 for
 * pixels without a label. */
void cleat_mask_classes_sample_weight(const cleat_model *model, const cleat_host_batch *batch, const int32_t *mask,
                                      const cleat_global_batch *global_batch, float *values);

/* Metric state: that of cleat_classes_metric_update, of pixels. */
size_t cleat_mask_classes_metric_state_size(const cleat_model *model);
/* logits [pixels, C], mask [pixels], below 0: not labelled. Returns the share of labelled pixels that is wrong. */
double cleat_mask_classes_metric_update(const cleat_model *model, const float *logits, const int32_t *mask,
                                        int64_t pixels, double *metric_state);
void cleat_mask_classes_table(const cleat_model *model, const double *metric_state, cleat_class_table *table);
/* Adds iou (the mean over the classes that occur in truth or prediction), pixel_accuracy, mean_accuracy (of
 * the classes in the truth), and of up to five classes iou_NAME of each. */
void cleat_mask_classes_metric_compute(const cleat_model *model, const double *metric_state, cleat_metrics *found);

/* As those of masks.h; logits [height, stride, C]. Masks are drawn in the colours of the PASCAL VOC data. */
cleat_status cleat_mask_classes_add_example(const cleat_model *model, const cleat_prediction *prediction,
                                            const cleat_mask_example *example, cleat_string *json, cleat_error *error);
cleat_status cleat_mask_classes_baseline(const cleat_model *model, const cleat_evaluation *evaluated,
                                         double *metric_state, char *text, cleat_error *error);
/* Writes FOLDER/ID.png with the ids of mask files, in a palette of colours, and FOLDER/ID.npy with the
 * probability of the class. Ids begin at `first`. */
cleat_status cleat_mask_classes_write(const cleat_model *model, const cleat_mask_output *output, int first,
                                      cleat_error *error);

#endif

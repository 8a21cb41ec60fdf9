/* Published checkpoints with expected results as reference trajectories. */
#ifndef CLEAT_SRC_PUBLISHED_H
#define CLEAT_SRC_PUBLISHED_H

#include "core/safetensors.h"

/* Converts a folder with config.json, weights and expected.safetensors to a reference trajectory
 * (verify/golden.h) in memory. expected.safetensors has the results of transformers, timm or torchvision
 * under their names:
 *   input_ids, attention_mask, token_type_ids   [B, L], or pixel_values [B, C, H, W]
 *   labels             [B], [B, L] or [B, H, W]; -100, and 255 of pixels: not counted in the loss
 *   output             logits in evaluation mode, [B, classes], [B, L, classes] or [B, classes, h, w]
 *   loss               [11] mean cross entropy in training mode without dropout: before each of ten AdamW steps and
 *                      after the last; the metadata `optimizer` has the settings of AdamW as JSON
 *   grad/NAME, after/NAME   gradients at the first step, parameters after ten steps
 * The caller closes *file. CLEAT_ERR_NOT_SUPPORTED: no model family supports the network. */
cleat_status cleat_published_golden(const char *folder, cleat_safetensors **file, cleat_error *error);

#endif

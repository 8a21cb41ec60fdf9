/* Export of trained models as ONNX files (https://onnx.ai), which other programs run. */
#ifndef CLEAT_ONNX_H
#define CLEAT_ONNX_H

#include "cleat/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cleat_onnx_options {
    /* Data to predict; only used by models whose graph depends on the size of the maps. NULL: data.path of
     * the profile. */
    const char *data;
    /* Stores parameter values in a second file, PATH.data; always done above 2 GB. */
    bool external_data;
} cleat_onnx_options;

enum { CLEAT_ONNX_TEXT = 160, CLEAT_ONNX_MAX_INPUTS = 8 };

/* An input or output: "tokens", "int32", "[batch, length]". */
typedef struct cleat_onnx_value {
    char name[64], dtype[16], shape[CLEAT_ONNX_TEXT];
} cleat_onnx_value;

/* What was written. */
typedef struct cleat_onnx_report {
    cleat_onnx_value inputs[CLEAT_ONNX_MAX_INPUTS], output;
    size_t n_inputs, nodes;
    int64_t parameters; /* elements */
    int64_t bytes;      /* of all files */
    int64_t length;     /* of every sequence; 0: any, or the model has no sequences */
    bool external_data; /* the file PATH.data was written */
} cleat_onnx_report;

/* Writes the predictions of a checkpoint as an ONNX model: opset 17, all in f32. Its inputs are the fields of the
 * family's data as a batch has them: tokens padded with -1, images with channels last and normalised, series
 * standardised. Its output is the network's: logits, standardised forecasts, coordinates. The model's
 * metadata describe how to prepare inputs and interpret outputs: labels, means and deviations, and the small
 * files of the fitted preprocessing as they are in the checkpoint.
 *
 * `checkpoint` as for cleat_evaluate; `options` and `report` may be NULL. No device is used.
 * CLEAT_ERR_NOT_SUPPORTED: an operation of the model has no translation. */
CLEAT_API cleat_status cleat_export_onnx(const cleat_profile *profile, const char *checkpoint,
                                         const cleat_onnx_options *options, const char *path, cleat_onnx_report *report,
                                         cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif

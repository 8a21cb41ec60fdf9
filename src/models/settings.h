/* Settings of model families: their structs, and the key rows shared by several families. A family's file
 * defines RECORD, the type of its settings, before it includes ini/rows.h and defines its table.
 *
 * A setting that the family does not use is an error, is omitted from the dump, and does not count as a
 * difference between runs. The options of a reader are the reader's struct inside the family's. A profile
 * keeps assignments to keys of other families until it is checked, because `model.type` may come last in a
 * file or be changed by --set. */
#ifndef CLEAT_SRC_MODELS_SETTINGS_H
#define CLEAT_SRC_MODELS_SETTINGS_H

#include "cleat/models.h"
#include "ini/record.h"
#include "nn/transformer.h"

/* Creates a family's settings with all defaults; the caller destroys them. */
cleat_status cleat_settings_create(const cleat_model_class *family, cleat_data_settings **settings, cleat_error *error);
cleat_status cleat_settings_clone(const cleat_model_class *family, const cleat_data_settings *settings,
                                  cleat_data_settings **copy, cleat_error *error);
/* accepts NULL */
void cleat_settings_destroy(const cleat_model_class *family, cleat_data_settings *settings);

/* Settings of a transformer encoder. */
typedef struct cleat_encoder_settings {
    int64_t d_model, heads, layers, d_ff;
    double dropout;
} cleat_encoder_settings;

/* Shape of the encoder in a graph of this mode: dropout in training only. */
cleat_transformer cleat_encoder_shape(const cleat_encoder_settings *encoder, cleat_mode mode);
/* Checks that d_model is a multiple of heads. */
cleat_status cleat_encoder_check(const cleat_encoder_settings *encoder, const cleat_record *record, cleat_error *error);
/* Checks that val_fraction and test_fraction leave training samples. */
cleat_status cleat_fractions_check(double val, double test, const cleat_record *record, cleat_error *error);

/* The key is newer than checkpoints: its default is not hashed. */
#define SHAPES_LATER SHAPES, .later = true
#define COMPUTES_LATER COMPUTES, .later = true

#define LAYERS_ROW(MEMBER)                                                                                             \
    {                                                                                                                  \
        FIELD(model, layers, MEMBER), INT(1, 256, "5"), SHAPES,                                                        \
            .fewer = true, .help = "Number of transformer blocks, LSTM layers, or hidden dense layers."                \
    }
#define DROPOUT_ROW(MEMBER)                                                                                            \
    { FIELD(model, dropout, MEMBER), FLOAT(0, 0.95, "0.1"), COMPUTES, .help = "Dropout probability in training." }
/* MEMBER: a cleat_encoder_settings. */
#define ENCODER_SIZE_ROWS(MEMBER)                                                                                      \
    {FIELD(model, d_model, MEMBER.d_model), INT(8, 16384, "256"), SHAPES,                                              \
     .help = "Model width: features per position."},                                                                   \
        {FIELD(model, heads, MEMBER.heads), INT(1, 256, "8"), SHAPES,                                                  \
         .help = "Attention heads; d_model must be a multiple of this number."},                                       \
        LAYERS_ROW(MEMBER.layers), {                                                                                   \
        FIELD(model, d_ff, MEMBER.d_ff), INT(8, 65536, "1024"), SHAPES,                                                \
            .help = "Width of the hidden layer of each feed-forward network."                                          \
    }
#define ENCODER_ROWS(MEMBER) ENCODER_SIZE_ROWS(MEMBER), DROPOUT_ROW(MEMBER.dropout)

/* MEMBER: the cleat_data_settings at the start of the struct. */
#define PATH_ROW(MEMBER)                                                                                               \
    {                                                                                                                  \
        FIELD(data, path, MEMBER.path), STRING(MEMBER.path, 0, ""), A_PATH,                                            \
            .help = "Data file or folder, relative to the current directory."                                          \
    }
#define MAX_LENGTH_ROW(MEMBER)                                                                                         \
    {                                                                                                                  \
        FIELD(data, max_length, MEMBER.max_length), INT(1, 65536, "1200"), COMPUTES,                                   \
            .help = "Maximum sequence length. RNA: training crops longer chains at random, evaluation keeps their "    \
                    "first residues; text: the first tokens are kept."                                                 \
    }
#define VAL_FRACTION_ROW(MEMBER)                                                                                       \
    {                                                                                                                  \
        FIELD(data, val_fraction, MEMBER), FLOAT(0, 0.9, "0.1"), COMPUTES,                                             \
            .help = "Fraction held out for validation if the data define no split; for a series, the part before the " \
                    "test part."                                                                                       \
    }
#define TEST_FRACTION_ROW(MEMBER)                                                                                      \
    {                                                                                                                  \
        FIELD(data, test_fraction, MEMBER), FLOAT(0, 0.9, "0"), COMPUTES,                                              \
            .help = "Fraction held out for testing if the data define no split; for a series, its end."                \
    }
/* MEMBER: a cleat_fold. */
#define FOLD_ROWS(MEMBER)                                                                                              \
    {FIELD(data, folds, MEMBER.count), INT(2, 100, "none"), OR_NONE, COMPUTES_LATER,                                   \
     .help = "Cross-validation: number of folds, in place of val_fraction; set by `cleat train --folds`."},            \
    {                                                                                                                  \
        FIELD(data, fold, MEMBER.index), INT(1, 100, "1"), COMPUTES_LATER,                                             \
            .help = "Cross-validation: the fold that validates this run, from 1."                                      \
    }
#define BUCKETS_ROW(MEMBER)                                                                                            \
    {                                                                                                                  \
        FIELD(data, buckets, MEMBER.buckets), LIST(1, 65536, "auto"), OR_AUTO, COMPUTES,                               \
            .help = "Length buckets: lengths that sequences are padded to."                                            \
    }
#define LIMIT_ROW(MEMBER)                                                                                              \
    {                                                                                                                  \
        FIELD(data, limit, MEMBER.limit), INT(1, 1e9, "none"), OR_NONE, COMPUTES,                                      \
            .help = "Maximum number of training samples; the first ones are used."                                     \
    }
#define MIN_LENGTH_ROW(MEMBER)                                                                                         \
    {                                                                                                                  \
        FIELD(data, min_length, MEMBER.min_length), INT(1, 65536, "none"), OR_NONE,                                    \
            .help = "Lower limit for reducing max_length if not even one sample fits the device memory."               \
    }

#endif

/* Published networks: the names of their parameters in files and here. A model family lists the architectures
 * that it can start from (cleat_model_class.architectures); each is a table of names, a table of
 * config.json's members, and functions if tables do not suffice. Import, export and verification read the
 * same tables. */
#ifndef CLEAT_SRC_ARCHITECTURE_H
#define CLEAT_SRC_ARCHITECTURE_H

#include "cleat/graph.h"
#include "cleat/models.h"
#include "core/string.h"
#include "weights/weights.h"

struct cJSON;

enum { CLEAT_WEIGHT_PARTS = 3, CLEAT_WEIGHT_NAME = 128, CLEAT_WEIGHT_NUMBERS = 4 };

/* The location of a parameter in the file. `param` is the parameter's name, or the name up to its last dot,
 * in which case the rest (".weight", ".bias", ".running_mean") is the same in the file. Each `*` stands for a
 * number; the k-th `*` of a source is the k-th number of the parameter (or what `renumber` makes of it).
 * Several sources are stacked along the first dimension: att.qkv [3D, D] is query, key and value [D, D] each.
 * Layouts are converted by the rule of weights/layout.h. The first matching row applies. */
typedef struct cleat_weight_row {
    const char *param;
    const char *sources[CLEAT_WEIGHT_PARTS]; /* without `base`; NULL: no further one */
    /* The row is outside the backbone: its names have no `base`, and it is initialised if the file lacks it or has
     * another number of classes. */
    bool head;
    /* Number of dimensions in the file if it is more than the parameter's: a 1 x 1 convolution that is a
     * matrix here (4), a vector with leading ones (cls_token [1, 1, D]: 3) or, if negative, with ones after
     * it (layer_scale [D, 1, 1]: -3). 0: that of the parameter; convolutions always have 4. CLEAT_TRANSPOSED
     * (weights/layout.h): matrices are transposed. */
    int rank;
    float added; /* to the values of the file: 1 for factors 1 + weight */
    /* A table [P, D] of the positions of a square of patches, possibly after one of a class token. If the
     * file's square has another size, it is resampled (weights/position_table.h). */
    bool positions;
} cleat_weight_row;

/* A member of config.json. */
typedef struct cleat_config_row {
    const char *key;      /* "hidden_size" */
    const char *setting;  /* the profile's setting that has its value, "model.d_model"; NULL: none */
    const char *fallback; /* value, as JSON, if the file lacks the member; NULL: it is required */
    const char *only;     /* the only value, as JSON, that is supported; NULL: any that the setting accepts */
    int kind;             /* its type (weights/config.h); 0: a whole number; ignored with `only` */
    const char *remedy;   /* with `only`: what to do if it has another value; NULL: use other weights */
} cleat_config_row;

/* Receives the settings of a profile, "model.d_model", that config.json determines; `key` is the member of
 * config.json for messages. */
typedef struct cleat_setting_sink {
    cleat_status (*set)(void *user, const char *setting, const char *value, const char *key, cleat_error *error);
    void *user;
    int head; /* of the architecture */
} cleat_setting_sink;
/* Passes a whole number to the sink. */
cleat_status cleat_set_integer(const cleat_setting_sink *sink, const char *setting, int64_t value, const char *key,
                               cleat_error *error);

typedef struct cleat_architecture {
    const char *name; /* model_type of config.json: "bert" */
    bool timm;        /* a network of timm; else of transformers */
    const char *base; /* "bert.": prefix of the backbone's names, which files of a bare backbone lack; "": none */
    const cleat_weight_row *names; /* terminated by a NULL param; exports use them */
    /* Names in other versions of the same library, for files that lack `names`; also relative to `base`.
     * NULL: none. */
    const cleat_weight_row *other_names;
    const char *const *ignored; /* patterns (`*`: any text) of tensors that are not read; NULL-terminated; NULL: none */
    const cleat_config_row *config; /* terminated by a NULL key; NULL: none */
    bool tied;                      /* the last layer of the head is the table of word embeddings */
    /* Whether the file is of this architecture; NULL: its model_type is `name`. */
    bool (*matches)(const cleat_weights *weights);
    int head; /* for `configure`: cleat_text_head of a text network */
    const char
        *members; /* of config.json that `configure` reads, between blanks (weights/config.c); NULL: usual ones */
    /* Sets what `config` cannot express, such as lists and sizes found in the tensors; NULL: nothing. */
    cleat_status (*configure)(const cleat_weights *weights, const cleat_setting_sink *sink, cleat_error *error);
    /* Adds members to the config.json of an export, such as lists; false: no memory. NULL: nothing. */
    bool (*describe)(const cleat_model *model, struct cJSON *config);
    /* Changes the numbers of a parameter's name [count] to those of its sources; returns their count. NULL: equal. */
    size_t (*renumber)(const cleat_model *model, size_t count, int64_t numbers[CLEAT_WEIGHT_NUMBERS]);
    /* Whether a parameter of the head with a matching shape takes the file's values: not if its rows belong
     * to labels other than the model's. NULL: it does. */
    bool (*keeps)(const cleat_model *model, const cleat_weights *weights, const char *param);
} cleat_architecture;

/* The file's architecture, among `architectures` (NULL-terminated). CLEAT_ERR_NOT_SUPPORTED: none of them;
 * the message has the file's model_type and the known ones. */
cleat_status cleat_architecture_find(const cleat_architecture *const *architectures, const cleat_weights *weights,
                                     const cleat_architecture **architecture, cleat_error *error);
/* Passes the settings that config.json determines to the sink. Errors name config.json and its member. */
cleat_status cleat_architecture_configure(const cleat_architecture *architecture, const cleat_weights *weights,
                                          const cleat_setting_sink *sink, cleat_error *error);

/* How each matrix of a GGUF file keeps its values when it is frozen, as cleat_param_options.frozen_weights: types of 4
 * bits are q4, others of blocks q8, the rest and those of other files float. Of several parts the largest counts, and
 * of all blocks if the text has no room for each. */
void cleat_weights_forms(const cleat_weights *weights, const cleat_architecture *architecture,
                         char text[CLEAT_FROZEN_TEXT]);

/* The sources of a parameter or buffer. */
typedef struct cleat_weight_sources {
    char names[CLEAT_WEIGHT_PARTS][CLEAT_WEIGHT_NAME]; /* with `base` if the row is of the backbone */
    size_t count;
    bool head;
    int rank;       /* as in cleat_weight_row */
    float added;    /* as in cleat_weight_row */
    bool positions; /* as in cleat_weight_row */
} cleat_weight_sources;
/* Finds the sources in `names`, or with `other` in other_names; returns false if there are none. `model` may
 * be NULL without `renumber`. */
bool cleat_architecture_sources(const cleat_architecture *architecture, const cleat_model *model, bool other,
                                const char *param, cleat_weight_sources *sources);

/* Whether the file has the tensors of the architecture's head, in any shape, or the architecture has no head. */
bool cleat_architecture_has_head(const cleat_architecture *architecture, const cleat_weights *weights);

typedef enum cleat_weight_fate {
    CLEAT_WEIGHT_TAKEN, /* a parameter got its values from the file */
    CLEAT_WEIGHT_NEW,   /* a parameter was initialised */
    CLEAT_WEIGHT_LEFT,  /* a tensor of the file was not used */
} cleat_weight_fate;

/* A line of the table; similar names are one line: "encoder.layer.*.output.dense.weight". */
typedef struct cleat_weight_line {
    cleat_weight_fate fate;
    char name[CLEAT_WEIGHT_NAME];
    char reason[160]; /* "" for those taken as they are */
    size_t count;     /* tensors */
} cleat_weight_line;

typedef struct cleat_weight_report {
    cleat_weight_line *lines;
    size_t count, capacity;
    size_t tensors[3]; /* by fate */
    /* Tensors that were not used because the network has fewer blocks than the file; the first and the last of these
     * blocks, or -1 if their names have several numbers. */
    size_t further;
    int64_t further_first, further_last;
} cleat_weight_report;
void cleat_weight_report_free(cleat_weight_report *report);
/* "blocks 6 to 11 of the file are not used", for a report with such tensors. */
void cleat_weight_report_further(const cleat_weight_report *report, char text[160]);
/* Appends the table as text, each line after `prefix`. */
void cleat_weight_report_add_text(const cleat_weight_report *report, const char *prefix, cleat_string *text);

/* The source and destination of a load. */
typedef struct cleat_weight_target {
    const cleat_architecture *architecture; /* NULL: names and layouts are those of cleat */
    /* Without an architecture: rows for the parameters that the file's family shares with the model's; the
     * others are initialised. NULL: all are shared. */
    const cleat_architecture *shared;
    const cleat_model *model;
    const cleat_store *store;
    const char *prefix; /* in front of every name of the file ("grad/"); "": none */
    /* Without an architecture: the reason for initialising an output layer of the right shape, whose rows
     * belong to other labels. NULL: it is read. */
    const char *other_labels;
    /* Stores elements first .. first + count - 1 of a parameter or buffer, which arrives in blocks, in
     * ascending order. A block begins and ends at multiples of the unit of its layout (weights/layout.h). */
    cleat_status (*write)(void *user, cleat_tensor *tensor, int64_t first, int64_t count, const float *values,
                          cleat_error *error);
    /* The same for a frozen matrix with blocks, from whole rows of a GGUF file as stored; NULL: `write` gets them. */
    cleat_status (*write_stored)(void *user, cleat_tensor *tensor, int64_t first, int64_t count, cleat_gguf_type type,
                                 const void *stored, cleat_error *error);
    /* Initialises a parameter or buffer that the file lacks. */
    cleat_status (*draw)(void *user, cleat_tensor *tensor, cleat_error *error);
    void *user;
} cleat_weight_target;
/* Reads the values of the store's parameters and buffers and passes them to `write`, block by block.
 * Parameters of the head that the file lacks, or has for other classes, are passed to `draw` and reported as
 * new. CLEAT_ERR_SHAPE: a tensor of the backbone has another shape; CLEAT_ERR_FORMAT: it is missing. The
 * caller frees *report. */
cleat_status cleat_weights_load(const cleat_weights *weights, const cleat_weight_target *target,
                                cleat_weight_report *report, cleat_error *error);
/* The same for one parameter or buffer of the store. */
cleat_status cleat_weights_load_one(const cleat_weights *weights, const cleat_weight_target *target,
                                    cleat_tensor *tensor, cleat_error *error);

#endif

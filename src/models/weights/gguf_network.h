/* A GGUF file as a folder of Hugging Face: names, shapes, order of rows, and config.json of transformers. */
#ifndef CLEAT_SRC_GGUF_NETWORK_H
#define CLEAT_SRC_GGUF_NETWORK_H

#include "core/gguf.h"
#include "core/safetensors.h"

struct cJSON;

enum { CLEAT_GGUF_NAME = 160 };

/* How a tensor of the file differs from that of Hugging Face; llama.cpp's convert_hf_to_gguf.py makes these changes. */
typedef enum cleat_gguf_change {
    CLEAT_GGUF_SAME,
    CLEAT_GGUF_PAIRED,     /* rows of a head's first and second half alternate: queries and keys of Llama */
    CLEAT_GGUF_PLUS_ONE,   /* 1 is added: norms of Gemma */
    CLEAT_GGUF_TRANSPOSED, /* matrices of GPT-2 */
} cleat_gguf_change;

typedef struct cleat_gguf_architecture {
    const char *there, *here; /* general.architecture and model_type of transformers */
    int bit;
} cleat_gguf_architecture;
/* The architecture of that name in GGUF files (`there`) or in transformers; NULL: it is not known. */
const cleat_gguf_architecture *cleat_gguf_architecture_find(const char *name, bool there);
/* A number that both have: ARCHITECTURE.there, and `here` of config.json, or `gpt2` of GPT-2's (NULL: it has none). */
typedef struct cleat_gguf_config_row {
    const char *there, *here, *gpt2;
    bool is_required, is_real;
} cleat_gguf_config_row;
extern const cleat_gguf_config_row cleat_gguf_config_rows[]; /* the last one is NULL */
/* Llama 3's factor of the wavelength of frequency i of `count`, from the members of its rope_scaling. */
double cleat_gguf_llama3_factor(double theta, int64_t i, int64_t count, double factor, double low, double high,
                                double length);
/* The metadata as config.json, which the caller deletes; rope_theta and rope_scaling are where transformers 4 has them.
 * CLEAT_ERR_FORMAT: a key is missing; CLEAT_ERR_NOT_SUPPORTED: no model_type of cleat has the value of a key. */
cleat_status cleat_gguf_config(const cleat_gguf *file, const cleat_gguf_architecture *architecture,
                               struct cJSON **config, cleat_error *error);
/* Translates the name of a tensor into that of Hugging Face; with `back`, the inverse. False: it has none. */
bool cleat_gguf_rename(const cleat_gguf_architecture *architecture, const char *name, bool back,
                       char renamed[CLEAT_GGUF_NAME], cleat_gguf_change *change);
/* The row in the file of row `row` of a paired tensor, whose heads have `width` rows. */
int64_t cleat_gguf_paired_row(int64_t row, int64_t width);

/* How a tensor is read. */
typedef struct cleat_gguf_view {
    char name[CLEAT_GGUF_NAME];
    cleat_gguf_change change;
    int64_t width; /* of a head, if it is paired */
} cleat_gguf_view;

typedef struct cleat_gguf_network {
    cleat_gguf *file;
    const cleat_gguf_architecture *architecture;
    struct cJSON *config;
    cleat_st_tensor *tensors; /* [cleat_gguf_count] in the order of the file; dtype F32 also if it is quantised */
    cleat_gguf_view *views;   /* [cleat_gguf_count] */
} cleat_gguf_network;

/* The caller closes *network in any case. CLEAT_ERR_NOT_SUPPORTED: an architecture or a feature that cleat does not
 * have. */
cleat_status cleat_gguf_network_open(const char *path, cleat_gguf_network *network, cleat_error *error);
void cleat_gguf_network_close(cleat_gguf_network *network); /* accepts zeros */
/* Values first .. first + count - 1 of tensor i, in the order of Hugging Face. */
cleat_status cleat_gguf_network_read(const cleat_gguf_network *network, size_t i, int64_t first, int64_t count,
                                     float *values, cleat_error *error);

#endif

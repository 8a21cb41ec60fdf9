/* Published checkpoints: weights, and their network's description, as saved by other frameworks.
 *
 * A folder of Hugging Face transformers or timm holds config.json and either model.safetensors or shards that
 * model.safetensors.index.json lists. A single .safetensors file (a state dict of timm or torchvision) may have a
 * config.json beside it. A .gguf file has both, under other names, and a tokenizer. Nothing is unpickled. Files are
 * read tensor by tensor: the weights are never in host memory as a whole.
 *
 * A parameter has one name and one layout in the library. This folder renames, stacks (query, key and value
 * are one matrix here), transposes and resamples while it reads blocks of 1 MiB or writes a tensor at a time,
 * and contains no network: the names of other frameworks are tables of the families (models/published).
 * Settings of config.json are assigned to the profile as if it contained them (profile/adopt.c). */
#ifndef CLEAT_SRC_WEIGHTS_H
#define CLEAT_SRC_WEIGHTS_H

#include "core/gguf.h"
#include "core/safetensors.h"

struct cJSON;

typedef struct cleat_weights cleat_weights;

/* Opens a folder, a .safetensors file or a .gguf file: reads config.json and the headers. The caller closes *weights.
 * Errors name the file: CLEAT_ERR_NOT_FOUND; CLEAT_ERR_FORMAT, also for a pickled file (.bin, .pth, .pt),
 * whose message shows how to convert it, and for a missing shard or entry of the index. */
cleat_status cleat_weights_open(const char *path, cleat_weights **weights, cleat_error *error);
/* The same for a folder that may lack the weights: then it has no tensors, and config.json determines settings. */
cleat_status cleat_weights_open_config(const char *path, cleat_weights **weights, cleat_error *error);
/* The same without config.json, for the file of arrays `name` in the folder (expected.safetensors). */
cleat_status cleat_weights_open_file(const char *folder, const char *name, cleat_weights **weights, cleat_error *error);
void cleat_weights_close(cleat_weights *weights); /* accepts NULL */

const char *cleat_weights_path(const cleat_weights *weights);   /* as given to cleat_weights_open */
const char *cleat_weights_folder(const cleat_weights *weights); /* the folder of its files; a .gguf file itself */

/* Tensors of all shards: `data` is NULL, since they are read by cleat_weights_read. */
size_t cleat_weights_count(const cleat_weights *weights);
const cleat_st_tensor *cleat_weights_at(const cleat_weights *weights, size_t i);           /* NULL after the last */
const cleat_st_tensor *cleat_weights_find(const cleat_weights *weights, const char *name); /* NULL if none */
size_t cleat_weights_index(const cleat_weights *weights, const cleat_st_tensor *tensor);   /* inverse of _at */
const char *cleat_weights_metadata(const cleat_weights *weights, const char *key); /* of the first file; or NULL */
/* Reads a tensor of this object and converts it to f32 values [its elements]; f64 is rounded, integers are
 * exact up to 2^24. */
cleat_status cleat_weights_read(const cleat_weights *weights, const cleat_st_tensor *tensor, float *values,
                                cleat_error *error);
/* The same for elements first .. first + count - 1, to values [count]. */
cleat_status cleat_weights_read_part(const cleat_weights *weights, const cleat_st_tensor *tensor, int64_t first,
                                     int64_t count, float *values, cleat_error *error);
/* Bytes of all tensors as stored, and the type of most of them: "BF16", "Q4_1". */
int64_t cleat_weights_bytes(const cleat_weights *weights);
const char *cleat_weights_type(const cleat_weights *weights);

/* The file whose metadata have the tokenizer; NULL: it is not a GGUF file. */
const cleat_gguf *cleat_weights_gguf(const cleat_weights *weights);
/* The stored rows of a matrix of a GGUF file. */
typedef struct cleat_weight_blocks {
    cleat_gguf_type type;
    int64_t rows, columns; /* columns: whole blocks */
    size_t row_bytes;
    bool is_transposed; /* the tensor's shape is [columns, rows] (GPT-2) */
} cleat_weight_blocks;
/* False: the tensor is not of a GGUF file, no matrix, or its values are not those of the file (norms of Gemma). */
bool cleat_weights_blocks(const cleat_weights *weights, const cleat_st_tensor *tensor, cleat_weight_blocks *blocks);
/* Copies rows row .. row + rows - 1 as stored, to bytes [rows * row_bytes]; row k has the values of row k of
 * cleat_weights_read, or of its transpose. */
cleat_status cleat_weights_read_blocks(const cleat_weights *weights, const cleat_st_tensor *tensor, int64_t row,
                                       int64_t rows, void *bytes, cleat_error *error);

/* The object in config.json, owned by `weights`; NULL: there is no such file. */
const struct cJSON *cleat_weights_config(const cleat_weights *weights);
/* Its member that is a string; NULL: no file, no member, or another type (weights/config.h has checked ones). */
const char *cleat_weights_config_text(const cleat_weights *weights, const char *key);
/* The object in another JSON file of the folder, which the caller deletes (cJSON_Delete); *object is NULL if
 * the folder has no such file. CLEAT_ERR_FORMAT: it is not a JSON object. */
cleat_status cleat_weights_read_json(const cleat_weights *weights, const char *name, struct cJSON **object,
                                     cleat_error *error);

#endif

/* Cache of encoded texts in the cache folder, so that a later start need not encode them again. */
#ifndef CLEAT_SRC_ENCODE_CACHE_H
#define CLEAT_SRC_ENCODE_CACHE_H

#include "data/text/encode.h"

/* Like cleat_encode_texts, but reads the result from the file for `name` if it was computed from the same
 * texts (compared by their bytes, not by a file's date), the same vocabulary and the same settings. Otherwise
 * encodes and writes the file. `name` identifies the texts ("/data/tweets/train.csv, column text"): a new
 * result replaces the old one of the same name. A damaged file causes a warning and is written again; a
 * missing or full cache folder also causes a warning. *reused (may be NULL): true if nothing was encoded. */
cleat_status cleat_encode_cached(const cleat_encode_setup *setup, const char *name, bool *reused,
                                 cleat_encoded_texts *encoded, cleat_error *error);

/* Path of the cache file for `name`. */
cleat_status cleat_encode_cache_path(const char *name, char *path, size_t size, cleat_error *error);

#endif

/* Encoded texts kept in the cache folder, so that the next start does not encode. */
#ifndef CLEAT_SRC_ENCODE_CACHE_H
#define CLEAT_SRC_ENCODE_CACHE_H

#include "data/text/encode.h"

/* As cleat_encode_texts, but takes the result from the file that belongs to `name`, where that was made of the same texts
 * (their bytes, not a file's date), the same vocabulary and the same settings. Otherwise encodes, and writes the file. `name` says
 * whose texts they are ("/data/tweets/train.csv, column text"): a new result replaces the old one of the same name. A damaged
 * file is logged as a warning and made anew; that there is no cache folder, or no room in it, is a warning too. *reused (may
 * be NULL): nothing was encoded. */
cleat_status cleat_encode_cached(const cleat_encode_setup *setup, const char *name, bool *reused,
                                 cleat_encoded *encoded, cleat_error *error);

/* The file that belongs to `name`. */
cleat_status cleat_encode_cache_path(const char *name, char *path, size_t size, cleat_error *error);

#endif

/* Published causal language models: names of their tensors and settings in files of transformers. */
#ifndef CLEAT_SRC_PUBLISHED_LLAMA_H
#define CLEAT_SRC_PUBLISHED_LLAMA_H

#include "weights/architecture.h"

extern const cleat_architecture *const cleat_published_causal[]; /* ends with NULL */
/* The architecture of a cleat_causal_network. */
const cleat_architecture *cleat_published_causal_of(int network);

#endif

/* Low-rank adapters of linear layers (Hu et al. 2021, "LoRA"): y = x W^T + b + (alpha / rank) (x A^T) B^T
 * with A [rank, fan_in] and B [fan_out, rank]. A is initialised uniformly in +-1/sqrt(fan_in) as in Hugging
 * Face PEFT, B with zeros, so that training begins with the network as it was.
 *
 * A stacked layer has several projections of its input as parts of equal size: att.qkv computes query, key
 * and value. Each chosen part has a separate adapter. The adapters of a layer are two parameters, in the
 * order of the parts: PREFIX.lora_A.weight [P rank, fan_in] and PREFIX.lora_B.weight [P fan_out / parts,
 * rank]. */
#ifndef CLEAT_SRC_NN_LORA_H
#define CLEAT_SRC_NN_LORA_H

#include "cleat/ops.h"

enum { CLEAT_LORA_PARTS = 3 };

/* Adapters of one layer. */
typedef struct cleat_lora_places {
    int parts;                           /* 1: the layer is not stacked, or is adapted as a whole */
    unsigned used;                       /* bit i: part i has an adapter; 0: none has */
    const char *names[CLEAT_LORA_PARTS]; /* [parts] "query", ...; NULL for a whole layer */
} cleat_lora_places;

/* The adapters of a graph. */
typedef struct cleat_lora {
    int64_t rank;
    float scale;        /* alpha / rank */
    float dropout;      /* of the adapters' input; 0 in graphs that do not train */
    const char *layers; /* which layers (cleat_lora_places_of) */
    /* Whether a layer may have adapters: the head has none. */
    bool (*may)(const void *user, const char *prefix);
    const void *user;
} cleat_lora;

/* Linear layers that are built after this call get adapters; NULL: none. `lora` is borrowed while the graph
 * is built. */
void cleat_nn_set_lora(cleat_graph *graph, const cleat_lora *lora);

/* Which adapters `layers` gives the layer PREFIX. `layers` has words separated by spaces or commas: the last
 * components of layers ("f1", "att.out"), parts of stacked layers ("query"), or all-linear: every layer,
 * stacked ones by parts. */
cleat_lora_places cleat_lora_places_of(const char *layers, const char *prefix);

/* y + the adapters of the linear layer PREFIX at x; y if it has none. x [..., fan_in], y [..., fan_out] -> [...,
 * fan_out]. Call it right after the layer, before its activation. */
cleat_tensor *cleat_nn_lora(cleat_graph *graph, const char *prefix, cleat_tensor *x, cleat_tensor *y);

/* Adds the adapters to a weight on the host: weight [fan_out, fan_in] += scale B A for each part in use. a
 * and b as the parameters above. */
void cleat_lora_merge(const cleat_lora_places *places, int64_t rank, float scale, const float *a, const float *b,
                      int64_t fan_out, int64_t fan_in, float *weight);

#endif

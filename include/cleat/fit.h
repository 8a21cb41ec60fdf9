/* A profile fitted to a card: micro-batches, whether activations are recomputed, every byte, and an
 * estimate of the time. Pure: facts of a card go in; no card is needed.
 *
 * Samples an optimizer step, W (the window), come from one length bucket; they are at most
 * effective_batch_size and do not depend on the card. A window is run as micro-batches of B samples whose
 * gradients add up. */
#ifndef CLEAT_FIT_H
#define CLEAT_FIT_H

#include "cleat/device.h"
#include "cleat/graph.h"
#include "cleat/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CLEAT_BUCKETS = 16, CLEAT_PEAK_PARTS = 4 };

typedef struct cleat_fit_bucket {
    int64_t length;            /* samples are padded to it */
    int64_t samples;           /* of the training data; 0 where the data are not known */
    int64_t global_batch_size; /* W: samples an optimizer step */
    int64_t micro_batch_size;  /* B: samples a micro-batch */
    int64_t micro_batches;     /* ceil(W / B) */
} cleat_fit_bucket;

/* Result for one of the two alternatives, stored or recomputed activations. */
typedef struct cleat_fit_way {
    bool fits;
    int64_t micro_batch_size;  /* B of the longest bucket */
    int64_t micro_batches;     /* of its window */
    int64_t bytes;             /* planned, all of them; where it does not fit: of one sample */
    double step_seconds;       /* estimate: an optimizer step of the longest bucket */
    double samples_per_second; /* estimate over all buckets */
} cleat_fit_way;

typedef struct cleat_fit_report {
    cleat_device_facts facts;
    cleat_rates rates;
    int64_t limit; /* memory limit in bytes: max_memory_usage of the free memory */
    bool fits;
    /* If it does not fit: the shortage, its cause, and what would fit. If it fits: the reason for these
     * micro-batches and for recomputation. */
    char reason[768];
    bool recompute;                   /* gradient checkpointing is on */
    cleat_fit_way stored, recomputed; /* both alternatives, for comparison */
    bool data_known;                  /* buckets come from the data; else one of data.max_length */
    size_t n_buckets;
    cleat_fit_bucket buckets[CLEAT_BUCKETS];
    int64_t effective_batch;
    int64_t parameters; /* elements */
    int64_t bytes;      /* planned = allocated */
    int64_t category_bytes[CLEAT_CATEGORIES];
    /* activation type: the resolved train.precision on this card, also if nothing fits */
    cleat_dtype storage;
    int64_t single_arena;             /* activations and workspace of the same micro-batches in f32 */
    int64_t fixed_bytes;              /* bytes of an empty batch */
    int64_t bytes_per_sample;         /* additional bytes per sample of the longest bucket */
    int64_t arena_bytes, lower_bound; /* arena_bytes / lower_bound is the quality of the layout */
    int64_t largest_slab;
    size_t slabs;
    /* The longest bucket's training graph: */
    int64_t forward_peak;  /* most bytes of activations and workspace alive in forward */
    int64_t training_peak; /* and in forward + backward */
    char forward_peak_node[CLEAT_NAME], training_peak_node[CLEAT_NAME];
    /* of training_peak: stored activations, recomputed activations, gradients, workspace */
    int64_t peak_parts[CLEAT_PEAK_PARTS];
    /* Bytes per micro-batch, over all layers, of intermediate results that plain operations would store
     * for backward (attention matrices) and fused kernels do not; not in the plan. */
    int64_t fused_bytes;
    int64_t fused_largest;             /* the largest of those: of one layer */
    int64_t steps_per_epoch;           /* 0 where the data are not known */
    double epoch_seconds, run_seconds; /* estimates, without evaluation; 0 where the data are not known */
} cleat_fit_report;

CLEAT_API const char *cleat_peak_part_name(int part); /* "stored activations", ... */

/* Plans `profile` for a device. `tuning`: kernels measured on it (cleat_tuning_load of cleat/tuning.h);
 * NULL: the defaults. `micro_batch_size` > 0 requests that micro-batch (the maximum of all buckets); 0:
 * the setting of the profile. Samples are counted if profile->data->path exists; otherwise the longest
 * length is planned. Returns CLEAT_OK also if the plan does not fit: see report->fits. */
CLEAT_API cleat_status cleat_fit_describe(const cleat_profile *profile, const cleat_device_facts *facts,
                                          const cleat_rates *rates, const cleat_tuning_table *tuning,
                                          int64_t micro_batch_size, cleat_fit_report *report, cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif

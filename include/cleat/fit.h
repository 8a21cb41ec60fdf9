/* Fitting a profile to a device: micro-batch sizes, recomputation of activations, all device memory, and an
 * estimate of the time. The result is a pure function of the facts about a device; no device is needed.
 *
 * A global batch has W samples of one length bucket. W is at most effective_batch_size and does not depend on
 * the device. A global batch is run as micro-batches of B samples, whose gradients are summed. */
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
    int64_t length;            /* length to which samples are padded */
    int64_t samples;           /* training samples in this bucket; 0 if the data are not known */
    int64_t global_batch_size; /* W: samples per optimizer step */
    int64_t micro_batch_size;  /* B: samples per micro-batch */
    int64_t micro_batches;     /* ceil(W / B) */
} cleat_fit_bucket;

/* Result for one of the two alternatives: activations stored or recomputed. */
typedef struct cleat_fit_way {
    bool fits;
    int64_t micro_batch_size;  /* B of the longest bucket */
    int64_t micro_batches;     /* micro-batches per global batch of that bucket */
    int64_t bytes;             /* total of the plan; if it does not fit, of a plan for one sample */
    double step_seconds;       /* estimate: optimizer step of the longest bucket */
    double samples_per_second; /* estimate over all buckets */
} cleat_fit_way;

typedef struct cleat_fit_report {
    cleat_device_facts facts;
    cleat_rates rates;
    int64_t limit; /* memory limit in bytes: max_memory_usage x free memory */
    bool fits;
    /* If the profile does not fit: the shortage, its cause, and what would fit. If it fits: the reason for
     * these micro-batch sizes and for recomputation. */
    char reason[768];
    bool recompute;                   /* gradient checkpointing: activations are recomputed in backward */
    cleat_fit_way stored, recomputed; /* both alternatives, for comparison */
    /* true: the buckets come from the data; false: from data.buckets, or one bucket of the maximum length */
    bool data_known;
    size_t n_buckets;
    cleat_fit_bucket buckets[CLEAT_BUCKETS];
    int64_t effective_batch;
    int64_t parameters;         /* number of parameter elements */
    int64_t trained_parameters; /* those that are not frozen */
    int64_t bytes;              /* total of the plan; equals the allocated bytes */
    int64_t full_bytes;         /* that of the same micro-batches if every parameter were trained */
    /* Frozen weights in blocks: their type (F32: there are none), their elements, and the number of
     * others that linear layers read too, because their rows are no whole blocks, or other layers read them. */
    cleat_dtype frozen_type;
    int64_t block_elements, unblocked_weights;
    int64_t category_bytes[CLEAT_CATEGORIES];
    /* Activation type: the resolved train.precision on this device, also if nothing fits. */
    cleat_dtype storage;
    int64_t single_arena;     /* activations and workspace of the same micro-batches in f32 */
    int64_t fixed_bytes;      /* bytes of a batch without samples */
    int64_t bytes_per_sample; /* additional bytes per sample of the longest bucket */
    /* arena_bytes / lower_bound measures the quality of the memory layout. */
    int64_t arena_bytes, lower_bound;
    int64_t largest_slab;
    size_t slabs;
    /* Of the training graph of the longest bucket: */
    int64_t forward_peak;  /* peak bytes of live activations and workspace in forward */
    int64_t training_peak; /* the same in forward + backward */
    char forward_peak_node[CLEAT_NAME], training_peak_node[CLEAT_NAME];
    /* Parts of training_peak: stored activations, recomputed activations, gradients, workspace. */
    int64_t peak_parts[CLEAT_PEAK_PARTS];
    int64_t steps_per_epoch;           /* 0 if the data are not known */
    double epoch_seconds, run_seconds; /* estimates without evaluation; 0 if the data are not known */
} cleat_fit_report;

/* Name of an element of peak_parts: "stored activations", ...; "" if out of range. */
CLEAT_API const char *cleat_peak_part_name(int part);

/* Plans `profile` for a device. `rates`: its measured speeds, or NULL. `tuning`: kernels measured on it
 * (cleat_tuning_load of cleat/tuning.h); NULL: the defaults. `micro_batch_size` 0: the setting of the
 * profile; > 0: plans the longest bucket only, with that micro-batch size and at least that effective batch
 * size, and report->data_known is false. Samples are counted if profile->data->path exists; otherwise the
 * longest length is planned. CLEAT_OK is returned even if the profile does not fit: see report->fits. */
CLEAT_API cleat_status cleat_fit_describe(const cleat_profile *profile, const cleat_device_facts *facts,
                                          const cleat_rates *rates, const cleat_tuning_table *tuning,
                                          int64_t micro_batch_size, cleat_fit_report *report, cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif

/* Internal interface between the files of the kernel tuner: tune.c (selection of nodes, benchmarks) and
 * tune_clblast.c (CLBlast's parameters). */
#ifndef CLEAT_SRC_TUNER_H
#define CLEAT_SRC_TUNER_H

#include "bench/tune.h"
#include "bench/tune_batch.h"
#include "models/model.h"
#include "session/session.h"

enum { CLEAT_TUNE_RECORDS = 64 };
#define CLEAT_TUNE_SECONDS 0.2 /* default time per candidate */
#define CLEAT_TUNE_WORTH 0.97  /* of the previous time; a smaller gain is noise */
#define CLEAT_TUNE_BY_FAR 8.0  /* times slower than another variant: excluded */

/* Nodes with the same key in a planned workload. */
typedef struct cleat_tune_kind {
    cleat_tune_node about;
    const cleat_node *node; /* one of the nodes */
    int64_t bytes;          /* total size of its tensors */
} cleat_tune_kind;

typedef struct cleat_tune_kinds {
    cleat_tune_kind *items; /* [count]; freed by cleat_tune_kinds_clear */
    size_t count, capacity;
} cleat_tune_kinds;

/* Record of a variant that was slower by far, from small shapes to large ones. */
typedef struct cleat_variant_record {
    const cleat_op *op;
    const cleat_variant *variant;
    int times_slow;
} cleat_variant_record;

typedef struct cleat_tuner {
    const cleat_profile *profile;
    const cleat_tune_options *options;
    cleat_tune_report *report;
    size_t capacity; /* capacity of report->nodes */
    cleat_model *model;
    cleat_device *device;
    cleat_lengths lengths;
    cleat_tuning_table *table; /* contents of the file to be written */
    bool found_clblast;        /* the table's CLBlast parameters were found by this call */
    cleat_tuning_table *seen;  /* keys of the kinds already examined */
    cleat_workload *work;      /* planned with `table` */
    size_t record_count;
    cleat_variant_record records[CLEAT_TUNE_RECORDS];
    int64_t micro_batch_size, length; /* of the bucket that contains the node being timed */
    cleat_tune_batch batch;           /* inputs of a step of that bucket; created on demand */
} cleat_tuner;

/* Opens what is needed by profile, options and report, which the caller has set; CLBlast is set to the
 * parameters of an earlier table. The tuner must be closed even if this fails. */
cleat_status cleat_tuner_open(cleat_tuner *tuner, cleat_error *error);
void cleat_tuner_close(cleat_tuner *tuner);
/* Replans tuner->work with the current table. */
cleat_status cleat_tuner_fit(cleat_tuner *tuner, cleat_error *error);
/* Lists the kinds of nodes in tuner->work that were not examined before and have several variants. */
cleat_status cleat_tuner_find_kinds(cleat_tuner *tuner, cleat_tune_kinds *kinds, cleat_error *error);
void cleat_tune_kinds_clear(cleat_tune_kinds *kinds);
/* Returns a request for all variants that support the kind's node. Kinds must be processed one after
 * another. */
cleat_autotune_request cleat_tuner_request(cleat_tuner *tuner, const cleat_tune_kind *kind);

/* --- CLBlast -------------------------------------------------------------------------------------------------- */

typedef struct cleat_clblast_answer {
    bool found; /* `parameters` are faster than CLBlast's previous ones */
    cleat_clblast_parameters parameters;
    char why[256];
} cleat_clblast_answer;

/* Number of parameter sets to try for the kernel of large products and for the direct kernel; at most
 * CLEAT_CLBLAST_SETS. */
size_t cleat_clblast_xgemm_sets(void);
size_t cleat_clblast_direct_sets(void);
cleat_clblast_parameters cleat_clblast_set(size_t xgemm, size_t direct, int32_t min_indirect);

/* Measured times of one kind of products. */
enum { CLEAT_CLBLAST_LARGE, CLEAT_CLBLAST_DIRECT, CLEAT_CLBLAST_FAMILIES, CLEAT_CLBLAST_SETS = 16 };
typedef struct cleat_clblast_times {
    double uses, multiplications; /* uses: per step; multiplications: m n k of one product */
    double seconds[CLEAT_CLBLAST_FAMILIES][CLEAT_CLBLAST_SETS]; /* with each set; INFINITY: not measured, or failed */
} cleat_clblast_times;

typedef struct cleat_clblast_choice {
    size_t large, direct; /* indices of sets */
    int32_t min_indirect;
    /* Approximate total over all uses of all kinds. INFINITY: the first kind was not measured with both
     * families. */
    double seconds;
} cleat_clblast_choice;

/* Selects the best combination for products [count >= 1]. Candidates for the direct kernel's range: no
 * product, or all products up to the size of one of them. */
cleat_clblast_choice cleat_clblast_choose(const cleat_clblast_times *const *products, size_t count);

/* Searches for parameters that make CLBlast faster in the profile's largest products, in a child process
 * (cleat_child): CLBlast cannot restore its previous parameters, and some parameters may crash a driver.
 * Never fails: `why` describes the outcome. */
cleat_clblast_answer cleat_tune_clblast(const cleat_profile *profile, const cleat_tune_options *options);

#endif

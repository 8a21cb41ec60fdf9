/* What the files of the kernel tuner share: tune.c (which nodes, and the contests) and tune_clblast.c (CLBlast's own
 * parameters). */
#ifndef CLEAT_SRC_TUNER_H
#define CLEAT_SRC_TUNER_H

#include "bench/tune.h"
#include "bench/tune_batch.h"
#include "models/model.h"
#include "session/session.h"

enum { CLEAT_TUNE_RECORDS = 64 };
#define CLEAT_TUNE_SECONDS 0.2 /* a candidate, about, where nothing is said */
#define CLEAT_TUNE_WORTH 0.97  /* of the time before: less is noise */
#define CLEAT_TUNE_BY_FAR 8.0  /* times slower than another variant: it need not be looked at any more */

/* Nodes of one key in a planned workload. */
typedef struct cleat_kind {
    cleat_tune_node about;
    const cleat_node *node; /* one of them */
    int64_t bytes;          /* of its tensors */
} cleat_kind;

typedef struct cleat_kinds {
    cleat_kind *items; /* [count]; cleat_kinds_clear */
    size_t count, capacity;
} cleat_kinds;

/* A variant that keeps losing by far, from small shapes to large ones. */
typedef struct cleat_variant_record {
    const cleat_op *op;
    const cleat_variant *variant;
    int times_slow;
} cleat_variant_record;

typedef struct cleat_tuner {
    const cleat_profile *profile;
    const cleat_tune_options *options;
    cleat_tune_report *report;
    size_t capacity; /* of report->nodes */
    cleat_model *model;
    cleat_device *device;
    cleat_lengths lengths;
    cleat_tuning_table *table; /* what will be in the file */
    bool found_clblast;        /* the table's parameters for CLBlast are this call's */
    cleat_tuning_table *seen;  /* keys of the kinds that were looked at */
    cleat_workload *work;      /* planned with `table` */
    size_t record_count;
    cleat_variant_record records[CLEAT_TUNE_RECORDS];
    int64_t micro_batch_size, length; /* of the bucket of the node in contest */
    cleat_tune_batch batch;           /* what a step of such a bucket reads; empty until asked for */
} cleat_tuner;

/* Opens what profile, options and report (set by the caller) need; CLBlast gets the parameters of an earlier table. To be
 * closed whatever the status. */
cleat_status cleat_tuner_open(cleat_tuner *tuner, cleat_error *error);
void cleat_tuner_close(cleat_tuner *tuner);
/* Plans tuner->work anew, with the table as it is. */
cleat_status cleat_tuner_fit(cleat_tuner *tuner, cleat_error *error);
/* The kinds of nodes in tuner->work that were not looked at before and have a choice. */
cleat_status cleat_tuner_find_kinds(cleat_tuner *tuner, cleat_kinds *kinds, cleat_error *error);
void cleat_kinds_clear(cleat_kinds *kinds);
/* All that serve the kind's node, against each other; for one kind after the other. */
cleat_autotune_request cleat_tuner_request(cleat_tuner *tuner, const cleat_kind *kind);

/* --- CLBlast -------------------------------------------------------------------------------------------------- */

typedef struct cleat_clblast_answer {
    bool found; /* `parameters` are faster than what CLBlast had */
    cleat_clblast_parameters parameters;
    char why[256];
} cleat_clblast_answer;

/* The sets that are tried: of the large products' kernel, and of the direct one; no more than there are. */
size_t cleat_clblast_xgemm_sets(void);
size_t cleat_clblast_direct_sets(void);
cleat_clblast_parameters cleat_clblast_set(size_t xgemm, size_t direct, int32_t min_indirect);

/* What was measured of one kind of products. */
enum { CLEAT_CLBLAST_LARGE, CLEAT_CLBLAST_DIRECT, CLEAT_CLBLAST_FAMILIES, CLEAT_CLBLAST_SETS = 16 };
typedef struct cleat_clblast_times {
    double uses, multiplications;                               /* in a step; m n k of one product */
    double seconds[CLEAT_CLBLAST_FAMILIES][CLEAT_CLBLAST_SETS]; /* with each set; INFINITY: not measured, or failed */
} cleat_clblast_times;

typedef struct cleat_clblast_choice {
    size_t large, direct; /* sets */
    int32_t min_indirect;
    double seconds; /* of all uses of all kinds, about; INFINITY: the first kind has not both families measured */
} cleat_clblast_choice;

/* The best combination for products [count >= 1]: nothing is direct, or what is no larger than one of them. */
cleat_clblast_choice cleat_clblast_choose(const cleat_clblast_times *const *products, size_t count);

/* Looks for parameters that make CLBlast faster in the profile's heaviest products, in a process of its own (cleat_child):
 * CLBlast has no way back to the parameters it had, and a driver may crash with some. Never fails: `why` says how it went. */
cleat_clblast_answer cleat_tune_clblast(const cleat_profile *profile, const cleat_tune_options *options);
/* The same in this process, which is left with the parameters that were tried last. */
cleat_status cleat_tuner_search_clblast(cleat_tuner *tuner, cleat_clblast_answer *answer, cleat_error *error);

#endif

/* Measured choices: which variant computes a node fastest on a device, as a table that is data like any other. A plan
 * made with a table is as pure as one without. Who measures: bench/tune.h; where tables are kept: session/tuned_cache.h.
 *
 * The key of a node says all that a table may tell nodes apart by: the operation, and type and shape of every input
 * and output, "-" for one that is not there (a bias, an accum):
 *
 *   linear f32[1024,256] f32[512,256] f32[512] - -> f32[1024,512]
 *
 * Attributes are left out: what they change of the work shows in a shape (the heads of an attention in its lse), the
 * rest (a probability, a seed) does not make another kernel the fastest.
 *
 * A choice changes which kernel computes a node, and with it the order of sums: a run goes on with the same bits only
 * with the same choices, with others up to rounding, as with other micro-batches. */
#ifndef CLEAT_SRC_TUNING_H
#define CLEAT_SRC_TUNING_H

#include "core/clblast_parameters.h"
#include "graph/plan.h"

/* Bytes of the longest key: 14 tensors of 5 extents. */
enum { CLEAT_TUNING_KEY = 2048 };

typedef struct cleat_tuning_entry {
    char *key;
    char variant[CLEAT_NAME];
    bool shipped; /* the answer came with the program */
} cleat_tuning_entry;

struct cleat_tuning_table {
    /* Where the table holds, as its owner says it: a line each. */
    char device[640];
    char kernels[64];
    char date[16];             /* of the last change: "2026-11-20" */
    char match[256];           /* for files that are shipped: parts of names of devices, separated by "|", ... */
    char shape[32];            /* ... and the shape kernels were built in: "cpu, groups of 1, 16 lanes" */
    cleat_tuning_entry *items; /* [count] rising by key */
    size_t count, capacity;
    bool has_clblast; /* CLBlast is to compute with ... */
    bool clblast_shipped;
    cleat_clblast_parameters clblast; /* ... these parameters instead of those it comes with */
    /* Where shipped answers are among them: the name of their file, and when they were measured. */
    char shipped_file[64], shipped_date[16];
};

void cleat_tuning_key(const cleat_node *node, char key[CLEAT_TUNING_KEY]);

cleat_status cleat_tuning_create(cleat_tuning_table **tuning, cleat_error *error);
/* The node's variant from now on; replaces an earlier one. */
cleat_status cleat_tuning_set(cleat_tuning_table *tuning, const char *key, const char *variant, cleat_error *error);
/* Adds what a table that came with the program as `file` knows and `choices` does not. */
cleat_status cleat_tuning_add_shipped(cleat_tuning_table *tuning, const char *file, const cleat_tuning_table *shipped,
                                      cleat_error *error);
/* The variant listed for `key`, or NULL. `choices` may be NULL. */
const char *cleat_tuning_get(const cleat_tuning_table *tuning, const char *key);
/* Whether the op has anything to choose between. */
bool cleat_op_is_tunable(const cleat_op *op);

/* A cleat_choose_fn, `user` a const cleat_tuning_table * or NULL: the variant that is listed where the op (still) has it and
 * it does not refuse, else the first that does not refuse. */
const cleat_variant *cleat_choose_tuned(void *user, const cleat_node *node, const cleat_device_facts *facts);

/* What a plan makes of a table. */
typedef struct cleat_tuning_use {
    size_t nodes;                 /* that have a choice */
    size_t listed;                /* whose key the table has ... */
    size_t gone;                  /* ... and whose listed variant the op has not, or it refuses: the default serves */
    size_t shipped_gone;          /* the same of shipped answers, which outlive their kernels */
    char example[2 * CLEAT_NAME]; /* of `gone`: "linear: turbo" */
} cleat_tuning_use;
cleat_tuning_use cleat_tuning_count_use(const cleat_tuning_table *tuning, const cleat_plan *plan);
/* Says which choices a plan was made with, by their hash, and what became of them. `choices` NULL: says nothing; where
 * they know none of the plan's nodes, that is for debugging only. */
void cleat_tuning_log(const cleat_tuning_table *tuning, const cleat_plan *plan);

/* The table as text, and back: sections [tuned], [clblast] where it has parameters for CLBlast, and [choices]. Where an
 * answer came from is not part of it. Reading is strict: a line that is not understood, or parameters with which CLBlast
 * cannot run, are CLEAT_ERR_FORMAT with `place` (the file's name) and the line. */
cleat_status cleat_tuning_format(const cleat_tuning_table *tuning, char **text, cleat_error *error);
cleat_status cleat_tuning_parse(const char *place, const char *text, size_t size, cleat_tuning_table **tuning,
                                cleat_error *error);
/* Eight hexadecimal digits that stand for what is chosen. */
cleat_status cleat_tuning_hash(const cleat_tuning_table *tuning, char hash[9], cleat_error *error);

#endif

/* The tuning table: measured choices of the fastest variant of a node on a device, as plain data. A plan made
 * with a table is as pure as one without. bench/tune.h measures; session/tuned_cache.h stores tables.
 *
 * The key of a node contains everything by which a table may distinguish nodes: the operation, and type and
 * shape of every input and output, "-" for one that is absent (a bias, a gradient accumulator):
 *
 *   linear f32[1024,256] f32[512,256] f32[512] - -> f32[1024,512]
 *
 * and "linear tf32 ..." if operands may be rounded to TF32, which other variants compute.
 *
 * Attributes are omitted: if they change the amount of work, a shape shows it (the number of heads of an
 * attention in its lse); the others (a probability, a seed) do not change which kernel is the fastest.
 *
 * A choice changes which kernel computes a node and thereby the order of sums. A run continues
 * bit-identically only with the same choices; with others it agrees up to rounding, as it does with other
 * micro-batches. */
#ifndef CLEAT_SRC_TUNING_H
#define CLEAT_SRC_TUNING_H

#include "core/clblast_parameters.h"
#include "graph/plan.h"

/* Bytes of the longest key, which has 17 tensors of 5 dimensions. */
enum { CLEAT_TUNING_KEY = 2048 };

typedef struct cleat_tuning_entry {
    char *key;
    char variant[CLEAT_NAME];
    bool shipped; /* the entry came with the program */
} cleat_tuning_entry;

struct cleat_tuning_table {
    /* Validity of the table: device and kernels, each as one line of text from the table's owner. */
    char device[640];
    char kernels[64];
    char date[16];   /* date of the last change: "2026-11-20" */
    char match[256]; /* in shipped files: parts of device names, separated by "|" */
    /* In shipped files: the kernel shape of the measurement: "cpu, groups of 1, 16 lanes". */
    char shape[32];
    cleat_tuning_entry *items; /* [count] sorted by key */
    size_t count, capacity;
    bool has_clblast; /* CLBlast computes with `clblast` instead of its default parameters */
    bool clblast_shipped;
    cleat_clblast_parameters clblast;
    /* If the table contains shipped entries: the name of their file, and the date of their measurement. */
    char shipped_file[64], shipped_date[16];
};

void cleat_tuning_key(const cleat_node *node, char key[CLEAT_TUNING_KEY]);

cleat_status cleat_tuning_create(cleat_tuning_table **tuning, cleat_error *error);
/* Sets the variant of the nodes with this key; replaces an earlier one. */
cleat_status cleat_tuning_set(cleat_tuning_table *tuning, const char *key, const char *variant, cleat_error *error);
/* Adds the entries of `shipped`, a table that came with the program as `file`, whose keys are not in
 * `tuning`. */
cleat_status cleat_tuning_add_shipped(cleat_tuning_table *tuning, const char *file, const cleat_tuning_table *shipped,
                                      cleat_error *error);
/* The variant listed for `key`, or NULL. `tuning` may be NULL. */
const char *cleat_tuning_get(const cleat_tuning_table *tuning, const char *key);
/* Whether the op has more than one variant. */
bool cleat_op_is_tunable(const cleat_op *op);

/* A cleat_choose_fn; `user` is a const cleat_tuning_table * or NULL. Returns the listed variant if the op
 * (still) has it and it does not refuse, else the first variant that does not refuse. */
const cleat_variant *cleat_choose_tuned(void *user, const cleat_node *node, const cleat_device_facts *facts);

/* How a plan uses a table. */
typedef struct cleat_tuning_use {
    size_t nodes;  /* nodes that have a choice */
    size_t listed; /* nodes whose key is in the table */
    /* Of these: nodes whose listed variant no longer exists or refuses, so that the default is used. */
    size_t gone;
    /* The same for shipped entries, which outlive their kernels. */
    size_t shipped_gone;
    char example[2 * CLEAT_NAME]; /* one of `gone`: "linear: turbo" */
} cleat_tuning_use;
cleat_tuning_use cleat_tuning_count_use(const cleat_tuning_table *tuning, const cleat_plan *plan);
/* Logs which choices a plan was made with, identified by their hash, and how many of them apply. Logs nothing
 * if `tuning` is NULL, and only at debug level if the table has none of the plan's nodes. */
void cleat_tuning_log(const cleat_tuning_table *tuning, const cleat_plan *plan);

/* The table as text, and its parser: sections [tuned], [clblast] if the table has parameters for CLBlast, and
 * [choices]. The text does not mark shipped entries. The parser is strict: a line that it does not
 * understand, or parameters with which CLBlast cannot run, are CLEAT_ERR_FORMAT with `place` (the file's
 * name) and the line. *text is freed with cleat_free. */
cleat_status cleat_tuning_format(const cleat_tuning_table *tuning, char **text, cleat_error *error);
cleat_status cleat_tuning_parse(const char *place, const char *text, size_t size, cleat_tuning_table **tuning,
                                cleat_error *error);
/* Eight hexadecimal digits that identify the choices. */
cleat_status cleat_tuning_hash(const cleat_tuning_table *tuning, char hash[9], cleat_error *error);

#endif

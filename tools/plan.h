/* What the files of `cleat plan` share: a profile planned for cards (cmd_plan.c), its learning rate as a table
 * (plan_rate.c), and the ways of showing them (plan_print.c, plan_json.c). */
#ifndef CLEAT_TOOLS_PLAN_H
#define CLEAT_TOOLS_PLAN_H

#include "cli.h"

#include <cleat/fit.h>

enum { PLAN_BATCHES = 7, PLAN_POINTS = 6 };

/* What the three rules make of the profile's learning rate at an effective batch. */
typedef struct plan_scaling {
    int64_t batch;
    bool own; /* the profile's effective batch */
    double none, linear, sqrt;
} plan_scaling;

/* The learning rate somewhere in the run. */
typedef struct plan_point {
    char at[32];  /* "start", "end of warm-up", "25 % of the run" */
    double epoch; /* and ... */
    int64_t step; /* ... optimizer step; -1: not known without the data */
    double rate;
} plan_point;

typedef struct plan_rates {
    int64_t base_batch; /* the batch train.learning_rate belongs to; where none is given, the profile's own */
    size_t n_scalings, n_points;
    plan_scaling scalings[PLAN_BATCHES];
    plan_point points[PLAN_POINTS];
    cleat_status status; /* not CLEAT_OK: training would refuse the schedule; there are no points */
    cleat_error error;
} plan_rates;

/* `steps_per_epoch` is 0 where the data are not known. */
plan_rates plan_find_rates(const cleat_profile *profile, int64_t steps_per_epoch);

typedef struct plan_card {
    char name[32];                   /* of the card file; "" where no card file describes the device */
    bool present;                    /* a device of this machine, not a card file */
    char differences[1024];          /* driver against card file; "" where there are none */
    char kernels[CLEAT_TUNING_TEXT]; /* what is known of a present device's fastest ones; "" for a card file */
    cleat_fit_report report;
} plan_card;

/* A profile planned for cards. */
typedef struct plan_result {
    const char *path; /* of the profile */
    const cleat_profile *profile;
    int64_t micro_batch_size; /* the micro-batch that was asked for; 0: what the profile says */
    size_t count;
    plan_card *cards; /* [count] */
    plan_rates rates; /* the same on every card */
} plan_result;

/* The way the report chose; where nothing fits, its `fits` is false. */
const cleat_fit_way *plan_chosen_way(const cleat_fit_report *report);

void plan_print_rates(const plan_result *plan); /* the learning rate */
void plan_print_card(const plan_result *plan);  /* everything about the only card */
void plan_print_table(const plan_result *plan); /* a row a card */
/* An object about the only card, or an array of them; false where memory is short. */
bool plan_print_json(const plan_result *plan, bool array);

#endif

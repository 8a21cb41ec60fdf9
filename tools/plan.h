/* Interface between the files of `cleat plan`: a profile planned for cards (cmd_plan.c), its learning rate as
 * a table (plan_rate.c), output as text and JSON (plan_print.c, plan_json.c), plans of several devices
 * (plan_devices.c). */
#ifndef CLEAT_TOOLS_PLAN_H
#define CLEAT_TOOLS_PLAN_H

#include "cli.h"

#include <cleat/fit.h>

enum { PLAN_BATCHES = 7, PLAN_POINTS = 6 };

/* The profile's learning rate at an effective batch size, under the three scaling rules. */
typedef struct plan_scaling {
    int64_t batch;
    bool own; /* the profile's effective batch size */
    double none, linear, sqrt;
} plan_scaling;

/* The learning rate at one point of the run. */
typedef struct plan_point {
    char at[32];  /* "start", "end of warm-up", "25 % of the run" */
    double epoch; /* -1: unknown */
    int64_t step; /* optimizer step; -1: unknown without the data */
    double rate;
} plan_point;

typedef struct plan_rates {
    int64_t base_batch; /* batch size for which train.learning_rate is set; the profile's own by default */
    size_t n_scalings, n_points;
    plan_scaling scalings[PLAN_BATCHES];
    plan_point points[PLAN_POINTS];
    int64_t cut_warmup;  /* warm-up in optimizer steps if training shortens the profile's; else -1 */
    cleat_status status; /* not CLEAT_OK: training would reject the schedule; there are no points */
    cleat_error error;
} plan_rates;

/* `steps_per_epoch` is 0 if the data is unknown. */
plan_rates plan_find_rates(const cleat_profile *profile, int64_t steps_per_epoch);

typedef struct plan_card {
    char name[32];                   /* name of the card file; "" if no card file describes the device */
    bool present;                    /* a device of this machine, not only a card file */
    char differences[1024];          /* between driver and card file; "" if there are none */
    char kernels[CLEAT_TUNING_TEXT]; /* tuned kernels of a present device; "" for a card file */
    cleat_fit_report report;
} plan_card;

/* A profile planned for cards. */
typedef struct plan_result {
    const char *path; /* path of the profile */
    const cleat_profile *profile;
    int64_t micro_batch_size; /* requested micro-batch size; 0: from the profile */
    size_t count;
    plan_card *cards; /* [count] */
    plan_rates rates; /* identical on all cards */
} plan_result;

/* Returns the selected way of fitting; if nothing fits, its `fits` is false. */
const cleat_fit_way *plan_chosen_way(const cleat_fit_report *report);

void plan_print_rates(const plan_result *plan); /* the learning rate */
void plan_print_card(const plan_result *plan);  /* details of the only card */
void plan_print_table(const plan_result *plan); /* one row per card */
/* Prints an object for the only card, or an array of objects. */
void plan_print_json(const plan_result *plan, bool array);
/* A number; null if it is the one that marks it as unknown (0 or -1), or is not finite. */
cleat_json_value plan_known(const char *name, double value, double unknown);

/* --- several devices (plan_devices.c) ----------------------------------------------------------------------------- */

typedef struct plan_devices_request {
    const char *path;    /* of the profile */
    const char *devices; /* "2*t4,rx6600xt" */
    const char *network; /* "10Gb,30us"; NULL: not given */
    const char *price;   /* "t4=0,rx6600xt=0.1", in any currency and hour; NULL: not given */
    bool json;
} plan_devices_request;

/* Plans and prints; returns the exit code. `command` is for messages about the command line. */
int plan_devices_run(const cli_command *command, const plan_devices_request *request, const cleat_profile *profile);

#endif

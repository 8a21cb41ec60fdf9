/* Interface between the files of `cleat plan --devices`: the devices and their network (plan_devices.c), and
 * output as text and JSON (plan_devices_print.c). */
#ifndef CLEAT_TOOLS_PLAN_DEVICES_H
#define CLEAT_TOOLS_PLAN_DEVICES_H

#include "cli.h"

#include <cleat/card.h>
#include <cleat/distributed_plan.h>

typedef struct plan_devices_request {
    const char *path;    /* of the profile */
    const char *devices; /* "2*t4,rx6600xt" */
    const char *network; /* "10Gb,30us"; NULL: not given */
    const char *price;   /* "t4=0,rx6600xt=0.1", in any currency and hour; NULL: not given */
    bool json;
} plan_devices_request;

/* The same run on fewer of several equal devices. */
typedef struct plan_scale {
    int count, used;
    double step_seconds, exposed_seconds, samples_per_second, efficiency;
} plan_scale;

enum { PLAN_SCALES = 8 };

typedef struct plan_devices {
    const char *path;
    const cleat_profile *profile;
    cleat_network network;
    int count;
    cleat_card cards[CLEAT_PLAN_DEVICES];                 /* [count] */
    cleat_distributed_device devices[CLEAT_PLAN_DEVICES]; /* [count] */
    cleat_distributed_report report;
    int n_scales; /* 0 unless there are four devices or more, all equal */
    plan_scale scales[PLAN_SCALES];
} plan_devices;

/* Plans and prints; returns the exit code. `command` is for messages about the command line. */
int plan_devices_run(const cli_command *command, const plan_devices_request *request, const cleat_profile *profile);

void plan_devices_print(const plan_devices *plan);
void plan_devices_print_json(const plan_devices *plan);

#endif

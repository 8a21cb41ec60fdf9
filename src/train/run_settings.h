/* The profile of a run: as given, with shorter sequences where memory is short, and with every `auto` resolved. */
#ifndef CLEAT_SRC_RUN_SETTINGS_H
#define CLEAT_SRC_RUN_SETTINGS_H

#include "cleat/profile.h"
#include "fit/workload.h"

typedef struct cleat_run_settings {
    const cleat_profile *profile; /* what the run uses: the caller's, or `shortened` */
    cleat_profile shortened;
    bool cut;               /* this process shortened it, not an earlier one */
    cleat_profile resolved; /* of a run that is bound */
} cleat_run_settings;

/* Sequences are cut to `length` from here on. */
void cleat_run_settings_shorten(cleat_run_settings *settings, int64_t length);
/* The length that sequences were cut to; 0: to what the profile says. */
int64_t cleat_run_settings_cut(const cleat_run_settings *settings);
/* What every `auto` became: resolved.ini, which loads again. */
void cleat_run_settings_resolve(cleat_run_settings *settings, const cleat_workload *work, int loader_threads);

#endif

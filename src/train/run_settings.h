/* The profile of a run: as given, with shorter sequences where memory is short, and with every `auto` resolved. */
#ifndef CLEAT_SRC_RUN_SETTINGS_H
#define CLEAT_SRC_RUN_SETTINGS_H

#include "cleat/profile.h"
#include "fit/workload.h"

typedef struct cleat_run_settings {
    const cleat_profile *profile; /* what the run uses: the caller's, or `shortened` */
    cleat_profile *shortened;     /* NULL until sequences are cut; freed by cleat_run_settings_free */
    bool cut;                     /* this process shortened it, not an earlier one */
    cleat_profile *resolved;      /* of a run that is bound; freed when the trainer closes */
} cleat_run_settings;

/* Frees the profiles that the run made. */
void cleat_run_settings_free(cleat_run_settings *settings);
/* Sequences are cut to `length` from here on. CLEAT_ERR_MEMORY leaves the settings as they were. */
cleat_status cleat_run_settings_shorten(cleat_run_settings *settings, int64_t length, cleat_error *error);
/* The length that sequences were cut to; 0: to what the profile says. */
int64_t cleat_run_settings_cut(const cleat_run_settings *settings);
/* What every `auto` became: resolved.ini, which loads again. */
cleat_status cleat_run_settings_resolve(cleat_run_settings *settings, const cleat_workload *work, int loader_threads,
                                        cleat_error *error);

#endif

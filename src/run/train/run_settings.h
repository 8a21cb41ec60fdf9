/* The profile of a run: as given, with shorter sequences if memory is short, and with every `auto`
 * resolved. */
#ifndef CLEAT_SRC_RUN_SETTINGS_H
#define CLEAT_SRC_RUN_SETTINGS_H

#include "cleat/profile.h"
#include "fit/workload.h"

typedef struct cleat_run_settings {
    const cleat_profile *given;   /* the caller's */
    const cleat_profile *profile; /* profile in use: `given`, `chosen` or `shortened` */
    cleat_profile *chosen;        /* `given` with what was chosen from the data; NULL: nothing was */
    cleat_profile *shortened;     /* NULL until sequences are cut; freed by cleat_run_settings_free */
    bool cut;                     /* it was shortened by this process, not by an earlier one */
    cleat_profile *resolved;      /* profile of a bound run; freed when the trainer closes */
    char hash[33];                /* cleat_profile_hash of what `resolved` computes on these data */
} cleat_run_settings;

/* Frees the profiles that the run made. */
void cleat_run_settings_free(cleat_run_settings *settings);
/* Cuts sequences to `length` from now on. CLEAT_ERR_MEMORY leaves the settings unchanged. */
cleat_status cleat_run_settings_shorten(cleat_run_settings *settings, int64_t length, cleat_error *error);
/* Length that sequences are cut to; 0: the profile's own maximum length applies. */
int64_t cleat_run_settings_cut(const cleat_run_settings *settings);
/* Takes over what the model's family chose from the data in place of `auto`. */
cleat_status cleat_run_settings_choose(cleat_run_settings *settings, const cleat_model *model, cleat_error *error);
/* Resolves every `auto`. The result is written to resolved.ini, which can be loaded as a profile. data.max_length
 * keeps the profile's value even if no sample of the training reaches it, because predictions need it. */
cleat_status cleat_run_settings_resolve(cleat_run_settings *settings, const cleat_workload *work, int loader_threads,
                                        cleat_error *error);
/* A copy of `resolved` with the number of epochs of another profile, and unless `only_epochs` with its whole
 * schedule of the learning rate; and the hash of the copy. The caller destroys *made. */
cleat_status cleat_run_settings_with_schedule(const cleat_run_settings *settings, const cleat_profile *from,
                                              bool only_epochs, char hash[33], cleat_profile **made,
                                              cleat_error *error);
/* cleat_profile_differences between the resolved.ini of an earlier process, `then`, and `resolved`, without maximum
 * lengths that no sample reaches; `then` is changed. */
size_t cleat_run_settings_differences(const cleat_run_settings *settings, cleat_profile *then, char *text, size_t size);

#endif

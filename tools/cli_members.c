/* The checkpoints of `eval` and `predict`: one, several, or the folds of a cross-validation. */
#include "cli.h"
#include "core/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cleat_status add(cli_members *members, const char *path, const cli_list *words, const cli_list *assignments,
                        const char *device, cleat_error *error) {
    cleat_profile *profile = NULL;
    if (members->count == CLEAT_MAX_MEMBERS)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "more than %d checkpoints", CLEAT_MAX_MEMBERS);
    char *copy = strdup(path);
    if (!copy) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a path");
    cleat_status status = cli_profile_of_checkpoint(words, path, assignments, device, &profile, error);
    if (status)
        free(copy);
    else
        members->items[members->count++] = (cleat_member){profile, copy};
    return status;
}

cleat_status cli_members_open(const cli_list *words, const cli_list *checkpoints, const cli_list *assignments,
                              const char *device, cli_members *members, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    char path[CLEAT_PATH + 32];
    for (size_t i = 0; i < checkpoints->count && !status; ++i) {
        size_t fold = 1; /* FOLDER/fold-1, fold-2, ..., which `cleat train --folds` writes */
        for (; !status; ++fold) {
            snprintf(path, sizeof path, "%.*s/fold-%zu", CLEAT_PATH, checkpoints->items[i], fold);
            if (!cleat_folder_exists(path)) break;
            status = add(members, path, words, assignments, device, error);
        }
        if (fold == 1) status = add(members, checkpoints->items[i], words, assignments, device, error);
    }
    return status;
}

void cli_members_close(cli_members *members) {
    for (size_t i = 0; i < members->count; ++i) {
        cleat_profile_destroy((cleat_profile *)members->items[i].profile);
        free((char *)members->items[i].checkpoint);
    }
}

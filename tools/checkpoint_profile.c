/* The profile of `cleat eval` and `cleat predict`: given, or that of the checkpoint. */
#include "cli.h"

#include <sys/stat.h>

bool cli_has_checkpoint(const cli_command *command, const cli_list *words, const char *checkpoint, int *exit_code) {
    struct stat about;
    char word[2 * CLEAT_PATH];
    if (!checkpoint && words->count == 1 && stat(words->items[0], &about) == 0 && S_ISDIR(about.st_mode))
        *exit_code = cli_usage(command, "--checkpoint is required; '%s' is a folder: --checkpoint %s?", words->items[0],
                               cleat_shell_word(words->items[0], word, sizeof word) ? word : "FOLDER");
    else if (!checkpoint)
        *exit_code = cli_usage(command, "--checkpoint is required: a run folder, or a checkpoint folder in one");
    else if (words->count > 1)
        *exit_code =
            cli_usage(command, "at most one profile is expected: '%s', '%s'", words->items[0], words->items[1]);
    return checkpoint && words->count <= 1;
}

cleat_status cli_profile_of_checkpoint(const cli_list *words, const char *checkpoint, const cli_list *assignments,
                                       const char *device, cleat_profile **profile, cleat_error *error) {
    cli_list all = *assignments;
    char text[CLEAT_PATH];
    if (words->count) return cli_profile_of_run(words->items[0], assignments, device, checkpoint, profile, error);
    cleat_status status = cli_add_device(&all, device, text, error);
    return status ? status : cleat_profile_of_checkpoint(checkpoint, all.items, all.count, profile, error);
}

/* cleat predict: writes a checkpoint's predictions for data without targets. */
#include "cli.h"

#include <stdio.h>

static int run(const cli_command *command, int argc, char **argv) {
    const char *device = NULL, *checkpoint = NULL, *data = NULL, *out = NULL;
    cli_list assignments = {.count = 0}, words = {.count = 0};
    const cli_option options[] = {
        {"--checkpoint", CLI_TEXT, &checkpoint, "DIR", "checkpoint folder, or run folder (its best checkpoint)"},
        {"--data", CLI_TEXT, &data, "PATH", "input data (RNA: FASTA, a sequences file, PDB files)"},
        {"--out", CLI_TEXT, &out, "DIR", "output folder of the predictions (RNA: ID.pdb and predictions.csv)"},
        {"--device", CLI_TEXT, &device, "SEL", "device, as for `cleat train`"},
        {"--set", CLI_REPEATED, &assignments, "SECTION.KEY=VALUE",
         "override a setting of the profile; may be repeated"},
        {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &words, &exit_code)) return exit_code;
    if (words.count != 1) return cli_usage(command, "exactly one profile is expected");
    if (!checkpoint || !data || !out) return cli_usage(command, "--checkpoint, --data and --out are all required");
    cleat_error error = {0};
    cleat_profile *profile = NULL;
    size_t count = 0;
    cleat_status status = cli_profile(words.items[0], &assignments, device, &profile, &error);
    if (status == CLEAT_OK) status = cleat_predict(profile, checkpoint, data, out, &count, &error);
    if (status == CLEAT_OK || count) printf("%zu predictions written to %s\n", count, out);
    cleat_profile_destroy(profile);
    return cli_finish(status, &error);
}

const cli_command cli_predict = {
    "predict", "PROFILE --checkpoint DIR --data PATH --out DIR [--device SEL] [--set section.key=value ...]",
    "write the predictions of a checkpoint", run};

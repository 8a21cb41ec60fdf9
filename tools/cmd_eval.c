/* cleat eval: computes loss terms and metrics of a checkpoint. */
#include "cli.h"

static int run(const cli_command *command, int argc, char **argv) {
    const char *device = NULL, *checkpoint = NULL, *split = "val", *examples = NULL;
    cli_list assignments = {.count = 0}, words = {.count = 0};
    bool json = false;
    const cli_option options[] = {
        {"--checkpoint", CLI_TEXT, &checkpoint, "DIR", "checkpoint folder, or run folder (its best checkpoint)"},
        {"--split", CLI_TEXT, &split, "NAME",
         "train, val (default), test, or all: every sample; of a series, every window of the file"},
        {"--device", CLI_TEXT, &device, "SEL", "device, as for `cleat train`"},
        {"--set", CLI_REPEATED, &assignments, "SECTION.KEY=VALUE",
         "override a setting of the profile; may be repeated"},
        {"--examples", CLI_TEXT, &examples, "FILE", "write predictions beside the truth, as JSON"},
        {"--json", CLI_FLAG, &json, NULL, "print one JSON object"},
        {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &words, &exit_code)) return exit_code;
    if (words.count != 1) return cli_usage(command, "exactly one profile is expected");
    if (!checkpoint) return cli_usage(command, "--checkpoint is required");
    cleat_error error = {0};
    cleat_profile *profile = NULL;
    cleat_metrics metrics = {0};
    cleat_status status = cli_profile(words.items[0], &assignments, device, &profile, &error);
    if (status == CLEAT_OK) status = cleat_evaluate_examples(profile, checkpoint, split, examples, &metrics, &error);
    if (metrics.count) cli_print_metrics(&metrics, json);
    cleat_profile_destroy(profile);
    return cli_finish(status, &error);
}

const cli_command cli_eval = {
    "eval",
    "PROFILE --checkpoint DIR [--device SEL] [--split NAME] [--examples FILE] [--set section.key=value ...] [--json]",
    "evaluate a checkpoint on labelled data", run};

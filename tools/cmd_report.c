/* cleat report: one HTML file about a run, or about several runs side by side, and the metrics as CSV. */
#include "cli.h"
#include "platform/files.h"

#include <cleat/report.h>
#include <cleat/tensorboard.h>
#include <stdio.h>
#include <string.h>

/* Name of a run's folder without the folders above it; the whole of "." or "..". */
static void name_of(const char *run, char name[CLEAT_PATH]) {
    snprintf(name, CLEAT_PATH, "%s", run);
    size_t size = strlen(name);
    while (size > 1 && name[size - 1] == '/') name[--size] = 0;
    const char *slash = strrchr(name, '/');
    if (slash && slash[1]) memmove(name, slash + 1, strlen(slash));
}

/* Writes DIR/NAME/events.out.tfevents.* of each run; runs of the same name are told apart by their number. */
static cleat_status convert(const cli_list *runs, const char *folder, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < runs->count && !status; ++i) {
        char name[CLEAT_PATH], earlier[CLEAT_PATH], out[2 * CLEAT_PATH + 32];
        cleat_tensorboard_report report;
        bool taken = false;
        name_of(runs->items[i], name);
        for (size_t j = 0; j < i; ++j) {
            name_of(runs->items[j], earlier);
            taken = taken || strcmp(name, earlier) == 0;
        }
        if (taken)
            snprintf(out, sizeof out, "%s/%s-%zu", folder, name, i + 1);
        else
            snprintf(out, sizeof out, "%s/%s", folder, name);
        status = cleat_tensorboard_convert(runs->items[i], out, &report, error);
        if (!status) printf("%s\n", report.file);
    }
    return status;
}

static int run(const cli_command *command, int argc, char **argv) {
    cleat_report_options report = {0};
    const char *tensorboard = NULL;
    cli_list words = {.count = 0};
    const cli_option options[] = {
        {"--out", CLI_TEXT, &report.out, "FILE", "HTML file (default: RUN/report.html, in the first run's folder)"},
        {"--csv", CLI_TEXT, &report.csv, "FILE", "CSV file of the first run (default: RUN/metrics.csv of each run)"},
        {"--tensorboard", CLI_TEXT, &tensorboard, "DIR",
         "also write an event file of each run for TensorBoard, in DIR/NAME-OF-RUN"},
        {NULL, CLI_FLAG, NULL, NULL, NULL}};
    char written[CLEAT_PATH + 16];
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &words, &exit_code)) return exit_code;
    if (words.count < 1 || words.count > CLEAT_REPORT_RUNS)
        return cli_usage(command, "expected 1 to %d run folders", CLEAT_REPORT_RUNS);
    cleat_error error = {0};
    cleat_status status = cleat_report_write(words.items, words.count, &report, &error);
    const char *end = words.items[0] + strlen(words.items[0]);
    if (report.out)
        snprintf(written, sizeof written, "%s", report.out);
    else
        snprintf(written, sizeof written, "%s%sreport.html", words.items[0], end[-1] == '/' ? "" : "/");
    cleat_path_for_user(written);
    if (!status) printf("%s\n", written);
    if (!status && tensorboard) status = convert(&words, tensorboard, &error);
    return cli_finish(status, &error);
}

const cli_command cli_report = {"report", "RUN [RUN2 ...] [--out FILE] [--csv FILE] [--tensorboard DIR]",
                                "write a run's report as one HTML file, and its metrics as CSV", run};

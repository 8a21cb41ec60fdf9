/* cleat trace: trains a few steps, times their kernels, and prints the tables. */
#include "cli.h"
#include "core/files.h"

#include <cleat/tracer.h>
#include <cleat/train.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool is_table(const char *name) {
    return strncmp(name, "profile-S", 9) == 0;
}

/* Prints the tables of the folder whose names end so, in the order of their steps. */
static void print_files(const char *folder, const char *ending, const char *between) {
    cleat_name_list found = {0};
    cleat_error error = {0};
    const char *before = "";
    (void)cleat_listing_read(folder, is_table, &found, &error);
    for (size_t i = 0; i < found.count; ++i) {
        char path[CLEAT_PATH], *text = NULL;
        size_t size = 0;
        if (strcmp(cleat_name_ending(found.names[i]), ending) != 0) continue;
        printf("%s", before);
        before = between;
        if (cleat_path_join(folder, found.names[i], path, sizeof path, &error) == CLEAT_OK &&
            cleat_file_read(path, &text, &size, &error) == CLEAT_OK)
            fwrite(text, 1, size, stdout);
        else
            fprintf(stderr, "%s\n", error.text);
        free(text);
    }
    cleat_name_list_free(&found);
}

static void print_json(const cleat_train_report *report) {
    cleat_string json = {.spaced = true};
    json_add(&json, json_open(NULL, '{'), json_text("folder", report->folder), json_open("profiles", '['));
    cli_print_json(&json);
    print_files(report->folder, ".json", ",\n");
    printf("]}\n");
}

static void print_text(const cleat_train_report *report) {
    print_files(report->folder, ".txt", "\n");
    printf("\nfiles: %s/profile-S*: .txt, .csv, .json, and .trace.json.gz for https://ui.perfetto.dev\n",
           report->folder);
}

/* Enough epochs, and no evaluations or checkpoints between the steps. */
static cleat_status prepare(cleat_profile *profile, const char *text, const cleat_tracer_schedule *schedule,
                            cleat_error *error) {
    const char *const assignments[] = {"run.early_stopping_patience=none", "run.evaluate_every_epochs=none",
                                       "run.checkpoint_every_epochs=none", "run.checkpoint_every_minutes=none",
                                       "run.time_budget=none"};
    char assignment[192];
    snprintf(assignment, sizeof assignment, "run.trace=%s", text);
    cleat_status status = cleat_profile_set(profile, assignment, error);
    for (size_t i = 0; i < sizeof assignments / sizeof *assignments && !status; ++i)
        status = cleat_profile_set(profile, assignments[i], error);
    int64_t steps = cleat_tracer_schedule_last(schedule, schedule->repeat - 1);
    if (profile->train.epochs < steps) profile->train.epochs = steps; /* an epoch has at least one step */
    return status ? status : cleat_profile_check(profile, error);
}

static int trace_run(const char *path, const cli_list *assignments, const char *device, const char *schedule_text,
                     cleat_train_options *options, bool json) {
    cleat_error error = {0};
    cleat_profile *profile = NULL;
    cleat_tracer_schedule schedule;
    cleat_train_report report = {.folder = ""};
    cleat_status status = cleat_tracer_schedule_parse(schedule_text, &schedule, &error);
    if (!status) status = cli_profile(path, assignments, device, &profile, &error);
    if (!status) status = prepare(profile, schedule_text, &schedule, &error);
    if (!status) {
        cli_stop_on_signals(options);
        status = cleat_train(profile, options, &report, &error);
    }
    cleat_profile_destroy(profile);
    if (report.traces > 0) {
        if (json)
            print_json(&report);
        else
            print_text(&report);
    } else if (!status) {
        fprintf(stderr, "error: no trace was written; the warnings above give the reason\n");
        return EXIT_FAILURE;
    }
    return cli_finish(status, &error);
}

static int run(const cli_command *command, int argc, char **argv) {
    const char *device = NULL, *out = NULL, *schedule = CLEAT_TRACER_DEFAULT, *progress = NULL;
    cli_list assignments = {.count = 0}, words = {.count = 0};
    bool json = false;
    char folder[64];
    const cli_option options[] = {{"--device", CLI_TEXT, &device, "SEL",
                                   "device: auto, gpu, cpu, a number of `cleat devices`, or part of a device name"},
                                  {"--schedule", CLI_TEXT, &schedule, "SCHEDULE",
                                   "steps to record, as key=value separated by commas: skip_first (0), wait (5), "
                                   "warmup (2), active (3), repeat (1)"},
                                  {"--out", CLI_TEXT, &out, "DIR", "folder of the files (runs/trace-DATE-TIME)"},
                                  CLI_SET(&assignments),
                                  CLI_PROGRESS(&progress),
                                  {"--json", CLI_FLAG, &json, NULL, "print the summaries as one JSON object"},
                                  {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &words, &exit_code)) return exit_code;
    if (!cli_is_one_profile(command, &words, &assignments, &exit_code)) return exit_code;
    if (!out) {
        time_t now = time(NULL);
        struct tm local;
        strftime(folder, sizeof folder, "runs/trace-%Y%m%d-%H%M%S", localtime_r(&now, &local));
        out = folder;
    }
    cleat_train_options train_options = {.out = out, .trace_only = true, .compile_helpers = cli_compilers()};
    exit_code = cli_progress(command, progress, &train_options);
    if (exit_code) return exit_code;
    return trace_run(words.items[0], &assignments, device, schedule, &train_options, json);
}

const cli_command cli_trace = {
    "trace",
    "PROFILE [--schedule SCHEDULE] [--out DIR] [--device SEL] [--progress FORM] [--set section.key=value ...] [--json]",
    "train a few steps and show where their time goes", run};

/* cleat doctor: reports whether cleat can train on this machine, and if not, why and what to do. */
#include "cli.h"
#include "core/files.h"
#include "core/shell.h"
#include "platform/files.h"

#include <cleat/doctor.h>
#include <cleat/fit.h>
#include <cleat/verify.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct request {
    const char *profile, *device, *out;
    bool json, strict;
    double seconds;
    cli_list assignments;
} request;

typedef struct profile_checks {
    const request *args;
    const cleat_profile *profile;
    cleat_doctor_report *report;
    cleat_status status;
    cleat_error error;
} profile_checks;

/* Adds a check; `cause` and `command` are NULL if nothing is wrong. */
static void CLEAT_PRINTF(6, 7) add_check(profile_checks *checks, const char *code, cleat_doctor_result result,
                                         const char *cause, const char *command, const char *evidence, ...) {
    cleat_doctor_check check = {.result = result, .n_commands = command ? 1 : 0};
    char title[256];
    va_list arguments;
    snprintf(check.code, sizeof check.code, "%s", code);
    snprintf(check.cause, sizeof check.cause, "%s", cause ? cause : "");
    snprintf(check.commands[0], sizeof check.commands[0], "%s", command ? command : "");
    snprintf(title, sizeof title, "profile %s", checks->args->profile);
    va_start(arguments, evidence);
    vsnprintf(check.evidence, sizeof check.evidence, evidence, arguments);
    va_end(arguments);
    if (!checks->status) checks->status = cleat_doctor_add(checks->report, "profile", title, &check, &checks->error);
}

/* While a checkpoint is written, one more exists than are kept, and the best one is kept as well. */
static void check_disk(profile_checks *checks, const cleat_fit_report *fit) {
    char each[CLI_SHORT], space[CLI_SHORT];
    const char *folder = checks->args->out ? checks->args->out : "runs";
    const int64_t count = checks->profile->run.keep_checkpoints + 2;
    const int64_t bytes = fit->category_bytes[CLEAT_BYTES_PARAMETERS] + fit->category_bytes[CLEAT_BYTES_OPTIMIZER] +
                          fit->category_bytes[CLEAT_BYTES_STATE]; /* f32 */
    int64_t available = cleat_folder_space(folder);
    bool enough = available / count >= bytes;
    add_check(checks, enough ? "checkpoint-space" : "disk-too-small", enough ? CLEAT_CHECK_OK : CLEAT_CHECK_FAIL,
              enough ? NULL : "The disk is too small for the checkpoints of a run.",
              enough ? NULL : "set run.keep_checkpoints = 1, or train with --out on a larger disk",
              "%lld checkpoints of %s; %s free in %s", (long long)count, cleat_bytes_text(bytes, each),
              cleat_bytes_text(available, space), folder);
}

static void check_fit(profile_checks *checks) {
    cleat_fit_report fit = {.fits = false};
    char bytes[CLI_SHORT], limit[CLI_SHORT], command[CLEAT_CHECK_COMMAND];
    cleat_error error = {0};
    if (cleat_fit_describe(checks->profile, &checks->report->device, NULL, NULL, 1, &fit, &error) != CLEAT_OK) {
        bool profile = error.status == CLEAT_ERR_PROFILE;
        add_check(checks, profile ? "profile-invalid" : "data-invalid", CLEAT_CHECK_FAIL,
                  "cleat train would stop here with this message.",
                  profile ? "cleat train --help-profile" : "cleat train ... --set data.path=FOLDER", "%.600s",
                  error.text);
        return;
    }
    cleat_bytes_text(fit.bytes, bytes);
    cleat_bytes_text(fit.limit, limit);
    if (!fit.fits) {
        char word[CLEAT_CHECK_COMMAND - 32];
        snprintf(command, sizeof command, "cleat plan %s --card all",
                 cleat_shell_path(checks->args->profile, word, sizeof word));
        add_check(checks, "profile-does-not-fit", CLEAT_CHECK_FAIL, fit.reason, command,
                  "not even micro-batches of one sample fit in %s", limit);
        return;
    }
    add_check(checks, "profile-fits", CLEAT_CHECK_OK, NULL, NULL, "micro-batches of one sample need %s of %s", bytes,
              limit);
    check_disk(checks, &fit);
}

static void check_data(profile_checks *checks) {
    const char *path = checks->profile->data->path;
    if (path[0] && access(path, R_OK) == 0)
        add_check(checks, "data", CLEAT_CHECK_OK, NULL, NULL, "%s", path);
    else
        add_check(checks, "data-missing", CLEAT_CHECK_WARN, "cleat train would stop here: the data cannot be read.",
                  "cleat train ... --set data.path=FOLDER", "data.path = %s", path);
}

/* Opens the device, which has just computed correct results in a child process. */
static void check_self_check(profile_checks *checks) {
    char number[24];
    cleat_device *device = NULL;
    snprintf(number, sizeof number, "%zu", checks->report->device_index);
    if (cleat_device_open(number, &device, NULL) != CLEAT_OK) return;
    bool passed = cleat_self_check_passed(device, checks->profile);
    add_check(checks, "self-check", passed ? CLEAT_CHECK_OK : CLEAT_CHECK_SKIPPED, NULL, NULL, "%s",
              passed ? "passed with this driver and these kernels" : "not done yet; the first run begins with it");
    cleat_device_close(device);
}

static cleat_status check_profile(const request *args, const cleat_profile *profile, cleat_doctor_report *report,
                                  cleat_error *error) {
    profile_checks checks = {.args = args, .profile = profile, .report = report};
    check_data(&checks);
    if (report->usable) {
        check_fit(&checks);
        check_self_check(&checks);
    }
    if (checks.status) *error = checks.error;
    return checks.status;
}

static void print_piece(void *user, const char *text) {
    (void)user;
    fputs(text, stdout);
}

static const char *summary_of(const cleat_doctor_report *report) {
    if (!report->usable) return "cleat cannot train on this machine";
    if (report->result == CLEAT_CHECK_FAIL) return "a device is usable, but a check failed";
    return report->result == CLEAT_CHECK_WARN ? "cleat can train on this machine; see the warnings"
                                              : "cleat can train on this machine";
}

static int exit_code_of(const cleat_doctor_report *report, bool strict) {
    const cleat_doctor_check *fit = cleat_doctor_find(report, "profile-does-not-fit");
    if (!report->usable) return EXIT_DEVICE;
    if (fit) return EXIT_FIT;
    return report->result == CLEAT_CHECK_FAIL || (strict && report->result == CLEAT_CHECK_WARN) ? EXIT_FAILURE : 0;
}

static int print_report(const request *args, const cleat_doctor_report *report) {
    cleat_error error = {0};
    cleat_status status =
        (args->json ? cleat_doctor_write_json : cleat_doctor_write_text)(report, print_piece, NULL, &error);
    if (status) return cli_finish(status, &error);
    if (!args->json)
        printf("\n%s: %s (%.1f s)\n", cleat_doctor_result_text(report->result), summary_of(report), report->seconds);
    return exit_code_of(report, args->strict);
}

/* The profile is read before any driver is used: reading it needs none, and it may name the device. */
static int examine(const request *args) {
    cleat_profile *profile = NULL;
    cleat_doctor_report *report = NULL;
    cleat_error error = {0};
    cleat_status status = CLEAT_OK;
    cleat_doctor_request wanted = {
        .device = args->device, .run_folder = args->out, .seconds = isnan(args->seconds) ? 0 : args->seconds};
    if (args->profile) status = cli_profile(args->profile, &args->assignments, args->device, &profile, &error);
    if (!status && profile) wanted.device = profile->run.device;
    if (!status) status = cleat_doctor_run(&wanted, &report, &error);
    if (!status && profile) status = check_profile(args, profile, report, &error);
    int exit_code = status ? cli_finish(status, &error) : print_report(args, report);
    cleat_doctor_free(report);
    cleat_profile_destroy(profile);
    return exit_code;
}

static int run(const cli_command *command, int argc, char **argv) {
    request args = {.seconds = NAN};
    cli_list words = {.count = 0};
    const cli_option options[] = {
        {"--device", CLI_TEXT, &args.device, "SEL", "the device that must be usable, as for `cleat train` (auto)"},
        {"--profile", CLI_TEXT, &args.profile, "FILE.ini", "also check whether this profile fits the device"},
        {"--set", CLI_REPEATED, &args.assignments, "SECTION.KEY=VALUE", "override a setting of the profile"},
        {"--out", CLI_TEXT, &args.out, "DIR", "folder of the run, for the check of its disk space (runs)"},
        {"--seconds", CLI_NUMBER, &args.seconds, "S", "time limit for the drivers; a busy machine needs more (5)"},
        {"--strict", CLI_FLAG, &args.strict, NULL,
         "treat warnings as failures (exit 1); exit 3: the profile does not fit, 4: no usable device"},
        {"--json", CLI_FLAG, &args.json, NULL, "print one JSON object"},
        {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &words, &exit_code)) return exit_code;
    if (words.count) return cli_usage(command, "the command takes no arguments; a profile is given by --profile");
    if (!isnan(args.seconds) && !(args.seconds > 0))
        return cli_usage(command, "--seconds %g: must be greater than 0", args.seconds);
    return examine(&args);
}

const cli_command cli_doctor = {"doctor", "[--profile FILE.ini] [--device SEL] [--json] [--strict] [--seconds S]",
                                "check cards, drivers and host: what is wrong, why, and the command that helps", run};

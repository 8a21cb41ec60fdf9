/* Entry point of `cleat`: dispatches to a subcommand. A subcommand is a file cmd_NAME.c and a line in this
 * list. */
#include "cli.h"

#include <cleat/device.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const cli_command *const commands[] = {
    &cli_train,   &cli_eval,       &cli_predict,      &cli_monitor, &cli_report,     &cli_profile_command,
    &cli_plan,    &cli_find_batch, &cli_find_workers, &cli_tune,    &cli_bench,      &cli_verify,
    &cli_devices, &cli_doctor,     &cli_passport,     &cli_data,    &cli_completion, &cli_man};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

const cli_command *const *cli_commands(size_t *count) {
    *count = N_COMMANDS;
    return commands;
}

static void print_log(void *user, cleat_log_level level, const char *text) {
    (void)user;
    const char *kind = level == CLEAT_LOG_ERROR ? "error: " : level == CLEAT_LOG_WARNING ? "warning: " : "";
    const char *color = level == CLEAT_LOG_ERROR ? "\033[1;31m" : "\033[1;33m"; /* bold red, bold yellow */
    if (*kind && cli_has_colors(STDERR_FILENO))
        fprintf(stderr, "%s%s\033[0m%s\n", color, kind, text);
    else
        fprintf(stderr, "%s%s\n", kind, text);
}

static bool log_level(const char *name, cleat_log_level *level) {
    static const char *const names[] = {"error", "warning", "info", "debug", "dispatch"};
    for (int i = 0; i < 5; ++i)
        if (strcmp(name, names[i]) == 0) {
            *level = (cleat_log_level)i;
            return true;
        }
    return false;
}

static void print_help(const cli_option *options) {
    printf("cleat %s %s.\n\nusage: cleat %s\n\n", cleat_version(), cli_program.summary, cli_program.usage);
    for (int i = 0; i < N_COMMANDS; ++i) printf("  %-12s %s\n", commands[i]->name, commands[i]->summary);
    printf("\noptions before the command:\n");
    for (; options->name; ++options) {
        char left[32];
        snprintf(left, sizeof left, "%s %s", options->name, options->value_name ? options->value_name : "");
        printf("  %-12s %s\n", left, options->help);
    }
    printf("\n`cleat COMMAND --help` describes a command; `cleat train --help-profile` lists every setting of a "
           "profile.\nExit codes:");
    for (const cli_exit_code *exit = cli_exit_codes; exit->meaning; ++exit)
        printf("%s %d %s", exit == cli_exit_codes ? "" : ",", exit->code, exit->meaning);
    printf(".\n");
}

static const char *or_unknown(const char *text) {
    return *text ? text : "unknown";
}

static void print_version(void) {
    cleat_build_info info;
    cleat_get_build_info(&info);
    printf("cleat %s\n", cleat_version());
    printf("compiler       %s\n", or_unknown(info.compiler));
    printf("build type     %s\n", or_unknown(info.build_type));
    printf("OpenCL loader  %s\n", or_unknown(info.opencl_loader));
    printf("CLBlast        %s\n", or_unknown(info.clblast));
    printf("hwloc          %s\n", or_unknown(info.hwloc));
}

static int run_command(int argc, char **argv) {
    for (int i = 0; i < N_COMMANDS; ++i)
        if (strcmp(argv[0], commands[i]->name) == 0) return commands[i]->run(commands[i], argc - 1, argv + 1);
    fprintf(stderr, "cleat: unknown command '%s'\n`cleat --help` lists the commands\n", argv[0]);
    return EXIT_USAGE;
}

static int run(const cli_command *command, int argc, char **argv) {
    const char *name = NULL;
    bool quiet = false, version = false, help = false;
    const cli_option options[] = {
        {"--log", CLI_TEXT, &name, "LEVEL",
         "error, warning, info (default), debug, dispatch (which kernel runs which node, and why)"},
        {"--quiet", CLI_FLAG, &quiet, NULL, "only warnings and errors: no progress, no report of a run"},
        {"--version", CLI_FLAG, &version, NULL, "version, compiler and libraries"},
        {"--help", CLI_FLAG, &help, NULL, "show this help"},
        {NULL, CLI_FLAG, NULL, NULL, NULL}};
    cleat_log_level level = CLEAT_LOG_INFO;
    int at = 0, exit_code;
    if (argc > 0 && (strcmp(argv[0], "-h") == 0 || strcmp(argv[0], "help") == 0)) {
        print_help(options);
        return 0;
    }
    if (!cli_parse_front(command, options, argc, argv, &at, &exit_code)) return exit_code;
    if (name && quiet) return cli_usage(command, "--quiet and --log exclude each other");
    if (name && !log_level(name, &level)) return cli_usage(command, "unknown log level '%s'", name);
    if (version) {
        print_version();
        return 0;
    }
    if (help || at >= argc) {
        print_help(options);
        return help ? 0 : EXIT_USAGE;
    }
    cli_set_quiet(quiet);
    cleat_set_log(print_log, NULL, quiet ? CLEAT_LOG_WARNING : level);
    return run_command(argc - at, argv + at);
}

const cli_command cli_program = {"", "[--log LEVEL | --quiet] COMMAND ...", "trains neural networks on any OpenCL card",
                                 run};

int main(int argc, char **argv) {
    return run(&cli_program, argc - 1, argv + 1);
}

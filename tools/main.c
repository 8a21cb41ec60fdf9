/* Entry point of `cleat`: dispatches to a subcommand. A subcommand is a file cmd_NAME.c and a line in this
 * list. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cli_command *const commands[] = {&cli_train, &cli_eval,  &cli_predict, &cli_devices,    &cli_verify,
                                              &cli_data,  &cli_bench, &cli_plan,    &cli_find_batch, &cli_tune};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static void print_log(void *user, cleat_log_level level, const char *text) {
    (void)user;
    fprintf(stderr, "%s%s\n",
            level == CLEAT_LOG_ERROR     ? "error: "
            : level == CLEAT_LOG_WARNING ? "warning: "
                                         : "",
            text);
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

static void print_help(void) {
    printf("cleat %s trains neural networks on any OpenCL card.\n\nusage: cleat [--log LEVEL] COMMAND ...\n\n",
           cleat_version());
    for (int i = 0; i < N_COMMANDS; ++i) printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
    printf("\n`cleat COMMAND --help` describes a command; `cleat train --help-profile` lists every setting of a "
           "profile.\nLEVEL: error, warning, info (default), debug, dispatch (which kernel runs which node, and "
           "why).\nExit codes: 0 ok, 1 error, 2 usage, 3 does not fit, 4 device failed, 5 not finite (training stopped "
           "on it; eval and predict wrote results, some of them not finite), 75 time is up, 130 interrupted.\n");
}

static int fail(const char *what, const char *word) {
    fprintf(stderr, "cleat: %s '%s'\n`cleat --help` lists the commands\n", what, word);
    return EXIT_USAGE;
}

int main(int argc, char **argv) {
    cleat_log_level level = CLEAT_LOG_INFO;
    int at = 1;
    if (at < argc && (strcmp(argv[at], "--log") == 0 || strncmp(argv[at], "--log=", 6) == 0)) {
        const char *name = argv[at][5] ? argv[at] + 6 : at + 1 < argc ? argv[++at] : "";
        if (!log_level(name, &level)) return fail("unknown log level", name);
        ++at;
    }
    if (at >= argc || strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0 || strcmp(argv[at], "help") == 0) {
        print_help();
        return at < argc ? 0 : EXIT_USAGE;
    }
    if (strcmp(argv[at], "--version") == 0) {
        printf("cleat %s\n", cleat_version());
        return 0;
    }
    cleat_set_log(print_log, NULL, level);
    for (int i = 0; i < N_COMMANDS; ++i)
        if (strcmp(argv[at], commands[i]->name) == 0)
            return commands[i]->run(commands[i], argc - at - 1, argv + at + 1);
    return fail("unknown command", argv[at]);
}

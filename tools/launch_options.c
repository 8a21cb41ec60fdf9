/* Options --devices and --hosts, and the command line of the ranks. */
#include "launch.h"

#include "platform/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool launch_is_asked(const cli_command *command, const launch_options *options, const char *device, int *exit_code) {
    *exit_code = 0;
    if (!options->devices && !options->hosts) return false;
    if (device)
        *exit_code = cli_usage(command, "--device names one device, --devices several: give only one of them");
    else if (getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMI_RANK"))
        *exit_code =
            cli_usage(command, "--devices starts mpirun itself, but this process was started by it already; the "
                               "devices of its ranks: CLEAT_RANK_DEVICES='0;1'");
    return *exit_code == 0;
}

static bool is_option(const char *word, const char *name) {
    const size_t length = strlen(name);
    return strncmp(word, name, length) == 0 && (!word[length] || word[length] == '=');
}

/* Number of words of an option of the supervisor at argv[at]; 0: it is another one. */
static int words_for_supervisor(char **argv, int at) {
    static const char *const names[] = {"--devices", "--hosts", "--restarts"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        if (is_option(argv[at], names[i])) return argv[at][strlen(names[i])] ? 1 : 2;
    return 0;
}

bool launch_has_option(int argc, char *const *argv, const char *name) {
    for (int i = 0; i < argc; ++i)
        if (is_option(argv[i], name)) return true;
    return false;
}

cleat_status launch_rank_words(const cli_command *command, int argc, char **argv, launch_words *words,
                               cleat_error *error) {
    char program[CLEAT_PATH];
    cleat_status status = launch_own_program(program, error);
    if (status) return status;
    launch_add(words, "%s", program);
    launch_add(words, "%s", command->name);
    for (int i = 0; i < argc;) {
        const int skipped = words_for_supervisor(argv, i);
        if (!skipped) launch_add(words, "%s", argv[i]);
        i += skipped ? skipped : 1;
    }
    if (cli_is_quiet() && !launch_has_option(argc, argv, "--quiet")) launch_add(words, "--quiet");
    if (cli_log_level() && !launch_has_option(argc, argv, "--log")) launch_add(words, "--log=%s", cli_log_level());
    return CLEAT_OK;
}

static int run_ranks(const cli_command *command, launch_options *options, int argc, char **argv, bool *alone) {
    launch_ranks *ranks = NULL;
    launch_words words = {.count = 0};
    cleat_error error = {0};
    int exit_code = 0;
    cleat_status status = launch_find_ranks(options, &ranks, &error);
    *alone = !status && ranks->count == 1 && !options->hosts;
    if (*alone) snprintf(options->selector, sizeof options->selector, "%s", ranks->items[0].selector);
    if (!status && !*alone) status = launch_rank_words(command, argc, argv, &words, &error);
    if (status)
        exit_code = cli_finish(status, &error);
    else if (!*alone)
        exit_code = launch_all(&(launch_request){.ranks = ranks, .words = &words});
    launch_words_free(&words);
    free(ranks);
    return exit_code;
}

bool launch_elsewhere(const cli_command *command, launch_options *options, int argc, char **argv, const char **device,
                      int *exit_code) {
    bool alone;
    if (launch_guard(exit_code)) return true;
    if (!launch_is_asked(command, options, *device, exit_code)) return *exit_code != 0;
    *exit_code = run_ranks(command, options, argc, argv, &alone);
    if (alone) *device = options->selector;
    return !alone;
}

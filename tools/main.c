/* Entry point of `cleat`: dispatches to a subcommand. A subcommand is a file cmd_NAME.c and a line in this
 * list. */
#include "cli.h"
#include "core/string.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "platform/system.h"

#include <cleat/device.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cli_command *const commands[] = {
    &cli_train,  &cli_eval,    &cli_predict, &cli_generate, &cli_export,     &cli_monitor,      &cli_report, &cli_runs,
    &cli_sweep,  &cli_trace,   &cli_plan,    &cli_config,   &cli_find_batch, &cli_find_workers, &cli_tune,   &cli_bench,
    &cli_verify, &cli_devices, &cli_doctor,  &cli_passport, &cli_data,       &cli_completion,   &cli_man};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

const cli_command *const *cli_commands(size_t *count) {
    *count = N_COMMANDS;
    return commands;
}

static void print_help(void) {
    printf("cleat %s %s.\n\nusage: cleat %s\n\n", cleat_version(), cli_program.summary, cli_program.usage);
    for (int i = 0; i < N_COMMANDS; ++i) printf("  %-12s %s\n", commands[i]->name, commands[i]->summary);
    printf("\noptions (--log and --quiet also after the command):\n");
    cli_visit_options(&cli_program, cli_print_options, NULL);
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

static const cli_command *find_command(const char *name) {
    if (strcmp(name, "profile") == 0) name = "trace"; /* its name in release 0.1 */
    for (int i = 0; i < N_COMMANDS; ++i)
        if (strcmp(name, commands[i]->name) == 0) return commands[i];
    char hint[CLI_HINT];
    cli_hint_command(name, hint);
    fprintf(stderr, "cleat: unknown command '%s'%s\n`cleat --help` lists the commands\n", name, hint);
    return NULL;
}

/* `cleat help`, `cleat help COMMAND`; `help` is not in the table of commands. */
static int run_help(int argc, char **argv) {
    if (argc && (strcmp(argv[0], "help") == 0 || strcmp(argv[0], "--help") == 0)) argc = 0;
    const cli_command *command = argc ? find_command(argv[0]) : NULL;
    if (command) return command->run(command, 1, (char *[]){(char *)"--help", NULL});
    if (argc) return EXIT_USAGE;
    print_help();
    return 0;
}

static int run(const cli_command *command, int argc, char **argv) {
    bool version = false, help = false;
    const cli_option options[] = {{"--version", CLI_FLAG, &version, NULL, "version, compiler and libraries"},
                                  {"--help", CLI_FLAG, &help, NULL, "show this help"},
                                  {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int at = 0, exit_code;
    if (argc > 0 && cleat_has_word("-h /?", argv[0], ' ')) argv[0] = (char *)"--help";
    if (!cli_parse_front(command, options, argc, argv, &at, &exit_code)) return exit_code;
    if (version) {
        print_version();
        return 0;
    }
    if (help || at >= argc) {
        print_help();
        return help ? 0 : EXIT_USAGE;
    }
    if (strcmp(argv[at], "help") == 0) return run_help(argc - at - 1, argv + at + 1);
    const cli_command *chosen = find_command(argv[at]);
    return chosen ? chosen->run(chosen, argc - at - 1, argv + at + 1) : EXIT_USAGE;
}

const cli_command cli_program = {"", "[--log LEVEL | --quiet] COMMAND ...", "trains neural networks on any OpenCL card",
                                 run};

/* Files must not get the numbers of closed standard streams, into which messages would then be written. */
static void open_standard_streams(void) {
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file)
        if (fcntl(file, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) < 0) _exit(EXIT_FAILURE);
}

/* glibc raises the size from which memory goes straight back to the system, up to 32 MiB, with every large
 * block that is freed. The freed memory of compilers and buffers would then stay in the arenas of their
 * threads, 10 MB in each. */
static void return_large_blocks(void) {
#ifdef __GLIBC__
    enum { LARGE = 1 << 20 };
    if (getenv("MALLOC_MMAP_THRESHOLD_") || getenv("GLIBC_TUNABLES")) return; /* the user's choice */
    mallopt(M_MMAP_THRESHOLD, LARGE);
    mallopt(M_TRIM_THRESHOLD, 2 * LARGE);
#endif
}

int main(int argc, char **argv) {
    argv = cleat_arguments(argc, argv);
    return_large_blocks();
    open_standard_streams();
    if (argc == 4 && strcmp(argv[1], CLI_COMPILER_WORD) == 0) return cli_compile_kernels(argv[2], argv[3]);
    cli_survive_file_limit();
    const int exit_code = run(&cli_program, argc - 1, argv + 1);
    if (exit_code) cli_explain_quotes(argc, argv);
    return cli_finish_output(exit_code);
}

/* What the subcommands of `cleat` share: options, messages, exit codes. The program uses the public headers
 * only. */
#ifndef CLEAT_TOOLS_CLI_H
#define CLEAT_TOOLS_CLI_H

#include <cleat/bench.h>
#include <cleat/core.h>

enum { EXIT_USAGE = 2, EXIT_FIT = 3, EXIT_DEVICE = 4, EXIT_NAN = 5, EXIT_TIME = 75, EXIT_INTERRUPTED = 130 };

enum { CLI_LIST = 64 };

typedef struct cli_list {
    const char *items[CLI_LIST];
    size_t count;
} cli_list;

typedef enum cli_kind { CLI_FLAG, CLI_TEXT, CLI_REPEATED, CLI_NUMBER } cli_kind;

/* One option: where its value goes (bool, const char *, cli_list, double). */
typedef struct cli_option {
    const char *name; /* "--device" */
    cli_kind kind;
    void *target;
    const char *value_name; /* NULL for a flag */
    const char *help;
} cli_option;

typedef struct cli_command {
    const char *name;
    const char *usage;   /* what follows the name */
    const char *summary; /* one line */
    int (*run)(const struct cli_command *command, int argc, char **argv);
} cli_command;

extern const cli_command cli_devices, cli_train, cli_eval, cli_predict, cli_verify, cli_data, cli_bench, cli_plan,
    cli_find_batch, cli_tune;

/* Parses argv[0 .. argc): options (ended by a NULL name) into their targets, the rest into `words`. Returns
 * false when the command is to end at once with *exit_code: help was asked for (and printed), or the line is
 * wrong (and said so). */
bool cli_parse(const cli_command *command, const cli_option *options, int argc, char **argv, cli_list *words,
               int *exit_code);
/* Says what is wrong with the command line; returns EXIT_USAGE. */
int cli_usage(const cli_command *command, const char *format, ...) CLEAT_PRINTF(2, 3);
/* Whether an option's number is a whole one from `least` to `most`. */
bool cli_is_count(double value, double least, double most);
/* --precision: f32, f16 or bf16; else cli_usage's exit code. */
int cli_precision(const cli_command *command, const char *name, cleat_precision *precision);

/* The exit code of a status; prints the error to stderr unless ok. */
int cli_finish(cleat_status status, const cleat_error *error);

enum { CLI_SHORT = CLEAT_BYTES_TEXT };
/* A time as "12.3 ms", "12.3 s", "12.3 min" or "12.3 h", written to `text`, which is returned. */
const char *cli_duration(double seconds, char text[CLI_SHORT]);

/* The profile of `path` with the --set assignments, the last of them `device` (run.device) where it is not NULL. */
cleat_status cli_profile(const char *path, const cli_list *assignments, const char *device, cleat_profile **profile,
                         cleat_error *error);

/* A command that takes one PROFILE, --device, --seconds, --set and --json: parses, loads, and calls `body` for the exit code. */
int cli_run_with_profile(const cli_command *command, int argc, char **argv, double seconds, const char *seconds_help,
                         int (*body)(const cleat_profile *profile, double seconds, bool json));

/* A table "name value" on stdout, or one JSON object and the end of its line. */
void cli_print_metrics(const cleat_metrics *metrics, bool json);
/* The JSON object alone; of cli_print_json_number. */
void cli_print_json_metrics(const cleat_metrics *metrics);
/* A JSON number on stdout; null where it is not finite. */
void cli_print_json_number(double value);
/* JSON text of a string, with its quotes, on stdout. */
void cli_print_json_string(const char *text);

#endif

/* Common parts of the `cleat` subcommands: options, messages, exit codes. The program uses the public headers,
 * and of core the clock, files, locks, texts and JSON. */
#ifndef CLEAT_TOOLS_CLI_H
#define CLEAT_TOOLS_CLI_H

#include "core/json.h"
#include "platform/text.h"

#include <cleat/bench.h>
#include <cleat/compile.h>
#include <cleat/core.h>
#include <cleat/ranks.h>

enum {
    EXIT_USAGE = 2,
    EXIT_FIT = 3,
    EXIT_DEVICE = 4,
    EXIT_NAN = 5,
    EXIT_RANK_LOST = 8,
    EXIT_TIME = 75,
    EXIT_INTERRUPTED = 130
};

enum { CLI_LIST = 64 };

typedef struct cli_list {
    const char *items[CLI_LIST + 1]; /* [count], at most CLI_LIST, and --device among the assignments */
    size_t count;
} cli_list;

/* CLI_MAYBE: a number that may be left out; its target holds the negative default, which becomes positive then.
 * CLI_OWN: a text that only --name=TEXT gives; "" of --name. */
typedef enum cli_kind { CLI_FLAG, CLI_TEXT, CLI_REPEATED, CLI_NUMBER, CLI_MAYBE, CLI_OWN } cli_kind;

/* One option and the target of its value (bool, const char *, cli_list, double). */
typedef struct cli_option {
    const char *name; /* "--device" */
    cli_kind kind;
    void *target;
    const char *value_name; /* NULL for a flag */
    const char *help;
} cli_option;

typedef struct cli_command {
    const char *name;
    const char *usage;   /* arguments after the command's name */
    const char *summary; /* one-line description */
    int (*run)(const struct cli_command *command, int argc, char **argv);
} cli_command;

extern const cli_command cli_train, cli_eval, cli_predict, cli_generate, cli_export, cli_monitor, cli_report, cli_trace,
    cli_plan, cli_config, cli_find_batch, cli_find_workers, cli_tune, cli_bench, cli_verify, cli_devices, cli_doctor,
    cli_passport, cli_data, cli_completion, cli_man, cli_runs, cli_sweep;

/* All commands, in the order of `cleat --help` (main.c). */
const cli_command *const *cli_commands(size_t *count);
/* The program itself as a command: the options before a command's name (main.c). */
extern const cli_command cli_program;

typedef struct cli_exit_code {
    int code;
    const char *meaning;
} cli_exit_code;

/* Terminated by a NULL meaning. */
extern const cli_exit_code cli_exit_codes[];

/* Calls `visit` with the options of a command instead of running it: run() reaches cli_parse first of all, with its
 * table. So completions and manual pages need no second list of options. */
typedef void (*cli_visit)(const cli_command *command, const cli_option *options, void *user);
void cli_visit_options(const cli_command *command, cli_visit visit, void *user);

/* --quiet: no progress, and no report of a run; only warnings and errors. */
bool cli_is_quiet(void);
/* The value of --log; NULL: not given. */
const char *cli_log_level(void);
/* Whether a file descriptor is a terminal that can redraw a line (not TERM=dumb). */
bool cli_is_terminal(int file);
/* Whether to write colours to it: a terminal, and NO_COLOR is unset or empty (https://no-color.org). */
bool cli_has_colors(int file);

/* Parses argv[0 .. argc): options (terminated by a NULL name) into their targets, other arguments into
 * `words`. --log and --quiet belong to every command and are applied. If the command has --set, words
 * "section.key=value" that do not name a file are its arguments. Returns false if the command must exit at
 * once with *exit_code: help was requested and printed, or the command line is invalid and a message was
 * printed. */
bool cli_parse(const cli_command *command, const cli_option *options, int argc, char **argv, cli_list *words,
               int *exit_code);
/* The same, but stops at the first argument that is not an option; *parsed is its index. --help is an
 * ordinary option here. */
bool cli_parse_front(const cli_command *command, const cli_option *options, int argc, char **argv, int *parsed,
                     int *exit_code);
/* Prints a table of options as a help text shows it; a cli_visit. */
void cli_print_options(const cli_command *command, const cli_option *options, void *user);
/* Prints what is wrong with the command line; returns EXIT_USAGE. */
int cli_usage(const cli_command *command, const char *format, ...) CLEAT_PRINTF(2, 3);
/* Returns whether `words` is one profile, or a profile and a file or folder of data, which becomes the assignment
 * data.path. If not, *exit_code is that of the usage message printed, which lists the profiles if none is named. */
bool cli_is_one_profile(const cli_command *command, const cli_list *words, cli_list *assignments, int *exit_code);
/* Returns whether an option's number is an integer from `least` to `most`. */
bool cli_is_count(double value, double least, double most);
/* Adds an assignment of `setting`, unless `value` is NULL; `text` [size] holds it. Returns 0, or the exit
 * code of the usage message printed because there are too many. */
int cli_assign(const cli_command *command, cli_list *assignments, const char *setting, const char *value, char *text,
               size_t size);
typedef struct cli_precision_name {
    const char *name;
    cleat_precision precision;
} cli_precision_name;
extern const cli_precision_name cli_precisions[]; /* f32, f16, bf16, tf32; ends with a NULL name */
/* Parses --precision, one of them; returns cli_usage's exit code for other values. */
int cli_precision(const cli_command *command, const char *name, cleat_precision *precision);

/* The log of a rank other than 0: its number before every line, and only errors unless --log asks for more. */
void cli_log_as_rank(int rank);
/* Joins the other processes if a launcher started several; else *ranks is NULL. Before the first OpenCL call. */
cleat_status cli_join_ranks(cleat_ranks **ranks, cleat_error *error);
/* Whether this process prints results: rank 0, or a process alone. */
bool cli_is_leader(const cleat_ranks *ranks);
/* The last call of a command that has joined. Like cli_finish, but only the first rank prints an error of all
 * ranks. */
int cli_leave_ranks(cleat_ranks *ranks, cleat_status status, const cleat_error *error);

/* Returns the exit code of a status, and prints the error to stderr unless the status is ok. */
int cli_finish(cleat_status status, const cleat_error *error);

/* Writes out stdout. Returns `exit_code`, or EXIT_FAILURE instead of 0 if any output of stdout (after a
 * message) or of stderr was lost. */
int cli_finish_output(int exit_code);

enum { CLI_SHORT = CLEAT_BYTES_TEXT };
/* Formats a duration as "12.3 ms", "12.3 s", "12.3 min" or "12.3 h" to `text`, which is returned. */
const char *cli_duration(double seconds, char text[CLI_SHORT]);

/* From now on a signal stops the run of `options` after its step, with a checkpoint (cli_signals.c): SIGINT,
 * SIGTERM, SIGHUP unless nohup ignores it, SIGPIPE (the output is closed) and SIGXFSZ (a file has reached
 * its limit). Before the first step, the program ends within a second. A repeated signal ends the program at
 * once, except within a second of the first. Sets `stop` and `began`. */
void cli_stop_on_signals(cleat_train_options *options);
/* For all commands: a file that has reached its limit is an error of that file, and does not kill the program. */
void cli_survive_file_limit(void);

/* Options that several commands have; `target` is a const char **, or the cli_list of --set. */
#define CLI_DEVICE(target)                                                                                             \
    { "--device", CLI_TEXT, target, "SEL", "device, as for `cleat train`" }
#define CLI_CHECKPOINT(target)                                                                                         \
    {                                                                                                                  \
        "--checkpoint", CLI_TEXT, target, "DIR",                                                                       \
            "run folder (its best checkpoint), or a checkpoint folder; it contains the profile, so PROFILE may be "    \
            "left out"                                                                                                 \
    }
/* Several of them; `target` is a cli_list *. */
#define CLI_CHECKPOINTS(target)                                                                                        \
    {                                                                                                                  \
        "--checkpoint", CLI_REPEATED, target, "DIR",                                                                   \
            "run folder (its best checkpoint), or a checkpoint folder; it contains the profile, so PROFILE may be "    \
            "left out; several, or the folder of `train --folds`: their predictions are combined"                      \
    }
#define CLI_SET(target)                                                                                                \
    { "--set", CLI_REPEATED, target, "SECTION.KEY=VALUE", "override a setting of the profile; may be repeated" }
/* Option --init of commands that train or plan; `target` is a const char **. */
#define CLI_INIT(target)                                                                                               \
    {                                                                                                                  \
        "--init", CLI_TEXT, target, "PATH",                                                                            \
            "weights to start from: a Hugging Face folder, a GGUF or .safetensors file, or a run of cleat: model.init" \
    }
/* Option --progress of commands that train; `target` is a const char *. */
#define CLI_PROGRESS(target)                                                                                           \
    {                                                                                                                  \
        "--progress", CLI_TEXT, target, "FORM",                                                                        \
            "bar, lines, none (evaluations only), or auto: bar, but lines in a notebook, a file or with TERM=dumb "    \
            "(default)"                                                                                                \
    }
/* Sets print, terminal and width of `options`, for progress on stderr. `form`: the value of --progress, or NULL.
 * Returns 0, or cli_usage's exit code for an unknown form. */
int cli_progress(const cli_command *command, const char *form, cleat_train_options *options);
/* Columns of the terminal on stderr; if stderr is a pipe, those of COLUMNS; else 80. */
int cli_terminal_width(void);
/* Columns of a UTF-8 text: bytes that do not continue a character. */
int cli_columns(const char *text);
/* Whether a file descriptor is a terminal, outside of notebooks, that can redraw a line (not TERM=dumb). */
bool cli_can_redraw(int file);

/* Opens the profile `name` (cleat_profile_find) with the --set assignments, then `device` (run.device) unless it is
 * NULL, then the settings that the weights of model.init determine. */
cleat_status cli_profile(const char *name, const cli_list *assignments, const char *device, cleat_profile **profile,
                         cleat_error *error);
/* Without the settings that the weights determine. */
cleat_status cli_profile_as_given(const char *name, const cli_list *assignments, const char *device,
                                  cleat_profile **profile, cleat_error *error);

/* The profile of a command that uses a checkpoint: the one in `words`, as for cli_profile, or else that of
 * the checkpoint. More words, or no checkpoint, are a usage error: false, with its exit code. */
bool cli_has_checkpoint(const cli_command *command, const cli_list *words, const char *checkpoint, int *exit_code);
cleat_status cli_profile_of_checkpoint(const cli_list *words, const char *checkpoint, const cli_list *assignments,
                                       const char *device, cleat_profile **profile, cleat_error *error);
/* That of weights without a run: `words` or `chat`, without adapters, and with the assignment `first` (NULL: none). */
cleat_status cli_profile_of_init(const cli_list *words, const char *init, const char *first,
                                 const cli_list *assignments, const char *device, cleat_profile **profile,
                                 cleat_error *error);

/* The models of a command that combines the predictions of several. */
typedef struct cli_members {
    cleat_member items[CLEAT_MAX_MEMBERS];
    size_t count;
} cli_members;
/* Opens the profile of each checkpoint as cli_profile_of_checkpoint; the folder of a cross-validation stands for the
 * runs of its folds. The caller closes the members, also after an error. */
cleat_status cli_members_open(const cli_list *words, const cli_list *checkpoints, const cli_list *assignments,
                              const char *device, cli_members *members, cleat_error *error);
void cli_members_close(cli_members *members);
/* Evaluates each sample by the fold of `out` that validates it; prints, and writes folds.json and out-of-fold there. */
cleat_status cli_evaluate_folds(const char *out, size_t folds, const char *device, bool json, cleat_error *error);

/* Prints metrics on stdout as a table of names and values. */
void cli_print_metrics(const cleat_metrics *metrics);
/* Adds them as a JSON object. */
void cli_add_json_metrics(cleat_string *json, const char *name, const cleat_metrics *metrics);
/* Prints a JSON text and a newline on stdout, and frees it. */
void cli_print_json(cleat_string *json);

/* Creates a folder cleat-NAME-... in $TMPDIR or /tmp, whose path is written to folder [size]; "" on failure. */
cleat_status cli_make_temporary(const char *name, char *folder, size_t size, cleat_error *error);
/* Removes it with everything in it. */
void cli_remove_temporary(const char *folder);

enum { CLI_HINT = 512, CLI_NAME = 64 };

/* Writes what an unknown option probably means: "; did you mean --device?", "; it is a setting: --set
 * train.epochs=3"; "" if nothing is near. `word` is the argument, `value` its value or NULL. */
void cli_hint_option(const cli_command *command, const cli_option *options, const char *word, const char *value,
                     char text[CLI_HINT]);
/* The same for an unknown command: "; did you mean 'train'?" */
void cli_hint_command(const char *word, char text[CLI_HINT]);
/* Of a command that failed on Windows: prints an argument whose quotes are not what its user meant. */
void cli_explain_quotes(int argc, char **argv);

/* Reads the next setting from the text of `cleat train --help-profile`. Returns the rest of the text, or NULL
 * after the last setting. `section` keeps its value from call to call. */
const char *cli_next_setting(const char *help, char section[CLI_NAME], char name[CLI_NAME]);

/* The helpers of this process; $CLEAT_COMPILERS limits their number. */
const cleat_compile_helpers *cli_compilers(void);

/* The word that makes a process one of them: `cleat --compile-kernels PARENT LEVEL`, with the list as file 3. */
#define CLI_COMPILER_WORD "--compile-kernels"
/* Compiles; returns the exit code. `parent`: the process with which it ends. */
int cli_compile_kernels(const char *parent, const char *level);

#endif

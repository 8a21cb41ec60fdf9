/* Parts of `cleat train --devices`: one process for each device, started by MPI's launcher, and started again
 * with the remaining ones when one is lost.
 *
 * Three processes belong to each device. The supervisor is the command that the user started; it starts the
 * launcher (mpirun). The launcher starts a guard for each device, and the guard forks the rank, which trains.
 * Guards exist because a launcher kills all processes of a job within a second or two once one of them ends
 * badly (Open MPI 4.1 sleeps odls_base_sigkill_timeout before SIGTERM and again before SIGKILL, whichever has
 * ended meanwhile), and names it only at the end: ranks would have no time to save their step. A guard
 * outlives its rank and reports how it ended. */
#ifndef CLEAT_TOOLS_LAUNCH_H
#define CLEAT_TOOLS_LAUNCH_H

#include "cli.h"
#include "platform/processes.h"

#include <cleat/device.h>
#include <cleat/profile.h>

/* --- words of a command line ----------------------------------------------------------------------------------- */

enum { LAUNCH_WORDS = 512 };

/* Words [count], then NULL. */
typedef struct launch_words {
    char *items[LAUNCH_WORDS]; /* owned */
    size_t count;
    bool failed; /* out of memory, or too many */
} launch_words;

void launch_add(launch_words *words, const char *format, ...) CLEAT_PRINTF(2, 3);
void launch_words_free(launch_words *words);

/* --- launch_options.c: --devices and --hosts of a command -------------------------------------------------------- */

enum { LAUNCH_SELECTOR = 128 };

typedef struct launch_options {
    const char *devices, *hosts; /* as given, or NULL */
    char selector[LAUNCH_SELECTOR];
} launch_options;

/* Both as rows of a command's table of options; `options` is a launch_options. */
#define LAUNCH_OPTIONS(options, verb)                                                                                  \
    {"--devices", CLI_TEXT, &(options).devices, "LIST",                                                                \
     verb " on several devices at once, one process each (MPI, not on Windows): numbers or names of `cleat "           \
          "devices`, 3*NAME, gpu or all"},                                                                             \
    {                                                                                                                  \
        "--hosts", CLI_TEXT, &(options).hosts, "HOSTS",                                                                \
            "the machines of these devices, each with its number of devices, e.g. a:2,b:1"                             \
    }

/* Whether --devices or --hosts is given, and `device` (--device) is not; else false, with *exit_code other
 * than 0 if this is a mistake, whose message was printed. */
bool launch_is_asked(const cli_command *command, const launch_options *options, const char *device, int *exit_code);

/* The command line of each rank: `argv` [argc] of `command` without the options of the supervisor. */
cleat_status launch_rank_words(const cli_command *command, int argc, char **argv, launch_words *words,
                               cleat_error *error);
bool launch_has_option(int argc, char *const *argv, const char *name);

/* For commands that leave no checkpoints, after cli_parse. True: the command exits with *exit_code, because
 * the ranks have run, this process was a guard of one, or the options are a mistake. False: it continues in
 * this process; if --devices names one device, *device (that of --device, or NULL) becomes its selector,
 * which lies in `options`. */
bool launch_elsewhere(const cli_command *command, launch_options *options, int argc, char **argv, const char **device,
                      int *exit_code);

/* --- launch_devices.c: the device of each rank ----------------------------------------------------------------- */

enum { LAUNCH_RANKS = 64, LAUNCH_HOST = 128 };

typedef struct launch_rank {
    char host[LAUNCH_HOST];         /* "": this machine */
    char selector[LAUNCH_SELECTOR]; /* as for --device; "": the rank chooses among the GPUs of its machine */
    cleat_device_facts facts;       /* of a device of this machine */
    char failure[256];              /* why it is left out; "": it takes part */
} launch_rank;

typedef struct launch_ranks {
    launch_rank items[LAUNCH_RANKS];
    size_t count;
} launch_ranks;

/* Finds the ranks of --devices and --hosts, one of which may be NULL; the caller frees *ranks. Words of
 * `devices`, separated by commas: a number of `cleat devices`, "gpu" (all), "cpu", "all", "auto" (all GPUs,
 * or else a CPU), part of a name, and N*WORD. Drivers are asked in child processes, but not for a single
 * number: whether there is such a device shows when it is opened. */
cleat_status launch_find_ranks(const launch_options *options, launch_ranks **ranks, cleat_error *error);

/* The number of those that take part. */
size_t launch_count(const launch_ranks *ranks);

/* --- launch_mpirun.c: the launcher of MPI ---------------------------------------------------------------------- */

typedef enum launch_kind { LAUNCH_OPEN_MPI_4, LAUNCH_OPEN_MPI_5, LAUNCH_HYDRA } launch_kind;

typedef struct launch_mpi {
    char program[CLEAT_PATH];
    char version[128]; /* first line of --version that names it */
    launch_kind kind;
} launch_mpi;

/* Finds CLEAT_MPIRUN, or else mpirun or mpiexec in PATH, and asks for its version. CLEAT_ERR_NOT_SUPPORTED:
 * there is none; the error says what to install. */
cleat_status launch_find_mpi(launch_mpi *mpi, cleat_error *error);

/* Writes the command line that starts `program` [words] once for each rank that takes part. Other hosts receive the
 * variables of this process that concern cleat and OpenCL. */
void launch_command(const launch_mpi *mpi, const launch_ranks *ranks, const launch_words *program, launch_words *words);

/* --- launch_guard.c: in the processes that the launcher starts ------------------------------------------------- */

#define LAUNCH_GUARD_VARIABLE "CLEAT_RANKS_GUARD"         /* "1": this process is to be a guard */
#define LAUNCH_SELECTORS_VARIABLE "CLEAT_RANKS_SELECTORS" /* selectors of all ranks, separated by ';' */
enum { LAUNCH_MARK = 0x1e };                              /* begins a line of a guard on stderr */

/* If the supervisor asks for a guard, becomes one: forks the rank, which returns false, watches it, and
 * returns true with the exit code of the guard once the supervisor has released it. Returns false in all
 * other processes. To be called before threads exist and OpenCL is used. */
bool launch_guard(int *exit_code);

/* The state of a process of this machine as /proc shows it: 'R', 'T' (stopped), 'Z'; 0: there is no such process. */
char launch_process_state(pid_t process);

/* --- launch_output.c: what the launcher prints ----------------------------------------------------------------- */

typedef enum launch_event { LAUNCH_STARTED, LAUNCH_EXITED, LAUNCH_KILLED } launch_event;

/* A line of a guard: "\x1e" "cleat-rank RANK HOST PID started", or "... exit CODE", or "... signal NUMBER". */
typedef struct launch_report {
    int rank, number; /* number: exit code or signal */
    char host[LAUNCH_HOST];
    pid_t pid;
    launch_event event;
} launch_report;

enum { LAUNCH_HELD = 8192, LAUNCH_MARKED = 320 };

/* Passes on what ranks print, takes out the lines of guards, and drops the launcher's own messages about ends
 * that the supervisor explains better. */
typedef struct launch_output {
    void (*write)(void *user, const char *text, size_t size);
    void (*report)(void *user, const launch_report *report);
    void *user;
    char mark[LAUNCH_MARKED]; /* [marked] a line of a guard so far */
    char held[LAUNCH_HELD];   /* [used] what may be a message of the launcher */
    size_t marked, used;
    bool in_mark, in_box, after_text; /* a guard's line; a box between lines of dashes; not at the start of a line */
} launch_output;

void launch_output_add(launch_output *output, const char *text, size_t size);
void launch_output_end(launch_output *output);

/* --- launch_job.c: one start of all ranks ---------------------------------------------------------------------- */

typedef struct launch_end {
    bool started, ended;
    bool by_signal; /* else number is an exit code */
    int number;
    bool asked; /* it ended after all were told that a rank is lost */
    char host[LAUNCH_HOST];
    pid_t pid;
} launch_end;

typedef struct launch_job {
    launch_end ends[LAUNCH_RANKS];
    size_t count;
    int launcher_code; /* exit code of the launcher, or 128 and its signal */
    int stops;         /* signals that the user sent */
    bool lost;         /* a rank was lost, and the others were told */
    bool late;         /* not all ranks started in time, and the launcher was ended */
} launch_job;

/* Whether all ranks have started, or have ended. */
bool launch_have_all(const launch_job *job, bool ended);
/* From now on SIGINT, SIGTERM and SIGHUP (unless nohup ignores it) are counted, those within a second as one. */
void launch_catch_signals(void);
int launch_stops(void);
/* The file of this program, which ranks run; on Windows, which has no ranks, the message that says so. */
cleat_status launch_own_program(char program[CLEAT_PATH], cleat_error *error);
/* Runs the command line and waits for its end. Passes on SIGINT, SIGTERM and SIGHUP. */
cleat_status launch_run(const launch_words *command, size_t ranks, launch_job *job, cleat_error *error);

/* --- launch.c: the supervisor ---------------------------------------------------------------------------------- */

typedef struct launch_request {
    launch_ranks *ranks;
    const launch_words *words;    /* the command line of a rank: program, "train", ..., --out */
    const char *folder;           /* of the run; NULL: a command without checkpoints, which runs once */
    int restarts;                 /* allowed within ten minutes */
    const cleat_int_list *shares; /* distribute.shares; NULL: another command than train */
} launch_request;

/* Runs the command on all ranks. Returns the exit code. */
int launch_all(const launch_request *request);

/* --- launch_check.c: after a loss ------------------------------------------------------------------------------ */

/* Tries the devices of all ranks that still take part, in child processes with a time limit. Those that fail
 * have `failure` set; selectors follow a changed numbering. `program`: cleat on every host. */
cleat_status launch_check_devices(const launch_mpi *mpi, const char *program, launch_ranks *ranks, cleat_error *error);

#endif

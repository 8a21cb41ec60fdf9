/* Signals of commands that train: a request to stop becomes a checkpoint and an exit code. Handlers call only
 * async-signal-safe functions of POSIX. */
#include "cli.h"
#include "core/clock.h"
#include "platform/files.h"
#include "platform/processes.h"

#include <string.h>

/* Written by the handlers and by `begin` only. */
static volatile int stop;
static volatile sig_atomic_t has_begun, has_asked;
static volatile double asked; /* time of the first request of a user */

enum { PATIENCE = 1 }; /* seconds: of a repeated request, and of a run that is still opening */

static void write_message(const char *text) {
    const ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written; /* a failure cannot be reported */
}

/* A run that is still opening checks for requests between its stages, and a stage may take minutes (reading
 * data, compiling kernels): the program waits no longer than PATIENCE. Nothing has been trained yet. */
static void on_alarm(int number) {
    (void)number;
    if (has_begun) return;
    write_message("cleat: interrupted before the first step; nothing was trained since the start\n");
    _exit(EXIT_INTERRUPTED);
}

static void request_stop(void) {
    stop = 1;
    if (!has_begun) alarm(PATIENCE);
}

/* Whether PATIENCE has passed since the first request. `timeout` and shells send a signal twice within
 * milliseconds: to the program and to its process group. */
static bool is_impatient(void) {
    const double now = cleat_seconds();
    const bool later = has_asked && now - asked >= PATIENCE;
    if (!has_asked) asked = now;
    has_asked = 1;
    return later;
}

static void on_request(int number) {
    if (is_impatient()) {
        signal(number, SIG_DFL);
        raise(number); /* ends the program when this handler returns */
        return;
    }
    request_stop();
}

/* The output is closed, or a file is full. The signal repeats with every message, so it never ends the program at
 * once. */
static void on_lost_output(int number) {
    (void)number;
    request_stop();
}

static void handle(int number, void (*handler)(int)) {
    struct sigaction action = {.sa_flags = SA_RESTART};
    action.sa_handler = handler;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

static void handle_all(void) {
    handle(SIGINT, on_request);
    handle(SIGTERM, on_request);
    handle(SIGPIPE, on_lost_output);
    handle(SIGXFSZ, on_lost_output);
}

/* Drivers with LLVM have replaced these handlers, once in a process; LLVM's handler of SIGXFSZ does not call them. */
static void begin(void *user) {
    (void)user;
    handle_all();
    has_begun = 1;
}

void cli_stop_on_signals(cleat_train_options *options) {
    handle_all();
    handle(SIGALRM, on_alarm);
    if (signal(SIGHUP, SIG_IGN) != SIG_IGN) handle(SIGHUP, on_request); /* keeps nohup's setting */
    options->stop = &stop;
    options->began = begin;
}

static void ignore(int number) {
    (void)number;
}

/* A handler, not SIG_IGN, which child processes would inherit. */
void cli_survive_file_limit(void) {
    handle(SIGXFSZ, ignore);
}

/* One start of all ranks: runs the launcher, follows what guards report, and passes on signals. */
#include "core/clock.h"
#include "launch.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "platform/system.h"

#include <cleat/ranks.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Seconds after which the other ranks are told that one has failed, if they have not ended by themselves; for
 * the launcher to end after its guards; for all guards to have started, before a signal of the user ends the
 * job at once; for ranks of this machine to end after their guards; for all guards to report the end of their
 * ranks, which they kill earlier: those of a host that does not answer never do. */
static const double seconds_after_failure = 10, seconds_to_leave = 5, seconds_to_start = 20, seconds_to_save = 35,
                    seconds_to_report = 40;

typedef struct runner {
    launch_job *job;
    pid_t launcher;
    int in; /* what the launcher prints on stderr */
    launch_output output;
    double started, failed, released, asked; /* times; 0: not yet */
    int stops_sent;
    bool ended; /* the launcher */
} runner;

static volatile sig_atomic_t stops;
static volatile double counted; /* time of the last one */

/* Repeated signals within a second count as one, as for a run in this process (cli_signals.c). */
static void on_signal(int number) {
    const double now = cleat_seconds();
    (void)number;
    if (stops > 0 && now - counted <= 1) return;
    counted = now;
    ++stops;
}

int launch_stops(void) {
    return stops;
}

void launch_catch_signals(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
        struct sigaction before, action = {.sa_handler = on_signal};
        sigaction(numbers[i], NULL, &before);
        /* keep nohup's setting */
        if (numbers[i] != SIGHUP || before.sa_handler != SIG_IGN) sigaction(numbers[i], &action, NULL);
    }
}

static void write_text(void *user, const char *text, size_t size) {
    (void)user;
    fwrite(text, 1, size, stderr);
    fflush(stderr);
}

static void collect_report(void *user, const launch_report *report) {
    runner *r = user;
    if ((size_t)report->rank >= r->job->count) return;
    launch_end *end = &r->job->ends[report->rank];
    snprintf(end->host, sizeof end->host, "%s", report->host);
    end->pid = report->pid;
    end->started = true;
    if (report->event == LAUNCH_STARTED) return;
    end->ended = true;
    end->by_signal = report->event == LAUNCH_KILLED;
    end->number = report->number;
    end->asked = r->asked > 0;
    /* A rank that was stopped in order, that has used up its time or that ends well leaves the others to do the same. */
    if (!end->by_signal && (end->number == 0 || end->number == EXIT_TIME || end->number == EXIT_INTERRUPTED)) return;
    if (!(r->failed > 0)) r->failed = cleat_seconds();
    if (end->by_signal || end->number == EXIT_RANK_LOST) r->job->lost = true;
}

bool launch_have_all(const launch_job *job, bool ended) {
    for (size_t i = 0; i < job->count; ++i)
        if (ended ? !job->ends[i].ended : !job->ends[i].started) return false;
    return true;
}

/* The first signal of the user stops the training in order, once all guards are there to pass it on; the
 * second ends the job. */
static void pass_stops(runner *r, double now) {
    r->job->stops = stops;
    if (stops > r->stops_sent && !launch_have_all(r->job, false) && now < r->started + seconds_to_start && stops < 2)
        return;
    if (stops == r->stops_sent) return;
    if (r->stops_sent == 0 && launch_have_all(r->job, false)) {
        kill(r->launcher, r->failed > 0 ? SIGUSR1 : SIGUSR2);
        r->stops_sent = 1;
    } else {
        kill(r->launcher, stops < 3 ? SIGTERM : SIGKILL);
        r->stops_sent = stops;
    }
}

/* A host that cannot be reached keeps the launcher waiting for ever. */
static void limit_start(runner *r, double now) {
    const double limit = r->started + cleat_ranks_start_seconds();
    if (launch_have_all(r->job, false) || r->failed > 0 || now < limit) return;
    if (!r->job->late) kill(r->launcher, SIGTERM);
    if (now > limit + seconds_to_leave) kill(r->launcher, SIGKILL);
    r->job->late = true;
}

/* SIGUSR1 informs a guard that a rank is lost; SIGUSR2 releases it once its own rank has ended. */
static void steer(runner *r, double now) {
    const bool all_ended = launch_have_all(r->job, true), all_started = launch_have_all(r->job, false);
    const bool is_late = r->failed > 0 && now > r->failed + seconds_after_failure;
    if ((r->job->lost || is_late) && all_started && !all_ended && !(r->asked > 0)) {
        kill(r->launcher, SIGUSR1);
        r->asked = now;
    }
    const bool is_silent = r->asked > 0 && now > r->asked + seconds_to_report;
    if ((all_ended || is_silent) && !(r->released > 0)) {
        kill(r->launcher, SIGUSR2);
        r->released = now;
    }
    if (r->released > 0 && now > r->released + seconds_to_leave) kill(r->launcher, SIGTERM);
    if (r->released > 0 && now > r->released + 2 * seconds_to_leave) kill(r->launcher, SIGKILL);
}

/* Its process group is separate: Ctrl-C reaches the supervisor only. It gets SIGTERM when the supervisor is killed. */
static _Noreturn void execute(const launch_words *command, int out) {
    const int null = open("/dev/null", O_RDONLY);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (null >= 0) dup2(null, STDIN_FILENO);
    dup2(out, STDERR_FILENO);
    execvp(command->items[0], command->items);
    _exit(127);
}

static cleat_status start(runner *r, const launch_words *command, cleat_error *error) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return cleat_fail(error, CLEAT_ERR_IO, "cannot create a pipe to %s: %s", command->items[0], strerror(errno));
    fflush(NULL);
    r->launcher = fork();
    if (r->launcher == 0) execute(command, ends[1]);
    close(ends[1]);
    r->in = ends[0];
    if (r->launcher > 0) return CLEAT_OK;
    close(ends[0]);
    return cleat_fail(error, CLEAT_ERR_IO, "cannot start %s: %s", command->items[0], strerror(errno));
}

/* Reads the available data, waiting briefly; false at the end of the pipe. */
static bool read_some(runner *r, int milliseconds) {
    char text[4096];
    struct pollfd waiting = {.fd = r->in, .events = POLLIN};
    if (poll(&waiting, 1, milliseconds) <= 0) return true;
    const ssize_t count = read(r->in, text, sizeof text);
    if (count < 0) return errno == EINTR || errno == EAGAIN;
    launch_output_add(&r->output, text, (size_t)count);
    return count > 0;
}

static void check_ended(runner *r) {
    int state = 0;
    if (waitpid(r->launcher, &state, WNOHANG) != r->launcher) return;
    r->ended = true;
    r->job->launcher_code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

static bool is_alive(pid_t process) {
    const char state = launch_process_state(process);
    return state && state != 'Z' && state != 'X';
}

/* Ranks of this machine whose guards were killed still save their step; a hung one must not write to the
 * folder later. */
static void wait_for_ranks(const launch_job *job) {
    const double end = cleat_seconds() + seconds_to_save;
    char own[LAUNCH_HOST] = "";
    gethostname(own, sizeof own - 1);
    for (size_t i = 0; i < job->count; ++i) {
        const launch_end *rank = &job->ends[i];
        if (!rank->started || rank->ended || strcmp(rank->host, own) != 0) continue;
        while (is_alive(rank->pid) && cleat_seconds() < end && stops < 3) usleep(100000);
        if (is_alive(rank->pid)) kill(rank->pid, SIGKILL);
    }
}

cleat_status launch_own_program(char program[CLEAT_PATH], cleat_error *error) {
    const ssize_t length = readlink("/proc/self/exe", program, CLEAT_PATH - 1);
    if (length <= 0) return cleat_fail(error, CLEAT_ERR_IO, "the file of this program cannot be found in /proc");
    program[length] = 0;
    return CLEAT_OK;
}

cleat_status launch_run(const launch_words *command, size_t ranks, launch_job *job, cleat_error *error) {
    runner r = {.job = job};
    bool open = true;
    *job = (launch_job){.count = ranks};
    if (command->failed) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "the command line of the launcher is too long");
    r.output = (launch_output){.write = write_text, .report = collect_report, .user = &r};
    launch_catch_signals();
    cleat_status status = start(&r, command, error);
    if (status) return status;
    r.started = cleat_seconds();
    while (!r.ended) {
        const double now = cleat_seconds();
        if (open)
            open = read_some(&r, 100);
        else
            usleep(20000);
        pass_stops(&r, now);
        limit_start(&r, now);
        steer(&r, now);
        check_ended(&r);
    }
    while (open && read_some(&r, 0) && poll(&(struct pollfd){.fd = r.in, .events = POLLIN}, 1, 0) > 0) continue;
    launch_output_end(&r.output);
    close(r.in);
    wait_for_ranks(job);
    if (job->launcher_code == 127 && !launch_have_all(job, false))
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "%s cannot be run", command->items[0]);
    return CLEAT_OK;
}

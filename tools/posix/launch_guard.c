/* The guard of a rank: forks it, reports on stderr how it started and ended, and passes on the signals of the
 * supervisor, which the launcher delivers to all guards: SIGUSR2: stop the training in order, or, once the
 * rank has ended, leave; SIGUSR1: another rank is lost, so save and end soon. */
#include "core/clock.h"
#include "launch.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "platform/system.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The time in which a rank saves its parameters and ends after the loss of another one; the time after which
 * a stopped rank (SIGSTOP) is lost. */
static const double seconds_to_save = 30, seconds_stopped = 20;

typedef struct guard {
    int rank;
    char host[LAUNCH_HOST];
    pid_t child, parent;
    bool alive, told; /* told: the rank has got SIGTERM; a second one would end it at once */
    bool by_user;     /* the user stops the training; a second signal ends it at once */
    double deadline;  /* at which it is killed; 0: none */
    double stopped;   /* since when it is stopped; 0: it is not */
} guard;

/* The number of this rank, from the launcher's environment; -1: not started by one. */
static int find_rank(void) {
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; ++i) {
        const char *value = getenv(variables[i]);
        if (value && *value) return atoi(value);
    }
    return -1;
}

/* One write, so that no other text comes between. */
static void send(const guard *g, const char *event, int number) {
    char line[LAUNCH_HOST + 96], value[16] = "";
    if (number >= 0) snprintf(value, sizeof value, " %d", number);
    const int length = snprintf(line, sizeof line, "%ccleat-rank %d %s %d %s%s\n", LAUNCH_MARK, g->rank, g->host,
                                (int)g->child, event, value);
    while (write(STDERR_FILENO, line, (size_t)length) < 0 && errno == EINTR) continue;
}

/* CLEAT_RANK_DEVICES has an entry for each local rank. The supervisor has only the rank's number in the whole
 * run, so every entry is the same selector. */
static void set_device(int rank) {
    const char *selectors = getenv(LAUNCH_SELECTORS_VARIABLE);
    char list[LAUNCH_RANKS * (LAUNCH_SELECTOR + 1)] = "";
    size_t used = 0;
    for (int i = 0; selectors && i < rank; ++i) {
        selectors = strchr(selectors, ';');
        if (selectors) ++selectors;
    }
    const int length = selectors ? (int)strcspn(selectors, ";") : 0;
    if (length == 0 || length > LAUNCH_SELECTOR) return;
    for (int i = 0; i < LAUNCH_RANKS; ++i)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%.*s", i ? ";" : "", length, selectors);
    setenv("CLEAT_RANK_DEVICES", list, 1);
}

static void fill_signals(sigset_t *set) {
    static const int numbers[] = {SIGCHLD, SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP};
    sigemptyset(set);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i) sigaddset(set, numbers[i]);
}

char launch_process_state(pid_t process) {
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    if (!fgets(line, sizeof line, file)) line[0] = 0;
    fclose(file);
    const char *state = strrchr(line, ')'); /* "PID (NAME) STATE ..." */
    return state && state[1] == ' ' ? state[2] : 0;
}

static void stop_rank(guard *g) {
    if (g->alive && !g->told) kill(g->child, SIGTERM);
    g->told = true;
}

/* A stopped rank cannot save anything, and must not continue later. */
static void end_rank(guard *g) {
    if (!g->alive) return;
    if (launch_process_state(g->child) == 'T') kill(g->child, SIGKILL);
    stop_rank(g);
    if (!(g->deadline > 0)) g->deadline = cleat_seconds() + seconds_to_save;
}

static void check_time(guard *g) {
    const double now = cleat_seconds();
    if (!g->alive) return;
    if (launch_process_state(g->child) != 'T')
        g->stopped = 0;
    else if (!(g->stopped > 0))
        g->stopped = now;
    const bool halted = g->stopped > 0 && now > g->stopped + seconds_stopped;
    if (halted || (g->deadline > 0 && now > g->deadline)) kill(g->child, SIGKILL);
}

static void collect_end(guard *g) {
    int state = 0;
    if (!g->alive || waitpid(g->child, &state, WNOHANG) != g->child) return;
    g->alive = false;
    if (WIFSIGNALED(state))
        send(g, "signal", WTERMSIG(state));
    else
        send(g, "exit", WEXITSTATUS(state));
}

/* Returns once the guard is released, or once the rank has ended and the launcher ends the job or has ended. */
static void watch(guard *g) {
    const struct timespec second = {.tv_sec = 1};
    sigset_t signals;
    fill_signals(&signals);
    for (;;) {
        const int number = sigtimedwait(&signals, NULL, &second);
        const bool orphan = getppid() != g->parent;
        const bool ending = orphan || number == SIGTERM || number == SIGINT || number == SIGHUP;
        collect_end(g);
        if (!g->alive && (ending || number == SIGUSR2)) return;
        if (g->alive && ending && !orphan && g->by_user) kill(g->child, SIGKILL);
        if (number == SIGUSR2) {
            stop_rank(g);
            g->by_user = true;
        }
        if (ending || number == SIGUSR1) end_rank(g);
        check_time(g);
    }
}

/* The rank has a separate process group, so that a signal of the launcher to the guard's group reaches it
 * once, through the guard. If the guard is killed, it gets SIGHUP: it saves and ends. */
static void prepare_rank(const guard *g, pid_t parent, const sigset_t *before) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGHUP);
    if (getppid() != parent) _exit(EXIT_FAILURE);
    sigprocmask(SIG_SETMASK, before, NULL);
    unsetenv(LAUNCH_GUARD_VARIABLE);
    set_device(g->rank);
    unsetenv(LAUNCH_SELECTORS_VARIABLE);
}

bool launch_guard(int *exit_code) {
    const char *wanted = getenv(LAUNCH_GUARD_VARIABLE);
    guard g = {.rank = find_rank(), .parent = getppid()};
    sigset_t signals, before;
    if (!wanted || strcmp(wanted, "1") != 0 || g.rank < 0) return false;
    gethostname(g.host, sizeof g.host - 1);
    fill_signals(&signals);
    sigprocmask(SIG_BLOCK, &signals, &before);
    fflush(NULL);
    const pid_t own = getpid();
    g.child = fork();
    if (g.child == 0) {
        prepare_rank(&g, own, &before);
        return false;
    }
    if (g.child < 0) {
        fprintf(stderr, "cleat: cannot start rank %d: %s\n", g.rank, strerror(errno));
        *exit_code = EXIT_FAILURE;
        return true;
    }
    g.alive = true;
    send(&g, "started", -1);
    watch(&g);
    *exit_code = 0;
    return true;
}

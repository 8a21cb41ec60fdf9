/* Starts, watches and ends processes that compile; and the work of such a process. */
#include "cli.h"
#include "platform/files.h"
#include "platform/processes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern char **environ;

enum { MAX_COMPILERS = 16, LIST_FILE = 3 };

static pid_t compilers[MAX_COMPILERS];
static int compiler_count;

static int compiler_limit(void) {
    const char *text = getenv("CLEAT_COMPILERS");
    const int limit = text && *text ? atoi(text) : MAX_COMPILERS;
    return limit < 0 ? 0 : limit > MAX_COMPILERS ? MAX_COMPILERS : limit;
}

static bool is_debugging(void) {
    const char *level = cli_log_level();
    return level && (strcmp(level, "debug") == 0 || strcmp(level, "dispatch") == 0);
}

/* They stay in the process group, so that Ctrl-C ends them as well. */
static bool start_one(int file, pid_t *process) {
    char parent[32];
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    snprintf(parent, sizeof parent, "%ld", (long)getpid());
    char *words[] = {(char *)"cleat", (char *)CLI_COMPILER_WORD, parent, (char *)(is_debugging() ? "debug" : "error"),
                     NULL};
    if (posix_spawn_file_actions_init(&files) != 0) return false;
    if (posix_spawnattr_init(&attributes) != 0) {
        posix_spawn_file_actions_destroy(&files);
        return false;
    }
    sigemptyset(&none);
    bool started =
        posix_spawn_file_actions_adddup2(&files, file, LIST_FILE) == 0 &&
        posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0) == 0 &&
        posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
        (is_debugging() || posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0) == 0) &&
        posix_spawnattr_setsigmask(&attributes, &none) == 0 &&
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK) == 0 &&
        posix_spawn(process, "/proc/self/exe", &files, &attributes, words, environ) == 0;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return started;
}

static int start(void *user, int file, int count) {
    (void)user;
    const int limit = compiler_limit();
    int started = 0;
    while (started < count && compiler_count < limit && start_one(file, &compilers[compiler_count])) {
        ++compiler_count;
        ++started;
    }
    return started;
}

static int running(void *user) {
    (void)user;
    for (int i = 0; i < compiler_count;) {
        if (waitpid(compilers[i], NULL, WNOHANG) == 0)
            ++i;
        else
            compilers[i] = compilers[--compiler_count];
    }
    return compiler_count;
}

/* A process that is asked to end removes its compiler's temporary files; one that does not respond is
 * killed. */
static void stop(void *user) {
    const struct timespec moment = {.tv_nsec = 2000000};
    for (int i = 0; i < compiler_count; ++i) kill(compilers[i], SIGTERM);
    for (int i = 0; i < 250 && running(user) > 0; ++i) nanosleep(&moment, NULL);
    for (int i = 0; i < compiler_count; ++i) {
        kill(compilers[i], SIGKILL);
        waitpid(compilers[i], NULL, 0);
    }
    compiler_count = 0;
}

const cleat_compile_helpers *cli_compilers(void) {
    static cleat_compile_helpers helpers = {.start = start, .running = running, .stop = stop};
    const char *patience = getenv("CLEAT_COMPILERS_PATIENCE"); /* for tests */
    if (patience) helpers.patience = atof(patience);
    return compiler_limit() > 0 ? &helpers : NULL;
}

static void print_log(void *user, cleat_log_level level, const char *text) {
    (void)user;
    (void)level;
    fprintf(stderr, "compiler %ld: %s\n", (long)getpid(), text);
}

int cli_compile_kernels(const char *parent, const char *level) {
    cleat_error error = {0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != (pid_t)atol(parent)) return EXIT_FAILURE; /* it has ended before */
    if (strcmp(level, "debug") == 0) cleat_set_log(print_log, NULL, CLEAT_LOG_DEBUG);
    const cleat_status status = cleat_compile_jobs(LIST_FILE, &error);
    if (status) print_log(NULL, CLEAT_LOG_ERROR, error.text);
    _exit(status ? EXIT_FAILURE : EXIT_SUCCESS); /* drivers take a while to tidy up */
}

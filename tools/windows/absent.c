/* What a program for Windows leaves out: the ranks of MPI, and processes that compile for PoCL. */
#include "cli.h"
#include "launch.h"

bool launch_guard(int *exit_code) {
    (void)exit_code;
    return false;
}

char launch_process_state(pid_t process) {
    (void)process;
    return 0;
}

bool launch_have_all(const launch_job *job, bool ended) {
    (void)job, (void)ended;
    return true;
}

cleat_status launch_own_program(char program[CLEAT_PATH], cleat_error *error) {
    (void)program;
    return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                      "several devices train together over MPI, which cleat does not use on Windows: choose one with "
                      "--device");
}

cleat_status launch_run(const launch_words *command, size_t ranks, launch_job *job, cleat_error *error) {
    (void)command, (void)ranks, (void)job;
    return launch_own_program(NULL, error);
}

static volatile int stops;

static void count_stop(int number) {
    (void)number;
    ++stops;
}

void launch_catch_signals(void) {
    const struct sigaction action = {.sa_handler = count_stop};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int launch_stops(void) {
    return stops;
}

const cleat_compile_helpers *cli_compilers(void) {
    return NULL;
}

int cli_compile_kernels(const char *parent, const char *level) {
    (void)parent, (void)level;
    return EXIT_FAILURE;
}

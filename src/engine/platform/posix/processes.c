/* A function, or a program, in a child process. */
#include "platform/processes.h"

#include "platform/files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The child must not outlive a caller that is killed, and must not run the caller's handlers of crashes and exits. */
pid_t cleat_fork_call(void (*body)(void *user, int out), void *user, int in, int out) {
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    const pid_t parent = getpid(), process = fork();
    if (process != 0) return process;
    close(in);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; ++i) signal(crashes[i], SIG_DFL);
    if (getppid() == parent) body(user, out);
    _exit(0);
}

pid_t cleat_spawn(const char *program, char *const *words, int output, int message, int end) {
    const pid_t parent = getpid(), process = fork();
    if (process > 0) setpgid(process, process); /* here as well, because the child may not have run yet */
    if (process != 0) return process;
    signal(SIGINT, SIG_DFL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, end);
    if (getppid() != parent) _exit(127);
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(message, STDERR_FILENO);
    if (program)
        execvp(program, words);
    else
        execv("/proc/self/exe", words);
    dprintf(STDERR_FILENO, "%s: %s\n", program ? program : words[0], strerror(errno));
    _exit(127);
}

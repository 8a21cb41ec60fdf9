/* Processes, their signals, pipes and processors, by the names of POSIX. */
#ifndef CLEAT_SRC_PLATFORM_PROCESSES_H
#define CLEAT_SRC_PLATFORM_PROCESSES_H

#ifdef _WIN32
#include "platform/windows/processes.h"
#else
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

/* For the first line of main: its arguments in UTF-8. On Windows also sets up the console: UTF-8, sequences of a VT
 * terminal, and ends of lines as they are written. */
#ifdef _WIN32
char **cleat_arguments(int count, char **arguments);
/* Before the first read of what is typed: makes it UTF-8. */
void cleat_read_console(void);
#else
static inline void cleat_read_console(void) {
}
static inline char **cleat_arguments(int count, char **arguments) {
    (void)count;
    return arguments;
}
#endif

/* Whether the body of cleat_fork_call is alone in its process: what it changes there, its caller does not see. */
#ifdef _WIN32
#define CLEAT_FORKS 0
#else
#define CLEAT_FORKS 1
#endif

/* Calls body(user, out) in a child process, which ends with it; on Windows in a thread, which alone ends if it crashes.
 * `in` is the end of the pipe that the caller keeps, `out` the other, which the caller closes. Returns the process for
 * kill and waitpid; -1: errno. As for any fork, the caller must have one thread, and must not have used OpenCL. */
pid_t cleat_fork_call(void (*body)(void *user, int out), void *user, int in, int out);

/* Starts a program with the words (its arguments, the first of them its own name; NULL at the end). Its input is empty;
 * its standard output and error are open files. program: looked for in PATH; NULL: the one that runs. It leads a
 * process group, and gets the signal `end` (on Windows: ends) when the caller ends. Returns the process; -1: errno. */
pid_t cleat_spawn(const char *program, char *const *words, int output, int message, int end);

#endif

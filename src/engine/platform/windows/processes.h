/* What Windows lacks of POSIX for processes, except fork: cleat_fork_call and cleat_spawn stand for it. */
#ifndef CLEAT_SRC_PLATFORM_WINDOWS_PROCESSES_H
#define CLEAT_SRC_PLATFORM_WINDOWS_PROCESSES_H

#include <fcntl.h>
#include <io.h>
#include <process.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* --- signals: Ctrl-C is SIGINT; Ctrl-Break, a closed window, log-off and shutdown are SIGTERM. Without a handler, they
 * end the program with 128 and their number, as POSIX's shells report it. --- */

enum { SIGHUP = 41, SIGKILL, SIGPIPE, SIGALRM, SIGXFSZ };
enum { SA_RESTART = 1 };
struct sigaction {
    void (*sa_handler)(int);
    int sa_flags, sa_mask;
};
#define sigemptyset(set) (*(set) = 0)
/* Signals that Windows lacks are accepted, and never come. The system grants a closed window 5 s. */
int sigaction(int number, const struct sigaction *action, struct sigaction *before);
typedef void (*cleat_windows_handler)(int);
static inline cleat_windows_handler cleat_windows_signal(int number, cleat_windows_handler handler) {
    sigaction(number, &(struct sigaction){.sa_handler = handler}, NULL);
    return SIG_DFL;
}
#define signal(number, handler) cleat_windows_signal(number, handler)
__attribute__((noreturn)) void cleat_windows_exit(int code); /* from any thread; drivers do not tidy up */
#define _exit(code) cleat_windows_exit(code)
#define raise(number) cleat_windows_exit(128 + (number)) /* of a signal without a handler */
unsigned alarm(unsigned seconds);                        /* calls the handler of SIGALRM from another thread */

/* --- the clock --- */

int cleat_windows_clock_gettime(clockid_t clock, struct timespec *now);
#define clock_gettime(clock, now) cleat_windows_clock_gettime(clock, now)

/* --- processors --- */

typedef struct cpu_set_t {
    uint64_t bits;
} cpu_set_t;
#define CPU_ALLOC_SIZE(count) ((void)(count), sizeof(cpu_set_t))
#define CPU_COUNT_S(size, set) ((void)(size), __builtin_popcountll((set)->bits))
#define CPU_COUNT(set) __builtin_popcountll((set)->bits)
int sched_getaffinity(int process, size_t size, cpu_set_t *set);
int sched_setaffinity(int process, size_t size, const cpu_set_t *set);
enum { SYS_sched_getattr = 1, SYS_sched_setattr };
static inline int cleat_windows_syscall(int number, ...) {
    return -number;
}
#define syscall(...) cleat_windows_syscall(__VA_ARGS__)

/* --- resources --- */

enum { RUSAGE_SELF };
struct rusage {
    struct timeval ru_utime, ru_stime;
    long ru_maxrss; /* KiB */
};
int getrusage(int who, struct rusage *usage);
struct rlimit {
    uint64_t rlim_cur, rlim_max;
};
enum { RLIMIT_CORE, RLIMIT_MEMLOCK };
#define RLIM_INFINITY UINT64_MAX
#define getrlimit(kind, limit) ((void)(limit), -1)
#define setrlimit(kind, limit) ((void)(limit), -1)
enum { CLEAT_SC_PROCESSORS, CLEAT_SC_PAGE };
#undef _SC_PAGESIZE
#define _SC_NPROCESSORS_ONLN CLEAT_SC_PROCESSORS
#define _SC_PAGESIZE CLEAT_SC_PAGE
long sysconf(int name);

/* --- processes --- */

/* A pid_t is the handle of a process or thread. */
enum { WNOHANG = 1, POLLIN = 1 };
struct pollfd {
    int fd;
    short events, revents;
};
int poll(struct pollfd *files, unsigned count, int milliseconds); /* pipes, and the keyboard of a console */
#define pipe2(ends, flags) _pipe(ends, 1 << 16, _O_BINARY | _O_NOINHERIT)
int kill(pid_t process, int number); /* SIGINT: Ctrl-Break; else ends a process at once, and stops a thread: -1 */
pid_t waitpid(pid_t process, int *code, int flags);
#define getppid() 0
int setenv(const char *name, const char *value, int replace);
#define unsetenv(name) setenv(name, "", 1)
#define WIFEXITED(code) (!WIFSIGNALED(code))
#define WEXITSTATUS(code) (code)
#define WIFSIGNALED(code) ((unsigned)(code) >= 0xc0000000u) /* the number of an exception */
#define WTERMSIG(code) ((void)(code), SIGSEGV)
FILE *cleat_windows_popen(const char *command, const char *mode);
#undef popen
#undef pclose
#define popen(command, mode) cleat_windows_popen(command, mode)
#define pclose(pipe) _pclose(pipe)

#endif

/* What tests use of POSIX beyond src/engine/platform, for the build for Windows: CMake includes this before each of
 * their files. Commands go to the shell of the machine on which wine runs. */
#ifndef CLEAT_TESTS_WINDOWS_NAMES_H
#define CLEAT_TESTS_WINDOWS_NAMES_H

#include "platform/files.h"
#include "platform/processes.h"
#include "platform/system.h"
#include "platform/text.h"

#include <malloc.h>

/* --- the shell of the host --- */

int host_system(const char *command);
FILE *host_popen(const char *command, const char *mode); /* mode: "r" */
int host_pclose(FILE *file);
#define system(command) host_system(command)
#undef popen
#undef pclose
#define popen(command, mode) host_popen(command, mode)
#define pclose(file) host_pclose(file)

/* --- files --- */

int host_mkstemps(char *path, int ending); /* not in the runtime's text mode */
int host_symlink(const char *target, const char *path);
#define mkstemp(path) host_mkstemps(path, 0)
#define mkstemps(path, ending) host_mkstemps(path, ending)
#define symlink(target, path) host_symlink(target, path)
typedef unsigned uid_t;

/* --- processes: tests that need these are skipped, unless CLEAT_FORKS --- */

#define fork() (-1)
#define pipe(ends) pipe2(ends, 0)
#define pause() usleep(1000000)
#define SIGSTOP SIGKILL
#define SIGCONT SIGKILL
#define CPU_ISSET(cpu, set) CPU_ISSET_S(cpu, 8, set)
#define CPU_SET(cpu, set) CPU_SET_S(cpu, 8, set)
#define CPU_ZERO(set) CPU_ZERO_S(8, set)
#define CPU_OR(to, a, b) ((to)->bits = (a)->bits | (b)->bits)
#define CPU_EQUAL(a, b) ((a)->bits == (b)->bits)
#define CPU_SETSIZE 64

/* --- libraries: a program exports nothing, so the first library with a name is the next one --- */

#define RTLD_NEXT RTLD_DEFAULT
#define malloc_usable_size(memory) _msize(memory)

#endif

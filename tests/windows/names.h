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

/* Names for the linker's --wrap of functions of src/engine/platform. */
#define __real_rename __real_cleat_windows_rename
#define __wrap_rename __wrap_cleat_windows_rename
#define __wrap_fsync __wrap_cleat_windows_fsync
#define __real_mkdir __real_cleat_windows_mkdir
#define __wrap_mkdir __wrap_cleat_windows_mkdir
#define __real_unlink __real_cleat_windows_unlink
#define __wrap_unlink __wrap_cleat_windows_unlink
#define __real_unlinkat __real_cleat_windows_unlinkat
#define __wrap_unlinkat __wrap_cleat_windows_unlinkat

/* --- processes: tests that need these are skipped, unless CLEAT_FORKS --- */

#define fork() (-1)
#define pipe(ends) pipe2(ends, 0)
#define pause() usleep(1000000)
#define SIGSTOP SIGKILL
#define SIGCONT SIGKILL
#define CPU_ISSET(cpu, set) ((cpu) < 64 && ((set)->bits >> (cpu)&1))
#define CPU_SET(cpu, set) ((set)->bits |= UINT64_C(1) << (cpu))
#define CPU_ZERO(set) ((set)->bits = 0)
#define CPU_OR(to, a, b) ((to)->bits = (a)->bits | (b)->bits)
#define CPU_EQUAL(a, b) ((a)->bits == (b)->bits)
#define CPU_SETSIZE 64

/* --- libraries: a program exports nothing, so the first library with a name is the next one --- */

#define RTLD_NEXT RTLD_DEFAULT
#define malloc_usable_size(memory) _msize(memory)

#endif

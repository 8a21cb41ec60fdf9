/* What Windows lacks of POSIX for libraries, terminal, user and machine. */
#ifndef CLEAT_SRC_PLATFORM_WINDOWS_SYSTEM_H
#define CLEAT_SRC_PLATFORM_WINDOWS_SYSTEM_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* --- libraries --- */

enum { RTLD_LAZY = 0, RTLD_NOW = 0, RTLD_LOCAL = 0, RTLD_GLOBAL = 0, RTLD_DI_LINKMAP };
typedef struct Dl_info {
    const char *dli_fname; /* of this thread, until its next call */
    void *dli_fbase;
} Dl_info;
struct link_map {
    char *l_name;
};
struct dl_phdr_info {
    const char *dlpi_name;
};
void *dlopen(const char *path, int flags);
void *dlsym(void *library, const char *name);
int dlclose(void *library);
char *dlerror(void);
int dladdr(const void *address, Dl_info *info);
int dlinfo(void *library, int request, void *map); /* struct link_map ** */
int dl_iterate_phdr(int (*call)(struct dl_phdr_info *, size_t, void *), void *user);
#define RTLD_DEFAULT NULL /* all libraries */
#define getauxval(type) 0
#define AT_PHDR 0

/* --- terminal --- */

typedef unsigned tcflag_t;
struct termios {
    tcflag_t c_lflag, c_cflag;
};
struct winsize {
    unsigned short ws_col, ws_row;
};
enum { ICANON = 1, ECHO = 2, TCSANOW = 0, TIOCGWINSZ = 0 };
int tcgetattr(int file, struct termios *terminal);
int tcsetattr(int file, int when, const struct termios *terminal);
int ioctl(int file, int request, struct winsize *size);

/* --- machine and user --- */

struct utsname {
    char sysname[16], release[64], machine[16];
};
int uname(struct utsname *machine);
struct passwd {
    char *pw_name;
};
#define getuid() 0u
#define getpwuid(user) ((void)(user), (struct passwd *)NULL)
int cleat_windows_gethostname(char *name, int size);
#undef gethostname
#define gethostname(name, size) cleat_windows_gethostname(name, size)
#define getloadavg(loads, count) ((void)(loads), -1)

#endif

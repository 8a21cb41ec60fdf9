/* What Windows lacks of POSIX for files: UTF-8 paths of any length, open files that may be replaced and removed. */
#ifndef CLEAT_SRC_PLATFORM_WINDOWS_FILES_H
#define CLEAT_SRC_PLATFORM_WINDOWS_FILES_H

#include <fcntl.h>
#include <io.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/* Flags of open(2). */
#define O_CLOEXEC 0
#define O_NONBLOCK 0
#define O_NOFOLLOW 0x1000000
#define O_DIRECTORY 0x2000000
#define AT_REMOVEDIR 1

/* Text files are read and written as they are: no open file translates its ends of lines. */
int cleat_windows_open(const char *path, int flags, ...);
int cleat_windows_openat(int folder, const char *name, int flags);
FILE *cleat_windows_fopen(const char *path, const char *mode);
int cleat_windows_access(const char *path, int mode);
int cleat_windows_unlink(const char *path);
int cleat_windows_unlinkat(int folder, const char *name, int flags);
int cleat_windows_rename(const char *from, const char *to); /* replaces a file, an open one too */
int cleat_windows_mkdir(const char *path, unsigned mode);
/* Just emptied: other file systems than NTFS list a removed file until others have closed it. */
int cleat_windows_rmdir(const char *path, bool emptied);
int cleat_windows_ftruncate(int file, int64_t bytes);
int cleat_windows_fsync(int file);
/* The runtime takes no 2 GiB at once, and 4 GiB for nothing. */
static inline unsigned cleat_windows_part(size_t size) {
    return size < (1u << 25) ? (unsigned)size : 1u << 25;
}
ssize_t cleat_windows_pread(int file, void *bytes, size_t size, int64_t offset);
char *cleat_windows_realpath(const char *path, char *real); /* with slashes; the caller frees it if real is NULL */
char *cleat_windows_mkdtemp(char *path);
ssize_t cleat_windows_getrandom(void *bytes, size_t size, unsigned flags);
#define open(...) cleat_windows_open(__VA_ARGS__)
#define openat(folder, name, flags) cleat_windows_openat(folder, name, flags)
#define fopen(path, mode) cleat_windows_fopen(path, mode)
#define access(path, mode) cleat_windows_access(path, mode)
#define unlink(path) cleat_windows_unlink(path)
#define remove(path) cleat_windows_unlink(path)
#define unlinkat(folder, name, flags) cleat_windows_unlinkat(folder, name, flags)
#define rename(from, to) cleat_windows_rename(from, to)
#define mkdir(path, mode) cleat_windows_mkdir(path, mode)
#define rmdir(path) cleat_windows_rmdir(path, false)
#undef ftruncate
#define ftruncate(file, bytes) cleat_windows_ftruncate(file, bytes)
#define fsync(file) cleat_windows_fsync(file)
#define read(file, bytes, size) read(file, bytes, cleat_windows_part(size))
#define write(file, bytes, size) write(file, bytes, cleat_windows_part(size))
#define pread(file, bytes, size, offset) cleat_windows_pread(file, bytes, size, offset)
#define realpath(path, real) cleat_windows_realpath(path, real)
#define readlink(path, target, size) ((void)(path), (void)(target), -1)
#define mkdtemp(path) cleat_windows_mkdtemp(path)
#define getrandom(bytes, size, flags) cleat_windows_getrandom(bytes, size, flags)

/* In UTF-8, with slashes where a variable is a path of POSIX: XDG_CACHE_HOME is LOCALAPPDATA, HOME is USERPROFILE,
 * TMPDIR is TEMP, unless they are set. */
char *cleat_windows_getenv(const char *name);
#undef getenv
#define getenv(name) cleat_windows_getenv(name)

/* Also of what Windows alone refuses: ETXTBSY: another program has the file open; ENXIO: not a name of a file; EPERM: a
 * protected folder, of which the system says "file not found" to a program that creates a file there. */
const char *cleat_windows_strerror(int number);
#define strerror(number) cleat_windows_strerror(number)

/* --- facts --- */

struct cleat_windows_stat {
    unsigned st_mode, st_nlink, st_dev, st_uid, st_gid;
    uint64_t st_ino;
    int64_t st_size, st_mtime;
};
int cleat_windows_stat(const char *path, struct cleat_windows_stat *about);
int cleat_windows_lstat(const char *path, struct cleat_windows_stat *about);
int cleat_windows_fstat(int file, struct cleat_windows_stat *about);
#undef stat
#undef fstat
#define stat cleat_windows_stat
#define lstat(path, about) cleat_windows_lstat(path, about)
#define fstat(file, about) cleat_windows_fstat(file, about)
#undef S_IFMT
#define S_IFMT 0xf000
#define S_IFLNK 0xa000
#undef S_ISLNK
#undef S_ISREG
#undef S_ISDIR
#define S_ISREG(mode) (((mode)&S_IFMT) == 0x8000)
#define S_ISDIR(mode) (((mode)&S_IFMT) == 0x4000)
#define S_ISLNK(mode) (((mode)&S_IFMT) == S_IFLNK)
typedef unsigned gid_t;
#define geteuid() 0u
#define getegid() 0u
#define getgroups(most, groups) ((void)(groups), 0)

struct statvfs {
    uint64_t f_bavail, f_frsize;
};
int statvfs(const char *path, struct statvfs *about);

/* --- folders --- */

struct dirent {
    char d_name[4 * 260];
};
typedef struct cleat_windows_folder DIR;
DIR *opendir(const char *path);
DIR *fdopendir(int folder); /* takes the descriptor */
struct dirent *readdir(DIR *folder);
int closedir(DIR *folder);

#define F_GETFD 0
#define F_SETFD 0
#define fcntl(...) 0 /* descriptors are not inherited */

int fnmatch(const char *pattern, const char *name, int flags); /* `*` and `?` */

/* --- locks; memory is not mapped --- */

enum { PROT_READ, PROT_WRITE, MAP_SHARED, MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE, MADV_DONTNEED, MFD_CLOEXEC };
#define MAP_FAILED ((void *)-1)
static inline int cleat_windows_no_map(const void *at, ...) {
    (void)at;
    return -1;
}
#define mmap(...) ((void *)(intptr_t)cleat_windows_no_map(__VA_ARGS__))
#define munmap cleat_windows_no_map
#define madvise cleat_windows_no_map
#define memfd_create cleat_windows_no_map
enum { LOCK_SH = 1, LOCK_EX = 2, LOCK_NB = 4 };
int flock(int file, int operation);

#endif

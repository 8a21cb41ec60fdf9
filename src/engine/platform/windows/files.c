/* Files by the names of POSIX. Every file is opened with all kinds of sharing, so that it may be replaced, removed and
 * read by others while it is open. */
#include "platform/files.h"

#include "platform/windows/internal.h"

#include <bcrypt.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

/* --- paths ---------------------------------------------------------------------------------------------------- */

int cleat_windows_fail(void) {
    static const struct {
        int number;
        DWORD system[4]; /* 0: no more */
    } rows[] = {
        {ENOENT, {ERROR_FILE_NOT_FOUND, ERROR_PATH_NOT_FOUND, ERROR_BAD_NETPATH, ERROR_BAD_NET_NAME}},
        {ENXIO, {ERROR_INVALID_NAME}},
        {ETXTBSY, {ERROR_SHARING_VIOLATION, ERROR_USER_MAPPED_FILE}},
        {EACCES, {ERROR_ACCESS_DENIED, ERROR_WRITE_PROTECT, ERROR_NETWORK_ACCESS_DENIED}},
        {EEXIST, {ERROR_FILE_EXISTS, ERROR_ALREADY_EXISTS}},
        {ENOTEMPTY, {ERROR_DIR_NOT_EMPTY}},
        {ENOTDIR, {ERROR_DIRECTORY}},
        {ENOSPC, {ERROR_DISK_FULL, ERROR_HANDLE_DISK_FULL}},
        {ENOMEM, {ERROR_NOT_ENOUGH_MEMORY, ERROR_OUTOFMEMORY}},
        {EWOULDBLOCK, {ERROR_LOCK_VIOLATION}},
        {ENAMETOOLONG, {ERROR_FILENAME_EXCED_RANGE}},
        {EBADF, {ERROR_INVALID_HANDLE}},
        {EINVAL, {ERROR_NOT_SUPPORTED, ERROR_INVALID_FUNCTION}},
    };
    const DWORD why = GetLastError();
    errno = EIO;
    for (size_t i = 0; why && i < sizeof rows / sizeof *rows; ++i)
        for (size_t k = 0; k < 4; ++k)
            if (rows[i].system[k] == why) errno = rows[i].number;
    return -1;
}

const char *cleat_windows_strerror(int number) {
    if (number == ETXTBSY) return "another program has it open; close it there";
    if (number == EPERM)
        return "Windows protects this folder (\"Controlled folder access\"); allow cleat there, or choose another";
    return number == ENXIO ? "Windows does not take this name; choose another" : (strerror)(number);
}

/* Windows would write to a device (nul, aux.csv), hide the data behind another file (results:1.csv), or look for them
 * under another name (a dot or blank at the end). */
static bool is_name(const wchar_t *wide, const wchar_t *whole) {
    const wchar_t *colon = wcsrchr(wide, L':');
    bool good = wcsncmp(whole, L"\\\\.\\", 4) != 0 && (!colon || colon == wide + 1);
    for (size_t length; *wide && good; wide += length + (wide[length] != 0)) {
        length = wcscspn(wide, L"\\");
        good = length == wcsspn(wide, L".") || (wide[length - 1] != L'.' && wide[length - 1] != L' ');
    }
    return good;
}

bool cleat_windows_wide(const char *path, wchar_t wide[CLEAT_WIDE]) {
    enum { LIMIT = 240, PREFIX = 8 };
    if (strcmp(path, "/dev/null") == 0) return wcscpy(wide, L"NUL");
    /* Without a drive, these are not folders of the current one. */
    if (strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/sys/", 5) == 0 || strncmp(path, "/etc/", 5) == 0)
        return errno = ENOENT, false;
    if (!MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, CLEAT_WIDE)) {
        errno = GetLastError() == ERROR_INSUFFICIENT_BUFFER ? ENAMETOOLONG : EILSEQ;
        return false;
    }
    for (wchar_t *at = wide; *at; ++at)
        if (*at == L'/') *at = L'\\';
    wchar_t whole[CLEAT_WIDE - PREFIX];
    const DWORD length = GetFullPathNameW(wide, CLEAT_WIDE - PREFIX, whole, NULL);
    if (length >= CLEAT_WIDE - PREFIX || (length > 0 && !is_name(wide, whole))) {
        errno = length >= CLEAT_WIDE - PREFIX ? ENAMETOOLONG : ENXIO;
        return false;
    }
    if (length < LIMIT || wcsncmp(whole, L"\\\\?\\", 4) == 0) return true;
    const bool remote = wcsncmp(whole, L"\\\\", 2) == 0;
    wcscpy(wide, remote ? L"\\\\?\\UNC" : L"\\\\?\\");
    wcscat(wide, whole + (remote ? 1 : 0));
    return true;
}

bool cleat_windows_narrow(const wchar_t *wide, char *text, size_t size) {
    if (WideCharToMultiByte(CP_UTF8, 0, wide, -1, text, (int)size, NULL, NULL) > 0) return true;
    text[0] = 0; /* what is too long may have been written in part */
    return false;
}

static void replace(char *path, char from, char to) {
    while ((path = strchr(path, from))) *path = to;
}

void cleat_path_from_user(char *path) {
    const bool prefixed = strncmp(path, "\\\\?\\", 4) == 0, remote = strncmp(path, "\\\\?\\UNC\\", 8) == 0;
    if (remote || (prefixed && path[4] && path[5] == ':')) /* a volume without a drive keeps it */
        memmove(path + (remote ? 1 : 0), path + (remote ? 7 : 4), strlen(path) - (remote ? 6 : 3));
    replace(path, '\\', '/');
}

void cleat_path_for_user(char *path) {
    replace(path, '/', '\\');
}

/* Puts the drive before a path in place of its device, as the mount manager does where it knows the device. */
static bool name_drive(wchar_t wide[CLEAT_WIDE]) {
    wchar_t device[MAX_PATH];
    for (wchar_t drive[] = L"A:"; drive[0] <= L'Z'; ++drive[0]) {
        const size_t length = QueryDosDeviceW(drive, device, MAX_PATH) ? wcslen(device) : 0;
        if (length < 2 || wcsncmp(wide, device, length) != 0 || wide[length] != L'\\') continue;
        memmove(wide + 2, wide + length, (wcslen(wide + length) + 1) * sizeof *wide);
        memcpy(wide, drive, 2 * sizeof *wide);
        return true;
    }
    return false;
}

/* The path of an open file or folder, with slashes. Of network drives it is as it was opened where the user may not
 * look into each folder above; the mount manager does not know the drives of some RAM disks. */
static bool path_of(HANDLE handle, char *path, size_t size) {
    wchar_t wide[CLEAT_WIDE];
    static const DWORD ways[3] = {VOLUME_NAME_DOS, VOLUME_NAME_DOS | FILE_NAME_OPENED,
                                  VOLUME_NAME_NT | FILE_NAME_OPENED};
    DWORD length = 0;
    int tried = 0;
    while (length == 0 && tried < 3) length = GetFinalPathNameByHandleW(handle, wide, CLEAT_WIDE, ways[tried++]);
    if (length == 0 || length >= CLEAT_WIDE || (tried == 3 && !name_drive(wide))) return false;
    if (!cleat_windows_narrow(wide, path, size)) return false;
    cleat_path_from_user(path);
    return true;
}

/* FOLDER/NAME of an open folder. */
static bool path_in(int folder, const char *name, char path[CLEAT_WIDE]) {
    if (!path_of((HANDLE)_get_osfhandle(folder), path, CLEAT_WIDE)) return cleat_windows_fail() == 0;
    const size_t length = strlen(path);
    if ((size_t)snprintf(path + length, CLEAT_WIDE - length, "/%s", name) < CLEAT_WIDE - length) return true;
    errno = ENAMETOOLONG;
    return false;
}

/* What getenv returned stays: each value is kept, once. */
static char *keep(const char *value) {
    static struct kept {
        struct kept *next;
        char text[];
    } * all;
    static SRWLOCK lock = SRWLOCK_INIT;
    AcquireSRWLockExclusive(&lock);
    struct kept *found = all;
    while (found && strcmp(found->text, value) != 0) found = found->next;
    if (!found && (found = malloc(sizeof *found + strlen(value) + 1))) {
        strcpy(found->text, value);
        found->next = all;
        all = found;
    }
    ReleaseSRWLockExclusive(&lock);
    return found ? found->text : NULL;
}

/* In UTF-8; NULL: there is none. Not _wgetenv, which has lost what the system's code page lacks. */
static char *read_variable(const char *name, bool is_path) {
    wchar_t wide[256], value[CLEAT_WIDE];
    char text[3 * CLEAT_WIDE];
    if (!MultiByteToWideChar(CP_UTF8, 0, name, -1, wide, 256)) return NULL;
    const DWORD length = GetEnvironmentVariableW(wide, value, CLEAT_WIDE);
    if (length == 0 || length >= CLEAT_WIDE || !cleat_windows_narrow(value, text, sizeof text)) return NULL;
    if (is_path) cleat_path_from_user(text);
    return keep(text);
}

char *cleat_windows_getenv(const char *name) {
    static const char *const paths[][2] = {
        {"XDG_CACHE_HOME", "LOCALAPPDATA"}, {"HOME", "USERPROFILE"}, {"TMPDIR", "TEMP"}};
    char *value = read_variable(name, false);
    for (size_t i = 0; !value && i < sizeof paths / sizeof *paths; ++i)
        if (strcmp(name, paths[i][0]) == 0) value = read_variable(paths[i][1], true);
    return value;
}

/* --- opening -------------------------------------------------------------------------------------------------- */

enum { SHARE_ALL = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE };

/* Another program (a virus scanner) may hold a file for a moment, which other calls see as the error `also`. `most`
 * attempts: 50 are 2 s, 200 are 10 s. */
static bool is_passing(int attempt, int most, DWORD also) {
    const DWORD why = GetLastError();
    if (attempt >= most || (why != ERROR_SHARING_VIOLATION && why != also)) return false;
    Sleep(attempt < 10 ? 5 : 50);
    SetLastError(why);
    return true;
}

static HANDLE open_handle(const char *path, DWORD access, DWORD creation, DWORD flags) {
    wchar_t wide[CLEAT_WIDE];
    if (!cleat_windows_wide(path, wide)) return SetLastError(ERROR_INVALID_NAME), INVALID_HANDLE_VALUE;
    for (int attempt = 0;; ++attempt) {
        const HANDLE handle = CreateFileW(wide, access, SHARE_ALL, NULL, creation, flags, NULL);
        if (handle != INVALID_HANDLE_VALUE) return handle;
        if (!is_passing(attempt, 50, ERROR_SHARING_VIOLATION)) return cleat_windows_fail(), handle;
    }
}

static bool is_link(HANDLE handle) {
    FILE_ATTRIBUTE_TAG_INFO about;
    return GetFileInformationByHandleEx(handle, FileAttributeTagInfo, &about, sizeof about) &&
           (about.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) &&
           (about.ReparseTag == IO_REPARSE_TAG_SYMLINK || about.ReparseTag == IO_REPARSE_TAG_MOUNT_POINT);
}

int cleat_windows_open(const char *path, int flags, ...) {
    const int kind = flags & (_O_RDONLY | _O_WRONLY | _O_RDWR);
    const bool folder = flags & O_DIRECTORY;
    DWORD access = kind == _O_WRONLY ? GENERIC_WRITE : kind == _O_RDWR ? GENERIC_READ | GENERIC_WRITE : GENERIC_READ;
    DWORD how = FILE_ATTRIBUTE_NORMAL, creation = OPEN_EXISTING;
    if (folder || kind == _O_RDONLY) how = FILE_FLAG_BACKUP_SEMANTICS; /* as POSIX does, opens a folder too */
    if (flags & _O_CREAT)
        creation = flags & _O_EXCL ? CREATE_NEW : flags & _O_TRUNC ? CREATE_ALWAYS : OPEN_ALWAYS;
    else if (flags & _O_TRUNC)
        creation = TRUNCATE_EXISTING;
    /* Opened as a reparse point, a file lacks what OneDrive or deduplication keep elsewhere. */
    struct stat about;
    if ((flags & O_NOFOLLOW) && lstat(path, &about) == 0 && S_ISLNK(about.st_mode)) return errno = ELOOP, -1;
    const HANDLE handle = open_handle(path, access, creation, how);
    if (handle == INVALID_HANDLE_VALUE && (flags & _O_CREAT) && GetLastError() == ERROR_FILE_NOT_FOUND) errno = EPERM;
    if (handle == INVALID_HANDLE_VALUE) return errno == ENOENT ? cleat_windows_open_system(path) : -1;
    if (flags & _O_APPEND) SetFilePointer(handle, 0, NULL, FILE_END); /* for programs that inherit it */
    const int file = _open_osfhandle((intptr_t)handle, (flags & (_O_APPEND | _O_RDWR | _O_WRONLY)) | _O_BINARY);
    if (file < 0) CloseHandle(handle);
    return file;
}

int cleat_windows_openat(int folder, const char *name, int flags) {
    char path[CLEAT_WIDE];
    return path_in(folder, name, path) ? cleat_windows_open(path, flags) : -1;
}

/* "r", "w" or "a", with '+', 'x' (new files only), and letters that mean nothing here. */
FILE *cleat_windows_fopen(const char *path, const char *mode) {
    const bool both = strchr(mode, '+');
    int flags = both ? _O_RDWR : mode[0] == 'r' ? _O_RDONLY : _O_WRONLY;
    if (mode[0] != 'r') flags |= _O_CREAT | (mode[0] == 'a' ? _O_APPEND : strchr(mode, 'x') ? _O_EXCL : _O_TRUNC);
    const char plain[] = {mode[0], 'b', both ? '+' : 0, 0};
    const int file = cleat_windows_open(path, flags);
    FILE *stream = file < 0 ? NULL : _fdopen(file, plain);
    if (file >= 0 && !stream) close(file);
    return stream;
}

/* --- facts ---------------------------------------------------------------------------------------------------- */

static int facts_of(HANDLE handle, struct cleat_windows_stat *about) {
    BY_HANDLE_FILE_INFORMATION found;
    *about = (struct cleat_windows_stat){.st_nlink = 1};
    if (GetFileType(handle) != FILE_TYPE_DISK) {
        about->st_mode = GetFileType(handle) == FILE_TYPE_PIPE ? 0x1000 : 0x2000;
        return 0;
    }
    if (!GetFileInformationByHandle(handle, &found)) return cleat_windows_fail();
    const bool folder = found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY;
    const uint64_t ticks = (uint64_t)found.ftLastWriteTime.dwHighDateTime << 32 | found.ftLastWriteTime.dwLowDateTime;
    const unsigned rights = found.dwFileAttributes & FILE_ATTRIBUTE_READONLY ? 0444u : 0644u;
    about->st_mode = rights | (is_link(handle) ? S_IFLNK : folder ? 0x4000u : 0x8000u);
    about->st_nlink = found.nNumberOfLinks;
    about->st_dev = found.dwVolumeSerialNumber;
    about->st_ino = (uint64_t)found.nFileIndexHigh << 32 | found.nFileIndexLow;
    about->st_size = (int64_t)((uint64_t)found.nFileSizeHigh << 32 | found.nFileSizeLow);
    about->st_mtime = (int64_t)(ticks / 10000000) - 11644473600; /* from 100 ns since 1601 */
    return 0;
}

static int facts_at(const char *path, DWORD flags, struct cleat_windows_stat *about) {
    const HANDLE handle = open_handle(path, FILE_READ_ATTRIBUTES, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS | flags);
    if (handle == INVALID_HANDLE_VALUE) return -1;
    const int failed = facts_of(handle, about);
    CloseHandle(handle);
    return failed;
}

int cleat_windows_stat(const char *path, struct cleat_windows_stat *about) {
    return facts_at(path, 0, about);
}

int cleat_windows_lstat(const char *path, struct cleat_windows_stat *about) {
    return facts_at(path, FILE_FLAG_OPEN_REPARSE_POINT, about);
}

int cleat_windows_fstat(int file, struct cleat_windows_stat *about) {
    return facts_of((HANDLE)_get_osfhandle(file), about);
}

/* Programs are not told apart from other files; nor are the rights of users. */
int cleat_windows_access(const char *path, int mode) {
    wchar_t wide[CLEAT_WIDE];
    if (!cleat_windows_wide(path, wide)) return -1;
    const DWORD found = GetFileAttributesW(wide);
    if (found == INVALID_FILE_ATTRIBUTES) return cleat_windows_fail();
    if (!(mode & W_OK) || (found & FILE_ATTRIBUTE_DIRECTORY) || !(found & FILE_ATTRIBUTE_READONLY)) return 0;
    errno = EACCES;
    return -1;
}

int statvfs(const char *path, struct statvfs *about) {
    wchar_t wide[CLEAT_WIDE + 1];
    ULARGE_INTEGER bytes;
    if (!cleat_windows_wide(path, wide)) return -1;
    if (!GetDiskFreeSpaceExW(wcscat(wide, L"\\"), &bytes, NULL, NULL)) return cleat_windows_fail();
    *about = (struct statvfs){.f_bavail = bytes.QuadPart, .f_frsize = 1};
    return 0;
}

char *cleat_windows_realpath(const char *path, char *real) {
    char found[CLEAT_WIDE];
    const HANDLE handle = open_handle(path, FILE_READ_ATTRIBUTES, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS);
    if (handle == INVALID_HANDLE_VALUE) return NULL;
    const bool is_known = path_of(handle, found, sizeof found);
    CloseHandle(handle);
    if (!is_known) return cleat_windows_fail(), NULL;
    if (!real) return _strdup(found);
    if (strlen(found) >= PATH_MAX) return errno = ENAMETOOLONG, NULL;
    return strcpy(real, found);
}

/* --- changes -------------------------------------------------------------------------------------------------- */

int cleat_windows_unlink(const char *path) {
    wchar_t wide[CLEAT_WIDE];
    if (!cleat_windows_wide(path, wide)) return -1;
    const DWORD found = GetFileAttributesW(wide);
    if (found != INVALID_FILE_ATTRIBUTES && (found & FILE_ATTRIBUTE_DIRECTORY)) {
        if (found & FILE_ATTRIBUTE_REPARSE_POINT) return RemoveDirectoryW(wide) ? 0 : cleat_windows_fail();
        return errno = EISDIR, -1;
    }
    if (found != INVALID_FILE_ATTRIBUTES && (found & FILE_ATTRIBUTE_READONLY))
        SetFileAttributesW(wide, FILE_ATTRIBUTE_NORMAL);
    for (int attempt = 0;; ++attempt) {
        if (DeleteFileW(wide)) return 0;
        if (!is_passing(attempt, 50, ERROR_ACCESS_DENIED)) return cleat_windows_fail();
    }
}

int cleat_windows_rmdir(const char *path, bool emptied) {
    wchar_t wide[CLEAT_WIDE];
    if (!cleat_windows_wide(path, wide)) return -1;
    for (int attempt = 0;; ++attempt) {
        if (RemoveDirectoryW(wide)) return 0;
        if (!is_passing(attempt, 50, emptied ? ERROR_DIR_NOT_EMPTY : ERROR_ACCESS_DENIED)) return cleat_windows_fail();
    }
}

int cleat_windows_unlinkat(int folder, const char *name, int flags) {
    char path[CLEAT_WIDE];
    if (!path_in(folder, name, path)) return -1;
    return flags & AT_REMOVEDIR ? cleat_windows_rmdir(path, true) : cleat_windows_unlink(path);
}

/* Replaces also a file that others have open, if they allow its removal; by NTFS since Windows 10. The new name is on
 * the disk when this returns. */
static bool rename_open(const wchar_t *from, const wchar_t *to) {
    enum { RENAME_INFO_EX = 22, REPLACE = 1, POSIX_SEMANTICS = 2, IGNORE_READONLY = 64 };
    union {
        FILE_RENAME_INFO info;
        char room[sizeof(FILE_RENAME_INFO) + CLEAT_WIDE * sizeof(wchar_t)];
    } name = {.info.FileNameLength = (DWORD)(wcslen(to) * sizeof *to)};
    const HANDLE file =
        CreateFileW(from, DELETE | SYNCHRONIZE, SHARE_ALL, NULL, OPEN_EXISTING,
                    FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT | FILE_FLAG_WRITE_THROUGH, NULL);
    *(DWORD *)&name.info = REPLACE | POSIX_SEMANTICS | IGNORE_READONLY;
    memcpy(name.info.FileName, to, name.info.FileNameLength);
    const bool done = file != INVALID_HANDLE_VALUE &&
                      SetFileInformationByHandle(file, (FILE_INFO_BY_HANDLE_CLASS)RENAME_INFO_EX, &name, sizeof name);
    if (file != INVALID_HANDLE_VALUE) CloseHandle(file);
    return done;
}

int cleat_windows_rename(const char *from, const char *to) {
    wchar_t wide_from[CLEAT_WIDE], wide_to[CLEAT_WIDE];
    if (!cleat_windows_wide(from, wide_from) || !cleat_windows_wide(to, wide_to)) return -1;
    const DWORD found = GetFileAttributesW(wide_to);
    if (found != INVALID_FILE_ATTRIBUTES && (found & FILE_ATTRIBUTE_DIRECTORY)) return errno = EISDIR, -1;
    for (int attempt = 0;; ++attempt) {
        if (rename_open(wide_from, wide_to)) return 0;
        if (MoveFileExW(wide_from, wide_to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH)) return 0;
        if (!is_passing(attempt, 200, ERROR_ACCESS_DENIED)) break;
    }
    cleat_windows_fail();
    const HANDLE alone = CreateFileW(wide_to, DELETE, 0, NULL, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (alone == INVALID_HANDLE_VALUE && GetLastError() == ERROR_SHARING_VIOLATION) errno = ETXTBSY;
    if (alone != INVALID_HANDLE_VALUE) CloseHandle(alone);
    return -1;
}

int cleat_windows_mkdir(const char *path, unsigned mode) {
    wchar_t wide[CLEAT_WIDE];
    (void)mode;
    if (strncmp(path, "//", 2) == 0 && !strchr(path + 2, '/')) return 0; /* a server, on the way to its folders */
    if (!cleat_windows_wide(path, wide)) return -1;
    if (CreateDirectoryW(wide, NULL)) return 0;
    cleat_windows_fail();
    if (GetLastError() == ERROR_FILE_NOT_FOUND) errno = EPERM;
    const DWORD found = GetFileAttributesW(wide); /* of C:/ and of a share "access denied" is said */
    if (found != INVALID_FILE_ATTRIBUTES && (found & FILE_ATTRIBUTE_DIRECTORY)) errno = EEXIST;
    return -1;
}

char *cleat_windows_mkdtemp(char *path) {
    do {
        unsigned number = 0;
        cleat_windows_getrandom(&number, sizeof number, 0);
        snprintf(path + strlen(path) - 6, 7, "%06x", number >> 8); /* of XXXXXX */
        if (cleat_windows_mkdir(path, 0700) == 0) return path;
    } while (errno == EEXIST);
    return NULL;
}

ssize_t cleat_windows_getrandom(void *bytes, size_t size, unsigned flags) {
    (void)flags;
    if (BCryptGenRandom(NULL, bytes, (ULONG)size, BCRYPT_USE_SYSTEM_PREFERRED_RNG) == 0) return (ssize_t)size;
    errno = EIO;
    return -1;
}

int cleat_windows_ftruncate(int file, int64_t bytes) {
    FILE_END_OF_FILE_INFO end = {.EndOfFile.QuadPart = bytes};
    const HANDLE handle = (HANDLE)_get_osfhandle(file);
    return SetFileInformationByHandle(handle, FileEndOfFileInfo, &end, sizeof end) ? 0 : cleat_windows_fail();
}

/* Of a folder nothing can be synced, nor need be: NTFS keeps the order of its changes. */
int cleat_windows_fsync(int file) {
    struct cleat_windows_stat about;
    if (cleat_windows_fstat(file, &about) == 0 && S_ISDIR(about.st_mode)) return 0;
    return FlushFileBuffers((HANDLE)_get_osfhandle(file)) ? 0 : cleat_windows_fail();
}

ssize_t cleat_windows_pread(int file, void *bytes, size_t size, int64_t offset) {
    OVERLAPPED at = {.Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32)};
    DWORD got = 0;
    if (ReadFile((HANDLE)_get_osfhandle(file), bytes, cleat_windows_part(size), &got, &at) ||
        GetLastError() == ERROR_HANDLE_EOF)
        return (ssize_t)got;
    return cleat_windows_fail();
}

/* A byte far behind the end, because others could not read what is locked. */
int flock(int file, int operation) {
    OVERLAPPED at = {.OffsetHigh = 0x7fffffff};
    const DWORD how =
        (operation & LOCK_EX ? LOCKFILE_EXCLUSIVE_LOCK : 0) | (operation & LOCK_NB ? LOCKFILE_FAIL_IMMEDIATELY : 0);
    return LockFileEx((HANDLE)_get_osfhandle(file), how, 0, 1, 0, &at) ? 0 : cleat_windows_fail();
}

/* --- folders -------------------------------------------------------------------------------------------------- */

struct cleat_windows_folder {
    HANDLE search;
    WIN32_FIND_DATAW found;
    bool is_first;
    int file; /* to close; -1: none */
    struct dirent entry;
};

DIR *opendir(const char *path) {
    wchar_t wide[CLEAT_WIDE + 2];
    DIR *made = calloc(1, sizeof *made);
    if (!*path) errno = ENOENT;
    if (!made || !*path || !cleat_windows_wide(path, wide)) return free(made), NULL;
    const size_t length = wcslen(wide);
    wcscpy(wide + length, wide[length - 1] == L'\\' ? L"*" : L"\\*");
    made->search = FindFirstFileW(wide, &made->found);
    made->is_first = made->search != INVALID_HANDLE_VALUE;
    made->file = -1;
    if (made->is_first || GetLastError() == ERROR_FILE_NOT_FOUND) return made; /* an empty drive has not even "." */
    cleat_windows_fail();
    free(made);
    return NULL;
}

DIR *fdopendir(int folder) {
    char path[CLEAT_WIDE];
    if (!path_of((HANDLE)_get_osfhandle(folder), path, sizeof path)) return cleat_windows_fail(), NULL;
    DIR *made = opendir(path);
    if (made) made->file = folder;
    return made;
}

struct dirent *readdir(DIR *folder) {
    if (!folder->is_first && !FindNextFileW(folder->search, &folder->found)) {
        if (GetLastError() != ERROR_NO_MORE_FILES && folder->search != INVALID_HANDLE_VALUE) cleat_windows_fail();
        return NULL;
    }
    folder->is_first = false;
    cleat_windows_narrow(folder->found.cFileName, folder->entry.d_name, sizeof folder->entry.d_name);
    return &folder->entry;
}

int closedir(DIR *folder) {
    FindClose(folder->search);
    if (folder->file >= 0) close(folder->file);
    free(folder);
    return 0;
}

int fnmatch(const char *pattern, const char *name, int flags) {
    if (*pattern == '*')
        return fnmatch(pattern + 1, name, flags) != 0 && (!*name || fnmatch(pattern, name + 1, flags) != 0);
    if (!*pattern || !*name) return *pattern != *name;
    return (*pattern != '?' && *pattern != *name) || fnmatch(pattern + 1, name + 1, flags) != 0;
}

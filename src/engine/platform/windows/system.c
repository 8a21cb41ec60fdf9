/* Libraries, machine and texts by the names of POSIX. */
#include "platform/system.h"

#include "platform/files.h"
#include "platform/windows/internal.h"
#include "platform/windows/text.h"

#include <delayimp.h>
#include <errno.h>
#include <psapi.h>
#include <stdio.h>

/* --- libraries ------------------------------------------------------------------------------------------------ */

static _Thread_local char module_path[CLEAT_WIDE];
static _Thread_local DWORD failure;

static const char *path_of_module(HMODULE module) {
    wchar_t wide[CLEAT_WIDE];
    const DWORD length = GetModuleFileNameW(module, wide, CLEAT_WIDE);
    if (length == 0 || length >= CLEAT_WIDE || !cleat_windows_narrow(wide, module_path, sizeof module_path))
        return NULL;
    cleat_path_from_user(module_path);
    return module_path;
}

enum { MODULES = 512 };

static size_t find_modules(HMODULE modules[MODULES]) {
    DWORD bytes = 0;
    if (!EnumProcessModules(GetCurrentProcess(), modules, MODULES * sizeof *modules, &bytes)) return 0;
    return bytes / sizeof *modules < MODULES ? bytes / sizeof *modules : MODULES;
}

/* A name without a folder is not searched in the current one. */
void *dlopen(const char *path, int flags) {
    wchar_t wide[CLEAT_WIDE];
    (void)flags;
    if (!path) return GetModuleHandleW(NULL);
    if (strcmp(path, "libnvidia-ml.so.1") == 0) path = "nvml.dll";
    if (!cleat_windows_wide(path, wide)) return NULL;
    const DWORD how = wcschr(wide, L'\\') ? LOAD_WITH_ALTERED_SEARCH_PATH : LOAD_LIBRARY_SEARCH_DEFAULT_DIRS;
    const HMODULE library = LoadLibraryExW(wide, NULL, how);
    if (!library) failure = GetLastError();
    return library;
}

/* OpenCL.dll is loaded at the first call, which raises an exception if it is missing. Here every call fails then. */
static int fail_call(void) {
    return -1001; /* CL_PLATFORM_NOT_FOUND_KHR */
}

static FARPROC WINAPI replace_missing(unsigned event, DelayLoadInfo *about) {
    (void)event, (void)about;
    return (FARPROC)(void *)fail_call;
}

/* Not in the current folder, nor in PATH, where the helper would look if this function returned NULL. */
static FARPROC WINAPI load_safely(unsigned event, DelayLoadInfo *about) {
    if (event != dliNotePreLoadLibrary) return NULL;
    const HMODULE found = LoadLibraryExA(about->szDll, NULL, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
    return (FARPROC)(void *)(found ? found : GetModuleHandleW(NULL));
}

__attribute__((constructor)) static void stand_in_for_missing(void) {
    __pfnDliNotifyHook2 = load_safely;
    __pfnDliFailureHook2 = replace_missing;
}

void *dlsym(void *library, const char *name) {
    union {
        FARPROC function;
        void *address;
    } found = {.function = library ? GetProcAddress(library, name) : NULL};
    HMODULE modules[MODULES];
    const size_t count = library ? 0 : find_modules(modules);
    for (size_t i = 0; i < count && !found.function; ++i) found.function = GetProcAddress(modules[i], name);
    if (!found.function) failure = GetLastError();
    return found.address;
}

int dlclose(void *library) {
    return FreeLibrary(library) ? 0 : -1;
}

char *dlerror(void) {
    static _Thread_local char text[512];
    wchar_t wide[256];
    if (!failure) return NULL;
    const DWORD length = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL, failure, 0,
                                        wide, sizeof wide / sizeof *wide, NULL);
    if (length == 0 || !cleat_windows_narrow(wide, text, sizeof text))
        snprintf(text, sizeof text, "error %lu", (unsigned long)failure);
    text[strcspn(text, "\r\n")] = 0;
    failure = 0;
    return text;
}

int dladdr(const void *address, Dl_info *info) {
    HMODULE module;
    const DWORD how = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    if (!GetModuleHandleExW(how, address, &module)) return 0;
    *info = (Dl_info){.dli_fname = path_of_module(module), .dli_fbase = module};
    return info->dli_fname != NULL;
}

int dlinfo(void *library, int request, void *map) {
    static _Thread_local struct link_map found;
    (void)request;
    found.l_name = (char *)path_of_module(library);
    *(struct link_map **)map = &found;
    return found.l_name ? 0 : -1;
}

int dl_iterate_phdr(int (*call)(struct dl_phdr_info *, size_t, void *), void *user) {
    HMODULE modules[MODULES];
    const size_t count = find_modules(modules);
    int answer = 0;
    for (size_t i = 0; i < count && !answer; ++i) {
        struct dl_phdr_info info = {.dlpi_name = path_of_module(modules[i])};
        if (info.dlpi_name) answer = call(&info, sizeof info, user);
    }
    return answer;
}

/* --- machine -------------------------------------------------------------------------------------------------- */

int cleat_windows_gethostname(char *name, int size) {
    wchar_t wide[256];
    DWORD length = sizeof wide / sizeof *wide;
    if (GetComputerNameExW(ComputerNameDnsHostname, wide, &length) && cleat_windows_narrow(wide, name, (size_t)size))
        return 0;
    return cleat_windows_fail();
}

/* --- texts ---------------------------------------------------------------------------------------------------- */

void *cleat_windows_memmem(const void *bytes, size_t size, const void *wanted, size_t length) {
    const char *at = bytes;
    for (; size >= length; ++at, --size)
        if (memcmp(at, wanted, length) == 0) return (void *)at;
    return NULL;
}

void *cleat_windows_memrchr(const void *bytes, int byte, size_t size) {
    const unsigned char *at = (const unsigned char *)bytes + size;
    while (size-- > 0)
        if (*--at == (unsigned char)byte) return (void *)at;
    return NULL;
}

/* As glibc orders all texts: runs of digits compare as numbers; with leading zeros as fractions do. */
int cleat_windows_strverscmp(const char *a, const char *b) {
    static const char digits[] = "0123456789";
    size_t i = 0, run;
    while (a[i] && a[i] == b[i]) ++i;
    for (run = i; run > 0 && strchr(digits, a[run - 1]);) --run;
    const size_t x = run + strspn(a + run, digits), y = run + strspn(b + run, digits);
    if (x != y && x > run && y > run && a[run] != '0' && b[run] != '0') return x < y ? -1 : 1;
    if ((x == i) != (y == i) && i > run && run + strspn(a + run, "0") >= i) return x > i ? -1 : 1;
    return (unsigned char)a[i] - (unsigned char)b[i];
}

long long cleat_windows_getline(char **line, size_t *room, FILE *file) {
    size_t used = 0;
    for (int byte; (byte = getc(file)) != EOF;) {
        if (used + 2 > *room || !*line) {
            const size_t wanted = *room < 64 ? 128 : 2 * *room;
            char *grown = realloc(*line, wanted);
            if (!grown) return -1;
            *line = grown;
            *room = wanted;
        }
        (*line)[used++] = (char)byte;
        if (byte == '\n') break;
    }
    if (used == 0) return -1;
    (*line)[used] = 0;
    return (long long)used;
}

int cleat_windows_vfprintf(FILE *file, const char *format, va_list arguments) {
    char *text;
    const int length = vasprintf(&text, format, arguments);
    if (length < 0) return length;
    const bool written = fputs(text, file) >= 0; /* not fwrite, which the runtime splits */
    if (file == stderr) fflush(file);
    free(text);
    return written ? length : -1;
}

int cleat_windows_fprintf(FILE *file, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = cleat_windows_vfprintf(file, format, arguments);
    va_end(arguments);
    return length;
}

char *cleat_windows_strcasestr(const char *text, const char *wanted) {
    const size_t length = strlen(wanted);
    do
        if (strncasecmp(text, wanted, length) == 0) return (char *)text;
    while (*text++);
    return NULL;
}

/* --- terminal ------------------------------------------------------------------------------------------------- */

int tcgetattr(int file, struct termios *terminal) {
    DWORD mode;
    if (!GetConsoleMode((HANDLE)_get_osfhandle(file), &mode)) return -1;
    *terminal = (struct termios){.c_lflag = ICANON | ECHO, .c_cflag = mode};
    return 0;
}

int tcsetattr(int file, int when, const struct termios *terminal) {
    const DWORD lines = ENABLE_LINE_INPUT | ENABLE_ECHO_INPUT;
    (void)when;
    const DWORD mode = terminal->c_lflag & ICANON ? terminal->c_cflag : terminal->c_cflag & ~lines;
    return SetConsoleMode((HANDLE)_get_osfhandle(file), mode) ? 0 : -1;
}

int ioctl(int file, int request, struct winsize *size) {
    CONSOLE_SCREEN_BUFFER_INFO about;
    (void)request;
    if (!GetConsoleScreenBufferInfo((HANDLE)_get_osfhandle(file), &about)) return -1;
    *size = (struct winsize){.ws_col = (unsigned short)(about.srWindow.Right - about.srWindow.Left + 1),
                             .ws_row = (unsigned short)(about.srWindow.Bottom - about.srWindow.Top + 1)};
    return 0;
}

/* --- drivers -------------------------------------------------------------------------------------------------- */

/* Of Khronos' key, values are named by libraries; those that are not 0 are switched off. A card's driver has its own
 * value; the keys of cards that were taken out stay, and do not count. */
void cleat_registered_drivers(void (*found)(void *user, const char *library), void *user) {
    cleat_display_adapter adapters[16];
    HKEY key;
    const bool is_open =
        RegOpenKeyExW(HKEY_LOCAL_MACHINE, L"SOFTWARE\\Khronos\\OpenCL\\Vendors", 0, KEY_READ, &key) == ERROR_SUCCESS;
    for (DWORD i = 0; is_open; ++i) {
        wchar_t name[CLEAT_WIDE];
        char text[CLEAT_WIDE];
        DWORD length = CLEAT_WIDE, type = 0, off = 1, size = sizeof off;
        const LSTATUS status = RegEnumValueW(key, i, name, &length, NULL, &type, (BYTE *)&off, &size);
        if (status != ERROR_SUCCESS && status != ERROR_MORE_DATA) break; /* a value that is no number is longer */
        if (status != ERROR_SUCCESS || type != REG_DWORD || off || !cleat_windows_narrow(name, text, sizeof text))
            continue;
        cleat_path_from_user(text);
        found(user, text);
    }
    if (is_open) RegCloseKey(key);
    const size_t count = cleat_display_adapters(adapters, sizeof adapters / sizeof *adapters);
    for (size_t i = 0; i < count; ++i)
        if (adapters[i].opencl[0]) found(user, adapters[i].opencl);
}

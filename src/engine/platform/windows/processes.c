/* Processes by the names of POSIX: requests to stop, processors, resources. */
#include "platform/processes.h"

#include "platform/files.h"
#include "platform/windows/internal.h"

#include <conio.h>
#include <errno.h>
#include <psapi.h>
#include <string.h>

enum { LINE = 32767 }; /* characters of a command line */

/* --- signals -------------------------------------------------------------------------------------------------- */

static void (*volatile on_interrupt)(int), (*volatile on_end)(int), (*volatile on_alarm)(int);
static UINT code_page; /* of the console before this program; 0: not changed */

static void restore_code_page(void) {
    if (code_page) SetConsoleOutputCP(code_page);
}

void cleat_windows_exit(int code) {
    restore_code_page();
    TerminateProcess(GetCurrentProcess(), (UINT)code);
    abort();
}

/* Called in another thread. 5 s after a closed window, a log-off or a shutdown the system ends the process; if this
 * function returned, at once. */
static BOOL WINAPI on_console(DWORD event) {
    const int number = event == CTRL_C_EVENT ? SIGINT : SIGTERM;
    void (*handler)(int) = number == SIGINT ? on_interrupt : on_end;
    if (!handler) raise(number);
    handler(number);
    if (event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT) Sleep(INFINITE);
    return TRUE;
}

static LRESULT CALLBACK on_message(HWND window, UINT message, WPARAM first, LPARAM second) {
    if (message == WM_ENDSESSION && first) on_console(CTRL_LOGOFF_EVENT);
    return DefWindowProcW(window, message, first, second);
}

/* Of log-off and shutdown the system tells a program that has loaded user32.dll, as drivers do, by a window only. */
static DWORD WINAPI own_window(void *user) {
    const WNDCLASSW class = {.lpfnWndProc = on_message, .lpszClassName = L"cleat"};
    MSG message;
    (void)user;
    SetThreadExecutionState(ES_CONTINUOUS | ES_SYSTEM_REQUIRED); /* no sleep when the user is away */
    RegisterClassW(&class);
    CreateWindowExW(0, class.lpszClassName, NULL, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL);
    while (GetMessageW(&message, NULL, 0, 0) > 0) DispatchMessageW(&message);
    return 0;
}

int sigaction(int number, const struct sigaction *action, struct sigaction *before) {
    if (before) *before = (struct sigaction){.sa_handler = SIG_DFL};
    if (!action) return 0;
    void (*handler)(int) = action->sa_handler == SIG_DFL ? NULL : action->sa_handler;
    if (number == SIGINT) on_interrupt = handler;
    if (number == SIGTERM && !on_end) CloseHandle(CreateThread(NULL, 0, own_window, NULL, 0, NULL));
    if (number == SIGTERM) on_end = handler;
    if (number == SIGALRM) on_alarm = handler;
    return 0;
}

static void CALLBACK ring(void *user, BOOLEAN timed_out) {
    (void)user, (void)timed_out;
    if (on_alarm) on_alarm(SIGALRM);
}

unsigned alarm(unsigned seconds) {
    HANDLE timer;
    if (seconds) CreateTimerQueueTimer(&timer, NULL, ring, NULL, seconds * 1000, 0, WT_EXECUTEONLYONCE);
    return 0;
}

/* --- processors and resources --------------------------------------------------------------------------------- */

int sched_getaffinity(int process, size_t size, cpu_set_t *set) {
    GROUP_AFFINITY own;
    (void)process, (void)size;
    if (!GetThreadGroupAffinity(GetCurrentThread(), &own)) return cleat_windows_fail();
    set->bits = own.Mask;
    return 0;
}

int sched_setaffinity(int process, size_t size, const cpu_set_t *set) {
    (void)process, (void)size;
    return SetProcessAffinityMask(GetCurrentProcess(), (DWORD_PTR)set->bits) ? 0 : cleat_windows_fail();
}

/* Of durations without those that the machine slept, as on Linux. Wine has no such clock, or (10.0) one that moves
 * every 16 ms. */
int cleat_windows_clock_gettime(clockid_t clock, struct timespec *now) {
    static union {
        FARPROC found;
        void(WINAPI *get)(ULONGLONG *);
    } awake;
    static volatile bool known;
    ULONGLONG ticks; /* of 100 ns */
    if (!known && !GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "wine_get_version"))
        awake.found = GetProcAddress(GetModuleHandleW(L"kernelbase.dll"), "QueryUnbiasedInterruptTimePrecise");
    known = true;
    if (clock != CLOCK_MONOTONIC || !awake.found) return (clock_gettime)(clock, now);
    awake.get(&ticks);
    *now = (struct timespec){.tv_sec = (time_t)(ticks / 10000000), .tv_nsec = (long)(ticks % 10000000 * 100)};
    return 0;
}

static struct timeval time_of(FILETIME time) {
    const uint64_t ticks = (uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime; /* of 100 ns */
    return (struct timeval){.tv_sec = (long)(ticks / 10000000), .tv_usec = (long)(ticks % 10000000 / 10)};
}

int getrusage(int who, struct rusage *usage) {
    FILETIME begun, ended, kernel, user;
    PROCESS_MEMORY_COUNTERS memory = {.cb = sizeof memory};
    (void)who;
    if (!GetProcessTimes(GetCurrentProcess(), &begun, &ended, &kernel, &user) ||
        !GetProcessMemoryInfo(GetCurrentProcess(), &memory, sizeof memory))
        return cleat_windows_fail();
    *usage = (struct rusage){
        .ru_utime = time_of(user), .ru_stime = time_of(kernel), .ru_maxrss = (long)(memory.PeakWorkingSetSize >> 10)};
    return 0;
}

long sysconf(int name) {
    return name == _SC_PAGESIZE ? 4096 : (long)GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
}

FILE *cleat_windows_popen(const char *command, const char *mode) {
    wchar_t wide[CLEAT_WIDE], wide_mode[8];
    if (!MultiByteToWideChar(CP_UTF8, 0, command, -1, wide, CLEAT_WIDE)) return errno = E2BIG, NULL;
    MultiByteToWideChar(CP_UTF8, 0, mode, -1, wide_mode, 8);
    return _wpopen(wide, wide_mode);
}

/* --- processes ------------------------------------------------------------------------------------------------ */

typedef struct body_call {
    void (*body)(void *, int);
    void *user;
    int out;
} body_call;

static _Thread_local int body_out = -1; /* >= 0: the thread runs a body */
static LPTOP_LEVEL_EXCEPTION_FILTER next_filter;

/* A crash ends the thread of a body, and no other: the caller learns of it from the pipe. */
static LONG WINAPI end_body(EXCEPTION_POINTERS *crash) {
    if (body_out < 0) return next_filter ? next_filter(crash) : EXCEPTION_CONTINUE_SEARCH;
    close(body_out);
    ExitThread(crash->ExceptionRecord->ExceptionCode);
}

static DWORD WINAPI call_body(void *user) {
    const body_call call = *(body_call *)user;
    free(user);
    const LPTOP_LEVEL_EXCEPTION_FILTER before = SetUnhandledExceptionFilter(end_body);
    if (before != end_body) next_filter = before;
    body_out = call.out;
    call.body(call.user, call.out);
    close(call.out);
    return 0;
}

pid_t cleat_fork_call(void (*body)(void *user, int out), void *user, int in, int out) {
    body_call *call = malloc(sizeof *call);
    (void)in;
    if (!call) return -1;
    *call = (body_call){body, user, _dup(out)};
    if (call->out >= 0) SetHandleInformation((HANDLE)_get_osfhandle(call->out), HANDLE_FLAG_INHERIT, 0);
    const HANDLE thread = call->out < 0 ? NULL : CreateThread(NULL, 0, call_body, call, 0, NULL);
    if (thread) return (pid_t)(intptr_t)thread;
    free(call);
    errno = EAGAIN;
    return -1;
}

pid_t waitpid(pid_t process, int *code, int flags) {
    const HANDLE handle = (HANDLE)(intptr_t)process;
    DWORD ended = 0;
    const DWORD found = WaitForSingleObject(handle, flags & WNOHANG ? 0 : INFINITE);
    if (found == WAIT_TIMEOUT) return 0;
    if (found != WAIT_OBJECT_0) return errno = ECHILD, -1;
    if (!GetExitCodeProcess(handle, &ended)) GetExitCodeThread(handle, &ended);
    CloseHandle(handle);
    if (code) *code = (int)ended;
    return process;
}

/* For good: what it holds, its caller gives back. While this thread has the lock of the heap, that one does not. */
static int stop_thread(HANDLE thread) {
    CONTEXT context = {.ContextFlags = CONTEXT_INTEGER};
    const HANDLE heap = (HANDLE)_get_heap_handle();
    HeapLock(heap);
    SuspendThread(thread);
    GetThreadContext(thread, &context); /* returns when the thread has stopped */
    HeapUnlock(heap);
    return errno = ECHILD, -1;
}

int kill(pid_t process, int number) {
    const HANDLE handle = (HANDLE)(intptr_t)(process < 0 ? -process : process);
    if (GetThreadId(handle)) return stop_thread(handle);
    if (number == SIGINT && GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, GetProcessId(handle))) return 0;
    return TerminateProcess(handle, 128u + (unsigned)number) ? 0 : cleat_windows_fail();
}

/* Appends a word to a command line [2 * LINE], whose second half is free, so that the program's runtime reads it back
 * unchanged. */
static bool add_word(wchar_t *line, size_t *used, const char *word) {
    wchar_t *wide = line + LINE;
    const bool plain = *word && !strpbrk(word, " \t\n\v\"");
    if (!MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, word, -1, wide, LINE)) return false;
    if (*used + 2 * wcslen(wide) + 4 > LINE) return false;
    if (*used) line[(*used)++] = L' ';
    if (!plain) line[(*used)++] = L'"';
    for (const wchar_t *at = wide;; ++at) {
        size_t backslashes = 0;
        for (; *at == L'\\'; ++at) ++backslashes;
        const bool doubled = !plain && (*at == L'"' || !*at);
        for (size_t i = 0; i < backslashes * (doubled ? 2 : 1); ++i) line[(*used)++] = L'\\';
        if (!*at) break;
        if (*at == L'"') line[(*used)++] = L'\\';
        line[(*used)++] = *at;
    }
    if (!plain) line[(*used)++] = L'"';
    line[*used] = 0;
    return true;
}

/* Ends its processes when this one ends. */
static HANDLE job_of_children(void) {
    static HANDLE job;
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {.BasicLimitInformation.LimitFlags =
                                                       JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE};
    if (job) return job;
    job = CreateJobObjectW(NULL, NULL);
    SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits);
    return job;
}

static HANDLE inherited(int file) {
    HANDLE copy = INVALID_HANDLE_VALUE;
    DuplicateHandle(GetCurrentProcess(), (HANDLE)_get_osfhandle(file), GetCurrentProcess(), &copy, 0, TRUE,
                    DUPLICATE_SAME_ACCESS);
    return copy;
}

pid_t cleat_spawn(const char *program, char *const *words, int output, int message, int end) {
    wchar_t path[CLEAT_WIDE], *line = calloc(2 * LINE, sizeof *line);
    size_t used = 0;
    PROCESS_INFORMATION made = {0};
    bool good = line != NULL;
    (void)end;
    for (; good && *words; ++words) good = add_word(line, &used, program && used == 0 ? program : *words);
    if (!program) good = good && GetModuleFileNameW(NULL, path, CLEAT_WIDE) < CLEAT_WIDE;
    const int null = open("/dev/null", O_RDONLY);
    STARTUPINFOW start = {.cb = sizeof start,
                          .dwFlags = STARTF_USESTDHANDLES,
                          .hStdInput = inherited(null),
                          .hStdOutput = inherited(output),
                          .hStdError = inherited(message)};
    good = good && CreateProcessW(program ? NULL : path, line, NULL, NULL, TRUE,
                                  CREATE_NEW_PROCESS_GROUP | CREATE_SUSPENDED, NULL, NULL, &start, &made);
    if (!good) cleat_windows_fail();
    if (good) AssignProcessToJobObject(job_of_children(), made.hProcess);
    if (good) ResumeThread(made.hThread);
    if (good) CloseHandle(made.hThread);
    CloseHandle(start.hStdInput);
    CloseHandle(start.hStdOutput);
    CloseHandle(start.hStdError);
    close(null);
    free(line);
    return good ? (pid_t)(intptr_t)made.hProcess : -1;
}

/* Whether a read would not wait; a closed pipe does not. */
static bool is_ready(int file) {
    const HANDLE handle = (HANDLE)_get_osfhandle(file);
    DWORD bytes = 0;
    if (GetFileType(handle) == FILE_TYPE_CHAR) return _kbhit(); /* not of the mouse, nor of a key that is let go */
    return GetFileType(handle) != FILE_TYPE_PIPE || !PeekNamedPipe(handle, NULL, 0, NULL, &bytes, NULL) || bytes > 0;
}

int poll(struct pollfd *files, unsigned count, int milliseconds) {
    const ULONGLONG begun = GetTickCount64();
    for (;;) {
        int ready = 0;
        for (unsigned i = 0; i < count; ++i) ready += files[i].revents = is_ready(files[i].fd) ? POLLIN : 0;
        const ULONGLONG passed = GetTickCount64() - begun;
        if (ready || (milliseconds >= 0 && passed >= (ULONGLONG)milliseconds)) return ready;
        Sleep(2);
    }
}

int setenv(const char *name, const char *value, int replace) {
    wchar_t wide[256], wide_value[CLEAT_WIDE];
    if (!replace && getenv(name)) return 0;
    if (!MultiByteToWideChar(CP_UTF8, 0, name, -1, wide, 256) ||
        !MultiByteToWideChar(CP_UTF8, 0, value, -1, wide_value, CLEAT_WIDE))
        return -1;
    return _wputenv_s(wide, wide_value);
}

/* --- the program ---------------------------------------------------------------------------------------------- */

static struct {
    HANDLE console;
    int out;
} typing;

/* Until a line begins with Ctrl-Z, or Ctrl-C is pressed, whose handler then goes first. */
static DWORD WINAPI copy_typing(void *user) {
    wchar_t wide[1024];
    char bytes[3 * 1024];
    DWORD kept = 0, count;
    (void)user;
    while (ReadConsoleW(typing.console, wide + kept, 1024 - kept, &count, NULL) && count > 0 && wide[0] != 0x1a) {
        count += kept;
        kept = IS_HIGH_SURROGATE(wide[count - 1]); /* its other half is read next */
        const int size = WideCharToMultiByte(CP_UTF8, 0, wide, (int)(count - kept), bytes, sizeof bytes, NULL, NULL);
        if (write(typing.out, bytes, (unsigned)size) != size) break;
        wide[0] = wide[count - 1];
    }
    Sleep(100);
    close(typing.out);
    return 0;
}

void cleat_read_console(void) {
    int ends[2];
    if (!isatty(STDIN_FILENO) || pipe2(ends, 0) != 0) return;
    typing.console = (HANDLE)_get_osfhandle(dup(STDIN_FILENO));
    typing.out = ends[1];
    dup2(ends[0], STDIN_FILENO);
    CloseHandle(CreateThread(NULL, 0, copy_typing, NULL, 0, NULL));
}

int __wgetmainargs(int *count, wchar_t ***words, wchar_t ***variables, int expands, int *mode); /* of the runtime */

char **cleat_arguments(int count, char **arguments) {
    int found = 0, ordinary = 0;
    wchar_t **wide = NULL, **variables;
    __wgetmainargs(&found, &wide, &variables, 0, &ordinary);
    char **made = found == count ? calloc((size_t)count + 1, sizeof *made) : NULL;
    DWORD mode;
    for (int i = 0; made && i < count; ++i) {
        const size_t room = 3 * wcslen(wide[i]) + 1;
        made[i] = malloc(room);
        if (!made[i] || !cleat_windows_narrow(wide[i], made[i], room)) made[i] = arguments[i];
    }
    SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX); /* no dialogs about libraries of drivers */
    SetConsoleCtrlHandler(on_console, TRUE);
    code_page = GetConsoleOutputCP();
    SetConsoleOutputCP(CP_UTF8);
    atexit(restore_code_page);
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file) {
        const HANDLE handle = (HANDLE)_get_osfhandle(file);
        _setmode(file, _O_BINARY);
        if (file != STDIN_FILENO && GetConsoleMode(handle, &mode) &&
            !SetConsoleMode(handle, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING))
            setenv("TERM", "dumb", true);
    }
    return made ? made : arguments;
}

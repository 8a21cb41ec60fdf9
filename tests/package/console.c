/* What the check of a Windows build needs from Windows:
 *   console events EVENTS FILE PROGRAM ARGUMENTS...   runs a program, and sends it what a console sends, as the system does it: by
 *       a thread of the program in CtrlRoutine. EVENTS begin when FILE has bytes: c: Ctrl-C, b: Ctrl-Break, x: the window is closed
 *       and o: log-off, after which the program is killed in 5 s, a digit: waits that number of tenths of a second.
 *   console hold FILE MILLISECONDS none|read|all      keeps a file open, with this sharing; prints a line when it has it
 *   console dumb PROGRAM ARGUMENTS...                 runs a program whose console takes no sequences of a VT terminal
 *   console page PROGRAM ARGUMENTS...                 runs a program; a fault if it leaves another code page of the console
 * The exit code is the program's; 98: it was killed; 99: fault. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>
#include <windows.h>

#include <shellapi.h>

enum { LINE = 32768, KILLED = 98, FAULT = 99 };

static bool start(wchar_t **words, HANDLE output, PROCESS_INFORMATION *made) {
    static wchar_t line[LINE];
    STARTUPINFOW about = {.cb = sizeof about, .dwFlags = STARTF_USESTDHANDLES};
    for (; *words; ++words) {
        if (wcslen(line) + wcslen(*words) + 4 > LINE) return false;
        wcscat(wcscat(wcscat(line, *line ? L" \"" : L"\""), *words), L"\"");
    }
    about.hStdInput = GetStdHandle(STD_INPUT_HANDLE);
    about.hStdOutput = output ? output : GetStdHandle(STD_OUTPUT_HANDLE);
    about.hStdError = GetStdHandle(STD_ERROR_HANDLE);
    return CreateProcessW(NULL, line, NULL, NULL, TRUE, 0, NULL, NULL, &about, made);
}

static int end(HANDLE process, DWORD patience) {
    DWORD code = FAULT;
    if (WaitForSingleObject(process, patience) != WAIT_OBJECT_0) TerminateProcess(process, KILLED);
    WaitForSingleObject(process, 5000);
    GetExitCodeProcess(process, &code);
    return (int)code;
}

static bool has_bytes(const wchar_t *path) {
    WIN32_FILE_ATTRIBUTE_DATA about;
    return GetFileAttributesExW(path, GetFileExInfoStandard, &about) && about.nFileSizeLow > 0;
}

static bool send_event(HANDLE process, DWORD event) {
    union {
        FARPROC found;
        LPTHREAD_START_ROUTINE routine;
    } control = {.found = GetProcAddress(GetModuleHandleW(L"kernel32.dll"), "CtrlRoutine")};
    const HANDLE thread =
        control.found ? CreateRemoteThread(process, NULL, 0, control.routine, (void *)(uintptr_t)event, 0, NULL) : NULL;
    if (thread) CloseHandle(thread);
    return thread != NULL;
}

static bool log_off(void) {
    const HWND window = FindWindowW(L"cleat", NULL);
    return window && SendMessageW(window, WM_QUERYENDSESSION, 0, ENDSESSION_LOGOFF) &&
           SendNotifyMessageW(window, WM_ENDSESSION, TRUE, ENDSESSION_LOGOFF);
}

static int send_events(const wchar_t *events, const wchar_t *file, wchar_t **words) {
    PROCESS_INFORMATION made;
    DWORD patience = 60000;
    if (!start(words, NULL, &made)) return FAULT;
    while (!has_bytes(file) && WaitForSingleObject(made.hProcess, 10) == WAIT_TIMEOUT) continue;
    for (; *events; ++events) {
        if (*events >= L'0' && *events <= L'9') {
            WaitForSingleObject(made.hProcess, 100 * (DWORD)(*events - L'0'));
            continue;
        }
        if (*events == L'x' || *events == L'o') patience = 5000;
        const DWORD event = *events == L'c' ? CTRL_C_EVENT : *events == L'b' ? CTRL_BREAK_EVENT : CTRL_CLOSE_EVENT;
        const bool sent = *events == L'o' ? log_off() : send_event(made.hProcess, event);
        if (!sent) fprintf(stderr, "console: '%lc' was not sent: error %lu\n", *events, GetLastError());
    }
    return end(made.hProcess, patience);
}

static int hold(const wchar_t *file, const wchar_t *milliseconds, const wchar_t *sharing) {
    const DWORD share =
        *sharing == L'n' ? 0 : FILE_SHARE_READ | FILE_SHARE_WRITE | (*sharing == L'a' ? FILE_SHARE_DELETE : 0);
    if (CreateFileW(file, GENERIC_READ, share, NULL, OPEN_EXISTING, 0, NULL) == INVALID_HANDLE_VALUE) return FAULT;
    puts("held");
    fflush(stdout);
    Sleep(wcstoul(milliseconds, NULL, 10));
    return 0;
}

static int run_dumb(wchar_t **words) {
    SECURITY_ATTRIBUTES inherited = {sizeof inherited, NULL, TRUE};
    const HANDLE output =
        CreateFileW(L"CONOUT$", GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, &inherited, OPEN_EXISTING, 0, NULL);
    PROCESS_INFORMATION made;
    DWORD mode;
    const bool refuses =
        GetConsoleMode(output, &mode) && !SetConsoleMode(output, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
    return refuses && start(words, output, &made) ? end(made.hProcess, INFINITE) : FAULT;
}

static int run_page(wchar_t **words) {
    enum { PAGE = 850 };
    PROCESS_INFORMATION made;
    if (!SetConsoleOutputCP(PAGE) || !start(words, NULL, &made)) return FAULT;
    while (GetConsoleOutputCP() == PAGE && WaitForSingleObject(made.hProcess, 1) == WAIT_TIMEOUT) continue;
    const bool changed = GetConsoleOutputCP() == CP_UTF8; /* else it is not known whether it was put back */
    const int code = end(made.hProcess, INFINITE);
    return changed && GetConsoleOutputCP() == PAGE ? code : FAULT;
}

int main(void) {
    int count;
    wchar_t **words = CommandLineToArgvW(GetCommandLineW(), &count);
    GetDesktopWindow(); /* takes wine some seconds for the first time */
    const wchar_t *what = words && count > 1 ? words[1] : L"";
    if (wcscmp(what, L"events") == 0 && count > 4) return send_events(words[2], words[3], words + 4);
    if (wcscmp(what, L"hold") == 0 && count == 5) return hold(words[2], words[3], words[4]);
    if (wcscmp(what, L"dumb") == 0 && count > 2) return run_dumb(words + 2);
    if (wcscmp(what, L"page") == 0 && count > 2) return run_page(words + 2);
    return FAULT;
}

/* The machine: what some files of Linux say about it, from the functions and the registry of Windows, and its cards. */
#include "platform/files.h"
#include "platform/system.h"
#include "platform/windows/internal.h"

#include <errno.h>
#include <psapi.h>
#include <setupapi.h>
#include <string.h>

/* --- files of Linux ------------------------------------------------------------------------------------------- */

enum { TEXT = 512 };

/* A text of the registry; "" if there is none. */
static const char *read_registry(const char *key, const char *name, char text[128]) {
    DWORD size = 128;
    if (RegGetValueA(HKEY_LOCAL_MACHINE, key, name, RRF_RT_REG_SZ, NULL, text, &size) != ERROR_SUCCESS) text[0] = 0;
    return text;
}

/* A program gets no more than the system can promise (the page file), and than the job object, if any, allows. */
static void write_memory(char text[TEXT]) {
    MEMORYSTATUSEX now = {.dwLength = sizeof now};
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION job = {0};
    PROCESS_MEMORY_COUNTERS own = {.cb = sizeof own};
    GlobalMemoryStatusEx(&now);
    GetProcessMemoryInfo(GetCurrentProcess(), &own, sizeof own);
    DWORDLONG available = min(now.ullAvailPhys, now.ullAvailPageFile);
    if (QueryInformationJobObject(NULL, JobObjectExtendedLimitInformation, &job, sizeof job, NULL)) {
        const DWORD flags = job.BasicLimitInformation.LimitFlags;
        DWORDLONG limit = flags & JOB_OBJECT_LIMIT_JOB_MEMORY ? job.JobMemoryLimit : MAXLONGLONG;
        if (flags & JOB_OBJECT_LIMIT_PROCESS_MEMORY) limit = min(limit, job.ProcessMemoryLimit);
        available = min(available, limit > own.PagefileUsage ? limit - own.PagefileUsage : 1024);
    }
    snprintf(text, TEXT, "MemTotal: %llu kB\nMemAvailable: %llu kB\n", now.ullTotalPhys >> 10, available >> 10);
}

static void write_process(char text[TEXT]) {
    PROCESS_MEMORY_COUNTERS own = {.cb = sizeof own};
    if (!GetProcessMemoryInfo(GetCurrentProcess(), &own, sizeof own)) return;
    snprintf(text, TEXT, "VmRSS: %llu kB\n", (unsigned long long)own.WorkingSetSize >> 10);
}

static void write_processor(char text[TEXT]) {
    char name[128];
    read_registry("HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0", "ProcessorNameString", name);
    if (name[0]) snprintf(text, TEXT, "model name: %s\n", name);
}

#define VERSION "SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion"

/* The registry calls Windows 11 by the name of 10. */
static void write_release(char text[TEXT]) {
    char name[128], build[128];
    char *ten = strstr(read_registry(VERSION, "ProductName", name), "Windows 10");
    if (ten && atoi(read_registry(VERSION, "CurrentBuildNumber", build)) >= 22000) ten[strlen("Windows 1")] = '1';
    snprintf(text, TEXT, "ID=windows\nPRETTY_NAME=\"%s\"\n", name[0] ? name : "Windows");
}

static const struct {
    const char *file, *source;
    void (*fill)(char text[TEXT]);
} files[] = {{"/proc/meminfo", "GlobalMemoryStatusEx", write_memory},
             {"/proc/self/status", "GetProcessMemoryInfo", write_process},
             {"/proc/cpuinfo", "the registry", write_processor},
             {"/etc/os-release", "the registry", write_release}};
enum { FILES = sizeof files / sizeof *files };

const char *cleat_system_source(const char *file) {
    for (size_t i = 0; i < FILES; ++i)
        if (strcmp(file, files[i].file) == 0) return files[i].source;
    return NULL;
}

int cleat_windows_open_system(const char *file) {
    char text[TEXT] = "";
    int ends[2];
    for (size_t i = 0; i < FILES; ++i)
        if (strcmp(file, files[i].file) == 0) files[i].fill(text);
    if (!text[0]) return errno = ENOENT, -1;
    if (_pipe(ends, TEXT, _O_BINARY | _O_NOINHERIT) != 0) return -1;
    const bool written = write(ends[1], text, (unsigned)strlen(text)) > 0;
    close(ends[1]);
    if (!written) close(ends[0]);
    return written ? ends[0] : -1;
}

/* The registry has the version that GetVersion hides from programs without a manifest. */
int uname(struct utsname *machine) {
    char build[128];
    *machine = (struct utsname){.sysname = "Windows", .machine = "x86_64"};
    read_registry(VERSION, "CurrentBuildNumber", build);
    snprintf(machine->release, sizeof machine->release, "%.60s", build[0] ? build : "of unknown version");
    return 0;
}

/* --- cards ---------------------------------------------------------------------------------------------------- */

static bool read_property(HDEVINFO list, SP_DEVINFO_DATA *at, DWORD property, void *value, DWORD size) {
    memset(value, 0, size);
    return SetupDiGetDeviceRegistryPropertyW(list, at, property, NULL, value, size - sizeof(wchar_t), NULL);
}

static void read_text(HKEY key, const wchar_t *name, char *text, size_t size) {
    wchar_t wide[1024]; /* of several texts the first, as Khronos' loader does */
    DWORD bytes = sizeof wide;
    if (RegGetValueW(key, NULL, name, RRF_RT_REG_SZ | RRF_RT_REG_MULTI_SZ, NULL, wide, &bytes) == ERROR_SUCCESS)
        cleat_windows_narrow(wide, text, size);
}

static bool read_adapter(HDEVINFO list, SP_DEVINFO_DATA *at, cleat_display_adapter *adapter) {
    wchar_t text[1024]; /* all names of a card */
    DWORD number[2];
    *adapter = (cleat_display_adapter){.bus = -1};
    if (!read_property(list, at, SPDRP_HARDWAREID, text, sizeof text) ||
        swscanf(text, L"PCI\\VEN_%x&DEV_%x", &adapter->vendor, &adapter->device) != 2)
        return false;
    if (read_property(list, at, SPDRP_DEVICEDESC, text, sizeof text))
        cleat_windows_narrow(text, adapter->name, sizeof adapter->name);
    if (read_property(list, at, SPDRP_BUSNUMBER, number, sizeof number)) adapter->bus = (int)number[0];
    if (read_property(list, at, SPDRP_ADDRESS, number, sizeof number)) {
        adapter->slot = (int)(number[0] >> 16);
        adapter->function = (int)(number[0] & 0xffff);
    }
    const HKEY key = SetupDiOpenDevRegKey(list, at, DICS_FLAG_GLOBAL, 0, DIREG_DRV, KEY_QUERY_VALUE);
    if (key == INVALID_HANDLE_VALUE) return true;
    read_text(key, L"DriverVersion", adapter->driver, sizeof adapter->driver);
    read_text(key, L"OpenCLDriverName", adapter->opencl, sizeof adapter->opencl);
    cleat_path_from_user(adapter->opencl);
    RegCloseKey(key);
    return true;
}

size_t cleat_display_adapters(cleat_display_adapter *adapters, size_t most) {
    static const GUID displays = {0x4d36e968, 0xe325, 0x11ce, {0xbf, 0xc1, 0x08, 0x00, 0x2b, 0xe1, 0x03, 0x18}};
    const HDEVINFO list = SetupDiGetClassDevsW(&displays, NULL, NULL, DIGCF_PRESENT);
    SP_DEVINFO_DATA at = {.cbSize = sizeof at};
    size_t count = 0;
    if (list == INVALID_HANDLE_VALUE) return 0;
    for (DWORD i = 0; count < most && SetupDiEnumDeviceInfo(list, i, &at); ++i)
        if (read_adapter(list, &at, &adapters[count])) ++count;
    SetupDiDestroyDeviceInfoList(list);
    return count;
}

/* Folders whose files Windows does not name in the usual way, which are removed and named all the same: on drives that
 * its mount manager does not know, as those of RAM disks are, and on shares of which the user sees a part. And
 * folders in which the system forbids it. On Linux, folders on any drive. */
/* ctest: quick */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/files.h"
#include "platform/files.h"

static int refused;
static const char *kind;

#ifdef _WIN32
#include <windows.h>

/* Stands for the system's function, by the name that the linker looks for. */
static DWORD WINAPI name_device_only(HANDLE file, wchar_t *path, DWORD size, DWORD how) {
    union {
        FARPROC found;
        DWORD(WINAPI *name)(HANDLE, wchar_t *, DWORD, DWORD);
    } real = {.found = GetProcAddress(GetModuleHandleW(L"kernel32.dll"), "GetFinalPathNameByHandleW")};
    const bool is_share = strcmp(kind, "share") == 0;
    if (is_share ? how & FILE_NAME_OPENED : how & VOLUME_NAME_NT) return real.name(file, path, size, how);
    ++refused;
    SetLastError(is_share ? ERROR_ACCESS_DENIED : ERROR_INVALID_FUNCTION);
    return 0;
}
const void *const __imp_GetFinalPathNameByHandleW = (void *)name_device_only;

static HANDLE WINAPI create_elsewhere(const wchar_t *path, DWORD access, DWORD share, SECURITY_ATTRIBUTES *rights,
                                      DWORD creation, DWORD flags, HANDLE like) {
    union {
        FARPROC found;
        HANDLE(WINAPI *create)(const wchar_t *, DWORD, DWORD, SECURITY_ATTRIBUTES *, DWORD, DWORD, HANDLE);
    } real = {.found = GetProcAddress(GetModuleHandleW(L"kernel32.dll"), "CreateFileW")};
    if (creation == OPEN_EXISTING || !wcsstr(path, L"protected"))
        return real.create(path, access, share, rights, creation, flags, like);
    SetLastError(ERROR_FILE_NOT_FOUND);
    return INVALID_HANDLE_VALUE;
}
const void *const __imp_CreateFileW = (void *)create_elsewhere;

/* Windows says "file not found" of a file that must not be created. */
static void a_protected_folder_is_named(void **state) {
    cleat_error error;
    (void)state;
    assert_int_equal(cleat_file_write("/tmp/protected", "x", 1, &error), CLEAT_ERR_IO);
    assert_non_null(strstr(error.text, "Controlled folder access"));
}

/* Whatever the system said before. */
static void a_name_that_windows_refuses_is_named(void **state) {
    (void)state;
    SetLastError(ERROR_FILE_NOT_FOUND);
    assert_int_equal(open("/tmp/results:1", O_WRONLY | O_CREAT, 0644), -1);
    assert_non_null(strstr(strerror(errno), "does not take this name"));
}
#endif

static void folders_are_named_and_removed(void **state) {
    char folder[64] = "/tmp/cleat-drives-XXXXXX", path[96], real[PATH_MAX];
    kind = *state;
    refused = 0;
    assert_non_null(mkdtemp(folder));
    assert_non_null(realpath(folder, real));
    assert_string_equal(strstr(real, "/tmp/"), folder);
    assert_true(real == strstr(real, "/tmp/") || strncmp(real, "Z:/", 3) == 0);
    snprintf(path, sizeof path, "%s/old", folder);
    assert_int_equal(cleat_folder_create(path, NULL), CLEAT_OK);
    snprintf(path, sizeof path, "%s/old/file", folder);
    assert_int_equal(cleat_file_write(path, "x", 1, NULL), CLEAT_OK);
    assert_int_equal(cleat_remove_inside(folder, "old", NULL), CLEAT_OK);
    assert_int_equal(rmdir(folder), 0); /* it is empty */
    assert_true(CLEAT_PATHS_END[0] == ':' || refused > 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#ifdef _WIN32
        cmocka_unit_test(a_protected_folder_is_named),
        cmocka_unit_test(a_name_that_windows_refuses_is_named),
#endif
        cmocka_unit_test_prestate(folders_are_named_and_removed, (char *)"RAM disk"),
        cmocka_unit_test_prestate(folders_are_named_and_removed, (char *)"share"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

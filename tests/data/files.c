/* Implements the file helpers of the data tests. */
#include "files.h"
#include "source_path.h"

#include "platform/files.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *temporary(void) {
    static char folder[64];
    if (!*folder) {
        snprintf(folder, sizeof folder, "/tmp/cleat-data-XXXXXX");
        assert_non_null(mkdtemp(folder));
    }
    return folder;
}

const char *test_path(const char *name) {
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", temporary(), name);
    return path;
}

const char *test_folder(const char *name) {
    const char *path = test_path(name);
    if (mkdir(path, 0755) != 0) assert_int_equal(access(path, W_OK), 0);
    return path;
}

void test_write(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

void test_write_text(const char *path, const char *text) {
    test_write(path, text, strlen(text));
}

char *test_read(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *data = calloc(*size + 1, 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *size, file), *size);
    fclose(file);
    return data;
}

int test_remove_all(void **state) {
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", temporary());
    return system(command);
}

static char logged[8192];

static void keep_line(void *user, cleat_log_level level, const char *text) {
    (void)user;
    const size_t used = strlen(logged);
    snprintf(logged + used, sizeof logged - used, "%s%s\n", level == CLEAT_LOG_WARNING ? "warning: " : "", text);
}

void test_keep_log(void) {
    *logged = 0;
    cleat_set_log(keep_line, NULL, CLEAT_LOG_INFO);
}

const char *test_logged(void) {
    cleat_set_log(NULL, NULL, CLEAT_LOG_WARNING);
    return logged;
}

const char *test_shared_rna(void) {
    const char *path = shared_path("data/rna_3d");
    return access(path, R_OK) == 0 ? path : NULL;
}

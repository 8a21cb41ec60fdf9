/* A temporary folder that replaces / for code that reads kernel files: a machine made of files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/files.h"
#include "file_tree.h"
#include "platform/files.h"

char tree_root[64];

int tree_make(void **state) {
    (void)state;
    snprintf(tree_root, sizeof tree_root, "/tmp/cleat-tree-XXXXXX");
    return mkdtemp(tree_root) ? 0 : -1;
}

int tree_remove(void **state) {
    (void)state;
    tree_drop("");
    return 0;
}

static void whole_path(const char *path, char whole[512]) {
    assert_in_range(snprintf(whole, 512, "%s%s", tree_root, path), 1, 511);
}

void tree_folder(const char *path) {
    char whole[512];
    whole_path(path, whole);
    assert_int_equal(cleat_folder_make(whole, NULL), CLEAT_OK);
}

/* Returns the path of a new file or link, and creates its folder. */
static void new_path(const char *path, char whole[512]) {
    whole_path(path, whole);
    char *name = strrchr(whole, '/');
    *name = 0;
    assert_int_equal(cleat_folder_make(whole, NULL), CLEAT_OK);
    *name = '/';
}

void tree_put_bytes(const char *path, const void *bytes, size_t size) {
    char whole[512];
    new_path(path, whole);
    FILE *file = fopen(whole, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

void tree_put_text(const char *path, const char *text) {
    tree_put_bytes(path, text, strlen(text));
}

void tree_put(const char *path, const char *format, ...) {
    char text[4096];
    va_list rest;
    va_start(rest, format);
    int length = vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    assert_in_range(length, 0, sizeof text - 1);
    tree_put_bytes(path, text, (size_t)length);
}

void tree_link(const char *path, const char *target) {
    char whole[512];
    new_path(path, whole);
    assert_int_equal(symlink(target, whole), 0);
}

void tree_put_unreadable(const char *path) {
    tree_drop(path);
    tree_folder(path);
}

void tree_drop(const char *path) {
    char whole[512], command[600];
    whole_path(path, whole);
    snprintf(command, sizeof command, "rm -rf '%s'", whole);
    assert_int_equal(system(command), 0);
}

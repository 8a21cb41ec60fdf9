/* Locks between processes: one holder at a time; a lock ends with its process. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/lock.h"
#include "platform/files.h"
#include "platform/processes.h"

static char folder[64], path[96];

static int make_place(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/cleat-lock-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/answer", folder);
    return 0;
}

static int remove_place(void **state) {
    char name[128];
    (void)state;
    snprintf(name, sizeof name, "%s.lock", path);
    remove(name);
    return rmdir(folder);
}

static cleat_status try_lock(void) {
    int lock = -1;
    cleat_error error = {0};
    cleat_status status = cleat_lock(path, 0.05, &lock, &error);
    if (!status) cleat_unlock(lock);
    assert_true((!status) == (lock >= 0));
    return status;
}

/* Starts a process that holds the lock on return and until it is killed. */
static pid_t start_holder(void) {
    int ready[2], lock = -1;
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t holder = fork();
    assert_true(holder >= 0);
    if (holder == 0) {
        if (cleat_lock(path, 10, &lock, NULL) || write(ready[1], &byte, 1) != 1) _exit(1);
        for (;;) pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return holder;
}

static void lock_is_free_again_after_its_holder(void **state) {
    (void)state;
    int lock = -1;
    assert_int_equal(cleat_lock(path, 0, &lock, NULL), CLEAT_OK);
    assert_int_equal(try_lock(), CLEAT_ERR_TIME_UP); /* opened again, as by another thread */
    cleat_unlock(lock);
    assert_int_equal(try_lock(), CLEAT_OK);
}

static void lock_dies_with_its_process(void **state) {
    (void)state;
    pid_t holder = start_holder();
    assert_int_equal(try_lock(), CLEAT_ERR_TIME_UP);
    kill(holder, SIGKILL);
    assert_int_equal(waitpid(holder, NULL, 0), holder);
    assert_int_equal(try_lock(), CLEAT_OK);
}

static void missing_folder_is_an_error(void **state) {
    (void)state;
    int lock = -1;
    cleat_error error = {0};
    assert_int_equal(cleat_lock("/nowhere/at/all", 10, &lock, &error), CLEAT_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "/nowhere/at/all.lock"));
    assert_int_equal(lock, -1);
}

/* A lock is neither created nor opened through a link. */
static void a_link_is_refused(void **state) {
    (void)state;
    char link[128], outside[128];
    int lock = -1;
    cleat_error error = {0};
    snprintf(link, sizeof link, "%s.lock", path);
    snprintf(outside, sizeof outside, "%s/outside", folder);
    remove(link);
    assert_int_equal(symlink(outside, link), 0);
    assert_int_equal(cleat_lock(path, 0, &lock, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "is a symbolic link"));
    assert_int_not_equal(access(outside, F_OK), 0);
    remove(link);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lock_is_free_again_after_its_holder),
        cmocka_unit_test(a_link_is_refused),
        cmocka_unit_test(lock_dies_with_its_process),
        cmocka_unit_test(missing_folder_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_place, remove_place);
}

/* Concurrent first starts of several processes on one device: one probes the matrix unit, the others wait for
 * its result, and only a process that no longer exists counts as crashed. Every start executes a new image,
 * because OpenCL does not survive a fork. */
/* ctest: device */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "core/files.h"
#include "core/memory.h"
#include "device/matrix.h"
#include "open_device.h"
#include "platform/processes.h"

enum { EMULATED = 2 * CLEAT_MATRIX_EMULATED + 1, NONE = 2 * CLEAT_MATRIX_NONE };

static char folder[64];

static int use_folder(void **state) {
    (void)state;
    make_folder(folder, sizeof folder);
    setenv("CLEAT_CACHE_DIR", folder, 1);
    return 0;
}

static int leave_folder(void **state) {
    (void)state;
    remove_folder(folder);
    return 0;
}

/* Starts a process that opens the device and detects its unit; it exits with 2 x unit + bf16. */
static pid_t start(double patience) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* no stopped process outlives a failed test */
    const cleat_matrix_unit unit = CLEAT_MATRIX_EMULATED;
    cleat_device *device = open_device();
    device->facts.matrix_unit = CLEAT_MATRIX_NONE;
    device->facts.matrix_bf16 = false;
    cleat_matrix_detect(device, &unit, 1, patience);
    _exit(2 * (int)device->facts.matrix_unit + device->facts.matrix_bf16);
}

static int result_of(pid_t child) {
    int state = 0;
    assert_int_equal(waitpid(child, &state, 0), child);
    assert_true(WIFEXITED(state));
    return WEXITSTATUS(state);
}

static bool is_running(pid_t child) {
    return waitpid(child, NULL, WNOHANG) == 0;
}

/* Whether the only entry in the folder marks a probe in progress. */
static bool is_trying(void) {
    char command[256], *data = NULL, path[256] = "";
    size_t size = 0;
    snprintf(command, sizeof command, "ls '%s'/*.matrix 2>/dev/null", folder);
    FILE *list = popen(command, "r");
    if (list && !fgets(path, sizeof path, list)) path[0] = 0;
    if (list) pclose(list);
    path[strcspn(path, "\n")] = 0;
    if (!path[0] || cleat_file_read(path, &data, &size, NULL)) return false;
    bool trying = strncmp(data, "trying", strlen("trying")) == 0;
    cleat_free(data);
    return trying;
}

static void sleep_briefly(void) {
    const struct timespec moment = {.tv_nsec = 2000000};
    nanosleep(&moment, NULL);
}

/* A start is stopped in the middle of its probe. */
static pid_t start_and_stop(void) {
    for (int attempt = 0; attempt < 5; ++attempt) {
        pid_t first = start(60);
        while (!is_trying() && is_running(first)) sleep_briefly();
        if (is_trying()) {
            kill(first, SIGSTOP);
            if (is_trying()) return first;
            kill(first, SIGCONT);
            result_of(first);
        }
        remove_folder(folder); /* finished before it could be stopped */
        assert_int_equal(cleat_folder_make(folder, NULL), CLEAT_OK);
    }
    fail_msg("no start could be stopped while it tried the unit");
    return 0;
}

static void test_second_start_has_the_answer_of_the_first(void **state) {
    (void)state;
    pid_t first = start_and_stop(), second = start(60);
    assert_int_equal(result_of(start(0.05)), NONE); /* the wait timed out; meanwhile the second one started */
    assert_true(is_trying());
    assert_true(is_running(second));
    kill(first, SIGCONT);
    assert_int_equal(result_of(first), EMULATED);
    assert_int_equal(result_of(second), EMULATED);
    assert_false(is_trying());
}

/* A start is killed in the middle of its probe. */
static void start_and_kill(void) {
    pid_t killed = start_and_stop();
    kill(killed, SIGKILL);
    assert_int_equal(waitpid(killed, NULL, 0), killed);
}

static void test_start_that_was_ended_is_made_up_for(void **state) {
    (void)state;
    start_and_kill();
    assert_int_equal(result_of(start(60)), EMULATED);
    assert_false(is_trying());
}

/* Returns 77 without a device. */
static int look_for_device(void) {
    pid_t child = fork();
    int state = 0;
    if (child == 0) {
        open_device();
        _exit(0);
    }
    return child > 0 && waitpid(child, &state, 0) == child && WIFEXITED(state) ? WEXITSTATUS(state) : 1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_second_start_has_the_answer_of_the_first, use_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_start_that_was_ended_is_made_up_for, use_folder, leave_folder),
    };
    int missing = look_for_device();
    return missing ? missing : cmocka_run_group_tests(tests, NULL, NULL);
}

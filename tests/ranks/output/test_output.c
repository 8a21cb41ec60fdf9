/* The supervisor parses the launcher's stderr equally, however it is divided into pieces. */
/* ctest: quick */
#include "launch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define DASHES "--------------------------------------------------------------------------\n"
#define MARK "\x1e"

typedef struct seen {
    char text[4096], reports[1024];
} seen;

static void add_text(void *user, const char *text, size_t size) {
    seen *s = user;
    const size_t used = strlen(s->text);
    assert_true(used + size < sizeof s->text);
    memcpy(s->text + used, text, size);
    s->text[used + size] = 0;
}

static void add_report(void *user, const launch_report *report) {
    seen *s = user;
    const size_t used = strlen(s->reports);
    snprintf(s->reports + used, sizeof s->reports - used, "[%d %s %d %d %d]", report->rank, report->host,
             (int)report->pid, (int)report->event, report->event == LAUNCH_STARTED ? 0 : report->number);
}

/* Feeds `input` in pieces of `size` bytes. */
static void feed(const char *input, size_t size, seen *s) {
    launch_output output = {.write = add_text, .report = add_report, .user = s};
    *s = (seen){.text = ""};
    for (size_t at = 0, left = strlen(input); left > 0; at += size, left -= size) {
        if (size > left) size = left;
        launch_output_add(&output, input + at, size);
    }
    launch_output_end(&output);
}

static void check(const char *input, const char *text, const char *reports) {
    static seen s;
    for (size_t size = 1; size <= strlen(input); ++size) {
        feed(input, size, &s);
        assert_string_equal(s.text, text);
        assert_string_equal(s.reports, reports);
    }
}

static void text_passes(void **state) {
    (void)state;
    check("one\ntwo", "one\ntwo", "");
    check("\r[##..] 3%\r[###.] 4%\rdone\n", "\r[##..] 3%\r[###.] 4%\rdone\n", "");
    check("- a list\n-- and a dash\n---\nmpirun: something else\n",
          "- a list\n-- and a dash\n---\nmpirun: something else\n", "");
}

static void reports_are_taken_out(void **state) {
    (void)state;
    check(MARK "cleat-rank 0 host-a 17 started\n", "", "[0 host-a 17 0 0]");
    check("\r[##..] 3%" MARK "cleat-rank 2 b 18 signal 9\n\r[###.]\n", "\r[##..] 3%\r[###.]\n", "[2 b 18 2 9]");
    check("x\n" MARK "cleat-rank 1 b 19 exit 8\n" MARK "cleat-rank 63 b 20 exit 0\ny\n", "x\ny\n",
          "[1 b 19 1 8][63 b 20 1 0]");
    /* not written by a guard */
    check(MARK "cleat-rank 64 b 1 exit 0\n" MARK "cleat-rank -1 b 1 exit 0\n" MARK "cleat-rank 0 b 1 exit\n" MARK "\n",
          "", "");
}

static void messages_of_the_launcher(void **state) {
    (void)state;
    check("a\n" DASHES "mpirun noticed that process rank 1 with PID 0\n" DASHES "b\n", "a\nb\n", "");
    check(DASHES "A message\nof two lines\n" DASHES "b\n", DASHES "A message\nof two lines\n" DASHES "b\n", "");
    check("mpirun: Forwarding signal 10 to job\nb\n", "b\n", "");
    check("mpirun: Forwarding sig", "mpirun: Forwarding sig", "");
    check(DASHES "not ended\n", DASHES "not ended\n", "");
    /* a guard's report within a box */
    check(DASHES "mpirun noticed" MARK "cleat-rank 1 b 19 exit 8\n that process rank 1\n" DASHES "b\n", "b\n",
          "[1 b 19 1 8]");
}

static void count_text(void *user, const char *text, size_t size) {
    (void)text;
    *(size_t *)user += size;
}

/* No buffer grows beyond its bounds, and no output is lost. */
static void long_lines(void **state) {
    static char input[3 * LAUNCH_HELD];
    size_t passed = 0;
    launch_output output = {.write = count_text, .report = add_report, .user = &passed};
    (void)state;
    memset(input, '-', sizeof input);
    launch_output_add(&output, input, sizeof input);
    assert_true(output.used < LAUNCH_HELD);
    launch_output_end(&output);
    assert_int_equal(passed, sizeof input);
    input[0] = LAUNCH_MARK; /* an endless line of a guard */
    launch_output_add(&output, input, 1);
    for (int i = 0; i < 40; ++i) {
        launch_output_add(&output, input + 1, 100);
        assert_true(output.marked < LAUNCH_MARKED);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_passes),
        cmocka_unit_test(reports_are_taken_out),
        cmocka_unit_test(messages_of_the_launcher),
        cmocka_unit_test(long_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

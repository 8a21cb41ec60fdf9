/* Parts of the report: reduction keeps spikes, texts from files cannot break the page, ticks are round. */
/* ctest: quick */
#include "cleat/report.h"

#include "core/memory.h"
#include "report/html.h"
#include "report/plot.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 100000, LIMIT = 2000 };

static double x[COUNT], y[COUNT];

static void fill(void) {
    for (int i = 0; i < COUNT; ++i) {
        x[i] = i + 1;
        y[i] = sin(i * 0.37) + sin(i * 0.0001);
    }
}

static bool contains(const cleat_reduced_line *reduced, double at, double value) {
    for (size_t i = 0; i < reduced->count; ++i)
        if (reduced->x[i] == at && reduced->y[i] == value) return true;
    return false;
}

static cleat_reduced_line reduce(size_t count, size_t limit) {
    cleat_reduced_line reduced = {0};
    assert_true(cleat_reduce(x, y, count, limit, &reduced));
    return reduced;
}

static void no_spike_is_lost(void **state) {
    (void)state;
    fill();
    for (int i = 0; i < COUNT; i += 997) y[i] = i % 2 ? 50 + i : -50 - i; /* at most one of each sign in a bin */
    cleat_reduced_line reduced = reduce(COUNT, LIMIT);
    assert_true(reduced.count <= LIMIT && reduced.count > LIMIT / 2);
    for (int i = 0; i < COUNT; i += 997) assert_true(contains(&reduced, x[i], y[i]));
    for (size_t i = 1; i < reduced.count; ++i) assert_true(reduced.x[i] > reduced.x[i - 1]);
    assert_true(contains(&reduced, x[0], y[0]) && contains(&reduced, x[COUNT - 1], y[COUNT - 1]));
    for (size_t b = 0, bins = reduced.mean_count; b < bins; ++b) {
        size_t from = b * COUNT / bins, to = (b + 1) * COUNT / bins;
        double sum = 0;
        for (size_t i = from; i < to; ++i) sum += y[i];
        assert_true(fabs(reduced.mean_y[b] - sum / (double)(to - from)) < 1e-9);
        assert_true(reduced.mean_x[b] >= x[from] && reduced.mean_x[b] < x[to - 1] + 1);
    }
    cleat_reduced_line_free(&reduced);
}

static void gaps_stay_gaps(void **state) {
    (void)state;
    fill();
    y[777] = INFINITY;
    for (int i = 40000; i < 41000; ++i) y[i] = NAN;
    cleat_reduced_line reduced = reduce(COUNT, LIMIT);
    assert_true(reduced.count <= LIMIT);
    int gaps = 0;
    for (size_t i = 0; i < reduced.count; ++i) {
        gaps += isnan(reduced.y[i]) != 0;
        assert_false(isinf(reduced.y[i]));
        if (reduced.x[i] > 40001 && reduced.x[i] < 40999) assert_true(isnan(reduced.y[i]));
    }
    assert_true(gaps >= 6);
    cleat_reduced_line_free(&reduced);
}

static void short_lines_are_whole(void **state) {
    (void)state;
    fill();
    cleat_reduced_line reduced = reduce(LIMIT, LIMIT);
    assert_int_equal(reduced.count, LIMIT);
    assert_int_equal(reduced.mean_count, 0);
    assert_memory_equal(reduced.y, y, LIMIT * sizeof *y);
    cleat_reduced_line_free(&reduced);
    reduced = reduce(0, LIMIT);
    assert_int_equal(reduced.count, 0);
    cleat_reduced_line_free(&reduced);
    reduced = reduce(LIMIT + 1, 6); /* few uneven bins */
    assert_true(reduced.count <= 6);
    cleat_reduced_line_free(&reduced);
}

static void assert_html(const char *value, const char *expected) {
    cleat_string text = {0};
    cleat_html_text(&text, value);
    assert_string_equal(text.data ? text.data : "", expected);
    cleat_string_free(&text);
}

static void texts_are_escaped(void **state) {
    (void)state;
    assert_html("</script><b a=\"1\" b='2'>&amp;", "&lt;/script&gt;&lt;b a=&quot;1&quot; b=&#39;2&#39;&gt;&amp;amp;");
    assert_html("é € 😀", "é € 😀");
    assert_html("a\xff\xc3", "a\xEF\xBF\xBD\xEF\xBF\xBD"); /* not UTF-8 */
    assert_html("\xc0\xbc\xed\xa0\x80",
                "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"); /* overlong, surrogate */
    assert_html("\x01\x1b[31m", "\xEF\xBF\xBD\xEF\xBF\xBD[31m");
    assert_html(NULL, "");
}

static void json_may_stand_in_a_script(void **state) {
    cleat_string text = {0};
    (void)state;
    cleat_html_json_string(&text, "</script><!-- \" \\ \n ' é \xff");
    assert_string_equal(text.data, "\"\\u003c/script\\u003e\\u003c!-- \\u0022 \\u005c \\u000a \\u0027 é \\ufffd\"");
    cleat_string_free(&text);
}

static void numbers_are_json(void **state) {
    static const struct {
        double value;
        const char *text;
    } rows[] = {{1.25e-5, "1.25e-5"},  {1e-10, "1e-10"}, {1e100, "1e+100"},  {-0.5, "-0.5"},
                {123456, "1.2346e+5"}, {NAN, "null"},    {-INFINITY, "null"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_string text = {0};
        cleat_html_number(&text, rows[i].value, 5);
        assert_string_equal(text.data, rows[i].text);
        cleat_string_free(&text);
    }
}

static void values_are_shown_for_people(void **state) {
    char text[CLEAT_SHOWN];
    (void)state;
    assert_string_equal(cleat_show_duration(0.0021, text), "2.1 ms");
    assert_string_equal(cleat_show_duration(59.7, text), "1 min 00 s");
    assert_string_equal(cleat_show_duration(3725, text), "1 h 02 min");
    assert_string_equal(cleat_show_duration(NAN, text), "–");
    assert_string_equal(cleat_show_share(0.0042, text), "0.4 %");
    assert_string_equal(cleat_show_share(0.39, text), "39 %");
    assert_string_equal(cleat_show_count(11181642, text), "11.2 million");
    assert_string_equal(cleat_show_count(12345, text), "12,345");
    assert_string_equal(cleat_show_bytes(1824522240, text), "1.70 GiB");
    assert_string_equal(cleat_show_number(NAN, text), "–");
}

static void ticks_are_round(void **state) {
    double ticks[12];
    (void)state;
    assert_int_equal(cleat_axis_ticks(0, 1, false, 5, ticks), 6);
    assert_true(fabs(ticks[1] - 0.2) < 1e-12 && fabs(ticks[5] - 1) < 1e-12);
    assert_int_equal(cleat_axis_ticks(0.001, 100, true, 6, ticks), 6);
    assert_true(fabs(ticks[0] - 0.001) < 1e-12 && fabs(ticks[5] - 100) < 1e-9);
    assert_int_equal(cleat_axis_ticks(3, 3, false, 5, ticks), 0);
    for (double span = 1e-9; span < 1e12; span *= 7.3) {
        size_t count = cleat_axis_ticks(-span / 3, span, false, 5, ticks);
        assert_in_range(count, 2, 12);
    }
}

static void wrong_calls_are_refused(void **state) {
    const char *folders[] = {"/tmp/cleat-no-such-folder"};
    cleat_error error = {0};
    (void)state;
    assert_int_equal(cleat_report_write(folders, 0, NULL, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_report_write(folders, CLEAT_REPORT_RUNS + 1, NULL, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_report_write(folders, 1, NULL, &error), CLEAT_ERR_NOT_FOUND);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_spike_is_lost),
        cmocka_unit_test(gaps_stay_gaps),
        cmocka_unit_test(short_lines_are_whole),
        cmocka_unit_test(texts_are_escaped),
        cmocka_unit_test(json_may_stand_in_a_script),
        cmocka_unit_test(numbers_are_json),
        cmocka_unit_test(values_are_shown_for_people),
        cmocka_unit_test(ticks_are_round),
        cmocka_unit_test(wrong_calls_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

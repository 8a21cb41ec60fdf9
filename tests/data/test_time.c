/* Times as text: the accepted forms, and a round trip of every day of eight centuries. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "data/common/time.h"

static void parses_times(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t seconds;
        cleat_time_kind kind;
    } good[] = {
        {"1970-01-01", 0, CLEAT_TIME_LOCAL},
        {"2000-02-29", 951782400, CLEAT_TIME_LOCAL},
        {"1949-01", -662688000, CLEAT_TIME_LOCAL},
        {"2016-07 ", 1467331200, CLEAT_TIME_LOCAL},
        {"2016-07-01 00:00:00", 1467331200, CLEAT_TIME_LOCAL},
        {"01.07.2016 00:00", 1467331200, CLEAT_TIME_LOCAL},
        {" 2016-07-01 01:30 ", 1467336600, CLEAT_TIME_LOCAL},
        {"2016-07-01T00:00:01.000", 1467331201, CLEAT_TIME_LOCAL},
        {"2016-07-01T00:00:00Z", 1467331200, CLEAT_TIME_ZONED},
        {"2016-07-01 02:00:00+02:00", 1467331200, CLEAT_TIME_ZONED},
        {"2016-06-30T19:00:00 -0500", 1467331200, CLEAT_TIME_ZONED},
        {"2016-07-01T05:30+05:30", 1467331200, CLEAT_TIME_ZONED},
        {"1.7.2016", 1467331200, CLEAT_TIME_LOCAL},
        {"2016/07/01 00:00", 1467331200, CLEAT_TIME_LOCAL},
        {"1969-12-31 23:59:59", -1, CLEAT_TIME_LOCAL},
        {"0001-01-01", -62135596800, CLEAT_TIME_LOCAL},
        {"9999-12-31 23:59:59", 253402300799, CLEAT_TIME_LOCAL},
        {"1467331200", 1467331200, CLEAT_TIME_UNIX},
        {"-3600", -3600, CLEAT_TIME_UNIX},
        {"1467331200.0", 1467331200, CLEAT_TIME_UNIX},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; ++i) {
        int64_t seconds = 77;
        cleat_time_form form = {0};
        const char *wrong = cleat_time_parse(good[i].text, true, &seconds, &form);
        if (wrong || seconds != good[i].seconds || form.kind != good[i].kind)
            fail_msg("'%s': %s, %lld, kind %d", good[i].text, wrong ? wrong : "ok", (long long)seconds, form.kind);
    }
    static const struct {
        const char *text, *what;
    } bad[] = {
        {"", "is empty"},
        {"01/07/2016", "order of day and month"},
        {"2016/07-01", "is not a time"},
        {"13/01/2016", "order of day and month"},
        {"1/13/2016", "has the month first"},
        {"31.06.2016", "not a valid calendar day"},
        {"01.07.16", "no year of four digits"},
        {"1-7-2016", "order of day and month"},
        {"2016-7-1", "YYYY-MM-DD"},
        {"2016-13", "not a valid calendar day"},
        {"2016-07 01", "is not a time"},
        {"2016-Q3", "YYYY-MM,"},
        {"1949", "write YYYYMMDD, YYYYMM, years"},
        {"2016-13-01", "not a valid calendar day"},
        {"2016-00-10", "not a valid calendar day"},
        {"2015-02-29", "not a valid calendar day"},
        {"1900-02-29", "not a valid calendar day"},
        {"2016-07-01 24:00", "time of day"},
        {"2016-07-01 23:60", "time of day"},
        {"2016-07-01 23:59:60", "time of day"},
        {"2016-07-01T", "is not a time"},
        {"2016-07-01 1:00", "is not a time"},
        {"2016-07-01 01:00:00 PM", "is not a time"},
        {"2016-07-01 01:00:00+2", "is not a time"},
        {"2016-07-01 01:00:00+02:0", "is not a time"},
        {"2016-07-01 01:00:00.5", "fractions"},
        {"2016-07-01 01:00:00.", "is not a time"},
        {"1467331200.5", "fractions"},
        {"1467331200000", "milliseconds"},
        {"20160701", "write YYYYMMDD"},
        {"19000101", "write YYYYMMDD"},
        {"20991231", "write YYYYMMDD"},
        {"Jul 1 2016", "is not a time"},
        {"12345x", "is not a time"},
        {"0", "below the Unix seconds of 1973"},
        {"44926", "Excel's days"},
        {"200501", "YYYYMM"},
        {"1-Jul-2016", "name of a month"},
        {"07/2016", "month before the year"},
        {"0.5", "no year of four digits"},
        {"-", "is not a time"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        int64_t seconds = 77;
        cleat_time_form form = {0};
        const char *wrong = cleat_time_parse(bad[i].text, true, &seconds, &form);
        if (!wrong || !strstr(wrong, bad[i].what)) fail_msg("'%s': %s", bad[i].text, wrong ? wrong : "accepted");
        assert_int_equal(seconds, 77);
    }
    int64_t seconds;
    cleat_time_form form = {0};
    /* a later row: the first one determined the format */
    assert_null(cleat_time_parse("20160701", false, &seconds, &form));
    assert_null(cleat_time_parse("60", false, &seconds, &form));
    /* not dates, or not of these centuries */
    static const char *const plain[] = {"18991231", "21000101", "20161301", "20160001", "20160100", "20160132"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; ++i) {
        const char *wrong = cleat_time_parse(plain[i], true, &seconds, &form);
        if (!wrong || !strstr(wrong, "below the Unix seconds"))
            fail_msg("'%s': %s", plain[i], wrong ? wrong : "accepted");
    }
}

static void zones_and_orders_of_dates(void **state) {
    (void)state;
    static const struct {
        const char *text, *zone;
        int64_t offset;
    } zones[] = {{"2016-07-01T00:00:00Z", "Z", 0},
                 {"2016-07-01 02:00:00+0530", "+05:30", 19800},
                 {"2016-06-30 19:00-05", "-05:00", -18000},
                 {"2016-07-01 00:00+00:00", "+00:00", 0},
                 {"2016-07-01 00:00", "", 0},
                 {"1467331200", "", 0}};
    cleat_time_form form = {.day_first = true};
    int64_t seconds;
    for (size_t i = 0; i < sizeof zones / sizeof *zones; ++i) {
        assert_null(cleat_time_parse(zones[i].text, true, &seconds, &form));
        assert_string_equal(form.zone, zones[i].zone);
        assert_int_equal(form.offset, zones[i].offset);
    }
    static const char *const days[] = {"01/07/2016", "1/7/2016", "01-07-2016", "1.7.2016", "2016/07/01"};
    for (size_t i = 0; i < sizeof days / sizeof *days; ++i) {
        form = (cleat_time_form){.day_first = true};
        assert_null(cleat_time_parse(days[i], true, &seconds, &form));
        assert_int_equal(seconds, 1467331200);
        assert_true(form.day_first);
    }
    assert_non_null(strstr(cleat_time_parse("07/13/2016", true, &seconds, &form), "not a valid calendar day"));
}

/* Every day of eight centuries, and some seconds, formatted and parsed back. */
static void times_come_back(void **state) {
    (void)state;
    char text[CLEAT_TIME_TEXT], day_before[CLEAT_TIME_TEXT] = "";
    for (int64_t day = -150000; day < 150000; ++day) {
        int64_t time = day * 86400 + (day * 7919 % 86400 + 86400) % 86400, seconds = 0;
        cleat_time_form form = {0};
        cleat_time_text(time, text);
        assert_null(cleat_time_parse(text, true, &seconds, &form));
        assert_int_equal(seconds, time);
        assert_true(strcmp(day_before, text) < 0);
        strcpy(day_before, text);
    }
    assert_string_equal(cleat_time_text(INT64_MIN, text), "0001-01-01T00:00:00");
    assert_string_equal(cleat_time_text(INT64_MAX, text), "9999-12-31T23:59:59");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_times),
        cmocka_unit_test(zones_and_orders_of_dates),
        cmocka_unit_test(times_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Parsing and formatting of times: proleptic Gregorian calendar, no locale, no time zone database. */
#include "data/common/time.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char *const FORMS = "is not a time; write YYYY-MM-DD, YYYY-MM, YYYY-MM-DD HH:MM:SS, YYYY-MM-DDTHH:MM:SSZ "
                                 "(or +hh:mm in place of Z), or Unix seconds";
static const char *const MONTH_NAME = "has the name of a month; write YYYY-MM-DD (pandas: to_datetime(t))";
static const char *const YEAR_LAST = "has the month before the year; write YYYY-MM";
static const char *const SHORT_YEAR = "has no year of four digits; write YYYY-MM-DD";
static const char *const AMBIGUOUS = "is ambiguous in the order of day and month; write YYYY-MM-DD";
static const char *const MONTH_FIRST =
    "has the month first; write YYYY-MM-DD (pandas: to_datetime(t, format='%m/%d/%Y'))";
static const char *const NO_DAY = "is not a valid calendar day";
static const char *const NO_HOUR = "has an invalid time of day (00:00:00 to 23:59:59)";
static const char *const FRACTION = "has fractions of a second; times are whole seconds";
static const char *const SMALL =
    "is below the Unix seconds of 1973; write YYYYMMDD, YYYYMM, years, Excel's days and row "
    "numbers as YYYY-MM-DD";
static const char *const MILLISECONDS = "is too large for Unix seconds; milliseconds? divide by 1000";

enum { DAY = 86400, SMALLEST = 100000000, DAYS_TO_1970 = 719162 }; /* from 0001-01-01 */

static const char DIGITS[] = "0123456789";

static bool is_leap(int year) {
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

int cleat_days_in(int year, int month) {
    static const int days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && is_leap(year));
}

/* Days from 0001-01-01 to the first day of a year. */
static int64_t days_to_year(int year) {
    int64_t before = year - 1;
    return before * 365 + before / 4 - before / 100 + before / 400;
}

static int64_t days_to_date(int year, int month, int day) {
    static const int before[12] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    return days_to_year(year) + before[month - 1] + (month > 2 && is_leap(year)) + day - 1;
}

/* Reads exactly `digits` digits at *p and advances *p. */
static bool number(const char **p, int digits, int *value) {
    int read = 0;
    for (int i = 0; i < digits; ++i) {
        char c = (*p)[i];
        if (c < '0' || c > '9') return false;
        read = read * 10 + (c - '0');
    }
    *p += digits;
    *value = read;
    return true;
}

static bool letter(const char **p, char wanted) {
    if (**p != wanted) return false;
    ++*p;
    return true;
}

static void skip_spaces(const char **p) {
    while (**p == ' ') ++*p;
}

/* D.M.YYYY: dates with points have the day first, those with slashes or hyphens if their column shows it. */
static const char *date_of_day(const char **p, bool day_first, int *year, int *month, int *day) {
    number(p, (*p)[1] >= '0' && (*p)[1] <= '9' ? 2 : 1, day);
    const char mark = *(*p)++;
    const size_t digits = strspn(*p, DIGITS);
    if (isalpha((unsigned char)**p)) return MONTH_NAME;
    if (digits == 4) return YEAR_LAST;
    if (!number(p, digits == 1 ? 1 : 2, month) || !letter(p, mark) || !number(p, 4, year)) return SHORT_YEAR;
    return mark == '.' || day_first ? NULL : *month > 12 ? MONTH_FIRST : AMBIGUOUS;
}

/* YYYY-MM is the first day of the month. */
static const char *date_of_year(const char **p, int *month, int *day) {
    *day = 1;
    const char mark = *(*p)++;
    if (!number(p, 2, month)) return FORMS;
    return (*p)[strspn(*p, " ")] == 0 || (letter(p, mark) && number(p, 2, day)) ? NULL : FORMS;
}

static const char *parse_date(const char **p, bool day_first, int64_t *days) {
    int year = 0, month = 0, day = 0;
    const char *wrong =
        number(p, 4, &year) ? date_of_year(p, &month, &day) : date_of_day(p, day_first, &year, &month, &day);
    if (wrong) return wrong;
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > cleat_days_in(year, month)) return NO_DAY;
    *days = days_to_date(year, month, day);
    return NULL;
}

/* HH:MM, optionally with :SS and with zeros after a decimal point. */
static const char *parse_clock(const char **p, int64_t *seconds) {
    int hour, minute, second = 0;
    if (!number(p, 2, &hour) || !letter(p, ':') || !number(p, 2, &minute)) return FORMS;
    if (letter(p, ':') && !number(p, 2, &second)) return FORMS;
    if (hour > 23 || minute > 59 || second > 59) return NO_HOUR;
    if (letter(p, '.')) {
        if (**p < '0' || **p > '9') return FORMS;
        while (**p == '0') ++*p;
        if (**p >= '1' && **p <= '9') return FRACTION;
    }
    *seconds = (hour * 60 + minute) * 60 + second;
    return NULL;
}

/* Z, +hh:mm, +hhmm, +hh, or nothing. */
static const char *parse_zone(const char **p, cleat_time_form *form) {
    int hours, minutes = 0;
    const char sign = **p;
    if (!letter(p, '+') && !letter(p, '-')) {
        if (letter(p, 'Z') || letter(p, 'z')) *form = (cleat_time_form){.kind = CLEAT_TIME_ZONED, .zone = "Z"};
        return NULL;
    }
    if (!number(p, 2, &hours)) return FORMS;
    bool colon = letter(p, ':');
    if (!number(p, 2, &minutes) && colon) return FORMS;
    if (hours > 15 || minutes > 59) return FORMS;
    form->kind = CLEAT_TIME_ZONED;
    form->offset = (hours * 60 + minutes) * 60 * (sign == '+' ? 1 : -1);
    snprintf(form->zone, sizeof form->zone, "%c%02u:%02u", sign, (unsigned)hours % 100, (unsigned)minutes % 100);
    return NULL;
}

static const char *parse_calendar(const char *p, int64_t *seconds, cleat_time_form *form) {
    int64_t days = 0, clock = 0;
    cleat_time_form found = {.kind = CLEAT_TIME_LOCAL};
    const char *wrong = parse_date(&p, form->day_first, &days);
    if (!wrong && (*p == 'T' || *p == 't' || (*p == ' ' && p[1] >= '0' && p[1] <= '9'))) {
        ++p;
        wrong = parse_clock(&p, &clock);
        skip_spaces(&p);
        if (!wrong) wrong = parse_zone(&p, &found);
    }
    if (wrong) return wrong;
    skip_spaces(&p);
    if (*p) return FORMS;
    *seconds = (days - DAYS_TO_1970) * DAY + clock - found.offset;
    found.day_first = form->day_first;
    *form = found;
    return NULL;
}

/* Whole seconds; zeros after a decimal point are accepted. */
static const char *parse_unix(const char *p, bool first, int64_t *seconds, cleat_time_form *form) {
    int64_t value = 0;
    bool negative = letter(&p, '-');
    int digits = 0;
    for (; *p >= '0' && *p <= '9'; ++p, ++digits)
        if (digits < 18) value = value * 10 + (*p - '0');
    if (digits == 0) return FORMS;
    if (letter(&p, '.')) {
        while (*p == '0') ++p;
        if (*p >= '1' && *p <= '9') return FRACTION;
    }
    skip_spaces(&p);
    if (*p) return FORMS;
    if (digits > 11) return MILLISECONDS;
    if (first && !negative && value < SMALLEST) return SMALL;
    *seconds = negative ? -value : value;
    *form = (cleat_time_form){.kind = CLEAT_TIME_UNIX};
    return NULL;
}

const char *cleat_time_parse(const char *text, bool first, int64_t *seconds, cleat_time_form *form) {
    const char *p = text;
    skip_spaces(&p);
    if (!*p) return "is empty; every row requires a time";
    const size_t digits = strspn(p, DIGITS);
    const char *marks = digits == 4 ? "/-" : digits == 1 || digits == 2 ? "./-" : "";
    return p[digits] && strchr(marks, p[digits]) ? parse_calendar(p, seconds, form)
                                                 : parse_unix(p, first, seconds, form);
}

cleat_date cleat_date_of(int64_t seconds) {
    static const int64_t first = -(int64_t)DAYS_TO_1970 * DAY;
    int64_t end = (days_to_year(10000) - DAYS_TO_1970) * DAY;
    if (seconds < first) seconds = first;
    if (seconds >= end) seconds = end - 1;
    int64_t since = seconds - first, days = since / DAY;
    cleat_date date = {.year = (int)(days / 366) + 1, .month = 1, .clock = (int)(since % DAY)};
    while (days_to_year(date.year + 1) <= days) ++date.year;
    days -= days_to_year(date.year);
    for (; days >= cleat_days_in(date.year, date.month); ++date.month) days -= cleat_days_in(date.year, date.month);
    date.day = (int)days + 1;
    return date;
}

int64_t cleat_date_seconds(const cleat_date *date) {
    return (days_to_date(date->year, date->month, date->day) - DAYS_TO_1970) * DAY + date->clock;
}

const char *cleat_time_text(int64_t seconds, char text[CLEAT_TIME_TEXT]) {
    const cleat_date date = cleat_date_of(seconds);
    const unsigned clock = (unsigned)date.clock;
    snprintf(text, CLEAT_TIME_TEXT, "%04u-%02u-%02uT%02u:%02u:%02u", (unsigned)date.year % 10000,
             (unsigned)date.month % 100, (unsigned)date.day % 100, clock / 3600 % 100, clock / 60 % 60, clock % 60);
    return text;
}

/* Steps of a series that are not a constant number of seconds: calendar months, business days, and weeks with closed
 * days or hours (trading hours). */
#include "data/series/calendar.h"

#include "core/memory.h"
#include "data/common/time.h"

#include <stdio.h>
#include <stdlib.h>

enum { DAY = 86400, WEEK = 7 * DAY };

bool cleat_calendar_months(int64_t a, int64_t b, cleat_calendar *calendar) {
    const cleat_date from = cleat_date_of(a), to = cleat_date_of(b);
    const int months = (to.year - from.year) * 12 + to.month - from.month;
    const bool ends = from.day == cleat_days_in(from.year, from.month);
    const bool end = to.day == cleat_days_in(to.year, to.month);
    if (months < 1 || from.clock != to.clock) return false;
    if (from.day != to.day && !(end && (ends || to.day < from.day)) && !(ends && from.day < to.day)) return false;
    calendar->months = months;
    calendar->day = ends && end ? 31 : from.day > to.day ? from.day : to.day;
    return true;
}

static int64_t months_after(const cleat_calendar *c, int64_t time, int64_t steps) {
    cleat_date date = cleat_date_of(time);
    const int64_t month = date.month - 1 + steps * c->months, year = date.year + month / 12;
    if (year > 9999) return INT64_MIN;
    date.year = (int)year;
    date.month = (int)(month % 12) + 1;
    const int days = cleat_days_in(date.year, date.month);
    date.day = c->day < days ? c->day : days;
    return cleat_date_seconds(&date);
}

static int64_t of_week(int64_t time) {
    return (time % WEEK + WEEK) % WEEK;
}

static int64_t slots_after(const cleat_calendar *c, int64_t time, int64_t steps) {
    size_t next = 0, end = c->n_slots;
    if (steps == 0) return time;
    while (next < end) {
        const size_t middle = next + (end - next) / 2;
        if (c->slots[middle] <= of_week(time))
            next = middle + 1;
        else
            end = middle;
    }
    const int64_t slot = (int64_t)next + steps - 1, n = (int64_t)c->n_slots;
    return time - of_week(time) + slot / n * WEEK + c->slots[slot % n];
}

/* Business days since Monday 1969-12-29; a day of a weekend counts as the Friday before it. */
static int64_t business_days(int64_t time) {
    const int64_t of_monday = of_week(time + 3 * DAY), day = of_monday / DAY; /* 1970-01-01 was a Thursday */
    return (time + 3 * DAY - of_monday) / WEEK * 5 + (day < 5 ? day : 4);
}

static int64_t business_after(int64_t time, int64_t steps) {
    const int64_t days = business_days(time) + steps, week = days >= 0 ? days / 5 : -((4 - days) / 5);
    return steps == 0 ? time : week * WEEK + (days - 5 * week - 3) * DAY + of_week(time) % DAY;
}

int64_t cleat_calendar_after(const cleat_calendar *c, int64_t time, int64_t steps) {
    if (c->unknown && steps > 0) return INT64_MIN;
    if (c->months) return months_after(c, time, steps);
    if (c->business) return business_after(time, steps);
    return c->n_slots ? slots_after(c, time, steps) : time + steps * c->step;
}

int64_t cleat_calendar_steps(const cleat_calendar *c, int64_t from, int64_t to) {
    const cleat_date a = cleat_date_of(from), b = cleat_date_of(to);
    const int64_t steps = c->months     ? ((b.year - a.year) * 12 + b.month - a.month) / c->months
                          : c->business ? business_days(to) - business_days(from)
                                        : (to - from) / c->step;
    return steps > 0 && cleat_calendar_after(c, from, steps) == to ? steps : 0;
}

const char *cleat_calendar_text(const cleat_calendar *c, char text[CLEAT_STEP_TEXT]) {
    if (c->months)
        snprintf(text, CLEAT_STEP_TEXT, "%d month%s", c->months, c->months == 1 ? "" : "s");
    else if (c->business)
        snprintf(text, CLEAT_STEP_TEXT, "1 business day");
    else if (c->step % DAY == 0)
        snprintf(text, CLEAT_STEP_TEXT, "%lld day%s", (long long)c->step / DAY, c->step == DAY ? "" : "s");
    else
        snprintf(text, CLEAT_STEP_TEXT, "%lld s", (long long)c->step);
    return text;
}

static int by_value(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Times of a week with at least a third of the rows of the most frequent one. */
static cleat_status find_slots(const int64_t *times, int64_t rows, cleat_calendar *c, cleat_error *error) {
    int64_t *sorted = cleat_alloc((size_t)rows, sizeof *sorted), most = 0;
    if (!sorted) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the times of %lld rows", (long long)rows);
    for (int64_t r = 0; r < rows; ++r) sorted[r] = of_week(times[r]);
    qsort(sorted, (size_t)rows, sizeof *sorted, by_value);
    for (int pass = 0; pass < 2; ++pass)
        for (int64_t r = 0, end; r < rows; r = end) {
            for (end = r; end < rows && sorted[end] == sorted[r];) ++end;
            if (pass == 0 && end - r > most) most = end - r;
            if (pass == 1 && 3 * (end - r) >= most) sorted[c->n_slots++] = sorted[r];
        }
    c->slots = sorted;
    return CLEAT_OK;
}

/* Number of rows whose time follows by the rule from the previous one; by months on any day if none is set. */
static int64_t hits(const int64_t *times, int64_t rows, const cleat_calendar *c) {
    cleat_calendar other;
    int64_t found = 0;
    for (int64_t r = 1; r < rows; ++r)
        found += c->months && !c->day && cleat_calendar_months(times[r - 1], times[r], &other)
                     ? other.months == c->months
                     : cleat_calendar_after(c, times[r - 1], 1) == times[r];
    return found;
}

/* Whether each time is one or more steps after the previous one. */
static bool holds(const int64_t *times, int64_t rows, const cleat_calendar *c) {
    for (int64_t r = 1; r < rows; ++r)
        if (c->n_slots ? slots_after(c, times[r] - 1, 1) != times[r] : !cleat_calendar_steps(c, times[r - 1], times[r]))
            return false;
    return true;
}

/* The median interval of the times, and the months nearest to it. */
static cleat_status find_medians(const int64_t *times, int64_t rows, cleat_calendar *c, cleat_error *error) {
    const int64_t year = 31556952;
    int64_t *sorted = cleat_alloc((size_t)rows, sizeof *sorted);
    if (!sorted) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the times of %lld rows", (long long)rows);
    for (int64_t r = 1; r < rows; ++r) sorted[r - 1] = times[r] - times[r - 1];
    qsort(sorted, (size_t)rows - 1, sizeof *sorted, by_value);
    c->step = sorted[(rows - 2) / 2];
    c->months = (int)((12 * c->step + year / 2) / year);
    cleat_free(sorted);
    return CLEAT_OK;
}

/* The day of the month: the last one if all times are on it, else the latest day. */
static int find_day(const int64_t *times, int64_t rows) {
    int day = 0;
    bool ends = true;
    for (int64_t r = 0; r < rows; ++r) {
        const cleat_date date = cleat_date_of(times[r]);
        ends = ends && date.day == cleat_days_in(date.year, date.month);
        day = date.day > day ? date.day : day;
    }
    return ends ? 31 : day;
}

cleat_status cleat_calendar_detect(const int64_t *times, int64_t rows, cleat_series_rule rule, cleat_calendar *calendar,
                                   cleat_error *error) {
    static const int months_of[] = {[CLEAT_STEP_MONTH] = 1, [CLEAT_STEP_QUARTER] = 3, [CLEAT_STEP_YEAR] = 12};
    cleat_calendar found = {0};
    if (rows < 2) return CLEAT_OK;
    cleat_status status = find_medians(times, rows, &found, error);
    if (status) return status;
    const cleat_calendar plain = {.step = found.step}, business = {.step = DAY, .business = true};
    if (rule == CLEAT_STEP_DAY || rule == CLEAT_STEP_WEEK)
        found = (cleat_calendar){.step = rule == CLEAT_STEP_DAY ? DAY : WEEK};
    else if (rule == CLEAT_STEP_BUSINESS_DAY)
        found = business;
    else if (rule > CLEAT_STEP_WEEK)
        found.months = months_of[rule];
    else if (hits(times, rows, &business) > hits(times, rows, &plain))
        found = business;
    else if (!found.months || hits(times, rows, &found) < hits(times, rows, &plain))
        found = plain;
    found.day = find_day(times, rows);
    *calendar = found;
    return CLEAT_OK;
}

cleat_status cleat_calendar_find(const int64_t *times, int64_t rows, cleat_calendar *calendar, cleat_error *error) {
    cleat_calendar plain = {.step = calendar->step}, months = plain, slots = plain;
    cleat_status status = find_slots(times, rows, &slots, error);
    if (status) return status;
    const int64_t by_step = hits(times, rows, &plain), by_slots = hits(times, rows, &slots);
    const int64_t by_months =
        cleat_calendar_months(times[rows - 2], times[rows - 1], &months) ? hits(times, rows, &months) : 0;
    /* Within one week the slots are the rows themselves, which proves nothing. */
    const bool weekly = times[rows - 1] - times[0] >= WEEK && by_slots > by_step && by_slots > by_months;
    *calendar = weekly ? slots : by_months > by_step ? months : plain;
    if (!weekly) cleat_calendar_free(&slots);
    const int64_t omitted = rows - 1 - hits(times, rows, calendar); /* few are holidays, many are another rule */
    calendar->unknown = (omitted > 1 && 16 * omitted > rows - 1) || !holds(times, rows, calendar);
    return CLEAT_OK;
}

void cleat_calendar_free(cleat_calendar *calendar) {
    cleat_free(calendar->slots);
    calendar->slots = NULL;
    calendar->n_slots = 0;
}

/* The steps of a series: seconds, calendar months, business days, or the times of a week at which rows occur. */
#ifndef CLEAT_SRC_CALENDAR_H
#define CLEAT_SRC_CALENDAR_H

#include "cleat/series.h"

typedef struct cleat_calendar {
    int64_t step;   /* seconds; the rule unless one of the following is set */
    int months;     /* calendar months per step; 0: another rule */
    int day;        /* months: day of the month, or its last day in shorter ones */
    bool business;  /* Monday to Friday, at the same time of the day */
    int64_t *slots; /* [n_slots], seconds since the start of a week (a Thursday), ascending; owned */
    size_t n_slots; /* 0: another rule */
    bool unknown;   /* the rule fails for a row, or many are several steps apart: times past the end are unknown */
} cleat_calendar;

/* Whether b is one or more whole calendar months after a (on the same day, or both at the end of their month): sets
 * months and day. */
bool cleat_calendar_months(int64_t a, int64_t b, cleat_calendar *calendar);
/* The time `steps` (0 or more) after that of a row. INT64_MIN: unknown. */
int64_t cleat_calendar_after(const cleat_calendar *calendar, int64_t time, int64_t steps);
/* The number of steps from one time to a later one; 0: not a whole number. Not for slots. */
int64_t cleat_calendar_steps(const cleat_calendar *calendar, int64_t from, int64_t to);
/* Sets the step, months and business of the rule for the times [rows], in ascending order. CLEAT_STEP_AUTO: the rule
 * that most of them follow: their median interval, months of that length, or business days. */
cleat_status cleat_calendar_detect(const int64_t *times, int64_t rows, cleat_series_rule rule, cleat_calendar *calendar,
                                   cleat_error *error);
/* "3600 s", "7 days" or "1 month", in `text`, which is returned. */
enum { CLEAT_STEP_TEXT = 32 };
const char *cleat_calendar_text(const cleat_calendar *calendar, char text[CLEAT_STEP_TEXT]);
/* Chooses the rule that predicts most of the times [rows] from the previous ones. The rows are consecutive
 * regardless of their times; calendar->step, the shortest interval, is set. */
cleat_status cleat_calendar_find(const int64_t *times, int64_t rows, cleat_calendar *calendar, cleat_error *error);
void cleat_calendar_free(cleat_calendar *calendar);

#endif

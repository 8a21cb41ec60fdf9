/* Parsing and formatting of times. */
#ifndef CLEAT_SRC_TIME_H
#define CLEAT_SRC_TIME_H

#include "cleat/series.h"

typedef enum cleat_time_kind {
    CLEAT_TIME_LOCAL, /* date, or date and time, without a time zone */
    CLEAT_TIME_ZONED, /* with Z or an offset */
    CLEAT_TIME_UNIX
} cleat_time_kind;

/* How a time is written. */
typedef struct cleat_time_form {
    bool day_first; /* given: D/M/YYYY and D-M-YYYY are read; the rest is found */
    cleat_time_kind kind;
    int64_t offset; /* seconds that its clock is ahead of UTC */
    char zone[7];   /* "Z", the offset ("+05:30"), or "" */
} cleat_time_form;

/* Parses YYYY-MM-DD, YYYY/MM/DD or D.M.YYYY, with or without a time of day, YYYY-MM (its first day), or Unix seconds to
 * seconds since 1970-01-01 00:00 in UTC or the unspecified zone. In the `first` row of a column, numbers below 1e8
 * (YYYYMMDD, years, row numbers) are rejected. Returns NULL, or a message with cause and remedy. */
const char *cleat_time_parse(const char *text, bool first, int64_t *seconds, cleat_time_form *form);

/* A day of the Gregorian calendar, and the seconds since its midnight. */
typedef struct cleat_date {
    int year, month, day, clock;
} cleat_date;

/* The day of a time; times outside the years 1 to 9999 are clamped. */
cleat_date cleat_date_of(int64_t seconds);
int64_t cleat_date_seconds(const cleat_date *date);
int cleat_days_in(int year, int month);

#endif

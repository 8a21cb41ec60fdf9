/* Parsing and formatting of times. */
#ifndef CLEAT_SRC_TIME_H
#define CLEAT_SRC_TIME_H

#include "cleat/series.h"

typedef enum cleat_time_kind {
    CLEAT_TIME_LOCAL, /* date, or date and time, without a time zone */
    CLEAT_TIME_ZONED, /* with Z or an offset */
    CLEAT_TIME_UNIX
} cleat_time_kind;

/* Parses YYYY-MM-DD or DD.MM.YYYY, with or without a time of day, YYYY-MM (its first day), or Unix seconds to
 * seconds since 1970-01-01 00:00 in UTC or the unspecified zone. In the `first` row of a column, YYYYMMDD and
 * YYYY are rejected instead of being read as Unix seconds. Returns NULL, or a message with cause and
 * remedy. */
const char *cleat_time_parse(const char *text, bool first, int64_t *seconds, cleat_time_kind *kind);

/* A day of the Gregorian calendar, and the seconds since its midnight. */
typedef struct cleat_date {
    int year, month, day, clock;
} cleat_date;

/* The day of a time; times outside the years 1 to 9999 are clamped. */
cleat_date cleat_date_of(int64_t seconds);
int64_t cleat_date_seconds(const cleat_date *date);
int cleat_days_in(int year, int month);

#endif

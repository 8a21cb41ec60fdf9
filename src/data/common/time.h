/* Times as text, in both directions. */
#ifndef CLEAT_SRC_TIME_H
#define CLEAT_SRC_TIME_H

#include "cleat/series.h"

typedef enum cleat_time_kind {
    CLEAT_TIME_LOCAL, /* date, or date and time, without a word on the zone */
    CLEAT_TIME_ZONED, /* with Z or an offset */
    CLEAT_TIME_UNIX
} cleat_time_kind;

/* Seconds since 1970-01-01 00:00 (of UTC, or of the unnamed zone). `first`: the column's first time, where YYYYMMDD
 * must not pass for Unix seconds. Returns NULL, or what is wrong and what to write. */
const char *cleat_time_parse(const char *text, bool first, int64_t *seconds, cleat_time_kind *kind);

#endif

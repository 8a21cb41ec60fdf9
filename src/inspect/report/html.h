/* Text of an HTML page: escaping, numbers, durations. Everything that comes from a file goes through here. */
#ifndef CLEAT_SRC_REPORT_HTML_H
#define CLEAT_SRC_REPORT_HTML_H

#include "core/string.h"
#include "json/member.h"

/* Appends `value` (NULL: nothing) for text and for attributes in double quotes: & < > " ' are escaped, bytes
 * that are not UTF-8 and control characters are replaced. */
void cleat_html_text(cleat_string *out, const char *value);
/* Appends `format` unchanged, with its texts (%s) escaped. The other conversions are %d, %zu and %.1f. */
void cleat_html_add(cleat_string *out, const char *format, ...) CLEAT_PRINTF(2, 3);
/* Appends a JSON string that is safe within a <script>: < > & are escaped as well. */
void cleat_html_json_string(cleat_string *out, const char *value);
/* Appends a number with `digits` significant digits, "null" if it is not finite. Fast: for long series. */
void cleat_html_number(cleat_string *out, double value, int digits);

enum { CLEAT_SHOWN = 48 };
/* Formats a number for people: 4 significant digits, "–" if it is NaN. Returns `text`. */
const char *cleat_show_number(double value, char text[CLEAT_SHOWN]);
/* Seconds as "350 ms", "12.3 s", "12 min 30 s", "3 h 20 min", "2 d 3 h". */
const char *cleat_show_duration(double seconds, char text[CLEAT_SHOWN]);
/* Share 0..1 as "12 %" or "0.4 %"; "–" if it is NaN. */
const char *cleat_show_share(double share, char text[CLEAT_SHOWN]);
/* Bytes as "1.70 GiB"; "–" if it is NaN. */
const char *cleat_show_bytes(double bytes, char text[CLEAT_SHOWN]);
/* Count as "11.2 million", "1,234". */
const char *cleat_show_count(double count, char text[CLEAT_SHOWN]);

#endif

/* Numbers of spreadsheets, such as "1.007" for a thousand and seven. */
#include "data/series/numbers.h"

#include "data/common/source.h"

#include <stdio.h>
#include <string.h>

static const char DIGITS[] = "0123456789";

static char other_of(char mark) {
    return mark == '.' ? ',' : '.';
}

/* Number of groups of a `mark` and three digits after 1 to 3 digits without a leading zero; *end is their
 * end. 0: none, or more digits follow. */
static size_t groups_of(const char *digits, char mark, const char **end) {
    size_t size = strspn(digits, DIGITS), groups = 0;
    if (size < 1 || size > 3 || *digits == '0') return 0;
    for (*end = digits + size; **end == mark; *end += 4, ++groups)
        if (strspn(*end + 1, DIGITS) != 3) return 0;
    return groups;
}

/* Copies a number without its marks between thousands, and with a decimal point. */
static bool parse_with(const char *text, char decimal, char thousands, double *number) {
    char copy[64];
    size_t size = 0;
    for (; *text && size < sizeof copy; ++text)
        if (*text != thousands) copy[size++] = *text == decimal ? '.' : *text;
    return !*text && cleat_parse_decimal(copy, size, number);
}

bool cleat_marks_parse(cleat_number_marks *marks, const char *text, uint8_t *seen, double *number) {
    const char *digits = text + strspn(text, " +-"), *end = digits, mark = text[strcspn(text, ".,")];
    const size_t whole = strspn(digits, DIGITS), groups = mark ? groups_of(digits, mark, &end) : 0;
    const bool ends = !end[strspn(end, " ")];
    if (!mark) *seen |= whole == 3 ? CLEAT_SEEN_HUNDREDS : whole > 3 ? CLEAT_SEEN_LONG : 0;
    if (groups == 1 && ends) {
        char *first = marks->ambiguous[mark == ','];
        *seen |= whole == 1 && digits == text ? CLEAT_SEEN_AMBIGUOUS : 0; /* 99.125 may well be beside 100 */
        if (!*first) snprintf(first, sizeof marks->ambiguous[0], "%.*s", (int)(end - digits), digits);
    }
    if (mark == '.' && !marks->semicolons && !groups) marks->decimal = mark;
    if (!mark || !marks->semicolons) return cleat_parse_decimal(text, strlen(text), number);
    if (groups == 1 && ends) return parse_with(text, mark, mark == marks->thousands ? mark : 0, number);
    const bool thousands = groups > 0 && (ends || *end == other_of(mark));
    const char decimal = thousands ? other_of(mark) : mark;
    if (marks->thousands == decimal || (marks->decimal && marks->decimal != decimal)) return false;
    if (!parse_with(text, decimal, thousands ? mark : 0, number)) return false;
    marks->decimal = decimal;
    if (thousands) marks->thousands = mark;
    return true;
}

cleat_status cleat_marks_decide(const char *path, cleat_number_marks *marks, const uint8_t *seen, size_t columns,
                                bool *again, cleat_error *error) {
    const bool comma = marks->decimal ? marks->decimal == '.' : !*marks->ambiguous[0];
    const char *number = marks->ambiguous[comma], mark = comma ? ',' : '.';
    bool beside_hundreds = false;
    for (size_t c = 0; c < columns; ++c)
        beside_hundreds = beside_hundreds || seen[c] == (CLEAT_SEEN_AMBIGUOUS | CLEAT_SEEN_HUNDREDS);
    *again = false;
    if (!*number || (!marks->semicolons && (!beside_hundreds || marks->decimal))) return CLEAT_OK;
    if (marks->semicolons && !comma && *marks->ambiguous[1] && !marks->decimal)
        return cleat_fail(
            error, CLEAT_ERR_FORMAT,
            "%s: '%s' and '%s': which mark is between thousands? write numbers without marks between thousands", path,
            number, marks->ambiguous[1]);
    if (marks->semicolons && (marks->decimal || beside_hundreds)) {
        *again = true;
        marks->thousands = mark;
        cleat_log(CLEAT_LOG_WARNING, "%s: its numbers have a %s between thousands: '%s' is %.*s%s", path,
                  comma ? "comma" : "point", number, (int)strcspn(number, ".,"), number,
                  number + strcspn(number, ".,") + 1);
        return CLEAT_OK;
    }
    cleat_log(CLEAT_LOG_WARNING,
              "%s: '%s' is read with %s, not as thousands; if it means thousands, remove the marks between them", path,
              number, comma ? "a decimal comma" : "a decimal point");
    return CLEAT_OK;
}

/* One line of a log, scanned in one pass: logs have 10^5 lines, so no tree is built for each. */
#include "history/record_line.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 16 };

typedef struct scanner {
    const char *at, *end;
    locale_t plain;
    cleat_record_line *record;
} scanner;

static void skip_blanks(scanner *in) {
    while (in->at < in->end && strchr(" \t\r\n", *in->at)) ++in->at;
}

static bool take(scanner *in, char c) {
    skip_blanks(in);
    if (in->at >= in->end || *in->at != c) return false;
    ++in->at;
    return true;
}

/* The text between the quotes, still escaped. */
static bool scan_string(scanner *in, const char **text, size_t *length) {
    if (!take(in, '"')) return false;
    *text = in->at;
    for (; in->at < in->end; ++in->at) {
        if (*in->at == '\\')
            ++in->at;
        else if (*in->at == '"') {
            *length = (size_t)(in->at - *text);
            ++in->at;
            return true;
        }
    }
    return false;
}

static bool scan_word(scanner *in, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(in->end - in->at) < length || memcmp(in->at, word, length) != 0) return false;
    in->at += length;
    return true;
}

static bool scan_number(scanner *in, double *value) {
    char *end;
    const char *past = in->at;
    if (!strchr("-0123456789", *in->at)) return false;
    while (past < in->end && *past && strchr("+-.0123456789eE", *past)) ++past;
    *value = strtod_l(in->at, &end, in->plain);
    if (end == in->at || end != past) return false; /* no 0x10 */
    in->at = end;
    return true;
}

static void add_field(scanner *in, const char *name, size_t length, double value) {
    cleat_record_line *record = in->record;
    if (record->count == CLEAT_RECORD_FIELDS) return;
    record->fields[record->count++] = (cleat_record_field){name, length, value};
}

static bool scan_value(scanner *in, const char *name, size_t length, int depth);

static bool scan_members(scanner *in, int depth) {
    if (take(in, '}')) return true;
    do {
        const char *name;
        size_t length;
        if (!scan_string(in, &name, &length) || !take(in, ':') || !scan_value(in, name, length, depth)) return false;
    } while (take(in, ','));
    return take(in, '}');
}

static bool scan_elements(scanner *in, int depth) {
    if (take(in, ']')) return true;
    do
        if (!scan_value(in, NULL, 0, depth)) return false;
    while (take(in, ','));
    return take(in, ']');
}

/* `depth`: of the object that holds the value; fields are those of depth 1 and 2. name NULL: an element. */
static bool scan_value(scanner *in, const char *name, size_t length, int depth) {
    double number;
    skip_blanks(in);
    if (in->at >= in->end || depth >= MAX_DEPTH) return false;
    if (*in->at == '"') {
        const char *text;
        size_t size;
        if (!scan_string(in, &text, &size)) return false;
        if (depth == 1 && length == 4 && memcmp(name, "kind", 4) == 0 && size < CLEAT_RECORD_KIND) {
            memcpy(in->record->kind, text, size);
            in->record->kind[size] = 0;
        }
        return true;
    }
    if (take(in, '{')) return scan_members(in, name ? depth + 1 : MAX_DEPTH - 2);
    if (take(in, '[')) return scan_elements(in, depth + 1);
    if (scan_word(in, "true") || scan_word(in, "false")) return true;
    bool null = scan_word(in, "null");
    if (!null && !scan_number(in, &number)) return false;
    if (name && depth <= 2) add_field(in, name, length, null ? NAN : number);
    return true;
}

bool cleat_record_line_scan(const char *line, const char *end, locale_t plain, cleat_record_line *record) {
    scanner in = {line, end, plain, record};
    record->count = 0;
    record->kind[0] = 0;
    if (!take(&in, '{') || !scan_members(&in, 1)) return false;
    skip_blanks(&in);
    return in.at == in.end && record->kind[0];
}

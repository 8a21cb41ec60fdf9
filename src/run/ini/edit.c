/* Changing one value in the text of an INI file. The rules of the syntax are those of read.c and inih. */
#include "ini/edit.h"

#include <ctype.h>
#include <string.h>

typedef struct span {
    const char *start, *stop;
} span;

static span trim(span of) {
    while (of.start < of.stop && isspace((unsigned char)*of.start)) ++of.start;
    while (of.start < of.stop && isspace((unsigned char)of.stop[-1])) --of.stop;
    return of;
}

static bool equals(span of, const char *word) {
    of = trim(of);
    const size_t size = (size_t)(of.stop - of.start);
    return size == strlen(word) && memcmp(of.start, word, size) == 0;
}

/* [section] -> section. */
static span section_of(span line) {
    const char *close = memchr(line.start, ']', (size_t)(line.stop - line.start));
    return (span){line.start + 1, close ? close : line.start + 1};
}

/* The value of "name = value ; comment"; without a separator, nothing. `line` is trimmed. */
static bool split(span line, span *name, span *value) {
    const char *at = line.start;
    while (at < line.stop && *at != '=' && *at != ':') ++at;
    if (at == line.stop) return false;
    *name = (span){line.start, at};
    *value = (span){at + 1, line.stop};
    for (const char *c = at + 1; c < line.stop; ++c)
        if (*c == ';' && isspace((unsigned char)c[-1])) {
            value->stop = c;
            break;
        }
    *value = trim(*value);
    return true;
}

/* Where the change goes. */
typedef struct place {
    span value;        /* the value to replace; start NULL: there is none */
    const char *after; /* end of the section's last assignment, or of its first line; NULL: there is no such section */
    bool is_continued, is_twice;
} place;

static place find(const char *text, const char *end, const char *section, const char *name) {
    place found = {.after = NULL};
    bool inside = false, continues = false;
    for (const char *at = text, *next; at < end; at = next) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        next = stop ? stop + 1 : end;
        const span line = trim((span){at, stop ? stop : end});
        const bool is_empty = line.start == line.stop, is_comment = !is_empty && strchr(";#", *line.start);
        const bool is_rest = continues;
        continues = !is_empty && !is_comment && line.stop[-1] == '\\';
        span own, value;
        if (!is_rest && !is_empty && *line.start == '[')
            inside = equals(section_of(line), section);
        else if (!is_rest && !is_empty && !is_comment && inside && split(line, &own, &value) && equals(own, name)) {
            found.is_twice = found.value.start != NULL;
            found.value = value;
            found.is_continued = continues;
        }
        if (inside && !is_empty && !is_comment) found.after = next; /* a comment may belong to the next section */
    }
    return found;
}

cleat_status cleat_ini_edit(const char *text, size_t size, const char *section, const char *name, const char *value,
                            cleat_string *edited, cleat_error *error) {
    const char *end = text + size, *first_end = memchr(text, '\n', size);
    const char *newline = first_end && first_end > text && first_end[-1] == '\r' ? "\r\n" : "\n";
    const bool is_open = size > 0 && end[-1] != '\n'; /* the last line lacks its end */
    const place at = find(text, end, section, name);
    if (at.is_twice) return cleat_fail(error, CLEAT_ERR_PROFILE, "%s.%s occurs twice", section, name);
    if (at.is_continued)
        return cleat_fail(error, CLEAT_ERR_PROFILE, "the value of %s.%s is continued over several lines", section,
                          name);
    if (at.value.start) {
        cleat_string_add_bytes(edited, text, (size_t)(at.value.start - text));
        if (at.value.start > text && !isspace((unsigned char)at.value.start[-1])) cleat_string_add(edited, " ");
        cleat_string_add(edited, "%s", value);
        cleat_string_add_bytes(edited, at.value.stop, (size_t)(end - at.value.stop));
        return CLEAT_OK;
    }
    const char *after = at.after ? at.after : end;
    cleat_string_add_bytes(edited, text, (size_t)(after - text));
    if (after == end && is_open) cleat_string_add(edited, "%s", newline);
    if (!at.after) cleat_string_add(edited, "%s[%s]%s", size > 0 ? newline : "", section, newline);
    cleat_string_add(edited, "%s = %s%s", name, value, newline);
    cleat_string_add_bytes(edited, after, (size_t)(end - after));
    return CLEAT_OK;
}

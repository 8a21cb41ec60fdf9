/* Reads the text of a record through inih. inih has its own rules; this reader passes it modified lines, so
 * that the rules of cleat hold:
 * - inih cuts lines at 200 bytes; a longer line is an error here, and a backslash at its end continues it;
 * - inih takes any indented line for a continuation; here only lines that do continue one stay indented;
 * - inih continues after an error; here the first error is kept and reading stops. */
#include "ini/record.h"

#include "core/memory.h"
#include "core/string.h"
#include "platform/files.h"

#include <ctype.h>
#include <ini.h>
#include <stdio.h>
#include <string.h>

enum {
    LONGEST_LINE = 196,
    PLACE_BYTES = 640,
    NAME_BYTES = 64,
    VALUE_BYTES = CLEAT_INI_TEXT + LONGEST_LINE,
};

/* A "name = value" that may still be continued in the next line. */
typedef struct assignment {
    bool open;
    int line;
    char section[NAME_BYTES], name[NAME_BYTES], value[VALUE_BYTES], place[PLACE_BYTES];
} assignment;

typedef struct reader {
    const cleat_record *record;
    const char *name; /* name of the file */
    const char *text, *end;
    int line;
    char place[PLACE_BYTES]; /* "rna.ini:12: heads = 8" for the current line */
    bool continues;          /* the current line ends with a backslash */
    bool continued;          /* the current line continues the previous one */
    assignment pending;
    /* [keys] The line of this text that set each key, 0 if none did. */
    int *given;
    /* The line in which each section begins, 0 if it does not occur. */
    int begun[CLEAT_INI_SECTIONS];
    cleat_status status;
    int failed_line;
    cleat_error *error;
} reader;

static char *fail_here(reader *in, cleat_status status) {
    if (!in->status) {
        in->status = status;
        in->failed_line = in->line;
    }
    return NULL;
}

static void trim_end(char *text) {
    size_t size = strlen(text);
    while (size && isspace((unsigned char)text[size - 1])) text[--size] = 0;
}

/* Checks that a line "[name] ..." names a section of the schema. inih reports a section only with its first
 * key. */
static cleat_status begin_section(reader *in, const char *line) {
    char section[LONGEST_LINE + 1];
    const cleat_schema *schema = in->record->schema;
    const char *close = strchr(line, ']');
    if (!close) return CLEAT_OK; /* inih reports the error */
    snprintf(section, sizeof section, "%.*s", (int)(close - line - 1), line + 1);
    cleat_status status = cleat_schema_require_section(schema, section, in->place, in->error);
    for (size_t i = 0; !status && schema->sections[i].name; ++i)
        if (strcmp(schema->sections[i].name, section) == 0 && !in->begun[i]) in->begun[i] = in->line;
    return status;
}

/* Copies the next line without its end and outer blanks to `line` [LONGEST_LINE + 1], and sets in->place. */
static cleat_status read_line(reader *in, char *line) {
    const char *start = in->text;
    const char *stop = memchr(start, '\n', (size_t)(in->end - start));
    in->text = stop ? stop + 1 : in->end;
    if (!stop) stop = in->end;
    ++in->line;
    while (start < stop && isspace((unsigned char)*start)) ++start;
    while (start < stop && isspace((unsigned char)stop[-1])) --stop;
    size_t size = (size_t)(stop - start);
    snprintf(in->place, sizeof in->place, "%.400s:%d: %.*s%s", in->name, in->line,
             (int)(size > LONGEST_LINE ? 60 : size), start, size > LONGEST_LINE ? "..." : "");
    if (memchr(start, 0, size))
        return cleat_fail(in->error, CLEAT_ERR_PROFILE, "%s: the line contains a zero byte; is this a text file?",
                          in->place);
    if (size > LONGEST_LINE)
        return cleat_fail(
            in->error, CLEAT_ERR_PROFILE,
            "%s: the line has %zu characters, the maximum is %d; end a line with a backslash to continue on the next",
            in->place, size, LONGEST_LINE);
    memcpy(line, start, size);
    line[size] = 0;
    return CLEAT_OK;
}

/* Whether a line sets a key of the section of the line before. */
static bool sets_key(const reader *in, const char *line) {
    char name[NAME_BYTES];
    const size_t length = strcspn(line, " \t=");
    const bool fits = length < sizeof name && line[length + strspn(line + length, " \t")] == '=';
    snprintf(name, sizeof name, "%.*s", (int)length, line);
    return fits && cleat_schema_find(in->record->schema, in->pending.section, name);
}

/* The ini_reader callback; behaves like fgets. */
static char *next_line(char *buffer, int size, void *stream) {
    reader *in = stream;
    char line[LONGEST_LINE + 1];
    if (in->status || in->text >= in->end) return NULL;
    cleat_status status = read_line(in, line);
    if (status) return fail_here(in, status);

    in->continued = in->continues;
    if (in->continued && sets_key(in, line))
        return fail_here(in, cleat_fail(in->error, CLEAT_ERR_PROFILE,
                                        "%s: a backslash at the end of the line before continues it here; remove it",
                                        in->place));
    /* An empty line is not plain either, because strchr also finds the terminating zero. */
    bool plain = in->continued || !strchr("[;#", *line);
    size_t length = strlen(line);
    in->continues = plain && length && line[length - 1] == '\\';
    if (in->continues) {
        line[length - 1] = 0;
        trim_end(line);
    }
    if (!in->continued && *line == '[' && (status = begin_section(in, line))) return fail_here(in, status);
    int used = snprintf(buffer, (size_t)size, "%s%s\n", in->continued ? " " : "", line);
    if (used < 0 || used >= size)
        return fail_here(in, cleat_fail(in->error, CLEAT_ERR_PROFILE, "%s: the line is too long", in->place));
    return buffer;
}

/* Applies the pending assignment to the record. */
static void flush(reader *in) {
    assignment *pending = &in->pending;
    const cleat_key *key;
    if (!pending->open || in->status) return;
    pending->open = false;
    cleat_status status =
        cleat_schema_require(in->record->schema, pending->section, pending->name, pending->place, &key, in->error);
    if (!status) {
        int *given = &in->given[key - in->record->schema->keys];
        if (*given)
            status = cleat_fail(in->error, CLEAT_ERR_PROFILE, "%s: duplicate %s.%s; first set in line %d",
                                pending->place, key->section, key->name, *given);
        *given = pending->line;
    }
    if (!status) status = cleat_record_assign(in->record, key, pending->value, pending->place, in->error);
    const char *at = pending->value;
    for (size_t bytes; *at && (bytes = cleat_utf8_size(at)); at += bytes) continue;
    if (!status && *at && access(pending->value, F_OK) != 0) /* on Linux a path may have any bytes */
        cleat_log(CLEAT_LOG_WARNING, "%s: is not UTF-8; save the file as UTF-8", pending->place);
    if (status) in->status = status, in->failed_line = pending->line;
}

/* The ini_handler callback: receives one "name = value", or a continuation of its value. */
static int handle_pair(void *user, const char *section, const char *name, const char *value) {
    reader *in = user;
    assignment *pending = &in->pending;
    if (in->continued && pending->open) {
        size_t used = strlen(pending->value);
        snprintf(pending->value + used, sizeof pending->value - used, "%s", value);
        return 1;
    }
    flush(in);
    if (in->status) return 0;
    if (!*section)
        return fail_here(in, cleat_fail(in->error, CLEAT_ERR_PROFILE, "%s: key before the first [section]",
                                        in->place)) != NULL;
    pending->open = true;
    pending->line = in->line;
    snprintf(pending->section, sizeof pending->section, "%s", section);
    snprintf(pending->name, sizeof pending->name, "%s", name);
    snprintf(pending->value, sizeof pending->value, "%s", value);
    memcpy(pending->place, in->place, sizeof pending->place);
    return 1;
}

/* Sets in->place to line `number` of the file, for lines that inih itself rejects. */
static void place_of_line(reader *in, const char *text, int number) {
    char line[LONGEST_LINE + 1];
    in->text = text;
    in->line = 0;
    while (in->line < number && in->text < in->end)
        if (read_line(in, line) != CLEAT_OK) return;
}

/* Fails if a required key was given neither in this text nor before. */
static cleat_status require_given(reader *in) {
    const cleat_schema *schema = in->record->schema;
    for (size_t i = 0; schema->keys[i].name; ++i) {
        const cleat_key *key = &schema->keys[i];
        size_t section = 0;
        cleat_string allowed = {0};
        if (key->initial || in->record->places[i]) continue;
        while (strcmp(schema->sections[section].name, key->section) != 0) ++section;
        cleat_value_allowed(key, &allowed);
        cleat_fail(in->error, CLEAT_ERR_PROFILE, "%.400s:%d: %s.%s is missing; add '%s = ...' to [%s]: %s (%s)",
                   in->name, in->begun[section] ? in->begun[section] : in->line, key->section, key->name, key->name,
                   key->section, allowed.data ? allowed.data : "", key->help);
        cleat_string_free(&allowed);
        return CLEAT_ERR_PROFILE;
    }
    return CLEAT_OK;
}

cleat_status cleat_record_read_text(const cleat_record *record, const char *name, const char *text, size_t size,
                                    cleat_error *error) {
    reader *in = cleat_alloc(1, sizeof *in);
    int *given = cleat_alloc(cleat_keys_count(record->schema->keys), sizeof *given);
    cleat_status status = CLEAT_ERR_MEMORY;
    if (!in || !given) {
        cleat_fail(error, status, "%s: out of memory", name);
        goto done;
    }
    *in = (reader){.record = record, .name = name, .text = text, .end = text + size, .given = given, .error = error};
    int bad_line = ini_parse_stream(next_line, in, handle_pair, in);
    flush(in);
    status = in->status;
    if (bad_line > 0 && (!status || bad_line < in->failed_line)) {
        place_of_line(in, text, bad_line);
        status = cleat_fail(error, CLEAT_ERR_PROFILE,
                            "%s: neither 'key = value', nor a [section], nor a comment (# or ;)", in->place);
    } else if (bad_line < 0) {
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", name);
    }
    if (!status) status = require_given(in);
done:
    cleat_free(given);
    cleat_free(in);
    return status;
}

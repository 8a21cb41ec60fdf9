/* Reading a profile's text through inih, and assignments of the command line.
 *
 * inih has its own rules; this reader hands it lines such that ours hold:
 * - it cuts lines at 200 bytes: longer ones are an error here, and a last backslash continues a line;
 * - it takes any indented line for a continuation: indentation is removed, but for lines that do continue
 * one;
 * - it goes on after an error: the first one is kept and reading ends. */
#include "profile/schema.h"

#include "core/files.h"
#include "core/memory.h"

#include <ctype.h>
#include <ini.h>
#include <stdio.h>
#include <string.h>

enum {
    LONGEST_LINE = 196,
    PLACE_BYTES = 640,
    NAME_BYTES = 64,
    VALUE_BYTES = CLEAT_PROFILE_TEXT + LONGEST_LINE,
};

/* A "name = value" whose continuation lines may still come. */
typedef struct assignment {
    bool open;
    int line;
    char section[NAME_BYTES], name[NAME_BYTES], value[VALUE_BYTES], place[PLACE_BYTES];
} assignment;

typedef struct reader {
    cleat_profile *profile;
    const char *name; /* of the file */
    const char *text, *end;
    int line;
    char place[PLACE_BYTES]; /* "rna.ini:12: heads = 8" of the current line */
    bool continues;          /* the current line ends in a backslash */
    bool continued;          /* the current line continues the one before */
    assignment pending;
    int *given; /* the line that gave each key in this text, 0 where none did */
    cleat_status status;
    int failed_line;
    cleat_error *error;
} reader;

static char *fail_here(reader *in, cleat_status status) {
    if (in->status == CLEAT_OK) {
        in->status = status;
        in->failed_line = in->line;
    }
    return NULL;
}

static void trim_end(char *text) {
    size_t size = strlen(text);
    while (size && isspace((unsigned char)text[size - 1])) text[--size] = 0;
}

/* "[name] ...": is it a section of ours? inih itself reports sections only with their first key. */
static cleat_status check_section(reader *in, const char *line) {
    char section[LONGEST_LINE + 1];
    const char *close = strchr(line, ']');
    if (!close) return CLEAT_OK; /* inih says so */
    snprintf(section, sizeof section, "%.*s", (int)(close - line - 1), line + 1);
    return cleat_section_require(section, in->place, in->error);
}

/* Copies the next line, without its end and outer blanks, to `line` [LONGEST_LINE + 1]; sets in->place. */
static cleat_status take_line(reader *in, char *line) {
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
        return cleat_fail(in->error, CLEAT_ERR_PROFILE, "%s: there is a zero byte in the line; is this a text file?",
                          in->place);
    if (size > LONGEST_LINE)
        return cleat_fail(in->error, CLEAT_ERR_PROFILE,
                          "%s: the line has %zu characters, %d are allowed; end a line with a backslash to go on "
                          "in the next",
                          in->place, size, LONGEST_LINE);
    memcpy(line, start, size);
    line[size] = 0;
    return CLEAT_OK;
}

/* ini_reader: like fgets. */
static char *next_line(char *buffer, int size, void *stream) {
    reader *in = stream;
    char line[LONGEST_LINE + 1];
    if (in->status != CLEAT_OK || in->text >= in->end) return NULL;
    cleat_status status = take_line(in, line);
    if (status != CLEAT_OK) return fail_here(in, status);

    in->continued = in->continues;
    bool plain = in->continued || !strchr("[;#", *line); /* the terminating zero counts, too: an empty line */
    size_t length = strlen(line);
    in->continues = plain && length && line[length - 1] == '\\';
    if (in->continues) {
        line[length - 1] = 0;
        trim_end(line);
    }
    if (!in->continued && *line == '[') {
        status = check_section(in, line);
        if (status != CLEAT_OK) return fail_here(in, status);
    }
    int used = snprintf(buffer, (size_t)size, "%s%s\n", in->continued ? " " : "", line);
    if (used < 0 || used >= size)
        return fail_here(in, cleat_fail(in->error, CLEAT_ERR_PROFILE, "%s: the line is too long", in->place));
    return buffer;
}

/* Applies the pending assignment. */
static void flush(reader *in) {
    assignment *pending = &in->pending;
    const cleat_key *key;
    if (!pending->open || in->status != CLEAT_OK) return;
    pending->open = false;
    cleat_status status = cleat_key_require(pending->section, pending->name, pending->place, &key, in->error);
    if (status == CLEAT_OK) {
        int *given = &in->given[key - cleat_keys];
        if (*given)
            status = cleat_fail(in->error, CLEAT_ERR_PROFILE, "%s: %s.%s is given a second time; line %d gave it first",
                                pending->place, key->section, key->name, *given);
        *given = pending->line;
    }
    if (status == CLEAT_OK) status = cleat_profile_assign(in->profile, key, pending->value, pending->place, in->error);
    if (status == CLEAT_OK) return;
    in->status = status;
    in->failed_line = pending->line;
}

/* ini_handler: one "name = value", or what continues its value. */
static int take_pair(void *user, const char *section, const char *name, const char *value) {
    reader *in = user;
    assignment *pending = &in->pending;
    if (in->continued && pending->open) {
        size_t used = strlen(pending->value);
        snprintf(pending->value + used, sizeof pending->value - used, "%s", value);
        return 1;
    }
    flush(in);
    if (in->status != CLEAT_OK) return 0;
    if (!*section) {
        fail_here(in, cleat_fail(in->error, CLEAT_ERR_PROFILE, "%s: stands before the first [section]", in->place));
        return 0;
    }
    pending->open = true;
    pending->line = in->line;
    snprintf(pending->section, sizeof pending->section, "%s", section);
    snprintf(pending->name, sizeof pending->name, "%s", name);
    snprintf(pending->value, sizeof pending->value, "%s", value);
    memcpy(pending->place, in->place, sizeof pending->place);
    return 1;
}

/* The text of line `number` of the file, for the lines inih itself rejects. */
static void place_of_line(reader *in, const char *text, int number) {
    char line[LONGEST_LINE + 1];
    in->text = text;
    in->line = 0;
    while (in->line < number && in->text < in->end)
        if (take_line(in, line) != CLEAT_OK) return;
}

cleat_status cleat_profile_read_text(cleat_profile *profile, const char *name, const char *text, size_t size,
                                     cleat_error *error) {
    reader *in = cleat_alloc(1, sizeof *in);
    int *given = cleat_alloc(cleat_key_count(), sizeof *given);
    cleat_status status = CLEAT_ERR_MEMORY;
    if (!in || !given) {
        cleat_fail(error, status, "%s: out of memory", name);
        goto done;
    }
    *in = (reader){.profile = profile, .name = name, .text = text, .end = text + size, .given = given, .error = error};
    int bad_line = ini_parse_stream(next_line, in, take_pair, in);
    flush(in);
    status = in->status;
    if (bad_line > 0 && (status == CLEAT_OK || bad_line < in->failed_line)) {
        place_of_line(in, text, bad_line);
        status = cleat_fail(error, CLEAT_ERR_PROFILE,
                            "%s: is neither 'key = value' nor a [section] nor a comment (# or ;)", in->place);
    } else if (bad_line < 0) {
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", name);
    }
done:
    cleat_free(given);
    cleat_free(in);
    return status;
}

cleat_status cleat_profile_read(cleat_profile *profile, const char *path, cleat_error *error) {
    char *text;
    size_t size;
    cleat_status status = cleat_file_read(path, &text, &size, error);
    if (status != CLEAT_OK) return status;
    status = cleat_profile_read_text(profile, path, text, size, error);
    cleat_free(text);
    return status;
}

/* --- assignments ---------------------------------------------------------------------------------------------- */

/* Copies [start, stop) without outer blanks; false where it does not fit. */
static bool copy_part(char *into, size_t room, const char *start, const char *stop) {
    while (start < stop && isspace((unsigned char)*start)) ++start;
    while (start < stop && isspace((unsigned char)stop[-1])) --stop;
    if ((size_t)(stop - start) >= room) return false;
    memcpy(into, start, (size_t)(stop - start));
    into[stop - start] = 0;
    return true;
}

/* "epochs=3": the section is missing; which one has such a key? */
static cleat_status no_section(const char *name, const char *place, cleat_error *error) {
    for (const cleat_key *key = cleat_keys; key->name; ++key)
        if (strcmp(key->name, name) == 0)
            return cleat_fail(error, CLEAT_ERR_PROFILE, "%s: write section.key=value; did you mean %s.%s=...?", place,
                              key->section, name);
    return cleat_fail(error, CLEAT_ERR_PROFILE, "%s: write section.key=value, as in train.epochs=3", place);
}

cleat_status cleat_profile_set(cleat_profile *profile, const char *assignment_text, cleat_error *error) {
    char place[PLACE_BYTES], section[NAME_BYTES], name[NAME_BYTES], value[VALUE_BYTES];
    const char *equals = strchr(assignment_text, '='), *end = assignment_text + strlen(assignment_text);
    const char *dot = memchr(assignment_text, '.', (size_t)((equals ? equals : end) - assignment_text));
    snprintf(place, sizeof place, "--set %.500s", assignment_text);
    if (!equals) return no_section("", place, error);
    if (!dot) {
        if (!copy_part(name, sizeof name, assignment_text, equals)) name[0] = 0;
        return no_section(name, place, error);
    }
    if (!copy_part(section, sizeof section, assignment_text, dot) || !copy_part(name, sizeof name, dot + 1, equals) ||
        !copy_part(value, sizeof value, equals + 1, end))
        return cleat_fail(error, CLEAT_ERR_PROFILE, "%s: is too long", place);
    const cleat_key *key;
    cleat_status status = cleat_key_require(section, name, place, &key, error);
    if (status != CLEAT_OK) return status;
    return cleat_profile_assign(profile, key, value, place, error);
}

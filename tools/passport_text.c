/* The text of a passport: lines in sections, without names of users, hosts and folders, and with a check sum. */
#include "passport.h"
#include "platform/files.h"
#include "platform/system.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SEAL_BYTES = 128 };

/* Names that identify no person, and that occur as words in messages and values. */
static const char *const common[] = {"root",   "localhost", "user",  "users",  "nobody", "gpu",     "cpu",
                                     "amd",    "nvidia",    "intel", "cuda",   "linux",  "debian",  "ubuntu",
                                     "server", "desktop",   "cleat", "docker", "laptop", "machine", NULL};

static void add_name(passport_text *text, const char *name) {
    if (!name || strlen(name) < 2 || text->name_count == PASSPORT_NAMES) return;
    for (const char *const *word = common; *word; ++word)
        if (strcmp(name, *word) == 0) return;
    snprintf(text->names[text->name_count++], PASSPORT_NAME, "%s", name);
}

static void find_names(passport_text *text) {
    static const char *const variables[] = {"USER", "LOGNAME", "SUDO_USER", "HOSTNAME", NULL};
    char host[PASSPORT_NAME] = "";
    const struct passwd *user = getpwuid(getuid());
    if (user) add_name(text, user->pw_name);
    for (const char *const *variable = variables; *variable; ++variable) add_name(text, getenv(*variable));
    if (gethostname(host, sizeof host - 1) != 0) return;
    add_name(text, host);
    host[strcspn(host, ".")] = 0;
    add_name(text, host);
}

/* gertrude-laptop and gertrude_2 are two words: better too much hidden than too little. */
static bool is_word(char c) {
    return isalnum((unsigned char)c);
}

/* Replaces value[at .. at + length) by `by`, as far as `size` allows. */
static void replace(char *value, size_t size, size_t at, size_t length, const char *by) {
    char rest[2048];
    snprintf(rest, sizeof rest, "%s", value + at + length);
    snprintf(value + at, size - at, "%s%s", by, rest);
}

static void hide_name(char *value, size_t size, const char *name) {
    const size_t length = strlen(name);
    for (char *at = value; (at = strstr(at, name)); ++at) {
        const bool begins = at == value || !is_word(at[-1]), ends = !is_word(at[length]);
        if (begins && ends) replace(value, size, (size_t)(at - value), length, "NAME");
    }
}

static bool is_system_folder(const char *path) {
    static const char *const folders[] = {"/dev/", "/sys/", "/proc/", "/etc/", "/usr/", "/opt/rocm", "/lib"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; ++i)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0) return true;
    return false;
}

static void hide_folders(char *value, size_t size) {
    for (char *at = value; (at = strchr(at, '/')); ++at) {
        const bool begins = at == value || strchr(" '\"(=:,<[~", at[-1]);
        const size_t length = strcspn(at, " '\"),;>]");
        if (!begins || length < 2) continue;
        if (is_system_folder(at))
            at += length - 1;
        else
            replace(value, size, (size_t)(at - value), length, "FOLDER");
    }
}

static void anonymise(const passport_text *text, char *value, size_t size) {
    hide_folders(value, size);
    for (size_t i = 0; i < text->name_count; ++i) hide_name(value, size, text->names[i]);
}

void passport_begin(passport_text *text, const char *comment) {
    *text = (passport_text){.limit = PASSPORT_BYTES};
    find_names(text);
    cleat_string_add(&text->lines, "%s", comment);
}

void passport_section(passport_text *text, const char *name) {
    cleat_string_add(&text->lines, "\n[%s]\n", name);
}

/* A value is one line of printable characters without blanks at its ends, so that mail and web pages keep it. */
static void make_line(char *value) {
    char *to = value;
    for (const char *from = value; *from; ++from) {
        const char c = *from == '\n' || *from == '\t' || *from == '\r' ? ' ' : *from;
        if (c == ' ' && (to == value || to[-1] == ' ')) continue;
        if ((unsigned char)c >= 32 && (unsigned char)c < 127) *to++ = c;
    }
    while (to > value && to[-1] == ' ') --to;
    *to = 0;
}

static void cut(char *value) {
    if (strlen(value) > PASSPORT_VALUE) strcpy(value + PASSPORT_VALUE - 3, "...");
}

static void add_line(passport_text *text, const char *key, char *value, size_t size) {
    char line[PASSPORT_VALUE * 2 + 64], name[PASSPORT_VALUE];
    snprintf(name, sizeof name, "%s", key);
    anonymise(text, name, sizeof name);
    make_line(value);
    anonymise(text, value, size);
    cut(value);
    snprintf(line, sizeof line, "%s = %s\n", name, *value ? value : "-");
    if (text->lines.size + strlen(line) + SEAL_BYTES <= text->limit)
        cleat_string_add(&text->lines, "%s", line);
    else
        ++text->left_out;
}

void passport_line(passport_text *text, const char *key, const char *format, ...) {
    char value[1024];
    va_list rest;
    va_start(rest, format);
    vsnprintf(value, sizeof value, format, rest);
    va_end(rest);
    add_line(text, key, value, sizeof value);
}

void passport_lines(passport_text *text, const char *lines) {
    char key[PASSPORT_VALUE], value[1024];
    for (const char *line = lines; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        const size_t length = strcspn(line, "\n");
        const char *equals = strstr(line, " = ");
        if (!equals || equals >= line + length || equals == line || equals - line >= PASSPORT_VALUE) continue;
        snprintf(key, sizeof key, "%.*s", (int)(equals - line), line);
        snprintf(value, sizeof value, "%.*s", (int)(line + length - equals - 3), equals + 3);
        add_line(text, key, value, sizeof value);
    }
}

/* Length of the part of a line that becomes a line of the passport: to a blank, if there is one in its second half. */
static size_t part_length(const char *line, size_t length) {
    if (length <= PASSPORT_VALUE) return length;
    for (size_t at = PASSPORT_VALUE; at > PASSPORT_VALUE / 2; --at)
        if (line[at] == ' ') return at;
    return PASSPORT_VALUE;
}

/* Names and folders are replaced line by line before the line is cut into parts, since a cut could hide one. */
void passport_message(passport_text *text, const char *key, const char *message, int lines) {
    char line[2048], part[PASSPORT_VALUE + 1], name[PASSPORT_VALUE];
    int count = 0;
    for (const char *at = message; *at && count < lines; at += strcspn(at, "\n"), at += *at == '\n') {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        make_line(line);
        anonymise(text, line, sizeof line);
        for (const char *rest = line; *rest && count < lines; rest += strspn(rest, " ")) {
            const size_t length = part_length(rest, strlen(rest));
            snprintf(part, sizeof part, "%.*s", (int)length, rest);
            snprintf(name, sizeof name, "%s.%d", key, ++count);
            add_line(text, name, part, sizeof part);
            rest += length;
        }
    }
}

/* CRC-32 as in zlib. */
static uint32_t check_sum(const char *data, size_t size) {
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < size; ++i) {
        crc ^= (unsigned char)data[i];
        for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    }
    return ~crc;
}

/* The sum is that of all lines before the section, each with its newline; empty lines and comments do not count. */
void passport_seal(passport_text *text) {
    cleat_string kept = {0};
    size_t lines = 0;
    for (const char *at = text->lines.data; at && *at; at += strcspn(at, "\n") + 1) {
        const size_t length = strcspn(at, "\n") + 1;
        if (length == 1 || *at == ';') continue;
        cleat_string_add_bytes(&kept, at, length);
        ++lines;
    }
    text->lines.failed |= kept.failed;
    cleat_string_add(&text->lines, "\n[end]\nlines = %zu\ncrc32 = %08x\nleft_out = %zu\n", lines,
                     (unsigned)check_sum(kept.data, kept.size), text->left_out);
    cleat_string_free(&kept);
}

/* The text of a program of several parts: kernel files, each with its own options. Whatever a part defines
 * (macros, functions, types) gets a prefix of this part, so names of parts do not collide; kernels only where
 * an earlier part has the same file. */
#include "core/memory.h"
#include "core/name_table.h"
#include "core/string.h"
#include "device/device.h"

#include <stdio.h>
#include <string.h>

enum { PREFIX = 24, OPTION = 128, NAME = 256, MAX_CONDITIONS = 64 };

/* --- tokens --------------------------------------------------------------------------------------------------- */

typedef enum token_kind { END, WORD, SIGN, NEWLINE, OTHER } token_kind; /* OTHER: blanks, comments, numbers, strings */

typedef struct token {
    token_kind kind;
    const char *at;
    size_t size;
} token;

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

static size_t blank_size(const char *at) {
    size_t size = 0;
    while (at[size] == ' ' || at[size] == '\t' || at[size] == '\r') ++size;
    return size;
}

/* Here and in kernel_source.c no text is searched with functions of string.h to its end: with
 * strict_string_checks AddressSanitizer reads all of it each time. */
static size_t comment_size(const char *at) {
    const bool is_line = at[1] == '/';
    size_t size = 2;
    while (at[size] && (is_line ? at[size] != '\n' : at[size] != '*' || at[size + 1] != '/')) ++size;
    return is_line || !at[size] ? size : size + 2;
}

static size_t string_size(const char *at) {
    size_t size = 1;
    while (at[size] && at[size] != *at && at[size] != '\n') size += at[size] == '\\' && at[size + 1] ? 2 : 1;
    return size + (at[size] == *at);
}

static size_t number_size(const char *at) {
    size_t size = 1;
    while (is_word(at[size]) || at[size] == '.' || (strchr("+-", at[size]) && at[size] && strchr("eEpP", at[size - 1])))
        ++size;
    return size;
}

static size_t word_size(const char *at) {
    size_t size = 1;
    while (is_word(at[size])) ++size;
    return size;
}

static token token_at(const char *at) {
    if (is_digit(*at) || (*at == '.' && is_digit(at[1]))) return (token){OTHER, at, number_size(at)};
    if (is_word(*at)) return (token){WORD, at, word_size(at)};
    if (*at == '\n') return (token){NEWLINE, at, 1};
    if (blank_size(at) > 0) return (token){OTHER, at, blank_size(at)};
    if (*at == '/' && (at[1] == '/' || at[1] == '*')) return (token){OTHER, at, comment_size(at)};
    if (*at == '"' || *at == '\'') return (token){OTHER, at, string_size(at)};
    if (*at == '\\' && at[1] == '\n') return (token){OTHER, at, 2};
    return (token){*at ? SIGN : END, at, *at != 0};
}

static bool is(const token *t, const char *text) {
    return t->size == strlen(text) && memcmp(t->at, text, t->size) == 0;
}

/* --- names ---------------------------------------------------------------------------------------------------- */

typedef struct names {
    cleat_name_table table; /* values are not used */
    cleat_status status;    /* not CLEAT_OK: an addition has failed, and later ones do nothing */
    cleat_error *error;
} names;

/* false: longer than any name that a kernel file defines. */
static bool copy_name(const token *t, char name[NAME]) {
    if (t->size >= NAME) return false;
    memcpy(name, t->at, t->size);
    name[t->size] = 0;
    return true;
}

static bool has_name(const names *all, const token *t) {
    char name[NAME];
    uint32_t value;
    return copy_name(t, name) && cleat_name_table_find(&all->table, name, &value);
}

static void add_name(names *all, const token *t) {
    char name[NAME];
    if (all->status || has_name(all, t)) return;
    all->status = copy_name(t, name)
                      ? cleat_name_table_add(&all->table, name, 0, all->error)
                      : cleat_fail(all->error, CLEAT_ERR_NOT_SUPPORTED, "the name %.*s... is too long", 32, t->at);
}

/* --- what a text defines -------------------------------------------------------------------------------------- */

typedef struct place {
    int braces, parentheses;
} place;

/* Where the text is read. A declaration begins at the file's scope and ends with `;` or with a function's body. */
typedef struct scan {
    names *found;
    bool with_kernels;
    place at, before[MAX_CONDITIONS]; /* before[i]: at the i-th open #if; its #else begins there again */
    int conditions;
    token last; /* of the declaration, without blanks */
    bool is_kernel, is_function, is_enum, has_body;
} scan;

static void end_declaration(scan *s) {
    s->last = (token){0};
    s->is_kernel = s->is_function = s->is_enum = s->has_body = false;
}

/* The word before a sign names what is declared, except keywords. */
static void add_declared(scan *s) {
    static const char *const keywords[] = {"struct", "union", "enum"};
    if (s->last.kind != WORD || (s->last.size > 1 && memcmp(s->last.at, "__", 2) == 0)) return;
    if (s->is_kernel && !s->with_kernels) return;
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; ++i)
        if (is(&s->last, keywords[i])) return;
    add_name(s->found, &s->last);
}

static void read_sign(scan *s, char sign) {
    const bool outside = s->at.braces == 0 && s->at.parentheses == 0;
    if ((outside && strchr("([{=;,", sign)) || (s->is_enum && s->at.braces == 1 && strchr("=,}", sign)))
        add_declared(s);
    if (sign == '(' || sign == ')') s->at.parentheses += sign == '(' ? 1 : -1;
    if (sign == '{' || sign == '}') s->at.braces += sign == '{' ? 1 : -1;
    if (outside && sign == '(' && s->last.kind == WORD) s->is_function |= !is(&s->last, "__attribute__");
    if (outside && sign == ';') end_declaration(s);
    if (sign == '}' && s->at.braces == 0 && s->has_body) end_declaration(s);
    if (outside && sign == '{') s->has_body = s->is_function && s->last.kind == SIGN && s->last.at[0] == ')';
}

static const char *end_of_directive(const char *at) {
    token t = token_at(at);
    while (t.kind != END && t.kind != NEWLINE) t = token_at(t.at + t.size);
    return t.at;
}

static token next_word(const char *at) {
    token t = token_at(at);
    while (t.kind == OTHER) t = token_at(t.at + t.size);
    return t;
}

/* Branches of an #if may each open the same brace. */
static void read_directive(scan *s, const char *at) {
    const token what = next_word(at);
    if (is(&what, "define")) {
        const token name = next_word(what.at + what.size);
        add_name(s->found, &name);
    } else if (is(&what, "if") || is(&what, "ifdef") || is(&what, "ifndef")) {
        if (s->conditions < MAX_CONDITIONS) s->before[s->conditions] = s->at;
        ++s->conditions;
    } else if (s->conditions > 0 && s->conditions <= MAX_CONDITIONS && (is(&what, "else") || is(&what, "elif"))) {
        s->at = s->before[s->conditions - 1];
    } else if (s->conditions > 0 && is(&what, "endif")) {
        --s->conditions;
    }
}

static void find_names(const char *text, bool with_kernels, names *found) {
    scan s = {.found = found, .with_kernels = with_kernels};
    bool line_begins = true;
    for (token t = token_at(text); t.kind != END; t = token_at(t.at + t.size)) {
        if (t.kind == SIGN && t.at[0] == '#' && line_begins) {
            read_directive(&s, t.at + 1);
            t.size = (size_t)(end_of_directive(t.at + 1) - t.at);
            continue;
        }
        line_begins = t.kind == NEWLINE || (line_begins && t.kind == OTHER);
        if (t.kind == SIGN) read_sign(&s, t.at[0]);
        if (t.kind != WORD && t.kind != SIGN) continue;
        if (s.at.braces > (s.is_enum ? 1 : 0)) continue;
        s.is_kernel |= is(&t, "__kernel") || is(&t, "kernel");
        s.is_enum |= s.at.braces == 0 && is(&t, "enum");
        if (!(t.kind == SIGN && t.at[0] == ';')) s.last = t;
    }
}

/* --- one part ------------------------------------------------------------------------------------------------- */

static void add_defines(cleat_string *text, const char *options) {
    char word[OPTION];
    for (const char *at = options + strspn(options, " "); *at; at += strspn(at, " ")) {
        const size_t size = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", (int)size, at);
        at += size;
        if (strncmp(word, "-D", 2) != 0) continue;
        char *value = strchr(word, '=');
        if (value) *value++ = 0;
        cleat_string_add(text, "#define %s %s\n", word + 2, value ? value : "1");
    }
}

static void add_renamed(cleat_string *out, const char *text, const names *renamed, const char *prefix) {
    const char *kept = text;
    for (token t = token_at(text); t.kind != END; t = token_at(t.at + t.size)) {
        if (t.kind != WORD || !has_name(renamed, &t)) continue;
        cleat_string_add_bytes(out, kept, (size_t)(t.at - kept));
        cleat_string_add_bytes(out, prefix, strlen(prefix));
        kept = t.at;
    }
    cleat_string_add_bytes(out, kept, strlen(kept));
}

static void print_prefix(size_t number, char prefix[PREFIX]) {
    snprintf(prefix, PREFIX, "p%zu_", number + 1);
}

static bool repeats_file(const cleat_program_key *parts, size_t index) {
    for (size_t i = 0; i < index; ++i)
        if (strcmp(parts[i].file, parts[index].file) == 0) return true;
    return false;
}

static cleat_status add_part(cleat_string *out, const cleat_program_key *parts, size_t index, cleat_error *error) {
    cleat_string text = {0};
    names defined = {.error = error};
    char prefix[PREFIX], *source = NULL, *whole = NULL;
    cleat_status status = cleat_kernel_source_of(parts[index].file, parts[index].source, &source, error);
    if (status) return status;
    add_defines(&text, parts[index].options);
    cleat_string_add_bytes(&text, source, strlen(source));
    cleat_free(source);
    status = cleat_string_detach(&text, &whole, error);
    cleat_string_free(&text);
    if (status) return status;
    find_names(whole, repeats_file(parts, index), &defined);
    print_prefix(index, prefix);
    if (!defined.status) add_renamed(out, whole, &defined, prefix);
    cleat_name_table_free(&defined.table);
    cleat_free(whole);
    return defined.status;
}

/* --- all of them ---------------------------------------------------------------------------------------------- */

cleat_status cleat_kernel_join(const cleat_program_key *parts, size_t count, char **source, cleat_error *error) {
    cleat_string out = {0};
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < count && !status; ++i) status = add_part(&out, parts, i, error);
    if (!status) return cleat_string_detach(&out, source, error);
    cleat_string_free(&out);
    return status;
}

void cleat_kernel_joined_name(const cleat_program_key *parts, size_t index, const char *kernel, char *name,
                              size_t size) {
    char prefix[PREFIX] = "";
    if (repeats_file(parts, index)) print_prefix(index, prefix);
    snprintf(name, size, "%s%s", prefix, kernel);
}

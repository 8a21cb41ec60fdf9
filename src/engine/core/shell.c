/* Words of shell commands: a path in a command that the user is told to type may contain any byte. */
#include "core/shell.h"

#include "core/string.h"
#include "platform/text.h"

#include <stdio.h>
#include <string.h>

/* --- writing -------------------------------------------------------------------------------------------------- */

/* PowerShell splits words at commas and gives @ a meaning; in the shells of POSIX a backslash has one. */
static bool is_plain(char quote, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-:=%";
    for (const char *c = word; *c; ++c)
        if (!strchr(plain, *c) && !strchr(quote == '"' ? "\\" : "@,", *c)) return false;
    return *word && *word != '=';
}

static bool is_printable(const char *word) {
    for (size_t size; *word; word += size) {
        size = cleat_utf8_size(word);
        if (size == 0 || (unsigned char)*word < 0x20 || *word == 0x7f) return false;
    }
    return true;
}

/* Whether a word between double quotes is the same for cmd and PowerShell, which takes typographic quotes for quotes,
 * and would run $(COMMAND). */
static bool is_common(const char *word) {
    static const char *const changed[] = {"\"", "`", "\xe2\x80\x9c", "\xe2\x80\x9d", "\xe2\x80\x9e"};
    for (size_t i = 0; i < sizeof changed / sizeof *changed; ++i)
        if (strstr(word, changed[i])) return false;
    for (const char *c = word; (c = strchr(c, '$')); ++c)
        if (!strchr(" /\\.,;-)", c[1])) return false;
    return is_printable(word);
}

static size_t put(char *text, size_t size, size_t used, const char *piece) {
    const size_t length = strlen(piece);
    if (used + length < size) memcpy(text + used, piece, length + 1);
    return used + length;
}

/* $'...' represents any byte in ASCII, so neither a terminal nor JSON changes it; sh of POSIX, bash and zsh know it. */
static size_t put_bytes(const char *word, char *text, size_t size) {
    size_t used = put(text, size, 0, "$'");
    for (; *word; ++word) {
        char piece[8] = {*word};
        if ((unsigned char)*word < 0x20 || (unsigned char)*word >= 0x7f)
            snprintf(piece, sizeof piece, "\\%03o", (unsigned)(unsigned char)*word);
        else if (*word == '\'' || *word == '\\')
            snprintf(piece, sizeof piece, "\\%c", *word);
        used = put(text, size, used, piece);
    }
    return put(text, size, used, "'");
}

/* Programs for Windows take two backslashes before a quote for one. */
static size_t put_quoted(char quote, const char *word, char *text, size_t size) {
    const char marks[] = {quote, 0};
    size_t used = put(text, size, 0, marks);
    for (const char *c = word; *c; ++c) {
        const bool ends = quote == '"' && !c[strspn(c, "\\")];
        used = put(text, size, used, ends ? "\\\\" : *c == '\'' && quote == *c ? "'\\''" : (char[]){*c, 0});
    }
    return put(text, size, used, marks);
}

bool cleat_shell_quote(char quote, const char *word, char *text, size_t size) {
    size_t used = size;
    if (is_plain(quote, word))
        used = put(text, size, 0, word);
    else if (quote == '"' ? is_common(word) : is_printable(word))
        used = put_quoted(quote, word, text, size);
    else if (quote != '"')
        used = put_bytes(word, text, size);
    if (used < size) return true;
    if (size) *text = 0;
    return false;
}

bool cleat_shell_word(const char *word, char *text, size_t size) {
    return cleat_shell_quote(*CLEAT_SHELL_QUOTE, word, text, size);
}

const char *cleat_shell_path(const char *path, char *text, size_t size) {
    if (!cleat_shell_word(path, text, size)) snprintf(text, size, "PATH");
    return text;
}

/* --- reading -------------------------------------------------------------------------------------------------- */

/* A backslash within $'...': as cleat_shell_word writes it. */
static char read_escape(const char **at) {
    unsigned value = 0;
    if (**at < '0' || **at > '7') return *(*at)++;
    for (int i = 0; i < 3 && **at >= '0' && **at <= '7'; ++i) value = value * 8 + (unsigned)(*(*at)++ - '0');
    return (char)value;
}

bool cleat_shell_next(const char **at, char *word, size_t size) {
    size_t used = 0;
    char quote = 0; /* the open one; '$': of $'...' */
    while (**at == ' ') ++*at;
    if (!**at) return false;
    while (**at && (quote || **at != ' ')) {
        char c = *(*at)++;
        if (!quote && c == '$' && **at == '\'') {
            quote = '$';
            ++*at;
            continue;
        }
        if (!quote && (c == '\'' || c == '"')) {
            quote = c;
            continue;
        }
        if (quote && c == (quote == '$' ? '\'' : quote)) {
            quote = 0;
            continue;
        }
        /* Elsewhere a backslash stands for itself: it is in many words of Windows. */
        const bool escapes = quote == '"' ? (*at)[strspn(*at, "\\")] == '"' : !quote && **at == '\'';
        if (c == '\\' && quote == '$' && **at)
            c = read_escape(at);
        else if (c == '\\' && escapes)
            c = *(*at)++;
        if (used + 1 < size) word[used++] = c;
    }
    if (size) word[used] = 0;
    return true;
}

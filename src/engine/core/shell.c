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

/* $'...' represents any byte in ASCII, so neither a terminal nor JSON changes it; sh of POSIX, bash and zsh know it. On
 * Windows, the backslashes before a quote are doubled. */
bool cleat_shell_quote(char quote, const char *word, char *text, size_t size) {
    const char kind = is_plain(quote, word) ? 0 : quote == '"' || is_printable(word) ? quote : '$';
    const char marks[] = {kind == '$' ? '\'' : kind, 0};
    size_t used = put(text, size, 0, kind == '$' ? "$'" : marks);
    for (const char *c = word; *c; ++c) {
        const bool is_byte = kind == '$' && ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f);
        const bool escaped = kind == '$' ? *c == '\'' || *c == '\\' : kind == '"' && !c[strspn(c, "\\")];
        char piece[8];
        snprintf(piece, sizeof piece,
                 is_byte                       ? "\\%03o"
                 : escaped                     ? "\\%c"
                 : kind == '\'' && *c == quote ? "'\\%c'"
                                               : "%c",
                 (unsigned char)*c);
        used = put(text, size, used, piece);
    }
    used = put(text, size, used, marks);
    if (used < size && (kind != '"' || is_common(word))) return true;
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

/* --- options ---------------------------------------------------------------------------------------------------- */

/* The value of `option` if the word at `word` is it, as "--option VALUE" or "--option=VALUE"; NULL: it is not. */
static const char *value_of(const char *word, const char *option) {
    const size_t length = strlen(option);
    const char separator = strncmp(word, option, length) == 0 ? word[length] : 0;
    return separator == ' ' || separator == '=' ? word + length + 1 : NULL;
}

void cleat_command_options(const char *command, char *text, size_t size) {
    static const struct {
        const char *option, *kept_as;
    } options[] = {
        {"--set", "--set "}, {"--device", "--device "}, {"--batch-size", "--set train.effective_batch_size="}};
    size_t used = 0;
    text[0] = 0;
    for (const char *word = command, *end = command; cleat_shell_next(&end, NULL, 0); word = end) {
        word += strspn(word, " ");
        for (size_t i = 0; i < sizeof options / sizeof *options; ++i) {
            const char *value = value_of(word, options[i].option);
            if (!value) continue;
            end = value;
            cleat_shell_next(&end, NULL, 0);
            used +=
                (size_t)snprintf(text + used, size - used, " %s%.*s", options[i].kept_as, (int)(end - value), value);
            if (used < size) continue;
            text[0] = 0; /* a part of them would train something else */
            return;
        }
    }
}

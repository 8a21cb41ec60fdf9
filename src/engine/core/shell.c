/* Words of shell commands: a path in a command that the user is told to type may contain any byte. */
#include "core/shell.h"

#include "core/string.h"
#include "platform/text.h"

#include <stdio.h>
#include <string.h>

/* --- writing -------------------------------------------------------------------------------------------------- */

static bool is_plain(const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-:=@%,";
    return *word && word[0] != '=' && strspn(word, plain) == strlen(word);
}

static bool is_printable(const char *word) {
    for (size_t size; *word; word += size) {
        size = cleat_utf8_size(word);
        if (size == 0 || (unsigned char)*word < 0x20 || *word == 0x7f) return false;
    }
    return true;
}

static size_t put(char *text, size_t size, size_t used, const char *piece) {
    const size_t length = strlen(piece);
    if (used + length < size) memcpy(text + used, piece, length + 1);
    return used + length;
}

/* $'...' represents any byte in ASCII, so neither a terminal nor JSON changes it; sh of POSIX, bash and zsh know it. */
bool cleat_shell_word(const char *word, char *text, size_t size) {
    const bool plain = is_plain(word), printable = is_printable(word);
    size_t used = put(text, size, 0, plain ? "" : printable ? CLEAT_SHELL_QUOTE : "$'");
    for (const char *c = word; *c; ++c) {
        char piece[8] = {*c};
        if (!printable && ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f))
            snprintf(piece, sizeof piece, "\\%03o", (unsigned)(unsigned char)*c);
        else if (!printable && (*c == '\'' || *c == '\\'))
            snprintf(piece, sizeof piece, "\\%c", *c);
        else if (*c == *CLEAT_SHELL_QUOTE)
            snprintf(piece, sizeof piece, CLEAT_SHELL_QUOTED);
        used = put(text, size, used, piece);
    }
    used = put(text, size, used, plain ? "" : printable ? CLEAT_SHELL_QUOTE : "'");
    if (used < size) return true;
    if (size) *text = 0;
    return false;
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
        if (c == '\\' && quote != '\'' && **at) c = quote == '$' ? read_escape(at) : *(*at)++;
        if (used + 1 < size) word[used++] = c;
    }
    if (size) word[used] = 0;
    return true;
}

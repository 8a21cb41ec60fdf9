/* The tokens of PTX: words, numbers and punctuation. */
#include "lexer.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void ptx_start(ptx_lexer *lexer, const char *text, char *message, size_t size) {
    *lexer = (ptx_lexer){.at = text, .line = 1, .message = message, .message_size = size};
    message[0] = 0;
    ptx_next(lexer);
}

bool ptx_failed(const ptx_lexer *lexer) {
    return lexer->message[0] != 0;
}

void ptx_fail(ptx_lexer *lexer, const char *format, ...) {
    if (ptx_failed(lexer)) return;
    va_list values;
    va_start(values, format);
    char text[256];
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    snprintf(lexer->message, lexer->message_size, "line %d: %s", lexer->token.line, text);
    lexer->at = "";
    lexer->token = (ptx_token){.kind = PTX_END, .text = "", .line = lexer->line};
}

static void skip_space(ptx_lexer *lexer) {
    for (;;) {
        const char *s = lexer->at;
        if (*s == '\n') {
            lexer->line++, lexer->at++;
        } else if (isspace((unsigned char)*s)) {
            lexer->at++;
        } else if (s[0] == '/' && s[1] == '/') {
            while (*lexer->at && *lexer->at != '\n') lexer->at++;
        } else if (s[0] == '/' && s[1] == '*') {
            const char *end = strstr(s + 2, "*/");
            end = end ? end + 2 : s + strlen(s);
            for (; lexer->at < end; lexer->at++)
                if (*lexer->at == '\n') lexer->line++;
        } else {
            return;
        }
    }
}

static bool in_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.';
}

/* The end of the word at s. A modifier may contain two colons: .L2::128B. */
static const char *end_of_word(const char *s) {
    for (s++;;)
        if (in_word(*s))
            s++;
        else if (s[0] == ':' && s[1] == ':')
            s += 2;
        else
            return s;
}

void ptx_next(ptx_lexer *lexer) {
    skip_space(lexer);
    const char *s = lexer->at, *end = s + 1;
    ptx_token_kind kind = PTX_MARK;
    if (!*s) {
        kind = PTX_END, end = s;
    } else if (isdigit((unsigned char)*s)) {
        kind = PTX_NUMBER;
        while (isalnum((unsigned char)*end) || *end == '.' || ((*end == '-' || *end == '+') && end[-1] == 'e')) end++;
    } else if (isalpha((unsigned char)*s) || strchr("_$%.", *s)) {
        kind = PTX_WORD, end = end_of_word(s);
    } else if (*s == '"') {
        kind = PTX_STRING;
        while (*end && *end != '"' && *end != '\n') end++;
        if (*end == '"') end++;
    }
    lexer->token = (ptx_token){.kind = kind, .text = s, .length = (size_t)(end - s), .line = lexer->line};
    lexer->at = end;
}

bool ptx_token_is(ptx_token token, const char *text) {
    return token.kind != PTX_STRING && token.length == strlen(text) && memcmp(token.text, text, token.length) == 0 &&
           token.length > 0;
}

bool ptx_at(const ptx_lexer *lexer, const char *text) {
    return ptx_token_is(lexer->token, text);
}

bool ptx_accept(ptx_lexer *lexer, const char *text) {
    if (!ptx_at(lexer, text)) return false;
    ptx_next(lexer);
    return true;
}

bool ptx_expect(ptx_lexer *lexer, const char *text) {
    if (ptx_accept(lexer, text)) return true;
    const ptx_token token = lexer->token;
    ptx_fail(lexer, "'%s' is expected before '%.*s'", text, (int)(token.length < 40 ? token.length : 40), token.text);
    return false;
}

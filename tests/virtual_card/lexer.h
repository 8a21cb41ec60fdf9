/* The tokens of PTX: words, numbers and punctuation. */
#ifndef VIRTUAL_CARD_LEXER_H
#define VIRTUAL_CARD_LEXER_H

#include <stdbool.h>
#include <stddef.h>

typedef enum ptx_token_kind {
    PTX_END,    /* end of the text, or an error */
    PTX_WORD,   /* an opcode with its modifiers, a name, a directive with its dot */
    PTX_NUMBER, /* as written, without a sign */
    PTX_STRING, /* with its quotes */
    PTX_MARK    /* one character */
} ptx_token_kind;

typedef struct ptx_token {
    ptx_token_kind kind;
    const char *text; /* within the module's text, not terminated */
    size_t length;
    int line;
} ptx_token;

/* `token` is the current token; ptx_next advances. */
typedef struct ptx_lexer {
    const char *at;
    int line;
    ptx_token token;
    char *message; /* message of the first error; empty: none */
    size_t message_size;
} ptx_lexer;

void ptx_start(ptx_lexer *lexer, const char *text, char *message, size_t size);
void ptx_next(ptx_lexer *lexer);

/* Whether the token is this word or mark. */
bool ptx_at(const ptx_lexer *lexer, const char *text);
/* Skips the token if it is this one. */
bool ptx_accept(ptx_lexer *lexer, const char *text);
/* Like ptx_accept, but any other token is an error. */
bool ptx_expect(ptx_lexer *lexer, const char *text);

/* Records the first error with the line of the token, and ends the text. */
void ptx_fail(ptx_lexer *lexer, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool ptx_failed(const ptx_lexer *lexer);

/* Whether the token is this text, such as ".entry". */
bool ptx_token_is(ptx_token token, const char *text);

#endif

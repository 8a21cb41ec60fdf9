/* Chat templates: conversations as the text on which a language model was trained.
 *
 * A published tokenizer carries its template as a Jinja program. cleat does not run it: it knows the programs of some
 * families by their text and renders what they render (transformers' apply_chat_template), byte for byte. */
#ifndef CLEAT_SRC_CHAT_H
#define CLEAT_SRC_CHAT_H

#include "core/string.h"
#include "data/text/encode.h"

typedef enum cleat_chat_role {
    CLEAT_CHAT_SYSTEM,
    CLEAT_CHAT_USER,
    CLEAT_CHAT_ASSISTANT,
    CLEAT_CHAT_ROLES
} cleat_chat_role;
extern const char *const cleat_chat_roles[CLEAT_CHAT_ROLES];

typedef struct cleat_chat_message {
    cleat_chat_role role;
    bool learned;         /* of an assistant: the loss includes it */
    const char *content;  /* borrowed */
    const char *thoughts; /* reasoning_content of Qwen3; NULL: none */
} cleat_chat_message;

typedef struct cleat_byte_spans {
    cleat_byte_span *all; /* [count] */
    size_t count, capacity;
} cleat_byte_spans;

/* A template with what its program reads from the tokenizer. */
typedef struct cleat_chat {
    const struct cleat_chat_form *form; /* NULL: none; texts follow each other as they are */
    const char *name;                   /* of the form, or "none" */
    const char *bos, *eos;              /* texts of these tokens, of the tokenizer; NULL: none */
    char *system;                       /* the message for conversations without one; NULL: none */
    char *date;                         /* in the system message of Llama 3.1 and later */
    const char *own;                    /* another form, of the tokenizer's program; NULL: none or not known */
    bool published;                     /* the tokenizer's files have a program of this form, or none is used */
} cleat_chat;

/* Selects a template by a name of cleat_chat_template_name; "auto": by the program that the tokenizer's files have
 * (chat_template.jinja, else tokenizer_config.json), none without one. Each special token of the template must be one
 * token. The caller frees *chat (cleat_chat_free), which the tokenizer must outlive. CLEAT_ERR_NOT_SUPPORTED: an
 * unknown program. */
cleat_status cleat_chat_open(const char *name, const char *date, const cleat_tokenizer *tokenizer, cleat_chat *chat,
                             cleat_error *error);
void cleat_chat_free(cleat_chat *chat);

/* Appends a Jinja program of the template, which renders what cleat_chat_render does, with chat->system and chat->date;
 * cleat_chat_open recognises it. */
cleat_status cleat_chat_program(const cleat_chat *chat, cleat_string *program, cleat_error *error);

/* Text that ends an answer; NULL without a template. */
const char *cleat_chat_end(const cleat_chat *chat);
/* Whether the template renders cleat_chat_message.thoughts. */
bool cleat_chat_thinks(const cleat_chat *chat);

/* Appends the text of messages [count], and to `spans` the bytes, counted from the start of this text, of each learned
 * answer and of the token that ends it. `asks`: appends the start of the next answer (add_generation_prompt).
 * CLEAT_ERR_FORMAT: the template refuses the order of the roles. */
cleat_status cleat_chat_render(const cleat_chat *chat, const cleat_chat_message *messages, size_t count, bool asks,
                               cleat_string *text, cleat_byte_spans *spans, cleat_error *error);

#endif

/* The forms of chat templates: what rendering and writing a program share. */
#ifndef CLEAT_SRC_CHAT_FORM_H
#define CLEAT_SRC_CHAT_FORM_H

#include "data/text/chat.h"

/* What becomes of a system message. */
typedef enum cleat_system_role {
    OWN_TURN,  /* a turn like others, anywhere */
    DATED,     /* a turn; the first one is always there and begins with dates */
    IN_PROMPT, /* the first message only: it begins the first turn of the user */
    LEADING,   /* the first message only: it stands before all turns */
    REFUSED
} cleat_system_role;
typedef enum cleat_stripping {
    STRIPS_NOTHING,
    STRIPS_CONTENTS,
    STRIPS_JOINED,
    STRIPS_ANSWERS
} cleat_stripping; /* joined: with the system message */

/* A family of templates. In its texts, BOS and EOS stand for tokens of the tokenizer. */
typedef struct cleat_chat_form {
    const char *name;
    const char *first;                 /* before everything */
    const char *system[2], *user[2];   /* around messages of these roles */
    const char *answer;                /* before an answer, and the end of a prompt */
    const char *inside, *end, *behind; /* an answer is inside, content, end; `behind` is not part of it */
    const char *specials;              /* texts that are one token each, separated by blanks */
    cleat_system_role system_role;
    cleat_stripping strips;  /* white space around contents */
    bool alternates;         /* user, assistant, user, ... */
    bool thinks;             /* Qwen3 */
    bool forgets;            /* answers are what follows their thoughts */
    bool skips_empty;        /* system messages */
    const char *asks, *last; /* behind the prompt, and behind a conversation that is none; NULL: nothing */
} cleat_chat_form;

/* In texts of a form. */
#define BOS "\1"
#define EOS "\2"

/* By chat.c; NULL: no form has this name. */
const cleat_chat_form *cleat_chat_find_form(const char *name);

/* By chat_program.c: whether cleat_chat_program wrote the program; *read gets its form, and its system message and
 * date, which the caller frees. */
bool cleat_chat_read_program(const char *program, cleat_chat *read);

#endif

/* Conversations, prompts and texts while they are read. */
#ifndef CLEAT_SRC_CAUSAL_SET_H
#define CLEAT_SRC_CAUSAL_SET_H

#include "cleat/causal_texts.h"
#include "data/text/chat.h"
#include "data/text/set.h"

typedef enum cleat_causal_kind { CLEAT_CAUSAL_CHAT, CLEAT_CAUSAL_PAIR, CLEAT_CAUSAL_PLAIN } cleat_causal_kind;

/* A row of `set` has the rendered text as its unit, and for predictions the truth as its second one. */
typedef struct cleat_causal_set {
    cleat_text_set set;
    const cleat_causal_options *options;
    cleat_chat chat;
    cleat_byte_spans spans; /* learned bytes of all texts */
    size_t *first_spans;    /* [rows + 1] of each row */
    uint8_t *kinds;         /* [rows] cleat_causal_kind */
    size_t spans_capacity, kinds_capacity;
    size_t blank; /* texts without a character, which are left out */
} cleat_causal_set;

/* Reads a file into the set; bad rows are added to its faults. */
cleat_status cleat_causal_read(const cleat_text_file *file, cleat_causal_set *set, cleat_error *error);

#endif

/* Decodes a line of assembly. */
#ifndef VIRTUAL_CARD_GCN_DECODE_H
#define VIRTUAL_CARD_GCN_DECODE_H

#include "module.h"

/* A piece of the module's text. */
typedef struct gcn_text {
    const char *at;
    size_t length;
} gcn_text;

static inline gcn_text gcn_trim(gcn_text t) {
    while (t.length && (*t.at == ' ' || *t.at == '\t')) t.at++, t.length--;
    while (t.length && (t.at[t.length - 1] == ' ' || t.at[t.length - 1] == '\t')) t.length--;
    return t;
}
bool gcn_is(gcn_text t, const char *word);
bool gcn_begins(gcn_text t, const char *word);

/* A decimal or 0x... number with an optional minus. */
bool gcn_number(gcn_text t, int64_t *value);

/* The decoder's output: the module, and fixups that wait for a label. */
typedef struct gcn_reader {
    gcn_module *module;
    size_t code_capacity, symbol_capacity, data_capacity;
    struct gcn_fixup {
        uint32_t instruction;
        uint8_t operand; /* of from[]; 0xff: the target of a branch */
        bool high;       /* the upper half of the address */
        gcn_text name;
    } * fixups;
    size_t n_fixups, fixup_capacity;
    char *message;
    size_t size;
    int line;
} gcn_reader;

/* Writes the message "line N: ...". Always returns false. */
bool gcn_fail(gcn_reader *reader, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* decode.c: adds the instructions of a line. */
bool gcn_decode(gcn_reader *reader, gcn_text line);

/* operand.c: parses an operand for the letter of its form. A label becomes a fixup. */
bool gcn_read_operand(gcn_reader *reader, gcn_text text, char type, gcn_operand *operand, gcn_text *symbol);

/* modifiers.c: parses the modifiers after the operands (offset:4 glc). */
bool gcn_read_modifiers(gcn_reader *reader, gcn_text text, gcn_instruction *to);

#endif

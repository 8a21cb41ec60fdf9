/* The PTX parser: modules (parse.c), declarations (declare.c), kernel bodies (body.c), instructions
 * (decode.c). */
#ifndef VIRTUAL_CARD_PARSE_H
#define VIRTUAL_CARD_PARSE_H

#include "kernel.h"
#include "lexer.h"

/* The consecutive registers of one declaration: %r<200>, or a single one without a number. */
typedef struct ptx_bank {
    ptx_token name;
    uint32_t count; /* 0: a single register without a number */
    uint32_t first;
    uint8_t width;
} ptx_bank;

/* A variable that the kernel uses, with its address. */
typedef struct ptx_symbol {
    ptx_token name;
    uint64_t address;
} ptx_symbol;

typedef struct ptx_label {
    ptx_token name;
    uint32_t at;
} ptx_label;

/* An opcode with an operand shape (x, m for an address, with {} and |), and its table row. */
enum { PTX_ARGUMENTS = 32, PTX_SHAPE = 3 * PTX_ARGUMENTS, PTX_DECODED = 1024 };
typedef struct ptx_decoded {
    ptx_token opcode;
    char shape[PTX_SHAPE];
    const ptx_form *form; /* NULL: unused */
    ptx_instruction instruction;
} ptx_decoded;

typedef struct ptx_parser {
    ptx_lexer lexer;
    ptx_module *module;
    ptx_decoded *decoded; /* [PTX_DECODED], by hash; later entries replace earlier ones */
    size_t kernel_capacity, variable_capacity;
    /* state of the current kernel */
    ptx_kernel *kernel;
    ptx_bank *banks;
    ptx_symbol *symbols;
    ptx_label *labels, *branches; /* branches: an instruction and its target label */
    size_t n_banks, n_symbols, n_labels, n_branches;
    size_t bank_capacity, symbol_capacity, label_capacity, branch_capacity;
    size_t param_capacity, name_capacity, code_capacity, operand_capacity, constant_capacity, register_capacity;
    size_t to_operand_capacity;
} ptx_parser;

/* Size of a type in bytes: ".f32" or "f32"; 0 for a predicate, -1 if it is not a type. */
int ptx_type_size(ptx_token token);

/* declare.c. A variable declaration, `.space [.align n] .type name[n][m] = { ... };`, from the token after
 * the space. */
typedef struct ptx_declaration {
    ptx_token name;
    size_t size, align, element;
} ptx_declaration;
bool ptx_parse_declaration(ptx_parser *parser, ptx_declaration *declaration);
void ptx_parse_variable(ptx_parser *parser, ptx_space space);
/* The bits of a number in any form; `width` selects float or double if it has a point. */
bool ptx_parse_number(ptx_token token, int width, uint64_t *bits);
/* Reads an integer from 0 to `max`. */
uint64_t ptx_parse_count(ptx_parser *parser, uint64_t max);

/* body.c. The kernel's body, from '{' on. */
void ptx_parse_body(ptx_parser *parser);
uint32_t ptx_add_registers(ptx_parser *parser, uint8_t width, uint32_t count); /* returns the first number */
/* The address of a variable that the kernel uses. False: no such variable. */
bool ptx_find_symbol(ptx_parser *parser, ptx_token name, uint64_t *address);

/* decode.c. An instruction, from its opcode to its semicolon. */
void ptx_parse_instruction(ptx_parser *parser, uint32_t predicate, bool unless);
bool ptx_find_register(const ptx_parser *parser, ptx_token name, ptx_operand *operand);

/* tables.c. The row for this opcode and operand shape, or NULL. *known: whether any row has the opcode. */
const ptx_form *ptx_find_form(ptx_token opcode, const char *shape, bool *known);

#endif

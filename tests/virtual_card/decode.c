/* Decodes one instruction: operands, table row, executable form. */
#include "parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A parsed operand. */
typedef struct ptx_argument {
    ptx_token token;
    bool minus, negate;
    int64_t add;
} ptx_argument;

/* The operands of an instruction and their shape: x, m for an address, with {} and |. */
typedef struct ptx_arguments {
    ptx_argument list[PTX_ARGUMENTS];
    int count;
    char shape[PTX_SHAPE];
    int length;
} ptx_arguments;

static void fail_at(ptx_parser *parser, ptx_token token, const char *what) {
    parser->lexer.token.line = token.line;
    ptx_fail(&parser->lexer, "%s: '%.*s'", what, (int)(token.length < 100 ? token.length : 100), token.text);
}

/* --- reading */

static void add_shape(ptx_arguments *arguments, char c) {
    if (arguments->length + 1 < (int)sizeof arguments->shape) arguments->shape[arguments->length++] = c;
    arguments->shape[arguments->length] = 0;
}

/* +8, -8, +-8 after a name */
static int64_t parse_displacement(ptx_parser *parser) {
    ptx_lexer *lexer = &parser->lexer;
    if (!ptx_at(lexer, "+") && !ptx_at(lexer, "-")) return 0;
    bool negative = false;
    while (ptx_at(lexer, "+") || ptx_at(lexer, "-")) {
        negative ^= ptx_at(lexer, "-");
        ptx_next(lexer);
    }
    const int64_t value = (int64_t)ptx_parse_count(parser, INT32_MAX);
    return negative ? -value : value;
}

static void parse_argument(ptx_parser *parser, ptx_arguments *arguments, char shape) {
    ptx_lexer *lexer = &parser->lexer;
    ptx_argument argument = {.minus = ptx_accept(lexer, "-"), .negate = ptx_accept(lexer, "!")};
    argument.token = lexer->token;
    if (lexer->token.kind != PTX_WORD && lexer->token.kind != PTX_NUMBER)
        fail_at(parser, lexer->token, "an operand is expected");
    if (arguments->count == PTX_ARGUMENTS) fail_at(parser, lexer->token, "too many operands");
    if (ptx_failed(lexer)) return;
    ptx_next(lexer);
    if (argument.token.kind == PTX_WORD) argument.add = parse_displacement(parser);
    arguments->list[arguments->count++] = argument;
    add_shape(arguments, shape);
}

/* x, [m], {x, x} or x|x */
static void parse_operand(ptx_parser *parser, ptx_arguments *arguments) {
    ptx_lexer *lexer = &parser->lexer;
    if (ptx_accept(lexer, "{")) {
        add_shape(arguments, '{');
        do parse_argument(parser, arguments, 'x');
        while (ptx_accept(lexer, ","));
        add_shape(arguments, '}');
        ptx_expect(lexer, "}");
    } else if (ptx_accept(lexer, "[")) {
        parse_argument(parser, arguments, 'm');
        ptx_expect(lexer, "]");
    } else {
        parse_argument(parser, arguments, 'x');
        if (ptx_accept(lexer, "|")) {
            add_shape(arguments, '|');
            parse_argument(parser, arguments, 'x');
        }
    }
}

static void parse_arguments(ptx_parser *parser, ptx_arguments *arguments) {
    ptx_lexer *lexer = &parser->lexer;
    arguments->count = arguments->length = 0;
    arguments->shape[0] = 0;
    if (!ptx_at(lexer, ";")) {
        do parse_operand(parser, arguments);
        while (ptx_accept(lexer, ","));
    }
    ptx_expect(lexer, ";");
}

/* --- operands */

/* A constant in all lanes; equal constants are stored once. */
static ptx_operand add_constant(ptx_parser *parser, uint64_t bits, uint8_t width) {
    ptx_kernel *kernel = parser->kernel;
    const size_t bytes = width ? width : 4, size = PTX_LANES * bytes;
    unsigned char value[PTX_LANES * 8];
    for (size_t l = 0; l < PTX_LANES; ++l) memcpy(value + l * bytes, &bits, bytes);
    const ptx_operand found = {.base = PTX_CONSTANTS, .width = width};
    for (size_t at = 0; at + size <= kernel->constant_bytes; at += 64)
        if (memcmp(kernel->constants + at, value, 4) == 0 && memcmp(kernel->constants + at, value, size) == 0) {
            ptx_operand operand = found;
            operand.offset = (uint32_t)at;
            return operand;
        }
    while (kernel->constant_bytes + size > parser->constant_capacity)
        kernel->constants =
            ptx_grow(kernel->constants, parser->constant_capacity, &parser->constant_capacity, sizeof(unsigned char));
    memcpy(kernel->constants + kernel->constant_bytes, value, size);
    ptx_operand operand = found;
    operand.offset = (uint32_t)kernel->constant_bytes;
    kernel->constant_bytes += size;
    return operand;
}

bool ptx_find_register(const ptx_parser *parser, ptx_token name, ptx_operand *operand) {
    for (size_t i = parser->n_banks; i-- > 0;) {
        const ptx_bank *bank = &parser->banks[i];
        if (name.length < bank->name.length || memcmp(name.text, bank->name.text, bank->name.length) != 0) continue;
        uint32_t index = 0;
        bool number = bank->count ? name.length > bank->name.length : name.length == bank->name.length;
        for (size_t k = bank->name.length; k < name.length && number; ++k) {
            number = name.text[k] >= '0' && name.text[k] <= '9' && index < 100000000;
            index = 10 * index + (uint32_t)(name.text[k] - '0');
        }
        if (!number || (bank->count && index >= bank->count)) continue;
        *operand = (ptx_operand){.base = PTX_REGISTERS, .width = bank->width, .offset = bank->first + index};
        return true;
    }
    return false;
}

/* The special registers in the order of warp.c. */
static bool find_special(ptx_token name, ptx_operand *operand) {
    static const char *const names[] = {"%tid.x",       "%tid.y",       "%tid.z",       "%ntid.x",     "%ntid.y",
                                        "%ntid.z",      "%ctaid.x",     "%ctaid.y",     "%ctaid.z",    "%nctaid.x",
                                        "%nctaid.y",    "%nctaid.z",    "%laneid",      "%warpid",     "%lanemask_eq",
                                        "%lanemask_lt", "%lanemask_le", "%lanemask_gt", "%lanemask_ge"};
    for (uint32_t i = 0; i < sizeof names / sizeof *names; ++i)
        if (ptx_token_is(name, names[i])) {
            *operand = (ptx_operand){.base = PTX_SPECIAL, .width = 4, .offset = i * PTX_LANES * 4};
            return true;
        }
    return false;
}

/* The width of a form letter; -1: any. */
static int width_of(char letter) {
    switch (letter) {
    case 'p':
        return 0;
    case 'h':
        return 2;
    case 'w':
    case 'n':
        return 4;
    case 'l':
        return 8;
    default:
        return -1;
    }
}

static ptx_operand number_operand(ptx_parser *parser, const ptx_argument *argument, int width) {
    uint64_t bits = 0;
    if (!ptx_parse_number(argument->token, width, &bits)) fail_at(parser, argument->token, "not a number");
    if (argument->negate) fail_at(parser, argument->token, "'!' before a number");
    if (argument->minus) bits = 0 - bits;
    if (width == 0) bits = bits ? UINT32_MAX : 0;
    return add_constant(parser, bits, (uint8_t)width);
}

static ptx_operand address_operand(ptx_parser *parser, const ptx_argument *argument) {
    ptx_operand operand = {0};
    uint64_t address = 0;
    if (argument->negate || (argument->minus && argument->token.kind != PTX_NUMBER))
        fail_at(parser, argument->token, "a sign before an address");
    if (argument->token.kind == PTX_NUMBER)
        operand = number_operand(parser, argument, 8);
    else if (ptx_find_register(parser, argument->token, &operand)) {
        if (operand.width < 4) fail_at(parser, argument->token, "an address below 32 bits");
    } else if (ptx_find_symbol(parser, argument->token, &address))
        operand = add_constant(parser, address, 8);
    else
        fail_at(parser, argument->token, "undeclared");
    operand.add = (int32_t)argument->add;
    return operand;
}

static ptx_operand value_operand(ptx_parser *parser, const ptx_argument *argument, const ptx_form *form, char letter) {
    ptx_operand operand = {0};
    uint64_t address = 0;
    const int asked = width_of(letter), width = asked >= 0 ? asked : form->element < 2 ? 2 : form->element;
    if (argument->token.kind == PTX_NUMBER) return number_operand(parser, argument, width);
    if (letter == 'n') fail_at(parser, argument->token, "a number is expected");
    if (ptx_find_register(parser, argument->token, &operand) || find_special(argument->token, &operand)) {
        if (asked >= 0 ? operand.width != asked
                       : operand.width == 0 || (letter == 'x' && operand.width < form->element))
            fail_at(parser, argument->token, "a register of the wrong width for the instruction");
        operand.negate = argument->negate;
        if (argument->negate && operand.width)
            fail_at(parser, argument->token, "'!' before a register that is not a predicate");
        if (argument->minus || argument->add) fail_at(parser, argument->token, "arithmetic on a register");
        return operand;
    }
    if (ptx_token_is(argument->token, "_"))
        return (ptx_operand){.width = (uint8_t)width, .offset = ptx_add_registers(parser, (uint8_t)width, 1)};
    if (argument->token.length > 7 && memcmp(argument->token.text, "%envreg", 7) == 0)
        return add_constant(parser, 0, (uint8_t)width);
    if (!argument->minus && !argument->negate && width >= 4 && ptx_find_symbol(parser, argument->token, &address))
        return add_constant(parser, address + (uint64_t)argument->add, (uint8_t)width);
    fail_at(parser, argument->token, "undeclared, or not allowed here");
    return operand;
}

/* --- the instruction */

static bool has_word(ptx_token opcode, const char *word) {
    const size_t n = strlen(word);
    for (size_t i = 0; i + n <= opcode.length; ++i)
        if (memcmp(opcode.text + i, word, n) == 0 &&
            (i + n == opcode.length || opcode.text[i + n] == '.' || opcode.text[i + n] == ':'))
            return true;
    return false;
}

static ptx_space space_of(ptx_token opcode) {
    return has_word(opcode, ".global")   ? PTX_GLOBAL
           : has_word(opcode, ".shared") ? PTX_SHARED
           : has_word(opcode, ".local")  ? PTX_LOCAL
           : has_word(opcode, ".param")  ? PTX_PARAMETER
           : has_word(opcode, ".const")  ? PTX_CONST
                                         : PTX_GENERIC;
}

/* The counter of an instruction, by the first word of its opcode; all others are arithmetic. */
static uint8_t class_of(ptx_token opcode) {
    static const struct {
        const char *words;
        uint8_t issued;
    } rows[] = {{" mov cvta ", PTX_MOVES},
                {" setp selp set slct ", PTX_COMPARES},
                {" cvt ", PTX_CONVERTS},
                {" ld st ldu cp ldmatrix stmatrix atom red prefetch ", PTX_MEMORY},
                {" bra bar barrier ret exit membar fence shfl vote match redux activemask ", PTX_FLOW}};
    char word[16];
    size_t length = 0;
    while (length < opcode.length && length + 3 < sizeof word && opcode.text[length] != '.') length++;
    snprintf(word, sizeof word, " %.*s ", (int)length, opcode.text);
    if (space_of(opcode) == PTX_PARAMETER) return PTX_MOVES;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        if (strstr(rows[i].words, word)) return rows[i].issued;
    if (has_word(opcode, ".pred")) return PTX_COMPARES;
    const bool floats = has_word(opcode, ".f32") || has_word(opcode, ".f64") || has_word(opcode, ".f16") ||
                        has_word(opcode, ".bf16") || has_word(opcode, ".f16x2") || has_word(opcode, ".bf16x2");
    return floats ? PTX_FLOATS : PTX_INTEGERS;
}

/* Multiply-adds of an mma.sync; m8n8k4 computes four products, one for every eight lanes. */
static uint16_t products_of(ptx_token opcode) {
    return has_word(opcode, ".m8n8k4")     ? 4 * 8 * 8 * 4
           : has_word(opcode, ".m16n8k8")  ? 16 * 8 * 8
           : has_word(opcode, ".m16n8k16") ? 16 * 8 * 16
                                           : 0;
}

static void add_operand(ptx_parser *parser, ptx_operand operand) {
    ptx_kernel *kernel = parser->kernel;
    kernel->operands = ptx_grow(kernel->operands, kernel->n_operands, &parser->operand_capacity, sizeof operand);
    kernel->operands[kernel->n_operands++] = operand;
}

static void add_branch(ptx_parser *parser, ptx_token label) {
    parser->branches =
        ptx_grow(parser->branches, parser->n_branches, &parser->branch_capacity, sizeof *parser->branches);
    parser->branches[parser->n_branches++] = (ptx_label){.name = label, .at = (uint32_t)parser->kernel->n_code};
}

/* Converts operands by the letters of the form; counts the written and the read ones. */
static void resolve(ptx_parser *parser, const ptx_arguments *arguments, const ptx_form *form, ptx_instruction *to) {
    int next = 0;
    bool written = strchr(form->operands, '=') != NULL;
    for (const char *letter = form->operands; *letter && !ptx_failed(&parser->lexer); ++letter) {
        if (*letter == '=') written = false;
        if (strchr("={}|", *letter)) continue;
        const ptx_argument *argument = &arguments->list[next++];
        if (*letter == 't') {
            if (argument->token.kind != PTX_WORD || argument->minus || argument->negate || argument->add)
                fail_at(parser, argument->token, "a label is expected");
            add_branch(parser, argument->token);
            continue;
        }
        const ptx_operand operand =
            *letter == 'm' ? address_operand(parser, argument) : value_operand(parser, argument, form, *letter);
        if (written && operand.base != PTX_REGISTERS)
            fail_at(parser, argument->token, "a result that is not a register");
        add_operand(parser, operand);
        if (written)
            to->n_to++;
        else
            to->n_from++;
    }
}

static void record_shared_access(ptx_kernel *kernel, const ptx_instruction *instruction) {
    if (instruction->space != PTX_SHARED && instruction->space != PTX_GENERIC) return;
    if (instruction->element == 1) kernel->cell_shift = 0;
    if (instruction->element == 2 && kernel->cell_shift > 1) kernel->cell_shift = 1;
}

/* The fields determined by opcode and shape. */
static ptx_instruction decode(ptx_token opcode, const ptx_form *form) {
    return (ptx_instruction){.run = form->run,
                             .kind = form->kind,
                             .space = (uint8_t)space_of(opcode),
                             .element = form->element,
                             .vector = form->vector,
                             .code = form->code,
                             .fma = form->fma,
                             .mma = form->mma,
                             .special = form->special,
                             .issued = class_of(opcode),
                             .products = form->mma ? products_of(opcode) : 0,
                             .reconverge = PTX_NOWHERE};
}

static bool is_decoded(const ptx_decoded *decoded, ptx_token opcode, const char *shape) {
    return decoded->form && decoded->opcode.length == opcode.length &&
           memcmp(decoded->opcode.text, opcode.text, opcode.length) == 0 && strcmp(decoded->shape, shape) == 0;
}

/* The table row, looked up once per opcode and shape of a module: there are few, and the search is slow. NULL
 * after an error. */
static const ptx_decoded *find_decoded(ptx_parser *parser, ptx_token opcode, const ptx_arguments *arguments) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < opcode.length; ++i) hash = (hash ^ (unsigned char)opcode.text[i]) * 16777619u;
    for (const char *s = arguments->shape; *s; ++s) hash = (hash ^ (unsigned char)*s) * 16777619u;
    ptx_decoded *place = &parser->decoded[hash % PTX_DECODED];
    if (is_decoded(place, opcode, arguments->shape)) return place;
    bool known;
    const ptx_form *form = ptx_find_form(opcode, arguments->shape, &known);
    if (!form) {
        fail_at(parser, opcode, known ? "operands that do not fit the instruction" : "an unknown instruction");
        return NULL;
    }
    *place = (ptx_decoded){.opcode = opcode, .form = form, .instruction = decode(opcode, form)};
    memcpy(place->shape, arguments->shape, sizeof place->shape);
    return place;
}

void ptx_parse_instruction(ptx_parser *parser, uint32_t predicate, bool unless) {
    ptx_lexer *lexer = &parser->lexer;
    const ptx_token opcode = lexer->token;
    if (opcode.kind != PTX_WORD) fail_at(parser, opcode, "an instruction is expected");
    ptx_arguments arguments;
    ptx_next(lexer);
    parse_arguments(parser, &arguments);
    if (ptx_failed(lexer)) return;
    const ptx_decoded *decoded = find_decoded(parser, opcode, &arguments);
    if (!decoded) return;
    const char *end = memchr(opcode.text, ';', 1000);
    ptx_instruction instruction = decoded->instruction;
    instruction.predicate = predicate, instruction.unless = unless;
    instruction.text = opcode.text;
    instruction.length = end ? (uint32_t)(end - opcode.text) : (uint32_t)opcode.length;
    resolve(parser, &arguments, decoded->form, &instruction);
    if (ptx_failed(lexer)) return;
    record_shared_access(parser->kernel, &instruction);
    ptx_kernel *kernel = parser->kernel;
    kernel->code = ptx_grow(kernel->code, kernel->n_code, &parser->code_capacity, sizeof *kernel->code);
    kernel->code[kernel->n_code++] = instruction;
}

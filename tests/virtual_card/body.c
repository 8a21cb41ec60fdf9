/* Parses the body of a kernel: registers, variables, labels and instructions. */
#include "parse.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_REGISTERS = 1 << 20, MAX_PLACED = 512 << 10 };

static bool same_name(ptx_token a, ptx_token b) {
    /* the last character first: most names differ in a number at the end */
    return a.length > 0 && a.length == b.length && a.text[a.length - 1] == b.text[a.length - 1] &&
           memcmp(a.text, b.text, a.length) == 0;
}

uint32_t ptx_add_registers(ptx_parser *parser, uint8_t width, uint32_t count) {
    ptx_kernel *kernel = parser->kernel;
    const uint32_t first = (uint32_t)kernel->n_registers;
    for (uint32_t i = 0; i < count; ++i) {
        kernel->register_widths =
            ptx_grow(kernel->register_widths, kernel->n_registers, &parser->register_capacity, sizeof width);
        kernel->register_widths[kernel->n_registers++] = width;
    }
    return first;
}

/* .reg .b32 %r<200>, %SP; */
static void parse_registers(ptx_parser *parser) {
    ptx_lexer *lexer = &parser->lexer;
    const int size = ptx_type_size(lexer->token);
    if (size < 0 || size > 8) ptx_fail(lexer, "registers of an unknown type");
    const uint8_t width = size == 1 ? 2 : (uint8_t)(size < 0 ? 0 : size);
    do {
        ptx_next(lexer);
        ptx_bank bank = {.name = lexer->token, .width = width};
        if (lexer->token.kind != PTX_WORD) ptx_fail(lexer, "a register name is expected");
        ptx_next(lexer);
        if (ptx_accept(lexer, "<")) {
            bank.count = (uint32_t)ptx_parse_count(parser, MAX_REGISTERS);
            ptx_expect(lexer, ">");
        }
        if (ptx_failed(lexer)) return;
        bank.first = ptx_add_registers(parser, width, bank.count ? bank.count : 1);
        if (parser->kernel->n_registers > MAX_REGISTERS) ptx_fail(lexer, "more than %d registers", MAX_REGISTERS);
        parser->banks = ptx_grow(parser->banks, parser->n_banks, &parser->bank_capacity, sizeof bank);
        parser->banks[parser->n_banks++] = bank;
    } while (ptx_at(lexer, ","));
    ptx_expect(lexer, ";");
}

static void add_symbol(ptx_parser *parser, ptx_token name, uint64_t address) {
    parser->symbols = ptx_grow(parser->symbols, parser->n_symbols, &parser->symbol_capacity, sizeof *parser->symbols);
    parser->symbols[parser->n_symbols++] = (ptx_symbol){.name = name, .address = address};
}

/* Reserves `size` bytes at *top and returns their offset. A lane may have 512 KiB of local memory; the driver
 * rejects kernels with too much shared memory for its card. */
static uint32_t place(ptx_parser *parser, uint32_t *top, size_t size, size_t align) {
    const size_t offset = (*top + align - 1) & ~(align - 1);
    if (offset + size > MAX_PLACED) {
        ptx_fail(&parser->lexer, "more than %d bytes of local or shared memory", MAX_PLACED);
        return 0;
    }
    *top = (uint32_t)(offset + size);
    return (uint32_t)offset;
}

static void parse_kernel_variable(ptx_parser *parser, uint32_t *top) {
    ptx_declaration declaration;
    if (!ptx_parse_declaration(parser, &declaration)) return;
    add_symbol(parser, declaration.name, place(parser, top, declaration.size, declaration.align));
    ptx_expect(&parser->lexer, ";");
}

bool ptx_find_symbol(ptx_parser *parser, ptx_token name, uint64_t *address) {
    for (size_t i = 0; i < parser->n_symbols; ++i)
        if (same_name(parser->symbols[i].name, name)) {
            *address = parser->symbols[i].address;
            return true;
        }
    for (size_t i = 0; i < parser->kernel->n_params; ++i)
        if (ptx_token_is(name, parser->kernel->param_names[i])) {
            *address = parser->kernel->params[i].offset;
            return true;
        }
    for (size_t i = 0; i < parser->module->n_variables; ++i) {
        const ptx_variable *variable = &parser->module->variables[i];
        if (!ptx_token_is(name, variable->name)) continue;
        *address = variable->space == PTX_SHARED
                       ? place(parser, &parser->kernel->shared_bytes, variable->size, variable->align)
                       : (uint64_t)(uintptr_t)variable->bytes;
        add_symbol(parser, name, *address);
        return true;
    }
    return false;
}

static void parse_body_directive(ptx_parser *parser) {
    ptx_lexer *lexer = &parser->lexer;
    if (ptx_accept(lexer, ".reg")) {
        parse_registers(parser);
    } else if (ptx_accept(lexer, ".local")) {
        parse_kernel_variable(parser, &parser->kernel->local_bytes);
    } else if (ptx_accept(lexer, ".shared")) {
        parse_kernel_variable(parser, &parser->kernel->shared_bytes);
    } else if (ptx_at(lexer, ".pragma")) {
        while (lexer->token.kind != PTX_END && !ptx_accept(lexer, ";")) ptx_next(lexer);
    } else if (ptx_at(lexer, ".loc") || ptx_at(lexer, ".file")) {
        const int line = lexer->token.line;
        while (lexer->token.kind != PTX_END && lexer->token.line == line) ptx_next(lexer);
    } else {
        ptx_fail(lexer, "%.*s within a kernel", (int)lexer->token.length, lexer->token.text);
    }
}

static void add_label(ptx_parser *parser, ptx_token name) {
    for (size_t i = 0; i < parser->n_labels; ++i)
        if (same_name(parser->labels[i].name, name)) ptx_fail(&parser->lexer, "a label is defined twice");
    parser->labels = ptx_grow(parser->labels, parser->n_labels, &parser->label_capacity, sizeof *parser->labels);
    parser->labels[parser->n_labels++] = (ptx_label){.name = name, .at = (uint32_t)parser->kernel->n_code};
}

/* @%p1 or @!%p1 */
static void parse_predicated(ptx_parser *parser) {
    ptx_lexer *lexer = &parser->lexer;
    ptx_operand operand = {0};
    const bool unless = ptx_accept(lexer, "!");
    if (!ptx_find_register(parser, lexer->token, &operand) || operand.width != 0)
        ptx_fail(lexer, "'%.*s' is not a predicate", (int)(lexer->token.length < 40 ? lexer->token.length : 40),
                 lexer->token.text);
    ptx_next(lexer);
    ptx_parse_instruction(parser, operand.offset, unless);
}

/* A label or an instruction, depending on the token after the first word. */
static void parse_statement(ptx_parser *parser) {
    ptx_lexer *lexer = &parser->lexer;
    const char *after = lexer->token.text + lexer->token.length;
    while (*after == ' ' || *after == '\t') after++;
    if (*after != ':') {
        ptx_parse_instruction(parser, PTX_NOWHERE, false);
        return;
    }
    add_label(parser, lexer->token);
    ptx_next(lexer);
    ptx_expect(lexer, ":");
}

static void end_kernel(ptx_parser *parser) {
    ptx_kernel *kernel = parser->kernel;
    kernel->code = ptx_grow(kernel->code, kernel->n_code, &parser->code_capacity, sizeof *kernel->code);
    kernel->code[kernel->n_code++] =
        (ptx_instruction){.kind = PTX_EXIT, .predicate = PTX_NOWHERE, .text = "(end)", .length = 5};
}

static void connect_branches(ptx_parser *parser) {
    for (size_t i = 0; i < parser->n_branches; ++i) {
        const ptx_label *branch = &parser->branches[i];
        bool found = false;
        for (size_t k = 0; k < parser->n_labels && !found; ++k)
            if (same_name(parser->labels[k].name, branch->name)) {
                parser->kernel->code[branch->at].target = parser->labels[k].at;
                found = true;
            }
        if (!found) ptx_fail(&parser->lexer, "no label %.*s", (int)branch->name.length, branch->name.text);
    }
}

/* Sets the operand pointers after parsing, because the array moves while it grows. */
static void connect_operands(ptx_kernel *kernel) {
    const ptx_operand *next = kernel->operands;
    for (size_t i = 0; i < kernel->n_code; ++i) {
        ptx_instruction *instruction = &kernel->code[i];
        instruction->to = next, next += instruction->n_to;
        instruction->from = next, next += instruction->n_from;
    }
}

void ptx_parse_body(ptx_parser *parser) {
    ptx_lexer *lexer = &parser->lexer;
    size_t scopes[16]; /* number of registers declared before each '{' */
    int depth = 0;
    if (!ptx_at(lexer, "{")) ptx_expect(lexer, "{");
    do {
        if (ptx_at(lexer, "{")) {
            if (depth == 16) ptx_fail(lexer, "more than 16 scopes");
            if (ptx_failed(lexer)) return;
            scopes[depth++] = parser->n_banks;
            ptx_next(lexer);
        } else if (ptx_at(lexer, "}")) {
            parser->n_banks = scopes[--depth];
            if (depth) ptx_next(lexer);
        } else if (ptx_accept(lexer, "@")) {
            parse_predicated(parser);
        } else if (lexer->token.kind == PTX_WORD && lexer->token.text[0] == '.') {
            parse_body_directive(parser);
        } else if (lexer->token.kind == PTX_WORD) {
            parse_statement(parser);
        } else if (!ptx_accept(lexer, ";")) {
            ptx_fail(lexer, "a statement is expected%s",
                     lexer->token.kind == PTX_END ? ", but the text ends within a kernel" : "");
        }
    } while (depth > 0 && !ptx_failed(lexer));
    if (ptx_failed(lexer)) return;
    end_kernel(parser);
    connect_operands(parser->kernel);
    connect_branches(parser);
    ptx_expect(lexer, "}");
}

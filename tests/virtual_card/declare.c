/* Parses variable declarations with their initialisers, and numbers. */
#include "parse.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 1 << 28 }; /* of a variable; a larger one is an error */

bool ptx_parse_number(ptx_token token, int width, uint64_t *bits) {
    char text[64];
    if (token.kind != PTX_NUMBER || token.length >= sizeof text) return false;
    memcpy(text, token.text, token.length);
    text[token.length] = 0;
    char *end;
    if (text[0] == '0' && strchr("fFdD", text[1]) && text[1]) { /* the bits of a float or double */
        *bits = strtoull(text + 2, &end, 16);
        if (*end || end == text + 2) return false;
        if (width == 8 && (text[1] == 'f' || text[1] == 'F')) {
            const uint32_t low = (uint32_t)*bits;
            float single;
            memcpy(&single, &low, sizeof single);
            const double wide = single;
            memcpy(bits, &wide, sizeof wide);
        }
        return true;
    }
    if (strchr(text, '.') && strncmp(text, "0x", 2) != 0) {
        const double value = strtod(text, &end);
        const float single = (float)value;
        *bits = 0;
        memcpy(bits, width == 8 ? (const void *)&value : (const void *)&single, width == 8 ? 8 : 4);
        return !*end;
    }
    *bits = strtoull(text, &end, 0);
    return !*end || (end[0] == 'U' && !end[1]);
}

uint64_t ptx_parse_count(ptx_parser *parser, uint64_t max) {
    ptx_lexer *lexer = &parser->lexer;
    uint64_t value = 0;
    if (!ptx_parse_number(lexer->token, 0, &value) || value > max)
        ptx_fail(lexer, "a number up to %llu is expected, not '%.*s'", (unsigned long long)max,
                 (int)(lexer->token.length < 40 ? lexer->token.length : 40), lexer->token.text);
    ptx_next(lexer);
    return ptx_failed(lexer) ? 0 : value;
}

bool ptx_parse_declaration(ptx_parser *parser, ptx_declaration *declaration) {
    ptx_lexer *lexer = &parser->lexer;
    *declaration = (ptx_declaration){.align = 0};
    while (lexer->token.kind == PTX_WORD && lexer->token.text[0] == '.') {
        const int size = ptx_type_size(lexer->token);
        if (ptx_accept(lexer, ".align")) {
            declaration->align = (size_t)ptx_parse_count(parser, 1 << 16);
        } else {
            if (size > 0)
                declaration->element = (size_t)size;
            else
                ptx_fail(lexer, "a variable with %.*s", (int)lexer->token.length, lexer->token.text);
            ptx_next(lexer);
        }
    }
    if (lexer->token.kind != PTX_WORD || !declaration->element) ptx_fail(lexer, "a variable without type or name");
    declaration->name = lexer->token;
    ptx_next(lexer);
    size_t count = 1;
    while (ptx_accept(lexer, "[")) {
        if (ptx_at(lexer, "]"))
            ptx_fail(lexer, "an array without a size (memory of the launch is a parameter in OpenCL)");
        count *= (size_t)ptx_parse_count(parser, MAX_BYTES);
        if (count > MAX_BYTES) ptx_fail(lexer, "an array of more than %d elements", MAX_BYTES);
        ptx_expect(lexer, "]");
    }
    if (!declaration->align) declaration->align = declaration->element;
    if (declaration->align & (declaration->align - 1)) ptx_fail(lexer, "an alignment that is not a power of two");
    declaration->size = count * declaration->element;
    if (declaration->size > MAX_BYTES) ptx_fail(lexer, "a variable of more than %d bytes", MAX_BYTES);
    return !ptx_failed(lexer);
}

/* { 1, -2, 0f3F800000 }, possibly nested; omitted elements are 0. */
static void parse_initialiser(ptx_parser *parser, unsigned char *bytes, const ptx_declaration *declaration) {
    ptx_lexer *lexer = &parser->lexer;
    size_t at = 0;
    int depth = 0;
    do {
        if (ptx_accept(lexer, "{")) {
            depth++;
        } else if (ptx_accept(lexer, "}")) {
            depth--;
        } else if (!ptx_accept(lexer, ",")) {
            const bool negative = ptx_accept(lexer, "-");
            uint64_t bits = 0;
            if (!ptx_parse_number(lexer->token, (int)declaration->element, &bits))
                ptx_fail(lexer, "an initialiser '%.*s' that is not a number",
                         (int)(lexer->token.length < 40 ? lexer->token.length : 40), lexer->token.text);
            if (at + declaration->element > declaration->size) ptx_fail(lexer, "more initialisers than elements");
            if (ptx_failed(lexer)) return;
            if (negative) bits = 0 - bits;
            memcpy(bytes + at, &bits, declaration->element);
            at += declaration->element;
            ptx_next(lexer);
        }
    } while (depth > 0 && lexer->token.kind != PTX_END);
}

void ptx_parse_variable(ptx_parser *parser, ptx_space space) {
    ptx_lexer *lexer = &parser->lexer;
    ptx_module *module = parser->module;
    ptx_declaration declaration;
    if (!ptx_parse_declaration(parser, &declaration)) return;
    if (declaration.element > 8) ptx_fail(lexer, "a variable with 128-bit elements");
    ptx_variable variable = {.space = space, .size = declaration.size, .align = declaration.align};
    if (space != PTX_SHARED && !ptx_failed(lexer)) {
        const size_t align = declaration.align < 16 ? 16 : declaration.align;
        if (posix_memalign((void **)&variable.bytes, align, declaration.size + 16)) abort();
        memset(variable.bytes, 0, declaration.size + 16);
        if (ptx_accept(lexer, "=")) parse_initialiser(parser, variable.bytes, &declaration);
    }
    ptx_expect(lexer, ";");
    variable.name = strndup(declaration.name.text, declaration.name.length);
    module->variables = ptx_grow(module->variables, module->n_variables, &parser->variable_capacity, sizeof variable);
    module->variables[module->n_variables++] = variable;
}

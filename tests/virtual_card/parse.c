/* Parses PTX modules: variables, kernels and their parameters. */
#include "parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *ptx_grow(void *array, size_t count, size_t *capacity, size_t size) {
    if (count < *capacity) return array;
    *capacity = *capacity ? 2 * *capacity : 16;
    array = realloc(array, *capacity * size);
    if (!array) abort();
    return array;
}

static char *copy_text(const char *text, size_t length) {
    char *copy = malloc(length + 1);
    if (!copy) abort();
    memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}

int ptx_type_size(ptx_token token) {
    static const struct {
        const char *name;
        int size;
    } types[] = {{"pred", 0},   {"b8", 1},   {"u8", 1},  {"s8", 1},  {"b16", 2}, {"u16", 2},  {"s16", 2},
                 {"f16", 2},    {"bf16", 2}, {"b32", 4}, {"u32", 4}, {"s32", 4}, {"f32", 4},  {"f16x2", 4},
                 {"bf16x2", 4}, {"b64", 8},  {"u64", 8}, {"s64", 8}, {"f64", 8}, {"b128", 16}};
    if (token.length && token.text[0] == '.') token.text++, token.length--;
    for (size_t i = 0; i < sizeof types / sizeof *types; ++i)
        if (ptx_token_is(token, types[i].name)) return types[i].size;
    return -1;
}

/* .reqntid 16, 16. The other directives also take up to three numbers and are ignored. */
static void parse_sizes(ptx_parser *parser, uint32_t sizes[3]) {
    sizes[0] = sizes[1] = sizes[2] = 1;
    ptx_next(&parser->lexer);
    for (int i = 0; i < 3; ++i) {
        sizes[i] = (uint32_t)ptx_parse_count(parser, UINT32_MAX);
        if (!ptx_accept(&parser->lexer, ",")) return;
    }
}

/* .param .u64 .ptr .global .align 4 name, or .param .align 16 .b8 name[32] */
static void parse_param(ptx_parser *parser) {
    ptx_lexer *lexer = &parser->lexer;
    ptx_kernel *kernel = parser->kernel;
    ptx_param param = {0};
    uint32_t align = 0, element = 0;
    bool pointer = false, global = true;
    ptx_expect(lexer, ".param");
    while (lexer->token.kind == PTX_WORD && lexer->token.text[0] == '.') {
        const int size = ptx_type_size(lexer->token);
        if (size > 0) {
            element = (uint32_t)size;
        } else if (ptx_at(lexer, ".ptr")) {
            pointer = true;
        } else if (ptx_at(lexer, ".shared")) {
            param.shared = true;
        } else if (ptx_at(lexer, ".local")) {
            global = false;
        } else if (ptx_at(lexer, ".align")) {
            ptx_next(lexer);
            const uint32_t bytes = (uint32_t)ptx_parse_count(parser, 4096);
            if (!pointer) align = bytes; /* otherwise the pointee is aligned */
            continue;
        } else if (!ptx_at(lexer, ".global") && !ptx_at(lexer, ".const")) {
            ptx_fail(lexer, "a parameter with %.*s", (int)lexer->token.length, lexer->token.text);
        }
        ptx_next(lexer);
    }
    if (!element || lexer->token.kind != PTX_WORD) ptx_fail(lexer, "a parameter without type or name");
    if (ptx_failed(lexer)) return;
    kernel->param_names = ptx_grow(kernel->param_names, kernel->n_params, &parser->name_capacity, sizeof(char *));
    kernel->param_names[kernel->n_params] = copy_text(lexer->token.text, lexer->token.length);
    ptx_next(lexer);
    uint32_t count = 1;
    if (ptx_accept(lexer, "[")) {
        count = (uint32_t)ptx_parse_count(parser, 4096);
        ptx_expect(lexer, "]");
    }
    if (!align) align = element;
    if (align & (align - 1)) ptx_fail(lexer, "an alignment of %u", align);
    param.pointer = pointer && global && !param.shared;
    param.size = element * count;
    param.offset = (kernel->param_bytes + align - 1) & ~(align - 1);
    kernel->param_bytes = param.offset + param.size;
    if (kernel->param_bytes > 32764) ptx_fail(lexer, "more parameters than 32764 bytes");
    kernel->params = ptx_grow(kernel->params, kernel->n_params, &parser->param_capacity, sizeof param);
    kernel->params[kernel->n_params++] = param;
}

static void free_kernel(ptx_kernel *kernel) {
    for (size_t i = 0; i < kernel->n_params; ++i) free(kernel->param_names[i]);
    free(kernel->param_names), free(kernel->params), free(kernel->name);
    free(kernel->code), free(kernel->operands), free(kernel->constants), free(kernel->register_widths);
    free(kernel);
}

static void forget_kernel_scope(ptx_parser *parser) {
    free(parser->banks), free(parser->symbols), free(parser->labels), free(parser->branches);
    const ptx_parser kept = *parser;
    *parser = (ptx_parser){.lexer = kept.lexer,
                           .module = kept.module,
                           .decoded = kept.decoded,
                           .kernel_capacity = kept.kernel_capacity,
                           .variable_capacity = kept.variable_capacity};
}

static void parse_kernel(ptx_parser *parser) {
    ptx_lexer *lexer = &parser->lexer;
    ptx_module *module = parser->module;
    ptx_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel) abort();
    parser->kernel = kernel;
    kernel->module = module;
    kernel->cell_shift = 2;
    kernel->name = copy_text(lexer->token.text, lexer->token.length);
    if (lexer->token.kind != PTX_WORD) ptx_fail(lexer, ".entry without a name");
    if (ptx_find(module, kernel->name)) ptx_fail(lexer, "a second kernel %s", kernel->name);
    module->kernels = ptx_grow(module->kernels, module->n_kernels, &parser->kernel_capacity, sizeof kernel);
    module->kernels[module->n_kernels++] = kernel;
    ptx_next(lexer);
    if (ptx_accept(lexer, "(") && !ptx_accept(lexer, ")")) {
        do parse_param(parser);
        while (ptx_accept(lexer, ","));
        ptx_expect(lexer, ")");
    }
    while (lexer->token.kind == PTX_WORD) {
        uint32_t ignored[3];
        if (ptx_at(lexer, ".reqntid"))
            parse_sizes(parser, kernel->required);
        else if (ptx_at(lexer, ".maxntid") || ptx_at(lexer, ".minnctapersm") || ptx_at(lexer, ".maxnreg"))
            parse_sizes(parser, ignored);
        else
            ptx_fail(lexer, "a kernel with %.*s", (int)lexer->token.length, lexer->token.text);
    }
    ptx_parse_body(parser);
    if (!ptx_failed(lexer)) ptx_find_reconvergence(kernel), ptx_place_registers(kernel);
    forget_kernel_scope(parser);
}

/* Skips a function that is not a kernel. Kernels call none, because everything is inlined; a call is an
 * error. */
static void skip_function(ptx_parser *parser) {
    ptx_lexer *lexer = &parser->lexer;
    while (lexer->token.kind != PTX_END && !ptx_at(lexer, "{") && !ptx_at(lexer, ";")) ptx_next(lexer);
    int depth = 0;
    do {
        if (ptx_at(lexer, "{")) depth++;
        if (ptx_at(lexer, "}")) depth--;
        if (lexer->token.kind == PTX_END) ptx_fail(lexer, "the text ends within a function");
        ptx_next(lexer);
    } while (depth > 0 && !ptx_failed(lexer));
}

static void skip_line(ptx_lexer *lexer) {
    for (const int line = lexer->token.line; lexer->token.kind != PTX_END && lexer->token.line == line;)
        ptx_next(lexer);
}

static void parse_directive(ptx_parser *parser) {
    ptx_lexer *lexer = &parser->lexer;
    if (ptx_accept(lexer, ".entry"))
        parse_kernel(parser);
    else if (ptx_accept(lexer, ".func"))
        skip_function(parser);
    else if (ptx_accept(lexer, ".global"))
        ptx_parse_variable(parser, PTX_GLOBAL);
    else if (ptx_accept(lexer, ".const"))
        ptx_parse_variable(parser, PTX_CONST);
    else if (ptx_accept(lexer, ".shared"))
        ptx_parse_variable(parser, PTX_SHARED);
    else if (ptx_at(lexer, ".version") || ptx_at(lexer, ".target") || ptx_at(lexer, ".address_size") ||
             ptx_at(lexer, ".file"))
        skip_line(lexer);
    else if (!ptx_accept(lexer, ".visible") && !ptx_accept(lexer, ".weak") && !ptx_accept(lexer, ".common") &&
             !ptx_accept(lexer, ";"))
        ptx_fail(lexer, "'%.*s' is not understood", (int)(lexer->token.length < 60 ? lexer->token.length : 60),
                 lexer->token.text);
}

ptx_module *ptx_read(const char *text, char *message, size_t size) {
    ptx_module *module = calloc(1, sizeof *module);
    if (!module) abort();
    module->text = copy_text(text, strlen(text));
    ptx_parser parser = {.module = module, .decoded = calloc(PTX_DECODED, sizeof *parser.decoded)};
    if (!parser.decoded) abort();
    ptx_start(&parser.lexer, module->text, message, size);
    if (!ptx_at(&parser.lexer, ".version")) ptx_fail(&parser.lexer, ".version is expected first");
    while (parser.lexer.token.kind != PTX_END) parse_directive(&parser);
    free(parser.decoded);
    if (!ptx_failed(&parser.lexer)) return module;
    ptx_free(module);
    return NULL;
}

void ptx_free(ptx_module *module) {
    if (!module) return;
    for (size_t i = 0; i < module->n_kernels; ++i) free_kernel(module->kernels[i]);
    for (size_t i = 0; i < module->n_variables; ++i) free(module->variables[i].name), free(module->variables[i].bytes);
    free(module->kernels), free(module->variables), free(module->text), free(module);
}

size_t ptx_kernels(const ptx_module *module) {
    return module->n_kernels;
}
const ptx_kernel *ptx_kernel_at(const ptx_module *module, size_t i) {
    return module->kernels[i];
}
const ptx_kernel *ptx_find(const ptx_module *module, const char *name) {
    for (size_t i = 0; i < module->n_kernels; ++i)
        if (strcmp(module->kernels[i]->name, name) == 0) return module->kernels[i];
    return NULL;
}
const char *ptx_name(const ptx_kernel *kernel) {
    return kernel->name;
}
size_t ptx_params(const ptx_kernel *kernel) {
    return kernel->n_params;
}
const ptx_param *ptx_param_at(const ptx_kernel *kernel, size_t i) {
    return &kernel->params[i];
}
uint32_t ptx_param_bytes(const ptx_kernel *kernel) {
    return kernel->param_bytes;
}
uint32_t ptx_shared_bytes(const ptx_kernel *kernel) {
    return kernel->shared_bytes;
}
uint32_t ptx_local_bytes(const ptx_kernel *kernel) {
    return kernel->local_bytes;
}
bool ptx_required_group(const ptx_kernel *kernel, uint32_t size[3]) {
    if (!kernel->required[0]) return false;
    memcpy(size, kernel->required, sizeof kernel->required);
    return true;
}

/* Decodes a line of assembly. */
#include "decode.h"

#include "../kernel.h"
#include "wave.h"

#include <stdio.h>
#include <string.h>

enum { MAX_PIECES = 8 };

/* Splits the text after the opcode at its commas. `rest` receives the text after the last operand. */
typedef struct pieces {
    gcn_text piece[MAX_PIECES];
    size_t count;
    gcn_text rest;
} pieces;

static gcn_text cut_opcode(gcn_text line, gcn_text *rest) {
    size_t n = 0;
    while (n < line.length && line.at[n] != ' ' && line.at[n] != '\t') n++;
    *rest = gcn_trim((gcn_text){line.at + n, line.length - n});
    return (gcn_text){line.at, n};
}

/* The length of an operand: up to a comma, or up to a blank that no operator follows. */
static size_t operand_length(gcn_text text) {
    size_t n = 0, depth = 0;
    for (; n < text.length; ++n) {
        const char c = text.at[n];
        depth += c == '[' || c == '(';
        depth -= c == ']' || c == ')';
        if (!depth && (c == ',' || c == ' ')) break;
    }
    return n;
}

static bool cut_operands(gcn_reader *reader, gcn_text text, pieces *found) {
    found->count = 0;
    while (text.length) {
        if (found->count == MAX_PIECES) return gcn_fail(reader, "more than %d operands", (int)MAX_PIECES);
        const size_t n = operand_length(text);
        found->piece[found->count++] = (gcn_text){text.at, n};
        text = gcn_trim((gcn_text){text.at + n, text.length - n});
        if (!text.length || text.at[0] != ',') break;
        text = gcn_trim((gcn_text){text.at + 1, text.length - 1});
    }
    found->rest = text;
    return true;
}

static gcn_text without_suffix(gcn_text opcode, bool *sdwa) {
    static const char *const suffixes[] = {"_e64_dpp", "_e32", "_e64", "_sdwa", "_dpp"};
    *sdwa = false;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; ++i) {
        const size_t n = strlen(suffixes[i]);
        if (opcode.length <= n || memcmp(opcode.at + opcode.length - n, suffixes[i], n) != 0) continue;
        *sdwa = i == 3;
        opcode.length -= n;
        break;
    }
    return opcode;
}

/* Half of a pair, v_dual_mov_b32, is v_mov_b32. */
static const gcn_form *find_form(gcn_text opcode) {
    static const char dual[] = "v_dual_";
    const size_t skip = sizeof dual - 1;
    char name[64];
    if (!gcn_begins(opcode, dual) || opcode.length >= sizeof name) return gcn_find_form(opcode.at, opcode.length);
    const int length = snprintf(name, sizeof name, "v_%.*s", (int)(opcode.length - skip), opcode.at + skip);
    return gcn_find_form(name, (size_t)length);
}

static void add_fixup(gcn_reader *reader, uint8_t operand, bool high, gcn_text name) {
    reader->fixups = ptx_grow(reader->fixups, reader->n_fixups, &reader->fixup_capacity, sizeof *reader->fixups);
    reader->fixups[reader->n_fixups++] = (struct gcn_fixup){
        .instruction = (uint32_t)reader->module->n_code, .operand = operand, .high = high, .name = name};
}

/* Counts the results and operands of a form from its letters. */
static void count_letters(const char *letters, size_t *to, size_t *from) {
    const char *equals = strchr(letters, '=');
    *to = equals ? (size_t)(equals - letters) : 0;
    *from = 0;
    for (const char *c = equals ? equals + 1 : letters; *c; ++c) *from += *c != '+';
}

static bool read_operands(gcn_reader *reader, const pieces *found, gcn_instruction *now) {
    const char *letters = now->form->operands, *equals = strchr(letters, '=');
    const char *sources = equals ? equals + 1 : letters;
    size_t n_to, n_from, at = 0;
    gcn_text symbol;
    count_letters(letters, &n_to, &n_from);
    /* Atomics may omit the result, v_cmpx the mask. */
    const bool may_lack = letters[0] == 'V' || letters[0] == 'm';
    if (may_lack && n_to == 1 && n_from > 0 && found->count == n_from) n_to = 0;
    const bool implied = found->count + 1 == n_to + n_from && sources[n_from - 1] == 'm'; /* vcc */
    if (found->count != n_to + n_from - implied)
        return gcn_fail(reader, "%zu operands for '%s'", found->count, letters);
    for (size_t i = 0; i < n_to; ++i)
        if (!gcn_read_operand(reader, found->piece[at++], letters[i], &now->to[now->n_to++], &symbol)) return false;
    for (size_t i = 0; sources[i]; ++i) {
        gcn_operand *operand = &now->from[now->n_from];
        if (sources[i] == '+') {
            *operand = now->to[0];
        } else if (at == found->count) {
            *operand = (gcn_operand){.kind = GCN_SCALAR, .type = 'm', .words = 2, .index = GCN_VCC};
        } else {
            if (!gcn_read_operand(reader, found->piece[at++], sources[i], operand, &symbol)) return false;
            if (symbol.length) add_fixup(reader, now->n_from, operand->value != 0, symbol);
        }
        now->n_from++;
    }
    return true;
}

/* Default modifiers: the upper halves of packed operands come from upper halves. */
static void set_defaults(gcn_instruction *now) {
    const char *operands = now->form->operands ? now->form->operands : "";
    const bool mixed = strchr(operands, 'x');
    now->op_sel_hi = mixed ? 0 : 7;
    now->row_mask = now->bank_mask = 15;
}

/* The counter of an instruction, by its name. */
static uint8_t kind_of(const gcn_form *form) {
    static const struct {
        const char *part;
        uint8_t kind;
    } kinds[] = {{"permute", PTX_FLOW},      {"lane_b32", PTX_FLOW},    {"_saveexec", PTX_FLOW},
                 {"_load_", PTX_MEMORY},     {"_store_", PTX_MEMORY},   {"ds_", PTX_MEMORY},
                 {"_atomic_", PTX_MEMORY},   {"_cmp", PTX_COMPARES},    {"_cndmask", PTX_COMPARES},
                 {"_cselect", PTX_COMPARES}, {"_bitcmp", PTX_COMPARES}, {"_cvt_", PTX_CONVERTS},
                 {"_mov", PTX_MOVES},        {"_accvgpr", PTX_MOVES},   {"_f16", PTX_FLOATS},
                 {"_f32", PTX_FLOATS},       {"_f64", PTX_FLOATS}};
    if (!form->operands) return PTX_FLOW;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i)
        if (strstr(form->name, kinds[i].part)) return kinds[i].kind;
    return PTX_INTEGERS;
}

/* The unit that executes an instruction, by its name. */
static uint8_t unit_of(const gcn_form *form) {
    static const char *const of_no_unit[] = {"s_waitcnt", "s_nop", "s_sleep", "s_clause", "s_delay_alu"};
    for (size_t i = 0; i < sizeof of_no_unit / sizeof *of_no_unit; ++i)
        if (strncmp(form->name, of_no_unit[i], strlen(of_no_unit[i])) == 0) return GCN_NO_UNIT;
    return strncmp(form->name, "v_", 2) == 0   ? GCN_VECTOR_UNIT
           : strncmp(form->name, "s_", 2) == 0 ? GCN_SCALAR_UNIT
                                               : GCN_OTHER_UNIT;
}

static bool add_instruction(gcn_reader *reader, gcn_text line, uint8_t issues) {
    gcn_module *module = reader->module;
    gcn_instruction now = {.text = line.at, .length = (uint32_t)line.length, .issues = issues};
    gcn_text rest;
    pieces found = {.count = 0};
    const gcn_text opcode = without_suffix(cut_opcode(line, &rest), &now.sdwa);
    now.form = find_form(opcode);
    if (!now.form) return gcn_fail(reader, "instruction '%.*s'", (int)opcode.length, opcode.at);
    set_defaults(&now);
    if (now.form->kind == GCN_BRANCH) add_fixup(reader, 0xff, false, rest);
    if (now.form->operands && (!cut_operands(reader, rest, &found) || !read_operands(reader, &found, &now)))
        return false;
    if (now.form->operands && !gcn_read_modifiers(reader, found.rest, &now)) return false;
    now.run = now.form->run ? now.form->run : now.form->scalar ? gcn_run_scalar : gcn_run_lanes;
    now.returns = now.n_to > 0;
    now.counted_as = kind_of(now.form);
    now.unit = unit_of(now.form);
    if (now.form->space == GCN_LDS && now.form->element == 2 && module->cell_shift > 1) module->cell_shift = 1;
    if (now.form->space == GCN_LDS && now.form->element == 1) module->cell_shift = 0;
    module->code = ptx_grow(module->code, module->n_code, &reader->code_capacity, sizeof now);
    module->code[module->n_code++] = now;
    return true;
}

/* v_dual_mov_b32 v1, v2 :: v_dual_mov_b32 v2, v1: both halves read before either writes, so a separate
 * register holds the first result. */
static bool add_pair(gcn_reader *reader, gcn_text first, gcn_text second) {
    static const char move_text[] = "v_mov_b32 v0, v0";
    gcn_module *module = reader->module;
    if (!add_instruction(reader, first, 1)) return false;
    gcn_operand *result = &module->code[module->n_code - 1].to[0];
    const uint16_t index = result->index;
    result->index = GCN_SPARE;
    if (!add_instruction(reader, second, 0)) return false;
    if (!add_instruction(reader, (gcn_text){move_text, sizeof move_text - 1}, 0)) return false;
    gcn_instruction *move = &module->code[module->n_code - 1];
    move->to[0].index = index;
    move->from[0].index = GCN_SPARE;
    move->text = first.at, move->length = (uint32_t)first.length;
    return true;
}

bool gcn_decode(gcn_reader *reader, gcn_text line) {
    for (size_t i = 0; i + 2 < line.length; ++i)
        if (line.at[i] == ':' && line.at[i + 1] == ':')
            return add_pair(reader, gcn_trim((gcn_text){line.at, i}),
                            gcn_trim((gcn_text){line.at + i + 2, line.length - i - 2}));
    return add_instruction(reader, line, 1);
}

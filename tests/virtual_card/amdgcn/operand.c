/* Parses operands: registers, constants, labels, with their signs. */
#include "decode.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lanes.h"

static const struct {
    const char *name;
    uint16_t index;
    uint8_t words;
} named[] = {{"vcc", GCN_VCC, 2},
             {"vcc_lo", GCN_VCC, 1},
             {"vcc_hi", GCN_VCC + 1, 1},
             {"exec", GCN_EXEC, 2},
             {"exec_lo", GCN_EXEC, 1},
             {"exec_hi", GCN_EXEC + 1, 1},
             {"m0", GCN_M0, 1},
             {"null", GCN_NULL, 1},
             {"flat_scratch", GCN_FLAT_SCRATCH, 2},
             {"flat_scratch_lo", GCN_FLAT_SCRATCH, 1},
             {"flat_scratch_hi", GCN_FLAT_SCRATCH + 1, 1},
             {"xnack_mask", GCN_XNACK, 2},
             {"xnack_mask_lo", GCN_XNACK, 1},
             {"xnack_mask_hi", GCN_XNACK + 1, 1}};

static bool read_named(gcn_text text, gcn_operand *operand) {
    for (size_t i = 0; i < sizeof named / sizeof *named; ++i)
        if (gcn_is(text, named[i].name)) {
            operand->kind = GCN_SCALAR;
            operand->index = named[i].index;
            operand->words = named[i].words;
            return true;
        }
    if (gcn_is(text, "scc") || gcn_is(text, "src_scc")) {
        operand->kind = GCN_SCC;
        return true;
    }
    const bool lds = gcn_is(text, "src_shared_base");
    if (lds || gcn_is(text, "src_private_base")) {
        operand->kind = GCN_CONSTANT;
        operand->value = lds ? GCN_LDS_WINDOW : GCN_SCRATCH_WINDOW;
        return true;
    }
    operand->kind = GCN_OFF;
    return gcn_is(text, "off");
}

/* v5, s[4:7], ttmp9. */
static bool read_register(gcn_text text, gcn_operand *operand) {
    const bool ttmp = gcn_begins(text, "ttmp");
    const char file = ttmp ? 't' : text.at[0];
    const size_t prefix = ttmp ? 4 : 1;
    int64_t first, last;
    if (text.length <= prefix || !strchr("vast", file)) return false;
    gcn_text rest = {text.at + prefix, text.length - prefix};
    if (rest.at[0] == '[') {
        const char *colon = memchr(rest.at, ':', rest.length);
        if (!colon || rest.at[rest.length - 1] != ']') return false;
        if (!gcn_number((gcn_text){rest.at + 1, (size_t)(colon - rest.at) - 1}, &first)) return false;
        if (!gcn_number((gcn_text){colon + 1, (size_t)(rest.at + rest.length - colon) - 2}, &last)) return false;
    } else {
        if (!gcn_number(rest, &first)) return false;
        last = first;
    }
    const int64_t base = file == 'a' ? GCN_ACCUMULATORS : file == 't' ? GCN_TTMP : 0;
    const int64_t limit = file == 's' ? GCN_VCC : file == 't' ? 16 : 256;
    if (first < 0 || last < first || last >= limit) return false;
    operand->kind = file == 'v' || file == 'a' ? GCN_VECTOR : GCN_SCALAR;
    operand->index = (uint16_t)(base + first);
    operand->words = (uint8_t)(last - first + 1);
    return true;
}

/* Converts a float to the bits of the type. */
static uint64_t bits_of(double value, char type) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (type == 'd' || type == 'q') return bits;
    if (type == 'h' || type == 'P' || type == 'w' || type == 'I') return ptx_to_f16((float)value);
    return ptx_float_bits((float)value);
}

static bool read_constant(gcn_text text, char type, gcn_operand *operand) {
    char digits[40];
    int64_t number;
    char *end = NULL;
    operand->kind = GCN_CONSTANT;
    operand->words = 1;
    if (gcn_number(text, &number)) {
        operand->value = (uint64_t)number;
        const bool hex = text.length > 1 && (text.at[1] | 32) == 'x';
        if (type == 'd' && hex && operand->value >> 32 == 0) operand->value <<= 32;
        if (!strchr("dq", type)) operand->value &= UINT32_MAX;
        return true;
    }
    if (text.length == 0 || text.length >= sizeof digits) return false;
    memcpy(digits, text.at, text.length);
    digits[text.length] = 0;
    const double value = strtod(digits, &end);
    if (*end || !strchr("-.0123456789", digits[0])) return false;
    operand->value = bits_of(value, type);
    return true;
}

/* name@rel32@lo+4: because s_getpc_b64 returns 0, this is the address itself. */
static bool read_address(gcn_reader *reader, gcn_text text, gcn_operand *operand, gcn_text *symbol) {
    const char *at = memchr(text.at, '@', text.length);
    operand->kind = GCN_CONSTANT;
    operand->words = 1;
    if (!at) return gcn_fail(reader, "operand '%.*s'", (int)text.length, text.at);
    const gcn_text how = {at, text.length - (size_t)(at - text.at)};
    if (!gcn_begins(how, "@rel32@lo+4") && !gcn_begins(how, "@rel32@hi+12"))
        return gcn_fail(reader, "address '%.*s'", (int)text.length, text.at);
    *symbol = (gcn_text){text.at, (size_t)(at - text.at)};
    operand->value = gcn_begins(how, "@rel32@hi");
    return true;
}

static void cut(gcn_text *text, size_t before, size_t behind) {
    text->at += before, text->length -= before + behind;
    *text = gcn_trim(*text);
}

bool gcn_read_operand(gcn_reader *reader, gcn_text text, char type, gcn_operand *operand, gcn_text *symbol) {
    int64_t number;
    *operand = (gcn_operand){.type = (uint8_t)type};
    symbol->length = 0;
    if (!text.length) return gcn_fail(reader, "an operand is missing");
    if (text.at[0] == '-' && text.length > 1 && strchr("vsa|te", text.at[1])) {
        operand->negate = true;
        cut(&text, 1, 0);
    }
    if (gcn_begins(text, "neg(")) {
        operand->negate = true;
        cut(&text, 4, 1);
    }
    if (gcn_begins(text, "sext(")) {
        operand->sign = true;
        cut(&text, 5, 1);
    }
    if (gcn_begins(text, "abs(")) {
        operand->absolute = true;
        cut(&text, 4, 1);
    }
    if (text.at[0] == '|' && text.length > 2) {
        operand->absolute = true;
        cut(&text, 1, 1);
    }
    if ((operand->negate || operand->absolute) && !strchr("fhdx", type))
        return gcn_fail(reader, "a sign on an operand that is not a float");
    if (gcn_number(text, &number)) return read_constant(text, type, operand);
    if (read_named(text, operand) || read_register(text, operand) || read_constant(text, type, operand)) return true;
    return read_address(reader, text, operand, symbol);
}

/* Modifiers after the operands of an instruction: offset:16 glc, src0_sel:WORD_1, row_shr:1 row_mask:0xf, ... */
#include "decode.h"

#include <string.h>

/* [1,0,1] as bits. */
static bool read_bits(gcn_text value, uint8_t *bits) {
    *bits = 0;
    if (value.length < 3 || value.at[0] != '[') return false;
    for (size_t i = 1, k = 0; i + 1 < value.length; i += 2, ++k) {
        if (value.at[i] != '0' && value.at[i] != '1') return false;
        *bits |= (uint8_t)((value.at[i] == '1') << k);
    }
    return true;
}

static bool read_part(gcn_text value, uint8_t *part) {
    static const char *const names[] = {"DWORD", "BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1"};
    for (uint8_t i = 0; i < sizeof names / sizeof *names; ++i)
        if (gcn_is(value, names[i])) {
            *part = i;
            return true;
        }
    return false;
}

static bool read_unused(gcn_text value, uint8_t *unused) {
    static const char *const names[] = {"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"};
    for (uint8_t i = 0; i < sizeof names / sizeof *names; ++i)
        if (gcn_is(value, names[i])) {
            *unused = i;
            return true;
        }
    return false;
}

/* row_shr:1, quad_perm:[0,1,2,3], row_mirror. */
static bool read_dpp(gcn_text name, gcn_text value, gcn_instruction *to) {
    static const struct {
        const char *name;
        uint8_t dpp;
    } rows[] = {{"row_shl", GCN_ROW_SHL},
                {"row_shr", GCN_ROW_SHR},
                {"row_ror", GCN_ROW_ROR},
                {"wave_shl", GCN_WAVE_SHL},
                {"wave_shr", GCN_WAVE_SHR},
                {"row_mirror", GCN_ROW_MIRROR},
                {"row_half_mirror", GCN_ROW_HALF_MIRROR},
                {"row_share", GCN_ROW_SHARE},
                {"row_newbcast", GCN_ROW_SHARE},
                {"row_xmask", GCN_ROW_XMASK}};
    int64_t number = 0;
    if (gcn_is(name, "quad_perm") && value.length == 9) {
        to->dpp = GCN_QUAD_PERM;
        for (int i = 0; i < 4; ++i) to->dpp_value |= (uint8_t)((value.at[1 + 2 * i] - '0') << 2 * i);
        return true;
    }
    gcn_number(value, &number);
    if (gcn_is(name, "row_bcast")) {
        to->dpp = number == 15 ? GCN_ROW_BCAST15 : GCN_ROW_BCAST31;
        return number == 15 || number == 31;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        if (gcn_is(name, rows[i].name)) {
            to->dpp = rows[i].dpp;
            to->dpp_value = (uint8_t)number;
            return true;
        }
    return false;
}

/* A modifier without a value. Caches are not modelled. */
static bool read_flag(gcn_text name, gcn_instruction *to) {
    static const char *const ignored[] = {"glc", "slc", "dlc", "scc", "nt", "sc0", "sc1", "offen"};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; ++i)
        if (gcn_is(name, ignored[i])) return true;
    if (!gcn_is(name, "clamp")) return false;
    to->clamp = true;
    return true;
}

static bool read_modifier(gcn_text name, gcn_text value, gcn_instruction *to) {
    const struct {
        const char *name;
        uint8_t *bits;
    } lists[] = {{"op_sel", &to->op_sel},
                 {"op_sel_hi", &to->op_sel_hi},
                 {"neg_lo", &to->negate_low},
                 {"neg_hi", &to->negate_high}};
    int64_t number = 0;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; ++i)
        if (gcn_is(name, lists[i].name)) return read_bits(value, lists[i].bits);
    if (gcn_is(name, "src0_sel")) return read_part(value, &to->from[0].part);
    if (gcn_is(name, "src1_sel")) return read_part(value, &to->from[1].part);
    if (gcn_is(name, "dst_sel")) return read_part(value, &to->part);
    if (gcn_is(name, "dst_unused")) return read_unused(value, &to->unused);
    if (read_dpp(name, value, to)) return true;
    if (!gcn_number(value, &number)) return false;
    if (gcn_is(name, "offset") || gcn_is(name, "offset0")) {
        to->offset = (int32_t)number;
    } else if (gcn_is(name, "offset1")) {
        to->offset1 = (int32_t)number;
    } else if (gcn_is(name, "row_mask")) {
        to->row_mask = (uint8_t)number;
    } else if (gcn_is(name, "bank_mask")) {
        to->bank_mask = (uint8_t)number;
    } else if (gcn_is(name, "bound_ctrl")) {
        to->bound_zero = true; /* in either spelling, lanes outside give 0 */
    } else {
        return (gcn_is(name, "fi") || gcn_is(name, "cbsz") || gcn_is(name, "abid") || gcn_is(name, "blgp")) &&
               number == 0;
    }
    return true;
}

bool gcn_read_modifiers(gcn_reader *reader, gcn_text text, gcn_instruction *to) {
    for (text = gcn_trim(text); text.length; text = gcn_trim(text)) {
        size_t n = 0, depth = 0;
        while (n < text.length && (depth || text.at[n] != ' ')) {
            depth += text.at[n] == '[';
            depth -= text.at[n] == ']';
            n++;
        }
        const char *colon = memchr(text.at, ':', n);
        const gcn_text name = {text.at, colon ? (size_t)(colon - text.at) : n};
        const gcn_text value = {text.at + name.length + 1, colon ? n - name.length - 1 : 0};
        const bool known =
            colon ? read_modifier(name, value, to) : read_flag(name, to) || read_dpp(name, (gcn_text){"0", 1}, to);
        if (!known) return gcn_fail(reader, "modifier '%.*s'", (int)n, text.at);
        text.at += n, text.length -= n;
    }
    return true;
}

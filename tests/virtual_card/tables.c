/* Finds the table row of an instruction. */
#include "parse.h"

#include <string.h>

static bool has_avx2(void) {
#if defined(PTX_HAS_AVX2)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

/* Whether the opcode continues with this word (.rn). */
static bool next_is(const char *opcode, const char *end, const char *word, size_t n) {
    return (size_t)(end - opcode) >= n && memcmp(opcode, word, n) == 0 && (opcode + n == end || opcode[n] == '.');
}

/* Matches the alternatives a|b|c of a bracket. Returns the matched length; 0: none. */
static size_t next_of(const char *opcode, const char *end, const char *alternatives, const char *bracket) {
    while (alternatives < bracket) {
        const char *bar = memchr(alternatives, '|', (size_t)(bracket - alternatives));
        const size_t n = (size_t)((bar ? bar : bracket) - alternatives);
        if (next_is(opcode, end, alternatives, n)) return n;
        alternatives += n + 1;
    }
    return 0;
}

static bool fits_opcode(const char *pattern, ptx_token token) {
    const char *opcode = token.text, *end = token.text + token.length;
    while (*pattern) {
        if (*pattern == '[' || *pattern == '(') {
            const bool optional = *pattern == '[';
            const char *bracket = strchr(pattern, optional ? ']' : ')');
            const size_t n = next_of(opcode, end, pattern + 1, bracket);
            if (!n && !optional) return false;
            opcode += n, pattern = bracket + 1;
        } else {
            const size_t n = 1 + strcspn(pattern + 1, ".[(");
            if (!next_is(opcode, end, pattern, n)) return false;
            opcode += n, pattern += n;
        }
    }
    return opcode == end;
}

/* Whether the operands of a form match a shape. */
static bool fits_shape(const char *operands, const char *shape) {
    for (; *operands; ++operands) {
        const char c = *operands;
        if (c == '=') continue;
        if (*shape != (strchr("{}|m", c) ? c : 'x')) return false;
        ++shape;
    }
    return !*shape;
}

const ptx_form *ptx_find_form(ptx_token opcode, const char *shape, bool *known) {
    const bool wide = has_avx2();
#if defined(PTX_HAS_AVX2)
#define BOTH(table) wide ? &PTX_JOIN(table, avx2) : &PTX_JOIN(table, plain)
#else
#define BOTH(table) &PTX_JOIN(table, plain)
    (void)wide;
#endif
    const ptx_table *const tables[] = {BOTH(ptx_integer_table), BOTH(ptx_float_table),  BOTH(ptx_compare_table),
                                       BOTH(ptx_convert_table), BOTH(ptx_matrix_table), &ptx_memory_table,
                                       &ptx_atomic_table,       &ptx_async_table,       &ptx_warp_table};
    *known = false;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; ++t)
        for (size_t i = 0; i < tables[t]->count; ++i) {
            const ptx_form *form = &tables[t]->forms[i];
            if (form->opcode[0] != opcode.text[0] || !fits_opcode(form->opcode, opcode)) continue;
            *known = true;
            if (fits_shape(form->operands, shape)) return form;
        }
    return NULL;
}

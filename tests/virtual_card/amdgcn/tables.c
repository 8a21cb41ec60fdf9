/* Finds the table row of an instruction. */
#include "module.h"

#include <string.h>

static bool has_avx2(void) {
#if defined(PTX_HAS_AVX2)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

const gcn_form *gcn_find_form(const char *name, size_t length) {
    const bool wide = has_avx2();
#if defined(PTX_HAS_AVX2)
#define BOTH(table) wide ? &GCN_JOIN(table, avx2) : &GCN_JOIN(table, plain)
#else
#define BOTH(table) &GCN_JOIN(table, plain)
    (void)wide;
#endif
    const gcn_table *const tables[] = {&gcn_scalar_table,     &gcn_control_table,      BOTH(gcn_integer_table),
                                       BOTH(gcn_float_table), BOTH(gcn_compare_table), &gcn_global_table,
                                       &gcn_lds_table,        BOTH(gcn_half_table),    &gcn_cross_table,
                                       &gcn_matrix_table,     &gcn_atomic_table};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; ++t)
        for (size_t i = 0; i < tables[t]->count; ++i) {
            const gcn_form *form = &tables[t]->forms[i];
            if (strncmp(form->name, name, length) == 0 && !form->name[length]) return form;
        }
    return NULL;
}

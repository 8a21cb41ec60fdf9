/* A set of RNA chains while it is read: adding chains and residues. */
#include "data/rna/set.h"

#include "core/memory.h"

void cleat_rna_set_free(cleat_rna_set *set) {
    for (size_t i = 0; i < set->count; ++i) cleat_free(set->chains[i].id);
    cleat_free(set->chains);
    cleat_free(set->residues);
    cleat_name_table_free(&set->ids);
    *set = (cleat_rna_set){0};
}

cleat_status cleat_rna_set_chain(cleat_rna_set *set, const char *id, cleat_split split, cleat_error *error) {
    cleat_status status = cleat_grow(&set->chains, set->count, &set->capacity, error);
    if (status) return status;
    char *copy = cleat_strdup(id);
    if (!copy) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the id %.40s", id);
    status = cleat_name_table_add(&set->ids, id, (uint32_t)set->count, error);
    if (status) {
        cleat_free(copy);
        return status;
    }
    set->chains[set->count++] = (cleat_rna_entry){.id = copy, .first = set->residue_count, .split = split};
    return CLEAT_OK;
}

cleat_status cleat_rna_set_residue(cleat_rna_set *set, char letter, cleat_error *error) {
    cleat_status status = cleat_grow(&set->residues, set->residue_count, &set->residue_capacity, error);
    if (status) return status;
    set->residues[set->residue_count++] = (cleat_rna_residue){.letter = letter};
    ++set->chains[set->count - 1].length;
    return CLEAT_OK;
}

/* The file that Kaggle's "Stanford RNA 3D Folding" takes: five structures of each chain. */
#include "cleat/rna.h"
#include "core/files.h"
#include "core/string.h"
#include "data/common/source.h"
#include "models/rna_metrics.h"

#include <math.h>
#include <stdio.h>

/* Finite coordinates of a structure, else 0: the competition takes no empty fields. */
static void add_atom(cleat_string *text, const cleat_prediction *structure, int64_t residue) {
    const bool is_predicted = residue < cleat_dataset_length(structure->dataset, structure->sample);
    for (int axis = 0; axis < 3; ++axis) {
        char number[24] = "0.000";
        const float value = is_predicted ? structure->output[3 * residue + axis] : 0;
        if (isfinite(value)) cleat_format_fixed3((double)value, number);
        cleat_string_add(text, ",%s", number);
    }
}

cleat_status cleat_rna_write_submission(const cleat_model *model, const cleat_prediction *structures, size_t members,
                                        size_t samples, const char *folder, cleat_error *error) {
    char id[600];
    cleat_string text = {0};
    (void)model;
    cleat_string_add(&text, "ID,resname,resid");
    for (int k = 1; k <= CLEAT_RNA_STRUCTURES; ++k) cleat_string_add(&text, ",x_%d,y_%d,z_%d", k, k, k);
    cleat_string_add(&text, "\n");
    for (size_t i = 0; i < samples; ++i) {
        const cleat_dataset *dataset = structures[i].dataset;
        const size_t sample = structures[i].sample;
        const char *sequence = cleat_rna_sequence(dataset, sample);
        for (int64_t r = 0; r < cleat_rna_chain_length(dataset, sample); ++r) {
            snprintf(id, sizeof id, "%.500s_%lld", cleat_dataset_id(dataset, sample), (long long)r + 1);
            cleat_string_add_field(&text, id);
            cleat_string_add(&text, ",%c,%lld", sequence[r], (long long)r + 1);
            for (size_t k = 0; k < CLEAT_RNA_STRUCTURES; ++k)
                add_atom(&text, &structures[k % members * samples + i], r);
            cleat_string_add(&text, "\n");
        }
    }
    return cleat_file_write_in(folder, "submission.csv", &text, error);
}

/* Samples of the RNA dataset: fields, crops of long chains, pairs; and opening under allocation failures. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleat/data.h"
#include "core/memory.h"
#include "data/rna/helix.h"
#include "data/rna/set.h"
#include "files.h"

static const char *made_set(void) {
    static char folder[512];
    if (*folder) return folder;
    snprintf(folder, sizeof folder, "%s", test_path("made"));
    cleat_rna_make options = cleat_rna_make_defaults();
    cleat_error error = {0};
    options.count = 12;
    options.pdb_files = 12;
    if (cleat_data_make_rna(folder, &options, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return folder;
}

static cleat_dataset *open_set(int64_t max_length) {
    cleat_rna_options options = cleat_rna_defaults();
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    options.max_length = max_length;
    if (cleat_rna_open(made_set(), &options, &dataset, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return dataset;
}

typedef struct sample {
    int32_t tokens[64], length, partner[64];
    float coords[64][3], mask[64];
} sample;

static void fill(const cleat_dataset *dataset, size_t index, const cleat_rng_key *rng_key, sample *s) {
    static const char *const names[5] = {"tokens", "lengths", "coords", "mask", "partner"};
    void *const places[5] = {s->tokens, &s->length, s->coords, s->mask, s->partner};
    void *slots[5] = {0};
    cleat_error error = {0};
    memset(s, 0x5A, sizeof *s);
    for (int i = 0; i < 5; ++i) slots[cleat_dataset_find_field(dataset, names[i])] = places[i];
    assert_int_equal(cleat_dataset_fill(dataset, index, 64, rng_key, slots, &error), CLEAT_OK);
}

static void fields_hold_the_chain(void **state) {
    (void)state;
    cleat_dataset *dataset = open_set(1200);
    sample s;
    assert_int_equal(cleat_dataset_fields(dataset), 5);
    for (size_t i = 0; i < cleat_dataset_count(dataset); ++i) {
        const char *sequence = cleat_rna_sequence(dataset, i);
        fill(dataset, i, NULL, &s);
        assert_int_equal(s.length, strlen(sequence));
        for (int r = 0; r < 64; ++r) {
            bool inside = r < s.length;
            assert_int_equal(s.tokens[r], inside ? (int)(strchr("ACGUN", sequence[r]) - "ACGUN") : CLEAT_RNA_PADDING);
            assert_true(s.mask[r] == (inside ? 1.0f : 0.0f));
            assert_int_equal(s.partner[r], inside ? cleat_rna_partners(dataset, i)[r] : -1);
            for (int axis = 0; axis < 3; ++axis)
                assert_true(s.coords[r][axis] == (inside ? cleat_rna_coords(dataset, i)[3 * r + axis] : 0.0f));
        }
    }
    assert_null(cleat_rna_sequence(dataset, cleat_dataset_count(dataset)));
    cleat_dataset_destroy(dataset);
}

static void long_chains_are_cropped(void **state) {
    (void)state;
    enum { LONGEST = 11 };
    cleat_dataset *dataset = open_set(LONGEST);
    size_t long_chain = 0;
    while (cleat_rna_chain_length(dataset, long_chain) < 20) ++long_chain;
    const char *sequence = cleat_rna_sequence(dataset, long_chain);
    int64_t full = cleat_rna_chain_length(dataset, long_chain);
    const float *coords = cleat_rna_coords(dataset, long_chain);
    assert_int_equal(cleat_dataset_length(dataset, long_chain), LONGEST);
    bool started[64] = {false};
    sample s, again;
    fill(dataset, long_chain, NULL, &s);
    assert_int_equal(s.length, LONGEST);
    assert_memory_equal(s.coords, coords, LONGEST * 3 * sizeof(float));
    for (uint32_t epoch = 0; epoch < 400; ++epoch) {
        const cleat_rng_key rng_key = {3, epoch};
        fill(dataset, long_chain, &rng_key, &s);
        fill(dataset, long_chain, &rng_key, &again);
        assert_memory_equal(&s, &again, sizeof s);
        int64_t start = 0;
        while (start < full && memcmp(s.coords, coords + 3 * start, LONGEST * 3 * sizeof(float)) != 0) ++start;
        assert_true(start + LONGEST <= full);
        started[start] = true;
        for (int r = 0; r < LONGEST; ++r) {
            assert_int_equal(s.tokens[r], cleat_rna_token(sequence[start + r]));
            int32_t whole = cleat_rna_partners(dataset, long_chain)[start + r];
            bool inside = whole >= start && whole < start + LONGEST;
            assert_int_equal(s.partner[r], inside ? whole - (int32_t)start : -1);
        }
    }
    for (int64_t start = 0; start + LONGEST <= full; ++start) assert_true(started[start]);
    cleat_rna_summary summary = cleat_rna_summarise(dataset);
    assert_true(summary.longer > 0);
    cleat_dataset_destroy(dataset);
}

/* The ideal hairpin of `stem` pairs and a loop of four. */
static int64_t hairpin(int stem, float *coords) {
    double xyz[3], loop[12];
    int64_t n = 2 * stem + 4;
    for (int k = 0; k < stem; ++k)
        for (int side = 0; side < 2; ++side) {
            cleat_rna_helix_atom(k, side, xyz);
            for (int axis = 0; axis < 3; ++axis) coords[3 * (side ? n - 1 - k : k) + axis] = (float)xyz[axis];
        }
    cleat_rna_loop(stem - 1, 4, loop);
    for (int i = 0; i < 12; ++i) coords[3 * stem + i] = (float)loop[i];
    return n;
}

/* A million residues without coordinates would take 5 * 10^11 comparisons. */
static void chains_beyond_any_molecule_take_no_time(void **state) {
    enum { RESIDUES = 1 << 20, MOST = 1 << 15 };
    (void)state;
    char *letters = malloc(RESIDUES);
    float *coords = calloc(RESIDUES, 3 * sizeof *coords), *mask = calloc(RESIDUES, sizeof *mask);
    int32_t *partner = calloc(RESIDUES, sizeof *partner);
    cleat_error error = {0};
    assert_true(letters && coords && mask && partner);
    memset(letters, 'G', RESIDUES);
    assert_int_equal(cleat_rna_find_pairs(letters, coords, mask, RESIDUES, partner, &error), CLEAT_OK);
    for (int i = 0; i < RESIDUES; ++i) assert_int_equal(partner[i], -1);
    for (int i = 0; i <= MOST; ++i) mask[2 * i] = 1;
    assert_int_equal(cleat_rna_find_pairs(letters, coords, mask, RESIDUES, partner, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "32769 residues with coordinates"));
    free(letters);
    free(coords);
    free(mask);
    free(partner);
}

static void pairs_need_bases_distance_and_stack(void **state) {
    (void)state;
    float coords[3 * 64], mask[64];
    int32_t partner[64];
    cleat_error error = {0};
    for (int i = 0; i < 64; ++i) mask[i] = 1;
    /* All C-G: every C can pair with every G of the other strand; only the geometry identifies the true
     * partner. */
    int64_t n = hairpin(8, coords);
    assert_int_equal(cleat_rna_find_pairs("CCCCCCCCAAAAGGGGGGGG", coords, mask, n, partner, &error), CLEAT_OK);
    for (int i = 0; i < 8; ++i) assert_int_equal(partner[i], n - 1 - i);
    for (int i = 8; i < 12; ++i) assert_int_equal(partner[i], -1);
    /* Pairs from the outside in: G-U, G-U, A-U, G-C, then A-A, a single C-G between mismatches, C-A, C-A. */
    const int32_t expected[8] = {19, 18, 17, 16, -1, -1, -1, -1};
    assert_int_equal(cleat_rna_find_pairs("GGAGACCCAAAAAAGACUUU", coords, mask, n, partner, &error), CLEAT_OK);
    assert_memory_equal(partner, expected, sizeof expected);
    /* A residue without coordinates has no partner; the rest of the stem keeps its partners. */
    mask[3] = 0;
    assert_int_equal(cleat_rna_find_pairs("CCCCCCCCAAAAGGGGGGGG", coords, mask, n, partner, &error), CLEAT_OK);
    for (int i = 0; i < 8; ++i) assert_int_equal(partner[i], i == 3 ? -1 : n - 1 - i);
    mask[3] = 1;
    /* Stretched by a quarter, the pairs are too far apart. */
    for (int64_t i = 0; i < 3 * n; ++i) coords[i] *= 1.25f;
    assert_int_equal(cleat_rna_find_pairs("CCCCCCCCAAAAGGGGGGGG", coords, mask, n, partner, &error), CLEAT_OK);
    for (int64_t i = 0; i < n; ++i) assert_int_equal(partner[i], -1);
}

static void survives_failing_allocations(void **state) {
    (void)state;
    char pdb[600];
    const char *fasta = test_path("two.fasta");
    test_write_text(fasta, ">a\nACGU\n>b\nGGCC\n");
    snprintf(pdb, sizeof pdb, "%s/pdb", made_set());
    const char *const paths[3] = {made_set(), pdb, fasta};
    for (int p = 0; p < 3; ++p) {
        cleat_rna_options options = cleat_rna_defaults();
        options.structures = p < 2;
        cleat_status status = CLEAT_ERR_MEMORY;
        long n = 1;
        for (; status == CLEAT_ERR_MEMORY; ++n) {
            cleat_dataset *dataset = NULL;
            cleat_error error = {0};
            cleat_fail_allocation(n);
            status = cleat_rna_open(paths[p], &options, &dataset, &error);
            cleat_fail_allocation(0);
            if (status) {
                assert_int_equal(status, CLEAT_ERR_MEMORY);
                assert_null(dataset);
                assert_true(strlen(error.text) > 0);
            }
            cleat_dataset_destroy(dataset);
        }
        assert_int_equal(status, CLEAT_OK);
        assert_true(n > 10);
    }
    cleat_dataset *dataset = open_set(64);
    cleat_status status = CLEAT_ERR_MEMORY;
    uint32_t samples[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    const cleat_bucket bucket = {64, 3, 3};
    for (long n = 1; status == CLEAT_ERR_MEMORY; ++n) {
        const cleat_rng_key rng_key = {1, 1};
        cleat_batches *batches = NULL;
        int64_t edges[2];
        size_t edge_count;
        cleat_error error = {0};
        const cleat_batches_spec laid_out = {.dataset = dataset,
                                             .samples = samples,
                                             .n_samples = 8,
                                             .buckets = &bucket,
                                             .n_buckets = 1,
                                             .rng_key = &rng_key};
        const cleat_buckets_spec chosen = {
            .dataset = dataset, .samples = samples, .n_samples = 8, .max_buckets = 2, .multiple = 1};
        cleat_fail_allocation(n);
        status = cleat_batches_create(&laid_out, &batches, &error);
        if (!status) status = cleat_buckets_choose(&chosen, edges, &edge_count, &error);
        cleat_fail_allocation(0);
        cleat_batches_destroy(batches);
    }
    assert_int_equal(status, CLEAT_OK);
    status = CLEAT_ERR_MEMORY;
    for (long n = 1; status == CLEAT_ERR_MEMORY; ++n) {
        cleat_rna_make options = cleat_rna_make_defaults();
        cleat_error error = {0};
        options.count = 3;
        cleat_fail_allocation(n);
        status = cleat_data_make_rna(test_path("again"), &options, &error);
        cleat_fail_allocation(0);
    }
    assert_int_equal(status, CLEAT_OK);
    cleat_dataset_destroy(dataset);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_hold_the_chain),
        cmocka_unit_test(long_chains_are_cropped),
        cmocka_unit_test(pairs_need_bases_distance_and_stack),
        cmocka_unit_test(chains_beyond_any_molecule_take_no_time),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}

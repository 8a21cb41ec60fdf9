/* Augmentation of RNA training samples: pairs stay pairs, crops stay crops, and equal RNG keys give equal
 * samples. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/rna/set.h"
#include "files.h"

#include <string.h>

enum { N = 24, MOST = 64 };

static bool is_pair(int32_t a, int32_t b) {
    static const char *const pairs[] = {"AU", "UA", "GC", "CG", "GU", "UG"};
    for (int i = 0; i < 6; ++i)
        if ("ACGU"[a] == pairs[i][0] && "ACGU"[b] == pairs[i][1]) return true;
    return false;
}

/* A hairpin: i pairs with N - 1 - i for the first ten. */
static void hairpin(int32_t *partner, int32_t *tokens) {
    for (int i = 0; i < N; ++i) {
        int j = N - 1 - i;
        bool paired = i < 10 || j < 10;
        partner[i] = paired ? j : -1;
        tokens[i] = paired ? (i < j ? 2 : 1) : 0; /* G-C stem, A loop */
    }
}

static void test_pairs_stay_pairs(void **state) {
    (void)state;
    int changed_pairs = 0, changed_loop = 0, wobbles = 0;
    for (uint32_t draw = 0; draw < 400; ++draw) {
        int32_t partner[N], tokens[N], before[N];
        hairpin(partner, tokens);
        memcpy(before, tokens, sizeof tokens);
        cleat_random random = cleat_random_stream(7, draw, 0);
        cleat_rna_mutate(&random, partner, N, tokens);
        for (int i = 0; i < N; ++i) {
            assert_in_range(tokens[i], 0, 3);
            if (partner[i] < 0) {
                changed_loop += tokens[i] != before[i];
                continue;
            }
            assert_true(is_pair(tokens[i], tokens[partner[i]]));
            changed_pairs += i < partner[i] && tokens[i] != before[i];
            wobbles += i < partner[i] && tokens[i] + tokens[partner[i]] == 5;
        }
    }
    /* Half of 4000 pairs are redrawn, and about 0.72 of those are no longer G-C in this direction; 0.15 of
     * 1600 loop residues are redrawn, 0.75 of which change. */
    assert_in_range(changed_pairs, 1200, 1700);
    assert_in_range(changed_loop, 120, 240);
    assert_in_range(wobbles, 120, 280);
}

typedef struct sample {
    int32_t tokens[MOST], length, partner[MOST];
    float coords[MOST * 3], mask[MOST];
} sample;

static void draw_sample(const cleat_dataset *dataset, size_t index, const cleat_rng_key *rng_key, sample *s) {
    void *slots[] = {s->tokens, &s->length, s->coords, s->mask, s->partner};
    memset(s, 0, sizeof *s);
    assert_int_equal(cleat_dataset_fill(dataset, index, MOST, rng_key, slots, NULL), CLEAT_OK);
}

/* Finds the position in the whole chain at which the crop of s starts, by its coordinates; -1: not found. */
static int crop_start(const cleat_dataset *dataset, size_t index, const sample *s) {
    const float *whole = cleat_rna_coords(dataset, index);
    for (int start = 0; start + s->length <= cleat_rna_chain_length(dataset, index); ++start)
        if (memcmp(whole + 3 * start, s->coords, (size_t)s->length * 3 * sizeof(float)) == 0) return start;
    return -1;
}

static void check_sample(const cleat_dataset *dataset, size_t index, const sample *s) {
    int start = crop_start(dataset, index, s);
    assert_true(start >= 0);
    const int32_t *partners = cleat_rna_partners(dataset, index);
    for (int i = 0; i < s->length; ++i) {
        int whole = partners[start + i] - start;
        bool kept = partners[start + i] >= 0 && whole >= 0 && whole < s->length;
        assert_int_equal(s->partner[i], kept ? whole : -1);
        if (kept) assert_true(is_pair(s->tokens[i], s->tokens[whole]));
    }
}

static void test_samples(void **state) {
    (void)state;
    const char *folder = test_folder("vary");
    cleat_rna_make make = cleat_rna_make_defaults();
    make.count = 20;
    make.stem_min = 8;
    make.duplex_fraction = 0;
    assert_int_equal(cleat_data_make_rna(folder, &make, NULL), CLEAT_OK);
    cleat_rna_options options = cleat_rna_defaults();
    options.mutation = 0.7;
    options.crop = 0.5;
    cleat_dataset *dataset;
    assert_int_equal(cleat_rna_open(folder, &options, &dataset, NULL), CLEAT_OK);
    int cropped = 0, varied = 0, total = 0;
    for (size_t i = 0; i < cleat_dataset_count(dataset); ++i) {
        sample plain, once, again;
        draw_sample(dataset, i, NULL, &plain);
        assert_int_equal(plain.length, cleat_rna_chain_length(dataset, i));
        for (uint32_t epoch = 0; epoch < 20; ++epoch) {
            cleat_rng_key rng_key = {.seed = 3, .epoch = epoch};
            draw_sample(dataset, i, &rng_key, &once);
            draw_sample(dataset, i, &rng_key, &again);
            assert_memory_equal(&once, &again, sizeof once);
            check_sample(dataset, i, &once);
            assert_in_range(once.length, 16, plain.length);
            int start = crop_start(dataset, i, &once);
            cropped += once.length < plain.length;
            varied += memcmp(once.tokens, plain.tokens + start, (size_t)once.length * sizeof *once.tokens) != 0;
            ++total;
        }
    }
    assert_in_range(cropped, total * 3 / 10, total * 6 / 10);
    assert_in_range(varied, total * 5 / 10, total * 8 / 10);
    cleat_dataset_destroy(dataset);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pairs_stay_pairs), cmocka_unit_test(test_samples)};
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}

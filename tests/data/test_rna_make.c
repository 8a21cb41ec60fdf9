/* The RNA generator: its geometry is A-form and right-handed, its files are deterministic, and its pairs are
 * detected. Reading the files back also tests the writers. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleat/data.h"
#include "data/rna/helix.h"
#include "files.h"
#include "platform/files.h"

static double distance(const double *a, const double *b) {
    return sqrt(pow(a[0] - b[0], 2) + pow(a[1] - b[1], 2) + pow(a[2] - b[2], 2));
}

/* The dihedral angle of four points in degrees, IUPAC sign: positive if, seen along b-c, d is clockwise from
 * a. */
static double torsion(const double *a, const double *b, const double *c, const double *d) {
    double u[3], v[3], w[3], m[3], n[3], mxn[3];
    for (int i = 0; i < 3; ++i) {
        u[i] = b[i] - a[i];
        v[i] = c[i] - b[i];
        w[i] = d[i] - c[i];
    }
    for (int i = 0; i < 3; ++i) {
        int j = (i + 1) % 3, k = (i + 2) % 3;
        m[i] = u[j] * v[k] - u[k] * v[j];
        n[i] = v[j] * w[k] - v[k] * w[j];
    }
    for (int i = 0; i < 3; ++i) {
        int j = (i + 1) % 3, k = (i + 2) % 3;
        mxn[i] = m[j] * n[k] - m[k] * n[j];
    }
    double length = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    double y = (mxn[0] * v[0] + mxn[1] * v[1] + mxn[2] * v[2]) / length;
    return atan2(y, m[0] * n[0] + m[1] * n[1] + m[2] * n[2]) * 180 / 3.14159265358979323846;
}

static void torsion_has_the_right_sign(void **state) {
    (void)state;
    const double a[3] = {1, 0, 0}, b[3] = {0, 0, 0}, c[3] = {0, 0, 1}, right[3] = {0, 1, 1}, left[3] = {0, -1, 1};
    /* Seen along +z, from b to c, the rotation from x to y is clockwise. */
    assert_true(fabs(torsion(a, b, c, right) - 90) < 1e-9);
    assert_true(fabs(torsion(a, b, c, left) + 90) < 1e-9);
}

static void helix_is_a_form(void **state) {
    (void)state;
    double one[12][3], two[12][3];
    for (int k = 0; k < 12; ++k) {
        cleat_rna_helix_atom(k, false, one[k]);
        cleat_rna_helix_atom(k, true, two[k]);
    }
    for (int k = 0; k < 12; ++k) {
        assert_true(fabs(hypot(one[k][0], one[k][1]) - 8.9) < 0.05);
        assert_true(fabs(hypot(two[k][0], two[k][1]) - 8.9) < 0.05);
        assert_true(fabs(distance(one[k], two[k]) - 10.7) < 1e-9);
    }
    for (int k = 0; k + 1 < 12; ++k) {
        assert_true(fabs(one[k + 1][2] - one[k][2] - 2.81) < 1e-9);
        double turn = atan2(one[k + 1][1], one[k + 1][0]) - atan2(one[k][1], one[k][0]);
        assert_true(fabs(remainder(turn, 2 * acos(-1)) * 180 / acos(-1) - 32.7) < 1e-9);
        double step = distance(one[k], one[k + 1]);
        assert_true(step > 5.5 && step < 6.0);
        /* The minor groove is the narrow side: k + 1 of strand I is near the partner of k; k of strand I is
         * far from the partner of k + 1. */
        assert_true(distance(one[k + 1], two[k]) < 8.7 && distance(one[k], two[k + 1]) > 13);
    }
    /* Right-handed: both strands, each 5' to 3'. A left-handed helix has the opposite sign. */
    for (int k = 0; k + 3 < 12; ++k) {
        double forward = torsion(one[k], one[k + 1], one[k + 2], one[k + 3]);
        double back = torsion(two[k + 3], two[k + 2], two[k + 1], two[k]);
        assert_true(forward > 15 && forward < 40);
        assert_true(fabs(forward - back) < 1e-6);
    }
}

static void loops_close_without_clashes(void **state) {
    (void)state;
    for (int n = 4; n <= 8; ++n) {
        enum { STEM = 12 };
        double chain[2 * STEM + 8][3], loop[24];
        int length = 2 * STEM + n;
        for (int k = 0; k < STEM; ++k) {
            cleat_rna_helix_atom(k, false, chain[k]);
            cleat_rna_helix_atom(k, true, chain[length - 1 - k]);
        }
        cleat_rna_loop(STEM - 1, n, loop);
        memcpy(chain[STEM], loop, (size_t)n * sizeof chain[0]);
        for (int i = 0; i + 1 < length; ++i) {
            double step = distance(chain[i], chain[i + 1]);
            assert_true(step > 5.5 && step < 6.0);
        }
        double nearest = 1e9;
        for (int i = 0; i < length; ++i)
            for (int j = i + 2; j < length; ++j) nearest = fmin(nearest, distance(chain[i], chain[j]));
        print_message("loop of %d: nearest residues that are not neighbours %.2f A\n", n, nearest);
        assert_true(nearest > 6.0);
    }
}

static void same_options_same_bytes(void **state) {
    (void)state;
    cleat_rna_make options = cleat_rna_make_defaults();
    cleat_error error = {0};
    static const char *const names[] = {"labels.csv", "sequences.csv", "pdb/HPN00001.pdb"};
    options.count = 30;
    char folders[3][600];
    for (int i = 0; i < 3; ++i) {
        snprintf(folders[i], sizeof folders[i], "%.512s%d", test_path("made"), i);
        options.seed = i == 2 ? 8 : 7;
        assert_int_equal(cleat_data_make_rna(folders[i], &options, &error), CLEAT_OK);
    }
    for (size_t f = 0; f < 3; ++f) {
        char path[1400];
        char *data[3];
        size_t size[3];
        for (int i = 0; i < 3; ++i) {
            snprintf(path, sizeof path, "%.600s/%s", folders[i], names[f]);
            data[i] = test_read(path, &size[i]);
        }
        assert_int_equal(size[0], size[1]);
        assert_memory_equal(data[0], data[1], size[0]);
        assert_true(size[2] != size[0] || memcmp(data[0], data[2], size[0]) != 0);
        for (int i = 0; i < 3; ++i) free(data[i]);
    }
}

static void made_set_reads_back(void **state) {
    (void)state;
    cleat_rna_make options = cleat_rna_make_defaults();
    cleat_error error = {0};
    cleat_dataset *dataset = NULL;
    const char *folder = test_path("set");
    if (cleat_data_make_rna(folder, &options, &error) != CLEAT_OK) fail_msg("%s", error.text);
    if (cleat_rna_open(folder, NULL, &dataset, &error) != CLEAT_OK) fail_msg("%s", error.text);
    size_t count = cleat_dataset_count(dataset), splits[CLEAT_SPLITS] = {0}, hairpins = 0, bases[256] = {0};
    assert_int_equal(count, 500); /* 300 hairpins, 100 duplexes */
    for (size_t s = 0; s < count; ++s) {
        const char *sequence = cleat_rna_sequence(dataset, s);
        const float *xyz = cleat_rna_coords(dataset, s);
        const int32_t *partner = cleat_rna_partners(dataset, s);
        int64_t n = cleat_rna_chain_length(dataset, s), paired = 0;
        ++splits[cleat_dataset_split(dataset, s)];
        for (int64_t i = 0; i < n; ++i) {
            ++bases[(unsigned char)sequence[i]];
            paired += partner[i] >= 0;
        }
        for (int64_t i = 0; i + 3 < n && cleat_dataset_id(dataset, s)[0] == 'D'; ++i) {
            double p[4][3];
            for (int k = 0; k < 12; ++k) p[k / 3][k % 3] = (double)xyz[3 * i + k];
            double angle = torsion(p[0], p[1], p[2], p[3]);
            assert_true(angle > 15 && angle < 40);
        }
        if (cleat_dataset_id(dataset, s)[0] != 'H') {
            assert_int_equal(paired, 0); /* a strand of a duplex has its partners on the other chain */
            continue;
        }
        ++hairpins;
        /* The pairs detected from distances are exactly the stem: i with n - 1 - i, and the loop of 4 to 8 is
         * unpaired. */
        int64_t stem = 0;
        while (partner[stem] == n - 1 - stem) ++stem;
        assert_int_equal(paired, 2 * stem);
        assert_true(stem >= 4 && stem <= 12 && n - 2 * stem >= 4 && n - 2 * stem <= 8);
    }
    assert_int_equal(hairpins, 300);
    assert_true(splits[CLEAT_SPLIT_VAL] > 20 && splits[CLEAT_SPLIT_TEST] > 20 && splits[CLEAT_SPLIT_TRAIN] > 350);
    double gc = (double)(bases['G'] + bases['C']) / (double)(bases['A'] + bases['C'] + bases['G'] + bases['U']);
    assert_true(gc > 0.45 && gc < 0.6);
    for (size_t s = 0; s + 1 < count; ++s) /* both chains of a duplex are in the same split */
        if (strncmp(cleat_dataset_id(dataset, s), cleat_dataset_id(dataset, s + 1), 8) == 0)
            assert_int_equal(cleat_dataset_split(dataset, s), cleat_dataset_split(dataset, s + 1));

    /* The PDB files hold the same chains. */
    char pdb[400];
    cleat_dataset *files = NULL;
    snprintf(pdb, sizeof pdb, "%s/pdb", folder);
    if (cleat_rna_open(pdb, NULL, &files, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_int_equal(cleat_dataset_count(files), 5); /* the fourth molecule is a duplex */
    for (size_t f = 0; f < 5; ++f) {
        size_t s = 0;
        while (strcmp(cleat_dataset_id(files, f), cleat_dataset_id(dataset, s)) != 0) ++s;
        assert_string_equal(cleat_rna_sequence(files, f), cleat_rna_sequence(dataset, s));
        assert_memory_equal(cleat_rna_coords(files, f), cleat_rna_coords(dataset, s),
                            3 * sizeof(float) * (size_t)cleat_rna_chain_length(files, f));
    }
    cleat_dataset_destroy(files);
    cleat_dataset_destroy(dataset);
}

/* Molecules added to a set of the same options differ from those in the set and from each other. */
static void joined_molecules_are_new(void **state) {
    (void)state;
    const size_t joined = 60;
    cleat_rna_make options = cleat_rna_make_defaults();
    cleat_rna_options open = cleat_rna_defaults();
    cleat_error error = {0};
    cleat_dataset *dataset = NULL;
    const char *folder = test_path("joined");
    options.count = 80;
    if (cleat_data_make_rna(folder, &options, &error) != CLEAT_OK) fail_msg("%s", error.text);
    open.generated = joined;
    if (cleat_rna_open(folder, &open, &dataset, &error) != CLEAT_OK) fail_msg("%s", error.text);
    size_t count = cleat_dataset_count(dataset);
    assert_int_equal(count, 100 + joined + joined / 4);
    for (size_t s = 100; s < count; ++s) {
        assert_int_equal(cleat_dataset_split(dataset, s), CLEAT_SPLIT_TRAIN);
        for (size_t other = 0; other < s; ++other)
            assert_string_not_equal(cleat_rna_sequence(dataset, s), cleat_rna_sequence(dataset, other));
    }
    cleat_dataset_destroy(dataset);
}

static void refuses_impossible_options(void **state) {
    (void)state;
    cleat_error error = {0};
    cleat_rna_make options = cleat_rna_make_defaults();
    options.count = 0;
    assert_int_equal(cleat_data_make_rna(test_path("no"), &options, &error), CLEAT_ERR_ARGUMENT);
    options = cleat_rna_make_defaults();
    options.loop_max = 9;
    assert_int_equal(cleat_data_make_rna(test_path("no"), &options, &error), CLEAT_ERR_ARGUMENT);
    options = cleat_rna_make_defaults();
    options.loop_min = 3;
    assert_int_equal(cleat_data_make_rna(test_path("no"), &options, &error), CLEAT_ERR_ARGUMENT);
    options = cleat_rna_make_defaults();
    options.loop_min = 6;
    options.loop_max = 5;
    assert_int_equal(cleat_data_make_rna(test_path("no"), &options, &error), CLEAT_ERR_ARGUMENT);
    options = cleat_rna_make_defaults();
    options.gc = 0.0 / 0.0;
    assert_int_equal(cleat_data_make_rna(test_path("no"), &options, &error), CLEAT_ERR_ARGUMENT);
    options = cleat_rna_make_defaults();
    options.count = 2000;
    options.duplex_fraction = 1;
    options.stem_min = options.stem_max = 2; /* there are fewer sequences of length 2 */
    assert_int_equal(cleat_data_make_rna(test_path("no"), &options, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "longer stems"));
    test_write_text(test_path("file"), "x");
    assert_int_equal(cleat_data_make_rna(test_path("file"), NULL, &error), CLEAT_ERR_IO);
}

static void writes_fixed_columns(void **state) {
    (void)state;
    const float coords[9] = {1.0006f, -22.5f, 333.25f, NAN, 0, 0, -999.25f, 9999.25f, -0.0001f};
    const cleat_rna_chain chains[2] = {{"odd, \"id\"", "GAU", 3, coords}, {"B", "C", 1, coords}};
    cleat_error error = {0};
    size_t size;
    char path[300];
    snprintf(path, sizeof path, "%s", test_path("out.pdb"));
    assert_int_equal(cleat_rna_write_pdb(path, chains, 2, &error), CLEAT_OK);
    char *text = test_read(path, &size);
    assert_string_equal(text, "REMARK   1 CHAIN A IS odd, \"id\"\n"
                              "REMARK   1 CHAIN B IS B\n"
                              "ATOM      1  C1'   G A   1       1.001 -22.500 333.250  1.00  0.00           C  \n"
                              "ATOM      2  C1'   U A   3    -999.2509999.250   0.000  1.00  0.00           C  \n"
                              "TER       3        U A   3\n"
                              "ATOM      4  C1'   C B   1       1.001 -22.500 333.250  1.00  0.00           C  \n"
                              "TER       5        C B   1\n"
                              "END\n");
    free(text);
    snprintf(path, sizeof path, "%s", test_path("out.csv"));
    assert_int_equal(cleat_rna_write_csv(path, chains, 2, &error), CLEAT_OK);
    text = test_read(path, &size);
    assert_string_equal(text, "ID,resname,resid,x_1,y_1,z_1\n"
                              "\"odd, \"\"id\"\"_1\",G,1,1.001,-22.500,333.250\n"
                              "\"odd, \"\"id\"\"_2\",A,2,,,\n"
                              "\"odd, \"\"id\"\"_3\",U,3,-999.250,9999.250,0.000\n"
                              "B_1,C,1,1.001,-22.500,333.250\n");
    free(text);

    const float far_away[3] = {10000, 0, 0};
    const cleat_rna_chain bad = {"X", "A", 1, far_away};
    assert_int_equal(cleat_rna_write_pdb(path, &bad, 1, &error), CLEAT_ERR_NOT_SUPPORTED);
    assert_int_equal(cleat_rna_write_pdb(path, &bad, 0, &error), CLEAT_ERR_NOT_SUPPORTED);
    assert_int_equal(cleat_rna_write_csv(test_path("absent/x.csv"), chains, 2, &error), CLEAT_ERR_NOT_FOUND);
    assert_true(cleat_rna_pdb_path("out", "../../a b_1", path, sizeof path));
    assert_string_equal(path, "out/_._.._a_b_1.pdb");
    assert_true(cleat_rna_pdb_path("out", "1ABC_A", path, sizeof path));
    assert_string_equal(path, "out/1ABC_A.pdb");
    assert_false(cleat_rna_pdb_path("out", "1ABC_A", path, 10));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(torsion_has_the_right_sign),  cmocka_unit_test(helix_is_a_form),
        cmocka_unit_test(loops_close_without_clashes), cmocka_unit_test(same_options_same_bytes),
        cmocka_unit_test(made_set_reads_back),         cmocka_unit_test(refuses_impossible_options),
        cmocka_unit_test(writes_fixed_columns),        cmocka_unit_test(joined_molecules_are_new),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}

/* PDB files: irregular real files, damaged files, and agreement with the tables of the shared set. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cleat/data.h"
#include "files.h"

/* Appends an ATOM or HETATM line in PDB format, ending after z. */
static void put(char *text, const char *record, const char *atom, char alternate, const char *name, char chain,
                const char *number, double x, double y, double z) {
    sprintf(text + strlen(text), "%-6s%5d %4s%c%3s %c%5s   %8.3f%8.3f%8.3f\n", record, 1, atom, alternate, name, chain,
            number, x, y, z);
}

static cleat_status open_text(const char *text, cleat_dataset **dataset, cleat_error *error) {
    const char *path = test_path("1TST.pdb");
    test_write_text(path, text);
    return cleat_rna_open(path, NULL, dataset, error);
}

static void reads_real_oddities(void **state) {
    (void)state;
    char text[8192] = "HEADER    RNA\n1TST.pdb\n\n";
    put(text, "ATOM", " C1'", ' ', "  G", 'A', "  -3 ", 1, 2, 3);    /* negative number */
    put(text, "ATOM", " P  ", ' ', "  C", 'A', "  10 ", 9, 9, 9);    /* gap in the numbering, and no C1' */
    put(text, "HETATM", " C1'", 'A', "5MC", 'A', "  10A", 4, 5, 6);  /* insertion code, modified */
    put(text, "HETATM", " C1'", 'B', "5MC", 'A', "  10A", 7, 7, 7);  /* alternate location */
    put(text, "ATOM", " H1'", ' ', "5MC", 'A', "  10A", 8, 8, 8);    /* hydrogen */
    put(text, "ATOM", " C1*", ' ', "  U", 'B', "   1 ", -1, -2, -3); /* old atom name; chain B begins */
    put(text, "ATOM", " CA ", ' ', "ALA", 'P', "   1 ", 0, 0, 0);    /* protein */
    put(text, "ATOM", " C1'", ' ', "PSU", 'A', "  11 ", 1, 1, 1);    /* back in chain A */
    put(text, "HETATM", " C1'", ' ', "QQQ", 'A', "  12 ", 2, 2, 2);  /* an unknown nucleotide */
    put(text, "ATOM", " C1'", ' ', " DT", 'A', "  13 ", 3, 3, 3);    /* DNA within RNA */
    put(text, "ATOM", " C1'", ' ', " DA", 'D', "   1 ", 3, 3, 3);    /* a DNA chain */
    put(text, "ATOM", " C2'", ' ', "  A", 'E', "   1 ", 3, 3, 3);    /* DNA under old names: no O2' */
    strcat(text, "TER      99       DT A  13\n");
    put(text, "HETATM", " C1'", ' ', "GTP", 'A', " 101 ", 5, 5, 5); /* ligand after TER */
    put(text, "HETATM", " O  ", ' ', "HOH", 'A', " 201 ", 5, 5, 5); /* water */
    put(text, "ATOM", " C1'", ' ', "  A", 'A', "  14 ", 6, 6, 6);   /* an ATOM after TER still counts */
    strcat(text, "ENDMDL\n");
    put(text, "ATOM", " C1'", ' ', "  A", 'A', "  99 ", 6, 6, 6); /* second model */
    strcat(text, "END\n");
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    if (open_text(text, &dataset, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_int_equal(cleat_dataset_count(dataset), 2);
    assert_string_equal(cleat_dataset_id(dataset, 0), "1TST_A");
    assert_string_equal(cleat_dataset_id(dataset, 1), "1TST_B");
    assert_string_equal(cleat_rna_sequence(dataset, 0), "GCCUNNA");
    assert_string_equal(cleat_rna_sequence(dataset, 1), "U");
    const float *coords = cleat_rna_coords(dataset, 0), *mask = cleat_rna_mask(dataset, 0);
    assert_true(mask[0] == 1 && coords[0] == 1 && coords[2] == 3);
    assert_true(mask[1] == 0 && coords[3] == 0);
    assert_true(mask[2] == 1 && coords[6] == 4 && coords[8] == 6);
    cleat_rna_summary summary = cleat_rna_summarise(dataset);
    assert_int_equal(summary.modified, 2);
    assert_int_equal(summary.missing, 1);
    cleat_dataset_destroy(dataset);
}

/* Chain ends as Amber names them. */
static void amber_ends_are_read(void **state) {
    (void)state;
    char text[2048] = "";
    static const char *const names[] = {" G5", " RA", "  C", "RU3", " A3", " CN", "DA5", " N5", "G53"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        char number[8];
        snprintf(number, sizeof number, "%4zu ", i + 1);
        put(text, "ATOM", " C1'", ' ', names[i], 'A', number, 1, 2, 3);
    }
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    if (open_text(text, &dataset, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_string_equal(cleat_rna_sequence(dataset, 0), "GACUACNNN");
    cleat_dataset_destroy(dataset);
}

/* A second copy with the same chain and numbers is not silently read as alternate locations. */
static void residues_that_come_again_are_named(void **state) {
    (void)state;
    char text[2048] = "";
    for (int copy = 0; copy < 2; ++copy)
        for (int i = 0; i < 3; ++i) {
            char number[8];
            snprintf(number, sizeof number, "%4d ", i + 1);
            put(text, "ATOM", " C1'", ' ', "  G", 'A', number, 9 * copy, i, 0);
        }
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    test_keep_log();
    if (open_text(text, &dataset, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_non_null(strstr(test_logged(), "1TST.pdb:4: 3 residues repeat the chain and number of an earlier one"));
    assert_string_equal(cleat_rna_sequence(dataset, 0), "GGG");
    assert_true(cleat_rna_coords(dataset, 0)[0] == 0);
    cleat_dataset_destroy(dataset);
}

/* A TER without a chain ends the last atom's chain: later atoms with its letter are ligands. */
static void a_bare_ter_ends_the_chain_of_the_last_atom(void **state) {
    (void)state;
    static const char *const records[] = {"TER\n", "TER      99        G    12\n"};
    for (size_t i = 0; i < sizeof records / sizeof *records; ++i) {
        char text[2048] = "HEADER    RNA\n";
        put(text, "ATOM", " C1'", ' ', "  G", 'A', "   1 ", 1, 2, 3);
        put(text, "ATOM", " C1'", ' ', "  C", 'B', "   1 ", 4, 5, 6);
        strcat(text, records[i]);
        put(text, "HETATM", " C1'", ' ', "GTP", 'B', " 101 ", 5, 5, 5);
        put(text, "HETATM", " C1'", ' ', "5MC", 'A', "   2 ", 7, 7, 7);
        cleat_dataset *dataset = NULL;
        cleat_error error = {0};
        if (open_text(text, &dataset, &error) != CLEAT_OK) fail_msg("%s", error.text);
        assert_int_equal(cleat_dataset_count(dataset), 2);
        assert_string_equal(cleat_rna_sequence(dataset, 0), "GC");
        assert_string_equal(cleat_rna_sequence(dataset, 1), "C");
        cleat_dataset_destroy(dataset);
    }
}

/* mmCIF's chains A and AA, and residue 10000 in hybrid-36, as gemmi writes them. */
static void chains_of_two_letters_are_chains(void **state) {
    (void)state;
    static const char text[] = "ATOM      1  C1'   G A   1       1.000   2.000   3.000\n"
                               "TER       2        G A   1\n"
                               "ATOM  A0000  C1'   CAA9999       4.000   2.000   3.000\n"
                               "ATOM  A0001  C1'   UAAA000       5.000   2.000   3.000\n"
                               "HETATMA0002  C1' 5MCAAA001       6.000   2.000   3.000\n"
                               "ATOM  A0003  C1'   AB    1       7.000   2.000   3.000\n";
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    if (open_text(text, &dataset, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_int_equal(cleat_dataset_count(dataset), 3);
    static const char *const chains[][2] = {{"1TST_A", "G"}, {"1TST_AA", "CUC"}, {"1TST_B", "A"}};
    for (size_t i = 0; i < 3; ++i) {
        assert_string_equal(cleat_dataset_id(dataset, i), chains[i][0]);
        assert_string_equal(cleat_rna_sequence(dataset, i), chains[i][1]);
    }
    cleat_dataset_destroy(dataset);
}

static void refuses_broken_files(void **state) {
    (void)state;
    static const char atom[] = "ATOM      1  C1'   G A   1       1.000   2.000   3.000\n";
    char shifted[128], cut[128], noise[128];
    snprintf(shifted, sizeof shifted, "ATOM      1  C1'   G A   1      x1.000   2.000   3.000\n");
    snprintf(cut, sizeof cut, "%s%.40s", atom, atom);
    snprintf(noise, sizeof noise, "%s", atom);
    noise[18] = '\x01';
    const struct {
        const char *text, *what;
    } rows[] = {
        {"", "empty"},
        {"hello\n", "no ATOM record"},
        {"data_1ABC\nloop_\n", "mmCIF"},
        {shifted, ":1: columns 31-38"},
        {cut, ":2: the ATOM   record ends at column 40"},
        {noise, ":1: column 19 contains byte 0x01"},
        {"ATOM      1  CA  ALA A   1       1.000   2.000   3.000\n", "no RNA chain"},
        {"ATOM      1  P     G A   1       1.000   2.000   3.000\n", "no coordinates"},
        {"ATOM      1  C1'   G A   1         nan   2.000   3.000\n", "x coordinate"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_dataset *dataset = NULL;
        cleat_error error = {0};
        cleat_status status = open_text(rows[i].text, &dataset, &error);
        if (!status || !strstr(error.text, rows[i].what) || !strstr(error.text, "1TST.pdb"))
            fail_msg("row %zu: %d '%s'", i, status, error.text);
    }
}

/* A realistic file with flipped bits and truncated at every byte is either read or refused. */
static void survives_cuts_and_flips(void **state) {
    (void)state;
    char good[1024] = "", text[1024];
    for (int i = 1; i <= 3; ++i) {
        char number[8];
        snprintf(number, sizeof number, "%4d ", i);
        put(good, "ATOM", " C1'", ' ', "  G", 'A', number, i, 2, 3);
    }
    strcat(good, "TER\nEND\n");
    size_t size = strlen(good);
    for (size_t at = 0; at < size; ++at)
        for (int bit = -1; bit < 8; bit += 3) { /* -1: truncate there; else flip this bit */
            cleat_dataset *dataset = NULL;
            cleat_error error = {0};
            const char *path = test_path("flip.pdb");
            memcpy(text, good, size);
            if (bit >= 0) text[at] = (char)(text[at] ^ (1 << bit));
            test_write(path, text, bit < 0 ? at : size);
            cleat_status status = cleat_rna_open(path, NULL, &dataset, &error);
            assert_true(!status ? dataset != NULL : strlen(error.text) > 10);
            cleat_dataset_destroy(dataset);
        }
}

/* The tables of the shared set were derived from its pdb/ by an independent script: reading pdb/ must give
 * the same chains. */
static void agrees_with_shared_tables(void **state) {
    (void)state;
    const char *shared = test_shared_rna();
    if (!shared) skip();
    char pdb[600];
    snprintf(pdb, sizeof pdb, "%s/pdb", shared);
    cleat_dataset *tables = NULL, *files = NULL;
    cleat_error error = {0};
    cleat_rna_options options = cleat_rna_defaults();
    options.min_length = 8; /* the tables omit shorter chains */
    if (cleat_rna_open(shared, &options, &tables, &error) != CLEAT_OK) fail_msg("%s", error.text);
    if (cleat_rna_open(pdb, &options, &files, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_int_equal(cleat_dataset_count(tables), 252);
    assert_int_equal(cleat_dataset_count(files), 252);
    size_t train = 0, missing = 0;
    for (size_t i = 0; i < 252; ++i) {
        /* sequences.csv is ordered by file name, and chains are in the order of their files. */
        assert_string_equal(cleat_dataset_id(tables, i), cleat_dataset_id(files, i));
        assert_string_equal(cleat_rna_sequence(tables, i), cleat_rna_sequence(files, i));
        size_t n = (size_t)cleat_rna_chain_length(tables, i);
        assert_memory_equal(cleat_rna_mask(tables, i), cleat_rna_mask(files, i), n * sizeof(float));
        assert_memory_equal(cleat_rna_coords(tables, i), cleat_rna_coords(files, i), 3 * n * sizeof(float));
        train += cleat_dataset_split(tables, i) == CLEAT_SPLIT_TRAIN;
        for (size_t r = 0; r < n; ++r) missing += cleat_rna_mask(tables, i)[r] == 0;
    }
    assert_int_equal(train, 221);
    assert_int_equal(missing, 16);
    cleat_rna_summary summary = cleat_rna_summarise(files);
    assert_int_equal(summary.residues, 10137);
    assert_int_equal(summary.shorter, 2);
    print_message("%zu chains, %zu residues, %zu modified, %zu unknown, %zu paired\n", summary.chains, summary.residues,
                  summary.modified, summary.unknown, summary.paired);
    cleat_dataset_destroy(tables);
    cleat_dataset_destroy(files);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_real_oddities),
        cmocka_unit_test(amber_ends_are_read),
        cmocka_unit_test(residues_that_come_again_are_named),
        cmocka_unit_test(a_bare_ter_ends_the_chain_of_the_last_atom),
        cmocka_unit_test(refuses_broken_files),
        cmocka_unit_test(survives_cuts_and_flips),
        cmocka_unit_test(agrees_with_shared_tables),
        cmocka_unit_test(chains_of_two_letters_are_chains),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}

/* cleat data: generates synthetic data sets. */
#include "cli.h"

#include <cleat/data.h>
#include <stdio.h>
#include <string.h>

static int run(const cli_command *command, int argc, char **argv) {
    cleat_rna_make make = cleat_rna_make_defaults();
    const char *out = NULL;
    double count = (double)make.count, seed = (double)make.seed, pdb = (double)make.pdb_files;
    cli_list words = {.count = 0};
    const cli_option options[] = {
        {"--out", CLI_TEXT, &out, "DIR", "output folder of the data set"},
        {"--count", CLI_NUMBER, &count, "N", "number of molecules (400)"},
        {"--pdb", CLI_NUMBER, &pdb, "N", "number of molecules, from the first, that are also written as PDB files (4)"},
        {"--seed", CLI_NUMBER, &seed, "N", "random seed; the same seed gives identical files (1)"},
        {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &words, &exit_code)) return exit_code;
    if (words.count != 2 || strcmp(words.items[0], "make") != 0 || strcmp(words.items[1], "rna") != 0)
        return cli_usage(command, "expected 'make rna'");
    if (!out) return cli_usage(command, "--out is required");
    if (!cli_is_count(count, 1, 1e7)) return cli_usage(command, "--count %g: must be an integer from 1 to 1e7", count);
    if (!cli_is_count(seed, 0, 9e15)) return cli_usage(command, "--seed %g: must be an integer from 0 to 9e15", seed);
    if (!cli_is_count(pdb, 0, 1e7)) return cli_usage(command, "--pdb %g: must be an integer from 0 to 1e7", pdb);
    make.count = (size_t)count;
    make.pdb_files = (size_t)pdb;
    make.seed = (uint64_t)seed;
    cleat_error error = {0};
    cleat_status status = cleat_data_make_rna(out, &make, &error);
    if (!status) printf("%zu molecules written to %s\n", make.count, out);
    return cli_finish(status, &error);
}

const cli_command cli_data = {"data", "make rna --out DIR [--count N] [--pdb N] [--seed N]",
                              "generate a data set of RNA hairpins and duplexes in A-form geometry", run};

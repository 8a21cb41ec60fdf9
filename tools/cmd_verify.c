/* cleat verify: verifies against reference trajectories that a device trains correctly. */
#include "cli.h"

#include <math.h>
#include <stdio.h>

static void print_text(const char *file, const char *precision, const cleat_verify_report *report) {
    double worst = 0;
    size_t gradients = 0;
    printf("%s, %s\n", file, precision);
    for (size_t i = 0; i < report->count; ++i) {
        const cleat_verification *item = &report->items[i];
        bool gradient = item->name[0] == 'g';
        gradients += gradient;
        if (gradient && (isnan(item->rel_error) || item->rel_error > worst)) worst = item->rel_error;
        if (!gradient || !item->ok)
            printf("  %-36s %10.2e  (tolerance %.0e)  %s\n", item->name, item->rel_error, item->tolerance,
                   item->ok ? "ok" : "FAILED");
    }
    printf("  %zu gradients, the worst%14s %10.2e\n", gradients, "", worst);
    printf("  %s\n", report->failed ? "FAILED" : "passed");
}

static void print_json(const char *file, const char *precision, const cleat_verify_report *report) {
    printf("{\"file\": ");
    cli_print_json_string(file);
    printf(", \"precision\": \"%s\", \"failed\": %zu, \"checks\": {", precision, report->failed);
    for (size_t i = 0; i < report->count; ++i) {
        const cleat_verification *item = &report->items[i];
        printf("%s\"%s\": {\"deviation\": ", i ? ", " : "", item->name);
        cli_print_json_number(item->rel_error);
        printf(", \"tolerance\": %g, \"ok\": %s}", item->tolerance, item->ok ? "true" : "false");
    }
    printf("}}\n");
}

static int run(const cli_command *command, int argc, char **argv) {
    const char *device = "auto", *precision = "f32";
    bool json = false;
    cli_list files = {.count = 0};
    const cli_option options[] = {{"--device", CLI_TEXT, &device, "SEL", "device, as for `cleat train`"},
                                  {"--precision", CLI_TEXT, &precision, "TYPE", "f32, f16 or bf16, as train.precision"},
                                  {"--json", CLI_FLAG, &json, NULL, "print one JSON object per file"},
                                  {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &files, &exit_code)) return exit_code;
    if (files.count == 0) return cli_usage(command, "at least one trajectory file is expected");
    cleat_verify_request request = {.device = device};
    if ((exit_code = cli_precision(command, precision, &request.precision)) != 0) return exit_code;
    bool failed = false;
    for (size_t i = 0; i < files.count; ++i) {
        cleat_error error = {0};
        cleat_verify_report report;
        cleat_status status = cleat_verify(&request, files.items[i], &report, &error);
        if (status != CLEAT_OK) return cli_finish(status, &error);
        (json ? print_json : print_text)(files.items[i], precision, &report);
        failed = failed || report.failed;
        cleat_verify_free(&report);
    }
    return failed ? EXIT_DEVICE : 0;
}

const cli_command cli_verify = {"verify", "FILE.safetensors ... [--device SEL] [--precision TYPE] [--json]",
                                "repeat reference trajectories to prove that a device trains correctly", run};

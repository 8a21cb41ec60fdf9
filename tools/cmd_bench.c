/* cleat bench: training steps of fixed workloads, one JSON line each. */
#include "cli.h"

#include <stdio.h>

static void print_result(const cleat_bench_result *r) {
    printf("{\"workload\": \"%s\", \"device\": ", r->workload);
    cli_print_json_string(r->device);
    printf(", \"ms_per_step\": %.3f, \"samples_per_s\": %.2f, \"params\": %lld, \"loss\": %.6g, "
           "\"device_mb\": %.1f, "
           "\"peak_rss_mb\": %.1f, \"steps\": %lld, \"ms_min\": %.3f, \"ms_max\": %.3f}\n",
           r->ms_median, r->samples_per_second, (long long)r->parameters, r->loss, (double)r->device_bytes / 1048576.0,
           r->peak_rss_mb, (long long)r->steps, r->ms_min, r->ms_max);
    fflush(stdout);
}

static int run(const cli_command *command, int argc, char **argv) {
    const char *device = "auto";
    double seconds = 4;
    cli_list names = {.count = 0};
    const cli_option options[] = {{"--device", CLI_TEXT, &device, "SEL", "as for train"},
                                  {"--seconds", CLI_NUMBER, &seconds, "S", "time for each workload (4)"},
                                  {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &names, &exit_code)) return exit_code;
    if (names.count == 0)
        for (; names.count < CLI_LIST && cleat_bench_workload(names.count); ++names.count)
            names.items[names.count] = cleat_bench_workload(names.count);
    for (size_t i = 0; i < names.count; ++i) {
        cleat_bench_result result;
        cleat_error error = {0};
        cleat_status status = cleat_bench(device, names.items[i], seconds, &result, &error);
        if (status != CLEAT_OK) return cli_finish(status, &error);
        print_result(&result);
    }
    return 0;
}

const cli_command cli_bench = {"bench", "[WORKLOAD ...] [--device SEL] [--seconds S]",
                               "times training steps of fixed workloads (W1_B2L512, W1_B1L1200)", run};

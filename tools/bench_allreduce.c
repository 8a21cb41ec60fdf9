/* cleat bench allreduce: times the sum of gradients over several ranks, and says what network has these times. Devices are not
 * used: --devices and --hosts say how many ranks there are, and where. */
#include "bench_allreduce.h"

#include <cleat/bench.h>
#include <stdio.h>

static void print_json(const cleat_allreduce_bench *bench) {
    cleat_string json = {.spaced = true};
    json_add(&json, json_open(NULL, '{'), json_text("workload", BENCH_ALLREDUCE), json_count("ranks", bench->ranks),
             json_open("points", '['));
    for (size_t i = 0; i < bench->count; ++i) {
        const cleat_allreduce_point *point = &bench->points[i];
        json_add(&json, json_open(NULL, '{'), json_count("bytes", point->time.bytes), json_count("runs", point->runs),
                 json_digits("ms_median", point->time.seconds * 1e3, 6), json_close('}'));
    }
    json_add(&json, json_close(']'), json_digits("latency_seconds", bench->network.latency_seconds, 6),
             json_digits("bytes_per_second", bench->network.bytes_per_second, 6),
             json_digits("worst_difference", bench->worst, 4), json_text("network", bench->network.name),
             json_close('}'));
    cli_print_json(&json);
}

static void print_table(const cleat_allreduce_bench *bench) {
    printf("sum of f32 values over %d ranks in place, as of gradients; median time of the slowest rank\n\n%10s %12s "
           "%14s %6s\n",
           bench->ranks, "KiB", "time", "values, GB/s", "runs");
    for (size_t i = 0; i < bench->count; ++i) {
        const cleat_allreduce_time *time = &bench->points[i].time;
        char text[CLI_SHORT];
        printf("%10lld %12s %14.3g %6lld\n", (long long)time->bytes / 1024, cli_duration(time->seconds, text),
               (double)time->bytes / time->seconds / 1e9, (long long)bench->points[i].runs);
    }
    printf("\nnearest network (at most %.0f %% off): a message takes %.4g us, and bytes %.4g GB/s\n"
           "cleat plan PROFILE --devices A,B --network %s\n",
           100 * bench->worst, bench->network.latency_seconds * 1e6, bench->network.bytes_per_second / 1e9,
           bench->network.name);
}

int bench_allreduce_run(const cli_command *command, launch_options *options, double seconds, bool json, int argc,
                        char **argv) {
    const char *device = NULL;
    int exit_code;
    if (launch_elsewhere(command, options, argc, argv, &device, &exit_code)) return exit_code;
    cleat_error error = {0};
    cleat_allreduce_bench bench;
    cleat_ranks *ranks;
    cleat_status status = cli_join_ranks(&ranks, &error);
    if (!status) status = cleat_bench_allreduce(ranks, seconds, &bench, &error);
    if (!status && cli_is_leader(ranks)) {
        if (json)
            print_json(&bench);
        else
            print_table(&bench);
    }
    return cli_leave_ranks(ranks, status, &error);
}

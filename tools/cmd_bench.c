/* cleat bench: times workloads, alternately with another command, or on several devices. */
#include "cli.h"
#include "core/files.h"
#include "launch.h"
#include "platform/files.h"

#include <cleat/profile.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BENCH_ALLREDUCE "allreduce"

enum { MAX_WORKLOADS = 256, DEVICE_TEXT = 512 };

typedef struct bench_command {
    const char *device, *devices, *hosts, *compare;
    double seconds, steps, rounds;
    bool json, list;
    cli_list assignments, words;
    const char *precision_name; /* NULL: not given */
    cleat_precision precision;
} bench_command;

/* A workload to run: from the library's tables, or a profile. */
typedef struct subject {
    char name[CLEAT_PATH];
    cleat_profile *profile;
} subject;

typedef struct subjects {
    subject items[MAX_WORKLOADS];
    size_t count;
} subjects;

/* --- selection of workloads ----------------------------------------------------------------------------------- */

static bool is_profile(const char *word) {
    return strcmp(cleat_name_ending(word), ".ini") == 0;
}

static bool matches(const char *word, const cleat_bench_info *info) {
    if (strcmp(word, "micro") == 0) return info->kind == CLEAT_BENCH_MICRO;
    if (strcmp(word, "models") == 0) return info->kind == CLEAT_BENCH_MODEL;
    return fnmatch(word, info->name, 0) == 0;
}

static cleat_status add(subjects *all, const char *name, cleat_error *error) {
    if (all->count == MAX_WORKLOADS)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "'%s': a call runs at most %d workloads", name, MAX_WORKLOADS);
    snprintf(all->items[all->count++].name, CLEAT_PATH, "%s", name);
    return CLEAT_OK;
}

/* Adds the workloads selected by `word`: a profile (by file extension), a group, or a pattern; any other name
 * is passed to the library, which checks it. */
static cleat_status select_subjects(const bench_command *bench, const char *word, subjects *all, cleat_error *error) {
    size_t before = all->count;
    cleat_status status = CLEAT_OK;
    if (!strpbrk(word, "*?[") && strcmp(word, "micro") != 0 && strcmp(word, "models") != 0) {
        status = add(all, word, error);
        if (!is_profile(word) || status) return status;
        return cli_profile(word, &bench->assignments, NULL, &all->items[before].profile, error);
    }
    cleat_bench_info info;
    for (size_t i = 0; cleat_bench_workload(i, &info) && !status; ++i)
        if (matches(word, &info)) status = add(all, info.name, error);
    if (all->count > before || status) return status;
    return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "no workload matches '%s'; `cleat bench --list` lists them", word);
}

/* The workload of several ranks has no device, so it is not in the library's table. */
static bool find_workload(size_t i, cleat_bench_info *info, const char **kind) {
    static const cleat_bench_info ranks = {
        .name = BENCH_ALLREDUCE,
        .what = "sum of gradients over several ranks (--devices, --hosts), for cleat plan --network"};
    cleat_bench_info last;
    if (cleat_bench_workload(i, info)) {
        *kind = info->kind == CLEAT_BENCH_MICRO ? "micro" : "model";
        return true;
    }
    *info = ranks;
    *kind = "ranks";
    return i == 0 || cleat_bench_workload(i - 1, &last);
}

static void list_workloads(bool json) {
    cleat_bench_info info;
    const char *kind;
    for (size_t i = 0; find_workload(i, &info, &kind); ++i) {
        if (json) {
            cleat_string text = {.spaced = true};
            json_add(&text, json_open(NULL, '{'), json_text("workload", info.name), json_text("kind", kind),
                     json_text("peer", info.peer), json_text("what", info.what), json_close('}'));
            cli_print_json(&text);
        } else {
            printf("%-28s %-6s %-15s %s\n", info.name, kind, info.peer, info.what);
        }
    }
}

/* --- results -------------------------------------------------------------------------------------------------- */

static const char *bound_of(const cleat_bench_result *r) {
    return r->memory_bound ? "memory" : "compute";
}

enum { WARNING = 256 };

static void add_json_result(cleat_string *json, const cleat_bench_result *r) {
    const bool is_model = r->kind == CLEAT_BENCH_MODEL;
    char text[WARNING];
    json_add(
        json, json_text("workload", r->workload), json_text("device", r->device),
        json_text("kind", r->kind == CLEAT_BENCH_MICRO ? "micro" : "model"),
        json_digits("ms_per_step", r->ms_median, 6), json_digits("ms_min", r->ms_min, 6),
        json_digits("ms_max", r->ms_max, 6), json_count("steps", r->steps), json_digits("gflops", r->gflops, 6),
        json_digits("gbytes_per_s", r->gbytes_per_second, 6), json_digits("share_of_peak", r->share_of_peak, 4),
        json_digits("predicted_ms", r->predicted_ms, 6), json_text("bound", bound_of(r)),
        json_digits("peak_gflops", r->peak.flops / 1e9, 6), json_digits("peak_gbytes_per_s", r->peak.bytes / 1e9, 6),
        json_fixed("device_mb", (double)r->device_bytes / 1048576.0, 1), json_fixed("peak_rss_mb", r->peak_rss_mb, 1),
        json_number("peak_matrix_gflops", r->peak.matrix_flops > 0 ? r->peak.matrix_flops / 1e9 : NAN),
        json_open("warnings", '['));
    for (size_t i = 0; cleat_bench_warning(r, i, text, sizeof text); ++i) json_add(json, json_text(NULL, text));
    json_add(json, json_close(']'));
    if (is_model)
        json_add(json, json_text("precision", cleat_dtype_name(r->storage)), json_count("samples", r->samples),
                 json_digits("samples_per_s", r->samples_per_second, 6), json_count("params", r->parameters),
                 json_number("loss", r->loss));
    if (is_model && r->length > 0)
        json_add(json, json_count("length", r->length), json_bool("data_known", r->data_known));
}

static void print_peak(const cleat_bench_result *r) {
    printf("%s: peak %.4g GFLOP/s", r->device, r->peak.flops / 1e9);
    if (r->peak.matrix_flops > 0) printf(" (%.4g on its matrix unit)", r->peak.matrix_flops / 1e9);
    printf(" in registers and %.4g GB/s of memory, measured\n\n", r->peak.bytes / 1e9);
}

static void print_head(const char *first, bool speed) {
    printf("%-28s %30s %10s %9s %9s %8s%s %10s%s\n", first, "ms: median (min - max)", "samples/s", "GFLOP/s", "GB/s",
           "of peak", "  bound  ", "device MiB", speed ? "    speed" : "");
}

/* `speed` 0: no column. */
static void print_row(const char *name, const cleat_bench_result *r, double speed) {
    char times[64], samples[CLI_SHORT] = "-";
    snprintf(times, sizeof times, "%.4g (%.4g - %.4g)", r->ms_median, r->ms_min, r->ms_max);
    if (r->kind == CLEAT_BENCH_MODEL) snprintf(samples, sizeof samples, "%.2f", r->samples_per_second);
    printf("%-28.28s %30s %10s %9.4g %9.4g %6.1f %%  %-7s %10.1f", name, times, samples, r->gflops,
           r->gbytes_per_second, 100 * r->share_of_peak, bound_of(r), (double)r->device_bytes / 1048576.0);
    if (speed > 0) printf("  %6.2fx", speed);
    printf("\n");
    fflush(stdout);
}

static void print_warnings(const cleat_bench_result *r) {
    char text[WARNING];
    for (size_t i = 0; cleat_bench_warning(r, i, text, sizeof text); ++i) printf("  warning: %s\n", text);
}

/* Prints the length that was run if it is not that of the data. */
static void print_length(const subject *what, const cleat_bench_result *r) {
    if (what->profile && !r->data_known)
        printf("  %s does not exist: benchmarking the longest length, %lld\n", what->profile->data->path,
               (long long)r->length);
}

static cleat_bench_request request_of(const bench_command *bench, const subject *what, bool remeasure_peak) {
    return (cleat_bench_request){.device = bench->device,
                                 .workload = what->name,
                                 .profile = what->profile,
                                 .seconds = bench->seconds,
                                 .repeats = (int64_t)bench->steps,
                                 .precision = bench->precision,
                                 .remeasure_peak = remeasure_peak,
                                 .own_process = true};
}

/* As a row, or as one JSON object; `selector` NULL: the result of a workload, without a speed. */
static void print_result(const bench_command *bench, const char *selector, const cleat_bench_result *r, double speed) {
    char name[2 * DEVICE_TEXT];
    if (bench->json) {
        cleat_string json = {.spaced = true};
        json_add(&json, json_open(NULL, '{'));
        if (selector) json_add(&json, json_text("selector", selector));
        add_json_result(&json, r);
        if (selector) json_add(&json, json_digits("speed", speed, 6));
        json_add(&json, json_close('}'));
        cli_print_json(&json);
        return;
    }
    snprintf(name, sizeof name, selector ? "%s: %s" : "%s%s", selector ? selector : "",
             selector ? r->device : r->workload);
    print_row(name, r, speed);
    print_warnings(r);
}

static cleat_status run_plain(const bench_command *bench, const subjects *all, cleat_error *error) {
    for (size_t i = 0; i < all->count; ++i) {
        cleat_bench_result result;
        cleat_bench_request request = request_of(bench, &all->items[i], i == 0);
        cleat_status status = cleat_bench(&request, &result, error);
        if (status) return status;
        if (i == 0 && !bench->json) {
            print_peak(&result);
            print_head("workload", false);
        }
        print_result(bench, NULL, &result, 0);
        if (!bench->json) print_length(&all->items[i], &result);
    }
    return CLEAT_OK;
}

/* --- devices -------------------------------------------------------------------------------------------------- */

/* Prints one row per device, with its speed relative to the first. */
static cleat_status run_devices(const bench_command *bench, const subject *what, bool remeasure_peak,
                                cleat_error *error) {
    char text[DEVICE_TEXT], *next = text;
    cleat_bench_result first;
    snprintf(text, sizeof text, "%s", bench->devices);
    for (bool begun = false, more = true; more; begun = true) {
        const char *selector = next;
        next += strcspn(next, ",");
        more = *next;
        *next++ = 0;
        cleat_bench_result result;
        cleat_bench_request request = request_of(bench, what, remeasure_peak);
        request.device = selector;
        cleat_status status = cleat_bench(&request, &result, error);
        if (status) return status;
        if (!begun) first = result;
        if (!begun && !bench->json) {
            printf("%s; speed: time of the first device divided by the time of this device\n", result.workload);
            print_head("device", true);
        }
        print_result(bench, selector, &result, first.ms_median / result.ms_median);
        if (!more && !bench->json) print_length(what, &result);
    }
    return CLEAT_OK;
}

/* --- comparison ----------------------------------------------------------------------------------------------- */

static void add_json_spread(cleat_string *json, const char *name, const cleat_spread *s) {
    json_add(json, json_open(name, '{'), json_digits("median", s->median, 6), json_digits("min", s->min, 6),
             json_digits("max", s->max, 6), json_close('}'));
}

static void print_json_comparison(const cleat_bench_comparison *c, const char *command) {
    cleat_string json = {.spaced = true};
    json_add(&json, json_open(NULL, '{'), json_text("workload", c->ours.workload), json_text("device", c->ours.device),
             json_text("command", command), json_count("rounds", c->rounds));
    add_json_spread(&json, "ms", &c->ours_ms);
    add_json_spread(&json, "command_ms", &c->theirs_ms);
    add_json_spread(&json, "ratio", &c->ratio);
    json_add(&json, json_bool("command_wall_time", c->wall_time), json_fixed("peak_rss_mb", c->ours_rss_mb, 1),
             json_fixed("command_peak_rss_mb", c->theirs_rss_mb > 0 ? c->theirs_rss_mb : NAN, 1), json_close('}'));
    cli_print_json(&json);
}

static void print_comparison(const cleat_bench_comparison *c) {
    char spreads[3][64];
    const cleat_spread *of[3] = {&c->ours_ms, &c->theirs_ms, &c->ratio};
    for (int i = 0; i < 3; ++i)
        snprintf(spreads[i], sizeof spreads[i], "%.4g (%.4g - %.4g)", of[i]->median, of[i]->min, of[i]->max);
    printf("%-28s %28s %28s%s %26s", c->ours.workload, spreads[0], spreads[1], c->wall_time ? "*" : " ", spreads[2]);
    if (c->theirs_rss_mb > 0)
        printf("  %7.1f / %7.1f = %.2f", c->ours_rss_mb, c->theirs_rss_mb, c->ours_rss_mb / c->theirs_rss_mb);
    printf("\n");
    if (c->wall_time)
        printf("  * the command printed no time: wall time of the whole process, including startup and exit\n");
    fflush(stdout);
}

static cleat_status run_comparisons(const bench_command *bench, const subjects *all, cleat_error *error) {
    for (size_t i = 0; i < all->count; ++i) {
        cleat_bench_comparison comparison;
        cleat_bench_request request = request_of(bench, &all->items[i], false);
        cleat_status status = cleat_bench_compare(&request, bench->compare, (int64_t)bench->rounds, &comparison, error);
        if (status) return status;
        if (!bench->json && i == 0) {
            printf("%lld rounds on %s, alternating with: %s\nmedian (min - max); ratio: time of cleat divided by time "
                   "of the command, of the medians (minimum and maximum over rounds)\n\n",
                   (long long)comparison.rounds, comparison.ours.device, bench->compare);
            printf("%-28s %28s %28s  %26s  %s\n", "workload", "cleat ms", "command ms", "ratio",
                   "peak MiB of each process");
        }
        if (bench->json) {
            print_json_comparison(&comparison, bench->compare);
            continue;
        }
        print_comparison(&comparison);
        print_length(&all->items[i], &comparison.ours);
    }
    return CLEAT_OK;
}

static void print_json_allreduce(const cleat_allreduce_bench *bench) {
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

static void print_allreduce(const cleat_allreduce_bench *bench) {
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

/* Times the sum of gradients over the ranks of --devices and --hosts, or those that a launcher started. */
static int run_allreduce(const cli_command *command, launch_options *options, double seconds, bool json, int argc,
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
            print_json_allreduce(&bench);
        else
            print_allreduce(&bench);
    }
    return cli_leave_ranks(ranks, status, &error);
}

/* --- the command ---------------------------------------------------------------------------------------------- */

static cleat_status run_all(const bench_command *bench, const subjects *all, cleat_error *error) {
    if (bench->compare) return run_comparisons(bench, all, error);
    if (!bench->devices) return run_plain(bench, all, error);
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < all->count && !status; ++i) {
        if (i > 0 && !bench->json) printf("\n");
        status = run_devices(bench, &all->items[i], i == 0, error);
    }
    return status;
}

static bool has_profile(const bench_command *bench) {
    for (size_t i = 0; i < bench->words.count; ++i)
        if (is_profile(bench->words.items[i])) return true;
    return false;
}

static bool is_allreduce(const bench_command *bench) {
    return bench->words.count == 1 && strcmp(bench->words.items[0], BENCH_ALLREDUCE) == 0;
}

static int check(const cli_command *command, const bench_command *bench) {
    if (is_allreduce(bench) && (bench->compare || bench->device || bench->steps > 0 || bench->precision_name))
        return cli_usage(command, BENCH_ALLREDUCE " takes --devices, --hosts, --seconds and --json only");
    if (bench->hosts && !is_allreduce(bench)) return cli_usage(command, "--hosts is for " BENCH_ALLREDUCE " alone");
    if (bench->compare && bench->devices) return cli_usage(command, "--compare and --devices exclude each other");
    if (bench->device && bench->devices) return cli_usage(command, "--device and --devices exclude each other");
    if (bench->devices && strlen(bench->devices) >= DEVICE_TEXT) return cli_usage(command, "--devices is too long");
    if (bench->compare && strspn(bench->compare, " \t\n") == strlen(bench->compare))
        return cli_usage(command, "--compare requires a command");
    if (bench->assignments.count > 0 && !has_profile(bench)) return cli_usage(command, "--set requires a PROFILE.ini");
    if (!(bench->seconds > 0)) return cli_usage(command, "--seconds must be greater than 0");
    if (!cli_is_count(bench->steps, 0, 2000)) return cli_usage(command, "--steps must be an integer of at most 2000");
    if (!cli_is_count(bench->rounds, 1, 1000)) return cli_usage(command, "--rounds must be an integer from 1 to 1000");
    return 0;
}

static int run(const cli_command *command, int argc, char **argv) {
    bench_command bench = {.seconds = 4, .rounds = 5};
    const cli_option options[] = {
        {"--list", CLI_FLAG, &bench.list, NULL, "list the workloads: name, kind, name for --compare, description"},
        CLI_DEVICE(&bench.device),
        {"--devices", CLI_TEXT, &bench.devices, "A,B,...",
         "compare devices: one row each, with the speed relative to the first; allreduce: one rank each"},
        {"--hosts", CLI_TEXT, &bench.hosts, "HOSTS", "allreduce: the machines of the ranks, e.g. a:2,b:1"},
        {"--compare", CLI_TEXT, &bench.compare, "CMD",
         "alternate with CMD (run by the shell, with WORKLOAD set) and print the ratio of times"},
        {"--rounds", CLI_NUMBER, &bench.rounds, "N", "number of rounds with --compare (5)"},
        {"--seconds", CLI_NUMBER, &bench.seconds, "S", "seconds per measurement (4)"},
        {"--precision", CLI_TEXT, &bench.precision_name, "TYPE",
         "f32, f16, bf16 or tf32: precision of training steps (default: f32, or that of the profile)"},
        {"--steps", CLI_NUMBER, &bench.steps, "N", "exact number of timed steps, or bursts, instead of --seconds"},
        CLI_SET(&bench.assignments),
        {"--json", CLI_FLAG, &bench.json, NULL, "print one JSON object per line"},
        {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &bench.words, &exit_code)) return exit_code;
    if ((exit_code = check(command, &bench)) != 0) return exit_code;
    if (is_allreduce(&bench)) {
        launch_options several = {.devices = bench.devices, .hosts = bench.hosts};
        return run_allreduce(command, &several, bench.seconds, bench.json, argc, argv);
    }
    if (bench.precision_name && (exit_code = cli_precision(command, bench.precision_name, &bench.precision)) != 0)
        return exit_code;
    if (bench.list) {
        list_workloads(bench.json);
        return 0;
    }
    subjects *all = calloc(1, sizeof *all);
    if (!all) return EXIT_FAILURE;
    if (!bench.device) bench.device = "auto";
    cleat_error error = {0};
    cleat_status status = CLEAT_OK;
    if (bench.words.count == 0) bench.words.items[bench.words.count++] = "models";
    for (size_t i = 0; i < bench.words.count && !status; ++i)
        status = select_subjects(&bench, bench.words.items[i], all, &error);
    if (!status) status = run_all(&bench, all, &error);
    for (size_t i = 0; i < all->count; ++i) cleat_profile_destroy(all->items[i].profile);
    free(all);
    return cli_finish(status, &error);
}

const cli_command cli_bench = {
    "bench",
    "[WORKLOAD | micro | models | PATTERN | PROFILE.ini ...] [--device SEL | --devices A,B [--hosts HOSTS]] "
    "[--compare CMD [--rounds N]] "
    "[--seconds S | --steps N] [--precision TYPE] [--set SECTION.KEY=VALUE] [--json] | --list",
    "benchmark kernels and training steps, also against another program or on several devices", run};

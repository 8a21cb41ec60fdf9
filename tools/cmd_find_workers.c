/* cleat find-workers: finds the number of loader threads by timing the loader, the device, and both together. */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double BUSY = 0.1; /* noise that makes the recommendation doubtful */

static void print_row(void *user, const cleat_worker_point *p) {
    char batch[32];
    (void)user;
    snprintf(batch, sizeof batch, "%.2f / %.2f", p->batch_ms_p50, p->batch_ms_p95);
    printf("%7d  %11.1f  %18s  %10.2f  %9.2f  %9.1f  %5.0f %%%s\n", p->workers, p->supply, batch, p->batch_ms_max,
           p->step_ms, p->samples_per_second, 100 * p->dry_share, p->beyond_cpus ? "  more threads than CPUs" : "");
    fflush(stdout);
}

static void print_verdict(const cleat_worker_search *search) {
    printf("%7s  %11s  %18s  %10s  %9.2f  %9.1f\n", "device", "", "", "", search->demand_step_ms, search->demand);
    printf("\n%s\n\nrecommended: loader.num_workers = %d (the smallest number within 2 %% of the best training speed; "
           "%d CPU%s",
           search->verdict, search->chosen, search->cpus, search->cpus == 1 ? "" : "s");
    if (search->quota > 0) printf(", a quota of %g", search->quota);
    printf(")\n");
    if (search->noise > BUSY)
        printf("Two measurements of the same rate differ by up to %.0f %%: other programs use this machine, so measure "
               "again with a larger --seconds.\n",
               100 * search->noise);
}

static void print_json(const cleat_worker_search *search) {
    cleat_string json = {.spaced = true};
    json_add(&json, json_open(NULL, '{'), json_count("chosen", search->chosen), json_count("cpus", search->cpus),
             json_number("quota", search->quota > 0 ? search->quota : NAN),
             json_number("demand_samples_per_s", search->demand), json_number("demand_step_ms", search->demand_step_ms),
             json_number("noise", search->noise), json_count("steps", search->steps),
             json_text("verdict", search->verdict), json_open("points", '['));
    for (size_t i = 0; i < search->count; ++i) {
        const cleat_worker_point *p = &search->points[i];
        json_add(&json, json_open(NULL, '{'), json_count("workers", p->workers),
                 json_bool("beyond_cpus", p->beyond_cpus), json_number("supply_samples_per_s", p->supply),
                 json_number("batch_ms_p50", p->batch_ms_p50), json_number("batch_ms_p95", p->batch_ms_p95),
                 json_number("batch_ms_max", p->batch_ms_max), json_number("fill_ms", p->fill_ms),
                 json_number("step_ms", p->step_ms), json_number("samples_per_s", p->samples_per_second),
                 json_number("dry_share", p->dry_share), json_close('}'));
    }
    json_add(&json, json_close(']'), json_close('}'));
    cli_print_json(&json);
}

/* Parses "0,2,4" to counts [*n]. */
static bool parse_counts(const char *text, int counts[CLEAT_WORKER_POINTS], size_t *n) {
    char *end;
    for (*n = 0;; text = end + 1) {
        errno = 0;
        const long value = strtol(text, &end, 10);
        if (end == text || errno || value < 0 || value > 1000 || *n == CLEAT_WORKER_POINTS) return false;
        counts[(*n)++] = (int)value;
        if (!*end) return true;
        if (*end != ',') return false;
    }
}

static cleat_status write_chosen(const char *path, int chosen, bool json, cleat_error *error) {
    char value[16];
    snprintf(value, sizeof value, "%d", chosen);
    cleat_status status = cleat_profile_edit(path, "loader.num_workers", value, error);
    if (!status) fprintf(json ? stderr : stdout, "%s: num_workers = %d\n", path, chosen);
    return status;
}

static cleat_status find(const cleat_profile *profile, const cleat_worker_search_options *options, bool json,
                         const char *write_to, cleat_error *error) {
    cleat_worker_search search;
    cleat_status status = cleat_profile_check_training(profile, error);
    if (status) return status;
    if (!json) {
        printf("%7s  %31s  %10s  %29s  %9s\n", "", "loader alone", "", "training", "");
        printf("%7s  %11s  %18s  %10s  %9s  %9s  %7s\n", "threads", "samples/s", "batch ms p50/p95", "max", "step ms",
               "samples/s", "waited");
    }
    status = cleat_find_workers(profile, options, &search, error);
    if (status) return status;
    (json ? print_json : print_verdict)(&search);
    return write_to ? write_chosen(write_to, search.chosen, json, error) : CLEAT_OK;
}

static int run(const cli_command *command, int argc, char **argv) {
    const char *device = NULL, *list = NULL;
    bool json = false, write = false;
    double seconds = 2;
    int counts[CLEAT_WORKER_POINTS], exit_code;
    cli_list assignments = {.count = 0}, words = {.count = 0};
    const cli_option options[] = {
        {"--workers", CLI_TEXT, &list, "N,N,...", "numbers of threads (0,1,2,4,8,12,16 up to the number of CPUs)"},
        {"--seconds", CLI_NUMBER, &seconds, "S",
         "seconds of each measurement; there are two for each number of threads (2)"},
        {"--write", CLI_FLAG, &write, NULL, "write the number into the profile; nothing else in the file changes"},
        CLI_DEVICE(&device),
        CLI_SET(&assignments),
        {"--json", CLI_FLAG, &json, NULL, "print one JSON object"},
        {NULL, CLI_FLAG, NULL, NULL, NULL}};
    if (!cli_parse(command, options, argc, argv, &words, &exit_code)) return exit_code;
    if (!cli_is_one_profile(command, &words, &assignments, &exit_code)) return exit_code;
    if (!(seconds > 0)) return cli_usage(command, "--seconds %g: must be greater than 0", seconds);
    cleat_worker_search_options search = {.seconds = seconds, .point = json ? NULL : print_row};
    if (list) {
        if (!parse_counts(list, counts, &search.n_counts))
            return cli_usage(command, "--workers %s: must be up to %d numbers, such as 0,2,4", list,
                             CLEAT_WORKER_POINTS);
        search.counts = counts;
    }
    cleat_profile *profile = NULL;
    cleat_error error = {0};
    cleat_status status = cli_profile(words.items[0], &assignments, device, &profile, &error);
    char path[CLEAT_PATH];
    if (!status) status = cleat_profile_find(words.items[0], path, sizeof path, &error);
    if (!status) status = find(profile, &search, json, write ? path : NULL, &error);
    cleat_profile_destroy(profile);
    return cli_finish(status, &error);
}

const cli_command cli_find_workers = {
    "find-workers",
    "PROFILE [--workers N,N,...] [--seconds S] [--write] [--device SEL] [--json] [--set section.key=value ...]",
    "find the number of loader threads by timing the loader, the device, and both together", run};

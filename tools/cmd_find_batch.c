/* cleat find-batch: finds the largest micro-batch that trains, and the fastest, by running training steps. */
#include "cli.h"

#include <stdio.h>

static double mib(int64_t bytes) {
    return (double)bytes / 1048576.0;
}

static void print_row(void *user, const cleat_batch_point *p) {
    (void)user;
    char steps[64] = "-", rate[32] = "-";
    if (p->ran) {
        snprintf(steps, sizeof steps, "%.2f (%.2f - %.2f)", p->ms_median, p->ms_min, p->ms_max);
        snprintf(rate, sizeof rate, "%.2f", p->samples_per_second);
    }
    printf("%8lld  %12.1f  %31s  %11s%s", (long long)p->micro_batch_size, mib(p->planned_bytes), steps, rate,
           p->recomputed ? "  activations recomputed" : "");
    if (!p->ran && p->planned_fits) printf("  failed: %s", p->error);
    if (!p->ran && !p->planned_fits) {
        if (p->planned_bytes > p->limit_bytes)
            printf("  does not fit: the limit is %.1f MiB", mib(p->limit_bytes));
        else
            printf("  %s", p->error);
    }
    printf("\n");
    fflush(stdout);
}

static const cleat_batch_point *point_of(const cleat_batch_search *search, int64_t micro_batch_size) {
    for (size_t i = 0; i < search->count; ++i)
        if (search->points[i].micro_batch_size == micro_batch_size) return &search->points[i];
    return NULL;
}

static void print_verdict(const cleat_batch_search *search) {
    const cleat_batch_point *largest = point_of(search, search->largest), *best = point_of(search, search->best);
    if (!largest || !best) return;
    printf("\nThe largest micro-batch that trains is %lld%s: %.1f of %.1f MiB.\n", (long long)search->largest,
           search->largest == search->global_batch_size ? ", a whole global batch" : "", mib(largest->planned_bytes),
           mib(largest->limit_bytes));
    printf("The best throughput is %.2f samples/s, with a micro-batch of %lld.\n", best->samples_per_second,
           (long long)search->best);
    if (search->cliff) {
        const cleat_batch_point *cliff = point_of(search, search->cliff);
        printf("Warning: throughput drops from a micro-batch of %lld on, to %.2f samples/s there.\n",
               (long long)search->cliff, cliff ? cliff->samples_per_second : 0);
    }
    printf("\nrecommended: train.batch_size = %lld (%s)\n", (long long)search->recommended, search->why);
}

static void add_json_point(cleat_string *json, const cleat_batch_point *p) {
    json_add(json, json_open(NULL, '{'), json_count("batch", p->micro_batch_size),
             json_count("planned_bytes", p->planned_bytes), json_count("limit_bytes", p->limit_bytes),
             json_bool("planned_fits", p->planned_fits), json_bool("recomputed", p->recomputed),
             json_bool("ran", p->ran));
    if (p->ran)
        json_add(json, json_fixed("ms_per_step", p->ms_median, 3), json_fixed("ms_min", p->ms_min, 3),
                 json_fixed("ms_max", p->ms_max, 3), json_fixed("samples_per_s", p->samples_per_second, 3),
                 json_count("allocated_bytes", p->allocated_bytes));
    else
        json_add(json, json_text("error", p->error));
    json_add(json, json_close('}'));
}

/* Null if there is none. */
static cleat_json_value json_batch(const char *name, int64_t micro_batch_size) {
    return micro_batch_size > 0 ? json_count(name, micro_batch_size) : json_text(name, NULL);
}

static void print_json(const cleat_batch_search *search) {
    cleat_string json = {.spaced = true};
    json_add(&json, json_open(NULL, '{'), json_count("length", search->length),
             json_bool("data_known", search->data_known), json_count("effective_batch", search->global_batch_size),
             json_batch("largest", search->largest), json_batch("best", search->best),
             json_batch("cliff", search->cliff), json_batch("recommended", search->recommended),
             json_text("why", search->why), json_open("points", '['));
    for (size_t i = 0; i < search->count; ++i) add_json_point(&json, &search->points[i]);
    json_add(&json, json_close(']'), json_close('}'));
    cli_print_json(&json);
}

static cleat_status find(const cleat_profile *profile, double seconds, bool json, cleat_error *error) {
    cleat_batch_search search;
    cleat_batch_search_options options = {.seconds = seconds, .point = json ? NULL : print_row};
    cleat_status status = cleat_profile_check_training(profile, error);
    if (status) return status;
    if (!json) printf("%8s  %12s  %31s  %11s\n", "batch", "planned MiB", "step ms: median (min - max)", "samples/s");
    status = cleat_find_batch(profile, &options, &search, error);
    if (json) {
        if (!status || search.count > 0) print_json(&search);
    } else if (!status) {
        print_verdict(&search);
        printf("Samples of length %lld, the longest of %s; global batch of %lld samples per optimizer step.\n",
               (long long)search.length, search.data_known ? "the data" : "the profile (its data do not exist)",
               (long long)search.global_batch_size);
    }
    return status;
}

static int run(const cli_command *command, int argc, char **argv) {
    const char *device = NULL;
    bool json = false;
    double seconds = 2;
    cli_list assignments = {.count = 0}, words = {.count = 0};
    const cli_option options[] = {CLI_DEVICE(&device),
                                  {"--seconds", CLI_NUMBER, &seconds, "S",
                                   "seconds of training steps per micro-batch size (2); at least 3 steps"},
                                  CLI_SET(&assignments),
                                  {"--json", CLI_FLAG, &json, NULL, "print one JSON object"},
                                  {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &words, &exit_code)) return exit_code;
    if (!cli_is_one_profile(command, &words, &assignments, &exit_code)) return exit_code;
    if (!(seconds > 0)) return cli_usage(command, "--seconds %g: must be greater than 0", seconds);
    cleat_profile *profile = NULL;
    cleat_error error = {0};
    cleat_status status = cli_profile(words.items[0], &assignments, device, &profile, &error);
    if (!status) status = find(profile, seconds, json, &error);
    cleat_profile_destroy(profile);
    return cli_finish(status, &error);
}

const cli_command cli_find_batch = {"find-batch",
                                    "PROFILE [--device SEL] [--seconds S] [--json] [--set section.key=value ...]",
                                    "find the largest and the fastest micro-batch by running training steps", run};

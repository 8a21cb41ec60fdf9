/* cleat find-batch: finds the largest micro-batch that trains, and the fastest, by running training steps. */
#include "cli.h"

#include <stdio.h>

static double mib(int64_t bytes) {
    return (double)bytes / 1048576.0;
}

/* --- text ----------------------------------------------------------------------------------------------------- */

static void print_head(void) {
    printf("%8s  %12s  %31s  %11s\n", "batch", "planned MiB", "step ms: median (min - max)", "samples/s");
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

/* --- JSON ----------------------------------------------------------------------------------------------------- */

static void print_json_point(const cleat_batch_point *p) {
    printf(
        "{\"batch\": %lld, \"planned_bytes\": %lld, \"limit_bytes\": %lld, \"planned_fits\": %s, \"recomputed\": %s, "
        "\"ran\": %s, ",
        (long long)p->micro_batch_size, (long long)p->planned_bytes, (long long)p->limit_bytes,
        p->planned_fits ? "true" : "false", p->recomputed ? "true" : "false", p->ran ? "true" : "false");
    if (p->ran)
        printf("\"ms_per_step\": %.3f, \"ms_min\": %.3f, \"ms_max\": %.3f, \"samples_per_s\": %.3f, "
               "\"allocated_bytes\": %lld}",
               p->ms_median, p->ms_min, p->ms_max, p->samples_per_second, (long long)p->allocated_bytes);
    else {
        printf("\"error\": ");
        cli_print_json_string(p->error);
        printf("}");
    }
}

static void print_json_batch(const char *name, int64_t micro_batch_size) {
    if (micro_batch_size > 0)
        printf("\"%s\": %lld, ", name, (long long)micro_batch_size);
    else
        printf("\"%s\": null, ", name);
}

static void print_json(const cleat_batch_search *search) {
    printf("{\"length\": %lld, \"data_known\": %s, \"effective_batch\": %lld, ", (long long)search->length,
           search->data_known ? "true" : "false", (long long)search->global_batch_size);
    print_json_batch("largest", search->largest);
    print_json_batch("best", search->best);
    print_json_batch("cliff", search->cliff);
    print_json_batch("recommended", search->recommended);
    printf("\"why\": ");
    cli_print_json_string(search->why);
    printf(", \"points\": [");
    for (size_t i = 0; i < search->count; ++i) {
        if (i) printf(", ");
        print_json_point(&search->points[i]);
    }
    printf("]}\n");
}

/* --- the command ---------------------------------------------------------------------------------------------- */

static int find(const cleat_profile *profile, double seconds, bool json) {
    cleat_batch_search search;
    cleat_error error = {0};
    cleat_batch_search_options options = {.seconds = seconds, .point = json ? NULL : print_row};
    cleat_status status = cleat_profile_check_training(profile, &error);
    if (status != CLEAT_OK) return cli_finish(status, &error);
    if (!json) print_head();
    status = cleat_find_batch(profile, &options, &search, &error);
    if (json) {
        if (status == CLEAT_OK || search.count > 0) print_json(&search);
    } else if (status == CLEAT_OK) {
        print_verdict(&search);
        printf("Samples of length %lld, the longest of %s; global batch of %lld samples per optimizer step.\n",
               (long long)search.length, search.data_known ? "the data" : "the profile (its data do not exist)",
               (long long)search.global_batch_size);
    }
    return cli_finish(status, &error);
}

static int run(const cli_command *command, int argc, char **argv) {
    return cli_run_with_profile(command, argc, argv, 2,
                                "seconds of training steps per micro-batch size (2); at least 3 steps", find);
}

const cli_command cli_find_batch = {"find-batch",
                                    "PROFILE [--device SEL] [--seconds S] [--json] [--set section.key=value ...]",
                                    "find the largest and the fastest micro-batch by running training steps", run};

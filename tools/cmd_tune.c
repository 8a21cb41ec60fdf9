/* cleat tune: finds the fastest kernels on a device for the operations that profiles run. */
#include "cli.h"
#include "platform/files.h"
#include "platform/processes.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct tune_command {
    const char *device, *ship;
    double seconds;
    bool json;
    cli_list assignments, profiles;
} tune_command;

static void print_candidate(const cleat_tune_node *node, size_t i) {
    const cleat_tune_candidate *c = &node->candidates[i];
    double fastest = node->candidates[node->chosen].seconds;
    printf("  %c %-12s ", i == node->chosen ? '*' : ' ', c->variant);
    if (c->seconds > 0)
        printf("%12.4f ms  %7.2f x", c->seconds * 1e3, fastest > 0 ? c->seconds / fastest : 0.0);
    else
        printf("%12s     %s", "-", c->error);
    printf("%s\n", i == 0 ? "  default" : "");
}

static void print_node(void *user, const cleat_tune_node *node) {
    (void)user;
    printf("%s\n  batch %lld, length %lld: ", node->key, (long long)node->micro_batch_size, (long long)node->length);
    if (node->uses > 0)
        printf("%lld times per step\n", (long long)node->uses);
    else
        printf("evaluation only\n");
    for (size_t i = 0; i < node->count; ++i) print_candidate(node, i);
    printf("  %s: %s\n\n", node->candidates[node->chosen].variant, node->why);
    fflush(stdout);
}

static size_t changed(const cleat_tune_report *report) {
    size_t count = 0;
    for (size_t i = 0; i < report->count; ++i) count += report->nodes[i].chosen != 0;
    return count;
}

static double percent(double from, double to) {
    return from > 0 ? 100 * (to / from - 1) : 0;
}

static void print_summary(const cleat_tune_report *report, const char *data) {
    char text[4][CLI_SHORT];
    printf("%s: %zu kinds of nodes with several kernels, %zu of them now using another kernel than the default; %zu "
           "kinds have only one kernel\n",
           report->device, report->count, changed(report), report->single);
    printf("optimizer step at length %lld: nodes with several kernels %s -> %s (%+.1f %%), memory %s -> %s\n",
           (long long)report->length, cli_duration(report->default_seconds, text[0]),
           cli_duration(report->tuned_seconds, text[1]), percent(report->default_seconds, report->tuned_seconds),
           cleat_bytes_text(report->default_bytes, text[2]), cleat_bytes_text(report->tuned_bytes, text[3]));
    if (!report->data_known)
        printf("%s does not exist: tuning the longest length, %lld\n", data, (long long)report->length);
    printf("before: %s\n", report->before);
    if (report->clblast[0]) printf("CLBlast parameters: %s\n", report->clblast);
    if (report->path[0]) printf("%zu choices saved in %s\n", report->entries, report->path);
    printf("took %s\n", cli_duration(report->seconds, text[0]));
}

static void add_json_candidate(cleat_string *json, const cleat_tune_candidate *c) {
    json_add(json, json_open(NULL, '{'), json_text("variant", c->variant),
             json_digits("seconds", c->seconds > 0 ? c->seconds : NAN, 6));
    if (!(c->seconds > 0)) json_add(json, json_text("error", c->error));
    json_add(json, json_close('}'));
}

static void add_json_node(cleat_string *json, const cleat_tune_node *node) {
    json_add(json, json_open(NULL, '{'), json_text("node", node->key), json_count("length", node->length),
             json_count("batch", node->micro_batch_size), json_count("uses", node->uses),
             json_bool("measured", node->measured), json_text("default", node->candidates[0].variant),
             json_text("chosen", node->candidates[node->chosen].variant), json_text("why", node->why),
             json_open("candidates", '['));
    for (size_t i = 0; i < node->count; ++i) add_json_candidate(json, &node->candidates[i]);
    json_add(json, json_close(']'), json_close('}'));
}

static void print_json(const cleat_tune_report *report) {
    cleat_string json = {.spaced = true};
    json_add(&json, json_open(NULL, '{'), json_text("device", report->device), json_text("file", report->path),
             json_text("before", report->before), json_text("clblast", report->clblast),
             json_count("choices", (int64_t)report->entries), json_count("single", (int64_t)report->single),
             json_count("changed", (int64_t)changed(report)), json_bool("data_known", report->data_known),
             json_count("length", report->length), json_count("micro_batches", report->micro_batches),
             json_digits("default_seconds", report->default_seconds, 6),
             json_digits("tuned_seconds", report->tuned_seconds, 6), json_count("default_bytes", report->default_bytes),
             json_count("tuned_bytes", report->tuned_bytes), json_fixed("seconds", report->seconds, 3),
             json_open("nodes", '['));
    for (size_t i = 0; i < report->count; ++i) add_json_node(&json, &report->nodes[i]);
    json_add(&json, json_close(']'), json_close('}'));
    cli_print_json(&json);
}

static int tune(const tune_command *args, const char *path) {
    cleat_tune_report report;
    cleat_error error = {0};
    cleat_profile *profile = NULL;
    cleat_tune_options options = {
        .seconds = args->seconds, .clblast = true, .ship = args->ship, .node = args->json ? NULL : print_node};
    cleat_status status = cli_profile(path, &args->assignments, args->device, &profile, &error);
    if (status) return cli_finish(status, &error);
    status = cleat_tune(profile, &options, &report, &error);
    if (args->json) {
        if (!status || report.count > 0) print_json(&report);
    } else if (!status) {
        print_summary(&report, profile->data->path);
    }
    cleat_tune_free(&report);
    cleat_profile_destroy(profile);
    return cli_finish(status, &error);
}

/* Tunes in a child process: the tuner forks, which requires that OpenCL has not been used, and OpenCL is used
 * after the first profile. */
typedef struct own_process {
    const tune_command *args;
    const char *path;
} own_process;

static void tune_and_send(void *user, int out) {
    const own_process *own = user;
    const int code = cli_finish_output(tune(own->args, own->path));
    if (write(out, &code, sizeof code) != sizeof code) _exit(EXIT_DEVICE);
}

static int tune_own_process(const tune_command *args, const char *path) {
    own_process own = {args, path};
    int ends[2], code = EXIT_DEVICE, state = 0;
    fflush(stdout);
    const pid_t child = pipe2(ends, O_CLOEXEC) == 0 ? cleat_fork_call(tune_and_send, &own, ends[0], ends[1]) : -1;
    if (child < 0) {
        fprintf(stderr, "cleat: cannot start a process for %s: %s\n", path, strerror(errno));
        return EXIT_DEVICE;
    }
    close(ends[1]);
    ssize_t got;
    while ((got = read(ends[0], &code, sizeof code)) < 0 && errno == EINTR) continue;
    close(ends[0]);
    while (waitpid(child, &state, 0) < 0 && errno == EINTR) continue;
    if (got == sizeof code) return code;
    fprintf(stderr, "cleat: tuning %s was terminated by signal %d\n", path, WTERMSIG(state));
    return EXIT_DEVICE;
}

/* A failing profile does not prevent the others from being tuned; the exit code is that of the first
 * failure. */
static int tune_all(const tune_command *args) {
    const cli_list *profiles = &args->profiles;
    cli_list failed = {.count = 0};
    int exit_code = 0;
    if (profiles->count == 1) return tune(args, profiles->items[0]);
    for (size_t i = 0; i < profiles->count; ++i) {
        if (!args->json) printf("%s== %s\n\n", i ? "\n" : "", profiles->items[i]);
        int code = tune_own_process(args, profiles->items[i]);
        if (code != 0) failed.items[failed.count++] = profiles->items[i];
        if (exit_code == 0) exit_code = code;
    }
    if (failed.count > 0) fprintf(stderr, "cleat: %zu of %zu profiles failed:", failed.count, profiles->count);
    for (size_t i = 0; i < failed.count; ++i)
        fprintf(stderr, " %s%s", failed.items[i], i + 1 < failed.count ? "" : "\n");
    return exit_code;
}

static int run(const cli_command *command, int argc, char **argv) {
    tune_command args = {.seconds = 0.2};
    const cli_option options[] = {
        CLI_DEVICE(&args.device),
        {"--seconds", CLI_NUMBER, &args.seconds, "S", "approximate seconds per kernel and kind of node (0.2)"},
        {"--ship", CLI_TEXT, &args.ship, "FILE",
         "also write the results to FILE; profiles/devices/NAME.tuned is built into the library"},
        {"--set", CLI_REPEATED, &args.assignments, "SECTION.KEY=VALUE",
         "override a setting of the profiles; may be repeated"},
        {"--json", CLI_FLAG, &args.json, NULL, "print one JSON object per profile"},
        {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &args.profiles, &exit_code)) return exit_code;
    if (args.profiles.count == 0) return cli_usage(command, "at least one profile is expected");
    if (!(args.seconds > 0)) return cli_usage(command, "--seconds %g: must be greater than 0", args.seconds);
    return tune_all(&args);
}

const cli_command cli_tune = {
    "tune", "PROFILE ... [--device SEL] [--seconds S] [--ship FILE] [--json] [--set section.key=value ...]",
    "find the fastest kernels for profiles on this device, and save the results", run};

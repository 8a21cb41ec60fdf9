/* cleat verify: verifies against reference trajectories that a device trains correctly: those built into the library, or
 * files. */
#include "cli.h"

#include <cleat/verify.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

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

/* --- trajectories of the library -------------------------------------------------------------------------------- */

const char *const cli_model_types[] = {
    "series_dense",    "series_lstm",  "series_transformer", "text_classifier", "text_tagger",
    "rna_transformer", "image_resnet", "mask_segformer",     "emberformer",     NULL};

/* What the self-check logs about one reference training. */
typedef struct summary {
    unsigned comparisons, sets;
    double worst; /* relative to the tolerance; NaN: no reference training was made */
    char text[256];
} summary;

/* Keeps the result of the reference training, and prints warnings. */
static void keep_summary(void *user, cleat_log_level level, const char *text) {
    summary *kept = user;
    if (level <= CLEAT_LOG_WARNING) fprintf(stderr, "%s\n", text);
    if (strncmp(text, "self-check: ", 12) != 0 || (!strstr(text, "reference training") && !strstr(text, "skipped")))
        return;
    snprintf(kept->text, sizeof kept->text, "%s", text + 12);
    if (sscanf(kept->text, "%u comparisons of %*[^,], with %u sets of kernels: the worst at %lf", &kept->comparisons,
               &kept->sets, &kept->worst) != 3)
        kept->worst = NAN;
}

static cleat_status check(cleat_device *device, const char *model, const char *precision, cleat_error *error) {
    char assignments[2][128];
    cleat_profile *profile = NULL;
    snprintf(assignments[0], sizeof assignments[0], "model.type=%s", model);
    snprintf(assignments[1], sizeof assignments[1], "train.precision=%s", precision);
    cleat_status status = cleat_profile_create(&profile, error);
    if (status == CLEAT_OK) status = cleat_profile_set(profile, assignments[0], error);
    if (status == CLEAT_OK) status = cleat_profile_set(profile, assignments[1], error);
    if (status == CLEAT_OK) status = cleat_profile_set(profile, "run.self_check=always", error);
    if (status == CLEAT_OK) status = cleat_self_check(device, profile, error);
    cleat_profile_destroy(profile);
    return status;
}

static void print_row(const char *model, const char *precision, const summary *found, double seconds,
                      const cleat_error *error, bool json) {
    if (json) {
        printf("{\"model\": \"%s\", \"precision\": \"%s\", \"ok\": %s, \"comparisons\": %u, \"worst\": ", model,
               precision, error->status ? "false" : "true", found->comparisons);
        cli_print_json_number(found->worst);
        printf(", \"seconds\": %.2f, \"error\": ", seconds);
        cli_print_json_string(error->text);
        printf("}\n");
    } else if (error->status) {
        printf("  %-20s %-5s FAILED: %s\n", model, precision, error->text);
    } else if (isnan(found->worst)) {
        printf("  %-20s %-5s ok       %s\n", model, precision, found->text);
    } else {
        printf("  %-20s %-5s ok  %8u comparisons, %2u sets of kernels, the worst at %.2f of its tolerance, %.1f s\n",
               model, precision, found->comparisons, found->sets, found->worst, seconds);
    }
    fflush(stdout);
}

static double wall_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Checks `model`, or all models if it is NULL, in `precision`, or in all. A failure does not keep others from being
 * checked. */
static int verify_all(const char *selector, const char *model, const char *precision, bool json) {
    static const char *const precisions[] = {"f32", "f16", "bf16"};
    cleat_device *device = NULL;
    cleat_error error = {0};
    cleat_status status = cleat_device_open(selector, &device, &error);
    if (status != CLEAT_OK) return cli_finish(status, &error);
    const cleat_device_facts *facts = cleat_device_get_facts(device);
    if (!json) printf("%s, %s, driver %s\n", facts->name, facts->platform, facts->driver);
    bool failed = false;
    for (size_t p = 0; p < 3; ++p)
        for (const char *const *type = cli_model_types; *type; ++type) {
            if ((precision && strcmp(precision, precisions[p]) != 0) || (model && strcmp(model, *type) != 0)) continue;
            summary found = {.worst = NAN};
            const double started = wall_seconds();
            error = (cleat_error){0};
            cleat_set_log(keep_summary, &found, CLEAT_LOG_INFO);
            check(device, *type, precisions[p], &error);
            print_row(*type, precisions[p], &found, wall_seconds() - started, &error, json);
            failed = failed || error.status;
        }
    cleat_set_log(NULL, NULL, CLEAT_LOG_ERROR);
    if (!json) printf("  %s\n", failed ? "FAILED" : "passed");
    cleat_device_close(device);
    return failed ? EXIT_DEVICE : 0;
}

static bool is_model_type(const char *name) {
    for (const char *const *type = cli_model_types; *type; ++type)
        if (strcmp(*type, name) == 0) return true;
    return false;
}

/* --- the command ------------------------------------------------------------------------------------------------ */

static int verify_files(const cleat_verify_request *request, const cli_list *files, const char *precision, bool json) {
    bool failed = false;
    for (size_t i = 0; i < files->count; ++i) {
        cleat_error error = {0};
        cleat_verify_report report;
        cleat_status status = cleat_verify(request, files->items[i], &report, &error);
        if (status != CLEAT_OK) return cli_finish(status, &error);
        (json ? print_json : print_text)(files->items[i], precision, &report);
        failed = failed || report.failed;
        cleat_verify_free(&report);
    }
    return failed ? EXIT_DEVICE : 0;
}

static int run(const cli_command *command, int argc, char **argv) {
    const char *device = "auto", *precision = NULL, *model = NULL;
    bool json = false;
    cli_list files = {.count = 0};
    const cli_option options[] = {
        {"--device", CLI_TEXT, &device, "SEL", "device, as for `cleat train`"},
        {"--precision", CLI_TEXT, &precision, "TYPE", "f32, f16 or bf16 (files: f32; without a file: all)"},
        {"--model", CLI_TEXT, &model, "NAME", "only the reference training of this model.type; not with a file"},
        {"--json", CLI_FLAG, &json, NULL, "print one JSON object per file, or per training"},
        {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &files, &exit_code)) return exit_code;
    cleat_verify_request request = {.device = device};
    if ((exit_code = cli_precision(command, precision ? precision : "f32", &request.precision)) != 0) return exit_code;
    if (model && files.count) return cli_usage(command, "--model chooses a training of the library: give it or a file");
    if (model && !is_model_type(model)) return cli_usage(command, "--model %s: no such reference training", model);
    if (files.count == 0) return verify_all(device, model, precision, json);
    return verify_files(&request, &files, precision ? precision : "f32", json);
}

const cli_command cli_verify = {
    "verify", "[FILE.safetensors ...] [--device SEL] [--precision TYPE] [--model NAME] [--json]",
    "repeat reference trajectories, of the library or of files, to prove that a device trains correctly", run};

/* cleat verify: verifies against reference trajectories that a device trains correctly: those built into the
 * library, files, or folders of published checkpoints with expected results. */
#include "cli.h"
#include "core/clock.h"

#include <cleat/doctor.h>
#include <cleat/verify.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

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
    cleat_string json = {.spaced = true};
    json_add(&json, json_open(NULL, '{'), json_text("file", file), json_text("precision", precision),
             json_count("failed", (int64_t)report->failed), json_open("checks", '{'));
    for (size_t i = 0; i < report->count; ++i) {
        const cleat_verification *item = &report->items[i];
        json_add(&json, json_open(item->name, '{'), json_number("deviation", item->rel_error),
                 json_digits("tolerance", item->tolerance, 6), json_bool("ok", item->ok), json_close('}'));
    }
    json_add(&json, json_close('}'), json_close('}'));
    cli_print_json(&json);
}

/* The result of a reference training of the library. */
typedef struct row {
    const char *model, *precision;
    cleat_reference_result result;
    double seconds;
    cleat_error error;
} row;

static void print_row(const row *r, bool json) {
    const cleat_reference_result *found = &r->result;
    if (json) {
        cleat_string text = {.spaced = true};
        json_add(&text, json_open(NULL, '{'), json_text("model", r->model), json_text("precision", r->precision),
                 json_bool("ok", !r->error.status), json_count("comparisons", (int64_t)found->comparisons),
                 json_number("worst", r->error.status || !found->comparisons ? NAN : found->worst),
                 json_fixed("seconds", r->seconds, 2), json_text("error", r->error.text), json_close('}'));
        cli_print_json(&text);
    } else if (r->error.status) {
        printf("  %-20s %-5s FAILED: %s\n", r->model, r->precision, r->error.text);
    } else if (!found->comparisons) {
        printf("  %-20s %-5s skipped: the device has too little memory\n", r->model, r->precision);
    } else {
        printf("  %-20s %-5s ok  %8zu comparisons, %2d sets of kernels, the worst at %.2g of its limit, %.1f s\n",
               r->model, r->precision, found->comparisons, found->kernel_sets, found->worst, r->seconds);
    }
    fflush(stdout);
}

/* Prints no row if the device has no unit for the precision (CLEAT_ERR_NOT_SUPPORTED). */
static cleat_status verify_one(cleat_device *device, const char *model, const char *precision, cleat_precision value,
                               bool json, cleat_error *error) {
    row r = {.model = model, .precision = precision};
    const double started = cleat_seconds();
    cleat_verify_reference(device, model, value, &r.result, &r.error);
    r.seconds = cleat_seconds() - started;
    if (r.error.status != CLEAT_ERR_NOT_SUPPORTED) print_row(&r, json);
    *error = r.error;
    return r.error.status;
}

/* Checks `model`, or all models if it is NULL, in `precision`, or in all. A failure does not keep others from being
 * checked. */
static int verify_library(const char *selector, const char *model, const char *precision, bool json) {
    cleat_device *device = NULL;
    cleat_error error = {0};
    cleat_status status = cleat_doctor_open_device(selector, &device, &error);
    if (status) return cli_finish(status, &error);
    const cleat_device_facts *facts = cleat_device_get_facts(device);
    if (!json) printf("%s, %s, driver %s\n", facts->name, facts->platform, facts->driver);
    bool passed = true;
    for (const cli_precision_name *p = cli_precisions; p->name; ++p) {
        if (precision && strcmp(precision, p->name) != 0) continue;
        const char *name;
        status = CLEAT_OK;
        for (size_t i = 0; status != CLEAT_ERR_NOT_SUPPORTED && (name = cleat_reference_model(i)); ++i) {
            if (model && strcmp(model, name) != 0) continue;
            status = verify_one(device, name, p->name, p->precision, json, &error);
            passed &= !status || status == CLEAT_ERR_NOT_SUPPORTED;
        }
        if (precision && status == CLEAT_ERR_NOT_SUPPORTED) break;
        status = CLEAT_OK;
    }
    cleat_device_close(device);
    if (status) return cli_finish(status, &error);
    if (!json) printf("  %s\n", passed ? "passed" : "FAILED");
    return passed ? 0 : EXIT_DEVICE;
}

static bool is_model_type(const char *model) {
    const char *name;
    for (size_t i = 0; (name = cleat_reference_model(i)) != NULL; ++i)
        if (strcmp(name, model) == 0) return true;
    return false;
}

static int verify_files(const cleat_verify_request *request, const cli_list *files, const char *precision, bool json) {
    bool failed = false;
    for (size_t i = 0; i < files->count; ++i) {
        cleat_error error = {0};
        cleat_verify_report report;
        cleat_status status = cleat_verify(request, files->items[i], &report, &error);
        if (status) return cli_finish(status, &error);
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
        CLI_DEVICE(&device),
        {"--precision", CLI_TEXT, &precision, "TYPE",
         "f32, f16, bf16 or tf32 (files and folders: f32; without one: all)"},
        {"--model", CLI_TEXT, &model, "NAME", "only the reference training of this model.type"},
        {"--json", CLI_FLAG, &json, NULL, "print one JSON object per file or folder, or per training"},
        {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &files, &exit_code)) return exit_code;
    cleat_verify_request request = {.device = device};
    if ((exit_code = cli_precision(command, precision ? precision : "f32", &request.precision)) != 0) return exit_code;
    if (model && files.count)
        return cli_usage(command, "--model chooses a training of the library: give it, or files and folders");
    if (model && !is_model_type(model)) return cli_usage(command, "--model %s: no such reference training", model);
    if (files.count == 0) return verify_library(device, model, precision, json);
    return verify_files(&request, &files, precision ? precision : "f32", json);
}

const cli_command cli_verify = {
    "verify", "[FILE.safetensors | FOLDER ...] [--device SEL] [--precision TYPE] [--model NAME] [--json]",
    "repeat reference trainings, of the library, of files or of published checkpoints with expected results, and "
    "compare",
    run};

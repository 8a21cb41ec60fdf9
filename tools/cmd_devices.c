/* cleat devices: lists the devices available for training. */
#include "cli.h"

#include <cleat/doctor.h>
#include <stdio.h>
#include <string.h>

static double gib(int64_t bytes) {
    return (double)bytes / 1073741824.0;
}

/* `failure`: why the device cannot be opened; "" if it can, or was not opened. */
static void print_text(const cleat_device_facts *f, size_t i, const char *failure) {
    printf("%zu  %s\n", i, f->name);
    printf("   kind               %s (%s, driver %s)\n", cleat_device_kind_text(f->kind), f->platform, f->driver);
    printf("   memory             %.2f GiB", gib(f->memory_total));
    if (f->memory_free > 0) printf(", free %.2f GiB (%s)", gib(f->memory_free), f->memory_source);
    printf("\n   largest allocation %.2f GiB\n", gib(f->max_allocation));
    printf("   compute units      %d\n", (int)f->compute_units);
    printf("   half               storage yes, arithmetic %s\n",
           f->half_extension ? "yes (cl_khr_fp16)" : "not supported");
    printf("   matrix unit        %s%s\n", cleat_matrix_unit_text(f->matrix_unit),
           f->matrix_unit == CLEAT_MATRIX_NONE   ? ""
           : f->matrix_unit == CLEAT_MATRIX_NV80 ? ", f16, bf16 and tf32"
           : f->matrix_bf16                      ? ", f16 and bf16"
                                                 : ", f16");
    printf("   host memory        %s\n", f->unified_memory ? "shared with the device" : "separate");
    if (f->pci_bus >= 0)
        printf("   pci                %04x:%02x:%02x.%x\n", (unsigned)f->pci_domain, (unsigned)f->pci_bus,
               (unsigned)f->pci_device, (unsigned)f->pci_function);
    printf("   loader threads on  CPUs %s\n", f->pinning);
    if (failure[0]) printf("   cannot be opened   %s\n", failure);
}

static void print_json(const cleat_device_facts *f, size_t i, const char *failure) {
    printf("%s{\"index\": %zu, \"name\": ", i ? ", " : "", i);
    cli_print_json_string(f->name);
    printf(", \"kind\": \"%s\", \"platform\": ", cleat_device_kind_text(f->kind));
    cli_print_json_string(f->platform);
    printf(", \"driver\": ");
    cli_print_json_string(f->driver);
    printf(", \"memory_total\": %lld, \"memory_free\": %lld, \"memory_source\": ", (long long)f->memory_total,
           (long long)f->memory_free);
    cli_print_json_string(f->memory_source);
    printf(", \"max_allocation\": %lld, \"compute_units\": %d, \"half_arithmetic\": %s, \"matrix_unit\": \"%s\", "
           "\"matrix_bf16\": %s, \"unified_memory\": %s, \"pinning\": ",
           (long long)f->max_allocation, (int)f->compute_units, f->half_extension ? "true" : "false",
           cleat_matrix_unit_text(f->matrix_unit), f->matrix_bf16 ? "true" : "false",
           f->unified_memory ? "true" : "false");
    cli_print_json_string(f->pinning);
    printf(", \"error\": ");
    if (failure[0])
        cli_print_json_string(failure);
    else
        printf("null");
    printf("}");
}

/* The matrix unit can be queried only on an open device. */
static void query_matrix_unit(cleat_device_facts *f, size_t i, cleat_error *failure) {
    char number[24];
    cleat_device *device = NULL;
    if (f->kind != CLEAT_DEVICE_GPU) return;
    snprintf(number, sizeof number, "%zu", i);
    if (cleat_device_open(number, &device, failure) != CLEAT_OK) return;
    f->matrix_unit = cleat_device_get_facts(device)->matrix_unit;
    f->matrix_bf16 = cleat_device_get_facts(device)->matrix_bf16;
    cleat_device_close(device);
}

/* --- what is not usable ------------------------------------------------------------------------------------------ */

/* Faults of cards and drivers, and drivers that list no device. The faults of the result repeat them, except the one
 * that says how to get any device. */
static bool belongs(const cleat_check_section *section, const cleat_check *check) {
    if (strcmp(section->name, "result") == 0) return check->result >= CLEAT_CHECK_WARN && check->n_commands > 0;
    return check->result >= CLEAT_CHECK_WARN || strcmp(check->code, "driver-without-card") == 0;
}

static void print_reason(const cleat_check *check) {
    printf("      %s: %s\n", check->code, check->evidence);
    if (check->cause[0]) printf("      %s\n", check->cause);
    for (size_t i = 0; i < check->n_commands; ++i) printf("      > %s\n", check->commands[i]);
}

static void print_reason_json(const cleat_check_section *section, const cleat_check *check, bool first) {
    printf("%s{\"index\": null, \"name\": ", first ? "" : ", ");
    cli_print_json_string(section->title);
    printf(", \"kind\": null, \"error\": ");
    cli_print_json_string(check->evidence);
    printf(", \"code\": ");
    cli_print_json_string(check->code);
    printf(", \"cause\": ");
    cli_print_json_string(check->cause);
    printf(", \"commands\": [");
    for (size_t i = 0; i < check->n_commands; ++i) {
        if (i) printf(", ");
        cli_print_json_string(check->commands[i]);
    }
    printf("]}");
}

/* `listed`: number of devices printed before. */
static void print_not_usable(const cleat_doctor_report *report, bool json, size_t listed) {
    size_t printed = 0;
    for (size_t s = 0; s < report->count; ++s) {
        const cleat_check_section *section = &report->sections[s];
        bool titled = false;
        for (size_t c = 0; c < section->count; ++c) {
            const cleat_check *check = &section->checks[c];
            if (!belongs(section, check)) continue;
            if (json) {
                print_reason_json(section, check, listed + printed == 0);
            } else {
                if (printed == 0) printf("%snot usable:\n", listed ? "\n" : "");
                if (!titled) printf("   %s\n", section->title);
                print_reason(check);
            }
            titled = true;
            ++printed;
        }
    }
}

/* --- the command ------------------------------------------------------------------------------------------------- */

/* Where the doctor's children found no device, this process does not ask the drivers: one of them may hang or crash. */
static cleat_status list_devices(const cleat_doctor_report *report, cleat_device_facts **facts, size_t *count,
                                 cleat_error *error) {
    if (cleat_doctor_find(report, "no-usable-device"))
        return cleat_fail(error, CLEAT_ERR_NO_DEVICE,
                          "no usable OpenCL device; what is wrong, and the commands that help, is listed above");
    return cleat_device_list(facts, count, error);
}

static cleat_status print_all(const cleat_doctor_report *report, bool json, cleat_error *error) {
    cleat_device_facts *facts = NULL;
    size_t count = 0;
    cleat_status status = list_devices(report, &facts, &count, error);
    if (json) printf("[");
    for (size_t i = 0; i < count; ++i) {
        cleat_error failure = {0};
        query_matrix_unit(&facts[i], i, &failure);
        (json ? print_json : print_text)(&facts[i], i, failure.text);
    }
    print_not_usable(report, json, count);
    if (json) printf("]\n");
    cleat_device_list_free(facts);
    return status;
}

static int run(const cli_command *command, int argc, char **argv) {
    /* A driver that hangs is no reason to wait long; one that is slow is no reason to call it unusable. */
    const cleat_doctor_request look = {.list_only = true, .seconds = 15};
    cleat_doctor_report *report = NULL;
    bool json = false;
    cli_list words = {.count = 0};
    const cli_option options[] = {
        {"--json", CLI_FLAG, &json, NULL, "print one JSON array; \"index\" is null for what is not usable"},
        {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &words, &exit_code)) return exit_code;
    if (words.count) return cli_usage(command, "the command takes no arguments");
    cleat_error error = {0};
    cleat_status status = cleat_doctor_run(&look, &report, &error);
    if (status == CLEAT_OK) status = print_all(report, json, &error);
    cleat_doctor_free(report);
    return cli_finish(status, &error);
}

const cli_command cli_devices = {"devices", "[--json]",
                                 "list the OpenCL devices and their properties, and what is not usable and why", run};

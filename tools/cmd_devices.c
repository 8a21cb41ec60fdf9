/* cleat devices: lists the devices available for training. */
#include "cli.h"

#include <cleat/doctor.h>
#include <stdio.h>
#include <string.h>

/* `failure`: why the device cannot be opened; "" if it can, or was not opened. */
static void print_text(const cleat_device_facts *f, size_t i, const char *failure) {
    char bytes[CLEAT_BYTES_TEXT];
    printf("%zu  %s\n", i, f->name);
    printf("   kind               %s (%s, driver %s)\n", cleat_device_kind_text(f->kind), f->platform, f->driver);
    printf("   memory             %s", cleat_bytes_text(f->memory_total, bytes));
    if (f->memory_free > 0) printf(", free %s (%s)", cleat_bytes_text(f->memory_free, bytes), f->memory_source);
    printf("\n   largest allocation %s\n", cleat_bytes_text(f->max_allocation, bytes));
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

static void add_json(cleat_string *json, const cleat_device_facts *f, size_t i, const char *failure) {
    json_add(json, json_open(NULL, '{'), json_count("index", (int64_t)i), json_text("name", f->name),
             json_text("kind", cleat_device_kind_text(f->kind)), json_text("platform", f->platform),
             json_text("driver", f->driver), json_count("memory_total", f->memory_total),
             json_count("memory_free", f->memory_free), json_text("memory_source", f->memory_source),
             json_count("max_allocation", f->max_allocation), json_count("compute_units", f->compute_units),
             json_bool("half_arithmetic", f->half_extension),
             json_text("matrix_unit", cleat_matrix_unit_text(f->matrix_unit)), json_bool("matrix_bf16", f->matrix_bf16),
             json_bool("unified_memory", f->unified_memory), json_text("pinning", f->pinning),
             json_some("error", failure), json_close('}'));
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

/* Faults of cards and drivers, and drivers that list no device. The faults of the result repeat them, except
 * the one with the commands that provide a device. */
static bool belongs(const cleat_doctor_subject *section, const cleat_doctor_check *check) {
    if (strcmp(section->name, "result") == 0) return check->result >= CLEAT_CHECK_WARN && check->n_commands > 0;
    return check->result >= CLEAT_CHECK_WARN || strcmp(check->code, "driver-without-card") == 0;
}

static void print_reason(const cleat_doctor_check *check) {
    printf("      %s: %s\n", check->code, check->evidence);
    if (check->cause[0]) printf("      %s\n", check->cause);
    for (size_t i = 0; i < check->n_commands; ++i) printf("      > %s\n", check->commands[i]);
}

static void add_json_reason(cleat_string *json, const cleat_doctor_subject *section, const cleat_doctor_check *check) {
    json_add(json, json_open(NULL, '{'), json_text("index", NULL), json_text("name", section->title),
             json_text("kind", NULL), json_text("error", check->evidence), json_text("code", check->code),
             json_text("cause", check->cause), json_open("commands", '['));
    for (size_t i = 0; i < check->n_commands; ++i) json_add(json, json_text(NULL, check->commands[i]));
    json_add(json, json_close(']'), json_close('}'));
}

/* `json` NULL: as text, after `listed` devices. */
static void print_not_usable(const cleat_doctor_report *report, cleat_string *json, size_t listed) {
    bool begun = false;
    for (size_t s = 0; s < report->count; ++s) {
        const cleat_doctor_subject *section = &report->sections[s];
        bool titled = false;
        for (size_t c = 0; c < section->count; ++c) {
            const cleat_doctor_check *check = &section->checks[c];
            if (!belongs(section, check)) continue;
            if (json) {
                add_json_reason(json, section, check);
                continue;
            }
            if (!begun) printf("%snot usable:\n", listed ? "\n" : "");
            if (!titled) printf("   %s\n", section->title);
            print_reason(check);
            begun = titled = true;
        }
    }
}

/* If the doctor's children found no device, this process does not query the drivers: one of them may hang or
 * crash. */
static cleat_status list_devices(const cleat_doctor_report *report, cleat_device_facts **facts, size_t *count,
                                 cleat_error *error) {
    if (cleat_doctor_find(report, "no-usable-device"))
        return cleat_fail(error, CLEAT_ERR_NO_DEVICE,
                          "no usable OpenCL device; the faults, and commands that help, are listed above");
    return cleat_device_list(facts, count, error);
}

static cleat_status print_all(const cleat_doctor_report *report, bool json, cleat_error *error) {
    cleat_device_facts *facts = NULL;
    size_t count = 0;
    cleat_status status = list_devices(report, &facts, &count, error);
    cleat_string text = {.spaced = true};
    json_add(&text, json_open(NULL, '['));
    for (size_t i = 0; i < count; ++i) {
        cleat_error failure = {0};
        query_matrix_unit(&facts[i], i, &failure);
        if (json)
            add_json(&text, &facts[i], i, failure.text);
        else
            print_text(&facts[i], i, failure.text);
    }
    print_not_usable(report, json ? &text : NULL, count);
    json_add(&text, json_close(']'));
    if (json) cli_print_json(&text);
    cleat_string_free(&text);
    cleat_device_list_free(facts);
    return status;
}

static int run(const cli_command *command, int argc, char **argv) {
    /* Long enough for a slow driver, not too long for one that hangs. */
    const cleat_doctor_request look = {.list_only = true, .seconds = 15};
    cleat_doctor_report *report = NULL;
    bool json = false;
    cli_list words = {.count = 0};
    const cli_option options[] = {
        {"--json", CLI_FLAG, &json, NULL, "print one JSON array; \"index\" is null for unusable devices"},
        {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &words, &exit_code)) return exit_code;
    if (words.count) return cli_usage(command, "the command takes no arguments");
    cleat_error error = {0};
    cleat_status status = cleat_doctor_run(&look, &report, &error);
    if (!status) status = print_all(report, json, &error);
    cleat_doctor_free(report);
    return cli_finish(status, &error);
}

const cli_command cli_devices = {"devices", "[--json]",
                                 "list the OpenCL devices and their properties, and why others are not usable", run};

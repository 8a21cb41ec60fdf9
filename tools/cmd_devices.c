/* cleat devices: lists the devices available for training. */
#include "cli.h"

#include <cleat/device.h>
#include <stdio.h>

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
           f->matrix_unit == CLEAT_MATRIX_NONE ? ""
           : f->matrix_bf16                    ? ", f16 and bf16"
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

static int run(const cli_command *command, int argc, char **argv) {
    bool json = false;
    cli_list words = {.count = 0};
    const cli_option options[] = {{"--json", CLI_FLAG, &json, NULL, "print one JSON array"},
                                  {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &words, &exit_code)) return exit_code;
    if (words.count) return cli_usage(command, "the command takes no arguments");
    cleat_device_facts *facts = NULL;
    size_t count = 0;
    cleat_error error = {0};
    cleat_status status = cleat_device_list(&facts, &count, &error);
    if (status == CLEAT_OK) {
        if (json) printf("[");
        for (size_t i = 0; i < count; ++i) {
            cleat_error failure = {0};
            query_matrix_unit(&facts[i], i, &failure);
            (json ? print_json : print_text)(&facts[i], i, failure.text);
        }
        if (json) printf("]\n");
        cleat_device_list_free(facts);
    }
    return cli_finish(status, &error);
}

const cli_command cli_devices = {"devices", "[--json]", "list the OpenCL devices and their properties", run};

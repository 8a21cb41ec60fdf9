/* The parts of a passport that need a device: each is printed by a separate process. */
#include "passport.h"

#include <cleat/bench.h>
#include <cleat/device.h>
#include <cleat/profile.h>
#include <cleat/rates.h>
#include <cleat/verify.h>

#include <string.h>

static const char *vendor_text(cleat_vendor vendor) {
    static const char *const names[] = {"unknown", "nvidia", "amd", "intel", "pocl", "oclgrind"};
    return (size_t)vendor < sizeof names / sizeof names[0] ? names[vendor] : "unknown";
}

static void print_bytes(const char *key, int64_t bytes) {
    if (bytes > 0)
        printf("%s = %lld\n", key, (long long)bytes);
    else
        printf("%s = unknown\n", key);
}

static const char *yes(bool value) {
    return value ? "true" : "false";
}

/* Messages logged while a device opens, for example why its matrix unit is not used. */
static void print_note(void *user, cleat_log_level level, const char *text) {
    int *count = user;
    (void)level;
    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') /* a build log has several lines */
        if (*at != '\n' && *count < 12) printf("note %d = %.*s\n", ++*count, (int)strcspn(at, "\n"), at);
}

static int print_device(const char *selector) {
    int notes = 0;
    cleat_device *device = NULL;
    cleat_error error = {0};
    cleat_set_log(print_note, &notes, CLEAT_LOG_INFO);
    cleat_status status = cleat_device_open(selector, &device, &error);
    if (status) return cli_finish(status, &error);
    const cleat_device_facts *f = cleat_device_get_facts(device);
    printf("name = %s\nvendor = %s\nvendor_name = %s\nplatform = %s\ndriver = %s\nkind = %s\n", f->name,
           vendor_text(f->vendor), f->vendor_name, f->platform, f->driver, cleat_device_kind_text(f->kind));
    if (f->pci_bus >= 0)
        printf("pci = %04x:%02x:%02x.%x\n", (unsigned)f->pci_domain, (unsigned)f->pci_bus, (unsigned)f->pci_device,
               (unsigned)f->pci_function);
    print_bytes("memory_total", f->memory_total);
    print_bytes("memory_free", f->memory_free);
    printf("memory_source = %s\n", f->memory_source);
    print_bytes("max_allocation", f->max_allocation);
    printf("alignment = %lld\n", (long long)f->alignment);
    print_bytes("local_memory", f->local_memory);
    printf("max_work_group = %d\ncompute_units = %d\nsub_group = %d\n", (int)f->max_work_group, (int)f->compute_units,
           (int)f->sub_group);
    printf("unified_memory = %s\nhalf_extension = %s\ndouble_extension = %s\n", yes(f->unified_memory),
           yes(f->half_extension), yes(f->double_extension));
    printf("matrix_unit = %s\nmatrix_bf16 = %s\n", cleat_matrix_unit_text(f->matrix_unit), yes(f->matrix_bf16));
    printf("shape = %s, groups of %d, %d lanes\n", cleat_device_kind_text(f->kind), (int)f->work_group,
           (int)f->vector_width);
    cleat_device_close(device);
    return 0;
}

static int print_rates(const char *selector) {
    cleat_device *device = NULL;
    cleat_rates rates = {0};
    cleat_error error = {0};
    cleat_status status = cleat_device_open(selector, &device, &error);
    if (!status) status = cleat_rates_remeasure(device, &rates, &error);
    if (!status) {
        printf("flops = %.6g\n", rates.flops);
        if (rates.matrix_flops > 0) printf("matrix_flops = %.6g\n", rates.matrix_flops);
        printf("bytes = %.6g\nlaunch_seconds = %.6g\n", rates.bytes, rates.launch_seconds);
    }
    cleat_device_close(device);
    return cli_finish(status, &error);
}

/* All lines go to stderr: if the process crashes, the last ones name the kernel that was being built. */
static void print_log(void *user, cleat_log_level level, const char *text) {
    (void)user, (void)level;
    fprintf(stderr, "%s\n", text);
}

/* The reference training of a model. */
static int print_check(const char *model, const char *precision, const char *selector) {
    cleat_reference_result result = {.comparisons = 0};
    cleat_device *device = NULL;
    cleat_error error = {0};
    cleat_precision value = CLEAT_PRECISION_AUTO;
    cleat_set_log(print_log, NULL, CLEAT_LOG_DEBUG);
    if (cli_precision(&cli_passport, precision, &value) != 0) return EXIT_USAGE;
    cleat_status status = cleat_device_open(selector, &device, &error);
    if (!status) status = cleat_verify_reference(device, model, value, &result, &error);
    cleat_device_close(device);
    if (!status && result.comparisons)
        printf("ok, worst at %.2g of its limit, %zu comparisons, %d sets of kernels\n", result.worst,
               result.comparisons, result.kernel_sets);
    else if (!status)
        printf("skipped, the device has too little memory for it\n");
    return cli_finish(status, &error);
}

/* Prints an answer as soon as it is known: the process may be out of time before the next one. */
static void print_answer(void *user, const cleat_tune_node *node) {
    const cleat_tune_candidate *chosen = &node->candidates[node->chosen], *usual = &node->candidates[0];
    (void)user;
    if (!node->measured || strlen(node->key) >= PASSPORT_VALUE) return;
    printf("%s = %s", node->key, chosen->variant);
    if (node->chosen != 0 && usual->seconds > 0 && chosen->seconds > 0)
        printf(" %.3g %s", usual->seconds / chosen->seconds, usual->variant);
    printf("\n");
    fflush(stdout);
}

static int print_tune(const char *model, const char *selector, double seconds) {
    static const char *const keys[] = {"model.type", "train.precision", "run.device"};
    cleat_tune_report report = {.count = 0};
    cleat_profile *profile = NULL;
    cleat_error error = {0};
    const cleat_tune_options options = {.seconds = seconds, .node = print_answer};
    const char *const values[] = {model, "f32", selector};
    char assignment[128];
    cleat_status status = cleat_profile_create(&profile, &error);
    for (int i = 0; i < 3 && !status; ++i) {
        snprintf(assignment, sizeof assignment, "%s=%s", keys[i], values[i]);
        status = cleat_profile_set(profile, assignment, &error);
    }
    if (!status) status = cleat_tune(profile, &options, &report, &error);
    cleat_tune_free(&report);
    cleat_profile_destroy(profile);
    return cli_finish(status, &error);
}

int passport_part(const cli_command *command, const char *name, const char *device, double seconds) {
    char kind[16] = "", model[64] = "", precision[16] = "";
    const int words = sscanf(name, "%15[^:]:%63[^:]:%15s", kind, model, precision);
    if (words == 1 && strcmp(kind, "device") == 0) return print_device(device);
    if (words == 1 && strcmp(kind, "rates") == 0) return print_rates(device);
    if (words == 3 && strcmp(kind, "check") == 0) return print_check(model, precision, device);
    if (words == 2 && strcmp(kind, "tune") == 0) return print_tune(model, device, seconds);
    return cli_usage(command, "--part %s: must be device, rates, check:MODEL:PRECISION or tune:MODEL", name);
}

/* Detection without running a kernel: what is listed, and which installed card a run on the CPU does not use,
 * and why. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "doctor/doctor.h"
#include "machine.h"
#include "platform/processes.h"

#define POCL_CONF "platform=Portable Computing Language\nvendor=GenuineIntel\ndevice=cpu-skylake\ntype=cpu\n"

static void pocl(void) {
    machine_driver("pocl", "libpocl.so.2", POCL_CONF);
}

static void amd_card(void) {
    pocl();
    machine_card("0000:03:00.0", "0x030000", "0x1002", "0x744c", "amdgpu", "renderD128");
}

/* Graphics without an OpenCL driver: a management chip, a virtual machine's display; an Intel NPU. */
static void displays_only(void) {
    pocl();
    machine_card("0000:6a:00.0", "0x030000", "0x1a03", "0x2000", "ast", NULL);
    machine_card("0000:00:01.0", "0x030000", "0x1234", "0x1111", "bochs-drm", NULL);
    machine_card("0000:00:02.0", "0x038000", "0x1af4", "0x1050", "virtio-pci", NULL);
    machine_card("0000:6b:00.0", "0x120000", "0x8086", "0x643e", "intel_vpu", NULL);
}

static void given_to_a_guest(void) {
    pocl();
    machine_card("0000:00:04.0", "0x030000", "0x10de", "0x1eb8", "vfio-pci", NULL);
}

static void no_kernel_driver(void) {
    pocl();
    machine_card("0000:00:04.0", "0x030200", "0x10de", "0x1eb8", NULL, NULL);
}

static void instinct(void) {
    pocl();
    machine_card("0000:83:00.0", "0x120000", "0x1002", "0x740f", NULL, NULL);
}

static void library_gone(void) {
    amd_card();
    tree_put_text("/dev/kfd", "");
    machine_icd("amdocl64", "/opt/rocm/lib/libamdocl64-gone.so\n");
}

static void rusticl_not_enabled(void) {
    amd_card();
    machine_driver("rusticl", "libRusticlOpenCL.so.1", "platform=rusticl\n");
}

static void clover(void) {
    amd_card();
    machine_driver("mesa", "libMesaOpenCL.so.1", "platform=Clover\n");
}

/* A Kaggle container with a T4 in which NVIDIA's library is not registered. */
static void kaggle(void) {
    pocl();
    tree_put_text("/.dockerenv", "");
    machine_nvidia("0000:00:04.0", 0, "Tesla T4");
    tree_put_text("/usr/lib/x86_64-linux-gnu/libnvidia-opencl.so.1", "");
}

static void laptop(void) {
    pocl();
    machine_card("0000:00:02.0", "0x030000", "0x8086", "0x9a49", "i915", "renderD128");
    machine_card("0000:01:00.0", "0x030000", "0x10de", "0x1eb8", "nouveau", "renderD129");
}

static void wsl(void) {
    pocl();
    tree_put_text("/dev/dxg", "");
}

/* --- the card that a run on the CPU does not use ----------------------------------------------------------------- */

static void unused_cards_are_named(void **state) {
    static const struct {
        void (*make)(void);
        const char *card, *reason; /* NULL: no unused card */
    } machines[] = {{pocl, NULL, NULL},
                    {displays_only, NULL, NULL},
                    {given_to_a_guest, NULL, NULL},
                    {no_kernel_driver, "NVIDIA ", "No kernel driver is bound to the card"},
                    {instinct, "AMD ", "amdgpu is not loaded"},
                    {amd_card, "AMD ", "No OpenCL driver for AMD cards is registered"},
                    {library_gone, "AMD ", "libamdocl64-gone.so: cannot open shared object file"},
                    {rusticl_not_enabled, "AMD ", "RUSTICL_ENABLE is not set"},
                    {clover, "AMD ", "platform 'Clover' lists no device"},
                    {kaggle, "NVIDIA Tesla T4", "is present, but no .icd file names it"},
                    {laptop, "NVIDIA ", "nouveau"},
                    {wsl, "a card of Windows (WSL)", "/dev/dxg"}};
    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; ++i) {
        char text[CLEAT_UNUSED_CARD] = "";
        const cleat_doctor_request request = {.root = tree_root};
        machine_create();
        machines[i].make();
        bool found = cleat_unused_card(&request, text, sizeof text);
        machine_remove();
        if (found != (machines[i].card != NULL)) fail_msg("machine %zu: '%s'", i, text);
        if (!found) continue;
        if (strncmp(text, machines[i].card, strlen(machines[i].card)) != 0 || !strstr(text, machines[i].reason))
            fail_msg("machine %zu: '%s'", i, text);
        if (strchr(text, '\n')) fail_msg("machine %zu: more than one line: '%s'", i, text);
    }
}

static void other_cards_are_counted(void **state) {
    char text[CLEAT_UNUSED_CARD] = "";
    const cleat_doctor_request request = {.root = tree_root};
    (void)state;
    machine_create();
    laptop();
    assert_true(cleat_unused_card(&request, text, sizeof text));
    machine_remove();
    if (!strstr(text, " (and 1 more) is installed")) fail_msg("'%s'", text);
}

/* --- listing without kernels ----------------------------------------------------------------------------------- */

static void listing_runs_no_kernel(void **state) {
    cleat_doctor_report *report = NULL;
    (void)state;
    machine_create();
    amd_card();
    machine_driver("pocl", "libpocl.so.2", POCL_CONF "fault=crash-kernel\n");
    const cleat_doctor_request request = {.root = tree_root, .list_only = true, .seconds = 60};
    assert_int_equal(cleat_doctor_run(&request, &report, NULL), CLEAT_OK);
    assert_true(report->usable);
    assert_string_equal(report->device.name, "cpu-skylake");
    assert_non_null(cleat_doctor_find(report, "amd-icd-missing"));
    for (size_t s = 0; s < report->count; ++s) {
        assert_string_not_equal(report->sections[s].name, "host");
        assert_string_not_equal(report->sections[s].name, "device");
    }
    cleat_doctor_free(report);
    machine_remove();
}

static void the_variable_names_the_root(void **state) {
    cleat_doctor_report *report = NULL;
    (void)state;
    machine_create();
    amd_card();
    setenv("CLEAT_SYSTEM_ROOT", tree_root, 1);
    const cleat_doctor_request request = {.list_only = true, .seconds = 60};
    assert_int_equal(cleat_doctor_run(&request, &report, NULL), CLEAT_OK);
    unsetenv("CLEAT_SYSTEM_ROOT");
    assert_non_null(cleat_doctor_find(report, "amd-icd-missing"));
    cleat_doctor_free(report);
    machine_remove();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        /* first: they fork, and the others use OpenCL in this process */
        cmocka_unit_test(listing_runs_no_kernel),
        cmocka_unit_test(the_variable_names_the_root),
        cmocka_unit_test(unused_cards_are_named),
        cmocka_unit_test(other_cards_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

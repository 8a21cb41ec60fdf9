/* Metrics of NVIDIA's cards, from a stand-in for NVML that the tests build. */
/* ctest: quick no-memcheck */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tree_routes.h"

#include "platform/processes.h"
#include "platform/system.h"

#include <math.h>

static double values[CLEAT_ROUTE_FIGURES];

static void be(const char *kind) {
    setenv("CLEAT_STUB_NVML", kind, 1);
    unsetenv("CLEAT_STUB_THROTTLE");
}

static void be_process(const char *namespace) {
    tree_link("/proc/self/ns/pid", namespace);
    tree_put("/proc/self/stat", "4242 (cleat) R 1 2 3\n");
}

static void test_good(void **state) {
    (void)state;
    be("good");
    be_process("pid:[4026531836]");
    cleat_routes *routes = tree_open(tree_card(CLEAT_VENDOR_NVIDIA));
    be("moved");
    tree_read(routes, 102, values);
    tree_expect(values, CLEAT_FIGURE_BUSY_DEVICE, 0.93);
    tree_expect(values, CLEAT_FIGURE_MEMORY_DEVICE, 4.5e9);
    tree_expect(values, CLEAT_FIGURE_MEMORY_DEVICE_TOTAL, 16e9);
    tree_expect(values, CLEAT_FIGURE_MEMORY_OWN, 734003200);
    tree_expect(values, CLEAT_FIGURE_POWER, 250);
    tree_expect(values, CLEAT_FIGURE_ENERGY, 300.5);
    tree_expect(values, CLEAT_FIGURE_TEMPERATURE, 71);
    tree_expect(values, CLEAT_FIGURE_CLOCK, 1590);
    tree_expect(values, CLEAT_FIGURE_THROTTLED, 0);
    tree_expect_unknown(values, CLEAT_FIGURE_BUSY_OWN);
    tree_expect_source(routes, CLEAT_FIGURE_ENERGY, "nvmlDeviceGetTotalEnergyConsumption");
    tree_expect_source(routes, CLEAT_FIGURE_MEMORY_DEVICE, "nvmlDeviceGetMemoryInfo_v2");
    /* The card falls off the bus: all values are unknown, none is 0. */
    be("lost");
    tree_read(routes, 103, values);
    tree_expect_nothing(values);
    cleat_routes_close(routes);
}

static void test_throttling(void **state) {
    static const struct {
        const char *reasons;
        int bits;
    } rows[] = {{"0x0", 0},
                {"0x1", 0}, /* idle */
                {"0x2", 0}, /* clocks set by a user */
                {"0x100", 0},
                {"0x4", CLEAT_THROTTLE_POWER},
                {"0x88", CLEAT_THROTTLE_POWER},
                {"0x20", CLEAT_THROTTLE_THERMAL},
                {"0x48", CLEAT_THROTTLE_THERMAL},
                {"0x8", CLEAT_THROTTLE_OTHER},
                {"0x24", CLEAT_THROTTLE_THERMAL + CLEAT_THROTTLE_POWER}};
    (void)state;
    be("good");
    cleat_routes *routes = tree_open(tree_card(CLEAT_VENDOR_NVIDIA));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        setenv("CLEAT_STUB_THROTTLE", rows[i].reasons, 1);
        tree_read(routes, 101 + (double)i, values);
        tree_expect(values, CLEAT_FIGURE_THROTTLE_REASON, rows[i].bits);
        tree_expect(values, CLEAT_FIGURE_THROTTLED, rows[i].bits != 0);
    }
    cleat_routes_close(routes);
}

/* Cards before Volta have no energy counter: power is integrated, which the source states. */
static void test_old_card(void **state) {
    (void)state;
    be("old");
    cleat_routes *routes = tree_open(tree_card(CLEAT_VENDOR_NVIDIA));
    tree_expect_source(routes, CLEAT_FIGURE_ENERGY, "nvmlDeviceGetPowerUsage, integrated over the reads");
    tree_expect_source(routes, CLEAT_FIGURE_MEMORY_DEVICE, "nvmlDeviceGetMemoryInfo");
    tree_read(routes, 110, values);
    tree_expect(values, CLEAT_FIGURE_ENERGY, 1505);
    tree_expect(values, CLEAT_FIGURE_MEMORY_DEVICE, 5e9);
    cleat_routes_close(routes);
}

/* A library that does not match the driver, a card without sensors, another card, another vendor's card. */
static void test_nothing(void **state) {
    (void)state;
    be("mismatch");
    cleat_routes *routes = tree_open(tree_card(CLEAT_VENDOR_NVIDIA));
    tree_read(routes, 101, values);
    tree_expect_nothing(values);
    cleat_routes_close(routes);
    be("none");
    routes = tree_open(tree_card(CLEAT_VENDOR_NVIDIA));
    tree_read(routes, 101, values);
    tree_expect_nothing(values);
    for (int i = 0; i < CLEAT_ROUTE_FIGURES; ++i)
        if (i != CLEAT_FIGURE_HOST_CPU) assert_null(cleat_routes_source(routes, (cleat_figure)i));
    cleat_routes_close(routes);
    be("good");
    cleat_device_facts other = tree_card(CLEAT_VENDOR_NVIDIA);
    other.pci_bus = 0x0c;
    routes = tree_open(other);
    tree_read(routes, 101, values);
    tree_expect_nothing(values);
    cleat_routes_close(routes);
    routes = tree_open(tree_card(CLEAT_VENDOR_AMD));
    tree_read(routes, 101, values);
    tree_expect_nothing(values);
    cleat_routes_close(routes);
}

static void test_impossible(void **state) {
    (void)state;
    be("impossible");
    cleat_routes *routes = tree_open(tree_card(CLEAT_VENDOR_NVIDIA));
    tree_read(routes, 101, values);
    tree_expect_unknown(values, CLEAT_FIGURE_BUSY_DEVICE);
    tree_expect_unknown(values, CLEAT_FIGURE_MEMORY_DEVICE);
    tree_expect_unknown(values, CLEAT_FIGURE_POWER);
    tree_expect_unknown(values, CLEAT_FIGURE_TEMPERATURE);
    tree_expect_unknown(values, CLEAT_FIGURE_CLOCK);
    cleat_routes_close(routes);
}

/* In a container the driver reports process ids of the host; Windows does not report a process's memory. */
static void test_own_memory(void **state) {
    (void)state;
    be("good");
    be_process("pid:[4026533000]");
    cleat_routes *routes = tree_open(tree_card(CLEAT_VENDOR_NVIDIA));
    assert_null(cleat_routes_source(routes, CLEAT_FIGURE_MEMORY_OWN));
    tree_read(routes, 101, values);
    tree_expect_unknown(values, CLEAT_FIGURE_MEMORY_OWN);
    cleat_routes_close(routes);
    tree_drop("/proc/self/ns/pid");
    be("windows");
    be_process("pid:[4026531836]");
    routes = tree_open(tree_card(CLEAT_VENDOR_NVIDIA));
    tree_read(routes, 101, values);
    tree_expect_unknown(values, CLEAT_FIGURE_MEMORY_OWN);
    cleat_routes_close(routes);
}

/* Skipped if another library is found first: the ctest test sets LD_LIBRARY_PATH. */
static bool is_stub(void) {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    Dl_info info = {0};
    void *function = library ? dlsym(library, "nvmlInit_v2") : NULL;
    bool found = function && dladdr(function, &info) && strstr(info.dli_fname, CLEAT_STUB_FOLDER);
    if (library) dlclose(library);
    return found;
}

int main(void) {
#define TREE_TEST(test) cmocka_unit_test_setup_teardown(test, tree_make, tree_remove)
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_good),    TREE_TEST(test_throttling), TREE_TEST(test_old_card),
        TREE_TEST(test_nothing), TREE_TEST(test_impossible), TREE_TEST(test_own_memory),
    };
    if (!is_stub()) return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

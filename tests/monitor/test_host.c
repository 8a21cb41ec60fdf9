/* The host's metrics, from files in trees that the test creates, and from this process. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/cgroup.h"
#include "core/clock.h"
#include "core/cpus.h"
#include "platform/processes.h"
#include "tree_routes.h"

#include <math.h>

#define MIB (1024.0 * 1024)

static double values[CLEAT_ROUTE_FIGURES];

static void test_every_figure_is_described(void **state) {
    (void)state;
    for (int i = 0; i < CLEAT_ROUTE_FIGURES; ++i) {
        const cleat_figure_info *info = cleat_figure_describe((cleat_figure)i);
        assert_non_null(info->name);
        assert_non_null(info->unit);
        assert_true(strlen(info->meaning) > 10);
        for (int j = 0; j < i; ++j) assert_string_not_equal(info->name, cleat_figure_describe((cleat_figure)j)->name);
    }
}

/* An empty tree: nothing is known about a card, and about the host only what system calls return. */
static void test_nothing(void **state) {
    (void)state;
    for (int vendor = CLEAT_VENDOR_UNKNOWN; vendor <= CLEAT_VENDOR_OCLGRIND; ++vendor) {
        if (vendor == CLEAT_VENDOR_NVIDIA) continue; /* a library, not a file: test_nvml.c */
        cleat_routes *routes = tree_open(tree_card((cleat_vendor)vendor));
        tree_read(routes, 101, values);
        tree_expect_nothing(values);
        for (int i = 0; i < CLEAT_ROUTE_FIGURES; ++i)
            if (i != CLEAT_FIGURE_HOST_CPU) assert_null(cleat_routes_source(routes, (cleat_figure)i));
        cleat_routes_close(routes);
    }
    cleat_routes *routes = tree_open(tree_cpu());
    tree_read(routes, 101, values);
    values[CLEAT_FIGURE_BUSY_OWN] = NAN; /* getrusage as well */
    tree_expect_nothing(values);
    cleat_routes_close(routes);
}

static void test_refused(void **state) {
    char root[400];
    cleat_routes *routes = NULL;
    cleat_error error = {0};
    const cleat_device_facts facts = tree_cpu();
    (void)state;
    memset(root, '/', sizeof root - 1);
    root[sizeof root - 1] = 0;
    assert_int_equal(cleat_routes_open(&facts, root, &routes, &error), CLEAT_ERR_ARGUMENT);
    assert_null(routes);
    cleat_routes_close(NULL);
}

static void put_memory(void) {
    tree_put("/proc/meminfo", "MemTotal:   4194304 kB\nMemFree:  1 kB\nMemAvailable:   1048576 kB\n");
    tree_put("/proc/self/status",
             "Name:\tcleat\nVmHWM:\t  999999 kB\nVmRSS:\t   20480 kB\nCpus_allowed_list:\t1-2,5\n");
}

static void test_memory(void **state) {
    (void)state;
    put_memory();
    cleat_routes *routes = tree_open(tree_cpu());
    tree_read(routes, 101, values);
    tree_expect(values, CLEAT_FIGURE_MEMORY_DEVICE_TOTAL, 4096 * MIB);
    tree_expect(values, CLEAT_FIGURE_MEMORY_DEVICE, 3072 * MIB);
    tree_expect(values, CLEAT_FIGURE_MEMORY_OWN, 20 * MIB);
    tree_expect(values, CLEAT_FIGURE_HOST_MEMORY, 20 * MIB);
    tree_expect(values, CLEAT_FIGURE_HOST_MEMORY_AVAILABLE, 1024 * MIB);
    tree_expect_unknown(values, CLEAT_FIGURE_HOST_MEMORY_LIMIT); /* no limit is not a limit of 0 */
    assert_null(cleat_routes_source(routes, CLEAT_FIGURE_HOST_MEMORY_LIMIT));
    cleat_routes_close(routes);
    /* A card has separate memory. */
    routes = tree_open(tree_card(CLEAT_VENDOR_UNKNOWN));
    tree_read(routes, 101, values);
    tree_expect_unknown(values, CLEAT_FIGURE_MEMORY_DEVICE);
    tree_expect_unknown(values, CLEAT_FIGURE_MEMORY_OWN);
    tree_expect_unknown(values, CLEAT_FIGURE_BUSY_OWN);
    tree_expect(values, CLEAT_FIGURE_HOST_MEMORY, 20 * MIB);
    cleat_routes_close(routes);
}

static void test_cgroup(const char *version) {
    cleat_routes *routes = tree_open(tree_cpu());
    tree_read(routes, 101, values);
    tree_expect(values, CLEAT_FIGURE_HOST_MEMORY_LIMIT, 600 * MIB);
    tree_expect(values, CLEAT_FIGURE_MEMORY_DEVICE_TOTAL, 600 * MIB);
    tree_expect(values, CLEAT_FIGURE_MEMORY_DEVICE, 100 * MIB);
    tree_expect(values, CLEAT_FIGURE_HOST_MEMORY_AVAILABLE, 500 * MIB);
    tree_expect_source(routes, CLEAT_FIGURE_MEMORY_DEVICE, version);
    tree_expect_source(routes, CLEAT_FIGURE_HOST_MEMORY_AVAILABLE, version);
    cleat_routes_close(routes);
}

static void test_cgroup_v2(void **state) {
    (void)state;
    put_memory();
    tree_put("/proc/self/cgroup", "0::/job\n");
    tree_put("/sys/fs/cgroup/job/memory.max", "629145600\n");
    tree_put("/sys/fs/cgroup/job/memory.current", "104857600\n");
    test_cgroup("cgroup v2");
}

static void test_cgroup_v1(void **state) {
    (void)state;
    put_memory();
    tree_put("/proc/self/cgroup", "5:cpu,memory:/box\n");
    tree_put("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "629145600\n");
    tree_put("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "104857600\n");
    test_cgroup("cgroup v1");
}

static void put_quota(int periods, int throttled) {
    tree_put("/proc/self/cgroup", "0::/job\n");
    tree_put("/sys/fs/cgroup/job/cpu.max", "50000 100000\n");
    tree_put("/sys/fs/cgroup/job/cpu.stat", "usage_usec 5\nnr_periods %d\nnr_throttled %d\n", periods, throttled);
}

static void test_quota(void **state) {
    (void)state;
    put_quota(1000, 10);
    cleat_routes *routes = tree_open(tree_cpu());
    tree_expect_source(routes, CLEAT_FIGURE_BUSY_OWN, "0.5 CPUs (cgroup v2)");
    put_quota(1010, 14);
    tree_read(routes, 101, values);
    tree_expect(values, CLEAT_FIGURE_CPU_QUOTA_THROTTLED, 0.4);
    tree_read(routes, 102, values); /* no period passed, so no share is known */
    tree_expect_unknown(values, CLEAT_FIGURE_CPU_QUOTA_THROTTLED);
    put_quota(5, 1);
    tree_read(routes, 103, values); /* counters of another group */
    tree_expect_unknown(values, CLEAT_FIGURE_CPU_QUOTA_THROTTLED);
    cleat_routes_close(routes);
}

/* CPUs 1, 2 and 5 are allowed; other processes use 0 and 3. */
static void put_ticks(int busy, int idle) {
    static int others = 80000;
    others += 1000;
    tree_put("/proc/stat",
             "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 %d 0 0 0 0 0 0 0 0 0\ncpu1 %d 0 0 %d 0 0 0 0 0 0\n"
             "cpu2 0 %d 0 %d 0 0 0 0 0 0\ncpu3 %d 0 0 0 0 0 0 0 0 0\ncpu5 0 0 %d 0 %d 0 0 0 0 0\nintr 5\n",
             others, busy, idle, busy, idle, others, busy, idle);
}

static void test_host_busy(void **state) {
    (void)state;
    put_memory();
    put_ticks(100, 500);
    cleat_routes *routes = tree_open(tree_cpu());
    put_ticks(130, 570);
    tree_read(routes, 101, values);
    tree_expect(values, CLEAT_FIGURE_BUSY_DEVICE, 0.3);
    put_ticks(100, 600);
    tree_read(routes, 102, values); /* backwards */
    tree_expect_unknown(values, CLEAT_FIGURE_BUSY_DEVICE);
    put_ticks(150, 650);
    tree_read(routes, 103, values);
    tree_expect(values, CLEAT_FIGURE_BUSY_DEVICE, 0.5);
    tree_drop("/proc/stat");
    tree_read(routes, 104, values);
    tree_expect_unknown(values, CLEAT_FIGURE_BUSY_DEVICE);
    cleat_routes_close(routes);
    tree_put("/proc/stat", "cpu 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\n"); /* a sandbox */
    routes = tree_open(tree_cpu());
    assert_null(cleat_routes_source(routes, CLEAT_FIGURE_BUSY_DEVICE));
    cleat_routes_close(routes);
}

static void put_energy(double joules0, double joules1) {
    tree_put("/sys/class/powercap/intel-rapl:0/energy_uj", "%.0f\n", 1e6 * joules0);
    tree_put("/sys/class/powercap/intel-rapl:1/energy_uj", "%.0f\n", 1e6 * joules1);
}

static void test_energy(void **state) {
    (void)state;
    for (int i = 0; i < 3; ++i) {
        char path[64];
        snprintf(path, sizeof path, "/sys/class/powercap/intel-rapl:%d/name", i);
        tree_put(path, i < 2 ? "package-%d\n" : "psys\n", i);
        snprintf(path, sizeof path, "/sys/class/powercap/intel-rapl:%d/max_energy_range_uj", i);
        tree_put(path, "262143000000\n");
    }
    put_energy(1000, 262000);
    tree_put("/sys/class/powercap/intel-rapl:2/energy_uj", "77\n");
    cleat_routes *routes = tree_open(tree_cpu());
    tree_expect_source(routes, CLEAT_FIGURE_ENERGY, "2 processors");
    tree_expect_source(routes, CLEAT_FIGURE_POWER, "difference per second");
    put_energy(1040, 262100);
    tree_read(routes, 102, values);
    tree_expect(values, CLEAT_FIGURE_ENERGY, 140);
    tree_expect(values, CLEAT_FIGURE_POWER, 70);
    put_energy(1050, 7); /* the second counter wrapped: 262143 is 0 */
    tree_read(routes, 104, values);
    tree_expect(values, CLEAT_FIGURE_ENERGY, 200);
    tree_expect(values, CLEAT_FIGURE_POWER, 30);
    tree_drop("/sys/class/powercap/intel-rapl:1/energy_uj");
    tree_read(routes, 105, values);
    tree_expect_unknown(values, CLEAT_FIGURE_ENERGY);
    tree_expect_unknown(values, CLEAT_FIGURE_POWER);
    cleat_routes_close(routes);
    /* Readable by root only: a partial sum is not reported. */
    routes = tree_open(tree_cpu());
    assert_null(cleat_routes_source(routes, CLEAT_FIGURE_ENERGY));
    assert_null(cleat_routes_source(routes, CLEAT_FIGURE_POWER));
    cleat_routes_close(routes);
}

static void test_sensors(void **state) {
    const char *throttle = "/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count";
    (void)state;
    tree_put("/sys/class/hwmon/hwmon0/name", "nvme\n");
    tree_put("/sys/class/hwmon/hwmon0/temp1_input", "33000\n");
    tree_put("/sys/class/hwmon/hwmon1/name", "k10temp\n");
    tree_put("/sys/class/hwmon/hwmon1/temp1_input", "71250\n");
    tree_put(throttle, "4\n");
    cleat_routes *routes = tree_open(tree_cpu());
    tree_read(routes, 101, values);
    tree_expect(values, CLEAT_FIGURE_TEMPERATURE, 71.25);
    tree_expect(values, CLEAT_FIGURE_THROTTLED, 0);
    tree_put(throttle, "5\n");
    tree_put("/sys/class/hwmon/hwmon1/temp1_input", "-273000\n");
    tree_read(routes, 102, values);
    tree_expect(values, CLEAT_FIGURE_THROTTLED, 1);
    tree_expect(values, CLEAT_FIGURE_THROTTLE_REASON, CLEAT_THROTTLE_THERMAL);
    tree_expect_unknown(values, CLEAT_FIGURE_TEMPERATURE);
    cleat_routes_close(routes);
}

static void test_distrust(void **state) {
    (void)state;
    put_memory();
    cleat_routes *routes = tree_open(tree_cpu());
    cleat_routes_distrust(routes, CLEAT_FIGURE_MEMORY_OWN);
    tree_read(routes, 101, values);
    tree_expect_unknown(values, CLEAT_FIGURE_MEMORY_OWN);
    tree_expect(values, CLEAT_FIGURE_HOST_MEMORY, 20 * MIB);
    cleat_routes_close(routes);
}

static double cpu_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* A loop of 0.3 s on this machine: its own load is within 5 points of the test's measurement. */
static void test_own_busy(void **state) {
    cleat_routes *routes = NULL;
    const cleat_device_facts facts = tree_cpu();
    volatile double sum = 0;
    char source[32];
    double quota = cleat_cpus();
    (void)state;
    cleat_cgroup_cpus("", &quota, source, sizeof source);
    assert_int_equal(cleat_routes_open(&facts, "", &routes, NULL), CLEAT_OK);
    cleat_routes_read(routes, values);
    const double start = cleat_seconds(), used = cpu_seconds();
    while (cleat_seconds() - start < 0.3)
        for (int i = 0; i < 1000; ++i) sum = sum + i;
    const double cpus = (cpu_seconds() - used) / (cleat_seconds() - start);
    cleat_routes_read(routes, values);
    assert_true(fabs(values[CLEAT_FIGURE_HOST_CPU] - cpus) < 0.05);
    assert_true(fabs(values[CLEAT_FIGURE_BUSY_OWN] - cpus / fmin(quota, cleat_cpus())) < 0.05);
    assert_true(values[CLEAT_FIGURE_BUSY_OWN] > 0);
    assert_true(values[CLEAT_FIGURE_HOST_MEMORY] > 100e3);
    cleat_routes_close(routes);
}

static void test_cost(void **state) {
    enum { READS = 200 };
    cleat_routes *routes = NULL;
    const cleat_device_facts facts = tree_cpu();
    (void)state;
    assert_int_equal(cleat_routes_open(&facts, "", &routes, NULL), CLEAT_OK);
    const double start = cleat_seconds();
    for (int i = 0; i < READS; ++i) cleat_routes_read(routes, values);
    print_message("a read takes %.1f us\n", 1e6 * (cleat_seconds() - start) / READS);
    for (int i = 0; i < CLEAT_ROUTE_FIGURES; ++i) {
        const char *source = cleat_routes_source(routes, (cleat_figure)i);
        print_message("  %-22s %14.6g %-8s %s\n", cleat_figure_describe((cleat_figure)i)->name, values[i],
                      cleat_figure_describe((cleat_figure)i)->unit, source ? source : "-");
    }
    cleat_routes_close(routes);
}

int main(void) {
#define TREE_TEST(test) cmocka_unit_test_setup_teardown(test, tree_make, tree_remove)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_figure_is_described),
        TREE_TEST(test_nothing),
        TREE_TEST(test_refused),
        TREE_TEST(test_memory),
        TREE_TEST(test_cgroup_v2),
        TREE_TEST(test_cgroup_v1),
        TREE_TEST(test_quota),
        TREE_TEST(test_host_busy),
        TREE_TEST(test_energy),
        TREE_TEST(test_sensors),
        TREE_TEST(test_distrust),
        cmocka_unit_test(test_own_busy),
        cmocka_unit_test(test_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

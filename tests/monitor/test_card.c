/* Metrics of AMD's and Intel's cards, from trees that imitate the drivers' files and their faults. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tree_routes.h"

#include <math.h>

#define MIB (1024.0 * 1024)
#define CARD "/sys/bus/pci/devices/0000:0b:00.0/"
#define FDINFO "/proc/self/fdinfo/"

static double values[CLEAT_ROUTE_FIGURES];

/* --- amdgpu --- */

static void put_amdgpu(void) {
    tree_put(CARD "mem_info_vram_total", "17163091968\n");
    tree_put(CARD "mem_info_vram_used", "163091968\n");
    tree_put(CARD "mem_info_gtt_used", "33554432\n");
    tree_put(CARD "gpu_busy_percent", "87\n");
    tree_put(CARD "hwmon/hwmon3/name", "amdgpu\n");
    tree_put(CARD "hwmon/hwmon3/power1_average", "211000000\n");
    tree_put(CARD "hwmon/hwmon3/temp1_input", "64000\n");
    tree_put(CARD "hwmon/hwmon3/freq1_input", "2450000000\n");
}

static void test_amdgpu(void **state) {
    (void)state;
    put_amdgpu();
    cleat_routes *routes = tree_open(tree_card(CLEAT_VENDOR_AMD));
    tree_read(routes, 102, values);
    tree_expect(values, CLEAT_FIGURE_BUSY_DEVICE, 0.87);
    tree_expect(values, CLEAT_FIGURE_MEMORY_DEVICE, 163091968);
    tree_expect(values, CLEAT_FIGURE_MEMORY_DEVICE_TOTAL, 17163091968.0);
    tree_expect(values, CLEAT_FIGURE_MEMORY_GTT, 33554432);
    tree_expect(values, CLEAT_FIGURE_POWER, 211);
    tree_expect(values, CLEAT_FIGURE_ENERGY, 422); /* no counter: integrated, which the source states */
    tree_expect(values, CLEAT_FIGURE_TEMPERATURE, 64);
    tree_expect(values, CLEAT_FIGURE_CLOCK, 2450);
    tree_expect_unknown(values, CLEAT_FIGURE_BUSY_OWN);
    tree_expect_unknown(values, CLEAT_FIGURE_MEMORY_OWN);
    tree_expect_unknown(values, CLEAT_FIGURE_THROTTLED);
    tree_expect_source(routes, CLEAT_FIGURE_BUSY_DEVICE, "amdgpu gpu_busy_percent");
    tree_expect_source(routes, CLEAT_FIGURE_POWER, "power1_average");
    tree_expect_source(routes, CLEAT_FIGURE_ENERGY, "power1_average, integrated over the reads");
    tree_put(CARD "hwmon/hwmon3/power1_average", "111000000\n");
    tree_read(routes, 104, values);
    tree_expect(values, CLEAT_FIGURE_ENERGY, 422 + 322);
    cleat_routes_close(routes);
}

/* gpu_busy_percent reads 100 while nothing runs: a better source replaces it. */
static void test_amdgpu_pegged(void **state) {
    (void)state;
    put_amdgpu();
    tree_put(CARD "gpu_busy_percent", "100\n");
    cleat_routes *routes = tree_open(tree_card(CLEAT_VENDOR_AMD));
    tree_read(routes, 101, values);
    tree_expect(values, CLEAT_FIGURE_BUSY_DEVICE, 1);
    cleat_routes_distrust(routes, CLEAT_FIGURE_BUSY_DEVICE);
    for (int i = 0; i < 3; ++i) {
        tree_read(routes, 102 + i, values);
        tree_expect_unknown(values, CLEAT_FIGURE_BUSY_DEVICE);
        tree_expect(values, CLEAT_FIGURE_POWER, 211);
    }
    cleat_routes_close(routes);
}

/* Files that exist but return an error are not sources. */
static void test_amdgpu_not_supported(void **state) {
    (void)state;
    put_amdgpu();
    tree_put_unreadable(CARD "gpu_busy_percent");
    tree_put_unreadable(CARD "hwmon/hwmon3/power1_average");
    tree_put_unreadable(CARD "hwmon/hwmon3/freq1_input");
    tree_put(CARD "hwmon/hwmon3/temp1_input", "\n");
    tree_put(CARD "mem_info_gtt_used", "n/a\n");
    cleat_routes *routes = tree_open(tree_card(CLEAT_VENDOR_AMD));
    tree_read(routes, 102, values);
    static const cleat_figure unknown[] = {CLEAT_FIGURE_BUSY_DEVICE, CLEAT_FIGURE_POWER,       CLEAT_FIGURE_ENERGY,
                                           CLEAT_FIGURE_CLOCK,       CLEAT_FIGURE_TEMPERATURE, CLEAT_FIGURE_MEMORY_GTT};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; ++i) {
        tree_expect_unknown(values, unknown[i]);
        assert_null(cleat_routes_source(routes, unknown[i]));
    }
    tree_expect(values, CLEAT_FIGURE_MEMORY_DEVICE, 163091968);
    cleat_routes_close(routes);
    tree_put(CARD "hwmon/hwmon3/power1_input", "50000000\n"); /* newer cards have this file instead */
    routes = tree_open(tree_card(CLEAT_VENDOR_AMD));
    tree_read(routes, 102, values);
    tree_expect(values, CLEAT_FIGURE_POWER, 50);
    tree_expect_source(routes, CLEAT_FIGURE_POWER, "power1_input");
    cleat_routes_close(routes);
}

/* Numbers that mean "unknown", from the start or later. */
static void test_amdgpu_impossible(void **state) {
    (void)state;
    put_amdgpu();
    cleat_routes *routes = tree_open(tree_card(CLEAT_VENDOR_AMD));
    tree_put(CARD "gpu_busy_percent", "65535\n");
    tree_put(CARD "mem_info_vram_used", "99163091968\n");
    tree_put(CARD "hwmon/hwmon3/power1_average", "0\n");
    tree_put(CARD "hwmon/hwmon3/temp1_input", "65535000\n");
    tree_put(CARD "hwmon/hwmon3/freq1_input", "-1\n");
    tree_read(routes, 102, values);
    tree_expect_unknown(values, CLEAT_FIGURE_BUSY_DEVICE);
    tree_expect_unknown(values, CLEAT_FIGURE_MEMORY_DEVICE);
    tree_expect_unknown(values, CLEAT_FIGURE_POWER);
    tree_expect_unknown(values, CLEAT_FIGURE_ENERGY);
    tree_expect_unknown(values, CLEAT_FIGURE_TEMPERATURE);
    tree_expect_unknown(values, CLEAT_FIGURE_CLOCK);
    put_amdgpu();
    tree_read(routes, 104, values); /* the gap is filled with the mean of its ends */
    tree_expect(values, CLEAT_FIGURE_ENERGY, 4 * 211);
    tree_expect(values, CLEAT_FIGURE_BUSY_DEVICE, 0.87);
    tree_put_unreadable(CARD "gpu_busy_percent"); /* EINVAL or EIO of a suspended card */
    tree_read(routes, 105, values);
    tree_expect_unknown(values, CLEAT_FIGURE_BUSY_DEVICE);
    cleat_routes_close(routes);
}

static void put_gpu_metrics(unsigned char content, uint64_t status) {
    unsigned char bytes[120] = {sizeof bytes, 0, 1, content};
    for (int i = 0; i < 8; ++i) bytes[112 + i] = (unsigned char)(status >> 8 * i);
    tree_put_bytes(CARD "gpu_metrics", bytes, sizeof bytes);
}

static void test_amdgpu_throttling(void **state) {
    (void)state;
    put_amdgpu();
    put_gpu_metrics(3, 0);
    cleat_routes *routes = tree_open(tree_card(CLEAT_VENDOR_AMD));
    tree_read(routes, 101, values);
    tree_expect(values, CLEAT_FIGURE_THROTTLED, 0);
    put_gpu_metrics(3, 1ULL << 36 | 1); /* hot spot, and package power */
    tree_read(routes, 102, values);
    tree_expect(values, CLEAT_FIGURE_THROTTLED, 1);
    tree_expect(values, CLEAT_FIGURE_THROTTLE_REASON, CLEAT_THROTTLE_THERMAL + CLEAT_THROTTLE_POWER);
    put_gpu_metrics(3, 1ULL << 57);
    tree_read(routes, 103, values);
    tree_expect(values, CLEAT_FIGURE_THROTTLE_REASON, CLEAT_THROTTLE_OTHER);
    put_gpu_metrics(3, UINT64_MAX);
    tree_read(routes, 104, values);
    tree_expect_unknown(values, CLEAT_FIGURE_THROTTLED);
    put_gpu_metrics(4, 0); /* a different layout */
    tree_read(routes, 105, values);
    tree_expect_unknown(values, CLEAT_FIGURE_THROTTLED);
    tree_expect_unknown(values, CLEAT_FIGURE_THROTTLE_REASON);
    cleat_routes_close(routes);
}

/* Processor graphics: the memory is the host's, whatever the driver reports as its own. */
static void test_amdgpu_unified(void **state) {
    cleat_device_facts facts = tree_card(CLEAT_VENDOR_AMD);
    (void)state;
    facts.unified_memory = true;
    put_amdgpu();
    tree_put("/proc/meminfo", "MemTotal:   4194304 kB\nMemAvailable:   1048576 kB\n");
    cleat_routes *routes = tree_open(facts);
    tree_read(routes, 101, values);
    tree_expect(values, CLEAT_FIGURE_MEMORY_DEVICE_TOTAL, 4096 * MIB);
    tree_expect(values, CLEAT_FIGURE_BUSY_DEVICE, 0.87);
    cleat_routes_close(routes);
}

static void put_amdgpu_client(const char *file, int id, const char *pci, const char *rest) {
    char path[128];
    snprintf(path, sizeof path, FDINFO "%s", file);
    tree_put(path, "pos:\t0\nflags:\t02100002\nmnt_id:\t26\ndrm-driver:\tamdgpu\ndrm-client-id:\t%d\ndrm-pdev:\t%s\n%s",
             id, pci, rest);
}

/* Two files of one client count once; files of other cards and other kinds are ignored. */
static void test_amdgpu_fdinfo(void **state) {
    (void)state;
    put_amdgpu();
    const char *before = "drm-memory-vram:\t2048 KiB\ndrm-memory-gtt: \t1024 KiB\ndrm-memory-cpu: \t9999 KiB\n"
                         "drm-engine-gfx:\t1000000000 ns\ndrm-engine-compute:\t5000000000 ns\n";
    const char *after = "drm-memory-vram:\t9 KiB\ndrm-resident-vram:\t4 MiB\ndrm-memory-gtt: \t512 KiB\n"
                        "drm-engine-gfx:\t1200000000 ns\ndrm-engine-compute:\t6500000000 ns\n";
    put_amdgpu_client("7", 31, "0000:0b:00.0", before);
    put_amdgpu_client("8", 31, "0000:0b:00.0", before);
    put_amdgpu_client("9", 5, "0000:03:00.0", "drm-memory-vram:\t77 KiB\ndrm-engine-gfx:\t1 ns\n");
    tree_link("/proc/self/fd/7", "/dev/dri/renderD128");
    tree_put(FDINFO "0", "pos:\t0\nflags:\t02\nmnt_id:\t26\n");
    put_amdgpu_client("4", 66, "0000:0b:00.0", before); /* not a DRM file: not read */
    tree_link("/proc/self/fd/4", "pipe:[123]");
    cleat_routes *routes = tree_open(tree_card(CLEAT_VENDOR_AMD));
    tree_expect_source(routes, CLEAT_FIGURE_BUSY_OWN, "amdgpu /proc/self/fdinfo");
    tree_expect_source(routes, CLEAT_FIGURE_MEMORY_GTT, "this process");
    tree_read(routes, 101, values);
    tree_expect(values, CLEAT_FIGURE_MEMORY_OWN, 2 * MIB);
    tree_expect(values, CLEAT_FIGURE_MEMORY_GTT, 1 * MIB);
    tree_expect(values, CLEAT_FIGURE_BUSY_OWN, 0);
    put_amdgpu_client("7", 31, "0000:0b:00.0", after);
    put_amdgpu_client("8", 31, "0000:0b:00.0", after);
    tree_read(routes, 103, values);
    tree_expect(values, CLEAT_FIGURE_MEMORY_OWN, 4 * MIB);
    tree_expect(values, CLEAT_FIGURE_BUSY_OWN, 0.75);
    put_amdgpu_client("7", 31, "0000:0b:00.0", before); /* backwards */
    put_amdgpu_client("8", 31, "0000:0b:00.0", before);
    tree_read(routes, 104, values);
    tree_expect_unknown(values, CLEAT_FIGURE_BUSY_OWN);
    put_amdgpu_client("7", 31, "0000:0b:00.0", after); /* 1.5 s of work in 1 s */
    put_amdgpu_client("8", 31, "0000:0b:00.0", after);
    tree_read(routes, 105, values);
    tree_expect_unknown(values, CLEAT_FIGURE_BUSY_OWN);
    /* ROCm's queues bypass the counters: no engine is named, which does not mean "idle". */
    put_amdgpu_client("7", 31, "0000:0b:00.0", "drm-memory-vram:\t2048 KiB\n");
    put_amdgpu_client("8", 31, "0000:0b:00.0", "drm-memory-vram:\t2048 KiB\n");
    tree_read(routes, 106, values);
    tree_read(routes, 107, values);
    tree_expect_unknown(values, CLEAT_FIGURE_BUSY_OWN);
    tree_expect_unknown(values, CLEAT_FIGURE_MEMORY_GTT);
    tree_expect(values, CLEAT_FIGURE_MEMORY_OWN, 2 * MIB);
    cleat_routes_close(routes);
}

/* --- kfd --- */

static void put_kfd(void) {
    const char *nodes = "/sys/class/kfd/kfd/topology/nodes/";
    char path[128];
    for (int i = 0; i < 3; ++i) { /* the CPU, another card, the card 0b:00.0 */
        snprintf(path, sizeof path, "%s%d/gpu_id", nodes, i);
        tree_put(path, "%d\n", i * 1000);
        snprintf(path, sizeof path, "%s%d/properties", nodes, i);
        tree_put(path, "cpu_cores_count %d\nlocation_id %d\ndomain 0\n", i ? 0 : 16, i * 0x500 + (i == 2 ? 0x100 : 0));
    }
    tree_put("/sys/class/kfd/kfd/proc/4242/vram_1000", "1\n");
    tree_put("/sys/class/kfd/kfd/proc/4242/vram_2000", "8388608\n");
    tree_put("/sys/class/kfd/kfd/proc/777/vram_2000", "3\n");
    tree_put("/proc/self/stat", "4242 (a) b) R 1 2 3\n");
}

static void test_kfd(void **state) {
    (void)state;
    put_amdgpu();
    put_kfd();
    tree_link("/proc/self/ns/pid", "pid:[4026531836]");
    cleat_routes *routes = tree_open(tree_card(CLEAT_VENDOR_AMD));
    tree_expect_source(routes, CLEAT_FIGURE_MEMORY_OWN, "/sys/class/kfd/kfd/proc/PID/vram_2000");
    tree_read(routes, 101, values);
    tree_expect(values, CLEAT_FIGURE_MEMORY_OWN, 8 * MIB);
    tree_put("/sys/class/kfd/kfd/proc/4242/vram_2000", "0\n");
    tree_read(routes, 102, values);
    tree_expect_unknown(values, CLEAT_FIGURE_MEMORY_OWN);
    cleat_routes_close(routes);
}

/* In a container, the driver's process 4242 is a different process. */
static void test_kfd_in_a_container(void **state) {
    (void)state;
    put_amdgpu();
    put_kfd();
    tree_link("/proc/self/ns/pid", "pid:[4026532999]");
    cleat_routes *routes = tree_open(tree_card(CLEAT_VENDOR_AMD));
    assert_null(cleat_routes_source(routes, CLEAT_FIGURE_MEMORY_OWN));
    tree_read(routes, 101, values);
    tree_expect_unknown(values, CLEAT_FIGURE_MEMORY_OWN);
    cleat_routes_close(routes);
}

/* --- Intel --- */

static void put_xe(double compute, double copy, double total) {
    tree_put(FDINFO "12",
             "drm-driver:\txe\ndrm-client-id:\t42\ndrm-pdev:\t0000:0b:00.0\ndrm-total-system:\t0\n"
             "drm-resident-system:\t0\ndrm-total-gtt:\t192 KiB\ndrm-resident-gtt:\t192 KiB\n"
             "drm-total-vram0:\t29760 KiB\ndrm-resident-vram0:\t23992 KiB\ndrm-cycles-rcs:\t100\n"
             "drm-total-cycles-rcs:\t%.0f\ndrm-cycles-ccs:\t%.0f\ndrm-total-cycles-ccs:\t%.0f\n"
             "drm-engine-capacity-ccs:\t4\ndrm-cycles-bcs:\t%.0f\ndrm-total-cycles-bcs:\t%.0f\n",
             total, compute, total, copy, total);
}

static void test_xe(void **state) {
    (void)state;
    put_xe(1000, 50, 100000);
    tree_put(CARD "hwmon/hwmon5/name", "xe\n");
    tree_put(CARD "hwmon/hwmon5/energy2_input", "5000000\n");
    tree_put(CARD "hwmon/hwmon5/temp2_input", "58000\n");
    tree_put(CARD "tile0/gt0/freq0/act_freq", "2400\n");
    tree_put(CARD "tile0/gt0/freq0/throttle/status", "0\n");
    cleat_routes *routes = tree_open(tree_card(CLEAT_VENDOR_INTEL));
    tree_expect_source(routes, CLEAT_FIGURE_ENERGY, "xe hwmon energy2_input");
    tree_expect_source(routes, CLEAT_FIGURE_POWER, "difference per second");
    tree_expect_source(routes, CLEAT_FIGURE_BUSY_OWN, "xe /proc/self/fdinfo");
    put_xe(1000 + 4 * 600, 150, 101000);
    tree_put(CARD "hwmon/hwmon5/energy2_input", "305000000\n");
    tree_read(routes, 102, values);
    tree_expect(values, CLEAT_FIGURE_BUSY_OWN, 0.6);
    tree_expect(values, CLEAT_FIGURE_MEMORY_OWN, 23992 * 1024.0);
    tree_expect(values, CLEAT_FIGURE_MEMORY_GTT, 192 * 1024.0);
    tree_expect(values, CLEAT_FIGURE_ENERGY, 300);
    tree_expect(values, CLEAT_FIGURE_POWER, 150);
    tree_expect(values, CLEAT_FIGURE_TEMPERATURE, 58);
    tree_expect(values, CLEAT_FIGURE_CLOCK, 2400);
    tree_expect(values, CLEAT_FIGURE_THROTTLED, 0);
    tree_expect_unknown(values, CLEAT_FIGURE_BUSY_DEVICE); /* needs root */
    tree_expect_unknown(values, CLEAT_FIGURE_MEMORY_DEVICE);
    tree_put(CARD "tile0/gt0/freq0/throttle/status", "1\n");
    tree_put(CARD "tile0/gt0/freq0/throttle/reason_pl1", "1\n");
    tree_put(CARD "tile0/gt0/freq0/act_freq", "0\n");
    tree_put(CARD "hwmon/hwmon5/energy2_input", "4000000\n");
    tree_read(routes, 103, values);
    tree_expect(values, CLEAT_FIGURE_THROTTLE_REASON, CLEAT_THROTTLE_POWER);
    tree_expect_unknown(values, CLEAT_FIGURE_CLOCK);
    tree_expect_unknown(values, CLEAT_FIGURE_ENERGY); /* backwards: the sum since the start is lost */
    tree_expect_unknown(values, CLEAT_FIGURE_POWER);
    tree_expect_unknown(values, CLEAT_FIGURE_BUSY_OWN); /* the cycle clock did not advance */
    tree_put(CARD "hwmon/hwmon5/energy2_input", "104000000\n");
    tree_read(routes, 104, values);
    tree_expect(values, CLEAT_FIGURE_POWER, 100);
    tree_expect_unknown(values, CLEAT_FIGURE_ENERGY);
    cleat_routes_close(routes);
}

static void put_i915(double render) {
    tree_put(FDINFO "5",
             "drm-driver:\ti915\ndrm-client-id:\t7\ndrm-pdev:\t0000:0b:00.0\ndrm-total-system0:\t4 MiB\n"
             "drm-resident-system0:\t3 MiB\ndrm-engine-render:\t%.0f ns\ndrm-engine-copy:\t0 ns\n"
             "drm-engine-video:\t0 ns\ndrm-engine-capacity-video:\t2\n",
             render);
}

/* Processor graphics: host memory, no sensors. */
static void test_i915(void **state) {
    cleat_device_facts facts = tree_card(CLEAT_VENDOR_INTEL);
    (void)state;
    facts.unified_memory = true;
    put_i915(1e9);
    tree_put(CARD "drm/card1/gt/gt0/rps_act_freq_mhz", "1150\n");
    tree_put(CARD "drm/card1/gt/gt0/throttle_reason_status", "1\n");
    tree_put(CARD "drm/card1/gt/gt0/throttle_reason_prochot", "1\n");
    tree_put(CARD "drm/renderD128/dev", "226:128\n");
    cleat_routes *routes = tree_open(facts);
    put_i915(1.25e9);
    tree_read(routes, 101, values);
    tree_expect(values, CLEAT_FIGURE_BUSY_OWN, 0.25);
    tree_expect(values, CLEAT_FIGURE_MEMORY_OWN, 3 * MIB);
    tree_expect(values, CLEAT_FIGURE_CLOCK, 1150);
    tree_expect(values, CLEAT_FIGURE_THROTTLE_REASON, CLEAT_THROTTLE_THERMAL);
    tree_expect_unknown(values, CLEAT_FIGURE_MEMORY_GTT);
    tree_expect_unknown(values, CLEAT_FIGURE_POWER);
    tree_expect_unknown(values, CLEAT_FIGURE_ENERGY);
    tree_expect_unknown(values, CLEAT_FIGURE_TEMPERATURE);
    put_i915(2.30e9); /* 1.05 s in 1 s, because the counters are read after the clock */
    tree_read(routes, 102, values);
    tree_expect(values, CLEAT_FIGURE_BUSY_OWN, 1);
    tree_drop(FDINFO "5");
    tree_read(routes, 103, values);
    tree_expect_unknown(values, CLEAT_FIGURE_BUSY_OWN);
    tree_expect_unknown(values, CLEAT_FIGURE_MEMORY_OWN);
    cleat_routes_close(routes);
}

/* fdinfo files that no driver should write. */
static void test_fdinfo_garbage(void **state) {
    (void)state;
    const char *texts[] = {"", "drm-pdev:\t0000:0b:00.0\n", "drm-client-id:\t1\n", ":::\n\n\ndrm-engine-:\t5\n",
                           "drm-pdev:\t0000:0b:00.0\ndrm-client-id:\t1\ndrm-engine-render:\tnan ns\n"
                           "drm-resident-vram0:\t-5 KiB\ndrm-total-cycles-ccs:\t9\ndrm-cycles-rcs:\tx"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; ++i) {
        tree_put(FDINFO "3", "%s", texts[i]);
        cleat_routes *routes = tree_open(tree_card(CLEAT_VENDOR_UNKNOWN));
        tree_read(routes, 101, values);
        tree_expect_nothing(values);
        cleat_routes_close(routes);
    }
}

/* A card with an unknown address has no values, and does not get another card's. */
static void test_no_address(void **state) {
    cleat_device_facts facts = tree_card(CLEAT_VENDOR_AMD);
    (void)state;
    facts.pci_bus = -1;
    put_amdgpu();
    put_kfd();
    put_i915(5);
    tree_link("/proc/self/ns/pid", "pid:[4026531836]");
    cleat_routes *routes = tree_open(facts);
    tree_read(routes, 101, values);
    tree_expect_nothing(values);
    cleat_routes_close(routes);
}

int main(void) {
#define TREE_TEST(test) cmocka_unit_test_setup_teardown(test, tree_make, tree_remove)
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_amdgpu),
        TREE_TEST(test_amdgpu_pegged),
        TREE_TEST(test_amdgpu_not_supported),
        TREE_TEST(test_amdgpu_impossible),
        TREE_TEST(test_amdgpu_throttling),
        TREE_TEST(test_amdgpu_unified),
        TREE_TEST(test_amdgpu_fdinfo),
        TREE_TEST(test_kfd),
        TREE_TEST(test_kfd_in_a_container),
        TREE_TEST(test_xe),
        TREE_TEST(test_i915),
        TREE_TEST(test_fdinfo_garbage),
        TREE_TEST(test_no_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

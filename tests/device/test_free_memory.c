/* Free memory as read from kernel files, under folders created by the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/files.h"
#include "device/probe.h"

#define MIB (1024LL * 1024)

static char root[64];

static void put(const char *path, const char *text) {
    char whole[512], folder[512];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    snprintf(folder, sizeof folder, "%s", whole);
    *strrchr(folder, '/') = 0;
    assert_int_equal(cleat_folder_make(folder, NULL), CLEAT_OK);
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int make_root(void **state) {
    (void)state;
    snprintf(root, sizeof root, "/tmp/cleat-memory-XXXXXX");
    if (!mkdtemp(root)) return -1;
    put("/proc/meminfo", "MemTotal:       24684340 kB\nMemFree:  1 kB\nMemAvailable:    1048576 kB\n");
    return 0;
}

static int remove_root(void **state) {
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r '%s'", root);
    return system(command);
}

static void expect_free(int64_t mib, const char *source) {
    char text[64] = "";
    assert_int_equal(cleat_host_memory_free(root, text, sizeof text), mib * MIB);
    assert_string_equal(text, source);
}

static void test_meminfo(void **state) {
    (void)state;
    expect_free(1024, "/proc/meminfo");
    put("/proc/self/cgroup", "garbage\n0::/a\n5\n");
    expect_free(1024, "/proc/meminfo");
}

static void test_nobody_tells(void **state) {
    char source[64] = "";
    (void)state;
    put("/proc/meminfo", "MemTotal: 5 kB\n");
    assert_int_equal(cleat_host_memory_free(root, source, sizeof source), 0);
}

static void test_cgroup_v2(void **state) {
    (void)state;
    put("/proc/self/cgroup", "0::/user/job\n");
    put("/sys/fs/cgroup/user/job/memory.max", "max\n");
    put("/sys/fs/cgroup/user/job/memory.current", "104857600\n");
    expect_free(1024, "/proc/meminfo");
    put("/sys/fs/cgroup/user/job/memory.max", "629145600\n"); /* 600 MiB, 100 used */
    expect_free(500, "cgroup v2");
    /* 50 MiB of them are cache */
    put("/sys/fs/cgroup/user/job/memory.stat", "anon 1\ninactive_file 52428800\n");
    expect_free(550, "cgroup v2");
    put("/sys/fs/cgroup/user/memory.max", "314572800\n"); /* the group above allows 300 MiB, 100 used */
    put("/sys/fs/cgroup/user/memory.current", "104857600\n");
    expect_free(200, "cgroup v2");
}

static void test_cgroup_v2_inside_a_container(void **state) {
    (void)state;
    put("/proc/self/cgroup", "0::/../elsewhere/on/the/host\n");
    put("/sys/fs/cgroup/memory.max", "209715200\n");
    put("/sys/fs/cgroup/memory.current", "104857600\n");
    expect_free(100, "cgroup v2");
}

static void test_cgroup_v1(void **state) {
    (void)state;
    put("/proc/self/cgroup", "9:name=systemd:/\n5:cpu,memory:/box\n0::/\n");
    put("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "419430400\n");
    put("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "209715200\n");
    put("/sys/fs/cgroup/memory/box/memory.stat", "inactive_file 5\ntotal_inactive_file 104857600\n");
    expect_free(300, "cgroup v1");
    /* the value that means "no limit" */
    put("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "9223372036854771712\n");
    expect_free(1024, "/proc/meminfo");
}

static void test_a_full_group_is_not_unknown(void **state) {
    char source[64] = "";
    (void)state;
    put("/proc/self/cgroup", "0::/\n");
    put("/sys/fs/cgroup/memory.max", "104857600\n");
    put("/sys/fs/cgroup/memory.current", "104857700\n");
    assert_int_equal(cleat_host_memory_free(root, source, sizeof source), 1);
    assert_string_equal(source, "cgroup v2");
}

static void test_amdgpu(void **state) {
    const cleat_device_facts here = {.pci_domain = 0, .pci_bus = 0x0b, .pci_device = 0, .pci_function = 0};
    const cleat_device_facts nowhere = {.pci_bus = -1};
    (void)state;
    assert_int_equal(cleat_amdgpu_memory_free(root, &here), 0);
    put("/sys/bus/pci/devices/0000:0b:00.0/mem_info_vram_total", "17163091968\n");
    assert_int_equal(cleat_amdgpu_memory_free(root, &here), 0);
    put("/sys/bus/pci/devices/0000:0b:00.0/mem_info_vram_used", "163091968\n");
    assert_int_equal(cleat_amdgpu_memory_free(root, &here), 17000000000LL);
    assert_int_equal(cleat_amdgpu_memory_free(root, &nowhere), 0);
}

int main(void) {
#define ROOT_TEST(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)
    const struct CMUnitTest tests[] = {
        ROOT_TEST(test_meminfo),   ROOT_TEST(test_nobody_tells),
        ROOT_TEST(test_cgroup_v2), ROOT_TEST(test_cgroup_v2_inside_a_container),
        ROOT_TEST(test_cgroup_v1), ROOT_TEST(test_a_full_group_is_not_unknown),
        ROOT_TEST(test_amdgpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Limits of control groups, from kernel files in folders that the test creates. */
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
#include "core/cpus.h"
#include "file_tree.h"
#include "platform/files.h"

#define MIB (1024LL * 1024)

static int make_root(void **state) {
    if (tree_make(state)) return -1;
    tree_put("/proc/meminfo", "MemTotal:       24684340 kB\nMemFree:  1 kB\nMemAvailable:    1048576 kB\n");
    return 0;
}

/* --- memory --- */

static void expect_free(int64_t mib, const char *source) {
    char text[64] = "";
    assert_int_equal(cleat_host_memory_free(tree_root, text, sizeof text), mib * MIB);
    assert_string_equal(text, source);
}

static void test_meminfo(void **state) {
    (void)state;
    expect_free(1024, "/proc/meminfo");
    tree_put("/proc/self/cgroup", "garbage\n0::/a\n5\n");
    expect_free(1024, "/proc/meminfo");
}

static void test_nobody_tells(void **state) {
    char source[64] = "";
    (void)state;
    tree_put("/proc/meminfo", "MemTotal: 5 kB\n");
    assert_int_equal(cleat_host_memory_free(tree_root, source, sizeof source), 0);
}

static void test_cgroup_v2(void **state) {
    (void)state;
    tree_put("/proc/self/cgroup", "0::/user/job\n");
    tree_put("/sys/fs/cgroup/user/job/memory.max", "max\n");
    tree_put("/sys/fs/cgroup/user/job/memory.current", "104857600\n");
    expect_free(1024, "/proc/meminfo");
    tree_put("/sys/fs/cgroup/user/job/memory.max", "629145600\n"); /* 600 MiB, 100 used */
    expect_free(500, "cgroup v2");
    /* including 50 MiB of cache */
    tree_put("/sys/fs/cgroup/user/job/memory.stat", "anon 1\ninactive_file 52428800\n");
    expect_free(550, "cgroup v2");
    tree_put("/sys/fs/cgroup/user/memory.max", "314572800\n"); /* the parent group allows 300 MiB, 100 used */
    tree_put("/sys/fs/cgroup/user/memory.current", "104857600\n");
    expect_free(200, "cgroup v2");
}

static void test_cgroup_v2_inside_a_container(void **state) {
    (void)state;
    tree_put("/proc/self/cgroup", "0::/../elsewhere/on/the/host\n");
    tree_put("/sys/fs/cgroup/memory.max", "209715200\n");
    tree_put("/sys/fs/cgroup/memory.current", "104857600\n");
    expect_free(100, "cgroup v2");
}

static void test_cgroup_v1(void **state) {
    int64_t limit = -7, used = -7;
    char source[16] = "";
    (void)state;
    tree_put("/proc/self/cgroup", "9:name=systemd:/\n5:cpu,memory:/box\n0::/\n");
    tree_put("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "419430400\n");
    tree_put("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "209715200\n");
    tree_put("/sys/fs/cgroup/memory/box/memory.stat", "inactive_file 5\ntotal_inactive_file 104857600\n");
    expect_free(300, "cgroup v1");
    /* the value that means "no limit" */
    tree_put("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "9223372036854771712\n");
    expect_free(1024, "/proc/meminfo");
    assert_false(cleat_cgroup_memory(tree_root, &limit, &used, source, sizeof source));
    assert_true(limit == -7 && used == -7);
}

static void test_a_full_group_is_not_unknown(void **state) {
    char source[64] = "";
    (void)state;
    tree_put("/proc/self/cgroup", "0::/\n");
    tree_put("/sys/fs/cgroup/memory.max", "104857600\n");
    tree_put("/sys/fs/cgroup/memory.current", "104857700\n");
    assert_int_equal(cleat_host_memory_free(tree_root, source, sizeof source), 1);
    assert_string_equal(source, "cgroup v2");
}

/* --- CPUs --- */

static void expect_quota(double expected, const char *expected_source) {
    char source[16] = "";
    double cpus = 0.0;
    assert_true(cleat_cgroup_cpus(tree_root, &cpus, source, sizeof source));
    assert_float_equal(cpus, expected, 1e-12);
    assert_string_equal(source, expected_source);
}

static void expect_no_quota(void) {
    char source[16] = "untouched";
    uint64_t periods = 7, throttled = 7;
    double cpus = -7.0;
    assert_false(cleat_cgroup_cpus(tree_root, &cpus, source, sizeof source));
    assert_false(cleat_cgroup_throttled(tree_root, &periods, &throttled));
    assert_true(cpus == -7.0 && periods == 7 && throttled == 7);
    assert_string_equal(source, "untouched");
    assert_int_equal(cleat_cpus_within(64, tree_root), 64);
}

static void test_no_groups(void **state) {
    int64_t limit = -7, used = -7;
    char source[16] = "";
    (void)state;
    expect_no_quota();
    tree_put("/proc/self/cgroup", "0::/\n");
    tree_put("/sys/fs/cgroup/cpu.stat", "usage_usec 5\nnr_periods 0\nnr_throttled 0\n");
    expect_no_quota();
    tree_put("/sys/fs/cgroup/cpu.max", "max 100000\n");
    tree_put("/sys/fs/cgroup/memory.max", "max\n");
    tree_put("/sys/fs/cgroup/memory.current", "5\n");
    expect_no_quota();
    assert_false(cleat_cgroup_memory(tree_root, &limit, &used, source, sizeof source));
    assert_true(limit == -7 && used == -7);
}

static void test_quota_v2_nested(void **state) {
    uint64_t periods = 0, throttled = 0;
    (void)state;
    tree_put("/proc/self/cgroup", "0::/batch/job/step\n");
    tree_put("/sys/fs/cgroup/batch/job/step/cpu.max", "800000 100000\n");
    tree_put("/sys/fs/cgroup/batch/job/step/cpu.stat", "nr_periods 1\nnr_throttled 1\n");
    expect_quota(8.0, "cgroup v2");
    tree_put("/sys/fs/cgroup/batch/job/cpu.max", "75000 50000\n"); /* a tighter parent */
    tree_put("/sys/fs/cgroup/batch/job/cpu.stat", "usage_usec 9\nnr_periods 40\nnr_throttled 10\nthrottled_usec 3\n");
    tree_put("/sys/fs/cgroup/batch/cpu.max", "max 100000\n");
    expect_quota(1.5, "cgroup v2");
    assert_true(cleat_cgroup_throttled(tree_root, &periods, &throttled));
    assert_int_equal(periods, 40);
    assert_int_equal(throttled, 10);
}

/* docker --cpus=2 on a machine with 64 CPUs. */
static void test_quota_in_a_container(void **state) {
    (void)state;
    tree_put("/proc/self/cgroup", "0::/\n");
    tree_put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    expect_quota(2.0, "cgroup v2");
    assert_int_equal(cleat_cpus_within(64, tree_root), 2);
    assert_int_equal(cleat_cpus_within(1, tree_root), 1);
    tree_put("/sys/fs/cgroup/cpu.max", "210000 100000\n");
    assert_int_equal(cleat_cpus_within(64, tree_root), 3);
    tree_put("/sys/fs/cgroup/cpu.max", "5000 100000\n");
    assert_int_equal(cleat_cpus_within(64, tree_root), 1);
    tree_put("/sys/fs/cgroup/cpu.max", "6500000 100000\n");
    assert_int_equal(cleat_cpus_within(64, tree_root), 64);
    /* a path of the host that does not exist in the container */
    tree_put("/proc/self/cgroup", "0::/../../docker/0123abcd\n");
    tree_put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    expect_quota(2.0, "cgroup v2");
}

static void test_quota_v1(void **state) {
    uint64_t periods = 0, throttled = 0;
    (void)state;
    tree_put("/proc/self/cgroup", "9:name=systemd:/\n7:cpuset:/wrong\n5:cpu,cpuacct:/docker/box\n0::/\n");
    tree_put("/sys/fs/cgroup/cpuset/wrong/cpu.cfs_quota_us", "1\n");
    tree_put("/sys/fs/cgroup/cpu/docker/box/cpu.cfs_period_us", "100000\n");
    tree_put("/sys/fs/cgroup/cpu/docker/box/cpu.cfs_quota_us", "-1\n");
    expect_no_quota();
    tree_put("/sys/fs/cgroup/cpu/docker/box/cpu.cfs_quota_us", "250000\n");
    expect_quota(2.5, "cgroup v1");
    assert_int_equal(cleat_cpus_within(64, tree_root), 3);
    tree_put("/sys/fs/cgroup/cpu/docker/box/cpu.stat", "nr_periods 8\nnr_throttled 2\nthrottled_time 5\n");
    assert_true(cleat_cgroup_throttled(tree_root, &periods, &throttled));
    assert_true(periods == 8 && throttled == 2);
    /* Some systems lack the link named after a single controller. */
    tree_put("/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us", "50000\n");
    tree_put("/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n");
    expect_quota(0.5, "cgroup v1");
}

static void test_garbage(void **state) {
    int64_t limit = 0, used = 0;
    char source[16] = "";
    static const char *const contents[] = {"", "\n", "abc def\n", "max\n", "100000\n", "-5 -5\n", "0 0\n", "5 0\n"};
    (void)state;
    tree_put("/proc/self/cgroup", ":\n::\n0:\n\nx:cpu\n:,,cpu:\n0::no/slash\n0::/a//b/\n");
    for (size_t i = 0; i < sizeof contents / sizeof *contents; ++i) {
        tree_put("/sys/fs/cgroup/cpu.max", "%s", contents[i]);
        tree_put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "%s", contents[i]);
        tree_put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "0\n");
        expect_no_quota();
    }
    tree_put("/sys/fs/cgroup/memory.max", "lots\n");
    tree_put("/sys/fs/cgroup/memory.current", "5\n");
    assert_false(cleat_cgroup_memory(tree_root, &limit, &used, source, sizeof source));
    tree_put("/sys/fs/cgroup/memory.max", "500\n");
    tree_put("/sys/fs/cgroup/memory.current", "-5\n");
    assert_false(cleat_cgroup_memory(tree_root, &limit, &used, source, sizeof source));
}

static void test_limit_and_use(void **state) {
    int64_t limit = 0, used = 0;
    char source[16] = "";
    (void)state;
    tree_put("/proc/self/cgroup", "0::/a\n");
    tree_put("/sys/fs/cgroup/a/memory.max", "500\n");
    tree_put("/sys/fs/cgroup/a/memory.current", "300\n");
    tree_put("/sys/fs/cgroup/a/memory.stat", "inactive_file 100\n");
    assert_true(cleat_cgroup_memory(tree_root, &limit, &used, source, sizeof source));
    assert_true(limit == 500 && used == 200);
    tree_put("/sys/fs/cgroup/memory.max", "1000\n"); /* larger, but fuller */
    tree_put("/sys/fs/cgroup/memory.current", "990\n");
    assert_true(cleat_cgroup_memory(tree_root, &limit, &used, source, sizeof source));
    assert_true(limit == 1000 && used == 990);
}

int main(void) {
#define ROOT_TEST(test) cmocka_unit_test_setup_teardown(test, make_root, tree_remove)
    const struct CMUnitTest tests[] = {
        ROOT_TEST(test_meminfo),         ROOT_TEST(test_nobody_tells),
        ROOT_TEST(test_cgroup_v2),       ROOT_TEST(test_cgroup_v2_inside_a_container),
        ROOT_TEST(test_cgroup_v1),       ROOT_TEST(test_a_full_group_is_not_unknown),
        ROOT_TEST(test_limit_and_use),   ROOT_TEST(test_no_groups),
        ROOT_TEST(test_quota_v2_nested), ROOT_TEST(test_quota_in_a_container),
        ROOT_TEST(test_quota_v1),        ROOT_TEST(test_garbage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

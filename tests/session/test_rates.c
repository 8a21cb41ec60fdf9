/* The measured rates of the available device, and the file that caches them. */
/* ctest: device */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/files.h"
#include "core/memory.h"
#include "device/device.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "session/rates.h"
#include "train/tiny.h"

enum { MIB = 1048576 };

static char folder[64]; /* a separate cache folder for each test */

static int setup(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/cleat-rates-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    unsetenv("CLEAT_DEVICE_MEMORY_LIMIT");
    return setenv("CLEAT_CACHE_DIR", folder, 1);
}

static int teardown(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    unsetenv("CLEAT_DEVICE_MEMORY_LIMIT");
    return system(command);
}

static cleat_device *device_open(void) {
    const char *selector = getenv("CLEAT_TEST_DEVICE");
    cleat_device *device = NULL;
    cleat_error error = {0};
    if (cleat_device_open(selector ? selector : "auto", &device, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return device;
}

/* Opens a separate device and sets *peak to its peak allocation: 0 if nothing was measured. */
static cleat_rates rates_of(int64_t *peak) {
    cleat_device *device = device_open();
    cleat_rates rates = {0};
    cleat_error error = {0};
    if (cleat_rates_measure(device, &rates, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_int_equal(cleat_device_allocated(device), 0);
    *peak = cleat_device_peak(device);
    cleat_device_close(device);
    return rates;
}

static void assert_plausible(const cleat_rates *rates) {
    if (!(rates->flops > 1e6 && rates->flops < 1e16)) fail_msg("%g operations a second", rates->flops);
    if (!(rates->bytes > 1e6 && rates->bytes < 1e15)) fail_msg("%g bytes a second", rates->bytes);
    if (!(rates->launch_seconds > 1e-9 && rates->launch_seconds < 1)) fail_msg("%g s a launch", rates->launch_seconds);
    assert_string_equal(rates->source, "measured");
}

static void measured_once_and_kept(void **state) {
    (void)state;
    int64_t peak = 0;
    cleat_rates first = rates_of(&peak);
    assert_plausible(&first);
    assert_true(peak > 0 && peak <= 80 * MIB);
    cleat_rates second = rates_of(&peak);
    assert_int_equal(peak, 0);
    assert_memory_equal(&first.flops, &second.flops, sizeof first.flops);
    assert_memory_equal(&first.bytes, &second.bytes, sizeof first.bytes);
    assert_memory_equal(&first.launch_seconds, &second.launch_seconds, sizeof first.launch_seconds);
    assert_string_equal(second.source, "measured");
}

static void a_damaged_file_is_measured_again(void **state) {
    (void)state;
    int64_t peak = 0;
    char path[TINY_PATH], *good = NULL;
    size_t size = 0;
    cleat_device *device = device_open();
    cleat_rates rates = rates_of(&peak);
    assert_int_equal(cleat_rates_path(device, path, sizeof path, NULL), CLEAT_OK);
    cleat_device_close(device);
    assert_int_equal(cleat_file_read(path, &good, &size, NULL), CLEAT_OK);
    assert_true(size > 40);
    char flipped[256], longer[257];
    assert_true(size < sizeof flipped);
    memcpy(flipped, good, size);
    flipped[0] = flipped[0] == '1' ? '2' : '1'; /* still a number, but not the written one */
    memcpy(longer, good, size);
    longer[size] = '\n';
    const struct {
        const char *data;
        size_t size;
    } bad[] = {{flipped, size}, {good, size / 2}, {longer, size + 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        assert_int_equal(cleat_file_write(path, bad[i].data, bad[i].size, NULL), CLEAT_OK);
        rates = rates_of(&peak);
        assert_plausible(&rates);
        if (peak == 0) fail_msg("damage %zu was not detected", i);
        cleat_rates again = rates_of(&peak); /* the file is repaired */
        assert_true(peak == 0 && again.flops == rates.flops);
    }
    cleat_free(good);
}

/* Rates as cached by a busy machine, or by one that is faster than any real machine. */
static const cleat_rates busy = {.flops = 1e3, .bytes = 1e3, .launch_seconds = 1, .source = "measured"};
static const cleat_rates fastest = {.flops = 1e18, .bytes = 1e18, .launch_seconds = 1e-12, .source = "measured"};

static void plant(const cleat_rates *rates) {
    char path[TINY_PATH];
    cleat_device *device = device_open();
    assert_int_equal(cleat_rates_path(device, path, sizeof path, NULL), CLEAT_OK);
    cleat_rates_write(path, rates);
    cleat_device_close(device);
}

static cleat_rates rates_remeasured(void) {
    cleat_device *device = device_open();
    cleat_rates rates = {0};
    cleat_error error = {0};
    if (cleat_rates_remeasure(device, &rates, &error)) fail_msg("%s", error.text);
    assert_true(cleat_device_peak(device) > 0); /* measured, regardless of the cache */
    assert_int_equal(cleat_device_allocated(device), 0);
    cleat_device_close(device);
    return rates;
}

static void assert_same(const cleat_rates *a, const cleat_rates *b) {
    if (a->flops != b->flops || a->bytes != b->bytes || a->launch_seconds != b->launch_seconds ||
        a->matrix_flops != b->matrix_flops)
        fail_msg("%g, %g, %g, %g and %g, %g, %g, %g", a->flops, a->bytes, a->launch_seconds, a->matrix_flops, b->flops,
                 b->bytes, b->launch_seconds, b->matrix_flops);
}

static void measuring_again_only_improves(void **state) {
    (void)state;
    int64_t peak = 0;
    plant(&busy);
    cleat_rates kept = rates_of(&peak);
    assert_int_equal(peak, 0);
    assert_same(&kept, &busy);
    cleat_rates measured = rates_remeasured();
    assert_plausible(&measured);
    kept = rates_of(&peak);
    assert_int_equal(peak, 0);
    assert_same(&kept, &measured);
    plant(&fastest);
    measured = rates_remeasured();
    kept = rates_of(&peak);
    assert_true(measured.flops == fastest.flops && measured.bytes == fastest.bytes &&
                measured.launch_seconds == fastest.launch_seconds);
    assert_same(&kept, &measured);
}

static void the_better_of_each_rate_is_kept(void **state) {
    (void)state;
    plant(&(cleat_rates){.flops = fastest.flops, .bytes = 1, .launch_seconds = 2});
    cleat_rates measured = rates_remeasured();
    assert_true(measured.flops == fastest.flops && measured.bytes > 1e6 && measured.launch_seconds < 1);
    plant(&(cleat_rates){.flops = 1, .matrix_flops = 5e17, .bytes = fastest.bytes, .launch_seconds = 1e-12});
    measured = rates_remeasured();
    assert_true(measured.flops > 1e6 && measured.matrix_flops == 5e17 && measured.bytes == fastest.bytes &&
                measured.launch_seconds == 1e-12);
}

static void little_memory_is_enough(void **state) {
    (void)state;
    const int64_t limits[] = {64 * MIB, 16 * MIB, 6 * MIB};
    for (int i = 0; i < 3; ++i) {
        int64_t peak = 0;
        char limit[32], own[96];
        snprintf(limit, sizeof limit, "%lld", (long long)limits[i]);
        snprintf(own, sizeof own, "%s/%d", folder, i);
        setenv("CLEAT_DEVICE_MEMORY_LIMIT", limit, 1);
        setenv("CLEAT_CACHE_DIR", own, 1);
        cleat_rates rates = rates_of(&peak);
        assert_plausible(&rates);
        assert_true(peak > 0 && peak <= (i < 2 ? limits[i] / 2 : limits[i]));
    }
}

static void the_file_does_not_depend_on_the_limit(void **state) {
    (void)state;
    int64_t peak = 0;
    cleat_rates whole = rates_of(&peak);
    setenv("CLEAT_DEVICE_MEMORY_LIMIT", "67108864", 1);
    cleat_rates limited = rates_of(&peak);
    assert_true(peak == 0 && whole.flops == limited.flops);
}

static void failures_leave_nothing_behind(void **state) {
    (void)state;
    cleat_device *device = device_open();
    cleat_rates rates = {.flops = 42};
    for (long n = 1; n <= 4; ++n) {
        cleat_error error = {0};
        device->fail_buffer = n;
        assert_int_equal(cleat_rates_measure(device, &rates, &error), CLEAT_ERR_DEVICE_MEMORY);
        assert_non_null(strstr(error.text, "measuring"));
        assert_int_equal(cleat_device_allocated(device), 0);
        assert_true(rates.flops == 42);
    }
    cleat_device_close(device);
    setenv("CLEAT_DEVICE_MEMORY_LIMIT", "2000", 1);
    device = device_open();
    /* too little for the smallest tensor */
    assert_int_equal(cleat_rates_measure(device, &rates, NULL), CLEAT_ERR_FIT);
    assert_int_equal(cleat_device_allocated(device), 0);
    assert_true(rates.flops == 42);
    cleat_device_close(device);
}

static void without_a_cache_it_is_measured_each_time(void **state) {
    (void)state;
    setenv("CLEAT_CACHE_DIR", "/proc/no/such/folder", 1);
    for (int i = 0; i < 2; ++i) {
        int64_t peak = 0;
        cleat_rates rates = rates_of(&peak);
        assert_plausible(&rates);
        assert_true(peak > 0);
    }
}

int main(void) {
    tiny_require_device();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(measured_once_and_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_file_is_measured_again, setup, teardown),
        cmocka_unit_test_setup_teardown(measuring_again_only_improves, setup, teardown),
        cmocka_unit_test_setup_teardown(the_better_of_each_rate_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(little_memory_is_enough, setup, teardown),
        cmocka_unit_test_setup_teardown(the_file_does_not_depend_on_the_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(failures_leave_nothing_behind, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_cache_it_is_measured_each_time, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

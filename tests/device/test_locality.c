/* The list of CPUs local to a card: complete, or absent; and its PCI address. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <hwloc.h>

#include "device/probe.h"

/* A driver that answers the PCI address query with zeros and does not list the extension. */
cl_int CL_API_CALL clGetDeviceInfo(cl_device_id id, cl_device_info what, size_t size, void *value, size_t *needed) {
    (void)id, (void)needed;
    if (what == CL_DEVICE_EXTENSIONS) {
        snprintf(value, size, "cl_khr_fp64");
        return CL_SUCCESS;
    }
    if (what != 0x410F) return CL_INVALID_VALUE; /* CL_DEVICE_PCI_BUS_INFO_KHR */
    memset(value, 0, size);
    return CL_SUCCESS;
}

static void test_addresses_of_an_unlisted_extension_are_none(void **state) {
    cleat_device_facts facts = {0};
    (void)state;
    cleat_read_locality(NULL, &facts);
    assert_int_equal(facts.pci_bus, -1);
}

static void every_second(unsigned cpus, char text[CLEAT_CPU_LIST]) {
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    for (unsigned i = 0; i < cpus; i += 2) hwloc_bitmap_set(set, i);
    cleat_print_cpus(set, text);
    hwloc_bitmap_free(set);
}

static void test_long_lists_are_whole(void **state) {
    char text[CLEAT_CPU_LIST];
    (void)state;
    every_second(256, text);
    hwloc_bitmap_t read = hwloc_bitmap_alloc();
    assert_int_equal(hwloc_bitmap_list_sscanf(read, text), 0);
    assert_int_equal(hwloc_bitmap_weight(read), 128);
    assert_int_equal(hwloc_bitmap_last(read), 254);
    hwloc_bitmap_free(read);
}

static void test_too_long_is_any(void **state) {
    char text[CLEAT_CPU_LIST];
    (void)state;
    every_second(1024, text);
    assert_string_equal(text, "any");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_lists_are_whole),
        cmocka_unit_test(test_too_long_is_any),
        cmocka_unit_test(test_addresses_of_an_unlisted_extension_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

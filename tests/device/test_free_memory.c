/* Free memory of a card as read from kernel files in folders created by the test. */
/* ctest: device quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/probe.h"
#include "file_tree.h"

static void test_amdgpu(void **state) {
    const cleat_device_facts here = {.pci_domain = 0, .pci_bus = 0x0b, .pci_device = 0, .pci_function = 0};
    const cleat_device_facts nowhere = {.pci_bus = -1};
    (void)state;
    assert_int_equal(cleat_amdgpu_memory_free(tree_root, &here), 0);
    tree_put("/sys/bus/pci/devices/0000:0b:00.0/mem_info_vram_total", "17163091968\n");
    assert_int_equal(cleat_amdgpu_memory_free(tree_root, &here), 0);
    tree_put("/sys/bus/pci/devices/0000:0b:00.0/mem_info_vram_used", "163091968\n");
    assert_int_equal(cleat_amdgpu_memory_free(tree_root, &here), 17000000000LL);
    assert_int_equal(cleat_amdgpu_memory_free(tree_root, &nowhere), 0);
}

int main(void) {
#define ROOT_TEST(test) cmocka_unit_test_setup_teardown(test, tree_make, tree_remove)
    const struct CMUnitTest tests[] = {
        ROOT_TEST(test_amdgpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

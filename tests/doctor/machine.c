/* Creates machines made of files. */
#include "machine.h"

#include "platform/files.h"
#include "platform/processes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

void machine_create(void) {
    static const char *const unset[] = {"OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH", "OCL_ICD_FILENAMES", "RUSTICL_ENABLE",
                                        "CLEAT_DEVICE_MEMORY_LIMIT"};
    char path[512];
    assert_int_equal(tree_make(NULL), 0);
    assert_int_equal(chmod(tree_root, 0755), 0);
    for (size_t i = 0; i < sizeof unset / sizeof unset[0]; ++i) unsetenv(unset[i]);
    tree_put_text("/etc/os-release", "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
    tree_put_text("/etc/group", "root:x:0:\nvideo:x:44:\nrender:x:105:anna\n");
    tree_put_text("/proc/meminfo", "MemTotal: 24684340 kB\nMemAvailable: 16777216 kB\n");
    tree_put_text("/proc/sys/kernel/osrelease", "6.1.0-40-amd64\n");
    tree_folder("/etc/OpenCL/vendors");
    tree_folder("/dev/shm");
    tree_folder("/cache");
    snprintf(path, sizeof path, "%s/cache", tree_root);
    setenv("CLEAT_CACHE_DIR", path, 1);
    setenv("POCL_CACHE_DIR", path, 1);
}

void machine_remove(void) {
    tree_remove(NULL);
}

void machine_card(const char *address, const char *pci_class, const char *vendor, const char *device,
                  const char *driver, const char *node) {
    char path[256], text[64], target[128];
    const char *const names[] = {"class", "vendor", "device"}, *const values[] = {pci_class, vendor, device};
    for (int i = 0; i < 3; ++i) {
        snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", address, names[i]);
        snprintf(text, sizeof text, "%s\n", values[i]);
        tree_put_text(path, text);
    }
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/driver", address);
    snprintf(target, sizeof target, "../../../bus/pci/drivers/%s", driver ? driver : "");
    if (driver) tree_link(path, target);
    if (!node) return;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/drm/%s", address, node);
    tree_folder(path);
    snprintf(path, sizeof path, "/dev/dri/%s", node);
    tree_put_text(path, "");
}

void machine_nvidia(const char *address, int minor, const char *model) {
    char path[256], text[256];
    snprintf(path, sizeof path, "/proc/driver/nvidia/gpus/%s/information", address);
    snprintf(text, sizeof text, "Model: \t\t %s\nIRQ:   \t\t 11\nDevice Minor: \t %d\n", model, minor);
    tree_put_text(path, text);
    tree_put_text("/proc/driver/nvidia/version",
                  "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\n");
    snprintf(path, sizeof path, "/dev/nvidia%d", minor);
    tree_put_text(path, "");
    tree_put_text("/dev/nvidiactl", "");
    tree_put_text("/dev/nvidia-uvm", "");
}

void machine_icd(const char *icd, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "/etc/OpenCL/vendors/%s.icd", icd);
    tree_put_text(path, text);
}

void machine_driver(const char *icd, const char *library, const char *conf) {
    char path[256], text[600], command[1200];
    tree_folder("/usr/lib");
    snprintf(text, sizeof text, "%s/usr/lib/%s\n", tree_root, library);
    machine_icd(icd, text);
    snprintf(command, sizeof command, "cp '%s' '%s/usr/lib/%s'", CLEAT_STUB_DRIVER, tree_root, library);
    assert_int_equal(system(command), 0);
    snprintf(path, sizeof path, "/usr/lib/%s.conf", library);
    tree_put_text(path, conf);
}

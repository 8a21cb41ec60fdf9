/* Checks of each installed card: kernel driver, device node, permission, registered OpenCL driver, and whether
 * OpenCL lists the card and it computes correctly. */
#include "doctor/doctor.h"
#include "platform/files.h"
#include "platform/system.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *vendor_word(unsigned vendor) {
    return vendor == PCI_NVIDIA ? "nvidia" : vendor == PCI_AMD ? "amd" : "intel";
}

static cleat_vendor vendor_code(unsigned vendor) {
    return vendor == PCI_NVIDIA ? CLEAT_VENDOR_NVIDIA : vendor == PCI_AMD ? CLEAT_VENDOR_AMD : CLEAT_VENDOR_INTEL;
}

bool cleat_driver_serves(cleat_driver_family family, unsigned vendor) {
    switch (family) {
    case DRIVER_NVIDIA:
        return vendor == PCI_NVIDIA;
    case DRIVER_AMD:
        return vendor == PCI_AMD;
    case DRIVER_INTEL:
        return vendor == PCI_INTEL;
    case DRIVER_RUSTICL:
        return vendor == PCI_AMD || vendor == PCI_INTEL;
    case DRIVER_CLOVER:
        return vendor == PCI_AMD;
    default:
        return false;
    }
}

static bool same_address(const cleat_device_facts *facts, const cleat_card_slot *card) {
    return facts->pci_domain == card->domain && facts->pci_bus == card->bus && facts->pci_device == card->slot;
}

/* For drivers that do not report the PCI address: the n-th card of a vendor is the n-th such device of it. */
static size_t rank_of(const cleat_doctor *doctor, const cleat_card_slot *card) {
    size_t rank = 0;
    for (const cleat_card_slot *at = doctor->cards; at < card; ++at)
        if (at->vendor == card->vendor) ++rank;
    return rank;
}

const cleat_doctor_device *cleat_card_device(const cleat_doctor *doctor, const cleat_card_slot *card) {
    size_t rank = rank_of(doctor, card);
    for (size_t i = 0; i < doctor->n_devices; ++i) {
        const cleat_device_facts *facts = &doctor->devices[i].facts;
        if (facts->kind != CLEAT_DEVICE_GPU) continue;
        bool addressed = facts->pci_bus >= 0 && card->bus >= 0;
        if (addressed ? same_address(facts, card) : facts->vendor == vendor_code(card->vendor) && rank-- == 0)
            return &doctor->devices[i];
    }
    return NULL;
}

/* Returns false if the remaining checks of the card cannot run. */
static bool check_kernel_driver(cleat_doctor *doctor, const cleat_card_slot *card) {
    const char *driver = card->kernel_driver;
    if (!driver[0]) {
        cleat_doctor_fault(doctor, "kernel-driver-missing", vendor_word(card->vendor), NULL,
                           "no kernel driver is bound to %s", card->address);
        return false;
    }
    if (strcmp(driver, "vfio-pci") == 0 || strcmp(driver, "pci-stub") == 0) {
        cleat_doctor_fault(doctor, "reserved-for-guest", NULL, driver, "kernel driver %s", driver);
        return false;
    }
    if (strcmp(driver, "nouveau") == 0 || (strcmp(driver, "radeon") == 0)) {
        cleat_doctor_fault(doctor, driver[0] == 'n' ? "nouveau-bound" : "radeon-bound", NULL, NULL, "kernel driver %s",
                           driver);
        return false;
    }
    cleat_doctor_ok(doctor, "kernel-driver", "%s", driver);
    return true;
}

/* Reads name and members of a group from /etc/group: "render:x:105:anna,ben". */
static void read_group(const char *root, gid_t gid, char *name, size_t size, char *members, size_t members_size) {
    char path[DOCTOR_PATH], line[1024];
    cleat_root_path(root, "/etc/group", path);
    FILE *file = fopen(path, "r");
    snprintf(name, size, "%u", (unsigned)gid);
    members[0] = 0;
    while (file && fgets(line, sizeof line, file)) {
        const char *first = strchr(line, ':'), *second = first ? strchr(first + 1, ':') : NULL;
        const char *third = second ? strchr(second + 1, ':') : NULL;
        if (!third || strtoul(second + 1, NULL, 10) != gid) continue;
        snprintf(name, size, "%.*s", (int)(first - line), line);
        snprintf(members, members_size, "%.*s", (int)strcspn(third + 1, "\n"), third + 1);
        break;
    }
    if (file) fclose(file);
}

static bool has_group(gid_t gid) {
    gid_t groups[256];
    int count = getgroups(256, groups);
    for (int i = 0; i < count; ++i)
        if (groups[i] == gid) return true;
    return getegid() == gid;
}

static void report_refused(cleat_doctor *doctor, const char *node, int code, const struct stat *facts) {
    char group[64], members[512];
    const struct passwd *user = getpwuid(geteuid());
    read_group(doctor->root, facts->st_gid, group, sizeof group, members, sizeof members);
    bool group_may = (facts->st_mode & 060) == 060 && facts->st_gid != 0;
    if (code == EACCES && group_may && !has_group(facts->st_gid)) {
        bool waits = user && cleat_has_word(members, user->pw_name, ',');
        cleat_doctor_fault(doctor, waits ? "group-not-active" : "group-missing", NULL, group,
                           "%s: %s; mode %03o, group %s", node, strerror(code), (unsigned)facts->st_mode & 0777, group);
        return;
    }
    cleat_doctor_fault(doctor, "node-permission", NULL, node, "%s: %s; mode %03o, owner %u, group %s, this user %u",
                       node, strerror(code), (unsigned)facts->st_mode & 0777, (unsigned)facts->st_uid, group,
                       (unsigned)geteuid());
}

/* Only opening the node also tests access lists and the device rules of containers. */
static bool check_access(cleat_doctor *doctor, const char *node) {
    char path[DOCTOR_PATH];
    struct stat facts;
    cleat_root_path(doctor->root, node, path);
    if (stat(path, &facts) != 0) return true;
    int file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (file >= 0) {
        close(file);
        return true;
    }
    if (errno != EACCES && errno != EPERM) return true;
    report_refused(doctor, node, errno, &facts);
    return false;
}

static bool has_driver(const cleat_doctor *doctor, cleat_driver_family family) {
    for (size_t i = 0; i < doctor->n_drivers; ++i)
        if (doctor->drivers[i].family == family) return true;
    return false;
}

static const char *missing_variant(const cleat_doctor *doctor, const cleat_card_slot *card) {
    bool container = doctor->system.container[0], nvidia = card->vendor == PCI_NVIDIA;
    return container ? (nvidia ? "nvidia-container" : "container") : nvidia ? "nvidia" : NULL;
}

static bool check_nodes(cleat_doctor *doctor, const cleat_card_slot *card) {
    if (!card->node[0] || !cleat_root_exists(doctor->root, card->node)) {
        cleat_doctor_fault(doctor, "node-missing", missing_variant(doctor, card), card->kernel_driver, "%s",
                           card->node[0] ? card->node : "the kernel created no /dev/dri/renderD node");
        return false;
    }
    bool allowed = check_access(doctor, card->node);
    for (int i = 0; i < 2; ++i)
        if (card->more_nodes[i][0]) allowed = check_access(doctor, card->more_nodes[i]) && allowed;
    if (card->vendor == PCI_AMD && has_driver(doctor, DRIVER_AMD)) {
        if (!cleat_root_exists(doctor->root, "/dev/kfd")) {
            cleat_doctor_fault(doctor, "node-missing", doctor->system.container[0] ? "container" : NULL,
                               card->kernel_driver, "/dev/kfd, through which ROCm reaches the card");
            return false;
        }
        allowed = check_access(doctor, "/dev/kfd") && allowed;
    }
    if (allowed) cleat_doctor_ok(doctor, "device-node", "%s can be opened", card->node);
    return allowed;
}

static bool nvidia_library_exists(const char *root) {
    static const char *const folders[] = {
        "/usr/lib/x86_64-linux-gnu",  "/usr/lib64",       "/usr/lib", "/usr/local/nvidia/lib64",
        "/usr/lib/aarch64-linux-gnu", "/usr/lib64-nvidia"};
    char path[DOCTOR_PATH];
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; ++i) {
        snprintf(path, sizeof path, "%s/libnvidia-opencl.so.1", folders[i]);
        if (cleat_root_exists(root, path)) return true;
    }
    return false;
}

static void report_no_icd(cleat_doctor *doctor, const cleat_card_slot *card) {
    char code[CLEAT_CHECK_CODE];
    const char *variant = NULL;
    snprintf(code, sizeof code, "%s-icd-missing", vendor_word(card->vendor));
    if (card->vendor == PCI_NVIDIA)
        variant = nvidia_library_exists(doctor->root) ? "library"
                  : doctor->system.container[0] != 0  ? "container"
                                                      : NULL;
    cleat_doctor_fault(doctor, code, variant, "/etc/OpenCL/vendors", "no %s in %s names a driver for this card",
                       doctor->system.windows ? "entry" : ".icd file", doctor->vendors);
}

/* Copies the first number with a dot after `word`: "... Kernel Module  535.183.01  Sun ..." */
static bool read_version(const char *text, char *version, size_t size) {
    for (const char *at = text; *at; ++at) {
        if (!isdigit((unsigned char)*at) || (at > text && at[-1] != ' ' && at[-1] != '.')) continue;
        size_t length = strspn(at, "0123456789.");
        if (!memchr(at, '.', length)) continue;
        snprintf(version, size, "%.*s", (int)length, at);
        return true;
    }
    return false;
}

/* The file behind libnvidia-opencl.so.1 ends in the version of the driver it belongs to. */
static bool check_nvidia_versions(cleat_doctor *doctor, const cleat_driver *driver) {
    char line[256], kernel[32], library[32];
    if (!cleat_root_line(doctor->root, "/proc/driver/nvidia/version", line, sizeof line)) return true;
    const char *ending = strstr(driver->loaded_from, ".so.");
    if (!ending || !read_version(line, kernel, sizeof kernel)) return true;
    snprintf(library, sizeof library, "%s", ending + 4);
    if (!strchr(library, '.') || strcmp(library, kernel) == 0) return true;
    cleat_doctor_fault(doctor, "nvidia-version-mismatch", NULL, NULL, "kernel driver %s, library %s", kernel, library);
    return false;
}

static bool check_icd(cleat_doctor *doctor, const cleat_card_slot *card) {
    const cleat_driver *found = NULL;
    for (size_t i = 0; i < doctor->n_drivers; ++i)
        if (cleat_driver_serves(doctor->drivers[i].family, card->vendor)) {
            found = &doctor->drivers[i];
            if (found->n_devices > 0) break;
        }
    if (!found) {
        report_no_icd(doctor, card);
        return false;
    }
    if (found->family == DRIVER_NVIDIA && !check_nvidia_versions(doctor, found)) return false;
    cleat_doctor_ok(doctor, "icd-registered", "%s", found->file[0] ? found->file : found->library);
    return true;
}

static void check_listed(cleat_doctor *doctor, const cleat_card_slot *card) {
    const cleat_doctor_device *device = cleat_card_device(doctor, card);
    char text[128];
    if (!device) {
        const char *reason =
            doctor->listing == CHILD_ANSWERED ? "the checks of its driver below may show why" : "a driver below fails";
        cleat_doctor_fault(doctor, "card-not-listed", card->vendor == PCI_INTEL ? "intel" : NULL, reason,
                           "none of %zu OpenCL devices is this card", doctor->n_devices);
        return;
    }
    size_t index = (size_t)(device - doctor->devices);
    const char *fault = cleat_device_fault(device);
    if (fault) {
        snprintf(text, sizeof text, "see device %zu, %s", index, fault);
        cleat_doctor_fault(doctor, "card-unusable", NULL, text, "device %zu, %s", index, device->facts.name);
        return;
    }
    cleat_doctor_ok(doctor, device->untried ? "card-listed" : "card-computes", "device %zu, %s", index,
                    device->facts.name);
}

static bool has_opencl(const cleat_card_slot *card) {
    if (card->vendor != PCI_NVIDIA && card->vendor != PCI_AMD && card->vendor != PCI_INTEL) return false;
    return card->vendor != PCI_INTEL || card->pci_class == 0x03; /* Intel's NPUs are of class 12 */
}

/* If OpenCL lists the card, it does not matter how the driver reaches it. */
static void check_card(cleat_doctor *doctor, cleat_card_slot *card) {
    cleat_doctor_section(doctor, "card", "card %s%s%s", card->address, card->address[0] ? ": " : "", card->name);
    if (!has_opencl(card)) {
        card->blocked = true;
        cleat_doctor_skip(doctor, "card-without-opencl",
                          "no OpenCL driver is known for it; it is used for display only");
        return;
    }
    if (cleat_card_device(doctor, card)) {
        if (card->kernel_driver[0]) cleat_doctor_ok(doctor, "kernel-driver", "%s", card->kernel_driver);
        check_listed(doctor, card);
        return;
    }
    card->blocked = (!doctor->system.windows && (!check_kernel_driver(doctor, card) || !check_nodes(doctor, card))) ||
                    !check_icd(doctor, card);
    if (!card->blocked) check_listed(doctor, card);
}

static void check_wsl(cleat_doctor *doctor) {
    for (size_t i = 0; i < doctor->n_devices; ++i)
        if (doctor->devices[i].facts.kind == CLEAT_DEVICE_GPU) return;
    cleat_doctor_section(doctor, "card", "cards of Windows (WSL)");
    cleat_doctor_fault(doctor, "wsl-no-opencl", NULL, NULL, "/dev/dxg exists, and OpenCL lists no GPU");
}

void cleat_check_cards(cleat_doctor *doctor) {
    for (size_t i = 0; i < doctor->n_cards; ++i) check_card(doctor, &doctor->cards[i]);
    if (cleat_root_exists(doctor->root, "/dev/dxg")) {
        check_wsl(doctor);
    } else if (doctor->n_cards == 0) {
        cleat_doctor_section(doctor, "card", "cards");
        cleat_doctor_skip(doctor, "no-card", "no device of PCI class 03 (display) or 12 (accelerator) is installed");
    }
}

/* The installed cards, as the kernel reports them: /sys/bus/pci, and what NVIDIA's driver adds in /proc. */
#include "core/files.h"
#include "doctor/doctor.h"
#include "platform/files.h"
#include "platform/system.h"
#include "platform/text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLASS_DISPLAY = 0x03, CLASS_ACCELERATOR = 0x12 };

static const char *vendor_name(unsigned vendor) {
    static const struct {
        unsigned id;
        const char *name;
    } names[] = {{PCI_NVIDIA, "NVIDIA"}, {PCI_AMD, "AMD"},   {PCI_INTEL, "Intel"},   {0x1a03, "ASPEED"},
                 {0x102b, "Matrox"},     {0x1234, "QEMU"},   {0x1013, "Cirrus"},     {0x1af4, "virtio"},
                 {0x1b36, "Red Hat"},    {0x15ad, "VMware"}, {0x80ee, "VirtualBox"}, {0x1414, "Microsoft"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i)
        if (names[i].id == vendor) return names[i].name;
    return NULL;
}

/* Looks the device up in pci.ids: a line "VVVV  Vendor", then lines "<tab>DDDD  Device". */
static bool find_model(const char *root, const char *list, const cleat_card_slot *card, char *model, size_t size) {
    char path[DOCTOR_PATH], line[512], vendor[8], device[8];
    bool inside = false, found = false;
    cleat_root_path(root, list, path);
    FILE *file = fopen(path, "r");
    if (!file) return false;
    snprintf(vendor, sizeof vendor, "%04x", card->vendor & 0xffff);
    snprintf(device, sizeof device, "%04x", card->device & 0xffff);
    while (!found && fgets(line, sizeof line, file)) {
        if (isxdigit((unsigned char)line[0])) inside = strncmp(line, vendor, 4) == 0;
        if (!inside || line[0] != '\t' || strncmp(line + 1, device, 4) != 0) continue;
        line[strcspn(line, "\n")] = 0;
        const char *text = line + 5 + strspn(line + 5, " ");
        snprintf(model, size, "%s", text);
        found = true;
    }
    fclose(file);
    return found;
}

static void find_name(const char *root, cleat_card_slot *card) {
    static const char *const lists[] = {"/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids"};
    char model[112] = "";
    const char *vendor = vendor_name(card->vendor);
    for (int i = 0; i < 2 && !model[0]; ++i) find_model(root, lists[i], card, model, sizeof model);
    if (!model[0]) snprintf(model, sizeof model, "device %04x:%04x", card->vendor, card->device);
    snprintf(card->name, sizeof card->name, "%s%s%s", vendor ? vendor : "", vendor ? " " : "", model);
}

static unsigned read_hex(const char *root, const char *folder, const char *name) {
    char path[DOCTOR_PATH], line[32];
    snprintf(path, sizeof path, "%.400s/%s", folder, name);
    return cleat_root_line(root, path, line, sizeof line) ? (unsigned)strtoul(line, NULL, 16) : 0;
}

static void read_driver(const char *root, const char *folder, cleat_card_slot *card) {
    char path[DOCTOR_PATH], link[DOCTOR_PATH], target[DOCTOR_PATH];
    snprintf(path, sizeof path, "%.400s/driver", folder);
    cleat_root_path(root, path, link);
    ssize_t length = readlink(link, target, sizeof target - 1);
    if (length <= 0) return;
    target[length] = 0;
    const char *slash = strrchr(target, '/');
    snprintf(card->kernel_driver, sizeof card->kernel_driver, "%.31s", slash ? slash + 1 : target);
}

static bool is_render_node(const char *name) {
    return strncmp(name, "renderD", 7) == 0;
}

static void read_render_node(const char *root, const char *folder, cleat_card_slot *card) {
    char path[DOCTOR_PATH], whole[DOCTOR_PATH];
    cleat_name_list nodes = {0};
    snprintf(path, sizeof path, "%.400s/drm", folder);
    cleat_root_path(root, path, whole);
    if (cleat_listing_read(whole, is_render_node, &nodes, NULL) == CLEAT_OK && nodes.count > 0)
        snprintf(card->node, sizeof card->node, "/dev/dri/%s", nodes.names[0]);
    cleat_name_list_free(&nodes);
}

/* /dev/nvidiaN, with N from NVIDIA's list in /proc. */
static void read_nvidia_node(const char *root, cleat_card_slot *card) {
    char path[DOCTOR_PATH], minor[16];
    snprintf(path, sizeof path, "/proc/driver/nvidia/gpus/%s/information", card->address);
    if (cleat_root_field(root, path, "Device Minor:", minor, sizeof minor))
        snprintf(card->node, sizeof card->node, "/dev/nvidia%s", minor);
    snprintf(card->more_nodes[0], sizeof card->more_nodes[0], "/dev/nvidiactl");
    snprintf(card->more_nodes[1], sizeof card->more_nodes[1], "/dev/nvidia-uvm");
}

static void parse_address(cleat_card_slot *card) {
    card->bus = -1;
    if (sscanf(card->address, "%x:%x:%x.%x", (unsigned *)&card->domain, (unsigned *)&card->bus, (unsigned *)&card->slot,
               (unsigned *)&card->function) != 4)
        card->bus = -1;
}

static bool read_slot(const char *root, const char *address, cleat_card_slot *card) {
    char folder[DOCTOR_PATH];
    *card = (cleat_card_slot){0};
    snprintf(folder, sizeof folder, "/sys/bus/pci/devices/%.20s", address);
    card->pci_class = read_hex(root, folder, "class") >> 16;
    if (card->pci_class != CLASS_DISPLAY && card->pci_class != CLASS_ACCELERATOR) return false;
    snprintf(card->address, sizeof card->address, "%.20s", address);
    card->vendor = read_hex(root, folder, "vendor");
    card->device = read_hex(root, folder, "device");
    parse_address(card);
    find_name(root, card);
    read_driver(root, folder, card);
    if (card->vendor == PCI_NVIDIA)
        read_nvidia_node(root, card);
    else
        read_render_node(root, folder, card);
    return true;
}

static size_t read_sysfs(const char *root, cleat_card_slot cards[DOCTOR_CARDS]) {
    char folder[DOCTOR_PATH];
    cleat_name_list slots = {0};
    size_t count = 0;
    cleat_root_path(root, "/sys/bus/pci/devices", folder);
    if (cleat_listing_read(folder, NULL, &slots, NULL) != CLEAT_OK) return 0;
    for (size_t i = 0; i < slots.count && count < DOCTOR_CARDS; ++i)
        if (read_slot(root, slots.names[i], &cards[count])) ++count;
    cleat_name_list_free(&slots);
    return count;
}

static bool is_known(const cleat_card_slot *cards, size_t count, const char *address) {
    for (size_t i = 0; i < count; ++i)
        if (strcasecmp(cards[i].address, address) == 0) return true;
    return false;
}

static void read_nvidia_entry(const char *root, const char *address, cleat_card_slot *card) {
    char path[DOCTOR_PATH], model[112] = "card";
    *card = (cleat_card_slot){.pci_class = CLASS_DISPLAY, .vendor = PCI_NVIDIA};
    snprintf(card->address, sizeof card->address, "%.20s", address);
    parse_address(card);
    snprintf(path, sizeof path, "/proc/driver/nvidia/gpus/%s/information", card->address);
    cleat_root_field(root, path, "Model:", model, sizeof model);
    snprintf(card->name, sizeof card->name, "NVIDIA %s", model);
    snprintf(card->kernel_driver, sizeof card->kernel_driver, "nvidia");
    read_nvidia_node(root, card);
}

static size_t read_nvidia_list(const char *root, cleat_card_slot cards[DOCTOR_CARDS], size_t count) {
    char folder[DOCTOR_PATH];
    cleat_name_list entries = {0};
    cleat_root_path(root, "/proc/driver/nvidia/gpus", folder);
    if (cleat_listing_read(folder, NULL, &entries, NULL) != CLEAT_OK) return count;
    for (size_t i = 0; i < entries.count && count < DOCTOR_CARDS; ++i)
        if (!is_known(cards, count, entries.names[i])) read_nvidia_entry(root, entries.names[i], &cards[count++]);
    cleat_name_list_free(&entries);
    return count;
}

/* If /proc is hidden as well, a node is the only trace of a card. */
static size_t read_nvidia_nodes(const char *root, cleat_card_slot cards[DOCTOR_CARDS], size_t count) {
    for (size_t i = 0; i < count; ++i)
        if (cards[i].vendor == PCI_NVIDIA) return count;
    for (int i = 0; i < 8 && count < DOCTOR_CARDS; ++i) {
        char node[32];
        snprintf(node, sizeof node, "/dev/nvidia%d", i);
        if (!cleat_root_exists(root, node)) continue;
        cleat_card_slot *card = &cards[count++];
        *card = (cleat_card_slot){.pci_class = CLASS_DISPLAY, .vendor = PCI_NVIDIA, .bus = -1};
        snprintf(card->name, sizeof card->name, "NVIDIA card of %s", node);
        snprintf(card->kernel_driver, sizeof card->kernel_driver, "nvidia");
        snprintf(card->node, sizeof card->node, "%s", node);
        snprintf(card->more_nodes[0], sizeof card->more_nodes[0], "/dev/nvidiactl");
    }
    return count;
}

/* Without NVIDIA's list in /proc, the n-th card is assumed to be /dev/nvidiaN. */
static void assume_nvidia_nodes(cleat_card_slot cards[DOCTOR_CARDS], size_t count) {
    int minor = 0;
    for (size_t i = 0; i < count; ++i) {
        if (cards[i].vendor != PCI_NVIDIA) continue;
        if (!cards[i].node[0]) snprintf(cards[i].node, sizeof cards[i].node, "/dev/nvidia%d", minor);
        ++minor;
    }
}

static size_t read_adapters(cleat_card_slot cards[DOCTOR_CARDS]) {
    cleat_display_adapter adapters[DOCTOR_CARDS];
    const size_t count = cleat_display_adapters(adapters, DOCTOR_CARDS);
    for (size_t i = 0; i < count; ++i) {
        const cleat_display_adapter *from = &adapters[i];
        cards[i] = (cleat_card_slot){.pci_class = CLASS_DISPLAY, .vendor = from->vendor, .device = from->device};
        cards[i].bus = from->bus;
        cards[i].slot = from->slot;
        cards[i].function = from->function;
        snprintf(cards[i].name, sizeof cards[i].name, "%s", from->name);
        snprintf(cards[i].kernel_driver, sizeof cards[i].kernel_driver, "%s", from->driver);
    }
    return count;
}

size_t cleat_cards_read(const char *root, cleat_card_slot cards[DOCTOR_CARDS]) {
    size_t count = root[0] ? 0 : read_adapters(cards);
    if (count > 0) return count;
    count = read_sysfs(root, cards);
    count = read_nvidia_list(root, cards, count);
    count = read_nvidia_nodes(root, cards, count);
    assume_nvidia_nodes(cards, count);
    return count;
}

/* Checks of each OpenCL driver, and of each device that the drivers list. */
#include "doctor/doctor.h"
#include "platform/files.h"

#include <stdlib.h>
#include <string.h>

static bool is_for_cards(const cleat_driver *driver) {
    return cleat_driver_serves(driver->family, PCI_NVIDIA) || cleat_driver_serves(driver->family, PCI_AMD) ||
           cleat_driver_serves(driver->family, PCI_INTEL);
}

/* The first card that this driver supports and that no driver lists although nothing blocks it; NULL: none. */
static const cleat_card_slot *waiting_card(const cleat_doctor *doctor, const cleat_driver *driver) {
    for (size_t i = 0; i < doctor->n_cards; ++i) {
        const cleat_card_slot *card = &doctor->cards[i];
        if (!card->blocked && cleat_driver_serves(driver->family, card->vendor) && !cleat_card_device(doctor, card))
            return card;
    }
    return NULL;
}

/* A broken driver does no harm if its cards are absent or another driver supports them. */
static void lower_if_unneeded(const cleat_doctor *doctor, const cleat_driver *driver, cleat_doctor_check *check) {
    if (is_for_cards(driver) && !waiting_card(doctor, driver)) cleat_check_lower(check);
}

/* Whether dlopen missed the library itself, not one that it needs. */
static bool is_missing(const cleat_driver *driver) {
    if (strchr(driver->library, '/') && access(driver->library, F_OK) != 0) return true;
    return strncmp(driver->load_error, driver->library, strlen(driver->library)) == 0 &&
           strstr(driver->load_error, "No such file");
}

/* Returns true if the library is loaded and looks like a driver. */
static bool check_loads(cleat_doctor *doctor, const cleat_driver *driver) {
    const char *file = driver->file[0] ? driver->file : driver->library;
    cleat_doctor_check *check = NULL;
    if (!driver->readable)
        check = cleat_doctor_fault(doctor, "icd-file-unreadable", NULL, file, "%s", file);
    else if (!driver->library[0])
        check = cleat_doctor_fault(doctor, "icd-file-empty", NULL, file, "%s names no library", file);
    else if (driver->child == CHILD_HUNG || driver->child == CHILD_CRASHED) {
        cleat_doctor_fault(doctor, driver->child == CHILD_HUNG ? "driver-hangs" : "driver-crashes", NULL, file,
                           "%s: %s", driver->library, driver->end);
        return false;
    } else if (!driver->loads)
        check = cleat_doctor_fault(doctor, is_missing(driver) ? "icd-library-missing" : "icd-library-broken", NULL,
                                   file, "%s", driver->load_error);
    else if (!driver->has_entry)
        check = cleat_doctor_fault(doctor, "icd-library-not-opencl", NULL, file, "%s", driver->loaded_from);
    if (check) {
        lower_if_unneeded(doctor, driver, check);
        return false;
    }
    cleat_doctor_ok(doctor, "icd-library", "%s loads", driver->loaded_from[0] ? driver->loaded_from : driver->library);
    return true;
}

static void report_no_device(cleat_doctor *doctor, const cleat_driver *driver) {
    const cleat_card_slot *card = waiting_card(doctor, driver);
    const char *file = driver->file[0] ? driver->file : driver->library, *enabled = getenv("RUSTICL_ENABLE");
    if (is_for_cards(driver) && !card)
        cleat_doctor_skip(doctor, "driver-without-card", "%s%s%slists no device, and no card depends on it",
                          driver->n_platforms ? "platform '" : "", driver->platforms[0],
                          driver->n_platforms ? "' " : "");
    else if (driver->n_platforms == 0)
        cleat_doctor_fault(doctor, "driver-no-platform", NULL, file, "clGetPlatformIDs gives none");
    else if (driver->family == DRIVER_RUSTICL && (!enabled || !enabled[0]))
        cleat_doctor_fault(doctor, "rusticl-disabled", NULL, card->vendor == PCI_INTEL ? "iris" : "radeonsi",
                           "platform '%s' lists no device; RUSTICL_ENABLE is not set", driver->platforms[0]);
    else if (driver->family == DRIVER_CLOVER)
        cleat_doctor_fault(doctor, "clover-no-device", NULL, NULL, "platform '%s' lists no device",
                           driver->platforms[0]);
    else
        cleat_doctor_fault(doctor, "driver-no-device", NULL, NULL, "platform '%s' lists no device",
                           driver->platforms[0]);
}

static void check_driver(cleat_doctor *doctor, const cleat_driver *driver) {
    cleat_doctor_section(doctor, "driver", "driver %s", driver->file[0] ? driver->file : driver->library);
    if (!check_loads(doctor, driver)) return;
    if (driver->refused[0]) {
        cleat_doctor_check *check = cleat_doctor_fault(doctor, "device-refused", NULL, NULL, "%s", driver->refused);
        if (driver->n_devices > 0) cleat_check_lower(check);
        lower_if_unneeded(doctor, driver, check);
    }
    if (driver->n_devices > 0)
        cleat_doctor_ok(doctor, "platform", "%s: %zu device%s", driver->platforms[0], driver->n_devices,
                        driver->n_devices == 1 ? "" : "s");
    else if (!driver->refused[0])
        report_no_device(doctor, driver);
}

static void check_no_drivers(cleat_doctor *doctor) {
    cleat_doctor_section(doctor, "driver", "OpenCL drivers");
    const char *variable = doctor->vendors_set_by;
    if (doctor->system.windows && doctor->n_devices > 0)
        cleat_doctor_skip(doctor, "icd-none", "the registry names no driver, but the OpenCL loader finds devices");
    else if (doctor->vendors_exist)
        cleat_doctor_fault(doctor, "icd-none", NULL, doctor->vendors, "%s %s", doctor->vendors,
                           doctor->system.windows ? "names no driver" : "contains no .icd file");
    else if (variable)
        cleat_doctor_fault(doctor, "icd-folder-missing", "variable", variable, "%s=%s does not exist", variable,
                           doctor->vendors);
    else
        cleat_doctor_fault(doctor, "icd-folder-missing", NULL, NULL, "%s does not exist", doctor->vendors);
}

static void check_together(cleat_doctor *doctor) {
    if (doctor->listing != CHILD_HUNG && doctor->listing != CHILD_CRASHED) return;
    cleat_doctor_section(doctor, "driver", "all drivers together");
    cleat_doctor_fault(doctor, "drivers-together-fail", NULL, doctor->vendors, "%s", doctor->listing_end);
}

void cleat_check_drivers(cleat_doctor *doctor) {
    for (size_t i = 0; i < doctor->n_drivers; ++i) check_driver(doctor, &doctor->drivers[i]);
    if (doctor->n_drivers == 0) check_no_drivers(doctor);
    check_together(doctor);
}

/* After a correct result only the test of the matrix unit remains. If it does not finish in time, the first run
 * repeats it; but a crash in it would end that run too. */
const char *cleat_device_fault(const cleat_doctor_device *device) {
    if (device->child == CHILD_CRASHED) return "device-crashes";
    if (device->computes || device->untried) return NULL;
    if (device->child == CHILD_HUNG) return "device-hangs";
    if (device->wrong) return "device-wrong-result";
    if (device->processor_unknown) return "pocl-processor-unknown";
    return device->build_failed ? "device-build-fails" : "device-open-fails";
}

static void check_computes(cleat_doctor *doctor, const cleat_doctor_device *device) {
    const char *code = cleat_device_fault(device);
    const char *variant = device->facts.vendor == CLEAT_VENDOR_AMD ? "amd" : NULL;
    if (!code)
        cleat_doctor_ok(doctor, "computes", "a kernel was compiled, ran and gave correct results");
    else if (device->failure[0])
        cleat_doctor_fault(doctor, code, variant, NULL, "%s", device->failure);
    else
        cleat_doctor_fault(doctor, code, variant, NULL, "while %s: %s",
                           device->computes ? "testing its matrix unit" : device->step, device->end);
}

static void check_memory(cleat_doctor *doctor, const cleat_device_facts *facts) {
    enum { LOW_SHARE = 10 };
    char total[CLEAT_BYTES_TEXT], available[CLEAT_BYTES_TEXT];
    cleat_bytes_text(facts->memory_total, total);
    cleat_bytes_text(facts->memory_free, available);
    if (facts->memory_free <= 0)
        cleat_doctor_skip(doctor, "device-memory", "%s; this driver does not report the free memory", total);
    else if (facts->kind == CLEAT_DEVICE_GPU && facts->memory_free < facts->memory_total / LOW_SHARE)
        cleat_doctor_fault(doctor, "device-memory-low", NULL, NULL, "%s of %s are free (%s)", available, total,
                           facts->memory_source);
    else
        cleat_doctor_ok(doctor, "device-memory", "%s of %s are free (%s)", available, total, facts->memory_source);
}

static void check_matrix_unit(cleat_doctor *doctor, const cleat_doctor_device *device) {
    if (device->facts.kind != CLEAT_DEVICE_GPU || !device->computes) return;
    if (!device->matrix_known)
        cleat_doctor_skip(doctor, "matrix-unit", "the test did not finish in time; the first run repeats it");
    else
        cleat_doctor_ok(doctor, "matrix-unit", "%s%s", cleat_matrix_unit_text(device->facts.matrix_unit),
                        device->facts.matrix_unit == CLEAT_MATRIX_NONE
                            ? ": half precision only for storage, not for products"
                        : device->facts.matrix_bf16 ? ", f16 and bf16"
                                                    : ", f16");
}

void cleat_check_devices(cleat_doctor *doctor) {
    for (size_t i = 0; i < doctor->n_devices; ++i) {
        const cleat_doctor_device *device = &doctor->devices[i];
        const cleat_device_facts *facts = &device->facts;
        cleat_doctor_section(doctor, "device", "device %zu: %s", i, facts->name);
        cleat_doctor_ok(doctor, "device", "%s, %s, driver %s, %d compute units", cleat_device_kind_text(facts->kind),
                        facts->platform, facts->driver, (int)facts->compute_units);
        check_computes(doctor, device);
        check_memory(doctor, facts);
        check_matrix_unit(doctor, device);
    }
}

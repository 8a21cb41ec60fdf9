/* The run of the doctor: reads cards, drivers and devices, checks them, and decides whether cleat can train here. */
#include "doctor/doctor.h"
#include "core/clock.h"
#include "core/cpus.h"
#include "core/memory.h"
#include "device/probe.h"
#include "platform/system.h"
#include "platform/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double default_seconds = 5;

/* Lowers failures that do not concern the requested device: another card that cannot be used is a warning if a GPU
 * works, or if a certain device was requested. */
static void lower_others(cleat_doctor *doctor) {
    bool certain = strcasecmp(doctor->request.device, "auto") != 0;
    if (!certain && doctor->report->device.kind != CLEAT_DEVICE_GPU) return;
    for (size_t s = 0; s < doctor->report->count; ++s) {
        cleat_doctor_subject *section = &doctor->report->sections[s];
        bool device = strcmp(section->name, "device") == 0;
        if (strcmp(section->name, "card") != 0 && strcmp(section->name, "driver") != 0 && !(device && certain))
            continue;
        for (size_t c = 0; c < section->count; ++c) cleat_check_lower(&section->checks[c]);
    }
}

static void report_unusable(cleat_doctor *doctor, const char *variant, const char *reason) {
    cleat_doctor_fault(doctor, "no-usable-device", variant, reason, "%s (--device %s)", reason, doctor->request.device);
}

/* The message of the selection ends with the list of devices, which the report already contains. */
static void report_unselected(cleat_doctor *doctor, char *text) {
    char *advice = strstr(text, ". Use auto");
    if (advice) *advice = 0;
    report_unusable(doctor, "wanted", text);
}

static void report_chosen(cleat_doctor *doctor, size_t index) {
    const cleat_doctor_device *device = &doctor->devices[index];
    const char *fault = cleat_device_fault(device);
    char reason[256];
    if (fault) {
        snprintf(reason, sizeof reason, "device %zu (%s) fails: %s", index, device->facts.name, fault);
        report_unusable(doctor, "wanted", reason);
        return;
    }
    doctor->report->usable = true;
    doctor->report->device_index = index;
    doctor->report->device = device->facts;
    lower_others(doctor);
    cleat_doctor_ok(doctor, "device-usable", "device %zu: %s (%s)", index, device->facts.name, device->facts.platform);
}

static void check_result(cleat_doctor *doctor) {
    const cleat_device_facts *facts[DOCTOR_DEVICES];
    cleat_error error = {0};
    size_t index = 0;
    cleat_doctor_section(doctor, "result", "result");
    for (size_t i = 0; i < doctor->n_devices; ++i) facts[i] = &doctor->devices[i].facts;
    if (doctor->n_devices == 0)
        report_unusable(doctor, doctor->report->result == CLEAT_CHECK_FAIL ? "explained" : NULL,
                        doctor->listing == CHILD_ANSWERED ? "no OpenCL driver lists a device"
                        : doctor->n_drivers == 0          ? "no OpenCL driver is registered"
                                                          : "an OpenCL driver hangs or crashes");
    else if (cleat_select_device(facts, doctor->n_devices, doctor->request.device, &index, &error) != CLEAT_OK)
        report_unselected(doctor, error.text);
    else
        report_chosen(doctor, index);
}

/* Copies what is known about the devices into the report. */
static void report_devices(cleat_doctor *doctor) {
    cleat_doctor_report *report = doctor->report;
    if (doctor->status || doctor->n_devices == 0) return;
    report->devices = cleat_alloc(doctor->n_devices, sizeof *report->devices);
    if (!report->devices) {
        doctor->status = cleat_fail(&doctor->error, CLEAT_ERR_MEMORY, "no memory for the list of devices");
        return;
    }
    report->n_devices = doctor->n_devices;
    for (size_t i = 0; i < doctor->n_devices; ++i) {
        const cleat_doctor_device *device = &doctor->devices[i];
        const char *fault = cleat_device_fault(device);
        report->devices[i].facts = device->facts;
        if (fault)
            snprintf(report->devices[i].failure, sizeof report->devices[i].failure, "%s: %.590s", fault,
                     device->failure[0] ? device->failure : device->end);
    }
}

/* How many runnable threads share a CPU, from 1 to 10: a driver on a busy machine is slow, but does not hang. */
static double load_of_machine(void) {
    double load = 0;
    if (getloadavg(&load, 1) != 1) return 1;
    load /= cleat_cpus();
    return load < 1 ? 1 : load > 10 ? 10 : load;
}

double cleat_doctor_patience(const cleat_doctor *doctor) {
    double cards = doctor->n_cards > 1 ? (double)doctor->n_cards : 1;
    return 0.7 * doctor->request.seconds * cards * load_of_machine();
}

static void run_checks(cleat_doctor *doctor) {
    cleat_system_read(doctor->root, &doctor->system);
    doctor->n_cards = cleat_cards_read(doctor->root, doctor->cards);
    cleat_drivers_read(doctor);
    cleat_devices_read(doctor);
    doctor->n_cards = cleat_cards_read(doctor->root, doctor->cards); /* again: drivers make NVIDIA's nodes */
    cleat_check_cards(doctor);
    cleat_check_drivers(doctor);
    if (!doctor->request.list_only) {
        cleat_check_devices(doctor);
        cleat_check_host(doctor);
    }
    check_result(doctor);
    report_devices(doctor);
}

cleat_doctor *cleat_doctor_create(const cleat_doctor_request *request, cleat_error *error) {
    cleat_doctor *doctor = cleat_alloc(1, sizeof *doctor);
    if (doctor) {
        doctor->report = cleat_alloc(1, sizeof *doctor->report);
        doctor->drivers = cleat_alloc(DOCTOR_DRIVERS, sizeof *doctor->drivers);
        doctor->devices = cleat_alloc(DOCTOR_DEVICES, sizeof *doctor->devices);
    }
    if (!doctor || !doctor->report || !doctor->drivers || !doctor->devices) {
        cleat_doctor_destroy(doctor);
        cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a report about this machine");
        return NULL;
    }
    doctor->request = *request;
    doctor->root = cleat_root_of(request);
    if (!request->device) doctor->request.device = "auto";
    if (!request->run_folder) doctor->request.run_folder = "runs";
    if (!(request->seconds > 0)) doctor->request.seconds = default_seconds;
    return doctor;
}

void cleat_doctor_destroy(cleat_doctor *doctor) {
    if (!doctor) return;
    cleat_doctor_free(doctor->report);
    cleat_free(doctor->drivers);
    cleat_free(doctor->devices);
    cleat_free(doctor);
}

cleat_status cleat_doctor_run(const cleat_doctor_request *request, cleat_doctor_report **report, cleat_error *error) {
    double start = cleat_seconds();
    cleat_doctor *doctor = cleat_doctor_create(request, error);
    if (!doctor) return CLEAT_ERR_MEMORY;
    run_checks(doctor);
    doctor->report->seconds = cleat_seconds() - start;
    cleat_status status = doctor->status;
    if (status) {
        if (error) *error = doctor->error;
    } else {
        *report = doctor->report;
        doctor->report = NULL;
    }
    cleat_doctor_destroy(doctor);
    return status;
}

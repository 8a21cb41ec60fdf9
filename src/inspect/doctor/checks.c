/* The report of the doctor: sections, checks, and the severity of both. */
#include "core/memory.h"
#include "doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *cleat_doctor_result_text(cleat_doctor_result result) {
    static const char *const texts[] = {"ok", "skipped", "warn", "fail"};
    return (unsigned)result < 4 ? texts[result] : "?";
}

/* A skipped check is neither good nor bad: it does not change the result of its section. */
static void raise_result(cleat_doctor_result *result, cleat_doctor_result by) {
    if (by > *result && by != CLEAT_CHECK_SKIPPED) *result = by;
}

static cleat_status add_section(cleat_doctor_report *report, const char *name, cleat_doctor_subject **section,
                                cleat_error *error) {
    cleat_status status = cleat_grow(&report->sections, report->count, &report->capacity, error);
    if (status) return status;
    *section = &report->sections[report->count++];
    snprintf((*section)->name, sizeof(*section)->name, "%s", name);
    return CLEAT_OK;
}

static cleat_status add_check(cleat_doctor_subject *section, const cleat_doctor_check *check, cleat_error *error) {
    cleat_status status = cleat_grow(&section->checks, section->count, &section->capacity, error);
    if (status) return status;
    section->checks[section->count++] = *check;
    return CLEAT_OK;
}

/* A failed check fails its section, and a failed section the report. */
static void count_results(cleat_doctor_report *report) {
    report->result = CLEAT_CHECK_OK;
    for (size_t s = 0; s < report->count; ++s) {
        cleat_doctor_subject *section = &report->sections[s];
        section->result = CLEAT_CHECK_OK;
        for (size_t c = 0; c < section->count; ++c) raise_result(&section->result, section->checks[c].result);
        raise_result(&report->result, section->result);
    }
}

cleat_status cleat_doctor_add(cleat_doctor_report *report, const char *name, const char *title,
                              const cleat_doctor_check *check, cleat_error *error) {
    cleat_doctor_subject *section = NULL;
    cleat_status status = CLEAT_OK;
    for (size_t s = 0; s < report->count && !section; ++s)
        if (strcmp(report->sections[s].name, name) == 0) section = &report->sections[s];
    if (!section) {
        status = add_section(report, name, &section, error);
        if (!status) snprintf(section->title, sizeof section->title, "%s", title);
    }
    if (!status) status = add_check(section, check, error);
    count_results(report);
    return status;
}

const cleat_doctor_check *cleat_doctor_find(const cleat_doctor_report *report, const char *code) {
    for (size_t s = 0; s < report->count; ++s)
        for (size_t c = 0; c < report->sections[s].count; ++c)
            if (strcmp(report->sections[s].checks[c].code, code) == 0) return &report->sections[s].checks[c];
    return NULL;
}

void cleat_doctor_describe(const char *code, cleat_doctor_check *check) {
    cleat_system system;
    cleat_system_read(cleat_root_of(&(cleat_doctor_request){.root = NULL}), &system);
    *check = (cleat_doctor_check){.result = CLEAT_CHECK_FAIL};
    snprintf(check->code, sizeof check->code, "%s", code);
    cleat_fault_describe(&system, NULL, NULL, check);
}

void cleat_doctor_free(cleat_doctor_report *report) {
    if (!report) return;
    for (size_t s = 0; s < report->count; ++s) cleat_free(report->sections[s].checks);
    cleat_free(report->sections);
    cleat_free(report->devices);
    cleat_free(report);
}

void cleat_doctor_section(cleat_doctor *doctor, const char *name, const char *title, ...) {
    cleat_doctor_subject *section = NULL;
    va_list arguments;
    if (doctor->status) return;
    doctor->status = add_section(doctor->report, name, &section, &doctor->error);
    if (doctor->status) return;
    va_start(arguments, title);
    vsnprintf(section->title, sizeof section->title, title, arguments);
    va_end(arguments);
}

static cleat_doctor_check *append(cleat_doctor *doctor, cleat_doctor_check *check, const char *evidence,
                                  va_list arguments) {
    cleat_doctor_report *report = doctor->report;
    if (doctor->status) return NULL;
    vsnprintf(check->evidence, sizeof check->evidence, evidence, arguments);
    cleat_doctor_subject *section = &report->sections[report->count - 1];
    doctor->status = add_check(section, check, &doctor->error);
    count_results(report);
    return doctor->status ? NULL : &section->checks[section->count - 1];
}

static cleat_doctor_check new_check(const char *code, cleat_doctor_result result) {
    cleat_doctor_check check = {.result = result};
    snprintf(check.code, sizeof check.code, "%s", code);
    return check;
}

void cleat_doctor_ok(cleat_doctor *doctor, const char *code, const char *evidence, ...) {
    cleat_doctor_check check = new_check(code, CLEAT_CHECK_OK);
    va_list arguments;
    va_start(arguments, evidence);
    append(doctor, &check, evidence, arguments);
    va_end(arguments);
}

void cleat_doctor_skip(cleat_doctor *doctor, const char *code, const char *evidence, ...) {
    cleat_doctor_check check = new_check(code, CLEAT_CHECK_SKIPPED);
    va_list arguments;
    va_start(arguments, evidence);
    append(doctor, &check, evidence, arguments);
    va_end(arguments);
}

cleat_doctor_check *cleat_doctor_fault(cleat_doctor *doctor, const char *code, const char *variant,
                                       const char *argument, const char *evidence, ...) {
    cleat_doctor_check check = new_check(code, CLEAT_CHECK_FAIL);
    cleat_fault_describe(&doctor->system, variant, argument, &check);
    va_list arguments;
    va_start(arguments, evidence);
    cleat_doctor_check *added = append(doctor, &check, evidence, arguments);
    va_end(arguments);
    return added;
}

/* The report as text for a person, and as JSON. */
#include "core/json.h"
#include "core/memory.h"
#include "doctor/doctor.h"

#include <string.h>

static cleat_status write_all(cleat_text *text, cleat_doctor_write_fn write, void *user, cleat_error *error) {
    char *whole = NULL;
    cleat_status status = cleat_text_detach(text, &whole, error);
    if (!status) write(user, whole);
    cleat_free(whole);
    return status;
}

/* --- text ------------------------------------------------------------------------------------------------------ */

static void add_check_text(cleat_text *text, const cleat_check *check) {
    cleat_text_add(text, "  %-7s %-24s %s\n", cleat_check_result_text(check->result), check->code, check->evidence);
    if (check->cause[0]) cleat_text_add(text, "          cause: %s\n", check->cause);
    for (size_t i = 0; i < check->n_commands; ++i) cleat_text_add(text, "          > %s\n", check->commands[i]);
}

cleat_status cleat_doctor_write_text(const cleat_doctor_report *report, cleat_doctor_write_fn write, void *user,
                                     cleat_error *error) {
    cleat_text text = {0};
    for (size_t s = 0; s < report->count; ++s) {
        const cleat_check_section *section = &report->sections[s];
        cleat_text_add(&text, "%s[%s] %s\n", s ? "\n" : "", cleat_check_result_text(section->result), section->title);
        for (size_t c = 0; c < section->count; ++c) add_check_text(&text, &section->checks[c]);
    }
    return write_all(&text, write, user, error);
}

/* --- JSON ------------------------------------------------------------------------------------------------------ */

static void add_member(cleat_text *text, const char *name, const char *value) {
    cleat_text_add(text, "\"%s\": ", name);
    cleat_json_add_string(text, value);
}

static void add_check_json(cleat_text *text, const cleat_check *check) {
    cleat_text_add(text, "{");
    add_member(text, "code", check->code);
    cleat_text_add(text, ", ");
    add_member(text, "result", cleat_check_result_text(check->result));
    cleat_text_add(text, ", ");
    add_member(text, "evidence", check->evidence);
    cleat_text_add(text, ", ");
    add_member(text, "cause", check->cause);
    cleat_text_add(text, ", \"commands\": [");
    for (size_t i = 0; i < check->n_commands; ++i) {
        if (i) cleat_text_add(text, ", ");
        cleat_json_add_string(text, check->commands[i]);
    }
    cleat_text_add(text, "]}");
}

static void add_section_json(cleat_text *text, const cleat_check_section *section) {
    cleat_text_add(text, "{");
    add_member(text, "section", section->name);
    cleat_text_add(text, ", ");
    add_member(text, "title", section->title);
    cleat_text_add(text, ", ");
    add_member(text, "result", cleat_check_result_text(section->result));
    cleat_text_add(text, ", \"checks\": [");
    for (size_t c = 0; c < section->count; ++c) {
        if (c) cleat_text_add(text, ", ");
        add_check_json(text, &section->checks[c]);
    }
    cleat_text_add(text, "]}");
}

static void add_device_json(cleat_text *text, const cleat_doctor_report *report) {
    cleat_text_add(text, "\"device\": ");
    if (!report->usable) {
        cleat_text_add(text, "null");
        return;
    }
    cleat_text_add(text, "{\"index\": %zu, ", report->device_index);
    add_member(text, "name", report->device.name);
    cleat_text_add(text, ", ");
    add_member(text, "platform", report->device.platform);
    cleat_text_add(text, ", ");
    add_member(text, "driver", report->device.driver);
    cleat_text_add(text, "}");
}

static void add_devices_json(cleat_text *text, const cleat_doctor_report *report) {
    cleat_text_add(text, "\"devices\": [");
    for (size_t i = 0; i < report->n_devices; ++i) {
        cleat_text_add(text, "%s{\"index\": %zu, ", i ? ", " : "", i);
        add_member(text, "name", report->devices[i].facts.name);
        cleat_text_add(text, ", ");
        add_member(text, "platform", report->devices[i].facts.platform);
        cleat_text_add(text, ", \"failure\": ");
        if (report->devices[i].failure[0])
            cleat_json_add_string(text, report->devices[i].failure);
        else
            cleat_text_add(text, "null");
        cleat_text_add(text, "}");
    }
    cleat_text_add(text, "]");
}

cleat_status cleat_doctor_write_json(const cleat_doctor_report *report, cleat_doctor_write_fn write, void *user,
                                     cleat_error *error) {
    cleat_text text = {0};
    char seconds[32];
    cleat_number_print_digits(report->seconds, 3, seconds);
    cleat_text_add(&text, "{");
    add_member(&text, "cleat", cleat_version());
    cleat_text_add(&text, ", ");
    add_member(&text, "result", cleat_check_result_text(report->result));
    cleat_text_add(&text, ", \"usable\": %s, ", report->usable ? "true" : "false");
    add_device_json(&text, report);
    cleat_text_add(&text, ", ");
    add_devices_json(&text, report);
    cleat_text_add(&text, ", \"seconds\": %s, \"sections\": [", seconds);
    for (size_t s = 0; s < report->count; ++s) {
        if (s) cleat_text_add(&text, ", ");
        add_section_json(&text, &report->sections[s]);
    }
    cleat_text_add(&text, "]}\n");
    return write_all(&text, write, user, error);
}

/* The report as text for a person, and as JSON. */
#include "core/json.h"
#include "core/memory.h"
#include "doctor/doctor.h"

#include <string.h>

static cleat_status write_all(cleat_string *text, cleat_doctor_write_fn write, void *user, cleat_error *error) {
    char *whole = NULL;
    cleat_status status = cleat_string_detach(text, &whole, error);
    if (!status) write(user, whole);
    cleat_free(whole);
    return status;
}

static void add_check_text(cleat_string *text, const cleat_doctor_check *check) {
    cleat_string_add(text, "  %-7s %-24s %s\n", cleat_doctor_result_text(check->result), check->code, check->evidence);
    if (check->cause[0]) cleat_string_add(text, "          cause: %s\n", check->cause);
    for (size_t i = 0; i < check->n_commands; ++i) cleat_string_add(text, "          > %s\n", check->commands[i]);
}

cleat_status cleat_doctor_write_text(const cleat_doctor_report *report, cleat_doctor_write_fn write, void *user,
                                     cleat_error *error) {
    cleat_string text = {0};
    for (size_t s = 0; s < report->count; ++s) {
        const cleat_doctor_subject *section = &report->sections[s];
        cleat_string_add(&text, "%s[%s] %s\n", s ? "\n" : "", cleat_doctor_result_text(section->result),
                         section->title);
        for (size_t c = 0; c < section->count; ++c) add_check_text(&text, &section->checks[c]);
    }
    return write_all(&text, write, user, error);
}

static void add_check_json(cleat_string *json, const cleat_doctor_check *check) {
    json_add(json, json_open(NULL, '{'), json_text("code", check->code),
             json_text("result", cleat_doctor_result_text(check->result)), json_text("evidence", check->evidence),
             json_text("cause", check->cause), json_open("commands", '['));
    for (size_t i = 0; i < check->n_commands; ++i) json_add(json, json_text(NULL, check->commands[i]));
    json_add(json, json_close(']'), json_close('}'));
}

static void add_section_json(cleat_string *json, const cleat_doctor_subject *section) {
    json_add(json, json_open(NULL, '{'), json_text("section", section->name), json_text("title", section->title),
             json_text("result", cleat_doctor_result_text(section->result)), json_open("checks", '['));
    for (size_t c = 0; c < section->count; ++c) add_check_json(json, &section->checks[c]);
    json_add(json, json_close(']'), json_close('}'));
}

static void add_devices_json(cleat_string *json, const cleat_doctor_report *report) {
    const cleat_device_facts *facts = &report->device;
    if (report->usable)
        json_add(json, json_open("device", '{'), json_count("index", (int64_t)report->device_index),
                 json_text("name", facts->name), json_text("platform", facts->platform),
                 json_text("driver", facts->driver), json_close('}'));
    else
        json_add(json, json_text("device", NULL));
    json_add(json, json_open("devices", '['));
    for (size_t i = 0; i < report->n_devices; ++i) {
        facts = &report->devices[i].facts;
        json_add(json, json_open(NULL, '{'), json_count("index", (int64_t)i), json_text("name", facts->name),
                 json_text("platform", facts->platform), json_some("failure", report->devices[i].failure),
                 json_close('}'));
    }
    json_add(json, json_close(']'));
}

cleat_status cleat_doctor_write_json(const cleat_doctor_report *report, cleat_doctor_write_fn write, void *user,
                                     cleat_error *error) {
    cleat_string json = {.spaced = true};
    json_add(&json, json_open(NULL, '{'), json_text("cleat", cleat_version()),
             json_text("result", cleat_doctor_result_text(report->result)), json_bool("usable", report->usable));
    add_devices_json(&json, report);
    json_add(&json, json_digits("seconds", report->seconds, 3), json_open("sections", '['));
    for (size_t s = 0; s < report->count; ++s) add_section_json(&json, &report->sections[s]);
    json_add(&json, json_close(']'), json_close('}'));
    cleat_string_add(&json, "\n");
    return write_all(&json, write, user, error);
}

/* Checks of a machine: installed cards, drivers, permissions, whether a kernel computes correct results, and
 * the limits of the host. `cleat doctor` prints the report. The checks install and change nothing, except
 * that the cache folder is created.
 *
 * Everything that cleat_doctor_run asks of a driver runs in a child process with a timeout, because drivers
 * hang and crash. As for any fork, the calling process must be single-threaded and must not have used OpenCL
 * before. */
#ifndef CLEAT_DOCTOR_H
#define CLEAT_DOCTOR_H

#include "cleat/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In the order of severity. */
typedef enum cleat_doctor_result {
    CLEAT_CHECK_OK,
    CLEAT_CHECK_SKIPPED, /* does not apply here, or could not be decided; the evidence gives the reason */
    CLEAT_CHECK_WARN,
    CLEAT_CHECK_FAIL,
} cleat_doctor_result;

/* "ok", "skipped", "warn", "fail"; "?" for any other number. */
CLEAT_API const char *cleat_doctor_result_text(cleat_doctor_result result);

enum { CLEAT_CHECK_CODE = 40, CLEAT_CHECK_TEXT = 640, CLEAT_CHECK_COMMAND = 400, CLEAT_CHECK_COMMANDS = 4 };

/* The result of one check. Codes are stable: a program may compare them. */
typedef struct cleat_doctor_check {
    char code[CLEAT_CHECK_CODE]; /* "kernel-driver" if the check passed; otherwise the name of the fault */
    cleat_doctor_result result;
    char evidence[CLEAT_CHECK_TEXT]; /* what the check found */
    char cause[CLEAT_CHECK_TEXT];    /* why this is a fault; "" for ok */
    /* Commands that remove the cause on this distribution. They are never run by cleat. */
    char commands[CLEAT_CHECK_COMMANDS][CLEAT_CHECK_COMMAND];
    size_t n_commands;
} cleat_doctor_check;

/* Checks of one subject. */
typedef struct cleat_doctor_subject {
    char name[16];              /* "result", "card", "driver", "device", "host", "profile" */
    char title[256];            /* "card 0000:01:00.0: NVIDIA TU104GL [Tesla T4]" */
    cleat_doctor_result result; /* the most severe result of its checks */
    cleat_doctor_check *checks; /* [count] */
    size_t count, capacity;
} cleat_doctor_subject;

typedef struct cleat_doctor_request {
    /* Folder used in place of / for /sys, /proc, /dev, /etc and /usr; NULL: CLEAT_SYSTEM_ROOT, else / */
    const char *root;
    const char *device;     /* the requested device, as for cleat_device_open; NULL: auto */
    const char *run_folder; /* where checkpoints would be written; need not exist; NULL: "runs" */
    /* Only lists devices and checks cards and drivers; runs no kernel and does not check the host. */
    bool list_only;
    double seconds; /* time limit for the drivers; a card may take 0.7 of it, more under load; 0: 5 */
} cleat_doctor_request;

/* A device that the drivers list. Its number is its place in the list. */
typedef struct cleat_doctor_device_result {
    cleat_device_facts facts;
    char failure
        [CLEAT_CHECK_TEXT]; /* why it cannot be used; "" if it computes correctly, or if devices are only listed */
} cleat_doctor_device_result;

typedef struct cleat_doctor_report {
    cleat_doctor_result result;     /* the most severe result of all sections */
    bool usable;                    /* the requested device exists and, unless `list_only`, computes correctly */
    size_t device_index;            /* its number; only if `usable` */
    cleat_device_facts device;      /* its facts, matrix unit included; only if `usable` */
    double seconds;                 /* duration of all checks */
    cleat_doctor_subject *sections; /* [count] */
    size_t count, capacity;
    cleat_doctor_device_result *devices; /* [n_devices], in the order of `cleat devices` */
    size_t n_devices;
} cleat_doctor_report;

/* Runs all checks. CLEAT_OK means that the checks ran; what they found is in *report, which the caller frees with
 * cleat_doctor_free. Errors: out of memory, or no process could be created. */
CLEAT_API cleat_status cleat_doctor_run(const cleat_doctor_request *request, cleat_doctor_report **report,
                                        cleat_error *error);
/* NULL is allowed. */
CLEAT_API void cleat_doctor_free(cleat_doctor_report *report);

/* As cleat_device_open. If "auto" selects a CPU although a card of NVIDIA, AMD or Intel is installed, one
 * warning is logged with the card and the reason why it cannot be used; if no device matches, the error's
 * text has them. Starts no process and loads nothing that the OpenCL loader has not tried. */
CLEAT_API cleat_status cleat_doctor_open_device(const char *selector, cleat_device **device, cleat_error *error);

/* Appends a check of the caller to the section `name`, which is created with `title` if the report has no
 * section of this name. */
CLEAT_API cleat_status cleat_doctor_add(cleat_doctor_report *report, const char *name, const char *title,
                                        const cleat_doctor_check *check, cleat_error *error);

/* The first check with this code; NULL: none. */
CLEAT_API const cleat_doctor_check *cleat_doctor_find(const cleat_doctor_report *report, const char *code);

/* Fills severity, cause and commands of a fault that the caller found, for this distribution. `code` is one
 * of the codes of the doctor. */
CLEAT_API void cleat_doctor_describe(const char *code, cleat_doctor_check *check);

/* Receives a piece of a text; `user` as given. */
typedef void (*cleat_doctor_write_fn)(void *user, const char *text);
/* Write the report through `write`, which receives pieces of text one after the other. JSON: one object,
 *   {"cleat", "result", "usable", "device": {"index", "name", "platform", "driver"} or null,
 *    "devices": [{"index", "name", "platform", "failure": null or text}], "seconds",
 *    "sections": [{"section", "title", "result", "checks": [{"code", "result", "evidence", "cause", "commands"}]}]}. */
CLEAT_API cleat_status cleat_doctor_write_text(const cleat_doctor_report *report, cleat_doctor_write_fn write,
                                               void *user, cleat_error *error);
CLEAT_API cleat_status cleat_doctor_write_json(const cleat_doctor_report *report, cleat_doctor_write_fn write,
                                               void *user, cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif

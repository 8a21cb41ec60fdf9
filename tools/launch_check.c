/* Which devices still answer after a rank was lost. */
#include "cli_child.h"
#include "launch.h"
#include "platform/text.h"

#include <cjson/cJSON.h>
#include <cleat/doctor.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Time limit for the answer of another host, which tries all its devices. */
static const double host_seconds = 60;

static bool is_same(const cleat_device_facts *a, const cleat_device_facts *b) {
    return strcmp(a->name, b->name) == 0 && strcmp(a->platform, b->platform) == 0 && a->pci_domain == b->pci_domain &&
           a->pci_bus == b->pci_bus && a->pci_device == b->pci_device && a->pci_function == b->pci_function;
}

/* The present number of the device: the previous one if it still names the device, else that of an equal
 * device. */
static bool find_again(const cleat_doctor_report *report, const launch_rank *rank, size_t *index) {
    const size_t before = strtoul(rank->selector, NULL, 10);
    if (before < report->n_devices && is_same(&report->devices[before].facts, &rank->facts)) {
        *index = before;
        return true;
    }
    for (*index = 0; *index < report->n_devices; ++*index)
        if (is_same(&report->devices[*index].facts, &rank->facts)) return true;
    return false;
}

static cleat_status check_here(launch_ranks *ranks, cleat_error *error) {
    cleat_doctor_report *report = NULL;
    const cleat_doctor_request request = {.seconds = 10};
    cleat_status status = cleat_doctor_run(&request, &report, error);
    if (status) return status;
    for (size_t i = 0; i < ranks->count; ++i) {
        launch_rank *rank = &ranks->items[i];
        size_t index;
        if (rank->failure[0] || rank->host[0]) continue;
        if (!find_again(report, rank, &index)) {
            snprintf(rank->failure, sizeof rank->failure, "its driver no longer lists it");
            continue;
        }
        snprintf(rank->selector, sizeof rank->selector, "%zu", index);
        snprintf(rank->failure, sizeof rank->failure, "%.255s", report->devices[index].failure);
    }
    cleat_doctor_free(report);
    return CLEAT_OK;
}

/* Number of devices of the host that compute, of those which `selector` may mean. */
static int count_usable(const cJSON *devices, const char *selector) {
    const bool number = *selector && strspn(selector, "0123456789") == strlen(selector);
    int count = 0;
    for (int i = 0; i < cJSON_GetArraySize(devices); ++i) {
        const cJSON *device = cJSON_GetArrayItem(devices, i), *name = cJSON_GetObjectItem(device, "name");
        const bool meant = number ? i == atoi(selector)
                                  : !*selector || strcmp(selector, "cpu") == 0 ||
                                        (cJSON_IsString(name) && strcasestr(name->valuestring, selector));
        count += meant && cJSON_IsNull(cJSON_GetObjectItem(device, "failure"));
    }
    return count;
}

/* Sets `failure` of the ranks of `host` whose devices do not answer. A rank that chooses among the devices of
 * its host needs as many of them as there are such ranks before it. */
static void apply_answer(launch_ranks *ranks, const char *host, const cJSON *devices, const char *failure) {
    int automatic = 0;
    for (size_t i = 0; i < ranks->count; ++i) {
        launch_rank *rank = &ranks->items[i];
        if (rank->failure[0] || strcmp(rank->host, host) != 0) continue;
        automatic += !rank->selector[0];
        if (!devices)
            snprintf(rank->failure, sizeof rank->failure, "its host does not answer: %.200s", failure);
        else if (count_usable(devices, rank->selector) < (rank->selector[0] ? 1 : automatic))
            snprintf(rank->failure, sizeof rank->failure, "its host has no such working device");
    }
}

static void check_host(const launch_mpi *mpi, launch_ranks *ranks, const char *host, const char *program) {
    launch_ranks *one = calloc(1, sizeof *one);
    launch_words doctor = {.count = 0}, words = {.count = 0};
    cli_child child = {.output = NULL};
    if (!one) return;
    one->count = 1;
    snprintf(one->items[0].host, sizeof one->items[0].host, "%s", host);
    launch_add(&doctor, "%s", program);
    launch_add(&doctor, "doctor");
    launch_add(&doctor, "--json");
    launch_command(mpi, one, &doctor, &words);
    if (!words.failed) cli_child_run((const char *const *)words.items, host_seconds, &child);
    cJSON *answer = child.output ? cJSON_Parse(child.output) : NULL;
    const cJSON *devices = cJSON_GetObjectItem(answer, "devices");
    apply_answer(ranks, host, cJSON_IsArray(devices) ? devices : NULL, child.failure);
    cJSON_Delete(answer);
    cli_child_free(&child);
    launch_words_free(&words);
    launch_words_free(&doctor);
    free(one);
}

cleat_status launch_check_devices(const launch_mpi *mpi, const char *program, launch_ranks *ranks, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    bool here = false;
    for (size_t i = 0; i < ranks->count; ++i) {
        const char *host = ranks->items[i].host;
        if (!*host)
            here = true;
        else if (i == 0 || strcmp(host, ranks->items[i - 1].host) != 0)
            check_host(mpi, ranks, host, program);
    }
    if (here) status = check_here(ranks, error);
    return status;
}

/* The devices of a run: what --devices and --hosts name. */
#include "launch.h"
#include "platform/text.h"

#include <cleat/doctor.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct selection {
    const char *devices;               /* the whole list, for messages */
    const cleat_doctor_report *listed; /* its devices */
    bool used[LAUNCH_RANKS];           /* listed devices that are selected already */
    launch_ranks *ranks;
    cleat_error *error;
} selection;

static cleat_status add_device(selection *s, size_t index) {
    if (s->ranks->count == LAUNCH_RANKS)
        return cleat_fail(s->error, CLEAT_ERR_ARGUMENT, "--devices %s: more than %d devices", s->devices, LAUNCH_RANKS);
    launch_rank *rank = &s->ranks->items[s->ranks->count++];
    *rank = (launch_rank){.facts = s->listed->devices[index].facts};
    snprintf(rank->selector, sizeof rank->selector, "%zu", index);
    if (index < LAUNCH_RANKS) s->used[index] = true;
    return CLEAT_OK;
}

static cleat_status fail_word(const selection *s, const char *word, const char *why) {
    char list[1024] = "";
    size_t used = 0;
    for (size_t i = 0; i < s->listed->n_devices && used < sizeof list; ++i)
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "\n  %zu  %s (%s)", i, s->listed->devices[i].facts.name,
                             cleat_device_kind_text(s->listed->devices[i].facts.kind));
    return cleat_fail(
        s->error, CLEAT_ERR_NO_DEVICE,
        "--devices %s: '%s': %s. Give numbers, parts of names, gpu, cpu, all or auto, separated by commas. "
        "Available devices:%s\n`cleat doctor` shows why one is missing",
        s->devices, word, why, list);
}

static size_t count_kind(const selection *s, cleat_device_kind kind) {
    size_t count = 0;
    for (size_t i = 0; i < s->listed->n_devices; ++i) count += s->listed->devices[i].facts.kind == kind;
    return count;
}

static cleat_status add_all(selection *s, const char *word, bool gpus_only) {
    cleat_status status = CLEAT_OK;
    if (gpus_only && count_kind(s, CLEAT_DEVICE_GPU) == 0) return fail_word(s, word, "there is no GPU");
    for (size_t i = 0; i < s->listed->n_devices && !status; ++i)
        if (!gpus_only || s->listed->devices[i].facts.kind == CLEAT_DEVICE_GPU) status = add_device(s, i);
    return status;
}

/* Each mention of a name takes the next device that has it. A CPU may be mentioned again: its ranks share the cores. */
static cleat_status add_matching(selection *s, const char *word) {
    const bool cpu = strcasecmp(word, "cpu") == 0;
    size_t found = s->listed->n_devices, matches = 0;
    for (size_t i = 0; i < s->listed->n_devices; ++i) {
        const cleat_device_facts *facts = &s->listed->devices[i].facts;
        if (cpu ? facts->kind != CLEAT_DEVICE_CPU : !strcasestr(facts->name, word)) continue;
        if (!s->used[i % LAUNCH_RANKS]) return add_device(s, i);
        if (matches++ == 0 && facts->kind == CLEAT_DEVICE_CPU) found = i;
    }
    if (found < s->listed->n_devices) return add_device(s, found);
    return fail_word(s, word,
                     matches ? "it is mentioned more often than there are such devices" : "no device has this name");
}

static cleat_status add_word(selection *s, const char *word) {
    char *end = NULL;
    const unsigned long number = strtoul(word, &end, 10);
    if (!*word) return fail_word(s, word, "an empty word");
    if (strspn(word, "0123456789") == strlen(word))
        return number < s->listed->n_devices ? add_device(s, number) : fail_word(s, word, "no device has this number");
    if (strcasecmp(word, "gpu") == 0) return add_all(s, word, true);
    if (strcasecmp(word, "all") == 0) return add_all(s, word, false);
    if (strcasecmp(word, "auto") != 0) return add_matching(s, word);
    return count_kind(s, CLEAT_DEVICE_GPU) ? add_all(s, word, true) : add_matching(s, "cpu");
}

/* "3*cpu" */
static const char *read_times(const char *word, int *times) {
    char *end = NULL;
    const long count = strtol(word, &end, 10);
    *times = 1;
    if (end == word || *end != '*') return word;
    *times = count >= 1 && count <= LAUNCH_RANKS ? (int)count : 0;
    return end + 1;
}

/* Copies the next word of a list; false at its end. */
static bool next_word(const char **list, char *word, size_t size) {
    if (!*list) return false;
    const size_t length = strcspn(*list, ",");
    snprintf(word, size, "%.*s", (int)length, *list);
    *list = (*list)[length] ? *list + length + 1 : NULL;
    return true;
}

/* The ranks of the listed devices that `devices` names. */
static cleat_status select_devices(const char *devices, const cleat_doctor_report *listed, launch_ranks *ranks,
                                   cleat_error *error) {
    selection s = {.devices = devices, .listed = listed, .ranks = ranks, .error = error};
    char text[LAUNCH_SELECTOR];
    cleat_status status = CLEAT_OK;
    while (!status && next_word(&devices, text, sizeof text)) {
        int times;
        const char *word = read_times(text, &times);
        if (times == 0) status = fail_word(&s, text, "a number of devices from 1 to 64 stands before *");
        for (int i = 0; i < times && !status; ++i) status = add_word(&s, word);
    }
    return status;
}

static cleat_status fail_hosts(cleat_error *error, const char *hosts, const char *word, const char *why) {
    return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                      "--hosts %s: '%s': %s. Give host names, each with its number of devices: --hosts a:2,b:1", hosts,
                      word, why);
}

/* The selector of local rank `local`: one word of `devices` for each, or one word for all. */
static cleat_status set_selector(launch_rank *rank, const char *devices, size_t local, cleat_error *error) {
    char word[LAUNCH_SELECTOR] = "";
    size_t words = 1;
    if (!devices) return CLEAT_OK;
    for (const char *at = devices; *at; ++at) words += *at == ',';
    if (strcasecmp(devices, "all") == 0)
        return cleat_fail(
            error, CLEAT_ERR_ARGUMENT,
            "--devices all: the devices of other hosts are not known here: give numbers or names, or leave "
            "--devices out, and each host uses its GPUs");
    if (words > 1 && local >= words)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "--devices %s names %zu devices for each host, but %s must use %zu: name one for each",
                          devices, words, rank->host, local + 1);
    for (size_t i = 0; i <= (words > 1 ? local : 0); ++i) next_word(&devices, word, sizeof word);
    if (strcasecmp(word, "gpu") != 0 && strcasecmp(word, "auto") != 0)
        snprintf(rank->selector, sizeof rank->selector, "%s", word);
    return CLEAT_OK;
}

static cleat_status add_host(const char *hosts, const char *word, const char *devices, launch_ranks *ranks,
                             cleat_error *error) {
    const char *colon = strrchr(word, ':');
    const size_t length = colon ? (size_t)(colon - word) : strlen(word);
    char *end = NULL;
    const long count = colon ? strtol(colon + 1, &end, 10) : 1;
    cleat_status status = CLEAT_OK;
    if (length == 0 || length >= LAUNCH_HOST) return fail_hosts(error, hosts, word, "not a host name");
    if (colon && (end == colon + 1 || *end || count < 1))
        return fail_hosts(error, hosts, word, "a number of devices is expected after the colon");
    for (size_t local = 0; local < (size_t)count && !status; ++local) {
        if (ranks->count == LAUNCH_RANKS) return fail_hosts(error, hosts, word, "more than 64 devices in all");
        launch_rank *rank = &ranks->items[ranks->count++];
        *rank = (launch_rank){.selector = ""};
        snprintf(rank->host, sizeof rank->host, "%.*s", (int)length, word);
        status = set_selector(rank, devices, local, error);
    }
    return status;
}

size_t launch_count(const launch_ranks *ranks) {
    size_t count = 0;
    for (size_t i = 0; i < ranks->count; ++i) count += !ranks->items[i].failure[0];
    return count;
}

static cleat_status find_here(const char *devices, launch_ranks *ranks, cleat_error *error) {
    const cleat_doctor_request look = {.list_only = true, .seconds = 15};
    cleat_doctor_report *report = NULL;
    cleat_status status = cleat_doctor_run(&look, &report, error);
    if (!status && report->n_devices == 0)
        status = cleat_fail(error, CLEAT_ERR_NO_DEVICE,
                            "--devices %s: no usable OpenCL device was found; `cleat doctor` shows why", devices);
    if (!status) status = select_devices(devices, report, ranks, error);
    cleat_doctor_free(report);
    return status;
}

/* A single number needs no list: the device is opened in this process, which lists all devices anyway. With
 * one driver the additional list took 30 to 60 ms of CPU time. */
static bool find_number(const char *devices, launch_ranks *ranks) {
    const size_t length = strlen(devices);
    if (length == 0 || length >= LAUNCH_SELECTOR || strspn(devices, "0123456789") != length) return false;
    ranks->items[0] = (launch_rank){.selector = ""};
    memcpy(ranks->items[0].selector, devices, length + 1);
    ranks->count = 1;
    return true;
}

cleat_status launch_find_ranks(const launch_options *options, launch_ranks **ranks, cleat_error *error) {
    const char *devices = options->devices, *hosts = options->hosts;
    launch_ranks *found = calloc(1, sizeof *found);
    char word[LAUNCH_HOST + 16];
    cleat_status status = CLEAT_OK;
    if (!found) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the list of devices");
    for (const char *list = hosts; !status && next_word(&list, word, sizeof word);) /* "a:2,b" */
        status = add_host(hosts, word, devices, found, error);
    if (!hosts && !find_number(devices, found)) status = find_here(devices, found, error);
    if (!status)
        *ranks = found;
    else
        free(found);
    return status;
}

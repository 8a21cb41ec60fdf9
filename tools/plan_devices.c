/* cleat plan --devices: a run on several devices, which need not be present, connected by a network. */
#include "plan_devices.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Reads the card called `name` [size] of --devices into `count` places. */
static cleat_status add_cards(const char *name, size_t size, int count, plan_devices *plan, cleat_error *error) {
    char text[4096];
    cleat_card card;
    if (size >= sizeof text) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "--devices: a name is too long");
    snprintf(text, sizeof text, "%.*s", (int)size, name);
    cleat_status status = cleat_card_open(text, &card, error);
    if (status) return cleat_fail_in(error, status, "--devices");
    for (int i = 0; i < count; ++i) plan->cards[plan->count++] = card;
    return CLEAT_OK;
}

/* Reads one element of --devices, "t4" or "4*t4". */
static cleat_status add_element(const char *text, size_t size, plan_devices *plan, cleat_error *error) {
    const size_t digits = strspn(text, "0123456789");
    const char *name = text;
    long count = 1;
    if (digits > 0 && digits < size && text[digits] == '*') {
        count = digits <= 4 ? strtol(text, NULL, 10) : CLEAT_PLAN_DEVICES + 1;
        name = text + digits + 1;
    }
    const size_t rest = size - (size_t)(name - text);
    if (rest == 0 || count < 1)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "--devices: '%.*s' is not a device: give names as for --card, separated by commas, such as "
                          "t4,t4,rx6600xt or 2*t4,rx6600xt",
                          (int)(size < 60 ? size : 60), text);
    if (count > CLEAT_PLAN_DEVICES - plan->count)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "--devices: more than %d devices", CLEAT_PLAN_DEVICES);
    return add_cards(name, rest, (int)count, plan, error);
}

static cleat_status read_devices(const char *text, plan_devices *plan, cleat_error *error) {
    cleat_status status;
    for (;;) {
        const size_t size = strcspn(text, ",");
        status = add_element(text, size, plan, error);
        if (status || !text[size]) break;
        text += size + 1;
    }
    for (int i = 0; i < plan->count; ++i)
        plan->devices[i] = (cleat_distributed_device){.name = plan->cards[i].name,
                                                      .facts = &plan->cards[i].facts,
                                                      .rates = &plan->cards[i].rates,
                                                      .watts = plan->cards[i].board_watts,
                                                      .price_per_hour = -1};
    return status;
}

/* Reads one element of --price, "rtx4090=0.35". */
static cleat_status read_price(const char *text, size_t size, plan_devices *plan, cleat_error *error) {
    const size_t name = strcspn(text, "=,");
    char number[32] = "", *end = number;
    double price = -1;
    bool known = false;
    if (name < size && size - name - 1 < sizeof number) {
        snprintf(number, sizeof number, "%.*s", (int)(size - name - 1), text + name + 1);
        price = strtod(number, &end);
    }
    if (end == number || *end || !isfinite(price) || price < 0)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "--price: '%.*s' is not a price: give DEVICE=PRICE per hour, separated by commas, such as "
                          "t4=0,rtx4090=0.35",
                          (int)(size < 60 ? size : 60), text);
    for (int i = 0; i < plan->count; ++i) {
        if (strlen(plan->cards[i].name) != name || strncasecmp(plan->cards[i].name, text, name) != 0) continue;
        plan->devices[i].price_per_hour = price;
        known = true;
    }
    if (known) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_ARGUMENT, "--price: '%.*s' is not one of --devices",
                      (int)(name < 60 ? name : 60), text);
}

static cleat_status read_prices(const char *text, plan_devices *plan, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    while (text && !status) {
        const size_t size = strcspn(text, ",");
        status = read_price(text, size, plan, error);
        text = text[size] ? text + size + 1 : NULL;
    }
    for (int i = 0; i < plan->count && !status; ++i)
        if (plan->devices[i].price_per_hour < 0)
            status = cleat_fail(error, CLEAT_ERR_ARGUMENT,
                                "--price: the price of %s is missing; add %s=PRICE, which may be 0",
                                plan->cards[i].name, plan->cards[i].name);
    return status;
}

static cleat_status read_request(const plan_devices_request *request, plan_devices *plan, cleat_error *error) {
    cleat_status status = read_devices(request->devices, plan, error);
    if (!status && request->price) status = read_prices(request->price, plan, error);
    if (status) return status;
    if (!request->network && plan->count > 1)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "--devices needs --network, the network between them: memory, pcie3, 1Gb, 25Gb,5us, ...");
    status = cleat_network_parse(request->network ? request->network : "memory", &plan->network, error);
    return status ? cleat_fail_in(error, status, "--network") : status;
}

static cleat_status add_scale(plan_devices *plan, int count, cleat_distributed_report *report, cleat_error *error) {
    cleat_status status = cleat_fit_distributed(plan->profile, count, plan->devices, &plan->network, report, error);
    if (!status)
        plan->scales[plan->n_scales++] =
            (plan_scale){.count = count,
                         .used = report->used,
                         .step_seconds = report->step_seconds,
                         .exposed_seconds = report->used > 1 ? report->exchange.exposed_seconds : 0,
                         .samples_per_second = report->samples_per_second,
                         .efficiency = report->efficiency};
    return status;
}

/* 1, 2, 4, ... and all of equal devices. */
static cleat_status add_scales(plan_devices *plan, cleat_error *error) {
    for (int i = 1; i < plan->count; ++i)
        if (strcmp(plan->cards[i].name, plan->cards[0].name) != 0) return CLEAT_OK;
    if (plan->count < 4 || plan->report.used == 0) return CLEAT_OK;
    cleat_distributed_report *report = calloc(1, sizeof *report);
    if (!report) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the plan");
    cleat_status status = CLEAT_OK;
    for (int count = 1; count < plan->count && !status; count *= 2) status = add_scale(plan, count, report, error);
    if (!status) status = add_scale(plan, plan->count, report, error);
    free(report);
    return status;
}

static cleat_status make_plan(plan_devices *plan, cleat_error *error) {
    cleat_status status =
        cleat_fit_distributed(plan->profile, plan->count, plan->devices, &plan->network, &plan->report, error);
    /* Messages about the data would be the same each time. */
    if (!status) cleat_set_log(NULL, NULL, CLEAT_LOG_ERROR);
    return status ? status : add_scales(plan, error);
}

int plan_devices_run(const cli_command *command, const plan_devices_request *request, const cleat_profile *profile) {
    cleat_error error = {0};
    plan_devices *plan = calloc(1, sizeof *plan);
    if (!plan) return cli_finish(cleat_fail(&error, CLEAT_ERR_MEMORY, "no memory for the plan"), &error);
    plan->path = request->path;
    plan->profile = profile;
    cleat_status status = read_request(request, plan, &error);
    int exit_code = status == CLEAT_ERR_ARGUMENT ? cli_usage(command, "%s", error.text) : 0;
    if (!status) status = make_plan(plan, &error);
    if (!status) (request->json ? plan_devices_print_json : plan_devices_print)(plan);
    if (exit_code == 0) exit_code = cli_finish(status, &error);
    if (exit_code == 0 && plan->report.used == 0) exit_code = EXIT_FIT;
    free(plan);
    return exit_code;
}

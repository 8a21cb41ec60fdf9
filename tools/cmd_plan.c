/* cleat plan: plans a profile for a present device, for a card that is not present, for all cards, or for
 * several together (plan_devices.c), and prints the learning rate as a table. Does not train. With --card no
 * device is opened; a present device is opened, and its speeds are measured if they are not yet known. */
#include "plan.h"

#include <cleat/card.h>
#include <cleat/doctor.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct request {
    const char *path, *device, *card; /* device, card: NULL if not given */
    int64_t micro_batch_size;         /* 0: from the profile */
    bool json;
    plan_devices_request several; /* devices NULL: one device */
    cli_list assignments;
} request;

const cleat_fit_way *plan_chosen_way(const cleat_fit_report *report) {
    return report->recompute ? &report->recomputed : &report->stored;
}

static cleat_status plan_named(const cleat_profile *profile, const char *name, int64_t micro_batch_size,
                               plan_card *planned, cleat_error *error) {
    cleat_card card;
    cleat_status status = cleat_card_open(name, &card, error);
    if (status) return status;
    snprintf(planned->name, sizeof planned->name, "%s", card.name);
    return cleat_fit_describe(profile, &card.facts, &card.rates, NULL, micro_batch_size, &planned->report, error);
}

static cleat_status plan_present(const cleat_profile *profile, int64_t micro_batch_size, plan_card *planned,
                                 cleat_error *error) {
    cleat_device *device = NULL;
    cleat_card card;
    cleat_rates rates;
    cleat_status status = cleat_doctor_open_device(profile->run.device, &device, error);
    if (status) return status;
    const cleat_device_facts *facts = cleat_device_get_facts(device);
    planned->present = true;
    if (cleat_card_match(facts, &card)) {
        snprintf(planned->name, sizeof planned->name, "%s", card.name);
        if (cleat_card_differences(&card, facts, planned->differences, sizeof planned->differences) == 0)
            planned->differences[0] = 0;
    }
    cleat_tuning_table *tuning = cleat_tuning_load(device);
    cleat_tuning_describe(tuning, planned->kernels);
    status = cleat_rates_measure(device, &rates, error);
    if (!status) status = cleat_fit_describe(profile, facts, &rates, tuning, micro_batch_size, &planned->report, error);
    cleat_tuning_destroy(tuning);
    cleat_device_close(device);
    return status;
}

/* Fills plan->cards [count]; `all`: every card known to the library. */
static cleat_status plan_cards(const request *args, bool all, plan_result *plan, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < plan->count && !status; ++i) {
        const char *name = all ? cleat_card_name(i) : args->card;
        status = name ? plan_named(plan->profile, name, args->micro_batch_size, &plan->cards[i], error)
                      : plan_present(plan->profile, args->micro_batch_size, &plan->cards[i], error);
        if (i == 0 && all)
            cleat_set_log(NULL, NULL, CLEAT_LOG_ERROR); /* messages about the data are the same for every card */
        if (status && all) cleat_fail_in(error, status, "card %s", name);
    }
    return status;
}

static void print_plan(const request *args, bool all, const plan_result *plan) {
    if (args->json)
        plan_print_json(plan, all);
    else if (all)
        plan_print_table(plan);
    else
        plan_print_card(plan);
}

static int64_t steps_per_epoch(const plan_result *plan) {
    int64_t steps = 0;
    for (size_t i = 0; i < plan->count; ++i)
        if (plan->cards[i].report.steps_per_epoch > steps) steps = plan->cards[i].report.steps_per_epoch;
    return steps;
}

static bool any_fits(const plan_result *plan) {
    for (size_t i = 0; i < plan->count; ++i)
        if (plan->cards[i].report.fits) return true;
    return false;
}

static int make_and_print_plan(const request *args, const cleat_profile *profile) {
    cleat_error error = {0};
    bool all = args->card && strcmp(args->card, "all") == 0;
    plan_result plan = {.path = args->path,
                        .profile = profile,
                        .micro_batch_size = args->micro_batch_size,
                        .count = all ? cleat_card_count() : 1};
    cleat_status status = CLEAT_OK;
    plan.cards = calloc(plan.count ? plan.count : 1, sizeof *plan.cards);
    if (!plan.cards) status = cleat_fail(&error, CLEAT_ERR_MEMORY, "no memory for %zu plans", plan.count);
    if (!status) status = plan_cards(args, all, &plan, &error);
    int exit_code = cli_finish(status, &error);
    if (!status) {
        plan.rates = plan_find_rates(profile, steps_per_epoch(&plan));
        error = plan.rates.error;
        print_plan(args, all, &plan);
        exit_code = cli_finish(error.status, &error);
        if (exit_code == 0 && !any_fits(&plan)) exit_code = EXIT_FIT;
    }
    free(plan.cards);
    return exit_code;
}

static int load_and_print_plan(const cli_command *command, const request *args) {
    cleat_error error = {0};
    cleat_profile *profile = NULL;
    cleat_status status = cli_profile_as_given(args->path, &args->assignments, args->device, &profile, &error);
    if (!status) status = cleat_profile_apply_config(profile, &error);
    int exit_code = status                  ? cli_finish(status, &error)
                    : args->several.devices ? plan_devices_run(command, &args->several, profile)
                                            : make_and_print_plan(args, profile);
    cleat_profile_destroy(profile);
    return exit_code;
}

/* Options that belong to --devices, and options that cannot be together with it. */
static int check_several(const cli_command *command, const request *args, bool batch) {
    const char *with = args->several.network ? "--network" : args->several.price ? "--price" : NULL;
    const char *without = args->device ? "--device" : args->card ? "--card" : batch ? "--batch" : NULL;
    if (!args->several.devices && with)
        return cli_usage(command, "%s belongs to --devices, which names the cards: --devices t4,t4", with);
    if (args->several.devices && without)
        return cli_usage(command,
                         "--devices plans several cards, each with micro-batches for its memory: give it without %s",
                         without);
    return 0;
}

static int run(const cli_command *command, int argc, char **argv) {
    request args = {.path = NULL};
    cli_list words = {.count = 0};
    const char *init = NULL;
    char init_text[CLEAT_PATH];
    double micro_batch_size = NAN;
    const cli_option options[] = {
        {"--device", CLI_TEXT, &args.device, "SEL",
         "device to plan for, as for `cleat train` (default: that of the profile)"},
        {"--card", CLI_TEXT, &args.card, "NAME|FILE.ini|all",
         "card that need not be present in this machine; all: one table of all cards"},
        {"--devices", CLI_TEXT, &args.several.devices, "NAME,N*NAME,...",
         "several cards, data-parallel: shares, step, communication, which cards pay off; with --network"},
        {"--network", CLI_TEXT, &args.several.network, "RATE[,LATENCY]|NAME",
         "network between the devices: 1Gb; 25Gb,5us; 2GB (per second); memory, pcie3, pcie4, pcie5: in one machine; "
         "`cleat bench allreduce` measures it"},
        {"--price", CLI_TEXT, &args.several.price, "NAME=PRICE,...", "hourly price of each card of --devices"},
        {"--batch", CLI_NUMBER, &micro_batch_size, "N", "memory of a micro-batch of N samples, at the longest length"},
        CLI_INIT(&init),
        CLI_SET(&args.assignments),
        {"--json", CLI_FLAG, &args.json, NULL, "print one JSON object; with --card all, an array"},
        {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &words, &exit_code)) return exit_code;
    if (!cli_is_one_profile(command, &words, &args.assignments, &exit_code)) return exit_code;
    if (args.device && args.card)
        return cli_usage(
            command,
            "--device names a device of this machine, --card a card that need not be present: give only one of them");
    exit_code = check_several(command, &args, !isnan(micro_batch_size));
    if (exit_code) return exit_code;
    if (!isnan(micro_batch_size) && !cli_is_count(micro_batch_size, 1, 1e9))
        return cli_usage(command, "--batch %g: must be an integer number of samples, at least 1", micro_batch_size);
    exit_code = cli_assign(command, &args.assignments, "model.init", init, init_text, sizeof init_text);
    if (exit_code) return exit_code;
    args.path = words.items[0];
    args.micro_batch_size = isnan(micro_batch_size) ? 0 : (int64_t)micro_batch_size;
    args.several.path = args.path;
    args.several.json = args.json;
    return load_and_print_plan(command, &args);
}

const cli_command cli_plan = {
    "plan",
    "PROFILE [--device SEL | --card NAME|FILE.ini|all | --devices LIST --network NET [--price LIST]] [--batch N] "
    "[--init PATH] [--json] [--set SECTION.KEY=VALUE ...]",
    "show memory, micro-batches, time and learning rate of a run before it starts, for any card", run};

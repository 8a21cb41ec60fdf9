/* cleat eval: computes loss terms and metrics of a checkpoint. */
#include "cli.h"
#include "launch.h"
#include "platform/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_same_place(const char *a, const char *b) {
    char *first = realpath(a, NULL), *second = realpath(b, NULL);
    const bool same = first && second && strcmp(first, second) == 0;
    free(first);
    free(second);
    return same;
}

/* Data other than the training's are evaluated as a whole: their splits would be random parts. */
static cleat_status use_data(cleat_profile *profile, const char *data, const char **split, cleat_error *error) {
    char text[CLEAT_PATH];
    if (!data) {
        if (!*split) *split = "val";
        return CLEAT_OK;
    }
    if (!*split) *split = is_same_place(data, profile->data->path) ? "val" : "all";
    if ((size_t)snprintf(text, sizeof text, "data.path=%s", data) >= sizeof text)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "--data: path too long: %.100s...", data);
    return cleat_profile_set(profile, text, error);
}

enum { CLASSES_SHOWN = 20, LABELS_SHOWN = 8 };

static void print_classes(cleat_class_table *table) {
    if (table->count)
        printf("\n%-24s precision    recall        f1   support%s\n", "class", table->has_iou ? "       iou" : "");
    for (size_t i = 0; i < table->count; ++i) {
        cleat_class_row *row = &table->rows[i];
        if (!cleat_class_table_shows(table, i, CLASSES_SHOWN)) continue;
        cleat_clean_text(row->name); /* of the data */
        printf("%-24s%10.3f%10.3f%10.3f%10.0f", row->name, row->precision, row->recall, row->f1, row->support);
        if (table->has_iou) printf("%10.3f", row->iou);
        printf("\n");
    }
    if (table->count > CLASSES_SHOWN)
        printf("%zu classes with the least support are left out; --json has all\n", table->count - CLASSES_SHOWN);
}

/* Columns have the numbers of the rows, since names may be long. */
static void print_confusion(cleat_confusion *matrix) {
    const size_t labels = matrix->labels;
    if (labels > LABELS_SHOWN) printf("\nconfusion matrix of %zu labels: see --json, or cleat report\n", labels);
    if (!labels || labels > LABELS_SHOWN) return;
    printf("\n%-24s", "truth \\ prediction");
    for (size_t c = 0; c < labels; ++c) printf("%10zu", c + 1);
    for (size_t r = 0; r < labels; ++r) {
        cleat_clean_text(matrix->names[r]);
        printf("\n%zu %-22s", r + 1, matrix->names[r]);
        for (size_t c = 0; c < labels; ++c) printf("%10.0f", matrix->counts[r * labels + c]);
    }
    printf("\n");
}

static int run(const cli_command *command, int argc, char **argv) {
    const char *init = NULL, *device = NULL, *split = NULL, *examples = NULL, *data = NULL;
    cli_list assignments = {.count = 0}, words = {.count = 0}, checkpoints = {.count = 0};
    launch_options several = {.devices = NULL};
    bool json = false;
    char *text = NULL;
    const cli_option options[] = {
        CLI_CHECKPOINTS(&checkpoints),
        {"--init", CLI_TEXT, &init, "PATH",
         "weights without a run: a Hugging Face folder or a GGUF file, with PROFILE (chat)"},
        {"--data", CLI_TEXT, &data, "PATH", "labelled data to evaluate instead of those of the profile (data.path)"},
        {"--split", CLI_TEXT, &split, "NAME",
         "train, val (default), test, or all: every sample; of a series, every window of the file (default for other "
         "data than those of the training)"},
        CLI_DEVICE(&device),
        LAUNCH_OPTIONS(several, "evaluate"),
        CLI_SET(&assignments),
        {"--examples", CLI_TEXT, &examples, "FILE", "write predictions beside the truth, as JSON"},
        {"--json", CLI_FLAG, &json, NULL, "print one JSON object"},
        {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &words, &exit_code)) return exit_code;
    if (!init && !cli_has_checkpoint(command, &words, checkpoints.items[0], &exit_code)) return exit_code;
    if (init && (checkpoints.count || words.count > 1 || !data))
        return cli_usage(command, "give --checkpoint, or --init with --data and at most one profile");
    if (launch_elsewhere(command, &several, argc, argv, &device, &exit_code)) return exit_code;
    cleat_error error = {0};
    cli_members members = {.count = 0};
    cleat_metrics metrics = {0};
    cleat_class_table table = {0};
    cleat_ranks *ranks;
    cleat_status status = cli_join_ranks(&ranks, &error);
    if (!status && init) {
        cleat_profile *profile = NULL;
        status = cli_profile_of_init(&words, init, NULL, &assignments, device, &profile, &error);
        if (!status) members.items[members.count++] = (cleat_member){profile, NULL};
    } else if (!status) {
        status = cli_members_open(&words, &checkpoints, &assignments, device, &members, &error);
    }
    const bool of_folds = !status && checkpoints.count == 1 && members.count > 1 && !words.count &&
                          !assignments.count && (!data || is_same_place(data, members.items[0].profile->data->path));
    if (!status) status = use_data((cleat_profile *)members.items[0].profile, data, &split, &error);
    if (of_folds && !status && strcmp(split, "all") == 0)
        cleat_log(CLEAT_LOG_WARNING, "%zu of %zu models were trained on each sample; --split val takes the other",
                  members.count - 1, members.count);
    status = cleat_ranks_agree(ranks, status, &error);
    if (of_folds && !status && strcmp(split, "val") == 0 && !examples && !ranks)
        status = cli_evaluate_folds(checkpoints.items[0], members.count, device, json, &error);
    else if (!status)
        status = cleat_evaluate_members(members.items, members.count, split, examples, ranks, &metrics, &table, &error);
    if (metrics.count && cli_is_leader(ranks) && json) {
        const cleat_status printed = cleat_class_table_json(&table, &metrics, &text, status ? NULL : &error);
        if (!printed) printf("%s\n", text);
        status = status ? status : printed;
    } else if (metrics.count && cli_is_leader(ranks)) {
        cli_print_metrics(&metrics);
        print_classes(&table);
        print_confusion(&table.confusion);
        if (members.count > 1)
            printf("predictions combined from %zu checkpoints; losses are the mean of theirs\n", members.count);
    }
    free(text);
    cleat_class_table_free(&table);
    cli_members_close(&members);
    return cli_leave_ranks(ranks, status, &error);
}

const cli_command cli_eval = {"eval",
                              "[PROFILE] --checkpoint DIR ... | --init PATH  [--data PATH] [--split NAME] [--device "
                              "SEL | --devices LIST] [--examples FILE] "
                              "[--set section.key=value ...] [--json]",
                              "evaluate a checkpoint on labelled data", run};

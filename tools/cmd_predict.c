/* cleat predict: writes a checkpoint's predictions for data without targets. "-" as data is the standard
 * input, as output folder the standard output; both are files in a temporary folder for the library. */
#include "cli.h"
#include "launch.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "platform/system.h"

#include <cleat/report.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { NAME = 256 };

typedef struct places {
    const char *data, *out;                                   /* as on the command line */
    char temporary[CLEAT_PATH];                               /* "": not made */
    char input[CLEAT_PATH + NAME], output[CLEAT_PATH + NAME]; /* what the library reads and writes */
    char drawings[CLEAT_PATH + NAME];                         /* below the output unless named */
} places;

static bool is_stream(const char *path) {
    return strcmp(path, "-") == 0;
}

static const places *interrupted; /* by a signal, whose handler may call unlink and rmdir only */

static void on_signal(int number) {
    if (is_stream(interrupted->data)) unlink(interrupted->input); /* else it is the user's file */
    if (is_stream(interrupted->out)) rmdir(interrupted->output);
    rmdir(interrupted->temporary);
    signal(number, SIG_DFL);
    raise(number);
}

/* Ignores SIGPIPE as well: a reader of the standard output may end early (head). */
static void handle_signals(const places *at) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    interrupted = at;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i)
        if (signal(numbers[i], on_signal) == SIG_IGN) signal(numbers[i], SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
}

/* The name under which the library reads the standard input: of images by their first bytes, else by the model. */
static const char *name_of_input(const cleat_profile *profile, const unsigned char *bytes, size_t size) {
    char type[NAME] = "";
    if (size > 3 && memcmp(bytes, "\x89PNG", 4) == 0) return "stdin.png";
    if (size > 2 && memcmp(bytes, "\xFF\xD8\xFF", 3) == 0) return "stdin.jpg";
    cleat_profile_get(profile, "model.type", type, sizeof type, NULL);
    if (strncmp(type, "text_", 5) == 0) return "stdin.lines";
    return strncmp(type, "rna_", 4) == 0 ? "stdin.fasta" : "stdin.csv";
}

static cleat_status copy_stream(FILE *from, const char *from_name, FILE *to, const char *to_name, cleat_error *error) {
    char bytes[16384];
    for (size_t size; (size = fread(bytes, 1, sizeof bytes, from)) > 0;)
        if (fwrite(bytes, 1, size, to) != size)
            return cleat_fail(error, CLEAT_ERR_IO, "%s: cannot write: %s", to_name, strerror(errno));
    if (ferror(from)) return cleat_fail(error, CLEAT_ERR_IO, "%s: cannot read: %s", from_name, strerror(errno));
    if (fflush(to)) return cleat_fail(error, CLEAT_ERR_IO, "%s: cannot write: %s", to_name, strerror(errno));
    return CLEAT_OK;
}

static cleat_status store_input(const cleat_profile *profile, places *at, cleat_error *error) {
    unsigned char head[4];
    if (isatty(STDIN_FILENO)) fprintf(stderr, "reading the standard input; " CLEAT_END_OF_INPUT " ends it\n");
    cleat_read_console();
    const size_t size = fread(head, 1, sizeof head, stdin);
    if (!size) return cleat_fail(error, CLEAT_ERR_FORMAT, "--data -: the standard input is empty");
    snprintf(at->input, sizeof at->input, "%s/%s", at->temporary, name_of_input(profile, head, size));
    FILE *file = fopen(at->input, "wb");
    if (!file) return cleat_fail(error, CLEAT_ERR_IO, "%s: cannot create: %s", at->input, strerror(errno));
    cleat_status status = CLEAT_OK;
    if (fwrite(head, 1, size, file) != size)
        status = cleat_fail(error, CLEAT_ERR_IO, "%s: cannot write: %s", at->input, strerror(errno));
    if (!status) status = copy_stream(stdin, "the standard input", file, at->input, error);
    fclose(file);
    return status;
}

static cleat_status prepare(const cleat_profile *profile, places *at, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    if (strlen(at->data) >= CLEAT_PATH || strlen(at->out) >= CLEAT_PATH)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "--data, --out: path too long");
    snprintf(at->input, sizeof at->input, "%s", is_stream(at->data) ? "" : at->data);
    snprintf(at->output, sizeof at->output, "%s", is_stream(at->out) ? "" : at->out);
    if (!is_stream(at->data) && !is_stream(at->out)) return CLEAT_OK;
    status = cli_make_temporary("predict", at->temporary, sizeof at->temporary, error);
    if (!status) handle_signals(at);
    if (!status && is_stream(at->out)) snprintf(at->output, sizeof at->output, "%s/out", at->temporary);
    if (!status && is_stream(at->data)) status = store_input(profile, at, error);
    return status;
}

/* Prints the table of all predictions. */
static cleat_status print_output(const places *at, cleat_error *error) {
    static const char *const names[] = {"predictions.csv", "predictions.conll", "submission.csv"};
    char path[CLEAT_PATH + 2 * NAME];
    FILE *file = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !file; ++i) {
        snprintf(path, sizeof path, "%s/%s", at->output, names[i]);
        file = fopen(path, "rb");
    }
    if (!file)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                          "--out -: this model writes a file for each sample and no table; give a folder");
    cleat_status status = copy_stream(file, path, stdout, "the standard output", error);
    const bool unread = status != CLEAT_OK && errno == CLEAT_UNREAD;
    fclose(file);
    if (!unread) return status;
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, STDOUT_FILENO); /* what is buffered for the reader would fail again */
    close(null);
    clearerr(stdout);
    return CLEAT_OK;
}

/* Messages name the standard input, not its copy. */
static void name_input(const places *at, cleat_error *error) {
    char text[sizeof error->text];
    const char *found = is_stream(at->data) && at->input[0] ? strstr(error->text, at->input) : NULL;
    if (!found) return;
    snprintf(text, sizeof text, "%.*sthe standard input%s", (int)(found - error->text), error->text,
             found + strlen(at->input));
    memcpy(error->text, text, sizeof text);
}

static cleat_status predict(cleat_predict_request *request, places *at, cleat_error *error) {
    cleat_ranks *ranks = request->ranks;
    size_t count = 0;
    cleat_status status = CLEAT_OK;
    if (ranks && is_stream(at->data)) /* a launcher passes its standard input to rank 0 only */
        status =
            cleat_fail(error, CLEAT_ERR_ARGUMENT,
                       "--data -: only one of several ranks could read the standard input; write it to a file first");
    if (!status) status = prepare(request->members[0].profile, at, error);
    status = cleat_ranks_agree(ranks, status, error);
    request->data = at->input;
    request->out = at->output;
    if (!status) status = cleat_predict_members(request, &count, error);
    if (!cli_is_leader(ranks)) {
        if (at->temporary[0]) cli_remove_temporary(at->temporary);
        return status;
    }
    if (is_stream(at->out) && count) {
        cleat_status printed = print_output(at, !status ? error : NULL);
        if (!status) status = printed;
    } else if (!status || count) {
        printf("%zu predictions written to %s\n", count, at->out);
    }
    if (request->drawings && count) {
        const cleat_report_options options = {.drawings = true};
        cleat_status drawn = cleat_report_write(&request->drawings, 1, &options, !status ? error : NULL);
        if (!status) status = drawn;
    }
    if (at->temporary[0]) cli_remove_temporary(at->temporary);
    if (status) name_input(at, error);
    return status;
}

static int run(const cli_command *command, int argc, char **argv) {
    const char *device = NULL;
    cli_list assignments = {.count = 0}, words = {.count = 0}, checkpoints = {.count = 0};
    cleat_predict_request request = {.format = NULL};
    launch_options several = {.devices = NULL};
    places at = {.data = NULL};
    const cli_option options[] = {
        CLI_CHECKPOINTS(&checkpoints),
        {"--data", CLI_TEXT, &at.data, "PATH",
         "input data: texts: a table, or plain lines; images: a file or folder; series: CSV; RNA: FASTA, a sequences "
         "file, "
         "PDB files; -: the standard input"},
        {"--out", CLI_TEXT, &at.out, "DIR",
         "output folder (predictions); -: print predictions.csv, which is the default for --data -"},
        {"--flips", CLI_FLAG, &request.flips, NULL,
         "images and masks: the mean over each image and its mirror image, and over the vertical flips and quarter "
         "turns that the training had"},
        {"--all", CLI_FLAG, &request.all, NULL,
         "series: forecasts from every row with enough rows before it; else the next steps after the last row"},
        {"--figures", CLI_OWN, &request.drawings, "[=DIR]",
         "draw the first 100 predictions into DIR (OUT/figures): index.html, forecasts and structures as SVG, pictures "
         "with the outlines of masks as PNG; dark ones are brightened"},
        {"--format", CLI_TEXT, &request.format, "NAME",
         "submission: the competition's file of five RNA structures, of up to five checkpoints, or of one with dropout "
         "(seeds 1 to 5)"},
        CLI_DEVICE(&device),
        LAUNCH_OPTIONS(several, "predict"),
        CLI_SET(&assignments),
        {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &words, &exit_code)) return exit_code;
    if (!cli_has_checkpoint(command, &words, checkpoints.items[0], &exit_code)) return exit_code;
    if (!at.data) return cli_usage(command, "--data is required: a file or folder, or - for the standard input");
    if (!at.out) at.out = is_stream(at.data) ? "-" : "predictions";
    if (request.drawings && !*request.drawings) {
        if (is_stream(at.out)) return cli_usage(command, "--figures needs a folder beside --out -: --figures=DIR");
        snprintf(at.drawings, sizeof at.drawings, "%s/figures", at.out);
        request.drawings = at.drawings;
    }
    if (launch_elsewhere(command, &several, argc, argv, &device, &exit_code)) return exit_code;
    cleat_error error = {0};
    cli_members members = {.count = 0};
    cleat_status status = cli_join_ranks(&request.ranks, &error);
    if (!status) status = cli_members_open(&words, &checkpoints, &assignments, device, &members, &error);
    status = cleat_ranks_agree(request.ranks, status, &error);
    request.members = members.items;
    request.n_members = members.count;
    if (!status) status = predict(&request, &at, &error);
    cli_members_close(&members);
    return cli_leave_ranks(request.ranks, status, &error);
}

const cli_command cli_predict = {"predict",
                                 "[PROFILE] --checkpoint DIR ... --data PATH|- [--out DIR|-] [--figures[=DIR]] [--all] "
                                 "[--flips] [--format NAME] [--device SEL | --devices LIST] "
                                 "[--set section.key=value ...]",
                                 "write the predictions of a checkpoint", run};

/* cleat generate: answers prompts with a language model, and prints them as they grow. */
#include "cli.h"
#include "core/files.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "platform/system.h"
#include "platform/text.h"

#include <cleat/generate.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 256 };

typedef struct request {
    const char *init, *data, *prompt, *out;
    double max_tokens, context, temperature, top_k, top_p, seed;
    FILE *table; /* generated.jsonl, or NULL */
    size_t line; /* of the standard input; 0: prompts have ids of their own */
    size_t answers, cut;
    double prompt_tokens, prompt_seconds, tokens, seconds;
    cleat_status status;
    cleat_error error;
} request;

/* --- answers ---------------------------------------------------------------------------------------------------- */

/* Control characters of an answer do not reach a terminal. */
static void print_text(const char *text, size_t size) {
    const bool all = !isatty(STDOUT_FILENO);
    for (size_t i = 0; i < size; ++i) {
        const unsigned char c = (unsigned char)text[i];
        if (all || c == '\n' || c == '\t' || (c >= ' ' && c != 0x7f)) putchar(c);
    }
    fflush(stdout);
}

static cleat_status write_row(request *r, const cleat_answer *a, cleat_error *error) {
    char id[32];
    char *completion = calloc(a->text.size + 1, 1);
    if (!completion) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for an answer");
    if (a->text.size) memcpy(completion, a->text.data, a->text.size);
    snprintf(id, sizeof id, "%zu", r->line);
    cleat_string json = {.spaced = true};
    json_add(&json, json_open(NULL, '{'), json_clean("id", r->line ? id : a->id), json_clean("prompt", a->prompt),
             json_clean("completion", completion));
    if (a->truth) json_add(&json, json_clean("truth", a->truth));
    json_add(&json, json_count("tokens", a->tokens), json_number("seconds", a->prompt_seconds + a->seconds),
             json_close('}'));
    cleat_status status = json.failed ? cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for an answer") : CLEAT_OK;
    if (!status && (fprintf(r->table, "%s\n", json.data) < 0 || fflush(r->table)))
        status = cleat_fail(error, CLEAT_ERR_IO, "%s/generated.jsonl: cannot write: %s", r->out, strerror(errno));
    cleat_string_free(&json);
    free(completion);
    return status;
}

static bool on_token(void *user, const cleat_answer *answer) {
    request *r = user;
    print_text(answer->new_text.data, answer->new_text.size);
    if (answer->end == CLEAT_ANSWER_GOES_ON) return !ferror(stdout);
    print_text("\n", 1);
    ++r->answers;
    r->cut += answer->end == CLEAT_ANSWER_CONTEXT;
    r->prompt_tokens += (double)answer->prompt_tokens;
    r->prompt_seconds += answer->prompt_seconds;
    r->tokens += (double)answer->tokens;
    r->seconds += answer->seconds;
    if (r->table) r->status = write_row(r, answer, &r->error);
    return !r->status && !ferror(stdout);
}

/* --- interruption ----------------------------------------------------------------------------------------------- */

static char prompt_folder[CLEAT_PATH], prompt_file[CLEAT_PATH + NAME]; /* temporary; "": there is none */

/* Removes them and ends as without a handler: finished answers are written. */
static void on_interruption(int number) {
    unlink(prompt_file);
    rmdir(prompt_folder);
    signal(number, SIG_DFL);
    raise(number);
}

/* --- prompts ---------------------------------------------------------------------------------------------------- */

static cleat_status answer_file(request *r, cleat_generator *generator, const char *path, cleat_error *error) {
    const cleat_status status = cleat_generate(generator, path, on_token, r, error);
    if (!r->status) return status;
    *error = r->error;
    return r->status;
}

/* Answers a text that a file of this name would contain. */
static cleat_status answer_text(request *r, cleat_generator *generator, const char *name, const char *text,
                                cleat_error *error) {
    snprintf(prompt_file, sizeof prompt_file, "%s/%s", prompt_folder, name);
    FILE *file = fopen(prompt_file, "wb");
    const bool written = file && fprintf(file, "%s\n", text) >= 0;
    if (!file || fclose(file) != 0 || !written)
        return cleat_fail(error, CLEAT_ERR_IO, "%s: cannot write: %s", prompt_file, strerror(errno));
    const cleat_status status = answer_file(r, generator, prompt_file, error);
    unlink(prompt_file);
    return status;
}

static cleat_status answer_prompt(request *r, cleat_generator *generator, const cleat_profile *profile,
                                  cleat_error *error) {
    char column[NAME];
    cleat_string json = {.spaced = true};
    cleat_status status = cleat_profile_get(profile, "data.prompt_column", column, sizeof column, error);
    if (status) return status;
    json_add(&json, json_open(NULL, '{'), json_text(column, r->prompt), json_close('}'));
    status = json.failed ? cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a prompt")
                         : answer_text(r, generator, "prompt.jsonl", json.data, error);
    cleat_string_free(&json);
    return status;
}

/* One line after the other, as they arrive. */
static cleat_status answer_stream(request *r, cleat_generator *generator, cleat_error *error) {
    char *line = NULL;
    size_t room = 0;
    cleat_status status = CLEAT_OK;
    const bool asks = isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
    if (asks) fprintf(stderr, "a prompt a line; " CLEAT_END_OF_INPUT " ends\n> ");
    cleat_read_console();
    for (ssize_t size; !status && (size = getline(&line, &room, stdin)) >= 0;) {
        ++r->line;
        if (strlen(line) != (size_t)size)
            status = cleat_fail(error, CLEAT_ERR_FORMAT, "the standard input, line %zu: a zero character", r->line);
        while (size > 0 && strchr("\r\n", line[size - 1])) line[--size] = 0;
        const char *start = line + strspn(line, " \t");
        if (!status && *start)
            status = answer_text(r, generator, *start == '{' ? "stdin.jsonl" : "stdin.lines", line, error);
        if (status) (void)cleat_fail_in(error, status, "line %zu of the standard input", r->line);
        if (asks && !status) fprintf(stderr, "> ");
    }
    if (asks) fprintf(stderr, "\n");
    free(line);
    if (!status && !r->answers)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "--data -: the standard input has no prompt");
    return status;
}

static void print_speed(const request *r, const cleat_generator *generator) {
    if (cli_is_quiet() || !r->answers) return;
    fprintf(stderr, "%zu answers: %.0f tokens, %.1f per second; prompts: %.0f tokens, %.1f per second\n", r->answers,
            r->tokens, r->seconds > 0 ? r->tokens / r->seconds : 0, r->prompt_tokens,
            r->prompt_seconds > 0 ? r->prompt_tokens / r->prompt_seconds : 0);
    if (r->cut)
        fprintf(stderr,
                "%zu answers ended because prompt and answer have %lld tokens (model.max_positions, --context)\n",
                r->cut, (long long)cleat_generator_context(generator));
}

static cleat_status open_table(request *r, cleat_error *error) {
    char path[CLEAT_PATH + NAME];
    if (!r->out) return CLEAT_OK;
    cleat_status status = cleat_folder_make(r->out, error);
    snprintf(path, sizeof path, "%s/generated.jsonl", r->out);
    if (!status && !(r->table = fopen(path, "wb")))
        status = cleat_fail(error, CLEAT_ERR_IO, "%s: cannot create: %s", path, strerror(errno));
    return status;
}

static cleat_status generate(request *r, const cleat_profile *profile, const char *checkpoint, cleat_error *error) {
    enum { STREAM_CONTEXT = 4096 };
    const bool streams = r->data && strcmp(r->data, "-") == 0;
    const cleat_generate_options options = {
        .checkpoint = checkpoint,
        .sampling = {r->temperature, (int64_t)r->top_k, r->top_p, (uint64_t)r->seed},
        .max_tokens = (int64_t)r->max_tokens,
        .context = r->context > 0 ? (int64_t)r->context
                   : streams      ? STREAM_CONTEXT
                                  : 0};
    cleat_generator *generator = NULL;
    cleat_status status = cleat_generator_open(profile, &options, &generator, error);
    if (!status) status = open_table(r, error);
    if (!status && (streams || r->prompt))
        status = cli_make_temporary("generate", prompt_folder, sizeof prompt_folder, error);
    signal(SIGINT, on_interruption);
    signal(SIGTERM, on_interruption);
    if (!status)
        status = r->prompt ? answer_prompt(r, generator, profile, error)
                 : streams ? answer_stream(r, generator, error)
                           : answer_file(r, generator, r->data, error);
    if (r->answers) print_speed(r, generator);
    if (r->table && fclose(r->table) != 0 && !status)
        status = cleat_fail(error, CLEAT_ERR_IO, "%s/generated.jsonl: cannot write: %s", r->out, strerror(errno));
    if (prompt_folder[0]) cli_remove_temporary(prompt_folder);
    cleat_generator_close(generator);
    return status;
}

static int run(const cli_command *command, int argc, char **argv) {
    const char *device = NULL, *checkpoint = NULL;
    request r = {.max_tokens = 256, .top_p = 1};
    cli_list assignments = {.count = 0}, words = {.count = 0};
    const cli_option options[] = {
        CLI_CHECKPOINT(&checkpoint),
        {"--init", CLI_TEXT, &r.init, "PATH",
         "weights without a run: a Hugging Face folder or a GGUF file of a causal language model"},
        {"--data", CLI_TEXT, &r.data, "PATH",
         "prompts: a line each, JSON lines with messages or prompt, a table with a column prompt; -: the standard "
         "input, "
         "line by line as they arrive"},
        {"--prompt", CLI_TEXT, &r.prompt, "TEXT", "one prompt"},
        {"--out", CLI_TEXT, &r.out, "DIR", "also write DIR/generated.jsonl"},
        {"--max-tokens", CLI_NUMBER, &r.max_tokens, "N", "most tokens of an answer (256)"},
        {"--context", CLI_NUMBER, &r.context, "N",
         "most tokens of a prompt with its answer, for which there is memory (the longest prompt and --max-tokens; "
         "4096 "
         "for --data -; never above model.max_positions)"},
        {"--temperature", CLI_NUMBER, &r.temperature, "T",
         "divisor of the logits before a token is drawn; 0: the likeliest token (default)"},
        {"--top-k", CLI_NUMBER, &r.top_k, "K", "draw from the K likeliest tokens (0: all)"},
        {"--top-p", CLI_NUMBER, &r.top_p, "P", "draw from the likeliest tokens that have probability P together (1)"},
        {"--seed", CLI_NUMBER, &r.seed, "S", "of what is drawn: the same seed, the same text (0)"},
        CLI_DEVICE(&device),
        CLI_SET(&assignments),
        {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &words, &exit_code)) return exit_code;
    if (!r.init && !cli_has_checkpoint(command, &words, checkpoint, &exit_code)) return exit_code;
    if (r.init && (checkpoint || words.count > 1))
        return cli_usage(command, "give --checkpoint or --init, and at most one profile");
    if (!r.data == !r.prompt) return cli_usage(command, "give the prompts: --data PATH, --data - or --prompt TEXT");
    if (!cli_is_count(r.max_tokens, 1, 1e9) || !cli_is_count(r.top_k, 0, 1e9) || !cli_is_count(r.seed, 0, 0x1p53) ||
        (r.context != 0 && !cli_is_count(r.context, 2, 1e9)))
        return cli_usage(command, "--max-tokens, --context, --top-k, --seed: whole numbers, at least 1, 2, 0, 0");
    if (!(r.temperature >= 0 && r.temperature < 1e9 && r.top_p > 0 && r.top_p <= 1))
        return cli_usage(command, "--temperature: at least 0 (0: the likeliest token); --top-p: above 0, at most 1");
    cleat_error error = {0};
    cleat_profile *profile = NULL;
    cleat_status status =
        r.init ? cli_profile_of_init(&words, r.init, "data.max_length=2", &assignments, device, &profile, &error)
               : cli_profile_of_checkpoint(&words, checkpoint, &assignments, device, &profile, &error);
    if (!status) status = generate(&r, profile, checkpoint, &error);
    cleat_profile_destroy(profile);
    return cli_finish(status, &error);
}

const cli_command cli_generate = {"generate",
                                  "[PROFILE] --checkpoint DIR | --init PATH  --data PATH|- | --prompt TEXT [--out DIR] "
                                  "[--max-tokens N] [--context N] [--temperature T] [--top-k K] [--top-p P] [--seed S] "
                                  "[--device SEL] [--set section.key=value ...]",
                                  "answer prompts with a causal language model", run};

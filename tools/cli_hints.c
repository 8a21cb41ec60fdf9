/* Suggestions for an unknown option or command: near names, settings, and the words of other programs. */
#include "cli.h"
#include "core/string.h"
#include "platform/text.h"

#include <cleat/profile.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *cli_next_setting(const char *help, char section[CLI_NAME], char name[CLI_NAME]) {
    for (const char *line = help; line && *line;) {
        /* sections in brackets, keys after two blanks */
        const size_t key = strncmp(line, "  ", 2) == 0 ? strspn(line + 2, "abcdefghijklmnopqrstuvwxyz0123456789_") : 0;
        const char *next = strchr(line, '\n');
        if (*line == '[') snprintf(section, CLI_NAME, "%.*s", (int)strcspn(line + 1, "]\n"), line + 1);
        if (key > 0 && strncmp(line + 2 + key, " = ", 3) == 0) {
            snprintf(name, CLI_NAME, "%.*s", (int)key, line + 2);
            return next ? next + 1 : line + strlen(line);
        }
        line = next ? next + 1 : NULL;
    }
    return NULL;
}

typedef struct settings {
    char (*names)[2 * CLI_NAME]; /* [count] "train.epochs" */
    size_t count;
} settings;

static const char *key_of(const char *name) {
    return strchr(name, '.') + 1;
}

/* All settings of all families; none if there is no memory. The caller frees the names. */
static settings read_settings(void) {
    settings all = {.count = 0};
    char *text = NULL, section[CLI_NAME] = "", name[CLI_NAME];
    size_t count = 0;
    if (cleat_profile_help(&text, NULL) != CLEAT_OK) return all;
    for (const char *at = text; (at = cli_next_setting(at, section, name));) ++count;
    all.names = calloc(count, sizeof *all.names);
    section[0] = 0;
    for (const char *at = text; all.names && all.count < count && (at = cli_next_setting(at, section, name));)
        snprintf(all.names[all.count++], sizeof all.names[0], "%s.%s", section, name);
    free(text);
    return all;
}

enum { HINT_WORD = CLI_HINT - 64 };

/* NAME=VALUE as one word of a shell. */
static const char *assignment(const char *name, const char *value, char text[HINT_WORD]) {
    char plain[HINT_WORD];
    snprintf(plain, sizeof plain, "%s=%s", name, value ? value : "VALUE");
    if (!cleat_shell_word(plain, text, HINT_WORD)) snprintf(text, HINT_WORD, "%s=VALUE", name);
    return text;
}

/* The settings called `name`, with or without the section, as " or --set SECTION.KEY=VALUE". */
static bool hint_setting(const settings *all, const char *name, const char *value, char text[CLI_HINT]) {
    char word[HINT_WORD];
    size_t used = 0;
    for (size_t i = 0; i < all->count && used < CLI_HINT; ++i) {
        if (strcmp(name, all->names[i]) != 0 && strcmp(name, key_of(all->names[i])) != 0) continue;
        used += (size_t)snprintf(text + used, CLI_HINT - used, "%s--set %s",
                                 used ? " or " : "; it is a setting: ", assignment(all->names[i], value, word));
    }
    return used > 0;
}

static bool hint_near_setting(const settings *all, const char *name, const char *value, char text[CLI_HINT]) {
    const char **keys = calloc(all->count + 1, sizeof *keys);
    if (!keys) return false;
    for (size_t i = 0; i < all->count; ++i) keys[i] = strchr(name, '.') ? all->names[i] : key_of(all->names[i]);
    const char *near = cleat_nearest_name(name, keys, all->count);
    char word[HINT_WORD];
    size_t at = 0;
    while (near && keys[at] != near) ++at;
    if (near) snprintf(text, CLI_HINT, "; did you mean --set %s?", assignment(all->names[at], value, word));
    free(keys);
    return near != NULL;
}

/* Names of other programs; `meant` is an option, with its value if that is fixed, or a setting. The first row
 * whose option the command has is shown. */
static const struct {
    const char *meant, *names;
} synonyms[] = {
    {"train.learning_rate", "lr"},
    {"train.epochs", "epoch num_epochs num_train_epochs max_epochs n_epochs"},
    {"--batch-size", "batch bs"},
    {"train.effective_batch_size", "batch_size batch bs"},
    {"train.weight_decay", "wd"},
    {"train.warmup_steps", "warmup"},
    {"train.schedule", "scheduler lr_scheduler"},
    {"train.max_grad_norm", "clip grad_clip gradient_clip gradient_clip_val"},
    {"train.gradient_accumulation_steps", "accumulation_steps accumulate_grad_batches"},
    {"train.precision=f16", "fp16 half amp"},
    {"train.precision=bf16", "bf16"},
    {"train.precision=f32", "fp32"},
    {"train.precision=tf32", "allow_tf32"},
    {"train.precision", "mixed_precision dtype"},
    {"loader.num_workers", "workers j jobs threads"},
    {"run.seed", "random_seed"},
    {"run.early_stopping_patience", "patience early_stopping"},
    {"data.path", "data data_dir data_path dataset train_data"},
    {"--device gpu", "gpu gpus cuda"},
    {"--device cpu", "cpu"},
    {"--device", "d"},
    {"--out", "o output output_dir out_dir save_dir log_dir logdir"},
    {"--checkpoint", "ckpt model weights load"},
    {"model.type", "model_type arch model"},
    {"--data", "input i"},
    {"--resume", "restart continue"},
    {"--resume-from", "resume_from_checkpoint"},
    {"--time-budget", "time_limit max_time"},
    {"--set", "s config option"},
    {"--quiet", "q silent"},
    {"--log debug", "v verbose debug"},
    {"--version", "V"},
};

static const cli_option *find(const cli_option *options, const char *name, size_t length) {
    for (; options->name; ++options)
        if (strncmp(options->name, name, length) == 0 && !options->name[length]) return options;
    return NULL;
}

/* The row's hint, if the command has that option or takes settings. */
static bool hint_meant(const cli_option *options, const char *meant, const char *value, char text[CLI_HINT]) {
    const bool is_setting = meant[0] != '-';
    char word[HINT_WORD];
    const size_t length = strcspn(meant, " ");
    const cli_option *option = is_setting ? find(options, "--set", 5) : find(options, meant, length);
    if (!option) return false;
    if (is_setting)
        snprintf(text, CLI_HINT, "; did you mean --set %s?",
                 strchr(meant, '=') ? meant : assignment(meant, value, word));
    else
        snprintf(text, CLI_HINT, "; did you mean %s%s%s?", meant,
                 value && option->value_name && !meant[length] ? " " : "",
                 value && option->value_name && !meant[length] ? value : "");
    return true;
}

static bool hint_synonym(const cli_option *options, const char *name, const char *value, char text[CLI_HINT]) {
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; ++i)
        if (cleat_has_word(synonyms[i].names, name, ' ') && hint_meant(options, synonyms[i].meant, value, text))
            return true;
    return false;
}

/* "--Num-Epochs=3" is num_epochs; a single letter keeps its case. */
static void plain_name(const char *word, char name[CLI_NAME]) {
    word += strspn(word, "-");
    const size_t length = strcspn(word, "=");
    for (size_t i = 0; i < length && i + 1 < CLI_NAME; ++i)
        name[i] = word[i] == '-' ? '_' : length > 1 ? (char)tolower((unsigned char)word[i]) : word[i];
    name[length < CLI_NAME ? length : CLI_NAME - 1] = 0;
}

static bool hint_near_option(const cli_option *options, const char *name, char text[CLI_HINT]) {
    char plain[64][CLI_NAME];
    const char *names[64] = {NULL};
    size_t count = 0;
    for (const cli_option *option = options; option->name && count < 64; ++option) {
        plain_name(option->name, plain[count]);
        names[count] = plain[count];
        ++count;
    }
    const char *near = strlen(name) > 1 ? cleat_nearest_name(name, names, count) : NULL;
    for (size_t i = 0; near && i < count; ++i)
        if (names[i] == near) snprintf(text, CLI_HINT, "; did you mean %s?", options[i].name);
    return near != NULL;
}

typedef struct owner {
    const char *word; /* option looked for */
    size_t length;
    const cli_command *command; /* the first that has it; NULL: none */
} owner;

static void find_owner(const cli_command *command, const cli_option *options, void *user) {
    owner *wanted = user;
    if (!wanted->command && find(options, wanted->word, wanted->length)) wanted->command = command;
}

/* An option of commands that precedes the command's name. */
static bool hint_owner(const char *word, char text[CLI_HINT]) {
    owner wanted = {.word = word, .length = strcspn(word, "=")};
    size_t count;
    const cli_command *const *commands = cli_commands(&count);
    for (size_t i = 0; i < count; ++i) cli_visit_options(commands[i], find_owner, &wanted);
    if (!wanted.command) return false;
    snprintf(text, CLI_HINT, "; it follows the name of a command, as in `cleat %s %.*s`", wanted.command->name,
             (int)wanted.length, word);
    return true;
}

void cli_hint_option(const cli_command *command, const cli_option *options, const char *word, const char *value,
                     char text[CLI_HINT]) {
    char name[CLI_NAME] = "";
    plain_name(word, name);
    text[0] = 0;
    if (command == &cli_program && hint_owner(word, text)) return;
    if (hint_synonym(options, name, value, text)) return;
    const settings all = find(options, "--set", 5) ? read_settings() : (settings){.count = 0};
    bool found = hint_setting(&all, name, value, text);
    found = found || hint_near_option(options, name, text);
    if (!found) hint_near_setting(&all, name, value, text);
    free(all.names);
}

void cli_hint_command(const char *word, char text[CLI_HINT]) {
    static const struct {
        const char *name, *meant;
    } other_names[] = {{"fit", "train"},       {"run", "train"},       {"resume", "train"},      {"evaluate", "eval"},
                       {"test", "eval"},       {"infer", "predict"},   {"inference", "predict"}, {"chat", "generate"},
                       {"check", "doctor"},    {"info", "doctor"},     {"list", "devices"},      {"watch", "monitor"},
                       {"benchmark", "bench"}, {"settings", "config"}, {"profiles", "config"},   {"show", "config"}};
    const char *names[64], *near = NULL;
    char path[CLEAT_PATH], quoted[HINT_WORD];
    size_t count;
    const cli_command *const *commands = cli_commands(&count);
    text[0] = 0;
    for (size_t i = 0; i < count && i < 64; ++i) names[i] = commands[i]->name;
    near = cleat_nearest_name(word, names, count);
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; ++i)
        if (strcmp(other_names[i].name, word) == 0) near = other_names[i].meant;
    if (cleat_profile_find(word, path, sizeof path, NULL) == CLEAT_OK && cleat_shell_word(word, quoted, sizeof quoted))
        snprintf(text, CLI_HINT, "; to train this profile: cleat train %s", quoted);
    else if (near)
        snprintf(text, CLI_HINT, "; did you mean '%s'?", near);
}

void cli_explain_quotes(int argc, char **argv) {
    for (int i = 1; i < argc && *CLEAT_SHELL_QUOTE == '"'; ++i) {
        size_t marks = 0;
        for (const char *c = argv[i]; *c; ++c) marks += *c == '"';
        if (marks % 2 == 0 && argv[i][0] != '\'') continue;
        fprintf(stderr,
                "cleat: Windows passed this as one argument: %s\n"
                "Quote with \"...\", and write / instead of a backslash before the closing quote: \\\" is read as a "
                "character of the argument. For cmd, ' is no quote\n",
                argv[i]);
        return;
    }
}

/* cleat completion: prints a script that completes command lines in bash, zsh or fish. All of it comes from the
 * commands' own tables of options, their usage lines, the cards and the settings of the library. */
#include "cli.h"

#include <cleat/card.h>
#include <cleat/profile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { NOTHING, WORDS, CARDS, SETTINGS, FOLDERS, FILES } kind;

typedef struct values {
    kind kind;
    const char *words; /* of WORDS */
} values;

/* By the option's name, or by the name of its value; the first row that fits. */
static const struct {
    const char *option, *value_name;
    values values;
} rows[] = {{"--card", NULL, {CARDS, NULL}},
            {"--split", NULL, {WORDS, "train val test all"}},
            {"--network", NULL, {WORDS, "1Gb 10Gb 25Gb memory pcie3 pcie4 pcie5"}},
            {"--progress", NULL, {WORDS, "auto bar lines none"}},
            {NULL, "SEL", {WORDS, "auto gpu cpu"}},
            {NULL, "TYPE", {WORDS, "f32 f16 bf16 tf32"}},
            {NULL, "LEVEL", {WORDS, "error warning info debug dispatch"}},
            {NULL, "SECTION.KEY=VALUE", {SETTINGS, NULL}},
            {NULL, "DIR", {FOLDERS, NULL}},
            {NULL, "FILE", {FILES, NULL}},
            {NULL, "FILE.ini", {FILES, NULL}},
            {NULL, "PATH", {FILES, NULL}}};

static values values_of(const cli_option *option) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        if (rows[i].option ? strcmp(rows[i].option, option->name) == 0
                           : strcmp(rows[i].value_name, option->value_name) == 0)
            return rows[i].values;
    return (values){NOTHING, NULL};
}

/* Prints the words, or the names of cards, between `before` and `after`; false: the value is something else. */
static bool print_choices(const char *before, values allowed, const char *after) {
    if (allowed.kind != WORDS && allowed.kind != CARDS) return false;
    printf("%s", before);
    if (allowed.kind == WORDS) printf("%s", allowed.words);
    for (size_t i = 0; allowed.kind == CARDS && i < cleat_card_count(); ++i) printf("%s ", cleat_card_name(i));
    printf("%s%s", allowed.kind == CARDS ? "all" : "", after);
    return true;
}

/* Prints "section.key= ..." from the text of `cleat train --help-profile`. */
static void print_settings(const char *help) {
    char section[CLI_NAME] = "", name[CLI_NAME];
    for (const char *at = help; (at = cli_next_setting(at, section, name));) printf("%s.%s= ", section, name);
}

/* Returns the first fixed word of a usage line and moves *usage behind it; NULL: something else follows.
 * "make rna --out DIR" has make and rna, "bash | zsh" has bash and zsh. */
static const char *next_word(const char **usage, int *size) {
    while (**usage == '|' || **usage == ' ') ++*usage;
    const char *word = *usage;
    size_t letters = strspn(word, "abcdefghijklmnopqrstuvwxyz");
    if (letters == 0 || (word[letters] && word[letters] != ' ')) return NULL;
    *size = (int)letters;
    *usage += letters;
    return word;
}

static bool has_words(const cli_command *command) {
    const char *usage = command->usage;
    int size;
    return strstr(usage, "COMMAND") || next_word(&usage, &size);
}

/* Prints the words that may follow the command's name, if they are known. */
static void print_words(const cli_command *command) {
    size_t count;
    const cli_command *const *commands = cli_commands(&count);
    const char *usage = command->usage, *word;
    int size;
    for (size_t i = 0; i < count && strstr(usage, "COMMAND"); ++i) printf("%s ", commands[i]->name);
    while ((word = next_word(&usage, &size))) printf("%.*s ", size, word);
}

static bool takes_profile(const cli_command *command) {
    return strstr(command->usage, "PROFILE") != NULL;
}

/* Prints the names of the profiles that are found by name: those of the installation, and of ./profiles. */
static void print_profiles(void) {
    cleat_profile_entry *entries = NULL;
    size_t count = 0;
    if (cleat_profile_list(&entries, &count, NULL) != CLEAT_OK) return;
    for (size_t i = 0; i < count; ++i)
        if (!strpbrk(entries[i].name, " '\"$`\\:()[]{}")) printf("%s ", entries[i].name);
    free(entries);
}

static bool takes_run(const cli_command *command) {
    return strncmp(command->usage, "RUN", 3) == 0;
}

/* Calls `visit` with the options of every command, the program itself first. */
static void visit_all(cli_visit visit) {
    size_t count;
    const cli_command *const *commands = cli_commands(&count);
    cli_visit_options(&cli_program, visit, NULL);
    for (size_t i = 0; i < count; ++i) cli_visit_options(commands[i], visit, NULL);
}

/* Prints a text for the inside of a single-quoted word; characters of `escaped` get a backslash. */
static void print_quoted(const char *text, const char *escaped) {
    for (; *text; ++text) {
        if (*text == '\'')
            printf("'\\''");
        else
            printf("%s%c", strchr(escaped, *text) ? "\\" : "", *text);
    }
}

static void bash_command(const cli_command *command, const cli_option *options, void *user) {
    (void)user;
    printf("    \"%s\") options=\"", command->name);
    for (; options->name; ++options) printf("%s ", options->name);
    printf("%s\" words=\"", command == &cli_program ? "" : "--help");
    print_words(command);
    if (takes_profile(command) && !has_words(command)) print_profiles();
    printf("\" kind=%s ;;\n", has_words(command)       ? "none"
                              : takes_profile(command) ? "profiles"
                              : takes_run(command)     ? "folders"
                                                       : "files");
}

static void bash_values(const cli_command *command, const cli_option *options, void *user) {
    (void)user;
    for (; options->name; ++options) {
        if (options->kind == CLI_FLAG) continue;
        values allowed = values_of(options);
        printf("    \"%s:%s\") options=\"\" words=\"", command->name, options->name);
        print_choices("", allowed, "");
        if (allowed.kind == SETTINGS) printf("$settings");
        printf("\" kind=%s ;;\n", allowed.kind == FOLDERS                          ? "folders"
                                  : allowed.kind == FILES || allowed.kind == CARDS ? "files"
                                                                                   : "none");
    }
}

/* --log VALUE and --log=VALUE, which bash cuts into three words. */
static void bash_skip_values(const cli_command *command, const cli_option *options, void *user) {
    (void)command, (void)user;
    for (; options->name; ++options)
        if (options->kind != CLI_FLAG)
            printf("        %s) [[ ${COMP_WORDS[i + 1]} == = ]] && ((++i)); ((++i)) ;;\n", options->name);
}

static void print_bash(const char *settings) {
    printf("# bash completion of cleat; printed by `cleat completion bash`\n_cleat() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=\"\" i\n"
           "    local options=\"\" words=\"\" kind=none settings=\"");
    print_settings(settings);
    printf("\"\n    COMPREPLY=()\n"
           "    if [[ $word == = ]]; then word=\"\"; elif [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD - "
           "2]}; fi\n"
           "    for ((i = 1; i < COMP_CWORD; ++i)); do\n        case ${COMP_WORDS[i]} in\n");
    cli_visit_options(&cli_program, bash_skip_values, NULL);
    printf("        -*) ;;\n        *) command=${COMP_WORDS[i]}; break ;;\n        esac\n    done\n"
           "    case $command in\n");
    visit_all(bash_command);
    printf("    *) return ;;\n    esac\n    case $command:$before in\n");
    visit_all(bash_values);
    printf("    esac\n"
           "    if [[ $word == -* && $options ]]; then words=$options kind=none; fi\n"
           "    mapfile -t COMPREPLY < <(\n"
           "        compgen -W \"$words\" -- \"$word\"\n"
           "        case $kind in\n"
           "        folders) compgen -d -- \"$word\" ;;\n"
           "        files) compgen -f -- \"$word\" ;;\n"
           "        profiles) compgen -d -- \"$word\"; compgen -f -X '!*.ini' -- \"$word\" ;;\n"
           "        esac\n    )\n"
           "    if [[ $kind != none ]]; then compopt -o filenames 2>/dev/null; fi\n"
           "    if [[ ${COMPREPLY[0]-} == *= ]]; then compopt -o nospace 2>/dev/null; fi\n"
           "}\ncomplete -F _cleat cleat\n");
}

static void zsh_values(const cli_option *option) {
    values allowed = values_of(option);
    printf(":%s:", option->value_name);
    if (!print_choices("(", allowed, ")"))
        printf("%s", allowed.kind == SETTINGS  ? "_cleat_settings"
                     : allowed.kind == FOLDERS ? "_files -/"
                     : allowed.kind == FILES   ? "_files"
                                               : " ");
}

static void zsh_options(const cli_command *command, const cli_option *options) {
    for (; options->name; ++options) {
        printf(" \\\n            '%s%s[", options->kind == CLI_REPEATED ? "*" : "", options->name);
        print_quoted(options->help, "[]\\");
        printf("]");
        if (options->kind != CLI_FLAG) zsh_values(options);
        printf("'");
    }
    if (command != &cli_program) printf(" \\\n            '--help[show this help]'");
}

static void zsh_command(const cli_command *command, const cli_option *options, void *user) {
    (void)user;
    if (command == &cli_program) return;
    printf("        %s) _arguments", command->name);
    zsh_options(command, options);
    printf(" \\\n            '*:argument:");
    if (has_words(command)) {
        printf("(");
        print_words(command);
        printf(")");
    } else if (takes_profile(command)) {
        printf("{compadd -- ");
        print_profiles();
        printf("; _files -g \"*.ini\"}");
    } else {
        printf("_files%s", takes_run(command) ? " -/" : "");
    }
    printf("' ;;\n");
}

static void zsh_program(const cli_command *command, const cli_option *options, void *user) {
    (void)user;
    printf("    _arguments -C");
    zsh_options(command, options);
    printf(" \\\n            '1:command:->command' '*::argument:->argument'\n");
}

static void print_zsh(const char *settings) {
    size_t count;
    const cli_command *const *commands = cli_commands(&count);
    printf("#compdef cleat\n# zsh completion of cleat; printed by `cleat completion zsh`\n"
           "_cleat_settings() {\n    compadd -S '' -- ");
    print_settings(settings);
    printf("\n}\n_cleat() {\n    local curcontext=$curcontext state line\n    local -a commands\n    commands=(\n");
    for (size_t i = 0; i < count; ++i) {
        printf("        '%s:", commands[i]->name);
        print_quoted(commands[i]->summary, "");
        printf("'\n");
    }
    printf("    )\n");
    cli_visit_options(&cli_program, zsh_program, NULL);
    printf("    case $state in\n    command) _describe command commands ;;\n    argument)\n"
           "        case $words[1] in\n");
    visit_all(zsh_command);
    printf("        esac ;;\n    esac\n}\nif [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n    _cleat \"$@\"\n"
           "else\n    compdef _cleat cleat\nfi\n");
}

static void fish_values(const cli_option *option) {
    values allowed = values_of(option);
    printf(" -x");
    print_choices(" -a '", allowed, "'");
    if (allowed.kind == SETTINGS) printf(" -a \"$settings\"");
    if (allowed.kind == FOLDERS) printf(" -a '(__fish_complete_directories)'");
    if (allowed.kind == FILES) printf(" -a '(__fish_complete_path)'");
}

static void fish_command(const cli_command *command, const cli_option *options, void *user) {
    (void)user;
    char when[96] = "__fish_use_subcommand";
    if (command != &cli_program) snprintf(when, sizeof when, "'__fish_seen_subcommand_from %s'", command->name);
    for (; options->name; ++options) {
        printf("complete -c cleat -n %s -f -l %s", when, options->name + 2);
        if (options->kind != CLI_FLAG) fish_values(options);
        printf(" -d '");
        print_quoted(options->help, "");
        printf("'\n");
    }
    if (command == &cli_program) return;
    printf("complete -c cleat -n %s -f -l help -d 'show this help'\n", when);
    printf("complete -c cleat -n __fish_use_subcommand -f -a %s -d '", command->name);
    print_quoted(command->summary, "");
    printf("'\ncomplete -c cleat -n %s ", when);
    if (has_words(command)) {
        printf("-f -a '");
        print_words(command);
        printf("'\n");
    } else if (takes_profile(command)) {
        printf("-f -k -a '(__fish_complete_suffix .ini) ");
        print_profiles();
        printf("'\n");
    } else {
        printf("%s\n", takes_run(command) ? "-f -a '(__fish_complete_directories)'" : "-F");
    }
}

static void print_fish(const char *settings) {
    printf("# fish completion of cleat; printed by `cleat completion fish`\nset -l settings '");
    print_settings(settings);
    printf("'\n");
    visit_all(fish_command);
}

static int run(const cli_command *command, int argc, char **argv) {
    static const struct {
        const char *name;
        void (*print)(const char *settings);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    cli_list words = {.count = 0};
    const cli_option options[] = {{NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &words, &exit_code)) return exit_code;
    for (size_t i = 0; words.count == 1 && i < sizeof shells / sizeof *shells; ++i) {
        char *settings = NULL;
        cleat_error error = {0};
        if (strcmp(words.items[0], shells[i].name) != 0) continue;
        cleat_status status = cleat_profile_help(&settings, &error);
        if (!status) shells[i].print(settings);
        free(settings);
        return cli_finish(status, &error);
    }
    return cli_usage(command, "there is a script for bash, zsh and fish only");
}

const cli_command cli_completion = {"completion", "bash | zsh | fish",
                                    "print a script with which a shell completes command lines", run};

/* cleat config: prints what a profile would train, with the origin of every value; without one, lists the profiles. */
#include "cli.h"

#include <cleat/profile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 128, VALUE = CLEAT_PROFILE_TEXT + 64, LINE = 196 /* maximum of a profile */ };

typedef struct setting {
    char name[NAME], value[VALUE], origin[VALUE];
    bool changed;     /* the value is not the default, or it is model.type, which determines the settings */
    const char *help; /* of an `auto` value: what it depends on; else NULL */
} setting;

/* Profiles of the same family: the one to show, and one of defaults. */
typedef struct pair {
    const cleat_profile *profile;
    cleat_profile *defaults;
} pair;

static cleat_status open_defaults(pair *both, cleat_error *error) {
    char type[NAME], assignment[2 * NAME];
    cleat_status status = cleat_profile_get(both->profile, "model.type", type, sizeof type, error);
    snprintf(assignment, sizeof assignment, "model.type=%s", type);
    if (!status) status = cleat_profile_create(&both->defaults, error);
    if (!status) status = cleat_profile_set(both->defaults, assignment, error);
    return status;
}

/* Reads the i-th setting; *is_last: there is none. */
static cleat_status read_setting(const pair *both, size_t i, setting *s, bool *is_last, cleat_error *error) {
    char initial[VALUE] = "";
    *is_last = !cleat_profile_key(both->profile, i, s->name, sizeof s->name);
    if (*is_last) return CLEAT_OK;
    cleat_status status = cleat_profile_get(both->profile, s->name, s->value, sizeof s->value, error);
    if (!status) status = cleat_profile_get(both->defaults, s->name, initial, sizeof initial, error);
    if (!status) status = cleat_profile_origin(both->profile, s->name, s->origin, sizeof s->origin, error);
    if (status) return status;
    const char *help = cleat_profile_key_help(both->profile, s->name);
    const char *at = help && strcmp(s->value, "auto") == 0 ? strstr(help, "auto: ") : NULL;
    s->changed = strcmp(s->value, initial) != 0 || strcmp(s->name, "model.type") == 0;
    s->help = at ? at + strlen("auto: ") : NULL;
    return CLEAT_OK;
}

/* "epochs = 40       ; default" */
static void print_setting(const setting *s, char section[NAME]) {
    const int length = (int)strcspn(s->name, ".");
    char line[2 * VALUE + NAME], comment[4 * LINE];
    if (strncmp(section, s->name, (size_t)length) != 0 || section[length]) {
        printf("%s[%.*s]\n", *section ? "\n" : "", length, s->name);
        snprintf(section, NAME, "%.*s", length, s->name);
    }
    snprintf(line, sizeof line, "%s = %s", s->name + length + 1, s->value);
    const char *slash = strrchr(s->origin, '/'), *origin = slash ? slash + 1 : s->origin;
    snprintf(comment, sizeof comment, " ; %.300s%s%s", origin, s->help ? "; auto: " : "", s->help ? s->help : "");
    const int used = printf("%-36s", line);
    if (used < LINE) printf("%.*s", LINE - used, comment);
    printf("\n");
}

static cleat_status print_settings(const pair *both, cleat_string *json, bool only_changed, cleat_error *error) {
    char section[NAME] = "";
    setting s;
    bool is_last = false;
    for (size_t i = 0; !is_last; ++i) {
        cleat_status status = read_setting(both, i, &s, &is_last, error);
        if (status) return status;
        if (is_last || (only_changed && !s.changed)) continue;
        if (json)
            json_add(json, json_open(s.name, '{'), json_text("value", s.value), json_text("origin", s.origin),
                     json_bool("changed", s.changed), json_close('}'));
        else
            print_setting(&s, section);
    }
    return CLEAT_OK;
}

static cleat_status print_profile(const cleat_profile *profile, const char *path, bool json, bool only_changed,
                                  cleat_error *error) {
    pair both = {.profile = profile};
    char hash[33];
    cleat_string text = {.spaced = true};
    cleat_profile_hash(profile, hash);
    const int64_t batch = cleat_profile_effective_batch(profile);
    cleat_status status = open_defaults(&both, error);
    json_add(&text, json_open(NULL, '{'), json_text("profile", path), json_text("hash", hash),
             json_count("effective_batch_size", batch), json_open("settings", '{'));
    if (!status && !json)
        printf("# %s\n# samples per optimizer step: %lld; hash of what is computed: %s\n", path, (long long)batch,
               hash);
    if (!status) status = print_settings(&both, json ? &text : NULL, only_changed, error);
    json_add(&text, json_close('}'), json_close('}'));
    if (!status && json) cli_print_json(&text);
    cleat_string_free(&text);
    cleat_profile_destroy(both.defaults);
    return status;
}

static cleat_status list_profiles(bool json, cleat_error *error) {
    cleat_profile_entry *entries = NULL;
    size_t count = 0;
    cleat_status status = cleat_profile_list(&entries, &count, error);
    if (status) return status;
    cleat_string text = {.spaced = true};
    json_add(&text, json_open(NULL, '['));
    for (size_t i = 0; i < count; ++i) {
        const cleat_profile_entry *entry = &entries[i];
        if (json)
            json_add(&text, json_open(NULL, '{'), json_text("name", entry->name), json_text("path", entry->path),
                     json_text("about", entry->about), json_close('}'));
        else
            printf("%-20s %s\n", entry->name, entry->about);
    }
    json_add(&text, json_close(']'));
    if (json) cli_print_json(&text);
    cleat_string_free(&text);
    free(entries);
    return CLEAT_OK;
}

static int run(const cli_command *command, int argc, char **argv) {
    bool json = false, only_changed = false;
    const char *device = NULL, *init = NULL;
    char path[CLEAT_PATH], init_text[CLEAT_PATH];
    int exit_code;
    cli_list assignments = {.count = 0}, words = {.count = 0};
    const cli_option options[] = {
        {"--changed", CLI_FLAG, &only_changed, NULL, "only values that differ from the default"},
        CLI_DEVICE(&device),
        CLI_INIT(&init),
        CLI_SET(&assignments),
        {"--json", CLI_FLAG, &json, NULL, "print JSON"},
        {NULL, CLI_FLAG, NULL, NULL, NULL}};
    if (!cli_parse(command, options, argc, argv, &words, &exit_code)) return exit_code;
    cleat_error error = {0};
    if (words.count == 0 && assignments.count == 0) return cli_finish(list_profiles(json, &error), &error);
    if (!cli_is_one_profile(command, &words, &assignments, &exit_code)) return exit_code;
    exit_code = cli_assign(command, &assignments, "model.init", init, init_text, sizeof init_text);
    if (exit_code) return exit_code;
    cleat_profile *profile = NULL;
    cleat_status status = cleat_profile_find(words.items[0], path, sizeof path, &error);
    if (!status) status = cli_profile(path, &assignments, device, &profile, &error);
    if (!status) status = print_profile(profile, path, json, only_changed, &error);
    cleat_profile_destroy(profile);
    return cli_finish(status, &error);
}

const cli_command cli_config = {
    "config", "[PROFILE] [--changed] [--device SEL] [--init PATH] [--set section.key=value ...] [--json]",
    "print every setting of a run and where its value comes from; without PROFILE, list the "
    "profiles",
    run};

/* The fuzzer, and the replay of its inputs.
 *
 * With clang's libFuzzer (CLEAT_FUZZER): the entry points of the fuzzer; CLEAT_FUZZ_TARGET names the target.
 * Otherwise a program: `fuzz CORPUS [NAME]` passes every file CORPUS/NAME/FILE to its target and prints their
 * number. */
#include "fuzz.h"

#include "cleat/core.h"
#include "core/files.h"
#include "core/memory.h"
#include "platform/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const fuzz_target *const lists[] = {fuzz_data_targets, fuzz_text_targets, fuzz_run_targets};
enum { LISTS = sizeof lists / sizeof *lists };

const fuzz_target *fuzz_find(const char *name) {
    for (size_t k = 0; k < LISTS; ++k)
        for (const fuzz_target *target = lists[k]; target->name; ++target)
            if (strcmp(target->name, name) == 0) return target;
    return NULL;
}

static void list(void) {
    for (size_t k = 0; k < LISTS; ++k)
        for (const fuzz_target *target = lists[k]; target->name; ++target) printf("%s\n", target->name);
}

static void no_log(void *user, cleat_log_level level, const char *text) {
    (void)user;
    (void)level;
    (void)text;
}

#ifdef CLEAT_FUZZER

const bool fuzz_is_quick = true;
static const fuzz_target *chosen;
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    const char *name = getenv("CLEAT_FUZZ_TARGET");
    (void)argc;
    (void)argv;
    cleat_set_log(no_log, NULL, CLEAT_LOG_ERROR);
    chosen = name ? fuzz_find(name) : NULL;
    if (chosen) return 0;
    list();
    exit(name && strcmp(name, "list") == 0 ? 0 : 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    chosen->parse(bytes, size);
    return 0;
}

#else

const bool fuzz_is_quick = false;

/* Replays every input of one target. Returns their number. */
static size_t replay(const char *corpus, const fuzz_target *target) {
    char folder[1024], path[2048];
    cleat_name_list files = {0};
    snprintf(folder, sizeof folder, "%s/%s", corpus, target->name);
    if (cleat_listing_read(folder, NULL, &files, NULL)) return 0;
    const size_t count = files.count;
    for (size_t i = 0; i < count; ++i) {
        char *data = NULL;
        size_t size = 0;
        snprintf(path, sizeof path, "%s/%s", folder, files.names[i]);
        fprintf(stderr, "%s\n", path); /* the last line names the input that fails */
        if (cleat_file_read(path, &data, &size, NULL)) exit(1);
        uint8_t *exact = malloc(size ? size : 1); /* without a terminating zero, so a sanitizer detects any overrun */
        if (!exact) exit(1);
        memcpy(exact, data, size);
        cleat_free(data);
        target->parse(exact, size);
        free(exact);
    }
    cleat_name_list_free(&files);
    return count;
}

int main(int argc, char **argv) {
    size_t inputs = 0, empty = 0;
    if (argc < 2) {
        list();
        return 0;
    }
    cleat_set_log(no_log, NULL, CLEAT_LOG_ERROR);
    for (size_t k = 0; k < LISTS; ++k)
        for (const fuzz_target *target = lists[k]; target->name; ++target) {
            if (argc > 2 && strcmp(argv[2], target->name) != 0) continue;
            fuzz_clear();
            const size_t found = replay(argv[1], target);
            if (found == 0) fprintf(stderr, "%s: no input for %s\n", argv[1], target->name);
            empty += found == 0;
            inputs += found;
        }
    printf("%zu inputs\n", inputs);
    return empty ? 1 : 0;
}

#endif

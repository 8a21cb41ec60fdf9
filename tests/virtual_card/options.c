/* Options of clBuildProgram: those of the specification, and -cl-nv-* on NVIDIA's cards. */
#include "options.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void add(vc_words *words, const char *word) {
    char **grown = realloc(words->words, (words->count + 2) * sizeof *grown);
    char *copy = strdup(word);
    if (grown) words->words = grown;
    if (!grown || !copy) {
        words->failed = true;
        free(copy);
        return;
    }
    grown[words->count++] = copy;
    grown[words->count] = NULL;
}

void vc_words_add(vc_words *words, ...) {
    va_list list;
    va_start(list, words);
    for (const char *word = va_arg(list, const char *); word; word = va_arg(list, const char *)) add(words, word);
    va_end(list);
}

void vc_words_free(vc_words *words) {
    for (size_t i = 0; i < words->count; ++i) free(words->words[i]);
    free(words->words);
    *words = (vc_words){0};
}

static bool begins(const char *word, const char *with) {
    return strncmp(word, with, strlen(with)) == 0;
}

static bool is_one_of(const char *word, const char *const list[]) {
    for (size_t i = 0; list[i]; ++i)
        if (strcmp(word, list[i]) == 0) return true;
    return false;
}

/* Adds the compiler's arguments for one build option. `next` is the following word, or NULL; *used is the
 * number of words consumed. */
static cl_int translate(const char *word, const char *next, vc_words *words, size_t *used) {
    static const char *const same[] = {"-cl-single-precision-constant",
                                       "-cl-denorms-are-zero",
                                       "-cl-fp32-correctly-rounded-divide-sqrt",
                                       "-cl-opt-disable",
                                       "-cl-strict-aliasing",
                                       "-cl-mad-enable",
                                       "-cl-no-signed-zeros",
                                       "-cl-unsafe-math-optimizations",
                                       "-cl-finite-math-only",
                                       "-cl-fast-relaxed-math",
                                       "-cl-kernel-arg-info",
                                       "-w",
                                       "-Werror",
                                       NULL};
    static const char *const versions[] = {"-cl-std=CL1.0", "-cl-std=CL1.1", "-cl-std=CL1.2", NULL};
    const bool amd = vc_device.card->maker->amd;
    bool is_pair = strcmp(word, "-D") == 0 || strcmp(word, "-I") == 0;
    if (is_pair && !next) return CL_INVALID_BUILD_OPTIONS;
    if (is_pair) {
        vc_words_add(words, word, next, NULL);
        ++*used;
    } else if (begins(word, "-D") || begins(word, "-I") || is_one_of(word, same)) {
        vc_words_add(words, word, NULL);
    } else if (is_one_of(word, versions)) { /* clang's header is incomplete for 1.1 */
        vc_words_add(words, "-cl-std=CL1.2", NULL);
    } else if (strcmp(word, amd ? "-cl-std=CL2.0" : "-cl-std=CL3.0") == 0) {
        vc_words_add(words, word, NULL);
    } else if (amd || !begins(word, "-cl-nv-")) {
        return CL_INVALID_BUILD_OPTIONS;
    }
    return CL_SUCCESS;
}

/* Splits at spaces outside quotation marks. */
static void split(const char *text, vc_words *words) {
    char *word = malloc(strlen(text) + 1);
    if (!word) words->failed = true;
    for (const char *at = text; word && *at;) {
        size_t bytes = 0;
        bool quoted = false;
        while (*at == ' ' || *at == '\t') ++at;
        for (; *at && (quoted || (*at != ' ' && *at != '\t')); ++at)
            if (*at == '"')
                quoted = !quoted;
            else
                word[bytes++] = *at;
        word[bytes] = 0;
        if (bytes) add(words, word);
    }
    free(word);
}

cl_int vc_options_read(const char *options, vc_words *words) {
    vc_words given = {0};
    cl_int code = CL_SUCCESS;
    bool has_version = options && strstr(options, "-cl-std=");
    if (options) split(options, &given);
    if (!has_version) vc_words_add(words, "-cl-std=CL1.2", NULL);
    for (size_t i = 0; i < given.count && code == CL_SUCCESS; ++i)
        code = translate(given.words[i], i + 1 < given.count ? given.words[i + 1] : NULL, words, &i);
    if (code == CL_SUCCESS && (given.failed || words->failed)) code = CL_OUT_OF_HOST_MEMORY;
    vc_words_free(&given);
    return code;
}

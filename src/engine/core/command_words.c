/* Finds options in the text of a command. */
#include "core/command_words.h"

#include "core/shell.h"

#include <stdio.h>
#include <string.h>

/* End of the word at `at`. */
static const char *end_of_word(const char *at) {
    cleat_shell_next(&at, NULL, 0);
    return at;
}

/* The value of `option` if the word at `word` is it, as "--option VALUE" or "--option=VALUE"; NULL: it is not. */
static const char *value_of(const char *word, const char *option) {
    const size_t length = strlen(option);
    const char separator = strncmp(word, option, length) == 0 ? word[length] : 0;
    return separator == ' ' || separator == '=' ? word + length + 1 : NULL;
}

void cleat_command_options(const char *command, char *text, size_t size) {
    static const struct {
        const char *option, *kept_as;
    } options[] = {
        {"--set", "--set "}, {"--device", "--device "}, {"--batch-size", "--set train.effective_batch_size="}};
    size_t used = 0;
    text[0] = 0;
    for (const char *word = command; *word;) {
        const char *end = end_of_word(word);
        for (size_t i = 0; i < sizeof options / sizeof *options; ++i) {
            const char *value = value_of(word, options[i].option);
            if (!value) continue;
            end = end_of_word(value);
            const int put =
                snprintf(text + used, size - used, " %s%.*s", options[i].kept_as, (int)(end - value), value);
            if (put < 0 || (size_t)put >= size - used) {
                text[0] = 0; /* a part of them would train something else */
                return;
            }
            used += (size_t)put;
        }
        word = *end ? end + 1 : end;
    }
}

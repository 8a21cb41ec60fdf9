/* The number of OpenCL programs of a run: each costs 15 ms of every start with PoCL, and on a GPU half a
 * second or more of the first start. Plans and launches are data: no device. */
/* ctest: quick no-memcheck */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/card.h"
#include "exec/exec.h"
#include "fit/fit.h"
#include "platform/files.h"
#include "source_path.h"

enum { MOST = 12 };

static const cleat_lengths lengths = {.count = 4, .lengths = {24, 100, 300, 512}, .samples = {500, 300, 100, 40}};

typedef struct counts {
    size_t parts, programs;
} counts;

/* Checks that no kernel's name equals, or is a prefix of, another's in the same program. */
static void check_names(const cleat_exec *exec) {
    const char *names[512];
    size_t programs[512], count = 0;
    for (size_t g = 0; g < exec->plan->layout_count; ++g)
        for (size_t i = 0; i < exec->graphs[g].binder.count; ++i) {
            const char *name = exec->graphs[g].names[i];
            size_t k = 0;
            if (!name) continue;
            while (k < count && !(programs[k] == exec->graphs[g].program[i] && strcmp(names[k], name) == 0)) ++k;
            assert_true(k < 512);
            if (k < count) continue;
            names[count] = name;
            programs[count++] = exec->graphs[g].program[i];
        }
    for (size_t i = 0; i < count; ++i)
        for (size_t k = 0; k < count; ++k)
            if (i != k && programs[i] == programs[k] && strncmp(names[i], names[k], strlen(names[i])) == 0)
                fail_msg("'%s' begins '%s'", names[i], names[k]);
}

static counts count_programs(const char *path, const char *precision, const cleat_card *card) {
    char set[64];
    cleat_profile *profile = NULL;
    cleat_model *model = NULL;
    cleat_fit_result fitted = {0};
    cleat_error error = {0};
    snprintf(set, sizeof set, "train.precision=%s", precision);
    const char *const sets[] = {set};
    if (cleat_profile_load(path, sets, 1, &profile, &error) || cleat_profile_create_model(profile, &model, &error))
        fail_msg("%s: %s", path, error.text);
    cleat_lengths own = lengths;
    if (cleat_model_fixed_length(model) > 0)
        own = (cleat_lengths){.count = 1, .lengths = {cleat_model_fixed_length(model)}, .samples = {1000}};
    const cleat_fit_request request =
        cleat_fit_request_for(profile, model, CLEAT_FOR_TRAINING, &own, &card->facts, &card->rates);
    if (cleat_fit_search(&request, &fitted, NULL, NULL, 0, &error)) fail_msg("%s: %s", path, error.text);
    cleat_exec exec = {.plan = fitted.work->plan};
    if (cleat_exec_list_programs(&exec, &error)) fail_msg("%s: %s", path, error.text);
    check_names(&exec);
    const counts made = {exec.part_count, exec.program_count};
    cleat_exec_unbind(&exec);
    cleat_fit_result_clear(&fitted);
    cleat_model_destroy(model);
    cleat_profile_destroy(profile);
    return made;
}

static void profiles_have_few_programs(void **state) {
    static const char *const cards[] = {"pocl_cpu", "t4", "a100_40", "mi210", "arc_a770"};
    static const char *const precisions[] = {"f32", "f16"};
    size_t profiles = 0, most_parts = 0;
    DIR *folder = opendir(source_path("profiles"));
    (void)state;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        const char *ending = strrchr(entry->d_name, '.');
        if (!ending || strcmp(ending, ".ini") != 0) continue;
        char path[512], line[256] = "";
        snprintf(path, sizeof path, "%s/%s", source_path("profiles"), entry->d_name);
        ++profiles;
        for (size_t c = 0; c < sizeof cards / sizeof *cards; ++c)
            for (size_t p = 0; p < 2; ++p) {
                cleat_card card;
                cleat_error error = {0};
                if (cleat_card_open(cards[c], &card, &error)) fail_msg("%s", error.text);
                const counts made = count_programs(path, precisions[p], &card);
                snprintf(line + strlen(line), sizeof line - strlen(line), " %zu/%zu", made.programs, made.parts);
                if (made.programs > MOST)
                    fail_msg("%s in %s on %s: %zu programs, more than %d", entry->d_name, precisions[p], cards[c],
                             made.programs, (int)MOST);
                if (made.parts > most_parts) most_parts = made.parts;
            }
        print_message("%-24s%s\n", entry->d_name, line);
    }
    closedir(folder);
    assert_true(profiles >= 15 && most_parts > 2 * MOST); /* so the limit is tight */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(profiles_have_few_programs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Helpers of the image set tests. */
#include "image_sets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"

char images_warnings[8192];

static void keep_warning(void *user, cleat_log_level level, const char *text) {
    (void)user;
    if (level == CLEAT_LOG_WARNING && strlen(images_warnings) + strlen(text) + 2 < sizeof images_warnings)
        strcat(strcat(images_warnings, text), "\n");
}

const char *images_lasting(const char *path) {
    static char paths[64][512];
    static int next;
    char *copy = paths[next++ % 64];
    snprintf(copy, sizeof paths[0], "%s", path);
    return copy;
}

cleat_image_options images_small_options(void) {
    cleat_image_options options = cleat_image_defaults();
    options.size = 12;
    options.val_fraction = 0;
    return options;
}

cleat_dataset *images_open_ok(const char *path, const cleat_image_options *options) {
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    *images_warnings = 0;
    if (cleat_images_open(path, options, &dataset, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return dataset;
}

void images_expect_failure(const char *path, const cleat_image_options *options, const char *words) {
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    char copy[512], *rest = NULL;
    *images_warnings = 0;
    assert_int_not_equal(cleat_images_open(path, options, &dataset, &error), CLEAT_OK);
    assert_null(dataset);
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok_r(copy, "|", &rest); word; word = strtok_r(NULL, "|", &rest))
        if (!strstr(error.text, word)) fail_msg("no '%s' in: %s", word, error.text);
}

int32_t images_fill(const cleat_dataset *dataset, size_t sample, const cleat_rng_key *rng_key, float *image) {
    int32_t label = 99;
    void *slots[2] = {image, &label};
    cleat_error error = {0};
    if (cleat_dataset_fill(dataset, sample, cleat_dataset_length(dataset, sample), rng_key, slots, &error) != CLEAT_OK)
        fail_msg("%s", error.text);
    return label;
}

size_t images_sample_called(const cleat_dataset *dataset, const char *id) {
    for (size_t i = 0; i < cleat_dataset_count(dataset); ++i)
        if (strcmp(cleat_dataset_id(dataset, i), id) == 0) return i;
    fail_msg("no sample %s", id);
    return 0;
}

void images_expect_memory_errors(const char *path, const cleat_image_options *options) {
    long n = 1;
    for (cleat_status status = CLEAT_ERR_MEMORY; status; ++n) {
        cleat_dataset *dataset = NULL;
        cleat_error error = {0};
        cleat_fail_allocation(n);
        status = cleat_images_open(path, options, &dataset, &error);
        cleat_fail_allocation(0);
        if (status && status != CLEAT_ERR_MEMORY) fail_msg("allocation %ld: %s", n, error.text);
        assert_true((!status) == (dataset != NULL));
        if (dataset) cleat_dataset_destroy(dataset);
    }
    assert_true(n > 20);
}

int images_set_up(void **state) {
    (void)state;
    cleat_set_log(keep_warning, NULL, CLEAT_LOG_WARNING);
    return 0;
}

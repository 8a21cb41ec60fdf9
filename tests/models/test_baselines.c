/* Baselines of the families that are fitted to training data: values on the shared data as scikit-learn, scikit-image
 * and numpy compute them (baselines.py), and data to which nothing can be fitted. */
/* ctest: quick cost=10 no-memcheck */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/models.h"
#include "cleat/profile.h"
#include "core/memory.h"
#include "data/dataset.h"
#include "models/examples.h"
#include "platform/files.h"
#include "source_path.h"

/* A dataset of a profile, and its validation samples. */
typedef struct opened {
    cleat_model *model;
    cleat_dataset *dataset;
    uint32_t *samples;
    size_t count;
} opened;

/* Opens `path` with the profile `name` and other settings, which end in NULL. */
static opened open_data(const char *name, const char *path, const char *const *settings) {
    cleat_profile *profile = NULL;
    opened o = {.model = NULL};
    cleat_error error = {0};
    char file[512];
    snprintf(file, sizeof file, "%s/%s.ini", source_path("profiles"), name);
    if (cleat_profile_load(file, NULL, 0, &profile, &error)) fail_msg("%s", error.text);
    for (; *settings; ++settings)
        if (cleat_profile_set(profile, *settings, &error)) fail_msg("%s", error.text);
    if (cleat_profile_create_model(profile, &o.model, &error)) fail_msg("%s", error.text);
    cleat_profile_destroy(profile);
    if (cleat_model_open_data(o.model, path, CLEAT_MODE_TRAIN, NULL, &o.dataset, &error)) fail_msg("%s", error.text);
    if (cleat_dataset_samples(o.dataset, CLEAT_SPLIT_VAL, &o.samples, &o.count, &error)) fail_msg("%s", error.text);
    return o;
}

static void close_data(opened *o) {
    cleat_samples_free(o->samples);
    cleat_dataset_destroy(o->dataset);
    cleat_model_destroy(o->model);
}

/* The stronger baseline of the validation samples. Simple baselines take the number of samples of each class, or of
 * pixels of each value, from the state of an evaluation, of which the fitted one has as many. */
static cleat_baseline baseline_of(const opened *o, const char *metric) {
    double *state = cleat_alloc(cleat_model_metric_state_size(o->model), sizeof *state);
    cleat_evaluation evaluated = {
        .dataset = o->dataset, .samples = o->samples, .n_samples = o->count, .metric_state = state, .metric = metric};
    cleat_baseline baseline;
    char text[CLEAT_BASELINE_TEXT] = "";
    cleat_error error = {0};
    if (o->model->type->examples->fitted(o->model, &evaluated, state, text, &error)) fail_msg("%s", error.text);
    if (cleat_model_baseline(o->model, &evaluated, &baseline, &error)) fail_msg("%s", error.text);
    cleat_free(state);
    return baseline;
}

/* A data set of $CLEAT_SHARED; without it the test is skipped. */
static const char *shared(const char *name) {
    static char path[512];
    const char *root = getenv("CLEAT_SHARED");
    if (!root) skip();
    snprintf(path, sizeof path, "%s/data/%s", root, name);
    return path;
}

typedef struct expected {
    const char *profile, *data, *settings[3], *metric, *text;
    double value, tolerance;
} expected;

static void check(const expected *e) {
    opened o = open_data(e->profile, shared(e->data), e->settings);
    const cleat_baseline found = baseline_of(&o, e->metric);
    assert_true(found.known);
    assert_string_equal(found.metric, e->metric);
    if (!strstr(found.text, e->text)) fail_msg("%s: '%s' lacks '%s'", e->data, found.text, e->text);
    if (!(fabs(found.value - e->value) <= e->tolerance))
        fail_msg("%s: %.9g instead of %.9g", e->data, found.value, e->value);
    close_data(&o);
}

static void texts_have_naive_bayes(void **state) {
    (void)state;
    check(&(expected){.profile = "tweets_sentiment",
                      .data = "tweets_sentiment",
                      .metric = "accuracy",
                      .text = "naive Bayes",
                      .value = 0.6415,
                      .tolerance = 1e-9});
}

static void images_have_the_nearest_mean(void **state) {
    (void)state;
    check(&(expected){.profile = "image_fashion",
                      .data = "fashion_mnist",
                      .metric = "accuracy",
                      .text = "nearest mean image",
                      .value = 0.66625,
                      .tolerance = 1e-9});
    check(&(expected){.profile = "image_224", /* 7 x 7 pixels become one */
                      .data = "blood_cells/jpeg224",
                      .metric = "accuracy",
                      .text = "nearest mean image",
                      .value = 0.781065089,
                      .tolerance = 0.006}); /* one image of 169: another JPEG decoder */
}

static void masks_have_a_threshold(void **state) {
    (void)state;
    check(&(expected){.profile = "masks",
                      .data = "nuclei_seg",
                      .metric = "iou",
                      .text = "the mask is what is brighter",
                      .value = 0.73315188,
                      .tolerance = 1e-4});
}

static void chains_have_mean_distances(void **state) {
    (void)state;
    check(&(expected){.profile = "rna",
                      .data = "rna_3d",
                      .settings = {"data.generated=none"},
                      .metric = "pair_mae",
                      .text = "mean distance of each separation",
                      .value = 6.5640136,
                      .tolerance = 1e-5});
    check(&(expected){.profile = "rna", /* which have no superposition */
                      .data = "rna_3d",
                      .metric = "rmsd",
                      .text = "A-form helix",
                      .value = 45.8,
                      .tolerance = 45});
}

/* --- made data ------------------------------------------------------------------------------------------------ */

static char folder[] = "/tmp/cleat-baselines-XXXXXX";

static const char *in_folder(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const char *text) {
    FILE *file = fopen(in_folder(name), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static const char *const text_settings[] = {"data.id_column=", "data.label_column=label", "data.vocabulary_size=64",
                                            NULL};

/* Without a class in the training part, and with words that only the validation part has. */
static void rare_classes_and_words_do_no_harm(void **state) {
    (void)state;
    mkdir(in_folder("rare"), 0700);
    write_file("rare/train.csv", "text,label\naa bb,up\naa aa,up\ncc bb,down\ncc cc,down\ncc,down\n");
    write_file("rare/val.csv", "text,label\naa,up\ncc,down\nzz,down\naa bb aa,up\n");
    opened o = open_data("tweets_sentiment", in_folder("rare"), text_settings);
    const cleat_baseline found = baseline_of(&o, "accuracy");
    assert_true(found.known && found.value == 1); /* zz: the more frequent class */
    assert_non_null(strstr(found.text, "naive Bayes"));
    close_data(&o);
}

/* A file whose words say nothing: the most frequent class is as good, and is named. */
static void an_equal_fitted_baseline_is_not_named(void **state) {
    (void)state;
    mkdir(in_folder("same"), 0700);
    write_file("same/train.csv", "text,label\naa,up\naa,up\naa,down\n");
    write_file("same/val.csv", "text,label\naa,up\naa,down\n");
    opened o = open_data("tweets_sentiment", in_folder("same"), text_settings);
    const cleat_baseline found = baseline_of(&o, "accuracy");
    assert_true(found.known && found.value == 0.5);
    assert_non_null(strstr(found.text, "always predicting 'up'"));
    close_data(&o);
}

/* All samples in one split: there is nothing to fit to. */
static void whole_data_have_the_simple_baseline(void **state) {
    (void)state;
    opened o = open_data("tweets_sentiment", in_folder("rare"), text_settings);
    char text[CLEAT_BASELINE_TEXT] = "";
    double *metric_state = cleat_alloc(cleat_model_metric_state_size(o.model), sizeof *metric_state);
    o.dataset->whole = true;
    const cleat_evaluation evaluated = {.dataset = o.dataset, .samples = o.samples, .n_samples = o.count};
    assert_int_equal(o.model->type->examples->fitted(o.model, &evaluated, metric_state, text, NULL), CLEAT_OK);
    assert_string_equal(text, "");
    cleat_free(metric_state);
    close_data(&o);
}

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : 1;
}

static int remove_folder(void **state) {
    (void)state;
    char command[600];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 ? 0 : 1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_have_naive_bayes),
        cmocka_unit_test(images_have_the_nearest_mean),
        cmocka_unit_test(masks_have_a_threshold),
        cmocka_unit_test(chains_have_mean_distances),
        cmocka_unit_test(rare_classes_and_words_do_no_harm),
        cmocka_unit_test(an_equal_fitted_baseline_is_not_named),
        cmocka_unit_test(whole_data_have_the_simple_baseline),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

/* Numbers and labels: metrics and thresholds beside SciPy 1.17's and scikit-learn 1.9's, weights of the loss, the
 * baseline, predictions. Expected are mean_squared_error, mean_absolute_error, r2_score, f1_score and
 * precision_recall_curve of scikit-learn, pearsonr and spearmanr of SciPy, of the arrays below. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/files.h"
#include "core/memory.h"
#include "models/targets.h"
#include "platform/files.h"

enum { ROWS = 8, MOST = 3 };

static cleat_problem numbers(const void *settings) {
    (void)settings;
    return CLEAT_REGRESSION;
}

static cleat_problem labels(const void *settings) {
    (void)settings;
    return CLEAT_MULTI_LABEL;
}

static size_t held; /* the last samples are validation samples */

static cleat_split split_of(const cleat_dataset *dataset, size_t sample) {
    return sample + held < dataset->count ? CLEAT_SPLIT_TRAIN : CLEAT_SPLIT_VAL;
}

static const char *id_of(const cleat_dataset *dataset, size_t sample) {
    (void)dataset;
    return sample ? "b,2" : "a";
}

typedef struct trial {
    cleat_dataset_class format;
    cleat_dataset dataset;
    cleat_targets targets;
    cleat_target all[MOST];
    cleat_target_entry entries[ROWS * MOST];
    size_t starts[ROWS + 1];
    cleat_model_class family;
    cleat_class_info known[MOST];
    cleat_model model;
    uint32_t samples[ROWS];
    float output[ROWS * MOST];
    cleat_host_batch batch;
} trial;

/* truth, predictions [rows, n] */
static void begin(trial *t, cleat_problem problem, size_t rows, size_t n, const double *truth, const double *found) {
    static char names[MOST][8] = {"size", "age", "third"};
    *t = (trial){.format = {.name = "fake", .split = split_of, .id = id_of}, .family = {.name = "fake"}};
    t->targets = (cleat_targets){.options = {.problem = problem, .standardise = true},
                                 .all = t->all,
                                 .count = n,
                                 .entries = t->entries,
                                 .starts = t->starts,
                                 .rows = rows};
    t->dataset = (cleat_dataset){.type = &t->format, .count = rows, .targets = &t->targets};
    t->family.problem = problem == CLEAT_REGRESSION ? numbers : labels;
    t->model = (cleat_model){.type = &t->family, .own = t->known};
    t->model.sizes.classes = (int64_t)n;
    for (size_t k = 0; k < n; ++k) {
        t->all[k] =
            (cleat_target){.name = names[k], .mean = 10.0 * (double)k, .std = (double)k + 0.5, .threshold = 0.5};
        snprintf(t->known[k].name, sizeof t->known[k].name, "%s", names[k]);
    }
    for (size_t i = 0; i < rows * n; ++i) {
        const size_t k = i % n;
        const bool number = problem == CLEAT_REGRESSION;
        t->output[i] = (float)(number ? (found[i] - t->all[k].mean) / t->all[k].std : log(found[i] / (1 - found[i])));
        if (number ? !isnan(truth[i]) : truth[i] != 0)
            t->entries[t->targets.n_entries++] = (cleat_target_entry){(int32_t)k, (float)truth[i]};
        if (truth[i] > 0) ++t->all[k].samples;
        t->starts[i / n + 1] = t->targets.n_entries;
    }
    for (size_t i = 0; i < rows; ++i) t->samples[i] = (uint32_t)i;
    t->batch = (cleat_host_batch){
        .batch = ROWS, .count = (int64_t)rows, .dataset = &t->dataset, .samples = t->samples, .length = 1};
}

static double *evaluate(trial *t, cleat_mode mode, cleat_weighting weighting) {
    cleat_error error = {0};
    assert_int_equal(cleat_targets_prepare(&t->model, &t->dataset, weighting, mode, &error), CLEAT_OK);
    double *state = cleat_alloc(cleat_targets_state_size(&t->model), sizeof *state);
    assert_non_null(state);
    cleat_targets_update(&t->model, &t->batch, t->output, state);
    return state;
}

static void expect(const cleat_metrics *found, const char *name, double wanted) {
    const double value = cleat_metrics_get(found, name);
    if (!(fabs(value - wanted) < 1e-6)) fail_msg("%s is %.9g, not %.9g", name, value, wanted);
}

static const double truth_1[] = {3, 1, 4, 1, 5, 9, 2, 6}, found_1[] = {2.5, 1.5, 4, 0.5, 5.5, 4, 2.5, 7};

static void metrics_of_one_number_are_those_of_scikit_learn(void **state) {
    (void)state;
    trial t;
    cleat_metrics found = {0};
    begin(&t, CLEAT_REGRESSION, 8, 1, truth_1, found_1);
    double *sums = evaluate(&t, CLEAT_MODE_EVALUATE, CLEAT_WEIGHTING_NONE);
    cleat_targets_compute(&t.model, sums, &found, NULL);
    assert_int_equal(found.count, 5);
    expect(&found, "mse", 3.40625);
    expect(&found, "mae", 1.0625);
    expect(&found, "r2", 0.48463356973995275);
    expect(&found, "pearson", 0.7188159451936693);
    expect(&found, "spearman", 0.884864735957054);
    free(sums);
}

/* The second target is missing in two rows; a training evaluates the validation part only. */
static void missing_numbers_count_in_no_mean(void **state) {
    (void)state;
    trial t;
    cleat_metrics found = {0};
    const double truth_2[] = {-1, NAN, 0, 2, 7, NAN, 8, 2}, found_2[] = {0, 99, 0, 0, 1, -99, 1, -1};
    double truth[16], said[16];
    for (int i = 0; i < 16; ++i) {
        truth[i] = i % 2 ? truth_2[i / 2] : truth_1[i / 2];
        said[i] = i % 2 ? found_2[i / 2] : found_1[i / 2];
    }
    begin(&t, CLEAT_REGRESSION, 8, 2, truth, said);
    double *sums = evaluate(&t, CLEAT_MODE_EVALUATE, CLEAT_WEIGHTING_NONE);
    cleat_targets_compute(&t.model, sums, &found, NULL);
    expect(&found, "age_mse", 16.5);
    expect(&found, "age_mae", 3.1666666666666665);
    expect(&found, "age_r2", -0.4558823529411764);
    expect(&found, "age_pearson", 0.7204381596421112);
    expect(&found, "age_spearman", 0.6262242910851495);
    expect(&found, "size_spearman", 0.884864735957054);
    expect(&found, "mse", (3.40625 + 16.5) / 2);
    free(sums);

    cleat_global_batch all = {.samples = 8, .items = 14};
    float weights[2 * ROWS];
    cleat_targets_weight(&t.model, t.model.sizes.classes, &t.batch, &all, weights);
    for (int i = 0; i < 16; ++i) assert_true(weights[i] == (isnan(truth[i]) ? 0 : 1.0f / 14));

    held = 3;
    found.count = 0;
    sums = evaluate(&t, CLEAT_MODE_TRAIN, CLEAT_WEIGHTING_NONE);
    assert_int_equal(cleat_targets_state_size(&t.model), 3 * 5);
    cleat_targets_compute(&t.model, sums, &found, NULL);
    expect(&found, "size_mae", (5 + 0.5 + 1) / 3);
    expect(&found, "age_mae", 5);
    held = 0;
    free(sums);
    cleat_free(t.targets.slots);
}

static void the_baseline_of_numbers_is_the_training_mean(void **state) {
    (void)state;
    trial t;
    cleat_metrics found = {0};
    char text[CLEAT_BASELINE_TEXT];
    begin(&t, CLEAT_REGRESSION, 8, 1, truth_1, found_1);
    t.all[0].mean = 3.875;
    double *sums = evaluate(&t, CLEAT_MODE_EVALUATE, CLEAT_WEIGHTING_NONE), *base = cleat_alloc(24, sizeof *base);
    const cleat_evaluation evaluated = {.dataset = &t.dataset, .metric_state = sums};
    cleat_targets_baseline(&t.model, &evaluated, base, text);
    cleat_targets_compute(&t.model, base, &found, NULL);
    expect(&found, "r2", 0);
    expect(&found, "mse", 6.609375); /* numpy.var of the truth */
    assert_true(isnan(cleat_metrics_get(&found, "pearson")) && isnan(cleat_metrics_get(&found, "spearman")));
    assert_non_null(strstr(text, "mean"));
    cleat_free(base);
    free(sums);
}

static const double label_truth[] = {1, 0, 0, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0},
                    label_found[] = {.9, .2, .1, .8, .6, .3, .35, .7, .2, .4, .1, .05, .1, .65, .4, .3, .6, .3};

/* classification_report at 0.5, and the log loss of each sample (class_table.py) */
static const cleat_class_row reported[3] = {
    {"size", 1, 0.6666666666666666, 0.8, 3, 0}, {"age", 0.75, 1, 0.8571428571428571, 3, 0}, {"third", 0, 0, 0, 0, 0}};
static const double label_losses[] = {0.14462152754328741, 0.3635480396729776, 0.5432135399172067,
                                      0.22249314460378922, 0.555336087974165,  0.4080585038811519};

static void thresholds_have_the_best_f1(void **state) {
    (void)state;
    trial t;
    cleat_class_row made[3];
    static cleat_class_table table;
    table.rows = made;
    cleat_metrics before = {0}, found = {0};
    cleat_error error = {0};
    begin(&t, CLEAT_MULTI_LABEL, 6, 3, label_truth, label_found);
    double *sums = evaluate(&t, CLEAT_MODE_EVALUATE, CLEAT_WEIGHTING_NONE);
    cleat_targets_compute(&t.model, sums, &before, &table);
    expect(&before, "f1_size", 0.8); /* at 0.5 */
    assert_int_equal(table.count, 3);
    for (int k = 0; k < 3; ++k) {
        assert_string_equal(made[k].name, reported[k].name);
        assert_true(fabs(made[k].precision - reported[k].precision) + fabs(made[k].recall - reported[k].recall) <
                    1e-12);
        assert_true(fabs(made[k].f1 - reported[k].f1) < 1e-12 && made[k].support == reported[k].support);
    }
    assert_int_equal(cleat_targets_choose(&t.model, sums, &t.dataset, &error), CLEAT_OK);
    assert_true(fabs(t.all[0].threshold - 0.325) < 1e-6 && t.known[0].threshold == t.all[0].threshold);
    assert_true(fabs(t.all[1].threshold - 0.4) < 1e-6);
    assert_true(t.all[2].threshold == 0.5); /* no sample has it */
    cleat_targets_compute(&t.model, sums, &found, NULL);
    expect(&found, "f1_size", 6 / 7.0);
    expect(&found, "f1_age", 6 / 7.0);
    expect(&found, "macro_f1", 6 / 7.0); /* the third label occurs nowhere */
    expect(&found, "micro_f1", 12 / 14.0);
    expect(&found, "subset_accuracy", 4 / 6.0);
    free(sums);
}

/* The mean over the known targets of a sample: log loss, or the squared error in standard deviations. */
static void badness_is_the_loss_of_a_sample(void **state) {
    (void)state;
    trial t;
    double badness[ROWS], truth[18];
    for (size_t i = 0; i < ROWS; ++i) badness[i] = -7;
    memcpy(truth, label_truth, sizeof truth);
    for (int i = 15; i < 18; ++i) truth[i] = NAN;
    begin(&t, CLEAT_MULTI_LABEL, 6, 3, truth, label_found);
    t.batch.badness = badness;
    free(evaluate(&t, CLEAT_MODE_EVALUATE, CLEAT_WEIGHTING_NONE));
    for (int i = 0; i < 5; ++i) assert_true(fabs(badness[i] - label_losses[i]) < 1e-6);
    assert_true(isnan(badness[5]) && badness[6] == -7); /* nothing is known; an empty slot */

    begin(&t, CLEAT_REGRESSION, 8, 1, truth_1, found_1);
    t.batch.badness = badness;
    free(evaluate(&t, CLEAT_MODE_EVALUATE, CLEAT_WEIGHTING_NONE));
    for (int i = 0; i < 8; ++i) assert_true(fabs(badness[i] - pow((truth_1[i] - found_1[i]) / 0.5, 2)) < 1e-6);
}

static void unknown_labels_and_balanced_weights(void **state) {
    (void)state;
    trial t;
    cleat_metrics found = {0};
    double truth[18];
    float weights[3 * ROWS];
    memcpy(truth, label_truth, sizeof truth);
    truth[9] = NAN; /* the only label that is wrong at 0.325 */
    begin(&t, CLEAT_MULTI_LABEL, 6, 3, truth, label_found);
    t.all[0].threshold = 0.325;
    double *sums = evaluate(&t, CLEAT_MODE_EVALUATE, CLEAT_WEIGHTING_BALANCED);
    cleat_targets_compute(&t.model, sums, &found, NULL);
    expect(&found, "f1_size", 1);
    cleat_global_batch all = {.samples = 6, .items = 17};
    cleat_targets_weight(&t.model, t.model.sizes.classes, &t.batch, &all, weights);
    assert_true(weights[0] == 1.0f / 17); /* 3 samples have the label, 3 do not */
    assert_true(weights[3] == 1.0f / 17 && weights[4] == 1.0f / 17 && weights[1] == 1.0f / 17);
    assert_true(weights[9] == 0);  /* unknown */
    assert_true(weights[18] == 0); /* an empty slot */
    t.known[1].weight = 2;
    cleat_targets_weight(&t.model, t.model.sizes.classes, &t.batch, &all, weights);
    assert_true(weights[4] == 2.0f / 17 && weights[1] == 1.0f / 17);
    free(sums);
}

static void expect_file(const trial *t, size_t n, const char *wanted) {
    char folder[] = "/tmp/cleat-targets-XXXXXX", path[256], *text;
    size_t size;
    cleat_error error = {0};
    cleat_prediction predictions[2];
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < 2; ++i)
        predictions[i] = (cleat_prediction){.dataset = &t->dataset, .sample = i, .output = t->output + i * n};
    assert_int_equal(cleat_targets_write(predictions, 2, folder, &error), CLEAT_OK);
    snprintf(path, sizeof path, "%s/predictions.csv", folder);
    assert_int_equal(cleat_file_read(path, &text, &size, &error), CLEAT_OK);
    assert_string_equal(text, wanted);
    cleat_free(text);
    remove(path);
    remove(folder);
}

static void predictions_are_in_the_unit_of_the_data(void **state) {
    (void)state;
    trial t;
    begin(&t, CLEAT_REGRESSION, 2, 2, (const double[]){1, 2, 3, 4}, (const double[]){-1.5, 1000, NAN, 10});
    expect_file(&t, 2, "id,size,age\na,-1.5,1000\n\"b,2\",nan,10\n");
    begin(&t, CLEAT_MULTI_LABEL, 2, 3, label_truth, (const double[]){.75, .5, .25, .125, .25, .125});
    expect_file(&t, 3, "id,labels,size,age,third\na,size|age,0.75,0.5,0.25\n\"b,2\",,0.125,0.25,0.125\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_of_one_number_are_those_of_scikit_learn),
        cmocka_unit_test(missing_numbers_count_in_no_mean),
        cmocka_unit_test(the_baseline_of_numbers_is_the_training_mean),
        cmocka_unit_test(thresholds_have_the_best_f1),
        cmocka_unit_test(badness_is_the_loss_of_a_sample),
        cmocka_unit_test(unknown_labels_and_balanced_weights),
        cmocka_unit_test(predictions_are_in_the_unit_of_the_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

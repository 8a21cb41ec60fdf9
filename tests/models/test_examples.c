/* Examples of an evaluation: strings, numbers, images and the document, with a test family. */
/* ctest: quick */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "core/json.h"
#include "core/memory.h"
#include "core/philox.h"
#include "data/dataset.h"
#include "data/image/formats.h"
#include "models/classes.h"
#include "models/example_images.h"
#include "models/examples.h"

/* --- strings and numbers -------------------------------------------------------------------------------------- */

static void assert_string(const char *given, size_t most, const char *wanted) {
    cleat_string json = {0};
    cleat_examples_add_string(&json, NULL, given, most);
    cJSON *parsed = cJSON_Parse(json.data);
    if (!parsed) fail_msg("not JSON: %s", json.data);
    if (wanted)
        assert_string_equal(cJSON_GetStringValue(parsed), wanted);
    else
        assert_true(cJSON_IsNull(parsed));
    cJSON_Delete(parsed);
    cleat_string_free(&json);
}

static void strings_are_escaped_and_cut_between_characters(void **state) {
    (void)state;
    assert_string(NULL, 5, NULL);
    assert_string("", 5, "");
    assert_string("a\"b\\c\n\t\x01</script>", 30, "a\"b\\c\n\t\x01</script>");
    assert_string("caf\xC3\xA9", 4, "caf\xC3\xA9");
    assert_string("\xC3\xA9t\xC3\xA9", 9, "\xC3\xA9t\xC3\xA9");
    assert_string("caf\xC3\xA9s", 4, "caf\xC3\xA9\xE2\x80\xA6");
    assert_string("\xF0\x9F\x98\x80\xF0\x9F\x98\x80", 1, "\xF0\x9F\x98\x80\xE2\x80\xA6");
    assert_string("a\xFFz\xC3", 10, "a\xEF\xBF\xBDz\xEF\xBF\xBD"); /* Latin-1; a truncated character */
}

static void numbers_that_are_not_finite_are_null(void **state) {
    (void)state;
    cleat_string json = {0};
    const double values[] = {1.0 / 3, NAN, INFINITY, -2e-7};
    for (int i = 0; i < 4; ++i) {
        json_add(&json, json_digits(NULL, values[i], 4));
        cleat_string_add(&json, " ");
    }
    assert_string_equal(json.data, "0.3333 null null -2e-07 ");
    cleat_string_free(&json);
}

/* --- images --------------------------------------------------------------------------------------------------- */

static int digit_of(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = strchr(digits, c);
    assert_non_null(at);
    return (int)(at - digits);
}

/* The image of a data URI. */
static cleat_image decoded(const char *uri, size_t *bytes) {
    static const char prefix[] = "data:image/png;base64,";
    uint8_t *png = cleat_alloc(strlen(uri), 1);
    cleat_image image;
    assert_memory_equal(uri, prefix, strlen(prefix));
    uri += strlen(prefix);
    assert_int_equal(strlen(uri) % 4, 0);
    *bytes = 0;
    for (; *uri; uri += 4) {
        uint32_t three = 0;
        const int padding = (uri[2] == '=') + (uri[3] == '=');
        for (int i = 0; i < 4; ++i) three = three << 6 | (i < 4 - padding ? (uint32_t)digit_of(uri[i]) : 0);
        for (int i = 0; i < 3 - padding; ++i) png[(*bytes)++] = (uint8_t)(three >> (16 - 8 * i));
        if (padding) assert_int_equal(uri[4], 0);
    }
    assert_int_equal(cleat_png_decode("decoded", png, *bytes, &image, NULL), CLEAT_OK);
    cleat_free(png);
    return image;
}

static cleat_image round_trip(const cleat_image *image, cleat_resize_kind shrinking, size_t most, size_t *bytes) {
    cleat_string json = {0};
    assert_int_equal(cleat_examples_add_image(&json, NULL, image, shrinking, most, NULL), CLEAT_OK);
    cJSON *parsed = cJSON_Parse(json.data);
    assert_true(cJSON_IsString(parsed));
    cleat_image back = decoded(cJSON_GetStringValue(parsed), bytes);
    cJSON_Delete(parsed);
    cleat_string_free(&json);
    return back;
}

static void small_images_keep_their_pixels(void **state) {
    (void)state;
    enum { SIDE = 9 };
    cleat_random random = cleat_random_stream(1, 2, 3);
    uint8_t pixels[SIDE * SIDE * 3];
    size_t bytes;
    for (int channels = 1; channels <= 3; channels += 2)
        for (int64_t width = 1; width <= SIDE; ++width) { /* PNG files whose sizes have all remainders modulo 3 */
            const cleat_image image = {.height = SIDE, .width = width, .channels = channels, .pixels = pixels};
            for (size_t i = 0; i < sizeof pixels; ++i) pixels[i] = (uint8_t)cleat_random_below(&random, 256);
            cleat_image back = round_trip(&image, CLEAT_SHRINK_MEAN, 100000, &bytes);
            assert_true(back.height == SIDE && back.width == width && back.channels == channels);
            assert_memory_equal(back.pixels, pixels, (size_t)(SIDE * width * channels));
            cleat_image_free(&back);
        }
}

/* The left half alternates between 10 and 30, the right half is 200. */
static void large_images_shrink(void **state) {
    (void)state;
    enum { HEIGHT = 128, WIDTH = 512 };
    uint8_t *pixels = cleat_alloc(HEIGHT * WIDTH, 1);
    const cleat_image image = {.height = HEIGHT, .width = WIDTH, .channels = 1, .pixels = pixels};
    size_t bytes;
    for (int i = 0; i < HEIGHT * WIDTH; ++i) pixels[i] = i % WIDTH < WIDTH / 2 ? (i % 2 ? 30 : 10) : 200;
    cleat_image mean = round_trip(&image, CLEAT_SHRINK_MEAN, 100000, &bytes);
    assert_true(mean.height == 32 && mean.width == 128);
    for (int i = 0; i < 32 * 128; ++i) assert_int_equal(mean.pixels[i], i % 128 < 64 ? 20 : 200);
    cleat_image nearest = round_trip(&image, CLEAT_SHRINK_NEAREST, 100000, &bytes);
    for (int i = 0; i < 32 * 128; ++i)
        assert_true(i % 128 < 64 ? nearest.pixels[i] == 10 || nearest.pixels[i] == 30 : nearest.pixels[i] == 200);
    cleat_image_free(&mean);
    cleat_image_free(&nearest);
    cleat_free(pixels);
}

static void an_image_keeps_below_its_bytes(void **state) {
    (void)state;
    enum { SIDE = 200 };
    cleat_random random = cleat_random_stream(1, 2, 4);
    uint8_t *pixels = cleat_alloc(SIDE * SIDE, 3);
    size_t bytes;
    for (int i = 0; i < SIDE * SIDE * 3; ++i) pixels[i] = (uint8_t)cleat_random_below(&random, 256);
    const cleat_image noise = {.height = SIDE, .width = SIDE, .channels = 3, .pixels = pixels};
    cleat_image back = round_trip(&noise, CLEAT_SHRINK_MEAN, CLEAT_EXAMPLE_IMAGE_BYTES, &bytes);
    assert_true(bytes <= CLEAT_EXAMPLE_IMAGE_BYTES && back.width < 128 && back.width > 16 && back.channels == 3);
    cleat_image_free(&back);
    for (int i = 0; i < SIDE * SIDE * 3; ++i) pixels[i] = pixels[i / 3 * 3]; /* grey: a third of the bytes */
    cleat_image grey = round_trip(&noise, CLEAT_SHRINK_MEAN, 100000, &bytes);
    assert_true(grey.width == 128 && grey.channels == 1);
    cleat_image_free(&grey);
    const cleat_image many = {.height = 5, .width = 5, .channels = 7, .pixels = pixels};
    cleat_image first = round_trip(&many, CLEAT_SHRINK_MEAN, 100000, &bytes);
    assert_true(first.channels == 1);
    for (int i = 0; i < 25; ++i) assert_int_equal(first.pixels[i], pixels[7 * i]);
    cleat_image_free(&first);
    cleat_free(pixels);
}

/* --- the matrix of many classes ------------------------------------------------------------------------------- */

enum { MANY = 100 };

static const char *many_name(const cleat_dataset *dataset, size_t index) {
    static char name[16];
    (void)dataset;
    snprintf(name, sizeof name, "c%zu", index);
    return name;
}

/* Classes 10 to 72, and 5, have the most samples; of equal counts, the first ones are shown. */
static int64_t many_samples(const cleat_dataset *dataset, size_t index) {
    (void)dataset;
    return index == 5 ? 1000 : index >= 10 && index < 90 ? 50 : 2;
}

static void rare_classes_share_a_row(void **state) {
    (void)state;
    static const cleat_class_source source = {.name = many_name, .samples = many_samples};
    cleat_class_info known[MANY];
    static cleat_class_row rows[MANY];
    static cleat_class_table table = {.rows = rows};
    const cleat_confusion *confusion = &table.confusion;
    static float logits[MANY];
    double *metric_state = cleat_alloc(cleat_classes_metric_state_size(MANY), sizeof *metric_state);
    cleat_classes_read(&source, NULL, CLEAT_WEIGHTING_NONE, MANY, known);
    for (int32_t truth = 0; truth < MANY; ++truth) {
        const int32_t found = truth == 11 ? 12 : truth == 12 ? 99 : truth;
        memset(logits, 0, sizeof logits);
        logits[found] = 1;
        cleat_classes_metric_update(known, &truth, logits, 1, MANY, metric_state);
    }
    cleat_classes_table(known, MANY, metric_state, &table);
    assert_int_equal(confusion->labels, 64);
    assert_string_equal(confusion->names[0], "c5");
    assert_string_equal(confusion->names[1], "c10");
    assert_string_equal(confusion->names[62], "c71"); /* 62 of 80 equal counts */
    assert_string_equal(confusion->names[63], "other");
    assert_true(confusion->counts[0] == 1 && confusion->counts[1 * 64 + 1] == 1);
    assert_true(confusion->counts[2 * 64 + 3] == 1);  /* 11 as 12 */
    assert_true(confusion->counts[3 * 64 + 63] == 1); /* 12 as 99, one of the classes not shown */
    assert_true(confusion->counts[63 * 64 + 63] == MANY - 63);
    double sum = 0;
    for (int i = 0; i < 64 * 64; ++i) sum += confusion->counts[i];
    assert_true(sum == MANY);
    cleat_free(metric_state);
}

/* --- the document --------------------------------------------------------------------------------------------- */

enum { BIG = 60000 };

static const char *sample_id(const cleat_dataset *dataset, size_t sample) {
    (void)dataset;
    return sample == 1 ? "the \"second\"" : "another";
}

/* Samples below 100 are small, others big. */
static cleat_status add_sample(const cleat_model *model, const cleat_evaluation *evaluated, size_t index,
                               cleat_string *json, cleat_error *error) {
    static char big[BIG];
    const cleat_prediction *prediction = &evaluated->predictions[index];
    (void)model;
    if (prediction->sample == 77) return cleat_fail(error, CLEAT_ERR_IO, "the file is gone");
    cleat_examples_begin(json, "class", prediction);
    memset(big, 'x', sizeof big - 1);
    if (prediction->sample >= 100) cleat_string_add(json, ",\"text\":\"%s\"", big);
    cleat_string_add(json, "}");
    return CLEAT_OK;
}

static size_t one_sum(const cleat_model *model) {
    (void)model;
    return 1;
}

static void compute(const cleat_model *model, const double *metric_state, cleat_metrics *metrics) {
    (void)model;
    cleat_metrics_add(metrics, "error", metric_state[0]);
    cleat_metrics_add(metrics, "score", metric_state[0] > 100 ? NAN : 2 * metric_state[0]);
}

static cleat_status baseline_of(const cleat_model *model, const cleat_evaluation *evaluated, double *metric_state,
                                char *text, cleat_error *error) {
    (void)model;
    (void)error;
    metric_state[0] += 10 * evaluated->metric_state[0];
    snprintf(text, CLEAT_BASELINE_TEXT, "ten times");
    return CLEAT_OK;
}

static cleat_status fitted_baseline(const cleat_model *model, const cleat_evaluation *evaluated, double *metric_state,
                                    char *text, cleat_error *error) {
    (void)model;
    (void)error;
    metric_state[0] += 30 - evaluated->metric_state[0];
    if (evaluated->metric_state[0] != 1.5) snprintf(text, CLEAT_BASELINE_TEXT, "the rest of 30");
    return CLEAT_OK;
}

static const cleat_metric_info metrics[] = {{"error", false}, {"score", true}, {NULL, false}};
static const cleat_model_examples shown = {.add = add_sample, .baseline = baseline_of}, bare = {.add = add_sample},
                                  both = {.add = add_sample, .baseline = baseline_of, .fitted = fitted_baseline};
static const cleat_model_class
    family = {.metrics = metrics, .metric_state_size = one_sum, .metric_compute = compute, .examples = &shown},
    both_family = {.metrics = metrics, .metric_state_size = one_sum, .metric_compute = compute, .examples = &both},
    bare_family = {.metrics = metrics, .examples = &bare}, plain_family = {.metrics = metrics};
static const cleat_dataset_class type = {.name = "made", .id = sample_id};
static const cleat_dataset dataset = {.type = &type, .count = 1000};

/* The document of the samples [n]. */
static cJSON *document(const cleat_model *model, const uint32_t *samples, size_t n, int64_t step, size_t *size) {
    cleat_prediction predictions[CLEAT_EXAMPLES];
    const double sum = 2;
    const cleat_baseline none = {.known = false};
    cleat_string json = {0};
    for (size_t i = 0; i < n; ++i) predictions[i] = (cleat_prediction){.dataset = &dataset, .sample = samples[i]};
    const cleat_evaluation evaluated = {
        .predictions = predictions, .n_predictions = n, .metric_state = &sum, .split = "val", .step = step, .epoch = 3};
    assert_int_equal(cleat_model_examples_json(model, &evaluated, &none, &json, NULL), CLEAT_OK);
    cJSON *parsed = cJSON_Parse(json.data);
    assert_non_null(parsed);
    *size = json.size;
    cleat_string_free(&json);
    return parsed;
}

static void a_document_is_json(void **state) {
    (void)state;
    const cleat_model model = {.type = &bare_family};
    const uint32_t samples[] = {0, 1};
    size_t size;
    cJSON *json = document(&model, samples, 2, 7, &size), *examples = cJSON_GetObjectItem(json, "examples");
    assert_int_equal(cJSON_GetObjectItem(json, "step")->valueint, 7);
    assert_int_equal(cJSON_GetObjectItem(json, "epoch")->valueint, 3);
    assert_string_equal(cJSON_GetObjectItem(json, "split")->valuestring, "val");
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(json, "baseline")));
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(json, "confusion")));
    assert_int_equal(cJSON_GetArraySize(examples), 2);
    assert_string_equal(cJSON_GetObjectItem(cJSON_GetArrayItem(examples, 1), "name")->valuestring, "the \"second\"");
    cJSON_Delete(json);
    json = document(&model, samples, 0, -1, &size);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(json, "step")));
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "examples")), 0);
    cJSON_Delete(json);
}

static void a_document_has_room_for_the_small_ones(void **state) {
    (void)state;
    const cleat_model model = {.type = &bare_family};
    const uint32_t samples[] = {0, 100, 101, 102, 103, 104, 1};
    size_t size;
    cJSON *json = document(&model, samples, 7, 7, &size), *examples = cJSON_GetObjectItem(json, "examples");
    assert_true(size < 200000);
    assert_int_equal(cJSON_GetArraySize(examples), 5); /* three of 60 kB and both small ones */
    assert_string_equal(cJSON_GetObjectItem(cJSON_GetArrayItem(examples, 4), "name")->valuestring, "the \"second\"");
    cJSON_Delete(json);
}

static void an_example_that_fails_is_reported(void **state) {
    (void)state;
    const cleat_model model = {.type = &family};
    const cleat_prediction prediction = {.dataset = &dataset, .sample = 77};
    const cleat_evaluation evaluated = {.predictions = &prediction, .n_predictions = 1, .split = "val"};
    const cleat_baseline none = {.known = false};
    cleat_string json = {0};
    cleat_error error = {0};
    assert_int_equal(cleat_model_examples_json(&model, &evaluated, &none, &json, &error), CLEAT_ERR_IO);
    assert_string_equal(error.text, "the file is gone");
    cleat_string_free(&json);
}

static cleat_baseline baseline_in(const cleat_model_class *of, double sum, const char *metric) {
    const cleat_model model = {.type = of};
    const cleat_evaluation evaluated = {.metric_state = &sum, .metric = metric};
    cleat_baseline baseline;
    assert_int_equal(cleat_model_baseline(&model, &evaluated, &baseline, NULL), CLEAT_OK);
    return baseline;
}

/* The run's metric, or the family's first one if the baseline lacks it. */
static void a_baseline_is_in_the_metric_of_the_run(void **state) {
    (void)state;
    cleat_baseline found = baseline_in(&family, 2, "score");
    assert_true(found.known && found.ascends && found.value == 40);
    assert_string_equal(found.metric, "score");
    assert_string_equal(found.text, "ten times");
    found = baseline_in(&family, 2, "error");
    assert_true(found.known && !found.ascends && found.value == 20);
    found = baseline_in(&family, 2, "loss");
    assert_true(found.known && !found.ascends && found.value == 20);
    assert_string_equal(found.metric, "error");
    found = baseline_in(&family, 20, "score"); /* NaN */
    assert_true(found.known && found.value == 200);
    assert_string_equal(found.metric, "error");
    found = baseline_in(&family, NAN, "error");
    assert_false(found.known);
    assert_false(baseline_in(&bare_family, 2, "error").known);
    assert_false(baseline_in(&plain_family, 2, "error").known);
    assert_false(cleat_model_has_examples(&(cleat_model){.type = &plain_family}));
    assert_true(cleat_model_has_examples(&(cleat_model){.type = &bare_family}));
}

static void assert_baseline(double sum, const char *metric, const char *text, const char *found_metric, double value) {
    const cleat_baseline found = baseline_in(&both_family, sum, metric);
    assert_true(found.known);
    assert_string_equal(found.text, text);
    assert_string_equal(found.metric, found_metric);
    assert_float_equal(found.value, value, 1e-9);
}

static void the_stronger_baseline_is_shown(void **state) {
    (void)state;
    assert_baseline(1, "error", "ten times", "error", 10);          /* against 29 */
    assert_baseline(2.9, "error", "the rest of 30", "error", 27.1); /* against 29 */
    assert_baseline(1, "score", "the rest of 30", "score", 58);     /* against 20 */
    assert_baseline(20, "score", "the rest of 30", "score", 20);    /* the other has no score */
    assert_baseline(-80, "score", "ten times", "score", -1600);     /* the rest has none */
    assert_baseline(1.5, "score", "ten times", "score", 30);        /* nothing could be fitted */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_escaped_and_cut_between_characters),
        cmocka_unit_test(numbers_that_are_not_finite_are_null),
        cmocka_unit_test(small_images_keep_their_pixels),
        cmocka_unit_test(large_images_shrink),
        cmocka_unit_test(an_image_keeps_below_its_bytes),
        cmocka_unit_test(rare_classes_share_a_row),
        cmocka_unit_test(a_document_is_json),
        cmocka_unit_test(a_document_has_room_for_the_small_ones),
        cmocka_unit_test(an_example_that_fails_is_reported),
        cmocka_unit_test(a_baseline_is_in_the_metric_of_the_run),
        cmocka_unit_test(the_stronger_baseline_is_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

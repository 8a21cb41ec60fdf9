/* Compares examples of families with their data files, read without the library's readers. */
#include "families_examples.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "core/memory.h"
#include "data/image/file.h"
#include "models/examples.h"

/* The run under test. */
typedef struct shown {
    const tiny *t;
    const char *data;
    const cleat_metrics *best;
    cJSON *json, *examples;
} shown;

static void assert_close(double got, double wanted, double tolerance) {
    if (!(fabs(got - wanted) <= tolerance)) fail_msg("%.9g, not %.9g", got, wanted);
}

static cJSON *member(const cJSON *object, const char *name) {
    cJSON *found = cJSON_GetObjectItem(object, name);
    if (!found) fail_msg("there is no '%s'", name);
    return found;
}

static const char *string_of(const cJSON *object, const char *name) {
    const char *text = cJSON_GetStringValue(member(object, name));
    if (!text) fail_msg("'%s' is not a string", name);
    return text;
}

static double number_of(const cJSON *object, const char *name) {
    const cJSON *found = member(object, name);
    if (!cJSON_IsNumber(found)) fail_msg("'%s' is not a number", name);
    return found->valuedouble;
}

static double item(const cJSON *array, int index) {
    return cJSON_GetNumberValue(cJSON_GetArrayItem(array, index));
}

static char *data_file(const shown *s, const char *name) {
    char full[TINY_PATH], path[TINY_PATH];
    size_t size;
    snprintf(full, sizeof full, "%s/%s", s->data, name);
    return tiny_read(tiny_path(s->t, *name ? full : s->data, path), &size);
}

/* --- the matrix and the baseline ------------------------------------------------------------------------------ */

static double cell(const shown *s, int truth, int prediction) {
    return item(cJSON_GetArrayItem(member(member(s->json, "confusion"), "counts"), truth), prediction);
}

static int labels_of(const shown *s) {
    return cJSON_GetArraySize(member(member(s->json, "confusion"), "labels"));
}

static const char *label(const shown *s, int index) {
    return cJSON_GetStringValue(cJSON_GetArrayItem(member(member(s->json, "confusion"), "labels"), index));
}

static double row_sum(const shown *s, int truth) {
    double sum = 0;
    for (int i = 0; i < labels_of(s); ++i) sum += cell(s, truth, i);
    return sum;
}

static void assert_matrix_gives_accuracy(const shown *s, double samples) {
    double all = 0, right = 0;
    for (int i = 0; i < labels_of(s); ++i) {
        all += row_sum(s, i);
        right += cell(s, i, i);
    }
    assert_close(all, samples, 0);
    assert_close(right / all, cleat_metrics_get(s->best, "accuracy"), 1e-12);
}

static double column_sum(const shown *s, int prediction) {
    double sum = 0;
    for (int i = 0; i < labels_of(s); ++i) sum += cell(s, i, prediction);
    return sum;
}

/* The scores of the classes are those of the matrix. */
static void assert_scores(const shown *s, bool masks) {
    const cJSON *classes = member(s->json, "classes");
    assert_int_equal(cJSON_GetArraySize(classes), labels_of(s));
    for (int i = 0; i < labels_of(s); ++i) {
        const cJSON *row = cJSON_GetArrayItem(classes, i);
        const double truth = row_sum(s, i), said = column_sum(s, i), right = cell(s, i, i);
        assert_string_equal(string_of(row, "name"), label(s, i));
        assert_close(number_of(row, "support"), truth, 0);
        assert_close(number_of(row, "precision"), said > 0 ? right / said : 0, 1e-8);
        assert_close(number_of(row, "recall"), truth > 0 ? right / truth : 0, 1e-8);
        assert_close(number_of(row, "f1"), said + truth > 0 ? 2 * right / (said + truth) : 0, 1e-8);
        if (masks)
            assert_close(number_of(row, "iou"), right / (said + truth - right), 1e-8);
        else
            assert_null(cJSON_GetObjectItem(row, "iou"));
    }
}

/* Of classes: all that are wrong among the worst have a confidence in another class; right ones follow, the least
 * confident first. */
static void assert_worst_first(const shown *s) {
    double right = -1;
    for (int i = 0; i < cJSON_GetArraySize(s->examples); ++i) {
        const cJSON *example = cJSON_GetArrayItem(s->examples, i);
        const bool is_right = strcmp(string_of(example, "truth"), string_of(example, "prediction")) == 0;
        assert_string_equal(string_of(example, "choice"), i < 6 ? "worst" : "typical");
        if (i >= 6 || !is_right) continue;
        assert_true(number_of(example, "confidence") >= right);
        right = number_of(example, "confidence");
    }
}

static void assert_baseline(const shown *s, const char *metric, double value, bool ascends, const char *text) {
    const cJSON *baseline = member(s->json, "baseline");
    assert_string_equal(string_of(baseline, "metric"), metric);
    assert_int_equal(cJSON_IsTrue(member(baseline, "ascends")), ascends);
    if (!strstr(string_of(baseline, "text"), text)) fail_msg("\"%s\"", string_of(baseline, "text"));
    assert_close(number_of(baseline, "value"), value, 1e-5 * fabs(value));
}

/* One that is fitted and stronger than the constant prediction with `value`. */
static void assert_fitted_baseline(const shown *s, const char *metric, double value, const char *text) {
    const double found = number_of(member(s->json, "baseline"), "value");
    assert_true(found > value && found <= 1);
    assert_baseline(s, metric, found, true, text);
}

/* --- classes -------------------------------------------------------------------------------------------------- */

static void assert_predicts_a_class(const shown *s, const cJSON *example) {
    int known = 0;
    for (int i = 0; i < labels_of(s); ++i) known += strcmp(label(s, i), string_of(example, "prediction")) == 0;
    assert_int_equal(known, 1);
    const double confidence = number_of(example, "confidence");
    assert_true(confidence > 1.0 / (labels_of(s) + 1) && confidence <= 1);
}

/* Finds the row `id` of a table id,"text",class, and unquotes it. */
static void find_row(const char *file, const char *id, char *text, char *class) {
    char start[64];
    snprintf(start, sizeof start, "\n%s,\"", id);
    const char *at = strstr(file, start);
    if (!at) fail_msg("no row %s", id);
    for (at += strlen(start); *at != '"' || at[1] == '"'; ++at) {
        *text++ = *at;
        at += *at == '"';
    }
    *text = 0;
    for (at += 2; *at != '\n'; ++at) *class ++ = *at;
    *class = 0;
}

static double count_class(const char *file, const char *class) {
    char end[64];
    double count = 0;
    snprintf(end, sizeof end, ",%s\n", class);
    for (const char *at = strstr(file, end); at; at = strstr(at + 1, end)) ++count;
    return count;
}

static void check_texts(const shown *s) {
    static const char *const classes[] = {"bad", "good", "plain"};
    char *train = data_file(s, "train.csv"), *val = data_file(s, "val.csv"), text[1000], class[64];
    const char *most = classes[0];
    double samples = 0;
    for (int i = 0; i < 3; ++i) {
        if (count_class(train, classes[i]) > count_class(train, most)) most = classes[i];
        assert_string_equal(label(s, i), classes[i]);
        assert_close(row_sum(s, i), count_class(val, classes[i]), 0);
        samples += count_class(val, classes[i]);
    }
    assert_scores(s, false);
    assert_worst_first(s);
    assert_matrix_gives_accuracy(s, samples);
    const double right = count_class(val, most); /* F1 of this class; the other two have 0 */
    assert_fitted_baseline(s, "macro_f1", 2 * right / (right + samples) / 3, "naive Bayes");
    for (int i = 0; i < cJSON_GetArraySize(s->examples); ++i) {
        const cJSON *example = cJSON_GetArrayItem(s->examples, i);
        assert_string_equal(string_of(example, "kind"), "class");
        find_row(val, string_of(example, "name"), text, class);
        assert_string_equal(string_of(example, "text"), text);
        assert_string_equal(string_of(example, "truth"), class);
        assert_true(cJSON_IsNull(member(example, "image")));
        assert_predicts_a_class(s, example);
        assert_non_null(strchr(text, '"'));
    }
    cleat_free(train);
    cleat_free(val);
}

/* --- tags ----------------------------------------------------------------------------------------------------- */

/* The first label of a type is B; types are in the order of the labels. */
static void assert_entities(const shown *s, const char *val) {
    const cJSON *row;
    char mark[64];
    assert_int_equal(cJSON_GetArraySize(member(s->json, "classes")), (labels_of(s) - 1) / 2);
    cJSON_ArrayForEach(row, member(s->json, "classes")) {
        double support = 0;
        snprintf(mark, sizeof mark, "\tB-%s\n", string_of(row, "name"));
        for (const char *at = strstr(val, mark); at; at = strstr(at + 1, mark)) ++support;
        assert_close(number_of(row, "support"), support, 0);
        snprintf(mark, sizeof mark, "f1_%s", string_of(row, "name"));
        assert_close(number_of(row, "f1"), cleat_metrics_get(s->best, mark), 1e-8);
        const double p = number_of(row, "precision"), r = number_of(row, "recall");
        assert_close(number_of(row, "f1"), p + r > 0 ? 2 * p * r / (p + r) : 0, 1e-8);
    }
}

static void check_tags(const shown *s) {
    char *val = data_file(s, "my.dev.conll"), word[64], tag[64];
    double words = 0, outside = 0;
    for (const char *line = val; *line; line = strchr(line, '\n') + 1) {
        if (sscanf(line, "%63[^\t\n]\t%63[^\n]", word, tag) != 2) continue;
        ++words;
        outside += strcmp(tag, "O") == 0;
    }
    assert_matrix_gives_accuracy(s, words);
    assert_string_equal(label(s, 0), "O");
    assert_close(row_sum(s, 0), outside, 0);
    assert_baseline(s, "entity_f1", 0, true, "O");
    assert_entities(s, val);
    for (int i = 0; i < cJSON_GetArraySize(s->examples); ++i) {
        const cJSON *example = cJSON_GetArrayItem(s->examples, i), *shown_words = member(example, "words");
        const char *line = val;
        assert_string_equal(string_of(example, "kind"), "tags");
        for (int n = atoi(string_of(example, "name") + strlen("val-")); n > 1; --n) line = strstr(line, "\n\n") + 2;
        for (int w = 0; w < cJSON_GetArraySize(shown_words); ++w, line = strchr(line, '\n') + 1) {
            assert_int_equal(sscanf(line, "%63[^\t\n]\t%63[^\n]", word, tag), 2);
            assert_string_equal(cJSON_GetStringValue(cJSON_GetArrayItem(shown_words, w)), word);
            assert_string_equal(cJSON_GetStringValue(cJSON_GetArrayItem(member(example, "truth"), w)), tag);
        }
        assert_int_equal(*line, '\n'); /* the sentence also ends here */
        assert_int_equal(cJSON_GetArraySize(member(example, "prediction")), cJSON_GetArraySize(shown_words));
    }
    cleat_free(val);
}

/* --- masked tokens ---------------------------------------------------------------------------------------------- */

static const char *text_at(const cJSON *array, int index) {
    const char *text = cJSON_GetStringValue(cJSON_GetArrayItem(array, index));
    return text ? text : "(not a string)";
}

/* Chosen tokens in a line that repeats one word. */
static double chosen_in(const char *line, const char *end) {
    double words = 1;
    for (; line < end; ++line) words += *line == ' ';
    return fmax(1, round(0.3 * words));
}

/* Chosen tokens of lines of this word; NULL: of all lines. */
static double count_chosen(const char *lines, const char *word) {
    double count = 0;
    for (const char *line = lines, *end; *line; line = end + 1) {
        const size_t size = strcspn(line, " \n");
        end = strchr(line, '\n');
        if (!word || (strlen(word) == size && strncmp(line, word, size) == 0)) count += chosen_in(line, end);
    }
    return count;
}

/* Always guesses the token chosen most often in training. */
static void check_frequencies(const shown *s, const char *val) {
    char *train = data_file(s, "train.txt"), word[64], most[64] = "";
    for (const char *line = train; *line; line = strchr(line, '\n') + 1) {
        assert_int_equal(sscanf(line, "%63s", word), 1);
        if (count_chosen(train, word) > count_chosen(train, most)) snprintf(most, sizeof most, "%s", word);
    }
    assert_baseline(s, "accuracy", count_chosen(val, most) / count_chosen(val, NULL), true, "frequency");
    cleat_free(train);
}

/* All words of a line are equal. */
static void check_masked(const shown *s) {
    char *lines = data_file(s, "val.txt"), word[64];
    assert_true(cJSON_IsNull(member(s->json, "confusion")));
    check_frequencies(s, lines);
    for (int i = 0; i < cJSON_GetArraySize(s->examples); ++i) {
        const cJSON *example = cJSON_GetArrayItem(s->examples, i), *words = member(example, "words"),
                    *truth = member(example, "truth"), *prediction = member(example, "prediction"),
                    *confidence = member(example, "confidence");
        const int count = cJSON_GetArraySize(words);
        const char *line = lines;
        int found = 0;
        for (int n = atoi(string_of(example, "name") + strlen("val-")); n > 1; --n) line = strchr(line, '\n') + 1;
        assert_int_equal(sscanf(line, "%63s", word), 1);
        assert_string_equal(string_of(example, "kind"), "tokens");
        assert_string_equal(text_at(words, 0), "[CLS]");
        assert_string_equal(text_at(words, count - 1), "[SEP]");
        for (int w = 0; w < count; ++w) {
            const bool hidden = cJSON_IsString(cJSON_GetArrayItem(truth, w));
            found += hidden;
            assert_int_equal(cJSON_IsString(cJSON_GetArrayItem(prediction, w)), hidden);
            if (hidden) assert_string_equal(text_at(truth, w), word);
            if (hidden) assert_true(item(confidence, w) > 0 && item(confidence, w) <= 1);
            if (!hidden && w > 0 && w < count - 1) assert_string_equal(text_at(words, w), word);
        }
        assert_int_equal(found, (int)chosen_in(line, strchr(line, '\n')));
    }
    cleat_free(lines);
}

/* --- tokens with probabilities --------------------------------------------------------------------------------- */

/* The first token of a row is not predicted; the last one of a text is its end. */
static void check_likelihoods(const shown *s) {
    assert_true(cJSON_IsNull(member(s->json, "confusion")));
    const double guessed = number_of(member(s->json, "baseline"), "value");
    assert_baseline(s, "perplexity", guessed, false, "frequency");
    assert_true(guessed > 2 && guessed < 40); /* of about 30 tokens in the texts, half of them the end */
    for (int i = 0; i < cJSON_GetArraySize(s->examples); ++i) {
        const cJSON *example = cJSON_GetArrayItem(s->examples, i), *words = member(example, "words"),
                    *confidence = member(example, "confidence");
        const int count = cJSON_GetArraySize(words);
        int learned = 0, ends = 0;
        assert_string_equal(string_of(example, "kind"), "likelihood");
        assert_int_equal(cJSON_GetArraySize(confidence), count);
        assert_string_equal(text_at(words, 0), "<|begin_of_text|>");
        assert_string_equal(text_at(words, count - 1), "<|end_of_text|>");
        assert_true(cJSON_IsNull(cJSON_GetArrayItem(confidence, 0)));
        for (int w = 0; w < count; ++w) {
            const cJSON *sure = cJSON_GetArrayItem(confidence, w);
            ends += strcmp(text_at(words, w), "<|end_of_text|>") == 0;
            if (cJSON_IsNull(sure)) continue;
            assert_true(sure->valuedouble >= 0 && sure->valuedouble <= 1);
            ++learned;
        }
        assert_true(ends > 1 && learned >= 2 * ends && learned < count - 2 * ends);
    }
}

/* --- images --------------------------------------------------------------------------------------------------- */

static int sextet(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    return (int)(strchr(digits, c) - digits);
}

/* The PNG of a data URI, read through a file. */
static cleat_image decode_image(const shown *s, const cJSON *example, const char *name, int64_t height, int64_t width) {
    char path[TINY_PATH];
    const char *uri = string_of(example, name), *at = strchr(uri, ',') + 1;
    char *bytes = cleat_alloc(strlen(uri), 1);
    size_t size = 0;
    for (; *at; at += 4) {
        uint32_t three = 0;
        for (int i = 0; i < 4; ++i) three = three << 6 | (at[i] == '=' ? 0 : (uint32_t)sextet(at[i]));
        for (int i = 0; i < 3 - (at[2] == '=') - (at[3] == '='); ++i) bytes[size++] = (char)(three >> (16 - 8 * i));
    }
    tiny_write(tiny_path(s->t, "decoded.png", path), bytes, size);
    cleat_free(bytes);
    cleat_image image;
    assert_int_equal(cleat_image_read(path, 0, &image, NULL), CLEAT_OK);
    assert_true(image.height == height && image.width == width && image.channels == 1);
    return image;
}

static void assert_shows_file(const shown *s, const cJSON *example, const char *what, const char *file, int64_t side) {
    char full[TINY_PATH], path[TINY_PATH];
    cleat_image wanted, found = decode_image(s, example, what, side, side);
    snprintf(full, sizeof full, "%s/%s", s->data, file);
    assert_int_equal(cleat_image_read(tiny_path(s->t, full, path), 0, &wanted, NULL), CLEAT_OK);
    assert_memory_equal(found.pixels, wanted.pixels, (size_t)(side * side));
    cleat_image_free(&wanted);
    cleat_image_free(&found);
}

static void check_stripes(const shown *s) {
    assert_string_equal(label(s, 0), "across");
    assert_string_equal(label(s, 1), "down");
    assert_matrix_gives_accuracy(s, 20);
    assert_scores(s, false);
    assert_worst_first(s);
    assert_baseline(s, "accuracy", 0.5, true, "across"); /* the first of two equal classes */
    for (int i = 0; i < cJSON_GetArraySize(s->examples); ++i) {
        const cJSON *example = cJSON_GetArrayItem(s->examples, i);
        const char *name = string_of(example, "name"), *truth = string_of(example, "truth");
        assert_string_equal(string_of(example, "kind"), "class");
        assert_non_null(strstr(name, strcmp(truth, "down") == 0 ? "val/down/d" : "val/across/a"));
        assert_shows_file(s, example, "image", name, 12);
        assert_true(cJSON_IsNull(member(example, "text")));
        assert_predicts_a_class(s, example);
    }
}

/* --- masks ---------------------------------------------------------------------------------------------------- */

/* Intersection over union of two mask images; adds to counts: both, truth only, prediction only. */
static double iou_of(const cleat_image *truth, const cleat_image *prediction, double counts[3]) {
    double here[3] = {0};
    for (int64_t i = 0; i < truth->height * truth->width; ++i) {
        const bool a = truth->pixels[i] == 255, b = prediction->pixels[i] == 255;
        assert_true((a || truth->pixels[i] == 0) && (b || prediction->pixels[i] == 0));
        here[0] += a && b;
        here[1] += a && !b;
        here[2] += !a && b;
    }
    for (int i = 0; i < 3; ++i) counts[i] += here[i];
    return here[0] / (here[0] + here[1] + here[2]);
}

/* Whether cell (row, column) of a day's map is at the front (make_fronts). */
static bool is_front(int day, int64_t row, int64_t column) {
    return (column + 64 - day - row / 4) % 16 < 3;
}

static void assert_is_map(const cleat_image *image, int day) {
    for (int64_t i = 0; i < 256; ++i) assert_int_equal(image->pixels[i] > 0, is_front(day, i / 16, i % 16));
}

/* All validation samples are shown, so their counts equal the matrix. */
static void check_masks(const shown *s, int64_t side, int samples, bool maps) {
    double counts[3] = {0}, pixels = (double)(side * side * samples);
    assert_int_equal(cJSON_GetArraySize(s->examples), samples);
    for (int i = 0; i < samples; ++i) {
        const cJSON *example = cJSON_GetArrayItem(s->examples, i);
        const char *name = string_of(example, "name");
        char file[64];
        cleat_image truth = decode_image(s, example, "truth", side, side);
        cleat_image prediction = decode_image(s, example, "prediction", side, side);
        assert_string_equal(string_of(example, "kind"), "mask");
        assert_string_equal(string_of(example, "score_name"), "iou");
        assert_close(number_of(example, "score"), iou_of(&truth, &prediction, counts), 1e-5);
        if (maps) {
            const int day = atoi(strrchr(name, '-') + 1) - 1; /* 2024-02-01 is day 0 */
            cleat_image image = decode_image(s, example, "image", side, side);
            assert_is_map(&truth, day);
            assert_is_map(&image, day - 1);
            assert_string_equal(string_of(example, "image_text"), "last frame, channel front");
            cleat_image_free(&image);
        } else {
            snprintf(file, sizeof file, "masks/%s.png", name);
            assert_shows_file(s, example, "truth", file, side);
            snprintf(file, sizeof file, "images/%s.png", name);
            assert_shows_file(s, example, "image", file, side);
        }
        cleat_image_free(&truth);
        cleat_image_free(&prediction);
    }
    assert_close(cell(s, 1, 1), counts[0], 0);
    assert_close(cell(s, 1, 0), counts[1], 0);
    assert_close(cell(s, 0, 1), counts[2], 0);
    assert_close(row_sum(s, 0) + row_sum(s, 1), pixels, 0);
    assert_close(counts[0] / (counts[0] + counts[1] + counts[2]), cleat_metrics_get(s->best, "iou"), 1e-12);
    assert_scores(s, true);
    for (int i = 1; i < samples && i < 6; ++i) /* the worst first */
        assert_true(number_of(cJSON_GetArrayItem(s->examples, i - 1), "score") <=
                    number_of(cJSON_GetArrayItem(s->examples, i), "score"));
    if (maps) /* 2 of the 3 columns were set on the previous day: 2 of 4 in the union */
        assert_baseline(s, "iou", 0.5, true, "persistence");
    else
        assert_fitted_baseline(s, "iou", (counts[0] + counts[1]) / pixels, "Otsu"); /* every pixel */
}

/* --- series --------------------------------------------------------------------------------------------------- */

enum { ROWS = 28 * 24, HORIZON = 6, SEASON = 12 };

typedef struct waves {
    char times[ROWS][20];
    double values[ROWS][2];
} waves;

static void read_waves(const shown *s, waves *w) {
    char *file = data_file(s, "");
    const char *line = strchr(file, '\n') + 1;
    for (int i = 0; i < ROWS; ++i, line = strchr(line, '\n') + 1)
        assert_int_equal(sscanf(line, "%19[^,],%lf,%lf", w->times[i], &w->values[i][0], &w->values[i][1]), 3);
    cleat_free(file);
}

static void assert_values(const cJSON *array, const waves *w, int first, int count, int column) {
    assert_int_equal(cJSON_GetArraySize(array), count);
    for (int i = 0; i < count; ++i) assert_close(item(array, i), w->values[first + i][column], 1e-4);
}

/* The validation rows are the second to last tenth. */
enum { TEST_ROWS = ROWS / 10, END = ROWS - TEST_ROWS, BEGIN = END - TEST_ROWS };

/* The variance of a column over the training rows, the unit of errors. */
static double variance_of(const waves *w, int column) {
    double mean = 0, variance = 0;
    for (int i = 0; i < BEGIN; ++i) mean += w->values[i][column] / BEGIN;
    for (int i = 0; i < BEGIN; ++i) variance += pow(w->values[i][column] - mean, 2) / BEGIN;
    return variance;
}

/* The squared error of seasonal persistence over the windows of the validation rows. */
static double seasonal_error(const waves *w) {
    double sum = 0, count = 0;
    for (int column = 0; column < 2; ++column)
        for (int first = BEGIN; first + HORIZON <= END; ++first)
            for (int i = first; i < first + HORIZON; ++i, ++count)
                sum += pow(w->values[i][column] - w->values[i - SEASON][column], 2) / variance_of(w, column);
    return sum / count;
}

static void check_waves(const shown *s) {
    static waves w;
    double error = 0;
    const int count = cJSON_GetArraySize(s->examples);
    read_waves(s, &w);
    assert_true(cJSON_IsNull(member(s->json, "confusion")));
    assert_baseline(s, "mse", seasonal_error(&w), false, "seasonal");
    for (int i = 0; i < count; ++i) {
        const cJSON *example = cJSON_GetArrayItem(s->examples, i), *prediction = member(example, "prediction");
        const int column = i % 2;
        int last = 0;
        char time[20];
        snprintf(time, sizeof time, "%s", string_of(example, "name"));
        *strchr(time, 'T') = ' ';
        while (strcmp(w.times[last], time) != 0) assert_true(++last < ROWS);
        assert_string_equal(string_of(example, "kind"), "series");
        assert_string_equal(string_of(example, "column"), column ? "b" : "a");
        assert_values(member(example, "past"), &w, last - 23, 24, column);
        assert_values(member(example, "truth"), &w, last + 1, HORIZON, column);
        assert_values(member(example, "baseline"), &w, last + 1 - SEASON, HORIZON, column);
        assert_int_equal(cJSON_GetArraySize(prediction), HORIZON);
        for (int h = 0; h < HORIZON && i >= CLEAT_WORST; ++h)
            error += pow(item(prediction, h) - w.values[last + 1 + h][column], 2) / variance_of(&w, column);
    }
    /* the value of six windows at even distances resembles that of all */
    error /= (count - CLEAT_WORST) * HORIZON;
    const double all = cleat_metrics_get(s->best, "mse");
    print_message("mse %g of all windows, %g of the examples\n", all, error);
    assert_true(error > all / 3 && error < 3 * all);
}

/* -------------------------------------------------------------------------------------------------------------- */

void assert_shows_examples(const tiny *t, const char *family, const char *data, const char *run,
                           const cleat_metrics *best) {
    char name[128], path[TINY_PATH];
    size_t size;
    snprintf(name, sizeof name, "%s/examples.json", run);
    char *text = tiny_read(tiny_path(t, name, path), &size);
    shown s = {.t = t, .data = data, .best = best, .json = cJSON_Parse(text)};
    if (!s.json) fail_msg("not JSON: %s", text);
    s.examples = member(s.json, "examples");
    assert_true(size < 200000 && cJSON_GetArraySize(s.examples) > 0);
    assert_string_equal(string_of(s.json, "split"), "val");
    assert_true(number_of(s.json, "step") > 0 && number_of(s.json, "epoch") > 0);
    for (int i = 1; i < cJSON_GetArraySize(s.examples); ++i)
        assert_string_not_equal(string_of(cJSON_GetArrayItem(s.examples, i - 1), "name"),
                                string_of(cJSON_GetArrayItem(s.examples, i), "name"));
    if (strcmp(family, "mask_segformer") != 0 && strcmp(family, "emberformer") != 0)
        assert_in_range(cJSON_GetArraySize(s.examples), 9, 12); /* of those at even distances, some are the worst */
    if (strcmp(family, "text_classifier") == 0) check_texts(&s);
    if (strcmp(family, "text_tagger") == 0) check_tags(&s);
    if (strcmp(family, "text_pretrain") == 0) check_masked(&s);
    if (strcmp(family, "causal_lm") == 0) check_likelihoods(&s);
    if (strncmp(family, "image_", 6) == 0) check_stripes(&s);
    if (strcmp(family, "mask_segformer") == 0) check_masks(&s, 32, 6, false);
    if (strcmp(family, "emberformer") == 0) check_masks(&s, 16, 6, true);
    if (strncmp(family, "series_", strlen("series_")) == 0) check_waves(&s);
    cJSON_Delete(s.json);
    cleat_free(text);
}

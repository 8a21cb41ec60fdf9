/* Families other than RNA, from files to metrics: they learn learnable data, a second evaluation gives the
 * same metrics, and they predict other files from the checkpoint alone, without the training data. */
/* ctest: device slow cost=1000 */
#include "families_examples.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/files.h"
#include "core/memory.h"
#include "core/philox.h"
#include "core/string.h"
#include "platform/files.h"
#include "source_path.h"

/* --- data ----------------------------------------------------------------------------------------------------- */

static void write_text(const tiny *t, const char *name, cleat_string *text) {
    char path[TINY_PATH], *taken;
    size_t size = text->size;
    assert_int_equal(cleat_string_detach(text, &taken, NULL), CLEAT_OK);
    tiny_write(tiny_path(t, name, path), taken, size);
    cleat_free(taken);
}

static const char *const fillers[] = {"the", "day", "was", "so", "we", "went", "home", "and", "then", "it"};
static const char *const classes[] = {"good", "bad", "plain"};
static const char *const hints[3][3] = {
    {"lovely", "great", "happy"}, {"awful", "sad", "angry"}, {"table", "paper", "road"}};

static const char *pick(cleat_random *random, const char *const *words, uint32_t count) {
    return words[cleat_random_below(random, count)];
}

/* A hint among filler words determines the class. */
static void make_texts(const tiny *t, const char *name, int rows, uint32_t stream) {
    cleat_random random = cleat_random_stream(5, stream, 0);
    cleat_string text = {0};
    cleat_string_add(&text, "name,words,kind\n");
    for (int i = 0; i < rows; ++i) {
        uint32_t kind = cleat_random_below(&random, 3), words = 2 + cleat_random_below(&random, 9);
        uint32_t at = cleat_random_below(&random, words);
        cleat_string_add(&text, "row%d,\"", i);
        for (uint32_t w = 0; w < words; ++w)
            cleat_string_add(&text, "%s ", w == at ? pick(&random, hints[kind], 3) : pick(&random, fillers, 10));
        cleat_string_add(&text, ", \"\"really\"\"\",%s\n", classes[kind]);
    }
    write_text(t, name, &text);
}

static const char *const people[] = {"anna", "boris", "chen", "dora"};
static const char *const places[] = {"london", "paris", "oslo", "lima"};

/* A person may be two words long; the words themselves determine the tags. */
static void make_tags(const tiny *t, const char *name, int sentences, uint32_t stream) {
    cleat_random random = cleat_random_stream(6, stream, 0);
    cleat_string text = {0};
    for (int i = 0; i < sentences; ++i) {
        uint32_t words = 3 + cleat_random_below(&random, 8);
        for (uint32_t w = 0; w < words; ++w) {
            uint32_t kind = cleat_random_below(&random, 6);
            if (kind == 0) {
                cleat_string_add(&text, "%s\tB-person\n", pick(&random, people, 4));
                if (cleat_random_below(&random, 2)) cleat_string_add(&text, "smith\tI-person\n");
            } else if (kind == 1) {
                cleat_string_add(&text, "%s\tB-place\n", pick(&random, places, 4));
            }
            cleat_string_add(&text, "%s\tO\n", pick(&random, fillers, 10));
        }
        cleat_string_add(&text, "\n");
    }
    write_text(t, name, &text);
}

/* A repeated word: a masked occurrence follows from its neighbours. */
static void make_repeated(const tiny *t, const char *name, int lines, uint32_t stream, bool masked) {
    cleat_random random = cleat_random_stream(10, stream, 0);
    cleat_string text = {0};
    for (int i = 0; i < lines; ++i) {
        const char *word = pick(&random, fillers, 10);
        const uint32_t words = 3 + cleat_random_below(&random, 10), at = cleat_random_below(&random, words);
        for (uint32_t w = 0; w < words; ++w)
            cleat_string_add(&text, "%s%s", w ? " " : "", masked && w == at ? "[MASK]" : word);
        cleat_string_add(&text, "\n");
    }
    write_text(t, name, &text);
}

/* A word that is repeated goes on behind a colon. */
static void make_prompts(const tiny *t, const char *name, int prompts, uint32_t stream, bool completions) {
    cleat_random random = cleat_random_stream(11, stream, 0);
    cleat_string text = {0};
    for (int i = 0; i < prompts; ++i) {
        const char *word = pick(&random, fillers, 10);
        if (completions) cleat_string_add(&text, "{\"prompt\": \"");
        for (uint32_t w = 0, words = 2 + cleat_random_below(&random, 3); w < words; ++w)
            cleat_string_add(&text, "%s%s", w ? " " : "", word);
        cleat_string_add(&text, completions ? ":\", \"completion\": \" %s\"}\n" : ":\n", word);
    }
    write_text(t, name, &text);
}

static void copy_tokenizer(const tiny *t) {
    char path[TINY_PATH];
    size_t size;
    char *json = tiny_read(source_path("tests/tokenizer/tokenizers/llama3.json"), &size);
    tiny_write(tiny_path(t, "tokenizer.json", path), json, size);
    cleat_free(json);
}

/* Two waves of hourly steps, a quarter period apart, with a little noise. */
static void make_waves(const tiny *t, const char *name, int rows) {
    cleat_random random = cleat_random_stream(7, 0, 0);
    cleat_string text = {0};
    cleat_string_add(&text, "when,a,b\n");
    for (int i = 0; i < rows; ++i)
        cleat_string_add(&text, "2024-%02d-%02d %02d:00:00,%.4f,%.4f\n", 1 + i / 24 / 28, 1 + i / 24 % 28, i % 24,
                         10 + 3 * sin(i * 2 * M_PI / 12) + 0.1 * cleat_random_normal(&random),
                         -5 + 2 * cos(i * 2 * M_PI / 12) + 0.1 * cleat_random_normal(&random));
    write_text(t, name, &text);
}

/* Horizontal or vertical stripes of random phase, with noise. */
static void make_stripes(const tiny *t, const char *folder, int images, bool down, uint32_t stream) {
    enum { SIDE = 12 };
    cleat_random random = cleat_random_stream(8, stream, down);
    char path[TINY_PATH], name[128];
    uint8_t pixels[SIDE * SIDE];
    assert_int_equal(cleat_folder_make(tiny_path(t, folder, path), NULL), CLEAT_OK);
    for (int i = 0; i < images; ++i) {
        uint32_t phase = cleat_random_below(&random, 4);
        for (uint32_t p = 0; p < SIDE * SIDE; ++p)
            pixels[p] =
                (uint8_t)(((down ? p % SIDE : p / SIDE) + phase) % 4 / 2 * 120 + cleat_random_below(&random, 80));
        snprintf(name, sizeof name, "%s/%s%d.png", folder, down ? "d" : "a", i);
        assert_int_equal(cleat_png_write(tiny_path(t, name, path), pixels, SIDE, SIDE, NULL), CLEAT_OK);
    }
}

/* Bright boxes on a dark background: the mask is the box. */
static void make_boxes(const tiny *t, int images) {
    enum { SIDE = 32 };
    cleat_random random = cleat_random_stream(9, 0, 0);
    char path[TINY_PATH], name[64];
    uint8_t pixels[SIDE * SIDE], mask[SIDE * SIDE];
    cleat_string val = {0};
    for (int i = 0; i < images; ++i) {
        uint32_t top = cleat_random_below(&random, 20), left = cleat_random_below(&random, 20);
        uint32_t height = 6 + cleat_random_below(&random, 7), width = 6 + cleat_random_below(&random, 7);
        for (uint32_t p = 0; p < SIDE * SIDE; ++p) {
            bool in = p / SIDE - top < height && p % SIDE - left < width;
            mask[p] = in ? 255 : 0;
            pixels[p] = (uint8_t)(in * 140 + cleat_random_below(&random, 100));
        }
        snprintf(name, sizeof name, "boxes/images/%d.png", i);
        assert_int_equal(cleat_png_write(tiny_path(t, name, path), pixels, SIDE, SIDE, NULL), CLEAT_OK);
        snprintf(name, sizeof name, "boxes/masks/%d.png", i);
        assert_int_equal(cleat_png_write(tiny_path(t, name, path), mask, SIDE, SIDE, NULL), CLEAT_OK);
        if (i % 4 == 3) cleat_string_add(&val, "%d\n", i);
    }
    write_text(t, "boxes/val.txt", &val);
}

/* A front that moves one column per day and wraps around: the previous day's map is wrong, its shifted copy right. */
static void make_fronts(const tiny *t, const char *folder, int days) {
    enum { SIDE = 16 };
    char name[128];
    for (int day = 0; day < days; ++day) {
        cleat_string text = {0};
        cleat_string_add(&text, "ncols %d\nnrows %d\nxllcorner 1\nyllcorner 2\ncellsize 0.5\nNODATA_value -9\n", SIDE,
                         SIDE);
        for (int i = 0; i < SIDE * SIDE; ++i) {
            int from_front = (i % SIDE + SIDE * 4 - day - i / SIDE / 4) % SIDE;
            cleat_string_add(&text, "%d%s", from_front < 3 ? 5 - from_front : 0, i % SIDE == SIDE - 1 ? "\n" : " ");
        }
        snprintf(name, sizeof name, "%s/front_202402%02d.asc", folder, 1 + day);
        write_text(t, name, &text);
    }
}

static int setup(void **state) {
    if (tiny_setup(state) != 0) return -1;
    const tiny *t = *state;
    char path[TINY_PATH];
    static const char *const folders[] = {"texts",         "lines",       "tags",   "stripes",
                                          "stripes/train", "stripes/val", "boxes",  "boxes/images",
                                          "boxes/masks",   "fronts",      "prompts"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; ++i)
        if (cleat_folder_make(tiny_path(t, folders[i], path), NULL) != CLEAT_OK) return -1;
    make_texts(t, "texts/train.csv", 300, 0);
    make_texts(t, "texts/val.csv", 60, 1);
    make_texts(t, "other.csv", 7, 2);
    make_tags(t, "tags/my.train.conll", 150, 0);
    make_tags(t, "tags/my.dev.conll", 40, 1);
    make_tags(t, "other.conll", 3, 2);
    make_repeated(t, "lines/train.txt", 240, 0, false);
    make_repeated(t, "lines/val.txt", 60, 1, false);
    make_repeated(t, "other.txt", 9, 2, true);
    make_prompts(t, "prompts/train.jsonl", 200, 0, true);
    make_prompts(t, "prompts/val.jsonl", 60, 1, true);
    make_prompts(t, "other_prompts.txt", 9, 2, false);
    copy_tokenizer(t);
    make_waves(t, "waves.csv", 28 * 24);
    for (int down = 0; down < 2; ++down) {
        make_stripes(t, down ? "stripes/train/down" : "stripes/train/across", 40, down, 0);
        make_stripes(t, down ? "stripes/val/down" : "stripes/val/across", 10, down, 1);
        make_stripes(t, "others", 3, down, 2);
    }
    make_boxes(t, 24);
    make_fronts(t, "fronts", 29);
    return 0;
}

/* --- a family ------------------------------------------------------------------------------------------------- */

typedef struct family {
    const char *name, *data;
    const char *settings[24];
    const char *other, *predictions; /* data to predict, and the output file */
} family;

#define TRANSFORMER "model.d_model=16", "model.heads=2", "model.layers=1", "model.d_ff=32", "model.dropout=0.05"
#define TEXT_TRAIN "train.epochs=8", "train.learning_rate=1e-2", "train.effective_batch_size=16"
#define WAVES                                                                                                          \
    "data.time_column=when", "data.lookback=24", "data.horizon=6", "data.season=12", "data.frames=120",                \
        "data.test_fraction=0.1", "train.epochs=8", "train.learning_rate=1e-2", "train.effective_batch_size=32",       \
        "run.metric=mse"

/* A backbone of 3.7 million parameters is more than this task requires. */
#define MASKS "model.dropout=0", "train.learning_rate=1e-3", "train.effective_batch_size=6", "run.metric=iou"

static const family rows[] = {
    {"text_classifier",
     "texts",
     {TRANSFORMER, TEXT_TRAIN, "data.text_column=words", "data.label_column=kind", "data.id_column=name",
      "data.vocabulary_size=200", "data.max_length=32", "run.metric=macro_f1", "loss.class_weights=balanced"},
     "other.csv",
     "predictions.csv"},
    {"text_tagger",
     "tags",
     {TRANSFORMER, TEXT_TRAIN, "data.vocabulary_size=120", "data.max_length=48", "run.metric=entity_f1"},
     "other.conll",
     "predictions.conll"},
    {"text_pretrain",
     "lines",
     {TRANSFORMER, TEXT_TRAIN, "train.epochs=24", "model.network=bert", "model.max_positions=32",
      "data.vocabulary_size=64", "data.mask_fraction=0.3", "data.max_length=32", "run.metric=accuracy"},
     "other.txt",
     "predictions.csv"},
    {"causal_lm",
     "prompts",
     {"model.d_model=32", "model.heads=4", "model.kv_heads=2", "model.layers=1", "model.d_ff=64", TEXT_TRAIN,
      "train.epochs=24", "data.max_length=32", "run.metric=perplexity"},
     "other_prompts.txt",
     "predictions.csv"},
    {"series_lstm",
     "waves.csv",
     {"model.hidden=16", "model.layers=2", "model.dropout=0", WAVES},
     "waves.csv",
     "predictions.csv"},
    {"series_transformer", "waves.csv", {TRANSFORMER, "data.anchor=last", WAVES}, "waves.csv", "predictions.csv"},
    {"series_dense",
     "waves.csv",
     {"model.hidden=32", "model.layers=1", "data.anchor=season", WAVES},
     "waves.csv",
     "predictions.csv"},
    {"image_vit",
     "stripes",
     {"model.d_model=32", "model.heads=2", "model.layers=2", "model.d_ff=64", "model.patch=4", "model.dropout=0",
      "data.image_size=12", "data.shift=1", "train.epochs=8", "train.learning_rate=2e-3",
      "train.effective_batch_size=16", "run.metric=accuracy"},
     "others",
     "predictions.csv"},
    {"image_convnext",
     "stripes",
     {"model.blocks=1 1", "model.widths=8 16", "model.dropout=0", "data.image_size=12", "data.shift=1",
      "train.epochs=8", "train.learning_rate=1e-2", "train.effective_batch_size=16", "run.metric=accuracy"},
     "others",
     "predictions.csv"},
    {"image_resnet",
     "stripes",
     {"model.width=4", "model.stem=small", "model.dropout=0", "data.image_size=12", "data.shift=1", "train.epochs=6",
      "train.learning_rate=1e-2", "train.effective_batch_size=16", "run.metric=accuracy"},
     "others",
     "predictions.csv"},
    {"mask_segformer",
     "boxes",
     {"model.stem_stride=2", "data.image_size=32", "data.flip=true", "train.epochs=12", MASKS},
     "boxes",
     "3.png"},
    {"emberformer",
     "fronts",
     {"model.d_model=16", "model.heads=2", "model.layers=1", "model.d_ff=32", "model.stem_stride=1", "data.history=3",
      "data.patch=4", "data.val_days=6", "train.epochs=12", MASKS},
     "fronts",
     "2024-02-29.png"},
};
enum { FAMILIES = sizeof rows / sizeof rows[0] };

static void set(cleat_profile *profile, const char *assignment) {
    cleat_error error;
    if (cleat_profile_set(profile, assignment, &error) != CLEAT_OK) fail_msg("%s", error.text);
}

static cleat_profile *profile_of(const tiny *t, const family *f) {
    const char *device = getenv("CLEAT_TEST_DEVICE");
    cleat_profile *profile;
    cleat_error error;
    char assignment[TINY_PATH + 32], path[TINY_PATH];
    assert_int_equal(cleat_profile_create(&profile, NULL), CLEAT_OK);
    snprintf(assignment, sizeof assignment, "model.type=%s", f->name);
    set(profile, assignment);
    snprintf(assignment, sizeof assignment, "data.path=%s", tiny_path(t, f->data, path));
    set(profile, assignment);
    snprintf(assignment, sizeof assignment, "run.device=%s", device ? device : "auto");
    set(profile, assignment);
    set(profile, "loader.num_workers=1");
    if (strcmp(f->name, "causal_lm") == 0) {
        snprintf(assignment, sizeof assignment, "data.vocabulary=%s", tiny_path(t, "tokenizer.json", path));
        set(profile, assignment);
    }
    for (int i = 0; f->settings[i]; ++i) set(profile, f->settings[i]);
    if (cleat_profile_check(profile, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return profile;
}

static cleat_train_report train(const tiny *t, cleat_profile *profile, const char *run, bool resume, bool stop) {
    char path[TINY_PATH];
    volatile int stopped = 0;
    cleat_train_report report;
    cleat_error error;
    const cleat_train_options options = {.out = tiny_path(t, run, path),
                                         .resume = resume,
                                         .stop = &stopped,
                                         .user = (void *)&stopped,
                                         .began = stop ? tiny_stop : NULL};
    cleat_status status = cleat_train(profile, &options, &report, &error);
    if (status != (stop ? CLEAT_ERR_INTERRUPTED : CLEAT_OK)) fail_msg("%s: %s", run, error.text);
    return report;
}

static double metric_of(const cleat_metrics *metrics, const char *name) {
    double value = cleat_metrics_get(metrics, name);
    if (isnan(value)) fail_msg("there is no metric %s", name);
    return value;
}

static void assert_has_converged(const family *f, const cleat_metrics *best) {
    for (size_t i = 0; i < best->count; ++i) print_message("%s %.4f  ", best->items[i].name, best->items[i].value);
    print_message("\n");
    if (strcmp(f->name, "text_classifier") == 0)
        assert_true(metric_of(best, "accuracy") > 0.9 && metric_of(best, "macro_f1") > 0.9);
    else if (strcmp(f->name, "text_tagger") == 0)
        assert_true(metric_of(best, "entity_f1") > 0.9 && metric_of(best, "accuracy") > 0.9);
    else if (strncmp(f->name, "image_", 6) == 0)
        assert_true(metric_of(best, "accuracy") > 0.9);
    else if (strcmp(f->name, "text_pretrain") == 0)
        assert_true(metric_of(best, "accuracy") > 0.9 && metric_of(best, "perplexity") < 2);
    else if (strcmp(f->name, "causal_lm") == 0)
        assert_true(metric_of(best, "perplexity") < 1.3);
    else if (strcmp(f->name, "mask_segformer") == 0)
        assert_true(metric_of(best, "iou") > 0.6 && metric_of(best, "f1") > metric_of(best, "iou"));
    else if (strcmp(f->name, "emberformer") == 0)
        assert_true(metric_of(best, "f1") > metric_of(best, "persistence_f1") && metric_of(best, "iou") > 0.6);
    else
        assert_true(metric_of(best, "mse") < 0.2 * metric_of(best, "persistence_mse") && metric_of(best, "mae") > 0 &&
                    metric_of(best, "seasonal_mse") < 0.1 && metric_of(best, "mse_step_6") > 0);
}

static void assert_same_metrics(const cleat_profile *profile, const char *run, const cleat_metrics *best) {
    cleat_metrics again;
    cleat_error error;
    if (cleat_evaluate(profile, run, "val", &again, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_int_equal(again.count, best->count);
    for (size_t i = 0; i < best->count; ++i)
        assert_true(fabs(again.items[i].value - best->items[i].value) <= 1e-5 * fabs(best->items[i].value));
}

static size_t lines_of(const char *path) {
    size_t size, lines = 0;
    char *text = tiny_read(path, &size);
    for (size_t i = 0; i < size; ++i) lines += text[i] == '\n';
    cleat_free(text);
    return lines;
}

/* Each line has one mask token for the line's word. */
static void assert_finds_words(const char *data, const char *predictions) {
    char word[64], token[64], header[256], line[256];
    FILE *texts = fopen(data, "r"), *found = fopen(predictions, "r");
    int number, mask, lines = 0, right = 0;
    double probability;
    assert_true(texts && found && fgets(header, sizeof header, found));
    while (fgets(line, sizeof line, texts)) {
        assert_int_equal(sscanf(strncmp(line, "[MASK] ", 7) == 0 ? line + 7 : line, "%63s", word), 1);
        assert_int_equal(fscanf(found, "%d,%d,%63[^,],%lf%*[^\n]\n", &number, &mask, token, &probability), 4);
        assert_int_equal(number, ++lines);
        assert_int_equal(mask, 1);
        right += strcmp(word, token) == 0 && probability > 0.5;
    }
    assert_true(lines == 9 && right >= 8);
    assert_int_equal(fgetc(found), EOF);
    fclose(found);
    fclose(texts);
}

/* The most probable token is a blank, or with the beginning of the prompt's word. */
static void assert_continues(const char *predictions) {
    char header[256], word[64], token[64];
    FILE *found = fopen(predictions, "r");
    int lines = 0, right = 0;
    double probability;
    assert_true(found && fgets(header, sizeof header, found));
    assert_memory_equal(header, "id,prompt,token_1,probability_1,", 32);
    while (fscanf(found, "%*[^,],%63[^ ]%*[^,],%63[^,],%lf%*[^\n]\n", word, token, &probability) == 3) {
        right += token[0] == ' ' && strncmp(word, token + 1, strlen(token + 1)) == 0 && probability > 0.5;
        ++lines;
    }
    assert_true(lines == 9 && right >= 8);
    fclose(found);
}

/* The training data are moved away meanwhile. */
static void assert_predicts(const tiny *t, const family *f, const cleat_profile *profile, const char *run) {
    char other[TINY_PATH], out[TINY_PATH], data[TINY_PATH], away[TINY_PATH + 8], path[TINY_PATH + 64];
    size_t count = 0;
    cleat_error error;
    bool same = strcmp(f->other, f->data) == 0;
    tiny_path(t, f->other, other);
    tiny_path(t, f->data, data);
    tiny_path(t, f->name, out);
    snprintf(away, sizeof away, "%s.away", data);
    if (!same) assert_int_equal(rename(data, away), 0);
    cleat_status status = cleat_predict(profile, run, other, out, &count, &error);
    if (!same) assert_int_equal(rename(away, data), 0);
    if (status) fail_msg("%s", error.text);
    snprintf(path, sizeof path, "%s/%s", out, f->predictions);
    if (strcmp(f->name, "text_classifier") == 0)
        assert_int_equal(lines_of(path), 1 + 7);
    else if (strncmp(f->name, "image_", 6) == 0)
        assert_int_equal(lines_of(path), 1 + 6);
    else if (strstr(f->predictions, ".png"))
        assert_true(count > 0 && lines_of(path) > 0);
    else if (strcmp(f->name, "text_tagger") == 0)
        assert_int_equal(lines_of(path), lines_of(other)); /* words and sentence ends */
    else if (strcmp(f->name, "text_pretrain") == 0)
        assert_finds_words(other, path);
    else if (strcmp(f->name, "causal_lm") == 0)
        assert_continues(path);
    else
        assert_int_equal(lines_of(path), 1 + 6 * count);
}

static void one_family(void **state, const family *f) {
    const tiny *t = *state;
    char run[TINY_PATH], name[64];
    cleat_profile *profile = profile_of(t, f);
    snprintf(name, sizeof name, "run-%s", f->name);
    cleat_train_report report = train(t, profile, name, false, false);
    assert_has_converged(f, &report.best);
    assert_same_metrics(profile, tiny_path(t, name, run), &report.best);
    assert_shows_examples(t, f->name, f->data, name, &report.best);
    assert_predicts(t, f, profile, run);
    cleat_profile_destroy(profile);
}

static void the_classifier_learns(void **state) {
    one_family(state, &rows[0]);
}
static void the_tagger_learns(void **state) {
    one_family(state, &rows[1]);
}
static void the_masked_language_model_learns(void **state) {
    one_family(state, &rows[2]);
}
static void the_causal_language_model_learns(void **state) {
    one_family(state, &rows[3]);
}
static void the_lstm_learns(void **state) {
    one_family(state, &rows[4]);
}
static void the_series_transformer_learns(void **state) {
    one_family(state, &rows[5]);
}
static void the_dense_network_learns(void **state) {
    one_family(state, &rows[6]);
}
static void the_vision_transformer_learns(void **state) {
    one_family(state, &rows[7]);
}
static void the_convnext_learns(void **state) {
    one_family(state, &rows[8]);
}
static void the_residual_network_learns(void **state) {
    one_family(state, &rows[9]);
}
static void the_segformer_learns(void **state) {
    one_family(state, &rows[10]);
}
static void the_emberformer_learns(void **state) {
    one_family(state, &rows[11]);
}

/* In half precision the families learn the same tasks as in f32; the run's precision evaluates them. */
static void in_half(void **state, const char *precision) {
    const tiny *t = *state;
    char run[TINY_PATH], name[64];
    for (int i = 0; i < FAMILIES; ++i) {
        cleat_profile *profile = profile_of(t, &rows[i]);
        set(profile, precision);
        snprintf(name, sizeof name, "%s-%s", strchr(precision, '=') + 1, rows[i].name);
        cleat_train_report report = train(t, profile, name, false, false);
        print_message("%s: ", name);
        assert_has_converged(&rows[i], &report.best);
        assert_same_metrics(profile, tiny_path(t, name, run), &report.best);
        cleat_profile_destroy(profile);
    }
}
static void families_learn_in_f16(void **state) {
    in_half(state, "train.precision=f16");
}
static void families_learn_in_bf16(void **state) {
    in_half(state, "train.precision=bf16");
}

static void must_load_again(const tiny *t, const char *run) {
    char name[80], path[TINY_PATH];
    cleat_profile *profile;
    cleat_error error;
    snprintf(name, sizeof name, "%s/resolved.ini", run);
    if (cleat_profile_load(tiny_path(t, name, path), NULL, 0, &profile, &error) != CLEAT_OK) fail_msg("%s", error.text);
    cleat_profile_destroy(profile);
}

/* The first process's preprocessor is also reused. */
static void resumed_runs_have_the_same_bits(void **state) {
    const tiny *t = *state;
    for (int i = 0; i < FAMILIES; ++i) {
        cleat_profile *profile = profile_of(t, &rows[i]);
        char whole[64], parts[64];
        set(profile, "train.epochs=2");
        snprintf(whole, sizeof whole, "whole-%d", i);
        snprintf(parts, sizeof parts, "parts-%d", i);
        const cleat_train_report report = train(t, profile, whole, false, false);
        /* after little training, predictions differ from the truth */
        assert_shows_examples(t, rows[i].name, rows[i].data, whole, &report.best);
        train(t, profile, parts, false, true);
        train(t, profile, parts, true, false);
        tiny_assert_same_run(t, whole, parts);
        must_load_again(t, parts);
        cleat_profile_destroy(profile);
    }
}

/* The micro-batch size changes rounding only: the loss is divided by the words of a global batch, not of a
 * micro-batch. Batch normalisation is an exception, because it uses statistics of the micro-batch. */
static void micro_batches_add_up(void **state) {
    const tiny *t = *state;
    for (int i = 0; i < FAMILIES && strcmp(rows[i].name, "image_resnet") != 0; ++i) {
        cleat_profile *profile = profile_of(t, &rows[i]);
        char whole[64], cut[64];
        set(profile, "train.epochs=1");
        set(profile, "train.learning_rate=1e-3");
        snprintf(whole, sizeof whole, "one-%d", i);
        snprintf(cut, sizeof cut, "cut-%d", i);
        train(t, profile, whole, false, false);
        set(profile, "train.batch_size=5");
        train(t, profile, cut, false, false);
        double distance = tiny_distance(t, whole, cut);
        print_message("%s: %.2g\n", rows[i].name, distance);
        /* rounding, which AdamW amplifies for tiny gradients */
        assert_true(distance > 0 && distance < 1e-3);
        cleat_profile_destroy(profile);
    }
}

static void data_of_another_kind_are_refused(void **state) {
    const tiny *t = *state;
    char path[TINY_PATH];
    cleat_profile *profile = profile_of(t, &rows[4]);
    cleat_train_report report;
    cleat_error error;
    const cleat_train_options options = {.out = tiny_path(t, "refused", path)};
    set(profile, "data.targets=c");
    assert_int_not_equal(cleat_train(profile, &options, &report, &error), CLEAT_OK);
    assert_non_null(strstr(error.text, "waves.csv"));
    assert_non_null(strstr(error.text, "'c'"));
    cleat_profile_destroy(profile);
}

static void a_dense_network_has_all_its_layers(void **state) {
    cleat_profile *profile = profile_of(*state, &rows[6]);
    cleat_model *model;
    cleat_store *store;
    cleat_graph *graph;
    cleat_model_graph built;
    cleat_error error;
    set(profile, "model.layers=20");
    assert_int_equal(cleat_profile_create_model(profile, &model, NULL), CLEAT_OK);
    assert_int_equal(cleat_store_create(&store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(store, "dense", &graph, NULL), CLEAT_OK);
    cleat_model_build(model, graph, CLEAT_MODE_TRAIN, 2, 24, &built);
    if (cleat_graph_status(graph, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_int_equal(cleat_store_count(store), 2 * 21);
    assert_non_null(cleat_store_find(store, "40.weight"));
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
    cleat_model_destroy(model);
    cleat_profile_destroy(profile);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_classifier_learns),
        cmocka_unit_test(the_tagger_learns),
        cmocka_unit_test(the_masked_language_model_learns),
        cmocka_unit_test(the_causal_language_model_learns),
        cmocka_unit_test(the_lstm_learns),
        cmocka_unit_test(the_series_transformer_learns),
        cmocka_unit_test(the_dense_network_learns),
        cmocka_unit_test(the_vision_transformer_learns),
        cmocka_unit_test(the_convnext_learns),
        cmocka_unit_test(the_residual_network_learns),
        cmocka_unit_test(the_segformer_learns),
        cmocka_unit_test(the_emberformer_learns),
        cmocka_unit_test(families_learn_in_f16),
        cmocka_unit_test(families_learn_in_bf16),
        cmocka_unit_test(resumed_runs_have_the_same_bits),
        cmocka_unit_test(micro_batches_add_up),
        cmocka_unit_test(data_of_another_kind_are_refused),
        cmocka_unit_test(a_dense_network_has_all_its_layers),
    };
    tiny_require_device();
    return cmocka_run_group_tests(tests, setup, tiny_teardown);
}

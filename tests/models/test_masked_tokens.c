/* Tokens predicted at masked positions: which rows are read, order and probabilities, non-finite values, and
 * both outputs. */
/* ctest: quick */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/texts.h"
#include "core/files.h"
#include "core/memory.h"
#include "models/masked_tokens.h"
#include "platform/files.h"

/* Five special tokens, then a, b, c; the network has two more rows. */
enum { CLS = 2, SEP, MASK, A, B, C, TOKENS, VOCABULARY = TOKENS + 2, LENGTH = 6 };

static char folder[] = "/tmp/cleat-masked-XXXXXX";

static void path_of(const char *name, char path[128]) {
    snprintf(path, 128, "%s/%s", folder, name);
}

static int make_folder(void **state) {
    static const char vocabulary[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n", texts[] = "a [MASK] b [MASK]\n";
    char path[128];
    (void)state;
    if (!mkdtemp(folder)) return -1;
    path_of("vocab.txt", path);
    if (cleat_file_write(path, vocabulary, strlen(vocabulary), NULL)) return -1;
    path_of("texts.txt", path);
    return cleat_file_write(path, texts, strlen(texts), NULL) ? -1 : 0;
}

static int remove_folder(void **state) {
    static const char *const names[] = {"vocab.txt", "texts.txt", "predictions.csv"};
    char path[128];
    (void)state;
    for (size_t i = 0; i < 3; ++i) {
        path_of(names[i], path);
        remove(path);
    }
    return rmdir(folder);
}

/* The text [CLS] a [MASK] b [MASK] [SEP]. */
static cleat_dataset *open_text(void) {
    char vocabulary[128], path[128];
    cleat_text_options options = cleat_text_defaults();
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    path_of("vocab.txt", vocabulary);
    path_of("texts.txt", path);
    options.vocabulary = vocabulary;
    options.labelled = false;
    options.plain = options.predicted = true;
    options.val_fraction = 0;
    if (cleat_masked_open(path, &options, 0, &dataset, &error)) fail_msg("%s", error.text);
    return dataset;
}

static const int32_t tokens[LENGTH] = {CLS, A, MASK, B, MASK, SEP};

/* Logarithms of weights that sum to 16 in each row. */
static void set_row(float *row, const float weights[VOCABULARY]) {
    for (int v = 0; v < VOCABULARY; ++v) row[v] = logf(weights[v]);
}
static const float first[VOCABULARY] = {0.5f, 0.25f, 0.25f, 0.25f, 1, 1.5f, 6, 3, 3.125f, 0.125f},
                   second[VOCABULARY] = {1, 1, 1, 1, 1, 2, 1, 5, 1, 2};

static char *read_csv(void) {
    char path[128], *text = NULL;
    size_t size;
    path_of("predictions.csv", path);
    assert_int_equal(cleat_file_read(path, &text, &size, NULL), CLEAT_OK);
    return text;
}

#define HEAD                                                                                                           \
    "id,mask,token_1,probability_1,token_2,probability_2,token_3,probability_3,token_4,probability_4,token_5,"         \
    "probability_5\n"

/* All rows exist, but only rows of mask tokens are read. The class without a token has a high probability and
 * is not shown. */
static void mask_tokens_are_predicted(void **state) {
    cleat_dataset *dataset = open_text();
    float logits[LENGTH * VOCABULARY] = {0}, *kept = NULL;
    cleat_error error = {0};
    (void)state;
    set_row(logits + 2 * VOCABULARY, first);
    set_row(logits + 4 * VOCABULARY, second);
    const cleat_masked_logits from = {.logits = logits,
                                      .rows = LENGTH,
                                      .vocabulary = VOCABULARY,
                                      .tokens = tokens,
                                      .length = LENGTH,
                                      .tokenizer = cleat_masked_tokenizer(dataset)};
    if (cleat_masked_condense(&from, &kept, &error)) fail_msg("%s", error.text);
    const cleat_prediction prediction = {.dataset = dataset, .sample = 0, .output = kept, .length = LENGTH};
    if (cleat_masked_write(NULL, &prediction, 1, folder, &error)) fail_msg("%s", error.text);
    char *text = read_csv();
    assert_string_equal(text, HEAD "1,1,b,0.375000,c,0.187500,a,0.093750,[MASK],0.062500,[PAD],0.031250\n"
                                   "1,2,c,0.312500,a,0.125000,[PAD],0.062500,[UNK],0.062500,[CLS],0.062500\n");
    cleat_free(text);
    cleat_free(kept);
    logits[2 * VOCABULARY + 7] = NAN;
    if (cleat_masked_condense(&from, &kept, &error)) fail_msg("%s", error.text);
    const cleat_prediction lost = {.dataset = dataset, .sample = 0, .output = kept, .length = LENGTH};
    if (cleat_masked_write(NULL, &lost, 1, folder, &error)) fail_msg("%s", error.text);
    text = read_csv();
    assert_non_null(strstr(text, ",nan"));
    assert_non_null(strstr(text, "1,2,c,0.312500"));
    cleat_free(text);
    cleat_free(kept);
    cleat_dataset_destroy(dataset);
}

/* An evaluation has a row for each label, in order, possibly followed by other rows. */
static void labelled_tokens_are_examples(void **state) {
    static const int32_t labels[LENGTH] = {-1, B, -1, -1, A, -1};
    cleat_dataset *dataset = open_text();
    float logits[3 * VOCABULARY] = {0}, *kept = NULL;
    cleat_string json = {0};
    cleat_error error = {0};
    (void)state;
    set_row(logits, first);
    set_row(logits + VOCABULARY, second);
    const cleat_masked_logits from = {.logits = logits,
                                      .rows = 3,
                                      .vocabulary = VOCABULARY,
                                      .tokens = tokens,
                                      .labels = labels,
                                      .length = LENGTH,
                                      .tokenizer = cleat_masked_tokenizer(dataset)};
    if (cleat_masked_condense(&from, &kept, &error)) fail_msg("%s", error.text);
    const cleat_prediction prediction = {.dataset = dataset, .sample = 0, .output = kept, .length = LENGTH};
    if (cleat_masked_add_example(&prediction, &json, &error)) fail_msg("%s", error.text);
    assert_string_equal(
        json.data,
        "{\"kind\":\"tokens\",\"name\":\"1\",\"words\":[\"[CLS]\",\"a\",\"[MASK]\",\"b\",\"[MASK]\",\"[SEP]\"],"
        "\"truth\":[null,\"b\",null,null,\"a\",null],\"prediction\":[null,\"b\",null,null,\"c\",null],"
        "\"confidence\":[null,0.375,null,null,0.3125,null]}");
    cleat_string_free(&json);
    cleat_free(kept);
    cleat_dataset_destroy(dataset);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mask_tokens_are_predicted),
        cmocka_unit_test(labelled_tokens_are_examples),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

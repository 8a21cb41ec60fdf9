/* Predictions as CSV and as CoNLL. The whole text is built in memory, then written at once. */
#include "models/text_write.h"

#include "core/files.h"
#include "core/string.h"

#include <math.h>
#include <string.h>

static cleat_status check_label(int32_t label, size_t labels, size_t row, cleat_error *error) {
    if (label >= 0 && (size_t)label < labels) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_ARGUMENT, "prediction %zu: label %d is out of range, there are %zu", row, label,
                      labels);
}

/* Six decimals in every locale; nan if the model's outputs were not finite. */
static void add_probability(cleat_string *text, float probability) {
    if (!isfinite(probability)) {
        cleat_string_add(text, ",nan");
        return;
    }
    long millionths = lround((double)probability * 1e6);
    cleat_string_add(text, ",%ld.%06ld", millionths / 1000000, millionths % 1000000);
}

static cleat_status add_prediction(cleat_string *text, const cleat_text_prediction *prediction, size_t row,
                                   const char *const *names, size_t classes, cleat_error *error) {
    cleat_status status = check_label(prediction->label, classes, row, error);
    if (status) return status;
    for (size_t i = 0; i < classes; ++i) {
        float probability = prediction->probabilities[i];
        if (isfinite(probability) && !(probability >= 0 && probability <= 1.001f))
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "prediction %zu: %g is not a probability (class %s)", row,
                              (double)probability, names[i]);
    }
    cleat_string_add_field(text, prediction->id);
    cleat_string_add_bytes(text, ",", 1);
    cleat_string_add_field(text, names[prediction->label]);
    add_probability(text, prediction->probabilities[prediction->label]);
    for (size_t i = 0; i < classes; ++i) add_probability(text, prediction->probabilities[i]);
    cleat_string_add_bytes(text, "\n", 1);
    return CLEAT_OK;
}

cleat_status cleat_text_write_classes(const char *path, const char *const *names, size_t classes,
                                      const cleat_text_prediction *predictions, size_t count, cleat_error *error) {
    cleat_string text = {0};
    cleat_status status = CLEAT_OK;
    cleat_string_add(&text, "id,label,probability");
    for (size_t i = 0; i < classes; ++i) {
        cleat_string_add_bytes(&text, ",", 1);
        cleat_string_add_field(&text, names[i]);
    }
    cleat_string_add_bytes(&text, "\n", 1);
    for (size_t i = 0; i < count && !status; ++i)
        status = add_prediction(&text, &predictions[i], i, names, classes, error);
    if (!status) return cleat_file_write_text(path, &text, error);
    cleat_string_free(&text);
    return status;
}

cleat_status cleat_text_write_found(const char *path, const cleat_found_tokens *found, size_t count,
                                    cleat_error *error) {
    cleat_string text = {0};
    cleat_string_add(&text, count && found[0].prompt ? "id,prompt" : "id,mask");
    for (int k = 1; k <= CLEAT_TOKENS_FOUND; ++k) cleat_string_add(&text, ",token_%d,probability_%d", k, k);
    cleat_string_add(&text, "\n");
    for (size_t i = 0; i < count; ++i) {
        cleat_string_add_field(&text, found[i].id);
        if (found[i].prompt) {
            cleat_string_add_bytes(&text, ",", 1);
            cleat_string_add_field(&text, found[i].prompt);
        } else {
            cleat_string_add(&text, ",%zu", found[i].mask);
        }
        for (int k = 0; k < CLEAT_TOKENS_FOUND; ++k) {
            cleat_string_add_bytes(&text, ",", 1);
            if (!found[i].tokens[k]) {
                cleat_string_add_bytes(&text, ",", 1);
                continue;
            }
            cleat_string_add_field(&text, found[i].tokens[k]);
            add_probability(&text, found[i].probabilities[k]);
        }
        cleat_string_add_bytes(&text, "\n", 1);
    }
    return cleat_file_write_text(path, &text, error);
}

static cleat_status add_sentence(cleat_string *text, const cleat_tagged_sentence *sentence, size_t row,
                                 const char *const *names, size_t labels, cleat_error *error) {
    for (size_t i = 0; i < sentence->count; ++i) {
        const char *word = sentence->words[i];
        cleat_status status = check_label(sentence->labels[i], labels, row, error);
        if (status) return status;
        if (!*word || strpbrk(word, "\t\r\n"))
            return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                              "sentence %zu: word %zu is empty or contains a tab or a line break, which a CoNLL file "
                              "cannot represent",
                              row, i);
        cleat_string_add_bytes(text, word, strlen(word));
        cleat_string_add(text, "\t%s\n", names[sentence->labels[i]]);
    }
    cleat_string_add_bytes(text, "\n", 1);
    return CLEAT_OK;
}

cleat_status cleat_text_write_tags(const char *path, const char *const *names, size_t labels,
                                   const cleat_tagged_sentence *sentences, size_t count, cleat_error *error) {
    cleat_string text = {0};
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < count && !status; ++i) status = add_sentence(&text, &sentences[i], i, names, labels, error);
    if (!status) return cleat_file_write_text(path, &text, error);
    cleat_string_free(&text);
    return status;
}

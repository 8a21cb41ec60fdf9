/* The most probable tokens at masked places, as CSV and as examples. */
#include "models/masked_tokens.h"

#include "cleat/causal_texts.h"
#include "core/files.h"
#include "core/json.h"
#include "core/memory.h"
#include "data/dataset.h"

#include <math.h>
#include <string.h>

/* A condensed output is the number of places, and this for each. Ids are below 2^24, so that a float holds them. */
typedef struct place {
    float position, label; /* label: the token to predict; below 0: unknown */
    float ids[CLEAT_TOKENS_FOUND], probabilities[CLEAT_TOKENS_FOUND]; /* the most probable first; id below 0: none */
} place;

enum { PLACE = sizeof(place) / sizeof(float) };

static const cleat_tokenizer *tokenizer_of(const cleat_dataset *dataset) {
    const cleat_tokenizer *masked = cleat_masked_tokenizer(dataset);
    return masked ? masked : cleat_causal_tokenizer(dataset);
}

static size_t count_places(const cleat_prediction *prediction) {
    return (size_t)prediction->output[0];
}

static place place_at(const cleat_prediction *prediction, size_t i) {
    place found;
    memcpy(&found, prediction->output + 1 + i * PLACE, sizeof found);
    return found;
}

static bool is_place(const cleat_masked_logits *from, int64_t position) {
    if (from->labels) return from->labels[position] >= 0;
    return from->tokens[position] == cleat_tokenizer_mask(from->tokenizer);
}

/* Puts a token among the most probable ones, which are in order. */
static void insert(place *found, const float *logits, int64_t id) {
    int at = CLEAT_TOKENS_FOUND;
    while (at > 0 && (found->ids[at - 1] < 0 || logits[id] > logits[(int64_t)found->ids[at - 1]])) --at;
    if (at == CLEAT_TOKENS_FOUND) return;
    for (int k = CLEAT_TOKENS_FOUND - 1; k > at; --k) found->ids[k] = found->ids[k - 1];
    found->ids[at] = (float)id;
}

/* The probabilities are those among all rows of the network; only ids with a token are shown. Logits that are
 * not finite give probabilities that are NaN. */
static void choose(const float *logits, int64_t vocabulary, int64_t tokens, place *found) {
    float largest = logits[0];
    double sum = 0;
    for (int k = 0; k < CLEAT_TOKENS_FOUND; ++k) found->ids[k] = -1;
    for (int64_t id = 0; id < vocabulary; ++id) {
        largest = fmaxf(largest, logits[id]);
        if (id < tokens) insert(found, logits, id);
    }
    for (int64_t id = 0; id < vocabulary; ++id) sum += exp((double)(logits[id] - largest));
    for (int k = 0; k < CLEAT_TOKENS_FOUND; ++k)
        found->probabilities[k] =
            found->ids[k] < 0 ? 0 : (float)(exp((double)(logits[(int64_t)found->ids[k]] - largest)) / sum);
}

cleat_status cleat_masked_condense(const cleat_masked_logits *from, float **kept, cleat_error *error) {
    const int64_t tokens = (int64_t)cleat_tokenizer_size(from->tokenizer);
    int64_t places = 0, row = 0;
    for (int64_t l = 0; l < from->length; ++l) places += is_place(from, l);
    float *made = cleat_alloc((size_t)(1 + places * PLACE), sizeof *made), *at = made;
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a prediction");
    *at++ = (float)places;
    for (int64_t l = 0; l < from->length; ++l) {
        place found = {.position = (float)l, .label = from->labels ? (float)from->labels[l] : -1};
        if (!is_place(from, l)) continue;
        const int64_t index = from->rows == from->length ? l : row++;
        if (index >= from->rows) break;
        choose(from->logits + index * from->vocabulary, from->vocabulary, tokens, &found);
        memcpy(at, &found, sizeof found);
        at += PLACE;
    }
    *kept = made;
    return CLEAT_OK;
}

int64_t cleat_masked_kept_values(const float *kept) {
    return 1 + (int64_t)kept[0] * PLACE;
}

enum { TOKEN_BYTES = 128 }; /* of a token that is shown */

static const char *show(const cleat_tokenizer *tokenizer, float id, char text[TOKEN_BYTES]) {
    return id >= 0 && cleat_tokenizer_piece_text(tokenizer, (int32_t)id, text, TOKEN_BYTES) ? text : NULL;
}

cleat_status cleat_masked_write(const cleat_model *model, const cleat_prediction *predictions, size_t count,
                                const char *folder, cleat_error *error) {
    (void)model;
    size_t rows = 0, at = 0;
    char path[4096], (*texts)[CLEAT_TOKENS_FOUND][TOKEN_BYTES];
    for (size_t i = 0; i < count; ++i) rows += count_places(&predictions[i]);
    cleat_found_tokens *found = cleat_alloc(rows, sizeof *found);
    texts = cleat_alloc(rows, sizeof *texts);
    cleat_status status = cleat_path_join(folder, "predictions.csv", path, sizeof path, error);
    if (!status && (!found || !texts))
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu predictions", rows);
    for (size_t i = 0; i < count && !status; ++i) {
        const cleat_tokenizer *tokenizer = tokenizer_of(predictions[i].dataset);
        for (size_t k = 0; k < count_places(&predictions[i]); ++k, ++at) {
            const place here = place_at(&predictions[i], k);
            found[at] =
                (cleat_found_tokens){.id = cleat_dataset_id(predictions[i].dataset, predictions[i].sample),
                                     .mask = k + 1,
                                     .prompt = cleat_causal_prompt(predictions[i].dataset, predictions[i].sample)};
            for (int t = 0; t < CLEAT_TOKENS_FOUND; ++t) {
                found[at].tokens[t] = show(tokenizer, here.ids[t], texts[at][t]);
                found[at].probabilities[t] = here.probabilities[t];
            }
        }
    }
    if (!status) status = cleat_text_write_found(path, found, rows, error);
    cleat_free(texts);
    cleat_free(found);
    return status;
}

enum { WORDS_SHOWN = 100, WORD_CHARACTERS = 40 };

/* The input tokens of the network in an evaluation. */
static cleat_status read_tokens(const cleat_prediction *prediction, int32_t **tokens, cleat_error *error) {
    int32_t *made = cleat_alloc((size_t)prediction->length, sizeof *made);
    void *const slots[] = {made, NULL, NULL};
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %lld tokens", (long long)prediction->length);
    cleat_status status =
        cleat_dataset_fill(prediction->dataset, prediction->sample, prediction->length, NULL, slots, error);
    if (status) {
        cleat_free(made);
        return status;
    }
    *tokens = made;
    return CLEAT_OK;
}

static void add_token(cleat_string *json, const cleat_tokenizer *tokenizer, float id) {
    char text[TOKEN_BYTES];
    cleat_examples_add_string(json, NULL, show(tokenizer, id, text), WORD_CHARACTERS);
}

/* Appends a member with a value for each position: that of the place there, or null. */
static void add_member(cleat_string *json, const cleat_prediction *prediction, int64_t shown, const char *name) {
    const cleat_tokenizer *tokenizer = cleat_masked_tokenizer(prediction->dataset);
    size_t next = 0;
    json_add(json, json_open(name, '['));
    for (int64_t l = 0; l < shown; ++l) {
        const bool here = next < count_places(prediction) && (int64_t)place_at(prediction, next).position == l;
        const place found = here ? place_at(prediction, next++) : (place){.label = -1, .ids = {-1}};
        if (strcmp(name, "confidence") == 0)
            json_add(json, json_digits(NULL, here ? (double)found.probabilities[0] : NAN, 4));
        else
            add_token(json, tokenizer, strcmp(name, "truth") == 0 ? found.label : found.ids[0]);
    }
    json_add(json, json_close(']'));
}

cleat_status cleat_masked_add_example(const cleat_prediction *prediction, cleat_string *json, cleat_error *error) {
    const cleat_tokenizer *tokenizer = cleat_masked_tokenizer(prediction->dataset);
    const int64_t own = cleat_dataset_length(prediction->dataset, prediction->sample),
                  shown = own < WORDS_SHOWN ? own : WORDS_SHOWN;
    int32_t *tokens = NULL;
    cleat_status status = read_tokens(prediction, &tokens, error);
    if (status) return status;
    cleat_examples_begin(json, "tokens", prediction);
    json_add(json, json_open("words", '['));
    for (int64_t l = 0; l < shown; ++l) add_token(json, tokenizer, (float)tokens[l]);
    json_add(json, json_close(']'));
    add_member(json, prediction, shown, "truth");
    add_member(json, prediction, shown, "prediction");
    add_member(json, prediction, shown, "confidence");
    json_add(json, json_close('}'));
    cleat_free(tokens);
    return CLEAT_OK;
}

/* Texts with chosen tokens masked, for a masked language model: a dataset around the one of plain texts. */
#include "core/memory.h"
#include "core/philox.h"
#include "data/dataset.h"
#include "data/text/set.h"

#include <math.h>
#include <string.h>

/* A part of a long text. */
typedef struct text_part {
    uint32_t text, number; /* number: 0 for the first part */
    uint32_t begin, end;   /* tokens, not counting the special ones before the text */
    size_t id;             /* of parts after the first: start in the ids */
} text_part;

typedef struct masked_dataset {
    cleat_dataset base; /* first, so that a cleat_dataset * can be cast to this type */
    cleat_dataset *texts;
    const cleat_tokenizer *tokenizer; /* of `texts` */
    double fraction;                  /* 0: nothing is chosen; the texts contain mask tokens */
    int64_t max_length;
    text_part *parts; /* [base.count]; NULL: each text is a sample */
    size_t capacity;
    cleat_string ids; /* each followed by a zero */
} masked_dataset;

enum { TOKENS, LENGTHS, LABELS, TEXT_FIELDS };

static const uint64_t MASK_SEED = 0x6D61736Bu;  /* "mask": a separate family of random streams */
static const double MASKED = 0.8, RANDOM = 0.9; /* below these: the mask token, a random token; else it stays */

static const cleat_field fields[] = {
    [TOKENS] = {.name = "tokens", .dtype = CLEAT_I32, .rank = 1, .shape = {-1}, .pad = -1},
    [LENGTHS] = {.name = "lengths", .dtype = CLEAT_I32, .rank = 0, .pad = 0},
    [LABELS] = {.name = "labels", .dtype = CLEAT_I32, .rank = 1, .shape = {-1}, .pad = CLEAT_TEXT_NO_LABEL},
};

static const masked_dataset *masked_of(const cleat_dataset *dataset) {
    return (const masked_dataset *)dataset;
}

static size_t text_of(const masked_dataset *m, size_t sample) {
    return m->parts ? m->parts[sample].text : sample;
}

static const char *masked_id(const cleat_dataset *dataset, size_t sample) {
    const masked_dataset *m = masked_of(dataset);
    if (m->parts && m->parts[sample].number > 0) return m->ids.data + m->parts[sample].id;
    return cleat_dataset_id(m->texts, text_of(m, sample));
}

static int64_t masked_length(const cleat_dataset *dataset, size_t sample) {
    const masked_dataset *m = masked_of(dataset);
    const text_part *part = m->parts ? &m->parts[sample] : NULL;
    return part ? (int64_t)(part->end - part->begin + cleat_tokenizer_specials(m->tokenizer, false))
                : cleat_dataset_length(m->texts, sample);
}

static cleat_split masked_split(const cleat_dataset *dataset, size_t sample) {
    const masked_dataset *m = masked_of(dataset);
    return cleat_dataset_split(m->texts, text_of(m, sample));
}

/* Number of tokens besides the special ones. */
static int64_t words_of(const masked_dataset *m, int64_t length) {
    const int64_t words = length - (int64_t)cleat_tokenizer_specials(m->tokenizer, false);
    return words > 0 ? words : 0;
}

static int64_t chosen_of(const masked_dataset *m, int64_t words) {
    const int64_t chosen = llround(m->fraction * (double)words);
    return words == 0 || m->fraction <= 0 ? 0 : chosen < 1 ? 1 : chosen;
}

static int64_t masked_items(const cleat_dataset *dataset, size_t sample) {
    const masked_dataset *m = masked_of(dataset);
    return chosen_of(m, words_of(m, masked_length(dataset, sample)));
}

/* The token that replaces a chosen one. */
static int32_t replacement(const masked_dataset *m, cleat_random *random, int32_t token) {
    const double which = cleat_random_uniform(random);
    const uint32_t other = cleat_random_below(random, (uint32_t)cleat_tokenizer_size(m->tokenizer));
    return which < MASKED ? cleat_tokenizer_mask(m->tokenizer) : which < RANDOM ? (int32_t)other : token;
}

/* Chooses exactly the number of positions that masked_items gives (Knuth's selection sampling). labels
 * [length] may be NULL. */
static void mask(const masked_dataset *m, size_t sample, const cleat_rng_key *rng_key, int64_t length, int32_t *tokens,
                 int32_t *labels) {
    const int64_t leading = (int64_t)cleat_tokenizer_leading(m->tokenizer), words = words_of(m, length);
    int64_t wanted = chosen_of(m, words);
    cleat_random random =
        cleat_random_stream((rng_key ? rng_key->seed : 0) ^ MASK_SEED, rng_key ? rng_key->epoch : 0, (uint32_t)sample);
    for (int64_t i = 0; i < words && wanted > 0; ++i) {
        if (cleat_random_uniform(&random) * (double)(words - i) >= (double)wanted) continue;
        int32_t *token = &tokens[leading + i];
        if (labels) labels[leading + i] = *token;
        *token = replacement(m, &random, *token);
        --wanted;
    }
}

/* The tokens of a sample, with the special ones of its text around them. */
static void copy_tokens(const masked_dataset *m, size_t sample, int32_t *tokens) {
    size_t count = 0;
    const int32_t *ids = cleat_text_ids(m->texts, text_of(m, sample), &count);
    const text_part whole = {.end = (uint32_t)words_of(m, (int64_t)count)},
                    *part = m->parts ? &m->parts[sample] : &whole;
    const size_t leading = cleat_tokenizer_leading(m->tokenizer), words = part->end - part->begin,
                 trailing = cleat_tokenizer_specials(m->tokenizer, false) - leading;
    memcpy(tokens, ids, leading * sizeof *ids);
    memcpy(tokens + leading, ids + leading + part->begin, words * sizeof *ids);
    memcpy(tokens + leading + words, ids + count - trailing, trailing * sizeof *ids);
}

static cleat_status masked_fill(const cleat_dataset *dataset, size_t sample, int64_t length,
                                const cleat_rng_key *rng_key, void *const *slots, cleat_error *error) {
    const masked_dataset *m = masked_of(dataset);
    const int64_t own_length = masked_length(dataset, sample);
    int32_t *own = slots[TOKENS] ? NULL : cleat_alloc((size_t)length, sizeof *own), *lengths = slots[LENGTHS];
    int32_t *tokens = slots[TOKENS] ? slots[TOKENS] : own;
    if (!tokens) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %lld tokens", (long long)length);
    copy_tokens(m, sample, tokens);
    if (lengths) *lengths = (int32_t)own_length;
    mask(m, sample, rng_key, own_length, tokens, slots[LABELS]);
    cleat_free(own);
    return CLEAT_OK;
}

/* Number of mask tokens in the whole text; below 0: no memory. */
static int64_t count_in_text(const masked_dataset *m, size_t sample) {
    const char *text = cleat_text_sample(m->texts, text_of(m, sample));
    cleat_error ignored;
    size_t count = 0;
    int64_t found = 0;
    if (cleat_tokenizer_encode(m->tokenizer, text, strlen(text), NULL, 0, &count, &ignored)) return -1;
    cleat_token *tokens = cleat_alloc(count + 1, sizeof *tokens);
    if (!tokens || cleat_tokenizer_encode(m->tokenizer, text, strlen(text), tokens, count, &count, &ignored))
        found = -1;
    for (size_t i = 0; i < count && found >= 0; ++i) found += tokens[i].id == cleat_tokenizer_mask(m->tokenizer);
    cleat_free(tokens);
    return found;
}

/* Truncation to the maximum length may have removed mask tokens. */
static cleat_sample_state masked_state(const cleat_dataset *dataset, size_t sample) {
    const masked_dataset *m = masked_of(dataset);
    if (m->fraction > 0 || masked_length(dataset, sample) < m->max_length) return CLEAT_SAMPLE_WHOLE;
    return count_in_text(m, sample) > cleat_masked_count(dataset, sample) ? CLEAT_SAMPLE_CUT : CLEAT_SAMPLE_WHOLE;
}

static cleat_status masked_save(const cleat_dataset *dataset, const char *folder, cleat_error *error) {
    return cleat_dataset_save(masked_of(dataset)->texts, folder, error);
}

static void masked_destroy(cleat_dataset *dataset) {
    masked_dataset *m = (masked_dataset *)dataset;
    cleat_dataset_destroy(m->texts);
    cleat_free(m->parts);
    cleat_string_free(&m->ids);
    cleat_free(m);
}

static const cleat_dataset_class masked_class = {
    .name = "masked texts",
    .fields = fields,
    .n_fields = sizeof fields / sizeof *fields,
    .id = masked_id,
    .length = masked_length,
    .split = masked_split,
    .fill = masked_fill,
    .items = masked_items,
    .state = masked_state,
    .save = masked_save,
    .destroy = masked_destroy,
};

/* Divides a text of `words` tokens into parts of about the same length, at most `most` tokens each. */
static cleat_status split_text(masked_dataset *m, size_t text, int64_t words, int64_t most, cleat_error *error) {
    const int64_t parts = words > most ? (words + most - 1) / most : 1;
    cleat_status status = CLEAT_OK;
    for (int64_t p = 0; p < parts && !status; ++p) {
        status = cleat_grow(&m->parts, m->base.count, &m->capacity, error);
        if (status) return status;
        m->parts[m->base.count++] = (text_part){.text = (uint32_t)text,
                                                .number = (uint32_t)p,
                                                .begin = (uint32_t)(words * p / parts),
                                                .end = (uint32_t)(words * (p + 1) / parts),
                                                .id = m->ids.size};
        if (p == 0) continue;
        cleat_string_add(&m->ids, "%s/%lld", cleat_dataset_id(m->texts, text), (long long)p + 1);
        cleat_string_add_bytes(&m->ids, "", 1);
        if (m->ids.failed) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the names of parts of texts");
    }
    return status;
}

static cleat_status split_texts(masked_dataset *m, const char *path, cleat_error *error) {
    const int64_t most = m->max_length - (int64_t)cleat_tokenizer_specials(m->tokenizer, false);
    const size_t texts = cleat_dataset_count(m->texts);
    size_t longer = 0;
    cleat_status status = CLEAT_OK;
    if (most < 1)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "data.max_length = %lld: the tokenizer adds as many special tokens, so no text fits",
                          (long long)m->max_length);
    m->base.count = 0;
    for (size_t i = 0; i < texts && !status; ++i) {
        const int64_t words = words_of(m, cleat_dataset_length(m->texts, i));
        longer += words > most;
        status = split_text(m, i, words, most, error);
    }
    if (status) return status;
    if (m->base.count > UINT32_MAX)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "%s: more than 4294967295 parts of texts", path);
    if (longer)
        cleat_log(CLEAT_LOG_INFO, "%s: %zu texts have more than %lld tokens and are divided: %zu samples", path, longer,
                  (long long)m->max_length, m->base.count);
    return CLEAT_OK;
}

cleat_status cleat_masked_open(const char *path, const cleat_text_options *options, double fraction,
                               cleat_dataset **dataset, cleat_error *error) {
    cleat_text_options own = options ? *options : cleat_text_defaults();
    const bool splits = own.split_long && fraction > 0;
    masked_dataset *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for the dataset", path);
    made->max_length = own.max_length;
    if (splits) own.max_length = INT32_MAX;
    cleat_status status = cleat_text_open(path, &own, &made->texts, error);
    if (!status) {
        made->base = (cleat_dataset){.type = &masked_class, .count = cleat_dataset_count(made->texts)};
        made->tokenizer = cleat_text_tokenizer(made->texts);
        made->fraction = fraction;
        if (cleat_tokenizer_mask(made->tokenizer) < 0)
            status = cleat_fail(error, CLEAT_ERR_FORMAT,
                                "%s: the vocabulary has no mask token, which a masked language model needs", path);
    }
    if (!status && splits) status = split_texts(made, path, error);
    if (status) {
        masked_destroy(&made->base);
        return status;
    }
    *dataset = &made->base;
    return CLEAT_OK;
}

const cleat_tokenizer *cleat_masked_tokenizer(const cleat_dataset *dataset) {
    return dataset->type == &masked_class ? masked_of(dataset)->tokenizer : NULL;
}

const char *cleat_masked_text(const cleat_dataset *dataset, size_t sample) {
    if (dataset->type != &masked_class || sample >= dataset->count) return NULL;
    return cleat_text_sample(masked_of(dataset)->texts, text_of(masked_of(dataset), sample));
}

int64_t cleat_masked_count(const cleat_dataset *dataset, size_t sample) {
    if (dataset->type != &masked_class || sample >= dataset->count) return 0;
    const masked_dataset *m = masked_of(dataset);
    const text_part *part = m->parts ? &m->parts[sample] : NULL;
    size_t count = 0;
    int64_t found = 0;
    const int32_t *ids = cleat_text_ids(m->texts, text_of(m, sample), &count);
    const size_t leading = part ? cleat_tokenizer_leading(m->tokenizer) : 0;
    for (size_t i = part ? leading + part->begin : 0; i < (part ? leading + part->end : count); ++i)
        found += ids[i] == cleat_tokenizer_mask(m->tokenizer);
    return found;
}

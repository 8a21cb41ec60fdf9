/* Datasets of texts, for classification and tagging: opens them, fills samples, and answers queries. */
#include "data/dataset.h"
#include "data/text/set.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/philox.h"

#include <string.h>

enum { TOKENS, LENGTHS, LABEL, TYPES, TEXT_FIELDS };

typedef struct text_dataset {
    cleat_dataset base; /* first, so that a cleat_dataset * can be cast to this type */
    cleat_text_task task;
    cleat_text_set set; /* rows [base.count]; names are freed and options are NULL once it is open */
    cleat_text_tokens tokens;
    cleat_text_labels labels;
    cleat_tokenizer *tokenizer;
    double word_dropout;
    cleat_dataset_class type; /* of texts with targets, whose field has their number */
    cleat_field fields[TEXT_FIELDS];
} text_dataset;

static const uint64_t DROP_SEED = 0x64726F70u; /* "drop": a separate family of random streams */

/* Only pairs of texts have the last field. */
static const cleat_field class_fields[] = {
    [TOKENS] = {.name = "tokens", .dtype = CLEAT_I32, .rank = 1, .shape = {-1}, .pad = -1},
    [LENGTHS] = {.name = "lengths", .dtype = CLEAT_I32, .rank = 0, .pad = 0},
    [LABEL] = {.name = "label", .dtype = CLEAT_I32, .rank = 0, .pad = CLEAT_TEXT_NO_LABEL},
    [TYPES] = {.name = "types", .dtype = CLEAT_I32, .rank = 1, .shape = {-1}, .pad = 0},
};

static const cleat_field tag_fields[] = {
    [TOKENS] = {.name = "tokens", .dtype = CLEAT_I32, .rank = 1, .shape = {-1}, .pad = -1},
    [LENGTHS] = {.name = "lengths", .dtype = CLEAT_I32, .rank = 0, .pad = 0},
    [LABEL] = {.name = "labels", .dtype = CLEAT_I32, .rank = 1, .shape = {-1}, .pad = CLEAT_TEXT_NO_LABEL},
};

/* --- the classes ---------------------------------------------------------------------------------------------- */

static const text_dataset *texts_of(const cleat_dataset *dataset) {
    return (const text_dataset *)dataset;
}

static const char *text_id(const cleat_dataset *dataset, size_t sample) {
    const cleat_text_set *set = &texts_of(dataset)->set;
    return set->bytes.data + set->rows[sample].id;
}

static int64_t text_length(const cleat_dataset *dataset, size_t sample) {
    const size_t *starts = texts_of(dataset)->tokens.starts;
    return (int64_t)(starts[sample + 1] - starts[sample]);
}

static cleat_split text_split(const cleat_dataset *dataset, size_t sample) {
    return texts_of(dataset)->set.rows[sample].split;
}

/* Replaces random tokens by [UNK], but not the special tokens around the texts. */
static void drop_words(const text_dataset *texts, size_t sample, const cleat_rng_key *rng_key, int64_t n,
                       int32_t *tokens) {
    const cleat_tokenizer *t = texts->tokenizer;
    const bool pairs = texts->tokens.types != NULL;
    const int32_t unknown = cleat_tokenizer_unk(t), cls = cleat_tokenizer_cls(t), sep = cleat_tokenizer_sep(t);
    const int64_t leading = (int64_t)cleat_tokenizer_leading(t),
                  trailing = (int64_t)cleat_tokenizer_specials(t, false) - leading;
    cleat_random random = cleat_random_stream(rng_key->seed ^ DROP_SEED, rng_key->epoch, (uint32_t)sample);
    for (int64_t i = leading; i < n - trailing; ++i) {
        bool drops = cleat_random_uniform(&random) < texts->word_dropout;
        if (drops && !(pairs && (tokens[i] == cls || tokens[i] == sep))) tokens[i] = unknown;
    }
}

static cleat_status text_fill(const cleat_dataset *dataset, size_t sample, int64_t length, const cleat_rng_key *rng_key,
                              void *const *slots, cleat_error *error) {
    (void)length;
    (void)error;
    const text_dataset *texts = texts_of(dataset);
    const cleat_text_row *row = &texts->set.rows[sample];
    int64_t n = text_length(dataset, sample);
    int32_t *tokens = slots[TOKENS], *lengths = slots[LENGTHS], *labels = slots[LABEL];
    if (tokens) memcpy(tokens, texts->tokens.ids + texts->tokens.starts[sample], (size_t)n * sizeof *tokens);
    if (tokens && rng_key && texts->word_dropout > 0) drop_words(texts, sample, rng_key, n, tokens);
    if (texts->tokens.types && slots[TYPES])
        memcpy(slots[TYPES], texts->tokens.types + texts->tokens.starts[sample], (size_t)n * sizeof *tokens);
    if (lengths) *lengths = (int32_t)n;
    if (labels && dataset->targets)
        cleat_targets_fill(dataset->targets, sample, slots[LABEL]);
    else if (labels && texts->task == CLEAT_TEXT_CLASSES)
        *labels = texts->set.units[row->first].label;
    if (labels && texts->task == CLEAT_TEXT_TAGS)
        for (size_t i = row->first; i < row->first + row->units; ++i) {
            const cleat_text_unit *word = &texts->set.units[i];
            if (word->position >= 0) labels[word->position] = word->label;
        }
    return CLEAT_OK;
}

static int64_t tagged_words(const cleat_dataset *dataset, size_t sample) {
    const cleat_text_set *set = &texts_of(dataset)->set;
    const cleat_text_row *row = &set->rows[sample];
    int64_t tagged = 0;
    for (size_t i = row->first; i < row->first + row->units; ++i)
        tagged += set->units[i].position >= 0 && set->units[i].label != CLEAT_TEXT_NO_LABEL;
    return tagged;
}

/* Truncated words get the tag O, as do words without a token. */
static cleat_sample_state tagged_state(const cleat_dataset *dataset, size_t sample) {
    const cleat_text_set *set = &texts_of(dataset)->set;
    const cleat_text_row *row = &set->rows[sample];
    for (size_t i = row->first; i < row->first + row->units; ++i)
        if (set->units[i].position == CLEAT_TEXT_CUT) return CLEAT_SAMPLE_CUT;
    return CLEAT_SAMPLE_WHOLE;
}

/* The saved tokenizer must have the pieces of the dataset's. */
static cleat_status check_pieces(const cleat_tokenizer *wanted, const cleat_tokenizer *saved, const char *folder,
                                 cleat_error *error) {
    const size_t count = cleat_tokenizer_size(wanted);
    bool same = cleat_tokenizer_size(saved) == count;
    for (size_t id = 0; same && id < count; ++id) {
        const char *a = cleat_tokenizer_piece(wanted, (int32_t)id), *b = cleat_tokenizer_piece(saved, (int32_t)id);
        same = a && b ? strcmp(a, b) == 0 : a == b;
    }
    return same ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_FORMAT, "%s: the tokenizer has other tokens", folder);
}

static cleat_status text_check_saved(const cleat_dataset *dataset, const char *folder, cleat_error *error) {
    const text_dataset *texts = texts_of(dataset);
    cleat_tokenizer *saved = NULL;
    cleat_status status = cleat_text_open_fitted(folder, cleat_tokenizer_lowercase(texts->tokenizer), &saved, error);
    if (!status) status = check_pieces(texts->tokenizer, saved, folder, error);
    cleat_tokenizer_destroy(saved);
    if (!status && dataset->targets) {
        cleat_targets read = {0};
        status = cleat_targets_read(folder, &read, error);
        cleat_targets_free(&read);
    }
    if (status || !texts->labels.count) return status;
    return cleat_text_check_labels(texts->task, folder, error);
}

static void text_destroy(cleat_dataset *dataset) {
    text_dataset *texts = (text_dataset *)dataset;
    cleat_text_set_free(&texts->set);
    cleat_text_tokens_free(&texts->tokens);
    cleat_text_labels_free(&texts->labels);
    cleat_tokenizer_destroy(texts->tokenizer);
    cleat_free(texts);
}

#define TEXT_FUNCTIONS                                                                                                 \
    .id = text_id, .length = text_length, .split = text_split, .fill = text_fill, .save = cleat_text_save,             \
    .check_saved = text_check_saved, .destroy = text_destroy

static const cleat_dataset_class class_class = {
    .name = "texts",
    .fields = class_fields,
    .n_fields = TYPES,
    TEXT_FUNCTIONS,
};

static const cleat_dataset_class pair_class = {
    .name = "pairs of texts",
    .fields = class_fields,
    .n_fields = sizeof class_fields / sizeof *class_fields,
    TEXT_FUNCTIONS,
};

static const cleat_dataset_class tag_class = {
    .name = "tagged words",
    .fields = tag_fields,
    .n_fields = sizeof tag_fields / sizeof *tag_fields,
    .items = tagged_words,
    .state = tagged_state,
    TEXT_FUNCTIONS,
};

const char *const cleat_text_empty_names[] = {"error", "skip", "keep", NULL};

cleat_text_options cleat_text_defaults(void) {
    return (cleat_text_options){
        .text_column = "text",
        .label_column = "label",
        .targets.standardise = true,
        .vocabulary_size = 8000,
        .max_length = 128,
        .lowercase = true,
        .val_fraction = 0.1,
        .labelled = true,
    };
}

static cleat_status check_options(const cleat_text_options *options, cleat_error *error) {
    double val = options->val_fraction, test = options->test_fraction;
    bool fitted = *cleat_text_option(options->fitted);
    if (options->task != CLEAT_TEXT_CLASSES && options->task != CLEAT_TEXT_TAGS)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "task %d: must be classes or tags", (int)options->task);
    if (!(options->word_dropout >= 0 && options->word_dropout < 1))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "data.word_dropout = %g: must be at least 0 and less than 1",
                          options->word_dropout);
    if (options->max_length < 3 || options->max_length > INT32_MAX)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "data.max_length = %lld: must be 3 to 2147483647",
                          (long long)options->max_length);
    if (!(val >= 0 && test >= 0 && val + test < 1))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "data.val_fraction = %g, data.test_fraction = %g: must be at least 0, and their sum below 1",
                          val, test);
    if (!fitted && !*cleat_text_option(options->vocabulary) && options->vocabulary_size < 6)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "data.vocabulary_size = %lld: must be at least 6",
                          (long long)options->vocabulary_size);
    if (!options->labelled && !options->plain && !fitted &&
        (!*cleat_text_option(options->vocabulary) || !*cleat_text_option(options->labels)))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "texts without labels cannot be used for training: specify the folder of a trained model (or "
                          "data.vocabulary and data.labels)");
    return CLEAT_OK;
}

static cleat_status read_file(const cleat_text_file *file, cleat_text_set *set, cleat_error *error) {
    const size_t first = set->n_rows;
    const cleat_status status = file->lines                             ? cleat_text_read_lines(file, set, error)
                                : set->options->task == CLEAT_TEXT_TAGS ? cleat_text_read_conll(file, set, error)
                                                                        : cleat_text_read_table(file, set, error);
    return status ? status : cleat_text_assign_splits(set, file, first, error);
}

static cleat_status read_files(const char *path, const cleat_text_files *files, cleat_text_set *set,
                               cleat_error *error) {
    const cleat_text_options *options = set->options;
    cleat_status status = CLEAT_OK;
    cleat_error why;
    for (size_t i = 0; i < files->count; ++i)
        if (files->files[i].guessed)
            cleat_log(CLEAT_LOG_INFO, "using %s as the %s file", files->files[i].path,
                      cleat_split_name(files->files[i].split));
    for (size_t i = 0; i < files->count && !status; ++i)
        if (read_file(&files->files[i], set, &why) != CLEAT_OK) status = cleat_faults_add(&set->faults, &why, error);
    if (!status) status = cleat_faults_report(&set->faults, error);
    if (status) return status;
    memset(set->summary.samples, 0, sizeof set->summary.samples);
    for (size_t i = 0; i < set->n_rows; ++i) ++set->summary.samples[set->rows[i].split];
    set->summary.words = options->task == CLEAT_TEXT_TAGS ? set->n_units : 0;
    if (!set->n_rows)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: no texts are left; %zu are empty", path, set->summary.skipped);
    if (set->n_rows > UINT32_MAX)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "%s: more than 4294967295 texts", path);
    if ((options->labelled || options->plain) && !*cleat_text_option(options->fitted) &&
        !set->summary.samples[CLEAT_SPLIT_TRAIN])
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s: the training split has no texts; reduce data.val_fraction, or add texts", path);
    return CLEAT_OK;
}

static cleat_status count_labels(text_dataset *texts, cleat_error *error) {
    const cleat_text_set *set = &texts->set;
    if (texts->labels.samples) return CLEAT_OK; /* already read from the model's folder */
    texts->labels.samples = cleat_alloc(texts->labels.count, sizeof *texts->labels.samples);
    if (!texts->labels.samples)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the counts of %zu labels", texts->labels.count);
    for (size_t r = 0; r < set->n_rows; ++r) {
        const cleat_text_row *row = &set->rows[r];
        for (size_t i = row->first; i < row->first + row->units && row->split == CLEAT_SPLIT_TRAIN; ++i)
            if (set->units[i].label != CLEAT_TEXT_NO_LABEL) ++texts->labels.samples[set->units[i].label];
    }
    return CLEAT_OK;
}

static void log_labels(const char *path, const text_dataset *texts) {
    cleat_string line = {0};
    bool tags = texts->task == CLEAT_TEXT_TAGS;
    if (!texts->set.summary.samples[CLEAT_SPLIT_TRAIN]) return;
    for (size_t i = tags; i < texts->labels.count && line.size < 800; i += tags ? 2 : 1)
        cleat_string_add(&line, "%s%s %lld", line.size ? ", " : "", texts->labels.names[i] + (tags ? 2 : 0),
                         (long long)texts->labels.samples[i]);
    if (line.data) cleat_log(CLEAT_LOG_INFO, "%s: training split: %s", path, line.data);
    for (size_t i = tags; i < texts->labels.count; i += tags ? 2 : 1)
        if (!texts->labels.samples[i])
            cleat_log(CLEAT_LOG_DEBUG, "%s: '%s' does not occur in the training split", path, texts->labels.names[i]);
    cleat_string_free(&line);
}

static void log_summary(const char *path, const text_dataset *texts, const cleat_text_options *options) {
    const cleat_text_summary *s = &texts->set.summary;
    const int64_t max_length = options->max_length;
    bool tags = texts->task == CLEAT_TEXT_TAGS;
    if (!options->labelled && (!options->plain || options->predicted))
        cleat_log(CLEAT_LOG_INFO, "%s: %zu %s to predict; %zu tokens (%.2f %% unknown)", path, texts->base.count,
                  tags ? "sentences" : "texts", s->tokens, 100 * (double)s->unknown / (double)s->tokens);
    else
        cleat_log(CLEAT_LOG_INFO,
                  "%s: %zu training, %zu validation, %zu test %s; %zu tokens (%.2f %% unknown), vocabulary of %zu",
                  path, s->samples[CLEAT_SPLIT_TRAIN], s->samples[CLEAT_SPLIT_VAL], s->samples[CLEAT_SPLIT_TEST],
                  tags ? "sentences" : "texts", s->tokens, 100 * (double)s->unknown / (double)s->tokens,
                  cleat_tokenizer_size(texts->tokenizer));
    if (!*cleat_text_option(options->fitted) && !options->plain) log_labels(path, texts);
    if (s->skipped) cleat_log(CLEAT_LOG_WARNING, "%s: %zu empty texts are skipped", path, s->skipped);
    if (s->replaced)
        cleat_log(CLEAT_LOG_WARNING, "%s: %zu bytes that are not UTF-8 were replaced by U+FFFD", path, s->replaced);
    if (s->repaired)
        cleat_log(CLEAT_LOG_WARNING, "%s: %zu tags I-x that do not continue an entity are read as B-x", path,
                  s->repaired);
    if (s->cut && tags)
        cleat_log(CLEAT_LOG_WARNING,
                  "%s: %zu sentences have more than %lld tokens and are truncated, %zu words are lost", path, s->cut,
                  (long long)max_length, s->cut_words);
    if (s->cut && !tags)
        cleat_log(CLEAT_LOG_WARNING, "%s: %zu texts have more than %lld tokens and are truncated%s", path, s->cut,
                  (long long)max_length,
                  options->plain && !options->predicted ? "; data.long_texts = split makes several samples of each"
                                                        : "");
}

/* The fields and functions of texts with targets. */
static void add_targets(text_dataset *texts) {
    memcpy(texts->fields, class_fields, sizeof texts->fields);
    texts->fields[LABEL] = cleat_targets_field(&texts->set.targets);
    texts->type = *texts->base.type;
    texts->type.fields = texts->fields;
    texts->type.items = cleat_targets_items;
    texts->base.type = &texts->type;
    texts->base.targets = &texts->set.targets;
}

static cleat_status read_dataset(const char *path, text_dataset *texts, cleat_error *error) {
    cleat_text_files files;
    cleat_text_set *set = &texts->set;
    cleat_status status = cleat_text_find_files(path, set->options, &files, error);
    if (!status && cleat_text_has_targets(set->options))
        status = cleat_targets_open(&set->options->targets, cleat_text_option(set->options->labels),
                                    cleat_text_option(set->options->fitted), &set->targets, error);
    if (!status) status = read_files(path, &files, set, error);
    const bool has_classes = !set->options->plain && !cleat_text_has_targets(set->options);
    if (!status && has_classes) status = cleat_text_select_labels(set, &texts->labels, error);
    cleat_text_free_names(set);
    if (!status && has_classes) status = count_labels(texts, error);
    texts->base.count = set->n_rows;
    if (!status && cleat_text_has_targets(set->options))
        status = cleat_targets_fit(&set->targets, &texts->base, path, error);
    if (!status && cleat_text_has_targets(set->options)) add_targets(texts);
    if (!status) status = cleat_text_open_tokenizer(set, &texts->tokenizer, error);
    if (!status) status = cleat_text_tokenize(set, path, texts->tokenizer, &texts->tokens, error);
    return status;
}

cleat_status cleat_text_open(const char *path, const cleat_text_options *options, cleat_dataset **dataset,
                             cleat_error *error) {
    cleat_text_options defaults = cleat_text_defaults();
    if (!options) options = &defaults;
    cleat_status status = check_options(options, error);
    if (status) return status;
    text_dataset *texts = cleat_alloc(1, sizeof *texts);
    if (!texts) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for the dataset", path);
    texts->task = options->task;
    texts->word_dropout = options->word_dropout;
    texts->base.type = options->task == CLEAT_TEXT_TAGS ? &tag_class
                       : cleat_text_has_pairs(options)  ? &pair_class
                                                        : &class_class;
    texts->set.options = options;
    status = read_dataset(path, texts, error);
    if (status) {
        text_destroy(&texts->base);
        return status;
    }
    texts->set.options = NULL; /* owned by the caller */
    log_summary(path, texts, options);
    *dataset = &texts->base;
    return CLEAT_OK;
}

static const text_dataset *is_texts(const cleat_dataset *dataset) {
    return dataset->type->destroy == text_destroy ? texts_of(dataset) : NULL;
}

static const cleat_text_unit *unit_of(const cleat_dataset *dataset, size_t sample, size_t word) {
    const text_dataset *texts = is_texts(dataset);
    if (!texts || sample >= dataset->count || word >= texts->set.rows[sample].units) return NULL;
    return &texts->set.units[texts->set.rows[sample].first + word];
}

cleat_status cleat_text_save(const cleat_dataset *dataset, const char *folder, cleat_error *error) {
    const text_dataset *texts = is_texts(dataset);
    char path[4096];
    if (!texts) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "a text dataset is required, not %s", dataset->type->name);
    cleat_status status;
    if (cleat_tokenizer_is_published(texts->tokenizer)) {
        status = cleat_tokenizer_save_folder(texts->tokenizer, folder, error);
    } else {
        status = cleat_path_join(folder, "vocab.txt", path, sizeof path, error);
        if (!status) status = cleat_tokenizer_save(texts->tokenizer, path, error);
    }
    if (!status && dataset->targets) status = cleat_targets_save(dataset->targets, folder, error);
    if (status || !texts->labels.count) return status; /* plain texts */
    return cleat_text_save_labels(&texts->labels, folder, error);
}

const int32_t *cleat_text_ids(const cleat_dataset *dataset, size_t sample, size_t *count) {
    const cleat_text_tokens *tokens = &texts_of(dataset)->tokens;
    *count = tokens->starts[sample + 1] - tokens->starts[sample];
    return tokens->ids + tokens->starts[sample];
}

const cleat_tokenizer *cleat_text_tokenizer(const cleat_dataset *dataset) {
    const text_dataset *texts = is_texts(dataset);
    return texts ? texts->tokenizer : NULL;
}

size_t cleat_text_labels_count(const cleat_dataset *dataset) {
    const text_dataset *texts = is_texts(dataset);
    if (texts && dataset->targets) return dataset->targets->count;
    return texts ? texts->labels.count : 0;
}

const char *cleat_text_label_name(const cleat_dataset *dataset, size_t label) {
    const text_dataset *texts = is_texts(dataset);
    if (label >= cleat_text_labels_count(dataset)) return NULL;
    return dataset->targets ? dataset->targets->all[label].name : texts->labels.names[label];
}

int64_t cleat_text_label_samples(const cleat_dataset *dataset, size_t label) {
    const text_dataset *texts = is_texts(dataset);
    if (label >= cleat_text_labels_count(dataset)) return 0;
    return dataset->targets ? dataset->targets->all[label].samples : texts->labels.samples[label];
}

const char *cleat_text_sample(const cleat_dataset *dataset, size_t sample) {
    return cleat_text_word(dataset, sample, 0);
}

const char *cleat_text_second(const cleat_dataset *dataset, size_t sample) {
    return is_texts(dataset) && texts_of(dataset)->tokens.types ? cleat_text_word(dataset, sample, 1) : NULL;
}

int32_t cleat_text_label(const cleat_dataset *dataset, size_t sample) {
    return is_texts(dataset) && texts_of(dataset)->task != CLEAT_TEXT_TAGS ? cleat_text_word_label(dataset, sample, 0)
                                                                           : CLEAT_TEXT_NO_LABEL;
}

size_t cleat_text_words(const cleat_dataset *dataset, size_t sample) {
    const text_dataset *texts = is_texts(dataset);
    if (!texts || sample >= dataset->count) return 0;
    return texts->task == CLEAT_TEXT_TAGS ? texts->set.rows[sample].units : 1;
}

const char *cleat_text_word(const cleat_dataset *dataset, size_t sample, size_t word) {
    const cleat_text_unit *unit = unit_of(dataset, sample, word);
    return unit ? texts_of(dataset)->set.bytes.data + unit->start : NULL;
}

int32_t cleat_text_word_position(const cleat_dataset *dataset, size_t sample, size_t word) {
    const cleat_text_unit *unit = unit_of(dataset, sample, word);
    return unit && unit->position >= 0 ? unit->position : -1;
}

int32_t cleat_text_word_label(const cleat_dataset *dataset, size_t sample, size_t word) {
    const cleat_text_unit *unit = unit_of(dataset, sample, word);
    return unit ? unit->label : CLEAT_TEXT_NO_LABEL;
}

cleat_text_summary cleat_text_summarise(const cleat_dataset *dataset) {
    const text_dataset *texts = is_texts(dataset);
    return texts ? texts->set.summary : (cleat_text_summary){0};
}

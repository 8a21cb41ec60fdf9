/* The dataset of a causal language model: encoded samples, packed into rows. */
#include "data/dataset.h"
#include "data/text/causal_set.h"
#include "data/text/encode_cache.h"
#include "tokenizer/tokenizer.h"

#include "core/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS, LABELS, STARTS, POSITIONS };

/* Tokens from, from + 1, ... of a sample, as inputs. */
typedef struct segment {
    uint32_t sample, from, places;
    uint32_t row;
} segment;

/* Bits beside the kind of a sample: the special tokens before a text stand before it, EOS stands behind it. */
enum { LEADS = 64, ENDS = 128 };

typedef struct causal_dataset {
    cleat_dataset base; /* first, so that a cleat_dataset * can be cast to this type */
    cleat_causal_set read;
    const cleat_tokenizer *tokenizer;
    cleat_tokenizer *own; /* NULL: the caller's */
    int64_t max_length;
    int64_t packed_length; /* places of the fullest row of a packed set; 0: not packed */
    bool predicted;
    int32_t *leading; /* [n_leading] */
    size_t n_leading;
    int32_t eos;
    cleat_encoded_texts encoded; /* starts: the learned tokens */
    segment *segments;           /* [n_segments], row by row */
    size_t n_segments, capacity;
    size_t *rows;       /* [count + 1] first segment of each */
    cleat_string names; /* ids of rows, each followed by a zero */
    size_t *ids;        /* [count] start in `names` */
    cleat_causal_summary summary;
} causal_dataset;

static const cleat_field fields[] = {
    [TOKENS] = {.name = "tokens", .dtype = CLEAT_I32, .rank = 1, .shape = {-1}, .pad = -1},
    [LABELS] = {.name = "labels", .dtype = CLEAT_I32, .rank = 1, .shape = {-1}, .pad = -1},
    [STARTS] = {.name = "starts", .dtype = CLEAT_I32, .rank = 1, .shape = {-1}, .pad = INT32_MAX},
    [POSITIONS] = {.name = "positions", .dtype = CLEAT_I32, .rank = 1, .shape = {-1}, .pad = -1},
};

static const causal_dataset *causal_of(const cleat_dataset *dataset) {
    return (const causal_dataset *)dataset;
}

static size_t text_tokens(const causal_dataset *c, size_t sample) {
    return (size_t)(c->encoded.offsets[sample + 1] - c->encoded.offsets[sample]);
}

static size_t count_tokens(const causal_dataset *c, size_t sample) {
    const uint8_t kind = c->read.kinds[sample];
    return (kind & LEADS ? c->n_leading : 0) + text_tokens(c, sample) + (kind & ENDS ? 1 : 0);
}

/* A token of a sample, and whether it is learned. */
static int32_t token_at(const causal_dataset *c, size_t sample, size_t index, bool *learned) {
    const size_t leading = c->read.kinds[sample] & LEADS ? c->n_leading : 0, at = index - leading;
    const bool inside = index >= leading && at < text_tokens(c, sample);
    *learned = inside ? c->encoded.starts[c->encoded.offsets[sample] + at] : index > leading;
    return index < leading ? c->leading[index] : inside ? c->encoded.ids[c->encoded.offsets[sample] + at] : c->eos;
}

static const char *causal_id(const cleat_dataset *dataset, size_t row) {
    return causal_of(dataset)->names.data + causal_of(dataset)->ids[row];
}

static int64_t count_places(const causal_dataset *c, size_t row) {
    int64_t places = 0;
    for (size_t s = c->rows[row]; s < c->rows[row + 1]; ++s) places += c->segments[s].places;
    return places;
}

/* Packed rows are nearly full: with one length they are one bucket. */
static int64_t causal_length(const cleat_dataset *dataset, size_t row) {
    const causal_dataset *c = causal_of(dataset);
    return c->packed_length ? c->packed_length : count_places(c, row);
}

static cleat_split causal_split(const cleat_dataset *dataset, size_t row) {
    const causal_dataset *c = causal_of(dataset);
    return c->read.set.rows[c->segments[c->rows[row]].sample].split;
}

/* Each slot may be NULL. Returns the number of labels. */
static int64_t write_row(const causal_dataset *c, size_t row, int32_t *tokens, int32_t *labels, int32_t *starts,
                         int32_t *positions) {
    int64_t learned = 0, at = 0;
    for (size_t s = c->rows[row]; s < c->rows[row + 1]; ++s) {
        const segment *here = &c->segments[s];
        const int64_t start = at;
        for (size_t i = here->from; i < (size_t)here->from + here->places; ++i, ++at) {
            bool is_label = false, ignored;
            const int32_t token = token_at(c, here->sample, i, &ignored),
                          next = c->predicted ? -1 : token_at(c, here->sample, i + 1, &is_label);
            if (tokens) tokens[at] = token;
            if (labels) labels[at] = is_label ? next : -1;
            if (starts) starts[at] = (int32_t)start;
            if (positions) positions[at] = (int32_t)(at - start);
            learned += is_label;
        }
    }
    if (labels && c->predicted && at > 0) labels[at - 1] = 0;
    return learned;
}

static cleat_status causal_fill(const cleat_dataset *dataset, size_t row, int64_t length, const cleat_rng_key *rng_key,
                                void *const *slots, cleat_error *error) {
    (void)length, (void)rng_key, (void)error;
    const bool counts = cleat_dataset_fields(dataset) > POSITIONS;
    write_row(causal_of(dataset), row, slots[TOKENS], slots[LABELS], slots[STARTS], counts ? slots[POSITIONS] : NULL);
    return CLEAT_OK;
}

static int64_t causal_items(const cleat_dataset *dataset, size_t row) {
    return write_row(causal_of(dataset), row, NULL, NULL, NULL, NULL);
}

static cleat_status causal_save(const cleat_dataset *dataset, const char *folder, cleat_error *error) {
    return cleat_tokenizer_save_folder(causal_of(dataset)->tokenizer, folder, error);
}

static cleat_status causal_check_saved(const cleat_dataset *dataset, const char *folder, cleat_error *error) {
    const size_t tokens = cleat_tokenizer_size(causal_of(dataset)->tokenizer);
    cleat_tokenizer *saved = NULL;
    cleat_status status = cleat_tokenizer_load(folder, false, &saved, error);
    if (!status && cleat_tokenizer_size(saved) != tokens)
        status = cleat_fail(error, CLEAT_ERR_FORMAT, "%s: the tokenizer has other tokens", folder);
    cleat_tokenizer_destroy(saved);
    return status;
}

static void causal_destroy(cleat_dataset *dataset) {
    causal_dataset *c = (causal_dataset *)dataset;
    cleat_string_free(&c->names);
    cleat_free(c->ids);
    cleat_free(c->rows);
    cleat_free(c->segments);
    cleat_free(c->leading);
    cleat_encoded_texts_free(&c->encoded);
    cleat_text_set_free(&c->read.set);
    cleat_chat_free(&c->read.chat);
    cleat_free(c->read.spans.all);
    cleat_free(c->read.first_spans);
    cleat_free(c->read.kinds);
    cleat_tokenizer_destroy(c->own);
    cleat_free(c);
}

#define CLASS(FIELDS)                                                                                                  \
    {                                                                                                                  \
        .name = "causal texts", .fields = fields, .n_fields = FIELDS, .id = causal_id, .length = causal_length,        \
        .split = causal_split, .fill = causal_fill, .items = causal_items, .save = causal_save,                        \
        .check_saved = causal_check_saved, .destroy = causal_destroy                                                   \
    }
static const cleat_dataset_class causal_classes[] = {CLASS(POSITIONS), CLASS(POSITIONS + 1)}; /* by options.positions */

/* --- opening -------------------------------------------------------------------------------------------------- */

static cleat_status check_options(const cleat_causal_options *options, cleat_error *error) {
    const double val = options->val_fraction, test = options->test_fraction;
    bool known = false;
    char names[256] = "";
    for (size_t i = 0, used = 0; cleat_chat_template_name(i); ++i) {
        known |= strcmp(cleat_chat_template_name(i), options->chat_name) == 0;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", cleat_chat_template_name(i));
    }
    if (!known)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "data.template = %.40s: no such chat template; there are %s",
                          options->chat_name, names);
    if (options->max_length < 2 || options->max_length >= INT32_MAX || !(val >= 0 && test >= 0 && val + test < 1))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "data.max_length = %lld, data.val_fraction = %g, data.test_fraction = %g: must be 2 to "
                          "2147483646; 0 to 1, their sum below 1",
                          (long long)options->max_length, val, test);
    if (!options->tokenizer && !*cleat_text_option(options->vocabulary) && !*cleat_text_option(options->fitted))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "a language model needs a tokenizer: set data.vocabulary, or model.init = FOLDER");
    return CLEAT_OK;
}

static cleat_status open_tokenizer(causal_dataset *c, const cleat_causal_options *options, cleat_error *error) {
    const char *fitted = cleat_text_option(options->fitted), *vocabulary = cleat_text_option(options->vocabulary);
    const cleat_ids none = {0};
    cleat_token_counts framed;
    cleat_status status = CLEAT_OK;
    if (!options->tokenizer) status = cleat_tokenizer_load(*fitted ? fitted : vocabulary, false, &c->own, error);
    c->tokenizer = options->tokenizer ? options->tokenizer : c->own;
    if (!status) status = cleat_chat_open(options->chat_name, options->date, c->tokenizer, &c->read.chat, error);
    if (status) return status;
    c->eos = cleat_tokenizer_eos(c->tokenizer);
    if (c->eos < 0)
        return cleat_fail(
            error, CLEAT_ERR_FORMAT,
            "the tokenizer has no token to end a text; name one in its tokenizer_config.json (eos_token)");
    const size_t specials = cleat_tokenizer_specials(c->tokenizer, false);
    c->n_leading = cleat_tokenizer_leading(c->tokenizer);
    c->leading = cleat_alloc(specials + 1, sizeof *c->leading);
    if (!c->leading) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu tokens", specials);
    return cleat_tokenizer_frame(c->tokenizer, &none, NULL, specials, c->leading, NULL, &framed, error);
}

static cleat_status read_files(const char *path, cleat_causal_set *all, cleat_error *error) {
    cleat_text_files files;
    cleat_error why;
    cleat_status status = cleat_text_find_files(path, all->set.options, &files, error);
    for (size_t i = 0; i < files.count && !status; ++i) {
        if (files.files[i].guessed)
            cleat_log(CLEAT_LOG_INFO, "using %s as the %s file", files.files[i].path,
                      cleat_split_name(files.files[i].split));
        if (cleat_causal_read(&files.files[i], all, &why)) status = cleat_faults_add(&all->set.faults, &why, error);
    }
    if (!status) status = cleat_faults_report(&all->set.faults, error);
    if (!status && (!all->set.n_rows || all->set.n_rows >= UINT32_MAX))
        status = cleat_fail(error, CLEAT_ERR_FORMAT, "%s: %zu texts%s", path, all->set.n_rows,
                            all->set.n_rows ? "; divide them" : ": all lines are empty; write a sample in each");
    return status;
}

static cleat_status encode(causal_dataset *c, const char *path, cleat_error *error) {
    const cleat_causal_options *options = c->read.options;
    const cleat_text_set *set = &c->read.set;
    cleat_text_view *views = cleat_alloc(set->n_rows, sizeof *views);
    cleat_string name = {0};
    cleat_string_add(&name, "%s, causal", path);
    cleat_status status = CLEAT_OK;
    if (!views || name.failed) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu texts", set->n_rows);
    for (size_t i = 0; i < set->n_rows && !status; ++i) {
        const cleat_text_unit *unit = &set->units[set->rows[i].first];
        views[i] = (cleat_text_view){set->bytes.data + unit->start, unit->size};
    }
    const cleat_encode_setup setup = {.tokenizer = c->tokenizer,
                                      .texts = views,
                                      .n = set->n_rows,
                                      .first_spans = c->read.first_spans,
                                      .spans = c->read.spans.all,
                                      .workers = options->workers,
                                      .cpus = options->cpus && *options->cpus ? options->cpus : NULL};
    if (!status)
        status = options->cache ? cleat_encode_cached(&setup, name.data, NULL, &c->encoded, error)
                                : cleat_encode_texts(&setup, &c->encoded, error);
    cleat_free(views);
    cleat_string_free(&name);
    return status ? cleat_fail_in(error, status, "%s", path) : CLEAT_OK;
}

/* A sample as segments: plain texts are divided, others are cut to the last learned token. */
static cleat_status add_sample(causal_dataset *c, size_t sample, const char *path, cleat_error *error) {
    const cleat_text_set *set = &c->read.set;
    const uint8_t kind = c->read.kinds[sample] & ~(LEADS | ENDS);
    const size_t most = (size_t)c->max_length, count = count_tokens(c, sample);
    const bool whole = c->predicted || kind == CLEAT_CAUSAL_PLAIN;
    size_t all = c->predicted || !count ? count : count - 1;
    bool learned = whole && all;
    if (c->predicted && (all > most || !all))
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s: prompt %s has %zu tokens; 1 to %zu are possible "
                          "(data.max_length)",
                          path, set->bytes.data + set->rows[sample].id, all, most);
    c->summary.cut += !whole && all > most;
    c->summary.divided += whole && all > most;
    for (size_t last = all < most ? all : most; last && !learned; --last) {
        (void)token_at(c, sample, last, &learned);
        all = last;
    }
    c->summary.dropped += !learned;
    for (size_t from = 0; from < all && learned; from += most) {
        const cleat_status status = cleat_grow(&c->segments, c->n_segments, &c->capacity, error);
        if (status) return status;
        c->segments[c->n_segments++] = (segment){.sample = (uint32_t)sample,
                                                 .from = (uint32_t)from,
                                                 .places = (uint32_t)(all - from < most ? all - from : most)};
    }
    return CLEAT_OK;
}

static cleat_status make_segments(causal_dataset *c, const char *path, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    cleat_error why;
    for (size_t i = 0; i < c->read.set.n_rows && !status; ++i) {
        const int32_t *ids = c->encoded.ids + c->encoded.offsets[i];
        const size_t count = text_tokens(c, i);
        if (c->read.kinds[i] != CLEAT_CAUSAL_CHAT) {
            if (c->n_leading && !(count && ids[0] == c->leading[0])) c->read.kinds[i] |= LEADS;
            if (!c->predicted && !(count && ids[count - 1] == c->eos)) c->read.kinds[i] |= ENDS;
        }
        if (add_sample(c, i, path, &why)) status = cleat_faults_add(&c->read.set.faults, &why, error);
    }
    return status ? status : cleat_faults_report(&c->read.set.faults, error);
}

static int by_row(const void *a, const void *b) {
    const segment *x = a, *y = b;
    const uint32_t u[] = {x->row, x->sample, x->from}, v[] = {y->row, y->sample, y->from};
    for (int i = 0; i < 3; ++i)
        if (u[i] != v[i]) return u[i] < v[i] ? -1 : 1;
    return 0;
}

/* The items in the order of decreasing size: a counting sort. ends [room + 1] is memory. */
static void sort_items(const uint32_t *sizes, size_t count, uint32_t room, uint32_t *ends, uint32_t *order) {
    for (size_t i = 0; i < count; ++i) ++ends[sizes[i]];
    for (uint32_t size = room; size-- > 0;) ends[size] += ends[size + 1];
    for (size_t i = count; i-- > 0;) order[--ends[sizes[i]]] = (uint32_t)i;
}

/* Puts items of `sizes` [count], each 1 to `room`, into rows of `room`: the longest first, each into the row with the
 * least space that suffices (best-fit decreasing; Johnson, "Near-optimal bin packing algorithms", 1973). Writes the row
 * of each item to rows [count], and their number. Equal sizes keep their order. */
static cleat_status pack_items(const uint32_t *sizes, size_t count, uint32_t room, uint32_t *rows, size_t *used,
                               cleat_error *error) {
    uint32_t *ends = cleat_alloc((size_t)room + 1, sizeof *ends), *order = cleat_alloc(count, sizeof *order),
             *first = cleat_alloc((size_t)room + 1, sizeof *first), *next = cleat_alloc(count + 1, sizeof *next);
    uint8_t *open = cleat_alloc((size_t)room + 1, 1); /* whether a row has this space; first, next: lists of them */
    const bool there = ends && order && first && next && open;
    uint32_t made = 0;
    if (there) sort_items(sizes, count, room, ends, order);
    for (size_t i = 0; i < count && there; ++i) {
        const uint32_t size = sizes[order[i]];
        const uint8_t *found = memchr(open + size, 1, (size_t)room + 1 - size);
        const uint32_t space = found ? (uint32_t)(found - open) : room, row = found ? first[space] : ++made;
        if (found) open[space] = (first[space] = next[row]) != 0;
        rows[order[i]] = row - 1;
        next[row] = first[space - size];
        first[space - size] = row;
        open[space - size] = space > size;
    }
    cleat_free(ends);
    cleat_free(order);
    cleat_free(first);
    cleat_free(next);
    cleat_free(open);
    if (!there) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory to pack %zu samples", count);
    *used = made;
    return CLEAT_OK;
}

/* Packs the segments of each split, and puts all of them into the order of rows. */
static cleat_status make_rows(causal_dataset *c, bool pack, cleat_error *error) {
    const size_t count = c->n_segments;
    uint32_t *members = cleat_alloc(count, sizeof *members), *sizes = cleat_alloc(count, sizeof *sizes),
             *rows = cleat_alloc(count, sizeof *rows);
    cleat_status status = CLEAT_OK;
    if (!members || !sizes || !rows) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu samples", count);
    for (int split = 0; split < CLEAT_SPLITS && !status; ++split) {
        size_t n = 0;
        for (size_t i = 0; i < count; ++i)
            if ((int)c->read.set.rows[c->segments[i].sample].split == split) members[n++] = (uint32_t)i;
        for (size_t i = 0; i < n; ++i) sizes[i] = c->segments[members[i]].places, rows[i] = (uint32_t)i;
        size_t used = n;
        if (pack && !c->predicted) status = pack_items(sizes, n, (uint32_t)c->max_length, rows, &used, error);
        for (size_t i = 0; i < n; ++i) c->segments[members[i]].row = (uint32_t)c->base.count + rows[i];
        c->base.count += used;
        c->summary.rows[split] = used;
    }
    cleat_free(members);
    cleat_free(sizes);
    cleat_free(rows);
    if (!status && count) qsort(c->segments, count, sizeof *c->segments, by_row);
    return status;
}

static cleat_status name_rows(causal_dataset *c, bool pack, cleat_error *error) {
    const cleat_text_set *set = &c->read.set;
    c->rows = cleat_alloc(c->base.count + 1, sizeof *c->rows);
    c->ids = cleat_alloc(c->base.count, sizeof *c->ids);
    if (!c->rows || !c->ids) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu rows", c->base.count);
    for (size_t i = 0; i < c->n_segments; ++i) c->rows[c->segments[i].row + 1] = i + 1;
    for (size_t row = 0; row < c->base.count; ++row) {
        const size_t others = c->rows[row + 1] - c->rows[row] - 1;
        const segment *first = &c->segments[c->rows[row]];
        c->ids[row] = c->names.size;
        cleat_string_add(&c->names, "%s", set->bytes.data + set->rows[first->sample].id);
        if (first->from) cleat_string_add(&c->names, "/%zu", first->from / (size_t)c->max_length + 1);
        if (others) cleat_string_add(&c->names, "+%zu", others);
        cleat_string_add_bytes(&c->names, "", 1);
        const int64_t places = count_places(c, row);
        if (pack && !c->predicted && places > c->packed_length) c->packed_length = places;
        c->summary.places += (size_t)places;
        c->summary.learned += (size_t)write_row(c, row, NULL, NULL, NULL, NULL);
    }
    for (size_t i = 0; i < set->n_rows; ++i) ++c->summary.samples[set->rows[i].split];
    return c->names.failed ? cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the names of rows") : CLEAT_OK;
}

static void log_summary(const char *path, const causal_dataset *c) {
    const cleat_causal_summary *s = &c->summary;
    const long long most = (long long)c->max_length;
    const char *name = c->read.chat.name;
    char rows[120] = "";
    if (c->packed_length)
        snprintf(rows, sizeof rows, " in %zu, %zu, %zu rows of %lld places (%.1f %% used)", s->rows[0], s->rows[1],
                 s->rows[2], (long long)c->packed_length,
                 100 * (double)s->places / ((double)c->base.count * (double)c->packed_length));
    if (c->predicted && c->base.count == 1) return; /* a prompt that is typed, perhaps one of many */
    if (c->predicted)
        cleat_log(CLEAT_LOG_INFO, "%s: %zu prompts, %zu tokens; chat template: %s", path, c->base.count, s->places,
                  name);
    else
        cleat_log(
            CLEAT_LOG_INFO,
            "%s: %zu training, %zu validation, %zu test samples%s; %zu tokens, %zu of them learned; chat template: %s",
            path, s->samples[0], s->samples[1], s->samples[2], rows, s->places, s->learned, name);
    if (c->read.chat.own)
        cleat_log(CLEAT_LOG_WARNING, "%s: the tokenizer's own chat template is %s; auto uses that", path,
                  c->read.chat.own);
    if (s->divided)
        cleat_log(CLEAT_LOG_INFO, "%s: %zu texts have more than %lld tokens and are divided", path, s->divided, most);
    if (s->cut)
        cleat_log(CLEAT_LOG_WARNING, "%s: %zu samples have more than %lld tokens and lose their end (data.max_length)",
                  path, s->cut, most);
    if (s->dropped)
        cleat_log(CLEAT_LOG_WARNING, "%s: %zu samples have no answer, or none within data.max_length, and are left out",
                  path, s->dropped);
    if (c->read.blank) cleat_log(CLEAT_LOG_WARNING, "%s: %zu empty texts are skipped", path, c->read.blank);
}

static cleat_status open_set(const char *path, causal_dataset *c, const cleat_causal_options *options,
                             cleat_error *error) {
    const cleat_text_options texts = {.task = CLEAT_TEXT_CAUSAL,
                                      .train_file = options->train_file,
                                      .val_file = options->val_file,
                                      .test_file = options->test_file,
                                      .val_fraction = options->predicted ? 0 : options->val_fraction,
                                      .test_fraction = options->predicted ? 0 : options->test_fraction,
                                      .fold = options->fold,
                                      .labelled = !options->predicted,
                                      .fitted = options->fitted};
    c->read.set.options = &texts;
    c->read.options = options;
    cleat_status status = open_tokenizer(c, options, error);
    if (!status) status = read_files(path, &c->read, error);
    if (!status) status = encode(c, path, error);
    if (!status) status = make_segments(c, path, error);
    if (!status) status = make_rows(c, options->pack, error);
    if (!status) status = name_rows(c, options->pack, error);
    if (!status && !c->base.count)
        status =
            c->summary.cut
                ? cleat_fail(error, CLEAT_ERR_FORMAT,
                             "%s: no sample has anything to learn: of %zu, %zu end at data.max_length = %lld before "
                             "their answers; increase it, or shorten the prompts",
                             path, c->read.set.n_rows, c->summary.cut, (long long)c->max_length)
                : cleat_fail(error, CLEAT_ERR_FORMAT,
                             "%s: no sample has anything to learn: none has a message of the assistant with a weight "
                             "above 0, or a completion; add answers, or learn all tokens (data.train_on = all)",
                             path);
    if (!status && !options->predicted && !*cleat_text_option(options->fitted) && !c->summary.rows[CLEAT_SPLIT_TRAIN])
        status = cleat_fail(error, CLEAT_ERR_FORMAT,
                            "%s: the training split has no samples; reduce data.val_fraction, or add some", path);
    if (!options->predicted) cleat_string_free(&c->read.set.bytes);
    c->read.set.options = NULL; /* owned by the caller */
    c->read.options = NULL;
    return status;
}

cleat_causal_options cleat_causal_defaults(void) {
    return (cleat_causal_options){.prompt_column = "prompt",
                                  .completion_column = "completion",
                                  .text_column = "text",
                                  .chat_name = "auto",
                                  .pack = true,
                                  .max_length = 512,
                                  .val_fraction = 0.1};
}

cleat_status cleat_causal_open(const char *path, const cleat_causal_options *options, cleat_dataset **dataset,
                               cleat_error *error) {
    const cleat_causal_options defaults = cleat_causal_defaults();
    if (!options) options = &defaults;
    cleat_status status = check_options(options, error);
    if (status) return status;
    causal_dataset *c = cleat_alloc(1, sizeof *c);
    if (!c) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for the dataset", path);
    c->base.type = &causal_classes[options->positions];
    c->max_length = options->max_length;
    c->predicted = options->predicted;
    status = open_set(path, c, options, error);
    if (status) {
        causal_destroy(&c->base);
        return status;
    }
    log_summary(path, c);
    *dataset = &c->base;
    return CLEAT_OK;
}

/* --- queries -------------------------------------------------------------------------------------------------- */

static const causal_dataset *is_causal(const cleat_dataset *dataset) {
    return dataset->type->fill == causal_fill ? causal_of(dataset) : NULL;
}

cleat_causal_summary cleat_causal_summarise(const cleat_dataset *dataset) {
    return is_causal(dataset) ? causal_of(dataset)->summary : (cleat_causal_summary){0};
}

const cleat_tokenizer *cleat_causal_tokenizer(const cleat_dataset *dataset) {
    return is_causal(dataset) ? causal_of(dataset)->tokenizer : NULL;
}

const char *cleat_causal_template(const cleat_dataset *dataset) {
    return is_causal(dataset) ? causal_of(dataset)->read.chat.name : "none";
}

int32_t cleat_causal_end(const cleat_dataset *dataset) {
    const causal_dataset *c = is_causal(dataset);
    const char *end = c ? cleat_chat_end(&c->read.chat) : NULL;
    return end ? cleat_tokenizer_id(c->tokenizer, end) : c ? c->eos : -1;
}

/* Text of a sample (unit 0), or its truth. */
static const char *unit_of(const cleat_dataset *dataset, size_t sample, size_t unit) {
    const causal_dataset *c = is_causal(dataset);
    if (!c || !c->predicted || sample >= dataset->count || c->read.set.rows[sample].units <= unit) return NULL;
    return c->read.set.bytes.data + c->read.set.units[c->read.set.rows[sample].first + unit].start;
}

const char *cleat_causal_prompt(const cleat_dataset *dataset, size_t sample) {
    return unit_of(dataset, sample, 0);
}

const char *cleat_causal_truth(const cleat_dataset *dataset, size_t sample) {
    return unit_of(dataset, sample, 1);
}

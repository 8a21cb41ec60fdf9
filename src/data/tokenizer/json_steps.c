/* The sections "normalizer", "pre_tokenizer", "post_processor" and "decoder" of tokenizer.json. */
#include "tokenizer/json_read.h"

#include "core/memory.h"
#include "tokenizer/unicode.h"

#include <string.h>

enum { DEEPEST = 16 }; /* sequences in sequences */

/* The steps of a section: the names of their kinds, the last of which is Sequence, whose steps are a member. */
typedef struct step_kinds {
    const char *const *names;
    const char *member;
    cleat_status (*add)(const cJSON *object, int kind, cleat_pipeline *p, cleat_error *error);
} step_kinds;

static cleat_status add_steps(const step_kinds *kinds, const cJSON *object, int depth, cleat_pipeline *p,
                              cleat_error *error) {
    int kind = -1;
    const cJSON *step;
    cleat_status status = cleat_member_choice(object, "type", kinds->names, -1, &kind, error);
    if (!status && kind < 0) status = cleat_fail(error, CLEAT_ERR_FORMAT, "a part without a 'type'");
    if (!status && depth > DEEPEST) status = cleat_fail(error, CLEAT_ERR_FORMAT, "sequences are nested too deep");
    if (status) return status;
    if (kinds->names[kind + 1]) return kinds->add(object, kind, p, error);
    cJSON_ArrayForEach(step, cleat_json_member(object, kinds->member)) {
        if (!status) status = add_steps(kinds, step, depth + 1, p, error);
    }
    return status;
}

/* In the order of cleat_normaliser_kind. */
static const char *const normaliser_names[] = {"BertNormalizer", "Strip",   "StripAccents", "NFC",      "NFD",
                                               "NFKC",           "NFKD",    "Lowercase",    "Nmt",      "Precompiled",
                                               "Replace",        "Prepend", "ByteLevel",    "Sequence", NULL};

static cleat_status read_bert(const cJSON *object, cleat_normaliser *n, cleat_error *error) {
    cleat_status status = cleat_member_bool(object, "clean_text", true, &n->clean, error);
    if (!status) status = cleat_member_bool(object, "handle_chinese_chars", true, &n->ideographs, error);
    if (!status) status = cleat_member_bool(object, "lowercase", true, &n->lowercase, error);
    return status ? status : cleat_member_bool(object, "strip_accents", n->lowercase, &n->accents, error);
}

static cleat_status read_normaliser(const cJSON *object, cleat_normaliser *n, cleat_error *error) {
    const char *map = NULL;
    cleat_status status = CLEAT_OK;
    switch (n->kind) {
    case CLEAT_NORMALISE_BERT:
        return read_bert(object, n, error);
    case CLEAT_NORMALISE_STRIP:
        status = cleat_member_bool(object, "strip_left", true, &n->left, error);
        return status ? status : cleat_member_bool(object, "strip_right", true, &n->right, error);
    case CLEAT_NORMALISE_PRECOMPILED:
        status = cleat_member_string(object, "precompiled_charsmap", "", &map, error);
        return status ? status : cleat_charsmap_read(map, &n->map, error);
    case CLEAT_NORMALISE_REPLACE:
        status = cleat_read_pattern(object, &n->pattern, error);
        return status ? status : cleat_member_copy(object, "content", "", &n->content, error);
    case CLEAT_NORMALISE_PREPEND:
        return cleat_member_copy(object, "prepend", "", &n->content, error);
    default:
        return CLEAT_OK;
    }
}

static cleat_status add_normaliser(const cJSON *object, int kind, cleat_pipeline *p, cleat_error *error) {
    cleat_normaliser made = {.kind = (cleat_normaliser_kind)kind};
    cleat_status status = read_normaliser(object, &made, error);
    if (!status) status = cleat_grow(&p->normalisers, p->n_normalisers, &p->normalisers_capacity, error);
    if (status) {
        cleat_normaliser_free(&made);
        return cleat_fail_in(error, status, "%s", normaliser_names[kind]);
    }
    p->normalisers[p->n_normalisers++] = made;
    p->lowercase = p->lowercase || made.lowercase || made.kind == CLEAT_NORMALISE_LOWERCASE;
    return CLEAT_OK;
}

cleat_status cleat_read_normalisers(const cJSON *section, cleat_pipeline *pipeline, cleat_error *error) {
    static const step_kinds kinds = {normaliser_names, "normalizers", add_normaliser};
    return section ? add_steps(&kinds, section, 0, pipeline, error) : CLEAT_OK;
}

/* In the order of cleat_splitter_kind; those after Split are variants. */
static const char *const splitter_names[] = {"BertPreTokenizer",   "ByteLevel",   "Metaspace", "Whitespace",
                                             "WhitespaceSplit",    "Punctuation", "Digits",    "Split",
                                             "CharDelimiterSplit", "Sequence",    NULL};
enum { SPLITTER_DELIMITER = CLEAT_SPLIT_PATTERN + 1 };

/* In the order of cleat_split_behaviour. */
static const char *const behaviour_names[] = {"Removed",        "Isolated",   "MergedWithPrevious",
                                              "MergedWithNext", "Contiguous", NULL};

static cleat_status read_behaviour(const cJSON *object, cleat_splitter *s, cleat_error *error) {
    int behaviour = CLEAT_MATCH_ISOLATED;
    cleat_status status = cleat_member_choice(object, "behavior", behaviour_names, behaviour, &behaviour, error);
    s->behaviour = (cleat_split_behaviour)behaviour;
    return status;
}

/* "prepend_scheme", or in older files "add_prefix_space". */
static cleat_status read_metaspace(const cJSON *object, cleat_splitter *s, cleat_error *error) {
    static const char *const schemes[] = {"always", "first", "never", NULL};
    const char *replacement = "\xE2\x96\x81";
    bool prefix = true;
    int scheme = CLEAT_PREPEND_ALWAYS;
    int32_t character;
    cleat_status status = cleat_member_string(object, "replacement", replacement, &replacement, error);
    if (!status) status = cleat_member_bool(object, "split", true, &s->words, error);
    if (!status) status = cleat_member_bool(object, "add_prefix_space", true, &prefix, error);
    if (!status)
        status = cleat_member_choice(object, "prepend_scheme", schemes,
                                     prefix ? CLEAT_PREPEND_ALWAYS : CLEAT_PREPEND_NEVER, &scheme, error);
    if (status) return status;
    size_t size = strlen(replacement);
    if (!size || cleat_utf8_decode(replacement, size, &character) != size)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "'replacement' must be one character");
    memcpy(s->replacement, replacement, size + 1);
    s->prepend = (cleat_prepend_scheme)scheme;
    return CLEAT_OK;
}

static cleat_status read_delimiter(const cJSON *object, cleat_splitter *s, cleat_error *error) {
    const char *delimiter = " ";
    cleat_status status = cleat_member_string(object, "delimiter", " ", &delimiter, error);
    s->behaviour = CLEAT_MATCH_REMOVED;
    return status ? status : cleat_pattern_literal(delimiter, &s->pattern, error);
}

static cleat_status read_splitter(const cJSON *object, int kind, cleat_splitter *s, cleat_error *error) {
    bool individual = false;
    cleat_status status = CLEAT_OK;
    switch (kind) {
    case CLEAT_SPLIT_BYTE_LEVEL:
        status = cleat_member_bool(object, "add_prefix_space", true, &s->prefix_space, error);
        return status ? status : cleat_member_bool(object, "use_regex", true, &s->words, error);
    case CLEAT_SPLIT_METASPACE:
        return read_metaspace(object, s, error);
    case CLEAT_SPLIT_PUNCTUATION:
        return read_behaviour(object, s, error);
    case CLEAT_SPLIT_DIGITS:
        status = cleat_member_bool(object, "individual_digits", false, &individual, error);
        s->behaviour = individual ? CLEAT_MATCH_ISOLATED : CLEAT_MATCH_CONTIGUOUS;
        return status;
    case CLEAT_SPLIT_PATTERN:
        status = cleat_member_bool(object, "invert", false, &s->invert, error);
        if (!status) status = read_behaviour(object, s, error);
        return status ? status : cleat_read_pattern(object, &s->pattern, error);
    case SPLITTER_DELIMITER:
        return read_delimiter(object, s, error);
    default:
        return CLEAT_OK;
    }
}

static cleat_status add_splitter(const cJSON *object, int kind, cleat_pipeline *p, cleat_error *error) {
    cleat_splitter made = {.kind = kind == SPLITTER_DELIMITER ? CLEAT_SPLIT_PATTERN : (cleat_splitter_kind)kind};
    cleat_status status = read_splitter(object, kind, &made, error);
    if (!status) status = cleat_grow(&p->splitters, p->n_splitters, &p->splitters_capacity, error);
    if (status) {
        cleat_pattern_free(&made.pattern);
        return cleat_fail_in(error, status, "%s", splitter_names[kind]);
    }
    p->splitters[p->n_splitters++] = made;
    return CLEAT_OK;
}

cleat_status cleat_read_splitters(const cJSON *section, cleat_pipeline *pipeline, cleat_error *error) {
    static const step_kinds kinds = {splitter_names, "pretokenizers", add_splitter};
    return section ? add_steps(&kinds, section, 0, pipeline, error) : CLEAT_OK;
}

enum { PROCESS_TEMPLATE, PROCESS_BERT, PROCESS_ROBERTA, PROCESS_BYTES };
static const char *const processor_names[] = {"TemplateProcessing", "BertProcessing", "RobertaProcessing",
                                              "ByteLevel",          "Sequence",       NULL};

/* The 'ids' of the special tokens that a section lists, by name: a template may name each many times. */
typedef struct special_tokens {
    cleat_name_table names;
    const cJSON **ids;
} special_tokens;

static cleat_status index_specials(const cJSON *section, special_tokens *specials, cleat_error *error) {
    const cJSON *list = cleat_json_member(section, "special_tokens"), *special;
    uint32_t count = 0, known;
    cleat_status status = CLEAT_OK;
    specials->ids = cleat_alloc((size_t)cJSON_GetArraySize(list) + 1, sizeof *specials->ids);
    if (!specials->ids) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for special tokens");
    cJSON_ArrayForEach(special, list) {
        if (!special->string || cleat_name_table_find(&specials->names, special->string, &known)) continue;
        specials->ids[count] = cleat_json_member(special, "ids");
        status = cleat_name_table_add(&specials->names, special->string, count++, error);
        if (status) break;
    }
    return status;
}

/* Adds the tokens of special token `name`. */
static cleat_status add_special(const special_tokens *specials, const char *name, int32_t type, cleat_template *t,
                                cleat_error *error) {
    uint32_t at;
    const cJSON *ids = cleat_name_table_find(&specials->names, name, &at) ? specials->ids[at] : NULL, *id;
    cleat_status status = CLEAT_OK;
    if (!cJSON_IsArray(ids))
        return cleat_fail(error, CLEAT_ERR_FORMAT, "the template names '%.40s', which 'special_tokens' lacks", name);
    cJSON_ArrayForEach(id, ids) {
        if (!cJSON_IsNumber(id) || id->valuedouble < 0 || id->valuedouble > CLEAT_MAX_PIECE_ID)
            return cleat_fail(error, CLEAT_ERR_FORMAT, "the ids of '%.40s' must be numbers of 0 to %d", name,
                              (int)CLEAT_MAX_PIECE_ID);
        if (!status) status = cleat_template_add(t, CLEAT_TEMPLATE_TOKEN, id->valueint, type, error);
    }
    return status;
}

static cleat_status read_item(const special_tokens *specials, const cJSON *item, cleat_template *t,
                              cleat_error *error) {
    const cJSON *special = cleat_json_member(item, "SpecialToken"), *sequence = cleat_json_member(item, "Sequence");
    const cJSON *part = special ? special : sequence;
    int64_t type = 0;
    const char *id = NULL;
    cleat_status status = cleat_member_count(part, "type_id", 0, INT32_MAX, &type, error);
    if (!status) status = cleat_member_string(part, "id", NULL, &id, error);
    if (status) return status;
    if (special && id) return add_special(specials, id, (int32_t)type, t, error);
    if (sequence && id && (strcmp(id, "A") == 0 || strcmp(id, "B") == 0))
        return cleat_template_add(t, *id == 'A' ? CLEAT_TEMPLATE_FIRST : CLEAT_TEMPLATE_SECOND, -1, (int32_t)type,
                                  error);
    return cleat_fail(error, CLEAT_ERR_FORMAT, "a template has an item that is neither a SpecialToken nor a Sequence");
}

static cleat_status read_template(const cJSON *section, const special_tokens *specials, const char *name,
                                  cleat_template *t, cleat_error *error) {
    const cJSON *item;
    int texts[2] = {0, 0};
    cleat_template_free(t);
    cJSON_ArrayForEach(item, cleat_json_member(section, name)) {
        cleat_status status = read_item(specials, item, t, error);
        if (status) return status;
    }
    for (size_t i = 0; i < t->count; ++i)
        if (t->items[i].kind != CLEAT_TEMPLATE_TOKEN) ++texts[t->items[i].kind == CLEAT_TEMPLATE_SECOND];
    bool pair = strcmp(name, "pair") == 0;
    if (texts[0] != 1 || texts[1] != (int)pair)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "the template '%s' must contain %s once", name,
                          pair ? "the sequences A and B each" : "the sequence A");
    return CLEAT_OK;
}

/* Reads ["[SEP]", 3], the form of BertProcessing and RobertaProcessing. */
static cleat_status read_token(const cJSON *section, const char *name, int32_t *id, cleat_error *error) {
    const cJSON *number = cJSON_GetArrayItem(cleat_json_member(section, name), 1);
    if (!cJSON_IsNumber(number) || number->valuedouble < 0 || number->valuedouble > CLEAT_MAX_PIECE_ID)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "'%s' must be a token and its id", name);
    *id = number->valueint;
    return CLEAT_OK;
}

/* BERT: [CLS] A [SEP] B [SEP], the second text of type 1; RoBERTa: <s> A </s> </s> B </s>, all of type 0. */
static cleat_status add_fixed(int32_t cls, int32_t sep, bool roberta, cleat_pipeline *p, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (int pair = 0; pair < 2 && !status; ++pair) {
        cleat_template *t = &p->templates[pair];
        const int32_t type = roberta ? 0 : 1;
        cleat_template_free(t);
        status = cleat_template_add(t, CLEAT_TEMPLATE_TOKEN, cls, 0, error);
        if (!status) status = cleat_template_add(t, CLEAT_TEMPLATE_FIRST, -1, 0, error);
        if (!status) status = cleat_template_add(t, CLEAT_TEMPLATE_TOKEN, sep, 0, error);
        if (!status && pair && roberta) status = cleat_template_add(t, CLEAT_TEMPLATE_TOKEN, sep, 0, error);
        if (!status && pair) status = cleat_template_add(t, CLEAT_TEMPLATE_SECOND, -1, type, error);
        if (!status && pair) status = cleat_template_add(t, CLEAT_TEMPLATE_TOKEN, sep, type, error);
    }
    return status;
}

static cleat_status add_processor(const cJSON *section, int kind, cleat_pipeline *p, cleat_error *error) {
    int32_t cls = -1, sep = -1;
    special_tokens specials = {0};
    cleat_status status = CLEAT_OK;
    if (kind == PROCESS_TEMPLATE) {
        status = index_specials(section, &specials, error);
        if (!status) status = read_template(section, &specials, "single", &p->templates[0], error);
        if (!status) status = read_template(section, &specials, "pair", &p->templates[1], error);
        cleat_name_table_free(&specials.names);
        cleat_free(specials.ids);
    } else if (kind != PROCESS_BYTES) {
        status = read_token(section, "cls", &cls, error);
        if (!status) status = read_token(section, "sep", &sep, error);
        if (!status) status = add_fixed(cls, sep, kind == PROCESS_ROBERTA, p, error);
    }
    return status;
}

cleat_status cleat_read_templates(const cJSON *section, cleat_pipeline *pipeline, cleat_error *error) {
    static const step_kinds kinds = {processor_names, "processors", add_processor};
    cleat_template *t = pipeline->templates;
    cleat_status status = cleat_template_add(&t[0], CLEAT_TEMPLATE_FIRST, -1, 0, error);
    if (!status) status = cleat_template_add(&t[1], CLEAT_TEMPLATE_FIRST, -1, 0, error);
    if (!status) status = cleat_template_add(&t[1], CLEAT_TEMPLATE_SECOND, -1, 1, error);
    return !status && section ? add_steps(&kinds, section, 0, pipeline, error) : status;
}

/* In the order of cleat_decoder_kind. */
static const char *const decoder_names[] = {"ByteLevel", "Metaspace", "ByteFallback", "Fuse", "Strip",
                                            "Replace",   "WordPiece", "Sequence",     NULL};

static cleat_status read_decoder(const cJSON *object, cleat_decoder *d, cleat_error *error) {
    cleat_splitter space = {0};
    cleat_status status = CLEAT_OK;
    int64_t counts[2] = {0};
    switch (d->kind) {
    case CLEAT_DECODE_METASPACE:
        status = read_metaspace(object, &space, error);
        d->first = space.prepend != CLEAT_PREPEND_NEVER;
        return status ? status : cleat_member_copy(NULL, "replacement", space.replacement, &d->content, error);
    case CLEAT_DECODE_STRIP:
        status = cleat_member_count(object, "start", 0, INT32_MAX, &counts[0], error);
        if (!status) status = cleat_member_count(object, "stop", 0, INT32_MAX, &counts[1], error);
        d->start = (size_t)counts[0];
        d->stop = (size_t)counts[1];
        return status ? status : cleat_member_copy(object, "content", NULL, &d->content, error);
    case CLEAT_DECODE_REPLACE:
        status = cleat_read_pattern(object, &d->pattern, error);
        return status ? status : cleat_member_copy(object, "content", NULL, &d->content, error);
    case CLEAT_DECODE_WORDPIECE:
        status = cleat_member_bool(object, "cleanup", true, &d->cleanup, error);
        return status ? status : cleat_member_copy(object, "prefix", "##", &d->content, error);
    default:
        return CLEAT_OK;
    }
}

static cleat_status add_decoder(const cJSON *object, int kind, cleat_pipeline *p, cleat_error *error) {
    cleat_status status = cleat_grow(&p->decoders, p->n_decoders, &p->decoders_capacity, error);
    if (status) return status;
    cleat_decoder *made = &p->decoders[p->n_decoders++];
    made->kind = (cleat_decoder_kind)kind;
    status = read_decoder(object, made, error);
    return status ? cleat_fail_in(error, status, "%s", decoder_names[kind]) : CLEAT_OK;
}

cleat_status cleat_read_decoders(const cJSON *section, cleat_pipeline *p, cleat_error *error) {
    static const step_kinds kinds = {decoder_names, "decoders", add_decoder};
    cleat_error fault = {0};
    if (!section) { /* the reference joins the pieces with blanks */
        cleat_status status = cleat_grow(&p->decoders, 0, &p->decoders_capacity, error);
        if (!status) p->decoders[p->n_decoders++].kind = CLEAT_DECODE_BLANKS;
        return status;
    }
    const cleat_status status = add_steps(&kinds, section, 0, p, &fault);
    p->decoder_fault = status ? cleat_strdup(fault.text) : NULL;
    if (status == CLEAT_ERR_MEMORY || (status && !p->decoder_fault))
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a decoder");
    return CLEAT_OK;
}

/* Reader of CoNLL files: one word and its tag per line, an empty line after each sentence. */
#include "data/text/set.h"
#include "platform/text.h"

#include <string.h>

typedef struct conll {
    cleat_text_set *set;
    const cleat_text_file *file;
    size_t line;
    size_t sentences, comments;
    bool open;      /* a sentence has begun */
    int32_t before; /* tag of the previous word, O at the start of a sentence */
} conll;

/* Splits a line (trimmed on the right, not empty) into its first and its last column; `tag` is empty if there
 * is only one. */
static void split_line(cleat_stretch line, cleat_stretch *word, cleat_stretch *tag) {
    size_t size = (size_t)(line.end - line.at);
    char *first = memchr(line.at, '\t', size), *last = memrchr(line.at, '\t', size);
    if (!first) {
        line = cleat_text_trim(line);
        for (first = line.at; first < line.end && *first != ' ';) ++first;
        for (last = line.end; last > first && last[-1] != ' ';) --last;
        *word = (cleat_stretch){line.at, first};
        *tag = first == line.end ? (cleat_stretch){line.end, line.end} : (cleat_stretch){last, line.end};
        return;
    }
    *word = cleat_text_trim((cleat_stretch){line.at, first});
    *tag = cleat_text_trim((cleat_stretch){last + 1, line.end});
}

static cleat_status wrong_tag(const conll *in, const char *tag, cleat_error *error) {
    char shown[CLEAT_EXCERPT_SIZE];
    return cleat_fail(
        error, CLEAT_ERR_FORMAT,
        "%s:%zu: the tag '%s' is not one of O, B-TYPE and I-TYPE; convert other schemes (BIOES, BILOU) to BIO",
        in->file->path, in->line, cleat_format_excerpt(tag, strlen(tag), shown));
}

/* I-x must continue an entity of type x. */
static cleat_status check_order(conll *in, const char *tag, int32_t *label, cleat_error *error) {
    bool inside = *label > 0 && *label % 2 == 0;
    /* after a bad tag, nothing is known */
    bool goes_on = in->before == CLEAT_TEXT_NO_LABEL || (in->before > 0 && (in->before - 1) / 2 == (*label - 1) / 2);
    char shown[CLEAT_EXCERPT_SIZE];
    if (!inside || goes_on) return CLEAT_OK;
    if (!in->set->options->repair_tags)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s:%zu: '%s' continues an entity, but the previous word is not part of an entity of this "
                          "type; write B%s, or set data.bad_tags = repair",
                          in->file->path, in->line, cleat_format_excerpt(tag, strlen(tag), shown), shown + 1);
    --*label;
    ++in->set->summary.repaired;
    return CLEAT_OK;
}

static cleat_status read_tag(conll *in, const char *tag, int32_t *label, cleat_error *error) {
    int32_t type;
    if (!*tag)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s:%zu: a word without a tag; write word, tab, tag (O outside of entities)", in->file->path,
                          in->line);
    if (strcmp(tag, "O") == 0) {
        *label = 0;
        return CLEAT_OK;
    }
    if ((tag[0] != 'B' && tag[0] != 'I') || tag[1] != '-' || !tag[2]) return wrong_tag(in, tag, error);
    cleat_status status = cleat_text_name_id(in->set, tag + 2, in->file->path, in->line, &type, error);
    if (status) return status;
    *label = (tag[0] == 'B' ? 1 : 2) + 2 * type;
    return check_order(in, tag, label, error);
}

static cleat_status begin_sentence(conll *in, cleat_error *error) {
    if (in->open) return CLEAT_OK;
    cleat_status status = cleat_text_begin_row(in->set, in->file, NULL, ++in->sentences, error);
    in->open = !status;
    in->before = 0;
    return status;
}

static cleat_status read_word(conll *in, cleat_stretch line, cleat_error *error) {
    cleat_stretch word, tag;
    int32_t label = CLEAT_TEXT_NO_LABEL;
    split_line(line, &word, &tag);
    if (word.at == word.end)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s:%zu: no word before the tab; write word, tab, tag, or remove the line", in->file->path,
                          in->line);
    cleat_status status = begin_sentence(in, error);
    *tag.end = 0; /* overwrites the line feed, a blank, or the terminating zero of the file */
    if (!status && in->set->options->labelled) status = read_tag(in, tag.at, &label, error);
    if (!status) status = cleat_text_add_unit(in->set, word.at, (size_t)(word.end - word.at), label, error);
    in->before = label;
    return status;
}

/* "# id 7" or "# sent_id = 7" before a sentence, as MultiCoNER and CoNLL-U have them; a word '#' has a tag. */
static bool is_comment(const conll *in, cleat_stretch line) {
    if (in->open || line.end - line.at < 3 || line.at[0] != '#' || line.at[1] != ' ') return false;
    cleat_stretch word, tag;
    split_line(line, &word, &tag);
    return memmem(line.at, (size_t)(line.end - line.at), " = ", 3) || !cleat_text_is_tag(tag);
}

static cleat_status read_line(conll *in, cleat_stretch line, cleat_error *error) {
    static const char START[] = "-DOCSTART-";
    while (line.end > line.at && cleat_text_is_blank(line.end[-1])) --line.end;
    bool document = (size_t)(line.end - line.at) >= strlen(START) && memcmp(line.at, START, strlen(START)) == 0;
    if (is_comment(in, line)) {
        ++in->comments;
        return CLEAT_OK;
    }
    if (line.at < line.end && !document) return read_word(in, line, error);
    in->open = false;
    return CLEAT_OK;
}

cleat_status cleat_text_read_conll(const cleat_text_file *file, cleat_text_set *set, cleat_error *error) {
    cleat_source source;
    conll in = {.set = set, .file = file};
    cleat_status status = cleat_text_source(file, set, &source, error);
    if (status) return status;
    while (source.at < source.end && !status) {
        char *end = memchr(source.at, '\n', (size_t)(source.end - source.at));
        cleat_stretch line = {source.at, end ? end : source.end};
        source.at = end ? end + 1 : source.end;
        cleat_error why;
        ++in.line;
        status = read_line(&in, line, &why);
        if (status) status = cleat_faults_add(&set->faults, &why, error);
    }
    in.open = false;
    if (!status && in.comments)
        cleat_log(CLEAT_LOG_INFO, "%s: %zu lines before sentences begin with '# ' and have no tag: comments",
                  file->path, in.comments);
    if (!status && !in.sentences && !set->faults.count)
        status = cleat_fail(error, CLEAT_ERR_FORMAT, "%s:%zu: no sentence in this file", file->path, in.line);
    cleat_source_close(&source);
    return status;
}
